"""`import tensorflow` gives dtf, in one process and its children: programs for TensorFlow 1.x run unchanged.

    python -m dtf trainer.py --job_name=worker --task_index=0

    importer ........ the hook for `import tensorflow`       children/ . a folder for the PYTHONPATH of children
    places.txt ...... TensorFlow's modules by their names    historic/ . names that no other module of dtf has
    modules ......... the modules made from that table       old_names . names of TensorFlow 0.x
    renamed.txt ..... names that dtf spells differently
    generated_ops ... gen_*_ops: functions of single ops     absent .... names that dtf omits, with substitutes
    program ......... runs a script as `python` would

An installed TensorFlow is not changed; this process and its children do not see it. Only `install()` has an
effect: importing `dtf` or this package changes no other import.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["CHILDREN", "VARIABLE", "install", "prepare_children"]

CHILDREN = str(Path(__file__).parent / "children")
"""A folder with a package `tensorflow` in it, which calls `install()` when it is imported."""

VARIABLE = "DTF_AS_TENSORFLOW"
"""Set in the environment of children: the process that logs which `tensorflow` is used."""


def install() -> None:
    """Makes `tensorflow` and the modules below it come from dtf in this process. A second call does nothing.

    Raises:
      ImportError: another TensorFlow has been imported here already.
    """
    from dtf.as_tensorflow import importer

    importer.install()


def prepare_children() -> None:
    """Makes the Python programs that this process starts find dtf as `tensorflow` too, by PYTHONPATH."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if CHILDREN not in given:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (CHILDREN, *given)))
    if CHILDREN not in sys.path:  # multiprocessing gives a spawned child this list in place of its own
        sys.path.append(CHILDREN)
    os.environ.setdefault(VARIABLE, str(os.getpid()))
