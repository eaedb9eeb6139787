"""Updates of the optimizers: Apply*, SparseApply* and their Resource* forms.

The rules are those of `kernels.training`, on tensors that they change in place; scalars are tensors without dimensions,
so that nothing waits for their values. A sparse update takes the rows out and puts them back; repeated rows wait
for a further round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import torch
from torch import Tensor

from dtf.run.devices.pytorch.rows import FLOATS, TensorFunction, Unsuited, computes
from dtf.run.devices.pytorch.rows_of_indices import valid_rows
from dtf.run.devices.pytorch.rows_of_variables import tensor_in, writable_tensor
from dtf.run.kernels import KernelNode
from dtf.run.kernels.training import rounds
from dtf.run.state.resources import Variable

Rule = Callable[..., None]
"""rule(variable, *slots, gradient, *scalars): changes variable and slots in place."""


def _update(
    name: str, sparse: bool = True, dense: bool = True, reference: bool = True
) -> Callable[[Callable[[KernelNode], Rule]], Callable[[KernelNode], Rule]]:
    def register(factory: Callable[[KernelNode], Rule]) -> Callable[[KernelNode], Rule]:
        forms = [f"Apply{name}"] * dense + [f"SparseApply{name}"] * sparse
        if reference:
            computes(*forms, types=FLOATS)(lambda node: _of_references(node, factory(node)))
        resources = [f"Resource{form}" for form in forms]
        computes(*resources, types=FLOATS, stateful=True)(lambda node: _of_resources(node, factory(node)))
        return factory

    return register


@_update("GradientDescent", sparse=False)
def _(node: KernelNode) -> Rule:
    def gradient_descent(var: Tensor, grad: Tensor, alpha: Tensor) -> None:
        var.sub_(grad * alpha)

    return gradient_descent


@_update("Momentum")
def _(node: KernelNode) -> Rule:
    nesterov = node.attr("use_nesterov")

    def momentum(var: Tensor, accum: Tensor, grad: Tensor, lr: Tensor, momentum: Tensor) -> None:
        accum.mul_(momentum).add_(grad)
        if nesterov:
            var.sub_(grad * lr).sub_(accum * (lr * momentum))
        else:
            var.sub_(accum * lr)

    return momentum


@_update("KerasMomentum", reference=False)
def _(node: KernelNode) -> Rule:
    nesterov = node.attr("use_nesterov")

    def keras_momentum(var: Tensor, accum: Tensor, grad: Tensor, lr: Tensor, momentum: Tensor) -> None:
        step = grad * lr
        accum.mul_(momentum).sub_(step)
        if nesterov:
            var.sub_(step).add_(accum * momentum)
        else:
            var.add_(accum)

    return keras_momentum


@_update("Adagrad")
def _(node: KernelNode) -> Rule:
    update_slots = node.attr("update_slots")

    def adagrad(var: Tensor, accum: Tensor, grad: Tensor, lr: Tensor) -> None:
        if update_slots:
            accum.add_(torch.square(grad))
        var.sub_(grad / torch.sqrt(accum) * lr)

    return adagrad


@_update("AdagradV2")
def _(node: KernelNode) -> Rule:
    update_slots = node.attr("update_slots")

    def adagrad(var: Tensor, accum: Tensor, grad: Tensor, lr: Tensor, epsilon: Tensor) -> None:
        if update_slots:
            accum.add_(torch.square(grad))
        var.sub_(grad / (torch.sqrt(accum) + epsilon) * lr)

    return adagrad


@_update("AdagradDA")
def _(node: KernelNode) -> Rule:
    def adagrad_da(
        var: Tensor, gradients: Tensor, squares: Tensor, grad: Tensor, lr: Tensor, l1: Tensor, l2: Tensor,
        global_step: Tensor,
    ) -> None:  # fmt: skip
        step = torch.as_tensor(global_step).to(dtype=var.dtype, device=var.device)
        gradients.add_(grad)
        squares.add_(torch.square(grad))
        var.copy_(_shrunk(gradients, l1 * step) * -lr / (torch.sqrt(squares) + l2 * step * lr))

    return adagrad_da


@_update("Adam", sparse=False)
def _(node: KernelNode) -> Rule:
    nesterov = node.attr("use_nesterov")

    def adam(
        var: Tensor, m: Tensor, v: Tensor, grad: Tensor, beta1_power: Tensor, beta2_power: Tensor, lr: Tensor,
        beta1: Tensor, beta2: Tensor, epsilon: Tensor,
    ) -> None:  # fmt: skip
        _move_moments(m, v, grad, beta1, beta2)
        moment = m * beta1 + grad * (1 - beta1) if nesterov else m
        var.sub_(moment / (torch.sqrt(v) + epsilon) * _adam_rate(lr, beta1_power, beta2_power))

    return adam


@_update("AdamWithAmsgrad", sparse=False, reference=False)
def _(node: KernelNode) -> Rule:
    def amsgrad(
        var: Tensor, m: Tensor, v: Tensor, vhat: Tensor, grad: Tensor, beta1_power: Tensor, beta2_power: Tensor,
        lr: Tensor, beta1: Tensor, beta2: Tensor, epsilon: Tensor,
    ) -> None:  # fmt: skip
        _move_moments(m, v, grad, beta1, beta2)
        vhat.copy_(torch.maximum(vhat, v))
        var.sub_(m / (torch.sqrt(vhat) + epsilon) * _adam_rate(lr, beta1_power, beta2_power))

    return amsgrad


def _move_moments(m: Tensor, v: Tensor, grad: Tensor, beta1: Tensor, beta2: Tensor) -> None:
    m.add_((grad - m) * (1 - beta1))
    v.add_((torch.square(grad) - v) * (1 - beta2))


def _adam_rate(lr: Tensor, beta1_power: Tensor, beta2_power: Tensor) -> Tensor:
    return lr * torch.sqrt(1 - beta2_power) / (1 - beta1_power)


@_update("AdaMax", sparse=False)
def _(node: KernelNode) -> Rule:
    def adamax(
        var: Tensor, m: Tensor, v: Tensor, grad: Tensor, beta1_power: Tensor, lr: Tensor, beta1: Tensor,
        beta2: Tensor, epsilon: Tensor,
    ) -> None:  # fmt: skip
        m.add_((grad - m) * (1 - beta1))
        v.copy_(torch.maximum(v * beta2, torch.abs(grad)))
        var.sub_(m / (v + epsilon) * (lr / (1 - beta1_power)))

    return adamax


@_update("RMSProp")
def _(node: KernelNode) -> Rule:
    def rms_prop(
        var: Tensor, ms: Tensor, mom: Tensor, grad: Tensor, lr: Tensor, rho: Tensor, momentum: Tensor, epsilon: Tensor
    ) -> None:
        ms.add_((torch.square(grad) - ms) * (1 - rho))
        mom.mul_(momentum).add_(grad / torch.sqrt(ms + epsilon) * lr)
        var.sub_(mom)

    return rms_prop


@_update("CenteredRMSProp")
def _(node: KernelNode) -> Rule:
    def centered_rms_prop(
        var: Tensor, mg: Tensor, ms: Tensor, mom: Tensor, grad: Tensor, lr: Tensor, rho: Tensor, momentum: Tensor,
        epsilon: Tensor,
    ) -> None:  # fmt: skip
        ms.add_((torch.square(grad) - ms) * (1 - rho))
        mg.add_((grad - mg) * (1 - rho))
        mom.mul_(momentum).add_(grad / torch.sqrt(ms - torch.square(mg) + epsilon) * lr)
        var.sub_(mom)

    return centered_rms_prop


@_update("Adadelta")
def _(node: KernelNode) -> Rule:
    def adadelta(
        var: Tensor, accum: Tensor, accum_update: Tensor, grad: Tensor, lr: Tensor, rho: Tensor, epsilon: Tensor
    ) -> None:
        accum.mul_(rho).add_(torch.square(grad) * (1 - rho))
        step = torch.sqrt((accum_update + epsilon) / (accum + epsilon)) * grad
        accum_update.mul_(rho).add_(torch.square(step) * (1 - rho))
        var.sub_(step * lr)

    return adadelta


@_update("Ftrl")
def _(node: KernelNode) -> Rule:
    by_lr = node.attr("multiply_linear_by_lr")

    def ftrl(
        var: Tensor, accum: Tensor, linear: Tensor, grad: Tensor, lr: Tensor, l1: Tensor, l2: Tensor, lr_power: Tensor
    ) -> None:
        _ftrl(var, accum, linear, grad, grad, lr, l1, l2, lr_power, by_lr)

    return ftrl


@_update("FtrlV2")
def _(node: KernelNode) -> Rule:
    by_lr = node.attr("multiply_linear_by_lr")

    def ftrl(
        var: Tensor, accum: Tensor, linear: Tensor, grad: Tensor, lr: Tensor, l1: Tensor, l2: Tensor,
        l2_shrinkage: Tensor, lr_power: Tensor,
    ) -> None:  # fmt: skip
        _ftrl(var, accum, linear, grad, grad + 2 * l2_shrinkage * var, lr, l1, l2, lr_power, by_lr)

    return ftrl


def _ftrl(
    var: Tensor, accum: Tensor, linear: Tensor, grad: Tensor, linear_grad: Tensor, lr: Tensor, l1: Tensor, l2: Tensor,
    lr_power: Tensor, by_lr: bool,
) -> None:  # fmt: skip
    """FTRL-Proximal (McMahan et al., "Ad Click Prediction", KDD 2013). `linear` may be kept multiplied by `lr`."""
    factor = lr if by_lr else torch.ones_like(lr)
    old_power = torch.pow(accum, -lr_power)
    accum.add_(torch.square(grad))
    new_power = torch.pow(accum, -lr_power)
    linear.add_(linear_grad * factor).sub_((new_power - old_power) * var * (factor / lr))
    var.copy_(-_shrunk(linear, l1 * factor) / (new_power * (factor / lr) + 2 * l2 * factor))


@_update("ProximalGradientDescent")
def _(node: KernelNode) -> Rule:
    def proximal_gradient_descent(var: Tensor, grad: Tensor, alpha: Tensor, l1: Tensor, l2: Tensor) -> None:
        var.sub_(grad * alpha)
        _proximal(var, alpha, l1, l2)

    return proximal_gradient_descent


@_update("ProximalAdagrad")
def _(node: KernelNode) -> Rule:
    def proximal_adagrad(
        var: Tensor, accum: Tensor, grad: Tensor, lr: Tensor, l1: Tensor, l2: Tensor
    ) -> None:
        accum.add_(torch.square(grad))
        rate = lr / torch.sqrt(accum)
        var.sub_(grad * rate)
        _proximal(var, rate, l1, l2)

    return proximal_adagrad


def _proximal(var: Tensor, rate: Tensor, l1: Tensor, l2: Tensor) -> None:
    var.copy_(torch.where(l1 > 0, _shrunk(var, rate * l1), var) / (1 + rate * l2))


def _shrunk(value: Tensor, by: Tensor) -> Tensor:
    """Each element moved towards zero by `by` (nothing is moved away), and no further than zero."""
    return torch.copysign(torch.clamp(torch.abs(value) - torch.clamp(by, min=0), min=0), value)


@_update("AddSign", sparse=False)
def _(node: KernelNode) -> Rule:
    def add_sign(
        var: Tensor, m: Tensor, grad: Tensor, lr: Tensor, alpha: Tensor, sign_decay: Tensor, beta: Tensor
    ) -> None:
        var.sub_((_signs_agree(m, grad, beta) * sign_decay + alpha) * grad * lr)

    return add_sign


@_update("PowerSign", sparse=False)
def _(node: KernelNode) -> Rule:
    def power_sign(
        var: Tensor, m: Tensor, grad: Tensor, lr: Tensor, logbase: Tensor, sign_decay: Tensor, beta: Tensor
    ) -> None:
        var.sub_(torch.exp(_signs_agree(m, grad, beta) * (logbase * sign_decay)) * grad * lr)

    return power_sign


def _signs_agree(m: Tensor, grad: Tensor, beta: Tensor) -> Tensor:
    """Moves the mean gradient and returns sign(gradient) * sign(mean). Bello et al., arXiv 1709.07417."""
    m.mul_(beta).add_(grad * (1 - beta))
    return torch.sign(grad) * torch.sign(m)


# -- from a node's inputs to the tensors of its rule


def _of_references(node: KernelNode, rule: Rule) -> TensorFunction:
    apply = _application(node, rule)

    def run(*inputs: object) -> object:
        apply(inputs)
        return inputs[0]

    return run


def _of_resources(node: KernelNode, rule: Rule) -> TensorFunction:
    apply = _application(node, rule)
    count = sum(arg.type is not None and arg.type.name == "resource" for arg in node.op_def.inputs)

    def run(step, *inputs):  # type: ignore[no-untyped-def]
        found = [step.resources.get(handle, Variable) for handle in inputs[:count]]
        apply((*found, *inputs[count:]))

    return run


def _application(node: KernelNode, rule: Rule) -> Callable[[Sequence[object]], None]:
    names = [arg.name for arg in node.op_def.inputs]
    slots = sum(arg.is_ref or arg.type is not None and arg.type.name == "resource" for arg in node.op_def.inputs)
    gradient_at = names.index("grad" if "grad" in names else "delta")
    indices_at = names.index("indices") if "indices" in names else None
    scalars_at = [at for at in range(slots, len(names)) if at not in (gradient_at, indices_at)]

    def apply(inputs: Sequence[object]) -> None:
        variables = [each for each in inputs[:slots] if isinstance(each, Variable)]
        gradient = inputs[gradient_at]
        scalars = [torch.as_tensor(inputs[at]) for at in scalars_at]
        if any(scalar.dim() for scalar in scalars) or not isinstance(gradient, Tensor):
            raise Unsuited
        with ExitStack() as locks:
            for variable in sorted(variables, key=id):
                locks.enter_context(variable.lock)
            shape = tensor_in(variables[0]).shape
            if any(tensor_in(variable).shape != shape for variable in variables):
                raise Unsuited
            if indices_at is None:
                if gradient.shape != shape:
                    raise Unsuited
                rule(*map(writable_tensor, variables), gradient, *scalars)
            else:
                _sparse(rule, variables, gradient, inputs[indices_at], scalars)

    return apply


def _sparse(
    rule: Rule, variables: Sequence[Variable], gradient: Tensor, indices: object, scalars: Sequence[Tensor]
) -> None:
    shape = tensor_in(variables[0]).shape
    if not isinstance(indices, Tensor) or indices.dim() != 1 or not len(shape):
        raise Unsuited
    if tuple(gradient.shape) != (*indices.shape, *shape[1:]):
        raise Unsuited
    is_valid = valid_rows(indices, shape[0])
    rows = indices.long()
    if is_valid is not None:
        rows, gradient = rows[is_valid], gradient[is_valid]
    tensors = [writable_tensor(variable) for variable in variables]
    variables[0].rows_touched += len(rows)
    for positions in rounds(rows.cpu().numpy()):
        if isinstance(positions, slice):
            chosen, part = rows, gradient
        else:
            at = torch.from_numpy(positions).to(rows.device)
            chosen, part = rows[at], gradient[at]
        taken = [tensor.index_select(0, chosen) for tensor in tensors]
        rule(*taken, part, *scalars)
        for tensor, values in zip(tensors, taken, strict=True):
            tensor.index_copy_(0, chosen, values)
