"""tf.train.Checkpoint and CheckpointManager: values saved by the places of objects, not by the names of variables.

    checkpoint = tf.train.Checkpoint(layer=layer, optimizer=optimizer)
    path = checkpoint.save("logs/ckpt", session)
    checkpoint.restore(path).assert_consumed().run_restore_ops(session)

Owns the graph of objects and the keys of values in a checkpoint, both as TensorFlow writes and reads them. Objects are
variables, layers and cells, optimizers, Checkpoints, and lists and dicts of these. Variables must be there when
`restore` is called. The values themselves are a Saver's.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/Checkpoint
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from dtf.build.constant import constant
from dtf.build.default_graph import get_default_graph, get_default_session
from dtf.build.ops.ordering import group, no_op
from dtf.build.ops.state import assign_add
from dtf.build.saveable_object import SaveableObject, SaveSpec
from dtf.build.variables import Variable
from dtf.layers.base import Layer
from dtf.train.checkpoint_management import (
    checkpoint_exists,
    get_checkpoint_state,
    latest_checkpoint,
    remove_checkpoint,
    update_checkpoint_state,
)
from dtf.train.checkpoint_utils import load_checkpoint
from dtf.train.optimizer import Optimizer
from dtf.train.saver import Saver
from dtf.wire import dtypes, filesystems
from dtf.wire.pb import saver_pb2
from dtf.wire.pb.trackable_object_graph_pb2 import TrackableObjectGraph

__all__ = ["Checkpoint", "CheckpointManager"]

_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "VARIABLE_VALUE"


class Checkpoint:
    """A group of objects whose variables are saved together.

    Args:
      objects: name -> object.

    Raises:
      ValueError: an object is of a class that cannot be saved.
    """

    def __init__(self, **objects: Any) -> None:
        for name, value in objects.items():
            _children(value)
            setattr(self, name, value)
        self._counter: Variable | None = None
        self._savers: dict[tuple[Any, ...], Saver] = {}

    @property
    def save_counter(self) -> Variable:
        """The number of saves, an int64 variable that is saved too."""
        if self._counter is None:
            self._counter = Variable(0, trainable=False, name="save_counter", dtype=dtypes.int64)
        return self._counter

    def save(self, file_prefix: str, session: Any = None) -> str:
        """Writes a checkpoint "<file_prefix>-<number>" and names it in the folder's state file.

        Args:
          session: with the values; the default session by default.

        Returns:
          Its prefix.

        Raises:
          ValueError: there is no session.
          OpError: writing failed.
        """
        session = _session(session)
        with session.graph.as_default():
            counter = self.save_counter
            session.run(_initialized(counter, session))
            number = session.run(assign_add(counter, 1))
        path = self.write(f"{file_prefix}-{number}", session)
        update_checkpoint_state(os.path.dirname(path), path, [path], save_relative_paths=True)
        return path

    def write(self, file_prefix: str, session: Any = None) -> str:
        """Writes a checkpoint of exactly this prefix; no number is counted.

        Returns:
          The prefix.

        Raises:
          ValueError: there is no session.
          OpError: writing failed.
        """
        session = _session(session)
        with session.graph.as_default():
            found, values = _object_graph(self)
            text = found.SerializeToString(deterministic=True)
            known = (text, session.graph)
            if known not in self._savers:
                self._savers = {known: Saver([*_named(values), _Text(text)], max_to_keep=None)}
            filesystems.makedirs(os.path.dirname(file_prefix) or ".")
            path = self._savers[known].save(session, file_prefix, write_meta_graph=False, write_state=False)
        assert path is not None
        return path

    def restore(self, save_path: str | None) -> _Restored:
        """Finds the values of a checkpoint for the existing variables.

        Args:
          save_path: a prefix; with None variables only begin.

        Returns:
          Its status: `assert_consumed`, and `run_restore_ops` or `initialize_or_restore` to read the values.

        Raises:
          NotFoundError: the checkpoint does not exist.
          ValueError: it was not written by a Checkpoint.
        """
        if self._counter is None:
            _ = self.save_counter
        return _Restored(self, save_path)

    read = restore


class CheckpointManager:
    """Keeps the last checkpoints of a folder.

    Args:
      checkpoint: the Checkpoint.
      directory: the folder.
      max_to_keep: how many checkpoints are kept; None for all.
      checkpoint_name: the beginning of their names.

    Raises:
      ValueError: `max_to_keep` is not positive.
    """

    def __init__(
        self, checkpoint: Checkpoint, directory: str, max_to_keep: int | None, checkpoint_name: str = "ckpt"
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"max_to_keep must be positive or None, but is {max_to_keep}")
        self.checkpoint = checkpoint
        self.directory = os.fsdecode(directory)
        self._max_to_keep = max_to_keep
        self._prefix = os.path.join(self.directory, checkpoint_name)
        state = get_checkpoint_state(self.directory) if filesystems.isdir(self.directory) else None
        self._kept = [path for path in state.all_model_checkpoint_paths if checkpoint_exists(path)] if state else []

    @property
    def checkpoints(self) -> list[str]:
        """The prefixes of the checkpoints that are kept, oldest first."""
        return list(self._kept)

    @property
    def latest_checkpoint(self) -> str | None:
        """The prefix of the last checkpoint, or None."""
        return latest_checkpoint(self.directory) if filesystems.isdir(self.directory) else None

    def save(self, checkpoint_number: Any = None, session: Any = None) -> str:
        """Writes a checkpoint and removes surplus older ones.

        Args:
          checkpoint_number: its number, or a variable with it; the number of saves by default.
          session: with the values; the default session by default.

        Returns:
          Its prefix.

        Raises:
          ValueError: there is no session.
          OpError: writing failed.
        """
        session = _session(session)
        if checkpoint_number is None:
            path = self.checkpoint.save(self._prefix, session)
        else:
            number = checkpoint_number if isinstance(checkpoint_number, int) else session.run(checkpoint_number)
            with session.graph.as_default():
                session.run(_initialized(self.checkpoint.save_counter, session))
            path = self.checkpoint.write(f"{self._prefix}-{number}", session)
        self._kept = [each for each in self._kept if each != path] + [path]
        surplus = self._kept[: -self._max_to_keep] if self._max_to_keep else []
        self._kept = self._kept[len(surplus) :]
        update_checkpoint_state(self.directory, path, self._kept, save_relative_paths=True)
        for old in surplus:
            remove_checkpoint(old, saver_pb2.SaverDef.V2)
        return path


class _Restored:
    """The result of `restore`: which variables found their values."""

    def __init__(self, checkpoint: Checkpoint, path: str | None) -> None:
        self._path = path
        self._objects, self._variables = _object_graph(checkpoint)
        self._found: dict[str, Any] = {}
        self._unused: list[str] = []
        if path is None:
            return
        reader = load_checkpoint(path)
        if not reader.has_tensor(_KEY):
            raise ValueError(f"{path} was not written by tf.train.Checkpoint; read it with tf.train.Saver")
        theirs = TrackableObjectGraph.FromString(reader.get_tensor(_KEY))
        self._match(theirs)

    def _match(self, theirs: TrackableObjectGraph) -> None:
        mine = self._objects
        pairs = {0: 0}
        waiting = [0]
        while waiting:
            node = waiting.pop()
            ours = {child.local_name: child.node_id for child in mine.nodes[pairs[node]].children}
            for child in theirs.nodes[node].children:
                if child.local_name in ours and child.node_id not in pairs:
                    pairs[child.node_id] = ours[child.local_name]
                    waiting.append(child.node_id)
        for node in list(pairs):
            places = {
                (slot.original_variable_node_id, slot.slot_name): slot.slot_variable_node_id
                for slot in mine.nodes[pairs[node]].slot_variables
            }
            for slot in theirs.nodes[node].slot_variables:
                place = (pairs.get(slot.original_variable_node_id, -1), slot.slot_name)
                if place in places:
                    pairs[slot.slot_variable_node_id] = places[place]
        for number, each in enumerate(theirs.nodes):
            for attribute in each.attributes:
                if number in pairs and mine.nodes[pairs[number]].attributes:
                    key = mine.nodes[pairs[number]].attributes[0].checkpoint_key
                    self._found[attribute.checkpoint_key] = self._variables[key]
                else:
                    self._unused.append(attribute.checkpoint_key)

    def assert_consumed(self) -> _Restored:
        """Itself.

        Raises:
          AssertionError: a value of the checkpoint has no variable, or a variable has no value.
        """
        found = {id(variable) for variable in self._found.values()}
        missing = [key for key, variable in self._variables.items() if id(variable) not in found]
        if self._unused or missing:
            raise AssertionError(
                f"Checkpoint {self._path} and the objects differ: values without variables {self._unused}, "
                f"variables without values {missing}"
            )
        return self

    def assert_existing_objects_matched(self) -> _Restored:
        """Itself.

        Raises:
          AssertionError: a variable has no value in the checkpoint.
        """
        unused, self._unused = self._unused, []
        try:
            return self.assert_consumed()
        finally:
            self._unused = unused

    def expect_partial(self) -> _Restored:
        """Itself: values without variables are expected."""
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """Reads the values into a session, the default one by default.

        Raises:
          ValueError: there is no session.
          InvalidArgumentError: a variable has another shape or dtype in the checkpoint.
        """
        session = _session(session)
        if self._found:
            with session.graph.as_default():
                Saver(self._found).restore(session, self._path or "")

    def initialize_or_restore(self, session: Any = None) -> None:
        """Reads the values into a session, and initialises variables without a value in the
        checkpoint."""
        session = _session(session)
        found = {id(variable) for variable in self._found.values()}
        with session.graph.as_default():
            session.run(group(*[v.initializer for v in self._variables.values() if id(v) not in found]))
        self.run_restore_ops(session)


class _Text(SaveableObject):
    """The graph of objects, which is written and never read back into the program."""

    def __init__(self, text: bytes) -> None:
        tensor = constant(text)
        super().__init__(tensor, [SaveSpec(tensor, "", _KEY)], _KEY)

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        return no_op()


def _named(values: Mapping[str, Any]) -> list[SaveableObject]:
    from dtf.train.saveable import saveables_of

    return saveables_of(dict(values))


def _object_graph(root: Checkpoint) -> tuple[TrackableObjectGraph, dict[str, Any]]:
    """The objects by their shortest paths, and the variables by their keys."""
    found = TrackableObjectGraph()
    numbers, paths = {id(root): 0}, {0: ""}
    objects: list[Any] = [root]
    found.nodes.add()
    position = 0
    while position < len(objects):
        for name, child in _children(objects[position]).items():
            if id(child) not in numbers:
                numbers[id(child)] = len(objects)
                paths[len(objects)] = f"{paths[position]}/{_escaped(name)}".lstrip("/")
                objects.append(child)
                found.nodes.add()
            found.nodes[position].children.add(node_id=numbers[id(child)], local_name=name)
        position += 1
    slots: list[Any] = []
    for number, each in enumerate(objects):
        for slot_name in each.get_slot_names() if isinstance(each, Optimizer) else ():
            for original in objects:
                slot = each.get_slot(original, slot_name) if isinstance(original, Variable) else None
                if slot is not None and id(slot) not in numbers:
                    place = numbers[id(original)]
                    node = len(objects) + len(slots)
                    found.nodes.add()
                    found.nodes[number].slot_variables.add(
                        original_variable_node_id=place, slot_name=slot_name, slot_variable_node_id=node
                    )
                    paths[node] = f"{paths[place]}/.OPTIMIZER_SLOT/{paths[number]}/{_escaped(slot_name)}"
                    slots.append(slot)
    values = {}
    for number, variable in enumerate([*objects, *slots]):
        if isinstance(variable, Variable):
            key = f"{paths[number]}/.ATTRIBUTES/{_VALUE}"
            found.nodes[number].attributes.add(name=_VALUE, full_name=variable.op.name, checkpoint_key=key)
            values[key] = variable
        found.nodes[number].has_checkpoint_values.value = isinstance(variable, Variable)
    return found, values


def _children(value: Any) -> dict[str, Any]:
    """The objects of an object by their names."""
    if isinstance(value, Variable):
        return {}
    if isinstance(value, Checkpoint):
        own = {name: each for name, each in vars(value).items() if not name.startswith("_") and _is_saved(each)}
        return {**own, **({"save_counter": value._counter} if getattr(value, "_counter", None) is not None else {})}
    if isinstance(value, Optimizer):
        here = get_default_graph()
        return {name: each for (name, _), each in value._non_slot_dict.items() if each.graph is here}
    if isinstance(value, Layer):
        return {name: each for name, each in vars(value).items() if isinstance(each, Variable | Layer)}
    if isinstance(value, list | tuple):
        return {str(index): each for index, each in enumerate(value)}
    if isinstance(value, Mapping):
        return {str(name): each for name, each in sorted(value.items())}
    raise ValueError(
        f"Checkpoint cannot save a {type(value).__name__}: use variables, layers, cells, optimizers, Checkpoints, and "
        "lists and dicts of these"
    )


def _is_saved(value: Any) -> bool:
    return isinstance(value, Variable | Checkpoint | Optimizer | Layer | list | tuple | Mapping)


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")


def _session(session: Any) -> Any:
    session = session if session is not None else get_default_session()
    if session is None:
        raise ValueError("A Checkpoint needs a session: pass one, or use `with session.as_default()`")
    return session


def _initialized(variable: Variable, session: Any) -> Any:
    from dtf.build.variables import is_variable_initialized

    return no_op() if session.run(is_variable_initialized(variable)) else variable.initializer
