"""Lines stay whole, in order, and none is lost; each has its time."""

from __future__ import annotations

import re

import pytest

from dtfctl.commands.logs import Pattern
from dtfctl.launchers import log_recorder
from dtfctl.launchers.log_recorder import ENTRY, HEADER, Recorder
from dtfctl.logs import Choice, LogReader, OneOfEach, last_lines
from dtfctl.logs.files import LINE_BYTES_MAX, Line


@pytest.fixture
def run(tmp_path, monkeypatch):
    return Run(tmp_path, monkeypatch)


class Run:
    """A run's folder, with two tasks' logs and a recorder whose clock the test sets."""

    def __init__(self, folder, monkeypatch):
        self.logs = folder / "logs"
        self.logs.mkdir()
        self.now = 1000.0
        monkeypatch.chdir(folder)
        monkeypatch.setattr(log_recorder, "now_us", lambda: int(self.now * 1e6))

    def write(self, name, data):
        with open(self.logs / f"{name}.log", "ab") as file:
            file.write(data)

    def at(self, now, name, data, max_bytes=1 << 20, count=5):
        """Writes at a time that the recorder notes."""
        self.now = now
        log_recorder.begin(str(self.logs / f"{name}.log"), max_bytes, count)
        self.write(name, data)
        Recorder().look(None)

    def reader(self, *tasks, **choice):
        return LogReader(self.logs, tasks or ["ps:0", "worker:0"], Choice(**choice))

    def past(self, *tasks, **choice):
        return shown(self.reader(*tasks, **choice).past())


def shown(lines):
    return [(line.task, line.text) for line in lines]


def timed(lines):
    return [(line.time, line.text) for line in lines]


def test_a_line_is_shown_when_it_is_whole(run):
    reader = run.reader()
    assert reader.poll() == []
    run.write("worker-0.1", b"one\ntw")
    assert shown(reader.poll()) == [("worker:0", "one")]
    run.write("worker-0.1", "o\nthree ü".encode()[:-1])
    assert shown(reader.poll()) == [("worker:0", "two")]
    run.write("worker-0.1", "ü".encode()[-1:] + b"\r\n")
    assert shown(reader.poll()) == [("worker:0", "three ü")]


def test_the_last_line_of_a_process_that_died_in_the_middle_is_shown_before_its_successors_lines(run):
    reader = run.reader()
    run.write("ps-0.9", b"first\nhal")
    assert shown(reader.poll()) == [("ps:0", "first")]
    run.write("ps-0.10", b"second\n")
    assert shown(reader.poll()) == [("ps:0", "hal"), ("ps:0", "second")]
    run.write("ps-0.10", b"third\n")
    assert shown(reader.poll()) == [("ps:0", "third")]


def test_what_is_left_at_the_end_is_shown(run):
    run.write("ps-0.1", b"no newline")
    reader = run.reader()
    assert reader.poll() == []
    assert shown(reader.poll(is_over=True)) == [("ps:0", "no newline")]
    assert reader.poll(is_over=True) == []


def test_an_endless_line_is_shown_in_pieces_and_not_kept_for_ever(run):
    run.write("ps-0.1", b"x" * (2 * LINE_BYTES_MAX + 10) + b"\n")
    pieces = [line.text for line in run.reader().poll()]
    assert sum(map(len, pieces)) == 2 * LINE_BYTES_MAX + 10


def test_a_line_has_the_time_at_which_its_end_was_written(run):
    run.at(1000, "ps-0.1", b"one\ntw")
    run.at(1005, "ps-0.1", b"o\n")
    run.at(1007.25, "ps-0.1", b"three\n")
    assert timed(run.reader().past()) == [(1000, "one"), (1005, "two"), (1007.25, "three")]


def test_tasks_are_merged_in_the_order_of_time(run):
    run.at(1, "ps-0.1", b"a\n")
    run.at(2, "worker-0.1", b"b\n")
    run.at(3, "ps-0.1", b"c\n")
    run.at(4, "worker-0.2", b"d\n")
    reader = run.reader()
    assert [line.text for line in reader.past()] == ["a", "b", "c", "d"]
    run.at(5, "worker-0.2", b"e\n")
    run.at(6, "ps-0.1", b"f\n")
    assert [(line.text, line.attempt) for line in reader.poll()] == [("e", 2), ("f", 1)]


@pytest.mark.parametrize(
    ("choice", "texts"),
    [
        ({}, "1 2 3 4 5 6"),
        ({"since": 12}, "3 4 5 6"),
        ({"since": 9}, "1 2 3 4 5 6"),
        ({"since": 99}, ""),
        ({"until": 11}, "1 2"),
        ({"since": 11, "until": 13}, "2 3 4"),
        ({"tail": 2}, "5 6"),
        ({"tail": 4}, "3 4 5 6"),
        ({"tail": 0}, ""),
        ({"tail": 99}, "1 2 3 4 5 6"),
        ({"tail": 1, "until": 12}, "3"),
        ({"pattern": re.compile("[135]")}, "1 3 5"),
        ({"pattern": re.compile("[135]"), "tail": 2}, "3 5"),
        ({"attempt": -1}, "1 2 3"),
        ({"attempt": 2}, "4 5 6"),
        ({"attempt": 7}, ""),
    ],
)
def test_lines_are_chosen_by_time_number_process_and_pattern(run, choice, texts):
    for number in range(1, 7):
        run.at(9 + number, f"ps-0.{1 if number <= 3 else 2}", f"{number}\n".encode())
    assert [text for _, text in run.past("ps:0", **choice)] == texts.split()


