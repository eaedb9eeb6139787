"""Sessions as a client sees them: fetches, feeds, callables, partial runs, devices, clusters in their settings."""

import collections
import json
import threading

import numpy as np
from tensorflow.core.framework import attr_value_pb2, types_pb2
from tensorflow.core.protobuf import cluster_pb2, config_pb2
from tensorflow.python.client import session, timeline
from tensorflow.python.framework import (
    constant_op,
    dtypes,
    errors,
    function,
    importer,
    indexed_slices,
    ops,
    sparse_tensor,
    tensor_util,
    test_util,
)
from tensorflow.python.ops import (
    array_ops,
    control_flow_ops,
    data_flow_ops,
    gen_control_flow_ops,
    gradients_impl,
    math_ops,
    state_ops,
    variables,
)
from tensorflow.python.platform import googletest
from tensorflow.python.training import server_lib
from tensorflow.python.util import compat

try:
    import attr
except ImportError:
    attr = None


class Runs(test_util.TensorFlowTestCase):
    def test_use_existing_graph(self):
        with ops.Graph().as_default() as g, ops.device("/cpu:0"):
            c = math_ops.matmul(constant_op.constant(6.0, shape=[1, 1]), constant_op.constant(7.0, shape=[1, 1]))
        with session.Session(graph=g):
            self.assertAllEqual(c.eval(), [[42.0]])

    def test_default_graph(self):
        with ops.Graph().as_default(), ops.device("/cpu:0"):
            a = constant_op.constant(6.0, shape=[1, 1])
            b = constant_op.constant(7.0, shape=[1, 1])
            c = math_ops.matmul(a, b)
            self.assertEqual(ops.get_default_graph(), c.graph)
            with session.Session() as s:
                self.assertEqual(ops.get_default_graph(), s.graph)
                self.assertAllEqual(c.eval(), [[42.0]])

    def test_create(self):
        with session.Session():
            inp = constant_op.constant(10.0, shape=[2, 3], name="W1")
            copy = array_ops.identity(inp)
            self.assertAllEqual(copy.eval(), np.full((2, 3), 10.0, np.float32))

    def test_many_cpus(self):
        with session.Session(config=config_pb2.ConfigProto(device_count={"CPU": 2, "GPU": 0})):
            inp = constant_op.constant(10.0, name="W1")
            self.assertAllEqual(inp.eval(), 10.0)
            devices = ops.get_default_session().list_devices()
            self.assertEqual(2, sum(each.device_type == "CPU" for each in devices))

    def test_thread_pools(self):
        config = config_pb2.ConfigProto()
        for options in ({}, {"num_threads": 1}, {"num_threads": 1, "global_name": "t1"}):
            config.session_inter_op_thread_pool.add(**options)
        with session.Session(config=config) as s:
            inp = constant_op.constant(10.0, name="W1")
            results = [s.run([inp])]
            for index in (0, 1, 2):
                results.append(s.run([inp], options=config_pb2.RunOptions(inter_op_thread_pool=index)))
            for each in results:
                self.assertAllEqual([10.0], each)

    def test_global_pool_names_differ(self):
        config = config_pb2.ConfigProto()
        config.session_inter_op_thread_pool.add()
        config.session_inter_op_thread_pool.add(num_threads=1, global_name="shared pool a")
        config.session_inter_op_thread_pool.add(num_threads=2, global_name="shared pool b")
        with session.Session(config=config) as s:
            self.assertEqual(1, s.run(constant_op.constant(1)))

    def test_errors_payload(self):
        with session.Session():
            a = array_ops.placeholder(dtypes.float32, shape=[])
            with self.assertRaisesOpError(lambda error: "placeholder" in error.message.lower()):
                a.eval()

    def test_op_construction_error(self):
        with session.Session():
            with self.assertRaisesRegex(ValueError, "Shape must be rank 2 but is rank 0|rank 2"):
                math_ops.matmul(3.0, constant_op.constant([[1.0]]))
            with self.assertRaises((ValueError, TypeError, errors.InvalidArgumentError)):
                control_flow_ops.switch(3, [True, False])

    def test_fetch_none(self):
        with session.Session() as s:
            constant_op.constant(0)
            with self.assertRaises(TypeError):
                s.run(None)
            with self.assertRaises(TypeError):
                s.run([None])
            with self.assertRaises(TypeError):
                s.run({"b": None})
            with self.assertRaises(TypeError):
                s.run({"a": constant_op.constant(1), "b": None})

    def test_singleton_fetch(self):
        with session.Session() as sess:
            self.assertEqual(42.0, sess.run(constant_op.constant(42.0)))

    def test_fetch_by_name(self):
        with session.Session() as sess:
            constant_op.constant(42.0, name="c")
            self.assertEqual(42.0, sess.run("c:0"))
            self.assertIsNone(sess.run("c"))

    def test_fetch_operation(self):
        with session.Session() as sess:
            a = constant_op.constant([1.0])
            v = variables.VariableV1([54.0])
            self.assertIsNone(sess.run(v.initializer))
            self.assertIsNone(sess.run(a.op))
            self.assertAllEqual([None, [54.0]], [sess.run([v.initializer, v])[0], sess.run(v)])

    def test_singleton_by_name_feed(self):
        with session.Session() as sess:
            a = constant_op.constant(5.0, name="fed")
            b = a * 2.0
            self.assertEqual(14.0, sess.run(b, feed_dict={"fed:0": 7.0}))

    def test_fetch_list(self):
        with session.Session() as sess:
            a = constant_op.constant(42.0)
            b = control_flow_ops.no_op()
            c = constant_op.constant(44.0)
            v = variables.VariableV1([54.0])
            assign = v.assign([63.0])
            result = sess.run([a, b, c, a.name, assign.op])
            self.assertIsInstance(result, list)
            self.assertEqual([42.0, None, 44.0, 42.0, None], result)

    def test_fetch_tuple(self):
        with session.Session() as sess:
            a = constant_op.constant(42.0)
            b = control_flow_ops.no_op()
            c = constant_op.constant(44.0)
            result = sess.run((a, b, c, a.name))
            self.assertIsInstance(result, tuple)
            self.assertEqual((42.0, None, 44.0, 42.0), result)

    def test_fetch_named_tuple(self):
        abc = collections.namedtuple("ABC", ["a", "b", "c"])
        with session.Session() as sess:
            result = sess.run(
                abc(a=constant_op.constant(42.0), b=control_flow_ops.no_op(), c=constant_op.constant(44.0))
            )
            self.assertIsInstance(result, abc)
            self.assertEqual((42.0, None, 44.0), tuple(result))

    def test_fetch_dict(self):
        with session.Session() as sess:
            a = constant_op.constant(42.0)
            b = control_flow_ops.no_op()
            result = sess.run({"a": a, "b": b, "c": "Const:0"})
            self.assertEqual({"a": 42.0, "b": None, "c": 42.0}, result)

    def test_fetch_ordered_and_default_dict(self):
        with session.Session() as sess:
            a = constant_op.constant(42.0)
            b = constant_op.constant(43.0)
            ordered = collections.OrderedDict([(3, a), (2, b), (1, a)])
            result = sess.run(ordered)
            self.assertIsInstance(result, collections.OrderedDict)
            self.assertEqual([3, 2, 1], list(result))
            grouped = collections.defaultdict(list, {"x": [a, b]})
            self.assertEqual({"x": [42.0, 43.0]}, dict(sess.run(grouped)))

    def test_fetch_nested(self):
        abc = collections.namedtuple("ABC", ["a", "b", "c"])
        with session.Session() as sess:
            a, b, c = constant_op.constant(42.0), constant_op.constant(44.0), constant_op.constant(46.0)
            got = sess.run([abc(a=a, b=[b, (a, c)], c={"k": c}), {"deep": {"er": (a.op, b)}}, []])
            self.assertEqual(42.0, got[0].a)
            self.assertEqual([44.0, (42.0, 46.0)], got[0].b)
            self.assertEqual({"k": 46.0}, got[0].c)
            self.assertEqual({"deep": {"er": (None, 44.0)}}, got[1])
            self.assertEqual([], got[2])

    def test_fetch_attrs(self):
        if attr is None:
            return  # the attrs package is not installed

        @attr.s
        class Pair:
            field1 = attr.ib()
            field2 = attr.ib()

        with session.Session() as sess:
            val1, val2 = constant_op.constant(1.0), constant_op.constant(2)
            got = sess.run(Pair(val1, Pair(val2, [val1])))
            self.assertIsInstance(got, Pair)
            self.assertEqual(1.0, got.field1)
            self.assertEqual(2, got.field2.field1)
            self.assertEqual([1.0], got.field2.field2)
            fed = array_ops.placeholder(dtypes.float32)
            sample = Pair(fed, fed)
            self.assertEqual(5.0, sess.run(fed, {fed: 5.0}))
            self.assertEqual(Pair(5.0, 5.0), sess.run(sample, {fed: 5.0}))

    def test_empty_fetches(self):
        with session.Session() as sess:
            constant_op.constant(1)
            self.assertEqual([], sess.run([]))
            self.assertEqual((), sess.run(()))
            self.assertEqual({}, sess.run({}))
            self.assertEqual([[], {}], sess.run([[], {}]))

    def test_fetch_sparse(self):
        with session.Session() as s:
            indices = np.array([[3, 2, 0], [4, 5, 1]]).astype(np.int64)
            values = np.array([1.0, 2.0]).astype(np.float32)
            shape = np.array([7, 9, 2]).astype(np.int64)
            sp = sparse_tensor.SparseTensor(
                constant_op.constant(indices), constant_op.constant(values), constant_op.constant(shape)
            )
            for got in (s.run(sp), s.run([sp])[0], s.run({"sp": sp})["sp"], s.run((sp,))[0]):
                self.assertIsInstance(got, sparse_tensor.SparseTensorValue)
                self.assertAllEqual(got.indices, indices)
                self.assertAllEqual(got.values, values)
                self.assertAllEqual(got.dense_shape, shape)
            found_indices, found_values, found_shape = s.run(sp)
            self.assertAllEqual(found_shape, shape)
            got = s.run(tuple([sp.indices, sp.values, sp.dense_shape]))
            self.assertAllEqual(got[0], indices)

    def test_feed_sparse(self):
        with session.Session() as s:
            indices = np.array([[3, 2, 0], [4, 5, 1]]).astype(np.int64)
            values = np.array([1.0, 2.0]).astype(np.float32)
            shape = np.array([7, 9, 2]).astype(np.int64)
            sp = sparse_tensor.SparseTensor(
                array_ops.placeholder(dtype=np.int64, shape=(2, 3)),
                array_ops.placeholder(dtype=np.float32, shape=(2,)),
                array_ops.placeholder(dtype=np.int64, shape=(3,)),
            )
            copies = [array_ops.identity(each) for each in (sp.indices, sp.values, sp.dense_shape)]
            copy = sparse_tensor.SparseTensor(*copies)
            for fed in ((indices, values, shape), sparse_tensor.SparseTensorValue(indices, values, shape)):
                got = s.run(copies, {sp: fed})
                self.assertAllEqual(got[0], indices)
                self.assertAllEqual(got[1], values)
                self.assertAllEqual(s.run(copy, {sp: fed}).dense_shape, shape)

    def test_sparse_placeholders(self):
        with session.Session() as s:
            indices = np.array([[3, 2], [4, 5]]).astype(np.int64)
            values = np.array([1.0, 2.0]).astype(np.float32)
            for shape in ((10, 7), [None, 7], None):
                sp = array_ops.sparse_placeholder(dtype=np.float32, shape=shape)
                total = array_ops.identity(sp.values) * 2
                got = s.run(total, {sp: sparse_tensor.SparseTensorValue(indices, values, [10, 7])})
                self.assertAllEqual([2.0, 4.0], got)
            known = array_ops.sparse_placeholder(dtype=np.float32, shape=[10, 9])
            self.assertAllEqual([10, 9], s.run(known.dense_shape, {known: (indices, values)}))

    def test_fetch_and_feed_indexed_slices(self):
        with session.Session() as s:
            values = np.array([1.0, 2.0]).astype(np.float32)
            indices = np.array([3, 2]).astype(np.int64)
            shape = np.array([7]).astype(np.int64)
            ind = ops.IndexedSlices(
                constant_op.constant(values), constant_op.constant(indices), constant_op.constant(shape)
            )
            for got in (s.run(ind), s.run([ind])[0]):
                self.assertIsInstance(got, indexed_slices.IndexedSlicesValue)
                self.assertAllEqual(got.values, values)
                self.assertAllEqual(got.indices, indices)
                self.assertAllEqual(got.dense_shape, shape)
            fed = ops.IndexedSlices(
                array_ops.placeholder(np.float32, [2]),
                array_ops.placeholder(np.int64, [2]),
                array_ops.placeholder(np.int64, [1]),
            )
            total = array_ops.identity(fed.values)
            self.assertAllEqual(values, s.run(total, {fed: (values, indices, shape)}))
            self.assertAllEqual(values, s.run(total, {fed: indexed_slices.IndexedSlicesValue(values, indices, shape)}))
            bare = ops.IndexedSlices(constant_op.constant(values), constant_op.constant(indices), None)
            self.assertIsNone(s.run(bare).dense_shape)
            fed = ops.IndexedSlices(array_ops.placeholder(np.float32, [2]), array_ops.placeholder(np.int64, [2]), None)
            self.assertAllEqual(values, s.run(fed.values * 1.0, {fed: (values, indices)}))

    def test_extend_with_status_cleared(self):
        with session.Session() as s:
            self.assertEqual([1.0], s.run([constant_op.constant(1.0)]))
            self.assertEqual([2.0], s.run([constant_op.constant(2.0)]))
            e = math_ops.matmul(constant_op.constant([[1.0]]), array_ops.placeholder(dtypes.float32))
            with self.assertRaises(errors.InvalidArgumentError):
                s.run(e)
            self.assertEqual([3.0], s.run([constant_op.constant(3.0)]))

    def test_use_after_close(self):
        with session.Session() as sess:
            c = constant_op.constant(5.0)
            self.assertEqual(5.0, sess.run(c))
        with self.assertRaisesWithPredicateMatch(
            RuntimeError, lambda e: "Attempted to use a closed Session." in str(e)
        ):
            sess.run(c)

    def test_use_after_close_concurrent(self):
        with session.Session() as sess:
            c = constant_op.constant(5.0)
            self.assertAllEqual(sess.run(c), 5.0)
            started = threading.Event()
            complaints = []

            def run():
                started.set()
                try:
                    while True:
                        sess.run(c)
                except (RuntimeError, errors.CancelledError) as error:
                    complaints.append(error)

            t = threading.Thread(target=run)
            t.start()
            started.wait()
            sess.close()
            t.join()
            self.assertEqual(1, len(complaints))

    def test_use_empty_graph(self):
        with session.Session() as sess:
            with self.assertRaisesRegex(RuntimeError, "The Session graph is empty."):
                sess.run([])
            with self.assertRaisesRegex(RuntimeError, "The Session graph is empty."):
                sess.run(())
            with self.assertRaisesRegex(RuntimeError, "The Session graph is empty."):
                sess.run({})

    def test_not_entered(self):
        sess = session.Session()
        self.assertIsNone(ops.get_default_session())
        c = constant_op.constant(5.0)
        self.assertEqual(ops.get_default_graph(), c.graph)
        with self.assertRaisesWithPredicateMatch(ValueError, lambda e: "No default session is registered." in str(e)):
            c.eval()
        self.assertEqual(5.0, c.eval(session=sess))
        with self.assertRaisesWithPredicateMatch(ValueError, lambda e: "No default session is registered." in str(e)):
            c.op.run()
        c.op.run(session=sess)

    def test_default_of_scope(self):
        with session.Session() as sess:
            self.assertEqual(sess, ops.get_default_session())
            with session.Session() as inner:
                self.assertEqual(inner, ops.get_default_session())
                self.assertNotEqual(sess, ops.get_default_session())
            self.assertEqual(sess, ops.get_default_session())
        self.assertIsNone(ops.get_default_session())

    def test_as_default_stays_open(self):
        c = constant_op.constant(37)
        sess = session.Session()
        with sess.as_default():
            self.assertEqual(37, c.eval())
        with sess.as_default():
            self.assertEqual(37, c.eval())
        sess.close()

    def test_interactive(self):
        with ops.Graph().as_default(), ops.device("/cpu:0"):
            sess = session.InteractiveSession()
            a = constant_op.constant(6.0, shape=[1, 1])
            c = math_ops.matmul(a, a, name="matmul")
            self.assertAllEqual([[36.0]], c.eval())
            self.assertIs(sess, ops.get_default_session())
            c.op.run()
            sess.close()
            self.assertIsNone(ops.get_default_session())

    def test_interactive_placed(self):
        config = config_pb2.ConfigProto(allow_soft_placement=True)
        with ops.Graph().as_default(), ops.device("/cpu:0"):
            sess = session.InteractiveSession(config=config)
            self.assertEqual(6.0, (constant_op.constant(2.0) * 3.0).eval())
            sess.close()

    def test_shared_graph(self):
        with ops.Graph().as_default() as g, ops.device("/cpu:0"):
            a = constant_op.constant(6.0, shape=[1, 1])
            c = math_ops.matmul(a, a)
        with session.Session(graph=g) as one, session.Session(graph=g) as two:
            self.assertAllEqual(one.run(c), two.run(c))

    def test_duplicated_inputs(self):
        with session.Session() as sess:
            a = constant_op.constant(1.0, shape=[1, 2])
            b = constant_op.constant(2.0, shape=[1, 3])
            a_val, b_val, a2_val = sess.run([a, b, a])
            self.assertAllEqual(a_val, [[1.0, 1.0]])
            self.assertAllEqual(b_val, [[2.0, 2.0, 2.0]])
            self.assertAllEqual(a2_val, [[1.0, 1.0]])

    def test_feed_and_fetch_each_type(self):
        with session.Session() as sess:
            for dtype in (
                dtypes.float16,
                dtypes.float32,
                dtypes.float64,
                dtypes.int32,
                dtypes.uint8,
                dtypes.int16,
                dtypes.int8,
                dtypes.int64,
                dtypes.bool,
                dtypes.complex64,
                dtypes.complex128,
            ):
                for shape in [(32, 4, 128), (37,), (2, 0, 6), (0, 0, 0)]:
                    np_array = np.random.randint(-10, 10, shape)
                    if dtype == dtypes.bool:
                        np_array = np_array > 0
                    elif dtype.is_complex:
                        np_array = np.sqrt(np_array.astype(np.complex128)).astype(dtype.as_numpy_dtype)
                    else:
                        np_array = np_array.astype(dtype.as_numpy_dtype)
                    feed_t = array_ops.placeholder(dtype=dtype, shape=shape)
                    out_t = array_ops.identity(feed_t)
                    self.assertAllEqual(np_array, sess.run(out_t, feed_dict={feed_t: np_array}))
                    self.assertAllEqual(np_array, out_t.eval(feed_dict={feed_t: np_array}))
                    self.assertAllEqual(np_array, sess.run(feed_t, feed_dict={feed_t: np_array}))
                    fed, out = sess.run([feed_t, out_t], feed_dict={feed_t: np_array})
                    self.assertAllEqual(fed, out)

    def test_strings(self):
        with session.Session() as sess:
            for shape in [(32, 4), (37,), (2, 0, 6), (0,), ()]:
                size = int(np.prod(shape))
                c_list = np.array([compat.as_bytes(str(i)) for i in range(size)], dtype=object).reshape(shape)
                c = constant_op.constant(c_list, dtype=dtypes.string, shape=shape)
                out = sess.run(c)
                if shape:
                    self.assertAllEqual(out.shape, shape)
                feed_t = array_ops.placeholder(dtype=dtypes.string, shape=shape)
                got = sess.run(array_ops.identity(feed_t), feed_dict={feed_t: c_list})
                self.assertAllEqual(c_list, got)

    def test_strings_with_zeros(self):
        with session.Session():
            word = b"\n\x01\x00\x00\x00"
            c = constant_op.constant([word, word * 2])
            self.assertEqual([word, word * 2], list(c.eval()))

    def test_unicode(self):
        with session.Session() as sess:
            word = "\n\x01\x00\xdc\n"
            c = constant_op.constant(word)
            self.assertEqual(c.eval(), word.encode("utf-8"))
            feed_t = array_ops.placeholder(dtype=dtypes.string, shape=[2])
            words = ["ﬁrst", "sécond"]
            out = sess.run(array_ops.identity(feed_t), feed_dict={feed_t: words})
            self.assertEqual([word.encode("utf-8") for word in words], list(out))

    def test_invalid_target(self):
        with self.assertRaises(errors.NotFoundError):
            session.Session("INVALID_TARGET")

    def test_closed_server_refused(self):
        with self.assertRaisesRegex((TypeError, ValueError), "target"):
            session.Session(37)

    def test_bad_arguments(self):
        with self.assertRaisesRegex(TypeError, "must be a tf.Graph"):
            session.Session(graph=37)
        with self.assertRaisesRegex(TypeError, "must be a tf.ConfigProto"):
            session.Session(config=37)
        with self.assertRaises(TypeError):
            session.Session(target=ops.Graph())

    def test_nested_with_twice(self):
        sess = session.Session()
        with sess:
            with self.assertRaisesRegex(RuntimeError, "not re-entrant"):
                with sess:
                    pass

    def test_session_with_wrong_graph(self):
        with ops.Graph().as_default():
            other = constant_op.constant(1.0)
        with ops.Graph().as_default(), session.Session() as sess:
            constant_op.constant(2.0)
            with self.assertRaisesRegex(ValueError, "not an element of this graph"):
                sess.run(other)
            with self.assertRaisesRegex(TypeError, "not an element of this graph"):
                sess.run(constant_op.constant(2.0), {other: 1.0})
            with self.assertRaises(ValueError):
                other.eval()

    def test_feed_errors(self):
        with session.Session() as sess:
            a = constant_op.constant(1.0, dtype=dtypes.float32, name="a")
            with self.assertRaisesRegex(TypeError, "Cannot interpret feed_dict"):
                sess.run(a, feed_dict={"a": [2.0]})
            with self.assertRaisesRegex(TypeError, "may not be a tf.Tensor|cannot be a tf.Tensor"):
                sess.run(a, feed_dict={a: constant_op.constant(2.0)})
            with self.assertRaisesRegex(TypeError, "The value of a feed cannot be a tf.Tensor object"):
                sess.run(a, feed_dict={a: a})
            with self.assertRaisesRegex(ValueError, "Cannot feed value of shape"):
                sess.run(a, feed_dict={a: [1.0, 2.0]})
            ints = array_ops.placeholder(dtypes.int32)
            with self.assertRaisesRegex(TypeError, "Type of feed value"):
                sess.run(ints, {ints: 2**40})

    def test_feed_shape_compatibility(self):
        with session.Session() as sess:
            some_tensor = constant_op.constant([2.0, 2.0, 2.0, 2.0])
            new_shape = constant_op.constant([2, 2])
            reshaped = array_ops.reshape(some_tensor, new_shape)
            with self.assertRaisesRegex(ValueError, "Cannot feed value of shape"):
                sess.run(reshaped, feed_dict={some_tensor: [1.0, 2.0, 3.0]})
            with self.assertRaisesRegex(
                (errors.InvalidArgumentError, ValueError), "Input to reshape is a tensor with 4 values|Cannot feed"
            ):
                sess.run(reshaped, feed_dict={new_shape: [3, 7]})

    def test_not_feedable(self):
        with session.Session() as sess:
            a = constant_op.constant(1.0, name="a")
            b = a + 1.0
            ops.get_default_graph().prevent_feeding(a)
            self.assertFalse(ops.get_default_graph().is_feedable(a))
            self.assertTrue(ops.get_default_graph().is_feedable(b))
            with self.assertRaisesRegex(ValueError, "may not be fed"):
                sess.run(b, {a: 2.0})
            self.assertEqual(2.0, sess.run(b))

    def test_not_fetchable(self):
        with session.Session() as sess:
            a = constant_op.constant(1.0, name="a")
            ops.get_default_graph().prevent_fetching(a.op)
            with self.assertRaisesRegex(ValueError, "may not be fetched|has been marked as not fetchable"):
                sess.run(a)

    def test_feed_dict_of_other_key(self):
        with session.Session() as sess:
            a = constant_op.constant(1, dtype=dtypes.int32, name="a")
            with self.assertRaisesRegex(TypeError, "Cannot interpret feed_dict"):
                sess.run(a, feed_dict={None: [2]})
            with self.assertRaisesRegex(TypeError, "Cannot interpret feed_dict"):
                sess.run(a, feed_dict={3: [2]})

    def test_timeout(self):
        with session.Session() as sess:
            q = data_flow_ops.FIFOQueue(1, dtypes=[dtypes.float32])
            item = q.dequeue()
            with self.assertRaises(errors.DeadlineExceededError):
                sess.run(item, options=config_pb2.RunOptions(timeout_in_ms=50))
            with self.assertRaises(errors.DeadlineExceededError):
                item.eval = None or sess.run(item, options=config_pb2.RunOptions(timeout_in_ms=10))
        config = config_pb2.ConfigProto(operation_timeout_in_ms=50)
        with session.Session(config=config) as sess:
            with self.assertRaises(errors.DeadlineExceededError):
                sess.run(item)

    def test_default_session_threads(self):
        c = constant_op.constant(5.0)
        with session.Session() as sess:
            results = []

            def work():
                results.append((ops.get_default_session(), sess.run(c)))

            threads = [threading.Thread(target=work) for _ in range(20)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            self.assertEqual([(None, 5.0)] * 20, results)

    def test_parallel_updates(self):
        with session.Session() as sess:
            v = variables.VariableV1(0)
            update = v.assign_add(1, use_locking=True)
            sess.run(v.initializer)
            threads = [threading.Thread(target=lambda: [sess.run(update) for _ in range(5)]) for _ in range(4)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            self.assertEqual(20, sess.run(v))

    def test_graph_def(self):
        with session.Session() as sess:
            self.assertEqual(0, len(sess.graph_def.node))
            c = constant_op.constant(5.0, name="c")
            self.assertEqual(1, len(sess.graph_def.node))
            d = constant_op.constant(6.0, name="d")
            self.assertEqual(2, len(sess.graph_def.node))
            self.assertAllEqual(c.eval(), 5.0)
            self.assertAllEqual(d.eval(), 6.0)
            e = constant_op.constant(7.0, name="e")
            self.assertEqual(3, len(sess.graph_def.node))
            self.assertAllEqual(e.eval(), 7.0)

    def test_graph_version(self):
        with ops.Graph().as_default() as g:
            self.assertEqual(0, g.version)
            constant_op.constant(1.0)
            before = g.version
            constant_op.constant(1.0)
            self.assertGreater(g.version, before)


class Conversions(test_util.TensorFlowTestCase):
    def test_registered_twice(self):
        class Squared:
            def __init__(self, tensor):
                self.sq = math_ops.square(tensor)

        def fetch(squared):
            return [squared.sq], lambda val: val[0]

        def feed(fed, value):
            return [(fed.sq, value)]

        def partial(fed):
            return [fed.sq]

        session.register_session_run_conversion_functions(Squared, fetch, feed, partial)
        with self.assertRaises(ValueError):
            session.register_session_run_conversion_functions(Squared, fetch, feed, partial)
        with session.Session() as sess:
            two = array_ops.placeholder_with_default(2.0, [])
            squared = Squared(two)
            self.assertAllClose(4.0, sess.run(squared))
            self.assertAllClose(4.0, sess.run([squared, two])[0])
            self.assertAllClose(49.0, sess.run(squared, feed_dict={two: 7.0}))
            self.assertAllClose(24.0, sess.run(squared, feed_dict={squared: 24.0}))
            self.assertAllClose([9.0, 9.0], sess.run([squared, {"x": squared}["x"]], {two: 3.0}))

    def test_partial_run_of_registered(self):
        class Halved:
            def __init__(self, tensor):
                self.half = tensor / 2.0

        session.register_session_run_conversion_functions(
            Halved,
            lambda h: ([h.half], lambda val: val[0]),
            lambda fed, value: [(fed.half, value)],
            lambda fed: [fed.half],
        )
        with session.Session() as sess:
            two = math_ops.add(constant_op.constant(1.0), 1.0)
            halved = Halved(two)
            squared = math_ops.square(halved.half)
            handle = sess.partial_run_setup([squared], [halved])
            self.assertAllClose(36.0, sess.partial_run(handle, squared, {halved: 6.0}))

    def test_graph_element(self):
        class Element:
            def __init__(self, tensor):
                self.tensor = tensor

            def _as_graph_element(self):
                return self.tensor

        with session.Session() as sess:
            one = Element(constant_op.constant(3.0))
            self.assertEqual(3.0, sess.run(one))
            self.assertEqual([3.0, None], sess.run([one, Element(one.tensor.op)]))
            v = variables.VariableV1([37.0], name="v")
            v.initializer.run()
            self.assertAllEqual([37.0], sess.run(v))
            self.assertAllEqual([{"v": 37.0}], [{"v": sess.run({"v": v})["v"][0]}])

    def test_fetch_handlers_of_callables(self):
        with session.Session() as sess:
            a = array_ops.placeholder(dtypes.float32, [], name="a")
            b = a * 2.0
            for function_ in (sess.make_callable({"b": b, "l": [a, (b,)]}, [a]),):
                self.assertEqual({"b": 6.0, "l": [3.0, (6.0,)]}, function_(3.0))


class Callables(test_util.TensorFlowTestCase):
    def test_no_feed(self):
        with session.Session() as sess:
            a = constant_op.constant(42.0)
            self.assertEqual(42.0, sess.make_callable(a)())
            self.assertEqual([42.0, None], sess.make_callable([a, a.op])())
            self.assertEqual(42.0, sess.make_callable("Const:0")())

    def test_operation_only(self):
        with session.Session() as sess:
            v = variables.VariableV1(42.0)
            sess.run(v.initializer)
            assign = v.assign(7.0)
            self.assertIsNone(sess.make_callable(assign.op)())
            self.assertEqual(7.0, sess.run(v))

    def test_feeds(self):
        with session.Session() as sess:
            a = array_ops.placeholder(dtypes.float32, shape=[], name="a")
            b = array_ops.placeholder(dtypes.float32, shape=[], name="b")
            add = sess.make_callable(a + b, feed_list=[a, b.name])
            self.assertEqual(3.0, add(1.0, 2.0))
            with self.assertRaises(TypeError):
                sess.make_callable(a, feed_list=a)

    def test_raw_operation_accepted(self):
        with session.Session() as sess:
            a = constant_op.constant(42.0)
            run = sess.make_callable(a, accept_options=True)
            metadata = config_pb2.RunMetadata()
            options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)
            self.assertEqual(42.0, run(options=options, run_metadata=metadata))
            self.assertGreater(len(metadata.step_stats.dev_stats), 0)

    def test_from_options(self):
        with session.Session() as sess:
            ph = array_ops.placeholder(dtypes.float32)
            a = math_ops.add(ph, 1.0)
            options = config_pb2.CallableOptions(feed=[ph.name], fetch=[a.name])
            run = sess._make_callable_from_options(options)
            for _ in range(3):
                self.assertAllClose(np.array([3.5], np.float32), run(np.array(2.5, np.float32)))
            self.assertEqual(1, len(run(np.array(1.0, np.float32))))

    def test_from_options_with_metadata(self):
        with session.Session() as sess:
            ph = array_ops.placeholder(dtypes.float32)
            a = math_ops.add(ph, 1.0)
            options = config_pb2.CallableOptions(feed=[ph.name], fetch=[a.name])
            options.run_options.trace_level = config_pb2.RunOptions.FULL_TRACE
            run = sess._make_callable_from_options(options)
            metadata = config_pb2.RunMetadata()
            self.assertAllClose([3.0], run(np.array(2.0, np.float32), run_metadata=metadata))
            self.assertGreater(len(metadata.step_stats.dev_stats), 0)

    def test_from_options_with_target(self):
        with session.Session() as sess:
            v = variables.VariableV1(0.0)
            sess.run(v.initializer)
            run = sess._make_callable_from_options(
                config_pb2.CallableOptions(fetch=[v.name], target=[v.assign_add(1.0).op.name])
            )
            run()
            run()
            self.assertEqual(2.0, sess.run(v))

    def test_bad_fetch(self):
        with session.Session() as sess:
            constant_op.constant(1)
            with self.assertRaises(ValueError):
                sess.make_callable("nowhere:0")
            with self.assertRaises(TypeError):
                sess.make_callable(object())

    def test_after_close(self):
        with session.Session() as sess:
            c = constant_op.constant(5.0)
            run = sess.make_callable(c)
            self.assertEqual(5.0, run())
        with self.assertRaises(errors.CancelledError):
            run()

    def test_graph_grows(self):
        with session.Session() as sess:
            a = constant_op.constant(1.0)
            run = sess.make_callable(a)
            run()
            b = a + 1.0
            self.assertEqual(2.0, sess.make_callable(b)())
            self.assertEqual(1.0, run())


class Traces(test_util.TensorFlowTestCase):
    FULL = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)

    def test_per_step(self):
        with session.Session() as sess:
            with ops.device("/cpu:0"):
                c = constant_op.constant(1.0) + 1.0
            metadata = config_pb2.RunMetadata()
            sess.run(c)
            sess.run(c, options=self.FULL)
            self.assertFalse(metadata.HasField("step_stats"))
            sess.run(c, run_metadata=metadata)
            self.assertFalse(metadata.HasField("step_stats"))
            sess.run(c, options=self.FULL, run_metadata=metadata)
            self.assertTrue(metadata.HasField("step_stats"))
            self.assertEqual(1, len(metadata.step_stats.dev_stats))

    def test_run_options_refused(self):
        with session.Session() as sess:
            c = constant_op.constant(1.0)
            with self.assertRaises((TypeError, AttributeError)):
                sess.run(c, options=37)
            with self.assertRaises((TypeError, AttributeError)):
                sess.run(c, options=self.FULL, run_metadata=37)

    def test_partition_graphs(self):
        with session.Session() as sess:
            c = constant_op.constant(1.0) + 1.0
            metadata = config_pb2.RunMetadata()
            self.assertEqual(0, len(metadata.partition_graphs))
            sess.run(c, options=config_pb2.RunOptions(output_partition_graphs=True), run_metadata=metadata)
            self.assertGreater(len(metadata.partition_graphs), 0)

    def test_outputs_of_nodes(self):
        with session.Session() as sess:
            ph = array_ops.placeholder(dtypes.float32, name="in")
            out = math_ops.multiply(ph, 2.0, name="out")
            metadata = config_pb2.RunMetadata()
            sess.run(out, {ph: [1.0, 2.0]}, options=self.FULL, run_metadata=metadata)
            names = {node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats}
            self.assertIn("out", {each.partition(":")[0] for each in names})

    def test_timeline(self):
        with session.Session() as sess:
            a = constant_op.constant(1.0, shape=[4, 4])
            b = math_ops.matmul(a, array_ops.placeholder_with_default(a, [4, 4]), name="product")
            metadata = config_pb2.RunMetadata()
            sess.run(b, options=self.FULL, run_metadata=metadata)
        line = timeline.Timeline(metadata.step_stats)
        for kwargs in (
            {},
            {"show_dataflow": False},
            {"show_memory": True},
            {"show_memory": False, "show_dataflow": False},
        ):
            trace = json.loads(line.generate_chrome_trace_format(**kwargs))
            self.assertIn("traceEvents", trace)
            for event in trace["traceEvents"]:
                self.assertIn("ph", event)

    def test_timeline_analysis(self):
        with session.Session() as sess:
            with ops.device("/cpu:0"):
                num1 = variables.VariableV1(1.0, name="num1")
                num2 = variables.VariableV1(2.0, name="num2")
                result = num1 + num2 + num1 * num2
            sess.run(variables.global_variables_initializer())
            metadata = config_pb2.RunMetadata()
            sess.run(result, options=self.FULL, run_metadata=metadata)
        analysis = timeline.Timeline(metadata.step_stats).analyze_step_stats()
        trace = json.loads(analysis.chrome_trace.format_to_string())
        self.assertTrue(trace["traceEvents"])
        self.assertIsInstance(analysis.allocator_maximums, dict)
        self.assertTrue(any("cpu" in each for each in analysis.allocator_maximums))

    def test_timeline_with_control(self):
        with session.Session() as sess:
            with ops.device("/cpu:0"):
                const1 = constant_op.constant(1.0, name="const1")
                const2 = constant_op.constant(2.0, name="const2")
                result = math_ops.add(const1, const2) + const1 * const2
            metadata = config_pb2.RunMetadata()
            sess.run(result, options=self.FULL, run_metadata=metadata)
        text = timeline.Timeline(metadata.step_stats).analyze_step_stats(show_memory=False).chrome_trace
        json.loads(text.format_to_string(pretty=True))

    def test_many_cpus(self):
        config = config_pb2.ConfigProto(device_count={"CPU": 3})
        with session.Session(config=config) as sess:
            with ops.device("/cpu:0"):
                num1 = variables.VariableV1(1.0, name="num1")
            with ops.device("/cpu:1"):
                num2 = variables.VariableV1(2.0, name="num2")
            with ops.device("/cpu:2"):
                result = num1 + num2 + num1 * num2
            sess.run(variables.global_variables_initializer())
            metadata = config_pb2.RunMetadata()
            self.assertEqual(5.0, sess.run(result, options=self.FULL, run_metadata=metadata))
        devices = [each.device for each in metadata.step_stats.dev_stats]
        for number in range(3):
            self.assertTrue(any(f"CPU:{number}" in each for each in devices), devices)
        json.loads(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())


