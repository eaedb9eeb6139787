"""Mutable tables that go into a checkpoint and come out of it, for either runtime."""

from __future__ import annotations

from typing import Any

COUNT = 40


def tables(tf: Any) -> list[Any]:
    """Each kind; those with buckets have too few for their entries."""
    mutable, dense = tf.lookup.experimental.MutableHashTable, tf.lookup.experimental.DenseHashTable
    return [
        mutable(tf.string, tf.int64, -1, name="words"),
        mutable(tf.int64, tf.float32, [0.0, 0.0], name="rows"),
        dense(tf.int64, tf.float32, [0.0, 0.0], empty_key=-1, deleted_key=-2, name="dense", initial_num_buckets=8),
        dense(tf.string, tf.int64, -1, empty_key="", deleted_key="$", name="dense_words", initial_num_buckets=8),
    ]


def save(tf: Any, prefix: str) -> list[Any]:
    """Saves filled tables by a Saver of everything. Returns what `load` has to find."""
    words, rows, dense, dense_words = tables(tf)
    numbers = list(range(100, 100 + COUNT))
    with tf.Session() as session:
        session.run(
            [
                words.insert(["x", "y\0"], [1, 2]),
                rows.insert([5], [[1.0, 2.0]]),
                dense.insert(numbers, [[float(number), 1.0] for number in numbers]),
                dense_words.insert([f"k{number}" for number in numbers], numbers),
            ]
        )
        session.run(dense.remove(tf.constant([139], tf.int64)))
        tf.train.Saver().save(session, prefix)
        return found(tf, session, words, rows, dense, dense_words)


def load(tf: Any, prefix: str) -> list[Any]:
    """What is in tables after restoring; what they held before is gone."""
    words, rows, dense, dense_words = tables(tf)
    with tf.Session() as session:
        session.run([words.insert(["old"], [3]), dense_words.insert(["old"], [3])])
        tf.train.Saver().restore(session, prefix)
        before = found(tf, session, words, rows, dense, dense_words)
        session.run([dense.insert([7], [[7.0, 7.0]]), dense_words.insert(["new"], [9])])
        new = session.run([dense.lookup(tf.constant([7], tf.int64)), dense_words.lookup(tf.constant(["new"]))])
        assert new[0].tolist() == [[7.0, 7.0]] and new[1].tolist() == [9]
        return before


def found(tf: Any, session: Any, words: Any, rows: Any, dense: Any, dense_words: Any) -> list[Any]:
    """Sizes, and some values."""
    sizes = [int(size) for size in session.run([table.size() for table in (words, rows, dense, dense_words)])]
    values = session.run(
        [
            words.lookup(tf.constant(["x", "y\0", "old"])),
            rows.lookup(tf.constant([5, 6], tf.int64)),
            dense.lookup(tf.constant([100, 117, 139, 1], tf.int64)),
            dense_words.lookup(tf.constant(["k100", "k139", "old"])),
        ]
    )
    return [sizes, *(value.tolist() for value in values)]
