"""tensorflow.python.tools.saved_model_utils: SavedModels as messages, and the meta graphs in them by tags."""

from __future__ import annotations

import os
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from dtf.wire import filesystems
from dtf.wire.files import file_errors, read_within_memory
from dtf.wire.pb import saved_model_pb2

__all__ = ["get_meta_graph_def", "get_saved_model_tag_sets", "read_saved_model"]


def read_saved_model(saved_model_dir: str) -> Any:
    """The SavedModel message of a folder.

    Raises:
      IOError: the folder has no SavedModel, or its file is damaged.
    """
    folder = os.fsdecode(saved_model_dir)
    binary, text = os.path.join(folder, "saved_model.pb"), os.path.join(folder, "saved_model.pbtxt")
    message = saved_model_pb2.SavedModel()
    for path in (binary, text):
        if not filesystems.exists(path):
            continue
        with file_errors(path), filesystems.open(path, "rb") as file:
            content = read_within_memory(file, path)
        try:
            if path == binary:
                message.ParseFromString(content)
            else:
                text_format.Parse(content.decode(), message)
        except (DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
            raise OSError(f"Cannot parse file {path}: {error}.") from error
        return message
    raise OSError(f"SavedModel file does not exist at: {saved_model_dir}/{{saved_model.pbtxt|saved_model.pb}}")


def get_saved_model_tag_sets(saved_model_dir: str) -> list[list[str]]:
    """The tags of each meta graph, sorted. Raises as `read_saved_model`."""
    found = read_saved_model(saved_model_dir)
    return sorted(list(graph.meta_info_def.tags) for graph in found.meta_graphs)


def get_meta_graph_def(saved_model_dir: str, tag_set: str) -> Any:
    """The MetaGraphDef with exactly these tags.

    Args:
      tag_set: the tags, separated by commas.

    Raises:
      RuntimeError: no meta graph has exactly these tags.
      IOError: as `read_saved_model`.
    """
    wanted = set(tag_set.split(","))
    for graph in read_saved_model(saved_model_dir).meta_graphs:
        if set(graph.meta_info_def.tags) == wanted:
            return graph
    raise RuntimeError(f"MetaGraphDef associated with tag-set {tag_set} could not be found in SavedModel")