class PartialRuns(test_util.TensorFlowTestCase):
    def check_all(self, sess):
        a = array_ops.placeholder(dtypes.float32, shape=[])
        b = array_ops.placeholder(dtypes.float32, shape=[])
        c = array_ops.placeholder(dtypes.float32, shape=[])
        r1 = math_ops.add(a, b)
        r2 = math_ops.multiply(r1, c)
        h = sess.partial_run_setup([r1, r2], [a, b, c])
        res = sess.partial_run(h, r1, feed_dict={a: 1, b: 2})
        self.assertEqual(3, res)
        res = sess.partial_run(h, r2, feed_dict={c: res * 17})
        self.assertEqual(153, res)
        h2 = sess.partial_run_setup([r1, r2], [a, b, c])
        self.assertEqual(7, sess.partial_run(h2, r1, feed_dict={a: 3, b: 4}))
        self.assertEqual(14, sess.partial_run(h2, r2, feed_dict={c: 2}))

    def test_local(self):
        with session.Session() as sess:
            self.check_all(sess)

    def test_remote(self):
        server = server_lib.Server.create_local_server()
        with session.Session(server.target) as sess:
            self.check_all(sess)

    def test_no_fetches(self):
        with session.Session() as sess:
            x = array_ops.placeholder(dtypes.float32, shape=())
            with self.assertRaisesRegex(errors.InvalidArgumentError, "specify at least one target to fetch or execute"):
                sess.partial_run_setup(fetches=[], feeds=[x])

    def test_incomplete(self):
        with session.Session() as sess:
            a = array_ops.placeholder(dtypes.float32, shape=[])
            b = array_ops.placeholder(dtypes.float32, shape=[])
            r1 = math_ops.add(a, b)
            r2 = math_ops.multiply(r1, 2.0)
            h = sess.partial_run_setup([r1, r2], [a, b])
            self.assertEqual(3.0, sess.partial_run(h, r1, feed_dict={a: 1, b: 2}))

    def test_concurrent(self):
        with session.Session() as sess:
            a = array_ops.placeholder(dtypes.float32, shape=[])
            b = array_ops.placeholder(dtypes.float32, shape=[])
            c = array_ops.placeholder(dtypes.float32, shape=[])
            r1 = math_ops.add(a, b)
            r2 = math_ops.multiply(r1, c)
            h1 = sess.partial_run_setup([r1], [a, b, c])
            h2 = sess.partial_run_setup([r1, r2], [a, b, c])
            self.assertEqual(3.0, sess.partial_run(h1, r1, feed_dict={a: 1, b: 2}))
            again = sess.partial_run(h2, r1, feed_dict={a: 3, b: 4})
            self.assertEqual(7.0, again)
            self.assertEqual(35.0, sess.partial_run(h2, r2, feed_dict={c: 5}))

    def test_many(self):
        with session.Session() as sess:
            steps = 10
            inputs = [array_ops.placeholder(dtypes.float32, shape=[]) for _ in range(steps)]
            outputs = []
            for index in range(steps):
                outputs.append(math_ops.add(inputs[index], outputs[-1]) if index else inputs[0] * 1.0)
            h = sess.partial_run_setup(outputs, inputs)
            for index in range(steps):
                got = sess.partial_run(h, outputs[index], feed_dict={inputs[index]: 1.0})
                self.assertEqual(index + 1.0, got)

    def test_feed_twice_and_unknown(self):
        with session.Session() as sess:
            a = array_ops.placeholder(dtypes.float32, shape=[])
            b = array_ops.placeholder(dtypes.float32, shape=[])
            r1, r2 = a * 1.0, b * 1.0
            h = sess.partial_run_setup([r1, r2], [a, b])
            sess.partial_run(h, r1, {a: 1.0})
            with self.assertRaisesRegex(errors.InvalidArgumentError, "already"):
                sess.partial_run(h, r2, {a: 1.0})
            with self.assertRaisesRegex(errors.InvalidArgumentError, "."):
                sess.partial_run("handle of nobody", r2, {b: 1.0})

    def test_run_and_partial_run(self):
        with session.Session() as sess:
            a = constant_op.constant(2.0)
            b = a * 2
            c = b * 3
            self.assertEqual([4.0, 12.0], sess.run([b, c]))
            h = sess.partial_run_setup([b, c], [])
            self.assertEqual([4.0, 12.0], sess.partial_run(h, [b, c]))

    def test_unspecified_fetch_and_feed(self):
        with session.Session() as sess:
            a = array_ops.placeholder(dtypes.float32, shape=[])
            b = array_ops.placeholder(dtypes.float32, shape=[])
            c = array_ops.placeholder(dtypes.float32, shape=[])
            r1 = math_ops.add(a, b)
            h = sess.partial_run_setup([r1], [a, b])
            with self.assertRaises(errors.InvalidArgumentError):
                sess.partial_run(h, math_ops.multiply(r1, 2.0), feed_dict={a: 1, b: 2})
            h = sess.partial_run_setup([r1], [a, b])
            with self.assertRaisesRegex(errors.InvalidArgumentError, "was not specified in partial_run_setup.$"):
                sess.partial_run(h, r1, feed_dict={a: 1, c: 2})

    def test_targets(self):
        with session.Session() as sess:
            v = variables.VariableV1(1.0)
            sess.run(v.initializer)
            a = array_ops.placeholder(dtypes.float32, shape=[])
            update = v.assign_add(a)
            h = sess.partial_run_setup([update.op, v], [a.name])
            with self.assertRaises(RuntimeError):
                sess.partial_run(h, update.op, {a.name: 5.0})

    def test_empty_fetches(self):
        with session.Session() as sess:
            a = array_ops.placeholder(dtypes.float32)
            b = a * 2.0
            h = sess.partial_run_setup(fetches=[b], feeds=[a])
            self.assertEqual([], sess.partial_run(h, [], {a: 3.0}))
            self.assertEqual([6.0], sess.partial_run(h, [b], {}))

    def test_no_feeds_at_setup(self):
        with session.Session() as sess:
            r1 = constant_op.constant([6.0])
            h = sess.partial_run_setup([r1])
            self.assertEqual([6.0], sess.partial_run(h, r1))

    def test_already_fed_and_fetched(self):
        with session.Session() as sess:
            a = array_ops.placeholder(dtypes.float32, shape=[])
            b = array_ops.placeholder(dtypes.float32, shape=[])
            c = array_ops.placeholder(dtypes.float32, shape=[])
            r1 = math_ops.add(a, b)
            r2 = math_ops.multiply(a, c)
            h = sess.partial_run_setup([r1, r2], [a, b, c])
            self.assertEqual(3.0, sess.partial_run(h, r1, feed_dict={a: 1, b: 2}))
            with self.assertRaisesRegex(errors.InvalidArgumentError, "has already been fed.$"):
                sess.partial_run(h, r2, feed_dict={a: 1, c: 2})
            h = sess.partial_run_setup([r1, r2], [a, b, c])
            self.assertEqual(3.0, sess.partial_run(h, r1, feed_dict={a: 1, b: 2}))
            with self.assertRaisesRegex(errors.InvalidArgumentError, "has already been fetched.$"):
                sess.partial_run(h, r1, feed_dict={c: 3})

    def test_missing_placeholder(self):
        with session.Session() as sess:
            x = array_ops.placeholder(dtypes.float32, shape=())
            y = array_ops.placeholder(dtypes.float32, shape=())
            z = x + y
            handle = sess.partial_run_setup(fetches=[z], feeds=[x])
            with self.assertRaisesRegex(errors.InvalidArgumentError, "You must feed a value for placeholder"):
                sess.partial_run(handle, z, feed_dict={x: 1.0})

    def test_tensor_feeds_by_structure(self):
        with session.Session() as sess:
            sp = array_ops.sparse_placeholder(dtypes.float32, [2])
            total = math_ops.reduce_sum(sp.values)
            h = sess.partial_run_setup([total], [sp])
            self.assertEqual(3.0, sess.partial_run(h, total, {sp: ([[0], [1]], [1.0, 2.0], [2])}))


