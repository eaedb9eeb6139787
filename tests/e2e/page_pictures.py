"""Pictures of the page over made-up clusters, for people to look at: three widths, light and dark.

    python -m tests.e2e.page_pictures FOLDER
    python -m tests.e2e.page_pictures --documents      writes those in the documents anew: dtfctl/pictures
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.chromium import Browser

ROOT = Path(__file__).resolve().parents[2]
WIDTHS = {"wide": (1280, 800), "middle": (820, 1000), "narrow": (390, 844)}
VIEWS = ("overview", "training", "logs", "life", "parameters", "step")


@contextmanager
def world(folder: Path, tasks: int = 0) -> Iterator[str]:
    """The address of a page over made-up clusters (page_world)."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.page_world", str(folder), "--tasks", str(tasks)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'runtime'}"},
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def settle(browser: Browser, view: str) -> None:
    """Until the view is drawn, and its animations are over."""
    browser.wait_for("document.querySelector(arguments[0])", view, f".view.{view}")
    browser.wait_for("document.getElementById('wrong').textContent", "the snapshot")
    waited = {"overview": ".tile", "training": ".u-over", "logs": ".line", "life": ".stretch", "parameters": ".verdict"}
    browser.wait_for("document.querySelector(arguments[0])", view, waited.get(view, ".view"))
    time.sleep(2.5)


def take(address: str, browser: Browser, folder: Path, cluster: str) -> list[Path]:
    found = []
    browser.open("about:blank")
    browser.open(f"{address}#{cluster}/overview")
    for view in VIEWS:
        browser.run("location.hash = arguments[0]", f"{cluster}/{view}")
        for is_dark in (False, True):
            browser.dark(is_dark)
            for name, (width, height) in WIDTHS.items():
                browser.resize(width, height)
                settle(browser, view)
                path = folder / f"{cluster}-{view}-{name}-{'dark' if is_dark else 'light'}.png"
                browser.picture(path)
                found.append(path)
    return found


def take_for_documents(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as made, world(Path(made)) as address, Browser() as browser:
        browser.resize(*WIDTHS["wide"])
        for view in ("overview", "training"):
            browser.open("about:blank")
            browser.open(f"{address}#crash-loop/{view}")
            settle(browser, view)
            time.sleep(8)  # two looks at the network
            browser.picture(folder / f"{view}.png")


def main() -> None:
    if sys.argv[1:] == ["--documents"]:
        take_for_documents(ROOT / "dtfctl" / "pictures")
        return
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made, world(Path(made), 1000) as address, Browser() as browser:
        for path in take(address, browser, folder, "crash-loop"):
            print(path)
        browser.resize(*WIDTHS["wide"])
        browser.dark(False)
        browser.open("about:blank")
        browser.open(f"{address}#tasks-1000/overview")
        settle(browser, "overview")
        browser.picture(folder / "tasks-1000.png")


if __name__ == "__main__":
    main()
