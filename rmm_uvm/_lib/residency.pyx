# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Ledger, epochs and prefetching (`cpp/include/rmm_uvm/residency`)."""

from threading import RLock

from cython.operator cimport dereference
from libcpp cimport bool
from libcpp.memory cimport make_shared
from libcpp.optional cimport optional
from libcpp.utility cimport move

from rmm_uvm._lib.driver cimport MemoryObserver, UvmDriver, status_text
from rmm_uvm._lib.harvest cimport HarvestBoard, NeighborLender
from rmm_uvm._lib.neighbors import join_board, open_neighbors, slowest_rates, warn_of_lacking
from rmm_uvm._lib.thread_starts import starting_thread
from rmm_uvm.residency.budget import next_budget, only_sizes_differ

_MODES = {
    "auto": prefetch_mode.automatic,
    "always": prefetch_mode.always,
    "never": prefetch_mode.never,
}

_POLICIES = {
    "fifo": eviction_policy.fifo,
    "lru": eviction_policy.lru,
    "repeat": eviction_policy.repeat,
    "correlation": eviction_policy.correlation,
}

_PLACES = {
    "none": preferred_place.none,
    "device": preferred_place.device,
    "host": preferred_place.host,
}

_POLICY_NAMES = {int(value): name for name, value in _POLICIES.items()}

cdef size_t _UNLIMITED = <size_t>-1


cdef prefetch_mode as_mode(name) except *:
    if name not in _MODES:
        raise ValueError(f"prefetch must be 'auto', 'always' or 'never', not {name!r}")
    return _MODES[name]


cdef residency_settings _settings_of(budget) except *:
    """Return what a `Budget` says, but for its neighbours and who lends their memory."""
    cdef residency_settings settings
    settings.budget_bytes = budget.budget_bytes
    settings.low_bytes = budget.low_bytes
    settings.followed_bytes = budget.budget_bytes if budget.follows else 0
    settings.direct = budget.direct
    settings.piece_bytes = budget.piece_bytes or 0
    settings.fetch_bytes = budget.fetch_bytes or 0
    settings.ahead_adapts = budget.ahead_bytes is None
    settings.ahead_bytes = (
        budget.budget_bytes // 8 if budget.ahead_bytes is None else budget.ahead_bytes
    )
    settings.policy = _POLICIES[budget.policy]
    settings.in_place = budget.in_place
    settings.copy_beside = budget.copy_beside
    settings.multipath = budget.multipath
    settings.keep_copies = budget.keep_copies
    settings.discard_dead = budget.discard_dead
    settings.rank_dead = budget.rank_dead
    settings.fetch = budget.fetch
    settings.ahead = budget.ahead
    settings.background = budget.background
    return settings


