# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The request to ``rmm-uvm run``, as one value that travels to a child process."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Literal

from rmm_uvm.support.settings import OF_TORCH, SETTINGS, Activations, Evict

__all__ = ["RunRequest"]

_OF_OTHERS = ("libraries",)  # of the program: they say nothing of its memory
_OF_TORCH_TOO = ("--device-budget", "--eviction", "--neighbors")


@dataclasses.dataclass(frozen=True)
class RunRequest:
    """How to run a program; names are those of the options.

    Parameters
    ----------
    pool : bool
        Install the managed pool; otherwise memory is left alone.
    driver : str or None
        "simulated", "simulated:SIZE" or "simulated:SIZE@MACHINE"; None is the GPU, or
        ``RMM_UVM_DRIVER``.
    device : int or None
        CUDA ordinal; None: the first one, and none if there is none.
    settings : mapping of str to object
        Plain values of settings of the pool that were given, by the name that
        `rmm_uvm.reinitialize` has for them.
    torch : bool
        Have the program's torch allocate managed memory; see `rmm_uvm.torch.install`.
    evict : {"all", "activations"}
        With `torch`: what may leave the device.
    activations : {"migrate", "copy", "auto"}
        With `torch`: how what autograd keeps leaves.
    eager : bool or None
        With `torch`: fetch what comes next ahead of its use; None: where modules have no
        gradients.
    interval_seconds : float
        Between two samples, > 0.
    attribution, faults, lines : bool
        What else to watch; each costs, see docs/use/metrics.md.
    html, json, trace : str or None
        Absolute paths of files to write.
    advise : bool
        Do the run again on a model when it has ended, in other ways.
    scratch : str or None
        A folder for a trace that nobody keeps, removed at the end.
    on_finding : {"warn", "log", "raise"}
        How warnings reach the program.
    quiet : bool
        Print no summary.
    """

    pool: bool = True
    driver: str | None = None
    device: int | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    torch: bool = False
    evict: Evict = OF_TORCH["evict"].default
    activations: Activations = OF_TORCH["activations"].default
    eager: bool | None = None
    interval_seconds: float = 0.1
    attribution: bool = False
    faults: bool = False
    lines: bool = False
    html: str | None = None
    json: str | None = None
    trace: str | None = None
    advise: bool = False
    scratch: str | None = None
    on_finding: Literal["warn", "log", "raise"] = "warn"
    quiet: bool = False

    @property
    def written_trace(self) -> str | None:
        """The trace that is written, kept or not."""
        return self.trace or (self.scratch and f"{self.scratch}/run.trace")

    def setting(self, name: str) -> Any:
        """Return the plain value of a setting of the pool; its default where none was given."""
        return self.settings.get(name, SETTINGS[name].default)

    def of_pool(self) -> list[str]:
        """Return the options of the pool that were given, as a person writes them.

        Examples
        --------
        >>> RunRequest(settings={"initial_pool_size": 1 << 30, "prefetch": "never"}).of_pool()
        ['--pool-size', '--prefetch']
        """
        return [
            each.option
            for name, each in SETTINGS.items()
            if each.option and self.setting(name) != each.default and name not in _OF_OTHERS
        ]

    def unused(self) -> list[str]:
        """Return a line of what was given and has nothing to apply to; empty without such."""
        given = [] if self.pool else self.of_pool()
        if self.torch:  # whose memory has a budget of its own
            given = [name for name in given if name not in _OF_TORCH_TOO]
        return [f"--no-pool: there is no pool for {', '.join(given)}"] if given else []

    def to_json(self) -> str:
        """Return the request as text.

        Examples
        --------
        >>> RunRequest.from_json(RunRequest(pool=False).to_json()) == RunRequest(pool=False)
        True
        """
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> RunRequest:
        """Return the request that `to_json` wrote, of the same version of this package."""
        values: dict[str, Any] = json.loads(text)
        given = {name: SETTINGS[name].read(value) for name, value in values["settings"].items()}
        return cls(**{**values, "settings": given})
