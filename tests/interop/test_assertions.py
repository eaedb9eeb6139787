"""tf.test's assertions must hold for what TensorFlow's hold for."""

from __future__ import annotations

import json

import dtf
from tests.interop import assertion_programs
from tests.interop.tensorflow_process import needs_tensorflow

pytestmark = needs_tensorflow

_RUN = """
from tests.interop import assertion_programs
print(json.dumps(assertion_programs.outcomes(tf)))
"""


def test_assertions_and_sessions_of_test_cases_are_tensorflows(tensorflow):
    wanted = tensorflow.run(_RUN)
    found = json.loads(json.dumps(assertion_programs.outcomes(dtf)))
    cases = [str(case) for case in assertion_programs.CASES]
    assert dict(zip(cases, found, strict=False)) == dict(zip(cases, wanted, strict=False))
    assert found[len(cases) :] == wanted[len(cases) :]
