"""Cases of recurrent cells and of connectionist temporal classification."""

from __future__ import annotations

import numpy as np

import dtf as tf
from dtf.wire import errors
from tests.runtime.op_cases import RECORDED, Case, Vary
from tests.runtime.op_cases.array import doubles, evaluate, floats32, ints, longs

X, STATE, HIDDEN = floats32(2, 3), floats32(2, 4), floats32(2, 4) * 0.5
MATRIX, BIAS = floats32(7, 16), floats32(16)
PEEPHOLES = [floats32(4), floats32(4) * 0.3, floats32(4) * -0.4]
OVER_TIME = floats32(5, 2, 3)
GRU = [X, HIDDEN, floats32(7, 8), floats32(7, 4), floats32(8), floats32(4)]
CELL = [X, STATE, HIDDEN, MATRIX, *PEEPHOLES, BIAS]
LAYER = [longs(5), OVER_TIME, STATE, HIDDEN, MATRIX, *PEEPHOLES, BIAS]
LABELS = [longs([[0, 0], [0, 1], [0, 2], [1, 0], [2, 0]]), ints([1, 1, 2, 3, 2]), ints([6, 3, 2])]


def values_of(op, names, inputs, attrs):
    """What an op gives, as inputs of its gradient's case."""
    from dtf.build.apply import apply_op

    with tf.Graph().as_default():
        return evaluate(*apply_op(op, **dict(zip(names, inputs, strict=True)), **attrs))


def cells():
    names = ("x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")
    for peephole in (False, True):
        attrs = {"use_peephole": peephole, "cell_clip": 0.0}
        back, name = {"use_peephole": peephole}, f"peephole-{peephole}"
        yield Case("LSTMBlockCell", CELL, attrs, RECORDED, name=name, atol=1e-5)
        made = values_of("LSTMBlockCell", names, CELL, attrs)
        grads = [floats32(2, 4), floats32(2, 4) * 2]
        yield Case("LSTMBlockCellGrad", [*CELL, *made[:6], *grads], back, RECORDED, name=name, atol=1e-5)
        yield Case("BlockLSTM", LAYER, attrs, RECORDED, name=name, atol=1e-5)
        made = values_of("BlockLSTM", ("seq_len_max", *names), LAYER, attrs)
        grads = [floats32(5, 2, 4), floats32(5, 2, 4) * 2]
        yield Case("BlockLSTMGrad", [*LAYER, *made, *grads], back, RECORDED, name=name, atol=1e-4)
        second = {key: value for key, value in attrs.items() if key != "forget_bias"}
        yield Case("BlockLSTMV2", LAYER, second, RECORDED, name=name, atol=1e-5)
        made = values_of("BlockLSTMV2", ("seq_len_max", *names), LAYER, second)
        yield Case("BlockLSTMGradV2", [*LAYER, *made, *grads], back, RECORDED, name=name, atol=1e-4)
    yield Case("LSTMBlockCell", CELL, {"cell_clip": 0.2}, RECORDED, name="clipped", atol=1e-5)
    yield Case("GRUBlockCell", GRU, {}, RECORDED, atol=1e-5)
    made = values_of("GRUBlockCell", ("x", "h_prev", "w_ru", "w_c", "b_ru", "b_c"), GRU, {})
    yield Case("GRUBlockCellGrad", [*GRU, *made[:3], floats32(2, 4)], {}, RECORDED, atol=1e-5)


def steps_past_the_longest_sequence_are_zero():
    names = ("seq_len_max", "x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")
    whole, shorter = (values_of("BlockLSTM", names, [longs(steps), *LAYER[1:]], {})[6] for steps in (5, 3))
    np.testing.assert_array_equal(shorter[:3], whole[:3])
    assert not shorter[3:].any()


