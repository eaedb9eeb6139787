"""Nodes by the names of ops: conversions, inferred attributes, and errors."""

from tensorflow.core.framework import attr_value_pb2, tensor_shape_pb2
from tensorflow.python.framework import dtypes, op_def_library, ops, tensor_shape, test_ops, test_util
from tensorflow.python.platform import googletest


def apply_op(op_type, **keywords):
    return op_def_library.apply_op(op_type, **keywords)


class Arguments(test_util.TensorFlowTestCase):
    def setUp(self):
        super().setUp()
        self.graph = ops.Graph()
        self.default = self.graph.as_default()
        self.default.__enter__()

    def tearDown(self):
        self.default.__exit__(None, None, None)
        super().tearDown()

    def tensor(self, dtype, name=None):
        return apply_op("OutT", T=dtype, name=name)

    def assert_node(self, op, text):
        node = op.node_def
        for key in list(node.attr):
            if key.startswith("_"):
                del node.attr[key]
        self.assertProtoEquals(text, node)

    def refused(self, kind, words, op_type, **keywords):
        with self.assertRaises(kind) as caught:
            apply_op(op_type, **keywords)
        for each in words:
            self.assertIn(each, str(caught.exception))

    def test_unknown_op(self):
        self.refused(RuntimeError, ["Unrecognized Op name unknown"], "unknown")

    def test_simple(self):
        out = apply_op("Simple", a=3)
        self.assertEqual(dtypes.float32, out.dtype)
        self.assert_node(out.op, "name: 'Simple' op: 'Simple' input: 'Simple/a'")

    def test_simple_named(self):
        out = apply_op("Simple", a=4, name="xy")
        self.assertEqual("xy", out.op.name)

    def test_attr_int(self):
        op = apply_op("Attr", a=12, name="t")
        self.assert_node(op, "name: 't' op: 'Attr' attr { key: 'a' value { i: 12 } }")
        op = apply_op("Attr", a=tensor_shape.Dimension(13), name="u")
        self.assert_node(op, "name: 'u' op: 'Attr' attr { key: 'a' value { i: 13 } }")

    def test_attr_int_refused(self):
        self.refused(TypeError, ["Expected int for argument 'a' not 'bad'"], "Attr", a="bad")
        self.refused(TypeError, ["Expected int for argument 'a' not [12]"], "Attr", a=[12])
        self.refused(TypeError, ["Expected int for argument 'a' not None"], "Attr", a=None)
        self.refused(TypeError, ["No argument", "a"], "Attr")

    def test_attr_float(self):
        op = apply_op("AttrFloat", a=1.25, name="t")
        self.assert_node(op, "name: 't' op: 'AttrFloat' attr { key: 'a' value { f: 1.25 } }")
        op = apply_op("AttrFloat", a=12, name="u")
        self.assert_node(op, "name: 'u' op: 'AttrFloat' attr { key: 'a' value { f: 12 } }")
        self.refused(TypeError, ["Expected float for argument 'a' not 'bad'"], "AttrFloat", a="bad")

    def test_attr_bool(self):
        op = apply_op("AttrBool", a=True, name="t")
        self.assert_node(op, "name: 't' op: 'AttrBool' attr { key: 'a' value { b: true } }")
        for bad in (0, 1, []):
            self.refused(TypeError, [f"Expected bool for argument 'a' not {bad!r}"], "AttrBool", a=bad)

    def test_attr_bool_list(self):
        op = apply_op("AttrBoolList", a=[True, False, True], name="t")
        self.assert_node(
            op, "name: 't' op: 'AttrBoolList' attr { key: 'a' value { list { b: true b: false b: true } } }"
        )
        op = apply_op("AttrBoolList", a=[], name="u")
        self.assert_node(op, "name: 'u' op: 'AttrBoolList' attr { key: 'a' value { list { } } }")
        self.refused(TypeError, ["Expected bool for argument 'a' not "], "AttrBoolList", a=[0])

    def test_attr_minimum(self):
        op = apply_op("AttrMin", a=12, name="s")
        self.assertEqual(12, op.get_attr("a"))
        self.refused(ValueError, ["Attr 'a' of 'AttrMin' Op passed 2 less than minimum 5."], "AttrMin", a=2)

    def test_attr_list_minimum(self):
        op = apply_op("AttrListMin", a=[1, 2], name="r")
        self.assertEqual([1, 2], list(op.get_attr("a")))
        self.refused(ValueError, ["Attr 'a' of 'AttrListMin' Op passed list of length 1 less than minimum 2."],
                     "AttrListMin", a=[17])

    def test_attr_enum(self):
        op = apply_op("AttrEnum", a="oranges", name="e")
        self.assert_node(op, "name: 'e' op: 'AttrEnum' attr { key: 'a' value { s: 'oranges' } }")
        self.refused(ValueError, ["Attr 'a' of 'AttrEnum' Op passed string 'invalid' not in: ",
                                  '"apples", "oranges"'], "AttrEnum", a="invalid")

    def test_attr_enum_list(self):
        op = apply_op("AttrEnumList", a=["oranges", "apples"], name="f")
        self.assertEqual([b"oranges", b"apples"], list(op.get_attr("a")))
        self.refused(ValueError, ["Attr 'a' of 'AttrEnumList' Op passed string 'bad' not in: "], "AttrEnumList", a=["apples", "bad"])

    def test_attr_shape(self):
        op = apply_op("AttrShape", a=[5], name="s1")
        self.assert_node(op, "name: 's1' op: 'AttrShape' attr { key: 'a' value { shape { dim { size: 5 } } } }")
        op = apply_op("AttrShape", a=(4, 3, 2), name="s2")
        self.assertEqual([4, 3, 2], op.get_attr("a") and tensor_shape.TensorShape(op.get_attr("a")).as_list())
        op = apply_op("AttrShape", a=tensor_shape.TensorShape([3, 2]), name="s3")
        self.assertEqual([3, 2], tensor_shape.TensorShape(op.get_attr("a")).as_list())
        op = apply_op("AttrShape", a=[], name="s4")
        self.assert_node(op, "name: 's4' op: 'AttrShape' attr { key: 'a' value { shape { } } }")
        shape = tensor_shape_pb2.TensorShapeProto()
        shape.dim.add().size = 6
        op = apply_op("AttrShape", a=shape, name="s5")
        self.assertEqual([6], tensor_shape.TensorShape(op.get_attr("a")).as_list())

    def test_attr_partial_shape(self):
        op = apply_op("AttrPartialShape", a=(4, None, 2), name="s")
        self.assert_node(op, """name: 's' op: 'AttrPartialShape'
            attr { key: 'a' value { shape { dim { size: 4 } dim { size: -1 } dim { size: 2 } } } }""")
        op = apply_op("AttrPartialShape", a=None, name="t")
        self.assert_node(op, "name: 't' op: 'AttrPartialShape' attr { key: 'a' value { shape { unknown_rank: true } } }")

    def test_attr_shape_list(self):
        op = apply_op("AttrShapeList", a=[[3, 2], [6, 5, 4]], name="sl")
        self.assertEqual([[3, 2], [6, 5, 4]], [tensor_shape.TensorShape(e).as_list() for e in op.get_attr("a")])
        op = apply_op("AttrShapeList", a=[], name="el")
        self.assertEqual([], list(op.get_attr("a")))

    def test_wrong_types_of_inputs(self):
        self.refused(TypeError, ["Expected int32 passed to parameter 'a' of op 'Simple', got 'Bad string' of type "
                                 "'str' instead."], "Simple", a="Bad string")
        self.refused(TypeError, ["Input 'a' of 'Simple' Op has type string that does not match expected type of int32."],
                     "Simple", a=self.tensor(dtypes.string))
        self.refused(TypeError, ["keyword argument"], "Simple", a=6, extra="bogus")

    def test_extra_names_are_reported(self):
        self.refused(TypeError, ["Simple", "keyword arguments: extra1, extra2"], "Simple", a=5, extra1=1, extra2=2)

    def test_missing_input(self):
        with self.assertRaises(TypeError):
            apply_op("Simple")
        with self.assertRaises(TypeError):
            apply_op("Simple", wrong=7)

    def test_type_attribute_from_inputs(self):
        op = apply_op("Polymorphic", a=self.tensor(dtypes.bool), name="p").op
        self.assertEqual(dtypes.bool, op.get_attr("T"))
        out = apply_op("Polymorphic", a=7)
        self.assertEqual(dtypes.int32, out.dtype)
        out = apply_op("Polymorphic", a="s")
        self.assertEqual(dtypes.string, out.dtype)
        self.refused(TypeError, ["Should not specify value for inferred attr 'T'"], "Polymorphic", a="s", T=dtypes.string)

    def test_type_attribute_of_outputs(self):
        self.assertEqual(dtypes.int32, apply_op("PolymorphicOut", T=dtypes.int32).dtype)
        self.assertEqual(dtypes.bool, apply_op("PolymorphicOut", T="bool").dtype)
        self.refused(TypeError, ["No argument", "T"], "PolymorphicOut")
        self.refused(TypeError, ["Expected DataType for argument 'T' not None"], "PolymorphicOut", T=None)
        self.assertEqual(dtypes.string, apply_op("PolymorphicDefaultOut").dtype)

    def test_same_type_of_two_inputs(self):
        out = apply_op("Binary", a=8, b=9)
        self.assertEqual(dtypes.int32, out.dtype)
        out = apply_op("Binary", a="left", b="right")
        self.assertEqual(dtypes.string, out.dtype)
        self.refused(TypeError, ["Input 'b' of 'Binary' Op has type string that does not match type int32 of argument 'a'."],
                     "Binary", a=self.tensor(dtypes.int32), b=self.tensor(dtypes.string))
        self.refused(TypeError, ["Expected int32 passed to parameter 'b' of op 'Binary', got 'left' of type 'str' instead."],
                     "Binary", a=self.tensor(dtypes.int32), b="left")

    def test_restricted_types(self):
        self.assertEqual(dtypes.bool, apply_op("Restrict", a=self.tensor(dtypes.bool)).dtype)
        self.refused(TypeError, ["Value passed to parameter 'a' has DataType int32 not in list of allowed values: string, bool"],
                     "Restrict", a=17)

    def test_type_list(self):
        op = apply_op("TypeList", a=["z"], name="z")
        self.assertEqual([dtypes.string], list(op.get_attr("T")))
        op = apply_op("TypeList", a=[True, 12], name="y")
        self.assertEqual([dtypes.bool, dtypes.int32], list(op.get_attr("T")))
        op = apply_op("TypeList", a=[], name="empty")
        self.assertEqual([], list(op.get_attr("T")))
        self.refused(TypeError, ["Expected list for 'a' argument to 'TypeList' Op, not "], "TypeList", a=self.tensor(dtypes.int32))

    def test_type_list_twice(self):
        op = apply_op("TypeListTwice", a=["z", True], b=["y", False], name="z")
        self.assertEqual([dtypes.string, dtypes.bool], list(op.get_attr("T")))
        self.refused(TypeError, ["Input 'b' of 'TypeListTwice' Op has type list of string, int32 that does not match type "
                                 "list string, bool of argument 'a'."], "TypeListTwice", a=["z", True], b=["y", 6])

    def test_out_type_list(self):
        out, = apply_op("OutTypeList", T=[dtypes.float32])
        self.assertEqual(dtypes.float32, out.dtype)
        first, second = apply_op("OutTypeList", T=[dtypes.int32, dtypes.bool])
        self.assertEqual([dtypes.int32, dtypes.bool], [first.dtype, second.dtype])
        self.assertEqual([], list(apply_op("OutTypeList", T=[])) if not isinstance(apply_op("OutTypeList", T=[]), ops.Operation) else [])
        self.refused(TypeError, ["Expected list for attr T"], "OutTypeList", T=dtypes.int32)

    def test_numbers_of_inputs(self):
        op = apply_op("NIntsIn", a=[1, 2], name="n")
        self.assertEqual(2, op.get_attr("N"))
        op = apply_op("NIntsIn", a=[5, 4, 3, 2, 1], name="o")
        self.assertEqual(5, op.get_attr("N"))
        self.refused(ValueError, ["List argument 'a' to 'NIntsIn' Op with length 1 shorter than minimum length 2."],
                     "NIntsIn", a=[99])
        self.refused(TypeError, ["Expected list for 'a' argument to 'NIntsIn' Op, not "], "NIntsIn", a=self.tensor(dtypes.int32))

    def test_wrong_members(self):
        self.refused(TypeError, ["Tensors in list passed to 'a' of 'NIntsIn' Op have types [int32, string] that do not "
                                 "match expected type int32."], "NIntsIn",
                     a=[self.tensor(dtypes.int32), self.tensor(dtypes.string)])

    def test_polymorphic_list(self):
        op = apply_op("NPolymorphicIn", a=[1, 2], name="n")
        self.assertEqual((dtypes.int32, 2), (op.get_attr("T"), op.get_attr("N")))
        op = apply_op("NPolymorphicIn", a=[1, self.tensor(dtypes.float32)], name="q")
        self.assertEqual(dtypes.float32, op.get_attr("T"))
        self.refused(ValueError, ["with length 1 shorter than minimum length 2"], "NPolymorphicIn", a=[99])
        self.refused(TypeError, ["Tensors in list passed to 'a' of 'NPolymorphicIn' Op have types [int32, string] that "
                                 "don't all match."], "NPolymorphicIn",
                     a=[self.tensor(dtypes.int32), self.tensor(dtypes.string)])

    def test_numbers_of_outputs(self):
        three = apply_op("NIntsOut", N=3)
        self.assertEqual(3, len(three))
        self.refused(ValueError, ["Attr 'N' of 'NIntsOut' Op passed 1 less than minimum 2."], "NIntsOut", N=1)
        self.refused(TypeError, ["Expected int for argument 'N' not [3]"], "NIntsOut", N=[3])
        outs = apply_op("NPolymorphicOut", N=2, T=dtypes.string)
        self.assertEqual([dtypes.string] * 2, [each.dtype for each in outs])

    def test_references(self):
        ref = apply_op("RefOut", T=dtypes.bool, name="i")
        self.assertEqual(dtypes.bool_ref, ref.dtype)
        op = apply_op("RefIn", a=ref, name="r")
        self.assertEqual(dtypes.bool, op.get_attr("T"))
        self.refused(TypeError, ["'RefIn' Op requires that input 'a' be a mutable tensor (e.g.: a tf.Variable)"], "RefIn", a=2)

    def test_structures(self):
        result = apply_op("MixedStruct", n_a=2)
        self.assertEqual(2, len(result))
        self.assertEqual(2, len(result[0]))
        result = apply_op("SimpleStruct", n_a=3)
        self.assertEqual(3, len(result))
        result = apply_op("ComplexStruct", n_a=1, n_b=2, t_c=[dtypes.bool])
        self.assertEqual((1, 2, 1), tuple(map(len, result)))

    def test_functions_as_attributes(self):
        value = attr_value_pb2.NameAttrList(name="MyFunction")
        op = apply_op("FuncAttr", f=value, name="t")
        self.assertEqual("MyFunction", op.get_attr("f").name)
        self.refused(TypeError, ["Don't know how to convert 1.3 to a func for argument f"], "FuncAttr", f=1.3)

    def test_reserved_words(self):
        self.assertEqual("x", apply_op("ReservedInput", input=7, name="x").name)
        op = apply_op("ReservedAttr", range=7, name="y")
        self.assertEqual(7, op.get_attr("range"))

    def test_functions_of_single_ops(self):
        self.assertEqual("IntOutput", test_ops.int_output().op.type)
        op = test_ops.two_int_inputs(1, 2, name="two")
        self.assertEqual(["two/a", "two/b"], [each.op.name for each in op.inputs])
        self.assertEqual(2, len(test_ops.two_float_outputs()))
        both = test_ops.int_output_float_output()
        self.assertEqual(("a", "b"), both._fields)


class Graphs(test_util.TensorFlowTestCase):
    def test_all_inputs_from_one_graph(self):
        one, other = ops.Graph(), ops.Graph()
        with one.as_default():
            a = apply_op("Simple", a=3)
            op = apply_op("CopyOp", a=a)
            self.assertIs(one, op.graph)
        with other.as_default():
            b = apply_op("Simple", a=3)
            with self.assertRaisesRegex(ValueError, "must be from the same graph|not from the"):
                apply_op("Binary", a=a, b=b)

    def test_graph_of_the_inputs(self):
        one, other = ops.Graph(), ops.Graph()
        with one.as_default():
            a = apply_op("Simple", a=3)
        with other.as_default():
            out = apply_op("CopyOp", a=a)
        self.assertIs(one, out.graph)


if __name__ == "__main__":
    googletest.main()
