# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven through its DevTools pipe; it has no network and keeps no profile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    # Whatever a page asks for has nowhere to go.
    "--proxy-server=127.0.0.1:9",
    "--remote-debugging-pipe",
)
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_TIMEOUT_SECONDS = 60.0


class Page:
    """One page: commands go out, answers and events come in.

    Attributes
    ----------
    events : list of dict
        All events so far.
    """

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to_browser, self._from_browser = to_browser, from_browser
        self._buffer = b""
        self._last_id = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the browser's answer to a command."""
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last_id:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def close(self) -> None:
        """Ask the browser to end."""
        self._session = None
        self.call("Browser.close")

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = os.read(self._from_browser, 1 << 20)
            assert chunk, "the browser ended"
            self._buffer += chunk
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def attach(self) -> None:
        """Begin to speak with a new page, and to hear of what it logs and asks for."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Performance.enable", timeDomain="threadTicks")

    def open(self, path: Path, *, width: int = 1200, height: int = 1000) -> None:
        """Show a file in a window of a size."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call("Page.navigate", url=path.as_uri())

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression: str) -> float:
        """Return the page's clock, in seconds since it was asked for, when something is true."""
        end = time.monotonic() + _TIMEOUT_SECONDS
        while time.monotonic() < end:
            if self.evaluate(f"Boolean({expression})"):
                return float(self.evaluate("performance.now()")) / 1e3
        raise AssertionError(f"not within {_TIMEOUT_SECONDS} s: {expression}")

    def processor_seconds(self) -> float:
        """Return the processor time that the page took so far, parsing and drawing included."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))

    @contextmanager
    def inside_frame(self) -> Iterator[None]:
        """Speak with the frame of the page, which has an origin, and so a session, of its own."""
        outside = self._session
        self.call(
            "Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=False, flatten=True
        )
        frames: list[str] = []
        while not frames:
            self.evaluate("0")
            frames = [
                event["params"]["sessionId"]
                for event in self.events
                if event["method"] == "Target.attachedToTarget"
                and event["params"]["targetInfo"]["type"] == "iframe"
            ]
        self._session = frames[-1]
        for domain in ("Runtime", "Log"):
            self.call(f"{domain}.enable")
        yield
        self._session = outside

    def complaints(self) -> list[Any]:
        """Return what the page logged, and what it broke with."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [event["params"] for event in self.events if event["method"] in kinds]

    def requested(self) -> list[str]:
        """Return the addresses that the page asked for, data of its own left out."""
        urls = [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in urls if not url.startswith(("data:", "blob:"))]


def executable() -> str:
    """Return the path of a Chromium; a test needs one, as it needs the package itself."""
    for name in _NAMES:
        if path := shutil.which(name):
            return path
    raise AssertionError(f"none of {', '.join(_NAMES)} is installed: apt-get install chromium")


@contextmanager
def opened(profile: Path) -> Iterator[Page]:
    """Start a browser with an empty profile and give a page of it."""
    to_browser, from_browser = os.pipe(), os.pipe()
    inherited = (to_browser[0], from_browser[1])
    # The browser wants its pipe as descriptors 3 and 4; bash, unlike sh, can dup those above 9.
    command = ["bash", "-c", f'exec "$@" 3<&{inherited[0]} 4>&{inherited[1]}', "bash", executable()]
    process = subprocess.Popen(
        [*command, *_FLAGS, f"--user-data-dir={profile}"],
        pass_fds=inherited,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for descriptor in inherited:
        os.close(descriptor)
    page = Page(to_browser[1], from_browser[0])
    try:
        page.attach()
        yield page
        page.close()
    finally:
        for descriptor in (to_browser[1], from_browser[0]):
            os.close(descriptor)
        process.terminate()
        process.wait()
