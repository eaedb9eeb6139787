"""Linear operators, by the base classes that TensorFlow has for their tests."""

from tensorflow.python.framework import dtypes, test_util
from tensorflow.python.ops import array_ops, math_ops
from tensorflow.python.ops.linalg import linalg as linalg_lib
from tensorflow.python.ops.linalg import linear_operator_test_util
from tensorflow.python.platform import test

linalg = linalg_lib
Info = linear_operator_test_util.OperatorShapesInfo


def fed(values, use_placeholder):
    return array_ops.placeholder_with_default(values, shape=None) if use_placeholder else values


class Few:
    """Fewer combinations than TensorFlow tests."""

    @staticmethod
    def dtypes_to_test():
        return [dtypes.complex128]

    @staticmethod
    def operator_shapes_infos():
        return [Info((2, 3, 3))]

    @staticmethod
    def skip_these_tests():
        names = ["composite_tensor", "composite_tensor_gradient", "saved_model", "slicing", "cond"]
        return [*names, "operator_matmul_with_same_type", "operator_solve_with_same_type"]


class Diag(Few, linear_operator_test_util.SquareLinearOperatorDerivedClassTest):
    def operator_and_matrix(self, build_info, dtype, use_placeholder, ensure_self_adjoint_and_pd=False):
        shape = list(build_info.shape)
        diag = linear_operator_test_util.random_sign_uniform(shape[:-1], minval=1.0, maxval=2.0, dtype=dtype)
        if ensure_self_adjoint_and_pd:
            diag = math_ops.cast(math_ops.abs(diag), dtype=dtype)
        operator = linalg.LinearOperatorDiag(
            fed(diag, use_placeholder), is_self_adjoint=True if ensure_self_adjoint_and_pd else None,
            is_positive_definite=True if ensure_self_adjoint_and_pd else None,
        )
        return operator, array_ops.matrix_diag(diag)


class LowerTriangular(Few, linear_operator_test_util.SquareLinearOperatorDerivedClassTest):
    @staticmethod
    def skip_these_tests():
        return [*Few.skip_these_tests(), "cholesky", "eigvalsh"]

    def operator_and_matrix(self, build_info, dtype, use_placeholder, ensure_self_adjoint_and_pd=False):
        tril = linear_operator_test_util.random_tril_matrix(
            build_info.shape, dtype=dtype, force_well_conditioned=True, remove_upper=False
        )
        matrix = array_ops.matrix_band_part(tril, -1, 0)
        return linalg.LinearOperatorLowerTriangular(fed(tril, use_placeholder)), matrix


class Kronecker(Few, linear_operator_test_util.SquareLinearOperatorDerivedClassTest):
    @staticmethod
    def operator_shapes_infos():
        return [Info((2, 6, 6), factors=[(2, 3, 3), (2, 2, 2)])]

    @staticmethod
    def skip_these_tests():
        return [*Few.skip_these_tests(), "det", "log_abs_det"]

    def operator_and_matrix(self, build_info, dtype, use_placeholder, ensure_self_adjoint_and_pd=False):
        factors = [
            linear_operator_test_util.random_positive_definite_matrix(each, dtype, force_well_conditioned=True)
            for each in build_info.factors
        ]
        parts = [
            linalg.LinearOperatorFullMatrix(
                fed(each, use_placeholder), is_square=True, is_self_adjoint=True if ensure_self_adjoint_and_pd else None,
                is_positive_definite=True if ensure_self_adjoint_and_pd else None,
            )
            for each in factors
        ]
        dense = factors[0][:, :, None, :, None] * factors[1][:, None, :, None, :]
        return linalg.LinearOperatorKronecker(parts), array_ops.reshape(dense, build_info.shape)


class Wide(linear_operator_test_util.NonSquareLinearOperatorDerivedClassTest):
    @staticmethod
    def dtypes_to_test():
        return [dtypes.float64]

    @staticmethod
    def operator_shapes_infos():
        return [Info((3, 2, 4))]

    @staticmethod
    def skip_these_tests():
        names = linear_operator_test_util.NonSquareLinearOperatorDerivedClassTest.skip_these_tests()
        return [*names, *Few.skip_these_tests()]

    def operator_and_matrix(self, build_info, dtype, use_placeholder, ensure_self_adjoint_and_pd=False):
        matrix = linear_operator_test_util.random_normal(build_info.shape, dtype=dtype)
        return linalg.LinearOperatorFullMatrix(fed(matrix, use_placeholder), is_square=False), matrix


for _each in (Diag, LowerTriangular, Kronecker, Wide):
    linear_operator_test_util.add_tests(_each)


class Operators(test.TestCase):
    @test_util.run_deprecated_v1
    def test_products_of_operators_know_their_class(self):
        diag = linalg.LinearOperatorDiag([1.0, 2.0], is_non_singular=True)
        tril = linalg.LinearOperatorLowerTriangular([[1.0, 0.0], [2.0, 3.0]], is_non_singular=True)
        self.assertIsInstance(diag.matmul(diag), linalg.LinearOperatorDiag)
        self.assertIsInstance(tril.matmul(diag), linalg.LinearOperatorLowerTriangular)
        self.assertIsInstance(diag.inverse(), linalg.LinearOperatorDiag)
        self.assertIsInstance(tril.inverse(), linalg.LinearOperatorInversion)
        self.assertIsInstance(tril.adjoint(), linalg.LinearOperatorAdjoint)
        identity = linalg.LinearOperatorIdentity(2)
        self.assertIs(tril, identity.matmul(tril))
        self.assertTrue(tril.matmul(diag).is_non_singular)


if __name__ == "__main__":
    test.main()
