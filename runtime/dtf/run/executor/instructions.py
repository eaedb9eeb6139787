"""From GraphDef to instructions: nodes with their kernels bound and their edges resolved to numbers.

Owns the reading of NodeDefs and the order in which nodes may run. Shared by the two ways to run a partition:
`executor`'s flat program and the tagged tokens of `frames`.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from dtf.run import kernels
from dtf.run.devices.backends import device_type_of
from dtf.run.interfaces import Value
from dtf.run.value_types import AttrValue, Library
from dtf.wire import codec, errors, opdef
from dtf.wire.codec import ResourceHandle
from dtf.wire.constant_sizes import check_repeated
from dtf.wire.functions import plain_call
from dtf.wire.names import CONTROL, parse_tensor_name, shown
from dtf.wire.node_checks import check_attributes, check_node
from dtf.wire.pb import graph_pb2, node_def_pb2
from dtf.wire.registry import UnknownNameError
from dtf.wire.variants import is_variant

__all__ = [
    "ALIASES", "MERGES", "RECVS", "SENDS", "Instruction", "in_running_order", "is_loop", "read_graph", "single",
    "with_node",
]  # fmt: skip

_LOOP_OPS = frozenset({"Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration"})


@dataclass(frozen=True, slots=True)
class Instruction:
    """One node, ready to run.

    Attributes:
      index: its place in the list that it belongs to.
      node: name, op and attributes.
      kernel: its row of the kernel table.
      function: what the factory made of the node.
      inputs: per data input (index of the source, its output number).
      controls: indices of the control inputs.
      dereferences: per data input, whether a Variable arrives where the kernel wants its value.
      passes_reference: it is another name of a Variable, which its consumers read.
      has_list_output: whether the kernel may give a list although there is one output.
      group: of a _Recv whose value is pushed: the number of the values that come together with it (see `piggyback`).
      absorbed: nodes whose work this instruction does besides its own (see `sums_of_products`).
      keeps: it changes state that outlives the process (see `durability`).
      joins, joined_to: it does the work of others as well, which are joined to it by its index (see `joint_updates`).
    """

    index: int
    node: kernels.KernelNode
    kernel: kernels.Kernel
    function: Callable[..., Value]
    inputs: tuple[tuple[int, int], ...]
    controls: tuple[int, ...]
    dereferences: tuple[bool, ...]
    has_list_output: bool
    passes_reference: bool = False
    group: int | None = None
    absorbed: tuple[kernels.KernelNode, ...] = ()
    keeps: bool = False
    joins: bool = False
    joined_to: int | None = None

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def op(self) -> str:
        return self.node.op

    def sources(self) -> set[int]:
        """Indices of everything that this instruction comes after."""
        return {source for source, _ in self.inputs} | set(self.controls)


CALLS_USERS = frozenset({"PyFunc", "PyFuncStateless"})
"""Operations that call the user's functions, which may wait for another step while they hold a lock."""

HEAVY = CALLS_USERS | frozenset(
    "MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 Einsum SparseMatMul SparseTensorDenseMatMul Conv2D "
    "Conv2DBackpropInput Conv2DBackpropFilter Conv3D Conv3DBackpropInputV2 Conv3DBackpropFilterV2 "
    "DepthwiseConv2dNative Svd Qr SelfAdjointEigV2 Cholesky MatrixInverse MatrixSolve MatrixSolveLs "
    "MatrixTriangularSolve MatrixDeterminant MatrixExponential MatrixLogarithm MatrixSquareRoot RegexFullMatch "
    "StaticRegexFullMatch RegexReplace StaticRegexReplace MatchingFiles ReadFile".split()
)
"""Ops that may take so long that it is worth asking before each whether the step should go on."""

ALIASES = frozenset({"Identity", "StopGradient", "PreventGradient", "Snapshot"})
"""Ops whose output is their input under another name."""