class DeviceLists(test_util.TensorFlowTestCase):
    def test_attributes(self):
        attrs = session._DeviceAttributes("/job:worker/replica:0/task:3/device:CPU:2", "TYPE", 1337, 1000000)
        self.assertEqual(1337, attrs.memory_limit_bytes)
        self.assertEqual("/job:worker/replica:0/task:3/device:CPU:2", attrs.name)
        self.assertEqual("TYPE", attrs.device_type)
        self.assertEqual(1000000, attrs.incarnation)
        text = str(attrs)
        self.assertTrue(text.startswith("_DeviceAttributes"), text)

    def test_canonical(self):
        attrs = session._DeviceAttributes("/job:worker/replica:0/task:3/cpu:1", "TYPE", 1337, 1000000)
        self.assertEqual("/job:worker/replica:0/task:3/device:CPU:1", attrs.name)

    def test_local(self):
        with session.Session() as sess:
            devices = sess.list_devices()
            self.assertIn("/job:localhost/replica:0/task:0/device:CPU:0", {each.name for each in devices})
            self.assertNotEqual(0, devices[0].incarnation)
            self.assertEqual("CPU", devices[0].device_type)

    def test_server(self):
        server = server_lib.Server.create_local_server()
        with session.Session(server.target) as sess:
            devices = sess.list_devices()
            self.assertTrue(any("/replica:0/task:0/device:CPU:0" in each.name for each in devices))
            self.assertNotEqual(0, devices[0].incarnation)

    def test_invalid(self):
        server = server_lib.Server.create_local_server()
        with session.Session(server.target) as sess:
            with ops.device("/job:elsewhere"):
                a = constant_op.constant(1.0)
            with self.assertRaisesRegex(errors.InvalidArgumentError, "elsewhere"):
                sess.run(a)

    def test_cluster_of_settings(self):
        server1 = server_lib.Server.create_local_server()
        server2 = server_lib.Server.create_local_server()
        cluster_def = cluster_pb2.ClusterDef()
        job = cluster_def.job.add()
        job.name = "worker"
        job.tasks[0] = server1.target[len("grpc://") :]
        job.tasks[1] = server2.target[len("grpc://") :]
        config = config_pb2.ConfigProto(cluster_def=cluster_def)
        with ops.Graph().as_default():
            with ops.device("/job:worker/task:1"):
                c = constant_op.constant(17) * 2
            with session.Session(server1.target, config=config) as sess:
                names = {each.name for each in sess.list_devices()}
                self.assertIn("/job:worker/replica:0/task:0/device:CPU:0", names)
                self.assertIn("/job:worker/replica:0/task:1/device:CPU:0", names)
                metadata = config_pb2.RunMetadata()
                self.assertEqual(34, sess.run(c, options=Traces.FULL, run_metadata=metadata))
                self.assertTrue(any("task:1" in each.device for each in metadata.step_stats.dev_stats))

    def test_legacy_device_names(self):
        server1 = server_lib.Server.create_local_server()
        server2 = server_lib.Server.create_local_server()
        cluster_def = cluster_pb2.ClusterDef()
        job = cluster_def.job.add()
        job.name = "worker"
        job.tasks[0] = server1.target[len("grpc://") :]
        job.tasks[1] = server2.target[len("grpc://") :]
        config = config_pb2.ConfigProto(cluster_def=cluster_def)
        with ops.Graph().as_default():
            with ops.device("/job:worker/task:1/cpu:0"):
                const = constant_op.constant(17)
            with session.Session(server1.target, config=config) as sess:
                self.assertEqual(17, sess.run(const, options=Traces.FULL))

    def test_empty_cluster_of_settings(self):
        cluster_def = cluster_pb2.ClusterDef()
        job = cluster_def.job.add()
        job.name = "nothing"
        server = server_lib.Server.create_local_server()
        with ops.Graph().as_default():
            a = constant_op.constant(1.0)
            with session.Session(server.target) as sess:
                self.assertEqual(1.0, sess.run(a))

    def test_variables_of_cluster(self):
        server1 = server_lib.Server.create_local_server()
        server2 = server_lib.Server.create_local_server()
        spec = server_lib.ClusterSpec({"ps": [server1.target[7:]], "worker": [server2.target[7:]]})
        config = config_pb2.ConfigProto(cluster_def=spec.as_cluster_def())
        with ops.Graph().as_default():
            with ops.device("/job:ps/task:0"):
                v = variables.VariableV1(1.0)
            with ops.device("/job:worker"):
                total = v + 1.0
                update = state_ops.assign_add(v, 2.0)
            with session.Session(server2.target, config=config) as sess:
                sess.run(v.initializer)
                self.assertEqual(2.0, sess.run(total))
                self.assertEqual(3.0, sess.run(update))


