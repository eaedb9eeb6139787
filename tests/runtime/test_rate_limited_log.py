"""What peers can cause must not fill the log, and one line must say who did what."""

from __future__ import annotations

import logging

import dtf as tf
from dtf.rpc.connection import Connection
from dtf.run.lib.rate_limited_log import LINES_MAX, PERIOD_S, RateLimitedLog


def test_of_each_kind_some_lines_are_logged_and_then_their_number(caplog):
    now = [0.0]
    log = RateLimitedLog(logging.getLogger("dtf"), lambda: now[0])
    with caplog.at_level(logging.WARNING, "dtf"):
        for number in range(1000):
            log.warn("a", "a %s\nof two lines", number)
        log.warn("b", "another")
        assert [line for line in caplog.messages if line.startswith("a")][0] == "a 0 of two lines"
        assert len(caplog.messages) == LINES_MAX + 1
        now[0] += PERIOD_S
        log.warn("a", "again")
    assert caplog.messages[-2:] == [f"a: {1000 - LINES_MAX} more since then", "again"]


def test_a_request_that_fails_is_one_line_with_its_peer(caplog, monkeypatch):
    monkeypatch.setattr("dtf.run.lib.rate_limited_log.shared", RateLimitedLog(logging.getLogger("dtf")))
    with tf.train.Server.create_local_server() as server:

        def broken(*_):
            raise ZeroDivisionError("a fault\nof the server")

        monkeypatch.setattr(server._master, "reset", broken)
        connection = Connection(server.target.partition("://")[2])
        for _ in range(3 * LINES_MAX):
            try:
                connection.call("/tensorflow.MasterService/Reset", b"", 60)
            except tf.errors.InternalError as error:
                assert "ZeroDivisionError" in error.message
        connection.close()
    lines = [line for line in caplog.messages if "ZeroDivisionError" in line]
    assert len(lines) == LINES_MAX and "\n" not in lines[0] and "a request of ipv" in lines[0]
    assert "ZeroDivisionError: a fault of the server (test_rate_limited_log.py:" in lines[0]
