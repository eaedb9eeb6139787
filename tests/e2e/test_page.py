"""`dtfctl ui` in Chromium: runs are watched, searched and changed; the page says what is wrong; text stays text."""

from __future__ import annotations

import shutil
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtfctl.values.task import Exit, TaskStatus
from tests.e2e import page_pictures
from tests.e2e.chromium import IS_THERE, WHY_NONE, Browser
from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.e2e.page import PageProcess, event, made_up
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
needs_chromium = pytest.mark.skipif(not IS_THERE, reason=WHY_NONE)

TRAINER = ROOT / "tests" / "e2e" / "page_trainer.py"
CLUSTER = f"""
name: trial
checkpoint_dir: checkpoints
program: {sys.executable} {TRAINER} {{job}} {{task}} {{checkpoint_dir}}
readiness: {{file: "checkpoints/ready-{{job}}-{{task}}", interval: 100ms}}
grace_period: 2s
jobs:
  ps: 2
  worker: 2
"""
HOSTILE = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


def go(browser: Browser, address: str, cluster: str, view: str) -> None:
    browser.open("about:blank")
    browser.open(f"{address}#{cluster}/{view}")


def state_of(browser: Browser, task: str) -> str:
    script = "return document.getElementById(arguments[0])?.dataset.state ?? ''"
    return str(browser.run(script, f"tile-{task}"))


@needs_chromium
@pytest.mark.timeout(240)
def test_a_run_is_watched_a_killed_ps_comes_back_a_log_line_is_found_and_a_task_restarted(tmp_path, browser):
    dtfctl = CommandLine(tmp_path, CLUSTER)
    (dtfctl.folder / "checkpoints").mkdir()
    browser.complaints(), browser.requested()
    try:
        dtfctl.run("up")
        with PageProcess(dtfctl.state) as page:
            go(browser, page.address, "trial", "overview")
            running = "document.querySelectorAll('.tile[data-state=running]').length === 4"
            browser.wait_for(running, "four running tiles")
            assert browser.text("#wrong").endswith("Nothing is wrong: 4 of 4 tasks are ready")

            # A parameter server is killed: its tile turns, and comes back.
            browser.run(
                "const tile = document.getElementById('tile-ps:0'); window.seen = [];"
                "new MutationObserver(() => seen.push(tile.dataset.state)).observe(tile, {attributes: true})"
            )
            dtfctl.kill("ps:0")
            browser.wait_for("window.seen.includes('starting')", "the tile to turn")
            wait_until(lambda: state_of(browser, "ps:0") == "running", "the tile to come back")
            tile = "document.getElementById('tile-ps:0').textContent"
            assert browser.wait_for(f"{tile}.includes('↻ 1')", "the count of restarts")
            browser.wait_for("document.querySelector('.events').textContent.includes('killed by SIGKILL')", "why")

            # Curves move, and are zoomed.
            browser.click("#tab-training")
            browser.wait_for("document.querySelector('.chart .u-over')", "a curve")
            first = browser.text(".chart .reading")
            reading = "document.querySelector('.chart .reading').textContent"
            browser.wait_for(f"{reading} !== arguments[0]", "progress", first)
            browser.drag(".chart .u-over", 0.2, 0.6)
            browser.wait_for("!document.querySelector('.chart figcaption button').hidden", "the zoom")
            browser.click(".chart figcaption button")

            # A click on a point of the curve leads to the lines of that moment.
            browser.drag(".chart .u-over", 0.3, 0.3)
            browser.wait_for("location.hash.includes('logs') && location.hash.includes('at')", "the logs")
            browser.wait_for("document.querySelector('.line.near')", "the line of that moment")

            # A line is found by a search, and what looks like markup is text.
            browser.click("#view .chip")
            browser.type("#view input[type=search]", "needle is in .* three")
            lines = "[...document.querySelectorAll('.line')].map((each) => each.textContent)"
            browser.wait_for(f"{lines}.length && {lines}.every((each) => each.includes('needle'))", "the line")
            assert "<b>not bold</b>" in browser.text(".line .text") and browser.count(".line b") == 0

            # The life has a gap with its cause.
            browser.click("#tab-life")
            gap = ".life .stretch[data-state=backoff], .life .stretch[data-state=starting]"
            browser.wait_for("document.querySelectorAll(arguments[0]).length >= 5", "the stretches", gap)

            # A task is restarted, once its plan was seen.
            browser.click("#tab-overview")
            browser.wait_for(running, "four running tiles")
            pid = dtfctl.task("worker:1")["pid"]
            browser.run("document.getElementById('tile-worker:1').click()")
            browser.wait_for("document.querySelector('#dialog[open] .facts')", "the task's facts")
            browser.click("#dialog button[data-do=restart]")
            browser.wait_for("document.querySelector('#confirm:not(:disabled)')", "the plan")
            assert browser.text("#dialog .plan").startswith("restart   worker:1    running now")
            browser.click("#confirm")
            dtfctl.wait_for_restart("worker:1", pid)
            browser.wait_for(running, "four running tiles")
            assert browser.complaints() == []
            hosts = {url.split("/")[2] for url in browser.requested() if url.startswith("http")}
            assert {host.partition(":")[0] for host in hosts} == {"127.0.0.1"}
        assert page.process.returncode == 0
        assert dtfctl.task("worker:0")["ready"], "the training must not end with the page"
    finally:
        dtfctl.run("down", "--purge", status=None)


