"""Gradients of the ops in `nn`, their own gradient ops included where second derivatives are usual."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.gradients import gradient, gradients, not_differentiable
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import gathering, joining, reductions, searching
from dtf.build.ops import math as math_ops
from dtf.build.tensor import Operation, Tensor
from dtf.wire.window_shapes import channel_axis

Gradients = list[Any]

not_differentiable("InTopK", "InTopKV2", "LRNGrad")
# TensorFlow's optimizer makes these after the gradients are made.
not_differentiable("_FusedBatchNormEx", "_FusedConv2D", "_FusedDepthwiseConv2dNative", "_FusedMatMul")
not_differentiable("FusedPadConv2D", "FusedResizeAndPadConv2D", "_UnaryOpsComposition")


# Activations


@gradient("Relu")
def _(op: Operation, grad: Any) -> Gradients:
    return [apply_op("ReluGrad", gradients=grad, features=op.outputs[0])]


@gradient("ReluGrad")
def _(op: Operation, grad: Any) -> Gradients:
    return [apply_op("ReluGrad", gradients=grad, features=op.inputs[1]), None]


@gradient("Relu6")
def _(op: Operation, grad: Any) -> Gradients:
    return [apply_op("Relu6Grad", gradients=grad, features=op.outputs[0])]


@gradient("Relu6Grad")
def _(op: Operation, grad: Any) -> Gradients:
    return [apply_op("Relu6Grad", gradients=grad, features=op.inputs[1]), None]


@gradient("LeakyRelu")
def _(op: Operation, grad: Any) -> Gradients:
    return [apply_op("LeakyReluGrad", gradients=grad, features=op.inputs[0], alpha=op.get_attr("alpha"))]


@gradient("LeakyReluGrad")
def _(op: Operation, grad: Any) -> Gradients:
    return [apply_op("LeakyReluGrad", gradients=grad, features=op.inputs[1], alpha=op.get_attr("alpha")), None]


@gradient("Elu")
def _(op: Operation, grad: Any) -> Gradients:
    return [apply_op("EluGrad", gradients=grad, outputs=op.outputs[0])]


@gradient("EluGrad", "SeluGrad")
def _(op: Operation, grad: Any) -> Gradients:
    """Both multiply by the output plus a constant where it is negative, and by a constant elsewhere."""
    inner, outputs = op.inputs
    product = grad * inner
    return [
        apply_op(op.type, gradients=grad, outputs=outputs),
        searching.where(outputs < 0, product, filling_ops.zeros_like(product)),
    ]


@gradient("Selu")
def _(op: Operation, grad: Any) -> Gradients:
    return [apply_op("SeluGrad", gradients=grad, outputs=op.outputs[0])]


@gradient("Softplus")
def _(op: Operation, grad: Any) -> Gradients:
    return [apply_op("SoftplusGrad", gradients=grad, features=op.inputs[0])]


@gradient("SoftplusGrad")
def _(op: Operation, grad: Any) -> Gradients:
    inner, features = op.inputs
    curvature = 1 / (math_ops.exp(-features) + 2 + math_ops.exp(features))
    return [apply_op("SoftplusGrad", gradients=grad, features=features), grad * inner * curvature]


@gradient("Softsign")
def _(op: Operation, grad: Any) -> Gradients:
    return [apply_op("SoftsignGrad", gradients=grad, features=op.inputs[0])]


@gradient("SoftsignGrad")
def _(op: Operation, grad: Any) -> Gradients:
    inner, features = op.inputs
    cube = math_ops.pow(math_ops.abs(features) + 1, 3)
    return [
        apply_op("SoftsignGrad", gradients=grad, features=features),
        -2 * grad * inner * math_ops.sign(features) / cube,
    ]


# Softmax and the losses on top of it


@gradient("Softmax")
def _(op: Operation, grad: Any) -> Gradients:
    softmax = op.outputs[0]
    return [(grad - reductions.reduce_sum(grad * softmax, -1, keepdims=True)) * softmax]


@gradient("LogSoftmax")
def _(op: Operation, grad: Any) -> Gradients:
    return [grad - reductions.reduce_sum(grad, -1, keepdims=True) * math_ops.exp(op.outputs[0])]


@gradient("SoftmaxCrossEntropyWithLogits")
def _(op: Operation, grad_loss: Any, grad_backprop: Any) -> Gradients:
    logits, labels = op.inputs
    by_logits = _through_backprop(op, grad_loss, grad_backprop)
    by_labels = None
    if grad_loss is not None:
        by_labels = _column(grad_loss) * -apply_op("LogSoftmax", logits=logits)
    if grad_backprop is not None:
        by_labels = -grad_backprop if by_labels is None else by_labels - grad_backprop
    return [_summed_like(by_logits, logits), _summed_like(by_labels, labels)]


@gradient("SparseSoftmaxCrossEntropyWithLogits")
def _(op: Operation, grad_loss: Any, grad_backprop: Any) -> Gradients:
    return [_through_backprop(op, grad_loss, grad_backprop), None]


def _through_backprop(op: Operation, grad_loss: Any, grad_backprop: Any) -> Any:
    """The gradient for the logits; the second output is softmax(logits) - labels."""
    result = None
    if grad_loss is not None:
        result = _column(grad_loss) * op.outputs[1]
    if grad_backprop is not None and grad_backprop.op.type != "ZerosLike":  # only second gradients use it
        softmax = apply_op("Softmax", logits=op.inputs[0])
        inner = reductions.reduce_sum(grad_backprop * softmax, -1, keepdims=True)
        second = (grad_backprop - inner) * softmax
        result = second if result is None else result + second
    return result


def _column(vector: Any) -> Tensor:
    return array_ops.expand_dims(vector, -1)


def _summed_like(grad: Any, tensor: Tensor) -> Any:
    """Sums what broadcasting has spread; the shapes are usually known to be equal, and then nothing is to do."""
    if grad is None or tensor.shape.is_fully_defined() and tensor.shape == grad.shape:
        return grad
    if tensor.shape.ndims == 2 and tensor.shape[0].value != 1 and tensor.shape[1].value != 1:
        return grad
    spread, _ = apply_op("BroadcastGradientArgs", s0=array_ops.shape(tensor), s1=array_ops.shape(grad))
    return array_ops.reshape(reductions.reduce_sum(grad, spread), array_ops.shape(tensor))


@gradient("L2Loss")
def _(op: Operation, grad: Any) -> Gradients:
    return [op.inputs[0] * grad]


# Bias


@gradient("BiasAdd")
def _(op: Operation, grad: Any) -> Gradients:
    return [grad, apply_op("BiasAddGrad", out_backprop=grad, data_format=op.get_attr("data_format"))]


@gradient("BiasAddV1")
def _(op: Operation, grad: Any) -> Gradients:
    return [grad, apply_op("BiasAddGrad", out_backprop=grad)]


@gradient("BiasAddGrad")
def _(op: Operation, grad: Any) -> Gradients:
    zeros = filling_ops.zeros_like(op.inputs[0])
    return [apply_op("BiasAdd", value=zeros, bias=grad, data_format=op.get_attr("data_format"))]


# Normalisation


@gradient("LRN")
def _(op: Operation, grad: Any) -> Gradients:
    settings = {name: op.get_attr(name) for name in ("depth_radius", "bias", "alpha", "beta")}
    return [
        apply_op("LRNGrad", input_grads=grad, input_image=op.inputs[0], output_image=op.outputs[0], **settings)
    ]


@gradient("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _(op: Operation, *grads: Any) -> Gradients:
    if grads[0] is None:
        return [None] * 5
    training = op.get_attr("is_training")
    # Without training, the inputs' statistics are used.
    mean, variance = (op.outputs[3], op.outputs[4]) if training else (op.inputs[3], op.inputs[4])
    version = op.type.removeprefix("FusedBatchNorm")
    scale = op.inputs[1] if version == "" else math_ops.cast(op.inputs[1], "float32")
    third = {"reserve_space_3": op.outputs[5]} if version == "V3" else {}
    result = apply_op(
        f"FusedBatchNormGrad{version}",
        None,
        y_backprop=grads[0],
        x=op.inputs[0],
        scale=scale,
        reserve_space_1=mean,
        reserve_space_2=variance,
        **third,
        epsilon=op.get_attr("epsilon"),
        data_format=op.get_attr("data_format"),
        is_training=training,
    )
    return [result.x_backprop, result.scale_backprop, result.offset_backprop, None, None]


@gradient("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def _(op: Operation, *grads: Any) -> Gradients:
    """Differentiates the same computation written in simple ops."""
    y_backprop, x, scale, mean, variance = op.inputs[:5]
    outputs = _batch_norm_grad(op, y_backprop, x, scale, mean, variance)
    made = gradients(list(outputs), [y_backprop, x, scale], list(grads[:3]))
    return [*made, *[None] * (len(op.inputs) - 3)]


def _batch_norm_grad(
    op: Operation, y_backprop: Tensor, x: Tensor, scale: Tensor, mean: Tensor, variance: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """(x_backprop, scale_backprop, offset_backprop); while training, mean and variance are functions of x."""
    axis = channel_axis(op.get_attr("data_format").decode(), 4)
    around = [1 if i != axis else -1 for i in range(4)]
    others = [i for i in range(4) if i != axis]
    training = op.get_attr("is_training")
    precise, grad = math_ops.cast(x, scale.dtype), math_ops.cast(y_backprop, scale.dtype)
    if training:
        mean = reductions.reduce_mean(precise, others)
        variance = reductions.reduce_mean(
            math_ops.square(precise - array_ops.reshape(mean, around)), others
        )
    inverse = math_ops.rsqrt(variance + op.get_attr("epsilon"))
    normal = (precise - array_ops.reshape(mean, around)) * array_ops.reshape(inverse, around)
    result = grad
    if training:
        result = (
            grad
            - reductions.reduce_mean(grad, others, keepdims=True)
            - normal * reductions.reduce_mean(grad * normal, others, keepdims=True)
        )
    x_backprop = math_ops.cast(result * array_ops.reshape(scale * inverse, around), x.dtype)
    return x_backprop, reductions.reduce_sum(grad * normal, others), reductions.reduce_sum(grad, others)


# Ranking


@gradient("TopK", "TopKV2")
def _(op: Operation, grad: Any, _: Any) -> Gradients:
    """Puts each gradient back where the value came from."""
    others = [None] * (len(op.inputs) - 1)
    if grad is None:
        return [None, *others]
    shape = array_ops.shape(op.inputs[0])
    columns = math_ops.cast(shape[-1], "int64")
    indices = math_ops.cast(op.outputs[1], "int64")
    rows = array_ops.reshape(indices, joining.stack([-1, array_ops.shape(indices)[-1]]))
    starts = math_ops.range(array_ops.shape(rows, out_type="int64")[0]) * columns
    flat = array_ops.reshape(rows + array_ops.expand_dims(starts, -1), [-1, 1])
    total = array_ops.expand_dims(array_ops.size(op.inputs[0], out_type="int64"), 0)
    scattered = gathering.scatter_nd(flat, array_ops.reshape(grad, [-1]), total)
    return [array_ops.reshape(scattered, shape), *others]


@gradient("NthElement")
def _(op: Operation, grad: Any) -> Gradients:
    """Equal elements share the gradient."""
    chosen = math_ops.cast(math_ops.equal(array_ops.expand_dims(op.outputs[0], -1), op.inputs[0]), grad.dtype)
    share = array_ops.expand_dims(grad, -1) / reductions.reduce_sum(chosen, -1, keepdims=True)
    return [chosen * share, None]
