"""Requests to the API server of Kubernetes, with the settings of the user's kubeconfig or of the pod around.

The client library reads kubeconfig, certificates and login plugins; requests and answers are plain JSON. Blocking:
callers use threads.
"""

from __future__ import annotations

import json
import os
import shlex
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast
from urllib.parse import urlencode

from dtfctl.manifests.documents import Document, Value
from dtfctl.values.engines import KubernetesSettings
from dtfctl.wording import reason_of

if TYPE_CHECKING:
    import urllib3

ANSWER_S = 20.0
CONNECT_S = 10.0
ANSWER_S_MAX = 60.0
"""An answer that comes byte by byte is given up after so long."""

ANSWER_BYTES_MAX = 256 << 20
ERROR_BYTES_MAX = 1 << 20
PIECE_BYTES = 1 << 16
WORDS_MAX = 400
"""So much of what a server says stands in an error."""

LOG_IN_AGAIN_S = 10.0
IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
_NAMESPACE_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
_INSTALL = "pip install 'dtf[kubernetes]'"


class ApiError(Exception):
    """A request that came to nothing. `status` is that of HTTP, 0 where the server did not answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        words = " ".join(message.split())
        self.message = words if len(words) <= WORDS_MAX else f"{words[:WORDS_MAX]}..."

    @property
    def is_connection(self) -> bool:
        """Whether it may pass: the server is away, has too much to do, or something between here and there (a proxy,
        a login that has run out) answers in its place."""
        return self.status < 400 or self.status in (401, 407, 408, 429) or self.status >= 500


class Api:
    """The API server of one context. Raises ApiError where the package or the context is missing."""

    def __init__(self, settings: KubernetesSettings) -> None:
        try:
            from kubernetes import client
        except ImportError:
            raise ApiError(0, f"the package kubernetes is not installed; {_INSTALL}") from None
        self._settings = settings
        self._client = client
        self._logging_in = threading.Lock()
        self._logged_in_at = time.monotonic()
        own = self._log_in()
        self.namespace = settings.namespace or own

    def _log_in(self) -> str:
        """Reads the user's settings, which may run a login plugin; the namespace of the context."""
        self._configuration = self._client.Configuration()
        try:
            own = self._load()
        except Exception as error:
            # Whatever a kubeconfig or a login plugin may raise.
            raise ApiError(0, f"no usable context: {reason_of(error)}; see: {self.by_hand('config', 'view')}") from None
        # Retries are the callers' own: they know what may be repeated.
        self._configuration.retries = False
        pool = self._client.ApiClient(self._configuration).rest_client.pool_manager
        self._pool = cast("urllib3.PoolManager", pool)
        return own

    def _log_in_again(self) -> bool:
        """Whether a login that was refused was made anew. It is not tried again and again."""
        with self._logging_in:
            if time.monotonic() < self._logged_in_at + LOG_IN_AGAIN_S:
                return False
            self._logged_in_at = time.monotonic()
            self._log_in()
            return True

    def _load(self) -> str:
        """Fills the configuration; the namespace of the context."""
        from kubernetes.config import list_kube_config_contexts, load_incluster_config, load_kube_config

        if IN_CLUSTER in os.environ and "KUBECONFIG" not in os.environ and not self._settings.context:
            load_incluster_config(client_configuration=self._configuration)
            with open(_NAMESPACE_FILE, encoding="utf-8") as file:
                return file.read().strip()
        context, path = self._settings.context or None, os.environ.get("KUBECONFIG") or None
        load_kube_config(config_file=path, context=context, client_configuration=self._configuration)
        every, active = list_kube_config_contexts(config_file=path)
        chosen = next((each for each in every if each["name"] == context), active)
        return str(chosen["context"].get("namespace") or "default")

    def by_hand(self, *words: str) -> str:
        """The line with which a person asks the same."""
        return kubectl(self._settings, *words)

    def path(self, kind: str, name: str = "", part: str = "") -> str:
        """That of a kind of objects, one of them, or a part of it."""
        return "/".join(filter(None, ("/api/v1/namespaces", self.namespace, kind, name, part)))

    def ask(
        self, method: str, path: str, body: Document | None = None, query: Mapping[str, str | int] | None = None
    ) -> Document:
        """The answer. Raises ApiError."""
        response = self._request(method, path, body, query or {}, ANSWER_S)
        data = self._data(response, ANSWER_BYTES_MAX)
        try:
            found = json.loads(data) if data else {}
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            begins = data[:80].decode(errors="replace")
            words = f"the API server {self._configuration.host} answers {path} with what is no object of Kubernetes"
            raise ApiError(0, f"{words}; it begins with {begins}")
        return found

    def create(self, kind: str, body: Document) -> Document:
        return self.ask("POST", self.path(kind), body)

    def delete(self, kind: str, name: str, grace_s: int | None = None, uid: str = "") -> None:
        """Of an object that is not there nothing is said. With `uid` it is deleted only if it is still that one."""
        body: Document = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            self.ask("DELETE", self.path(kind, name), body)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    @contextmanager
    def stream(self, path: str, query: Mapping[str, str | int], silence_s: float) -> Iterator[Iterator[bytes]]:
        """Pieces of a long answer; one that is silent for longer raises ApiError, as does a lost connection."""
        response = self._request("GET", path, None, query, silence_s)
        try:
            yield self._pieces(response)
        finally:
            response.close()
            response.release_conn()

    def _pieces(self, response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
        import urllib3

        try:
            yield from response.stream(PIECE_BYTES, decode_content=False)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise ApiError(0, f"the connection ended: {reason_of(error)}") from None

    def _data(self, response: urllib3.BaseHTTPResponse, bytes_max: int) -> bytes:
        """A whole answer. Raises ApiError for one that does not end."""
        found, size, deadline = [], 0, time.monotonic() + ANSWER_S_MAX
        try:
            for piece in self._pieces(response):
                found.append(piece)
                size += len(piece)
                if size > bytes_max or time.monotonic() > deadline:
                    raise ApiError(0, f"the API server {self._configuration.host} sends an answer that does not end")
            return b"".join(found)
        finally:
            # A connection whose answer was read to its end serves the next request.
            if size > bytes_max or time.monotonic() > deadline:
                response.close()
            response.release_conn()

    def _request(
        self,
        method: str,
        path: str,
        body: Document | None,
        query: Mapping[str, str | int],
        silence_s: float,
    ) -> urllib3.BaseHTTPResponse:
        """The status and headers of an answer; its body is unread. Raises ApiError."""
        response = self._sent(method, path, body, query, silence_s)
        if response.status == 401 and self._log_in_again():
            response.close()
            response.release_conn()
            response = self._sent(method, path, body, query, silence_s)
        if response.status >= 300:
            raise ApiError(response.status, _message(self._data(response, ERROR_BYTES_MAX), response.status))
        return response

    def _sent(
        self, method: str, path: str, body: Document | None, query: Mapping[str, str | int], silence_s: float
    ) -> urllib3.BaseHTTPResponse:
        import urllib3

        url = f"{self._configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"accept": "application/json"}
        token = self._token()
        if token:
            headers["authorization"] = token
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            return self._pool.request(
                method,
                url,
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_S, read=silence_s),
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            server = f"the API server {self._configuration.host}"
            raise ApiError(0, f"{server} does not answer: {reason_of(error)}") from None

    def _token(self) -> str:
        try:
            for name in ("BearerToken", "authorization"):
                token = self._configuration.get_api_key_with_prefix(name)
                if token:
                    return str(token)
        except Exception as error:
            raise ApiError(0, f"no login: {reason_of(error)}") from None
        return ""


def kubectl(settings: KubernetesSettings, *words: str) -> str:
    place = [*(["--context", settings.context] if settings.context else [])]
    place += ["--namespace", settings.namespace] if settings.namespace else []
    return shlex.join(("kubectl", *place, *words))


def _message(data: bytes, status: int) -> str:
    try:
        found: Value = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and isinstance(found.get("message"), str):
        return str(found["message"])
    words = data[:200].decode(errors="replace").strip()
    return f"status {status} of HTTP{f': {words}' if words else ''}"
