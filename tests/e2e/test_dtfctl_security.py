"""What a cluster keeps to itself: TLS between its tasks, private folders, no open port of dtfctl's own, secrets."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys

import psutil
import pytest

import dtf as tf
from dtf.channel.client import Channel
from dtf.channel.endpoint import find_endpoint
from dtf.rpc.connection import Connection
from dtf.wire import credentials, errors
from dtfctl.control.cluster import Cluster
from dtfctl.storage.paths import ClusterPaths
from tests.certificates import environment as foreign_environment
from tests.e2e import hosts, pattern_trainer
from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.waiting import wait_until

STATUS = "/tensorflow.WorkerService/GetStatus"
PATTERN = pattern_trainer.PATTERN.tobytes().hex()

SECURED = f"""
name: trial
security: tls
program: [python, {ROOT}/tests/e2e/pattern_trainer.py]
environment: {{PYTHONPATH: "{ROOT}/runtime"}}
restart: {{backoff: 100ms}}
jobs: {{ps: 1, worker: 2}}
"""

SECRETIVE = """
name: trial
readiness: none
secrets: [PASSWORD]
jobs:
  ps: {program: "exec sleep 1000"}
  worker: {program: "exec sleep 1000"}
"""


@pytest.fixture
def cluster(tmp_path):
    cluster = CommandLine(tmp_path, SECURED)
    yield cluster
    cluster.run("down", "trial", "--timeout", "0", status=None)
    assert cluster.processes() == {}


def can_listen() -> bool:
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except OSError:
        return False
    return True


class Eavesdropper:
    """See eavesdropper.py; `prefix` is how a command is run where it is to listen."""

    def __init__(self, *prefix: str) -> None:
        self._process = subprocess.Popen(
            [*prefix, sys.executable, str(ROOT / "tests/e2e/eavesdropper.py"), PATTERN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout.readline() == "listening\n"

    def end(self) -> dict[str, int]:
        return json.loads(self._process.communicate(timeout=20)[0])


class User:
    """A shell of the user's that has the cluster's own certificate."""

    def __init__(self, cluster, monkeypatch):
        self.monkeypatch = monkeypatch
        folder = cluster.state / "trial" / "runs" / "0001" / "tls"
        files = zip(credentials.VARIABLES, ("ca.pem", "client.pem", "client.key"), strict=True)
        self.variables = {name: str(folder / file) for name, file in files}
        self.address = cluster.task("ps:0")["address"]
        self.become(self.variables)
        self._graph = tf.Graph()
        with self._graph.as_default():
            _, self._steps = pattern_trainer.build(tf)

    def become(self, variables):
        for name in credentials.VARIABLES:
            self.monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            self.monkeypatch.setenv(name, value)

    def steps(self) -> int:
        with tf.Session(f"grpc://{self.address}", graph=self._graph) as session:
            return session.run(self._steps)

    def wait_for_steps(self, count):
        def look():
            try:
                return self.steps() >= count
            except errors.FailedPreconditionError:  # not initialised yet
                return False

        wait_until(look, f"{count} steps", 40)


@pytest.mark.slow
@pytest.mark.parametrize("channel", ["on", "off"])
def test_strangers_must_be_refused_everywhere_while_training_goes_on(cluster, monkeypatch, tmp_path, channel):
    cluster.environment["DTF_CHANNEL"] = channel
    monkeypatch.setenv("DTF_CHANNEL", channel)
    cluster.run("up", "--timeout", "60")
    user = User(cluster, monkeypatch)
    user.wait_for_steps(3)
    own = credentials.from_environment()
    other = foreign_environment(tmp_path / "other", "other, run 1", "worker:5")
    for variables, words in (
        ({}, "speaks TLS only .it is ps:0 of trial, run 1.*no certificate of that cluster"),
        (other, "another cluster: it is ps:0 of trial, run 1; this process is worker:5 of other, run 1"),
    ):
        user.become(variables)
        with pytest.raises(errors.UnauthenticatedError, match=words):
            user.steps()
    user.become(user.variables)
    connection = Connection(user.address, "ps", own)
    endpoint = find_endpoint(connection.call(STATUS, b"", 5.0))
    connection.close()
    assert (endpoint is not None) == (channel == "on")
    if endpoint is not None:
        for stranger in (None, credentials.from_environment(other)):
            with pytest.raises(errors.UnavailableError):
                Channel(endpoint._replace(unix=""), "127.0.0.1", "ps", credentials=stranger)
    user.wait_for_steps(user.steps() + 5)
    assert {task["restarts"] for task in cluster.status()["tasks"]} == {0}
    cluster.wait_for_restart("worker:1", cluster.kill("worker:1"))
    user.wait_for_steps(user.steps() + 5)
    (cluster.folder / "done").touch()
    wait_until(lambda: cluster.status()["state"] == "succeeded", "the end")
    run = cluster.state / "trial" / "runs" / "0001"
    wait_until(lambda: not (run / "tls").exists() and not (run / "files").exists(), "the keys to be gone")


@pytest.mark.slow
@pytest.mark.skipif(not can_listen(), reason="may not listen to the loopback interface")
@pytest.mark.parametrize("security", ["tls", "none"])
def test_tensors_must_be_read_on_the_wire_only_without_tls(cluster, monkeypatch, security):
    cluster.write(SECURED.replace("security: tls", f"security: {security}"))
    cluster.environment["DTF_CHANNEL"] = "off"  # or nothing would pass the interface
    monkeypatch.setenv("DTF_CHANNEL", "off")
    ear = Eavesdropper()
    cluster.run("up", "--timeout", "60")
    user = User(cluster, monkeypatch)
    if security == "none":
        user.become({})
    user.wait_for_steps(10)
    heard = ear.end()
    assert heard["heard"] > 10 * 256 * 64 * 4
    assert bool(heard["found"]) == (security == "none")


@pytest.mark.slow
@pytest.mark.skipif(bool(hosts.why_not()), reason=f"no machines of their own: {hosts.why_not()}")
@pytest.mark.parametrize("security", ["tls", "none"])
def test_between_machines_the_channel_must_be_sealed_too(tmp_path, security):
    text = f"""
