"""Elementwise functions: operands of all kinds, broadcasting, dtypes that fit and that do not, operators."""

from __future__ import annotations

from tests.interop.argument_forms.forms import each, forms, inputs

_ONE = (
    "abs acos acosh asin asinh atan atanh cos cosh digamma erf erfc exp expm1 floor lgamma log log1p log_sigmoid "
    "negative reciprocal rint round rsqrt sigmoid sign sin sinh sqrt square tan tanh is_nan is_inf is_finite "
    "real imag "
    "conj angle"
)
_TWO = (
    "add subtract multiply divide truediv floordiv mod floormod maximum minimum pow squared_difference div realdiv "
    "truncatediv truncatemod atan2 div_no_nan"
)
_COMPARING = "equal not_equal less less_equal greater greater_equal"
_PAIRS = [
    "1., 2.", "T(3), 2", "2, T(3.)", "T([1., 2.]), [3., 4.]", "T([1., 2.]), np.array([3., 4.])",
    "np.array([1., 2.]), np.array([3., 4.])", "T([[1., 2.]]), T([[1.], [2.]])", "P([1., 2.]), 2.",
    "Q([1., 2.]), P(2.)",
    "T([1., 2.]), T([1., 2., 3.])", "T(1), T(1.)", "T(1, tf.int64), 2", "T(7, tf.uint8), T(2, tf.uint8)",
    "T(1, tf.int8), T(2, tf.int8)", "T([-7, 7]), T([2, -2])", "T([True]), T([False])", "T(['a']), T(['b'])",
    "T(1 + 2j), T(2 + 1j)", "V([1., 2.]), 2.", "V(1.), V(2.)", "tf.zeros([0, 2]), 1.",
    "S([[1., 2.]], [None, 2]), [1., 2.]",
    "T(1.5, tf.float16), 2.", "T(1.5, tf.float64), np.float32(2)", "T(2), 2.5", "T(2), np.int64(3)", "None, 1",
]

