"""Hosts that go away, are lost, come back: what is concluded, and where their tasks go."""

from __future__ import annotations

from dataclasses import replace

from dtfctl.storage.store import Store
from dtfctl.supervise import host_failover
from dtfctl.values import state
from dtfctl.values.hosts import CONNECTED, LOST, UNREACHABLE, HostStatus
from dtfctl.values.run import Run
from dtfctl.values.statuses import Statuses
from dtfctl.values.task import TaskStatus
from tests.dtfctl.fakes import plan_of

TEXT = """
program: train
host_lost_after: 60s
hosts: {a: , b: , c: , spare1: {slots: 2}, spare2: }
jobs:
  ps: {hosts: [a, b], spare_hosts: [spare1, spare2]}
  worker: {hosts: [a, c], spare_hosts: [spare1, spare2]}
  eye: {hosts: [b], port: none}
"""
FOUND = {"folder": "/home/me/w", "environment": {"HOME": "/home/me", "PATH": "/bin"}, "python": "/usr/bin/python3"}
NAMES = ("a", "b", "c", "spare1", "spare2")


def a_run(text=TEXT, **states):
    plan = plan_of(text)
    known = {name: HostStatus(name, found=FOUND) for name in NAMES}
    known |= {name: replace(known[name], state=what, why="no route") for name, what in states.items()}
    addresses = {task.name: f"{task.advertised_host}:2000" for task in plan.tasks() if task.job.has_address}
    return Run(1, "t", "boot", plan, {"PATH": "/mine"}, addresses, 0.0, hosts=known)


def running(run, **changes):
    statuses = {
        task.name: TaskStatus(task.name, state=state.RUNNING, generation=1, pid=7, host=task.host.name)
        for task in run.actual.tasks()
    }
    return Statuses((statuses | changes).values())


def test_a_host_that_does_not_answer_is_only_noted():
    change = host_failover.unreachable(a_run(), "a", "no route", 500.0, 10.0)
    assert change.run.hosts["a"].state == UNREACHABLE and change.run.hosts["a"].since == 500.0
    assert change.statuses == () and "its tasks are not changed" in change.notes[0][2]
    again = host_failover.unreachable(change.run, "a", "timed out", 600.0, 20.0)
    assert again.run.hosts["a"].since == 500.0 and again.run.hosts["a"].why == "timed out" and not again.notes
    back = host_failover.reached(again.run, "a", 700.0, 30.0)
    assert back.run.hosts["a"].state == CONNECTED and back.notes == (("", "host", "a is reachable again"),)
    assert host_failover.reached(back.run, "a", 800.0, 40.0).notes == ()


def test_a_host_is_lost_after_its_time_and_not_before():
    run = host_failover.unreachable(a_run(), "c", "no route", 0.0, 100.0).run
    assert host_failover.look_again_at(run) == 160.0
    assert host_failover.losses(run, running(run), 0.0, 159.9).run is run
    assert host_failover.losses(run, running(run), 0.0, 160.0).run.hosts["c"].state == LOST


def test_when_no_host_answers_it_is_this_machine_that_is_cut_off():
    run = a_run()
    for name in NAMES:
        run = host_failover.unreachable(run, name, "no route", 0.0, 100.0).run
    assert host_failover.losses(run, running(run), 0.0, 1e9).run is run
    assert host_failover.look_again_at(run) is None


def test_a_task_without_a_spare_waits_for_its_host_and_nothing_is_counted():
    run = host_failover.unreachable(a_run(), "b", "no route", 0.0, 100.0).run
    change = host_failover.losses(run, running(run), 0.0, 200.0)
    assert change.run.hosts["b"].state == LOST and change.statuses == ()
    assert change.run.away == {"b"} and host_failover.due(change.run, running(run)) == {"ps:1": "spare1"}


