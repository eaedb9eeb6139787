"""Kernels that draw random numbers.

A seeded op draws TensorFlow's own numbers, from a stream per session and node (`run/lib/philox`): the same op in a new
session repeats them. Two seeds of zero ask for what nobody can repeat, which numpy draws faster. Poisson and binomial
numbers, and those of ParameterizedTruncatedNormal, come from numpy always; they are repeatable, but not TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, room
from dtf.run.lib.philox import PhiloxDraws, scrambled_seed
from dtf.run.value_types import Array, ArrayFunction, NumpyType

Draws: TypeAlias = "PhiloxDraws | UnseededDraws"
Draw: TypeAlias = ArrayFunction
"""draw(draws, *inputs)."""
_LIMIT64 = 1 << 64


def drawing(
    *ops: str, make: Callable[[int, int], Draws | np.random.Generator] | None = None
) -> Callable[[Callable[[KernelNode], Draw]], Callable[[KernelNode], Draw]]:
    """Registers a factory of draw(draws, *inputs); the draws are kept per session and node.

    make: what makes the draws of the two seeds; TensorFlow's stream by default.
    """

    def register(factory: Callable[[KernelNode], Draw]) -> Callable[[KernelNode], Draw]:
        @kernel(*ops, stateful=True)
        def with_draws(node: KernelNode) -> Function:
            draw = factory(node)
            name, seed, seed2 = node.name, node.attr("seed"), node.attr("seed2")
            new = make or _draws

            def run(step: StepContext, *inputs: Array) -> Array:
                return draw(step.session.node_state(name, lambda: new(seed, seed2)), *inputs)

            return run

        return factory

    return register


def _draws(seed: int, seed2: int) -> Draws:
    return UnseededDraws() if seed == 0 and seed2 == 0 else PhiloxDraws.of_seeds(seed, seed2)


def seeded_draws(seed: int, seed2: int) -> PhiloxDraws:
    """TensorFlow's stream, from random seeds where both are zero."""
    if seed == 0 and seed2 == 0:
        seed, seed2 = np.random.default_rng().integers(1, 1 << 62, 2).tolist()
    return PhiloxDraws.of_seeds(seed, seed2)


def _numpy_generator(seed: int, seed2: int) -> np.random.Generator:
    if seed == 0 and seed2 == 0:
        return np.random.Generator(np.random.Philox())
    return np.random.Generator(np.random.Philox(key=np.array([seed % _LIMIT64, seed2 % _LIMIT64], np.uint64)))


class UnseededDraws:
    """What `PhiloxDraws` offers, from numpy's generator and nobody's seed."""

    def __init__(self) -> None:
        self._generator = np.random.Generator(np.random.Philox())

    def uniform(self, sizes: tuple[int, ...], dtype: np.dtype) -> Array:
        """In [0, 1). Half precision draws its significand's bits: rounding a finer number could reach 1."""
        if dtype.itemsize >= 4:
            return self._generator.random(sizes, dtype)
        steps = 1 << (10 if dtype == np.float16 else 7)
        return (self._generator.integers(0, steps, sizes, np.int32).astype(np.float32) / steps).astype(dtype)

    def normal(self, sizes: tuple[int, ...], dtype: np.dtype) -> Array:
        """Standard normal."""
        if dtype.itemsize >= 4:
            return self._generator.standard_normal(sizes, dtype)
        return self._generator.standard_normal(sizes, np.float32).astype(dtype)

    def truncated_normal(self, sizes: tuple[int, ...], dtype: np.dtype) -> Array:
        """Standard normal, drawn again where it is two or more standard deviations away from 0."""
        wide = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
        values = self._generator.standard_normal(int(np.prod(sizes, dtype=np.int64)), wide)
        (outside,) = np.nonzero(np.abs(values) >= 2)
        while outside.size:
            again = self._generator.standard_normal(outside.size, wide)
            values[outside] = again
            outside = outside[np.abs(again) >= 2]
        return values.reshape(sizes).astype(dtype, copy=False)

    def integers(self, low: int, high: int, sizes: tuple[int, ...], dtype: NumpyType) -> Array:
        """In [low, high)."""
        return self._generator.integers(low, high, sizes, dtype)

    def doubles(self, count: int, reserved: int | None = None) -> Array:
        """`count` numbers in [0, 1)."""
        return self._generator.random(count)

    def permutation(self, count: int) -> Array:
        """The numbers below `count` in random order."""
        return self._generator.permutation(count)

    def gamma(self, sizes: tuple[int, ...], alpha: Array) -> Array:
        """Gamma(alpha, 1), [*sizes, *alpha.shape]."""
        drawn = self._generator.standard_gamma(alpha.astype(np.float64), (*sizes, *alpha.shape))
        return np.asarray(drawn).astype(alpha.dtype)


