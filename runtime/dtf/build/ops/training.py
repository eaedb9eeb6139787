"""Shape rules of the optimizers' update ops. They have no public functions: optimizers make them with `apply_op`."""

from __future__ import annotations

from dtf.build.shape_rules import shape_rule
from dtf.build.tensor import Operation
from dtf.wire import opdef
from dtf.wire.tensor_shape import TensorShape, unknown_shape

RULES = (
    "AdaMax Adadelta Adagrad AdagradDA AdagradV2 Adam AdamWithAmsgrad AddSign CenteredRMSProp Ftrl FtrlV2 "
    "GradientDescent KerasMomentum Momentum PowerSign ProximalAdagrad ProximalGradientDescent RMSProp"
).split()

#: Every update op: each rule has some of these four forms.
UPDATE_OPS = [
    form + rule
    for rule in RULES
    for form in ("Apply", "SparseApply", "ResourceApply", "ResourceSparseApply")
    if opdef.exists(form + rule)
]


@shape_rule(*UPDATE_OPS)
def _(op: Operation) -> list[TensorShape]:
    """All variables, and a dense gradient, have one shape; a sparse gradient may have another number of rows."""
    assert op._op_def is not None
    shape = unknown_shape()
    for arg, tensor in zip(op._op_def.inputs, op.inputs, strict=True):
        if arg.is_ref:
            shape = shape.merge_with(tensor.shape)
        elif arg.name in ("grad", "delta") and op.outputs:
            if "Sparse" in op.type:
                tensor.shape[1:].assert_is_compatible_with(shape[1:])
            else:
                shape = shape.merge_with(tensor.shape)
        elif arg.name not in ("grad", "delta", "indices") and not arg.type:
            tensor.shape.assert_has_rank(0)
    return [shape] * len(op.outputs)
