"""Ticks are round, lines break where values are not finite, and hopeless data draws nothing."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hedgerow.report import Comparison, Curve, Series
from hedgerow.report.figures import dot_tracks, line_chart, log_ticks, nice_ticks, series_inks, tick_labels
from hedgerow.report.page import curve_figure


def curve(*y: float, style: str = "main", line: float | None = None) -> Curve:
    return Curve("t", "round", "loss", (Series("s", tuple(range(1, len(y) + 1)), y, style),), line)


def test_ticks_are_round():
    assert nice_ticks(0.0, 1.0) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert nice_ticks(1, 60, whole=True) == [20, 40, 60]
    assert nice_ticks(1, 3, whole=True) == [1, 2, 3]


@settings(max_examples=50)
@given(low=st.floats(-1e12, 1e12), width=st.floats(1e-3, 1e12))
def test_outward_ticks_enclose_the_range_and_are_few(low, width):
    assume(width > 1e-9 * (abs(low) + width))
    ticks = nice_ticks(low, low + width, outward=True)
    slack = 1e-6 * (ticks[-1] - ticks[0])
    assert ticks[0] <= low + slack
    assert ticks[-1] >= low + width - slack
    assert 2 <= len(ticks) <= 8


def test_labels_have_the_decimals_of_their_step():
    assert tick_labels([0.0, 0.5, 1.0]) == ["0.0", "0.5", "1.0"]
    assert tick_labels([0, 20, 40]) == ["0", "20", "40"]


def test_lines_break_where_a_value_is_not_finite():
    drawn = line_chart(curve(1.0, 2.0, math.nan, 3.0, 4.0, math.inf, 5.0))
    assert drawn.count("M") == 2
    assert drawn.count("<circle") == 1  # the lone last value


def test_long_lines_are_thinned_and_keep_their_last_value():
    drawn = line_chart(curve(*([0.0] * 9999), 1.0))
    assert drawn.count("L") < 600
    assert drawn.split("L")[-1].split('"')[0].split()[1] == "30.0"  # the top of the drawing


@pytest.mark.parametrize("y", [(), (math.nan,), (math.inf, -math.inf)])
def test_nothing_finite_draws_nothing(y):
    assert line_chart(curve(*y)) is None
    assert dot_tracks(Comparison("m", True, tuple(("r", value, "") for value in y))) is None


@pytest.mark.parametrize("y", [(0.0,), (0.3, 0.1 + 0.2), (-5e-324, 5e-324), (1e30, 1.0), (1e308, 0.5), (-1e299, 1e299)])
def test_extreme_values_are_drawn(y):
    assert "NaN" not in line_chart(curve(*y))
    assert "inf" not in line_chart(curve(*y))


def test_figures_are_told_in_words():
    assert 'aria-label="loss against round. s: 3 at 1, 2 at 2. limit: 8."' in line_chart(curve(3.0, 2.0, line=8.0))


def test_muted_series_take_no_colour():
    series = [Series("s", (1.0,), (1.0,), style) for style in ("main", "muted", "reference")]
    assert series_inks(series) == ["main ink0", "muted", "reference ink1"]


def test_ticks_of_factors_are_round():
    assert log_ticks(1, 1000) == pytest.approx([1, 10, 100, 1000])
    assert log_ticks(1.5, 30) == pytest.approx([2, 5, 10, 20])
    assert log_ticks(1.5, 30, outward=True) == pytest.approx([1, 2, 5, 10, 20, 50])


@settings(max_examples=50)
@given(low=st.floats(1e-99, 1.0), factor=st.floats(1.001, 1e90))
def test_outward_ticks_of_factors_enclose_the_range_and_are_few(low, factor):
    ticks = log_ticks(low, low * factor, outward=True)
    assert ticks[0] <= low * (1 + 1e-6)
    assert ticks[-1] >= low * factor * (1 - 1e-6)
    assert 2 <= len(ticks) <= 8


def test_equal_factors_are_equal_steps():
    drawn = line_chart(Curve("t", "n", "loss", (Series("s", (1, 10, 100), (1.0, 0.01, 0.0001)),), log="xy"))
    points = [tuple(map(float, point.split())) for point in drawn.split('d="M')[1].split('"')[0].split("L")]
    (x0, y0), (x1, y1), (x2, y2) = points
    assert x2 - x1 == pytest.approx(x1 - x0, abs=0.11)
    assert y2 - y1 == pytest.approx(y1 - y0, abs=0.11)


def test_what_is_not_above_zero_breaks_a_line_of_factors():
    figure = Curve("t", "n", "loss", (Series("s", (1, 2, 3, 4, 5), (1.0, 2.0, 0.0, 3.0, 4.0)),), log="y")
    assert line_chart(figure).count("M") == 2
    assert line_chart(Curve("t", "n", "loss", (Series("s", (1, 2), (0.0, -1.0)),), log="y")) is None


@pytest.mark.parametrize("y", [(1.0,), (1e-99, 1e99), (1e-290, 1.0), (3e-5, 3.1e-5), (5e-324, 1.0)])
def test_extreme_factors_are_drawn(y):
    drawn = line_chart(Curve("t", "n", "loss", (Series("s", tuple(range(1, len(y) + 1)), y),), log="xy"))
    assert "nan" not in drawn.lower()
    assert "inf" not in drawn


@pytest.mark.parametrize(
    "ticks",
    [
        [0.90000, 0.90002, 0.90004],
        [0.9123456, 0.9123457, 0.9123458],
        [1234.56781, 1234.56782, 1234.56783],
        [0.0, 1e-7, 2e-7, 3e-7],
        [-2e-9, -1e-9, 0.0],
        [1.00001e5, 1.000015e5],
    ],
)
def test_no_two_ticks_have_the_same_label(ticks):
    assert len(set(tick_labels(ticks))) == len(ticks)


@settings(max_examples=60)
@given(low=st.floats(-1e5, 1e5), width=st.floats(1e-8, 1e5))
def test_labels_of_any_range_are_told_apart_and_say_where_they_stand(low, width):
    assume(width > 1e-9 * (abs(low) + width))
    ticks = nice_ticks(low, low + width, outward=True)
    labels = tick_labels(ticks)
    assert len(set(labels)) == len(labels)


def test_an_axis_of_nearly_equal_values_has_labels_that_differ():
    drawn = line_chart(curve(0.90001, 0.90003, 0.90006))
    labels = re.findall(r'text-anchor="end">([^<]+)</text>', drawn)
    assert len(labels) == len(set(labels)) > 3


def test_the_ends_of_a_common_axis_differ():
    ends, _ = dot_tracks(Comparison("m", True, (("federated", 0.164612, ""), ("centralised", 0.164618, ""))))
    assert ends[0] != ends[1]


def test_a_band_lies_around_its_line_and_below_all_lines():
    banded = Series("one", (0.0, 0.5, 1.0), (0.2, 0.4, 0.6), low=(0.1, 0.3, 0.5), high=(0.3, 0.5, 0.8))
    drawn = line_chart(Curve("t", "x", "y", (banded, Series("two", (0.0, 1.0), (0.0, 1.0)))))
    assert drawn.count('class="band main ink0"') == 1
    assert drawn.index("band main ink0") < drawn.index('class="main ink0"')
    path = re.search(r'd="(M[^"]+Z)" class="band', drawn)[1]
    assert path.count("L") == 5
    highest = line_chart(Curve("t", "x", "y", (Series("s", (1.0, 2.0), (0.5, 0.5), low=(0.0, 0.0), high=(7.0, 9.0)),)))
    assert ">10<" in highest  # the axis holds the band
    broken = Series("one", (0.0, 1.0), (0.2, 0.4), low=(math.nan, 0.3), high=(0.3, 0.5))
    assert "band" not in line_chart(Curve("t", "x", "y", (broken,)))


def test_a_sixth_line_has_the_first_colour_and_is_dotted():
    inks = series_inks([Series(str(i), (1.0, 2.0), (0.0, 1.0)) for i in range(6)])
    assert (inks[0], inks[5]) == ("main ink0", "main ink0 dotted")
    assert len(set(inks)) == 6


def test_numbers_of_a_band_have_its_ends_and_no_last_value_stands_for_all():
    band = Series("forecast", (0.5, 1.0, 2.0), (0.3, 0.2, 0.17), low=(0.25, 0.15, 0.1), high=(0.4, 0.35, 0.33))
    curve = Curve("Fitness", "factor", "fitness", (band, Series("equal", (0.5, 1.0, 2.0), (0.5, 0.4, 0.38), "reference")))
    told = str(curve_figure(curve))
    for words in ("low of forecast", "high of forecast", "0.35"):
        assert words in told
    assert "<b>" not in told
    assert "<b>0.17</b>" in str(curve_figure(replace(curve, series=(replace(band, low=(), high=()), curve.series[1]))))
