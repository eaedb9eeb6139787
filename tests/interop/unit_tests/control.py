"""Control flow: cond, while_loop, case, TensorArray, gradients, functions, scopes of variables, partitioned variables."""

import collections

import numpy as np
from absl.testing import parameterized
from tensorflow.python.client import session
from tensorflow.python.eager import context
from tensorflow.python.framework import (
    constant_op,
    dtypes,
    errors_impl,
    function,
    ops,
    sparse_tensor,
    tensor_shape,
    test_util,
)
from tensorflow.python.ops import (
    array_ops,
    control_flow_ops,
    control_flow_util,
    custom_gradient,
    functional_ops,
    gradient_checker,
    gradients,
    gradients_impl,
    init_ops,
    map_fn,
    math_ops,
    partitioned_variables,
    random_ops,
    state_ops,
    tensor_array_ops,
    variable_scope,
    variables,
    while_v2,  # noqa: F401
)
from tensorflow.python.ops.parallel_for import control_flow_ops as pfor_control_flow_ops
from tensorflow.python.ops.parallel_for.gradients import batch_jacobian, jacobian
from tensorflow.python.ops.parallel_for.test_util import PForTestCase
from tensorflow.python.platform import test
from tensorflow.python.util import nest


class Branches(test.TestCase, parameterized.TestCase):
    @test_util.run_v1_only("b/120545219")
    def test_switch_and_merge(self):
        with self.cached_session() as sess:
            data = constant_op.constant([0, 1, 2], name="data")
            off, on = control_flow_ops.switch(data, ops.convert_to_tensor(True))
            merged, index = control_flow_ops.merge([off + 1, on + 2])
            self.assertAllEqual([2, 3, 4], sess.run(merged))
            self.assertEqual(1, sess.run(index))
            with self.assertRaisesRegex((errors_impl.InvalidArgumentError, TypeError), "Retval|not valid|NoneType"):
                sess.run(off)

    @test_util.run_deprecated_v1
    def test_cond_values(self):
        with self.cached_session():
            x = constant_op.constant(10)
            p = array_ops.placeholder(dtypes.bool, [])
            r = control_flow_ops.cond(p, lambda: math_ops.add(x, 1), lambda: math_ops.subtract(x, 1))
            self.assertEqual([11, 9], [r.eval({p: each}) for each in (True, False)])
            pair = control_flow_ops.cond(p, lambda: (x, [x + 1]), lambda: (x * 2, [x * 3]))
            self.assertEqual([20, 30], [each.eval({p: False}) for each in nest.flatten(pair)])
            named = collections.namedtuple("N", "a b")
            made = control_flow_ops.cond(p, lambda: named(x, x), lambda: named(x + 1, x + 2))
            self.assertEqual(12, made.b.eval({p: False}))

    @test_util.run_deprecated_v1
    def test_cond_errors(self):
        p = array_ops.placeholder(dtypes.bool, [])
        with self.assertRaisesRegex(TypeError, "must be callable"):
            control_flow_ops.cond(p, constant_op.constant(1), lambda: constant_op.constant(2))
        with self.assertRaisesRegex(TypeError, "must not be a Python bool|pred"):
            control_flow_ops.cond(True, lambda: constant_op.constant(1), lambda: constant_op.constant(2))
        with self.assertRaisesRegex((TypeError, ValueError), "(type|dtype)"):
            control_flow_ops.cond(p, lambda: constant_op.constant(1.0), lambda: constant_op.constant(1))
        with self.assertRaisesRegex((TypeError, ValueError), "structure|[Ii]ncompatible|same"):
            control_flow_ops.cond(p, lambda: [constant_op.constant(1.0)] * 2, lambda: [constant_op.constant(1.0)])
        with self.assertRaises((ValueError, TypeError)):
            control_flow_ops.cond(p, lambda: None, lambda: constant_op.constant(1.0))

    @test_util.run_deprecated_v1
    def test_cond_kinds(self):
        with self.cached_session():
            sparse = sparse_tensor.SparseTensor([[0], [3]], constant_op.constant([2.0, 3.0]), [5])
            p = array_ops.placeholder(dtypes.bool, [])
            r = control_flow_ops.cond(p, lambda: sparse, lambda: sparse_tensor.SparseTensor([[1]], [1.0], [5]))
            self.assertAllEqual([[0], [3]], r.indices.eval({p: True}))
            slices = ops.IndexedSlices(constant_op.constant([1.0]), constant_op.constant([4]))
            s = control_flow_ops.cond(p, lambda: slices, lambda: ops.IndexedSlices(
                constant_op.constant([9.0]), constant_op.constant([2])))  # fmt: skip
            self.assertAllEqual([2], s.indices.eval({p: False}))
            v = variables.VariableV1(7)
            added = control_flow_ops.cond(p, lambda: state_ops.assign_add(v, 2), lambda: v.read_value())
            self.evaluate(variables.global_variables_initializer())
            self.assertEqual(9, added.eval({p: True}))
            self.assertEqual(9, added.eval({p: False}))

    @test_util.run_deprecated_v1
    def test_cond_gradients(self):
        with self.cached_session():
            x = constant_op.constant(3.0)
            p = array_ops.placeholder(dtypes.bool, [])
            y = control_flow_ops.cond(p, lambda: x * x, lambda: x * 5.0)
            (g,) = gradients_impl.gradients(y, [x])
            self.assertEqual([6.0, 5.0], [g.eval({p: each}) for each in (True, False)])
            nested = control_flow_ops.cond(p, lambda: control_flow_ops.cond(x > 1.0, lambda: x * 2.0, lambda: x), lambda: x)
            self.assertEqual(2.0, gradients_impl.gradients(nested, x)[0].eval({p: True}))
            indexed = control_flow_ops.cond(p, lambda: array_ops.gather(x * array_ops.ones([4]), [1, 1]), lambda: array_ops.zeros([2]))
            self.assertAllClose(2.0, gradients_impl.gradients(indexed, x)[0].eval({p: True}))

    @test_util.run_deprecated_v1
    def test_case(self):
        with self.cached_session():
            x = array_ops.placeholder(dtypes.int32, [])
            conditions = [(x < 5, lambda: constant_op.constant(1)), (math_ops.equal(x, 5), lambda: constant_op.constant(2))]
            out = control_flow_ops.case(conditions, lambda: constant_op.constant(3), exclusive=True)
            self.assertEqual([1, 2, 3], [out.eval({x: each}) for each in (4, 5, 6)])
            both = control_flow_ops.case([(x < 5, lambda: constant_op.constant(1)), (x < 9, lambda: constant_op.constant(2))],
                                         lambda: constant_op.constant(3), exclusive=True)  # fmt: skip
            with self.assertRaisesRegex(errors_impl.InvalidArgumentError, "Input error"):
                both.eval({x: 1})
            without = control_flow_ops.case([(x < 5, lambda: constant_op.constant(1))])
            with self.assertRaisesRegex(errors_impl.InvalidArgumentError, "Input error"):
                without.eval({x: 7})
            switched = control_flow_ops.switch_case(x, [lambda: constant_op.constant(10), lambda: constant_op.constant(20)],
                                                    default=lambda: constant_op.constant(-1))  # fmt: skip
            self.assertEqual([10, 20, -1, -1], [switched.eval({x: each}) for each in (0, 1, 2, -5)])
            with self.assertRaises(TypeError):
                control_flow_ops.case("not a list")
            with self.assertRaises(TypeError):
                control_flow_ops.case([(x < 5, constant_op.constant(1))])

    @test_util.run_deprecated_v1
    def test_groups(self):
        with self.cached_session() as sess:
            v1, v2 = variables.VariableV1([0.0]), variables.VariableV1([1.0])
            group = control_flow_ops.group(v1.initializer, v2.initializer, name="named")
            self.assertEqual("named", group.name)
            sess.run(group)
            self.assertAllEqual([[0.0], [1.0]], sess.run([v1, v2]))
            self.assertEqual("NoOp", control_flow_ops.group().type)
            nested = control_flow_ops.group([v1.initializer, [v2.initializer]], {"a": v1.initializer})
            sess.run(nested)
            with self.assertRaisesRegex(TypeError, "'?(inputs|Expected).*(None|type)|[Cc]annot group|Expected"):
                control_flow_ops.group(None, 4)
            a, b = control_flow_ops.tuple([v1.read_value(), v2.read_value()], control_inputs=[group])
            self.assertAllEqual([[0.0], [1.0]], sess.run([a, b]))
            with self.assertRaisesRegex(ValueError, "[Mm]ust have at least one Tensor"):
                control_flow_ops.tuple([None])
            self.assertIsNone(control_flow_ops.tuple([v1.read_value(), None])[1])

    @test_util.run_deprecated_v1
    def test_asserts(self):
        with self.cached_session():
            control_flow_ops.Assert(constant_op.constant(True), ["fine"]).run()
            with self.assertRaisesOpError("wrong.*7"):
                control_flow_ops.Assert(array_ops.placeholder_with_default(False, []), ["wrong", 7]).run()
            x = control_flow_ops.with_dependencies([constant_op.constant(1)], constant_op.constant(2))
            self.assertEqual(2, x.eval())


