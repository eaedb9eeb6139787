"""What the user wants of a running cluster: restart, stop and start of tasks, scaling, another cluster file; and what
the world does to tasks besides crashing them: they hang, or are preempted."""

from __future__ import annotations

import signal

import pytest

from dtfctl.plan import expand
from dtfctl.plan.diff import Given, between, scaled
from dtfctl.values.hosts import HostStatus
from tests.dtfctl.fakes import CLUSTER, World, addresses_of, plan_of

AVOIDED = "(cluster_spec: elastic or sparse may avoid this)"
MUST_KNOW = f"its ClusterSpec changes: ps:1 was added, worker:1 was removed {AVOIDED}"
SPARSE = CLUSTER + "cluster_spec: sparse\n"
ELASTIC = CLUSTER + "cluster_spec: elastic\n"


@pytest.fixture
def make_world(tmp_path):
    worlds = []

    def make(text=CLUSTER):
        worlds.append(World(tmp_path, text))
        worlds[-1].make_ready()
        return worlds[-1]

    yield make
    for world in worlds:
        world.store.close()


def task(world, name):
    return world.supervisor.statuses[name]


def apply(world, plan):
    changes = world.supervisor.apply(plan, addresses_of(plan), {})
    world.supervisor.step()
    return [" ".join(str(change).split()) for change in changes]


# -- single tasks


def test_a_restart_stops_the_process_gracefully_and_starts_another_at_once(make_world):
    world = make_world()
    world.supervisor.restart(["worker:0"], "restarted by dtfctl restart")
    world.supervisor.step()
    assert ("worker:0", signal.SIGTERM) in world.launcher.signals
    assert world.started()[-1] == ("worker:0", 2)
    status = task(world, "worker:0")
    assert (status.restarts, status.failures, status.restart_reason) == (1, (), "restarted by dtfctl restart")
    assert not world.supervisor.run.outcome


@pytest.mark.parametrize("ended", [{"code": 0}, {"code": 7}, {"signal_number": 9}])
def test_a_restart_works_whatever_has_become_of_the_task(make_world, ended):
    world = make_world(CLUSTER + "  board: {sidecar: true, port: none, restart: never}\n")
    name = "worker:0" if ended == {"code": 0} else "board:0"
    world.launcher.end(name, **ended)
    world.supervisor.step()
    assert task(world, name).state in ("succeeded", "failed")
    world.supervisor.restart([name], "because")
    world.supervisor.step()
    assert world.launcher.alive[name] == 2


def test_a_restart_in_the_middle_of_a_backoff_does_not_wait_for_it(make_world):
    world = make_world(CLUSTER + "restart: {backoff: 1m, backoff_max: 1h}\n")
    for _ in range(2):
        world.launcher.end("worker:0", code=3)
        world.supervisor.step()
    assert task(world, "worker:0").state == "backoff"
    world.supervisor.restart(["worker:0"], "because")
    world.supervisor.step()
    assert (world.launcher.alive["worker:0"], task(world, "worker:0").failures) == (3, ())


def test_a_task_that_is_stopped_stays_down_and_nobody_waits_for_it(make_world):
    world = make_world()
    world.supervisor.hold(["worker:1"], "stopped by dtfctl stop")
    world.supervisor.step()
    assert world.states() == {"ps:0": "running", "worker:0": "running", "worker:1": "stopped"}
    assert task(world, "worker:1").reason == "stopped by dtfctl stop: killed by SIGTERM"
    world.replace_supervisor()
    world.launcher.tell()
    world.supervisor.step()
    assert "worker:1" not in world.launcher.alive
    world.launcher.end("worker:0", code=0)
    world.supervisor.step()
    assert world.supervisor.run.outcome == "succeeded"


def test_all_workers_may_be_stopped_and_started_again(make_world):
    world = make_world()
    workers = ["worker:0", "worker:1"]
    world.supervisor.hold(workers, "stopped")
    world.supervisor.step()
    assert (world.supervisor.run.outcome, set(world.launcher.alive)) == ("", {"ps:0"})
    world.supervisor.release(workers, "started by dtfctl start")
    world.supervisor.step()
    assert set(world.launcher.alive) == {"ps:0", *workers}


def test_a_task_that_is_still_stopping_is_started_once_it_is_gone(make_world):
    world = make_world()
    world.launcher.obeys_sigterm = False
    world.supervisor.hold(["worker:0"], "stopped")
    world.supervisor.step()
    world.supervisor.release(["worker:0"], "started")
    world.supervisor.step()
    assert world.launcher.alive["worker:0"] == 1
    world.launcher.end("worker:0", code=0)
    world.supervisor.step()
    assert world.launcher.alive["worker:0"] == 2


def test_a_start_of_what_runs_changes_nothing(make_world):
    world = make_world()
    world.supervisor.release(["worker:0"], "started")
    world.supervisor.step()
    assert world.launcher.alive["worker:0"] == 1


