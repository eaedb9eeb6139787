"""The tasks of a run as pods: a pod for each generation of a task, watched through the API server.

One list and a watch behind it say what there is. A watch that ends, or that the server has forgotten (410), begins
with a list again. While the server is away nothing is concluded: pods go on, and the next list tells. A deleted
pod would stay for ever if its node does not answer. So it is deleted by force after its grace period, and its task
gets another pod, with another name, on another node.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal as signals
import time
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from dtfctl.errors import ConfigError, HostsUnusable
from dtfctl.launchers import log_recorder, reached
from dtfctl.launchers.base import Event, Exited, Launch, Listed, Reached, Ready, Started, Stray, Unreachable, Waiting
from dtfctl.launchers.keeper import TOKEN
from dtfctl.launchers.keeper.traceback import traceback_of
from dtfctl.launchers.kubernetes import objects
from dtfctl.launchers.kubernetes.api import Api, ApiError
from dtfctl.launchers.kubernetes.logs import PodLogs, forget_times
from dtfctl.launchers.kubernetes.pods import RUN_LABEL, Ended, Seen, pod_name, seen
from dtfctl.launchers.kubernetes.watch import Gone, events
from dtfctl.launchers.log_recorder import LOGS
from dtfctl.launchers.usage import Usage
from dtfctl.manifests.documents import Document, Value
from dtfctl.manifests.pods import PORT
from dtfctl.values.plan import KUBERNETES
from dtfctl.values.run import Run
from dtfctl.values.task import Exit

AGAIN_S = 0.5
AGAIN_S_MAX = 10.0
FORCE_S = 15.0
"""So long after its grace period a pod is deleted by force: its node does not answer."""

DRAIN_S = 10.0
SWEEP_S = 60.0
KILL_GRACE_S = 1
"""With 0 the server would forget a pod whose processes may still run."""

THREADS = 8
Result = TypeVar("Result")
Key = tuple[str, int]


class KubernetesLauncher:
    """See base.HostLauncher. `current` gives the run as it is now; only the daemon's event loop touches it."""

    def __init__(
        self, run_dir: Path, current: Callable[[], Run], on_event: Callable[[Event], None], make: Callable[[], Api]
    ) -> None:
        self._run_dir = run_dir
        self._token = (run_dir / TOKEN).read_text().strip()
        self._current = current
        self._on_event = on_event
        self._make = make
        self._threads = ThreadPoolExecutor(THREADS, "kubernetes")
        self._api: Api | None = None
        self._logs: PodLogs | None = None
        self._references: list[Value] = []
        self._pods: dict[Key, Seen] = {}
        self._creating: set[Key] = set()
        self._known: set[Key] = set()
        self._told: set[tuple[str, Key]] = set()
        self._waiting: dict[Key, str] = {}
        self._ending: dict[Key, int] = {}
        self._secrets: set[str] = set()
        self._listed = asyncio.Event()
        self._work: set[asyncio.Future[None]] = set()
        self._watching: asyncio.Future[None] | None = None

    # -- the connection

    def connect(self) -> None:
        self._watching = asyncio.ensure_future(self._watch())

    async def wait_until_listed(self) -> None:
        await self._listed.wait()

    async def _watch(self) -> None:
        pause_s = AGAIN_S
        while True:
            try:
                api = await self._begin()
                version = await self._list(api)
                begun = time.monotonic()
                await self._follow(api, version)
                if time.monotonic() - begun > AGAIN_S_MAX:
                    pause_s = AGAIN_S
                # A server, or something before it, whose lists are good and whose watches are not.
                await asyncio.sleep(pause_s * random.uniform(0.5, 1) - (time.monotonic() - begun))
                pause_s = min(AGAIN_S_MAX, pause_s * 2)
            except ApiError as error:
                self._on_event(Unreachable(KUBERNETES, error.message))
                await asyncio.sleep(pause_s * random.uniform(0.5, 1))
                pause_s = min(AGAIN_S_MAX, pause_s * 2)

    async def _begin(self) -> Api:
        """The API with what all pods need there."""
        if self._api is None:
            self._api = await self._in_thread(self._make)
            self._logs = PodLogs(self._api)
        if not self._references:
            plan = self._current().plan
            owner = await self._made(self._api, "configmaps", objects.owner(plan, self._token, os.environ))
            references = objects.references(owner)
            await self._made(self._api, "services", objects.service(plan, self._token, references))
            self._references = references
        return self._api

    async def _made(self, api: Api, kind: str, body: Document) -> Document:
        """Created, or there already."""
        try:
            return await self._in_thread(partial(api.create, kind, body))
        except ApiError as error:
            if error.status != 409:
                raise
        found = await self._in_thread(partial(api.ask, "GET", api.path(kind, _name(body))))
        if _label(found) != self._token[:8]:
            by_hand = api.by_hand("get", kind, _name(body), "-o", "yaml")
            raise ApiError(409, f"{kind} has a {_name(body)} already, of another run; see: {by_hand}")
        return found

    async def _list(self, api: Api) -> str:
        query = {"labelSelector": f"{RUN_LABEL}={self._token[:8]}"}
        answer = await self._in_thread(partial(api.ask, "GET", api.path("pods"), None, query))
        items = answer.get("items")
        every = [seen(each) for each in items if isinstance(each, dict)] if isinstance(items, list) else []
        found = {pod.key: pod for pod in every if pod is not None}
        self._on_event(Reached(KUBERNETES))
        for key in [key for key in self._pods if key not in found]:
            self._gone(self._pods[key])
        self._on_event(Listed(frozenset(found) | self._creating, KUBERNETES))
        self._listed.set()
        for pod in found.values():
            self._take(pod)
        metadata = answer.get("metadata")
        version = metadata.get("resourceVersion") if isinstance(metadata, dict) else ""
        return version if isinstance(version, str) else ""

    async def _follow(self, api: Api, version: str) -> None:
        """Until the watch is lost; a new list begins then."""
        with contextlib.suppress(Gone):
            async for kind, document in events(api, f"{RUN_LABEL}={self._token[:8]}", version):
                pod = seen(document)
                if pod is None:
                    continue
                if kind == "DELETED":
                    self._gone(pod)
                else:
                    self._take(pod)

    # -- what is seen

    def _take(self, pod: Seen) -> None:
        self._pods[pod.key] = pod
        self._known.add(pod.key)
        if pod.began_at is not None and self._is_new("started", pod.key):
            at = time.monotonic() - max(0.0, time.time() - pod.began_at)
            self._on_event(Started(*pod.key, pod.pid, at, KUBERNETES))
            if self._logs is not None:
                self._logs.follow(pod.name, self._log(pod.key))
        if pod.ended is not None:
            self._end(pod, self._exit(pod.ended))
            return
        if pod.is_ready and self._is_new("ready", pod.key):
            self._on_event(Ready(*pod.key, KUBERNETES))
        if pod.waiting:
            self._wait(pod)
        if pod.grace_s is not None and self._is_new("forced", pod.key):
            self._spawn(self._force(pod))
        if pod.key in self._ending and pod.grace_s is None:
            # The signal may have been lost with the connection.
            self.signal(*pod.key, self._ending[pod.key])

    def _wait(self, pod: Seen) -> None:
        self._wait_for(pod.key, f"{pod.waiting}; see: {self._by_hand('describe', 'pod', pod.name)}")

    def _wait_for(self, key: Key, why: str) -> None:
        if self._waiting.get(key) != why:
            self._waiting[key] = why
            self._on_event(Waiting(*key, why, KUBERNETES))

    def _gone(self, pod: Seen) -> None:
        """Its object is not there any more."""
        self._pods.pop(pod.key, None)
        if pod.ended is not None:
            self._end(pod, self._exit(pod.ended))
        elif pod.key in self._ending:
            self._end(pod, Exit(time.monotonic(), signal=self._ending[pod.key]))
        else:
            node = f" with its node {pod.node}" if ("lost", pod.key) in self._told else ""
            why = f"its pod {pod.name} was deleted{node}"
            self._end(pod, Exit(time.monotonic(), error=why, preempted=why))

    def _exit(self, ended: Ended) -> Exit:
        now = time.monotonic()
        if ended.refused:
            return Exit(now, error=ended.refused)
        if ended.code is None and ended.signal is None:
            return Exit(now, error=ended.taken, preempted=ended.taken)
        return Exit(now, ended.code, ended.signal, "", ended.taken, ended.is_out_of_memory)

    def _end(self, pod: Seen, ended: Exit) -> None:
        if self._is_new("ended", pod.key):
            self._spawn(self._tell_end(pod, ended))

    async def _tell_end(self, pod: Seen, ended: Exit) -> None:
        """After the last of its output: the log may say why it failed."""
        log = self._log(pod.key)
        if self._logs is not None and ("started", pod.key) in self._told:
            await self._logs.drain(pod.name, DRAIN_S)
        if not ended.ok:
            ended = Exit(
                ended.at,
                ended.code,
                ended.signal,
                ended.error,
                ended.preempted,
                ended.is_out_of_memory,
                await asyncio.to_thread(traceback_of, log),
            )
        self._on_event(Exited(*pod.key, ended, KUBERNETES))

    async def _force(self, pod: Seen) -> None:
        """Nobody else would: without a word from its node a deleted pod stays."""
        await asyncio.sleep((pod.grace_s or 0.0) + FORCE_S)
        if pod.key in self._pods and ("ended", pod.key) not in self._told:
            self._told.add(("lost", pod.key))
            await self._delete(pod.name, 0, pod.uid)

    # -- what is asked for

    async def hold_port(
        self, task: str, address: str, port: int, fixed: bool, within: tuple[int, int] | None = None
    ) -> int:
        """A pod has an address of its own, on which every port is free."""
        return port or (within[0] if within else PORT)

    def release_port(self, task: str) -> None:
        """No other process could take it."""

    def start(self, launch: Launch) -> None:
        key = launch.task, launch.generation
        if key in self._creating or key in self._pods or ("ended", key) in self._told:
            return
        self._creating.add(key)
        self._known.add(key)
        log_recorder.begin(launch.log, launch.logs.max_bytes, launch.logs.count)
        Path(launch.log).touch()
        self._spawn(self._create(launch))

    async def _create(self, launch: Launch) -> None:
        key = launch.task, launch.generation
        try:
            ended = await self._created(launch)
        finally:
            self._creating.discard(key)
        if ended is not None:
            if self._is_new("ended", key):
                self._on_event(Exited(*key, ended, KUBERNETES))
            return
        for former in [pod for pod in self._pods.values() if pod.task == launch.task and pod.key != key]:
            await self._delete(former.name, KILL_GRACE_S, former.uid)

    async def _created(self, launch: Launch) -> Exit | None:
        """None when the pod is there, else why it is not."""
        key, pause_s = (launch.task, launch.generation), AGAIN_S
        while key not in self._ending:
            run = self._current()
            name = pod_name(run.plan.name, launch.task, self._token, launch.generation)
            try:
                api = self._api
                if api is None or not self._references:
                    raise ApiError(0, "the API server was not reached yet")
                pod, secret = objects.pod(
                    run.actual, launch, name, self._token, dict(run.addresses), self._references
                )
                if secret is not None:
                    self._secrets.add(name)
                    await self._in_thread(partial(_create_once, api, "secrets", secret))
                await self._in_thread(partial(_create_once, api, "pods", pod))
                return None
            except ConfigError as error:
                return Exit(time.monotonic(), error=str(error))
            except ApiError as error:
                if not error.is_connection and "exceeded quota" not in error.message:
                    return Exit(time.monotonic(), error=f"Kubernetes refuses its pod: {error.message}")
                self._wait_for(key, f"{error.message}; see: {self._by_hand('get', 'resourcequota')}")
            await asyncio.sleep(pause_s)
            pause_s = min(AGAIN_S_MAX, pause_s * 2)
        return Exit(time.monotonic(), signal=self._ending[key])

    def signal(self, task: str, generation: int, number: int) -> None:
        """Every signal is the beginning of the end: a kubelet sends SIGTERM, and SIGKILL after the grace period."""
        key = task, generation
        if number == signals.SIGCONT or (self._listed.is_set() and key not in self._known):
            return
        self._ending[key] = number
        name = pod_name(self._current().plan.name, task, self._token, generation)
        self._spawn(self._delete(name, KILL_GRACE_S if number == signals.SIGKILL else self._grace_s(task), ""))

    def _grace_s(self, task: str) -> int:
        """Longer than the supervisor's own patience, whose SIGKILL comes first."""
        run = self._current()
        given = run.grace_period_s
        return round(run.task(task).settings.grace_period_s if given is None else given) + 5

    async def _delete(self, name: str, grace_s: int, uid: str) -> None:
        """Again and again while the server is away: a pod that is wanted no more must not stay."""
        pause_s = AGAIN_S
        while True:
            try:
                if self._api is not None:
                    await self._in_thread(partial(self._api.delete, "pods", name, grace_s, uid))
                return
            except ApiError as error:
                if not error.is_connection:
                    self._on_event(Unreachable(KUBERNETES, error.message))
                    return
            await asyncio.sleep(pause_s)
            pause_s = min(AGAIN_S_MAX, pause_s * 2)

    async def check_command(self, command: str, environment: dict[str, str], working_dir: str, timeout_s: float) -> str:
        return "probes of pods are asked by their kubelet"

    async def check_file(self, path: str, age_s: float) -> str:
        return "probes of pods are asked by their kubelet"

    async def usage(self, pids: Collection[int]) -> tuple[dict[int, Usage], float]:
        return {}, 0.0

    # -- the end

    async def drain_logs(self) -> None:
        if self._logs is not None:
            ended = [pod for pod in self._pods.values() if pod.ended is not None]
            await asyncio.gather(*(self._logs.drain(pod.name, DRAIN_S) for pod in ended))

    async def sweep(self) -> tuple[Stray, ...]:
        """Deletes all pods of the run, and waits until they are gone; by force at last."""
        await self.drain_logs()
        for key in list(self._creating):
            self._ending[key] = signals.SIGKILL
        began = time.monotonic()
        try:
            api = await self._begin()
            while True:
                every = await self._in_thread(partial(_pods_of, api, self._token))
                waited_s = time.monotonic() - began
                if not every and not self._creating:
                    return ()
                if waited_s > SWEEP_S:
                    return tuple(Stray(pod.pid, KUBERNETES, f"pod {pod.name}") for pod in every)
                grace_s = 0 if waited_s > FORCE_S else KILL_GRACE_S
                for pod in every:
                    if pod.grace_s is None or not grace_s:
                        await self._in_thread(partial(api.delete, "pods", pod.name, grace_s, pod.uid))
                await asyncio.sleep(AGAIN_S / 2)
        except ApiError as error:
            return tuple(Stray(pod.pid, KUBERNETES, f"pod {pod.name}: {error.message}") for pod in self._pods.values())

    def give_up(self) -> None:
        """A namespace is not taken away; a pod that has gone is seen."""

    async def abandon(self) -> None:
        """Ends this launcher's own work, and leaves all pods to another one."""
        for work in (self._watching, *self._work):
            if work is not None:
                work.cancel()
        if self._logs is not None:
            self._logs.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def close(self) -> None:
        for work in (self._watching, *self._work):
            if work is not None:
                work.cancel()
        if self._logs is not None:
            self._logs.close()
        with contextlib.suppress(ApiError):
            if self._api is not None and self._references:
                await self._in_thread(partial(clean, self._api, self._current().plan.name, self._token, self._secrets))
                reached.forget(self._run_dir, KUBERNETES)
        with contextlib.suppress(OSError):
            forget_times(str(self._run_dir / LOGS))
        self._threads.shutdown(wait=False, cancel_futures=True)

    # -- helpers

    async def _in_thread(self, call: Callable[[], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except RuntimeError as error:
            raise HostsUnusable(f"{KUBERNETES}: the run is over ({error})") from None

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        future = asyncio.ensure_future(work)
        self._work.add(future)
        future.add_done_callback(self._work.discard)

    def _is_new(self, what: str, key: Key) -> bool:
        is_new = (what, key) not in self._told
        self._told.add((what, key))
        return is_new

    def _log(self, key: Key) -> str:
        return os.path.join(self._run_dir, LOGS, f"{key[0].replace(':', '-')}.{key[1]}.log")

    def _by_hand(self, *words: str) -> str:
        return self._api.by_hand(*words) if self._api is not None else " ".join(("kubectl", *words))


def clean(api: Api, cluster: str, token: str, secrets: Collection[str] = ()) -> None:
    """Deletes the owner, and with it all that the run has; what has a name that matters at once. Raises ApiError."""
    plan_owner = f"{cluster}-run-{token[:5]}"
    for name in secrets:
        api.delete("secrets", name)
    with contextlib.suppress(ApiError):
        if _label(api.ask("GET", api.path("services", cluster))) == token[:8]:
            api.delete("services", cluster)
    api.delete("configmaps", plan_owner)


def _pods_of(api: Api, token: str) -> list[Seen]:
    query = {"labelSelector": f"{RUN_LABEL}={token[:8]}"}
    items = api.ask("GET", api.path("pods"), None, query).get("items")
    every = [seen(each) for each in items if isinstance(each, dict)] if isinstance(items, list) else []
    return [pod for pod in every if pod is not None]


def _create_once(api: Api, kind: str, body: Document) -> None:
    """A request whose answer was lost may have had its effect."""
    try:
        api.create(kind, body)
    except ApiError as error:
        if error.status != 409:
            raise


def _name(body: Document) -> str:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["name"])


def _label(body: Document) -> str:
    metadata = body.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    found = labels.get(RUN_LABEL) if isinstance(labels, dict) else None
    return found if isinstance(found, str) else ""


