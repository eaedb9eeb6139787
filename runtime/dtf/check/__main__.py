"""The command line of dtf.check."""

from __future__ import annotations

import argparse
import sys
import tokenize
from collections.abc import Sequence

from dtf.check.scan import check_source


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
    status = 0
    for path in options.files:
        try:
            with tokenize.open(path) as file:
                source = file.read()
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            print(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
            status = 2
            continue
        findings = check_source(source, path)
        for finding in findings:
            print(finding)
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


if __name__ == "__main__":
    sys.exit(main())