_CHANGES = re.compile(r"(Resource)?(Sparse)?(AssignAdd|AssignSub|Scatter|Apply)")
"""Ops that change a variable. Assign is not among them: values of many variables would be kept until the last one."""

SENDS, RECVS = frozenset({"_Send", "_HostSend"}), frozenset({"_Recv", "_HostRecv"})
"""Both ends of an edge between two partitions."""

MERGES = frozenset({"Merge", "RefMerge"})
"""Ops that go on with the first input that comes."""

SHOWN_AT_END = "_shown_at_end"
"""An attribute of the _Send of a fetch: a reference is sent as such, and read when the step has ended."""


def read_graph(graph_def: graph_pb2.GraphDef, library: Library) -> list[Instruction]:
    """The instructions of a GraphDef, in the order of its nodes. `library`: the functions that they may call, by name.

    Raises:
      NotFoundError: an op that nobody declared.
      InvalidArgumentError: no kernel, a missing or wrong attribute or input, a malformed name, an edge that leads
        nowhere.
      ResourceExhaustedError: its constants stand for more than `limits.REPEATED_BYTES`.
    """
    index_of = {node.name: index for index, node in enumerate(graph_def.node)}
    if len(index_of) != len(graph_def.node):
        raise errors.InvalidArgumentError.of("The graph has two nodes of one name")
    check_repeated([graph_def.node])
    parts = [_bind(node, library) for node in graph_def.node]
    references = [_reference_flags(part.node) for part in parts]
    for index, node_def in enumerate(graph_def.node):
        if SHOWN_AT_END in node_def.attr:
            references[index] = ([True], [])
    _pass_references_on(graph_def, index_of, references)
    result = []
    for index, (node_def, part) in enumerate(zip(graph_def.node, parts, strict=True)):
        inputs, controls = [], []
        for text in node_def.input:
            name, output = parse_tensor_name(text)
            source = index_of.get(name)
            if source is None:
                raise errors.InvalidArgumentError.of(
                    f"Node '{node_def.name}': Unknown input node {shown(text)} (not in this partition)"
                )
            if output == CONTROL:
                controls.append(source)
                continue
            if output >= parts[source].node.num_outputs:
                raise errors.InvalidArgumentError.of(
                    f"Node '{node_def.name}' wants output {output} of '{name}', which has no such output"
                )
            inputs.append((source, output))
        wants_reference = references[index][0]
        if len(inputs) != len(wants_reference):
            raise errors.InvalidArgumentError.of(
                f"Node '{node_def.name}' ({node_def.op}) has {len(inputs)} inputs, expected {len(wants_reference)}",
            )
        dereferences = tuple(
            references[source][1][output] and not wanted and not (part.kernel.takes_variable and position == 0)
            for position, ((source, output), wanted) in enumerate(zip(inputs, wants_reference, strict=True))
        )
        has_list = any(argument.is_list for argument in part.node.op_def.outputs)
        result.append(
            Instruction(
                index,
                part.node,
                part.kernel,
                part.function,
                tuple(inputs),
                tuple(controls),
                dereferences,
                has_list,
                part.node.op in ALIASES and references[index][1][0],
            )
        )
    return result


def is_loop(instructions: Iterable[Instruction]) -> bool:
    """Whether there are loop frames, which the flat program cannot express."""
    return any(instruction.op in _LOOP_OPS for instruction in instructions)


def single(value: Value) -> Value:
    """The only value of a list output of length one."""
    return value[0] if isinstance(value, (tuple, list)) else value


