"""Graphs as files.

Source: https://www.tensorflow.org/api_docs/python/tf/io/write_graph
"""

from __future__ import annotations

import os
from typing import Any

from dtf.build.graph import Graph
from dtf.wire import filesystems
from dtf.wire.files import file_errors, write_atomically


def write_graph(graph_or_graph_def: Any, logdir: str, name: str, as_text: bool = True) -> str:
    """Writes a Graph or GraphDef to `<logdir>/<name>`, in text or binary form, and returns that path.

    The folder is made if need be. Raises OpError if the file cannot be written.
    """
    graph_def = graph_or_graph_def.as_graph_def() if isinstance(graph_or_graph_def, Graph) else graph_or_graph_def
    path = os.path.join(logdir, name)
    with file_errors(path):
        filesystems.makedirs(logdir)
        write_atomically(path, message_bytes(graph_def, as_text))
    return path


def message_bytes(message: Any, as_text: bool) -> bytes:
    """A message as it stands in a file."""
    if not as_text:
        return message.SerializeToString()
    from google.protobuf import text_format

    return text_format.MessageToString(message).encode()
