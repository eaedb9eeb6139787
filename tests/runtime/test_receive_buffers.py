"""Buffers for what is received: used again when nobody looks at them, bounded, and forgotten when idle."""

from __future__ import annotations

import time

import numpy as np
import pytest

from dtf.channel import cache_reaper, receive_buffers
from dtf.channel.receive_buffers import KEPT_BYTES_MAX, KEPT_FROM_BYTES, ReceiveBuffers

SIZE = 4 * KEPT_FROM_BYTES


@pytest.fixture
def buffers(monkeypatch):
    """Buffers whose time the test makes pass."""
    monkeypatch.setattr(cache_reaper, "watch", lambda forget: None)
    return ReceiveBuffers()


def address(view):
    return np.frombuffer(view, np.uint8).ctypes.data


def test_a_buffer_is_used_again_when_the_last_view_of_it_is_gone(buffers):
    first = buffers.take(SIZE)
    where = address(first)
    array = np.ndarray((SIZE // 8,), np.float64, first[: SIZE // 8 * 8])
    del first
    part = array[1:3]
    del array
    second = buffers.take(SIZE)  # a part of the first is still looked at
    assert address(second) != where
    del part
    assert address(buffers.take(SIZE)) == where
    assert buffers.kept_bytes == 2 * SIZE


def test_a_little_larger_buffer_serves_too_and_a_much_larger_one_does_not(buffers):
    buffers.take(SIZE)
    assert len(buffers.take(SIZE - 100)) == SIZE - 100
    assert buffers.kept_bytes == SIZE
    buffers.take(SIZE // 2)
    assert buffers.kept_bytes == SIZE + SIZE // 2


def test_what_is_kept_is_bounded(buffers, monkeypatch):
    monkeypatch.setattr(receive_buffers, "KEPT_BYTES_MAX", 3 * SIZE)
    held = [buffers.take(SIZE) for _ in range(10)]
    assert len({address(view) for view in held}) == 10
    assert buffers.kept_bytes == 3 * SIZE
    assert len(buffers.take(4 * SIZE)) == 4 * SIZE
    assert buffers.kept_bytes == 3 * SIZE
    assert KEPT_BYTES_MAX <= 1 << 30


def test_small_ones_are_left_to_the_allocator(buffers):
    assert len(buffers.take(KEPT_FROM_BYTES - 1)) == KEPT_FROM_BYTES - 1
    assert buffers.kept_bytes == 0


def test_an_idle_process_gives_its_memory_back(buffers):
    view = buffers.take(SIZE)
    view[0] = 7
    assert buffers.forget_idle(time.monotonic())
    assert not buffers.forget_idle(time.monotonic() + cache_reaper.IDLE_S_MAX + 1)
    assert buffers.kept_bytes == 0
    assert view[0] == 7  # who still looks at it keeps it