def test_a_command_that_is_repeated_after_the_supervisors_death_is_done_once(make_world):
    world = make_world()
    world.supervisor.restart(["worker:0"], "because", "request-1")
    world.replace_supervisor()
    world.launcher.tell()
    world.supervisor.restart(["worker:0"], "because", "request-1")
    world.supervisor.step()
    world.supervisor.restart(["worker:0"], "because", "request-1")
    world.supervisor.step()
    assert world.launcher.alive["worker:0"] == 2


def test_down_in_the_middle_of_a_restart_starts_nothing(make_world):
    world = make_world()
    world.launcher.obeys_sigterm = False
    world.supervisor.restart(["worker:0"], "because")
    world.supervisor.step()
    world.supervisor.stop("enough", 0.0)
    while not world.supervisor.is_finished:
        world.clock.now = world.supervisor.step() or world.clock.now
    assert (world.launcher.alive, len(world.started())) == ({}, 3)
    assert set(world.states().values()) == {"stopped"}


# -- hanging and preemption


def test_a_task_that_hangs_is_killed_after_its_grace_period_and_that_is_a_failure(make_world):
    world = make_world()
    world.launcher.obeys_sigterm = False
    world.supervisor.note_ailing("ps:0", 1, "hung: 3 times in a row 127.0.0.1:1 is not open yet")
    world.clock.now = world.supervisor.step()
    world.supervisor.step()
    status = task(world, "ps:0")
    assert world.launcher.alive["ps:0"] == 2
    assert status.reason == (
        "hung: 3 times in a row 127.0.0.1:1 is not open yet: killed by SIGKILL; restart 1 of 5 within 10m"
    )
    assert len(status.failures) == 1


def test_a_worker_that_hangs_and_ends_well_when_asked_is_not_done(make_world):
    world = make_world()
    world.launcher.obeys_sigterm = False
    world.supervisor.note_ailing("worker:0", 1, "hung: it says nothing")
    world.supervisor.step()
    world.launcher.end("worker:0", code=0)
    world.supervisor.step()
    assert world.launcher.alive["worker:0"] == 2


def test_on_the_providers_notice_a_task_saves_and_comes_back_when_the_notice_is_over(make_world):
    world = make_world()
    world.launcher.obeys_sigterm = False
    world.supervisor.note_notice("worker:0", "preempted: the file /gone is there")
    world.supervisor.step()
    assert ("worker:0", signal.SIGTERM) in world.launcher.signals
    world.launcher.end("worker:0", code=0)
    assert world.supervisor.step() is None
    status = task(world, "worker:0")
    assert (status.state, status.failures) == ("backoff", ())
    assert status.reason == "preempted: the file /gone is there; restart not counted"
    world.supervisor.note_notice("worker:0", "")
    world.supervisor.step()
    assert world.launcher.alive["worker:0"] == 2


def test_preemptions_do_not_use_up_the_attempts(make_world):
    world = make_world(CLUSTER + "restart: {attempts: 1}\n")
    for _ in range(5):
        world.launcher.end("ps:0", signal_number=15)
        while (at := world.supervisor.step()) is not None:
            world.clock.now = at
        world.make_ready()
    assert (task(world, "ps:0").restarts, world.supervisor.run.outcome) == (5, "")


# -- another number of tasks, another file


@pytest.mark.parametrize("text", [SPARSE, ELASTIC], ids=["sparse", "elastic"])
def test_with_sparse_or_elastic_specs_workers_come_and_go_without_anybody_restarting(make_world, text):
    world = make_world(text)
    plan = world.supervisor.run.plan
    assert apply(world, scaled(plan, "worker", 4)) == [
        "start worker:2 added: worker has 4 tasks, before 2",
        "start worker:3 added: worker has 4 tasks, before 2",
    ]
    assert world.launcher.alive == dict.fromkeys(["ps:0", "worker:0", "worker:1", "worker:2", "worker:3"], 1)
    assert apply(world, scaled(world.supervisor.run.plan, "worker", 1)) == [
        "stop worker:3 removed: worker has 1 task, before 4",
        "stop worker:2 removed: worker has 1 task, before 4",
        "stop worker:1 removed: worker has 1 task, before 4",
    ]
    assert world.launcher.alive == {"ps:0": 1, "worker:0": 1}
    assert set(world.states()) == set(world.store.load()[1]) == {"ps:0", "worker:0"}
    assert world.supervisor.run.former is None


