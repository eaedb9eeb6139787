"""What an action on tasks, or the end of a cluster, would do, in words: for `--plan` and the page's question. Pure.

The smallest use: `in_words(run, statuses, Verb.RESTART, ["worker:1"])`. Plans of scale and up come from the supervisor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dtfctl.control.verbs import Verb
from dtfctl.supervise import planned_ends
from dtfctl.values import state
from dtfctl.values.run import Run
from dtfctl.values.task import TaskStatus


def in_words(run: Run, statuses: Mapping[str, TaskStatus], verb: Verb, tasks: Sequence[str]) -> list[str]:
    """A line for each task, then the order and the cost. `verb` is RESTART, STOP, START or DOWN (of all tasks)."""
    names = list(statuses) if verb == Verb.DOWN else list(tasks)
    alive = {each for each in names if statuses[each].state in state.WITH_PROCESS}
    lines = [f"{_what(verb, task in alive, statuses[task].state):<9} {task:<11} {statuses[task].state} now"
             for task in names]  # fmt: skip
    if verb == Verb.DOWN:
        lines.append("The run ends. Checkpoints stay; another `dtfctl up` goes on from the last one.")
    if verb == Verb.STOP:
        lines.append("The tasks stay down until they are started again. The cluster goes on.")
    if verb != Verb.START:
        lines += planned_ends.in_words(run.plan, alive)
    return lines


def changes(statuses: Mapping[str, TaskStatus], verb: Verb, tasks: Sequence[str]) -> bool:
    """Whether the action would change anything."""
    names = list(statuses) if verb == Verb.DOWN else list(tasks)
    return any(
        not _what(verb, statuses[each].state in state.WITH_PROCESS, statuses[each].state).startswith("nothing")
        for each in names
    )


def _what(verb: Verb, is_alive: bool, present: str) -> str:
    if verb == Verb.START:
        return "nothing: it runs" if is_alive else "start"
    if verb == Verb.RESTART:
        return "restart" if is_alive else "start"
    return "stop" if present not in state.ENDED else "nothing: it has ended"
