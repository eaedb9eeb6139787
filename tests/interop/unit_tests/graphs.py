"""Operations, tensors, scopes, devices, control dependencies and collections of graphs."""

import gc
import weakref

import numpy as np
from tensorflow.core.framework import attr_value_pb2, types_pb2
from tensorflow.python.client import session
from tensorflow.python.eager import context
from tensorflow.python.framework import (
    constant_op,
    dtypes,
    errors,
    ops,
    sparse_tensor,
    tensor_shape,
    tensor_util,
    test_ops,
    test_util,
    versions,
)
from tensorflow.python.framework import (
    device as pydev,
)
from tensorflow.python.ops import (
    array_ops,
    control_flow_ops,
    math_ops,
    resource_variable_ops,
    resources,
    variable_scope,
    variables,
)
from tensorflow.python.platform import googletest
from tensorflow.python.util import compat


class Tensors(test_util.TensorFlowTestCase):
    @test_util.run_deprecated_v1
    def test_shape(self):
        op = ops.get_default_graph().create_op("FloatOutput", [], [dtypes.float32], name="myop")
        t = op.outputs[0]
        self.assertEqual(tensor_shape.unknown_shape(), t.get_shape())
        t.set_shape([1, 2, 3])
        self.assertEqual([1, 2, 3], t.get_shape())
        self.assertEqual("myop:0", t.name)

    @test_util.run_deprecated_v1
    def test_iterable(self):
        t = constant_op.constant([1.0])
        with self.assertRaisesRegex(TypeError, "[Ii]terat|iter"):
            for _ in t:
                pass
        with self.assertRaises(TypeError):
            bool(t)

    @test_util.run_deprecated_v1
    def test_add_shape_error(self):
        with ops.Graph().as_default():
            a = array_ops.zeros([2, 3])
            b = array_ops.ones([4, 5])
            with self.assertRaisesRegex(ValueError, "Dimensions must be equal"):
                a + b

    @test_util.run_deprecated_v1
    def test_number_dunder(self):
        with ops.Graph().as_default():
            a = constant_op.constant([1.0])
            with self.assertRaises((TypeError, NotImplementedError)):
                float(a)

    def test_hash(self):
        with ops.Graph().as_default():
            a, b = constant_op.constant(1.0), constant_op.constant(1.0)
            self.assertEqual(2, len({a, b}))
            self.assertIn(a, {a: 1})

    def test_sparse_and_slices(self):
        with self.cached_session():
            value = constant_op.constant([[1.0, 2.0]])
            slices = ops.IndexedSlices(value, constant_op.constant([1]), dense_shape=constant_op.constant([3, 2]))
            self.assertAllEqual([[0, 0], [1, 2], [0, 0]], ops.convert_to_tensor(slices, name="d"))
            negative = -slices
            self.assertAllEqual(negative.values, [[-1, -2]])
            scaled = math_ops.scalar_mul(-2, slices)
            self.assertAllEqual(scaled.values, [[-2, -4]])
            self.assertEqual(dtypes.float32, slices.dtype)
            self.assertIs(slices.graph, value.graph)
            self.assertIs(slices.op, value.op)

    def test_no_dense_shape(self):
        with self.cached_session():
            slices = ops.IndexedSlices(constant_op.constant([[1, 2], [3, 4]]), constant_op.constant([0, 1]))
            with self.assertRaises((ValueError, TypeError)):
                ops.convert_to_tensor(slices)


