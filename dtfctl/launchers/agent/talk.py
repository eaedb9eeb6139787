"""The talk between the launcher and the keeper, which passes through here, and what is asked of the agent itself."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from dataclasses import asdict

from dtfctl import usage
from dtfctl.launchers.agent.keepers import reach_keeper
from dtfctl.launchers.agent.lines import Lines
from dtfctl.launchers.agent.logs import Logs
from dtfctl.launchers.agent.protocol import REQUESTS
from dtfctl.launchers.keeper import FILES
from dtfctl.launchers.keeper.processes import boot_id, kill_group
from dtfctl.launchers.keeper.protocol import REQUESTS as OF_KEEPER
from dtfctl.messages import BadMessage, message
from dtfctl.wording import reason_and_file, reason_of

EVERY_REQUEST = {**OF_KEEPER, **REQUESTS}

class Talk:
    """One thread, one selector; ends with its input, or with the keeper."""

    def __init__(self, lines, run, token, keeper, have):
        self.lines = lines
        try:
            self.keeper = reach_keeper(run, token, keeper)
        except OSError as error:
            sys.exit(reason_and_file(error))
        self.keeper_lines = Lines(self.keeper.fileno())
        self.logs = Logs(have)
        self.selector = selectors.DefaultSelector()
        self.out = bytearray()
        self.commands = {}
        self.drains = []
        self.is_leaving = False
        os.set_blocking(0, False)
        os.set_blocking(1, False)
        self.selector.register(0, selectors.EVENT_READ, self.on_request)
        self.selector.register(self.keeper, selectors.EVENT_READ, self.on_keeper)
        if self.logs.watch >= 0:
            self.selector.register(self.logs.watch, selectors.EVENT_READ, self.logs.note)

    def serve(self):
        self.send({"is": "host", "boot": boot_id()})
        self.serve_lines(self.take_rest())
        while True:
            for key, _ in self.selector.select(self.patience_s()):
                key.data()
            self.look_after_commands()
            self.send_logs()

    def take_rest(self):
        """Lines that came together with the request."""
        *whole, self.lines.rest = self.lines.rest.split(b"\n")
        return whole

    def patience_s(self):
        now = time.monotonic()
        times = [deadline for _, deadline, _, _ in self.commands.values()]
        times += [self.logs.look_at] if self.logs.look_at is not None else []
        return max(0.0, min(times) - now) if times else None

    def send(self, message):
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_bytes(self, data):
        was_empty = not self.out
        self.out += data
        if was_empty:
            self.flush()
            if self.out:
                self.selector.register(1, selectors.EVENT_WRITE, self.on_writable)

    def on_writable(self):
        self.flush()
        if not self.out:
            self.selector.unregister(1)

    def flush(self):
        try:
            while self.out:
                del self.out[: os.write(1, self.out[: 1 << 16])]
        except BlockingIOError:
            pass
        except OSError:
            self.end(0)

    def end(self, status):
        for process, _, _, _ in self.commands.values():
            kill_group(process.pid)
        os._exit(status)

    def on_request(self):
        lines = self.lines.take()
        if lines is None:
            self.end(0)
        self.serve_lines(lines)

    def serve_lines(self, lines):
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
            self.is_leaving = self.is_leaving or do == "bye"
            if do == "hello":
                self.logs.look_at = time.monotonic()
            try:
                self.keeper.sendall(line + b"\n")
            except OSError:
                self.keeper_has_gone()

    def on_keeper(self):
        lines = self.keeper_lines.take()
        if lines is None:
            self.keeper_has_gone()
        self.send_bytes(b"".join(line + b"\n" for line in lines))

    def keeper_has_gone(self):
        if self.is_leaving:
            os.chdir("/")
            shutil.rmtree(self.logs.run_folder, ignore_errors=True)
        os.set_blocking(1, True)
        self.flush()
        self.end(0 if self.is_leaving else 1)

    def do_clock(self):
        """The launcher times the round trip."""
        self.send({"is": "clock", "monotonic": time.monotonic(), "wall": time.time()})

    def do_usage(self, id, pids):
        """What the sessions take that these processes lead."""
        found = {str(pid): asdict(each) for pid, each in usage.measure(set(pids)).items()}
        self.send({"is": "used", "id": id, "usages": found, "monotonic": time.monotonic()})

    # -- logs

    def do_ack(self, bytes, file="", until=0):
        self.logs.on_way -= bytes
        self.logs.let_go(file, until)

    def do_drain(self, id):
        """Answered when all that is in the logs has been sent."""
        self.drains.append(id)
        self.logs.look_at = time.monotonic()

    def send_logs(self):
        if self.logs.look_at is None or time.monotonic() < self.logs.look_at:
            return
        is_all = self.logs.send(self.send)
        if is_all:
            for id in self.drains:
                self.send({"is": "drained", "id": id})
            self.drains.clear()

    # -- readiness

    def do_file(self, id, path, age_s):
        """Whether the file is no older than so many seconds; by this host's clock alone."""
        try:
            is_new = time.time() - os.stat(path).st_mtime <= age_s
            missing = "" if is_new else f"the file {path} is of an earlier run"
        except OSError as error:
            missing = f"the file {path}: {reason_of(error)}"
        self.send({"is": "checked", "id": id, "missing": missing})

    def do_command(self, id, command, environment, working_dir, timeout_s):
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

    def command_ended(self, id):
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

    def look_after_commands(self):
        now = time.monotonic()
        for id in [id for id, (_, deadline, _, _) in self.commands.items() if now >= deadline]:
            self.command_ended(id)


def placed_files(task):
    """The paths of the files that the keeper has placed for a task here, by their variables."""
    folder = os.path.join(os.getcwd(), FILES, task.replace(":", "-"))
    return {name: os.path.join(folder, name) for name in os.listdir(folder)} if task and os.path.isdir(folder) else {}
