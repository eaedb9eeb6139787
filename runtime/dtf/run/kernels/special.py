"""Special functions that numpy lacks, vectorised: erf, erfc, erfinv, ndtri, lgamma, digamma, polygamma, zeta,
igamma, betainc.

Owns the formulas only: each function takes arrays (or numpy scalars) of one floating dtype and returns that dtype;
the kernels in `math.py` bind them to op names. Tables of fitted constants are avoided: whatever is fitted is fitted
here, once, from a formula, so that every number can be checked. float32 and float64 are computed in their own
precision where that is cheap (erf, erfc) and through float64 elsewhere; float16 and bfloat16 always go through
float32.

Sources: Abramowitz and Stegun chapters 6, 7, 23 and 26; the NIST Digital Library of Mathematical Functions
(dlmf.nist.gov).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from dtf.run.value_types import Array


def erf(x: Array) -> Array:
    """The error function: 2/sqrt(pi) times the integral of exp(-t^2) up to x. Within two units of the last place."""
    return _in_own_precision(_erf, x)


def erfc(x: Array) -> Array:
    """1 - erf(x), with full relative accuracy in the tail (until it underflows)."""
    return _in_own_precision(_erfc, x)


def erfinv(y: Array) -> Array:
    """The x with erf(x) = y; infinite at -1 and 1, NaN outside."""
    return in_double(_erfinv, y)


def ndtri(p: Array) -> Array:
    """The x below which a standard normal variable lies with probability p; infinite at 0 and 1, NaN outside [0, 1]."""
    return in_double(_ndtri, p)


def lgamma(x: Array) -> Array:
    """log |gamma(x)|; infinite at 0, -1, -2, ..."""
    return in_double(_lgamma, x)


def digamma(x: Array) -> Array:
    """The derivative of lgamma; NaN at 0, -1, -2, ..."""
    return in_double(_digamma, x)


def polygamma(order: Array, x: Array) -> Array:
    """The derivative of digamma of an integer order >= 0; NaN for other orders."""
    return in_double(_polygamma, order, x)


def zeta(x: Array, q: Array) -> Array:
    """The Hurwitz zeta function, the sum of (q + k)^-x over k >= 0, for x > 1. It is infinite at x = 1 and at the poles
    q = 0, -1, -2, ...; NaN for x < 1, and for a negative q with an x that is no integer."""
    return in_double(_zeta, x, q)


def igamma(a: Array, x: Array) -> Array:
    """The regularised lower incomplete gamma function P(a, x) for a > 0, x >= 0; NaN elsewhere."""
    return in_double(lambda a, x: _incomplete_gamma(a, x, upper=False), a, x)


def igammac(a: Array, x: Array) -> Array:
    """The regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x) for a > 0, x >= 0; NaN elsewhere."""
    return in_double(lambda a, x: _incomplete_gamma(a, x, upper=True), a, x)


def betainc(a: Array, b: Array, x: Array) -> Array:
    """The regularised incomplete beta function I_x(a, b) for a, b > 0 and 0 <= x <= 1; NaN elsewhere."""
    return in_double(_betainc, a, b, x)


def _in_own_precision(function: Callable[[Array], Array], x: Array) -> Array:
    x = np.asarray(x)
    if x.dtype.itemsize >= 4:
        return function(x)
    return function(x.astype(np.float32)).astype(x.dtype)


def in_double(function: Callable[..., Array], *arguments: Array) -> Array:
    """A float64 function of arguments of any floating dtype, broadcast; the result has the dtype of the first."""
    arrays = [np.asarray(argument) for argument in arguments]
    doubles = np.broadcast_arrays(*[array.astype(np.float64) for array in arrays])
    with np.errstate(all="ignore"):
        return np.asarray(function(*doubles)).astype(arrays[0].dtype, copy=False)


def _polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """The sum of coefficients[k] * x^k, in the dtype of x."""
    result = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result *= x
        result += x.dtype.type(coefficient)
    return result


# -- erf and erfc: the Maclaurin series below 1, exp(-x^2) times a fitted erfcx above --


def _erf(x: Array) -> Array:
    if x.dtype == np.float32:
        return _erf_float32(x)
    return _piecewise(np.abs(x) <= 1, _erf_near_zero, lambda far: np.copysign(1 - _erfc_tail(np.abs(far)), far), x)


def _erf_float32(x: Array) -> Array:
    """One polynomial for all x that matter: in this precision erf is 1 from 3.92 on."""
    x = np.clip(x, np.float32(-4), np.float32(4))
    result = x * _polynomial(x * x * np.float32(1 / 8) - 1, _erf_polynomial())
    return np.where(np.abs(x) > np.float32(3.92), np.sign(x), result)


@functools.cache
def _erf_polynomial() -> tuple[float, ...]:
    """Coefficients of erf(x) / x for |x| <= 4 in the powers of x^2 / 8 - 1, which is in [-1, 1]: error below 1e-8."""
    from numpy.polynomial import chebyshev

    nodes = np.cos((np.arange(40) + 0.5) * (np.pi / 40))
    x = np.sqrt(8 * (nodes + 1))
    values = [math.erf(each) / each for each in x.tolist()]
    return tuple(chebyshev.cheb2poly(chebyshev.chebfit(nodes, values, 15)).tolist())


def _erfc(x: Array) -> Array:
    def away_from_zero(far: Array) -> Array:
        tail = _erfc_tail(np.abs(far))
        return np.where(far < 0, 2 - tail, tail)

    def near_zero(near: Array) -> Array:
        return 1 - _erf_near_zero(near)

    # From 0.5 on, 1 - erf(x) would lose digits; the fit holds from 0.5 upwards.
    return _piecewise(np.abs(x) <= 0.5, near_zero, away_from_zero, x)


def _piecewise(near: Array, if_near: Callable[[Array], Array], if_far: Callable[[Array], Array], x: Array) -> Array:
    """if_near(x) where `near`, else if_far(x), each computed only where it is used."""
    if near.all():
        return if_near(x)
    result = np.empty(x.shape, x.dtype)
    result[near] = if_near(x[near])
    far = ~near
    result[far] = if_far(x[far])
    return result


# erf(x) = x * sum of 2/sqrt(pi) (-1)^k / (k! (2k + 1)) x^2k   (DLMF 7.6.1); 19 terms reach 1e-17 at |x| = 1.
_ERF_SERIES = tuple(2 / math.sqrt(math.pi) * (-1) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(19))


def _erf_near_zero(x: Array) -> Array:
    return x * _polynomial(x * x, _ERF_SERIES[: 11 if x.dtype == np.float32 else 19])


def _erfc_tail(x: Array) -> Array:
    """erfc(x) for x >= 0.5."""
    # x^2 is split so that exp does not magnify its rounding: `coarse` has few enough bits that its square is exact.
    x = np.minimum(x, x.dtype.type(30))
    coarse = np.rint(x * 16) / 16
    return np.exp(-coarse * coarse) * np.exp(-(x - coarse) * (x + coarse)) * _erfcx(x)


def _erfcx(x: Array) -> Array:
    """exp(x^2) erfc(x) for x >= 0.5: a Chebyshev series in (x - 2) / (x + 2), summed by Clenshaw's recurrence."""
    series = _erfcx_series()
    if x.dtype == np.float32:
        series = series[:13]
    t = (x - 2) / (x + 2)
    twice = t + t
    older = np.zeros_like(t)
    newer = np.zeros_like(t)
    for coefficient in series[:0:-1]:
        older, newer = newer, twice * newer - older + t.dtype.type(coefficient)
    return (t * newer - older + t.dtype.type(series[0])) / (1 + 2 * x)


