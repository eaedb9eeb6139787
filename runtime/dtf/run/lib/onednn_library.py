"""The loaded oneDNN: its engine, plans, primitives and the orders of arrays, by its C interface.

Owns the calls into its C interface (version 3, whose functions stay), and the choice of a copy of it: the one of the
PyPI package onednn-cpu-gomp, which dtf depends on where it has a wheel, or the system's libdnnl.so.3. Which primitives
make an operation is in `onednn` and `onednn_norms`. Constants are those of oneDNN's headers; its documentation is at
https://uxlfoundation.github.io/oneDNN.
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
from typing import NamedTuple, cast

import numpy as np

from dtf.run.interfaces import Value
from dtf.run.value_types import Array
from dtf.wire import forks

SWITCH = "DTF_KERNELS"
"""Environment variable: "numpy" has all kernels be numpy's."""


def is_switched_off() -> bool:
    """Whether the user wants numpy's kernels. Does not load oneDNN."""
    return os.environ.get(SWITCH) == "numpy"


# The roles of a primitive's arguments (DNNL_ARG_*), how to ask for their descriptions, and what kinds are called.
IMAGES, OUTPUTS, FILTERS, WORKSPACE, SCRATCHPAD = 1, 17, 33, 64, 80
IMAGES_GRADIENT, OUTPUTS_GRADIENT, FILTERS_GRADIENT = 129, 145, 161
MEAN, VARIANCE, SCALE, SHIFT, SCALE_GRADIENT, SHIFT_GRADIENT = 49, 50, 51, 52, 255, 256
FROM, TO, SECOND = IMAGES, OUTPUTS, 2
_DESCRIPTION_OF = {FILTERS: 131, FILTERS_GRADIENT: 132, WORKSPACE: 135, SCRATCHPAD: 136}
CHOSEN = (FILTERS, FILTERS_GRADIENT)
_NAME_OF_CODE = 8
TRAINING, INFERENCE, BACKWARD, DIRECT = 64, 96, 128, 1
_CPU, _FLOAT32, _ANY_ORDER, _IN_ORDER, _SCRATCHPAD_IS_GIVEN = 1, 3, 1, 1, 1
_SLOW_CODE = ("ref", "simple")
_AVX512 = 0x27  # AVX-512 F, BW, VL, DQ
ADD, MULTIPLY, LARGER, SUBTRACT, LESS = 0x1FFF0, 0x1FFF1, 0x1FFF2, 0x1FFF5, 0x1FFF9
SQRT, LINEAR, POWER = 0x25, 0x26, 0x30
SOFTMAX, LOG_SOFTMAX = 0x30000, 0x30001


def of_later(number: int) -> int:
    """The role of the second argument of an operation that follows the first one."""
    return 32768 * (number + 1) | SECOND


class Unary(NamedTuple):
    """A function of each result: alpha * x + beta, alpha * x ** beta ..."""

    kind: int
    alpha: float = 0.0
    beta: float = 0.0


class Binary(NamedTuple):
    """An operation of each result and an element of another array, or its only one."""

    kind: int
    order: Object


_Dims = c_int64 * 12


class _Argument(ctypes.Structure):
    _fields_ = (("role", c_int), ("memory", c_void_p))


class Object:
    """An object of oneDNN's, which functions take as their argument. Destroyed with this one, if it has a way."""

    def __init__(self, pointer: c_void_p, destroy: Callable[[c_void_p], Array] | None) -> None:
        self._as_parameter_ = pointer
        self._destroy = destroy

    def __del__(self) -> None:
        if self._destroy is not None:
            self._destroy(self._as_parameter_)


