"""The hosts that a run has reached: a file for each, from before the first talk until its keeper there has gone.

So the next supervisor knows where processes may be left, whatever ended the former one: also of a run that never
came to be on record, and of a host that was lost from sight at the very end.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, replace
from pathlib import Path

from dtfctl.values import plan as plans
from dtfctl.values.plan import ClusterPlan, HostPlan
from dtfctl.wire.typed import from_document, shape_of

REACHED = "reached"
"""The folder of these files, in the folder of a run."""


def note(run_dir: Path, plan: ClusterPlan, run: str, token: str, host: HostPlan) -> None:
    """Before a talk with the host; `run` names the run's folder there."""
    file = _file(run_dir, host.name)
    if file.exists():
        return
    file.parent.mkdir(exist_ok=True)
    document = {"run": run, "token": token, "host": asdict(host), "plan": plans.to_json(replace(plan, jobs=()))}
    aside = file.with_suffix(".new")
    aside.write_text(json.dumps(document))
    os.rename(aside, file)


def forget(run_dir: Path, host: str) -> None:
    """The keeper there has gone, and all that it kept."""
    _file(run_dir, host).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        (run_dir / REACHED).rmdir()


def is_any(run_dir: Path) -> bool:
    """Whether something of the run may be left on another host."""
    return bool(notes(run_dir))


def notes(run_dir: Path) -> list[Path]:
    """The files of the hosts that the run has reached."""
    return list((run_dir / REACHED).glob("*.json"))


def read(file: Path) -> tuple[ClusterPlan, HostPlan, str, str]:
    """(plan without jobs, host, the run's folder there, token) of a file.

    Raises OSError, ValueError, KeyError or TypeError for a file of a former version.
    """
    document = json.loads(file.read_text())
    shape_of(ClusterPlan)(document["plan"], "plan")
    shape_of(HostPlan)(document["host"], "host")
    plan, host = from_document(ClusterPlan, document["plan"]), from_document(HostPlan, document["host"])
    return plan, host, document["run"], document["token"]


def _file(run_dir: Path, host: str) -> Path:
    return run_dir / REACHED / f"{host}.json"
