"""Who may import whom. The layers are those of runtime/README.md and dtfctl/README.md."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DTF = ROOT / "runtime" / "dtf"

ALLOWED = {
    "wire": {"wire"},
    "build": {"wire", "build"},
    "run": {"wire", "run"},
    "channel": {"wire", "run", "channel"},
    "rpc": {"wire", "run", "channel", "rpc"},
    "server": {"wire", "run", "rpc", "server"},
    "session": {"wire", "build", "server", "session"},
    "train": {"wire", "build", "server", "session", "train"},
}
"""Each layer is a folder or a module of dtf. What is not named here is a public namespace, which may import all."""
ONLY_IN = {
    "click": {"dtfctl.cli", "dtfctl.commands"},
    "cryptography": {"dtfctl.certificates"},
    "grpc": {"dtf.rpc"},
}


def module_name(path: Path) -> str:
    base = ROOT / "runtime" if DTF in path.parents else ROOT
    parts = path.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources() -> list[Path]:
    found = [*DTF.rglob("*.py"), *(ROOT / "dtfctl").rglob("*.py")]
    return sorted(path for path in found if "pb" not in path.relative_to(ROOT).parts)


def imports(path: Path) -> set[str]:
    """Dotted names that a module imports anywhere, `from dtf import x` as dtf.x; TYPE_CHECKING blocks aside."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            skipped.update(child for statement in node.body for child in ast.walk(statement))
    names: set[str] = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def layer_of(dotted: str) -> str | None:
    parts = dotted.split(".")
    if parts[0] != "dtf" or len(parts) < 2:
        return None
    beside = {"fetches": "session", "serve": "server", "session_handles": "session"}
    return beside.get(parts[1], parts[1] if parts[1] in ALLOWED else None)


@pytest.mark.parametrize("path", sources(), ids=module_name)
def test_a_module_imports_only_what_its_layer_may(path: Path):
    name = module_name(path)
    layer = layer_of(name)
    wrong = []
    for imported in sorted(imports(path)):
        top = imported.split(".")[0]
        if top in ONLY_IN and not any(name == owner or name.startswith(owner + ".") for owner in ONLY_IN[top]):
            wrong.append(f"{top} belongs to {sorted(ONLY_IN[top])}")
        if top == "dtf" and name.startswith("dtfctl"):
            wrong.append(f"dtfctl does not need dtf: {imported}")
        if top == "dtfctl" and name.startswith("dtf."):
            wrong.append(f"dtf never imports dtfctl: {imported}")
        target = layer_of(imported)
        if layer in ALLOWED and target is not None and target not in ALLOWED[layer]:
            wrong.append(f"{layer} may not import {target}: {imported}")
    assert not wrong, f"{name}: " + "; ".join(wrong)


def test_every_module_of_the_package_has_a_room():
    """Beside the layers there are only namespaces, which users see."""
    public = (
        "__init__ app audio behavior bitwise client compat contrib data debugging estimator feature_column flags gfile "
        "graph_util image io keras layers linalg logging lookup losses manip math metrics nn python_io "
        "quantization random raw_ops saved_model sets signal sparse spectral strings summary test testing"
    ).split()
    heads = {path.relative_to(DTF).parts[0].removesuffix(".py") for path in DTF.rglob("*.py")}
    assert heads - {"__pycache__"} <= {*ALLOWED, "fetches", "graph_names", "late", "serve", "session_handles", *public}
