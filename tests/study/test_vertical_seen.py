"""The section "Who saw what" of a report: roles, sentences, letters by role and purpose."""

from dataclasses import dataclass, replace

import pytest

from hedgerow.report import Report, render
from hedgerow.study.apart.seen import bytes_in_all, letters_of, saw_of

SAW = {
    "hub": ["sizes of sealed letters"],
    "tax": ["the size of town's list, and which of its own people are common.", "uniform numbers"],
    "world": ["a (4, 4) sum over 300 records"],
}


@dataclass(frozen=True)
class Sent:
    purpose: str
    rounds: int
    bytes: dict
    seconds: dict


TRAFFIC = [
    Sent(
        "alignment by x25519", 4, {("tax", "town"): 100, ("town", "tax"): 120, ("tax", "hub"): 8}, {"parties": 0.5, "hub": 0.1}
    ),
    Sent("cross", 2, {("tax", "hub"): 10, ("hub", "town"): 30}, {"parties": 0.25, "hub": 0.5}),
    Sent("cross", 2, {("tax", "hub"): 10}, {"parties": 0.25, "hub": 0.5}),
]


@pytest.fixture
def report():
    saw, traffic = saw_of(SAW, ["tax", "town"]), letters_of(TRAFFIC, ["tax", "town"])
    return Report(title="Wages", study="wages", description="", privacy="No.", privacy_ok=False, saw=saw, traffic=traffic)


def test_roles_come_in_order_and_who_saw_nothing_is_there(report):
    assert [role for role, _ in report.saw] == ["tax", "town", "hub", "world"]
    assert dict(report.saw)["town"] == ()
    assert dict(report.saw)["tax"][1] == "Uniform numbers."


def test_what_local_functions_compute_is_said_in_words():
    saw = saw_of({"hub": ["totals record by record of predictor_rows, in secret order"]}, [])
    assert saw[0] == ("hub", ("Totals record by record of linear predictors, in secret order.",))


def test_letters_add_up_by_role_and_purpose(report):
    grid = report.traffic
    assert grid.columns[:6] == ("purpose", "questions", "rounds", "bytes from tax", "bytes from town", "bytes from hub")
    rows = {row[0]: row[1:] for row in grid.rows}
    assert rows["cross"] == (2, 4, 20, 0, 30, 0.5, 1.0)
    assert rows["all"][:5] == (3, 8, 128, 120, 30)
    assert bytes_in_all(TRAFFIC) == 278


def test_a_report_with_them_comes_back_from_json(report):
    assert Report.from_json(report.to_json()) == report


def test_the_page_says_who_saw_what_and_that_the_hub_carries_sealed_letters(report):
    page = render(report)
    assert "<h2>Who saw what</h2>" in page
    assert "<dt>town</dt><dd><ul><li>Nothing.</li></ul></dd>" in page
    assert "sealed end to end" in page
    assert "Letters between roles" in page


def test_a_report_of_parties_with_the_same_columns_has_no_such_section(report):
    assert "Who saw what" not in render(replace(report, saw=(), traffic=None))


def test_sentences_are_text_and_no_markup(report):
    page = render(replace(report, saw=(("tax", ("<b>ids</b> of people",)),)))
    assert "<b>ids" not in page
    assert "&lt;b&gt;ids" in page
