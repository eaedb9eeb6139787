"""Matrices: products with transposes, solvers, decompositions; batches, unknown ranks, arrays of other dtypes."""

from __future__ import annotations

from tests.interop.argument_forms.forms import each, forms, inputs, tensors

_SQUARE = inputs("[[4., 1.], [1., 3.]]", "np.float32")

CASES = [
    *forms("tf.matmul({a}, {b}{more})", a=[*_SQUARE, "T([[1, 2], [3, 4]])", "tf.ones([2, 2, 2])"],
        b=["T([[1., 2.], [3., 4.]])", "P([[1., 2.], [3., 4.]])", "np.ones([2, 2])", "T([1., 2.])", "tf.ones([3, 2])"],
        more=["", ", transpose_a=True", ", transpose_b=True, name='m'", ", adjoint_b=True", ", a_is_sparse=True",
        ", transpose_a=True, adjoint_a=True"]),
    *forms("tf.linalg.matvec({a}, {b}{more})", a=_SQUARE, b=["[1., 2.]", "P([1., 2.])", "T([1., 2., 3.])"], more=["",
        ", transpose_a=True"]),
    *forms("tf.tensordot({a}, {b}, {x})", a=_SQUARE, b=["T([[1., 2.], [3., 4.]])", "P([[1., 2.], [3., 4.]])"], x=["1",
        "2", "0", "[[0], [1]]", "[[0, 1], [0, 1]]", "T(1)", "T([[1], [0]])", "[1, 0]", "3", "[[0], [0, 1]]",
        "(1, 1)"]),
    *forms("tf.einsum({e}, {a}, {b})", e=["'ij,jk->ik'", "'ij,jk'", "'ij,ij->'", "'ij,kl->ijkl'", "'ij , jk -> ki'",
        "'...j,jk->...k'", "'ij,jkl->il'", "'i'"], a=_SQUARE[:4], b=["T([[1., 2.], [3., 4.]])", "np.ones([2, 2])",
        "P([[1., 2.], [3., 4.]])"]),
    *each("matrix_determinant matrix_inverse cholesky matrix_square_root trace self_adjoint_eigvals", "tf.{f}({x})",
        x=[*_SQUARE, "tf.eye(2, batch_shape=[3])", "T([[1., 2., 3.]])", "T(1.)", "T([[1, 2], [3, 4]])"]),
    *each("qr svd self_adjoint_eig", "tf.{f}({x})", x=["tf.zeros([2, 2])", "P(np.zeros([2, 2]), tf.float32)",
        "Q(np.zeros([2, 2]), tf.float32)", "T([1.])"]),
    *forms("tf.svd({x}, {a})", x=_SQUARE[2:], a=["compute_uv=False", "full_matrices=True, compute_uv=False"]),
    *each("matrix_solve matrix_triangular_solve cholesky_solve matrix_solve_ls", "tf.{f}({x}, {b})", x=_SQUARE,
        b=["[[1.], [2.]]", "P([[1.], [2.]])", "T([1., 2.])", "tf.ones([3, 1])"]),
    *forms("tf.matrix_triangular_solve({x}, [[1.], [2.]], {a})", x=_SQUARE, a=["lower=False", "True, True",
        "adjoint=True"]),
    *each("logdet slogdet expm logm adjoint matrix_transpose diag_part", "tf.linalg.{f}({x})", x=_SQUARE),
    *forms("tf.linalg.diag({x}{a})", x=["[1., 2.]", "P([1., 2.])", "Q([[1., 2.], [3., 4.]])"], a=["", ", k=1",
        ", padding_value=9."]),
    *forms("tf.linalg.set_diag({x}, {d})", x=_SQUARE, d=["[7., 8.]", "P([7., 8.])", "[1.]"]),
    *forms("tf.linalg.cross({a}, {b})", a=["[1., 0., 0.]", "P([1., 0., 0.])", "T([[1., 0., 0.]])"], b=["[0., 1., 0.]",
        "T([0., 1.])"]),
    *forms("tf.linalg.band_part({x}, {a})", x=tensors("[[1., 2.], [3., 4.]]"), a=["0, 0", "T(1), -1"]),
    *forms("tf.linalg.lu({x})", x=_SQUARE[:4]),
    *forms("tf.linalg.tridiagonal_solve({d}, [1., 2.], diagonals_format='matrix')", d=_SQUARE[:3]),
]
