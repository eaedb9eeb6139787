"""tensorflow.python.framework.error_interpolation: texts of errors with the places where nodes were made.

A message has tags such as `{{node NAME}}`; `interpolate` replaces those of nodes that the graph has. An operation's
traceback has frames of the user's program only, so its last frame is the place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import dtf

__all__ = [
    "compute_colocation_summary_from_op", "compute_device_summary_from_op", "compute_field_dict", "interpolate",
    "parse_message", "traceback_files_common_prefix",
]  # fmt: skip

_TAG = re.compile(r"\{\{(?P<type>[A-Za-z0-9.][A-Za-z0-9_.\-/]*) (?P<name>[A-Za-z0-9.][A-Za-z0-9_.\-/]*)\}\}")
_FRAMEWORK_PATH_PREFIXES = [os.path.dirname(dtf.__file__) + os.sep]
_EXTERNAL_FILENAME_PATTERNS = [re.compile(r"_test\.py$")]
_FRAMEWORK_FILENAME_PATTERNS = [re.compile(r"<embedded")]


class _ParseTag(NamedTuple):
    type: str
    name: str


def parse_message(message: str) -> tuple[list[str], list[_ParseTag]]:
    """The texts between the tags of a message, one more than tags, and the tags."""
    separators, tags, position = [], [], 0
    for match in _TAG.finditer(message):
        separators.append(message[position : match.start()])
        tags.append(_ParseTag(match["type"], match["name"]))
        position = match.end()
    return [*separators, message[position:]], tags


def interpolate(error_message: str, graph: Any) -> str:
    """A message whose tags of nodes say where these were made.

    Args:
      error_message: text with tags.
      graph: the graph of the nodes; tags of other nodes stay as they are, those of functions are left out.
    """
    separators, tags = parse_message(error_message)
    texts, placements, sources = [], [], []
    for tag in tags:
        text = f"{{{{{tag.type} {tag.name}}}}}"
        try:
            op = graph.get_operation_by_name(tag.name)
        except (KeyError, ValueError):
            op = None
        if tag.type == "function_node":
            text = ""
        elif op is not None and tag.type == "node":
            fields = compute_field_dict(op)
            text = f"node {op.name}{fields['defined_at']} "
            inputs = [f" {each.op.name}{compute_field_dict(each.op)['defined_at']}" for each in op.inputs]
            if inputs:
                sources.append("\n".join([f"Input Source operations connected to node {op.name}:", *inputs]))
        elif op is not None and tag.type == "colocation_node":
            fields = compute_field_dict(op)
            text = f"node {op.name}{fields['defined_at']} placed on device {op.device or 'no device'} "
            placements.append(fields["devs_and_colocs"])
        texts.append(text)
    message = "".join(piece for pair in zip(separators, [*texts, ""], strict=True) for piece in pair)
    if sources:
        message += "\n\nErrors may have originated from an input operation.\n" + "\n\n".join(sources)
    return "\n\n".join([message, *placements])


def compute_field_dict(op: Any, strip_file_prefix: str = "") -> dict[str, Any]:
    """The words about an operation's place: file, line, defined_at, devices, colocations, devs_and_colocs."""
    devices, colocations = compute_device_summary_from_op(op), compute_colocation_summary_from_op(op)
    frames = list(op.traceback or ())
    fields = {"devices": devices, "colocations": colocations, "devs_and_colocs": f"{colocations}\n{devices}"}
    if not frames:
        return {**fields, "file": "<unknown>", "line": 0, "defined_at": ""}
    frame = frames[_find_index_of_defining_frame_for_op(op)]
    file = frame.filename.removeprefix(strip_file_prefix)
    return {**fields, "file": file, "line": frame.lineno, "defined_at": f" (defined at {file}:{frame.lineno})"}


def compute_device_summary_from_op(op: Any, prefix: str = "") -> str:
    """The device blocks that were open when an operation was made; see `_compute_device_summary_from_list`."""
    return _compute_device_summary_from_list(op.name, getattr(op, "_device_assignments", []), prefix)


def compute_colocation_summary_from_op(op: Any, prefix: str = "") -> str:
    """The colocations of an operation; see `_compute_colocation_summary_from_dict`."""
    return _compute_colocation_summary_from_dict(op.name, getattr(op, "_colocation_dict", {}), prefix)


def _compute_device_summary_from_list(name: str, device_assignment_list: Sequence[Any], prefix: str = "") -> str:
    """One line for each device with its file and line, after a line with the operation's name."""
    if not device_assignment_list:
        return f"{prefix}No device assignments were active during op '{name}' creation."
    lines = [f"{prefix}Device assignments active during op '{name}' creation:"]
    lines += [
        f"{prefix}  with tf.device({each.obj}): <{each.filename}:{each.lineno}>" for each in device_assignment_list
    ]
    return "\n".join(lines)


def _compute_colocation_summary_from_dict(name: str, colocation_dict: Mapping[str, Any], prefix: str = "") -> str:
    """One line for each colocation with its file and line, after a line with the operation's name."""
    if not colocation_dict:
        return f"{prefix}No node-device colocations were active during op '{name}' creation."
    lines = [f"{prefix}Node-device colocations active during op '{name}' creation:"]
    lines += [
        f"{prefix}  with tf.colocate_with({other}): <{place.filename}:{place.lineno}>"
        for other, place in colocation_dict.items()
    ]
    return "\n".join(lines)


def _is_framework_filename(filename: str) -> bool:
    """Whether a file is part of dtf; a file of tests is not."""
    if any(pattern.search(filename) for pattern in _EXTERNAL_FILENAME_PATTERNS):
        return False
    if any(pattern.search(filename) for pattern in _FRAMEWORK_FILENAME_PATTERNS):
        return True
    return filename.startswith(tuple(_FRAMEWORK_PATH_PREFIXES))


def _find_index_of_defining_frame(frames: Sequence[Any]) -> int:
    """The index of the innermost frame outside of dtf; 0 if all are inside."""
    outside = [index for index, frame in enumerate(frames) if not _is_framework_filename(frame.filename)]
    return outside[-1] if outside else 0


def _find_index_of_defining_frame_for_op(op: Any) -> int:
    return _find_index_of_defining_frame(list(op.traceback or ()))


def traceback_files_common_prefix(all_ops: Sequence[Any]) -> str:
    """The folder, with a separator at its end, that the files of all tracebacks share; "" if they share no folder.

    Args:
      all_ops: None, operations, or lists of them.
    """
    files: set[str] = set()
    for each in all_ops:
        for op in () if each is None else each if isinstance(each, list | tuple) else (each,):
            files.update(frame.filename for frame in op.traceback or () if "<embedded" not in frame.filename)
    if not files:
        return ""
    folder = os.path.split(os.path.commonprefix(sorted(files)))[0]
    return folder + os.sep if folder and folder != os.sep else folder


_parse_message = parse_message
