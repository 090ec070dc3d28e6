"""How results of benchmarks are kept, compared and shown; nothing is measured here."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from benchmarks import pictures, report, results
from benchmarks.figure import Figure, Section

FIGURES = [
    Figure("rate", np.array([9.0, 12.0, 10.0]), "M/s", 12.0, True, np.array([27.0, 12.0, 20.0]), "C", 2.0),
    Figure("start", 0.5, "s", 0.5, False, None, ""),
    Figure("broken filters", 0.0, "players", 0.0, False, None, ""),
]
SECTION = Section("Rating", FIGURES, ["A note."])


def scaled(figure: Figure, times: float, reference: float = 1.0) -> Figure:
    """The figure on another day."""
    other = None if figure.reference is None else reference * figure.reference_runs
    return figure._replace(measured=times * figure.runs, reference=other)


def test_a_figure_is_the_median_and_its_ratio_that_of_the_pairs():
    rate = FIGURES[0]
    assert rate.value == 10.0
    assert rate.ratio == 2.0  # of 27/9, 12/12, 20/10; the ratio of the medians would be 20/10, of the best 27/12
    assert rate.reached is False  # 10 < 12
    assert rate._replace(aim=10.0).reached is True
    assert rate._replace(aim=10.0, within=1.9).reached is False
    unpaired = rate._replace(reference=np.array([30.0, 50.0]))
    assert unpaired.ratio == 4.0
    assert FIGURES[1].ratio is None


def test_ratios_of_pairs_ignore_a_moment_in_which_the_machine_was_slow():
    busy = Figure("x", np.array([2.0, 40.0, 2.0]), "s", None, False, np.array([1.0, 20.0, 1.0]), "plain")
    assert busy.ratio == 2.0


def test_kept_results_are_read_back_as_they_were(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")
    assert results.kept("rate") is None
    results.keep(results.result_of("rate", SECTION))
    back = results.kept("rate")
    assert back is not None
    assert (back.machine, back.section.title, back.section.notes) == (results.this_machine(), "Rating", ["A note."])
    assert [report.cells(figure) for figure in back.section.figures] == [report.cells(figure) for figure in FIGURES]


def test_results_of_another_machine_stay_beside_new_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(results, "this_machine", lambda: "a slow machine")
    results.keep(results.result_of("rate", SECTION))
    monkeypatch.setattr(results, "this_machine", lambda: "a fast machine")
    results.keep(results.result_of("rate", Section("Rating", [scaled(one, 2.0) for one in FIGURES], [])))
    stored = json.loads((tmp_path / "rate.json").read_text())
    assert stored["a slow machine"]["figures"][0]["measured"] == [9.0, 12.0, 10.0]
    assert stored["a fast machine"]["figures"][0]["measured"] == [18.0, 24.0, 20.0]


def test_only_what_is_a_fifth_worse_is_a_decline():
    slower = Section("Rating", [scaled(FIGURES[0], 0.5, reference=0.8), scaled(FIGURES[1], 1.19), FIGURES[2]], [])
    (found,) = results.declines(SECTION, slower)
    assert (found.name, found.before, found.now, found.times) == ("rate", 10.0, 5.0, 2.0)
    assert found.reference == pytest.approx(1.25)  # the machine explains a part of it
    faster = Section("Rating", [scaled(FIGURES[0], 3.0), scaled(FIGURES[1], 0.2), FIGURES[2]], [])
    assert results.declines(SECTION, faster) == []


def test_a_figure_that_was_zero_is_a_decline_once_it_is_not():
    broken = Section("Rating", [FIGURES[2]._replace(measured=1.0)], [])
    (found,) = results.declines(SECTION, broken)
    assert found.times == math.inf


def test_a_figure_in_another_unit_is_not_compared():
    other = Section("Rating", [FIGURES[1]._replace(measured=500.0, unit="ms")], [])
    assert results.declines(SECTION, other) == []


def test_the_page_keeps_other_sections_and_those_outside_the_markers(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(f"# Speed\n\n{report.BEGIN}\n\n### Rating\n\nold\n\n### Other\n\nkept\n\n{report.END}\n\nlast\n")
    monkeypatch.setattr(report, "PAGE", page)
    report.write(results.result_of("rate", SECTION), "rate.svg")
    text = page.read_text()
    assert "old" not in text
    assert text.index("kept") < text.index("last")
    assert "| rate | 10 M/s | 9 to 12, 3 runs | ≥ 12, ratio ≤ 2 (missed) | 20 C | 2.00 |" in text
    assert "![Rating: medians, spreads, references and aims](rate.svg)" in text


def test_a_picture_has_every_figure_above_zero_and_is_the_same_each_time(tmp_path):
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    assert pictures.draw(SECTION, first)
    assert pictures.draw(SECTION, second)
    assert first.read_bytes() == second.read_bytes()
    text = first.read_text()
    assert "<!-- rate -->" in text
    assert "<!-- start -->" in text
    assert "broken filters" not in text  # its only value is zero
    assert not pictures.draw(Section("Nothing", [FIGURES[2]], []), tmp_path / "c.svg")
