# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""YAML and TOML in the documents have keys and values that whoever reads them knows."""

from __future__ import annotations

import copy
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dask.config
import distributed
import jsonschema
import pytest
import yaml

import rmm_uvm.dask
from rmm_uvm.errors import DataError
from rmm_uvm.mr import ManagedPool
from rmm_uvm.support.machine_files import load_machine

from ...support.snippets import REPOSITORY, SNIPPETS, Snippet

YAML = [one for one in SNIPPETS if one.kind == "yaml"]
TOML = [one for one in SNIPPETS if one.kind == "toml"]
SCHEMAS = (
    Path(rmm_uvm.dask.__file__).with_name("rmm-uvm-schema.yaml"),
    Path(distributed.__file__).with_name("distributed-schema.yaml"),
)
METADATA = {"name": None, "labels": {"app": None}}
SECURITY = {
    **dict.fromkeys(("runAsNonRoot", "runAsUser", "runAsGroup", "fsGroup")),
    "allowPrivilegeEscalation": None,
    "capabilities": {"add": [None], "drop": [None]},
}
RESOURCES = dict.fromkeys(("cpu", "memory", "nvidia.com/gpu"))
CONTAINER = {
    **{"name": None, "image": None, "command": [None], "args": [None]},
    "env": [{"name": None, "value": None}],
    "resources": {"requests": RESOURCES, "limits": RESOURCES},
    "securityContext": SECURITY,
    "volumeMounts": [{"name": None, "mountPath": None}],
}
# By kind, the fields that are used here, as the reference of the Kubernetes API has them (v1).
KUBERNETES: Mapping[str, Mapping[str, Any]] = {
    "Pod": {
        **{"apiVersion": None, "kind": None, "metadata": METADATA},
        "spec": {
            "restartPolicy": None,
            "securityContext": SECURITY,
            "containers": [CONTAINER],
            "volumes": [{"name": None, "emptyDir": {"medium": None, "sizeLimit": None}}],
        },
    },
    "Service": {
        **{"apiVersion": None, "kind": None, "metadata": METADATA},
        "spec": {"selector": {"app": None}, "ports": [{"name": None, "port": None}]},
    },
}


def unknown(settings: Any, known: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of keys that are not among those that are known."""
    if isinstance(settings, list):
        for each in settings:
            yield from unknown(each, known[0] if isinstance(known, list) and known else None, path)
    if not isinstance(settings, dict):
        return
    for key, value in settings.items():
        here = f"{path}.{key}".lstrip(".")
        if not isinstance(known, Mapping) or key not in known:
            yield here
        else:
            yield from unknown(value, known[key], here)


def check_yaml(text: str) -> None:
    """Check keys; of Dask's sections the values, too."""
    for settings in yaml.safe_load_all(text):
        if "kind" in settings:
            assert list(unknown(settings, KUBERNETES[settings["kind"]])) == []
            continue
        assert list(unknown(settings, dask.config.merge(*dask.config.defaults))) == []
        for schema in SCHEMAS:
            jsonschema.validate(settings, yaml.safe_load(schema.read_text()))


def check_machine(text: str, folder: Path) -> None:
    """Put the parts of a machine file in the place of those of one that ships, and load it."""
    shipped = REPOSITORY / "rmm_uvm/simulator/machines/a100-pcie4.toml"
    whole = tomllib.loads(shipped.read_text())
    parts = tomllib.loads(text)
    whole["machine"] = parts.pop("machine")
    whole["constants"].update(parts.pop("constants"))
    whole.update(parts)
    lines = [
        f"{name}={value!r}" if not isinstance(value, bool) else f"{name}={str(value).lower()}"
        for name, value in whole.pop("machine").items()
    ]
    tables = ["[machine]", *lines]
    for name, constant in whole.pop("constants").items():
        tables += [f"[constants.{name}]", *(f"{key}={value!r}" for key, value in constant.items())]
    for name, table in whole.items():
        tables += [f"[{name}]", *(f"{key}={value!r}" for key, value in table.items())]
    (folder / "one.toml").write_text("\n".join(tables))
    load_machine(folder / "one.toml")


@pytest.mark.parametrize("snippet", YAML, ids=lambda one: one.document)
def test_yaml_has_keys_that_there_are(snippet: Snippet) -> None:
    check_yaml(snippet.text)


@pytest.mark.parametrize("snippet", TOML, ids=lambda one: one.document)
def test_toml_is_of_a_machine_file(snippet: Snippet, tmp_path: Path) -> None:
    check_machine(snippet.text, tmp_path)


def test_there_are_settings_of_each_kind() -> None:
    assert {one.document for one in YAML} == {"dask.md", "kubernetes.md"}
    assert {one.document for one in TOML} == {"machines.md"}


@pytest.mark.parametrize(
    ("document", "right", "wrong"),
    [
        ("dask.md", "maximum-pool-size", "maximum-poolsize"),
        ("dask.md", "200GiB", "[200]"),
        ("dask.md", "preload:", "preloads:"),
        ("dask.md", "worker:", "workers:"),
        ("kubernetes.md", "runAsUser", "runAsuser"),
        ("kubernetes.md", "containers:", "container:"),
        ("kubernetes.md", "mountPath", "path"),
    ],
)
def test_misspelt_key_or_value_of_another_type_is_found(
    document: str, right: str, wrong: str
) -> None:
    text = "---\n".join(one.text for one in YAML if one.document == document)
    assert right in text
    with pytest.raises((AssertionError, jsonschema.ValidationError)):
        check_yaml(text.replace(right, wrong, 1))


@pytest.mark.parametrize(("right", "wrong"), [("unit", "units"), ("copy_ns", "copy_us")])
def test_misspelt_key_of_a_machine_is_found(tmp_path: Path, right: str, wrong: str) -> None:
    (snippet,) = TOML
    with pytest.raises(DataError):
        check_machine(snippet.text.replace(right, wrong), tmp_path)


def options_of_polars(text: str) -> dict[str, Any]:
    """Return what ``export`` lines give cudf-polars for its resource, by the setting's name."""
    words = [word for line in text.splitlines() for word in shlex.split(line)[1:]]
    pairs = dict(word.split("=", 1) for word in words)
    prefix = "CUDF_POLARS__MEMORY_RESOURCE_CONFIG__"
    assert set(pairs) == {f"{prefix}QUALNAME", f"{prefix}OPTIONS"}
    assert pairs[f"{prefix}QUALNAME"] == f"{ManagedPool.__module__}.{ManagedPool.__name__}"
    options: dict[str, Any] = yaml.safe_load(pairs[f"{prefix}OPTIONS"])
    return options


def test_pool_in_the_environment_of_cudf_polars_can_be_made() -> None:
    (text,) = [one.text for one in SNIPPETS if "export CUDF_POLARS" in one.text]
    options = options_of_polars(text)
    pool = ManagedPool(driver="simulated:128GiB", initial_pool_size="8MiB", **options)
    assert pool is not None
    misspelt = {f"{name}s": copy.copy(value) for name, value in options.items()}
    with pytest.raises(TypeError):
        ManagedPool(driver="simulated:128GiB", initial_pool_size="8MiB", **misspelt)
