"""Kernels of control flow: branches, loops' gates, assertions and calls of functions.

Own what one node does with its inputs. The order of nodes, frames and iterations is the matter of `executor` and
`frames`; what a function's body is, of `functions`.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from dtf.run.executor.functions import FunctionBody
from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Done, Outputs, Value
from dtf.run.kernels import DEAD, DEFAULT, Function, KernelNode, kernel
from dtf.run.kernels.logging import summarized
from dtf.run.state.resources import Variable
from dtf.run.threads import reader_thread
from dtf.run.value_types import Array
from dtf.wire import errors, limits
from dtf.wire.names import shown


@kernel("NoOp", "ControlTrigger", device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    return lambda: None


@kernel("Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration", "LoopCond", device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    return lambda value: value


@kernel("Switch", "RefSwitch", device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    return lambda data, predicate: (DEAD, data) if predicate else (data, DEAD)


@kernel("Merge", "RefMerge", accepts_dead=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    def merge(*values: Value) -> tuple[Value, Value]:
        for index, value in enumerate(values):
            if value is not DEAD:
                return value, np.int32(index)
        return DEAD, DEAD

    return merge


@kernel("RefSelect", device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    def select(index: np.ndarray, *variables: Variable) -> Variable:
        if not 0 <= index < len(variables):
            raise errors.InvalidArgumentError.of(f"Index must be in the range [0, {len(variables)}) but got {index}")
        return variables[int(index)]

    return select


@kernel("ToBool")
def _(node: KernelNode) -> Function:
    return lambda value: np.bool_(_truth(value))


@kernel("FakeParam")
def _(node: KernelNode) -> Function:
    """Stands for a value that the other branch makes; nobody looks at it, so its unknown sizes are 0."""
    dtype, shape = node.attr("dtype").as_numpy_dtype, node.attr("shape")
    sizes = [] if shape.ndims is None else [size or 0 for size in shape.as_list()]

    def make() -> np.ndarray:
        limits.check_room(sizes, np.dtype(dtype).itemsize, node.attr("dtype").name)
        return np.full(sizes, b"", object) if dtype is np.object_ else np.zeros(sizes, dtype)

    return make


@kernel("Assert", stateful=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    summarize = node.attr("summarize")

    def check(step: StepContext, condition: np.ndarray, *data: np.ndarray) -> None:
        if not condition:
            words = " ".join(f"[{summarized(value, summarize)}]" for value in data)
            raise errors.InvalidArgumentError.of(f"assertion failed: {words}")

    return check


@kernel("Abort", device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    """Fails the step. TensorFlow ends the whole process here, which would let one client's graph stop a server for
    all.
    """
    message = node.attr("error_msg").decode()

    def abort() -> NoReturn:
        raise errors.AbortedError.of(message or "Abort op was run")

    return abort


@kernel("PartitionedCall", "StatefulPartitionedCall", asynchronous=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    name = node.attr("f").name
    if name not in node.library:
        raise errors.InvalidArgumentError.of(f"Failed to find the function {shown(name)} that is called")
    body = FunctionBody(node.attr("f"), node.library, node.device, node.name)
    body.check_signature(*([dtype.as_datatype_enum for dtype in node.attr(name)] for name in ("Tin", "Tout")))
    return lambda step, done, *arguments: body.call(step, arguments, done)


@kernel("If", "StatelessIf", asynchronous=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    then_branch = FunctionBody(node.attr("then_branch"), node.library, node.device, node.name)
    else_branch = FunctionBody(node.attr("else_branch"), node.library, node.device, node.name)

    def choose(step: StepContext, done: Done[Outputs], condition: np.ndarray, *arguments: Array) -> None:
        (then_branch if _truth(condition) else else_branch).call(step, arguments, done)

    return choose


@kernel("Case", "StatelessCase", asynchronous=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    branches = [FunctionBody(branch, node.library, node.device, node.name) for branch in node.attr("branches")]

    def choose(step: StepContext, done: Done[Outputs], index: np.ndarray, *arguments: Array) -> None:
        chosen = int(index) if 0 <= index < len(branches) else len(branches) - 1
        branches[chosen].call(step, arguments, done)

    return choose


@kernel("While", "StatelessWhile", asynchronous=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    condition = FunctionBody(node.attr("cond"), node.library, node.device, node.name)
    body = FunctionBody(node.attr("body"), node.library, node.device, node.name)
    return lambda step, done, *values: _Loop(condition, body, step, done).check(values)


class _Loop:
    """One run of a While. After a callback that was called at once, the next iteration starts from the loop below and
    not from inside the callback, so a long loop needs no deep stack.
    """

    def __init__(self, condition: FunctionBody, body: FunctionBody, step: StepContext, done: Done[Outputs]) -> None:
        self._condition = condition
        self._body = body
        self._step = step
        self._done = done

    def check(self, values: tuple[Array, ...]) -> None:
        while True:
            again = _Answer()
            self._condition.call(self._step, values, again)
            if not again.has_come(functools.partial(self._go_on, values)):
                return
            if not self._may_go_on(again, values):
                return
            following = _Answer()
            self._body.call(self._step, values, following)
            if not following.has_come(self._check_again):
                return
            if following.error is not None:
                self._done(error=following.error)
                return
            values = following.values
            reader_thread.yield_reader()  # nobody knows how often it goes round

    def _go_on(self, values: tuple[Array, ...], answer: _Answer) -> None:
        if self._may_go_on(answer, values):
            following = _Answer()
            self._body.call(self._step, values, following)
            if following.has_come(self._check_again):
                self._check_again(following)

    def _check_again(self, answer: _Answer) -> None:
        if answer.error is not None:
            self._done(error=answer.error)
        else:
            self.check(answer.values)

    def _may_go_on(self, answer: _Answer, values: tuple[Array, ...]) -> bool:
        if answer.error is not None:
            self._done(error=answer.error)
            return False
        if not _truth(answer.values[0]):
            self._done(tuple(values))
            return False
        return True


class _Answer:
    """The results of a function: known at once, or later for callers that have registered by then. Its lock guards the
    hand-over.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiter: Callable[[_Answer], None] | None = None
        self._is_here = False
        self.values: tuple[Array, ...] = ()
        self.error: errors.OpError | None = None

    def __call__(self, values: tuple[Array, ...] = (), error: errors.OpError | None = None) -> None:
        with self._lock:
            self.values, self.error = values, error
            self._is_here = True
            waiter = self._waiter
        if waiter is not None:
            waiter(self)

    def has_come(self, otherwise: Callable[[_Answer], None]) -> bool:
        """True when the answer is here; else `otherwise(self)` is called when it comes."""
        with self._lock:
            if not self._is_here:
                self._waiter = otherwise
            return self._is_here


def _truth(value: np.ndarray) -> bool:
    """What If and While take for true: a scalar that is not zero or empty, any other tensor that has elements."""
    array = np.asarray(value)
    return bool(array[()]) if array.ndim == 0 else array.size > 0
