"""oneDNN's convolutions, poolings, products and Adam, where that library is installed.

Owns the calls into its C interface (version 3, whose functions stay), and the choice of a copy of it: the one of the
PyPI package onednn-cpu-gomp, which dtf depends on where it has a wheel, or the system's libdnnl.so.3. Which ops use it,
and for what shapes, is decided in `kernels.onednn_kernels`. Nothing is loaded before the first question;
`DTF_KERNELS=numpy` answers it with no. Constants are those of oneDNN's headers; its documentation is at
https://uxlfoundation.github.io/oneDNN.

    window = Window(size=(5, 5), stride=(1, 1), dilation=(1, 1), before=(2, 2), after=(2, 2))
    forward = convolution(FORWARD, (64, 28, 28, 1), (5, 5, 1, 16), (64, 28, 28, 16), window, threads=2)
    outputs = forward(images, filters)        # None instead of a function: oneDNN has nothing fast for this

All arrays are float32 and contiguous. Images are [batch, rows, columns, channels], which oneDNN reads as they are;
filters are put into the order that its code wants, each time, which takes a hundredth of the convolution. The threads
are OpenMP's: each Python thread that calls has its own, as many as asked for. A process forked from one that has used
them computes with one thread, since OpenMP does not notice that the others are gone.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import math
import os
import sysconfig
import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import byref, c_char_p, c_float, c_int, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from dtf.run.interfaces import Value
from dtf.run.value_types import Array
from dtf.wire import forks

__all__ = ["AVERAGE", "BACK_TO_FILTERS", "BACK_TO_IMAGES", "FORWARD", "MAXIMUM", "Program", "SWITCH", "Window"]
__all__ += ["adam", "convolution", "is_switched_off", "is_there", "matmul", "pooling", "pooling_gradient"]

SWITCH = "DTF_KERNELS"
"""Environment variable: "numpy" has all kernels be numpy's."""

FORWARD, BACK_TO_IMAGES, BACK_TO_FILTERS = "forward", "back to images", "back to filters"
MAXIMUM, AVERAGE = 0x1FF, 0x3FF  # an average does not count the padding

Program = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Window:
    """A sliding window, each value as (along rows, along columns). A dilation of 1 is a window without gaps."""

    size: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    before: tuple[int, int]
    after: tuple[int, int]


def is_switched_off() -> bool:
    """Whether the user wants numpy's kernels. Does not load oneDNN."""
    return os.environ.get(SWITCH) == "numpy"


def is_there() -> bool:
    """Whether oneDNN can be used, and is not switched off."""
    return not is_switched_off() and _library() is not None


def convolution(
    direction: str,
    images: tuple[int, ...],
    filters: tuple[int, ...],
    outputs: tuple[int, ...],
    window: Window,
    threads: int,
    depthwise: bool = False,
) -> Program | None:
    """A function for one direction of a convolution of float32, or None where oneDNN has no fast code for it.

    Args:
      direction: FORWARD: f(images, filters) -> outputs; BACK_TO_IMAGES: f(gradient of outputs, filters) -> gradient of
        images; BACK_TO_FILTERS: f(images, gradient of outputs) -> gradient of filters.
      images, outputs: shapes [batch, rows, columns, channels].
      filters: shape [rows, columns, in, out]; if depthwise, [rows, columns, channels, multiplier].
      threads: how many the function uses.
    """
    library = _library()
    if library is None:
        return None
    library.use_threads(threads)
    source, target = library.images(images), library.images(outputs)
    theirs, ours = library.filters(filters, depthwise)
    # Where None stands there could be a bias.
    sides = [_dims(window.stride), _gaps(window), _dims(window.before), _dims(window.after)]
    forward = library.plan("convolution_forward", _TRAINING, _DIRECT, source, theirs, None, target, *sides)
    if forward is None:
        return None
    if direction == FORWARD:
        takes, gives = {_IMAGES: source, _FILTERS: ours}, (_OUTPUTS, target, outputs)
        return _program(library, forward, threads, takes, gives)
    if direction == BACK_TO_IMAGES:
        plan = library.plan("convolution_backward_data", _DIRECT, source, theirs, target, *sides, forward)
        takes, gives = {_OUTPUTS_GRADIENT: target, _FILTERS: ours}, (_IMAGES_GRADIENT, source, images)
    else:
        plan = library.plan("convolution_backward_weights", _DIRECT, source, theirs, None, target, *sides, forward)
        takes, gives = {_IMAGES: source, _OUTPUTS_GRADIENT: target}, (_FILTERS_GRADIENT, ours, filters)
    return _program(library, plan, threads, takes, gives)


