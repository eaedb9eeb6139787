"""tensorflow.python.lib.core: the registration of bfloat16 with numpy, which dtf.wire.dtypes does at its import."""

from __future__ import annotations

from typing import Any

__all__ = ["TF_bfloat16_type", "bfloat16"]


def TF_bfloat16_type() -> Any:  # noqa: N802
    """The scalar type of bfloat16 in numpy arrays."""
    from dtf.wire.dtypes import bfloat16

    return bfloat16.as_numpy_dtype


class bfloat16:  # noqa: N801
    """Stands for the module of the same name, which `from tensorflow.python.lib.core import bfloat16` gives."""

    TF_bfloat16_type = staticmethod(TF_bfloat16_type)
