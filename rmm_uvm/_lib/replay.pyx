# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings replayed on a simulated device (`cpp/include/rmm_uvm/replay`)."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cython.operator cimport dereference
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t
from libcpp cimport bool
from libcpp.vector cimport vector

from rmm_uvm._lib.driver cimport memory_range
from rmm_uvm._lib.replay cimport (
    Replayer,
    event_span,
    optional_record,
    out_of_memory_record,
    replay_event,
    replay_settings,
    replayer,
    slab_span,
    stage_totals,
    timeline_point,
)
from rmm_uvm._lib.residency cimport as_mode
from rmm_uvm._lib.sim cimport SimulatedDevice, simulated_statistics

EVENT_BYTES = sizeof(replay_event)
POINT_BYTES = sizeof(timeline_point)


cdef class Replayer:
    """Does on a simulated device what a recorded program did; see `rmm_uvm.planner.trials.replaying`.

    Parameters
    ----------
    device : SimulatedDevice
        Fresh; for this replay alone.
    slabs : sequence of (int, int)
        Recorded address and bytes of each slab: whole blocks of 2 MiB, ascending and apart.
    prefetch : {"auto", "always", "never"}
        Mode of the chain's resource and adaptor.
    discard_dead : bool
        Drop blocks without a live byte while the device is nearly full.
    stage_count : int
        Stages that events name; >= 1.
    last_time_ns : int
        Time of the recording's last event; divides the timeline.

    Raises
    ------
    ValueError
        If the slabs are not so, there is no stage, or the mode is none of these.
    MemoryError
        If this process has no addresses for a slab.

    Notes
    -----
    Not thread-safe. `feed` does not hold Python's lock.
    """

    def __init__(
        self,
        SimulatedDevice device not None,
        slabs,
        *,
        prefetch,
        bool discard_dead,
        size_t stage_count,
        uint64_t last_time_ns,
    ):
        cdef vector[memory_range] ranges
        cdef memory_range slab
        for address, nbytes in slabs:
            slab.address = address
            slab.bytes = nbytes
            ranges.push_back(slab)
        cdef replay_settings settings
        settings.mode = as_mode(prefetch)
        settings.discard_dead = discard_dead
        settings.stage_count = stage_count
        settings.last_time_ns = last_time_ns
        self.handle.reset(
            new replayer(device.model, slab_span(ranges.data(), ranges.size()), settings)
        )

    def feed(self, const uint8_t[::1] events not None):
        """Replay events, after those that were replayed before.

        Parameters
        ----------
        events : buffer
            Contiguous events of 32 bytes each, as `REPLAY_DTYPE` lays them out.

        Returns
        -------
        bool
            Whether to go on: False once memory ran out.

        Raises
        ------
        ValueError
            Naming the first event that is unusable; the replay cannot go on then.
        """
        cdef size_t nbytes = len(events)
        if nbytes % sizeof(replay_event):
            raise ValueError(f"events take {EVENT_BYTES} bytes each: {nbytes} are not whole events")
        cdef size_t count = nbytes // sizeof(replay_event)
        if count == 0:
            return not dereference(self.handle).out_of_memory().has_value()
        cdef const uint8_t* first = &events[0]
        cdef bool go_on
        with nogil:
            dereference(self.handle).feed(event_span(<const replay_event*>first, count))
            go_on = not dereference(self.handle).out_of_memory().has_value()
        return go_on

    def finish(self):
        """Close the last stage and the timeline; to be called after the last event, once."""
        dereference(self.handle).finish()

    @property
    def replayed(self):
        """Events replayed, the one that ran out of memory not included."""
        return dereference(self.handle).replayed()

    @property
    def peak_live_bytes(self):
        """The most bytes allocated at once."""
        return dereference(self.handle).peak_live_bytes()

    def out_of_memory(self):
        """Where memory ran out: a dict of ``record``, ``stage`` and ``bytes``; None if it did not."""
        cdef optional_record found = dereference(self.handle).out_of_memory()
        cdef out_of_memory_record record
        if not found.has_value():
            return None
        record = found.value()
        return record

    def stages(self):
        """What each stage moved: a list of dicts."""
        cdef vector[stage_totals] totals = dereference(self.handle).stages()
        cdef stage_totals one
        result = []
        for one in totals:
            result.append(one)
        return result

    def points(self):
        """The timeline: five unsigned 64-bit integers a point, as bytes."""
        cdef const vector[timeline_point]* points = &dereference(self.handle).points()
        return PyBytes_FromStringAndSize(
            <const char*>points.data(), points.size() * sizeof(timeline_point)
        )

    def statistics(self):
        """What the device counted: as `SimulatedDevice.statistics`."""
        cdef simulated_statistics s = dereference(self.handle).statistics()
        return s
