"""Cases of the array ops."""

from __future__ import annotations

import numpy as np

import dtf as tf
from dtf.build.apply import apply_op
from dtf.run.executor import executor
from dtf.run.state.resources import Variable
from dtf.wire import errors
from tests.runtime.op_cases import Case


def doubles(*shape: int) -> np.ndarray:
    """Distinct numbers of both signs, the same at each call."""
    return np.random.RandomState(sum(shape) + len(shape)).uniform(-2.0, 2.0, shape)


def floats32(*shape: int) -> np.ndarray:
    """As `doubles`, of float32."""
    return doubles(*shape).astype(np.float32)


def ints(values) -> np.ndarray:
    return np.array(values, np.int32)


def longs(values) -> np.ndarray:
    return np.array(values, np.int64)


def strings(values) -> np.ndarray:
    return np.array(values, object)


def evaluate(*fetches, feeds=None):
    """The values of tensors of the default graph."""
    fed = {tensor.name: value for tensor, value in (feeds or {}).items()}
    return executor.run_graph_def(fetches[0].graph.as_graph_def(), [tensor.name for tensor in fetches], fed)


def fails_with(error_class, text: str, make, feed=None) -> None:
    """Runs what `make(placeholder)` builds, fed with `feed`, and checks the error."""
    with tf.Graph().as_default():
        holder = tf.placeholder(tf.as_dtype(np.asarray(feed).dtype) if feed is not None else tf.float32)
        fetch = make(holder)
        try:
            evaluate(fetch, feeds={} if feed is None else {holder: feed})
        except error_class as error:
            assert text in error.message, error.message
        else:
            raise AssertionError(f"no {error_class.__name__} with {text!r}")


def constant_is_its_value():
    with tf.Graph().as_default():
        assert evaluate(tf.constant([[1, 2]]))[0].tolist() == [[1, 2]]


def an_unfed_placeholder_names_itself_and_its_type():
    with tf.Graph().as_default():
        try:
            evaluate(tf.identity(tf.placeholder(tf.float32, [None, 3], name="x")))
        except errors.InvalidArgumentError as error:
            assert "You must feed a value for placeholder tensor 'x' with dtype float and shape [?,3]" in error.message
        else:
            raise AssertionError("an unfed placeholder gave a value")


def an_unfed_old_placeholder_names_itself():
    with tf.Graph().as_default() as graph:
        graph._producer = 1  # a graph of the time when it had such placeholders
        holder = apply_op("PlaceholderV2", "y", dtype=tf.float64, shape=tf.TensorShape([]))
        try:
            evaluate(tf.identity(holder))
        except errors.InvalidArgumentError as error:
            assert "placeholder tensor 'y' with dtype double" in error.message
        else:
            raise AssertionError("an unfed placeholder gave a value")


def a_gather_out_of_range_names_the_index():
    fails_with(
        errors.InvalidArgumentError,
        "indices[1] = 7 is not in [0, 5)",
        lambda indices: tf.gather(tf.zeros([5, 2]), indices),
        ints([0, 7]),
    )


def a_bad_reshape_names_both_sizes():
    fails_with(
        errors.InvalidArgumentError,
        "Input to reshape is a tensor with 6 values, but the requested shape has 8",
        lambda shape: tf.reshape(tf.zeros([2, 3]), shape),
        ints([2, 4]),
    )


