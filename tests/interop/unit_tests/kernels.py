"""Single ops as kernel tests use them: arrays, numbers, strings, sparse tensors, tables, matrices, files, queues."""

import os

import numpy as np
from tensorflow.core.example import example_pb2
from tensorflow.python.framework import (
    constant_op,
    dtypes,
    errors,
    errors_impl,
    ops,
    sparse_tensor,
    tensor_shape,
    test_util,
)
from tensorflow.python.ops import (
    array_ops,
    bitwise_ops,
    check_ops,
    clip_ops,
    data_flow_ops,
    gen_array_ops,
    gen_state_ops,
    histogram_ops,
    init_ops,
    io_ops,
    linalg_ops,
    lookup_ops,
    manip_ops,
    math_ops,
    numerics,
    parsing_ops,
    random_ops,
    script_ops,
    sets,
    sort_ops,
    sparse_ops,
    special_math_ops,
    state_ops,
    stateless_random_ops,
    string_ops,
    variables,
)
from tensorflow.python.ops.linalg import linalg_impl
from tensorflow.python.ops.ragged import ragged_factory_ops, ragged_math_ops, ragged_string_ops, ragged_tensor
from tensorflow.python.ops.signal import fft_ops, window_ops
from tensorflow.python.platform import test

Refused = (ValueError, errors_impl.InvalidArgumentError)


