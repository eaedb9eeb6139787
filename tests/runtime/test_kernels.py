"""The kernel table."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import pytest

from dtf.run import kernels
from dtf.wire import dtypes, opdef
from dtf.wire.registry import UnknownNameError


@pytest.fixture(autouse=True)
def _all_kernels():
    """So that a row of a test is the second one of its op, whatever ran before."""
    kernels.load_all()


def test_every_kernel_has_an_op_contract():
    assert [op for op in kernels.registered_ops() if not opdef.exists(op)] == list(opdef.INTERNAL)


def test_an_unknown_op_is_an_error_that_lists_near_names():
    with pytest.raises(UnknownNameError, match="VariableV2"):
        kernels.lookup("VariableV3")


def test_a_second_kernel_of_an_op_is_an_error_that_names_both_places():
    with pytest.raises(ValueError, match=r"test_kernels\.py.*control_flow\.py"):
        kernels.kernel("ToBool")(lambda node: lambda: None)


def test_the_row_of_the_highest_priority_that_takes_the_node_computes_it(monkeypatch):
    monkeypatch.setattr(kernels, "_rows", dict(kernels._rows))
    monkeypatch.setattr(kernels, "_places", dict(kernels._places))
    float64 = {"T": [dtypes.float64]}
    kernels.kernel("ToBool", priority=1)(lambda node: lambda value: f"one over {kernels.below(node, 1)(value)}")
    kernels.kernel("ToBool", priority=2, types=float64)(lambda node: lambda value: "two")
    kernels.kernel("ToBool", priority=3)(lambda node: None)

    def answer(dtype: dtypes.DType):
        return kernels.bind(kernels.KernelNode("b", "ToBool", "", {"T": dtype}, 1, {}))[1](0.0)

    assert (answer(dtypes.float64), answer(dtypes.float32)) == ("two", "one over False")


def test_a_row_for_all_devices_gives_way_to_one_of_the_device(monkeypatch):
    monkeypatch.setattr(kernels, "_rows", dict(kernels._rows))
    monkeypatch.setattr(kernels, "_places", dict(kernels._places))
    assert kernels.lookup("Abort", "GPU").device_type == kernels.DEFAULT
    kernels.kernel("Abort", device_type="GPU")(lambda node: lambda: None)
    assert kernels.lookup("Abort", "GPU").device_type == "GPU"
    assert kernels.lookup("Abort").device_type == kernels.DEFAULT


def test_an_asynchronous_kernel_is_stateful():
    row = kernels.lookup("_Recv")
    assert row.asynchronous
    assert row.stateful


def test_dead_stays_itself_when_copied_or_sent():
    assert copy.deepcopy(kernels.DEAD) is kernels.DEAD
    assert pickle.loads(pickle.dumps(kernels.DEAD)) is kernels.DEAD


def test_a_missing_attribute_names_the_node():
    node = kernels.KernelNode("dense/MatMul", "MatMul", "", {"T": 1}, 1, {})
    assert node.attr("T") == 1
    with pytest.raises(KeyError, match="dense/MatMul"):
        node.attr("shape")


def test_the_family_of_an_op_is_found_without_importing_all():
    script = (
        "from dtf.run import kernels\n"
        "for op in ('Const', 'MatMul', 'ApplyGradientDescent', 'ResourceSparseApplyAdagradV2', 'SparseSegmentSum'):\n"
        "    assert kernels.has_kernel(op)\n"
        "assert not kernels._loaded\n"
        "assert not kernels.has_kernel('NoSuchOp') and not kernels._loaded\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
