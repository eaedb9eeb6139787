"""Kernels that draw random numbers.

Each node has a generator of its own per session (Philox, keyed by the op's two seeds): the same op in a new session
repeats its stream, ops with other seeds draw others, and two seeds of zero draw what nobody can repeat. The streams
differ from TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtf.run.kernels import KernelNode, kernel
from dtf.run.kernels.arguments import invalid
from dtf.run.step import StepContext

Array = Any  # an ndarray or a numpy scalar
Draw = Callable[..., Any]  # draw(generator, *inputs) -> array


def _drawing(*ops: str) -> Callable[[Callable[[KernelNode], Draw]], Callable[[KernelNode], Draw]]:
    """Registers a factory of draw(generator, *inputs); the generator is kept per session and node."""

    def register(factory: Callable[[KernelNode], Draw]) -> Callable[[KernelNode], Draw]:
        @kernel(*ops, stateful=True)
        def with_generator(node: KernelNode) -> Callable[..., Any]:
            draw = factory(node)
            name, seed, seed2 = node.name, node.attr("seed"), node.attr("seed2")

            def run(step: StepContext, *inputs: Array) -> Any:
                return draw(step.session.node_state(name, lambda: _generator(seed, seed2)), *inputs)

            return run

        return factory

    return register


def _generator(seed: int, seed2: int) -> np.random.Generator:
    if seed == 0 and seed2 == 0:
        return np.random.Generator(np.random.Philox())
    return np.random.Generator(np.random.Philox(key=_key(seed, seed2)))


def _key(seed: int, seed2: int) -> np.ndarray:
    return np.array([seed % 2**64, seed2 % 2**64], np.uint64)


def _sizes(shape: Array) -> tuple[int, ...]:
    if shape.ndim != 1:
        raise invalid(f"shape must be a vector of {{int32,int64}}, got shape {list(shape.shape)}")
    sizes = tuple(shape.tolist())
    if any(size < 0 for size in sizes):
        raise invalid(f"Dimension {min(sizes)} must be >= 0")
    return sizes


# -- uniform and normal; the stateless ops share the formulas and make their generator from the seed input --


def _uniform(generator: np.random.Generator, sizes: tuple[int, ...], dtype: np.dtype) -> Array:
    """In [0, 1). Half precision draws its significand's bits: rounding a finer number could reach 1."""
    if dtype.itemsize >= 4:
        return generator.random(sizes, dtype)
    steps = 1 << (10 if dtype == np.float16 else 7)
    return (generator.integers(0, steps, sizes, np.int32).astype(np.float32) / steps).astype(dtype)


def _normal(generator: np.random.Generator, sizes: tuple[int, ...], dtype: np.dtype) -> Array:
    if dtype.itemsize >= 4:
        return generator.standard_normal(sizes, dtype)
    return generator.standard_normal(sizes, np.float32).astype(dtype)


def _truncated_normal(generator: np.random.Generator, sizes: tuple[int, ...], dtype: np.dtype) -> Array:
    """Standard normal, drawn again where it is two or more standard deviations away from 0."""
    wide = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
    values = generator.standard_normal(int(np.prod(sizes, dtype=np.int64)), wide)
    (outside,) = np.nonzero(np.abs(values) >= 2)
    while outside.size:
        again = generator.standard_normal(outside.size, wide)
        values[outside] = again
        outside = outside[np.abs(again) >= 2]
    return values.reshape(sizes).astype(dtype, copy=False)


for _op, _formula in {
    "RandomUniform": _uniform,
    "RandomStandardNormal": _normal,
    "TruncatedNormal": _truncated_normal,
}.items():

    def _of_shape(node: KernelNode, formula: Draw = _formula) -> Draw:
        dtype = np.dtype(node.attr("dtype").as_numpy_dtype)
        return lambda generator, shape: formula(generator, _sizes(shape), dtype)

    _drawing(_op)(_of_shape)

for _op, _formula in {
    "StatelessRandomUniform": _uniform,
    "StatelessRandomNormal": _normal,
    "StatelessTruncatedNormal": _truncated_normal,
}.items():

    def _stateless(node: KernelNode, formula: Draw = _formula) -> Callable[..., Any]:
        dtype = np.dtype(node.attr("dtype").as_numpy_dtype)

        def run(shape: Array, seed: Array) -> Array:
            if seed.shape != (2,):
                raise invalid(f"seed must have shape [2], not {list(seed.shape)}")
            return formula(np.random.Generator(np.random.Philox(key=_key(*seed.tolist()))), _sizes(shape), dtype)

        return run

    kernel(_op)(_stateless)


@_drawing("RandomUniformInt")
def _uniform_int(node: KernelNode) -> Draw:
    dtype = node.attr("Tout").as_numpy_dtype

    def draw(generator: np.random.Generator, shape: Array, low: Array, high: Array) -> Array:
        for name, bound in (("minval", low), ("maxval", high)):
            if bound.ndim:
                raise invalid(f"{name} must be 0-D, got shape {list(bound.shape)}")
        sizes = _sizes(shape)
        if 0 in sizes:
            return np.empty(sizes, dtype)
        if low >= high:
            raise invalid(f"Need minval < maxval, got {low} >= {high}")
        return generator.integers(low, high, sizes, dtype)

    return draw


# -- shuffling and sampling --


@_drawing("RandomShuffle")
def _shuffle(node: KernelNode) -> Draw:
    def draw(generator: np.random.Generator, value: Array) -> Array:
        if value.ndim == 0 or len(value) < 2:
            return value
        return value[generator.permutation(len(value))]

    return draw


@_drawing("Multinomial")
def _multinomial(node: KernelNode) -> Draw:
    dtype = node.attr("output_dtype").as_numpy_dtype

    def draw(generator: np.random.Generator, logits: Array, num_samples: Array) -> np.ndarray:
        count = int(num_samples)
        if logits.ndim != 2:
            raise invalid(f"logits should be a matrix, got shape {list(logits.shape)}")
        if count < 0:
            raise invalid(f"num_samples should be nonnegative, got {count}")
        batch, classes = logits.shape
        if not classes and batch and count:
            raise invalid("num_classes should be positive, got 0")
        samples = np.empty((batch, count), dtype)
        scaled = logits.astype(np.float64)
        for row in range(batch):
            finite = np.isfinite(scaled[row])  # a class with an infinite or NaN logit is never drawn
            largest = scaled[row][finite].max(initial=-np.inf)
            weights = np.where(finite, np.exp(scaled[row] - largest), 0)
            cumulative = np.cumsum(weights)
            drawn = np.searchsorted(cumulative, generator.random(count) * cumulative[-1], side="right")
            samples[row] = np.minimum(drawn, classes - 1)
        return samples

    return draw


@_drawing("RandomGamma")
def _gamma(node: KernelNode) -> Draw:
    def draw(generator: np.random.Generator, shape: Array, alpha: Array) -> Array:
        sizes = _sizes(shape) + np.shape(alpha)
        return np.asarray(generator.standard_gamma(np.asarray(alpha, np.float64), sizes)).astype(alpha.dtype)

    return draw


@_drawing("RandomPoisson", "RandomPoissonV2")
def _poisson(node: KernelNode) -> Draw:
    dtype = node.attr("dtype").as_numpy_dtype

    def draw(generator: np.random.Generator, shape: Array, rate: Array) -> Array:
        sizes = _sizes(shape) + np.shape(rate)
        return np.asarray(generator.poisson(np.asarray(rate, np.float64), sizes)).astype(dtype)

    return draw
