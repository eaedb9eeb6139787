"""tensorflow.compat, tf2 and the switches of versions: graphs of version 1 alone are here, and these say so."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator

__all__ = [
    "disable_control_flow_v2", "disable_v2_behavior", "enable_control_flow_v2", "enabled",
    "forward_compatibility_horizon", "forward_compatible", "is_in_graph_mode",
]  # fmt: skip

_HORIZON = datetime.date(2019, 10, 1)


def forward_compatible(year: int, month: int, day: int) -> bool:
    """Whether graphs may use what came before this date: the end of version 1.15's development."""
    return datetime.date(year, month, day) <= _HORIZON


@contextlib.contextmanager
def forward_compatibility_horizon(year: int, month: int, day: int) -> Iterator[None]:
    """A block in which `forward_compatible` compares with a given date."""
    global _HORIZON
    before = _HORIZON
    _HORIZON = datetime.date(year, month, day)
    try:
        yield
    finally:
        _HORIZON = before


def enabled() -> bool:
    """False: version 2's behaviour is not supported."""
    return False


def is_in_graph_mode() -> bool:
    """True: there are only graphs."""
    return True


def disable_v2_behavior() -> None:
    """Does nothing: only version 1 is here."""


enable_control_flow_v2 = disable_control_flow_v2 = disable_v2_behavior