class Library:
    """The loaded library with its engine. Nothing in it changes; all threads use it.

    Attributes:
      has_avx512: whether its code for this processor uses AVX-512.
    """

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
        isa = functions.dnnl_get_effective_cpu_isa()
        self.has_avx512 = isa & _AVX512 == _AVX512

    def use_threads(self, count: int) -> None:
        """For what the calling thread prepares and runs from now on."""
        self.functions.omp_set_num_threads(1 if _was_used_by_parent else count)

    def create(self, kind: str, *arguments: Value, way: str = "") -> Object:
        """A new object of a kind. Raises RuntimeError when oneDNN refuses."""
        pointer = c_void_p()
        self.check(getattr(self.functions, f"dnnl_{kind}_create{way}")(byref(pointer), *arguments), f"create a {kind}")
        return Object(pointer, getattr(self.functions, f"dnnl_{kind}_destroy"))

    def check(self, status: int, what: str) -> None:
        if status:
            raise RuntimeError(f"oneDNN could not {what}: status {status}. {SWITCH}=numpy does without it.")

    def description(self, dims: Sequence[int], strides: Sequence[int]) -> Object:
        """Of an array of float32; with no strides, in the order that oneDNN likes best."""
        if not strides:
            return self.create("memory_desc", len(dims), extents(dims), _FLOAT32, _ANY_ORDER, way="_with_tag")
        return self.create("memory_desc", len(dims), extents(dims), _FLOAT32, extents(strides), way="_with_strides")

    def images(self, shape: tuple[int, ...]) -> Object:
        batch, rows, columns, channels = shape
        strides = rows * columns * channels, 1, columns * channels, channels
        return self.description((batch, channels, rows, columns), strides)

    def filters(self, shape: tuple[int, ...], depthwise: bool) -> tuple[Object, Object]:
        """Filters in the order that oneDNN chooses, and in TensorFlow's."""
        rows, columns, inner, outer = shape
        dims = (inner, outer, 1, rows, columns) if depthwise else (outer, inner, rows, columns)
        channels = (outer, 1, 1) if depthwise else (1, outer)
        strides = (*channels, columns * inner * outer, inner * outer)
        return self.description(dims, ()), self.description(dims, strides)

    def matrices(self, shape: tuple[int, ...], is_transposed: bool, side: int = 0) -> tuple[Object, int]:
        """Of matrices in an array of a shape, and their number of rows (side 0) or columns (side 1)."""
        *outer, rows, columns = shape
        strides = [columns, 1]
        for size in (rows * columns * math.prod(outer[place + 1 :]) for place in reversed(range(len(outer)))):
            strides.insert(0, size)
        dims = [*outer, rows, columns]
        if is_transposed:
            dims[-2:], strides[-2:] = dims[:-3:-1], strides[:-3:-1]
        return self.description(dims, strides), dims[-2 + side]

    def elementwise(
        self, kind: int, order: Object, later: Sequence[Unary | Binary], second: Object | None = None
    ) -> Object | None:
        """The plan of an operation of two arrays and what follows for each element; None where no fast code exists.

        Args:
          kind: the operation.
          order: of the first array and the result; of the second one too, unless `second` is given.
          later: what follows.
        """
        operations = self.create("post_ops")
        for each in later:
            if isinstance(each, Unary):
                numbers = c_float(each.alpha), c_float(each.beta)
                status = self.functions.dnnl_post_ops_append_eltwise(operations, each.kind, *numbers)
            else:
                status = self.functions.dnnl_post_ops_append_binary(operations, each.kind, each.order)
            self.check(status, "combine operations")
        attributes = self.create("primitive_attr")
        self.functions.dnnl_primitive_attr_set_scratchpad_mode(attributes, _SCRATCHPAD_IS_GIVEN)
        self.check(self.functions.dnnl_primitive_attr_set_post_ops(attributes, operations), "combine operations")
        plan = self.plan("binary", kind, order, second or order, order, attributes=attributes)
        if plan is None or not self.is_fast(plan):
            return None
        return None if self.functions.dnnl_memory_desc_get_size(self.described(plan, SCRATCHPAD)) else plan

    def plan(self, kind: str, *arguments: Value, attributes: Object | None = None) -> Object | None:
        """How oneDNN would compute something (a primitive descriptor); None where it would not."""
        pointer = c_void_p()
        create = getattr(self.functions, f"dnnl_{kind}_primitive_desc_create")
        if create(byref(pointer), self.engine, *arguments, attributes or self.attributes):
            return None
        return Object(pointer, self.functions.dnnl_primitive_desc_destroy)

    def is_fast(self, plan: Object) -> bool:
        """Whether its code is made for this processor, and is not the plain loops that the others are checked by."""
        name = c_char_p()
        status = self.functions.dnnl_primitive_desc_query(plan, _NAME_OF_CODE, 0, byref(name))
        return not status and not (name.value or b"ref").decode().startswith(_SLOW_CODE)

    def described(self, plan: Object, role: int) -> Object:
        """How one argument lies in memory. Lives as long as the plan."""
        pointer = self.functions.dnnl_primitive_desc_query_md(plan, _DESCRIPTION_OF[role], 0)
        return Object(c_void_p(pointer), None)

    def reorder(self, source: Object, target: Object) -> Primitive | None:
        """What copies from one order into the other; None where they are the same."""
        if self.functions.dnnl_memory_desc_equal(source, target):
            return None
        pointer, engine = c_void_p(), self.engine
        create = self.functions.dnnl_reorder_primitive_desc_create
        self.check(create(byref(pointer), source, engine, target, engine, self.attributes), "reorder filters")
        plan = Object(pointer, self.functions.dnnl_primitive_desc_destroy)
        return Primitive(self, plan, {FROM: source, TO: target})


