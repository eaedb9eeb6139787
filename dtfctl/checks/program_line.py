"""What a program's line will start, as far as that can be known before a shell has seen it. Pure.

`steps_of("cd src && python -u train.py {flags} > log")` is one step: the command python with the script train.py, in
the folder src. What depends on variables, conditions or functions of the shell is left out.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, replace

_PUNCTUATION = "();<>|&\n"
_UNKNOWN = frozenset("$`*?[")
_STOPS = frozenset(
    "! . : { } [[ alias bg break case command continue do done elif else esac eval exit export fg fi for function "
    "getopts hash if let local readonly return select shift source then type unalias unset until while".split()
)
"""After these words it is not known any more what runs, or where."""

_PASSED = frozenset("[ echo false jobs kill printf pwd read set sleep test times trap true ulimit umask wait".split())
"""What the shell does itself without changing what comes after it."""

_PYTHON = re.compile(r"(python|pypy)[\d.]*")
_SHELLS = frozenset("bash dash ksh sh zsh".split())
_OTHERS = frozenset("Rscript julia node perl ruby".split())
_WITH_VALUE = {
    "env": ("-u", "-C", "--unset", "--chdir"),
    "nice": ("-n",),
    "stdbuf": ("-i", "-o", "-e"),
    "timeout": ("-k", "-s"),
    "time": (),
    "nohup": (),
    "setsid": (),
}
"""Programs that start another one, and their options that take a word."""

_PYTHON_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_PYTHON_APART = frozenset("EIPSis")
"""Options with which Python finds its modules elsewhere."""


@dataclass(frozen=True)
class Step:
    """One command. `script` is a file that its interpreter reads, `module` what `python -m` names. `is_sure`: it runs
    in any case, before anything else does. `is_exec`: no shell helps out where its file is no program."""

    command: str
    script: str = ""
    module: str = ""
    folder: str = ""
    is_python: bool = False
    is_sure: bool = True
    is_exec: bool = False


def steps_of(program: str | tuple[str, ...]) -> list[Step]:
    """`program` with its placeholders filled: a shell line, or a list of words."""
    if not isinstance(program, str):
        step = _step(list(program), frozenset())
        return [replace(each, is_exec=position == 0) for position, each in enumerate(step)]
    return _steps_of_line(program)


def is_plain(line: str) -> bool:
    """Whether a shell line is words and nothing else, so that its syntax cannot be wrong."""
    tokens = _tokens(line.strip())
    return tokens is not None and not any(_is_operator(token) for token in tokens)


def _steps_of_line(line: str) -> list[Step]:
    tokens = _tokens(line.strip())
    if tokens is None:
        return []
    steps: list[Step] = []
    folder, is_sure = "", True
    while tokens:
        words, operator, tokens = _next_command(tokens)
        if "(" in operator or ")" in operator or any("<<" in word for word in words):
            break
        if not words:
            continue
        first = words[0]
        if first == "cd":
            if len(words) != 2 or _UNKNOWN & set(words[1]) or words[1] == "-" or "&&" not in operator:
                break
            folder = os.path.join(folder, words[1])
            continue
        if first in _STOPS or _UNKNOWN & set(first) or re.match(r"PATH=", first):
            break
        is_sure = is_sure and operator in ("", "&&")
        if first not in _PASSED:
            for step in _step(words, _UNKNOWN):
                steps.append(replace(step, folder=folder, is_sure=is_sure))
        is_sure = False
        if first == "exec" or "||" in operator:
            break
    return steps


def _tokens(line: str) -> list[str] | None:
    lexer = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        found = list(lexer)
    except ValueError:  # quotes that do not end: the shell will say so
        return None
    tokens: list[str] = []
    is_comment = False
    for token in found:
        is_comment = "\n" not in token and (is_comment or token.startswith("#"))
        if not is_comment:
            tokens.append(token)
    return tokens


def _is_operator(token: str) -> bool:
    return bool(token) and set(token) <= set(_PUNCTUATION)


def _next_command(tokens: list[str]) -> tuple[list[str], str, list[str]]:
    """(its words without redirections, the operator that ends it, the other tokens)."""
    words: list[str] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if not _is_operator(token):
            words.append(token)
        elif "<" in token or ">" in token:
            if words and words[-1].isdigit():
                words.pop()
            if "<<" in token:
                return [], "(", []
            at += 1
        else:
            return words, token, tokens[at + 1 :]
        at += 1
    return words, "", []


def _step(words: list[str], unknown: frozenset[str]) -> list[Step]:
    """The command of these words, and the command that it starts in turn."""
    steps: list[Step] = []
    while words and re.match(r"[A-Za-z_]\w*=", words[0]) and unknown:
        # What is set for the command may say where it and its modules are found.
        if words[0].startswith(("PATH=", "PYTHON")):
            return []
        words = words[1:]
    if words and words[0] == "exec" and unknown:
        words = words[1:]
    if not words or words[0].startswith("-") or unknown & set(words[0]) or not words[0]:
        return steps
    name, rest = os.path.basename(words[0]), words[1:]
    if name in _WITH_VALUE:
        inner = _started_by(name, rest)
        return [Step(words[0]), *([] if inner is None else _step(inner, unknown))]
    step = Step(words[0])
    if _PYTHON.fullmatch(name):
        step = _python_step(step, rest)
    elif (name in _SHELLS or name in _OTHERS) and rest and not rest[0].startswith("-"):
        step = replace(step, script=rest[0])
    if unknown & set(step.script) or unknown & set(step.module):
        step = replace(step, script="", module="")
    return [step]


def _started_by(name: str, rest: list[str]) -> list[str] | None:
    """The words of what `env`, `nice` or `timeout` starts; None when that is not known."""
    while rest and rest[0].startswith("-"):
        if name == "env" and rest[0] in ("-i", "-", "-S", "-C", "--chdir"):
            return None
        rest = rest[2:] if rest[0] in _WITH_VALUE[name] else rest[1:]
    if name == "env":
        while rest and "=" in rest[0]:
            if rest[0].startswith(("PATH=", "PYTHON")):
                return None
            rest = rest[1:]
    if name == "timeout":
        rest = rest[1:]
    return rest


def _python_step(step: Step, rest: list[str]) -> Step:
    is_python = True
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        option = rest[0]
        letters = "" if option.startswith("--") else option[1:]
        if option in _PYTHON_WITH_VALUE:
            rest = rest[2:]
            continue
        for position, letter in enumerate(letters):
            if letter == "c":
                return replace(step, is_python=is_python)
            if letter == "m":
                module = letters[position + 1 :] or (rest[1] if len(rest) > 1 else "")
                return replace(step, module=module if is_python else "", is_python=is_python)
            if letter in "WX":
                break
            is_python = is_python and letter not in _PYTHON_APART
        rest = rest[1:]
    script = rest[0] if rest and rest[0] != "-" else ""
    return replace(step, script=script, is_python=is_python)
