# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A plan as text and as a page: the first line, the label, the figures, and names of strangers."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from rmm_uvm.errors import AvailabilityError, DataError
from rmm_uvm.planner import Plan
from rmm_uvm.planner.views.documents import called, short_size

from .test_planning import planned
from .workloads import GIB, MIB, FakeReplay, Machine, etl, event, workload


def test_first_line_says_that_it_is_simulated_and_on_which_machine() -> None:
    first = str(planned()).splitlines()[0]
    assert first == "Simulated on test-machine. Nothing of this ran on a GPU."


def test_machine_that_was_not_measured_is_labelled_wherever_it_is_named() -> None:
    plan = planned(machine=Machine(measured=False))
    one = planned(machine=Machine(measured=False), device_memory=[8 * GIB])
    for text, least in ((str(plan), 1), (str(one), 3), (plan.html(), 3)):
        words = " ".join(text.split())
        count = words.count("test-machine")
        assert count == words.count("test-machine (published only)") >= least
    assert "published only" not in str(planned())


def test_table_has_a_row_for_every_way_to_run_and_a_star_for_what_is_advised() -> None:
    lines = str(planned(replay=FakeReplay({"never": 0.5}))).splitlines()
    first = next(place for place, line in enumerate(lines) if "8.00 GiB   1.25" in line)
    assert [line[:26].strip() for line in lines[first + 1 : first + 3]] == [
        "prefetch always",
        "* prefetch never",
    ]
    assert not lines[first].startswith("*")
    assert lines[first + 3].startswith("*  16.00 GiB")
    slower = str(planned(replay=FakeReplay({"never": 2.0, "always": 2.0})))
    assert "\n*   8.00 GiB   1.25" in slower
    assert "* prefetch" not in slower


def test_table_without_other_ways_has_no_star() -> None:
    assert "*" not in str(planned(device_memory=[16 * GIB]))


def test_evictions_are_told_by_stage_or_by_size() -> None:
    small = [8 * GIB]
    assert "Evicted on 8.00 GiB, by stage: join 2.00 GiB" in str(planned(device_memory=small))
    unstaged = str(planned(etl(stages=("",)), device_memory=small))
    assert "Evicted on 8.00 GiB, by size of allocation: 1 GiB and more 2.00 GiB" in unstaged
    assert "Evicted" not in str(planned(device_memory=[16 * GIB]))


def test_both_questions_are_answered_for_one_card_and_in_short_for_several() -> None:
    for size, question in ((8, "on a card of 8.00 GiB"), (16, "all of it fits")):
        text = " ".join(str(planned(device_memory=[size * GIB])).split())
        assert text.count("Can I avoid splitting my input? Yes") == 1
        assert question in text
        assert text.count("Can I train on more data?") == 1
    text = " ".join(str(planned()).split())
    assert "Can I" not in text
    assert "On 8.00 GiB The whole input: at a price, 1.43 times as long as if it fitted." in text
    assert "On 16.00 GiB The whole input: yes, it fits. rmm_uvm.reinitialize(" in text
    assert "Name one card, --device-memory SIZE, to read why" in text


def test_plan_of_five_cards_is_a_page_and_each_other_card_adds_ten_lines_at_most() -> None:
    def lines(*sizes: int) -> int:
        return len(str(planned(device_memory=[size * GIB for size in sizes])).splitlines())

    five = lines(1, 2, 4, 8, 16)
    assert five <= 70
    assert lines(1, 2, 3, 4, 5, 6, 8, 16) <= five + 3 * 10


def test_card_on_which_the_input_runs_out_of_memory_says_so_in_short() -> None:
    text = " ".join(str(planned(replay=FakeReplay(runs_out_below_bytes=9 * GIB))).split())
    assert "On 8.00 GiB The whole input: no, it runs out of memory." in text