def agree(browser: Browser, plan: str) -> None:
    """Reads the plan of the open dialog and does it."""
    browser.wait_for("document.querySelector('#confirm:not(:disabled)')", "the plan")
    assert plan in browser.text("#dialog .plan"), browser.text("#dialog .plan")
    browser.click("#confirm")
    browser.wait_for("!document.getElementById('dialog').open", "the end of the dialog")


@needs_chromium
@pytest.mark.timeout(240)
def test_tasks_are_stopped_started_and_scaled_and_the_cluster_ended_from_the_page(tmp_path, browser):
    dtfctl = CommandLine(tmp_path, CLUSTER)
    (dtfctl.folder / "checkpoints").mkdir()
    shows = "document.querySelectorAll('.tile[data-state=running]').length === arguments[0]"
    try:
        dtfctl.run("up")
        with PageProcess(dtfctl.state) as page:
            go(browser, page.address, "trial", "overview")
            browser.wait_for(shows, "four running tiles", 4)
            for verb, state in (("stop", "stopped"), ("start", "running")):
                browser.run("document.getElementById('tile-worker:1').click()")
                browser.wait_for(f"document.querySelector('#dialog[open] button[data-do={verb}]')", "the button")
                browser.click(f"#dialog button[data-do={verb}]")
                agree(browser, f"{verb:<9} worker:1")
                turned = "document.getElementById('tile-worker:1').dataset.state === arguments[0]"
                browser.wait_for(turned, f"the tile to be {state}", state)
                assert dtfctl.task("worker:1")["state"] == state
            browser.click("#cluster-actions button[data-do=scale]")
            browser.wait_for("document.querySelector('#dialog[open] #scale-number')", "the number")
            browser.run(
                "const number = document.getElementById('scale-number'); number.value = 3;"
                "number.dispatchEvent(new Event('input', {bubbles: true}))"
            )
            browser.wait_for("document.querySelector('#dialog .plan').textContent.includes('worker:2')", "the plan")
            agree(browser, "worker:2")
            browser.wait_for(shows, "five running tiles", 5)
            browser.click("#cluster-actions button[data-do=down]")
            agree(browser, "The run ends.")
            browser.wait_for("document.getElementById('state').textContent === 'stopped'", "the end")
            browser.wait_for("!document.querySelector('#cluster-actions button')", "no more actions")
        assert dtfctl.status()["state"] == "stopped"
    finally:
        dtfctl.run("down", "--purge", status=None)


