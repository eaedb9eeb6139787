"""Queues, accumulators, barriers, staging areas and tables."""

import threading

import numpy as np
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.framework import constant_op, dtypes, errors_impl, ops, tensor_shape, test_util
from tensorflow.python.ops import (
    array_ops,
    control_flow_ops,
    data_flow_ops,
    lookup_ops,
    math_ops,
    variables,
)
from tensorflow.python.platform import test


class Fifo(test.TestCase):
    def test_constructor(self):
        with ops.Graph().as_default():
            q = data_flow_ops.FIFOQueue(10, dtypes.float32, name="Q")
        self.assertIsInstance(q.queue_ref, ops.Tensor)
        node = q.queue_ref.op.node_def
        self.assertEqual("Q", node.name)
        self.assertIn(node.op, ("FIFOQueueV2", "FIFOQueue"))
        self.assertEqual(10, node.attr["capacity"].i)
        self.assertEqual([1], list(node.attr["component_types"].list.type))

    def test_shapes(self):
        with ops.Graph().as_default():
            q = data_flow_ops.FIFOQueue(5, (dtypes.int32, dtypes.float32), shapes=(tensor_shape.TensorShape([1, 1, 2, 3]),
                                        tensor_shape.TensorShape([5, 8])), shared_name="foo", name="Q")
            self.assertEqual(b"foo", q.queue_ref.op.get_attr("shared_name"))
            self.assertEqual([[1, 1, 2, 3], [5, 8]], [each.as_list() for each in q.shapes])
            self.assertEqual([dtypes.int32, dtypes.float32], q.dtypes)
            self.assertEqual("Q", q.name)
            a, b = q.dequeue()
            self.assertEqual([1, 1, 2, 3], a.get_shape().as_list())
            a, b = q.dequeue_many(7)
            self.assertEqual([7, 5, 8], b.get_shape().as_list())
            a, b = q.dequeue_up_to(7)
            self.assertEqual([None, 5, 8], b.get_shape().as_list())
            n = array_ops.placeholder(dtypes.int32)
            a, b = q.dequeue_many(n)
            self.assertEqual([None, 5, 8], b.get_shape().as_list())

    def test_refused_shapes(self):
        with ops.Graph().as_default():
            q = data_flow_ops.FIFOQueue(10, dtypes.int32, ((3, 2),))
            q.enqueue(([[1, 2], [3, 4], [5, 6]],))
            with self.assertRaises(ValueError):
                q.enqueue(([[1, 2, 3], [4, 5, 6]],))
            with self.assertRaises(ValueError):
                data_flow_ops.FIFOQueue(10, [dtypes.int32, dtypes.int32], shapes=[[1]])

    @test_util.run_deprecated_v1
    def test_flow(self):
        with self.cached_session() as sess:
            q = data_flow_ops.FIFOQueue(10, dtypes.float32)
            for each in ([10.0], [20.0], [30.0]):
                q.enqueue(each).run()
            self.assertEqual(3, q.size().eval())
            self.assertEqual([10.0, 20.0, 30.0], [sess.run(q.dequeue()) for _ in range(3)])
            self.assertEqual(0, self.evaluate(q.size()))
            self.assertEqual([], q.size().get_shape())

    @test_util.run_deprecated_v1
    def test_many(self):
        with self.cached_session() as sess:
            q = data_flow_ops.FIFOQueue(10, (dtypes.float32, dtypes.int32), shapes=((), (2,)))
            q.enqueue_many([[1.0, 2.0, 3.0], [[1, 2], [3, 4], [5, 6]]]).run()
            floats, ints = sess.run(q.dequeue_many(2))
            self.assertAllEqual([1.0, 2.0], floats)
            self.assertAllEqual([[1, 2], [3, 4]], ints)
            q.enqueue_many([np.zeros([0], np.float32), np.zeros([0, 2], np.int32)]).run()
            self.assertEqual(1, q.size().eval())
            floats, ints = sess.run(q.dequeue_many(0))
            self.assertEqual((0, 2), ints.shape)

    @test_util.run_deprecated_v1
    def test_close(self):
        with self.cached_session():
            q = data_flow_ops.FIFOQueue(10, dtypes.float32, shapes=())
            q.enqueue_many([[1.0, 2.0]]).run()
            self.assertFalse(q.is_closed().eval())
            q.close().run()
            self.assertTrue(q.is_closed().eval())
            self.assertEqual(1.0, q.dequeue().eval())
            with self.assertRaisesRegex(errors_impl.OutOfRangeError, "is closed and has insufficient"):
                q.dequeue_many(2).eval()
            self.assertAllEqual([2.0], q.dequeue_up_to(3).eval())
            with self.assertRaisesRegex(errors_impl.CancelledError, "is closed"):
                q.enqueue([3.0]).run()
            with self.assertRaisesOpError("is closed and has insufficient elements"):
                q.dequeue().eval()

    @test_util.run_deprecated_v1
    def test_cancel_pending(self):
        with self.cached_session() as sess:
            q = data_flow_ops.FIFOQueue(1, dtypes.float32)
            q.enqueue([1.0]).run()
            enqueue, close = q.enqueue([2.0]), q.close(cancel_pending_enqueues=True)
            caught = []

            def blocked():
                try:
                    sess.run(enqueue)
                except errors_impl.CancelledError as error:
                    caught.append(error)

            thread = self.checkedThread(target=blocked)
            thread.start()
            while not thread.is_alive():
                pass
            sess.run(close)
            thread.join()
            self.assertEqual(1, len(caught))

    @test_util.run_deprecated_v1
    def test_shared_with_other_attributes(self):
        with self.cached_session():
            data_flow_ops.FIFOQueue(10, dtypes.float32, shared_name="q_a").queue_ref.op.run()
            for bad, words in (
                (data_flow_ops.FIFOQueue(15, dtypes.float32, shared_name="q_a"), "capacity"),
                (data_flow_ops.FIFOQueue(10, dtypes.int32, shared_name="q_a"), "component types"),
                (data_flow_ops.FIFOQueue(10, dtypes.float32, shapes=[(1,)], shared_name="q_a"), "component shapes"),
                (data_flow_ops.RandomShuffleQueue(10, 5, dtypes.float32, shared_name="q_a"), ""),
            ):
                with self.assertRaisesOpError(words):
                    bad.queue_ref.op.run()

    def test_timeout(self):
        with self.cached_session(config=config_pb2.ConfigProto(operation_timeout_in_ms=20)) as sess:
            q = data_flow_ops.FIFOQueue(10, dtypes.float32)
            with self.assertRaisesRegex(errors_impl.DeadlineExceededError, "Timed out waiting for notification|Timed"):
                sess.run(q.dequeue())

    def test_selected(self):
        with self.cached_session():
            q1 = data_flow_ops.FIFOQueue(10, dtypes.int32)
            q2 = data_flow_ops.FIFOQueue(15, dtypes.int32)
            index = array_ops.placeholder(dtypes.int32)
            q = data_flow_ops.QueueBase.from_list(index, [q1, q2])
            for number, each in enumerate((q1, q2)):
                each.enqueue([10 * number]).run()
                self.assertEqual([10 * number], q.dequeue().eval({index: number}))
            with self.assertRaises((ValueError, TypeError)):
                data_flow_ops.QueueBase.from_list(index, [q1, "no queue"])
            with self.assertRaises((ValueError, TypeError)):
                data_flow_ops.QueueBase.from_list(index, [q1, data_flow_ops.FIFOQueue(15, dtypes.float32)])

    def test_names(self):
        with self.cached_session() as sess:
            q = data_flow_ops.FIFOQueue(10, [dtypes.int32, dtypes.float32], names=["i", "f"], shapes=[(), ()])
            sess.run(q.enqueue({"i": 1, "f": 2.0}))
            sess.run(q.enqueue_many({"i": [3, 4], "f": [5.0, 6.0]}))
            self.assertEqual({"i": 1, "f": 2.0}, sess.run(q.dequeue()))
            many = sess.run(q.dequeue_many(2))
            self.assertAllEqual([3, 4], many["i"])
            with self.assertRaises(ValueError):
                q.enqueue((1, 2.0))
            with self.assertRaises(ValueError):
                q.enqueue({"i": 1})
            with self.assertRaises(ValueError):
                q.enqueue({"i": 1, "f": 1.0, "x": 3})
            with self.assertRaises(ValueError):
                data_flow_ops.FIFOQueue(10, [dtypes.int32], names=["i", "f"])


