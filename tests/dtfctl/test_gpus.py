"""GPUs, from the words of nvidia-smi or of NVML: how busy they are, what is wrong with them, whose they are."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from dtfctl.checks import doctor
from dtfctl.control.cluster import Cluster
from dtfctl.launchers import gpus
from dtfctl.show import view
from dtfctl.storage.paths import ClusterPaths
from dtfctl.storage.store import Store
from dtfctl.ui import reading
from dtfctl.values.run import Run
from dtfctl.values.snapshot import GpuUse, Snapshot, TaskView
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
    monkeypatch.setattr(gpus, "_library", lambda: None)
    return says


def test_lines_of_the_driver_are_read_and_others_skipped(smi):
    smi("0, 37, 1024, 81559", "1, [N/A], 12, 81559", "Failed to initialize NVML", "", "x, 1, 2, 3", status=9)
    assert gpus.measure() == {
        0: gpus.Gpu(0, 0.37, 1024 * MIB, 81559 * MIB),
        1: gpus.Gpu(1, None, 12 * MIB, 81559 * MIB),
    }


def test_a_machine_without_the_program_has_no_figures(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(gpus, "_library", lambda: None)
    assert gpus.measure() == {}
    assert gpus.cards() == ([], "")
    assert list(doctor._gpus()) == []


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


def test_top_shows_load_and_memory_of_the_gpus_of_a_task():
    use = GpuUse((0, 1), 0.5, 400 * MIB, 2000 * MIB)
    known = (1, 0, 7, "localhost", "127.0.0.1:1", 60.0, None, None, "", "", "", "", 0.0)
    worker = TaskView("worker:0", "running", True, False, *known, gpus=use)
    ps = TaskView("ps:0", "running", True, False, *known)
    snapshot = Snapshot(100.0, "trial", "f.yaml", "running", "", "", False, 0.0, (), (ps, worker), ())
    headings, of_ps, of_worker = view.usage_rows(snapshot)
    assert headings[4:6] == ["GPU%", "GPU MEMORY"]
    assert of_ps[4:6] == ["-", "-"] and of_worker[4:6] == ["50", "400 MiB of 2.0 GiB"]
    assert view.usage_document(snapshot)["tasks"][1]["gpus"]["busy"] == 0.5
    without = view.usage_rows(Snapshot(*(100.0, "t", "f", "running", "", "", False, 0.0, (), (ps,), ())))
    assert "GPU%" not in without[0]


LINE = "{}, NVIDIA H100, GPU-1-2, 550.54, 81559, {}, {}"


@pytest.mark.parametrize(
    ("line", "grade", "words"),
    [
        (LINE.format(0, "Disabled", 0), doctor.FINE, "NVIDIA H100, 80 GiB, driver 550.54"),
        (LINE.format(0, "[N/A]", "[N/A]"), doctor.FINE, "NVIDIA H100, 80 GiB, driver 550.54"),
        (LINE.format(0, "Enabled", 0), doctor.DOUBTFUL, "split into instances by MIG"),
        (LINE.format(0, "Disabled", 3), doctor.DOUBTFUL, "3 uncorrectable memory errors"),
    ],
)
def test_doctor_knows_the_cards(line, grade, words, smi, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    smi(line)
    (finding,) = doctor._gpus()
    assert (finding.grade, finding.subject) == (grade, "gpu 0") and words in finding.what


def test_doctor_repeats_the_complaint_of_a_driver_that_does_not_answer(smi):
    smi("Failed to initialize NVML: Driver/library version mismatch", status=18)
    (finding,) = doctor._gpus()
    assert finding.grade == doctor.DOUBTFUL
    assert finding.what == "Failed to initialize NVML: Driver/library version mismatch"


def test_nvml_is_asked_where_its_package_is_installed(monkeypatch):
    class Lost(Exception):
        """What a card that has fallen off the bus raises."""

    def memory(number):
        if number == 1:
            raise Lost
        return SimpleNamespace(used=400 * MIB, total=1000 * MIB)

    library = SimpleNamespace(
        NVMLError=Lost,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetMemoryInfo=memory,
        nvmlDeviceGetUtilizationRates=lambda number: SimpleNamespace(gpu=37),
    )
    monkeypatch.setattr(gpus, "_library", lambda: library)
    assert gpus.measure() == {0: gpus.Gpu(0, 0.37, 400 * MIB, 1000 * MIB)}
    assert gpus.uses({"worker:0": (0,), "worker:1": (1,)}) == {
        "worker:0": GpuUse((0,), 0.37, 400 * MIB, 1000 * MIB)
    }