@needs_chromium
@pytest.mark.timeout(240)
def test_a_real_nan_a_crash_loop_and_a_full_disk_are_said_by_the_page(tmp_path, browser):
    overrides = ", ".join(
        f"{index}: {{program: '{sys.executable} {TRAINER} {{job}} {{task}} {{checkpoint_dir}} {case}'}}"
        for index, case in enumerate(("nan", "crash", "full"))
    )
    text = CLUSTER.replace("worker: 2", f"worker: {{replicas: 3, tasks: {{{overrides}}}}}")
    dtfctl = CommandLine(tmp_path, f"{text}restart: {{backoff: 3s, alike: 0, attempts: 50}}\n")
    (dtfctl.folder / "checkpoints").mkdir()
    try:
        dtfctl.run("up", "--no-wait")
        with PageProcess(dtfctl.state, "--read-only") as page:
            go(browser, page.address, "trial", "overview")
            for kind, words in (("nan-loss", "NaN"), ("crash-loop", "KeyError: 'labels'"), ("full-disk", "worker:2")):
                selector = f"#wrong li[data-kind={kind}]"
                script = "document.querySelector(arguments[0])?.textContent.includes(arguments[1])"
                browser.wait_for(script, f"the page to say {kind}", selector, words, timeout_s=90)
            assert browser.count("#cluster-actions button") == 0
        assert "wrong: worker:1 crashes in a loop" in dtfctl.run("status").stdout
    finally:
        dtfctl.run("down", "--purge", status=None)


@needs_chromium
@pytest.mark.timeout(240)
def test_a_training_of_dtf_shows_its_variables_and_is_traced(tmp_path, browser):
    copied = tmp_path / "digits"
    shutil.copytree(ROOT / "clusters" / "digits", copied)
    text = (copied / "cluster.yaml").read_text().replace("python trainer.py", f"{sys.executable} {copied}/trainer.py")
    text = text.replace("--checkpoint_dir={checkpoint_dir}", "--checkpoint_dir={checkpoint_dir} --train_steps=1000000")
    dtfctl = CommandLine(tmp_path, text)
    try:
        dtfctl.run("up")
        with PageProcess(dtfctl.state) as page:
            go(browser, page.address, "digits", "parameters")
            verdict = "(document.querySelector('.verdict')?.textContent ?? '')"
            browser.wait_for(f"{verdict}.startsWith('Out of balance: ps:0')", "the places")
            rows = "[...document.querySelectorAll('tbody tr')].map((row) => row.textContent)"
            browser.wait_for(f"{rows}.find((row) => row.startsWith('hidden/kernelps:0256 × 64'))", "the variable")
            browser.wait_for("document.querySelector('.servers')?.textContent.includes('/s, out ')", "the traffic")
            browser.click("#tab-overview")
            extra = "(document.getElementById('tile-worker:0')?.querySelector('.extra').textContent ?? '')"
            network = f"/^in .+B\\/s, out .+B\\/s$/.test({extra})"
            browser.wait_for(network, "the network of the tile")
            browser.click("#tab-step")
            browser.wait_for("document.querySelector('#trace:not(:disabled)')", "the button")
            browser.click("#trace")
            browser.wait_for("document.querySelectorAll('.stretch.op').length > 20", "the operations")
            names = "[...document.querySelectorAll('.steps .name')].map((each) => each.textContent)"
            assert {"critical path", "ps:0", "worker:0"} <= set(browser.run(f"return {names}"))
            assert browser.text("[aria-label=Explanation]").startswith("worker:0: a step takes")
    finally:
        dtfctl.run("down", "--purge", status=None)


UNEVEN = f"""
name: uneven
program: {sys.executable} {ROOT / "tests" / "e2e" / "imbalanced_trainer.py"} uneven
environment: {{OPENBLAS_NUM_THREADS: "1"}}
jobs: {{ps: 2, worker: 2}}
"""


@needs_chromium
@pytest.mark.timeout(240)
def test_a_real_hot_parameter_server_and_a_real_slow_worker_are_said_by_the_page(tmp_path, browser):
    dtfctl = CommandLine(tmp_path, UNEVEN)
    dtfctl.environment["PYTHONPATH"] = f"{ROOT}:{ROOT / 'runtime'}"
    try:
        dtfctl.run("up")
        with PageProcess(dtfctl.state, "--read-only") as page:
            go(browser, page.address, "uneven", "overview")
            for kind, words in (("hot-ps", "ps:0 is hot"), ("slow-worker", "worker:1 is slow")):
                script = "document.querySelector(arguments[0])?.textContent.includes(arguments[1])"
                selector = f"#wrong li[data-kind={kind}]"
                browser.wait_for(script, f"the page to say {kind}", selector, words, timeout_s=150)
    finally:
        dtfctl.run("down", "--purge", status=None)