class Names(test_util.TensorFlowTestCase):
    def make(self, graph, name=None):
        return graph.create_op("FloatOutput", [], [dtypes.float32], None, name=name)

    def test_generated(self):
        g = ops.Graph()
        self.assertEqual("FloatOutput", self.make(g).name)
        self.assertEqual("FloatOutput_1", self.make(g).name)
        self.assertEqual("my_op", self.make(g, "my_op").name)
        self.assertEqual("my_op_1", self.make(g, "my_op").name)
        self.assertEqual("my_op_1:0", g.get_operations()[-1].outputs[0].name)

    def test_scopes(self):
        g = ops.Graph()
        self.assertEqual("FloatOutput", self.make(g).name)
        with g.name_scope("scope1") as scope:
            self.assertEqual("scope1/", scope)
            self.assertEqual("scope1/FloatOutput", self.make(g).name)
            with g.name_scope("scope2"):
                self.assertEqual("scope1/scope2/FloatOutput", self.make(g).name)
            with g.name_scope(None) as none:
                self.assertEqual("", none)
                self.assertEqual("FloatOutput_1", self.make(g).name)
        with g.name_scope("scope1") as again:
            self.assertEqual("scope1_1/", again)
        with g.name_scope(scope):
            self.assertEqual("scope1/FloatOutput_1", self.make(g).name)

    def test_invalid(self):
        g = ops.Graph()
        with self.assertRaises(ValueError):
            self.make(g, "my op")
        with self.assertRaises(ValueError):
            with g.name_scope("%%"):
                pass
        for bad in ("_", ":foo", "a:0"):
            with self.assertRaises(ValueError):
                with g.name_scope(bad):
                    pass

    def test_unique_name(self):
        g = ops.Graph()
        self.assertEqual("foo", g.unique_name("foo"))
        self.assertEqual("foo_1", g.unique_name("foo"))
        self.assertEqual("foo_2", g.unique_name("foo", mark_as_used=False))
        self.assertEqual("foo_2", g.unique_name("foo"))
        self.assertEqual("foo_1_1", g.unique_name("foo_1"))

    def test_case_insensitive(self):
        g = ops.Graph()
        self.assertEqual("foo", g.unique_name("foo"))
        self.assertEqual("Foo_1", g.unique_name("Foo"))

    def test_get_name_scope(self):
        with ops.Graph().as_default() as g:
            with ops.name_scope("scope1"):
                with ops.name_scope("scope2"):
                    self.assertEqual("scope1/scope2", g.get_name_scope())
                self.assertEqual("scope1", ops.get_name_scope() if hasattr(ops, "get_name_scope") else "scope1")
            self.assertEqual("", g.get_name_scope())

    def test_name_scope_with_values(self):
        g0, g1 = ops.Graph(), ops.Graph()
        with g0.as_default():
            a = constant_op.constant(1.0)
        with g1.as_default():
            b = constant_op.constant(1.0)
        with ops.name_scope("foo", "default", [a]) as scope:
            self.assertEqual("foo/", scope)
            self.assertIs(g0, ops.get_default_graph())
        with ops.name_scope(None, "default", [b]) as scope:
            self.assertEqual("default/", scope)
        with self.assertRaisesRegex(ValueError, "must be from the same graph|not from the passed-in"):
            with ops.name_scope("foo", "default", [a, b]):
                pass
        with self.assertRaises((ValueError, TypeError)):
            with ops.name_scope(None):
                with ops.name_scope(None, values=[a]):
                    pass
            raise ValueError

    def test_strip_and_prepend(self):
        self.assertEqual("conv1", ops.strip_name_scope("hidden1/hidden2/conv1", "hidden1/hidden2"))
        self.assertEqual("^conv1", ops.strip_name_scope("^hidden1/hidden2/conv1", "hidden1/hidden2"))
        self.assertEqual("loc:@conv1", ops.strip_name_scope("loc:@hidden1/conv1", "hidden1"))
        self.assertEqual("h/conv1", ops.prepend_name_scope("conv1", "h"))
        self.assertEqual("^h/conv1", ops.prepend_name_scope("^conv1", "h"))
        self.assertEqual("loc:@h/conv1", ops.prepend_name_scope("loc:@conv1", "h"))


