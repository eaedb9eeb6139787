"""Variables whose first values come from a checkpoint with another vocabulary: checkpoint_ops and warm starts."""

import os

import numpy as np
from tensorflow.python.framework import constant_op, dtypes, errors_impl, ops
from tensorflow.python.ops import (
    array_ops,
    gen_checkpoint_ops,
    init_ops,
    partitioned_variables,
    variable_scope,
    variables,
)
from tensorflow.python.platform import test
from tensorflow.python.training import checkpoint_ops, checkpoint_utils, saver
from tensorflow.python.training import warm_starting_util as ws_util


def filled(number):
    """An initializer for shapes that are known when the graph runs."""
    return lambda shape, dtype=None, partition_info=None: array_ops.tile(constant_op.constant([[number]]), shape)


class _Files(test.TestCase):
    def write(self, name, words):
        path = os.path.join(self.get_temp_dir(), self.id() + name)
        with open(path, "w") as file:
            file.write("\n".join(words) + "\n")
        return path

    def save(self, **values):
        path = os.path.join(self.get_temp_dir(), self.id())
        with ops.Graph().as_default(), self.session(graph=ops.get_default_graph()) as session:
            for name, value in values.items():
                variable_scope.get_variable(name, initializer=value)
            session.run(variables.global_variables_initializer())
            return saver.Saver().save(session, path)


class Remapping(_Files):
    def remap(self, new, old, **given):
        given = {"new_vocab_offset": 0, "num_new_vocab": len(new), **given}
        with ops.Graph().as_default(), self.session(graph=ops.get_default_graph()) as session:
            made = gen_checkpoint_ops.generate_vocab_remapping(
                new_vocab_file=self.write("new", new), old_vocab_file=self.write("old", old), **given
            )
            self.assertEqual([given["num_new_vocab"]], made[0].shape.as_list())
            self.assertEqual([], made[1].shape.as_list())
            self.assertEqual([dtypes.int64, dtypes.int32], [each.dtype for each in made])
            return [np.asarray(value).tolist() for value in session.run(list(made))]

    def test_words_that_the_old_vocabulary_lacks_are_minus_one(self):
        self.assertEqual([[2, -1, 0], 2], self.remap(["c", "x", "a"], ["a", "b", "c"]))

    def test_part_of_the_new_vocabulary(self):
        self.assertEqual(
            [[-1, 0], 1], self.remap(["c", "x", "a"], ["a", "b", "c"], new_vocab_offset=1, num_new_vocab=2)
        )
        self.assertEqual([[], 0], self.remap(["c", "x"], ["a"], new_vocab_offset=1, num_new_vocab=0))

    def test_part_of_the_old_vocabulary(self):
        self.assertEqual([[-1, -1, 0], 1], self.remap(["c", "x", "a"], ["a", "b", "c"], old_vocab_size=2))

    def test_more_words_than_the_file_has(self):
        with self.assertRaisesRegex(errors_impl.InvalidArgumentError, "larger than last new vocab entry's line"):
            self.remap(["a", "b"], ["a"], new_vocab_offset=1, num_new_vocab=2)
        with self.assertRaisesRegex(errors_impl.InvalidArgumentError, "expected 5 but got 1"):
            self.remap(["a", "b"], ["a"], old_vocab_size=5)

    def test_a_word_twice(self):
        self.assertEqual([[0, 0], 2], self.remap(["a", "a"], ["a"]))
        with self.assertRaisesRegex(errors_impl.FailedPreconditionError, "different value for same key"):
            self.remap(["a"], ["a", "a"])

    def test_missing_files(self):
        with ops.Graph().as_default(), self.session(graph=ops.get_default_graph()) as session:
            for new, old in (("/nowhere/new", self.write("old", ["a"])), (self.write("new", ["a"]), "/nowhere/old")):
                made = gen_checkpoint_ops.generate_vocab_remapping(new, old, new_vocab_offset=0, num_new_vocab=1)
                with self.assertRaises(errors_impl.NotFoundError):
                    session.run(made)
            made = gen_checkpoint_ops.generate_vocab_remapping("", "", new_vocab_offset=0, num_new_vocab=1)
            with self.assertRaisesRegex(errors_impl.InvalidArgumentError, "cannot be empty"):
                session.run(made)

    def test_attributes_and_ranks_are_checked(self):
        with ops.Graph().as_default():
            with self.assertRaisesRegex(ValueError, "num_new_vocab"):
                gen_checkpoint_ops.generate_vocab_remapping("a", "b", new_vocab_offset=0, num_new_vocab=-1)
            with self.assertRaisesRegex(ValueError, "rank"):
                gen_checkpoint_ops.generate_vocab_remapping(["a"], "b", new_vocab_offset=0, num_new_vocab=1)


