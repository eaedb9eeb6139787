"""State between steps: variables and their scopes, queues, stages, stacks, accumulators, handles, tables, readers."""

import os
import threading

import numpy as np
from tensorflow.core.framework import types_pb2
from tensorflow.python.client import session
from tensorflow.python.framework import constant_op, dtypes, errors, errors_impl, ops, tensor_shape, test_util
from tensorflow.python.ops import (
    array_ops,
    control_flow_ops,
    data_flow_ops,
    gen_array_ops,
    gen_data_flow_ops,
    gen_resource_variable_ops,
    gen_state_ops,
    gradients_impl,
    init_ops,
    io_ops,
    lookup_ops,
    math_ops,
    partitioned_variables,
    random_ops,
    resource_variable_ops,
    script_ops,
    session_ops,
    state_ops,
    template,
    tensor_array_ops,
    variable_scope,
    variables,
)
from tensorflow.python.platform import test
from tensorflow.python.training import (
    adadelta,
    adagrad,
    adam,
    device_setter,
    ftrl,
    gradient_descent,
    learning_rate_decay,
    momentum,
    moving_averages,
    optimizer,
    proximal_adagrad,
    rmsprop,
    server_lib,
    slot_creator,
    sync_replicas_optimizer,
    training_util,
)
from tensorflow.python.util import compat

try:
    from tensorflow.python.training import training_ops
except ImportError:  # its place since 2.x
    from tensorflow.python.ops import gen_training_ops as training_ops


