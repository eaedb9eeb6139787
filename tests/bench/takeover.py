"""How long a training pauses when its parameter server is killed: `python -m tests.bench.takeover [--kills N]`.

A worker of this process trains one variable at a ps with durability `process`, which is started again, and at one with
`host`, whose backup takes over. The pause is the time from SIGKILL to the next confirmed step, and none of those before
is lost.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import dtf as tf
from tests.durability.servers import Places, Servers


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.takeover", description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--megabytes", type=int, default=1, help="of the variable")
    chosen = parser.parse_args()
    for level, servers in (("process", Servers), ("host", Places)):
        folder = Path(tempfile.mkdtemp(prefix="dtf-bench-", dir="/dev/shm"))
        try:
            with servers(folder) as running:
                pauses = sorted(_pauses_s(running, chosen.kills, chosen.megabytes << 18))
        finally:
            shutil.rmtree(folder)
        quarter = len(pauses) // 4
        print(
            f"{level}: {len(pauses)} kills, pause {1000 * statistics.median(pauses):.0f} ms "
            f"({1000 * pauses[quarter]:.0f} to {1000 * pauses[-1 - quarter]:.0f}; most {1000 * pauses[-1]:.0f})",
            flush=True,
        )


def _pauses_s(running: Servers, kills: int, size: int) -> list[float]:
    pauses = []
    with tf.train.Server(running.cluster, "worker", 0, config=running.config) as server, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            variable = tf.Variable(tf.zeros([size]))
            train = variable.assign_add(tf.ones([size])).op
            first = variable[0]
        with tf.Session(server.target) as session:
            session.run(variable.initializer)
            for turn in range(kills):
                primary = running.wait_in_sync(0) if isinstance(running, Places) else None
                for _ in range(10):
                    session.run(train)
                began = time.perf_counter()
                if isinstance(running, Places):
                    assert primary is not None
                    running.kill_place(0, primary)
                    session.run(train)
                    pauses.append(time.perf_counter() - began)
                    running.start_place(0, primary)
                else:
                    running.restart(0)
                    session.run(train)
                    pauses.append(time.perf_counter() - began)
                assert session.run(first) == 11 * (turn + 1)
    return pauses


if __name__ == "__main__":
    main()
