"""The loop's body with a fake launcher, a fake clock and a real store."""

from __future__ import annotations

import signal

import pytest

from dtfctl.errors import StoreUnwritable
from dtfctl.launchers.base import Exited, Listed, Ready, Started, Stray, Waiting
from dtfctl.show.view import document
from dtfctl.values.plan import LOCALHOST
from dtfctl.values.snapshot import cluster_state, take
from dtfctl.values.task import Exit
from tests.dtfctl.fakes import CLUSTER, World

HOSTS = """
name: trial
program: train
hosts: {a: , b: }
jobs:
  ps: {hosts: [a]}
  worker: {hosts: [b]}
"""


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.store.close()


def test_all_tasks_are_started_and_the_cluster_runs_once_all_are_ready(world):
    world.supervisor.step()
    assert world.started() == [("ps:0", 1), ("worker:0", 1), ("worker:1", 1)]
    assert cluster_state(world.supervisor.run) == "starting"
    world.make_ready()
    assert cluster_state(world.supervisor.run) == "running"
    assert document(take(world.supervisor.run, world.supervisor.statuses, 0.0, 0.0))["tasks"][0] == {
        "name": "ps:0",
        "state": "running",
        "ready": True,
        "pid": 101,
        "host": "localhost",
        "address": "127.0.0.1:1",
        "restarts": 0,
        "reason": "",
    }


def test_a_killed_ps_comes_back_at_once_on_its_address_and_the_cause_stays_visible(world):
    world.make_ready()
    world.launcher.end("ps:0", signal_number=9)
    world.supervisor.step()
    assert world.started()[-1] == ("ps:0", 2)
    assert world.launcher.launches[-1].port == 1
    world.make_ready()
    task = document(take(world.supervisor.run, world.supervisor.statuses, 0.0, 0.0))["tasks"][0]
    assert (task["state"], task["restarts"]) == ("running", 1)
    assert task["reason"] == "killed by SIGKILL from outside; restart not counted"
    for worker in ("worker:0", "worker:1"):
        world.launcher.end(worker, code=0)
    world.supervisor.step()
    task = document(take(world.supervisor.run, world.supervisor.statuses, 0.0, 0.0))["tasks"][0]
    assert task["reason"].startswith("the training is done: killed by SIGTERM; earlier: killed by SIGKILL")


def test_when_the_workers_are_done_the_ps_is_ended_and_all_is_success(world):
    world.make_ready()
    world.launcher.end("worker:0", code=0)
    world.supervisor.step()
    assert world.states() == {"ps:0": "running", "worker:0": "succeeded", "worker:1": "running"}
    world.launcher.end("worker:1", code=0)
    world.supervisor.step()
    assert world.supervisor.is_finished
    assert set(world.states().values()) == {"succeeded"}
    world.supervisor.end(())
    assert cluster_state(world.store.load()[0]) == "succeeded"


def test_a_ps_that_ends_by_itself_with_the_training_is_a_success_too(world):
    world.make_ready()
    for name in ("ps:0", "worker:1", "worker:0"):
        world.launcher.end(name, code=0)
    world.supervisor.step()
    assert world.supervisor.is_finished
    assert world.launcher.signals == []
    assert set(world.states().values()) == {"succeeded"}


def test_a_crash_loop_backs_off_gives_up_and_fails_the_cluster_with_its_cause(world):
    world.make_ready()
    delays = []
    while not world.supervisor.is_finished:
        if world.states()["worker:1"] in ("starting", "running"):
            world.clock.pass_(20)
            world.launcher.end("worker:1", code=3)
        before = world.clock()
        look_again_at = world.supervisor.step()
        if look_again_at:
            delays.append(round(look_again_at - before, 3))
            world.clock.now = look_again_at
            world.supervisor.step()
    assert delays == [1.0, 2.0, 4.0, 8.0]
    run = world.supervisor.run
    assert (run.outcome, run.root_cause) == ("failed", "worker:1")
    assert run.why == "worker:1 failed: exited with status 3; gave up after 5 restarts within 10m"
    assert world.states() == {"ps:0": "stopped", "worker:0": "stopped", "worker:1": "gave-up"}


