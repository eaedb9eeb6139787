"""Regular expressions that a user gives for lines, and the levels that lines of well-known loggers have."""

from __future__ import annotations

import re

ERROR, WARNING, INFO = "error", "warning", "info"
LEVELS = (ERROR, WARNING, INFO)

_LEVEL = re.compile(
    r"""(?x) ^\s* (?:
      (?P<error> E\d{4}\s | \[?(?:ERROR|CRITICAL|FATAL)\b | Traceback\b | [\w.]*(?:Error|Exception)\b:?
        | \S{0,40}\s\S{0,40}\s\[?(?:ERROR|CRITICAL|FATAL)\b )
    | (?P<warning> W\d{4}\s | \[?WARN(?:ING)?\b | [\w.]*Warning\b:? | \S{0,40}\s\S{0,40}\s\[?WARN(?:ING)?\b )
    | (?P<info> I\d{4}\s | \[?INFO\b | \S{0,40}\s\S{0,40}\s\[?INFO\b )
    )"""
)


def compiled(text: str, is_linear: bool = False) -> re.Pattern[str]:
    """RE2's where it is installed and knows the pattern: Python's take hours for some lines. Else Python's.

    Args:
      is_linear: refuse the patterns that only Python knows, if RE2 is installed: one would stop all threads.

    Raises re.error.
    """
    try:
        expression = re.compile(text)
    except (RecursionError, OverflowError) as error:
        raise re.error(str(error)) from None
    try:
        import re2

        options = re2.Options()
        options.log_errors = False
        linear: re.Pattern[str] = re2.compile(text, options)
        return linear
    except (ImportError, AttributeError, ValueError):
        return expression
    except re2.error:
        if is_linear:
            raise re.error("it looks ahead or back, refers to a group, or is too large") from None
        return expression


def level_of(text: str) -> str:
    """Of a line, by the beginnings that Python's, TensorFlow's and absl's loggers give; "" where it has none."""
    match = _LEVEL.match(text[:200])
    return match.lastgroup or "" if match else ""
