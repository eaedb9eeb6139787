"""Requests that nobody should send: our server must answer with TensorFlow's codes, and go on serving."""

from __future__ import annotations

import json

import pytest

from dtf.server import Server
from tests.interop import bad_requests
from tests.interop.tensorflow_process import needs_tensorflow, tensorflow_servers
from tests.ports import free_ports

pytestmark = needs_tensorflow

#: Where the answers differ, and why.
KNOWN = {
    "graphs/unknown op": "a node that no step needs may be of any op: our table is the smaller one",
    "graphs/unknown op beside": "a node that no step needs may be of any op: our table is the smaller one",
    "graphs/device of nobody": "a node that cannot be placed harms only the steps that need it",
    "graphs/missing attribute": "the same code whether the graph is new or grows",
    "graphs/_Recv of nobody": "the same code whether the graph is new or grows",
    "graphs/number below its minimum": "refused when it is added, not when it is run",
    "graphs/invalid dtype": "refused when it is added, not when it is run",
    "graphs/dtype out of range": "refused when it is added, not when it is run",
    "graphs/too few inputs": "refused when it is added, not when it is run",
    "graphs/constant of the wrong dtype": "refused when it is added, not when it is run",
    "runs/still serving": "TensorFlow's server has stopped doing so",
    "workers/malformed recv key": "a malformed key is an invalid argument wherever it is",
    "workers/graph without devices": "a task with one device needs none",
    "workers/RecvBuf": "rings with TensorFlow's tasks are refused",
    "workers/CompleteGroup": "rings with TensorFlow's tasks are refused",
    "workers/CompleteInstance": "rings with TensorFlow's tasks are refused",
    "rubbish/worker RecvBuf": "rings with TensorFlow's tasks are refused",
    "rubbish/worker CompleteGroup": "rings with TensorFlow's tasks are refused",
    "rubbish/worker CompleteInstance": "rings with TensorFlow's tasks are refused",
    "rubbish/worker MarkRecvFinished": "nothing in the request matters to us",
    "rubbish/worker Logging": "nothing in the request matters to us",
    "rubbish/worker Tracing": "nothing in the request matters to us",
    "rubbish/worker GetStatus": "nothing in the request matters to us",
    "rubbish/eager": "there is no eager service",
}


@pytest.fixture(scope="module")
def answers():
    """(TensorFlow's, ours, our server's address)."""
    theirs, ours = ({"ps": [f"127.0.0.1:{ps}"], "worker": [f"127.0.0.1:{worker}"]} for ps, worker in _pairs())
    with tensorflow_servers([(theirs, "ps", 0), (theirs, "worker", 0)]):
        wanted = bad_requests.answers(theirs["worker"][0], bad_requests.FAMILIES)
    with Server(ours, "ps", 0), Server(ours, "worker", 0):
        given = bad_requests.answers(ours["worker"][0], bad_requests.FAMILIES)
        yield json.loads(json.dumps(wanted)), json.loads(json.dumps(given)), ours["worker"][0]


def _pairs():
    ports = free_ports(4)
    return ports[:2], ports[2:]


@pytest.mark.parametrize("family", [family.__name__ for family in bad_requests.FAMILIES])
def test_the_codes_are_tensorflows(answers, family):
    wanted, given, _ = answers
    names = [name for name in wanted if name.startswith(family + "/") and name not in KNOWN]
    assert names
    assert {name: given[name] for name in names} == {name: wanted[name] for name in names}


def test_what_differs_is_refused_too(answers):
    _, given, _ = answers
    for name in KNOWN:
        if name.startswith("graphs/"):
            assert given[name][-1] in ("INVALID_ARGUMENT", "NOT_FOUND"), name


def test_our_server_survives_what_tensorflows_does_not(answers):
    _, given, address = answers
    assert given["runs/still serving"] == "OK"
    found = bad_requests.answers(address, [bad_requests.deadly])
    assert found.pop("deadly/still serving") == ["OK", "OK", "OK"]
    assert found == {
        "deadly/feed that nothing needs": "OK",
        "deadly/fetched twice": "INVALID_ARGUMENT",
        "deadly/feed of another dtype": "INTERNAL",
        "deadly/feed of an integer": "INTERNAL",
        "deadly/feed of strings": "INTERNAL",
        "deadly/feed of a constant of another dtype": "INTERNAL",
        "deadly/feed that nothing needs of another dtype": "OK",
        "deadly/callable with too few feeds": "INVALID_ARGUMENT",
        "deadly/callable with too many feeds": "INVALID_ARGUMENT",
        "deadly/callable with another dtype": "INTERNAL",
    }
