"""tensorflow.python.framework.kernels: which ops have kernels."""

from __future__ import annotations

from types import SimpleNamespace

from dtf.run import kernels as _kernels

__all__ = ["get_all_registered_kernels", "get_registered_kernels_for_op"]


def get_all_registered_kernels() -> SimpleNamespace:
    """One entry for each op with a kernel, as `.kernel`, with `op` and `device_type`."""
    return SimpleNamespace(kernel=[_entry(name) for name in _kernels.registered_ops()])


def get_registered_kernels_for_op(name: str) -> SimpleNamespace:
    """The entries of one op."""
    return SimpleNamespace(kernel=[_entry(name)] if _kernels.has_kernel(name) else [])


def _entry(name: str) -> SimpleNamespace:
    return SimpleNamespace(op=name, device_type="CPU")
