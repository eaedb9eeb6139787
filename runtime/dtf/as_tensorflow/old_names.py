"""Names that TensorFlow had before 1.0, and aliases that went later. Owns the table of their successors."""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["NAMES", "get"]

NAMES = {
    "mul": "multiply",
    "sub": "subtract",
    "neg": "negative",
    "inv": "reciprocal",
    "pack": "stack",
    "unpack": "unstack",
    "select": "where",
    "listdiff": "setdiff1d",
    "batch_matmul": "matmul",
    "batch_cholesky": "cholesky",
    "batch_matrix_band_part": "matrix_band_part",
    "batch_matrix_determinant": "matrix_determinant",
    "batch_matrix_diag": "matrix_diag",
    "batch_matrix_diag_part": "matrix_diag_part",
    "batch_matrix_inverse": "matrix_inverse",
    "batch_matrix_set_diag": "matrix_set_diag",
    "batch_matrix_solve": "matrix_solve",
    "batch_matrix_transpose": "matrix_transpose",
    "batch_self_adjoint_eig": "self_adjoint_eig",
    "batch_svd": "svd",
    "complex_abs": "abs",
    "all_variables": "global_variables",
    "initialize_all_variables": "global_variables_initializer",
    "initialize_local_variables": "local_variables_initializer",
    "initialize_variables": "variables_initializer",
    "initialize_all_tables": "tables_initializer",
    "scalar_summary": "summary.scalar",
    "image_summary": "summary.image",
    "audio_summary": "summary.audio",
    "histogram_summary": "summary.histogram",
    "merge_summary": "summary.merge",
    "merge_all_summaries": "summary.merge_all",
    "VariableV1": "Variable",
}
"""Name -> the name of TensorFlow 1.x. The arguments of tf.concat, tf.split and the like were in another order before
1.0; TensorFlow 1.x does not take that order either."""


def get(name: str) -> Any:
    """The value of an old name."""
    import dtf

    return functools.reduce(getattr, NAMES[name].split("."), dtf)