class Variables(test.TestCase):
    @test_util.run_deprecated_v1
    def test_initialization(self):
        with self.cached_session():
            var0 = variables.VariableV1(0.0)
            self.assertEqual("Variable:0", var0.name)
            self.assertEqual("Variable", var0._shared_name)
            self.assertEqual([], var0.get_shape())
            self.assertEqual([], var0.shape)
            var1 = variables.VariableV1(1.1)
            self.assertEqual("Variable_1:0", var1.name)
            with self.assertRaisesOpError("Attempting to use uninitialized value"):
                self.evaluate(var0)
            self.evaluate(variables.global_variables_initializer())
            self.assertAllClose([0.0, 1.1], self.evaluate([var0, var1]))

    @test_util.run_deprecated_v1
    def test_order(self):
        with self.cached_session():
            rnd = variables.VariableV1(random_ops.random_uniform([3, 6]), name="rnd")
            dep = variables.VariableV1(rnd.initialized_value(), name="dep")
            added_val = rnd.initialized_value() + dep.initialized_value() + 2.0
            added_val.set_shape(rnd.get_shape())
            depdep = variables.VariableV1(added_val, name="depdep")
            self.evaluate(variables.global_variables_initializer())
            self.assertAllClose(self.evaluate(rnd), self.evaluate(dep))
            self.assertAllClose(self.evaluate(rnd) * 2 + 2.0, self.evaluate(depdep))

    @test_util.run_deprecated_v1
    def test_iterable(self):
        v = variables.VariableV1([0.0])
        with self.assertRaises(TypeError):
            for _ in variables.VariableV1(0.0):
                pass
        self.assertIsNotNone(v)

    @test_util.run_deprecated_v1
    def test_assignments(self):
        with self.cached_session():
            var = variables.VariableV1(0.0)
            plus_one, minus_one, four = var.assign_add(1.0), var.assign_sub(2.0), var.assign(4.0)
            self.evaluate(variables.global_variables_initializer())
            self.assertEqual(1.0, self.evaluate(plus_one))
            self.assertEqual(-1.0, self.evaluate(minus_one))
            self.assertEqual(4.0, self.evaluate(four))
            self.assertEqual(4.0, self.evaluate(var))
            self.evaluate(state_ops.assign(var, 9.0, use_locking=True, validate_shape=True))
            self.assertEqual(9.0, self.evaluate(var.read_value()))
            read = var.assign(3.0, read_value=False)
            self.assertIsInstance(read, ops.Operation)

    @test_util.run_deprecated_v1
    def test_zero_sized_parts(self):
        with self.cached_session():
            zero = variables.VariableV1(array_ops.zeros([0, 3]))
            self.evaluate(variables.global_variables_initializer())
            self.assertEqual((0, 3), self.evaluate(zero).shape)

    @test_util.run_deprecated_v1
    def test_counting(self):
        with self.cached_session():
            var = variables.VariableV1(0, name="count")
            up = var.count_up_to(3)
            self.evaluate(var.initializer)
            self.assertEqual([0, 1, 2], [self.evaluate(up) for _ in range(3)])
            with self.assertRaisesOpError("Reached limit of 3"):
                self.evaluate(up)

    @test_util.run_deprecated_v1
    def test_control_dependencies_none(self):
        with self.cached_session():
            c = constant_op.constant(1.0)
            with ops.control_dependencies([c]):
                d = constant_op.constant(2.0)
                var_x = variables.VariableV1(2.0)
            self.assertEqual([c.op], d.op.control_inputs)
            self.assertEqual([], var_x.initializer.control_inputs)
            self.assertEqual([], var_x.value().op.control_inputs)

    @test_util.run_deprecated_v1
    def test_cached(self):
        with self.cached_session():
            for device in ("/cpu:0", "/job:ps/cpu:0"):
                v = variables.VariableV1(1.0, caching_device=device)
                self.assertEqual("/device:CPU:0" if "ps" not in device else "/job:ps/device:CPU:0", v.value().device)

    @test_util.run_deprecated_v1
    def test_collections(self):
        with self.cached_session():
            x = variables.VariableV1(2.0)
            y = variables.VariableV1(3.0, trainable=False)
            z = x + y
            variables.VariableV1(1.0, collections=["mine"])
            self.assertEqual([x, y], variables.global_variables())
            self.assertNotIn(y, variables.trainable_variables())
            self.evaluate(variables.global_variables_initializer())
            self.assertEqual(5.0, self.evaluate(z))

    @test_util.run_deprecated_v1
    def test_operators(self):
        with self.cached_session():
            var_f = variables.VariableV1([2.0])
            add, radd, sub, rsub = var_f + 0.0, 1.0 + var_f, var_f - 1.0, 1.0 - var_f
            mul, rmul, div, rdiv = var_f * 10.0, 10.0 * var_f, var_f / 10.0, 10.0 / var_f
            lt, rlt, le, ge = var_f < 3.0, var_f > 3.0, var_f <= 2.0, var_f >= 3.0
            neg, absolute = -var_f, abs(var_f)
            var_i, var_b = variables.VariableV1([20]), variables.VariableV1([True])
            mod, floor, xor, both, either, invert = (
                var_i % 7, var_i // 3, var_b ^ [True], var_b & [False], [False] | var_b, ~var_b)
            rnd = random_ops.random_uniform([3, 3])
            matrix = variables.VariableV1(rnd)
            self.evaluate(variables.global_variables_initializer())
            for expected, found in ((2.0, add), (3.0, radd), (1.0, sub), (-1.0, rsub), (20.0, mul), (20.0, rmul),
                                    (0.2, div), (5.0, rdiv), (-2.0, neg), (2.0, absolute)):
                self.assertAllClose([expected], self.evaluate(found))
            self.assertAllEqual([[True], [False], [True], [False]], self.evaluate([lt, rlt, le, ge]))
            self.assertAllEqual([[6], [6]], self.evaluate([mod, floor]))
            self.assertAllEqual([[False], [False], [True], [False]], self.evaluate([xor, both, either, invert]))
            self.assertEqual((3,), self.evaluate(matrix[1]).shape)
            self.assertEqual((2, 1), self.evaluate(matrix[1:, 0:1]).shape)

    @test_util.run_deprecated_v1
    def test_session_arguments(self):
        with self.cached_session() as sess:
            var = variables.VariableV1([1, 12])
            self.evaluate(variables.global_variables_initializer())
            self.assertAllEqual([1, 12], var.eval())
            self.assertAllEqual([1, 12], var.eval(sess))
            var.load([3, 4], sess)
            self.assertAllEqual([3, 4], var.eval())

    @test_util.run_deprecated_v1
    def test_function_as_initial_value(self):
        with self.cached_session():
            value = constant_op.constant(-42.0)

            def initializer():
                return constant_op.constant([1.0, 2.0])

            v1 = variables.VariableV1(initializer, dtype=dtypes.float32)
            self.assertEqual([2], v1.get_shape())
            v2 = variables.VariableV1(math_ops.negative(v1.initialized_value()), dtype=dtypes.float32)
            with self.assertRaises(errors_impl.FailedPreconditionError):
                self.evaluate(v1)
            self.evaluate(variables.global_variables_initializer())
            self.assertAllEqual([-1.0, -2.0], self.evaluate(v2))
            self.assertIsNotNone(value)

    @test_util.run_deprecated_v1
    def test_refused(self):
        with self.assertRaisesRegex(ValueError, "initial_value must be specified"):
            variables.VariableV1()
        with self.assertRaises(ValueError):
            variables.VariableV1(constraint=0, initial_value=1.0)
        with self.assertRaises(ValueError):
            variables.VariableV1(array_ops.placeholder(dtypes.float32), validate_shape=True)

    @test_util.run_deprecated_v1
    def test_definition(self):
        with self.cached_session() as sess:
            v = variables.VariableV1([[1.0, 12.0]], trainable=False)
            proto = v.to_proto()
            self.assertFalse(proto.trainable)
            w = variables.VariableV1.from_proto(proto)
            self.assertEqual(2, math_ops.add(w, 1).shape.ndims)
            self.assertFalse(w.trainable)
            sess.run(v.initializer)
            self.assertAllEqual([[1.0, 12.0]], sess.run(w))
            self.assertEqual(v.name, w.name)
            self.assertIn("tf.Variable 'Variable:0' shape=(1, 2) dtype=float32", repr(v))

    @test_util.run_deprecated_v1
    def test_uninitialized(self):
        with self.cached_session():
            v = variables.VariableV1([1, 2], name="v")
            variables.VariableV1([3, 4], name="w")
            uninited = variables.report_uninitialized_variables()
            self.assertAllEqual([b"v", b"w"], self.evaluate(uninited))
            self.evaluate(v.initializer)
            self.assertAllEqual([b"w"], self.evaluate(uninited))
            self.assertTrue(self.evaluate(variables.is_variable_initialized(v)))
            self.evaluate(variables.global_variables_initializer())
            self.assertEqual(0, self.evaluate(uninited).size)
            self.evaluate(variables.report_uninitialized_variables([v]))

    @test_util.run_deprecated_v1
    def test_no_variables_uninitialized(self):
        with self.cached_session():
            self.assertEqual(0, self.evaluate(variables.report_uninitialized_variables([])).size)
            self.assertIsNone(variables.assert_variables_initialized([]))

    @test_util.run_deprecated_v1
    def test_scatter_methods(self):
        with self.cached_session():
            for made in (variables.VariableV1, resource_variable_ops.ResourceVariable):
                v = made([1.0, 2.0, 3.0])
                self.evaluate(v.initializer)
                delta = ops.IndexedSlices(values=constant_op.constant([10.0]), indices=constant_op.constant([1]))
                self.evaluate(v.scatter_add(delta))
                self.assertAllEqual([1.0, 12.0, 3.0], self.evaluate(v))
                self.evaluate(v.scatter_sub(delta))
                self.evaluate(v.scatter_update(ops.IndexedSlices(constant_op.constant([7.0]), constant_op.constant([0]))))
                self.assertAllEqual([7.0, 2.0, 3.0], self.evaluate(v))
                self.evaluate(v.scatter_nd_add([[2]], [1.0]))
                self.evaluate(v.scatter_nd_update([[0]], [0.0]))
                self.evaluate(v.scatter_nd_sub([[1]], [2.0]))
                self.assertAllEqual([0.0, 0.0, 4.0], self.evaluate(v))

    @test_util.run_deprecated_v1
    def test_sliced_assignment(self):
        with self.cached_session():
            for made in (variables.VariableV1, resource_variable_ops.ResourceVariable):
                v = made([[1.0, 2.0], [3.0, 4.0]])
                self.evaluate(v.initializer)
                self.evaluate(v[0].assign([5.0, 6.0]))
                self.evaluate(v[:, 1].assign([7.0, 8.0]))
                self.assertAllEqual([[5.0, 7.0], [3.0, 8.0]], self.evaluate(v))

    @test_util.run_deprecated_v1
    def test_raw_variables(self):
        with self.cached_session():
            p = state_ops.variable_op([1, 2], dtypes.float32)
            self.assertEqual([1, 2], p.get_shape())
            p = state_ops.variable_op([1, 2], dtypes.float32, set_shape=False)
            self.assertEqual(tensor_shape.unknown_shape(), p.get_shape())
            var = gen_state_ops.temporary_variable([1, 2], dtypes.float32, var_name="foo")
            var = state_ops.assign(var, [[4.0, 5.0]])
            var = state_ops.assign_add(var, [[6.0, 7.0]])
            final = gen_state_ops.destroy_temporary_variable(var, var_name="foo")
            self.assertAllClose([[10.0, 12.0]], self.evaluate(final))
            v = state_ops.variable_op_v2([], dtypes.float32, name="raw")
            self.assertFalse(self.evaluate(state_ops.is_variable_initialized(v)))


class ResourceVariables(test.TestCase):
    @test_util.run_deprecated_v1
    def test_raw_handle(self):
        with self.cached_session():
            handle = resource_variable_ops.var_handle_op(dtype=dtypes.int32, shape=[1], name="foo")
            self.evaluate(resource_variable_ops.assign_variable_op(handle, constant_op.constant([1])))
            read = resource_variable_ops.read_variable_op(handle, dtype=dtypes.int32)
            self.assertAllEqual([1], self.evaluate(read))
            self.evaluate(resource_variable_ops.assign_add_variable_op(handle, constant_op.constant([5])))
            self.assertAllEqual([6], self.evaluate(read))
            self.assertTrue(self.evaluate(resource_variable_ops.var_is_initialized_op(handle)))
            self.evaluate(resource_variable_ops.destroy_resource_op(handle, ignore_lookup_error=False))
            with self.assertRaises(errors.OpError):
                self.evaluate(resource_variable_ops.destroy_resource_op(handle, ignore_lookup_error=False))
            self.evaluate(resource_variable_ops.destroy_resource_op(handle, ignore_lookup_error=True))

    @test_util.run_deprecated_v1
    def test_wrong_type(self):
        with self.cached_session():
            handle = resource_variable_ops.var_handle_op(dtype=dtypes.int32, shape=[], name="t")
            self.evaluate(resource_variable_ops.assign_variable_op(handle, constant_op.constant(1)))
            with self.assertRaisesRegex((errors.InvalidArgumentError, ValueError), "dtype|type"):
                self.evaluate(resource_variable_ops.read_variable_op(handle, dtype=dtypes.float32))

    @test_util.run_deprecated_v1
    def test_gather_and_scatter(self):
        with self.cached_session():
            v = resource_variable_ops.ResourceVariable([[1.0], [2.0], [3.0]])
            self.evaluate(v.initializer)
            self.assertAllEqual([[2.0]], self.evaluate(v.sparse_read([1])))
            self.assertAllEqual([2.0], self.evaluate(v.gather_nd([1])))
            handle = v.handle
            for op, expected in (
                    (resource_variable_ops.resource_scatter_add, 12.0), (resource_variable_ops.resource_scatter_sub, 2.0),
                    (resource_variable_ops.resource_scatter_mul, 20.0), (resource_variable_ops.resource_scatter_div, 2.0),
                    (resource_variable_ops.resource_scatter_max, 10.0),
                    (resource_variable_ops.resource_scatter_min, 10.0),
                    (resource_variable_ops.resource_scatter_update, 10.0)):
                self.evaluate(op(handle, [1], constant_op.constant([[10.0]])))
                self.assertAllClose(expected, self.evaluate(v)[1, 0])

    @test_util.run_deprecated_v1
    def test_definition(self):
        with self.cached_session():
            v = resource_variable_ops.ResourceVariable(300.0, name="v", trainable=False)
            w = resource_variable_ops.ResourceVariable.from_proto(v.to_proto())
            self.assertEqual("v:0", w.name)
            self.assertFalse(w.trainable)
            self.evaluate(v.initializer)
            self.assertEqual(300.0, self.evaluate(w))
            self.assertTrue(resource_variable_ops.is_resource_variable(w))
            self.assertIn("tf.Variable 'v:0' shape=() dtype=float32", repr(v))

    @test_util.run_deprecated_v1
    def test_assignments(self):
        with self.cached_session():
            v = resource_variable_ops.ResourceVariable(1.0, name="v")
            self.evaluate(v.initializer)
            self.assertEqual(2.0, self.evaluate(v.assign_add(1.0).read_value()))
            self.assertEqual(5.0, self.evaluate(v.assign(5.0)))
            self.assertEqual(3.0, self.evaluate(v.assign_sub(2.0)))
            self.assertIsInstance(v.assign(1.0, read_value=False), ops.Operation)
            with self.assertRaisesRegex(ValueError, "[Ss]hapes? |shape"):
                v.assign([1.0, 2.0])
            self.evaluate(state_ops.assign(v, 10.0))
            self.assertEqual(10.0, self.evaluate(v.read_value()))
            self.assertEqual(11.0, self.evaluate(state_ops.assign_add(v, 1.0)))

    @test_util.run_deprecated_v1
    def test_shape(self):
        with self.cached_session():
            v = resource_variable_ops.ResourceVariable(array_ops.ones([2, 3]), name="v")
            self.evaluate(v.initializer)
            self.assertAllEqual([2, 3], self.evaluate(resource_variable_ops.variable_shape(v.handle)))
            self.assertAllEqual([2, 3], self.evaluate(
                gen_resource_variable_ops.variable_shape(v.handle, out_type=dtypes.int64)))
            self.assertEqual("(2, 3)", str(v.value().get_shape()))
            self.assertEqual("(2, 3)", str(v.shape))

    @test_util.run_deprecated_v1
    def test_shared_name(self):
        with self.cached_session():
            v = resource_variable_ops.ResourceVariable(300.0, name="var4")
            self.evaluate(variables.global_variables_initializer())
            w = resource_variable_ops.var_handle_op(
                dtype=v.dtype.base_dtype, shape=v.get_shape(), shared_name="var4",
                container=ops.get_default_graph()._container)
            read = resource_variable_ops.read_variable_op(w, v.dtype.base_dtype)
            self.assertEqual(300.0, self.evaluate(read))
            x = resource_variable_ops.var_handle_op(
                dtype=v.dtype.base_dtype, shape=v.get_shape(), shared_name="var5")
            with self.assertRaises((errors.NotFoundError, errors.FailedPreconditionError)):
                self.evaluate(resource_variable_ops.read_variable_op(x, v.dtype.base_dtype))

    @test_util.run_deprecated_v1
    def test_gradient_in_branch(self):
        with self.cached_session():
            v = resource_variable_ops.ResourceVariable(1.0)
            c = control_flow_ops.cond(array_ops.placeholder_with_default(True, []), lambda: v * 2.0, lambda: v * 3.0)
            grad = gradients_impl.gradients(c, v)[0]
            self.evaluate(v.initializer)
            self.assertEqual(2.0, self.evaluate(grad))


class Scopes(test.TestCase):
    @test_util.run_deprecated_v1
    def test_store(self):
        vs = variable_scope._get_default_variable_store()
        v = vs.get_variable("v", [1])
        v1 = vs.get_variable("v", [1])
        self.assertIs(v, v1)

    @test_util.run_deprecated_v1
    def test_resource_type(self):
        with variable_scope.variable_scope("scope", use_resource=True):
            v = variable_scope.get_variable("v", [1])
            self.assertTrue(resource_variable_ops.is_resource_variable(v))
        with variable_scope.variable_scope("other", use_resource=False):
            v = variable_scope.get_variable("v", [1])
            self.assertFalse(resource_variable_ops.is_resource_variable(v))

    @test_util.run_deprecated_v1
    def test_creators(self):
        seen = []

        def creator(next_creator, **kwargs):
            seen.append(kwargs["name"])
            kwargs["initial_value"] = constant_op.constant(5.0)
            return next_creator(**kwargs)

        with variable_scope.variable_creator_scope(creator):
            v = variables.VariableV1(1.0, name="v")
            w = variable_scope.get_variable("w", initializer=2.0)
        x = variables.VariableV1(1.0, name="x")
        with self.cached_session():
            self.evaluate(variables.global_variables_initializer())
            self.assertEqual([5.0, 5.0, 1.0], self.evaluate([v, w, x]))
        self.assertEqual(2, len(seen))

    @test_util.run_deprecated_v1
    def test_creators_nest(self):
        order = []

        def named(name):
            def creator(next_creator, **kwargs):
                order.append(name)
                return next_creator(**kwargs)
            return creator

        with variable_scope.variable_creator_scope(named("outer")), variable_scope.variable_creator_scope(named("inner")):
            variables.VariableV1(1.0)
        self.assertEqual(["inner", "outer"], order)

    @test_util.run_deprecated_v1
    def test_initializer_types(self):
        with self.cached_session():
            for dtype in (dtypes.float64, dtypes.float32, dtypes.int32, dtypes.int64, dtypes.bool):
                x = variable_scope.get_variable(f"xx_{dtype.name}", shape=(3, 4), dtype=dtype)
                self.evaluate(x.initializer)
                if not dtype.is_floating:
                    self.assertAllEqual(np.zeros((3, 4), dtype.as_numpy_dtype), self.evaluate(x))
            with self.assertRaises((ValueError, TypeError)):
                variable_scope.get_variable("x4", initializer={})
            with self.assertRaises(ValueError):
                variable_scope.get_variable("x5", shape=[2], initializer=[1.0, 2.0])

    @test_util.run_deprecated_v1
    def test_reuse_modes(self):
        with variable_scope.variable_scope("tower"):
            v = variable_scope.get_variable("v", [])
        with variable_scope.variable_scope("tower", reuse=variable_scope.AUTO_REUSE):
            self.assertIs(v, variable_scope.get_variable("v", []))
            variable_scope.get_variable("new", [])
        with variable_scope.variable_scope("tower") as scope:
            scope.reuse_variables()
            self.assertTrue(scope.reuse)
            with variable_scope.variable_scope("inner") as inner:
                self.assertTrue(inner.reuse)
        with self.assertRaisesRegex(ValueError, "does not exist, or was not created with"):
            with variable_scope.variable_scope("tower", reuse=True):
                variable_scope.get_variable("absent", [])
        with self.assertRaisesRegex(ValueError, "already exists"):
            with variable_scope.variable_scope("tower"):
                variable_scope.get_variable("v", [])
        with self.assertRaisesRegex(ValueError, "shape"):
            with variable_scope.variable_scope("tower", reuse=True):
                variable_scope.get_variable("v", [3])

    @test_util.run_deprecated_v1
    def test_wrong_names(self):
        with self.assertRaisesRegex(TypeError, "name_or_scope must be a string or VariableScope"):
            with variable_scope.variable_scope(2.0):
                pass
        with self.assertRaisesRegex(TypeError, "If default_name is None then name_or_scope is required"):
            with variable_scope.variable_scope(None):
                pass

    @test_util.run_deprecated_v1
    def test_default_names(self):
        with variable_scope.variable_scope(None, "default"):
            self.assertEqual("default/w", variable_scope.get_variable("w", []).op.name)
        with variable_scope.variable_scope(None, "default"):
            self.assertEqual("default_1/w", variable_scope.get_variable("w", []).op.name)
        with variable_scope.variable_scope("given", "default"):
            self.assertEqual("given/w", variable_scope.get_variable("w", []).op.name)

    @test_util.run_deprecated_v1
    def test_auxiliary_name_scope(self):
        with ops.name_scope("scope"):
            with variable_scope.variable_scope("v", auxiliary_name_scope=False) as vs:
                self.assertEqual("scope", ops.get_name_scope())
                self.assertEqual("v", vs.name)
            with variable_scope.variable_scope(vs, auxiliary_name_scope=False):
                self.assertEqual("scope/c", constant_op.constant(1.0, name="c").op.name)

    @test_util.run_deprecated_v1
    def test_original_name_scope(self):
        with variable_scope.variable_scope("one") as scope:
            self.assertEqual("one/", scope.original_name_scope)
        with variable_scope.variable_scope("one") as again:
            self.assertEqual("one_1/", again.original_name_scope)
            with ops.name_scope(scope.original_name_scope):
                self.assertEqual("one/c", constant_op.constant(1.0, name="c").op.name)

    @test_util.run_deprecated_v1
    def test_collections_of_scope(self):
        with variable_scope.variable_scope("a") as scope:
            variable_scope.get_variable("x", [])
            variable_scope.get_variable("y", [], trainable=False)
            variable_scope.get_local_variable("z", [])
            self.assertEqual(["a/x:0", "a/y:0"], [v.name for v in scope.global_variables()])
            self.assertEqual(["a/x:0"], [v.name for v in scope.trainable_variables()])
            self.assertEqual(["a/z:0"], [v.name for v in scope.local_variables()])

    @test_util.run_deprecated_v1
    def test_settings(self):
        with variable_scope.variable_scope("s", initializer=init_ops.constant_initializer(0.3)) as scope:
            with variable_scope.variable_scope("inner") as inner:
                self.assertIs(scope.initializer, inner.initializer)
            scope.set_initializer(init_ops.constant_initializer(0.4))
            scope.set_regularizer(lambda x: x)
            scope.set_dtype(dtypes.float64)
            scope.set_use_resource(True)
            scope.set_custom_getter(None)
            scope.set_caching_device("/cpu:0")
            scope.set_partitioner(None)
            v = variable_scope.get_variable("v", [])
            self.assertEqual(dtypes.float64, v.dtype.base_dtype)
            self.assertEqual(1, len(ops.get_collection(ops.GraphKeys.REGULARIZATION_LOSSES)))

    @test_util.run_deprecated_v1
    def test_getters_chain(self):
        calls = []

        def getter(label):
            def get(getter, name, *args, **kwargs):
                calls.append(label)
                return getter(name, *args, **kwargs)
            return get

        with variable_scope.variable_scope("s", custom_getter=getter("s")):
            with variable_scope.variable_scope("t", custom_getter=getter("t")):
                v = variable_scope.get_variable("v", [])
        self.assertEqual(["t", "s"], calls)
        self.assertEqual("s/t/v:0", v.name)

    @test_util.run_deprecated_v1
    def test_threads(self):
        graph = ops.get_default_graph()
        names = []

        def work():
            with graph.as_default(), variable_scope.variable_scope("thread"):
                names.append(variable_scope.get_variable_scope().name)

        with variable_scope.variable_scope("main"):
            t = threading.Thread(target=work)
            t.start()
            t.join()
        self.assertEqual(["thread"], names)


class Partitioned(test.TestCase):
    @test_util.run_deprecated_v1
    def test_partitioners(self):
        with self.cached_session():
            v = variable_scope.get_variable(
                "v", [10, 20], partitioner=partitioned_variables.fixed_size_partitioner(5, axis=1))
            self.assertEqual(5, len(list(v)))
            self.assertEqual([1, 5], v.get_partitions() if hasattr(v, "get_partitions") else v._get_partitions())
            v = variable_scope.get_variable(
                "w", [4, 8], partitioner=partitioned_variables.variable_axis_size_partitioner(64))
            self.assertEqual(2, len(list(v)))
            v = variable_scope.get_variable(
                "m", [2048, 2], partitioner=partitioned_variables.min_max_variable_partitioner(
                    max_partitions=100, axis=0, min_slice_size=2 << 10))
            self.assertEqual(8, len(list(v)))
            with self.assertRaises(ValueError):
                partitioned_variables.variable_axis_size_partitioner(0)

    @test_util.run_deprecated_v1
    def test_wrong_partitions(self):
        with self.assertRaisesRegex(ValueError, "Partitioner .*returned|did not return|return"):
            variable_scope.get_variable("v", [2, 2], partitioner=lambda shape, dtype: 3)
        with self.assertRaisesRegex(ValueError, "."):
            variable_scope.get_variable("w", [2, 2], partitioner=lambda shape, dtype: [2, 2])
        with self.assertRaisesRegex(ValueError, "."):
            variable_scope.get_variable("x", [2, 2], partitioner=lambda shape, dtype: [1])

    @test_util.run_deprecated_v1
    def test_concatenation(self):
        with self.cached_session():
            v = variable_scope.get_variable(
                "v", initializer=constant_op.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
                partitioner=partitioned_variables.fixed_size_partitioner(2))
            self.evaluate(variables.global_variables_initializer())
            self.assertAllEqual([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], self.evaluate(v.as_tensor()))
            self.assertAllEqual([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], self.evaluate(ops.convert_to_tensor(v)))
            assigned = v.assign(array_ops.ones([3, 2]))
            self.evaluate([assigned] if not isinstance(assigned, (list, tuple)) else list(assigned))
            self.assertAllEqual(np.ones((3, 2)), self.evaluate(v.as_tensor()))
            self.assertEqual("v", v.name)
            self.assertEqual(dtypes.float32, v.dtype.base_dtype)
            self.assertEqual([3, 2], v.get_shape().as_list())

    @test_util.run_deprecated_v1
    def test_created(self):
        with self.cached_session():
            parts = partitioned_variables.create_partitioned_variables([4, 2], [2, 1], init_ops.ones_initializer(), name="p")
            self.evaluate(variables.global_variables_initializer())
            self.assertEqual(["p/part_0:0", "p/part_1:0"], [each.name for each in parts])
            self.assertEqual([[2, 0], [2, 2]], [parts[1]._get_save_slice_info().var_offset,
                                                parts[1]._get_save_slice_info().var_shape])
            for wrong in ([2], [2, 2], [0, 1], [5, 1]):
                with self.assertRaises(ValueError):
                    partitioned_variables.create_partitioned_variables([4, 2], wrong, init_ops.ones_initializer())


class Templates(test.TestCase):
    @test_util.run_deprecated_v1
    def test_shared(self):
        def variable_scoped_function():
            return variable_scope.get_variable("dummy", shape=[1], initializer=init_ops.zeros_initializer())

        tmpl1 = template.make_template("s1", variable_scoped_function)
        tmpl2 = template.make_template("s1", variable_scoped_function)
        v1, v2, v3 = tmpl1(), tmpl1(), tmpl2()
        self.assertIs(v1, v2)
        self.assertEqual("s1/dummy:0", v1.name)
        self.assertEqual("s1_1/dummy:0", v3.name)
        self.assertEqual("s1/", tmpl1.variable_scope_name)
        self.assertEqual([v1], list(tmpl1.variables))
        self.assertEqual([v1], list(tmpl1.trainable_variables))
        self.assertEqual([], list(tmpl1.non_trainable_variables))

    @test_util.run_deprecated_v1
    def test_no_new_variables(self):
        calls = []

        def function():
            calls.append(1)
            return variable_scope.get_variable(f"v{len(calls)}", [])

        tmpl = template.make_template("s", function)
        tmpl()
        with self.assertRaisesRegex(ValueError, "does not exist, or was not created with"):
            tmpl()

    @test_util.run_deprecated_v1
    def test_immediate_and_unique(self):
        def function():
            return variable_scope.get_variable("v", [])

        tmpl = template.make_template("s", function, create_scope_now_=True)
        self.assertEqual("s/v:0", tmpl().name)
        with self.assertRaisesRegex(ValueError, "name"):
            template.make_template(None, function)
        named = template.make_template("s", function, unique_name_="one")
        self.assertEqual("one/v:0", named().name)
        with self.assertRaisesRegex(ValueError, "already exists"):
            template.make_template("s", function, unique_name_="one")()

    @test_util.run_deprecated_v1
    def test_arguments(self):
        tmpl = template.make_template("s", lambda x, scale: x * scale, scale=3.0)
        with self.cached_session():
            self.assertEqual(6.0, self.evaluate(tmpl(constant_op.constant(2.0))))
            self.assertEqual("s", tmpl.name)


class Initializers(test.TestCase):
    @test_util.run_deprecated_v1
    def test_configs_round_trip(self):
        for made in (init_ops.zeros_initializer(), init_ops.ones_initializer(), init_ops.constant_initializer(3.0),
                     init_ops.random_uniform_initializer(-1, 1, 5), init_ops.random_normal_initializer(0.0, 2.0, 3),
                     init_ops.truncated_normal_initializer(0.0, 2.0, 3), init_ops.variance_scaling_initializer(2.0),
                     init_ops.orthogonal_initializer(2.0, 3), init_ops.glorot_uniform_initializer(4),
                     init_ops.glorot_normal_initializer(4), init_ops.identity_initializer(2.0)):
            config = made.get_config()
            again = type(made).from_config(config)
            self.assertEqual(config, again.get_config())

    @test_util.run_deprecated_v1
    def test_constants(self):
        with self.cached_session():
            for value, shape in ((7, [2, 3]), ([0, 1, 2, 3], [4]), ([0, 1, 2, 3, 4, 5], [2, 3])):
                got = self.evaluate(init_ops.constant_initializer(value)(shape, dtypes.int32))
                self.assertAllEqual(np.broadcast_to(np.reshape(value, shape) if np.size(value) > 1 else value, shape), got)
            got = self.evaluate(init_ops.constant_initializer([1, 2])([2, 3], dtypes.int32))
            self.assertAllEqual([[1, 2, 2], [2, 2, 2]], got)
            with self.assertRaisesRegex((TypeError, ValueError), "Expected Tensor's shape|Too many|elements"):
                init_ops.constant_initializer([1, 2, 3], verify_shape=True)([5], dtypes.int32)

    @test_util.run_deprecated_v1
    def test_scaling(self):
        with self.cached_session():
            for mode, expected in (("fan_in", 1.0 / 100), ("fan_out", 1.0 / 200), ("fan_avg", 1.0 / 150)):
                for distribution in ("normal", "truncated_normal", "untruncated_normal", "uniform"):
                    made = init_ops.variance_scaling_initializer(1.0, mode, distribution, seed=3)
                    got = self.evaluate(made([100, 200], dtypes.float32))
                    self.assertNear(expected, float(np.var(got)), expected / 5)
            for wrong in ({"scale": -1.0}, {"mode": "m"}, {"distribution": "d"}):
                with self.assertRaises(ValueError):
                    init_ops.variance_scaling_initializer(**wrong)

    @test_util.run_deprecated_v1
    def test_orthogonal(self):
        with self.cached_session():
            for shape in ((10, 9, 8), (3, 3), (5, 2)):
                got = self.evaluate(init_ops.orthogonal_initializer(seed=1)(shape, dtypes.float64)).reshape(-1, shape[-1])
                product = got.T @ got if got.shape[0] >= got.shape[1] else got @ got.T
                self.assertAllClose(np.eye(min(got.shape)), product)
            with self.assertRaises(ValueError):
                init_ops.orthogonal_initializer()([5])
            self.assertAllEqual([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]], self.evaluate(init_ops.identity_initializer(2.0)([2, 3])))
            with self.assertRaises(ValueError):
                init_ops.identity_initializer()([3, 3, 3])


