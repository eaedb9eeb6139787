"""python -m dtf.check FILES: lists uses of TensorFlow that dtf does not support. It reads the programs and never runs
them.

    python -m dtf.check trainer.py models/*.py

    scan ...... names and arguments of tensorflow and numpy, by the program's syntax tree
    pitfalls .. names that Python 3 and numpy 2 have removed, with substitutes

A finding is one line: file, line, kind, and a substitute. The exit status is 0 if everything is supported, 1 if
something is not, 2 if a file cannot be read.
"""

from __future__ import annotations

from dtf.check.scan import Finding, check_source

__all__ = ["Finding", "check_source"]
