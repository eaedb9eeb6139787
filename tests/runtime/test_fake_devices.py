"""Fake accelerators must compute what CPUs compute, from arrays that nothing else can read."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dtf as tf
from dtf.client import device_lib
from dtf.run.devices import backends
from dtf.run.devices.fake import FakeBackend, fake_devices
from dtf.run.devices.pytorch import setting
from dtf.run.executor import executor
from dtf.run.passes.copies import with_copies
from dtf.run.passes.device_types import place_body
from dtf.testing import LocalCluster
from tests.ports import free_ports
from tests.runtime import test_ops
from tests.runtime.op_cases import Case, all_cases

GPU0 = "/job:localhost/replica:0/task:0/device:GPU:0"


@pytest.fixture
def gpus() -> Iterator[FakeBackend]:
    with fake_devices("GPU", 2) as backend:
        yield backend


@pytest.fixture
def everything_on_a_gpu(gpus: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    """Graphs that name no devices run on a fake GPU, as far as it has kernels."""

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
def test_an_op_computes_the_same_on_a_fake_gpu(case: Case, everything_on_a_gpu: FakeBackend):
    test_ops.test_an_op_computes_what_numpy_computes(case)


# -- training


def test_a_training_on_a_gpu_copies_what_is_fed_and_fetched(gpus: FakeBackend):
    with tf.Graph().as_default(), tf.Session() as session:
        features = tf.placeholder(tf.float32, [4, 2])
        weights = tf.get_variable("weights", [2, 1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(features, weights) - 1.0))
        step = tf.train.AdamOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        feeds = {features: np.ones((4, 2), np.float32)}
        losses = [session.run([loss, step], feeds)[0]]
        before = gpus.copies
        losses += [session.run([loss, step], feeds)[0] for _ in range(3)]
        assert losses == sorted(losses, reverse=True)
        assert [now - then for now, then in zip(gpus.copies, before, strict=True)] == [3, 0, 3]
        assert isinstance(session.run(weights), np.ndarray)


def test_towers_on_two_gpus_learn_what_one_cpu_learns(gpus: FakeBackend):
    batch = np.arange(8, dtype=np.float32).reshape(4, 2)

    def trained(devices: list[str]) -> np.ndarray:
        with tf.Graph().as_default(), tf.Session() as session:
            with tf.device("/cpu:0"):
                weights = tf.get_variable("weights", [2, 1], initializer=tf.ones_initializer())
                optimizer = tf.train.MomentumOptimizer(0.01, 0.9)
            parts = tf.split(tf.constant(batch), len(devices))
            gradients = []
            for device, part in zip(devices, parts, strict=True):
                with tf.device(device):
                    loss = tf.reduce_mean(tf.square(tf.matmul(part, weights)))
                    gradients.append(optimizer.compute_gradients(loss, [weights])[0][0])
            with tf.device("/cpu:0"):
                step = optimizer.apply_gradients([(tf.add_n(gradients) / len(devices), weights)])
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(step)
            return session.run(weights)

    alone = trained(["/cpu:0"])
    assert gpus.copies_across == 0
    np.testing.assert_allclose(trained(["/gpu:0", "/gpu:1"]), alone, rtol=1e-5)
    assert gpus.copies_in > 0 and gpus.copies_out > 0


def test_a_worker_with_gpus_trains_variables_of_a_ps_without(gpus: FakeBackend):
    ports = free_ports(2)
    cluster = {"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{ports[1]}"]}
    only_cpus = tf.ConfigProto(device_count={"GPU": 0})
    with (
        tf.train.Server(cluster, "ps", 0, config=only_cpus),
        tf.train.Server(cluster, "worker", 0) as worker,
        tf.Graph().as_default() as graph,
        tf.Session(worker.target) as session,
    ):
        with tf.device(tf.train.replica_device_setter(cluster=cluster)):
            weights = tf.get_variable("weights", [2], initializer=tf.ones_initializer())
            loss = tf.reduce_sum(tf.square(weights * [1.0, 2.0]))
            step = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
        session.run(tf.global_variables_initializer())
        losses = [session.run([loss, step])[0] for _ in range(3)]
        assert losses == sorted(losses, reverse=True)
        assert gpus.copies_in > 0 and gpus.copies_out > 0
        kinds = sorted(device.name.partition("/device:")[2] for device in session.list_devices())
        assert kinds == ["CPU:0", "CPU:0", "GPU:0", "GPU:1"]
        assert graph.get_operation_by_name("weights").device == "/job:ps/task:0"


def test_a_client_without_devices_uses_those_of_its_server(monkeypatch):
    monkeypatch.setenv(backends.FAKE_VARIABLE, "GPU:1")
    with LocalCluster({"worker": 1}, processes=True) as cluster, tf.Graph().as_default():
        monkeypatch.delenv(backends.FAKE_VARIABLE)
        with tf.Session(cluster.target("worker")) as session:
            assert [device.device_type for device in session.list_devices()] == ["CPU", "GPU"]
            with tf.device("/gpu:0"):
                root = tf.sqrt(tf.placeholder_with_default(4.0, []), name="root")
            metadata = tf.RunMetadata()
            traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            assert session.run(root, options=traced, run_metadata=metadata) == 2.0
    devices = {node.node_name: each.device for each in metadata.step_stats.dev_stats for node in each.node_stats}
    assert devices["root"] == "/job:worker/replica:0/task:0/device:GPU:0"


def test_a_function_of_a_dataset_runs_on_the_cpu(gpus: FakeBackend):
    def doubled(value: Any) -> Any:
        with tf.device("/gpu:0"):
            return value * 2.0

    with tf.Graph().as_default(), tf.Session() as session:
        dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0]).map(doubled)
        assert session.run(dataset.make_one_shot_iterator().get_next()) == 2.0
    assert gpus.copies == (0, 0, 0)


def test_loops_branches_and_calls_on_a_gpu_compute_what_they_do_on_cpus(gpus: FakeBackend):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        with tf.device("/gpu:1"):
            looped = tf.while_loop(lambda value: value < 100.0, lambda value: value * 2.0, [x])
            chosen = tf.cond(x > 1.0, lambda: x * 3.0, lambda: x - 1.0)
            mapped = tf.map_fn(lambda value: value + x, tf.constant([1.0, 2.0]))
            slope = tf.gradients(looped, x)[0]
        found = session.run([looped, chosen, mapped, slope], {x: 3.0})
        assert [np.asarray(value).tolist() for value in found] == [192.0, 9.0, [4.0, 5.0], 64.0]
        assert gpus.copies_in > 0


def test_a_variable_of_a_gpu_is_saved_and_restored(gpus: FakeBackend, tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.device("/gpu:0"):
            value = tf.get_variable("value", [2], initializer=tf.ones_initializer())
            table = tf.get_variable("table", [2], initializer=tf.zeros_initializer(), use_resource=True)
            change = tf.group(value.assign_add([1.0, 2.0]), table.assign_add([3.0, 4.0]))
        saver = tf.train.Saver()
        session.run(tf.global_variables_initializer())
        session.run(change)
        path = saver.save(session, str(tmp_path / "model"))
        session.run(change)
        saver.restore(session, path)
        assert [each.tolist() for each in session.run([value, table])] == [[2.0, 3.0], [3.0, 4.0]]


def test_a_trace_names_the_device_of_each_node(gpus: FakeBackend):
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.device("/gpu:1"):
            root = tf.sqrt(tf.placeholder_with_default(4.0, []), name="root")
        metadata = tf.RunMetadata()
        session.run(root, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    traced = {node.node_name: each.device for each in metadata.step_stats.dev_stats for node in each.node_stats}
    assert traced["root"].endswith("/device:GPU:1")


# -- placing


def placed(build: Any, **config: Any) -> dict[str, str]:
    """The type and index of the device of each node that a step runs, by name."""
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(**config)) as session:
        fetches = build()
        handler = _Lines()
        logger = logging.getLogger("dtf")
        logger.addHandler(handler)
        try:
            session.run(fetches)
        finally:
            logger.removeHandler(handler)
    found = (re.fullmatch(r"(.*): \(\w+\): .*/device:(\w+:\d+)", line) for line in handler.lines)
    return {match[1]: match[2] for match in found if match}


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def test_nodes_that_ask_for_nothing_go_to_the_first_gpu_with_their_constants(gpus: FakeBackend):
    def build() -> Any:
        total = tf.add(tf.placeholder_with_default([1.0], [None], name="one"), 2.0, name="total")
        with tf.device("/gpu:1"):
            twice = tf.multiply(total, tf.constant(2.0, name="two"), name="twice")
        with tf.device("/cpu:0"):
            text = tf.as_string(twice, name="text")
        return tf.string_to_number(text, name="number"), tf.shape(twice, name="shape")

    found = placed(build, log_device_placement=True)
    assert found["total"] == found["total/y"] == "GPU:0"
    assert found["twice"] == found["two"] == found["shape"] == "GPU:1"
    assert found["text"] == found["number"] == "CPU:0"


@pytest.mark.parametrize(
    ("asked", "config", "given"),
    [
        ("/gpu:1", {}, "GPU:1"),
        ("/device:GPU:*", {}, "GPU:0"),
        ("/gpu:2", {"allow_soft_placement": True}, "GPU:0"),
        ("/cpu:3", {"device_count": {"CPU": 4}}, "CPU:3"),
        ("/gpu:0", {"device_count": {"GPU": 0}, "allow_soft_placement": True}, "CPU:0"),
    ],
)
def test_a_request_is_met(asked: str, config: dict[str, Any], given: str, gpus: FakeBackend):
    def build() -> Any:
        with tf.device(asked):
            return tf.sqrt(tf.placeholder_with_default(4.0, []), name="root")

    assert placed(build, log_device_placement=True, **config)["root"] == given


def text_on_a_gpu() -> Any:
    with tf.device("/gpu:0"):
        return tf.as_string(tf.constant(1.0), name="text")


def an_int32_variable_on_a_gpu() -> Any:
    with tf.device("/gpu:0"):
        return tf.get_variable("count", [], tf.int32, initializer=tf.zeros_initializer()).initializer


@pytest.mark.parametrize(
    ("build", "name"), [(text_on_a_gpu, "text"), (an_int32_variable_on_a_gpu, "count")], ids=["op", "dtype"]
)
def test_an_op_without_a_kernel_for_the_device_is_refused_or_goes_to_the_cpu(build: Any, name: str, gpus: FakeBackend):
    words = "no supported kernel for GPU devices is available"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        placed(build)
    assert placed(build, allow_soft_placement=True, log_device_placement=True)[name] == "CPU:0"


def test_a_group_is_where_all_of_it_has_kernels(gpus: FakeBackend):
    def build() -> Any:
        values = tf.constant([1.0, 2.0], name="values")
        with tf.colocate_with(values):
            return tf.as_string(values, name="text")

    found = placed(build, log_device_placement=True)
    assert found["values"] == found["text"] == "CPU:0"


def test_int32_is_computed_in_the_hosts_memory(gpus: FakeBackend):
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.device("/gpu:0"):
            sizes = tf.placeholder(tf.int32, [2]) + [1, 1]
        assert session.run(sizes, {sizes.op.inputs[0]: [1, 2]}).tolist() == [2, 3]
    assert gpus.copies == (0, 0, 0)


def test_programs_see_the_devices(gpus: FakeBackend):
    assert [device.name for device in device_lib.list_local_devices()] == [
        "/device:CPU:0", "/device:GPU:0", "/device:GPU:1"
    ]  # fmt: skip
    assert tf.test.is_gpu_available() and tf.test.gpu_device_name() == "/device:GPU:0"
    half = tf.ConfigProto(gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=0.5), device_count={"GPU": 1})
    with tf.Session(config=half) as session:
        (device,) = [each for each in session.list_devices() if each.device_type == "GPU"]
    assert device.memory_limit_bytes == gpus.list_devices()[0].memory_bytes // 2


def visible(devices: str, **config: Any) -> tf.ConfigProto:
    return tf.ConfigProto(gpu_options=tf.GPUOptions(visible_device_list=devices), **config)


@pytest.mark.parametrize(("devices", "count", "numbers"), [("1,0", 2, [1, 0]), ("1", 2, [1]), ("1,0", 1, [1])])
def test_the_list_of_visible_devices_chooses_and_orders(
    devices: str, count: int, numbers: list[int], gpus: FakeBackend, monkeypatch: pytest.MonkeyPatch
):
    allocated: list[int] = []
    copy_in = gpus.copy_in
    monkeypatch.setattr(gpus, "copy_in", lambda index, array: (allocated.append(index), copy_in(index, array))[1])
    with tf.Graph().as_default(), tf.Session(config=visible(devices, device_count={"GPU": count})) as session:
        names = [each.name for each in session.list_devices() if each.device_type == "GPU"]
        for index, number in enumerate(numbers):
            with tf.device(f"/gpu:{index}"):
                variable = tf.Variable(tf.placeholder_with_default([1.0, 2.0], [2]) * 2.0)
            session.run(variable.initializer)
            assert session.run(variable).tolist() == [2.0, 4.0]
            assert set(allocated) == {number}
            allocated.clear()
    assert [name.rpartition(":")[2] for name in names] == [str(index) for index in range(len(numbers))]
    others = [each.physical_device_desc for each in device_lib.list_local_devices(visible(devices))][1:]
    assert [int(text.split(":")[1].split(",")[0]) for text in others][: len(numbers)] == numbers


@pytest.mark.parametrize("devices", ["2", "0,0", "-1", "a", "0,"])
def test_a_list_of_visible_devices_that_do_not_exist_is_refused(devices: str, gpus: FakeBackend):
    with pytest.raises(tf.errors.InvalidArgumentError, match="visible_device_list"):
        tf.Session(config=visible(devices))


def test_a_name_stands_for_one_device_in_a_process(gpus: FakeBackend):
    with tf.Session(config=visible("1")), pytest.raises(tf.errors.AlreadyExistsError, match="visible_device_list"):
        tf.Session()


# -- the arrays


@pytest.mark.parametrize(
    "use", [np.asarray, float, bool, len, list, lambda array: array + 1, lambda array: np.add(array, 1), lambda a: a[0]]
)
def test_an_array_of_a_fake_device_is_no_numpy_array(use: Any, gpus: FakeBackend):
    with pytest.raises(TypeError):
        use(gpus.copy_in(0, np.ones(2)))


def test_the_copies_of_a_partition_are_nodes(gpus: FakeBackend):
    graph_def = tf.GraphDef()
    for name, op, device, inputs in (
        ("a", "Placeholder", "CPU:0", []),
        ("b", "Sqrt", "GPU:0", ["a"]),
        ("c", "Sqrt", "GPU:1", ["b"]),
        ("d", "AddV2", "CPU:0", ["b", "c"]),
        ("e", "Neg", "CPU:0", ["b"]),
    ):
        node = graph_def.node.add(name=name, op=op, device=f"/job:w/replica:0/task:0/device:{device}", input=inputs)
        node.attr["dtype" if op == "Placeholder" else "T"].type = 1
    lines = {node.name: (node.op, list(node.input)) for node in with_copies(graph_def).node}
    assert lines["b"] == ("Sqrt", ["a_copy_0"]) and lines["a_copy_0"] == ("_DeviceCopy", ["a"])
    assert lines["c"] == ("Sqrt", ["b_copy_1"]) and lines["d"] == ("AddV2", ["b_copy_2", "c_copy_3"])
    assert lines["e"] == ("Neg", ["b_copy_2"]), "a value goes to each memory once"


def test_a_process_of_cpus_alone_passes_partitions_on():
    graph_def = tf.GraphDef()
    assert with_copies(graph_def) is graph_def


@pytest.mark.parametrize("text", ["GPU", "GPU:x", "CPU:2", ":2", "1:2"])
def test_the_environments_word_for_fake_devices_is_checked(text: str):
    with pytest.raises(tf.errors.InvalidArgumentError, match="DTF_FAKE_DEVICES"):
        FakeBackend.from_text(text)


def test_there_is_one_backend_of_a_device_type(gpus: FakeBackend):
    with pytest.raises(ValueError, match="GPU"):
        backends.register_backend(FakeBackend("GPU"))


# -- values of several devices


def test_collective_operations_of_two_gpus_meet(gpus: FakeBackend):
    with tf.Graph().as_default(), tf.Session() as session:
        results = []
        for index in range(2):
            with tf.device(f"/gpu:{index}"):
                value = tf.constant([1.0, 2.0]) * (index + 1.0)
                attributes = {"group_size": 2, "group_key": 1, "instance_key": 1, "subdiv_offsets": [0]}
                reduced = tf.raw_ops.CollectiveReduce(input=value, merge_op="Add", final_op="Div", **attributes)
            results.append(reduced)
        assert [each.tolist() for each in session.run(results)] == [[1.5, 3.0], [1.5, 3.0]]


def test_nccl_gives_each_gpu_the_sum_of_all(gpus: FakeBackend):
    with tf.Graph().as_default(), tf.Session() as session:
        source = tf.placeholder(tf.float32, [2])
        parts = []
        for index in range(2):
            with tf.device(f"/gpu:{index}"):
                parts.append(source * (index + 1.0))
        sums = tf.contrib.nccl.all_sum(parts)
        assert [each.device for each in sums] == ["/device:GPU:0", "/device:GPU:1"]
        slope = tf.gradients(sums, source)[0]
        greatest = tf.contrib.nccl.all_max(parts)[1]
        found = session.run([*sums, slope, greatest], {source: [1.0, 2.0]})
        assert [each.tolist() for each in found] == [[3.0, 6.0], [3.0, 6.0], [6.0, 6.0], [2.0, 4.0]]
        with pytest.raises(ValueError, match="devices of their own"):
            tf.contrib.nccl.all_sum([parts[0], parts[0]])
        with pytest.raises(ValueError, match="Device assignment required"):
            tf.contrib.nccl.all_sum([source])


def test_a_machine_with_a_driver_says_why_it_has_no_gpus(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(setting, "driver_is_there", lambda: True)
    monkeypatch.setattr(setting, "_has_torch", lambda: False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv(setting.VARIABLE, raising=False)
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.device("/gpu:0"):
            root = tf.sqrt(4.0)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)explicitly assigned.*pip install 'dtf\[gpu\]'"):
            session.run(root)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert "CUDA_VISIBLE_DEVICES is '-1'" in setting.why_none()


def test_a_session_takes_its_part_of_the_memory(gpus: FakeBackend, monkeypatch: pytest.MonkeyPatch):
    limits: list[tuple[int, float]] = []
    monkeypatch.setattr(gpus, "limit_memory", lambda index, fraction: limits.append((index, fraction)))
    options = tf.GPUOptions(per_process_gpu_memory_fraction=0.25, visible_device_list="1")
    with tf.Session(config=tf.ConfigProto(gpu_options=options)):
        assert limits == [(1, 0.25)]
    options.per_process_gpu_memory_fraction = 1.5
    with pytest.raises(tf.errors.InvalidArgumentError, match="per_process_gpu_memory_fraction is 1.5"):
        tf.Session(config=tf.ConfigProto(gpu_options=options))
