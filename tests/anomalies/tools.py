# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Operations on the planner, traces, boards, metrics, leases and torch, each made to fail."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import rmm
import torch

import rmm_uvm
from rmm_uvm import doctor, drivers, harvest, planner, simulator, trace
from rmm_uvm.integrations import prometheus
from rmm_uvm.residency import memory_of
from rmm_uvm.torch import ManagedEmbedding, ManagedEmbeddingBag, announced, recorded, simulated

from .harness import Operation
from .installing import OF_SAMPLES, install, ipc, nothing, restored, stop, watch
from .operations import KINDS, PART_BYTES, Filled, failures, filled, of_filled, of_pool, pool
from .operations import empty as emptied
from .world import DEVICE_BYTES, MIB, World

_BOARDS = "XDG_RUNTIME_DIR"
_HEADER = "Thread,Time,Action,Pointer,Size,Stream\n"
_ROW = "1,00:00:{second:02}.000000,{action},{address:#x},{nbytes},0\n"


def log(world: World) -> Path:
    """Write what RMM logs of four buffers, of which a card of 16 MiB has room for three."""
    path = world.folder / "rmm.log"
    rows = [
        _ROW.format(second=second, action=action, address=(256 + 4 * buffer) * MIB, nbytes=4 * MIB)
        for second, action in ((0, "allocate"), (1, "free"))
        for buffer in range(4)
    ]
    path.write_text(_HEADER + "".join(rows))
    return path


def plan(_world: World, path: Path) -> Any:
    return rmm_uvm.plan(path, "16MiB", announced=True)


def traced(world: World, _none: object = None) -> trace.TraceWriter:
    """Write a trace of one buffer and one stage."""
    with trace.TraceWriter(world.folder / "one.uvmtrace", overwrite=True) as writer:
        writer.stage_begin("etl")
        writer.allocated(0, 16 * MIB, PART_BYTES)
        writer.touched(0, 16 * MIB, PART_BYTES, write=True)
        writer.freed(0, 16 * MIB, PART_BYTES)
        writer.stage_end()
    return writer


def of_kernels(world: World, _none: object = None) -> Path:
    """Write a trace of kernels that do not fit on a card of 8 MiB together."""
    path = world.folder / "kernels.uvmtrace"
    path.unlink(missing_ok=True)
    with trace.KernelTraceWriter(path) as writer:
        parts = [writer.allocate(6 * MIB) for _ in range(2)]
        with writer.stage("step"):
            for part in parts * 2:
                writer.kernel("add", reads=[part], writes=[part], seconds=1e-3)
    return path


def run_kernels(world: World, _none: object) -> Any:
    return planner.replay_paced(of_kernels(world), "8MiB")


def read(world: World, _writer: object) -> tuple[int, int, bool]:
    path = world.folder / "one.uvmtrace"
    whole = trace.read(path)
    events = sum(len(each) for each in trace.iter_events(path))
    return len(whole.events), events, whole.truncated


def boards(world: World) -> tuple[harvest.HarvestBoard, harvest.HarvestBoard]:
    """Offer 4 MiB of a device to others."""
    owner, claimant = (harvest.HarvestBoard(world.folder) for _ in range(2))
    owner.offer(world.device.info.uuid, 4 * MIB)
    return owner, claimant


def claim(world: World, places: tuple[Any, Any]) -> int:
    return int(places[1].claim(world.device.info.uuid, MIB, free_bytes=8 * MIB, reserve_bytes=MIB))


def release(world: World, places: tuple[Any, Any], granted: int) -> None:
    places[1].release(world.device.info.uuid, granted)


def leased(world: World) -> tuple[Any, bytes]:
    made, buffer = ipc(world)
    return made, bytes(made.export(buffer))


def revoke(_world: World, subject: tuple[Any, bytes]) -> tuple[bool, int, int]:
    made, handle = subject
    return made.revoke(handle), len(made.leases()), made.collect()


def watched_installation(world: World) -> str:
    """Install, and let monitors publish in the world's folder; return where they did before."""
    install(world)
    before = os.environ.get(_BOARDS, "")
    os.environ[_BOARDS] = str(world.folder)
    return before


def end_watched(_world: World, before: str) -> None:
    del os.environ[_BOARDS]
    if before:
        os.environ[_BOARDS] = before
    rmm_uvm.restore()


