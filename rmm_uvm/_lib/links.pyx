# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What links carry (`cpp/include/rmm_uvm/residency/link_measuring.hpp`)."""

from cython.operator cimport dereference
from libc.stddef cimport size_t

from rmm_uvm._lib.account cimport ManagedAccount, managed_account
from rmm_uvm._lib.driver cimport UvmDriver, check, link_rates, status, uvm_driver

cdef extern from "rmm_uvm/residency/link_measuring.hpp" namespace "rmm_uvm" nogil:
    size_t least_link_measuring_bytes
    status measure_links_under "rmm_uvm::measure_links"(
        uvm_driver&, managed_account&, int, link_rates&) noexcept


def measure_links(UvmDriver driver not None, ManagedAccount account not None, neighbor=None):
    """Measure what managed memory migrates at between a device, the host and a neighbour.

    Moves 64 MiB of its own there and back, less where less is left, and takes tens of milliseconds
    on a GPU.

    Parameters
    ----------
    driver : UvmDriver
    account : ManagedAccount
        The cap that the memory counts under meanwhile.
    neighbor : int, optional
        Ordinal of a neighbour that `driver.open_neighbor` opened; by default only the host's link.

    Returns
    -------
    dict of str to int
        ``to_device_bytes_per_second``, ``to_host_bytes_per_second``,
        ``from_neighbor_bytes_per_second``, ``to_neighbor_bytes_per_second``; 0 without neighbour.

    Raises
    ------
    MemoryError
        If less than 8 MiB are left under the cap, on the device or on the neighbour.
    DriverError
        If the neighbour was not opened, or memory cannot be moved here.
    """
    cdef int to = -1 if neighbor is None else neighbor
    cdef link_rates rates
    cdef status result
    with nogil:
        result = measure_links_under(
            dereference(driver.handle), dereference(account.handle), to, rates
        )
    where = "the host" if neighbor is None else f"device {neighbor}"
    check(
        result,
        f"measuring links to {where} with {least_link_measuring_bytes >> 20} MiB or more, for which "
        "there must be room on the device, where they go, and under RMM_UVM_MANAGED_LIMIT"
    )
    return rates
