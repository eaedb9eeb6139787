"""oneDNN's convolutions, poolings, products and Adam, where that library is installed.

Owns which of its primitives make an operation; how they are called is in `onednn_library`. Which ops use them, and for
what shapes, is decided in `kernels.onednn_kernels`. Nothing is loaded before the first question; `DTF_KERNELS=numpy`
answers it with no.

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
from collections.abc import Callable
from ctypes import c_char, c_float, c_int64, c_void_p
from dataclasses import dataclass

import numpy as np

from dtf.run.lib.onednn_library import (
    ADD,
    CHOSEN,
    DIRECT,
    FILTERS,
    FILTERS_GRADIENT,
    FROM,
    IMAGES,
    IMAGES_GRADIENT,
    INFERENCE,
    LARGER,
    LESS,
    LINEAR,
    LOG_SOFTMAX,
    MULTIPLY,
    OUTPUTS,
    OUTPUTS_GRADIENT,
    POWER,
    SECOND,
    SOFTMAX,
    SQRT,
    SUBTRACT,
    SWITCH,
    TO,
    TRAINING,
    WORKSPACE,
    Binary,
    Chain,
    Library,
    Object,
    Primitive,
    Unary,
    address,
    extents,
    is_switched_off,
    of_later,
)
from dtf.run.lib.onednn_library import library as _library
from dtf.run.value_types import Array

__all__ = ["AVERAGE", "BACK_TO_FILTERS", "BACK_TO_IMAGES", "FORWARD", "MAXIMUM", "Program", "SWITCH", "Window"]
__all__ += ["adam", "convolution", "has_avx512", "is_switched_off", "is_there", "matmul", "pooling", "pooling_gradient"]
__all__ += ["relu_gradient", "softmax"]

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


def is_there() -> bool:
    """Whether oneDNN can be used, and is not switched off."""
    return not is_switched_off() and _library() is not None


def has_avx512() -> bool:
    """Whether oneDNN is there and has code with AVX-512 for this processor."""
    library = _library()
    return library is not None and library.has_avx512


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
    sides = [extents(window.stride), _gaps(window), extents(window.before), extents(window.after)]
    forward = library.plan("convolution_forward", TRAINING, DIRECT, source, theirs, None, target, *sides)
    if forward is None:
        return None
    if direction == FORWARD:
        takes, gives = {IMAGES: source, FILTERS: ours}, (OUTPUTS, target, outputs)
        return _program(library, forward, threads, takes, gives)
    if direction == BACK_TO_IMAGES:
        plan = library.plan("convolution_backward_data", DIRECT, source, theirs, target, *sides, forward)
        takes, gives = {OUTPUTS_GRADIENT: target, FILTERS: ours}, (IMAGES_GRADIENT, source, images)
    else:
        plan = library.plan("convolution_backward_weights", DIRECT, source, theirs, None, target, *sides, forward)
        takes, gives = {IMAGES: source, OUTPUTS_GRADIENT: target}, (FILTERS_GRADIENT, ours, filters)
    return _program(library, plan, threads, takes, gives)


def matmul(
    left: tuple[int, ...], right: tuple[int, ...], transpose_left: bool, transpose_right: bool, threads: int
) -> Program | None:
    """A function f(left, right) -> products of matrices, or None where oneDNN has no fast code for them.

    Of two ways that oneDNN has, the faster one for these shapes: its code for matrices is faster where the right one is
    transposed, unless the result is large and the inner dimension short; its BLAS function is faster elsewhere.

    Args:
      left, right: shapes of the arrays, [..., rows, columns] with the same extents before.
      transpose_left, transpose_right: whether the array holds the transposed matrices.
    """
    library = _library()
    if library is None:
        return None
    if len(left) == 2:
        inner, rows = left if transpose_left else left[::-1]
        columns = right[0 if transpose_right else 1]
        is_flat = inner <= _FLAT_INNER_MAX and rows * columns >= _FLAT_RESULT_MIN
        if not transpose_right or is_flat:
            return _product_by_blas(library, (rows, inner, columns), transpose_left, transpose_right, threads)
    library.use_threads(threads)
    first, rows = library.matrices(left, transpose_left)
    second, columns = library.matrices(right, transpose_right, 1)
    shape = (*left[:-2], rows, columns)
    target, _ = library.matrices(shape, False)
    plan = library.plan("matmul", first, second, None, target)
    return _program(library, plan, threads, {IMAGES: first, FILTERS: second}, (OUTPUTS, target, shape))


_FLAT_INNER_MAX, _FLAT_RESULT_MIN = 256, 1 << 20


def _product_by_blas(
    library: Library, sizes: tuple[int, int, int], transpose_left: bool, transpose_right: bool, threads: int
) -> Program:
    rows, inner, columns = sizes
    left_row = rows if transpose_left else inner
    right_row = inner if transpose_right else columns
    sides = c_char(b"T" if transpose_left else b"N"), c_char(b"T" if transpose_right else b"N")
    extent = c_int64(rows), c_int64(columns), c_int64(inner)
    one, zero = c_float(1), c_float(0)
    left_pitch, right_pitch, pitch = c_int64(left_row), c_int64(right_row), c_int64(columns)
    sgemm = library.functions.dnnl_sgemm

    def compute(left: Array, right: Array) -> Array:
        library.use_threads(threads)
        result = np.empty((rows, columns), np.float32)
        status = sgemm(
            *sides, *extent, one, c_void_p(address(left)), left_pitch, c_void_p(address(right)), right_pitch, zero,
            c_void_p(address(result)), pitch,
        )  # fmt: skip
        library.check(status, "multiply")
        return result

    return compute


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
        variable_at, m_at, v_at, gradient_at, rate_at = map(address, (variable, m, v, gradient, rate))
        for update, offset in blocks:
            update(variable_at + offset, m_at + offset, v_at + offset, gradient_at + offset, rate_at)

    return apply


_ADAM_BLOCK = 1 << 20  # elements of a thread: the four arrays of a block fit a large third cache
_FLOAT32_BYTES = 4


def _adam_of_block(library: Library, count: int, beta1: float, beta2: float, epsilon: float) -> Chain | None:
    vector, single = library.description((count,), (1,)), library.description((1,), (1,))
    variable, m, v, gradient, rate = range(5)
    sum_up = Binary(ADD, vector)
    steps: list[tuple[int, list[Unary | Binary], dict[int, int]]] = [
        (
            SUBTRACT,
            [Unary(LINEAR, 1 - beta1), sum_up],
            {IMAGES: gradient, SECOND: m, OUTPUTS: m, of_later(1): m},
        ),
        (
            MULTIPLY,
            [Binary(SUBTRACT, vector), Unary(LINEAR, 1 - beta2), sum_up],
            {IMAGES: gradient, SECOND: gradient, OUTPUTS: v, of_later(0): v, of_later(2): v},
        ),
        (
            LARGER,  # of v and v: the rest follows
            [
                Unary(SQRT), Unary(LINEAR, 1, epsilon), Unary(POWER, 1, -1), Binary(MULTIPLY, vector),
                Binary(MULTIPLY, single), sum_up,
            ],
            {IMAGES: v, SECOND: v, OUTPUTS: variable, of_later(3): m, of_later(4): rate, of_later(5): variable},
        ),
    ]  # fmt: skip
    plans = [(library.elementwise(kind, vector, later), roles) for kind, later, roles in steps]
    if any(plan is None for plan, _ in plans):
        return None
    return Chain(library, [(plan, roles) for plan, roles in plans if plan is not None], [vector] * 4 + [single])


def relu_gradient(count: int, threads: int) -> Callable[[Array, Array, Array], Array] | None:
    """A function f(gradient, features, result) that fills and gives the result, or None without fast code for it.

    Each array has `count` elements; the result may be one of the others. An element is the gradient times one where the
    feature is above zero, else times zero, so that undefined gradients stay undefined; an undefined feature counts as
    one that is not above zero.
    """
    library = _library()
    if library is None:
        return None
    library.use_threads(threads)
    vector, single = library.description((count,), (1,)), library.description((1,), (1,))
    # Of oneDNN's comparisons this one is false for undefined elements: -feature < 0.
    plan = library.elementwise(MULTIPLY, vector, [Binary(LESS, single), Binary(MULTIPLY, vector)], single)
    if plan is None:
        return None
    roles = {IMAGES: 0, SECOND: 1, of_later(0): 2, of_later(1): 3, OUTPUTS: 4}
    run = Chain(library, [(plan, roles)], [vector, single, single, vector, vector])
    minus_one, zero = np.full(1, -1, np.float32), np.zeros(1, np.float32)

    def back(gradient: Array, features: Array, result: Array) -> Array:
        library.use_threads(threads)
        run(address(features), address(minus_one), address(zero), address(gradient), address(result))
        return result

    return back


def softmax(rows: int, columns: int, is_log: bool, threads: int) -> Callable[[Array, Array], Array] | None:
    """A function f(logits, result) that fills the result with the softmax of each row, or its logarithm; None without
    fast code for it. The result may be the logits.
    """
    library = _library()
    if library is None:
        return None
    library.use_threads(threads)
    matrix = library.description((rows, columns), (columns, 1))
    plan = library.plan("softmax_forward", INFERENCE, LOG_SOFTMAX if is_log else SOFTMAX, matrix, matrix, 1)
    if plan is None or not library.is_fast(plan):
        return None
    run = Chain(library, [(plan, {IMAGES: 0, OUTPUTS: 1})], [matrix] * 2)

    def compute(logits: Array, result: Array) -> Array:
        library.use_threads(threads)
        run(address(logits), address(result))
        return result

    return compute


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
    plan = library.plan("pooling_forward", INFERENCE, kind, source, target, *_pooling_sides(window))
    return _program(library, plan, threads, {IMAGES: source}, (OUTPUTS, target, outputs))


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
    forward = library.plan("pooling_forward", TRAINING, kind, source, target, *_pooling_sides(window))
    if forward is None:
        return None
    plan = library.plan("pooling_backward", kind, source, target, *_pooling_sides(window), forward)
    takes, gives = {OUTPUTS_GRADIENT: target}, (IMAGES_GRADIENT, source, images)
    if kind == AVERAGE:
        return _program(library, plan, threads, takes, gives)
    # Where each maximum stood, which the forward op does not hand on: found once more.
    places = library.described(forward, WORKSPACE)
    back = _program(library, plan, threads, {**takes, WORKSPACE: places}, gives)
    if back is None:
        return None
    again = Primitive(library, forward, {IMAGES: source, OUTPUTS: target, WORKSPACE: places})

    def pool_back(images_: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        library.use_threads(threads)
        stood = np.empty(again.sizes[WORKSPACE], np.uint8)
        again({IMAGES: images_, OUTPUTS: np.empty(outputs, np.float32), WORKSPACE: stood})
        return back(gradient, stood)

    return pool_back


def _program(
    library: Library,
    plan: Object | None,
    threads: int,
    takes: dict[int, Object],
    gives: tuple[int, Object, tuple[int, ...]],
) -> Program | None:
    """A function of arrays in the roles and orders of `takes` that returns a new one: its role, order and shape."""
    if plan is None or not library.is_fast(plan):
        return None
    role, order, shape = gives
    run = Primitive(library, plan, {**takes, role: order})
    before = {each: library.reorder(takes[each], library.described(plan, each)) for each in takes if each in CHOSEN}
    after = library.reorder(library.described(plan, role), order) if role in CHOSEN else None

    def compute(*given: np.ndarray) -> np.ndarray:
        library.use_threads(threads)
        arrays = dict(zip(takes, given, strict=True))
        for each, reorder in before.items():
            if reorder:
                inner = np.empty(run.sizes[each], np.uint8)
                reorder({FROM: arrays[each], TO: inner})
                arrays[each] = inner
        result = np.empty(shape, np.float32)
        arrays[role] = np.empty(run.sizes[role], np.uint8) if after else result
        run(arrays)
        if after:
            after({FROM: arrays[role], TO: result})
        return result

    return compute


def _gaps(window: Window) -> ctypes.Array[c_int64]:
    """oneDNN counts the elements that are left out."""
    return extents([dilation - 1 for dilation in window.dilation])


def _pooling_sides(window: Window) -> list[ctypes.Array[c_int64]]:
    return [extents(window.stride), extents(window.size), _gaps(window), extents(window.before), extents(window.after)]
