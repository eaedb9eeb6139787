"""Collective operations between two workers, each with a session of its own, as both runtimes' clients write them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

LEADER = "/job:worker/replica:0/task:0"
WORKERS = 2


def config(tf: Any) -> Any:
    """Of the servers and the sessions: who brings the groups together."""
    made = tf.ConfigProto()
    made.experimental.collective_group_leader = LEADER
    return made


def operations(tf: Any, task: int) -> dict[str, Any]:
    """What worker `task` fetches, by name."""
    ops = tf.raw_ops
    random = np.random.RandomState(task)
    instances = iter(range(1, 100))

    def keys(**more):
        return {"group_size": WORKERS, "group_key": 7, "instance_key": next(instances), **more}

    found = {}
    for merge in ("Add", "Mul", "Min", "Max"):
        for final in ("Id", "Div"):
            values = random.uniform(-2, 2, (5, 3)).astype(np.float32)
            found[f"{merge} {final}"] = ops.CollectiveReduce(
                input=tf.constant(values), merge_op=merge, final_op=final, subdiv_offsets=[0], **keys()
            )
    for dtype in ("float64", "float16", "int32", "int64"):
        values = random.randint(-9, 9, 7).astype(dtype)
        found[f"mean of {dtype}"] = ops.CollectiveReduce(
            input=tf.constant(values), merge_op="Add", final_op="Div", subdiv_offsets=[0], **keys()
        )
    for shape in ((), (1,), (2, 2)):
        values = random.uniform(-2, 2, shape).astype(np.float32)
        found[f"sum of {shape}"] = ops.CollectiveReduceV2(
            input=tf.constant(values), merge_op="Add", final_op="Id", ordering_token=[], **keys()
        )
    rows = tf.constant(random.uniform(-2, 2, (2, 3)).astype(np.float32))
    found["gathered"] = ops.CollectiveGather(input=rows, shape=[4, 3], **keys())
    found["gathered anew"] = ops.CollectiveGatherV2(input=rows, ordering_token=[], **keys())
    for source in range(WORKERS):
        more = keys(shape=[2, 3])
        found[f"from {source}"] = (
            ops.CollectiveBcastSend(input=rows, **more)
            if task == source
            else ops.CollectiveBcastRecv(T=tf.float32, **more)
        )
    return found


def outcomes(tf: Any, targets: list[str]) -> dict[str, np.ndarray]:
    """What each worker fetches in each of two steps, as "worker/step/name"; errors as "worker/step/error"."""
    found: dict[str, np.ndarray] = {}

    def work(task: int) -> None:
        with tf.Graph().as_default(), tf.device(f"/job:worker/task:{task}"):
            fetches = operations(tf, task)
            with tf.Session(targets[task], config=config(tf)) as session:
                for step in range(2):
                    try:
                        values = session.run(fetches, options=tf.RunOptions(timeout_in_ms=60_000))
                    except tf.errors.OpError as error:
                        values = {"error": f"{type(error).__name__}: {error.message}"}
                        found.update({f"{task}/{step}/{name}": np.array(value) for name, value in values.items()})
                        return
                    found.update({f"{task}/{step}/{name}": np.array(value) for name, value in values.items()})

    threads = [threading.Thread(target=work, args=(task,)) for task in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found
