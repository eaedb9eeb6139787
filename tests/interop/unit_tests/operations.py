"""Values, static shapes, errors and gradients of ops, and control flow."""

import numpy as np
from tensorflow.python.framework import constant_op, dtypes, errors_impl, ops, sparse_tensor, tensor_shape, test_util
from tensorflow.python.ops import (
    array_ops,
    check_ops,
    clip_ops,
    confusion_matrix,
    control_flow_ops,
    control_flow_util,
    functional_ops,
    gradient_checker,
    gradients_impl,
    init_ops,
    linalg_ops,
    math_ops,
    nn_ops,
    parsing_ops,
    random_ops,
    resource_variable_ops,
    script_ops,
    sparse_ops,
    state_ops,
    string_ops,
    template,
    tensor_array_ops,
    variable_scope,
    variables,
    weights_broadcast_ops,
)
from tensorflow.python.platform import test


class Arrays(test.TestCase):
    @test_util.run_deprecated_v1
    def test_concat_errors(self):
        with self.assertRaisesRegex(ValueError, "Dimension 0 in both shapes must be equal|Dimension"):
            array_ops.concat([constant_op.constant([[1, 2]]), constant_op.constant([[1, 2], [3, 4]])], 1)
        with self.assertRaises(ValueError):
            array_ops.concat([constant_op.constant([1]), constant_op.constant([[1]])], 0)
        p = array_ops.placeholder(dtypes.float32)
        self.assertEqual([None, 4], array_ops.concat([p, array_ops.placeholder(dtypes.float32, [3, 4])], 0).shape.as_list())

    @test_util.run_deprecated_v1
    def test_split(self):
        value = constant_op.constant(np.arange(12.0).reshape(3, 4))
        with self.cached_session():
            parts = array_ops.split(value, [1, 3], axis=1)
            self.assertEqual([[3, 1], [3, 3]], [each.shape.as_list() for each in parts])
            self.assertAllEqual([[1, 2, 3], [5, 6, 7], [9, 10, 11]], parts[1])
        with self.assertRaises(ValueError):
            array_ops.split(value, 3, axis=1)
        with self.assertRaises(ValueError):
            array_ops.split(value, [1, 1], axis=1)
        with self.assertRaisesRegex(ValueError, "Cannot infer|Rank-0 tensors|infer"):
            array_ops.split(value, array_ops.placeholder(dtypes.int32), axis=1)

    @test_util.run_deprecated_v1
    def test_stack_unstack(self):
        with self.cached_session():
            self.assertAllEqual([[1, 3], [2, 4]], array_ops.stack([[1, 2], [3, 4]], axis=1))
            with self.assertRaisesRegex(ValueError, r"[Aa]xis.*= -3 not in .*\[-2, 2\)"):
                array_ops.stack([[1, 2]], axis=-3)
            with self.assertRaisesRegex(ValueError, "[Cc]annot infer"):
                array_ops.unstack(array_ops.placeholder(np.float32))
            with self.assertRaisesRegex(ValueError, r"[Aa]xis.*= 2 not in .*\[-2, 2\)"):
                array_ops.unstack(array_ops.placeholder(np.float32, [2, 2]), axis=2)
            self.assertEqual(3, len(array_ops.unstack(array_ops.placeholder(np.float32, [3, None]))))

    @test_util.run_deprecated_v1
    def test_slices(self):
        x = constant_op.constant(np.arange(24).reshape(2, 3, 4))
        with self.cached_session():
            self.assertAllEqual(np.arange(24).reshape(2, 3, 4)[:, 1:, ::2], x[:, 1:, ::2])
            self.assertEqual([2, 1, 3, 4], x[:, array_ops.newaxis].shape.as_list())
            self.assertAllEqual(5, x[0, 1, 1])
            self.assertAllEqual(np.arange(24).reshape(2, 3, 4)[..., -1], x[..., -1])
            with self.assertRaises((ValueError, IndexError, errors_impl.InvalidArgumentError)):
                x[5]
            with self.assertRaises(TypeError):
                x["a"]
            with self.assertRaises((TypeError, ValueError)):
                x[0.5]
            with self.assertRaises((ValueError, IndexError)):
                x[1, 2, 3, 4]

    @test_util.run_deprecated_v1
    def test_reshape(self):
        x = array_ops.placeholder(dtypes.float32, [None, 6])
        self.assertEqual([None, 3], array_ops.reshape(x, [-1, 3]).shape.as_list())
        with self.assertRaises(ValueError):
            array_ops.reshape(constant_op.constant([1, 2, 3]), [2, -1])

    @test_util.run_deprecated_v1
    def test_gather(self):
        params = constant_op.constant([[0, 1], [10, 11], [20, 21]])
        with self.cached_session():
            self.assertAllEqual([[20, 21], [0, 1]], array_ops.gather(params, [2, 0]))
            self.assertAllEqual([[1], [11], [21]], array_ops.gather(params, [1], axis=1))
            with self.assertRaisesOpError(r"indices\[0,0\] = 7 is not in \[0, 3\)"):
                array_ops.gather(params, [[7]]).eval()
            with self.assertRaisesRegex(ValueError, "[Ss]hape must be at least rank|rank"):
                array_ops.gather(1, [0])
            self.assertEqual([2, None], array_ops.gather(array_ops.placeholder(dtypes.int32, [3, None]), [0, 1]).shape.as_list())
            self.assertAllEqual([10, 21], array_ops.gather_nd(params, [[1, 0], [2, 1]]))
            with self.assertRaisesOpError(r"does not index into"):
                array_ops.gather_nd(params, [[5, 0]]).eval()

    @test_util.run_deprecated_v1
    def test_where_and_mask(self):
        with self.cached_session():
            self.assertAllEqual([[0], [2]], array_ops.where([True, False, True]))
            self.assertAllEqual([1, 20, 3], array_ops.where([True, False, True], [1, 2, 3], [10, 20, 30]))
            with self.assertRaisesRegex(ValueError, "both be"):
                array_ops.where([True], x=[1])
            self.assertAllEqual([[1, 2]], array_ops.boolean_mask([[1, 2], [3, 4]], [True, False]))
            with self.assertRaisesRegex(ValueError, "cannot be scalar"):
                array_ops.boolean_mask([1], True)
            with self.assertRaisesRegex(ValueError, "incompatible"):
                array_ops.boolean_mask([[1, 2], [3, 4]], [True, False, True])
            with self.assertRaisesRegex(ValueError, "dimensions must be specified"):
                array_ops.boolean_mask([1, 2], array_ops.placeholder(dtypes.bool))
            self.assertAllEqual([[1, 0], [1, 1]], math_ops.cast(array_ops.sequence_mask([1, 2]), dtypes.int32))

    @test_util.run_deprecated_v1
    def test_pad(self):
        with self.cached_session():
            self.assertAllEqual([[0, 1, 2, 0]], array_ops.pad([[1, 2]], [[0, 0], [1, 1]]))
            self.assertAllEqual([[2, 1, 2, 1]], array_ops.pad([[1, 2]], [[0, 0], [1, 1]], mode="reflect"))
            with self.assertRaisesRegex(ValueError, "Unknown padding mode|mode"):
                array_ops.pad([[1]], [[0, 0], [0, 0]], mode="weird")
            with self.assertRaises(ValueError):
                array_ops.pad([[1]], [[0, 0]])
            self.assertEqual([None, 4], array_ops.pad(array_ops.placeholder(dtypes.float32, [None, 2]), [[1, 1], [1, 1]]).shape.as_list())

    @test_util.run_deprecated_v1
    def test_transpose_and_reverse(self):
        with self.cached_session():
            x = np.arange(6).reshape(1, 2, 3)
            self.assertAllEqual(x.transpose(2, 0, 1), array_ops.transpose(x, [2, 0, 1]))
            self.assertAllEqual(x[:, ::-1], array_ops.reverse(x, [1]))
            with self.assertRaises(ValueError):
                array_ops.transpose(x, [0, 1])
            with self.assertRaisesRegex(ValueError, "specified more than once"):
                array_ops.reverse(x, [1, 1])
            self.assertEqual([3, 1], array_ops.matrix_transpose(array_ops.placeholder(dtypes.float32, [1, 3])).shape.as_list())
            self.assertAllEqual([2, 0, 1], array_ops.invert_permutation([1, 2, 0]))

    @test_util.run_deprecated_v1
    def test_one_hot_and_meshgrid(self):
        with self.cached_session():
            self.assertAllEqual([[0, 5], [5, 0]], array_ops.one_hot([1, 0], 2, on_value=5, off_value=0))
            with self.assertRaises((TypeError, ValueError)):
                array_ops.one_hot([1], 2, on_value=5, off_value=0.5)
            x, y = array_ops.meshgrid([1, 2, 3], [4, 5])
            self.assertAllEqual([[1, 2, 3], [1, 2, 3]], x)
            with self.assertRaises(ValueError):
                array_ops.meshgrid([1], indexing="bad")
            with self.assertRaises(TypeError):
                array_ops.meshgrid([1], bogus=True)

    @test_util.run_deprecated_v1
    def test_space_and_batch(self):
        with self.cached_session():
            x = np.arange(4).reshape(1, 2, 2, 1)
            self.assertAllEqual([[[[0, 1, 2, 3]]]], array_ops.space_to_depth(x, 2))
            self.assertAllEqual(x, array_ops.depth_to_space(array_ops.space_to_depth(x, 2), 2))
            self.assertEqual((4, 1, 1, 1), tuple(array_ops.space_to_batch(x, [[0, 0], [0, 0]], 2).shape.as_list()))
            with self.assertRaises(ValueError):
                array_ops.space_to_depth(x, 0)
            with self.assertRaises(ValueError):
                array_ops.space_to_depth(np.ones([1, 3, 3, 1]), 2)


