"""The save and restore ops of a Saver.

Their names are TensorFlow's, so that either can run the other's SaverDef.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Protocol

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.default_graph import control_dependencies, device, get_default_graph, name_scope
from dtf.build.graph import Operation, Tensor
from dtf.build.ops.ordering import group
from dtf.build.saveable_object import SaveableObject
from dtf.wire.dtypes import int32
from dtf.wire.pb import saver_pb2
from dtf.wire.unfinished import new_token


class Builder(Protocol):
    """The methods of a program's own builder that SaverOps calls."""

    def save_op(self, filename_tensor: Any, saveables: list[SaveableObject]) -> Operation: ...

    def bulk_restore(
        self, filename_tensor: Any, saveables: list[SaveableObject], preferred_shard: int, restore_sequentially: bool
    ) -> list[Tensor]: ...


class SaverOps:
    """Builds the ops of one Saver. Their names, inside the scope, are TensorFlow's."""

    def __init__(
        self,
        saveables: list[SaveableObject],
        reshape: bool,
        sharded: bool,
        restore_sequentially: bool,
        version: int,
        builder: Builder | None = None,
        has_increments: bool = False,
    ) -> None:
        self._builder = builder
        self._saveables = saveables
        self._reshape = reshape
        self._sharded = sharded
        self._restore_sequentially = restore_sequentially
        self._has_increments = has_increments
        self.base: Tensor | None = None
        """Fed with the prefix of the save before, and `target` with that of this one, for increments."""
        self.target: Tensor | None = None
        self._version: Any = version  # a number, where protobuf's stubs know enumerations only

    def build(self, name: str | None, filename: str) -> Any:
        """Returns a SaverDef that names the ops."""
        with name_scope(name, "save"):
            default = apply_op("PlaceholderWithDefault", "filename", input=filename, shape=[])
            prefix = apply_op("PlaceholderWithDefault", "Const", input=default, shape=[])
            if self._has_increments:
                self.base = apply_op("PlaceholderWithDefault", "increment_base", input="", shape=[])
                self.target = apply_op("PlaceholderWithDefault", "increment_target", input="", shape=[])
            if self._sharded:
                shards = self._by_device()
                saved = self._sharded_save(prefix, shards)
                restores = []
                for where, saveables in shards:
                    with device(where or None):
                        restores.append(self._restore(prefix, saveables, "restore_shard"))
                restored = group(*restores, name="restore_all")
            else:
                saved = self._save(prefix, self._saveables)
                restored = self._restore(prefix, self._saveables, "restore_all")
        return saver_pb2.SaverDef(
            filename_tensor_name=prefix.name,
            save_tensor_name=saved.name,
            restore_op_name=restored.name,
            sharded=self._sharded,
            version=self._version,
        )

    def _by_device(self) -> list[tuple[str, list[SaveableObject]]]:
        """The saveables of each device, ordered by device."""
        shards: dict[str, list[SaveableObject]] = {}
        for saveable in self._saveables:
            devices = {spec.device for spec in saveable.specs}
            if len(devices) != 1:
                raise ValueError(f"All tensors of a saveable object must be on the same device: {saveable.name}")
            shards.setdefault(devices.pop(), []).append(saveable)
        return sorted(shards.items(), key=lambda shard: shard[0])

    def _save(self, prefix: Tensor, saveables: list[SaveableObject]) -> Tensor:
        if self._builder is not None:
            save = self._builder.save_op(prefix, saveables)
        elif self.base is not None and self.target is not None:
            save = _increment_op(prefix, saveables, self.base, self.target)
        else:
            save = save_op(prefix, saveables, self._version)
        return _after([save], prefix, "control_dependency")

    def _sharded_save(self, prefix: Tensor, shards: list[tuple[str, list[SaveableObject]]]) -> Tensor:
        """Each device writes a bundle of its own into a folder aside; the last one merges them under the prefix.

        Files of V1 are kept: a pattern names them together.
        """
        if self._version == saver_pb2.SaverDef.V1:
            return self._sharded_save_v1(prefix, shards)
        aside = apply_op("StringJoin", None, inputs=[prefix, f"_temp_{new_token()}/part"])
        num_shards = _constant(len(shards), "num_shards")
        parts, saves = [], []
        for number, (where, saveables) in enumerate(shards):
            with device(where or None), device("/cpu:0"):
                part = apply_op("ShardedFilename", None, basename=aside, shard=number, num_shards=num_shards)
                parts.append(part)
                saves.append(self._save(part, saveables))
        last, _ = shards[-1]
        with control_dependencies([save.op for save in saves]), device(last or None), device("/cpu:0"):
            with name_scope("MergeV2Checkpoints") as scope:
                prefixes = apply_op("Pack", "checkpoint_prefixes", values=parts)
                merge = apply_op(
                    "MergeV2Checkpoints",
                    scope,
                    checkpoint_prefixes=prefixes,
                    destination_prefix=prefix,
                    delete_old_dirs=True,
                )
            with control_dependencies([merge]):
                return apply_op("Identity", None, input=prefix)

    def _sharded_save_v1(self, prefix: Tensor, shards: list[tuple[str, list[SaveableObject]]]) -> Tensor:
        num_shards = _constant(len(shards), "num_shards")
        saves = []
        for number, (where, saveables) in enumerate(shards):
            with device(where or None), device("/cpu:0"):
                part = apply_op("ShardedFilename", None, basename=prefix, shard=number, num_shards=num_shards)
                saves.append(self._save(part, saveables))
        with control_dependencies([save.op for save in saves]):
            return apply_op("ShardedFilespec", None, basename=prefix, num_shards=num_shards)

    def _restore(self, prefix: Tensor, saveables: list[SaveableObject], name: str) -> Operation:
        values: list[Tensor] = []
        if not self._restore_sequentially:
            values = self._values(prefix, saveables)
        restores: list[Any] = []
        for saveable in saveables:
            after = control_dependencies(restores[-1:]) if self._restore_sequentially else nullcontext()
            with after:
                own = self._values(prefix, [saveable]) if self._restore_sequentially else values[: len(saveable.specs)]
                values = values[len(own) :]
                shapes = [_shape_of(saveable)] * len(own) if self._reshape else None
                restores.append(saveable.restore(own, shapes))
        return group(*restores, name=name)

    def _values(self, prefix: Tensor, saveables: list[SaveableObject]) -> list[Tensor]:
        if self._builder is not None:
            return list(self._builder.bulk_restore(prefix, saveables, 0, self._restore_sequentially))
        return read(prefix, [spec for saveable in saveables for spec in saveable.specs])


