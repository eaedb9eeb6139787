"""Regular expressions must match, replace and be refused as TensorFlow's."""

from __future__ import annotations

import dtf
from tests.interop import pattern_programs
from tests.interop.tensorflow_process import needs_tensorflow

pytestmark = needs_tensorflow

_RUN = """
from tests.interop import pattern_programs
print(json.dumps(pattern_programs.outcomes(tf)))
"""


def test_patterns_mean_what_they_do_in_tensorflow(tensorflow):
    wanted = tensorflow.run(_RUN)
    with dtf.Graph().as_default():
        found = pattern_programs.outcomes(dtf)
    for pattern, here, there in zip(pattern_programs.PATTERNS, found, wanted, strict=True):
        assert here == there, pattern