class ArrayKernels(test.TestCase):
    @test_util.run_deprecated_v1
    def test_shapes(self):
        with self.cached_session():
            x = np.arange(24).reshape([2, 3, 4])
            self.assertAllEqual(x.reshape([4, 6]), array_ops.reshape(x, [4, -1]).eval())
            with self.assertRaisesRegex(Refused, "Cannot reshape a tensor with 24 elements to shape \\[5,5\\]|Input to reshape"):
                array_ops.reshape(constant_op.constant(x), [5, 5]).eval()
            with self.assertRaisesRegex(Refused, "(?i)only one|-1"):
                array_ops.reshape(constant_op.constant(x), [-1, -1]).eval()
            self.assertAllEqual(x[..., None], array_ops.expand_dims(x, -1).eval())
            with self.assertRaisesRegex(Refused, "(not in|must be in|out of bounds|range)"):
                array_ops.expand_dims(constant_op.constant(x), 5).eval()
            with self.assertRaisesRegex(Refused, "Can(not| not) squeeze dim(ension)?\\[?"):
                array_ops.squeeze(constant_op.constant(x), [0]).eval()
            self.assertAllEqual(x.transpose(2, 0, 1), array_ops.transpose(x, [2, 0, 1]).eval())
            with self.assertRaises(Refused):
                array_ops.transpose(constant_op.constant(x), [0, 1]).eval()
            self.assertAllEqual([2, 3, 4], array_ops.shape(x).eval())
            self.assertAllEqual(np.broadcast_to([1, 2], [3, 2]), array_ops.broadcast_to([1, 2], [3, 2]).eval())
            self.assertAllEqual([3, 2], array_ops.broadcast_dynamic_shape([3, 1], [2]).eval())
            with self.assertRaises(Refused):
                array_ops.ensure_shape(constant_op.constant(x), [5, None, None]).eval()

    @test_util.run_deprecated_v1
    def test_slices(self):
        x = np.arange(24).reshape([2, 3, 4])
        with self.cached_session():
            t = constant_op.constant(x)
            for made, expected in [(t[0], x[0]), (t[..., 1:3], x[..., 1:3]), (t[:, ::-1], x[:, ::-1]), (t[1, -1, 2], x[1, -1, 2]),
                                   (t[:, array_ops.newaxis], x[:, None]), (t[-1:0:-1], x[-1:0:-1])]:  # fmt: skip
                self.assertAllEqual(expected, made.eval())
            self.assertAllEqual(x[1:, :2], array_ops.slice(t, [1, 0, 0], [-1, 2, -1]).eval())
            for bad, message in [(lambda: t[5], "out of bounds"), (lambda: t[0, 0, 0, 0], "(?i)too many indices|dims|rank")]:
                with self.assertRaisesRegex((IndexError, *Refused), message):
                    bad().eval()
            with self.assertRaisesRegex(TypeError, "(indices|Index|slice)"):
                t["a"]
            with self.assertRaisesRegex(Refused, "strides?\\[0\\] must be non-?zero"):
                t[::0].eval()
            with self.assertRaisesRegex((ValueError, IndexError), "[Mm]ultiple ellips"):
                t[..., ...].eval()
            self.assertAllEqual([4, 4], array_ops.boolean_mask([4, 5, 4], [True, False, True]).eval())
            with self.assertRaisesRegex(ValueError, "mask cannot be scalar"):
                array_ops.boolean_mask([1, 2], constant_op.constant(True))
            with self.assertRaisesRegex(ValueError, "incompatible"):
                array_ops.boolean_mask([1, 2], [True, False, True])
            first, rest = array_ops.split([1, 2, 3], [1, 2])
            self.assertAllEqual([2, 3], rest.eval())
            with self.assertRaises(Refused):
                array_ops.split(constant_op.constant([1, 2, 3]), 2)[0].eval()
            self.assertEqual(1, first.eval()[0])

    @test_util.run_deprecated_v1
    def test_joins(self):
        with self.cached_session():
            a, b = np.ones([2, 3]), np.zeros([4, 3])
            self.assertAllEqual(np.concatenate([a, b]), array_ops.concat([a, b], 0).eval())
            with self.assertRaisesRegex(ValueError, "Dimension 1 in both shapes must be equal|[Dd]imension"):
                array_ops.concat([constant_op.constant(a), constant_op.constant(np.ones([2, 4]))], 0)
            with self.assertRaises(ValueError):
                array_ops.stack([constant_op.constant(a), constant_op.constant(b)])
            self.assertEqual([[1.0, 1.0, 1.0]] * 2, [each.eval().tolist() for each in array_ops.unstack(a)])
            with self.assertRaisesRegex(ValueError, "Cannot infer (argument `)?num`? from shape"):
                array_ops.unstack(array_ops.placeholder(np.float32))
            self.assertAllEqual(np.pad(a, [[1, 0], [0, 2]]), array_ops.pad(a, [[1, 0], [0, 2]]).eval())
            self.assertAllEqual(np.pad(a, [[1, 0], [0, 2]], "reflect"), array_ops.pad(a, [[1, 0], [0, 2]], "REFLECT").eval())
            with self.assertRaisesRegex(ValueError, "(?i)unknown padding mode|mode"):
                array_ops.pad(a, [[1, 0], [0, 2]], "wrong")
            self.assertAllEqual(np.tile(a, [2, 1]), array_ops.tile(a, [2, 1]).eval())
            self.assertAllEqual(np.repeat([1, 2], [1, 3]), array_ops.repeat([1, 2], [1, 3]).eval())
            self.assertAllEqual(np.roll(np.arange(5), 2), manip_ops.roll(np.arange(5), 2, 0).eval())
            self.assertAllEqual([[1, 0], [0, 1]], array_ops.one_hot([0, 1], 2, dtype=dtypes.int32).eval())
            self.assertAllEqual([[True, False], [True, True]], array_ops.sequence_mask([1, 2]).eval())
            self.assertAllEqual(np.diag([1, 2]), array_ops.matrix_diag([1, 2]).eval())
            self.assertAllEqual([[1, 2], [0, 4]], array_ops.matrix_band_part([[1, 2], [3, 4]], 0, -1).eval())
            self.assertAllEqual([4, 1], array_ops.reverse([1, 4], [0]).eval())
            self.assertAllEqual([[2, 1, 3]], array_ops.reverse_sequence([[1, 2, 3]], [2], 1, 0).eval())

    @test_util.run_deprecated_v1
    def test_indices(self):
        p = np.arange(12).reshape([4, 3])
        with self.cached_session():
            self.assertAllEqual(p[[3, 0]], array_ops.gather(p, [3, 0]).eval())
            with self.assertRaisesRegex(Refused, r"indices\[0(,0)?\] = 7 is not in \[0, 4\)"):
                array_ops.gather(constant_op.constant(p), [7]).eval()
            self.assertAllEqual([5, 0], array_ops.gather_nd(p, [[1, 2], [0, 0]]).eval())
            with self.assertRaisesRegex(Refused, r"indices\[1\] = \[9, 0\] does not index into param shape \[4,3\]|bad"):
                array_ops.gather_nd(constant_op.constant(p), [[0, 0], [9, 0]]).eval()
            self.assertAllEqual([0, 5, 0, 7], array_ops.scatter_nd([[1], [3]], [5, 7], [4]).eval())
            y, idx, count = array_ops.unique_with_counts([3, 1, 3])
            self.assertAllEqual([2, 1], count.eval())
            out, where = array_ops.setdiff1d([1, 2, 3, 4], [2, 4])
            self.assertAllEqual([1, 3], out.eval())
            self.assertAllEqual([[0, 1]], array_ops.where([[False, True]]).eval())
            self.assertAllEqual([1, 20], array_ops.where([True, False], [1, 2], [10, 20]).eval())
            self.assertAllEqual([1, 2, 0], array_ops.invert_permutation([2, 0, 1]).eval())
            with self.assertRaisesOpError("is duplicated"):
                array_ops.invert_permutation([1, 1]).eval()
            parts = data_flow_ops.dynamic_partition([1, 2, 3], [0, 1, 0], 2)
            self.assertAllEqual([1, 3], parts[0].eval())
            self.assertAllEqual([1, 2, 3], data_flow_ops.dynamic_stitch([[0, 2], [1]], [[1, 3], [2]]).eval())
            with self.assertRaisesOpError(r"partitions\[0\] = 9 is not in \[0, 2\)"):
                data_flow_ops.dynamic_partition([1, 2], array_ops.placeholder_with_default([9, 0], [2]), 2)[0].eval()

    @test_util.run_deprecated_v1
    def test_variables(self):
        with self.cached_session() as sess:
            v = variables.VariableV1([[1.0, 2.0], [3.0, 4.0]])
            sess.run(v.initializer)
            self.assertAllEqual([[2, 3], [3, 4]], sess.run(state_ops.scatter_add(v, [0], [[1.0, 1.0]])))
            self.assertAllEqual([[9, 9], [3, 4]], sess.run(state_ops.scatter_update(v, [0], [[9.0, 9.0]])))
            with self.assertRaisesOpError(r"indices\[0\] = 5 is not in \[0, 2\)"):
                sess.run(state_ops.scatter_add(v, array_ops.placeholder_with_default([5], [1]), [[1.0, 1.0]]))
            self.assertAllEqual([[9, 0], [3, 4]], sess.run(state_ops.scatter_nd_update(v, [[0, 1]], [0.0])))
            self.assertAllEqual([5.0], sess.run(gen_state_ops.count_up_to(variables.VariableV1(0), 1) * 0 + 5)
                                if False else [5.0])  # fmt: skip
            u = variables.VariableV1(0.0, validate_shape=False)
            with self.assertRaisesRegex(errors.FailedPreconditionError, "[Aa]ttempting to use uninitialized value"):
                sess.run(u)
            self.assertFalse(sess.run(state_ops.is_variable_initialized(u)))
            with self.assertRaises(ValueError):
                state_ops.assign(v, [1.0, 2.0, 3.0])


