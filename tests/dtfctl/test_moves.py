"""Which steps empty a host or spread parameter servers, which tasks restart for them, and what a file changes then."""

from __future__ import annotations

import random

import pytest

from dtfctl.plan import backups, moves
from dtfctl.plan.diff import Given, between
from dtfctl.plan.moves import Act, Held
from tests.dtfctl.fakes import plan_of

FILE = """
program: x
durability: host
cluster_spec: elastic
hosts: {a: {address: a}, b: {address: b}, c: {address: c, slots: 3}, d: {address: d}}
jobs: {ps: {replicas: 2, hosts: [a, b]}, worker: {replicas: 2, hosts: [a, c, d]}}
"""
GB = 10**9


def hosts_of(plan):
    return {task.name: task.host.name for task in plan.tasks()}


def text_of(steps):
    return [" ".join(filter(None, (str(step.act), step.task, step.host))) for step in steps]


def addresses_of(plan, ports=1000):
    found = {}
    for number, task in enumerate(plan.tasks()):
        found[task.name] = f"{task.host.address}:{ports + number}"
        if backups.is_place(plan, task):
            found[backups.peer_of(task.name)] = f"{task.host.address}:{ports + 500 + number}"
    return found


@pytest.fixture
def plan(tmp_path):
    return moves.moved(plan_of(FILE, tmp_path), {"ps-backup:0": "b", "ps-backup:1": "a"})


@pytest.mark.parametrize(
    ("wanted", "steps"),
    [
        ({"ps:0": "a"}, []),
        ({"ps-backup:0": "d"}, ["move ps-backup:0 d"]),
        ({"ps:0": "d"}, ["promote ps-backup:0", "move ps:0 d", "promote ps:0"]),
        ({"worker:0": "d"}, ["move worker:0 d"]),
    ],
)
def test_a_place_that_serves_never_stops_before_the_other_one_serves(plan, wanted, steps):
    assert hosts_of(plan)["ps-backup:0"] == "b"
    assert text_of(moves.moves_of(plan, wanted, {})) == steps


def test_a_drained_host_has_no_task_and_no_ps_has_both_places_on_one_host(plan):
    held = {"ps:0": Held("ps:0", GB), "ps:1": Held("ps-backup:1", GB)}
    for host in "abcd":
        steps = moves.drained(plan, host, held)
        after, _ = moves.after(plan, held, steps)
        found = hosts_of(after)
        assert host not in found.values()
        assert all(found[f"ps:{index}"] != found[f"ps-backup:{index}"] for index in range(2))
        serving = dict(held)
        for step in steps:
            if step.act == Act.PROMOTE:
                serving[f"ps:{step.task[-1]}"] = Held(step.task)
            else:
                assert step.task not in {each.primary for each in serving.values()}, f"{step.task} serves and moves"


def test_a_drained_host_gets_no_tasks_any_more_and_is_idle(plan):
    after = moves.moved(plan, {"ps:0": "d", "worker:0": "d", "ps-backup:1": "c"}, ["a"])
    assert all("a" not in (*job.candidates, *job.spares) for job in after.jobs)
    assert [host.name for host in after.idle_hosts] == ["a"]


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ({"ps:0": "x"}, "no host is called x"),
        ({"ps:9": "a"}, "no task is called ps:9"),
        ({"ps:0": "b"}, "ps-backup:0, the other place of ps:0, is on b"),
        ({"ps:1": "c", "worker:0": "c", "worker:1": "c", "ps:0": "c"}, "no slot is left for ps:0 on c"),
    ],
)
def test_what_cannot_be_moved_is_said_in_words(plan, tasks, words):
    with pytest.raises(ValueError, match=words):
        moves.moved(plan, tasks)