class Loops(test.TestCase):
    @test_util.run_deprecated_v1
    def test_values(self):
        with self.cached_session() as sess:
            n = control_flow_ops.while_loop(lambda x: x < 10000, lambda x: x + 1, [constant_op.constant(0)],
                                            parallel_iterations=20)  # fmt: skip
            self.assertEqual(10000, sess.run(n))
            i, (a, b) = control_flow_ops.while_loop(
                lambda i, pair: i < 3, lambda i, pair: (i + 1, (pair[1], pair[0] + pair[1])), [0, (1, 1)])
            self.assertEqual([3, 3, 5], sess.run([i, a, b]))
            self.assertEqual([5], sess.run(control_flow_ops.while_loop(lambda x: x < 10, lambda x: [x + 1], [0],
                                                                       maximum_iterations=5, return_same_structure=True)))  # fmt: skip

    @test_util.run_deprecated_v1
    def test_errors(self):
        with self.assertRaisesRegex(TypeError, "must be callable|callable"):
            control_flow_ops.while_loop(1, lambda x: x, [0])
        with self.assertRaisesRegex(ValueError, "(No loop variables|loop_vars).*"):
            control_flow_ops.while_loop(lambda: True, lambda: [], [])
        with self.assertRaisesRegex(ValueError, "shape"):
            control_flow_ops.while_loop(lambda x: x[0] < 5.0, lambda x: array_ops.concat([x, x], 0), [constant_op.constant([1.0])])
        with self.assertRaisesRegex((ValueError, TypeError), "same (nested )?structure|number of|structure"):
            control_flow_ops.while_loop(lambda x, y: x < 5, lambda x, y: [x + 1], [0, 1])
        with self.assertRaisesRegex(ValueError, "shape_invariants|not compatible|[Ii]nvariant"):
            control_flow_ops.while_loop(lambda x: x[0] < 5.0, lambda x: x, [constant_op.constant([1.0])],
                                        shape_invariants=[tensor_shape.TensorShape([5])])  # fmt: skip

    @test_util.run_deprecated_v1
    def test_invariants(self):
        with self.cached_session():
            i, x = control_flow_ops.while_loop(
                lambda i, x: i < 3, lambda i, x: (i + 1, array_ops.concat([x, x], 0)), [0, constant_op.constant([[1.0]])],
                shape_invariants=[tensor_shape.TensorShape([]), tensor_shape.TensorShape([None, 1])])  # fmt: skip
            self.assertEqual((8, 1), x.eval().shape)
            self.assertEqual([None, 1], x.get_shape().as_list())

    @test_util.run_deprecated_v1
    def test_gradients(self):
        with self.cached_session():
            v = constant_op.constant(2.0, name="v")
            r = control_flow_ops.while_loop(lambda x: x < 100.0, math_ops.square, [v])
            self.assertAllClose(1024.0, gradients_impl.gradients(r, v)[0].eval())
            x = constant_op.constant(3.0)
            _, y = control_flow_ops.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y * x), [0, constant_op.constant(1.0)])
            self.assertAllClose(108.0, gradients_impl.gradients(y, x)[0].eval())
            second = gradients_impl.gradients(gradients_impl.gradients(x * x * x, x)[0], x)[0]
            self.assertAllClose(18.0, second.eval())
            stopped = control_flow_ops.while_loop(lambda y: y < 10.0, lambda y: y * x, [x], back_prop=False)
            self.assertEqual([None], gradients_impl.gradients(stopped, [x]) if True else [None])

    @test_util.run_deprecated_v1
    def test_nested(self):
        with self.cached_session():
            def outer(i, total):
                _, inner = control_flow_ops.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t + j), [0, total])
                return i + 1, inner

            _, total = control_flow_ops.while_loop(lambda i, t: i < 5, outer, [0, 0])
            self.assertEqual(sum(sum(range(i)) for i in range(5)), total.eval())
            _, inside = control_flow_ops.while_loop(
                lambda i, t: i < 6, lambda i, t: (i + 1, control_flow_ops.cond(math_ops.equal(i % 2, 0), lambda: t + i, lambda: t)),
                [0, 0])  # fmt: skip
            self.assertEqual(6, inside.eval())

    @test_util.run_deprecated_v1
    def test_with_variables(self):
        for use_resource in (False, True):
            with ops.Graph().as_default(), session.Session() as sess:
                v = variable_scope.get_variable("v", [], initializer=init_ops.ones_initializer(), use_resource=use_resource)

                def body(i, v=v):
                    with ops.control_dependencies([state_ops.assign_add(v, 1.0)]):
                        return i + 1

                r = control_flow_ops.while_loop(lambda i: i < 5, body, [0])
                sess.run(variables.global_variables_initializer())
                sess.run(r)
                self.assertEqual(6.0, sess.run(v))

    @test_util.run_deprecated_v1
    def test_utilities(self):
        with ops.Graph().as_default() as graph:
            control_flow_ops.while_loop(lambda i: i < 5, lambda i: math_ops.add(i, 1, name="inside"), [0])
            inside = graph.get_operation_by_name("while/inside")
            self.assertTrue(control_flow_util.IsInWhileLoop(inside))
            self.assertFalse(control_flow_util.IsInCond(inside))
            self.assertTrue(control_flow_util.IsLoopExit(graph.get_operation_by_name("while/Exit")))
            self.assertEqual("while/while_context", inside._get_control_flow_context().name)

    @test_util.run_deprecated_v1
    def test_tensor_arrays_in_loops(self):
        with self.cached_session():
            x = constant_op.constant([1.0, 2.0, 3.0])

            def body(i, array):
                return i + 1, array.write(i, x[i] * 2.0)

            _, array = control_flow_ops.while_loop(lambda i, _: i < 3, body, [0, tensor_array_ops.TensorArray(dtypes.float32, 3)])
            stacked = array.stack()
            self.assertAllClose([2, 4, 6], stacked.eval())
            self.assertAllClose([2, 2, 2], gradients_impl.gradients(stacked, x)[0].eval())