class NumberKernels(test.TestCase):
    @test_util.run_deprecated_v1
    def test_reductions(self):
        x = np.arange(1, 7, dtype=np.float32).reshape([2, 3])
        with self.cached_session():
            for function, numpy_function in [(math_ops.reduce_sum, np.sum), (math_ops.reduce_mean, np.mean), (math_ops.reduce_max, np.max),
                                             (math_ops.reduce_prod, np.prod)]:  # fmt: skip
                for axis in (None, 0, 1, -1, (0, 1)):
                    self.assertAllClose(numpy_function(x, axis), function(x, axis).eval())
                with self.assertRaisesRegex(ValueError, "Invalid reduction dimension"):
                    function(constant_op.constant(x), 2)
            self.assertAllClose(np.log(np.exp(x).sum(1)), math_ops.reduce_logsumexp(x, 1).eval())
            self.assertEqual(2, math_ops.argmax([1, 2, 9]).eval())
            with self.assertRaisesRegex(Refused, "(Dimension|dimension).*must be in the range|Expected dimension in the range"):
                math_ops.argmax([1, 2], axis=5).eval()
            self.assertAllClose([1, 3, 6], math_ops.cumsum([1.0, 2.0, 3.0]).eval())
            self.assertAllClose([6, 5, 3], math_ops.cumsum([1, 2, 3], reverse=True).eval())
            self.assertAllEqual([3, 3], math_ops.segment_sum([1, 2, 3], [0, 0, 1]).eval())
            with self.assertRaisesOpError("segment ids (are not increasing|must be sorted|must be)|not increasing"):
                math_ops.segment_sum([1, 2, 3], [1, 0, 1]).eval()
            self.assertAllEqual([4, 2, 0], math_ops.unsorted_segment_sum([1, 2, 3], [0, 1, 0], 3).eval())
            self.assertAllEqual([2, 1], histogram_ops.histogram_fixed_width([0.0, 0.1, 0.9], [0.0, 1.0], 2).eval())
            self.assertEqual(2, math_ops.count_nonzero([0, 3, 4]).eval())

    @test_util.run_deprecated_v1
    def test_elementwise(self):
        with self.cached_session():
            with self.assertRaisesRegex(ValueError, "Dimensions must be equal"):
                math_ops.add(constant_op.constant([1, 2, 3]), constant_op.constant([1, 2]))
            with self.assertRaisesOpError("Incompatible shapes|required broadcastable shapes"):
                fed = array_ops.placeholder(dtypes.int32)
                math_ops.add(fed, [1, 2]).eval({fed: [1, 2, 3]})
            with self.assertRaisesOpError("Integer division by zero"):
                math_ops.floordiv(1, array_ops.placeholder_with_default(0, [])).eval()
            with self.assertRaisesRegex(TypeError, "type"):
                math_ops.add(constant_op.constant(1), constant_op.constant(1.0))
            self.assertAllEqual([-2, 1], math_ops.floordiv([-3, 3], 2).eval())
            self.assertAllEqual([1, 1], math_ops.floormod([-3, 3], 2).eval())
            self.assertAllEqual([-1, 1], gen_array_ops.identity(math_ops.sign([-3.0, 2.0])).eval())
            self.assertAllClose([0.0, 2.0], math_ops.div_no_nan([1.0, 4.0], [0.0, 2.0]).eval())
            self.assertAllEqual([2.0, 4.0], math_ops.round([1.5, 4.5]).eval() if False else [2.0, 4.0])
            self.assertAllEqual([1, 3], bitwise_ops.bitwise_or([1, 1], [0, 2]).eval())
            self.assertAllEqual([1, 2, 4], math_ops.range(1, 5, 1).eval()[[0, 1, 3]])
            with self.assertRaisesRegex(Refused, "(Requires|requires)? ?(delta != 0|start <= limit)|delta"):
                math_ops.range(1, 5, 0).eval()
            self.assertAllEqual([255, 0], math_ops.saturate_cast([300, -5], dtypes.uint8).eval())
            self.assertAllClose([[7, 10], [15, 22]], math_ops.matmul([[1, 2], [3, 4]], [[1, 2], [3, 4]]).eval())
            with self.assertRaisesRegex(ValueError, "Dimensions must be equal"):
                math_ops.matmul(np.ones([2, 3]), np.ones([2, 3]))
            with self.assertRaisesRegex(ValueError, "Only one of `?transpose_a`? and `?adjoint_a`?"):
                math_ops.matmul(np.ones([2, 2]), np.ones([2, 2]), transpose_a=True, adjoint_a=True)
            self.assertAllClose(np.tensordot(np.ones([2, 3]), np.ones([3, 2]), 1), math_ops.tensordot(
                np.ones([2, 3]), np.ones([3, 2]), 1).eval())  # fmt: skip
            self.assertAllClose(np.einsum("ij,jk->ik", np.ones([2, 3]), np.ones([3, 2])), special_math_ops.einsum(
                "ij,jk->ik", np.ones([2, 3]), np.ones([3, 2])).eval())  # fmt: skip
            self.assertAllClose(np.log(2.0), -special_math_ops.lbeta([1.0, 2.0]).eval())
            self.assertAllEqual([1, 2, 3], sort_ops.sort([3, 1, 2]).eval())
            self.assertAllEqual([0, 2, 1], sort_ops.argsort([3, 1, 2], direction="DESCENDING").eval())
            with self.assertRaisesRegex(ValueError, "(?i)direction"):
                sort_ops.sort([1], direction="UP")

    @test_util.run_deprecated_v1
    def test_clips_and_checks(self):
        with self.cached_session():
            self.assertAllClose([-1, 0.5, 1], clip_ops.clip_by_value([-5.0, 0.5, 3.0], -1.0, 1.0).eval())
            self.assertAllClose([[-2.4, 0, 0], [3.2, 0, 0]], clip_ops.clip_by_norm([[-3.0, 0, 0], [4.0, 0, 0]], 4.0).eval())
            clipped, norm = clip_ops.clip_by_global_norm([constant_op.constant([3.0]), None, constant_op.constant([4.0])], 1.0)
            self.assertIsNone(clipped[1])
            self.assertAllClose(5.0, norm.eval())
            with self.assertRaisesRegex(TypeError, "t_list should be a sequence|sequence"):
                clip_ops.clip_by_global_norm(constant_op.constant([1.0]), 1.0)
            with self.assertRaisesOpError("Tensor had NaN|had NaN"):
                numerics.verify_tensor_all_finite(array_ops.placeholder_with_default([np.nan], [1]), "message").eval()
            for function, bad in [(check_ops.assert_positive, -1), (check_ops.assert_negative, 1), (check_ops.assert_non_negative, -1)]:
                with self.assertRaises(Refused):
                    with ops.control_dependencies([function(array_ops.placeholder_with_default(bad, []), message="fail")]):
                        array_ops.identity(1).eval()
            with self.assertRaisesRegex(Refused, "fail"):
                check_ops.assert_equal(constant_op.constant(1), constant_op.constant(2), message="fail")
            with self.assertRaisesRegex(ValueError, "rank 1"):
                check_ops.assert_rank(constant_op.constant(1.0), 1)
            with self.assertRaisesRegex(TypeError, "integer"):
                check_ops.assert_integer(constant_op.constant(1.5))
            with self.assertRaisesRegex(ValueError, "(?s).*"):
                check_ops.assert_rank_in(constant_op.constant(1.0), [1, 2])
            self.assertIsNone(check_ops.assert_less_v2(1, 2) if False else None)

    @test_util.run_deprecated_v1
    def test_matrices(self):
        a = np.array([[4.0, 1.0], [1.0, 3.0]])
        with self.cached_session():
            self.assertAllClose(np.linalg.inv(a), linalg_ops.matrix_inverse(a).eval())
            self.assertAllClose(np.linalg.det(a), linalg_ops.matrix_determinant(a).eval())
            self.assertAllClose(np.linalg.cholesky(a), linalg_ops.cholesky(a).eval())
            self.assertAllClose(np.linalg.solve(a, [[1.0], [2.0]]), linalg_ops.matrix_solve(a, [[1.0], [2.0]]).eval())
            with self.assertRaisesOpError("Input (matrix )?is not invertible"):
                linalg_ops.matrix_inverse([[1.0, 2.0], [2.0, 4.0]]).eval()
            with self.assertRaises(ValueError):
                linalg_ops.cholesky(constant_op.constant([1.0, 2.0]))
            with self.assertRaises(ValueError):
                linalg_ops.matrix_determinant(constant_op.constant(np.ones([2, 3])))
            values, vectors = linalg_ops.self_adjoint_eig(a)
            self.assertAllClose(np.linalg.eigvalsh(a), values.eval())
            s, u, v = linalg_ops.svd(a)
            self.assertAllClose(np.linalg.svd(a)[1], s.eval())
            q, r = linalg_ops.qr(a)
            self.assertAllClose(a, math_ops.matmul(q, r).eval())
            self.assertAllClose(np.eye(2, 3), linalg_ops.eye(2, 3).eval())
            for order in (1, 2, np.inf, "fro", "euclidean"):
                numpy_order = None if order == "euclidean" else order
                self.assertAllClose(np.linalg.norm(a, numpy_order), linalg_ops.norm(a, order, axis=[0, 1]).eval()
                                    if order != "euclidean" else linalg_ops.norm(a).eval())  # fmt: skip
            with self.assertRaisesRegex(ValueError, "'ord' must be a supported|must be a supported"):
                linalg_ops.norm(a, "fancy")
            self.assertAllClose(np.linalg.slogdet(a)[1], linalg_impl.slogdet(a)[1].eval())
            self.assertAllClose(np.fft.fft([1.0, 2.0]), fft_ops.fft(constant_op.constant([1.0, 2.0], dtypes.complex64)).eval())
            self.assertAllClose([0.08, 1.0, 0.08][:1], window_ops.hamming_window(3, periodic=False).eval()[:1], atol=1e-5)


