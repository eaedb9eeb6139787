"""Writes runtime/dtf/run/kernels/op_index.py: which modules register the kernels of an op.

    python -m tests.runtime.kernel_index            # writes the table
    python -m tests.runtime.kernel_index --print    # shows it

The modules are imported one after the other in this process, and each registration counts for the module whose
top-level code makes it. So the table is true wherever a decorator comes from.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import textwrap
from collections import defaultdict
from pathlib import Path

from dtf.run import kernels

INDEX = Path(kernels.__file__).with_name("op_index.py")
HEAD = '''"""Which modules of this package register the kernels of an op: generated, not edited.

Written by `python -m tests.runtime.kernel_index`; a test compares it with what the modules register.
"""

from __future__ import annotations

OPS = {
'''


def registered() -> dict[str, set[str]]:
    """Module -> the ops that it registers. Only right in a process that has not imported any kernel."""
    found: dict[str, set[str]] = defaultdict(set)
    add = kernels.register

    def note(op: str, row: kernels.Kernel) -> None:
        found[_module_at_work()].add(op)
        add(op, row)

    kernels.register = note
    try:
        for module in pkgutil.iter_modules(kernels.__path__):
            importlib.import_module(f"{kernels.__name__}.{module.name}")
    finally:
        kernels.register = add
    return found


def _module_at_work() -> str:
    """The module whose top-level code runs now, innermost: its last name."""
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>":
        assert frame.f_back is not None
        frame = frame.f_back
    return frame.f_globals["__name__"].rpartition(".")[2]


def text() -> str:
    """The source of the table."""
    parts = [HEAD]
    for module, ops in sorted(registered().items()):
        lines = textwrap.wrap(" ".join(sorted(ops)), 111, break_long_words=False)
        parts.append(f'    "{module}": """\n')
        parts += [f"        {line}\n" for line in lines]
        parts.append('    """,\n')
    parts.append('}\n"""Module -> its ops, one after the other."""\n')
    return "".join(parts)


if __name__ == "__main__":
    if "--print" in sys.argv[1:]:
        print(text(), end="")
    else:
        INDEX.write_text(text(), encoding="utf-8")
