"""Forest plots and flows: what is drawn, what is not, in words, and from JSON."""

from __future__ import annotations

import json
import math
import re

import pytest

from hedgerow.errors import StudyInvalid
from hedgerow.report import Card, Figure, Flow, FlowStep, ForestPlot, ForestRow, Report, card_html, render
from hedgerow.report.forest_chart import forest_chart, reading

ROWS = (
    ForestRow("north", 1.5, 1.2, 1.9, 10.0),
    ForestRow("south", 1.3, 1.0, 1.7, 8.0),
    ForestRow("west", 1.4, 1.1, 1.8, 7.0),
)
FAR = ForestRow("east", 0.1, 0.01, 2.0, 0.5)
FOREST = ForestPlot(
    "Does it hold?", "odds ratio", (*ROWS, FAR), ForestRow("all", 1.4, 1.25, 1.6), (1.2, 1.65), ratio=True, sentence="No sign."
)
FLOW = Flow("Records lost", (FlowStep("stays", 1200, (("no age", 100),)), FlowStep("in the model", "about 1100")))


@pytest.mark.parametrize("narrow", [False, True])
def test_an_interval_beyond_the_axis_has_an_arrow_and_its_estimate_no_mark(narrow):
    drawn = forest_chart(FOREST, narrow=narrow)
    assert drawn.count("<rect") == 3  # three of four squares
    assert drawn.count('class="dot flat ink0"') == 3 + 1  # and one arrow
    assert drawn.count("Z") == 1 + 1  # the arrow, the diamond
    assert "0.10 (0.01 to 2.00)" in drawn
    assert "An arrow" in reading(FOREST)


def test_an_interval_wholly_beyond_the_axis_is_an_arrow_alone():
    beyond = ForestRow("far", 400.0, 300.0, 500.0)
    with_it, without = (
        forest_chart(ForestPlot("t", "x", rows, FOREST.total, ratio=True), narrow=False) for rows in ((*ROWS, beyond), ROWS)
    )
    assert with_it.count("<line") == without.count("<line")
    assert with_it.count("l-8 -4.5v9Z") == 1


def test_squares_are_as_large_as_their_weights_and_bars_stand_at_their_ratios():
    drawn = forest_chart(FOREST, narrow=False)
    sizes = [float(size) for size in re.findall(r'<rect [^>]*width="([\d.]+)"', drawn)]
    assert sizes[0] > sizes[1] > sizes[2]
    assert sizes[1] / sizes[0] == pytest.approx(math.sqrt(0.8), abs=0.01)
    (a, b), (c, d) = [map(float, pair) for pair in re.findall(r'<line x1="([\d.]+)" x2="([\d.]+)"', drawn)[:2]]
    assert (b - a) / (d - c) == pytest.approx(math.log(1.9 / 1.2) / math.log(1.7), rel=0.01)


def test_a_phone_has_names_above_the_bars_and_both_drawings_are_told_in_words():
    wide, narrow = (forest_chart(FOREST, narrow=one) for one in (False, True))
    assert 'viewBox="0 0 720' in wide
    assert 'viewBox="0 0 352' in narrow
    for one in (wide, narrow):
        assert "all: 1.40 (1.25 to 1.60); expected elsewhere: 1.20 to 1.65." in one


def test_differences_have_zero_for_no_effect_and_unknown_rows_a_dash():
    rows = (ForestRow("a", 1.0, 0.5, 1.5), ForestRow("b", math.nan, math.nan, math.nan))
    drawn = forest_chart(ForestPlot("Kilograms", "difference", rows), narrow=False)
    assert drawn.count("<rect") == 1
    assert ">–<" in drawn
    assert 'class="limit"' in drawn
    assert forest_chart(ForestPlot("Nothing", "difference", rows[1:]), narrow=False) is None


@pytest.mark.parametrize("far", [1e-250, 1e250])
def test_extreme_ratios_are_drawn(far):
    drawn = forest_chart(ForestPlot("t", "x", (ForestRow("a", far, far / 2, far * 2), ROWS[0]), ratio=True), narrow=False)
    assert "nan" not in drawn
    assert "inf" not in drawn


def test_logarithms_are_not_taken_for_ratios():
    with pytest.raises(StudyInvalid, match="not above zero"):
        ForestPlot("t", "x", (ForestRow("a", -0.2, -0.4, 0.1),), ratio=True)


def test_a_report_with_them_comes_back_and_shows_them():
    report = Report(title="t", study="s", description="", privacy="", privacy_ok=False, forests=(FOREST,), flows=(FLOW,))
    assert Report.from_json(json.loads(json.dumps(report.to_json(), allow_nan=False))) == report
    page = render(report)
    assert re.findall("<h2>(.*?)</h2>", page)[1:] == ["Does it hold?", "Records lost"]
    assert "<p>No sign.</p>" in page
    assert "<b>about 1100</b>" in page
    assert "− no age" in page


def test_a_card_and_a_figure_show_a_forest(tmp_path):
    assert "<svg" in card_html(Card(kind="meta-analysis", figures=(FOREST,)))
    assert "Does it hold?" in Figure(FOREST).save(tmp_path / "forest.svg").read_text()
