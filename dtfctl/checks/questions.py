"""What is asked of each host before anything starts there, and what comes of the answers. Pure.

    questions(plan, host, positions)  -> Asked ...     what the tasks need there, each once, with where the file says so
    told(asked, answers)              -> Trouble ...   what is wrong, with task, position, and what to do

The answers are found by launchers/agent/look.py: called here for this machine, by the agent on others. What comes to
another machine with the cluster file's folder is asked of this machine (`copied`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from dtfctl.checks.program_line import Step, is_plain, steps_of
from dtfctl.plan import expand
from dtfctl.values.plan import DTF, ClusterPlan, HostPlan, Task

WRONG, DOUBT = "wrong", "doubt"


class Where(Protocol):
    """file:line:column of what the cluster file says, "" where nobody knows: config.positions."""

    def __call__(self, task: Task, /, *keys: str) -> str: ...


Question = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A question, the task for which it is asked (with how many others), and where the file says what it is about. What
    is wrong for something that the training can do without is a doubt."""

    question: Question
    task: str
    at: str
    others: int = 0
    is_needed: bool = True


@dataclass(frozen=True)
class Trouble:
    """`grade` is wrong (a task would end at its start) or doubt (it may)."""

    grade: str
    task: str
    at: str
    what: str
    to_do: str = ""

    def __str__(self) -> str:
        begin = ": ".join(filter(None, (self.at, self.task, self.what)))
        return f"{begin} ({self.to_do})" if self.to_do else begin


def told(asked: Sequence[Asked], answers: Iterable[Sequence[Any]]) -> list[Trouble]:
    """The troubles that (number of the question, grade, what, what to do) answers tell, each once."""
    found: dict[Trouble, None] = {}
    for number, grade, what, to_do in answers:
        if number >= len(asked):
            continue
        each = asked[number]
        task = f"{each.task} and {each.others} more" if each.others else each.task
        found[Trouble(grade if each.is_needed else DOUBT, task, each.at, what, to_do)] = None
    return list(found)


def questions(plan: ClusterPlan, host: HostPlan, where: Where, copied: bool = False) -> list[Asked]:
    """Of a host; `copied`: instead those about its copy of the cluster file's folder, in terms of this machine."""
    found: dict[str, Asked] = {}
    for task in _asking(plan, host):
        for key, question, is_needed in _of_task(plan, task, copied):
            text = repr(question)
            if text in found:
                former = found[text]
                found[text] = Asked(question, former.task, former.at, former.others + 1, former.is_needed)
            else:
                found[text] = Asked(question, task.name, where(task, *key), 0, is_needed)
    return [*found.values(), *([] if copied else _of_devices(plan, host, where))]


def _of_devices(plan: ClusterPlan, host: HostPlan, where: Where) -> Iterator[Asked]:
    """What one place of the file deals out to the tasks of a host is asked for together."""
    dealt: dict[tuple[str, str], list[tuple[str, tuple[int, ...]]]] = {}
    for task in plan.tasks_on(host.name):
        for key, ids in (("cpus", task.place.cpus), ("gpus", task.place.gpus)):
            if ids:
                dealt.setdefault((key, where(task, key)), []).append((task.name, ids))
    for (key, at), tasks in dealt.items():
        question = {"ask": key, "ids": sorted({number for _, ids in tasks for number in ids})}
        yield Asked(question, tasks[0][0], at, len(tasks) - 1, False)


def _asking(plan: ClusterPlan, host: HostPlan) -> Iterator[Task]:
    """The tasks of a host and those that it may take over; of tasks that are all the same the first."""
    seen: set[Any] = set()
    for task in plan.tasks_for(host.name):
        words = task.settings.program
        text = words if isinstance(words, str) else " ".join(words)
        differs = "{task}" in text or "{index}" in text
        key = task.job.name, id(task.settings), task.index if differs else -1
        if key not in seen:
            seen.add(key)
            yield task if task.host.name == host.name else Task(task.job, task.index, host, plan.folder)