class Matrices(_Files):
    def load(self, rows, columns, values, **given):
        path = self.save(m=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], b=[1.0, 2.0], i=[[1]])
        with ops.Graph().as_default(), self.session(graph=ops.get_default_graph()) as session:
            made = gen_checkpoint_ops.load_and_remap_matrix(
                **{
                    "ckpt_path": path,
                    "old_tensor_name": "m",
                    "row_remapping": rows,
                    "col_remapping": columns,
                    "initializing_values": values,
                    "num_rows": 3,
                    "num_cols": 2,
                    **given,
                }
            )
            self.assertEqual([given.get("num_rows", 3), given.get("num_cols", 2)], made.shape.as_list())
            return session.run(made).tolist()

    def test_rows(self):
        self.assertEqual([[5, 6], [10, 11], [1, 2]], self.load([2, -1, 0], [], [10.0, 11.0]))
        self.assertEqual([[1, 2], [3, 4], [5, 6]], self.load([-1] * 3, [], [1.0, 2, 3, 4, 5, 6]))

    def test_columns(self):
        self.assertEqual([[2, 7], [4, 8], [6, 9]], self.load([0, 1, 2], [1, -1], [7.0, 8.0, 9.0]))

    def test_rows_and_columns(self):
        found = self.load([2, -1], [1, -1, 0], [[1.0], [2.0], [3.0], [4.0]], num_rows=2, num_cols=3)
        self.assertEqual([[6, 1, 5], [2, 3, 4]], found)

    def test_few_rows_at_once(self):
        for rows_at_once in (-1, 0, 1, 2, 10):
            found = self.load([2, -1, 0], [], [10.0, 11.0], max_rows_in_memory=rows_at_once)
            self.assertEqual([[5, 6], [10, 11], [1, 2]], found)

    def test_number_of_initializing_values(self):
        with self.assertRaisesRegex(errors_impl.InvalidArgumentError, "contained 1 elements, but more missing"):
            self.load([2, -1, 0], [], [1.0])
        with self.assertRaisesRegex(errors_impl.InvalidArgumentError, "contained 3 elements, but only 2"):
            self.load([2, -1, 0], [], [1.0, 2.0, 3.0])

    def test_an_old_row_twice(self):
        with self.assertRaisesRegex(errors_impl.UnimplementedError, "Old ID 0 is mapped to both new ID 0 and 1"):
            self.load([0, 0, -1], [], [1.0, 2.0])
        with self.assertRaisesRegex(errors_impl.UnimplementedError, "Old ID 1 is mapped to both new ID 0 and 1"):
            self.load([0, 1, 2], [1, 1], [1.0])

    def test_sizes_of_remappings(self):
        with self.assertRaisesRegex(errors_impl.InvalidArgumentError, "Size of row_remapping is 2"):
            self.load([0, 1], [], [1.0])
        with self.assertRaisesRegex(errors_impl.InvalidArgumentError, "Provided col_remapping, but its size is 1"):
            self.load([0, 1, 2], [1], [1.0])
        with self.assertRaisesRegex(errors_impl.InvalidArgumentError, "2nd dimension is 2"):
            self.load([0, 1, 2], [], [1.0], num_cols=3)

    def test_tensors_of_other_kinds(self):
        with self.assertRaisesRegex(errors_impl.InvalidArgumentError, "invalid rank 1"):
            self.load([0, 1, 2], [], [1.0], old_tensor_name="b")
        with self.assertRaisesRegex(errors_impl.InvalidArgumentError, "invalid type int32"):
            self.load([0, 1, 2], [], [1.0], old_tensor_name="i")
        with self.assertRaises(errors_impl.NotFoundError):
            self.load([0, 1, 2], [], [1.0], old_tensor_name="nothing")
        with self.assertRaises(errors_impl.NotFoundError):
            self.load([0, 1, 2], [], [1.0], ckpt_path="/nowhere")