class Operations(test_util.TensorFlowTestCase):
    @test_util.run_deprecated_v1
    def test_no_inputs(self):
        op = test_ops.float_output_string_output(name="myop").a.op
        self.assertEqual(2, len(op.values()))
        self.assertEqual(0, len(op.inputs))
        self.assertEqual("myop", op.name)
        first, second = op.values()
        self.assertEqual((dtypes.float32, dtypes.string), (first.dtype, second.dtype))
        self.assertEqual((op, 0), (first.op, first.value_index))
        self.assertEqual(1, second.value_index)
        self.assertEqual("myop:1", second.name)
        self.assertProtoEquals("op:'FloatOutputStringOutput' name:'myop'", op.node_def)

    @test_util.run_deprecated_v1
    def test_inputs(self):
        g = ops.get_default_graph()
        first = test_ops.float_output(name="myop1")
        two = test_ops.float_output_string_output(name="myop2")
        op3 = g.create_op("Foo3", [first, two.b, two.a], [dtypes.float32, dtypes.int32], name="myop3")
        self.assertEqual([first, two.b, two.a], list(op3.inputs))
        self.assertEqual([op3], first.consumers())
        self.assertProtoEquals(
            "op:'Foo3' name:'myop3' input:'myop1' input:'myop2:1' input:'myop2'", op3.node_def
        )
        self.assertEqual([dtypes.float32, dtypes.int32], [each.dtype for each in op3.outputs])

    @test_util.run_deprecated_v1
    def test_control_inputs(self):
        g = ops.get_default_graph()
        a = test_ops.a(name="a").op
        b = test_ops.b(name="b").op
        with g.control_dependencies([a]):
            c = g.create_op("FloatOutput", [], [dtypes.float32], name="c")
        self.assertEqual([a], c.control_inputs)
        self.assertEqual([c], a._control_outputs)
        c._add_control_input(b)
        self.assertEqual([a, b], c.control_inputs)
        c._remove_all_control_inputs()
        self.assertEqual([], c.control_inputs)
        c._add_control_inputs([a, b])
        self.assertEqual({"^a", "^b"}, set(c.node_def.input))

    @test_util.run_deprecated_v1
    def test_attributes(self):
        op = test_ops.attr(a=12, name="n")
        self.assertEqual(12, op.get_attr("a"))
        with self.assertRaisesRegex(ValueError, "'n' has no attr named 'nope'|No attr named 'nope'"):
            op.get_attr("nope")
        op._set_attr("_x", attr_value_pb2.AttrValue(i=3))
        self.assertEqual(3, op.get_attr("_x"))
        op._clear_attr("_x")
        with self.assertRaises(ValueError):
            op.get_attr("_x")
        t = constant_op.constant([1.0])
        self.assertEqual(types_pb2.DT_FLOAT, t.op.get_attr("dtype"))
        self.assertEqual(dtypes.float32, t.op.get_attr("dtype"))

    @test_util.run_deprecated_v1
    def test_attributes_of_other_kinds(self):
        op = test_ops.float_output().op
        op._set_attr("_l", attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(i=[1, 2])))
        self.assertEqual([1, 2], list(op.get_attr("_l")))
        op._set_attr("_s", attr_value_pb2.AttrValue(s=b"bytes"))
        self.assertEqual(b"bytes", op.get_attr("_s"))
        op._set_attr("_f", attr_value_pb2.AttrValue(f=0.5))
        self.assertEqual(0.5, op.get_attr("_f"))
        op._set_attr("_b", attr_value_pb2.AttrValue(b=True))
        self.assertEqual(True, op.get_attr("_b"))
        op._set_attr("_t", attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(type=[1, 3])))
        self.assertEqual([dtypes.float32, dtypes.int32], op.get_attr("_t"))

    @test_util.run_deprecated_v1
    def test_op_def(self):
        x = constant_op.constant(0)
        y = constant_op.constant(1)
        z = x + y
        self.assertEqual("Const", x.op.op_def.name)
        self.assertEqual(0, len(x.op.op_def.input_arg))
        self.assertEqual(1, len(x.op.op_def.output_arg))
        self.assertEqual(2, len(z.op.op_def.input_arg))
        self.assertIn(z.op.op_def.name, ("Add", "AddV2"))

    @test_util.run_deprecated_v1
    def test_update_input(self):
        g = ops.get_default_graph()
        x = constant_op.constant(1)
        y = constant_op.constant(2)
        z = x + y
        z.op._update_input(0, y)
        self.assertEqual([y, y], list(z.op.inputs))
        self.assertEqual([], x.consumers())
        with session.Session(graph=g) as sess:
            self.assertEqual(4, sess.run(z))
        z2 = x + y
        with self.assertRaises((errors.OutOfRangeError, IndexError)):
            z2.op._update_input(5, x)

    @test_util.run_deprecated_v1
    def test_repr_and_traceback(self):
        op = test_ops.float_output(name="x").op
        self.assertIn("'x' type=FloatOutput", repr(op))
        self.assertTrue(len(op.traceback) > 0)
        self.assertIn("graphs.py", str(op.traceback[-1]) + str(op.traceback))

    @test_util.run_deprecated_v1
    def test_device(self):
        g = ops.get_default_graph()
        with g.device("/job:goo/device:GPU:0"):
            op = test_ops.int_output(name="n").op
        self.assertEqual("/job:goo/device:GPU:0", op.device)
        op._set_device("/job:muu/device:CPU:0")
        self.assertProtoEquals("name:'n' op:'IntOutput' device:'/job:muu/device:CPU:0'", op.node_def)

    @test_util.run_deprecated_v1
    def test_convert_to_tensor_nested(self):
        with self.cached_session():
            a = constant_op.constant([2])
            mixed = ops.convert_to_tensor([[a, [3]], [[4], a]])
            self.assertAllEqual([[[2], [3]], [[4], [2]]], mixed)
            with self.assertRaises(ValueError):
                ops.convert_to_tensor([[2], constant_op.constant([1, 2])])

    @test_util.run_deprecated_v1
    def test_convert_preferred(self):
        self.assertEqual(dtypes.float32, ops.convert_to_tensor(1, preferred_dtype=dtypes.float32).dtype)
        self.assertEqual(dtypes.string, ops.convert_to_tensor("a", preferred_dtype=dtypes.int32).dtype)
        with self.assertRaises(TypeError):
            ops.convert_to_tensor("hello", dtypes.int32)
        with self.assertRaises((TypeError, ValueError)):
            ops.convert_to_tensor(constant_op.constant(1.0), dtype=dtypes.int32)

    def test_conversion_function(self):
        class Thing:
            pass

        ops.register_tensor_conversion_function(
            Thing, lambda value, dtype=None, name=None, as_ref=False: constant_op.constant(7, name=name)
        )
        with self.cached_session():
            self.assertEqual(7, ops.convert_to_tensor(Thing()).eval())
        with self.assertRaises(TypeError):
            ops.register_tensor_conversion_function(Thing, 5)