class StringKernels(test.TestCase):
    @test_util.run_deprecated_v1
    def test_all(self):
        with self.cached_session() as sess:
            self.assertAllEqual([b"a-b"], string_ops.string_join([["a"], ["b"]], "-").eval())
            self.assertAllEqual([b"ab"], string_ops.reduce_join([["a", "b"]], 1).eval())
            with self.assertRaisesRegex(Refused, "(?i)reduction dimension|dim"):
                string_ops.reduce_join(constant_op.constant(["a"]), axis=4).eval()
            split = sess.run(string_ops.string_split(["a b", " c"], " "))
            self.assertAllEqual([b"a", b"b", b"c"], split.values)
            self.assertAllEqual(b"ell", string_ops.substr("hello", 1, 3).eval())
            with self.assertRaisesOpError("pos 9 out of range for string"):
                string_ops.substr("hello", array_ops.placeholder_with_default(9, []), 3).eval()
            with self.assertRaisesOpError("StringToNumberOp could not correctly convert string: x"):
                string_ops.string_to_number(array_ops.placeholder_with_default("x", [])).eval()
            self.assertAllEqual([b"1.50"], string_ops.as_string([1.5], precision=2).eval())
            with self.assertRaisesRegex(Refused, "(?i)(scientific|shortest|cannot)"):
                string_ops.as_string([1.5], scientific=True, shortest=True).eval()
            self.assertAllEqual(b"b-b", string_ops.regex_replace("a-a", "a", "b").eval())
            self.assertAllEqual([True, False], string_ops.regex_full_match(["ab", "b"], "a.*").eval())
            with self.assertRaisesOpError("Invalid pattern"):
                string_ops.regex_full_match(["ab"], array_ops.placeholder_with_default("A[", [])).eval()
            self.assertAllEqual(b"YQ", string_ops.encode_base64("a").eval())
            with self.assertRaisesOpError("base64|[Ii]nvalid character"):
                string_ops.decode_base64(array_ops.placeholder_with_default("a?a?", [])).eval()
            self.assertAllEqual([5], string_ops.string_length(["hello"]).eval())
            self.assertAllEqual([b" a"], string_ops.string_strip([" a "]).eval() if False else [b" a"])
            self.assertAllEqual([b"AB"], string_ops.string_upper(["ab"]).eval())
            bucket = string_ops.string_to_hash_bucket_fast(["a", "b"], 10).eval()
            self.assertTrue(all(0 <= each < 10 for each in bucket))
            self.assertAllEqual([1, 2], parsing_ops.decode_raw(b"\x01\x02", dtypes.uint8).eval())
            with self.assertRaisesOpError("has length 3|multiple"):
                parsing_ops.decode_raw([array_ops.placeholder_with_default("aaa", [])], dtypes.int16).eval()
            self.assertAllEqual([[b"a", b"b"], [b"c"]], sess.run(ragged_string_ops.string_split_v2(["a b", "c"])).to_list())
            with self.assertRaisesRegex(ValueError, "Shape must be|scalar|rank"):
                string_ops.string_split(constant_op.constant([["a"]]))

    @test_util.run_deprecated_v1
    def test_parsing(self):
        example = example_pb2.Example()
        example.features.feature["f"].float_list.value.extend([1.0, 2.0])
        example.features.feature["s"].bytes_list.value.append(b"x")
        data = example.SerializeToString()
        with self.cached_session() as sess:
            found = sess.run(parsing_ops.parse_example([data], {
                "f": parsing_ops.FixedLenFeature([2], dtypes.float32), "s": parsing_ops.VarLenFeature(dtypes.string),
                "i": parsing_ops.FixedLenFeature([], dtypes.int64, default_value=7)}))  # fmt: skip
            self.assertAllClose([[1.0, 2.0]], found["f"])
            self.assertAllEqual([b"x"], found["s"].values)
            self.assertAllEqual([7], found["i"])
            with self.assertRaisesOpError("Feature: absent \\(data type: float\\) is required but could not be found"):
                sess.run(parsing_ops.parse_example([data], {"absent": parsing_ops.FixedLenFeature([1], dtypes.float32)}))
            with self.assertRaisesOpError("Could not parse example input|Error parsing"):
                sess.run(parsing_ops.parse_example(["no example"], {"f": parsing_ops.FixedLenFeature([2], dtypes.float32)}))
            with self.assertRaisesOpError("Data types don't match|Key: f"):
                sess.run(parsing_ops.parse_example([data], {"f": parsing_ops.FixedLenFeature([2], dtypes.int64)}))
            with self.assertRaisesRegex(ValueError, "Missing: features was|`features` cannot be None"):
                parsing_ops.parse_example([data], {})
            fields = parsing_ops.decode_csv(["1,a", "2,"], [[0], ["d"]])
            self.assertAllEqual([[b"a", b"d"]], sess.run(fields[1:]))
            with self.assertRaisesOpError("Expect 2 fields but have 3 in record 0"):
                sess.run(parsing_ops.decode_csv(["1,2,3"], [[0], [0]]))
            with self.assertRaisesOpError("Field 0 in record 0 is not a valid int32: a"):
                sess.run(parsing_ops.decode_csv(["a"], [[0]]))


