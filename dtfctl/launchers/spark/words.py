"""What Spark's errors say, in one line. Needs nothing but Python."""

from __future__ import annotations

import re

_ERROR = re.compile(r"^(?:Caused by: |: )?[\w.]*(?:Error|Exception): (?!.*Traceback)(.+)$", re.MULTILINE)
_FRAMES = ("Job aborted", "An exception was thrown from")


def reason_in(error: Exception) -> str:
    """Spark gives the traces of the JVM and of the executor's Python: the innermost error's line."""
    lines: list[str] = _ERROR.findall(str(error))
    own = [line for line in lines if not line.startswith(_FRAMES)]
    return (own or lines or [str(error) or type(error).__name__])[0]