@functools.cache
def _erfcx_series() -> tuple[float, ...]:
    """Chebyshev coefficients of (1 + 2x) erfcx(x) in t = (x - 2) / (x + 2), x >= 0."""
    count = 40
    angles = (np.arange(count) + 0.5) * (np.pi / count)
    t = np.cos(angles)
    x = 2 * (1 + t) / (1 - t)
    values = (1 + 2 * x) * _erfcx_by_quadrature(x)
    coefficients = 2 / count * np.cos(np.outer(np.arange(count), angles)) @ values
    coefficients[0] /= 2
    return tuple(coefficients[:28].tolist())


def _erfcx_by_quadrature(x: Array) -> Array:
    """The trapezoidal rule on DLMF 7.7.1: error below exp(-(pi/h)^2), with the residue of the pole stepped over."""
    h = 0.5
    nodes = (h * (np.arange(14) + 0.5))[:, None]  # half steps, so that no node falls on the pole at x = 0
    sums = (np.exp(-nodes * nodes) / (nodes * nodes + x * x)).sum(axis=0)
    near = np.minimum(x, math.pi / h)
    residue = np.where(x < math.pi / h, 2 * np.exp(near * near) / (1 + np.exp(2 * math.pi * near / h)), 0)
    return 2 * h * x / math.pi * sums + residue


# -- inverses --

_SQRT_PI = math.sqrt(math.pi)


def _erfinv(y: Array) -> Array:
    magnitude = np.abs(y)
    # Below 0.5 Newton's rule on erf itself keeps relative accuracy, above it the tail 1 - |y| (exact there) does.
    small = np.minimum(magnitude, 0.5)
    x = small * (_SQRT_PI / 2)
    for _ in range(5):
        x -= (_erf(x) - small) * (_SQRT_PI / 2) * np.exp(x * x)
    return np.copysign(np.where(magnitude <= 0.5, x, _erfc_inverse(1 - np.maximum(magnitude, 0.5))), y)