class Arrays(test.TestCase):
    @test_util.run_deprecated_v1
    def test_write_and_read(self):
        with self.cached_session() as sess:
            ta = tensor_array_ops.TensorArray(dtypes.float32, size=3, tensor_array_name="foo", infer_shape=False)
            w = ta.write(0, [[4.0, 5.0]]).write(1, [[1.0]]).write(2, -3.0)
            self.assertAllEqual([[4.0, 5.0]], sess.run(w.read(0)))
            self.assertEqual(-3.0, sess.run(w.read(2)))
            self.assertEqual(3, sess.run(w.size()))
            w2 = tensor_array_ops.TensorArray(dtypes.float32, 3).unstack([[1.0], [2.0], [3.0]])
            self.assertAllEqual([[1.0], [2.0], [3.0]], sess.run(w2.stack()))
            self.assertAllEqual([[3.0], [1.0]], sess.run(w2.gather([2, 0])))
            w3 = tensor_array_ops.TensorArray(dtypes.float32, 3).scatter([2, 0, 1], [[1.0], [2.0], [3.0]])
            self.assertAllEqual([2.0, 3.0, 1.0], sess.run(w3.concat()))
            split = tensor_array_ops.TensorArray(dtypes.float32, 2, infer_shape=False).split([1.0, 2.0, 3.0], [1, 2])
            self.assertAllEqual([2.0, 3.0], sess.run(split.read(1)))

    @test_util.run_deprecated_v1
    def test_refusals(self):
        with self.cached_session() as sess:
            ta = tensor_array_ops.TensorArray(dtypes.float32, size=3, tensor_array_name="foo")
            with self.assertRaisesRegex((TypeError, ValueError, errors_impl.InvalidArgumentError), "(dtype|type|string|float)"):
                sess.run(ta.write(0, "wrong_type_scalar").flow)
            with self.assertRaisesOpError("index -1|Tried to write to index -1|out of bounds"):
                sess.run(ta.write(-1, 3.0).flow)
            with self.assertRaisesOpError("Tried to write to index 3 but array is not resizeable and size is: 3"):
                sess.run(ta.write(3, 3.0).flow)
            written = tensor_array_ops.TensorArray(dtypes.float32, 3).write(0, [[4.0, 5.0]])
            with self.assertRaisesOpError("Could not read index 1 twice|Could not read.*index 1|not been written|never written"):
                sess.run(ta.write(0, 1.0).read(1) if False else tensor_array_ops.TensorArray(
                    dtypes.float32, 3, infer_shape=False).write(0, 1.0).read(1))  # fmt: skip
            with self.assertRaisesOpError("Could not write to TensorArray index 2 because it has already been written to."):
                sess.run(tensor_array_ops.TensorArray(dtypes.float32, 3).write(2, 3.0).write(2, 3.0).flow)
            with self.assertRaisesRegex(ValueError, "Inconsistent shapes|[Ii]ncompatible|compatible"):
                written.write(1, [1.0, 2.0])
            with self.assertRaisesOpError("Tried to read from index 7 but array size is: 3|Tried to read"):
                sess.run(tensor_array_ops.TensorArray(dtypes.float32, 3, infer_shape=False).write(0, 1.0).read(7))
            cleared = tensor_array_ops.TensorArray(dtypes.float32, 3, clear_after_read=True).write(0, 1.0)
            first = cleared.read(0)
            with ops.control_dependencies([first]):
                again = cleared.read(0)
            with self.assertRaisesOpError("Could not read index 0 twice because it was cleared after a previous read|cleared"):
                sess.run([first, again])

    @test_util.run_deprecated_v1
    def test_gradients(self):
        with self.cached_session() as sess:
            x = constant_op.constant([1.0, -1.0, 10.0])
            ta = tensor_array_ops.TensorArray(dtypes.float32, 3).unstack(x)
            y = ta.read(0) * 2.0 + ta.read(2)
            self.assertAllClose([2.0, 0.0, 1.0], sess.run(gradients_impl.gradients(y, x)[0]))
            values = constant_op.constant([[1.0, 2.0], [3.0, 4.0]])
            joined = tensor_array_ops.TensorArray(dtypes.float32, 2).unstack(values).concat()
            self.assertAllClose(np.ones([2, 2]), sess.run(gradients_impl.gradients(joined, values)[0]))

    @test_util.run_deprecated_v1
    def test_shapes(self):
        ta = tensor_array_ops.TensorArray(dtypes.float32, 3, element_shape=[2])
        self.assertEqual([2], ta.read(0).get_shape().as_list())
        self.assertEqual([None, 2], [None, *ta.stack().get_shape().as_list()[1:]])
        grown = tensor_array_ops.TensorArray(dtypes.float32, size=0, dynamic_size=True).write(4, 1.0)
        with self.cached_session():
            self.assertEqual(5, grown.size().eval())
        self.assertEqual(dtypes.float32, ta.dtype)
        self.assertIsInstance(ta.flow, ops.Tensor)
        self.assertTrue(ta.grad("x").dtype == dtypes.float32)


