"""The page for everybody: contrasts, names for screen readers, the keyboard alone, less motion, hostile text and event
files."""

from __future__ import annotations

import math
import os
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from dtfctl.values.task import Exit, TaskStatus
from dtfctl.wire.protobuf import varint
from tests.dtfctl.test_progress import field, text
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


def png(width: int, height: int, data: bytes) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def summary(step: int, at: float, tag: bytes, value: bytes) -> bytes:
    payload = field(1, 1, struct.pack("<d", at)) + field(2, 0, varint(step)) + text(5, text(1, text(1, tag) + value))
    return struct.pack("<QI", len(payload), 0) + payload + struct.pack("<I", 0)


def histogram(low: float, high: float, limits: Sequence[float], counts: Sequence[float]) -> bytes:
    edges = field(1, 1, struct.pack("<d", low)) + field(2, 1, struct.pack("<d", high))
    lists = (text(number, struct.pack(f"<{len(all_)}d", *all_)) for number, all_ in ((6, limits), (7, counts)))
    return text(5, edges + b"".join(lists))


def hostile_events() -> Iterator[bytes]:
    """What a program may write into its event files to harm those who look at it."""
    whole = png(4, 4, bytes(20))
    pictures = {
        b"whole": whole,
        b"cut": png(400, 400, bytes(160_400))[:60],
        b"bomb": png(60_000, 60_000, bytes(6_000_100)),
        b"negative": png(0xFFFFFFFF, 0xFFFFFFFF, b""),
        b"svg": b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.hacked=1'><script>hacked=1</script></svg>",
        b"</figcaption><img src=x onerror=window.hacked=1>": whole,
        b"__proto__": whole,
    }
    for tag, data in pictures.items():
        yield summary(1, 1e9, tag, text(4, text(4, data)))
    nan, inf = math.nan, math.inf
    for number, each in enumerate((
        histogram(nan, nan, [nan, nan], [nan, 1]), histogram(-inf, inf, [-1e308, 0, 1e308, inf], [1, 2, 3, 4]),
        histogram(5, -5, [3, 2, 1], [1, 2, -3]), histogram(0, 1, [], [1] * 3), histogram(0, 1, [1] * 3, []),
        histogram(-1.7e308, 1.7e308, [-1e308, 1e308], [1e308, 1e308]), histogram(1, 1 + 2**-52, [1, 2], [1, 2]),
    )):  # fmt: skip
        yield summary(1, 1e9, b"h/%d" % number, each)
    for at in (nan, inf, -inf, -5.0, 1e300, 2e10):
        yield summary(3, at, b"times", field(2, 5, struct.pack("<f", 1.0)))
    for step, value in enumerate((nan, inf, -inf, 3.4e38, -3.4e38, 1e-45, 0.0, -0.0)):
        yield summary(step, 1e9 + step, b"values", field(2, 5, struct.pack("<f", value)))
    for step in (2**63 - 2048, 2**63 - 1, 2**64 - 1):
        yield summary(step, 1e9, b"steps", field(2, 5, struct.pack("<f", 1.0)))
    for tag in (b"constructor", b"", b"\xff\x00<b>x</b>", *(b"flood/%d" % number for number in range(2_500))):
        yield summary(5, 1e9, tag, field(2, 5, struct.pack("<f", 1.0)))


def test_hostile_event_files_leave_the_page_whole(tmp_path, browser):
    state = tmp_path / "state"
    _, plan = made_up(state, "hostile")
    folder = Path(plan.checkpoint_folder)
    events = b"".join(hostile_events())
    (folder / "events.out.tfevents.1.h").write_bytes(events)
    os.mkdir(os.fsencode(folder) + b"/\xff<b>")
    (folder / "events.out.tfevents.zero").symlink_to("/dev/zero")
    os.mkfifo(folder / "events.out.tfevents.fifo")
    shape = text(1, b"shape") + text(2, text(7, text(2, field(1, 0, varint(2**61))) * 3_000))
    variable = text(1, b"<b>v</b>" * 99) + text(2, b"VariableV2") + text(4, b"/job:ps/task:0") + text(5, shape)
    (folder / "model.ckpt-1.meta").write_bytes(text(2, text(1, variable)))
    browser.open("about:blank")
    browser.complaints()
    seen = "[...document.querySelectorAll('figure.image')].find((each) => each.textContent.includes(arguments[0]))"
    with PageProcess(state) as page:
        go(browser, page.address, "hostile", "training")
        browser.wait_for("document.querySelectorAll('figure.chart canvas').length > 2", "the first curves")
        for section, what in ((1, ".charts canvas"), (2, "img")):
            browser.run("document.querySelectorAll('#view section')[arguments[0]].scrollIntoView()", section)
            drawn = "document.querySelectorAll('#view section')[arguments[0]].querySelector(arguments[1])"
            browser.wait_for(drawn, what, section, what)
        browser.wait_for(f"{seen}?.querySelector('img').naturalWidth === 4", "the whole picture", "whole")
        assert [browser.run(f"return Boolean({seen})", tag) for tag in ("bomb", "negative", "svg")] == [False] * 3
        for words in ("steps", "values", "times"):
            browser.run(
                "const input = document.querySelector('#view input[type=search]'); input.value = arguments[0];"
                "input.dispatchEvent(new Event('input')); document.querySelector('#view section').scrollIntoView()",
                words,
            )
            browser.wait_for("document.querySelector('figure.chart:not([hidden]) canvas')", words)
        go(browser, page.address, "hostile", "parameters")
        browser.wait_for("document.querySelector('.verdict')", "the parameters")
        assert browser.run("return window.hacked === undefined")
        assert browser.count("#main img[src='x'], #main script, #main b") == 0
        assert browser.complaints() == []


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
