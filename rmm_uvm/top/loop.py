# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The live display: look, show, wait, until somebody leaves or everything has ended."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.live import Live

from rmm_uvm.top.gather import Gatherer
from rmm_uvm.top.render import render
from rmm_uvm.top.terminal import Terminal
from rmm_uvm.top.view import View

__all__ = ["can_live", "look_twice", "run_live", "shown"]

_POLL_SECONDS = 0.25  # a process that ends is let go after this; a key answers as quickly


def can_live(console: Console) -> bool:
    """Whether the output is a terminal on which a display can be renewed."""
    return console.is_terminal and not console.is_dumb_terminal


def shown(view: View, console: Console, *, live: bool = False) -> Any:
    """Return a view as this console can show it."""
    return render(
        view,
        console.width,
        console.height if live else None,
        live=live,
        plain_ascii=not console.encoding.lower().startswith("utf"),
    )


def look_twice(gatherer: Gatherer, interval_seconds: float) -> View:
    """Return a view with rates: between two looks."""
    gatherer.look()
    _wait(gatherer, interval_seconds, _sleep)
    return gatherer.look()


def run_live(gatherer: Gatherer, console: Console, interval_seconds: float) -> None:
    """Show views until ``q``, Ctrl-C, or the end of all processes that were named.

    The last view stays on the terminal.
    """
    view = gatherer.look()
    with (
        contextlib.suppress(KeyboardInterrupt),
        Terminal() as terminal,
        Live(
            shown(view, console, live=True), console=console, screen=True, auto_refresh=False
        ) as display,
    ):

        def show() -> None:
            display.start()
            display.update(shown(view, console, live=True), refresh=True)

        def pressed_within(seconds: float) -> bool:
            leaves = terminal.pressed_q(seconds)
            if not leaves:
                terminal.heed_stops(display.stop, show)
            return leaves

        while not gatherer.all_ended:
            if _wait(gatherer, interval_seconds, pressed_within):
                break
            view = gatherer.look()
            display.update(shown(view, console, live=True), refresh=True)
    console.print(shown(view, console))


def _wait(
    gatherer: Gatherer, interval_seconds: float, pressed_within: Callable[[float], bool]
) -> bool:
    """Wait for the next look, letting go of what ends meanwhile; return whether to leave."""
    end = time.monotonic() + interval_seconds
    while (left := end - time.monotonic()) > 0:
        if pressed_within(min(left, _POLL_SECONDS)):
            return True
        gatherer.poll()
    return False


def _sleep(seconds: float) -> bool:
    """Wait where there are no keys; return that none was pressed."""
    time.sleep(seconds)
    return False
