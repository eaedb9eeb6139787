"""The command line of dtf.check."""

from __future__ import annotations

import argparse
import errno
import os
import stat
import sys
import tokenize
from collections.abc import Sequence

from dtf.check.scan import check_source, given_names

_BYTES_MAX = 16 << 20
_SHOWN_MAX = 1000
"""How many findings of one file are printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks files. Returns the exit status.

    Args:
      arguments: the command line, without the program's name.
    """
    parser = argparse.ArgumentParser(
        prog="python -m dtf.check", description="Lists the names that TensorFlow programs use and dtf lacks."
    )
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("-q", "--quiet", action="store_true", help="no line about files without findings")
    options = parser.parse_args(arguments)
    status, sources = 0, {}
    for path in options.files:
        try:
            sources[path] = _text(path)
        except (OSError, SyntaxError, ValueError, LookupError) as error:
            print(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
            status = 2
    given = {name for source in sources.values() for name in given_names(source)}
    for path, source in sources.items():
        findings = check_source(source, path, given)
        for finding in findings[:_SHOWN_MAX]:
            print(finding)
        if len(findings) > _SHOWN_MAX:
            print(f"{path}: {len(findings) - _SHOWN_MAX} more findings are not shown")
        lacking = [finding for finding in findings if not finding.is_guarded]
        if lacking:
            status = max(status, 1)
            stops = any(finding.kind == "syntax" for finding in lacking)
            rest = "nothing of it runs before that is mended" if stops else "the rest would run"
            count = f"{len(lacking)} finding{'s' if len(lacking) > 1 else ''}"
            print(f"{path}: {count}; {rest}")
        elif not options.quiet:
            print(f"{path}: all that it uses is here")
    return status


def _text(path: str) -> str:
    """The text of a program. A pipe, or a file that is all hole, would keep its reader for ever."""
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode) or status.st_size > _BYTES_MAX:
        raise ValueError(f"not a file of at most {_BYTES_MAX >> 20} MB")
    with tokenize.open(path) as file:
        return file.read()


if __name__ == "__main__":
    sys.exit(main())