class Initializers(_Files):
    def setUp(self):
        super().setUp()
        self.old_words = self.write("old", ["apple", "banana", "guava", "orange"])
        self.new_words = self.write("new", ["orange", "guava", "lychee"])
        self.old_classes = self.write("old_classes", ["red", "green", "blue"])
        self.new_classes = self.write("new_classes", ["blue", "violet", "red"])
        self.matrix = np.arange(12.0, dtype=np.float32).reshape(4, 3)
        self.path = self.save(w=self.matrix, bias=np.array([[1.0], [2.0], [3.0]], np.float32))

    def value_of(self, initializer, shape, partitions=None):
        with ops.Graph().as_default(), self.session(graph=ops.get_default_graph()) as session:
            partitioner = partitions and partitioned_variables.fixed_size_partitioner(partitions)
            made = variable_scope.get_variable("w", shape=shape, initializer=initializer, partitioner=partitioner)
            session.run(variables.global_variables_initializer())
            return session.run(ops.convert_to_tensor(made)).tolist()

    def test_rows_and_columns_with_buckets(self):
        for partitions in (None, 2, 4):
            load = checkpoint_ops._load_and_remap_matrix_initializer(
                ckpt_path=self.path,
                old_tensor_name="w",
                new_row_vocab_size=3,
                new_col_vocab_size=3,
                old_row_vocab_file=self.old_words,
                new_row_vocab_file=self.new_words,
                old_col_vocab_file=self.old_classes,
                new_col_vocab_file=self.new_classes,
                num_row_oov_buckets=1,
                num_col_oov_buckets=1,
                initializer=filled(42.0),
            )
            self.assertEqual(
                [[11, 42, 9, 42], [8, 42, 6, 42], [42] * 4, [42] * 4], self.value_of(load, [4, 4], partitions)
            )

    def test_rows_only(self):
        load = checkpoint_ops._load_and_remap_matrix_initializer(
            self.path, "w", 3, 3, old_row_vocab_file=self.old_words, new_row_vocab_file=self.new_words
        )
        self.assertEqual([[9, 10, 11], [6, 7, 8], [0, 0, 0]], self.value_of(load, [3, 3]))

    def test_columns_only(self):
        load = checkpoint_ops._load_and_remap_matrix_initializer(
            self.path, "w", 4, 3, old_col_vocab_file=self.old_classes, new_col_vocab_file=self.new_classes
        )
        self.assertEqual([[2, 0, 0], [5, 0, 3], [8, 0, 6], [11, 0, 9]], self.value_of(load, [4, 3], 3))

    def test_old_vocabulary_size(self):
        load = checkpoint_ops._load_and_remap_matrix_initializer(
            self.path, "w", 3, 3, old_row_vocab_size=3, old_row_vocab_file=self.old_words,
            new_row_vocab_file=self.new_words, initializer=init_ops.ones_initializer(),
        )  # fmt: skip
        self.assertEqual([[1, 1, 1], [6, 7, 8], [1, 1, 1]], self.value_of(load, [3, 3]))

    def test_embeddings(self):
        load = checkpoint_ops._load_embedding_initializer(
            self.path, "w", new_vocab_size=3, embedding_dim=3, old_vocab_file=self.old_words,
            new_vocab_file=self.new_words, num_oov_buckets=2, initializer=filled(7.0),
        )  # fmt: skip
        self.assertEqual([[9, 10, 11], [6, 7, 8]] + [[7] * 3] * 3, self.value_of(load, [5, 3], 5))
        load = checkpoint_ops._load_embedding_initializer(self.path, "w", 3, 3, self.old_words, self.new_words)
        found = self.value_of(load, [3, 3])
        self.assertEqual([[9, 10, 11], [6, 7, 8]], found[:2])
        self.assertTrue(all(found[2]) and max(map(abs, found[2])) < 2)

    def test_arguments_are_checked(self):
        load = checkpoint_ops._load_and_remap_matrix_initializer(
            self.path, "w", 3, 3, old_row_vocab_file=self.old_words, new_row_vocab_file=self.new_words
        )
        with ops.Graph().as_default():
            with self.assertRaisesRegex(TypeError, "only float32 is supported"):
                load([3, 3], dtype=dtypes.float64)
            for shape, words in (([3], "2-dim"), ([0, 3], "> 0"), ([3, 4], "new_col_vocab_size"), ([4, 3], "exceed")):
                with self.assertRaisesRegex(ValueError, words):
                    load(shape)
            with self.assertRaisesRegex(TypeError, "must be callable"):
                checkpoint_ops._load_and_remap_matrix_initializer(self.path, "w", 3, 3, initializer=1.0)
            some = init_ops.zeros_initializer()
            with self.assertRaisesRegex(ValueError, "either row or column"):
                checkpoint_ops._load_and_remap_matrix(self.path, "w", 0, 3, 3, some)
            with self.assertRaisesRegex(ValueError, "must both be specified"):
                checkpoint_ops._load_and_remap_matrix(self.path, "w", 0, 3, 3, some, old_row_vocab_file="x")
            with self.assertRaisesRegex(ValueError, "num_row_oov_buckets"):
                checkpoint_ops._load_and_remap_matrix(self.path, "w", 0, 3, 3, some, num_row_oov_buckets=-1)
            with self.assertRaisesRegex(ValueError, "num_col_oov_buckets"):
                checkpoint_ops._load_and_remap_matrix(self.path, "w", 0, 3, 3, some, num_col_oov_buckets=-1)


