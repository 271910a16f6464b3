"""What a reader sees: nothing is said that the numbers do not hold, and nothing is cut off on a phone."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from hedgerow.report import Comparison, Curve, Grid, Report, Series, render
from hedgerow.report.page import loss_sentence
from hedgerow.report.style import STYLE
from hedgerow.report.tables import table

WIDE = Grid(
    "What is published",
    ("what", "whose", "status", "how"),
    (("answers", "the parties'", "exposed", "in the ledger"), ("models", "the parties'", "exposed", "by nothing")),
)
PHONE = re.search(r"@media screen and \(max-width: 40rem\) \{(.*?)\n\}", STYLE, re.DOTALL)


# ---- tables ---------------------------------------------------------------------------------------------------------
def test_a_wide_table_becomes_cards_that_name_each_value():
    drawn = table(WIDE)
    assert '<table class="cards">' in drawn
    assert drawn.count('data-label="whose"') == drawn.count('data-label="how"') == 2
    numbers = Grid("t", ("a", "b", "c", "d"), (("x", 1, 2.5, None), ("y", 1, 2.5, 3)))
    assert '<table class="cards pairs">' in table(numbers)
    assert "cards" not in table(Grid("t", ("a", "b", "c"), (("x", 1, 2),)))


def test_a_phone_shows_cards_one_below_the_other():
    assert ".cards tbody td::before { content: attr(data-label)" in PHONE[1]
    assert ".cards thead { position: absolute" in PHONE[1]


def test_a_name_among_the_first_numbers_is_broken_and_not_cut_off():
    assert re.search(r"\.metrics dd\.words \{[^}]*white-space: normal", STYLE)
    assert "grid-template-columns: repeat(2, minmax(0, 1fr))" in STYLE  # no column is wider than half a phone
    assert re.search(r"\.metrics dd\.words \{[^}]*overflow-wrap: break-word", STYLE)


def test_cards_leave_out_words_that_are_missing():
    drawn = table(Grid("t", ("what", "whose", "unit", "how"), (("a", "b", None, "c"), ("d", "e", "record", "f"))))
    assert drawn.count('class="none"') == 1
    assert ".cards td.none { display: none; }" in PHONE[1]


def test_labels_of_cards_cannot_break_out():
    assert "<script" not in table(Grid("t", ("a", '"><script>', "c", "d"), (("x", 1, 2, 3),)))


@pytest.mark.parametrize("nothing", [None, math.nan])
def test_columns_in_which_nothing_is_known_are_named_and_not_drawn(nothing):
    drawn = table(
        Grid("Coefficients", ("column", "coef", "se", "p"), (("age", 1.5, nothing, None), ("sex", 2.5, None, nothing)))
    )
    assert "–" not in drawn
    assert "<th" in drawn
    assert re.findall(r'scope="col"[^>]*>([^<]+)<', drawn) == ["column", "coef"]
    assert "Left out, as there is nothing in it: se, p." in drawn
    kept = table(Grid("t", ("column", "coef"), (("age", None),)))
    assert "–" in kept  # a table of one column would say nothing at all
    assert "Left out" not in table(WIDE)


# ---- sentences ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("federated", "centralised", "said"),
    [
        (0.9 - 1.11e-16, 0.9, "Federated R2 equals the centralised one."),
        (0.9 + 1.11e-16, 0.9, "Federated R2 equals the centralised one."),
        (116_652.0000001, 116_652.0, "Federated R2 equals the centralised one."),
        (0.9 + 3e-8, 0.9, "Federated R2 equals the centralised one to six digits."),
        (0.0, 1e-20, "Federated R2 equals the centralised one."),
        (0.9, 0.91, "Federated R2 is 0.01 worse than centralised."),
        (0.9, 0.90002, "Federated R2 is 2×10⁻⁵ worse than centralised."),
    ],
)
def test_rounding_is_no_difference(federated, centralised, said):
    rows = (("federated", federated, ""), ("centralised", centralised, ""))
    assert loss_sentence(Comparison("R2", True, rows)) == said


def test_a_legend_has_values_only_where_they_tell_lines_apart():
    both = (Series("model", (0.0, 1.0), (0.0, 1.0)), Series("chance", (0.0, 1.0), (0.2, 1.0), "reference"))
    page = render(_page(curves=(Curve("ROC curve", "x", "y", both),)))
    assert "<b>" not in page
    apart = (both[0], Series("chance", (0.0, 1.0), (0.2, 0.5), "reference"))
    assert "<b>0.5</b>" in render(_page(curves=(Curve("t", "x", "y", apart),)))


# ---- order ----------------------------------------------------------------------------------------------------------
def _page(**parts) -> Report:
    made = Report(title="t", study="s", description="d", privacy="p", privacy_ok=True)
    return replace(made, **parts)


def test_what_the_reader_came_for_stands_first():
    parts = {
        "curves": (Curve("Loss", "round", "loss", (Series("s", (1.0, 2.0), (2.0, 1.0)),)),),
        "comparison": Comparison("R2", True, (("federated", 0.9, ""), ("centralised", 0.9, ""))),
        "tables": (Grid("Coefficients", ("column", "coef"), (("age", 1.0),)),),
    }
    headings = re.findall("<h2>([^<]+)</h2>", render(_page(**parts, tables_first=True)))
    assert headings[1:] == ["Coefficients", "Round by round", "Beside the alternatives"]
    headings = re.findall("<h2>([^<]+)</h2>", render(_page(**parts)))
    assert headings[1:] == ["Round by round", "Beside the alternatives", "Coefficients"]


def test_a_report_with_bands_comes_back_from_json():
    banded = Curve("t", "x", "y", (Series("s", (1.0, 2.0), (2.0, 1.0), low=(1.0, math.inf), high=(3.0, 2.0)),))
    report = _page(curves=(banded,), tables_first=True)
    assert Report.from_json(report.to_json()) == report


def test_words_among_the_metrics_are_smaller_than_numbers():
    page = render(_page(metrics=(("AUC", 0.9), ("AUC, 95 % interval", "0.870 to 0.930"))))
    assert '<dd class="words">0.870 to 0.930</dd>' in page
    assert "<dd>0.9</dd>" in page