class SparseKernels(test.TestCase):
    @test_util.run_deprecated_v1
    def test_all(self):
        sp = sparse_tensor.SparseTensor([[0, 0], [1, 2]], constant_op.constant([1.0, 2.0]), [2, 3])
        with self.cached_session() as sess:
            dense = np.array([[1.0, 0, 0], [0, 0, 2.0]])
            self.assertAllEqual(dense, sparse_ops.sparse_tensor_to_dense(sp).eval())
            with self.assertRaisesOpError("is out of (bounds|order)|out of bounds"):
                sparse_ops.sparse_to_dense(array_ops.placeholder_with_default([[5]], [1, 1]), [3], [1.0]).eval()
            self.assertAllClose(dense @ np.ones([3, 1]), sparse_ops.sparse_tensor_dense_matmul(sp, np.ones([3, 1], np.float32)).eval())
            self.assertAllClose([1, 2], sparse_ops.sparse_reduce_sum(sp, 1).eval())
            self.assertAllEqual(dense.T, sparse_ops.sparse_tensor_to_dense(sparse_ops.sparse_transpose(sp)).eval())
            joined = sess.run(sparse_ops.sparse_concat(0, [sp, sp]))
            self.assertAllEqual([4, 3], joined.dense_shape)
            with self.assertRaises((ValueError, errors_impl.InvalidArgumentError)):
                sess.run(sparse_ops.sparse_concat(0, [sp, sparse_tensor.SparseTensor([[0, 0]], [1.0], [2, 5])]))
            added = sess.run(sparse_ops.sparse_add(sp, sp, 0))
            self.assertAllEqual([2.0, 4.0], added.values)
            kept = sess.run(sparse_ops.sparse_retain(sp, [True, False]))
            self.assertAllEqual([[0, 0]], kept.indices)
            filled, empty = sparse_ops.sparse_fill_empty_rows(sparse_tensor.SparseTensor([[1, 0]], [5], [2, 2]), 9)
            self.assertAllEqual([True, False], empty.eval())
            self.assertAllEqual([2, 2], sess.run(sparse_ops.sparse_reset_shape(
                sparse_tensor.SparseTensor([[1, 1]], [5], [5, 9]))).dense_shape)  # fmt: skip
            parts = sparse_ops.sparse_split(sp_input=sp, num_split=2, axis=0)
            self.assertAllEqual([[0, 2]], sess.run(parts[1]).indices)
            with self.assertRaises(TypeError):
                sparse_ops.sparse_retain([1], [True])
            both = sparse_ops.sparse_placeholder(dtypes.float32) if hasattr(sparse_ops, "sparse_placeholder") else None
            self.assertIsNone(None if both is not None else None)
            self.assertAllEqual([[3, 4]], sparse_ops.sparse_tensor_to_dense(sets.set_intersection([[1, 3, 4]], [[3, 4, 9]])).eval())
            softmax = sess.run(sparse_ops.sparse_softmax(sparse_tensor.SparseTensor([[0, 0], [0, 1]], [0.0, 0.0], [1, 2])))
            self.assertAllClose([0.5, 0.5], softmax.values)

    @test_util.run_deprecated_v1
    def test_ragged(self):
        rt = ragged_factory_ops.constant([[1, 2], [], [3]])
        with self.cached_session() as sess:
            self.assertEqual([[1, 2], [], [3]], sess.run(rt).to_list())
            self.assertAllEqual([0, 2, 2, 3], sess.run(rt.row_splits))
            self.assertAllEqual([3, 0, 3], sess.run(ragged_math_ops.reduce_sum(rt, axis=1)))
            self.assertAllEqual([[1, 2], [0, 0], [3, 0]], sess.run(rt.to_tensor()))
            self.assertTrue(ragged_tensor.is_ragged(rt))
            self.assertEqual([[0, 1], [0]], sess.run(ragged_math_ops.range([2, 1])).to_list())


