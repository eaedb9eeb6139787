"""The guard: a fork of the keeper that is the tasks' parent, and outlives it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import time

from dtfctl.launchers.keeper.cgroups import fork_into, kills_for_memory, make_cgroup, remove_cgroup
from dtfctl.launchers.keeper.processes import exit_of, kill_group, stat_of
from dtfctl.launchers.keeper.program import become, default_signals, dying
from dtfctl.launchers.keeper.protocol import GUARD_REQUEST
from dtfctl.launchers.keeper.records import file_name, read_record, write_record
from dtfctl.launchers.keeper.traceback import traceback_of
from dtfctl.messages import Complaints, checked
from dtfctl.wording import reason_and_file

UNCAUGHT = 1
"""The exit status of a Python program that an exception has ended."""

WRITE_AGAIN_S = 1.0


class Guard:
    """A fork of the keeper that outlives it: parent of the tasks, which it starts as the keeper asks, and whose ends it
    puts on record. It goes when its keeper has gone and its last task."""

    def __init__(self, keeper, boot, cgroup):
        self.keeper = keeper
        self.boot = boot
        self.cgroup = cgroup
        self.start_time = stat_of(os.getpid())[1]
        self.received = b""
        self.has_keeper = True
        self.wards: dict[int, Ward] = {}
        self.unwritten: dict[str, dict] = {}
        self.write_again_at = 0.0
        self.complaints = Complaints()
        self.selector = selectors.DefaultSelector()
        wake, self.waker = socket.socketpair()
        wake.setblocking(False)
        self.waker.setblocking(False)
        self.wake = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.waker.fileno(), warn_on_full_buffer=False)
        self.selector.register(wake, selectors.EVENT_READ, self.on_child)
        self.selector.register(keeper, selectors.EVENT_READ, self.on_request)

    def serve(self):
        while self.has_keeper or self.wards or self.unwritten:
            for key, _ in self.selector.select(WRITE_AGAIN_S if self.unwritten else None):
                key.data()
            if self.unwritten and time.monotonic() >= self.write_again_at:
                self.write_again_at = time.monotonic() + WRITE_AGAIN_S
                self.write_ends()

    def on_request(self):
        data = b""
        with contextlib.suppress(OSError):
            data = self.keeper.recv(1 << 16)
        if not data:
            self.has_keeper = False
            self.selector.unregister(self.keeper)
            return
        *lines, self.received = (self.received + data).split(b"\n")
        for line in lines:
            self.start(checked(line, GUARD_REQUEST))

    def start(self, request):
        """The task begins once it is on record, and not before."""
        task, generation = request["task"], request["generation"]
        go_reader, go_writer = os.pipe()
        error_reader, error_writer = os.pipe()
        kills = kills_for_memory()
        cgroup = make_cgroup(file_name(task, generation), self.cgroup)
        pid = fork_into(cgroup)
        if pid == 0:
            with dying():
                os.close(go_writer)
                default_signals()
                signal.set_wakeup_fd(-1)
                os.setsid()
                if os.read(go_reader, 1):
                    become(
                        request["argv"],
                        request["environment"],
                        request["working_dir"],
                        request["log"],
                        request["limits"],
                        error_writer,
                    )
        os.close(go_reader)
        os.close(error_writer)
        record = {
            "task": task,
            "generation": generation,
            "pid": pid,
            "start_time": stat_of(pid)[1],
            "guard": os.getpid(),
            "guard_start_time": self.start_time,
            "boot": self.boot,
            "at": time.monotonic(),
            "address": request["address"],
        }
        try:
            write_record(f"{file_name(task, generation)}.start", record, exclusive=True)
        except OSError as error:
            # Without a record nobody may begin: the fork ends when its pipe does.
            os.close(go_writer)
            os.close(error_reader)
            os.waitpid(pid, 0)
            remove_cgroup(cgroup)
            # A guard of a keeper that was killed in the middle of this very start may have come first.
            former = read_record(f"{file_name(task, generation)}.start")
            words = f"could not be started: {reason_and_file(error)}"
            self.tell(former or {"task": task, "generation": generation, "error": words})
            return
        os.write(go_writer, b"g")
        os.close(go_writer)
        ward = self.wards[pid] = Ward(record, error_reader, kills, cgroup, request["log"])
        self.tell(record)
        self.selector.register(error_reader, selectors.EVENT_READ, lambda: self.on_become(ward))

    def on_become(self, ward):
        """The pipe closes with the exec of the program; what comes before that is why there was none."""
        if ward.errors < 0:
            return
        ward.words = os.read(ward.errors, 1 << 12).decode(errors="replace")
        self.selector.unregister(ward.errors)
        os.close(ward.errors)
        ward.errors = -1

    def on_child(self):
        with contextlib.suppress(BlockingIOError):
            while self.wake.recv(4096):
                pass
        with contextlib.suppress(ChildProcessError):
            while (info := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if info.si_pid in self.wards:
                    self.ended(info)
                os.waitpid(info.si_pid, 0)

    def ended(self, info):
        ward = self.wards.pop(info.si_pid)
        # While the task is not reaped its pid is nobody else's, so its group can be emptied in safety.
        kill_group(info.si_pid)
        remove_cgroup(ward.cgroup)
        self.on_become(ward)
        ended = {"error": ward.words, "at": time.monotonic()} if ward.words else exit_of(info)
        if ended.get("signal") == signal.SIGKILL and kills_for_memory() > ward.kills:
            ended["is_out_of_memory"] = True
        if ended.get("code") == UNCAUGHT:
            ended["traceback"] = traceback_of(ward.log)
        task, generation = ward.record["task"], ward.record["generation"]
        self.unwritten[f"{file_name(task, generation)}.exit"] = ended
        self.write_ends()
        self.tell({"task": task, "generation": generation, "exit": ended})

    def write_ends(self):
        """On a full disk the records of ends wait for room."""
        for name, ended in list(self.unwritten.items()):
            try:
                write_record(name, ended)
            except OSError as error:
                self.complaints.tell(f"guard: {name}: {reason_and_file(error)}")
                return
            del self.unwritten[name]

    def tell(self, message):
        with contextlib.suppress(OSError):
            send_line(self.keeper, message)


class Ward:
    """A task as its guard knows it: `words` are why it could not become its program, which come through `errors` (a
    pipe, -1 once it is closed), `kills` what the kernel had killed for want of memory when it began."""

    def __init__(self, record, errors, kills, cgroup, log):
        self.record = record
        self.errors = errors
        self.words = ""
        self.kills = kills
        self.cgroup = cgroup
        self.log = log


def send_line(connection, message):
    connection.sendall(json.dumps(message).encode() + b"\n")