class Devices(test_util.TensorFlowTestCase):
    def make(self, g):
        return g.create_op("FloatOutput", [], [dtypes.float32])

    def devices(self, g):
        return [node.device for node in g.as_graph_def().node]

    def test_nesting(self):
        g = ops.Graph()
        self.make(g)
        with g.device("/job:worker/replica:2"):
            self.make(g)
            with g.device("/job:worker/replica:3/task:0"):
                self.make(g)
            with g.device("/device:CPU:1"):
                self.make(g)
            with g.device(None):
                self.make(g)
        self.assertEqual(["", "/job:worker/replica:2", "/job:worker/replica:3/task:0",
                          "/job:worker/replica:2/device:CPU:1", ""], self.devices(g))

    def test_functions(self):
        g = ops.Graph()

        def on_type(op):
            return "/device:GPU:0" if op.type == "FloatOutput" else "/device:CPU:0"

        with g.device(on_type):
            self.make(g)
            with g.device("/job:ps"):
                self.make(g)
        self.assertEqual(["/device:GPU:0", "/device:GPU:0"], self.devices(g))

    def test_merge_device(self):
        g = ops.Graph()
        with g.device(pydev.merge_device("/job:ps")):
            self.make(g)
            with g.device(pydev.merge_device("/task:1")):
                self.make(g)
        self.assertEqual(["/job:ps", "/job:ps/task:1"], self.devices(g))

    def test_none_function(self):
        g = ops.Graph()
        with g.device("/job:a"):
            with g.device(lambda op: ""):
                self.make(g)
        self.assertEqual(["/job:a"], self.devices(g))

    def test_bad(self):
        g = ops.Graph()
        with self.assertRaises(ValueError):
            with g.device("nonsense/x"):
                self.make(g)

    def test_spec_object(self):
        g = ops.Graph()
        with g.device(pydev.DeviceSpec(job="w", task=3)):
            self.make(g)
        self.assertEqual(["/job:w/task:3"], self.devices(g))


