"""The names of TensorFlow 1.15 that are not public, as its own unit tests use them."""

from __future__ import annotations

import pytest

import dtf as tf
from dtf.as_tensorflow.historic import composite_tensor, graph_to_function_def, ops
from dtf.build import defun
from dtf.wire import errors
from dtf.wire.pb import attr_value_pb2


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def node(op, name, **attrs):
    return ops._NodeDef(op, name, attrs={key: attr_value_pb2.AttrValue(**value) for key, value in attrs.items()})


def test_an_operation_is_made_of_a_node_def(graph):
    with tf.device("/cpu:0"):
        op = tf.Operation(node("Placeholder", "x", dtype={"type": 1}), graph, [], [tf.float32])
    assert (op.name, op.type, op.device, graph.get_operations()) == ("x", "Placeholder", "", [op])
    assert op._id_value == graph._last_id == 1
    negative = tf.Operation(node("Neg", "y"), graph, op.outputs)
    assert negative.get_attr("T") == negative.outputs[0].dtype == tf.float32


@pytest.mark.parametrize("name", ["", "_x", "-x", "/x", "x y"])
def test_an_operation_needs_a_valid_name(graph, name):
    with pytest.raises(ValueError, match="is not a valid node name"):
        tf.Operation(node("NoOp", name), graph)
    assert graph.get_operations() == []


def test_an_operation_needs_a_node_def_a_graph_and_inputs_that_fit(graph):
    with pytest.raises(TypeError, match="node_def needs to be a NodeDef"):
        tf.Operation("NoOp", graph)
    with pytest.raises(TypeError, match="g needs to be a Graph"):
        tf.Operation(node("NoOp", "x"), None)
    with pytest.raises(TypeError, match="not compatible with expected types"):
        tf.Operation(node("Neg", "y"), graph, [tf.constant(1)], input_types=[tf.float32])


def test_a_node_waits_until_the_graph_adds_it(graph):
    x = tf.constant(1.0)
    with tf.name_scope("scope"), tf.device("/cpu:0"):
        waiting = ops._create_c_op(graph, node("Neg", "y"), [x], [])
        assert "y" not in graph._nodes_by_name
        (op,) = graph._add_new_tf_operations()
    assert op is waiting and op.device == "/device:CPU:0" and x.consumers() == [op]
    assert graph.get_operation_by_name("y") is op


def test_an_input_is_exchanged_for_one_that_fits():
    x, y, text = tf.constant(1), tf.constant(2), tf.constant("text")
    total = x + x
    total.op._update_input(0, y)
    assert list(total.op.inputs) == [y, x] and y.consumers() == x.consumers() == [total.op]
    total.op._update_input(1, text)  # the session checks dtypes
    with pytest.raises(errors.InvalidArgumentError, match="Input 1 of node add was passed string from Const_2:0"):
        tf.Session().run(total)
    with pytest.raises(errors.InvalidArgumentError, match=r"incompatible shapes: \[2\] and \[\]"):
        total.op._update_input(0, tf.constant([1, 2]))
    with pytest.raises(errors.OutOfRangeError, match=r"Input index \[2\] is greater than the number of total inputs"):
        total.op._update_input(2, x)


def test_an_operation_knows_the_blocks_that_it_was_made_in():
    def choose(op):
        return "/cpu:1"

    with tf.device("/job:ps"), tf.device(choose):
        one = tf.constant(1, name="one")
    with tf.colocate_with(one.op):
        two = tf.constant(2)
    places = one.op._device_assignments
    assert [place.obj.partition("<")[0] for place in places] == ["choose", "/job:ps"]
    assert all(place.filename == __file__ and place.lineno for place in places)
    assert list(two.op._colocation_dict) == ["one"]


def test_kernel_labels_are_attributes_of_the_nodes_of_a_block(graph):
    with graph._kernel_label_map({"Neg": "fast"}):
        inside = tf.negative(1.0)
    assert inside.op.get_attr("_kernel") == b"fast"
    with pytest.raises(TypeError, match="strings to strings"), graph._kernel_label_map({"Neg": 5}):
        pass


def test_a_call_of_a_defun_has_the_name_of_the_function_as_its_op(graph):
    @defun.Defun(tf.float32, tf.float32)
    def gradient(x, dy):
        return dy * 5.0

    @defun.Defun(tf.float32, func_name="Twice", grad_func=gradient, out_names=["twice"])
    def twice(x):
        return x * 2.0

    @defun.Defun(tf.float32, func_name="Outer")
    def outer(x):
        return twice(x) + 1.0

    x = tf.constant(3.0)
    y, z = twice(x), outer(x)
    assert (y.op.type, z.op.type) == ("Twice", "Outer")
    assert graph._functions["Twice"].grad_func_name == gradient.name
    assert graph._is_function(b"Outer") and not graph._is_function("Inner")
    with tf.Session() as session:
        assert session.run([y, z, *tf.gradients(y, x), *tf.gradients(z, x)]) == [6.0, 7.0, 5.0, 5.0]


