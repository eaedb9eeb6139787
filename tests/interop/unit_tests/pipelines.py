"""Pipelines: datasets, iterators, structures, files of records."""

import collections
import os

import numpy as np
from absl.testing import parameterized
from tensorflow.python.client import session
from tensorflow.python.data.experimental.ops import batching, error_ops, grouping, interleave_ops, scan_ops, unique
from tensorflow.python.data.kernel_tests import test_base
from tensorflow.python.data.ops import dataset_ops, iterator_ops, readers
from tensorflow.python.data.util import nest
from tensorflow.python.framework import (
    combinations,
    constant_op,
    dtypes,
    errors,
    ops,
    sparse_tensor,
)
from tensorflow.python.lib.io import python_io
from tensorflow.python.ops import array_ops, control_flow_ops, lookup_ops, math_ops, random_ops, string_ops, variables
from tensorflow.python.platform import test
from tensorflow.python.util import compat


class Sources(test_base.DatasetTestBase, parameterized.TestCase):
    @combinations.generate(test_base.graph_only_combinations())
    def test_combinations(self):
        self.assertDatasetProduces(dataset_ops.Dataset.range(3), [0, 1, 2])

    def test_range(self):
        for arguments, expected in [((5,), range(5)), ((2, 5), range(2, 5)), ((2, 10, 3), range(2, 10, 3)),
                                    ((10, 2, -3), range(10, 2, -3)), ((5, 2), []), ((2, 2), [])]:  # fmt: skip
            self.assertDatasetProduces(dataset_ops.Dataset.range(*arguments), list(expected))
        with self.assertRaises(errors.InvalidArgumentError):
            self.assertDatasetProduces(dataset_ops.Dataset.range(2, 10, 0), [])

    def test_tensors(self):
        components = (np.array(1), np.array([1, 2, 3]), np.array(37.0))
        dataset = dataset_ops.Dataset.from_tensors(components)
        self.assertEqual([c.shape for c in components], [shape for shape in dataset.output_shapes])
        self.assertDatasetProduces(dataset, [components])

    def test_slices(self):
        components = (np.tile(np.array([[1], [2], [3], [4]]), 20), np.array([37.0, 38.0, 39.0, 40.0]))
        dataset = dataset_ops.Dataset.from_tensor_slices(components)
        self.assertDatasetProduces(dataset, [tuple(c[i] for c in components) for i in range(4)])
        with self.assertRaises(ValueError):
            dataset_ops.Dataset.from_tensor_slices(())
        with self.assertRaises(ValueError):
            dataset_ops.Dataset.from_tensor_slices((np.zeros(2), np.zeros(3)))

    def test_slices_of_dicts(self):
        components = {"foo": [1, 2, 3], "bar": [[4.0], [5.0], [6.0]]}
        dataset = dataset_ops.Dataset.from_tensor_slices(components)
        self.assertEqual(dtypes.int32, dataset.output_types["foo"])
        self.assertEqual((1,), dataset.output_shapes["bar"])
        self.assertDatasetProduces(dataset, [{"foo": f, "bar": [b]} for f, b in zip([1, 2, 3], [4.0, 5.0, 6.0], strict=True)])

    def test_sparse(self):
        sparse = sparse_tensor.SparseTensorValue(np.array([[0, 0], [1, 0], [2, 0]]), np.array([0, 0, 0]), np.array([3, 1]))
        dataset = dataset_ops.Dataset.from_tensors(sparse)
        self.assertEqual(sparse_tensor.SparseTensor, dataset_ops.get_legacy_output_classes(dataset))
        self.assertDatasetProduces(dataset, [sparse])
        sliced = dataset_ops.Dataset.from_tensor_slices(sparse)
        self.assertDatasetProduces(sliced, [
            sparse_tensor.SparseTensorValue(np.array([[0]]), np.array([0]), np.array([1])) for _ in range(3)])  # fmt: skip

    def test_generator(self):
        def numbers():
            for i in range(1, 5):
                yield [i] * i

        dataset = dataset_ops.Dataset.from_generator(numbers, dtypes.int64, (None,)).repeat(2).prefetch(3)
        self.assertDatasetProduces(dataset, [[i] * i for _ in range(2) for i in range(1, 5)], requires_initialization=True)
        with self.assertRaisesRegex(TypeError, "`?generator`? must be (a Python )?callable"):
            dataset_ops.Dataset.from_generator([1, 2], dtypes.int64)

        def wrong():
            yield np.array([1, 2, 3])
            yield np.array([[1]])

        bad = dataset_ops.Dataset.from_generator(wrong, dtypes.int64, (3,))
        get_next = self.getNext(bad, requires_initialization=True)
        self.evaluate(get_next())
        with self.assertRaisesOpError("element of shape \\(3,\\) was expected"):
            self.evaluate(get_next())

        def wrong_type():
            yield "text"

        bad = dataset_ops.Dataset.from_generator(wrong_type, dtypes.int64, ())
        with self.assertRaisesOpError("The expected type was int64"):
            self.evaluate(self.getNext(bad, requires_initialization=True)())

    def test_generator_arguments(self):
        def flat(n, word):
            for i in range(n):
                yield i, word

        dataset = dataset_ops.Dataset.from_generator(flat, (dtypes.int32, dtypes.string), args=(2, "w"))
        self.assertDatasetProduces(dataset, [(0, b"w"), (1, b"w")], requires_initialization=True)

    def test_zip_and_concatenate(self):
        a, b = dataset_ops.Dataset.range(1, 4), dataset_ops.Dataset.range(4, 6)
        self.assertDatasetProduces(dataset_ops.Dataset.zip((a, b)), [(1, 4), (2, 5)])
        self.assertDatasetProduces(dataset_ops.Dataset.zip((b, (a, b))), [(4, (1, 4)), (5, (2, 5))])
        self.assertDatasetProduces(a.concatenate(b), [1, 2, 3, 4, 5])
        with self.assertRaisesRegex(TypeError, "same type|[Ii]ncompatible"):
            a.concatenate(dataset_ops.Dataset.from_tensors(1.0))
        with self.assertRaisesRegex(TypeError, "[Ii]nvalid `?datasets`?|must be|Dataset"):
            dataset_ops.Dataset.zip(42)


