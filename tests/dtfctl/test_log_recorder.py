"""Logs that grow are timed and bounded, while their tasks write on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dtfctl.launchers import log_recorder
from dtfctl.launchers.log_recorder import ENTRY, HEADER, Recorder
from tests.waiting import wait_until


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "logs").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name, data):
    with open(f"logs/{name}.log", "ab") as file:
        file.write(data)


def entries(name):
    data = Path(f"times/{name}").read_bytes()
    return list(ENTRY.iter_unpack(data[HEADER.size :]))


def kept(name):
    """What a reader finds from the first byte that is kept."""
    return Path(f"logs/{name}.log").read_bytes()[entries(name)[0][1] :]


def test_each_growth_is_noted_with_its_time(folder, monkeypatch):
    log_recorder.begin(str(folder / "logs" / "w-0.1.log"), 1000, 2)
    watching = Recorder()
    for now, data in ((10_000_000, b"one\n"), (20_000_000, b"two\nthree\n")):
        monkeypatch.setattr(log_recorder, "now_us", lambda now=now: now)
        write("w-0.1", data)
        watching.look(watching.changed())
    watching.look(None)
    assert entries("w-0.1")[1:] == [(10_000_000, 4), (20_000_000, 14)]


def test_what_comes_from_another_machine_keeps_its_times(folder, monkeypatch):
    monkeypatch.setattr(log_recorder, "now_us", lambda: 5_000)
    log = str(folder / "logs" / "w-0.1.log")
    log_recorder.begin(log, 1000, 2)
    watching = Recorder()
    for times, data in (([(7_000, 4), (8_000, 8)], b"one\ntwo\n"), ([(6_000, 14)], b"three\n")):
        log_recorder.note_growth(log, times)
        write("w-0.1", data)
        watching.look(watching.changed())
    # Its clock was compared anew in between: time does not run backwards for that.
    assert entries("w-0.1")[1:] == [(7_000, 4), (8_000, 8), (8_000, 14)]
    # Told again after a death in the middle.
    log_recorder.note_growth(log, [(9_000, 14), (9_500, 20)])
    assert entries("w-0.1")[4:] == [(9_500, 20)]
    # What nobody has told of has the time of the look.
    monkeypatch.setattr(log_recorder, "now_us", lambda: 9_900)
    write("w-0.1", b"four\nfive\nsix\n")
    watching.look(watching.changed())
    assert entries("w-0.1")[5:] == [(9_900, 28)]


def test_a_long_log_loses_its_head_at_the_end_of_a_line_and_its_blocks(folder):
    log_recorder.begin("logs/w-0.1.log", 1 << 20, 2)
    watching = Recorder()
    line = b"x" * 99 + b"\n"
    for _ in range(20):
        write("w-0.1", line * 5000)
        watching.look(watching.changed())
    data = kept("w-0.1")
    assert set(data.splitlines(keepends=True)) == {line}
    assert 2 << 20 <= len(data) <= 3 << 20
    status = os.stat("logs/w-0.1.log")
    assert status.st_size == 20 * 5000 * 100
    assert status.st_blocks * 512 < 4 << 20


def test_no_line_is_cut_for_the_bounds_sake(folder):
    log_recorder.begin("logs/w-0.1.log", 100, 1)
    watching = Recorder()
    write("w-0.1", b"x" * 500)
    watching.look(None)
    assert kept("w-0.1") == b"x" * 500
    write("w-0.1", b"\nnext\n")
    watching.look(None)
    assert kept("w-0.1") == b"next\n"


def test_the_logs_of_former_processes_count_and_go_first(folder):
    for generation in (1, 2, 10):
        log_recorder.begin(f"logs/w-0.{generation}.log", 1000, 2)
    watching = Recorder()
    write("w-0.1", b"a" * 1499 + b"\n")
    write("w-0.2", (b"b" * 99 + b"\n") * 10)
    write("w-0.10", (b"c" * 99 + b"\n") * 25)
    watching.look(None)
    assert sorted(os.listdir("logs")) == ["w-0.10.log", "w-0.2.log"]
    assert len(kept("w-0.2")) == 1000
    assert 1700 <= len(kept("w-0.10")) <= 2000


def test_the_last_words_of_the_process_before_stay_however_much_the_last_one_writes(folder):
    for generation in (1, 2):
        log_recorder.begin(f"logs/w-0.{generation}.log", 1000, 1)
    watching = Recorder()
    write("w-0.1", (b"a" * 99 + b"\n") * 18 + b"the reason\n")
    for _ in range(50):
        write("w-0.2", (b"c" * 99 + b"\n") * 3)
        watching.look(None)
    assert kept("w-0.1").endswith(b"the reason\n")
    assert 600 <= len(kept("w-0.2")) <= 1000
    assert len(kept("w-0.1")) + len(kept("w-0.2")) <= 2000


def test_of_a_task_that_crashes_for_ever_the_last_logs_stay(folder, monkeypatch):
    monkeypatch.setattr(log_recorder, "PROCESSES_KEPT", 3)
    for generation in range(1, 12):
        write(f"w-0.{generation}", b"again\n")
    write("v-0.1", b"other\n")
    Recorder().look(None)
    assert sorted(os.listdir("logs")) == ["v-0.1.log", "w-0.10.log", "w-0.11.log", "w-0.9.log"]


def test_the_next_recorder_goes_on_where_one_was_killed(folder):
    log_recorder.begin("logs/w-0.1.log", 1 << 20, 1)
    write("w-0.1", b"one\n")
    Recorder().look(None)
    with open("times/w-0.1", "ab") as file:
        file.write(b"torn")
    write("w-0.1", b"two\n")
    Recorder().look(None)
    assert [size for _, size in entries("w-0.1")] == [0, 4, 8]


def test_a_damaged_file_of_times_is_begun_anew(folder):
    log_recorder.begin("logs/w-0.1.log", 1 << 20, 1)
    write("w-0.1", b"one\n")
    Path("times/w-0.1").write_bytes(b"?")
    Recorder().look(None)
    assert [size for _, size in entries("w-0.1")] == [0, 4]


def test_the_process_notes_growth_at_once_and_ends_with_its_standard_input(folder):
    command = [sys.executable, "-I", "-S", log_recorder.__file__, str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    wait_until(lambda: (folder / "times").exists(), "the recorder")
    before = time.time()
    # Its watch may begin a little later than its folder is there.
    wait_until(lambda: write("w-0.1", b"line\n") or Path("times/w-0.1").exists(), "the first line")
    wait_until(lambda: entries("w-0.1")[-1][1] == os.path.getsize("logs/w-0.1.log"), "its time")
    assert before - 0.1 <= entries("w-0.1")[-1][0] / 1e6 <= time.time()
    write("w-0.1", b"last\n")
    process.stdin.close()
    assert process.wait(10) == 0
    assert entries("w-0.1")[-1][1] == os.path.getsize("logs/w-0.1.log")
