# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A model of chunks that are waited for: which rules can bring workers to a halt.

Only what can be waited for is in it: chunks, and messages that match in order. Steps are taken in
random order, each as soon as what it needs is there. A run that has steps left and none that can
be taken has come to a halt.
"""

from __future__ import annotations

import collections
import dataclasses
import random


@dataclasses.dataclass(frozen=True)
class Rules:
    """What the transfers keep to.

    Parameters
    ----------
    ready_messages : bool
        A receive chunk is acquired only when its data are on their way.
    separate_budgets : bool
        Sending and receiving have chunks of their own.
    spares_are_pulled : bool
        Receive chunks are sent from only in messages that the peer pulls.
    """

    ready_messages: bool = True
    separate_budgets: bool = True
    spares_are_pulled: bool = True


@dataclasses.dataclass
class _Transfer:
    sender: int
    receiver: int
    chunks: int
    pulled: bool = False
    filled: int = 0  # chunks that were copied in and posted
    claimed: int = 0  # receive chunks that were acquired
    received: int = 0
    # The budgets of those that are filled and not received.
    taken: collections.deque[str] = dataclasses.field(default_factory=collections.deque)


class Model:
    """Workers with budgets, and transfers among them.

    Parameters
    ----------
    transfers : list of tuple
        Sender, receiver, number of chunks.
    budget : int
        Chunks of a worker in each direction; with one budget for both, twice as many.
    pulled : float
        The fraction of the transfers that the receiver pulls.
    """

    def __init__(
        self,
        transfers: list[tuple[int, int, int]],
        budget: int,
        rules: Rules,
        seed: int,
        pulled: float = 0,
    ) -> None:
        self._random = random.Random(seed)
        self._transfers = [
            _Transfer(*transfer, self._random.random() < pulled) for transfer in transfers
        ]
        self._rules = rules
        count = budget if rules.separate_budgets else 2 * budget
        self._free: dict[tuple[str, int], int] = collections.defaultdict(lambda: count)
        # First come, first served: who waits for a chunk, by budget.
        self._waiting: dict[tuple[str, int], list[tuple[str, _Transfer]]] = collections.defaultdict(
            list
        )

    def runs_through(self) -> bool:
        """Take steps until none can be taken; return whether all transfers are done."""
        while steps := self._steps():
            what, transfer = self._random.choice(steps)
            if what == "ask":
                self._ask(transfer)
            elif what == "spare":
                self._free[self._budget("receive", transfer.sender)] -= 1
                self._fill(transfer, "receive")
            elif what == "receive":
                transfer.received += 1
                self._give_back(transfer.taken.popleft(), transfer.sender)
                if not transfer.pulled:
                    self._give_back("receive", transfer.receiver)
            self._serve()
        return all(each.received == each.chunks for each in self._transfers)

    def _steps(self) -> list[tuple[str, _Transfer]]:
        found: list[tuple[str, _Transfer]] = []
        for each in self._transfers:
            wishes = self._wishes(each)
            if wishes:
                found.append(("ask", each))
            spare = self._budget("receive", each.sender)
            if (
                "send" in wishes
                and (each.pulled or not self._rules.spares_are_pulled)
                and self._free[spare]
                and not self._waiting[spare]
            ):
                found.append(("spare", each))
            if each.received < (each.filled if each.pulled else min(each.filled, each.claimed)):
                found.append(("receive", each))
        return found

    def _wishes(self, transfer: _Transfer) -> list[str]:
        """Return the directions in which a transfer would ask for its next chunk now."""
        queued = {
            what for queue in self._waiting.values() for what, each in queue if each is transfer
        }
        wishes = []
        if transfer.filled < transfer.chunks and "send" not in queued:
            wishes.append("send")
        announced = transfer.filled if self._rules.ready_messages else transfer.chunks
        begun = transfer.filled > 0 and not transfer.pulled  # the header
        if begun and transfer.claimed < announced and "receive" not in queued:
            wishes.append("receive")
        return wishes

    def _ask(self, transfer: _Transfer) -> None:
        what = self._random.choice(self._wishes(transfer))
        worker = transfer.sender if what == "send" else transfer.receiver
        self._waiting[self._budget(what, worker)].append((what, transfer))

    def _fill(self, transfer: _Transfer, budget: str) -> None:
        transfer.filled += 1
        transfer.taken.append(budget)

    def _serve(self) -> None:
        for budget, queue in self._waiting.items():
            while queue and self._free[budget]:
                self._free[budget] -= 1
                what, transfer = queue.pop(0)
                if what == "send":
                    self._fill(transfer, "send")
                else:
                    transfer.claimed += 1

    def _give_back(self, what: str, worker: int) -> None:
        self._free[self._budget(what, worker)] += 1

    def _budget(self, what: str, worker: int) -> tuple[str, int]:
        return (what if self._rules.separate_budgets else "both", worker)