class OtherQueues(test.TestCase):
    def test_priority(self):
        with self.cached_session() as sess:
            q = data_flow_ops.PriorityQueue(2000, (dtypes.string, dtypes.string), ((), ()))
            for number in (3, 1, 2):
                sess.run(q.enqueue((number, f"a{number}", f"b{number}")))
            self.assertEqual([1, 2, 3], [sess.run(q.dequeue())[0] for _ in range(3)])

    def test_padding(self):
        with self.cached_session() as sess:
            q = data_flow_ops.PaddingFIFOQueue(10, dtypes.float32, ((None,),))
            for each in ([1.0], [1.0, 2.0], [1.0, 2.0, 3.0]):
                q.enqueue([each]).run()
            self.assertAllEqual([[1, 0, 0], [1, 2, 0], [1, 2, 3]], sess.run(q.dequeue_many(3)))
            with self.assertRaises(ValueError):
                data_flow_ops.PaddingFIFOQueue(10, dtypes.float32, (tensor_shape.unknown_shape(),))

    def test_shuffle(self):
        with self.cached_session() as sess:
            q = data_flow_ops.RandomShuffleQueue(20, 0, dtypes.float32, shapes=(), seed=12)
            q.enqueue_many([np.arange(10.0)]).run()
            got = [sess.run(q.dequeue()) for _ in range(10)]
            self.assertItemsEqual(np.arange(10.0), got)
            q2 = data_flow_ops.RandomShuffleQueue(20, 5, dtypes.float32, shapes=())
            q2.enqueue_many([np.arange(7.0)]).run()
            sess.run(q2.dequeue_many(2))
            q2.close().run()
            self.assertEqual(5, len(sess.run(q2.dequeue_many(5))))


