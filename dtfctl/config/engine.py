"""The `engine:` of a cluster file: what gives the hosts, in place of `hosts:`. Pure."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dtfctl.config import hostlist
from dtfctl.config.hosts import host_plan
from dtfctl.config.kinds import Values, nearest
from dtfctl.values.engines import (
    GroupSettings,
    KubernetesSettings,
    MpiSettings,
    RaySettings,
    SlurmGroup,
    SlurmSettings,
    SparkSettings,
    engine_hosts,
)
from dtfctl.values.plan import KUBERNETES, MPI, RAY, SLURM, SPARK, HostPlan

IMAGE_FOLDER = "/app"
"""Where an image has the cluster file's folder."""

ANY_ADDRESS = "0.0.0.0"
HET_SIZE_MAX = 1000
"""Slurm's own limit is 128."""


def engine_name(top: Values) -> str:
    """The engine that the file names, or "". Raises ConfigError where the file has hosts too."""
    if "engine" not in top:
        return ""
    if "hosts" in top:
        raise top["hosts"].node.at.error('"hosts" and "engine" exclude each other: the engine gives the hosts')
    chosen = top["engine"].value
    return str(chosen["name"].value) if "name" in chosen else next(iter(chosen), "")


def slurm_of(top: Values, variables: Mapping[str, str]) -> SlurmSettings | None:
    """The allocation that the file asks for, or in which this process is; None where it names no engine."""
    if engine_name(top) != SLURM:
        return None
    found = _section(top, SLURM)
    job = variables.get("SLURM_JOB_ID", "")
    try:
        restarts = int(variables.get("SLURM_RESTART_COUNT") or 0)
        allocated = len(nodes_of(variables)) if job else 0
    except ValueError as error:
        words = f"this process is in job {job} of Slurm (SLURM_JOB_ID), whose variables cannot be read: {error}"
        raise top["engine"].node.at.error(f"{words}; unset SLURM_JOB_ID to submit another job") from None
    groups = _groups(found, variables if job else {})
    wanted = sum(group.nodes for group in groups) if groups else _of(found, "nodes", 1)
    nodes = allocated if job else wanted
    spares = _of(found, "spares", 0)
    for key in ("nodes", "spares"):
        if groups and key in found:
            raise found[key].node.at.error(f'"{key}" and "groups" exclude each other: each group has its nodes')
    if "interface" in found and "address" in found:
        raise found["interface"].node.at.error('"interface" and "address" exclude each other')
    if spares >= nodes:
        raise found["spares"].node.at.error(f'"spares" must leave a node for the tasks: there are {nodes} nodes')
    return SlurmSettings(
        job,
        nodes,
        tuple(text for text, _ in _of(found, "options", ())),
        tuple(text for text, _ in _of(found, "without", ())),
        _of(found, "srun", "srun"),
        restarts,
        spares,
        groups,
        _of(found, "interface", ""),
        _of(found, "sync", False),
        os.path.expanduser(_of(found, "python", "")),
        _of(found, "requeues", None),
    )


def _groups(found: Values, variables: Mapping[str, str]) -> tuple[SlurmGroup, ...]:
    """Without an allocation (no `variables`) the nodes have numbers."""
    if not _of(found, "groups", {}):
        return ()
    there = node_groups(variables) if variables else []
    given = found["groups"].value
    if variables and len(there) != len(given):
        what = f"{len(given)} groups, and job {variables['SLURM_JOB_ID']} of Slurm has {len(there)}"
        raise found["groups"].node.at.error(f'"groups" has {what}')
    result: list[SlurmGroup] = []
    for number, (job, each) in enumerate(given.items()):
        begun = sum(group.nodes for group in result)
        nodes = len(there[number]) if variables else _of(each.value, "nodes", 1)
        members = there[number] if variables else [f"node-{begun + index + 1}" for index in range(nodes)]
        options = tuple(text for text, _ in _of(each.value, "options", ()))
        result.append(SlurmGroup(job, nodes, options, tuple(members)))
    return tuple(result)


