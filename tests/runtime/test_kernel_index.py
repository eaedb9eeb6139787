"""The generated index of kernels says which modules register an op; nothing else of them is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.runtime.kernel_index import INDEX

ROOT = Path(__file__).resolve().parents[2]
_SHOW_LOADED = """
import sys
from dtf.run import kernels
assert kernels.has_kernel(sys.argv[1]) is (sys.argv[2] != "")
package = kernels.__name__ + "."
print(*sorted(name.removeprefix(package) for name in sys.modules if name.startswith(package)))
"""


def test_the_index_lists_what_the_modules_register():
    shown = _output("-m", "tests.runtime.kernel_index", "--print")
    assert INDEX.read_text(encoding="utf-8") == shown, "run: python -m tests.runtime.kernel_index"


def test_a_lookup_imports_only_the_module_that_registers_the_op():
    assert _output("-c", _SHOW_LOADED, "BesselI0", "there").split() == ["bessel", "op_index", "special"]


def test_an_unknown_op_imports_no_kernel():
    assert _output("-c", _SHOW_LOADED, "NoSuchOp", "").split() == ["op_index"]


def _output(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=120, cwd=ROOT
    )
    return done.stdout
