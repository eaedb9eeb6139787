"""Where things are on this host."""

from __future__ import annotations

import os
import pwd


def absolute(path: str) -> str:
    return os.path.normpath(os.path.join(home(), expanded(path)))


def expanded(path: str) -> str:
    return home() + path[1:] if path == "~" or path.startswith("~/") else path


def home() -> str:
    return os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir


def run_folder(run: str) -> str:
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(home(), ".local", "state")
    return os.path.join(state, "dtfctl", "hosts", run)
