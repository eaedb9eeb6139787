"""Public functions and shape rules of random numbers, and the seeds that make them repeatable.

Names, arguments and defaults are TensorFlow 1.x's (https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/random).
Each op carries two seeds. With neither a graph seed nor an op seed both are 0 and results vary. Otherwise the op draws
the same numbers in every new session, the same as TensorFlow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.constant_value import constant_value, constant_value_as_shape
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph, name_scope
from dtf.build.ops.math import add, divide, maximum, subtract
from dtf.build.shape_rules import broadcast, no_outputs, scalar, shape_rule, unchanged
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "categorical", "get_seed", "multinomial", "random_crop", "random_gamma", "random_normal", "random_poisson",
    "random_shuffle", "random_uniform", "set_random_seed", "stateless_multinomial", "stateless_normal",
    "stateless_truncated_normal", "stateless_uniform", "truncated_normal",
]  # fmt: skip

# -- seeds --

# The graph seed of an op that has only a seed of its own (TensorFlow's number).
DEFAULT_GRAPH_SEED = 87654321
_SEED_LIMIT = 2**31 - 1


def set_random_seed(seed: int) -> None:
    """Sets the seed of the default graph.

    All random operations made after this call draw the same numbers in every session. Operations without a seed of
    their own are numbered, so they differ from each other.

    Args:
      seed: an integer.

    Returns:
      Nothing.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/random/set_random_seed
    """
    get_default_graph().seed = seed


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The two seeds of the next op of the default graph; (None, None) if no seed was set."""
    graph = get_default_graph()
    if graph.seed is None and op_seed is None:
        return None, None
    if graph.seed is None:
        seeds = DEFAULT_GRAPH_SEED, op_seed
    else:
        seeds = graph.seed, next(graph._op_seeds) if op_seed is None else op_seed
    first, second = (int(seed or 0) % _SEED_LIMIT for seed in seeds)
    # Two zeros would mean: no seed.
    return (0, _SEED_LIMIT) if (first, second) == (0, 0) else (first, second)


def op_seeds(op_seed: int | None) -> dict[str, Any]:
    """The two seeds as the attributes of an op."""
    seed, seed2 = get_seed(op_seed)
    return {"seed": seed or 0, "seed2": seed2 or 0}


# -- distributions --


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Uniformly distributed random numbers in [minval, maxval).

    Args:
      shape: the shape, a list or an integer vector.
      minval: the lower bound.
      maxval: the upper bound; 1 by default, and required for integers.
      dtype: a floating-point dtype, int32 or int64.
      seed: the seed of this operation; see `set_random_seed`.
      name: the name of the operation.

    Returns:
      A Tensor of `shape` and `dtype`; new numbers in every step.

    Raises:
      ValueError: the dtype is another one, or integers have no `maxval`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/random/uniform
    """
    dtype = dtypes.as_dtype(dtype)
    if dtype not in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64):
        raise ValueError(f"Invalid dtype {dtype!r}")
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
        maxval = 1
    with name_scope(name, "random_uniform", [shape, minval, maxval]) as name:
        shape = _shape_tensor(shape)
        low = convert_to_tensor(minval, dtype=dtype, name="min")
        high = convert_to_tensor(maxval, dtype=dtype, name="max")
        if dtype.is_integer:
            return apply_op("RandomUniformInt", name, shape=shape, minval=low, maxval=high, **op_seeds(seed))
        numbers = apply_op("RandomUniform", shape=shape, dtype=dtype, **op_seeds(seed))
        return apply_op("AddV2", name, x=numbers * (high - low), y=low)


def random_normal(
    shape: Any,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed random numbers.

    Args:
      shape: the shape, a list or an integer vector.
      mean: the mean, of a shape that broadcasts.
      stddev: the standard deviation.
      dtype: a floating-point dtype.
      seed: the seed of this operation; see `set_random_seed`.
      name: the name of the operation.

    Returns:
      A Tensor of `shape` and `dtype`; new numbers in every step.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/random/normal
    """
    return _scaled("RandomStandardNormal", "random_normal", shape, mean, stddev, dtype, seed, name)


