"""Graphs made by hand to do harm: the codes are TensorFlow's, and our server goes on where TensorFlow's does not."""

from __future__ import annotations

import json

import pytest

from dtf.server import Server
from tests.interop import bad_requests, hostile_requests
from tests.interop.tensorflow_process import needs_tensorflow, tensorflow_servers
from tests.ports import free_ports

pytestmark = needs_tensorflow

#: Where the last of the codes differs, and why.
KNOWN = {
    "names/result ''": "an argument of a function has a name",
    "attributes/list of type: list of both": "a list is of one kind",
    "attributes/list of func: nothing": "an invalid argument, not an internal error",
    "attributes/list of func: empty list": "an invalid argument, not an internal error",
    "calls/another result": "an invalid argument, not an internal error",
    "calls/great number of arguments": "an invalid argument, not an internal error",
    "calls/Case condition": "an invalid argument, not an internal error",
    "calls/missing attribute in the body": "an invalid argument, as that of a node",
    "calls/number of arguments without a value": "an invalid argument, as that of a node",
}


@pytest.fixture(scope="module")
def answers():
    """(TensorFlow's, ours, our server's address)."""
    theirs, ours = ({"worker": [f"127.0.0.1:{port}"]} for port in free_ports(2))
    with tensorflow_servers([(theirs, "worker", 0)]):
        wanted = bad_requests.answers(theirs["worker"][0], hostile_requests.FAMILIES)
    with Server(ours, "worker", 0):
        given = bad_requests.answers(ours["worker"][0], hostile_requests.FAMILIES)
        yield json.loads(json.dumps(wanted)), json.loads(json.dumps(given)), ours["worker"][0]


def _last(code):
    return code[-1] if isinstance(code, list) else code


@pytest.mark.parametrize("family", [family.__name__ for family in hostile_requests.FAMILIES])
def test_what_cannot_be_fails_with_tensorflows_code_if_perhaps_sooner(answers, family):
    wanted, given, _ = answers
    names = [name for name in wanted if name.startswith(family + "/") and name not in KNOWN]
    assert names
    assert {name: _last(given[name]) for name in names} == {name: _last(wanted[name]) for name in names}


def test_what_differs_is_an_invalid_argument(answers):
    _, given, _ = answers
    assert {_last(given[name]) for name in KNOWN} == {"INVALID_ARGUMENT"}


def test_our_server_survives_what_tensorflows_does_not(answers):
    _, _, address = answers
    families = [hostile_requests.deadly_attributes, hostile_requests.recursion]
    found = bad_requests.answers(address, families)
    assert {_last(code) for code in found.values()} == {"INVALID_ARGUMENT"}
    assert bad_requests.answers(address, [bad_requests.deadly])["deadly/still serving"] == ["OK", "OK", "OK"]
