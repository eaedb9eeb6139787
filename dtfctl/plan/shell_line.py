"""Shell lines whose shell does not die before what it runs. Pure.

A signal goes to all processes of a task. A shell that waits for a program dies of it at once; then the task has ended,
and what is left of it is killed, in the middle of the checkpoint for which it has its grace period. So a shell that
would only wait makes room for its program, and another one ends with what it waits for.
"""

from __future__ import annotations

import shlex

_OWN_WORDS = frozenset(
    "! . : { [[ alias bg break case cd command continue eval exec exit export fg for function getopts if let local "
    "readonly return set shift source time times trap ulimit umask unset until wait while".split()
)
# With the status of what it has waited for; if that is 0, or it was between two commands, as one that the signal ends.
_ENDS_IN_ORDER = """for _s in 1 2 3 10 12 15; do trap "exit \\$((\\$? ? \\$? : 128 + $_s))" $_s; done; """


def outliving_signals(line: str) -> str:
    """The line with what it needs for that."""
    return f"exec {line.strip()}" if _is_one_command(line) else _ENDS_IN_ORDER + line


def _is_one_command(line: str) -> bool:
    """Whether the line names one program, and nothing that the shell does itself but redirections."""
    lexer = shlex.shlex(line.strip(), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:  # quotes that do not end: the shell will say so
        return False
    if not words or "\n" in line.strip() or words[0] in _OWN_WORDS or "=" in words[0]:
        return False
    return not any(set(word) <= set("();|&") or word == "#" for word in words)
