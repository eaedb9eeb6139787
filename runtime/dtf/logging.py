"""tf.logging: messages to the user, on the standard logger "dtf".

Owns the levels by TensorFlow's names and the one line per message on standard error, "INFO:dtf:message". A program
that sets up Python's logging itself gets the messages there instead.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/logging
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import Counter
from typing import Any

from dtf.wire import forks

__all__ = [
    "DEBUG", "ERROR", "FATAL", "INFO", "WARN", "debug", "error", "fatal", "flush", "get_verbosity",
    "info", "log", "log_every_n", "log_first_n", "log_if", "set_verbosity", "vlog", "warn", "warning",
]  # fmt: skip

DEBUG = logging.DEBUG
INFO = logging.INFO
WARN = logging.WARNING
ERROR = logging.ERROR
FATAL = logging.FATAL


class _StandardError(logging.StreamHandler):
    """Writes to the current sys.stderr unless the program has handlers of its own."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(logging.Formatter(logging.BASIC_FORMAT))

    @property
    def stream(self) -> Any:
        return sys.stderr

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            super().emit(record)


_logger = logging.getLogger("dtf")
_logger.addHandler(_StandardError())
_counts: Counter[str] = Counter()
_counts_lock = threading.Lock()


def _begin_anew() -> None:
    global _counts_lock
    _counts_lock = threading.Lock()


forks.in_child(_begin_anew)


def get_logger() -> logging.Logger:
    """The logger of all messages, of Python's standard library."""
    return _logger


def set_verbosity(v: int) -> None:
    """Shows messages of level `v` and above; WARN at first."""
    _logger.setLevel(v)


def get_verbosity() -> int:
    """The lowest level that is shown."""
    return _logger.getEffectiveLevel()


def log(level: int, msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs `msg % args` at a level."""
    _logger.log(level, msg, *args, **kwargs)


def debug(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at DEBUG."""
    _logger.debug(msg, *args, **kwargs)


def info(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at INFO."""
    _logger.info(msg, *args, **kwargs)


def warning(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at WARN."""
    _logger.warning(msg, *args, **kwargs)


warn = warning


def error(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at ERROR."""
    _logger.error(msg, *args, **kwargs)


def fatal(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at FATAL. The program continues."""
    _logger.fatal(msg, *args, **kwargs)


def vlog(level: int, msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at a level given as a number; 1 and below are details that are shown at verbosity 1 only."""
    _logger.log(level, msg, *args, **kwargs)


def log_if(level: int, msg: str, condition: bool, *args: Any) -> None:
    """Logs if the condition holds."""
    if condition:
        log(level, msg, *args)


def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Logs the first `n` times that this message is given."""
    log_if(level, msg, _count(msg) < n, *args)


def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Logs the first of every `n` times that this message is given."""
    log_if(level, msg, _count(msg) % n == 0, *args)


def flush() -> None:
    """Hands what was logged to the operating system."""
    for handler in _logger.handlers:
        handler.flush()


def _count(msg: str) -> int:
    with _counts_lock:
        _counts[msg] += 1
        return _counts[msg] - 1
