# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Commands and manifests in the documents are such that Dask and our preload take them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from dask_cuda.cli import worker as cuda_worker
from distributed.cli.dask_scheduler import main as scheduler
from distributed.cli.dask_worker import main as worker

from rmm_uvm.dask.preload import dask_setup
from rmm_uvm.dask.settings import NAMES, checked

pytestmark = pytest.mark.filterwarnings("default")  # of Dask's modules

REPOSITORY = Path(__file__).resolve().parents[3]
COMMANDS: dict[tuple[str, ...], click.Command] = {
    ("dask", "cuda", "worker"): cuda_worker,
    ("dask", "scheduler"): scheduler,
    ("dask", "worker"): worker,
}


def blocks(document: str, language: str) -> list[str]:
    text = (REPOSITORY / document).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def read(words: list[str]) -> dict[str, Any]:
    """Return what a command line asks for; a usage error if it is none."""
    for begin, command in COMMANDS.items():
        if tuple(words[: len(begin)]) == begin:
            context = command.make_context(" ".join(begin), words[len(begin) :])
            return context.params
    raise AssertionError(f"no command of Dask: {words}")


def commands_of(document: str) -> Iterator[list[str]]:
    for block in blocks(document, "bash"):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("dask "):
                yield shlex.split(line)


def manifests() -> list[dict[str, Any]]:
    return [
        each
        for block in blocks("docs/use/kubernetes.md", "yaml")
        for each in yaml.safe_load_all(block)
    ]


def containers() -> Iterator[dict[str, Any]]:
    for manifest in manifests():
        yield from manifest["spec"].get("containers", ())


def test_commands_in_the_document_are_taken_by_dask_and_by_the_preload() -> None:
    found = [read(words) for words in commands_of("docs/use/dask.md")]
    assert len(found) == 2
    flags = dask_setup.make_context("dask_setup", list(found[1]["preload_argv"])).params
    assert flags["maximum_pool_size"] == (200 << 30,)
    assert flags["prefetch"] == ("always",)


def test_wrong_flag_in_a_command_would_be_noticed() -> None:
    with pytest.raises(click.UsageError):
        read(["dask", "cuda", "worker", "tcp://a:1", "--preload", "rmm_uvm.dask", "--pool", "1"])


def test_commands_of_the_containers_are_taken_by_dask_and_by_the_preload() -> None:
    found = {each["name"]: read([*each["command"], *each["args"]]) for each in containers()}
    assert set(found) == {"workers", "scheduler"}
    assert found["workers"]["device_memory_limit"] == "0"
    flags = dask_setup.make_context("dask_setup", list(found["workers"]["preload_argv"])).params
    assert flags["ipc_pool_size"] == (256 << 20,)
    assert found["scheduler"]["protocol"] == "ucxuvm"
    assert [each["preload"] for each in found.values()] == [("rmm_uvm.dask",)] * 2


def test_pods_run_without_root_and_have_shared_memory_and_a_limit() -> None:
    pods = [manifest for manifest in manifests() if manifest["kind"] == "Pod"]
    assert len(pods) == 2
    for pod in pods:
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert pod["spec"]["securityContext"]["runAsUser"] > 0
    workers = pods[0]["spec"]
    (container,) = workers["containers"]
    assert (
        container["resources"]["limits"]["memory"] == container["resources"]["requests"]["memory"]
    )
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    volumes = {each["name"]: each["emptyDir"] for each in workers["volumes"]}
    assert set(mounts) == set(volumes)
    assert mounts["shm"] == "/dev/shm"
    assert volumes["shm"] == {"medium": "Memory", "sizeLimit": "1Gi"}


def test_no_container_makes_a_scheduler_without_a_gpu_look_for_one() -> None:
    for container in containers():
        names = {each["name"]: each["value"] for each in container["env"]}
        assert "cuda" not in names.get("UCX_TLS", "")


def test_service_leads_to_the_port_of_the_scheduler() -> None:
    (service,) = [each for each in manifests() if each["kind"] == "Service"]
    (pod,) = [
        each
        for each in manifests()
        if each["metadata"]["name"] == "rmm-uvm-scheduler" and each["kind"] == "Pod"
    ]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    arguments = pod["spec"]["containers"][0]["args"]
    ports = {each["name"]: str(each["port"]) for each in service["spec"]["ports"]}
    assert arguments[arguments.index("--port") + 1] == ports["comm"]
    assert arguments[arguments.index("--dashboard-address") + 1] == f":{ports['dashboard']}"


@pytest.mark.parametrize("document", ["docs/use/dask.md", "docs/use/configuration.md"])
def test_documents_name_every_setting(document: str) -> None:
    text = (REPOSITORY / document).read_text()
    assert [name for name in NAMES if name.replace("_", "-") not in text] == []


def test_configuration_in_the_document_can_be_used() -> None:
    (text,) = blocks("docs/use/dask.md", "yaml")
    section = yaml.safe_load(text)["rmm-uvm"]
    for name, value in section.items():
        checked({name: value})