def test_policy_never_fails_the_cluster_at_the_first_failure(tmp_path):
    world = World(tmp_path, CLUSTER + "restart: never\n")
    world.make_ready()
    world.launcher.end("worker:0", code=7)
    world.supervisor.step()
    assert world.supervisor.run.why == "worker:0 failed: exited with status 7 (restart: never)"
    assert [name for name, _ in world.launcher.signals[::2]] == ["worker:1", "ps:0"]
    world.store.close()


def test_down_stops_workers_before_the_ps(world):
    world.make_ready()
    world.supervisor.stop("enough")
    world.supervisor.step()
    assert world.supervisor.is_finished
    terminated = [name for name, number in world.launcher.signals if number == signal.SIGTERM]
    assert terminated == ["worker:1", "worker:0", "ps:0"]


def test_a_task_that_is_deaf_to_sigterm_is_killed_after_its_grace_period(world):
    world.make_ready()
    world.launcher.obeys_sigterm = False
    world.supervisor.stop("enough")
    assert world.supervisor.step() == world.clock() + 3, "then the chief is asked too"
    world.clock.pass_(3)
    assert world.supervisor.step() == world.clock() + 7
    world.clock.pass_(7)
    assert world.supervisor.step() == world.clock() + 3
    world.clock.pass_(3)
    assert world.supervisor.step() == world.clock() + 10, "now the ps has its own grace period"
    world.clock.pass_(10)
    world.supervisor.step()
    assert world.supervisor.is_finished
    assert "ps:0 kill still there 10s after SIGTERM" in world.history()


def test_a_second_stop_may_kill_at_once(world):
    world.make_ready()
    world.launcher.obeys_sigterm = False
    world.supervisor.stop("Ctrl-C")
    world.supervisor.step()
    world.supervisor.stop("Ctrl-C", 0.0)
    world.supervisor.step()
    assert world.supervisor.is_finished
    assert world.supervisor.run.outcome == "stopped"


def test_what_survives_sigkill_bounds_the_stop_and_is_named(world):
    world.make_ready()
    world.launcher.obeys_sigterm = world.launcher.dies = False
    world.supervisor.stop("enough", 0.0)
    while not world.supervisor.is_finished:
        world.clock.now = world.supervisor.step() or world.clock.now
    assert world.clock() == 1010.0
    world.supervisor.end((Stray(101, "localhost", "sleep"),))
    assert world.store.load()[0].strays == ((101, "localhost", "sleep"),)
    assert world.supervisor.statuses["ps:0"].reason == "pid 101 outlived SIGKILL by 5s"


def test_a_stop_before_anything_was_started_starts_nothing(world):
    world.supervisor.stop("never mind")
    world.supervisor.step()
    assert world.supervisor.is_finished
    assert world.started() == []


def test_the_next_supervisor_goes_on_where_the_killed_one_was(world):
    world.make_ready()
    world.launcher.end("ps:0", signal_number=9)
    world.supervisor.step()
    supervisor = world.replace_supervisor()
    supervisor.handle(Listed(frozenset(world.started())))
    supervisor.step()
    assert world.started()[-1] == ("ps:0", 2), "nothing is started twice"
    assert supervisor.statuses["ps:0"].restarts == 1
    assert supervisor.statuses["worker:0"].ready


def test_an_exit_that_nobody_watched_is_taken_in_by_the_next_supervisor(world):
    world.make_ready()
    supervisor = world.replace_supervisor()
    supervisor.handle(Listed(frozenset(world.started())))
    supervisor.handle(Exited("worker:0", 1, Exit(world.clock(), 0)))
    supervisor.step()
    assert supervisor.statuses["worker:0"].state == "succeeded"