class MoreQueues(test.TestCase):
    @test_util.run_deprecated_v1
    def test_constructors(self):
        q = data_flow_ops.FIFOQueue(10, dtypes.float32, name="Q")
        self.assertIsInstance(q.queue_ref, ops.Tensor)
        self.assertEqual("FIFOQueueV2", q.queue_ref.op.type)
        self.assertEqual(10, q.queue_ref.op.get_attr("capacity"))
        self.assertEqual([types_pb2.DT_FLOAT], [each for each in q.queue_ref.op.get_attr("component_types")])
        q = data_flow_ops.PaddingFIFOQueue(10, dtypes.float32, [[None]], name="P")
        self.assertEqual("PaddingFIFOQueueV2", q.queue_ref.op.type)
        q = data_flow_ops.RandomShuffleQueue(10, 5, [dtypes.int32], seed=3, name="R")
        self.assertEqual((5, 3), (q.queue_ref.op.get_attr("min_after_dequeue"), q.queue_ref.op.get_attr("seed2")))
        q = data_flow_ops.PriorityQueue(10, [dtypes.int32], [()], name="Y")
        self.assertEqual("PriorityQueueV2", q.queue_ref.op.type)
        with self.assertRaisesRegex(ValueError, "[Ss]hape|same length"):
            data_flow_ops.PaddingFIFOQueue(10, dtypes.float32, None)

    @test_util.run_deprecated_v1
    def test_priority(self):
        with self.cached_session():
            q = data_flow_ops.PriorityQueue(2000, (dtypes.string), (()))
            elems = np.random.RandomState(1).randint(-5, 5, size=50).astype(np.int64)
            for each in elems:
                self.evaluate(q.enqueue((each, str(each))))
            got = [self.evaluate(q.dequeue()) for _ in range(3)]
            self.assertEqual(sorted(elems)[:3], [each[0] for each in got])
            many = self.evaluate(q.dequeue_many(47))
            self.assertAllEqual(sorted(elems)[3:], many[0])
            with self.assertRaises((ValueError, TypeError, errors.OpError)):
                q.enqueue((["a"], "b"))

    @test_util.run_deprecated_v1
    def test_padding(self):
        with self.cached_session():
            q = data_flow_ops.PaddingFIFOQueue(10, (dtypes.float32, dtypes.int32), shapes=((None,), (None, 2)))
            self.evaluate(q.enqueue(([1.0], [[1, 2]])))
            self.evaluate(q.enqueue(([1.0, 2.0], [[1, 2], [3, 4]])))
            first, second = q.dequeue_many(2)
            self.assertEqual([2, None], first.shape.as_list())
            self.assertEqual([2, None, 2], second.shape.as_list())
            values = self.evaluate([first, second])
            self.assertAllEqual([[1.0, 0.0], [1.0, 2.0]], values[0])
            self.assertAllEqual([[[1, 2], [0, 0]], [[1, 2], [3, 4]]], values[1])

    @test_util.run_deprecated_v1
    def test_up_to(self):
        with self.cached_session():
            q = data_flow_ops.FIFOQueue(10, dtypes.int32, shapes=[()])
            self.evaluate(q.enqueue_many(([1, 2, 3],)))
            self.evaluate(q.close())
            self.assertAllEqual([1, 2], self.evaluate(q.dequeue_up_to(2)))
            self.assertAllEqual([3], self.evaluate(q.dequeue_up_to(2)))
            with self.assertRaisesRegex(errors.OutOfRangeError, "is closed and has insufficient"):
                self.evaluate(q.dequeue_up_to(2))
            self.assertTrue(self.evaluate(q.is_closed()))

    @test_util.run_deprecated_v1
    def test_big_batches_in_pieces(self):
        with self.cached_session() as sess:
            q = data_flow_ops.FIFOQueue(5, dtypes.float32, ((),))
            elems = np.arange(50, dtype=np.float32)
            enqueue, dequeue = q.enqueue_many((elems,)), q.dequeue_many(50)
            thread = threading.Thread(target=lambda: sess.run(enqueue))
            thread.start()
            self.assertAllEqual(elems, sess.run(dequeue))
            thread.join()

    @test_util.run_deprecated_v1
    def test_errors_when_closed(self):
        with self.cached_session():
            q = data_flow_ops.FIFOQueue(10, dtypes.float32)
            enqueue, dequeue = q.enqueue(1.0), q.dequeue()
            self.evaluate(q.close())
            with self.assertRaisesRegex(errors.CancelledError, "is closed"):
                self.evaluate(enqueue)
            with self.assertRaisesRegex(errors.OutOfRangeError, "is closed and has insufficient"):
                self.evaluate(dequeue)
            self.assertEqual(0, self.evaluate(q.size()))

    @test_util.run_deprecated_v1
    def test_mixed_up(self):
        with self.cached_session():
            one = data_flow_ops.FIFOQueue(5, dtypes.float32, shared_name="shared")
            self.evaluate(one.queue_ref if one.queue_ref.dtype != dtypes.resource else one.size())
            with self.assertRaisesOpError("shared"):
                self.evaluate(data_flow_ops.FIFOQueue(7, dtypes.float32, shared_name="shared").size())

    @test_util.run_deprecated_v1
    def test_base(self):
        fifo = data_flow_ops.FIFOQueue(1, [dtypes.float32, dtypes.int32], [[], []], names=["f", "i"])
        made = data_flow_ops.QueueBase.from_list(0, [fifo, fifo])
        self.assertEqual([dtypes.float32, dtypes.int32], made.dtypes)
        with self.assertRaises(TypeError):
            data_flow_ops.QueueBase.from_list(0, [fifo, 3])
        with self.assertRaisesRegex(TypeError, "component types|component_types|dtypes"):
            data_flow_ops.QueueBase.from_list(0, [fifo, data_flow_ops.FIFOQueue(1, dtypes.float32)])

    @test_util.run_deprecated_v1
    def test_step_container(self):
        with self.cached_session() as sess:
            q = data_flow_ops.FIFOQueue(10, [dtypes.int32, dtypes.string], shapes=((), ()))
            self.evaluate(q.enqueue_many([[1, 2], ["a", "b"]]))
            x, y = q.dequeue()
            self.assertEqual((1, b"a"), tuple(sess.run([x, y])))
            with self.assertRaises((ValueError, TypeError)):
                q.enqueue(["wrong", "a"])


