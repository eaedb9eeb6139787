"""MetaGraphDef: a graph with its collections and its Saver, as one message and file.

Owns the conversion of collections to messages and back. Variables, queue runners and similar objects have
their own messages, plain values use lists, all other objects their names in the graph. GraphDef itself is
`graph`'s and `importer`'s.

    tf.train.export_meta_graph("model.meta")
    saver = tf.train.import_meta_graph("model.meta")

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/export_meta_graph
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError

from dtf import logging
from dtf.build.default_graph import get_default_graph
from dtf.build.graph import Graph, GraphKeys
from dtf.build.saveable_object import SaveableObject
from dtf.wire import errors, filesystems, opdef
from dtf.wire.codec import python_to_attr
from dtf.wire.files import UnreadableFileError, file_errors, write_atomically
from dtf.wire.opdef_proto import op_list
from dtf.wire.pb import graph_pb2, meta_graph_pb2, queue_runner_pb2, saver_pb2, variable_pb2

# The release whose format and ops these graphs have, for readers that check it.
_TENSORFLOW_VERSION = "1.15.0"


@dataclass(frozen=True)
class _Codec:
    """How the entries of a collection become messages and come back."""

    message_type: Any
    to_proto: Callable[..., Any]
    from_proto: Callable[..., Any]


_codecs: dict[str, _Codec] = {}


def register_proto_function(
    collection_name: str, proto_type: Any = None, to_proto: Any = None, from_proto: Any = None
) -> None:
    """Says how entries of a collection are exported: `to_proto(entry, export_scope=)` and back.

    Raises:
      TypeError: a function is not callable.
    """
    if not callable(to_proto) or not callable(from_proto):
        raise TypeError("to_proto and from_proto must be callable.")
    _codecs[collection_name] = _Codec(proto_type, to_proto, from_proto)


def create_meta_graph_def(
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Sequence[Any] | None = None,
    graph: Graph | None = None,
    export_scope: str | None = None,
    exclude_nodes: Any = None,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
) -> Any:
    """Makes a MetaGraphDef.

    Args:
      meta_info_def: its MetaInfoDef, to be completed.
      graph_def: the GraphDef; by default made from `graph`.
      saver_def: the SaverDef.
      collection_list: names of the collections; all of the graph by default.
      graph: the default graph if None.
      export_scope: only collection entries of this name scope, without its prefix.
      clear_extraneous_savers: leave Savers other than `saver_def` out.
      strip_default_attrs: leave attributes with default values out.
    """
    graph = graph or get_default_graph()
    message = meta_graph_pb2.MetaGraphDef()
    if meta_info_def is not None:
        message.meta_info_def.CopyFrom(meta_info_def)
    message.meta_info_def.tensorflow_version = _TENSORFLOW_VERSION
    message.graph_def.CopyFrom(graph_def if graph_def is not None else graph.as_graph_def(add_shapes=True))
    if strip_default_attrs:
        _strip_default_attrs(message.graph_def)
        message.meta_info_def.stripped_default_attrs = True
    if not message.meta_info_def.HasField("stripped_op_list"):
        message.meta_info_def.stripped_op_list.CopyFrom(op_list(_op_types(message.graph_def)))
    for key in graph.get_all_collection_keys() if collection_list is None else collection_list:
        if isinstance(key, str):
            extraneous = clear_extraneous_savers and key == GraphKeys.SAVERS
            _add_collection(message, key, [] if extraneous else graph.get_collection(key), export_scope)
    if saver_def is not None:
        message.saver_def.CopyFrom(saver_def)
        if clear_extraneous_savers:
            message.collection_def[GraphKeys.SAVERS].bytes_list.value.append(saver_def.SerializeToString())
    return message


def export_meta_graph(
    filename: str | None = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Sequence[Any] | None = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> Any:
    """Makes a MetaGraphDef as `create_meta_graph_def` does, and writes it to `filename` if one is given.

    Args:
      as_text: write the text form.
      export_scope: only the nodes and entries of this name scope, without its prefix.
      clear_devices: leave the devices out.

    Raises:
      ValueError: nodes of `export_scope` take inputs from outside.
    """
    if kwargs:
        raise TypeError(f"export_meta_graph got unknown arguments {sorted(kwargs)}")
    graph = graph or get_default_graph()
    wanted = graph_pb2.GraphDef()
    wanted.CopyFrom(graph_def if graph_def is not None else graph.as_graph_def(add_shapes=True))
    if export_scope:
        wanted = _scoped(wanted, export_scope.rstrip("/") + "/")
    if clear_devices:
        for node in wanted.node:
            node.device = ""
    message = create_meta_graph_def(
        meta_info_def=meta_info_def,
        graph_def=wanted,
        saver_def=saver_def,
        collection_list=collection_list,
        graph=graph,
        export_scope=export_scope,
        clear_extraneous_savers=clear_extraneous_savers,
        strip_default_attrs=strip_default_attrs,
    )
    if filename:
        from dtf.train.graph_io import message_bytes

        with file_errors(filename):
            filesystems.makedirs(filesystems.dirname(filename) or ".")
            write_atomically(filename, message_bytes(message, as_text))
    return message


def import_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: str | None = None, **kwargs: Any
) -> Any:
    """Adds a meta graph to the default graph: nodes and collections.

    Args:
      meta_graph_or_file: a MetaGraphDef, or the path of a file of one, in binary or text form.
      clear_devices: leave the devices out.
      import_scope: name scope to put everything in.
      **kwargs: `input_map` for the import; arguments for the Saver.

    Returns:
      The Saver of its SaverDef; without one a new Saver of the variables; None if there are no variables.

    Raises:
      NotFoundError: the file does not exist.
      ValueError: it holds no MetaGraphDef.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/import_meta_graph
    """
    from dtf.train.saver import Saver, all_saveable_objects

    message = meta_graph_or_file
    if not isinstance(message, meta_graph_pb2.MetaGraphDef):
        message = read_meta_graph_file(meta_graph_or_file)
    input_map = kwargs.pop("input_map", None)
    import_scoped_meta_graph(message, clear_devices, import_scope=import_scope, input_map=input_map)
    if message.HasField("saver_def"):
        _check_names(message.saver_def, import_scope)
        return Saver(saver_def=message.saver_def, name=import_scope, **kwargs)
    if all_saveable_objects(import_scope):
        return Saver(var_list=None if not import_scope else all_saveable_objects(import_scope), **kwargs)
    logging.info("Saver not created because there are no variables in the graph to restore")
    return None


def _check_names(saver_def: Any, import_scope: str | None) -> None:
    """Raises ValueError for a SaverDef whose ops are not in the default graph."""
    graph = get_default_graph()
    for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
        name = getattr(saver_def, field)
        try:
            graph.as_graph_element(f"{import_scope}/{name}" if import_scope else name)
        except (KeyError, ValueError) as error:
            raise ValueError(f"The saver of the meta graph is damaged: {field}: {error}") from error


def import_scoped_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    graph: Graph | None = None,
    import_scope: str | None = None,
    input_map: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Adds a meta graph to `graph` (the default one if None), without a Saver.

    Returns:
      The variables that it brought, by their names without `import_scope`.
    """
    from dtf.build.importer import import_graph_def

    message = meta_graph_or_file
    if not isinstance(message, meta_graph_pb2.MetaGraphDef):
        message = read_meta_graph_file(meta_graph_or_file)
    graph_def = message.graph_def
    if clear_devices:
        graph_def = graph_pb2.GraphDef()
        graph_def.CopyFrom(message.graph_def)
        for node in graph_def.node:
            node.device = ""
    graph = graph or get_default_graph()
    with graph.as_default():
        with graph.name_scope(None):
            import_graph_def(
                graph_def,
                input_map=input_map,
                name=import_scope or "",
                producer_op_list=message.meta_info_def.stripped_op_list,
            )
        scope = "/".join(part for part in (graph.get_name_scope(), import_scope) if part) or None
        variables: dict[str, Any] = {}
        for key in sorted(message.collection_def):
            try:
                _restore_collection(graph, key, message.collection_def[key], import_scope or None, variables)
            except (DecodeError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"The collection {key!r} of the meta graph is damaged: {error}") from error
    prefix = f"{scope}/" if scope else ""
    return {name.removeprefix(prefix): variable for name, variable in variables.items()}


