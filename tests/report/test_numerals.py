"""Numbers are written for a reader."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hedgerow.report.numerals import THIN_SPACE, is_numeric, show, show_column


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.93614, "0.9361"),
        (0.5, "0.5"),
        (60.0, "60"),
        (1284, f"1{THIN_SPACE}284"),
        (np.int64(1284), f"1{THIN_SPACE}284"),
        (12345.6, f"12{THIN_SPACE}346"),
        (-603.1, "−603.1"),
        (1e-5, "1×10⁻⁵"),
        (2.5e9, "2.5×10⁹"),
        (0, "0"),
        (0.0, "0"),
        (True, "yes"),
        (None, "–"),
        (math.nan, "–"),
        (-math.inf, "−∞"),
        ("St Mary", "St Mary"),
    ],
)
def test_single_values(value, written):
    assert show(value) == written


def test_columns_share_their_decimals():
    assert show_column("coef", (-3.2112, 0.0412, 12.0, None, "–")) == ["−3.211", "0.041", "12.000", "–", "–"]


def test_values_that_would_vanish_become_powers_and_zero_has_no_sign():
    assert show_column("step", (1.0, 2.0, 3.5, -1e-9, -0.0)) == ["1.000", "2.000", "3.500", "−1×10⁻⁹", "0.000"]


def test_p_values_stop_at_a_thousandth():
    assert show_column("p", (4e-6, 0.0091, 0.5)) == ["<0.001", "0.009", "0.500"]


@pytest.mark.parametrize("cell", [1, 0.5, "<0.001", "−0.21", "1 284", "12 %", "3×10⁻⁴", "∞"])
def test_numbers_and_their_spellings_are_numeric(cell):
    assert is_numeric(cell)


@pytest.mark.parametrize("cell", ["", "none", "l2 ≤ 1", "party 3", None, True, "-"])
def test_words_are_not_numeric(cell):
    assert not is_numeric(cell)