class Stages(test.TestCase):
    def test_simple(self):
        with ops.Graph().as_default() as g:
            x = array_ops.placeholder(dtypes.float32)
            stager = data_flow_ops.StagingArea([dtypes.float32])
            stage, y = stager.put([2.0 * x]), stager.get()
            y = y[0] if isinstance(y, (list, tuple)) else y
            g.finalize()
            with self.session(graph=g) as sess:
                sess.run(stage, feed_dict={x: -1})
                for i in range(5):
                    _, got = sess.run([stage, y], feed_dict={x: i})
                    self.assertEqual(2.0 * (i - 1), got)

    def test_dictionary(self):
        with ops.Graph().as_default() as g:
            x = array_ops.placeholder(dtypes.float32)
            stager = data_flow_ops.StagingArea([dtypes.float32, dtypes.float32], shapes=[[], []], names=["x", "v"])
            stage, ret = stager.put({"x": x, "v": x * 2.0}), stager.get()
            with self.session(graph=g) as sess:
                sess.run(stage, {x: 3.0})
                self.assertEqual({"x": 3.0, "v": 6.0}, sess.run(ret))

    def test_sizes(self):
        with ops.Graph().as_default() as g:
            stager = data_flow_ops.StagingArea([dtypes.float32], capacity=5, memory_limit=1000)
            put, size, clear, peek = stager.put([constant_op.constant(1.0)]), stager.size(), stager.clear(), stager.peek(0)
            with self.session(graph=g) as sess:
                sess.run(put)
                sess.run(put)
                self.assertEqual(2, sess.run(size))
                self.assertEqual([1.0], np.ravel(sess.run(peek)).tolist())
                sess.run(clear)
                self.assertEqual(0, sess.run(size))

    def test_refused(self):
        with ops.Graph().as_default():
            with self.assertRaises(ValueError):
                data_flow_ops.StagingArea([dtypes.float32], names=["a", "b"])

    def test_map(self):
        with ops.Graph().as_default() as g:
            x, pi, gi = array_ops.placeholder(dtypes.float32), array_ops.placeholder(dtypes.int64), array_ops.placeholder(dtypes.int64)
            stager = data_flow_ops.MapStagingArea([dtypes.float32], ordered=True)
            stage = stager.put(pi, [x], [0])
            key, value = stager.get()
            size = stager.size()
            with self.session(graph=g) as sess:
                for number in (3, 1, 2):
                    sess.run(stage, {x: 10.0 * number, pi: number})
                self.assertEqual(3, sess.run(size))
                self.assertEqual(1, sess.run([key, value])[0])
                by_key = stager.get(gi)
                got = sess.run(by_key, {gi: 3})
                self.assertEqual([30.0], np.ravel(got[-1]).tolist())
                self.assertEqual(1, sess.run(stager.size()))

    def test_map_partial(self):
        with ops.Graph().as_default() as g:
            x, f = array_ops.placeholder(dtypes.float32), array_ops.placeholder(dtypes.float32)
            pi = array_ops.placeholder(dtypes.int64)
            stager = data_flow_ops.MapStagingArea([dtypes.float32, dtypes.float32], names=["x", "f"])
            stage_x, stage_f = stager.put(pi, {"x": x}), stager.put(pi, {"f": f})
            incomplete, size = stager.incomplete_size(), stager.size()
            key, ret = stager.get()
            with self.session(graph=g) as sess:
                sess.run(stage_x, {pi: 0, x: 1.0})
                self.assertEqual([1, 0], sess.run([incomplete, size]))
                sess.run(stage_f, {pi: 0, f: 2.0})
                self.assertEqual([0, 1], sess.run([incomplete, size]))
                self.assertEqual((0, {"x": 1.0, "f": 2.0}), tuple(sess.run([key, ret])))