def save_op(prefix: Tensor, saveables: list[SaveableObject], version: int) -> Operation:
    """The op that writes all tensors of `saveables` to one file or bundle."""
    names, slices, tensors = _saved(saveables)
    if version == saver_pb2.SaverDef.V1:
        return apply_op(
            "SaveSlices", None, filename=prefix, tensor_names=names, shapes_and_slices=slices, data=tensors
        )
    return apply_op("SaveV2", None, prefix=prefix, tensor_names=names, shape_and_slices=slices, tensors=tensors)


def _saved(saveables: list[SaveableObject]) -> tuple[list[Any], list[Any], list[Any]]:
    """The names, the slices and the tensors of what is saved."""
    specs = [spec for saveable in saveables for spec in saveable.specs]
    return [spec.name for spec in specs], [spec.slice_spec for spec in specs], [spec.tensor for spec in specs]


def _increment_op(prefix: Tensor, saveables: list[SaveableObject], base: Tensor, target: Tensor) -> Operation:
    names, slices, tensors = _saved(saveables)
    return apply_op(
        "SaveIncrement", None, prefix=prefix, tensor_names=names, shape_and_slices=slices, base=base, target=target,
        tensors=tensors,
    )  # fmt: skip


def read(prefix: Tensor, specs: list[Any]) -> list[Tensor]:
    """The tensors of `specs` as they are in the checkpoint."""
    with device("/cpu:0"):
        return apply_op(
            "RestoreV2",
            None,
            prefix=prefix,
            tensor_names=[spec.name for spec in specs],
            shape_and_slices=[spec.slice_spec for spec in specs],
            dtypes=[spec.dtype for spec in specs],
        )


def _shape_of(saveable: SaveableObject) -> Tensor:
    shape = saveable.op.shape
    if shape.is_fully_defined():
        return _constant(shape.as_list(), "shape")
    return apply_op("Shape", None, input=saveable.specs[0].tensor)


def _after(ops: list[Operation], value: Tensor, name: str) -> Tensor:
    with name_scope(name) as scope, control_dependencies(ops), get_default_graph().colocate_with(value.op):
        return apply_op("Identity", scope, input=value)


def _constant(value: Any, name: str) -> Tensor:
    return constant(value, int32, name=name)
