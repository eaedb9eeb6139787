"""Strings that end in NULs must come out of every operation as they do in TensorFlow."""

from __future__ import annotations

import dtf
from tests.interop import string_programs
from tests.interop.tensorflow_process import needs_tensorflow

pytestmark = needs_tensorflow

_RUN = """
import tempfile
from tests.interop import string_programs
with tempfile.TemporaryDirectory() as folder:
    print(json.dumps(string_programs.outcomes(tf, folder)))
"""


def test_strings_keep_their_nuls_as_in_tensorflow(tensorflow, tmp_path):
    wanted = tensorflow.run(_RUN)
    found = string_programs.outcomes(dtf, str(tmp_path))
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        if name not in string_programs.LOST_IN_TENSORFLOW:
            assert found[name] == value, name
