"""Which checkpoints a folder holds: the `checkpoint` state file, the latest one, and their removal.

Owns the state file (text-format CheckpointState, replaced atomically); the bundles themselves are wire.checkpoint's.

Source: https://www.tensorflow.org/api_docs/python/tf/train/latest_checkpoint
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dtf import logging
from dtf.wire import checkpoint, errors, filesystems, unfinished
from dtf.wire.checkpoint_v1 import open_checkpoint, v1_files
from dtf.wire.files import file_errors, write_atomically
from dtf.wire.pb.saver_pb2 import SaverDef

_SHARDS = re.compile(r"-[\d?]+-of-\d+$")


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The prefix of the newest complete checkpoint that the state file of `checkpoint_dir` names, or None.

    A checkpoint whose files are missing or incomplete is skipped, with a warning, for the one before it.

    Args:
      checkpoint_dir: the folder of the checkpoints.
      latest_filename: the name of the state file; "checkpoint" by default.

    Returns:
      The prefix as a str; None if no checkpoint exists.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/latest_checkpoint
    """
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None or not state.model_checkpoint_path:
        return None
    candidates = [state.model_checkpoint_path, *reversed(state.all_model_checkpoint_paths)]
    for prefix in dict.fromkeys(candidates):
        if _is_whole(prefix):
            return prefix
        logging.warning("Checkpoint %s is incomplete: files are missing or truncated. Trying the one before.", prefix)
    return None


def get_checkpoint_state(checkpoint_dir: str, latest_filename: str | None = None) -> Any:
    """The CheckpointState of a folder with absolute paths, or None if the file is missing or unreadable.

    Args:
      checkpoint_dir: the folder of the checkpoints.
      latest_filename: the name of the state file; "checkpoint" by default.

    Returns:
      A CheckpointState message, or None.

    Raises:
      ValueError: the file names no checkpoint.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/get_checkpoint_state
    """
    from google.protobuf import text_format

    from dtf.wire.pb import checkpoint_state_pb2

    checkpoint_dir = os.fsdecode(checkpoint_dir)
    path = _state_file(checkpoint_dir, latest_filename)
    try:
        text = filesystems.read_regular(path).decode()
        state = text_format.Parse(text, checkpoint_state_pb2.CheckpointState())
    except FileNotFoundError:
        return None
    except errors.UnavailableError:
        raise
    except (OSError, UnicodeDecodeError, text_format.ParseError, errors.OpError) as error:
        if isinstance(error, OSError):
            filesystems.check_answered(path, error)
        logging.warning("%s: %s; checkpoint ignored", path, error)
        return None
    if not state.model_checkpoint_path:
        raise ValueError(f"Invalid checkpoint state loaded from {checkpoint_dir}: {path} names no checkpoint")
    state.model_checkpoint_path = _absolute(checkpoint_dir, state.model_checkpoint_path)
    paths = [_absolute(checkpoint_dir, path) for path in state.all_model_checkpoint_paths]
    del state.all_model_checkpoint_paths[:]
    state.all_model_checkpoint_paths.extend(paths)
    return state