class Transformations(test_base.DatasetTestBase, parameterized.TestCase):
    def test_batch(self):
        for count, size, drop in ((14, 4, False), (14, 4, True), (0, 3, False), (2, 5, True)):
            dataset = dataset_ops.Dataset.range(count).batch(size, drop_remainder=drop)
            expected = [list(range(at, min(at + size, count))) for at in range(0, count, size)]
            self.assertDatasetProduces(dataset, [each for each in expected if not drop or len(each) == size])
            self.assertEqual([size if drop else None], dataset.output_shapes.as_list())
        with self.assertRaisesRegex((errors.InvalidArgumentError, ValueError), "(Batch|batch) size must be greater than zero|batch_size"):
            self.assertDatasetProduces(dataset_ops.Dataset.range(3).batch(0), [[]])

    def test_batch_of_different_shapes(self):
        dataset = dataset_ops.Dataset.from_generator(lambda: iter([[3], [4, 4]]), dtypes.float32, [None]).batch(2)
        self.assertDatasetProduces(dataset, expected_error=(
            errors.InvalidArgumentError,
            "Cannot (batch tensors|add tensor to the batch).*(with different shapes in|number of elements)"),
            requires_initialization=True)  # fmt: skip

    def test_padded_batch(self):
        dataset = dataset_ops.Dataset.range(5).map(lambda x: array_ops.fill([math_ops.cast(x, dtypes.int32)], x))
        padded = dataset.padded_batch(4, padded_shapes=[None])
        self.assertDatasetProduces(padded, [[[0, 0, 0], [1, 0, 0], [2, 2, 0], [3, 3, 3]], [[4, 4, 4, 4]]])
        wide = dataset.padded_batch(5, [5], padding_values=constant_op.constant(-1, dtypes.int64))
        found = self.evaluate(self.getNext(wide)())
        self.assertAllEqual([-1] * 5, found[0])
        with self.assertRaisesRegex(errors.DataLossError, "Attempted to pad to a smaller size"):
            self.evaluate(self.getNext(dataset.padded_batch(5, [2]))())
        with self.assertRaisesRegex(TypeError, "does not match (the )?type"):
            dataset.padded_batch(2, [5], padding_values=constant_op.constant(1.5))
        with self.assertRaisesRegex(ValueError, "padded shape|is not compatible"):
            dataset.padded_batch(2, [2, 2])

    def test_map(self):
        components = (np.arange(7), np.arange(7) * 2.0)
        dataset = dataset_ops.Dataset.from_tensor_slices(components).map(lambda x, y: (math_ops.square(x), y)).repeat(2)
        self.assertDatasetProduces(dataset, [(i * i, i * 2.0) for _ in range(2) for i in range(7)])
        named = collections.namedtuple("Point", ["x", "y"])
        points = dataset_ops.Dataset.range(2).map(lambda x: named(x, x + 1))
        self.assertEqual(named, type(points.output_types))
        self.assertDatasetProduces(points.map(lambda p: p.x + p.y), [1, 3])
        with self.assertRaisesRegex(TypeError, "Unsupported return value|None|can.t convert|Expected"):
            dataset_ops.Dataset.range(1).map(lambda x: object())

    def test_map_in_parallel(self):
        dataset = dataset_ops.Dataset.range(100).map(lambda x: x * 2, num_parallel_calls=4)
        self.assertDatasetProduces(dataset, [2 * i for i in range(100)])
        bad = dataset_ops.Dataset.from_tensor_slices(np.array([1.0, 0.0, 3.0])).map(
            lambda x: array_ops.check_numerics(1 / x, "message"), num_parallel_calls=2)  # fmt: skip
        get_next = self.getNext(bad)
        self.evaluate(get_next())
        with self.assertRaises(errors.InvalidArgumentError):
            self.evaluate(get_next())
        self.evaluate(get_next())
        with self.assertRaises(errors.OutOfRangeError):
            self.evaluate(get_next())

    def test_map_captures(self):
        counter = variables.VariableV1(1, dtype=dtypes.int64, use_resource=True)
        dataset = dataset_ops.Dataset.range(3).map(lambda x: x + counter)
        self.evaluate(counter.initializer)
        self.assertDatasetProduces(dataset, [1, 2, 3], requires_initialization=True)
        table = lookup_ops.HashTable(lookup_ops.KeyValueTensorInitializer([b"a"], np.array([7])), -1)
        looked_up = dataset_ops.Dataset.from_tensor_slices([b"a", b"b"]).map(table.lookup)
        self.evaluate(lookup_ops.tables_initializer())
        self.assertDatasetProduces(looked_up, [7, -1], requires_initialization=True)

    def test_filter_and_flat_map(self):
        dataset = dataset_ops.Dataset.range(10).filter(lambda x: math_ops.equal(math_ops.floormod(x, 3), 0))
        self.assertDatasetProduces(dataset, [0, 3, 6, 9])
        flat = dataset_ops.Dataset.range(4).flat_map(lambda x: dataset_ops.Dataset.from_tensors(x).repeat(x))
        self.assertDatasetProduces(flat, [1, 2, 2, 3, 3, 3])

    def test_interleave(self):
        for calls in (None, 2):
            dataset = dataset_ops.Dataset.from_tensor_slices(np.int64([4, 5, 6])).interleave(
                lambda x: dataset_ops.Dataset.from_tensors(x).repeat(x), 2, 1, num_parallel_calls=calls)  # fmt: skip
            self.assertDatasetProduces(dataset, [4, 5] * 4 + [5, 6] + [6] * 5)
        with self.assertRaisesRegex((errors.InvalidArgumentError, ValueError), "cycle_length"):
            self.assertDatasetProduces(dataset_ops.Dataset.range(2).interleave(
                lambda x: dataset_ops.Dataset.from_tensors(x), cycle_length=0), [0])  # fmt: skip

    def test_counts(self):
        ten = dataset_ops.Dataset.range(10)
        for count, expected in ((4, 4), (25, 10), (-1, 10), (0, 0)):
            self.assertDatasetProduces(ten.take(count), list(range(expected)))
        for count, expected in ((4, 4), (25, 10), (-1, 10), (0, 0)):
            self.assertDatasetProduces(ten.skip(count), list(range(expected, 10)))
        self.assertDatasetProduces(ten.shard(5, 2), [2, 7])
        with self.assertRaises((ValueError, errors.InvalidArgumentError)):
            self.assertDatasetProduces(ten.shard(5, 7), [])
        self.assertDatasetProduces(ten.window(4, drop_remainder=True).flat_map(lambda w: w.batch(4)),
                                   [[0, 1, 2, 3], [4, 5, 6, 7]])  # fmt: skip
        self.assertEqual(45, self.evaluate(ten.reduce(np.int64(0), lambda a, b: a + b)))
        self.assertDatasetProduces(ten.enumerate(5).take(2), [(5, 0), (6, 1)])

    def test_shuffle(self):
        dataset = dataset_ops.Dataset.range(20).shuffle(8, seed=3)
        found = self.getDatasetOutput(dataset)
        self.assertCountEqual(range(20), found)
        self.assertNotEqual(list(range(20)), found)
        self.assertDatasetProduces(dataset_ops.Dataset.range(4).shuffle(1), [0, 1, 2, 3])
        twice = dataset_ops.Dataset.range(10).shuffle(10, seed=1, reshuffle_each_iteration=False).repeat(2)
        found = self.getDatasetOutput(twice)
        self.assertEqual(found[:10], found[10:])
        with self.assertRaises((ValueError, errors.InvalidArgumentError)):
            self.assertDatasetProduces(dataset_ops.Dataset.range(4).shuffle(0), [0])

    def test_prefetch_and_cache(self):
        self.assertDatasetProduces(dataset_ops.Dataset.range(10).prefetch(5), list(range(10)))
        with self.assertRaises((ValueError, errors.InvalidArgumentError)):
            self.assertDatasetProduces(dataset_ops.Dataset.range(10).prefetch(-5), [])
        cached = dataset_ops.Dataset.range(5).map(lambda x: random_ops.random_uniform([])).cache().repeat(2)
        found = self.getDatasetOutput(cached, requires_initialization=True)
        self.assertEqual(found[:5], found[5:])
        path = os.path.join(self.get_temp_dir(), "cache")
        on_disk = dataset_ops.Dataset.range(4).cache(path)
        self.assertDatasetProduces(on_disk, [0, 1, 2, 3])
        self.assertDatasetProduces(on_disk, [0, 1, 2, 3])

    def test_experimental(self):
        ten = dataset_ops.Dataset.range(10)
        self.assertDatasetProduces(ten.apply(batching.map_and_batch(lambda x: x + 1, 5)), [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])
        self.assertDatasetProduces(ten.batch(5).apply(batching.unbatch()), list(range(10)))
        self.assertDatasetProduces(
            dataset_ops.Dataset.from_tensor_slices([1, 1, 2]).apply(unique.unique()), [1, 2])
        self.assertDatasetProduces(ten.apply(scan_ops.scan(np.int64(0), lambda s, x: (s + x, s + x))),
                                   list(np.cumsum(range(10))))  # fmt: skip
        reducer = grouping.Reducer(lambda _: np.int64(0), lambda s, x: s + x, lambda s: s)
        self.assertDatasetProduces(ten.apply(grouping.group_by_reducer(lambda x: x % 2, reducer)), [20, 25])
        grouped = ten.apply(grouping.group_by_window(lambda x: x % 2, lambda _, each: each.batch(5), 5))
        self.assertDatasetProduces(grouped, [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]])
        bad = dataset_ops.Dataset.from_tensor_slices(np.float32([1, 0, 2])).map(lambda x: array_ops.check_numerics(1 / x, "m"))
        self.assertDatasetProduces(bad.apply(error_ops.ignore_errors()), [1.0, 0.5])
        chosen = interleave_ops.choose_from_datasets(
            [dataset_ops.Dataset.from_tensors(w).repeat() for w in ("a", "b")],
            dataset_ops.Dataset.from_tensor_slices(np.int64([0, 1, 1])))  # fmt: skip
        self.assertDatasetProduces(chosen, [b"a", b"b", b"b"])
        self.assertEqual(4, self.evaluate(
            __import__("tensorflow").data.experimental.cardinality(dataset_ops.Dataset.range(4))))  # fmt: skip

    def test_options(self):
        options = dataset_ops.Options()
        options.experimental_deterministic = False
        dataset = dataset_ops.Dataset.range(3).with_options(options)
        self.assertFalse(dataset.options().experimental_deterministic)
        self.assertEqual(options, options)
        self.assertDatasetProduces(dataset, [0, 1, 2])

    def test_comparisons(self):
        self.assertDatasetsEqual(dataset_ops.Dataset.range(3), dataset_ops.Dataset.from_tensor_slices(np.int64([0, 1, 2])))
        structured = self.structuredDataset((None, None)) if hasattr(self, "structuredDataset") else None
        self.assertIsNotNone(structured if structured is not None else 1)


