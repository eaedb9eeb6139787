"""What a primary reads of its backup's acknowledgements: pieces, silence, and the end."""

import socket

import pytest

from dtf.places import acknowledgements, frames
from dtf.places.acknowledgements import Acknowledgements


class _Read:
    """A connection whose reading is done by the test."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(acknowledgements.time, "monotonic", lambda: self.now)
        self.own, self.peer = socket.socketpair()
        self.numbers, self.ends = [], []
        self.read = Acknowledgements(
            self.own, 2.0, lambda number, is_revoked: self.numbers.append((number, is_revoked)), self.ends.append
        )

    def sent(self, data):
        self.peer.sendall(data)
        self.read.read()


@pytest.fixture
def connection(monkeypatch):
    made = _Read(monkeypatch)
    yield made
    made.own.close()
    made.peer.close()


def _packed(*numbers):
    return b"".join(frames.ACKNOWLEDGEMENT.pack(each) for each in numbers)


def test_a_number_that_comes_byte_by_byte_counts_when_it_is_whole(connection):
    for byte in _packed(7, 9):
        connection.sent(bytes([byte]))
    assert connection.numbers == [(7, False), (9, False)]


def test_of_several_numbers_the_highest_counts(connection):
    connection.sent(_packed(3, 4, 5))
    assert connection.numbers == [(5, False)]


def test_a_right_that_is_given_back_is_no_number(connection):
    connection.sent(_packed(3, frames.REVOKED))
    assert connection.numbers == [(3, True)]


def test_a_read_without_data_changes_nothing(connection):
    connection.read.read()
    assert connection.numbers == [] and connection.ends == []


def test_the_end_of_the_connection_is_told_once_with_its_reason(connection):
    connection.peer.close()
    connection.read.read()
    assert connection.ends == ["its process has ended, or closed the connection"]


def test_nothing_for_the_whole_time_is_silence(connection):
    seen = []
    for _ in range(6):
        connection.now += 0.5
        seen.append(connection.read.is_silent())
    assert seen == [False, False, False, False, True, True]


def test_a_process_that_was_stopped_may_read_first_what_came_meanwhile(connection):
    connection.now += 60.0  # it was stopped
    assert not connection.read.is_silent()
    connection.now += 0.5
    assert not connection.read.is_silent()
    connection.sent(_packed(1))
    for _ in range(4):
        connection.now += 0.5
        assert not connection.read.is_silent()
