"""tensorflow.python.platform.tf_logging: tf.logging, and the logger itself."""

from __future__ import annotations

import logging as _logging

from dtf.logging import *  # noqa: F403
from dtf.logging import WARN, error

__all__ = ["ERROR_IF_NOT", "TaskLevelStatusMessage", "WARNING", "get_logger"]

WARNING = WARN


def get_logger() -> _logging.Logger:
    """The logger that tf.logging writes to."""
    return _logging.getLogger("dtf")


def TaskLevelStatusMessage(msg: str) -> None:  # noqa: N802
    """`error`, under an older name."""
    error(msg)


def ERROR_IF_NOT(condition: bool, msg: str, *args: object) -> None:  # noqa: N802
    """`error` unless `condition`."""
    if not condition:
        error(msg, *args)