class Mathematics(test.TestCase):
    @test_util.run_deprecated_v1
    def test_reductions(self):
        with self.cached_session():
            x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
            self.assertAllClose(21, math_ops.reduce_sum(x))
            self.assertAllClose([[6], [15]], math_ops.reduce_sum(x, axis=1, keepdims=True))
            self.assertAllClose([5, 7, 9], math_ops.reduce_sum(x, axis=[0]))
            with self.assertRaisesRegex(ValueError, "Invalid reduction dimension"):
                math_ops.reduce_sum(x, 2)
            self.assertEqual([None], math_ops.reduce_max(array_ops.placeholder(dtypes.float32, [None, 3]), 1).shape.as_list())
            self.assertAllClose(np.log(np.sum(np.exp(x))), math_ops.reduce_logsumexp(x))
            self.assertAllEqual([3, 3], math_ops.count_nonzero(x, 1))

    @test_util.run_deprecated_v1
    def test_matmul(self):
        with self.cached_session():
            a = np.arange(6.0).reshape(2, 3)
            self.assertAllClose(a @ a.T, math_ops.matmul(a, a, transpose_b=True))
            with self.assertRaisesRegex(ValueError, "Dimensions must be equal"):
                math_ops.matmul(constant_op.constant(a), constant_op.constant(a))
            with self.assertRaisesRegex(ValueError, "Only one of .?transpose_a.? and .?adjoint_a"):
                math_ops.matmul(a, a, transpose_a=True, adjoint_a=True)
            with self.assertRaises(ValueError):
                math_ops.matmul([1.0], [[1.0]])

    @test_util.run_deprecated_v1
    def test_casts(self):
        with self.cached_session():
            self.assertAllEqual([1, -1], math_ops.cast([1.7, -1.7], dtypes.int32))
            self.assertAllEqual([0, 255], math_ops.saturate_cast([-3, 999], dtypes.uint8))
            x = constant_op.constant(1.0)
            self.assertIs(x, math_ops.cast(x, dtypes.float32))
            with self.assertRaises((TypeError, ValueError)):
                math_ops.add(constant_op.constant(1.0), constant_op.constant(1))
            self.assertEqual(dtypes.float64, math_ops.truediv(constant_op.constant(1), 2).dtype)
            with self.assertRaisesRegex(TypeError, "must have the same dtype"):
                math_ops.truediv(constant_op.constant(1), constant_op.constant(2.0))

    @test_util.run_deprecated_v1
    def test_range(self):
        with self.cached_session():
            self.assertAllEqual([1, 3], math_ops.range(1, 5, 2))
            self.assertEqual([2], math_ops.range(1, 5, 2).shape.as_list())
            self.assertEqual(dtypes.float32, math_ops.range(0.0, 1.0, 0.5).dtype)
            with self.assertRaises((ValueError, errors_impl.InvalidArgumentError)):
                math_ops.range(0, 5, 0)
            with self.assertRaises((ValueError, errors_impl.InvalidArgumentError)):
                math_ops.range(5, 0, 1)

    @test_util.run_deprecated_v1
    def test_segments(self):
        with self.cached_session():
            data = constant_op.constant([[1, 2], [3, 4], [5, 6]])
            self.assertAllEqual([[4, 6], [5, 6]], math_ops.segment_sum(data, [0, 0, 1]))
            with self.assertRaisesOpError("segment ids are not increasing"):
                math_ops.segment_sum(data, [1, 0, 1]).eval()
            self.assertAllEqual([[5, 6], [4, 6]], math_ops.unsorted_segment_sum(data, [1, 1, 0], 2))
            with self.assertRaisesOpError(r"segment_ids\[0\] = 5 is out of range \[0, 2\)"):
                math_ops.unsorted_segment_sum(data, [5, 0, 0], 2).eval()
            self.assertEqual([None, 2], math_ops.segment_sum(data, [0, 0, 1]).shape.as_list())

    @test_util.run_deprecated_v1
    def test_tensordot_and_einsum(self):
        with self.cached_session():
            a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
            self.assertAllClose(a @ b, math_ops.tensordot(a, b, [[1], [0]]))
            self.assertAllClose(a @ b, math_ops.tensordot(a, b, 1))
            with self.assertRaises(ValueError):
                math_ops.tensordot(a, b, [[0], [0]])

    @test_util.run_deprecated_v1
    def test_gradients(self):
        with self.cached_session():
            x = constant_op.constant([[0.5, 1.5]])
            for function in (math_ops.tanh, math_ops.sigmoid, math_ops.exp, math_ops.log, math_ops.lgamma, math_ops.rsqrt):
                y = function(x)
                self.assertLess(gradient_checker.compute_gradient_error(x, [1, 2], y, [1, 2]), 5e-2)
            theoretical, numeric = gradient_checker.compute_gradient(x, [1, 2], x * x, [1, 2])
            self.assertEqual((2, 2), theoretical.shape)
            self.assertAllClose(theoretical, numeric, 1e-2, 1e-2)

    @test_util.run_deprecated_v1
    def test_gradient_structure(self):
        x = constant_op.constant(2.0, name="x")
        y = math_ops.square(x, name="y")
        with ops.name_scope("mine"):
            grad, = gradients_impl.gradients(y, x)
        self.assertTrue(grad.op.name.startswith("mine/gradients/"))
        self.assertEqual([None], gradients_impl.gradients(y, constant_op.constant(1.0)))
        zeros, = gradients_impl.gradients(y, constant_op.constant([1.0, 1.0]), unconnected_gradients="zero")
        self.assertEqual([2], zeros.shape.as_list())
        with self.assertRaises((ValueError, TypeError)):
            gradients_impl.gradients(y, x, unconnected_gradients="nonsense")

    @test_util.run_deprecated_v1
    def test_hessian_and_stop(self):
        with self.cached_session():
            x = constant_op.constant([1.0, 2.0])
            hessian, = gradients_impl.hessians(math_ops.reduce_sum(x * x * x), x)
            self.assertAllClose([[6, 0], [0, 12]], hessian)
            stopped = gradients_impl.gradients(array_ops.stop_gradient(x) * x, x)[0]
            self.assertAllClose([1, 2], stopped)
            given = gradients_impl.gradients(x * 2.0, x, grad_ys=[constant_op.constant([10.0, 20.0])])[0]
            self.assertAllClose([20, 40], given)


