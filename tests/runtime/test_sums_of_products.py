"""A sum of matrix products is computed as one product where nothing else can tell, and otherwise as the graph says."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.run.executor.executor import Executor, run_graph_def
from dtf.run.executor.sums_of_products import with_sums_of_products
from dtf.run.lib import onednn
from dtf.wire import dtypes, errors
from tests.runtime.graphs import GraphBuilder

F32 = dtypes.float32
RANDOM = np.random.RandomState(0)


@pytest.fixture(autouse=True)
def by_default(monkeypatch):
    monkeypatch.delenv(onednn.SWITCH, raising=False)


def merged(builder: GraphBuilder) -> set[str]:
    """Names of the nodes that others have absorbed."""
    return {node.name for each in Executor(builder.graph_def)._instructions for node in each.absorbed}


def fed(g: GraphBuilder, count: int) -> list[str]:
    return [g.node("Placeholder", dtype=F32, name=f"x{number}") for number in range(count)]


def products(g: GraphBuilder, values: list[str], transpose_a: bool = True, transpose_b: bool = False) -> list[str]:
    return [
        g.node("MatMul", left, right, name=f"product{number}", T=F32, transpose_a=transpose_a, transpose_b=transpose_b)
        for number, (left, right) in enumerate(zip(values[::2], values[1::2], strict=True))
    ]


def summed(g: GraphBuilder, values: list[str]) -> str:
    return g.node("AddN", *values, name="total", T=F32, N=len(values))


def arrays(transpose_a: bool, transpose_b: bool, inners: tuple[int, ...], rows: int = 60, columns: int = 80):
    found = []
    for inner in inners:
        left, right = RANDOM.randn(rows, inner).astype("f"), RANDOM.randn(inner, columns).astype("f")
        found += [left.T.copy() if transpose_a else left, right.T.copy() if transpose_b else right]
    return found


def feeds(values) -> dict[str, np.ndarray]:
    return {f"x{number}:0": value for number, value in enumerate(values)}


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("inners", [(8, 8, 8), (3, 17), (300, 300), (0, 0), (1, 0, 5)])
def test_the_sum_is_that_of_the_products(transpose_a, transpose_b, inners):
    g = GraphBuilder()
    made = products(g, fed(g, 2 * len(inners)), transpose_a, transpose_b)
    total = summed(g, made)
    assert merged(g) == set(made)
    values = arrays(transpose_a, transpose_b, inners)
    (result,) = run_graph_def(g.graph_def, [total], feeds(values))
    wanted = sum(
        (left.T if transpose_a else left) @ (right.T if transpose_b else right)
        for left, right in zip(values[::2], values[1::2], strict=True)
    )
    assert result.dtype == np.float32 and result.shape == (60, 80)
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


def test_what_else_is_added_and_products_of_other_sides_are_added_to_it():
    g = GraphBuilder()
    values = fed(g, 7)
    made = products(g, values[:4])
    turned = g.node("MatMul", values[4], values[5], name="turned", T=F32, transpose_a=False, transpose_b=False)
    total = summed(g, [made[0], turned, values[6], made[1]])
    assert merged(g) == set(made)
    given = [*arrays(True, False, (5, 6)), *arrays(False, False, (7,)), RANDOM.randn(60, 80).astype("f")]
    (result,) = run_graph_def(g.graph_def, [total], feeds(given))
    wanted = given[0].T @ given[1] + given[2].T @ given[3] + given[4] @ given[5] + given[6]
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


def test_products_that_are_fetched_used_twice_or_added_twice_are_left():
    g = GraphBuilder()
    made = products(g, fed(g, 8))
    g.node("Neg", made[0], T=F32)
    g.send(made[1], "fetched")
    summed(g, [*made, made[2]])
    assert not merged(g)


def test_products_that_read_a_variable_are_left_since_it_counts_when_they_run():
    g = GraphBuilder()
    first, second = g.variable("v", [60, 8]), g.node("Identity", g.variable("w", [60, 8]), T=F32)
    values = fed(g, 2)
    summed(g, products(g, [first, values[0], second, values[1]]))
    assert not merged(g)


def test_copies_between_products_and_sum_are_absorbed_and_control_edges_lead_past_them():
    g = GraphBuilder()
    values = fed(g, 4)
    first, second = products(g, values)
    beside = g.node("Neg", values[0], name="beside", T=F32)
    waited = f"^{first}", f"^{beside}"
    copies = [g.node("Identity", each, *waited, name=f"copy_{each}", T=F32) for each in (first, second)]
    after = g.node("Identity", values[2], f"^{second}", f"^{copies[0]}", name="after", T=F32)
    total = summed(g, copies)
    executor = Executor(g.graph_def)
    assert merged(g) == {first, second, *copies}
    by_name = {each.name: each for each in executor._instructions}
    place = {each.index: each.name for each in executor._instructions}
    assert {place[source] for source in by_name["after"].controls} == {*values, "beside"} - {values[2]}
    assert {place[source] for source in by_name["total"].controls} == {"beside"}
    given = arrays(True, False, (5, 6))
    results = run_graph_def(g.graph_def, [total, after], feeds(given))
    np.testing.assert_allclose(results[0], given[0].T @ given[1] + given[2].T @ given[3], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(results[1], given[2])


@pytest.mark.parametrize(
    "shapes, culprit",
    [
        ([(5, 60), (5, 80), (6, 60), (7, 80)], "product1"),
        ([(5, 60), (5, 80), (6,), (6, 80)], "product1"),
        ([(5,), (5, 80), (6, 60), (6, 80)], "product0"),
        ([(5, 60), (5, 80), (6, 60), (6, 81)], "total"),
        ([(), (), (), ()], "product0"),
    ],
)
def test_shapes_that_do_not_fit_are_the_error_of_the_node_that_they_belong_to(shapes, culprit):
    g = GraphBuilder()
    total = summed(g, products(g, fed(g, 4)))
    with pytest.raises(errors.InvalidArgumentError, match=rf"\{{\{{node {culprit}\}}\}}"):
        run_graph_def(g.graph_def, [total], feeds([np.ones(shape, np.float32) for shape in shapes]))


def test_a_large_inner_dimension_is_not_joined(monkeypatch):
    joined = []
    monkeypatch.setattr("dtf.run.executor.sums_of_products._joined", lambda *arguments: joined.append(arguments))
    g = GraphBuilder()
    total = summed(g, products(g, fed(g, 4)))
    given = arrays(True, False, (100, 100), 20, 20)
    (result,) = run_graph_def(g.graph_def, [total], feeds(given))
    np.testing.assert_allclose(result, given[0].T @ given[1] + given[2].T @ given[3], rtol=1e-4, atol=1e-4)
    assert not joined


def test_other_types_and_numpys_kernels_are_left(monkeypatch):
    g = GraphBuilder()
    values = [g.node("Placeholder", dtype=dtypes.float64) for _ in range(4)]
    made = [g.node("MatMul", *values[at : at + 2], T=dtypes.float64) for at in (0, 2)]
    g.node("AddN", *made, T=dtypes.float64, N=2)
    assert not merged(g)
    monkeypatch.setenv(onednn.SWITCH, "numpy")
    g = GraphBuilder()
    summed(g, products(g, fed(g, 4)))
    assert not merged(g)


def test_an_edge_from_itself_to_the_sum_does_not_make_a_circle():
    g = GraphBuilder()
    first, second = products(g, fed(g, 4))
    total = g.node("AddN", first, second, f"^{first}", name="total", T=F32, N=2)
    given = arrays(True, False, (5, 6))
    (result,) = run_graph_def(g.graph_def, [total], feeds(given))
    np.testing.assert_allclose(result, given[0].T @ given[1] + given[2].T @ given[3], rtol=1e-4, atol=1e-4)


def test_a_sum_in_a_branch_that_is_not_taken_is_dead():
    with tf.Graph().as_default(), tf.Session() as session:
        x, y, taken = tf.placeholder(tf.float32), tf.placeholder(tf.float32), tf.placeholder(tf.bool)
        branch = tf.cond(
            taken, lambda: tf.add_n([tf.matmul(x, y), tf.matmul(x + 1, y)]), lambda: tf.constant([[7.0]])
        )
        given = {x: np.ones((3, 2)), y: np.ones((2, 4))}
        np.testing.assert_array_equal(session.run(branch, {**given, taken: True}), np.full((3, 4), 6.0))
        np.testing.assert_array_equal(session.run(branch, {**given, taken: False}), [[7.0]])


def recurrent_gradients(weights_of_step) -> list[np.ndarray]:
    """The gradients of a loop of five positions, which read the weights each time; run with and without a trace."""
    random = np.random.RandomState(1)
    graph = tf.Graph()
    with graph.as_default(), tf.Session() as session:
        weights = tf.get_variable("w", initializer=random.randn(24, 24).astype("f") / 5, use_resource=weights_of_step)
        state = tf.constant(random.randn(6, 24).astype("f"))
        for _ in range(5):
            state = tf.tanh(tf.matmul(state, weights))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(state))
        session.run(tf.global_variables_initializer())
        metadata = tf.RunMetadata()
        session.run(train, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
        seen = {node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats}
        assert {f"gradients/MatMul{number}_grad/MatMul_1" for number in ("", "_1", "_2", "_3", "_4")} <= seen
        session.run(train)
        return session.run([weights])


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_recurrent_net_trains_as_without_it_and_a_trace_names_all_nodes(use_resource, monkeypatch):
    computed = recurrent_gradients(use_resource)
    monkeypatch.setenv(onednn.SWITCH, "numpy")
    np.testing.assert_allclose(computed, recurrent_gradients(use_resource), rtol=1e-4, atol=1e-5)


def test_the_work_grows_with_the_number_of_edges():
    """Counts what is looked at: products that all wait for one another must not be gone through again for each."""
    g = GraphBuilder()
    values = fed(g, 2)
    made = [g.node("MatMul", *values, name=f"p{number}", T=F32, transpose_a=True) for number in range(200)]
    copies = [g.node("Identity", each, *(f"^{other}" for other in made[:3]), T=F32) for each in made]
    summed(g, copies)
    instructions = Executor(g.graph_def)._instructions
    assert len(instructions) == 3 and len(instructions[-1].inputs) == 400
    assert with_sums_of_products(instructions) is instructions
