"""Saves a Sequential model as a SavedModel for serving.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/experimental/export_saved_model
"""

from __future__ import annotations

from dtf.keras.models import Sequential
from dtf.saved_model.builder import simple_save

__all__ = ["export_saved_model"]


def export_saved_model(model: Sequential, saved_model_path: str) -> None:
    """Writes a model whose signature "serving_default" takes "input" and gives "output".

    Raises:
      AssertionError: there is something in the folder.
      ValueError: the model's input shape is not known yet.
      OpError: writing failed.
    """
    local = model._here()
    with local.graph.as_default():
        simple_save(local.session, saved_model_path, {"input": local.program.x}, {"output": local.program.outputs})
