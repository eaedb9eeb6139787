"""Branches and loops whose nodes are on two tasks give what they give on one."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import dtf as tf
from dtf.testing import LocalCluster
from tests.interop import control_flow_programs


@pytest.fixture(scope="module")
def target():
    with LocalCluster({"ps": 1, "worker": 1}) as cluster:
        yield cluster.target("worker")


@pytest.mark.parametrize("program", control_flow_programs.SWITCHES, ids=lambda program: program.__name__)
def test_a_program_over_two_tasks_gives_what_it_gives_on_one(program, target, monkeypatch):
    found = control_flow_programs.outcomes(tf, target, [program])
    monkeypatch.setattr(control_flow_programs, "on", lambda tf, job: contextlib.nullcontext())
    wanted = control_flow_programs.outcomes(tf, "", [program])
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-5, err_msg=key)


def test_iterations_of_a_loop_over_two_tasks_leave_nothing_behind(target):
    with tf.Graph().as_default():
        run = control_flow_programs.nested_loops(tf)
        with tf.Session(target) as session:
            first = run(session)
            for _ in range(20):
                for ours, theirs in zip(run(session), first, strict=True):
                    np.testing.assert_array_equal(ours, theirs)