def check_groups(top: Values, slurm: SlurmSettings, jobs: Collection[str]) -> None:
    for group in slurm.groups:
        if group.job not in jobs:
            groups = top["engine"].value[SLURM].value["groups"]
            raise groups.value[group.job].node.at.error(
                f'"groups" names {group.job}, and no job is called so{nearest(group.job, jobs)}'
            )


def nodes_for(slurm: SlurmSettings, job: str) -> tuple[str, ...]:
    """The nodes on which a job runs that names none; () for all of them."""
    own = [group.members for group in slurm.groups if group.job == job]
    return (own or [group.members for group in slurm.groups[:1]] or [()])[0]


def add_nodes(
    top: Values, slurm: SlurmSettings, variables: Mapping[str, str], hosts: dict[str, HostPlan], folder: Path
) -> tuple[str, ...]:
    """Adds the allocation's nodes to `hosts` and returns their names; while there is no allocation they are called
    node-1, node-2 and so on."""
    names = nodes_of(variables) if slurm.job else [f"node-{number + 1}" for number in range(slurm.nodes)]
    found = _section(top, SLURM)
    address = _of(found, "address", "{node}")
    for name in names:
        own: dict[str, Any] = {"address": address.replace("{node}", name), "sync": slurm.is_apart}
        if not slurm.is_apart or "working_dir" in found:
            own["working_dir"] = _of(found, "working_dir", str(folder))
        if "python" not in top and "venv" not in top:
            # Each node has the environment that has dtfctl, by a shared file system or as an installation of its own.
            own["python"] = slurm.python or sys.executable
        hosts[name] = replace(host_plan(name, own, top, folder), via=SLURM, target=name)
    return tuple(names)


def nodes_of(variables: Mapping[str, str]) -> list[str]:
    """The nodes of the allocation in which a process has these variables, heterogeneous groups one after the other."""
    return [name for group in node_groups(variables) for name in group]


def node_groups(variables: Mapping[str, str]) -> list[list[str]]:
    """The same by group; a node that is in two groups counts in the first. Raises ValueError."""
    size = int(variables.get("SLURM_HET_SIZE") or 0)
    if not 0 <= size <= HET_SIZE_MAX:
        raise ValueError(f"SLURM_HET_SIZE is {size}, and a job has at most {HET_SIZE_MAX} groups")
    groups = range(size)
    keys = [f"SLURM_JOB_NODELIST_HET_GROUP_{group}" for group in groups] or ["SLURM_JOB_NODELIST"]
    found: dict[str, int] = {}
    for number, key in enumerate(keys):
        for name in hostlist.expand_names(variables.get(key, "")):
            found.setdefault(name, number)
    return [[name for name, group in found.items() if group == number] for number in range(len(keys))]


def kubernetes_of(top: Values) -> KubernetesSettings | None:
    """The namespace and the image that the file asks for; None where it names another engine."""
    if engine_name(top) != KUBERNETES:
        return None
    found = _section(top, KUBERNETES)

    def text(key: str, default: str = "") -> str:
        return str(_of(found, key, default))

    def texts(key: str) -> tuple[str, ...]:
        return tuple(text for text, _ in _of(found, key, ()))

    return KubernetesSettings(
        text("image"),
        text("context"),
        text("namespace"),
        texts("pull_secrets"),
        text("claim"),
        text("storage"),
        text("gpu", KubernetesSettings.gpu),
        texts("options"),
        texts("without"),
    )


def add_pods(top: Values, name: str, hosts: dict[str, HostPlan], folder: Path) -> tuple[str, ...]:
    """Adds the namespace as one host, on which each task has a name of its own, and returns its name."""
    image_folder = _of(_section(top, KUBERNETES), "folder", IMAGE_FOLDER).rstrip("/") or "/"
    host = host_plan(KUBERNETES, {"sync": False, "working_dir": image_folder}, top, folder)
    if "python" not in top and "venv" not in top:
        host = replace(host, python="python")
    address, bind = pod_address(name), host.bind or ANY_ADDRESS
    hosts[KUBERNETES] = replace(host, via=KUBERNETES, target=KUBERNETES, address=address, bind=bind)
    return (KUBERNETES,)