def in_running_order(instructions: list[Instruction]) -> list[int]:
    """The indices in an order that respects every edge. InvalidArgumentError when there is a cycle.

    What others wait for (sends, waiting kernels) comes as early as possible. What changes a variable comes last, so
    that a read that no edge orders gives the value from before the step. Else the graph's own order counts.
    """
    consumers: list[list[int]] = [[] for _ in instructions]
    missing = [0] * len(instructions)
    for instruction in instructions:
        sources = instruction.sources()
        missing[instruction.index] = len(sources)
        for source in sources:
            consumers[source].append(instruction.index)

    def rank(index: int) -> tuple[int, int]:
        instruction = instructions[index]
        if instruction.kernel.asynchronous or instruction.op in SENDS:
            return 0, index
        return 2 if _CHANGES.match(instruction.op) else 1, index

    ready = [rank(index) for index, count in enumerate(missing) if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        _, index = heapq.heappop(ready)
        order.append(index)
        for consumer in consumers[index]:
            missing[consumer] -= 1
            if missing[consumer] == 0:
                heapq.heappush(ready, rank(consumer))
    if len(order) != len(instructions):
        stuck = sorted(instructions[index].name for index, count in enumerate(missing) if count)
        raise errors.InvalidArgumentError.of(f"Graph is invalid, contains a cycle through {', '.join(stuck[:5])}")
    return order


# What numpy and Python raise for arguments of the wrong shape, type or range.
_BROADCAST = re.compile(r"operands could not be broadcast together with shapes \((\S*)\) \((\S*)\) ?$")


def _plain(words: str) -> str:
    """numpy's words for shapes that do not fit together, as TensorFlow's."""
    found = _BROADCAST.match(words)
    return words if found is None else "Incompatible shapes: [{}] vs. [{}]".format(
        *(shape.rstrip(",") for shape in found.groups())
    )


_OF_ARGUMENTS = (ValueError, TypeError, IndexError, OverflowError, DecodeError)


def with_node(error: BaseException, node: kernels.KernelNode) -> errors.OpError:
    """What went wrong in a node as one of the runtime's errors, with the node named in its words.

    Python's words about values that do not fit become InvalidArgumentError, a MemoryError ResourceExhaustedError,
    anything else that is not an OpError InternalError; the original is the cause.
    """
    if isinstance(error, errors.OpError):
        if "[[{{node" in error.message:
            return error
        named = errors.error_from_code(
            error.error_code, f"{error.message}\n\t [[{{{{node {node.name}}}}}]]", error.node_def, error.op
        )
        named.derived = error.derived
        return named
    if isinstance(error, KeyboardInterrupt):
        code, words = errors.CANCELLED, "Step was interrupted"
    elif isinstance(error, MemoryError):
        code, words = errors.RESOURCE_EXHAUSTED, f"Out of memory: {error}"
    elif isinstance(error, _OF_ARGUMENTS):
        words = _plain(str(error)) if isinstance(error, ValueError) else _unsuitable(error, node)
        code = errors.INVALID_ARGUMENT
    elif isinstance(error, AttributeError) and _is_value(error.obj):
        code, words = errors.INVALID_ARGUMENT, _unsuitable(error, node)
    else:
        code, words = errors.INTERNAL, f"{type(error).__name__}: {error}"
    named = errors.error_from_code(code, f"{words}\n\t [[{{{{node {node.name}}}}}]]")
    named.__cause__ = error
    return named


def _unsuitable(error: Exception, node: kernels.KernelNode) -> str:
    return (
        f"Op '{node.op}' does not take inputs or attributes of these kinds, shapes or values "
        f"({type(error).__name__}: {error})"
    )


def _is_value(thing: object) -> bool:
    """Whether the thing is a value of a step. A peer's graph may lead each kind to any op."""
    is_plain = isinstance(thing, (np.ndarray, np.generic, ResourceHandle))
    return is_plain or is_variant(thing) or type(thing).__module__.startswith(_STATE)


_STATE = "dtf.run.state."
"""Where the classes of variables, queues, tables and the like are."""


class _Bound(NamedTuple):
    node: kernels.KernelNode
    kernel: kernels.Kernel
    function: Callable[..., Value]


def _bind(node_def: node_def_pb2.NodeDef, library: Library) -> _Bound:
    check_node(node_def, internal=True)
    if node_def.op in library:
        node_def = plain_call(node_def, library)
    try:
        op_def = opdef.get(node_def.op)
    except KeyError as error:
        raise errors.NotFoundError.of(f"{error.args[0]}\n\t [[{{{{node {node_def.name}}}}}]]") from None
    surplus = check_attributes(node_def, may_lack_values=True)
    attrs = {attr.name: attr.default for attr in op_def.attrs if attr.has_default}
    for name, value in node_def.attr.items():
        if (not name.startswith("_") or name == opdef.LABEL) and value.WhichOneof("value") is not None:
            attrs[name] = surplus[name] if name in surplus else codec.attr_to_python(value)
    absent = [attr.name for attr in op_def.attrs if attr.name not in attrs]
    if absent:
        raise errors.InvalidArgumentError.of(f"Node '{node_def.name}' ({node_def.op}) is missing attr '{absent[0]}'")
    counts = [_argument_count(argument, attrs) for argument in op_def.outputs]
    node = kernels.KernelNode(node_def.name, node_def.op, node_def.device, attrs, sum(counts), library)
    try:
        return _Bound(node, *kernels.bind(node, device_type_of(node_def.device)))
    except UnknownNameError:
        raise errors.InvalidArgumentError.of(
            f"No OpKernel was registered to support Op '{node_def.op}' with these attrs.\n"
            f"\t [[{{{{node {node_def.name}}}}}]]",
        ) from None
    except KeyError as error:
        # A kernel that is being made knows nothing but attributes: one of them names what is not there.
        words = f"An attribute of Op '{node.op}' has a value that is not known: {error.args[0] if error.args else ''}"
        raise with_node(errors.InvalidArgumentError.of(words), node) from error
    except Exception as error:
        raise with_node(error, node) from error


def _argument_count(argument: opdef.ArgDef, attrs: Mapping[str, AttrValue]) -> int:
    if argument.type_list_attr is not None:
        return len(attrs[argument.type_list_attr])
    if argument.number_attr is not None:
        return int(attrs[argument.number_attr])
    return 1


def _pass_references_on(
    graph_def: graph_pb2.GraphDef, index_of: dict[str, int], references: list[tuple[list[bool], list[bool]]]
) -> None:
    """Lets what only hands a reference on hand on the reference, so that each consumer reads the variable when it runs.

    That is what TensorFlow's shared buffers come to: a moving average that waits for the train op sees its updates, and
    so do the iterations of a loop that a variable enters as a constant, and a branch that updates it first.
    """
    waiting: dict[tuple[int, int], list[int]] = {}
    for index, node in enumerate(graph_def.node):
        if _may_pass_on(node):
            name, number = parse_tensor_name(node.input[0])
            source = index_of.get(name)
            if source is not None:
                waiting.setdefault((source, number), []).append(index)
    pending = [
        (source, number)
        for source, number in waiting
        if 0 <= number < len(references[source][1]) and references[source][1][number]
    ]
    while pending:
        for index in waiting.pop(pending.pop(), ()):
            wanted, given = references[index]
            references[index] = ([True, *wanted[1:]], [True] * len(given))
            pending.extend((index, number) for number in range(len(given)))


def _may_pass_on(node: node_def_pb2.NodeDef) -> bool:
    """Whether the outputs of a NodeDef are its first input: a copy's, a branch's, a loop's constant's."""
    if node.op in ALIASES:
        return len(node.input) == 1
    if node.op == "Switch":
        return len(node.input) > 1
    return node.op == "Enter" and len(node.input) > 0 and node.attr["is_constant"].b


def _reference_flags(node: kernels.KernelNode) -> tuple[list[bool], list[bool]]:
    """Per flattened input and output, whether it is a reference."""
    op_def = node.op_def
    inputs = [argument.is_ref for argument in op_def.inputs for _ in range(_argument_count(argument, node.attrs))]
    outputs = [argument.is_ref for argument in op_def.outputs for _ in range(_argument_count(argument, node.attrs))]
    return inputs, outputs
