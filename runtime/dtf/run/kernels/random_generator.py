"""Kernels that draw from a generator whose state is a resource variable, as tf.random.Generator's.

The state of Philox is int64 [3]: the two words of the counter, and the key. Every draw moves the counter on, under
the variable's lock. Binomial numbers are repeatable, but not TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, numpy_dtype
from dtf.run.kernels.random import integers_between, sizes_of
from dtf.run.kernels.state import read_resource
from dtf.run.lib.philox import PhiloxDraws
from dtf.run.state.resources import ResourceHandle
from dtf.run.value_types import Array
from dtf.wire import dtypes, errors

_PHILOX = 1
_STATE_SIZE = 3
_BITS64 = (1 << 64) - 1
_COUNTERS_PER_NUMBER = 256
_COUNTERS_PER_BINOMIAL = 100 * _COUNTERS_PER_NUMBER

for _op, _method in {
    "StatefulUniform": "uniform",
    "StatefulStandardNormalV2": "normal",
    "StatefulTruncatedNormal": "truncated_normal",
    "StatefulUniformFullInt": "full_integers",
}.items():

    def _of_shape(node: KernelNode, method: str = _method) -> Function:
        dtype = np.dtype(numpy_dtype(node, "dtype"))
        return lambda step, handle, algorithm, shape: _drawn(
            step, handle, algorithm, lambda draws: getattr(draws, method)(sizes_of(shape), dtype)
        )

    kernel(_op, stateful=True)(_of_shape)

_Drawn = TypeVar("_Drawn")


@kernel("StatefulUniformInt", stateful=True)
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node, "dtype")
    return lambda step, handle, algorithm, shape, low, high: _drawn(
        step, handle, algorithm, lambda draws: integers_between(draws, shape, low, high, dtype)
    )


@kernel("StatefulRandomBinomial", stateful=True)
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node, "dtype")

    def binomial(
        step: StepContext,
        handle: ResourceHandle,
        algorithm: np.ndarray,
        shape: np.ndarray,
        counts: np.ndarray,
        chances: np.ndarray,
    ) -> np.ndarray:
        sizes = sizes_of(shape)

        def draw(draws: PhiloxDraws) -> np.ndarray:
            first = draws.reserve(int(np.prod(sizes, dtype=np.int64)) * _COUNTERS_PER_BINOMIAL)
            key = np.array([draws.key, first & _BITS64], np.uint64)
            generator = np.random.Generator(np.random.Philox(key=key))
            trials, chance = np.asarray(counts).astype(np.int64), np.asarray(chances).astype(np.float64)
            return np.asarray(generator.binomial(trials, chance, sizes)).astype(dtype)

        return _drawn(step, handle, algorithm, draw)

    return binomial


@kernel("RngSkip", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle, algorithm, delta: _skip(step, handle, algorithm, delta)


@kernel("RngReadAndSkip", stateful=True)
def _(node: KernelNode) -> Function:
    return _skip


def _skip(step: StepContext, handle: ResourceHandle, algorithm: Array, delta: Array) -> np.ndarray:
    """The state before `delta` numbers were passed over."""
    before: list[np.ndarray] = []

    def pass_over(draws: PhiloxDraws) -> None:
        before.append(_state(draws.reserve(int(delta) * _COUNTERS_PER_NUMBER), draws.key))

    _drawn(step, handle, algorithm, pass_over)
    return before[0]


@kernel("NonDeterministicInts", stateful=True)
def _(node: KernelNode) -> Function:
    dtype = np.dtype(numpy_dtype(node, "dtype"))
    limits = np.iinfo(dtype)
    return lambda step, shape: np.random.default_rng().integers(
        limits.min, limits.max, sizes_of(shape), dtype, endpoint=True
    )


def _drawn(
    step: StepContext, handle: ResourceHandle, algorithm: Array, draw: Callable[[PhiloxDraws], _Drawn]
) -> _Drawn:
    """What `draw` makes of the state's stream, which is then moved on."""
    variable = read_resource(step, handle)
    if np.ndim(algorithm):
        raise invalid(f"algorithm must be of shape [], not {list(np.shape(algorithm))}")
    if int(algorithm) != _PHILOX:
        raise errors.UnimplementedError.of(f"Unknown algorithm {int(algorithm)}; only Philox (1) is supported")
    with variable.lock:
        state = variable.read()
        if variable.dtype != dtypes.int64:
            raise invalid(f"dtype of RNG state variable must be int64, not {variable.dtype.name}")
        if state.ndim != 1:
            raise invalid(f"RNG state must have one and only one dimension, not {state.ndim}")
        if state.size < _STATE_SIZE:
            raise invalid(
                f"For the Philox algorithm, the size of state must be at least {_STATE_SIZE}; got {state.size}"
            )
        low, high, key = (int(word) & _BITS64 for word in state[:_STATE_SIZE].tolist())
        draws = PhiloxDraws(key, low | high << 64)
        value = draw(draws)
        variable.assign(np.concatenate([_state(draws.reserve(0), key), state[_STATE_SIZE:]]))
    return value


def _state(counter: int, key: int) -> np.ndarray:
    return np.array([counter & _BITS64, counter >> 64, key], np.uint64).view(np.int64)
