"""GPUs by PyTorch must compute what CPUs compute. Here their tensors are torch's CPU tensors (DTF_GPU_BACKEND)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install torch): GPUs are not tested")

import dtf as tf
from dtf.client import device_lib
from dtf.run import kernels
from dtf.run.devices import backends
from dtf.run.devices.pytorch import setting
from dtf.run.devices.pytorch.backend import TorchBackend
from dtf.run.devices.pytorch.setting import Setting
from dtf.run.executor import executor
from dtf.run.passes.copies import with_copies
from dtf.run.passes.device_types import place_body
from tests.runtime import test_ops
from tests.runtime.op_cases import Case, all_cases

GPU0 = "/job:localhost/replica:0/task:0/device:GPU:0"


@contextlib.contextmanager
def torch_devices(count: int, memory_bytes: int | None = None) -> Iterator[TorchBackend]:
    backend = TorchBackend(Setting(count, memory_bytes, True))
    backends.register_backend(backend)
    try:
        yield backend
    finally:
        backends.unregister_backend("GPU")
        kernels.forget("GPU")


@pytest.fixture
def gpus() -> Iterator[TorchBackend]:
    with torch_devices(2) as backend:
        yield backend


@pytest.fixture
def everything_on_a_gpu(gpus: TorchBackend, monkeypatch: pytest.MonkeyPatch) -> TorchBackend:
    """Graphs that name no devices run on a GPU, as far as it has kernels."""

    def placed(graph_def: Any, library: Any = None) -> Any:
        if not any(node.device for node in graph_def.node):
            copied = type(graph_def)()
            copied.CopyFrom(graph_def)
            place_body(copied, GPU0)
            graph_def = copied
        return with_copies(graph_def, library)

    monkeypatch.setattr(executor, "with_copies", placed)
    monkeypatch.setattr(test_ops, "checked_programs", contextlib.nullcontext)  # test_ops looks at them
    return gpus


@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_an_op_computes_the_same_on_a_gpu(case: Case, everything_on_a_gpu: TorchBackend):
    test_ops.test_an_op_computes_what_numpy_computes(case)


# -- training


def trained(devices: list[str], optimizer: Any, steps: int = 3, config: Any = None) -> tuple[list[float], np.ndarray]:
    """The losses and the weights of a small convolutional net whose towers are on these devices."""
    random = np.random.RandomState(1)
    images, labels = random.rand(8, 8, 8, 3).astype(np.float32), random.randint(0, 4, 8)
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        tf.set_random_seed(1)
        losses, gradients = [], []
        for number, device in enumerate(devices):
            part = slice(number * 8 // len(devices), (number + 1) * 8 // len(devices))
            with tf.device(device), tf.variable_scope("net", reuse=number > 0):
                x = tf.layers.conv2d(tf.constant(images[part]), 4, 3, strides=2, padding="same", name="conv")
                x = tf.nn.relu(tf.layers.batch_normalization(x, training=len(devices) == 1, name="norm"))
                x = tf.layers.flatten(tf.layers.max_pooling2d(x, 2, 2))
                logits = tf.layers.dense(x, 4, name="dense")
                wanted = tf.constant(labels[part])
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=logits))
            losses.append(loss)
            gradients.append(optimizer.compute_gradients(loss, tf.trainable_variables()))
        together = [
            (tf.add_n([gradient for gradient, _ in pairs]) / len(pairs), pairs[0][1])
            for pairs in zip(*gradients, strict=True)
        ]
        step = optimizer.apply_gradients(together)
        session.run(tf.global_variables_initializer())
        found = [float(np.mean(session.run([*losses, step])[:-1])) for _ in range(steps)]
        (kernel,) = [each for each in tf.trainable_variables() if each.name == "net/conv/kernel:0"]
        return found, session.run(kernel)


OPTIMIZERS = {
    "momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.05),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_net_on_a_gpu_learns_what_it_learns_on_the_cpu(name: str, gpus: TorchBackend):
    losses, kernel = trained(["/gpu:0"], OPTIMIZERS[name]())
    expected, wanted = trained(["/cpu:0"], OPTIMIZERS[name]())
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    np.testing.assert_allclose(kernel, wanted, rtol=1e-3, atol=1e-5)


def test_towers_on_two_gpus_learn_what_two_towers_on_cpus_learn(gpus: TorchBackend):
    losses, kernel = trained(["/gpu:0", "/gpu:1"], OPTIMIZERS["momentum"]())
    expected, wanted = trained(["/cpu:0", "/cpu:0"], OPTIMIZERS["momentum"]())
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    np.testing.assert_allclose(kernel, wanted, rtol=1e-3, atol=1e-5)


def test_a_recurrent_net_on_a_gpu_learns_what_it_learns_on_the_cpu(gpus: TorchBackend):
    def losses_on(device: str) -> list[float]:
        inputs = np.random.RandomState(2).rand(3, 5, 2).astype(np.float32)
        with tf.Graph().as_default(), tf.Session() as session, tf.device(device):
            tf.set_random_seed(1)
            outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(4), inputs, [5, 3, 4], dtype=tf.float32)
            loss = tf.reduce_mean(tf.square(outputs - 0.5))
            step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
            session.run(tf.global_variables_initializer())
            return [session.run([loss, step])[0] for _ in range(3)]

    np.testing.assert_allclose(losses_on("/gpu:0"), losses_on("/cpu:0"), rtol=1e-5)


@pytest.mark.parametrize("use_resource", [False, True])
def test_an_embedding_on_a_gpu_gets_sparse_updates(use_resource: bool, gpus: TorchBackend):
    def table_on(device: str) -> np.ndarray:
        with tf.Graph().as_default(), tf.Session() as session, tf.device(device):
            initial = tf.constant_initializer(np.arange(12.0).reshape(6, 2))
            table = tf.get_variable("table", [6, 2], initializer=initial, use_resource=use_resource)
            rows = tf.nn.embedding_lookup(table, tf.constant([[1, 3], [1, 5]]))
            step = tf.train.AdagradOptimizer(0.5).minimize(tf.reduce_sum(tf.square(rows)))
            session.run(tf.global_variables_initializer())
            session.run(step)
            session.run(step)
            return session.run(table)

    np.testing.assert_allclose(table_on("/gpu:0"), table_on("/cpu:0"), rtol=1e-5)


def test_random_numbers_of_a_gpu_are_those_of_the_cpu(gpus: TorchBackend):
    def numbers_on(device: str) -> list[np.ndarray]:
        with tf.Graph().as_default(), tf.Session() as session, tf.device(device):
            tf.set_random_seed(7)
            return session.run([tf.random_normal([3]), tf.random_uniform([2, 2]), tf.truncated_normal([4])])

    for here, there in zip(numbers_on("/gpu:1"), numbers_on("/cpu:0"), strict=True):
        np.testing.assert_array_equal(here, there)


def test_a_variable_is_updated_in_place_unless_its_value_is_in_use(gpus: TorchBackend):
    with tf.Graph().as_default(), tf.Session() as session, tf.device("/gpu:0"):
        variable = tf.get_variable("variable", [3], initializer=tf.ones_initializer())
        before = tf.identity(variable.read_value()) + 0.0
        with tf.control_dependencies([before]):
            change = tf.assign_sub(variable, [1.0, 1.0, 1.0])
        session.run(tf.global_variables_initializer())
        assert session.run([before, change])[0].tolist() == [1.0, 1.0, 1.0]
        assert session.run([before, change])[0].tolist() == [0.0, 0.0, 0.0]
        assert session.run(variable).tolist() == [-1.0, -1.0, -1.0]


def test_a_view_of_a_variable_keeps_its_values_when_the_variable_changes(gpus: TorchBackend):
    with tf.Graph().as_default(), tf.Session() as session, tf.device("/gpu:0"):
        variable = tf.get_variable("variable", [4], initializer=tf.zeros_initializer(), use_resource=True)
        view = tf.reshape(variable.read_value(), [2, 2])
        with tf.control_dependencies([view]):
            change = variable.assign_add([1.0, 1.0, 1.0, 1.0])
        with tf.control_dependencies([change]):
            late = view + 0.0
        session.run(tf.global_variables_initializer())
        assert session.run(late).tolist() == [[0.0, 0.0], [0.0, 0.0]]
        assert session.run(late).tolist() == [[1.0, 1.0], [1.0, 1.0]]


# -- devices, and errors


def test_programs_see_the_devices(gpus: TorchBackend):
    assert tf.test.gpu_device_name() == "/device:GPU:0" and tf.test.is_gpu_available()
    described = [device.physical_device_desc for device in device_lib.list_local_devices()][1:]
    assert described == ["device: 0, name: PyTorch on the CPU", "device: 1, name: PyTorch on the CPU"]


def test_a_full_device_is_an_error_that_names_the_op_and_what_lies_there():
    with torch_devices(1, 1 << 20), tf.Graph().as_default(), tf.Session() as session, tf.device("/gpu:0"):
        size = tf.placeholder(tf.int32, [1])
        large = tf.add(tf.fill(size, 1.0), 1.0, name="large")
        assert session.run(tf.reduce_sum(large), {size: [1000]}) == 2000.0
        words = r"(?s)OOM when allocating tensor with shape\[200000\] and type float32 on GPU:0 by allocator GPU_.*node"
        with pytest.raises(tf.errors.ResourceExhaustedError, match=words):
            session.run(tf.reduce_sum(large), {size: [200000]})
        assert session.run(tf.reduce_sum(large), {size: [1000]}) == 2000.0, "memory is free again"


@pytest.mark.parametrize("text", ["torch-cpu", "torch-cpu:x", "torch-cpu:1:2:3", "cuda", "GPU:1"])
def test_the_environments_words_for_gpus_are_checked(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(setting.VARIABLE, text)
    with pytest.raises(tf.errors.InvalidArgumentError, match="it must be torch, torch-cpu:2 or none"):
        setting.read()


def test_arguments_of_a_wrong_shape_are_refused_in_tensorflows_words(gpus: TorchBackend):
    with tf.Graph().as_default(), tf.Session() as session, tf.device("/gpu:0"):
        x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
        product, total, joined = tf.matmul(x, y), tf.add(x, y), tf.concat([x, y], 0)
        feeds = {x: np.ones((2, 3)), y: np.ones((2, 4))}
        with pytest.raises(tf.errors.InvalidArgumentError, match="Matrix size-incompatible"):
            session.run(product, feeds)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(total, feeds)
        with pytest.raises(tf.errors.InvalidArgumentError, match="ConcatOp : Dimension 1 in both shapes must be equal"):
            session.run(joined, feeds)


def test_a_net_learns_in_mixed_precision(gpus: TorchBackend):
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.auto_mixed_precision = 1
    losses, _ = trained(["/gpu:0"], OPTIMIZERS["momentum"](), config=config)
    expected, _ = trained(["/gpu:0"], OPTIMIZERS["momentum"]())
    assert losses != expected, "float16 rounds"
    np.testing.assert_allclose(losses, expected, rtol=0.02)
