"""The page over clusters that are made up: each case that the diagnosis knows, and as many tasks as wanted.

    python -m tests.e2e.page_world FOLDER [--tasks 1000] [--port 0]

The server, its watching, its diagnosis and the page are the real ones; only the looks at a supervisor are replaced.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import dtf as tf
from dtfctl.launchers.usage import Usage
from dtfctl.logs.progress import Progress
from dtfctl.storage.paths import ClusterPaths
from dtfctl.storage.store import Store
from dtfctl.ui import reading, server, watching
from dtfctl.ui.server import Page, listener, serve
from dtfctl.values.history import Happening
from dtfctl.values.snapshot import Disk, HostView, Snapshot, TaskView
from tests.e2e.page import event, made_up

TOKEN = "made-up"
MIB = 1 << 20

NAN = "Traceback (most recent call last):\n  ...\ndtf.train.NanLossDuringTrainingError: NaN loss during training."
CRASH = "Traceback (most recent call last):\n  ...\nKeyError: 'labels'"

CASES = {
    "hot-ps": {"ps:0": {"cores": 0.97}, "ps:1": {"cores": 0.08}},
    "slow-worker": {"worker:2": {"steps_per_s": 3.1, "cores": 0.12}},
    "nan-loss": {"worker:0": {"state": "backoff", "is_ready": False, "failures": 1, "traceback": NAN, "restarts": 1}},
    "full-disk": {},
    "crash-loop": {
        "worker:1": {
            "state": "backoff",
            "is_ready": False,
            "failures": 4,
            "restarts": 4,
            "traceback": CRASH,
            "reason": "exited with status 1; restart 4 of 5 within 10m",
            "next_start_s": 6.0,
            "pid": None,
            "cores": None,
            "usage": None,
            "steps_per_s": None,
        }
    },
    "well": {},
}
"""What differs from a cluster that trains, by task."""


LOGS = {
    "ps:0": ["/job:ps/task:0 serves at grpc://node1:2222"],
    "ps:1": ["/job:ps/task:1 serves at grpc://node1:2223"],
    "worker:0": [
        "INFO:dtf:Create CheckpointSaverHook.",
        *(f"INFO:dtf:global_step/sec: {41 + number % 3}.{number}" for number in range(9)),
        "WARNING:dtf:The input pipeline is slower than the training: 12 ms of each step",
        "step 990, loss 0.31",
    ],
    "worker:1": [
        "INFO:dtf:Graph was finalized.",
        "Traceback (most recent call last):",
        '  File "/home/user/trainer.py", line 88, in main',
        '    batch = reader.next()["labels"]',
        "KeyError: 'labels'",
        "ERROR:dtf:the program ended with an exception",
    ],
    "worker:2": ["INFO:dtf:Running local_init_op.", "step 991, loss 0.29"],
}
VARIABLES = (
    ("embedding/table", [50_000, 64], 0),
    ("hidden_1/kernel", [512, 256], 1),
    ("hidden_1/bias", [256], 0),
    ("hidden_2/kernel", [256, 128], 1),
    ("hidden_2/bias", [128], 0),
    ("logits/kernel", [128, 10], 1),
    ("logits/bias", [10], 0),
)
"""(name, shape, the parameter server that has it)."""

HAPPENS = (
    ("worker:1", "retry", "exited with status 1; restart 4 of 5 within 10m"),
    ("worker:1", "start", "restart 3 of 5"),
    ("worker:1", "started", "pid 4003"),
    ("worker:1", "ready", "after 1.8s"),
    ("worker:1", "ended", "exited with status 1"),
)
"""Events, one with each look."""


class MadeUpLooker:
    """In place of show/looker.Looker."""

    def __init__(self, cluster: watching.Cluster, window_s: float = 0.0) -> None:
        self._name = cluster.name
        self._count = int(self._name.partition("-")[2]) if self._name.startswith("tasks-") else 5
        self._looks = 0
        self._begun = time.time()

    def look(self, after: int = 0, is_measured: bool = True, paces: Any = None) -> Snapshot:
        self._looks += 1
        now = time.time()
        servers = max(2, self._count // 50)
        names = [f"ps:{index}" for index in range(servers)]
        names += [f"worker:{index}" for index in range(self._count - servers)]
        tasks = [self._task(name, number) for number, name in enumerate(names)]
        step = 1000 + 12 * self._looks
        disks = [Disk("checkpoints", "/data/checkpoints", 300 << 30, 500 << 30)]
        if self._name == "full-disk":
            disks = [Disk("checkpoints", "/data/checkpoints", 12 << 10, 500 << 30)]
        loss = math.nan if self._name == "nan-loss" else 0.31
        task, what, cause = HAPPENS[self._looks % len(HAPPENS)]
        history = (Happening(now, task, what, cause, after + 1),)
        hosts = (HostView("node1", "connected", 1.0, ""),)
        known = ("/home/user/cluster.yaml", "running", "", "", False, self._begun - 4000, hosts)
        measured = {"progress": Progress(step, 41.5, loss), "history": history, "disks": tuple(disks)}
        return Snapshot(now, self._name, *known, tuple(tasks), (), **measured)

    def _task(self, name: str, number: int) -> TaskView:
        job = name.partition(":")[0]
        wave = 0.35 + 0.2 * math.sin(self._looks / 3 + number)
        usage = Usage(1.0, (180 + number % 40) * MIB, 1, 12)
        address = f"10.0.{number // 250}.{number % 250}:2222"
        known = (1, 0, 4000 + number, f"node{1 + number // 8}", address, 4000.0, None, None, "", "", "", "", 0.0)
        view = TaskView(name, "running", True, False, *known)
        rate = None if job == "ps" else round(14.0 + math.sin(number), 1)
        view = replace(view, cores=round(wave, 2), usage=usage, steps_per_s=rate)
        changes = dict(CASES.get(self._name, {}).get(name, {}))
        if self._count > 100 and number % 97 == 13:
            changes = {"state": "starting", "is_ready": False, "waiting_for": f"{address} is not open yet"}
        return replace(view, **changes)


def counts(name: str, many: int) -> dict[str, int]:
    """How many tasks a made-up cluster has, and how many of them are ready."""
    if name.startswith("tasks-"):
        return {"tasks": many, "ready": sum(number % 97 != 13 for number in range(many))}
    lost = sum(not changes.get("is_ready", True) for changes in CASES.get(name, {}).values())
    return {"tasks": 5, "ready": 5 - lost}


def traffic(cluster: watching.Cluster, is_of_all: bool = False) -> dict[str, Any]:
    """In place of reading.traffic_of: tasks of the small clusters send and receive at a steady rate."""
    at = time.monotonic()
    names = ("ps:0", "ps:1", "worker:0", "worker:2") if is_of_all else ("ps:0", "ps:1")
    rates = {name: (7.3 - number) * MIB for number, name in enumerate(names)}
    return {
        name: {"at": at, "generation": 1, "sent": rate * at, "received": 0.9 * rate * at, "messages": 1}
        for name, rate in rates.items()
        if not cluster.name.startswith("tasks-")
    }


def gpus(cluster: watching.Cluster) -> dict[str, Any]:
    """In place of reading.gpus_of."""
    if cluster.name != "well":
        return {}
    return {"worker:0": {"gpus": [0], "busy": 0.87, "used": 31 << 30, "total": 80 << 30}}


def prepare(state: Path, tasks: int = 0) -> list[str]:
    """Stores, event files and logs for all cases. Returns the names of the clusters."""
    names = [*CASES, *([f"tasks-{tasks}"] if tasks else [])]
    for name in names:
        paths, plan = made_up(state, name)
        now = time.time()
        with open(Path(plan.checkpoint_folder) / "events.out.tfevents.1.host", "wb") as file:
            for step in range(0, 1000, 10):
                loss = 2.2 * math.exp(-step / 260) + 0.05 * math.sin(step / 9)
                scalars = {"loss": loss, "global_step/sec": 40 + 4 * math.sin(step / 37), "learning_rate": 0.01}
                file.write(event(step, now - 500 + step / 2, scalars))
        for task, lines in LOGS.items():
            (paths.logs(1) / f"{task.replace(':', '-')}.1.log").write_text("".join(f"{line}\n" for line in lines))
        _draw(Path(plan.checkpoint_folder))
        _live(paths, now)
    return names


def _draw(folder: Path) -> None:
    """A graph whose variables lie on two parameter servers, histograms, and images."""
    with tf.Graph().as_default(), tf.Session() as session:
        for name, shape, server in VARIABLES:
            with tf.device(f"/job:ps/task:{server}"):
                tf.get_variable(name, shape)
        tf.train.export_meta_graph(str(folder / "model.ckpt-990.meta"))
        values, pixels = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.uint8, [1, 28, 28, 3])
        both = tf.summary.merge([tf.summary.histogram("weights", values), tf.summary.image("digit", pixels)])
        writer = tf.summary.FileWriter(str(folder), filename_suffix=".drawn")
        for step in range(0, 1000, 100):
            random = np.random.RandomState(step)
            drawn = random.randn(2000) * (1 + step / 500) + step / 400
            y, x = np.mgrid[:28, :28]
            ring = np.exp(-((np.hypot(x - 14, y - 14) - 4 - step / 200) ** 2) / 6)
            picture = np.stack([ring * 255, ring * 180, 255 - ring * 200], axis=-1)[None].astype(np.uint8)
            writer.add_summary(session.run(both, {values: drawn, pixels: picture}), step)
        writer.close()


def _live(paths: ClusterPaths, now: float) -> None:
    """A history: all start, ps:1 is killed once, worker:1 fails three times."""
    store = Store(paths.store)
    found = store.load()
    assert found is not None
    run, statuses = found
    lines: list[tuple[float, str, str, str]] = []
    for number, task in enumerate(statuses):
        begin = now - 598 + number / 5
        lines += [(begin, task, "start", "it is in the cluster file"), (begin + 7, task, "ready", "after 7.0s")]
    lines += _again("ps:1", now - 380, "killed by SIGKILL from outside; restart not counted", 2.0)
    for count, at in enumerate((now - 210, now - 150, now - 80), 1):
        lines += _again("worker:1", at, f"exited with status 1; restart {count} of 5 within 10m", 6.0 * count)
    store.save(run, (), [Happening(*line) for line in sorted(lines)])
    store.close()


def _again(task: str, at: float, why: str, pause_s: float) -> list[tuple[float, str, str, str]]:
    return [
        (at, task, "ended", why.partition(";")[0]),
        (at + 0.1, task, "retry", why),
        (at + pause_s, task, "start", why),
        (at + pause_s + 6, task, "ready", "after 6.0s"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", type=int, default=0)
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    state = arguments.folder / "state"
    prepare(state, arguments.tasks)
    watching.Looker = MadeUpLooker  # type: ignore[assignment, misc]
    watching.Cluster.wait_for_change = lambda self, timeout_s: time.sleep(timeout_s) or False  # type: ignore
    former = server._summary
    server._summary = lambda cluster: {
        **former(cluster), "state": "running", "isOver": False, **counts(cluster.name, arguments.tasks)
    }  # fmt: skip
    reading.traffic_of, reading.gpus_of = traffic, gpus
    bound = listener(arguments.port, None)
    address = f"http://127.0.0.1:{bound.getsockname()[1]}/?token={TOKEN}"
    serve(Page(state, "well"), TOKEN, bound, lambda: print(address, flush=True))


if __name__ == "__main__":
    main()
