"""Where things are on this host."""

from __future__ import annotations

import os
import pwd


def absolute(path):
    return os.path.normpath(os.path.join(home(), expanded(path)))


def expanded(path):
    return home() + path[1:] if path == "~" or path.startswith("~/") else path


def home():
    return os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir


def run_folder(run):
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(home(), ".local", "state")
    return os.path.join(state, "dtfctl", "hosts", run)
