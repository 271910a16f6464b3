"""Tables for papers: the numbers of each fit, in words, and nothing that a word processor or LaTeX would read otherwise."""

import re
from xml.etree import ElementTree

import numpy as np
import pandas
import pytest

import hedgerow as hr
from hedgerow.data import load
from hedgerow.errors import CannotWrite
from hedgerow.report import Grid
from hedgerow.report.papers import grid_html, grid_latex, in_latex

HEART = "death_event ~ age + serum_creatinine"
TIMES = "time + death_event ~ age + anaemia"


@pytest.fixture(scope="module")
def clinics():
    return hr.simulate(load("heart_failure"), hr.data.iid(parties=3), seed=0)


MAKE = {
    "Fit": lambda one: hr.stats.logistic_regression(one, HEART),
    "linear": lambda one: hr.stats.linear_regression(one, "serum_creatinine ~ age + sex", errors="HC3"),
    "CoxFit": lambda one: hr.stats.cox(one, TIMES),
    "PiecewiseFit": lambda one: hr.stats.piecewise_exponential(one, TIMES, cuts=[60, 150]),
    "MixedFit": lambda one: hr.stats.mixed_linear(one, "serum_creatinine ~ age + sex + (1 | site)"),
    "SiteEffectsFit": lambda one: hr.stats.within_sites(one, HEART, "binomial"),
    "MetaAnalysis": lambda one: hr.stats.meta_analysis(one, HEART),
    "RobustFit": lambda one: hr.stats.huber_regression(one, "serum_creatinine ~ age"),
    "TableOne": lambda one: hr.stats.table_one(one, ["age", "sex"], "death_event"),
    "LogRank": lambda one: hr.stats.log_rank(one, time="time", event="death_event", group="anaemia"),
}


@pytest.mark.parametrize("name", MAKE)
def test_every_fit_writes_its_table_and_shows_itself(name, clinics, tmp_path):
    fit = MAKE[name](clinics)
    frame = fit.to_frame()
    page = ElementTree.fromstring(fit.to_html(labels={"age": "Age & years"}, caption="Table 2"))
    rows = page.findall("./tbody/tr")
    intercepts = sum(term == "Intercept" for term in map(str, frame.index))
    assert len(rows) == len(frame) - intercepts * ("p" in frame and name != "MetaAnalysis")
    assert page.find("caption").text == "Table 2"
    latex = fit.to_latex(labels={"age": "Age & years"}, caption="Table 2", label="tab:two")
    assert latex.count(r" \\") == len(rows) + 1
    assert r"\caption{Table 2}" in latex
    assert not re.search(r"(?<!\\)[_%#]", latex.replace("tab:two", ""))
    assert latex.isascii() or "²" in latex
    back = pandas.read_csv(fit.to_csv(tmp_path / "folder" / "table.csv"), index_col=0)
    numbers = frame.select_dtypes("number").to_numpy()
    if numbers.size:
        np.testing.assert_array_equal(back.select_dtypes("number").to_numpy()[:, -numbers.shape[1] :], numbers)
    assert "<table" in fit._repr_html_()
    assert "<script" not in fit._repr_html_()


@pytest.mark.parametrize("name", ["Fit", "CoxFit", "PiecewiseFit", "SiteEffectsFit", "linear", "MixedFit"])
def test_an_interval_holds_its_estimate_on_the_scale_that_is_read(name, clinics):
    for row in ElementTree.fromstring(MAKE[name](clinics).to_html()).findall("./tbody/tr"):
        value, between = (row[i].text.replace("\u202f", "").replace("−", "-") for i in (1, 2))
        low, high = map(float, between.split(" to "))
        assert low <= float(value) <= high


def test_ratios_are_ratios_and_small_p_values_are_not_told_apart(clinics):
    fit = hr.stats.logistic_regression(clinics, HEART)
    table = fit.to_html(labels={"age": "Age, per year"})
    assert f">{np.exp(fit.coef_[1]):.2f}<" in table
    assert "Age, per year" in table
    assert "below 0.001" in table
    assert "Odds ratio" in table
    assert "Intercept" not in table
    assert "Intercept" in fit.to_html(intercept=True)


def test_what_latex_reads_otherwise_is_written_as_it_has_it():
    assert in_latex("a_b & 5 % of x^2 {1} −2 1\u202f000 6.8×10⁻⁶²") == (
        r"a\_b \& 5 \% of x\textasciicircum{}2 \{1\} $-$2 1\,000 6.8$\times10^{-62}$"
    )
    assert in_latex("<0.001 \\ ~ –") == r"$<$0.001 \textbackslash{} \textasciitilde{} --"


def test_names_are_text_and_never_markup():
    grid = Grid("<b>t</b>", ("", "n"), (("<script>x</script>", 1.5), ("b", None)))
    written = grid_html(grid)
    assert "<script" not in written
    assert "&lt;script&gt;" in written
    assert "text-align: right" in written
    assert r"\begin{tabular}{lr}" in grid_latex(grid)


def test_a_folder_that_cannot_be_written_to_says_so(clinics, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite, match="file"):
        hr.stats.logistic_regression(clinics, HEART).to_csv(tmp_path / "file" / "x.csv")