def test_a_task_that_is_to_run_once_has_ended_with_its_host():
    text = TEXT.replace("port: none}", "port: none, restart: never}")
    run = host_failover.unreachable(a_run(text), "b", "no route", 0.0, 100.0).run
    change = host_failover.losses(run, running(run), 0.0, 200.0)
    assert [(status.name, status.state) for status in change.statuses] == [("eye:0", state.EXITED)]
    ended = change.statuses[0].exit
    assert "its host is lost: b could not be reached for 60s (no route)" in str(ended) and ended.preempted


def test_a_spare_takes_over_from_one_host_and_as_many_as_it_has_slots_for():
    run = a_run(a=LOST)
    assert host_failover.due(run, running(run)) == {"ps:0": "spare1", "worker:0": "spare1"}
    run = a_run(TEXT.replace("slots: 2", "slots: 1"), a=LOST)
    assert host_failover.due(run, running(run)) == {"ps:0": "spare1", "worker:0": "spare2"}
    run = a_run(a=LOST, c=LOST)
    assert host_failover.due(run, running(run))["worker:1"] == "spare2"
    run = a_run(a=LOST, spare1=UNREACHABLE)
    assert set(host_failover.due(run, running(run)).values()) == {"spare2"}


def test_a_task_that_is_done_does_not_move():
    run = a_run(a=LOST)
    done = TaskStatus("worker:0", state=state.SUCCEEDED)
    assert host_failover.due(run, running(run, **{"worker:0": done})) == {"ps:0": "spare1"}
    assert host_failover.due(replace(run, outcome="stopped"), running(run)) == {}


def test_a_moved_task_gets_a_process_there_and_whoever_knows_its_address_too():
    run = a_run(a=LOST)
    change = host_failover.moved(run, running(run), {"ps:0": "spare1:3000", "worker:0": "spare1:3001"}, 5.0)
    assert change.run.addresses["ps:0"] == "spare1:3000"
    assert change.run.actual.task("ps:0").host.name == "spare1"
    found = {status.name: status for status in change.statuses}
    assert found["ps:0"].state == state.EXITED and found["ps:0"].renew.startswith("moved from a to spare1")
    assert found["worker:1"].state == state.RUNNING and "its ClusterSpec changed" in found["worker:1"].renew
    assert found["ps:1"].renew and found["eye:0"].renew


def test_a_sparse_cluster_leaves_those_alone_that_do_not_know_the_moved_one():
    run = a_run("cluster_spec: sparse\n" + TEXT, a=LOST)
    change = host_failover.moved(run, running(run), {"worker:0": "spare1:3001"}, 5.0)
    assert [status.name for status in change.statuses] == ["worker:0"]


def test_a_durable_ps_moves_with_both_of_its_ports_and_nobody_restarts_for_it():
    run = a_run(TEXT.replace("ps: {", "ps: {durability: host, "), a=LOST)
    addresses = {"ps:0": "spare1:3000", "ps-peer:0": "spare1:3005"}
    change = host_failover.moved(run, running(run), addresses, 5.0)
    assert [status.name for status in change.statuses] == ["ps:0"]
    assert {name: change.run.addresses[name] for name in addresses} == addresses


def test_a_host_that_came_back_in_the_meantime_keeps_its_tasks():
    run = a_run()
    change = host_failover.moved(run, running(run), {"ps:0": "spare1:3000"}, 5.0)
    assert change.statuses == () and change.run.actual.task("ps:0").host.name == "a"


def test_a_program_inherits_the_environment_of_its_host():
    run = a_run("hosts: {here: {ssh: none, address: h}, far: }\nprogram: x\njobs: {a: {hosts: [here, far]}}")
    run = replace(run, hosts={"far": HostStatus("far", found={**FOUND, "cores": 4})})
    assert host_failover.inherited(run, run.actual.task("a:0")) == {"PATH": "/mine"}
    assert host_failover.inherited(run, run.actual.task("a:1"))["PATH"] == "/bin"
    assert host_failover.inherited(run, run.actual.task("a:1"))["OMP_NUM_THREADS"] == "4"


