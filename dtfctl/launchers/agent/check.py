"""Everything that may hinder tasks on this host, and what the launcher has to know of it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from dtfctl.launchers.agent.look import answers
from dtfctl.launchers.agent.places import absolute, expanded
from dtfctl.launchers.keeper.processes import boot_id
from dtfctl.wording import reason_of

SIOCGIFADDR = 0x8915
NOT_INHERITED = ("PWD", "OLDPWD", "SHLVL", "_", "MAIL", "LS_COLORS")
PYTHON_CHECK_S = 20.0


def check(
    folder: str,
    addresses: Sequence[str],
    names: Sequence[str],
    ports: Sequence[Sequence[Any]],
    pythons: Sequence[str],
    needs_folder: bool,
    questions: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """`addresses` are those at which servers will listen, `names` those by which others know this host, `ports`
    [address, port] that the cluster file fixes. What is wrong with each is told in words; "" is nothing. The
    `questions` are look.py's."""
    place = absolute(folder)
    existing = nearest_folder(place)
    here = os.uname()
    return {
        "python": sys.executable,
        "version": ".".join(map(str, sys.version_info[:3])),
        "user": user_name(),
        "host": here.nodename,
        "kernel": f"{here.sysname} {here.release}",
        "boot": boot_id(),
        "time": time.time(),
        "cores": os.cpu_count() or 1,
        "environment": inherited_environment(),
        "folder": place,
        "folder_error": folder_error(place, existing, needs_folder),
        "free_bytes": shutil.disk_usage(existing).free,
        "has_rsync": shutil.which("rsync") is not None,
        "interfaces": interfaces(),
        "addresses": {address: address_error(address) for address in addresses},
        "names": {name: name_error(name) for name in names},
        "ports": [[address, port, port_error(address, port)] for address, port in ports],
        "pythons": {python: python_error(python, place) for python in pythons},
        "answers": answers(questions),
    }


def user_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def inherited_environment() -> dict[str, str]:
    return {
        key: value
        for key, value in os.environ.items()
        if key not in NOT_INHERITED and not key.startswith(("SSH_", "DTFCTL_"))
    }


def interfaces() -> dict[str, str]:
    """The first IPv4 address of each network interface that has one."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(asking, SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                found[name] = socket.inet_ntoa(answer[20:24])
    return found


def nearest_folder(path: str) -> str:
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def folder_error(path: str, existing: str, needs_folder: bool) -> str:
    if existing == path:
        return "" if os.access(path, os.R_OK | os.W_OK | os.X_OK) else f"{path} is not writable"
    if os.path.lexists(path):
        return f"{path} is not a folder"
    if needs_folder:
        return f"there is no folder {path}"
    inside = path[len(existing) :].strip("/").split("/")[0]
    blocking = os.path.join(existing, inside)
    if os.path.lexists(blocking):
        return f"{blocking} is not a folder"
    return "" if os.access(existing, os.W_OK | os.X_OK) else f"{path} cannot be made: {existing} is not writable"


def address_error(address: str) -> str:
    why = port_error(address, 0)
    if why:
        return why
    with contextlib.suppress(OSError):
        if socket.gethostbyname(address).startswith("127.") and not address.startswith(("127.", "localhost")):
            return "the host resolves that name to its loopback (/etc/hosts), which other hosts cannot reach"
    return ""


def name_error(name: str) -> str:
    try:
        socket.getaddrinfo(name, None, socket.AF_INET)
    except OSError as error:
        return reason_of(error)
    return ""


def port_error(address: str, port: int) -> str:
    holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((address, port))
    except OSError as error:
        return reason_of(error)
    finally:
        holder.close()
    return ""


def python_error(python: str, folder: str) -> str:
    command = os.path.join(folder, expanded(python)) if "/" in python else python
    try:
        done = subprocess.run(
            [command, "-c", "import sys; print(sys.version_info[0])"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PYTHON_CHECK_S,
        )
    except subprocess.TimeoutExpired:
        return f"does not answer within {PYTHON_CHECK_S:g}s"
    except OSError as error:
        return reason_of(error)
    if done.returncode == 0:
        return ""
    words = done.stderr.decode(errors="replace").strip().splitlines()
    return words[-1] if words else f"exits with status {done.returncode}"
