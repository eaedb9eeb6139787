"""Answers that no API server of Kubernetes would give, from a proxy or from worse: an error in one line, and no end."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from contextlib import contextmanager

import pytest

from dtfctl.launchers.kubernetes import api as requests
from dtfctl.launchers.kubernetes import watch
from dtfctl.launchers.kubernetes.api import Api, ApiError
from dtfctl.values.engines import KubernetesSettings

pytest.importorskip("kubernetes", reason="needs pip install 'dtf[kubernetes]'")


def answer(body: bytes, status="200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@contextmanager
def server(*answers: bytes, endless: bytes = b""):
    """Gives each connection the next answer, and the last one to all later ones. An `endless` tail is repeated."""
    seen: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                try:
                    seen.append(connection.recv(1 << 16))
                    connection.sendall(answers[min(len(seen), len(answers)) - 1])
                    while endless:
                        connection.sendall(endless)
                except OSError:
                    continue

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", seen
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            listening.close()
            thread.join(10)


@pytest.fixture
def connect(tmp_path, monkeypatch):
    def made(url: str) -> Api:
        document = {
            "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": {"token": "secret-token"}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(document))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        return Api(KubernetesSettings())

    return made


HTML = b"<html>\n<body>Please log in\x1b[31m</body>\n</html>"
REDIRECT = answer(HTML, "302 Found", "Location: http://127.0.0.1:1/elsewhere")
DEEP = answer(b"[" * 100_000)
NOT_KUBERNETES = {
    "html": (answer(HTML), "is no object of Kubernetes"),
    "nothing of an object": (answer(b"[1, 2]"), "is no object of Kubernetes"),
    "half an object": (answer(b'{"items": ['), "is no object of Kubernetes"),
    "deep": (DEEP, "is no object of Kubernetes"),
    "no text": (answer(b"\xff\xfe\x00"), "is no object of Kubernetes"),
    "redirect": (REDIRECT, "status 302 of HTTP"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n", "does not answer"),
    "cut": (answer(b"x" * 100)[:-50], "the connection ended"),
    "proxy": (answer(HTML, "502 Bad Gateway"), "status 502 of HTTP"),
    "long words": (answer(json.dumps({"message": "no " * 100_000}).encode(), "500 Error"), "no no no"),
}


@pytest.mark.parametrize("kind", NOT_KUBERNETES)
def test_what_is_no_answer_of_kubernetes_is_one_line_and_may_pass(kind, connect):
    given, words = NOT_KUBERNETES[kind]
    with server(given) as (url, seen), pytest.raises(ApiError) as found:
        connect(url).ask("GET", "/api/v1/namespaces/default/pods")
    assert words in found.value.message and found.value.is_connection, found.value.message
    assert "\n" not in found.value.message and len(found.value.message) < 600
    assert len(seen) == 1, "a redirect is not followed: the token is for this server"


def test_a_refusal_of_kubernetes_does_not_pass(connect):
    words = json.dumps({"kind": "Status", "message": "pods is forbidden"}).encode()
    refused = answer(words, "403 Forbidden")
    with server(refused) as (url, _), pytest.raises(ApiError, match="pods is forbidden") as found:
        connect(url).ask("GET", "/api/v1/namespaces/default/pods")
    assert not found.value.is_connection


def test_a_login_that_has_run_out_is_made_anew_once(connect, monkeypatch):
    monkeypatch.setattr(requests, "LOG_IN_AGAIN_S", 0.0)
    refused = answer(b'{"message": "Unauthorized"}', "401 Unauthorized")
    with server(refused, answer(b'{"items": []}')) as (url, seen):
        assert connect(url).ask("GET", "/api/v1/namespaces/default/pods") == {"items": []}
    assert len(seen) == 2
    with server(refused) as (url, seen), pytest.raises(ApiError, match="Unauthorized") as found:
        connect(url).ask("GET", "/api/v1/namespaces/default/pods")
    assert len(seen) == 2 and found.value.is_connection


def test_an_answer_without_an_end_is_given_up(connect, monkeypatch):
    monkeypatch.setattr(requests, "ANSWER_BYTES_MAX", 1 << 20)
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    endless = server(head, endless=b" " * 65536)
    with endless as (url, _), pytest.raises(ApiError, match="an answer that does not end"):
        connect(url).ask("GET", "/api/v1/namespaces/default/pods")


@pytest.mark.parametrize(
    "given",
    [answer(HTML), answer(b""), REDIRECT, DEEP, answer(b'{"type": "ADDED"}\n'), answer(b'{"type": 1, "object": 2}\n')],
)
def test_a_watch_that_is_none_is_over_and_a_new_list_is_due(given, connect):
    async def follow(url):
        async for _ in watch.events(connect(url), "", "1"):
            raise AssertionError("nothing of this is an event")

    with server(given) as (url, _), pytest.raises(watch.Gone):
        asyncio.run(asyncio.wait_for(follow(url), 30))


def test_a_line_of_a_watch_without_an_end_is_given_up(connect, monkeypatch):
    monkeypatch.setattr(watch, "LINE_BYTES_MAX", 1 << 20)

    async def follow(url):
        async for _ in watch.events(connect(url), "", "1"):
            pass

    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    with server(head, endless=b"x" * 65536) as (url, _), pytest.raises(watch.Gone):
        asyncio.run(asyncio.wait_for(follow(url), 30))
