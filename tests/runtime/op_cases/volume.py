"""Cases of the ops whose windows slide over volumes, and of those that tell where maxima stand."""

from __future__ import annotations

import numpy as np

import dtf as tf
from tests.runtime.op_cases import RECORDED, Case
from tests.runtime.op_cases.array import doubles, evaluate, floats32, ints

VOLUMES, FILTERS = doubles(2, 3, 4, 5, 2), doubles(2, 3, 2, 2, 3)
IMAGES = doubles(2, 5, 6, 2)


def ways():
    yield "SAME", [1, 1, 1, 1, 1], [2, 3, 4, 5]
    yield "VALID", [1, 1, 1, 1, 1], [2, 2, 2, 4]
    yield "SAME", [1, 2, 1, 2, 1], [2, 2, 4, 3]


def convolutions():
    for padding, strides, outputs in ways():
        attrs = {"padding": padding, "strides": strides}
        name = f"{padding}{strides[1]}"
        back = doubles(*outputs, 3)
        sizes, shape = ints(VOLUMES.shape), ints(FILTERS.shape)
        yield Case("Conv3D", [VOLUMES, FILTERS], attrs, RECORDED, grad=padding == "VALID", name=name)
        yield Case("Conv3DBackpropInputV2", [sizes, FILTERS, back], attrs, RECORDED, name=name)
        yield Case("Conv3DBackpropFilterV2", [VOLUMES, shape, back], attrs, RECORDED, name=name)
    small = [ints([1, 2, 3, 2, 1]), doubles(1, 2, 2, 1, 2), doubles(1, 2, 2, 1, 2)]
    attrs = {"padding": "VALID", "strides": [1] * 5}
    yield Case("Conv3DBackpropInputV2", small, attrs, RECORDED, grad=[1, 2], name="gradient")
    small = [doubles(1, 2, 3, 2, 1), ints([1, 2, 2, 1, 2]), doubles(1, 2, 2, 1, 2)]
    yield Case("Conv3DBackpropFilterV2", small, attrs, RECORDED, grad=[0, 2], name="gradient")


def poolings():
    single = floats32(2, 3, 4, 5, 2)
    for padding, strides, outputs in ways():
        attrs = {"padding": padding, "strides": strides, "ksize": [1, 2, 3, 2, 1]}
        name = f"{padding}{strides[1]}"
        yield Case("AvgPool3D", [single], attrs, RECORDED, name=name)
        yield Case("AvgPool3DGrad", [ints(VOLUMES.shape), floats32(*outputs, 2)], attrs, RECORDED, name=name)
        yield Case("MaxPool3D", [single], attrs, RECORDED, name=name)
        with tf.Graph().as_default():
            pooled = evaluate(tf.nn.max_pool3d(single, attrs["ksize"], strides, padding))[0]
        yield Case("MaxPool3DGrad", [single, pooled, floats32(*outputs, 2)], attrs, RECORDED, name=name)
        yield Case("MaxPool3DGradGrad", [single, pooled, single * 2], attrs, 2 * pooled, name=name)
    halves = {"padding": "VALID", "strides": [1, 1, 2, 2, 1], "ksize": [1, 1, 2, 2, 1]}
    yield Case(
        "AvgPool3D", [doubles(1, 2, 2, 4, 1)], halves,
        lambda volumes: volumes.reshape(1, 2, 1, 2, 2, 2, 1).mean((3, 5)), grad=True, name="gradient",
    )  # fmt: skip
    yield Case(
        "AvgPool3DGrad", [ints([1, 2, 2, 4, 1]), doubles(1, 2, 1, 2, 1)], halves,
        lambda shape, grads: grads.repeat(2, 2).repeat(2, 3) / 4, grad=[1], name="gradient",
    )  # fmt: skip


def with_argmax():
    for padding, batch in (("SAME", True), ("VALID", False)):
        attrs = {"padding": padding, "ksize": [1, 2, 3, 1], "strides": [1, 2, 2, 1], "include_batch_in_index": batch}
        yield Case("MaxPoolWithArgmax", [IMAGES], attrs, RECORDED, grad=[0], name=padding)
        with tf.Graph().as_default():
            made = tf.nn.max_pool_with_argmax(
                IMAGES, attrs["ksize"], attrs["strides"], padding, include_batch_in_index=batch
            )
            pooled, argmax = evaluate(*made)
        yield Case("MaxPoolGradWithArgmax", [IMAGES, pooled, argmax], attrs, RECORDED, name=padding)
        yield Case("MaxPoolGradGradWithArgmax", [IMAGES, IMAGES * 2, argmax], attrs, 2 * pooled, name=padding)


def dilations():
    filters = doubles(2, 3, 2)
    for padding, rate, outputs in (("SAME", 1, [2, 3, 3]), ("VALID", 2, [2, 2, 1])):
        attrs = {"padding": padding, "strides": [1, 2, 2, 1], "rates": [1, rate, rate, 1]}
        back = doubles(*outputs, 2)
        yield Case("Dilation2D", [IMAGES, filters], attrs, RECORDED, grad=True, name=padding)
        yield Case("Dilation2DBackpropInput", [IMAGES, filters, back], attrs, RECORDED, name=padding)
        yield Case("Dilation2DBackpropFilter", [IMAGES, filters, back], attrs, RECORDED, name=padding)


CASES = [
    *convolutions(),
    *poolings(),
    *with_argmax(),
    *dilations(),
    Case(
        "Conv3D",
        [np.moveaxis(VOLUMES, -1, 1), FILTERS],
        {"padding": "VALID", "strides": [1] * 5, "data_format": "NCDHW"},
        lambda volumes, filters: np.einsum(
            "ncdhwijk,ijkco->nodhw", np.lib.stride_tricks.sliding_window_view(volumes, (2, 3, 2), (2, 3, 4)), filters
        ),
        name="NCDHW",
    ),
    *(
        Case(
            "ExtractVolumePatches", [VOLUMES],
            {"ksizes": [1, 2, 3, 2, 1], "strides": [1, 1, 2, 2, 1], "padding": padding}, RECORDED, grad=True,
            name=padding,
        )
        for padding in ("SAME", "VALID")
    ),
]  # fmt: skip
