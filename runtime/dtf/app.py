"""tf.app: the entry point of a program with flags.

    if __name__ == "__main__":
        tf.app.run()
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from dtf import flags

__all__ = ["flags", "run"]


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Parses the flags, calls `main` with the arguments that are no flags, and exits with what it returns.

    Args:
      main: the function to call; the one named main in the program's script by default.
      argv: the command line, program name first; sys.argv by default.

    Raises:
      SystemExit: always; status 1 for flags that cannot be parsed, with the reason on standard error.
    """
    command_line = list(sys.argv if argv is None else argv)
    try:
        rest = flags.FLAGS(command_line)
    except flags.Error as error:
        sys.stderr.write(f"FATAL Flags parsing error: {error}\nPass --help to see help on flags.\n")
        sys.exit(1)
    if flags.FLAGS.wants_help:
        sys.stdout.write(flags.FLAGS.help_text(command_line[0]))
        sys.exit(0)
    sys.exit((main or sys.modules["__main__"].main)(rest))