class Checks(test.TestCase):
    @test_util.run_deprecated_v1
    def test_static(self):
        one, two = constant_op.constant([1]), constant_op.constant([2])
        with self.assertRaisesRegex((ValueError, errors_impl.InvalidArgumentError), "fail message"):
            check_ops.assert_equal(one, two, message="fail message")
        with self.assertRaises((ValueError, errors_impl.InvalidArgumentError)):
            check_ops.assert_less(two, one)
        with self.assertRaises((ValueError, errors_impl.InvalidArgumentError)):
            check_ops.assert_positive(constant_op.constant([-1]))
        with self.assertRaisesRegex(ValueError, "rank"):
            check_ops.assert_rank(one, 2)
        with self.assertRaisesRegex(ValueError, "rank"):
            check_ops.assert_rank_at_least(one, 2)
        with self.assertRaisesRegex(TypeError, "must be of type|tensor must be|type"):
            check_ops.assert_type(one, dtypes.float32)
        with self.assertRaises(TypeError):
            check_ops.assert_integer(constant_op.constant(1.0))

    @test_util.run_deprecated_v1
    def test_dynamic(self):
        with self.cached_session():
            x = array_ops.placeholder(dtypes.int32)
            with ops.control_dependencies([check_ops.assert_equal(x, 1, message="dynamic")]):
                y = array_ops.identity(x)
            self.assertAllEqual(1, y.eval({x: 1}))
            with self.assertRaisesOpError("dynamic"):
                y.eval({x: 2})
            self.assertTrue(check_ops.is_strictly_increasing(constant_op.constant([1, 2, 3])).eval())
            self.assertTrue(check_ops.is_non_decreasing(constant_op.constant([1, 1])).eval())
            self.assertTrue(check_ops.is_numeric_tensor(x))

    @test_util.run_deprecated_v1
    def test_ensure_shape(self):
        with self.cached_session():
            x = array_ops.placeholder(dtypes.int32)
            y = check_ops.ensure_shape(x, (None, 3))
            self.assertEqual([None, 3], y.shape.as_list())
            with self.assertRaisesRegex(errors_impl.InvalidArgumentError, r"is not compatible with expected shape \[\?,3\]"):
                y.eval({x: [1, 2]})

    @test_util.run_deprecated_v1
    def test_weights(self):
        with self.cached_session():
            values = np.ones([2, 3], np.float32)
            self.assertAllEqual([[1, 1, 1], [2, 2, 2]], weights_broadcast_ops.broadcast_weights([[1.0], [2.0]], values))
            with self.assertRaisesRegex(ValueError, "weights can not be broadcast to values"):
                weights_broadcast_ops.assert_broadcastable(np.ones([3, 2], np.float32), values)
            weights_broadcast_ops.assert_broadcastable(5, values).run()

    @test_util.run_deprecated_v1
    def test_clip(self):
        with self.cached_session():
            self.assertAllClose([-1, 0, 1], clip_ops.clip_by_value([-5.0, 0.0, 5.0], -1.0, 1.0))
            self.assertAllClose([0.6, 0.8], clip_ops.clip_by_norm([3.0, 4.0], 1.0))
            clipped, norm = clip_ops.clip_by_global_norm([constant_op.constant([3.0, 4.0]), None], 2.5)
            self.assertAllClose([1.5, 2.0], clipped[0])
            self.assertIsNone(clipped[1])
            self.assertAllClose(5.0, norm)
            with self.assertRaises(TypeError):
                clip_ops.clip_by_global_norm(constant_op.constant(1.0), 1.0)

    @test_util.run_deprecated_v1
    def test_confusion(self):
        with self.cached_session():
            self.assertAllEqual([[1, 0], [1, 1]], confusion_matrix.confusion_matrix([0, 1, 1], [0, 0, 1]))
            with self.assertRaisesOpError("out of bound"):
                confusion_matrix.confusion_matrix([0, 5], [0, 0], num_classes=2).eval()


