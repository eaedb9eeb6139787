"""The keeper: the process beside the tasks of one host. Parent of their shims, and of nobody's opinions.

    daemon  <--unix socket, JSON lines-->  keeper  --fork-->  shim  --fork, exec-->  task

It starts and signals tasks and tells how they ended; it decides nothing, so it need not change when dtfctl does.

    keeper ..... the loop: requests, what is found on disk, ends, strays
    daemon_line  the socket on which the daemon sends requests
    shims ...... the keeper's end of its shim
    respawn .... when a daemon that has gone is started again, and how
    recorder ... the log recorder, a child that is started again
    shim ....... parent of the tasks, which outlives the keeper and puts their ends on record
    program .... how a fork becomes a task's program: its log, limits, folder
    cgroups .... where this user may write them: all that a task has forked ends with it
    records .... small files that are complete or absent
    durable .... the folder in memory of a durable parameter server
    traceback .. at the end of the log of a task that has failed
    protocol ... the shapes of requests, messages and records
    processes .. by pid and start time, through pidfds
    lease ...... until when tasks may run without news of their supervisor
    ports ...... held for tasks while they have no process

This folder, with ../log_recorder.py, needs only Python's standard library (`python -I -S keeper RUN_DIR`, where
RUN_DIR/token is the run's token), so that it can be copied to a host that has nothing else.

Nothing is lost when any of these processes is killed:
- the daemon: the keeper and the tasks go on, and after a moment the keeper starts the daemon again;
- the keeper: its *shim*, a fork of the keeper, is the tasks' parent, waits for them and writes each exit status to a
  record on disk. The next keeper finds the records, watches the tasks, and makes a shim of its own for new ones;
- a shim: its tasks fall to the keeper, which is a subreaper, and are waited for there. If that keeper had been
  killed before, the kernel tells: of a zombie in /proc, of one that init has reaped through its pidfd (since Linux
  6.15). An end that nobody saw is told as "status unknown", and is held against nobody.
A task writes straight to its own log file, so that nobody's death can lose, tear or hold up a line. Beside the keeper
runs a recorder (log_recorder.py), which notes when logs grow and gives back their heads.

A process is trusted only by pid, start time and boot id together, and is signalled through a pidfd. All processes
of a run carry its token in their environment: by that the strays are found.

Requests (a line of JSON each): hello, hold, release, start, signal, lease, sweep, bye. Messages back: listed, held,
refused, started, exited, swept. What is no request costs a line in keeper.log, and is answered with misunderstood.
"""

from __future__ import annotations

TOKEN_VARIABLE = "DTFCTL_TOKEN"
SOCKET = "keeper.sock"
LOCK = "keeper.lock"
TOKEN = "token"
FILES = "files"
LEAVING = "leaving"
"""A file that says that the keeper goes for good: it is not started again where a call keeps it."""

CHOSEN_PORTS = range(20000, 32000)
"""Below Linux's ephemeral ports: no outgoing connection takes one of these while its task is down or starting."""

SWEEP_S = 5.0
LINE_BYTES_MAX = 16 << 20
