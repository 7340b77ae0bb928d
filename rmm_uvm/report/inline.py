# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The timeline under a cell of a notebook: a page in a frame, so that no style leaks."""

from __future__ import annotations

import html

from rmm_uvm.recording.recorded import Recording
from rmm_uvm.report.advice import collect
from rmm_uvm.report.page import chart_pixels, page

__all__ = ["inline"]

_MOST_PIXELS = 1600  # then the frame scrolls


def inline(recording: Recording) -> str:
    """Return an ``iframe`` that holds the page and may neither reach the notebook nor the network.

    Raises
    ------
    AvailabilityError
        Bokeh is not installed.
    """
    text = page(recording, inline=True)
    # In ASCII: one letter that is read in another encoding, and the hash of a script is wrong.
    text = html.escape(text).encode("ascii", "xmlcharrefreplace").decode()
    height = 190 + 68 * len(collect(recording.findings)) + chart_pixels(recording)
    # Without "allow-same-origin" the frame has an origin of its own.
    # In a div, since IPython warns of HTML that is a frame and nothing else.
    return (
        f'<div><iframe title="memory report" sandbox="allow-scripts allow-downloads" '
        f'style="width: 100%; height: {min(height, _MOST_PIXELS)}px; border: 1px solid #c8c8c8" '
        f'srcdoc="{text}"></iframe></div>'
    )