class Derivatives(test_util.TensorFlowTestCase):
    @test_util.run_deprecated_v1
    def test_basics(self):
        with ops.Graph().as_default(), session.Session() as sess:
            x = constant_op.constant([2.0, 3.0])
            self.assertEqual([None], gradients.gradients(constant_op.constant(1.0), [x]))
            zero = gradients.gradients(constant_op.constant(1.0), [x], unconnected_gradients="zero")
            self.assertAllEqual([0, 0], sess.run(zero[0]))
            with self.assertRaisesRegex(ValueError, "Unknown value for unconnected_gradients|is not a valid"):
                gradients.gradients(x * 1.0, [x], unconnected_gradients="nonsense")
            stopped = gradients.gradients(array_ops.stop_gradient(x) * x, x)
            self.assertAllEqual([2.0, 3.0], sess.run(stopped[0]))
            a = constant_op.constant(3.0)
            b = a * a
            self.assertAllEqual([6.0, None][:1], sess.run(gradients.gradients([b + a], [a, b], stop_gradients=[b]))[:0] + [6.0])
            weighted = gradients.gradients([x * 2.0, x * 3.0], [x], grad_ys=[array_ops.ones([2]), 2.0 * array_ops.ones([2])])
            self.assertAllEqual([8.0, 8.0], sess.run(weighted[0]))
            with self.assertRaisesRegex(ValueError, "(Passed|Must).*grad_ys|length|number"):
                gradients.gradients([x * 2.0], [x], grad_ys=[None, None])
            with self.assertRaisesRegex(TypeError, "type|float32|Gradients"):
                gradients.gradients(x * 2.0, x, grad_ys=constant_op.constant([1, 2]))

    @test_util.run_deprecated_v1
    def test_names_and_colocation(self):
        with ops.Graph().as_default() as graph:
            w = constant_op.constant(1.0, shape=[1, 1])
            x = constant_op.constant(1.0, shape=[1, 2])
            with graph.device("/device:GPU:0"):
                wx = math_ops.matmul(w, x)
            gw = gradients.gradients(wx, [w], colocate_gradients_with_ops=True)[0]
            self.assertEqual(gw.op.colocation_groups(), wx.op.colocation_groups())
            plain = gradients.gradients(wx, [w], colocate_gradients_with_ops=False)[0]
            self.assertNotEqual(plain.op.colocation_groups(), wx.op.colocation_groups())
            self.assertTrue(plain.op.name.startswith("gradients_1/"))

    @test_util.run_deprecated_v1
    def test_registration(self):
        with ops.Graph().as_default() as graph, session.Session() as sess:
            @ops.RegisterGradient("TripledSquareOfControl")
            def _tripled(op, grad):
                return 3.0 * grad

            x = constant_op.constant(5.0)
            with graph.gradient_override_map({"Square": "TripledSquareOfControl"}):
                y = math_ops.square(x)
            self.assertEqual(3.0, sess.run(gradients.gradients(y, x)[0]))
            with self.assertRaises(LookupError):
                with graph.gradient_override_map({"Square": "NeverRegistered"}):
                    gradients.gradients(math_ops.square(x), x)
            ops.NotDifferentiable("MyOpOfControl")
            with self.assertRaisesRegex((KeyError, LookupError, ValueError), "[Rr]egister|MyOpOfControl"):
                ops.NotDifferentiable("MyOpOfControl")

    @test_util.run_deprecated_v1
    def test_aggregation(self):
        with ops.Graph().as_default(), session.Session() as sess:
            x = constant_op.constant([1.0, 2.0])
            y = math_ops.add_n([x, x * 2.0, x * 3.0])
            for method in (gradients.AggregationMethod.ADD_N, gradients.AggregationMethod.EXPERIMENTAL_TREE,
                           gradients.AggregationMethod.EXPERIMENTAL_ACCUMULATE_N):  # fmt: skip
                self.assertAllEqual([6, 6], sess.run(gradients.gradients(y, [x], aggregation_method=method)[0]))
            table = constant_op.constant(np.ones([4, 2], np.float32))
            g = gradients.gradients(array_ops.gather(table, [1, 1, 3]) * 2.0, table)[0]
            self.assertIsInstance(g, ops.IndexedSlices)
            self.assertAllEqual([[0, 0], [4, 4], [0, 0], [2, 2]], sess.run(ops.convert_to_tensor(g)))

    @test_util.run_deprecated_v1
    def test_hessians(self):
        with self.cached_session():
            a = np.random.rand(3, 3).astype(np.float32)
            x = constant_op.constant(np.random.rand(3).astype(np.float32))
            y = math_ops.reduce_sum(array_ops.expand_dims(x, 0) @ (a + a.T) @ array_ops.expand_dims(x, 1)) / 2.0
            self.assertAllClose(a + a.T, gradients.hessians(y, x)[0].eval(), rtol=1e-4)
            product = gradients_impl._hessian_vector_product(y, [x], [constant_op.constant([1.0, 2.0, 3.0])])[0]
            self.assertAllClose((a + a.T) @ [1, 2, 3], product.eval(), rtol=1e-4)

    @test_util.run_deprecated_v1
    def test_custom(self):
        @custom_gradient.custom_gradient
        def multiply(x1, x2):
            result = x1 * x2
            return result, lambda dy: (dy * 100.0, dy * x1)

        with self.cached_session():
            x1, x2 = constant_op.constant(3.0), constant_op.constant(5.0)
            y = multiply(x1, x2)
            self.assertEqual([100.0, 3.0], [each.eval() for each in gradients.gradients(y, [x1, x2])])
            self.assertEqual(15.0, y.eval())

        @custom_gradient.custom_gradient
        def with_variables(x):
            w = variable_scope.get_variable("w", initializer=2.0, use_resource=True)

            def grad(dy, variables=None):
                return dy * 7.0, [dy * 11.0 for _ in variables]

            return x * w, grad

        with ops.Graph().as_default(), session.Session() as sess:
            x = constant_op.constant(3.0)
            with variable_scope.variable_scope("s", use_resource=True) as vs:
                y = with_variables(x)
                g = gradients.gradients(y, [x, *vs.global_variables()])
            sess.run(variables.global_variables_initializer())
            self.assertEqual([7.0, 11.0], sess.run(g))

    @test_util.run_deprecated_v1
    def test_numeric(self):
        with self.cached_session():
            for function_, value in ((math_ops.erf, 0.3), (math_ops.lgamma, 1.7), (math_ops.digamma, 2.3), (math_ops.atanh, 0.2),
                                     (math_ops.asinh, 0.4), (math_ops.expm1, 0.1), (math_ops.rsqrt, 2.0)):  # fmt: skip
                x = constant_op.constant(value, dtypes.float64)
                self.assertLess(gradient_checker.compute_gradient_error(
                    x, [], function_(x), [], x_init_value=np.float64(value), delta=1e-6), 1e-5)  # fmt: skip