def matmul(
    left: tuple[int, ...], right: tuple[int, ...], transpose_left: bool, transpose_right: bool, threads: int
) -> Program | None:
    """A function f(left, right) -> products of matrices, or None where oneDNN has no fast code for them.

    Args:
      left, right: shapes of the arrays, [..., rows, columns] with the same dimensions before.
      transpose_left, transpose_right: whether the array holds the transposed matrices.
    """
    library = _library()
    if library is None:
        return None
    library.use_threads(threads)
    first, rows = library.matrices(left, transpose_left)
    second, columns = library.matrices(right, transpose_right, 1)
    shape = (*left[:-2], rows, columns)
    target, _ = library.matrices(shape, False)
    plan = library.plan("matmul", first, second, None, target)
    return _program(library, plan, threads, {_IMAGES: first, _FILTERS: second}, (_OUTPUTS, target, shape))


def adam(count: int, beta1: float, beta2: float, epsilon: float, threads: int) -> Callable[..., None] | None:
    """A function f(variable, m, v, gradient, rate) that applies Adam in place, or None without fast code for it.

    The arrays have `count` elements; `rate` has one, the step size with its sign turned. Three passes over blocks that
    fit the cache, instead of numpy's twelve: m += (gradient - m) * (1 - beta1), v += (gradient ** 2 - v) * (1 - beta2),
    variable += m * rate / (sqrt(v) + epsilon).
    """
    library = _library()
    if library is None:
        return None
    library.use_threads(threads)
    block = min(count, _ADAM_BLOCK * threads)
    whole = _adam_of_block(library, block, beta1, beta2, epsilon)
    rest = _adam_of_block(library, count % block, beta1, beta2, epsilon) if count % block else whole
    if whole is None or rest is None:
        return None
    blocks = [(whole, start * _FLOAT32_BYTES) for start in range(0, count - block + 1, block)]
    if count % block:
        blocks.append((rest, (count - count % block) * _FLOAT32_BYTES))

    def apply(variable: Array, m: Array, v: Array, gradient: Array, rate: Array) -> None:
        library.use_threads(threads)
        variable_at, m_at, v_at, gradient_at, rate_at = map(_address, (variable, m, v, gradient, rate))
        for update, offset in blocks:
            update(variable_at + offset, m_at + offset, v_at + offset, gradient_at + offset, rate_at)

    return apply


_ADAM_BLOCK = 1 << 16  # elements of a thread: the four arrays of a block fit the second cache
_FLOAT32_BYTES = 4


def _adam_of_block(library: _Library, count: int, beta1: float, beta2: float, epsilon: float) -> _Chain | None:
    vector, single = library.description((count,), (1,)), library.description((1,), (1,))
    variable, m, v, gradient, rate = range(5)
    sum_up = _Binary(_ADD, vector)
    steps: list[tuple[int, list[_Unary | _Binary], dict[int, int]]] = [
        (
            _SUBTRACT,
            [_Unary(_LINEAR, 1 - beta1), sum_up],
            {_IMAGES: gradient, _SECOND: m, _OUTPUTS: m, _of_later(1): m},
        ),
        (
            _MULTIPLY,
            [_Binary(_SUBTRACT, vector), _Unary(_LINEAR, 1 - beta2), sum_up],
            {_IMAGES: gradient, _SECOND: gradient, _OUTPUTS: v, _of_later(0): v, _of_later(2): v},
        ),
        (
            _MAXIMUM,  # of v and v: the rest follows
            [
                _Unary(_SQRT), _Unary(_LINEAR, 1, epsilon), _Unary(_POWER, 1, -1), _Binary(_MULTIPLY, vector),
                _Binary(_MULTIPLY, single), sum_up,
            ],
            {_IMAGES: v, _SECOND: v, _OUTPUTS: variable, _of_later(3): m, _of_later(4): rate, _of_later(5): variable},
        ),
    ]  # fmt: skip
    plans = [(library.elementwise(kind, vector, later), roles) for kind, later, roles in steps]
    if any(plan is None for plan, _ in plans):
        return None
    return _Chain(library, [(plan, roles) for plan, roles in plans if plan is not None], [vector] * 4 + [single])


