"""Builders: classes that programs subclass to change a Saver's save and restore ops.

Owns the methods that a subclass overrides. `saver_ops` has the ops and their names; a Saver without a builder
uses them directly.

    class Counted(BaseSaverBuilder):
        def restore_op(self, filename_tensor, saveable, preferred_shard): ...

    tf.train.Saver(variables, builder=Counted())
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.saveable_object import SaveableObject as Saveable
from dtf.build.saveable_object import SaveSpec as Spec
from dtf.build.tensor import Operation, Tensor
from dtf.train import saveable as _saveable
from dtf.train import saver_ops
from dtf.wire.pb import saver_pb2

__all__ = ["BaseSaverBuilder", "BulkSaverBuilder"]


class BaseSaverBuilder:
    """Makes the ops of a Saver, one restore op for each saveable.

    Args:
      write_version: SaverDef.V2, or SaverDef.V1 for the old format.
    """

    SaveSpec = Spec
    SaveableObject = Saveable
    VariableSaveable = _saveable.VariableSaveable
    ResourceVariableSaveable = _saveable.VariableSaveable

    def __init__(self, write_version: int = saver_pb2.SaverDef.V2) -> None:
        self._write_version = write_version

    @staticmethod
    def OpListToDict(op_list: Iterable[Any], convert_variable_to_tensor: bool = True) -> dict[str, Any]:  # noqa: N802
        """The variables and saveables of a list by their names in a checkpoint."""
        return _saveable._names_of(op_list)

    def save_op(self, filename_tensor: Any, saveables: list[Saveable]) -> Operation:
        """Makes the op that writes the tensors of `saveables`."""
        return saver_ops.save_op(filename_tensor, saveables, self._write_version)

    def restore_op(self, filename_tensor: Any, saveable: Saveable, preferred_shard: int) -> list[Tensor]:
        """Makes the ops that read one saveable; returns its tensors in the order of its specs."""
        return saver_ops.read(filename_tensor, saveable.specs)

    def bulk_restore(
        self, filename_tensor: Any, saveables: list[Saveable], preferred_shard: int, restore_sequentially: bool
    ) -> list[Tensor]:
        """The tensors of all `saveables` in order; a subclass may read them with one op."""
        return [tensor for each in saveables for tensor in self.restore_op(filename_tensor, each, preferred_shard)]

    def sharded_filename(self, filename_tensor: Any, shard: int, num_shards: Any) -> Tensor:
        """The name of one shard's file."""
        return apply_op("ShardedFilename", None, basename=filename_tensor, shard=shard, num_shards=num_shards)

    def build(
        self,
        names_to_saveables: Any,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        filename: str = "model",
    ) -> Any:
        """Adds the ops to the default graph; returns their SaverDef. Arguments as those of a Saver."""
        saveables = _saveable.saveables_of(names_to_saveables)
        ops = saver_ops.SaverOps(saveables, reshape, sharded, restore_sequentially, self._write_version, self)
        saver_def = ops.build(name, filename)
        saver_def.max_to_keep = max_to_keep or 0
        saver_def.keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        return saver_def


class BulkSaverBuilder(BaseSaverBuilder):
    """As BaseSaverBuilder, with one op that reads all saveables of a device."""

    def bulk_restore(
        self, filename_tensor: Any, saveables: list[Saveable], preferred_shard: int, restore_sequentially: bool
    ) -> list[Tensor]:
        return saver_ops.read(filename_tensor, [spec for each in saveables for spec in each.specs])