def truncated_normal(
    shape: Any,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed random numbers within two standard deviations of the mean.

    Args:
      shape: the shape, a list or an integer vector.
      mean: the mean.
      stddev: the standard deviation before truncation.
      dtype: a floating-point dtype.
      seed: the seed of this operation; see `set_random_seed`.
      name: the name of the operation.

    Returns:
      A Tensor of `shape` and `dtype`; new numbers in every step.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/random/truncated_normal
    """
    return _scaled("TruncatedNormal", "truncated_normal", shape, mean, stddev, dtype, seed, name)


def _scaled(
    op_type: str,
    default_name: str,
    shape: Any,
    mean: Any,
    stddev: Any,
    dtype: Any,
    seed: int | None | dict[str, Any],
    name: str | None,
) -> Tensor:
    """Draws by an op of standard numbers, then scales. seed: an op seed, or the arguments that replace it."""
    with name_scope(name, default_name, [shape, mean, stddev]) as name:
        dtype = dtypes.as_dtype(dtype)
        shape = _shape_tensor(shape)
        mean = convert_to_tensor(mean, dtype=dtype, name="mean")
        stddev = convert_to_tensor(stddev, dtype=dtype, name="stddev")
        seeds = seed if isinstance(seed, dict) else op_seeds(seed)
        numbers = apply_op(op_type, shape=shape, dtype=dtype, **seeds)
        return apply_op("AddV2", name, x=numbers * stddev, y=mean)


def random_gamma(
    shape: Any,
    alpha: TensorLike,
    beta: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Gamma(alpha, beta) distributed numbers: `shape` of them for each (alpha, beta), which broadcast.

    alpha is the shape, beta the rate (1 by default) of the distribution. The result has the shape `shape` followed by
    the shape of alpha and beta. Differentiable with respect to alpha and beta.
    """
    with name_scope(name, "random_gamma", [shape, alpha, beta]):
        dtype = dtypes.as_dtype(dtype)
        shape = convert_to_tensor(shape, dtype=dtypes.int32, name="shape")
        alpha = convert_to_tensor(alpha, dtype=dtype, name="alpha")
        beta = convert_to_tensor(1 if beta is None else beta, dtype=dtype, name="beta")
        repeated = add(alpha, apply_op("ZerosLike", x=beta))
        numbers = apply_op("RandomGamma", shape=shape, alpha=repeated, **op_seeds(seed))
        least = constant(np.finfo(dtype.as_numpy_dtype).tiny, dtype=dtype)
        return maximum(least, divide(numbers, beta))


def random_poisson(
    lam: Any, shape: Any, dtype: DTypeLike = dtypes.float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Poisson distributed numbers: for each rate in `lam` `shape` of them. -> shape + lam.shape."""
    with name_scope(name, "random_poisson", [lam, shape]) as name:
        shape = convert_to_tensor(shape, dtype=dtypes.int32, name="shape")
        return apply_op("RandomPoissonV2", name, shape=shape, rate=lam, dtype=dtypes.as_dtype(dtype), **op_seeds(seed))


# -- distributions whose numbers depend on nothing but the seed that is given: a tensor of two integers --


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """As `random_uniform`, but with the same numbers in every run; minval None gives integers of any value.

    seed: [2], integers.

    Raises:
      ValueError: the type is not one of them, or only one of the bounds is given for integers.
    """
    dtype = dtypes.as_dtype(dtype)
    if not (dtype.is_floating or dtype in (dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64)):
        raise ValueError(f"Invalid dtype {dtype!r}")
    with name_scope(name, "stateless_random_uniform", [shape, seed, minval, maxval]) as name:
        shape = _shape_tensor(shape)
        if dtype.is_integer and minval is None and maxval is None:
            return apply_op("StatelessRandomUniformFullInt", name, shape=shape, seed=seed, dtype=dtype)
        if dtype.is_integer and (minval is None or maxval is None):
            raise ValueError(f"For integer dtype {dtype!r} give both minval and maxval, or None for both")
        low = convert_to_tensor(minval, dtype=dtype, name="min")
        high = convert_to_tensor(1 if maxval is None else maxval, dtype=dtype, name="max")
        if dtype.is_integer:
            return apply_op("StatelessRandomUniformInt", name, shape=shape, seed=seed, minval=low, maxval=high)
        numbers = apply_op("StatelessRandomUniform", shape=shape, seed=seed, dtype=dtype)
        return apply_op("AddV2", name, x=numbers * (high - low), y=low)


def stateless_normal(
    shape: Any,
    seed: Any,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """As `random_normal`, but with the same numbers in every run. seed: [2], integers."""
    attrs = {"seed": seed}
    return _scaled("StatelessRandomNormal", "stateless_random_normal", shape, mean, stddev, dtype, attrs, name)


def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """As `truncated_normal`, but with the same numbers in every run. seed: [2], integers."""
    attrs = {"seed": seed}
    return _scaled("StatelessTruncatedNormal", "stateless_truncated_normal", shape, mean, stddev, dtype, attrs, name)


def stateless_gamma(
    shape: Any, seed: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Gamma(alpha, beta) distributed numbers of the given shape, which ends with the parameters' shape."""
    with name_scope(name, "stateless_random_gamma", [shape, seed, alpha, beta]):
        dtype = dtypes.as_dtype(dtype)
        alpha = convert_to_tensor(alpha, dtype=dtype, name="alpha")
        beta = convert_to_tensor(1 if beta is None else beta, dtype=dtype, name="beta")
        repeated = add(alpha, apply_op("ZerosLike", x=beta))
        numbers = apply_op("StatelessRandomGammaV2", shape=_shape_tensor(shape), seed=seed, alpha=repeated)
        least = constant(np.finfo(dtype.as_numpy_dtype).tiny, dtype=dtype)
        return maximum(least, divide(numbers, beta))


def stateless_poisson(
    shape: Any, seed: Any, lam: Any, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Poisson distributed numbers of the given shape, which ends with the shape of `lam`."""
    return apply_op(
        "StatelessRandomPoisson", name, shape=_shape_tensor(shape), seed=seed, lam=lam, dtype=dtypes.as_dtype(dtype)
    )


def stateless_binomial(
    shape: Any, seed: Any, counts: Any, probs: Any, output_dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Binomially distributed numbers of the given shape, which ends with the parameters' shape."""
    probs = convert_to_tensor(probs, preferred_dtype=dtypes.float32, name="probs")
    counts = convert_to_tensor(counts, dtype=probs.dtype, name="counts")
    return apply_op(
        "StatelessRandomBinomial",
        name,
        shape=_shape_tensor(shape),
        seed=seed,
        counts=counts,
        probs=probs,
        dtype=dtypes.as_dtype(output_dtype),
    )


# -- choices --


def stateless_multinomial(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: Any,
    output_dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """As `multinomial`, but with the same numbers in every run. seed: [2], integers."""
    return apply_op(
        "StatelessMultinomial",
        name,
        logits=logits,
        num_samples=num_samples,
        seed=seed,
        output_dtype=dtypes.as_dtype(output_dtype),
    )


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """The newer name of `stateless_multinomial`."""
    return stateless_multinomial(logits, num_samples, seed, dtype, name or "stateless_categorical")


def random_shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """The rows of a tensor in random order.

    Args:
      value: a tensor, shuffled along its first dimension.
      seed: the seed of this operation; see `set_random_seed`.
      name: the name of the operation.

    Returns:
      A Tensor of the shape and dtype of `value`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/random/shuffle
    """
    return apply_op("RandomShuffle", name, value=value, **op_seeds(seed))


def multinomial(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: DTypeLike | None = None,
) -> Tensor:
    """Class numbers drawn with probabilities proportional to exp(logits). [batch, classes] -> [batch, samples]."""
    with name_scope(name, "multinomial", [logits]):
        dtype = None if output_dtype is None else dtypes.as_dtype(output_dtype)
        return apply_op("Multinomial", logits=logits, num_samples=num_samples, output_dtype=dtype, **op_seeds(seed))


def categorical(
    logits: TensorLike,
    num_samples: TensorLike,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """The newer name of `multinomial`; `dtype` is the result's dtype, int64 by default."""
    return multinomial(logits, num_samples, seed, name or "categorical", dtype)


def random_crop(value: TensorLike, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A part of `value` of the given size, from a random place. An error at run time when `size` is larger than it."""
    with name_scope(name, "random_crop", [value, size]) as name:
        value = convert_to_tensor(value, name="value")
        size = convert_to_tensor(size, dtype=dtypes.int32, name="size")
        shape = apply_op("Shape", input=value)
        fits = apply_op(
            "Assert",
            condition=apply_op("All", input=apply_op("GreaterEqual", x=shape, y=size), reduction_indices=[0]),
            data=["Need value.shape >= size, got ", shape, size],
            summarize=1000,
        )
        with get_default_graph().control_dependencies([fits]):
            shape = apply_op("Identity", input=shape)
        room = add(subtract(shape, size), 1)
        drawn = random_uniform(apply_op("Shape", input=shape), maxval=size.dtype.max, dtype=size.dtype, seed=seed)
        offset = apply_op("FloorMod", x=drawn, y=room)
        return apply_op("Slice", name, input=value, begin=offset, size=size)


def _shape_tensor(shape: Any) -> Tensor:
    """A shape as an int32 or int64 vector; an empty list is the shape of a scalar."""
    empty = isinstance(shape, list | tuple) and not shape
    return convert_to_tensor(shape, dtype=dtypes.int32 if empty else None, name="shape")


# -- shape rules --


@shape_rule(
    "RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal", "StatelessRandomUniform",
    "StatelessRandomNormal", "StatelessTruncatedNormal", "StatelessRandomUniformInt", "StatelessRandomUniformFullInt",
    "StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2", "StatelessRandomUniformIntV2",
    "StatelessRandomUniformFullIntV2", "StatelessRandomGammaV2", "StatelessRandomPoisson", "StatelessRandomBinomial",
    "ParameterizedTruncatedNormal", "StatelessRandomGammaV3", "NonDeterministicInts",
)  # fmt: skip
def _given_shape(op: Operation) -> list[TensorShape]:
    return [constant_value_as_shape(op.inputs[0])]


@shape_rule("RandomGamma", "RandomPoisson", "RandomPoissonV2")
def _given_shape_per_parameter(op: Operation) -> list[TensorShape]:
    return [constant_value_as_shape(op.inputs[0]).concatenate(op.inputs[1].shape)]


@shape_rule("Multinomial", "StatelessMultinomial")
def _multinomial_shape(op: Operation) -> list[TensorShape]:
    batch = op.inputs[0].shape.with_rank(2)[0]
    count = constant_value(op.inputs[1])
    return [TensorShape([batch, None if count is None else int(count)])]


shape_rule("RandomShuffle", "StatelessShuffle")(unchanged)
shape_rule("StatelessRandomGetAlg")(scalar)


@shape_rule("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg")
def _key_and_counter_shapes(op: Operation) -> list[TensorShape]:
    return [TensorShape([1]), TensorShape([2]), TensorShape([])][: len(op.outputs)]


@shape_rule(
    "StatefulUniform", "StatefulUniformFullInt", "StatefulUniformInt", "StatefulStandardNormalV2",
    "StatefulTruncatedNormal", "StatefulRandomBinomial",
)  # fmt: skip
def _given_shape_after_state(op: Operation) -> list[TensorShape]:
    return [constant_value_as_shape(op.inputs[2])]


shape_rule("RngSkip")(no_outputs)
shape_rule("RngReadAndSkip")(lambda op: [TensorShape([3])])
shape_rule("RandomGammaGrad")(broadcast)
