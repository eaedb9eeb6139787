"""The page for everybody: contrasts, names for screen readers, the keyboard alone, less motion, hostile text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtfctl.values.task import Exit, TaskStatus
from tests.e2e import page_pictures
from tests.e2e.chromium import IS_THERE, WHY_NONE, Browser
from tests.e2e.page import PageProcess, event, made_up

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not IS_THERE, reason=WHY_NONE)]

VIEWS = ("overview", "training", "logs", "life", "parameters", "step")

# For each text: its colour against what lies behind it, as WCAG 2.2 computes it (1.4.3: 4.5, large text 3).
POOR = r"""
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
canvas.canvas.width = canvas.canvas.height = 1;
const rgba = (colour) => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
};
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
const linear = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
const luminance = (c) => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
const behind = (element) => {
  const layers = [];
  const add = (each) => layers.unshift(rgba(getComputedStyle(each).backgroundColor));
  for (let each = element; each; each = each.parentElement) add(each);
  return layers.reduce((below, top) => over(top, below), [255, 255, 255, 1]);
};
const found = new Map();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  const style = getComputedStyle(element);
  if (!walker.currentNode.textContent.trim() || !element.checkVisibility({ opacityProperty: true })) continue;
  if (element.closest("script, style, option, :disabled, noscript")) continue;
  let colour = rgba(style.color); const back = behind(element);
  for (let each = element; each; each = each.parentElement) colour[3] *= Number(getComputedStyle(each).opacity);
  const [light, dark] = [luminance(over(colour, back)), luminance(back)].sort((a, b) => b - a);
  const ratio = (light + 0.05) / (dark + 0.05);
  const size = parseFloat(style.fontSize);
  const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  if (ratio < (isLarge ? 3 : 4.5)) {
    const words = walker.currentNode.textContent.trim().slice(0, 40);
    found.set(`${element.tagName.toLowerCase()}.${element.className}`, `${ratio.toFixed(2)}: ${words}`);
  }
}
return Object.fromEntries(found);
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with page_pictures.world(tmp_path_factory.mktemp("world")) as address:
        yield address


def go(browser: Browser, address: str, cluster: str, view: str) -> None:
    browser.open("about:blank")
    browser.open(f"{address}#{cluster}/{view}")
    browser.wait_for("document.querySelector(arguments[0])", view, f".view.{view}")
    browser.wait_for("document.getElementById('wrong').textContent", "the snapshot")


@pytest.mark.parametrize("cluster", ["crash-loop", "hot-ps", "well"])
def test_every_text_has_enough_contrast_light_and_dark(world, browser, cluster):
    poor = {}
    for is_dark in (False, True):
        browser.dark(is_dark)
        for view in VIEWS:
            go(browser, world, cluster, view)
            waited = {"overview": ".tile .measured", "life": ".lane", "logs": ".line", "training": ".chart"}
            browser.wait_for("document.querySelector(arguments[0])", view, waited.get(view, ".view *"))
            found = browser.run(POOR)
            poor |= {(view, "dark" if is_dark else "light", element): words for element, words in found.items()}
    browser.dark(False)
    assert poor == {}


def tree(browser: Browser) -> list[tuple[str, str]]:
    """(role, name) of all that a screen reader finds."""
    nodes = browser.devtools("Accessibility.getFullAXTree")["nodes"]
    return [
        (str(node["role"]["value"]), str(node.get("name", {}).get("value", "")))
        for node in nodes
        if not node["ignored"] and "role" in node
    ]


def test_a_screen_reader_finds_a_name_for_all_that_can_be_used_and_what_is_wrong(world, browser):
    for view in VIEWS:
        go(browser, world, "crash-loop", view)
        found = tree(browser)
        used = {"button", "link", "checkbox", "combobox", "searchbox", "slider", "tab", "tabpanel", "textbox", "image"}
        assert [(role, name) for role, name in found if role in used and not name.strip()] == [], view
        roles = {role for role, _ in found}
        assert {"main", "navigation", "tablist", "heading"} <= roles, (view, roles)
    go(browser, world, "crash-loop", "overview")
    browser.wait_for("document.querySelectorAll('.tile').length === 5", "the tiles")
    found = tree(browser)
    names = [name for _, name in found]
    assert any("worker:1 crashes in a loop" in name for name in names)
    tiles = [name for role, name in found if role == "button" and name.startswith("worker:1")]
    assert tiles and all(word in tiles[0] for word in ("backoff", "4")), tiles