def sizes_of(shape: Array) -> tuple[int, ...]:
    """A shape tensor as a tuple."""
    if shape.ndim != 1:
        raise invalid(f"shape must be a vector of {{int32,int64}}, got shape {list(shape.shape)}")
    sizes = tuple(shape.tolist())
    if any(size < 0 for size in sizes):
        raise invalid(f"Dimension {min(sizes)} must be >= 0")
    room(sizes, np.float32)
    return sizes


# -- uniform and normal --

for _op, _method in {
    "RandomUniform": "uniform",
    "RandomStandardNormal": "normal",
    "TruncatedNormal": "truncated_normal",
}.items():

    def _of_shape(node: KernelNode, method: str = _method) -> Draw:
        dtype = np.dtype(node.attr("dtype").as_numpy_dtype)
        return lambda draws, shape: getattr(draws, method)(sizes_of(shape), dtype)

    drawing(_op)(_of_shape)


@drawing("RandomUniformInt")
def _uniform_int(node: KernelNode) -> Draw:
    dtype = node.attr("Tout").as_numpy_dtype
    return lambda draws, shape, low, high: integers_between(draws, shape, low, high, dtype)


def integers_between(draws: Draws, shape: Array, low: Array, high: Array, dtype: NumpyType) -> Array:
    """Integers in [low, high), which must be scalars."""
    for name, bound in (("minval", low), ("maxval", high)):
        if bound.ndim:
            raise invalid(f"{name} must be 0-D, got shape {list(bound.shape)}")
    sizes = sizes_of(shape)
    if 0 in sizes:
        return np.empty(sizes, dtype)
    if low >= high:
        raise invalid(f"Need minval < maxval, got {low} >= {high}")
    return draws.integers(int(low), int(high), sizes, dtype)


# -- shuffling and sampling --


@drawing("RandomShuffle")
def _shuffle(node: KernelNode) -> Draw:
    return shuffled


def shuffled(draws: Draws, value: Array) -> Array:
    """The rows of `value` in random order."""
    if value.ndim == 0 or len(value) < 2:
        return value
    return value[draws.permutation(len(value))]


@drawing("Multinomial")
def _multinomial(node: KernelNode) -> Draw:
    dtype = node.attr("output_dtype").as_numpy_dtype
    return lambda draws, logits, num_samples: multinomial(draws, logits, num_samples, dtype)


