"""No peer takes all the sessions of a task."""

from __future__ import annotations

import pytest

from dtf.rpc.peer_sessions import PeerSessions, address_of
from dtf.wire import errors, limits


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:10.0.0.7:5123", "10.0.0.7"),
        ("10.0.0.7:5123", "10.0.0.7"),
        ("ipv6:%5B2001:db8::1%5D:80", "2001:db8::1"),
        ("ipv6:[2001:db8::1]:80", "2001:db8::1"),
        ("ipv4:127.0.0.1:99", "this host"),
        ("ipv6:%5B::1%5D:99", "this host"),
        ("unix:/tmp/socket", "this host"),
        ("a process of this host", "this host"),
    ],
)
def test_a_peer_must_be_an_address_whatever_its_port(peer, address):
    assert address_of(peer) == address


def test_a_peer_must_have_no_more_sessions_than_its_share(monkeypatch):
    monkeypatch.setenv(limits.SESSIONS_PER_PEER.variable, "2")
    is_open = {"a": True, "b": True, "c": True}
    sessions = PeerSessions(is_open.__contains__)
    for handle in "ab":
        sessions.check("10.0.0.7:1")
        sessions.opened("10.0.0.7:1", handle)
    with pytest.raises(errors.ResourceExhaustedError, match="10.0.0.7 cannot open .*DTF_MAX_SESSIONS_PER_PEER"):
        sessions.check("ipv4:10.0.0.7:2")
    sessions.check("10.0.0.8:1")
    del is_open["a"]
    sessions.check("10.0.0.7:1")


def test_ended_sessions_must_not_be_kept():
    is_open: set[str] = set()
    sessions = PeerSessions(is_open.__contains__)
    for number in range(1000):
        sessions.opened(f"10.0.{number}.1:1", str(number))
    assert sum(map(len, sessions._handles.values())) <= 100
