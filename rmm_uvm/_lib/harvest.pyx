# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The board of offers and claims of idle device memory (`cpp/include/rmm_uvm/ipc`)."""

from cython.operator cimport dereference
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t
from libc.string cimport memcpy
from libcpp cimport bool
from libcpp.memory cimport make_shared, shared_ptr, static_pointer_cast
from libcpp.string cimport string
from libcpp.utility cimport move
from libcpp.vector cimport vector

from rmm_uvm._lib.driver cimport as_availability, uuid_bytes
from rmm_uvm._lib.harvest cimport (
    HarvestBoard,
    NeighborLender,
    board_lender,
    board_sharing,
    budget_sharing,
    harvest_board,
    harvest_view,
    look_at_harvest_board,
    named_device,
    neighbor_lender,
    open_harvest_board,
    opened_harvest_board,
    usual_directory,
)

import os
import uuid as uuids

from rmm_uvm.errors import AvailabilityError, ConfigurationError

USUAL_DIRECTORY = (<bytes>usual_directory).decode()


cdef uuid_bytes _uuid(device) except *:
    cdef uuid_bytes found
    cdef bytes raw
    text = str(device)
    try:
        raw = uuids.UUID(text.removeprefix("GPU-").removeprefix("MIG-")).bytes
    except ValueError:
        raise ConfigurationError(
            f"a device is named by its UUID, such as \"GPU-...\", not {device!r}: nvidia-smi -L "
            "lists them"
        ) from None
    memcpy(found.data(), <const char*>raw, 16)
    return found


cdef str _text(uuid_bytes uuid):
    return f"GPU-{uuids.UUID(bytes=(<char*>uuid.data())[:16])}"


cdef string _directory(directory) except *:
    return os.fsencode(USUAL_DIRECTORY if directory is None else directory)


def look(directory=None):
    """Read a board without joining it.

    Parameters
    ----------
    directory : path-like, optional
        Where the board is; ``/dev/shm`` if none.

    Returns
    -------
    tuple
        Availability, path, ids of the processes that have joined, and a tuple for each process and
        device of which it says anything: process, uuid, offered bytes or none, busy, claimed bytes,
        bytes of these that have yet to come.
    """
    cdef string where = _directory(directory)
    cdef harvest_view view
    with nogil:
        view = look_at_harvest_board(where)
    entries = []
    for entry in range(view.entries.size()):
        entries.append((
            view.entries[entry].process_id,
            _text(view.entries[entry].device),
            view.entries[entry].offered_bytes if view.entries[entry].offers else None,
            view.entries[entry].busy,
            view.entries[entry].holding.claimed_bytes,
            view.entries[entry].holding.coming_bytes,
        ))
    processes = tuple(view.processes[one] for one in range(view.processes.size()))
    return as_availability(view.readable), os.fsdecode(view.path), processes, tuple(entries)


cdef class NeighborLender:
    """What a residency manager asks for memory of other devices; made by `HarvestBoard.lender`.

    Devices are CUDA ordinals of this process; a device that the lender was not told of grants
    nothing. Bytes are whole blocks of 2 MiB. Thread-safe.
    """

    def __init__(self):
        raise TypeError("a lender is made by HarvestBoard.lender")

    def claim(self, int device_id, size_t nbytes, size_t free_bytes, size_t reserve_bytes):
        """Return the bytes granted, at most `nbytes`; see `HarvestBoard.claim`."""
        return dereference(self.handle).claim(device_id, nbytes, free_bytes, reserve_bytes)

    def placed(self, int device_id, size_t nbytes):
        """Say that claimed bytes are there now."""
        dereference(self.handle).placed(device_id, nbytes)

    def cancel(self, int device_id, size_t nbytes):
        """Give back claimed bytes that did not come."""
        dereference(self.handle).cancel(device_id, nbytes)

    def release(self, int device_id, size_t nbytes):
        """Give back bytes that have left."""
        dereference(self.handle).release(device_id, nbytes)

    def excess(self, int device_id, size_t shortage_bytes=0):
        """Return the bytes to give back there; see `HarvestBoard.excess`."""
        return dereference(self.handle).excess(device_id, shortage_bytes)

    def held(self, int device_id):
        """Return the bytes that this process has claimed there."""
        return dereference(self.handle).held(device_id)

    def busy(self, int device_id):
        """Return whether a program there wants its links for itself."""
        return dereference(self.handle).busy(device_id)


