# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Copies what autograd keeps and does not fit to pinned host memory, and back before its use.

Copies go beside the kernels, both ways at once. What was kept first is needed last, and leaves, the
largest of it. Its device memory is let go once the program's stream waits for the copy: torch uses
it again in the order of that stream, so that the host waits for nothing.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch

from rmm_uvm.torch.activations.copies import Copy, CopyStates, Kept, Key, Progress, State, key_of
from rmm_uvm.torch.activations.demand import MARGIN_FRACTION, ActivationDemand
from rmm_uvm.torch.activations.host_buffers import HostBuffers
from rmm_uvm.torch.activations.leaving import LargestFirst, address_that_may_leave
from rmm_uvm.torch.activations.saved_tensors import changed
from rmm_uvm.torch.activations.side_streams import SideStreams
from rmm_uvm.torch.extents import SMALL_BYTES, Extent

__all__ = ["CopiedActivations"]

_LEAVING_FRACTION = 1 / 32  # of the budget, on the device still although copied
_MOST_LOOKED_AT = 64  # copies, at one use
_SEVERAL_STREAMS, _NO_HOST_MEMORY = "several_streams", "no_pinned_host_memory"


class CopiedActivations:
    """Hooks for what autograd keeps, see `keep` and `need`. Thread-safe.

    Parameters
    ----------
    streams : SideStreams
        Of the device.
    device : torch.device
        Whose tensors are copied.
    budget_bytes : int
        What fits on it.
    live_bytes : callable
        Returns how much lives on it, and at most did since the last call; takes whether a round
        begins.
    small_bytes : int
        Storages of no more than that are not copied.
    evicted_bytes : callable, optional
        Returns how much live memory was evicted until now.
    confirm : callable, optional
        Is called as a round begins, after one in which copies were enough: nothing was evicted.
    relieve : callable, optional
        Takes how much has to leave as a round begins, and whether live memory was evicted in the
        last one; returns how much less is kept from now on, since it is computed again.
    """

    def __init__(
        self,
        streams: SideStreams,
        device: torch.device,
        budget_bytes: int,
        live_bytes: Callable[[bool], tuple[int, int]],
        small_bytes: int = SMALL_BYTES,
        evicted_bytes: Callable[[], int] = int,
        confirm: Callable[[], object] = bool,
        relieve: Callable[[int, bool], int] | None = None,
    ) -> None:
        self._relieve = relieve
        self._relieved_bytes = 0
        self._streams, self._device = streams, device
        self._hosts = HostBuffers(streams)
        self._live_bytes, self._small_bytes = live_bytes, small_bytes
        self._confirm = confirm
        self._longest_way_bytes = int(budget_bytes * _LEAVING_FRACTION)
        self._most_leaving_bytes = self._longest_way_bytes  # as far as there is room
        self._most_ahead_bytes = self._ahead_room_bytes = int(budget_bytes * MARGIN_FRACTION)
        self._demand = ActivationDemand(budget_bytes - streams.staging_bytes, evicted_bytes)
        self._choice = LargestFirst()
        self._lock = threading.RLock()  # a collection within may end copies
        self._position = self._chosen_total = 0
        self._copies: dict[int, weakref.ref[Copy]] = {}  # by position
        self._leaving: dict[int, weakref.ref[Copy]] = {}  # likewise, the first one first
        self._by_key: weakref.WeakValueDictionary[Key, Copy] = weakref.WeakValueDictionary()
        self._states = CopyStates()
        self._bytes = self._states.bytes_in
        self._away_before = 0  # at the last look
        self._staying: set[int] = set()  # addresses of parameters and buffers
        self._ended = self._several = False
        self._counts = {"copied_bytes": 0, "returned_bytes": 0, "returned_ahead_bytes": 0}
        self._fallbacks = {_SEVERAL_STREAMS: 0, _NO_HOST_MEMORY: 0}

    def stay(self, extents: Iterable[Extent]) -> None:
        """Take note of memory that stays for longer than a step: a copy would free nothing."""
        self._staying.update(address for address, _, _ in extents)

    def several_streams(self) -> None:
        """Copy nothing any more: memory that is let go may be in use in another stream."""
        self._several = True

    def end(self) -> None:
        """Copy nothing any more. What was kept can be had all the same."""
        with self._lock:
            self._ended = True
            # Graphs that are still there lead to us, and no further.
            self._live_bytes = _nothing_lives
            self._demand.evicted_bytes = int
            self._confirm = bool
            self._relieve = None
            try:
                with contextlib.suppress(RuntimeError, MemoryError):  # a device that failed
                    self._let_go(0)
            finally:
                self._hosts.end()

    def is_settled(self) -> bool:
        """Whether it is known what does not fit, so that it is copied as far as it can be."""
        with self._lock:
            is_known = bool(self._demand.needed_bytes or self._relieved_bytes)
            return is_known and not (self._several or self._ended)

    def is_idle(self) -> bool:
        """Whether it is known that nothing has to leave."""
        with self._lock:
            return self._demand.needed_bytes == 0

    def on_moved(self) -> None:
        """Take note that torch gave its free memory back: what comes next gets other places."""
        with self._lock:
            self._demand.on_moved()

    def statistics(self) -> dict[str, Any]:
        """Return bytes until now, and what could not be copied.

        Returns
        -------
        dict
            ``copied_bytes`` to the host, ``returned_bytes`` of them, ``returned_ahead_bytes`` of
            those before their use; ``away_bytes``, on the host only now; ``needed_bytes``, which
            have to leave (None: not known yet); ``staging_bytes`` of the device that copies go
            through, beside the budget; ``fallbacks`` (dict), how many tensors stayed by reason.
        """
        with self._lock:
            return {
                **self._counts,
                "away_bytes": self._bytes[State.AWAY],
                "needed_bytes": self._demand.needed_bytes,
                "staging_bytes": self._streams.staging_bytes,
                "fallbacks": dict(self._fallbacks),
            }

    def keep(self, tensor: torch.Tensor, kept: torch.Tensor, version: int) -> Kept:
        """Return what stands for a tensor in autograd's graph.

        Parameters
        ----------
        tensor : torch.Tensor
            What autograd is about to keep.
        kept : torch.Tensor
            The same without its graph.
        version : int
            Of both.
        """
        # What is kept within a backward pass is needed soon.
        if not self._may_leave(tensor) or torch._C._current_graph_task_id() != -1:
            return Kept(kept, version)
        with self._lock:
            found = Kept(kept, version, self._position)
            self._look(self._position, backward=False)
            key = key_of(tensor)
            copy = self._by_key.get(key)
            if copy is None or copy.ending:
                copy, nbytes = None, kept.untyped_storage().nbytes()
                if self._choice.takes(key, nbytes) and self._demand.needed_bytes != 0:
                    self._chosen_total += 1
                    copy = self._copy(tensor, kept)
                self._position += nbytes
            else:
                self._chosen_total += 1
            if copy is not None:
                found.leave(copy)
            elif self._bytes[State.LEAVING] > self._most_leaving_bytes:
                self._let_go(self._most_leaving_bytes)
            return found

    def progress(self) -> Progress:
        """Return how far autograd has got."""
        return Progress(self._position, self._choice.kept_bytes, self._chosen_total)

    def pass_over(self, kept: Progress) -> None:
        """Take note of what autograd kept without our being told: nothing of it was to leave."""
        with self._lock:
            self._position += kept.position
            self._choice.pass_over(kept.different_bytes)
            self._look(self._position, backward=False)

    def need(self, kept: Kept) -> torch.Tensor:
        """Return the tensor that `keep` was given, and begin to bring back those before it.

        Raises
        ------
        RuntimeError
            Torch's, if it was changed since.
        """
        there = kept.tensor
        if there is not None:
            if there._version != kept.version:
                raise changed(there, kept.version)
            if kept.position is None:
                return there
        with self._lock:
            assert kept.position is not None
            self._look(kept.position, backward=True)
            tensor = self._returned(kept, kept.copy) if there is None else there
            self._look_ahead(kept.position)
            return tensor

    def _may_leave(self, tensor: torch.Tensor) -> bool:
        address = address_that_may_leave(tensor, self._device, self._small_bytes)
        return address != 0 and address not in self._staying

    def _look(self, position: int, *, backward: bool) -> None:
        """Learn what lives on the device, if that may have changed; make room where it is short."""
        demand = self._demand
        if not demand.is_worth_a_look(position, backward=backward):
            return
        begins = demand.is_first_look(backward=backward)
        live_bytes, peak_bytes = self._live_bytes(begins)
        away_bytes, away_before = self._bytes[State.AWAY], self._away_before
        self._away_before = away_bytes
        demand_bytes = live_bytes + away_bytes
        if not begins:  # else no copy helped against what lived before
            demand_bytes = max(demand_bytes, peak_bytes + min(away_bytes, away_before))
        if backward:
            demand.on_need(demand_bytes)
            left_bytes = away_bytes + self._bytes[State.AHEAD]
            self._ahead_room_bytes = demand.ahead_bytes(position, left_bytes)
        elif demand.on_keep(demand_bytes):
            self._hosts.ask_again()
            if self._relieve is not None:
                less_bytes = self._relieve(demand.excess_bytes, demand.was_short)
                self._relieved_bytes += less_bytes
                demand.on_less(less_bytes)
                if self._relieved_bytes and not demand.was_short:
                    demand.needed_bytes = 0  # nothing had to leave: that is near enough
            self._choice.begin(demand.needed_bytes or 0)
            if demand.was_enough:
                self._confirm()
        room_bytes = demand.room_bytes - (live_bytes - self._bytes[State.LEAVING])
        if not backward and demand.is_at_peak(position):
            room_bytes = 0
        self._most_leaving_bytes = max(min(room_bytes, self._longest_way_bytes), 0)
        # Without those that are needed soon.
        before = position - self._most_ahead_bytes if backward else sys.maxsize
        self._let_go(self._most_leaving_bytes, before)

    def _copy(self, tensor: torch.Tensor, kept: torch.Tensor) -> Copy | None:
        """Begin to copy a tensor, if it is to leave and can."""
        needed_bytes = self._demand.needed_bytes
        gone_bytes = self._bytes[State.AWAY] + self._bytes[State.LEAVING]
        if self._ended or (needed_bytes is not None and gone_bytes >= needed_bytes):
            return None
        streams = self._streams
        stream = streams.current()
        if self._several or not streams.is_usual(stream):
            self._fallbacks[_SEVERAL_STREAMS] += 1
            return None
        storage = kept.untyped_storage()
        nbytes = storage.nbytes()
        host = self._hosts.take(nbytes, stream)
        if host is None:
            self._fallbacks[_NO_HOST_MEMORY] += 1
            return None
        self._let_go(self._most_leaving_bytes - nbytes)
        streams.follow(streams.out, stream)
        streams.copy(streams.out, host.untyped_storage(), storage, nbytes)
        copied = streams.mark(streams.out)
        copy = Copy(tensor, kept, self._position, host, (stream, copied), self._forget)
        self._states.enter(copy)
        self._counts["copied_bytes"] += copy.nbytes
        self._copies[copy.position] = self._leaving[copy.position] = weakref.ref(copy)
        self._by_key[key_of(tensor)] = copy
        return copy

    def _let_go(self, most_bytes: int, before: int = sys.maxsize) -> None:
        """Let go of device memory, that of the first copies first: to a bound, and what is done.

        Parameters
        ----------
        most_bytes : int
            That may be on their way.
        before : int
            Copies from this position on stay.
        """
        if self._several:
            return  # uses by other streams may come to an end only with what is kept
        for position in [one for one in self._leaving if one < before]:
            reference = self._leaving.get(position)
            copy = None if reference is None else reference()
            if copy is None:
                continue  # it is about to be forgotten
            if self._bytes[State.LEAVING] <= max(most_bytes, 0) and not self._streams.passed(
                copy.copied
            ):
                return
            self._streams.wait(copy.stream, copy.copied)
            assert copy.device is not None
            # The copy was under way until now; what is changed from here on comes after it.
            if copy.device._version != copy.version:
                copy.error = changed(copy.device, copy.version)
            copy.device = None
            del self._leaving[position]
            self._states.change(copy, State.AWAY)

    def _returned(self, kept: Kept, copy: Copy | None) -> torch.Tensor:
        assert copy is not None
        if copy.device is not None:
            if copy.device._version != copy.version:
                raise changed(copy.device, copy.version)
            return kept.view_of(copy.device.untyped_storage())
        if copy.error is not None:
            raise RuntimeError(*copy.error.args)
        stream = self._streams.current()
        if copy.back is not None and copy.back_stream != stream:
            self._give_up(copy)  # its memory is used again in the order of that stream
        if copy.back is None:
            self._bring(copy, stream)
        elif copy.state is State.AHEAD:
            self._counts["returned_ahead_bytes"] += copy.nbytes
        if copy.state is State.AHEAD:
            self._streams.wait(stream, copy.came)
            self._states.change(copy, State.THERE)
        assert copy.back is not None
        tensor = kept.view_of(copy.back.untyped_storage())
        copy.handed_out.add(id(kept))
        if len(copy.handed_out) >= copy.kept_total:
            # A graph that is retained keeps nothing on the device for the next time.
            copy.back = None
            copy.handed_out.clear()
            self._states.change(copy, State.USED)
        return tensor

    def _bring(self, copy: Copy, stream: int) -> None:
        """Begin to bring a copy back, in memory of a stream."""
        streams = self._streams
        assert copy.host is not None
        back = torch.empty(copy.nbytes, dtype=torch.uint8, device=self._device)
        streams.follow(streams.back, stream)
        if stream != copy.stream:
            streams.follow(streams.back, copy.stream)  # which waited for the copy
        try:
            streams.copy(
                streams.back, back.untyped_storage(), copy.host.untyped_storage(), copy.nbytes
            )
            copy.came = streams.mark(streams.back)
            copy.back_stream, copy.back = stream, back
        except BaseException:  # an interrupt: what is written to is not to be used again before
            streams.wait(stream, streams.mark(streams.back))
            raise
        self._states.change(copy, State.AHEAD)
        self._counts["returned_bytes"] += copy.nbytes

    def _give_up(self, copy: Copy) -> None:
        """Let go of what was brought back; it can be brought again."""
        if copy.state is State.AHEAD:
            self._streams.wait(copy.back_stream, copy.came)
        copy.back = None
        copy.handed_out.clear()
        self._states.change(copy, State.AWAY)

    def _give_up_passed(self, position: int) -> None:
        """Let go of what was brought for uses that are well past without it."""
        for each in self._states.ahead_past(position + self._most_ahead_bytes):
            reference = self._copies.get(each)
            copy = None if reference is None else reference()
            if copy is not None:
                self._give_up(copy)

    def _look_ahead(self, position: int) -> None:
        """Begin to bring back what was kept shortly before a position: it is needed next."""
        for each in self._states.away_before(position, _MOST_LOOKED_AT):
            reference = self._copies.get(each)
            copy = None if reference is None else reference()
            if copy is None or copy.error is not None:
                continue
            if position - (each + copy.nbytes) > self._most_ahead_bytes:
                return
            ahead_bytes, room_bytes = self._bytes[State.AHEAD], self._ahead_room_bytes
            # One at least, however long, unless there is no room.
            if ahead_bytes + copy.nbytes > room_bytes and (ahead_bytes or not room_bytes):
                self._give_up_passed(position)
                return
            try:
                self._bring(copy, self._streams.current())
            except torch.OutOfMemoryError:
                return  # at its use there may be more

    def _forget(self, copy: Copy) -> None:
        """Let go of the memory of a copy that nothing leads to."""
        with self._lock:
            if copy.device is not None:
                self._streams.wait(copy.stream, copy.copied)
            if copy.state is State.AHEAD:
                self._streams.wait(copy.back_stream, copy.came)
            copy.device = copy.back = None
            self._states.take_out(copy)
            self._leaving.pop(copy.position, None)
            self._copies.pop(copy.position, None)
            if copy.host is not None:
                self._hosts.give_back(copy.host, copy.came)
                copy.host = None


def _nothing_lives(_begins: bool) -> tuple[int, int]:  # noqa: FBT001 - as what it replaces
    return 0, 0
