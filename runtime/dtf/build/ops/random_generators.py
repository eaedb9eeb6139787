"""`tf.random.Generator`: random numbers of a state that is a variable, and the helpers that derive seeds from seeds.

The numbers are those of TensorFlow's Philox generator. A generator's state has to be initialized as any variable.

Source: https://www.tensorflow.org/api_docs/python/tf/random/Generator
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph, name_scope
from dtf.build.ops import filling, joining, reductions
from dtf.build.ops import math as math_ops
from dtf.build.ops.random import stateless_uniform
from dtf.build.tensor import Tensor
from dtf.build.variables import Variable
from dtf.wire import dtypes
from dtf.wire.dtypes import as_dtype

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike

__all__ = [
    "Algorithm", "Generator", "create_rng_state", "fold_in", "get_global_generator", "set_global_generator", "split",
    "stateless_shuffle",
]  # fmt: skip

_STATE_SIZE = 3
_GLOBAL_KEY = ("__global_generator",)


class Algorithm(enum.Enum):
    """The algorithms of random numbers. Only Philox is supported; AUTO_SELECT chooses it."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


class Generator:
    """A stream of random numbers, whose state is a variable of the graph.

    Args:
      copy_from: a generator whose state is copied.
      state: int64 [3]: the counter's two words and the key.
      alg: "philox", "auto_select" or an Algorithm.

    Raises:
      ValueError: neither `copy_from` nor `state` is given, or the algorithm is not supported.
    """

    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None) -> None:
        if copy_from is not None:
            if state is not None or alg is not None:
                raise ValueError("`copy_from` cannot be given together with `state` or `alg`")
            state = copy_from.state.initialized_value()
        elif state is None or alg is None:
            raise ValueError("Give `state` and `alg`, or `copy_from`")
        else:
            _checked_algorithm(alg)
        if isinstance(state, Variable):
            self._state = state
        else:
            self._state = Variable(
                convert_to_tensor(state, dtypes.int64), trainable=False, name="StateVar", use_resource=True
            )

    @classmethod
    def from_state(cls, state: Any, alg: Any) -> Generator:
        """The generator of a state."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """The generator of a seed: an integer, or up to three of them."""
        alg = Algorithm.PHILOX if alg is None else alg
        return cls(state=create_rng_state(seed, alg), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator whose state differs in each run of its initializer."""
        state = apply_op("NonDeterministicInts", shape=constant([_STATE_SIZE], dtypes.int64), dtype=dtypes.int64)
        return cls(state=state, alg=Algorithm.PHILOX if alg is None else alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any) -> Generator:
        """The generator of a key (a scalar) and a counter (two numbers)."""
        return cls(state=_of_key_counter(key, counter), alg=alg)

    @property
    def state(self) -> Variable:
        """The variable of the state, int64 [3]."""
        return self._state

    @property
    def key(self) -> Tensor:
        """The key, the last word of the state."""
        return self._state.read_value()[-1]

    @property
    def algorithm(self) -> int:
        """The number of the algorithm: 1 for Philox."""
        return Algorithm.PHILOX.value

    def reset(self, state: Any) -> Any:
        """An operation that sets the state."""
        return self._state.assign(convert_to_tensor(state, dtypes.int64))

    def reset_from_seed(self, seed: Any) -> Any:
        """An operation that sets the state to that of a seed."""
        return self._state.assign(create_rng_state(seed, Algorithm.PHILOX))

    def reset_from_key_counter(self, key: Any, counter: Any) -> Any:
        """An operation that sets the key and the counter."""
        return self._state.assign(_of_key_counter(key, counter))

    def skip(self, delta: Any) -> Tensor:
        """The state; afterwards `delta` numbers are passed over."""
        count = math_ops.cast(delta, dtypes.uint64)
        return apply_op(
            "RngReadAndSkip", resource=self._state.handle, alg=constant(Algorithm.PHILOX.value, dtypes.int32),
            delta=count,
        )  # fmt: skip

    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Normally distributed numbers; arguments as for `tf.random.normal`."""
        with name_scope(name, "stateful_normal", [shape, mean, stddev]):
            return _scaled(self._drawn("StatelessRandomNormalV2", shape, dtype), mean, stddev, dtype)

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Normally distributed numbers within two standard deviations."""
        with name_scope(name, "truncated_normal", [shape, mean, stddev]):
            return _scaled(self._drawn("StatelessTruncatedNormalV2", shape, dtype), mean, stddev, dtype)

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Numbers in [minval, maxval).

        Raises:
          ValueError: `maxval` is missing for integers.
        """
        dtype = as_dtype(dtype)
        if maxval is None:
            if dtype.is_integer:
                raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
            maxval = 1
        with name_scope(name, "stateful_uniform", [shape, minval, maxval]):
            low = convert_to_tensor(minval, dtype, name="min")
            high = convert_to_tensor(maxval, dtype, name="max")
            if dtype.is_integer:
                return self._drawn("StatelessRandomUniformIntV2", shape, None, minval=low, maxval=high)
            return self._drawn("StatelessRandomUniformV2", shape, dtype) * (high - low) + low

    def uniform_full_int(self, shape: Any, dtype: DTypeLike = dtypes.uint64, name: str | None = None) -> Tensor:
        """Integers of all values of a type."""
        with name_scope(name, "stateful_uniform_full_int", [shape]):
            return self._drawn("StatelessRandomUniformFullIntV2", shape, dtype)

    def binomial(
        self, shape: Any, counts: Any, probs: Any, dtype: DTypeLike = dtypes.int32, name: str | None = None
    ) -> Tensor:
        """How many of `counts` trials succeed, each with the probability `probs`."""
        with name_scope(name, "binomial", [shape, counts, probs]):
            counts = convert_to_tensor(counts, name="counts")
            probs = convert_to_tensor(probs, counts.dtype if counts.dtype.is_floating else None, name="probs")
            return apply_op(
                "StatefulRandomBinomial", resource=self._state.handle,
                algorithm=constant(Algorithm.PHILOX.value, dtypes.int64), shape=_shape(shape),
                counts=math_ops.cast(counts, probs.dtype), probs=probs, dtype=as_dtype(dtype),
            )  # fmt: skip

    def make_seeds(self, count: int = 1) -> Tensor:
        """Seeds for the stateless functions, int64 [2, count]."""
        keys = self.uniform_full_int([count], dtypes.int64)
        return joining.stack([keys, filling.zeros_like(keys)])

    def split(self, count: int = 1) -> list[Generator]:
        """Generators of streams that differ from this one and from each other."""
        keys = self.uniform_full_int([count], dtypes.int64)
        return [
            Generator(state=_of_key_counter(keys[index], np.zeros(2, np.int64)), alg=Algorithm.PHILOX)
            for index in range(count)
        ]

    def _drawn(self, op_type: str, shape: Any, dtype: Any, **named: Any) -> Tensor:
        sizes = _shape(shape)
        state = self.skip(reductions.reduce_prod(math_ops.cast(sizes, dtypes.int64)))
        words = apply_op("Bitcast", input=state, type=dtypes.uint64)
        if dtype is not None:
            named["dtype"] = as_dtype(dtype)
        return apply_op(
            op_type, shape=sizes, key=words[2:3], counter=words[:2],
            alg=constant(Algorithm.PHILOX.value, dtypes.int32), **named,
        )  # fmt: skip


def create_rng_state(seed: Any, alg: Any) -> Tensor:
    """The state of a seed: int64 [3], filled up with zeros.

    Args:
      seed: an integer, or a vector of them; the first three count.
      alg: "philox", "auto_select" or an Algorithm.
    """
    _checked_algorithm(alg)
    if isinstance(seed, Tensor):
        words = apply_op("Reshape", tensor=math_ops.cast(seed, dtypes.int64), shape=[-1])
        padded = joining.concat([words, np.zeros(_STATE_SIZE, np.int64)], axis=0)[:_STATE_SIZE]
        padded.set_shape([_STATE_SIZE])
        return padded
    numbers = [int(each) for each in np.ravel(np.asarray(seed, dtype=object))]
    numbers = (numbers + [0] * _STATE_SIZE)[:_STATE_SIZE]
    words64 = np.array([number & (2**64 - 1) for number in numbers], np.uint64)
    return constant(words64.view(np.int64), dtypes.int64)


def get_global_generator() -> Generator:
    """The generator of the default graph; made from a non-deterministic state at the first call."""
    found = get_default_graph().get_collection_ref(_GLOBAL_KEY)
    if not found:
        found.append(Generator.from_non_deterministic_state())
    return found[0]


def set_global_generator(generator: Generator) -> None:
    """Makes a generator the one of the default graph."""
    get_default_graph().get_collection_ref(_GLOBAL_KEY)[:] = [generator]


def split(seed: Any, num: int = 2, alg: str = "auto_select") -> Tensor:
    """`num` new seeds from one, [num, 2]."""
    _checked_algorithm(alg)
    seed = convert_to_tensor(seed)
    return stateless_uniform([num, 2], seed, None, None, seed.dtype)


def fold_in(seed: Any, data: Any, alg: str = "auto_select") -> Tensor:
    """A new seed [2] from a seed and an integer."""
    _checked_algorithm(alg)
    data = convert_to_tensor(data)
    return joining.stack([stateless_uniform([], seed, None, None, data.dtype), data])


def stateless_shuffle(value: Any, seed: Any, alg: str = "auto_select", name: str | None = None) -> Tensor:
    """The rows of `value` in an order that the seed [2] decides.

    The order differs from TensorFlow's.
    """
    _checked_algorithm(alg)
    with name_scope(name, "stateless_shuffle", [value, seed]):
        value = convert_to_tensor(value, name="value")
        keys = stateless_uniform(apply_op("Shape", input=value)[:1], seed)
        order = apply_op("TopKV2", input=keys, k=apply_op("Shape", input=keys)[0], sorted=True)[1]
        result = apply_op("GatherV2", params=value, indices=order, axis=0)
        result.set_shape(value.shape)
        return result


def _checked_algorithm(alg: Any) -> None:
    if alg in ("philox", "auto_select", Algorithm.PHILOX, Algorithm.AUTO_SELECT, 1, 3):
        return
    raise ValueError(f"The random algorithm {alg!r} is not supported; use 'philox'")


def _of_key_counter(key: Any, counter: Any) -> Tensor:
    words = [math_ops.cast(convert_to_tensor(each), dtypes.int64) for each in (counter, key)]
    return joining.concat([words[0], apply_op("Reshape", tensor=words[1], shape=[1])], axis=0)


def _shape(shape: Any) -> Tensor:
    if isinstance(shape, Tensor):
        return shape
    return convert_to_tensor(shape, dtypes.int32) if not isinstance(shape, int) else constant([shape], dtypes.int32)


def _scaled(numbers: Tensor, mean: Any, stddev: Any, dtype: Any) -> Tensor:
    return numbers * convert_to_tensor(stddev, as_dtype(dtype)) + convert_to_tensor(mean, as_dtype(dtype))
