"""Whether a cluster could run in its namespace: the context, rights, names, quota and image, before anything starts."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path

from dtfctl.errors import ConfigError
from dtfctl.launchers.base import Launch
from dtfctl.launchers.kubernetes import objects
from dtfctl.launchers.kubernetes.api import Api, ApiError, kubectl
from dtfctl.launchers.kubernetes.launcher import clean
from dtfctl.launchers.kubernetes.pods import RUN_LABEL, pod_name, seen
from dtfctl.launchers.pipe import PipeError
from dtfctl.launchers.provision import Reply
from dtfctl.launchers.sync import Manifest, Synced
from dtfctl.manifests.documents import Document
from dtfctl.manifests.rights import RIGHTS
from dtfctl.values.plan import KUBERNETES, ClusterPlan, HostPlan, Requirements

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class KubernetesProvisioner:
    """See provision.Provisioner."""

    is_shared = False

    def __init__(self, plan: ClusterPlan, host: HostPlan) -> None:
        self._plan = plan
        self._host = host

    @property
    def host(self) -> HostPlan:
        return self._host

    async def look(self, request: Reply) -> Reply:
        await asyncio.to_thread(self._look)
        return {
            "version": "",
            "user": "",
            "host": KUBERNETES,
            "kernel": "",
            "boot": "",
            "folder": self._host.folder,
            "folder_error": "",
            "free_bytes": 1 << 40,
            "names": {},
            "addresses": {},
            "ports": [],
            "pythons": {},
            "time": time.time(),
            "environment": {},
            "cores": 1,
            "python": self._host.python,
            "has_rsync": False,
            "answers": [],
        }

    def _look(self) -> None:
        """Raises PipeError with what Kubernetes says, and the command that shows it."""
        try:
            api = Api(self._plan.kubernetes)
            self._look_at_namespace(api)
            self._look_at_rights(api)
            self._look_at_namesake(api)
        except ApiError as error:
            raise PipeError(error.message, self.by_hand("get", "pods"), error.is_connection) from None
        self._try_pods(api)

    def _look_at_namespace(self, api: Api) -> None:
        try:
            api.ask("GET", f"/api/v1/namespaces/{api.namespace}")
        except ApiError as error:
            if error.status == 404:
                raise PipeError(error.message, kubectl(self._plan.kubernetes, "get", "namespaces"), False) from None
            if error.status != 403:
                raise

    def _look_at_rights(self, api: Api) -> None:
        for verb, resource in RIGHTS:
            kind, _, part = resource.partition("/")
            about: Document = {"namespace": api.namespace, "verb": verb, "resource": kind, "subresource": part}
            body: Document = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": about},
            }
            status = api.ask("POST", _REVIEWS, body).get("status")
            if isinstance(status, dict) and status.get("allowed") is False:
                words = f"you may not {verb} {resource} in the namespace {api.namespace}"
                raise PipeError(words, self.by_hand("auth", "can-i", verb, resource), False)

    def _look_at_namesake(self, api: Api) -> None:
        """Only one run may have the Service: it has the cluster's name, which stands in every address."""
        try:
            found = api.ask("GET", api.path("services", self._plan.name))
        except ApiError as error:
            if error.status == 404:
                return
            raise
        metadata = found.get("metadata")
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        if not isinstance(labels, dict) or RUN_LABEL not in labels:
            found_there = f"namespace {api.namespace} has a Service {self._plan.name} that dtfctl did not make"
            words = f"{found_there}; choose another name: -n NAME"
            raise PipeError(words, self.by_hand("get", "service", self._plan.name, "-o", "yaml"), False)

    def _try_pods(self, api: Api) -> None:
        """A pod of each job, without creating it: admission, quota and the schema have their say."""
        for job in self._plan.jobs:
            task = f"{job.name}:0"
            name = pod_name(self._plan.name, task, "trial", 0)
            addresses = {each.name: f"{each.advertised_host}:1" for each in self._plan.tasks()}
            launch = Launch(task, 0, ("true",), {})
            try:
                body, _ = objects.pod(self._plan, launch, name, "trial", addresses, [])
                api.ask("POST", api.path("pods"), body, {"dryRun": "All"})
            except ConfigError as error:
                raise PipeError(str(error), "", False) from None
            except ApiError as error:
                what = "resourcequota" if "quota" in error.message else "events"
                raise PipeError(f"{task}: {error.message}", self.by_hand("get", what), error.is_connection) from None

    async def bring(self, folder: str, source: Path, files: Manifest, has_rsync: bool) -> Synced:
        return Synced(0, 0, 0)

    async def make_environment(self, venv: str, wanted: Requirements, folder: str) -> Reply:
        """The image has it."""
        return {"made": False, "error": "", "command": ""}

    async def clean(self, run: str, token: str) -> Reply:
        try:
            left = await asyncio.to_thread(partial(self._clean, token))
        except ApiError as error:
            raise PipeError(error.message, self.by_hand("get", "pods"), error.is_connection) from None
        return {"left": left}

    def _clean(self, token: str) -> list[Reply]:
        api = Api(self._plan.kubernetes)
        query = {"labelSelector": f"{RUN_LABEL}={token[:8]}"}
        items = api.ask("GET", api.path("pods"), None, query).get("items")
        every = [seen(each) for each in items if isinstance(each, dict)] if isinstance(items, list) else []
        for pod in every:
            if pod is not None:
                api.delete("pods", pod.name, 1, pod.uid)
        clean(api, self._plan.name, token)
        return []

    def by_hand(self, *words: str) -> str:
        return kubectl(self._plan.kubernetes, *words)

    async def release(self) -> None:
        """Nothing is held."""


