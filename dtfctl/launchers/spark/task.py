"""The task of Spark that starts dtfctl's process on an executor. Spark copies this file's functions to executors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LOADER = """
import sys, types, json
for name, text in json.loads(sys.stdin.readline()):
    module = sys.modules[name] = types.ModuleType(name)
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)
    exec(compile(text, name, "exec"), module.__dict__)
module.main()
"""


def starter(modules: list[tuple[str, str]], wanted: dict[str, Any]) -> Callable[[Iterator[str]], Iterator[str]]:
    """`wanted` is there.Process's, without what only the executor knows; with "only" no other address will do."""

    def start(names: Iterator[str]) -> Iterator[str]:
        for name in names:
            executor, address = executor_of(wanted["driver"])
            if wanted["only"] not in ("", address):
                yield json.dumps({"error": f"an executor at {address}"})
                continue
            own = {**wanted, "name": name, "executor": executor, "place": {"address": address}}
            process = subprocess.Popen(
                [sys.executable, "-c", LOADER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps(modules).encode() + b"\n" + json.dumps(own).encode() + b"\n")
            process.stdin.close()
            line = process.stdout.readline().decode()
            process.stdout.close()
            process.wait()
            yield line or json.dumps({"error": "dtfctl's process does not start on the executor"})

    return start


def executor_of(driver: str) -> tuple[int, str]:
    """(pid, address) of the executor whose task this is: the first JVM above this process. In Spark's local mode the
    driver is the executor."""
    pid = os.getppid()
    while pid > 1:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().decode(errors="replace").split("\0")
        if os.path.basename(words[0]) == "java":
            return pid, words[words.index("--hostname") + 1] if "--hostname" in words else driver
        with open(f"/proc/{pid}/stat") as stat:
            pid = int(stat.read().rpartition(")")[2].split()[1])
    return os.getppid(), driver


def modules() -> list[tuple[str, str]]:
    """What a process on an executor consists of, each module after those that it imports."""
    root = Path(__file__).resolve().parents[3]
    rooms = ("dtfctl", "dtfctl.launchers", "dtfctl.launchers.bridge", "dtfctl.launchers.spark")
    names = ("dtfctl.launchers.bridge.commands", "dtfctl.launchers.spark.link", "dtfctl.launchers.spark.there")
    texts = [(name, (root / f"{name.replace('.', '/')}.py").read_text()) for name in names]
    return [*((name, "") for name in rooms), *texts]
