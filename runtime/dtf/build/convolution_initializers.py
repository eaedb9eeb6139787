"""Initializers of convolution kernels that keep the norm of what they are applied to.

    tf.contrib.framework.convolutional_orthogonal_2d(gain=1.0)([3, 3, 8, 16])

Source: Xiao et al., "Dynamical Isometry and a Mean Field Theory of CNNs" (2018), algorithms 1 and 2.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.initializers import Initializer
from dtf.build.ops.random import random_normal
from dtf.wire import dtypes
from dtf.wire.dtypes import DType, as_dtype

__all__ = [
    "ConvolutionDeltaOrthogonal", "ConvolutionOrthogonal", "ConvolutionOrthogonal1D", "ConvolutionOrthogonal2D",
    "ConvolutionOrthogonal3D", "convolutional_delta_orthogonal", "convolutional_orthogonal_1d",
    "convolutional_orthogonal_2d", "convolutional_orthogonal_3d",
]  # fmt: skip

_WORDS = {1: "three", 2: "four", 3: "five"}


class _OfConvolutions(Initializer):
    """What these initializers share.

    Args:
      gain: a factor of the kernel.
      seed: makes the kernel the same in each run.
      dtype: a floating type.
    """

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        self.gain = gain
        self.dtype = as_dtype(dtype)
        if not self.dtype.is_floating:
            raise ValueError(f"Expected floating point type, got {self.dtype}.")
        self.seed = seed

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {"gain": self.gain, "seed": self.seed, "dtype": self.dtype.name}

    def _next_seed(self) -> int | None:
        seed = self.seed
        if self.seed:
            self.seed += 1
        return seed

    def _orthogonal(self, size: int, dtype: DType, seed: int | None) -> Any:
        """An orthogonal matrix, uniform among all of them."""
        found = apply_op("Qr", input=random_normal([size, size], dtype=dtype, seed=seed), full_matrices=False)
        return found.q * apply_op("Sign", x=apply_op("MatrixDiagPart", input=found.r))


class ConvolutionDeltaOrthogonal(_OfConvolutions):
    """A kernel that is an orthogonal matrix in its middle, and zero elsewhere.

    Raises:
      ValueError: the kernel has not one to three dimensions, or more inputs than outputs.
    """

    def __call__(self, shape: Sequence[int], dtype: Any = None, partition_info: Any = None) -> Any:
        """The kernel [sizes ..., inputs, outputs]."""
        wanted = self.dtype if dtype is None else as_dtype(dtype)
        if not 3 <= len(shape) <= 5:
            raise ValueError(
                "The tensor to initialize must be at least three-dimensional and at most five-dimensional"
            )
        if shape[-2] > shape[-1]:
            raise ValueError("In_filters cannot be greater than out_filters.")
        matrix = self._orthogonal(shape[-1], wanted, self.seed)[: shape[-2], :] * self.gain
        middle = [(size - 1) // 2 for size in shape[:-2]]
        updates = apply_op("ExpandDims", input=matrix, dim=0)
        return apply_op("ScatterNd", indices=[middle], updates=updates, shape=list(shape))


class ConvolutionOrthogonal(_OfConvolutions):
    """A kernel of orthogonal convolutions; subclasses name the number of dimensions."""

    _dimensions = 0

    def __call__(self, shape: Sequence[int], dtype: Any = None, partition_info: Any = None) -> Any:
        """The kernel [sizes ..., inputs, outputs].

        Raises:
          ValueError: the kernel has another number of dimensions or several sizes, or more inputs than outputs.
        """
        wanted = self.dtype if dtype is None else as_dtype(dtype)
        if len(shape) != self._dimensions + 2:
            raise ValueError(f"The tensor to initialize must be {_WORDS[self._dimensions]}-dimensional")
        if shape[-2] > shape[-1]:
            raise ValueError("In_filters cannot be greater than out_filters.")
        if len(set(shape[:-2])) != 1:
            raise ValueError("Kernel sizes must be equal.")
        return self._kernel(shape[0], shape[-2], shape[-1], wanted) * self.gain

    def _kernel(self, size: int, inputs: int, outputs: int, dtype: DType) -> Any:
        matrix = self._orthogonal(outputs, dtype, self._next_seed())[:inputs, :]
        if size == 1:
            for _ in range(self._dimensions):
                matrix = apply_op("ExpandDims", input=matrix, dim=0)
            return matrix
        blocks = self._block(outputs, dtype)
        for _ in range(size - 2):
            blocks = self._convolved(blocks, self._block(outputs, dtype))
        places = itertools.product(range(size), repeat=self._dimensions)
        flat = [apply_op("MatMul", a=matrix, b=blocks[place]) for place in places]
        shape = [size] * self._dimensions + [inputs, outputs]
        return apply_op("Reshape", tensor=apply_op("Pack", values=flat, axis=0), shape=shape)

    def _block(self, size: int, dtype: DType) -> dict[tuple[int, ...], Any]:
        """A kernel of size 2: products of projections and of what these leave out."""
        ones = apply_op("MatrixDiag", diagonal=apply_op("Fill", dims=[size], value=1.0))
        unit = apply_op("Cast", x=ones, DstT=dtype)
        pairs = [(each, unit - each) for each in (self._projection(size, dtype) for _ in range(self._dimensions))]
        found = {}
        for place in itertools.product(range(2), repeat=self._dimensions):
            product = pairs[0][place[0]]
            for pair, bit in zip(pairs[1:], place[1:], strict=True):
                product = apply_op("MatMul", a=product, b=pair[bit])
            found[place] = product
        return found

    def _projection(self, size: int, dtype: DType) -> Any:
        """A symmetric projection of random rank."""
        matrix = self._orthogonal(size, dtype, self._next_seed())
        chosen = apply_op("Greater", x=random_normal([size], dtype=dtype, seed=self._next_seed()), y=0.0)
        columns = matrix * apply_op("Cast", x=chosen, DstT=dtype)
        return apply_op("MatMul", a=columns, b=columns, transpose_b=True)

    def _convolved(self, one: dict[Any, Any], other: dict[Any, Any]) -> dict[Any, Any]:
        """The kernel of both kernels in sequence."""
        found: dict[Any, Any] = {}
        for first, second in itertools.product(one, other):
            place = tuple(a + b for a, b in zip(first, second, strict=True))
            product = apply_op("MatMul", a=one[first], b=other[second])
            found[place] = found[place] + product if place in found else product
        return found


class ConvolutionOrthogonal1D(ConvolutionOrthogonal):
    """Kernels [size, inputs, outputs]."""

    _dimensions = 1


class ConvolutionOrthogonal2D(ConvolutionOrthogonal):
    """Kernels [size, size, inputs, outputs]."""

    _dimensions = 2


class ConvolutionOrthogonal3D(ConvolutionOrthogonal):
    """Kernels [size, size, size, inputs, outputs]."""

    _dimensions = 3


convolutional_delta_orthogonal = ConvolutionDeltaOrthogonal
convolutional_orthogonal_1d = ConvolutionOrthogonal1D
convolutional_orthogonal_2d = ConvolutionOrthogonal2D
convolutional_orthogonal_3d = ConvolutionOrthogonal3D