@needs_chromium
def test_histograms_and_images_are_drawn_sample_by_sample(tmp_path, browser):
    import numpy as np

    import dtf as tf

    state = tmp_path / "state"
    _, plan = made_up(state, "pictures")
    with tf.Graph().as_default(), tf.Session() as session:
        values, pixels = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.uint8, [1, 12, 16, 3])
        both = tf.summary.merge([tf.summary.histogram("weights", values), tf.summary.image("input", pixels)])
        writer = tf.summary.FileWriter(plan.checkpoint_folder)
        for step in range(3):
            drawn = np.random.RandomState(step).randn(500) + step
            picture = np.full([1, 12, 16, 3], 80 * step, np.uint8)
            writer.add_summary(session.run(both, {values: drawn, pixels: picture}), step)
        writer.close()
    browser.open("about:blank")
    browser.complaints()
    with PageProcess(state) as page:
        go(browser, page.address, "pictures", "training")
        browser.wait_for("document.querySelector('figure.image img')?.naturalWidth === 16", "the image")
        figures = "[...document.querySelectorAll('figure.chart')]"
        histogram = f"{figures}.find((each) => each.textContent.includes('weights'))"
        browser.wait_for(f"{histogram}?.querySelector('canvas')", "the histogram")
        words = f"{histogram}.querySelector('.row .muted').textContent"
        assert browser.run(f"return {words}") == "step 2"
        browser.run(
            f"const slider = {histogram}.querySelector('input[type=range]'); slider.value = 0;"
            "slider.dispatchEvent(new Event('input', {bubbles: true}))"
        )
        browser.wait_for(f"{words} === 'step 0'", "the first sample")
        assert browser.complaints() == []


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[str]:
    """The address of a page over made-up clusters."""
    with page_pictures.world(tmp_path_factory.mktemp("world"), 1000) as address:
        yield address


SAID = {
    "hot-ps": "ps:0 is hot: it uses 97 % of a core, the other parameter servers 8 % on average",
    "slow-worker": "worker:2 is slow: it makes 3.1 steps/s, the other workers",
    "nan-loss": "The loss is NaN",
    "full-disk": "The disk of /data/checkpoints (checkpoints) is full: 12 KiB are left",
    "crash-loop": "worker:1 crashes in a loop: it failed 4 times and is started again each time: KeyError: 'labels'",
}


@needs_chromium
@pytest.mark.parametrize("case", SAID)
def test_a_stranger_reads_at_the_top_of_the_page_what_is_wrong(world, browser, case):
    go(browser, world, case, "overview")
    browser.wait_for("document.querySelector('#wrong .words')", "the finding")
    assert SAID[case] in browser.text("#wrong .words")
    assert browser.count(f"#wrong li[data-kind={case}] .advice") == 1


@needs_chromium
def test_a_thousand_tasks_are_shown_and_updated(world, browser):
    begun = time.monotonic()
    go(browser, world, "tasks-1000", "overview")
    browser.wait_for("document.querySelectorAll('.tile').length === 1000", "all tiles")
    shown_s = time.monotonic() - begun
    updates = int(browser.run("return Number(document.documentElement.dataset.updates)"))
    script = "Number(document.documentElement.dataset.updates) > arguments[0] + 1"
    browser.wait_for(script, "two more updates", updates)
    browser.type("#view input[type=search]", "worker:17")
    browser.wait_for("document.querySelectorAll('.item:not([hidden])').length === 11", "the filtered tiles")
    assert shown_s < 30, shown_s  # a second or two on an idle machine


@needs_chromium
def test_the_page_is_used_by_keyboard_and_says_what_it_shows(world, browser):
    go(browser, world, "well", "overview")
    browser.wait_for("document.querySelectorAll('.tile').length === 5", "the tiles")
    browser.press("2")
    browser.wait_for("location.hash === '#well/training'", "the second view")
    browser.press("t")
    browser.wait_for("document.documentElement.dataset.theme", "the other theme")
    browser.press("j")
    browser.wait_for("!location.hash.startsWith('#well/')", "another cluster")
    unnamed = browser.run(
        "return [...document.querySelectorAll('button, input, select, a, [role=tabpanel]')].filter((each) =>"
        " !(each.textContent.trim() || each.getAttribute('aria-label') || each.labels?.length || each.title)).length"
    )
    assert unnamed == 0
    assert browser.count("[role=tab][aria-selected=true]") == 1 and browser.count("[aria-live]") >= 2


