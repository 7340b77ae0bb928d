# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""conda's recipe asks for what pyproject.toml asks for, for each RMM that is supported."""

from __future__ import annotations

import copy
import re
import runpy
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from rmm_uvm.support.requirements import CUDA_MAJORS, MINIMUM_CUDA, RMM_MINORS

from ...support.projects import CONTENTS
from ...support.snippets import REPOSITORY

FOLDER = REPOSITORY / "conda" / "recipes" / "rmm-uvm"
RECIPE = yaml.safe_load((FOLDER / "recipe.yaml").read_text())
VARIANTS = yaml.safe_load((FOLDER / "variants.yaml").read_text())
CONTENT = CONTENTS["rmm-uvm"]
PROJECT = CONTENT["project"]
# Where conda's name is not ours without the CUDA major.
NAMES = {
    "torch": "pytorch",
    "prometheus-client": "prometheus_client",
    "nvidia-cuda-runtime": "cuda-cudart-dev",
    "nvidia-cuda-crt": "cuda-crt-dev_${{ target_platform }}",
    "nvidia-cuda-cupti": "cuda-cupti-dev",
}


def conda_form(line: str) -> str:
    """Return a requirement of pyproject.toml as the recipe has it."""
    needed = Requirement(line)
    name = re.sub(r"-cu(da)?13x?$", "", needed.name)
    bounds = ",".join(sorted(map(str, needed.specifier), reverse=True))
    if name.startswith("nvidia-cuda-"):  # the bounds are cuda-version's
        return NAMES[name]
    if bounds.startswith("=="):
        bounds = "=${{ distributed_ucxx }}" if "ucxx" in name else "=${{ rmm }}"
    return f"{NAMES.get(name, name)} {bounds}"


def expected() -> dict[str, set[str]]:
    """Return the requirements that the recipe should have, by its lists."""
    build = {conda_form(line) for line in CONTENT["build-system"]["requires"]}
    extras = [
        conda_form(line)
        for extra, lines in PROJECT["optional-dependencies"].items()
        for line in lines
        if extra not in ("test", "attribution")  # other packages may bring CUPTI of CUDA 12
    ]
    python = RECIPE["context"]["python_oldest"]
    oldest = ".".join(map(str, MINIMUM_CUDA[min(CUDA_MAJORS)]))
    assert PROJECT["requires-python"] == f">={python}"
    return {
        "build": {
            f"cmake {CONTENT['tool']['scikit-build']['cmake']['version']}",
            *("ninja", '${{ compiler("cxx") }}', '${{ stdlib("c") }}'),
        },
        "host": {
            *("python =${{ python_oldest }}", "python-abi3 =${{ python_oldest }}"),
            *("pip", "wheel", f"cuda-version ={max(CUDA_MAJORS)}", *build),
        },
        "run": {"python", *map(conda_form, PROJECT["dependencies"])},
        "run_constraints": {f"cuda-version >={oldest},<{max(CUDA_MAJORS) + 1}", *extras},
    }


def differences(recipe: dict[str, Any]) -> set[str]:
    """Return the requirements that a recipe has too many or too few, each after its list."""
    return {
        f"{where}: {needed}"
        for where, lines in expected().items()
        for needed in lines ^ set(recipe["requirements"][where])
    }


def test_recipe_asks_for_what_the_project_asks_for() -> None:
    assert differences(RECIPE) == set()


@pytest.mark.parametrize("where", ["host", "run", "run_constraints"])
def test_requirement_that_the_project_does_not_have_is_found(where: str) -> None:
    recipe = copy.deepcopy(RECIPE)
    changed = recipe["requirements"][where]
    changed[-1] = "rmm >=26.12"
    assert differences(recipe) >= {f"{where}: rmm >=26.12"}
    assert len(differences(recipe)) == 2  # and what was there


def test_recipe_has_the_version_and_the_command_of_the_project() -> None:
    assert RECIPE["context"]["version"] == PROJECT["version"]
    commands = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert RECIPE["build"]["python"]["entry_points"] == commands
    assert RECIPE["about"]["summary"] == PROJECT["description"]
    assert RECIPE["about"]["license"] == PROJECT["license"]


def test_recipe_is_built_for_every_supported_rmm() -> None:
    release = runpy.run_path(str(REPOSITORY / "ci" / "release_wheels.py"))
    assert VARIANTS["rmm"] == [f"{major}.{minor:02}" for major, minor in RMM_MINORS]
    assert VARIANTS["distributed_ucxx"] == [
        f"0.{release['ucxx_of'](*minor)}" for minor in RMM_MINORS
    ]


def test_recipe_is_tested_beside_every_supported_cuda() -> None:
    runs = [test["requirements"]["run"] for test in RECIPE["tests"] if "script" in test]
    assert runs == [[f"cuda-version ={major}"] for major in CUDA_MAJORS]
