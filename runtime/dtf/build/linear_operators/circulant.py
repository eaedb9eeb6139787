"""Circulant matrices: products by Fourier transforms of one, two or three dimensions.

The spectrum is the discrete Fourier transform of the first column. Source:
https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/linalg/LinearOperatorCirculant
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.linear_operators.base import LinearOperator
from dtf.build.linear_operators.batches import (
    assert_no_entries_with_modulus_zero,
    assert_zero_imag_part,
    matrix_adjoint,
)
from dtf.build.ops import array, check_ops, joining, math, reductions, spectral
from dtf.build.ops.filling import ones
from dtf.build.ops.rearranging import matrix_transpose
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

__all__ = ["LinearOperatorCirculant", "LinearOperatorCirculant2D", "LinearOperatorCirculant3D"]

_FFT = {1: spectral.fft, 2: spectral.fft2d, 3: spectral.fft3d}
_IFFT = {1: spectral.ifft, 2: spectral.ifft2d, 3: spectral.ifft3d}


class _BaseCirculant(LinearOperator):
    """What the operators of all depths share."""

    def __init__(
        self, spectrum: Any, block_depth: int, input_output_dtype: Any = dtypes.complex64,
        is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = True, name: str = "LinearOperatorCirculant",
    ) -> None:  # fmt: skip
        self._block_depth = block_depth
        with name_scope(name, values=[spectrum]):
            self._spectrum = convert_to_tensor(spectrum, name="spectrum")
            kinds = [dtypes.float16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128]
            if self._spectrum.dtype.base_dtype not in kinds:
                raise TypeError(f"Argument spectrum must have dtype in {kinds}.  Found: {self._spectrum.dtype}")
            rank = self._spectrum.shape.ndims
            if rank is not None and rank < block_depth:
                raise ValueError(f"Argument spectrum must have at least {block_depth} dimensions.  Found: {spectrum}")
            if is_square is False:
                raise ValueError(f"A {type(self).__name__} operator is always square.")
            if not self._spectrum.dtype.is_complex:
                if is_self_adjoint is False:
                    raise ValueError("A real spectrum always corresponds to a self-adjoint operator.")
                is_self_adjoint = True
            wide = self._spectrum
            if not wide.dtype.is_complex:
                kind = dtypes.complex128 if wide.dtype == dtypes.float64 else dtypes.complex64
                wide = math.cast(wide, kind)
            self._complex_spectrum = wide
            super().__init__(
                input_output_dtype, [self._spectrum], is_non_singular, is_self_adjoint, is_positive_definite, True,
                name, {"spectrum": spectrum, "input_output_dtype": input_output_dtype},
            )  # fmt: skip

    @property
    def block_depth(self) -> int:
        """The dimensions of the transform."""
        return self._block_depth

    @property
    def block_shape(self) -> TensorShape:
        """The static shape of one transform."""
        return self._spectrum.shape[-self._block_depth :]

    def block_shape_tensor(self, name: str = "block_shape_tensor") -> Tensor:
        """The shape of one transform, int32."""
        with self._name_scope(name):
            return self._block_shape_tensor()

    def _block_shape_tensor(self) -> Tensor:
        if self.block_shape.is_fully_defined():
            return convert_to_tensor(self.block_shape.as_list(), dtypes.int32, name="block_shape")
        return array.shape_of(self._spectrum)[-self._block_depth :]

    @property
    def spectrum(self) -> Tensor:
        """The eigenvalues, in the order of the transform."""
        return self._spectrum

    def _shape(self) -> TensorShape:
        sizes = self.block_shape
        size = sizes.num_elements()
        batch = self._spectrum.shape
        return batch[: -self._block_depth].concatenate([size, size]) if batch.ndims is not None else TensorShape(None)

    def _shape_tensor(self) -> Tensor:
        shape = array.shape_of(self._spectrum)
        size = reductions.reduce_prod(shape[-self._block_depth :])
        return joining.concat([shape[: -self._block_depth], [size, size]], 0)

    def convolution_kernel(self, name: str = "convolution_kernel") -> Tensor:
        """The first column, in blocks: the inverse transform of the spectrum."""
        with self._name_scope(name):
            kernel = self._ifft(self._complex_spectrum)
            return self._cast(kernel)

    def _cast(self, values: Tensor) -> Tensor:
        return math.cast(values, self.dtype)

    def _fft(self, x: Tensor) -> Tensor:
        return _FFT[self._block_depth](x)

    def _ifft(self, x: Tensor) -> Tensor:
        return _IFFT[self._block_depth](x)

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> Any:
        """An operation that fails where the spectrum is not Hermitian: where the matrix would not be real."""
        eps = np.finfo(self.dtype.real_dtype.as_numpy_dtype).eps
        with self._name_scope(name):
            limit = eps * math.cast(self.domain_dimension_tensor(), self.dtype.real_dtype)
            part = math.imag(self._ifft(self._complex_spectrum))
            return check_ops.assert_less(
                math.cast(math.abs(part), limit.dtype), limit, message="Spectrum was not Hermitian"
            )

    def _assert_non_singular(self) -> Any:
        return assert_no_entries_with_modulus_zero(
            self._spectrum, message="Singular operator:  Spectrum contained zero values."
        )

    def _assert_positive_definite(self) -> Any:
        return check_ops.assert_positive(
            math.real(self._complex_spectrum),
            message="Not positive definite:  Real part of spectrum was not all positive.",
        )

    def _assert_self_adjoint(self) -> Any:
        return assert_zero_imag_part(
            self._spectrum, message="Not self-adjoint:  The spectrum contained non-zero imaginary part."
        )

    def _blocks(self, vectors: Tensor) -> Tensor:
        """[..., n] as [..., *block shape]."""
        if self._block_depth == 1:
            return vectors
        shape = joining.concat([array.shape_of(vectors)[:-1], self._block_shape_tensor()], 0)
        result = array.reshape(vectors, shape)
        if vectors.shape.ndims is not None:
            result.set_shape(vectors.shape[:-1].concatenate(self.block_shape))
        return result

    def _vectors(self, blocks: Tensor, like: Tensor) -> Tensor:
        """[..., *block shape] as [..., n]."""
        if self._block_depth == 1:
            return blocks
        shape = joining.concat([array.shape_of(blocks)[: -self._block_depth], array.shape_of(like)[-1:]], 0)
        result = array.reshape(blocks, shape)
        if blocks.shape.ndims is not None:
            result.set_shape(blocks.shape[: -self._block_depth].concatenate(self.shape[-1:]))
        return result

    def _filtered(self, x: Tensor, spectrum: Tensor) -> Tensor:
        """Columns of [..., n, k] convolved: transformed, scaled and transformed back."""
        rows = matrix_transpose(math.cast(x, spectrum.dtype))
        scale = array.expand_dims(spectrum, -(self._block_depth + 1))
        out = self._vectors(self._ifft(self._fft(self._blocks(rows)) * scale), rows)
        return self._cast(matrix_transpose(out))

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = matrix_adjoint(x) if adjoint_arg else x
        spectrum = self._complex_spectrum
        return self._filtered(x, math.conj(spectrum) if adjoint else spectrum)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rhs = matrix_adjoint(rhs) if adjoint_arg else rhs
        spectrum = self._complex_spectrum
        return self._filtered(rhs, 1 / (math.conj(spectrum) if adjoint else spectrum))

    @property
    def _axes(self) -> list[int]:
        return [-1 - each for each in range(self._block_depth)]

    def _determinant(self) -> Tensor:
        return self._cast(reductions.reduce_prod(self._complex_spectrum, self._axes))

    def _log_abs_determinant(self) -> Tensor:
        total = reductions.reduce_sum(math.log(math.abs(self._spectrum)), self._axes)
        return self._cast(total)

    def _diag_part(self) -> Tensor:
        mean = array.expand_dims(self._cast(reductions.reduce_mean(self._complex_spectrum, self._axes)), -1)
        known = self.domain_dimension.value
        size = array.expand_dims(self.domain_dimension_tensor(), 0) if known is None else [known]
        return mean * ones(size, dtype=self.dtype)

    def _trace(self) -> Tensor:
        return self._cast(reductions.reduce_sum(self._complex_spectrum, self._axes))

    def _eigvals(self) -> Tensor:
        values = self._cast(self._complex_spectrum)
        if self._block_depth == 1:
            return values
        return array.reshape(values, joining.concat([self.batch_shape_tensor(), [-1]], 0))

    def _cond(self) -> Tensor:
        sizes = math.abs(self._spectrum)
        return self._cast(reductions.reduce_max(sizes, self._axes) / reductions.reduce_min(sizes, self._axes))


class LinearOperatorCirculant(_BaseCirculant):
    """Circulant matrices.

    Args:
      spectrum: [..., n]: the discrete Fourier transform of the first column.
      input_output_dtype: the type of the entries.
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises.
      name: the scope of its operations.
    """

    def __init__(
        self, spectrum: Any, input_output_dtype: Any = dtypes.complex64, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None, is_square: bool | None = True,
        name: str = "LinearOperatorCirculant",
    ) -> None:  # fmt: skip
        super().__init__(
            spectrum, 1, input_output_dtype, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name
        )


class LinearOperatorCirculant2D(_BaseCirculant):
    """Block circulant matrices whose blocks are circulant.

    Args:
      spectrum: [..., n0, n1]: the discrete Fourier transform of the convolution kernel.
      input_output_dtype: the type of the entries.
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises.
      name: the scope of its operations.
    """

    def __init__(
        self, spectrum: Any, input_output_dtype: Any = dtypes.complex64, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None, is_square: bool | None = True,
        name: str = "LinearOperatorCirculant2D",
    ) -> None:  # fmt: skip
        super().__init__(
            spectrum, 2, input_output_dtype, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name
        )


class LinearOperatorCirculant3D(_BaseCirculant):
    """Nested block circulant matrices of depth three.

    Args:
      spectrum: [..., n0, n1, n2]: the discrete Fourier transform of the convolution kernel.
      input_output_dtype: the type of the entries.
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises.
      name: the scope of its operations.
    """

    def __init__(
        self, spectrum: Any, input_output_dtype: Any = dtypes.complex64, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None, is_square: bool | None = True,
        name: str = "LinearOperatorCirculant3D",
    ) -> None:  # fmt: skip
        super().__init__(
            spectrum, 3, input_output_dtype, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name
        )
