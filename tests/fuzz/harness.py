"""Runs inputs in a process of their own, and sorts what comes of them: taken, refused in words, or lost.

The parent starts a child for each target. The child notes the number of the input that it is at, so that the parent
knows which one hangs or kills it; both make any input again from target, seed and number.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from dtf.wire import limits

CORPUS = Path(__file__).with_name("corpus")
SLOW_S = 2.0
GROWTH_BYTES = 256 << 20
LIMITS = {
    limits.TENSOR_BYTES.variable: "64M",
    limits.DECOMPRESSED_BYTES.variable: "64M",
    limits.REPEATED_BYTES.variable: "1M",
}
"""So that what a user has allowed is no growth."""

HANGS_S = 30.0
"""An input that takes so long is given up, and its process killed."""

BEGIN_S = 120.0
CORPUS_BYTES_MAX = 1 << 16
LOST_MAX = 200
"""After so many a process has enough of them."""


@dataclass(frozen=True)
class Target:
    """What reads an input. `examples` makes good ones, `mutate` a bad one of them; `read` takes it, and raises one of
    `refusals` for what it does not understand. `is_wrong` says in words what is wrong though nothing was raised."""

    name: str
    examples: Callable[[], Sequence[Any]]
    mutate: Callable[[random.Random, Sequence[Any]], bytes]
    read: Callable[[bytes], Any]
    refusals: tuple[type[BaseException], ...]

    @cached_property
    def _examples(self) -> Sequence[Any]:
        return self.examples()

    def input(self, seed: int, number: int) -> bytes:
        chance = random.Random(f"{self.name} {seed} {number}")
        return self.mutate(chance, self._examples)

    def outcome(self, data: bytes) -> tuple[str, str]:
        """("taken" or "refused" or "lost", why)."""
        # Of its own time: others may keep the machine busy. What waits for too long is noticed by the parent.
        begun, grown = time.process_time(), _peak_bytes()
        try:
            self.read(data)
            result = "taken", ""
        except self.refusals as error:
            words = str(error)
            result = ("refused", "") if words.strip() else ("lost", f"{type(error).__name__} without words")
        except Exception as error:
            result = "lost", f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-4)}"
        took_s, growth = time.process_time() - begun, _peak_bytes() - grown
        if result[0] != "lost" and took_s > SLOW_S:
            result = "lost", f"took {took_s:.1f} s"
        if result[0] != "lost" and growth > GROWTH_BYTES:
            result = "lost", f"grew by {growth >> 20} MB"
        return result


@dataclass
class Tally:
    tried: int = 0
    taken: int = 0
    refused: int = 0
    lost: list[tuple[int, str]] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.tried += other.tried
        self.taken += other.taken
        self.refused += other.refused
        self.lost += other.lost

    def __str__(self) -> str:
        return f"{self.tried} tried, {self.taken} taken, {self.refused} refused in words, {len(self.lost)} lost"


def campaign(target: Target, seed: int, seconds: float, inputs: int, first: int = 0) -> Tally:
    """Tries inputs from the number `first` on: for so many `seconds`, and at most so many `inputs`."""
    tally = Tally()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and tally.tried < inputs:
        left = max(0.1, deadline - time.monotonic())
        done, stuck = _child(target, seed, left, inputs - tally.tried, first + tally.tried)
        tally.add(done)
        if len(tally.lost) >= LOST_MAX:
            break
        if stuck:
            tally.tried += 1
            tally.lost.append((first + tally.tried - 1, stuck))
        elif not done.tried:
            raise RuntimeError(f"the process of the target {target.name} does nothing")
    for number, why in tally.lost:
        keep(target, target.input(seed, number), why)
    return tally


def keep(target: Target, data: bytes, why: str) -> Path | None:
    """Puts a lost input into the corpus, beside why it was lost."""
    if len(data) > CORPUS_BYTES_MAX:
        return None
    folder = CORPUS / target.name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    return path


def serve_child(target: Target, seed: int, seconds: float, inputs: int, first: int, progress: Path) -> None:
    """The child's part. It writes the number of each input to `progress` before it begins with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()
    tally = Tally()
    target.input(seed, first)
    # What the first inputs load and allocate is no growth of theirs.
    for number in range(20):
        target.outcome(target.input(0, -1 - number))
    mark = os.open(progress, os.O_WRONLY | os.O_CREAT)
    deadline = time.monotonic() + seconds
    for number in range(first, first + inputs):
        os.pwrite(mark, f"{number:20d}".encode(), 0)
        what, why = target.outcome(target.input(seed, number))
        tally.tried += 1
        if what == "taken":
            tally.taken += 1
        elif what == "refused":
            tally.refused += 1
        elif len(tally.lost) < LOST_MAX:
            tally.lost.append((number, why))
        if len(tally.lost) == LOST_MAX:
            break
        if time.monotonic() > deadline:
            break
    progress.with_name("result").write_text(json.dumps(vars(tally)))
    os._exit(0)


def _child(target: Target, seed: int, seconds: float, inputs: int, first: int) -> tuple[Tally, str]:
    """(what it has tried, why it did not end)."""
    with tempfile.TemporaryDirectory(prefix="dtf-fuzz-") as folder:
        progress = Path(folder) / "progress"
        arguments = [target.name, str(seed), str(seconds), str(inputs), str(first), str(progress)]
        with open(Path(folder) / "errors", "w+b") as errors:
            child = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz", "--child", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env={**os.environ, **LIMITS, "DTF_FUZZ_FOLDER": folder},
                cwd=Path(__file__).parents[2],
                start_new_session=True,
            )
            why = _watch(child, progress, seconds)
            child.wait()
            errors.seek(0)
            last = errors.read()[-6000:].decode(errors="replace")
        result = Path(folder) / "result"
        if result.exists():
            found = json.loads(result.read_text())
            return Tally(**{**found, "lost": [tuple(each) for each in found["lost"]]}), ""
        if not progress.exists():
            raise RuntimeError(f"the target {target.name} does not begin: {why}\n{last}")
        at = int(progress.read_bytes())
        why = why or f"its process ended with {child.returncode}"
        return Tally(tried=at - first, taken=0, refused=0), f"{why}\n{last}"


def _watch(child: subprocess.Popen[bytes], progress: Path, seconds: float) -> str:
    """Until the child has ended; kills it when it stays at one input for too long, and says so."""
    at, since = b"", time.monotonic()
    while True:
        try:
            child.wait(0.2)
            return ""
        except subprocess.TimeoutExpired:
            pass
        now = progress.read_bytes() if progress.exists() else b""
        if now != at:
            at, since = now, time.monotonic()
        patience_s = HANGS_S if at else BEGIN_S
        if time.monotonic() - since > patience_s:
            # It says where its threads are.
            child.send_signal(signal.SIGABRT)
            time.sleep(1)
            os.killpg(child.pid, signal.SIGKILL)
            return f"took longer than {patience_s:g} s"


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
