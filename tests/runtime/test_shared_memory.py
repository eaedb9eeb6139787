"""Large bodies in shared memory: they lie where they were written until the last view is gone, and nobody waits."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import mmap
import os
import socket
import struct
import threading
import time

import numpy as np
import pytest

from dtf.channel import cache_reaper, client, shared_memory
from dtf.channel.client import Channel
from dtf.channel.endpoint import greet
from dtf.channel.listener import Listener
from dtf.channel.shared_memory import REGION_BYTES, Region, SharedMemory, Window

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the system has no such memory")
SIZE = 1_000_000


@pytest.fixture
def region(monkeypatch):
    monkeypatch.setattr(cache_reaper, "watch", lambda forget: None)
    return Region()


@pytest.fixture
def window(region):
    return Window(region.descriptor)


def body(number, size=SIZE):
    return [bytes([number]), np.full(size - 1, number, np.uint8).data]


def test_a_body_is_read_where_it_was_written_and_its_place_is_free_when_the_last_view_is_gone(region, window):
    first = region.place(body(1), SIZE)
    view = window.find(first)
    part = np.frombuffer(view, np.uint8)[10:20]
    del view
    second = window.find(region.place(body(2), SIZE))
    assert part.tolist() == [1] * 10 and second[0] == second[-1] == 2
    del part
    third = region.place(body(3), SIZE)
    assert third == first  # the first gap, whose pages are there already
    assert set(window.find(third)) == {3}
    assert second[SIZE // 2] == 2


def test_when_there_is_no_place_the_body_goes_another_way(region, window):
    size = shared_memory.BODY_BYTES_MAX
    assert region.place([bytes(1)], size + 1) is None
    held = []
    while (place := region.place([bytes(1)], size)) is not None:
        held.append(window.find(place))
    assert len(held) == REGION_BYTES // size - 1
    held.pop()
    assert region.place([bytes(1)], size) is not None


def test_an_idle_region_gives_its_pages_back_but_for_what_is_looked_at(region, window):
    def pages():
        return os.fstat(region.descriptor).st_blocks * 512

    kept = window.find(region.place(body(7), SIZE))
    window.find(region.place(body(8), SIZE))
    assert pages() >= 2 * SIZE
    assert region.forget_idle(time.monotonic())
    assert region.forget_idle(time.monotonic() + cache_reaper.IDLE_S_MAX + 1)
    assert pages() < SIZE + 4 * mmap.PAGESIZE
    assert set(kept) == {7}
    del kept
    assert not region.forget_idle(time.monotonic() + cache_reaper.IDLE_S_MAX + 1)
    assert pages() <= mmap.PAGESIZE


def test_a_place_that_is_none_is_refused(region, window):
    taken = region.place(body(1), SIZE)
    view = window.find(taken)
    for rubbish in (
        b"",
        taken,  # which is looked at already
        struct.pack("<IIQQ", 1 << 31, 0, 4096, 1),
        struct.pack("<IIQQ", 5, 0, 0, 1),
        struct.pack("<IIQQ", 5, 0, 4096, REGION_BYTES),
        struct.pack("<IIQQ", 5, 0, 1 << 63, 1 << 63),
    ):
        with pytest.raises(ValueError):
            window.find(rubbish)
    assert view[0] == 1


@pytest.mark.parametrize("limit", ["", "100K"])
def test_a_place_beyond_the_limit_of_a_message_is_refused(window, monkeypatch, limit):
    monkeypatch.setenv("DTF_MAX_MESSAGE_BYTES", limit)
    size = 200 << 10 if limit else shared_memory.BODY_BYTES_MAX + 1
    with pytest.raises(ValueError, match="DTF_MAX_MESSAGE_BYTES"):
        window.find(struct.pack("<IIQQ", 5, 0, 4096, size))


@pytest.mark.parametrize(
    "what", ["not sealed", "may shrink", "too small", "too large", "read only", "a file", "a pipe"]
)
def test_what_is_no_region_is_refused_and_kills_nobody(what, tmp_path):
    shrink, grow = fcntl.F_SEAL_SHRINK, fcntl.F_SEAL_GROW
    descriptor = os.memfd_create("rubbish", os.MFD_ALLOW_SEALING)
    others = [descriptor]
    try:
        os.ftruncate(
            descriptor, {"too small": REGION_BYTES // 2, "too large": 2 * REGION_BYTES}.get(what, REGION_BYTES)
        )
        seals = {"not sealed": 0, "may shrink": grow}.get(what, shrink | grow)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        if what == "read only":
            others.append(os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY))
        elif what == "a file":
            others.append(os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT))
            os.ftruncate(others[-1], REGION_BYTES)
        elif what == "a pipe":
            others.extend(os.pipe())
        with pytest.raises(OSError):
            Window(others[-1])
    finally:
        for each in others:
            os.close(each)


def test_memory_that_could_shrink_under_its_reader_is_refused():
    descriptor = os.memfd_create("rubbish")
    try:
        os.ftruncate(descriptor, REGION_BYTES)
        with pytest.raises(OSError):
            Window(descriptor)
    finally:
        os.close(descriptor)


def test_nothing_is_placed_before_the_other_end_can_find_it(monkeypatch):
    monkeypatch.setattr(cache_reaper, "watch", lambda forget: None)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        accepted = []

        def serve():
            memory = SharedMemory.accepted(theirs)
            accepted.append(memory)
            assert memory.place(body(1), SIZE) is None
            memory.answer(theirs)

        thread = threading.Thread(target=serve)
        thread.start()
        memory = SharedMemory.offered(ours)
        assert memory.place(body(1), SIZE) is None
        memory.begin(ours)
        thread.join()
        assert set(accepted[0].find(memory.place(body(1), SIZE))) == {1}
        assert set(memory.find(accepted[0].place(body(2), SIZE))) == {2}


@pytest.fixture
def listener():
    listener = Listener("127.0.0.1", "ps")
    listener.start({"/echo": lambda request, answer: answer.set((b"", request))})
    yield listener
    listener.stop(0)


@pytest.fixture
def channel(listener):
    channel = Channel(listener.endpoint, "127.0.0.1", "ps")
    yield channel
    channel.close()


def share(channel):
    """Sends large bodies until they go through shared memory."""
    deadline = time.monotonic() + 20
    while channel._memory is None or not channel._memory._may_place:
        assert time.monotonic() < deadline
        channel.call("/echo", body(0), 20.0)


def test_large_bodies_of_a_connection_lie_in_shared_memory_from_the_second_on(channel, monkeypatch):
    share(channel)
    monkeypatch.setattr(channel._large, "send", None)  # nothing goes this way any more
    random = np.random.RandomState(0)
    for size in (client.LARGE_FROM_BYTES, SIZE, 5 * SIZE + 3):
        data = random.bytes(size)
        assert channel.call("/echo", (data[:7], data[7:]), 20.0) == data
    assert channel.call("/echo", (b"small",), 20.0) == b"small"


def test_who_keeps_all_bodies_gets_the_rest_by_socket(channel, monkeypatch):
    monkeypatch.setattr(shared_memory, "PLACES_MAX", 4096)
    share(channel)
    held = [channel.call("/echo", body(number, 9 * SIZE), 20.0) for number in range(30)]  # twice a region
    assert [(view[0], view[-1]) for view in held] == [(number, number) for number in range(30)]
    del held
    gc.collect()


def test_a_frame_that_names_no_place_costs_the_connection(listener, channel):
    share(channel)
    with pytest.raises(Exception, match="no such place|lost|closed"):
        channel._memory.place = lambda pieces, size: struct.pack("<IIQQ", 5, 0, 0, 1)
        channel.call("/echo", body(1), 20.0)
    again = Channel(listener.endpoint, "127.0.0.1", "ps")
    assert again.call("/echo", (b"x",), 20.0) == b"x"
    again.close()


@pytest.mark.parametrize("end", ["client", "server"])
def test_memory_is_not_shared_with_another_users_process(listener, monkeypatch, end):
    asked = []

    def is_same_user(sock):
        asked.append(threading.current_thread())
        return (asked[-1] is threading.main_thread()) == (end == "server")

    monkeypatch.setattr(shared_memory, "is_same_user", is_same_user)
    channel = Channel(listener.endpoint, "127.0.0.1", "ps")
    try:
        for number in range(20):
            assert set(channel.call("/echo", body(number), 20.0)) == {number}
        assert asked and (channel._memory is None or not channel._memory._may_place)
        assert all(peer.memory is None for peer in listener._peers.values())
    finally:
        channel.close()


def test_offers_that_are_none_harm_nobody(listener, channel):
    """Half an offer, two descriptors, none, one for a connection that is not there, one after another."""
    share(channel)
    endpoint = listener.endpoint
    regions = [Region(), Region()]
    offers = [[], [regions[0].descriptor], [each.descriptor for each in regions], [0]]
    for identity in (channel._identity, bytes(16)):
        for word in (b"M", b"x", b""):
            for descriptors in offers:
                with socket.socket(socket.AF_UNIX) as sock:
                    sock.settimeout(20)
                    sock.connect(f"\0{endpoint.unix}")
                    assert greet(sock, endpoint.token, identity, client.MEMORY_LANE)
                    if word:
                        with contextlib.suppress(BrokenPipeError):  # the lane of nobody is closed at once
                            socket.send_fds(sock, [word], descriptors)
        assert channel.call("/echo", (b"small",), 20.0) == b"small"
    again = Channel(listener.endpoint, "127.0.0.1", "ps")
    share(again)
    again.close()


def test_what_was_received_outlives_the_connection(channel):
    share(channel)
    kept = channel.call("/echo", body(9), 20.0)
    channel.close()
    assert set(kept) == {9}