class Iterators(test_base.DatasetTestBase):
    def test_one_shot(self):
        with self.cached_session() as sess:
            get_next = dataset_ops.make_one_shot_iterator(dataset_ops.Dataset.range(2)).get_next()
            self.assertEqual([0, 1], [sess.run(get_next), sess.run(get_next)])
            with self.assertRaises(errors.OutOfRangeError):
                sess.run(get_next)

    def test_one_shot_captures(self):
        v = variables.VariableV1(1)
        with self.assertRaisesRegex(ValueError, "`?Dataset.make_one_shot_iterator\\(\\)`? does not support|initializable|capture"):
            dataset_ops.make_one_shot_iterator(dataset_ops.Dataset.range(2).map(lambda x: x + math_ops.cast(v, dtypes.int64)))

    def test_not_initialized(self):
        iterator = dataset_ops.make_initializable_iterator(dataset_ops.Dataset.range(2))
        with self.cached_session() as sess, self.assertRaisesRegex(errors.FailedPreconditionError, "iterator has not been initialized"):
            sess.run(iterator.get_next())

    def test_reinitializable(self):
        a, b = dataset_ops.Dataset.range(3), dataset_ops.Dataset.range(10, 12)
        iterator = iterator_ops.Iterator.from_structure(a.output_types, [])
        first, second = iterator.make_initializer(a), iterator.make_initializer(b)
        get_next = iterator.get_next()
        with self.cached_session() as sess:
            for initializer, expected in ((first, [0, 1, 2]), (second, [10, 11]), (first, [0, 1, 2])):
                sess.run(initializer)
                self.assertEqual(expected, [sess.run(get_next) for _ in expected])
                with self.assertRaises(errors.OutOfRangeError):
                    sess.run(get_next)
        with self.assertRaisesRegex(TypeError, "Expected output types|(not compatible|incompatible)"):
            iterator.make_initializer(dataset_ops.Dataset.from_tensors(1.0))
        with self.assertRaisesRegex(TypeError, "Expected output shapes|(not compatible|incompatible)"):
            iterator.make_initializer(dataset_ops.Dataset.from_tensors(np.int64([1, 2])))

    def test_handles(self):
        a, b = dataset_ops.Dataset.range(3), dataset_ops.Dataset.range(10, 12)
        one, two = dataset_ops.make_one_shot_iterator(a), dataset_ops.make_one_shot_iterator(b)
        handle = array_ops.placeholder(dtypes.string, [])
        feedable = iterator_ops.Iterator.from_string_handle(handle, a.output_types, a.output_shapes)
        next_element = feedable.get_next()
        with self.cached_session() as sess:
            first, second = sess.run([one.string_handle(), two.string_handle()])
            self.assertEqual([0, 10, 1, 11, 2], [sess.run(next_element, {handle: h}) for h in (first, second, first, second, first)])
            with self.assertRaises(errors.OutOfRangeError):
                sess.run(next_element, {handle: first})

    def test_attributes(self):
        iterator = dataset_ops.make_one_shot_iterator(dataset_ops.Dataset.from_tensors((1, 2.0)))
        self.assertEqual((dtypes.int32, dtypes.float32), iterator.output_types)
        self.assertEqual(((), ()), tuple(tuple(s.as_list()) for s in iterator.output_shapes))
        self.assertEqual((ops.Tensor, ops.Tensor), iterator.output_classes)
        with self.assertRaises(ValueError):
            _ = iterator.initializer

    def test_optionals(self):
        from tensorflow.python.data.ops import optional_ops

        with self.cached_session() as sess:
            made = optional_ops.Optional.from_value((1, 2.0))
            self.assertTrue(sess.run(made.has_value()))
            self.assertEqual((1, 2.0), tuple(sess.run(made.get_value())))
            iterator = dataset_ops.make_initializable_iterator(dataset_ops.Dataset.range(1))
            optional = iterator_ops.get_next_as_optional(iterator)
            has, value = optional.has_value(), optional.get_value()
            sess.run(iterator.initializer)
            self.assertEqual([True, 0], sess.run([has, value]))
            self.assertFalse(sess.run(has))
            with self.assertRaises(errors.InvalidArgumentError):
                sess.run(value)


