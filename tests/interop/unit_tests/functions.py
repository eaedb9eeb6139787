"""Functions of the graph's library: Defun, Declare, their gradients, captures, names and definitions."""

import numpy as np
from tensorflow.core.framework import function_pb2
from tensorflow.python.framework import constant_op, dtypes, errors_impl, function, importer, ops
from tensorflow.python.ops import (
    array_ops,
    control_flow_ops,
    functional_ops,
    gradients_impl,
    init_ops,
    logging_ops,
    math_ops,
    nn_ops,
    random_ops,
    variable_scope,
    variables,
)
from tensorflow.python.platform import test


def defun(*types, **options):
    """Defun for functions without names."""

    def declare(func):
        func.__name__ = "anonymous"
        return function.Defun(*types, **options)(func)

    return declare


class _Graphs(test.TestCase):
    def setUp(self):
        super().setUp()
        self._scope = ops.Graph().as_default()
        self.graph = self._scope.__enter__()
        self.addCleanup(self._scope.__exit__, None, None, None)

    def run_it(self, fetches, feeds=None):
        with self.session(graph=self.graph) as session:
            session.run(variables.global_variables_initializer())
            return session.run(fetches, feeds)


class Calls(_Graphs):
    def test_a_call_has_the_functions_name(self):
        @function.Defun(dtypes.float32, func_name="MyIdentity")
        def identity(a):
            return a

        call = identity([18.0])
        self.assertEqual("MyIdentity", call.op.name)
        self.assertEqual("MyIdentity_1", identity([18.0]).op.name)
        self.assertEqual("mine", identity([18.0], name="mine").op.name)
        self.assertAllEqual([18.0], self.run_it(call))

    def test_names_of_results(self):
        @function.Defun(dtypes.float32, func_name="MyIdentity", out_names=["my_result_name"])
        def identity(a):
            return a

        self.assertAllEqual([18.0], self.run_it(identity([18.0])))
        self.assertEqual(["my_result_name"], [each.name for each in identity.definition.signature.output_arg])

        @function.Defun(dtypes.float32, func_name="Wrong", out_names=["a", "b"])
        def wrong(a):
            return a

        with self.assertRaisesRegex(
            errors_impl.InvalidArgumentError, "output names must be either empty or equal in size to outputs"
        ):
            wrong([18.0])

    def test_several_results(self):
        @function.Defun(dtypes.float32, dtypes.float32, func_name="Both")
        def both(a, b):
            return a + b * 2, b, a

        first, *rest = both([1.0], [2.0])
        self.assertEqual("Both", first.op.name)
        self.assertIs(first.op, rest[1].op)
        self.assertAllEqual([[5.0], [2.0], [1.0]], self.run_it([first, *rest]))

    def test_one_tensor_twice(self):
        @function.Defun(dtypes.float32)
        def duplicate(a):
            b = a + 1.0
            return b, b

        self.assertAllEqual([[4.0], [4.0]], self.run_it(list(duplicate([3.0]))))

    def test_without_arguments_or_results(self):
        @function.Defun()
        def two():
            return constant_op.constant([2.0])

        @function.Defun(dtypes.float32)
        def nothing(a):
            control_flow_ops.Assert(a > 0, [a])

        self.assertAllEqual([2.0], self.run_it(two()))
        self.assertIsInstance(nothing(1.0), ops.Operation)
        self.run_it(nothing(1.0))
        with self.assertRaises(errors_impl.InvalidArgumentError):
            self.run_it(nothing(-1.0))

    def test_errors_of_calls(self):
        @function.Defun(dtypes.float32)
        def one(a):
            return a

        for given in ([], [1.0, 2.0]):
            with self.assertRaisesRegex(ValueError, "arguments"):
                one(*given)
        with self.assertRaisesRegex(ValueError, "Unknown keyword arguments"):
            one(1.0, inline=True)

        @function.Defun(dtypes.float32)
        def none(a):
            return a, None

        with self.assertRaisesRegex(ValueError, "can not return None"):
            none(1.0)

    def test_errors_of_declarations(self):
        with self.assertRaises(ValueError):
            defun(dtypes.float32, dtypes.float32)(lambda a: a)
        with self.assertRaises(ValueError):
            function.Defun(dtypes.float32)(3)
        with self.assertRaisesRegex(ValueError, "argument defaults"):
            defun(dtypes.float32)(lambda a=1: a)
        with self.assertRaisesRegex(ValueError, "argument defaults or keyword"):
            defun(dtypes.float32)(lambda **a: a)

    def test_a_name_twice(self):
        @function.Defun(dtypes.float32, func_name="Foo")
        def first(x):
            return x

        @function.Defun(dtypes.float32, func_name="Foo")
        def same(x):
            return x

        @function.Defun(dtypes.float32, func_name="Foo")
        def other(x):
            return x + 1.0

        first(1.0)
        with self.assertRaisesRegex(errors_impl.InvalidArgumentError, "different function with the same name"):
            other(1.0)
        self.assertEqual(1.0, self.run_it(same(1.0)))

    def test_any_number_of_arguments(self):
        @function.Defun(dtypes.float32, dtypes.float32, dtypes.float32)
        def last(a, *rest):
            return a + rest[0] * rest[1]

        self.assertEqual(7.0, self.run_it(last(1.0, 2.0, 3.0)))

    def test_attributes_of_calls(self):
        @function.Defun(dtypes.float32)
        def plain(x):
            return x

        @function.Defun(dtypes.float32, noinline=True)
        def kept(x):
            return x + 1.0

        self.assertTrue(plain(1.0, noinline=True).op.get_attr("_noinline"))
        self.assertFalse(plain(1.0, noinline=False).op.get_attr("_noinline"))
        self.assertTrue(kept.definition.attr["_noinline"].b)
        self.assertTrue(plain(1.0, compiled=True).op.get_attr("_XlaCompile"))
        self.assertEqual(3, plain(1.0, experimental_tag=3).op.get_attr("experimental_tag"))
        self.assertEqual(b"x", plain(1.0, experimental_text="x").op.get_attr("experimental_text"))
        with self.assertRaises(ValueError):
            plain(1.0)
            plain(1.0).op.get_attr("_noinline")
        self.assertEqual(2.0, self.run_it(kept(1.0)))

    def test_shapes_by_a_function(self):
        @function.Defun(dtypes.float32, shape_func=lambda op: [op.inputs[0].get_shape()])
        def plus(x):
            return x + 1.0

        x = array_ops.placeholder(dtypes.float32, [10])
        self.assertEqual([10], plus(x).get_shape().as_list())

    def test_assertions_and_prints_run(self):
        @function.Defun(dtypes.float32)
        def checked(x):
            check = control_flow_ops.Assert(math_ops.greater(x, 0), [x])
            with ops.control_dependencies([check]):
                return logging_ops.Print(x * 2, [x], "at ")

        self.assertEqual(2.0, self.run_it(checked(1.0)))
        with self.assertRaises(errors_impl.InvalidArgumentError):
            self.run_it(checked(-1.0))

    def test_control_dependencies_on_arguments(self):
        @function.Defun(dtypes.float32)
        def two(x):
            with ops.control_dependencies([x]):
                return constant_op.constant(2.0)

        self.assertEqual(2.0, self.run_it(two(1.0)))

    def test_loops_and_branches(self):
        @function.Defun(dtypes.float32)
        def loop(x):
            return control_flow_ops.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2), [0, x])[1]

        @function.Defun(dtypes.float32)
        def branch(x):
            return control_flow_ops.cond(x > 0, lambda: x * 2, lambda: x * 3)

        self.assertEqual([12.0, 2.0, -3.0], self.run_it([loop(1.5), branch(1.0), branch(-1.0)]))