def test_an_elastic_task_is_given_all_addresses_when_it_starts_and_restarts_for_another_ps(make_world):
    world = make_world(ELASTIC)
    apply(world, scaled(world.supervisor.run.plan, "worker", 3))
    plan, addresses = world.supervisor.run.plan, world.supervisor.run.addresses
    for task in plan.tasks():
        assert len(expand.cluster_spec(plan, task, addresses)["worker"]) == 3
    must = "its ClusterSpec changes: ps:1 was added"
    assert [line for line in apply(world, scaled(plan, "ps", 2)) if line.startswith("restart")] == [
        f"restart {name} {must}" for name in ("ps:0", "worker:0", "worker:1", "worker:2")
    ]


def test_with_full_specs_everybody_must_know_of_a_new_worker_and_the_plan_says_why(make_world):
    world = make_world()
    must = "its ClusterSpec changes: worker:2 was added (cluster_spec: elastic or sparse may avoid this)"
    assert apply(world, scaled(world.supervisor.run.plan, "worker", 3)) == [
        f"restart ps:0 {must}",
        f"restart worker:0 {must}",
        f"restart worker:1 {must}",
        "start worker:2 added: worker has 3 tasks, before 2",
    ]
    assert world.launcher.alive == {"ps:0": 2, "worker:0": 2, "worker:1": 2, "worker:2": 1}


def test_the_removed_have_their_grace_period_and_another_change_waits_for_it(make_world):
    world = make_world(SPARSE)
    world.launcher.obeys_sigterm = False
    apply(world, scaled(world.supervisor.run.plan, "worker", 1))
    assert task(world, "worker:1").state == "stopping"
    with pytest.raises(ValueError, match="still stopping"):
        apply(world, scaled(world.supervisor.run.plan, "worker", 2))
    world.replace_supervisor()
    world.launcher.tell()
    world.clock.now = world.supervisor.step()
    world.supervisor.step()
    assert "worker:1" not in world.supervisor.statuses
    apply(world, scaled(world.supervisor.run.plan, "worker", 2))
    world.supervisor.step()
    status = world.supervisor.statuses["worker:1"]
    assert (status.generation, status.restarts) == (2, 0), "no log file and no record is written twice"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (CLUSTER, []),
        (
            CLUSTER.replace("program: train", "program: train --fast"),
            [f"restart {name} its command line changes" for name in ("ps:0", "worker:0", "worker:1")],
        ),
        (
            CLUSTER.replace("  worker: 2", "  worker: {replicas: 2, environment: {A: b}, working_dir: /tmp}"),
            [
                "restart worker:0 its environment changes: A; its folder changes",
                "restart worker:1 its environment changes: A; its folder changes",
            ],
        ),
        (
            CLUSTER.replace("  worker: 2", "  worker: {replicas: 2, tasks: {1: {limits: {nice: 5}, cpus: [0]}}}"),
            [
                "restart worker:1 its environment changes: MKL_NUM_THREADS, OMP_NUM_THREADS, "
                "OPENBLAS_NUM_THREADS, TF_NUM_INTRAOP_THREADS; its limits change; its cores change"
            ],
        ),
        (
            CLUSTER + "restart: {attempts: 9}\ngrace_period: 1m\n",
            [f"adopt {name} restart, grace_period: from now on" for name in ("ps:0", "worker:0", "worker:1")],
        ),
        (CLUSTER + "success: any\n", ["adopt the cluster success_rule: all -> any, from now on"]),
        (
            CLUSTER.replace("  ps: 1\n", "  ps: 2\n").replace("  worker: 2", "  worker: 1"),
            [
                f"restart ps:0 {MUST_KNOW}",
                "start ps:1 added: ps has 2 tasks, before 1",
                f"restart worker:0 {MUST_KNOW}",
                "stop worker:1 removed: worker has 1 task, before 2",
            ],
        ),
    ],
)
def test_the_plan_of_changes_says_who_must_restart_and_why(text, lines):
    old, new = plan_of(), plan_of(text)
    given = Given(old, {**addresses_of(old), "ps:1": "127.0.0.1:9"})
    changes = between(given, Given(new, {**addresses_of(new)}), lambda task: {})
    changes = [" ".join(str(change).split()) for change in changes]
    assert [line for line in changes if "success:" not in line] == lines


def test_a_changed_secret_restarts_its_task_and_is_not_shown():
    plan = plan_of(CLUSTER + "secrets: [KEY]\n")
    addresses = addresses_of(plan)
    old, new = (Given(plan, addresses, {"variable KEY": value}) for value in ("hush", "hushhush"))
    text = "\n".join(map(str, between(old, new, lambda task: {})))
    assert "its environment changes: KEY" in text
    assert "hush" not in text


def test_who_is_done_or_stopped_is_not_started_by_a_changed_file(make_world):
    world = make_world()
    world.launcher.end("worker:0", code=0)
    world.supervisor.hold(["ps:0"], "stopped")
    world.supervisor.step()
    apply(world, plan_of(CLUSTER.replace("program: train", "program: other")))
    assert world.launcher.alive == {"worker:1": 2}


