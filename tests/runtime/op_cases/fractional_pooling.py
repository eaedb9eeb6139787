"""Cases of pooling by windows of differing sizes."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from tests.runtime.op_cases import RECORDED, Case, Vary
from tests.runtime.op_cases.array import doubles

IMAGES = doubles(2, 6, 8, 2)
EVEN = {"pooling_ratio": [1.0, 2.0, 2.0, 1.0]}
PLACES = [np.int64([0, 1, 3, 6]), np.int64([0, 2, 4, 5, 8])]
FIXED = Vary(odd_values=False, shapes=False, fixed_attrs=("pooling_ratio", "deterministic", "seed", "seed2"))
"""The places that are cut are drawn unless the sizes divide evenly."""


def borders_are_drawn_within_the_image() -> None:
    images = doubles(1, 7, 11, 1)
    for pseudo_random in (False, True):
        with tf.Graph().as_default(), tf.Session() as session:
            made = tf.nn.fractional_max_pool(
                images, [1.0, 1.4, 2.3, 1.0], pseudo_random, deterministic=True, seed=5, seed2=7
            )
            output, rows, columns = session.run(list(made))
            again = session.run(list(made))
        np.testing.assert_array_equal(rows, again[1])
        np.testing.assert_array_equal(columns, again[2])
        for places, size, count in ((rows, 7, 5), (columns, 11, 4)):
            assert (places[0], places[-1], len(places)) == (0, size, count + 1)
            assert set(np.diff(places)) <= {size // count, size // count + 1}
        window = images[0, rows[1] : rows[2], columns[2] : columns[3], 0]
        assert output[0, 1, 2, 0] == window.max()


def empty_images_have_empty_results_at_once() -> None:
    images, places = np.zeros((0, 20_000, 20_000, 0), np.float32), np.arange(20_001)
    raw = tf.raw_ops
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.placeholder_with_default(images, images.shape)
        cut = {"row_pooling_sequence": places, "col_pooling_sequence": places}
        pooled = [op(value=given, pooling_ratio=[1.0, 2.0, 2.0, 1.0]).output
                  for op in (raw.FractionalMaxPool, raw.FractionalAvgPool)]  # fmt: skip
        grads = [
            raw.FractionalAvgPoolGrad(orig_input_tensor_shape=np.int64(images.shape), out_backprop=given, **cut),
            raw.FractionalMaxPoolGrad(orig_input=given, orig_output=given, out_backprop=given, **cut),
        ]
        values = session.run([*pooled, *grads])
    assert [value.shape for value in values] == [(0, 10_000, 10_000, 0)] * 2 + [images.shape] * 2


def a_ratio_below_one_is_refused_in_words() -> None:
    for ratio in (0.0, 0.5, float("nan"), float("inf")):
        with tf.Graph().as_default(), pytest.raises(ValueError, match="pooling_ratio cannot be smaller than 1"):
            tf.nn.fractional_max_pool(IMAGES, [1.0, ratio, 2.0, 1.0])


def cases():
    for overlapping in (False, True):
        name, attrs = "overlapping" if overlapping else "", {"overlapping": overlapping}
        for op in ("FractionalMaxPool", "FractionalAvgPool"):
            yield Case(op, [IMAGES], EVEN | attrs, RECORDED, grad=True, name=name, vary=FIXED)
        grads = doubles(2, 3, 4, 2)
        shape = np.int64([2, 6, 8, 2])
        yield Case("FractionalAvgPoolGrad", [shape, grads, *PLACES], attrs, RECORDED, name=name, vary=FIXED)
        outputs = np.stack([
            np.stack([
                IMAGES[:, top : bottom + overlapping, left : right + overlapping].max((1, 2))
                for left, right in zip(PLACES[1][:-1], PLACES[1][1:], strict=True)
            ], 1)
            for top, bottom in zip(PLACES[0][:-1], PLACES[0][1:], strict=True)
        ], 1)  # fmt: skip
        yield Case("FractionalMaxPoolGrad", [IMAGES, outputs, grads, *PLACES], attrs, RECORDED, name=name, vary=FIXED)
    yield Case("FractionalMaxPool", run=borders_are_drawn_within_the_image, name="drawn")
    yield Case("FractionalMaxPoolGrad", run=empty_images_have_empty_results_at_once, name="empty")
    yield Case("FractionalMaxPool", run=a_ratio_below_one_is_refused_in_words, name="refused")


CASES = list(cases())
