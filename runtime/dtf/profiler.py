"""tf.profiler: how many parameters a model has, and how many multiplications and additions a step takes.

    options = tf.profiler.ProfileOptionBuilder.trainable_variables_parameter()
    print(tf.profiler.profile(graph, options=options).total_parameters)
    options = tf.profiler.ProfileOptionBuilder.float_operation()
    print(tf.profiler.profile(graph, options=options).total_float_ops)

Owns a tree of name scopes with these two figures, from the graph alone. Times and memory of steps are in traces:
`tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)` and `tf.train.Timeline`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/profiler
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from dtf import late as _late
from dtf.build.default_graph import get_default_graph
from dtf.build.graph import Operation
from dtf.build.graph_keys import GraphKeys

__all__ = ["GraphNodeProto", "ProfileOptionBuilder", "Profiler", "profile", "write_op_log"]

Options = dict[str, Any]


@dataclass
class GraphNodeProto:
    """One name scope or operation, with the sums over all below it."""

    name: str
    parameters: int = 0
    float_ops: int = 0
    total_parameters: int = 0
    total_float_ops: int = 0
    children: list[GraphNodeProto] = field(default_factory=list)


class ProfileOptionBuilder:
    """Options of `profile`, by chains of calls; options about times and memory are accepted."""

    def __init__(self, options: Options | None = None) -> None:
        self._options: Options = dict(options or ProfileOptionBuilder.float_operation())

    def __getattr__(self, name: str) -> Any:
        if not name.startswith(("with_", "select", "order_by", "account_")):
            raise AttributeError(name)

        def take(*values: Any) -> ProfileOptionBuilder:
            self._options[name] = values[0] if len(values) == 1 else values
            return self

        return take

    def select(self, attributes: Any) -> ProfileOptionBuilder:
        """The figures to show: "params", "float_ops"."""
        self._options["select"] = list(attributes)
        return self

    def with_empty_output(self) -> ProfileOptionBuilder:
        """Prints nothing."""
        self._options["output"] = "none"
        return self

    def with_stdout_output(self) -> ProfileOptionBuilder:
        """Prints the tree."""
        self._options["output"] = "stdout"
        return self

    def with_file_output(self, outfile: str) -> ProfileOptionBuilder:
        """Writes the tree to a file."""
        self._options["output"] = f"file:{outfile}"
        return self

    def build(self) -> Options:
        """The options."""
        return dict(self._options)

    @staticmethod
    def trainable_variables_parameter() -> Options:
        """The number of trained parameters."""
        return {"select": ["params"], "output": "stdout"}

    @staticmethod
    def float_operation() -> Options:
        """The number of floating-point operations."""
        return {"select": ["float_ops"], "output": "stdout"}

    @staticmethod
    def time_and_memory(*args: Any, **kwargs: Any) -> Options:
        """Accepted; the tree has the figures that are known."""
        return {"select": ["params", "float_ops"], "output": "stdout"}


def profile(
    graph: Any = None, run_meta: Any = None, op_log: Any = None, cmd: str = "scope", options: Any = None
) -> GraphNodeProto:
    """The tree of a graph's name scopes with its figures; prints it as `options` say.

    Args:
      graph: the default graph by default.
      run_meta, op_log: accepted.
      cmd: "scope", "graph", "op" or "code"; all give the tree of scopes.
      options: of ProfileOptionBuilder; the trained parameters and operations by default.

    Returns:
      The node of the whole graph.
    """
    del run_meta, op_log, cmd
    graph = graph if graph is not None else get_default_graph()
    options = options.build() if isinstance(options, ProfileOptionBuilder) else dict(options or {})
    root = GraphNodeProto("_TFProfRoot")
    nodes = {"": root}
    for variable in graph.get_collection(GraphKeys.TRAINABLE_VARIABLES):
        _node(nodes, variable.op.name).parameters += variable.shape.num_elements() or 0
    for op in graph.get_operations():
        count = float_ops(op)
        if count:
            _node(nodes, op.name).float_ops += count
    _sum(root)
    text = "\n".join(_lines(root, options.get("select", ["params", "float_ops"]), 0))
    output = options.get("output", "stdout")
    if output == "stdout":
        print(text)
    elif output.startswith("file:"):
        from dtf import gfile

        with gfile.GFile(output.removeprefix("file:"), "w") as file:
            file.write(text + "\n")
    return root


class Profiler:
    """`profile` of one graph, several times.

    Args:
      graph: the default graph by default.
    """

    def __init__(self, graph: Any = None, op_log: Any = None) -> None:
        del op_log
        self._graph = graph if graph is not None else get_default_graph()

    def add_step(self, step: int, run_meta: Any) -> None:
        """Accepted: figures come from the graph."""

    def profile_name_scope(self, options: Any) -> GraphNodeProto:
        """See `profile`."""
        return profile(self._graph, options=options)

    profile_graph = profile_operations = profile_python = profile_name_scope


def write_op_log(graph: Any, log_dir: str, op_log: Any = None, run_meta: Any = None, add_trace: bool = True) -> None:
    """Refuses: logs for TensorFlow's tfprof tool are not written.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError("op logs are not written; use tf.profiler.profile")


def float_ops(op: Operation) -> int:
    """How many floating-point operations one run of `op` takes; 0 if it is unknown, as sizes may be."""
    if not op.outputs or not op.outputs[0].dtype.is_floating:
        return 0
    size = op.outputs[0].shape.num_elements()
    if size is None:
        return 0
    if op.type in ("MatMul", "BatchMatMul", "BatchMatMulV2"):
        shape = op.inputs[0].shape.as_list()
        transposed = op.get_attr("transpose_a") if op.type == "MatMul" else op.get_attr("adj_x")
        return 2 * size * (shape[-2 if transposed else -1] or 0)
    if op.type in ("Conv2D", "DepthwiseConv2dNative"):
        height, width, depth, _ = (size or 0 for size in op.inputs[1].shape.as_list())
        return 2 * size * height * width * (depth if op.type == "Conv2D" else 1)
    if op.type in ("Add", "AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "Pow", "BiasAdd", "Neg", "Square"):
        return size
    if op.type in ("Sum", "Mean", "L2Loss"):
        return math.prod(size or 0 for size in op.inputs[0].shape.as_list() or [1])
    return 5 * size if op.type == "Softmax" else 0


def _node(nodes: dict[str, GraphNodeProto], name: str) -> GraphNodeProto:
    if name not in nodes:
        nodes[name] = GraphNodeProto(name)
        _node(nodes, name.rpartition("/")[0]).children.append(nodes[name])
    return nodes[name]


def _sum(node: GraphNodeProto) -> None:
    for child in node.children:
        _sum(child)
    node.total_parameters = node.parameters + sum(child.total_parameters for child in node.children)
    node.total_float_ops = node.float_ops + sum(child.total_float_ops for child in node.children)


def _lines(node: GraphNodeProto, select: list[str], depth: int) -> list[str]:
    figures = {"params": f"{node.total_parameters} params", "float_ops": f"{node.total_float_ops} flops"}
    shown = ", ".join(figures[each] for each in select if each in figures)
    below = [child for child in node.children if child.total_parameters or child.total_float_ops]
    own = f"{'  ' * depth}{node.name} ({shown})"
    return [own, *(line for each in below for line in _lines(each, select, depth + 1))]


__getattr__ = _late.refusals(__name__)
