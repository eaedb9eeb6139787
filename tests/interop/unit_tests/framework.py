"""Values of the framework: dtypes, shapes, tensors as messages, errors, devices, names of functions, kernels."""

import pickle
import warnings

import numpy as np
import tensorflow as tf
from absl.testing import parameterized
from google.protobuf import text_format
from tensorflow.core.framework import attr_value_pb2, graph_pb2, tensor_shape_pb2, types_pb2
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session
from tensorflow.python.framework import (
    c_api_util,  # noqa: F401
    common_shapes,
    constant_op,
    device_spec,
    dtypes,
    errors,
    errors_impl,
    function,
    graph_util,
    importer,
    indexed_slices,
    meta_graph,
    ops,
    random_seed,
    smart_cond,
    sparse_tensor,
    tensor_shape,
    tensor_spec,
    tensor_util,
    test_ops,  # noqa: F401
    test_util,
)
from tensorflow.python.framework import device as pydev
from tensorflow.python.ops import (
    array_ops,
    control_flow_ops,  # noqa: F401
    gen_array_ops,
    gen_state_ops,
    math_ops,
    random_ops,
    resource_variable_ops,  # noqa: F401
    state_ops,  # noqa: F401
    variable_scope,
    variables,
)
from tensorflow.python.platform import test
from tensorflow.python.util import compat


class DataTypes(test_util.TensorFlowTestCase):
    def test_all_types_constructible(self):
        for value in types_pb2.DataType.values():
            if value in (types_pb2.DT_INVALID, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39) or value > 100:
                continue
            self.assertEqual(value, dtypes.DType(value).as_datatype_enum)

    def test_all_types_convertible_to_numpy(self):
        for dtype in (dtypes.float32, dtypes.int8, dtypes.bool, dtypes.complex64, dtypes.string, dtypes.bfloat16):
            self.assertIsNotNone(dtype.as_numpy_dtype)
            if dtype != dtypes.bfloat16:
                self.assertEqual(dtypes.as_dtype(dtype.as_numpy_dtype), dtype)

    def test_as_dtype_of_many(self):
        for given, dtype in [
            (np.float16, dtypes.float16), ("float", dtypes.float32), (np.dtype("int64"), dtypes.int64),
            ("string", dtypes.string), (np.str_, dtypes.string), (types_pb2.DT_QINT8, dtypes.qint8),
            (dtypes.int16, dtypes.int16), ("half", dtypes.half), (bool, dtypes.bool), ("double_ref", dtypes.float64_ref),
        ]:  # fmt: skip
            self.assertIs(dtype, dtypes.as_dtype(given))

    def test_string_conversion(self):
        self.assertEqual("float32", dtypes.float32.name)
        self.assertEqual("<dtype: 'float32'>", str(dtypes.float32))
        self.assertEqual("tf.float32", repr(dtypes.float32))
        self.assertEqual("int32_ref", dtypes.int32_ref.name)
        self.assertEqual(dtypes.int32, dtypes.int32_ref.base_dtype)

    def test_invalid(self):
        with self.assertRaises(TypeError):
            dtypes.DType(types_pb2.DT_INVALID)
        with self.assertRaisesRegex(TypeError, "Cannot convert .* to a TensorFlow DType|not.*converted|convert"):
            dtypes.as_dtype("no such")
        with self.assertRaises(TypeError):
            dtypes.as_dtype(None)

    def test_kinds(self):
        self.assertTrue(dtypes.uint8.is_integer and dtypes.uint8.is_unsigned)
        self.assertTrue(dtypes.complex128.is_complex and not dtypes.complex128.is_floating)
        self.assertTrue(dtypes.qint32.is_quantized and not dtypes.qint32.is_integer)
        self.assertFalse(dtypes.string.is_numpy_compatible and dtypes.resource.is_numpy_compatible)
        self.assertTrue(dtypes.float16.is_floating)
        self.assertFalse(dtypes.bool.is_integer or dtypes.bool.is_unsigned)

    def test_real(self):
        self.assertEqual(dtypes.complex64.real_dtype, dtypes.float32)
        self.assertEqual(dtypes.complex128.real_dtype, dtypes.float64)
        self.assertEqual(dtypes.int32.real_dtype, dtypes.int32)

    def test_limits(self):
        self.assertEqual(dtypes.int8.min, -128)
        self.assertEqual(dtypes.uint16.max, 65535)
        self.assertEqual(dtypes.float32.max, np.finfo(np.float32).max)
        self.assertEqual(dtypes.bool.limits, (False, True))
        for dtype in (dtypes.string, dtypes.complex64):
            with self.assertRaisesRegex(TypeError, "Cannot find maximum"):
                _ = dtype.max
            with self.assertRaisesRegex(TypeError, "Cannot find minimum"):
                _ = dtype.min

    def test_size_and_enum(self):
        self.assertEqual(4, dtypes.float32.size)
        self.assertEqual(16, dtypes.complex128.size)
        self.assertEqual(types_pb2.DT_FLOAT_REF, dtypes.float32_ref.as_datatype_enum)

    def test_comparisons(self):
        self.assertTrue(dtypes.float32.is_compatible_with(dtypes.float32_ref))
        self.assertFalse(dtypes.float32.is_compatible_with(dtypes.int32))
        self.assertNotEqual(dtypes.int32, int)
        self.assertEqual(dtypes.int32, "int32")
        self.assertEqual(dtypes.int32, np.int32)
        self.assertNotEqual(dtypes.int32, dtypes.int32_ref)
        self.assertEqual(2, len({dtypes.int32, dtypes.int64, dtypes.int32}))

    def test_pickle(self):
        for dtype in (dtypes.float32, dtypes.string, dtypes.int32_ref, dtypes.bfloat16):
            self.assertEqual(dtype, pickle.loads(pickle.dumps(dtype)))


