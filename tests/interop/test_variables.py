"""Variables that loops and branches read after a write must give TensorFlow's values."""

from __future__ import annotations

from tests.interop import variable_programs
from tests.interop.tensorflow_process import needs_tensorflow
from tests.interop.two_runtimes import assert_same

pytestmark = needs_tensorflow


def test_variables_in_loops_and_branches_are_read_when_they_are_used(tmp_path):
    assert_same(variable_programs, tmp_path, rtol=1e-6, atol=0)
