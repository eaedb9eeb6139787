"""Whether the cluster of a file could start, as far as this machine can tell. Changes nothing.

`troubles` asks everything that questions.py has for this machine, and what only the command line knows: secrets, ports,
the checkpoints of other clusters. Other machines are asked by launchers/preflight.py.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from dtfctl.checks.questions import DOUBT, WRONG, Trouble, Where, questions, told
from dtfctl.config import ClusterFile
from dtfctl.config.build import HELPERS
from dtfctl.config.positions import Positions
from dtfctl.control.cluster import SSH_VARIABLE, clusters, secret_values
from dtfctl.errors import SecretMissing, StoreError
from dtfctl.launchers.agent.check import address_error, name_error, port_error
from dtfctl.launchers.agent.look import answers
from dtfctl.plan import expand
from dtfctl.values.plan import SPARSE, SSH, TLS, ClusterPlan, is_remote

WORD_BYTES_MAX = 128 * 1024 - 16
"""The most that one variable of a program, or one word of its command line, may be long: 32 pages, with its name."""

CHECKPOINT = "checkpoint"
"""The file in which a Saver names its newest checkpoint."""


def troubles(
    file: ClusterFile,
    plan: ClusterPlan,
    root: Path,
    environment: Mapping[str, str] | None = None,
    has_ports: bool = False,
) -> list[Trouble]:
    """`root` is the state folder, `environment` where secrets are looked for. `has_ports`: the ports that the file
    names are held already, or another function checks them."""
    where = file.positions()
    found = [Trouble(DOUBT, "", "", words) for words in file.doubts()]
    for host in plan.hosts:
        asked = questions(plan, host, where, copied=not host.is_local)
        found += told(asked, answers([each.question for each in asked]))
    found += _secrets(plan, where, os.environ if environment is None else environment)
    found += _addresses(plan, where, has_ports)
    found += _cluster_specs(plan, where)
    found += _tools(plan, where)
    found += _checkpoints(plan, root, where.top("checkpoint_dir"))
    return list(dict.fromkeys(found))


def _secrets(plan: ClusterPlan, where: Where, environment: Mapping[str, str]) -> Iterator[Trouble]:
    for task in plan.tasks():
        for secret in task.settings.secrets:
            try:
                secret_values((secret,), environment)
            except SecretMissing as error:
                # A problem that several tasks share is reported once.
                yield Trouble(WRONG, "", where(task, f"secrets.{secret.name}", "secrets"), str(error))


def _addresses(plan: ClusterPlan, where: Where, has_ports: bool) -> Iterator[Trouble]:
    from dtfctl.launchers.local import owner_of

    bad: dict[str, str] = {}
    for task in plan.tasks():
        if not task.host.is_local or not task.job.has_address:
            continue
        address, name, port = task.bind_host, task.advertised_host, task.place.port
        if address not in bad:
            bad[address] = address_error(address)
            if bad[address]:
                what = f"servers cannot listen at {address}: {bad[address]}"
                at = where(task, "bind", "advertise", "address")
                yield Trouble(WRONG, task.name, at, what, "choose another bind; `ip address` lists the addresses")
            elif name != address and name_error(name):
                what = f"its address {name} is not known here: {name_error(name)}"
                yield Trouble(DOUBT, task.name, where(task, "advertise", "address"), what, "another advertise")
        if port and not has_ports and not bad[address]:
            why = port_error(address, port)
            if why:
                what = f"port {port} at {address}: {why}{owner_of(port)}"
                yield Trouble(WRONG, task.name, where(task, "port"), what, "choose another port, or port: auto")


def _cluster_specs(plan: ClusterPlan, where: Where) -> Iterator[Trouble]:
    """A full ClusterSpec names each task to each, in a variable and in a command line."""
    task = next((task for task in plan.tasks() if task.settings.cluster_spec != SPARSE), None)
    if task is None:
        return
    addresses = {each.name: f"{each.advertised_host}:65535" for each in plan.tasks() if each.job.has_address}
    text = json.dumps(expand.tf_config(expand.cluster_spec(plan, task, addresses), task))
    if len(text) > WORD_BYTES_MAX:
        what = f"its ClusterSpec takes {len(text)} bytes, and Linux gives a program at most {WORD_BYTES_MAX} in a word"
        yield Trouble(WRONG, task.name, where(task, "cluster_spec"), what, "cluster_spec: sparse names only the ps")


def _tools(plan: ClusterPlan, where: Positions) -> Iterator[Trouble]:
    if plan.security == TLS and importlib.util.find_spec("cryptography") is None:
        yield Trouble(
            WRONG, "", where.top("security"), "security: tls needs cryptography", "pip install 'dtf[tls]'"
        )
    if plan.metrics and importlib.util.find_spec("prometheus_client") is None:
        yield Trouble(WRONG, "", where.top("metrics"), "metrics need prometheus_client", "pip install 'dtf[metrics]'")
    if any(host.via == SSH for host in plan.remote_hosts):
        words = shlex.split(os.environ.get(SSH_VARIABLE) or plan.ssh.command)
        if not words or shutil.which(words[0]) is None:
            what = f"hosts are reached by {words[0] if words else 'ssh'}, which is not found"
            at = where.top("ssh") or where.top("hosts")
            yield Trouble(WRONG, "", at, what, "apt install openssh-client, or another ssh")


def _same_for_all(checkpoint_dir: str) -> str:
    """What names a folder however its path is written; a URL as it is."""
    return checkpoint_dir if is_remote(checkpoint_dir) else os.path.realpath(checkpoint_dir)


def _checkpoints(plan: ClusterPlan, root: Path, at: str) -> Iterator[Trouble]:
    """Two clusters that train into one folder overwrite each other's checkpoints."""
    if not plan.checkpoint_dir or all(job.name in HELPERS for job in plan.jobs):
        return
    own = _same_for_all(plan.checkpoint_dir)
    for cluster in clusters(root):
        if cluster.name == plan.name:
            continue
        try:
            found = cluster.find()
        except StoreError:
            continue
        other = found[0].plan if found is not None else None
        if found is None or other is None or not other.checkpoint_dir:
            continue
        if _same_for_all(other.checkpoint_dir) != own or all(job.name in HELPERS for job in other.jobs):
            continue
        do = f"choose another: --set checkpoint_dir={shlex.quote(plan.checkpoint_dir)}-{plan.name}"
        if not found[0].is_over:
            yield Trouble(WRONG, "", at, f"the cluster {cluster.name} is running on the same checkpoint_dir {own}", do)
        elif os.path.exists(os.path.join(own, CHECKPOINT)):
            what = f"checkpoint_dir {own} has checkpoints of the cluster {cluster.name}; {plan.name} continues them"
            yield Trouble(DOUBT, "", at, what, do)


