"""The files that match patterns, for `Dataset.list_files`."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies
from dtf.build.ops.array import reshape, shape
from dtf.build.ops.control_flow import Assert
from dtf.build.ops.io import matching_files
from dtf.build.ops.math import greater
from dtf.build.ops.string import reduce_join
from dtf.build.tensor import Tensor
from dtf.wire import dtypes


def files_found(file_pattern: Any) -> tuple[Tensor, Tensor]:
    """The sorted names of the files that match one pattern or any of several, and their number.

    A step that uses the names fails with InvalidArgumentError if no file matches.
    """
    pattern = convert_to_tensor(file_pattern, dtypes.string)
    found = matching_files(pattern)
    count = shape(found, out_type=dtypes.int64)[0]
    patterns = reduce_join(reshape(pattern, [-1]), 0, separator=", ")
    check = Assert(greater(count, 0), ["No files matched pattern: ", patterns], summarize=1)
    with control_dependencies([check]):
        found = apply_op("Identity", None, input=found)
    return found, count
