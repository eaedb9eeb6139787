"""The guides that `dtfctl help` reads: every command in them exists, and the tutorial does what it says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys

import click
import pytest

from dtfctl.cli import commands
from dtfctl.commands.frame import Options
from dtfctl.commands.topics import GUIDES, TOPICS
from dtfctl.config import parse
from tests.e2e.dtfctl_cluster import ROOT, CommandLine

FOLDER = ROOT / "dtfctl" / "guide"
PAGES = sorted(FOLDER.glob("*.md"))


def typed(text):
    """The command lines of a page: after `$` in console blocks, and `dtfctl ...` in running text."""
    lines = re.findall(r"^\$ (.+)$", text, re.MULTILINE)
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    lines += [" ".join(words.split()) for words in re.findall(r"`(dtfctl\s[^`]+)`", prose)]
    return list(dict.fromkeys(lines))


LINES = [(page.stem, line) for page in PAGES for line in typed(page.read_text())]


def test_each_guide_is_a_topic_of_help():
    assert set(GUIDES) == {page.stem for page in PAGES} <= TOPICS.keys()
    for name in GUIDES:
        assert TOPICS[name]() == (FOLDER / f"{name}.md").read_text().rstrip()


@pytest.mark.parametrize("page, line", LINES, ids=[f"{page}: {line}" for page, line in LINES])
def test_each_command_of_a_guide_can_be_typed(page, line):
    for part in re.findall(r"dtfctl [^)|]*", line):
        words = shlex.split(part.replace("$(", ""))[1:]
        if words == []:
            continue
        context = click.Context(commands, info_name="dtfctl", obj=Options(None, False))
        found = commands.get_command(context, words[0])
        assert found is not None, words[0]
        if words[0] == "help" and len(words) > 1 and words[1] != "key":
            assert "-".join(words[1:]) in TOPICS or commands.get_command(context, words[1])
        try:
            found.make_context(words[0], words[1:], parent=context)
        except click.exceptions.Exit:
            assert "--help" in words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_piece_of_a_cluster_file_in_a_guide_is_one(page):
    for text in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL):
        begin = "program: x\ncheckpoint_dir: c\n" + ("" if "jobs:" in text else "jobs: {worker: 1}\n")
        parse(begin + text, page.name, ROOT)


def code_with_joined_strings():
    """All code as one text, in which a literal that goes on in the next line is one piece."""
    files = [*(ROOT / "dtfctl").rglob("*.py"), *(ROOT / "runtime" / "dtf").rglob("*.py")]
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(file.read_text() for file in files))


def quoted_messages(text):
    """Words of a symptom or an answer: in backquotes, more than one, and neither a command nor a piece of a file."""
    for quoted in re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        words = " ".join(quoted.split())
        if " " in words and not re.match(r"(--\w+|dtfctl|df|pip|python|systemctl|loginctl|up|stop) |[\w.]+: ", words):
            yield words


@pytest.mark.parametrize("page", ["troubleshooting", "faq"])
def test_each_message_that_a_symptom_quotes_is_in_the_code(page):
    code = code_with_joined_strings()
    text = (FOLDER / f"{page}.md").read_text()
    messages = list(quoted_messages(text))
    assert len(messages) >= 8 or page == "faq"
    for message in messages:
        for piece in re.split(r"\.\.\.|\b[A-Z_]{4,}\b|[()]", message):
            assert piece.strip() in code, message


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_service_of_the_guide(tmp_path):
    (unit,) = re.findall(r"```ini\n(.*?)```", (FOLDER / "how-to.md").read_text(), re.DOTALL)
    program = tmp_path / "venv" / "bin" / "dtfctl"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "training.service").write_text(unit.replace("%h", str(tmp_path)))
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", "--man=no", str(tmp_path / "training.service")],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_the_tutorial_does_what_it_says(tmp_path):
    cluster = CommandLine(tmp_path)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "dtfctl").write_text(f'#!/bin/sh\nexec {sys.executable} -m dtfctl "$@"\n')
    (folder / "dtfctl").chmod(0o755)
    path = f"{folder}:{cluster.environment['PATH']}"
    environment = {**cluster.environment, "PATH": path, "PYTHONPATH": f"{ROOT}:{ROOT / 'runtime'}", "COLUMNS": "100"}
    text = (FOLDER / "tutorial.md").read_text().partition("## 2.")[2]
    script = "set -e\n" + "\n".join(re.findall(r"^\$ (.+)$", text, re.MULTILINE))
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "killed by SIGKILL" in done.stdout and "loss" in done.stdout
    assert "first succeeded after" in done.stderr and "checkpoint: " in done.stderr