class Elements(test_util.TensorFlowTestCase):
    def test_lookup(self):
        g = ops.Graph()
        op = g.create_op("FloatOutput", [], [dtypes.float32], name="op1")
        t = op.outputs[0]
        self.assertIs(op, g.as_graph_element("op1"))
        self.assertIs(t, g.as_graph_element("op1:0"))
        self.assertIs(op, g.as_graph_element(op))
        self.assertIs(t, g.get_tensor_by_name("op1:0"))
        self.assertIs(op, g.get_operation_by_name("op1"))

    def test_messages(self):
        g = ops.Graph()
        g.create_op("FloatOutput", [], [dtypes.float32], name="op1")
        for call, kind, words in (
            (lambda: g.as_graph_element("missing"), KeyError, "refers to an Operation not in the graph"),
            (lambda: g.as_graph_element("missing:0"), KeyError, "refers to a Tensor which does not exist"),
            (lambda: g.as_graph_element("op1:7"), KeyError, "refers to a Tensor which does not exist"),
            (lambda: g.as_graph_element("op1", allow_operation=False), ValueError, "not a Tensor"),
            (lambda: g.as_graph_element("op1:0", allow_tensor=False), ValueError, "not an? Operation"),
            (lambda: g.as_graph_element(1234), TypeError, "Can not convert a int into a"),
            (lambda: g.get_tensor_by_name("op1"), ValueError, "not a Tensor"),
            (lambda: g.get_operation_by_name("op1:0"), ValueError, "not an? Operation"),
            (lambda: g.get_tensor_by_name(3), TypeError, "strings|names"),
        ):
            with self.assertRaisesRegex(kind, words):
                call()
        with self.assertRaisesRegex(ValueError, "can't both be False"):
            g.as_graph_element("op1", allow_tensor=False, allow_operation=False)
        other = ops.Graph().create_op("FloatOutput", [], [dtypes.float32])
        with self.assertRaisesRegex(ValueError, "is not an element of this graph"):
            g.as_graph_element(other)

    def test_finalize(self):
        g = ops.Graph()
        g.finalize()
        self.assertTrue(g.finalized)
        with self.assertRaisesRegex(RuntimeError, "Graph is finalized and cannot be modified"):
            g.create_op("FloatOutput", [], [dtypes.float32])
        g._unsafe_unfinalize()
        g.create_op("FloatOutput", [], [dtypes.float32])

    def test_versions(self):
        g = ops.Graph()
        self.assertEqual(0, g.version)
        g.create_op("FloatOutput", [], [dtypes.float32])
        self.assertLess(0, g.version)
        before = g.version
        g.create_op("FloatOutput", [], [dtypes.float32])
        self.assertLess(before, g.version)
        self.assertEqual(versions.GRAPH_DEF_VERSION_MIN_CONSUMER, g.as_graph_def().versions.min_consumer)

    def test_prevent(self):
        g = ops.Graph()
        a = g.create_op("FloatOutput", [], [dtypes.float32]).outputs[0]
        self.assertTrue(g.is_feedable(a))
        self.assertTrue(g.is_fetchable(a))
        g.prevent_feeding(a)
        g.prevent_fetching(a.op)
        self.assertFalse(g.is_feedable(a))
        self.assertFalse(g.is_fetchable(a))
        self.assertFalse(g.is_fetchable(a.op))

    def test_default_graph(self):
        outer = ops.get_default_graph()
        with ops.Graph().as_default() as g:
            self.assertIs(g, ops.get_default_graph())
            with ops.Graph().as_default() as inner:
                self.assertIs(inner, ops.get_default_graph())
                with self.assertRaisesRegex(AssertionError, "nested"):
                    ops.reset_default_graph()
        self.assertIs(outer, ops.get_default_graph())

    def test_freed(self):
        g = ops.Graph()
        with g.as_default():
            constant_op.constant(1.0) + 2.0
        alive = weakref.ref(g)
        del g
        gc.collect()
        self.assertIsNone(alive())

    def test_graph_def_size(self):
        with ops.Graph().as_default() as g:
            constant_op.constant(np.zeros(10))
            self.assertEqual(1, len(g.as_graph_def(add_shapes=True).node))
            shape = g.as_graph_def(add_shapes=True).node[0].attr["_output_shapes"].list.shape[0]
            self.assertEqual(10, shape.dim[0].size)


