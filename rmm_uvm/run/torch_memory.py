# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``--torch``: a program's torch on managed memory, from its import of torch on.

Covers when it is installed and what the summary says of it. Does not cover what it does; see
`rmm_uvm.torch`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from rmm_uvm.drivers import choose_driver
from rmm_uvm.errors import AvailabilityError, ConfigurationError, DriverError, UvmError
from rmm_uvm.integrations.when_imported import when_imported
from rmm_uvm.pool.build import budget_on
from rmm_uvm.residency.budget import Budget, no_automatic_budget, of_torch
from rmm_uvm.run.request import RunRequest
from rmm_uvm.support.requirements import install_extra
from rmm_uvm.support.settings import OF_TORCH
from rmm_uvm.support.units import format_bytes

__all__ = ["TorchRun", "check", "torch_budget"]

_PREFIX = "torch: "


def check(request: RunRequest) -> None:
    """Raise if torch cannot be served, as far as it shows before the program begins.

    Parameters
    ----------
    request : RunRequest
        What was asked for.

    Raises
    ------
    ConfigurationError
        If options contradict each other, or the budget cannot be used.
    AvailabilityError
        If there is no GPU, or no torch.
    """
    if not request.torch:
        given = [
            each.option for name, each in OF_TORCH.items() if getattr(request, name) != each.default
        ]
        given += ["--eager and --no-eager"] * (request.eager is not None)
        if given:
            raise ConfigurationError(f"{given[0]} is for --torch: add it")
        return
    if request.driver is not None:
        raise ConfigurationError(
            "--torch needs a GPU: a program simulates one by rmm_uvm.torch.simulated()"
        )
    if "torch" in request.setting("libraries"):
        raise ConfigurationError(
            "--torch and --libraries torch are two allocators for torch: leave one out"
        )
    if importlib.util.find_spec("torch") is None:
        raise AvailabilityError(f"--torch: PyTorch is not installed: {install_extra('torch')}")
    try:
        torch_budget(request)
    except DriverError as error:
        reason = str(error).partition(";")[0]  # what follows is advice for programs without torch
        raise AvailabilityError(f"--torch needs a GPU: {reason}") from error


def torch_budget(request: RunRequest) -> Budget:
    """Return the budget of RMM's memory and torch's together.

    Raises
    ------
    UvmError
        As `check`, of the GPU and of the size.
    """
    names = ("device_budget", "eviction", "neighbors")
    driver = choose_driver(request.device or 0, "cuda")
    budget = budget_on(driver, *(request.setting(name) for name in names))
    if budget is None:
        possible = driver.info.oversubscribable
        why = no_automatic_budget(driver.info.total_bytes, oversubscribable=possible)
        then = "give --device-budget a size" if possible else "run the program without --torch"
        raise ConfigurationError(
            f"--torch without a budget{f' ({why})' if why else ''}: what torch uses is told to "
            f"one; {then}"
        )
    return of_torch(budget, eager=request.eager)


class TorchRun:
    """Torch's memory in a watched program.

    Parameters
    ----------
    request : RunRequest
        What was asked for.
    shares_pool : bool
        Whether a pool was installed, whose budget torch is to share.
    say : callable
        Tells the user a line, at once.
    """

    def __init__(
        self, request: RunRequest, *, shares_pool: bool, say: Callable[[str], object]
    ) -> None:
        self._request = request
        self._shares_pool = shares_pool
        self._say = say
        self._memory: Any = None
        self._reason = "the program did not import it"
        self._forget: Callable[[], None] = lambda: None

    def begin(self) -> None:
        """Install when the program imports torch; that never fails the program."""
        self._forget = when_imported("torch", self._install)

    def summary(self) -> str:
        """Return a line: what fitted, or what was moved; and why nothing of it was done."""
        self._forget()
        if self._memory is None:
            return f"{_PREFIX}not on managed memory: {self._reason}"
        return _PREFIX + told(self._memory.statistics())

    def _install(self) -> None:
        request = self._request
        options: dict[str, Any] = {"evict": request.evict, "activations": request.activations}
        try:
            if not self._shares_pool:
                options["device_budget"] = torch_budget(request)
                options["maximum"] = request.setting("maximum_pool_size")
            from rmm_uvm.torch import install

            self._memory = install(request.device or 0, **options)
        except UvmError as error:
            self._reason = " ".join(str(error).split())
        except Exception as error:  # the program's import of torch worked, and has to
            self._reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        if self._memory is None:  # at once: the program may run out of memory for it
            self._say(f"{_PREFIX}not on managed memory: {self._reason}")


def told(statistics: dict[str, Any]) -> str:
    """Return in a line what `rmm_uvm.torch.TorchMemory.statistics` says.

    Parameters
    ----------
    statistics : dict
        Of the whole run.

    Examples
    --------
    >>> fitted = {"budget_bytes": 1 << 30, "evicted_bytes": 0}
    >>> told({"acting": False, "residency": fitted, "last_refusal": ""})
    'everything fitted in the budget of 1.00 GiB, nothing was moved'
    """
    residency = statistics["residency"]
    budget = format_bytes(residency["budget_bytes"])
    if not statistics["acting"] and residency["evicted_bytes"]:
        line = (
            f"past the budget of {budget}, and not followed: the main thread ran no Python; "
            f"{format_bytes(residency['evicted_bytes'])} moved to the host"
        )
    elif not statistics["acting"]:
        line = f"everything fitted in the budget of {budget}, nothing was moved"
    else:
        steps = statistics["steps"]
        line = (
            f"past the budget of {budget}: {format_bytes(residency['evicted_bytes'])} moved to the "
            f"host, {format_bytes(residency['fetched_bytes'])} back for uses that waited and "
            f"{format_bytes(residency['fetched_ahead_bytes'])} ahead, "
            f"{format_bytes(residency['dropped_bytes'])} dead and dropped; "
            f"{steps} {'step' if steps == 1 else 'steps'} of optimizers seen since"
        )
    if (copies := statistics.get("activations")) is not None:
        line += (
            f"; {format_bytes(copies['copied_bytes'])} of activations copied to the host, "
            f"{format_bytes(copies['returned_bytes'])} back"
        )
    refusal = " ".join(statistics["last_refusal"].split())
    return f"{line}; refused: {refusal}" if refusal else line
