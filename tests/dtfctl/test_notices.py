"""Messages to the outside: which happenings are events, and that sending them is bounded."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from dtfctl.notices import sender as senders
from dtfctl.notices.documents import Notices, document
from dtfctl.notices.sender import NoticeSender
from dtfctl.values.history import Happening
from dtfctl.values.plan import Notify
from dtfctl.values.run import Run
from tests.dtfctl.fakes import plan_of
from tests.waiting import wait_until

PLAN = plan_of("{name: trial, program: x, jobs: {ps: 1, worker: 1}}")


def happened(*pairs, task="ps:0"):
    return [Happening(1_700_000_000.0 + number, task, what, why) for number, (what, why) in enumerate(pairs)]


def test_restarts_stalls_and_the_end_are_events_and_nothing_else_is():
    notices = Notices(happened(("start", "it is in the cluster file")))
    assert list(notices.of(happened(("ready", ""), ("trouble", "x"), ("notice", "")))) == []
    (restarted,) = notices.of(happened(("ended", "killed by SIGKILL"), ("retry", "why"), ("start", "why")))
    assert (restarted.event, restarted.task, restarted.why) == ("restarted", "ps:0", "why")
    assert restarted.cause == "preempted"
    (stalled,) = notices.of(happened(("stalled", "stalled: no step for 60s")))
    assert (stalled.event, stalled.why) == ("stalled", "no step for 60s")
    (failed,) = notices.of(happened(("failed", "worker:0 failed"), task=""))
    assert (failed.event, failed.task) == ("failed", "")
    assert list(notices.of(happened(("stopped", "by dtfctl down"), task=""))) == []


def test_a_document_says_what_who_where_and_why():
    (notice,) = Notices().of(happened(("succeeded", "all have ended"), task=""))
    assert document(notice, "trial", 3, "/f/cluster.yaml", "here") == {
        "apiVersion": "dtfctl/v1", "event": "succeeded", "time": "2023-11-14T22:13:20.000Z", "cluster": "trial",
        "run": 3, "file": "/f/cluster.yaml", "host": "here", "task": "", "why": "all have ended", "cause": "",
        "text": "trial succeeded: all have ended",
    }  # fmt: skip


def sent(tmp_path, notify, happenings, timeout_s=30.0):
    """What the history is told when these happenings are sent."""
    told = []
    plan = replace(PLAN, notify=notify, folder=str(tmp_path))
    run = Run(1, "t", "b", plan, environment={"PATH": "/usr/bin:/bin", "WORD": "w"}, addresses={}, started_at=0.0)

    async def main():
        sender = NoticeSender(lambda: run, [], told.append, timeout_s)
        sender.take(happenings)
        await sender.close()

    asyncio.run(main())
    return told


END = happened(("succeeded", "all have ended"), task="")


def test_a_command_gets_the_document_on_stdin_and_the_environment_of_up(tmp_path):
    line = 'cat > got; echo "$WORD $DTFCTL_EVENT $DTFCTL_CLUSTER" > words'
    assert sent(tmp_path, Notify(succeeded=line), END) == []
    assert json.loads((tmp_path / "got").read_text())["event"] == "succeeded"
    assert (tmp_path / "words").read_text() == "w succeeded trial\n"


def test_words_are_run_without_a_shell(tmp_path):
    assert sent(tmp_path, Notify(succeeded=("touch", "$HOME; x")), END) == []
    assert (tmp_path / "$HOME; x").exists()


@pytest.mark.parametrize(
    "command, words",
    [
        ("echo no room >&2; exit 3", "the command exited with status 3: no room"),
        (("/no/such",), "/no/such cannot be started: "),
        ("http://127.0.0.1:1/secret", "the webhook exited with status 1: "),
    ],
)
def test_a_failure_is_one_line_of_the_history_and_names_no_secret(tmp_path, command, words):
    (told,) = sent(tmp_path, Notify(succeeded=command), END)
    assert told.startswith(f"notify.succeeded: {words}")
    assert "secret" not in told and "\n" not in told


def test_a_command_that_does_not_end_is_killed_with_its_children(tmp_path):
    line = "(trap '' TERM; sleep 1000) & echo $! > child; wait"
    (told,) = sent(tmp_path, Notify(succeeded=line), END, timeout_s=1.0)
    assert told == "notify.succeeded: the command has not ended within 1s and was killed"
    stat = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    wait_until(lambda: not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in "ZX", "its end")


def test_no_more_than_the_limit_wait_and_the_others_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(senders, "WAITING_MAX", 2)
    monkeypatch.setattr(senders, "AT_ONCE_MAX", 1)
    happenings = happened(*[("stalled", "stalled: x")] * 7)
    told = sent(tmp_path, Notify(stalled="cat >> got"), happenings)
    assert told == ["notify: 4 messages were dropped: more than 2 waited"]
    assert len((tmp_path / "got").read_text().splitlines()) == 3


def test_a_webhook_is_posted_to(tmp_path):
    posted = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response({"/good": 204, "/bad": 500}.get(self.path, 302))
            self.send_header("Location", {"/file": "file:///etc/passwd"}.get(self.path, "/good"))
            self.end_headers()

        def do_GET(self):
            posted.append({"event": "GET"})

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            place = f"http://127.0.0.1:{server.server_address[1]}"
            assert sent(tmp_path, Notify(succeeded=f"{place}/good"), END) == []
            (told,) = sent(tmp_path, Notify(succeeded=f"{place}/bad"), END)
            redirected = [sent(tmp_path, Notify(succeeded=f"{place}/{way}"), END)[0] for way in ("file", "moved")]
        finally:
            server.shutdown()
            thread.join()
    assert [each["event"] for each in posted] == ["succeeded"] * 4, "a redirected message would lose its body"
    for each in redirected:
        assert each.endswith("the server answers with HTTP status 302; write the address to which it redirects")
    assert told == "notify.succeeded: the webhook exited with status 1: the server answers with HTTP status 500"


HOSTILE = {
    "command": "$(touch run); `touch run`", "quotes": "'; touch run; '", "NUL": "a\0b",
    "terminal": "\x1b]0;title\x07\n--flag", "half a character": "\ud800", "10 MB": "x" * 10_000_000,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_cause_arrives_as_text_and_runs_nothing(tmp_path, name):
    told = sent(tmp_path, Notify(stalled="cat > got"), happened(("stalled", f"stalled: {HOSTILE[name]}")))
    assert told == [] and not (tmp_path / "run").exists()
    assert json.loads((tmp_path / "got").read_text())["event"] == "stalled"


def test_a_webhook_that_answers_without_end_is_ended(tmp_path):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
            with contextlib.suppress(OSError):
                while not stopped.wait(0.01):
                    self.wfile.write(b"y")

        def log_message(self, *_):
            pass

    stopped = threading.Event()
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_address[1]}/"
            (told,) = sent(tmp_path, Notify(succeeded=address), END, timeout_s=1.0)
        finally:
            stopped.set()
            server.shutdown()
            thread.join()
    assert told == "notify.succeeded: the webhook has not ended within 1s and was killed"