class Nested(_Graphs):
    def test_functions_call_functions(self):
        square = defun(dtypes.float32)(lambda x: x * x)

        @function.Defun(dtypes.float32)
        def plus(x):
            return square(x) + 1.0

        @function.Defun(dtypes.float32)
        def times(x):
            return plus(x) * square(x)

        x = constant_op.constant(3.0)
        self.assertEqual(90.0, self.run_it(times(x)))
        self.assertEqual([114.0], self.run_it(gradients_impl.gradients(times(x), x)))

    def test_functions_inside_functions(self):
        @function.Defun(dtypes.float32)
        def outer(x):
            @function.Defun(dtypes.float32)
            def inner(y):
                return y + 10.0

            return inner(inner(x))

        self.assertEqual(21.0, self.run_it(outer(1.0)))

    def test_a_library_has_all_of_them(self):
        inner = defun(dtypes.float32, func_name="Inner")(lambda x: x * x)
        outer = defun(dtypes.float32, func_name="Outer")(lambda x: inner(x) + 1.0)
        outer(1.0)
        library = self.graph.as_graph_def().library
        self.assertEqual(["Inner", "Outer"], sorted(each.signature.name for each in library.function))

    def test_imported_calls_run(self):
        inner = defun(dtypes.float32)(lambda x: x * x)
        outer = defun(dtypes.float32)(lambda x: inner(x) + 1.0)
        call = outer(3.0, name="call")
        graph_def = self.graph.as_graph_def()
        with ops.Graph().as_default() as graph, self.session(graph=graph) as session:
            (found,) = importer.import_graph_def(graph_def, return_elements=[call.name], name="again")
            self.assertEqual("again/call:0", found.name)
            self.assertEqual(10.0, session.run(found))


