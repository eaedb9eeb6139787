"""`engine: mpi`: what mpirun writes, in words, and the plan on its hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtfctl import config
from dtfctl.errors import ConfigError, HostsUnusable
from dtfctl.launchers import mpi
from dtfctl.values.plan import MPI

TEXT = """
engine: {mpi: {nodes: 2, address: "{node}-ib", options: [--hostfile hosts]}}
program: sleep 100
jobs: {ps: 1, worker: 2}
"""
MAP = """
 Data for JOB [15354,1] offset 0 Total slots allocated 8

 ========================   JOB MAP   ========================

 Data for node: 10.0.0.5	Num slots: 2 Max slots: 0 Num procs: 1
    Process OMPI jobid: [15354,1] App: 0 Process rank: 0 Bound: N/A

 Data for node: node2	Num slots: 2 Max slots: 0 Num procs: 1
    Process OMPI jobid: [15354,1] App: 0 Process rank: 1 Bound: N/A
 =============================================================
dtfctl-host 1 node2.site
dtfctl-host 0 node1.site
"""
RULE = "-" * 74


def boxed(*lines):
    return "\n".join((RULE, *lines, RULE, ""))


def plan_of(text=TEXT):
    return config.parse(text, "cluster.yaml", Path("/trial"))


def test_hosts_have_the_names_that_mpirun_has_for_them():
    assert mpi.nodes_in(MAP) == [("10.0.0.5", "node1.site"), ("node2", "node2.site")]


def test_without_a_map_a_host_has_its_own_name():
    assert mpi.nodes_in("dtfctl-host 0 node1\n") == [("node1", "node1")]


@pytest.mark.parametrize(
    ("words", "status", "why", "is_connection"),
    [
        (
            "own words\n" + boxed("Primary job  terminated normally, but 1 process returned", "a non-zero exit code."),
            *(3, "own words", False),
        ),
        (
            boxed("ORTE was unable to start one or more daemons.", "This usually is caused by:", "", "* not finding"),
            *(1, "ORTE was unable to start one or more daemons", True),
        ),
        (
            "ssh: connect to host node2 port 22: Connection refused\n" + boxed("ORTE was unable to start daemons."),
            *(1, "ssh: connect to host node2 port 22: Connection refused", True),
        ),
        ("mpirun: Error: unknown option\n", 1, "unknown option", False),
        ("[vm:223] [[INVALID],INVALID] FORCE-TERMINATE\n", 243, "mpirun exits with status 243", False),
        ("", -9, "mpirun exits with status -9", True),
    ],
)
def test_what_mpirun_writes_becomes_a_line(words, status, why, is_connection):
    assert mpi.explain(words, status) == (why, is_connection)


def mpirun(folder, text):
    """A program that writes `text` in mpirun's place."""
    program = folder / "mpirun"
    (folder / "text").write_text(text)
    program.write_text(f"#!/bin/sh\ncat '{folder / 'text'}'\n")
    program.chmod(0o755)
    return config.parse(TEXT.replace("nodes: 2", f"nodes: 2, mpirun: '{program}'"), "cluster.yaml", folder)


def test_the_plan_is_placed_on_the_hosts(tmp_path):
    plan = mpirun(tmp_path, MAP)
    said = []
    placed = mpi.found(plan, {}, said.append)
    assert [(host.name, host.target, host.address) for host in placed.hosts] == [
        ("node-1", "10.0.0.5", "10.0.0.5-ib"),
        ("node-2", "node2", "node2-ib"),
    ]
    assert placed.engine == MPI and placed.mpi.hosts == ("10.0.0.5", "node2") and said
    assert mpi.taken_over(plan, placed).hosts == placed.hosts
    with pytest.raises(HostsUnusable, match="runs on 2 hosts of MPI"):
        mpi.taken_over(plan_of(TEXT.replace("nodes: 2", "nodes: 3")), placed)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dtfctl-host 0 node1\n", r"reaches 1 hosts \(node1\), and engine.mpi.nodes is 2"),
        (MAP.replace("node2.site", "node1.site"), "10.0.0.5, node2 are the same host, node1.site"),
    ],
)
def test_too_few_hosts_and_ranks_of_one_host_are_refused(tmp_path, text, words):
    with pytest.raises(HostsUnusable, match=words):
        mpi.found(mpirun(tmp_path, text), {}, print)


def test_a_missing_mpirun_is_told(tmp_path):
    plan = config.parse(TEXT.replace("nodes: 2", "nodes: 2, mpirun: no-mpirun"), "cluster.yaml", tmp_path)
    with pytest.raises(HostsUnusable, match="no-mpirun cannot be run: No such file or directory; install Open MPI"):
        mpi.found(plan, {}, print)


def test_a_rank_of_mpirun_does_not_call_mpirun():
    with pytest.raises(HostsUnusable, match="was started by mpirun"):
        mpi.found(plan_of(), {"OMPI_COMM_WORLD_RANK": "0"}, print)


def test_spares_leave_a_host_for_the_tasks():
    with pytest.raises(ConfigError, match="must leave a host"):
        plan_of(TEXT.replace("nodes: 2", "nodes: 2, spares: 2"))


def test_a_call_binds_nothing_and_passes_options_on():
    pipe = mpi.MpiPipe(plan_of().mpi, plan_of().hosts[0], Path("/trial"))
    assert pipe.by_hand("true") == "mpirun --bind-to none --hostfile hosts --map-by ppr:1:node true"
