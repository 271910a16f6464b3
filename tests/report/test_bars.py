"""Bars side by side: one for each colour and bin, of the right length, in words as well."""

import math
import re
from itertools import pairwise

import pytest

from hedgerow.errors import StudyInvalid
from hedgerow.report import BarChart, Report, render
from hedgerow.report.bars import bars_chart, bars_legend

BINS = BarChart("age", "age (years)", (("real", (0.5, 0.25, 0.25)), ("made-up", (0.4, 0.4, 0.2))), ends=(0, 10, 20, 30))
LEVELS = BarChart("job", "job", (("real", (0.75, 0.25)), ("made-up", (0.5, 0.5))), ("farm", "a level with a very long name"))


def sizes(drawn, side, ink):
    return [float(re.search(f'{side}="([^"]*)"', one)[1]) for one in re.findall(r"<rect[^>]*>", drawn) if f"ink{ink}" in one]


def test_standing_bars_are_as_high_as_their_values():
    high = sizes(bars_chart(BINS), "height", 0) + sizes(bars_chart(BINS), "height", 1)
    assert [h / high[0] for h in high] == pytest.approx([1, 0.5, 0.5, 0.8, 0.8, 0.4], abs=0.01)


def test_lying_bars_are_as_long_as_their_values():
    long = sizes(bars_chart(LEVELS), "width", 0) + sizes(bars_chart(LEVELS), "width", 1)
    assert [w / long[0] for w in long] == pytest.approx([1, 1 / 3, 2 / 3, 2 / 3], abs=0.01)


def test_bars_do_not_overlap():
    left = sizes(bars_chart(BINS), "x", 0), sizes(bars_chart(BINS), "x", 1)
    width = sizes(bars_chart(BINS), "width", 0)[0]
    starts = sorted([*left[0], *left[1]])
    assert all(b - a >= width - 0.11 for a, b in pairwise(starts))


def test_bars_are_told_in_words_and_names_are_cut():
    drawn = bars_chart(LEVELS)
    assert "farm: real 0.75, made-up 0.5" in drawn
    assert ">a level with a v…<" in drawn
    assert "0 to 10: real 0.5, made-up 0.4" in bars_chart(BINS)
    assert bars_legend(BINS).count("<li>") == 2


def test_values_that_are_no_numbers_have_no_bar():
    assert bars_chart(BarChart("t", "x", (("a", (math.nan, math.nan)),), ("u", "v"))) is None
    some = bars_chart(BarChart("t", "x", (("a", (math.nan, 0.0, 1.0)),), ("u", "v", "w")))
    assert len(sizes(some, "width", 0)) == 1
    assert bars_chart(BarChart("t", "x", (("a", (0.0,)),), ("u",))) is not None


@pytest.mark.parametrize("given", [{"names": ("a",)}, {"ends": (0, 1)}, {}])
def test_bars_of_another_number_are_refused(given):
    with pytest.raises(StudyInvalid):
        BarChart("t", "x", (("a", (0.5, 0.5)),), **given)


def test_a_report_with_bars_comes_back_and_shows_them():
    report = Report(title="t", study="s", description="d", privacy="p", privacy_ok=False, bars=(BINS, LEVELS))
    assert Report.from_json(report.to_json()) == report
    page = render(report)
    assert "Real beside made-up" in page
    assert page.count("<figure>") == 2


def test_a_bin_of_one_value_has_one_number_for_its_name():
    assert BarChart("t", "x", (("a", (0.5, 0.5)),), ends=(0, 0, 10)).labels == ("0", "0 to 10")
