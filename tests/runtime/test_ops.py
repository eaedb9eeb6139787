"""Every op must compute what numpy computes, declare the shape it yields, and have the gradient of differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dtf as tf
from dtf.build import shape_rules
from dtf.build.apply import apply_op
from dtf.build.gradients import load as load_gradients
from dtf.build.gradients import table as gradient_table
from dtf.build.ops import load_shape_rules
from dtf.run import kernels
from dtf.run.executor import executor
from dtf.wire import opdef
from dtf.wire.deprecations import DEPRECATED
from tests.runtime.generated_source import checked_programs
from tests.runtime.op_cases import RECORDED, Case, all_cases, recorded_values

CASES = all_cases()

def flatten(values) -> list[np.ndarray]:
    flat = []
    for value in values:
        flat.extend(value if isinstance(value, list) else [value])
    return [array if isinstance(array, np.ndarray) else np.asarray(array) for array in flat]


def build(case: Case, graph: tf.Graph) -> tuple[list[tf.Tensor], list[tf.Tensor], list[np.ndarray]]:
    """Returns the placeholders (flattened), the outputs and the arrays to feed."""
    contract = opdef.get(case.op)
    assert len(contract.inputs) == len(case.inputs), f"{case.op} takes {[arg.name for arg in contract.inputs]}"
    placeholders: list[tf.Tensor] = []
    arguments: dict[str, Any] = {}
    with graph.as_default():
        for arg, value in zip(contract.inputs, case.inputs, strict=True):
            arrays = flatten([value])
            dtypes = [tf.string if array.dtype == object else tf.as_dtype(array.dtype) for array in arrays]
            made = [
                tf.placeholder(dtype, array.shape) for dtype, array in zip(dtypes, arrays, strict=True)
            ]
            placeholders.extend(made)
            arguments[arg.name] = made if isinstance(value, list) else made[0]
        if case.op in DEPRECATED:
            graph._producer = 1  # a graph of the time when it had such ops
        result = apply_op(case.op, case.op.lstrip("_"), **arguments, **case.attrs)
    operation = result if isinstance(result, tf.Operation) else next(iter(tensors_in(result))).op
    return placeholders, list(operation.outputs), flatten(case.inputs)


def tensors_in(result):
    if isinstance(result, tf.Tensor):
        yield result
        return
    for item in result:
        yield from tensors_in(item)


def run(graph: tf.Graph, fetches, feeds) -> list[np.ndarray]:
    return executor.run_graph_def(
        graph.as_graph_def(),
        [tensor.name for tensor in fetches],
        {tensor.name: array for tensor, array in feeds},
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_op_computes_what_numpy_computes(case: Case):
    if case.run is not None:
        with checked_programs():
            case.run()
        return
    graph = tf.Graph()
    placeholders, outputs, arrays = build(case, graph)
    with checked_programs():
        values = run(graph, outputs, zip(placeholders, arrays, strict=True))
    if case.expect is RECORDED:
        expected = recorded_values(case)
    else:
        expected = case.expect(*arrays) if callable(case.expect) else case.expect
    if len(outputs) == 1 and not isinstance(expected, list | tuple):
        expected = [expected]
    assert len(values) == len(expected)
    for tensor, value, wanted in zip(outputs, values, expected, strict=True):
        value = np.asarray(value)
        assert tf.as_dtype(value.dtype) == tensor.dtype.base_dtype, f"{tensor.name}: {value.dtype}"
        assert tensor.shape.is_compatible_with(value.shape), f"{tensor.name}: {tensor.shape} against {value.shape}"
        if value.dtype == object:
            assert value.tolist() == np.asarray(wanted, dtype=object).tolist()
        elif value.dtype.kind in "fc" or value.dtype.name == "bfloat16":
            wide = complex if value.dtype.kind == "c" else float
            np.testing.assert_allclose(
                value.astype(wide), np.asarray(wanted).astype(wide), rtol=case.rtol, atol=case.atol
            )
        else:
            np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize("case", [case for case in CASES if case.grad is not False and case.run is None], ids=str)
def test_a_gradient_is_what_differences_give(case: Case):
    graph = tf.Graph()
    placeholders, outputs, arrays = build(case, graph)
    positions = (
        [i for i, array in enumerate(arrays) if array.dtype.kind == "f"] if case.grad is True else list(case.grad)
    )
    random = np.random.RandomState(0)
    feeds = dict(zip(placeholders, arrays, strict=True))
    values = run(graph, outputs, feeds.items())
    floating = [i for i, value in enumerate(values) if np.asarray(value).dtype.kind == "f"]
    weights = {i: random.uniform(0.5, 1.5, np.shape(values[i])).astype(values[i].dtype) for i in floating}
    with graph.as_default():
        made = tf.gradients(
            [outputs[i] for i in floating],
            [placeholders[i] for i in positions],
            [tf.constant(weights[i]) for i in floating],
        )
        made = [tf.convert_to_tensor(grad) for grad in made]
    computed = run(graph, made, feeds.items())

    def weighted_sum(position: int, array: np.ndarray) -> float:
        moved = run(graph, outputs, {**feeds, placeholders[position]: array}.items())
        return sum(float(np.sum(np.asarray(moved[i], np.float64) * weights[i])) for i in floating)

    step = 1e-6
    for position, grad in zip(positions, computed, strict=True):
        array = arrays[position]
        assert np.shape(grad) == array.shape
        numeric = np.zeros(array.shape)
        for index in np.ndindex(array.shape):
            up, down = array.copy(), array.copy()
            up[index] += step
            down[index] -= step
            numeric[index] = (weighted_sum(position, up) - weighted_sum(position, down)) / (2 * step)
        np.testing.assert_allclose(grad, numeric, rtol=case.grad_tol, atol=case.grad_tol)


@pytest.mark.parametrize("name", opdef.names())
def test_every_op_has_a_kernel_a_shape_rule_a_word_on_its_gradient_and_a_case(name: str):
    missing = []
    if name not in kernels.registered_ops():
        missing.append("kernel")
    load_shape_rules()
    if name not in shape_rules.table:
        missing.append("shape rule")
    load_gradients()
    if name not in gradient_table:
        missing.append("gradient or not_differentiable")
    if not any(case.op == name for case in CASES):
        missing.append("case")
    assert not missing, f"{name} lacks: {', '.join(missing)}"
