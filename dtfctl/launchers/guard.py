"""What ends a run's processes on a host whose engine has taken the host back: an agent that cleans up."""

from __future__ import annotations

import json
from pathlib import Path

from dtfctl.launchers.agent_client import BECOME_AGENT, agent_line, keeper_text
from dtfctl.launchers.keeper import TOKEN
from dtfctl.launchers.remote import remote_token
from dtfctl.values.plan import HostPlan


def guard_of(host: HostPlan, run: str, run_dir: Path) -> tuple[str, str]:
    """(a program for a Python there, its input)."""
    token = remote_token((run_dir / TOKEN).read_text().strip(), host)
    request = {"do": "clean", "run": run, "token": token, "keeper": keeper_text()}
    return BECOME_AGENT, agent_line().decode() + json.dumps(request) + "\n"
