# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Generated data sets, kept between runs in the user's cache directory.

A data set appears under its name only when it is complete, so an interrupted run leaves none.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import rmm_uvm
from rmm_uvm.errors import DataError
from rmm_uvm_mortgage.generate import GeneratorConfig, GeneratorProgress, generate


def cache_directory() -> Path:
    """Return where generated data sets are kept: below ``XDG_CACHE_HOME`` or ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "rmm-uvm" / "mortgage"


def generated_data(
    config: GeneratorConfig,
    *,
    directory: Path | None = None,
    progress: Callable[[GeneratorProgress], None] | None = None,
) -> Path:
    """Return the directory of a data set, after generating it if it is not there yet.

    Parameters
    ----------
    config : GeneratorConfig
        What it holds.
    directory : Path or None
        Where data sets are kept; None for `cache_directory`.
    progress : callable or None
        Called while the data set is being written.

    Raises
    ------
    AvailabilityError, DataError
        See `rmm_uvm_mortgage.generate.generate`.
    """
    root = directory or cache_directory()
    target = root / _name(config)
    if target.is_dir():
        return target
    try:
        root.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=root))
    except OSError as error:
        raise DataError(
            f"no data set can be written below {root} ({error.strerror}); "
            "set XDG_CACHE_HOME to a directory that can be written"
        ) from error
    try:
        data = _folder_in(partial)
        generate(data, config, progress=progress)
        _publish(data, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _folder_in(partial: Path) -> Path:
    """Make a folder whose rights the umask decides; the one around it is private."""
    data = partial / "data"
    try:
        data.mkdir()
    except OSError as error:
        raise DataError(f"{data} cannot be made: {error.strerror}") from error
    return data


def _publish(partial: Path, target: Path) -> None:
    """Give a data set its name, unless another process was faster: theirs is the same."""
    try:
        partial.rename(target)
    except OSError as error:
        if not target.is_dir():
            raise DataError(f"{target} cannot be made: {error.strerror}") from error


def _name(config: GeneratorConfig) -> str:
    """Return a name that tells data sets apart, other versions' included."""
    sizes = {
        "loans": config.loans_per_quarter,
        "rows": config.performance_rows,
        "bytes": config.performance_bytes,
    }
    size = next(f"{value}{what}" for what, value in sizes.items() if value is not None)
    return (
        f"{rmm_uvm.__version__}-{size}-{config.start_year}-{config.quarters}q-"
        f"{config.months}m-seed{config.seed}"
    )
