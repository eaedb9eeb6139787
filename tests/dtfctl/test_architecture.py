"""Who may touch what in dtfctl: the pure middle stays pure, each edge has one home."""

from __future__ import annotations

import sys

import pytest

from dtfctl.launchers.ssh import AGENT_MODULES
from tests.test_architecture import ROOT, imports, module_name

SOURCES = sorted((ROOT / "dtfctl").rglob("*.py"))

PURE = "state plan task statuses hosts moves restart reconcile changes expand shell_line view errors".split()
OUTSIDE = {"asyncio", "fcntl", "socket", "sqlite3", "subprocess", "threading", "time", "random"}
HOMES = {
    "subprocess": {"dtfctl.launchers.local", "dtfctl.launchers.agent", "dtfctl.launchers.environment"},
    "sqlite3": {"dtfctl.store"},
    "yaml": {"dtfctl.config.source"},
    "grpc": set(),
    "psutil": {"dtfctl.launchers.local"},
    "rich": {"dtfctl.terminal", "dtfctl.attach", "dtfctl.commands.looking"},
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


@pytest.mark.parametrize("name", [*AGENT_MODULES, "dtfctl.launchers.keeper", "dtfctl.launchers.recorder"])
def test_what_is_brought_to_other_hosts_needs_nothing_but_python_and_what_is_brought_before_it(name):
    found = imports(ROOT.joinpath(*name.split(".")).with_suffix(".py"))
    own = {imported for imported in found if imported.startswith("dtfctl.")}
    assert {imported.split(".")[0] for imported in found - own} <= {*sys.stdlib_module_names, "dtfctl"}
    before = AGENT_MODULES[: AGENT_MODULES.index(name)] if name in AGENT_MODULES else ()
    assert own <= {*before, *(module.rpartition(".")[0] for module in before)}