class Configured(test_util.TensorFlowTestCase):
    def test_infer_shapes(self):
        config = config_pb2.ConfigProto(graph_options=config_pb2.GraphOptions(infer_shapes=True))
        with session.Session(config=config) as sess:
            with ops.device("/cpu:0"):
                a = array_ops.placeholder(dtypes.float32, shape=[])
                b = math_ops.add(a, a)
                self.assertEqual(2.0, sess.run(b, {a: 1.0}))
            self.assertIn("_output_shapes", sess.graph.as_graph_def(add_shapes=True).node[0].attr)

    def test_disabled_optimizer(self):
        config = config_pb2.ConfigProto()
        config.graph_options.optimizer_options.opt_level = config_pb2.OptimizerOptions.L0
        config.graph_options.rewrite_options.disable_model_pruning = True
        with session.Session(config=config) as sess:
            self.assertEqual(3.0, sess.run(constant_op.constant(1.0) + 2.0))

    def test_placement_logged(self):
        with session.Session(config=config_pb2.ConfigProto(log_device_placement=False)) as sess:
            self.assertEqual(3.0, sess.run(constant_op.constant(1.0) + 2.0))

    def test_run_of_function(self):
        @function.Defun(dtypes.float32, dtypes.float32)
        def foo(x, y):
            return math_ops.add(x, y), x * y

        with session.Session() as sess:
            total, product = foo(2.0, 3.0)
            self.assertEqual([5.0, 6.0], sess.run([total, product]))

    def test_import_with_defaults(self):
        with ops.Graph().as_default() as g:
            constant_op.constant(5.0, name="x") + constant_op.constant(1.0, name="y")
        with ops.Graph().as_default():
            (x,) = importer.import_graph_def(g.as_graph_def(), return_elements=["x:0"], name="in")
            with session.Session() as sess:
                self.assertEqual(5.0, sess.run(x))
                self.assertEqual(6.0, sess.run("in/add:0"))

    def test_reset(self):
        server = server_lib.Server.create_local_server()
        with ops.Graph().as_default():
            v = variables.VariableV1(1.0)
            with session.Session(server.target) as sess:
                sess.run(v.initializer)
            session.Session.reset(server.target)
            with session.Session(server.target) as sess:
                with self.assertRaises(errors.FailedPreconditionError):
                    sess.run(v)

    def test_reset_containers(self):
        server = server_lib.Server.create_local_server()
        with ops.Graph().as_default():
            with ops.container("test0"):
                v0 = variables.VariableV1(1.0, name="v0")
            with ops.container("test1"):
                v1 = variables.VariableV1(2.0, name="v1")
            v2 = variables.VariableV1(3.0, name="v2")
            with session.Session(server.target) as sess:
                sess.run(variables.global_variables_initializer())
                self.assertEqual([1.0, 2.0, 3.0], sess.run([v0, v1, v2]))
            session.Session.reset(server.target, ["test0"])
            with session.Session(server.target) as sess:
                self.assertEqual([2.0, 3.0], sess.run([v1, v2]))
                with self.assertRaises(errors.FailedPreconditionError):
                    sess.run(v0)
            session.Session.reset(server.target, ["test1"])
            with session.Session(server.target) as sess:
                self.assertEqual(3.0, sess.run(v2))
                with self.assertRaises(errors.FailedPreconditionError):
                    sess.run(v1)

    def test_reset_of_nothing(self):
        with self.assertRaises((errors.NotFoundError, ValueError, errors.UnavailableError)):
            session.Session.reset("nonexistent")

    def test_auto_converted(self):
        with session.Session() as sess:
            a = array_ops.placeholder(dtype=dtypes.string)
            with self.assertRaisesRegex(TypeError, r"Type of feed value 1 with type <(\w+) 'int'> is not"):
                sess.run(a, feed_dict={a: 1})

    def test_gradient_and_fetch(self):
        with session.Session() as sess:
            x = constant_op.constant(3.0)
            y = x * x
            (dx,) = gradients_impl.gradients(y, [x])
            self.assertEqual({"y": 9.0, "dx": [6.0]}, sess.run({"y": y, "dx": [dx]}))

    def test_attr_of_op(self):
        with session.Session():
            a = constant_op.constant(1.0, name="a")
            a.op._set_attr("_mine", attr_value_pb2.AttrValue(s=b"seen"))
            self.assertEqual(b"seen", a.op.get_attr("_mine"))
            self.assertEqual(types_pb2.DT_FLOAT, a.op.get_attr("dtype"))
            self.assertAllEqual(1.0, tensor_util.constant_value(a))

    def test_no_op_and_abort_names(self):
        with session.Session() as sess:
            self.assertIsNone(sess.run(gen_control_flow_ops.no_op(name="nothing")))
            self.assertIsNone(sess.run("nothing"))


if __name__ == "__main__":
    googletest.main()
