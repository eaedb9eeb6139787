"""Every command line of the documents runs: as it stands, with a stand-in, or elsewhere, which is then named here.

`ROWS` has a row for each. Commands of one scene share a cluster. A new command in a document fails the first test until
it has a row.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from dtfctl.cli import commands as group
from dtfctl.commands.frame import Options
from dtfctl.commands.topics import TOPICS
from tests.e2e import documents
from tests.e2e.documents import ROOT, Command
from tests.ports import free_ports
from tests.waiting import wait_until

LOCAL, PLAN, BY_HAND, BRINGING, EXTRA = "local", "plan", "by hand", "bringing", "extra"
"""A running cluster; plans and expansions; tasks without dtfctl; a trainer of TensorFlow 1; packages of an extra."""


@dataclass(frozen=True)
class Elsewhere:
    """Not run here; `why` says what it needs, or the test that runs it."""

    why: str


TUTORIAL = Elsewhere("test_guide_pages: the tutorial does what it says")
CI = Elsewhere(".ci/run runs this line, or the same suite; a test cannot run the tests")
INSTALL = Elsewhere("needs a package index that has dtf; .ci/run installs from the folder")
HOSTS = Elsewhere("needs several hosts; test_durability drains and balances")
PLACES = Elsewhere("needs parameter servers on two machines; test_places and partitions of tests/durability ask them")
ROWS: tuple[tuple[str, str, str | Elsewhere], ...] = (
    (r"CONTRIBUTING.md", r".*", CI),
    (r"README.md", r"python3 -m venv .venv .*|.venv/bin/pip install .*", CI),
    (r"README.md", r"kill -9 \.\.\.", Elsewhere("the dots stand for a pid; the tutorial kills one")),
    (r"README.md|clusters/.*", r"pip install 'dtf\[\w+\]'", EXTRA),
    (r"README.md", r"kubectl .*", Elsewhere("needs a cluster of Kubernetes; test_kubernetes applies the same objects")),
    (r"README.md|clusters/.*|dtfctl/concepts.md", r"dtfctl up clusters/(?!monitoring).* --attach( .*)?", PLAN),
    (r"README.md|clusters/.*|dtfctl/concepts.md", r"dtfctl up .*(engine|slurm-).*", PLAN),
    (r"README.md", r"dtfctl expand .*", PLAN),
    (r"README.md", r"dtfctl (up clusters/digits/cluster.yaml|[a-tv-z].*|ui)", LOCAL),
    (r"README.md", r"python .*", BY_HAND),
    (r"clusters/monitoring/README.md", r"dtfctl .*|prometheus .*", LOCAL),
    (r"clusters/ray-digits/README.md", r"ray start .*|dtfctl\.ray\.run.*", Elsewhere("test_ray, with Ray's Python")),
    (r"clusters/spark-digits/README.md", r"dtfctl\.spark\.run.*", Elsewhere("test_spark, with Spark's Python")),
    (r"dtfctl/guide/tutorial.md", r"python3 -m venv venv|\. venv/bin/activate|pip install .*", INSTALL),
    (r"dtfctl/guide/tutorial.md", r".*", TUTORIAL),
    (r"dtfctl/guide/how-to.md", r"dtfctl expand .*", PLAN),
    (r"dtfctl/guide/how-to.md", r"python -m dtf.check trainer.py", BRINGING),
    (r"dtfctl/guide/how-to.md", r"dtfctl (drain|balance).*", HOSTS),
    (r"dtfctl/guide/how-to.md", r"dtfctl .*", LOCAL),
    (r"dtfctl/page.md", r"dtfctl ui.*", LOCAL),
    (r"runtime/bringing-a-tf1-trainer.md", r".*", BRINGING),
    (r"runtime/durability.md", r"(DTF_|python -m dtf\.places).*", PLACES),
    (r"tests/bench/README.md", r".*", Elsewhere("a campaign of measurements; it takes an hour")),
)
"""(the page, the whole command, where it runs); the first row that fits counts."""

STAND_INS: tuple[tuple[str, str], ...] = (
    (r"^dtfctl ui(?!.*--no-browser)", "dtfctl ui --no-browser"),
    (r"--port 8080", "--port {free}"),
    (r"~/page.sock", "{folder}/page.sock"),
    (r"^(prometheus .*)$", r"\1 --storage.tsdb.path={folder}/tsdb --web.listen-address=127.0.0.1:{free}"),
    (r"localhost:2222;localhost:2223", "localhost:{free};localhost:{free}"),
    (r"localhost:2224", "localhost:{free}"),
    (r"\bHOST:7077", "127.0.0.1:7077"),
)
"""Words of a command that stand for something of the reader's, or for a port that another program may have."""

