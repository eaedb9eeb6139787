"""Initializers: objects that make the first value of a variable from its shape.

`tf.zeros_initializer` and the rest; the module itself is `tf.initializers`, where they have shorter names. Each is
called with a shape (a list of ints) and a dtype. For a part of a partitioned variable it also gets a `partition_info`
with the whole's `full_shape` and the part's `var_offset`.

Sources: Glorot and Bengio 2010 (https://proceedings.mlr.press/v9/glorot10a.html), He et al. 2015
(https://arxiv.org/abs/1502.01852), LeCun et al. 1998 ("Efficient BackProp"), Saxe et al. 2014
(https://arxiv.org/abs/1312.6120).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant import constant as constant_tensor
from dtf.build.graph import Tensor
from dtf.wire import dtypes
from dtf.wire.dtypes import as_dtype

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike

__all__ = [
    "constant_initializer", "glorot_normal_initializer", "glorot_uniform_initializer",
    "ones_initializer", "orthogonal_initializer", "random_normal_initializer", "random_uniform_initializer",
    "truncated_normal_initializer", "uniform_unit_scaling_initializer", "variance_scaling_initializer",
    "zeros_initializer",
]  # fmt: skip

# The standard deviation of a normal distribution with mean 0 and deviation 1, cut off at -2 and 2.
_TRUNCATED_DEVIATION = 0.87962566103423978


@dataclass(frozen=True)
class PartitionInfo:
    """The position of a part of a partitioned variable in the whole."""

    full_shape: Sequence[int]
    var_offset: Sequence[int]

    def __post_init__(self) -> None:
        for name, given in (("full_shape", self.full_shape), ("var_offset", self.var_offset)):
            if not isinstance(given, Sequence) or isinstance(given, str | bytes):
                raise TypeError(f"`{name}` must be a sequence (like tuple or list) instead of {type(given).__name__}")
        if len(self.full_shape) != len(self.var_offset):
            raise ValueError(
                f"Expected equal length, but `var_offset` is of length {len(self.var_offset)} while full_shape is of "
                f"length {len(self.full_shape)}."
            )
        for axis, (offset, size) in enumerate(zip(self.var_offset, self.full_shape, strict=True)):
            if offset < 0 or offset >= size:
                raise ValueError(
                    f"Expected 0 <= offset < shape but found offset={offset}, shape={size} for var_offset="
                    f"{self.var_offset}, full_shape={self.full_shape} in dimension {axis}"
                )

    def single_offset(self, shape: Sequence[int]) -> int:
        """The part's offset in its one sliced dimension; 0 if no dimension is sliced. Raises as `single_slice_dim`."""
        axis = self.single_slice_dim(shape)
        return 0 if axis is None else self.var_offset[axis]

    def single_slice_dim(self, shape: Sequence[int]) -> int | None:
        """The one dimension in which a part of `shape` is smaller than the whole; None if it is the whole.

        Raises:
          TypeError: `shape` is not a sequence.
          ValueError: its rank differs, it exceeds the whole, or it is smaller in several dimensions.
        """
        if not isinstance(shape, Sequence) or isinstance(shape, str | bytes):
            raise TypeError(f"`shape` must be a sequence (like tuple or list) instead of {type(shape).__name__}")
        if len(shape) != len(self.full_shape):
            raise ValueError(
                f"Expected equal length, but received shape={shape} of length {len(shape)} while self.full_shape="
                f"{self.full_shape} is of length {len(self.full_shape)}."
            )
        for size, offset, whole in zip(shape, self.var_offset, self.full_shape, strict=True):
            if offset + size > whole:
                raise ValueError(
                    f"With self.var_offset={self.var_offset}, a partition of shape={shape} would exceed "
                    f"self.full_shape={self.full_shape}."
                )
        sliced = [axis for axis, size in enumerate(shape) if size != self.full_shape[axis]]
        if len(sliced) > 1:
            raise ValueError(
                f"Cannot use single_slice_dim() with shape={shape} and self.full_shape={self.full_shape} since slice "
                f"dim could be either dimension {sliced[1]} or {sliced[0]}."
            )
        return sliced[0] if sliced else None


