"""Gradients of recurrent cells and of connectionist temporal classification."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.ops import array as array_ops
from dtf.build.ops import joining, reductions
from dtf.build.ops import linalg as linalg_ops
from dtf.build.tensor import Operation

Gradients = list[Any]

not_differentiable(
    "BlockLSTMGrad", "BlockLSTMGradV2", "CTCBeamSearchDecoder", "CTCGreedyDecoder", "GRUBlockCellGrad",
    "LSTMBlockCellGrad",
)  # fmt: skip


@gradient("CTCLoss")
def _(op: Operation, grad: Any, _: Any) -> Gradients:
    """The second output is the gradient of each sequence's loss."""
    by_sequence = array_ops.expand_dims(array_ops.expand_dims(grad, 0), -1)
    return [by_sequence * array_ops.stop_gradient(op.outputs[1]), None, None, None]


@gradient("BlockLSTM", "BlockLSTMV2")
def _(op: Operation, *grads: Any) -> Gradients:
    """Only the gradients of the cell states and of the outputs count, as in TensorFlow."""
    steps, x, cs_prev, h_prev, w, wci, wcf, wco, b = op.inputs
    parts: dict[str, Any] = dict(zip(("i", "cs", "f", "o", "ci", "co", "h"), op.outputs, strict=True))
    made = apply_op(
        "BlockLSTMGradV2" if op.type == "BlockLSTMV2" else "BlockLSTMGrad",
        seq_len_max=steps,
        x=x,
        cs_prev=cs_prev,
        h_prev=h_prev,
        w=w,
        wci=wci,
        wcf=wcf,
        wco=wco,
        b=b,
        **parts,
        cs_grad=grads[1],
        h_grad=grads[6],
        use_peephole=op.get_attr("use_peephole"),
    )
    return [None, *made]


@gradient("LSTMBlockCell")
def _(op: Operation, *grads: Any) -> Gradients:
    x, cs_prev, h_prev, w, wci, wcf, wco, b = op.inputs
    parts: dict[str, Any] = dict(zip(("i", "cs", "f", "o", "ci", "co"), op.outputs[:6], strict=True))
    made = apply_op(
        "LSTMBlockCellGrad",
        x=x,
        cs_prev=cs_prev,
        h_prev=h_prev,
        w=w,
        wci=wci,
        wcf=wcf,
        wco=wco,
        b=b,
        **parts,
        cs_grad=grads[1],
        h_grad=grads[6],
        use_peephole=op.get_attr("use_peephole"),
    )
    by_input = linalg_ops.matmul(made.dicfo, w, transpose_b=True)
    width = array_ops.shape(x)[1]
    by_w = linalg_ops.matmul(joining.concat([x, h_prev], 1), made.dicfo, transpose_a=True)
    by_b = reductions.reduce_sum(made.dicfo, axis=0)
    peepholes = made.wci_grad, made.wcf_grad, made.wco_grad
    return [by_input[:, :width], made.cs_prev_grad, by_input[:, width:], by_w, *peepholes, by_b]


@gradient("GRUBlockCell")
def _(op: Operation, *grads: Any) -> Gradients:
    x, h_prev, w_ru, w_c, b_ru, b_c = op.inputs
    r, u, c, _ = op.outputs
    made = apply_op(
        "GRUBlockCellGrad", x=x, h_prev=h_prev, w_ru=w_ru, w_c=w_c, b_ru=b_ru, b_c=b_c, r=r, u=u, c=c, d_h=grads[3]
    )
    by_ru = linalg_ops.matmul(joining.concat([x, h_prev], 1), made.d_r_bar_u_bar, transpose_a=True)
    by_c = linalg_ops.matmul(joining.concat([x, h_prev * r], 1), made.d_c_bar, transpose_a=True)
    return [
        made.d_x, made.d_h_prev, by_ru, by_c, reductions.reduce_sum(made.d_r_bar_u_bar, axis=0),
        reductions.reduce_sum(made.d_c_bar, axis=0),
    ]  # fmt: skip
