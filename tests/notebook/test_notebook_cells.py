"""What values show in a notebook and in a `repr`: short, self-contained, and nothing that a program may not know."""

from __future__ import annotations

import re
from functools import partial
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import CannotWrite, SettingsInvalid, StudyInvalid
from hedgerow.learn.fedavg import ModelState
from hedgerow.notebook import cell_of, lines_of
from hedgerow.report import Card, Figure, Grid, Intervals, Report, card_html
from hedgerow.report.scoped import cell_style, figure_style
from hedgerow.trees.bins import Bins
from helpers import federation, totals

FORMULA = "malignant ~ mean_texture + mean_smoothness"


@pytest.fixture(scope="module")
def hospitals() -> Any:
    table = hr.data.load("breast_cancer").take(range(300))
    return hr.simulate(table, partition=hr.data.iid(parties=4), seed=0)


@pytest.fixture(scope="module")
def fit(hospitals: Any) -> Any:
    return hr.stats.logistic_regression(hospitals, FORMULA)


@pytest.fixture(scope="module")
def shown(hospitals: Any, fit: Any) -> dict[str, Any]:
    """A value of each kind that has a cell."""
    *_, state = hr.trees.grow(hospitals, features=["mean_texture", "mean_radius"], depth=2)
    bins = Bins.of(hospitals.schema, features=["mean_texture", "mean_radius"])
    run = hr.drive(partial(noted, rounds=3), hospitals, watch=lambda s: {"score": 1.0 / s.round}, progress=False)
    return {
        "federation": hospitals,
        "cohort": hospitals.pick(hospitals.names[:2]),
        "schema": hospitals.schema,
        "fit": fit,
        "penalised": hr.stats.penalised_regression(hospitals, FORMULA, family="binomial", penalty=0.05),
        "robust": hr.stats.huber_regression(hospitals, "mean_radius ~ mean_texture"),
        "moments": hr.stats.moments(hospitals, ["mean_radius"]),
        "binary metrics": hr.stats.binary_metrics(hospitals, fit),
        "calibration": hr.stats.calibration(hospitals, fit),
        "roc": hr.stats.roc(hospitals, fit),
        "ledger": hospitals.ledger,
        "state": state,
        "tree": hr.trees.DecisionTree(state, bins),
        "forest": hr.trees.random_forest(hospitals, trees=3, depth=2),
        "boosted": hr.trees.boosted_trees(hospitals, trees=3, depth=2),
        "run": run,
    }


def noted(federation: Any, *, rounds: int, start: Any = None) -> Any:
    """A program of a few rounds."""
    for t in range(rounds):
        yield ModelState(t + 1, {"w": np.full((2, 3), float(t))})


