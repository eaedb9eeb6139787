"""Makes the Python environment of a host: a virtual environment that has what requirements files name.

It is made by that host's own `python -m venv` and pip, with the user's own pip configuration, once; and pip is asked
again when the content of a file has changed, or of one that it names with -r or -c. Needs only Python's standard
library, for the agent brings it to hosts that have nothing else (agent_client.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from dtfctl.wording import reason_and_file, reason_of

MARK = ".dtfctl-requirements"
"""In the environment: what it was made of, written when that was done."""

LAST_LINES = 8
"""Of what a command wrote that failed. Debian's venv takes so many to say which package it lacks."""

LOCK_LOOK_S = 0.1

VARIABLES = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_PROGRESS_BAR": "off"}


def make(venv: str, files: Sequence[str], python: str, folder: str, timeout_s: float) -> dict[str, Any]:
    """`venv` is the environment's folder, `files` the requirements, `folder` where pip is run; `python` makes the
    environment where that is missing ("": the interpreter that runs this).

    Returns {"made": whether anything was done, "error": words or "", "command": what shows the same to a person}.
    """
    deadline = time.monotonic() + timeout_s
    try:
        os.makedirs(venv, exist_ok=True)
        wanted = digest(files)
        with locked(venv, deadline) as lock:
            if os.listdir(venv) and not os.path.exists(os.path.join(venv, "pyvenv.cfg")):
                return failed("the path exists and is not a virtual environment", ["ls", "-la", venv])
            if mark_of(venv) == wanted:
                return {"made": False, "error": "", "command": ""}
            maker = os.path.expanduser(python) or sys.executable
            return fill(venv, files, maker, folder, wanted, deadline, lock)
    except TimeoutError:
        return failed("another process is still creating it", ["fuser", "-v", venv])
    except OSError as error:
        return failed(reason_and_file(error), ["ls", "-ld", error.filename or venv])


def fill(
    venv: str, files: Sequence[str], maker: str, folder: str, wanted: str, deadline: float, lock: int
) -> dict[str, Any]:
    python = os.path.join(venv, "bin", "python")
    create = [maker, "-m", "venv", venv]
    install = [python, "-m", "pip", "install", *(word for file in files for word in ("-r", file))]
    # A complete environment stays as it is: the user may have made it with another Python.
    commands = [] if run([python, "-m", "pip", "--version"], folder, deadline, lock)[0] == "" else [create]
    for command in [*commands, install]:
        why, output = run(command, folder, deadline, lock)
        if why:
            words = [line.strip() for line in output.splitlines() if line.strip()][-LAST_LINES:]
            return failed("\n".join([why, *words]), command, folder)
    aside = os.path.join(venv, f"{MARK}.{os.getpid()}")
    with open(aside, "w") as file:
        json.dump({"requirements": wanted}, file)
    os.replace(aside, os.path.join(venv, MARK))
    return {"made": True, "error": "", "command": ""}


def digest(files: Sequence[str]) -> str:
    """Of the files' content, in their order, and of what they name. Raises OSError."""
    content = hashlib.sha256()
    seen = set()

    def take(path: str) -> None:
        if path in seen:
            return
        seen.add(path)
        with open(path, "rb") as file:
            data = file.read()
        content.update(b"%d\n" % len(data) + data)
        for line in data.decode(errors="replace").splitlines():
            for option in ("--requirement", "--constraint", "-r", "-c"):
                name = line.strip()[len(option) :].lstrip(" =")
                if line.strip().startswith(option) and name and "://" not in name:
                    take(os.path.join(os.path.dirname(path), name.split(" #")[0].strip()))
                    break

    for path in files:
        take(path)
    return content.hexdigest()


def mark_of(venv: str) -> str | None:
    try:
        with open(os.path.join(venv, MARK)) as file:
            mark: str = json.load(file)["requirements"]
            return mark
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextlib.contextmanager
def locked(folder: str, deadline: float) -> Iterator[int]:
    """Two clusters may want the same environment. Raises TimeoutError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError from None
                time.sleep(LOCK_LOOK_S)
        yield descriptor
    finally:
        os.close(descriptor)


def run(command: Sequence[str], folder: str, deadline: float, lock: int) -> tuple[str, str]:
    """("" or why it failed, all that it wrote). It is killed, with what it has started, at the `deadline`. Should this
    process be killed before it, it goes on, and keeps the `lock` until it has ended."""
    began = time.monotonic()
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **VARIABLES},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(lock,),
        )
    except OSError as error:
        return f"{command[0]}: {reason_of(error)}", ""
    try:
        output, _ = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        why = f"{said(command)} exits with status {process.returncode}" if process.returncode else ""
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        why = f"{said(command)} was not done after {time.monotonic() - began:.0f}s"
    return why, output.decode(errors="replace")


def said(command: Sequence[str]) -> str:
    """The part of a command that says what it is: pip install, venv."""
    return " ".join(command[2:4] if command[2] == "pip" else command[2:3])


def failed(error: str, command: Sequence[str], folder: str = "") -> dict[str, Any]:
    words = shlex.join(command)
    return {"made": False, "error": error, "command": f"cd {shlex.quote(folder)} && {words}" if folder else words}
