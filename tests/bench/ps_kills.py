"""How long a training pauses when its ps is killed: `python -m tests.bench.ps_kills [--kills 5] [--mb 0] [LEVEL ...]`.

One ps under dtfctl with `durability: process` or `host` is killed again and again, one worker trains without a pause.
With `host` the process that serves is killed, and the next kill comes when a backup is in sync again. Prints the
longest step around each kill, and how long the backup took to be filled. `--mb` adds a variable of that size.
`--promote` moves the ps instead, to the host of its backup, by `dtfctl promote`.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.waiting import wait_until

WAIT_S = 180.0
FILE = """
name: bench
program: [python, -m, tests.bench.ps_kills, --train]
python: {python}
environment: {{PYTHONPATH: "{root}/runtime:{root}", MB: "{mb}"}}
readiness: {{probe: grpc}}
durability: {level}
hosts: {{one: {{ssh: none}}, two: {{ssh: none}}}}
jobs: {{ps: {{replicas: 1, hosts: [one]}}, worker: {{replicas: 1, hosts: [one]}}}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ps_kills", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--mb", type=int, default=0)
    parser.add_argument("--promote", action="store_true", help="promote the backup instead of killing the primary")
    parser.add_argument("--train", action="store_true", help="be a task of the cluster")
    parser.add_argument("levels", nargs="*", default=["process", "host"])
    arguments = parser.parse_args()
    if arguments.train:
        train()
        return
    what = "move" if arguments.promote else "kill"
    for level in ["host"] if arguments.promote else arguments.levels:
        pauses, fills = measured(level, arguments.kills, arguments.mb, arguments.promote)
        filled = f"; a backup in sync after {statistics.median(fills):.1f} s" if level == "host" else ""
        print(
            f"{level:>8}: a {what} costs {statistics.median(pauses):.2f} s ({min(pauses):.2f} to {max(pauses):.2f}, "
            f"{len(pauses)} times, {arguments.mb} MB){filled}",
            flush=True,
        )


def measured(level: str, kills: int, mb: int, is_planned: bool = False) -> tuple[list[float], list[float]]:
    """The longest step around each kill, and how long it took until the next kill could come, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = CommandLine(Path(folder))
        cluster.timeout_s = WAIT_S
        cluster.write(FILE.format(root=ROOT, python=sys.executable, level=level, mb=mb))
        cluster.run("up")
        pauses, fills = [], []

        def primary() -> dict | None:
            tasks = [task for task in cluster.status()["tasks"] if task["name"].startswith("ps")]
            if level == "process":
                return next((task for task in tasks if task["ready"]), None)
            roles = [task.get("role", "") for task in tasks]
            if not any(role.startswith("backup") and role.endswith("in sync") for role in roles):
                return None
            return next((task for task in tasks if task.get("role", "").endswith("backup in sync")), None)

        def longest() -> float:
            """Since the last call."""
            (cluster.folder / "ask").touch()
            answer = cluster.folder / "longest"
            wait_until(answer.exists, "the trainer's answer", timeout_s=WAIT_S)
            found = float(answer.read_text())
            answer.unlink()
            return found

        try:
            for _ in range(kills):
                task = wait_until(primary, "a ps that may be killed", timeout_s=WAIT_S)
                longest()
                began = time.perf_counter()
                if is_planned:
                    cluster.run("promote", "ps:0")
                else:
                    os.kill(task["pid"], signal.SIGKILL)
                time.sleep(3.0)
                wait_until(primary, "a ps that may be killed", timeout_s=WAIT_S)
                fills.append(time.perf_counter() - began)
                pauses.append(longest())
        finally:
            cluster.run("down", "bench", "--timeout", "0", status=None)
        return pauses, fills


def train() -> None:
    """The ps, or the worker, which answers in files."""
    import json

    import dtf as tf

    job = os.environ["JOB_NAME"]
    cluster = tf.train.ClusterSpec(json.loads(os.environ["CLUSTER_SPEC"]))
    server = tf.train.Server(cluster, job, int(os.environ["TASK_INDEX"]))
    if job == "ps":
        server.join()
        return
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:0")):
        small = tf.get_variable("small", [1000], initializer=tf.zeros_initializer())
        large = tf.get_variable("large", [1 + int(os.environ["MB"]) * 3906, 64], initializer=tf.zeros_initializer())
        step = tf.group(small.assign_add(tf.ones([1000])), tf.scatter_add(large, [0], tf.ones([1, 64])))
        init = tf.global_variables_initializer()
    with tf.Session(server.target) as session:
        session.run(init)
        longest = 0.0
        while True:
            began = time.perf_counter()
            session.run(step)
            longest = max(longest, time.perf_counter() - began)
            if os.path.exists("ask"):
                os.unlink("ask")
                Path("answer").write_text(str(longest))
                os.replace("answer", "longest")
                longest = 0.0


if __name__ == "__main__":
    main()
