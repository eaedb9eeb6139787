"""What Spark is asked for, decided without Spark; tests/e2e/test_spark.py has the real one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dtfctl import config
from dtfctl.errors import ConfigError
from dtfctl.launchers.spark import link, request

FILE = """
program: x
engine: {spark: {nodes: 3, spares: 1, master: "spark://host:7077", conf: {spark.executor.memory: 2g}}}
jobs:
  ps: 1
  worker: {replicas: 3, cpus: 2}
"""


def plan_of(*settings, text=FILE):
    return config.parse(text, "cluster.yaml", Path("/folder"), settings)


def test_an_executor_gets_the_cores_of_its_tasks_and_one_slot():
    properties = request.properties(request.settled(plan_of()))
    cores: dict[str, int] = {}
    for task in plan_of().tasks():
        cores[task.host.name] = cores.get(task.host.name, 0) + max(1, len(task.place.cpus))
    most = str(max(cores.values()))
    assert properties["spark.executor.cores"] == properties["spark.task.cpus"] == most
    assert properties["spark.cores.max"] == str(3 * int(most))
    assert properties["spark.executor.memory"] == "2g"


def test_properties_of_the_file_replace_dtfctls():
    plan = plan_of(text=FILE.replace("spark.executor.memory: 2g", "spark.task.cpus: 1"))
    assert request.properties(request.settled(plan))["spark.task.cpus"] == "1"


def test_the_program_that_gives_executors_is_named_by_its_socket(monkeypatch):
    monkeypatch.setenv(request.SOCKET_VARIABLE, "/tmp/socket")
    assert request.program(request.settled(plan_of())).socket == "/tmp/socket"


def test_spares_must_leave_a_host():
    with pytest.raises(ConfigError, match="must leave a host"):
        plan_of("engine.spark.spares=3")


def test_frames_must_arrive_as_they_were_sent_and_others_be_refused():
    async def read(data):
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await link.receive(reader)

    sent = {"id": 1, "values": ["a", 2.0]}
    assert asyncio.run(read(link.frame(sent, b"\0\xff"))) == (sent, b"\0\xff")
    for wrong in (b"\xff" * 8, b"\0\0\0\2\0\0\0\0[]", b"\0\0\0\1\0\0\0\0{"):
        with pytest.raises(link.LinkError):
            asyncio.run(read(wrong))


def test_a_proof_is_of_one_side_and_one_connection():
    given = link.proof("secret", "driver", "a", "b")
    assert link.is_proof(given, "secret", "driver", "a", "b")
    assert not link.is_proof(given, "secret", "executor", "a", "b")
    assert not link.is_proof(given, "secret", "driver", "ab", "")
    assert not link.is_proof(given, "other", "driver", "a", "b")
    assert not link.is_proof(None, "secret", "driver", "a", "b")
