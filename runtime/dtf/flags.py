"""tf.flags: command-line flags that any module may define and all read from one object, FLAGS.

    tf.flags.DEFINE_integer("task_index", 0, "Index of the task within its job.")
    print(tf.flags.FLAGS.task_index)

The command line is parsed by `tf.app.run`, or at the first use of a value. Forms: --name=value, --name value, and
for booleans --name and --noname; one dash does as well; "--" ends the flags.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "DEFINE_bool", "DEFINE_boolean", "DEFINE_enum", "DEFINE_float", "DEFINE_integer", "DEFINE_list",
    "DEFINE_multi_string", "DEFINE_string", "DuplicateFlagError", "Error", "FLAGS", "IllegalFlagValueError",
    "UnparsedFlagAccessError", "UnrecognizedFlagError", "mark_flag_as_required", "mark_flags_as_required",
]  # fmt: skip

_TRUE = ("true", "t", "1", "yes", "y")
_FALSE = ("false", "f", "0", "no", "n")


class Error(Exception):
    """Flags cannot be defined or parsed.

    Error
    |-- DuplicateFlagError       a second definition of a name
    |-- IllegalFlagValueError    a value that the flag does not take, or a required one that is missing
    |-- UnparsedFlagAccessError  a value was read before the command line could be parsed
    `-- UnrecognizedFlagError    a flag on the command line that nobody defined
    """


class DuplicateFlagError(Error):
    """A flag of this name exists."""


class IllegalFlagValueError(Error):
    """The flag does not take this value."""


class UnparsedFlagAccessError(Error):
    """The command line has not been parsed."""


class UnrecognizedFlagError(Error):
    """No flag has this name."""


@dataclass
class Flag:
    """One flag. `parse` turns the text on the command line into a value; `is_multiple` ones gather all values."""

    name: str
    default: Any
    help: str
    parse: Callable[[str], Any]
    is_boolean: bool = False
    is_multiple: bool = False
    is_required: bool = False
    value: Any = None
    present: bool = False


class FlagValues:
    """The flags of the program and their values, as attributes."""

    def __init__(self) -> None:
        # Through __dict__, as attributes set from outside are flags.
        self.__dict__["_flags"] = {}
        self.__dict__["_parsed"] = False
        self.__dict__["wants_help"] = False

    def define(self, flag: Flag) -> None:
        """Adds a flag.

        Raises:
          DuplicateFlagError: there is one of that name.
        """
        if flag.name in self._flags:
            raise DuplicateFlagError(f"The flag '{flag.name}' is defined twice.")
        flag.value = flag.default
        self._flags[flag.name] = flag

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Parses a command line whose first entry is the program.

        Args:
          known_only: leave flags that nobody defined where they are.

        Returns:
          The program and the arguments that are no flags.

        Raises:
          UnrecognizedFlagError, IllegalFlagValueError: the command line does not fit.
        """
        rest = [argv[0]] if argv else []
        arguments = iter(argv[1:])
        for argument in arguments:
            if argument == "--":
                rest.extend(arguments)
            elif not argument.startswith("-") or argument == "-":
                rest.append(argument)
            elif not self._parse(argument, arguments):
                if not known_only:
                    raise self._unrecognized(argument)
                rest.append(argument)
        self.__dict__["_parsed"] = True
        for flag in self._flags.values():
            if flag.is_required and flag.value is None and not self.wants_help:
                raise IllegalFlagValueError(f"Flag --{flag.name} must have a value other than None.")
        return rest

    def _parse(self, argument: str, following: Iterator[str]) -> bool:
        name, equals, text = argument.lstrip("-").partition("=")
        if name in ("help", "helpfull", "helpshort", "h") and name not in self._flags:
            self.__dict__["wants_help"] = True
            return True
        flag = self._flags.get(name) or self._flags.get(name.replace("-", "_"))
        if flag is None:
            flag = self._flags.get(name[2:]) if name.startswith("no") and not equals else None
            if flag is None or not flag.is_boolean:
                return False
            flag.value, flag.present = False, True
            return True
        if not equals:
            if flag.is_boolean:
                text = "true"
            else:
                try:
                    text = next(following)
                except StopIteration:
                    raise IllegalFlagValueError(f"Missing value for flag --{name}") from None
        self._set(flag, text)
        return True

    def _set(self, flag: Flag, text: str) -> None:
        try:
            value = flag.parse(text)
        except ValueError as error:
            raise IllegalFlagValueError(f"flag --{flag.name}={text}: {error}") from None
        if flag.is_multiple:
            value = [*(flag.value if flag.present else []), value]
        flag.value, flag.present = value, True

    def _unrecognized(self, argument: str) -> UnrecognizedFlagError:
        name = argument.lstrip("-").partition("=")[0]
        near = difflib.get_close_matches(name, self._flags, n=3)
        hint = f" Did you mean: {', '.join(near)} ?" if near else ""
        return UnrecognizedFlagError(f"Unknown command line flag '{name}'.{hint}")

    def _flag(self, name: str) -> Flag:
        try:
            return self._flags[name]
        except KeyError:
            raise AttributeError(name) from None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        flag = self._flag(name)
        if not self._parsed:
            # Programs without tf.app.run read flags, too. What others' flags are is not known then.
            self(sys.argv, known_only=True)
        return flag.value

    def __setattr__(self, name: str, value: Any) -> None:
        flag = self._flag(name)
        flag.value, flag.present = value, True

    def __contains__(self, name: str) -> bool:
        return name in self._flags

    def __iter__(self) -> Iterator[str]:
        return iter(self._flags)

    def __getitem__(self, name: str) -> Flag:
        return self._flags[name]

    def __delattr__(self, name: str) -> None:
        self._flag(name)
        del self._flags[name]

    def flag_values_dict(self) -> dict[str, Any]:
        """The value of every flag, by name."""
        return {name: flag.value for name, flag in self._flags.items()}

    def mark_as_parsed(self) -> None:
        """Keeps the command line from being parsed; for tests."""
        self.__dict__["_parsed"] = True

    def is_parsed(self) -> bool:
        """Whether the command line has been parsed."""
        return self._parsed

    def help_text(self, program: str) -> str:
        """A list of all flags."""
        lines = [f"\nUSAGE: {program} [flags]\n\nflags:\n"]
        for name, flag in sorted(self._flags.items()):
            shown = f"--[no]{name}" if flag.is_boolean else f"--{name}"
            lines.append(f"  {shown}: {flag.help}\n    (default: {flag.default!r})\n")
        return "".join(lines)


FLAGS = FlagValues()


def DEFINE_string(name: str, default: str | None, help: str, required: bool = False) -> None:
    """Defines a flag whose value is text."""
    FLAGS.define(Flag(name, default, help, str, is_required=required))


def DEFINE_integer(
    name: str,
    default: int | None,
    help: str,
    lower_bound: int | None = None,
    upper_bound: int | None = None,
    required: bool = False,
) -> None:
    """Defines a flag whose value is an integer, perhaps between bounds."""
    parse = _within(lambda text: int(text, 0), lower_bound, upper_bound)
    FLAGS.define(Flag(name, default, help, parse, is_required=required))


def DEFINE_float(
    name: str,
    default: float | None,
    help: str,
    lower_bound: float | None = None,
    upper_bound: float | None = None,
    required: bool = False,
) -> None:
    """Defines a flag whose value is a number, perhaps between bounds."""
    default = None if default is None else float(default)
    FLAGS.define(Flag(name, default, help, _within(float, lower_bound, upper_bound), is_required=required))


def DEFINE_bool(name: str, default: bool | None, help: str, required: bool = False) -> None:
    """Defines a flag that is true or false."""
    FLAGS.define(Flag(name, default, help, _boolean, is_boolean=True, is_required=required))


DEFINE_boolean = DEFINE_bool


def DEFINE_enum(
    name: str, default: str | None, enum_values: Sequence[str], help: str, required: bool = False
) -> None:
    """Defines a flag whose value is one of `enum_values`."""

    def parse(text: str) -> str:
        if text not in enum_values:
            raise ValueError(f"value should be one of <{'|'.join(enum_values)}>")
        return text

    FLAGS.define(Flag(name, default, help, parse, is_required=required))


def DEFINE_list(name: str, default: Any, help: str, required: bool = False) -> None:
    """Defines a flag whose value is a list of texts, separated by commas."""

    def parse(text: str) -> list[str]:
        return [item.strip() for item in text.split(",")] if text else []

    FLAGS.define(Flag(name, parse(default) if isinstance(default, str) else default, help, parse, is_required=required))


def DEFINE_multi_string(name: str, default: Any, help: str, required: bool = False) -> None:
    """Defines a flag that may come several times; its value is the list of all."""
    default = [default] if isinstance(default, str) else default
    FLAGS.define(Flag(name, default, help, str, is_multiple=True, is_required=required))


def mark_flag_as_required(name: str) -> None:
    """Makes it an error if the flag has no value after the command line has been parsed."""
    FLAGS[name].is_required = True


def mark_flags_as_required(names: Sequence[str]) -> None:
    """`mark_flag_as_required` for each name."""
    for name in names:
        mark_flag_as_required(name)


def _boolean(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError("Non-boolean argument to boolean flag")


def _within(parse: Callable[[str], Any], lower: Any, upper: Any) -> Callable[[str], Any]:
    def checked(text: str) -> Any:
        value = parse(text)
        if lower is not None and value < lower:
            raise ValueError(f"{value} is less than the lower bound {lower}")
        if upper is not None and value > upper:
            raise ValueError(f"{value} is more than the upper bound {upper}")
        return value

    return checked