@needs_chromium
@pytest.mark.parametrize("width", [390, 820, 1400])
@pytest.mark.parametrize("view", ["overview", "training", "logs", "life", "parameters"])
def test_no_view_is_wider_than_its_window(world, browser, width, view):
    browser.resize(width, 844)
    try:
        go(browser, world, "crash-loop", view)
        browser.wait_for("document.querySelector('#view > .view')", "the view")
        browser.wait_for("document.getElementById('state').textContent", "the cluster")
        assert browser.run("return document.documentElement.scrollWidth") <= width
    finally:
        browser.devtools("Emulation.clearDeviceMetricsOverride")


@needs_chromium
def test_hostile_names_words_and_lines_stay_text(tmp_path, browser):
    state = tmp_path / "state"
    status = TaskStatus("worker:0", "gave-up", 3, 2, exit=Exit(time.monotonic(), 1), reason=HOSTILE)
    failed = {"outcome": "failed", "why": HOSTILE}
    paths, plan = made_up(state, "hostile", statuses=[status], **failed)
    (paths.logs(1) / "worker-0.1.log").write_text(f"{HOSTILE}\nERROR: {HOSTILE}\n")
    (Path(plan.checkpoint_folder) / "events.out.tfevents.1.h").write_bytes(event(1, 1.0, {HOSTILE: 1.0}))
    with PageProcess(state) as page:
        shown = {"overview": ".tile", "training": ".chart .tag", "logs": ".line", "life": ".lanes *"}
        for view, selector in shown.items():
            go(browser, page.address, "hostile", view)
            browser.wait_for("document.querySelector(arguments[0])", view, selector)
            assert browser.run("return window.hacked === undefined") and browser.count("#main img, #main script") == 0
        go(browser, page.address, "hostile", "overview")
        browser.wait_for("document.querySelector('#wrong .words')", "the finding")
        assert HOSTILE in browser.text("#wrong")


def status_of(address: str, **headers: str) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=20) as response:
            return response.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_the_served_page_refuses_strangers_and_prints_the_way_over_ssh(tmp_path):
    state = tmp_path / "state"
    made_up(state, "trial")
    given = {"SSH_CONNECTION": "10.1.1.1 5000 10.2.2.2 22"}
    with PageProcess(state, environment=given) as page:
        bare = page.address.partition("?")[0]
        assert status_of(page.address) == 200
        assert [status_of(bare), status_of(f"{bare}api/clusters"), status_of(f"{bare}?token=x")] == [403, 403, 403]
        assert status_of(page.address, Origin="http://evil.example") == 403
        assert status_of(page.address, Host="evil.example") == 403
        port = bare.rstrip("/").rpartition(":")[2]
        wait_until(lambda: f"ssh -N -L {port}:127.0.0.1:{port} " in page.err(), "the line for ssh")
        assert "@10.2.2.2" in page.err()


@needs_chromium
def test_a_page_without_its_server_says_so_and_names_the_new_address_of_another_one(tmp_path, browser):
    state = tmp_path / "state"
    made_up(state, "trial")
    said = "document.querySelector('#wrong li[data-kind=no-answer]')?.textContent.includes(arguments[0])"
    with PageProcess(state) as page:
        port = page.address.partition("?")[0].rstrip("/").rpartition(":")[2]
        go(browser, page.address, "trial", "overview")
        browser.wait_for("document.querySelector('.tile')", "the tiles")
        page.process.kill()
        page.process.wait()
        browser.wait_for(said, "the page to say that nobody answers", "dtfctl ui does not answer")
    with PageProcess(state, "--port", port) as another:
        browser.wait_for(said, "the page to say that the token has changed", "This address has expired")
        go(browser, another.address, "trial", "overview")
        browser.wait_for("document.querySelector('.tile')", "the tiles again")
        assert browser.count("#wrong li[data-kind=no-answer]") == 0
    browser.complaints()


def test_a_page_at_a_unix_socket_is_only_there(tmp_path):
    import http.client
    import socket

    state = tmp_path / "state"
    made_up(state, "trial")
    path = tmp_path / "page.sock"
    with PageProcess(state, "--socket", str(path)) as page:
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(path))
        connection.request("GET", f"/?{page.address.partition('?')[2]}")
        assert connection.getresponse().status == 200
        connection.close()
    assert not path.exists()
