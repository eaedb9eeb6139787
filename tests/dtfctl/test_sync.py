"""Which files are brought to other machines, which of them differ there, and the agent that takes them in."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile

import pytest

from dtfctl.launchers import ssh
from dtfctl.launchers.agent_client import agent_line
from dtfctl.launchers.sync import manifest, rsync_argv, way_to_bring
from dtfctl.values.engines import SshSettings
from dtfctl.values.plan import SSH, HostPlan
from tests.dtfctl.fakes import AGENT, plan_of


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "trainer.py").write_text("train")
    (folder / "run.sh").write_text("#!/bin/sh")
    (folder / "run.sh").chmod(0o755)
    (folder / "data").mkdir()
    (folder / "data" / "a.txt").write_text("a")
    (folder / "link").symlink_to("data/a.txt")
    return folder


def files_of(folder, text="program: x\ncheckpoint_dir: out\njobs: {a: 1}"):
    return manifest(plan_of(text, str(folder)))


def test_all_files_are_brought_but_what_is_ignored_or_written_by_tasks(source):
    for folder in (".git", "out", "__pycache__", "venv"):
        (source / folder).mkdir()
        (source / folder / "file").write_text("x")
    (source / "venv" / "pyvenv.cfg").write_text("")
    (source / ".gitignore").write_text("*.bin\n")
    (source / "data" / ".gitignore").write_text("secret*\n")
    (source / "data" / "secret.txt").write_text("x")
    (source / "data" / "big.bin").write_text("x")
    (source / ".env").write_text("PASSWORD=x")
    assert sorted(files_of(source)) == [
        ".gitignore",
        "data/.gitignore",
        "data/a.txt",
        "link",
        "run.sh",
        "trainer.py",
    ]


def test_an_ignore_file_of_its_own_takes_the_place_of_gits(source):
    (source / ".gitignore").write_text("data/\n")
    (source / ".dtfctlignore").write_text("*.sh\n")
    found = files_of(source)
    assert "data/a.txt" in found and "run.sh" not in found


def test_a_link_stays_one_unless_it_leads_out(source, tmp_path):
    (tmp_path / "outside.txt").write_text("far")
    (source / "far").symlink_to(tmp_path / "outside.txt")
    (source / "broken").symlink_to("/no/such")
    found = files_of(source)
    assert found["link"][3] == "data/a.txt" and found["far"][3] == "" and found["far"][0] == 3
    assert "broken" not in found


def test_a_folder_that_was_hardly_meant_is_refused(source, monkeypatch):
    monkeypatch.setattr("dtfctl.launchers.sync.FILES_MAX", 3)
    with pytest.raises(ValueError, match="more than 3 files"):
        files_of(source)


def test_rsync_is_used_where_both_have_it():
    assert way_to_bring([], True) == "none"
    assert way_to_bring(["a"], True) == "rsync"
    assert way_to_bring(["a"], False) == "tar"
    assert way_to_bring(["a\nb"], True) == "tar"


def test_rsync_goes_over_the_same_connection(tmp_path):
    host = HostPlan("h", "h", "python3", "/w", via=SSH, target="gpu-a", user="ml")
    words = rsync_argv(ssh.SshPipe(SshSettings(), host, tmp_path).rsync_target("/there"), tmp_path)
    assert words[-2:] == (f"{tmp_path}/", "gpu-a:/there/")
    remote = words[words.index("-e") + 1]
    assert f"ControlPath={ssh.socket_name(host)}" in remote and remote.endswith("-l ml")


def bring(source, folder, files, names=None):
    """One conversation with the agent, by tar; what it wanted, and its last answer."""
    process = subprocess.Popen(AGENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        request = {"do": "sync", "folder": str(folder), "files": files}
        process.stdin.write(agent_line() + json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        first = json.loads(process.stdout.readline())
        if "error" in first:
            return first, first
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for name in first["wanted"] if names is None else names:
                tar.add(source / name, name, recursive=False)
        process.stdin.write(b'{"way": "tar"}\n' + archive.getvalue())
        process.stdin.close()
        return sorted(first["wanted"]), json.loads(process.stdout.readline())


def test_only_what_differs_is_wanted(source, tmp_path):
    there = tmp_path / "there"
    assert bring(source, there, files_of(source))[0] == ["data/a.txt", "link", "run.sh", "trainer.py"]
    assert (there / "data/a.txt").read_text() == "a" and os.access(there / "run.sh", os.X_OK)
    assert bring(source, there, files_of(source))[0] == []
    (source / "trainer.py").write_text("other")
    (there / "run.sh").write_text("changed there")
    assert bring(source, there, files_of(source))[0] == ["run.sh", "trainer.py"]
    assert (there / "trainer.py").read_text() == "other"


def test_what_was_brought_is_removed_with_its_source_and_nothing_else_is(source, tmp_path):
    there = tmp_path / "there"
    bring(source, there, files_of(source))
    (there / "data" / "result").write_text("of a task")
    (there / "run.sh").write_text("changed there")
    for name in ("data/a.txt", "run.sh", "link"):
        (source / name).unlink()
    wanted, reply = bring(source, there, files_of(source))
    assert wanted == [] and sorted(reply["removed"]) == ["data/a.txt", "link"]
    assert (there / "run.sh").exists() and (there / "data" / "result").exists()


def test_nothing_is_written_outside_of_the_folder(source, tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    (tmp_path / "outside").mkdir()
    (there / "data").symlink_to(tmp_path / "outside")
    refused, _ = bring(source, there, files_of(source))
    assert "data: is a link on this host" in refused["error"] and not list((tmp_path / "outside").iterdir())
    refused, _ = bring(source, there, {"../evil": [1, 1, 0o644, ""]})
    assert "lies outside" in refused["error"]


def test_what_did_not_arrive_is_told(source, tmp_path):
    _, reply = bring(source, tmp_path / "there", files_of(source), names=["run.sh"])
    assert sorted(reply["missing"]) == ["data/a.txt", "link", "trainer.py"]
