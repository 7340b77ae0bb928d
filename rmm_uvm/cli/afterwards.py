# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Doing something when click has let go of the process."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Afterwards"]


class Afterwards(BaseException):
    """Carries what is to run last, through click.

    A program that ran inside click would find its context, and click would catch its exceptions.

    Parameters
    ----------
    run : callable
        What to run.
    """

    def __init__(self, run: Callable[[], None]) -> None:
        super().__init__()
        self.run = run
