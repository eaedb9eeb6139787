"""A real control plane of Kubernetes on loopback: etcd, API server, controllers and scheduler from build.sh's folder.

One serves all tests; each test has a namespace, nodes and a user of its own, with the same calls as the API server in
tests/e2e/kubernetes_api.py. Nodes are those of kubernetes_node.py: kubelets in this process whose containers are
processes of this machine.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import functools
import itertools
import json
import os
import secrets
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

from dtfctl.launchers.kubernetes.pods import RUN_LABEL
from dtfctl.manifests.rights import RIGHTS, Right
from dtfctl.manifests.supervisor import rules
from tests.e2e.kubernetes_node import Node, utc
from tests.ports import free_ports
from tests.waiting import wait_until

FOLDER = os.environ.get("DTF_KUBERNETES_BIN", "")
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
KINDS = ("pods", "services", "secrets", "configmaps")
START_S = 120.0
HEARTBEAT_S = 1.5
LOOK_S = 0.05
RBAC = "/apis/rbac.authorization.k8s.io/v1"
DECISION = "authorization.k8s.io/decision"
JSON = "application/json"
PATCH = "application/strategic-merge-patch+json"


def why_not() -> str:
    """Why there is no control plane here, or ""."""
    if not FOLDER:
        return "DTF_KUBERNETES_BIN names no folder that tests/kubernetes/build.sh has filled"
    missing = [name for name in PROGRAMS if not os.access(Path(FOLDER) / name, os.X_OK)]
    return f"{FOLDER} has no {', '.join(missing)}; run tests/kubernetes/build.sh {FOLDER}" if missing else ""


class Answered(Exception):
    """What the API server refuses, with the `status` of HTTP; 0 where it does not answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


@functools.cache
def shared() -> ControlPlane:
    plane = ControlPlane(Path(tempfile.mkdtemp(prefix="kubernetes-")))
    atexit.register(plane.stop)
    plane.start()
    return plane


