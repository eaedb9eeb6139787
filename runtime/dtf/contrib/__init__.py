"""tf.contrib: the few names of it that many programs use. Owns nothing: all are defined elsewhere."""

from __future__ import annotations

from dtf.contrib import framework, layers, rnn, training

__all__ = ["framework", "layers", "rnn", "training"]