def _ndtri(p: Array) -> Array:
    tail = np.minimum(p, 1 - p)
    far = math.sqrt(2) * _erfc_inverse(2 * np.minimum(tail, 0.25))
    near = -math.sqrt(2) * _erfinv(1 - 2 * np.clip(p, 0.25, 0.75))
    return np.where(tail >= 0.25, near, np.where(p < 0.5, -far, far))


def _erfc_inverse(tail: Array) -> Array:
    """The x >= 0 with erfc(x) = tail, for 0 <= tail <= 0.5: Newton's rule on log erfc, which is nearly a parabola."""
    logarithm = np.log(np.where(tail > 0, tail, 0.5))
    x = np.sqrt(np.maximum(-logarithm - np.log(np.sqrt(np.maximum(-logarithm, 1) * math.pi)), 0.2))
    for _ in range(6):
        scaled = _erfcx_any(x)
        x += (np.log(scaled) - x * x - logarithm) * scaled * (_SQRT_PI / 2)
    return np.where(tail > 0, x, np.where(tail == 0, np.inf, np.nan))


def _erfcx_any(x: Array) -> Array:
    return np.where(x < 0.5, np.exp(x * x) * _erfc(np.minimum(x, 0.5)), _erfcx(np.maximum(x, 0.5)))


# -- gamma and its relatives: recurrence up to _ASYMPTOTIC_FROM, then Stirling's series --

_ASYMPTOTIC_FROM = 12.0
# B2, B4, B6, ...
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_STIRLING = tuple(b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1))
_DIGAMMA_SERIES = tuple(b / (2 * k) for k, b in enumerate(_BERNOULLI, 1))


def _lgamma(x: Array) -> Array:
    reflected = x < 0.5
    z = np.where(reflected, 1 - x, x)
    product = np.ones_like(z)
    while (low := z < _ASYMPTOTIC_FROM).any():
        product = np.where(low, product * z, product)
        z = np.where(low, z + 1, z)
    stirling = z * (np.log(z) - 1) - 0.5 * np.log(z / (2 * math.pi)) + _polynomial(1 / (z * z), _STIRLING) / z
    result = stirling - np.log(product)
    result = np.where(np.isinf(z), np.inf, result)
    # sin(pi x) from the distance to the nearest integer: exact zeros at the poles, no loss for a large |x|.
    sine = np.abs(np.sin(math.pi * (x - np.rint(x))))
    other_side = math.log(math.pi) - np.log(sine) - result
    return np.where(reflected, np.where(np.isinf(x) | (sine == 0), np.inf, other_side), result)


def _digamma(x: Array) -> Array:
    reflected = x < 0.5
    z = np.where(reflected, 1 - x, x)
    harmonic = np.zeros_like(z)
    while (low := z < _ASYMPTOTIC_FROM).any():
        harmonic = np.where(low, harmonic + 1 / z, harmonic)
        z = np.where(low, z + 1, z)
    square = 1 / (z * z)
    result = np.log(z) - 0.5 / z - square * _polynomial(square, _DIGAMMA_SERIES) - harmonic
    fraction = x - np.rint(x)
    reflection = result - math.pi / np.tan(math.pi * fraction)
    return np.where(reflected, np.where(fraction == 0, np.nan, reflection), result)


def _polygamma(order: Array, x: Array) -> Array:
    valid = (order >= 0) & (order == np.rint(order))
    sign = np.where(order % 2 == 0, -1.0, 1.0)
    higher = sign * np.exp(_lgamma(order + 1)) * _zeta(order + 1, x)
    return np.where(valid, np.where(order == 0, _digamma(x), higher), np.nan)


def _zeta(x: Array, q: Array) -> Array:
    """Euler and Maclaurin's summation formula (DLMF 25.11.7) from q + 12 on."""
    whole = q == np.rint(q)
    # A negative q only shifts the sum: its first terms are added until q is positive.
    result = np.zeros_like(q)
    base = q.copy()
    for place in np.argwhere((q < 0) & (q > -1e6) & ~whole & (x == np.rint(x))):
        at = tuple(place)
        terms = q[at] + np.arange(np.ceil(-q[at]))
        result[at] = np.power(terms, -x[at]).sum()
        base[at] += len(terms)
    for k in range(12):
        result = result + np.power(base + k, -x)
    base = base + 12
    power = np.power(base, -x)
    result = result + power * base / (x - 1) + power / 2
    factor = x * power / base
    for k, bernoulli in enumerate(_BERNOULLI, 1):
        result = result + factor * bernoulli / math.factorial(2 * k)
        factor = factor * (x + 2 * k - 1) * (x + 2 * k) / (base * base)
    even = (np.fmod(x, 2) == 0) | np.isinf(x)  # only then do both sides of a pole agree
    result = np.where((q <= 0) & whole, np.where(even, np.inf, np.nan), result)
    result = np.where(q == np.inf, 0.0, result)
    result = np.where((q <= 0) & ~whole & (x != np.rint(x)), np.nan, result)
    result = np.where(np.isinf(x) & (q >= 1), np.where(q == 1, 1.0, 0.0), result)
    return np.where(x == 1, np.inf, np.where((x < 1) | np.isnan(x) | np.isnan(q), np.nan, result))


