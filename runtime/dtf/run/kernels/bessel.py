"""Kernels of Bessel functions: the ordinary ones J and Y, the modified ones I and K, of the orders 0 and 1.

Owns their formulas, too. No table of fitted constants: near zero a power series or the discrete Fourier transform of
the generating function, far away Hankel's expansion, each where it is exact to the last places of float64, in which
everything is computed.

Source: the NIST Digital Library of Mathematical Functions, chapter 10 (dlmf.nist.gov/10).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.special import in_double

_Elementwise = Callable[[np.ndarray], np.ndarray]

_FAR = 25.0
"""From here on Hankel's expansions have terms below the last place of float64."""
_SAMPLES = 128
"""Points of the Fourier transform: enough for orders up to 64 at arguments up to _FAR."""


def modified_first(order: int, x: np.ndarray) -> np.ndarray:
    """exp(-|x|) I_order(x)."""
    size = np.abs(x)
    near = np.minimum(size, _FAR)
    quarter = near * near / 4
    term = np.ones_like(near) if order == 0 else near / 2
    total = term.copy()
    for k in range(1, 80):
        term = term * quarter / (k * (k + order))
        total = total + term
    far = np.maximum(size, _FAR)
    value = np.where(size < _FAR, total * np.exp(-near), _hankel_sum(order, -far) / np.sqrt(2 * np.pi * far))
    value = np.where(np.isinf(x), 0.0, value)
    return np.where(np.isnan(x), x, np.copysign(value, x) if order else value)


def modified_second(order: int, x: np.ndarray) -> np.ndarray:
    """exp(x) K_order(x) for x > 0; infinite elsewhere."""
    small = np.clip(x, 1e-300, 2.0)
    near = np.exp(small) * _modified_second_series(order, small)
    middle = np.clip(x, 2.0, _FAR)
    far = np.maximum(x, _FAR)
    value = np.where(x <= 2, near, _modified_second_integral(order, middle))
    value = np.where(x > _FAR, _hankel_sum(order, far) * np.sqrt(np.pi / (2 * far)), value)
    return np.where(x <= 0, np.inf, np.where(np.isnan(x), x, value))


def first(order: int, x: np.ndarray) -> np.ndarray:
    """J_order(x)."""
    size = np.abs(x)
    near = _orders(np.minimum(size, _FAR))[..., order]
    cosine, sine, _ = _hankel_waves(order, np.maximum(size, _FAR))
    value = np.where(size < _FAR, near, cosine - sine)
    return np.where(np.isfinite(x), np.where(x < 0, -value, value) if order else value, np.nan)


def second(order: int, x: np.ndarray) -> np.ndarray:
    """Y_order(x) for x > 0; minus infinity elsewhere."""
    near = np.clip(x, 1e-300, _FAR)
    orders = _orders(near)
    logarithm = np.log(near / 2) + np.euler_gamma
    k = np.arange(1, 31)
    signs = np.where(k % 2, -1.0, 1.0) / k
    if order == 0:  # DLMF 10.23.12, and its derivative
        value = 2 / np.pi * (logarithm * orders[..., 0] - 2 * (orders[..., 2 * k] * signs).sum(-1))
    else:
        differences = orders[..., 2 * k - 1] - orders[..., 2 * k + 1]
        value = 2 / np.pi * (logarithm * orders[..., 1] - orders[..., 0] / near + (differences * signs).sum(-1))
    _, __, other = _hankel_waves(order, np.maximum(x, _FAR))
    value = np.where(x < _FAR, value, other)
    return np.where(x <= 0, -np.inf, np.where(np.isfinite(x), value, np.nan))