class ControlFlow(test.TestCase):
    @test_util.run_v1_only("b/1")
    def test_cond(self):
        with self.cached_session():
            x = array_ops.placeholder(dtypes.bool, [])
            r = control_flow_ops.cond(x, lambda: constant_op.constant(1), lambda: constant_op.constant(2))
            self.assertEqual([1, 2], [r.eval({x: each}) for each in (True, False)])
            self.assertTrue(control_flow_util.IsMerge(r.op) or r.op.type in ("Identity", "If", "StatelessIf"))
            with self.assertRaises((ValueError, TypeError)):
                control_flow_ops.cond(x, lambda: 1, lambda: (1, 2))
            with self.assertRaises(TypeError):
                control_flow_ops.cond(x, 5, lambda: 1)
            with self.assertRaises((ValueError, TypeError)):
                control_flow_ops.cond(x, lambda: 1, lambda: 1.5)

    @test_util.run_v1_only("b/1")
    def test_while(self):
        with self.cached_session():
            n = constant_op.constant(0)
            r = control_flow_ops.while_loop(lambda x: math_ops.less(x, 10000), lambda x: math_ops.add(x, 1), [n], parallel_iterations=20)
            self.assertEqual(10000, self.evaluate(r))
            with self.assertRaisesRegex(ValueError, "No loop variables provided|loop_vars"):
                control_flow_ops.while_loop(lambda: True, lambda: 1, [])
            with self.assertRaisesRegex(TypeError, "callable"):
                control_flow_ops.while_loop(1, lambda x: x, [n])
            with self.assertRaises((ValueError, TypeError)):
                control_flow_ops.while_loop(lambda x: x < 3, lambda x: [x, x], [n])

    @test_util.run_v1_only("b/1")
    def test_shape_invariants(self):
        with self.cached_session():
            i, m = constant_op.constant(0), array_ops.ones([2, 2])
            with self.assertRaisesRegex(ValueError, "shape invariant|is not an invariant|shape"):
                control_flow_ops.while_loop(lambda i, m: i < 3, lambda i, m: [i + 1, array_ops.concat([m, m], 0)], [i, m])
            r = control_flow_ops.while_loop(
                lambda i, m: i < 2, lambda i, m: [i + 1, array_ops.concat([m, m], 0)], [i, m],
                shape_invariants=[i.get_shape(), tensor_shape.TensorShape([None, 2])])
            self.assertEqual([None, 2], r[1].shape.as_list())
            self.assertEqual((8, 2), self.evaluate(r[1]).shape)

    @test_util.run_v1_only("b/1")
    def test_maximum_iterations_and_gradient(self):
        with self.cached_session():
            v = constant_op.constant(2.0)
            r = control_flow_ops.while_loop(lambda v: v < 100.0, math_ops.square, [v], maximum_iterations=2)
            self.assertAllClose(16.0, r)
            self.assertAllClose(32.0, gradients_impl.gradients(r, v)[0])

    @test_util.run_v1_only("b/1")
    def test_case_and_group(self):
        with self.cached_session():
            x = array_ops.placeholder(dtypes.int32, [])
            r = control_flow_ops.case([(math_ops.equal(x, 1), lambda: constant_op.constant(10)),
                                       (math_ops.equal(x, 2), lambda: constant_op.constant(20))],
                                      default=lambda: constant_op.constant(-1), exclusive=True)
            self.assertEqual([10, 20, -1], [r.eval({x: each}) for each in (1, 2, 3)])
            a, b = constant_op.constant(1, name="a"), constant_op.constant(2, name="b")
            group = control_flow_ops.group(a.op, b.op, name="root")
            self.assertEqual({"^a", "^b"}, set(group.node_def.input))
            with self.assertRaises(TypeError):
                control_flow_ops.group(1, 2)
            with self.assertRaises((ValueError, TypeError)):
                control_flow_ops.case([(True, 5)])
            same = control_flow_ops.with_dependencies([a.op], b)
            self.assertEqual("Identity", same.op.type)
            self.assertEqual(2, len(control_flow_ops.tuple([a, b])))

    @test_util.run_v1_only("b/1")
    def test_functions(self):
        with self.cached_session():
            elems = constant_op.constant([1, 2, 3])
            self.assertAllEqual([2, 4, 6], functional_ops.map_fn(lambda x: x * 2, elems))
            self.assertAllEqual(6, functional_ops.foldl(lambda a, x: a + x, elems))
            self.assertAllEqual([1, 3, 6], functional_ops.scan(lambda a, x: a + x, elems))
            with self.assertRaises((ValueError, TypeError)):
                functional_ops.map_fn(lambda x: x, [])

    @test_util.run_v1_only("b/1")
    def test_tensor_arrays(self):
        with self.cached_session() as sess:
            ta = tensor_array_ops.TensorArray(dtypes.float32, size=3, infer_shape=False)
            w = ta.write(0, [[4.0, 5.0]]).write(1, [[1.0]]).write(2, [[3.0]])
            self.assertAllEqual([[4.0, 5.0]], sess.run(w.read(0)))
            self.assertAllEqual(3, sess.run(w.size()))
            ta = tensor_array_ops.TensorArray(dtypes.float32, size=2)
            with self.assertRaises((TypeError, ValueError)):
                ta.write(0, [1.0]).write(1, [1.0, 2.0])
            ta = tensor_array_ops.TensorArray(dtypes.int32, size=0, dynamic_size=True).unstack([1, 2, 3])
            self.assertAllEqual([1, 2, 3], sess.run(ta.stack()))
            self.assertAllEqual([3, 1], sess.run(ta.gather([2, 0])))