class Structures(test.TestCase):
    def test_nest(self):
        structure = ((3, 4), 5, {"b": [6, 7], "a": (8,)})
        self.assertEqual([3, 4, 5, 8, [6, 7]], nest.flatten(structure))
        self.assertEqual(structure, nest.pack_sequence_as(structure, nest.flatten(structure)))
        self.assertEqual([[1, 2]], nest.flatten([1, 2]))
        with self.assertRaisesRegex(ValueError, "(Structure|structure).*(scalar|elements)"):
            nest.pack_sequence_as(5, [1, 2])
        with self.assertRaises(ValueError):
            nest.pack_sequence_as((1, 2), [1])
        nest.assert_same_structure((1, (2, 3)), (4, (5, 6)))
        with self.assertRaisesRegex(ValueError, "[Dd]on't have the same (nested structure|number of elements)|same"):
            nest.assert_same_structure((1, (2, 3)), (4, 5))
        with self.assertRaisesRegex(TypeError, "same sequence type|type"):
            nest.assert_same_structure((1, (2,)), (1, collections.namedtuple("N", "a")(2)))
        self.assertEqual((2, (3,)), nest.map_structure(lambda x: x + 1, (1, (2,))))
        with self.assertRaisesRegex(ValueError, "[Aa]t least one structure"):
            nest.map_structure(lambda: 1)
        with self.assertRaisesRegex(TypeError, "callable"):
            nest.map_structure("no", (1,))
        self.assertEqual([(1, 2), 3], nest.flatten_up_to(("x", "y"), ((1, 2), 3)))
        with self.assertRaisesRegex(TypeError, "If shallow structure is a sequence, input must also be a sequence"):
            nest.assert_shallow_structure((1, 2), 3)
        with self.assertRaisesRegex(ValueError, "same sequence length"):
            nest.assert_shallow_structure((1, 2), (1, 2, 3))


