"""What oneDNN computes must be what numpy's kernels give; where it is not there, numpy must compute."""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import dtf as tf
from dtf.build.apply import apply_op
from dtf.run import kernels
from dtf.run.kernels import onednn_kernels
from dtf.run.lib import onednn, onednn_library, onednn_norms
from tests.runtime.op_cases import Case, all_cases
from tests.runtime.test_ops import build, run

needs_onednn = pytest.mark.skipif(not onednn.is_there(), reason="needs oneDNN: pip install onednn-cpu-gomp")
OPS = ("Conv2D", "Conv2DBackprop", "Depthwise", "MaxPool", "AvgPool", "FusedPad", "FusedResizeAndPad", "_FusedConv")
CASES = [case for case in all_cases() if case.op.startswith(OPS) and case.run is None]


@pytest.fixture
def used(monkeypatch) -> list[str]:
    """The kinds of programs that oneDNN has made."""
    made: list[str] = []

    def watched(make):
        def watch(*arguments):
            program = make(*arguments)
            made.extend([make.__name__] if program is not None else [])
            return program

        return watch

    for name in ("convolution", "pooling", "pooling_gradient"):
        monkeypatch.setattr(onednn, name, watched(getattr(onednn, name)))
    for name in ("matmul", "adam"):
        monkeypatch.setattr(onednn_kernels, f"_{name}", watched(getattr(onednn, name)))
    for name in ("batch_norm", "batch_norm_gradient"):
        monkeypatch.setattr(onednn_kernels, f"_{name}", watched(getattr(onednn_norms, name)))
    return made


def in_float32(case: Case) -> Case:
    def narrow(value):
        if isinstance(value, list):
            return [narrow(each) for each in value]
        return value.astype(np.float32) if value.dtype == np.float64 else value

    return Case(case.op, [narrow(value) for value in case.inputs], case.attrs, expect=None)


def outputs_and_gradients(case: Case) -> list[np.ndarray]:
    graph = tf.Graph()
    placeholders, outputs, arrays = build(case, graph)
    floats = [p for p in placeholders if p.dtype == tf.float32]
    with graph.as_default():
        weights = tf.reshape(tf.cast(tf.range(tf.size(outputs[0])), tf.float32), tf.shape(outputs[0])) / 10.0
        try:
            made = [each for each in tf.gradients(outputs[0], floats, weights) if each is not None]
        except LookupError:  # it has none
            made = []
    return run(graph, [outputs[0], *made], zip(placeholders, arrays, strict=True))


@needs_onednn
@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_op_and_its_gradient_are_those_of_numpys_kernels(case: Case, monkeypatch):
    case = in_float32(case)
    computed = outputs_and_gradients(case)
    monkeypatch.setenv(onednn.SWITCH, "numpy")
    for value, wanted in zip(computed, outputs_and_gradients(case), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(wanted).max(initial=0))))


GEOMETRIES = [
    # images, window and filters, stride, dilation, padding
    ((3, 28, 28, 1), (5, 5, 1, 16), 1, 1, "SAME"),
    ((3, 14, 13, 16), (5, 4, 16, 32), 1, 1, "SAME"),
    ((2, 15, 16, 3), (7, 7, 3, 24), 2, 1, "SAME"),
    ((2, 15, 16, 8), (3, 2, 8, 5), (3, 2), 1, "VALID"),
    ((2, 17, 19, 4), (3, 3, 4, 6), 1, (2, 3), "SAME"),
    ((2, 9, 9, 4), (3, 3, 4, 6), 2, 1, [[0, 0], [2, 1], [0, 2], [0, 0]]),
    ((2, 6, 7, 40), (3, 3, 40, 8), 1, 1, "SAME"),
    ((2, 5, 5, 2), (1, 1, 2, 3), 1, 1, "SAME"),
    ((2, 2, 2, 2), (2, 2, 2, 3), 1, 1, "VALID"),
]