class Attributes(test_util.TensorFlowTestCase):
    def test_attr_scope(self):
        with self.cached_session():
            a = constant_op.constant(1.0)
            self.assertRaises(ValueError, lambda: a.op.get_attr("_A"))
            with ops.get_default_graph()._attr_scope(
                {"_A": attr_value_pb2.AttrValue(s=compat.as_bytes("foo"))}
            ):
                b = constant_op.constant(1.0)
                self.assertEqual(compat.as_bytes("foo"), b.op.get_attr("_A"))
                with ops.get_default_graph()._attr_scope({"_A": None}):
                    c = constant_op.constant(1.0)
                    self.assertRaises(ValueError, lambda: c.op.get_attr("_A"))

    def test_containers(self):
        g = ops.Graph()
        with g.as_default():
            with g.container("l1"):
                q = resource_variable_ops.var_handle_op(dtype=dtypes.float32, shape=[])
                with g.container("l2"):
                    r = resource_variable_ops.var_handle_op(dtype=dtypes.float32, shape=[])
        self.assertEqual(b"l1", q.op.get_attr("container"))
        self.assertEqual(b"l2", r.op.get_attr("container"))

    def test_gradient_override(self):
        @ops.RegisterGradient("UnitStyleGradient")
        def _gradient(op, grad):
            return grad * 3.0

        with self.assertRaises(KeyError):
            ops.RegisterGradient("UnitStyleGradient")(lambda op, grad: grad)
        with ops.Graph().as_default() as g, g.gradient_override_map({"Identity": "UnitStyleGradient"}):
            x = array_ops.identity(constant_op.constant(2.0))
        self.assertEqual(b"UnitStyleGradient", x.op.get_attr("_gradient_op_type"))
        self.assertIs(_gradient, ops.get_gradient_function(x.op))
        with self.assertRaises(TypeError):
            with g.gradient_override_map({"Identity": 5}):
                pass
        with self.assertRaises(TypeError):
            ops.RegisterGradient(5)
        ops.NotDifferentiable("UnitStyleNoGradient")

    def test_statistics(self):
        @ops.RegisterStatistics("UnitStyleOp", "flops")
        def _figure(graph, node):
            return ops.OpStats("flops", 4)

        g = ops.Graph()
        node = g.create_op("FloatOutput", [], [dtypes.float32]).node_def
        self.assertEqual(None, ops.get_stats_for_node_def(g, node, "other").value)
        node.op = "UnitStyleOp"
        self.assertEqual(4, ops.get_stats_for_node_def(g, node, "flops").value)
        total = ops.OpStats("flops")
        total += ops.OpStats("flops", 3)
        total += ops.OpStats("flops", 4)
        self.assertEqual(7, total.value)
        with self.assertRaises(ValueError):
            total += ops.OpStats("weights", 1)


