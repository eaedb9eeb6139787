"""Steps of a session are measured as often as its GraphOptions ask."""

from __future__ import annotations

import dtf as tf
from dtf.cost_model import CostModel


def test_each_signature_is_measured_once_in_so_many_steps():
    model = CostModel(tf.GraphOptions(build_cost_model=3, build_cost_model_after=1))
    assert [model.is_due(("a",)) for _ in range(7)] == [False, False, False, True, False, False, True]
    assert not any(CostModel(tf.GraphOptions()).is_due(("a",)) for _ in range(5))


def test_a_measured_step_has_costs_and_nothing_else_that_was_not_asked_for():
    config = tf.ConfigProto(graph_options=tf.GraphOptions(build_cost_model=2))
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        x = tf.placeholder(tf.float32, [3])
        y = tf.square(x, name="y")
        for is_due in (False, True):
            metadata = tf.RunMetadata()
            session.run(y, {x: [1.0, 2.0, 3.0]}, run_metadata=metadata)
            assert metadata.HasField("cost_graph") == is_due
    nodes = {node.name: node for node in metadata.cost_graph.node}
    assert nodes["y"].input_info[0].preceding_port == 0 and nodes["y"].device
    assert not metadata.HasField("step_stats") and not metadata.partition_graphs