@needs_onednn
@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
@pytest.mark.parametrize("images, filters, stride, dilation, padding", GEOMETRIES)
def test_a_convolution_of_any_geometry_is_numpys(op, images, filters, stride, dilation, padding, used, monkeypatch):
    random = np.random.RandomState(1)
    pair = lambda value: value if isinstance(value, tuple) else (value, value)  # noqa: E731
    attrs = {"strides": [1, *pair(stride), 1], "dilations": [1, *pair(dilation), 1], "padding": padding}
    if not isinstance(padding, str):
        attrs |= {"padding": "EXPLICIT", "explicit_paddings": [each for both in padding for each in both]}
    depthwise = op != "Conv2D"
    if depthwise:
        filters = (*filters[:3], 2)
    case = Case(op, [random.randn(*images).astype("f"), random.randn(*filters).astype("f")], attrs, expect=None)
    computed = outputs_and_gradients(case)
    has_slow_gradient = filters[2] == 40 and not depthwise and not onednn.has_avx512()
    by_onednn = 0 if filters[:2] == (1, 1) and not depthwise else 2 if has_slow_gradient else 3
    assert used == ["convolution"] * by_onednn
    monkeypatch.setenv(onednn.SWITCH, "numpy")
    for value, wanted in zip(computed, outputs_and_gradients(case), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-5 * float(np.abs(wanted).max()))
    assert len(used) == by_onednn