class Stacks(test.TestCase):
    @test_util.run_deprecated_v1
    def test_push_pop(self):
        with self.cached_session():
            h = gen_data_flow_ops.stack_v2(-1, elem_type=dtypes.float32, stack_name="foo")
            c = gen_data_flow_ops.stack_push_v2(h, [[4.0, 5.0]])
            with ops.control_dependencies([c]):
                c1 = gen_data_flow_ops.stack_pop_v2(h, dtypes.float32)
            self.assertAllClose([[4.0, 5.0]], self.evaluate(c1))

    @test_util.run_deprecated_v1
    def test_swap_and_close(self):
        with self.cached_session():
            h = gen_data_flow_ops.stack_v2(-1, elem_type=dtypes.float32, stack_name="foo")
            pushed = gen_data_flow_ops.stack_push_v2(h, np.arange(2000, dtype=np.float32), swap_memory=True)
            with ops.control_dependencies([pushed]):
                c1 = gen_data_flow_ops.stack_pop_v2(h, dtypes.float32)
            self.assertAllClose(np.arange(2000), self.evaluate(c1))
            self.evaluate(gen_data_flow_ops.stack_close_v2(
                gen_data_flow_ops.stack_v2(-1, elem_type=dtypes.float32, stack_name="foo")))

    @test_util.run_deprecated_v1
    def test_in_loop(self):
        with self.cached_session():
            n = constant_op.constant(0)
            h = gen_data_flow_ops.stack_v2(-1, elem_type=dtypes.int32, stack_name="foo")

            def body(x):
                with ops.control_dependencies([gen_data_flow_ops.stack_push_v2(h, x)]):
                    return x + 1

            r = control_flow_ops.while_loop(lambda x: x < 10, body, [n])
            v = constant_op.constant(0)

            def pop(x, y):
                return x - 1, y + gen_data_flow_ops.stack_pop_v2(h, dtypes.int32)

            _, ry = control_flow_ops.while_loop(lambda x, y: x > 0, pop, [r, v], shape_invariants=[r.get_shape(), tensor_shape.unknown_shape()])
            self.assertEqual(45, self.evaluate(ry))

    @test_util.run_deprecated_v1
    def test_same_name(self):
        with self.cached_session():
            h1 = gen_data_flow_ops.stack_v2(-1, elem_type=dtypes.float32, stack_name="foo")
            c1 = gen_data_flow_ops.stack_push_v2(h1, 4.0)
            with ops.control_dependencies([c1]):
                h2 = gen_data_flow_ops.stack_v2(-1, elem_type=dtypes.float32, stack_name="foo")
            with ops.control_dependencies([gen_data_flow_ops.stack_push_v2(h2, 5.0)]):
                found = gen_data_flow_ops.stack_pop_v2(h1, dtypes.float32), gen_data_flow_ops.stack_pop_v2(h2, dtypes.float32)
            self.assertAllClose([4.0, 5.0], self.evaluate(list(found)))


class Handles(test.TestCase):
    @test_util.run_deprecated_v1
    def test_basics(self):
        with self.cached_session() as sess:
            a, b = constant_op.constant(10), constant_op.constant(5)
            h = self.evaluate(session_ops.get_session_handle(math_ops.multiply(a, b)))
            self.assertIsInstance(h, session_ops.TensorHandle)
            self.assertEqual(50, h.eval())
            self.assertTrue(h.handle)
            f, x = session_ops.get_session_tensor(h.handle, dtypes.int32)
            y = math_ops.multiply(x, 10)
            self.assertEqual(500, sess.run(y, feed_dict={f: h.handle}))
            h.delete()

    @test_util.run_deprecated_v1
    def test_fed_directly(self):
        with self.cached_session() as sess:
            a = array_ops.placeholder(dtypes.float32)
            b = a * 2.0
            h = sess.run(session_ops.get_session_handle(b), {a: [1.0, 2.0]})
            self.assertAllEqual([4.0, 8.0], sess.run(b, {a: h.eval() * 1.0}))
            h2 = sess.run(session_ops.get_session_handle(b), {a: h})
            self.assertAllEqual([4.0, 8.0], h2.eval())

    @test_util.run_deprecated_v1
    def test_iterated(self):
        with self.cached_session() as sess:
            h = self.evaluate(session_ops.get_session_handle(constant_op.constant(0)))
            f, x = session_ops.get_session_tensor(h.handle, dtypes.int32)
            y = session_ops.get_session_handle(math_ops.add(x, 1))
            for _ in range(10):
                h = sess.run(y, feed_dict={f: h.handle})
            self.assertEqual(10, h.eval())
            p, delete = session_ops.delete_session_tensor(h.handle)
            sess.run(delete, {p: h.handle})

    @test_util.run_deprecated_v1
    def test_python_value(self):
        with self.cached_session() as sess:
            h = session_ops.get_session_handle(constant_op.constant([1.0, 2.0]))
            got = sess.run(h)
            raw = got.get_raw_handle()
            self.assertIsInstance(raw, str)
            self.assertIn("CPU:0", got.handle)


