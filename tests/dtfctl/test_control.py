"""The control socket, also for those who do not keep to its language."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import stat

import pytest

from dtfctl.control.client import ControlClient
from dtfctl.control.protocol import REQUESTS, plan_of
from dtfctl.control.server import ControlServer
from dtfctl.errors import NotPrivate, SupervisorUnreachable
from dtfctl.storage.paths import ClusterPaths, socket_address
from dtfctl.values.plan import to_json
from dtfctl.wire.messages import BadMessage
from tests.dtfctl.fakes import plan_of as cluster_plan

PLAN_VALUE = cluster_plan()
PLAN = json.loads(json.dumps(to_json(PLAN_VALUE)))
UP = {"do": "up", "plan": PLAN, "environment": {}, "secrets": {}, "hosts": {}}
DOWN = {"do": "down", "why": "stopped by dtfctl down", "grace_period_s": None}

heard = []


async def answer(request):
    heard.append(request)
    return {"echo": request}


@contextlib.contextmanager
def connected(paths):
    with socket.socket(socket.AF_UNIX) as raw:
        with socket_address(paths.control) as address:
            raw.connect(address)
        raw.settimeout(30)
        yield raw


def serve(tmp_path, scenario):
    """Runs `scenario(paths, server)` in a thread while the server serves."""

    async def main():
        paths = ClusterPaths(tmp_path)
        server = ControlServer(paths, globals()["answer"])
        await server.start()
        try:
            loop = asyncio.get_running_loop()
            await asyncio.wait_for(
                asyncio.to_thread(scenario, paths, lambda f: loop.call_soon_threadsafe(f, server)), 20
            )
        finally:
            await server.close()

    asyncio.run(main())


def test_a_request_is_answered(tmp_path):
    def scenario(paths, _):
        client = ControlClient.connect(paths.control)
        big = UP | {"environment": {"LONG": "x" * 200_000}}
        assert client.ask(big)["echo"] == big
        assert client.ask(DOWN) == {"echo": DOWN}
        client.close()

    serve(tmp_path, scenario)


def test_only_the_user_is_listened_to(tmp_path, monkeypatch):
    def scenario(paths, _):
        client = ControlClient.connect(paths.control)
        assert client.ask(DOWN) == {"echo": DOWN}  # it has been let in
        for module in ("control.server", "control.client"):
            monkeypatch.setattr(f"dtfctl.{module}.stranger", lambda connection: "pid 7 of uid 65534")
        assert client.ask(DOWN) == {"echo": DOWN}
        with pytest.raises(NotPrivate, match="control.sock is answered by pid 7 of uid 65534, not by your supervisor"):
            ControlClient.connect(paths.control)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other, socket_address(paths.control) as address:
            other.connect(address)
            assert other.makefile().readline() == '{"error": "pid 7 of uid 65534 may not command this cluster"}\n'
        client.close()

    serve(tmp_path, scenario)


def test_the_socket_is_the_users_alone(tmp_path):
    def scenario(paths, _):
        assert stat.S_IMODE(paths.control.stat().st_mode) == 0o600

    serve(tmp_path, scenario)


def test_a_folder_with_a_long_name_does_for_a_socket(tmp_path):
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    serve(folder, lambda paths, _: ControlClient.connect(paths.control).close())


TASKS = {"tasks": ["worker:0"], "why": "restarted by dtfctl restart"}
BAD_REQUESTS = {
    "not JSON": b"hello",
    "no object": b"[1]",
    "no verb": b"{}",
    "verb of another type": b'{"do": 5}',
    "unknown verb": b'{"do": "explode"}',
    "not UTF-8": b'{"do": "down", "why": "\xff\xfe", "grace_period_s": null}',
    "UTF-16": '{"do": "usage"}'.encode("utf-16"),
    "brackets": b"[" * 100_000,
    "open objects": b'{"do":' * 10_000,
    "float for text": {"do": "restart", **TASKS, "why": 1.5},
    "missing key": {"do": "restart", "why": "x"},
    "null for a list": {"do": "stop", **TASKS, "tasks": None},
    "text for a list": {"do": "stop", **TASKS, "tasks": "worker:0"},
    "list of numbers": {"do": "start", **TASKS, "tasks": [0]},
    "path for a task": {"do": "start", **TASKS, "tasks": ["../../x:0"]},
    "unknown key": {"do": "restart", **TASKS, "colour": "red"},
    "NaN": b'{"do": "down", "why": "x", "grace_period_s": NaN}',
    "infinity": b'{"do": "down", "why": "x", "grace_period_s": -Infinity}',
    "1e999": b'{"do": "down", "why": "x", "grace_period_s": 1e999}',
    "negative time": {"do": "down", "why": "x", "grace_period_s": -1},
    "true for a number": {"do": "down", "why": "x", "grace_period_s": True},
    "number of 5,000 digits": b'{"do": "scale", "job": "worker", "replicas": ' + b"9" * 5000 + b"}",
    "float replicas": {"do": "scale", "job": "worker", "replicas": 1.0},
    "half a surrogate": {"do": "down", "why": "\ud800", "grace_period_s": None},
    "NUL": {"do": "down", "why": "a\0b", "grace_period_s": None},
    "no plan": {"do": "up", "plan": 7, "environment": {}, "secrets": {}, "hosts": {}},
    "number in an environment": UP | {"environment": {"A": 1}},
    "host without its parts": UP | {"hosts": {"node0": {}}},
    "plan with a wrong type deep inside": UP | {"plan": {**PLAN, "jobs": [{**PLAN["jobs"][0], "places": "x"}]}},
}


@pytest.mark.parametrize("case", BAD_REQUESTS)
def test_what_is_no_request_is_answered_in_words_and_leaves_no_trace(tmp_path, case, capfd):
    bad = BAD_REQUESTS[case]
    line = bad if isinstance(bad, bytes) else json.dumps(bad).encode()

    def scenario(paths, _):
        with connected(paths) as raw:
            file = raw.makefile()
            # The conversation goes on, and others are served.
            for _ in range(2):
                raw.sendall(line + b"\n")
                answers = [json.loads(file.readline()) for _ in range(line.count(b"\n") + 1)]
                assert all(answer["error"].startswith("not a request: ") for answer in answers)
            raw.sendall(json.dumps(DOWN).encode() + b"\n")
            assert json.loads(file.readline()) == {"echo": DOWN}
        client = ControlClient.connect(paths.control)
        assert "echo" in client.ask(DOWN)
        client.close()

    heard.clear()
    serve(tmp_path, scenario)
    assert heard == [DOWN, DOWN]
    log = capfd.readouterr().err
    assert "Traceback" not in log
    assert len(log.splitlines()) == 2 * (line.count(b"\n") + 1)


def test_half_a_request_is_none(tmp_path):
    """Its sender was killed in the middle, or before the line's end."""

    def scenario(paths, _):
        for half in (json.dumps(DOWN).encode(), b'{"do": "do'):
            with connected(paths) as raw:
                raw.sendall(half)
                raw.shutdown(socket.SHUT_WR)
                assert "its line has no end" in json.loads(raw.makefile().readline())["error"]

    heard.clear()
    serve(tmp_path, scenario)
    assert heard == []