def gradients_of_cells_are_those_of_their_formulas():
    """The gradient of a layer of one step is the one of the cell; both agree with differences."""
    with tf.Graph().as_default():
        holders = [tf.constant(value) for value in CELL]
        from dtf.build.apply import apply_op

        names = ("x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")
        made = apply_op("LSTMBlockCell", **dict(zip(names, holders, strict=True)), use_peephole=True, cell_clip=0.0)
        cell = evaluate(*tf.gradients(made.h, holders))
        layer_inputs = {"seq_len_max": np.int64(1), "x": tf.expand_dims(holders[0], 0)}
        layer_inputs |= dict(zip(names[1:], holders[1:], strict=True))
        layer = apply_op("BlockLSTM", **layer_inputs, use_peephole=True, cell_clip=0.0)
        for first, second in zip(cell, evaluate(*tf.gradients(layer.h, holders)), strict=True):
            np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-5)


def labels_that_are_too_long_are_refused():
    labels = tf.SparseTensorValue(LABELS[0][:4], LABELS[1][:4], longs([2, 3]))
    with tf.Graph().as_default():
        given = tf.SparseTensor(*(tf.constant(each) for each in labels))
        loss = tf.nn.ctc_loss(given, floats32(6, 2, 5), ints([3, 3]))
        try:
            evaluate(loss)
        except errors.InvalidArgumentError as error:
            assert "Not enough time for target transition sequence (required: 4, available: 3)" in error.message
        else:
            raise AssertionError("three labels, two of them alike, took three steps")


def the_gradient_of_the_loss_is_that_of_differences():
    inputs = doubles(6, 3, 5)
    with tf.Graph().as_default():
        holder = tf.placeholder(tf.float64, inputs.shape)
        given = tf.SparseTensor(tf.constant(LABELS[0]), tf.constant(LABELS[1]), tf.constant(longs([3, 3])))
        loss = tf.nn.ctc_loss(given, holder, LABELS[2]) * np.array([1.0, 2.0, 3.0])
        (computed,) = evaluate(*tf.gradients(loss, holder), feeds={holder: inputs})
        for index in [(0, 0, 1), (2, 1, 4), (5, 0, 2), (1, 2, 0)]:
            moved = [inputs.copy(), inputs.copy()]
            moved[0][index] += 1e-5
            moved[1][index] -= 1e-5
            up, down = (evaluate(loss, feeds={holder: each})[0].sum() for each in moved)
            np.testing.assert_allclose(computed[index], (up - down) / 2e-5, rtol=1e-5, atol=1e-6)


CASES = [
    Case("CTCLoss", run=the_gradient_of_the_loss_is_that_of_differences, name="gradient"),
    *cells(),
    Case("BlockLSTM", run=steps_past_the_longest_sequence_are_zero, name="shorter"),
    Case("BlockLSTM", run=gradients_of_cells_are_those_of_their_formulas, name="gradients"),
    *(
        Case("CTCLoss", [doubles(6, 3, 5), *LABELS], attrs, RECORDED, name=name)
        for name, attrs in (
            ("", {}),
            ("collapsed", {"preprocess_collapse_repeated": True}),
            ("unmerged", {"ctc_merge_repeated": False}),
        )
    ),
    Case("CTCLoss", run=labels_that_are_too_long_are_refused, name="too_long"),
    *(
        Case(
            "CTCBeamSearchDecoder", [floats32(6, 3, 4), ints(lengths)],
            {"beam_width": width, "top_paths": paths, "merge_repeated": merge}, RECORDED, name=f"{width}",
            vary=Vary(odd_values=False, fixed_attrs=("beam_width", "top_paths")),
        )
        for width, paths, merge, lengths in (
            (1, 1, True, [6, 4, 0]), (3, 2, True, [6, 4, 2]), (20, 3, False, [6, 4, 2]), (100, 1, True, [6, 4, 0])
        )
    ),
    Case("CTCGreedyDecoder", [floats32(6, 3, 3), ints([6, 3, 0])], {}, RECORDED),
    Case("CTCGreedyDecoder", [floats32(6, 3, 3), ints([6, 3, 0])], {"merge_repeated": True}, RECORDED, name="merged"),
]
