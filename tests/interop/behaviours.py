"""Runs behaviours, functions of the module `tf` that return plain JSON, under one runtime or both, and compares.

A module of behaviours calls `run_all` where it is a script; its test calls `differences`.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

Behaviour = Callable[[Any], Any]


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in (sorted(value, key=str) if isinstance(value, set | frozenset) else value)]
    return value if isinstance(value, str | int | float | bool | None) else type(value).__name__


def outcome(call: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """What the call returned, or the name of what it raised."""
    try:
        return plain(call(*arguments, **keywords))
    except (Exception, SystemExit) as error:
        return [type(error).__name__, error.code] if isinstance(error, SystemExit) else type(error).__name__


def results(tf: Any, behaviours: Sequence[Behaviour]) -> dict[str, Any]:
    """What each behaviour gives in a graph of its own."""
    found = {}
    for behaviour in behaviours:
        with tf.Graph().as_default():
            found[behaviour.__name__] = outcome(behaviour, tf)
    return found


def run_all(behaviours: Sequence[Behaviour]) -> None:
    """The script: runs the behaviours named on the command line, or all, and prints their results."""
    tf = importlib.import_module(sys.argv[1])
    if sys.argv[1] != "dtf":
        tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    wanted, sys.argv[1:] = sys.argv[2:], []
    chosen = [each for each in behaviours if not wanted or each.__name__ in wanted]
    line = json.dumps(results(tf, chosen))
    print(line, flush=True)
    os._exit(0)  # threads that a behaviour has left behind keep nobody waiting


def both(program: ModuleType, names: Sequence[str] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
    """What TensorFlow and dtf give, each in a process of its own."""
    from tests.interop.tensorflow_process import PYTHON, ROOT

    path = os.pathsep.join([str(ROOT / "runtime"), str(ROOT)])
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": path}
    started = [
        subprocess.Popen(
            [python, "-m", program.__name__, module, *names],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=env,
        )
        for python, module in ((PYTHON, "tensorflow.compat.v1"), (sys.executable, "dtf"))
    ]
    found = []
    for process in started:
        output, complaints = process.communicate(timeout=280)
        assert process.returncode == 0, complaints[-4000:]
        found.append(json.loads(output.splitlines()[-1]))
    return found[0], found[1]


def differences(wanted: Any, given: Any, path: str = "") -> list[str]:
    """A line for each place at which two results differ."""
    if isinstance(wanted, dict) and isinstance(given, dict):
        return [
            line
            for key in dict.fromkeys([*wanted, *given])
            for line in differences(wanted.get(key), given.get(key), f"{path}/{key}")
        ]
    return [] if wanted == given else [f"{path}: TensorFlow gives {wanted}, here it is {given}"]