def test_a_line_without_an_end_is_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr("dtfctl.control.server.LINE_BYTES_MAX", 1 << 16)

    def scenario(paths, _):
        with connected(paths) as raw:
            with contextlib.suppress(OSError):
                raw.sendall(b"x" * (1 << 20))
            assert "longer than 65536 bytes" in json.loads(raw.makefile().readline())["error"]

    serve(tmp_path, scenario)


def test_many_bad_requests_are_few_lines_in_the_log(tmp_path, capfd):
    def scenario(paths, _):
        with connected(paths) as raw:
            file = raw.makefile()
            for _ in range(500):
                raw.sendall(b"{}\n")
                file.readline()

    serve(tmp_path, scenario)
    assert len(capfd.readouterr().err.splitlines()) == 20


def test_a_mistake_in_the_supervisor_is_answered_too(tmp_path, capfd, monkeypatch):
    async def fail(request):
        raise KeyError("worker:7")

    monkeypatch.setitem(globals(), "answer", fail)

    def scenario(paths, _):
        client = ControlClient.connect(paths.control)
        assert "this is a bug in dtfctl: KeyError: 'worker:7'" in client.ask(DOWN)["error"]
        client.close()

    serve(tmp_path, scenario)
    assert "KeyError: 'worker:7'" in capfd.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan.update(name="../x"),
        lambda plan: plan.update(security="perhaps"),
        lambda plan: plan["jobs"][0].update(name="a/b"),
        lambda plan: plan["jobs"][0]["places"][0].update(host="elsewhere"),
        lambda plan: plan["jobs"][0]["places"][0].update(port=70_000),
        lambda plan: plan["jobs"][0].update(spares=["elsewhere"]),
        lambda plan: plan["jobs"][0].update(name="worker"),
        lambda plan: plan["jobs"][0]["settings"].update(stop_signal="SIGNOTHING"),
        lambda plan: plan["jobs"][0]["settings"].update(program=[]),
        lambda plan: plan["jobs"][0]["settings"]["restart"].update(policy="sometimes"),
        lambda plan: plan["jobs"][0]["settings"]["readiness"].update(kind="telepathy"),
        lambda plan: plan["jobs"][0].update(overrides={"7": plan["jobs"][0]["settings"]}),
    ],
)
def test_a_plan_whose_parts_do_not_fit_each_other_is_refused(change):
    plan = json.loads(json.dumps(PLAN))
    assert plan_of(plan) == PLAN_VALUE
    change(plan)
    REQUESTS["up"]({**{key: value for key, value in UP.items() if key != "do"}, "plan": plan}, "")
    with pytest.raises(BadMessage):
        plan_of(plan)


def test_a_watcher_wakes_at_a_change_and_not_without_one(tmp_path):
    def scenario(paths, in_loop):
        client = ControlClient.connect(paths.control)
        client.send({"do": "watch"})
        client.wait_for_change(5)
        assert client._line(0.1) is None
        in_loop(ControlServer.publish)
        assert client._line(5) is not None
        client.close()

    serve(tmp_path, scenario)


def test_nobody_there_is_no_error_but_nobody(tmp_path):
    assert ControlClient.connect(tmp_path / "control.sock") is None


def test_a_supervisor_that_goes_away_is_an_error_in_words(tmp_path):
    ours, theirs = socket.socketpair()
    client = ControlClient(ours)
    theirs.close()
    with pytest.raises(SupervisorUnreachable, match="closed the connection"):
        client.ask(DOWN)
    client.close()
