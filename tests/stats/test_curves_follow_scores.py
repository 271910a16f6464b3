"""Bins of a curve follow the scores: shrunk, steep and shifted ones, by a naive oracle; and where they hide much it is said."""

import numpy as np
import pytest
from test_safe_curves import asked, delong, scored

import hedgerow as hr
from hedgerow.crypto import SecAgg
from hedgerow.privacy import Gaussian
from hedgerow.stats import binary_metrics, roc
from hedgerow.stats.fitted import Fitted
from hedgerow.stats.quality.cells import inner_edges, place_of
from hedgerow.stats.quality.curve import figure_of
from hedgerow.stats.quality.roc import Roc


def curve_of(fed, intercept, slope):
    return roc(fed, np.array([intercept, slope]), formula="came ~ score")


@pytest.mark.parametrize("base", [0.0, -4.0], ids=["half", "3 %"])
@pytest.mark.parametrize(
    ("intercept", "slope"),
    [(0, 0.02), (0, 20), (8, 1), (-300, 1), (3, 0.001)],
    ids=["shrunk", "steep", "shifted", "far", "both"],
)
def test_the_area_is_that_of_the_records_whatever_the_scale_of_the_scores(base, intercept, slope):
    fed, p, came = scored(4000, base, 1.0)
    found = curve_of(fed, intercept, slope)
    area, error = delong(p, came)
    assert abs(found.auc - area) < 0.35 * error
    assert found.conf_int() == pytest.approx((area - 1.96 * error, area + 1.96 * error), abs=0.4 * error)
    assert [entry.numbers for entry in asked(fed)] == [2 * found.bins]


def test_a_penalised_model_has_the_area_of_its_scores():
    formula = "malignant ~ mean_radius + mean_texture + mean_concavity + mean_smoothness"
    table = hr.data.load("breast_cancer")
    fed = hr.simulate(table, hr.data.iid(3), seed=1)
    models = [
        hr.stats.logistic_regression(fed, formula),
        hr.stats.penalised_regression(fed, formula, family="binomial", penalty=0.1, standardised=True),
    ]
    for model in models:
        area, error = delong(model.spec.matrix(table.columns, len(table)) @ model.coef_, table[formula.split()[0]])
        found = roc(fed, model)
        assert abs(found.auc - area) < 0.35 * error
        assert found.is_sharp


def test_what_one_bin_hides_is_said_and_ends_the_interval():
    fed, p, came = scored(4000, 0.0, 1.0)
    fed_tail, tail = long_tailed(p, came)
    found = roc(fed_tail, np.array([0.0, 1.0]), formula="came ~ score")
    area, error = delong(tail, came)
    assert abs(found.auc - area) > error  # the bins do not tell these apart
    assert found.bin_error > found.standard_error()
    assert np.isnan(found.conf_int()).all()
    note = figure_of(found).note
    assert "no interval is given" in note
    assert f"at most by {found.error:.2g}" in note
    assert f"at most by {curve_of(fed, 0, 1).error:.2g}" in figure_of(curve_of(fed, 0, 1)).note


def long_tailed(p, came):
    score = np.exp(np.log(p / (1 - p)) * 3)
    columns = (hr.data.Column("score", "number", low=0, high=1e6), hr.data.Column("came", "binary", role="target"))
    table = hr.data.Table({"score": score, "came": came}, hr.data.Schema(columns))
    return hr.simulate(table, hr.data.iid(4), seed=0), score


@pytest.mark.parametrize("cells", [1, 3])
def test_of_few_cells_all_is_uncertain(cells):
    counts = np.full(cells, 100.0)
    found = Roc(np.arange(cells - 1.0), counts, counts[::-1], np.zeros(cells, bool), 1, 20, 10.0)
    assert found.bin_error == found.error > found.standard_error()
    assert np.isnan(found.conf_int()).all()


def test_one_bin_with_most_pairs_counts_though_its_neighbours_are_empty():
    others, events = np.array([300.0, 1, 1, 1, 1, 300]), np.array([100.0, 1, 1, 1, 1, 300])
    found = Roc(np.arange(5.0), others, events, np.zeros(6, bool), 1, 6)
    assert abs(found.shift) < found.standard_error() < found.bin_error


def test_metrics_bring_the_place_of_the_bins_so_that_a_curve_asks_no_more():
    fed, _, _ = scored(400, 0.0, 1.0)
    fitted = Fitted.of(fed, np.array([2.0, 3.0]), "came ~ score")
    metrics = binary_metrics(fed, fitted)
    place, before = metrics.place, len(fed.ledger)
    known = Fitted(fitted.spec, fitted.coef, sizes=(200.0, 200.0), place=place)
    assert roc(fed, known).rounds == 1
    assert len(fed.ledger) == before + 1
    assert place == pytest.approx((2.0, place[1]), abs=0.5)


def test_few_records_of_a_class_are_not_asked_for_by_themselves():
    """The events' own sum of scores would be the score of a single one."""
    fed, _, _ = scored(400, -4.0, 1.0)
    curve_of(fed, 0.0, 1.0)
    first = next(entry for entry in fed.ledger.entries if entry.query.endswith("spread_of_scores"))
    assert first.numbers == 4


def test_noise_is_asked_for_no_sum_of_scores():
    fed, _, _ = scored(400, 0.0, 1.0)
    noisy = fed.protect(mechanism=Gaussian(1e-3))
    assert binary_metrics(noisy, np.array([0.0, 1.0]), formula="came ~ score").place is None


def test_hidden_rows_bring_the_same_bins():
    fed, _, _ = scored(400, 0.0, 1.0)
    hidden = fed.protect(aggregation=SecAgg())
    np.testing.assert_array_equal(curve_of(hidden, 8, 0.5).edges, curve_of(fed, 8, 0.5).edges)


def test_the_last_digits_of_sums_move_no_edge():
    one, other = (place_of(mean, 1.7, 0.3) for mean in (0.3, 0.3 + 1e-13))
    np.testing.assert_array_equal(inner_edges(20, place=one), inner_edges(20, place=other))
    assert place_of(2.0, 0.0, 0.5) == (2.0, 1.0)
