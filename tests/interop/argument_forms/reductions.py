"""Reductions: axes in all forms, keep_dims and its newer name, dtypes, ranks known only to the step."""

from __future__ import annotations

from tests.interop.argument_forms.forms import each, forms, inputs, tensors

_NUMBERS = inputs("[[1., 2., 3.], [4., 5., 6.]]", "np.float32")
_AXES = ["None", "0", "-1", "[0]", "[0, 1]", "[-1, 0]", "[]", "(1,)", "np.array([1])", "T(1)", "T([0])", "P(1)", "2"]

CASES = [
    *each("reduce_sum reduce_mean reduce_max reduce_prod", "tf.{f}({x}, axis={axis})", x=_NUMBERS, axis=_AXES),
    *each(
        "reduce_min reduce_logsumexp", "tf.{f}({x}, axis={axis}, keepdims={keep})",
        x=tensors("[[1., 2., 3.], [4., 5., 6.]]"), axis=["None", "0", "-1", "[0, 1]", "T(1)"], keep=["True", "False"],
    ),
    *each(
        "reduce_all reduce_any", "tf.{f}({x}, {axis})",
        x=inputs("[[True, False], [True, True]]"), axis=["None", "0", "-1", "[0, 1]", "axis=1",
            "reduction_indices=0"],
    ),
    *each(
        "reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_logsumexp",
        "tf.{f}(T([[1., 2.], [3., 4.]]), {more})",
        more=["reduction_indices=[1]", "keep_dims=True", "reduction_indices=0, keep_dims=True", "1, True", "name='r'",
              "axis=1, reduction_indices=1", "keepdims=True, keep_dims=True", "axis=3", "axis=[0, 0]", "axis='x'"],
    ),
    *each(
        "reduce_sum reduce_mean reduce_max reduce_min reduce_prod", "tf.{f}(T([[1, 2], [3, 4]], tf.{dtype}), 0)",
        dtype=["int32", "int64", "float16", "float64", "uint8", "int8", "complex64", "bool", "string", "bfloat16"],
    ),
    *each("reduce_sum reduce_max reduce_mean reduce_prod reduce_min", "tf.{f}(tf.zeros([{shape}]), {axis})",
          shape=["0", "0, 3", "2, 0"], axis=["None", "0", "-1"]),
    *each(
        "argmax argmin", "tf.{f}({x}, {axis})", x=_NUMBERS,
        axis=["", "0", "1", "-1", "axis=1", "dimension=0", "T(1)", "output_type=tf.int32", "1, output_type=tf.int32",
            "2"],
    ),
    *each("cumsum cumprod", "tf.{f}({x}, {more})", x=_NUMBERS,
          more=["", "axis=1", "axis=-1", "1, exclusive=True", "0, reverse=True", "axis=T(1)", "axis=2",
              "1, True, True"]),
    *forms("tf.math.cumulative_logsumexp({x}, {more})", x=tensors("[1., 2., 3.]"), more=["", "reverse=True"]),
    *each("reduce_std reduce_variance reduce_euclidean_norm", "tf.math.{f}({x}, {more})", x=_NUMBERS[:4],
          more=["", "axis=0", "axis=[0, 1]", "axis=1, keepdims=True", "-1"]),
    *forms("tf.count_nonzero({x}, {more})", x=_NUMBERS,
           more=["", "axis=0", "axis=[1]", "keep_dims=True", "keepdims=True, axis=1", "dtype=tf.int32",
               "None, None, tf.float32"]),
    *forms("tf.math.count_nonzero({x})", x=["['a', '', 'b']", "[True, False]", "T([1, 0], tf.int64)"]),
    *forms("tf.norm({x}, ord={order}, axis={axis}, keepdims={keep})", x=tensors("[[1., -2.], [3., 4.]]"),
           order=["'euclidean'", "1", "2", "np.inf", "'fro'", "0.5", "3"], axis=["None", "0", "-1", "[0, 1]"],
           keep=["None", "True"]),
    *forms("tf.reduce_sum({x})", x=["5", "3.", "True", "T(2., tf.float64)", "[]", "[[]]", "P(1.)", "np.float16(2)"]),
    *each("segment_sum segment_mean segment_max segment_min segment_prod", "tf.{f}({x}, {ids})",
          x=tensors("[[1., 2.], [3., 4.], [5., 6.]]"), ids=["[0, 0, 1]", "T([0, 2, 2], tf.int64)", "Q([0, 0, 1])",
              "[1, 0, 0]"]),
    *each("unsorted_segment_sum unsorted_segment_mean unsorted_segment_max unsorted_segment_sqrt_n "
          "unsorted_segment_prod",
          "tf.{f}({x}, {ids}, {n})", x=tensors("[[1., 2.], [3., 4.], [5., 6.]]"),
          ids=["[0, 2, 1]", "Q([1, 1, 0])", "[-1, 0, 0]"], n=["3", "T(4)", "num_segments=P(3)",
              "tf.constant(3, tf.int64)"]),
    *each("sparse_segment_sum sparse_segment_mean sparse_segment_sqrt_n", "tf.{f}({x}, {i}, [0, 0, 1]{more})",
          x=tensors("[[1., 2.], [3., 4.]]"), i=["[0, 1, 1]", "T([0, 0, 1], tf.int64)", "Q([0, 1, 0])"],
          more=["", ", num_segments=3", ", name='s'"]),
    *forms("tf.bincount({x}, {more})", x=["[1, 1, 3]", "T([[0, 2]])", "Q([1, 2])", "P([3, 3])"],
           more=["", "minlength=6", "maxlength=2", "dtype=tf.float32", "weights=[1., 2.]", "minlength=T(5)"]),
    *forms("tf.histogram_fixed_width({x}, {r}, {more})", x=tensors("[-1., 0., 1.5, 2., 5., 15.]"),
           r=["[0., 5.]", "T([0., 5.])"], more=["", "nbins=5", "nbins=T(4)", "5, dtype=tf.int64"]),
    *forms("tf.confusion_matrix({a}, {b}, {more})", a=["[0, 1, 2]", "T([0, 1, 2], tf.int64)", "Q([0, 1, 2])"],
           b=["[0, 2, 2]", "P([0, 2, 2])"], more=["", "4", "num_classes=3, dtype=tf.float32", "weights=[1, 2, 3]"]),
    *forms("tf.accumulate_n([{x}, {x}]{more})", x=["T([1., 2.])", "Q([1., 2.])", "[1., 2.]"],
           more=["", ", shape=[2]", ", tensor_dtype=tf.float32"]),
    *forms("tf.add_n({x})", x=["[T([1.]), T([2.])]", "[[1.], [2.]]", "T([1.])", "[]", "(T(1), T(2))", "[T(1), T(1.)]",
                               "[Q([1.]), T([2.])]", "[V(1.), V(2.)]", "T([[1.], [2.]])"]),
]
