# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Category values of a data set, from which both engines make the same codes.

A code is the lexical rank of a string in its domain. The original pipeline used hashes, but those
of cuDF and pandas differ. Generated data carries its values in ``categories.json``, with the size
of every file; other data is scanned once, with every field checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from rmm_uvm.errors import DataError
from rmm_uvm.recording.values import value_of
from rmm_uvm.support.output import whole_file
from rmm_uvm_mortgage.files import DataFiles, find_files
from rmm_uvm_mortgage.ranges import body_of
from rmm_uvm_mortgage.schema import CLOSED_DOMAINS, OPEN_DOMAINS
from rmm_uvm_mortgage.text import scan_batches

FILE_NAME = "categories.json"
Domains = dict[str, tuple[str, ...]]


def load_domains(files: DataFiles, progress: Callable[[Path], None] | None = None) -> Domains:
    """Return the sorted values of every category domain of a data set.

    Parameters
    ----------
    files : DataFiles
        The data set.
    progress : callable or None
        Called with every file that is scanned, before the scan.

    Raises
    ------
    DataError
        ``categories.json`` is broken or does not fit the files, or a scanned file is broken.
    """
    path = files.directory / FILE_NAME
    return _read(path, files) if path.exists() else scan_domains(files, progress)


def scan_domains(files: DataFiles, progress: Callable[[Path], None] | None = None) -> Domains:
    """Collect the category values of all files in one streaming pass.

    Every field of every file is converted to its column's type on the way, so that a broken file
    is found before a reader that would accept it sees it.
    """
    import pyarrow.compute as pc

    found: dict[str, set[str]] = {name: set() for name in OPEN_DOMAINS}
    found |= {name: set(values) for name, values in CLOSED_DOMAINS.items()}
    for path, schema in files.tables():
        if progress is not None:
            progress(path)
        for batch in scan_batches(body_of(path, schema), schema):
            for column, domain in schema.category_columns.items():
                values = pc.unique(batch.column(column).dictionary_decode())
                found[domain].update(v for v in values.to_pylist() if v is not None)
    return {name: tuple(sorted(values)) for name, values in found.items()}


def write_domains(directory: Path, domains: Mapping[str, tuple[str, ...]]) -> None:
    """Write ``categories.json`` for all data files that are in the directory now."""
    sizes = {
        str(path.relative_to(directory)): path.stat().st_size
        for path, _ in find_files(directory).tables()
    }
    content = {"file_bytes": sizes, "domains": {k: sorted(v) for k, v in domains.items()}}
    with whole_file(directory / FILE_NAME) as target:
        target.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _read(path: Path, files: DataFiles) -> Domains:
    remedy = f"generate the data again, or remove {FILE_NAME} to have the files scanned"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        domains: Domains = value_of(Mapping[str, tuple[str, ...]], content["domains"], "domains")
        sizes: dict[str, int] = value_of(Mapping[str, int], content["file_bytes"], "file_bytes")
        missing = {*CLOSED_DOMAINS, *OPEN_DOMAINS} - domains.keys()
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{path} cannot be read ({error}); {remedy}") from error
    if missing or any(list(v) != sorted(set(v)) for v in domains.values()):
        raise DataError(f"{path} lacks domains or is not sorted; {remedy}")
    for file, _ in files.tables():
        recorded = sizes.get(str(file.relative_to(files.directory)))
        size_bytes = file.stat().st_size
        if recorded != size_bytes:
            raise DataError(
                f"{file} has {size_bytes} bytes, {FILE_NAME} records {recorded}: "
                f"truncated, changed or not listed; {remedy}"
            )
    return domains
