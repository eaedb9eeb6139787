"""tensorflow.python.ops.linalg.linear_operator_test_util: the base classes of unit tests of linear operators.

A test class gives `operator_and_matrix`; `add_tests(Class)` adds a method for each check, shape, dtype and option.
Source: https://github.com/tensorflow/tensorflow/blob/r1.15/tensorflow/python/ops/linalg/linear_operator_test_util.py
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import dtf as tf
from dtf.test.test_case import TestCase

__all__ = [
    "LinearOperatorDerivedClassTest", "NonSquareLinearOperatorDerivedClassTest", "OperatorBuildInfo",
    "OperatorShapesInfo", "SquareLinearOperatorDerivedClassTest", "add_tests", "random_normal",
    "random_normal_correlated_columns", "random_positive_definite_matrix", "random_sign_uniform", "random_tril_matrix",
    "random_uniform",
]  # fmt: skip


class OperatorShapesInfo:
    """The shape of an operator to test, and whatever else its test wants to know."""

    def __init__(self, shape: Any, **kwargs: Any) -> None:
        self.shape = shape
        self.__dict__.update(kwargs)


OperatorBuildInfo = OperatorShapesInfo


class LinearOperatorDerivedClassTest(TestCase):
    """Compares an operator with the matrix that it stands for."""

    _atol: Any = {tf.float16: 1e-3, tf.float32: 1e-6, tf.float64: 1e-12, tf.complex64: 1e-6, tf.complex128: 1e-12}
    _rtol: Any = {tf.float16: 1e-3, tf.float32: 1e-6, tf.float64: 1e-12, tf.complex64: 1e-6, tf.complex128: 1e-12}

    def assertAC(self, x: Any, y: Any, check_dtype: bool = False) -> None:  # noqa: N802
        """As assertAllClose, with the tolerances of the dtype."""
        dtype = tf.as_dtype(np.asarray(x).dtype)
        self.assertAllClose(x, y, atol=self._atol[dtype], rtol=self._rtol[dtype])
        if check_dtype:
            self.assertDTypeEqual(x, np.asarray(y).dtype)

    @staticmethod
    def adjoint_options() -> list[bool]:
        """Whether the operator is adjoint in products."""
        return [False, True]

    @staticmethod
    def adjoint_arg_options() -> list[bool]:
        """Whether the argument is adjoint in products."""
        return [False, True]

    @staticmethod
    def dtypes_to_test() -> list[Any]:
        """The dtypes of operators."""
        return [tf.float32, tf.float64, tf.complex64, tf.complex128]

    @staticmethod
    def use_placeholder_options() -> list[bool]:
        """Whether the values are fed."""
        return [False, True]

    @staticmethod
    def use_blockwise_arg() -> bool:
        """Whether arguments may be lists of blocks."""
        return False

    @staticmethod
    def operator_shapes_infos() -> Any:
        """The shapes of operators."""
        raise NotImplementedError("operator_shapes_infos has not been implemented.")

    def operator_and_matrix(
        self, shapes_info: Any, dtype: Any, use_placeholder: bool, ensure_self_adjoint_and_pd: bool = False
    ) -> Any:
        """An operator and the tensor that it stands for."""
        raise NotImplementedError("Not implemented yet.")

    def make_rhs(self, operator: Any, adjoint: bool, with_batch: bool = True) -> Any:
        """A right side for `solve`."""
        raise NotImplementedError("make_rhs is not defined.")

    def make_x(self, operator: Any, adjoint: bool, with_batch: bool = True) -> Any:
        """An argument for `matmul`."""
        raise NotImplementedError("make_x is not defined.")

    @staticmethod
    def skip_these_tests() -> list[str]:
        """Names of checks to leave out."""
        return []

    @staticmethod
    def optional_tests() -> list[str]:
        """Names of checks that run only where they are named here."""
        return []

    def assertRaisesError(self, msg: str) -> Any:  # noqa: N802
        """The error of a failed check in the graph."""
        return self.assertRaisesRegex(Exception, msg)


_Check = Callable[[LinearOperatorDerivedClassTest, Any, Any, bool], None]


def _prepared(
    case: LinearOperatorDerivedClassTest, shapes_info: Any, dtype: Any, use_placeholder: bool, positive: bool = False
) -> tuple[Any, Any]:
    tf.set_random_seed(42)
    if positive:
        return case.operator_and_matrix(shapes_info, dtype, use_placeholder, ensure_self_adjoint_and_pd=True)
    return case.operator_and_matrix(shapes_info, dtype, use_placeholder=use_placeholder)


def _of_matrix(
    make: Callable[[Any], Any], wanted: Callable[[Any], Any], positive: bool = False
) -> _Check:
    """A check that a tensor made of the operator is that made of its matrix."""

    def check(case: LinearOperatorDerivedClassTest, info: Any, dtype: Any, use_placeholder: bool) -> None:
        with tf.Graph().as_default(), tf.Session() as session:
            operator, matrix = _prepared(case, info, dtype, use_placeholder, positive)
            made, expected = make(operator), wanted(matrix)
            if not use_placeholder:
                case.assertTrue(made.shape.is_compatible_with(expected.shape))
            case.assertAC(*session.run([made, expected]))

    return check


def _adjoint(x: Any) -> Any:
    return tf.linalg.adjoint(x)


def _to_dense(case: LinearOperatorDerivedClassTest, info: Any, dtype: Any, use_placeholder: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        operator, matrix = _prepared(case, info, dtype, use_placeholder)
        made = operator.to_dense()
        if not use_placeholder:
            case.assertAllEqual(info.shape, made.shape)
        case.assertAC(*session.run([made, matrix]))


def _same_type(
    make: Callable[[Any], Any], wanted: Callable[[Any], Any]
) -> _Check:
    def check(case: LinearOperatorDerivedClassTest, info: Any, dtype: Any, use_placeholder: bool) -> None:
        with tf.Graph().as_default(), tf.Session() as session:
            operator, matrix = _prepared(case, info, dtype, use_placeholder)
            case.assertAC(*session.run([make(operator), wanted(matrix)]))

    return check


def _product(solves: bool, adjoint: bool, adjoint_arg: bool, with_batch: bool) -> _Check:
    """A check of `matmul` or `solve`, and of the same with vectors."""

    def check(case: LinearOperatorDerivedClassTest, info: Any, dtype: Any, use_placeholder: bool) -> None:
        if not with_batch and len(info.shape) <= 2:
            return
        with tf.Graph().as_default(), tf.Session() as session:
            operator, matrix = _prepared(case, info, dtype, use_placeholder)
            make = case.make_rhs if solves else case.make_x
            x = make(operator, adjoint=adjoint, with_batch=with_batch)
            given = _adjoint(x) if adjoint_arg else x
            if solves:
                made = operator.solve(given, adjoint=adjoint, adjoint_arg=adjoint_arg)
                wide, sides = _broadcast(matrix, x)
                expected = tf.linalg.solve(wide, sides, adjoint=adjoint)
            else:
                made = operator.matmul(given, adjoint=adjoint, adjoint_arg=adjoint_arg)
                wide, sides = _broadcast(matrix, x)
                expected = tf.matmul(wide, sides, adjoint_a=adjoint)
            if not use_placeholder:
                case.assertAllEqual(made.shape, expected.shape)
            fetches = [made, expected]
            if not adjoint_arg:
                vector = (operator.solvevec if solves else operator.matvec)(x[..., 0], adjoint=adjoint)
                fetches.append(vector)
            values = session.run(fetches)
            case.assertAC(values[0], values[1])
            if len(values) > 2:
                case.assertAC(values[2], values[1][..., 0])

    return check


def _broadcast(matrix: Any, x: Any) -> Any:
    from dtf.build.linear_operators.batches import broadcast_matrix_batch_dims

    return broadcast_matrix_batch_dims([matrix, x])


def _log_abs_det(matrix: Any) -> Any:
    return tf.linalg.slogdet(matrix)[1]


def _real_log_abs_det(operator: Any) -> Any:
    return operator.log_abs_determinant()


def _eigvals(case: LinearOperatorDerivedClassTest, info: Any, dtype: Any, use_placeholder: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        operator, matrix = _prepared(case, info, dtype, use_placeholder, True)
        made, expected = session.run([operator.eigvals(), tf.self_adjoint_eigvals(matrix)])
    case.assertAC(np.sort(np.real(made)), np.sort(np.real(expected)))


def _cond(case: LinearOperatorDerivedClassTest, info: Any, dtype: Any, use_placeholder: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        operator, matrix = _prepared(case, info, dtype, use_placeholder, True)
        values = tf.linalg.svd(matrix, compute_uv=False)
        expected = tf.reduce_max(values, -1) / tf.reduce_min(values, -1)
        made, wanted = session.run([operator.cond(), expected])
    case.assertAllClose(np.real(made), wanted, rtol=1e-4)


def _cholesky(case: LinearOperatorDerivedClassTest, info: Any, dtype: Any, use_placeholder: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        operator, matrix = _prepared(case, info, dtype, use_placeholder, True)
        case.assertAC(*session.run([operator.cholesky().to_dense(), tf.linalg.cholesky(matrix)]))


_CHECKS: dict[str, _Check] = {
    "to_dense": _to_dense,
    "det": _of_matrix(lambda each: each.determinant(), tf.linalg.det),
    "log_abs_det": _of_matrix(_real_log_abs_det, _log_abs_det),
    "operator_matmul_with_same_type": _same_type(lambda each: each.matmul(each).to_dense(), lambda x: tf.matmul(x, x)),
    "operator_solve_with_same_type": _same_type(
        lambda each: each.solve(each).to_dense(), lambda x: tf.linalg.solve(x, x)
    ),
    "inverse": _of_matrix(lambda each: each.inverse().to_dense(), tf.linalg.inv),
    "trace": _of_matrix(lambda each: each.trace(), tf.linalg.trace),
    "add_to_tensor": _of_matrix(lambda each: each.add_to_tensor(2 * each.to_dense()), lambda x: 3 * x),
    "diag_part": _of_matrix(lambda each: each.diag_part(), tf.linalg.diag_part),
    "adjoint": _of_matrix(lambda each: each.adjoint().to_dense(), _adjoint),
    "cholesky": _cholesky,
    "eigvalsh": _eigvals,
    "cond": _cond,
}
for _name, _solves in (("matmul", False), ("solve", True)):
    for _with_batch in (True, False):
        _CHECKS[f"{_name}{'' if _with_batch else '_with_broadcast'}"] = _product(_solves, False, False, _with_batch)


def add_tests(test_cls: type) -> None:
    """Adds the methods of all checks to a test class."""
    cls: Any = test_cls
    wanted = [name for name in _CHECKS if name not in cls.skip_these_tests()]
    for name in wanted:
        options: Any = [(False, False)]
        if name.startswith(("matmul", "solve")):
            options = list(itertools.product(cls.adjoint_options(), cls.adjoint_arg_options()))
        for info, dtype, fed, (adjoint, adjoint_arg) in itertools.product(
            cls.operator_shapes_infos(), cls.dtypes_to_test(), cls.use_placeholder_options(), options
        ):
            check = _CHECKS[name]
            label = f"test_{name}__shape={info.shape},dtype={dtype},use_placeholder={fed}"
            if name.startswith(("matmul", "solve")):
                check = _product(name.startswith("solve"), adjoint, adjoint_arg, not name.endswith("broadcast"))
                label += f",adjoint={adjoint},adjoint_arg={adjoint_arg}"
            if hasattr(cls, label):
                raise RuntimeError(f"Test class {cls.__name__} defined test {label} already")
            setattr(cls, label, _method(check, info, dtype, fed))


def _method(check: _Check, info: Any, dtype: Any, use_placeholder: bool) -> Callable[[Any], None]:
    def test(self: Any) -> None:
        check(self, info, dtype, use_placeholder)

    return test


class SquareLinearOperatorDerivedClassTest(LinearOperatorDerivedClassTest):
    """Tests of square operators."""

    @staticmethod
    def operator_shapes_infos() -> Any:
        """Shapes of square operators."""
        return [OperatorShapesInfo(each) for each in ((0, 0), (1, 1), (1, 3, 3), (3, 4, 4), (2, 1, 4, 4))]

    def make_rhs(self, operator: Any, adjoint: bool, with_batch: bool = True) -> Any:
        """A right side for `solve`."""
        return self.make_x(operator, adjoint=not adjoint, with_batch=with_batch)

    def make_x(self, operator: Any, adjoint: bool, with_batch: bool = True) -> Any:
        """An argument for `matmul`."""
        count = self._get_num_systems(operator)
        if operator.shape.is_fully_defined():
            batch, size = operator.batch_shape.as_list(), operator.domain_dimension.value
            shape: Any = [*batch, size, count] if with_batch else [size, count]
        else:
            sizes = tf.stack([operator.domain_dimension_tensor(), count])
            shape = tf.concat([operator.batch_shape_tensor(), sizes], 0) if with_batch else sizes
        return random_normal(shape, dtype=operator.dtype)

    def _get_num_systems(self, operator: Any) -> int:
        return 1 if operator.tensor_rank is None or operator.tensor_rank % 2 else 2


class NonSquareLinearOperatorDerivedClassTest(LinearOperatorDerivedClassTest):
    """Tests of operators with other numbers of rows and columns."""

    @staticmethod
    def skip_these_tests() -> list[str]:
        """What only square operators can."""
        return [
            "cholesky", "eigvalsh", "inverse", "solve", "solve_with_broadcast", "det", "log_abs_det",
            "operator_matmul_with_same_type", "operator_solve_with_same_type",
        ]  # fmt: skip

    @staticmethod
    def operator_shapes_infos() -> Any:
        """Shapes of operators that are not square."""
        return [OperatorShapesInfo(each) for each in ((2, 1), (1, 2), (1, 3, 2), (3, 3, 4), (2, 1, 2, 4))]

    def make_x(self, operator: Any, adjoint: bool, with_batch: bool = True) -> Any:
        """An argument for `matmul`."""
        count = self._get_num_systems(operator)
        if operator.shape.is_fully_defined():
            size = (operator.range_dimension if adjoint else operator.domain_dimension).value
            shape: Any = [*operator.batch_shape.as_list(), size, count] if with_batch else [size, count]
        else:
            size = operator.range_dimension_tensor() if adjoint else operator.domain_dimension_tensor()
            sizes = tf.stack([size, count])
            shape = tf.concat([operator.batch_shape_tensor(), sizes], 0) if with_batch else sizes
        return random_normal(shape, dtype=operator.dtype)

    def _get_num_systems(self, operator: Any) -> int:
        return 1 if operator.tensor_rank is None or operator.tensor_rank % 2 else 2


def random_positive_definite_matrix(
    shape: Any, dtype: Any, oversampling_ratio: int = 4, force_well_conditioned: bool = False
) -> Any:
    """Random matrices [..., n, n] that are self-adjoint and positive definite."""
    dtype = tf.as_dtype(dtype)
    shape = tf.TensorShape(shape)
    more = shape.as_list()
    more[-1] = int(more[-1] * oversampling_ratio)
    values = random_normal(more, dtype=dtype)
    count = max(more[-1], 1)
    result = tf.matmul(values, values, adjoint_b=True) / tf.cast(float(count), dtype)
    return result + tf.linalg.eye(shape.as_list()[-1], dtype=dtype) if force_well_conditioned else result


def random_tril_matrix(shape: Any, dtype: Any, force_well_conditioned: bool = False, remove_upper: bool = True) -> Any:
    """Random matrices, lower triangular if `remove_upper`."""
    tril = random_normal(shape, dtype=dtype)
    if remove_upper:
        tril = tf.matrix_band_part(tril, -1, 0)
    if force_well_conditioned:
        size = random_sign_uniform(tf.shape(tril)[:-1], dtype=dtype, minval=1.0, maxval=2.0)
        tril = tf.matrix_set_diag(tril, size)
    return tril


def _complex_or_real(draw: Callable[[Any, int | None], Any], dtype: Any, seed: int | None) -> Any:
    dtype = tf.as_dtype(dtype)
    values = draw(dtype.real_dtype, seed)
    if dtype.is_complex:
        other = None if seed is None else seed + 1234
        values = tf.complex(values, draw(dtype.real_dtype, other))
    return values


def random_normal(shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = tf.float32, seed: Any = None) -> Any:
    """Normally distributed numbers, of both parts for complex types."""
    return _complex_or_real(
        lambda kind, number: tf.random_normal(shape, mean=mean, stddev=stddev, dtype=kind, seed=number), dtype, seed
    )


def random_uniform(
    shape: Any, minval: Any = None, maxval: Any = None, dtype: Any = tf.float32, seed: Any = None
) -> Any:
    """Uniformly distributed numbers, of both parts for complex types."""
    low = 0 if minval is None else minval
    return _complex_or_real(
        lambda kind, number: tf.random_uniform(shape, low, maxval, dtype=kind, seed=number), dtype, seed
    )


def random_sign_uniform(
    shape: Any, minval: Any = None, maxval: Any = None, dtype: Any = tf.float32, seed: Any = None
) -> Any:
    """Uniformly distributed sizes with random signs."""
    values = random_uniform(shape, minval, maxval, dtype=dtype, seed=seed)
    signs = tf.sign(tf.random_uniform(shape, -1.0, 1.0))
    return tf.cast(signs, values.dtype) * values


def random_normal_correlated_columns(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = tf.float32, eps: float = 1e-4, seed: Any = None
) -> Any:
    """Matrices whose columns are nearly the same."""
    sizes = tf.TensorShape(shape).as_list()
    columns = random_normal([*sizes[:-1], 1], mean=mean, stddev=stddev, dtype=dtype, seed=seed)
    return columns + random_normal(shape, stddev=eps, dtype=dtype, seed=None if seed is None else seed + 10000)