def read_meta_graph_file(filename: str) -> Any:
    """The MetaGraphDef of a file, in binary or text form.

    Raises:
      NotFoundError: the file does not exist.
      UnreadableFileError: it holds no MetaGraphDef; a DataLossError, an OSError and a ValueError.
    """
    from google.protobuf import text_format

    path = os.fspath(filename)
    if not filesystems.exists(path):
        raise errors.NotFoundError.of(f"File {path} does not exist.")
    with file_errors(path):
        data = filesystems.read_regular(path)
    message = meta_graph_pb2.MetaGraphDef()
    try:
        message.ParseFromString(data)
        return message
    except DecodeError:
        pass
    try:
        return text_format.Parse(data.decode(), message)
    except (text_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableFileError(path, error) from error


# Collections


def _add_collection(message: Any, key: str, entries: list[Any], export_scope: str | None) -> None:
    if not entries:
        return
    if isinstance(entries[0], SaveableObject):
        logging.info("The collection %s is left out of the meta graph: its values have no protobuf form", key)
        return
    collection = meta_graph_pb2.CollectionDef()
    codec = _codec_of(key)
    try:
        if codec is not None:
            for entry in entries:
                proto = codec.to_proto(entry, export_scope=export_scope)
                if proto is not None:
                    collection.bytes_list.value.append(proto.SerializeToString())
        else:
            _fill(collection, entries, export_scope)
    except (TypeError, ValueError, AttributeError) as error:
        # A collection may hold any object; one without a protobuf form stays in this process.
        logging.vlog(1, "Collection %s is not exported: %s", key, error)
        return
    message.collection_def[key].CopyFrom(collection)


def _fill(collection: Any, entries: list[Any], export_scope: str | None) -> None:
    first = entries[0]
    if isinstance(first, str | bytes):
        collection.bytes_list.value.extend(e.encode() if isinstance(e, str) else e for e in entries)
    elif isinstance(first, bool):
        raise TypeError("a CollectionDef cannot hold booleans")
    elif isinstance(first, int):
        collection.int64_list.value.extend(entries)
    elif isinstance(first, float):
        collection.float_list.value.extend(entries)
    elif isinstance(first, any_pb2.Any):
        collection.any_list.value.extend(entries)
    else:
        prefix = export_scope.rstrip("/") + "/" if export_scope else ""
        names = [entry.name for entry in entries]
        collection.node_list.value.extend(name.removeprefix(prefix) for name in names if name.startswith(prefix))


def _restore_collection(
    graph: Graph, key: str, collection: Any, import_scope: str | None, variables: dict[str, Any]
) -> None:
    kind = collection.WhichOneof("kind")
    if kind is None:
        return
    values = getattr(collection, kind).value
    codec = _codec_of(key)
    if codec is not None and kind == "bytes_list" and codec.message_type is not None:
        try:
            for data in values:
                proto = codec.message_type.FromString(data)
                if codec.message_type is variable_pb2.VariableDef:
                    # One object per variable, even if it is in several collections.
                    name = f"{import_scope}/{proto.variable_name}" if import_scope else proto.variable_name
                    if name not in variables:
                        variables[name] = codec.from_proto(proto, import_scope=import_scope)
                    graph.add_to_collection(key, variables[name])
                else:
                    graph.add_to_collection(key, codec.from_proto(proto, import_scope=import_scope))
        except (DecodeError, KeyError) as error:
            words = error.args[0] if error.args else error
            raise ValueError(f"The collection {key!r} of the meta graph is damaged: {words}") from error
        return
    for value in values:
        if kind == "node_list":
            value = graph.as_graph_element(f"{import_scope}/{value}" if import_scope else value)
        graph.add_to_collection(key, value)


def _codec_of(key: str) -> _Codec | None:
    if key not in _codecs:
        codec = _standard_codec(key)
        if codec is not None:
            _codecs[key] = codec
    return _codecs.get(key)


def _standard_codec(key: str) -> _Codec | None:
    """The codecs of the standard collections, each loaded when it is needed."""
    if key in GraphKeys._VARIABLE_COLLECTIONS or key == GraphKeys.GLOBAL_STEP:
        from dtf.build.variables import Variable

        return _Codec(variable_pb2.VariableDef, _variable_to_proto, Variable.from_proto)
    if key == GraphKeys.QUEUE_RUNNERS:
        from dtf.train.queue_runner import QueueRunner

        return _Codec(queue_runner_pb2.QueueRunnerDef, _to_proto, QueueRunner.from_proto)
    if key == GraphKeys.SAVERS:
        from dtf.train.saver import Saver

        return _Codec(saver_pb2.SaverDef, _to_proto, Saver.from_proto)
    if key in (GraphKeys.COND_CONTEXT, GraphKeys.WHILE_CONTEXT):
        from dtf.build.ops import control_flow_protos
        from dtf.wire.pb import control_flow_pb2

        if key == GraphKeys.COND_CONTEXT:
            branch = control_flow_pb2.CondContextDef
            return _Codec(branch, control_flow_protos.cond_to_proto, control_flow_protos.cond_from_proto)
        loop = control_flow_pb2.WhileContextDef
        return _Codec(loop, control_flow_protos.while_to_proto, control_flow_protos.while_from_proto)
    return None


def _to_proto(entry: Any, export_scope: str | None = None) -> Any:
    return entry.to_proto(export_scope=export_scope)


def _variable_to_proto(entry: Any, export_scope: str | None = None) -> Any:
    if not hasattr(entry, "to_proto"):
        raise TypeError(f"{entry!r} is not a Variable")
    return entry.to_proto(export_scope=export_scope)


# Graphs


def _op_types(graph_def: Any) -> set[str]:
    """The types of all ops of a graph and of its library's functions."""
    bodies = [graph_def.node, *(function.node_def for function in graph_def.library.function)]
    return {node.op for nodes in bodies for node in nodes}


def _strip_default_attrs(graph_def: Any) -> None:
    """Removes attributes that have their default value, so that older readers need not know them."""
    for node in graph_def.node:
        if not opdef.exists(node.op):
            continue
        for attr in opdef.get(node.op).attrs:
            if attr.has_default and attr.name in node.attr:
                default = python_to_attr(attr.default, attr.type)
                if node.attr[attr.name] == default:
                    del node.attr[attr.name]


def _scoped(graph_def: Any, prefix: str) -> Any:
    """The nodes of a name scope, without its prefix."""
    scoped = graph_pb2.GraphDef(versions=graph_def.versions)
    for node in graph_def.node:
        if not node.name.startswith(prefix):
            continue
        copied = scoped.node.add()
        copied.CopyFrom(node)
        copied.name = node.name.removeprefix(prefix)
        del copied.input[:]
        for name in node.input:
            mark = "^" if name.startswith("^") else ""
            source = name.removeprefix("^")
            if not source.startswith(prefix):
                raise ValueError(f"Node {node.name} has the input {source}, which is outside of the scope {prefix}")
            copied.input.append(mark + source.removeprefix(prefix))
        if "_class" in copied.attr:
            groups = [group for group in copied.attr["_class"].list.s if group.startswith(b"loc:@" + prefix.encode())]
            del copied.attr["_class"].list.s[:]
            copied.attr["_class"].list.s.extend(group.replace(prefix.encode(), b"", 1) for group in groups)
            if not groups:
                del copied.attr["_class"]
    return scoped
