"""tensorflow.python.framework.test_util: the names that TensorFlow's own unit tests use beyond `tf.test`.

In TensorFlow these decorators choose between graphs and eager execution. dtf has only graphs, so most decorators
return the test unchanged. Tests of eager execution or of version 2 are skipped.
"""

from __future__ import annotations

import contextlib
import functools
import unittest
from collections.abc import Callable, Iterator
from typing import Any

from dtf.build.default_graph import get_default_graph
from dtf.build.graph import Graph
from dtf.session import Session
from dtf.test import gpu_device_name
from dtf.test.graph_defs import assert_equal_graph_def
from dtf.test.messages import assert_same_message
from dtf.test.test_case import TestCase

__all__ = [
    "CudaSupportsHalfMatMulAndConv", "ErrorLoggingSession", "GpuSupportsHalfMatMulAndConv", "InstallStackTraceHandler",
    "IsBuiltWithROCm", "IsBuiltWithXLA", "IsGoogleCudaEnabled", "IsMklEnabled", "NCHWToNHWC", "NCHW_VECT_CToNHWC",
    "NHWCToNCHW", "NHWCToNCHW_VECT_C", "TensorFlowTestCase", "also_run_as_tf_function", "assert_equal_graph_def_v1",
    "assert_equal_graph_def_v2", "assert_meta_graph_protos_equal", "assert_no_garbage_created",
    "assert_no_new_pyobjects_executing_eagerly", "assert_no_new_tensors", "assert_ops_in_graph",
    "build_as_function_and_v1_graph", "deprecated_graph_mode_only", "device", "disable_all_xla",
    "disable_control_flow_v2", "disable_cudnn_autotune", "disable_xla", "enable_c_shapes", "enable_control_flow_v2",
    "enable_eager_op_as_function", "enable_output_all_intermediates", "enable_tf_xla_constant_folding",
    "for_all_test_methods", "force_cpu", "force_gpu", "get_node_def_from_graph", "is_xla_enabled", "no_xla_auto_jit",
    "py_func_if_in_function", "run_all_in_deprecated_graph_mode_only", "run_all_in_graph_and_eager_modes",
    "run_cuda_only", "run_deprecated_v1", "run_gpu_only", "run_in_async_and_sync_mode", "run_in_graph_and_eager_modes",
    "run_v1_only", "run_v2_only", "set_producer_version", "skip_if", "skip_if_error", "use_gpu", "with_c_shapes",
    "with_control_flow_v2", "with_forward_compatibility_horizons", "xla_allow_fallback",
]  # fmt: skip

TensorFlowTestCase = TestCase
ErrorLoggingSession = Session
assert_equal_graph_def_v1 = assert_equal_graph_def_v2 = assert_equal_graph_def


def _as_it_is(decorated: Any = None, *_: Any, **__: Any) -> Any:
    """A decorator that changes nothing, with arguments or without."""
    return decorated if callable(decorated) else lambda later: later


def _as_it_is_for(description: Any, *_: Any, **__: Any) -> Callable[[Any], Any]:
    """A decorator that changes nothing and whose argument is a text or a function."""
    return lambda decorated: decorated


run_deprecated_v1 = deprecated_graph_mode_only = run_all_in_deprecated_graph_mode_only = _as_it_is
also_run_as_tf_function = assert_no_new_tensors = assert_no_garbage_created = _as_it_is
assert_no_new_pyobjects_executing_eagerly = run_in_async_and_sync_mode = _as_it_is
enable_c_shapes = with_c_shapes = enable_control_flow_v2 = with_control_flow_v2 = _as_it_is
enable_output_all_intermediates = enable_eager_op_as_function = enable_tf_xla_constant_folding = _as_it_is
disable_cudnn_autotune = py_func_if_in_function = _as_it_is
disable_control_flow_v2 = disable_xla = disable_all_xla = no_xla_auto_jit = xla_allow_fallback = _as_it_is_for
with_forward_compatibility_horizons = _as_it_is_for


