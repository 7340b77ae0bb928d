# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""nvshare: two jobs of 15.3 GB on a card of 16 GB, let loose and taking turns."""

from __future__ import annotations

from _published import Order, Row, Table, published, run
from _workloads import GB, parts, read, scaled, seconds_of, simulator_with, whole_blocks

from rmm_uvm.simulator import Machine, Simulator, load_machine

_SCALE = 64
_MIX = "90/10"
# One step of training; not published. It does not matter for turns, which are far longer.
_STEP_SECONDS = 0.5
_SLICES = 64  # parts of a step that take turns where nobody controls them
_UNCONTROLLED_STEPS = 4
_STEP = f"a training step is taken to be {_STEP_SECONDS} s, which is not published"


class _Tenant:
    """A job that goes over its working set in each step."""

    def __init__(self, sim: Simulator, machine: Machine, nbytes: int) -> None:
        self._sim = sim
        self._nbytes = nbytes
        self._address = sim.allocate_managed(nbytes)
        reading = nbytes / machine.memory_bytes_per_ns / 1e9
        self._compute_seconds = _STEP_SECONDS / _SCALE - reading
        self.left_seconds = 0.0  # work of the device, scaled

    def step(self) -> None:
        """Run one step."""
        self._sim.kernel([read(self._address, self._nbytes)], compute_seconds=self._compute_seconds)
        self._sim.synchronize()
        self.left_seconds -= _STEP_SECONDS / _SCALE

    def slices(self) -> list[tuple[int, int]]:
        """Return address and size of the parts of a step."""
        return [(self._address + at, size) for at, size in parts(self._nbytes, _SLICES)]

    @property
    def slice_seconds(self) -> float:
        """What a part computes."""
        return self._compute_seconds / _SLICES


def _tenants() -> tuple[Simulator, list[_Tenant]]:
    data = published("nvshare_tenants")
    machine = scaled(load_machine(data["machine"]), _SCALE)
    nbytes = whole_blocks(data["working_set_gb"] * GB / _SCALE)
    sim = simulator_with(machine, machine.device_bytes / _SCALE)
    tenants = [_Tenant(sim, machine, nbytes) for _ in range(2)]
    for tenant in tenants:
        tenant.left_seconds = data["solo_seconds"][_MIX] * data["gpu_fraction"][_MIX] / _SCALE
    return sim, tenants


def _in_turns(quantum_seconds: float) -> float:
    """Return when both are done, with turns of `quantum_seconds`."""
    sim, tenants = _tenants()
    begin = sim.seconds
    turn = 0
    while any(tenant.left_seconds > 0 for tenant in tenants):
        tenant = tenants[turn % 2]
        turn += 1
        until = sim.seconds + quantum_seconds / _SCALE
        while tenant.left_seconds > 0 and sim.seconds < until:
            tenant.step()
    return (sim.seconds - begin) * _SCALE + _host_seconds()


def _uncontrolled() -> float:
    """Return when both are done, where their steps mix in small parts."""
    sim, tenants = _tenants()
    steps = tenants[0].left_seconds / (_STEP_SECONDS / _SCALE)

    def mixed() -> None:
        for first, second in zip(*(tenant.slices() for tenant in tenants), strict=True):
            for address, nbytes in (first, second):
                sim.kernel([read(address, nbytes)], compute_seconds=tenants[0].slice_seconds)

    mixed()  # first touch
    seconds = seconds_of(sim, lambda: [mixed() for _ in range(_UNCONTROLLED_STEPS)])
    return seconds / _UNCONTROLLED_STEPS * steps * _SCALE + _host_seconds()


def _host_seconds() -> float:
    """Return the host's part of one job; that of the other passes beside the device's work."""
    data = published("nvshare_tenants")
    return data["solo_seconds"][_MIX] * (1 - data["gpu_fraction"][_MIX])


def table() -> Table:
    """Run every case."""
    data = published("nvshare_tenants")
    uncontrolled = _uncontrolled()
    turns = {quantum: _in_turns(float(quantum)) for quantum in data["quantum_seconds"][_MIX]}
    rows = [
        Row(
            *("uncontrolled", "both done", "s", data["uncontrolled_seconds"][_MIX]),
            *(uncontrolled, _STEP),
        ),
        *(
            Row(
                *(f"turns of {quantum} s", "both done", "s"),
                *(data["quantum_seconds"][_MIX][quantum], seconds),
                "a turn is hardly longer than bringing the working set in: small differences of "
                "the rate count manifold"
                if float(quantum) <= 10
                else "",
                # A turn is longer than a job: both times alone, one after the other.
                by_construction=float(quantum) >= data["solo_seconds"][_MIX],
            )
            for quantum, seconds in turns.items()
        ),
    ]
    return Table(
        name="nvshare_tenants",
        title=data["title"],
        source=data["source"],
        machine=str(load_machine(data["machine"])),
        workload="each job goes over 15.3 GB in every step; the device's share of the time is that "
        f"of the job alone; {_STEP}; CPU time of one job passes beside the other's turn",
        scale=_SCALE,
        rows=tuple(rows),
        orders=(
            Order(
                "turns",
                (*(f"{quantum} s" for quantum in turns), "uncontrolled"),
                (*turns.values(), uncontrolled),
                "s",
            ),
        ),
        left_out={
            "50/50 mix": "how CPU phases of one job fall beside device phases of the other decides "
            "there, and how long phases are is not published",
        },
    )


if __name__ == "__main__":
    raise SystemExit(run(table))
