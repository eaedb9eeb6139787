"""The shim: a fork of the keeper that is the tasks' parent, and outlives it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import time

from dtfctl.launchers.keeper.cgroups import fork_into, kills_for_memory, make_cgroup, remove_cgroup
from dtfctl.launchers.keeper.lease import OVERSLEPT_S, WORDS, Lease
from dtfctl.launchers.keeper.processes import exit_of, kill_group, stat_of, wake_at_child_signals
from dtfctl.launchers.keeper.program import become, default_signals, dying
from dtfctl.launchers.keeper.protocol import SHIM_REQUEST
from dtfctl.launchers.keeper.records import file_name, read_record, write_record
from dtfctl.launchers.keeper.traceback import traceback_of
from dtfctl.wire.messages import Complaints, checked
from dtfctl.wording import is_full, reason_and_file

TYPE_CHECKING = False
if TYPE_CHECKING:  # this starts without the time that `typing` takes
    from collections.abc import Mapping
    from typing import Any

UNCAUGHT = 1
"""The exit status of a Python program that an exception has ended."""

LOOK_S = 1.0
"""How often ends that could not be written are written again, and the lease of a keeper that has gone is looked at."""


class Shim:
    """A fork of the keeper that outlives it: parent of the tasks, which it starts as the keeper asks, and whose ends it
    puts on record. It goes when its keeper has gone and its last task."""

    def __init__(self, keeper: socket.socket, boot: str, cgroup: str) -> None:
        self.keeper = keeper
        self.boot = boot
        self.cgroup = cgroup
        self.start_time = stat_of(os.getpid())[1]
        self.received = b""
        self.has_keeper = True
        self.wards: dict[int, Ward] = {}
        self.unwritten: dict[str, dict[str, Any]] = {}
        self.write_again_at = 0.0
        self.complaints = Complaints()
        self.selector = selectors.DefaultSelector()
        self.wake, self.waker = wake_at_child_signals()
        self.selector.register(self.wake, selectors.EVENT_READ, self.on_child)
        self.selector.register(keeper, selectors.EVENT_READ, self.on_request)

    def serve(self) -> None:
        while self.has_keeper or self.wards or self.unwritten:
            is_alone = not self.has_keeper and bool(self.wards)
            begun, wait = time.monotonic(), LOOK_S if self.unwritten or is_alone else None
            ready = self.selector.select(wait)
            if wait is not None and time.monotonic() - begun - wait > OVERSLEPT_S:
                # It was stopped, and may look at the lease when a new keeper had time to renew it.
                continue
            for key, _ in ready:
                key.data()
            if is_alone and Lease(self.boot).is_over(time.monotonic()):
                for pid, ward in self.wards.items():
                    ward.fenced = WORDS
                    kill_group(pid)
            if self.unwritten and time.monotonic() >= self.write_again_at:
                self.write_again_at = time.monotonic() + LOOK_S
                self.write_ends()

    def on_request(self) -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = self.keeper.recv(1 << 16)
        if not data:
            self.has_keeper = False
            self.selector.unregister(self.keeper)
            return
        *lines, self.received = (self.received + data).split(b"\n")
        for line in lines:
            self.start(checked(line, SHIM_REQUEST))

    def start(self, request: dict[str, Any]) -> None:
        """The task begins once it is on record, not before. Its start is reported once signals reach it."""
        task, generation = request["task"], request["generation"]
        go, child_end = socket.socketpair()
        error_reader, error_writer = os.pipe()
        kills = kills_for_memory()
        cgroup = make_cgroup(file_name(task, generation), self.cgroup)
        pid = fork_into(cgroup)
        if pid == 0:
            with dying():
                go.close()
                default_signals()
                signal.set_wakeup_fd(-1)
                os.setsid()
                if is_let_begin(child_end):
                    become(
                        request["argv"],
                        request["environment"],
                        request["working_dir"],
                        request["log"],
                        request["limits"],
                        error_writer,
                    )
                else:
                    never_begun(task, generation)
        child_end.close()
        os.close(error_writer)
        record = {
            "task": task,
            "generation": generation,
            "pid": pid,
            "start_time": stat_of(pid)[1],
            "shim": os.getpid(),
            "shim_start_time": self.start_time,
            "boot": self.boot,
            "at": time.monotonic(),
            "address": request["address"],
        }
        try:
            write_record(f"{file_name(task, generation)}.start", record, exclusive=True)
        except OSError as error:
            # Without a record nobody may begin: the fork ends when its pipe does.
            go.close()
            os.close(error_reader)
            os.waitpid(pid, 0)
            remove_cgroup(cgroup)
            # A shim of a keeper that was killed in the middle of this very start may have come first.
            former = read_record(f"{file_name(task, generation)}.start")
            words = f"could not be started: {reason_and_file(error)}"
            # A full disk is not the task's fault, and has room again some time.
            outcome = {"error": words, "preempted": words} if is_full(error) else {"error": words}
            self.tell(former or {"task": task, "generation": generation, **outcome})
            return
        # Before it leads a group of its own, with the default of each signal, one would be lost on it.
        go.recv(1)
        with contextlib.suppress(OSError):
            go.send(b"g")
        go.close()
        ward = self.wards[pid] = Ward(record, error_reader, kills, cgroup, request["log"])
        self.tell(record)
        self.selector.register(error_reader, selectors.EVENT_READ, lambda: self.on_become(ward))

    def on_become(self, ward: Ward) -> None:
        """The pipe closes with the exec of the program; what comes before that is why there was none."""
        if ward.errors < 0:
            return
        ward.words = os.read(ward.errors, 1 << 12).decode(errors="replace")
        self.selector.unregister(ward.errors)
        os.close(ward.errors)
        ward.errors = -1

    def on_child(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self.wake.recv(4096):
                pass
        with contextlib.suppress(ChildProcessError):
            while (info := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if info.si_pid in self.wards:
                    self.ended(info)
                os.waitpid(info.si_pid, 0)

    def ended(self, info: os.waitid_result) -> None:
        ward = self.wards.pop(info.si_pid)
        # While the task is not reaped its pid is nobody else's, so its group can be emptied in safety.
        kill_group(info.si_pid)
        remove_cgroup(ward.cgroup)
        self.on_become(ward)
        ended = {"error": ward.words, "at": time.monotonic()} if ward.words else exit_of(info)
        if ward.fenced:
            ended.update(error=ward.fenced, preempted=ward.fenced)
        elif ended.get("signal") == signal.SIGKILL and kills_for_memory() > ward.kills:
            ended["is_out_of_memory"] = True
        if ended.get("code") == UNCAUGHT:
            ended["traceback"] = traceback_of(ward.log)
        task, generation = ward.record["task"], ward.record["generation"]
        self.unwritten[f"{file_name(task, generation)}.exit"] = ended
        self.write_ends()
        self.tell({"task": task, "generation": generation, "exit": ended})

    def write_ends(self) -> None:
        """On a full disk the records of ends wait for room."""
        for name, ended in list(self.unwritten.items()):
            try:
                write_record(name, ended)
            except OSError as error:
                self.complaints.tell(f"shim: {name}: {reason_and_file(error)}")
                return
            del self.unwritten[name]

    def tell(self, message: Mapping[str, Any]) -> None:
        with contextlib.suppress(OSError):
            send_line(self.keeper, message)


def is_let_begin(shim: socket.socket) -> bool:
    """In the fork: tells that signals reach it, and waits until it is on record. A shim that has gone lets nobody."""
    with contextlib.suppress(OSError):
        shim.send(b"r", socket.MSG_NOSIGNAL)
        return bool(shim.recv(1))
    return False


class Ward:
    """A task as its shim knows it: `words` are why it could not become its program, which come through `errors` (a
    pipe, -1 once it is closed), `kills` what the kernel had killed for want of memory when it began, `fenced` why its
    own host kills it."""

    def __init__(self, record: dict[str, Any], errors: int, kills: int, cgroup: str, log: str) -> None:
        self.record = record
        self.errors = errors
        self.words = ""
        self.kills = kills
        self.cgroup = cgroup
        self.log = log
        self.fenced = ""


def never_begun(task: str, generation: int) -> None:
    """In the task's process, whose shim was killed before it let the program begin: nobody else saw that. Without its
    record, or with that of another process, there is nothing to end."""
    record = read_record(f"{file_name(task, generation)}.start")
    if record is not None and record["pid"] == os.getpid():
        words = "was not started: its shim was killed first"
        ended = {"error": words, "preempted": words, "at": time.monotonic()}
        write_record(f"{file_name(task, generation)}.exit", ended)


def send_line(connection: socket.socket, message: Mapping[str, Any]) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")
