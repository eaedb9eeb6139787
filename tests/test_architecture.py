"""Who may import whom. The layers are those of runtime/README.md and dtfctl/README.md."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
DTF = ROOT / "runtime" / "dtf"

ALLOWED = {
    "wire": {"wire"},
    "build": {"wire", "build"},
    "run": {"wire", "run"},
    "channel": {"wire", "run", "channel"},
    "rpc": {"wire", "run", "channel", "rpc"},
    "places": {"wire", "run", "channel", "places"},
    "server": {"wire", "run", "rpc", "places", "server"},
    "session": {"wire", "build", "server", "session"},
    "train": {"wire", "build", "server", "session", "train"},
}
"""Each layer is a folder or a module of dtf. What is not named here is a public namespace, which may import all."""
ONLY_IN = {
    "click": {"dtfctl.cli", "dtfctl.commands"},
    "cryptography": {"dtfctl.storage.certificates"},
    "grpc": {"dtf.rpc"},
    "torch": {"dtf.run.devices.pytorch"},
}


PLUGINS = {
    ("dtf.run.devices.backends", "dtf.run.devices.fake"),
    ("dtf.run.devices.backends", "dtf.run.devices.pytorch.backend"),
}
"""(registry, module that registers itself there and is imported when an environment asks for it)."""

ANY_IN_RUN = {
    "dtf.run.durability.records": (1, "what records say, as JSON gives it"),
    "dtf.run.datasets.dataset": (1, "what a dataset remembers has the type of what its maker makes"),
    "dtf.run.executor.segment_source": (2, "what the names of generated code stand for"),
    "dtf.run.executor.step": (1, "a node's state has the type of what its factory makes"),
    "dtf.run.kernels.image_files": (1, "Pillow, an extra, has the type of an image"),
    "dtf.run.passes.place": (1, "the fields of a request by name"),
    "dtf.run.state.resources": (2, "an array or a device's array or None, whose references count; objects by kind"),
    "dtf.run.state.staging": (1, "as wait_queue"),
    "dtf.run.state.wait_queue": (1, "a queue of operations of several types"),
    "dtf.run.value_types": (3, "types that data has: see there"),
}
"""Module -> (how often its annotations say Any, why). All others of `dtf.run` do without it."""


def module_name(path: Path) -> str:
    base = ROOT / "runtime" if DTF in path.parents else ROOT
    parts = path.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources() -> list[Path]:
    found = [*DTF.rglob("*.py"), *(ROOT / "dtfctl").rglob("*.py")]
    return sorted(path for path in found if "pb" not in path.relative_to(ROOT).parts)


def imports(path: Path, for_types: bool = False) -> set[str]:
    """Dotted names that a module imports anywhere, `from dtf import x` as dtf.x; those of TYPE_CHECKING on request."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if not for_types and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
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


def imported_modules(path: Path, known: set[str], for_types: bool = False) -> set[str]:
    """The modules among `known` that a module imports, also in functions; `for_types`: those of TYPE_CHECKING, too.

    The packages around an imported module do not count, so that a package may import its own modules.
    """
    found = {name if name in known else name.rpartition(".")[0] for name in imports(path, for_types)}
    return (found & known) - {module_name(path)}


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    """The modules that are left when all that import nothing else, or are imported by nothing else, are taken away."""
    graph = {name: set(targets) for name, targets in graph.items()}
    while True:
        imported = set().union(*graph.values()) if graph else set()
        ends = {name for name, targets in graph.items() if not targets or name not in imported}
        if not ends:
            return sorted(graph)
        graph = {name: targets - ends for name, targets in graph.items() if name not in ends}


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
        "__init__ __main__ absent app as_tensorflow audio behavior bitwise check client compat config contrib data "
        "debugging distribute distributions dtypes estimator feature_column flags gfile graph_util image "
        "initializers io keras layers linalg logging lookup losses manip math metrics nn notebook profiler "
        "python_io quantization queue ragged random raw_ops resource_loader saved_model sets signal sparse "
        "spectral strings summary sysconfig test testing version"
    ).split()
    heads = {path.relative_to(DTF).parts[0].removesuffix(".py") for path in DTF.rglob("*.py")}
    inner = {"blas_environment", "checkpoints", "cost_model", "fetches", "graph_names", "late", "serve"}
    inner |= {"session_handles"}
    assert heads - {"__pycache__"} <= {*ALLOWED, *inner, *public}


def import_graph(for_types: bool, *packages: str) -> dict[str, set[str]]:
    """Which modules of the packages import which, without the plugins."""
    known = {module_name(path): path for path in sources() if module_name(path).startswith(packages)}
    graph = {name: imported_modules(path, set(known), for_types) for name, path in known.items()}
    for registry, plugin in PLUGINS:
        graph.get(registry, set()).discard(plugin)
    return graph


def test_no_modules_import_each_other_in_a_circle_not_even_in_functions():
    assert circle_in(import_graph(False, "dtf", "dtfctl")) == []


def test_no_modules_of_the_engine_import_each_other_in_a_circle_not_even_for_types():
    engine = ("dtf.wire", "dtf.run", "dtf.rpc", "dtf.channel", "dtf.server", "dtf.serve")
    assert circle_in(import_graph(True, *engine)) == []


@pytest.mark.slow
def test_no_number_of_a_step_or_request_depends_on_a_programs_random_seed():
    """Two trainers that both begin with random.seed(1), or a forked one, would use the same numbers at one server."""
    rooms = [DTF / room for room in ("wire", "run", "channel", "rpc")]
    users = [path for room in rooms for path in room.rglob("*.py") if "random" in imports(path)]
    assert not users, f"use secrets instead of random: {users}"


def test_no_function_is_too_complex_without_a_reason():
    """Cyclomatic complexity above 30 (radon's E) needs a docstring that says "complex because"."""
    visitors = pytest.importorskip("radon.visitors", reason="radon is not installed; the extra `dev` has it")
    unexplained = [
        f"{path.relative_to(ROOT)}:{block.lineno} {block.name} has {block.complexity}"
        for path in sources()
        for block in _functions(visitors, path)
        if block.complexity > 30 and "complex because" not in _docstring_at(path, block.lineno)
    ]
    assert unexplained == []


def test_annotations_of_run_say_any_only_where_a_reason_is_given():
    """A type that is not known here has a name in value_types, or is object."""
    found = {module_name(path): _uses_of_any(path) for path in sources() if DTF / "run" in path.parents}
    allowed = {name: uses for name, (uses, _) in ANY_IN_RUN.items()}
    assert {name: uses for name, uses in found.items() if uses} == allowed


def _uses_of_any(path: Path) -> int:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))


def _functions(visitors: ModuleType, path: Path) -> list[Any]:
    """All functions and methods of a file, with their complexity; inner ones count for theirs."""
    found = visitors.ComplexityVisitor.from_code(path.read_text(encoding="utf-8"))
    return [*found.functions, *(method for each in found.classes for method in each.methods)]


def _docstring_at(path: Path, line: int) -> str:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and line in (node.lineno, *(each.lineno for each in node.decorator_list)):
            return ast.get_docstring(node) or ""
    return ""
