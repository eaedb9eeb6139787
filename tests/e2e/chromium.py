"""Debian's Chromium, driven through chromedriver by the WebDriver protocol: one session, with a profile of its own.

Source: https://www.w3.org/TR/webdriver2. No package is needed for the few commands that the tests use.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.ports import free_ports
from tests.waiting import wait_until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")
WHY_NONE = "Chromium and chromedriver are not installed (Debian: apt-get install chromium chromium-driver)"
IS_THERE = bool(CHROMIUM and CHROMEDRIVER)

ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --force-device-scale-factor=1"
).split()


class Browser:
    """`with Browser() as browser`: ends with all its processes, and its profile is removed."""

    def __init__(self, width: int = 1400, height: int = 900) -> None:
        self._profile = tempfile.mkdtemp(prefix="chromium-")
        self._port = free_ports(1)[0]
        self._driver = subprocess.Popen(
            [str(CHROMEDRIVER), f"--port={self._port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._session = ""
        options = {
            "binary": CHROMIUM,
            "args": [*ARGUMENTS, f"--user-data-dir={self._profile}", f"--window-size={width},{height}"],
        }
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        try:
            wait_until(self._is_ready, "chromedriver")
            made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self._session = f"/session/{made['sessionId']}"
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        try:
            if self._session:
                self._call("DELETE", self._session)
        finally:
            os.killpg(self._driver.pid, signal.SIGKILL)
            self._driver.wait()
            shutil.rmtree(self._profile, ignore_errors=True)

    def open(self, address: str) -> None:
        self._call("POST", f"{self._session}/url", {"url": address})

    def tab(self) -> str:
        """Opens another tab; its handle is for `turn_to`. Pages of other tabs go on."""
        return str(self._call("POST", f"{self._session}/window/new", {"type": "tab"})["handle"])

    def turn_to(self, tab: str) -> None:
        self._call("POST", f"{self._session}/window", {"handle": tab})

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that a script returns; `arguments` are its `arguments`."""
        return self._call("POST", f"{self._session}/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector: str) -> str:
        """The text of the first element that fits, "" without one."""
        return str(self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector))

    def count(self, selector: str) -> int:
        return int(self.run("return document.querySelectorAll(arguments[0]).length", selector))

    def wait_for(self, script: str, what: str, *arguments: Any, timeout_s: float = 60.0) -> Any:
        """The first true value of an expression."""
        return wait_until(lambda: self.run(f"return {script}", *arguments), what, timeout_s)

    def click(self, selector: str) -> None:
        """A real click, at the middle of the first element that fits."""
        found = self._call("POST", f"{self._session}/element", {"using": "css selector", "value": selector})
        self._call("POST", f"{self._session}/element/{next(iter(found.values()))}/click", {})

    def type(self, selector: str, text: str) -> None:
        found = self._call("POST", f"{self._session}/element", {"using": "css selector", "value": selector})
        self._call("POST", f"{self._session}/element/{next(iter(found.values()))}/value", {"text": text})

    def press(self, key: str) -> None:
        keys = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        actions = {"actions": [{"type": "key", "id": "keys", "actions": keys}]}
        self._call("POST", f"{self._session}/actions", actions)

    def drag(self, selector: str, begin: float, end: float) -> None:
        """With the mouse, from one part of an element's width to another, in its middle."""
        box = self.run(
            "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'});"
            "const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]",
            selector,
        )

        def move(part: float) -> dict[str, Any]:
            x, y = int(box[0] + part * box[2]), int(box[1] + box[3] / 2)
            return {"type": "pointerMove", "duration": 60, "x": x, "y": y}

        steps = [move(begin), {"type": "pointerDown", "button": 0}]
        steps += [move((begin + end) / 2), move(end)] if end != begin else []
        steps.append({"type": "pointerUp", "button": 0})
        pointer = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": steps}
        self._call("POST", f"{self._session}/actions", {"actions": [pointer]})

    def resize(self, width: int, height: int) -> None:
        """The page's own size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.devtools("Emulation.setDeviceMetricsOverride", **size)

    def devtools(self, command: str, **parameters: Any) -> Any:
        return self._call("POST", f"{self._session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def dark(self, is_dark: bool) -> None:
        value = "dark" if is_dark else "light"
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._call("GET", f"{self._session}/screenshot")))

    def complaints(self) -> list[str]:
        """What the page's console has said since the last call: errors of scripts, refused by the policy, not found."""
        found = self._call("POST", f"{self._session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in found if entry["level"] in ("SEVERE", "WARNING")]

    def requested(self) -> set[str]:
        """The addresses that the browser has asked for since the last call."""
        found = self._call("POST", f"{self._session}/se/log", {"type": "performance"})
        messages = (json.loads(entry["message"])["message"] for entry in found)
        return {
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        }

    def _is_ready(self) -> bool:
        try:
            return bool(self._call("GET", "/status")["ready"])
        except OSError:
            return False

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", data, method=method)
        request.add_header("content-type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            with error:
                found = json.load(error)["value"]
            raise AssertionError(f"{path}: {found['error']}: {found['message'].splitlines()[0]}") from None


