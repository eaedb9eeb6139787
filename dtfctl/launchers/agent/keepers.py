"""The keeper of a run on this host: found, started, and ended with all that is left of the run."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from dtfctl.launchers.agent.places import run_folder
from dtfctl.launchers.keeper import LEAVING, LINE_BYTES_MAX, LOCK, SOCKET, TOKEN
from dtfctl.launchers.keeper.protocol import MESSAGES
from dtfctl.wire.messages import message

LOGS = "logs"
KEEPER = "dtfctl/launchers/keeper"
"""What is run, in the folder of its modules."""

KEEPER_START_S = 10.0
SWEEP_S = 12.0


def keep(run: str, token: str, keeper: Mapping[str, str], tell: Callable[[dict[str, Any]], None]) -> None:
    """Stays beside the run's keeper, starts it again when it dies, and ends with the run; `tell` is called once it is
    at work. For hosts where all that a call has started ends with the call: this is the call that lasts."""
    # At the end of an allocation all its processes get SIGTERM at once: what runs here must not lose its parent.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    name = prepare(run, token, keeper)
    folder = os.getcwd()
    with contextlib.suppress(OSError):
        os.unlink(LEAVING)  # a former keeper's, which had lost its supervisor
    is_told = False
    # In this order: the folder is renamed before its files go.
    while not os.path.exists(LEAVING) and os.path.isdir(folder):
        start_keeper(name)
        if not is_told:
            tell({"kept": True})
            is_told = True
        with contextlib.suppress(OSError), open(LOCK, "a") as lock:
            # The keeper has it for as long as it lives.
            fcntl.flock(lock, fcntl.LOCK_EX)


def note_leaving() -> None:
    """In the run's folder: its keeper is about to be told to go, and is not started again."""
    with contextlib.suppress(OSError), open(LEAVING, "w"):
        pass


def forget(folder: str) -> None:
    """Deletes a run's folder; who looks for it finds it whole or not at all."""
    aside = f"{folder}.{os.getpid()}"
    with contextlib.suppress(OSError):
        os.rename(folder, aside)
    shutil.rmtree(aside, ignore_errors=True)


def prepare(run: str, token: str, keeper: Mapping[str, str]) -> str:
    """Makes the run's folder, places the keeper there, and returns its program. Leaves this process in the folder."""
    folder = run_folder(run)
    os.makedirs(os.path.join(folder, LOGS), exist_ok=True)
    os.chdir(folder)
    found = os.stat(".")
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise OSError(0, "is not private: it must be this user's alone, with mode 0700", folder)
    with open(TOKEN, "w") as file:
        file.write(token)
    return os.path.join(place_keeper(keeper), KEEPER)


def reach_keeper(run: str, token: str, keeper: Mapping[str, str], starts: bool = True) -> socket.socket | None:
    """A connection to the run's keeper; without one it is started, or with `starts` False the result is None. Leaves
    this process in the run's folder."""
    name = prepare(run, token, keeper)
    deadline = time.monotonic() + KEEPER_START_S
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(SOCKET)
            return connection
        except OSError:
            connection.close()
        if not starts:
            return None
        if time.monotonic() > deadline:
            raise OSError(0, "the keeper does not start", os.path.abspath("keeper.log"))
        start_keeper(name)


def place_keeper(keeper: Mapping[str, str]) -> str:
    """The folder of these files, whole or not there at all."""
    folder = f"keeper-{hashlib.sha256(json.dumps(keeper, sort_keys=True).encode()).hexdigest()[:16]}"
    if not os.path.isdir(folder):
        aside = f"{folder}.{os.getpid()}"
        os.makedirs(aside, exist_ok=True)
        for name, text in keeper.items():
            os.makedirs(os.path.dirname(os.path.join(aside, name)), exist_ok=True)
            with open(os.path.join(aside, name), "wb") as file:
                file.write(base64.b64decode(text))
        try:
            os.rename(aside, folder)
        except OSError:
            # Another agent was quicker.
            shutil.rmtree(aside, ignore_errors=True)
    return folder


def start_keeper(name: str) -> None:
    with open("keeper.log", "ab") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", name, "."],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert keeper.stdout is not None
    # Either "ready", or the end of one that found another keeper at work.
    if not keeper.stdout.readline():
        keeper.wait()
        time.sleep(0.05)
    keeper.stdout.close()


def clean(run: str, token: str, keeper: Mapping[str, str]) -> dict[str, Any]:
    """Ends whatever is left of a run, and forgets it; `left` is what would not die."""
    if not os.path.isdir(run_folder(run)):
        return {"left": []}
    reached = reach_keeper(run, token, keeper)
    assert reached is not None  # it starts one
    with reached as connection:
        connection.settimeout(SWEEP_S)
        connection.sendall(b'{"do": "sweep", "id": 0}\n')
        with connection.makefile("rb") as messages:
            while not (line := messages.readline(LINE_BYTES_MAX)).startswith(b'{"is": "swept"'):
                if not line:
                    raise OSError(0, "the keeper ended", run_folder(run))
            left = message(line, "is", MESSAGES)["left"]
            note_leaving()
            connection.sendall(b'{"do": "bye"}\n')
            messages.read()
    forget(run_folder(run))
    return {"left": left}
