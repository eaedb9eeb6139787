"""The keeper of a run on this host: found, started, and ended with all that is left of the run."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time

from dtfctl.launchers.agent.places import run_folder
from dtfctl.launchers.keeper import LINE_BYTES_MAX, SOCKET, TOKEN
from dtfctl.launchers.keeper.protocol import MESSAGES
from dtfctl.messages import message

LOGS = "logs"
KEEPER = "dtfctl/launchers/keeper"
"""What is run, in the folder of its modules."""

KEEPER_START_S = 10.0
SWEEP_S = 12.0


def reach_keeper(run, token, keeper):
    """A connection to the run's keeper, which is started when there is none. Leaves this process in its folder."""
    folder = run_folder(run)
    os.makedirs(os.path.join(folder, LOGS), exist_ok=True)
    os.chdir(folder)
    found = os.stat(".")
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise OSError(0, "is not private: it must be this user's alone, with mode 0700", folder)
    with open(TOKEN, "w") as file:
        file.write(token)
    name = os.path.join(place_keeper(keeper), KEEPER)
    deadline = time.monotonic() + KEEPER_START_S
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(SOCKET)
            return connection
        except OSError:
            connection.close()
        if time.monotonic() > deadline:
            raise OSError(0, "the keeper does not start", os.path.join(folder, "keeper.log"))
        start_keeper(name)


def place_keeper(keeper):
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


def start_keeper(name):
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


def clean(run, token, keeper):
    """Ends whatever is left of a run, and forgets it; `left` is what would not die."""
    if not os.path.isdir(run_folder(run)):
        return {"left": []}
    with reach_keeper(run, token, keeper) as connection:
        connection.settimeout(SWEEP_S)
        connection.sendall(b'{"do": "sweep", "id": 0}\n')
        with connection.makefile("rb") as messages:
            while not (line := messages.readline(LINE_BYTES_MAX)).startswith(b'{"is": "swept"'):
                if not line:
                    raise OSError(0, "the keeper has gone", run_folder(run))
            left = message(line, "is", MESSAGES)["left"]
            connection.sendall(b'{"do": "bye"}\n')
            messages.read()
    shutil.rmtree(run_folder(run), ignore_errors=True)
    return {"left": left}
