"""SignatureDef: the inputs and outputs of a model, by names that stay the same while the graph changes.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/saved_model/predict_signature_def
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtf.saved_model import signature_constants as keys
from dtf.saved_model.tensor_info import build_tensor_info
from dtf.wire.pb import meta_graph_pb2, types_pb2


def build_signature_def(
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    method_name: str | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Any:
    """A SignatureDef of TensorInfos by name. `defaults` are TensorProtos for inputs that may be left out."""
    signature = meta_graph_pb2.SignatureDef(method_name=method_name or "")
    for name, info in (inputs or {}).items():
        signature.inputs[name].CopyFrom(info)
    for name, info in (outputs or {}).items():
        signature.outputs[name].CopyFrom(info)
    for name, default in (defaults or {}).items():
        signature.defaults[name].CopyFrom(default)
    return signature


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """The signature of any computation, of tensors by name.

    Raises:
      ValueError: there are no inputs or no outputs.
    """
    if not inputs:
        raise ValueError("Prediction `inputs` cannot be None or empty.")
    if not outputs:
        raise ValueError("Prediction `outputs` cannot be None or empty.")
    return build_signature_def(_infos(inputs), _infos(outputs), keys.PREDICT_METHOD_NAME)


def classification_signature_def(examples: Any, classes: Any, scores: Any) -> Any:
    """The signature of a classifier.

    Args:
      examples: string tensor [n] of serialized tf.Examples.
      classes: string tensor [n, classes], or None.
      scores: float32 tensor [n, classes], or None.

    Raises:
      ValueError: `examples`, or both others, are None, or a dtype is wrong.
    """
    if examples is None:
        raise ValueError("Classification `examples` cannot be None.")
    if classes is None and scores is None:
        raise ValueError("Classification `classes` and `scores` cannot both be None.")
    outputs = {}
    if classes is not None:
        outputs[keys.CLASSIFY_OUTPUT_CLASSES] = _info_of(classes, types_pb2.DT_STRING, "Classification `classes`")
    if scores is not None:
        outputs[keys.CLASSIFY_OUTPUT_SCORES] = _info_of(scores, types_pb2.DT_FLOAT, "Classification `scores`")
    inputs = {keys.CLASSIFY_INPUTS: _info_of(examples, types_pb2.DT_STRING, "Classification `examples`")}
    return build_signature_def(inputs, outputs, keys.CLASSIFY_METHOD_NAME)


def regression_signature_def(examples: Any, predictions: Any) -> Any:
    """The signature of a regression.

    Args:
      examples: string tensor [n] of serialized tf.Examples.
      predictions: float32 tensor [n, 1].

    Raises:
      ValueError: one is None, or a dtype is wrong.
    """
    if examples is None:
        raise ValueError("Regression `examples` cannot be None.")
    if predictions is None:
        raise ValueError("Regression `predictions` cannot be None.")
    return build_signature_def(
        {keys.REGRESS_INPUTS: _info_of(examples, types_pb2.DT_STRING, "Regression `examples`")},
        {keys.REGRESS_OUTPUTS: _info_of(predictions, types_pb2.DT_FLOAT, "Regression `predictions`")},
        keys.REGRESS_METHOD_NAME,
    )


def is_valid_signature(signature_def: Any) -> bool:
    """Whether the inputs and outputs fit the signature's method."""
    if signature_def is None:
        return False
    inputs, outputs = signature_def.inputs, signature_def.outputs
    if signature_def.method_name == keys.PREDICT_METHOD_NAME:
        return bool(inputs) and bool(outputs)
    if signature_def.method_name == keys.CLASSIFY_METHOD_NAME:
        expected = {
            keys.CLASSIFY_OUTPUT_CLASSES: types_pb2.DT_STRING,
            keys.CLASSIFY_OUTPUT_SCORES: types_pb2.DT_FLOAT,
        }
        return (
            {name: info.dtype for name, info in inputs.items()} == {keys.CLASSIFY_INPUTS: types_pb2.DT_STRING}
            and bool(outputs)
            and all(info.dtype == expected.get(name) for name, info in outputs.items())
        )
    if signature_def.method_name == keys.REGRESS_METHOD_NAME:
        return {name: info.dtype for name, info in inputs.items()} == {
            keys.REGRESS_INPUTS: types_pb2.DT_STRING
        } and {name: info.dtype for name, info in outputs.items()} == {keys.REGRESS_OUTPUTS: types_pb2.DT_FLOAT}
    return False


def _infos(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {name: build_tensor_info(tensor) for name, tensor in tensors.items()}


def _info_of(tensor: Any, dtype: int, what: str) -> Any:
    info = build_tensor_info(tensor)
    if info.dtype != dtype:
        wanted, found = (types_pb2.DataType.Name(each) for each in (dtype, info.dtype))
        raise ValueError(f"{what} must be of dtype {wanted}; {tensor.name} is of {found}.")
    return info