def test_the_nodes_of_a_graph_become_a_function(graph):
    x = tf.placeholder(tf.float32, name="scope/x")
    y = x * 2.0
    made = graph_to_function_def.graph_to_function_def(graph, graph.get_operations(), [x], [y])
    assert [each.name for each in made.signature.input_arg] == ["scope_x"]
    assert dict(made.ret) == {"mul": "mul:z:0"}
    with pytest.raises(ValueError, match="output names must be either empty or equal in size"):
        graph_to_function_def.graph_to_function_def(graph, [], [x], [y], ["a", "b"])


def test_a_conversion_function_must_give_the_dtype_that_is_wanted():
    class Value:
        pass

    tf.register_tensor_conversion_function(Value, lambda *_, **__: tf.constant(1.0))
    with pytest.raises(RuntimeError, match="returned incompatible dtype: requested = int32, actual = float32"):
        tf.convert_to_tensor(Value(), tf.int32)


def test_control_flow_contexts_survive_their_messages(graph):
    from dtf.as_tensorflow.historic import control_flow_contexts, control_flow_util

    p, x = tf.placeholder(tf.bool, []), tf.constant(1)
    tf.while_loop(lambda i: i < 9, lambda i: tf.cond(p, lambda: i + x, lambda: i + 2), [x])
    found = {op._get_control_flow_context() for op in graph.get_operations()} - {None}
    assert len(found) == 3
    for context in found:
        assert type(context).from_proto(context.to_proto()).to_proto() == context.to_proto()
        assert isinstance(context, control_flow_contexts.ControlFlowContext)
        assert context.IsWhileContext() != context.IsCondContext()
        assert context.GetWhileContext().outer_context is None

    class Compiled(control_flow_contexts.XLAControlFlowContext):
        pass

    compiled = Compiled()
    compiled.Enter()
    inside = tf.constant(1)
    compiled.Exit()
    assert control_flow_util.IsInXLAContext(inside.op) and not control_flow_util.IsInXLAContext(tf.constant(1).op)


def test_an_initial_value_that_comes_out_of_a_loop_is_not_guarded():
    from dtf.as_tensorflow.historic import variable_creators

    value = tf.while_loop(lambda i: i < 9, lambda i: i + 1, [tf.Variable(1).initialized_value()])
    assert variable_creators.guarded("name", value) is value


def test_a_creator_of_variables_may_call_the_default_one():
    from dtf.as_tensorflow.historic import variable_creators

    def creator(next_creator, **kwargs):
        return variable_creators.default_variable_creator(None, **{**kwargs, "name": "mine"})

    with tf.variable_creator_scope(creator):
        assert tf.Variable(1).name == "mine:0"


def test_slices_of_tensors_refuse_to_be_assigned():
    with pytest.raises(ValueError, match="Sliced assignment is only supported for variables"):
        tf.constant([1.0])[0].assign(2.0)
    with pytest.raises(TypeError, match="valid indices, got 'x'"):
        tf.constant([1.0])[0:"x"]


def test_walks_over_a_graph_stay_where_they_may():
    from dtf.as_tensorflow.historic import op_selector

    a, b = tf.constant(1, name="a"), tf.constant(2, name="b")
    c = tf.add(a, b)
    d = tf.multiply(c, c)
    assert set(op_selector.get_backward_walk_ops(d.op)) == {a.op, b.op, c.op, d.op}
    assert set(op_selector.get_backward_walk_ops(d, inclusive=False, stop_at_ts=[a])) == {b.op, c.op}
    assert op_selector.get_backward_walk_ops(d.op, within_ops=[c.op]) == [d.op, c.op]
    assert op_selector.get_consuming_ops([a, b]) == op_selector.get_generating_ops([c]) == [c.op]
    assert op_selector.show_path(d, [a], [a]) == "Mul (Mul) <- Add (Add) <- a (Const)"
    with pytest.raises(ValueError, match="does not belong to given graph"):
        op_selector.get_unique_graph([a, tf.Graph().create_op("NoOp", [])])