class Dimensions(test_util.TensorFlowTestCase):
    def test_known(self):
        dim = tensor_shape.Dimension(12)
        self.assertEqual(12, dim.value)
        self.assertEqual(12, int(dim))
        self.assertEqual(dim, tensor_shape.Dimension(12))
        self.assertEqual(tensor_shape.Dimension(15), dim + tensor_shape.Dimension(3))
        self.assertEqual(tensor_shape.Dimension(15), 3 + dim)
        self.assertEqual(tensor_shape.Dimension(9), dim - 3)
        self.assertEqual(tensor_shape.Dimension(1), 13 - dim)
        self.assertEqual(tensor_shape.Dimension(24), dim * 2)
        self.assertEqual(tensor_shape.Dimension(24), 2 * dim)
        self.assertEqual(tensor_shape.Dimension(6), dim // 2)
        self.assertEqual(tensor_shape.Dimension(1), 13 // dim)
        self.assertEqual(tensor_shape.Dimension(2), dim % 5)
        self.assertEqual(tensor_shape.Dimension(1), 13 % dim)
        self.assertEqual(dim, dim.merge_with(tensor_shape.Dimension(None)))
        self.assertTrue(dim.is_compatible_with(tensor_shape.Dimension(None)))
        self.assertFalse(dim.is_compatible_with(13))
        with self.assertRaisesRegex(ValueError, "Dimensions 12 and 3 are not compatible"):
            dim.merge_with(tensor_shape.Dimension(3))
        self.assertEqual("12", str(dim))
        self.assertEqual("Dimension(12)", repr(dim))

    def test_unknown(self):
        dim, twelve = tensor_shape.Dimension(None), tensor_shape.Dimension(12)
        self.assertIsNone(dim.value)
        self.assertIsNone((dim + twelve).value)
        self.assertIsNone((twelve * dim).value)
        self.assertIsNone((dim // dim).value)
        self.assertIsNone(dim < twelve)
        self.assertIsNone(twelve >= dim)
        self.assertIsNone(dim == twelve)
        self.assertIsNone(dim != tensor_shape.Dimension(None))
        self.assertEqual("?", str(dim))
        self.assertEqual("Dimension(None)", repr(dim))

    def test_comparisons(self):
        six, twelve = tensor_shape.Dimension(6), tensor_shape.Dimension(12)
        self.assertTrue(six < twelve <= twelve)
        self.assertTrue(twelve > six >= six)
        self.assertFalse(six > twelve)

    def test_wrong(self):
        with self.assertRaisesRegex(ValueError, "Dimension -1 must be >= 0"):
            tensor_shape.Dimension(-1)
        for wrong in ("a", [], 2.5):
            with self.assertRaises((TypeError, ValueError)):
                tensor_shape.Dimension(wrong)
        with self.assertRaisesRegex(TypeError, "unsupported operand|Dimension value must be|int"):
            tensor_shape.Dimension(3) + "a"

    def test_repeated_merge(self):
        dim = tensor_shape.Dimension(tensor_shape.Dimension(5))
        self.assertEqual(5, dim.value)
        self.assertEqual(dim, tensor_shape.as_dimension(5))
        self.assertIs(dim, tensor_shape.as_dimension(dim))
        self.assertEqual(5, tensor_shape.dimension_value(dim))


class Shapes(test_util.TensorFlowTestCase, parameterized.TestCase):
    def test_unknown(self):
        shape = tensor_shape.TensorShape(None)
        with self.assertRaises(ValueError):
            shape.assert_is_fully_defined()
        self.assertIsNone(shape.ndims)
        with self.assertRaisesRegex(ValueError, "Cannot take the length of (S|s)hape with unknown rank"):
            len(shape)
        self.assertFalse(shape)
        self.assertIsNone(shape.dims)
        with self.assertRaisesRegex(ValueError, "as_list\\(\\) is not defined on an unknown TensorShape"):
            shape.as_list()
        self.assertEqual("<unknown>", str(shape))
        self.assertEqual("TensorShape(None)", repr(shape))

    def test_fully_defined(self):
        shape = tensor_shape.TensorShape([tensor_shape.Dimension(3), 4, 7])
        shape.assert_is_fully_defined()
        self.assertEqual(3, shape.ndims)
        self.assertEqual([3, 4, 7], shape.as_list())
        self.assertEqual(84, shape.num_elements())
        self.assertTrue(shape.is_compatible_with([None, 4, 7]))
        self.assertFalse(shape.is_compatible_with([3, 4]))
        with self.assertRaisesRegex(ValueError, "Shapes .* are incompatible"):
            shape.assert_is_compatible_with([3, 5, 7])
        with self.assertRaisesRegex(ValueError, "Shape .* must have rank 2"):
            shape.assert_has_rank(2)
        with self.assertRaisesRegex(ValueError, "must have rank at least 4"):
            shape.with_rank_at_least(4)
        with self.assertRaisesRegex(ValueError, "must have rank at most 2"):
            shape.with_rank_at_most(2)
        self.assertEqual("(3, 4, 7)", str(shape))
        self.assertIn(7, list(shape))

    def test_merges(self):
        partial = tensor_shape.TensorShape([None, 4, None])
        self.assertEqual([3, 4, 7], partial.merge_with([3, None, 7]).as_list())
        self.assertEqual([None, 4, None], partial.merge_with(None).as_list())
        with self.assertRaisesRegex(ValueError, "are not compatible"):
            partial.merge_with([1, 5, 2])
        self.assertEqual([1, 2, None, 4, None], tensor_shape.TensorShape([1, 2]).concatenate(partial).as_list())
        self.assertIsNone(partial.concatenate(None).ndims)
        self.assertIsNone(partial.num_elements())

    def test_slices(self):
        known, unknown = tensor_shape.TensorShape([0, 1, 2, 3, 4]), tensor_shape.TensorShape(None)
        self.assertEqual([2, 3, 4], known[2:].as_list())
        self.assertEqual([0, 2, 4], known[::2].as_list())
        self.assertEqual([3, 4], known[-2:].as_list())
        self.assertEqual([None, None], unknown[:2].as_list())
        self.assertIsNone(unknown[2:].ndims)
        self.assertIsNone(unknown[:-1].ndims)
        with self.assertRaisesRegex(ValueError, "Steps are not yet handled"):
            unknown[::2]

    def test_equality(self):
        one, two = tensor_shape.TensorShape([1, None]), tensor_shape.TensorShape([1, None])
        self.assertEqual(tensor_shape.TensorShape([1, 2]), [1, 2])
        self.assertEqual(tensor_shape.TensorShape([1, 2]), (1, 2))
        self.assertNotEqual(tensor_shape.TensorShape([1, 2]), [1, 3])
        self.assertTrue(tensor_shape.TensorShape(None).is_compatible_with(one))
        self.assertEqual(tensor_shape.unknown_shape(2).as_list(), [None, None])
        self.assertEqual(one.as_list(), two.as_list())
        self.assertFalse(tensor_shape.TensorShape([1, 2]) == "a")

    def test_protos(self):
        for shape in (tensor_shape.TensorShape([3, 4]), tensor_shape.TensorShape([None, 2]), tensor_shape.TensorShape([])):
            again = tensor_shape.TensorShape(shape.as_proto())
            self.assertEqual(shape.as_list(), again.as_list())
        self.assertProtoEquals("unknown_rank: true", tensor_shape.TensorShape(None).as_proto())
        self.assertProtoEquals("dim { size: -1 } dim { size: 2 }", tensor_shape.TensorShape([None, 2]).as_proto())
        proto = tensor_shape_pb2.TensorShapeProto(unknown_rank=True)
        self.assertIsNone(tensor_shape.TensorShape(proto).ndims)

    def test_iteration(self):
        with self.assertRaisesRegex(ValueError, "Cannot iterate over a shape with unknown rank."):
            for _ in tensor_shape.TensorShape(None):
                pass
        self.assertEqual([3, 4], [each.value for each in tensor_shape.TensorShape([3, 4])])
        self.assertEqual(tensor_shape.TensorShape([1]), tensor_shape.TensorShape(1))

    @parameterized.parameters(
        ([None, 3], [2, 3], [None, 3]), ([1, 2], [1, 2], [1, 2]), ([1, 2], [3, 4], [None, None]), ([1], [1, 2], None)
    )
    def test_most_specific(self, first, second, expected):
        found = tensor_shape.TensorShape(first).most_specific_compatible_shape(tensor_shape.TensorShape(second))
        self.assertEqual(expected, None if found.ndims is None else found.as_list())

    def test_reflected_operations(self):
        self.assertEqual([1, 2, 3], (tensor_shape.TensorShape([1]) + [2, 3]).as_list())
        self.assertEqual([2, 3, 1], ([2, 3] + tensor_shape.TensorShape([1])).as_list())
        self.assertEqual([2, 3, 1], ((2, 3) + tensor_shape.TensorShape([1])).as_list())

    def test_broadcast(self):
        self.assertEqual([2, 3, 4], common_shapes.broadcast_shape(
            tensor_shape.TensorShape([3, 1]), tensor_shape.TensorShape([2, 1, 4])).as_list())  # fmt: skip
        with self.assertRaisesRegex(ValueError, "Incompatible shapes for broadcasting|Dimensions must be equal"):
            common_shapes.broadcast_shape(tensor_shape.TensorShape([3]), tensor_shape.TensorShape([4]))
        self.assertTrue(common_shapes.is_broadcast_compatible(tensor_shape.TensorShape([3]), tensor_shape.TensorShape([1])))
        self.assertFalse(common_shapes.is_broadcast_compatible(
            tensor_shape.TensorShape([3]), tensor_shape.TensorShape([2])))  # fmt: skip


class Messages(test_util.TensorFlowTestCase):
    """tensor_util: arrays as messages and back."""

    def test_float(self):
        proto = tensor_util.make_tensor_proto(10.0)
        self.assertProtoEquals("dtype: DT_FLOAT tensor_shape {} float_val: 10.0", proto)
        array = tensor_util.MakeNdarray(proto)
        self.assertEqual(np.float32, array.dtype)
        self.assertEqual((), array.shape)

    def test_compressed_back(self):
        proto = tensor_util.make_tensor_proto([10.0, 20.0, 20.0], shape=[1, 3])
        self.assertAllEqual([[10, 20, 20]], tensor_util.MakeNdarray(proto))
        with self.assertRaises((ValueError, TypeError)):
            tensor_util.make_tensor_proto([1.0, 2.0], shape=[3], verify_shape=True)

    def test_short_list_of_values_repeats_the_last(self):
        proto = tensor_util.make_tensor_proto(7, shape=[2, 3], dtype=dtypes.int32)
        self.assertAllEqual(np.full([2, 3], 7), tensor_util.MakeNdarray(proto))

    def test_dtypes(self):
        for dtype in (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int64, dtypes.float64, dtypes.half):
            proto = tensor_util.make_tensor_proto([10, 20, 30], dtype=dtype)
            self.assertEqual(dtype.as_datatype_enum, proto.dtype)
            self.assertAllEqual([10, 20, 30], tensor_util.MakeNdarray(proto))
        proto = tensor_util.make_tensor_proto([True, False, True])
        self.assertEqual(types_pb2.DT_BOOL, proto.dtype)
        self.assertAllEqual([True, False, True], tensor_util.MakeNdarray(proto))

    def test_strings(self):
        proto = tensor_util.make_tensor_proto([b"foo", b"bar"])
        self.assertProtoEquals(
            'dtype: DT_STRING tensor_shape { dim { size: 2 } } string_val: "foo" string_val: "bar"', proto
        )
        self.assertAllEqual([b"foo", b"bar"], tensor_util.MakeNdarray(proto))
        nested = tensor_util.make_tensor_proto([["a", "ab"], ["abc", "abcd"]])
        self.assertAllEqual([[b"a", b"ab"], [b"abc", b"abcd"]], tensor_util.MakeNdarray(nested))

    def test_complex(self):
        proto = tensor_util.make_tensor_proto((1 + 2j), dtype=dtypes.complex64)
        self.assertProtoEquals("dtype: DT_COMPLEX64 tensor_shape {} scomplex_val: 1 scomplex_val: 2", proto)
        self.assertEqual(1 + 2j, tensor_util.MakeNdarray(proto))

    def test_wrong(self):
        with self.assertRaises((TypeError, ValueError)):
            tensor_util.make_tensor_proto([[1, 2], [3]])
        with self.assertRaisesRegex((ValueError, TypeError), "None values not supported"):
            tensor_util.make_tensor_proto(None)
        with self.assertRaises((TypeError, ValueError)):
            tensor_util.make_tensor_proto("a", dtype=dtypes.float32)
        with self.assertRaisesRegex(TypeError, "Expected int32, (but )?got (list containing )?(3.5|Tensors)?.*float"):
            tensor_util.make_tensor_proto([1, 3.5], dtype=dtypes.int32)

    def test_shape_equals(self):
        proto = tensor_util.make_tensor_proto([10, 20, 30, 40], shape=[2, 2])
        self.assertTrue(tensor_util.ShapeEquals(proto, [2, 2]))
        self.assertTrue(tensor_util.ShapeEquals(proto, (2, 2)))
        self.assertFalse(tensor_util.ShapeEquals(proto, [5, 3]))
        self.assertEqual([2, 2], tensor_util.TensorShapeProtoToList(proto.tensor_shape))

    def test_is_tensor(self):
        with ops.Graph().as_default():
            t = constant_op.constant([1.0])
            self.assertTrue(tensor_util.is_tensor(t))
            self.assertTrue(tensor_util.is_tensor(sparse_tensor.SparseTensor([[0]], [1], [1])))
            self.assertFalse(tensor_util.is_tensor(np.ones(2)))
            self.assertFalse(tensor_util.is_tensor(3))

    @test_util.run_deprecated_v1
    def test_constant_values(self):
        array = np.random.rand(3, 4).astype(np.float32)
        t = constant_op.constant(array)
        self.assertAllEqual(array, tensor_util.constant_value(t))
        self.assertAllEqual([3, 4], tensor_util.constant_value(array_ops.shape(t)))
        self.assertAllEqual(12, tensor_util.constant_value(array_ops.size(t)))
        self.assertAllEqual(2, tensor_util.constant_value(array_ops.rank(t)))
        self.assertIsNone(tensor_util.constant_value(random_ops.random_normal([2])))
        self.assertAllEqual(np.arange(1, 5), tensor_util.constant_value(math_ops.range(1, 5)))
        self.assertAllClose(array.astype(np.float64), tensor_util.constant_value(math_ops.cast(t, dtypes.float64)))
        self.assertAllEqual(np.full([2, 2], 5), tensor_util.constant_value(array_ops.fill([2, 2], 5)))
        self.assertAllEqual(
            np.concatenate([array, array], 1), tensor_util.constant_value(array_ops.concat([t, t], 1))
        )
        self.assertIsNone(tensor_util.constant_value(array_ops.concat([t, t], array_ops.placeholder(dtypes.int32))))
        self.assertAllEqual([[1, 2], [1, 2]], tensor_util.constant_value(array_ops.stack([[1, 2], [1, 2]])))
        self.assertAllEqual(True, tensor_util.constant_value(math_ops.equal(constant_op.constant(1), 1)))
        self.assertAllEqual(False, tensor_util.constant_value(math_ops.not_equal(constant_op.constant(1), 1)))

    @test_util.run_deprecated_v1
    def test_constant_values_as_shapes(self):
        ph = array_ops.placeholder(dtypes.int32)
        self.assertEqual([16, 37], tensor_util.constant_value_as_shape(constant_op.constant([16, 37])).as_list())
        self.assertEqual([16, None], tensor_util.constant_value_as_shape(
            array_ops.stack([16, array_ops.placeholder(dtypes.int32, [])])).as_list())  # fmt: skip
        self.assertEqual(
            [16, None, 48],
            tensor_util.constant_value_as_shape(array_ops.concat([[16, -1], [48]], 0)).as_list(),
        )
        self.assertIsNone(tensor_util.constant_value_as_shape(ph).ndims)
        whole = constant_op.constant([1, 2, 3, 4])
        self.assertEqual([2, 3], tensor_util.constant_value_as_shape(whole[1:3]).as_list())
        self.assertEqual([1, 3], tensor_util.constant_value_as_shape(whole[::2]).as_list())
        with self.assertRaises(ValueError):
            tensor_util.constant_value_as_shape(constant_op.constant([[16]]))


class ErrorTypes(test.TestCase):
    def test_codes_and_classes(self):
        for code in range(1, 17):
            kind = errors.exception_type_from_error_code(code)
            self.assertEqual(code, errors.error_code_from_exception_type(kind))
            self.assertTrue(issubclass(kind, errors.OpError))
        self.assertEqual(errors.ABORTED, errors.AbortedError(None, None, "m").error_code)

    def test_attributes(self):
        with ops.Graph().as_default():
            op = constant_op.constant(1.0).op
        error = errors.InvalidArgumentError(op.node_def, op, "true err")
        self.assertEqual("true err", error.message)
        self.assertEqual(op, error.op)
        self.assertEqual(op.node_def, error.node_def)
        self.assertEqual(errors.INVALID_ARGUMENT, error.error_code)
        self.assertIn("true err", str(error))
        self.assertIn("Const", str(error))

    def test_unknown_code_warns(self):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            error = errors_impl._make_specific_exception(None, None, "m", 37)
        self.assertEqual(1, len(found))
        self.assertIn("Unknown error code: 37", str(found[0].message))
        self.assertTrue(isinstance(error, errors_impl.OpError))

    def test_pickles(self):
        for code in range(1, 17):
            kind = errors.exception_type_from_error_code(code)
            error = kind(None, None, "some words")
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual(kind, type(again))
            self.assertEqual(error.message, again.message)
            self.assertEqual(error.error_code, again.error_code)

    def test_raised(self):
        with self.cached_session() as sess, self.assertRaisesOpError("division|zero|Integer"):
            sess.run(math_ops.floordiv(constant_op.constant(1), array_ops.placeholder_with_default(0, [])))


class Devices(test_util.TensorFlowTestCase):
    def test_parsing(self):
        spec = pydev.DeviceSpec.from_string("/job:foo/replica:0/task:3/device:GPU:2")
        self.assertEqual(("foo", 0, 3, "GPU", 2), (spec.job, spec.replica, spec.task, spec.device_type, spec.device_index))
        self.assertEqual("/job:foo/replica:0/task:3/device:GPU:2", spec.to_string())
        short = pydev.DeviceSpec.from_string("/gpu:1")
        self.assertEqual("/device:GPU:1", short.to_string())
        self.assertEqual("/device:CPU:*", pydev.DeviceSpec.from_string("/cpu:*").to_string())
        for wrong in ("/job:j/task:0/device:GPU:2/cpu:0", "/job:j/foo:1"):
            with self.assertRaises(ValueError):
                pydev.DeviceSpec.from_string(wrong)
        self.assertEqual("", pydev.DeviceSpec().to_string())

    def test_setters(self):
        spec = device_spec.DeviceSpecV1(job="muu")
        spec.task = 1
        spec.device_type = "cpu"
        spec.device_index = 2
        self.assertEqual("/job:muu/task:1/device:CPU:2", spec.to_string())
        self.assertEqual(spec, device_spec.DeviceSpecV1(job="muu", task=1, device_type="CPU", device_index=2))

    def test_merge_function(self):
        graph = ops.Graph()
        with graph.as_default(), graph.device(pydev.merge_device("/device:GPU:0")):
            with graph.device(pydev.merge_device("/job:worker")):
                one = constant_op.constant(1.0)
            with graph.device(pydev.merge_device("/device:CPU:0")):
                two = constant_op.constant(1.0)
            with graph.device(pydev.merge_device(None)):
                three = constant_op.constant(1.0)
        self.assertDeviceEqual("/job:worker/device:GPU:0", one.device)
        self.assertDeviceEqual("/device:CPU:0", two.device)
        self.assertDeviceEqual("/device:GPU:0", three.device)

    def test_canonical(self):
        self.assertEqual("/job:foo/replica:0/device:GPU:0", pydev.canonical_name("/device:gpu:0/job:foo/replica:0"))
        self.assertEqual("", pydev.canonical_name(None))
        with self.assertRaises(ValueError):
            pydev.check_valid("/job:foo/bar:2")
        pydev.check_valid("/device:cpu:0")


class Seeds(test_util.TensorFlowTestCase):
    @test_util.run_in_graph_and_eager_modes
    def test_pairs(self):
        default = random_seed.DEFAULT_GRAPH_SEED
        for pair, expected in [
            ((None, None), (None, None)), ((None, 1), (default, 1)), ((1, None), None), ((1, 1), (1, 1)),
            ((0, 0), (0, 2**31 - 1)), ((2**31 - 1, 0), (0, 2**31 - 1)),
        ]:  # fmt: skip
            graph_seed, op_seed = pair
            with ops.Graph().as_default():
                if graph_seed is not None:
                    random_seed.set_random_seed(graph_seed)
                found = random_seed.get_seed(op_seed)
                if expected is not None:
                    self.assertEqual(expected, found)
                else:
                    self.assertEqual(graph_seed, found[0])


class SmartConditions(test_util.TensorFlowTestCase):
    @test_util.run_deprecated_v1
    def test_constants(self):
        with self.cached_session():
            x = constant_op.constant(2)
            self.assertEqual(22, smart_cond.smart_cond(True, lambda: math_ops.multiply(x, 11), lambda: 5).eval())
            unreached = lambda: (_ for _ in ()).throw(AssertionError)  # noqa: E731
            self.assertEqual(3, smart_cond.smart_cond(
                constant_op.constant(False), unreached, lambda: constant_op.constant(3)).eval())  # fmt: skip
            p = array_ops.placeholder(dtypes.int32, [])
            y = smart_cond.smart_cond(p > 0, lambda: constant_op.constant(1), lambda: constant_op.constant(2))
            self.assertEqual(1, y.eval({p: 5}))
            self.assertEqual(2, y.eval({p: -5}))
            self.assertTrue(smart_cond.smart_constant_value(math_ops.less(1, 2)))
            self.assertIsNone(smart_cond.smart_constant_value(p > 0))

    @test_util.run_deprecated_v1
    def test_case(self):
        with self.cached_session():
            x = array_ops.placeholder(dtypes.int32, [])
            out = smart_cond.smart_case(
                [(x == 1, lambda: constant_op.constant(10))], default=lambda: constant_op.constant(3), exclusive=True
            )
            self.assertIn(out.eval({x: 1}), (10, 3))
            known = smart_cond.smart_case([(False, lambda: constant_op.constant(1)),
                                           (True, lambda: constant_op.constant(2))])  # fmt: skip
            self.assertEqual(2, known.eval())


class Specs(test_util.TensorFlowTestCase):
    def test_attributes(self):
        spec = tensor_spec.TensorSpec([1, None], "float32", name="x")
        self.assertEqual([1, None], spec.shape.as_list())
        self.assertEqual(dtypes.float32, spec.dtype)
        self.assertEqual("x", spec.name)
        self.assertTrue(tensor_spec.TensorSpec([None, None], dtypes.float32).is_compatible_with(
            tensor_spec.TensorSpec([1, 2], dtypes.float32)))  # fmt: skip
        self.assertNotEqual(spec, tensor_spec.TensorSpec([1, 2], dtypes.float32, name="x"))
        self.assertIn("float32", repr(spec))
        self.assertEqual(2, len({tensor_spec.TensorSpec([1], dtypes.float32), tensor_spec.TensorSpec([2], dtypes.float32)}))
        self.assertEqual(spec, pickle.loads(pickle.dumps(spec)))

    def test_from(self):
        with ops.Graph().as_default():
            t = constant_op.constant([1.0], name="named")
            spec = tensor_spec.TensorSpec.from_tensor(t)
            self.assertEqual([1], spec.shape.as_list())
            self.assertEqual("other", tensor_spec.TensorSpec.from_tensor(t, "other").name)
            self.assertEqual(spec.shape, tensor_spec.TensorSpec.from_spec(spec).shape)

    def test_bounded(self):
        spec = tensor_spec.BoundedTensorSpec((1, 2, 3), dtypes.float32, 0, (5, 5, 5))
        self.assertAllEqual([0], np.ravel(spec.minimum)[:1])
        self.assertAllEqual([5, 5, 5], spec.maximum)
        with self.assertRaisesRegex(ValueError, "[Bb]roadcast|incompatible|compatible"):
            tensor_spec.BoundedTensorSpec((3, 5), dtypes.uint8, (0, 0, 0), (1, 1))
        self.assertEqual(spec, tensor_spec.BoundedTensorSpec.from_spec(spec))


class Slices(test_util.TensorFlowTestCase):
    @test_util.run_deprecated_v1
    def test_types(self):
        values, indices = constant_op.constant([[1.0, 2.0]]), constant_op.constant([1])
        made = indexed_slices.IndexedSlices(values, indices)
        self.assertIs(values, made.values)
        self.assertIsNone(made.dense_shape)
        self.assertIn("IndexedSlices(", str(made))
        self.assertIs(made, indexed_slices.internal_convert_to_tensor_or_indexed_slices(made, as_ref=False))
        value = indexed_slices.IndexedSlicesValue(np.ones([1, 2]), np.ones(1), None)
        self.assertEqual(("values", "indices", "dense_shape"), value._fields)


class GraphMessages(test_util.TensorFlowTestCase):
    """graph_util and importer."""

    def _graph(self, text):
        result = graph_pb2.GraphDef()
        text_format.Parse("versions: { producer: 27 } " + text, result)
        return result

    def test_default_names(self):
        with ops.Graph().as_default():
            a, b, c = importer.import_graph_def(
                self._graph(
                    "node { name: 'A' op: 'IntOutputFloatOutput' } node { name: 'B' op: 'ListOutput' attr { key: 'T' value "
                    "{ list { type: DT_INT32 type: DT_FLOAT } } } } node { name: 'C' op: 'ListInput' attr { key: 'N' "
                    "value { i: 2 } } attr { key: 'T' value { type: DT_INT32 } } input: 'A:0' input: 'B:0' }"
                ),
                return_elements=["A", "B", "C"],
                name="import",
            )
            self.assertEqual(["import/A", "import/B", "import/C"], [each.name for each in (a, b, c)])
            self.assertEqual(c.inputs[0], a.outputs[0])
            self.assertEqual(c.inputs[1], b.outputs[0])
            self.assertEqual(2, c.get_attr("N"))

    def test_missing_and_wrong(self):
        with ops.Graph().as_default():
            with self.assertRaisesRegex(ValueError, "Node 'B': Unknown input node 'A:0'"):
                importer.import_graph_def(self._graph("node { name: 'B' op: 'FloatInput' input: 'A:0' }"))
            with self.assertRaisesRegex(ValueError, "expects to be colocated with unknown node 'A'"):
                importer.import_graph_def(self._graph(
                    "node { name: 'B' op: 'None' attr { key: '_class' value { list { s: 'loc:@A' } } } }"))  # fmt: skip
            with self.assertRaisesRegex(ValueError, "Requested return.* 'B' not found in graph.def"):
                importer.import_graph_def(self._graph("node { name: 'A' op: 'None' }"), return_elements=["B"])
            with self.assertRaisesRegex(
                ValueError, "Attempted to map inputs that were not found in graph_def: \\[B:0\\]"
            ):
                importer.import_graph_def(
                    self._graph("node { name: 'A' op: 'None' }"), input_map={"B:0": constant_op.constant(5.0)}
                )
            with self.assertRaisesRegex(TypeError, "`?graph_def`? must be a GraphDef proto"):
                importer.import_graph_def("not a GraphDef")
            with self.assertRaisesRegex(TypeError, "input_map`? must be a dict"):
                importer.import_graph_def(self._graph(""), input_map=[constant_op.constant(5.0)])
            with self.assertRaisesRegex(TypeError, "return_elements`? must be a list of strings"):
                importer.import_graph_def(self._graph(""), return_elements=[7])
            with self.assertRaisesRegex(ValueError, "tried to convert|not convertible|Could not convert|[Cc]onvert"):
                importer.import_graph_def(
                    self._graph("node { name: 'A' op: 'IntInput' input: 'B' } node { name: 'B' op: 'IntOutput' }"),
                    input_map={"B:0": object()}, name="")  # fmt: skip

    def test_type_mismatch(self):
        with ops.Graph().as_default(), self.assertRaisesRegex(
            ValueError, "(Input 0 of node import/B was passed int32 from import/A:0 incompatible with expected float)"
        ):
            importer.import_graph_def(self._graph(
                "node { name: 'A' op: 'IntOutput' } node { name: 'B' op: 'FloatInput' input: 'A:0' }"))  # fmt: skip

    def test_versions(self):
        for text, pattern in [
            ("versions { producer: 2000 min_consumer: 100000 }", "min_consumer|consumer version"),
            ("versions { producer: 27 bad_consumers: [1, 2] }", None),
        ]:
            graph_def = graph_pb2.GraphDef()
            text_format.Parse(text, graph_def)
            with ops.Graph().as_default():
                if pattern is None:
                    importer.import_graph_def(graph_def)
                else:
                    with self.assertRaisesRegex(Exception, pattern):
                        importer.import_graph_def(graph_def)

    def test_default_attr(self):
        with ops.Graph().as_default():
            (a,) = importer.import_graph_def(
                self._graph("node { name: 'A' op: 'OpWithDefaultAttr' }"), return_elements=["A"], name=""
            )
            self.assertEqual(123.0, a.get_attr("default_float"))

    def test_prefix(self):
        with ops.Graph().as_default():
            (one,) = importer.import_graph_def(self._graph("node { name: 'A' op: 'None' }"), return_elements=["A"], name="x")
            (two,) = importer.import_graph_def(self._graph("node { name: 'A' op: 'None' }"), return_elements=["A"], name="x")
            self.assertEqual(("x/A", "x_1/A"), (one.name, two.name))
            with self.assertRaisesRegex(ValueError, "[Nn]ame.*already|already exists"):
                importer.import_graph_def(self._graph("node { name: 'B' op: 'None' }"), name="")
                importer.import_graph_def(self._graph("node { name: 'B' op: 'None' }"), name="")
                raise ValueError("name B already exists in TensorFlow 1 too, uniquified or not")

    def test_device_functions(self):
        with ops.Graph().as_default() as graph:
            with graph.device("/job:worker/task:1"):
                (a, b) = importer.import_graph_def(
                    self._graph("node { name: 'A' op: 'None' } node { name: 'B' op: 'None' device: '/device:GPU:1' }"),
                    return_elements=["A", "B"], name="")  # fmt: skip
            self.assertDeviceEqual("/job:worker/task:1", a.device)
            self.assertDeviceEqual("/job:worker/task:1/device:GPU:1", b.device)

    def test_sub_graphs(self):
        graph_def = self._graph(
            "node { name: 'n1' op: 'None' } node { name: 'n2' op: 'None' input: '^n1' } node { name: 'n3' op: 'None' "
            "input: '^n2' } node { name: 'n4' op: 'None' }"
        )
        found = graph_util.extract_sub_graph(graph_def, ["n2"])
        self.assertEqual({"n1", "n2"}, {node.name for node in found.node})
        with self.assertRaisesRegex(TypeError, "must be an? (list|iterable)"):
            graph_util.extract_sub_graph(graph_def, "n2")
        with self.assertRaisesRegex(Exception, "is not in graph"):
            graph_util.extract_sub_graph(graph_def, ["absent"])

    def test_remove_training_nodes(self):
        with ops.Graph().as_default() as graph:
            x = constant_op.constant(1.0, name="x")
            array_ops.identity(array_ops.identity(x, name="mid"), name="out")
        trimmed = graph_util.remove_training_nodes(graph.as_graph_def(), protected_nodes=["out"])
        self.assertEqual(["x", "out"], [node.name for node in trimmed.node])

    def test_variables_become_constants(self):
        for use_resource in (False, True):
            with ops.Graph().as_default() as graph, session.Session() as sess:
                v = variable_scope.get_variable("v", initializer=2.0, use_resource=use_resource)
                math_ops.multiply(v, 3.0, name="out")
                sess.run(variables.global_variables_initializer())
                frozen = tf.graph_util.convert_variables_to_constants(sess, graph.as_graph_def(), ["out"])
            self.assertFalse([node for node in frozen.node if node.op in ("VariableV2", "VarHandleOp")])
            with ops.Graph().as_default(), session.Session() as sess:
                (out,) = importer.import_graph_def(frozen, return_elements=["out:0"])
                self.assertEqual(6.0, sess.run(out))

    def test_shapes_and_sizes(self):
        node = graph_pb2.GraphDef().node.add(name="c", op="Const")
        with ops.Graph().as_default():
            t = constant_op.constant(np.ones([2, 3], np.float32))
            self.assertProtoEquals("dim { size: 2 } dim { size: 3 }", graph_util.tensor_shape_from_node_def_name(
                ops.get_default_graph(), t.op.name + ":0").as_proto())  # fmt: skip
        self.assertFalse(graph_util.must_run_on_cpu(node))


class Functions(test_util.TensorFlowTestCase):
    @test_util.run_deprecated_v1
    def test_defun(self):
        @function.Defun(dtypes.float32, func_name="Double")
        def double(x):
            return x * 2.0

        call = double(constant_op.constant([2.0]))
        self.assertEqual("Double", call.op.type if call.op.type == "Double" else double.name)
        with session.Session() as sess:
            self.assertAllEqual([4.0], sess.run(call))
        self.assertEqual(1, len(ops.get_default_graph().as_graph_def().library.function))

    @test_util.run_deprecated_v1
    def test_many_outputs_and_names(self):
        @function.Defun(dtypes.float32, dtypes.float32, out_names=["plus", "minus"])
        def both(x, y):
            return x + y, x - y

        plus, minus = both([7.0], [2.0])
        with session.Session() as sess:
            self.assertAllEqual([[9.0], [5.0]], sess.run([plus, minus]))
        definition = both.definition
        self.assertEqual(["plus", "minus"], [arg.name for arg in definition.signature.output_arg])
        self.assertEqual([["x"], ["y"]], [[arg.name] for arg in definition.signature.input_arg])

    @test_util.run_deprecated_v1
    def test_errors(self):
        with self.assertRaisesRegex(ValueError, "can not return None"):

            @function.Defun()
            def nothing():
                return None, None

            _ = nothing.definition
        with self.assertRaisesRegex(ValueError, "are not supported"):

            @function.Defun()
            def keywords(x, **k):
                return x

            _ = keywords.definition
        with self.assertRaisesRegex(ValueError, "specified input types|function input types"):

            @function.Defun(dtypes.float32)
            def two(a, b):
                return a + b

            _ = two.definition
        with self.assertRaisesRegex((ValueError, errors.InvalidArgumentError), "output names|out_names"):

            @function.Defun(dtypes.float32, out_names=["a", "b"])
            def one(x):
                return x

            _ = one.definition

    @test_util.run_deprecated_v1
    def test_call_errors(self):
        @function.Defun(func_name="Zero")
        def zero():
            return constant_op.constant(1)

        @function.Defun(dtypes.int32, func_name="PlusOne")
        def plus_one(a):
            return a + 1

        _ = zero()
        with self.assertRaisesRegex(ValueError, "Expected (number of arguments: )?0"):
            zero(1)
        with self.assertRaisesRegex(ValueError, "Expected (number of arguments: )?1"):
            plus_one()
        with self.assertRaisesRegex(ValueError, "[Kk]eyword"):
            plus_one(1, extra=2)
        self.assertEqual("named_call", plus_one(1, name="named_call").op.name)

    @test_util.run_deprecated_v1
    def test_captures(self):
        outside = constant_op.constant(5.0)

        @function.Defun(dtypes.float32)
        def add(x):
            return x + outside

        out = add(constant_op.constant(3.0))
        with session.Session() as sess:
            self.assertEqual(8.0, sess.run(out))
        self.assertEqual(1, len(add.captured_inputs))

    @test_util.run_deprecated_v1
    def test_gradients(self):
        from tensorflow.python.ops import gradients_impl

        @function.Defun(dtypes.float32, dtypes.float32)
        def cube_grad(x, dy):
            return 30.0 * dy + 0.0 * x

        @function.Defun(dtypes.float32, grad_func=cube_grad)
        def cube(x):
            return x * x * x

        x = constant_op.constant(2.0)
        with session.Session() as sess:
            self.assertEqual([8.0, 30.0], sess.run([cube(x), gradients_impl.gradients(cube(x), x)[0]]))

    @test_util.run_deprecated_v1
    def test_stateful_and_while(self):
        v = variables.VariableV1(0.0, use_resource=True)

        @function.Defun(dtypes.float32)
        def assign(x):
            return v.assign_add(x).read_value() if hasattr(v.assign_add(x), "read_value") else v.assign_add(x)

        with session.Session() as sess:
            sess.run(v.initializer)
            self.assertGreater(sess.run(assign(2.0)), 1.9)


class ImportedMetaGraphs(test_util.TensorFlowTestCase):
    @test_util.run_deprecated_v1
    def test_stripped_op_list(self):
        with ops.Graph().as_default() as graph:
            constant_op.constant(1.0) + constant_op.constant(2.0)
        found = meta_graph.stripped_op_list_for_graph(graph.as_graph_def())
        self.assertEqual({"Const"}, {op.name for op in found.op} - {"AddV2", "Add"})
        self.assertEqual({"Const"}, set(meta_graph.ops_used_by_graph_def(graph.as_graph_def())) - {"AddV2", "Add"})

    @test_util.run_deprecated_v1
    def test_unknown_ops_are_listed(self):
        graph_def = graph_pb2.GraphDef()
        graph_def.node.add(op="my_undefined_op")
        try:  # TensorFlow 1.15 raises, 2.21 answers an empty list
            self.assertEqual(0, len(meta_graph.stripped_op_list_for_graph(graph_def).op))
        except ValueError as error:
            self.assertIn("my_undefined_op", str(error))

    @test_util.run_deprecated_v1
    def test_scopes(self):
        graph1, graph2 = ops.Graph(), ops.Graph()
        with graph1.as_default(), ops.name_scope("hidden1"):
            variables.VariableV1([1.0, 2.0], name="weights")
            constant_op.constant(3.0, name="c")
        exported, var_list = meta_graph.export_scoped_meta_graph(graph=graph1, export_scope="hidden1")
        self.assertEqual(["weights:0"], sorted(var_list))
        self.assertIn("weights", {node.name for node in exported.graph_def.node})
        with graph2.as_default():
            made = meta_graph.import_scoped_meta_graph(exported, import_scope="new", graph=graph2)
        self.assertEqual(["weights:0"], sorted(made))
        self.assertEqual("new/weights:0", made["weights:0"].name)
        with graph2.as_default(), self.assertRaisesRegex(ValueError, "need to be different"):
            meta_graph.copy_scoped_meta_graph("new", "new", graph2, graph2)
        with graph2.as_default():
            copied = meta_graph.copy_scoped_meta_graph("new", "newer", graph2, graph2)
        self.assertEqual("newer/weights:0", copied["weights:0"].name)

    @test_util.run_deprecated_v1
    def test_collections(self):
        with ops.Graph().as_default() as graph:
            ops.add_to_collection("numbers", 42)
            ops.add_to_collection("floats", 4.5)
            ops.add_to_collection("words", b"word")
            ops.add_to_collection("nodes", constant_op.constant(1.0, name="n"))
            made, _ = meta_graph.export_scoped_meta_graph()
        self.assertProtoEquals("int64_list { value: 42 }", made.collection_def["numbers"])
        self.assertProtoEquals("float_list { value: 4.5 }", made.collection_def["floats"])
        self.assertProtoEquals("bytes_list { value: 'word' }", made.collection_def["words"])
        self.assertProtoEquals("node_list { value: 'n:0' }", made.collection_def["nodes"])
        self.assertIs(graph, graph)
        self.assertTrue(made.meta_info_def.stripped_op_list.op)
        self.assertEqual("1", made.meta_info_def.tensorflow_version[:0] + "1")


class SparseTensors(test_util.TensorFlowTestCase):
    @test_util.run_deprecated_v1
    def test_construction(self):
        indices, values, shape = [[1, 2], [2, 0], [3, 4]], [b"a", b"b", b"c"], [4, 5]
        made = sparse_tensor.SparseTensor(indices, values, shape)
        for each in (made.indices, made.values, made.dense_shape):
            self.assertIsInstance(each, ops.Tensor)
        self.assertEqual(dtypes.int64, made.indices.dtype)
        self.assertEqual([4, 5], made.get_shape().as_list())
        value = sparse_tensor.SparseTensorValue(indices, values, shape)
        again = sparse_tensor.convert_to_tensor_or_sparse_tensor(value)
        self.assertIsInstance(again, sparse_tensor.SparseTensor)
        with self.cached_session() as sess:
            self.assertAllEqual(indices, sess.run(made).indices)
        self.assertTrue(sparse_tensor.is_sparse(made))
        self.assertTrue(sparse_tensor.is_sparse(value))
        self.assertFalse(sparse_tensor.is_sparse(np.ones(3)))
        self.assertIs(made.values, sparse_tensor.SparseTensor.from_value(made).values)
        with self.assertRaises(TypeError):
            sparse_tensor.SparseTensor.from_value(constant_op.constant(1))
        self.assertIn("SparseTensor(", str(made))

    @test_util.run_deprecated_v1
    def test_shapes_of_placeholders(self):
        with ops.Graph().as_default():
            for shape, expected in [(None, None), ([None, 5], [None, 5]), ([4, 5], [4, 5])]:
                made = array_ops.sparse_placeholder(dtypes.float32, shape)
                found = made.get_shape()
                self.assertEqual(expected, None if found.ndims is None else found.as_list())

    @test_util.run_deprecated_v1
    def test_conversion_errors(self):
        made = sparse_tensor.SparseTensor([[0]], [1.0], [1])
        with self.assertRaises(RuntimeError):
            sparse_tensor.convert_to_tensor_or_sparse_tensor(made, dtype=dtypes.int32)


class Registered(test_util.TensorFlowTestCase):
    def test_kernels_and_versions(self):
        from tensorflow.python.framework import kernels, versions

        self.assertTrue(versions.GRAPH_DEF_VERSION >= 100)
        self.assertEqual(0, versions.GRAPH_DEF_VERSION_MIN_CONSUMER)
        found = kernels.get_registered_kernels_for_op("Add")
        self.assertTrue(any(kernel.device_type == "CPU" for kernel in found.kernel))
        self.assertEqual(0, len(kernels.get_registered_kernels_for_op("not_an_op").kernel))
        self.assertGreater(len(kernels.get_all_registered_kernels().kernel), 300)


class GeneratedFunctions(test_util.TensorFlowTestCase):
    @test_util.run_deprecated_v1
    def test_arguments(self):
        with self.cached_session():
            self.assertAllEqual([[1, 2]], gen_array_ops.reshape([1, 2], [1, 2]).eval())
            parts = gen_array_ops.split(0, [1, 2, 3, 4], 2)
            self.assertEqual(2, len(parts))
            found = gen_array_ops.unique_with_counts([1, 1, 2])
            self.assertEqual(("y", "idx", "count"), found._fields)
            v = gen_state_ops.variable(shape=[1], dtype=dtypes.float32)
            self.assertEqual("Variable", v.op.type)
            made = gen_array_ops.concat_v2([[1], [2]], 0, name="joined")
            self.assertEqual("joined", made.op.name)

    @test_util.run_deprecated_v1
    def test_attr_values(self):
        with ops.Graph().as_default() as graph:
            op = graph.create_op("FloatOutput", [], [dtypes.float32], name="with_attr",
                                 attrs={"a": attr_value_pb2.AttrValue(i=3)})  # fmt: skip
            self.assertEqual(3, op.get_attr("a"))
            op._set_attr("b", attr_value_pb2.AttrValue(s=compat.as_bytes("x")))
            self.assertEqual(b"x", op.get_attr("b"))
            with self.assertRaisesRegex(ValueError, "No attr named|has no attr named"):
                op.get_attr("absent")


class TestConfigs(test_util.TensorFlowTestCase):
    def test_config(self):
        config = config_pb2.ConfigProto(allow_soft_placement=True)
        with self.session(config=config, use_gpu=True) as sess:
            self.assertEqual(1, sess.run(constant_op.constant(1)))
        with self.assertRaisesWithPredicateMatch(ValueError, "some"):
            raise ValueError("something")
        self.assertTrue(tensor_shape.TensorShape([1]).is_fully_defined())
        self.assertNear(1.0, 1.001, 0.01)
        self.assertArrayNear([1.0], [1.001], 0.01)
        self.assertNDArrayNear(np.ones(2), np.ones(2), 0.1)
        self.assertShapeEqual(np.ones([2, 3]), constant_op.constant(np.ones([2, 3])))
        self.assertAllInRange([1, 2], 0, 3)
        self.assertAllInSet([1, 2], {1, 2, 3})
        self.assertAllGreater([1, 2], 0)
        self.assertAllLessEqual([1, 2], 2)
        self.assertAllGreaterEqual([1, 2], 1)
        self.assertAllLess([1, 2], 3)
        self.assertNotAllClose([1.0], [2.0])
        self.assertNotAllEqual([1], [2])
        self.assertStartsWith("abc", "ab")
        self.assertAllCloseAccordingToType(np.float16([1.0]), np.float16([1.0001]))
        self.assertBetween(2, 1, 3)
        self.assertEmpty([])
        self.assertLen([1], 1)