class PythonFunctions(test.TestCase):
    @test_util.run_deprecated_v1
    def test_types(self):
        with self.cached_session():
            x, y = constant_op.constant(1.0, dtypes.float32), constant_op.constant(2.0)
            z = script_ops.py_func(lambda x, y: np.sinh(x) + np.cosh(y), [x, y], dtypes.float32)
            self.assertEqual(self.evaluate(z), np.float32(np.sinh(1.0) + np.cosh(2.0)))
            a, b = script_ops.py_func(lambda: (np.array([1.0], np.float32), b"text"), [], [dtypes.float32, dtypes.string])
            self.assertAllEqual([1.0], self.evaluate(a))
            self.assertEqual(b"text", self.evaluate(b))
            (only,) = script_ops.py_func(lambda x: [x], [x], [dtypes.float32])
            self.assertEqual(1.0, self.evaluate(only))
            self.assertIsNone(only.shape.ndims)

    @test_util.run_deprecated_v1
    def test_strings(self):
        with self.cached_session():
            for dtype in (np.bytes_, np.str_, object):
                values = np.array(["this", "is", "short"], dtype)
                x = constant_op.constant(["a"])
                got = script_ops.py_func(lambda _, values=values: values, [x], dtypes.string)
                self.assertAllEqual([b"this", b"is", b"short"], self.evaluate(got))

    @test_util.run_deprecated_v1
    def test_errors(self):
        cases = ((ValueError, errors.InvalidArgumentError), (TypeError, errors.InvalidArgumentError),
                 (StopIteration, errors.OutOfRangeError), (MemoryError, errors.ResourceExhaustedError),
                 (NotImplementedError, errors.UnimplementedError), (KeyError, errors.UnknownError))
        with self.cached_session():
            for raised, expected in cases:
                def fail(raised=raised):
                    raise raised("this is my text")

                f = script_ops.py_func(fail, [], [])
                with self.assertRaises(expected):
                    self.evaluate(f)

    @test_util.run_deprecated_v1
    def test_statefulness(self):
        with self.cached_session():
            calls = []

            def count():
                calls.append(1)
                return np.int64(len(calls))

            stateful = script_ops.py_func(count, [], dtypes.int64, stateful=True)
            self.assertEqual([1, 2], [self.evaluate(stateful), self.evaluate(stateful)])
            self.assertEqual("PyFunc", stateful.op.type)
            self.assertEqual("PyFuncStateless", script_ops.py_func(count, [], dtypes.int64, stateful=False).op.type)

    @test_util.run_deprecated_v1
    def test_in_gradient(self):
        with self.cached_session():
            x = constant_op.constant(2.0)
            y = script_ops.py_func(lambda v: v * 2, [x], dtypes.float32)
            self.assertEqual([None], gradients_impl.gradients(y, [x]))


class Readers(test.TestCase):
    def files(self):
        paths = []
        for number in range(2):
            path = os.path.join(self.get_temp_dir(), f"reader_{number}.txt")
            with open(path, "wb") as file:
                file.write(b"".join(b"line %d of %d\n" % (line, number) for line in range(3)))
            paths.append(path)
        return paths

    @test_util.run_deprecated_v1
    def test_lines(self):
        files = self.files()
        with self.cached_session():
            reader = io_ops.TextLineReader(skip_header_lines=1, name="r")
            queue = data_flow_ops.FIFOQueue(99, [dtypes.string], shapes=())
            key, value = reader.read(queue)
            self.evaluate(queue.enqueue_many([files]))
            self.evaluate(queue.close())
            got = [self.evaluate([key, value]) for _ in range(4)]
            self.assertEqual([b"line 1 of 0", b"line 2 of 0", b"line 1 of 1", b"line 2 of 1"], [each[1] for each in got])
            self.assertEqual(compat.as_bytes(files[0] + ":2"), got[0][0])
            self.assertEqual(1, self.evaluate(reader.num_work_units_completed()))
            self.assertEqual(4, self.evaluate(reader.num_records_produced()))
            with self.assertRaisesOpError("is closed and has insufficient elements"):
                self.evaluate([key, value])
            self.evaluate(reader.reset())
            self.assertEqual(0, self.evaluate(reader.num_records_produced()))

    @test_util.run_deprecated_v1
    def test_up_to(self):
        files = self.files()
        with self.cached_session():
            reader = io_ops.TextLineReader()
            queue = data_flow_ops.FIFOQueue(99, [dtypes.string], shapes=())
            keys, values = reader.read_up_to(queue, 4)
            self.evaluate(queue.enqueue_many([files]))
            self.evaluate(queue.close())
            first = self.evaluate([keys, values])
            second = self.evaluate([keys, values])
            self.assertEqual(6, len(first[1]) + len(second[1]))

    @test_util.run_deprecated_v1
    def test_whole_files_and_identity(self):
        files = self.files()
        with self.cached_session():
            reader = io_ops.WholeFileReader("test_reader")
            queue = data_flow_ops.FIFOQueue(99, [dtypes.string], shapes=())
            self.evaluate(queue.enqueue_many([files]))
            key, value = self.evaluate(list(reader.read(queue)))
            self.assertEqual(compat.as_bytes(files[0]), key)
            with open(files[0], "rb") as file:
                self.assertEqual(file.read(), value)
            identity = io_ops.IdentityReader("i")
            produced = identity.num_records_produced()
            self.assertEqual(0, self.evaluate(produced))
            key, value = self.evaluate(list(identity.read(queue)))
            self.assertEqual((compat.as_bytes(files[1]),) * 2, (key, value))
            state = self.evaluate(identity.serialize_state())
            self.evaluate(identity.restore_state(state))
            with self.assertRaises(errors.OpError):
                self.evaluate(identity.restore_state(b"bogus"))

    @test_util.run_deprecated_v1
    def test_fixed_length(self):
        path = os.path.join(self.get_temp_dir(), "fixed.bin")
        with open(path, "wb") as file:
            file.write(b"head" + b"aaabbbccc" + b"ft")
        with self.cached_session():
            reader = io_ops.FixedLengthRecordReader(header_bytes=4, record_bytes=3, footer_bytes=2, hop_bytes=0)
            queue = data_flow_ops.FIFOQueue(99, [dtypes.string], shapes=())
            self.evaluate(queue.enqueue(path))
            self.evaluate(queue.close())
            key, value = reader.read(queue)
            self.assertEqual([b"aaa", b"bbb", b"ccc"], [self.evaluate(value) for _ in range(3)])
            self.assertIsNotNone(key)


class LookupTables(test.TestCase):
    @test_util.run_deprecated_v1
    def test_hash_table(self):
        with self.cached_session():
            keys, values = constant_op.constant(["brain", "salad", "surgery"]), constant_op.constant([0, 1, 2], dtypes.int64)
            table = lookup_ops.HashTable(lookup_ops.KeyValueTensorInitializer(keys, values), -1)
            self.evaluate(lookup_ops.tables_initializer())
            self.assertEqual(3, self.evaluate(table.size()))
            self.assertAllEqual([0, 1, -1], self.evaluate(table.lookup(constant_op.constant(["brain", "salad", "tank"]))))
            self.assertIsInstance(table, lookup_ops.LookupInterface)
            self.assertIsInstance(table, lookup_ops.InitializableLookupTableBase)
            self.assertEqual((dtypes.string, dtypes.int64), (table.key_dtype, table.value_dtype))
            with self.assertRaises((TypeError, ValueError)):
                table.lookup(constant_op.constant([1, 2]))
            exported = table.export()
            self.assertEqual(3, len(self.evaluate(exported[0])))

    @test_util.run_deprecated_v1
    def test_not_initialized(self):
        with self.cached_session():
            table = lookup_ops.HashTable(lookup_ops.KeyValueTensorInitializer(["a"], [1], dtypes.string, dtypes.int64), -1)
            with self.assertRaisesOpError("Table not initialized"):
                self.evaluate(table.lookup(constant_op.constant(["a"])))

    @test_util.run_deprecated_v1
    def test_initializer_in_subclass(self):
        class Fixed(lookup_ops.TableInitializerBase):
            def __init__(self):
                super().__init__(dtypes.string, dtypes.int64)
                self.seen = []

            def initialize(self, table):
                self.seen.append(table)
                return control_flow_ops.no_op()

        made = Fixed()
        table = lookup_ops.HashTable(made, -1)
        self.assertEqual([table], made.seen)

    @test_util.run_deprecated_v1
    def test_buckets(self):
        with self.cached_session():
            table = lookup_ops.IdTableWithHashBuckets(
                lookup_ops.HashTable(lookup_ops.KeyValueTensorInitializer(["a"], [0], dtypes.string, dtypes.int64), -1), 3,
                hasher_spec=lookup_ops.FastHashSpec)
            self.evaluate(lookup_ops.tables_initializer())
            got = self.evaluate(table.lookup(constant_op.constant(["a", "b", "c"])))
            self.assertEqual(0, got[0])
            self.assertTrue(all(1 <= each <= 3 for each in got[1:]))
            self.assertEqual(4, self.evaluate(table.size()))
            strong = lookup_ops.IdTableWithHashBuckets(None, 3, hasher_spec=lookup_ops.StrongHashSpec((1, 2)))
            self.assertEqual((2,), self.evaluate(strong.lookup(constant_op.constant(["x", "y"]))).shape)
            for wrong in ([1], (1, 2, 3), (1, None), "ab"):
                with self.assertRaises((ValueError, TypeError)):
                    lookup_ops.StrongHashSpec(wrong)
            with self.assertRaisesRegex(ValueError, "not supported|unknown|hasher|Unknown"):
                lookup_ops.IdTableWithHashBuckets(None, 3, hasher_spec=lookup_ops.HasherSpec("bogus", None)).lookup(
                    constant_op.constant(["a"]))

    @test_util.run_deprecated_v1
    def test_mutable(self):
        with self.cached_session():
            table = lookup_ops.MutableHashTable(dtypes.string, dtypes.int64, -1)
            self.evaluate(table.insert(constant_op.constant(["a", "b"]), constant_op.constant([1, 2], dtypes.int64)))
            self.evaluate(table.remove(constant_op.constant(["b", "zz"])))
            self.assertAllEqual([1, -1], self.evaluate(table.lookup(constant_op.constant(["a", "b"]))))
            with self.assertRaises((TypeError, ValueError)):
                table.insert(constant_op.constant(["a"]), constant_op.constant([1.5]))
            dense = lookup_ops.DenseHashTable(dtypes.int64, dtypes.int64, default_value=-1, empty_key=0, deleted_key=-2)
            self.evaluate(dense.insert(constant_op.constant([11, 12], dtypes.int64), constant_op.constant([1, 2], dtypes.int64)))
            self.assertAllEqual([1, -1], self.evaluate(dense.lookup(constant_op.constant([11, 15], dtypes.int64))))
            with self.assertRaisesOpError("empty_key"):
                self.evaluate(dense.lookup(constant_op.constant([0], dtypes.int64)))

    @test_util.run_deprecated_v1
    def test_files(self):
        path = os.path.join(self.get_temp_dir(), "vocabulary.txt")
        with open(path, "w") as file:
            file.write("brain\nsalad\nsurgery\n")
        with self.cached_session():
            table = lookup_ops.index_table_from_file(path, num_oov_buckets=1)
            back = lookup_ops.index_to_string_table_from_file(path, vocab_size=2)
            self.evaluate(lookup_ops.tables_initializer())
            self.assertAllEqual([1, 2, 3], self.evaluate(table.lookup(constant_op.constant(["salad", "surgery", "tarkus"]))))
            self.assertAllEqual([b"brain", b"UNK"], self.evaluate(back.lookup(constant_op.constant([0, 2], dtypes.int64))))
            for wrong in ({"vocabulary_file": ""}, {"vocabulary_file": None}, {"vocabulary_file": path, "vocab_size": 0},
                          {"vocabulary_file": path, "num_oov_buckets": -1}):
                with self.assertRaises(ValueError):
                    lookup_ops.index_table_from_file(**wrong)
            ids = lookup_ops.HashTable(lookup_ops.TextFileInitializer(
                path, dtypes.string, lookup_ops.TextFileIndex.WHOLE_LINE, dtypes.int64,
                lookup_ops.TextFileIndex.LINE_NUMBER, vocab_size=4), -1)
            with self.assertRaisesOpError("Invalid vocab_size"):
                self.evaluate(ids.initializer)