class PartitionInfos(test.TestCase):
    def test_offset_and_dimension(self):
        info = variable_scope._PartitionInfo(full_shape=[9, 3], var_offset=[4, 0])
        self.assertEqual(4, info.single_offset([2, 3]))
        self.assertEqual(0, info.single_slice_dim([2, 3]))
        whole = variable_scope._PartitionInfo(full_shape=[9, 3], var_offset=[0, 0])
        self.assertEqual(0, whole.single_offset([9, 3]))
        self.assertIsNone(whole.single_slice_dim([9, 3]))
        with self.assertRaisesRegex(ValueError, "slice dim could be either dimension 1 or 0"):
            whole.single_slice_dim([2, 2])
        with self.assertRaisesRegex(ValueError, "would exceed"):
            info.single_slice_dim([8, 3])
        with self.assertRaisesRegex(ValueError, "Expected equal length"):
            info.single_slice_dim([8])
        with self.assertRaises(TypeError):
            info.single_slice_dim(8)

    def test_arguments_are_checked(self):
        for whole, offset, kind in (
            (3, [1], TypeError), ([3], 1, TypeError), ([3, 4], [1], ValueError), ([3], [3], ValueError),
            ([3], [-1], ValueError),
        ):  # fmt: skip
            with self.assertRaises(kind):
                variable_scope._PartitionInfo(full_shape=whole, var_offset=offset)


