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
    """Parses the flags, calls `main` with the remaining arguments, and exits with its result.

    Undefined flags stay among the arguments of `main`, as in TensorFlow.

    Args:
      main: the function to call; the one named main in the program's script by default.
      argv: the command line, program name first; sys.argv by default.

    Raises:
      SystemExit: always; status 1 for flags that cannot be parsed, with the reason on standard error.
    """
    main = main or sys.modules["__main__"].main
    _define_help()
    try:
        rest = flags.FLAGS(sys.argv if argv is None else argv, known_only=True)
    except flags.Error as error:
        sys.stderr.write(f"FATAL Flags parsing error: {error}\nPass --helpshort or --helpfull for help on flags.\n")
        sys.exit(1)
    sys.exit(main(rest))


class _Help(flags.BooleanFlag):
    """A flag that prints help and ends the process with status 1, as absl's does."""

    def __init__(self, name: str, text: str, help_text: Callable[[], str], short_name: str | None = None) -> None:
        super().__init__(name, False, text, short_name=short_name, allow_hide_cpp=True)
        self._help_text = help_text

    def parse(self, argument: Any) -> None:
        super().parse(argument)
        if self.value:
            doc = sys.modules["__main__"].__doc__ or f"\nUSAGE: {sys.argv[0]} [flags]\n"
            sys.stdout.write(f"{doc.rstrip()}\nflags:\n{self._help_text()}\n")
            sys.exit(1)


def _define_help() -> None:
    """Defines --help and related flags, unless the program or absl's own app has flags of these names."""
    for name, text, help_text, short_name in (
        ("help", "show this help", lambda: flags.FLAGS.main_module_help() or flags.FLAGS.get_help(), "?"),
        ("helpshort", "show this help", lambda: flags.FLAGS.main_module_help(), None),
        ("helpfull", "show full help", lambda: flags.FLAGS.get_help(), None),
    ):
        if name not in flags.FLAGS:
            flags.DEFINE_flag(_Help(name, text, help_text, None if "?" in flags.FLAGS else short_name))