class Accumulators(test.TestCase):
    def test_dense(self):
        with self.cached_session() as sess:
            q = data_flow_ops.ConditionalAccumulator(dtypes.float32, name="Q", shape=tensor_shape.TensorShape([1]))
            self.assertEqual("Q", q.name)
            self.assertEqual(0, q.num_accumulated().eval())
            takeg = q.take_grad(1)
            for step, value in ((0, [10.0]), (0, [20.0])):
                q.apply_grad(value, local_step=step).run()
            self.assertEqual(2, sess.run(q.num_accumulated()))
            self.assertAllEqual([15.0], takeg.eval())
            q.apply_grad([99.0], local_step=-1).run()
            self.assertEqual(0, q.num_accumulated().eval())
            q.set_global_step(5).run()

    def test_sum(self):
        with self.cached_session():
            q = data_flow_ops.ConditionalAccumulator(dtypes.float32, shape=[], reduction_type="SUM")
            for value in (10.0, 20.0):
                q.apply_grad(value).run()
            self.assertEqual(30.0, q.take_grad(1).eval())
            with self.assertRaises((errors_impl.InvalidArgumentError, ValueError)):
                data_flow_ops.ConditionalAccumulator(dtypes.float32, shape=[], reduction_type="Invalid").take_grad(1).eval()

    def test_wrong_count_and_shape(self):
        with self.cached_session():
            q = data_flow_ops.ConditionalAccumulator(dtypes.float32, shape=(2,))
            with self.assertRaisesOpError("Argument num_required must be positive"):
                q.take_grad(-1).eval()
            x = array_ops.placeholder(dtypes.float32)
            with self.assertRaises(errors_impl.InvalidArgumentError):
                q.apply_grad(x).run({x: [1.0, 2.0, 3.0]})

    def test_sparse(self):
        with self.cached_session() as sess:
            q = data_flow_ops.SparseConditionalAccumulator(dtypes.float32, name="S", shape=())
            for _ in range(2):
                q.apply_indexed_slices_grad(
                    ops.IndexedSlices(indices=[0, 2], values=np.array([[0, 0, 1], [3, 0, 4]], np.float32))
                ).run()
            self.assertEqual(2, q.num_accumulated().eval())
            value = sess.run(q.take_indexed_slices_grad(1))
            self.assertAllEqual([0, 2], value.indices)
            self.assertAllEqual([[0, 0, 1], [3, 0, 4]], value.values)
            q.apply_grad(grad_indices=[1], grad_values=np.array([[2.0]], np.float32), grad_shape=[3, 1], local_step=1).run()
            self.assertAllEqual([1], sess.run(q.take_grad(1)).indices)