def published(_world: World, _none: object) -> Any:
    return rmm_uvm.monitor(interval_seconds=3600.0, on_finding=None).start()


def of_published(_world: World, _none: object, monitor: Any) -> str:
    found = monitor.sources
    return "".join(found[name].reason for name in ("sampler", "board") if name in found)


def serve(_world: World, _none: object) -> Any:
    return prometheus.start_http(0)


def close(_world: World, _none: object, server: Any) -> None:
    server.close()


def export_metrics(_world: World, _monitor: object) -> Any:
    import prometheus_client

    registry = prometheus_client.CollectorRegistry()
    told = prometheus.register(registry)
    text = prometheus_client.generate_latest(registry)
    prometheus.unregister(registry)
    return told, b"rmm_uvm_footprint_bytes" in text


def kept_machine(world: World, machine: simulator.Machine) -> Any:
    machine = machine.replace(third_tier=simulator.ThirdTier.named("2TB@6.8/4.0/80us"))
    path = world.folder / "own.toml"
    simulator.save_machine(machine, path)
    return simulator.load_machine(path).name


def model(_world: World, machine: simulator.Machine) -> Any:
    made = simulator.Simulator(machine, device_bytes=4 * MIB)
    address = made.allocate_managed(8 * MIB)
    made.kernel([simulator.Access(address, 8 * MIB)])
    return made, made.counters()


def tensors(_world: World) -> tuple[Any, Any]:
    return torch.nn.Linear(8, 8), torch.ones(8)


def shadowed(world: World, subject: tuple[Any, Any]) -> int:
    path = world.folder / "torch.uvmtrace"
    path.unlink(missing_ok=True)
    module, values = subject
    with simulated("64MiB", trace=path) as shadow:
        module(values)
    return int(shadow.statistics().kernels)


def recording(_world: World, subject: tuple[Any, Any]) -> int:
    module, values = subject
    with recorded() as program:
        module(values)
    return int(program.peak_bytes)


def announce(_world: World, made: Filled) -> None:
    module, values = torch.nn.Linear(8, 8), torch.ones(8)
    with announced(made.mr):
        module(values)


def tables(_world: World, made: Any) -> Any:
    table = ManagedEmbedding(1000, 64, sparse=True, mr=made)
    return table, ManagedEmbeddingBag(1000, 64, sparse=True, mr=made)


def trims(_world: World, made: Filled) -> Any:
    rmm_uvm.trim_when_idle(1e6)
    rmm_uvm.trim_when_idle(None)
    return rmm_uvm.trim(made.mr)


def statistics(_world: World, made: Filled) -> Any:
    regions = memory_of((made.parts[0], PART_BYTES))  # where they are differs from pool to pool
    sizes = [region.nbytes for region in regions]
    return rmm_uvm.residency_statistics(made.mr).budget_bytes, sizes


def staged(_world: World, monitor: Any) -> bool:
    with rmm_uvm.stage("etl"):
        pass
    return any(stage["name"] == "etl" for stage in monitor.report().to_dict()["stages"])


def device(_world: World, _none: object) -> Any:
    made = rmm_uvm.simulated_device(DEVICE_BYTES, backing=True, neighbors=1)
    return made, drivers.counters_are_on()


def resources(world: World, _none: object) -> Any:
    """Make a chain of resources, each by itself, and memory as cudaMalloc's."""
    account = rmm_uvm.mr.ManagedAccount()
    upstream = rmm_uvm.mr.ManagedMemoryResource(world.device, account=account)
    pool = rmm.mr.PoolMemoryResource(upstream, 4 * MIB, 4 * MIB)
    made = rmm_uvm.mr.UvmResourceAdaptor(pool)
    made.deallocate(made.allocate(PART_BYTES), PART_BYTES)
    plain = rmm_uvm.mr.SimulatedCudaMemoryResource(world.device)
    plain.deallocate(plain.allocate(MIB), MIB)
    return made, upstream, plain, account


def of_resources(_world: World, _none: object, made: Any) -> str:
    return failures(made[0])


def by_name(world: World, _none: object) -> Any:
    return rmm_uvm.mr.ManagedPool(
        initial_pool_size=8 * MIB, maximum_pool_size=8 * MIB, driver=world.device
    )


