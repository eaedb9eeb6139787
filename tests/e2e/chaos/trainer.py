"""A training whose state is known exactly: after S global steps each sum of the chief is a function of S.

The chief's step adds (S + 1) times a pattern to one variable on each parameter server, and then 1 to the global step,
so that each sum is S(S+1)/2 patterns. Every other worker adds a pattern to a variable of its own, in one operation,
so that the variable is always a whole number of patterns. A half-applied, lost or doubled update shows at once.

Every printed line is one write, numbered within its process, and its number is noted in a file of the process once
the write has returned. `found_wrong` examines the state that a reader gives it.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

MARKS, CHECKPOINTS, FINISH, WRONG = "marks", "checkpoints", "finish", "wrong"
"""In the program's folder: its marks, its checkpoints, and files that end it and say that it is wrong."""

SUMS = 4
WORKERS_MAX = 4
LENGTH = 64
BALLAST = 1 << 18
"""Numbers that each parameter server saves besides, so that a save takes a while."""

PATTERN = np.arange(1, LENGTH + 1, dtype=np.int64) ** 2
STEP = "global_step"
NAMES = (
    STEP,
    *(f"sum_{number}" for number in range(SUMS)),
    *(f"own_{number}" for number in range(1, WORKERS_MAX)),
)


def found_wrong(values: Mapping[str, Any]) -> str:
    """What cannot be in a state of this training, "" when all of it can."""
    step = int(values[STEP])
    for name in NAMES[1:]:
        value = np.asarray(values[name])
        factor = step * (step + 1) // 2 if name.startswith("sum") else int(value[0])
        if not np.array_equal(value, factor * PATTERN):
            wanted = f"{factor} patterns at step {step}"
            return f"{name} is {value[:3].tolist()}..{value[-1]}, not {wanted}"
    return ""


def main() -> None:
    import dtf as tf

    folder = Path(sys.argv[1])
    checkpoints, finish = str(folder / CHECKPOINTS), folder / FINISH
    job, index = os.environ["JOB_NAME"], int(os.environ["TASK_INDEX"])
    cluster = json.loads(os.environ["CLUSTER_SPEC"])
    speaker = Speaker(folder / MARKS, f"{job}-{index}")
    say = speaker.say
    say("begins")
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    if job == "ps":
        server.join()
        return
    servers = len(cluster["ps"])
    variables = {}
    with tf.device("/job:ps/task:0"):
        step = tf.train.get_or_create_global_step()
    for number, name in enumerate(NAMES[1:]):
        with tf.device(f"/job:ps/task:{number % servers}"):
            variables[name] = tf.Variable(np.zeros(LENGTH, np.int64), name=name)
    for number in range(2):
        with tf.device(f"/job:ps/task:{number % servers}"):
            tf.Variable(np.arange(BALLAST, dtype=np.float32), name=f"ballast_{number}")
    is_chief = index == 0
    with tf.device(f"/job:worker/task:{index}"):
        if is_chief:
            amount = (tf.identity(step) + 1) * PATTERN
            updates = [variables[f"sum_{number}"].assign_add(amount) for number in range(SUMS)]
            with tf.control_dependencies(updates):
                train = tf.group(step.assign_add(1))
        else:
            train = variables[f"own_{index}"].assign_add(tf.identity(PATTERN)).op
    names = [name for name in NAMES if is_chief or name in (STEP, f"own_{index}")]
    state = {name: step if name == STEP else variables[name] for name in names}

    class Saved(tf.train.CheckpointSaverListener):
        def after_save(self, session, step_value):
            say(f"saved {step_value}")

    class Begins(tf.train.SessionRunHook):
        def after_create_session(self, session, coordinator):
            values = session.run(state)
            say(f"from {values[STEP]}{check(values)}")

    def check(values: Mapping[str, Any]) -> str:
        wrong = found_wrong(values) if is_chief else ""
        if wrong:
            (folder / WRONG).touch()
        return f" WRONG {wrong}" if wrong else ""

    saver = tf.train.CheckpointSaverHook(checkpoints, save_steps=50, listeners=[Saved()])
    with tf.train.MonitoredTrainingSession(
        server.target,
        is_chief=is_chief,
        checkpoint_dir=checkpoints,
        save_checkpoint_secs=None,
        save_checkpoint_steps=None,
        save_summaries_steps=None,
        save_summaries_secs=None,
        log_step_count_steps=None,
        hooks=[Begins()],
        chief_only_hooks=[saver],
    ) as session:
        while not session.should_stop():
            session.run(train)
            values = session.run(state)
            say(f"step {values[STEP]}{check(values)}", values[STEP])
            if finish.exists():
                break
            time.sleep(0.005)
    say("ends")


class Speaker:
    """Prints numbered lines, each by one write. The file of this process in `folder` has the number of the last, and
    the last global step.
    """

    def __init__(self, folder: Path, task: str) -> None:
        self._me = os.urandom(4).hex()
        self._mark = os.open(folder / f"{task}-{self._me}", os.O_WRONLY | os.O_CREAT, 0o600)
        self._numbers = itertools.count(1)
        self._step = 0

    def say(self, words: str, step: int = 0) -> None:
        number = next(self._numbers)
        self._step = step or self._step
        os.write(1, f"@{self._me} {number} {words} .\n".encode())
        os.pwrite(self._mark, b"%12d %12d" % (number, self._step), 0)


if __name__ == "__main__":
    main()