def pooling(
    kind: int, images: tuple[int, ...], outputs: tuple[int, ...], window: Window, threads: int
) -> Program | None:
    """A function f(images) -> outputs of MAXIMUM or AVERAGE, or None where oneDNN has no fast code for it.

    A maximum passes over NaN, as TensorFlow's does.
    """
    library = _library()
    if library is None:
        return None
    library.use_threads(threads)
    source, target = library.images(images), library.images(outputs)
    plan = library.plan("pooling_forward", _INFERENCE, kind, source, target, *_pooling_sides(window))
    return _program(library, plan, threads, {_IMAGES: source}, (_OUTPUTS, target, outputs))


def pooling_gradient(
    kind: int, images: tuple[int, ...], outputs: tuple[int, ...], window: Window, threads: int
) -> Program | None:
    """The gradient of `pooling`: for MAXIMUM f(images, gradient of outputs), for AVERAGE f(gradient of outputs).

    Of equal elements the first one gets the gradient of a maximum.
    """
    library = _library()
    if library is None:
        return None
    library.use_threads(threads)
    source, target = library.images(images), library.images(outputs)
    forward = library.plan("pooling_forward", _TRAINING, kind, source, target, *_pooling_sides(window))
    if forward is None:
        return None
    plan = library.plan("pooling_backward", kind, source, target, *_pooling_sides(window), forward)
    takes, gives = {_OUTPUTS_GRADIENT: target}, (_IMAGES_GRADIENT, source, images)
    if kind == AVERAGE:
        return _program(library, plan, threads, takes, gives)
    # Where each maximum stood, which the forward op does not hand on: found once more.
    places = library.described(forward, _WORKSPACE)
    back = _program(library, plan, threads, {**takes, _WORKSPACE: places}, gives)
    if back is None:
        return None
    again = _Primitive(library, forward, {_IMAGES: source, _OUTPUTS: target, _WORKSPACE: places})

    def pool_back(images_: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        library.use_threads(threads)
        stood = np.empty(again.sizes[_WORKSPACE], np.uint8)
        again({_IMAGES: images_, _OUTPUTS: np.empty(outputs, np.float32), _WORKSPACE: stood})
        return back(gradient, stood)

    return pool_back


def _program(
    library: _Library,
    plan: _Object | None,
    threads: int,
    takes: dict[int, _Object],
    gives: tuple[int, _Object, tuple[int, ...]],
) -> Program | None:
    """A function of arrays in the roles and orders of `takes` that returns a new one: its role, order and shape."""
    if plan is None or not library.is_fast(plan):
        return None
    role, order, shape = gives
    run = _Primitive(library, plan, {**takes, role: order})
    before = {each: library.reorder(takes[each], library.described(plan, each)) for each in takes if each in _CHOSEN}
    after = library.reorder(library.described(plan, role), order) if role in _CHOSEN else None

    def compute(*given: np.ndarray) -> np.ndarray:
        library.use_threads(threads)
        arrays = dict(zip(takes, given, strict=True))
        for each, reorder in before.items():
            if reorder:
                inner = np.empty(run.sizes[each], np.uint8)
                reorder({_FROM: arrays[each], _TO: inner})
                arrays[each] = inner
        result = np.empty(shape, np.float32)
        arrays[role] = np.empty(run.sizes[role], np.uint8) if after else result
        run(arrays)
        if after:
            after({_FROM: arrays[role], _TO: result})
        return result

    return compute


# The roles of a primitive's arguments (DNNL_ARG_*), how to ask for their descriptions, and what kinds are called.
_IMAGES, _OUTPUTS, _FILTERS, _WORKSPACE, _SCRATCHPAD = 1, 17, 33, 64, 80
_IMAGES_GRADIENT, _OUTPUTS_GRADIENT, _FILTERS_GRADIENT = 129, 145, 161
_FROM, _TO, _SECOND = _IMAGES, _OUTPUTS, 2
_DESCRIPTION_OF = {_FILTERS: 131, _FILTERS_GRADIENT: 132, _WORKSPACE: 135, _SCRATCHPAD: 136}
_CHOSEN = (_FILTERS, _FILTERS_GRADIENT)
_NAME_OF_CODE = 8
_TRAINING, _INFERENCE, _DIRECT = 64, 96, 1
_CPU, _FLOAT32, _ANY_ORDER, _IN_ORDER, _SCRATCHPAD_IS_GIVEN = 1, 3, 1, 1, 1
_SLOW_CODE = ("ref", "simple")
_ADD, _MULTIPLY, _MAXIMUM, _SUBTRACT = 0x1FFF0, 0x1FFF1, 0x1FFF2, 0x1FFF5
_SQRT, _LINEAR, _POWER = 0x25, 0x26, 0x30


def _of_later(number: int) -> int:
    """The role of the second argument of an operation that follows the first one."""
    return 32768 * (number + 1) | _SECOND


class _Unary(NamedTuple):
    """A function of each result: alpha * x + beta, alpha * x ** beta ..."""

    kind: int
    alpha: float = 0.0
    beta: float = 0.0


class _Binary(NamedTuple):
    """An operation of each result and an element of another array, or its only one."""

    kind: int
    order: _Object


_Dims = c_int64 * 12


class _Argument(ctypes.Structure):
    _fields_ = (("role", c_int), ("memory", c_void_p))


class _Object:
    """An object of oneDNN's, which functions take as their argument. Destroyed with this one, if it has a way."""

    def __init__(self, pointer: c_void_p, destroy: Callable[[c_void_p], Array] | None) -> None:
        self._as_parameter_ = pointer
        self._destroy = destroy

    def __del__(self) -> None:
        if self._destroy is not None:
            self._destroy(self._as_parameter_)


class _Library:
    """The loaded library with its engine. Nothing in it changes; all threads use it."""

    def __init__(self, functions: ctypes.CDLL) -> None:
        self.functions = functions
        functions.omp_set_num_threads.restype = None
        functions.dnnl_primitive_desc_query_md.restype = c_void_p
        functions.dnnl_memory_desc_get_size.restype = c_size_t
        functions.dnnl_engine_create.argtypes = [c_void_p, c_int, c_size_t]
        functions.dnnl_memory_create.argtypes = [c_void_p] * 4
        functions.dnnl_memory_set_data_handle.argtypes = [c_void_p] * 2
        self.engine = self.create("engine", _CPU, 0)
        self.attributes = self.create("primitive_attr")
        functions.dnnl_primitive_attr_set_scratchpad_mode(self.attributes, _SCRATCHPAD_IS_GIVEN)

    def use_threads(self, count: int) -> None:
        """For what the calling thread prepares and runs from now on."""
        self.functions.omp_set_num_threads(1 if _was_used_by_parent else count)

    def create(self, kind: str, *arguments: Value, way: str = "") -> _Object:
        """A new object of a kind. Raises RuntimeError when oneDNN refuses."""
        pointer = c_void_p()
        self.check(getattr(self.functions, f"dnnl_{kind}_create{way}")(byref(pointer), *arguments), f"create a {kind}")
        return _Object(pointer, getattr(self.functions, f"dnnl_{kind}_destroy"))

    def check(self, status: int, what: str) -> None:
        if status:
            raise RuntimeError(f"oneDNN could not {what}: status {status}. {SWITCH}=numpy does without it.")

    def description(self, dims: Sequence[int], strides: Sequence[int]) -> _Object:
        """Of an array of float32; with no strides, in the order that oneDNN likes best."""
        if not strides:
            return self.create("memory_desc", len(dims), _dims(dims), _FLOAT32, _ANY_ORDER, way="_with_tag")
        return self.create("memory_desc", len(dims), _dims(dims), _FLOAT32, _dims(strides), way="_with_strides")

    def images(self, shape: tuple[int, ...]) -> _Object:
        batch, rows, columns, channels = shape
        strides = rows * columns * channels, 1, columns * channels, channels
        return self.description((batch, channels, rows, columns), strides)

    def filters(self, shape: tuple[int, ...], depthwise: bool) -> tuple[_Object, _Object]:
        """Filters in the order that oneDNN chooses, and in TensorFlow's."""
        rows, columns, inner, outer = shape
        dims = (inner, outer, 1, rows, columns) if depthwise else (outer, inner, rows, columns)
        channels = (outer, 1, 1) if depthwise else (1, outer)
        strides = (*channels, columns * inner * outer, inner * outer)
        return self.description(dims, ()), self.description(dims, strides)

    def matrices(self, shape: tuple[int, ...], is_transposed: bool, side: int = 0) -> tuple[_Object, int]:
        """Of matrices in an array of a shape, and their number of rows (side 0) or columns (side 1)."""
        *outer, rows, columns = shape
        strides = [columns, 1]
        for size in (rows * columns * math.prod(outer[place + 1 :]) for place in reversed(range(len(outer)))):
            strides.insert(0, size)
        dims = [*outer, rows, columns]
        if is_transposed:
            dims[-2:], strides[-2:] = dims[:-3:-1], strides[:-3:-1]
        return self.description(dims, strides), dims[-2 + side]

    def elementwise(self, kind: int, order: _Object, later: Sequence[_Unary | _Binary]) -> _Object | None:
        """The plan of an operation of two arrays and what follows for each element; None where no fast code exists."""
        operations = self.create("post_ops")
        for each in later:
            if isinstance(each, _Unary):
                numbers = c_float(each.alpha), c_float(each.beta)
                status = self.functions.dnnl_post_ops_append_eltwise(operations, each.kind, *numbers)
            else:
                status = self.functions.dnnl_post_ops_append_binary(operations, each.kind, each.order)
            self.check(status, "combine operations")
        attributes = self.create("primitive_attr")
        self.functions.dnnl_primitive_attr_set_scratchpad_mode(attributes, _SCRATCHPAD_IS_GIVEN)
        self.check(self.functions.dnnl_primitive_attr_set_post_ops(attributes, operations), "combine operations")
        plan = self.plan("binary", kind, order, order, order, attributes=attributes)
        if plan is None or not self.is_fast(plan):
            return None
        return None if self.functions.dnnl_memory_desc_get_size(self.described(plan, _SCRATCHPAD)) else plan

    def plan(self, kind: str, *arguments: Value, attributes: _Object | None = None) -> _Object | None:
        """How oneDNN would compute something (a primitive descriptor); None where it would not."""
        pointer = c_void_p()
        create = getattr(self.functions, f"dnnl_{kind}_primitive_desc_create")
        if create(byref(pointer), self.engine, *arguments, attributes or self.attributes):
            return None
        return _Object(pointer, self.functions.dnnl_primitive_desc_destroy)

    def is_fast(self, plan: _Object) -> bool:
        """Whether its code is made for this processor, and is not the plain loops that the others are checked by."""
        name = c_char_p()
        status = self.functions.dnnl_primitive_desc_query(plan, _NAME_OF_CODE, 0, byref(name))
        return not status and not (name.value or b"ref").decode().startswith(_SLOW_CODE)

    def described(self, plan: _Object, role: int) -> _Object:
        """How one argument lies in memory. Lives as long as the plan."""
        pointer = self.functions.dnnl_primitive_desc_query_md(plan, _DESCRIPTION_OF[role], 0)
        return _Object(c_void_p(pointer), None)

    def reorder(self, source: _Object, target: _Object) -> _Primitive | None:
        """What copies from one order into the other; None where they are the same."""
        if self.functions.dnnl_memory_desc_equal(source, target):
            return None
        pointer, engine = c_void_p(), self.engine
        create = self.functions.dnnl_reorder_primitive_desc_create
        self.check(create(byref(pointer), source, engine, target, engine, self.attributes), "reorder filters")
        plan = _Object(pointer, self.functions.dnnl_primitive_desc_destroy)
        return _Primitive(self, plan, {_FROM: source, _TO: target})


class _Primitive:
    """Code of oneDNN's with places for its arguments: p({role: array}). Any number of threads may call it at once.

    Attributes:
      sizes: of the arguments by role, in bytes.
    """

    def __init__(self, library: _Library, plan: _Object, orders: dict[int, _Object]) -> None:
        self._library = library
        self._code = library.create("primitive", plan)
        orders = {role: library.described(plan, role) if role in _CHOSEN else order for role, order in orders.items()}
        scratchpad = library.described(plan, _SCRATCHPAD)
        self._scratch_bytes: int = library.functions.dnnl_memory_desc_get_size(scratchpad)
        if self._scratch_bytes:
            orders[_SCRATCHPAD] = scratchpad
        self._plan, self._orders = plan, orders
        self.sizes = {role: library.functions.dnnl_memory_desc_get_size(order) for role, order in orders.items()}
        self._idle = [self._places()]

    def __call__(self, arrays: dict[int, np.ndarray]) -> None:
        functions = self._library.functions
        if self._scratch_bytes:
            arrays = {**arrays, _SCRATCHPAD: np.empty(self._scratch_bytes, np.uint8)}
        try:
            places = self._idle.pop()
        except IndexError:  # as many as ever were in use at once
            places = self._places()
        stream, memories, arguments = places
        for role, array in arrays.items():
            functions.dnnl_memory_set_data_handle(memories[role], array.__array_interface__["data"][0])
        status = functions.dnnl_primitive_execute(self._code, stream, len(arguments), arguments)
        self._idle.append(places)
        self._library.check(status, "compute")

    def _places(self) -> tuple[_Object, dict[int, _Object], ctypes.Array[_Argument]]:
        library = self._library
        memories = {
            role: library.create("memory", order, library.engine, None) for role, order in self._orders.items()
        }
        arguments = (_Argument * len(memories))(*[_Argument(role, m._as_parameter_) for role, m in memories.items()])
        return library.create("stream", library.engine, _IN_ORDER), memories, arguments


class _Chain:
    """Primitives that run one after another on the same arrays: c(address, ...). Any number of threads may call it."""

    def __init__(
        self, library: _Library, plans: Sequence[tuple[_Object, Mapping[int, int]]], orders: Sequence[_Object]
    ) -> None:
        """`plans`: each with the number of the array in each of its roles; `orders`: of the arrays."""
        self._library = library
        self._codes = [(library.create("primitive", plan), plan, roles) for plan, roles in plans]
        self._orders = orders
        self._idle = [self._places()]

    def __call__(self, *addresses: int) -> None:
        functions = self._library.functions
        try:
            places = self._idle.pop()
        except IndexError:  # as many as ever were in use at once
            places = self._places()
        stream, memories, calls = places
        for memory, address in zip(memories, addresses, strict=True):
            functions.dnnl_memory_set_data_handle(memory, address)
        status = 0
        for code, count, arguments in calls:
            status = status or functions.dnnl_primitive_execute(code, stream, count, arguments)
        self._idle.append(places)
        self._library.check(status, "compute")

    def _places(self) -> tuple[_Object, list[_Object], list[tuple[_Object, int, ctypes.Array[_Argument]]]]:
        library = self._library
        memories = [library.create("memory", order, library.engine, None) for order in self._orders]
        calls = []
        for code, _, roles in self._codes:
            arguments = [_Argument(role, memories[number]._as_parameter_) for role, number in roles.items()]
            calls.append((code, len(arguments), (_Argument * len(arguments))(*arguments)))
        return library.create("stream", library.engine, _IN_ORDER), memories, calls


def _address(array: Array) -> int:
    return cast(int, array.__array_interface__["data"][0])


def _dims(values: Sequence[int]) -> ctypes.Array[c_int64]:
    return _Dims(*values)


def _gaps(window: Window) -> ctypes.Array[c_int64]:
    """oneDNN counts the elements that are left out."""
    return _dims([dilation - 1 for dilation in window.dilation])


def _pooling_sides(window: Window) -> list[ctypes.Array[c_int64]]:
    return [_dims(window.stride), _dims(window.size), _gaps(window), _dims(window.before), _dims(window.after)]


def _library() -> _Library | None:
    """The library, loaded once; None, with the reason in the log, where it cannot be used."""
    with _loading:  # two steps may want their first convolution at once; sysconfig fails then, and the log line doubles
        return _loaded()


@functools.cache
def _loaded() -> _Library | None:
    log = logging.getLogger("dtf")
    for path in _paths():
        try:
            functions = ctypes.CDLL(path)
        except OSError as error:
            if os.path.exists(path):
                log.warning("oneDNN is installed but cannot be loaded, so that numpy computes: %s", error)
            continue
        if not hasattr(functions, "omp_set_num_threads"):
            log.info("%s is not used: it is built without OpenMP", path)
            continue
        try:
            library = _Library(functions)
        except RuntimeError as error:
            log.warning("%s is not used, so that numpy computes: %s", path, error)
            continue
        log.debug("heavy operations are computed by %s", path)
        return library
    return None


def _paths() -> list[str]:
    """Where packages of PyPI put it, for all and for one user, and what the loader finds by its name."""
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    folders = [sysconfig.get_path("data", scheme) for scheme in schemes]
    return [*(os.path.join(folder, "lib", _FILE) for folder in folders), _FILE]


_FILE = "libdnnl.so.3"
_loading = threading.Lock()


def _is_loaded() -> bool:
    return _loaded.cache_info().currsize > 0 and _library() is not None


def _begin_anew() -> None:
    global _was_used_by_parent
    _was_used_by_parent = _was_used_by_parent or _is_loaded()


_was_used_by_parent = False
forks.in_parent_before(lambda: not _is_loaded())  # steps that are compiled have chosen their threads
forks.in_child(_begin_anew)
