"""Kernels of functions that are defined as integrals: Dawson's, Fresnel's, the exponential integral, Spence's, and the
derivative of the incomplete gamma function by its parameter.

Owns their formulas, which are series near zero and rapidly converging sums elsewhere, in float64.

Source: the NIST Digital Library of Mathematical Functions, chapters 6, 7, 8 and 25 (dlmf.nist.gov).
"""

from __future__ import annotations

import math

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.special import digamma, in_double, lgamma
from dtf.run.value_types import ArrayFunction


def dawson(x: np.ndarray) -> np.ndarray:
    """exp(-x^2) times the integral of exp(t^2) from 0 to x."""
    near = np.clip(x, -1.0, 1.0)
    term = near.copy()
    total = term.copy()
    for k in range(1, 30):
        term = term * (-2 * near * near) / (2 * k + 1)
        total = total + term
    # Rybicki's sum: a Gaussian sampled at odd multiples of a step around x; the error is exp(-(pi / 2 step)^2).
    step = 0.2
    far = np.where(np.abs(x) < 1, 1.0, np.clip(x, -1e8, 1e8))
    middle = 2 * np.round(far / (2 * step))
    sampled = np.zeros_like(far)
    for odd in range(-41, 42, 2):
        position = middle + odd
        sampled = sampled + np.exp(-((far - position * step) ** 2)) / position
    value = np.where(np.abs(x) < 1, total, sampled / math.sqrt(math.pi))
    value = np.where(np.abs(x) > 1e8, 0.5 / x, value)
    return np.where(np.isnan(x), x, value)


def exponential_integral(x: np.ndarray) -> np.ndarray:
    """Ei(x), the principal value of the integral of exp(t)/t from minus infinity to x; NaN below 0."""
    near = np.clip(x, 1e-300, 40.0)
    term, total = np.ones_like(near), np.zeros_like(near)
    for k in range(1, 160):
        term = term * near / k
        total = total + term / k
    far = np.maximum(x, 40.0)
    series, term = np.ones_like(far), np.ones_like(far)
    for k in range(1, 40):
        term = term * k / far
        series = series + term
    value = np.where(x < 40, np.euler_gamma + np.log(near) + total, np.exp(far) / far * series)
    value = np.where(x == 0, -np.inf, value)
    return np.where((x < 0) | np.isinf(x) | np.isnan(x), np.nan, value)


def fresnel_cos(x: np.ndarray) -> np.ndarray:
    """The integral of cos(pi t^2 / 2) from 0 to x."""
    return _fresnel(x, is_sine=False)


def fresnel_sin(x: np.ndarray) -> np.ndarray:
    """The integral of sin(pi t^2 / 2) from 0 to x."""
    return _fresnel(x, is_sine=True)


def spence(x: np.ndarray) -> np.ndarray:
    """Minus the integral of log(t) / (t - 1) from 1 to x, which is the dilogarithm of 1 - x; NaN below 0."""
    inverted = x > 1
    y = np.where(inverted, 1 / np.where(inverted, x, 1.0), np.clip(x, 0.0, 1.0))
    reflected = y < 0.5
    y_safe = np.where(y > 0, y, 1.0)
    z = np.where(reflected, y, 1 - y)  # in [0, 1/2]
    power, total = np.ones_like(z), np.zeros_like(z)
    for k in range(1, 60):
        power = power * z
        total = total + power / (k * k)
    complement = np.pi**2 / 6 - np.where(y > 0, np.log(y_safe) * np.log1p(-np.where(reflected, y, 0.0)), 0.0) - total
    value = np.where(reflected, complement, total)
    value = np.where(inverted, -value - np.log(np.where(inverted, x, 1.0)) ** 2 / 2, value)
    return np.where((x >= 0) & np.isfinite(x), value, np.nan)


