# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A graph network on a managed allocator without a pool: linear, thrashing, and the cliff."""

from __future__ import annotations

import functools

from _published import Order, Row, Table, published, run
from _workloads import read, scaled, seconds_of, simulator_with, written

from rmm_uvm.simulator import Access, Simulator, load_machine, random_pages

_SCALE = 256
_THRASHING_SCALE = 128
# From here on it counts how many blocks there are: 2.17 x without prefetch takes 501, 415, 377, 389
# and 414 s with sizes / 256, / 128, / 64, / 32 and / 16.
_THRASHES_FROM = 1.5
_PAGE_BYTES = 4096
_CONTEXT_BYTES = 512 << 20  # what a CUDA context and a framework's kernels take
_HOST = (
    "the kernel driver's CPU time, and that of cudaMallocManaged and cudaFree of large ranges, is "
    "that of the H200's virtual machine: not published for the desktop processor of this card"
)


class _Epoch:
    """The tensors and operations of one epoch; sizes and edges are `scale` times smaller."""

    def __init__(self, million_nodes: float, scale: int, *, prefetch: bool) -> None:
        data = published("gcn_epochs")
        graph = data["graph"]
        machine = scaled(load_machine(data["machine"]), scale)
        self._sim = simulator_with(machine, (machine.device_bytes - _CONTEXT_BYTES) / scale)
        self._prefetch = prefetch
        self._sizes: dict[int, int] = {}
        self._nodes = int(million_nodes * 1e6 / scale)
        # The program adds each edge backwards, and one to itself for each node.
        self._edges = self._nodes * (2 * graph["edges_per_node"] + 1)
        self._chunk = graph["chunk_edges"] // scale
        self._features, self._hidden = graph["features"], graph["hidden"]
        self._classes = graph["classes"]
        self._chunks = -(-self._edges // self._chunk)
        # Time of the device alone, of the column that fits and allocates without a pool.
        compute = data["device_unpooled_seconds"] * million_nodes / data["million_nodes"][0]
        self._compute_seconds = compute / scale / (4 * self._chunks)
        self._seed = 0
        self._inputs = self._tensor(self._nodes * self._features * 4)
        self._edge_list = self._tensor(self._nodes * graph["edges_per_node"] * 2 * 8)
        self._sources = self._tensor(self._edges * 8)
        self._targets = self._tensor(self._edges * 8)
        self._weights = self._tensor(self._edges * 4)
        for tensor in (self._inputs, self._edge_list, self._sources, self._targets, self._weights):
            self._launch([self._all(tensor, write=True)])

    @property
    def simulator(self) -> Simulator:
        """The device."""
        return self._sim

    def run(self) -> None:
        """Train once: two layers forward and backward."""
        first = self._apply([self._inputs], self._nodes * self._hidden * 4)  # linear
        summed = self._aggregate(first, self._hidden)
        self._free(first)
        active = self._apply([summed], self._nodes * self._hidden * 4)  # relu
        self._free(summed)
        mask = self._tensor(self._nodes * self._hidden)
        dropped = self._apply([active], self._nodes * self._hidden * 4, mask)  # dropout
        second = self._apply([dropped], self._nodes * self._classes * 4)  # linear
        result = self._aggregate(second, self._classes)
        self._free(second)
        # Backward, in the opposite order.
        gradient = self._apply([result], self._nodes * self._classes * 4)
        self._free(result)
        below = self._aggregate(gradient, self._classes)
        self._free(gradient)
        self._launch([self._all(dropped), self._all(below)])  # gradient of the weights
        hidden = self._apply([below], self._nodes * self._hidden * 4)
        self._free(below)
        self._free(dropped)
        through = self._apply([hidden, mask], self._nodes * self._hidden * 4)
        self._free(hidden)
        self._free(mask)
        rectified = self._apply([through, active], self._nodes * self._hidden * 4)
        self._free(through)
        self._free(active)
        last = self._aggregate(rectified, self._hidden)
        self._free(rectified)
        self._launch([self._all(self._inputs), self._all(last)])
        self._free(last)

    def _tensor(self, nbytes: int) -> int:
        address = self._sim.allocate_managed(nbytes)
        self._sizes[address] = nbytes
        if self._prefetch:
            self._sim.prefetch(address, nbytes)
        return address

    def _free(self, address: int) -> None:
        self._sim.synchronize()  # cudaFree does
        self._sim.free_managed(address)
        del self._sizes[address]

    def _all(self, address: int, *, write: bool = False) -> Access:
        return (written if write else read)(address, self._sizes[address])

    def _launch(self, accesses: list[Access], compute_seconds: float = 0.0) -> None:
        self._sim.kernel(accesses, compute_seconds=compute_seconds)

    def _apply(self, inputs: list[int], nbytes: int, *also_written: int) -> int:
        """Run an operation that reads and writes in order; return its new result."""
        result = self._tensor(nbytes)
        self._launch(
            [
                *(self._all(address) for address in inputs),
                *(self._all(address, write=True) for address in (result, *also_written)),
            ]
        )
        return result

    def _rows(self, address: int, columns: int, *, write: bool) -> Access:
        """Return one row for each edge of a chunk, anywhere: pages, a row may lie in two."""
        self._seed += 1
        row_bytes = columns * 4
        pages = self._chunk * max(row_bytes / _PAGE_BYTES, 1.0)
        return Access(
            address, self._sizes[address], random_pages(int(pages), seed=self._seed), write=write
        )

    def _slice(self, address: int, chunk: int, item_bytes: int) -> Access:
        begin = chunk * self._chunk * item_bytes // _PAGE_BYTES * _PAGE_BYTES
        nbytes = min(self._chunk * item_bytes, self._sizes[address] - begin)
        return read(address + begin, nbytes)

    def _aggregate(self, tensor: int, columns: int) -> int:
        """Sum rows over edges in chunks: gather, scale, add; two temporaries a chunk."""
        result = self._tensor(self._nodes * columns * 4)
        self._launch([self._all(result, write=True)])
        message_bytes = self._chunk * columns * 4
        before = 0
        for chunk in range(self._chunks):
            gathered = self._tensor(message_bytes)
            self._launch(
                [
                    self._slice(self._sources, chunk, 8),
                    self._rows(tensor, columns, write=False),
                    self._all(gathered, write=True),
                ],
                self._compute_seconds,
            )
            message = self._apply([gathered], message_bytes)
            self._free(gathered)
            if before:  # the name kept the last one until now
                self._free(before)
            self._launch(
                [
                    self._all(message),
                    self._slice(self._targets, chunk, 8),
                    self._rows(result, columns, write=True),
                ]
            )
            before = message
        self._free(before)
        return result


@functools.cache
def _epoch_seconds(million_nodes: float, factor: float, *, prefetch: bool) -> float:
    """Return the time of an epoch, after one to warm up."""
    scale = _THRASHING_SCALE if factor >= _THRASHES_FROM else _SCALE
    epoch = _Epoch(million_nodes, scale, prefetch=prefetch)
    epoch.run()
    return seconds_of(epoch.simulator, epoch.run) * scale


def table() -> Table:
    """Run every case."""
    data = published("gcn_epochs")
    rows = []
    ours: dict[bool, list[float]] = {}
    for prefetch, column in ((False, "without_prefetch"), (True, "prefetch_on_allocate")):
        ours[prefetch] = [
            _epoch_seconds(nodes, factor, prefetch=prefetch)
            for nodes, factor in zip(data["million_nodes"], data["factor"], strict=True)
        ]
        what = "prefetch on allocate" if prefetch else "no prefetch"
        theirs = data[f"{column}_seconds"]
        for number, factor in enumerate(data["factor"]):
            rows.append(
                Row(
                    f"{what}, {factor} x",
                    "epoch",
                    "s",
                    theirs[number],
                    ours[prefetch][number],
                    _HOST,
                )
            )
        for number, factor in enumerate(data["factor"][1:], 1):
            rows.append(
                Row(
                    *(f"{what}, {factor} x", f"epoch / that of {data['factor'][0]} x", ""),
                    theirs[number] / theirs[0],
                    ours[prefetch][number] / ours[prefetch][0],
                    _HOST,
                )
            )
    orders = [
        Order(
            f"{factor} x",
            ("prefetch on allocate", "no prefetch"),
            (ours[True][number], ours[False][number]),
            "s",
        )
        for number, factor in enumerate(data["factor"])
    ] + [
        Order(
            "prefetch on allocate, by factor" if prefetch else "no prefetch, by factor",
            tuple(f"{factor} x" for factor in data["factor"]),
            tuple(ours[prefetch]),
            "s",
        )
        for prefetch in ours
    ]
    return Table(
        name="gcn_epochs",
        title=data["title"],
        source=data["source"],
        machine=str(load_machine(data["machine"])),
        workload="two layers forward and backward, 128 features, 256 hidden, 21 edges a node "
        "summed in chunks of 2 million through two temporaries; every tensor a managed allocation "
        "of its own; time of computing from the column that fits without a pool; from 1.5 x memory "
        f"sizes / {_THRASHING_SCALE}",
        scale=_SCALE,
        rows=tuple(rows),
        orders=tuple(orders),
    )


if __name__ == "__main__":
    raise SystemExit(run(table))
