"""What comes from another process is what its receiver expects, or is refused in words."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import stat
import sys
from dataclasses import asdict, replace

import pytest

from dtfctl.control.protocol import REQUESTS
from dtfctl.launchers import ssh, sync
from dtfctl.launchers.agent import protocol as of_agent
from dtfctl.launchers.agent_client import AgentClient
from dtfctl.launchers.keeper import protocol as of_keeper
from dtfctl.launchers.keeper_client import KeeperClient
from dtfctl.launchers.pipe import PipeError
from dtfctl.values.engines import SshSettings
from dtfctl.values.plan import SSH, ClusterPlan, HostPlan
from dtfctl.values.task import Exit, Life, TaskStatus, to_json
from dtfctl.wire import messages
from dtfctl.wire.messages import BadMessage, Complaints, checked, message, value_of
from dtfctl.wire.typed import shape_of
from tests.dtfctl.fakes import plan_of

PROTOCOLS = {
    "control": ("do", REQUESTS),
    "keeper": ("do", of_keeper.REQUESTS),
    "keeper's news": ("is", of_keeper.MESSAGES),
    "agent": ("do", {**of_agent.FIRST, **of_agent.REQUESTS}),
    "agent's news": ("is", of_agent.TOLD),
}
ODD_VALUES = (None, True, -1, 0, 1.5, 1e300, 2**63, 10**300, "", "x", "\0", "\ud800", [], [[]], {}, {"a": {}}, [None])


def test_a_message_names_what_is_wrong_with_it():
    def error(document):
        with pytest.raises(BadMessage) as caught:
            message(json.dumps(document).encode(), "do", REQUESTS)
        return str(caught.value)

    assert error({"do": "restart", "tasks": ["a:0"], "why": 1.5}) == 'restart: "why" must be text, not 1.5'
    assert error({"do": "stop", "tasks": ["a:0", 3], "why": ""}) == 'stop: "tasks[1]" must be text, not 3'
    assert error({"do": "start", "tasks": []}) == 'start: the key "why" is missing'
    assert error({"do": "usage", "x": 1}) == 'usage: it has the unknown key "x"'
    assert error({"do": "dance"}).startswith('"do" is "dance"; it must be one of up, down,')
    assert error({"do": "scale", "job": "w", "replicas": 10**9}).endswith("it must lie between 0 and 10000")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_odd_values_anywhere_are_refused_and_nothing_else_happens(name):
    key, shapes = PROTOCOLS[name]
    chance = random.Random(name)
    for kind in [*shapes, "unknown"]:
        names = [word for word in _words_of(shapes) if word != key]
        for _ in range(300):
            document = {word: chance.choice(ODD_VALUES) for word in chance.sample(names, min(len(names), 6))}
            try:
                assert message(json.dumps({key: kind, **document}).encode(), key, shapes)[key] == kind
            except BadMessage as error:
                assert str(error).isascii() and len(str(error)) < 600


def _words_of(shapes):
    """Keys that some message of the protocol has."""
    found = set()
    for shape in shapes.values():
        for cell in shape.__closure__ or ():
            if isinstance(cell.cell_contents, dict):
                found |= cell.cell_contents.keys()
    return sorted(found)


def test_bytes_of_any_kind_are_a_value_or_refused():
    chance = random.Random(7)
    good = json.dumps({"do": "down", "why": "é", "grace_period_s": 1.5, "list": [1, {"a": None}]}).encode()
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        with contextlib.suppress(BadMessage):
            value_of(bytes(data[: chance.randint(0, len(data))]))


@pytest.mark.parametrize("deep", [b"[" * 200_000, b'{"a":' * 200_000, b"[" * 200_000 + b"]" * 200_000])
def test_deep_nesting_is_refused(deep):
    with pytest.raises(BadMessage):
        value_of(deep)


def test_complaints_are_few_and_count_the_rest():
    now, lines = [0.0], []
    complaints = Complaints(lambda: now[0], lines.append)
    for _ in range(1000):
        complaints.tell("a\nline")
    assert lines == ["a line"] * Complaints.LINES_MAX
    now[0] = 61.0
    complaints.tell("later")
    assert lines[-2:] == ["980 more messages were refused in the meantime", "later"]


# -- dataclasses


def test_a_plan_and_a_status_have_the_shape_of_their_classes():
    plan = plan_of()
    document = json.loads(json.dumps(asdict(plan)))
    checked(json.dumps(document), shape_of(ClusterPlan))
    status = TaskStatus("worker:1", failures=(1.0,), exit=Exit(2.0, signal=9), former=Life("x", 1.0))
    checked(json.dumps(to_json(status)), shape_of(TaskStatus))


@pytest.mark.parametrize(
    "change",
    [
        {"reason": 1.5},
        {"failures": ["x"]},
        {"pid": 1.0},
        {"exit": {"at": "noon"}},
        {"exit": 1},
        {"generation": None},
        {"restarts": True},
        {"later": 1},
    ],
)
def test_a_status_with_another_type_in_it_is_refused(change):
    document = {**to_json(TaskStatus("worker:1")), **change}
    with pytest.raises(BadMessage):
        checked(json.dumps(document), shape_of(TaskStatus))


# -- other hosts


HOST = HostPlan("gpu", "10.0.0.7", "python3", "/w", via=SSH, target="gpu-a")


def talking(tmp_path, *lines):
    """An ssh whose host answers with these lines, whatever it is asked."""
    answers = tmp_path / "answers"
    answers.write_bytes(b"".join(line + b"\n" for line in lines))
    script = tmp_path / "ssh"
    # It reads what it is sent, so that nobody meets a closed pipe.
    script.write_text(f"#!{sys.executable}\nimport sys\nsys.stdin.buffer.readline(); sys.stdin.buffer.readline()\n"
                      f"sys.stdout.buffer.write(open({str(answers)!r}, 'rb').read())\n")  # fmt: skip
    script.chmod(stat.S_IRWXU)
    return AgentClient(ssh.SshPipe(SshSettings(str(script)), HOST, tmp_path / "sockets"))


@pytest.mark.parametrize(
    "line",
    [
        b"Welcome to gpu-a!",
        b"{}",
        b"[]",
        b"\xff\xfe\x00",
        b"[" * 50_000,
        b'{"error": 5}',
        b'{"left": [{"pid": "1; rm -rf /", "command": ""}]}',
        b'{"left": NaN}',
    ],
)
def test_a_host_that_answers_nonsense_is_an_error_in_words(tmp_path, line):
    host = talking(tmp_path, line)
    request = {"do": "clean", "run": "r", "token": "t", "keeper": {}}
    with pytest.raises(PipeError, match="its answer is invalid") as caught:
        asyncio.run(host.ask(request, 30))
    assert not caught.value.is_connection and "\n" not in caught.value.why


def test_what_a_hosts_own_scripts_say_first_is_skipped(tmp_path):
    """A greeting of .bashrc, or what Slurm's task prolog prints; without an end it is an error even so."""
    request = {"do": "clean", "run": "r", "token": "t", "keeper": {}}
    host = talking(tmp_path, b"Welcome to gpu-a!", b"", b"\xff | *** maintenance ***", b'{"left": []}')
    assert asyncio.run(host.ask(request, 30)) == {"left": []}
    with pytest.raises(PipeError, match="its answer is invalid .*Welcome") as caught:
        asyncio.run(talking(tmp_path, *[b"Welcome to gpu-a!"] * 1000).ask(request, 30))
    assert not caught.value.is_connection and "\n" not in caught.value.why


