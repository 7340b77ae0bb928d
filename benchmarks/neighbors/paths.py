# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Ways to a neighbour's memory and back: rates by piece size, and what they cost the neighbour.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/neighbors/paths.py --json FILE
    python benchmarks/neighbors/paths.py --json FILE --simulated

1 GiB goes to the host or to the neighbour and comes back, in pieces of 2 to 32 MiB, by prefetches
and past libcuda, while the neighbour idles and beside kernels of another process there. From that
curve the size of a piece is chosen. Then what a budget reaches at that size; half from the
neighbour and half from the host, one after the other and at once; the host's by way of the
neighbour; and what the neighbour has free before, while and after it holds memory. Two GPUs with
peer access; two minutes at most. The file is written after each part. `--simulated` tests the
script.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import queue
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rmm_uvm.residency import Budget

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.neighbors.owner import OwnerJob
from benchmarks.neighbors.pair import MIB, at_once, in_pieces, make_pair, pool, timed

PIECES = (2 * MIB, 4 * MIB, 8 * MIB, 32 * MIB)
PLACES = ("neighbor", "host")
IDLE = "idle"
BESIDE = (IDLE, "matrix", "stream")
BYTES, SIMULATED_BYTES = 1 << 30, 64 * MIB
DISTURBANCE_BOUND = 1.03
ADVISED_BYTES = 2 * MIB
OURS_BOUND, PARALLEL_BOUND = 0.85, 1.15
CYCLE_SECONDS, ALONE_SECONDS = 0.4, 0.3
Row = Mapping[str, Any]


def cycles(
    pair: Any, address: int, nbytes: int, piece: int, place: str, way: str, least_seconds: float
) -> tuple[list[float], list[float]]:
    """Send a region away and fetch it, for so long; return the seconds of each way."""
    out, into = [], []
    begin = time.perf_counter()
    while not out or time.perf_counter() - begin < least_seconds:
        out.append(timed(pair, in_pieces(pair, address, nbytes, piece, place, way)))
        into.append(timed(pair, in_pieces(pair, address, nbytes, piece, "device", way)))
    return out, into


@contextlib.contextmanager
def _owner(kind: str) -> Iterator[OwnerJob | None]:
    if kind == IDLE:
        yield None
        return
    with OwnerJob(kind) as job:
        yield job


