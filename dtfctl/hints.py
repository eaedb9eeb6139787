"""Commands that are printed for the user to paste: quoted, and about the very cluster that is meant. Pure."""

from __future__ import annotations

import shlex

_OPTION = "-c"
_WITH_OPTION = frozenset({"logs", "events", "restart", "stop", "start", "scale", "exec", "ssh", "plot"})
"""Commands whose arguments are tasks, so that the cluster is an option."""

_state_dir: list[str] = []


def remember_state_dir(folder: str | None) -> None:
    """The --state-dir of this command, which the next one needs too."""
    _state_dir[:] = [folder] if folder else []


def command(verb: str, cluster: str = "", *words: str) -> str:
    """`dtfctl logs -c digits worker:1`: a command line for a shell. For `up` and `validate`, `cluster` is the file."""
    option = [_OPTION] if verb in _WITH_OPTION and cluster else []
    state_dir = ["--state-dir", *_state_dir] if _state_dir else []
    return shlex.join(["dtfctl", *state_dir, verb, *option, *([cluster] if cluster else []), *words])