def test_stage_that_holds_most_is_named_where_there_are_stages() -> None:
    small = [8 * GIB]
    text = " ".join(str(planned(device_memory=small)).split())
    assert text.count("The stage that holds most is join, with 10.00 GiB.") == 1
    assert "The stage that" not in str(planned(etl(stages=("",)), device_memory=small))


def test_settings_are_a_call_that_python_can_read() -> None:
    plan = planned(workers=2)
    call = called(plan.cards[0].settings)
    assert "\n" not in call
    begin = str(plan).index("rmm_uvm.reinitialize(")
    shown = str(plan)[begin : str(plan).index(")", begin) + 1]
    assert "\n" in shown
    told = [eval(one.replace("rmm_uvm.reinitialize", "dict")) for one in (call, shown)]
    assert told[0] == told[1]
    assert told[0]["prefetch"] == "auto"


def test_card_that_runs_out_of_memory_says_so_in_its_row() -> None:
    text = str(planned(replay=FakeReplay(runs_out_below_bytes=9 * GIB)))
    assert re.search(r"\n +8\.00 GiB .* out of +memory ", text)
    assert "*" not in text[: text.index("16.00 GiB")].replace("*  ", "", 1)
    assert "from running out of memory to 1.00 times" in " ".join(text.split())


WAYS = {
    "driver_prefetch_threshold": [51, 100],
    "policy": ["driver", "discard-dead"],
    "prefetch": ["auto", "always", "never"],
}


@pytest.mark.parametrize(
    "plan",
    [
        planned(workers=4),
        planned(**WAYS),
        planned(replay=FakeReplay(runs_out_below_bytes=9 * GIB), **WAYS),
        planned(etl(peak_bytes=999 * GIB, seconds=360_000.0), **WAYS, workers=1000),
        planned(etl(peak_bytes=1023 * MIB), device_memory=["16MiB", "1023MiB"]),
        planned(etl(peak_bytes=999 * GIB), fitting_seconds=1e-6, **WAYS),
        planned(etl(peak_bytes=999 * GIB), fitting_seconds=1e9, **WAYS),
        planned(etl(cut_off="the trace is damaged: a chunk does not match its checksum")),
        planned(machine=Machine(name="rtx6000-blackwell-pcie5", gpu="g" * 60, measured=False)),
    ],
    ids=[
        "workers",
        "ways",
        "out of memory",
        "large",
        "small",
        "shortest",
        "longest",
        "cut off",
        "long names",
    ],
)
def test_no_line_is_wider_than_80_columns(plan: Plan) -> None:
    assert max(map(len, str(plan).splitlines())) <= 80


def test_columns_of_the_table_stand_below_each_other() -> None:
    lines = str(planned(**WAYS)).splitlines()
    begin = next(
        place for place, line in enumerate(lines) if line.split()[:2] == ["card", "factor"]
    )
    end = next(place for place, line in enumerate(lines) if line.startswith("* advised."))
    rows = [line for line in lines[begin:end] if line.endswith(("B", "evicted", "memory"))]
    assert len(rows) == 25
    assert {len(row) for row in rows} == {len(rows[0])}


def test_names_of_ways_in_the_table_are_whole() -> None:
    lines = str(planned(**WAYS)).splitlines()
    name = ["  prefetch always,", "    threshold 100 %,", "    discard-dead"]
    found = [[line[:27].rstrip() for line in lines[at : at + 3]] for at in range(len(lines))]
    assert found.count(name) == 2
    assert any(line.startswith("  prefetch never,") for line in lines)
    assert any(line.startswith("  discard-dead  ") for line in lines)


def test_sizes_of_the_table_are_short() -> None:
    sizes = [0, 1, 1023, 1 << 20, (1 << 20) - 1, 99_950 << 10, 1023 << 30, 8 << 50]
    assert max(len(short_size(size)) for size in sizes) == 8
    assert short_size(99_950 << 10) == "97.6 MiB"


