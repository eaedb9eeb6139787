"""Tracebacks that repeat one shown before, by a task's next process or by its neighbours: one line in their place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from dtfctl.logs.files import Line

LINES_MAX = 500
"""A longer traceback is shown as it is."""

_BEGIN = "Traceback (most recent call last):"
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


@dataclass
class OneOfEach:
    """Called with the lines as they come; holds back a traceback until it is whole. One thread."""

    _seen: dict[str, str] = field(default_factory=dict)
    _open: dict[tuple[str, int], list[Line]] = field(default_factory=dict)

    def __call__(self, lines: Iterable[Line], is_over: bool = False) -> list[Line]:
        """What is to be shown now; with `is_over` all that is left too."""
        shown: list[Line] = []
        for line in lines:
            key = line.task, line.attempt
            held = self._open.get(key)
            if held is None:
                if line.text == _BEGIN:
                    self._open[key] = [line]
                else:
                    shown.append(line)
                continue
            held.append(line)
            if line.text and not line.text[0].isspace():
                del self._open[key]
                shown += self._once(held)
            elif len(held) > LINES_MAX:
                del self._open[key]
                shown += held
        if is_over:
            for held in self._open.values():
                # One that was cut off because its task was killed meanwhile repeats another as well.
                text = _text(held)
                if not any(seen.startswith(text) for seen in self._seen):
                    shown += held
            self._open.clear()
        return shown

    def _once(self, held: list[Line]) -> list[Line]:
        text = _text(held)
        if text not in self._seen:
            self._seen[text] = held[0].task
            return held
        whose = "as before" if self._seen[text] == held[0].task else f"as that of {self._seen[text]}"
        return [held[-1]._replace(text=f"{held[-1].text} (the same traceback {whose})")]


def _text(lines: list[Line]) -> str:
    return _ADDRESS.sub("", "\n".join(line.text for line in lines))
