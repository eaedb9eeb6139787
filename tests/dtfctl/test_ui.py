"""The page's server: who may ask, what it answers, and that hostile text stays text."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import stat
from dataclasses import replace

import pytest
import uvicorn

from dtfctl.control import planned
from dtfctl.control.verbs import Verb
from dtfctl.errors import TraceImpossible
from dtfctl.storage.paths import ClusterPaths
from dtfctl.storage.store import Store
from dtfctl.ui import actions
from dtfctl.ui import server as server_of_page
from dtfctl.ui.access import HEADERS
from dtfctl.ui.server import PAGE, Page, listener
from dtfctl.values.run import Run
from dtfctl.values.task import Exit, TaskStatus
from dtfctl.wire.messages import BadMessage
from tests.dtfctl.asgi import ask
from tests.dtfctl.fakes import addresses_of, plan_of
from tests.dtfctl.test_progress import append, record

TOKEN = "the-token"
HOSTILE = "<img src=x onerror=alert(1)></script>\x1b[31m\u202e"
OURS = {"authorization": f"Bearer {TOKEN}"}


def make_cluster(root, name="trial", **changes):
    """An ended run in the state folder `root`, with checkpoints and logs."""
    paths = ClusterPaths(root / name)
    paths.logs(1).mkdir(parents=True)
    plan = replace(plan_of(), name=name, checkpoint_dir=str(root / f"checkpoints-{name}"))
    (root / f"checkpoints-{name}").mkdir()
    run = Run(1, "secret-token", "boot", plan, {"PASSWORD": "secret"}, addresses_of(plan), 100.0, **changes)
    statuses = [TaskStatus(task.name, "stopped", 1, exit=Exit(5.0, 0), reason=HOSTILE) for task in plan.tasks()]
    store = Store(paths.store, wall_clock=lambda: 101.0)
    store.begin(run, statuses)
    store.save(run, (), [store.happening("ps:0", what, HOSTILE) for what in ("start", "ready", "ended", "start")])
    store.close()
    return paths


@pytest.fixture
def root(tmp_path):
    make_cluster(tmp_path, is_over=True, outcome="stopped", why=HOSTILE, ended_at=200.0)
    return tmp_path


@pytest.fixture
def page(root):
    return Page(root, "trial").application(TOKEN)


def test_the_page_and_its_files_are_served_with_a_strict_policy(page):
    answer = ask(page, "/", {"token": TOKEN})
    assert answer.status == 200 and answer.body.startswith(b"<!doctype html>")
    assert HEADERS.items() <= answer.headers.items()
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    for name in re.findall(rb'(?:src|href)="(/assets/[^"]+)"', answer.body):
        assert ask(page, name.decode()).status == 200


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ({}, {}),
        ({"token": "wrong"}, {}),
        ({}, {"authorization": "Bearer wrong"}),
        ({"token": TOKEN}, {"host": "evil.example:8000"}),
        ({"token": TOKEN}, {"host": "127.0.0.1.evil.example"}),
        ({"token": TOKEN}, {"host": ""}),
        ({"token": TOKEN}, {"origin": "http://evil.example"}),
        ({"token": TOKEN}, {"origin": "http://127.0.0.1:9999"}),
        ({"token": TOKEN}, {"origin": "null"}),
        ({"token": TOKEN}, {"sec-fetch-site": "cross-site"}),
        ({"token": TOKEN}, {"sec-fetch-site": "same-site"}),
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/clusters", "/api/watch", "/api/act"])
def test_a_request_without_the_token_or_from_elsewhere_gets_403(page, path, query, headers):
    answer = ask(page, path, query, "POST" if path == "/api/act" else "GET", headers)
    assert answer.status == 403 and answer.body.startswith(b"403: ") and answer.headers["connection"] == "close"
    assert HEADERS.items() <= answer.headers.items()


def test_a_link_elsewhere_may_open_the_page_but_load_nothing(page):
    opened = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert ask(page, "/", {"token": TOKEN}, headers=opened).status == 200
    assert ask(page, "/api/clusters", {"token": TOKEN}, headers=opened).status == 403


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1:80", "[::1]:8000", "LOCALHOST"])
def test_a_forwarded_port_may_be_another_one(page, host):
    assert ask(page, "/api/clusters", headers={**OURS, "host": host, "origin": f"http://{host}"}).status == 200


@pytest.mark.parametrize("path", ["/assets/../server.py", "/assets/%2e%2e/server.py", "/assets//etc/passwd"])
def test_no_file_beside_the_pages_own_is_served(page, path):
    assert ask(page, path).status in (403, 404)


def test_the_clusters_of_the_state_folder_are_listed_and_hold_no_secret(page, root):
    make_cluster(root, "other")
    (root / "broken").mkdir()
    (root / "broken" / "store.sqlite").write_bytes(b"no database")
    answer = ask(page, "/api/clusters", headers=OURS)
    found = {each["name"]: each["state"] for each in answer.json["clusters"]}
    assert found == {"other": "starting", "trial": "stopped", "broken": "damaged"}
    assert answer.json["clusters"][0]["name"] == "other" and answer.json["chosen"] == "trial"
    assert b"secret" not in answer.body


def test_a_cluster_is_watched_as_a_snapshot_and_hostile_words_are_data(page):
    answer = ask(page, "/api/watch", {"cluster": "trial"}, headers=OURS, lines=1)
    (first,) = answer.lines
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert first["cluster"]["state"] == "stopped" and first["cluster"]["isOver"]
    assert [task["name"] for task in first["tasks"]] == ["ps:0", "worker:0", "worker:1"]
    assert first["tasks"][0]["words"] == HOSTILE and len(first["events"]) == 4
    assert b"secret" not in answer.body


def test_an_unknown_cluster_is_refused_and_no_name_leads_out_of_the_folder(page):
    for name in ("nobody", "..", "../trial", "trial/.", ""):
        answer = ask(page, "/api/lives", {"cluster": name}, headers=OURS)
        assert (answer.status, "no cluster is called" in answer.json["error"]) == (404, True)


def test_curves_lives_and_parameters_are_given(page, root):
    events = root / "checkpoints-trial" / "events.out.tfevents.1.h"
    append(events, record(110.0, 5, loss=2.5) + record(111.0, 6, loss=float("nan")))
    tags = ask(page, "/api/tags", {"cluster": "trial"}, headers=OURS).json
    assert tags["runs"]["."]["scalars"] == ["loss"] and tags["restarts"][0]["task"] == "ps:0"
    points = ask(page, "/api/points", {"cluster": "trial", "tag": "loss"}, headers=OURS).json
    assert points == {".": [[5, 6], [110.0, 111.0], [2.5, None]]}
    lives = ask(page, "/api/lives", {"cluster": "trial"}, headers=OURS).json
    assert [each["state"] for each in lives["tasks"][0]["stretches"]] == ["starting", "running", "backoff", "starting"]
    parameters = ask(page, "/api/parameters", {"cluster": "trial"}, headers=OURS).json
    assert "No checkpoint with a graph" in parameters["why"]
    assert ask(page, "/api/trace", {"cluster": "trial"}, headers=OURS).status == 404


def test_a_trace_is_asked_for_and_a_refusal_is_said(root):
    def trace(cluster, steps):
        if steps > 3:
            raise TraceImpossible(f"{cluster.name}: no task is ready that could be traced")
        return {"trace": {"traceEvents": []}, "lines": [str(steps)]}

    page = Page(root, "trial", tracer=trace).application(TOKEN)
    assert ask(page, "/api/trace", {"cluster": "trial", "steps": 2}, headers=OURS).json["lines"] == ["2"]
    answer = ask(page, "/api/trace", {"cluster": "trial", "steps": 9}, headers=OURS)
    assert answer.status == 500 and answer.json == {"error": "trial: no task is ready that could be traced"}


def test_log_lines_are_searched_and_filtered(page, root):
    folder = root / "trial" / "runs" / "0001" / "logs"
    (folder / "ps-0.1.log").write_text(f"INFO:dtf:one\nERROR:root:two {HOSTILE}\n")
    (folder / "worker-0.1.log").write_text("W1124 three\nfour\n")

    def lines(**query):
        answer = ask(page, "/api/logs", {"cluster": "trial", **query}, headers=OURS)
        return [line["text"].partition(" ")[0] for document in answer.lines for line in document.get("lines", ())]

    assert sorted(lines()) == ["ERROR:root:two", "INFO:dtf:one", "W1124", "four"]
    assert lines(task="ps:0", level="error") == ["ERROR:root:two"]
    assert lines(level=["other", "warning"]) == ["W1124", "four"]
    assert lines(pattern="THREE|dtf:one") == ["INFO:dtf:one", "W1124"]
    assert lines(since="1e12") == []
    answer = ask(page, "/api/logs", {"cluster": "trial", "pattern": "ERROR"}, headers=OURS)
    assert answer.lines[0]["lines"][0]["text"] == "ERROR:root:two <img src=x onerror=alert(1)></script>\\u202e"


@pytest.mark.parametrize("query", [{"since": "-1e308"}, {"since": "1e308"}, {"until": "1e308", "run": "1e300"}])
def test_numbers_beyond_all_times_and_runs_are_an_empty_search(page, root, query):
    folder = root / "trial" / "runs" / "0001" / "logs"
    (folder / "ps-0.1.log").write_text("line\n")
    answer = ask(page, "/api/logs", {"cluster": "trial", **query}, headers=OURS)
    assert answer.status == 200 and "isPast" in answer.lines[0]


@pytest.mark.parametrize(
    "query", [{"pattern": "("}, {"pattern": "(" * 499}, {"pattern": "(?=(a+)+$)b"}, {"level": "loud"}]
)
def test_a_wrong_search_is_explained(page, query):
    answer = ask(page, "/api/logs", {"cluster": "trial", **query}, headers=OURS)
    assert answer.status == 400 and "not a pattern or level" in answer.json["error"]


def act(page, document, **headers):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    given = {**OURS, "content-type": "application/json", **headers}
    return ask(page, "/api/act", method="POST", headers=given, body=body)


def test_a_read_only_page_refuses_every_action_and_says_so(root):
    page = Page(root, "trial", is_read_only=True).application(TOKEN)
    for is_plan in (True, False):
        answer = act(page, {"cluster": "trial", "do": "down", "isPlan": is_plan})
        assert answer.status == 403 and "read-only" in answer.json["error"]


def test_an_action_on_what_has_ended_changes_nothing(page):
    answer = act(page, {"cluster": "trial", "do": "restart", "tasks": ["ps:0"], "isPlan": False})
    assert (answer.status, answer.json) == (409, {"error": "trial is not running"})


@pytest.mark.parametrize(
    "document",
    [
        b"no json",
        [],
        {"cluster": "trial", "do": "purge", "isPlan": False},
        {"cluster": "trial", "do": "restart", "isPlan": True},
        {"cluster": "trial", "do": "scale", "isPlan": True, "job": "worker"},
        {"cluster": "trial", "do": "scale", "isPlan": True, "job": "worker", "replicas": -1},
        {"cluster": "trial", "do": "down", "isPlan": "no"},
        {"cluster": "trial", "do": "down", "isPlan": True, "force": True},
        {"cluster": "../trial", "do": "down", "isPlan": True},
    ],
)
def test_what_is_no_action_is_refused(page, document):
    assert act(page, document).status == 400


def test_a_form_of_another_page_cannot_act(page):
    answer = act(page, {"cluster": "trial", "do": "down", "isPlan": True}, **{"content-type": "text/plain"})
    assert answer.status == 415
    assert act(page, b"x" * (2 << 20)).status == 413
    assert ask(page, "/api/act", {"token": TOKEN}).status == 405


def test_the_plan_of_an_action_names_each_task_the_order_and_the_cost():
    plan = plan_of()
    run = Run(1, "token", "boot", plan, {}, {}, 0.0)
    statuses = {task.name: TaskStatus(task.name, "running", 1, pid=7) for task in plan.tasks()}
    statuses["worker:1"] = TaskStatus("worker:1", "stopped")

    def lines(text):
        action = actions.action_of(json.dumps({"cluster": "t", **text}).encode())
        return planned.in_words(run, statuses, action.verb, action.tasks)

    restart = lines({"do": "restart", "tasks": ["ps:0", "worker:1"], "isPlan": True})
    assert restart[:2] == ["restart   ps:0        running now", "start     worker:1    stopped now"]
    assert restart[-1].startswith("cost      the steps since the last checkpoint of worker:0")
    down = lines({"do": "down", "isPlan": True})
    assert len(down) == 6 and down[3].startswith("The run ends.")
    assert lines({"do": "start", "tasks": ["ps:0"], "isPlan": True}) == ["nothing: it runs ps:0        running now"]
    assert not planned.changes(statuses, Verb.START, ["ps:0"]) and planned.changes(statuses, Verb.START, ["worker:1"])
    assert not planned.changes(statuses, Verb.STOP, ["worker:1"]) and planned.changes(statuses, Verb.DOWN, [])
    with pytest.raises(BadMessage):
        lines({"do": "stop", "tasks": [], "isPlan": True})


# -- the listener


@pytest.mark.parametrize("seconds, unused", [(0.01, 100), (3600.0, 2)])
def test_strangers_who_ask_for_nothing_lose_their_connections(page, monkeypatch, seconds, unused):
    """After a while, and at once when there are many: their descriptors were those of the user's own connections."""
    monkeypatch.setattr(server_of_page, "HEAD_TIMEOUT_S", seconds)
    monkeypatch.setattr(server_of_page, "UNUSED_MAX", unused)

    async def talk():
        config = uvicorn.Config(page, http=server_of_page._Connection, log_config=None, lifespan="off", ws="none")
        server, bound = uvicorn.Server(config), listener(0, None)
        serving = asyncio.ensure_future(server.serve([bound]))
        while not server.started:
            await asyncio.sleep(0.01)
        strangers = []
        for _ in range(3):
            reader, writer = await asyncio.open_connection(*bound.getsockname())
            writer.write(b"GET / HT")
            strangers.append((reader, writer))
        with contextlib.suppress(ConnectionResetError):
            assert await strangers[0][0].read() == b""
        reader, writer = await asyncio.open_connection(*bound.getsockname())
        writer.write(f"GET /?token={TOKEN} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        server.should_exit = server.force_exit = True
        for _, each in [*strangers, (reader, writer)]:
            each.transport.abort()
        await serving
        return answer

    assert asyncio.run(talk()).startswith(b"HTTP/1.1 200")


def test_the_port_is_of_this_machine_only():
    bound = listener(0, None)
    assert bound.getsockname()[0] == "127.0.0.1" and bound.getsockname()[1] > 0
    taken = bound.getsockname()[1]
    bound.listen()
    with pytest.raises(OSError, match=f"port {taken} of 127.0.0.1"):
        listener(taken, None)
    bound.close()


def test_a_unix_socket_is_the_users_own_and_replaces_only_a_socket(tmp_path):
    path = tmp_path / "page.sock"
    for _ in range(2):
        bound = listener(0, path)
        assert bound.family == socket.AF_UNIX and stat.S_IMODE(path.stat().st_mode) == 0o600
        bound.close()
    path.unlink()
    path.write_text("a file")
    with pytest.raises(OSError, match="page.sock"):
        listener(0, path)
    assert path.read_text() == "a file"


# -- the page's own files


def sources():
    return [path for path in sorted(PAGE.rglob("*.js")) if "vendor" not in path.parts]


def test_the_pages_scripts_make_no_markup_of_text():
    words = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|DOMParser"
    forbidden = re.compile(words)
    assert sources()
    for path in [*sources(), *PAGE.glob("vendor/*.js")]:
        assert not forbidden.search(path.read_text()), path.name


def test_the_page_names_no_other_machine_and_needs_no_inline_script_or_style():
    for path in [*sources(), PAGE / "index.html", PAGE / "style.css"]:
        found = set(re.findall(r"(?:https?:)?//[\w.-]+\.[a-z]{2,}", path.read_text()))
        assert not found, path.name
    html = (PAGE / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", html)


def test_the_licence_of_the_chart_library_lies_beside_it():
    assert "MIT License" in (PAGE / "vendor" / "LICENSE.uPlot").read_text()
