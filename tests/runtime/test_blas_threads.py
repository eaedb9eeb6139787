"""Tasks of one machine share its cores."""

from __future__ import annotations

import os

import pytest

import dtf as tf
from dtf.run.executor.executor import Executor
from dtf.run.threads import blas_threads
from dtf.server import _tasks_beside
from dtf.wire.cluster import ClusterSpec


class Library:
    """Stands for numpy's BLAS."""

    def __init__(self, set_to):
        self.openblas_set_num_threads = lambda count: set_to.append(count.value)


@pytest.fixture
def set_to(monkeypatch):
    found: list[int] = []
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(blas_threads.ctypes, "CDLL", lambda path: Library(found))
    monkeypatch.setattr(blas_threads.Path, "glob", lambda self, pattern: ["libopenblas.so"])
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(8))
    monkeypatch.setattr(blas_threads, "_taken", 0)
    monkeypatch.setattr(blas_threads, "_cores", 0)
    return found


@pytest.mark.parametrize(("processes", "threads", "expected"), [(1, 0, 8), (4, 0, 2), (20, 0, 1), (4, 3, 3)])
def test_a_process_takes_its_part_of_the_cores(set_to, processes, threads, expected):
    blas_threads.share_cores(processes, threads)
    assert set_to == [expected]
    assert blas_threads.threads_taken() == expected


@pytest.mark.parametrize(("processes", "expected"), [(0, 8), (1, 8), (4, 2), (20, 1)])
def test_its_part_does_not_depend_on_how_many_threads_it_has(set_to, monkeypatch, processes, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    if processes:
        blas_threads.share_cores(processes)
    assert blas_threads.cores() == expected


def test_a_process_with_cores_to_spare_hands_over_sooner(set_to):
    graph = tf.Graph().as_graph_def()
    before = Executor(graph)._program.long_ns
    blas_threads.share_cores(8)
    assert Executor(graph)._program.long_ns > before


def test_a_setting_of_the_user_stands(set_to, monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "5")
    blas_threads.share_cores(4)
    assert set_to == []
    assert blas_threads.threads_taken() == 5


@pytest.mark.parametrize(("setting", "expected"), [("3", 3), ("4,2", 4), ("many", 8), ("0", 8)])
def test_a_setting_is_understood_or_passed_over(set_to, monkeypatch, setting, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    assert blas_threads.threads_taken() == expected


def test_only_tasks_of_the_same_host_count():
    cluster = ClusterSpec({"ps": ["a:1", "b:1"], "worker": ["a:2", "a:3"]})
    assert _tasks_beside(cluster, "a:1") == 3
    assert _tasks_beside(cluster, "b:1") == 1
