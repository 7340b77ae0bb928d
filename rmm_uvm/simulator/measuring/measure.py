# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Measure a GPU, and make a machine profile of it."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any

from rmm_uvm._lib.limits import process_account
from rmm_uvm.doctor import SystemProbe
from rmm_uvm.doctor.features import format_version
from rmm_uvm.drivers import UvmDriver
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.machine.host_memory import host_memory
from rmm_uvm.simulator.measuring.derivation import derive
from rmm_uvm.simulator.measuring.figures import MeasuredFigures
from rmm_uvm.simulator.measuring.gpu import GpuWorkbench
from rmm_uvm.simulator.measuring.procedure import (
    COPY_BYTES,
    ROUNDS,
    Progress,
    region_bytes_for,
    take_figures,
)
from rmm_uvm.support.machine_files import Machine, load_machine, shipped_names
from rmm_uvm.support.units import format_bytes

__all__ = ["Measurement", "machine_of", "measure", "similar_machine"]

_DEFAULT_BASE = "h200-pcie5"


@dataclass(frozen=True)
class Measurement:
    """Measured figures, and the machine that follows from them.

    Attributes
    ----------
    machine : Machine
        The profile.
    figures : MeasuredFigures
        What it rests on.
    base : Machine
        The machine that ships with the package and is most like it; it gave what was not measured.
    """

    machine: Machine
    figures: MeasuredFigures
    base: Machine

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        machine = self.machine
        return {
            "machine": {
                key: getattr(machine, key)
                for key in ("name", "gpu", "link", "measured", "description", "date", "driver")
            },
            "base": str(self.base),
            "constants": {
                name: {
                    "value": value,
                    "source": machine.sources[name],
                    "base_value": getattr(self.base, name),
                }
                for name, value in machine.constants().items()
            },
            "figures": self.figures.to_dict(),
        }


def measure(
    driver: UvmDriver,
    *,
    name: str | None = None,
    rounds: int = ROUNDS,
    progress: Progress | None = None,
    cuda: Any = None,
) -> Measurement:
    """Measure a GPU that is otherwise idle.

    Parameters
    ----------
    driver : UvmDriver
        The device. It holds at most 1 GiB of managed memory and 512 MiB of cudaMalloc memory, and
        twice that managed memory has to be free.
    name : str, optional
        Of the machine; by default made of the GPU's.
    rounds : int
        Times that each figure is taken, >= 1.
    progress : callable, optional
        Called with a line before each part.
    cuda : module, optional
        `cuda.bindings.driver` or a stand-in for it; imported by default.

    Returns
    -------
    Measurement

    Raises
    ------
    AvailabilityError
        If too little memory is free, ``RMM_UVM_MANAGED_LIMIT`` is below 256 MiB, pages cannot
        migrate on this platform, or the device is a simulated one.
    ConfigurationError
        If the name is none.
    DriverError, MemoryError
        If a call fails.

    Notes
    -----
    Takes 10 to 40 seconds. One thread; the device's primary context is current in it meanwhile.
    """
    info = driver.info
    if info.simulated and cuda is None:
        raise AvailabilityError("a simulated device has a machine profile: there is none to find")
    if not info.concurrent_managed_access:
        raise AvailabilityError(
            f"nothing can be measured on {info.name}: {info.concurrent_managed_access.reason}"
        )
    if info.integrated:
        raise AvailabilityError(
            f"nothing can be measured on {info.name}: {info.oversubscribable.reason}"
        )
    account = process_account()
    cap_bytes = account.limit_bytes
    region_bytes = region_bytes_for(
        driver.memory()[0],
        host_memory().available_bytes,
        None if cap_bytes is None else max(cap_bytes - account.used_bytes, 0),
    )
    base = similar_machine(info.name)
    # Refused before, not after, half a minute of measuring.
    wanted = base.replace(name=name or _name_of(info.name)).name
    with GpuWorkbench(driver, COPY_BYTES, cuda) as bench:
        figures = take_figures(
            bench, region_bytes, copy_bytes=COPY_BYTES, rounds=rounds, progress=progress
        )
    version = SystemProbe().kernel_driver().version
    machine = machine_of(
        figures,
        base,
        name=wanted,
        gpu=f"{info.name}, {format_bytes(info.total_bytes)}",
        driver=format_version(version) if version else "",
    )
    return Measurement(machine, figures, base)


def machine_of(
    figures: MeasuredFigures, base: Machine, *, name: str, gpu: str, driver: str
) -> Machine:
    """Return the machine that follows from figures; see `measure`."""
    derived = derive(figures, base)
    to_device, to_host = (derived[f"to_{way}_bytes_per_ns"].value for way in ("device", "host"))
    return base.replace(
        name=name,
        gpu=gpu,
        link=f"{to_device:.1f} bytes/ns to the device, {to_host:.1f} to the host",
        measured=True,
        description="measured by rmm-uvm doctor --measure; one machine on one day",
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        driver=driver,
        sources={constant: one.source for constant, one in derived.items()},
        **{constant: one.value for constant, one in derived.items()},
    )


def similar_machine(gpu: str) -> Machine:
    """Return the shipped machine whose GPU has this name, or else the one that we measured.

    Examples
    --------
    >>> from rmm_uvm.simulator.measuring import similar_machine
    >>> print(similar_machine("NVIDIA GH200 480GB"))
    gh200-c2c (published only)
    >>> print(similar_machine("NVIDIA L40"))
    h200-pcie5
    """
    words = re.findall(r"[a-z0-9]+", gpu.lower())
    # A model is one word or several, as of RTX 3080 Ti: an L40 is no L4, and a GH200 no H200.
    ends = range(1, len(words) + 1)
    said = {"".join(words[begin:end]) for end in ends for begin in range(end)}
    models = {name: name.partition("-")[0] for name in shipped_names()}
    alike = sorted((name for name in models if models[name] in said), key=_length_of_model)
    return load_machine(alike[-1] if alike else _DEFAULT_BASE)


def _length_of_model(name: str) -> int:
    return len(name.partition("-")[0])


def _name_of(gpu: str) -> str:
    """Return a machine name made of a GPU's."""
    return re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-")[:64].strip("-") or "this-machine"
