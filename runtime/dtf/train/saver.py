"""Saver: saves and restores variables, and keeps the last few checkpoints.

Owns which checkpoints of a folder are kept, and their meta graphs. `saver_ops` has the save and restore ops. The files
are written by the runtime's kernels; which one is the latest is `checkpoint_management`'s.

    saver = tf.train.Saver(max_to_keep=3)
    path = saver.save(session, "logs/model.ckpt", global_step=1000)
    saver.restore(session, path)

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/Saver
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any

from dtf import logging
from dtf.build.default_graph import get_default_graph
from dtf.build.graph import GraphKeys
from dtf.train.checkpoint_management import (
    checkpoint_exists,
    get_checkpoint_mtimes,
    meta_graph_file,
    remove_checkpoint,
    update_checkpoint_state,
)
from dtf.train.meta_graph import (
    create_meta_graph_def,
    entry_to_proto,
    export_meta_graph,
    register_proto_function,
)
from dtf.train.saveable import all_saveable_objects, saveables_of
from dtf.train.saver_builder import BaseSaverBuilder
from dtf.train.saver_ops import SaverOps
from dtf.wire import errors, filesystems, forks
from dtf.wire.files import file_errors, write_atomically
from dtf.wire.increments import INCREMENTS_MAX
from dtf.wire.measures import measures
from dtf.wire.pb import saver_pb2
from dtf.wire.unfinished import remove_abandoned


class Saver:
    """Saves and restores variables.

    Args:
      var_list: the variables to save: a list of variables and SaveableObjects, or a dict keyed by their names in
        the checkpoint; by default all of the graph.
      reshape: restore into variables of other shapes with as many elements.
      sharded: let each device write a file of its own, without the values passing through one place.
      max_to_keep: how many checkpoints are kept; 0 or None keeps all, and the state file names only the last.
      keep_checkpoint_every_n_hours: one of this many hours of training is kept for good.
      name: name scope of the ops; "save" by default.
      restore_sequentially: restore one variable after the other, to need less memory.
      saver_def: a SaverDef of ops that the graph has already, instead of `var_list`.
      builder: a `saver_builder.BaseSaverBuilder` that makes the ops.
      defer_build: make the ops at `build`, not now.
      allow_empty: with nothing to save, do nothing instead of raising.
      write_version: SaverDef.V2, or SaverDef.V1 for readers from before TensorFlow 0.12.
      pad_step_number: pad the step in names to 8 digits, so that they sort.
      save_relative_paths: name checkpoints in the state file relative to its folder.
      filename: the default of the ops' file name, for runs without a Saver.
      clock: seconds since the epoch; passed in for tests.
      increments: how many saves after a whole one are increments, at most 200: of large tables they have only the rows
        that have changed since the save before. A restore joins them; checkpoints that others are based on are kept
        as long. TensorFlow reads an increment after `dtfctl checkpoints compact`. Every ps must be dtf's. An argument
        of dtf's own.

    Raises:
      ValueError: nothing to save, names are not unique, or arguments exclude each other.
      TypeError: an entry of `var_list` is not a variable.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/Saver
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: BaseSaverBuilder | None = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = saver_pb2.SaverDef.V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
        clock: Callable[[], float] | None = None,
        increments: int = 0,
    ) -> None:
        if defer_build and var_list is not None:
            raise ValueError(
                "If `var_list` is provided then build cannot be deferred. Set defer_build=False or var_list=None."
            )
        if not 0 <= increments <= INCREMENTS_MAX:
            raise ValueError(f"increments must be from 0 to {INCREMENTS_MAX}, not {increments}")
        if increments and (write_version != saver_pb2.SaverDef.V2 or saver_def is not None or builder is not None):
            raise ValueError("increments need ops of their own: they exclude `saver_def`, `builder` and the version V1")
        self._increments = _Increments(increments) if increments else None
        self._builder = builder
        self._var_list = var_list
        self._reshape = reshape
        self._sharded = sharded
        self._max_to_keep = max_to_keep or 0
        self._keep_hours = keep_checkpoint_every_n_hours
        self._name = name
        self._restore_sequentially = restore_sequentially
        self._write_version = write_version
        self._allow_empty = allow_empty
        self._pad_step_number = pad_step_number
        self._save_relative_paths = save_relative_paths
        self._filename = filename
        self._clock = clock or _now
        # The threads of a Supervisor save concurrently with the trainer: the save that began last
        # must be the newest.
        self._turn = threading.Lock()
        forks.renew_in_child(self, "_turn")
        self._is_built = False
        self._is_empty = False
        self._last_checkpoints: list[tuple[str, float]] = []
        self._meta_graph: tuple[Any, bytes] | None = None
        self.saver_def = saver_def
        if saver_def is not None:
            _check_saver_def(saver_def)
            self._sharded = saver_def.sharded
            self._max_to_keep = saver_def.max_to_keep
            self._keep_hours = saver_def.keep_checkpoint_every_n_hours or self._keep_hours
        self._next_checkpoint_time = self._clock() + self._keep_hours * 3600
        if not defer_build:
            self.build()

    def build(self) -> None:
        """Makes the ops in the default graph, once.

        Raises:
          ValueError: nothing to save.
        """
        if self._is_built:
            return
        self._is_built = True
        if self.saver_def is not None:
            if self._name:
                saver_def = saver_pb2.SaverDef()
                saver_def.CopyFrom(self.saver_def)
                for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
                    setattr(saver_def, field, f"{self._name}/{getattr(saver_def, field)}")
                self.saver_def = saver_def
            return
        var_list = all_saveable_objects() if self._var_list is None else self._var_list
        if not var_list:
            if not self._allow_empty:
                raise ValueError("No variables to save")
            self._is_empty = True
            return
        ops = SaverOps(
            saveables_of(var_list),
            self._reshape,
            self._sharded,
            self._restore_sequentially,
            self._write_version,
            self._builder,
            self._increments is not None,
        )
        self.saver_def = ops.build(self._name, self._filename or "model")
        if self._increments is not None and ops.base is not None and ops.target is not None:
            self._increments.base_name, self._increments.target_name = ops.base.name, ops.target.name
        self.saver_def.max_to_keep = self._max_to_keep
        self.saver_def.keep_checkpoint_every_n_hours = self._keep_hours
        _check_saver_def(self.saver_def)

    def save(
        self,
        sess: Any,
        save_path: str,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Saves the variables of `sess`.

        The meta graph is written before the state file names the checkpoint, and the checkpoint's own files are
        renamed into place when whole. Whenever the process dies, each checkpoint in the state file is complete.

        Args:
          save_path: the checkpoint's prefix.
          global_step: number, or tensor or variable with it, added to the prefix as "-<step>".
          latest_filename: name of the state file; "checkpoint" by default.
          meta_graph_suffix: suffix of the MetaGraphDef file.
          write_meta_graph: whether to write that file.
          write_state: whether to write the state file, and remove old checkpoints.
          strip_default_attrs: leave attributes with default values out of the meta graph.
          save_debug_info: accepted; tracebacks are not recorded.

        Returns:
          The prefix; None if the Saver is empty.

        Raises:
          RuntimeError: the ops have not been made yet.
          ValueError: the folder does not exist, or `latest_filename` contains a folder.
          OpError: writing failed.
        """
        self._require_built()
        if not callable(getattr(sess, "run", None)):
            raise TypeError(f"'sess' must be a Session; {sess}")
        state_name = latest_filename or "checkpoint"
        if os.path.split(state_name)[0]:
            raise ValueError("'latest_filename' must not contain path components")
        started = perf_counter()
        with self._turn:
            prefix = self._prefix(sess, os.fsdecode(save_path), global_step)
            if os.path.basename(prefix) == state_name and not self._sharded:
                raise ValueError(f"'latest_filename' collides with 'save_path': '{state_name}' and '{prefix}'")
            if self._is_empty:
                if write_meta_graph:
                    self._write_meta_graph(sess.graph, prefix, meta_graph_suffix, strip_default_attrs)
                return None
            folder = filesystems.dirname(prefix)
            remove_abandoned(folder, [os.path.basename(os.fsdecode(save_path)), state_name])
            try:
                feeds = {self.saver_def.filename_tensor_name: prefix}
                if self._increments is not None:
                    feeds.update(self._increments.feeds(prefix))
                saved = sess.run(self.saver_def.save_tensor_name, feeds)
            except (errors.AlreadyExistsError, errors.FailedPreconditionError, errors.NotFoundError) as error:
                if not filesystems.isdir(folder or "."):
                    raise ValueError(f"Parent directory of {save_path} doesn't exist, can't save.") from error
                raise
            path = saved.decode() if isinstance(saved, bytes) else str(saved)
            if write_meta_graph:
                self._write_meta_graph(sess.graph, prefix, meta_graph_suffix, strip_default_attrs)
            if self._increments is not None:
                self._increments.saved(path)
            if write_state:
                surplus = self._record(path)
                if self._increments is not None:
                    surplus = self._increments.removable(surplus, self.last_checkpoints)
                update_checkpoint_state(
                    folder, path, self.last_checkpoints, state_name, save_relative_paths=self._save_relative_paths
                )
                for old in surplus:
                    remove_checkpoint(old, self.saver_def.version, meta_graph_suffix)
            measures.saved(perf_counter() - started)
            return path

    def restore(self, sess: Any, save_path: str) -> None:
        """Restores the variables of `sess`; they need not be initialised.

        Raises:
          ValueError: `save_path` is None, or there is no checkpoint of that prefix.
          NotFoundError: the checkpoint lacks a variable of the graph.
          InvalidArgumentError: a variable has another shape or dtype in the checkpoint.
          DataLossError: the checkpoint is damaged.
        """
        self._require_built()
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        prefix = os.fsdecode(save_path)
        if not checkpoint_exists(prefix):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {prefix}")
        logging.info("Restoring parameters from %s", prefix)
        try:
            sess.run(self.saver_def.restore_op_name, {self.saver_def.filename_tensor_name: prefix})
        except errors.NotFoundError as error:
            raise _restore_error(error, "a Variable name or other graph key that is missing") from error
        except errors.InvalidArgumentError as error:
            raise _restore_error(error, "a mismatch between the current graph and the graph") from error

    # Which checkpoints are kept

    @property
    def last_checkpoints(self) -> list[str]:
        """Prefixes of the checkpoints not yet removed, oldest first."""
        return [path for path, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Replaces that list, with unknown times."""
        assert isinstance(last_checkpoints, list)
        self._last_checkpoints = [(path, float("nan")) for path in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: Sequence[tuple[str, float]]) -> None:
        """Replaces that list by (prefix, seconds since the epoch) pairs."""
        assert isinstance(last_checkpoints_with_time, list)
        self._last_checkpoints = list(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths: Iterable[str]) -> None:
        """Takes over the checkpoints that exist of a previous process, oldest first, to remove them in their turn."""
        self._last_checkpoints = [(path, time) for path in checkpoint_paths for time in get_checkpoint_mtimes([path])]

    def _record(self, path: str) -> list[str]:
        """Notes a new checkpoint. Returns the checkpoints to remove."""
        if self._max_to_keep <= 0:
            return []
        self._last_checkpoints = [entry for entry in self._last_checkpoints if entry[0] != path]
        self._last_checkpoints.append((path, self._clock()))
        surplus = []
        while len(self._last_checkpoints) > self._max_to_keep:
            old, saved_at = self._last_checkpoints.pop(0)
            if saved_at > self._next_checkpoint_time:
                self._next_checkpoint_time += self._keep_hours * 3600
            else:
                surplus.append(old)
        return surplus

    # As messages

    def as_saver_def(self) -> Any:
        """The SaverDef."""
        return self.saver_def

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The SaverDef, or None if its ops are outside `export_scope`."""
        if export_scope is None or self.saver_def is None:
            return self.saver_def
        prefix = export_scope.rstrip("/") + "/"
        if not self.saver_def.filename_tensor_name.startswith(prefix):
            return None
        saver_def = saver_pb2.SaverDef()
        saver_def.CopyFrom(self.saver_def)
        for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
            setattr(saver_def, field, getattr(saver_def, field).removeprefix(prefix))
        return saver_def

    @staticmethod
    def from_proto(saver_def: Any, import_scope: str | None = None) -> Saver:
        """The Saver of ops that the default graph has."""
        return Saver(saver_def=saver_def, name=import_scope)

    def export_meta_graph(
        self,
        filename: str | None = None,
        collection_list: Sequence[str] | None = None,
        as_text: bool = False,
        export_scope: str | None = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> Any:
        """As `tf.train.export_meta_graph`, with this Saver's SaverDef."""
        return export_meta_graph(
            filename=filename,
            saver_def=self.saver_def,
            collection_list=collection_list,
            as_text=as_text,
            export_scope=export_scope,
            clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
        )

    def _write_meta_graph(self, graph: Any, prefix: str, suffix: str, strip_default_attrs: bool) -> None:
        # A finalized graph does not change: its message is made once, not at every save.
        key = (graph, graph.version, strip_default_attrs)
        if self._meta_graph is None or self._meta_graph[0] != key or not graph.finalized:
            message = create_meta_graph_def(
                graph=graph, saver_def=self.saver_def, strip_default_attrs=strip_default_attrs
            )
            self._meta_graph = (key, message.SerializeToString(deterministic=True))
        path = meta_graph_file(prefix, suffix)
        with file_errors(path):
            write_atomically(path, self._meta_graph[1])

    def _prefix(self, sess: Any, save_path: str, global_step: Any) -> str:
        if global_step is None:
            return save_path
        step = _step_number(sess, global_step)
        return f"{save_path}-{step:08d}" if self._pad_step_number else f"{save_path}-{step}"

    def _require_built(self) -> None:
        if not self._is_built:
            raise RuntimeError("`build()` should be called before save if defer_build==True")


def _now() -> float:
    return time.time()


def get_saver_or_default() -> Saver:
    """The Saver of the graph's SAVERS collection; if that is empty, a new sharded one of everything, added to it.

    Raises:
      RuntimeError: the collection has several.
    """
    graph = get_default_graph()
    savers = graph.get_collection(GraphKeys.SAVERS)
    if len(savers) > 1:
        raise RuntimeError(
            f"More than one item in collection {GraphKeys.SAVERS}. Please indicate which one to use by passing it to "
            "the constructor."
        )
    if savers:
        return savers[0]
    saver = Saver(sharded=True, allow_empty=True)
    graph.add_to_collection(GraphKeys.SAVERS, saver)
    return saver


def _step_number(sess: Any, global_step: Any) -> int:
    if isinstance(global_step, int):
        return global_step
    if hasattr(global_step, "op"):
        return int(sess.run(global_step))
    return int(global_step)


class _Increments:
    """Which saves of one Saver are increments, and which checkpoints they are based on. The Saver's turn guards it."""

    def __init__(self, in_a_row: int) -> None:
        self.base_name = self.target_name = ""
        self._in_a_row = in_a_row
        self._left = 0
        self._last = ""
        self._base_of: dict[str, str] = {}
        self._waiting: list[str] = []

    def feeds(self, prefix: str) -> dict[str, str]:
        """The values of the save's placeholders."""
        base = self._last if self._left > 0 and filesystems.dirname(self._last) == filesystems.dirname(prefix) else ""
        if base == prefix:
            base = ""
        self._base_of[prefix] = base
        return {self.base_name: base, self.target_name: prefix}

    def saved(self, path: str) -> None:
        self._left = self._left - 1 if self._base_of[path] else self._in_a_row
        self._last = path

    def removable(self, surplus: Sequence[str], kept: Sequence[str]) -> list[str]:
        """Of the checkpoints that are not kept, those that no kept one needs."""
        needed: set[str] = set()
        for path in kept:
            while (path := self._base_of.get(path, "")) and path not in needed:
                needed.add(path)
        waiting = [*self._waiting, *surplus]
        self._waiting = [path for path in waiting if path in needed]
        removed = [path for path in waiting if path not in needed]
        for path in removed:
            self._base_of.pop(path, None)
        return removed


def _check_saver_def(saver_def: Any) -> None:
    for field, what in (
        ("save_tensor_name", "save_tensor"),
        ("restore_op_name", "restore_op"),
        ("filename_tensor_name", "filename_tensor"),
    ):
        if not getattr(saver_def, field):
            raise ValueError(f"saver_def must specify the {what}: {saver_def}")
    if saver_def.version == saver_pb2.SaverDef.V1:
        logging.warning("This Saver's ops write checkpoints in the old format V1")


def _restore_error(error: errors.OpError, cause: str) -> errors.OpError:
    message = (
        f"Restoring from checkpoint failed. This is most likely due to {cause} from the checkpoint. Please check that "
        f"the graph is the one that the checkpoint was made with. Original error:\n\n{error.message}"
    )
    return errors.error_from_code(error.error_code, message, error.node_def, error.op)


register_proto_function(GraphKeys.SAVERS, saver_pb2.SaverDef, entry_to_proto, Saver.from_proto)
