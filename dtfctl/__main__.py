"""`dtfctl`, and `python -m dtfctl`: the command line."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        # Here, so that Ctrl-C while Python is still loading is no traceback either.
        from dtfctl import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