def test_what_an_agent_tells_as_its_error_is_told_on(tmp_path):
    with pytest.raises(PipeError, match="^/srv: No space left on device$"):
        asyncio.run(talking(tmp_path, b'{"error": "/srv: No space left on device"}').ask({"do": "check"}, 30))


@pytest.mark.parametrize("wanted", [["../../etc/shadow"], ["/etc/shadow"], ["other.py"], ["train.py", "train.py"]])
def test_a_host_gets_no_file_that_is_not_the_folders(tmp_path, wanted):
    source = tmp_path / "folder"
    source.mkdir()
    (source / "train.py").write_text("x")
    (source / "other.py").write_text("secret")
    files = {"train.py": (1, 0, 0o600, "")}
    host = talking(tmp_path, json.dumps({"folder": "/w", "wanted": wanted}).encode())
    with pytest.raises(PipeError, match="asks for"):
        asyncio.run(sync.sync(host, "/w", source, files, False))


def test_bad_messages_of_a_keeper_change_nothing_and_the_talk_goes_on(capfd):
    """A host that sends what it likes costs lines in the log, and a later message is heard."""
    lines = [
        b"hello",
        b'{"is": "exited", "task": "a:0", "generation": "1", "at": 1}',
        b'{"is": "exited", "task": "../a:0", "generation": 1, "at": 1}',
        b'{"is": "started", "task": "a:0", "generation": 1, "pid": -1, "at": 1}',
        b'{"is": "log", "file": "../../x", "offset": 0, "data": "", "times": []}',
        b'{"is": "held", "port": 1}',
        b'{"is": "listed", "known": [["a:0", 1]]}',
    ]
    heard = []

    async def scenario():
        async def serve(reader, writer):
            await reader.readline()
            writer.write(b"".join(line + b"\n" for line in lines))
            await writer.drain()
            await reader.read()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]

        async def reach():
            return await asyncio.open_connection("127.0.0.1", port)

        hello = {"do": "hello", "respawn": {}}
        client = KeeperClient(reach, hello, heard.append, of_agent.TOLD, "gpu")
        client.start()
        await asyncio.wait_for(client.wait_until_listed(), 30)
        await client.cut()
        server.close()
        await server.wait_closed()

    asyncio.run(scenario())
    assert [each["is"] for each in heard] == ["listed"]
    log = capfd.readouterr().err.splitlines()
    assert len(log) == 6 and all("invalid message from the keeper on gpu" in line for line in log)


def test_every_shape_takes_what_is_sent(tmp_path):
    """What the launcher asks for and what the keeper tells are of the declared shapes."""
    from dtfctl.launchers.base import Launch
    from dtfctl.launchers.keeper_client import signal_request, start_request

    launch = Launch("worker:1", 3, ("python", "x\udcff"), {"A": "\udcff"}, "/", "/l", "127.0.0.1", 80, files={"K": "x"})
    starts = start_request(launch, "t"), start_request(replace(launch, port=None), "t")
    for request in (*starts, signal_request("a:0", 1, 9)):
        assert message(json.dumps(request), "do", of_keeper.REQUESTS)["do"] == request["do"]


def test_no_shape_is_a_program():
    for shape in (messages.text(), messages.name()):
        with pytest.raises(BadMessage):
            shape("a\0b", "x")
    with pytest.raises(BadMessage):
        messages.name()("$(reboot)", "x")
