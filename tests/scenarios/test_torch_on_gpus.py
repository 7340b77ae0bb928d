# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What PyTorch took on a GPU where everything fits: as the document says, and what is reached."""

from __future__ import annotations

from .documents import document
from .residency_scripts import committed, script


def test_training_that_fits_is_as_in_the_document() -> None:
    fits, result = script("training/fits"), committed("torch_fits")
    text = document("use/training.md")
    rows = {(row["model"], row["dtype"], row["way"]): row for row in result["rows"]}
    assert result["verdicts"] == fits.verdicts(result["rows"])
    assert {case[:2] for case in rows} == set(fits.CASES)
    assert all(row["moved_bytes"] == 0 for row in rows.values())
    assert result["native_apart"] == fits.apart(result["rows"])
    ratios = fits.ratios(result["rows"])
    for name, dtype in fits.CASES:
        native, managed = (rows[name, dtype, way] for way in fits.WAYS)
        steps = " | ".join(f"{row['seconds'] * 1e3:.1f}" for row in (native, managed))
        size = f"{native['batch']} | {native['peak_bytes'] / 2**30:.2f}"
        ratio = ratios[f"{name} {dtype}"]
        apart = f"{result['native_apart'][f'{name} {dtype}'] * 100:.1f} %"
        assert f"| {name} | {dtype} | {size} | {steps} | {ratio:.2f} | {apart} |" in text


def test_what_is_above_the_bound_is_told() -> None:
    result, text = committed("torch_fits"), document("use/training.md")
    above = [name for name, one in result["verdicts"].items() if not one["reached"]]
    assert len(above) == 3
    assert "Three of nine are above it" in text
    least = [
        f"{row['least_seconds'] * 1e3:.1f}"
        for row in result["rows"]
        if (row["model"], row["dtype"]) == ("resnet152", "bf16")
    ]
    assert f"{' and '.join(least)} ms in bf16" in text


def test_fitting_models_are_measured_at_the_full_batch() -> None:
    full = script("training/models").full_batch
    assert all(row["batch"] == full(row["model"]) for row in committed("torch_fits")["rows"])


def test_kernels_beside_copies_are_told() -> None:
    result, text = committed("torch_copies"), document("use/training.md")
    rows = {(row["path"], row["way"], row["kernels"]): row for row in result["rows"]}
    paths = {"direct": "direct", "staged": "by way of device memory that is not managed"}
    for path, name in paths.items():
        cells, rates = [], []
        for kernels in ("products", "additions"):
            of = [rows[path, way, kernels] for way in ("out", "back", "both")]
            cells.append(" / ".join(f"{row['ratio']:.2f}" for row in of))
            rates.append(f"{of[-1]['copied_bytes'] / of[-1]['copies_seconds'] / 1e9:.0f}")
        assert f"| {name} | {' | '.join(cells)} | {', '.join(rates)} |" in text
    judged = {
        f"{row['kernels']} beside staged copies {row['way']}": row["ratio"] <= 1.05
        for row in result["rows"]
        if row["path"] == "staged"
    }
    assert len(judged) == 6
    assert {name: one["reached"] for name, one in result["verdicts"].items()} == judged
