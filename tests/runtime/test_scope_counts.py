"""Default names of variable scopes are made unique, in time that does not grow with the number of scopes."""

from __future__ import annotations

import random
import re

import pytest

import dtf as tf
from dtf.build.scope_counts import ScopeCounts


class PlainCounts:
    """The same by going through all names."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.kept: list[dict[str, int]] = []

    def open(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1

    def unique(self, name: str) -> str:
        if not self.counts.get(name):
            return name
        return next(f"{name}_{number}" for number in range(1, 1000) if not self.counts.get(f"{name}_{number}"))

    def close_inside(self, scope: str) -> None:
        for name in self.counts:
            if not scope or name.startswith(f"{scope}/"):
                self.counts[name] = 0

    def mark(self) -> int:
        self.kept.append(dict(self.counts))
        return 0

    def restore(self) -> None:
        self.counts = self.kept.pop()


@pytest.mark.parametrize("seed", range(20))
def test_any_sequence_of_calls_gives_the_names_of_counts_that_go_through_all(seed):
    chance = random.Random(seed)
    counts, plain, marks = ScopeCounts(), PlainCounts(), []
    parts = ["", "a", "b", "a_1", "a_2", "b_1_2"]
    for _ in range(400):
        name = "/".join(filter(None, (chance.choice(parts) for _ in range(chance.randint(0, 3)))))
        what = chance.choice(["open", "open", "unique", "unique", "close", "mark", "restore"])
        if what == "open":
            counts.open(name)
            plain.open(name)
        elif what == "unique":
            given = counts.unique(name)
            assert given == plain.unique(name)
            counts.open(given)
            plain.open(given)
        elif what == "close":
            counts.close_inside(name)
            plain.close_inside(name)
        elif what == "mark" and len(marks) < 4:
            plain.mark()
            marks.append(counts.mark())
        elif what == "restore" and marks:
            plain.restore()
            counts.restore(marks.pop())


def test_names_of_scopes_with_a_default_name_are_tensorflows():
    def names(count: int) -> list[str]:
        found = []
        for _ in range(count):
            with tf.variable_scope(None, "layer") as scope:
                found.append(scope.name)
        return found

    with tf.Graph().as_default():
        assert names(3) == ["layer", "layer_1", "layer_2"]
        with tf.variable_scope("outer") as outer:
            assert names(2) == ["outer/layer", "outer/layer_1"]
        with tf.variable_scope("outer"):
            assert names(1) == ["outer/layer"]
        with tf.variable_scope(outer):
            assert names(2) == ["outer/layer", "outer/layer_1"]
        with tf.variable_scope(outer):
            assert names(1) == ["outer/layer"]
        assert names(1) == ["layer_3"]


def test_a_thousandth_scope_is_opened_by_as_few_steps_as_the_tenth(monkeypatch):
    looked_at = []
    counts = ScopeCounts()

    class Watched(dict):
        def get(self, *arguments):
            looked_at.append(arguments[0])
            return super().get(*arguments)

    counts._counts = Watched()

    def steps() -> int:
        before = len(looked_at)
        name = counts.unique("dense")
        counts.open(name)
        counts.open(f"{name}/inner")
        counts.close_inside(name)
        return len(looked_at) - before

    taken = [steps() for _ in range(1000)]
    assert re.fullmatch("dense_1000", counts.unique("dense"))
    assert taken[999] == taken[9]