class Barriers(test.TestCase):
    def test_insert_and_take(self):
        with self.cached_session() as sess:
            b = data_flow_ops.Barrier((dtypes.float32, dtypes.float32), shapes=((), ()), name="B")
            self.assertEqual([0], b.ready_size().eval())
            keys = [b"a", b"b", b"c"]
            b.insert_many(0, keys, [10.0, 20.0, 30.0]).run()
            self.assertEqual([0, 3], [b.ready_size().eval(), b.incomplete_size().eval()])
            b.insert_many(1, keys, [100.0, 200.0, 300.0]).run()
            indices, got, values = sess.run(b.take_many(2))[:3]
            self.assertAllEqual([b"a", b"b"], got)
            self.assertEqual(2, len(indices))
            with self.assertRaisesOpError("already has a value"):
                b.insert_many(0, ["d"], [1.0]).run()
                b.insert_many(0, ["d"], [1.0]).run()
            b.close().run()
            with self.assertRaisesOpError("is closed"):
                b.insert_many(0, ["new"], [1.0]).run()


class Staging(test.TestCase):
    def test_one(self):
        with ops.Graph().as_default() as g:
            x = array_ops.placeholder(dtypes.float32)
            stager = data_flow_ops.StagingArea([dtypes.float32, dtypes.float32], shapes=[[], []])
            stage, size, clear = stager.put([x, x * 2]), stager.size(), stager.clear()
            a, b = stager.get()
            peek = stager.peek(0)
        with self.session(graph=g) as sess:
            sess.run(stage, {x: 1.0})
            self.assertEqual(1, sess.run(size))
            self.assertAllEqual([1.0, 2.0], sess.run(peek))
            self.assertEqual([1.0, 2.0], sess.run([a, b]))
            sess.run(stage, {x: 1.0})
            sess.run(clear)
            self.assertEqual(0, sess.run(size))

    def test_dictionary(self):
        with ops.Graph().as_default() as g:
            stager = data_flow_ops.StagingArea([dtypes.float32, dtypes.float32], shapes=[[], []], names=["x", "v"])
            stage = stager.put({"x": constant_op.constant(3.0), "v": constant_op.constant(4.0)})
            got = stager.get()
            with self.assertRaises(ValueError):
                stager.put({"x": constant_op.constant(3.0), "z": constant_op.constant(4.0)})
        with self.session(graph=g) as sess:
            sess.run(stage)
            self.assertEqual({"x": 3.0, "v": 4.0}, sess.run(got))

    def test_map(self):
        with ops.Graph().as_default() as g:
            key = array_ops.placeholder(dtypes.int64)
            area = data_flow_ops.MapStagingArea([dtypes.float32], shapes=[[]])
            put, size = area.put(key, [math_ops.cast(key, dtypes.float32)], [0]), area.size()
            got_key, got = area.get()
            popped = area.get(key)
        with self.session(graph=g) as sess:
            for number in (1, 2):
                sess.run(put, {key: number})
            self.assertEqual(2, sess.run(size))
            self.assertEqual(2, len(sess.run(popped, {key: 2})))
            self.assertEqual(1, sess.run([got_key, got])[0])


