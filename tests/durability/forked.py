"""Processes that are killed and started again often: each is forked from one that has imported everything.

    place = Forked("print('ready', flush=True); sys.stdin.read()")
    place.start(["arguments"])
    place.wait_for("ready")             # what the program prints
    place.kill()                        # SIGKILL
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

__all__ = ["Forked"]

_PARENT = """
import json, os, sys
import numpy as np
import dtf as tf
program = compile(sys.argv[1], "program", "exec")
while line := sys.stdin.readline():
    arguments = json.loads(line)
    child = os.fork()
    if not child:
        code = 1
        try:
            exec(program, {"arguments": arguments, "__name__": "__main__"})
            code = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    print("pid", child, flush=True)
    print("over", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Forked:
    """A place for one process at a time, which runs `program` with `arguments` as a global.

    Attributes:
      code: the exit code of the last one that ended; None before.
    """

    def __init__(self, program: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DTF_DUR")}
        environment["OPENBLAS_NUM_THREADS"] = "1"
        environment["PYTHONPATH"] = os.pathsep.join([os.getcwd(), environment.get("PYTHONPATH", "")])
        self._parent = subprocess.Popen(
            [sys.executable, "-c", _PARENT, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self._pid = 0
        self.code: int | None = None

    def start(self, arguments: Sequence[object]) -> None:
        """Starts the program."""
        assert self._parent.stdin is not None
        self._parent.stdin.write(json.dumps(arguments).encode() + b"\n")
        self._parent.stdin.flush()
        self._pid = int(self._line("pid").split()[1])

    def wait_for(self, begin: str) -> None:
        """Returns when the program has printed a line that begins so."""
        self._line(begin)

    def wait(self) -> int:
        """The exit code, when the process has ended."""
        while True:
            line = self._line("")
            if line.startswith("over"):
                self._pid, self.code = 0, int(line.split()[1])
                return self.code

    def signal(self) -> None:
        """As `kill`, where another thread waits for the end. Does nothing when no process runs."""
        with suppress(ProcessLookupError):
            if self._pid:
                os.kill(self._pid, signal.SIGKILL)

    def kill(self) -> None:
        """Kills the process, and returns when it has ended."""
        os.kill(self._pid, signal.SIGKILL)
        self.wait()

    def close(self) -> None:
        """Ends all."""
        if self._pid:
            self.kill()
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.close()
        self._parent.wait()
        self._parent.stdout.close()

    def _line(self, begin: str) -> str:
        assert self._parent.stdout is not None
        while True:
            line = self._parent.stdout.readline().decode()
            assert line, "the program has ended"
            if line.startswith(begin):
                return line
            assert not line.startswith("over"), f"the program has ended: {line}"