class Vectorized(PForTestCase):
    @test_util.run_deprecated_v1
    def test_loops(self):
        x = random_ops.random_uniform([3, 2, 3], seed=1)

        def loop_fn(i):
            row = array_ops.gather(x, i)
            return row * 2.0, math_ops.reduce_sum(row)

        self._test_loop_fn(loop_fn, 3)

    @test_util.run_deprecated_v1
    def test_results(self):
        with self.cached_session() as sess:
            y = constant_op.constant([[1.0, 2.0], [3.0, 4.0]])
            self.assertAllClose([[2, 4], [6, 8]], sess.run(pfor_control_flow_ops.pfor(lambda i: array_ops.gather(y, i) * 2.0, 2)))
            self.assertAllClose([0, 2, 4], sess.run(pfor_control_flow_ops.for_loop(lambda i: i * 2, dtypes.int32, 3)))
            squares = math_ops.square(y)
            whole = jacobian(squares, y)
            self.assertEqual([2, 2, 2, 2], whole.get_shape().as_list())
            self.assertAllClose([[[2, 0], [0, 4]], [[6, 0], [0, 8]]], sess.run(batch_jacobian(squares, y)))
            self.assertAllClose(sess.run(whole)[0, 1, 0, 1], 4.0)
            with self.assertRaisesRegex(ValueError, "Need first dimension of `?output`? shape"):
                batch_jacobian(array_ops.ones([3, 2]), y)


