"""Which operations change state, which of them a durable task keeps, and which it refuses.

Owns the tables. A stateful operation that is in none of them is refused on a durable task: its state would be lost
without a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dtf.wire import errors, opdef
from dtf.wire.pb import function_pb2, graph_pb2, node_def_pb2, types_pb2

__all__ = ["MARK", "changes_state", "check_kept", "draws", "is_kept", "mark_once"]

MARK = "_once"
"""An attribute of nodes that change state, in the partitions of a step that may be sent again."""

_VARIABLE_CHANGES = re.compile(
    r"(Resource)?(Sparse)?(Assign(Add|Sub)?(VariableOp)?|Scatter\w+|Apply\w+|StridedSliceAssign|CountUpTo)$|"
    r"Rng(Skip|ReadAndSkip)$|Stateful(Uniform(FullInt|Int)?|(Standard|Truncated)Normal(V2)?|RandomBinomial)$"
)
_ALSO_KEPT = frozenset({"DestroyResourceOp"})
_WITHOUT_STATE = frozenset(
    """
    _Send _Recv _HostSend _HostRecv _Arg _Retval NoOp Const Placeholder PlaceholderV2 PlaceholderWithDefault
    Variable VariableV2 VarHandleOp _VarHandlesOp ReadVariableOp _ReadVariablesOp VarIsInitializedOp
    IsVariableInitialized VariableShape ResourceGather ResourceGatherNd TemporaryVariable DestroyTemporaryVariable
    RefIdentity RefSwitch RefMerge RefSelect RefEnter RefExit RefNextIteration
    Assert Print PrintV2 Timestamp Save SaveSlices SaveV2
    Restore RestoreSlice RestoreV2 GenerateVocabRemapping LoadAndRemapMatrix MergeV2Checkpoints
    ShardedFilename ShardedFilespec ReadFile WriteFile MatchingFiles Abort
    NonDeterministicInts SaveIncrement CheckNumerics CheckNumericsV2 DeepCopy Empty GuaranteeConst StatelessRandomGetAlg
    _ParallelConcatStart
    """.split()
)
_OF_A_STEP = re.compile(r"(TensorArray|Stack)\w*")
_HANDLES = re.compile(
    r"(FIFO|PaddingFIFO|Priority|RandomShuffle)Queue(V2)?|QueueSize(V2)?|QueueIsClosed(V2)?|Iterator(V2)?|"
    r"OneShotIterator|\w*Dataset(V\d)?|(Sparse)?ConditionalAccumulator|AccumulatorNumAccumulated|(Mutable)?HashTable\w*|"
    r"LookupTable(Find|Size|Export)\w*|\w*Reader(V2)?|Barrier\w*Size|SummaryWriter"
)
"""Makers and readers of state that a worker has: a repeated step may run them again."""
_OBJECTS = re.compile(
    r"((Padding)?FIFO|Priority|RandomShuffle)Queue(V2)?|(Sparse|Resource)?ConditionalAccumulator|Barrier|WorkQueue|"
    r"(Mutable(Dense)?)?HashTable(OfTensors)?(V2)?"
)
_OBJECT_READS = re.compile(
    r"Queue(Size|IsClosed)(V2)?|(Resource)?AccumulatorNumAccumulated|LookupTable(Find|Size|Export)(V2)?|"
    r"Stage(Size|Peek)|(Ordered)?Map(Peek|Size|IncompleteSize)|Barrier(Ready|Incomplete)Size|WorkQueueExport"
)
_OBJECT_CHANGES = re.compile(
    r"Queue(Enqueue|EnqueueMany|Dequeue|DequeueMany|DequeueUpTo|Close)(V2)?|"
    r"((Sparse|Resource)?Accumulator(ApplyGradient|TakeGradient)|(Resource)?AccumulatorSetGlobalStep)|"
    r"LookupTable(Insert|Import|Remove)(V2)?|InitializeTable(FromTextFile)?(V2)?|Barrier(InsertMany|TakeMany|Close)|"
    r"(Ordered)?Map(Stage|Unstage|UnstageNoKey|Clear)|Stage|Unstage|StageClear|"
    r"WorkQueue(Create|Take|Confirm|Release|Restore)"
)
_DRAWS = frozenset(
    """
    RandomUniform RandomStandardNormal TruncatedNormal RandomUniformInt RandomShuffle Multinomial RandomGamma
    RandomPoisson RandomPoissonV2 ParameterizedTruncatedNormal SampleDistortedBoundingBox SampleDistortedBoundingBoxV2
    UniformCandidateSampler LogUniformCandidateSampler FixedUnigramCandidateSampler
    """.split()
)
"""Their generators are streams (`durable_streams`), and how far each has come is kept."""
_TYPES = ("component_types", "dtypes", "Tcomponents")
_ELEMENTS_NOT_KEPT = frozenset({types_pb2.DT_RESOURCE, types_pb2.DT_VARIANT})


def is_kept(op: str) -> bool:
    """Whether the operation changes state of a kind that a durable task keeps."""
    return (
        _VARIABLE_CHANGES.match(op) is not None
        or op in _ALSO_KEPT
        or op in _DRAWS
        or _OBJECT_CHANGES.fullmatch(op) is not None
    )


def draws(op: str) -> bool:
    """Whether the operation draws random numbers, which may be large. A step that is sent again after a restart draws
    the same ones again instead of taking a recorded result.
    """
    return op in _DRAWS


def changes_state(op: str) -> bool:
    """Whether the operation may change state that outlives its step, so that a repeated step must not run it again."""
    if is_kept(op):
        return True
    return _has_state(op) and not _HANDLES.fullmatch(op)


def _has_state(op: str) -> bool:
    """Whether the operation makes, reads or changes state that outlives its step, variables left out."""
    if op in _WITHOUT_STATE or _OF_A_STEP.fullmatch(op):
        return False
    try:
        op_def = opdef.get(op)
    except KeyError:
        return True  # a call of a function
    return op_def.is_stateful or any(each.is_ref for each in op_def.inputs)


def mark_once(graph_defs: Iterable[graph_pb2.GraphDef]) -> None:
    """Marks the nodes of the partitions of a step that must not run again when the step is sent again."""
    for graph_def in graph_defs:
        for node in graph_def.node:
            if changes_state(node.op):
                node.attr[MARK].b = True


def check_kept(graph_def: graph_pb2.GraphDef, task: str) -> None:
    """Refuses a partition whose state a durable task would lose.

    Raises:
      UnimplementedError: names the node, its operation and the task.
    """
    functions = {function.signature.name: function for function in graph_def.library.function}
    for node in graph_def.node:
        reason = _reason(node, functions)
        if reason is not None:
            raise errors.UnimplementedError.of(
                f"{task} is durable, and cannot keep the state of node '{node.name}' ({node.op}): "
                f"{reason}. Place it on a worker, or set durability to 'none'.",
            )


def _reason(node: node_def_pb2.NodeDef, functions: Mapping[str, function_pb2.FunctionDef]) -> str | None:
    if is_kept(node.op) or _OBJECTS.fullmatch(node.op):
        types = {each for name in _TYPES if name in node.attr for each in node.attr[name].list.type}
        return "handles and datasets as elements are not kept" if types & _ELEMENTS_NOT_KEPT else None
    called = _called(node, functions)
    if called:
        refused = _first_refused(called, functions, set())
        return None if refused is None else f"its function has '{refused.name}' ({refused.op})"
    if _OBJECT_READS.fullmatch(node.op):
        return None
    return "state of this kind is not kept" if _has_state(node.op) else None


def _called(node: node_def_pb2.NodeDef, functions: Mapping[str, function_pb2.FunctionDef]) -> list[str]:
    names = [node.op] if node.op in functions else []
    for attr in node.attr.values():
        if attr.HasField("func"):
            names.append(attr.func.name)
        names += [func.name for func in attr.list.func]
    return names


def _first_refused(
    names: Iterable[str], functions: Mapping[str, function_pb2.FunctionDef], seen: set[str]
) -> node_def_pb2.NodeDef | None:
    """The first node of the functions, or of those that they call, whose state would be lost."""
    for name in names:
        if name in seen or name not in functions:
            continue
        seen.add(name)
        for node in functions[name].node_def:
            called = _called(node, functions)
            if not called and _reason(node, functions) is not None:
                return node
            found = _first_refused(called, functions, seen)
            if found is not None:
                return found
    return None