class Applied(test.TestCase):
    def steps(self, made, builder, resource, expected, sparse=False):
        with ops.Graph().as_default(), session.Session() as sess:
            kind = resource_variable_ops.ResourceVariable if resource else variables.VariableV1
            var = kind([1.0, 2.0], name="v")
            grad = (ops.IndexedSlices(constant_op.constant([0.1]), constant_op.constant([1]), constant_op.constant([2]))
                    if sparse else constant_op.constant([0.1, 0.1]))
            opt = made()
            update = opt.apply_gradients([(grad, var)])
            sess.run(variables.global_variables_initializer())
            for _ in range(3):
                sess.run(update)
            got = sess.run(var)
            if sparse:
                self.assertEqual(1.0, got[0])
            self.assertAllClose(expected if not sparse else expected[1:], got if not sparse else got[1:], rtol=1e-4)
            self.assertIsInstance(opt, builder)

    def test_each(self):
        for made, builder, expected in (
                (lambda: gradient_descent.GradientDescentOptimizer(3.0), gradient_descent.GradientDescentOptimizer, [0.1, 1.1]),
                (lambda: gradient_descent.GradientDescentOptimizer(lambda: 3.0), optimizer.Optimizer, [0.1, 1.1]),
                (lambda: momentum.MomentumOptimizer(2.0, 0.9), momentum.MomentumOptimizer, [-0.122, 0.878]),
                (lambda: momentum.MomentumOptimizer(2.0, 0.9, use_nesterov=True), optimizer.Optimizer, [-0.6098, 0.3902]),
                (lambda: adagrad.AdagradOptimizer(3.0, 0.1), adagrad.AdagradOptimizer, [-1.6026, -0.6026]),
                (lambda: adam.AdamOptimizer(0.1), adam.AdamOptimizer, [0.7, 1.7])):
            for resource in (False, True):
                self.steps(made, builder, resource, expected)
                self.steps(made, builder, resource, expected, sparse=True) if made().get_name() != "Adam" else None

    def test_loss_function(self):
        with ops.Graph().as_default():
            v = variables.VariableV1(1.0)
            opt = gradient_descent.GradientDescentOptimizer(1.0)
            with self.assertRaisesRegex(ValueError, "No gradients provided for any variable"):
                opt.minimize(constant_op.constant(3.0), var_list=[v])
            with self.assertRaisesRegex(ValueError, "No variables provided|No variables to optimize|No gradients"):
                opt.apply_gradients([])
            with self.assertRaises(NotImplementedError):
                optimizer.Optimizer(False, "name").apply_gradients([(constant_op.constant(1.0), v)])
            with self.assertRaises(ValueError):
                optimizer.Optimizer(False, "")

    def test_constraint(self):
        with ops.Graph().as_default(), session.Session() as sess:
            for kind in (variables.VariableV1, resource_variable_ops.ResourceVariable):
                v = kind([1.0, 2.0], constraint=lambda x: array_ops.where(x > 0.5, x, array_ops.ones_like(x) * 0.5))
                step = gradient_descent.GradientDescentOptimizer(1.0).minimize(math_ops.reduce_sum(v), var_list=[v])
                sess.run(v.initializer)
                sess.run(step)
                self.assertAllClose([0.5, 1.0], sess.run(v))

    def test_parts(self):
        with ops.Graph().as_default(), session.Session() as sess:
            v = variables.VariableV1([1.0, 2.0], name="v")
            step = training_util.create_global_step()
            opt = momentum.MomentumOptimizer(0.1, 0.9, name="Mine")
            pairs = opt.compute_gradients(math_ops.reduce_sum(v * v), [v])
            self.assertEqual([v], [each for _, each in pairs])
            update = opt.apply_gradients(pairs, global_step=step)
            self.assertEqual(["momentum"], opt.get_slot_names())
            self.assertEqual("v/Mine:0", opt.get_slot(v, "momentum").name)
            self.assertEqual([opt.get_slot(v, "momentum")], opt.variables())
            self.assertIn(update, ops.get_collection(ops.GraphKeys.TRAIN_OP))
            sess.run(variables.global_variables_initializer())
            sess.run(update)
            self.assertEqual(1, sess.run(step))
            self.assertEqual({"Mine"}, {opt.get_name()})
            self.assertEqual((0, 1, 2), (opt.GATE_NONE, opt.GATE_OP, opt.GATE_GRAPH))

    def test_raw_updates(self):
        with ops.Graph().as_default(), session.Session() as sess:
            v, acc = variables.VariableV1([1.0, 2.0]), variables.VariableV1([0.5, 0.5])
            lin = variables.VariableV1([0.0, 0.0])
            sess.run(variables.global_variables_initializer())
            sess.run(training_ops.apply_gradient_descent(v, 0.5, [1.0, 1.0]))
            self.assertAllClose([0.5, 1.5], sess.run(v))
            sess.run(training_ops.apply_adagrad(v, acc, 1.0, [1.0, 1.0]))
            self.assertAllClose([0.5 - 1 / np.sqrt(1.5), 1.5 - 1 / np.sqrt(1.5)], sess.run(v))
            sess.run(training_ops.apply_ftrl(v, acc, lin, [1.0, 1.0], 1.0, 0.0, 0.0, -0.5))
            sess.run(training_ops.sparse_apply_adagrad(v, acc, 1.0, [[1.0]] if False else [1.0], constant_op.constant([1])))
            self.assertAllClose([2.5, 3.5], sess.run(acc))

    def test_variants(self):
        with ops.Graph().as_default(), session.Session() as sess:
            v = variables.VariableV1([1.0, 2.0])
            loss = math_ops.reduce_sum(v * v)
            steps = [made.minimize(loss) for made in (
                adadelta.AdadeltaOptimizer(1.0), ftrl.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
                rmsprop.RMSPropOptimizer(0.01, momentum=0.9, centered=True),
                proximal_adagrad.ProximalAdagradOptimizer(0.1))]
            sess.run(variables.global_variables_initializer())
            before = sess.run(loss)
            for each in steps:
                sess.run(each)
            self.assertLess(sess.run(loss), before)

    def test_averages(self):
        with ops.Graph().as_default(), session.Session() as sess:
            v = variables.VariableV1([1.0, 2.0], name="v")
            ema = moving_averages.ExponentialMovingAverage(0.25, zero_debias=False, name="ema")
            update = ema.apply([v])
            self.assertEqual("v/ema", ema.average_name(v))
            self.assertEqual("ema", ema.name)
            self.assertEqual("v/ema:0", ema.average(v).name)
            self.assertEqual({"v/ema": v}, ema.variables_to_restore())
            sess.run(variables.global_variables_initializer())
            sess.run(v.assign([3.0, 4.0]))
            sess.run(update)
            self.assertAllClose([1.0 * 0.25 + 3.0 * 0.75, 2.0 * 0.25 + 4.0 * 0.75], sess.run(ema.average(v)))
            w = moving_averages.weighted_moving_average(constant_op.constant(4.0), 0.5, constant_op.constant(2.0))
            sess.run(variables.global_variables_initializer())
            self.assertAllClose(4.0, sess.run(w))

    def test_debiased(self):
        with ops.Graph().as_default(), session.Session() as sess:
            v = variables.VariableV1(0.0, name="x")
            update = moving_averages.assign_moving_average(v, constant_op.constant(4.0), 0.9, zero_debias=True)
            sess.run(variables.global_variables_initializer())
            self.assertAllClose(4.0, sess.run(update))
            self.assertEqual(["x:0", "x/biased:0", "x/local_step:0"], [each.name for each in variables.global_variables()])

    def test_slots(self):
        with ops.Graph().as_default(), session.Session() as sess:
            v = variables.VariableV1([1.0, 2.5], name="var")
            slot = slot_creator.create_slot(v, v.initialized_value(), name="slot")
            zeros = slot_creator.create_zeros_slot(v, name="zeros", dtype=dtypes.float64)
            init = slot_creator.create_slot_with_initializer(
                v, init_ops.ones_initializer(), v.shape, dtypes.float32, name="ones")
            sess.run(variables.global_variables_initializer())
            self.assertEqual(["var/slot", "var/zeros", "var/ones"], [each.op.name for each in (slot, zeros, init)])
            self.assertAllEqual([1.0, 2.5], sess.run(slot))
            self.assertEqual(dtypes.float64, zeros.dtype.base_dtype)
            self.assertEqual([v], variables.trainable_variables())

    def test_decays(self):
        with ops.Graph().as_default(), session.Session() as sess:
            step = variables.VariableV1(0)
            rate = learning_rate_decay.piecewise_constant(step, [10, 20], [1.0, 0.5, 0.1])
            sess.run(step.initializer)
            got = []
            for at in (0, 10, 11, 20, 21):
                sess.run(step.assign(at))
                got.append(sess.run(rate))
            self.assertAllClose([1.0, 1.0, 0.5, 0.5, 0.1], got)
            with self.assertRaises(ValueError):
                learning_rate_decay.piecewise_constant(step, [1.0, 2.0], [1.0, 2.0, 3.0])
            with self.assertRaises(ValueError):
                learning_rate_decay.piecewise_constant(step, [1, 2], [1.0, 2.0])
            with self.assertRaises(ValueError):
                learning_rate_decay.exponential_decay(1.0, None, 10, 0.5)


