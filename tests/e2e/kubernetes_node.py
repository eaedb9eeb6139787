"""A node of Kubernetes that runs each pod as a process of this machine, and reports.

It serves the API server of kubernetes_api.py and the real one of tests/kubernetes alike. A pod's host name becomes an
address of the loopback network, as DNS would have it, and the address 0.0.0.0 the pod's own.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Protocol

LOOK_S = 0.02
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
ROOT = Path(__file__).resolve().parents[2]

_addresses: dict[str, str] = {}
_lock = threading.Lock()


def utc(ahead_s: float = 0.0) -> str:
    return (datetime.now(timezone.utc) + timedelta(seconds=ahead_s)).strftime("%Y-%m-%dT%H:%M:%SZ")


def address_of(name: str) -> str:
    """As DNS answers for a pod's name."""
    with _lock:
        number = len(_addresses) + 1 + (os.getpid() % 200) * 256
        return _addresses.setdefault(name, f"127.7.{number // 256 % 256}.{number % 256}")


class Process:
    """A container. `lines` are (time, line) of its output, `grown` is set when there are more."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.lines: list[tuple[str, bytes]] = []
        self.grown = threading.Event()
        self.is_read = False
        self.reading = threading.Thread(target=self._read, daemon=True)
        self.reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                now = time.time_ns()
                whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 10**9))
                self.lines.append((f"{whole}.{now % 10**9:09d}Z", line if line.endswith(b"\n") else line + b"\n"))
                self.grown.set()
        self.is_read = True
        self.grown.set()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


    def log(self, query: Mapping[str, str], is_over: Callable[[], bool]) -> Iterator[bytes]:
        """Lines as a kubelet writes them, to the end of the container's output or until `is_over`."""
        index, since = 0, query.get("sinceTime", "")
        while not is_over():
            is_read = self.is_read
            lines, index = self.lines[index:], len(self.lines)
            for at, line in lines:
                if at[:19] >= since[:19]:
                    yield f"{at} ".encode() + line
            if is_read or "follow" not in query:
                return
            self.grown.wait(LOOK_S)
            self.grown.clear()


class World(Protocol):
    """What a node knows of its API server."""

    def pod(self, name: str) -> dict | None: ...

    def secret(self, name: str) -> dict[str, str]: ...

    def in_cluster(self) -> dict[str, str]:
        """The variables by which a pod finds the API server."""
        return {}

    def patch_status(self, name: str, status: dict, uid: str) -> None: ...

    def remove_pod(self, name: str, uid: str) -> None: ...