class WarmStarts(_Files):
    def setUp(self):
        super().setUp()
        self.old = self.write("old", ["apple", "banana", "guava", "orange"])
        self.new = self.write("new", ["orange", "guava", "banana", "apple", "raspberry"])
        self.path = self.save(
            fruit_weights=np.array([[0.5], [1.0], [1.5], [2.0]], np.float32),
            fruit_output=np.array([[0.5, 0.3], [1.0, 0.8], [1.5, 1.3]], np.float32), plain=[7.0], other=[8.0],
        )  # fmt: skip

    def run_with(self, make, warm_start):
        with ops.Graph().as_default(), self.session(graph=ops.get_default_graph()) as session:
            made = make()
            warm_start(made)
            session.run(variables.global_variables_initializer())
            made = made if isinstance(made, list) else [made]
            return [session.run(ops.convert_to_tensor(each)).tolist() for each in made]

    def test_a_variable_with_vocabulary(self):
        for use_resource in (False, True):
            found = self.run_with(
                lambda use_resource=use_resource: variable_scope.get_variable(
                    "fruit_weights", shape=[5, 1], use_resource=use_resource
                ),
                lambda v: ws_util._warm_start_var_with_vocab(v, self.new, 5, self.path, self.old),
            )
            self.assertEqual([[[2.0], [1.5], [1.0], [0.5], [0.0]]], found)

    def test_part_of_the_old_vocabulary(self):
        found = self.run_with(
            lambda: variable_scope.get_variable("fruit_weights", shape=[5, 1]),
            lambda v: ws_util._warm_start_var_with_vocab(
                v, self.new, 5, self.path, self.old, previous_vocab_size=2, initializer=init_ops.ones_initializer()
            ),
        )
        self.assertEqual([[[1.0], [1.0], [1.0], [0.5], [1.0]]], found)

    def test_parts_with_vocabulary(self):
        def make():
            return variable_scope.get_variable(
                "fruit_weights", shape=[6, 1], partitioner=partitioned_variables.fixed_size_partitioner(2)
            )

        for parts in (lambda v: v, lambda v: v._get_variable_list()):
            found = self.run_with(
                make,
                lambda v, parts=parts: ws_util._warm_start_var_with_vocab(
                    parts(v), self.new, 5, self.path, self.old, current_oov_buckets=1
                ),
            )
            self.assertEqual([[[2.0], [1.5], [1.0], [0.5], [0.0], [0.0]]], found)

    def test_columns_with_vocabulary(self):
        old, new = self.write("old_classes", ["yes", "no"]), self.write("new_classes", ["no", "maybe", "yes"])
        for partitions in (None, 3):
            found = self.run_with(
                lambda partitions=partitions: variable_scope.get_variable(
                    "output",
                    shape=[3, 3],
                    partitioner=partitions and partitioned_variables.fixed_size_partitioner(partitions),
                ),  # fmt: skip
                lambda v: ws_util._warm_start_var_with_vocab(
                    v, new, 3, self.path, old, prev_tensor_name="fruit_output", axis=1
                ),
            )
            self.assertAllClose([[0.3, 0.0, 0.5], [0.8, 0.0, 1.0], [1.3, 0.0, 1.5]], found[0])

    def test_arguments_of_a_variable_with_vocabulary(self):
        with ops.Graph().as_default():
            v = variable_scope.get_variable("fruit_weights", shape=[5, 1])
            for given in ((None, 5, self.path, self.old), (self.new, 0, self.path, self.old)):
                with self.assertRaisesRegex(ValueError, "Must provide all of"):
                    ws_util._warm_start_var_with_vocab(v, *given)
            with self.assertRaisesRegex(TypeError, "var MUST be one of"):
                ws_util._warm_start_var_with_vocab("v", self.new, 5, self.path, self.old)
            with self.assertRaisesRegex(ValueError, "axis argument are 0 and 1"):
                ws_util.VocabInfo(self.new, 5, 0, self.old, axis=2)

    def test_all_trainable_variables(self):
        def make():
            plain = variable_scope.get_variable("plain", shape=[1])
            fixed = variable_scope.get_variable(
                "other", shape=[1], trainable=False, initializer=init_ops.zeros_initializer()
            )
            return [plain, fixed, variable_scope.get_variable("fruit_weights", shape=[5, 1])]

        info = ws_util.VocabInfo(self.new, 5, 0, self.old)
        vocabularies = {"fruit_weights": info}
        found = self.run_with(make, lambda _: ws_util.warm_start(self.path, var_name_to_vocab_info=vocabularies))
        self.assertEqual([[7.0], [0.0], [[2.0], [1.5], [1.0], [0.5], [0.0]]], found)
        found = self.run_with(
            make,
            lambda _: ws_util.warm_start(
                self.get_temp_dir(), [".*"], vocabularies, {"plain": "other", "other": "plain"}
            ),
        )
        self.assertEqual([[8.0], [7.0], [[2.0], [1.5], [1.0], [0.5], [0.0]]], found)

    def test_only_variables_with_vocabularies(self):
        def make():
            plain = variable_scope.get_variable("plain", shape=[1], initializer=init_ops.zeros_initializer())
            return [plain, variable_scope.get_variable("fruit_weights", shape=[5, 1])]

        info = ws_util.VocabInfo(self.new, 5, 0, self.old, backup_initializer=filled(3.0))
        found = self.run_with(make, lambda _: ws_util.warm_start(self.path, None, {"fruit_weights": info}))
        self.assertEqual([[0.0], [[2.0], [1.5], [1.0], [0.5], [3.0]]], found)

    def test_two_variables_from_one_tensor(self):
        found = self.run_with(
            lambda: [variable_scope.get_variable(name, shape=[1]) for name in ("a", "b")],
            lambda made: ws_util.warm_start(self.path, made, None, {"a": "plain", "b": "plain"}),
        )
        self.assertEqual([[7.0], [7.0]], found)

    def test_unused_mappings(self):
        with ops.Graph().as_default():
            variable_scope.get_variable("plain", shape=[1])
            with self.assertRaisesRegex(ValueError, "var_name_to_prev_var_name that were not used"):
                ws_util.warm_start(self.path, var_name_to_prev_var_name={"nothing": "other"})
            info = ws_util.VocabInfo(self.new, 5, 0, self.old)
            with self.assertRaisesRegex(ValueError, "var_name_to_vocab_info that were not used"):
                ws_util.warm_start(self.path, var_name_to_vocab_info={"nothing": info})
            for wrong in ({"a": 1}, ["plain", 3], 7):
                with self.assertRaisesRegex(ValueError, "vars_to_warm_start"):
                    ws_util.warm_start(self.path, wrong)

    def test_names_of_variables(self):
        with ops.Graph().as_default():
            v = variable_scope.get_variable("scope/v", shape=[4])
            parts = variable_scope.get_variable(
                "parts", shape=[4], partitioner=partitioned_variables.fixed_size_partitioner(2)
            )
            self.assertEqual(("scope/v", v), ws_util._get_var_info(v))
            self.assertEqual(("old", v), ws_util._get_var_info(v, "old"))
            name, found = ws_util._get_var_info(parts)
            self.assertEqual("parts", name)
            self.assertEqual(2, len(found))
            self.assertEqual("parts", ws_util._infer_var_name(list(parts)))
            self.assertEqual("scope/v", ws_util._infer_var_name([v]))
            self.assertEqual(["parts", "scope/v"], sorted(ws_util._get_grouped_variables(".*")))
            self.assertEqual(["parts"], list(ws_util._get_grouped_variables(["parts"])))
            self.assertEqual(2, len(ws_util._get_grouped_variables(["parts"])["parts"]))
            with self.assertRaisesRegex(TypeError, "violates the constraints"):
                ws_util._infer_var_name([v, *parts])

    def test_fields_of_vocabularies(self):
        info = ws_util.VocabInfo("new", 5, 1, "old")
        self.assertEqual(("new", 5, 1, "old", -1, None, 0), tuple(info))
        self.assertEqual(-1, info.old_vocab_size)
        self.assertEqual(7, info._replace(new_vocab_size=7).new_vocab_size)


class Paths(_Files):
    def test_folders_and_prefixes(self):
        path = self.save(v=[1.0])
        self.assertEqual(path, checkpoint_utils._get_checkpoint_filename(path))
        self.assertEqual(path, checkpoint_utils._get_checkpoint_filename(self.get_temp_dir()))
