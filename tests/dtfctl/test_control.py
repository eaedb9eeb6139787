"""The control socket, also for those who do not keep to its language."""

from __future__ import annotations

import asyncio
import json
import socket
import stat

import pytest

from dtfctl.control import ControlServer
from dtfctl.control_client import ControlClient
from dtfctl.errors import NotPrivate, SupervisorUnreachable
from dtfctl.paths import ClusterPaths, socket_address


async def answer(request):
    return {"echo": request}


def serve(tmp_path, scenario):
    """Runs `scenario(paths, server)` in a thread while the server serves."""

    async def main():
        paths = ClusterPaths(tmp_path)
        server = ControlServer(paths, answer)
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
        assert client.ask({"do": "up", "plan": "x" * 200_000})["echo"]["plan"] == "x" * 200_000
        assert client.ask({"do": "down"}) == {"echo": {"do": "down"}}
        client.close()

    serve(tmp_path, scenario)


def test_only_the_user_is_listened_to(tmp_path, monkeypatch):
    def scenario(paths, _):
        client = ControlClient.connect(paths.control)
        assert client.ask({"do": "up"}) == {"echo": {"do": "up"}}  # it has been let in
        for module in ("control", "control_client"):
            monkeypatch.setattr(f"dtfctl.{module}.stranger", lambda connection: "pid 7 of uid 65534")
        assert client.ask({"do": "down"}) == {"echo": {"do": "down"}}
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


@pytest.mark.parametrize("line", [b"hello\n", b"[1]\n", b"{}\n", b'{"do": 5}\n', b"\xff\xfe\n", b"{" * 10_000 + b"\n"])
def test_who_speaks_nonsense_is_told_so_and_the_others_are_served(tmp_path, line):
    def scenario(paths, _):
        with socket.socket(socket.AF_UNIX) as raw:
            with socket_address(paths.control) as address:
                raw.connect(address)
            raw.sendall(line)
            assert json.loads(raw.makefile().readline())["error"].startswith("not a request")
        client = ControlClient.connect(paths.control)
        assert "echo" in client.ask({"do": "up"})
        client.close()

    serve(tmp_path, scenario)


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
    with pytest.raises(SupervisorUnreachable, match="has gone away"):
        client.ask({"do": "up"})
    client.close()