ENDLESS: tuple[tuple[str, str], ...] = (
    (r"^dtfctl logs .* -f$", r"step"),
    (r"^dtfctl ui", r"http://127.0.0.1:\d+|unix|sock"),
    (r"^prometheus", r"Server is ready to receive web requests"),
    (r"^python -m dtf.serve", r"(?s)task:0 serves at.*task:1 serves at|task:1 serves at.*task:0 serves at"),
    (r"--job_name=ps", r"[Ss]erver"),
)
"""What runs until Ctrl-C, and the output that is waited for before."""

CHANGES = 20
"""The exit status of a plan that changes something."""

COMMANDS = documents.commands()


def place_of(command: Command) -> str | Elsewhere | None:
    for page, pattern, place in ROWS:
        if re.fullmatch(page, command.page) and re.fullmatch(pattern, command.text):
            return place
    return None


def of(place: str, page: str = ".*") -> list[Command]:
    return [each for each in COMMANDS if place_of(each) == place and re.fullmatch(page, each.page)]


def test_each_command_of_the_documents_has_a_place_where_it_runs():
    assert len(COMMANDS) > 80
    assert [str(command) for command in COMMANDS if place_of(command) is None] == []
    used = {next(row for row in ROWS if re.fullmatch(row[0], each.page) and re.fullmatch(row[1], each.text))
            for each in COMMANDS}  # fmt: skip
    assert [row for row in ROWS if row not in used] == [], "rows without a command"


SPOKEN = sorted({command.text for command in documents.spoken()})


@pytest.mark.parametrize("text", SPOKEN)
def test_each_command_in_running_text_can_be_typed(text):
    for part in text.split("|"):
        words = [word for word in shlex.split(part) if word != "..." and not re.fullmatch(r"\[.*\]", word)]
        if words[0] != "dtfctl" or len(words) == 1 or words[1].startswith("-"):
            continue
        context = click.Context(group, info_name="dtfctl", obj=Options(None, False))
        found = group.get_command(context, words[1])
        assert found is not None, words[1]
        if words[1] == "help" and len(words) > 2:
            assert words[2] in TOPICS
        # A command that is only named is right without its arguments.
        if len(words) > 2:
            found.make_context(words[1], words[2:], parent=context, resilient_parsing=words[-1].isupper())


