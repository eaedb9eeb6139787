"""Who may touch what in dtfctl: the pure middle stays pure, each edge has one home."""

from __future__ import annotations

import sys

import pytest

from dtfctl.launchers.ssh import AGENT_MODULES, KEEPER_MODULES
from tests.test_architecture import ROOT, imports, module_name

SOURCES = sorted((ROOT / "dtfctl").rglob("*.py"))

PURE = (
    "state plan task statuses hosts host_failover planned_ends restart reconcile plan_diff expand shell_line "
    "program_line checks view columns hints wording errors"
).split()
OUTSIDE = {"asyncio", "fcntl", "socket", "sqlite3", "subprocess", "threading", "time", "random"}
HOMES = {
    "subprocess": {
        "dtfctl.launchers.local",
        "dtfctl.launchers.environment",
        *(f"dtfctl.launchers.agent.{room}" for room in ("check", "keepers", "programs", "talk")),
    },
    "sqlite3": {"dtfctl.store"},
    "yaml": {"dtfctl.config.source"},
    "grpc": set(),
    "psutil": {"dtfctl.launchers.local"},
    "rich": {"dtfctl.terminal", "dtfctl.attach", "dtfctl.commands.inspect"},
}


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_every_edge_has_its_home(path):
    name = module_name(path)
    tops = {imported.split(".")[0] for imported in imports(path)}
    assert not {top for top in tops & HOMES.keys() if name not in HOMES[top]}


@pytest.mark.parametrize("name", PURE)
def test_what_decides_touches_no_world(name):
    found = imports(ROOT / "dtfctl" / f"{name}.py")
    assert not {imported.split(".")[0] for imported in found} & OUTSIDE
    inner = {imported.split(".")[1] for imported in found if imported.startswith("dtfctl.")}
    assert inner <= {*PURE, "store"}


def test_the_states_import_nothing():
    assert imports(ROOT / "dtfctl" / "state.py") == set()


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