@needs_onednn
@pytest.mark.parametrize("op", ["MaxPool", "AvgPool"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("ksize, stride", [((2, 2), (2, 2)), ((3, 2), (1, 2)), ((3, 3), (2, 2)), ((2, 2), (3, 3))])
def test_a_pooling_and_its_gradient_are_numpys_with_ties_too(op, padding, ksize, stride, used, monkeypatch):
    images = np.maximum(np.random.RandomState(2).randint(-3, 4, (2, 9, 11, 5)), 0).astype(np.float32)
    case = Case(
        op, [images], {"ksize": [1, *ksize, 1], "strides": [1, *stride, 1], "padding": padding}, expect=None
    )
    computed = outputs_and_gradients(case)
    assert sorted(used) == ["pooling", "pooling_gradient"]
    monkeypatch.setenv(onednn.SWITCH, "numpy")
    for value, wanted in zip(computed, outputs_and_gradients(case), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-6, atol=1e-5)


def test_a_pooling_over_the_depth_is_left_to_numpy():
    images = np.arange(24, dtype=np.float32).reshape(1, 2, 4, 3)
    with tf.Graph().as_default(), tf.Session() as session:
        pooled = session.run(tf.nn.max_pool(images, [1, 1, 1, 3], [1, 1, 1, 3], "SAME"))
    np.testing.assert_array_equal(pooled, images.max(3, keepdims=True))


@needs_onednn
def test_batches_of_many_sizes_and_inputs_that_are_views_are_computed(monkeypatch):
    graph = tf.Graph()
    with graph.as_default():
        fed = tf.placeholder(tf.float32, [None, 6, 6, 2])
        filters = tf.constant(np.random.RandomState(0).randn(3, 3, 2, 4).astype("f"))
        net = tf.nn.conv2d(tf.transpose(fed, [0, 2, 1, 3]), filters, 1, "SAME")
    images = np.random.RandomState(3).randn(40, 6, 6, 2).astype("f")
    with tf.Session(graph=graph) as session:
        whole = session.run(net, {fed: images})
        for size in (1, 2, 3, 40, 0, 7, 1):
            np.testing.assert_allclose(session.run(net, {fed: images[:size]}), whole[:size], atol=1e-5)


@needs_onednn
def test_many_threads_use_one_program_at_once_and_any_number_of_threads_gives_the_same():
    random = np.random.RandomState(4)
    filters = random.randn(3, 3, 8, 8).astype("f")
    window = onednn.Window((3, 3), (1, 1), (1, 1), (1, 1), (1, 1))
    shape = (4, 12, 12, 8)
    programs = [onednn.convolution(onednn.FORWARD, shape, (3, 3, 8, 8), shape, window, threads) for threads in (1, 2)]
    images = [random.randn(*shape).astype("f") for _ in range(6)]
    wanted = [programs[0](each, filters) for each in images]
    wrong: list[float] = []

    def compute(at: int) -> None:
        for _ in range(20):
            result = programs[at % 2](images[at], filters)
            wrong.extend([at] if not np.allclose(result, wanted[at], atol=1e-4) else [])

    threads = [threading.Thread(target=compute, args=(at,)) for at in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def product(left: np.ndarray, right: np.ndarray, transpose_a: bool = False, transpose_b: bool = False) -> np.ndarray:
    graph = tf.Graph()
    with graph.as_default():
        fed = [tf.placeholder(tf.float32, each.shape) for each in (left, right)]
        made = tf.matmul(*fed, transpose_a, transpose_b)
    return run(graph, [made], zip(fed, (left, right), strict=True))[0]


@needs_onednn
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("outer", [(), (3,), (2, 3)])
@pytest.mark.parametrize("order", ["rows", "columns", "gaps"])
def test_large_products_are_numpys_for_every_order_of_their_inputs(transposed, outer, order, used):
    random = np.random.RandomState(6)
    left, right = random.randn(*outer, 96, 128).astype("f"), random.randn(*outer, 128, 112).astype("f")
    wanted = left.astype(np.float64) @ right
    given = [np.swapaxes(each, -1, -2) if turn else each for each, turn in zip((left, right), transposed, strict=True)]
    if order == "gaps":
        given = [np.repeat(each, 2, axis=-1)[..., ::2] for each in given]
    elif order == "rows":
        given = [np.ascontiguousarray(each) for each in given]
    else:
        given = [np.swapaxes(np.ascontiguousarray(np.swapaxes(each, -1, -2)), -1, -2) for each in given]
    computed = product(*given, *transposed)
    assert used == ["matmul"] and computed.dtype == np.float32
    np.testing.assert_allclose(computed, wanted, rtol=1e-4, atol=2e-5 * float(np.abs(wanted).max()))


@needs_onednn
@pytest.mark.parametrize(
    "left, right", [((4, 5), (5, 3)), ((1, 4096), (4096, 512)), ((0, 4096), (4096, 512)), ((4096, 512), (512, 1))]
)
def test_small_products_empty_ones_and_those_of_vectors_are_left_to_numpy(left, right, used):
    random = np.random.RandomState(7)
    given = random.randn(*left).astype("f"), random.randn(*right).astype("f")
    np.testing.assert_array_equal(product(*given), np.dot(*given))
    assert not used


@needs_onednn
def test_a_product_of_matrices_that_do_not_fit_is_the_same_error():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Matrix size-incompatible"):
        graph = tf.Graph()
        with graph.as_default(), tf.Session() as session:
            fed = [tf.placeholder(tf.float32, None) for _ in range(2)]
            session.run(tf.matmul(*fed), dict(zip(fed, (np.ones((256, 256)), np.ones((128, 256))), strict=True)))


def adam_steps(shape: tuple[int, ...], use_resource: bool) -> list[np.ndarray]:
    graph = tf.Graph()
    random = np.random.RandomState(8)
    with graph.as_default(), tf.Session() as session:
        start = random.randn(*shape).astype("f")
        variable = tf.get_variable("v", initializer=start, use_resource=use_resource)
        gradient = tf.placeholder(tf.float32, shape)
        optimizer = tf.train.AdamOptimizer(0.01)
        train = optimizer.apply_gradients([(gradient, variable)])
        session.run(tf.global_variables_initializer())
        for _ in range(4):
            session.run(train, {gradient: random.randn(*shape).astype("f")})
        slots = [optimizer.get_slot(variable, name) for name in optimizer.get_slot_names()]
        return session.run([variable, *slots])


@needs_onednn
@pytest.mark.parametrize("shape", [(1 << 15,), (317, 433), (3, 1 << 16), (10,)])
@pytest.mark.parametrize("use_resource", [False, True])
def test_adam_moves_variables_and_moments_as_numpy_does(shape, use_resource, used, monkeypatch):
    computed = adam_steps(shape, use_resource)
    assert set(used) == ({"adam"} if shape != (10,) else set())
    monkeypatch.setenv(onednn.SWITCH, "numpy")
    for value, wanted in zip(computed, adam_steps(shape, use_resource), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)


@needs_onednn
def test_adam_passes_on_infinite_and_undefined_gradients_as_numpy_does(monkeypatch):
    gradient = np.ones(1 << 15, np.float32)
    gradient[:3] = np.nan, np.inf, 0

    def step() -> np.ndarray:
        with tf.Graph().as_default(), tf.Session() as session, np.errstate(invalid="ignore"):
            variable = tf.get_variable("v", initializer=np.ones(1 << 15, np.float32))
            train = tf.train.AdamOptimizer(0.01).apply_gradients([(tf.constant(gradient), variable)])
            session.run(tf.global_variables_initializer())
            session.run(train)
            return session.run(variable)

    computed = step()
    monkeypatch.setenv(onednn.SWITCH, "numpy")
    np.testing.assert_allclose(computed, step(), rtol=1e-5)


def normalized(x: np.ndarray, op: str, is_training: bool, factor: float, data_format: str = "NHWC") -> list[np.ndarray]:
    """All outputs of a batch normalisation, and its gradients."""
    random = np.random.RandomState(9)
    channels = x.shape[1 if data_format.startswith("NC") else -1]
    vectors = [np.abs(random.randn(channels)).astype("f") for _ in range(4)]
    graph = tf.Graph()
    with graph.as_default():
        fed = [tf.placeholder(tf.float32, each.shape if each.ndim < 5 else None) for each in (x, *vectors)]
        inputs = dict(zip(("x", "scale", "offset", "mean", "variance"), fed, strict=True))
        outputs = apply_op(
            op, "net", **inputs, is_training=is_training, exponential_avg_factor=factor, data_format=data_format
        )
        upstream = tf.placeholder(tf.float32)
        made = tf.gradients(outputs[0], fed[:3], upstream)
    arrays = [x, *vectors, np.random.RandomState(10).randn(*x.shape).astype("f")]
    return run(graph, [*outputs[:5], *made], zip([*fed, upstream], arrays, strict=True))


@needs_onednn
@pytest.mark.parametrize("op", ["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"])
@pytest.mark.parametrize("is_training, factor", [(True, 1.0), (True, 0.1), (False, 1.0)])
@pytest.mark.parametrize("shape", [(4, 17, 16, 16), (3, 32, 37, 5), (16, 1, 32, 40)])
def test_a_batch_normalisation_and_its_gradient_are_numpys(op, is_training, factor, shape, used, monkeypatch):
    x = (np.random.RandomState(11).randn(*shape) * 3 + 2).astype("f")
    computed = normalized(x, op, is_training, factor)
    assert sorted(set(used)) == ["batch_norm", "batch_norm_gradient"]
    monkeypatch.setenv(onednn.SWITCH, "numpy")
    for value, wanted in zip(computed, normalized(x, op, is_training, factor), strict=True):
        assert value.dtype == wanted.dtype and value.shape == wanted.shape
        np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=2e-5 * float(np.abs(wanted).max()))


@needs_onednn
@pytest.mark.parametrize(
    "shape, data_format", [((0, 8, 8, 4), "NHWC"), ((2, 4, 4, 4), "NHWC"), ((2, 8, 32, 64), "NCHW")]
)
def test_empty_small_and_channels_first_batches_are_normalized_by_numpy(shape, data_format, used, monkeypatch):
    x = np.random.RandomState(12).randn(*shape).astype("f")
    computed = normalized(x, "FusedBatchNormV3", True, 1.0, data_format)
    monkeypatch.setenv(onednn.SWITCH, "numpy")
    for value, wanted in zip(computed, normalized(x, "FusedBatchNormV3", True, 1.0, data_format), strict=True):
        np.testing.assert_array_equal(value, wanted)
    assert not used


@needs_onednn
def test_a_volume_and_an_input_with_gaps_are_normalized_as_by_numpy(used, monkeypatch):
    x = np.random.RandomState(13).randn(2, 4, 9, 8, 32, 2).astype("f")[..., 0]
    computed = normalized(x, "FusedBatchNormV3", True, 1.0, "NDHWC")
    assert sorted(set(used)) == ["batch_norm", "batch_norm_gradient"]
    monkeypatch.setenv(onednn.SWITCH, "numpy")
    for value, wanted in zip(computed, normalized(x, "FusedBatchNormV3", True, 1.0, "NDHWC"), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=2e-5 * float(np.abs(wanted).max()))


@needs_onednn
def test_undefined_elements_spread_over_their_channel_only(used):
    x = np.ones((4, 16, 16, 16), np.float32)
    x[0, 0, 0, 3] = np.nan
    with np.errstate(invalid="ignore"):
        outputs = normalized(x, "FusedBatchNormV3", True, 1.0)
    assert np.isnan(outputs[0][..., 3]).all() and np.isfinite(np.delete(outputs[0], 3, axis=-1)).all()
    assert sorted(set(used)) == ["batch_norm", "batch_norm_gradient"]


def convolved() -> np.ndarray:
    graph = tf.Graph()
    with graph.as_default():
        net = apply_op(
            "Conv2D", "net", input=tf.ones([1, 4, 4, 1]), filter=tf.ones([3, 3, 1, 2]), strides=[1] * 4, padding="SAME"
        )
    return run(graph, [net], [])[0]


@pytest.mark.parametrize("how", ["absent", "switched off"])
def test_without_it_numpy_computes(how, used, monkeypatch):
    if how == "absent":
        monkeypatch.setattr(onednn, "_library", lambda: None)
    else:
        monkeypatch.setenv(onednn.SWITCH, "numpy")
    assert not onednn.is_there()
    assert convolved()[0, :, 0, 0].tolist() == [4, 6, 6, 4]
    assert not used


@pytest.mark.parametrize("set_by_user", ["", "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"])
def test_openmps_threads_are_loaded_to_spin_briefly_unless_the_user_says_otherwise(set_by_user, monkeypatch):
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    if set_by_user:
        monkeypatch.setenv(set_by_user, "7")
    before, seen = dict(os.environ), []
    monkeypatch.setattr(ctypes, "CDLL", lambda path: seen.append(os.environ.get("GOMP_SPINCOUNT")))
    onednn_library._with_short_spins("libdnnl.so.3")
    assert seen == [{"": "2000", "GOMP_SPINCOUNT": "7", "OMP_WAIT_POLICY": None}[set_by_user]]
    assert dict(os.environ) == before


@needs_onednn
@pytest.mark.parametrize("shape", [(256, 256), (3, 5, 7, 911)])
@pytest.mark.parametrize("undefined", [np.nan, np.inf])
def test_the_gradient_of_relu_is_numpys_for_undefined_and_infinite_values_too(shape, undefined, monkeypatch):
    random = np.random.RandomState(14)
    gradient, features = random.randn(*shape).astype("f"), random.randn(*shape).astype("f")
    gradient.flat[:6] = np.nan, np.nan, np.inf, np.inf, 1, 2
    features.flat[:6] = 1, -1, 1, -1, 0, undefined
    case = Case("ReluGrad", [gradient, features], {}, expect=None)

    def computed() -> np.ndarray:
        graph = tf.Graph()
        placeholders, outputs, arrays = build(case, graph)
        with np.errstate(invalid="ignore"):
            return run(graph, outputs, zip(placeholders, arrays, strict=True))[0]

    by_onednn = computed()
    monkeypatch.setenv(onednn.SWITCH, "numpy")
    np.testing.assert_array_equal(by_onednn, computed())


def both_ways(case: Case, monkeypatch) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The outputs of an op by its default kernels, and by numpy's."""

    def computed() -> list[np.ndarray]:
        graph = tf.Graph()
        placeholders, outputs, arrays = build(case, graph)
        with np.errstate(all="ignore"):
            return run(graph, outputs, zip(placeholders, arrays, strict=True))

    by_default = computed()
    monkeypatch.setenv(onednn.SWITCH, "numpy")
    return by_default, computed()


LOGITS = {
    "usual": [],
    "of any size": [(0, 3, 1e30), (1, 4, -1e30), (2, 5, 90.0), (3, 6, -90.0)],
    "masked": [(0, slice(0, 40), -np.inf), (1, slice(0, 40), -1e9)],
    "infinite": [(0, 3, np.inf)],
    "undefined": [(0, 3, np.nan)],
    "of a row without any": [(0, slice(None), -np.inf)],
}


@needs_onednn
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "SparseSoftmaxCrossEntropyWithLogits"])
@pytest.mark.parametrize("places", LOGITS.values(), ids=LOGITS)
def test_softmax_and_its_losses_are_numpys_for_logits_of_any_size(op, places, monkeypatch):
    random = np.random.RandomState(15)
    logits, labels = (3 * random.randn(150, 120)).astype("f"), random.randint(0, 120, 150)
    for row, column, value in places:
        logits[row, column] = value
    case = Case(op, [logits, labels] if op.startswith("Sparse") else [logits], {}, expect=None)
    for one, other in zip(*both_ways(case, monkeypatch), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


@needs_onednn
@pytest.mark.parametrize("shape", [(1024, 64, 1100), (70, 300, 90)])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_products_of_both_ways_are_numpys_whatever_their_memory_held(shape, transpose_b, used):
    rows, inner, columns = shape
    random = np.random.RandomState(16)
    left, right = random.randn(rows, inner).astype("f"), random.randn(inner, columns).astype("f")
    wanted = left @ right
    used.clear()
    for _ in range(3):
        np.full((rows, columns), np.nan, np.float32)  # which the allocator may give to the result
        made = product(left, np.ascontiguousarray(right.T) if transpose_b else right, transpose_b=transpose_b)
        np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-3)
    assert used