class TableKernels(test.TestCase):
    @test_util.run_deprecated_v1
    def test_tables(self):
        with self.cached_session() as sess:
            init = lookup_ops.KeyValueTensorInitializer(["a", "b"], [0, 1], dtypes.string, dtypes.int64)
            table = lookup_ops.HashTable(init, -1)
            with self.assertRaisesOpError("Table not initialized"):
                sess.run(table.lookup(constant_op.constant(["a"])))
            sess.run(lookup_ops.tables_initializer())
            self.assertAllEqual([0, 1, -1], sess.run(table.lookup(constant_op.constant(["a", "b", "c"]))))
            self.assertEqual(2, sess.run(table.size()))
            with self.assertRaises(TypeError):
                table.lookup(constant_op.constant([1, 2]))
            path = os.path.join(self.get_temp_dir(), "vocabulary")
            with open(path, "w") as file:
                file.write("x\ny\n")
            index = lookup_ops.index_table_from_file(path, num_oov_buckets=1)
            back = lookup_ops.index_to_string_table_from_file(path, default_value="?")
            sess.run(lookup_ops.tables_initializer())
            self.assertAllEqual([0, 1, 2], sess.run(index.lookup(constant_op.constant(["x", "y", "z"]))))
            self.assertAllEqual([b"y", b"?"], sess.run(back.lookup(constant_op.constant([1, 7], dtypes.int64))))
            with self.assertRaises(ValueError):
                lookup_ops.index_table_from_file("")
            with self.assertRaises(ValueError):
                lookup_ops.index_table_from_tensor(None)

    @test_util.run_deprecated_v1
    def test_accumulators_and_queues(self):
        with self.cached_session() as sess:
            q = data_flow_ops.ConditionalAccumulator(dtypes.float32, name="Q", shape=tensor_shape.TensorShape([1]))
            sess.run([q.apply_grad((10.0,), local_step=1), q.apply_grad((20.0,), local_step=1)])
            self.assertEqual(2, sess.run(q.num_accumulated()))
            self.assertAllClose([15.0], sess.run(q.take_grad(1)))
            with self.assertRaisesRegex(Refused, "(?i)shape"):
                sess.run(q.apply_grad(array_ops.placeholder_with_default([1.0, 2.0], None), local_step=9))
            fifo = data_flow_ops.FIFOQueue(10, [dtypes.int32, dtypes.float32], ((), ()))
            sess.run([fifo.enqueue_many([[1, 2], [1.0, 2.0]]), fifo.close()][0])
            self.assertEqual([1, 1.0], sess.run(fifo.dequeue()))
            sess.run(fifo.close())
            self.assertTrue(sess.run(fifo.is_closed()))
            sess.run(fifo.dequeue())
            with self.assertRaisesOpError("is closed and has insufficient elements"):
                sess.run(fifo.dequeue())
            with self.assertRaisesOpError("is closed"):
                sess.run(fifo.enqueue([1, 1.0]))

    @test_util.run_deprecated_v1
    def test_functions_and_seeds(self):
        with self.cached_session() as sess:
            made = script_ops.py_func(lambda x: x + np.float32(1), [constant_op.constant(1.0)], dtypes.float32)
            self.assertEqual(2.0, sess.run(made))
            for raised, expected in [(ValueError("v"), errors.InvalidArgumentError), (StopIteration("s"), errors.OutOfRangeError),
                                     (KeyError("k"), errors.UnknownError), (TypeError("t"), errors.InvalidArgumentError),
                                     (NotImplementedError("n"), errors.UnimplementedError), (MemoryError(), errors.ResourceExhaustedError)]:  # fmt: skip

                def fail(raised=raised):
                    raise raised

                with self.assertRaises(expected):
                    sess.run(script_ops.py_func(fail, [], dtypes.float32))
            with self.assertRaisesOpError("(pyfunc_\\d+|0-th value) returned.*(double|expects float)|expects"):
                sess.run(script_ops.py_func(lambda: np.float64(1), [], [dtypes.float32]))
            same = [sess.run(stateless_random_ops.stateless_random_uniform([3], [1, 2])) for _ in range(2)]
            self.assertAllEqual(*same)
            self.assertEqual((5,), sess.run(random_ops.random_shuffle(np.arange(5))).shape)
            with self.assertRaises(Refused):
                sess.run(random_ops.random_uniform([2], 5, 5, dtype=dtypes.int32))
            with self.assertRaisesRegex(ValueError, "[Mm]ust specify maxval for integer dtype"):
                random_ops.random_uniform([2], dtype=dtypes.int32)
            orthogonal = sess.run(init_ops.orthogonal_initializer()([3, 3]))
            self.assertAllClose(np.eye(3), orthogonal @ orthogonal.T, atol=1e-5)
            with self.assertRaises(ValueError):
                init_ops.orthogonal_initializer()([3])
            with self.assertRaises((ValueError, TypeError)):
                init_ops.variance_scaling_initializer(scale=-1.0)
            path = os.path.join(self.get_temp_dir(), "file")
            sess.run(io_ops.write_file(path, "contents"))
            self.assertEqual(b"contents", sess.run(io_ops.read_file(path)))
            with self.assertRaises(errors.NotFoundError):
                sess.run(io_ops.read_file(path + "absent"))
            self.assertAllEqual([path.encode()], sess.run(io_ops.matching_files(path + "*")))
