"""Ticks are round, lines break where values are not finite, and hopeless data draws nothing."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hedgerow.report import Comparison, Curve, Series
from hedgerow.report.figures import dot_tracks, line_chart, nice_ticks, series_inks, tick_labels


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
