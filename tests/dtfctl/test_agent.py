"""The agent's talk on a host, without ssh: the keeper it starts, the logs it sends, the probes it asks."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from dtfctl.launchers.agent import keepers, logs
from dtfctl.launchers.agent_client import agent_line, keeper_text
from dtfctl.launchers.log_recorder import ENTRY
from tests.dtfctl.fakes import AGENT
from tests.waiting import wait_until

TOKEN = "token-of-the-agents-test"


class Talk:
    """One agent; what it says, and the run folder that it makes."""

    def __init__(self, home, have):
        self.folder = home / ".local/state/dtfctl/hosts/trial"
        environment = {**os.environ, "HOME": str(home)}
        environment.pop("XDG_STATE_HOME", None)
        self.process = subprocess.Popen(
            AGENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self.heard = []
        self.process.stdin.write(agent_line())
        self.say(do="talk", run="trial", token=TOKEN, keeper=keeper_text(), have=have)
        self.greeting = self.next("host")
        self.say(do="hello", respawn={})
        self.listed = self.next("listed")

    def say(self, **request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def next(self, kind):
        """The next message of a kind; others stay for later."""
        for message in self.heard:
            if message["is"] == kind:
                self.heard.remove(message)
                return message
        while (message := self.hear())["is"] != kind:
            self.heard.append(message)
        return message

    def hear(self):
        line = self.process.stdout.readline()
        assert line, "it has ended"
        return json.loads(line)

    def start(self, script, generation=1):
        self.say(
            do="start",
            task="t:0",
            generation=generation,
            argv=["/bin/sh", "-c", script],
            environment={"PATH": os.environ["PATH"], "DTFCTL_TOKEN": TOKEN},
            working_dir="/",
            log=f"logs/t-0.{generation}.log",
            address=None,
        )

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(10)


@contextmanager
def talking(home, **have):
    talk = Talk(home, have)
    try:
        yield talk
    finally:
        talk.end()


@pytest.fixture
def home(tmp_path):
    yield tmp_path
    with talking(tmp_path) as talk:
        talk.say(do="sweep", id=1)
        assert talk.next("swept")["left"] == []
        talk.say(do="bye")
        assert talk.process.wait(10) == 0
    assert not talk.folder.exists()


def log_of(talk, until):
    """What it sends of the log, as far as the bytes `until`; offsets must follow one another."""
    data, first = b"", None
    while not data.endswith(until):
        message = talk.next("log")
        first = message["offset"] if first is None else first
        assert message["offset"] == first + len(data)
        data += base64.b64decode(message["data"])
    return first, data


def test_the_end_of_an_agent_ends_nothing_else_and_the_next_one_finds_all_again(home):
    with talking(home) as talk:
        talk.start(f"echo one; while [ ! -e {home}/go ]; do sleep 0.01; done; echo two; exit 7")
        pid = talk.next("started")["pid"]
        assert log_of(talk, b"one\n") == (0, b"one\n")
        talk.process.send_signal(signal.SIGKILL)
    os.kill(pid, 0)
    (home / "go").touch()
    with talking(home, **{"t-0.1.log": 4}) as talk:
        assert talk.listed["known"] == [["t:0", 1]]
        assert talk.next("exited")["code"] == 7
        assert log_of(talk, b"two\n") == (4, b"two\n")


def test_everything_of_a_run_is_private(home):
    with talking(home) as talk:
        assert talk.folder.stat().st_mode & 0o777 == 0o700
        assert (talk.folder / "token").stat().st_mode & 0o777 == 0o600


def test_logs_wait_for_the_launcher_and_what_the_keeper_says_does_not(home):
    with talking(home) as talk:
        talk.start(f"head -c {4 * logs.LOG_WINDOW_BYTES} /dev/zero; exit 3")
        sizes = []
        while (message := talk.hear())["is"] != "exited":
            if message["is"] == "log":
                sizes.append(len(base64.b64decode(message["data"])))
        assert message["code"] == 3 and sum(sizes) <= logs.LOG_WINDOW_BYTES + logs.LOG_CHUNK_BYTES
        talk.say(do="drain", id=5)
        talk.say(do="ack", bytes=sum(sizes))
        while (message := talk.hear())["is"] != "drained":
            sizes.append(len(base64.b64decode(message["data"])))
            talk.say(do="ack", bytes=sizes[-1])
        assert message["id"] == 5 and sum(sizes) == 4 * logs.LOG_WINDOW_BYTES


def test_a_line_comes_with_the_time_at_which_it_was_written(home):
    with talking(home) as talk:
        talk.start(f"echo one; while [ ! -e {home}/go ]; do sleep 0.01; done; echo two")
        talk.next("started")
        noted = talk.folder / "times" / "t-0.1"
        wait_until(lambda: noted.exists() and noted.stat().st_size == 3 * 16, "the recorder to note the first line")
        time.sleep(0.3)
        talk.process.send_signal(signal.SIGKILL)
    before = time.time()
    (home / "go").touch()
    wait_until(lambda: noted.stat().st_size == 4 * 16, "the recorder to note the second line")
    time.sleep(0.3)
    # It is all told much later.
    with talking(home) as talk:
        message = talk.next("log")
        assert base64.b64decode(message["data"]) == b"one\ntwo\n"
        (first, to), (second, end) = message["times"]
        assert (to, end) == (4, 8) and first / 1e6 + 0.3 < before < second / 1e6 < time.time() - 0.3


def test_of_what_the_recorder_has_not_come_to_the_time_is_now(tmp_path):
    growth = logs.Growth(str(tmp_path / "t"))
    assert [size for _, size in growth.between(0, 10)] == [10]
    with open(tmp_path / "t", "wb") as file:
        for note in ((1000, 5), (1, 0), (2, 20), (3, 30), (4, 50)):
            file.write(ENTRY.pack(*note))
        file.write(b"half")
    assert growth.between(10, 25) == [[2, 20], [3, 25]]
    assert growth.between(25, 50) == [[3, 30], [4, 50]]
    now = growth.between(50, 60)[0][0] / 1e6
    assert abs(now - time.time()) < 5


def test_clocks_can_be_compared_and_what_tasks_take_is_told(home):
    with talking(home) as talk:
        talk.say(do="clock")
        clock = talk.next("clock")
        assert abs(clock["monotonic"] - time.monotonic()) < 5 and abs(clock["wall"] - time.time()) < 5
        talk.start("sleep 1000 & exec sleep 1000")
        pid = talk.next("started")["pid"]

        def both():
            talk.say(do="usage", id=7, pids=[pid, 1 << 22])
            usages = talk.next("used")["usages"]
            return usages if usages.get(str(pid), {}).get("processes") == 2 else None

        usages = wait_until(both, "both processes")
        assert list(usages) == [str(pid)] and usages[str(pid)]["memory_bytes"] > 0


def test_what_the_launcher_has_is_given_back_to_the_disk(home):
    size = logs.LOG_KEPT_BYTES + 2 * logs.LOG_PIECE_BYTES
    with talking(home) as talk:
        talk.start(f"head -c {size} /dev/zero | tr '\\0' x")
        taken = 0
        while taken < size:
            taken += len(base64.b64decode(talk.next("log")["data"]))
            talk.say(do="ack", bytes=logs.LOG_CHUNK_BYTES, file="t-0.1.log", until=taken)
        log = talk.folder / "logs" / "t-0.1.log"
        blocks = wait_until(lambda: log.stat().st_blocks * 512 <= size - logs.LOG_PIECE_BYTES, "a shorter log")
        assert blocks and log.stat().st_size == size


def test_readiness_is_asked_there(home):
    with talking(home) as talk:
        for command, missing in (("exit 0", ""), ("exit 4", "its command exits with status 4")):
            talk.say(do="command", id=1, command=command, environment={}, working_dir="/", timeout_s=5)
            assert talk.next("checked")["missing"] == missing
        talk.say(do="command", id=2, command="sleep 50", environment=dict(os.environ), working_dir="/", timeout_s=0.05)
        assert talk.next("checked")["missing"] == "its command did not end within 0.05s"
        path = str(home / "ready")
        talk.say(do="file", id=3, path=path, age_s=100)
        assert talk.next("checked")["missing"] == f"the file {path}: No such file or directory"
        Path(path).touch()
        talk.say(do="file", id=4, path=path, age_s=100)
        assert talk.next("checked")["missing"] == ""
        os.utime(path, (1, 1))
        talk.say(do="file", id=5, path=path, age_s=100)
        assert talk.next("checked")["missing"] == f"the file {path} has not been written recently"


def test_what_is_left_of_a_run_can_be_ended_without_a_launcher(tmp_path):
    with talking(tmp_path) as talk:
        talk.start("exec sleep 1000")
        pid = talk.next("started")["pid"]
    request = {"do": "clean", "run": "trial", "token": TOKEN, "keeper": keeper_text()}
    for _ in range(2):
        done = subprocess.run(
            AGENT,
            input=agent_line() + json.dumps(request).encode() + b"\n",
            capture_output=True,
            env={"HOME": str(tmp_path)},
            timeout=30,
        )
        assert json.loads(done.stdout) == {"left": []}
    assert not talk.folder.exists() and not Path(f"/proc/{pid}").exists()


NONSENSE = [b"hello", b"{}", b'{"do": "dance"}', b'{"do": "check", "folder": 7}', b"\xff", b"[" * 60_000]


@pytest.mark.parametrize("line", NONSENSE)
def test_an_agent_that_is_asked_nonsense_says_so(line):
    done = subprocess.run(AGENT, input=agent_line() + line + b"\n", capture_output=True, timeout=30)
    assert json.loads(done.stdout)["error"].startswith("not a request: ")
    assert done.returncode == 0 and b"Traceback" not in done.stderr


def test_a_talk_goes_on_after_a_request_that_is_none(home):
    with talking(home) as agent:
        for request in ({"do": "usage", "id": 1, "pids": ["1"]}, {"do": "file", "id": 2}, {"do": "eval", "code": "1"}):
            agent.say(**request)
            assert agent.next("misunderstood")["error"]
        agent.say(do="file", id=3, path=str(home / "nothing"), age_s=1.0)
        assert agent.next("checked")["missing"].endswith("nothing: No such file or directory")


def test_a_runs_folder_vanishes_whole(tmp_path, monkeypatch):
    """Who keeps the keeper would take a folder without the note of the end for one of a run that goes on."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / keepers.LEAVING).touch()
    delete, seen = keepers.shutil.rmtree, []

    def look_and_delete(path, **options):
        seen.append(folder.exists())
        delete(path, **options)

    monkeypatch.setattr(keepers.shutil, "rmtree", look_and_delete)
    keepers.forget(str(folder))
    assert seen == [False] and list(tmp_path.iterdir()) == []
