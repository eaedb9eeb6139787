"""Every shape rule takes inputs of any rank, or refuses them by a ValueError of its own."""

from __future__ import annotations

import random

import pytest

import dtf as tf
from dtf.wire.pb import graph_pb2
from tests.fuzz.targets.server import graphs

SIZES = (-1, 0, 1, 2, 3, 5)
RANKS = (None, 0, 1, 2, 3, 4, 5)


def with_ranks(graph_def: graph_pb2.GraphDef, chance: random.Random, rank: int | None) -> graph_pb2.GraphDef:
    """The graph with most of its constants as placeholders, mostly of `rank`."""
    changed = graph_pb2.GraphDef()
    changed.CopyFrom(graph_def)
    for node in changed.node:
        if node.op != "Const" or chance.random() < 0.25:
            continue
        dtype = node.attr["dtype"].type
        node.op = "Placeholder"
        node.attr.clear()
        node.attr["dtype"].type = dtype
        own = rank if chance.random() < 0.6 else chance.choice(RANKS)
        shape = node.attr["shape"].shape
        shape.unknown_rank = own is None
        for _ in range(own or 0):
            shape.dim.add().size = chance.choice(SIZES)
    return changed


@pytest.mark.slow
def test_shape_rules_must_take_or_refuse_inputs_of_any_rank():
    chance = random.Random(5)
    wrong: dict[str, str] = {}
    for data in graphs():
        graph_def = graph_pb2.GraphDef.FromString(data)
        for rank in RANKS:
            changed = with_ranks(graph_def, chance, rank)
            try:
                with tf.Graph().as_default():
                    tf.import_graph_def(changed, name="")
            except ValueError as error:
                causes = [error, error.__cause__, error.__cause__ and error.__cause__.__cause__]
                odd = [each for each in causes if each is not None and not isinstance(each, ValueError)]
                if odd:
                    wrong[graph_def.node[-1].op] = repr(odd[0])
    assert wrong == {}


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda x: tf.reverse_sequence(x([]), x([2], tf.int32), 1, batch_axis=0), "batch_dim must be < input rank"),
        (lambda x: tf.reverse_sequence(x([3, 3]), x([3], tf.int32), 2), "seq_dim must be < input rank"),
        (lambda x: tf.space_to_batch_nd(x([4]), [2, 2], [[0, 0], [0, 0]]), "Shape must be at least rank 3"),
        (lambda x: tf.slice(x([4]), [0, 0], [1, 1]), "Shape must be rank 2 but is rank 1"),
        (lambda x: tf.slice(x([4, 4]), [0], [1]), "Shape must be rank 1 but is rank 2"),
    ],
    ids=["scalar sequence", "sequence axis", "blocks", "slice", "short slice"],
)
def test_a_wrong_rank_must_be_told_in_words(build, words):
    def placeholder(shape, dtype=tf.float32):
        return tf.placeholder(dtype, shape)

    with tf.Graph().as_default(), pytest.raises(ValueError, match=words):
        build(placeholder)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda x: tf.concat([x([1, 2]), x([2, 3])], 1), r"Dimension 0 in both shapes must be equal, but are 1 and 2"),
        (lambda x: tf.stack([x([2]), x([1, 2])]), "Shapes must be equal rank, but are 1 and 2"),
        (lambda x: tf.concat([x([2]), x([2])], 2), "Shape must be at least rank 3 but is rank 1"),
        (lambda x: tf.fill(x([], tf.int32), 1), "Shape must be rank 1 but is rank 0"),
        (lambda x: tf.strings.regex_replace("a", x([1], tf.string), "b"), "Shape must be rank 0 but is rank 1"),
        (lambda x: tf.squeeze(x([1, 2]), [2]), r"squeeze_dims\[0\] not in \[-2,2\)\."),
        (lambda x: tf.split(x([3]), 3, axis=2), r"given by scalar input 2 must be in range \[-1, 1\)"),
        (lambda x: tf.reshape(x([7]), [-1, 2]), "Dimension size must be evenly divisible by 2 but is 7"),
        (lambda x: tf.matmul(x([2]), x([None, 3])), r"with input shapes: \[2\], \[\?,3\]\.$"),
    ],
)
def test_misfits_are_worded_as_tensorflow_words_them(build, words):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=words):
        build(lambda shape, dtype=tf.float32: tf.placeholder(dtype, shape))