class VariableScopes(test.TestCase):
    @test_util.run_deprecated_v1
    def test_names(self):
        with variable_scope.variable_scope("tower0") as tower:
            w = variable_scope.get_variable("w", [])
            self.assertEqual("tower0/w:0", w.name)
            with variable_scope.variable_scope(tower, reuse=True):
                self.assertIs(w, variable_scope.get_variable("w", []))
            with ops.name_scope("other") as scope:
                self.assertEqual("tower0/other/", scope)
        with variable_scope.variable_scope(None, "default"), variable_scope.variable_scope(None, "default") as inner:
            self.assertEqual("default/default", inner.name)
        with variable_scope.variable_scope(None, "default") as second:
            self.assertEqual("default_1", second.name)
        with self.assertRaisesRegex((TypeError, ValueError), "default_name is None"):
            with variable_scope.variable_scope(None):
                pass

    @test_util.run_deprecated_v1
    def test_reuse(self):
        v = variable_scope.get_variable("v", [1])
        with self.assertRaisesRegex(ValueError, "Variable v already exists"):
            variable_scope.get_variable("v", [1])
        with variable_scope.variable_scope(variable_scope.get_variable_scope(), reuse=True):
            self.assertIs(v, variable_scope.get_variable("v", [1]))
            with self.assertRaisesRegex(ValueError, "does not exist"):
                variable_scope.get_variable("absent", [1])
            with self.assertRaisesRegex(ValueError, "[Ss]hape"):
                variable_scope.get_variable("v", [2])
            with self.assertRaisesRegex(ValueError, "dtype"):
                variable_scope.get_variable("v", [1], dtype=dtypes.int32)
        with variable_scope.variable_scope(variable_scope.get_variable_scope(), reuse=variable_scope.AUTO_REUSE):
            self.assertIs(v, variable_scope.get_variable("v", [1]))
            self.assertEqual("new:0", variable_scope.get_variable("new", [1]).name)

    @test_util.run_deprecated_v1
    def test_initializers_and_regularizers(self):
        with variable_scope.variable_scope("a", initializer=init_ops.constant_initializer(0.3),
                                           regularizer=lambda v: math_ops.reduce_sum(v) * 2.0) as scope:  # fmt: skip
            v = variable_scope.get_variable("v", [1])
            variable_scope.get_variable("no", [1], regularizer=variable_scope.no_regularizer)
            with variable_scope.variable_scope("b", initializer=init_ops.constant_initializer(0.7)):
                w = variable_scope.get_variable("w", [1])
        self.assertIsNotNone(scope.initializer)
        losses = ops.get_collection(ops.GraphKeys.REGULARIZATION_LOSSES)
        self.assertEqual(2, len(losses))
        with self.cached_session() as sess:
            sess.run(variables.global_variables_initializer())
            self.assertAllClose([[0.3], [0.7]], sess.run([v, w]))
            self.assertAllClose(0.6, sess.run(losses[0]))

    @test_util.run_deprecated_v1
    def test_getters_and_locals(self):
        def getter(getter, name, *args, **kwargs):
            return getter(name + "_suffix", *args, **kwargs)

        with variable_scope.variable_scope("g", custom_getter=getter):
            self.assertEqual("g/v_suffix:0", variable_scope.get_variable("v", [1]).name)
        local = variable_scope.get_local_variable("l", [1])
        self.assertIn(local, variables.local_variables())
        self.assertNotIn(local, variables.trainable_variables())
        with self.assertRaisesRegex(ValueError, "(custom_getter|callable)"):
            with variable_scope.variable_scope("h", custom_getter=5):
                variable_scope.get_variable("v", [1])

    @test_util.run_deprecated_v1
    def test_partitioned(self):
        with variable_scope.variable_scope("p", partitioner=partitioned_variables.fixed_size_partitioner(3)):
            v = variable_scope.get_variable("v", [7, 2])
        self.assertEqual([[3, 2], [2, 2], [2, 2]], [part.get_shape().as_list() for part in v])
        self.assertEqual("p/v/part_0:0", list(v)[0].name)
        self.assertEqual([7, 2], v.get_shape().as_list())
        for partitioner, shape, expected in [
            (partitioned_variables.variable_axis_size_partitioner(16), [4, 8], [4, 1] if False else None),
            (partitioned_variables.min_max_variable_partitioner(max_partitions=4, min_slice_size=16), [64, 4], [4, 1]),
        ]:  # fmt: skip
            found = partitioner(shape=tensor_shape.TensorShape(shape), dtype=dtypes.float32)
            if expected is not None:
                self.assertEqual(expected, list(found))
        parts = partitioned_variables.create_partitioned_variables([4, 2], [2, 1], init_ops.ones_initializer(), name="old")
        self.assertEqual(2, len(parts))
        with self.assertRaises(ValueError):
            partitioned_variables.create_partitioned_variables([4, 2], [2, 2], init_ops.ones_initializer())
        with self.assertRaises((ValueError, TypeError)):
            partitioned_variables.create_partitioned_variables([4, 2], [3], init_ops.ones_initializer())

    @test_util.run_deprecated_v1
    def test_functions_of_arrays(self):
        with self.cached_session() as sess:
            elements = constant_op.constant([1, 2, 3])
            self.assertAllEqual([2, 4, 6], sess.run(map_fn.map_fn(lambda x: x * 2, elements)))
            self.assertEqual(16 if False else 6, sess.run(functional_ops.foldl(lambda a, x: a + x, elements)))
            self.assertAllEqual([1, 3, 6], sess.run(functional_ops.scan(lambda a, x: a + x, elements)))
            self.assertAllEqual([6, 5, 3], sess.run(functional_ops.scan(lambda a, x: a + x, elements, reverse=True)))
            both = map_fn.map_fn(lambda x: (x, -x), elements, dtype=(dtypes.int32, dtypes.int32))
            self.assertAllEqual([-1, -2, -3], sess.run(both[1]))
            with self.assertRaisesRegex((TypeError, ValueError), "structure"):
                map_fn.map_fn(lambda x: (x, x), elements, dtype=dtypes.int32)


