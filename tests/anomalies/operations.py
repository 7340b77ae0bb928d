# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What programs ask of pools, budgets and hints: the operations of which calls are made to fail."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

import rmm_uvm
from rmm_uvm.mr import UvmResourceAdaptor
from rmm_uvm.residency import Budget

from .harness import Operation
from .world import MIB, PART_BYTES, World

BUDGET_BYTES = 8 * MIB
GROWTH_BYTES = 6 * MIB
PARTS = 6  # 1.5 times the budget


class Filled(NamedTuple):
    """A managed pool with buffers in it."""

    mr: UvmResourceAdaptor
    parts: list[int]


def budget(**settings: Any) -> Budget:
    return Budget(BUDGET_BYTES, **{"policy": "lru", "background": False, **settings})


def neighbors(world: World, **settings: Any) -> Budget:
    return budget(neighbors=[1], board=str(world.folder), **settings)


def pool(world: World, device_budget: Budget | None = None, initial_bytes: int = 16 * MIB) -> Any:
    return rmm_uvm.managed_pool(
        driver=world.device,
        initial_pool_size=initial_bytes,
        maximum_pool_size=24 * MIB,
        device_budget=device_budget,
    )


def filled(
    make_budget: Callable[[World], Budget | None], buffers: int = PARTS
) -> Callable[[World], Filled]:
    """Return what fills a pool, by default with more than its budget, if it has one."""

    def arrange(world: World) -> Filled:
        mr = pool(world, make_budget(world))
        parts = [mr.allocate(PART_BYTES) for _ in range(buffers)]
        for address in parts:
            rmm_uvm.touch((address, PART_BYTES), mr=mr)
            world.fill(address)
        return Filled(mr, parts)

    return arrange