class Shell:
    """A reader's shell: a folder with the examples, `dtfctl` and `python` on the path, a state folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "clusters", folder / "clusters")
        programs = folder / "bin"
        programs.mkdir()
        for name, begin in (("dtfctl", f"{sys.executable} -m dtfctl"), ("python", sys.executable)):
            (programs / name).write_text(f'#!/bin/sh\nexec {begin} "$@"\n')
            (programs / name).chmod(0o755)
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("DTFCTL_")},
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}:{ROOT / 'runtime'}",
            "DTFCTL_STATE_DIR": str(folder / "state"),
            "HOME": str(folder),
            "COLUMNS": "100",
        }

    def run(self, command: str, where: str = ".", timeout_s: float = 100.0) -> str:
        """Runs a command line, with its stand-ins, to its end or until its output is there. Returns the output."""
        for pattern, instead in STAND_INS:
            command = re.sub(pattern, instead, command)
        while "{free}" in command:
            command = command.replace("{free}", str(free_ports(1)[0]), 1)
        command = command.replace("{folder}", str(self.folder))
        awaited = next((output for pattern, output in ENDLESS if re.search(pattern, command)), "")
        out = self.folder / "out.txt"
        with open(out, "w") as file:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=self.folder / where, env=self.environment, stdout=file,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            try:
                if awaited:
                    self._wait_for(process, awaited, out, command)
                    os.killpg(process.pid, signal.SIGINT)
                process.wait(timeout_s)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        found = out.read_text(errors="replace")
        assert "Traceback" not in found or awaited, (command, found)
        allowed = (0, CHANGES) if "--plan" in command else (0,)
        assert awaited or process.returncode in allowed, (command, process.returncode, found)
        return found

    @staticmethod
    def _wait_for(process: subprocess.Popen[bytes], pattern: str, out: Path, command: str) -> None:
        def said() -> bool:
            found = out.read_text(errors="replace")
            assert process.poll() is None or re.search(pattern, found), (command, found)
            return re.search(pattern, found) is not None

        wait_until(said, f"{command} to say {pattern}")


@pytest.fixture
def shell(tmp_path):
    found = Shell(tmp_path)
    yield found
    for cluster in (tmp_path / "state").glob("*/"):  # some documents leave theirs up
        subprocess.run(
            ["dtfctl", "down", cluster.name, "--timeout", "0"], cwd=tmp_path, env=found.environment, timeout=100,
            capture_output=True,
        )  # fmt: skip


def long_training(shell: Shell, example: str) -> None:
    file = shell.folder / "clusters" / example / "cluster.yaml"
    text = file.read_text()
    assert "--checkpoint_dir={checkpoint_dir}" in text
    file.write_text(text.replace("--checkpoint_dir={checkpoint_dir}", "--checkpoint_dir={checkpoint_dir} "
                                 "--train_steps=1000000", 1))  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_commands_on_a_running_cluster_run(shell):
    long_training(shell, "digits")
    readme = [command.text for command in of(LOCAL, "README.md")]
    others = [command.text for command in of(LOCAL, "dtfctl/page.md|dtfctl/guide/how-to.md")]
    shell.run(readme[0])
    wait_until(lambda: "loss" in shell.run("dtfctl plot --list"), "a curve")
    for text in dict.fromkeys(readme[1:]):
        if text != "dtfctl down":
            shell.run(text)
    for text in dict.fromkeys(others):
        shell.run(text, "clusters/digits")
    shell.run("dtfctl down")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed")
def test_the_commands_of_the_monitoring_example_run(shell):
    long_training(shell, "monitoring")
    file = shell.folder / "clusters" / "monitoring" / "cluster.yaml"
    file.write_text(file.read_text().replace("127.0.0.1:9464", f"127.0.0.1:{free_ports(1)[0]}"))
    for command in of(LOCAL, "clusters/monitoring/README.md"):
        shell.run(command.text)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_commands_for_other_machines_and_engines_run_as_plans(shell):
    (shell.folder / "hosts").write_text("localhost slots=4\n")
    page = (ROOT / "clusters" / "ssh-digits" / "README.md").read_text()
    (mine,) = re.findall(r"^    # mine.yaml\n((?:    .*\n)+)", page, re.MULTILINE)
    (shell.folder / "mine.yaml").write_text(textwrap.dedent(mine))
    shutil.copy(shell.folder / "clusters" / "digits" / "cluster.yaml", shell.folder)
    seen = set()
    for command in of(PLAN):
        if command.text in seen:
            continue
        seen.add(command.text)
        text = command.text.replace("dtfctl up", "dtfctl up --plan")
        assert shell.run(text).strip() or "--to" in text, text
    assert (shell.folder / "out" / "kubernetes.yaml").exists()


@contextlib.contextmanager
def server(shell: Shell, command: str, where: str) -> Iterator[None]:
    """A parameter server that runs meanwhile."""
    with open(shell.folder / "ps.txt", "w") as file:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=shell.folder / where, env=shell.environment, stdout=file,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_the_tasks_that_are_started_by_hand_serve_and_train(shell):
    ps, worker, serve = [command.text for command in of(BY_HAND)]
    shell.run(serve)
    one, two = map(str, free_ports(2))
    ps, worker = (text.replace("2222", one).replace("2223", two) for text in (ps, worker))
    with server(shell, ps, "clusters/digits"):
        assert "accuracy" in shell.run(f"{worker} --train_steps=60", "clusters/digits")


@pytest.mark.slow
def test_the_commands_for_a_trainer_of_tensorflow_1_run(shell):
    page = (ROOT / "runtime" / "bringing-a-tf1-trainer.md").read_text()
    (example,) = re.findall(r"<!-- example: flags -->\n```python\n(.*?)```", page, re.DOTALL)
    (shell.folder / "trainer.py").write_text(example)
    one, two = free_ports(2)
    hosts = f"--ps_hosts=localhost:{one} --worker_hosts=localhost:{two} --task_index=0"
    said = ""
    with server(shell, f"python -m dtf trainer.py {hosts} --job_name=ps", "."):
        for text in dict.fromkeys(command.text for command in of(BRINGING)):
            said += shell.run(text.replace("ARGUMENTS", f"{hosts} --job_name=worker"))
    assert said.count("w is near 3: True") == 3, said


def test_each_extra_that_the_documents_install_exists():
    text = (ROOT / "pyproject.toml").read_text()
    extras = set(re.findall(r"^([\w-]+) = \[", text.partition("[project.optional-dependencies]")[2], re.MULTILINE))
    named = {match for command in COMMANDS for match in re.findall(r"dtf\[(\w+)\]", command.text)}
    assert named and named <= extras
    spoken = {match for path in documents.pages() for match in re.findall(r"dtf\[([\w-]+)\]", path.read_text())}
    assert spoken <= extras
