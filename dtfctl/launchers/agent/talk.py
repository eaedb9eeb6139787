"""The talk between the launcher and the keeper, which passes through here, and what is asked of the agent itself."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NoReturn

from dtfctl.launchers import usage
from dtfctl.launchers.agent.keepers import forget, note_leaving, reach_keeper
from dtfctl.launchers.agent.lines import Lines, write_line
from dtfctl.launchers.agent.logs import Logs
from dtfctl.launchers.agent.protocol import REQUESTS
from dtfctl.launchers.keeper import FILES
from dtfctl.launchers.keeper.processes import boot_id, kill_group, peer_of
from dtfctl.launchers.keeper.protocol import REQUESTS as OF_KEEPER
from dtfctl.wire.messages import BadMessage, message
from dtfctl.wording import reason_and_file, reason_of

EVERY_REQUEST = {**OF_KEEPER, **REQUESTS}

class Talk:
    """One thread, one selector; ends with its input, or with the keeper."""

    def __init__(
        self,
        lines: Lines,
        run: str,
        token: str,
        keeper: Mapping[str, str],
        have: Mapping[str, int],
        starts: bool = True,
    ) -> None:
        self.lines = lines
        try:
            connection = reach_keeper(run, token, keeper, starts)
        except OSError as error:
            sys.exit(reason_and_file(error))
        if connection is None:
            write_line({"is": "host", "boot": boot_id(), "keeper": 0})
            os._exit(0)
        self.keeper = connection
        self.keeper_lines = Lines(self.keeper.fileno())
        self.logs = Logs(have)
        self.selector = selectors.DefaultSelector()
        self.out = bytearray()
        self.commands: dict[int, tuple[subprocess.Popen[bytes], float, int, float]] = {}
        self.drains: list[int] = []
        self.is_leaving = False
        os.set_blocking(0, False)
        os.set_blocking(1, False)
        self.selector.register(0, selectors.EVENT_READ, self.on_request)
        self.selector.register(self.keeper, selectors.EVENT_READ, self.on_keeper)
        if self.logs.watch >= 0:
            self.selector.register(self.logs.watch, selectors.EVENT_READ, self.logs.note)

    def serve(self) -> None:
        self.send({"is": "host", "boot": boot_id(), "keeper": peer_of(self.keeper)[0]})
        self.serve_lines(self.take_rest())
        while True:
            for key, _ in self.selector.select(self.timeout_s()):
                key.data()
            self.look_after_commands()
            self.send_logs()

    def take_rest(self) -> list[bytes]:
        """Lines that came together with the request."""
        *whole, self.lines.rest = self.lines.rest.split(b"\n")
        return whole

    def timeout_s(self) -> float | None:
        now = time.monotonic()
        times = [deadline for _, deadline, _, _ in self.commands.values()]
        times += [self.logs.look_at] if self.logs.look_at is not None else []
        return max(0.0, min(times) - now) if times else None

    def send(self, message: Mapping[str, Any]) -> None:
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        was_empty = not self.out
        self.out += data
        if was_empty:
            self.flush()
            if self.out:
                self.selector.register(1, selectors.EVENT_WRITE, self.on_writable)

    def on_writable(self) -> None:
        self.flush()
        if not self.out:
            self.selector.unregister(1)

    def flush(self) -> None:
        try:
            while self.out:
                del self.out[: os.write(1, self.out[: 1 << 16])]
        except BlockingIOError:
            pass
        except OSError:
            self.end(0)

    def end(self, status: int) -> NoReturn:
        for process, _, _, _ in self.commands.values():
            kill_group(process.pid)
        os._exit(status)

    def on_request(self) -> None:
        lines = self.lines.take()
        if lines is None:
            self.end(0)
        self.serve_lines(lines)

    def serve_lines(self, lines: list[bytes]) -> None:
        for line in lines:
            try:
                request = message(line, "do", EVERY_REQUEST)
            except BadMessage as error:
                self.send({"is": "misunderstood", "error": str(error)})
                continue
            do = request.pop("do")
            if do in REQUESTS:
                getattr(self, "do_" + do)(**request)
                continue
            if do == "bye":
                self.is_leaving = True
                note_leaving()
            if do == "hello":
                self.logs.look_at = time.monotonic()
            try:
                self.keeper.sendall(line + b"\n")
            except OSError:
                self.keeper_has_gone()

    def on_keeper(self) -> None:
        lines = self.keeper_lines.take()
        if lines is None:
            self.keeper_has_gone()
        self.send_bytes(b"".join(line + b"\n" for line in lines))

    def keeper_has_gone(self) -> NoReturn:
        if self.is_leaving:
            os.chdir("/")
            forget(self.logs.run_folder)
        os.set_blocking(1, True)
        self.flush()
        self.end(0 if self.is_leaving else 1)

    def do_clock(self) -> None:
        """The launcher times the round trip."""
        self.send({"is": "clock", "monotonic": time.monotonic(), "wall": time.time()})

    def do_lease(self, id: int, until: float | None, host: str) -> None:
        """For the keeper; the answer tells the launcher that the way to this host is open."""
        try:
            self.keeper.sendall(json.dumps({"do": "lease", "until": until, "host": host}).encode() + b"\n")
        except OSError:
            self.keeper_has_gone()
        self.send({"is": "leased", "id": id})

    def do_usage(self, id: int, pids: list[int]) -> None:
        """What the sessions take that these processes lead."""
        found = {str(pid): asdict(each) for pid, each in usage.measure(set(pids)).items()}
        self.send({"is": "used", "id": id, "usages": found, "monotonic": time.monotonic()})

    # -- logs

    def do_ack(self, bytes: int, file: str = "", until: int = 0) -> None:
        self.logs.on_way -= bytes
        self.logs.let_go(file, until)

    def do_drain(self, id: int) -> None:
        """Answered when all that is in the logs has been sent."""
        self.drains.append(id)
        self.logs.look_at = time.monotonic()

    def send_logs(self) -> None:
        if self.logs.look_at is None or time.monotonic() < self.logs.look_at:
            return
        is_all = self.logs.send(self.send)
        if is_all:
            for id in self.drains:
                self.send({"is": "drained", "id": id})
            self.drains.clear()

    # -- readiness

    def do_file(self, id: int, path: str, age_s: float) -> None:
        """Whether the file is no older than so many seconds; by this host's clock alone."""
        try:
            is_new = time.time() - os.stat(path).st_mtime <= age_s
            missing = "" if is_new else f"the file {path} has not been written recently"
        except OSError as error:
            missing = f"the file {path}: {reason_of(error)}"
        self.send({"is": "checked", "id": id, "missing": missing})

    def do_command(
        self, id: int, command: str, environment: Mapping[str, str], working_dir: str, timeout_s: float
    ) -> None:
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**environment, **placed_files(environment.get("DTFCTL_TASK", ""))},
                cwd=working_dir,
                start_new_session=True,
            )
            pidfd = os.pidfd_open(process.pid)
        except OSError as error:
            missing = f"its command cannot be run: {reason_of(error)}"
            self.send({"is": "checked", "id": id, "missing": missing})
            return
        self.commands[id] = process, time.monotonic() + timeout_s, pidfd, timeout_s
        self.selector.register(pidfd, selectors.EVENT_READ, lambda: self.command_ended(id))

    def command_ended(self, id: int) -> None:
        process, _, pidfd, timeout_s = self.commands.pop(id)
        self.selector.unregister(pidfd)
        os.close(pidfd)
        if process.poll() is None:
            kill_group(process.pid)
            process.wait()
            missing = f"its command did not end within {timeout_s:g}s"
        elif process.returncode:
            missing = f"its command exits with status {process.returncode}"
        else:
            missing = ""
        self.send({"is": "checked", "id": id, "missing": missing})

    def look_after_commands(self) -> None:
        now = time.monotonic()
        for id in [id for id, (_, deadline, _, _) in self.commands.items() if now >= deadline]:
            self.command_ended(id)


def placed_files(task: str) -> dict[str, str]:
    """The paths of the files that the keeper has placed for a task here, by their variables."""
    folder = os.path.join(os.getcwd(), FILES, task.replace(":", "-"))
    return {name: os.path.join(folder, name) for name in os.listdir(folder)} if task and os.path.isdir(folder) else {}
