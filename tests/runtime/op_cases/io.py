"""Cases of saving, files, serialized tensors and Python functions."""

from __future__ import annotations

import os
import tempfile

import numpy as np

import dtf as tf
from dtf.build.apply import apply_op
from dtf.build.ops import io
from dtf.wire import codec, errors
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import doubles, evaluate, ints, strings


def what_is_saved_must_be_restored():
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        prefix = os.path.join(folder, "deeper", "model")
        values = doubles(3, 2)
        save = io.save_v2(prefix, ["w", "words"], ["", ""], [tf.constant(values), tf.constant(["a", "bc"])])
        with tf.control_dependencies([save]):
            words, whole, part = io.restore_v2(
                prefix, ["words", "w", "w"], ["", "", "3 2 1,2:-"], [tf.string, tf.float64, tf.float64]
            )
        found = evaluate(words, whole, part)
        assert found[0].tolist() == [b"a", b"bc"]
        np.testing.assert_array_equal(found[1], values)
        np.testing.assert_array_equal(found[2], values[1:])


def an_increment_without_a_base_must_be_whole():
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        prefix = os.path.join(folder, "model")
        save = tf.raw_ops.SaveIncrement(
            prefix=prefix, tensor_names=["w"], shape_and_slices=[""], base="", target=prefix, tensors=[doubles(3, 2)]
        )
        with tf.control_dependencies([save]):
            restored = io.restore_v2(prefix, ["w"], [""], [tf.float64])
        np.testing.assert_array_equal(evaluate(*restored)[0], doubles(3, 2))


def a_missing_name_or_checkpoint_is_not_found():
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        prefix = os.path.join(folder, "model")
        with raises(errors.NotFoundError, "Failed to find any matching files"):
            evaluate(io.restore_v2(prefix, ["w"], [""], [tf.float32])[0])
        save = io.save_v2(prefix, ["w"], [""], [tf.constant(1.0)])
        with tf.control_dependencies([save]):
            missing = io.restore_v2(prefix, ["v"], [""], [tf.float32])[0]
            mistyped = io.restore_v2(prefix, ["w"], [""], [tf.int32])[0]
        with raises(errors.NotFoundError, "Key v not found in checkpoint"):
            evaluate(missing)
        with raises(errors.InvalidArgumentError, "expected dtype int32 does not equal original dtype float32"):
            evaluate(mistyped)


def the_first_format_must_be_restored():
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        whole, parts = os.path.join(folder, "whole"), os.path.join(folder, "parts")
        values = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        saves = [
            apply_op("Save", None, filename=whole, tensor_names=["w", "s"], data=[values, tf.constant(["a", "b"])]),
            apply_op(
                "SaveSlices", None, filename=parts, tensor_names=["w", "w"],
                shapes_and_slices=["2 2 0,1:-", "2 2 1,1:-"], data=[values[:1], values[1:]],
            ),
        ]  # fmt: skip
        with tf.control_dependencies(saves):
            restored = [
                apply_op("Restore", None, file_pattern=os.path.join(folder, "wh*"), tensor_name="s", dt=tf.string),
                apply_op("Restore", None, file_pattern=parts, tensor_name="w", dt=tf.float32),
                apply_op(
                    "RestoreSlice", None, file_pattern=parts, tensor_name="w", shape_and_slice="2 2 -:1,1",
                    dt=tf.float32,
                ),
                io.restore_v2(whole, ["w"], [""], [tf.float32])[0],
            ]  # fmt: skip
        found = [value.tolist() for value in evaluate(*restored)]
        assert found == [[b"a", b"b"], [[1, 2], [3, 4]], [[2], [4]], [[1, 2], [3, 4]]]


def shards_must_become_one_checkpoint():
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        whole = os.path.join(folder, "model")
        parts = [os.path.join(folder, "temp", name) for name in ("a", "b")]
        saves = [
            io.save_v2(part, [name], [""], [tf.constant(i)])
            for i, (part, name) in enumerate(zip(parts, "vw", strict=True))
        ]
        with tf.control_dependencies(saves):
            merge = io.merge_v2_checkpoints(parts, whole)
        with tf.control_dependencies([merge]):
            restored = io.restore_v2(whole, ["v", "w"], ["", ""], [tf.int32, tf.int32])
        assert [int(value) for value in evaluate(*restored)] == [0, 1]
        assert not os.path.exists(os.path.join(folder, "temp"))


def a_partitioned_variable_must_be_restored_whole():
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        prefix = os.path.join(folder, "model")
        parts = [tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 4.0]])]
        save = io.save_v2(prefix, ["w", "w"], ["2 2 0,1:-", "2 2 1,1:-"], parts)
        with tf.control_dependencies([save]):
            restored = io.restore_v2(prefix, ["w"], [""], [tf.float32])[0]
        assert evaluate(restored)[0].tolist() == [[1, 2], [3, 4]]