def generate_checkpoint_state_proto(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> Any:
    """Makes a CheckpointState whose last path is `model_checkpoint_path`; paths become relative to a relative folder.

    Raises:
      ValueError: the timestamps are not as many as the paths.
    """
    from dtf.wire.pb import checkpoint_state_pb2

    paths = list(all_model_checkpoint_paths or [])
    if all_model_checkpoint_timestamps is not None and len(all_model_checkpoint_timestamps) != len(paths):
        raise ValueError("Checkpoint timestamps, if provided, must match checkpoint paths (one per path)")
    if not paths or paths[-1] != model_checkpoint_path:
        paths.append(model_checkpoint_path)
    if not os.path.isabs(save_dir):
        paths = [path if os.path.isabs(path) else os.path.relpath(path, save_dir) for path in paths]
    return checkpoint_state_pb2.CheckpointState(
        model_checkpoint_path=paths[-1],
        all_model_checkpoint_paths=paths,
        all_model_checkpoint_timestamps=list(all_model_checkpoint_timestamps or []),
        last_preserved_timestamp=last_preserved_timestamp or 0.0,
    )


def update_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
    save_relative_paths: bool = False,
) -> None:
    """Replaces the state file of `save_dir`, atomically.

    Args:
      save_dir: folder of the state file.
      model_checkpoint_path: the newest checkpoint.
      all_model_checkpoint_paths: all that are kept, oldest first.
      save_relative_paths: store paths relative to `save_dir`.

    Raises:
      RuntimeError: the checkpoint has the name of the state file.
    """
    from google.protobuf import text_format

    paths = list(all_model_checkpoint_paths or [])
    if save_relative_paths:
        model_checkpoint_path = _relative(save_dir, model_checkpoint_path)
        paths = [_relative(save_dir, path) for path in paths]
    state = generate_checkpoint_state_proto(
        save_dir, model_checkpoint_path, paths, all_model_checkpoint_timestamps, last_preserved_timestamp
    )
    text = text_format.MessageToString(state)
    path = _state_file(save_dir, latest_filename)
    if path == model_checkpoint_path:
        raise RuntimeError(
            f"Save path '{model_checkpoint_path}' conflicts with path used for checkpoint state. Please use a "
            "different save path."
        )
    with file_errors(path):
        write_atomically(path, text.encode())


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Whether there is a checkpoint under the prefix: the index of one, or a file of the old format V1.

    Nothing is read: whether it is whole shows when it is restored; `latest_checkpoint` looks closer.
    """
    prefix = os.fsdecode(checkpoint_prefix)
    return filesystems.exists(checkpoint.index_file(prefix)) or bool(v1_files(prefix))


def get_checkpoint_mtimes(checkpoint_prefixes: Iterable[str]) -> list[float]:
    """When each checkpoint was written, in seconds since the epoch; missing checkpoints are left out."""
    times = []
    for prefix in checkpoint_prefixes:
        for path in [checkpoint.index_file(prefix), *v1_files(prefix)]:
            with contextlib.suppress(OSError):
                times.append(filesystems.getmtime(path))
                break
    return times


def remove_checkpoint(
    checkpoint_prefix: str, checkpoint_format_version: int = SaverDef.V2, meta_graph_suffix: str = "meta"
) -> None:
    """Removes a checkpoint's files and its MetaGraphDef; the index first, so that no half is ever taken for a whole."""
    if checkpoint_format_version == SaverDef.V2:
        files = sorted(checkpoint.bundle_files(checkpoint_prefix), key=lambda path: not path.endswith(".index"))
    else:
        files = v1_files(checkpoint_prefix)
    for path in [*files, meta_graph_file(checkpoint_prefix, meta_graph_suffix)]:
        with contextlib.suppress(FileNotFoundError):
            filesystems.remove(path)


def meta_graph_file(checkpoint_prefix: str, meta_graph_suffix: str = "meta") -> str:
    """The path of the MetaGraphDef of a checkpoint; the shards of one of format V1 share one."""
    return f"{_SHARDS.sub('', checkpoint_prefix)}.{meta_graph_suffix}"


def remove_unfinished(checkpoint_dir: str) -> None:
    """Removes what saves that were killed have left in a folder: parts that were written aside and never published.

    Must be called by the process that saves in this folder, before it begins. Files that another process may
    still be writing are kept (see `wire.unfinished`).
    """
    unfinished.remove_abandoned(checkpoint_dir)


def checkpoints_iterator(
    checkpoint_dir: str, min_interval_secs: float = 0, timeout: float | None = None, timeout_fn: Any = None
) -> Iterator[str]:
    """Yields each new checkpoint as it appears.

    Args:
      min_interval_secs: seconds between two yields, at least.
      timeout: seconds to wait for a new one; None waits without a limit.
      timeout_fn: called at a timeout; iteration continues until it returns True. Without it a timeout ends.
    """
    last: str | None = None
    while True:
        found = wait_for_new_checkpoint(checkpoint_dir, last, timeout=timeout)
        if found is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        began, last = time.monotonic(), found
        yield found
        time.sleep(max(0.0, began + min_interval_secs - time.monotonic()))


def wait_for_new_checkpoint(
    checkpoint_dir: str, last_checkpoint: str | None = None, seconds_to_sleep: float = 0.2, timeout: float | None = None
) -> str | None:
    """The latest checkpoint once it is another than `last_checkpoint`; None after `timeout` seconds."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        found = latest_checkpoint(checkpoint_dir)
        if found is not None and found != last_checkpoint:
            return found
        if deadline is not None and time.monotonic() + seconds_to_sleep > deadline:
            return None
        time.sleep(seconds_to_sleep)


def _is_whole(prefix: str) -> bool:
    try:
        return open_checkpoint(prefix).is_whole()
    except errors.OpError:
        return False


def _state_file(folder: str, name: str | None) -> str:
    return os.path.join(folder, name or "checkpoint")


def _absolute(folder: str, path: str) -> str:
    return path if os.path.isabs(path) else os.path.join(folder, path)


def _relative(folder: str, path: str) -> str:
    # Paths relative to here become relative to a relative folder when the message is made.
    return os.path.relpath(path, folder) if os.path.isabs(path) and os.path.isabs(folder) else path
