"""Puts the bodies of functions in the place of their calls, so that their nodes can be on several tasks.

A call runs on one task. That is fast, and right for a body that has no place of its own; but nodes that ask for another
task, and variables of several ps, need the body's nodes in the graph: PartitionedCall becomes the nodes themselves, If
and Case a Switch per argument and a Merge per result, While a loop of Enter, Merge, Switch, NextIteration and Exit.

    lower(nodes, library)     # f: PartitionedCall -> f/square/mul ..., and f itself a NoOp that waits for them

What a call gives is replaced by what the body gives at each consumer. The call's own name stays as a NoOp, for control
edges and targets. A function that calls itself keeps its calls.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from dtf.run.passes import Nodes, NodesView, is_handle, op_def, parse_tensor_name, set_type
from dtf.run.passes.validate import check_edges
from dtf.run.value_types import FunctionReference, Library
from dtf.wire import dtypes, errors, limits
from dtf.wire.device import DeviceSpec, merge_devices
from dtf.wire.functions import callees, instantiate, passed_on, plain_call, reachable
from dtf.wire.names import shown
from dtf.wire.pb import function_pb2, graph_pb2, node_def_pb2

__all__ = ["Library", "lower", "with_plain_calls"]

"""FunctionDefs by name."""

_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_BRANCHES = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})
_LOOPS = frozenset({"While", "StatelessWhile"})
_BOOL, _INT32 = dtypes.bool.as_datatype_enum, dtypes.int32.as_datatype_enum
_PARALLEL_ITERATIONS = 10
_DEPTH_MAX = 64
"""Calls inside of each other, which take some frames of Python's stack each."""
_NO_EFFECT = frozenset({"VarHandleOp", "ReadVariableOp", "Placeholder"})


def lower(nodes: NodesView, library: Library, targets: Container[str] | None = None) -> Nodes:
    """The graph with those calls replaced whose bodies may have to be on several tasks.

    Args:
      nodes: a graph, or what one step needs of it.
      library: the functions that it may call.
      targets: nodes to keep although nothing waits for them; None: all.

    Raises:
      InvalidArgumentError, NotFoundError: a function or an op is not defined, or does not fit its call.
      ResourceExhaustedError: the bodies have more nodes than `limits.INLINED_NODES`, or are too deep in each other.
    """
    spread = _Spread(library)
    if not any(spread.may_be(node) for node in nodes.values()):
        return dict(nodes)
    return _Lowering(library, spread).run(nodes, targets)


def with_plain_calls(nodes: Iterable[node_def_pb2.NodeDef], library: Library) -> list[node_def_pb2.NodeDef]:
    """The nodes, those whose op is the name of a function as PartitionedCall."""
    return [plain_call(node, library) if node.op in library else node for node in nodes]


