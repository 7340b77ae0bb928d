# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The request for a plan, parsed and checked before anything is read or replayed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, cast

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.kinds import Kind, OneOf
from rmm_uvm.support.messages import shown
from rmm_uvm.support.settings import PREFETCH_MODES, SETTINGS, PrefetchMode
from rmm_uvm.support.units import format_bytes, parse_bytes, whole_blocks

__all__ = [
    "DEFAULTS",
    "POLICIES",
    "Options",
    "PlanRequest",
    "Policy",
    "checked_request",
    "options_text",
]

Policy = Literal["driver", "discard-dead"]

POLICIES: Final = OneOf(
    {
        "driver": "dead blocks are evicted as live ones are",
        "discard-dead": "dead bytes are discarded when the device is nearly full",
    }
)
"""What a card does with dead blocks."""

_LEAST_CARD_BYTES = 16 << 20
_MOST_CARDS = 32
# From what a trace tells apart to thirty years: figures of a time outside fit no table.
_LEAST_SECONDS, _MOST_SECONDS = 1e-6, 1e9
_Given = TypeVar("_Given")


@dataclass(frozen=True, order=True)
class Options:
    """One way to run a workload.

    Attributes
    ----------
    prefetch : str
        Of `rmm_uvm.reinitialize`: "auto", "always" or "never".
    driver_prefetch_threshold : int
        The UVM kernel driver's ``uvm_perf_prefetch_threshold``, percent, 0 to 100.
    policy : str
        "driver", or "discard-dead": dead bytes are discarded when the device is nearly full.
    """

    prefetch: PrefetchMode = "auto"
    driver_prefetch_threshold: int = 51
    policy: Policy = "driver"


DEFAULTS = Options()
"""What runs where nothing is set."""


def options_text(options: Options) -> str:
    """Return in what a way to run differs from the defaults."""
    differs = []
    if options.prefetch != DEFAULTS.prefetch:
        differs.append(f"prefetch {options.prefetch}")
    if options.driver_prefetch_threshold != DEFAULTS.driver_prefetch_threshold:
        differs.append(f"threshold {options.driver_prefetch_threshold} %")
    if options.policy != DEFAULTS.policy:
        differs.append(options.policy)
    return ", ".join(differs) or "defaults"


@dataclass(frozen=True)
class PlanRequest:
    """The request for a plan, checked.

    Attributes
    ----------
    device_bytes : tuple of int
        Card sizes, whole blocks of 2 MiB, ascending; empty for those that suit the workload.
    options : tuple of Options
        Ways to run on every card, the defaults first.
    alternatives : tuple of Options
        Ways to try only where the defaults move data.
    workers : int
        Processes like the recorded one on a host, each with a card of its own.
    host_bytes : int or None
        Host memory of all of them together; None for as much as they want.
    fitting_seconds : float or None
        Time of the workload with room for everything, 1e-6 to 1e9; None to find it from the
        recording.
    announced : bool
        The program announces its uses.
    third_tier_bytes : int
        What lies behind the host's memory of one process; 0 for none.
    """

    device_bytes: tuple[int, ...]
    options: tuple[Options, ...]
    alternatives: tuple[Options, ...]
    workers: int = 1
    host_bytes: int | None = None
    fitting_seconds: float | None = None
    announced: bool = False
    third_tier_bytes: int = 0

    @property
    def own_host_bytes(self) -> int | None:
        """Host memory of each of them; None for as much as it wants."""
        return None if self.host_bytes is None else self.host_bytes // self.workers