def curve(
    pair: Any, regions: Mapping[str, int], nbytes: int, beside: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Give a row for each piece size, place, way, and what runs at the neighbour."""
    seconds = 0.0 if pair.simulated else CYCLE_SECONDS
    for place in PLACES:  # host pages are taken for the first time here
        cycles(pair, regions[place], nbytes, PIECES[-1], place, pair.ways[0], 0)
    for kind in beside:
        with _owner(kind) as job:
            for piece in PIECES:
                for place in PLACES:
                    for way in pair.ways:
                        yield _row(
                            pair, regions[place], nbytes, (piece, place, way, kind), job, seconds
                        )


def _row(
    pair: Any,
    address: int,
    nbytes: int,
    case: tuple[int, str, str, str],
    job: OwnerJob | None,
    seconds: float,
) -> dict[str, Any]:
    piece, place, way, kind = case
    found: list[tuple[list[float], list[float]]] = []
    slowdown = None

    def go() -> None:
        found.append(cycles(pair, address, nbytes, piece, place, way, seconds))

    if job is None:
        go()
    else:
        before = job.alone(ALONE_SECONDS)
        during = job.step_seconds(go)
        slowdown = during / statistics.mean((before, job.alone(ALONE_SECONDS)))
    [(out, into)] = found
    return {
        **{"piece_bytes": piece, "place": place, "way": way, "beside": kind},
        "evict_bytes_per_second": nbytes / statistics.median(out),
        "fetch_bytes_per_second": nbytes / statistics.median(into),
        "cycles": len(out),
        "neighbor_slowdown": slowdown,
    }


def chosen_piece(rows: Sequence[Row], place: str = "neighbor") -> int:
    """Return the piece size that moves most among those that disturb the neighbour little enough.

    Where none does, that which disturbs least. Each size counts by its best way.
    """
    rates: dict[int, float] = {}
    slowdowns: dict[int, float] = {}
    for row in rows:
        if row["place"] != place:
            continue
        piece = row["piece_bytes"]
        if row["beside"] == IDLE:
            both = min(row["evict_bytes_per_second"], row["fetch_bytes_per_second"])
            rates[piece] = max(rates.get(piece, 0.0), both)
        elif row["neighbor_slowdown"] is not None:
            slowdowns[piece] = max(slowdowns.get(piece, 0.0), row["neighbor_slowdown"])
    quiet = [piece for piece in rates if slowdowns.get(piece, 1.0) <= DISTURBANCE_BOUND]
    if quiet:
        return max(quiet, key=rates.__getitem__)
    return min(rates, key=slowdowns.__getitem__)


def ours(pair: Any, nbytes: int, piece: int, place: str, rounds: int) -> dict[str, Any]:
    """Return what a budget reaches in pieces of that size."""
    beside = [1] if place == "neighbor" else None
    sizes = {"piece_bytes": piece, "fetch_bytes": piece}
    budget = Budget(2 * nbytes, neighbors=beside, board=None, background=False, **sizes)
    mr = pool(pair.device, budget, nbytes)
    address = int(mr.allocate(nbytes))
    pair.write(address, nbytes)
    prefetcher = mr.managed_mr.residency
    out, into = [], []
    for _ in range(rounds + 1):
        out.append(timed(pair, lambda: prefetcher.evict(address, nbytes)))
        into.append(timed(pair, lambda: prefetcher.bring(address, nbytes)))
    kept = prefetcher.residency()
    mr.deallocate(address, nbytes)
    return {
        **{"piece_bytes": piece, "place": place, "way": "budget"},
        "evict_bytes_per_second": nbytes / statistics.median(out[1:]),
        "fetch_bytes_per_second": nbytes / statistics.median(into[1:]),
        "neighbor_bytes": kept["neighbor_bytes"],
        "failed_calls": kept["failed_calls"],
    }


def parallel(
    pair: Any, regions: Mapping[str, int], nbytes: int, piece: int, rounds: int
) -> dict[str, Any]:
    """Return seconds until halves came from both places: in turn, at once, by a budget."""
    half = nbytes // 2
    way = pair.ways[-1]

    def home(place: str) -> Callable[[], None]:
        return in_pieces(pair, regions[place], half, piece, "device", way)

    def in_turn() -> None:
        for place in PLACES:
            home(place)()

    both = {"in turn": in_turn, "at once": at_once([home(place) for place in PLACES])}
    seconds: dict[str, list[float]] = {name: [] for name in (*both, "budget")}
    limit = {"harvest_limit": half, "piece_bytes": piece, "fetch_bytes": piece}
    budget = Budget(2 * nbytes, neighbors=[1], board=None, background=False, **limit)
    mr = pool(pair.device, budget, nbytes)
    address = int(mr.allocate(nbytes))
    pair.write(address, nbytes)
    prefetcher = mr.managed_mr.residency
    for _ in range(rounds + 1):
        for name, fetch in both.items():
            for place in PLACES:
                in_pieces(pair, regions[place], half, piece, place, way)()
            seconds[name].append(timed(pair, fetch))
        prefetcher.evict(address, nbytes)
        seconds["budget"].append(timed(pair, lambda: prefetcher.bring(address, nbytes)))
    split = prefetcher.residency()["neighbor_bytes"] / (nbytes * (rounds + 1))
    mr.deallocate(address, nbytes)
    medians = {name: statistics.median(values[1:]) for name, values in seconds.items()}
    return {**medians, "piece_bytes": piece, "bytes": nbytes, "budget_neighbor_share": split}


def staged(pair: Any, address: int, nbytes: int, piece: int, rounds: int) -> dict[str, Any]:
    """Return seconds from the host: directly, through the neighbour, and half each way."""
    if pair.stages:
        return {"skipped": pair.stages}
    way = pair.ways[-1]

    def through(first: int, size: int) -> list[Callable[[], None]]:
        arrived: queue.Queue[int | None] = queue.Queue()

        def stage() -> None:
            try:
                for offset in range(first, first + size, piece):
                    pair.move(address + offset, piece, "neighbor", way)
                    arrived.put(offset)
            finally:
                arrived.put(None)

        def take() -> None:
            while (offset := arrived.get()) is not None:
                pair.move(address + offset, piece, "device", way)

        return [stage, take]

    def direct(first: int, size: int) -> Callable[[], None]:
        return in_pieces(pair, address + first, size, piece, "device", way)

    half = nbytes // 2
    seconds: dict[str, list[float]] = {"directly": [], "through the neighbour": [], "both": []}
    for _ in range(rounds + 1):
        for name, jobs in (
            ("directly", [direct(0, nbytes)]),
            ("through the neighbour", through(0, nbytes)),
            ("both", [direct(0, half), *through(half, half)]),
        ):
            in_pieces(pair, address, nbytes, piece, "host", way)()
            seconds[name].append(timed(pair, at_once(jobs)))
    medians = {name: statistics.median(values[1:]) for name, values in seconds.items()}
    return {**medians, "piece_bytes": piece, "bytes": nbytes}


def multipath(pair: Any, nbytes: int, piece: int, rounds: int) -> dict[str, Any]:
    """Return seconds in which a budget fetches from the host, with and without `multipath`."""
    found: dict[str, Any] = {"bytes": nbytes, "piece_bytes": piece}
    for name, wanted in (("over its own link", False), ("over both links", True)):
        budget = Budget(
            2 * nbytes,
            neighbors=[1],
            board=None,
            background=False,
            piece_bytes=piece,
            fetch_bytes=piece,
            multipath=wanted,
        )
        mr = pool(pair.device, budget, nbytes + ADVISED_BYTES)
        address = int(mr.allocate(nbytes))
        other = int(mr.allocate(ADVISED_BYTES))
        pair.write(address, nbytes)
        prefetcher = mr.managed_mr.residency
        seconds = []
        for _ in range(rounds + 1):
            prefetcher.advise(other, ADVISED_BYTES, read_mostly=True)  # then all leave to the host
            prefetcher.evict(address, nbytes)
            prefetcher.advise(other, ADVISED_BYTES, read_mostly=False)
            seconds.append(timed(pair, partial(prefetcher.bring, address, nbytes)))
        found[name] = statistics.median(seconds[1:])
        found["staged_bytes"] = prefetcher.residency()["staged_bytes"]
        mr.deallocate(other, ADVISED_BYTES)
        mr.deallocate(address, nbytes)
    return found


def free_memory(pair: Any, nbytes: int) -> dict[str, Any]:
    """Return what the neighbour has free, around holding memory in two ways of getting it back."""
    way = pair.ways[0]
    found: dict[str, Any] = {"bytes": nbytes}
    address = pair.region(nbytes, "neighbor")

    def go(place: str) -> int:
        in_pieces(pair, address, nbytes, 8 * MIB, place, way)()
        pair.wait()
        return int(pair.neighbor_free_bytes())

    found["before"] = int(pair.neighbor_free_bytes())
    found["held"] = go("neighbor")
    found["fetched back"] = go("device")
    found["held again"] = go("neighbor")
    if not pair.stages:
        found["left to the host"] = go("host")
    pair.free(address)
    pair.wait()
    found["freed"] = int(pair.neighbor_free_bytes())
    return found


def verdicts(result: Mapping[str, Any]) -> dict[str, Any]:
    """Judge what is there so far."""
    found: dict[str, Any] = {}
    rows = result["rows"]
    for row in result.get("ours", ()):
        same = [
            one
            for one in rows
            if one["beside"] == IDLE
            and (one["place"], one["piece_bytes"]) == (row["place"], row["piece_bytes"])
        ]
        for what in ("evict", "fetch"):
            rate = f"{what}_bytes_per_second"
            found[f"budget, {row['place']}, {what}, of the rate at that piece size"] = (
                harness.judged_at_least(row[rate] / max(one[rate] for one in same), OURS_BOUND)
            )
    if "parallel" in result:
        times = result["parallel"]
        found["halves at once, against in turn"] = harness.judged_at_least(
            times["in turn"] / times["budget"], PARALLEL_BOUND
        )
    if "multipath" in result and not result["simulated_pair"]:
        found["multipath sent some by way of the neighbour"] = (
            result["multipath"]["staged_bytes"] > 0
        )
    if "intact" in result:
        found["contents are as they were"] = result["intact"]
    return found


def measured(pair: Any, keep: Callable[[Mapping[str, Any]], None]) -> dict[str, Any]:
    """Measure everything; hand over what is there after each part."""
    nbytes = SIMULATED_BYTES if pair.simulated else BYTES
    beside = BESIDE[:1] if pair.simulated else BESIDE
    rounds = 1 if pair.simulated else 7
    regions = {place: pair.region(nbytes, place) for place in PLACES}
    result: dict[str, Any] = {"bytes": nbytes, "rows": [], "simulated_pair": pair.simulated}
    for row in curve(pair, regions, nbytes, beside):
        result["rows"].append(row)
        print(_told(row), flush=True)
        keep(result)
    piece = result["chosen_piece_bytes"] = chosen_piece(result["rows"])
    print(f"chosen: pieces of {piece // MIB} MiB", flush=True)
    result["ours"] = [ours(pair, nbytes, piece, place, rounds) for place in PLACES]
    keep(result)
    result["parallel"] = parallel(pair, regions, nbytes, piece, rounds)
    keep(result)
    result["staged"] = staged(pair, regions["host"], nbytes, piece, rounds)
    result["multipath"] = multipath(pair, nbytes, piece, rounds)
    keep(result)
    for place, address in regions.items():
        in_pieces(pair, address, nbytes, 8 * MIB, "device", pair.ways[0])()
        result["intact"] = result.get("intact", True) and pair.is_intact(address)
        pair.free(regions[place])
    result["neighbor_free_bytes"] = free_memory(pair, nbytes)
    keep(result)
    return result


def _told(row: Row) -> str:
    slow = row["neighbor_slowdown"]
    return (
        f"{row['place']:8} {row['way']:8} {row['piece_bytes'] // MIB:3} MiB, "
        f"{row['beside']:6} at the neighbour: "
        f"out {row['evict_bytes_per_second'] / 1e9:6.1f} in "
        f"{row['fetch_bytes_per_second'] / 1e9:6.1f} GB/s"
        + ("" if slow is None else f", neighbour {slow:.3f}x")
    )


def main(words: Sequence[str] | None = None) -> int:
    """Measure; return 1 if a verdict is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--simulated", action="store_true", help="test the script without GPUs")
    arguments = parser.parse_args(words)
    if not arguments.simulated:
        harness.require_managed_on_gpus(2, {"regions and pools": 4 * BYTES})
    pair = make_pair(simulated=arguments.simulated)

    def keep(result: Mapping[str, Any]) -> None:
        with contextlib.redirect_stdout(io.StringIO()):  # verdicts of a part are none
            whole = {**result, "verdicts": verdicts(result)}
            harness.write_json(arguments.json, "neighbors_paths", whole)

    result = measured(pair, keep)
    found = verdicts(result)
    parts = ("parallel", "staged", "multipath", "neighbor_free_bytes")
    print(json.dumps({name: result[name] for name in parts}, indent=1))
    print(json.dumps(found, indent=1))
    return harness.exit_status(found)


if __name__ == "__main__":
    raise SystemExit(main())
