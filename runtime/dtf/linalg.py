"""The namespace tf.linalg. Only re-exports functions of `ops.linalg`, `ops.matrix_functions`, `ops.diagonals`,
`ops.rearranging`."""

from __future__ import annotations

from dtf import late as _late
from dtf.build.linear_operators import *  # noqa: F403
from dtf.build.ops.clip import global_norm  # noqa: F401
from dtf.build.ops.decompositions import *  # noqa: F403
from dtf.build.ops.decompositions import matrix_determinant as det  # noqa: F401
from dtf.build.ops.decompositions import matrix_inverse as inv  # noqa: F401
from dtf.build.ops.decompositions import matrix_solve as solve  # noqa: F401
from dtf.build.ops.decompositions import matrix_solve_ls as lstsq  # noqa: F401
from dtf.build.ops.decompositions import matrix_triangular_solve as triangular_solve  # noqa: F401
from dtf.build.ops.decompositions import self_adjoint_eig as eigh  # noqa: F401
from dtf.build.ops.decompositions import self_adjoint_eigvals as eigvalsh  # noqa: F401
from dtf.build.ops.diagonals import diag as tensor_diag  # noqa: F401
from dtf.build.ops.diagonals import diag_part as tensor_diag_part  # noqa: F401
from dtf.build.ops.diagonals import matrix_band_part as band_part  # noqa: F401
from dtf.build.ops.diagonals import matrix_diag as diag  # noqa: F401
from dtf.build.ops.diagonals import matrix_diag_part as diag_part  # noqa: F401
from dtf.build.ops.diagonals import matrix_set_diag as set_diag  # noqa: F401
from dtf.build.ops.einsum import *  # noqa: F403
from dtf.build.ops.linalg import *  # noqa: F403
from dtf.build.ops.matrix_functions import *  # noqa: F403
from dtf.build.ops.normalization import l2_normalize  # noqa: F401
from dtf.build.ops.rearranging import matrix_transpose  # noqa: F401

transpose = matrix_transpose

__getattr__ = _late.refusals(__name__)
