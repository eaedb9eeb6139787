"""The tags that select a meta graph of a SavedModel."""

from __future__ import annotations

SERVING = "serve"
TRAINING = "train"
EVAL = "eval"
GPU = "gpu"
TPU = "tpu"

__all__ = ["EVAL", "GPU", "SERVING", "TPU", "TRAINING"]
