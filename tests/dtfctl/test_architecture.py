"""Who may touch what in dtfctl: the pure middle stays pure, each edge has one home."""

from __future__ import annotations

import sys

import pytest

from dtfctl.launchers.agent_client import AGENT_MODULES, KEEPER_MODULES
from tests.test_architecture import ROOT, imports, module_name

SOURCES = sorted((ROOT / "dtfctl").rglob("*.py"))

COMMON = {"errors", "hints", "wording"}
"""Modules at the top that every room uses; they use none."""

ROOMS = {
    "values": "",
    "wire": "",
    "plan": "values",
    "storage": "values wire",
    "launchers": "checks manifests plan storage values wire",
    "logs": "launchers values wire",
    "config": "manifests plan values",
    "manifests": "config plan values",
    "supervise": "launchers plan storage values wire",
    "probes": "launchers logs plan storage supervise trace values wire",
    "control": "launchers plan storage supervise values wire",
    "show": "control launchers logs supervise values",
    "metrics": "launchers logs probes values wire",
    "notices": "values",
    "trace": "wire",
    "checks": "config control launchers plan show storage values",
    "ui": "control launchers logs metrics probes show storage supervise values wire",
    "commands": "checks config control launchers logs manifests metrics plan probes show storage supervise trace ui"
    " values wire",
    "daemon": "control launchers metrics notices plan probes storage supervise values wire",
    "cli": "commands",
    "embedded": "",
    "ray": "config embedded",
    "spark": "config embedded launchers",
}
"""Each room of dtfctl, and the others that it may import."""

PURE = {
    *(module_name(path) for room in ("values", "plan") for path in (ROOT / "dtfctl" / room).glob("*.py")),
    *(f"dtfctl.supervise.{name}" for name in ("autoscale", "host_failover", "planned_ends", "reconcile", "restart")),
    "dtfctl.notices.documents",
    *(f"dtfctl.trace.{name}" for name in ("model", "critical_path", "explain")),
    *("dtfctl.checks.questions", "dtfctl.checks.program_line", "dtfctl.show.view", "dtfctl.show.columns"),
    *("dtfctl.show.diagnosis", "dtfctl.show.lives", "dtfctl.ui.documents"),
    *(f"dtfctl.{name}" for name in COMMON),
}
OUTSIDE = {"asyncio", "fcntl", "socket", "sqlite3", "subprocess", "threading", "time", "random"}
HOMES = {
    "subprocess": {
        "dtfctl.launchers.local",
        "dtfctl.launchers.here",
        "dtfctl.launchers.slurm_job",
        "dtfctl.launchers.mpi",
        "dtfctl.launchers.environment",
        "dtfctl.launchers.bridge.commands",
        "dtfctl.launchers.spark.task",
        "dtfctl.embedded",
        "dtfctl.launchers.gpus",
        *(f"dtfctl.launchers.agent.{room}" for room in ("check", "keepers", "programs", "talk")),
    },
    "sqlite3": {"dtfctl.storage.store"},
    "yaml": {"dtfctl.config.source"},
    "fsspec": {"dtfctl.logs.training_folder"},
    "grpc": set(),
    "plotext": {"dtfctl.show.curves"},
    "prometheus_client": {"dtfctl.metrics.families"},
    "psutil": {"dtfctl.launchers.local"},
    "starlette": {"dtfctl.ui.server"},
    "uvicorn": {"dtfctl.ui.server"},
    "rich": {"dtfctl.show.terminal", "dtfctl.show.attach", "dtfctl.commands.inspect"},
}


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_every_edge_has_its_home(path):
    name = module_name(path)
    tops = {imported.split(".")[0] for imported in imports(path)}
    assert not {top for top in tops & HOMES.keys() if name not in HOMES[top]}


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_a_room_imports_those_that_it_may(path):
    name = module_name(path).removeprefix("dtfctl").removeprefix(".")
    room = name.partition(".")[0]
    if room in ("", "__main__"):
        return
    others = {imported.split(".")[1] for imported in imports(path) if imported.startswith("dtfctl.")} - {room}
    assert others <= COMMON | set(ROOMS[room].split()) if room not in COMMON else not others


def test_every_file_has_a_room():
    at_the_top = {path.stem for path in (ROOT / "dtfctl").glob("*.py")}
    assert at_the_top == {"__init__", "__main__", "cli", "daemon", "embedded", "ray", *COMMON}
    rooms = {path.parent.name for path in (ROOT / "dtfctl").glob("*/__init__.py")}
    assert rooms == ROOMS.keys() - {"cli", "daemon", "embedded", "ray"}


@pytest.mark.parametrize("name", sorted(PURE))
def test_what_decides_touches_no_world(name):
    path = ROOT.joinpath(*name.split("."))
    found = imports(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
    assert not {imported.split(".")[0] for imported in found} & OUTSIDE
    modules = {imported if _is_module(imported) else imported.rpartition(".")[0] for imported in found}
    assert {module for module in modules if module.startswith("dtfctl.")} <= PURE


@pytest.mark.parametrize("path", sorted((ROOT / "dtfctl" / "manifests").glob("*.py")), ids=module_name)
def test_manifests_touch_no_world(path):
    assert not {imported.split(".")[0] for imported in imports(path)} & OUTSIDE


def test_the_states_import_nothing():
    assert imports(ROOT / "dtfctl" / "values" / "state.py") == set()


def others_of(name):
    """The modules of dtfctl that a module imports, which must need nothing else but Python."""
    path = ROOT.joinpath(*name.split("."))
    found = imports(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
    own = {imported for imported in found if imported.startswith("dtfctl.")}
    assert {imported.split(".")[0] for imported in found - own} <= sys.stdlib_module_names
    is_there = {each for each in own if _is_module(each)}
    return is_there | {each.rpartition(".")[0] for each in own - is_there}


def _is_module(name):
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


@pytest.mark.parametrize("name", AGENT_MODULES)
def test_an_agent_needs_nothing_but_python_and_what_is_brought_before(name):
    assert others_of(name) <= set(AGENT_MODULES[: AGENT_MODULES.index(name)])


@pytest.mark.parametrize("name", KEEPER_MODULES)
def test_a_keeper_needs_nothing_but_python_and_what_lies_beside_it(name):
    assert others_of(name) <= set(KEEPER_MODULES)
    rooms = {path.stem for path in (ROOT / "dtfctl" / "launchers" / "keeper").glob("*.py")} - {"__init__"}
    assert {f"dtfctl.launchers.keeper.{room}" for room in rooms} <= set(KEEPER_MODULES)


ENGINES = (
    *("bridge.commands", "bridge.server"),
    *(f"spark.{name}" for name in ("link", "words", "probe", "there", "task", "executors", "bridge")),
)
"""Of launchers: what runs in an engine's Python."""


@pytest.mark.parametrize("name", [*ENGINES, "ray.bridge"])
def test_an_engines_python_need_not_have_what_dtfctl_needs(name):
    path = ROOT.joinpath("dtfctl", "launchers", *name.split(".")).with_suffix(".py")
    found = imports(path)
    own = {imported for imported in found if imported.startswith("dtfctl.")}
    others = {imported.split(".")[0] for imported in found - own}
    assert others <= {*sys.stdlib_module_names, "pyspark" if "spark" in name else "ray"}
    modules = {each if _is_module(each) else each.rpartition(".")[0] for each in own}
    assert modules <= {f"dtfctl.launchers.{each}" for each in (*ENGINES, "spark", "bridge")}