def rows_of_known_words_must_be_found_and_loaded():
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        old, new, prefix = (os.path.join(folder, name) for name in ("old.txt", "new.txt", "model"))
        save = io.save_v2(prefix, ["w"], [""], [tf.constant([[1.0], [2.0], [3.0]])])
        with tf.control_dependencies([save, tf.write_file(old, "a\nb\nc\n"), tf.write_file(new, "c\nx\na\n")]):
            rows, count = tf.raw_ops.GenerateVocabRemapping(
                new_vocab_file=tf.constant(new), old_vocab_file=tf.identity(old), new_vocab_offset=0, num_new_vocab=3
            )
        with tf.control_dependencies([rows]):
            matrix = tf.raw_ops.LoadAndRemapMatrix(
                ckpt_path=tf.identity(prefix), old_tensor_name="w", row_remapping=rows, col_remapping=[],
                initializing_values=[9.0], num_rows=3, num_cols=1,
            )  # fmt: skip
        found = evaluate(rows, count, matrix)
        assert [value.tolist() for value in found] == [[2, -1, 0], 2, [[3.0], [9.0], [1.0]]]


def a_written_file_must_be_read_and_listed():
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        path = os.path.join(folder, "deeper", "file")
        with tf.control_dependencies([tf.write_file(path, "text")]):
            contents = tf.read_file(path)
            listed = tf.matching_files(os.path.join(folder, "deeper", "*"))
        assert [value.tolist() for value in evaluate(contents, listed)] == [b"text", [path.encode()]]
        with raises(errors.NotFoundError, "No such file or directory"):
            evaluate(tf.read_file(path + "x"))


def a_python_function_is_called_with_arrays():
    with tf.Graph().as_default():
        total, name = tf.py_func(
            lambda x, s: (x.sum(), s + b"!"), [tf.constant([1.0, 2.0]), tf.constant("a")], [tf.float32, tf.string]
        )
        assert evaluate(total, name) == [3.0, np.array(b"a!", object)]


def an_exception_of_a_python_function_keeps_its_words():
    def fail(x):
        raise ValueError(f"no {x}")

    with tf.Graph().as_default():
        stateless = tf.py_func(fail, [tf.constant(1)], tf.int32, stateful=False)
        with raises(errors.InvalidArgumentError, "ValueError: no 1"):
            evaluate(stateless)


class raises:
    """The block must raise an error of that class with those words."""

    def __init__(self, error_class, text: str) -> None:
        self._class, self._text = error_class, text

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, error, _) -> bool:
        assert kind is not None, f"no {self._class.__name__}"
        if not issubclass(kind, self._class):
            return False
        assert self._text in error.message, error.message
        return True


CASES = [
    Case("SaveV2", run=what_is_saved_must_be_restored),
    Case("SaveV2", run=a_partitioned_variable_must_be_restored_whole, name="slices"),
    Case("SaveIncrement", run=an_increment_without_a_base_must_be_whole),
    *(Case(name, run=the_first_format_must_be_restored) for name in ("Save", "SaveSlices", "Restore", "RestoreSlice")),
    Case("RestoreV2", run=a_missing_name_or_checkpoint_is_not_found),
    Case("MergeV2Checkpoints", run=shards_must_become_one_checkpoint),
    Case("ShardedFilename", [strings(b"m"), np.int32(1), np.int32(3)], expect=strings(b"m-00001-of-00003")),
    Case("ShardedFilespec", [strings(b"m"), np.int32(3)], expect=strings(b"m-?????-of-00003")),
    Case("GenerateVocabRemapping", run=rows_of_known_words_must_be_found_and_loaded),
    Case("LoadAndRemapMatrix", run=rows_of_known_words_must_be_found_and_loaded),
    Case("ReadFile", run=a_written_file_must_be_read_and_listed),
    Case("WriteFile", run=a_written_file_must_be_read_and_listed),
    Case("MatchingFiles", run=a_written_file_must_be_read_and_listed),
    Case("SerializeTensor", [ints([1, 2])], expect=lambda x: strings(codec.array_to_proto(x).SerializeToString())),
    Case(
        "ParseTensor",
        [strings(codec.array_to_proto(doubles(2)).SerializeToString())],
        {"out_type": tf.float64},
        lambda x: doubles(2),
    ),
    Case("PyFunc", run=a_python_function_is_called_with_arrays),
    Case("PyFuncStateless", run=an_exception_of_a_python_function_keeps_its_words),
]
