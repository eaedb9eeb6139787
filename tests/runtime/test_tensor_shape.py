"""Static shapes: what is known, what merges, what is refused."""

from __future__ import annotations

import pickle

import pytest

from dtf.wire.tensor_shape import Dimension, TensorShape, as_shape, unknown_shape


@pytest.mark.parametrize(
    ("dims", "text", "rank", "elements"),
    [
        ([], "()", 0, 1),
        ([3], "(3,)", 1, 3),
        (3, "(3,)", 1, 3),
        ((2, None), "(2, ?)", 2, None),
        ([Dimension(2), Dimension(None)], "(2, ?)", 2, None),
        (None, "<unknown>", None, None),
        (TensorShape([0, 5]), "(0, 5)", 2, 0),
    ],
    ids=repr,
)
def test_what_a_shape_is_made_of(dims, text, rank, elements):
    shape = TensorShape(dims)
    assert (str(shape), shape.rank, shape.ndims, shape.num_elements()) == (text, rank, rank, elements)
    assert shape.is_fully_defined() == (elements is not None)
    assert TensorShape(shape.as_proto()) == shape == pickle.loads(pickle.dumps(shape)) == as_shape(shape)
    assert hash(shape) == hash(TensorShape(shape))
    assert bool(shape) == (rank is not None)


MERGES = [
    ([1, None], [None, 2], [1, 2]),
    (None, [1], [1]),
    ([1], None, [1]),
    ([1, 2], [2, 2], ValueError),
    ([1, 2], [2], ValueError),
]


@pytest.mark.parametrize(("left", "right", "merged"), MERGES, ids=repr)
def test_merging(left, right, merged):
    compatible = merged is not ValueError
    assert TensorShape(left).is_compatible_with(right) == compatible
    if compatible:
        assert TensorShape(left).merge_with(right).as_list() == merged
    else:
        with pytest.raises(ValueError, match=r"Shapes \(1, 2\) and \(2.*\) are not compatible"):
            TensorShape(left).merge_with(right)
        with pytest.raises(ValueError, match="are incompatible"):
            TensorShape(left).assert_is_compatible_with(right)


def test_indexing_gives_dimensions_and_slices_give_shapes():
    shape = TensorShape([1, None, 3])
    assert shape[0].value == 1 and shape[1].value is None and shape[-1] == 3
    assert shape[1:].as_list() == [None, 3]
    assert [dim.value for dim in shape] == [1, None, 3] and len(shape) == 3
    unknown = unknown_shape()
    assert unknown[0].value is None and unknown[1:3].as_list() == [None, None] and unknown[1:].rank is None
    with pytest.raises(IndexError):
        shape[5]


def test_ranks():
    shape = TensorShape([1, 2])
    assert shape.with_rank(2) is shape.with_rank_at_least(2) is shape.with_rank_at_most(2) is shape
    assert TensorShape(None).with_rank(2).as_list() == [None, None]
    for call, words in [
        (lambda: shape.with_rank(3), "must have rank 3"),
        (lambda: shape.with_rank_at_least(3), "must have rank at least 3"),
        (lambda: shape.with_rank_at_most(1), "must have rank at most 1"),
        (lambda: shape.assert_has_rank(1), "must have rank 1"),
        (lambda: shape.assert_same_rank([1]), "must have the same rank"),
        (lambda: TensorShape([None]).assert_is_fully_defined(), "is not fully defined"),
        (lambda: TensorShape(None).as_list(), "not defined on an unknown"),
        (lambda: len(TensorShape(None)), "unknown rank"),
        (lambda: list(TensorShape(None)), "unknown rank"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()


def test_concatenation_and_narrowing():
    assert (TensorShape([1]) + [None, 3]).as_list() == [1, None, 3] == ([1] + TensorShape([None, 3])).as_list()
    assert TensorShape([1]).concatenate(None).rank is None
    assert TensorShape([1, 2]).most_specific_compatible_shape([1, 3]).as_list() == [1, None]


def test_dimensions_compute_with_what_is_known():
    assert Dimension(3) + 2 == 5 and 7 - Dimension(3) == 4 and Dimension(3) * Dimension(2) == 6
    assert Dimension(7) // 2 == 3 and Dimension(7) % 4 == 3 and int(Dimension(3)) == 3
    assert (Dimension(3) + None).value is None and (2 * Dimension(None)).value is None
    assert (Dimension(None) == 3) is None and (Dimension(3) < Dimension(None)) is None
    assert Dimension(3) < 4 and Dimension(3) >= 3 and list(range(Dimension(2))) == [0, 1]
    assert Dimension(None).merge_with(3).value == 3
    with pytest.raises(ValueError, match="Dimensions 3 and 4 are not compatible"):
        Dimension(3).merge_with(4)
    with pytest.raises(TypeError, match="please use //"):
        Dimension(3) / 2


@pytest.mark.parametrize(
    ("dims", "error"), [(-1, ValueError), ([-5], ValueError), ("ab", TypeError), ([1.0], TypeError)]
)
def test_what_is_no_shape_raises(dims, error):
    with pytest.raises(error):
        TensorShape(dims)
