"""Cases of the ops that parse Examples and SequenceExamples."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import dtf as tf
from dtf.wire import errors
from dtf.wire.pb import example_pb2
from tests.runtime.op_cases import RECORDED, Case
from tests.runtime.op_cases.array import evaluate, longs, strings


def feature(values: list[Any]) -> example_pb2.Feature:
    if values and isinstance(values[0], bytes):
        return example_pb2.Feature(bytes_list=example_pb2.BytesList(value=values))
    if values and isinstance(values[0], float):
        return example_pb2.Feature(float_list=example_pb2.FloatList(value=values))
    return example_pb2.Feature(int64_list=example_pb2.Int64List(value=values))


def features(given: dict[str, list[Any]]) -> example_pb2.Features:
    return example_pb2.Features(feature={key: feature(values) for key, values in given.items()})


def example(**given: list[Any]) -> bytes:
    return example_pb2.Example(features=features(given)).SerializeToString()


def sequence(context: dict[str, list[Any]], **lists: list[list[Any]]) -> bytes:
    made = example_pb2.SequenceExample(context=features(context))
    for key, steps in lists.items():
        made.feature_lists.feature_list[key].feature.extend([feature(step) for step in steps])
    return made.SerializeToString()


EXAMPLES = strings([
    example(a=[1, 2, 3], b=[0.5, 1.5], c=[b"x"], d=[7]),
    example(b=[2.5, 3.5], c=[b"y", b"z"], d=[8, 9]),
    example(a=[4], b=[-1.0, 0.0], d=[]),
])  # fmt: skip
SEQUENCES = strings([
    sequence(
        {"n": [5], "w": [b"p", b"q"], "r": [b"k", b"l"]},
        s=[[1, 2], [], [3]], v=[[7], [8, 9]], t=[[0.5, 1.0], [1.5, 2.0]],
    ),
    sequence({"w": [b"r"]}, s=[[4]], t=[[2.5, 3.0]]),
])  # fmt: skip
NO_NAMES, KEY = strings(np.empty(0, object)), strings
DENSE_TYPES = {"Tdense": [tf.float32, tf.int64, tf.int64], "dense_shapes": [[2], [1], [None]]}
TYPES = {"sparse_types": [tf.int64, tf.string], **DENSE_TYPES}
DEFAULTS = [np.zeros(0, np.float32), longs([-1]), longs(0)]
DENSE = [strings(b"b"), strings(b"e"), strings(b"d")]
SEQUENCE_TYPES = {
    "context_sparse_types": [tf.string],
    "Tcontext_dense": [tf.int64],
    "context_dense_shapes": [[]],
    "feature_list_sparse_types": [tf.int64],
    "feature_list_dense_types": [tf.float32, tf.int64],
    "feature_list_dense_shapes": [[2], [1]],
}
SEQUENCE_KEYS = {
    "context_sparse_keys": ["w"],
    "context_dense_keys": ["n"],
    "feature_list_sparse_keys": ["s"],
    "feature_list_dense_keys": ["t", "u"],
    "feature_list_dense_missing_assumed_empty": ["u"],
}
COUNTS = {"Ncontext_sparse": 1, "Nfeature_list_sparse": 1, "Nfeature_list_dense": 2}


def features_come_by_their_keys():
    wanted = {
        "a": tf.VarLenFeature(tf.int64),
        "b": tf.FixedLenFeature([2], tf.float32),
        "e": tf.FixedLenFeature([], tf.int64, default_value=-1),
        "d": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
        "ab": tf.SparseFeature("a", "a", tf.int64, 10),
    }
    with tf.Graph().as_default():
        made = tf.parse_example(EXAMPLES, wanted)
        a, b, e, d, ab = evaluate(made["a"].values, made["b"], made["e"], made["d"], made["ab"].indices)
        assert made["b"].shape.as_list() == [3, 2]
        single = tf.parse_single_example(EXAMPLES[0], {"b": wanted["b"], "a": wanted["a"]})
        assert evaluate(single["b"], single["a"].values)[1].tolist() == [1, 2, 3]
    assert a.tolist() == [1, 2, 3, 4] and b.shape == (3, 2) and e.tolist() == [-1, -1, -1]
    assert d.tolist() == [[7, 0], [8, 9], [0, 0]] and ab.tolist() == [[0, 1], [0, 2], [0, 3], [2, 4]]


def sequences_come_by_their_keys():
    context = {"n": tf.FixedLenFeature([], tf.int64, 0), "w": tf.VarLenFeature(tf.string)}
    lists = {"s": tf.VarLenFeature(tf.int64), "t": tf.FixedLenSequenceFeature([2], tf.float32)}
    with tf.Graph().as_default():
        of_context, of_lists = tf.parse_single_sequence_example(SEQUENCES[0], context, lists)
        n, words, steps = evaluate(of_context["n"], of_context["w"].values, of_lists["t"])
        assert int(n) == 5 and words.tolist() == [b"p", b"q"] and steps.tolist() == [[0.5, 1.0], [1.5, 2.0]]
        _, many, lengths = tf.io.parse_sequence_example(SEQUENCES, context, lists)
        padded, counts, shape = evaluate(many["t"], lengths["t"], many["s"].dense_shape)
        assert padded.shape == (2, 2, 2) and counts.tolist() == [2, 1] and shape.tolist() == [2, 3, 2]


def what_is_wrong_is_named():
    for text, wanted in (
        ("Feature: c (data type: string) is required but could not be found.", tf.FixedLenFeature([1], tf.string)),
        ("Data types don't match. Data type: string but expected type: int64", tf.VarLenFeature(tf.int64)),
    ):
        with tf.Graph().as_default():
            made = tf.parse_example(EXAMPLES if "required" not in text else EXAMPLES[2:], {"c": wanted})["c"]
            try:
                evaluate(made if isinstance(made, tf.Tensor) else made.values)
            except errors.InvalidArgumentError as error:
                assert text in error.message, error.message
            else:
                raise AssertionError(text)


CASES = [
    Case(
        "ParseExample",
        [EXAMPLES, NO_NAMES, [strings(b"a"), strings(b"c")], DENSE, DEFAULTS],
        TYPES,
        RECORDED,
    ),
    Case("ParseExample", run=features_come_by_their_keys, name="features"),
    Case("ParseExample", run=what_is_wrong_is_named, name="errors"),
    Case(
        "ParseExampleV2",
        [EXAMPLES, NO_NAMES, strings([b"a", b"c"]), strings([b"b", b"e"]), strings([b"d"]), DEFAULTS[:2]],
        {
            "Tdense": [tf.float32, tf.int64], "dense_shapes": [[2], [1]], "num_sparse": 2,
            "sparse_types": TYPES["sparse_types"], "ragged_value_types": [tf.int64], "ragged_split_types": [tf.int32],
        },
        RECORDED,
    ),
    Case(
        "ParseExampleV2",
        [strings(EXAMPLES[0]), strings(b""), strings([b"a", b"c"]), strings([b"b", b"e", b"d"]), NO_NAMES, DEFAULTS],
        TYPES | {"num_sparse": 2, "ragged_value_types": [], "ragged_split_types": []},
        RECORDED,
        name="single",
    ),
    Case(
        "ParseSingleExample",
        [strings(EXAMPLES[0]), DEFAULTS],
        TYPES | {"num_sparse": 2, "sparse_keys": ["a", "c"], "dense_keys": ["b", "e", "d"]},
        RECORDED,
    ),
    Case("ParseSequenceExample", [SEQUENCES, NO_NAMES, [longs(-3)]],
         SEQUENCE_TYPES | SEQUENCE_KEYS | COUNTS | {"Ncontext_dense": 1}, RECORDED),
    Case("ParseSequenceExample", run=sequences_come_by_their_keys, name="features"),
    Case(
        "ParseSequenceExampleV2",
        [
            SEQUENCES, NO_NAMES, strings([b"w"]), strings([b"n"]), strings([b"r"]), strings([b"s"]),
            strings([b"t", b"u"]), strings([b"v"]), np.array([False, True]), [longs(-3)],
        ],
        SEQUENCE_TYPES | COUNTS | {
            "context_ragged_value_types": [tf.string], "context_ragged_split_types": [tf.int64],
            "feature_list_ragged_value_types": [tf.int64], "feature_list_ragged_split_types": [tf.int32],
        },
        RECORDED,
    ),
    Case(
        "ParseSingleSequenceExample",
        [
            strings(SEQUENCES[0]), strings([b"u"]), [strings(b"w")], [strings(b"n")], [strings(b"s")],
            [strings(b"t"), strings(b"u")], [longs(-3)], strings(b""),
        ],
        SEQUENCE_TYPES,
        RECORDED,
    ),
    Case(
        "DecodeJSONExample",
        [strings([json.dumps({"features": {"feature": {"a": {"int64List": {"value": [5]}}}}}).encode()])],
        expect=strings([example(a=[5])]),
    ),
]  # fmt: skip
