"""Backups of durable parameter servers: their places, what tasks are told, and the proof that a primary may go on."""

from __future__ import annotations

import asyncio
import json

import pytest

from dtfctl.plan import backups, expand
from dtfctl.plan.diff import scaled
from dtfctl.probes import places
from dtfctl.probes.probe import Question, ask
from dtfctl.values.plan import Probe
from tests.dtfctl.fakes import plan_of

FILE = """
program: x
durability: host
hosts: {a: {address: a}, b: {address: b}, c: {address: c}}
jobs: {ps: {replicas: 2, hosts: [a, b]}, worker: 1}
"""
ADDRESSES = {
    "ps:0": "a:1", "ps:1": "b:2", "worker:0": "c:3", "ps-backup:0": "b:4", "ps-backup:1": "c:5",
    "ps-peer:0": "a:6", "ps-peer:1": "b:7", "ps-backup-peer:0": "b:8", "ps-backup-peer:1": "c:9",
}  # fmt: skip


def hosts_of(plan):
    return {task.name: task.host.name for task in plan.tasks()}


def test_each_backup_is_on_another_host_than_its_primary(tmp_path):
    found = hosts_of(plan_of(FILE, tmp_path))
    assert found["ps:0"] == "a" and found["ps:1"] == "b"
    assert found["ps-backup:0"] != "a" and found["ps-backup:1"] != "b"


def test_both_places_are_the_same_task_of_the_cluster_and_all_tasks_know_the_places(tmp_path):
    plan = plan_of(FILE, tmp_path)
    given = {task.name: expand.environment(plan, task, ADDRESSES, {}) for task in plan.tasks()}
    assert {each["DTF_DURABILITY_PLACES"] for each in given.values()} == {"ps:0=a:1/6,b:4/8;ps:1=b:2/7,c:5/9"}
    for primary, backup in (("ps:0", "ps-backup:0"), ("ps:1", "ps-backup:1")):
        own = {"DTF_DURABILITY_PLACE", "DTFCTL_TASK", "DTFCTL_HOST", "DTF_BIND", "PATH"}
        one, other = ({key: text for key, text in given[name].items() if key not in own} for name in (primary, backup))
        assert one == other
        assert (given[primary]["DTF_DURABILITY_PLACE"], given[backup]["DTF_DURABILITY_PLACE"]) == ("0", "1")
    assert "DTF_DURABILITY_PLACE" not in given["worker:0"]
    assert json.loads(given["worker:0"]["CLUSTER_SPEC"]) == {"ps": ["a:1", "b:2"], "worker": ["c:3"]}


def test_backups_follow_when_the_ps_job_is_scaled(tmp_path):
    plan = plan_of(FILE, tmp_path)
    after = scaled(plan, "ps", 4)
    found = hosts_of(after)
    assert all(found[f"ps-backup:{index}"] != found[f"ps:{index}"] for index in range(4))
    assert {name: found[name] for name in hosts_of(plan)} == hosts_of(plan)
    assert "ps-backup:1" not in hosts_of(scaled(plan, "ps", 1))
    with pytest.raises(ValueError, match="ps-backup follows ps: scale that"):
        scaled(plan, "ps-backup", 3)


def test_the_names_of_places_and_of_their_second_ports(tmp_path):
    plan = plan_of(FILE, tmp_path)
    assert [backups.other_place(plan, name) for name in ("ps:1", "ps-backup:0", "worker:0")] == [
        "ps-backup:1", "ps:0", "",
    ]  # fmt: skip
    assert backups.peer_of("ps-backup:3") == "ps-backup-peer:3"


class FakePlace:
    """Answers as a place does; `orders` are the questions that were no `state`."""

    def __init__(self, **state):
        self.state = {"role": "primary", "term": 4, "mode": "pair", **state}
        self.orders = []

    async def serve(self, reader, writer):
        question = json.loads(await reader.readline())
        if question["ask"] != "state":
            self.orders.append(question)
            self.state |= {"mode": "alone", "is_paused": False, "term": self.state["term"] + 1}
        writer.write(json.dumps({"ok": True, "state": self.state}).encode() + b"\n")
        await writer.drain()
        writer.close()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return f"127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_):
        self.server.close()
        await self.server.wait_closed()


@pytest.mark.parametrize(
    ("state", "ready"),
    [
        ({"role": "primary", "backup": {"state": "in sync"}}, ""),
        ({"role": "backup", "has_right": True}, ""),
        ({"role": "backup"}, "backup, term 4, being filled"),
        ({"is_paused": True, "reason": "it waits"}, "primary, term 4, no backup, paused: it waits"),
    ],
)
def test_a_place_is_ready_when_it_serves_or_may_begin_to_and_alive_while_it_answers(tmp_path, state, ready):
    async def run():
        task = plan_of(FILE, tmp_path).task("ps:0")
        async with FakePlace(**state) as address:
            question = Question(Probe("grpc"), task, "", {}, peer=address)
            alive = Question(Probe("grpc"), task, "", {}, peer=address, is_liveness=True)
            return await ask(question), await ask(alive)

    assert asyncio.run(run()) == (ready, "")


def test_the_words_of_a_place_name_its_megabytes_once_they_do_not_change_all_the_time():
    filled = {"bytes": 1_024_000_000, "term": 4, "mode": "pair"}
    assert str(places.PlaceState("primary", backup="in sync", **filled)) == "primary, 1,024 MB, term 4, backup in sync"
    assert str(places.PlaceState("backup", has_right=True, **filled)) == "backup, 1,024 MB, term 4, in sync"
    assert str(places.PlaceState("backup", **filled)) == "backup, term 4, being filled"
    assert str(places.PlaceState("primary", bytes=999_999, term=1)) == "primary, term 1, no backup"


LINES = [b"no json\n", b"[]\n", b'{"ok": true}\n', b'{"ok": true, "state": 3}\n', b"x" * 70000]


@pytest.mark.parametrize("line", LINES, ids=["text", "list", "no state", "a number", "too long"])
def test_what_answers_instead_of_a_place_is_described_in_words(line):
    async def run():
        async def serve(reader, writer):
            await reader.readline()
            writer.write(line)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(places.PlaceError, match=address):
            await places.ask(address, {"ask": "state"})
        server.close()
        await server.wait_closed()

    asyncio.run(run())
