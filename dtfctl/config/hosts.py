"""The machines of a cluster file: its `hosts:` section, and the hosts that jobs name without one. Pure."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from dtfctl.config import hostlist
from dtfctl.config.kinds import Found, Values
from dtfctl.values.plan import HERE, LOCALHOST, LOOPBACK, SSH, HostPlan

_SSH = re.compile(r"(?:ssh://)?(?:([^@]+)@)?([^:@/]+)(?::(\d{1,5}))?/?")


def hosts_of(top: Values, folder: Path) -> tuple[dict[str, HostPlan], tuple[str, ...]]:
    """All hosts that may be named, this machine among them, and the names of those that the file declares."""
    hosts = {LOCALHOST: host_plan(LOCALHOST, {}, top, folder)}
    declared: list[str] = []
    if "hosts" not in top:
        return hosts, ()
    for text, found in top["hosts"].value.items():
        try:
            names = hostlist.expand_names(text)
        except ValueError as error:
            raise found.node.at.error(f'"hosts": {error}') from None
        spread = {key: _spread(key, found.value[key], names) for key in found.value}
        for position, name in enumerate(names):
            if name in declared:
                raise found.node.at.error(f'"hosts" names {name} twice')
            declared.append(name)
            hosts[name] = host_plan(name, {key: each[position] for key, each in spread.items()}, top, folder)
    if not declared:
        raise top["hosts"].node.at.error('"hosts" names no host')
    return hosts, tuple(declared)


def host_plan(name: str, own: dict[str, Any], top: Values, folder: Path) -> HostPlan:
    """`own` is what the file says of this host, `top` what it says of all tasks. A name that nothing is said of is
    what ssh is called with."""
    target = own.get("ssh", "none" if name == LOCALHOST else name)
    is_local = target == "none"
    match = _SSH.fullmatch(target)
    user, port = (match[1], match[3]) if match else (None, None)
    ssh: str = match[2] if match else target
    python, venv = _interpreter(own, top, is_local, folder)
    working_dir = own.get("working_dir", "").rstrip("/")
    return HostPlan(
        name=name,
        address=own.get("address", LOOPBACK if is_local else ssh),
        python=python,
        venv=venv,
        working_dir=(_here(working_dir, folder) if is_local else working_dir)
        or _of(top, "working_dir", str(folder)),
        bind=own.get("bind") or _of(top, "bind", ""),
        via=HERE if is_local else SSH,
        target="" if is_local else ssh,
        user=own.get("user") or user or "",
        port=own.get("port") or (int(port) if port else None),
        folder="" if is_local else working_dir or _same_folder(folder),
        sync=own.get("sync", True),
        slots=own.get("slots"),
        cpus=own.get("cpus"),
        gpus=own.get("gpus"),
    )


def _interpreter(own: dict[str, Any], top: Values, is_local: bool, folder: Path) -> tuple[str, str]:
    """(python, venv) of a host: its own, else the top's, else dtfctl's, else whatever python3 is there."""
    for python, venv in (
        (own.get("python", ""), own.get("venv", "")),
        (_of(top, "python", ""), _of(top, "venv", "")),
    ):
        if is_local:
            python, venv = _here(python, folder), _here(venv, folder)
        if python or venv:
            return (f"{venv}/bin/python" if venv else python), venv
    return (sys.executable if is_local else "python3"), ""


def _spread(key: str, found: Found, names: list[str]) -> list[Any]:
    """A text with a range is dealt out to as many hosts: address: 10.0.0.[1-4]."""
    if not isinstance(found.value, str) or "[" not in found.value or len(names) == 1:
        return [found.value] * len(names)
    try:
        texts = hostlist.expand_names(found.value)
    except ValueError as error:
        raise found.node.at.error(f'"{key}": {error}') from None
    if len(texts) != len(names):
        raise found.node.at.error(f'"{key}" stands for {len(texts)} values, and there are {len(names)} hosts')
    return texts


def _same_folder(folder: Path) -> str:
    """Where another machine has the copy when nobody says: at the same path, below the home folder where it is so."""
    home = os.path.expanduser("~")
    path = str(folder)
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path


def _here(text: str, folder: Path) -> str:
    return os.path.normpath(folder / os.path.expanduser(text)) if text else ""


def _of(top: Values, key: str, default: str) -> str:
    return top[key].value if key in top else default
