"""Recurrent networks must give TensorFlow's values, gradients and names, and train at TensorFlow's servers."""

from __future__ import annotations

import json

import numpy as np

import dtf
from tests.interop import rnn_programs
from tests.interop.tensorflow_process import needs_tensorflow
from tests.interop.two_runtimes import assert_same
from tests.ports import free_ports

pytestmark = needs_tensorflow

_SERVE = """
kept[sys.argv[1]] = [tf.train.Server(json.loads(sys.argv[1]), job, index) for job, index in json.loads(sys.argv[2])]
"""


def test_recurrent_networks_are_tensorflows(tmp_path):
    assert_same(rnn_programs, tmp_path, rtol=1e-3, atol=2e-5)


def test_a_recurrent_network_trains_with_its_variables_on_tensorflows_parameter_servers(tensorflow):
    worker, *ps = (f"127.0.0.1:{port}" for port in free_ports(3))
    cluster = {"worker": [worker], "ps": ps}
    tensorflow.run(_SERVE, json.dumps(cluster), json.dumps([("worker", 0), ("ps", 0), ("ps", 1)]))
    device = dtf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0")
    for kind in ("several", "lstm_all"):
        found = rnn_programs.trained(dtf, kind, f"grpc://{worker}", device)
        wanted = rnn_programs.trained(dtf, kind)
        assert found["losses"][-1] < found["losses"][0]
        assert set(found) == set(wanted)
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=2e-3, atol=1e-4, err_msg=f"{kind} {name}")