class Node:
    """`die` stops its kubelet: its processes go on, and it reports nothing any more."""

    def __init__(self, world: World, name: str, folder: Path) -> None:
        self.world = world
        self.name = name
        self.is_alive = True
        self.processes: dict[str, Process] = {}
        self._folder = folder
        self._threads: list[threading.Thread] = []
        self._is_closed = False

    def take(self, pod: dict) -> None:
        thread = threading.Thread(target=self._keep, args=(pod,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def die(self) -> None:
        self.is_alive = False

    def close(self) -> None:
        self._is_closed = True
        for process in self.processes.values():
            process.kill()
            process.process.wait()
            process.reading.join()
        for thread in self._threads:
            thread.join()

    # -- one pod

    def _keep(self, pod: dict) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        container = pod["spec"]["containers"][0]
        if "missing" in container["image"]:
            self._wait_for_image(name, uid, container["image"])
            return
        try:
            process = Process(self._begin(pod, container))
        except OSError as error:
            reason = {"exitCode": 128, "reason": "StartError", "message": str(error)}
            self._report(name, uid, {"phase": "Failed", **_state({"terminated": reason})})
            self._until_deleted(name, uid)
            return
        self.processes[uid] = process
        began = utc()
        self._report(name, uid, {"phase": "Running", **_state({"running": {"startedAt": began}})})
        self._follow(pod, container, process)
        while self.is_alive and not self._is_closed and process.process.poll() is None:
            time.sleep(LOOK_S)
        if not self.is_alive or self._is_closed:
            return
        process.reading.join()
        code = process.process.returncode
        code = 128 - code if code < 0 else code
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": began, "finishedAt": utc()}
        self._report(name, uid, {"phase": "Failed" if code else "Succeeded", **_state({"terminated": ended})})
        self._until_deleted(name, uid)

    def _follow(self, pod: dict, container: dict, process: Process) -> None:
        """Until the container has ended: is it ready, is it to go?"""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        probe = container.get("readinessProbe", {}).get("tcpSocket")
        is_ready, kill_at = False, None
        while self.is_alive and not self._is_closed and process.process.poll() is None:
            if not is_ready and (probe is None or _is_open(address_of(_host(pod)), probe["port"])):
                is_ready = True
                self._report(name, uid, {"conditions": [{"type": "Ready", "status": "True"}]})
            found = self.world.pod(name)
            if found is None or found["metadata"]["uid"] != uid:
                process.kill()
            elif "deletionTimestamp" in found["metadata"]:
                due = time.monotonic() + found["metadata"]["deletionGracePeriodSeconds"]
                if kill_at is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process.process.pid, signal.SIGTERM)
                kill_at = due if kill_at is None else min(kill_at, due)
                if time.monotonic() >= kill_at:
                    process.kill()
            time.sleep(LOOK_S)

    def _until_deleted(self, name: str, uid: str) -> None:
        while self.is_alive and not self._is_closed:
            found = self.world.pod(name)
            if found is None or found["metadata"]["uid"] != uid:
                return
            if "deletionTimestamp" in found["metadata"]:
                self.world.remove_pod(name, uid)
                return
            time.sleep(LOOK_S)

    def _wait_for_image(self, name: str, uid: str, image: str) -> None:
        message = f'Back-off pulling image "{image}"'
        waiting = {"reason": "ImagePullBackOff", "message": message}
        self._report(name, uid, {"phase": "Pending", **_state({"waiting": waiting})})
        self._until_deleted(name, uid)

    def _report(self, name: str, uid: str, status: dict) -> None:
        if self.is_alive:
            self.world.patch_status(name, status, uid)

    def _begin(self, pod: dict, container: dict) -> subprocess.Popen[bytes]:
        files = self._folder / "files" / pod["metadata"]["uid"]
        own = address_of(_host(pod))

        def told(text: str) -> str:
            cluster = pod["spec"].get("subdomain", "-")
            text = re.sub(rf"\b({cluster}-[a-z0-9-]+)\.{cluster}\b", lambda match: address_of(match[0]), text)
            text = text.replace("0.0.0.0", own).replace("/run/dtfctl", str(files))
            return text.replace("/var/lib/dtfctl", str(self._folder / "supervisor"))

        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}:{ROOT / 'runtime'}",
        }
        command = [*_with_account(pod, files, self.world)]
        environment |= self.world.in_cluster() if command else {}
        for each in container.get("env", []):
            environment[each["name"]] = told(_filled(self._value(pod, each), environment))
        for volume in pod["spec"].get("volumes", []):
            if "secret" in volume and "items" in volume["secret"]:
                secret = self.world.secret(volume["secret"]["secretName"])
                files.mkdir(parents=True, exist_ok=True)
                for item in volume["secret"]["items"]:
                    (files / item["path"]).write_text(secret[item["key"]])
        return subprocess.Popen(
            [*command, *(told(_filled(word, environment)) for word in container["command"])],
            cwd=container["workingDir"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _value(self, pod: dict, variable: dict) -> str:
        given = variable.get("valueFrom", {})
        if "fieldRef" in given:
            return pod["metadata"][given["fieldRef"]["fieldPath"].removeprefix("metadata.")]
        source = given.get("secretKeyRef")
        if source is None:
            return variable["value"]
        return self.world.secret(source["name"])[source["key"]]


def _with_account(pod: dict, files: Path, world: World) -> tuple[str, ...]:
    """What runs a command where the files of the pod's service account are at their place."""
    mounts = pod["spec"]["containers"][0].get("volumeMounts", [])
    name = next((mount["name"] for mount in mounts if mount["mountPath"] == ACCOUNT), "")
    if not name:
        return ()
    volume = next(each for each in pod["spec"]["volumes"] if each["name"] == name)
    place = files / "run" / Path(ACCOUNT).relative_to("/var/run")
    place.mkdir(parents=True)
    for key, value in world.secret(volume["secret"]["secretName"]).items():
        (place / key).write_text(value)
    return ("unshare", "--mount", "sh", "-c", f'mount --bind "{files}/run" /run && exec "$@"', "sh")


def _host(pod: dict) -> str:
    return ".".join(filter(None, (pod["spec"].get("hostname", pod["metadata"]["name"]), pod["spec"].get("subdomain"))))


def _state(state: dict) -> dict:
    told = {"name": "task", "state": state, "ready": False, "restartCount": 0, "image": "", "imageID": ""}
    return {"containerStatuses": [told]}


def _filled(text: str, environment: dict) -> str:
    """$(NAME) of a variable that is known, and $$, as a kubelet fills them."""

    def value(match: re.Match) -> str:
        if match[0] == "$$":
            return "$"
        return environment.get(match[1], match[0])

    return re.sub(r"\$\$|\$\(([^)]+)\)", value, text)


def _is_open(address: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((address, port), 0.2):
        return True
    return False