class Records(test_base.DatasetTestBase):
    def test_text_lines(self):
        path = os.path.join(self.get_temp_dir(), "text")
        with open(path, "wb") as file:
            file.write(b"one\r\ntwo\n\nfour")
        self.assertDatasetProduces(readers.TextLineDataset(path), [b"one", b"two", b"", b"four"])
        self.assertDatasetProduces(readers.TextLineDataset([path, path]).take(5).skip(4), [b"one"])
        with self.assertRaises(errors.NotFoundError):
            self.assertDatasetProduces(readers.TextLineDataset(path + "absent"), [b""])

    def test_fixed_length(self):
        path = os.path.join(self.get_temp_dir(), "fixed")
        with open(path, "wb") as file:
            file.write(b"HHaabbccF")
        self.assertDatasetProduces(readers.FixedLengthRecordDataset(path, 2, 2, 1), [b"aa", b"bb", b"cc"])
        with self.assertRaisesOpError("Excluding the header .* and footer .* input file .* has body length 7 bytes, which is not"):
            self.evaluate(self.getNext(readers.FixedLengthRecordDataset(path, 2, 2, 0))())

    def test_records(self):
        path = os.path.join(self.get_temp_dir(), "records")
        for kind, word in ((python_io.TFRecordCompressionType.NONE, ""), (python_io.TFRecordCompressionType.GZIP, "GZIP")):
            with python_io.TFRecordWriter(path + word, python_io.TFRecordOptions(kind)) as writer:
                for i in range(3):
                    writer.write(compat.as_bytes(f"Record {i}"))
            self.assertDatasetProduces(readers.TFRecordDataset(path + word, word, buffer_size=10),
                                       [b"Record 0", b"Record 1", b"Record 2"])  # fmt: skip
        with open(path, "r+b") as file:
            file.seek(-3, os.SEEK_END)
            file.truncate()
        get_next = self.getNext(readers.TFRecordDataset(path))
        self.evaluate(get_next())
        self.evaluate(get_next())
        with self.assertRaises(errors.DataLossError):
            self.evaluate(get_next())

    def test_files(self):
        folder = self.get_temp_dir()
        for name in ("a.txt", "b.txt", "c.bin"):
            open(os.path.join(folder, name), "w").close()
        dataset = dataset_ops.Dataset.list_files(os.path.join(folder, "*.txt"), shuffle=False)
        self.assertDatasetProduces(
            dataset.map(lambda p: string_ops.regex_replace(p, ".*/", "")), [b"a.txt", b"b.txt"], requires_initialization=True)
        with self.assertRaises((ValueError, errors.InvalidArgumentError)):
            self.assertDatasetProduces(dataset_ops.Dataset.list_files(os.path.join(folder, "*.no")), [], requires_initialization=True)


class Sessions(test.TestCase):
    def test_two_sessions(self):
        with ops.Graph().as_default():
            get_next = dataset_ops.make_one_shot_iterator(dataset_ops.Dataset.range(3)).get_next()
            with session.Session() as one, session.Session() as two:
                self.assertEqual([0, 0, 1], [one.run(get_next), two.run(get_next), one.run(get_next)])

    def test_conditional(self):
        with ops.Graph().as_default(), session.Session() as sess:
            p = array_ops.placeholder(dtypes.bool, [])
            a = dataset_ops.make_one_shot_iterator(dataset_ops.Dataset.range(3))
            value = control_flow_ops.cond(p, a.get_next, lambda: constant_op.constant(-1, dtypes.int64))
            self.assertEqual([0, -1, 1], [sess.run(value, {p: each}) for each in (True, False, True)])
