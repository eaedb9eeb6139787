"""Lines stay whole, in order, and none is lost."""

from __future__ import annotations

import pytest

from dtfctl.errors import UnknownTask
from dtfctl.logs import LINE_BYTES_MAX, LogFollower, choose_tasks, last_lines


@pytest.fixture
def follower(tmp_path):
    return LogFollower(tmp_path, ["ps:0", "worker:0"])


def write(path, data):
    with open(path, "ab") as file:
        file.write(data)


def test_a_line_is_shown_when_it_is_whole(tmp_path, follower):
    log = tmp_path / "worker-0.1.log"
    assert follower.poll() == []
    write(log, b"one\ntw")
    assert follower.poll() == [("worker:0", "one")]
    write(log, "o\nthree ü".encode()[:-1])
    assert follower.poll() == [("worker:0", "two")]
    write(log, "ü".encode()[-1:] + b"\r\n")
    assert follower.poll() == [("worker:0", "three ü")]


def test_the_last_line_of_a_process_that_died_in_the_middle_is_shown_before_its_successors_lines(tmp_path, follower):
    write(tmp_path / "ps-0.9.log", b"first\nhal")
    assert follower.poll() == [("ps:0", "first")]
    write(tmp_path / "ps-0.10.log", b"second\n")
    assert follower.poll() == [("ps:0", "hal"), ("ps:0", "second")]


def test_what_is_left_at_the_end_is_shown(tmp_path, follower):
    write(tmp_path / "ps-0.1.log", b"no newline")
    assert follower.poll() == []
    assert follower.poll(is_last=True) == [("ps:0", "no newline")]
    assert follower.poll(is_last=True) == []


def test_an_endless_line_is_shown_in_pieces_and_not_kept_for_ever(tmp_path, follower):
    write(tmp_path / "ps-0.1.log", b"x" * (2 * LINE_BYTES_MAX + 10) + b"\n")
    pieces = [line for _, line in follower.poll()]
    assert sum(map(len, pieces)) == 2 * LINE_BYTES_MAX + 10


def test_skipping_to_the_last_lines_goes_on_after_them(tmp_path, follower):
    write(tmp_path / "ps-0.1.log", b"1\n2\n3\n")
    write(tmp_path / "worker-0.1.log", b"a\n")
    assert follower.skip_to_last(2) == [("ps:0", "2"), ("ps:0", "3"), ("worker:0", "a")]
    write(tmp_path / "ps-0.1.log", b"4\n")
    assert follower.poll() == [("ps:0", "4")]


def test_skipping_to_the_last_zero_lines_shows_none(tmp_path, follower):
    write(tmp_path / "ps-0.1.log", b"1\n")
    assert follower.skip_to_last(0) == []


def test_the_last_lines_come_from_the_newest_process_that_wrote_any(tmp_path):
    write(tmp_path / "worker-0.2.log", b"old\n")
    write(tmp_path / "worker-0.10.log", b"a\n\nb\nc")
    write(tmp_path / "worker-0.11.log", b"\n")
    assert last_lines(tmp_path, "worker:0", 2) == ["b", "c"]
    assert last_lines(tmp_path, "worker:0", 2, up_to_generation=9) == ["old"]
    assert last_lines(tmp_path, "ps:0", 2) == []


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ([], "ps:0 ps:1 worker:0"),
        (["ps"], "ps:0 ps:1"),
        (["worker:0", "ps:1"], "ps:1 worker:0"),
        (["w*"], "worker:0"),
        (["*:0"], "ps:0 worker:0"),
    ],
)
def test_tasks_are_chosen_by_name_job_or_pattern(patterns, chosen):
    assert choose_tasks(["ps:0", "ps:1", "worker:0"], patterns) == chosen.split()


def test_a_pattern_that_fits_nothing_is_refused():
    with pytest.raises(UnknownTask, match=r'"worker:7" \(there are ps:0\)'):
        choose_tasks(["ps:0"], ["worker:7"])
