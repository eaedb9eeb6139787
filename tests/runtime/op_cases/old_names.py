"""Ops that newer ops have replaced: what old graphs and tf.raw_ops still make."""

from __future__ import annotations

import numpy as np

import dtf as tf
from dtf.build.apply import apply_op
from tests.runtime.op_cases import Case, Vary

random = np.random.RandomState(3)
squares = random.uniform(-1, 1, (2, 3, 3)) + 3 * np.eye(3)
symmetric = squares + np.swapaxes(squares, -1, -2)
positive = squares @ np.swapaxes(squares, -1, -2)
sides = random.uniform(-1, 1, (2, 3, 2))
signals = (random.uniform(-1, 1, (2, 3, 4)) + 1j * random.uniform(-1, 1, (2, 3, 4))).astype(np.complex64)
images = random.uniform(0, 255, (2, 3, 4, 2)).astype(np.float32)
ids = np.array([0, 0, 2], np.int32)


def _old_graph() -> tf.Graph:
    """A graph of the time when it had such ops."""
    graph = tf.Graph()
    graph._producer = 1
    return graph


def _one_array_of_a_version(version: str) -> list[np.ndarray]:
    def op(name: str, **arguments):
        return apply_op(f"TensorArray{name}{version}", handle=handle, **arguments)

    with _old_graph().as_default():
        x = tf.placeholder(tf.float64, [3, 2])
        handle = apply_op(f"TensorArray{version}", size=3, dtype=tf.float64, clear_after_read=False)
        flow = op("Scatter", indices=[0, 1], value=x[:2], flow_in=0.0)
        flow = op("Write", index=2, value=x[2] * 2.0, flow_in=flow)
        gathered = op("Gather", indices=[2, 0], flow_in=flow, dtype=tf.float64)
        joined, lengths = op("Concat", flow_in=flow, dtype=tf.float64)
        last = op("Read", index=2, flow_in=flow, dtype=tf.float64)
        with tf.control_dependencies([gathered, joined, last]):
            closed = op("Close")
        (gradient,) = tf.gradients([gathered, joined, last], x)
        fetches = [gathered, joined, lengths, op("Size", flow_in=flow), gradient]
        with tf.Session() as session:
            values = session.run(fetches, {x: np.arange(6.0).reshape(3, 2)})
            session.run(closed, {x: np.zeros((3, 2))})
    return [each.tolist() for each in values]


def an_array_of_the_first_versions_is_written_joined_and_differentiated():
    wanted = [
        [[8, 10], [0, 1]], [0, 1, 2, 3, 8, 10], [2, 2, 2], 3, [[2, 2], [1, 1], [6, 6]],
    ]  # fmt: skip
    assert _one_array_of_a_version("") == wanted
    assert _one_array_of_a_version("V2") == wanted


def an_array_of_the_first_version_is_packed_unpacked_and_split():
    with _old_graph().as_default():
        handle = apply_op("TensorArray", size=2, dtype=tf.float32)
        flow = apply_op("TensorArrayUnpack", handle=handle, value=[[1.0, 2.0], [3.0, 4.0]], flow_in=0.0)
        packed = apply_op("TensorArrayPack", handle=handle, flow_in=flow, dtype=tf.float32)
        values = []
        for version in ("", "V2"):
            other = apply_op(f"TensorArray{version}", size=2, dtype=tf.float64)
            x = tf.constant([1.0, 2.0, 3.0], tf.float64)
            flow = apply_op(f"TensorArraySplit{version}", handle=other, value=x, lengths=[1, 2], flow_in=0.0)
            last = apply_op(f"TensorArrayRead{version}", handle=other, index=1, flow_in=flow, dtype=tf.float64)
            values += [last, *tf.gradients(last, x)]
        with tf.Session() as session:
            assert session.run(packed).tolist() == [[1, 2], [3, 4]]
            found = [each.tolist() for each in session.run(values[::2])]
            assert found == [[2, 3]] * 2


def a_stack_of_the_first_version_gives_the_last_first():
    with _old_graph().as_default():
        handle = apply_op("Stack", elem_type=tf.int32)
        first = apply_op("StackPush", handle=handle, elem=1)
        with tf.control_dependencies([first]):
            second = apply_op("StackPush", handle=handle, elem=2)
        with tf.control_dependencies([second]):
            popped = apply_op("StackPop", handle=handle, elem_type=tf.int32)
        with tf.control_dependencies([popped]):
            closed = apply_op("StackClose", handle=handle)
        with tf.Session() as session:
            assert session.run([popped, closed])[0] == 2