def test_since_a_time_in_the_middle_of_a_line_begins_with_that_line(run):
    run.at(1, "ps-0.1", b"one\nt")
    run.at(2, "ps-0.1", b"wo\nthree\n")
    assert [text for _, text in run.past(since=2)] == ["two", "three"]


def test_skipping_to_the_last_lines_goes_on_after_them(run):
    run.write("ps-0.1", b"1\n2\n3\n")
    run.write("worker-0.1", b"a\n")
    reader = run.reader(tail=2)
    assert sorted(shown(reader.past())) == [("ps:0", "2"), ("ps:0", "3"), ("worker:0", "a")]
    run.write("ps-0.1", b"4\n")
    assert shown(reader.poll()) == [("ps:0", "4")]


def test_the_last_of_many_lines_are_found_from_the_end(run):
    run.write("ps-0.1", b"".join(b"%d\n" % number for number in range(100_000)))
    assert run.past("ps:0", tail=30_000)[0] == ("ps:0", "70000")
    assert len(run.past("ps:0", tail=30_000)) == 30_000


def test_a_log_whose_head_is_gone_begins_with_a_whole_line(run):
    for now in range(100):
        run.at(now, "ps-0.1", b"".join(b"%03d %092d\n" % (now, number) for number in range(50)), 5000, 2)
    lines = list(run.reader("ps:0").past())
    assert 100 <= len(lines) <= 154
    assert [int(line.text[:3]) for line in lines] == [line.time for line in lines]
    assert lines[-1].text == f"099 {49:092d}"
    assert run.past("ps:0", tail=1000) == shown(lines)


def test_a_slow_follower_misses_lines_and_never_sees_half_of_one(run):
    reader = run.reader("ps:0")
    run.at(1, "ps-0.1", b"begin\nhalf a li", 100, 1)
    assert shown(reader.poll()) == [("ps:0", "begin")]
    for now in range(2, 50):
        run.at(now, "ps-0.1", b"ne\n" + b"line of fourteen\n" * 3 + b"li", 100, 1)
    assert {text for _, text in shown(reader.poll())} <= {"line of fourteen", "line"}


def test_a_hole_is_no_line(run):
    run.write("ps-0.1", b"one\n" + bytes(3 * LINE_BYTES_MAX) + b"two\nthree\n")
    assert [text for _, text in run.past()] == ["one", "two", "three"]


def test_without_a_recorder_the_time_is_the_files(run):
    run.write("ps-0.1", b"one\n")
    (line,) = run.reader().past()
    assert line.time == pytest.approx((run.logs / "ps-0.1.log").stat().st_mtime)
    assert HEADER.size == ENTRY.size


def test_the_last_lines_come_from_the_newest_process_that_wrote_any(run):
    run.write("worker-0.2", b"old\n")
    run.write("worker-0.10", b"a\n\nb\nc")
    run.write("worker-0.11", b"\n")
    assert last_lines(run.logs, "worker:0", 2) == ["b", "c"]
    assert last_lines(run.logs, "worker:0", 2, up_to_generation=9) == ["old"]
    assert last_lines(run.logs, "ps:0", 2) == []


def test_a_traceback_that_many_tasks_have_in_common_is_shown_once():
    once = OneOfEach()

    def line(task, text, attempt=1):
        return Line(0.0, task, attempt, text)

    def traceback(task, attempt=1, word="x"):
        texts = ("Traceback (most recent call last):", '  File "t.py", line 1', "", f"KeyError: {word}")
        return [line(task, text, attempt) for text in texts]

    a, b = traceback("worker:0"), traceback("worker:1")
    assert once([line("ps:0", "hello"), *a[:2], b[0], *a[2:]]) == [line("ps:0", "hello"), *a]
    assert once(b[1:]) == [line("worker:1", "KeyError: x (the same traceback as that of worker:0)")]
    assert [each.text for each in once(traceback("worker:0", 2))] == ["KeyError: x (the same traceback as before)"]
    assert once(traceback("worker:0", 3, "y")) == traceback("worker:0", 3, "y")
    # What is not whole is shown at the end, unless it is the beginning of another.
    other = [*a[:2], line("worker:0", "    raise")]
    assert once(other) == once(b[:2]) == [] and once([], is_over=True) == other


@pytest.mark.parametrize(("pattern", "line"), [("(a+)+$", "a" * 5000 + "!"), ("(?=a)b", "a"), ("a(?!b)", "ab")])
def test_logs_are_searched_in_time(pattern, line):
    assert Pattern().convert(pattern, None, None).search(line) is None