def pod_address(name: str) -> str:
    """That of a task's pod, by the headless Service of the cluster `name`; {job} and {index} are the task's."""
    return f"{name}-{{job}}-{{index}}.{name}"


def group_of(top: Values) -> GroupSettings | None:
    """The hosts that the file asks an engine for; None where it names none that gives a group of them."""
    return ray_of(top) or spark_of(top)


def ray_of(top: Values) -> RaySettings | None:
    """The placement group that the file asks for; None where it names another engine."""
    if engine_name(top) != RAY:
        return None
    found = _section(top, RAY)

    def texts(key: str) -> tuple[str, ...]:
        return tuple(text for text, _ in _of(found, key, ()))

    nodes, spares = _group_size(found)
    return RaySettings(
        address=_of(found, "address", ""),
        nodes=nodes,
        spares=spares,
        resources=texts("resources"),
        strategy=_of(found, "strategy", RaySettings.strategy),
        options=texts("options"),
        without=texts("without"),
        python=_of(found, "python", ""),
        wait_s=_of(found, "wait", RaySettings.wait_s),
    )


def spark_of(top: Values) -> SparkSettings | None:
    """The executors that the file asks for; None where it names another engine."""
    if engine_name(top) != SPARK:
        return None
    found = _section(top, SPARK)
    nodes, spares = _group_size(found)
    return SparkSettings(
        master=_of(found, "master", ""),
        nodes=nodes,
        spares=spares,
        cores=_of(found, "cores", 0),
        conf={name: value.value for name, value in _of(found, "conf", {}).items()},
        python=_of(found, "python", ""),
        wait_s=_of(found, "wait", SparkSettings.wait_s),
    )


def _group_size(found: Values) -> tuple[int, int]:
    nodes, spares = _of(found, "nodes", 1), _of(found, "spares", 0)
    if spares >= nodes:
        raise found["spares"].node.at.error(f'"spares" must leave a host for the tasks: there are {nodes} hosts')
    return nodes, spares


def add_group(
    top: Values, group: GroupSettings, hosts: dict[str, HostPlan], folder: Path
) -> tuple[str, ...]:
    """Adds the hosts of a group, whose addresses the engine gives them at `up`, and returns their names."""
    engine = engine_name(top)
    found = _section(top, engine)
    own: dict[str, Any] = {key: found[key].value for key in found if key in ("sync", "working_dir")}
    names = engine_hosts(group.nodes)
    for name in names:
        hosts[name] = replace(host_plan(name, own | {"address": name}, top, folder), via=engine, target="")
    return tuple(names)


def mpi_of(top: Values) -> MpiSettings | None:
    """How mpirun is called; None where the file names another engine."""
    if engine_name(top) != MPI:
        return None
    found = _section(top, MPI)
    nodes, spares = _of(found, "nodes", 1), _of(found, "spares", 0)
    if spares >= nodes:
        raise found["spares"].node.at.error(f'"spares" must leave a host for the tasks: there are {nodes} hosts')
    options = tuple(text for text, _ in _of(found, "options", ()))
    address = _of(found, "address", MpiSettings.address)
    return MpiSettings(nodes, spares, _of(found, "mpirun", MpiSettings.mpirun), options, address)


def add_mpi_hosts(top: Values, mpi: MpiSettings, hosts: dict[str, HostPlan], folder: Path) -> tuple[str, ...]:
    """Adds the hosts of mpirun, which are known at `up`, and returns their names."""
    found = _section(top, MPI)
    is_copied = _of(found, "sync", False)
    own: dict[str, Any] = {"sync": is_copied, "working_dir": _of(found, "working_dir", str(folder))}
    if not is_copied and "python" not in top and "venv" not in top:
        # The file system is shared, and so is the environment that has dtfctl.
        own["python"] = sys.executable
    names = [f"node-{number + 1}" for number in range(mpi.nodes)]
    for name in names:
        hosts[name] = replace(host_plan(name, own | {"address": name}, top, folder), via=MPI, target="")
    return tuple(names)


def _section(top: Values, engine: str) -> Values:
    found: Values = _of(top["engine"].value, engine, {})
    return found


def _of(values: Values, key: str, default: Any) -> Any:
    return values[key].value if key in values else default
