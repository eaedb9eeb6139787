"""Names of tensorflow.python.framework.errors_impl beyond the errors themselves."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from dtf.wire.errors import OpError, error_from_code, exception_type_from_error_code

__all__ = [
    "InaccessibleTensorError", "OperatorNotAllowedInGraphError", "make_specific_exception",
    "raise_exception_on_not_ok_status",
]  # fmt: skip


class InaccessibleTensorError(ValueError):
    """A tensor is used outside of the function that made it."""


class OperatorNotAllowedInGraphError(TypeError):
    """A Python operator is applied to a tensor whose value is known only in the step."""


def make_specific_exception(node_def: Any, op: Any, message: str, error_code: int) -> OpError:
    """The error of a code; an unknown code gives an UnknownError and a warning."""
    try:
        exception_type_from_error_code(error_code)
    except KeyError:
        warnings.warn(f"Unknown error code: {error_code}", stacklevel=2)
    return error_from_code(error_code, message, node_def, op)


@contextlib.contextmanager
def raise_exception_on_not_ok_status() -> Iterator[Any]:
    """A block that gets a status object; errors of functions inside are raised by themselves."""
    yield SimpleNamespace(status=None)
