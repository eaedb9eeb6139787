"""The Python environment of a host: made once, brought up to date when its requirements change, bounded, and what is
wrong told in pip's own words."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from dtfctl.launchers.agent_client import agent_line
from dtfctl.launchers.environment import MARK, digest
from dtfctl.values.hosts import environments, resolved
from dtfctl.values.plan import Requirements
from tests.dtfctl.fakes import AGENT, plan_of
from tests.waiting import wait_until


def a_wheel(folder: Path, name: str, version: str) -> None:
    """A package of one module, from nobody's network."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", f"version = {version!r}\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def asked(folder: Path, timeout_s: float = 100.0, venv: str = "venv", python: str = "") -> dict:
    """What the agent of a host answers."""
    request = {"do": "environment", "venv": str(folder / venv), "files": [str(folder / "requirements.txt")]}
    request |= {"python": python, "folder": str(folder), "timeout_s": timeout_s}
    done = subprocess.run(
        AGENT, input=agent_line() + json.dumps(request).encode() + b"\n", stdout=subprocess.PIPE, timeout=150
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_an_environment_is_made_once_and_again_when_its_requirements_have_changed(tmp_path):
    a_wheel(tmp_path / "wheels", "greeting", "1.0")
    a_wheel(tmp_path / "wheels", "greeting", "2.0")
    (tmp_path / "requirements.txt").write_text("--no-index\n--find-links wheels\n-c versions.txt\ngreeting\n")
    (tmp_path / "versions.txt").write_text("greeting==1.0\n")

    def version() -> str:
        words = [tmp_path / "venv/bin/python", "-c", "import greeting; print(greeting.version)"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

    assert asked(tmp_path) == {"made": True, "error": "", "command": ""}
    assert version() == "1.0"
    assert asked(tmp_path)["made"] is False
    # It is the constraints that have changed, which the file only names.
    (tmp_path / "versions.txt").write_text("greeting==2.0\n")
    assert asked(tmp_path)["made"] is True
    assert version() == "2.0"
    (tmp_path / "requirements.txt").write_text("--no-index\n--find-links wheels\nfarewell==3\n")
    failed = asked(tmp_path)
    assert failed["error"].splitlines()[0] == "pip install exits with status 1"
    assert "No matching distribution found for farewell==3" in failed["error"]
    assert failed["command"] == (
        f"cd {tmp_path} && {tmp_path}/venv/bin/python -m pip install -r {tmp_path}/requirements.txt"
    )
    # What failed is tried again.
    (tmp_path / "requirements.txt").write_text("--no-index\n--find-links wheels\ngreeting==2.0\n")
    assert asked(tmp_path) == {"made": True, "error": "", "command": ""}


def a_python(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "requirements.txt").write_text("greeting\n")
    return tmp_path


def test_what_takes_too_long_is_ended_with_all_that_it_has_started(folder):
    a_python(folder / "slow", f"sleep 1000 & echo $! > {folder}/pid; echo collecting; wait")
    failed = asked(folder, timeout_s=0.5, python=str(folder / "slow"))
    assert failed["error"].startswith("venv was not done after") and failed["error"].endswith("collecting")
    assert failed["command"] == f"cd {folder} && {folder}/slow -m venv {folder}/venv"
    pid = int((folder / "pid").read_text())
    wait_until(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text(), "its end")


def test_only_the_last_words_of_a_failure_are_told(folder):
    a_python(folder / "bad", "seq 100; echo; echo ensurepip is not available; exit 1")
    failed = asked(folder, python=str(folder / "bad"))
    told = failed["error"].splitlines()
    assert told == ["venv exits with status 1", *map(str, range(94, 101)), "ensurepip is not available"]
    assert asked(folder, python="/no/python")["error"] == "/no/python: No such file or directory"


def test_a_folder_that_holds_something_else_is_left_alone(folder):
    (folder / "venv").mkdir()
    (folder / "venv" / "thesis.tex").touch()
    assert "not a virtual environment" in asked(folder)["error"]
    assert [entry.name for entry in (folder / "venv").iterdir()] == ["thesis.tex"]
    assert asked(folder, venv="requirements.txt/venv")["error"].endswith("Not a directory")


def test_two_who_want_the_same_environment_make_it_one_after_the_other(folder):
    # Were another one at work, its folder would be there.
    script = f"mkdir {folder}/busy || exit 1; echo $3 >> {folder}/asked; sleep 0.2; rmdir {folder}/busy"
    a_python(folder / "venv/bin/python", script)
    (folder / "venv/pyvenv.cfg").touch()
    request = {"do": "environment", "venv": f"{folder}/venv", "files": [f"{folder}/requirements.txt"], "python": ""}
    request |= {"folder": str(folder), "timeout_s": 60}
    line = agent_line() + json.dumps(request).encode() + b"\n"
    both = [subprocess.Popen(AGENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    for process in both:
        process.stdin.write(line)
        process.stdin.close()
    answers = [json.loads(process.stdout.read()) for process in both]
    for process in both:
        process.stdout.close()
        process.wait()
    assert sorted(answer["made"] for answer in answers) == [False, True]
    assert all(answer["error"] == "" for answer in answers)
    assert (folder / "asked").read_text().split() == ["--version", "install"]
    assert (folder / "venv" / MARK).exists()


def test_a_requirements_file_that_is_not_there_is_named(tmp_path):
    failed = asked(tmp_path)
    assert failed["error"] == f"{tmp_path}/requirements.txt: No such file or directory"


def test_the_digest_is_that_of_all_that_is_named(tmp_path):
    for name, text in (("a.txt", "-r b.txt # the rest\n--index-url https://x\n"), ("b.txt", "-ra.txt\nnumpy\n")):
        (tmp_path / name).write_text(text)
    before = digest([str(tmp_path / "a.txt")])
    (tmp_path / "b.txt").write_text("-ra.txt\nnumpy<3\n")
    assert digest([str(tmp_path / "a.txt")]) != before


TEXT = """
program: python train.py
venv: /opt/venv
requirements: %s
hosts:
  a: {address: 10.0.0.1, working_dir: ~/w}
  b: {address: 10.0.0.2, working_dir: ~/w, venv: ~/own}
  c: {address: 10.0.0.3, working_dir: ~/w}
jobs:
  ps: {hosts: a, spare_hosts: c, requirements: {files: %s, python: python3.12}}
  worker: {hosts: [a, b]}
"""


def test_each_host_makes_what_its_tasks_and_those_that_it_may_get_need(tmp_path):
    (tmp_path / "r.txt").write_text("numpy\n")
    (tmp_path / "s.txt").write_text("tables\n")
    plan = plan_of(TEXT % ("r.txt", "[r.txt, s.txt]"), str(tmp_path))
    found = {"folder": "/home/me/w", "python": "/usr/bin/python3", "environment": {"HOME": "/home/me"}}

    def of(name):
        return environments(resolved(plan.host(name), plan, found), plan)

    both = ("/home/me/w/r.txt", "/home/me/w/s.txt")
    assert of("a") == {"/opt/venv": Requirements(both, python="python3.12")}
    assert of("b") == {"/home/me/own": Requirements(both[:1])}
    assert of("c") == {"/opt/venv": Requirements(both, python="python3.12")}
