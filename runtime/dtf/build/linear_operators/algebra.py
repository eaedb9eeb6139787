"""Which function makes the adjoint, the factor, the inverse, the product or the solution of operators, by class.

Owns the tables and their look-up; `registrations` fills them, and so may programs::

    @RegisterAdjoint(MyOperator)
    def _(operator):
        return MyOperator(...)

The row of the nearest base classes is taken. Source:
https://github.com/tensorflow/tensorflow/blob/r1.15/tensorflow/python/ops/linalg/linear_operator_algebra.py
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeVar

from dtf.build.default_graph import name_scope

__all__ = [
    "RegisterAdjoint", "RegisterCholesky", "RegisterInverse", "RegisterMatmul", "RegisterSolve", "adjoint", "cholesky",
    "inverse", "matmul", "solve",
]  # fmt: skip

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Table = dict[tuple[type, ...], Callable[..., Any]]

_ADJOINTS: _Table = {}
_CHOLESKY_DECOMPS: _Table = {}
_INVERSES: _Table = {}
_MATMUL: _Table = {}
_SOLVE: _Table = {}


def _registered(table: _Table, classes: tuple[type, ...]) -> Callable[..., Any] | None:
    """The row whose classes are the nearest bases of `classes`; None where no row fits."""
    lines = [cls.__mro__ for cls in classes]
    best, found = None, None
    for bases in itertools.product(*lines):
        row = table.get(bases)
        if row is not None:
            distance = sum(line.index(base) for line, base in zip(lines, bases, strict=True))
            if best is None or distance < best:
                best, found = distance, row
    return found


class _Register:
    """A decorator that adds a function to a table."""

    _table: _Table
    _what: str

    def __init__(self, *classes: type) -> None:
        self._key = classes

    def __call__(self, function: _Function) -> _Function:
        """Adds the function.

        Raises:
          TypeError: it cannot be called.
          ValueError: these classes have a function.
        """
        names = " and ".join(cls.__name__ for cls in self._key)
        if not callable(function):
            raise TypeError(f"{self._what}_fn must be callable, received: {function}")
        if self._key in self._table:
            raise ValueError(f"{self._what}({names}) has already been registered to: {self._table[self._key]}")
        self._table[self._key] = function
        return function


class RegisterAdjoint(_Register):
    """Registers how the adjoint of a class is made."""

    _table, _what = _ADJOINTS, "Adjoint"

    def __init__(self, lin_op_cls_a: type) -> None:
        super().__init__(lin_op_cls_a)


class RegisterCholesky(_Register):
    """Registers how the Cholesky factor of a class is made."""

    _table, _what = _CHOLESKY_DECOMPS, "Cholesky"

    def __init__(self, lin_op_cls_a: type) -> None:
        super().__init__(lin_op_cls_a)


class RegisterInverse(_Register):
    """Registers how the inverse of a class is made."""

    _table, _what = _INVERSES, "Inverse"

    def __init__(self, lin_op_cls_a: type) -> None:
        super().__init__(lin_op_cls_a)


class RegisterMatmul(_Register):
    """Registers how the product of two classes is made."""

    _table, _what = _MATMUL, "Matmul"

    def __init__(self, lin_op_cls_a: type, lin_op_cls_b: type) -> None:
        super().__init__(lin_op_cls_a, lin_op_cls_b)


class RegisterSolve(_Register):
    """Registers how the solution for two classes is made."""

    _table, _what = _SOLVE, "Solve"

    def __init__(self, lin_op_cls_a: type, lin_op_cls_b: type) -> None:
        super().__init__(lin_op_cls_a, lin_op_cls_b)


def _registered_adjoint(type_a: type) -> Callable[..., Any] | None:
    return _registered(_ADJOINTS, (type_a,))


def _registered_cholesky(type_a: type) -> Callable[..., Any] | None:
    return _registered(_CHOLESKY_DECOMPS, (type_a,))


def _registered_inverse(type_a: type) -> Callable[..., Any] | None:
    return _registered(_INVERSES, (type_a,))


def _registered_matmul(type_a: type, type_b: type) -> Callable[..., Any] | None:
    return _registered(_MATMUL, (type_a, type_b))


def _registered_solve(type_a: type, type_b: type) -> Callable[..., Any] | None:
    return _registered(_SOLVE, (type_a, type_b))


def _apply(table: _Table, what: str, name: str | None, *operators: Any) -> Any:
    function = _registered(table, tuple(type(each) for each in operators))
    if function is None:
        names = " and ".join(type(each).__name__ for each in operators)
        raise ValueError(f"No {what} registered for {names}")
    with name_scope(name, what):
        return function(*operators)


def adjoint(lin_op_a: Any, name: str | None = None) -> Any:
    """The operator of the conjugate transposes."""
    return _apply(_ADJOINTS, "Adjoint", name, lin_op_a)


def cholesky(lin_op_a: Any, name: str | None = None) -> Any:
    """The operator of the lower triangular factors."""
    return _apply(_CHOLESKY_DECOMPS, "Cholesky", name, lin_op_a)


def inverse(lin_op_a: Any, name: str | None = None) -> Any:
    """The operator of the inverses."""
    return _apply(_INVERSES, "Inverse", name, lin_op_a)


def matmul(lin_op_a: Any, lin_op_b: Any, name: str | None = None) -> Any:
    """The operator of the products."""
    return _apply(_MATMUL, "Matmul", name, lin_op_a, lin_op_b)


def solve(lin_op_a: Any, lin_op_b: Any, name: str | None = None) -> Any:
    """The operator X with `lin_op_a` X = `lin_op_b`."""
    return _apply(_SOLVE, "Solve", name, lin_op_a, lin_op_b)
