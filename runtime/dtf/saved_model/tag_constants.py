"""Tags by which a meta graph of a SavedModel is chosen."""

from __future__ import annotations

SERVING = "serve"
TRAINING = "train"
EVAL = "eval"
GPU = "gpu"
TPU = "tpu"

__all__ = ["EVAL", "GPU", "SERVING", "TPU", "TRAINING"]
