"""Kernels of the optimizers' updates: Apply*, SparseApply* and their Resource* forms.

Each rule is written once, on arrays that it changes in place; the four forms of an op differ only in how those arrays
are found. A dense update runs over blocks that fit the processor's cache, so that a rule of ten passes reads memory
about once. A sparse one takes the rows out, updates them and puts them back; an index that occurs twice is applied
twice, one after the other, as if the gradients had come one by one.

All variables of an op are locked while it runs, whatever `use_locking` says: readers are never shown half an update
anyway, because what they hold is copied first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import cast

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.kernels import Function, KernelNode, Update, kernel, with_update
from dtf.run.kernels.arguments import shape_of
from dtf.run.state.resources import ResourceHandle, Variable
from dtf.run.value_types import Array
from dtf.wire import errors

_BLOCK = 1 << 15  # elements

# rule(variable, *slots, gradient, *scalars): changes variable and slots in place
Rule = Callable[..., None]
_Input = Array | Variable | ResourceHandle


def _update(
    name: str, sparse: bool = True, dense: bool = True, reference: bool = True
) -> Callable[[Callable[[KernelNode], Rule]], Callable[[KernelNode], Rule]]:
    """Registers the decorated factory (node -> rule) for the forms of an op that TensorFlow has."""

    def register(factory: Callable[[KernelNode], Rule]) -> Callable[[KernelNode], Rule]:
        forms = [f"Apply{name}"] * dense + [f"SparseApply{name}"] * sparse
        if reference:
            kernel(*forms)(lambda node: of_references(node, factory(node)))
        kernel(*(f"Resource{form}" for form in forms), stateful=True)(lambda node: of_resources(node, factory(node)))
        return factory

    return register


@_update("GradientDescent", sparse=False)
def _(node: KernelNode) -> Rule:
    def gradient_descent(var: np.ndarray, grad: np.ndarray, alpha: np.ndarray) -> None:
        var -= grad * alpha

    return gradient_descent


@_update("Momentum")
def _(node: KernelNode) -> Rule:
    nesterov = node.attr("use_nesterov")

    def momentum(var: np.ndarray, accum: np.ndarray, grad: np.ndarray, lr: np.ndarray, momentum: np.ndarray) -> None:
        accum *= momentum
        accum += grad
        if nesterov:
            var -= grad * lr
            var -= accum * (lr * momentum)
        else:
            var -= accum * lr

    return momentum


@_update("KerasMomentum", reference=False)
def _(node: KernelNode) -> Rule:
    nesterov = node.attr("use_nesterov")

    def keras_momentum(
        var: np.ndarray, accum: np.ndarray, grad: np.ndarray, lr: np.ndarray, momentum: np.ndarray
    ) -> None:
        step = grad * lr
        accum *= momentum
        accum -= step
        if nesterov:
            var -= step
            var += np.multiply(accum, momentum, out=step)
        else:
            var += accum

    return keras_momentum


@_update("Adagrad")
def _(node: KernelNode) -> Rule:
    update_slots = node.attr("update_slots")

    def adagrad(var: np.ndarray, accum: np.ndarray, grad: np.ndarray, lr: np.ndarray) -> None:
        if update_slots:
            accum += np.square(grad)
        step = np.sqrt(accum)
        np.divide(grad, step, out=step)
        step *= lr
        var -= step

    return adagrad


@_update("AdagradV2")
def _(node: KernelNode) -> Rule:
    update_slots = node.attr("update_slots")

    def adagrad(var: np.ndarray, accum: np.ndarray, grad: np.ndarray, lr: np.ndarray, epsilon: np.ndarray) -> None:
        if update_slots:
            accum += np.square(grad)
        step = np.sqrt(accum)
        step += epsilon
        np.divide(grad, step, out=step)
        step *= lr
        var -= step

    return adagrad


@_update("AdagradDA")
def _(node: KernelNode) -> Rule:
    def adagrad_da(
        var: np.ndarray,
        gradients: np.ndarray,
        squares: np.ndarray,
        grad: np.ndarray,
        lr: np.ndarray,
        l1: np.ndarray,
        l2: np.ndarray,
        global_step: np.ndarray,
    ) -> None:
        step = global_step.astype(var.dtype)
        gradients += grad
        squares += np.square(grad)
        numerator = _shrunk(gradients, l1 * step) if l1 > 0 else gradients.copy()
        numerator *= -lr
        denominator = np.sqrt(squares)
        denominator += l2 * step * lr
        np.divide(numerator, denominator, out=var)

    return adagrad_da


@_update("Adam", sparse=False)
def adam_rule(node: KernelNode) -> Rule:
    """The rule of ApplyAdam."""
    nesterov = node.attr("use_nesterov")

    def adam(
        var: np.ndarray,
        m: np.ndarray,
        v: np.ndarray,
        grad: np.ndarray,
        beta1_power: np.ndarray,
        beta2_power: np.ndarray,
        lr: np.ndarray,
        beta1: np.ndarray,
        beta2: np.ndarray,
        epsilon: np.ndarray,
    ) -> None:
        step = _adam_moments(m, v, grad, beta1, beta2)
        np.sqrt(v, out=step)
        step += epsilon
        if nesterov:
            np.divide(m * beta1 + grad * (1 - beta1), step, out=step)
        else:
            np.divide(m, step, out=step)
        step *= adam_rate(lr, beta1_power, beta2_power)
        var -= step

    return adam


@_update("AdamWithAmsgrad", sparse=False, reference=False)
def _(node: KernelNode) -> Rule:
    def amsgrad(
        var: np.ndarray,
        m: np.ndarray,
        v: np.ndarray,
        vhat: np.ndarray,
        grad: np.ndarray,
        beta1_power: np.ndarray,
        beta2_power: np.ndarray,
        lr: np.ndarray,
        beta1: np.ndarray,
        beta2: np.ndarray,
        epsilon: np.ndarray,
    ) -> None:
        step = _adam_moments(m, v, grad, beta1, beta2)
        np.maximum(vhat, v, out=vhat)
        np.sqrt(vhat, out=step)
        step += epsilon
        np.divide(m, step, out=step)
        step *= adam_rate(lr, beta1_power, beta2_power)
        var -= step

    return amsgrad


def _adam_moments(m: np.ndarray, v: np.ndarray, grad: np.ndarray, beta1: np.ndarray, beta2: np.ndarray) -> np.ndarray:
    """Moves both moments and returns an array that the caller may overwrite."""
    step = grad - m
    step *= 1 - beta1
    m += step
    np.multiply(grad, grad, out=step)
    step -= v
    step *= 1 - beta2
    v += step
    return step


def adam_rate(lr: np.ndarray, beta1_power: np.ndarray, beta2_power: np.ndarray) -> np.ndarray:
    """The step size with its correction for moments that began at zero."""
    return lr * np.sqrt(1 - beta2_power) / (1 - beta1_power)


@_update("AdaMax", sparse=False)
def _(node: KernelNode) -> Rule:
    def adamax(
        var: np.ndarray,
        m: np.ndarray,
        v: np.ndarray,
        grad: np.ndarray,
        beta1_power: np.ndarray,
        lr: np.ndarray,
        beta1: np.ndarray,
        beta2: np.ndarray,
        epsilon: np.ndarray,
    ) -> None:
        step = grad - m
        step *= 1 - beta1
        m += step
        v *= beta2
        np.maximum(v, np.abs(grad, out=step), out=v)
        np.add(v, epsilon, out=step)
        np.divide(m, step, out=step)
        step *= lr / (1 - beta1_power)
        var -= step

    return adamax


@_update("RMSProp")
def _(node: KernelNode) -> Rule:
    def rms_prop(
        var: np.ndarray,
        ms: np.ndarray,
        mom: np.ndarray,
        grad: np.ndarray,
        lr: np.ndarray,
        rho: np.ndarray,
        momentum: np.ndarray,
        epsilon: np.ndarray,
    ) -> None:
        step = _move_mean_square(ms, grad, rho)
        np.add(ms, epsilon, out=step)
        _rms_step(var, mom, grad, step, lr, momentum)

    return rms_prop


@_update("CenteredRMSProp")
def _(node: KernelNode) -> Rule:
    def centered_rms_prop(
        var: np.ndarray,
        mg: np.ndarray,
        ms: np.ndarray,
        mom: np.ndarray,
        grad: np.ndarray,
        lr: np.ndarray,
        rho: np.ndarray,
        momentum: np.ndarray,
        epsilon: np.ndarray,
    ) -> None:
        step = _move_mean_square(ms, grad, rho)
        np.subtract(grad, mg, out=step)
        step *= 1 - rho
        mg += step
        np.subtract(ms, np.square(mg, out=step), out=step)
        step += epsilon
        _rms_step(var, mom, grad, step, lr, momentum)

    return centered_rms_prop


def _move_mean_square(ms: np.ndarray, grad: np.ndarray, rho: np.ndarray) -> np.ndarray:
    step = np.square(grad)
    step -= ms
    step *= 1 - rho
    ms += step
    return step


def _rms_step(
    var: np.ndarray, mom: np.ndarray, grad: np.ndarray, mean_square: np.ndarray, lr: np.ndarray, momentum: np.ndarray
) -> None:
    """The rest of both RMSProp rules; overwrites `mean_square`."""
    step = np.sqrt(mean_square, out=mean_square)
    np.divide(grad, step, out=step)
    step *= lr
    mom *= momentum
    mom += step
    var -= mom


@_update("Adadelta")
def _(node: KernelNode) -> Rule:
    def adadelta(
        var: np.ndarray,
        accum: np.ndarray,
        accum_update: np.ndarray,
        grad: np.ndarray,
        lr: np.ndarray,
        rho: np.ndarray,
        epsilon: np.ndarray,
    ) -> None:
        square = np.square(grad)
        square *= 1 - rho
        accum *= rho
        accum += square
        step = accum_update + epsilon
        step /= accum + epsilon
        np.sqrt(step, out=step)
        step *= grad
        accum_update *= rho
        accum_update += np.square(step, out=square) * (1 - rho)
        step *= lr
        var -= step

    return adadelta


@_update("Ftrl")
def _(node: KernelNode) -> Rule:
    multiply_linear_by_lr = node.attr("multiply_linear_by_lr")

    def ftrl(
        var: np.ndarray,
        accum: np.ndarray,
        linear: np.ndarray,
        grad: np.ndarray,
        lr: np.ndarray,
        l1: np.ndarray,
        l2: np.ndarray,
        lr_power: np.ndarray,
    ) -> None:
        _ftrl(var, accum, linear, grad, grad, lr, l1, l2, lr_power, multiply_linear_by_lr)

    return ftrl


@_update("FtrlV2")
def _(node: KernelNode) -> Rule:
    multiply_linear_by_lr = node.attr("multiply_linear_by_lr")

    def ftrl(
        var: np.ndarray,
        accum: np.ndarray,
        linear: np.ndarray,
        grad: np.ndarray,
        lr: np.ndarray,
        l1: np.ndarray,
        l2: np.ndarray,
        l2_shrinkage: np.ndarray,
        lr_power: np.ndarray,
    ) -> None:
        shrunk = grad + 2 * l2_shrinkage * var
        _ftrl(var, accum, linear, grad, shrunk, lr, l1, l2, lr_power, multiply_linear_by_lr)

    return ftrl


def _ftrl(
    var: np.ndarray,
    accum: np.ndarray,
    linear: np.ndarray,
    grad: np.ndarray,
    linear_grad: np.ndarray,
    lr: np.ndarray,
    l1: np.ndarray,
    l2: np.ndarray,
    lr_power: np.ndarray,
    multiply_linear_by_lr: bool,
) -> None:
    """FTRL-Proximal (McMahan et al., "Ad Click Prediction", KDD 2013). `linear` may be kept multiplied by `lr`."""
    factor = lr if multiply_linear_by_lr else lr.dtype.type(1)
    old_power = np.power(accum, -lr_power)
    accum += np.square(grad)
    new_power = np.power(accum, -lr_power)
    difference = np.subtract(new_power, old_power, out=old_power)
    difference *= var
    difference *= factor / lr
    linear += linear_grad * factor
    linear -= difference
    threshold = l1 * factor
    new_power *= factor / lr
    new_power += 2 * l2 * factor
    np.divide(np.negative(_shrunk(linear, threshold)), new_power, out=var)


@_update("ProximalGradientDescent")
def _(node: KernelNode) -> Rule:
    def proximal_gradient_descent(
        var: np.ndarray, grad: np.ndarray, alpha: np.ndarray, l1: np.ndarray, l2: np.ndarray
    ) -> None:
        var -= grad * alpha
        _proximal(var, alpha, l1, l2)

    return proximal_gradient_descent


@_update("ProximalAdagrad")
def _(node: KernelNode) -> Rule:
    def proximal_adagrad(
        var: np.ndarray, accum: np.ndarray, grad: np.ndarray, lr: np.ndarray, l1: np.ndarray, l2: np.ndarray
    ) -> None:
        accum += np.square(grad)
        rate = np.sqrt(accum)
        np.divide(lr, rate, out=rate)
        var -= grad * rate
        _proximal(var, rate, l1, l2)

    return proximal_adagrad


def _proximal(var: np.ndarray, rate: np.ndarray, l1: np.ndarray, l2: np.ndarray) -> None:
    if l1 > 0:
        var[...] = _shrunk(var, rate * l1)
    var /= 1 + rate * l2


def _shrunk(array: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Each element moved towards zero by `by`, and no further than zero. A new array."""
    size = np.abs(array)
    size -= by
    np.maximum(size, 0, out=size)
    return np.copysign(size, array, out=size)


