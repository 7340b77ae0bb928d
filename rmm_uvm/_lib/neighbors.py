# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Opening the neighbours that a budget asks for, and the board on which processes agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.harvest import HarvestBoard
from rmm_uvm.errors import AvailabilityError, ConfigurationError, DriverError, NeighborWarning
from rmm_uvm.residency.troubles import lacking_neighbors
from rmm_uvm.support.units import format_bytes
from rmm_uvm.support.user_line import warn_user

MOST_NEIGHBORS: Final = 8
"""As in C++: a block's record has three bits for which of them it lies on."""


RATES: Final = (
    "to_device_bytes_per_second",
    "to_host_bytes_per_second",
    "from_neighbor_bytes_per_second",
    "to_neighbor_bytes_per_second",
)
"""Fields of `link_rates`, in C++."""


class Asked(Protocol):
    """The parts of a `rmm_uvm.residency.Budget` that are read here."""

    @property
    def neighbors(self) -> str | Iterable[int] | None:
        """Ordinals, "auto" or None."""

    @property
    def board(self) -> str | None:
        """A folder, "auto" or None."""

    @property
    def follows(self) -> bool:
        """Whether it leaves to others what they take."""

    def limit_on(self, device_id: int) -> int | None:
        """Return the most bytes on a neighbour."""


def warn_of_lacking(
    driver: UvmDriver,
    budget: Asked,
    opened: Iterable[int],
    refused: Sequence[str],
) -> None:
    """Warn of neighbours that a budget asks for and that take nothing.

    Parameters
    ----------
    driver : UvmDriver
        Of the device that keeps the budget.
    budget : Budget
        What it asks for.
    opened : iterable of int
        Ordinals of those that take some.
    refused : sequence of str
        Why others do not.

    Warns
    -----
    NeighborWarning
        If one that was named cannot be reached, or "auto" finds none.
    """
    if lacking := lacking_neighbors(budget.neighbors, opened, refused):
        warn_user(
            f"device {driver.info.device_id}: {lacking}; what would lie there goes to the host. "
            "See `rmm-uvm doctor` for who can be whose neighbour",
            NeighborWarning,
        )


def check_named(neighbors: Iterable[int], own: int, count: int) -> None:
    """Refuse neighbours that cannot be.

    Parameters
    ----------
    neighbors : iterable of int
        Ordinals.
    own, count : int
        The ordinal of the device whose memory is to leave, and how many this process sees.

    Raises
    ------
    ConfigurationError
        If one is the device itself, or not there.
    """
    named = list(neighbors)
    if own in named:
        raise ConfigurationError(
            f"neighbors={named}: device {own} is the device itself; name others"
        )
    if others := [device_id for device_id in named if device_id >= count]:
        raise ConfigurationError(
            f"neighbors={named}: there is no device {others[0]}, this process sees "
            f"{count}; name others, or use 'auto'"
        )


def open_neighbors(
    driver: UvmDriver, budget: Asked
) -> tuple[list[tuple[int, int | None]], list[str]]:
    """Open the devices whose idle memory a budget may use, for the process.

    Returns
    -------
    tuple of (list of tuple of (int, int or None), list of str)
        Ordinal and limit in bytes of those that were opened; why others were not.

    Raises
    ------
    ConfigurationError
        If one that was named is the driver's own or does not exist, or if a limit is more than its
        device has.
    """
    own, count = driver.info.device_id, driver.device_count
    named: tuple[int, ...] = ()
    if budget.neighbors is not None and not isinstance(budget.neighbors, str):
        named = tuple(budget.neighbors)
    check_named(named, own, count)
    asked = range(count) if budget.neighbors == "auto" else named
    opened: list[tuple[int, int | None]] = []
    refused: list[str] = []
    for device_id in asked:
        if device_id == own or len(opened) == MOST_NEIGHBORS:
            continue
        answer = driver.open_neighbor(device_id)
        if not answer:
            refused.append(answer.reason)
            continue
        limit_bytes = budget.limit_on(device_id)
        if limit_bytes is not None:
            total_bytes = driver.neighbor_memory(device_id)[1]
            if limit_bytes > total_bytes:
                raise ConfigurationError(
                    f"harvest_limit is {format_bytes(limit_bytes)} on device {device_id}, which "
                    f"has {format_bytes(total_bytes)}: give less"
                )
        opened.append((device_id, limit_bytes))
    return opened, refused


def slowest_rates(driver: UvmDriver, neighbors: Iterable[int]) -> tuple[dict[str, int], str]:
    """Return what the links to neighbours carry, the slowest of them, or 0 and why not known.

    Measures with memory that counts under the process' cap: tens of milliseconds a neighbour.
    """
    from rmm_uvm._lib.limits import process_account
    from rmm_uvm._lib.links import measure_links

    found: list[dict[str, int]] = []
    for device_id in neighbors:
        try:
            found.append(measure_links(driver, process_account(), device_id))
        except (MemoryError, DriverError) as error:  # then nothing is used in place
            return dict.fromkeys(RATES, 0), f"the link to device {device_id}: {error}"
    return {name: min(rates[name] for rates in found) for name in RATES}, ""


def join_board(driver: UvmDriver, budget: Asked) -> tuple[HarvestBoard | None, str]:
    """Return a place on the board that a budget asks for, and why there is none."""
    own = budget.board == "auto" and bool(driver.info.simulated)
    if budget.neighbors is None and (own or not budget.follows):
        return None, ""  # nobody to agree with
    if budget.board is None:
        return None, "as asked"
    if own:
        return None, "a simulated device is its process' own"
    try:
        return HarvestBoard(None if budget.board == "auto" else budget.board), ""
    except AvailabilityError as error:
        return None, str(error)
