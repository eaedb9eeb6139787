"""What the state of a pod says about its task, from the object that the API server has. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from dtfctl.manifests.documents import Document, Value
from dtfctl.manifests.names import task_name
from dtfctl.manifests.pods import CONTAINER

RUN_LABEL = "dtf.dev/run"
TASK_LABEL = "dtf.dev/task"
GENERATION_LABEL = "dtf.dev/generation"

EXIT_CODE_MAX = (1 << 31) - 1

PATIENT = ("ContainerCreating", "PodInitializing", "")
"""Reasons of a container that waits as each does at first."""

TAKEN_AWAY = ("Evicted", "Preempting", "Preempted", "NodeShutdown", "Terminated", "NodeLost", "NodeAffinity")
"""Reasons of a failed pod that its program has nothing to do with."""


@dataclass(frozen=True)
class Ended:
    """How a container ended, `taken` says by whom or what it was taken away, `refused` why it never ran."""

    code: int | None = None
    signal: int | None = None
    is_out_of_memory: bool = False
    taken: str = ""
    refused: str = ""


@dataclass(frozen=True)
class Seen:
    """A pod of a run.

    Attributes:
      began_at: seconds since 1970 at which its container began, None before that.
      waiting: why it does not run yet, in the words of Kubernetes.
      grace_s: seconds from a deletion until the kubelet kills the pod; None if the pod is not being deleted.
    """

    task: str
    generation: int
    name: str
    uid: str
    node: str = ""
    began_at: float | None = None
    is_ready: bool = False
    waiting: str = ""
    ended: Ended | None = None
    grace_s: float | None = None

    @property
    def key(self) -> tuple[str, int]:
        return self.task, self.generation

    @property
    def pid(self) -> int:
        """A number for the process, which has none that means anything here."""
        return zlib.crc32(self.uid.encode()) & 0x7FFFFFFF | 1


def pod_name(cluster: str, task: str, token: str, generation: int) -> str:
    """No other generation, and no pod of another run of this cluster, has it."""
    job, _, index = task.rpartition(":")
    return f"{task_name(cluster, job, int(index))}-{token[:5]}-{generation}"


def seen(pod: Document) -> Seen | None:
    """None for what is no pod of dtfctl."""
    try:
        return _seen(pod)
    except (ValueError, OverflowError):  # numbers and times that no server would send
        return None


def _seen(pod: Document) -> Seen | None:
    metadata, status = _mapping(pod, "metadata"), _mapping(pod, "status")
    labels = _mapping(metadata, "labels")
    job, _, index = _text(labels, TASK_LABEL).rpartition(".")
    generation = _text(labels, GENERATION_LABEL)
    if not job or not generation.isdecimal():
        return None
    container = _container(status)
    states = _mapping(container, "state")
    running, ended = _mapping(states, "running"), _mapping(states, "terminated")
    began = _text(running, "startedAt") or _text(ended, "startedAt")
    grace = metadata.get("deletionGracePeriodSeconds")
    is_deleted = "deletionTimestamp" in metadata
    return Seen(
        f"{job}:{index}",
        int(generation),
        _text(metadata, "name"),
        _text(metadata, "uid"),
        _text(_mapping(pod, "spec"), "nodeName"),
        _seconds(began) if began else None,
        _condition(status, "Ready").get("status") == "True",
        "" if running or ended else _waiting(status, container),
        _ended(status, ended),
        float(grace) if is_deleted and isinstance(grace, int) else (0.0 if is_deleted else None),
    )


def _ended(status: Document, terminated: Document) -> Ended | None:
    phase, reason = status.get("phase"), _text(status, "reason")
    disrupted = _condition(status, "DisruptionTarget")
    taken = ""
    if disrupted.get("status") == "True":
        taken = f"{_text(disrupted, 'reason')}: {_text(disrupted, 'message')}".strip(": ")
    elif reason in TAKEN_AWAY:
        taken = f"{reason}: {_text(status, 'message')}".strip(": ")
    if terminated:
        code = terminated.get("exitCode")
        code = code if isinstance(code, int) and abs(code) <= EXIT_CODE_MAX else 0
        why = _text(terminated, "reason")
        if why in ("ContainerCannotRun", "StartError"):
            return Ended(code=code, refused=f"{why}: {_text(terminated, 'message')}")
        number = code - 128 if 128 < code <= 128 + 64 else None
        return Ended(None if number else code, number, why == "OOMKilled", taken)
    if phase in ("Failed", "Succeeded"):
        words = f"{reason}: {_text(status, 'message')}".strip(": ") or f"its pod is {phase}"
        return Ended(taken=taken) if taken else Ended(refused=words)
    return None


def _waiting(status: Document, container: Document) -> str:
    waiting = _mapping(_mapping(container, "state"), "waiting")
    reason = _text(waiting, "reason")
    if reason not in PATIENT:
        return f"{reason}: {_text(waiting, 'message')}".strip(": ")
    scheduled = _condition(status, "PodScheduled")
    if scheduled.get("status") == "False":
        return f"{_text(scheduled, 'reason')}: {_text(scheduled, 'message')}".strip(": ")
    return f"its pod is {reason or status.get('phase') or 'Pending'}"


def _container(status: Document) -> Document:
    every = status.get("containerStatuses")
    found = [each for each in every if isinstance(each, dict)] if isinstance(every, list) else []
    return next((each for each in found if each.get("name") == CONTAINER), {})


def _condition(status: Document, kind: str) -> Document:
    every = status.get("conditions")
    found = [each for each in every if isinstance(each, dict)] if isinstance(every, list) else []
    return next((each for each in found if each.get("type") == kind), {})


def _mapping(value: Mapping[str, Value], key: str) -> Document:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _text(value: Mapping[str, Value], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(timezone.utc).timestamp()
    except ValueError:
        return 0.0
