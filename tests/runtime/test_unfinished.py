"""What killed saves leave behind is removed by the next one, and what somebody still writes is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dtf as tf
from dtf.wire import unfinished

PROGRAM = """
import os, sys
import dtf as tf
from dtf.wire import filesystems

kill_at, folder, sharded, version = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "1", int(sys.argv[4])
count = 0

def or_die(function):
    def call(*arguments, **more):
        global count
        count += 1
        if count == kill_at:
            print("dies", flush=True)
            os.kill(os.getpid(), 9)
        return function(*arguments, **more)
    return call

v = tf.get_variable("v", initializer=[1.0] * 1000)
saver = tf.train.Saver(sharded=sharded, write_version=version)
with tf.Session() as session:
    session.run(v.initializer)
    saver.save(session, folder + "/first")
    for name in ("replace", "sync", "mkdir", "rmdir", "remove"):
        setattr(filesystems, name, or_die(getattr(filesystems, name)))
    saver.save(session, folder + "/m", global_step=kill_at)
print("lives", flush=True)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def save(folder: Path, step: int, **more: object) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=[1.0] * 1000)
        session.run(v.initializer)
        tf.train.Saver(**more).save(session, str(folder / "m"), global_step=step)


def ended_token() -> str:
    """The token of a process of this host that has ended."""
    code = "from dtf.wire.unfinished import new_token; print(new_token())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("version", [1, 2])
def test_the_next_saver_must_remove_what_a_killed_one_left(sharded, version, tmp_path):
    for kill_at in range(1, 20):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(kill_at), str(tmp_path), str(int(sharded)), str(version)],
            capture_output=True,
            text=True,
        )
        if done.stdout == "lives\n":
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert kill_at > 4, "it was killed at several places"
    save(tmp_path, 100, sharded=sharded, write_version=version)
    for name in names(tmp_path):
        assert "temp" not in name and ".tmp" not in name, name
    present = names(tmp_path)
    for name in present:
        if ".data-" in name:
            assert f"{name.partition('.data-')[0]}.index" in present, name


@pytest.mark.parametrize("end", [".index.tmp", ".tempstate", ".meta.tmp", "-3.data-00000-of-00001.tempstate"])
def test_a_file_of_a_process_that_ended_must_go_and_one_that_runs_must_stay(end, tmp_path):
    ended, running, elsewhere = ended_token(), unfinished.new_token(), f"{'f' * 8}{'0' * 24}"
    for token in (ended, running, elsewhere):
        (tmp_path / f"m-7{end}{token}").write_bytes(b"half")
    (tmp_path / f"other{end}{ended}").write_bytes(b"half")
    save(tmp_path, 8)
    left = [name for name in names(tmp_path) if "temp" in name or "tmp" in name]
    assert left == sorted([f"m-7{end}{running}", f"m-7{end}{elsewhere}", f"other{end}{ended}"])


def test_a_folder_of_shards_must_stay_while_its_saver_runs(tmp_path):
    for token in (ended_token(), unfinished.new_token()):
        folder = tmp_path / f"m-7_temp_{token}"
        folder.mkdir()
        (folder / "part-00000-of-00002.index").write_bytes(b"")
    mine = tmp_path / f"m-7_temp_{ended_token()}"
    mine.mkdir()
    (mine / "notes.txt").write_text("no part of a checkpoint")
    save(tmp_path, 8, sharded=True)
    assert [name for name in names(tmp_path) if "_temp_" in name] == sorted([folder.name, mine.name])


def test_files_of_other_hosts_and_programs_must_go_when_they_are_old(tmp_path, monkeypatch):
    ends = [f".tempstate{'f' * 8}{'0' * 24}", ".tempstate12345678901234567890", f".tmp{'ab' * 8}"]
    for end in ends:
        (tmp_path / f"m-7.index{end}").write_bytes(b"half")
    save(tmp_path, 8)
    assert sum("tmp" in name or "temp" in name for name in names(tmp_path)) == 3
    for end in ends:
        os.utime(tmp_path / f"m-7.index{end}", (1, 1))
    save(tmp_path, 9)
    assert not any("tmp" in name or "temp" in name for name in names(tmp_path))
    monkeypatch.setenv(unfinished.AGE_VARIABLE, "soon")
    with pytest.raises(tf.errors.InvalidArgumentError, match=unfinished.AGE_VARIABLE):
        unfinished.is_abandoned(ends[0][-32:], 0)


def test_data_without_an_index_must_go_with_the_index_that_was_written_aside(tmp_path):
    (tmp_path / f"m-7.index.tmp{ended_token()}").write_bytes(b"an index")
    (tmp_path / "m-7.data-00000-of-00001").write_bytes(b"data")
    save(tmp_path, 6)
    (tmp_path / f"m-6.index.tmp{ended_token()}").write_bytes(b"an index")
    save(tmp_path, 8)
    assert "m-7.data-00000-of-00001" not in names(tmp_path)
    assert "m-6.data-00000-of-00001" in names(tmp_path)
    assert not any(".tmp" in name for name in names(tmp_path))