def _orders(x: np.ndarray) -> np.ndarray:
    """J_0(x) to J_64(x) in a new last dimension: the Fourier coefficients of exp(i x sin t) (DLMF 10.12.1)."""
    angles = 2 * np.pi * np.arange(_SAMPLES) / _SAMPLES
    return np.fft.fft(np.exp(1j * x[..., None] * np.sin(angles)), axis=-1).real[..., : _SAMPLES // 2 + 1] / _SAMPLES


def _hankel_coefficients(order: int, count: int = 24) -> list[float]:
    """a_0, a_1, ... of DLMF 10.17.1."""
    coefficients = [1.0]
    for k in range(1, count):
        coefficients.append(coefficients[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return coefficients


def _hankel_sum(order: int, x: np.ndarray) -> np.ndarray:
    """The sum of a_k x^-k (DLMF 10.40.1 and 10.40.2; of a negative x for I)."""
    total = np.zeros_like(x)
    for coefficient in reversed(_hankel_coefficients(order)):
        total = total / x + coefficient
    return total


def _hankel_waves(order: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The two parts of J and the value of Y at large x (DLMF 10.17.3 and 10.17.4)."""
    even, odd = np.zeros_like(x), np.zeros_like(x)
    coefficients = _hankel_coefficients(order)
    for k in reversed(range(len(coefficients) // 2)):
        even = -even / (x * x) + coefficients[2 * k]
        odd = -odd / (x * x) + coefficients[2 * k + 1]
    odd = odd / x
    phase = x - (order / 2 + 0.25) * np.pi
    scale = np.sqrt(2 / (np.pi * x))
    cosine, sine = np.cos(phase), np.sin(phase)
    return scale * cosine * even, scale * sine * odd, scale * (sine * even + cosine * odd)


def _modified_second_series(order: int, x: np.ndarray) -> np.ndarray:
    """K at small x (DLMF 10.31.1 and 10.31.2)."""
    quarter, logarithm = x * x / 4, np.log(x / 2)
    total = np.zeros_like(x)
    digamma_low = -np.euler_gamma
    for k in range(24):
        weight = quarter**k / (math.factorial(k) * math.factorial(k + order))
        digamma_high = digamma_low + (1 / (k + 1) if order else 0.0)
        total = total + weight * (logarithm - (digamma_low + digamma_high) / 2)
        digamma_low += 1 / (k + 1)
    return -total if order == 0 else 1 / x + x / 2 * total


def _modified_second_integral(order: int, x: np.ndarray) -> np.ndarray:
    """exp(x) K as the integral of exp(-x (cosh t - 1)) cosh(order t) (DLMF 10.32.9), by the trapezoidal rule."""
    t = np.linspace(0, math.acosh(1 + 20), 60)
    values = np.exp(-x[..., None] * (np.cosh(t) - 1)) * np.cosh(order * t)
    values[..., 0] /= 2
    return values.sum(-1) * t[1]


def _unscaled(value: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """value * exp(exponent), in two steps, so that neither factor overflows alone."""
    half = np.exp(exponent / 2)
    return value * half * half


_FUNCTIONS: dict[str, _Elementwise] = {
    "BesselI0e": lambda x: modified_first(0, x),
    "BesselI1e": lambda x: modified_first(1, x),
    # TensorFlow multiplies 0 by an infinite factor at infinity.
    "BesselI0": lambda x: _unscaled(modified_first(0, x), np.abs(x)),
    "BesselI1": lambda x: _unscaled(modified_first(1, x), np.abs(x)),
    "BesselK0e": lambda x: modified_second(0, x),
    "BesselK1e": lambda x: modified_second(1, x),
    "BesselK0": lambda x: _unscaled(modified_second(0, x), -np.maximum(x, 0)),
    "BesselK1": lambda x: _unscaled(modified_second(1, x), -np.maximum(x, 0)),
    "BesselJ0": lambda x: first(0, x),
    "BesselJ1": lambda x: first(1, x),
    "BesselY0": lambda x: second(0, x),
    "BesselY1": lambda x: second(1, x),
}


def _register(op: str, function: _Elementwise) -> None:
    @kernel(op)
    def factory(node: KernelNode) -> Function:
        return lambda x: in_double(function, x)


for _op, _function in _FUNCTIONS.items():
    _register(_op, _function)
