"""Whether two outcomes of one job are the same, and the tolerances.

Values are the same when dtypes, shapes and elements are; errors when their codes are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# What two right implementations may differ by, relative to the wanted value and absolute. TensorFlow computes float32
# functions by polynomials that are right to a few units in the last place, and sums in another order.
TOLERANCES: dict[str, tuple[float, float]] = {
    "float64": (1e-9, 1e-11),
    "float32": (2e-5, 1e-6),
    "float16": (4e-3, 1e-3),
    "bfloat16": (3e-2, 8e-3),
    "complex128": (1e-9, 1e-11),
    "complex64": (3e-5, 1e-6),
}


def difference(ours: dict[str, Any], theirs: dict[str, Any], factor: float = 1.0) -> str | None:
    """What dtf's outcome differs in from TensorFlow's; None where they are the same.

    `factor` widens the tolerances.
    """
    our_error, their_error = ours.get("error"), theirs.get("error")
    in_gradients = [error is not None and error[0].endswith("gradients") for error in (our_error, their_error)]
    if any(error is not None and not late for error, late in zip((our_error, their_error), in_gradients, strict=True)):
        if our_error is None or in_gradients[0]:
            return f"dtf gives {_short(ours['values'])}; TensorFlow {_error(their_error)}"
        if their_error is None or in_gradients[1]:
            return f"dtf {_error(our_error)}; TensorFlow gives {_short(theirs['values'])}"
        if our_error[1] != their_error[1]:
            return f"dtf {_error(our_error)}; TensorFlow {_error(their_error)}"
        return None
    for key in ("values", "after"):
        for at, (value, wanted) in enumerate(zip(ours[key], theirs[key], strict=True)):
            found = _array_difference(value, wanted, factor)
            if found:
                return f"{key}[{at}]: {found}"
    if in_gradients[1]:  # TensorFlow has no such gradient, or it fails there
        return None
    if in_gradients[0]:
        return f"dtf {_error(our_error)}; TensorFlow has the gradients {_short(theirs.get('gradients'))}"
    for at, (value, wanted) in enumerate(zip(ours.get("gradients", []), theirs.get("gradients", []), strict=True)):
        if (value is None) != (wanted is None):
            if not np.any(wanted if value is None else value):
                continue  # not connected, or connected with a gradient of 0: the same to whoever adds it up
            return f"gradient {at}: dtf {_short(value)}; TensorFlow {_short(wanted)}"
        found = value is not None and _array_difference(value, wanted, 4 * factor)
        if found:
            return f"gradient {at}: {found}"
    return None


def _array_difference(value: np.ndarray, wanted: np.ndarray, factor: float) -> str | None:
    if value.dtype != wanted.dtype or value.shape != wanted.shape:
        return f"dtf {value.dtype}{list(value.shape)}; TensorFlow {wanted.dtype}{list(wanted.shape)}"
    if value.dtype.name not in TOLERANCES:
        same = np.asarray(value == wanted)
    else:
        rtol, atol = (factor * tolerance for tolerance in TOLERANCES[value.dtype.name])
        wide = np.complex128 if value.dtype.kind == "c" else np.float64
        with np.errstate(invalid="ignore"):  # a signalling NaN, as uninitialised memory may hold
            a, b = value.astype(wide), wanted.astype(wide)
        with np.errstate(all="ignore"):
            same = np.isclose(a, b, rtol, atol, equal_nan=True)
            if value.dtype.kind == "c":
                # Infinite or undefined parts: which of the parts says so is left open by C99 and by both.
                same |= ~np.isfinite(a) & ~np.isfinite(b)
    if same.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~same)[0]) if same.ndim else ()
    count = int(np.count_nonzero(~same))
    return f"{count} of {same.size} differ, at {list(at)} dtf {value[at]!r}, TensorFlow {wanted[at]!r}"


def _error(error: Any) -> str:
    phase, code, message = error
    return f"fails ({phase}, {code}): {message[:200]!r}"


def _short(values: Any) -> str:
    if values is None:
        return "nothing"
    if isinstance(values, np.ndarray):
        return f"{values.dtype}{list(values.shape)}"
    return ", ".join(_short(value) for value in values)