@pytest.mark.parametrize(
    ("text", "job", "replicas", "words"),
    [
        (CLUSTER, "wrker", 3, "no job is called wrker (jobs: ps, worker)"),
        (CLUSTER, "worker", 0, "worker needs at least one task; to stop all of them: dtfctl stop -c trial worker"),
        (CLUSTER + "cpus: 1\n", "worker", 3, "worker has cores or GPUs dealt out: change replicas in /"),
    ],
)
def test_a_scaling_that_only_the_file_can_describe_is_refused(text, job, replicas, words):
    with pytest.raises(ValueError) as refused:
        scaled(plan_of(text), job, replicas)
    assert str(refused.value).startswith(words)


def test_new_workers_go_where_the_fewest_are_and_fixed_ports_go_on_counting():
    text = "program: x\nhosts: {a: {ssh: none, address: a}, b: {}}\njobs: {w: {hosts: [a, b], replicas: 3, port: 5000}}"
    places = scaled(plan_of(text), "w", 6).jobs[0].places
    assert [(place.host, place.port) for place in places[3:]] == [("b", 5001), ("a", 5002), ("b", 5002)]


def test_new_workers_go_to_machines_that_had_none_and_machines_that_have_none_are_idle():
    text = "program: x\nhosts: {a: {slots: 2}, b: {}, c: {slots: 1}}\njobs: {ps: {hosts: a}, w: 2}"
    plan = plan_of(text)
    assert [place.host for place in plan.jobs[1].places] == ["b", "c"]
    less = scaled(plan, "w", 1)
    assert ([host.name for host in less.hosts], [host.name for host in less.idle_hosts]) == (["a", "b"], ["c"])
    more = scaled(less, "w", 4)
    assert [place.host for place in more.jobs[1].places] == ["b", "c", "a", "b"]
    assert ([host.name for host in more.hosts], more.idle_hosts) == (["a", "b", "c"], ())
    with pytest.raises(ValueError, match="no slot is left for w:2 on a, c"):
        scaled(plan_of(text.replace("w: 2", "w: {hosts: [a, c], replicas: 2}")), "w", 4)
    with pytest.raises(ValueError, match="ps:0 runs on here, which other hosts cannot reach at 127.0.0.1"):
        jobs = "{ps: {hosts: here}, w: {hosts: [here, b], replicas: 1}}"
        scaled(plan_of("program: x\nhosts: {here: {ssh: none, slots: 2}, b: }\njobs: " + jobs), "w", 2)


ON_MACHINES = """
name: trial
program: train
cluster_spec: sparse
hosts: {a: , b: , c: }
jobs: {ps: {hosts: a}, worker: {hosts: [a, b]}}
"""


def test_a_task_that_moves_ends_where_it_is_and_begins_where_it_is_to_be(make_world):
    world = make_world(ON_MACHINES)
    assert world.launcher.where == {"ps:0": "a", "worker:0": "a", "worker:1": "b"}
    joining = {"c": HostStatus("c")}
    plan = plan_of(ON_MACHINES.replace("[a, b]", "[a, c]"))
    changes = world.supervisor.apply(plan, addresses_of(plan), {}, joining=joining)
    assert [" ".join(str(change).split()) for change in changes] == ["restart worker:1 it moves from b to c"]
    assert world.supervisor.parting() == []
    world.supervisor.step()
    assert world.launcher.where["worker:1"] == "c" and world.launcher.alive["worker:1"] == 2
    assert world.launcher.released == [("worker:1", "b")]
    assert world.supervisor.parting() == ["b"]
    # A supervisor that comes now knows that too.
    supervisor = world.replace_supervisor()
    assert supervisor.parting() == ["b"] and supervisor.statuses["worker:1"].host == "c"
    supervisor.part("b", ())
    assert world.store.load()[0].parting == () and "b" not in world.store.load()[0].hosts
    assert world.history()[-1] == "host b is released: the cluster file no longer uses it"


def test_the_port_of_a_task_that_is_no_more_is_released(make_world):
    world = make_world(SPARSE)
    apply(world, scaled(world.supervisor.run.plan, "worker", 1))
    assert world.launcher.released == [("worker:1", "localhost")]


# -- the end


def test_of_two_workers_in_a_crash_loop_the_first_is_the_cause_and_the_other_a_follower(make_world):
    world = make_world()
    while not world.supervisor.is_finished:
        for name, code in (("worker:1", 3), ("worker:0", 4)):
            world.clock.pass_(0.1)
            if world.launcher.alive.get(name) and not world.supervisor.run.outcome:
                world.launcher.end(name, code=code)
        world.clock.now = world.supervisor.step() or world.clock.now
    run = world.supervisor.run
    assert (run.outcome, run.root_cause, run.followers) == (
        "failed",
        "worker:1",
        (("worker:0", "exited with status 4"),),
    )