cdef class HarvestBoard:
    """This process' place on the board where processes agree about idle device memory.

    Owners of a device offer what others may hold of it; harvesters claim. The place, with all that
    stands there, ends with this object or with the process, however it ends. Devices are named by
    UUID; bytes count in whole blocks of 2 MiB.

    Parameters
    ----------
    directory : path-like, optional
        Where the board is; ``/dev/shm`` if none. All that shall agree need the same.

    Raises
    ------
    rmm_uvm.errors.AvailabilityError
        If there can be no board, or it is full.

    Notes
    -----
    Thread-safe. In a forked child the object is of no use: `usable` says so, and every call answers
    as for an empty board.

    Examples
    --------
    >>> import tempfile
    >>> from rmm_uvm._lib.harvest import HarvestBoard
    >>> directory = tempfile.TemporaryDirectory()
    >>> owner, harvester = HarvestBoard(directory.name), HarvestBoard(directory.name)
    >>> gpu = "GPU-00000000-0000-0000-0000-000000000001"
    >>> owner.offer(gpu, 64 << 20)
    True
    >>> harvester.claim(gpu, 100 << 20, free_bytes=1 << 30, reserve_bytes=0) >> 20
    64
    >>> owner.offer(gpu, 16 << 20)
    True
    >>> harvester.excess(gpu) >> 20
    48
    >>> directory.cleanup()
    """

    def __init__(self, directory=None):
        cdef string where = _directory(directory)
        cdef opened_harvest_board opened
        with nogil:
            opened = move(open_harvest_board(where))
        if opened.board.get() == NULL:
            raise AvailabilityError(os.fsdecode(opened.reason))
        self.handle = shared_ptr[harvest_board](move(opened.board))

    @property
    def usable(self):
        """Whether others still see this process here, a `rmm_uvm.machine.device_info.Availability`."""
        return as_availability(dereference(self.handle).usable())

    def offer(self, device, size_t nbytes):
        """Let others hold so much together from now on.

        Parameters
        ----------
        device : str
            UUID of a device on which this process runs.
        nbytes : int
            At most so much; 0 for nothing. Of several offers for a device the least counts.

        Returns
        -------
        bool
            Whether it stands there: not after 16 devices, nor on a board that was removed.
        """
        cdef uuid_bytes uuid = _uuid(device)
        cdef bool told
        with nogil:
            told = dereference(self.handle).offer(uuid, nbytes)
        return told

    def withdraw(self, device):
        """End an offer: others go by free memory again."""
        dereference(self.handle).withdraw(_uuid(device))

    def claimed_by_others(self, device):
        """Return the bytes that others hold there."""
        return dereference(self.handle).claimed_by_others(_uuid(device))

    def set_busy(self, device, bool busy):
        """Say whether the device's links are busy, so that others hold back; whether it stands."""
        cdef uuid_bytes uuid = _uuid(device)
        cdef bool told
        with nogil:
            told = dereference(self.handle).set_busy(uuid, busy)
        return told

    def claim(self, device, size_t nbytes, *, size_t free_bytes, size_t reserve_bytes):
        """Ask for memory of a device.

        Parameters
        ----------
        device : str
            UUID.
        nbytes : int
            How much.
        free_bytes, reserve_bytes : int
            Free there as the driver says now, and what shall stay so. An offer is granted from no
            more than that.

        Returns
        -------
        int
            Bytes granted, whole blocks, 0 to `nbytes`.
        """
        cdef uuid_bytes uuid = _uuid(device)
        cdef size_t granted
        with nogil:  # may wait for another claimant
            granted = dereference(self.handle).claim(uuid, nbytes, free_bytes, reserve_bytes)
        return granted

    def placed(self, device, size_t nbytes):
        """Say that claimed bytes are there now: free memory shows them."""
        dereference(self.handle).placed(_uuid(device), nbytes)

    def cancel(self, device, size_t nbytes):
        """Give back claimed bytes that are not placed, and will not be."""
        dereference(self.handle).cancel(_uuid(device), nbytes)

    def release(self, device, size_t nbytes):
        """Give back placed bytes that have left."""
        dereference(self.handle).release(_uuid(device), nbytes)

    def held(self, device):
        """Return the bytes that this process has claimed there."""
        return dereference(self.handle).held(_uuid(device))

    def excess(self, device, size_t shortage_bytes=0):
        """Return what this process has to give back there, of all that it holds now.

        Parameters
        ----------
        device : str
            UUID.
        shortage_bytes : int
            What free memory there lacks to its reserve.

        Returns
        -------
        int
            This process' share, whole blocks.
        """
        return dereference(self.handle).excess(_uuid(device), shortage_bytes)

    def busy(self, device):
        """Return whether another process says that the device's links are busy."""
        return dereference(self.handle).busy(_uuid(device))

    def lender(self, devices):
        """Return this place as a residency manager asks it.

        Parameters
        ----------
        devices : dict of int to str
            UUIDs by CUDA ordinal, of all devices that will be asked for.

        Returns
        -------
        NeighborLender
            It keeps the place as long as it lives.
        """
        cdef vector[named_device] named
        cdef named_device one
        for device_id, device in devices.items():
            one.device_id = device_id
            one.uuid = _uuid(device)
            named.push_back(one)
        cdef NeighborLender made = NeighborLender.__new__(NeighborLender)
        made.handle = static_pointer_cast[neighbor_lender, board_lender](
            make_shared[board_lender](self.handle, named)
        )
        return made

    cdef shared_ptr[budget_sharing] sharing(self, device) except *:
        """Return this place as a budget that follows tells others of its device what it wants."""
        return static_pointer_cast[budget_sharing, board_sharing](
            make_shared[board_sharing](self.handle, _uuid(device))
        )