@pytest.mark.parametrize("lack", ["a function", "an engine"])
def test_a_library_that_cannot_run_here_is_told_once_and_numpy_computes(lack, used, monkeypatch, caplog):
    monkeypatch.setattr(onednn_library, "_paths", lambda: ["libc.so.6"])
    monkeypatch.setattr(onednn_library, "_loaded", functools.cache(onednn_library._loaded.__wrapped__))
    monkeypatch.setattr(ctypes, "CDLL", lambda path: WithoutEngine(path, lack))
    for _ in range(3):
        assert convolved()[0, :, 0, 0].tolist() == [4, 6, 6, 4]
    assert caplog.text.count("is not used, so that numpy computes") == 1 and "libc.so.6" in caplog.text
    assert not used


class WithoutEngine:
    """A library whose functions fail with oneDNN's status for "unimplemented", or that has none but OpenMP's."""

    def __init__(self, path: str, lack: str) -> None:
        self._lack = lack

    def __getattr__(self, name: str):
        if self._lack == "a function" and name.startswith("dnnl"):
            raise AttributeError(f"undefined symbol: {name}")
        unimplemented = lambda *_: 3  # noqa: E731
        setattr(self, name, unimplemented)
        return unimplemented


def test_a_copy_that_cannot_be_loaded_is_told_of_and_passed_over(monkeypatch, tmp_path, caplog):
    broken = tmp_path / "libdnnl.so.3"
    broken.write_text("no library")
    monkeypatch.setattr(onednn_library, "_paths", lambda: [str(broken), str(tmp_path / "none.so")])
    assert onednn_library._loaded.__wrapped__() is None
    assert "oneDNN is installed but cannot be loaded" in caplog.text and str(broken) in caplog.text


