"""The parts of Kubernetes that dtfctl uses, in this process: an API server, a garbage collector, nodes.

It answers as a real control plane was seen to: versions and watches with bookmarks and 410, 403, 404, 409 and 422 with
a Status, a deleted pod that stays until its node says so, a pod of a dead node that stays for ever. A pod is a process
of this machine: what is `NAME-JOB-INDEX.NAME` in its words becomes an address of the loopback network, as DNS would
have it, and the address 0.0.0.0 its own.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from dtfctl.manifests.rights import RIGHTS, Right
from tests.e2e.kubernetes_node import Node, utc

KINDS = {"pods": "Pod", "services": "Service", "secrets": "Secret", "configmaps": "ConfigMap"}
WAIT_S = 0.05


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Kubernetes:
    """`with Kubernetes(tmp_path, nodes=2) as cluster:` has `cluster.kubeconfig`.

    Attributes:
      allowed: (verb, kind) that the user may do in the namespace; an administrator may do everything.
      quota: at most so many pods.
      is_away: the server cuts every connection.
      instead: (status, page) that a proxy answers in the server's place.
      requests: (method, path) of each.
    """

    namespace = "training"

    def __init__(self, folder: Path, nodes: int = 1) -> None:
        self.folder = folder
        self.objects: dict[tuple[str, str], dict] = {}
        self.history: list[tuple[int, str, dict]] = []
        self.version = 100
        self.compacted = 0
        self.allowed = set(RIGHTS)
        self.is_administrator = False
        self._used: set[Right] = set()
        self.quota = 1000
        self.is_away = False
        self.instead: tuple[int, bytes] | None = None
        self.requests: list[tuple[str, str]] = []
        self.changed = threading.Condition()
        self.nodes = [Node(self, f"node-{number}", folder) for number in range(nodes)]
        self._open: set = set()
        self._is_closed = False

    def __enter__(self) -> Kubernetes:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.cluster = self
        self._serving = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._serving.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.kubeconfig = self.folder / "kubeconfig"
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": self.url}}],
            "users": [{"name": "user", "user": {"token": "secret-token"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user", "namespace": self.namespace}}],
        }
        self.kubeconfig.write_text(json.dumps(document))
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        self.cut()
        for node in self.nodes:
            node.close()
        self._server.shutdown()
        self._serving.join()
        self._server.server_close()

    # -- what tests do to it

    def cut(self) -> None:
        """Every open connection breaks."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(2)
        with self.changed:
            self.changed.notify_all()

    def go_away(self) -> None:
        self.is_away = True
        self.cut()

    def come_back(self, compacts: bool = False) -> None:
        """With `compacts` it has forgotten former versions."""
        if compacts:
            self.compacted = self.version
        self.is_away = False

    def pods(self, **labels: str) -> list[dict]:
        with self.changed:
            return [copy.deepcopy(each) for (kind, _), each in self.objects.items() if kind == "pods"]

    def evict(self, node: Node) -> None:
        """What the node lifecycle controller does with pods of a node that is silent for longer than they tolerate."""
        for pod in self.pods():
            if pod["spec"].get("nodeName") == node.name:
                self.delete("pods", pod["metadata"]["name"], {})

    def used(self) -> set[Right]:
        """What the user has been allowed and has done."""
        return self._used

    def left(self) -> list[str]:
        """KIND/NAME of everything that a run has made and not deleted."""
        with self.changed:
            return sorted(f"{kind}/{name}" for kind, name in self.objects)

    def forbid(self, verb: str, kind: str) -> None:
        self.allowed.discard((verb, kind))

    def become_administrator(self) -> None:
        self.is_administrator = True

    def add_pod(self, name: str) -> dict:
        """One that never begins."""
        spec = {"containers": [{"name": "task", "image": "missing:1"}]}
        return self.create("pods", {"metadata": {"name": name}, "spec": spec}, is_trial=False)

    def delete_by_force(self, name: str) -> None:
        self.remove("pods", name)

    def limit_pods(self, most: int) -> None:
        self.quota = most

    def may(self, verb: str, resource: str, namespace: str) -> bool:
        return self.is_administrator or (namespace == self.namespace and (verb, resource) in self.allowed)

    # -- what nodes know of it

    def pod(self, name: str) -> dict | None:
        return self.objects.get(("pods", name))

    def secret(self, name: str) -> dict[str, str]:
        found = self.get("secrets", name)["data"]
        return {key: base64.b64decode(value).decode() for key, value in found.items()}

    def in_cluster(self) -> dict[str, str]:
        return {}

    def remove_pod(self, name: str, uid: str) -> None:
        self.remove("pods", name, uid)

    # -- objects

    def get(self, kind: str, name: str) -> dict:
        with self.changed:
            found = self.objects.get((kind, name))
            if found is None:
                raise Refused(404, f'{kind} "{name}" not found')
            return copy.deepcopy(found)

    def create(self, kind: str, body: dict, is_trial: bool) -> dict:
        body = copy.deepcopy(body)
        metadata = body["metadata"]
        name = metadata["name"]
        with self.changed:
            if kind == "pods":
                self._admit(body, name)
            if (kind, name) in self.objects:
                raise Refused(409, f'{kind} "{name}" already exists')
            metadata |= {"namespace": self.namespace, "uid": str(uuid.uuid4()), "creationTimestamp": utc()}
            if is_trial:
                return body
            if kind == "pods":
                body["status"] = {"phase": "Pending", "conditions": []}
            if kind == "secrets":
                given = body.pop("stringData", {})
                body["data"] = {key: base64.b64encode(value.encode()).decode() for key, value in given.items()}
            self._put(kind, name, body, "ADDED")
        if kind == "pods":
            self._schedule(body)
        return body

    def _admit(self, body: dict, name: str) -> None:
        containers = body.get("spec", {}).get("containers")
        if not containers or not containers[0].get("image"):
            raise Refused(422, f'Pod "{name}" is invalid: spec.containers: Required value')
        if sum(kind == "pods" for kind, _ in self.objects) >= self.quota:
            words = f"exceeded quota: pods, requested: pods=1, used: pods={self.quota}, limited: pods={self.quota}"
            raise Refused(403, f'pods "{name}" is forbidden: {words}')

    def _schedule(self, pod: dict) -> None:
        name = pod["metadata"]["name"]
        wanted = pod["spec"].get("nodeSelector", {})
        able = [node for node in self.nodes if node.is_alive and not wanted]
        if not able:
            message = f"0/{len(self.nodes)} nodes are available: {len(self.nodes)} node(s) didn't match."
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
            self.patch_status(name, {"conditions": [condition]})
            return
        node = min(able, key=lambda each: sum(pod["spec"].get("nodeName") == each.name for pod in self.pods()))
        with self.changed:
            found = self.objects["pods", name]
            found["spec"]["nodeName"] = node.name
            self._put("pods", name, found, "MODIFIED")
        node.take(copy.deepcopy(found))

    def patch_status(self, name: str, status: dict, uid: str = "") -> None:
        with self.changed:
            found = self.objects.get(("pods", name))
            if found is not None and uid in ("", found["metadata"]["uid"]):
                found["status"] |= status
                self._put("pods", name, found, "MODIFIED")

    def delete(self, kind: str, name: str, options: dict) -> dict:
        with self.changed:
            found = self.objects.get((kind, name))
            if found is None:
                raise Refused(404, f'{kind} "{name}" not found')
            uid = options.get("preconditions", {}).get("uid")
            if uid and uid != found["metadata"]["uid"]:
                raise Refused(409, f"Precondition failed: UID in precondition: {uid}")
            grace = options.get("gracePeriodSeconds")
            if kind == "pods" and grace != 0 and found["status"].get("phase") not in ("Failed", "Succeeded"):
                grace = found["spec"].get("terminationGracePeriodSeconds", 30) if grace is None else grace
                if not found["spec"].get("nodeName"):
                    return self.remove(kind, name)
                metadata = found["metadata"]
                metadata["deletionGracePeriodSeconds"] = min(grace, metadata.get("deletionGracePeriodSeconds", grace))
                metadata.setdefault("deletionTimestamp", utc(grace))
                self._put(kind, name, found, "MODIFIED")
                return found
        return self.remove(kind, name)

    def remove(self, kind: str, name: str, uid: str = "") -> dict:
        with self.changed:
            found = self.objects.get((kind, name))
            if found is None or uid not in ("", found["metadata"]["uid"]):
                return {}
            del self.objects[kind, name]
            self.version += 1
            found["metadata"]["resourceVersion"] = str(self.version)
            if kind == "pods":
                self.history.append((self.version, "DELETED", copy.deepcopy(found)))
            owned = [
                key
                for key, each in self.objects.items()
                for owner in each["metadata"].get("ownerReferences", [])
                if owner["uid"] == found["metadata"]["uid"]
            ]
            self.changed.notify_all()
        for owned_kind, owned_name in owned:
            with contextlib.suppress(Refused):
                self.delete(owned_kind, owned_name, {})
        return found

    def _put(self, kind: str, name: str, body: dict, event: str) -> None:
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.objects[kind, name] = body
        if kind == "pods":
            self.history.append((self.version, event, copy.deepcopy(body)))
        self.changed.notify_all()

    def selected(self, selector: str) -> list[dict]:
        return [pod for pod in self.pods() if matches(pod, selector)]