def _of_task(plan: ClusterPlan, task: Task, copied: bool) -> Iterator[tuple[tuple[str, ...], Question, bool]]:
    """(keys of the file, a question, whether the training needs it)."""
    is_needed = not task.job.is_sidecar
    settings = task.settings
    folder = task.working_dir
    is_copied = _is_copied(task, folder)
    if is_copied == copied:
        yield ("working_dir",), {"ask": "folder", "path": _here(task, plan, folder) if copied else folder}, is_needed
    for question in _of_program(plan, task, settings.program, copied):
        yield ("program",), {**question, "instead": _instead(task)}, is_needed
    for key, probe in (("readiness", settings.readiness), ("liveness", settings.liveness)):
        if probe.kind == "command":
            for question in _of_program(plan, task, probe.target, copied):
                yield (f"{key}.command", key), question, False
    if copied:
        return
    if not (task.venv and settings.requirements.files):
        yield ("venv", "python"), _interpreter(task), is_needed
    elif settings.requirements.python:
        step = asdict(Step(settings.requirements.python))
        yield ("requirements.python",), _question([step], "", "/", "", {}), is_needed
    if plan.checkpoint_folder:
        path = task.path(plan.checkpoint_folder)
        yield ("checkpoint_dir",), {"ask": "makeable", "path": path, "name": "checkpoint_dir"}, is_needed
    limits = {key: value for key, value in asdict(settings.limits).items() if value is not None}
    if limits:
        yield ("limits",), {"ask": "limits", "limits": limits}, is_needed
    yield (), {"ask": "own_limits"}, False


def _interpreter(task: Task) -> Question:
    return {"ask": "interpreter", "python": task.python, "venv": task.venv}


def _of_program(plan: ClusterPlan, task: Task, program: str | tuple[str, ...], copied: bool) -> Iterator[Question]:
    filled = expand.before_start(program, plan, task)
    is_made = bool(task.venv and task.settings.requirements.files)
    known = {**task.settings.env_file_values, **task.settings.environment}
    environment: dict[str, str] = {
        key: expand.before_start(known[key], plan, task) for key in ("PATH", "PYTHONPATH") if key in known
    }
    steps: list[dict[str, Any]] = []
    for step in steps_of(filled):
        if is_made and step.command.startswith(f"{task.venv}/"):
            # The environment is made by `up`.
            step = replace(step, command="", module="", is_python=False)
        step = _there(step, plan, task, copied)
        if step.command or step.script:
            steps.append(asdict(step))
    line = "" if copied or not isinstance(filled, str) or is_plain(filled) else filled
    folder = task.working_dir
    if _is_copied(task, folder):
        folder = _here(task, plan, folder) if copied else "/"
    if steps or line:
        yield _question(steps, line, folder, task.python, environment)


def _there(step: Step, plan: ClusterPlan, task: Task, copied: bool) -> Step:
    """The part of a step that one machine can check; the other machine checks the rest."""
    if not task.host.folder:
        return step
    base = os.path.join(task.working_dir, step.folder)
    names = [name for name in (step.command if "/" in step.command else "", step.script) if name]
    brought = [name for name in names if _is_copied(task, os.path.join(base, name))]
    if copied:
        script = _here(task, plan, os.path.join(base, brought[-1])) if brought else ""
        return Step("", script, is_sure=step.is_sure)
    if _is_copied(task, base):
        # Its modules may come with the folder, and nothing is there yet.
        script = step.script if os.path.isabs(step.script) else ""
        step = replace(step, folder="", script=script, module=step.module if task.job.is_sidecar else "")
    return replace(
        step,
        command="" if step.command in brought else step.command,
        script="" if step.script in brought else step.script,
    )


def _question(
    steps: list[dict[str, Any]], line: str, folder: str, python: str, environment: dict[str, str]
) -> Question:
    return {
        "ask": "program",
        "steps": steps,
        "line": line,
        "folder": folder,
        "python": python,
        "environment": environment,
        "instead": {},
    }


def _instead(task: Task) -> dict[str, str]:
    """The package that the program gets for a name that it imports."""
    return {"tensorflow": "dtf"} if task.settings.tensorflow == DTF else {}


def _is_copied(task: Task, path: str) -> bool:
    """Whether a path of the task's host lies in the copy of the folder that `up` brings there."""
    copy = task.host.folder
    return bool(copy) and task.host.sync and (path == copy or path.startswith(f"{copy}/"))


def _here(task: Task, plan: ClusterPlan, path: str) -> str:
    """A path of the copy, as it is on this machine."""
    return os.path.normpath(plan.folder + path[len(task.host.folder) :])
