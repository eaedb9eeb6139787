"""Collective operations give what TensorFlow's give, whoever is the client; rings of both kinds are refused."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest

import dtf
from dtf.server import Server
from tests.interop import collective_programs
from tests.interop.tensorflow_process import needs_tensorflow
from tests.ports import free_ports

pytestmark = needs_tensorflow

_SERVE = """
from tests.interop import collective_programs
cluster, tasks = map(json.loads, sys.argv[1:])
kept[sys.argv[1]] = [
    tf.train.Server(cluster, "worker", task, config=collective_programs.config(tf)) for task in tasks]
"""
_RUN = """
from tests.interop import collective_programs
np.savez(sys.argv[2], **collective_programs.outcomes(tf, json.loads(sys.argv[1])))
"""


def outcomes(tensorflow, client, kinds, path):
    """What the workers fetch; kinds are those of the two tasks, D for dtf and T for TensorFlow."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(len(kinds))]
    cluster = {"worker": addresses}
    targets = [f"grpc://{address}" for address in addresses]
    theirs = [task for task, kind in enumerate(kinds) if kind == "T"]
    if theirs:
        tensorflow.run(_SERVE, json.dumps(cluster), json.dumps(theirs))
    with contextlib.ExitStack() as stack:
        for task, kind in enumerate(kinds):
            if kind == "D":
                stack.enter_context(Server(cluster, "worker", task, config=collective_programs.config(dtf)))
        if client == "D":
            return collective_programs.outcomes(dtf, targets)
        tensorflow.run(_RUN, json.dumps(targets), str(path))
        with np.load(path) as found:
            return dict(found)


@pytest.fixture(scope="module")
def alone(tensorflow, tmp_path_factory):
    """What TensorFlow's client gets of TensorFlow's servers."""
    return outcomes(tensorflow, "T", "TT", tmp_path_factory.mktemp("alone") / "values.npz")


@pytest.mark.parametrize(("client", "kinds"), [("D", "DD"), ("D", "TT"), ("T", "DD")])
def test_collectives_give_what_tensorflows_give(tensorflow, alone, client, kinds, tmp_path):
    found = outcomes(tensorflow, client, kinds, tmp_path / "values.npz")
    assert set(found) == set(alone), [str(found[key])[:300] for key in found if key.endswith("error")]
    for key, value in alone.items():
        assert found[key].dtype == value.dtype and found[key].shape == value.shape, key
        np.testing.assert_allclose(found[key], value, rtol=1e-3 if "float16" in key else 1e-6, err_msg=key)


@pytest.mark.parametrize("kinds", ["DT", "TD"])
def test_a_ring_of_both_kinds_is_refused(tensorflow, kinds, tmp_path):
    found = outcomes(tensorflow, "D", kinds, tmp_path / "values.npz")
    ours = str(found[f"{kinds.index('D')}/0/error"])
    assert "cannot be members of the same collective group" in ours and ours.startswith("UnimplementedError")