def test_path_of_the_recording_keeps_its_spaces() -> None:
    path = Path("a folder  with " + "many words " * 8) / "etl.trace"
    assert str(path) in str(planned(etl(source=path))).splitlines()


def test_recording_that_ends_early_is_told_before_the_table() -> None:
    cut = planned(etl(cut_off="the last line is cut off"))
    said = "The recording ends early: the last line is cut off."
    for text, table in ((str(cut), "factor"), (cut.html(), "<table")):
        assert 0 < text.index(said) < text.index(table)
    assert "ends early" not in str(planned())


def test_names_of_strangers_cannot_move_the_cursor_or_write_html() -> None:
    stages = ("", "load", "\x1b[2J<script>alert(1)</script>")
    plan = planned(etl(stages=stages, device_name="\x1b[31mH200<b>"))
    assert "\x1b" not in str(plan)
    html = plan.html()
    assert "\x1b" not in html
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html


def test_page_has_charts_tables_and_answers_and_asks_the_network_for_nothing() -> None:
    html = planned().html()
    assert "<strong>Simulated on test-machine" in html
    assert html.count("<figure ") == 3
    assert "default-src &#39;none&#39;" in html or "default-src 'none'" in html
    for expected in ("Time against capacity", "Memory over time", "Can I avoid splitting"):
        assert expected in html


def test_page_of_a_card_that_runs_out_of_memory_is_drawn() -> None:
    html = planned(replay=FakeReplay(runs_out_below_bytes=9 * GIB)).html()
    assert "it runs out of memory" in html
    assert "out of memory" in html


def test_page_without_bokeh_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "bokeh"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "bokeh", None)
    with pytest.raises(AvailabilityError, match="pip install"):
        planned().html()


def test_files_are_written_whole_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned()
    html = plan.html()
    monkeypatch.setattr(type(plan), "html", lambda _: html)  # each page has names of its own
    plan.save_html(tmp_path / "plan.html")
    plan.save_json(tmp_path / "plan.json")
    assert (tmp_path / "plan.html").read_text() == html
    assert (tmp_path / "plan.json").read_text() == plan.to_json() + "\n"
    with pytest.raises(DataError, match="cannot be written"):
        plan.save_json(tmp_path / "nowhere" / "plan.json")
    with pytest.raises(DataError, match="cannot be written"):
        plan.save_html(tmp_path / "nowhere" / "plan.html")


def test_plan_is_shown_by_its_files_and_cards_in_a_debugger() -> None:
    assert repr(planned()).startswith("Plan('etl.trace', 'test-machine', cards: 8589934592, ")


def test_plan_on_a_narrow_terminal_breaks_between_words() -> None:
    plan = planned()
    narrow = plan.text(60)
    wide = [line for line in narrow.splitlines() if len(line) > 60]
    assert all("GiB" in line or line.startswith("* advised") or "  " in line for line in wide)
    assert narrow.split() == str(plan).split()
    assert plan.text(80) == str(plan)
    assert narrow != str(plan)


def test_recording_that_went_on_after_its_last_event_is_told_with_its_length() -> None:
    long, short, same = (planned(etl(trailing_seconds=after)) for after in (5.0, 0.09, 0.0))

    for text in (str(long), long.html()):
        assert "2 allocations in 10.0 s of a recording of 15.0 s, recorded on" in text
    assert "2 allocations in 10.0 s, recorded on" in str(short)
    hours = planned(etl(seconds=4000.0, trailing_seconds=0.2))
    assert "2 allocations in 1:06:40, recorded on" in str(hours)
    assert long.fitting_seconds == same.fitting_seconds
    assert long.working_set == same.working_set
    assert long.to_dict()["workload"]["trailing_seconds"] == 5.0


def test_one_allocation_is_told_in_the_singular() -> None:
    single = workload([event("allocate", 0, GIB, 0.0)], peak_bytes=GIB)
    assert "1 allocation in" in str(planned(single, device_memory=[16 * GIB]))
    assert " allocations in" in str(planned())
