"""The folder in memory where a durable parameter server of dtf keeps its state: one for each task of a run.

It lies in /dev/shm, which outlives every process of the run, and is removed when the run ends. Only a task whose
environment has DTF_DURABILITY gets one. Another run has another token, and so another folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MEMORY = "/dev/shm"
LEVEL_VARIABLE, FOLDER_VARIABLE = "DTF_DURABILITY", "DTF_DURABILITY_DIR"


def place(task: str, environment: Mapping[str, str], token: str) -> dict[str, str]:
    """What the environment of a task gains: the name of its folder, which the task makes itself."""
    if environment.get(LEVEL_VARIABLE, "none") == "none" or environment.get(FOLDER_VARIABLE):
        return {}
    return {FOLDER_VARIABLE: os.path.join(folder_of(token), task.replace(":", "-"))}


def remove(token: str) -> None:
    """Removes the state of all tasks of the run."""
    shutil.rmtree(folder_of(token), ignore_errors=True)


def folder_of(token: str) -> str:
    """The folder of a run. The token itself is a secret and in no name."""
    return os.path.join(MEMORY, f"dtf-{os.getuid()}-{hashlib.sha256(token.encode()).hexdigest()[:16]}")
