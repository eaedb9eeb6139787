"""Rows for the decompositions, whose factors are not unique, and what of their factors is.

The table's own rows of these ops are test functions. Signs and phases of singular and eigenvectors are left open by
every library, so what is compared is what does not depend on them: the values, and the product of the factors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.runtime.op_cases import Case, Vary

OPS = ("Eig", "Qr", "SelfAdjointEigV2", "Svd")

_random = np.random.RandomState(3)
_TALL = _random.normal(size=(2, 4, 3))
_SYMMETRIC = (lambda half: half + half.swapaxes(-1, -2))(_random.normal(size=(2, 3, 3)))
_VARY = Vary(odd_values=False)


def rows() -> list[Case]:
    """Each decomposition with and without its vectors, thin and full."""
    return [
        *(
            Case("Svd", [_TALL], {"compute_uv": uv, "full_matrices": full}, name=f"{uv}-{full}", vary=_VARY)
            for uv, full in ((True, False), (True, True), (False, False))
        ),
        Case("Svd", [_TALL.swapaxes(1, 2)], {"compute_uv": True}, name="wide", vary=_VARY),
        *(Case("Qr", [_TALL], {"full_matrices": full}, name=str(full), vary=_VARY) for full in (False, True)),
        *(
            Case("SelfAdjointEigV2", [_SYMMETRIC], {"compute_v": vectors}, name=str(vectors), vary=_VARY)
            for vectors in (False, True)
        ),
        *(
            Case("Eig", [_TALL[:, :3]], {"compute_v": vectors, "Tout": "complex128"}, name=str(vectors), vary=_VARY)
            for vectors in (False, True)
        ),
    ]


def invariant(op: str, outcome: dict[str, Any]) -> dict[str, Any]:
    """The outcome with its factors replaced by what is unique, and without the gradients of a sum of the factors.

    Vectors that were not asked for are left out: dtf gives empty ones, TensorFlow scalars that nobody wrote.
    """
    if "values" not in outcome:
        return outcome
    values = [np.asarray(value) for value in outcome["values"]]
    shapes = [np.array(value.shape) for value in values if value.ndim > 1]
    return {"values": [*shapes, *_INVARIANTS[op](*values)], "after": []}


def _of_svd(s: np.ndarray, u: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    if u.ndim < 2:
        return [s]
    count = s.shape[-1]
    return [s, (u[..., :count] * s[..., None, :]) @ _adjoint(v[..., :count])]


def _of_qr(q: np.ndarray, r: np.ndarray) -> list[np.ndarray]:
    return [q @ r, np.abs(np.diagonal(r, axis1=-2, axis2=-1))]


def _of_symmetric(e: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    return [e, (v * e[..., None, :]) @ _adjoint(v)] if v.ndim > 1 else [e]


def _of_eig(e: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    ordered = np.take_along_axis(e, np.lexsort((e.imag.round(4), e.real.round(4)), axis=-1), -1)
    return [ordered, (v * e[..., None, :]) @ np.linalg.inv(v)] if v.ndim > 1 else [ordered]


def _adjoint(matrix: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(matrix, -1, -2))


_INVARIANTS: dict[str, Callable[..., list[np.ndarray]]] = {
    "Eig": _of_eig,
    "Qr": _of_qr,
    "SelfAdjointEigV2": _of_symmetric,
    "Svd": _of_svd,
}
