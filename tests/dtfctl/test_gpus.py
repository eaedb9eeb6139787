"""How busy GPUs are, from the words of nvidia-smi, and on the page the GPUs of each task."""

from __future__ import annotations

import os

import pytest

from dtfctl.control.cluster import Cluster
from dtfctl.metrics import gpus
from dtfctl.storage.paths import ClusterPaths
from dtfctl.storage.store import Store
from dtfctl.ui import reading
from dtfctl.values.run import Run
from dtfctl.values.task import TaskStatus
from tests.dtfctl.fakes import addresses_of, plan_of

MIB = 1 << 20


@pytest.fixture
def smi(tmp_path, monkeypatch):
    """A program in nvidia-smi's place that prints these lines."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def says(*lines, status=0):
        program = folder / "nvidia-smi"
        program.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines) + f"exit {status}\n")
        program.chmod(0o755)

    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return says


def test_lines_of_the_driver_are_read_and_others_skipped(smi):
    smi("0, 37, 1024, 81559", "1, [N/A], 12, 81559", "Failed to initialize NVML", "", "x, 1, 2, 3", status=9)
    assert gpus.measure() == {
        0: gpus.Gpu(0, 0.37, 1024 * MIB, 81559 * MIB),
        1: gpus.Gpu(1, None, 12 * MIB, 81559 * MIB),
    }


def test_a_machine_without_the_program_has_no_figures(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus.measure() == {}


def test_the_page_shows_a_task_the_gpus_that_the_file_gives_to_it(smi, tmp_path):
    smi("0, 90, 100, 1000", "1, 10, 300, 1000", "2, 0, 0, 1000")
    plan = plan_of("{name: trial, program: x, jobs: {ps: {gpus: none}, worker: {replicas: 2, gpus: [0, 1]}}}")
    paths = ClusterPaths(tmp_path / "trial")
    paths.folder.mkdir()
    store = Store(paths.store)
    names = [task.name for task in plan.tasks()]
    run = Run(1, "token", "boot", plan, {}, addresses_of(plan), 0.0)
    store.begin(run, [TaskStatus(name) for name in names])
    store.close()
    found = reading.gpus_of(Cluster(paths))
    assert "ps:0" not in found
    assert found["worker:0"] == {"gpus": [0, 1], "busy": 0.5, "used": 400 * MIB, "total": 2000 * MIB}
