"""Where bins lie, how neighbours become cells, and the figure of a curve: its band and what is said beneath it."""

import numpy as np
import pytest
from clinic import clinic, federation
from scipy.special import expit
from sklearn import metrics as sk

import hedgerow as hr
from hedgerow import data
from hedgerow.report import Series
from hedgerow.stats import logistic_regression, roc
from hedgerow.stats.quality.cells import BINS, MOST_BINS, inner_edges, number_of_bins, starts_beside, starts_of_cells
from hedgerow.stats.quality.curve import band, figure_of

ILL = "ill ~ age + dose + stage"


def scored(n, base, spread, seed=0):
    """A federation whose log-odds are the column `score`, with their probabilities and outcomes."""
    rng = np.random.default_rng(seed)
    score = base + spread * rng.normal(size=n)
    came = (rng.random(n) < expit(score)).astype(int)
    columns = [data.Column("score", "number", low=-40, high=40), data.Column("came", "binary", role="target")]
    table = data.Table({"score": score, "came": came}, data.Schema(tuple(columns)))
    return hr.simulate(table, hr.data.iid(4), seed=0), expit(score), came


@pytest.fixture(scope="module")
def ill():
    fed, frame = federation(), clinic().to_pandas()
    fit = logistic_regression(fed, ILL)
    return fed, fit, frame["ill"].to_numpy(), fit.predict(frame)


# ---- bins -----------------------------------------------------------------------------------------------------------
def test_bins_grow_slowly_with_the_records():
    assert [number_of_bins(n) for n in (None, 0, 300, 3000)] == [BINS] * 4
    assert number_of_bins(48_000) == 2 * BINS
    assert number_of_bins(1e12) == MOST_BINS


def test_bins_that_are_too_few_are_said():
    fed, p, came = scored(60_000, 0.0, 1.0)
    found = roc(fed, np.array([0.0, 1.0]), formula="came ~ score", bins=8)
    exact = sk.roc_auc_score(came, p)
    assert found.shift == pytest.approx(exact - found.auc, rel=0.25)
    assert found.shift > found.standard_error()
    note = figure_of(found).note
    assert "too small" in note
    needed = int(note.split("; ")[1].split(" bins")[0])
    finer = roc(fed, np.array([0.0, 1.0]), formula="came ~ score", bins=needed)
    assert abs(finer.auc - exact) < 0.3 * finer.standard_error()
    assert "too small" not in figure_of(finer).note


def test_edges_lie_around_the_share_of_events():
    np.testing.assert_allclose(expit(inner_edges(4)), [0.25, 0.5, 0.75])
    odds = np.exp(inner_edges(4, share=0.2))
    np.testing.assert_allclose(odds, 0.25 * np.array([1 / 3, 1, 3]))
    np.testing.assert_allclose(inner_edges(4, share=0.0), inner_edges(4))


# ---- cells ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("others", "events", "least", "starts"),
    [
        ([10, 10, 10], [10, 10, 10], 10, [0, 1, 2]),
        ([3, 3, 3, 3], [3, 3, 3, 3], 10, [0]),
        ([30, 12, 4, 0], [0, 4, 12, 30], 10, [0, 1, 3]),
        ([50, 0, 30, 0], [0, 0, 9, 40], 10, [0, 2]),
        ([1, 2], [0, 5], 10, [0]),
        ([1, 2, 3], [0, 0, 1], 0, [0, 1, 2]),
    ],
)
def test_cells_show_no_small_count_of_a_class(others, events, least, starts):
    np.testing.assert_array_equal(starts_of_cells(np.array(others, float), np.array(events, float), least), starts)


# ---- the band -------------------------------------------------------------------------------------------------------
def test_the_band_is_that_of_records_drawn_again(ill):
    fed, fit, y, p = ill
    found, places, rng = roc(fed, fit), np.linspace(0.1, 0.9, 9), np.random.default_rng(1)
    draws = []
    for _ in range(1000):
        chosen = np.concatenate([rng.choice(np.flatnonzero(y == k), (y == k).sum()) for k in (0, 1)])
        x, height, _ = sk.roc_curve(y[chosen], p[chosen], drop_intermediate=False)
        draws.append(np.interp(places, x, height))
    np.testing.assert_allclose(band(found, places), np.quantile(draws, [0.025, 0.975], axis=0), atol=0.06)
    figure = figure_of(found)
    line = figure.series[0]
    assert all(low <= y <= high for low, y, high in zip(line.low, line.y, line.high, strict=True))
    assert f"Area {found.auc:.3f}" in figure.note
    assert "{:.3f} to {:.3f}".format(*found.conf_int()) in figure.note


def test_a_fine_resolution_is_said(ill):
    fed, fit, *_ = ill
    assert "2000 bins." in figure_of(roc(fed, fit, bins=2000, least=0)).note


def test_noisy_counts_have_a_curve_and_no_interval(ill):
    fed, fit, *_ = ill
    figure = figure_of(roc(fed, fit), exact=False)
    assert figure.series[0].low == ()
    assert "no interval" in figure.note


def test_a_band_has_two_ends_for_every_x():
    with pytest.raises(hr.errors.StudyInvalid, match="band"):
        Series("one", (1.0, 2.0), (1.0, 2.0), low=(0.0,), high=(1.0,))


def test_cells_of_other_edges_tell_no_small_count_beside_those_that_are_shown():
    rng = np.random.default_rng(5)
    score, event = rng.normal(size=2000), rng.random(2000) < 0.3
    halves = [np.linspace(-2.5, 2.5, k) for k in (17, 12)]

    def by_bin(edges):
        bins = np.searchsorted(edges, score)
        return [np.bincount(bins[event == kind], minlength=len(edges) + 1).astype(float) for kind in (False, True)]

    first = starts_of_cells(*by_bin(halves[0]), 10)
    shown = halves[0][first[1:] - 1]
    alone = halves[1][starts_of_cells(*by_bin(halves[1]), 10)[1:] - 1]
    beside = halves[1][starts_beside(halves[1], *by_bin(halves[1]), 10, [(shown, *by_bin(shown))])[1:] - 1]
    assert len(beside)
    small = [any(((part > 0) & (part < 10)).any() for part in by_bin(np.union1d(shown, other))) for other in (alone, beside)]
    assert small == [True, False]
