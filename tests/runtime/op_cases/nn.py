"""Cases of the nn ops: values by plain numpy, one window position or one element at a time."""

from __future__ import annotations

import numpy as np

from tests.runtime.op_cases import RECORDED, Case
from tests.runtime.op_cases.array import floats32, ints

random = np.random.RandomState(3)


def floats(*shape: int, scale: float = 1.0) -> np.ndarray:
    """float64, so that differences are exact enough; no two elements equal, none near a kink at 0 or 6."""
    count = int(np.prod(shape))
    values = random.permutation(np.linspace(-1.0, 1.0, count + count % 2)[:count]) * scale
    return values.reshape(shape) + 0.013


def distinct(*shape: int) -> np.ndarray:
    """Numbers at least 1 apart in any order, so that a maximum stays where it is when one is moved a little."""
    return random.permutation(int(np.prod(shape))).astype(np.float64).reshape(shape)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


# Activations

SCALE, ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717

ACTIVATIONS = [
    Case("Relu", [floats(3, 4)], expect=lambda x: np.where(x > 0, x, 0), grad=True),
    Case("Relu", [np.array([-2, 0, 3], np.int32)], expect=[np.array([0, 0, 3], np.int32)], name="int32"),
    Case("Relu6", [floats(3, 5, scale=10)], expect=lambda x: np.clip(x, 0, 6), grad=True),
    Case("LeakyRelu", [floats(3, 4)], {"alpha": 0.3}, expect=lambda x: np.where(x > 0, x, 0.3 * x), grad=True),
    Case("LeakyRelu", [floats(3, 4)], {"alpha": 2.0}, expect=lambda x: np.where(x > 0, x, 2 * x), name="steep"),
    Case("Elu", [floats(3, 4)], expect=lambda x: np.where(x > 0, x, np.exp(x) - 1), grad=True),
    Case(
        "Selu", [floats(3, 4)], expect=lambda x: SCALE * np.where(x > 0, x, ALPHA * (np.exp(x) - 1)), grad=True
    ),
    Case("Softplus", [floats(3, 4, scale=20)], expect=lambda x: np.log1p(np.exp(x)), grad=True),
    Case("Softplus", [np.float32([-2000, 2000])], expect=[np.float32([0, 2000])], name="far-out"),
    Case("Softsign", [floats(3, 4)], expect=lambda x: x / (1 + np.abs(x)), grad=True),
    Case("ReluGrad", [floats(3, 4), floats(3, 4)], expect=lambda g, x: g * (x > 0), grad=[0]),
    Case("Relu6Grad", [floats(3, 4), floats(3, 4, scale=9)], expect=lambda g, x: g * ((x > 0) & (x < 6)), grad=[0]),
    Case(
        "LeakyReluGrad",
        [floats(3, 4), floats(3, 4)],
        {"alpha": 0.3},
        expect=lambda g, x: g * np.where(x > 0, 1, 0.3),
        grad=[0],
    ),
    Case("EluGrad", [floats(3, 4), floats(3, 4)], expect=lambda g, y: g * np.where(y < 0, y + 1, 1), grad=True),
    Case(
        "SeluGrad",
        [floats(3, 4), floats(3, 4)],
        expect=lambda g, y: g * np.where(y < 0, y + SCALE * ALPHA, SCALE),
        grad=True,
    ),
    Case("SoftplusGrad", [floats(3, 4), floats(3, 4)], expect=lambda g, x: g * sigmoid(x), grad=True),
    Case("SoftplusGrad", [np.float32([1, 1]), np.float32([-2000, 2000])], expect=[np.float32([0, 1])], name="far-out"),
    Case("SoftsignGrad", [floats(3, 4), floats(3, 4)], expect=lambda g, x: g / (1 + np.abs(x)) ** 2, grad=True),
]

# Softmax and the losses on top of it