@pytest.mark.parametrize("what", ["exited", "started", "ready", "waiting"])
def test_a_host_is_not_believed_about_a_task_of_another_host(tmp_path, capfd, what):
    world = World(tmp_path, HOSTS)
    world.supervisor.step()
    before = dict(world.supervisor.statuses)
    ended = Exit(world.clock(), 0)

    def report(host):
        events = {
            "exited": Exited("ps:0", 1, ended, host),
            "started": Started("ps:0", 1, 1, 0.0, host),
            "ready": Ready("ps:0", 1, host),
            "waiting": Waiting("ps:0", 1, "a lie", host),
        }
        world.supervisor.handle(events[what])

    for liar in ("b", LOCALHOST):
        report(liar)
    assert dict(world.supervisor.statuses) == before
    assert capfd.readouterr().err.splitlines() == [
        f"{liar} reports on ps:0, which runs on a: ignored" for liar in ("b", LOCALHOST)
    ]
    if what != "started":
        report("a")
        assert world.supervisor.statuses["ps:0"] != before["ps:0"]


def test_the_end_of_a_lost_process_is_that_of_its_host(tmp_path):
    world = World(tmp_path, HOSTS)
    world.make_ready()
    world.supervisor.handle(Listed(frozenset(), "b"))
    assert world.states() == {"ps:0": "running", "worker:0": "exited"}


def test_a_start_that_was_decided_but_never_done_is_done_by_the_next_supervisor(world):
    world.launcher.start = lambda launch: None
    world.supervisor.step()
    del world.launcher.start
    supervisor = world.replace_supervisor()
    supervisor.handle(Listed(frozenset()))
    supervisor.step()
    assert world.started() == [("ps:0", 1), ("worker:0", 1), ("worker:1", 1)]
    assert all(status.restarts == 0 for status in supervisor.statuses.values())


def test_a_process_that_the_launcher_has_lost_is_replaced_and_not_blamed(world):
    world.make_ready()
    del world.launcher.alive["ps:0"]
    world.supervisor.handle(Listed(frozenset({("worker:0", 1), ("worker:1", 1)})))
    world.supervisor.step()
    status = world.supervisor.statuses["ps:0"]
    assert (status.state, status.generation) == ("starting", 2)
    assert status.reason == "was lost: the state of its process is unknown; restart not counted"


def test_news_of_a_former_process_change_nothing(world):
    world.make_ready()
    world.launcher.end("ps:0", signal_number=9)
    world.supervisor.step()
    world.supervisor.handle(Exited("ps:0", 1, Exit(world.clock(), 1)))
    world.supervisor.note_ready("ps:0", 1)
    world.supervisor.step()
    assert world.supervisor.statuses["ps:0"].state == "starting"


def test_the_environment_is_forgotten_with_the_end_of_the_run(world):
    world.make_ready()
    assert world.store.load()[0].environment == {"SECRET": "x"}
    world.supervisor.stop("enough")
    world.supervisor.step()
    world.supervisor.end(())
    assert world.store.load()[0].environment == {}


def test_a_task_without_a_probe_is_ready_when_it_runs(tmp_path):
    world = World(tmp_path, CLUSTER + "readiness: none\n")
    world.supervisor.step()
    assert cluster_state(world.supervisor.run) == "running"
    world.store.close()


def test_a_launch_carries_what_the_file_says_of_its_task(tmp_path):
    text = CLUSTER + "limits: {nice: 3}\ncpus: 1\nbind: 0.0.0.0\nstop_signal: INT\n"
    world = World(tmp_path, text)
    world.make_ready()
    launch = world.launcher.launches[1]
    assert (launch.limits.nice, launch.cpus, launch.address, launch.port) == (3, (1,), "0.0.0.0", 2)
    world.supervisor.stop("because")
    world.supervisor.step()
    assert (("worker:1", signal.SIGINT)) in world.launcher.signals
    world.store.close()