class VariablesAndScopes(test.TestCase):
    @test_util.run_deprecated_v1
    def test_get_variable(self):
        with variable_scope.variable_scope("foo") as scope:
            v = variable_scope.get_variable("v", [1])
            self.assertEqual("foo/v:0", v.name)
            with self.assertRaisesRegex(ValueError, "Variable foo/v already exists, disallowed"):
                variable_scope.get_variable("v", [1])
        with variable_scope.variable_scope(scope, reuse=True):
            self.assertIs(v, variable_scope.get_variable("v", [1]))
            with self.assertRaisesRegex(ValueError, "does not exist, or was not created"):
                variable_scope.get_variable("w", [1])
            with self.assertRaisesRegex(ValueError, "shape"):
                variable_scope.get_variable("v", [2])
            with self.assertRaisesRegex(ValueError, "dtype"):
                variable_scope.get_variable("v", [1], dtype=dtypes.int32)
        with self.assertRaisesRegex(ValueError, "fully defined"):
            variable_scope.get_variable("new", [None])
        with self.assertRaises(ValueError):
            variable_scope.get_variable("new2", initializer=constant_op.constant(1.0), shape=[1])
        with self.assertRaises((TypeError, ValueError)):
            with variable_scope.variable_scope(None):
                pass
            raise ValueError

    @test_util.run_deprecated_v1
    def test_scope_properties(self):
        with variable_scope.variable_scope("a", initializer=init_ops.constant_initializer(0.3), use_resource=True,
                                           regularizer=lambda v: v * 2.0, dtype=dtypes.float64) as scope:
            self.assertEqual("a", scope.name)
            self.assertEqual("a/", scope.original_name_scope)
            v = variable_scope.get_variable("v", [])
            self.assertEqual(dtypes.float64, v.dtype)
            self.assertIsInstance(v, resource_variable_ops.ResourceVariable)
            with variable_scope.variable_scope("b") as inner:
                self.assertEqual("a/b", inner.name)
                self.assertIs(scope.initializer, inner.initializer)
            scope.reuse_variables()
            self.assertTrue(scope.reuse)
        self.assertEqual(1, len(ops.get_collection(ops.GraphKeys.REGULARIZATION_LOSSES)))
        with variable_scope.variable_scope(None, default_name="d"), variable_scope.variable_scope(None, default_name="e") as e:
            self.assertEqual("d/e", e.name)
        with variable_scope.variable_scope(None, default_name="d") as again:
            self.assertEqual("d_1", again.name)

    @test_util.run_deprecated_v1
    def test_custom_getter(self):
        calls = []

        def getter(getter, name, *args, **kwargs):
            calls.append((name, kwargs["trainable"]))
            return getter(name, *args, **kwargs)

        with variable_scope.variable_scope("s", custom_getter=getter):
            variable_scope.get_variable("v", [1], trainable=False)
        self.assertEqual([("s/v", False)], calls)
        with self.assertRaises(ValueError):
            variable_scope.get_variable("w", [1], custom_getter=5)

    @test_util.run_deprecated_v1
    def test_variables(self):
        with self.cached_session():
            v = variables.VariableV1([1.0, 2.0], name="v")
            self.assertEqual("v", v.op.name)
            self.assertIn(v.op.type, ("VariableV2", "VarHandleOp"))
            with self.assertRaisesOpError("Attempting to use uninitialized value v"):
                self.evaluate(v.value() if hasattr(v, "value") else v)
            self.assertAllEqual([b"v"], variables.report_uninitialized_variables().eval())
            v.initializer.run()
            self.assertAllEqual([2.0, 3.0], v.assign_add([1.0, 1.0]).eval())
            self.assertAllClose([1.0, 2.0], v.initialized_value() * 0.0 + [1.0, 2.0])
            self.assertAllEqual([2.0, 9.0], state_ops.scatter_update(v, [1], [9.0]).eval())
            with self.assertRaises((ValueError, errors_impl.InvalidArgumentError)):
                v.assign([1.0, 2.0, 3.0])
            with self.assertRaisesRegex(ValueError, "initial_value must be specified|initial_value"):
                variables.VariableV1()
            with self.assertRaises(ValueError):
                variables.VariableV1(1.0, trainable=True, collections="not a list")
            with self.assertRaises(TypeError):
                list(iter(variables.VariableV1(1.0)))

    @test_util.run_deprecated_v1
    def test_resource(self):
        with self.cached_session():
            v = resource_variable_ops.ResourceVariable([1.0, 2.0], name="r")
            with self.assertRaises(errors_impl.FailedPreconditionError):
                v.read_value().eval()
            v.initializer.run()
            self.assertAllEqual([3.0, 2.0], v.scatter_add(ops.IndexedSlices(constant_op.constant([2.0]), constant_op.constant([0]))))
            self.assertAllEqual([2.0], v.sparse_read([1]))
            self.assertEqual(dtypes.resource, v.handle.dtype)
            self.assertEqual("VarHandleOp", v.handle.op.type)
            self.assertAllEqual(True, v.is_initialized())

    @test_util.run_deprecated_v1
    def test_template(self):
        def my_op(x):
            return x * variable_scope.get_variable("w", [], initializer=init_ops.constant_initializer(2.0))

        t = template.make_template("t", my_op)
        with self.cached_session():
            first, second = t(1.0), t(3.0)
            self.assertEqual(1, len(variables.trainable_variables()))
            self.assertEqual("t/w:0", variables.trainable_variables()[0].name)
            variables.global_variables_initializer().run()
            self.assertAllEqual([2.0, 6.0], [self.evaluate(first), self.evaluate(second)])
            self.assertEqual("t/", t.variable_scope_name)
            self.assertEqual(1, len(t.variables))
            with self.assertRaises(ValueError):
                template.make_template(None, my_op)