def test_the_keyboard_alone_reaches_opens_and_leaves_everything(world, browser):
    go(browser, world, "crash-loop", "overview")
    browser.wait_for("document.querySelectorAll('.tile').length === 5", "the tiles")
    seen = []
    for _ in range(60):
        browser.press("\ue004")
        where = "const e = document.activeElement; return e === document.body ? '' : (e.id || e.className || e.tagName)"
        seen.append(str(browser.run(where)))
        if "tile-worker:1" in seen[-1]:
            break
    assert "tile-worker:1" in seen[-1], seen
    outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "the focus must be seen"
    browser.press("\ue007")
    browser.wait_for("document.querySelector('#dialog[open]')", "the dialog")
    assert browser.run("return document.getElementById('dialog').contains(document.activeElement)")
    browser.press("\ue00c")
    browser.wait_for("!document.querySelector('#dialog[open]')", "its end")
    assert browser.run("return document.activeElement.id") == "tile-worker:1", "the focus must come back"
    browser.run("document.getElementById('tab-overview').focus()")
    browser.press("\ue014")
    browser.wait_for("location.hash === '#crash-loop/training'", "the next tab by an arrow key")


def test_less_motion_is_none_where_it_is_asked_for(world, browser):
    browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    go(browser, world, "well", "overview")
    browser.wait_for("document.querySelector('.tile')", "the tiles")
    moving = browser.run(
        "return [...document.querySelectorAll('*')].filter((each) => { const style = getComputedStyle(each);"
        " return parseFloat(style.transitionDuration) > 0.01 || parseFloat(style.animationDuration) > 0.01; }).length"
    )
    browser.devtools("Emulation.setEmulatedMedia", features=[])
    assert moving == 0


HOSTILE = (
    "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>",
    "\u202egnp.exe \u2066turned\u2069 \u200f\u200e around",
    "\x1b[2J\x1b[31mred\x1b]0;title\x07\x1b[8mhidden\x1b[0m \x9b31m",
    "javascript:window.hacked=1 ${window.hacked=1} {{constructor.constructor('window.hacked=1')()}}",
    "a" * 3000 + "\u0301" * 3000,
    "\ufeff\u2028\u2029\x00\x7f\ufffe",
)


def test_hostile_lines_and_lines_of_ten_megabytes_leave_the_page_whole(tmp_path, browser):
    state = tmp_path / "state"
    why = " ".join(HOSTILE).replace("\x00", "")  # the store takes no NUL
    status = TaskStatus("worker:0", "gave-up", 3, 2, exit=Exit(time.monotonic(), 1, traceback=why), reason=why)
    paths, plan = made_up(state, "hostile", statuses=[status], outcome="failed", why=why)
    with open(paths.logs(1) / "worker-0.1.log", "w", encoding="utf-8", errors="surrogatepass") as log:
        log.write("".join(f"ERROR: {line}\n" for line in HOSTILE))
        log.write("x" * (10 << 20) + "\nthe last line\n")
    tags = {line.replace("\x00", ""): 1.0 for line in HOSTILE}
    events = b"".join(event(step, float(step), tags) for step in (1, 2))
    (Path(plan.checkpoint_folder) / "events.out.tfevents.1.<b>\u202e").write_bytes(events)
    shown = {"overview": ".tile", "training": ".chart", "logs": ".line", "life": ".lanes *", "parameters": ".verdict"}
    with PageProcess(state) as page:
        for width in (390, 1280):
            browser.resize(width, 844)
            for view, selector in shown.items():
                go(browser, page.address, "hostile", view)
                browser.wait_for("document.querySelector(arguments[0])", view, selector)
                if view == "logs":
                    last = "[...document.querySelectorAll('.line')].at(-1)?.textContent.includes('the last line')"
                    browser.wait_for(last, "the last line", timeout_s=100)
                assert browser.run("return window.hacked === undefined"), view
                assert browser.count("#main img[src='x'], #main script, #main b") == 0
                assert browser.run("return document.documentElement.scrollWidth") <= width, view
                text = str(browser.run("return document.getElementById('main').textContent"))
                assert not any(sign in text for sign in "\x1b\x07\x9b\x00\u202e\u2066"), view
    browser.devtools("Emulation.clearDeviceMetricsOverride")
