"""Random schedules of kills, losses and late messages through the real code, in one thread."""

from __future__ import annotations

import logging
import shutil
import tempfile
from pathlib import Path

import pytest

from dtf.run.durability import journal
from dtf.run.durability.once import StepRecords
from dtf.run.master import durable_steps
from tests.durability.simulate import compiled_graphs, simulate


@pytest.fixture
def folder(monkeypatch):
    monkeypatch.setattr(journal, "_RECORDS_BYTES", 8192)
    monkeypatch.setattr(journal, "_UNDO_BYTES", 4096)
    monkeypatch.setattr(durable_steps, "_PAUSE_S_MAX", 0.0)
    made = Path(tempfile.mkdtemp(prefix="dtf-simulate-"))
    logging.disable(logging.CRITICAL)
    yield made
    logging.disable(logging.NOTSET)
    shutil.rmtree(made)


def wrong(folder: Path, seeds: range) -> list[str]:
    made = compiled_graphs(folder)
    return [f"seed {seed}: {each}" for seed in seeds for each in simulate(seed, folder, made).wrong]


def test_random_schedules_must_count_each_confirmed_step_once(folder):
    assert wrong(folder, range(8)) == []


def test_a_schedule_follows_from_its_seed(folder):
    made = compiled_graphs(folder)
    first, second = (simulate(5, folder, made).log for _ in range(2))
    assert first == second
    assert any("kill" in event for event in first)


@pytest.mark.slow
def test_many_random_schedules_must_count_each_confirmed_step_once(folder):
    assert wrong(folder, range(100, 400)) == []


def test_the_simulation_must_find_that_results_are_not_kept(folder, monkeypatch):
    def forgetting(self, session, step_id):
        attempt = begin(self, session, step_id)
        attempt._entry.results.clear()
        return attempt

    begin = StepRecords.begin
    monkeypatch.setattr(StepRecords, "begin", forgetting)
    assert wrong(folder, range(10))
