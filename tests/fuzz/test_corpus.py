"""Inputs that were lost once are taken or refused in words now; and a few new ones of each target."""

from __future__ import annotations

import random

import pytest

from tests.fuzz import mutate
from tests.fuzz.harness import CORPUS, LIMITS, Tally, Target, campaign
from tests.fuzz.targets import TARGETS, control, files, server

FOUND = sorted(path for path in CORPUS.rglob("*") if path.is_file())


@pytest.fixture(scope="module", autouse=True)
def nothing_stays_behind():
    yield
    server.stop()
    if files.ops.cache_info().currsize:
        files.ops()[0].close()
        files.ops.cache_clear()


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_lost_once_is_not_lost_again(path, tmp_path, monkeypatch):
    for name, value in {**LIMITS, "DTF_FUZZ_FOLDER": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    target = TARGETS[path.parent.name]
    try:
        target.read(path.read_bytes())
    except target.refusals as error:
        assert str(error).strip()


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_an_input_is_the_same_each_time(name):
    target = TARGETS[name]
    assert [target.input(5, number) for number in range(3)] == [target.input(5, number) for number in range(3)]


def read_badly(data: bytes) -> None:
    if data[0] == 1:
        raise ValueError("one")
    if data[0] == 2:
        raise KeyError("two")
    if data[0] == 3:
        raise ValueError


def test_outcomes_are_sorted():
    target = Target("bad", list, lambda chance, examples: b"", read_badly, (ValueError,))
    assert [target.outcome(bytes([kind]))[0] for kind in range(4)] == ["taken", "refused", "lost", "lost"]


def test_a_campaign_counts_what_it_has_tried():
    tally = campaign(TARGETS["hostlist"], seed=1, seconds=60, inputs=50)
    assert isinstance(tally, Tally)
    assert (tally.tried, tally.taken + tally.refused, tally.lost) == (50, 50, [])


def test_trees_and_texts_change():
    chance = random.Random(1)
    assert len({control.as_json(mutate.of_tree(chance, {"a": [1, "b"], "c": {"d": 1.5}})) for _ in range(50)}) > 10
    assert len({mutate.of_text(chance, "a b\nc d") for _ in range(50)}) > 10