def a_crop_is_a_part_of_the_image():
    with _old_graph().as_default(), tf.Session() as session:
        image = np.arange(60, dtype=np.int32).reshape(4, 5, 3)
        crop = tf.raw_ops.RandomCrop(image=image, size=[2, 3], seed=1)
        assert crop.shape.as_list() == [2, 3, 3]
        value = session.run(crop)
        row, column = divmod(value[0, 0, 0] // 3, 5)
        assert (value == image[row : row + 2, column : column + 3]).all()


def eigenvectors_rebuild_the_matrix():
    for name in ("SelfAdjointEig", "BatchSelfAdjointEig", "BatchSelfAdjointEigV2"):
        with _old_graph().as_default(), tf.Session() as session:
            found = session.run(apply_op(name, input=symmetric))
            values, vectors = found if isinstance(found, tuple) else (found[:, 0], found[:, 1:])
            rebuilt = (vectors * values[:, None, :]) @ np.swapaxes(vectors, -1, -2)
            np.testing.assert_allclose(rebuilt, symmetric, atol=1e-9)


def singular_values_rebuild_the_matrix():
    with _old_graph().as_default(), tf.Session() as session:
        s, u, v = session.run(apply_op("BatchSvd", input=squares))
        np.testing.assert_allclose((u * s[:, None, :]) @ np.swapaxes(v, -1, -2), squares, atol=1e-9)


def old_gradients_of_volumes_are_those_of_the_newer_ops():
    with _old_graph().as_default(), tf.Session() as session:
        volumes, filters = random.rand(1, 3, 4, 3, 2), random.rand(2, 2, 1, 2, 3)
        settings = {"strides": [1, 2, 1, 1, 1], "padding": "SAME"}
        back = random.rand(1, 2, 4, 3, 3)
        old = [
            apply_op(f"Conv3DBackprop{name}", input=volumes, filter=filters, out_backprop=back, **settings)
            for name in ("Input", "Filter")
        ]
        new = [
            apply_op("Conv3DBackpropInputV2", input_sizes=volumes.shape, filter=filters, out_backprop=back, **settings),
            apply_op("Conv3DBackpropFilterV2", input=volumes, filter_sizes=filters.shape, out_backprop=back,
                     **settings),
        ]  # fmt: skip
        for one, other in zip(*session.run([old, new]), strict=True):
            np.testing.assert_allclose(one, other)


def _normalized(t, m, v, beta, gamma):
    return (t - m) / np.sqrt(v + 0.001) * gamma + beta


_STATISTICS = [random.uniform(-1, 1, 2), random.uniform(0.5, 1, 2), random.uniform(-1, 1, 2), random.uniform(1, 2, 2)]
_NORMALIZED = {"variance_epsilon": 0.001, "scale_after_normalization": True}
_FIXED = Vary(odd_values=False, shapes=False)


def _sums(combine, start):
    return lambda data, ids, count: np.stack([combine(data[:2]), np.full(2, start), data[2], np.full(2, start)])


rows = random.uniform(-1, 1, (3, 2))
_RUNS = {
    **dict.fromkeys(
        [f"TensorArray{name}{version}" for version in ("", "V2") for name in (
            "", "Grad", "Write", "Read", "Gather", "Concat", "Scatter", "Size", "Close",
        )],
        an_array_of_the_first_versions_is_written_joined_and_differentiated,
    ),
    **dict.fromkeys(
        ("TensorArrayPack", "TensorArrayUnpack", "TensorArraySplit", "TensorArraySplitV2"),
        an_array_of_the_first_version_is_packed_unpacked_and_split,
    ),
    **dict.fromkeys(
        ("Stack", "StackPush", "StackPop", "StackClose"), a_stack_of_the_first_version_gives_the_last_first
    ),
    **dict.fromkeys(
        ("SelfAdjointEig", "BatchSelfAdjointEig", "BatchSelfAdjointEigV2"), eigenvectors_rebuild_the_matrix
    ),
    **dict.fromkeys(
        ("Conv3DBackpropInput", "Conv3DBackpropFilter"), old_gradients_of_volumes_are_those_of_the_newer_ops
    ),
    "BatchSvd": singular_values_rebuild_the_matrix,
    "RandomCrop": a_crop_is_a_part_of_the_image,
}  # fmt: skip

CASES = [
    *(Case(op, run=run) for op, run in _RUNS.items()),
    Case("BatchCholesky", [positive], expect=np.linalg.cholesky, vary=_FIXED),
    Case("BatchCholeskyGrad", [np.linalg.cholesky(positive), squares],
         expect=lambda factor, grad: _symmetric_gradient(factor, grad), vary=_FIXED),
    Case("BatchMatrixInverse", [squares], expect=np.linalg.inv, vary=_FIXED),
    Case("BatchMatrixDeterminant", [squares], expect=np.linalg.det, vary=_FIXED),
    Case("BatchMatrixSolve", [squares, sides], expect=np.linalg.solve, vary=_FIXED),
    Case("BatchMatrixTriangularSolve", [squares, sides], expect=lambda m, r: np.linalg.solve(np.tril(m), r),
         vary=_FIXED),
    Case("BatchMatrixSolveLs", [squares, sides, np.float64(0)], expect=lambda m, r, _: np.linalg.solve(m, r),
         vary=_FIXED),
    Case("BatchMatrixBandPart", [squares, np.int64(0), np.int64(-1)], expect=lambda m, *_: np.triu(m)),
    Case("BatchMatrixDiag", [rows], expect=lambda d: np.einsum("ij,jk->ijk", d, np.eye(2))),
    Case("BatchMatrixDiagPart", [squares], expect=lambda m: np.einsum("ijj->ij", m)),
    Case("BatchMatrixSetDiag", [squares, np.zeros((2, 3))], expect=lambda m, _: m * (1 - np.eye(3))),
    *(
        Case(f"Batch{inverse}FFT{name}", [signals], rtol=1e-4, atol=1e-4, vary=_FIXED,
             expect=lambda x, f=function, r=rank: f(x, axes=range(-r, 0)).astype(np.complex64))
        for inverse, function in (("", np.fft.fftn), ("I", np.fft.ifftn))
        for name, rank in (("", 1), ("2D", 2), ("3D", 3))
    ),
    Case("SegmentSumV2", [rows, ids, np.int32(4)], expect=_sums(lambda x: x.sum(0), 0.0), vary=_FIXED),
    Case("SegmentProdV2", [rows, ids, np.int32(4)], expect=_sums(lambda x: x.prod(0), 1.0), vary=_FIXED),
    Case("SegmentMaxV2", [rows, ids, np.int32(4)], expect=_sums(lambda x: x.max(0), 0.0), vary=_FIXED),
    Case("SegmentMinV2", [rows, ids, np.int32(4)], expect=_sums(lambda x: x.min(0), 0.0), vary=_FIXED),
    Case("TileGrad", [np.arange(12.0).reshape(4, 3), np.array([2, 1], np.int32)],
         expect=lambda x, _: x[:2] + x[2:], vary=_FIXED),
    Case("AdjustContrast", [images, np.float32(2), np.float32(0), np.float32(255)], vary=_FIXED, rtol=1e-4,
         expect=lambda x, *_: np.clip(2 * x - x.mean((1, 2), keepdims=True), 0, 255)),
    Case("BatchNormWithGlobalNormalization", [random.uniform(-1, 1, (2, 2, 3, 2)), *_STATISTICS], _NORMALIZED,
         expect=_normalized, grad=True, vary=_FIXED),
    Case("BatchNormWithGlobalNormalizationGrad",
         [np.ones((1, 1, 1, 2)), np.zeros(2), np.ones(2), np.full(2, 2.0), np.ones((1, 1, 1, 2))],
         {"variance_epsilon": 0.0, "scale_after_normalization": True}, vary=_FIXED,
         expect=[np.full((1, 1, 1, 2), 2.0), np.full(2, -2.0), np.full(2, -1.0), np.ones(2), np.ones(2)]),
    Case("Fact", [], expect=np.array(b"0! == 1", object)),
]  # fmt: skip


def _symmetric_gradient(factor: np.ndarray, grad: np.ndarray) -> np.ndarray:
    inverse = np.linalg.inv(factor)
    middle = np.tril(np.swapaxes(factor, -1, -2) @ grad)
    middle = middle - 0.5 * middle * np.eye(3)
    whole = np.swapaxes(inverse, -1, -2) @ middle @ inverse
    return (whole + np.swapaxes(whole, -1, -2)) / 2
