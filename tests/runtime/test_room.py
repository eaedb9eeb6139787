"""An op whose result is far larger than its inputs looks at the room for it: an error, and not a killed process."""

from __future__ import annotations

import resource
from typing import Any

import numpy as np
import pytest

from dtf.run.executor.broadcasts import BROADCASTS
from dtf.run.executor.executor import run_graph_def
from dtf.run.kernels import registered_ops
from dtf.run.lib import onednn
from dtf.wire import dtypes, errors, limits, opdef
from tests.runtime.graphs import GraphBuilder

LIMIT_BYTES = 64 << 20
MANY = (1 << 24) + 3
WIDE = 16384


@pytest.fixture(autouse=True)
def little_room(monkeypatch):
    monkeypatch.setenv(limits.TENSOR_BYTES.variable, str(LIMIT_BYTES))
    monkeypatch.setenv(onednn.SWITCH, "numpy")  # oneDNN pads no copy of an image for a large window
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    yield
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before < 3 * LIMIT_BYTES


def assert_no_room(op: str, *values: Any, **attrs: Any) -> None:
    """Runs `op` with these inputs as feeds; arrays of one list are a list input of the op."""
    g = GraphBuilder()
    feeds: dict[str, Any] = {}
    for value in values:
        array = np.asarray(value)
        name = g.node("Placeholder", dtype=dtypes.as_dtype(array.dtype))
        feeds[f"{name}:0"] = array
    node = g.node(op, *(name.removesuffix(":0") for name in feeds), **attrs)
    outputs = [f"{node}:0"]
    with pytest.raises(errors.ResourceExhaustedError, match=limits.TENSOR_BYTES.variable):
        run_graph_def(g.graph_def, outputs, feeds)


