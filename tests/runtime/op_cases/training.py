"""Cases of the optimizers' updates: each rule written once more, plainly, in float64 and out of place.

The same rule must hold for all forms of an op: dense and by slices, of variables held by reference and by handle.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from dtf.run.executor.executor import run_graph_def
from dtf.run.state.resources import ResourceManager
from dtf.wire import dtypes, errors, opdef
from dtf.wire.tensor_shape import TensorShape
from tests.runtime.graphs import GraphBuilder
from tests.runtime.op_cases import Case

ROWS, COLUMNS = 5, 3

SCALARS = {
    "alpha": 0.3,
    "beta": 0.8,
    "beta1": 0.9,
    "beta1_power": 0.729,
    "beta2": 0.99,
    "beta2_power": 0.970299,
    "epsilon": 0.001,
    "l1": 0.02,
    "l2": 0.03,
    "l2_shrinkage": 0.04,
    "logbase": 1.5,
    "lr": 0.2,
    "lr_power": -0.4,
    "momentum": 0.7,
    "rho": 0.6,
    "sign_decay": 0.5,
}

# rule(var, *slots, grad, **scalars and attributes) -> the new var and slots


def gradient_descent(var, grad, alpha):
    return [var - alpha * grad]


def momentum(var, accum, grad, lr, momentum, use_nesterov=False):
    accum = momentum * accum + grad
    return [var - lr * (grad + momentum * accum if use_nesterov else accum), accum]


def keras_momentum(var, accum, grad, lr, momentum, use_nesterov=False):
    accum = momentum * accum - lr * grad
    return [var + (momentum * accum - lr * grad if use_nesterov else accum), accum]


def adagrad(var, accum, grad, lr, epsilon=0.0, update_slots=True):
    accum = accum + grad**2 if update_slots else accum
    return [var - lr * grad / (np.sqrt(accum) + epsilon), accum]


def adagrad_da(var, total, squares, grad, lr, l1, l2, global_step):
    total, squares = total + grad, squares + grad**2
    pulled = np.sign(total) * np.maximum(np.abs(total) - l1 * global_step, 0)
    return [-lr * pulled / (l2 * global_step * lr + np.sqrt(squares)), total, squares]


def adam(var, m, v, grad, beta1_power, beta2_power, lr, beta1, beta2, epsilon, use_nesterov=False):
    m, v = beta1 * m + (1 - beta1) * grad, beta2 * v + (1 - beta2) * grad**2
    rate = lr * np.sqrt(1 - beta2_power) / (1 - beta1_power)
    direction = beta1 * m + (1 - beta1) * grad if use_nesterov else m
    return [var - rate * direction / (np.sqrt(v) + epsilon), m, v]


def amsgrad(var, m, v, vhat, grad, beta1_power, beta2_power, lr, beta1, beta2, epsilon):
    m, v = beta1 * m + (1 - beta1) * grad, beta2 * v + (1 - beta2) * grad**2
    vhat = np.maximum(vhat, v)
    rate = lr * np.sqrt(1 - beta2_power) / (1 - beta1_power)
    return [var - rate * m / (np.sqrt(vhat) + epsilon), m, v, vhat]


def adamax(var, m, v, grad, beta1_power, lr, beta1, beta2, epsilon):
    m, v = beta1 * m + (1 - beta1) * grad, np.maximum(beta2 * v, np.abs(grad))
    return [var - lr / (1 - beta1_power) * m / (v + epsilon), m, v]


def rms_prop(var, ms, mom, grad, lr, rho, momentum, epsilon):
    ms = rho * ms + (1 - rho) * grad**2
    mom = momentum * mom + lr * grad / np.sqrt(ms + epsilon)
    return [var - mom, ms, mom]


def centered_rms_prop(var, mg, ms, mom, grad, lr, rho, momentum, epsilon):
    mg, ms = rho * mg + (1 - rho) * grad, rho * ms + (1 - rho) * grad**2
    mom = momentum * mom + lr * grad / np.sqrt(ms - mg**2 + epsilon)
    return [var - mom, mg, ms, mom]


def adadelta(var, accum, accum_update, grad, lr, rho, epsilon):
    accum = rho * accum + (1 - rho) * grad**2
    update = np.sqrt(accum_update + epsilon) / np.sqrt(accum + epsilon) * grad
    return [var - lr * update, accum, rho * accum_update + (1 - rho) * update**2]


def ftrl(var, accum, linear, grad, lr, l1, l2, lr_power, l2_shrinkage=0.0, multiply_linear_by_lr=False):
    new = accum + grad**2
    sigma = (new**-lr_power - accum**-lr_power) / lr
    linear = linear / lr if multiply_linear_by_lr else linear
    linear = linear + grad + 2 * l2_shrinkage * var - sigma * var
    pulled = np.where(np.abs(linear) > l1, l1 * np.sign(linear) - linear, 0)
    weight = pulled / (new**-lr_power / lr + 2 * l2)
    return [weight, new, linear * lr if multiply_linear_by_lr else linear]


def proximal(moved, rate, l1, l2):
    return np.sign(moved) * np.maximum(np.abs(moved) - rate * l1, 0) / (1 + rate * l2)


def proximal_gradient_descent(var, grad, alpha, l1, l2):
    return [proximal(var - alpha * grad, alpha, l1, l2)]


def proximal_adagrad(var, accum, grad, lr, l1, l2):
    accum = accum + grad**2
    rate = lr / np.sqrt(accum)
    return [proximal(var - rate * grad, rate, l1, l2), accum]


def add_sign(var, m, grad, lr, alpha, sign_decay, beta):
    m = beta * m + (1 - beta) * grad
    return [var - lr * (alpha + sign_decay * np.sign(grad) * np.sign(m)) * grad, m]


def power_sign(var, m, grad, lr, logbase, sign_decay, beta):
    m = beta * m + (1 - beta) * grad
    return [var - lr * np.exp(logbase * sign_decay * np.sign(grad) * np.sign(m)) * grad, m]


RULES: dict[str, tuple[Callable[..., list[np.ndarray]], list[dict[str, Any]]]] = {
    "AdaMax": (adamax, [{}]),
    "Adadelta": (adadelta, [{}]),
    "Adagrad": (adagrad, [{}, {"update_slots": False}]),
    "AdagradDA": (adagrad_da, [{}]),
    "AdagradV2": (adagrad, [{}, {"update_slots": False}]),
    "Adam": (adam, [{}, {"use_nesterov": True}]),
    "AdamWithAmsgrad": (amsgrad, [{}]),
    "AddSign": (add_sign, [{}]),
    "CenteredRMSProp": (centered_rms_prop, [{}]),
    "Ftrl": (ftrl, [{}, {"multiply_linear_by_lr": True}]),
    "FtrlV2": (ftrl, [{}, {"multiply_linear_by_lr": True}]),
    "GradientDescent": (gradient_descent, [{}]),
    "KerasMomentum": (keras_momentum, [{}, {"use_nesterov": True}]),
    "Momentum": (momentum, [{}, {"use_nesterov": True}]),
    "PowerSign": (power_sign, [{}]),
    "ProximalAdagrad": (proximal_adagrad, [{}]),
    "ProximalGradientDescent": (proximal_gradient_descent, [{}]),
    "RMSProp": (rms_prop, [{}]),
}


class Update:
    """One update op in a graph of its own, with a variable for each of its variables."""

    def __init__(self, op: str, attrs: dict[str, Any]) -> None:
        self.op, self.attrs, self.op_def = op, attrs, opdef.get(op)
        self.by_handle = op.startswith("Resource")
        self.variables = [arg.name for arg in self.op_def.inputs if arg.is_ref or arg.type == dtypes.resource]
        self.graph = GraphBuilder()
        self.resources = ResourceManager()
        self.held: dict[str, str] = {}
        for name in self.variables:
            described = {"dtype": dtypes.float32, "shape": TensorShape([ROWS, COLUMNS])}
            if self.by_handle:
                self.held[name] = self.graph.node("VarHandleOp", name=name, shared_name=name.encode(), **described)
            else:
                self.held[name] = self.graph.node("VariableV2", name=name, **described)

    def assign(self, name: str, value: np.ndarray) -> None:
        value_of = self.graph.const(value)
        if self.by_handle:
            self._run(self.graph.node("AssignVariableOp", self.held[name], value_of, dtype=dtypes.float32))
        else:
            self._run(self.graph.node("Assign", self.held[name], value_of, T=dtypes.float32))

    def values(self) -> list[np.ndarray]:
        reads = [
            self.graph.node("ReadVariableOp", self.held[name], dtype=dtypes.float32)
            if self.by_handle
            else self.graph.node("Identity", self.held[name], T=dtypes.float32)
            for name in self.variables
        ]
        return run_graph_def(self.graph.graph_def, reads, resources=self.resources)

    def apply(self, gradient: np.ndarray, indices: np.ndarray | None) -> None:
        inputs = []
        for arg in self.op_def.inputs:
            if arg.name in self.held:
                inputs.append(self.held[arg.name])
            elif arg.name in ("grad", "delta"):
                inputs.append(self.graph.const(gradient))
            elif arg.name == "indices":
                inputs.append(self.graph.const(indices))
            elif arg.name == "global_step":
                inputs.append(self.graph.const(np.int64(3)))
            else:
                inputs.append(self.graph.const(np.float32(SCALARS[arg.name])))
        types = {"T": dtypes.float32}
        if indices is not None:
            types["Tindices"] = dtypes.as_dtype(indices.dtype)
        self._run(self.graph.node(self.op, *inputs, **types, **self.attrs))

    def scalars(self) -> dict[str, float]:
        names = {arg.name for arg in self.op_def.inputs} - {"grad", "delta", "indices", *self.variables}
        return {name: 3 if name == "global_step" else float(np.float32(SCALARS[name])) for name in names}

    def _run(self, node: str) -> None:
        run_graph_def(self.graph.graph_def, [], targets=[node], resources=self.resources)


def an_update_follows_its_rule(op: str, rule: Callable[..., list[np.ndarray]], attrs: dict[str, Any]) -> None:
    update, random = Update(op, attrs), np.random.RandomState(11)
    # Slots are positive, as sums of squares are; centred RMSProp needs the mean's square below the mean square.
    starts = [random.uniform(-1, 1, (ROWS, COLUMNS))]
    for name in update.variables[1:]:
        low, high = (-0.1, 0.1) if name in ("mg", "m") else (0.1, 1)
        starts.append(random.uniform(low, high, (ROWS, COLUMNS)))
    for name, start in zip(update.variables, starts, strict=True):
        update.assign(name, start.astype(np.float32))
    before = update.values()
    kept = [np.array(value) for value in before]
    expected = [value.astype(np.float64) for value in kept]
    if "Sparse" in op:
        indices = np.array([4, 1, 4, 0, 4], np.int32)  # as if the slices came one by one
        gradient = random.uniform(-1, 1, (len(indices), COLUMNS)).astype(np.float32)
        for index, row in zip(indices, gradient.astype(np.float64), strict=True):
            new = rule(*(value[index] for value in expected), row, **update.scalars(), **attrs)
            for value, new_row in zip(expected, new, strict=True):
                value[index] = new_row
    else:
        indices = None
        gradient = random.uniform(-1, 1, (ROWS, COLUMNS)).astype(np.float32)
        expected = rule(*expected, gradient.astype(np.float64), **update.scalars(), **attrs)
    update.apply(gradient, indices)
    for name, value, wanted in zip(update.variables, update.values(), expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=2e-4, atol=2e-6, err_msg=name)
    for value, old in zip(before, kept, strict=True):
        np.testing.assert_array_equal(value, old, err_msg="a reader's array must not change")


def an_update_checks_what_it_is_given(op: str) -> None:
    update = Update(op, {})
    for name in update.variables:
        update.assign(name, np.ones((ROWS, COLUMNS), np.float32))
    sparse = "Sparse" in op
    indices = np.array([0, 1], np.int64) if sparse else None
    with pytest.raises(errors.InvalidArgumentError, match="same shape"):
        update.apply(np.ones((2, COLUMNS + 1), np.float32), indices)
    if sparse:
        with pytest.raises(errors.InvalidArgumentError, match="Index 5 at offset 1 in indices is out of range"):
            update.apply(np.ones((2, COLUMNS), np.float32), np.array([0, ROWS], np.int64))
        before = update.values()
        update.apply(np.zeros((0, COLUMNS), np.float32), np.zeros(0, np.int64))
        for value, old in zip(update.values(), before, strict=True):
            np.testing.assert_array_equal(value, old)


def an_update_needs_an_initialized_variable(op: str) -> None:
    update = Update(op, {})
    with pytest.raises((errors.FailedPreconditionError, errors.NotFoundError)):
        update.apply(np.ones((ROWS, COLUMNS), np.float32), None)


CASES = [
    *(
        Case(
            form + name,
            run=partial(an_update_follows_its_rule, form + name, rule, attrs),
            name="-".join(attrs),
        )
        for name, (rule, variants) in RULES.items()
        for form in ("Apply", "SparseApply", "ResourceApply", "ResourceSparseApply")
        if opdef.exists(form + name)
        for attrs in variants
    ),
    *(
        Case(op, run=partial(an_update_checks_what_it_is_given, op), name="checks")
        for op in ("ApplyMomentum", "ResourceApplyAdam", "SparseApplyAdagrad", "ResourceSparseApplyMomentum")
    ),
    *(
        Case(op, run=partial(an_update_needs_an_initialized_variable, op), name="uninitialized")
        for op in ("ApplyMomentum", "ResourceApplyMomentum")
    ),
]