class Reader(HTMLParser):
    """Collects tags, text and what would be loaded; refuses what is not balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.text = ""

    def handle_starttag(self, name: str, attributes: Any) -> None:
        self.loaded += [value for key, value in attributes if key in ("src", "href", "xlink:href")]
        if name not in ("meta", "br", "hr"):
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        self.text += "" if "style" in self.open else data + " "


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    assert not reader.open
    return reader


def test_every_cell_is_balanced_loads_nothing_and_runs_nothing(shown: dict[str, Any]) -> None:
    for name, value in shown.items():
        html = value._repr_html_()
        found = read(html)
        assert found.text.strip(), name
        assert not found.loaded, name
        assert not re.search(r"<script|url\(|@import|https?://(?!www.w3.org)|\son\w+=", html), name


def test_every_repr_is_a_few_lines(shown: dict[str, Any]) -> None:
    for name, value in shown.items():
        said = repr(value)
        assert said.startswith(type(value).__name__) or name == "tree"
        assert len(said.splitlines()) <= 12, name
        assert max(map(len, said.splitlines())) <= 90, name


def test_a_fit_says_what_a_statistician_looks_for(fit: Any) -> None:
    said = repr(fit)
    assert FORMULA in said
    assert "records 300" in said
    assert "mean_texture" in said
    text = read(fit._repr_html_()).text
    assert all(
        word in text for word in ("odds ratio", "log-likelihood", "AIC", "What left each party", "not differentially private")
    )


def test_a_private_fit_is_said_to_be_private_and_has_no_intervals(hospitals: Any) -> None:
    table = hr.data.load("breast_cancer").take(range(300))
    noisy = hr.simulate(table, partition=hr.data.iid(parties=4), seed=0).protect(mechanism=hr.Gaussian(0.1))
    fit = hr.stats.logistic_regression(noisy, FORMULA, max_rounds=2)
    html = fit._repr_html_()
    assert 'class="privacy private"' in html
    assert "about" in read(html).text
    assert "(se" not in repr(fit)


def test_the_ledger_says_its_entries_and_epsilon() -> None:
    table = hr.data.load("breast_cancer").take(range(300))
    private = hr.simulate(table, partition=hr.data.iid(parties=4), seed=0).protect(mechanism=hr.Gaussian(4.0))
    private.within(hr.Budget(epsilon=3, delta=1e-5, unit="record"))
    hr.stats.logistic_regression(private, FORMULA, max_rounds=2)
    ledger = private.ledger
    assert f"questions {len(ledger)}" in repr(ledger)
    spent = ledger.limit.spent(ledger.charges("record"))
    assert f"epsilon {spent:.4g}" in repr(ledger)
    frame = ledger.to_frame()
    assert list(frame["question"]) == list(range(1, len(ledger) + 1))
    assert frame.loc[0, "noise"].startswith("Gaussian(4)")
    assert frame.loc[0, "numbers"] == ledger.entries[0].numbers


def test_a_ledger_of_two_units_says_that_there_is_no_epsilon() -> None:
    both = federation().protect(mechanism=hr.Gaussian(1.0))
    for unit in ("record", "party"):
        both.sum(totals, bound={"sum": hr.l2(1.0, unit), "n": hr.linf(1.0, unit)})
    assert "No epsilon is claimed" in repr(both.ledger)
    assert "per record" in repr(both.ledger)
    assert 'class="privacy open"' in both._repr_html_()


def test_a_federation_shows_what_a_program_may_know_and_no_record(hospitals: Any) -> None:
    text = read(hospitals._repr_html_()).text
    assert "mean_radius" in text
    assert "300" not in text  # how many records there are


def test_a_state_shows_shapes_and_not_its_numbers() -> None:
    state = ModelState(3, {"0.weight": np.full((10, 64), 0.123456), "0.bias": np.zeros(10)})
    assert "0.weight (10, 64)" in repr(state)
    assert "650 numbers" in repr(state)
    assert "0.1234" not in repr(state) + state._repr_html_()


def test_names_of_others_are_text_and_not_markup() -> None:
    evil = "<img src=x onerror=alert(1)>"
    card = Card(
        kind=evil, title=evil, facts=((evil, evil),), tables=(Grid(evil, ("a", "b"), ((evil, evil),)),), text=((evil, evil),)
    )
    assert "<img" not in card_html(card)
    figure = Figure(Intervals(evil, evil, [evil], [1.0], [0.0], [2.0]))
    assert "<img" not in figure.svg
    ElementTree.fromstring(figure.svg)


def test_a_report_is_shown_whole() -> None:
    report = Report(
        title="Title", study="study", description="What", privacy="Nothing.", privacy_ok=False, metrics=(("auc", 0.5),)
    )
    text = read(cell_of(report)).text
    assert "Not differentially private" in text
    assert "auc" in text


def test_styles_reach_nothing_outside() -> None:
    style = re.sub(r"@media[^{]*\{", "", cell_style())
    heads = [head.strip() for head in re.findall(r"([^{}]+)\{", style)]
    assert len(heads) > 60
    assert all(".hedgerow" in one for head in heads for one in head.split(","))
    drawn = re.sub(r"@media[^{]*\{", "", figure_style())
    assert all(
        one.strip().startswith(".hedgerow-figure") for head in re.findall(r"([^{}]+)\{", drawn) for one in head.split(",")
    )
    assert "var(" not in drawn


# ---- figures --------------------------------------------------------------------------------------------------------
def test_a_plot_holds_every_coefficient_and_its_interval(fit: Any, tmp_path: Any) -> None:
    figure = fit.plot()
    root = ElementTree.fromstring(figure._repr_svg_())
    words = " ".join(root.itertext())
    assert "mean_texture" in words
    assert "Intercept" not in words
    assert "Intercept" in " ".join(ElementTree.fromstring(fit.plot(intercept=True).svg).itertext())
    assert sum(element.get("class") == "dot ink0" for element in root.iter()) == len(fit.coef_) - 1
    path = figure.save(tmp_path / "new" / "fit.svg")
    assert path.read_text(encoding="utf-8") == figure.svg
    with pytest.raises(CannotWrite, match=r"fit\.png"):
        figure.save(tmp_path / "fit.png")


def test_lines_stand_where_the_intervals_are() -> None:
    figure = Figure(Intervals("t", "x", ["a", "b"], [1.0, 3.0], [0.0, 2.0], [2.0, 4.0]))
    root = ElementTree.fromstring(figure.svg)
    a, b = (e for e in root.iter() if e.get("class") == "main ink0")
    dots = [float(e.get("cx", "")) for e in root.iter() if e.get("class") == "dot ink0"]
    ends = [(float(e.get("x1", "")), float(e.get("x2", ""))) for e in (a, b)]
    unit = (ends[0][1] - ends[0][0]) / 2
    assert dots[0] == pytest.approx(sum(ends[0]) / 2, abs=0.01)
    assert dots[1] - dots[0] == pytest.approx(2 * unit, rel=1e-3)
    assert ends[1][0] == pytest.approx(ends[0][1], abs=0.01)


def test_columns_of_very_different_units_are_drawn_in_standard_errors() -> None:
    figure = Figure(Intervals("t", "coefficient", ["a", "b"], [1000.0, 0.001], [900.0, 0.0005], [1100.0, 0.0015]))
    words = " ".join(ElementTree.fromstring(figure.svg).itertext())
    assert "in standard errors" in words
    assert "1\N{NARROW NO-BREAK SPACE}000 (900 to 1\N{NARROW NO-BREAK SPACE}100)" in words


def test_nothing_finite_is_no_figure() -> None:
    with pytest.raises(StudyInvalid, match="finite"):
        Figure(Intervals("t", "x", ["a"], [float("nan")], [0.0], [1.0]))
    with pytest.raises(StudyInvalid, match="names and ends"):
        Intervals("t", "x", ["a"], [1.0, 2.0], [0.0], [1.0])


def test_curves_of_a_run_are_drawn_by_name(shown: dict[str, Any]) -> None:
    run = shown["run"]
    assert "Score" in " ".join(ElementTree.fromstring(run.plot("score").svg).itertext())
    with pytest.raises(SettingsInvalid, match="skore"):
        run.plot("skore")
    with pytest.raises(SettingsInvalid, match="measured nothing"):
        hr.drive(partial(noted, rounds=1), shown["federation"], progress=False).plot()


@pytest.mark.parametrize("name", ["roc", "calibration", "robust", "penalised"])
def test_other_statistics_have_figures(shown: dict[str, Any], name: str) -> None:
    ElementTree.fromstring(shown[name].plot().svg)


def test_lines_of_a_value_without_a_card_are_its_numbers() -> None:
    from hedgerow.stats.counts import Independence

    assert lines_of(Independence(3.0, 1, 0.08, 7.0)).startswith("Independence\n  statistic 3, df 1")