def for_all_test_methods(decorator: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[[type], type]:
    """A decorator of classes, which decorates their tests."""

    def decorate(cls: type) -> type:
        for name in dir(cls):
            value = getattr(cls, name)
            if callable(value) and name.startswith("test") and name != "test_session":
                setattr(cls, name, decorator(*args, **kwargs)(value))
        return cls

    return decorate


def run_in_graph_and_eager_modes(
    func: Any = None, config: Any = None, use_gpu: bool = True, reset_test: bool = True,
    assert_no_eager_garbage: bool = False,
) -> Any:  # fmt: skip
    """Runs the test in the session of the test.

    Raises:
      ValueError: a class is decorated.
    """

    def decorate(test: Any) -> Any:
        if isinstance(test, type):
            raise ValueError("`run_in_graph_and_eager_modes` only supports test methods: decorate the class "
                             "with `run_all_in_graph_and_eager_modes`.")  # fmt: skip

        @functools.wraps(test)
        def run(self: Any, *args: Any, **kwargs: Any) -> None:
            with self.test_session(use_gpu=use_gpu, config=config):
                test(self, *args, **kwargs)

        return run

    return decorate if func is None else decorate(func)


def run_all_in_graph_and_eager_modes(cls: type) -> type:
    """Runs each test of the class in the session of the test."""
    return for_all_test_methods(run_in_graph_and_eager_modes)(cls)


def build_as_function_and_v1_graph(func: Callable[..., None]) -> Callable[..., None]:
    """Runs the test in a graph of its own."""

    @functools.wraps(func)
    def run(self: Any, *args: Any, **kwargs: Any) -> None:
        with Graph().as_default():
            func(self, *args, **kwargs)

    return run


def run_v1_only(reason: Any = None, func: Any = None) -> Any:
    """Returns the test unchanged: dtf has only version 1 behaviour."""
    if callable(reason):
        return reason
    return _as_it_is if func is None else func


def _skipped(why: str) -> Callable[..., Any]:
    def decorate(func: Any = None, *_: Any, **__: Any) -> Any:
        skip = unittest.skip(why)
        return skip(func) if callable(func) else skip

    return decorate


run_v2_only = _skipped("The test is for version 2.")
run_gpu_only = _skipped("The test requires a GPU.")
run_cuda_only = _skipped("The test requires CUDA.")


def skip_if(condition: Any) -> Callable[[Any], Any]:
    """Skips the test if the condition, or its result when called at the test's start, is true."""

    def decorate(test: Any) -> Any:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            if not (condition() if callable(condition) else condition):
                test(*args, **kwargs)

        return run

    return decorate


@contextlib.contextmanager
def skip_if_error(test_obj: Any, error_type: Any, messages: Any = None) -> Iterator[None]:
    """A block after whose error, if its message contains one of `messages`, the test is skipped."""
    wanted = [messages] if isinstance(messages, str) else list(messages or [])
    try:
        yield
    except error_type as error:
        if wanted and not any(each in str(error) for each in wanted):
            raise
        test_obj.skipTest(f"Skipping error: {error}")


@contextlib.contextmanager
def device(use_gpu: bool) -> Iterator[None]:
    """A block whose ops are placed on the first GPU, if one exists and is requested, else on the CPU."""
    with get_default_graph().device((gpu_device_name() if use_gpu else "") or "/device:CPU:0"):
        yield


def use_gpu() -> Any:
    """`device(use_gpu=True)`."""
    return device(use_gpu=True)


@contextlib.contextmanager
def force_gpu() -> Iterator[None]:
    """A block whose ops are made for the first GPU."""
    with get_default_graph().device(gpu_device_name() or "/device:GPU:0"):
        yield


@contextlib.contextmanager
def force_cpu() -> Iterator[None]:
    """A block whose ops are made for the CPU."""
    with get_default_graph().device("/device:CPU:0"):
        yield


def assert_ops_in_graph(expected_ops: dict[str, str], graph: Any) -> dict[str, Any]:
    """The nodes of these names, which have these ops.

    Raises:
      ValueError: one is missing, or has another op.
    """
    found = {node.name: node for node in graph.as_graph_def().node if node.name in expected_ops}
    for name, op in expected_ops.items():
        if name in found and found[name].op != op:
            raise ValueError(f"Expected op for node {name} is different: {op} vs {found[name].op}")
    if set(expected_ops) != set(found):
        raise ValueError(f"Not all expected ops are present. Expected {set(expected_ops)}, found {set(found)}")
    return found


def assert_meta_graph_protos_equal(tester: Any, a: Any, b: Any) -> None:
    """Asserts that two MetaGraphDefs are equal; the order of nodes does not matter."""
    assert_equal_graph_def(a.graph_def, b.graph_def)
    copies = [type(a)(), type(b)()]
    for copy, given in zip(copies, (a, b), strict=True):
        copy.CopyFrom(given)
        copy.ClearField("graph_def")
    assert_same_message(tester, copies[0], copies[1], None)


def get_node_def_from_graph(node_name: str, graph_def: Any) -> Any:
    """The node of this name, or None."""
    return next((node for node in graph_def.node if node.name == node_name), None)


def set_producer_version(graph: Graph, producer_version: int) -> None:
    """Makes the graph one of an older producer."""
    from dtf.build.importer import import_graph_def
    from dtf.wire.pb import graph_pb2

    graph_def = graph_pb2.GraphDef()
    graph_def.versions.producer = producer_version
    with graph.as_default():
        import_graph_def(graph_def)


def _reordered(order: tuple[int, ...]) -> Callable[[Any], Any]:
    def reorder(input_tensor: Any) -> Any:
        if isinstance(input_tensor, list | tuple):
            axes = order if len(input_tensor) == len(order) else _with_depth(order, len(input_tensor))
            return [input_tensor[each] for each in axes]
        from dtf.build.ops.rearranging import transpose

        rank = input_tensor.get_shape().ndims
        return transpose(input_tensor, list(order if rank == len(order) else _with_depth(order, rank)))

    return reorder


def _with_depth(order: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """The same conversion for five dimensions."""
    if rank != len(order) + 1:
        raise ValueError(f"images have 4 or 5 dimensions, not {rank}")
    return (0, 4, 1, 2, 3) if order == (0, 3, 1, 2) else (0, 2, 3, 4, 1)


NHWCToNCHW = _reordered((0, 3, 1, 2))
NCHWToNHWC = _reordered((0, 2, 3, 1))


def NHWCToNCHW_VECT_C(input_shape_or_tensor: Any) -> Any:  # noqa: N802
    """[N, H, W, C] as [N, C / 4, H, W, 4]."""
    is_shape = isinstance(input_shape_or_tensor, list | tuple)
    shape = input_shape_or_tensor if is_shape else input_shape_or_tensor.get_shape().as_list()
    if shape[-1] % 4:
        raise ValueError(f"the last dimension must be divisible by 4, not {shape[-1]}")
    split = [*shape[:3], shape[3] // 4, 4]
    order = [0, 3, 1, 2, 4]
    if is_shape:
        return [split[each] for each in order]
    from dtf.build.ops.array import reshape
    from dtf.build.ops.rearranging import transpose

    return transpose(reshape(input_shape_or_tensor, split), order)


def NCHW_VECT_CToNHWC(input_shape_or_tensor: Any) -> Any:  # noqa: N802
    """[N, C / 4, H, W, 4] as [N, H, W, C]."""
    is_shape = isinstance(input_shape_or_tensor, list | tuple)
    shape = input_shape_or_tensor if is_shape else input_shape_or_tensor.get_shape().as_list()
    if shape[-1] != 4:
        raise ValueError(f"the last dimension must be 4, not {shape[-1]}")
    joined = [shape[0], shape[2], shape[3], shape[1] * shape[4]]
    if is_shape:
        return joined
    from dtf.build.ops.array import reshape
    from dtf.build.ops.rearranging import transpose

    return reshape(transpose(input_shape_or_tensor, [0, 2, 3, 1, 4]), joined)


def InstallStackTraceHandler() -> None:  # noqa: N802
    """Does nothing: Python prints its own."""


def _never(*_: Any, **__: Any) -> bool:
    """False."""
    return False


IsGoogleCudaEnabled = IsBuiltWithROCm = IsBuiltWithXLA = IsMklEnabled = is_xla_enabled = _never
GpuSupportsHalfMatMulAndConv = CudaSupportsHalfMatMulAndConv = _never