def of_examined(_world: World, _none: object, report: doctor.DoctorReport) -> object:
    found = [(feature.title, feature.reason) for feature in (*report.features, *report.extras)]
    return report.versions, found, report.host_memory is None


# What makes no call of the driver that others do not make as well.
OF_FILES = [
    Operation("plan", log, plan, shows=lambda _w, _path, made: made.to_dict()),
    Operation(
        "read_rmm_log",
        log,
        lambda _w, path: len(trace.read_rmm_log(path).events),
        shows=lambda _w, _path, count: count,
    ),
    Operation(
        "TraceWriter",
        nothing,
        traced,
        lambda _w, _none, writer: writer.failed,
        shows=lambda _w, _none, writer: {**writer.counts, "written_bytes": 0},  # times vary
    ),
    Operation("KernelTraceWriter", nothing, of_kernels, shows=lambda _w, _none, path: path.name),
    Operation(
        "replay_paced",
        nothing,
        run_kernels,
        shows=lambda _w, _none, took: (took, took.stages["step"].slowdown),
    ),
    Operation("read a trace", traced, read, shows=lambda _w, _writer, counts: counts),
    Operation(
        "read_board",
        boards,
        lambda world, _places: harvest.read_board(world.folder),
        lambda _w, _places, view: view.reason,
        shows=lambda _w, _places, view: (len(view.processes), len(view.devices)),
    ),
    Operation(
        "claim",
        boards,
        claim,
        lambda _w, places, _granted: places[1].usable.reason,
        release,
        shows=lambda _w, _places, granted: granted,
    ),
    Operation(
        "save_machine",
        lambda _w: simulator.load_machine("h200-pcie5"),
        kept_machine,
        shows=lambda _w, _machine, name: name,
    ),
    Operation(
        "load_machine",
        nothing,
        lambda _w, _none: (simulator.load_machine("a100-pcie4"), simulator.machine_names()),
    ),
    Operation(
        "Simulator",
        lambda _w: simulator.load_machine("h200-pcie5"),
        model,
        shows=lambda _w, _machine, made: made[1],
    ),
    Operation("simulated", tensors, shadowed, shows=lambda _w, _tensors, kernels: kernels),
    Operation("recorded", tensors, recording, shows=lambda _w, _tensors, peak: peak),
    Operation("simulated_device", nothing, device),
    Operation(
        "start_http",
        watched_installation,
        serve,
        lambda world, none, server: of_published(world, none, server._owned),
        close,
        end=end_watched,
        quiet=OF_SAMPLES,
        threaded=True,
    ),
    Operation(
        "examine",
        nothing,
        lambda _w, _none: doctor.examine(),
        lambda _w, _none, report: report.software_reason + report.host_memory_reason,
        shows=of_examined,
    ),
]
ASKING = [
    Operation(
        "revoke and collect",
        leased,
        revoke,
        shows=lambda _w, _pool, told: told,
    ),
    Operation(
        "monitor that publishes",
        watched_installation,
        published,
        of_published,
        stop,
        end=end_watched,
        quiet=OF_SAMPLES,
        threaded=True,
    ),
    Operation(
        "register",
        watch,
        export_metrics,
        lambda _w, _m, told: told[0].reason,
        end=stop,
        quiet=OF_SAMPLES,
        shows=lambda _w, _m, told: told[1],
    ),
    Operation(
        "stage", watch, staged, end=stop, quiet=OF_SAMPLES, shows=lambda _w, _m, count: count
    ),
    Operation("announced", filled(KINDS["budget"]), announce, of_filled, end=emptied),
    Operation(
        "residency_statistics",
        filled(KINDS["budget"]),
        statistics,
        of_filled,
        end=emptied,
        shows=lambda _w, _made, told: told,
    ),
    Operation(
        "trim",
        filled(KINDS["budget"]),
        trims,
        lambda _w, made, told: failures(made.mr) + told.reason,
        end=emptied,
    ),
    Operation("ManagedEmbedding", pool, tables, lambda _w, made, _tables: failures(made)),
    Operation("resources", nothing, resources, of_resources),
    Operation("ManagedPool", nothing, by_name, of_pool),
    Operation(
        "current_installation",
        install,
        lambda _w, _made: rmm_uvm.current_installation() is not None,
        end=restored,
        shows=lambda _w, _made, there: there,
    ),
]