class Initializer:
    """Base of all initializers: converts their arguments to a dict and back."""

    def get_config(self) -> dict[str, Any]:
        """The arguments by name, the dtype by its name."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        given.pop("verify_shape", None)
        given["dtype"] = as_dtype(given["dtype"]).name
        return given

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """An initializer from the result of `get_config`."""
        return cls(**config)


@dataclass(frozen=True)
class zeros_initializer(Initializer):
    """All zeros."""

    dtype: Any = dtypes.float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        from dtf.build.ops import filling

        return filling.zeros(shape, dtype or self.dtype)


@dataclass(frozen=True)
class ones_initializer(Initializer):
    """All ones."""

    dtype: Any = dtypes.float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        from dtf.build.ops import filling

        return filling.ones(shape, dtype or self.dtype)


@dataclass(frozen=True)
class constant_initializer(Initializer):
    """A given value, or values in row-major order; the last one is repeated for missing values.

    Args:
      value: a number, nested list or array.
      verify_shape: raise where it does not have the shape of the variable.

    Raises:
      TypeError: `value` is none of these.
    """

    value: Any = 0
    dtype: Any = dtypes.float32
    verify_shape: bool = False

    def __post_init__(self) -> None:
        if not np.isscalar(self.value) and not isinstance(self.value, list | tuple | np.ndarray):
            raise TypeError(
                f"Invalid type for initial value: {type(self.value)} (expected Python scalar, list or tuple of values, "
                "or numpy.ndarray)."
            )

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: Any = None, verify_shape: bool | None = None
    ) -> Tensor:
        verify = self.verify_shape if verify_shape is None else verify_shape
        return constant_tensor(self.value, dtype or self.dtype, shape, verify_shape=verify)


@dataclass(frozen=True)
class random_uniform_initializer(Initializer):
    """Uniform between `minval` and `maxval`; 0 and 1 by default, the whole range for integers."""

    minval: Any = 0.0
    maxval: Any = None
    seed: int | None = None
    dtype: Any = dtypes.float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        from dtf.build.ops import random

        return random.random_uniform(shape, self.minval, self.maxval, dtype or self.dtype, seed=self.seed)


@dataclass(frozen=True)
class random_normal_initializer(Initializer):
    """Normal."""

    mean: Any = 0.0
    stddev: Any = 1.0
    seed: int | None = None
    dtype: Any = dtypes.float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        from dtf.build.ops import random

        return random.random_normal(shape, self.mean, self.stddev, dtype or self.dtype, seed=self.seed)


@dataclass(frozen=True)
class truncated_normal_initializer(Initializer):
    """Normal, drawn again where it is more than two standard deviations from the mean."""

    mean: Any = 0.0
    stddev: Any = 1.0
    seed: int | None = None
    dtype: Any = dtypes.float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        from dtf.build.ops import random

        return random.truncated_normal(shape, self.mean, self.stddev, dtype or self.dtype, seed=self.seed)


@dataclass(frozen=True)
class uniform_unit_scaling_initializer(Initializer):
    """Uniform in a range that keeps the scale of the input: `factor * sqrt(3 / inputs)` to both sides of 0."""

    factor: float = 1.0
    seed: int | None = None
    dtype: Any = dtypes.float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        from dtf.build.ops import random

        inputs = math.prod(_scale_shape(shape, partition_info)[:-1])
        limit = math.sqrt(3 / max(1.0, inputs)) * self.factor
        return random.random_uniform(shape, -limit, limit, dtype or self.dtype, seed=self.seed)


@dataclass(frozen=True)
class variance_scaling_initializer(Initializer):
    """Random values whose variance is `scale` over the number of inputs, outputs, or their mean.

    Args:
      scale: positive.
      mode: "fan_in", "fan_out" or "fan_avg".
      distribution: "truncated_normal" (also spelled "normal"), "untruncated_normal" or "uniform".

    Raises:
      ValueError: an argument is not one of these.
    """

    scale: float = 1.0
    mode: str = "fan_in"
    distribution: str = "truncated_normal"
    seed: int | None = None
    dtype: Any = dtypes.float32

    def __post_init__(self) -> None:
        if self.scale <= 0.0:
            raise ValueError(f"`scale` must be positive float. Received: {self.scale}")
        if self.mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"Invalid `mode` argument: {self.mode}")
        if self.distribution.lower() not in ("normal", "uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(f"Invalid `distribution` argument: {self.distribution}")

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        from dtf.build.ops import random

        dtype = dtype or self.dtype
        fan_in, fan_out = _fans(_scale_shape(shape, partition_info))
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        kind = self.distribution.lower()
        if kind == "uniform":
            limit = math.sqrt(3.0 * variance)
            return random.random_uniform(shape, -limit, limit, dtype, seed=self.seed)
        if kind == "untruncated_normal":
            return random.random_normal(shape, 0.0, math.sqrt(variance), dtype, seed=self.seed)
        deviation = math.sqrt(variance) / _TRUNCATED_DEVIATION
        return random.truncated_normal(shape, 0.0, deviation, dtype, seed=self.seed)


def glorot_uniform_initializer(
    seed: int | None = None, dtype: DTypeLike = dtypes.float32
) -> variance_scaling_initializer:
    """Uniform, after Glorot and Bengio; also known as Xavier."""
    return variance_scaling_initializer(1.0, "fan_avg", "uniform", seed, dtype)


def glorot_normal_initializer(
    seed: int | None = None, dtype: DTypeLike = dtypes.float32
) -> variance_scaling_initializer:
    """Truncated normal, after Glorot and Bengio; also known as Xavier."""
    return variance_scaling_initializer(1.0, "fan_avg", "truncated_normal", seed, dtype)


def he_normal(seed: int | None = None) -> variance_scaling_initializer:
    """Truncated normal, after He et al."""
    return variance_scaling_initializer(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> variance_scaling_initializer:
    """Uniform, after He et al."""
    return variance_scaling_initializer(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed: int | None = None) -> variance_scaling_initializer:
    """Truncated normal, after LeCun et al."""
    return variance_scaling_initializer(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> variance_scaling_initializer:
    """Uniform, after LeCun et al."""
    return variance_scaling_initializer(1.0, "fan_in", "uniform", seed)


@dataclass(frozen=True)
class orthogonal_initializer(Initializer):
    """A matrix with orthonormal rows or columns, times `gain`; all dimensions but the last count as the rows.

    Raises:
      ValueError: when called with a shape of fewer than two dimensions.
    """

    gain: float = 1.0
    seed: int | None = None
    dtype: Any = dtypes.float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        from dtf.build.ops import random

        shape = list(shape)
        if len(shape) < 2:
            raise ValueError("The tensor to initialize must be at least two-dimensional")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        tall = [max(rows, columns), min(rows, columns)]
        normal = random.random_normal(tall, dtype=dtype or self.dtype, seed=self.seed)
        q, r = apply_op("Qr", None, input=normal, full_matrices=False)
        # The signs of R's diagonal make the result uniform over the orthogonal matrices.
        diagonal = apply_op("MatrixDiagPart", None, input=r)
        q = q * apply_op("Sign", None, x=diagonal)
        if rows < columns:
            q = apply_op("Transpose", None, x=q, perm=[1, 0])
        return self.gain * apply_op("Reshape", None, tensor=q, shape=shape)


@dataclass(frozen=True)
class identity_initializer(Initializer):
    """The identity matrix times `gain`.

    Raises:
      ValueError: when called with a shape that is not two-dimensional.
    """

    gain: float = 1.0
    dtype: Any = dtypes.float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        full_shape = _scale_shape(shape, partition_info)
        if len(full_shape) != 2:
            raise ValueError("Identity matrix initializer can only be used for 2D matrices.")
        whole = self.gain * np.eye(*full_shape, dtype=as_dtype(dtype or self.dtype).as_numpy_dtype)
        if partition_info is not None:
            row, column = partition_info.var_offset
            whole = whole[row : row + shape[0], column : column + shape[1]]
        return constant_tensor(whole, dtype or self.dtype)


# `tf.initializers` is this module, with shorter names as well.
constant = constant_initializer
glorot_normal = glorot_normal_initializer
glorot_uniform = glorot_uniform_initializer
identity = identity_initializer
ones = ones_initializer
orthogonal = orthogonal_initializer
random_normal = random_normal_initializer
random_uniform = random_uniform_initializer
truncated_normal = truncated_normal_initializer
uniform_unit_scaling = uniform_unit_scaling_initializer
variance_scaling = variance_scaling_initializer
zeros = zeros_initializer

def _scale_shape(shape: Any, partition_info: Any) -> list[int]:
    return [int(size) for size in (shape if partition_info is None else partition_info.full_shape)]


def _fans(shape: Sequence[int]) -> tuple[float, float]:
    """The numbers of inputs and outputs of a layer whose weights have that shape."""
    if not shape:
        return 1.0, 1.0
    if len(shape) == 1:
        return float(shape[0]), float(shape[0])
    field = math.prod(shape[:-2])
    return float(shape[-2] * field), float(shape[-1] * field)
