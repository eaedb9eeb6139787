"""Batch normalisation.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/layers/BatchNormalization, arXiv 1502.03167
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.initializers import ones_initializer, zeros_initializer
from dtf.build.ops import array as array_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import normalization as normalization_ops
from dtf.build.tensor import Tensor
from dtf.layers.base import InputSpec, Layer
from dtf.layers.batch_corrections import corrected, root_of, virtual_parameters
from dtf.layers.choices import either, known_size, static_bool
from dtf.train.moving_averages import assign_moving_average
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

__all__ = ["BatchNormalization", "batch_normalization"]

Normalize = Callable[[bool], list[Tensor]]


class BatchNormalization(Layer):
    """Batch normalisation with moving statistics for inference.

    While training, the ops that move the statistics are added to the collection UPDATE_OPS; the training op must
    depend on them::

        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train_op = optimizer.minimize(loss)

    The variables are gamma, beta, moving_mean and moving_variance [channels], float32 for inputs of 16 bits.
    """

    def __init__(
        self,
        axis: Any = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = zeros_initializer(),  # noqa: B008 - as TensorFlow's signature shows it
        gamma_initializer: Any = ones_initializer(),  # noqa: B008
        moving_mean_initializer: Any = zeros_initializer(),  # noqa: B008
        moving_variance_initializer: Any = ones_initializer(),  # noqa: B008
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """
        Args:
          axis: the dimension of the channels, which is not averaged over, or a list of dimensions.
          momentum: how much of the moving statistics is kept at each step.
          center, scale: whether to add beta, and to multiply by gamma.
          renorm: whether to correct the batch's statistics by averages of earlier batches (arXiv 1702.03275).
          renorm_clipping: bounds of the corrections r and d: numbers for "rmin", "rmax" and "dmax".
          renorm_momentum: how much of those averages is kept at each step.
          fused: whether to use the one op for it; where it can be (rank 4, no corrections) by default.
          virtual_batch_size: the size of the parts of a batch that have statistics of their own.
          adjustment: while training, shape of the inputs -> a scale and an offset of the normalised inputs.

        Raises:
          ValueError: `renorm_clipping` has other keys.
        """
        super().__init__(trainable, name, **kwargs)
        unknown = set(renorm_clipping or {}) - {"rmin", "rmax", "dmax"}
        if unknown:
            raise ValueError(f"renorm_clipping may have the keys rmin, rmax and dmax, got {sorted(unknown)}")
        self.renorm, self.renorm_clipping, self.renorm_momentum = renorm, dict(renorm_clipping or {}), renorm_momentum
        self.virtual_batch_size, self.adjustment = virtual_batch_size, adjustment
        self._corrected = bool(renorm or virtual_batch_size is not None or adjustment is not None)
        self.axis = list(axis) if isinstance(axis, list | tuple) else [axis]
        self.momentum, self.epsilon = momentum, epsilon
        self.center, self.scale = center, scale
        self.beta_initializer, self.gamma_initializer = beta_initializer, gamma_initializer
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta_constraint, self.gamma_constraint = beta_constraint, gamma_constraint
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = moving_variance_initializer
        self.fused = fused
        self.gamma: Any = None
        self.beta: Any = None
        self.moving_mean: Any = None
        self.moving_variance: Any = None
        self.moving_stddev: Any = None
        self.renorm_mean: Any = None
        self.renorm_stddev: Any = None

    def build(self, input_shape: Any) -> None:
        """Makes the variables.

        Raises:
          ValueError: the number of channels is unknown, `fused` is requested but impossible, or virtual_batch_size is
            not positive, or does not go with the axis or an adjustment.
        """
        input_shape = TensorShape(input_shape)
        rank = input_shape.ndims
        if rank is None:
            raise ValueError(f"The rank of the inputs of layer {self.name} must be known.")
        self.axis = sorted(axis + rank if axis < 0 else axis for axis in self.axis)
        if not self.axis or self.axis[0] < 0 or self.axis[-1] >= rank or len(set(self.axis)) < len(self.axis):
            raise ValueError(f"Invalid axis for layer {self.name}: inputs {input_shape} do not have {self.axis}.")
        kept = dtypes.float32 if self.dtype is None or self.dtype.size == 2 else self.dtype
        can_fuse = rank == 4 and self.axis in ([1], [3])
        if self.fused and not can_fuse:
            raise ValueError("Fused batch norm takes images, with the channels in dimension 1 or 3.")
        self.fused = can_fuse and self.fused is not False and kept == dtypes.float32 and not self._corrected
        sizes = {axis: known_size(input_shape, axis, self.name) for axis in self.axis}
        self.input_spec = InputSpec(ndim=rank, axes=sizes)
        shape = list(sizes.values()) if len(sizes) == 1 else [sizes.get(axis, 1) for axis in range(rank)]

        if self.virtual_batch_size is not None:
            shape = virtual_parameters(self.virtual_batch_size, sizes, rank, self.adjustment)
            self.axis = [axis + 1 for axis in self.axis]

        def make(
            name: str, initializer: Any, regularizer: Any = None, constraint: Any = None, trainable: bool = False
        ) -> Any:
            return self.add_weight(name, shape, kept, initializer, regularizer, trainable, constraint)

        if self.scale:
            self.gamma = make("gamma", self.gamma_initializer, self.gamma_regularizer, self.gamma_constraint, True)
        if self.center:
            self.beta = make("beta", self.beta_initializer, self.beta_regularizer, self.beta_constraint, True)
        self.moving_mean = make("moving_mean", self.moving_mean_initializer)
        self.moving_variance = make("moving_variance", self.moving_variance_initializer)
        if self.renorm:
            deviation = root_of(self.moving_variance_initializer)
            self.moving_stddev = make("moving_stddev", deviation)
            self.renorm_mean = make("renorm_mean", self.moving_mean_initializer)
            self.renorm_stddev = make("renorm_stddev", deviation)
        super().build(input_shape)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs, unchanged."""
        return input_shape

    def call(self, inputs: Tensor, training: Any = False) -> Tensor:
        """`training`: whether to use the batch's statistics, not the moving ones; a bool or a bool scalar tensor."""
        known = static_bool(training)
        if self._corrected:
            outputs, updates = corrected(self, inputs, training)
            for update in updates:
                self.add_update(update, inputs)
            return outputs
        normalize = self._in_one(inputs) if self.fused else self._in_steps(inputs)
        outputs, mean, variance = either(training, known, lambda: normalize(True), lambda: normalize(False))
        outputs.set_shape(inputs.shape)
        if known is not False:
            decay = self.momentum if known else either(
                training, None, lambda: [constant(self.momentum)], lambda: [constant(1.0)]
            )[0]
            for moving, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
                self.add_update(assign_moving_average(moving, value, decay, zero_debias=False), inputs)
        return outputs

    def _in_one(self, inputs: Tensor) -> Normalize:
        """(training -> outputs, mean, variance) by the one op; its variance is the unbiased estimate for the
        population."""
        (axis,) = self.axis
        channels = inputs.shape[axis].value
        scale = constant(1.0, shape=[channels]) if self.gamma is None else self.gamma
        offset = constant(0.0, shape=[channels]) if self.beta is None else self.beta

        def normalize(training: bool) -> list[Tensor]:
            return list(
                normalization_ops.fused_batch_norm(
                    inputs,
                    scale,
                    offset,
                    mean=None if training else self.moving_mean,
                    variance=None if training else self.moving_variance,
                    epsilon=self.epsilon,
                    data_format="NHWC" if axis == 3 else "NCHW",
                    is_training=training,
                )
            )

        return normalize

    def _in_steps(self, inputs: Tensor) -> Normalize:
        """The same in simple ops, for any rank; the variance is the batch's own."""
        rank = inputs.shape.ndims
        assert rank is not None
        others = [axis for axis in range(rank) if axis not in self.axis]
        several = len(self.axis) > 1
        around = [-1 if axis in self.axis else 1 for axis in range(rank)]

        def spread(vector: Any) -> Any:
            """The statistics of the channels, in the inputs' dtype and in a shape that broadcasts to them."""
            if vector is None:
                return None
            if not several and self.axis != [rank - 1]:
                vector = array_ops.reshape(vector, around)
            return math_ops.cast(vector, inputs.dtype)

        def normalize(training: bool) -> list[Tensor]:
            if training:
                exact = math_ops.cast(inputs, self.moving_mean.dtype.base_dtype)
                mean, variance = normalization_ops.moments(exact, others, keep_dims=several)
            else:
                mean, variance = convert_to_tensor(self.moving_mean), convert_to_tensor(self.moving_variance)
            outputs = normalization_ops.batch_normalization(
                inputs, spread(mean), spread(variance), spread(self.beta), spread(self.gamma), self.epsilon
            )
            return [outputs, mean, variance]

        return normalize


def batch_normalization(
    inputs: Any,
    axis: Any = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = zeros_initializer(),  # noqa: B008
    gamma_initializer: Any = ones_initializer(),  # noqa: B008
    moving_mean_initializer: Any = zeros_initializer(),  # noqa: B008
    moving_variance_initializer: Any = ones_initializer(),  # noqa: B008
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: bool | None = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_momentum: float = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: Any = None,
) -> Tensor:
    """Makes a `BatchNormalization`, or takes the one of this `name` if `reuse`, and calls it on `inputs`."""
    layer = BatchNormalization(
        axis,
        momentum,
        epsilon,
        center,
        scale,
        beta_initializer,
        gamma_initializer,
        moving_mean_initializer,
        moving_variance_initializer,
        beta_regularizer,
        gamma_regularizer,
        beta_constraint,
        gamma_constraint,
        renorm,
        renorm_clipping,
        renorm_momentum,
        fused,
        trainable,
        virtual_batch_size,
        adjustment,
        name,
        _reuse=reuse,
        _scope=name,
    )
    return layer(inputs, training=training)