@pytest.mark.parametrize("switch", ["", "numpy"])
def test_it_is_loaded_only_for_the_first_heavy_op_and_not_when_switched_off(switch):
    program = """if True:
        import os, sys
        import dtf as tf
        loaded = lambda: "libdnnl" in open("/proc/self/maps").read()
        with tf.Session() as session:
            session.run(tf.matmul(tf.ones([2, 2]), tf.ones([2, 2])))
            before = loaded()
            session.run(tf.nn.conv2d(tf.ones([1, 4, 4, 1]), tf.ones([3, 3, 1, 2]), 1, "SAME"))
            print(before, loaded())
    """
    environment = {**os.environ, onednn.SWITCH: switch, "PYTHONPATH": str(Path(tf.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    expected = onednn.is_there() and not switch
    assert done.stdout.split() == ["False", str(expected)]


def test_onednn_has_rows_above_those_of_numpy():
    for op in ("Conv2D", "Conv2DBackpropFilter", "DepthwiseConv2dNative", "MaxPool", "MaxPoolGrad", "AvgPool"):
        assert [row.priority for row in kernels.rows(op)] == [kernels.ONEDNN, 0]
    for op in ("MatMul", "BatchMatMulV2", "ApplyAdam", "ResourceApplyAdam", "FusedBatchNormV3", "ReluGrad"):
        assert kernels.rows(op)[0].priority == kernels.ONEDNN
        assert kernels.rows(op)[0].factory.__module__ == onednn_kernels.__name__


def test_steps_that_want_their_first_convolution_at_once_load_the_library_once(monkeypatch):
    inside, calls = threading.Event(), []

    def paths():
        calls.append(threading.current_thread())
        inside.wait(0.2)
        return []

    monkeypatch.setattr(onednn_library, "_paths", paths)
    monkeypatch.setattr(onednn_library, "_loaded", functools.cache(onednn_library._loaded.__wrapped__))
    threads = [threading.Thread(target=onednn_library.library) for _ in range(4)]
    for thread in threads:
        thread.start()
    inside.set()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
