"""A peer's graph may lead any object to any op: each op refuses other kinds, and no message shows addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtf as tf
from dtf.run.executor.executor import run_graph_def
from dtf.run.kernels.op_index import OPS
from dtf.run.state.staging import Mutex
from dtf.wire import codec, dtypes, errors, opdef, tensor_frames
from dtf.wire.pb import graph_pb2
from dtf.wire.tensor_shape import TensorShape
from tests.runtime.graphs import GraphBuilder

HANDLES: dict[str, dict[str, Any]] = {
    "VarHandleOp": {"dtype": dtypes.float32, "shape": TensorShape([2])},
    "FIFOQueueV2": {"component_types": [dtypes.float32]},
    "HashTableV2": {"key_dtype": dtypes.int64, "value_dtype": dtypes.int64},
    "MutableHashTableV2": {"key_dtype": dtypes.int64, "value_dtype": dtypes.int64},
    "TFRecordReaderV2": {},
    "StackV2": {},
    "TensorArrayV3": {},
    "MutexV2": {},
    "IteratorV2": {
        "shared_name": b"shared", "container": b"", "output_types": [dtypes.float32],
        "output_shapes": [TensorShape([])],
    },
    "ResourceConditionalAccumulator": {"dtype": dtypes.float32, "shape": TensorShape([2])},
}  # fmt: skip
REFERENCES: dict[str, dict[str, Any]] = {
    "VariableV2": {"dtype": dtypes.string, "shape": TensorShape([2])},
    "FIFOQueue": {"component_types": [dtypes.float32]},
    "HashTable": {"key_dtype": dtypes.int64, "value_dtype": dtypes.int64},
    "TFRecordReader": {},
    "Barrier": {"component_types": [dtypes.float32], "shapes": [TensorShape([])]},
    "ConditionalAccumulator": {"dtype": dtypes.float32, "shape": TensorShape([2])},
}
@pytest.fixture(scope="module")
def server():
    server = tf.train.Server.create_local_server()
    yield server
    server.stop()


ANSWERS_LATER = {
    "Queue": "FIFOQueue", "Barrier": "Barrier", "Accumulator": "ConditionalAccumulator",
    "ResourceAccumulator": "ResourceConditionalAccumulator",
}  # fmt: skip
"""Beginnings of ops that wait for others where the object is of their own kind: that kind is left out."""


def ops_with(wants: Callable[[opdef.ArgDef], bool]) -> list[str]:
    """The ops that have a kernel and such an input, and call no functions."""
    names = sorted(name for text in OPS.values() for name in text.split() if opdef.exists(name))
    return [
        name
        for name in names
        if any(map(wants, opdef.get(name).inputs))
        and not name.startswith("Collective")  # they need a group of tasks
        and not any(attr.type in ("func", "list(func)") for attr in opdef.get(name).attrs)
    ]


TAKE_HANDLES = ops_with(lambda argument: argument.type == dtypes.resource)
TAKE_REFERENCES = ops_with(lambda argument: argument.is_ref)


def add_op(g: GraphBuilder, name: str, attrs: dict[str, Any], resource: str = "") -> str:
    """The op with small values; `resource` is its first resource or reference."""
    declared = opdef.get(name)
    values: dict[str, Any] = {}
    for attr in declared.attrs:
        values[attr.name] = attrs.get(attr.name, attr.default if attr.has_default else plain_attr(attr))
    inputs = []
    for argument in declared.inputs:
        if argument.type_list_attr is not None:
            types = values[argument.type_list_attr]
        else:
            one = argument.type if argument.type is not None else values[argument.type_attr]
            types = [one] * (values[argument.number_attr] if argument.number_attr else 1)
        for dtype in types:
            if dtype == dtypes.resource or argument.is_ref:
                inputs.append(resource)
            elif dtype == dtypes.variant:
                inputs.append(add_op(g, "EmptyTensorList", {}))
            else:
                inputs.append(g.const(value_of(dtype)))
    return g.node(name, *inputs, **values)


def plain_attr(attr: opdef.AttrDef) -> Any:
    plain: dict[str, Any] = {
        "type": attr.allowed[0] if attr.allowed else dtypes.float32, "int": max(1, attr.minimum or 1), "float": 1.0,
        "bool": False, "string": attr.allowed[0] if attr.allowed else b"x", "shape": TensorShape([2]),
        "tensor": np.float32([1, 2]),
    }  # fmt: skip
    return [plain[attr.type[5:-1]]] * max(1, attr.minimum or 1) if attr.type.startswith("list") else plain[attr.type]


def value_of(dtype: dtypes.DType) -> Any:
    if dtype == dtypes.string:
        return np.array([b"a", b"b"], object)
    return np.zeros(2 if dtype.is_floating else (), dtype.as_numpy_dtype)


def outcome(graph_def: graph_pb2.GraphDef, target: str) -> errors.OpError | None:
    """Runs the node as a peer would, past the checks of the construction of graphs."""
    try:
        run_graph_def(graph_def, [], targets=[target])
    except errors.OpError as error:
        return error
    return None


def check_refused_by_kind(name: str, makers: dict[str, dict[str, Any]]) -> None:
    wrong = []
    for maker, attrs in makers.items():
        if any(name.startswith(begin) and maker.startswith(kind) for begin, kind in ANSWERS_LATER.items()):
            continue
        g = GraphBuilder()
        error = outcome(g.graph_def, add_op(g, name, {}, add_op(g, maker, attrs)))
        if isinstance(error, (errors.InternalError, errors.UnknownError)) or " object at 0x" in str(error):
            wrong.append(f"{maker}: {error!r}")
    assert not wrong


@pytest.mark.parametrize("name", TAKE_HANDLES)
def test_an_op_that_takes_a_handle_refuses_objects_of_other_kinds_by_name(name):
    check_refused_by_kind(name, HANDLES)


@pytest.mark.parametrize("name", TAKE_REFERENCES)
def test_an_op_that_takes_a_reference_refuses_objects_of_other_kinds_by_name(name):
    check_refused_by_kind(name, REFERENCES)


def test_a_private_object_is_found_only_under_its_own_kind():
    g = GraphBuilder()
    queue = g.node("FIFOQueueV2", component_types=[dtypes.float32])
    size = g.node("ReaderNumRecordsProducedV2", queue)
    error = outcome(g.graph_def, size)
    assert isinstance(error, errors.InvalidArgumentError)
    assert "of type 'Queue', but the type 'Reader' is expected" in error.message


@pytest.mark.parametrize("maker", [maker for maker in REFERENCES if maker != "VariableV2"])
def test_a_fetched_reference_to_an_object_is_its_container_and_name(maker, server):
    g = GraphBuilder()
    name = add_op(g, maker, REFERENCES[maker])
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(g.graph_def, name="")
    for target in ("", server.target):
        with tf.Session(target, graph=graph) as session:
            container, shown = session.run(f"{name}:0")
            assert container == b"" and shown.endswith(name.encode())


def test_an_object_that_is_not_a_tensor_is_refused_without_its_address():
    for encode in (codec.encode_tensor, lambda value: tensor_frames.pack([value])):
        with pytest.raises(errors.InvalidArgumentError, match="type Mutex cannot leave its task") as caught:
            encode(Mutex("m"))
        assert "0x" not in str(caught.value)


def test_an_exit_without_a_loop_is_refused():
    g = GraphBuilder()
    loop = g.node("Enter", g.const(np.float32(1)), T=dtypes.float32, frame_name=b"f")
    out = g.node("Exit", g.node("Exit", loop, T=dtypes.float32), T=dtypes.float32)
    error = outcome(g.graph_def, out)
    assert isinstance(error, errors.InvalidArgumentError)


def test_a_variant_where_an_op_wants_a_string_is_refused():
    g = GraphBuilder()
    variant = g.node("OptionalNone")
    name = g.node("DeserializeSparse", variant, dtype=dtypes.float32, Tserialized=dtypes.variant)
    assert isinstance(outcome(g.graph_def, name), errors.InvalidArgumentError)


def test_a_string_that_is_not_the_message_that_an_op_wants_is_refused():
    g = GraphBuilder()
    tag, text = g.const(np.array(b"t", object)), g.const(np.array(b"\xff\xff", object))
    name = g.node("TensorSummaryV2", tag, g.const(np.float32(1)), text, T=dtypes.float32)
    assert isinstance(outcome(g.graph_def, name), errors.InvalidArgumentError)
