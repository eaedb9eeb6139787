"""`dtfctl up --attach` as part of another program, which it does not outlive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping

from dtfctl.errors import DtfctlError

TRAINING_FAILED = 10

_LEASHED = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the program has ended")
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Ends with its parent, whatever ends that one: PR_SET_PDEATHSIG stays over exec."""


class Embedded:
    """A cluster that runs. Its words go to stderr, the output of its tasks to stdout."""

    def __init__(self, file: str, settings: Iterable[str], variables: Mapping[str, str]) -> None:
        self._file = file
        words = [sys.executable, "-m", "dtfctl", "up", file, "--attach"]
        words += [word for setting in settings for word in ("--set", setting)]
        environment = {"DTFCTL_PROGRESS": "plain", **os.environ, **variables}
        leashed = [sys.executable, "-c", _LEASHED, str(os.getpid()), *words]
        self._process = subprocess.Popen(leashed, env=environment, stdin=subprocess.DEVNULL)

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None

    def stop(self) -> None:
        """As Ctrl-C does."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """As the second Ctrl-C: without grace periods."""
        self.stop()
        self.stop()

    def wait(self, timeout_s: float | None = None) -> None:
        """Returns when the training has succeeded. Raises DtfctlError where it has failed, or the cluster could not
        start, and TimeoutError."""
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self._file}: the training has not ended within {timeout_s:g}s") from None
        except BaseException:
            # Ctrl-C reaches both, another exception only this one.
            self.stop()
            self._process.wait()
            raise
        if status == TRAINING_FAILED:
            raise DtfctlError(f"{self._file}: the training has failed; its reason is above")
        if status:
            raise DtfctlError(f"{self._file}: dtfctl up ends with status {status}; its reason is above")