class ControlPlane:
    """The four programs, with the rights of an administrator."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.administrator = secrets.token_hex(16)
        self.trainer = secrets.token_hex(16)
        self._numbers = itertools.count(1)
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        self._ports = free_ports(5)
        self.url = f"https://127.0.0.1:{self._ports[0]}"
        self.certificate = folder / "certs" / "apiserver.crt"

    def start(self) -> None:
        key = self.folder / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        public = ["openssl", "rsa", "-in", key, "-pubout", "-out", self.folder / "sa.pub"]
        subprocess.run(public, check=True, capture_output=True)
        tokens = f'{self.administrator},admin,1,"system:masters"\n{self.trainer},trainer,2,"trainers"\n'
        (self.folder / "tokens.csv").write_text(tokens)
        self._begin(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={self._etcd}",
            f"--advertise-client-urls={self._etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{self._ports[2]}",
            "--unsafe-no-fsync",
        )
        rule = {"level": "Metadata", "users": ["trainer"], "omitStages": ["RequestReceived"]}
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [rule, {"level": "None"}]}
        (self.folder / "audit.json").write_text(json.dumps(policy))
        self.start_api_server()
        kubeconfig = self.kubeconfig(self.folder / "kubeconfig", self.administrator, "default")
        self._begin(
            "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            "--leader-elect=false",
            f"--service-account-private-key-file={key}",
            f"--root-ca-file={self.certificate}",
            "--node-monitor-period=1s",
            "--node-monitor-grace-period=6s",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._ports[3]}",
            "--port=0",
        )
        self._begin(
            "kube-scheduler",
            f"--kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._ports[4]}",
            "--port=0",
        )

    @property
    def _etcd(self) -> str:
        return f"http://127.0.0.1:{self._ports[1]}"

    def start_api_server(self) -> None:
        self._begin(
            "kube-apiserver",
            f"--etcd-servers={self._etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._ports[0]}",
            "--insecure-port=0",
            f"--cert-dir={self.folder / 'certs'}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=RBAC",
            f"--audit-policy-file={self.folder / 'audit.json'}",
            f"--audit-log-path={self.folder / 'audit.log'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={self.folder / 'sa.key'}",
            f"--service-account-key-file={self.folder / 'sa.pub'}",
        )
        wait_until(self._is_ready, f"the API server; see {self.folder / 'kube-apiserver.log'}", START_S)

    def _is_ready(self) -> bool:
        for name, program in self._programs.items():
            assert program.poll() is None, f"{name} has ended; see {self.folder / name}.log"
        with contextlib.suppress(Answered):
            self.ask("GET", "/readyz")
            return True
        return False

    @property
    def has_api_server(self) -> bool:
        return "kube-apiserver" in self._programs

    def kill_api_server(self) -> None:
        self._end("kube-apiserver", signal.SIGKILL)

    def compact(self) -> None:
        """etcd forgets all former versions."""

        def etcd(path: str, body: dict) -> dict:
            request = urllib.request.Request(f"{self._etcd}/v3/kv/{path}", json.dumps(body).encode())
            with urllib.request.urlopen(request, timeout=20) as answer:
                return json.load(answer)

        key = base64.b64encode(b"/").decode()
        revision = etcd("range", {"key": key, "count_only": True})["header"]["revision"]
        etcd("compaction", {"revision": revision, "physical": True})

    def stop(self) -> None:
        for name in reversed(list(self._programs)):
            self._end(name, signal.SIGTERM)
        shutil.rmtree(self.folder)

    def kubeconfig(self, path: Path, token: str, namespace: str) -> Path:
        server = {"server": self.url, "certificate-authority": str(self.certificate)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": server}],
            "users": [{"name": "user", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user", "namespace": namespace}}],
        }
        path.write_text(json.dumps(document))
        return path

    def next_number(self) -> int:
        return next(self._numbers)

    def ask(
        self,
        method: str,
        path: str,
        body: dict | None = None,
        query: Mapping[str, str] | None = None,
        kind: str = JSON,
        token: str = "",
    ) -> dict:
        """The answer. Raises Answered."""
        url = f"{self.url}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"authorization": f"Bearer {token or self.administrator}", "content-type": kind}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            context = ssl.create_default_context(cafile=str(self.certificate))
            with urllib.request.urlopen(request, timeout=20, context=context) as answer:
                found = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                raise Answered(error.code, error.read().decode(errors="replace")) from None
        except (OSError, ValueError) as error:
            raise Answered(0, str(error)) from None
        return json.loads(found) if found.startswith(b"{") else {}

    def _begin(self, name: str, *words: str) -> None:
        with open(self.folder / f"{name}.log", "ab") as log:
            self._programs[name] = subprocess.Popen(
                [str(Path(FOLDER) / name), *words], stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )

    def _end(self, name: str, number: int) -> None:
        program = self._programs.pop(name, None)
        if program is None:
            return
        program.send_signal(number)
        try:
            program.wait(20)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


class RealKubernetes:
    """A namespace with nodes and a user who has dtfctl's rights there and no others; see kubernetes_api.Kubernetes."""

    def __init__(self, folder: Path, nodes: int = 1) -> None:
        self.plane = shared()
        self._number = self.plane.next_number()
        self.namespace = f"training-{self._number}"
        self.folder = folder
        self._path = f"/api/v1/namespaces/{self.namespace}"
        self._pods: dict[str, dict] = {}
        self._taken: set[str] = set()
        self._is_closed = threading.Event()
        self.nodes = [Node(self, f"node-{self._number}-{number}", folder) for number in range(nodes)]
        self._kubelets = [Kubelet(self.plane, self.namespace, node) for node in self.nodes]
        self._looking = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> RealKubernetes:
        ask = self.plane.ask
        ask("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        self._allow(rules(), "POST")
        subject = {"kind": "User", "name": "trainer", "apiGroup": "rbac.authorization.k8s.io"}
        role = {"kind": "Role", "name": "dtfctl", "apiGroup": "rbac.authorization.k8s.io"}
        binding = {"metadata": {"name": "dtfctl"}, "roleRef": role, "subjects": [subject]}
        ask("POST", f"{RBAC}/namespaces/{self.namespace}/rolebindings", binding)
        for kubelet in self._kubelets:
            kubelet.start()
        self._looking.start()
        wait_until(lambda: self._may("create", "pods"), "the user's rights")
        wait_until(self._has_account, "the namespace's service account")
        for node in self.nodes:
            wait_until(lambda node=node: self._is_ready(node), f"{node.name} ready")
        self.kubeconfig = self.plane.kubeconfig(self.folder / "kubeconfig", self.plane.trainer, self.namespace)
        return self

    def __exit__(self, *_: object) -> None:
        self.come_back()
        self._is_closed.set()
        self._looking.join()
        for node, kubelet in zip(self.nodes, self._kubelets, strict=True):
            node.close()
            kubelet.close()
        for pod in self.pods():
            self.delete_by_force(pod["metadata"]["name"])
        self.plane.ask("DELETE", f"/api/v1/namespaces/{self.namespace}")

    # -- what tests do to it

    def go_away(self) -> None:
        self.plane.kill_api_server()

    def come_back(self, compacts: bool = False) -> None:
        if compacts:
            self.plane.compact()
        if not self.plane.has_api_server:
            self.plane.start_api_server()

    def evict(self, node: Node) -> None:
        """The controllers do that: when a node has been silent for longer than its pods tolerate."""

    def become_administrator(self) -> None:
        self.plane.kubeconfig(self.kubeconfig, self.plane.administrator, self.namespace)

    def forbid(self, verb: str, kind: str) -> None:
        left = [right for right in RIGHTS if right != (verb, kind)]
        self._allow([{"apiGroups": [""], "resources": [kind], "verbs": [verb]} for verb, kind in left], "PUT")
        wait_until(lambda: not self._may(verb, kind), "the user's right gone")

    def limit_pods(self, most: int) -> None:
        quota = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": str(most)}}}
        self.plane.ask("POST", f"{self._path}/resourcequotas", quota)

        def is_counted() -> bool:
            return bool(self.plane.ask("GET", f"{self._path}/resourcequotas/few").get("status", {}).get("hard"))

        wait_until(is_counted, "the quota")

    def add_pod(self, name: str) -> dict:
        """One that never begins."""
        spec = {"containers": [{"name": "task", "image": "missing:1"}]}
        return self.plane.ask("POST", f"{self._path}/pods", {"metadata": {"name": name}, "spec": spec})

    def delete_by_force(self, name: str) -> None:
        with contextlib.suppress(Answered):
            self.plane.ask("DELETE", f"{self._path}/pods/{name}", {"gracePeriodSeconds": 0})

    def pods(self) -> list[dict]:
        return self._items("pods")

    def used(self) -> set[Right]:
        """What the user has been allowed and has done."""
        found = set()
        for line in (self.plane.folder / "audit.log").read_text().splitlines():
            event = json.loads(line)
            about = event.get("objectRef", {})
            if about.get("namespace") == self.namespace and event["annotations"][DECISION] == "allow":
                resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
                found.add((event["verb"], resource))
        return found

    def left(self) -> list[str]:
        """KIND/NAME of everything that a run has made and not deleted."""
        return sorted(f"{kind}/{item['metadata']['name']}" for kind in KINDS for item in self._items(kind, RUN_LABEL))

    # -- what nodes know of it

    def pod(self, name: str) -> dict | None:
        return self._pods.get(name)

    def secret(self, name: str) -> dict[str, str]:
        found = self.plane.ask("GET", f"{self._path}/secrets/{name}")["data"]
        return {key: base64.b64decode(value).decode() for key, value in found.items()}

    def in_cluster(self) -> dict[str, str]:
        return {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": self.plane.url.rpartition(":")[2]}

    def patch_status(self, name: str, status: dict, uid: str) -> None:
        body = {"metadata": {"uid": uid}, "status": status}
        self._insist("PATCH", f"{self._path}/pods/{name}/status", body, PATCH)

    def remove_pod(self, name: str, uid: str) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        self._insist("DELETE", f"{self._path}/pods/{name}", options, JSON)

    def _insist(self, method: str, path: str, body: dict, kind: str) -> None:
        """As a kubelet does while the API server is away; of a pod that has gone it says nothing."""
        while not self._is_closed.is_set():
            try:
                self.plane.ask(method, path, body, kind=kind)
                return
            except Answered as error:
                if error.status in (404, 409):
                    return
                if error.status not in (0, 429, 500, 503):
                    raise
            self._is_closed.wait(LOOK_S * 4)

    def _look(self) -> None:
        """What a kubelet's watch tells it."""
        by_name = {node.name: node for node in self.nodes}
        while not self._is_closed.wait(LOOK_S):
            with contextlib.suppress(Answered):
                items = self._items("pods")
                self._pods = {pod["metadata"]["name"]: pod for pod in items}
                for pod in items:
                    node, uid = by_name.get(pod["spec"].get("nodeName", "")), pod["metadata"]["uid"]
                    if node is not None and node.is_alive and uid not in self._taken:
                        self._taken.add(uid)
                        node.take(pod)

    # -- helpers

    def _items(self, kind: str, selector: str = "") -> list[dict]:
        return self.plane.ask("GET", f"{self._path}/{kind}", query={"labelSelector": selector})["items"]

    def _allow(self, given: list, method: str) -> None:
        path = f"{RBAC}/namespaces/{self.namespace}/roles" + ("/dtfctl" if method == "PUT" else "")
        self.plane.ask(method, path, {"metadata": {"name": "dtfctl"}, "rules": given})

    def _may(self, verb: str, kind: str) -> bool:
        kind, _, part = kind.partition("/")
        about = {"namespace": self.namespace, "verb": verb, "resource": kind, "subresource": part}
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        body = {"spec": {"resourceAttributes": about}}
        return self.plane.ask("POST", path, body, token=self.plane.trainer)["status"]["allowed"]

    def _has_account(self) -> bool:
        with contextlib.suppress(Answered):
            return bool(self.plane.ask("GET", f"{self._path}/serviceaccounts/default").get("secrets"))
        return False

    def _is_ready(self, node: Node) -> bool:
        found = self.plane.ask("GET", f"/api/v1/nodes/{node.name}")
        ready = [each for each in found["status"].get("conditions", []) if each["type"] == "Ready"]
        return bool(ready) and ready[0]["status"] == "True" and not found["spec"].get("taints")


class Kubelet:
    """The part of a node that the API server sees: its object, heartbeats, and the logs of its containers."""

    def __init__(self, plane: ControlPlane, namespace: str, node: Node) -> None:
        self._plane = plane
        self._node = node
        self._is_closed = threading.Event()
        self._beating = threading.Thread(target=self._beat, daemon=True)

    def start(self) -> None:
        self._server = _LogServer(("127.0.0.1", 0), _LogHandler)
        self._server.node = self._node
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificates = self._plane.certificate.parent
        context.load_cert_chain(certificates / "apiserver.crt", certificates / "apiserver.key")
        self._server.context = context
        self._serving = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._serving.start()
        self._plane.ask("POST", "/api/v1/nodes", {"metadata": {"name": self._node.name}})
        self._beating.start()

    def close(self) -> None:
        self._is_closed.set()
        self._beating.join()
        self._server.shutdown()
        self._serving.join()
        self._server.server_close()
        self._plane.ask("DELETE", f"/api/v1/nodes/{self._node.name}")

    def _beat(self) -> None:
        path = f"/api/v1/nodes/{self._node.name}/status"
        room = {"cpu": "16", "memory": "16Gi", "pods": "50", "ephemeral-storage": "100Gi"}
        while self._node.is_alive and not self._is_closed.is_set():
            ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": utc()}
            status = {
                "capacity": room,
                "allocatable": room,
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "conditions": [ready],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": self._server.server_port}},
            }
            with contextlib.suppress(Answered):
                self._plane.ask("PATCH", path, {"status": status}, kind=PATCH)
            self._is_closed.wait(HEARTBEAT_S)


class _LogServer(ThreadingHTTPServer):
    node: Node
    context: ssl.SSLContext
    daemon_threads = True

    def finish_request(self, request, client_address) -> None:
        with contextlib.suppress(OSError), self.context.wrap_socket(request, server_side=True) as encrypted:
            super().finish_request(encrypted, client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone is nothing to speak of."""


class _LogHandler(BaseHTTPRequestHandler):
    server: _LogServer

    def log_message(self, *_: object) -> None:
        """Not to the tests' output."""

    def do_GET(self) -> None:
        node, parts = self.server.node, urlsplit(self.path)
        *_, name, _container = parts.path.split("/")
        pod = node.world.pod(name)
        process = None if pod is None else node.processes.get(pod["metadata"]["uid"])
        if process is None or not node.is_alive:
            self.send_error(400, f'container "task" in pod "{name}" is waiting to start: ContainerCreating')
            return
        self.send_response(200)
        self.end_headers()
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        for line in process.log(query, lambda: not node.is_alive):
            self.wfile.write(line)