@_update("AddSign", sparse=False)
def _(node: KernelNode) -> Rule:
    def add_sign(
        var: np.ndarray,
        m: np.ndarray,
        grad: np.ndarray,
        lr: np.ndarray,
        alpha: np.ndarray,
        sign_decay: np.ndarray,
        beta: np.ndarray,
    ) -> None:
        step = _signs_agree(m, grad, beta)
        step *= sign_decay
        step += alpha
        step *= grad
        step *= lr
        var -= step

    return add_sign


@_update("PowerSign", sparse=False)
def _(node: KernelNode) -> Rule:
    def power_sign(
        var: np.ndarray,
        m: np.ndarray,
        grad: np.ndarray,
        lr: np.ndarray,
        logbase: np.ndarray,
        sign_decay: np.ndarray,
        beta: np.ndarray,
    ) -> None:
        step = _signs_agree(m, grad, beta)
        step *= logbase * sign_decay
        np.exp(step, out=step)
        step *= grad
        step *= lr
        var -= step

    return power_sign


def _signs_agree(m: np.ndarray, grad: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Moves the mean gradient and returns sign(gradient) * sign(mean). Bello et al., arXiv 1709.07417."""
    m *= beta
    m += grad * (1 - beta)
    return np.sign(grad) * np.sign(m)


# From a node's inputs to the arrays of its rule


def of_references(node: KernelNode, rule: Rule, block: int = _BLOCK) -> Function:
    """The kernel of an op whose variables are references. A dense update takes `block` elements at a time."""
    apply = _application(node, rule, block)

    def kernel_function(*inputs: _Input) -> _Input:
        apply(inputs)
        return inputs[0]

    return _joinable(kernel_function, node, rule)


def of_resources(node: KernelNode, rule: Rule, block: int = _BLOCK) -> Function:
    """As `of_references`, of an op whose variables are resource handles."""
    apply = _application(node, rule, block)
    variables = sum(arg.type is not None and arg.type.name == "resource" for arg in node.op_def.inputs)

    def kernel_function(step: StepContext, *inputs: _Input) -> None:
        handles = cast("tuple[ResourceHandle, ...]", inputs[:variables])
        found = [step.resources.get(handle, Variable) for handle in handles]
        apply((*found, *inputs[variables:]))

    return _joinable(kernel_function, node, rule)


def _joinable(function: Function, node: KernelNode, rule: Rule) -> Function:
    """The function; that of a dense update, which has one gradient and scalars, with what joins it to others."""
    inputs = node.op_def.inputs
    names = [arg.name for arg in inputs]
    count = sum(arg.is_ref or arg.type is not None and arg.type.name == "resource" for arg in inputs)
    if "indices" in names:
        return function
    place = names.index("grad" if "grad" in names else "delta")
    scalars = tuple(each for each in range(count, len(names)) if each != place)
    return with_update(function, Update(rule, count, place, scalars))


def _application(node: KernelNode, rule: Rule, block: int) -> Callable[[tuple[_Input, ...]], None]:
    """Returns a function of the op's inputs (variables first) that checks them and applies the rule."""
    names = [arg.name for arg in node.op_def.inputs]
    slots = range(sum(arg.is_ref or arg.type is not None and arg.type.name == "resource" for arg in node.op_def.inputs))
    gradient_at = names.index("grad" if "grad" in names else "delta")
    indices_at = names.index("indices") if "indices" in names else None
    scalars_at = [i for i in range(len(slots), len(names)) if i not in (gradient_at, indices_at)]

    def apply(inputs: tuple[_Input, ...]) -> None:
        scalars = []
        for position in scalars_at:
            number = cast(Array, inputs[position])
            if shape_of(number):
                raise errors.InvalidArgumentError.of(f"{names[position]} is not a scalar: {list(np.shape(number))}")
            scalars.append(number)
        variables, gradient = cast("tuple[Variable, ...]", inputs[: len(slots)]), np.asarray(inputs[gradient_at])
        with variables[0].lock if len(variables) == 1 else _locks(variables):
            indices = None if indices_at is None else np.asarray(inputs[indices_at])
            rows = None if indices is None else _rows_to_keep(variables, indices)
            arrays = [variable.writable(rows) for variable in variables]
            for name, array in zip(names[1:], arrays[1:], strict=False):
                if array.shape != arrays[0].shape:
                    raise _mismatch(f"var and {name}", arrays[0], array)
            if indices is None:
                _apply_dense(rule, arrays, gradient, scalars, block)
            else:
                _apply_sparse(rule, arrays, gradient, indices, scalars)

    return apply


def _rows_to_keep(variables: Sequence[Variable], indices: np.ndarray) -> np.ndarray | None:
    """The rows that a sparse update changes, as `writable` takes them; None where it will be refused."""
    rows = min((variable.shape or (0,))[0] or 0 for variable in variables)
    if not indices.size or indices.dtype.kind not in "iu" or indices.min() < 0 or indices.max() >= rows:
        return None
    return indices


def _locks(variables: Sequence[Variable]) -> ExitStack:
    """All their locks, in one order for all, so that no two ops wait for each other."""
    locks = ExitStack()
    for variable in sorted(variables, key=id):
        locks.enter_context(variable.lock)
    return locks


def _apply_dense(
    rule: Rule, arrays: list[np.ndarray], gradient: np.ndarray, scalars: list[Array], block: int
) -> None:
    if gradient.shape != arrays[0].shape:
        raise _mismatch("var and grad", arrays[0], gradient)
    if not gradient.ndim:  # what numpy makes of arrays without a dimension is no array to write to
        arrays, gradient = [array.reshape(1) for array in arrays], gradient.reshape(1)
    if gradient.size <= block:
        rule(*arrays, gradient, *scalars)
    elif all(array.flags.c_contiguous for array in arrays):
        arrays, gradient = [array.reshape(-1) for array in arrays], gradient.reshape(-1)
        for start in range(0, gradient.size, block):
            part = slice(start, start + block)
            rule(*(array[part] for array in arrays), gradient[part], *scalars)
    else:
        rule(*arrays, gradient, *scalars)


def _apply_sparse(
    rule: Rule, arrays: list[np.ndarray], gradient: np.ndarray, indices: np.ndarray, scalars: list[Array]
) -> None:
    rows = arrays[0].shape[0] if arrays[0].ndim else 0
    if arrays[0].ndim < 1:
        raise errors.InvalidArgumentError.of("var must be at least 1 dimensional")
    if indices.ndim != 1 or gradient.shape != (*indices.shape, *arrays[0].shape[1:]):
        raise _mismatch(f"var, indices {list(indices.shape)} and grad", arrays[0], gradient)
    wrong = np.flatnonzero((indices < 0) | (indices >= rows))
    if wrong.size:
        raise errors.InvalidArgumentError.of(
            f"Index {indices[wrong[0]]} at offset {wrong[0]} in indices is out of range [0, {rows})"
        )
    for positions in rounds(indices):
        chosen = indices[positions]
        taken = [array[chosen] for array in arrays]
        rule(*taken, gradient[positions], *scalars)
        for array, values in zip(arrays, taken, strict=True):
            array[chosen] = values


def rounds(indices: np.ndarray) -> Iterator[slice | np.ndarray]:
    """Splits the positions so that no round has an index twice, and equal indices come in order."""
    order = np.argsort(indices, kind="stable")
    in_order = indices[order]
    starts = np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]])) if len(indices) else order
    if len(starts) == len(indices):
        yield slice(None)
        return
    occurrence = np.empty(len(indices), np.int64)
    occurrence[order] = np.arange(len(indices)) - np.repeat(starts, np.diff(np.append(starts, len(indices))))
    for turn in range(occurrence.max() + 1):
        yield np.flatnonzero(occurrence == turn)


def _mismatch(what: str, variable: np.ndarray, other: np.ndarray) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError.of(
        f"{what} do not have the same shape{list(variable.shape)} {list(other.shape)}"
    )
