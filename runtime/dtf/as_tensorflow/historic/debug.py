"""tensorflow.python.debug: its sessions and hooks run programs without the debugger, which dtf does not have."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtf import logging
from dtf.train.session_run_hook import SessionRunHook

__all__ = [
    "DumpingDebugHook", "DumpingDebugWrapperSession", "GrpcDebugHook", "GrpcDebugWrapperSession", "LocalCLIDebugHook",
    "LocalCLIDebugWrapperSession", "TensorBoardDebugHook", "TensorBoardDebugWrapperSession", "has_inf_or_nan",
]  # fmt: skip


class LocalCLIDebugHook(SessionRunHook):
    """A hook that warns once and does nothing else."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _warn(type(self).__name__)

    def add_tensor_filter(self, filter_name: str, tensor_filter: Any) -> None:
        """Accepted."""


class DumpingDebugHook(LocalCLIDebugHook):
    """See LocalCLIDebugHook."""


class GrpcDebugHook(LocalCLIDebugHook):
    """See LocalCLIDebugHook."""


class TensorBoardDebugHook(LocalCLIDebugHook):
    """See LocalCLIDebugHook."""


def LocalCLIDebugWrapperSession(sess: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N802
    """`sess` itself, with a function `add_tensor_filter` that does nothing."""
    _warn("LocalCLIDebugWrapperSession")
    if not hasattr(sess, "add_tensor_filter"):
        sess.add_tensor_filter = lambda filter_name, tensor_filter: None
    return sess


DumpingDebugWrapperSession = GrpcDebugWrapperSession = TensorBoardDebugWrapperSession = LocalCLIDebugWrapperSession


def has_inf_or_nan(datum: Any, tensor: Any) -> bool:
    """Whether an array has an infinity or a NaN."""
    del datum
    array = np.asarray(tensor)
    return bool(array.dtype.kind in "fc" and not np.isfinite(array).all())


def _warn(name: str) -> None:
    logging.warning(
        "%s: tfdbg is not supported, the program runs without it; use tf.Print, tf.add_check_numerics_ops or a traced "
        "step (tf.RunMetadata)", name,
    )  # fmt: skip
