"""Writes runtime/ops.md, the page that lists every op: `python -m tests.runtime.ops_page`.

All of it comes from the four tables: contracts, kernels, shape rules and gradients.
"""

from __future__ import annotations

from pathlib import Path

from dtf.build import gradients
from dtf.run import kernels
from dtf.wire import opdef
from dtf.wire.dtypes import DType

PAGE = Path(__file__).resolve().parents[2] / "runtime" / "ops.md"

_GROUPS = {
    "floats": {"bfloat16", "float16", "float32", "float64"},
    "integers": {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "complex": {"complex64", "complex128"},
}

_HEAD = """# The ops

Written by `python -m tests.runtime.ops_page` from the tables of the runtime; `tests/runtime/test_ops_page.py` says when
it is stale. {count} ops, {with_gradient} of them with a gradient; the others let nothing flow back. The kernel of an op
is in the named module of `dtf/run/kernels`, its contract in `dtf/wire/opdefs/<family>.txt`. Dtypes are those that the
contract allows for each of its type attributes; TensorFlow's quantised types are left out.
"""


def page() -> str:
    """The text of the page."""
    kernels.load_all()
    gradients.load()
    families = {  # those of the files alone: other contracts may have been registered in this process
        path.stem: [line.partition("(")[0] for line in sorted(path.read_text(encoding="utf-8").splitlines())]
        for path in sorted((Path(opdef.__file__).parent / "opdefs").glob("*.txt"))
    }
    every = [name for names in families.values() for name in names]
    with_gradient = sum(gradients.table.get(name) is not None for name in every)
    lines = [_HEAD.format(count=len(every), with_gradient=with_gradient)]
    for family, names in families.items():
        lines += [f"## {family}", "", "| op | kernel | gradient | dtypes |", "|---|---|---|---|"]
        for name in names:
            known = kernels.has_kernel(name)
            module = kernels.rows(name)[-1].factory.__module__.rpartition(".")[2] if known else "none"
            gradient = "yes" if gradients.table.get(name) is not None else "-"
            lines.append(f"| {name} | {module} | {gradient} | {_dtypes(opdef.get(name))} |")
        lines.append("")
    return "\n".join(lines)


def _dtypes(op: opdef.OpDef) -> str:
    """Per type attribute what it may be, in the names of groups."""
    words = [
        f"{attr.name}: {_allowed(attr.allowed)}" for attr in op.attrs if attr.type in ("type", "list(type)")
    ]
    return "; ".join(words) if words else "-"


def _allowed(allowed: list[DType] | None) -> str:
    if allowed is None:
        return "any"
    names = [dtype.name for dtype in allowed if not dtype.is_quantized]
    groups = [group for group, members in _GROUPS.items() if members <= set(names)]
    grouped = set().union(*(_GROUPS[group] for group in groups))
    return ", ".join([*groups, *(name for name in names if name not in grouped)])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