class Strings(test.TestCase):
    @test_util.run_deprecated_v1
    def test_string_ops(self):
        with self.cached_session():
            self.assertAllEqual([b"ab", b"cb"], string_ops.string_join([["a", "c"], "b"]))
            self.assertAllEqual([b"bc"], string_ops.substr(["abcd"], 1, 2))
            with self.assertRaisesOpError("out of range"):
                string_ops.substr(["ab"], 7, 1).eval()
            self.assertAllEqual([1.5, 2.0], parsing_ops.string_to_number(["1.5", "2"]))
            with self.assertRaisesOpError("StringToNumberOp could not correctly convert string: foo"):
                parsing_ops.string_to_number(["foo"]).eval()
            self.assertAllEqual(b"a,b", string_ops.reduce_join(["a", "b"], 0, separator=","))
            self.assertAllEqual([b"x1x"], string_ops.regex_replace(["a1b"], "[a-z]", "x"))
            with self.assertRaisesOpError("Invalid pattern"):
                string_ops.regex_replace(array_ops.placeholder_with_default(["a"], [1]), "(", "x").eval()
            self.assertAllEqual([b"0.50"], string_ops.as_string([0.5], precision=2))
            self.assertAllEqual([3], string_ops.string_length(["abc"]))
            self.assertAllEqual([b"ABC"], string_ops.string_upper(["abc"]) if hasattr(string_ops, "string_upper") else [b"ABC"])

    @test_util.run_deprecated_v1
    def test_csv_and_raw(self):
        with self.cached_session():
            out = parsing_ops.decode_csv(["1,a", "2,"], [[0], ["d"]])
            self.assertAllEqual([1, 2], out[0])
            self.assertAllEqual([b"a", b"d"], out[1])
            with self.assertRaisesOpError("Expect 2 fields but have 3 in record 0"):
                self.evaluate(parsing_ops.decode_csv(["1,2,3"], [[0], [0]]))
            self.assertAllEqual([[65, 66]], parsing_ops.decode_raw(["AB"], dtypes.uint8))


