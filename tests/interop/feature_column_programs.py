"""The same feature columns in dtf and in TensorFlow: values, variables, gradients, how Examples are read.

    python -m tests.interop.feature_column_programs tensorflow.compat.v1 FILE    (or dtf)

writes arrays into FILE (npz) and prints the names of the variables.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile

import numpy as np


def columns(tf):
    """Dense columns, and what a linear model takes beside them."""
    fc = tf.feature_column
    age = fc.numeric_column("age")
    pair = fc.numeric_column("pair", shape=(2,), default_value=(1.5, 2.5), normalizer_fn=lambda x: (x - 1.0) / 2.0)
    whole = fc.numeric_column("whole", shape=2, dtype=tf.int64)
    number = fc.categorical_column_with_identity("number", 6)
    bounded = fc.categorical_column_with_identity("bounded", 4, default_value=3)
    town = fc.categorical_column_with_vocabulary_list("town", ["Bonn", "Ulm", "Kiel"])
    year = fc.categorical_column_with_vocabulary_list("year", [1999, 2001], num_oov_buckets=3)
    other = fc.categorical_column_with_vocabulary_list("other", ["a", "b"], default_value=1)
    name = fc.categorical_column_with_hash_bucket("name", 7)
    code = fc.categorical_column_with_hash_bucket("code", 5, tf.int64)
    buckets = fc.bucketized_column(age, [18, 30.5, 65])
    twice = fc.bucketized_column(whole, [0, 10])
    dense = [age, pair, whole, buckets, twice]
    ones = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]

    def rows(width):
        return lambda shape, dtype=None, partition_info=None: tf.constant(
            np.outer(ones[: shape[0]], np.arange(1, width + 1)), tf.float32
        )

    wrapped = [
        fc.indicator_column(number),
        fc.indicator_column(year),
        fc.indicator_column(name),
        fc.embedding_column(town, 2, initializer=rows(2)),
        fc.embedding_column(bounded, 3, "sqrtn", rows(3)),
        fc.embedding_column(other, 2, "sum", rows(2)),
        fc.embedding_column(code, 1, initializer=rows(1)),
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
        file.write("a\nb\n")
    lines = fc.categorical_column_with_vocabulary_file("other", file.name, num_oov_buckets=2)
    weighted = fc.weighted_categorical_column(year, "weight")
    crossed = [
        fc.crossed_column(["name", "town"], 30),
        fc.crossed_column([twice, buckets, town], 50),
        fc.crossed_column([fc.crossed_column(["name", "town"], 5), bounded], 100, hash_key=5),
    ]
    wrapped += [
        *(fc.indicator_column(each) for each in crossed),
        fc.embedding_column(weighted, 2, "mean", rows(2)),
        fc.indicator_column(fc.weighted_categorical_column(town, "town_weight")),
        fc.indicator_column(lines),
        *fc.shared_embedding_columns([bounded, fc.categorical_column_with_identity("number", 4, 0)], 2, "sum", rows(2)),
    ]
    return dense, wrapped, [number, bounded, town, year, other, name, code, *crossed, weighted]


def batch(tf):
    """Features of four examples: dense ones of rank 1 and 2, and sparse ones."""
    sparse = tf.SparseTensor
    return {
        "age": tf.constant([17.0, 18.0, 40.0, 99.0]),
        "pair": tf.constant([[1.0, 2], [3, 4], [5, 6], [7, 8]]),
        "whole": tf.constant([[-1, 3], [0, 10], [11, 4], [9, 9]], tf.int64),
        "number": tf.constant([[1, 5], [-1, 2], [3, 3], [-1, -1]], tf.int64),
        "bounded": tf.constant([0, 2, 9, 3], tf.int64),
        "town": sparse([[0, 0], [0, 1], [2, 0], [3, 0]], ["Ulm", "Kiel", "Rom", "Bonn"], [4, 2]),
        "year": tf.constant([[1999], [2000], [2001], [1848]], tf.int64),
        "other": tf.constant([["a", "b"], ["c", ""], ["", ""], ["b", "b"]]),
        "name": tf.constant(["Ada", "Max", "", "Ada"]),
        "weight": tf.constant([[0.5], [2.0], [4.0], [1.0]]),
        "town_weight": sparse([[0, 0], [0, 1], [2, 0], [3, 0]], [1.0, 2.0, 3.0, 4.0], [4, 2]),
        "code": sparse([[0, 0], [1, 0], [1, 1], [3, 2]], tf.constant([7, 8, 9, 7], tf.int64), [4, 3]),
    }


def results(tf) -> tuple[dict[str, np.ndarray], list[str]]:
    found: dict[str, np.ndarray] = {}
    names = []
    for combiner in ("sum", "mean", "sqrtn"):
        with tf.Graph().as_default():
            arrays, variables = results_of(tf, combiner)
            found |= {f"{combiner}: {key}": value for key, value in arrays.items()}
            names += variables
    return found, names


def results_of(tf, combiner):
    dense, wrapped, categorical = columns(tf)
    inputs = tf.feature_column.input_layer(batch(tf), [*wrapped, *dense])
    weighted = tf.feature_column.linear_model(batch(tf), [*dense, *categorical], units=2, sparse_combiner=combiner)
    variables = tf.trainable_variables()
    scale = tf.constant(np.arange(1, inputs.shape[1].value + 1), tf.float32)
    loss = tf.reduce_sum(tf.square(inputs) * scale) + tf.reduce_sum(tf.sin(weighted))
    gradients = [tf.convert_to_tensor(gradient) for gradient in tf.gradients(loss, variables)]
    parsed = tf.parse_example([examples(tf)], tf.feature_column.make_parse_example_spec([*dense, *categorical]))
    found = {}
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        for index, variable in enumerate(variables):
            if "linear" in variable.name:
                shape = variable.shape.as_list()
                variable.load(np.random.RandomState(index).normal(0, 0.1, shape), session)
        found["inputs"], found["weighted"] = session.run([inputs, weighted])
        for variable, gradient in zip(variables, session.run(gradients), strict=True):
            found[f"gradient of {variable.op.name}"] = gradient
        for key, value in session.run(parsed).items():
            found[f"parsed {key}"] = np.array(value.values if hasattr(value, "values") else value).astype(str)
    return found, [variable.op.name for variable in variables]


def examples(tf):
    """A serialized Example that lacks what has a default or may be missing."""
    feature, train = tf.train.Feature, tf.train
    return train.Example(
        features=train.Features(
            feature={
                "age": feature(float_list=train.FloatList(value=[3.5])),
                "whole": feature(int64_list=train.Int64List(value=[1, 2])),
                "number": feature(int64_list=train.Int64List(value=[1, 2, 3])),
                "town": feature(bytes_list=train.BytesList(value=[b"Ulm"])),
            }
        )
    ).SerializeToString()


def main(runtime: str, path: str) -> None:
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    tf = importlib.import_module(runtime)
    tf.disable_v2_behavior()
    arrays, names = results(tf)
    np.savez(path, **arrays)
    print(json.dumps(names))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
