"""Mutable tables are in checkpoints, by TensorFlow's names; tables over one file are one table."""

from __future__ import annotations

import pytest

import dtf as tf
from dtf.train.saveable import SaveableObject
from tests.interop import table_programs


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_all_kinds_of_tables_must_come_back(tmp_path):
    saved = table_programs.save(tf, str(tmp_path / "m"))
    assert saved[0] == [2, 1, 39, 40]
    with tf.Graph().as_default():
        assert table_programs.load(tf, str(tmp_path / "m")) == saved
    names = [name for name, _ in tf.train.list_variables(str(tmp_path / "m"))]
    assert names == sorted(
        f"{table}-{part}" for table in ("words", "rows", "dense", "dense_words") for part in ("keys", "values")
    )


@pytest.mark.parametrize("sharded", [False, True])
def test_a_savers_list_may_name_tables_alone_or_beside_variables(sharded, tmp_path):
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1, name="t")
    v = tf.get_variable("v", initializer=2.0)
    with tf.Session() as session:
        session.run([v.initializer, table.insert(["a"], [1])])
        for name, var_list, keys in (
            ("table", [table], ["t-keys", "t-values"]),
            ("both", [v, table], ["t-keys", "t-values", "v"]),
            ("named", {"u": table, "w": v}, ["u-keys", "u-values", "w"]),
            ("all", None, ["t-keys", "t-values", "v"]),
        ):
            saver = tf.train.Saver(var_list, sharded=sharded)
            prefix = saver.save(session, str(tmp_path / name))
            assert [key for key, _ in tf.train.list_variables(prefix)] == keys
            session.run([table.insert(["b"], [2]), table.remove(tf.constant(["a"]))])
            saver.restore(session, prefix)
            assert session.run(table.size()) == 1
            assert session.run(table.lookup(tf.constant(["a", "b"]))).tolist() == [1, -1]


def test_a_graph_of_tables_only_has_something_to_save_unless_they_say_no(graph):
    tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1, checkpoint=False)
    with pytest.raises(ValueError, match="No variables to save"):
        tf.train.Saver()
    tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1, name="t")
    (saveable,) = graph.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS)
    assert isinstance(saveable, SaveableObject)
    assert [spec.name for spec in saveable.specs] == ["t-keys", "t-values"]
    tf.train.Saver()


def test_a_table_must_come_back_through_a_meta_graph_and_a_training_session(tmp_path):
    def count(keys: list[str]) -> int:
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            table = tf.lookup.experimental.DenseHashTable(
                tf.string, tf.int64, -1, empty_key="", deleted_key="$", name="t", initial_num_buckets=4
            )
            work = tf.group(table.insert(keys, [1] * len(keys)), tf.assign_add(step, 1))
            size = table.size()
            with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path)) as session:
                session.run(work)
                return int(session.run(size))

    assert [count(["a", "b"]), count(["c"])] == [2, 3]
    with tf.Graph().as_default(), tf.Session() as session:
        prefix = tf.train.latest_checkpoint(str(tmp_path))
        saver = tf.train.import_meta_graph(f"{prefix}.meta")
        saver.restore(session, prefix)
        size = tf.raw_ops.LookupTableSizeV2(table_handle=session.graph.get_tensor_by_name("t:0"))
        assert session.run(size) == 3


def test_tables_over_one_file_must_share_what_it_holds(tmp_path):
    path = tmp_path / "words"
    path.write_text("a\nb\n")
    whole, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER

    def table(**more: object):
        words = tf.lookup.TextFileInitializer(str(path), tf.string, whole, tf.int64, number, **more)
        return tf.lookup.StaticHashTable(words, -1)

    one, same, shorter = table(), table(), table(vocab_size=1)
    names = [each.resource_handle.op.get_attr("shared_name").decode() for each in (one, same, shorter)]
    assert names == [f"hash_table_{path}_-2_-1"] * 2 + [f"hash_table_{path}_1_-2_-1"]
    with tf.Session() as session:
        session.run(one.initializer)
        assert session.run(same.lookup(tf.constant(["b"]))).tolist() == [1]
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(shorter.size())
        session.run(tf.tables_initializer())
        assert session.run(shorter.size()) == 1