cdef class ManagedResidency:
    """The residency of one resource's managed memory: what it and adaptors share. Thread-safe.

    Parameters
    ----------
    driver : UvmDriver
        What is commanded.
    budget : rmm_uvm.residency.Budget, optional
        How much of the device managed memory may take, and how it is kept.

    Attributes
    ----------
    budget : rmm_uvm.residency.Budget or None
        What is kept now.
    too_large_told : bool
        Somebody was told of requests that are larger than the budget: once is enough.
    neighbors : tuple of int
        Devices whose idle memory the budget may use.
    refused_neighbors : list of str
        Why others that were asked for are not among them.
    board : rmm_uvm.harvest.HarvestBoard or None
        Where it agrees with others: with those that follow too about their shares of this device,
        and with neighbours about idle memory.
    board_reason : str
        Why it agrees with nobody; empty where it does, and where there is nothing to agree about.
    links_reason : str
        Why the links to neighbours were not measured, so that nothing is used in place or comes
        over two of them; empty where they were, and where nobody asked.
    """

    def __init__(self, UvmDriver driver not None, budget=None):
        self.driver = driver
        self._changing = RLock()
        self._forget_budget()
        self.handle = make_shared[managed_residency](
            driver.handle, move(make_epoch_source(dereference(driver.handle)))
        )
        if budget is not None:
            self.start_budget(budget)

    def _forget_budget(self):
        self.budget = None
        self.neighbors, self.refused_neighbors = (), []
        self.board, self.board_reason, self.links_reason = None, "", ""

    def set_budget(self, budget):
        """Start, change or end the budget: see `UvmResourceAdaptor.set_budget`."""
        with self._changing:
            kept = self.budget
            info = self.driver.info
            following = next_budget(
                kept,
                budget,
                info.total_bytes,
                oversubscribable=info.oversubscribable,
            )
            if following is None:
                self.end_budget()
            elif following == kept:
                pass
            elif kept is not None and only_sizes_differ(kept, following):
                self.change_budget(following)
            else:
                self.start_budget(following)
                warn_of_lacking(self.driver, following, self.neighbors, self.refused_neighbors)

    def start_budget(self, budget not None):
        """Keep a budget from now on, in place of the one that is kept, if any.

        All memory that is there counts as live and on the device at first: a budget that starts
        late copies some dead data. Figures begin anew.

        Parameters
        ----------
        budget : rmm_uvm.residency.Budget
            Its devices beside this one are opened first.
        """
        cdef residency_settings settings = _settings_of(budget)
        cdef neighbor one
        cdef NeighborLender lender
        with self._changing:
            driver = self.driver
            opened, refused = open_neighbors(driver, budget)
            for device_id, limit_bytes in opened:
                one.device_id = device_id
                one.limit_bytes = _UNLIMITED if limit_bytes is None else limit_bytes
                settings.neighbors.push_back(one)
            neighbors = tuple(device_id for device_id, _ in opened)
            board, board_reason = join_board(driver, budget)
            if board is not None and budget.neighbors is not None:
                names = {each: driver.neighbor_uuid(each) for each in neighbors}
                lender = board.lender({**names, driver.info.device_id: driver.info.uuid})
                settings.lender = lender.handle
                settings.lends = True
            if board is not None and budget.follows:
                settings.sharing = (<HarvestBoard>board).sharing(driver.info.uuid)
            links_reason = ""
            if (budget.in_place or budget.multipath) and neighbors:
                settings.rates, links_reason = slowest_rates(driver, neighbors)
            with starting_thread("a budget", "give a Budget with background=False"):
                with nogil:
                    dereference(self.handle).start_budget(settings)
            self.budget, self.too_large_told = budget, False
            self.neighbors, self.refused_neighbors = neighbors, refused
            self.board, self.board_reason, self.links_reason = board, board_reason, links_reason

    def change_budget(self, budget not None):
        """Keep the same budget at another size: what is too much leaves soon.

        Parameters
        ----------
        budget : rmm_uvm.residency.Budget
            Differs from the one that is kept in its sizes only.

        Returns
        -------
        bool
            False when no budget is kept; nothing changes then.
        """
        cdef size_t budget_bytes = budget.budget_bytes
        cdef size_t low_bytes = budget.low_bytes
        cdef bint kept
        with self._changing:
            with nogil:
                kept = dereference(self.handle).change_budget(budget_bytes, low_bytes)
            if kept:
                self.budget = budget
        return kept

    def end_budget(self):
        """Keep no budget any more: the kernel driver evicts. Nothing if none is kept.

        What lies on neighbours goes to the host, and what was pinned is not any more.
        """
        with self._changing:
            with nogil:
                dereference(self.handle).end_budget()
            self._forget_budget()

    @property
    def epoch(self):
        """Number of the epoch now: it ends when bytes were seen to leave the device."""
        return dereference(self.handle).current_epoch()

    @property
    def slab_bytes(self):
        """Managed bytes taken from the driver and not given back."""
        return dereference(self.handle).ledger().slab_bytes()

    def holds(self, uintptr_t address):
        """Whether an address lies in a slab."""
        cdef bool held
        with nogil:
            held = dereference(self.handle).holds(address)
        return held

    def touch(self, uintptr_t address, size_t nbytes, uintptr_t owner, uintptr_t stream=0):
        """Announce a use of live memory that is issued to a stream next; brings it in."""
        self.touch_all(((address, nbytes, owner),), stream)

    def touch_all(self, uses, uintptr_t stream=0, bint only_read=False):
        """Announce uses that are issued to a stream next, as one: none leaves for another.

        Parameters
        ----------
        uses : iterable of tuple of int
            Address, bytes, and the first byte of the allocation that it is of. What no slab holds
            is passed over.
        stream : int
            Its handle.
        only_read : bool
            The work writes none of it: what does not fit the budget may be read on the host.
        """
        cdef vector[use_event] announced
        cdef use_event use
        use.kind = use_kind.touch
        use.only_read = only_read
        for address, nbytes, owner in uses:
            use.range.address, use.range.bytes, use.owner = address, nbytes, owner
            announced.push_back(use)
        with nogil:
            dereference(self.handle).on_touch(announced, <void*>stream)

    def attach_observer(self, MemoryObserver observer not None):
        """Tell an observer of every announced use, unless another one is there that still listens.

        Meanwhile `all_present` and `confirmed_present` are False, so that uses are announced also
        where all fits.

        Returns
        -------
        bool
            Whether it observes now.
        """
        return dereference(self.handle).use_observers().attach(observer.handle)

    def detach_observer(self, MemoryObserver observer not None):
        """End that; nothing if another observer took the place."""
        dereference(self.handle).use_observers().detach(observer.handle.get())

    @property
    def observed(self):
        """Whether an observer is there that still listens."""
        return dereference(self.handle).use_observers().taken()

    def note_made(self, uses):
        """Take note that work which writes memory was issued: from then on it is only read.

        Unless a use is announced that may write it. So the host may have its copy early.

        Parameters
        ----------
        uses : iterable of tuple of int
            Address, bytes, and the first byte of the allocation that it is of. What no slab holds
            is passed over.
        """
        cdef vector[memory_range] made
        cdef memory_range one
        for address, nbytes, _owner in uses:
            one.address, one.bytes = address, nbytes
            made.push_back(one)
        with nogil:
            dereference(self.handle).on_made(made)

    @property
    def all_present(self):
        """Whether announcing a use does nothing: none can be away, and no observer is told."""
        return dereference(self.handle).all_present()

    def confirm_present(self, uintptr_t stream=0):
        """Look whether all live memory is on the device; return it.

        It is remembered until some leaves: uses of what is there are not learnt until then. What is
        only in doubt is prefetched in the stream.
        """
        cdef bint present
        with nogil:
            present = dereference(self.handle).confirm_present(<void*>stream)
        return present

    def confirmed_present(self):
        """Whether announcing a use does nothing, since `confirm_present` found all there.

        Nothing left since, and no observer is told of uses. Takes no lock.
        """
        return dereference(self.handle).confirmed_present()

    def bring(self, uintptr_t address, size_t nbytes, uintptr_t stream=0):
        """Bring live memory to the device, in the order of a stream."""
        cdef memory_range where
        where.address, where.bytes = address, nbytes
        with nogil:
            dereference(self.handle).bring(where, <void*>stream)

    def evict(self, uintptr_t address, size_t nbytes, uintptr_t stream=0):
        """Send the blocks that lie wholly in a range to the host; return how many bytes went."""
        cdef memory_range where
        cdef size_t sent
        where.address, where.bytes = address, nbytes
        with nogil:
            sent = dereference(self.handle).evict(where, <void*>stream)
        return sent

    def sleep(self):
        """Send everything to the host; return how many bytes left with their contents.

        Until `wake` nothing comes back but what is used. Nothing without a budget.
        """
        cdef size_t slept
        with nogil:
            slept = dereference(self.handle).sleep()
        return slept

    def wake(self, uintptr_t stream=0):
        """Bring back what slept, as far as the budget goes; return how many bytes came."""
        cdef size_t came
        with nogil:
            came = dereference(self.handle).wake(<void*>stream)
        return came

    def advise(self, uintptr_t address, size_t nbytes, read_mostly=None, preferred=None):
        """Advise the driver about the blocks that lie wholly in a range, until any is freed.

        Parameters
        ----------
        address, nbytes : int
            Live memory of one user.
        read_mostly : bool, optional
            Whether readers get copies; None leaves it as it is.
        preferred : {"device", "host", "none"}, optional
            Where the pages belong; None leaves it as it is.

        Returns
        -------
        tuple of (int, int, str)
            Bytes of these blocks; of them those about which the driver took the advice; and why it
            did not take all, "" if it did.
        """
        cdef memory_range where
        cdef advice_change change
        cdef advice_outcome outcome
        cdef const device_info* info = &dereference(self.driver.handle).info()
        where.address, where.bytes = address, nbytes
        if read_mostly is not None:
            change.read_mostly = optional[bool](<bool>read_mostly)
        if preferred is not None:
            if preferred not in _PLACES:
                raise ValueError(f"preferred must be {', '.join(map(repr, _PLACES))}")
            change.preferred = optional[preferred_place](<preferred_place>_PLACES[preferred])
        with nogil:
            outcome = dereference(self.handle).advise(where, change)
        reason = ""
        if not info.concurrent_managed_access.available:
            reason = info.concurrent_managed_access.reason.decode()
        elif not outcome.failure.ok():
            reason = (
                f"{outcome.failure.call.decode()} answered "
                f"{status_text(outcome.failure.code).decode()} ({outcome.failure.native_error})"
            )
        return outcome.whole_bytes, outcome.advised_bytes, reason

    @property
    def advised_bytes(self):
        """Bytes of the blocks that something is advised about now."""
        return dereference(self.handle).advised_bytes()

    def pin(self, uintptr_t address, size_t nbytes):
        """Keep the blocks of a range where they are; nothing without a budget."""
        cdef memory_range where
        where.address, where.bytes = address, nbytes
        with nogil:
            dereference(self.handle).pin(where)

    def unpin(self, uintptr_t address, size_t nbytes):
        """Take back one `pin` of the same range."""
        cdef memory_range where
        where.address, where.bytes = address, nbytes
        with nogil:
            dereference(self.handle).unpin(where)

    @property
    def budget_bytes(self):
        """The budget now; None without one."""
        return dereference(self.handle).budget_bytes() or None

    @property
    def keeps_budget(self):
        """Whether there is a budget."""
        return self.budget is not None

    def flush(self):
        """Wait until the migration thread has nothing to do; nothing without a budget."""
        with nogil:
            dereference(self.handle).flush()

    def run_pending(self):
        """Do now what the migration thread would do; nothing without a budget."""
        with nogil:
            dereference(self.handle).run_pending()

    def run_pending_piece(self):
        """Do the next piece of that only; return whether there was one."""
        cdef bool did
        with nogil:
            did = dereference(self.handle).run_pending_piece()
        return did

    def take_live_blocks(self, bint begins):
        """Bytes of whole blocks that a round needs on the device: now, and the most since asked before.

        As far as it was looked at: each time that torch allocated a 64th of the budget, and now.
        What is away counts if it was used in this round or the one before, unless it was advised to
        stay on the host. (0, 0) without a budget.

        Parameters
        ----------
        begins : bool
            Whether a round does.
        """
        cdef live_blocks found
        with nogil:
            found = dereference(self.handle).take_live_blocks(begins)
        return found.now, found.peak

    def residency(self):
        """Counts and levels of the budget.

        Returns
        -------
        dict or None
            See `rmm_uvm.residency.ResidencyStatistics`; None without a budget.
        """
        cdef optional[residency_statistics] kept
        cdef residency_statistics s
        with nogil:
            kept = dereference(self.handle).budget_statistics()
        if not kept.has_value():
            return None
        s = kept.value()
        failure = ""
        if not s.last_failure.ok():
            failure = f"{s.last_failure.call.decode()}: {status_text(s.last_failure.code).decode()}"
        counted = self.driver.counters_available()
        return {
            "policy": _POLICY_NAMES[<int>s.policy],
            "budget_bytes": s.budget_bytes,
            "budget_changes": s.budget_changes,
            "unmanaged_bytes": s.unmanaged_bytes if s.unmanaged_told else None,
            "hidden_bytes": s.hidden_bytes,
            "sharers": s.sharers,
            "resident_bytes": s.resident_bytes,
            "peak_resident_bytes": s.peak_resident_bytes,
            "pinned_bytes": s.pinned_bytes,
            "overshoot_bytes": s.overshoot_bytes if counted else None,
            "peak_overshoot_bytes": s.peak_overshoot_bytes if counted else None,
            "faulted_bytes": s.faulted_bytes if counted else None,
            "faults_unknown": counted.reason,
            "found_bytes": s.found_bytes,
            "looks": s.looks,
            "finds_none": self.driver.info.host_pages.reason,
            "evicted_bytes": s.evicted_bytes,
            "uncopied_bytes": s.uncopied_bytes,
            "kept_copy_bytes": s.kept_copy_bytes,
            "copied_early_bytes": s.copied_early_bytes,
            "dropped_bytes": s.dropped_bytes,
            "fetched_bytes": s.fetched_bytes,
            "renewed_bytes": s.renewed_bytes,
            "undiscarded_bytes": s.undiscarded_bytes,
            "undiscarded_copied_bytes": s.undiscarded_copied_bytes,
            "fetched_ahead_bytes": s.fetched_ahead_bytes,
            "ahead_used_bytes": s.ahead_used_bytes,
            "ahead_bytes": s.ahead_bytes,
            "wanted_bytes": s.wanted_bytes,
            "present_bytes": s.present_bytes,
            "neighbor_bytes": s.neighbor_bytes,
            "harvested_bytes": s.harvested_bytes,
            "peak_harvested_bytes": s.peak_harvested_bytes,
            "from_neighbor_bytes": s.from_neighbor_bytes,
            "in_place_bytes": s.in_place_bytes,
            "copied_beside_bytes": s.copied_beside_bytes,
            "staged_bytes": s.staged_bytes,
            "given_back_bytes": s.given_back_bytes,
            "given_back_at_once_bytes": s.given_back_at_once_bytes,
            "held_back": s.held_back,
            "reclaims": s.reclaims,
            "reclaim_wait_seconds": s.reclaim_wait_ns / 1e9,
            "eviction_calls": s.eviction_calls,
            "waits": s.waits,
            "waited_seconds": s.waited_ns / 1e9,
            "waited_for_room_seconds": s.waited_for_room_ns / 1e9,
            "over_budget": s.over_budget,
            "too_large": s.too_large,
            "too_large_bytes": s.too_large_bytes,
            "host_read_bytes": s.host_read_bytes,
            "unfenced_frees": s.unfenced_frees,
            "failed_calls": s.failed_calls,
            "last_failure": failure,
            "predicted": s.prediction.predicted,
            "predictions": s.prediction.seen,
            "foresees": s.foresees,
            "switched_off": s.switched_off,
        }

    def statistics(self):
        """What was prefetched, discarded and skipped, and why.

        Returns
        -------
        dict
            ``slab_prefetched_bytes``, ``prefetch_calls``, ``prefetched_bytes``, ``discard_calls``,
            ``discarded_bytes``, ``undiscarded_bytes``, ``failed_calls`` (int), ``last_failure``
            (str, "" when none) and ``skipped`` (dict of reason to count).
        """
        cdef prefetch_statistics s
        cdef size_t index
        with nogil:
            s = dereference(self.handle).statistics()
        failure = ""
        if not s.last_failure.ok():
            failure = f"{s.last_failure.call.decode()}: {status_text(s.last_failure.code).decode()}"
        return {
            "slab_prefetched_bytes": s.slab_prefetched_bytes,
            "prefetch_calls": s.prefetch_calls,
            "prefetched_bytes": s.prefetched_bytes,
            "discard_calls": s.discard_calls,
            "discarded_bytes": s.discarded_bytes,
            "undiscarded_bytes": s.undiscarded_bytes,
            "failed_calls": s.failed_calls,
            "last_failure": failure,
            "skipped": {
                reason_text(<skip_reason>index).decode(): s.skipped[index]
                for index in range(skip_reason_count)
            },
        }


Prefetcher = ManagedResidency
"""The name that it had before budgets could start and end."""