def crossed(op: str) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Inputs [n, 1] and [1, n] in turn, of a type that the op takes, and its type attributes."""
    contract = opdef.get(op)
    attrs: dict[str, Any] = {}
    for attr in contract.attrs:
        if attr.type == "type" and not attr.has_default:
            allowed = attr.allowed or (dtypes.float32,)
            attrs[attr.name] = next((t for t in (dtypes.float32, dtypes.int32) if t in allowed), allowed[0])
    values = []
    for number, argument in enumerate(contract.inputs):
        dtype = dtypes.as_dtype(argument.type) if argument.type_attr is None else attrs.get(argument.type_attr)
        dtype = dtype or dtypes.float32
        values.append(np.ones((WIDE, 1) if number % 2 else (1, WIDE), dtype.as_numpy_dtype))
    return values, attrs


@pytest.mark.parametrize("op", sorted(BROADCASTS))
def test_a_broadcast_of_two_long_inputs_must_look_at_the_room(op):
    values, attrs = crossed(op)
    assert_no_room(op, *values, **attrs)


def test_every_op_of_the_list_must_have_a_kernel():
    assert set(registered_ops()) >= BROADCASTS


@pytest.mark.parametrize("is_in_loop", [False, True], ids=["flat", "loop"])
def test_a_constant_broadcast_must_look_at_the_room_wherever_it_runs(is_in_loop):
    g = GraphBuilder()
    sides = [g.const(np.ones(shape, np.float32)) for shape in ((WIDE, 1), (1, WIDE))]
    if is_in_loop:
        sides = [
            g.node("Enter", side, T=dtypes.float32, frame_name=b"loop", is_constant=True, parallel_iterations=1)
            for side in sides
        ]
    total = g.node("AddV2", *sides, T=dtypes.float32)
    total = g.node("Exit", total, T=dtypes.float32) if is_in_loop else total
    with pytest.raises(errors.ResourceExhaustedError, match=limits.TENSOR_BYTES.variable):
        run_graph_def(g.graph_def, [f"{total}:0"])


F32, I32 = dtypes.float32, dtypes.int32
IMAGE = np.ones((1, 4, 4, 1), np.float32)
COLUMN, ROW = np.ones((WIDE, 1), np.float32), np.ones((1, WIDE), np.float32)
ROWS_OF_ONE_MB = np.ones((1, 1 << 18), np.float32)
NO_PADDING = {"strides": [1, 1, 1, 1], "padding": b"SAME"}

CASES: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "fill": ("Fill", [np.int32([MANY]), np.float32(1)], {"T": F32, "index_type": I32}),
    "zeros of a shape": ("Empty", [np.int32([MANY])], {"dtype": F32}),
    "broadcast to": ("BroadcastTo", [np.float32(1), np.int32([MANY])], {"T": F32, "Tidx": I32}),
    "tile": ("Tile", [np.float32([1]), np.int32([MANY])], {"T": F32, "Tmultiples": I32}),
    "pad": ("PadV2", [np.float32([1]), np.int32([[0, MANY]]), np.float32(0)], {"T": F32, "Tpaddings": I32}),
    "range": ("Range", [np.int32(0), np.int32(MANY), np.int32(1)], {"Tidx": I32}),
    "range of floats": ("Range", [np.float32(0), np.float32(MANY), np.float32(1)], {"Tidx": F32}),
    "line": ("LinSpace", [np.float32(0), np.float32(1), np.int32(MANY)], {"T": F32, "Tidx": I32}),
    "one hot": ("OneHot", [np.int32([1] * 100), np.int32(MANY), np.float32(1), np.float32(0)],
                {"T": F32, "TI": I32, "axis": -1}),
    "gather": ("GatherV2", [ROWS_OF_ONE_MB, np.zeros(1000, np.int32), np.int32(0)],
               {"Tparams": F32, "Tindices": I32, "Taxis": I32, "batch_dims": 0}),
    "gather by positions": ("GatherNd", [ROWS_OF_ONE_MB, np.zeros((1000, 1), np.int32)],
                            {"Tparams": F32, "Tindices": I32}),
    "gather nothing but rows": ("GatherNd", [ROWS_OF_ONE_MB, np.zeros((1000, 0), np.int32)],
                                {"Tparams": F32, "Tindices": I32}),
    "scatter": ("ScatterNd", [np.int32([[0]]), np.float32([1]), np.int32([MANY])], {"T": F32, "Tindices": I32}),
    "stitch": ("DynamicStitch", [np.int32([MANY]), np.float32([1])], {"T": F32, "N": 1}),
    "sparse to dense": ("SparseToDense", [np.int32([0]), np.int32([MANY]), np.float32(1), np.float32(0)],
                        {"T": F32, "Tindices": I32, "validate_indices": True}),
    "segments": ("UnsortedSegmentSum", [np.float32([1]), np.int32([0]), np.int32(MANY)],
                 {"T": F32, "Tindices": I32, "Tnumsegments": I32}),
    "bins": ("Bincount", [np.int32([1]), np.int32(MANY), np.float32([1])], {"T": F32}),
    "random": ("RandomUniform", [np.int32([MANY])], {"T": I32, "dtype": F32}),
    "random normal": ("RandomStandardNormal", [np.int32([MANY])], {"T": I32, "dtype": F32}),
    "random integers": ("RandomUniformInt", [np.int32([MANY]), np.int32(0), np.int32(9)], {"T": I32, "Tout": I32}),
    "stateless random": ("StatelessRandomUniform", [np.int32([MANY]), np.int32([1, 2])],
                         {"T": I32, "Tseed": I32, "dtype": F32}),
    "draws": ("Multinomial", [np.ones((1, 2), np.float32), np.int32(MANY)],
              {"T": F32, "output_dtype": dtypes.int64}),
    "gamma": ("RandomGamma", [np.int32([MANY]), np.float32(1)], {"S": I32, "T": F32}),
    "poisson": ("RandomPoissonV2", [np.int32([MANY]), np.float32(1)], {"S": I32, "R": F32, "dtype": F32}),
    "all candidates": ("AllCandidateSampler", [np.int64([[0]])], {"num_true": 1, "num_sampled": MANY, "unique": True}),
    "outer product": ("MatMul", [COLUMN, ROW], {"T": F32, "transpose_a": False, "transpose_b": False}),
    "outer products": ("BatchMatMulV2", [COLUMN[None], ROW], {"T": F32, "adj_x": False, "adj_y": False}),
    "outer product of halves": ("SparseMatMul", [COLUMN, ROW], {"Ta": F32, "Tb": F32}),
    "sparse product": ("SparseTensorDenseMatMul",
                       [np.int64([[0, 0]]), np.float32([1]), np.int64([MANY, 1]), np.float32([[1]])],
                       {"T": F32, "Tindices": dtypes.int64}),
    "diagonal": ("MatrixDiag", [ROW[0]], {"T": F32}),
    "square": ("Diag", [ROW[0]], {"T": F32}),
    "full Q": ("Qr", [COLUMN], {"T": F32, "full_matrices": True}),
    "full U": ("Svd", [COLUMN], {"T": F32, "full_matrices": True, "compute_uv": True}),
    "resized": ("ResizeBilinear", [IMAGE, np.int32([9001, 9001])], {"T": F32}),
    "cropped": ("CropAndResize", [IMAGE, np.float32([[0, 0, 1, 1]]), np.int32([0]), np.int32([9001, 9001])],
                {"T": F32}),
    "warped": ("ImageProjectiveTransformV2", [IMAGE, np.ones((1, 8), np.float32), np.int32([9001, 9001])],
               {"dtype": F32, "interpolation": b"NEAREST", "fill_mode": b"CONSTANT"}),
    "glimpse": ("ExtractGlimpse", [IMAGE, np.int32([9001, 9001]), np.float32([[0, 0]])],
                {"noise": b"zero", "uniform_noise": False, "centered": True, "normalized": True}),
    "patches": ("ExtractImagePatches", [IMAGE],
                {"T": F32, "ksizes": [1, 9001, 9001, 1], "strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1],
                 "padding": b"SAME"}),
    "pool": ("MaxPool", [IMAGE], {"T": F32, "ksize": [1, 9001, 9001, 1], **NO_PADDING}),
    "blocks": ("SpaceToBatchND", [IMAGE, np.int32([1]), np.int32([[0, MANY]])],
               {"T": F32, "Tblock_shape": I32, "Tpaddings": I32}),
    "empty rows": ("SparseFillEmptyRows", [np.int64([[0, 0]]), np.float32([1]), np.int64([MANY, 1]), np.float32(0)],
                   {"T": F32}),
    "distances": ("EditDistance", [np.int64([[0, 0]]), np.int32([1]), np.int64([MANY, 1])] * 2, {"T": I32}),
    "ragged ranges": ("RaggedRange", [np.int32([0] * 3), np.int32([MANY] * 3), np.int32([1] * 3)],
                      {"T": I32, "Tsplits": I32}),
    "padded suppression": ("NonMaxSuppressionV4", [np.float32([[0, 0, 1, 1]]), np.float32([1]), np.int32(MANY),
                                                   np.float32(0.5), np.float32(0)],
                           {"T": F32, "T_threshold": F32, "pad_to_max_output_size": True}),
    "spectrogram": ("AudioSpectrogram", [np.ones((4, 1), np.float32)], {"window_size": MANY, "stride": 1}),
    "coefficients": ("Mfcc", [np.ones((1, 1, 4), np.float32), np.int32(8000)],
                     {"filterbank_channel_count": 9001, "dct_coefficient_count": 9001}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_larger_than_its_inputs_must_look_at_the_room(case):
    op, values, attrs = CASES[case]
    assert_no_room(op, *values, **attrs)


def test_one_tensor_named_many_times_must_look_at_the_room_for_all():
    for op, attrs in (("Pack", {"axis": 0}), ("ConcatV2", {"Tidx": I32})):
        g = GraphBuilder()
        x = g.node("Placeholder", dtype=F32)
        last = [g.const(np.int32(0))] if op == "ConcatV2" else []
        out = g.node(op, *([x] * 100), *last, T=F32, N=100, **attrs)
        with pytest.raises(errors.ResourceExhaustedError, match=limits.TENSOR_BYTES.variable):
            run_graph_def(g.graph_def, [f"{out}:0"], {f"{x}:0": np.ones((1, 1 << 20), np.float32)})


def test_strings_that_grow_must_look_at_the_room():
    many, long = np.full(1 << 10, b"", object), np.array(b"a" * (1 << 17), object)
    g = GraphBuilder()
    left, right = (g.node("Placeholder", dtype=dtypes.string) for _ in range(2))
    joined = g.node("StringJoin", left, right, N=2, separator=b"")
    with pytest.raises(errors.ResourceExhaustedError, match=limits.TENSOR_BYTES.variable):
        run_graph_def(g.graph_def, [f"{joined}:0"], {f"{left}:0": many, f"{right}:0": long})
    replaced = g.node("StaticRegexReplace", left, pattern=b"a", rewrite=b"b" * 1000, replace_global=True)
    with pytest.raises(errors.ResourceExhaustedError, match=limits.TENSOR_BYTES.variable):
        run_graph_def(g.graph_def, [f"{replaced}:0"], {f"{left}:0": long.reshape(1)})


def test_small_broadcasts_must_not_be_looked_at(monkeypatch):
    def fail(*_: Any) -> None:
        raise AssertionError("it looked")

    monkeypatch.setattr(limits, "check_room", fail)
    g = GraphBuilder()
    x = g.node("Placeholder", dtype=F32)
    y = g.node("AddV2", x, g.const(np.float32([1, 2])), T=F32)
    (result,) = run_graph_def(g.graph_def, [f"{y}:0"], {f"{x}:0": np.float32([[1], [2]])})
    assert result.shape == (2, 2)
