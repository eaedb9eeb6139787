"""Which loop frame each node is in, and what a task needs to take part in a loop that another task decides.

A value that is made inside a loop is sent once per iteration, so its receiver must come round as often. On each task
that takes part in a loop, `ControlLoop` is a counter without a count, entered once and turned by the loop's condition,
wherever that is computed:

    entered = Enter(token)      token: a constant that waits for the control loop of the frame outside, if any
    merged  = Merge(entered, again)
    gate    = Switch(merged, the LoopCond, received if it is another task's)
    again   = NextIteration(gate:1)

Every `_Recv` inside of the frame waits for `merged`, which is live in each iteration, the last one included. The idea
is in Yu et al., "Dynamic Control Flow in Large-Scale Machine Learning" (EuroSys 2018), section 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass

from dtf.run.passes import Nodes, parse_tensor_name, set_type
from dtf.wire.dtypes import int32
from dtf.wire.pb import graph_pb2, node_def_pb2

__all__ = ["ENTERS", "EXITS", "ControlLoop", "Frame", "LoopFrames"]

Frame = tuple[str, ...]
"""Frame names from the outermost loop to the innermost; () outside of loops."""

ENTERS = frozenset({"Enter", "RefEnter"})
EXITS = frozenset({"Exit", "RefExit"})


class LoopFrames:
    """The frames of a graph. Cheap for a graph without loops.

    Attributes:
      of: the frame of each node's outputs, for those that are inside one: the inner one of an Enter, the outer one of
        an Exit.
      conditions: the LoopCond of each frame that has one.
      parallel_iterations: how many iterations of each frame may be under way at once.
    """

    def __init__(self, nodes: Nodes) -> None:
        self.of: dict[str, Frame] = {}
        self.conditions: dict[Frame, str] = {}
        self.parallel_iterations: dict[Frame, int] = {}
        if not any(node.op in ENTERS for node in nodes.values()):
            return
        self._find(nodes)
        for name, node in nodes.items():
            frame = self.of.get(name, ())
            if node.op == "LoopCond":
                self.conditions.setdefault(frame, name)
            elif node.op in ENTERS:
                self.parallel_iterations.setdefault(frame, max(1, node.attr["parallel_iterations"].i))

    def runs_in(self, node: node_def_pb2.NodeDef) -> Frame:
        """The frame whose iterations the node itself runs in."""
        if node.op in EXITS:
            return self.of.get(parse_tensor_name(node.input[0])[0], ())
        frame = self.of.get(node.name, ())
        return frame[:-1] if node.op in ENTERS else frame

    def _find(self, nodes: Nodes) -> None:
        for _ in range(len(nodes)):  # a node may stand before its inputs in a loop; a round reaches at least one more
            changed = False
            for name, node in nodes.items():
                inside: Frame = ()
                for text in node.input:
                    inside = max(inside, self.of.get(parse_tensor_name(text)[0], ()), key=len)
                if node.op in ENTERS:
                    inside = (*inside, node.attr["frame_name"].s.decode())
                elif node.op in EXITS:
                    inside = inside[:-1]
                if self.of.get(name, ()) != inside:
                    self.of[name] = inside
                    changed = True
            if not changed:
                break


@dataclass(frozen=True)
class ControlLoop:
    """The control loop of one frame on one task.

    Attributes:
      trigger: the node that is live once in each iteration.
    """

    trigger: str
    _merged: node_def_pb2.NodeDef

    @staticmethod
    def add(
        graph_def: graph_pb2.GraphDef, name: str, device: str, frame_name: str, parallel: int, after: str | None
    ) -> ControlLoop:
        """Adds the entrance of one. `after`: the trigger of the frame outside."""
        token = graph_def.node.add(name=name, op="Const", device=device)
        set_type(token, "dtype", int32.as_datatype_enum)
        token.attr["value"].tensor.dtype = int32.as_datatype_enum  # type: ignore[assignment]
        token.attr["value"].tensor.tensor_shape.SetInParent()
        token.attr["value"].tensor.int_val.append(0)
        if after is not None:
            token.input.append("^" + after)
        entered = _add(graph_def, f"{name}/enter", "Enter", device, [name])
        entered.attr["frame_name"].s = frame_name.encode()
        entered.attr["is_constant"].b = False
        entered.attr["parallel_iterations"].i = parallel
        merged = _add(graph_def, f"{name}/merge", "Merge", device, [entered.name])
        merged.attr["N"].i = 1
        return ControlLoop(merged.name, merged)

    def turn(self, graph_def: graph_pb2.GraphDef, condition: str) -> None:
        """Closes the loop: `condition` is the tensor on this task that says whether it turns once more."""
        device, name = self._merged.device, self.trigger.removesuffix("/merge")
        _add(graph_def, f"{name}/switch", "Switch", device, [self.trigger, condition])
        again = _add(graph_def, f"{name}/next", "NextIteration", device, [f"{name}/switch:1"])
        self._merged.input.append(again.name)
        self._merged.attr["N"].i = 2


def _add(graph_def: graph_pb2.GraphDef, name: str, op: str, device: str, inputs: list[str]) -> node_def_pb2.NodeDef:
    node = graph_def.node.add(name=name, op=op, device=device, input=inputs)
    set_type(node, "T", int32.as_datatype_enum)
    return node
