"""tf.estimator.export: the inputs of a served model, and the signatures from inputs to outputs.

    receiver_fn = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [None, 4])})
    estimator.export_saved_model("exports", receiver_fn)

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/export
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dtf import logging
from dtf.build.graph import Tensor
from dtf.build.ops.array import placeholder
from dtf.build.ops.parsing import parse_example
from dtf.build.sparse import SparseTensor
from dtf.estimator.export_output import ClassificationOutput, ExportOutput, PredictOutput, RegressionOutput
from dtf.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from dtf.saved_model.signature_def_utils import is_valid_signature
from dtf.wire import dtypes

__all__ = [
    "ClassificationOutput",
    "ExportOutput",
    "PredictOutput",
    "RegressionOutput",
    "ServingInputReceiver",
    "TensorServingInputReceiver",
    "build_parsing_serving_input_receiver_fn",
    "build_raw_serving_input_receiver_fn",
]


@dataclass(frozen=True)
class ServingInputReceiver:
    """The inputs that a server feeds, and the features made from them.

    Args:
      features: a tensor (which the model_fn gets as {"feature": tensor}) or a dict of them, as the model_fn takes them.
      receiver_tensors: a string tensor of serialized examples, or a dict of tensors, that are fed.
      receiver_tensors_alternatives: dict from names to other tensors that may be fed instead.

    Raises:
      ValueError: a value is not a tensor, or a name is not a string.
    """

    features: Any
    receiver_tensors: Any
    receiver_tensors_alternatives: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", _named(self.features, "feature"))
        _fill_receivers(self)


@dataclass(frozen=True)
class TensorServingInputReceiver:
    """A ServingInputReceiver whose features are one tensor, without a dict."""

    features: Any
    receiver_tensors: Any
    receiver_tensors_alternatives: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.features, Tensor | SparseTensor):
            raise ValueError(f"features must be a Tensor; got {self.features!r}")
        _fill_receivers(self)


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function for `export_saved_model` whose servers feed serialized tf.Examples, string [batch].

    Args:
      feature_spec: as `tf.parse_example` takes it.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        examples = placeholder(dtypes.string, [default_batch_size], name="input_example_tensor")
        return ServingInputReceiver(parse_example(examples, dict(feature_spec)), {"examples": examples})

    return serving_input_receiver_fn


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function for `export_saved_model` whose servers feed the features themselves.

    Args:
      features: dict of tensors; placeholders of the same dtype and shape are made for them.
      default_batch_size: the first dimension of all; by default any.
    """
    wanted = {name: (tensor.dtype.base_dtype, tensor.shape) for name, tensor in features.items()}

    def serving_input_receiver_fn() -> ServingInputReceiver:
        receivers = {}
        for name, (dtype, shape) in wanted.items():
            if shape.ndims:
                shape = [default_batch_size, *shape.as_list()[1:]]
            receivers[name] = placeholder(dtype, shape, name=name)
        return ServingInputReceiver(receivers, dict(receivers))

    return serving_input_receiver_fn


def build_all_signature_defs(
    receiver_tensors: Mapping[str, Tensor],
    export_outputs: Mapping[str, ExportOutput],
    receiver_tensors_alternatives: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """SignatureDefs by name. A single output is also the default one; outputs that cannot be served are left out, and
    logged.

    Raises:
      ValueError: none can be served.
    """
    outputs = dict(export_outputs)
    if len(outputs) == 1:
        outputs.setdefault(DEFAULT_SERVING_SIGNATURE_DEF_KEY, next(iter(outputs.values())))
    ways = {"": receiver_tensors}
    for alternative, tensors in (receiver_tensors_alternatives or {}).items():
        ways[f"{alternative}:"] = _named(tensors, "input")
    signatures: dict[str, Any] = {}
    refused: dict[str, str] = {}
    for prefix, receivers in ways.items():
        for name, output in outputs.items():
            try:
                signature = output.as_signature_def(receivers)
            except ValueError as error:
                refused[prefix + name] = str(error)
                continue
            if is_valid_signature(signature):
                signatures[prefix + name] = signature
    for name, reason in refused.items():
        logging.info("The signature %r cannot be served: %s", name, reason)
    if not signatures:
        raise ValueError(f"No output of the model can be served with the received inputs: {refused}")
    return signatures


def _fill_receivers(receiver: Any) -> None:
    object.__setattr__(receiver, "receiver_tensors", _named(receiver.receiver_tensors, "input"))
    alternatives = receiver.receiver_tensors_alternatives
    if alternatives is not None:
        named = {name: _named(tensors, "input") for name, tensors in alternatives.items()}
        object.__setattr__(receiver, "receiver_tensors_alternatives", named)


def _named(tensors: Any, default_name: str) -> dict[str, Any]:
    """A dict of tensors; one alone gets the default name."""
    if tensors is None:
        raise ValueError(f"{default_name}s must be defined.")
    named = dict(tensors) if isinstance(tensors, Mapping) else {default_name: tensors}
    for name, tensor in named.items():
        if not isinstance(name, str):
            raise ValueError(f"{default_name} keys must be strings: {name!r}.")
        if not isinstance(tensor, Tensor | SparseTensor):
            raise ValueError(f"{default_name} {name} must be a Tensor or SparseTensor; got {tensor!r}.")
    return named