class Captures(_Graphs):
    def test_tensors_become_inputs(self):
        c, d = constant_op.constant(1.0), constant_op.constant(2.0)

        @function.Defun(dtypes.float32)
        def plus(y):
            w = c * y
            self.assertEqual([c], list(function.get_extra_inputs()))
            self.assertEqual(1, len(function.get_extra_args()))

            @function.Defun(dtypes.float32)
            def inner(z):
                return w + z + d

            return inner(y)

        self.assertEqual(8.0, self.run_it(plus(3.0)))
        self.assertEqual([c, d], list(plus.captured_inputs))
        self.assertEqual([], list(function.get_extra_inputs()))

    def test_gradients_of_captured_tensors(self):
        c = constant_op.constant(5.0)
        times = defun(dtypes.float32)(lambda x: x * c)
        x = constant_op.constant(3.0)
        self.assertEqual([5.0, 3.0], self.run_it(gradients_impl.gradients(times(x), [x, c])))

    def test_by_value(self):
        c = constant_op.constant(3.0)

        @function.Defun(capture_by_value=True)
        def six():
            return c * 2

        self.assertEqual(6.0, self.run_it(six()))
        self.assertEqual([], list(six.captured_inputs))
        p = array_ops.placeholder(dtypes.float32)
        with self.assertRaisesRegex(ValueError, "Cannot capture a placeholder"):
            defun(capture_by_value=True)(lambda: p * 2)()
        r = random_ops.random_normal([])
        with self.assertRaisesRegex(ValueError, "Cannot capture a stateful node"):
            defun(capture_by_value=True)(lambda: r * 2)()

    def test_resource_variables(self):
        v = variable_scope.get_variable("v", initializer=2.0, use_resource=True)
        times = defun(dtypes.float32)(lambda x: x * v)
        self.assertEqual(6.0, self.run_it(times(3.0)))

    def test_variables_made_inside(self):
        kind = [False]
        for use_resource in (False, True):
            kind[0] = use_resource

            @function.Defun(dtypes.float32)
            def times(x):
                w = variable_scope.get_variable(
                    "w", (3,), initializer=init_ops.ones_initializer(), use_resource=kind[0]
                )
                self.assertEqual(1, len(function.get_extra_vars()))
                return x * w

            with variable_scope.variable_scope(f"scope{use_resource}"):
                y = times(2.0)
            self.assertEqual(f"scope{use_resource}/w:0", variables.global_variables()[-1].name)
            self.assertAllEqual([2.0] * 3, self.run_it(y))


