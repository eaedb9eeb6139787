"""Cases of Bessel functions and of functions that are defined as integrals.

Expected values are integrals by Simpson's rule, or derivatives of one function that must be another.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from dtf.run.kernels.special import igamma
from tests.runtime.op_cases import Case

x = np.array([[-31.0, -7.5, -0.3, 0.4], [1.5, 3.0, 24.0, 45.0]])
moderate = np.array([-7.5, -2.0, -0.3, 0.4, 1.5, 3.0, 8.0])
positive = np.array([0.1, 0.7, 1.9, 2.1, 5.0, 24.0, 30.0])


def integral(function, low, high, count=20000):
    """Simpson's rule from `low` to `high`, arrays that broadcast."""
    nodes = np.linspace(low, high, count + 1, axis=-1)
    weights = np.where(np.arange(count + 1) % 2, 4.0, 2.0)
    weights[[0, -1]] = 1
    return (function(nodes) * weights).sum(-1) * (nodes[..., 1] - nodes[..., 0]) / 3


def bessel_j(order):
    return lambda x: integral(lambda t: np.cos(order * t - x[..., None] * np.sin(t)), np.zeros_like(x), np.pi) / np.pi


def bessel_y(order):
    def value(x):
        wave = integral(lambda t: np.sin(x[..., None] * np.sin(t) - order * t), np.zeros_like(x), np.pi) / np.pi
        sign = -1.0 if order else 1.0
        growing = lambda t: (np.exp(order * t) + sign * np.exp(-order * t)) * np.exp(-x[..., None] * np.sinh(t))  # noqa: E731
        return wave - integral(growing, np.zeros_like(x), 9.0) / np.pi

    return value


def bessel_i(order, scaled=False):
    def value(x):
        exponent = lambda t: x[..., None] * np.cos(t) - (np.abs(x)[..., None] if scaled else 0)  # noqa: E731
        return integral(lambda t: np.exp(exponent(t)) * np.cos(order * t), np.zeros_like(x), np.pi) / np.pi

    return value


def bessel_k(order, scaled=False):
    def value(x):
        exponent = lambda t: -x[..., None] * (np.cosh(t) - scaled)  # noqa: E731
        return integral(lambda t: np.exp(exponent(t)) * np.cosh(order * t), np.zeros_like(x), 9.0)

    return value


def from_zero(function):
    return lambda x: integral(function, np.zeros_like(x), x)


CASES = [
    Case("BesselI0", [moderate], expect=bessel_i(0), grad=True),
    Case("BesselI0e", [x], expect=bessel_i(0, scaled=True), grad=True),
    Case("BesselI0e", [x.astype(ml_dtypes.bfloat16)], expect=lambda x: bessel_i(0, scaled=True)(x.astype(float)),
         atol=1e-2, name="bfloat16"),
    Case("BesselI1", [moderate], expect=bessel_i(1), grad=True),
    Case("BesselI1e", [x], expect=bessel_i(1, scaled=True), grad=True),
    Case("BesselJ0", [x], expect=bessel_j(0), grad=True),
    Case("BesselJ1", [x], expect=bessel_j(1), grad=True),
    Case("BesselY0", [positive], expect=bessel_y(0), grad=True),
    Case("BesselY1", [positive], expect=bessel_y(1), grad=True),
    Case("BesselK0", [positive], expect=bessel_k(0), grad=True),
    Case("BesselK0e", [positive], expect=bessel_k(0, scaled=True), grad=True),
    Case("BesselK1", [positive], expect=bessel_k(1), grad=True),
    Case("BesselK1e", [positive], expect=bessel_k(1, scaled=True), grad=True),
    Case("BesselK1", [np.array([0.0, -1, np.nan])], expect=np.array([np.inf, np.inf, np.nan]), name="not_positive"),
    Case("BesselY0", [np.array([0.0, -1, np.nan])], expect=np.array([-np.inf, -np.inf, np.nan]), name="not_positive"),
    Case("Dawsn", [moderate], expect=lambda x: np.exp(-x * x) * from_zero(lambda t: np.exp(t * t))(x), grad=True,
         rtol=1e-4),
    Case("Expint", [np.minimum(positive, 5.0)], expect=lambda x: np.euler_gamma + np.log(x) + from_zero(
        lambda t: np.where(t == 0, 1, np.expm1(t) / np.where(t == 0, 1, t)))(x), grad=True),
    Case("FresnelCos", [moderate], expect=from_zero(lambda t: np.cos(math.pi * t * t / 2)), grad=True),
    Case("FresnelSin", [moderate], expect=from_zero(lambda t: np.sin(math.pi * t * t / 2)), grad=True),
    Case("Spence", [positive], grad=True, expect=lambda x: -integral(
        lambda t: np.where(t == 1, 1, np.log(t) / np.where(t == 1, 1, t - 1)), np.ones_like(x), x)),
    Case("Spence", [np.array([0.0, 1.0, -1.0])], expect=np.array([math.pi**2 / 6, 0, np.nan]), name="edges"),
    Case("IgammaGradA", [np.array([0.5, 1.0, 4.0]), np.array([0.5, 3.0, 4.0])],
         expect=lambda a, x: (igamma(a + 1e-5, x) - igamma(a - 1e-5, x)) / 2e-5, atol=1e-5),
]  # fmt: skip