class _Spread:
    """Finds the calls whose bodies may have to be on several tasks: they take state, or name tasks."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._known: dict[str, bool] = {}

    def may_be(self, node: node_def_pb2.NodeDef) -> bool:
        if node.op not in _CALLS and node.op not in _BRANCHES and node.op not in _LOOPS:
            return False
        types = node.attr["T" if node.op in _LOOPS else "Tin"].list.type
        return any(map(is_handle, types)) or any(map(self._names_a_task, _callees(node)))

    def _names_a_task(self, reference: FunctionReference) -> bool:
        name = reference.name
        if name not in self._known:
            self._look_at({name} | reachable(name, self._library))
        return self._known[name]

    def _look_at(self, names: set[str]) -> None:
        """Finds it out for functions and all that they call: who calls one that names a task does so, too."""
        callers: dict[str, list[str]] = {}
        pending = []
        for name in names:
            self._known[name] = False
            function = self._library.get(name)
            for node in function.node_def if function is not None else ():
                if _has_task(node.device):
                    pending.append(name)
                for each in callees(node, self._library):
                    callers.setdefault(each, []).append(name)
        while pending:
            name = pending.pop()
            if not self._known[name]:
                self._known[name] = True
                pending.extend(callers.get(name, ()))


@dataclass(frozen=True)
class _Place:
    """Where a body goes.

    Attributes:
      scope: what the names of its nodes begin with.
      device: what the call asks for.
      pivot: a node that runs exactly when the body does; what no argument starts waits for it.
      start: control inputs of the call.
      invariants: the arguments that are there even when the body does not run.
      callers: the functions that it is inside of.
    """

    scope: str
    device: str
    callers: tuple[str, ...]
    pivot: str | None = None
    start: tuple[str, ...] = ()
    invariants: frozenset[str] = frozenset()


class _Lowering:
    """One run of the pass. `_tensors` says what stands for the outputs of the calls that are gone."""

    def __init__(self, library: Library, spread: _Spread) -> None:
        self._library = library
        self._spread = spread
        self._made: Nodes = {}
        self._tensors: dict[tuple[str, int], str] = {}
        self._doors: set[str] = set()
        self._beside_input: list[str] = []
        self._inlined = 0

    def run(self, nodes: NodesView, targets: Container[str] | None) -> Nodes:
        for node in nodes.values():
            self._add(node, ())
        waited_for: set[str] = set()
        for name, node in self._made.items():
            inputs = [self._resolved(text) for text in node.input]
            if inputs != list(node.input):
                changed = node_def_pb2.NodeDef()
                changed.CopyFrom(node)
                changed.input[:] = inputs
                self._made[name] = changed
            waited_for.update(text[1:] for text in inputs if text.startswith("^"))
        for name in self._beside_input:
            node = self._made[name]
            node.attr["_class"].list.s.append(b"loc:@" + parse_tensor_name(node.input[0])[0].encode())
        if targets is not None:
            for name in self._doors - waited_for:
                if name not in targets:
                    del self._made[name]
        return self._made

    def _resolved(self, text: str) -> str:
        found = self._tensors.get(parse_tensor_name(text))
        while found is not None:
            text = found
            found = self._tensors.get(parse_tensor_name(text))
        return text

    def _add(
        self,
        node: node_def_pb2.NodeDef,
        callers: tuple[str, ...],
        pivot: str | None = None,
        invariants: frozenset[str] = frozenset(),
    ) -> None:
        """Adds a node, or what it stands for. `pivot`, `invariants`: those of the body that it is in."""
        if not self._spread.may_be(node) or any(reference.name in callers for reference in _callees(node)):
            self._made[node.name] = node
            return
        data = [text for text in node.input if not text.startswith("^")]
        control = tuple(text for text in node.input if text.startswith("^"))
        if pivot is not None and not control:
            control = ("^" + pivot,)
        if node.op in _LOOPS:
            self._loop(node, data, control, callers)
        elif node.op in _BRANCHES:
            self._choice(node, data, control, callers)
        else:
            place = _Place(node.name, node.device, callers, pivot, control, invariants)
            outputs, done = self._body(node.attr["f"].func, data, place)
            self._finish(node, data, outputs, node.attr["Tout"].list.type, done)

    def _node(
        self, name: str, op: str, inputs: Sequence[str], device: str, enum: int | None = None
    ) -> node_def_pb2.NodeDef:
        node = self._made[name] = node_def_pb2.NodeDef(name=name, op=op, input=inputs, device=device)
        if enum is not None:
            set_type(node, "T", enum)
        return node

    def _finish(
        self,
        node: node_def_pb2.NodeDef,
        arguments: Sequence[str],
        outputs: Sequence[str],
        types: Sequence[int],
        done: str | None,
    ) -> None:
        """Says what stands for the call's outputs; values come only after what the body does besides."""
        for index, (text, enum) in enumerate(zip(outputs, types, strict=True)):
            if done is not None and not is_handle(enum):
                text = self._node(f"{node.name}/_result_{index}", "Identity", [text, "^" + done], "", enum).name
                self._beside_input.append(text)
            self._tensors[node.name, index] = text
        waits = [] if done is None else ["^" + done]
        waits += ["^" + parse_tensor_name(text)[0] for text in outputs if text not in arguments]
        waits += [text for text in node.input if text.startswith("^")] if not waits else []
        self._node(node.name, "NoOp", list(dict.fromkeys(waits)), node.device)
        self._doors.add(node.name)

    # -- a body

    def _body(
        self, reference: FunctionReference, arguments: Sequence[str], place: _Place
    ) -> tuple[list[str], str | None]:
        """Adds the nodes of a function; returns its results, and what waits for its effects, if it has any."""
        function = self._function(reference)
        if len(place.callers) >= _DEPTH_MAX:
            raise errors.ResourceExhaustedError.of(
                f"Function {reference.name} is called in more than {_DEPTH_MAX} others, on several tasks."
            )
        graph_def = instantiate(function, reference.attr, self._library)
        self._inlined += len(graph_def.node)
        limits.INLINED_NODES.check(self._inlined, f"The nodes of functions on several tasks, to {reference.name}")
        check_edges(graph_def.node)
        prefix = f"{place.scope}/{reference.name}/"
        inner = _Names(prefix, graph_def, arguments)
        results: dict[int, str] = {}
        effects = list(function.control_ret.values()) or [
            node.name for node in graph_def.node if node.op not in _NO_EFFECT and _is_stateful(node)
        ]
        for node in graph_def.node:
            if node.op == "_Retval":
                results[node.attr["index"].i] = inner.tensor(node.input[0])
            elif node.op != "_Arg":
                callers = (*place.callers, reference.name)
                self._add(self._placed(node, inner, place), callers, place.pivot, place.invariants)
        done = None
        if effects:
            waits = ["^" + prefix + name for name in dict.fromkeys(effects)]
            done = self._node(f"{prefix}_done", "NoOp", waits, place.device).name
        return [results[index] for index in range(len(results))], done

    def _placed(self, node: node_def_pb2.NodeDef, inner: _Names, place: _Place) -> node_def_pb2.NodeDef:
        """A node of a body under its new name, with its new inputs, and the control inputs that start it."""
        data = [inner.tensor(text) for text in node.input if not text.startswith("^")]
        control = []
        for text in node.input:
            if not text.startswith("^"):
                continue
            argument = inner.argument(text)
            if argument is None:
                control.append("^" + inner.prefix + text[1:])
            elif place.pivot is not None:
                control.append("^" + place.pivot)
            else:
                control.append("^" + self._held(argument, inner, place))
        if not data or any(text in inner.arguments for text in data):
            control += place.start
        if place.pivot is not None and all(text in place.invariants for text in data):
            control.append("^" + place.pivot)
        node.name = inner.prefix + node.name
        node.input[:] = [*data, *dict.fromkeys(control)]
        node.device = merge_devices(place.device, node.device) if place.device else node.device
        if "_class" in node.attr:
            groups = [inner.group(group) for group in node.attr["_class"].list.s]
            node.attr["_class"].list.s[:] = [group for group in groups if group is not None]
        return node

    def _held(self, argument: _Argument, inner: _Names, place: _Place) -> str:
        """A node that is dead when an argument is; the node that gives the argument may be a Switch."""
        name = f"{inner.prefix}_argument_{argument.index}"
        if name not in self._made:
            self._node(name, "Identity", [argument.text], place.device, argument.enum)
        return name

    def _function(self, reference: FunctionReference) -> function_pb2.FunctionDef:
        function = self._library.get(reference.name)
        if function is None:
            raise errors.NotFoundError.of(f"Function {shown(reference.name)} is not defined.")
        return function

    # -- If and Case

    def _choice(
        self,
        node: node_def_pb2.NodeDef,
        data: Sequence[str],
        control: tuple[str, ...],
        callers: tuple[str, ...],
    ) -> None:
        name, device, arguments = node.name, node.device, data[1:]
        bodies = _callees(node)
        if node.op in ("If", "StatelessIf"):
            chosen = self._truth(f"{name}/_pred", data[0], node.attr["Tcond"].type, device, control)
            sides = [(chosen, 1), (chosen, 0)]
        else:
            sides = [(pred, 1) for pred in self._case_preds(name, data[0], len(bodies), device, control)]
        types = node.attr["Tin"].list.type
        results: list[list[str]] = []
        ends: list[str] = []
        has_effects = False
        for number, (reference, (pred, side)) in enumerate(zip(bodies, sides, strict=True)):
            scope = f"{name}/_branch_{number}"
            gate = self._node(f"{scope}/_gate", "Switch", [pred, pred], device, _BOOL).name
            pivot = self._node(f"{scope}/_pivot", "Identity", [f"{gate}:{side}" if side else gate], device, _BOOL).name
            inside = []
            for index, (text, enum) in enumerate(zip(arguments, types, strict=True)):
                switch = self._node(f"{scope}/_switch_{index}", "Switch", [text, pred], "", enum).name
                self._beside_input.append(switch)
                inside.append(f"{switch}:{side}" if side else switch)
            outputs, done = self._body(reference, inside, _Place(scope, device, callers, pivot))
            results.append(outputs)
            end = [pivot] if done is None else [pivot, "^" + done]
            has_effects = has_effects or done is not None
            ends.append(self._node(f"{scope}/_end", "Identity", end, device, _BOOL).name)
        outputs = []
        for index, enum in enumerate(node.attr["Tout"].list.type):
            outputs.append(self._merge(f"{name}/_merge_{index}", [each[index] for each in results], device, enum))
        done = self._merge(f"{name}/_end", ends, device, _BOOL) if has_effects or not outputs else None
        self._finish(node, data, outputs, node.attr["Tout"].list.type, done)

    def _merge(self, name: str, inputs: Sequence[str], device: str, enum: int) -> str:
        # Of two branches the one of false comes first, as in graphs of tf.cond.
        merge = self._node(name, "Merge", list(reversed(inputs)), device, enum)
        merge.attr["N"].i = len(inputs)
        return name

    def _truth(self, name: str, text: str, enum: int, device: str, control: tuple[str, ...]) -> str:
        """A bool of whatever an If or a While takes for one."""
        op = "Identity" if enum == _BOOL else "ToBool"
        return self._node(name, op, [text, *control], device, enum).name

    def _case_preds(
        self, name: str, index: str, count: int, device: str, control: tuple[str, ...]
    ) -> list[str]:
        """Per branch, whether it is chosen; the last one is for every other index."""
        index = self._node(f"{name}/_index", "Identity", [index, *control], device, _INT32).name
        preds = []
        for number in range(count - 1):
            constant = self._int32(f"{name}/_number_{number}", number, device, ["^" + index])
            pred = self._node(f"{name}/_is_{number}", "Equal", [index, constant], device, _INT32)
            pred.attr["incompatible_shape_error"].b = True
            preds.append(pred.name)
        none = self._int32(f"{name}/_number_0", 0, device, ["^" + index])
        below = self._node(f"{name}/_is_below", "Less", [index, none], device, _INT32).name
        last = self._int32(f"{name}/_number_{count - 1}", count - 1, device, ["^" + index])
        above = self._node(f"{name}/_is_above", "GreaterEqual", [index, last], device, _INT32).name
        preds.append(self._node(f"{name}/_is_other", "LogicalOr", [below, above], device).name)
        return preds

    def _int32(self, name: str, value: int, device: str, control: Sequence[str] = ()) -> str:
        node = self._node(name, "Const", control, device)
        set_type(node, "dtype", _INT32)
        node.attr["value"].tensor.dtype = _INT32  # type: ignore[assignment]
        node.attr["value"].tensor.tensor_shape.SetInParent()
        node.attr["value"].tensor.int_val.append(value)
        return name

    # -- While

    def _loop(
        self,
        node: node_def_pb2.NodeDef,
        data: Sequence[str],
        control: tuple[str, ...],
        callers: tuple[str, ...],
    ) -> None:
        name, device = node.name, node.device
        body = node.attr["body"].func
        types: list[int] = list(node.attr["T"].list.type)
        constants = passed_on(instantiate(self._function(body), body.attr, self._library))
        variables = [index for index in range(len(types)) if index not in constants]
        entered: list[str] = []
        arguments = list(data)
        if not variables:  # what turns the loop is then a state; something must come round for it
            arguments.append(self._int32(f"{name}/_token", 0, device, control))
            types.append(_INT32)
            variables = [len(data)]
        for index, (text, enum) in enumerate(zip(arguments, types, strict=True)):
            enter = self._node(f"{name}/_enter_{index}", "Enter", [text, *control], "", enum)
            enter.attr["frame_name"].s = f"{name}/_frame".encode()
            enter.attr["is_constant"].b = index in constants
            enter.attr["parallel_iterations"].i = node.attr["parallel_iterations"].i or _PARALLEL_ITERATIONS
            if index not in constants:
                enter.device = device
            else:
                self._beside_input.append(enter.name)
            entered.append(enter.name)
        merges = {
            index: self._merge(
                f"{name}/_merge_{index}", [f"{name}/_next_{index}", entered[index]], device, types[index]
            )
            for index in variables
        }
        invariants = frozenset(entered[index] for index in constants)
        first = variables[0]
        tested = [merges.get(index, entered[index]) for index in range(len(data))]
        condition = self._condition(node, tested, merges[first], invariants, callers)
        inside: list[str] = []
        for index, enum in enumerate(types):
            if index in constants:
                inside.append(entered[index])
                continue
            switch = self._node(f"{name}/_switch_{index}", "Switch", [merges[index], condition], device, enum).name
            inside.append(self._node(f"{name}/_body_{index}", "Identity", [f"{switch}:1"], device, enum).name)
            self._node(f"{name}/_exit_{index}", "Exit", [switch], device, enum)
        place = _Place(f"{name}/_body", device, callers, inside[first], (), invariants)
        results, done = self._body(body, inside[: len(data)], place)
        results += inside[len(data) :]
        for index in variables:
            inputs = [results[index]] if done is None else [results[index], "^" + done]
            self._node(f"{name}/_next_{index}", "NextIteration", inputs, device, types[index])
        outputs = [data[i] if i in constants else f"{name}/_exit_{i}" for i in range(len(data))]
        self._finish(node, data, outputs, types[: len(data)], f"{name}/_exit_{first}" if done is not None else None)

    def _condition(
        self,
        node: node_def_pb2.NodeDef,
        arguments: Sequence[str],
        pivot: str,
        invariants: frozenset[str],
        callers: tuple[str, ...],
    ) -> str:
        name, device = node.name, node.device
        reference = node.attr["cond"].func
        place = _Place(f"{name}/_condition", device, callers, pivot, (), invariants)
        [result], done = self._body(reference, arguments, place)
        signature = self._function(reference).signature.output_arg[0]
        enum = signature.type or _BOOL
        truth = self._truth(f"{name}/_pred", result, enum, device, () if done is None else ("^" + done,))
        return self._node(f"{name}/_cond", "LoopCond", [truth], device).name