class Gradients(_Graphs):
    def test_of_the_body(self):
        tanh = defun(dtypes.float32)(lambda x: math_ops.reduce_sum(math_ops.tanh(x)))
        x = array_ops.placeholder(dtypes.float32)
        values = np.array([-1, 1, 2, -2], np.float32)
        found = self.run_it(gradients_impl.gradients([tanh(x)], [x]), {x: values})
        self.assertAllClose(1 - np.square(np.tanh(values)), found[0])

    def test_by_a_function_of_the_library(self):
        @function.Defun(dtypes.float32, dtypes.float32, dtypes.float32)
        def loss_grad(logits, labels, dloss):
            return (
                array_ops.reshape(dloss, [-1, 1]) * (nn_ops.softmax(logits) - labels) * 3,
                array_ops.zeros_like(labels),
            )

        @function.Defun(dtypes.float32, dtypes.float32, grad_func=loss_grad)
        def loss(logits, labels):
            return -math_ops.reduce_sum(labels * math_ops.log(nn_ops.softmax(logits)), 1)

        logits, labels = constant_op.constant([[1.0, 2.0]]), constant_op.constant([[0.0, 1.0]])
        grads = gradients_impl.gradients(loss(logits, labels), [logits, labels])
        share = np.exp(1) / (np.exp(1) + np.exp(2))
        found = self.run_it(grads)
        self.assertAllClose([[3 * share, -3 * share]], found[0])
        self.assertAllClose([[0.0, 0.0]], found[1])

    def test_by_a_python_function(self):
        def grad(op, dy):
            return [dy * 5.0]

        identity = defun(dtypes.float32, python_grad_func=grad)(lambda x: x)
        x = constant_op.constant(1.0)
        self.assertEqual([5.0], self.run_it(gradients_impl.gradients(identity(x), x)))
        self.assertIs(grad, identity.python_grad_func)

    def test_symbolic(self):
        @function.Defun(dtypes.float32, func_name="SquarePlusOne")
        def square_plus_one(x):
            return x * x + 1.0

        square_plus_one.add_to_graph(self.graph)

        @function.Defun(dtypes.float32, dtypes.float32)
        def grad(x, dy):
            return functional_ops.symbolic_gradient([x, dy], [dtypes.float32], "SquarePlusOne", name="dx")[0]

        self.assertAllClose([0.4], self.run_it(grad([2.0], [0.1])))
        x = array_ops.placeholder(dtypes.float32, [5])
        dy = array_ops.placeholder(dtypes.float32)
        (dx,) = functional_ops.symbolic_gradient([x, dy], [dtypes.float32], square_plus_one)
        self.assertEqual([5], dx.get_shape().as_list())


class Definitions(_Graphs):
    def test_names(self):
        @function.Defun(dtypes.float32)
        def square(x):
            return x * x

        self.assertRegex(square.name, "^square_[0-9A-Za-z]{11}$")
        same = square.name
        with ops.Graph().as_default():
            self.assertEqual(same, square.name)
        self.assertIsNone(square.grad_func_name)
        self.assertIsNone(square.python_grad_func)
        self.assertEqual([dtypes.float32], list(square.declared_input_types))
        self.assertEqual("Mine", defun(dtypes.float32, func_name="Mine")(lambda x: x).name)

    def test_equal_bodies_have_one_definition(self):
        def make():
            def square(x):
                return x * x

            return function.Defun(dtypes.float32)(square)

        first, second = make(), make()
        self.assertEqual(9.0, self.run_it(first(3.0)))
        self.assertEqual(9.0, self.run_it(second(3.0)))
        self.assertEqual(first.name, second.name)
        self.assertEqual(1, len(self.graph.as_graph_def().library.function))

    def test_docstrings(self):
        @function.Defun(dtypes.float32)
        def square(x):
            """The square."""
            return x * x

        self.assertEqual("The square.", square.definition.signature.description)
        self.assertEqual(["x"], [each.name for each in square.definition.signature.input_arg])

    def test_nodes_with_state(self):
        @function.Defun(dtypes.float32)
        def noisy(x):
            return x + random_ops.random_normal([])

        noisy(1.0)
        self.assertEqual(["RandomStandardNormal"], [kind for _, kind in noisy.stateful_ops])
        self.assertTrue(noisy.definition.signature.is_stateful)
        pure = defun(dtypes.float32)(lambda x: x)
        pure(1.0)
        self.assertEqual([], list(pure.stateful_ops))

    def test_from_a_definition(self):
        square = defun(dtypes.float32, func_name="SquareOf")(lambda x: x * x)
        copied = function_pb2.FunctionDef.FromString(square.definition.SerializeToString())
        again = function._from_definition(copied)
        self.assertEqual("SquareOf", again.name)
        self.assertEqual(copied, again.definition)
        self.assertEqual([dtypes.float32], list(again.declared_input_types))
        self.assertEqual([], list(again.captured_inputs))
        with ops.Graph().as_default() as graph, self.session(graph=graph) as session:
            self.assertEqual(9.0, session.run(again(3.0)))

    def test_from_a_library(self):
        grad = defun(dtypes.float32, dtypes.float32, func_name="Grad")(lambda x, dy: x * dy * 7)
        square = defun(dtypes.float32, func_name="SquareOf")(lambda x: x * x)
        library = function_pb2.FunctionDefLibrary()
        library.function.extend([square.definition, grad.definition])
        library.gradient.add(function_name="SquareOf", gradient_func="Grad")
        found = {each.name: each for each in function.from_library(library)}
        self.assertEqual({"SquareOf", "Grad"}, set(found))
        self.assertEqual("Grad", found["SquareOf"].grad_func_name)
        self.assertIsNone(found["Grad"].grad_func_name)
        with ops.Graph().as_default() as graph, self.session(graph=graph) as session:
            x = constant_op.constant(3.0)
            y = found["SquareOf"](x)
            self.assertEqual([9.0, 21.0], session.run([y, gradients_impl.gradients(y, x)[0]]))

    def test_libraries_that_are_not_whole(self):
        grad = defun(dtypes.float32, dtypes.float32, func_name="Grad")(lambda x, dy: x * dy)
        library = function_pb2.FunctionDefLibrary()
        library.function.extend([grad.definition])
        library.gradient.add(function_name="SquareOf", gradient_func="Grad")
        with self.assertRaisesRegex(ValueError, "FunctionDefLibrary missing 'SquareOf' FunctionDef"):
            function.from_library(library)
        library = function_pb2.FunctionDefLibrary()
        library.function.extend([grad.definition])
        library.gradient.add(function_name="Grad", gradient_func="SquareOf")
        with self.assertRaisesRegex(ValueError, "FunctionDefLibrary missing 'SquareOf' FunctionDef"):
            function.from_library(library)
        library = function_pb2.FunctionDefLibrary()
        library.function.extend([grad.definition])
        library.gradient.add(function_name="Grad", gradient_func="Grad")
        with self.assertRaisesRegex(ValueError, "cyclic"):
            function.from_library(library)
        self.assertEqual([], list(function.from_library(function_pb2.FunctionDefLibrary())))