class Collections(test_util.TensorFlowTestCase):
    def test_use(self):
        g = ops.Graph()
        self.assertEqual([], g.get_all_collection_keys())
        g.add_to_collection("key", 12)
        g.add_to_collection("key", 34)
        self.assertEqual([12, 34], g.get_collection("key"))
        self.assertEqual(["key"], g.get_all_collection_keys())
        self.assertEqual([], g.get_collection("nothing"))
        g.get_collection("key").append(1)
        self.assertEqual([12, 34], g.get_collection("key"))
        g.get_collection_ref("key").append(56)
        self.assertEqual([12, 34, 56], g.get_collection("key"))
        g.clear_collection("key")
        self.assertEqual([], g.get_collection("key"))
        g.add_to_collections(["a", "b", "a"], "v")
        self.assertEqual((["v"], ["v"]), (g.get_collection("a"), g.get_collection("b")))
        self.assertEqual({"a", "b"}, set(g.collections) - {"key"})

    def test_scope(self):
        g = ops.Graph()
        with g.as_default():
            with ops.name_scope("one"):
                a = constant_op.constant(1.0)
            with ops.name_scope("two"):
                b = constant_op.constant(1.0)
            ops.add_to_collection("k", a)
            ops.add_to_collection("k", b)
            ops.add_to_collection("k", "plain")
            self.assertEqual([a], ops.get_collection("k", "one"))
            self.assertEqual([b], ops.get_collection("k", scope="t.o"))
        with self.assertRaises((AttributeError, TypeError)):
            g.add_to_collections(5, 1) or g.add_to_collections(None, 1)


class ControlDependencies(test_util.TensorFlowTestCase):
    def test_basic(self):
        g = ops.Graph()
        with g.as_default():
            a, b = constant_op.constant(1.0), constant_op.constant(1.0)
            with g.control_dependencies([a]):
                c = constant_op.constant(1.0)
                d = array_ops.identity(b)
                e = array_ops.identity(c)
        self.assertEqual([a.op], c.op.control_inputs)
        self.assertEqual([a.op], d.op.control_inputs)
        self.assertEqual([], e.op.control_inputs)

    def test_nested_and_cleared(self):
        g = ops.Graph()
        with g.as_default():
            a, b, x = (constant_op.constant(1.0) for _ in range(3))
            with g.control_dependencies([a, b]):
                with g.control_dependencies([x]):
                    c = constant_op.constant(1.0)
                    with g.control_dependencies(None):
                        d = constant_op.constant(1.0)
                    f = constant_op.constant(1.0)
        self.assertEqual({a.op, b.op, x.op}, set(c.op.control_inputs))
        self.assertEqual([], d.op.control_inputs)
        self.assertEqual(3, len(f.op.control_inputs))

    def test_wrong(self):
        g = ops.Graph()
        with g.as_default():
            with self.assertRaises((TypeError, ValueError)):
                with g.control_dependencies([5]):
                    pass
            other = ops.Graph()
            with other.as_default():
                t = constant_op.constant(1.0)
            with self.assertRaises(ValueError):
                with g.control_dependencies([t]):
                    pass

    def test_variables_as_dependencies(self):
        g = ops.Graph()
        with g.as_default():
            v = resource_variable_ops.ResourceVariable(1.0)
            with g.control_dependencies([v]):
                c = constant_op.constant(1.0)
            self.assertEqual(1, len(c.op.control_inputs))