def multinomial(draws: Draws, logits: Array, num_samples: Array, dtype: NumpyType) -> np.ndarray:
    """Class numbers, [batch, num_samples], drawn with the probabilities softmax(logits)."""
    count = int(num_samples)
    if logits.ndim != 2:
        raise invalid(f"logits should be a matrix, got shape {list(logits.shape)}")
    if count < 0:
        raise invalid(f"num_samples should be nonnegative, got {count}")
    batch, classes = logits.shape
    if not classes and batch and count:
        raise invalid("num_classes should be positive, got 0")
    samples = np.empty(room((batch, count), np.float64), dtype)
    scaled = logits.astype(np.float64)
    uniform = draws.doubles(batch * count, batch * (-(-count // 4) * 4) * _RESERVED_PER_SAMPLE).reshape(batch, count)
    for row in range(batch):
        finite = np.isfinite(scaled[row])  # a class with an infinite or NaN logit is never drawn
        largest = scaled[row][finite].max(initial=-np.inf)
        weights = np.exp(np.where(finite, scaled[row], -np.inf) - largest) if finite.any() else np.zeros(classes)
        cumulative = np.cumsum(weights)
        drawn = np.searchsorted(cumulative, uniform[row] * cumulative[-1:], side="right")
        samples[row] = np.minimum(drawn, classes - 1)
    return samples


_RESERVED_PER_SAMPLE = 512


@drawing("RandomGamma")
def _gamma(node: KernelNode) -> Draw:
    return lambda draws, shape, alpha: draws.gamma(sizes_of(shape), np.asarray(alpha))


@drawing("RandomPoisson", "RandomPoissonV2", make=_numpy_generator)
def _poisson(node: KernelNode) -> Draw:
    dtype = node.attr("dtype").as_numpy_dtype
    return lambda generator, shape, rate: poisson(generator, sizes_of(shape) + np.shape(rate), rate, dtype)


def poisson(generator: np.random.Generator, sizes: tuple[int, ...], rate: Array, dtype: NumpyType) -> Array:
    """Poisson distributed numbers; NaN (or its integer) where a rate is negative or no number."""
    rates = np.asarray(rate, np.float64)
    valid = np.isfinite(rates) & (rates >= 0)
    drawn = np.asarray(generator.poisson(np.where(valid, rates, 0), sizes)).astype(dtype)
    if valid.all() or np.dtype(dtype).kind in "iu":
        return drawn
    return np.where(valid, drawn, np.array(np.nan, dtype))


@drawing("ParameterizedTruncatedNormal", make=_numpy_generator)
def _parameterized_truncated_normal(node: KernelNode) -> Draw:
    def draw(generator: np.random.Generator, shape: Array, *parameters: Array) -> Array:
        sizes = sizes_of(shape)
        if not sizes:
            raise invalid("Shape tensor must not be empty, got []")
        for name, value in zip(("means", "stdevs", "minvals", "maxvals"), parameters, strict=True):
            if value.ndim > 1 or (value.size != 1 and value.shape != sizes[:1]):
                raise invalid(f"Input {name} should have length 1 or shape[0], got shape: {list(value.shape)}")
        columns = [np.broadcast_to(value.ravel(), sizes[:1]).astype(np.float64) for value in parameters]
        mean, deviation, low, high = (column.reshape(-1, *[1] * (len(sizes) - 1)) for column in columns)
        low, high = (low - mean) / deviation, (high - mean) / deviation
        low, high = np.minimum(low, high), np.maximum(low, high)
        between = _normal_between(generator, np.broadcast_to(low, sizes).ravel(), np.broadcast_to(high, sizes).ravel())
        return (between.reshape(sizes) * deviation + mean).astype(parameters[0].dtype)

    return draw


def _normal_between(generator: np.random.Generator, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Standard normal numbers in [low, high], by Robert's three ways of rejection (Statistics and Computing, 1995)."""
    mirrored = high < 0
    low, high = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    rate = (np.maximum(low, 0) + np.sqrt(np.maximum(low, 0) ** 2 + 4)) / 2
    in_tail, is_narrow = low > 0.5, high - low < 1
    out = np.empty(low.shape)
    lanes = np.arange(low.size)
    while lanes.size:
        a, b, narrow, tail = low[lanes], high[lanes], is_narrow[lanes], in_tail[lanes]
        chance = generator.random((2, lanes.size))
        flat = a + np.where(narrow, b - a, 0) * chance[0]
        decaying = a - np.log1p(-chance[0]) / rate[lanes]
        tried = np.where(narrow, flat, np.where(tail, decaying, generator.standard_normal(lanes.size)))
        peak = np.clip(0, a, b)
        acceptance = np.where(
            narrow, np.exp((peak**2 - tried**2) / 2), np.where(tail, np.exp(-((tried - rate[lanes]) ** 2) / 2), 1)
        )
        good = (chance[1] <= acceptance) & (tried >= a) & (tried <= b)
        out[lanes[good]] = tried[good]
        lanes = lanes[~good]
    return np.where(mirrored, -out, out)


# -- stateless ops: their stream is given, by two seeds or by a key and a counter --

for _op, _method in {
    "StatelessRandomUniform": "uniform",
    "StatelessRandomNormal": "normal",
    "StatelessTruncatedNormal": "truncated_normal",
    "StatelessRandomUniformFullInt": "full_integers",
}.items():

    def _of_seed(node: KernelNode, method: str = _method) -> Function:
        dtype = np.dtype(node.attr("dtype").as_numpy_dtype)
        return lambda shape, seed: getattr(_of_seeds(seed), method)(sizes_of(shape), dtype)

    def _of_key(node: KernelNode, method: str = _method) -> Function:
        dtype = np.dtype(node.attr("dtype").as_numpy_dtype)
        return lambda shape, *stream: getattr(_of_stream(*stream), method)(sizes_of(shape), dtype)

    kernel(_op)(_of_seed)
    kernel(f"{_op}V2" if _op != "StatelessTruncatedNormal" else "StatelessTruncatedNormalV2")(_of_key)


def _of_seeds(seed: Array) -> PhiloxDraws:
    if seed.shape != (2,):
        raise invalid(f"seed must have shape [2], not {list(seed.shape)}")
    return PhiloxDraws(*scrambled_seed(*seed.tolist()))


def _of_stream(key: Array, counter: Array, algorithm: Array) -> PhiloxDraws:
    if int(algorithm) not in (_PHILOX, _AUTOMATIC):
        raise invalid(f"Unsupported algorithm id: {int(algorithm)}; only Philox (1) is supported")
    if key.shape != (1,) or counter.ndim != 1 or counter.size < 2:
        raise invalid("key must have shape [1], and counter must be a vector with length at least 2")
    first, second = counter[:2].tolist()
    return PhiloxDraws(int(key[0]), first | second << 64)


_PHILOX, _AUTOMATIC = 1, 3


@kernel("StatelessRandomUniformInt")
def _(node: KernelNode) -> Function:
    dtype = node.attr("dtype").as_numpy_dtype
    return lambda shape, seed, low, high: integers_between(_of_seeds(seed), shape, low, high, dtype)


@kernel("StatelessRandomUniformIntV2")
def _(node: KernelNode) -> Function:
    dtype = node.attr("dtype").as_numpy_dtype
    return lambda shape, key, counter, algorithm, low, high: integers_between(
        _of_stream(key, counter, algorithm), shape, low, high, dtype
    )


@kernel("StatelessMultinomial")
def _(node: KernelNode) -> Function:
    dtype = node.attr("output_dtype").as_numpy_dtype
    return lambda logits, num_samples, seed: multinomial(_of_seeds(seed), logits, num_samples, dtype)


@kernel("StatelessShuffle")
def _(node: KernelNode) -> Function:
    return lambda value, *stream: shuffled(_of_stream(*stream), value)


def _check_ends_with(sizes: tuple[int, ...], *parameters: Array) -> None:
    """Raises unless the parameters broadcast to the end of the shape; what is empty has any parameters."""
    try:
        fits = 0 in sizes or np.broadcast_shapes(sizes, *map(np.shape, parameters)) == sizes
    except ValueError:
        fits = False
    if not fits:
        shapes = " and ".join(str(list(np.shape(each))) for each in parameters)
        raise invalid(f"Shape passed in must end with broadcasted shape of {shapes}, got {list(sizes)}")


@kernel("StatelessRandomGammaV2")
def _(node: KernelNode) -> Function:
    return lambda shape, seed, alpha: _gamma_ending_with(_of_seeds(seed), shape, alpha)


@kernel("StatelessRandomGammaV3")
def _(node: KernelNode) -> Function:
    return lambda shape, key, counter, algorithm, alpha: _gamma_ending_with(
        _of_stream(key, counter, algorithm), shape, alpha
    )


def _gamma_ending_with(draws: PhiloxDraws, shape: Array, alpha: Array) -> Array:
    """Gamma(alpha, 1) of a shape that ends with alpha's."""
    sizes = sizes_of(shape)
    if 0 in sizes:
        return np.zeros(sizes, alpha.dtype)
    leading = sizes[: len(sizes) - np.ndim(alpha)]
    if leading + np.shape(alpha) != sizes:
        raise invalid(f"Shape passed in must end with that of alpha, {list(np.shape(alpha))}, got {list(sizes)}")
    return draws.gamma(leading, alpha)


@kernel("StatelessRandomPoisson")
def _(node: KernelNode) -> Function:
    dtype = node.attr("dtype").as_numpy_dtype

    def stateless_poisson(shape: np.ndarray, seed: np.ndarray, rate: np.ndarray) -> np.ndarray:
        sizes = sizes_of(shape)
        _check_ends_with(sizes, rate)
        if 0 in sizes:
            return np.zeros(sizes, dtype)
        return poisson(_numpy_generator(*seed.tolist()), sizes, rate, dtype)

    return stateless_poisson


@kernel("StatelessRandomBinomial")
def _(node: KernelNode) -> Function:
    dtype = node.attr("dtype").as_numpy_dtype

    def stateless_binomial(
        shape: np.ndarray, seed: np.ndarray, counts: np.ndarray, probabilities: np.ndarray
    ) -> np.ndarray:
        sizes = sizes_of(shape)
        _check_ends_with(sizes, counts, probabilities)
        if 0 in sizes:
            return np.zeros(sizes, dtype)
        trials, chance = np.asarray(counts).astype(np.int64), np.asarray(probabilities).astype(np.float64)
        return np.asarray(_numpy_generator(*seed.tolist()).binomial(trials, chance, sizes)).astype(dtype)

    return stateless_binomial


@kernel("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg")
def _(node: KernelNode) -> Function:
    def key_and_counter(seed: np.ndarray) -> tuple[Array, ...]:
        if seed.shape != (2,):
            raise invalid(f"seed must have shape [2], not {list(seed.shape)}")
        key, counter = scrambled_seed(*seed.tolist())
        words = np.array([counter % _LIMIT64, counter >> 64], np.uint64)
        return (np.array([key], np.uint64), words, np.int32(_PHILOX))[: node.num_outputs]

    return key_and_counter


@kernel("StatelessRandomGetAlg")
def _(node: KernelNode) -> Function:
    return lambda: np.int32(_PHILOX)