def matches(pod: dict, selector: str) -> bool:
    name, _, value = selector.partition("=")
    return not selector or pod["metadata"].get("labels", {}).get(name) == value


class _Server(ThreadingHTTPServer):
    cluster: Kubernetes
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone is nothing to speak of."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.cluster._open.add(self.connection)

    def finish(self) -> None:
        self.server.cluster._open.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, *_: object) -> None:
        """Not to the tests' output."""

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def _answer(self, method: str) -> None:
        cluster = self.server.cluster
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if cluster.is_away:
            self.close_connection = True
            return
        if cluster.instead is not None:
            status, page = cluster.instead
            self.send_response(status)
            self.send_header("content-length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)
            return
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        cluster.requests.append((method, parts.path))
        try:
            if self.headers.get("authorization") != "Bearer secret-token":
                raise Refused(401, "Unauthorized")
            found = self._found(method, parts.path.strip("/").split("/"), query, body)
        except Refused as error:
            status = {"kind": "Status", "status": "Failure", "message": str(error), "code": error.status}
            self._send(error.status, status)
            return
        if found is not None:
            self._send(200, found)

    def _found(self, method: str, path: list[str], query: dict, body: dict) -> dict | None:
        cluster = self.server.cluster
        if path[-1] == "selfsubjectaccessreviews":
            asked = body["spec"]["resourceAttributes"]
            resource = "/".join(filter(None, (asked["resource"], asked["subresource"])))
            return {"status": {"allowed": cluster.may(asked["verb"], resource, asked["namespace"])}}
        if path[:3] != ["api", "v1", "namespaces"]:
            raise Refused(404, "the server could not find the requested resource")
        if len(path) == 4:
            if not cluster.is_administrator:
                words = 'User "trainer" cannot get resource "namespaces" in API group ""'
                raise Refused(403, f'namespaces "{path[3]}" is forbidden: {words} in the namespace "{path[3]}"')
            if path[3] != cluster.namespace:
                raise Refused(404, f'namespaces "{path[3]}" not found')
            return {"metadata": {"name": path[3]}}
        kind, name, part = path[4], path[5] if len(path) > 5 else "", path[6] if len(path) > 6 else ""
        verb = {"POST": "create", "DELETE": "delete"}.get(method, "get" if name else "list")
        verb = "watch" if "watch" in query else verb
        resource = "/".join(filter(None, (kind, part)))
        if kind not in KINDS or not cluster.may(verb, resource, path[3]):
            words = f'User "trainer" cannot {verb} resource "{resource}" in API group "" in the namespace "{path[3]}"'
            raise Refused(403, f"{kind} is forbidden: {words}")
        cluster.used().add((verb, resource))
        if method == "POST":
            return cluster.create(kind, body, "dryRun" in query)
        if method == "DELETE":
            return cluster.delete(kind, name, body)
        if part == "log":
            self._send_log(cluster.get(kind, name), query)
            return None
        if name:
            return cluster.get(kind, name)
        if "watch" in query:
            self._send_watch(query)
            return None
        with cluster.changed:
            items = cluster.selected(query.get("labelSelector", ""))
            return {"kind": "PodList", "metadata": {"resourceVersion": str(cluster.version)}, "items": items}

    # -- streams

    def _send_watch(self, query: dict) -> None:
        cluster = self.server.cluster
        version, selector = int(query["resourceVersion"]), query.get("labelSelector", "")
        self._begin_stream()
        if version < cluster.compacted:
            words = f"too old resource version: {version} ({cluster.compacted})"
            self._piece({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": words}})
            self._end_stream()
            return
        index = 0
        while not (cluster.is_away or cluster._is_closed):
            with cluster.changed:
                while index == len(cluster.history) and not (cluster.is_away or cluster._is_closed):
                    cluster.changed.wait(WAIT_S)
                new, index = cluster.history[index:], len(cluster.history)
            for at, kind, pod in new:
                if at > version and matches(pod, selector):
                    self._piece({"type": kind, "object": pod})
            bookmark = {"kind": "Pod", "metadata": {"resourceVersion": str(cluster.version)}}
            if not new and query.get("allowWatchBookmarks"):
                self._piece({"type": "BOOKMARK", "object": bookmark})
        self.close_connection = True

    def _send_log(self, pod: dict, query: dict) -> None:
        cluster = self.server.cluster
        node = next((node for node in cluster.nodes if node.name == pod["spec"].get("nodeName")), None)
        process = None if node is None else node.processes.get(pod["metadata"]["uid"])
        if process is None:
            name = pod["metadata"]["name"]
            raise Refused(400, f'container "task" in pod "{name}" is waiting to start: ContainerCreating')
        if node is None or not node.is_alive:
            raise Refused(500, f"Get https://{pod['spec']['nodeName']}:10250/containerLogs: connection refused")
        self._begin_stream()

        def is_cut() -> bool:
            return cluster.is_away or cluster._is_closed or not node.is_alive

        for line in process.log(query, is_cut):
            self._chunk(line)
        if is_cut():
            self.close_connection = True
            return
        self._end_stream()

    def _begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _piece(self, document: dict) -> None:
        self._chunk(json.dumps(document).encode() + b"\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, status: int, document: dict) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