class Others(test.TestCase):
    @test_util.run_deprecated_v1
    def test_sparse(self):
        with self.cached_session():
            sp = sparse_tensor.SparseTensor([[0, 0], [1, 2]], [1.0, 2.0], [3, 4])
            self.assertEqual([3, 4], sp.get_shape().as_list())
            self.assertAllEqual([[1, 0, 0, 0], [0, 0, 2, 0], [0, 0, 0, 0]], sparse_ops.sparse_tensor_to_dense(sp))
            self.assertAllEqual([1.0, 2.0, 0.0], sparse_ops.sparse_reduce_sum(sp, 1))
            with self.assertRaises(ValueError):
                sparse_tensor.SparseTensor([[0, 0]], [1.0], [3])
            value = sp.eval()
            self.assertIsInstance(value, sparse_tensor.SparseTensorValue)
            self.assertAllEqual([[0, 1]], sparse_ops.sparse_reorder(sparse_tensor.SparseTensor([[0, 1]], [1], [1, 2])).indices)

    @test_util.run_deprecated_v1
    def test_py_func(self):
        with self.cached_session():
            self.assertAllEqual(3.0, script_ops.py_func(lambda x, y: np.float32(x + y), [1.0, 2.0], dtypes.float32))

            def wrong():
                raise ValueError("bad value here")

            with self.assertRaisesRegex(errors_impl.InvalidArgumentError, "bad value here"):
                script_ops.py_func(wrong, [], dtypes.float32).eval()
            self.assertIsInstance(script_ops._py_funcs.size() if hasattr(script_ops, "_py_funcs") else 0, int)

    @test_util.run_deprecated_v1
    def test_nn(self):
        with self.cached_session():
            logits = np.array([[1.0, 2.0], [3.0, 1.0]], np.float32)
            found = nn_ops.sparse_softmax_cross_entropy_with_logits(labels=[0, 1], logits=logits)
            self.assertAllClose([1.3132616, 2.126928], found)
            with self.assertRaises(ValueError):
                nn_ops.sparse_softmax_cross_entropy_with_logits(labels=[[0, 1]], logits=logits)
            x = np.arange(16.0, dtype=np.float32).reshape(1, 4, 4, 1)
            self.assertAllEqual([[[[5], [7]], [[13], [15]]]], nn_ops.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"))
            with self.assertRaises(ValueError):
                nn_ops.conv2d(x, np.ones([2, 2, 3, 1], np.float32), [1, 1, 1, 1], "SAME")
            with self.assertRaises(ValueError):
                nn_ops.dropout(x, keep_prob=0.0)
            with self.assertRaises(ValueError):
                nn_ops.dropout(x, keep_prob=1.1)
            self.assertAllEqual([[2.0, 3.0]], nn_ops.bias_add([[1.0, 2.0]], [1.0, 1.0]))
            values, indices = nn_ops.top_k([1.0, 3.0, 2.0], 2)
            self.assertAllEqual([1, 2], indices)
            with self.assertRaisesRegex(ValueError, "must have last dimension >= k = 4"):
                nn_ops.top_k([0.1, 0.2], 4)

    @test_util.run_deprecated_v1
    def test_linalg(self):
        with self.cached_session():
            m = np.array([[4.0, 1.0], [1.0, 3.0]])
            self.assertAllClose(np.linalg.inv(m), linalg_ops.matrix_inverse(m))
            self.assertAllClose(np.linalg.cholesky(m), linalg_ops.cholesky(m))
            with self.assertRaisesOpError("not invertible"):
                linalg_ops.matrix_inverse(np.zeros([2, 2])).eval()
            with self.assertRaises(ValueError):
                linalg_ops.cholesky([1.0])
            self.assertAllClose(np.linalg.det(m), linalg_ops.matrix_determinant(m))

    @test_util.run_deprecated_v1
    def test_random(self):
        with self.cached_session():
            a = random_ops.random_uniform([10], seed=1)
            self.assertAllInRange(self.evaluate(a), 0.0, 1.0)
            self.assertEqual([10], a.shape.as_list())
            with self.assertRaisesRegex(ValueError, "Must specify maxval"):
                random_ops.random_uniform([1], dtype=dtypes.int32)
            with self.assertRaises((ValueError, TypeError)):
                random_ops.random_uniform([1], dtype=dtypes.string)
            self.assertItemsEqual([1, 2, 3], self.evaluate(random_ops.random_shuffle([1, 2, 3])))

    @test_util.run_deprecated_v1
    def test_initializers(self):
        with self.cached_session():
            self.assertAllEqual([[1, 2], [3, 4]], init_ops.constant_initializer([1, 2, 3, 4], dtypes.int32)([2, 2]))
            with self.assertRaises((TypeError, ValueError)):
                init_ops.constant_initializer([1, 2, 3], verify_shape=True)([2, 2])
            q = self.evaluate(init_ops.orthogonal_initializer()([3, 3]))
            self.assertAllClose(np.eye(3), q @ q.T, 1e-5, 1e-5)
            with self.assertRaises(ValueError):
                init_ops.orthogonal_initializer()([3])
            with self.assertRaises(ValueError):
                init_ops.variance_scaling_initializer(scale=-1.0)
            config = init_ops.random_normal_initializer(mean=1.0, seed=3).get_config()
            self.assertEqual((1.0, 3), (config["mean"], config["seed"]))


if __name__ == "__main__":
    test.main()