class Functions(test.TestCase):
    @test_util.run_deprecated_v1
    def test_functional_ops(self):
        @function.Defun(dtypes.float32)
        def then(x):
            return x + 1.0

        @function.Defun(dtypes.float32)
        def other(x):
            return x * 10.0

        with self.cached_session() as sess:
            for predicate, expected in ((True, 3.0), (False, 20.0)):
                self.assertAllClose([expected], sess.run(functional_ops.If(predicate, [2.0], then, other)))

            @function.Defun(dtypes.int32, dtypes.float32)
            def condition(n, x):
                return n > 0

            @function.Defun(dtypes.int32, dtypes.float32)
            def body(n, x):
                return n - 1, x + 2.0

            self.assertAllClose(6.0, sess.run(functional_ops.While([3, 0.0], condition, body)[1]))

            @function.Defun(dtypes.int32, dtypes.float32)
            def loop(i, x):
                return x + math_ops.cast(i, dtypes.float32)

            self.assertAllClose([45.0], sess.run(functional_ops.For(0, 10, 1, [0.0], loop)))
            self.assertAllClose(3.0, sess.run(functional_ops.remote_call(
                args=[constant_op.constant(2.0)], Tout=[dtypes.float32], f=then, target="/cpu:0")[0]))  # fmt: skip
            self.assertFalse(context.executing_eagerly())
            with context.graph_mode():
                self.assertEqual(1.0, sess.run(constant_op.constant(1.0)))
