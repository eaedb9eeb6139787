"""Ragged tensors: rows of different lengths, made, fed, sliced, joined, reduced and run in branches and loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dtf as tf
from dtf.wire.errors import InvalidArgumentError

ROWS = [[1, 2], [], [3]]
DEEP = [[[1, 2]], [], [[3], [4, 5]]]


def run(value: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        found = session.run(value, feeds)
    return found.to_list() if hasattr(found, "to_list") else np.asarray(found).tolist()


@pytest.fixture(autouse=True)
def _a_graph_of_its_own() -> Any:
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize(
    ("made", "rows"),
    [
        (lambda: tf.ragged.constant(ROWS), ROWS),
        (lambda: tf.ragged.constant(DEEP), DEEP),
        (lambda: tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 2, 3]), ROWS),
        (lambda: tf.RaggedTensor.from_row_lengths([1, 2, 3], [2, 0, 1]), ROWS),
        (lambda: tf.RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2]), ROWS),
        (lambda: tf.RaggedTensor.from_row_starts([1, 2, 3], [0, 2, 2]), ROWS),
        (lambda: tf.RaggedTensor.from_row_limits([1, 2, 3], [2, 2, 3]), ROWS),
        (lambda: tf.RaggedTensor.from_tensor([[1, 2, 0], [0, 0, 0], [3, 0, 0]], padding=0), ROWS),
        (lambda: tf.RaggedTensor.from_tensor([[1, 2, 0], [0, 0, 0], [3, 0, 0]], lengths=[2, 0, 1]), ROWS),
        (lambda: tf.RaggedTensor.from_sparse(tf.ragged.constant(ROWS).to_sparse()), ROWS),
        (lambda: tf.RaggedTensor.from_uniform_row_length([1, 2, 3, 4], 2), [[1, 2], [3, 4]]),
    ],
)
def test_a_ragged_tensor_has_the_rows_it_was_made_of(made: Any, rows: Any) -> None:
    assert run(made()) == rows


def test_a_ragged_placeholder_is_fed_with_a_ragged_value() -> None:
    placeholder = tf.ragged.placeholder(tf.int64, 2)
    value = tf.ragged.constant_value(DEEP)
    assert run(placeholder * 2, {placeholder: value}) == [[[2, 4]], [], [[6], [8, 10]]]
    with pytest.raises(TypeError, match="RaggedTensorValue"):
        run(placeholder, {placeholder: [[1]]})


def test_rows_that_do_not_fit_their_values_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="row_splits must end"):
        run(tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 1, 2]))
    with pytest.raises(ValueError, match="may not be empty"):
        tf.RaggedTensor.from_row_splits([1], [])
    with pytest.raises(TypeError, match="to_tensor"):
        tf.convert_to_tensor(tf.ragged.constant(ROWS))


@pytest.mark.parametrize(
    ("item", "rows"),
    [
        (np.s_[0], [1, 2]), (np.s_[-1], [3]), (np.s_[1:], [[], [3]]), (np.s_[::-1], [[3], [], [1, 2]]),
        (np.s_[:, :1], [[1], [], [3]]), (np.s_[:, -1:], [[2], [], [3]]), (np.s_[:, ::-1], [[2, 1], [], [3]]),
        (np.s_[0, 1], 2), (np.s_[None], [[[1, 2], [], [3]]]), (np.s_[..., None], [[[1], [2]], [], [[3]]]),
    ],
)  # fmt: skip
def test_slices_give_the_rows_that_python_lists_give(item: Any, rows: Any) -> None:
    assert run(tf.ragged.constant(ROWS)[item]) == rows


def test_functions_of_elements_keep_the_rows_and_broadcast() -> None:
    ragged = tf.ragged.constant(ROWS)
    assert run(ragged * [[10], [20], [30]]) == [[10, 20], [], [90]]
    assert run(tf.constant([[10], [20], [30]]) + ragged) == [[11, 12], [], [33]]
    assert run(ragged > 1) == [[False, True], [], [True]]
    assert run(tf.strings.join(["p", tf.ragged.constant([["x"], ["y", "z"]])], "-"))[1] == [b"p-y", b"p-z"]
    with pytest.raises(InvalidArgumentError, match="identical ragged splits"):
        run(ragged + tf.ragged.constant([[1, 2], [], [3, 4]]))


def test_reductions_joins_and_gathers_act_on_rows() -> None:
    ragged, deep = tf.ragged.constant(ROWS), tf.ragged.constant(DEEP)
    assert run(tf.reduce_sum(ragged, 1)) == [3, 0, 3]
    assert run(tf.reduce_sum(ragged, 0)) == [4, 2]
    assert run(tf.reduce_sum(deep, [1, 2])) == [3, 0, 12]
    assert run(tf.reduce_mean(tf.cast(deep, tf.float32), [0, 1])) == pytest.approx([8 / 3, 3.5])
    assert run(tf.concat([ragged, tf.ragged.constant([[4], [5], []])], 1)) == [[1, 2, 4], [5], [3]]
    assert run(tf.concat([ragged, ragged], 0)) == ROWS + ROWS
    assert run(tf.stack([ragged, ragged], 1)) == [[row, row] for row in ROWS]
    assert run(tf.gather(ragged, [2, 0])) == [[3], [1, 2]]
    assert run(tf.gather([10, 20, 30], tf.ragged.constant([[2], [0, 0]]))) == [[30], [10, 10]]
    assert run(tf.tile(ragged, [1, 2])) == [row * 2 for row in ROWS]
    assert run(tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]])) == [[1], [3, 4]]


def test_gradients_flow_through_rows() -> None:
    values = tf.constant([1.0, 2.0, 3.0])
    ragged = tf.RaggedTensor.from_row_splits(values, [0, 2, 2, 3])
    total = tf.reduce_sum(tf.square(tf.reduce_sum(ragged, 1)))
    assert run(tf.gradients(total, values)[0]) == [6.0, 6.0, 6.0]


def test_ragged_tensors_pass_through_branches_and_loops() -> None:
    ragged = tf.ragged.constant(ROWS)
    assert run(tf.cond(tf.constant(True), lambda: ragged + 1, lambda: ragged)) == [[2, 3], [], [4]]
    assert run(tf.while_loop(lambda i, _: i < 3, lambda i, r: (i + 1, r + 1), [0, ragged])[1]) == [[4, 5], [], [6]]


def test_texts_become_rows_of_parts() -> None:
    assert run(tf.strings.split(["a b", "c"], result_type="RaggedTensor")) == [[b"a", b"b"], [b"c"]]
    assert run(tf.strings.bytes_split(["ab", "c"])) == [[b"a", b"b"], [b"c"]]
    assert run(tf.strings.unicode_decode(["aé", "b"], "UTF-8")) == [[97, 233], [98]]
    assert run(tf.strings.unicode_encode(tf.ragged.constant([[97, 233], [98]]), "UTF-8")) == ["aé".encode(), b"b"]
    assert run(tf.strings.unicode_split("aé", "UTF-8")) == [b"a", "é".encode()]
    assert run(tf.strings.ngrams(tf.ragged.constant([["a", "b", "c"], ["d"]]), 2)) == [[b"a b", b"b c"], []]


def test_descriptions_say_which_values_fit() -> None:
    ragged = tf.ragged.constant(ROWS)
    spec = tf.type_spec_from_value(ragged)
    assert spec == tf.RaggedTensorSpec([3, None], tf.int32, 1)
    assert spec.is_compatible_with(ragged) and not tf.TensorSpec([3]).is_subtype_of(spec)
    assert spec.is_subtype_of(tf.RaggedTensorSpec([None, None], tf.int32, 1))
    wide = tf.TensorSpec([2, 3]).most_specific_compatible_type(tf.TensorSpec([4, 3]))
    assert wide == tf.TensorSpec([None, 3])
