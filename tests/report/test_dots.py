"""Figures of several numbers of each of several things."""

import math
import re

import pytest

from hedgerow.errors import CannotWrite, StudyInvalid
from hedgerow.report import Dots, Figure, Report, render
from hedgerow.report.dots import dots_chart

DOTS = Dots("Attacks", "AUC", ("none", "private"), (("attack", (1.0, 0.6)), ("control", (0.6, math.nan))), 0.5, "A guess.")


def xs(chart, class_):
    return [float(x) for x in re.findall(rf'cx="([\d.]+)"[^>]*class="{class_}"', chart)]


def test_marks_stand_at_their_places_on_one_axis():
    chart = dots_chart(DOTS)
    high, low = xs(chart, "dot ink0")
    ticks = [float(label) for label in re.findall(r">([\d.]+)</text>", chart)]
    assert (min(ticks), max(ticks)) == (0.5, 1.0)
    assert high == 430.0
    assert low == pytest.approx(10 + (0.6 - 0.5) / 0.5 * 420)
    assert chart.count("<rect") == 1  # the control of the second row is not known


def test_marks_that_would_cover_one_another_are_lowered():
    chart = dots_chart(Dots("t", "x", ("a", "b"), (("one", (0.0, 1.0)), ("two", (0.0, 0.0)))))
    tops = [float(y) for y in re.findall(r'<rect x="[\d.]+" y="([\d.]+)"', chart)]
    assert tops[0] - tops[1] == pytest.approx(8.0 - 38.0)


def test_values_are_told_in_words():
    assert 'aria-label="Attacks. none: attack 1, control 0.6; private: attack 0.6."' in dots_chart(DOTS)


def test_nothing_finite_is_no_drawing():
    empty = Dots("t", "x", ("a",), (("one", (math.nan,)),))
    assert dots_chart(empty) is None
    with pytest.raises(StudyInvalid, match="nothing to draw"):
        Figure(empty)


def test_equal_values_have_an_axis():
    assert "<svg" in dots_chart(Dots("t", "x", ("a",), (("one", (2.0,)),)))


def test_marks_without_a_place_for_every_row_are_refused():
    for marks in ((("one", (1.0,)),), (), tuple((str(i), (1.0, 1.0)) for i in range(6))):
        with pytest.raises(StudyInvalid):
            Dots("t", "x", ("a", "b"), marks)


def test_a_page_and_a_figure_show_them_with_a_legend(tmp_path):
    page = Report(title="t", study="s", description="", privacy="", privacy_ok=False, dots=(DOTS,))
    for text in (render(page), Figure(DOTS).svg):
        for word in ("Attacks", "attack", "control", "A guess."):
            assert word in text
    assert Figure(DOTS).save(tmp_path / "dots.svg").read_text().startswith("<svg")
    with pytest.raises(CannotWrite):
        Figure(DOTS).save(tmp_path / "dots.png")


def test_json_gives_them_back():
    known = Dots("t", "x", ("a",), (("one", (2.0,)),), line=1.0)
    page = Report(title="t", study="s", description="", privacy="", privacy_ok=False, dots=(known,))
    assert Report.from_json(page.to_json()) == page
    older = {key: value for key, value in page.to_json().items() if key != "dots"}
    assert Report.from_json(older).dots == ()