def test_tensors_become_slices_and_shapes_are_reduced():
    from dtf.as_tensorflow.historic import math_ops

    x = tf.constant([[1.0], [2.0]])
    with tf.Session() as session:
        slices = session.run(math_ops._as_indexed_slices(x))
        assert (slices.indices.tolist(), slices.dense_shape.tolist()) == ([0, 1], [2, 1])
        assert session.run(math_ops.reduced_shape([2, 3, 5], [1, -1])).tolist() == [2, 1, 1]
    with pytest.raises(TypeError, match="Not a Tensor or IndexedSlices"):
        math_ops._as_indexed_slices(5)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_orthogonal_convolutions_keep_the_norm_of_what_is_periodic(dimensions):
    import numpy as np

    from dtf.build import convolution_initializers

    kind = getattr(convolution_initializers, f"ConvolutionOrthogonal{dimensions}D")
    kernel = kind(gain=2.0, seed=1)([3] * dimensions + [2, 3])
    x = np.random.default_rng(0).normal(size=[1, *[4] * dimensions, 2]).astype(np.float32)
    periodic = np.pad(x, [(0, 0), *[(0, 2)] * dimensions, (0, 0)], mode="wrap")
    with tf.Session() as session:
        found = session.run(tf.nn.convolution(periodic, kernel, "VALID"))
    np.testing.assert_allclose(np.linalg.norm(found), 2 * np.linalg.norm(x), rtol=1e-4)
    with pytest.raises(ValueError, match="In_filters cannot be greater than out_filters"):
        kind()([3] * dimensions + [3, 2])
    with pytest.raises(ValueError, match="The tensor to initialize must be"):
        kind()([3, 2])


def test_an_op_that_newer_graphs_must_not_have_is_refused():
    with tf.Graph().as_default(), pytest.raises(NotImplementedError, match="has been removed in version 7. Use TopKV2"):
        tf.raw_ops.TopK(input=[1.0, 2.0], k=1)
    with tf.Graph().as_default() as graph:
        graph._producer = 6
        assert tf.raw_ops.TopK(input=[1.0, 2.0], k=1).values.shape == [1]


def test_a_tensor_has_one_consumer_for_each_use():
    x = tf.constant(1)
    total = x + x
    assert x.consumers() == [total.op, total.op]
    total.op._update_input(0, tf.constant(2))
    assert x.consumers() == [total.op]


def test_inputs_cannot_be_changed():
    op = (tf.constant(1) + 2).op
    with pytest.raises(AttributeError, match="no attribute 'append'"):
        op.inputs.append(None)
    assert op.inputs == list(op.inputs) and len(op.inputs) == 2


def test_an_init_scope_adds_to_the_graph_around_a_function():
    outer, body = tf.Graph(), tf.Graph()
    body._building_function = True
    with outer.as_default(), tf.device("/cpu:1"), body.as_default(), tf.name_scope("inside"):
        with tf.init_scope():
            lifted = tf.constant(1.0)
        own = tf.constant(2.0)
    assert lifted.graph is outer and lifted.op.name == "inside/Const" and lifted.device == "/device:CPU:1"
    assert own.graph is body and own.device == ""


def test_device_blocks_are_left_in_order():
    graph = tf.Graph()
    outer = graph.device("/cpu:0")
    outer.__enter__()
    with graph.device("/cpu:1"), pytest.raises(RuntimeError, match="without proper scope nesting"):
        outer.__exit__(None, None, None)


def test_an_operation_is_no_tensor():
    with pytest.raises(TypeError, match="Can't convert Operation 'nothing' to Tensor"):
        tf.convert_to_tensor(tf.no_op(name="nothing"))


@pytest.mark.parametrize(
    ("name", "scope"), [("a//", "a//"), ("/", "outer/"), ("b", "outer/b/"), (b"c", "outer/c/"), ("", ""), (None, "")]
)
def test_a_name_scope_keeps_its_slashes(name, scope):
    with tf.Graph().as_default(), tf.name_scope("outer"):
        if name == "/":
            scope = "/"
        with tf.name_scope(name) as given:
            assert given == scope


def test_a_programs_own_kind_of_value_is_made_by_its_conversion_function():
    class Pair(composite_tensor.CompositeTensor):
        def __init__(self, first, second):
            self.parts = tf.convert_to_tensor(first), tf.convert_to_tensor(second)

        @property
        def _type_spec(self):
            return PairSpec()

    class PairSpec(tf.TypeSpec):
        value_type = Pair

        def _to_components(self, value):
            return value.parts

        def _from_components(self, parts):
            return Pair(*parts)

    class Numbers:
        pass

    tf.register_tensor_conversion_function(Numbers, lambda value, *_, **__: Pair(1, 2.0))
    pair = ops.convert_to_tensor_or_composite(Numbers())
    assert isinstance(pair, Pair) and composite_tensor.is_composite_or_composite_value(pair)
    assert composite_tensor.replace_composites_with_components([pair]) == list(pair.parts)


def test_indexed_slices_are_taken_apart_and_made_again():
    spec = tf.IndexedSlicesSpec([5, 3], dense_shape_dtype=tf.int64)
    assert spec._component_specs == (
        tf.TensorSpec([None, 3]), tf.TensorSpec([None], tf.int64), tf.TensorSpec([2], tf.int64)
    )  # fmt: skip
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0, 3.0]]), tf.constant([4]), tf.constant([5, 3]))
    again = spec._from_components(spec._to_components(slices))
    assert again.values is slices.values and again.dense_shape is slices.dense_shape