class Overloads(_Graphs):
    def test_by_the_types_of_arguments(self):
        @function.Defun()
        def square(x):
            """The square."""
            return x * x

        a, b = square(constant_op.constant(3.0)), square(constant_op.constant(4, dtypes.int64))
        self.assertEqual([9.0, 16], self.run_it([a, b]))
        self.assertEqual([dtypes.float32, dtypes.int64], [a.dtype, b.dtype])
        library = self.graph.as_graph_def().library
        self.assertEqual(2, len(library.function))
        self.assertEqual(["The square."] * 2, [each.signature.description for each in library.function])
        self.assertEqual(square.instantiate([dtypes.float32]).name, square.instantiate([dtypes.float32]).name)

    def test_names(self):
        square = defun(func_name="SquareOf")(lambda x: x * x)
        square(constant_op.constant(3.0))
        square(constant_op.constant(3, dtypes.int32))
        library = self.graph.as_graph_def().library
        self.assertEqual(["SquareOf_f32", "SquareOf_i32"], sorted(each.signature.name for each in library.function))
        self.assertEqual("SquareOf_f64", square.instantiate([dtypes.float64]).name)

    def test_gradients(self):
        grad = defun(func_name="Grad")(lambda x, dy: x * dy * 11)
        square = defun(grad_func=grad)(lambda x: x * x)
        x = constant_op.constant(2.0)
        self.assertEqual([22.0], self.run_it(gradients_impl.gradients(square(x), x)))

    def test_texts_of_types(self):
        self.assertEqual("f32i64", function._type_list_to_str([dtypes.float32, dtypes.int64]))
        with self.assertRaisesRegex(ValueError, "Unsupported dtypes"):
            function._type_list_to_str([dtypes.resource])

    def test_attributes_from_keywords(self):
        made = function._parse_kwargs_as_attrs("f", noinline=True)
        self.assertTrue(made["_noinline"].b)
        self.assertTrue(made["_disable_call_shape_inference"].b)
        with self.assertRaisesRegex(ValueError, "Unknown keyword arguments"):
            function._parse_kwargs_as_attrs("f", other=1)
        with self.assertRaisesRegex(ValueError, "must be str"):
            function._parse_kwargs_as_attrs("f", _implements=1)