class Clusters(test.TestCase):
    def test_setter_types(self):
        spec = server_lib.ClusterSpec({"ps": ["ps0:2222", "ps1:2222"], "worker": ["worker0:2222"]})
        for cluster in (spec, spec.as_dict(), spec.as_cluster_def()):
            with ops.Graph().as_default(), ops.device(device_setter.replica_device_setter(cluster=cluster)):
                v, w = variables.VariableV1([1, 2]), variables.VariableV1([2, 1])
                a = v + w
                self.assertEqual("/job:ps/task:0", v.device)
                self.assertEqual("/job:ps/task:0", v.initializer.device)
                self.assertEqual("/job:ps/task:1", w.device)
                self.assertEqual("/job:worker", a.device)
        with self.assertRaises(TypeError):
            device_setter.replica_device_setter(cluster=[3])
        with self.assertRaises(TypeError):
            device_setter.replica_device_setter(cluster=spec, ps_strategy=3)
        self.assertIsNone(device_setter.replica_device_setter())

    def test_setter_options(self):
        spec = server_lib.ClusterSpec({"sun": ["s0:1", "s1:1", "s2:1"], "moon": ["m0:1"]})
        with ops.Graph().as_default():
            with ops.device(device_setter.replica_device_setter(
                    ps_tasks=0, cluster=spec, ps_device="/job:sun", worker_device="/job:moon", ps_ops=["Const"])):
                v, c = variables.VariableV1([1, 2]), constant_op.constant(1)
                self.assertEqual("/job:moon", v.device)
                self.assertEqual("/job:sun/task:1" if "task:1" in c.device else c.device, c.device)
            with ops.device(device_setter.replica_device_setter(ps_tasks=3)), ops.device("/cpu:1"):
                self.assertIn("CPU:1", variables.VariableV1(1).device.upper())

    def test_spec(self):
        spec = server_lib.ClusterSpec({"ps": {3: "ps3:2222", 1: "ps1:2222"}, "worker": ["w0:1", "w1:1"]})
        self.assertEqual([1, 3], spec.task_indices("ps"))
        self.assertEqual("ps3:2222", spec.task_address("ps", 3))
        self.assertEqual({"ps": {1: "ps1:2222", 3: "ps3:2222"}, "worker": ["w0:1", "w1:1"]}, spec.as_dict())
        self.assertEqual(spec, server_lib.ClusterSpec(spec.as_cluster_def()))
        self.assertTrue(bool(spec))
        self.assertFalse(server_lib.ClusterSpec({}))
        self.assertEqual(2, spec.num_tasks("worker"))
        with self.assertRaises(ValueError):
            spec.job_tasks("nowhere")
        with self.assertRaises(ValueError):
            spec.task_address("ps", 0)
        for wrong in ("string", {"a": 3}, {1: ["x:1"]}, {"a": [3]}):
            with self.assertRaises(TypeError):
                server_lib.ClusterSpec(wrong)
        self.assertEqual("ClusterSpec({'a': ['b:1']})", str(server_lib.ClusterSpec({"a": ["b:1"]})))

    def test_server_variables(self):
        server = server_lib.Server.create_local_server()
        server_def = server.server_def
        self.assertEqual("grpc", server_def.protocol)
        with ops.Graph().as_default():
            with session.Session(server.target) as one, session.Session(server.target) as two:
                v = variables.VariableV1([[2, 1]], name="v")
                v2 = variables.VariableV1([[1], [2]], name="v2")
                one.run(v.initializer)
                one.run(v2.initializer)
                self.assertAllEqual([[4]], two.run(math_ops.matmul(v, v2)))
        with session.Session(server.target, graph=ops.Graph()) as third, third.graph.as_default():
            again = variables.VariableV1([[9, 9]], name="v")
            self.assertAllEqual([[2, 1]], third.run(again))

    def test_server_errors(self):
        with self.assertRaises((errors.OpError, ValueError)):
            server_lib.Server({"local": ["localhost:0"]}, job_name="local", task_index=3, start=False)
        with self.assertRaises((errors.OpError, ValueError)):
            server_lib.Server({"local": ["localhost:0"]}, job_name="other", task_index=0, start=False)
        with self.assertRaises(errors.OpError):
            server_lib.Server({"local": ["localhost:0"]}, protocol="bogus")
        with self.assertRaises(TypeError):
            server_lib.Server(3)

    def test_synchronous(self):
        with ops.Graph().as_default():
            v = variables.VariableV1(1.0, name="v")
            step = training_util.create_global_step()
            opt = sync_replicas_optimizer.SyncReplicasOptimizer(
                gradient_descent.GradientDescentOptimizer(1.0), replicas_to_aggregate=1, total_num_replicas=1)
            with self.assertRaisesRegex(ValueError, "[Gg]lobal step is required"):
                opt.minimize(v * 1.0)
            for needs in (opt.get_init_tokens_op, opt.get_chief_queue_runner):
                with self.assertRaises(ValueError):
                    needs()
            update = opt.minimize(v * 1.0, global_step=step)
            self.assertEqual([], opt.get_slot_names())
            self.assertIsNotNone(opt.get_chief_queue_runner())
            hook = opt.make_session_run_hook(True)
            with self.assertRaises(ValueError):
                sync_replicas_optimizer.SyncReplicasOptimizer(
                    gradient_descent.GradientDescentOptimizer(1.0), 2, 2).make_session_run_hook(True).begin()
            self.assertIsNotNone(hook)
            self.assertIsNotNone(update)


class Arrays(test.TestCase):
    @test_util.run_deprecated_v1
    def test_write_read_pack(self):
        with self.cached_session():
            ta = tensor_array_ops.TensorArray(dtypes.float32, tensor_array_name="foo", size=3, infer_shape=False)
            w = ta.write(0, [[4.0, 5.0]]).write(1, [[1.0]]).write(2, -3.0)
            got = self.evaluate([w.read(0), w.read(1), w.read(2)])
            self.assertAllEqual([[4.0, 5.0]], got[0])
            self.assertAllEqual(-3.0, got[2])
            self.assertEqual(3, self.evaluate(w.size()))
            self.evaluate(w.close())

    @test_util.run_deprecated_v1
    def test_errors(self):
        with self.cached_session():
            ta = tensor_array_ops.TensorArray(dtypes.float32, size=3)
            with self.assertRaisesOpError("Tried to write to index -1 but array is not resizeable|index -1"):
                self.evaluate(ta.write(-1, 3.0).flow)
            with self.assertRaisesOpError("Tried to write to index 3 but array is not resizeable and size is: 3"):
                self.evaluate(ta.write(3, 3.0).flow)
            w = tensor_array_ops.TensorArray(dtypes.float32, size=3).write(0, 1.0)
            with self.assertRaisesOpError("Tried to read from index 3 but array size is: 3"):
                self.evaluate(w.read(3))
            twice = tensor_array_ops.TensorArray(dtypes.float32, size=3).write(2, 3.0).write(2, 3.0)
            with self.assertRaisesOpError("Could not write to TensorArray index 2 because it has already been written to"):
                self.evaluate(twice.flow)
            once = tensor_array_ops.TensorArray(dtypes.float32, size=3).write(1, 3.0)
            first = once.read(1)
            with ops.control_dependencies([first]):
                second = once.read(1)
            with self.assertRaisesOpError("Could not read index 1 twice because it was cleared after a previous read"):
                self.evaluate(second)

    @test_util.run_deprecated_v1
    def test_concat_split_gather(self):
        with self.cached_session():
            ta = tensor_array_ops.TensorArray(dtypes.float32, size=3, infer_shape=False)
            w = ta.split([[1.0], [2.0], [3.0]], [1, 0, 2])
            self.assertAllEqual([[1.0], [2.0], [3.0]], self.evaluate(w.concat()))
            with self.assertRaisesOpError(r"Expected sum of lengths to be equal to values.shape\[0\]|lengths"):
                self.evaluate(tensor_array_ops.TensorArray(dtypes.float32, size=1).split([1.0, 2.0], [1]).flow)
            ta = tensor_array_ops.TensorArray(dtypes.float32, size=4, clear_after_read=False, element_shape=[2])
            w = ta.scatter([1, 0, 3], [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
            self.assertAllEqual([[2.0, 2.0], [3.0, 3.0]], self.evaluate(w.gather([0, 3])))
            self.assertAllEqual([0.0, 0.0], self.evaluate(w.read(2)))
            self.assertEqual([None, 2], w.gather(array_ops.placeholder(dtypes.int32, [None])).shape.as_list())

    @test_util.run_deprecated_v1
    def test_unused_and_identity(self):
        with self.cached_session():
            ta = tensor_array_ops.TensorArray(dtypes.float32, size=2, element_shape=[]).unstack([1.0, 2.0])
            copied = ta.identity()
            self.assertAllEqual([1.0, 2.0], self.evaluate(copied.stack()))
            self.assertEqual(dtypes.float32, copied.dtype)
            self.assertEqual(dtypes.resource, ta.handle.dtype)
            grad = gradients_impl.gradients(copied.stack(), [ta.flow])
            self.assertEqual(1, len(grad))
            with self.assertRaises(ValueError):
                tensor_array_ops.TensorArray(dtypes.float32, size=1, handle=ta.handle)
            with self.assertRaises((ValueError, TypeError)):
                tensor_array_ops.TensorArray(dtypes.float32, size=3, dynamic_size=True, tensor_array_name="a", handle=ta.handle)
            self.assertIsNotNone(gen_array_ops)


if __name__ == "__main__":
    test.main()
