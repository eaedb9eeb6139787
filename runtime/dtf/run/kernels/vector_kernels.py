"""Dense updates of optimizers as one loop over memory, in machine code: faster than numpy's passes, else the same.

Owns the rows above oneDNN's and numpy's, for float32 variables of `_UPDATED_MIN` elements and more; how loops become
machine code is in `lib.vector_code`. All else stays with the rows below: other types, smaller variables, Nesterov's
variants, and processors and systems without such code. Each loop computes what numpy's rule does, in its order, so the
results are the same to the last bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from dtf.run.kernels import Function, KernelNode, below, kernel, update_of
from dtf.run.kernels.training import Rule, adam_rate, of_references, of_resources
from dtf.run.lib.vector_code import loops
from dtf.run.lib.vector_code.loops import MATRIX, SINGLE, Builder, Runner
from dtf.run.threads.blas_threads import threads_taken
from dtf.run.threads.in_parts import run_parts
from dtf.run.value_types import Array
from dtf.wire import dtypes

_PRIORITY = 20
_UPDATED_MIN = 1 << 12
_OF_THREAD_MIN = 1 << 18
"""Elements of a thread: fewer take less time than to wake one."""
_ALL_AT_ONCE = 1 << 62
_FLOAT32_BYTES = 4
_Loop = Callable[[], "Runner | None"]


@functools.cache
def _adam() -> Runner | None:
    b = Builder()
    var, m, v, gradient = (b.array(MATRIX) for _ in range(4))
    rate, part, square_part, epsilon = (b.array(SINGLE) for _ in range(4))
    m_now = b.node("add", m, b.node("multiply", b.node("subtract", gradient, m), part))
    square = b.node("subtract", b.node("multiply", gradient, gradient), v)
    v_now = b.node("add", v, b.node("multiply", square, square_part))
    step = b.node("divide", m_now, b.node("add", b.node("square root", v_now), epsilon))
    b.store_back(m_now, m)
    b.store_back(v_now, v)
    b.store_back(b.node("subtract", var, b.node("multiply", step, rate)), var)
    return loops.compiled(b.loop())


def _adam_scalars(*scalars: Array) -> Sequence[Array]:
    beta1_power, beta2_power, lr, beta1, beta2, epsilon = scalars
    return adam_rate(lr, beta1_power, beta2_power), 1 - beta1, 1 - beta2, epsilon


@functools.cache
def _gradient_descent() -> Runner | None:
    b = Builder()
    var, gradient, rate = b.array(MATRIX), b.array(MATRIX), b.array(SINGLE)
    b.store_back(b.node("subtract", var, b.node("multiply", gradient, rate)), var)
    return loops.compiled(b.loop())


@functools.cache
def _momentum() -> Runner | None:
    b = Builder()
    var, accumulated, gradient = (b.array(MATRIX) for _ in range(3))
    rate, momentum = b.array(SINGLE), b.array(SINGLE)
    now = b.node("add", b.node("multiply", accumulated, momentum), gradient)
    b.store_back(now, accumulated)
    b.store_back(b.node("subtract", var, b.node("multiply", now, rate)), var)
    return loops.compiled(b.loop())


def _as_they_are(*scalars: Array) -> Sequence[Array]:
    return scalars


_LOOPS: dict[str, tuple[_Loop, int, Callable[..., Sequence[Array]]]] = {
    "Adam": (_adam, 4, _adam_scalars),
    "GradientDescent": (_gradient_descent, 2, _as_they_are),
    "Momentum": (_momentum, 3, _as_they_are),
}
"""Of each rule: its loop, how many arrays it has, and the numbers of the loop made of the op's."""


@kernel("ApplyAdam", "ApplyGradientDescent", "ApplyMomentum", priority=_PRIORITY, types={"T": [dtypes.float32]})
def _(node: KernelNode) -> Function | None:
    rule = _fast_rule(node, node.op.removeprefix("Apply"))
    return None if rule is None else of_references(node, rule, _ALL_AT_ONCE)


@kernel(
    "ResourceApplyAdam", "ResourceApplyGradientDescent", "ResourceApplyMomentum",
    priority=_PRIORITY, types={"T": [dtypes.float32]}, stateful=True,
)  # fmt: skip
def _(node: KernelNode) -> Function | None:
    rule = _fast_rule(node, node.op.removeprefix("ResourceApply"))
    return None if rule is None else of_resources(node, rule, _ALL_AT_ONCE)


def _fast_rule(node: KernelNode, name: str) -> Rule | None:
    if node.attrs.get("use_nesterov") or not loops.is_there():
        return None
    update = update_of(below(node, _PRIORITY))
    if update is None:
        return None
    plain, (loop, count, scalars_of) = update.rule, _LOOPS[name]

    def rule(*values: Array) -> None:
        arrays, scalars = values[:count], values[count:]
        gradient = arrays[-1]
        if gradient.size >= _UPDATED_MIN and all(map(_is_plain, arrays)):
            run = loop()
            if run is not None:
                numbers = [np.asarray(number, np.float32) for number in scalars_of(*scalars)]
                _run(run, gradient.size, arrays, numbers)
                return
        plain(*values)

    return cast(Rule, rule)


def _is_plain(array: Array) -> bool:
    return array.dtype == np.float32 and array.flags.c_contiguous


def _run(run: Runner, count: int, arrays: Sequence[Array], numbers: Sequence[Array]) -> None:
    """Runs a loop over all elements, by several threads where there are many."""
    addresses = [array.__array_interface__["data"][0] for array in arrays]
    singles = [(number.__array_interface__["data"][0], 0) for number in numbers]
    threads = max(1, min(threads_taken(), count // _OF_THREAD_MIN))

    def part(start: int, end: int) -> None:
        run(1, end - start, [*((address + start * _FLOAT32_BYTES, 0) for address in addresses), *singles])

    if threads == 1:
        part(0, count)
        return
    ends = [count * number // threads for number in range(threads + 1)]
    run_parts([functools.partial(part, *each) for each in zip(ends[:-1], ends[1:], strict=True)])
