"""Which part of a larger variable a variable is, for checkpoints; and names with and without a scope."""

from __future__ import annotations

from typing import Any

from dtf.wire.pb import variable_pb2


class SaveSliceInfo:
    """Which part of a larger variable a variable is, for checkpoints."""

    def __init__(
        self,
        full_name: str | None = None,
        full_shape: list[int] | None = None,
        var_offset: list[int] | None = None,
        var_shape: list[int] | None = None,
        save_slice_info_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if save_slice_info_def is not None:
            full_name = with_scope(save_slice_info_def.full_name, import_scope)
            full_shape = list(save_slice_info_def.full_shape)
            var_offset = list(save_slice_info_def.var_offset)
            var_shape = list(save_slice_info_def.var_shape)
        self.full_name = full_name
        self.full_shape = full_shape
        self.var_offset = var_offset
        self.var_shape = var_shape

    @property
    def spec(self) -> str:
        """The text form of the op SaveV2: full shape, then "start,length" per dimension joined by ":"."""
        sizes = " ".join(str(size) for size in self.full_shape or []) + " "
        extents = zip(self.var_offset or [], self.var_shape or [], strict=True)
        return sizes + ":".join(f"{offset},{length}" for offset, length in extents)

    def to_proto(self, export_scope: str | None = None) -> variable_pb2.SaveSliceInfoDef | None:
        """The message; None if the variable is outside `export_scope`."""
        full_name = self.full_name or ""
        if export_scope and not full_name.startswith(export_scope):
            return None
        return variable_pb2.SaveSliceInfoDef(
            full_name=without_scope(full_name, export_scope),
            full_shape=self.full_shape or [],
            var_offset=self.var_offset or [],
            var_shape=self.var_shape or [],
        )


def with_scope(name: str, scope: str | None) -> str:
    """`name` in the name scope."""
    return f"{scope}/{name}" if scope else name


def without_scope(name: str, scope: str | None) -> str:
    """`name` as it is inside of the name scope."""
    prefix = scope.rstrip("/") + "/" if scope else ""
    return name.removeprefix(prefix)
