"""tf.flags: command-line flags that any module may define and all read from one object, FLAGS.

    tf.flags.DEFINE_integer("task_index", 0, "Index of the task within its job.")
    print(tf.flags.FLAGS.task_index)

The flags are absl's, as TensorFlow's are, so a program may use both names. Added here: the argument names of TensorFlow
1.0 (flag_name, default_value, docstring), and a FLAGS that parses the command line when a value is first read.

Forms: --name=value, --name value, and for booleans --name and --noname; one dash does as well; "--" ends the flags.

Source: https://abseil.io/docs/python/guides/flags
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from absl import flags as _absl
from absl.flags import *  # noqa: F403
from absl.flags import FlagHolder, FlagValues, disclaim_key_flags

__all__ = [*_absl.__all__]  # noqa: PLE0604  (names of absl's)

disclaim_key_flags()  # a flag belongs to the module that calls DEFINE_..., not to this one

_OLD_NAMES = {"flag_name": "name", "default_value": "default", "docstring": "help"}


class _FlagValues:
    """absl's FLAGS, with the command line parsed when a value is first read.

    Undefined flags are then ignored: they may belong to another program, such as a test runner.
    """

    def __init__(self, values: FlagValues) -> None:
        self.__dict__["_values"] = values

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__["_values"]
        if not values.is_parsed() and name in values:
            values(sys.argv, known_only=True)
        return values.__dict__[name] if name == "__flags" else getattr(values, name)

    def _parse_flags(self, args: Sequence[str] | None = None) -> None:
        """TensorFlow 1.0's way to parse the command line by hand."""
        self.__dict__["_values"]([sys.argv[0], *args] if args is not None else sys.argv, known_only=True)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_values"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__dict__["_values"], name)

    def __dir__(self) -> list[str]:
        return list(dir(self.__dict__["_values"]))

    def __getitem__(self, name: str) -> Any:
        return self.__dict__["_values"][name]

    def __setitem__(self, name: str, flag: Any) -> None:
        self.__dict__["_values"][name] = flag

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__["_values"]

    def __len__(self) -> int:
        return len(self.__dict__["_values"])

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__["_values"])

    def __str__(self) -> str:
        return str(self.__dict__["_values"])

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Parses a command line whose first entry is the program. Returns it without the flags.

        Args:
          known_only: whether undefined flags are left in place instead of raising.

        Raises:
          UnrecognizedFlagError, IllegalFlagValueError: the command line does not fit.
        """
        return list(self.__dict__["_values"](argv, known_only))


FLAGS: Any = _FlagValues(_absl.FLAGS)  # type: ignore[no-redef]


def _with_old_names(define: Callable[..., Any]) -> Callable[..., Any]:
    """`define`, which takes its arguments by their names of TensorFlow 1.0 as well."""

    @functools.wraps(define)
    def wrapper(*args: Any, **kwargs: Any) -> FlagHolder[Any]:
        return define(*args, **{_OLD_NAMES.get(name, name): value for name, value in kwargs.items()})

    return wrapper


DEFINE_string = _with_old_names(_absl.DEFINE_string)
DEFINE_boolean = _with_old_names(_absl.DEFINE_boolean)
DEFINE_bool = DEFINE_boolean
DEFINE_float = _with_old_names(_absl.DEFINE_float)
DEFINE_integer = _with_old_names(_absl.DEFINE_integer)
