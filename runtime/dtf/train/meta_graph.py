"""MetaGraphDef: a graph with its collections and its Saver, as one message and file.

Owns the messages of collections' entries, and the export; `meta_graph_import` reads them back. Variables, queue runners
and similar objects have their own messages, plain values use lists, all other objects their names in the graph.
GraphDef itself is `graph`'s and `importer`'s.

    tf.train.export_meta_graph("model.meta")

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/export_meta_graph
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import any_pb2

from dtf import logging
from dtf.build.default_graph import get_default_graph
from dtf.build.graph import Graph, GraphKeys
from dtf.build.saveable_object import SaveableObject
from dtf.version import GIT_VERSION, VERSION
from dtf.wire import filesystems, opdef
from dtf.wire.codec import python_to_attr
from dtf.wire.files import file_errors, write_atomically
from dtf.wire.opdef_proto import op_list
from dtf.wire.pb import graph_pb2, meta_graph_pb2, queue_runner_pb2, saver_pb2, variable_pb2

UNBOUND_PREFIX = "$unbound_inputs_"
"""Begins the inputs of an exported scope that are outside of it, as TensorFlow writes them."""

UNBOUND_COLLECTION = "unbound_inputs"
"""The collection with the names of such inputs."""


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
    for name, value, kind in (
        ("meta_info_def", meta_info_def, meta_graph_pb2.MetaGraphDef.MetaInfoDef),
        ("graph_def", graph_def, graph_pb2.GraphDef),
        ("saver_def", saver_def, saver_pb2.SaverDef),
    ):
        if value is not None and value and not _is_message(value, kind):
            raise TypeError(f"{name} must be of type {kind.__name__}. Received type: {type(value)}")
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f"graph must be of type Graph. Received type: {type(graph)}")
    graph = graph or get_default_graph()
    message = meta_graph_pb2.MetaGraphDef()
    if meta_info_def is not None:
        message.meta_info_def.CopyFrom(meta_info_def)
    message.meta_info_def.tensorflow_version = VERSION  # the release whose ops and format it has
    message.meta_info_def.tensorflow_git_version = GIT_VERSION
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
    unbound_inputs_col_name: str | None = UNBOUND_COLLECTION,
    **kwargs: Any,
) -> Any:
    """Makes a MetaGraphDef as `create_meta_graph_def` does, and writes it to `filename` if one is given.

    Args:
      as_text: write the text form.
      export_scope: only the nodes and entries of this name scope, without its prefix.
      clear_devices: leave the devices out.
      unbound_inputs_col_name: the collection for the names of the scope's inputs from outside; None: no collection.
    """
    if kwargs:
        raise TypeError(f"export_meta_graph got unknown arguments {sorted(kwargs)}")
    graph = graph or get_default_graph()
    wanted = graph_pb2.GraphDef()
    wanted.CopyFrom(graph_def if graph_def is not None else graph.as_graph_def(add_shapes=True))
    if clear_extraneous_savers and saver_def is not None:
        _remove_other_savers(wanted, saver_def, graph.get_collection(GraphKeys.SAVERS))
    unbound: list[str] = []
    if export_scope:
        wanted = _scoped(wanted, export_scope.rstrip("/") + "/", unbound)
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
    if unbound and unbound_inputs_col_name:
        names = message.collection_def[unbound_inputs_col_name].bytes_list.value
        names.extend(name.encode() for name in sorted(set(unbound)))
    if filename:
        from dtf.train.graph_io import message_bytes

        with file_errors(filename):
            filesystems.makedirs(filesystems.dirname(filename) or ".")
            write_atomically(filename, message_bytes(message, as_text))
    return message


# Collections


def _add_collection(message: Any, key: str, entries: list[Any], export_scope: str | None) -> None:
    if not entries:
        return
    if isinstance(entries[0], SaveableObject):
        logging.info("The collection %s is left out of the meta graph: its values have no protobuf form", key)
        return
    collection = meta_graph_pb2.CollectionDef()
    codec = codec_of(key)
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


def codec_of(key: str) -> _Codec | None:
    """How a collection is exported; None where its entries have no messages."""
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

        return _Codec(queue_runner_pb2.QueueRunnerDef, entry_to_proto, QueueRunner.from_proto)
    if key in (GraphKeys.COND_CONTEXT, GraphKeys.WHILE_CONTEXT):
        from dtf.build.ops import control_flow_protos
        from dtf.wire.pb import control_flow_pb2

        if key == GraphKeys.COND_CONTEXT:
            branch = control_flow_pb2.CondContextDef
            return _Codec(branch, control_flow_protos.cond_to_proto, control_flow_protos.cond_from_proto)
        loop = control_flow_pb2.WhileContextDef
        return _Codec(loop, control_flow_protos.while_to_proto, control_flow_protos.while_from_proto)
    return None


def entry_to_proto(entry: Any, export_scope: str | None = None) -> Any:
    """The message of an entry that makes it itself."""
    return entry.to_proto(export_scope=export_scope)


def _variable_to_proto(entry: Any, export_scope: str | None = None) -> Any:
    if not hasattr(entry, "to_proto"):
        raise TypeError(f"{entry!r} is not a Variable")
    return entry.to_proto(export_scope=export_scope)


# Graphs


def _op_types(graph_def: Any) -> set[str]:
    """The types of all ops of a graph and of its library's functions, without the functions' own names."""
    functions = graph_def.library.function
    bodies = [graph_def.node, *(function.node_def for function in functions)]
    return {node.op for nodes in bodies for node in nodes} - {each.signature.name for each in functions}


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


def _is_message(value: Any, kind: Any) -> bool:
    """Whether it is a message of this kind, dtf's or TensorFlow's."""
    return getattr(type(value), "__name__", "") == kind.__name__ and hasattr(value, "SerializeToString")


def _remove_other_savers(graph_def: Any, saver_def: Any, savers: Sequence[Any]) -> None:
    """Removes the ops of the Savers of a collection, but those of `saver_def`."""
    own = saver_def.filename_tensor_name.rpartition("/")[0]
    defs = [each if isinstance(each, saver_pb2.SaverDef) else each.saver_def for each in savers]
    scopes = {each.filename_tensor_name.rpartition("/")[0] for each in defs if each is not None} - {own, ""}
    kept = [node for node in graph_def.node if not any(node.name.startswith(f"{scope}/") for scope in scopes)]
    if len(kept) < len(graph_def.node):
        copies = graph_pb2.GraphDef(node=kept)
        del graph_def.node[:]
        graph_def.node.extend(copies.node)


def _scoped(graph_def: Any, prefix: str, unbound: list[str]) -> Any:
    """The nodes of a name scope, without its prefix; names of inputs from outside are added to `unbound`."""
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
                if not mark:  # an order after what is outside is dropped
                    copied.input.append(UNBOUND_PREFIX + source)
                    unbound.append(UNBOUND_PREFIX + source)
                continue
            copied.input.append(mark + source.removeprefix(prefix))
        if "_class" in copied.attr:
            groups = [group for group in copied.attr["_class"].list.s if group.startswith(b"loc:@" + prefix.encode())]
            del copied.attr["_class"].list.s[:]
            copied.attr["_class"].list.s.extend(group.replace(prefix.encode(), b"", 1) for group in groups)
            if not groups:
                del copied.attr["_class"]
    return scoped
