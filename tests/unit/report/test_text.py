# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The summary for a terminal, over recordings of every shape."""

from __future__ import annotations

import dataclasses

import pytest
from rich.cells import cell_len

from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import Recording
from rmm_uvm.report import Report, words
from rmm_uvm.report.advice import collect, verdict
from rmm_uvm.report.figures import of_device
from rmm_uvm.report.page import page
from rmm_uvm.report.words import plain_name

from . import recordings

SHAPES = [
    "fitting", "oversubscribed", "two_devices", "blind", "unknown", "attributed", "day", "hostile",
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_summary_of_any_recording_is_short_and_narrow(shape: str) -> None:
    text = str(Report(getattr(recordings, shape)()))

    lines = text.splitlines()
    assert len(lines) <= 33
    assert max(map(cell_len, lines)) <= 80
    assert not [c for c in text if c != "\n" and not c.isprintable()]
    assert "nan" not in text.split()


def test_summary_of_an_oversubscribed_run_gives_advice_first_and_once() -> None:
    lines = str(Report(recordings.oversubscribed())).splitlines()

    assert lines[2:4] == ["advice", "1. process the data in parts, or expect pages to move"]
    assert lines[4].startswith("   2 times, first at 12.0 s in stage read csv: at worst, the")
    told = " ".join(" ".join(lines).split())
    assert "at 31.5 s in stage shuffle: the same bytes moved 6.2 times" in told
    assert "  footprint    at most 23.25 GiB, 1.50 times the capacity of 15.50 GiB" in lines
    assert "  evicted      about 161.93 GiB" in lines
    assert [line for line in lines if line.startswith("join ")]
    assert next(line for line in lines if line.startswith("train ")).split()[2] == "s+"


def test_summary_of_a_fitting_run_says_that_nothing_is_to_do() -> None:
    lines = str(Report(recordings.fitting())).splitlines()

    assert lines[2] == "nothing to do: everything fitted"
    assert "  evicted      0 B" in lines
    assert lines[-1] == "watching took 0.012 s of processor time, 0.12% of one core"
    # What the user did not ask for is not missing.
    assert not [line for line in lines if line.startswith("not watched")]


def test_summary_with_an_unknown_capacity_gives_no_factor() -> None:
    recording = recordings.fitting()
    unknown = dataclasses.replace(recording.devices[0], capacity_bytes=0)
    text = str(Report(dataclasses.replace(recording, devices=(unknown,))))

    assert "  footprint    at most 9.30 GiB; capacity unknown\n" in text
    assert " - times" not in text


def test_summary_of_a_run_of_less_than_a_second_gives_no_share_of_a_core() -> None:
    recording = recordings.fitting()
    short = dataclasses.replace(recording, samples=recording.samples[:5])

    assert str(Report(short)).splitlines()[-1] == "watching took 0.012 s of processor time"


def _without_allocations(**settings: str) -> Recording:
    """Return a recording in no sample of which anything is allocated."""
    recording = recordings.fitting()
    samples = recording.samples.copy()
    for name in ("footprint_bytes", "host_to_device_bytes", "device_to_host_bytes"):
        samples[name] = 0
    return dataclasses.replace(recording, samples=samples, settings=settings)


def test_reports_without_allocations_say_no_more_than_that_no_sample_has_any() -> None:
    report = Report(_without_allocations())

    for text in (str(report), report.html()):
        assert "nothing to do: in no sample was anything allocated" in text
        assert "fitted" not in text
        assert "nothing was allocated" not in text
    assert "  footprint    0 B in every sample, 0.00 times" in str(report)
    assert "Footprint 0 B in every sample, resident " in report.html()


@pytest.mark.parametrize(
    ("peak", "most", "said"),
    [
        ("8388608", "at most 8.00 MiB, 0.00 times", "everything fitted"),
        (str(1 << 40), "at most 1.00 TiB, 66.06 times", "no threshold was passed"),
        ("9" * 30, "0 B in every sample", "in no sample was anything allocated"),
        ("none", "0 B in every sample", "in no sample was anything allocated"),
    ],
)
def test_reports_believe_the_exact_peak_rather_than_samples(
    peak: str, most: str, said: str
) -> None:
    text = str(Report(_without_allocations(peak_live_bytes=peak)))

    assert f"  footprint    {most}" in text
    assert f"nothing to do: {said}" in text


def test_summary_of_a_simulated_run_says_so_first() -> None:
    first = str(Report(recordings.oversubscribed(simulated=True))).splitlines()[0]

    assert first == "rmm_uvm: simulated: residency is modelled, nothing ran on a GPU"


def test_summary_without_gpu_gives_the_reasons_and_claims_nothing() -> None:
    text = str(Report(recordings.blind()))

    assert "no advice: no memory could be watched" in text
    assert "not watched: nvml: libnvidia-ml.so.1 cannot be loaded" in text
    assert "fitted" not in text


def test_summary_of_an_unknown_device_claims_nothing() -> None:
    text = str(Report(recordings.unknown()))

    assert "no advice: no memory could be watched" in text
    assert "0 B" not in text


def test_summary_of_two_devices_has_a_row_for_each() -> None:
    lines = str(Report(recordings.two_devices())).splitlines()

    assert [line.split()[1] for line in lines if line.startswith("device ")][1:] == ["0", "1"]
    told = " ".join(" ".join(lines).split())
    assert "device 0: at 14.0 s in stage shuffle: 8.0 GB/s were evicted in each of" in told


def test_summary_with_attribution_tells_evicted_bytes_by_cause() -> None:
    assert "  evicted      153.41 GiB, told by cause" in str(Report(recordings.attributed()))


def test_summary_of_a_chain_of_ours_does_not_miss_a_foreign_one() -> None:
    recording = recordings.fitting()
    sources = {**recording.sources, "rmm_chain": Availability(False, "the chain is one of rmm_uvm")}
    with_own = dataclasses.replace(recording, sources=sources)
    assert "rmm_chain" not in str(Report(with_own))

    sources["own_resources"] = Availability(False, "no resource of rmm_uvm is installed")
    with_neither = dataclasses.replace(recording, sources=sources)
    assert "not watched: rmm_chain: the chain is one of rmm_uvm" in str(Report(with_neither))


def test_summary_with_lost_samples_says_how_many() -> None:
    recording = dataclasses.replace(recordings.fitting(), lost_samples=7)

    assert "; the 7 oldest samples are lost" in " ".join(str(Report(recording)).split())


def test_verdict_of_a_run_past_capacity_without_findings_is_not_that_it_fitted() -> None:
    recording = dataclasses.replace(recordings.oversubscribed(), findings=())

    assert verdict(recording) == "nothing to do: no threshold was passed"


def test_advice_about_sources_comes_last_and_each_source_counts() -> None:
    finding = recordings.findings_of()[0]
    monitor = dataclasses.replace(finding, kind="monitor", time_seconds=0.0)
    other = dataclasses.replace(monitor, message="nvml is gone")

    kinds = [one.finding.kind for one in collect([monitor, other, finding])]

    assert kinds == ["footprint", "monitor", "monitor"]


@pytest.mark.parametrize("name", recordings.HOSTILE)
def test_plain_name_of_anything_is_printable_and_short(name: str) -> None:
    shown = plain_name(name)

    assert shown
    assert len(shown) <= 120
    assert shown.isprintable()


def test_advice_on_the_footprint_has_its_peak_where_that_came_later() -> None:
    recording = recordings.oversubscribed()
    (device,) = recording.devices
    peak = of_device(recording, device).peak_footprint_bytes
    assert peak is not None
    at_the_peak = peak / device.capacity_bytes
    found = next(one for one in recording.findings if one.kind == "footprint")

    def _at(value: float, kind: str) -> Finding:
        return dataclasses.replace(found, value=value, kind=kind)

    def told(value: float, kind: str = "footprint") -> tuple[str, str]:
        changed = dataclasses.replace(recording, findings=(_at(value, kind),))
        (tasks,) = page(changed).sections[0].blocks
        return " ".join(str(Report(changed)).split()), tasks.items[0].message

    later = f"; at most {words.size(peak)}, {at_the_peak:.2f} times"
    assert all(later in text for text in told(at_the_peak - 0.2))
    assert not any("; at most" in text for text in told(at_the_peak))
    assert not any("; at most" in text for text in told(0.1, "eviction"))


def test_advice_on_what_comes_back_has_all_that_came_in_the_run() -> None:
    recording = recordings.oversubscribed()
    (device,) = recording.devices
    came_bytes = of_device(recording, device).host_to_device_bytes
    assert came_bytes
    came = words.size(came_bytes)
    found = next(one for one in recording.findings if one.kind == "footprint")

    def told(message: str) -> str:
        changed = dataclasses.replace(found, kind="amplification", message=message)
        return " ".join(str(Report(dataclasses.replace(recording, findings=(changed,)))).split())

    assert f"the same data come back: 1 KiB in 0.1 s; {came} in all" in told(
        "the same data come back: 1 KiB in 0.1 s"
    )
    assert "in all" not in told(f"the same data come back: {came} in 9.0 s")


@pytest.mark.parametrize(
    ("shape", "width"),
    [("fitting", 60), ("oversubscribed", 60), ("two_devices", 60), ("blind", 56)],
)
def test_summary_on_a_narrow_terminal_breaks_between_words(shape: str, width: int) -> None:
    report = Report(getattr(recordings, shape)())
    text = report.text(width)
    assert all(cell_len(line) <= width for line in text.splitlines())
    # The same words, and none of them in two pieces; but for a table's last columns.
    of_all = iter(str(report).split())
    assert all(word in of_all for word in text.split())
    left_out = set(str(report).split()) - set(text.split())
    assert "peak" in left_out if shape in {"oversubscribed", "two_devices"} else not left_out
    assert report.text(80) == str(report)
    assert any(width < cell_len(line) <= 80 for line in str(report).splitlines())
