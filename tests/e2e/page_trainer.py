"""A program for clusters under the page: a ps that becomes ready after a while, a worker that writes curves and logs.

    python page_trainer.py JOB INDEX CHECKPOINT_FOLDER [CASE]

CASE is nan, crash or full: what goes wrong after some steps.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.e2e.page import event  # noqa: E402


def main(job: str, index: str, folder: str, case: str = "") -> None:
    ready = Path(folder) / f"ready-{job}-{index}"
    if job == "ps":
        time.sleep(1.5)
        ready.touch()
        print(f"INFO:dtf:ps {index} serves", flush=True)
        time.sleep(10_000)
    ready.touch()
    with open(Path(folder) / f"events.out.tfevents.{time.time_ns()}.host-{index}", "ab") as file:
        for step in range(1, 100_000):
            loss = float("nan") if case == "nan" and step > 3 else 2.0 / step
            if index == "0":
                file.write(event(step, time.time(), {"loss": loss}))
                file.flush()
            print(f"step {step} of worker {index}, loss {loss:.4f}", flush=True)
            if step == 3:
                print("WARNING:dtf:the needle is in line three <b>not bold</b>", flush=True)
            if case == "crash" and step == 2:
                raise KeyError("labels")
            if case == "full" and step == 2:
                os.write(os.open("/dev/full", os.O_WRONLY), b"x")
            time.sleep(0.15)


if __name__ == "__main__":
    main(*sys.argv[1:])
