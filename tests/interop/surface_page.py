"""The page runtime/surface.md: how much of tf.compat.v1's public surface dtf has, by module.

    python -m tests.interop.surface [--list MODULE]
"""

from __future__ import annotations

import json
from typing import Any

from tests.interop import surface
from tests.interop.tensorflow_process import run

_HEAD = """# The public surface of tf.compat.v1

Made by `python -m tests.interop.surface`, which walks TensorFlow 2.21's `tf.compat.v1` name by name and argument by
argument. "Differing" counts functions that lack a parameter or have another default or order, and classes that lack a
public member, those of TensorFlow 2 included; members that only serve TensorFlow 2's tracing are left out. Of
`tf.keras` only names are compared. A name that is left out on purpose says in its error what to use instead
(`runtime/dtf/absent.py`).

"Left out" counts names that are absent on purpose: eager execution, TPUs, distribution strategies, boosted trees,
quantised arithmetic and TensorFlow 2's own parts.

| module | there | differing | missing | left out |
|---|---|---|---|---|
"""

_CONTRIB = """
## tf.contrib and tf.estimator

TensorFlow 2.21 has neither; this table counts what is there. Any other part says in its error what to use.

| module | there |
|---|---|
"""

_PROGRAM = """
import os
os.environ["TF_USE_LEGACY_KERAS"] = "1"
from tests.interop import surface
print(json.dumps(surface.surface(tf)))
"""


def wanted() -> dict[str, dict[str, Any]]:
    """The surface of TensorFlow."""
    found: dict[str, dict[str, Any]] = run(_PROGRAM)
    return found


def found(tf: Any, theirs: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The surface of dtf; names of tf.keras that are imported late are not in `dir`, but are asked for."""
    names = surface.surface(tf)
    for path in surface.KERAS_MODULES:
        module = tf
        for part in path.split("."):
            module = getattr(module, part, None)
        known = names.setdefault(path, {})
        known.update((name, {"kind": "name"}) for name in theirs.get(path, {}) if hasattr(module, name))
    return names


def page(differences: dict[str, dict[str, Any]]) -> str:
    """The text of the page."""
    rows = []
    totals = [0, 0, 0, 0]
    for module, each in sorted(differences.items()):
        counts = [len(each[kind]) for kind in ("there", "differing", "missing", "left out")]
        if not any(counts):
            continue
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        name = f"tf.{module}" if module else "tf"
        rows.append(f"| {name} | {' | '.join(map(str, counts))} |\n")
    rows.append(f"| all | {' | '.join(map(str, totals))} |\n")
    return _HEAD + "".join(rows) + contrib_table() + "\n## Missing names\n\n" + "".join(
        f"- `tf.{module}`: {', '.join(each['missing'])}\n" if module else f"- `tf`: {', '.join(each['missing'])}\n"
        for module, each in sorted(differences.items())
        if each["missing"]
    )


def contrib_table() -> str:
    """How many names tf.estimator and the parts of tf.contrib have. TensorFlow 2.21 has none to compare with."""
    from dtf import contrib, estimator, late

    count = sum(late.is_public(each, getattr(estimator, each)) for each in dir(estimator))
    rows = [f"| tf.estimator | {count} |\n"]
    for name in sorted(contrib._NAMESPACES):
        part = getattr(contrib, name)
        count = sum(late.is_public(each, getattr(part, each)) for each in dir(part))
        rows.append(f"| tf.contrib.{name} | {count} |\n")
    return _CONTRIB + "".join(rows)


def main(dtf: Any, arguments: list[str]) -> None:
    """Writes the page, or lists what differs in one module."""
    theirs = wanted()
    differing = surface.differences(theirs, found(dtf, theirs))
    if arguments[:1] == ["--list"]:
        print(json.dumps(differing["" if arguments[1] == "tf" else arguments[1]], indent=1))
        return
    surface.PAGE.write_text(page(differing), encoding="utf-8")
