"""A name of an endpoint stands for one key in the whole session."""

from __future__ import annotations

from dtf.run.master.endpoint_names import EndpointNames
from dtf.wire.pb import graph_pb2

TASK = "/job:ps/replica:0/task:0"


def part(destination):
    graph = graph_pb2.GraphDef()
    recv = graph.node.add(name="_recv_x_0", op="_Recv")
    recv.attr["tensor_name"].s = b"x:0"
    recv.attr["recv_device"].s = destination
    graph.node.add(name="y", op="Identity", input=["_recv_x_0", "^_recv_x_0"])
    return graph


def names(graph):
    return [node.name for node in graph.node], list(graph.node[1].input)


def test_a_name_that_is_taken_for_another_key_gets_a_number():
    known = EndpointNames()
    for destination, suffix in ((b"a", ""), (b"b", "_K1"), (b"a", ""), (b"c", "_K2")):
        wanted = "_recv_x_0" + suffix
        graph = part(destination)
        known.settle(TASK, graph)
        assert names(graph) == ([wanted, "y"], [wanted, f"^{wanted}"])


def test_tasks_have_names_of_their_own():
    known = EndpointNames()
    known.settle(TASK, part(b"a"))
    graph = part(b"b")
    known.settle("/job:worker/replica:0/task:0", graph)
    assert graph.node[0].name == "_recv_x_0"
