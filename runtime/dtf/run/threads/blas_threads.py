"""How many threads numpy's matrix products use, and other heavy kernels.

Owns this process's part of the cores, and the one call into the BLAS library that numpy carries. By itself the library
takes every core in every process: several tasks on one machine then spin against each other, and a step takes several
times as long. A setting of the user's (OPENBLAS_NUM_THREADS, OMP_NUM_THREADS) stands.

    share_cores(4)    # this process is one of four on this machine
    threads_taken()   # what came of it
    cores()           # this process's part
"""

from __future__ import annotations

import ctypes
import logging
import os
from pathlib import Path

import numpy as np

_SETTINGS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
_taken = _cores = 0
"""What `share_cores` has decided: threads, and this process's part of the cores; 0 before."""
_SETTERS = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads")


def share_cores(processes: int, threads: int = 0) -> None:
    """Takes this process's part of the cores: `threads`, or if that is 0 the cores divided by `processes`.

    Does nothing where numpy has another BLAS library, or the user has decided.
    """
    global _cores, _taken
    _cores = max(1, len(os.sched_getaffinity(0)) // max(1, processes))
    if any(os.environ.get(name) for name in _SETTINGS):
        return
    _taken = wanted = threads or _cores
    for path in (Path(np.__file__).parent.parent / "numpy.libs").glob("*openblas*"):
        library = ctypes.CDLL(str(path))
        for name in _SETTERS:
            if hasattr(library, name):
                getattr(library, name)(ctypes.c_int(wanted))
                logging.getLogger("dtf").debug("numpy's matrix products use %d threads", wanted)
                return


def threads_taken() -> int:
    """How many threads a heavy kernel of this process may use: as the user or `share_cores` said, else one a core."""
    return _set_by_user() or _taken or len(os.sched_getaffinity(0))


def cores() -> int:
    """How many cores are this process's part, whatever the number of its threads."""
    return _cores or len(os.sched_getaffinity(0))


def _set_by_user() -> int:
    """The first number of the first setting, which for OMP_NUM_THREADS may be a list; 0 without."""
    for name in _SETTINGS:
        first = os.environ.get(name, "").split(",")[0].strip()
        if first.isdecimal() and int(first):
            return int(first)
    return 0
