"""Everything that may hinder tasks on this host, and what the launcher has to know of it."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time

from dtfctl.launchers.agent.look import answers
from dtfctl.launchers.agent.places import absolute, expanded
from dtfctl.launchers.keeper.processes import boot_id
from dtfctl.wording import reason_of

NOT_INHERITED = ("PWD", "OLDPWD", "SHLVL", "_", "MAIL", "LS_COLORS")
PYTHON_CHECK_S = 20.0


def check(folder, addresses, names, ports, pythons, needs_folder, questions=()):
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
        "addresses": {address: address_error(address) for address in addresses},
        "names": {name: name_error(name) for name in names},
        "ports": [[address, port, port_error(address, port)] for address, port in ports],
        "pythons": {python: python_error(python, place) for python in pythons},
        "answers": answers(questions),
    }


def user_name():
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def inherited_environment():
    return {
        key: value
        for key, value in os.environ.items()
        if key not in NOT_INHERITED and not key.startswith(("SSH_", "DTFCTL_"))
    }


def nearest_folder(path):
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def folder_error(path, existing, needs_folder):
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


def address_error(address):
    why = port_error(address, 0)
    if why:
        return why
    with contextlib.suppress(OSError):
        if socket.gethostbyname(address).startswith("127.") and not address.startswith(("127.", "localhost")):
            return "the host itself takes that name for its loopback (/etc/hosts), where nobody else reaches it"
    return ""


def name_error(name):
    try:
        socket.getaddrinfo(name, None, socket.AF_INET)
    except OSError as error:
        return reason_of(error)
    return ""


def port_error(address, port):
    holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((address, port))
    except OSError as error:
        return reason_of(error)
    finally:
        holder.close()
    return ""


def python_error(python, folder):
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