def igamma_by_a(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The derivative by a of the regularised lower incomplete gamma function P(a, x); NaN unless a > 0 and x >= 0."""
    valid = (a > 0) & (x >= 0)
    inside = valid & (x > 0) & np.isfinite(x) & np.isfinite(a)
    safe_a, safe_x = np.where(inside, a, 1.0), np.where(inside, x, 1.0)
    logarithm = np.log(safe_x)
    order = safe_a + 1
    term = np.exp(safe_a * logarithm - safe_x - lgamma(order))
    slope = logarithm - digamma(order)
    total = term * slope
    # P is the sum of x^(a+n) exp(-x) / gamma(a+n+1); each term is derived.
    for _ in range(int(min(np.max(safe_x, initial=1.0), 1e5)) + 400):
        term = term * safe_x / order
        slope = slope - 1 / order
        order = order + 1
        total = total + term * slope
        if (np.abs(term * slope) <= 1e-17 * np.abs(total)).all() and (order > safe_x).all():
            break
    return np.where(valid, np.where(inside, total, 0.0), np.nan)


def gamma_quantile_by_a(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """How a number x with the distribution gamma(a, 1) moves with a while its quantile stays: -(dP / da) / (dP / dx).

    P is the lower incomplete gamma function. Both derivatives have the factor exp(-x) x^(a-1) / gamma(a), which is left
    out; the other one, the series for small x or the continued fraction of 1 - P, is differentiated by a complex step.
    """
    valid = (a > 0) & (x >= 0) & np.isfinite(a) & np.isfinite(x)
    a, x = np.broadcast_arrays(np.where(valid, a, 1.0), np.where(valid, np.maximum(x, 1e-300), 1.0))
    is_small = x < a + 1
    stepped = a + 1e-30j
    series = _lower_series(np.where(is_small, stepped, 1.0 + 0j), np.where(is_small, x, 0.5))
    fraction = _upper_fraction(np.where(is_small, 1.0 + 0j, stepped), np.where(is_small, 3.0, x))
    slope = np.log(x) - digamma(a)
    by_a = np.where(
        is_small,
        -(series.real * (slope - 1 / a) + series.imag * 1e30) / a,
        fraction.real * slope + fraction.imag * 1e30,
    )
    return np.where(valid, x * by_a, np.nan)


def _lower_series(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The sum of x^n / ((a + 1) ... (a + n)) over n >= 0."""
    term = np.ones_like(a)
    total = term.copy()
    for n in range(1, _MOST_TERMS):
        term = term * x / (a + n)
        total = total + term
        if (np.abs(term) <= 1e-17 * np.abs(total)).all():
            break
    return total


def _upper_fraction(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """1 / (x + 1 - a - (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))), by Lentz's method."""
    denominator = x + 1 - a
    ratio, inverse = np.full_like(a, 1e300), 1 / denominator
    value = inverse
    for n in range(1, _MOST_TERMS):
        numerator = -n * (n - a)
        denominator = denominator + 2
        inverse = 1 / (denominator + numerator * inverse)
        ratio = denominator + numerator / ratio
        change = ratio * inverse
        value = value * change
        if (np.abs(change - 1) <= 1e-16).all():
            break
    return value


_MOST_TERMS = 2000


def _fresnel(x: np.ndarray, is_sine: bool) -> np.ndarray:
    size = np.abs(x)
    near = np.minimum(size, 1.6)
    square = np.pi / 2 * near * near
    term = near * square if is_sine else near.copy()
    total = term / 3 if is_sine else term.copy()
    first = 1 if is_sine else 0
    for k in range(1, 30):
        power = 2 * k + first
        term = term * -(square**2) / (power * (power - 1))
        total = total + term / (2 * power + 1)
    # The auxiliary functions f and g (DLMF 7.7.10 and 7.7.11), by the trapezoidal rule in u = size * s.
    far = np.clip(size, 1.6, 1e7)
    u = np.arange(-40, 41) * 0.15
    s = u / far[..., None]
    weights = np.exp(-np.pi / 2 * u * u) / (1 + s**4)
    scale = 0.15 * math.sqrt(2) / np.pi / 2 / far
    f, g = 2 * scale * weights.sum(-1) / 2, 2 * scale * (weights * s * s).sum(-1) / 2
    angle = np.pi * np.fmod(far * far / 2, 2.0)
    cosine, sine = np.cos(angle), np.sin(angle)
    tail = f * cosine + g * sine if is_sine else g * cosine - f * sine
    value = np.where(size < 1.6, total, 0.5 - tail)
    value = np.where(size > 1e7, 0.5, value)
    return np.where(np.isnan(x), x, np.copysign(value, x))


def _register(op: str, function: ArrayFunction) -> None:
    @kernel(op)
    def factory(node: KernelNode) -> Function:
        return lambda *arguments: in_double(function, *arguments)


_FUNCTIONS: dict[str, ArrayFunction] = {
    "Dawsn": dawson,
    "Expint": exponential_integral,
    "FresnelCos": fresnel_cos,
    "FresnelSin": fresnel_sin,
    "IgammaGradA": igamma_by_a,
    "RandomGammaGrad": gamma_quantile_by_a,
    "Spence": spence,
}
for _op, _function in _FUNCTIONS.items():
    _register(_op, _function)