name: trial
security: {security}
program: [{sys.executable}, {ROOT}/tests/e2e/pattern_trainer.py]
environment: {{PYTHONPATH: "{ROOT}/runtime"}}
hosts:
  node[1-2]: {{address: "10.77.0.[1-2]", working_dir: ~/trial, bind: 0.0.0.0}}
jobs: {{ps: {{hosts: node1}}, worker: {{hosts: node2}}}}
"""
    with hosts.Laboratory(tmp_path, 2) as laboratory:
        laboratory.boot()
        cluster = CommandLine(tmp_path, text)
        cluster.prefix = laboratory.prefix
        cluster.environment["DTFCTL_SSH"] = laboratory.ssh
        client = f"{sys.executable} {ROOT}/tests/e2e/pattern_trainer.py ask {{address}}"
        cluster.write(text.replace("worker: {", f"worker: {{readiness: {{command: '{client}'}}, "))
        try:
            ear = Eavesdropper(*laboratory.prefix)
            cluster.run("up", "--timeout", "90")
            wait_until(lambda: "step 20\n" in cluster.run("logs", "worker:0").stdout, "some steps", 60)
            heard = ear.end()
            assert heard["heard"] > 10 * 256 * 64 * 4
            assert bool(heard["found"]) == (security == "none")
            home = laboratory.hosts["node1"].home
            keys = list((home / ".local/state/dtfctl/hosts").glob("*/files/ps-0/DTF_TLS_KEY"))
            assert len(keys) == (security == "tls")
            assert all(stat.S_IMODE(key.stat().st_mode) == 0o600 for key in keys)
        finally:
            cluster.run("down", "--timeout", "0", status=None)


def test_dtfctl_must_listen_nowhere_keep_its_files_private_and_tell_no_secret(tmp_path):
    cluster = CommandLine(tmp_path, SECRETIVE)
    cluster.environment["PASSWORD"] = "correct horse battery"
    try:
        cluster.run("up")
        own = [psutil.Process(pid) for pid in cluster.processes("dtfctl")]
        assert len(own) >= 2  # the supervisor and the keeper at least
        listening = [each for process in own for each in process.net_connections("inet") if each.status == "LISTEN"]
        assert listening == []
        for folder, _, files in os.walk(cluster.state / "trial"):
            assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700, folder
            for name in files:
                path = os.path.join(folder, name)
                assert not os.lstat(path).st_mode & 0o077, path
                is_known = name.startswith("store.sqlite")  # while the run lasts, to start tasks again
                with open(os.devnull if stat.S_ISSOCK(os.lstat(path).st_mode) else path, "rb") as file:
                    assert is_known or b"correct horse" not in file.read(), path
        status = cluster.run("status", "-o", "json").stdout
        told = [
            status,
            subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout,
            *(cluster.run(*words).stdout for words in (["expand"], ["logs"])),
            *("".join(process.cmdline()) for process in own),
        ]
        assert not [text for text in told if "correct horse" in text]
        worker = next(task for task in json.loads(status)["tasks"] if task["name"] == "worker:0")
        assert psutil.Process(worker["pid"]).environ()["PASSWORD"] == "correct horse battery"
    finally:
        cluster.run("down", "trial", "--timeout", "0", status=None)
    assert b"correct horse" not in (cluster.state / "trial" / "store.sqlite").read_bytes()


def test_a_state_folder_that_others_may_enter_must_be_refused(tmp_path):
    cluster = CommandLine(tmp_path, SECRETIVE)
    cluster.environment["PASSWORD"] = "x"
    (cluster.state / "trial").mkdir(parents=True)
    os.chmod(cluster.state / "trial", 0o755)
    refused = cluster.run("up", status=1)
    assert "is readable by other users" in refused.stderr and "chmod 700" in refused.stderr


@pytest.mark.slow
def test_a_supervisor_killed_when_the_run_is_just_over_leaves_no_key(cluster):
    """It is killed at its last word on record; the keeper starts another one, which finds nothing to do but this."""
    cluster.run("up", "--timeout", "60")
    folder = cluster.state / "trial" / "runs" / "0001"
    assert (folder / "tls" / "ca.key").exists()
    down = cluster.start("down")
    found = Cluster(ClusterPaths(cluster.state / "trial"))
    wait_until(lambda: not found.is_active(), "the last word", 60)
    for pid in cluster.processes("dtfctl.daemon"):
        os.kill(pid, signal.SIGKILL)
    down.wait(60)
    wait_until(lambda: cluster.processes() == {}, "the end of all processes", 60)
    assert not (folder / "tls").exists()