# -- incomplete functions: a series near the origin, a continued fraction beyond --

_TINY = 1e-300
_ITERATIONS_MAX = 4000


def _incomplete_gamma(a: Array, x: Array, upper: bool) -> Array:
    valid = (a > 0) & (x >= 0)
    inside = valid & (x > 0) & np.isfinite(x) & np.isfinite(a)
    safe_a = np.where(inside, a, 1.0)
    safe_x = np.where(inside, x, 1.0)
    by_series = safe_x < safe_a + 1
    weight = np.exp(safe_a * np.log(safe_x) - safe_x - _lgamma(safe_a))
    lower_part = weight * _lower_gamma_series(safe_a, np.where(by_series, safe_x, 0.5 * safe_a))
    upper_part = weight * _upper_gamma_fraction(safe_a, np.where(by_series, safe_a + 1, safe_x))
    if upper:
        result = np.where(by_series, 1 - lower_part, upper_part)
    else:
        result = np.where(by_series, lower_part, 1 - upper_part)
    reaches_all = (x > 0) & ~inside & ~np.isinf(a)  # x = inf
    at_edge = np.where(reaches_all != upper, 1.0, 0.0)
    result = np.where(valid, np.where(inside, result, at_edge), np.nan)
    result = np.where(valid & np.isinf(x), 0.0 if upper else 1.0, result)
    return result if upper else np.where((x == 0) & ~np.isnan(a), 0.0, result)


def _lower_gamma_series(a: Array, x: Array) -> Array:
    """The sum of x^k / (a (a+1) ... (a+k)) (DLMF 8.11.4)."""
    term = 1 / a
    total = term
    for k in range(1, _ITERATIONS_MAX):
        term = term * x / (a + k)
        total = total + term
        if (term <= total * 1e-17).all():
            break
    return total


def _upper_gamma_fraction(a: Array, x: Array) -> Array:
    """gamma(a, x) exp(x) x^-a by its continued fraction (DLMF 8.9.2), evaluated by Lentz's method."""
    return _lentz(x + 1 - a, lambda k: -k * (k - a), lambda k: x + 2 * k + 1 - a)


def _betainc(a: Array, b: Array, x: Array) -> Array:
    valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    inside = valid & (x > 0) & (x < 1)
    # The continued fraction (DLMF 8.17.22) converges fast below the mean; above it I_x(a, b) = 1 - I_1-x(b, a) helps.
    swapped = inside & (x > (a + 1) / (a + b + 2))
    p = np.where(inside, np.where(swapped, b, a), 1.0)
    q = np.where(inside, np.where(swapped, a, b), 1.0)
    z = np.where(inside, np.where(swapped, 1 - x, x), 0.25)

    def numerator(k: int) -> Array:
        m = k // 2
        if k % 2 == 0:
            return m * (q - m) * z / ((p + 2 * m - 1) * (p + 2 * m))
        return -(p + m) * (p + q + m) * z / ((p + 2 * m) * (p + 2 * m + 1))

    one = np.ones_like(z)
    fraction = _lentz(one, numerator, lambda k: one)
    weight = np.exp(p * np.log(z) + q * np.log1p(-z) + _lgamma(p + q) - _lgamma(p) - _lgamma(q)) / p
    result = np.where(swapped, 1 - weight * fraction, weight * fraction)
    return np.where(valid, np.where(inside, result, x), np.nan)


def _lentz(first: Array, numerator: Callable[[int], Array], denominator: Callable[[int], Array]) -> Array:
    """1 / (first + numerator(1) / (denominator(1) + numerator(2) / (denominator(2) + ...)))."""
    d = 1 / np.where(first == 0, _TINY, first)
    c = np.full_like(first, 1 / _TINY)
    total = d
    for k in range(1, _ITERATIONS_MAX):
        above = numerator(k)
        below = denominator(k)
        d = below + above * d
        d = 1 / np.where(d == 0, _TINY, d)
        c = below + above / c
        c = np.where(c == 0, _TINY, c)
        step = c * d
        total = total * step
        if (np.abs(step - 1) <= 4e-16).all():
            break
    return total