CASES = [
    *each(_ONE, "tf.{f}({x})",
          x=["T([0.5, 0.25])", "P(0.5)", "0.5", "np.array([0.5])", "T(0.5, tf.float16)", "T([1, 2])", "V([0.5])"]),
    *each("abs sqrt exp negative sign square tanh sigmoid conj real imag angle log reciprocal", "tf.math.{f}({x})",
          x=["T(1 + 2j)", "T([1 + 2j], tf.complex128)", "T([-1., 1.], tf.bfloat16)", "T([True])", "T(['a'])",
              "T([3], tf.int64)"]),
    *each(_TWO, "tf.{f}({pair})", pair=_PAIRS),
    *each(_COMPARING, "tf.{f}({pair})", pair=_PAIRS),
    *each("logical_and logical_or logical_xor", "tf.{f}({pair})",
          pair=["True, False", "T([True, False]), True", "P(True), [True, False]", "T(1), T(1)",
              "[True], np.array([False])"]),
    *forms("tf.logical_not({x})", x=[*inputs("[True, False]"), "T(1)", "True"]),
    *forms("({a}) {op} ({b})", op=["+", "-", "*", "/", "//", "%", "**", "<", ">=", "@"],
           a=["T([[1., 2.], [3., 4.]])", "Q([[5., 6.], [7., 8.]])"],
           b=["T([[1., 2.], [3., 4.]])", "np.ones([2, 2])", "[[1., 2.], [3., 4.]]", "2.", "2", "np.float64(2)",
               "None"]),
    *forms("({b}) {op} ({a})", op=["+", "-", "*", "/", "//", "%", "**", "@"], a=["T([[1., 2.], [3., 4.]])",
        "V([[1., 2.], [3., 4.]])"],
           b=["np.ones([2, 2], np.float32)", "2.", "[[1., 2.], [3., 4.]]"]),
    *forms("{op}T([{v}])", op=["-", "abs", "~", "+"], v=["1.", "True", "1", "'a'"]),
    *forms("({a}) {op} ({b})", op=["&", "|", "^"], a=["T([True, False])", "T([1, 2])"], b=["T([True, True])", "True",
        "T([3, 4])", "[1, 2]"]),
    *forms("tf.cast({x}, {to})", x=["T([1.7, -1.7])", "T([1, 0])", "[1.5]", "T([True])", "P([2.5])", "T(1 + 2j)", "3",
        "np.array([2.])"],
           to=["tf.int32", "'float64'", "np.float16", "float", "bool", "tf.uint8", "tf.complex64", "tf.string"]),
    *each("to_float to_double to_int32 to_int64 to_bfloat16 to_complex64 to_complex128", "tf.{f}({x})",
          x=["T([1.5, 2])", "[1, 2]", "T([True])", "P(3)", "T(['a'])"]),
    *forms("tf.saturate_cast({x}, tf.{to})", x=["T([300., -5.])", "T([300, -5])"], to=["uint8", "int8", "int32",
        "float32"]),
    *forms("tf.clip_by_value({x}, {lo}, {hi})", x=[*inputs("[-2., 0.5, 3.]", "np.float32"), "T([-2, 5])"],
           lo=["-1.", "0", "T(-1.)", "[-1., 0., 1.]"], hi=["1.", "2", "T([1., 1., 1.])"]),
    *forms("tf.clip_by_norm({x}, {n}{more})", x=["T([3., 4.])", "P([[3., 4.]])", "[3., 4.]"], n=["1.", "T(2.)", "10"],
           more=["", ", axes=[0]", ", axes=0", ", name='c'"]),
    *forms("tf.clip_by_average_norm({x}, {n})", x=["T([3., 4.])", "P([3., 4.])"], n=["1.", "T(0.5)"]),
    *forms("tf.clip_by_global_norm({x}, {n}{more})", n=["1.", "T(100.)"],
           x=["[T([3., 4.]), None, T([1.])]", "(P([3.]), T([4.]))", "T([3.])", "[V([3.])]"], more=["",
               ", use_norm=T(5.)"]),
    *forms("tf.global_norm({x})", x=["[T([3., 4.])]", "[T(3.), None]", "[]", "T(3.)"]),
    *each("range", "tf.{f}({x})",
          x=["5", "T(5)", "1, 5", "1, 10, 3", "10, 0, -2", "0., 1., 0.25", "5, dtype=tf.float32", "start=1, limit=4",
              "P(3)",
             "3, delta=1", "0, 5, 0", "1, T(4, tf.int64)", "5.5", "np.int64(3)", "1, 5.", "limit=4, start=1, delta=2",
             "5, 0", "name='r', limit=3, start=0"]),
    *each("linspace lin_space", "tf.{f}({x})",
          x=["0., 1., 5", "T(0.), 1., 3", "0., 10., T(3)", "0, 10, 3", "1., 2., num=4", "start=0., stop=1., num=2",
              "T(0., tf.float64), T(1., tf.float64), 3", "0., 1., 1", "P(0.), 1., P(4)", "0., 1., 0"]),
    *forms("tf.complex({a}, {b})", a=["1.", "T([1., 2.])", "np.array([1., 2.])", "P(1.)", "T(1., tf.float64)",
        "T(1)"], b=["2.", "T([3., 4.])", "np.ones(2)"]),
    *forms("tf.polyval([{c}], {x})", c=["1., 2.", "T(1.), T(2.)", "3.", ""], x=["T([1., 2.])", "2.", "P(3.)"]),
    *each("betainc", "tf.{f}({x})", x=["1., 2., 0.5", "T([1., 2.]), 2., 0.5", "P(1.), T(2.), [0.5]",
        "T(1.), T([1., 2.]), T([.5, .5])"]),
    *each("igamma igammac polygamma zeta", "tf.{f}({x})", x=["1., 2.", "T([1., 2.]), 2.", "P(1.), [2.]",
        "2., T([1., 3.], tf.float64)", "1, 2"]),
    *each("bessel_i0 bessel_i1 bessel_i0e bessel_i1e xlogy xlog1py erfinv ndtri softplus softsign "
          "multiply_no_nan is_non_decreasing is_strictly_increasing lbeta invert_permutation zero_fraction nextafter",
          "tf.math.{f}({x})", x=["T([0.5, 0.25])", "T([0., 2.]), T([1., 2.])", "P([0.5])", "0.5", "[0.5, 0.75]",
          "T([1, 0])", "np.array([0.5])"]),
    *each("bitwise_and bitwise_or bitwise_xor left_shift right_shift", "tf.bitwise.{f}({x})",
          x=["T([5, 3]), T([1, 2])", "T([5], tf.uint8), 3", "5, 3", "T([5.]), T([1.])", "P([5]), [1]",
              "T([5, 3], tf.int64), T([[1], [2]], tf.int64)"]),
    *forms("tf.bitwise.invert({x})", x=["T([5, 3])", "T([5], tf.uint8)", "5", "T([1.])"]),
    *forms("tf.where({x})", x=["T([True, False, True])", "[[True, False]]", "P([True])", "T([0, 1])", "T([0., 2.])",
        "T(True)", "np.array([True])"]),
    *forms("tf.where({c}, {x}, {y})", c=["T([True, False])", "[True, False]", "T(True)", "P([True, False])",
        "Q([False, True])"],
           x=["T([1., 2.])", "[1., 2.]", "T([[1.], [2.]])", "1."], y=["T([3., 4.])", "T([[3.], [4.]])", "2.",
               "T([1, 2])"]),
    *each("where_v2", "tf.{f}({x})", x=["T([True, False]), 1., 2.", "T(True), [1., 2.], 0.",
        "P([True, False]), T([1., 2.]), [[0.], [3.]]", "T([True])", "[True], [1], [2.]"]),
    *forms("tf.unravel_index({x}, {d})", x=["[5, 7]", "T(3)", "Q([1, 2])"], d=["[3, 4]", "T([3, 4])", "P([3, 4])"]),
    *forms("tf.math.top_k({x})", x=["T([1., 3., 2.])", "T([[1, 3], [4, 2]]), 2", "P([1., 2.]), T(1)",
        "[1., 2.], k=1, sorted=False", "T([1.]), 2", "T(1.)"]),
    *forms("tf.math.in_top_k({p}, {t}, {k})", p=["T([[.1, .9], [.8, .2]])", "[[.1, .9], [.8, .2]]",
        "P([[.1, .9], [.8, .2]])"], t=["[1, 1]", "T([0, 0], tf.int64)"], k=["1", "T(2)", "k=1"]),
]
