"""`${NAME}` in values, and the files of `NAME=value` lines that give them (.env, env_file). Pure.

    ${NAME}  ${NAME:-default}  ${NAME-default}  ${NAME:?message}  ${NAME?message}    $$ is a dollar sign

With the colon an empty value counts as none. Defaults and messages may hold variables again. `$NAME` without braces
is left as it is, for the shell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:?[-?]|\})")
_PLAIN = re.compile(r"[^$}]+")
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")


class VariableError(Exception):
    """Says which variable, and what to do."""


def interpolate(text: str, variables: Mapping[str, str]) -> str:
    """Raises VariableError."""
    if "$" not in text:
        return text
    try:
        return _until(text, variables, "")[0]
    except RecursionError:
        raise VariableError("variables nested too deeply") from None


def escape(text: str) -> str:
    """The text that `interpolate` turns into this one."""
    return text.replace("$$", "$$$$").replace("${", "$${")


def read_env_file(text: str, file: str) -> dict[str, str]:
    """NAME=value lines; `#` begins a comment, quotes around a value are taken off, "export " before a name too.

    Raises ValueError that names file and line.
    """
    values = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f'{file}:{number}:1: must be NAME=value, not "{line}"')
        if "\0" in line:
            raise ValueError(f"{file}:{number}:1: {match[1]} contains a zero byte")
        values[match[1]] = _value(match[2])
    return values


def _value(word: str) -> str:
    quoted = re.fullmatch(r"""(["'])(.*)\1\s*(?:#.*)?""", word)
    if quoted is not None:
        return quoted[2]
    return re.sub(r"\s+#.*$", "", word).rstrip()


def _until(text: str, variables: Mapping[str, str] | None, end: str) -> tuple[str, str]:
    """Fills `text` as far as the character `end` (which closes a variable), and returns what comes after. Without
    `variables` only the end matters."""
    done: list[str] = []
    while text:
        plain = _PLAIN.match(text)
        if end and text.startswith(end):
            return "".join(done), text[1:]
        if text.startswith("$$"):
            value, text = "$", text[2:]
        elif text.startswith("${"):
            value, text = _variable(text, variables)
        else:
            length = plain.end() if plain else 1
            value, text = text[:length], text[length:]
        done.append(value)
    if end:
        raise VariableError('a "${" without its "}"')
    return "".join(done), ""


def _variable(text: str, variables: Mapping[str, str] | None) -> tuple[str, str]:
    match = _VARIABLE.match(text)
    if match is None:
        shown = text.partition("}")[0] + ("}" if "}" in text else "")
        raise VariableError(
            f'"{shown[:40]}" is not a variable: write ${{NAME}}, ${{NAME:-default}} or ${{NAME:?message}}; '
            "$${...} is left for the shell"
        )
    name, operator = match.groups()
    value = "" if variables is None else variables.get(name)
    rest = text[match.end() :]
    if operator == "}":
        if value is None:
            raise VariableError(
                f"the variable {name} is not set (a default: ${{{name}:-...}}; left for the shell: $${{{name}}})"
            )
        return value, rest
    if variables is None or (value is not None and (value or not operator.startswith(":"))):
        return value or "", _until(rest, None, "}")[1]
    other, rest = _until(rest, variables, "}")
    if operator.endswith("?"):
        raise VariableError(f"the variable {name} is not set" + (f": {other}" if other else ""))
    return other, rest