class Primitive:
    """Code of oneDNN's with places for its arguments: p({role: array}). Any number of threads may call it at once.

    Attributes:
      sizes: of the arguments by role, in bytes.
    """

    def __init__(self, library: Library, plan: Object, orders: dict[int, Object]) -> None:
        self._library = library
        self._code = library.create("primitive", plan)
        orders = {role: library.described(plan, role) if role in CHOSEN else order for role, order in orders.items()}
        scratchpad = library.described(plan, SCRATCHPAD)
        self._scratch_bytes: int = library.functions.dnnl_memory_desc_get_size(scratchpad)
        if self._scratch_bytes:
            orders[SCRATCHPAD] = scratchpad
        self._plan, self._orders = plan, orders
        self.sizes = {role: library.functions.dnnl_memory_desc_get_size(order) for role, order in orders.items()}
        self._idle = [self._places()]

    def __call__(self, arrays: dict[int, np.ndarray]) -> None:
        functions = self._library.functions
        if self._scratch_bytes:
            arrays = {**arrays, SCRATCHPAD: np.empty(self._scratch_bytes, np.uint8)}
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

    def _places(self) -> tuple[Object, dict[int, Object], ctypes.Array[_Argument]]:
        library = self._library
        memories = {
            role: library.create("memory", order, library.engine, None) for role, order in self._orders.items()
        }
        arguments = (_Argument * len(memories))(*[_Argument(role, m._as_parameter_) for role, m in memories.items()])
        return library.create("stream", library.engine, _IN_ORDER), memories, arguments


class Chain:
    """Primitives that run one after another on the same arrays: c(address, ...). Any number of threads may call it."""

    def __init__(
        self, library: Library, plans: Sequence[tuple[Object, Mapping[int, int]]], orders: Sequence[Object]
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

    def _places(self) -> tuple[Object, list[Object], list[tuple[Object, int, ctypes.Array[_Argument]]]]:
        library = self._library
        memories = [library.create("memory", order, library.engine, None) for order in self._orders]
        calls = []
        for code, _, roles in self._codes:
            arguments = [_Argument(role, memories[number]._as_parameter_) for role, number in roles.items()]
            calls.append((code, len(arguments), (_Argument * len(arguments))(*arguments)))
        return library.create("stream", library.engine, _IN_ORDER), memories, calls


def address(array: Array) -> int:
    return cast(int, array.__array_interface__["data"][0])


def extents(values: Sequence[int]) -> ctypes.Array[c_int64]:
    return _Dims(*values)


def library() -> Library | None:
    """The library, loaded once; None, with the reason in the log, where it cannot be used."""
    with _loading:  # two steps may want their first convolution at once; sysconfig fails then, and the log line doubles
        return _loaded()


@functools.cache
def _loaded() -> Library | None:
    log = logging.getLogger("dtf")
    for path in _paths():
        try:
            functions = _with_short_spins(path)
        except OSError as error:
            if os.path.exists(path):
                log.warning("oneDNN is installed but cannot be loaded, so that numpy computes: %s", error)
            continue
        if not hasattr(functions, "omp_set_num_threads"):
            log.info("%s is not used: it is built without OpenMP", path)
            continue
        try:
            library = Library(functions)
        except (AttributeError, RuntimeError) as error:
            log.warning("%s is not used, so that numpy computes: %s", path, error)
            continue
        log.debug("heavy operations are computed by %s", path)
        return library
    return None


def _with_short_spins(path: str) -> ctypes.CDLL:
    """Loads a library, and with it OpenMP, whose threads then spin for 30 us before they sleep: a wake takes as long.

    By default they spin for milliseconds. Where other processes want the cores, each part of a step then waits for a
    thread that waits for a core: 270 ms instead of 10 for a small step. OpenMP reads the environment when it is loaded;
    a setting of the user's stands.
    """
    if any(name in os.environ for name in (_SPINS, "OMP_WAIT_POLICY")):
        return ctypes.CDLL(path)
    os.environ[_SPINS] = "2000"
    try:
        return ctypes.CDLL(path)
    finally:
        del os.environ[_SPINS]


_SPINS = "GOMP_SPINCOUNT"


def _paths() -> list[str]:
    """Where packages of PyPI put it, for all and for one user, and what the loader finds by its name."""
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    folders = [sysconfig.get_path("data", scheme) for scheme in schemes]
    return [*(os.path.join(folder, "lib", _FILE) for folder in folders), _FILE]


_FILE = "libdnnl.so.3"
_loading = threading.Lock()


def _is_loaded() -> bool:
    return _loaded.cache_info().currsize > 0 and library() is not None


def _begin_anew() -> None:
    global _was_used_by_parent
    _was_used_by_parent = _was_used_by_parent or _is_loaded()


_was_used_by_parent = False
forks.in_parent_before(lambda: not _is_loaded())  # steps that are compiled have chosen their threads
forks.in_child(_begin_anew)
