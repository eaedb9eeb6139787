"""Input pipelines must give what they give under TensorFlow, with either library as the client of either server."""

from __future__ import annotations

import pytest

import dtf
from dtf.server import Server
from tests.interop import input_programs, tensorflow_process
from tests.interop.tensorflow_process import needs_tensorflow, tensorflow_server
from tests.ports import free_ports

pytestmark = needs_tensorflow

THEIRS = """
from tests.interop import input_programs
print(json.dumps({
    "queues": input_programs.outcomes(tf, "queues"),
    "datasets": input_programs.outcomes(tf, "datasets"),
    "one shot": input_programs.outcomes(tf, "one shot"),
    "our server": input_programs.outcomes(tf, "datasets", sys.argv[1]),
}))
"""


@pytest.fixture(scope="module")
def theirs():
    (port,) = free_ports(1)
    with Server({"local": [f"127.0.0.1:{port}"]}, "local", 0):
        return tensorflow_process.run(THEIRS, f"grpc://127.0.0.1:{port}")


@pytest.mark.parametrize("kind", ["queues", "datasets", "one shot"])
def test_a_pipeline_gives_what_it_gives_under_tensorflow(theirs, kind):
    assert input_programs.outcomes(dtf, kind) == theirs[kind]


def test_tensorflows_client_can_use_datasets_at_our_server(theirs):
    assert theirs["our server"] == theirs["datasets"]


def test_our_client_can_use_datasets_at_tensorflows_server(theirs):
    (port,) = free_ports(1)
    with tensorflow_server({"local": [f"127.0.0.1:{port}"]}, "local", 0):
        assert input_programs.outcomes(dtf, "one shot", f"grpc://127.0.0.1:{port}") == theirs["one shot"]