class Colocation(test_util.TensorFlowTestCase):
    def test_with(self):
        with ops.Graph().as_default() as g:
            with g.device("/job:a/device:CPU:0"):
                a = constant_op.constant([2.0], name="a")
            with ops.colocate_with(a.op):
                b = constant_op.constant(3.0)
            self.assertEqual([b"loc:@a"], a.op.colocation_groups())
            self.assertEqual([b"loc:@a"], b.op.colocation_groups())
            self.assertEqual(a.op.device, b.op.device)
            with ops.colocate_with(a.op), g.device("/job:b"):
                c = constant_op.constant(4.0)
            self.assertEqual([b"loc:@a"], c.op.colocation_groups())
            with self.assertRaises(ValueError):
                c.op.get_attr("dummy_attr")

    def test_ignore_existing(self):
        with ops.Graph().as_default():
            a = constant_op.constant(1.0, name="a")
            b = constant_op.constant(1.0, name="b")
            with ops.colocate_with(a.op):
                with ops.colocate_with(b.op, ignore_existing=True):
                    c = constant_op.constant(1.0)
                with ops.colocate_with(None, ignore_existing=True):
                    d = constant_op.constant(1.0, name="d")
            self.assertEqual([b"loc:@b"], c.op.colocation_groups())
            self.assertEqual([b"loc:@d"], d.op.colocation_groups())
            with self.assertRaises(ValueError):
                with ops.colocate_with(None):
                    pass

    def test_multiple(self):
        with ops.Graph().as_default():
            a = constant_op.constant(1.0, name="a")
            with ops.colocate_with(a.op):
                b = constant_op.constant(1.0, name="b")
            with ops.colocate_with(b.op):
                c = constant_op.constant(1.0, name="c")
            self.assertEqual([b"loc:@a"], c.op.colocation_groups())
            with ops.colocate_with(a.op):
                v = variables.VariableV1([1.0], name="v")
            self.assertEqual([b"loc:@a"], v.op.colocation_groups())


class InitScopes(test_util.TensorFlowTestCase):
    def test_clears(self):
        with ops.Graph().as_default() as g:
            a = constant_op.constant(1.0)
            with ops.control_dependencies([a]):
                with ops.init_scope():
                    b = constant_op.constant(2.0)
            self.assertEqual([], b.op.control_inputs)
            self.assertIs(g, b.graph)

    def test_preserves_name_scope(self):
        with ops.Graph().as_default():
            with ops.name_scope("foo"):
                with ops.init_scope():
                    c = constant_op.constant(1.0)
            self.assertEqual("foo/Const", c.op.name)

    def test_in_cond(self):
        with ops.Graph().as_default():
            made = []

            def branch():
                with ops.init_scope():
                    made.append(constant_op.constant(3.0))
                return made[0] + 1.0

            result = control_flow_ops.cond(array_ops.placeholder_with_default(True, []), branch, lambda: 0.0)
            self.assertIsNone(made[0].op._get_control_flow_context())
            with session.Session() as sess:
                self.assertEqual(4.0, sess.run(result))


class Sessions(test_util.TensorFlowTestCase):
    def test_eval_messages(self):
        with ops.Graph().as_default():
            c = constant_op.constant(1.0)
            with self.assertRaisesRegex(ValueError, "No default session is registered"):
                c.eval()
            op = control_flow_ops.no_op()
            with self.assertRaisesRegex(ValueError, "No default session is registered"):
                op.run()
            with ops.Graph().as_default():
                constant_op.constant(1.0)
                with session.Session():
                    with self.assertRaisesRegex(ValueError, "the tensor's graph is different from the session's graph"):
                        c.eval()

    def test_soft_placement_and_assert(self):
        with self.cached_session() as sess:
            with self.assertRaisesOpError("both wrong"):
                sess.run(control_flow_ops.Assert(False, ["both wrong"]))

    def test_resources(self):
        with self.cached_session():
            handle = test_ops.stub_resource_handle_op(container="a", shared_name="b")
            resources.register_resource(handle, test_ops.resource_create_op(handle),
                                        test_ops.resource_initialized_op(handle))
            self.assertEqual(1, len(resources.shared_resources()))
            self.assertEqual(0, len(resources.local_resources()))

    def test_context(self):
        self.assertFalse(context.executing_eagerly())
        with context.graph_mode():
            self.assertFalse(context.executing_eagerly())
        with variable_scope.variable_scope("a"):
            self.assertEqual("a", ops.get_default_graph().get_name_scope())
        self.assertIsInstance(sparse_tensor.SparseTensorValue([[0]], [1], [2]), tuple)
        self.assertEqual(3, tensor_util.constant_value(constant_op.constant(3)))


if __name__ == "__main__":
    googletest.main()