def test_cores_ports_and_full_hosts_are_reasons_not_to_move(tmp_path):
    with pytest.raises(ValueError, match="cores or GPUs dealt out"):
        moves.moved(plan_of("program: x\nhosts: {a: {address: a, cpus: 4}, b: {address: b, cpus: 4}}\n"
                            "jobs: {ps: {replicas: 1, hosts: [a]}, worker: {cpus: 1, hosts: [b]}}",
                            tmp_path), {"worker:0": "a"})  # fmt: skip
    fixed = "jobs: {ps: {port: 2222, replicas: 1, hosts: [a]}, worker: {port: 2222, hosts: [b]}}"
    with pytest.raises(ValueError, match="port 2222 for ps:0 on b is another task's"):
        moves.moved(plan_of(f"program: x\nhosts: {{a: {{address: a}}, b: {{address: b}}}}\n{fixed}", tmp_path),
                    {"ps:0": "b"})  # fmt: skip
    two = plan_of("program: x\ndurability: host\nhosts: {a: {address: a}, b: {address: b}}\njobs: {ps: 1, worker: 1}",
                  tmp_path)  # fmt: skip
    with pytest.raises(ValueError, match="its other place is on b; add a host"):
        moves.drained(two, "a", {})


def test_balance_spreads_what_serves_and_what_is_kept_and_then_leaves_it(plan):
    random_of = random.Random(5)
    for _ in range(50):
        held = {
            f"ps:{index}": Held(random_of.choice([f"ps:{index}", f"ps-backup:{index}"]), random_of.randrange(3 * GB))
            for index in range(2)
        }
        steps = moves.balanced(plan, held)
        after, now = moves.after(plan, held, steps)
        found = hosts_of(after)
        assert all(found[f"ps:{index}"] != found[f"ps-backup:{index}"] for index in range(2))
        assert moves.balanced(after, now) == ()
        squares = [sum(serving**2 + every**2 for serving, every in moves.loads(*state).values())
                   for state in ((plan, held), (after, now))]  # fmt: skip
        assert squares[1] <= squares[0]


def test_balance_of_many_ps_on_two_hosts_uses_the_hosts_that_were_added(tmp_path):
    few = FILE.replace("replicas: 2, hosts: [a, b]", "replicas: 8, hosts: [a, b]")
    plan = plan_of(few.replace("slots: 3", "slots: 30"), tmp_path)
    held = {f"ps:{index}": Held(f"ps:{index}", GB) for index in range(8)}
    after, now = moves.after(plan, held, moves.balanced(plan, held))
    serving = [value for value, _ in moves.loads(after, now).values()]
    assert sorted(serving) == [2 * GB] * 4
    assert sorted(every for _, every in moves.loads(after, now).values()) == [4 * GB] * 4


def test_only_the_place_that_moves_restarts(plan):
    wanted = moves.moved(plan, {"ps-backup:0": "d"})
    old, new = addresses_of(plan), addresses_of(plan) | {
        "ps-backup:0": "d:7", backups.peer_of("ps-backup:0"): "d:8"
    }  # fmt: skip
    found = between(Given(plan, old), Given(wanted, new), lambda task: {})
    assert [(str(change.verb), change.task) for change in found] == [("restart", "ps-backup:0")]
    other_port = addresses_of(plan) | {"ps:1": "b:9"}
    found = between(Given(plan, old), Given(plan, other_port), lambda task: {})
    assert [change.task for change in found] == ["ps:1"]


def test_the_same_file_once_more_leaves_moved_places_where_they_are(plan, tmp_path):
    moved = moves.moved(plan, {"ps-backup:0": "d", "ps:1": "d"})
    assert hosts_of(backups.kept(moved, plan))["ps-backup:0"] == "d"
    assert hosts_of(backups.kept(moved, plan))["ps:1"] == "d"
    without = plan_of(FILE.replace(", d: {address: d}", "").replace(", d]", "]"), tmp_path)
    found = hosts_of(backups.kept(moved, without))
    assert found["ps:0"] == "a" and found["ps-backup:0"] in ("b", "c")
    assert found["ps-backup:1"] == "a" and found["ps:1"] in ("b", "c")


def test_a_file_that_names_neither_host_of_a_ps_is_refused(plan, tmp_path):
    moved = moves.moved(plan, {"ps-backup:1": "d"})
    assert {hosts_of(moved)["ps:1"], hosts_of(moved)["ps-backup:1"]} == {"b", "d"}
    two = plan_of("program: x\ndurability: host\nhosts: {a: {address: a}, c: {address: c}}\n"
                  "jobs: {ps: 2, worker: 1}", tmp_path)  # fmt: skip
    with pytest.raises(ValueError, match="both places of ps:1 would move at once"):
        backups.kept(moved, two)