def checked_request(
    device_memory: Iterable[int | str] | None,
    prefetch: Iterable[str] | None,
    driver_prefetch_threshold: Iterable[int],
    policy: Iterable[str],
    workers: int,
    host_memory: int | str | None,
    fitting_seconds: float | None = None,
    *,
    announced: bool = False,
) -> PlanRequest:
    """Return the request.

    Raises
    ------
    ConfigurationError
        If anything in it cannot be used.

    Examples
    --------
    >>> checked_request(["16GiB"], ["auto"], [51, 5], ["driver"], 1, None).options[1]
    Options(prefetch='auto', driver_prefetch_threshold=5, policy='driver')
    """
    modes = None if prefetch is None else _names(prefetch, "prefetch", SETTINGS["prefetch"].kind)
    thresholds = _thresholds(driver_prefetch_threshold)
    policies = _names(policy, "policy", POLICIES)
    asked = _combined(modes or (DEFAULTS.prefetch,), thresholds, policies)
    others = () if modes else _combined(tuple(PREFETCH_MODES), thresholds, policies)
    if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= 4096:
        raise ConfigurationError(f"workers={shown(workers)}: a number of processes, from 1")
    if not isinstance(announced, bool):
        raise ConfigurationError(f"announced={shown(announced)}: True or False")
    if fitting_seconds is not None and not _is_time(fitting_seconds):
        raise ConfigurationError(
            f"fitting_seconds={shown(fitting_seconds)}: a time in seconds, "
            f"{_LEAST_SECONDS:g} to {_MOST_SECONDS:g}"
        )
    return PlanRequest(
        device_bytes=() if device_memory is None else _cards(device_memory),
        options=(DEFAULTS, *(one for one in asked if one != DEFAULTS)),
        alternatives=tuple(one for one in others if one not in asked and one != DEFAULTS),
        workers=workers,
        host_bytes=None if host_memory is None else parse_bytes(host_memory, "host_memory"),
        fitting_seconds=fitting_seconds,
        announced=announced,
    )


def _is_time(seconds: object) -> bool:
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return is_number and _LEAST_SECONDS <= cast(float, seconds) <= _MOST_SECONDS


def _combined(
    modes: Sequence[str], thresholds: Sequence[int], policies: Sequence[str]
) -> tuple[Options, ...]:
    return tuple(
        Options(cast(PrefetchMode, mode), threshold, cast(Policy, one))
        for one in policies
        for threshold in thresholds
        for mode in modes
    )


def _cards(given: Iterable[int | str]) -> tuple[int, ...]:
    sizes = []
    for one in _listed(given, "device_memory"):
        size = parse_bytes(one, "device_memory")
        if size < _LEAST_CARD_BYTES:
            raise ConfigurationError(
                f"device_memory={shown(one)}: a card has {format_bytes(_LEAST_CARD_BYTES)} at least"
            )
        sizes.append(whole_blocks(size))
    if len(sizes) > _MOST_CARDS:
        raise ConfigurationError(f"device_memory has {len(sizes)} sizes: {_MOST_CARDS} at most")
    _refuse_twice([format_bytes(size) for size in sizes], "device_memory")
    return tuple(sorted(sizes))


def _thresholds(given: Iterable[int]) -> tuple[int, ...]:
    found = _listed(given, "driver_prefetch_threshold")
    for one in found:
        if isinstance(one, bool) or not isinstance(one, int) or not 0 <= one <= 100:
            raise ConfigurationError(
                f"driver_prefetch_threshold={shown(one)}: a whole percentage, 0 to 100"
            )
    _refuse_twice(found, "driver_prefetch_threshold")
    return tuple(found)


def _names(given: Iterable[str], what: str, kind: Kind) -> tuple[str, ...]:
    found = [kind.read(one, what) for one in _listed(given, what)]
    _refuse_twice(found, what)
    return tuple(found)


def _listed(given: Iterable[_Given], what: str) -> list[_Given]:
    """Return the values; one value alone, and a text, are taken for a list of it."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        given = [cast(Any, given)]
    found = list(given)
    if not found:
        raise ConfigurationError(f"{what} is empty: name one at least, or leave it out")
    return found


def _refuse_twice(found: Sequence[object], what: str) -> None:
    for place, one in enumerate(found):
        if one in found[:place]:
            raise ConfigurationError(f"{what} has {one} twice")
