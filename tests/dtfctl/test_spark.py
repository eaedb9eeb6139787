"""What Spark is asked for, decided without Spark; tests/e2e/test_spark.py has the real one."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

import pytest

from dtfctl import config
from dtfctl.errors import ConfigError
from dtfctl.launchers.spark import link, probe, request

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


@pytest.mark.parametrize(("answer", "is_page"), [(b"HTTP/1.1 302 Found\r\n\r\n", True), (b"", False), (b"\0\0", False)])
def test_the_web_page_of_a_master_must_be_told_from_the_master(answer, is_page, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/java")

    def serve():
        connection, _ = listening.accept()
        with connection:
            connection.recv(100)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        master = f"spark://127.0.0.1:{listening.getsockname()[1]}"
        if is_page:
            with pytest.raises(RuntimeError, match="^a web server answers at .*; a master of Spark .* 7077$"):
                probe.probe(master)
        else:
            probe.probe(master)
        thread.join()
    with pytest.raises(RuntimeError, match="no Spark answers at 127.0.0.1:1: Connection refused"):
        probe.probe("spark://127.0.0.1:1")
    probe.probe("local[2]")


@pytest.mark.parametrize("master", ["http://127.0.0.1:8080", "127.0.0.1:7077", "locally", "spark:/x", ""])
def test_what_is_no_master_must_be_told_before_spark_starts(master):
    with pytest.raises(RuntimeError, match="is no master of Spark; masters are spark://HOST:7077"):
        probe.probe(master)


def test_a_machine_without_java_must_be_told(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(RuntimeError, match="^Spark needs Java, and there is no java: "):
        probe.probe("local[2]")


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
