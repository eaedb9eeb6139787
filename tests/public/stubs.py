"""Stub files of the packages whose names are found late, so that editors and type checkers see them.

Owns how a stub is made from the running package. A name that `__getattr__` finds has no type for a checker; a stub
file says where each name comes from, and the annotations of that place count.

    python -m tests.public        writes the stubs; a test says when they are stale
"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2] / "runtime"
PACKAGES = ("dtf", "dtf.nn", "dtf.train", "dtf.io", "dtf.math", "dtf.layers")
_HEAD = '"""Made by `python -m tests.public`: where each public name of this package is defined."""\n\n'


_TYPES = """from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dtf.build.tensor import Tensor
from dtf.build.tensor_like import DTypeLike, TensorLike
from dtf.layers.choices import Activation
from dtf.wire.dtypes import DType

"""


def _origin(name: str, value: object, package: str) -> tuple[str, str] | None:
    """The module and the name there of a public object; None where no module has it by a name."""
    homes = [getattr(value, "__module__", None), getattr(type(value), "__module__", None)]
    for home in homes:
        if not isinstance(home, str) or home not in sys.modules or home == package:
            continue
        module = sys.modules[home]
        for known in (name, getattr(value, "__name__", name)):
            if getattr(module, known, None) is value:
                return home, known
    for home, module in sorted(sys.modules.items()):
        if home.startswith("dtf.") and home != package and getattr(module, name, None) is value:
            return home, name
    return None


def render(package: str) -> str:
    """The text of the stub of one package.

    Raises:
      ValueError: a public name has no module that defines it, so a stub cannot say where it comes from.
    """
    module = importlib.import_module(package)
    lines = []
    for name in sorted(dir(module)):
        if name.startswith("_") or name in ("annotations", "late", "TYPE_CHECKING"):
            continue
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            if value.__name__.startswith("dtf"):
                parent, _, last = value.__name__.rpartition(".")
                lines.append(f"from {parent} import {last} as {name}" if parent else f"import {last} as {name}")
            continue
        if value is None:
            lines.append(f"{name}: None")
            continue
        signature = getattr(value, "__signature__", None)
        if isinstance(signature, inspect.Signature):
            lines.append(f"def {name}{_plain(signature)}: ...")
            continue
        found = _origin(name, value, package)
        if found is None and isinstance(value, (str, int, float)):
            lines.append(f"{name}: {type(value).__name__}")
        elif found is None:
            raise ValueError(f"{package}.{name} is defined in no module of dtf")
        else:
            lines.append(f"from {found[0]} import {found[1]} as {name}")
    if package == "dtf":
        lines.append("__version__: str")
    head = _HEAD + (_TYPES if any(line.startswith("def ") for line in lines) else "")
    return head + "\n".join(sorted(lines)) + "\n"


def _plain(signature: inspect.Signature) -> str:
    """The signature of a function that is made at run time, as a stub has it: annotations as they were written."""
    parts = []
    for each in signature.parameters.values():
        annotation = each.annotation if isinstance(each.annotation, str) else "Any"
        parts.append(f"{each.name}: {annotation}" + (" = ..." if each.default is not each.empty else ""))
    gives = signature.return_annotation
    return f"({', '.join(parts)}) -> {gives if isinstance(gives, str) else 'Tensor'}"


def path_of(package: str) -> Path:
    """Where the stub of a package or module lies."""
    path = ROOT.joinpath(*package.split("."))
    return path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")


def write() -> None:
    """Write all stubs."""
    for package in PACKAGES:
        path_of(package).write_text(render(package), encoding="utf-8")