def a_slice_is_assigned_into_a_variable():
    from dtf.run.kernels import lookup

    node = FakeNode({"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0})
    variable = Variable("v", tf.float64)
    variable.assign(np.zeros(4))
    assign = lookup("StridedSliceAssign").factory(node)
    assert assign(variable, ints([1]), ints([3]), ints([1]), np.array([5.0, 6.0])) is variable
    assert variable.read().tolist() == [0, 5, 6, 0]


def a_reference_stays_a_reference():
    from dtf.run.kernels import lookup

    variable = Variable("v", tf.float64)
    assert lookup("RefIdentity").factory(FakeNode({}))(variable) is variable


class FakeNode:
    """A node for a kernel that is called by hand."""

    name = "node"
    op = ""

    def __init__(self, attrs) -> None:
        self.attrs = attrs

    def attr(self, name: str):
        return self.attrs[name]


MASKS = {"begin_mask": 1, "end_mask": 1, "ellipsis_mask": 0, "new_axis_mask": 2, "shrink_axis_mask": 4}


def reverse_sequences(x, lengths):
    out = x.copy()
    for i, length in enumerate(lengths):
        out[i, :length] = x[i, :length][::-1]
    return out


def patches(images):
    rows = [
        np.concatenate([images[:, i + a, j + b] for a in (0, 1) for b in (0, 1)], axis=-1)
        for i in range(2)
        for j in range(2)
    ]
    return np.stack(rows, axis=1).reshape(images.shape[0], 2, 2, -1)


def scattered(function):
    def expect(tensor, indices, updates):
        out = tensor.copy()
        function.at(out, indices[:, 0], updates)
        return out

    return expect


def updated(tensor, indices, updates):
    out = tensor.copy()
    out[indices[:, 0]] = updates
    return out


def with_diagonal(x, diagonal):
    out = x.copy()
    for i in range(diagonal.shape[-1]):
        out[..., i, i] = diagonal[..., i]
    return out


def mirrored_sum(y):
    """The sum onto the middle of what a reflection of [[0, 0], [2, 1]] copied."""
    x = y[:, 2:-1].copy()
    x[:, 1] += y[:, 1]
    x[:, 2] += y[:, 0]
    x[:, -2] += y[:, -1]
    return x


CASES = [
    Case("Const", run=constant_is_its_value),
    Case("Placeholder", run=an_unfed_placeholder_names_itself_and_its_type),
    Case("PlaceholderV2", run=an_unfed_old_placeholder_names_itself),
    Case("PlaceholderWithDefault", [doubles(2)], {"shape": tf.TensorShape([None])}, lambda x: x, grad=True),
    Case("Identity", [doubles(2, 3)], expect=lambda x: x, grad=True),
    Case("Identity", [strings(b"a")], expect=lambda x: x, name="a_scalar_string"),
    Case("IdentityN", [[doubles(2), ints([1])]], expect=lambda x, y: [x, y], grad=[0]),
    Case("RefIdentity", run=a_reference_stays_a_reference),
    Case("Snapshot", [doubles(2)], expect=lambda x: x, grad=True),
    Case("GuaranteeConst", [doubles(2)], expect=lambda x: x, grad=True),
    Case("DeepCopy", [doubles(2)], expect=lambda x: x, grad=True),
    Case("StopGradient", [doubles(2)], expect=lambda x: x),
    Case("PreventGradient", [doubles(2)], expect=lambda x: x),
    Case("CheckNumerics", [doubles(2)], {"message": "m"}, lambda x: x, grad=True),
    Case(
        "CheckNumerics",
        run=lambda: fails_with(
            errors.InvalidArgumentError, "m : Tensor had NaN", lambda x: tf.check_numerics(x, "m"), np.array([np.nan])
        ),
        name="a_nan",
    ),
    Case("EnsureShape", [doubles(2, 3)], {"shape": tf.TensorShape([None, 3])}, lambda x: x, grad=True),
    Case("Bitcast", [np.array([1.0, 2.0], np.float32)], {"type": tf.int32}, lambda x: x.view(np.int32)),
    Case("Bitcast", [longs([1, 2])], {"type": tf.int32}, lambda x: x.view(np.int32).reshape(2, 2), name="smaller"),
    Case("Bitcast", [ints([[1, 2]])], {"type": tf.int64}, lambda x: x.view(np.int64)[:, 0], name="larger"),
    # shapes
    Case("Shape", [doubles(2, 3)], {"out_type": tf.int64}, longs([2, 3])),
    Case("ShapeN", [[doubles(2, 3), doubles(1)]], expect=[ints([2, 3]), ints([1])]),
    Case("Size", [doubles(2, 3)], expect=np.int32(6)),
    Case("Rank", [doubles(2, 3)], expect=np.int32(2)),
    Case("Reshape", [doubles(2, 3), ints([3, -1])], expect=lambda x, s: x.reshape(3, 2), grad=[0]),
    Case("Reshape", run=a_bad_reshape_names_both_sizes, name="a_bad_size"),
    Case("Squeeze", [doubles(1, 2, 1)], expect=lambda x: x.reshape(2), grad=True),
    Case("Squeeze", [doubles(1, 2, 1)], {"squeeze_dims": [-1]}, lambda x: x[..., 0], grad=True, name="one_axis"),
    Case("ExpandDims", [doubles(2, 3), np.int32(-1)], expect=lambda x, d: x[..., None], grad=[0]),
    Case("BroadcastTo", [doubles(3, 1), ints([2, 3, 4])], expect=lambda x, s: np.broadcast_to(x, (2, 3, 4)), grad=[0]),
    Case("BroadcastArgs", [ints([3, 1]), ints([2, 1, 4])], expect=ints([2, 3, 4])),
    Case("BroadcastGradientArgs", [ints([3, 1]), ints([2, 1, 4])], expect=[ints([0, 2]), ints([1])]),
    Case("BroadcastGradientArgs", [ints([3, 1]), ints([3, 1])], expect=[ints([]), ints([])], name="equal_shapes"),
    # making
    Case("Fill", [ints([2, 2]), np.float64(3)], expect=np.full((2, 2), 3.0), grad=[1]),
    Case("Fill", [ints([2]), strings(b"s")], expect=strings([b"s", b"s"]), name="strings"),
    Case("Empty", [ints([2, 2])], {"dtype": tf.int64}, np.zeros((2, 2), np.int64)),
    Case("ZerosLike", [doubles(2)], expect=np.zeros(2)),
    Case("ZerosLike", [strings([b"a"])], expect=strings([b""]), name="strings"),
    Case("OnesLike", [doubles(2)], expect=np.ones(2)),
    Case(
        "OneHot",
        [longs([[0, 2], [5, -1]]), np.int32(3), np.float64(2), np.float64(-1)],
        {"axis": 1},
        lambda i, d, on, off: np.where(i[:, None] == np.arange(3)[:, None], on, off),
    ),
    Case("Diag", [doubles(2, 2)], expect=lambda x: np.diag(x.ravel()).reshape(2, 2, 2, 2), grad=True),
    Case("DiagPart", [doubles(2, 3, 2, 3)], expect=lambda x: np.diagonal(x.reshape(6, 6)).reshape(2, 3), grad=True),
    Case("MatrixDiag", [doubles(2, 3)], expect=lambda x: x[..., None] * np.eye(3), grad=True),
    Case("MatrixDiagPart", [doubles(2, 3, 4)], expect=lambda x: np.diagonal(x, axis1=1, axis2=2), grad=True),
    Case("MatrixSetDiag", [doubles(2, 3, 4), doubles(2, 3)], expect=with_diagonal, grad=True),
    Case(
        "MatrixBandPart",
        [doubles(2, 4, 4), np.int64(1), np.int64(-1)],
        expect=lambda x, low, up: np.triu(x, -1),
        grad=[0],
    ),
    # joining and splitting
    Case(
        "Concat", [np.int32(1), [doubles(2, 1), doubles(2, 3)]], expect=lambda a, x, y: np.hstack([x, y]), grad=[1, 2]
    ),
    Case(
        "ConcatV2",
        [[doubles(2, 1), doubles(2, 3)], np.int32(-1)],
        expect=lambda x, y, a: np.hstack([x, y]),
        grad=[0, 1],
    ),
    Case(
        "ConcatV2",
        [[strings([b"a"]), strings([b"b", b"c"])], np.int32(0)],
        expect=strings([b"a", b"b", b"c"]),
        name="strings",
    ),
    Case(
        "ParallelConcat",
        [[doubles(1, 2), doubles(1, 2)]],
        {"shape": tf.TensorShape([2, 2])},
        lambda x, y: np.vstack([x, y]),
    ),
    Case("ConcatOffset", [np.int32(1), [ints([2, 3]), ints([2, 5])]], expect=[ints([0, 0]), ints([0, 3])]),
    Case("Pack", [[doubles(2), doubles(2) + 1]], {"axis": 1}, lambda x, y: np.stack([x, y], 1), grad=True),
    Case("Pack", [[strings(b"a"), strings(b"b")]], expect=strings([b"a", b"b"]), name="scalar_strings"),
    Case("Unpack", [doubles(2, 3)], {"num": 3, "axis": -1}, lambda x: list(x.T), grad=True),
    Case("Unpack", [strings([b"a", b"b"])], {"num": 2}, [strings(b"a"), strings(b"b")], name="strings"),
    Case("Split", [np.int32(1), doubles(2, 4)], {"num_split": 2}, lambda a, x: [x[:, :2], x[:, 2:]], grad=[1]),
    Case(
        "SplitV",
        [doubles(2, 5), longs([2, -1]), np.int32(1)],
        {"num_split": 2},
        lambda x, s, a: [x[:, :2], x[:, 2:]],
        grad=[0],
    ),
    # slicing and padding
    Case("Slice", [doubles(3, 4), ints([1, 0]), ints([-1, 2])], expect=lambda x, b, s: x[1:, :2], grad=[0]),
    Case(
        "StridedSlice",
        [doubles(3, 4), ints([0, 0, 1]), ints([0, 0, 2]), ints([-1, 1, 1])],
        MASKS,
        lambda x, b, e, s: x[::-1, None, 1],
        grad=[0],
    ),
    Case(
        "StridedSlice",
        [doubles(3, 4, 5), ints([0, 1]), ints([0, 4]), ints([1, 2])],
        {"ellipsis_mask": 1},
        lambda x, b, e, s: x[..., 1:4:2],
        grad=[0],
        name="ellipsis",
    ),
    Case(
        "StridedSlice",
        run=lambda: fails_with(
            errors.InvalidArgumentError,
            "slice index 3 of dimension 0 out of bounds.",
            lambda i: tf.zeros([3])[i],
            np.int32(3),
        ),
        name="out_of_bounds",
    ),
    Case(
        "StridedSliceGrad",
        [ints([4]), ints([0]), ints([4]), ints([2]), doubles(2)],
        expect=lambda s, b, e, t, y: np.array([y[0], 0, y[1], 0]),
        grad=[4],
    ),
    Case("StridedSliceAssign", run=a_slice_is_assigned_into_a_variable),
    Case(
        "TensorStridedSliceUpdate",
        [doubles(4), ints([1]), ints([3]), ints([1]), doubles(2)],
        expect=lambda x, b, e, s, v: np.concatenate([x[:1], v, x[3:]]),
        grad=[0, 4],
    ),
    Case("Pad", [doubles(2, 3), ints([[1, 0], [0, 2]])], expect=lambda x, p: np.pad(x, p), grad=[0]),
    Case(
        "PadV2",
        [doubles(2, 3), ints([[1, 0], [0, 2]]), np.float64(7)],
        expect=lambda x, p, c: np.pad(x, p, constant_values=c),
        grad=[0],
    ),
    Case(
        "MirrorPad",
        [doubles(2, 4), ints([[0, 0], [2, 1]])],
        {"mode": "REFLECT"},
        lambda x, p: np.pad(x, p, "reflect"),
        grad=[0],
    ),
    Case(
        "MirrorPad",
        [doubles(2, 3), ints([[1, 1], [2, 3]])],
        {"mode": "SYMMETRIC"},
        lambda x, p: np.pad(x, p, "symmetric"),
        grad=[0],
        name="symmetric",
    ),
    Case(
        "MirrorPadGrad",
        [doubles(2, 7), ints([[0, 0], [2, 1]])],
        {"mode": "REFLECT"},
        lambda y, p: mirrored_sum(y),
        grad=[0],
    ),
    Case("Tile", [doubles(2, 3), ints([2, 1])], expect=lambda x, m: np.tile(x, m), grad=[0]),
    # rearranging
    Case("Transpose", [doubles(2, 3, 4), ints([2, 0, 1])], expect=lambda x, p: x.transpose(p), grad=[0]),
    Case("ConjugateTranspose", [doubles(2, 3), ints([1, 0])], expect=lambda x, p: x.T, grad=[0]),
    Case(
        "ConjugateTranspose", [np.array([[1 + 2j, 3j]]), ints([1, 0])], expect=lambda x, p: x.conj().T, name="complex"
    ),
    Case("InvertPermutation", [ints([2, 0, 1])], expect=ints([1, 2, 0])),
    Case("Reverse", [doubles(2, 3), np.array([False, True])], expect=lambda x, d: x[:, ::-1], grad=[0]),
    Case("ReverseV2", [doubles(2, 3), ints([-1])], expect=lambda x, a: x[:, ::-1], grad=[0]),
    Case("ReverseSequence", [doubles(2, 4), longs([3, 0])], {"seq_dim": 1}, reverse_sequences, grad=[0]),
    Case("Roll", [doubles(2, 3), ints([1, 2]), ints([0, 1])], expect=lambda x, s, a: np.roll(x, s, a), grad=[0]),
    Case(
        "SpaceToBatchND",
        [doubles(1, 3, 2), ints([2]), ints([[1, 0]])],
        expect=lambda x, b, p: np.stack([np.pad(x[0], [(1, 0), (0, 0)])[i::2] for i in range(2)]),
        grad=[0],
    ),
    Case(
        "BatchToSpaceND",
        [doubles(2, 2, 2), ints([2]), ints([[1, 0]])],
        expect=lambda x, b, c: x.transpose(1, 0, 2).reshape(1, 4, 2)[:, 1:],
        grad=[0],
    ),
    Case(
        "SpaceToBatch",
        [doubles(1, 2, 2, 1), ints([[0, 0], [0, 0]])],
        {"block_size": 2},
        lambda x, p: x.reshape(4, 1, 1, 1),
        grad=[0],
    ),
    Case(
        "BatchToSpace",
        [doubles(4, 1, 1, 1), ints([[0, 0], [0, 0]])],
        {"block_size": 2},
        lambda x, c: x.reshape(1, 2, 2, 1),
        grad=[0],
    ),
    Case("SpaceToDepth", [doubles(1, 2, 2, 3)], {"block_size": 2}, lambda x: x.reshape(1, 1, 1, 12), grad=True),
    Case("DepthToSpace", [doubles(1, 1, 1, 12)], {"block_size": 2}, lambda x: x.reshape(1, 2, 2, 3), grad=True),
    Case(
        "ExtractImagePatches",
        [doubles(2, 3, 3, 2)],
        {"ksizes": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"},
        patches,
        grad=True,
    ),
    # gathering and scattering
    Case("Gather", [doubles(4, 2), ints([[0, 3], [3, 1]])], expect=lambda x, i: x[i], grad=[0]),
    Case("Gather", run=a_gather_out_of_range_names_the_index, name="out_of_range"),
    Case("GatherV2", [doubles(4, 2), ints([0, 3, 3]), np.int32(0)], expect=lambda x, i, a: x[i], grad=[0]),
    Case(
        "GatherV2",
        [doubles(2, 4, 3), ints([0, 3, 3]), np.int32(1)],
        expect=lambda x, i, a: x[:, i],
        grad=[0],
        name="inner_axis",
    ),
    Case(
        "GatherV2",
        [doubles(2, 4, 3), ints([[0, 3], [2, 2]]), np.int32(1)],
        {"batch_dims": 1},
        lambda x, i, a: np.stack([x[b][i[b]] for b in range(2)]),
        grad=[0],
        name="batch",
    ),
    Case(
        "GatherV2",
        [doubles(2, 3, 4), ints([[0, 3], [2, 2]]), np.int32(2)],
        {"batch_dims": 1},
        lambda x, i, a: np.stack([x[b][:, i[b]] for b in range(2)]),
        grad=[0],
        name="batch_and_inner_axis",
    ),
    Case("GatherNd", [doubles(3, 4, 2), ints([[0, 1], [2, 3]])], expect=lambda x, i: x[i[:, 0], i[:, 1]], grad=[0]),
    Case(
        "GatherNd",
        run=lambda: fails_with(
            errors.InvalidArgumentError,
            "indices[0] = [2, 5] does not index into param shape [3,4]",
            lambda i: tf.gather_nd(tf.zeros([3, 4]), i),
            ints([[2, 5]]),
        ),
        name="out_of_range",
    ),
    Case(
        "ScatterNd",
        [ints([[1], [3], [1]]), doubles(3, 2), ints([4, 2])],
        expect=lambda i, u, s: np.array([np.zeros(2), u[0] + u[2], np.zeros(2), u[1]]),
        grad=[1],
    ),
    Case("ScatterNdNonAliasingAdd", [doubles(4), ints([[1], [1]]), doubles(2)], expect=scattered(np.add), grad=True),
    Case("TensorScatterAdd", [doubles(4, 2), ints([[1], [1]]), doubles(2, 2)], expect=scattered(np.add), grad=True),
    Case(
        "TensorScatterSub", [doubles(4, 2), ints([[1], [1]]), doubles(2, 2)], expect=scattered(np.subtract), grad=True
    ),
    Case("TensorScatterMax", [doubles(4, 2), ints([[1], [1]]), doubles(2, 2)], expect=scattered(np.maximum)),
    Case("TensorScatterMin", [doubles(4, 2), ints([[1], [1]]), doubles(2, 2)], expect=scattered(np.minimum)),
    Case("TensorScatterUpdate", [doubles(4, 2), ints([[1], [3]]), doubles(2, 2)], expect=updated, grad=True),
    Case(
        "DynamicStitch",
        [[ints([0, 2]), ints([[1], [3]])], [doubles(2, 2), doubles(2, 1, 2)]],
        expect=lambda i, j, x, y: np.array([x[0], y[0, 0], x[1], y[1, 0]]),
        grad=[2, 3],
    ),
    Case(
        "ParallelDynamicStitch",
        [[ints([0]), ints([1])], [doubles(1, 2), doubles(1, 2)]],
        expect=lambda i, j, x, y: np.vstack([x, y]),
        grad=[2, 3],
    ),
    Case(
        "DynamicPartition",
        [doubles(4, 2), ints([1, 0, 1, 1])],
        {"num_partitions": 3},
        lambda x, p: [x[1:2], x[[0, 2, 3]], x[:0]],
        grad=[0],
    ),
    # choosing and searching
    Case(
        "Select",
        [np.array([True, False]), doubles(2, 2), -doubles(2, 2)],
        expect=lambda c, x, y: np.where(c[:, None], x, y),
        grad=[1, 2],
    ),
    Case("Select", [np.array(True), doubles(2), -doubles(2)], expect=lambda c, x, y: x, grad=[1, 2], name="a_scalar"),
    Case("SelectV2", [np.array([True, False]), doubles(3, 2), doubles(3, 1)], expect=np.where, grad=[1, 2]),
    Case("Where", [np.array([[True, False], [False, True]])], expect=longs([[0, 0], [1, 1]])),
    Case("Unique", [ints([3, 1, 3, 2])], expect=[ints([3, 1, 2]), ints([0, 1, 0, 2])]),
    Case("Unique", [strings([b"b", b"a", b"b"])], expect=[strings([b"b", b"a"]), ints([0, 1, 0])], name="strings"),
    Case("UniqueV2", [ints([[1, 2], [1, 2]]), longs([0])], expect=[ints([[1, 2]]), ints([0, 0])]),
    Case("UniqueWithCounts", [ints([3, 1, 3])], expect=[ints([3, 1]), ints([0, 1, 0]), ints([2, 1])]),
    Case("UniqueWithCountsV2", [ints([3, 1, 3]), longs([])], expect=[ints([3, 1]), ints([0, 1, 0]), ints([2, 1])]),
    Case("ListDiff", [ints([1, 2, 3, 4]), ints([2, 4])], expect=[ints([1, 3]), ints([0, 2])]),
    Case("LowerBound", [ints([[1, 3, 3, 5]]), ints([[3, 6]])], expect=ints([[1, 4]])),
    Case("UpperBound", [ints([[1, 3, 3, 5]]), ints([[3, 6]])], expect=ints([[3, 4]])),
]
