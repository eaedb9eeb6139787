"""ExportOutput: an output of a served model, and its signature.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/export
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtf.build.graph import Tensor
from dtf.saved_model.signature_def_utils import (
    classification_signature_def,
    predict_signature_def,
    regression_signature_def,
)
from dtf.wire import dtypes


class ExportOutput:
    """Base of the kinds of output."""

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> Any:
        """The SignatureDef from the server's inputs to this output.

        Raises:
          ValueError: the tensors do not fit the signature.
        """
        raise NotImplementedError("an ExportOutput must have the method as_signature_def")


class PredictOutput(ExportOutput):
    """Anything: a tensor, named "output", or a dict of tensors."""

    def __init__(self, outputs: Any) -> None:
        if not isinstance(outputs, Mapping):
            outputs = {"output": outputs}
        for key, value in outputs.items():
            if not isinstance(key, str):
                raise ValueError(f"Prediction output key must be a string; got {key!r}.")
            if not isinstance(value, Tensor):
                raise ValueError(f"Prediction output value must be a Tensor; got {value!r}.")
        self._outputs = dict(outputs)

    @property
    def outputs(self) -> dict[str, Tensor]:
        return self._outputs

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> Any:
        return predict_signature_def(receiver_tensors, self._outputs)


class ClassificationOutput(ExportOutput):
    """Classes of examples, string [n, classes], their scores, float [n, classes], or both."""

    def __init__(self, scores: Any = None, classes: Any = None) -> None:
        if scores is None and classes is None:
            raise ValueError("At least one of scores and classes must be set.")
        if scores is not None and not (isinstance(scores, Tensor) and scores.dtype.is_floating):
            raise ValueError(f"Classification scores must be a float Tensor; got {scores}")
        if classes is not None and not (isinstance(classes, Tensor) and classes.dtype == dtypes.string):
            raise ValueError(f"Classification classes must be a string Tensor; got {classes}")
        self._scores, self._classes = scores, classes

    @property
    def scores(self) -> Any:
        return self._scores

    @property
    def classes(self) -> Any:
        return self._classes

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> Any:
        return classification_signature_def(_examples(receiver_tensors), self._classes, self._scores)


class RegressionOutput(ExportOutput):
    """Values of examples, float [n, 1]."""

    def __init__(self, value: Any) -> None:
        if not (isinstance(value, Tensor) and value.dtype.is_floating):
            raise ValueError(f"Regression output value must be a float Tensor; got {value}")
        self._value = value

    @property
    def value(self) -> Tensor:
        return self._value

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> Any:
        return regression_signature_def(_examples(receiver_tensors), self._value)


def _examples(receiver_tensors: Mapping[str, Tensor]) -> Tensor:
    if len(receiver_tensors) != 1:
        raise ValueError(
            f"Classification and regression take serialized examples, one string tensor; got {receiver_tensors}"
        )
    (examples,) = receiver_tensors.values()
    if examples.dtype != dtypes.string:
        raise ValueError(f"Classification and regression take serialized examples, a string tensor; got {examples}")
    return examples
