"""tf.contrib.distributions.bijectors: invertible functions, with the logarithm of their Jacobian's determinant.

    flow = tfb.Chain([tfb.Exp(), tfb.AffineScalar(shift=1.0, scale=2.0)])    # exp(1 + 2 x)
    positive = tf.contrib.distributions.TransformedDistribution(tf.distributions.Normal(0.0, 1.0), flow)

A program's own bijector overrides `_forward`, `_inverse`, and one of the two determinants. Determinants are sums over
the last `event_ndims` dimensions.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/distributions/bijectors
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import dtf as tf
from dtf.contrib.distributions.triangles import fill_triangular, fill_triangular_inverse
from dtf.wire.tensor_shape import TensorShape

__all__ = [
    "AbsoluteValue", "Affine", "AffineScalar", "Bijector", "Chain", "ConditionalBijector", "Exp", "FillTriangular",
    "Gumbel", "Identity", "Inline", "Invert", "Kumaraswamy", "Permute", "PowerTransform", "Reshape", "Sigmoid",
    "SinhArcsinh", "SoftmaxCentered", "Softplus", "Softsign", "Square", "TransformDiagonal", "Weibull",
]  # fmt: skip


class Bijector:
    """The base of all bijectors.

    Args:
      graph_parents: accepted.
      is_constant_jacobian: whether the determinant is the same everywhere.
      validate_args: accepted; arguments are not checked.
      dtype: of the values; any by default.
      forward_min_event_ndims, inverse_min_event_ndims: the number of dimensions that belong to one value.
      name: of the bijector.
    """

    def __init__(
        self, graph_parents: Any = None, is_constant_jacobian: bool = False, validate_args: bool = False,
        dtype: Any = None, forward_min_event_ndims: int | None = None, inverse_min_event_ndims: int | None = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        if forward_min_event_ndims is None and inverse_min_event_ndims is None:
            raise ValueError("Must specify at least one of `forward_min_event_ndims` and `inverse_min_event_ndims`.")
        one, other = forward_min_event_ndims, inverse_min_event_ndims
        self.forward_min_event_ndims: int = other if one is None else one  # type: ignore[assignment]
        self.inverse_min_event_ndims: int = one if other is None else other  # type: ignore[assignment]
        self.graph_parents = list(graph_parents or [])
        self.is_constant_jacobian, self.validate_args, self.dtype = is_constant_jacobian, validate_args, dtype
        self.name = name or type(self).__name__

    def _started(self, dims: int, validate_args: bool, name: str, constant: bool = False) -> None:
        Bijector.__init__(
            self, is_constant_jacobian=constant, validate_args=validate_args, forward_min_event_ndims=dims, name=name
        )

    def forward(self, x: Any, name: str = "forward", **kwargs: Any) -> Any:
        """The function at x."""
        with tf.name_scope(f"{self.name}/{name}"):
            return self._forward(tf.convert_to_tensor(x, self.dtype), **kwargs)

    def inverse(self, y: Any, name: str = "inverse", **kwargs: Any) -> Any:
        """The x whose function value is y."""
        with tf.name_scope(f"{self.name}/{name}"):
            return self._inverse(tf.convert_to_tensor(y, self.dtype), **kwargs)

    def forward_log_det_jacobian(
        self, x: Any, event_ndims: int | None = None, name: str = "forward_log_det_jacobian", **kwargs: Any
    ) -> Any:
        """The logarithm of the determinant at x, summed over the last `event_ndims` dimensions of x."""
        with tf.name_scope(f"{self.name}/{name}"):
            x = tf.convert_to_tensor(x, self.dtype)
            least = self.forward_min_event_ndims
            try:
                found = self._forward_log_det_jacobian(x, **kwargs)
            except NotImplementedError:
                found = -self._inverse_log_det_jacobian(self._forward(x, **kwargs), **kwargs)
            return _summed(found, x, least, least if event_ndims is None else event_ndims)

    def inverse_log_det_jacobian(
        self, y: Any, event_ndims: int | None = None, name: str = "inverse_log_det_jacobian", **kwargs: Any
    ) -> Any:
        """The logarithm of the inverse's determinant at y, summed over the last `event_ndims` dimensions of y."""
        with tf.name_scope(f"{self.name}/{name}"):
            y = tf.convert_to_tensor(y, self.dtype)
            least = self.inverse_min_event_ndims
            try:
                found = self._inverse_log_det_jacobian(y, **kwargs)
            except NotImplementedError:
                found = -self._forward_log_det_jacobian(self._inverse(y, **kwargs), **kwargs)
            return _summed(found, y, least, least if event_ndims is None else event_ndims)

    def forward_event_shape(self, input_shape: Any) -> TensorShape:
        """The static shape of one value of the function."""
        return TensorShape(self._forward_event_shape(TensorShape(input_shape)))

    def inverse_event_shape(self, output_shape: Any) -> TensorShape:
        """The static shape of one value of the inverse."""
        return TensorShape(self._inverse_event_shape(TensorShape(output_shape)))

    def forward_event_shape_tensor(self, input_shape: Any, name: str = "forward_event_shape_tensor") -> Any:
        """The shape of one value of the function, int32."""
        return self._forward_event_shape_tensor(tf.convert_to_tensor(input_shape, tf.int32))

    def inverse_event_shape_tensor(self, output_shape: Any, name: str = "inverse_event_shape_tensor") -> Any:
        """The shape of one value of the inverse, int32."""
        return self._inverse_event_shape_tensor(tf.convert_to_tensor(output_shape, tf.int32))

    # Methods that a subclass overrides

    def _forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("forward not implemented.")

    def _inverse(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("inverse not implemented")

    def _forward_log_det_jacobian(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("forward_log_det_jacobian not implemented.")

    def _inverse_log_det_jacobian(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("inverse_log_det_jacobian not implemented.")

    def _forward_event_shape(self, shape: TensorShape) -> TensorShape:
        return shape

    def _inverse_event_shape(self, shape: TensorShape) -> TensorShape:
        return shape

    def _forward_event_shape_tensor(self, shape: Any) -> Any:
        return shape

    def _inverse_event_shape_tensor(self, shape: Any) -> Any:
        return shape


ConditionalBijector = Bijector


def _summed(found: Any, value: Any, least: int, dims: int) -> Any:
    """A determinant of each value of `least` dimensions, summed over those up to `dims`."""
    if dims < least:
        raise ValueError(f"event_ndims ({dims}) must be larger than min_event_ndims ({least})")
    whole = tf.reduce_sum(tf.zeros_like(value), list(range(-least, 0))) if least else tf.zeros_like(value)
    found = found + tf.cast(whole, found.dtype)
    return tf.reduce_sum(found, list(range(least - dims, 0))) if dims > least else found


class Identity(Bijector):
    """x."""

    def __init__(self, validate_args: bool = False, name: str = "identity") -> None:
        self._started(0, validate_args, name, constant=True)

    def _forward(self, x: Any) -> Any:
        return x

    _inverse = _forward

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return tf.constant(0.0, x.dtype)


class Exp(Bijector):
    """exp(x)."""

    def __init__(self, validate_args: bool = False, name: str = "exp") -> None:
        self._started(0, validate_args, name)

    def _forward(self, x: Any) -> Any:
        return tf.exp(x)

    def _inverse(self, y: Any) -> Any:
        return tf.log(y)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return x


class PowerTransform(Bijector):
    """(1 + power x)^(1 / power), and exp(x) where `power` is 0."""

    def __init__(self, power: float = 0.0, validate_args: bool = False, name: str = "power_transform") -> None:
        if power < 0:
            raise ValueError("`power` must be a non-negative TF constant.")
        self.power = power
        self._started(0, validate_args, name)

    def _forward(self, x: Any) -> Any:
        return tf.exp(x) if self.power == 0 else tf.exp(tf.log1p(x * self.power) / self.power)

    def _inverse(self, y: Any) -> Any:
        return tf.log(y) if self.power == 0 else tf.expm1(tf.log(y) * self.power) / self.power

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return (self.power - 1.0) * tf.log(y)


class Sigmoid(Bijector):
    """1 / (1 + exp(-x))."""

    def __init__(self, validate_args: bool = False, name: str = "sigmoid") -> None:
        self._started(0, validate_args, name)

    def _forward(self, x: Any) -> Any:
        return tf.sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        return tf.log(y) - tf.log1p(-y)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return -tf.nn.softplus(-x) - tf.nn.softplus(x)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -tf.log(y) - tf.log1p(-y)


class Softplus(Bijector):
    """hinge_softness * log(1 + exp(x / hinge_softness))."""

    def __init__(
        self, hinge_softness: Any = None, validate_args: bool = False, name: str = "softplus"
    ) -> None:
        self.hinge_softness = 1.0 if hinge_softness is None else hinge_softness
        self._started(0, validate_args, name)

    def _forward(self, x: Any) -> Any:
        return self.hinge_softness * tf.nn.softplus(x / self.hinge_softness)

    def _inverse(self, y: Any) -> Any:
        y = y / self.hinge_softness
        return self.hinge_softness * (y + tf.log(-tf.expm1(-y)))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return -tf.nn.softplus(-x / self.hinge_softness)


class Softsign(Bijector):
    """x / (1 + |x|)."""

    def __init__(self, validate_args: bool = False, name: str = "softsign") -> None:
        self._started(0, validate_args, name)

    def _forward(self, x: Any) -> Any:
        return x / (1.0 + tf.abs(x))

    def _inverse(self, y: Any) -> Any:
        return y / (1.0 - tf.abs(y))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return -2.0 * tf.log1p(tf.abs(x))


class Square(Bijector):
    """x^2 of numbers that are not negative."""

    def __init__(self, validate_args: bool = False, name: str = "square") -> None:
        self._started(0, validate_args, name)

    def _forward(self, x: Any) -> Any:
        return tf.square(x)

    def _inverse(self, y: Any) -> Any:
        return tf.sqrt(y)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return np.log(2.0) + tf.log(x)


class AbsoluteValue(Bijector):
    """|x|; the inverse is the pair (-y, y)."""

    def __init__(self, event_ndims: int = 0, validate_args: bool = False, name: str = "absolute_value") -> None:
        if event_ndims != 0:
            raise ValueError("event_ndims must be 0 for AbsoluteValue")
        self._started(0, validate_args, name)

    def _forward(self, x: Any) -> Any:
        return tf.abs(x)

    def _inverse(self, y: Any) -> Any:
        return -y, y


class Gumbel(Bijector):
    """exp(-exp(-(x - loc) / scale)), the cdf of Gumbel's distribution."""

    def __init__(
        self, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool = False, name: str = "gumbel"
    ) -> None:
        self.loc, self.scale = tf.convert_to_tensor(loc), tf.convert_to_tensor(scale)
        self._started(0, validate_args, name)

    def _forward(self, x: Any) -> Any:
        return tf.exp(-tf.exp(-(x - self.loc) / self.scale))

    def _inverse(self, y: Any) -> Any:
        return self.loc - self.scale * tf.log(-tf.log(y))

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return tf.log(self.scale / (-tf.log(y) * y))


class Weibull(Bijector):
    """1 - exp(-(x / scale)^concentration), the cdf of Weibull's distribution."""

    def __init__(
        self, scale: Any = 1.0, concentration: Any = 1.0, validate_args: bool = False, name: str = "weibull"
    ) -> None:
        self.scale, self.concentration = tf.convert_to_tensor(scale), tf.convert_to_tensor(concentration)
        self._started(0, validate_args, name)

    def _forward(self, x: Any) -> Any:
        return -tf.expm1(-tf.pow(x / self.scale, self.concentration))

    def _inverse(self, y: Any) -> Any:
        return self.scale * tf.pow(-tf.log1p(-y), 1.0 / self.concentration)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        z, k = x / self.scale, self.concentration
        return -tf.pow(z, k) + (k - 1.0) * tf.log(z) + tf.log(k) - tf.log(self.scale)


class Kumaraswamy(Bijector):
    """(1 - (1 - x)^(1 / concentration0))^(1 / concentration1), the inverse cdf."""

    def __init__(
        self, concentration1: Any = None, concentration0: Any = None, validate_args: bool = False,
        name: str = "kumaraswamy",
    ) -> None:  # fmt: skip
        self.concentration1, self.concentration0 = map(tf.convert_to_tensor, (concentration1, concentration0))
        self._started(0, validate_args, name)

    def _forward(self, x: Any) -> Any:
        return tf.pow(1.0 - tf.pow(1.0 - x, 1.0 / self.concentration0), 1.0 / self.concentration1)

    def _inverse(self, y: Any) -> Any:
        return 1.0 - tf.pow(1.0 - tf.pow(y, self.concentration1), self.concentration0)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        a, b = self.concentration1, self.concentration0
        return tf.log(a) + tf.log(b) + (a - 1.0) * tf.log(y) + (b - 1.0) * tf.log1p(-tf.pow(y, a))


class SinhArcsinh(Bijector):
    """sinh((arcsinh(x) + skewness) * tailweight)."""

    def __init__(
        self, skewness: Any = None, tailweight: Any = None, validate_args: bool = False, name: str = "SinhArcsinh"
    ) -> None:
        tail = 1.0 if tailweight is None else tailweight
        self.tailweight = tf.convert_to_tensor(tail, getattr(skewness, "dtype", None))
        self.skewness = tf.convert_to_tensor(0.0 if skewness is None else skewness, self.tailweight.dtype)
        self._started(0, validate_args, name)

    def _forward(self, x: Any) -> Any:
        return tf.sinh((tf.asinh(x) + self.skewness) * self.tailweight)

    def _inverse(self, y: Any) -> Any:
        return tf.sinh(tf.asinh(y) / self.tailweight - self.skewness)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        inner = (tf.asinh(x) + self.skewness) * self.tailweight
        return tf.log(tf.cosh(inner)) + tf.log(self.tailweight) - 0.5 * tf.log1p(tf.square(x))


class AffineScalar(Bijector):
    """scale * x + shift, number by number."""

    def __init__(
        self, shift: Any = None, scale: Any = None, validate_args: bool = False, name: str = "affine_scalar"
    ) -> None:
        self.shift = None if shift is None else tf.convert_to_tensor(shift)
        self.scale = None if scale is None else tf.convert_to_tensor(scale)
        self._started(0, validate_args, name, constant=True)

    def _forward(self, x: Any) -> Any:
        x = x if self.scale is None else x * self.scale
        return x if self.shift is None else x + self.shift

    def _inverse(self, y: Any) -> Any:
        y = y if self.shift is None else y - self.shift
        return y if self.scale is None else y / self.scale

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return tf.constant(0.0, x.dtype) if self.scale is None else tf.log(tf.abs(self.scale))


class Affine(Bijector):
    """scale @ x + shift of vectors; `scale` is the sum of its parts.

    Args:
      shift: a vector [..., n].
      scale_identity_multiplier: a factor of the identity.
      scale_diag: a diagonal [..., n].
      scale_tril: a lower triangle [..., n, n].
      scale_perturb_factor, scale_perturb_diag: V [..., n, r] and D [..., r] of V D V^T.
    """

    def __init__(
        self, shift: Any = None, scale_identity_multiplier: Any = None, scale_diag: Any = None, scale_tril: Any = None,
        scale_perturb_factor: Any = None, scale_perturb_diag: Any = None, validate_args: bool = False,
        name: str = "affine",
    ) -> None:  # fmt: skip
        self.shift = None if shift is None else tf.convert_to_tensor(shift)
        parts = []
        if scale_tril is not None:
            parts.append(tf.matrix_band_part(tf.convert_to_tensor(scale_tril), -1, 0))
        if scale_diag is not None:
            parts.append(tf.matrix_diag(tf.convert_to_tensor(scale_diag)))
        if scale_perturb_factor is not None:
            factor = tf.convert_to_tensor(scale_perturb_factor)
            other = factor if scale_perturb_diag is None else factor * tf.expand_dims(scale_perturb_diag, -2)
            parts.append(tf.matmul(other, factor, transpose_b=True))
        self._factor = None
        if scale_identity_multiplier is not None or (scale_perturb_factor is not None and len(parts) == 1):
            one = 1.0 if scale_identity_multiplier is None else scale_identity_multiplier
            self._factor = tf.convert_to_tensor(one)
        if self._factor is not None and parts:
            size = tf.shape(parts[0])[-1]
            parts.append(tf.eye(size, dtype=parts[0].dtype) * self._factor[..., None, None])
        self.scale = tf.add_n(parts) if parts else None
        self._started(1, validate_args, name, constant=True)

    def _forward(self, x: Any) -> Any:
        if self.scale is not None:
            x = tf.squeeze(tf.matmul(*_together(self.scale, x)), -1)
        elif self._factor is not None:
            x = x * self._factor[..., None]
        return x if self.shift is None else x + self.shift

    def _inverse(self, y: Any) -> Any:
        y = y if self.shift is None else y - self.shift
        if self.scale is not None:
            return tf.squeeze(tf.matrix_solve(*_together(self.scale, y)), -1)
        return y if self._factor is None else y / self._factor[..., None]

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        if self.scale is not None:
            return tf.log(tf.abs(tf.matrix_determinant(self.scale)))
        if self._factor is not None:
            return tf.log(tf.abs(self._factor)) * tf.cast(tf.shape(x)[-1], x.dtype)
        return tf.constant(0.0, x.dtype)


def _together(matrix: Any, vector: Any) -> tuple[Any, Any]:
    """A matrix and vectors as columns, of one batch shape."""
    batch = tf.broadcast_dynamic_shape(tf.shape(matrix)[:-2], tf.shape(vector)[:-1])
    whole = tf.broadcast_to(matrix, tf.concat([batch, tf.shape(matrix)[-2:]], 0))
    return whole, tf.expand_dims(tf.broadcast_to(vector, tf.concat([batch, tf.shape(vector)[-1:]], 0)), -1)


class Permute(Bijector):
    """x with the elements of its last dimension in another order."""

    def __init__(self, permutation: Any, validate_args: bool = False, name: str | None = None) -> None:
        self.permutation = tf.convert_to_tensor(permutation, tf.int32)
        self._started(1, validate_args, name or "permute", constant=True)

    def _forward(self, x: Any) -> Any:
        return tf.gather(x, self.permutation, axis=-1)

    def _inverse(self, y: Any) -> Any:
        return tf.gather(y, tf.invert_permutation(self.permutation), axis=-1)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return tf.constant(0.0, x.dtype)


class SoftmaxCentered(Bijector):
    """softmax([x, 0]): a vector of n numbers as n + 1 numbers whose sum is 1."""

    def __init__(self, validate_args: bool = False, name: str = "softmax_centered") -> None:
        self._started(1, validate_args, name)

    def _forward(self, x: Any) -> Any:
        return tf.nn.softmax(tf.concat([x, tf.zeros_like(x[..., :1])], -1))

    def _inverse(self, y: Any) -> Any:
        logs = tf.log(y)
        return logs[..., :-1] - logs[..., -1:]

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        size = tf.cast(tf.shape(y)[-1], y.dtype)
        return -(0.5 * tf.log(size) + tf.reduce_sum(tf.log(y), -1))

    def _forward_event_shape(self, shape: TensorShape) -> TensorShape:
        return TensorShape([*shape[:-1].as_list(), None if shape[-1].value is None else shape[-1].value + 1])

    def _inverse_event_shape(self, shape: TensorShape) -> TensorShape:
        return TensorShape([*shape[:-1].as_list(), None if shape[-1].value is None else shape[-1].value - 1])

    def _forward_event_shape_tensor(self, shape: Any) -> Any:
        return tf.concat([shape[:-1], shape[-1:] + 1], 0)

    def _inverse_event_shape_tensor(self, shape: Any) -> Any:
        return tf.concat([shape[:-1], shape[-1:] - 1], 0)


class Reshape(Bijector):
    """x whose values of shape `event_shape_in` have the shape `event_shape_out`."""

    def __init__(
        self, event_shape_out: Any, event_shape_in: Any = (-1,), validate_args: bool = False, name: str | None = None
    ) -> None:
        self._out, self._in = list(event_shape_out), list(event_shape_in)
        Bijector.__init__(
            self, is_constant_jacobian=True, validate_args=validate_args, forward_min_event_ndims=len(self._in),
            inverse_min_event_ndims=len(self._out), name=name or "reshape",
        )  # fmt: skip

    def _forward(self, x: Any) -> Any:
        return self._moved(x, self._in, self._out)

    def _inverse(self, y: Any) -> Any:
        return self._moved(y, self._out, self._in)

    def _moved(self, value: Any, before: list[int], after: list[int]) -> Any:
        rank = value.shape.ndims
        static = value.shape[: rank - len(before)]
        result = tf.reshape(value, tf.concat([tf.shape(value)[: rank - len(before)], after], 0))
        result.set_shape(static.concatenate([None if each == -1 else each for each in after]))
        return result

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return tf.constant(0.0, x.dtype)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return tf.constant(0.0, y.dtype)

    def _forward_event_shape(self, shape: TensorShape) -> TensorShape:
        return _reshaped(shape, self._in, self._out)

    def _inverse_event_shape(self, shape: TensorShape) -> TensorShape:
        return _reshaped(shape, self._out, self._in)

    def _forward_event_shape_tensor(self, shape: Any) -> Any:
        return tf.convert_to_tensor(self.forward_event_shape(tf.contrib.util.constant_value(shape)).as_list())

    def _inverse_event_shape_tensor(self, shape: Any) -> Any:
        return tf.convert_to_tensor(self.inverse_event_shape(tf.contrib.util.constant_value(shape)).as_list())


def _reshaped(shape: TensorShape, before: list[int], after: list[int]) -> TensorShape:
    place = len(shape.as_list()) - len(before)
    outer, inner = shape[:place], shape[place:]
    count, rest = inner.num_elements(), int(np.prod([each for each in after if each != -1]))
    unknown = None if count is None else count // rest
    return outer.concatenate([unknown if each == -1 else each for each in after])


class FillTriangular(Bijector):
    """A vector of n (n + 1) / 2 numbers as a lower triangle [n, n]."""

    def __init__(self, upper: bool = False, validate_args: bool = False, name: str = "fill_triangular") -> None:
        self._upper = upper
        Bijector.__init__(
            self, is_constant_jacobian=True, validate_args=validate_args, forward_min_event_ndims=1,
            inverse_min_event_ndims=2, name=name,
        )  # fmt: skip

    def _forward(self, x: Any) -> Any:
        return fill_triangular(x, self._upper)

    def _inverse(self, y: Any) -> Any:
        return fill_triangular_inverse(y, self._upper)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return tf.constant(0.0, x.dtype)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return tf.constant(0.0, y.dtype)


class TransformDiagonal(Bijector):
    """A matrix whose diagonal went through another bijector."""

    def __init__(self, diag_bijector: Bijector, validate_args: bool = False, name: str = "transform_diagonal") -> None:
        self._of_diagonal = diag_bijector
        self._started(2, validate_args, name)

    def _forward(self, x: Any) -> Any:
        return tf.matrix_set_diag(x, self._of_diagonal.forward(tf.matrix_diag_part(x)))

    def _inverse(self, y: Any) -> Any:
        return tf.matrix_set_diag(y, self._of_diagonal.inverse(tf.matrix_diag_part(y)))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return self._of_diagonal.forward_log_det_jacobian(tf.matrix_diag_part(x), 1)


class Inline(Bijector):
    """A bijector of functions.

    Args:
      forward_fn, inverse_fn: the function and its inverse.
      forward_log_det_jacobian_fn, inverse_log_det_jacobian_fn: the logarithms of the determinants; one is enough.
      forward_event_shape_fn, inverse_event_shape_fn: shapes of one value; the same by default.
    """

    def __init__(
        self, forward_fn: Callable[..., Any] | None = None, inverse_fn: Callable[..., Any] | None = None,
        inverse_log_det_jacobian_fn: Callable[..., Any] | None = None,
        forward_log_det_jacobian_fn: Callable[..., Any] | None = None,
        forward_event_shape_fn: Callable[..., Any] | None = None,
        forward_event_shape_tensor_fn: Callable[..., Any] | None = None,
        inverse_event_shape_fn: Callable[..., Any] | None = None,
        inverse_event_shape_tensor_fn: Callable[..., Any] | None = None,
        is_constant_jacobian: bool = False, validate_args: bool = False, forward_min_event_ndims: int | None = None,
        inverse_min_event_ndims: int | None = None, name: str = "inline",
    ) -> None:  # fmt: skip
        super().__init__(None, is_constant_jacobian, validate_args, None, forward_min_event_ndims,
                         inverse_min_event_ndims, name)  # fmt: skip
        given = {
            "_forward": forward_fn, "_inverse": inverse_fn, "_inverse_log_det_jacobian": inverse_log_det_jacobian_fn,
            "_forward_log_det_jacobian": forward_log_det_jacobian_fn, "_forward_event_shape": forward_event_shape_fn,
            "_forward_event_shape_tensor": forward_event_shape_tensor_fn,
            "_inverse_event_shape": inverse_event_shape_fn,
            "_inverse_event_shape_tensor": inverse_event_shape_tensor_fn,
        }  # fmt: skip
        for name_, function in given.items():
            if function is not None:
                setattr(self, name_, function)


class Invert(Bijector):
    """The inverse of a bijector."""

    def __init__(self, bijector: Bijector, validate_args: bool = False, name: str | None = None) -> None:
        self.bijector = bijector
        super().__init__(
            None, bijector.is_constant_jacobian, validate_args, bijector.dtype, bijector.inverse_min_event_ndims,
            bijector.forward_min_event_ndims, name or f"invert_{bijector.name}",
        )  # fmt: skip
        self._forward = bijector._inverse  # type: ignore[method-assign]
        self._inverse = bijector._forward  # type: ignore[method-assign]
        self._forward_event_shape = bijector._inverse_event_shape  # type: ignore[method-assign]
        self._inverse_event_shape = bijector._forward_event_shape  # type: ignore[method-assign]
        self._forward_event_shape_tensor = bijector._inverse_event_shape_tensor  # type: ignore[method-assign]
        self._inverse_event_shape_tensor = bijector._forward_event_shape_tensor  # type: ignore[method-assign]

    def forward_log_det_jacobian(self, x: Any, event_ndims: int | None = None, name: str = "", **kwargs: Any) -> Any:
        """The inner bijector's inverse_log_det_jacobian."""
        return self.bijector.inverse_log_det_jacobian(x, event_ndims, **kwargs)

    def inverse_log_det_jacobian(self, y: Any, event_ndims: int | None = None, name: str = "", **kwargs: Any) -> Any:
        """The inner bijector's forward_log_det_jacobian."""
        return self.bijector.forward_log_det_jacobian(y, event_ndims, **kwargs)


class Chain(Bijector):
    """Bijectors one after the other; the last of the list is applied first."""

    def __init__(
        self, bijectors: Sequence[Bijector] | None = None, validate_args: bool = False, name: str | None = None
    ) -> None:
        self.bijectors = list(bijectors or ())
        before = after = 0
        for each in self.bijectors:  # from the outputs to the inputs
            more = max(0, each.inverse_min_event_ndims - before)
            before, after = before + more, after + more
            before += each.forward_min_event_ndims - each.inverse_min_event_ndims
        super().__init__(
            None, all(each.is_constant_jacobian for each in self.bijectors), validate_args, None, before, after,
            name or "_of_".join(["chain", *[each.name for each in self.bijectors]]),
        )  # fmt: skip

    def _forward(self, x: Any, **kwargs: Any) -> Any:
        for each in reversed(self.bijectors):
            x = each.forward(x, **kwargs.get(each.name, {}))
        return x

    def _inverse(self, y: Any, **kwargs: Any) -> Any:
        for each in self.bijectors:
            y = each.inverse(y, **kwargs.get(each.name, {}))
        return y

    def _forward_log_det_jacobian(self, x: Any, **kwargs: Any) -> Any:
        total, dims = tf.constant(0.0, x.dtype), self.forward_min_event_ndims
        for each in reversed(self.bijectors):
            own = kwargs.get(each.name, {})
            total += each.forward_log_det_jacobian(x, dims, **own)
            x, dims = each.forward(x, **own), dims + each.inverse_min_event_ndims - each.forward_min_event_ndims
        return total

    def _inverse_log_det_jacobian(self, y: Any, **kwargs: Any) -> Any:
        total, dims = tf.constant(0.0, y.dtype), self.inverse_min_event_ndims
        for each in self.bijectors:
            own = kwargs.get(each.name, {})
            total += each.inverse_log_det_jacobian(y, dims, **own)
            y, dims = each.inverse(y, **own), dims + each.forward_min_event_ndims - each.inverse_min_event_ndims
        return total

    def _forward_event_shape(self, shape: TensorShape) -> TensorShape:
        for each in reversed(self.bijectors):
            shape = each.forward_event_shape(shape)
        return shape

    def _inverse_event_shape(self, shape: TensorShape) -> TensorShape:
        for each in self.bijectors:
            shape = each.inverse_event_shape(shape)
        return shape

    def _forward_event_shape_tensor(self, shape: Any) -> Any:
        for each in reversed(self.bijectors):
            shape = each.forward_event_shape_tensor(shape)
        return shape

    def _inverse_event_shape_tensor(self, shape: Any) -> Any:
        for each in self.bijectors:
            shape = each.inverse_event_shape_tensor(shape)
        return shape
