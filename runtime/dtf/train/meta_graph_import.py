"""Meta graphs read back: nodes, collections and a Saver in the default graph.

    saver = tf.train.import_meta_graph("model.meta")

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/import_meta_graph
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from google.protobuf.message import DecodeError

from dtf import logging
from dtf.build.default_graph import get_default_graph
from dtf.build.graph import Graph
from dtf.build.importer import import_graph_def
from dtf.train.meta_graph import UNBOUND_COLLECTION, codec_of
from dtf.train.saveable import all_saveable_objects
from dtf.train.saver import Saver
from dtf.wire import filesystems
from dtf.wire.files import MissingFileError, UnreadableFileError, file_errors
from dtf.wire.pb import graph_pb2, meta_graph_pb2, variable_pb2


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
    message = meta_graph_or_file
    if not isinstance(message, meta_graph_pb2.MetaGraphDef):
        message = read_meta_graph_file(meta_graph_or_file)
    saver, _ = import_meta_graph_with_return_elements(message, clear_devices, import_scope, **kwargs)
    return saver


def import_meta_graph_with_return_elements(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    return_elements: Sequence[str] | None = None,
    **kwargs: Any,
) -> tuple[Any, list[Any] | None]:
    """As `import_meta_graph`; returns its Saver, and the operations and tensors of `return_elements`."""
    message = meta_graph_or_file
    if not isinstance(message, meta_graph_pb2.MetaGraphDef):
        message = read_meta_graph_file(meta_graph_or_file)
    graph = kwargs.pop("graph", None) or get_default_graph()
    input_map = kwargs.pop("input_map", None)
    with graph.as_default():
        scope = scope_of_import(graph, import_scope)
        import_scoped_meta_graph(message, clear_devices, import_scope=import_scope, input_map=input_map)
        elements = None
        if return_elements is not None:
            elements = [graph.as_graph_element(f"{scope}/{name}" if scope else name) for name in return_elements]
        if message.HasField("saver_def"):
            _check_names(message.saver_def, scope)
            return Saver(saver_def=message.saver_def, name=scope, **kwargs), elements
        if all_saveable_objects(scope):
            return Saver(var_list=None if not scope else all_saveable_objects(scope), **kwargs), elements
    logging.info("Saver not created because there are no variables in the graph to restore")
    return None, elements


def scope_of_import(graph: Graph, import_scope: str | None) -> str | None:
    """The name scope in which an import puts everything: `import_scope` inside the current one, made unique."""
    name = graph.unique_name(import_scope or "", mark_as_used=False) if import_scope else graph.get_name_scope()
    return name.rstrip("/") or None


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
    message = meta_graph_or_file
    if not isinstance(message, meta_graph_pb2.MetaGraphDef):
        message = read_meta_graph_file(meta_graph_or_file)
    _check_bound(message, input_map)
    graph_def = message.graph_def
    if clear_devices:
        graph_def = graph_pb2.GraphDef()
        graph_def.CopyFrom(message.graph_def)
        for node in graph_def.node:
            node.device = ""
    graph = graph or get_default_graph()
    with graph.as_default():
        scope = scope_of_import(graph, import_scope)
        with graph.name_scope(None):
            import_graph_def(
                graph_def,
                input_map=input_map,
                name=scope or "",
                producer_op_list=message.meta_info_def.stripped_op_list,
            )
        variables: dict[str, Any] = {}
        for key in sorted(set(message.collection_def) - {UNBOUND_COLLECTION}):
            try:
                _restore_collection(graph, key, message.collection_def[key], scope, variables)
            except (DecodeError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"The collection {key!r} of the meta graph is damaged: {error}") from error
    prefix = f"{scope}/" if scope else ""
    return {name.removeprefix(prefix): variable for name, variable in variables.items()}


def _check_bound(message: Any, input_map: dict[str, Any] | None) -> None:
    """Raises ValueError for inputs from outside of the exported scope that `input_map` lacks."""
    names = message.collection_def[UNBOUND_COLLECTION].bytes_list.value if _has_unbound(message) else ()
    mapped = {name.encode() if isinstance(name, str) else name for name in input_map or {}}
    missing = [name.decode() for name in names if name not in mapped]
    if missing:
        raise ValueError(
            f"Graph contains unbound inputs: {', '.join(missing)}. Must provide these inputs through input_map."
        )


def _has_unbound(message: Any) -> bool:
    return UNBOUND_COLLECTION in message.collection_def


def read_meta_graph_file(filename: str) -> Any:
    """The MetaGraphDef of a file, in binary or text form.

    Raises:
      NotFoundError: the file does not exist.
      UnreadableFileError: it holds no MetaGraphDef; a DataLossError, an OSError and a ValueError.
    """
    from google.protobuf import text_format

    path = os.fsdecode(filename)
    if not filesystems.exists(path):
        raise MissingFileError(path)
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


def _restore_collection(
    graph: Graph, key: str, collection: Any, import_scope: str | None, variables: dict[str, Any]
) -> None:
    kind = collection.WhichOneof("kind")
    if kind is None:
        return
    values = getattr(collection, kind).value
    codec = codec_of(key)
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
