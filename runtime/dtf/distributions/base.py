"""The class under all distributions: public methods, name scopes and shapes; a distribution gives the formulas.

Owns the shape of samples, [*sample_shape, *batch_shape, *event_shape], and results that follow from other formulas: a
probability from its logarithm, a deviation from a variance.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from dtf.build.constant_value import constant_value, constant_value_as_shape
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops.array import rank, reshape, shape_of
from dtf.build.ops.joining import concat
from dtf.build.ops.math import exp, log, log1p, sqrt, square
from dtf.build.ops.reductions import reduce_prod
from dtf.build.tensor import Tensor
from dtf.distributions.kl_table import kl_divergence
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape


class ReparameterizationType:
    """Whether gradients go through samples."""

    def __init__(self, rep_type: str) -> None:
        self._rep_type = rep_type

    def __repr__(self) -> str:
        return f"<Reparameterization Type: {self._rep_type}>"


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")


class Distribution:
    """Base of all distributions; the formulas are methods of subclasses with a leading underscore.

    Args:
      dtype: the dtype of samples.
      reparameterization_type: whether gradients go through samples.
      validate_args: accepted; parameters are not checked.
      allow_nan_stats: whether an undefined mean or variance is NaN rather than an error.
      parameters: the arguments of the subclass by name.
      name: the name scope of all operations.
    """

    _event_dims = 0
    _opened: str | None = None

    def __init__(
        self,
        dtype: Any,
        reparameterization_type: ReparameterizationType,
        validate_args: bool,
        allow_nan_stats: bool,
        parameters: dict[str, Any] | None = None,
        graph_parents: Any = None,
        name: str | None = None,
    ) -> None:
        del graph_parents
        self._dtype, self._reparameterization_type = dtype, reparameterization_type
        self._validate_args, self._allow_nan_stats = validate_args, allow_nan_stats
        self._parameters = {key: value for key, value in (parameters or {}).items() if key not in ("self", "__class__")}
        # The scope that the parameters were made in; one of its own where there was none.
        with name_scope(self._opened or name or type(self).__name__) as scope:
            self._name = scope

    def _begin(self, dtype: Any, reparameterization_type: ReparameterizationType, given: dict[str, Any]) -> None:
        """The constructor, for a subclass whose arguments by name are `given`."""
        Distribution.__init__(
            self, dtype, reparameterization_type, given["validate_args"], given["allow_nan_stats"], given,
            name=given["name"],
        )  # fmt: skip

    @property
    def name(self) -> str:
        """The name scope, with a final slash."""
        return self._name

    @property
    def dtype(self) -> Any:
        """The dtype of samples."""
        return self._dtype

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments by name."""
        return dict(self._parameters)

    @property
    def reparameterization_type(self) -> ReparameterizationType:
        """Whether gradients go through samples."""
        return self._reparameterization_type

    @property
    def allow_nan_stats(self) -> bool:
        """As given."""
        return self._allow_nan_stats

    @property
    def validate_args(self) -> bool:
        """As given."""
        return self._validate_args

    @property
    def batch_shape(self) -> TensorShape:
        """The static shape of the parameters of single distributions."""
        return self._batch_shape()

    @property
    def event_shape(self) -> TensorShape:
        """The static shape of one sample of one distribution."""
        return self._event_shape()

    def copy(self, **override_parameters_kwargs: Any) -> Any:
        """A distribution of the same class with other arguments."""
        return type(self)(**{**self._parameters, **override_parameters_kwargs})

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The batch shape, int32."""
        with self._scope(name):
            return convert_to_tensor(self._batch_shape_tensor(), dtypes.int32)

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Tensor:
        """The event shape, int32."""
        with self._scope(name):
            return convert_to_tensor(self._event_shape_tensor(), dtypes.int32)

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Tensor:
        """Whether it is one distribution."""
        return convert_to_tensor(self.batch_shape.ndims == 0, name=name)

    def is_scalar_event(self, name: str = "is_scalar_event") -> Tensor:
        """Whether a sample is a scalar."""
        return convert_to_tensor(self.event_shape.ndims == 0, name=name)

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Tensor:
        """Samples [*sample_shape, *batch_shape, *event_shape]."""
        with self._scope(name):
            shape = convert_to_tensor(sample_shape, dtypes.int32, name="sample_shape")
            value = constant_value(shape)
            known = TensorShape([None] if value is None else value.ravel().tolist())
            if value is None and shape.shape.ndims == 1:
                known = constant_value_as_shape(shape)
            shape = reshape(shape, [-1]) if shape.shape.ndims == 0 else shape
            drawn = self._sample_n(reduce_prod(shape), seed)
            result = reshape(drawn, concat([shape, shape_of(drawn)[1:]], 0))
            result.set_shape(known.concatenate(self.batch_shape).concatenate(self.event_shape))
            return result

    def log_prob(self, value: Any, name: str = "log_prob") -> Tensor:
        """The logarithm of the density or mass at `value`."""
        return self._of(name, value, [(self._log_prob, None), (self._prob, log)])

    def prob(self, value: Any, name: str = "prob") -> Tensor:
        """The density or mass at `value`."""
        return self._of(name, value, [(self._prob, None), (self._log_prob, exp)])

    def cdf(self, value: Any, name: str = "cdf") -> Tensor:
        """The probability of samples up to `value`."""
        return self._of(name, value, [(self._cdf, None), (self._log_cdf, exp)])

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Tensor:
        """The logarithm of `cdf`."""
        return self._of(name, value, [(self._log_cdf, None), (self._cdf, log)])

    def survival_function(self, value: Any, name: str = "survival_function") -> Tensor:
        """The probability of samples above `value`."""
        return self._of(name, value, [(self._cdf, lambda p: 1.0 - p)])

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Tensor:
        """The logarithm of `survival_function`."""
        return self._of(name, value, [(self._cdf, lambda p: log1p(-p))])

    def quantile(self, value: Any, name: str = "quantile") -> Tensor:
        """The quantile: the value with the given fraction of samples below it."""
        return self._of(name, value, [(self._quantile, None)])

    def entropy(self, name: str = "entropy") -> Tensor:
        """Shannon's entropy in nats."""
        return self._of(name, None, [(self._entropy, None)])

    def mean(self, name: str = "mean") -> Tensor:
        """The mean."""
        return self._of(name, None, [(self._mean, None)])

    def mode(self, name: str = "mode") -> Tensor:
        """The most probable value."""
        return self._of(name, None, [(self._mode, None)])

    def variance(self, name: str = "variance") -> Tensor:
        """The variance of each element."""
        return self._of(name, None, [(self._variance, None), (self._stddev, square)])

    def stddev(self, name: str = "stddev") -> Tensor:
        """The standard deviation of each element."""
        return self._of(name, None, [(self._stddev, None), (self._variance, sqrt)])

    def covariance(self, name: str = "covariance") -> Tensor:
        """The covariances of the elements of a vector."""
        return self._of(name, None, [(self._covariance, None)])

    def kl_divergence(self, other: Distribution, name: str = "kl_divergence") -> Tensor:
        """The divergence of Kullback and Leibler from this distribution to the other."""
        with self._scope(name):
            return kl_divergence(self, other)

    def cross_entropy(self, other: Distribution, name: str = "cross_entropy") -> Tensor:
        """The entropy plus the divergence to the other."""
        with self._scope(name):
            return self.kl_divergence(other) + self.entropy()

    def __str__(self) -> str:
        return (
            f'tf.distributions.{type(self).__name__}("{self.name}", batch_shape={self.batch_shape}, '
            f"event_shape={self.event_shape}, dtype={self.dtype.name})"
        )

    __repr__ = __str__

    @contextlib.contextmanager
    def _scope(self, name: str) -> Iterator[None]:
        with name_scope(self._name), name_scope(name):
            yield

    def _of(self, name: str, value: Any, ways: list[tuple[Callable[..., Any], Callable[[Any], Any] | None]]) -> Tensor:
        """The first of several formulas that the distribution has."""
        with self._scope(name):
            hint = self._value_dtype()
            given = () if value is None else (convert_to_tensor(value, name="value", preferred_dtype=hint),)
            for formula, then in ways:
                try:
                    found = formula(*given)
                except NotImplementedError:
                    continue
                return found if then is None else then(found)
        raise NotImplementedError(f"{name} is not implemented: {type(self).__name__}")

    def _value_dtype(self) -> Any:
        return self._dtype

    def _batch_shape(self) -> TensorShape:
        raise NotImplementedError

    def _event_shape(self) -> TensorShape:
        return TensorShape([])

    def _batch_shape_tensor(self) -> Any:
        raise NotImplementedError

    def _event_shape_tensor(self) -> Any:
        return []

    def _sample_n(self, n: Tensor, seed: int | None = None) -> Tensor:
        raise NotImplementedError(f"sample is not implemented: {type(self).__name__}")

    def _missing(self, *_: Any) -> Any:
        raise NotImplementedError

    _log_prob = _prob = _log_cdf = _cdf = _quantile = _missing
    _entropy = _mean = _mode = _variance = _stddev = _covariance = _missing


def static_rank(tensor: Tensor) -> int | Tensor:
    """The rank, or a tensor of it."""
    return rank(tensor) if tensor.shape.ndims is None else tensor.shape.ndims