@dataclass(frozen=True)
class _Argument:
    index: int
    text: str
    enum: int


class _Names:
    """From the names inside of a body to those in the graph."""

    def __init__(self, prefix: str, graph_def: graph_pb2.GraphDef, arguments: Sequence[str]) -> None:
        self.prefix = prefix
        self.arguments = frozenset(arguments)
        self._arguments: dict[str, _Argument] = {}
        for node in graph_def.node:
            if node.op == "_Arg":
                index = node.attr["index"].i
                if index >= len(arguments):
                    raise errors.InvalidArgumentError.of(f"{prefix} takes more than {len(arguments)} arguments")
                self._arguments[node.name] = _Argument(index, arguments[index], node.attr["T"].type)

    def argument(self, text: str) -> _Argument | None:
        return self._arguments.get(parse_tensor_name(text)[0])

    def tensor(self, text: str) -> str:
        argument = self.argument(text)
        return self.prefix + text if argument is None else argument.text

    def group(self, entry: bytes) -> bytes | None:
        """A colocation group under its new name; None for one with an argument, which follows from the edges."""
        name = entry.decode().removeprefix("loc:@")
        return None if name in self._arguments else f"loc:@{self.prefix}{name}".encode()


def _callees(node: node_def_pb2.NodeDef) -> list[FunctionReference]:
    """The functions that a node calls."""
    if node.op in _CALLS:
        return [node.attr["f"].func]
    if node.op in ("If", "StatelessIf"):
        return [node.attr["then_branch"].func, node.attr["else_branch"].func]
    if node.op in ("Case", "StatelessCase"):
        return list(node.attr["branches"].list.func)
    return [node.attr["cond"].func, node.attr["body"].func] if node.op in _LOOPS else []


def _has_task(device: str) -> bool:
    if not device:
        return False
    try:
        spec = DeviceSpec.from_string(device)
    except ValueError:
        return True  # the placement reports what is wrong
    return spec.job is not None or spec.task is not None


def _is_stateful(node: node_def_pb2.NodeDef) -> bool:
    return not node.op.startswith("_") and op_def(node).is_stateful