def test_paths_of_the_cluster_files_folder_are_those_of_its_copy():
    text = "hosts: {far: {venv: env, working_dir: ~/w}}\nprogram: x\ncheckpoint_dir: out\njobs: {a: 1}"
    run = replace(a_run(text), hosts={"far": HostStatus("far", found=FOUND)})
    task = run.actual.task("a:0")
    assert (task.working_dir, task.python) == ("/home/me/w", "/home/me/w/env/bin/python")
    assert task.path(run.plan.checkpoint_dir) == "/home/me/w/out" and task.path("/data") == "/data"
    unsaid = a_run(text.replace("venv: env, ", ""))
    unsaid = replace(unsaid, hosts={"far": HostStatus("far", found=FOUND)})
    assert unsaid.actual.task("a:0").python == "/usr/bin/python3"


def test_the_cluster_file_says_how_hosts_are_reached_and_when_they_are_lost():
    plan = plan_of(
        "ssh: {command: ssh -F cfg, host_keys: accept-new, timeout: 4s}\nhost_lost_after: 90s\nprogram: x\n"
        "hosts: {a: , b: {working_dir: ~/w/, sync: false}, here: {ssh: none, address: h}}\njobs: {j: 3}",
        "/srv/cluster",
    )
    assert (plan.ssh.command, plan.ssh.accept_new, plan.ssh.timeout_s) == ("ssh -F cfg", True, 4.0)
    assert plan.host_lost_after_s == 90.0
    assert [(host.folder, host.sync) for host in plan.hosts] == [("/srv/cluster", True), ("~/w", False), ("", True)]
    assert plan_of("ssh: /opt/ssh\nprogram: x\njobs: {j: 1}").ssh.command == "/opt/ssh"


def test_the_copy_of_a_folder_in_the_home_folder_is_in_the_home_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    assert plan_of("hosts: [a]\nprogram: x\njobs: {j: 1}", "/home/ann/work/c").host("a").folder == "~/work/c"


def test_a_host_that_the_file_has_no_more_is_let_go_when_nothing_runs_there():
    run = a_run()
    plan = plan_of(TEXT.replace("worker: {hosts: [a, c]", "worker: {hosts: [a, d]").replace("c: ,", "d: ,"))
    after = host_failover.joined(run, plan, {"d": HostStatus("d", found=FOUND)})
    assert [host.name for host in after.parting] == ["c"] and set(after.hosts) == {*NAMES, "d"}
    assert {host.name for host in after.remote_hosts} == {*NAMES, "d"}
    there = running(run, **{"worker:1": TaskStatus("worker:1", state=state.STOPPING, generation=1, pid=7, host="c")})
    assert host_failover.parting(after, there) == []
    gone = running(run, **{"worker:1": TaskStatus("worker:1", state=state.PENDING, generation=1, host="c")})
    assert host_failover.parting(after, gone) == ["c"]
    # One that does not answer is let go when it does.
    assert host_failover.parting(host_failover.unreachable(after, "c", "no route", 0.0, 0.0).run, gone) == []
    assert set(host_failover.parted(after, "c").hosts) == {"a", "b", "d", "spare1", "spare2"}
    # The file may want it back before that.
    assert host_failover.joined(after, run.plan, {}).parting == (plan.host("d"),)


def test_a_spare_that_the_file_has_no_more_gives_its_task_back():
    run = replace(a_run(), moves={"ps:0": "spare1"})
    plan = plan_of(TEXT.replace("spare1: {slots: 2}, ", "").replace("[spare1, spare2]", "spare2"))
    assert host_failover.joined(run, plan, {}).actual.task("ps:0").host.name == "a"


def test_what_is_known_of_hosts_comes_back_from_the_store(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    run = host_failover.unreachable(a_run(), "a", "no route", 5.0, 6.0).run
    run = replace(run, moves={"ps:0": "spare1"}, parting=(run.plan.host("b"),))
    store.begin(run, running(run).values())
    loaded = store.load()[0]
    store.close()
    assert loaded.parting == run.parting
    assert loaded.hosts == run.hosts and loaded.actual.task("ps:0").host.name == "spare1"
