"""Input pipelines with TensorFlow's names only: `outcomes(tf, kind, target)` gives what each gives, as plain JSON.

Each is a function of `tf` and of a folder with a few files; it makes what a step fetches. Its outcome is what the steps
gave up to the end or to an error, of which the type is told; for queues also the names of nodes that users meet.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

STEPS_MAX = 60
Program = Callable[[Any, str], Any]


def files(tf: Any, folder: str) -> None:
    Path(folder, "one.txt").write_bytes(b"1,a\n2,b\r\n3,c")
    Path(folder, "two.txt").write_bytes(b"4,d\n")
    for number in range(2):
        with tf.python_io.TFRecordWriter(f"{folder}/{number}.tfrecord") as writer:
            for record in range(3):
                feature = tf.train.Feature(int64_list=tf.train.Int64List(value=list(range(record + 1))))
                features = tf.train.Features(feature={"numbers": feature})
                writer.write(tf.train.Example(features=features).SerializeToString())
    whole = Path(folder, "0.tfrecord").read_bytes()
    Path(folder, "cut.tfrecord").write_bytes(whole[:-3])
    Path(folder, "corrupt.tfrecord").write_bytes(whole[:40] + b"?" + whole[41:])


def plain(value: Any) -> Any:
    if hasattr(value, "dense_shape"):
        return ["sparse", *map(plain, (value.indices, value.values, value.dense_shape))]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    array = np.asarray(value)
    if array.dtype.kind in "OS":
        return [each.decode("latin1") for each in array.ravel().tolist()]
    return array.tolist()


# -- datasets: each gives a dataset


def parsed(tf, folder):
    features = {"numbers": tf.VarLenFeature(tf.int64)}
    names = tf.data.Dataset.list_files(f"{folder}/[01].tfrecord", shuffle=False)
    records = names.interleave(tf.data.TFRecordDataset, cycle_length=2, block_length=1)
    return records.batch(4).map(lambda each: tf.parse_example(each, features)["numbers"])


def lines(tf, folder):
    dataset = tf.data.TextLineDataset([f"{folder}/one.txt", f"{folder}/two.txt"])
    return dataset.map(lambda line: tuple(tf.decode_csv(line, [[0], [""]])))


def branches(tf, folder):
    return tf.data.Dataset.range(5).map(lambda x: tf.cond(x > 2, lambda: x * 2, lambda: x))


def loops(tf, folder):
    def triangle(x):
        return tf.while_loop(lambda i, total: i <= x, lambda i, total: (i + 1, total + i), (x * 0, x * 0))[1]

    return tf.data.Dataset.range(5).map(triangle, num_parallel_calls=2)


def captured(tf, folder):
    factor = tf.constant([2, 3], tf.int64)
    return tf.data.Dataset.range(3).flat_map(
        lambda x: tf.data.Dataset.from_tensor_slices(factor).map(lambda y: x * y + factor[0])
    )


def structures(tf, folder):
    dataset = tf.data.Dataset.from_tensor_slices({"b": [[1, 2], [3, 4], [5, 6]], "a": ["x", "y", "z"]})
    dataset = dataset.map(lambda each: {"a": each["a"], "c": (tf.reduce_sum(each["b"]), each["b"])})
    return tf.data.Dataset.zip((dataset, tf.data.Dataset.range(10))).batch(2)


def without_errors(tf, folder):
    dataset = tf.data.Dataset.range(5).map(lambda x: tf.check_numerics(1.0 / tf.cast(x - 2, tf.float32), "bad"))
    return dataset.apply(tf.data.experimental.ignore_errors())


def windows(tf, folder):
    return tf.data.Dataset.range(9).window(3, 2, 2, True).flat_map(lambda each: each.batch(3))


def padded(tf, folder):
    dataset = tf.data.Dataset.range(1, 6).map(lambda x: (tf.fill([x], x), tf.fill([x, 1], "s")))
    return dataset.padded_batch(2, ([None], [6, 1]), (np.int64(-1), "pad"))


def simple(make: Callable[[Any, Any], Any]) -> Program:
    return lambda tf, folder: make(tf, tf.data.Dataset.range(10))


DATASETS: dict[str, Program] = {
    "parsed": parsed,
    "lines": lines,
    "branches": branches,
    "loops": loops,
    "captured": captured,
    "structures": structures,
    "without_errors": without_errors,
    "windows": windows,
    "padded": padded,
    "shuffle": simple(lambda tf, d: d.shuffle(4, seed=3).repeat(3)),
    "shuffle_once": simple(lambda tf, d: d.shuffle(20, seed=3, reshuffle_each_iteration=False).repeat(2)),
    "shuffle_and_repeat": simple(lambda tf, d: d.apply(tf.data.experimental.shuffle_and_repeat(7, 3, seed=5))),
    "shard": simple(lambda tf, d: d.shard(3, 1).concatenate(d.skip(8)).take(5)),
    "cached": simple(lambda tf, d: d.cache().batch(4, drop_remainder=True).repeat(2).prefetch(3)),
    "filtered": simple(lambda tf, d: d.filter(lambda x: tf.equal(x % 3, 0)).batch(2).unbatch()),
    "interleaved": simple(
        lambda tf, d: d.interleave(lambda x: tf.data.Dataset.range(x), 3, 2, num_parallel_calls=2)
    ),
    "map_and_batch": simple(lambda tf, d: d.apply(tf.data.experimental.map_and_batch(lambda x: (x, -x), 4))),
    "sparse": simple(lambda tf, d: d.take(3).map(lambda x: tf.SparseTensor([[x]], [x], [4])).batch(2)),
    "ends_in_a_function": simple(
        lambda tf, d: d.map(lambda x: tf.check_numerics(1.0 / tf.cast(3 - x, tf.float32), ""))
    ),
    # Bad input
    "corrupt": lambda tf, folder: tf.data.TFRecordDataset(f"{folder}/corrupt.tfrecord"),
    "cut_off": lambda tf, folder: tf.data.TFRecordDataset(f"{folder}/cut.tfrecord"),
    "no_file": lambda tf, folder: tf.data.TextLineDataset(f"{folder}/none").prefetch(2),
    "no_match": lambda tf, folder: tf.data.Dataset.list_files(f"{folder}/none*", shuffle=False),
    "odd_length": lambda tf, folder: tf.data.FixedLengthRecordDataset(f"{folder}/one.txt", 5),
    "shapes_differ": simple(lambda tf, d: d.map(lambda x: tf.fill([x], x)).batch(2)),
    "no_shard": simple(lambda tf, d: d.shard(2, tf.constant(2, tf.int64))),
    "padded_to_less": simple(lambda tf, d: d.map(lambda x: tf.fill([x], x)).padded_batch(2, [1])),
    "wrong_shape_in_the_middle": simple(lambda tf, d: d.map(lambda x: tf.reshape(tf.range(x), [-1, 2]))),
}


def dataset_outcome(tf: Any, program: Program, folder: str, target: str, one_shot: bool) -> Any:
    with tf.Graph().as_default():
        try:
            dataset = program(tf, folder)
            make = tf.data.make_one_shot_iterator if one_shot else tf.data.make_initializable_iterator
            iterator = make(dataset)
            following = iterator.get_next()
        except (TypeError, ValueError) as error:
            return [type(error).__name__]
        given: list[Any] = []
        with tf.Session(target) as session:
            try:
                if not one_shot:
                    session.run(iterator.initializer)
                while len(given) < STEPS_MAX:
                    given.append(plain(session.run(following)))
            except tf.errors.OpError as error:
                given.append(type(error).__name__)
        return given


# -- queues: each gives what to fetch


def numbers(tf: Any, count: int, **options: Any) -> Any:
    return tf.train.range_input_producer(count, num_epochs=1, shuffle=False, **options)


def rows(tf: Any) -> Any:
    return tf.train.slice_input_producer([[1, 2, 3], [4.0, 5.0, 6.0]], num_epochs=1, shuffle=False)


def read_lines(tf, folder):
    names = tf.train.string_input_producer([f"{folder}/one.txt", f"{folder}/two.txt"], num_epochs=1, shuffle=False)
    _, line = tf.TextLineReader().read(names)
    return tf.train.batch(tf.decode_csv(line, [[0], [""]]), 3, allow_smaller_final_batch=True)


def read_examples(tf, folder):
    names = tf.train.string_input_producer([f"{folder}/0.tfrecord"], num_epochs=2)
    _, record = tf.TFRecordReader().read(names)
    numbers = tf.parse_single_example(record, {"numbers": tf.VarLenFeature(tf.int64)})["numbers"]
    return tf.train.batch([numbers], 3)


def kept(tf, folder):
    number = numbers(tf, 6).dequeue()
    return tf.train.maybe_batch([number], tf.equal(number % 2, 0), 2, allow_smaller_final_batch=True)


def kept_of_many(tf, folder):
    many = numbers(tf, 6).dequeue_many(6)
    keep = tf.equal(many % 2, 0)
    return tf.train.maybe_batch([many], keep, 2, enqueue_many=True, allow_smaller_final_batch=True)


def grown(tf, folder):
    number = numbers(tf, 5).dequeue()
    return tf.train.batch([tf.fill([number], number), number], 2, dynamic_pad=True)


def joined(tf, folder):
    sources = [[numbers(tf, 1, name=f"from_{index}").dequeue()] for index in range(2)]
    return tf.train.batch_join(sources, 2)


def many_of_a_tensor(tf, folder):
    return tf.train.batch([numbers(tf, 5).dequeue_many(5)], 2, enqueue_many=True, allow_smaller_final_batch=True)


def shuffled_sum(tf, folder):
    return tf.reduce_sum(tf.train.shuffle_batch([numbers(tf, 6).dequeue()], 6, 10, 2, seed=1))


QUEUES: dict[str, Program] = {
    "strings": lambda tf, folder: tf.train.string_input_producer(["a", "b"], num_epochs=2, shuffle=False).dequeue(),
    "numbers": lambda tf, folder: numbers(tf, 3, name="mine").dequeue(),
    "rows": lambda tf, folder: rows(tf),
    "batches": lambda tf, folder: tf.train.batch(rows(tf), 2),
    "last_batch": lambda tf, folder: tf.train.batch(rows(tf), 2, capacity=5, allow_smaller_final_batch=True),
    "dictionary": lambda tf, folder: tf.train.batch({"x": numbers(tf, 4).dequeue()}, 2, name="mine"),
    "read_lines": read_lines,
    "read_examples": read_examples,
    "kept": kept,
    "kept_of_many": kept_of_many,
    "grown": grown,
    "joined": joined,
    "many_of_a_tensor": many_of_a_tensor,
    "shuffled_sum": shuffled_sum,
    "matched": lambda tf, folder: tf.size(tf.train.match_filenames_once(f"{folder}/*.txt"))
    + 0 * numbers(tf, 1).dequeue(),
    # Bad input
    "no_strings": lambda tf, folder: tf.train.string_input_producer([]).dequeue(),
    "no_strings_in_a_tensor": lambda tf, folder: tf.train.string_input_producer(tf.constant([], tf.string)).dequeue(),
    "no_epochs": lambda tf, folder: tf.train.limit_epochs(1, 0),
    "no_rank": lambda tf, folder: tf.train.batch([tf.placeholder(tf.int32)], 2),
    "no_shape": lambda tf, folder: tf.train.batch([tf.placeholder(tf.int32, [None])], 2),
    "no_tensors": lambda tf, folder: tf.train.batch([], 2),
    "types_differ": lambda tf, folder: tf.train.batch_join([[tf.constant(1)], [tf.constant(1.0)]], 2),
    "keep_is_a_vector": lambda tf, folder: tf.train.maybe_batch([tf.constant(1)], [True], 2),
    "missing_file": lambda tf, folder: tf.WholeFileReader().read(
        tf.train.string_input_producer([f"{folder}/none"], num_epochs=1)
    ),
    "corrupt_records": lambda tf, folder: tf.TFRecordReader().read(
        tf.train.string_input_producer([f"{folder}/corrupt.tfrecord"], num_epochs=1)
    )[1],
}


def queue_outcome(tf: Any, program: Program, folder: str) -> Any:
    with tf.Graph().as_default() as graph:
        try:
            fetched = program(tf, folder)
        except (TypeError, ValueError) as error:
            return [type(error).__name__]
        given: list[Any] = []
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coordinator)
            try:
                while len(given) < STEPS_MAX:
                    given.append(plain(session.run(fetched)))
            except tf.errors.OpError as error:
                given.append(type(error).__name__)
            coordinator.request_stop()
            try:
                coordinator.join(threads)
            except tf.errors.OpError as error:
                given.append(type(error).__name__)
        runners = graph.get_collection("queue_runners")
        return [
            given,
            [[runner.name, [each.name for each in runner.enqueue_ops]] for runner in runners],
            [each.name for each in graph.get_collection("summaries")],
            [each.name for each in graph.get_collection("local_variables")],
        ]


def outcomes(tf: Any, kind: str, target: str = "") -> dict[str, Any]:
    """What each program gives. kind: "queues", "datasets" or "one shot"."""
    with tempfile.TemporaryDirectory() as folder:
        files(tf, folder)
        if kind == "queues":
            return {name: queue_outcome(tf, program, folder) for name, program in QUEUES.items()}
        is_one_shot = kind == "one shot"
        return {
            name: dataset_outcome(tf, program, folder, target, is_one_shot) for name, program in DATASETS.items()
        }