def just_filled(make_budget: Callable[[World], Budget | None]) -> Callable[[World], Filled]:
    """Return what fills a pool with as much as its budget."""
    return filled(make_budget, BUDGET_BYTES // PART_BYTES)


def away(make_budget: Callable[[World], Budget | None]) -> Callable[[World], Filled]:
    """Return what fills a pool, and sends the first two buffers away."""

    def arrange(world: World) -> Filled:
        made = filled(make_budget)(world)
        for address in made.parts[:2]:
            rmm_uvm.evict((address, PART_BYTES), mr=made.mr)
        return made

    return arrange


def empty(world: World, made: Filled) -> None:
    """Free what is left in a pool."""
    world.device.synchronize()
    for address in made.parts:
        made.mr.deallocate(address, PART_BYTES)
    world.written.clear()


def failures(mr: UvmResourceAdaptor) -> str:
    """Return what a pool tells of what it could not do."""
    found = mr.managed_mr.residency
    residency = found.residency()
    kept = [] if residency is None else [residency["last_failure"]]
    told = [found.statistics()["last_failure"], found.board_reason, found.links_reason]
    return "".join([*told, *kept, *found.refused_neighbors])


def of_pool(_world: World, _subject: object, mr: UvmResourceAdaptor) -> str:
    return failures(mr)


def of_filled(_world: World, made: Filled, _result: object) -> str:
    return failures(made.mr)


def no_budget(_world: World) -> None:
    return None


KINDS: dict[str, Callable[[World], Budget | None]] = {
    "no budget": no_budget,
    "budget": lambda _world: budget(),
    "neighbour": neighbors,
    "thread": lambda world: neighbors(world, background=True),
    "in place": lambda world: neighbors(world, in_place=True, copy_beside=True, multipath=True),
    "direct": neighbors,
    "auto": lambda _world: budget(follows=True),
    "shared": lambda world: budget(follows=True, board=str(world.folder)),
}
# Which devices have what a kind is about.
FEATURES: dict[str, dict[str, Any]] = {"direct": {"direct_migration": True}}


def hint(
    name: str,
    kind: str,
    act: Callable[[World, Filled], Any],
    *,
    arranged: Callable[[Callable[[World], Budget | None]], Callable[[World], Filled]] = filled,
    undo: Callable[[World, Filled, Any], object] = lambda _world, _made, _result: None,
    otherwise: Collection[str] = (),
    reasons: Callable[[World, Filled, Any], str] = of_filled,
) -> Operation:
    return Operation(
        f"{name} ({kind})",
        arranged(KINDS[kind]),
        act,
        reasons=reasons,
        undo=undo,
        end=empty,
        otherwise=otherwise,
        features=FEATURES.get(kind, {}),
    )


def make(kind: str) -> Operation:
    return Operation(
        f"managed_pool ({kind})",
        lambda _world: None,
        lambda world, _none: pool(world, KINDS[kind](world)),
        reasons=of_pool,
        features=FEATURES.get(kind, {}),
    )


def touch_all(_world: World, made: Filled) -> int:
    return sum(rmm_uvm.touch((each, PART_BYTES), mr=made.mr) for each in made.parts)


def allocate(world: World, made: Filled, nbytes: int = PART_BYTES) -> int:
    address = made.mr.allocate(nbytes)
    world.fill(address, nbytes)
    return address


def free(world: World, made: Filled, address: int, nbytes: int = PART_BYTES) -> None:
    del world.written[address]
    made.mr.deallocate(address, nbytes)


def replace(world: World, made: Filled) -> None:
    """Free a buffer, and allocate another of its size."""
    free(world, made, made.parts.pop())
    made.parts.append(0)
    made.parts[-1] = allocate(world, made)


def drop_dead(world: World, made: Filled) -> None:
    """Free what is on the device, and bring what is away: the dead are dropped for it."""
    while len(made.parts) > PARTS // 2:
        free(world, made, made.parts.pop())
    touch_all(world, made)


def overfill(world: World, made: Filled) -> None:
    while len(made.parts) < PARTS:
        made.parts.append(allocate(world, made))


def fill_less(world: World, made: Filled, _result: object) -> None:
    while len(made.parts) > BUDGET_BYTES // PART_BYTES:
        free(world, made, made.parts.pop())


def fill_again(world: World, made: Filled, _result: object) -> None:
    overfill(world, made)


def first(made: Filled) -> tuple[int, int]:
    return made.parts[0], PART_BYTES


def last(made: Filled) -> tuple[int, int]:
    return made.parts[-1], PART_BYTES


def pinned(_world: World, made: Filled) -> Any:
    context = rmm_uvm.pin(first(made), mr=made.mr)
    context.__enter__()
    rmm_uvm.evict(first(made), mr=made.mr)
    return context


def grow(world: World, made: Filled) -> int:
    """Allocate more than the pool's first slab has left."""
    return allocate(world, made, GROWTH_BYTES)


def owner_needs(world: World, made: Filled) -> None:
    world.device.occupy_neighbor(1, 30 * MIB)
    made.mr.managed_mr.residency.run_pending()
    world.device.occupy_neighbor(1, 0)


def of(
    name: str,
    act: Callable[[World, Filled], Any],
    kinds: Iterable[str] = KINDS,
    **details: Any,
) -> list[Operation]:
    """Return the same operation on pools of several kinds."""
    return [hint(name, kind, act, **details) for kind in kinds]


def bring(_world: World, made: Filled) -> int:
    return rmm_uvm.prefetch(first(made), mr=made.mr)


def send(_world: World, made: Filled) -> object:
    return rmm_uvm.evict(last(made), mr=made.mr)


def sleep_and_wake(_world: World, made: Filled) -> str:
    slept = rmm_uvm.sleep(made.mr)
    rmm_uvm.wake(made.mr)
    return slept.reason


def of_sleeping(_world: World, made: Filled, reason: str) -> str:
    return failures(made.mr) + reason


def advise(_world: World, made: Filled) -> object:
    return rmm_uvm.advise(last(made), read_mostly=True, preferred="host", mr=made.mr)


def use_unseen(world: World, made: Filled) -> int:
    """Use what is away without a word: the next request looks for it."""
    world.device.touch(*first(made))
    return rmm_uvm.touch(last(made), mr=made.mr)


def unpin(_world: World, _made: Filled, context: Any) -> None:
    context.__exit__(None, None, None)


def follow(_world: World, made: Filled) -> None:
    made.mr.managed_mr.residency.run_pending()


def shrink(world: World, made: Filled, address: int) -> None:
    free(world, made, address, GROWTH_BYTES)


def set_capturing(world: World, state: str) -> None:
    for default_stream in (0, 1):  # its two names
        world.device.set_capture_state(default_stream, state)


def allocate_captured(world: World, made: Filled) -> int:
    set_capturing(world, "capturing")
    try:
        return allocate(world, made)
    finally:
        set_capturing(world, "none")


def end_graph(world: World, made: Filled, address: int) -> None:
    free(world, made, address)
    world.device.end_graphs()
    made.mr.deallocate(made.mr.allocate(256), 256)  # the pool looks


FEW = ("no budget", "budget", "neighbour")
WITH_BUDGET = ("budget", "neighbour", "thread", "direct")
OPERATIONS = [
    *map(make, KINDS),
    *of("touch", touch_all),
    *of("touch what is away", touch_all, arranged=away),
    *of("prefetch what is away", bring, FEW, arranged=away),
    *of("evict", send, FEW),
    *of("use unseen", use_unseen, WITH_BUDGET),
    *of("advise", advise, FEW),
    *of("pin", pinned, FEW, undo=unpin),
    *of("replace", replace, FEW),
    *of("grow", grow, FEW, undo=shrink),
    *of("allocate in a capture", allocate_captured, FEW, undo=end_graph),
    *of("evict", send, ["direct"]),
    *of("sleep and wake", sleep_and_wake, WITH_BUDGET, reasons=of_sleeping),
    *of("prefetch what is away", bring, ["direct"], arranged=away),
    *of("overfill", overfill, ["neighbour"], arranged=just_filled, undo=fill_less),
    # What cannot be dropped leaves, also to a neighbour.
    *of("drop what is dead", drop_dead, WITH_BUDGET, undo=fill_again, otherwise=["claimed"]),
    *of("follow others", follow, ["auto", "shared"]),
    *of("owner needs its memory", owner_needs, ["neighbour", "in place"], arranged=away),
]
