"""Reads a SavedModel into a session.

Owns finding and reading the file, and the choice of a meta graph by its tags. Makes a loaded model ready: restores
variables, feeds the paths of assets to the main op, and runs it.

    with tf.Session(graph=tf.Graph()) as session:
        meta_graph = tf.saved_model.loader.load(session, ["serve"], "model")
        signature = meta_graph.signature_def["serving_default"]
        session.run(signature.outputs["y"].name, {signature.inputs["x"].name: [[1.0]]})

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/saved_model/loader/load
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from dtf import logging
from dtf.saved_model import constants
from dtf.train.meta_graph_import import import_meta_graph
from dtf.train.saver import Saver
from dtf.wire import filesystems
from dtf.wire.files import UnreadableFileError, file_errors
from dtf.wire.names import shown
from dtf.wire.pb import meta_graph_pb2, saved_model_pb2

_INIT_OP_SIGNATURE = "__saved_model_init_op"


def load(
    sess: Any, tags: Collection[str], export_dir: str, import_scope: str | None = None, **saver_kwargs: Any
) -> Any:
    """Adds the meta graph with exactly these tags to the session's graph, restores its variables, runs its main op.

    Args:
      sess: a session; of a cluster too, where the nodes go by the devices that the model was saved with.
      import_scope: name scope to put the graph in; signatures keep the names without it.
      **saver_kwargs: arguments for the Saver, where the model brings none.

    Returns:
      The MetaGraphDef, with its `signature_def`.

    Raises:
      OSError: there is no SavedModel in the folder, or it cannot be read.
      RuntimeError: it has no graph with these tags; says which there are.
      ValueError: the files of the variables are missing.
      DataLossError: they are damaged.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/saved_model/loader/load
    """
    folder = os.fsdecode(export_dir)
    meta_graph = find_meta_graph(read_saved_model(folder), tags)
    with sess.graph.as_default():
        saver = import_meta_graph(meta_graph, import_scope=import_scope, **saver_kwargs)
        _restore(sess, saver, folder)
        main_op = _main_op_name(meta_graph)
        if main_op is not None:
            scope, graph = f"{import_scope}/" if import_scope else "", sess.graph
            try:
                main = graph.as_graph_element(scope + main_op)
                paths = _asset_paths(meta_graph, folder).items()
                assets = {graph.as_graph_element(scope + name, allow_operation=False): path for name, path in paths}
            except (DecodeError, KeyError) as error:
                raise ValueError(f"{folder}: the main op or the assets of the SavedModel: {error}") from error
            sess.run(main, feed_dict=assets)
    return meta_graph


def contains_saved_model(export_dir: Any) -> bool:
    """Whether there is a SavedModel in the folder."""
    return any(filesystems.isfile(path) for path in _files(os.fsdecode(export_dir)))


maybe_saved_model_directory = contains_saved_model


def read_saved_model(export_dir: str) -> Any:
    """The SavedModel message of a folder; the binary file goes before the text.

    Raises:
      OSError: the file is missing, or damaged (UnreadableFileError, also a DataLossError and a ValueError).
    """
    binary, text = _files(os.fsdecode(export_dir))
    message = saved_model_pb2.SavedModel()
    for path in (binary, text):
        if not filesystems.isfile(path):
            continue
        with file_errors(path):
            data = filesystems.read_regular(path)
        try:
            if path == binary:
                message.ParseFromString(data)
            else:
                text_format.Parse(data.decode(), message, allow_unknown_field=True)
        except (DecodeError, text_format.ParseError, UnicodeDecodeError, RecursionError) as error:
            raise UnreadableFileError(path, error) from error
        return message
    names = f"{constants.SAVED_MODEL_FILENAME_PBTXT}|{constants.SAVED_MODEL_FILENAME_PB}"
    raise OSError(f"SavedModel file does not exist at: {export_dir}/{{{names}}}")


def find_meta_graph(saved_model: Any, tags: Collection[str]) -> Any:
    """The MetaGraphDef with exactly these tags.

    Raises:
      RuntimeError: no meta graph has these tags; the message lists the existing ones.
    """
    wanted = {tags} if isinstance(tags, str) else set(tags)
    for meta_graph in saved_model.meta_graphs:
        if set(meta_graph.meta_info_def.tags) == wanted:
            return meta_graph
    available = "; ".join(", ".join(meta_graph.meta_info_def.tags) for meta_graph in saved_model.meta_graphs)
    raise RuntimeError(
        f"MetaGraphDef associated with tags {', '.join(map(repr, sorted(wanted))) or '(none)'} could not be found in "
        f"SavedModel, with available tags: {available or 'none'}"
    )


def _files(export_dir: str) -> tuple[str, str]:
    names = constants.SAVED_MODEL_FILENAME_PB, constants.SAVED_MODEL_FILENAME_PBTXT
    binary, text = (os.path.join(export_dir, name) for name in names)
    return binary, text


def _restore(sess: Any, saver: Saver | None, folder: str) -> None:
    if saver is None:
        logging.info("The specified SavedModel has no variables; no checkpoints were restored.")
        return
    saver.restore(sess, os.path.join(folder, constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME))


def _main_op_name(meta_graph: Any) -> str | None:
    """The op or tensor to run last: by its signature, as TensorFlow 2 says it, or by a collection.

    Raises:
      RuntimeError: a collection has several.
    """
    if _INIT_OP_SIGNATURE in meta_graph.signature_def:
        return meta_graph.signature_def[_INIT_OP_SIGNATURE].outputs[_INIT_OP_SIGNATURE].name
    for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
        if key in meta_graph.collection_def:
            names = meta_graph.collection_def[key].node_list.value
            if len(names) != 1:
                raise RuntimeError(f"Expected exactly one main op in the collection {key}, found {list(names)}")
            return names[0]
    return None


def _asset_paths(meta_graph: Any, folder: str) -> dict[str, str]:
    """Where the assets are now, by the tensors that hold their paths.

    Raises:
      ValueError: the name of an asset leads out of the model's folder.
    """
    assets = list(meta_graph.asset_file_def)
    if not assets and constants.ASSETS_KEY in meta_graph.collection_def:
        packed = meta_graph.collection_def[constants.ASSETS_KEY].any_list.value
        assets = [meta_graph_pb2.AssetFileDef.FromString(each.value) for each in packed]
    place = os.path.join(folder, constants.ASSETS_DIRECTORY)
    for name in (asset.filename for asset in assets):
        if not name or "\0" in name or os.path.isabs(name) or ".." in name.split("/"):
            raise ValueError(f"{folder}: the asset {shown(name)} of the SavedModel is not a file of its assets folder")
    return {asset.tensor_info.name: os.path.join(place, asset.filename) for asset in assets}
