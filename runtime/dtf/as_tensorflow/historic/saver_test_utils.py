"""tensorflow.python.training.saver_test_utils: an object with a table, which a Saver saves besides variables."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.default_graph import add_to_collection
from dtf.build.graph_keys import GraphKeys
from dtf.build.ops.lookup import MutableHashTable
from dtf.build.saveable_object import SaveableObject, SaveSpec
from dtf.wire import dtypes

__all__ = ["CheckpointedOp"]


class CheckpointedOp:
    """A table from strings to floats.

    Args:
      name: its name, in the graph and in checkpoints.
      table_ref: the table to use; a new one by default.
    """

    def __init__(self, name: str, table_ref: Any = None) -> None:
        if table_ref is None:
            table_ref = MutableHashTable(dtypes.string, dtypes.float32, default_value=0.0, name=name, checkpoint=False)
        self.table_ref = table_ref
        self._name = name
        self._saveable = CheckpointedOp.CustomSaveable(self, name)
        add_to_collection(GraphKeys.SAVEABLE_OBJECTS, self._saveable)

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def saveable(self) -> SaveableObject:
        """What a Saver saves."""
        return self._saveable

    def insert(self, keys: Any, values: Any) -> Any:
        """An operation that puts entries into the table."""
        return self.table_ref.insert(keys, values)

    def lookup(self, keys: Any) -> Any:
        """The values of keys."""
        return self.table_ref.lookup(keys)

    def keys(self) -> Any:
        """All keys."""
        return self._export()[0]

    def values(self) -> Any:
        """All values."""
        return self._export()[1]

    def _export(self) -> Any:
        return self.table_ref.export()

    class CustomSaveable(SaveableObject):
        """The table in checkpoints: its keys and its values."""

        def __init__(self, table: CheckpointedOp, name: str) -> None:
            keys, values = table._export()
            specs = [SaveSpec(keys, "", f"{name}-keys"), SaveSpec(values, "", f"{name}-values")]
            super().__init__(table, specs, name)

        def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
            """Puts the entries of a checkpoint in the place of all entries."""
            keys, values = restored_tensors
            handle = self.op.table_ref.resource_handle
            return apply_op("LookupTableImportV2", table_handle=handle, keys=keys, values=values)