class Tables(test.TestCase):
    def test_hash_table(self):
        with self.cached_session():
            table = lookup_ops.HashTable(
                lookup_ops.KeyValueTensorInitializer(constant_op.constant(["brain", "salad", "surgery"]),
                                                     constant_op.constant([0, 1, 2], dtypes.int64)), -1)
            with self.assertRaisesOpError("not initialized"):
                table.lookup(constant_op.constant(["brain"])).eval()
            table.initializer.run()
            self.assertAllEqual(3, table.size())
            self.assertAllEqual([0, 1, -1], table.lookup(constant_op.constant(["brain", "salad", "tank"])))
            with self.assertRaises(TypeError):
                table.lookup(constant_op.constant([1, 2]))

    def test_initialized_twice(self):
        with self.cached_session():
            lookup_ops.HashTable(lookup_ops.KeyValueTensorInitializer(["a"], [1], value_dtype=dtypes.int64), -1)
            self.assertEqual(1, len(ops.get_collection(ops.GraphKeys.TABLE_INITIALIZERS)))
            lookup_ops.tables_initializer().run()
            lookup_ops.tables_initializer().run()

    def test_duplicates(self):
        with self.cached_session():
            table = lookup_ops.HashTable(
                lookup_ops.KeyValueTensorInitializer(["a", "a"], constant_op.constant([1, 2], dtypes.int64)), -1)
            with self.assertRaisesOpError("same key|[Dd]uplicate"):
                table.initializer.run()

    def test_mutable(self):
        with self.cached_session():
            table = lookup_ops.MutableHashTable(dtypes.string, dtypes.int64, -1)
            self.assertAllEqual(0, table.size().eval())
            table.insert(["a", "b"], constant_op.constant([1, 2], dtypes.int64)).run()
            self.assertAllEqual([2, -1], table.lookup(constant_op.constant(["b", "x"])))
            table.remove(constant_op.constant(["a", "x"])).run()
            keys, values = table.export()
            self.assertAllEqual([b"b"], keys.eval())
            self.assertAllEqual([2], values.eval())

    def test_dense(self):
        with self.cached_session():
            table = lookup_ops.DenseHashTable
            table = table(dtypes.int64, dtypes.int64, default_value=-1, empty_key=0, deleted_key=-2)
            table.insert(constant_op.constant([11, 12], dtypes.int64), constant_op.constant([1, 2], dtypes.int64)).run()
            self.assertAllEqual([1, -1], table.lookup(constant_op.constant([11, 15], dtypes.int64)))
            with self.assertRaisesOpError("empty_key"):
                table.insert(constant_op.constant([0], dtypes.int64), constant_op.constant([1], dtypes.int64)).run()

    def test_vocabulary(self):
        with self.cached_session():
            table = lookup_ops.index_table_from_tensor(["brain", "salad"], num_oov_buckets=1)
            with self.assertRaises(errors_impl.OpError):
                table.lookup(constant_op.constant(["salad"])).eval()
            lookup_ops.tables_initializer().run()
            self.assertAllEqual([1, 2], table.lookup(constant_op.constant(["salad", "tarkus"])))
            back = lookup_ops.index_to_string_table_from_tensor(["brain", "salad"], default_value="UNK")
            back.initializer.run()
            self.assertAllEqual([b"salad", b"UNK"], back.lookup(constant_op.constant([1, 4], dtypes.int64)))
            with self.assertRaises(ValueError):
                lookup_ops.index_table_from_tensor(None)
            with self.assertRaises(ValueError):
                lookup_ops.index_table_from_tensor(["a"], num_oov_buckets=-1)


class PartitionAndStitch(test.TestCase):
    @test_util.run_deprecated_v1
    def test_partition(self):
        with self.cached_session():
            data = constant_op.constant([0, 13, 2, 39, 4, 17], dtype=dtypes.float32)
            parts = data_flow_ops.dynamic_partition(data, [0, 0, 2, 3, 2, 1], 4)
            self.assertAllEqual([0, 13], parts[0])
            self.assertAllEqual([2, 4], parts[2])
            self.assertEqual([None], parts[0].get_shape().as_list())
            with self.assertRaisesOpError(r"partitions.* = 99 is not in \[0, 4\)|partitions"):
                data_flow_ops.dynamic_partition(data, [0, 0, 2, 99, 2, 2], 4)[0].eval()
            with self.assertRaisesRegex(ValueError, "must be"):
                data_flow_ops.dynamic_partition(data, [0, 0], 4)
            with self.assertRaises(ValueError):
                data_flow_ops.dynamic_partition(data, [0, 0, 2, 3, 2, 1], 0)

    @test_util.run_deprecated_v1
    def test_stitch(self):
        for stitch in (data_flow_ops.dynamic_stitch, data_flow_ops.parallel_dynamic_stitch):
            with self.cached_session():
                indices = [constant_op.constant([0, 4, 7]), constant_op.constant([1, 6, 2, 3, 5])]
                data = [constant_op.constant([0, 40, 70]), constant_op.constant([10, 60, 20, 30, 50])]
                out = stitch(indices, data)
                self.assertAllEqual([0, 10, 20, 30, 40, 50, 60, 70], out)
                self.assertEqual([8], out.get_shape().as_list())
                with self.assertRaises(ValueError):
                    stitch([0, 1], [0.0, [1.0]])


class Threads(test.TestCase):
    def test_parallel(self):
        with self.cached_session() as sess:
            q = data_flow_ops.FIFOQueue(100, dtypes.float32, shapes=())
            enqueues = [q.enqueue((float(each),)) for each in range(10)]
            threads = [self.checkedThread(target=sess.run, args=(each,)) for each in enqueues]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertItemsEqual([float(each) for each in range(10)], sess.run(q.dequeue_many(10)))
            self.assertIsInstance(threading.current_thread(), threading.Thread)
            self.assertTrue(variables.global_variables() == [])
            self.assertIsNotNone(control_flow_ops.group())


if __name__ == "__main__":
    test.main()