def cross_entropy(logits: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    logits, labels = np.broadcast_arrays(logits, labels)
    return [-(labels * np.log(softmax(logits))).sum(-1), softmax(logits) - labels]


def sparse_cross_entropy(logits: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    return cross_entropy(logits, np.eye(logits.shape[1])[labels])


SOFTMAX = [
    Case("Softmax", [floats(2, 3, 4, scale=3)], expect=softmax, grad=True),
    Case("Softmax", [np.float32([[1000, 999]])], expect=[np.float32([[0.7310586, 0.26894143]])], name="large"),
    Case("LogSoftmax", [floats(2, 3, 4, scale=3)], expect=lambda x: np.log(softmax(x)), grad=True),
    Case("SoftmaxCrossEntropyWithLogits", [floats(3, 4), softmax(floats(3, 4))], expect=cross_entropy, grad=True),
    Case(
        "SoftmaxCrossEntropyWithLogits",
        [floats(3, 4), softmax(floats(1, 4))],
        expect=cross_entropy,
        grad=True,
        name="broadcast",
    ),
    Case(
        "SparseSoftmaxCrossEntropyWithLogits",
        [floats(3, 4), np.array([0, 3, 1])],
        expect=sparse_cross_entropy,
        grad=[0],
    ),
]

# Bias, normalisation


def near_channels(x: np.ndarray, radius: int) -> np.ndarray:
    """The sum of squares of the channels within `radius` of each."""
    squares = [np.square(x[..., max(0, i - radius) : i + radius + 1]).sum(-1) for i in range(x.shape[-1])]
    return np.stack(squares, -1)


LRN = {"depth_radius": 2, "bias": 1.5, "alpha": 0.3, "beta": 0.7}


def lrn(x: np.ndarray) -> np.ndarray:
    return x / (1.5 + 0.3 * near_channels(x, 2)) ** 0.7


def lrn_grad(g: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By differences of lrn."""
    result, step = np.zeros_like(x), 1e-6
    for at in np.ndindex(*x.shape):
        move = np.zeros_like(x)
        move[at] = step
        result[at] = (g * (lrn(x + move) - lrn(x - move))).sum() / (2 * step)
    return result


def normalized(x, scale, offset, mean, variance, axes, around, epsilon=1e-4):
    mean, variance = mean.reshape(around), variance.reshape(around)
    return (x - mean) / np.sqrt(variance + epsilon) * scale.reshape(around) + offset.reshape(around)


def batch_norm(axes: tuple[int, ...], factor: float = 1.0, training: bool = True, third: bool = False):
    """FusedBatchNorm over the axes, as a function of its inputs."""
    around = tuple(1 if i in axes else -1 for i in range(4))

    def expected(x, scale, offset, mean, variance):
        if training:
            used_mean, used_variance = x.mean(axes), x.var(axes)
            count = x.size / x.shape[({0, 1, 2, 3} - set(axes)).pop()]
            unbiased = used_variance * count / (count - 1)
            new_mean = factor * used_mean + (1 - factor) * mean
            new_variance = factor * unbiased + (1 - factor) * variance
        else:
            new_mean = used_mean = mean
            new_variance = used_variance = variance
        y = normalized(x, scale, offset, used_mean, used_variance, axes, around)
        return [y, new_mean, new_variance, used_mean, used_variance, *([np.float32(0)] if third else [])]

    return expected


def batch_norm_grad(axes: tuple[int, ...], training: bool):
    around = tuple(1 if i in axes else -1 for i in range(4))

    def expected(grad, x, scale, mean, variance, *_):
        inverse = 1 / np.sqrt(variance.reshape(around) + 1e-4)
        normal = (x - mean.reshape(around)) * inverse
        inner = grad
        if training:
            inner = grad - grad.mean(axes, keepdims=True) - normal * (grad * normal).mean(axes, keepdims=True)
        empty = np.zeros(0, np.float32)
        return [inner * inverse * scale.reshape(around), (grad * normal).sum(axes), grad.sum(axes), empty, empty]

    return expected


def single(*shape: int) -> np.ndarray:
    return floats(*shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    return np.abs(single(*shape)) + np.float32(0.5)


CHANNELS_LAST, CHANNELS_FIRST = (0, 1, 2), (0, 2, 3)


def batch_norm_inputs(channels: int) -> list[np.ndarray]:
    return [single(2, 3, 2, 4), positive(channels), single(channels), single(channels), positive(channels)]


def batch_norm_grad_inputs(channels: int) -> list[np.ndarray]:
    return [single(2, 3, 2, 4), single(2, 3, 2, 4), positive(channels), single(channels), positive(channels)]


NORMALISATION = [
    Case("BiasAdd", [floats(2, 3, 4), floats(4)], expect=np.add, grad=True),
    Case(
        "BiasAdd",
        [floats(2, 3, 2, 2), floats(3)],
        {"data_format": "NCHW"},
        expect=lambda x, b: x + b.reshape(3, 1, 1),
        grad=True,
        name="NCHW",
    ),
    Case("BiasAddV1", [floats(2, 4), floats(4)], expect=np.add, grad=True),
    Case("BiasAddGrad", [floats(2, 3, 4)], expect=lambda g: g.sum((0, 1)), grad=True),
    Case(
        "BiasAddGrad", [floats(2, 3, 2, 2)], {"data_format": "NCHW"}, expect=lambda g: g.sum((0, 2, 3)), name="NCHW"
    ),
    Case("LRN", [single(1, 2, 2, 6)], LRN, expect=lrn),
    Case(
        "LRNGrad",
        [single(1, 1, 2, 6), (x := single(1, 1, 2, 6)), lrn(x)],
        LRN,
        expect=lambda g, x, y: lrn_grad(*(each.astype(float) for each in (g, x, y))),
        rtol=1e-4,
    ),
    *(
        Case(
            f"FusedBatchNorm{version}",
            batch_norm_inputs(4),
            expect=batch_norm(CHANNELS_LAST, third=version == "V3"),
            rtol=1e-4,
            atol=1e-5,
        )
        for version in ("", "V2", "V3")
    ),
    Case(
        "FusedBatchNormV3",
        batch_norm_inputs(3),
        {"data_format": "NCHW", "exponential_avg_factor": 0.25},
        expect=batch_norm(CHANNELS_FIRST, factor=0.25, third=True),
        rtol=1e-4,
        atol=1e-5,
        name="NCHW-averaged",
    ),
    Case(
        "FusedBatchNorm",
        batch_norm_inputs(4),
        {"is_training": False},
        expect=batch_norm(CHANNELS_LAST, training=False),
        rtol=1e-4,
        atol=1e-5,
        name="inference",
    ),
    *(
        Case(
            f"FusedBatchNormGrad{version}",
            [*batch_norm_grad_inputs(4), *([np.float32(0)] if version == "V3" else [])],
            {"is_training": training},
            expect=batch_norm_grad(CHANNELS_LAST, training),
            rtol=1e-4,
            atol=1e-5,
            name="training" if training else "inference",
        )
        for version in ("", "V2", "V3")
        for training in (True, False)
    ),
    Case("L2Loss", [floats(3, 4)], expect=lambda x: (x**2).sum() / 2, grad=True),
]

# Convolution


def padded(x: np.ndarray, window, stride, dilation, padding: str, filling: float = 0.0):
    """The padded images and the number of outputs in each direction. SAME puts the odd element after."""
    before, outputs, after = [], [], []
    for size, k, s, d in zip(x.shape[1:3], window, stride, dilation, strict=True):
        reach = (k - 1) * d + 1
        count = -(-size // s) if padding == "SAME" else (size - reach) // s + 1
        total = max((count - 1) * s + reach - size, 0) if padding == "SAME" else 0
        before.append(total // 2)
        after.append(total - total // 2)
        outputs.append(count)
    widths = ((0, 0), (before[0], after[0]), (before[1], after[1]), (0, 0))
    return np.pad(x, widths, constant_values=filling), outputs


def windows(x, window, stride, dilation, padding, filling=0.0):
    """Yields (output row, output column, patch [batch, window rows, window columns, channels])."""
    image, outputs = padded(x, window, stride, dilation, padding, filling)
    for i, j in np.ndindex(*outputs):
        top, left = i * stride[0], j * stride[1]
        rows = slice(top, top + (window[0] - 1) * dilation[0] + 1, dilation[0])
        columns = slice(left, left + (window[1] - 1) * dilation[1] + 1, dilation[1])
        yield i, j, image[:, rows, columns]


def conv2d(stride=(1, 1), dilation=(1, 1), padding="SAME"):
    def expected(x, w):
        result = {(i, j): np.einsum("bhwc,hwco->bo", patch, w)
                  for i, j, patch in windows(x, w.shape[:2], stride, dilation, padding)}  # fmt: skip
        rows, columns = max(result)[0] + 1, max(result)[1] + 1
        return np.stack([np.stack([result[i, j] for j in range(columns)], 1) for i in range(rows)], 1)

    return expected


def depthwise(stride=(1, 1), padding="SAME"):
    def expected(x, w):
        channels = []
        for c in range(w.shape[2]):
            channels.append(conv2d(stride, (1, 1), padding)(x[..., c : c + 1], w[:, :, c : c + 1]))
        return np.concatenate(channels, -1)

    return expected


def adjoint(forward, position: int):
    """The gradient of a bilinear function of (images, filters), at one of them, by its matrix."""

    def expected(first, second, grad):
        images, filters = (first, second) if position == 1 else (None, second)
        shape = tuple(second) if position == 1 else tuple(first)
        result = np.zeros(shape)
        for at in np.ndindex(*shape):
            unit = np.zeros(shape)
            unit[at] = 1
            moved = forward(images, unit) if position == 1 else forward(unit, filters)
            result[at] = (moved * grad).sum()
        return result

    return expected


def four(pair) -> list[int]:
    return [1, *pair, 1]


def sizes(array: np.ndarray) -> np.ndarray:
    return np.array(array.shape, np.int32)


def convolution_cases(op: str, forward, images, filters, attrs, name: str) -> list[Case]:
    """The op, its two gradient ops, and the gradients of all three."""
    grad = floats(*forward(images, filters).shape)
    return [
        Case(op, [images, filters], attrs, expect=forward, grad=True, name=name),
        Case(
            f"{op}BackpropInput",
            [sizes(images), filters, grad],
            attrs,
            expect=adjoint(forward, 0),
            grad=[1, 2],
            name=name,
        ),
        Case(
            f"{op}BackpropFilter",
            [images, sizes(filters), grad],
            attrs,
            expect=adjoint(forward, 1),
            grad=[0, 2],
            name=name,
        ),
    ]


def channels_first(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


CONVOLUTION = [
    *(
        case
        for padding, stride, dilation in [
            ("SAME", (1, 1), (1, 1)),
            ("VALID", (1, 1), (1, 1)),
            ("SAME", (2, 2), (1, 1)),
            ("VALID", (2, 1), (1, 1)),
            ("SAME", (3, 3), (1, 1)),
            ("SAME", (1, 1), (2, 1)),
        ]
        for case in convolution_cases(
            "Conv2D",
            conv2d(stride, dilation, padding),
            floats(2, 4, 5, 2),
            floats(3, 2, 2, 3),
            {"padding": padding, "strides": four(stride), "dilations": four(dilation)},
            f"{padding}-{stride}-{dilation}".replace(" ", ""),
        )
    ),
    *convolution_cases(
        "Conv2D", conv2d(), floats(2, 3, 3, 6), floats(2, 2, 6, 2), {"padding": "SAME", "strides": [1] * 4}, "wide"
    ),
    *convolution_cases(
        "Conv2D", conv2d(), floats(2, 3, 3, 3), floats(1, 1, 3, 2), {"padding": "VALID", "strides": [1] * 4}, "1x1"
    ),
    Case(
        "Conv2D",
        [channels_first(floats(2, 4, 5, 2)), floats(3, 2, 2, 3)],
        {"padding": "SAME", "strides": [1, 1, 2, 1], "data_format": "NCHW"},
        expect=lambda x, w: channels_first(conv2d((2, 1))(np.moveaxis(x, 1, -1), w)),
        grad=True,
        name="NCHW",
    ),
    Case(
        "Conv2D",
        [floats(1, 3, 4, 2), floats(2, 2, 2, 2)],
        {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0], "strides": [1] * 4},
        expect=lambda x, w: conv2d(padding="VALID")(np.pad(x, ((0, 0), (1, 2), (0, 1), (0, 0))), w),
        grad=True,
        name="explicit",
    ),
    Case(
        "Conv2D",
        [floats(1, 3, 4, 2).astype(np.float16), floats(2, 2, 2, 2).astype(np.float16)],
        {"padding": "SAME", "strides": [1] * 4},
        expect=lambda x, w: conv2d()(x.astype(float), w.astype(float)),
        rtol=1e-2,
        atol=1e-2,
        name="float16",
    ),
    *(
        case
        for padding, stride in [("SAME", (1, 1)), ("VALID", (2, 2))]
        for case in convolution_cases(
            "DepthwiseConv2dNative",
            depthwise(stride, padding),
            floats(1, 4, 5, 2),
            floats(3, 2, 2, 3),
            {"padding": padding, "strides": four(stride)},
            f"{padding}-{stride}".replace(" ", ""),
        )
    ),
]

# Pooling


def pool(reduce, window, stride, padding, filling):
    def expected(x, *_):
        result = {(i, j): reduce(patch) for i, j, patch in windows(x, window, stride, (1, 1), padding, filling)}
        rows, columns = max(result)[0] + 1, max(result)[1] + 1
        return np.stack([np.stack([result[i, j] for j in range(columns)], 1) for i in range(rows)], 1)

    return expected


def max_pool(window=(2, 2), stride=(2, 2), padding="VALID"):
    return pool(lambda patch: patch.max((1, 2)), window, stride, padding, -np.inf)


def avg_pool(window=(2, 2), stride=(2, 2), padding="VALID"):
    return pool(lambda patch: np.nanmean(patch, (1, 2)), window, stride, padding, np.nan)


def by_differences(forward):
    """The gradient of a function of images, weighted by `grad`; right where the function is linear near by."""

    def expected(x, grad):
        result = np.zeros_like(x)
        for at in np.ndindex(*x.shape):
            move = np.zeros_like(x)
            move[at] = 0.25
            result[at] = ((forward(x + move) - forward(x - move)) * grad).sum() / 0.5
        return result

    return expected


def gathered(forward):
    """What a small move of the images along `grad` changes."""
    return lambda x, pooled, grad, *_: (forward(x + 0.1 * grad) - forward(x - 0.1 * grad)) / 0.2


def pooling_cases(window, stride, padding) -> list[Case]:
    attrs = {"ksize": four(window), "strides": four(stride), "padding": padding}
    name = f"{padding}-{window}-{stride}".replace(" ", "")
    images = distinct(2, 4, 5, 2)
    highest, mean = max_pool(window, stride, padding), avg_pool(window, stride, padding)
    pooled = highest(images)
    grad, moves = floats(*pooled.shape), floats(*images.shape)
    arrays = [np.array(four(window), np.int32), np.array(four(stride), np.int32)]
    padded_only = {"padding": padding}
    return [
        Case("MaxPool", [images], attrs, expect=highest, grad=True, name=name),
        Case("MaxPoolV2", [images, *arrays], padded_only, expect=highest, grad=[0], name=name),
        *(
            Case(op, inputs, settings, expect=expect, grad=[2], name=name)
            for suffix, extra, settings in (("", [], attrs), ("V2", arrays, padded_only))
            for op, inputs, expect in (
                (
                    f"MaxPoolGrad{suffix}",
                    [images, pooled, grad, *extra],
                    lambda x, _, g, *__: by_differences(highest)(x, g),
                ),
                (f"MaxPoolGradGrad{suffix}", [images, pooled, moves, *extra], gathered(highest)),
            )
        ),
        Case("AvgPool", [images], attrs, expect=mean, grad=True, name=name),
        Case(
            "AvgPoolGrad",
            [sizes(images), grad],
            attrs,
            expect=lambda shape, g: by_differences(mean)(np.zeros(shape), g),
            grad=[1],
            name=name,
        ),
    ]


POOLING = [
    *(
        case
        for window, stride, padding in [
            ((2, 2), (2, 2), "SAME"),
            ((2, 2), (2, 2), "VALID"),
            ((3, 2), (1, 2), "SAME"),
            ((2, 3), (1, 1), "VALID"),
        ]
        for case in pooling_cases(window, stride, padding)
    ),
    Case(
        "MaxPoolGrad",
        [np.ones((1, 2, 2, 1)), np.ones((1, 1, 1, 1)), np.full((1, 1, 1, 1), 5.0)],
        {"ksize": four((2, 2)), "strides": four((2, 2)), "padding": "VALID"},
        expect=[np.array([5.0, 0, 0, 0]).reshape(1, 2, 2, 1)],
        name="the-first-of-equal-maxima",
    ),
    Case(
        "MaxPool",
        [channels_first(distinct(1, 4, 5, 2))],
        {"ksize": [1, 1, 2, 2], "strides": [1, 1, 2, 2], "padding": "SAME", "data_format": "NCHW"},
        expect=lambda x: channels_first(max_pool(padding="SAME")(np.moveaxis(x, 1, -1))),
        grad=True,
        name="NCHW",
    ),
]

# Ranking


def top_k(k: int):
    def expected(x, *_):
        order = np.argsort(-x, axis=-1, kind="stable")[..., :k]
        return [np.take_along_axis(x, order, -1), order.astype(np.int32)]

    return expected


TIED = np.array([[1, 3, 3, 2], [5, 5, 5, 5]], np.int64)
PREDICTIONS = np.float32([[0.1, 0.3, 0.2], [0.5, 0.5, 0.1], [0.1, np.nan, 0.3], [0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
TARGETS = np.array([2, 1, 0, 0, 3])
TOP_2 = np.array([True, True, False, False, False])

RANKING = [
    Case("TopK", [distinct(3, 5)], {"k": 2}, expect=top_k(2), grad=True),
    Case("TopKV2", [distinct(2, 3, 5), np.int32(3)], expect=top_k(3), grad=[0]),
    Case("TopKV2", [TIED, np.int32(3)], expect=top_k(3), name="ties-in-order"),
    Case("TopKV2", [distinct(5), np.int32(1)], expect=top_k(1), grad=[0], name="vector"),
    Case("InTopK", [PREDICTIONS, TARGETS], {"k": 2}, expect=[TOP_2]),
    Case("InTopKV2", [PREDICTIONS, TARGETS, np.int64(2)], expect=[TOP_2]),
    Case("NthElement", [distinct(3, 5), np.int32(1)], expect=lambda x, n: np.sort(x, -1)[..., n], grad=[0]),
    Case(
        "NthElement",
        [distinct(3, 5), np.int32(1)],
        {"reverse": True},
        expect=lambda x, n: np.sort(x, -1)[..., -2],
        name="reverse",
    ),
]

# Fused ops


def fused(plain, *stages):
    """plain(first, second), then each stage with the result and the rest of the inputs."""

    def expected(first, second, *rest):
        result = plain(first, second)
        for stage in stages:
            result = stage(result, *rest)
        return result

    return expected


def relu(x, *_):
    return np.maximum(x, 0)


def scaled(x, scale, offset, mean, variance):
    return normalized(x, scale, offset, mean, variance, (), (1,) * (x.ndim - 1) + (-1,))


FUSED = [
    Case(
        "_FusedMatMul",
        [single(5, 3), single(5, 4), [single(4)]],
        {"fused_ops": ["BiasAdd", "Relu"], "transpose_a": True},
        expect=fused(lambda a, b: a.T @ b, np.add, relu),
    ),
    Case(
        "_FusedMatMul",
        [single(3, 5), single(5, 4), [single(4), single(3, 4)]],
        {"fused_ops": ["BiasAdd", "Add", "LeakyRelu"], "leakyrelu_alpha": 0.5},
        expect=fused(np.matmul, lambda x, bias, side: x + bias + side, lambda x, *_: np.where(x > 0, x, 0.5 * x)),
        name="side-input",
    ),
    *(
        Case(
            "FusedPadConv2D", [floats32(1, 5, 6, 2), ints([[0, 0], [1, 2], [2, 1], [0, 0]]), floats32(3, 2, 2, 3)],
            {"mode": mode, "strides": [1, 2, 1, 1], "padding": padding}, RECORDED, name=mode.lower(),
        )
        for mode, padding in (("REFLECT", "VALID"), ("SYMMETRIC", "SAME"))
    ),
    *(
        Case(
            "FusedResizeAndPadConv2D",
            [floats32(1, 5, 6, 2), ints([8, 7]), ints([[0, 0], [1, 2], [2, 1], [0, 0]]), floats32(3, 2, 2, 3)],
            {"mode": mode, "strides": [1, 2, 2, 1], "padding": padding, "resize_align_corners": align}, RECORDED,
            name=mode.lower(), atol=1e-5,
        )
        for mode, padding, align in (("REFLECT", "VALID", True), ("SYMMETRIC", "VALID", False))
    ),
    Case(
        "_FusedConv2D",
        [single(2, 4, 5, 2), single(3, 2, 2, 3), [single(3)], []],
        {"fused_ops": ["BiasAdd", "Relu6"], "padding": "SAME", "strides": [1, 2, 2, 1], "num_args": 1},
        expect=fused(conv2d((2, 2)), np.add, lambda x, *_: np.clip(x, 0, 6)),
    ),
    Case(
        "_FusedConv2D",
        [single(2, 4, 5, 2), single(3, 2, 2, 3), [positive(3), single(3), single(3), positive(3)], []],
        {"fused_ops": ["FusedBatchNorm", "Elu"], "padding": "VALID", "strides": [1] * 4, "num_args": 4},
        expect=fused(conv2d(padding="VALID"), scaled, lambda x, *_: np.where(x > 0, x, np.exp(x) - 1)),
        name="batch-norm",
        atol=1e-5,
    ),
    Case(
        "_FusedConv2D",
        [channels_first(single(2, 4, 5, 2)), single(3, 2, 2, 3), [single(3)], []],
        {
            "fused_ops": ["BiasAdd"],
            "padding": "SAME",
            "strides": [1] * 4,
            "data_format": "NCHW",
            "num_args": 1,
        },
        expect=lambda x, w, b: channels_first(conv2d()(np.moveaxis(x, 1, -1), w) + b),
        name="NCHW",
    ),
    Case(
        "_FusedDepthwiseConv2dNative",
        [single(1, 4, 5, 2), single(3, 2, 2, 3), [single(6)]],
        {"fused_ops": ["BiasAdd", "Relu"], "padding": "SAME", "strides": [1] * 4},
        expect=fused(depthwise(), np.add, relu),
    ),
    Case(
        "_FusedBatchNormEx",
        [*batch_norm_inputs(4), (side := [single(2, 3, 2, 4)])],
        {"activation_mode": "Relu"},
        expect=lambda *inputs: [
            relu((outputs := batch_norm(CHANNELS_LAST, third=True)(*inputs[:5]))[0] + side[0]),
            *outputs[1:],
        ],
        rtol=1e-4,
        atol=1e-5,
    ),
]

CASES = [*ACTIVATIONS, *SOFTMAX, *NORMALISATION, *CONVOLUTION, *POOLING, *RANKING, *FUSED]