def test_a_sidecar_that_gives_up_does_not_fail_the_training(tmp_path):
    world = World(tmp_path, CLUSTER + "  board: {sidecar: true, port: none, restart: never}\n")
    world.make_ready()
    world.launcher.end("board:0", code=1)
    world.supervisor.step()
    assert world.states()["board:0"] == "failed"
    assert not world.supervisor.run.outcome
    for worker in ("worker:0", "worker:1"):
        world.launcher.end(worker, code=0)
    world.supervisor.step()
    assert world.supervisor.run.outcome == "succeeded"
    world.store.close()


@pytest.mark.parametrize(("success", "worker"), [("any", "worker:1"), ("chief", "worker:0")])
def test_the_success_of_one_may_be_that_of_all(tmp_path, success, worker):
    world = World(tmp_path, CLUSTER + f"success: {success}\n")
    world.make_ready()
    world.launcher.end(worker, code=0)
    world.supervisor.step()
    assert world.supervisor.run.outcome == "succeeded"
    world.store.close()


def fill_disk(world):
    """As much as SQLite knows of a full disk."""
    (pages,) = world.store._database.execute("PRAGMA page_count").fetchone()
    world.store._database.execute(f"PRAGMA max_page_count = {pages}")


def make_room(world):
    world.store._database.execute("PRAGMA max_page_count = 1000000")


def test_what_a_full_disk_does_not_take_is_not_done_until_there_is_room(world):
    world.make_ready()
    fill_disk(world)
    with pytest.raises(StoreUnwritable, match="database or disk is full; make room there: df -h"):
        world.supervisor.restart(["worker:0"], "x" * 100_000, "request")
    with pytest.raises(StoreUnwritable):
        world.supervisor.step()
    assert world.launcher.signals == []
    make_room(world)
    world.supervisor.step()
    assert ("worker:0", signal.SIGTERM) in world.launcher.signals
    assert any("restart" in line or "xxx" in line for line in world.history())


def test_a_cluster_can_be_ended_on_a_full_disk_and_its_end_is_on_record_once_there_is_room(world):
    world.make_ready()
    fill_disk(world)
    world.supervisor.stop("y" * 100_000)
    assert "make room there" in world.supervisor.unwritten
    world.supervisor.step()
    assert {"worker:0", "worker:1"} <= {task for task, *_ in world.launcher.signals}
    assert not world.supervisor.save()
    make_room(world)
    assert world.supervisor.save() and not world.supervisor.unwritten
    assert world.store.load()[0].outcome == "stopped"


SCOPED = """
name: trial
program: train
restart: {scope: %s}
jobs:
  ps: 1
  worker: 2
  board: {replicas: 1, sidecar: true, program: board}
"""


@pytest.mark.parametrize(
    ("scope", "restarted"), [("task", []), ("job", ["worker:1"]), ("cluster", ["ps:0", "worker:1"])], ids=str
)
def test_a_failure_must_restart_the_tasks_of_its_scope_and_count_against_none_of_them(tmp_path, scope, restarted):
    world = World(tmp_path, SCOPED % scope)
    world.make_ready()
    world.launcher.end("worker:0", code=3)
    for _ in range(10):
        world.supervisor.step()
        for name, state in world.states().items():
            if state == "stopping":
                world.launcher.end(name, code=0)
        world.clock.pass_(5)
    world.make_ready()
    statuses = world.supervisor.statuses
    assert {name: statuses[name].generation for name in ("ps:0", "worker:0", "worker:1", "board:0")} == {
        "ps:0": 1 + ("ps:0" in restarted), "worker:0": 2, "worker:1": 1 + ("worker:1" in restarted), "board:0": 1,
    }  # fmt: skip
    assert all(not statuses[name].failures for name in restarted)
    assert all(statuses[name].restart_reason == "restarts with worker:0" for name in restarted)
    assert len(statuses["worker:0"].failures) == 1
    world.store.close()
