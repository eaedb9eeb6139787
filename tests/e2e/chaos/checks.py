"""What must be true of the traces that an attacked training leaves. Each function returns complaints in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tests.e2e.chaos.trainer import STEP, found_wrong

LINE = re.compile(r"@([0-9a-f]{8}) (\d+) (\w+)(?: (\d+))?( WRONG .*)? \.")
COUNTED = re.compile(r"restart \d+ of \d+ within")
UNSEEN = "status unknown"


def of_lines(logs: Iterable[str], written: Mapping[str, int]) -> list[str]:
    """No line is torn or lost. `logs` are texts, each in order; `written` says how many lines each process knows to
    have written, and the last write may have been cut off before it was noted."""
    seen: dict[str, int] = {}
    wrong = []
    for line in (line for text in logs for line in text.splitlines() if "@" in line):
        match = LINE.fullmatch(line)
        if match is None:
            wrong.append(f"a torn line: {line!r}")
        elif int(match[2]) != seen.get(match[1], 0) + 1:
            wrong.append(f"line {seen.get(match[1], 0)} of {match[1]} is followed by {match[2]}")
        elif match[5]:
            wrong.append(f"the trainer saw{match[5]}")
        if match is not None:
            seen[match[1]] = int(match[2])
    for name, count in written.items():
        if seen.get(name, 0) not in (count, count + 1):
            wrong.append(f"{name} has written {count} lines; its log has {seen.get(name, 0)}")
    return wrong


def of_chief(logs: Sequence[str], saved: int) -> tuple[list[str], int]:
    """Each session begins at what was saved or later, and counts on by one. `logs` are those of its processes, `saved`
    is what was saved before them; returns what is saved now too."""
    wrong = []
    reached, has_begun = -1, False
    for match in (LINE.fullmatch(line) for text in logs for line in text.splitlines() if line.startswith("@")):
        if match is None or match[4] is None:
            continue
        what, number = match[3], int(match[4])
        if what == "saved":
            saved = max(saved, number)
        elif what == "from":
            if number < saved:
                wrong.append(f"a session begins at step {number}, and {saved} was saved")
            reached, has_begun = number, True
        elif what == "step":
            if number not in ((reached, reached + 1) if has_begun else (reached + 1,)):
                wrong.append(f"step {reached} is followed by step {number}")
            reached, has_begun = number, False
    return wrong, saved


def of_checkpoint(values: Mapping[str, object], former: Mapping[str, object] | None) -> list[str]:
    """A checkpoint is a state of the training, and nothing of it is less than in a former one."""
    wrong = [found_wrong(values)] if found_wrong(values) else []
    if former is not None and int(values[STEP]) < int(former[STEP]):  # type: ignore[call-overload]
        wrong.append(f"the last checkpoint is of step {values[STEP]}; there was one of step {former[STEP]}")
    return wrong


def of_history(events: Sequence[Mapping[str, str]], killed: Mapping[str, int]) -> list[str]:
    """Ends are what they were, and only what the task itself did is counted. `killed` says how often a task was killed,
    while it started or ran."""
    wrong = []
    deaths: Counter[str] = Counter()
    for event in events:
        task, what, cause = event["task"], event["what"], event["cause"]
        if what == "ended":
            deaths[task] += cause == "killed by SIGKILL"
            if cause.startswith("exited with status") and cause.rpartition(" ")[2] not in ("0", "143"):
                wrong.append(f"{task} crashed: {cause}")
        elif what == "kill":
            deaths[task] -= 1
        elif what in ("fail", "give-up"):
            wrong.append(f"{task}: {what}: {cause}")
        elif what == "retry" and COUNTED.search(cause) and not cause.startswith("killed by SIGKILL"):
            wrong.append(f"{task} is blamed: {cause}")
    for task, count in deaths.items():
        if count > killed.get(task, 0):
            wrong.append(f"{task} died {count} times of SIGKILL, and was killed {killed.get(task, 0)} times")
    return wrong


def of_restarts(events: Sequence[Mapping[str, str]], restarts: Mapping[str, int]) -> list[str]:
    """The number of restarts is that of the starts but the first; a task that was removed and came back begins anew."""
    removed = {event["task"] for event in events if event["what"] == "forget"}
    starts = Counter(event["task"] for event in events if event["what"] == "start")
    return [
        f"{task} has {count} restarts, and was started {starts[task]} times"
        for task, count in restarts.items()
        if task not in removed and starts[task] not in (0, count + 1)
    ]
