"""Every op contract must be TensorFlow's own."""

from __future__ import annotations

import json
import subprocess

from dtf.wire import opdef
from tests.interop.tensorflow_process import PYTHON, ROOT, needs_tensorflow

pytestmark = needs_tensorflow


def test_our_op_contracts_are_tensorflows():
    names = [name for name in opdef.names() if not name.startswith(("SaveIncrement", "WorkQueue"))]  # dtf's own
    script = str(ROOT / "tests" / "interop" / "opdef_lines.py")
    done = subprocess.run([PYTHON, script, "--json", *names], stdout=subprocess.PIPE, text=True, check=True)
    theirs = json.loads(done.stdout)
    wrong = {name for name, line in theirs.items() if not line or repr(opdef.parse(line)) != repr(opdef.get(name))}
    assert not wrong
