# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whose code runs, told from frames."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import rmm_uvm
from rmm_uvm.watch.telling.user_code import Place, place_of


def here() -> Place:
    return place_of(sys._getframe(0))


def called_from(filename: str, module: str, call: Callable[[], Any]) -> Any:
    """Call a function from a frame that claims to be of a file and a module."""
    space: dict[str, Any] = {"__name__": module}
    exec(compile("def run_code(call):\n    return call()\n", filename, "exec"), space)
    return space["run_code"](call)


def place_in(filename: str, module: str) -> Place:
    """Return the place of a made-up innermost frame, called from this test."""
    return place_of(called_from(filename, module, lambda: sys._getframe(1)))


def name_of(frame: FrameType | None) -> str:
    return "" if frame is None else frame.f_code.co_filename


def test_users_own_frame_is_found() -> None:
    place = here()
    assert name_of(place.frame) == __file__
    assert (place.steady, place.in_cell) == (True, False)


def test_frames_of_this_package_are_passed_over_and_not_steady() -> None:
    place = place_in(str(Path(rmm_uvm.__file__).parent / "made_up.py"), "rmm_uvm.made_up")
    assert name_of(place.frame) == __file__
    assert not place.steady


def test_frames_of_libraries_are_passed_over() -> None:
    place = place_in(json.__file__, "json")
    assert name_of(place.frame) == __file__
    assert place.steady


def test_package_that_runs_the_users_script_is_steady() -> None:
    ours = str(Path(rmm_uvm.__file__).parent / "made_up.py")
    place = called_from(ours, "rmm_uvm.cli.run", here)
    assert name_of(place.frame) == __file__
    assert place.steady


def test_cell_is_told_by_the_shell_that_runs_it() -> None:
    place = called_from("interactiveshell.py", "IPython.core.interactiveshell", here)
    assert place.in_cell


def test_event_loop_that_waits_is_not_steady() -> None:
    places: list[Place] = []

    async def main() -> None:
        places.append(here())
        # A callback of a library's: no frame of the user's on this side of the loop.
        space: dict[str, Any] = {"sys": sys, "place_of": place_of, "__name__": "selectors"}
        code = "def look(places): places.append(place_of(sys._getframe(0)))"
        exec(compile(code, asyncio.__file__, "exec"), space)
        asyncio.get_running_loop().call_soon(space["look"], places)
        await asyncio.sleep(0)

    asyncio.run(main())
    in_coroutine, in_loop = places
    assert (in_coroutine.steady, name_of(in_coroutine.frame)) == (True, __file__)
    assert (in_loop.steady, name_of(in_loop.frame)) == (False, __file__)


def test_no_user_code_at_all_gives_the_innermost_frame_of_others() -> None:
    frame = called_from(json.__file__, "json", lambda: sys._getframe(1))

    class Alone:
        """A frame that nobody called."""

        f_code = frame.f_code
        f_globals = frame.f_globals
        f_back = None

    place = place_of(Alone())  # type: ignore[arg-type]
    assert name_of(place.frame) == json.__file__
    assert not place.steady


def test_no_frame_at_all_is_a_place_too() -> None:
    assert place_of(None) == Place(None, steady=False, in_cell=False)
