"""What a step frees, the next one gets without the kernel."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

_STEPS = """
import resource
import numpy as np
from dtf.run.lib.allocator import keep_freed_memory

keep_freed_memory()

def step():
    first = np.ones(400_000, np.float32)
    second = first * 2
    return float((second - first)[0])

for _ in range(5):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(**settings):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path), **settings}
    done = subprocess.run([sys.executable, "-c", _STEPS], env=environment, check=True, capture_output=True, timeout=60)
    return int(done.stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_what_a_step_frees_the_next_one_gets_without_the_kernel_unless_the_user_has_decided():
    assert page_faults() < 50
    assert page_faults(MALLOC_MMAP_THRESHOLD_="131072") > 50 * 390
