"""`dtfctl`, and `python -m dtfctl`: the command line."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    try:
        _open_what_is_closed()
        # Here, so that Ctrl-C while Python is still loading is no traceback either.
        from dtfctl import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)


def _open_what_is_closed() -> None:
    """Without one of the standard streams the next file that is opened would stand in its place."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != descriptor:
                os.dup2(null, descriptor)
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))
    for stream in (sys.stdout, sys.stderr):
        # What a terminal's encoding cannot say is spelled, for nobody's name is an error.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
