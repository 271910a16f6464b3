"""Log bins and quantile bins: where cuts lie, what is asked, and the same trees as by scikit-learn on them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tree_patients import patients

from hedgerow.core import Party
from hedgerow.engines import InProcess, Loop
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy import Gaussian, Laplace
from hedgerow.privacy.shares import BudgetShares, Share
from hedgerow.trees import Bins, binned, boosted_trees, decision_tree, quantile_bins, random_forest
from hedgerow.trees.bins import root_bound
from hedgerow.trees.quantiles import fine_counts, quantile_cuts


# ---- log ------------------------------------------------------------------------------------------------------------
def test_log_bins_are_equal_after_the_logarithm(table):
    cuts = Bins.of(table.schema, n_bins=4, log=["dose"]).cuts
    assert_allclose(np.log1p(cuts[1]), np.log(11) * np.array([1, 2, 3]) / 4)
    assert cuts[0] == Bins.of(table.schema, n_bins=4).cuts[0]


@pytest.mark.parametrize("log", [["smoker"], ["stage", "age"], ["nothing"]])
def test_only_numbers_among_the_features_have_a_logarithm(table, log):
    with pytest.raises(SettingsInvalid, match="no numbers among the features"):
        Bins.of(table.schema, log=log)


def test_programs_take_log_bins(table, federate):
    for made in (decision_tree, partial(random_forest, trees=2), partial(boosted_trees, trees=2)):
        assert made(federate(table), depth=2, log=["age"]).bins == Bins.of(table.schema, log=["age"])


# ---- quantiles ------------------------------------------------------------------------------------------------------
def test_cuts_hold_equally_many_records_to_the_width_of_a_fine_bin(table, federate):
    found = quantile_bins(federate(table), n_bins=5, fine=2000)
    shares = np.bincount(found.number(table.columns)[:, 0], minlength=5) / len(table)
    assert_allclose(shares, 0.2, atol=0.011)
    expected = np.quantile(table["age"], [0.2, 0.4, 0.6, 0.8], method="inverted_cdf")
    assert_allclose(found.cuts[0], expected, atol=72 / 2000)
    assert found.cuts[3:] == Bins.of(table.schema).cuts[3:]  # categories keep theirs


@pytest.mark.parametrize(
    ("counts", "expected"),
    [([1, 1, 1, 1], (2.0,)), ([0, 0, 9, 0], (3.0,)), ([0, 0, 0, 0], ()), ([9, 0, 0, 0], (1.0,)), ([0, 0, 0, 9], ())],
)
def test_two_halves_by_hand(counts, expected):
    assert quantile_cuts(np.array(counts, float), (1.0, 2.0, 3.0), 2) == expected


def test_the_bound_is_reached(table):
    bins = Bins.of(table.schema, n_bins=64)
    columns = binned({name: column[:1] for name, column in table.columns.items()}, bins=bins)
    moved = fine_counts(None, Party("one", columns, np.ones(1)), None, sizes=bins.sizes)
    assert np.linalg.norm(moved) == pytest.approx(root_bound(len(bins.features), 1.0).radius)


def test_noise_is_charged_and_engines_agree(table, federate):
    handles = [federate(table, engine).protect(mechanism=Gaussian(0.5)) for engine in (InProcess(), Loop())]
    found, expected = (quantile_bins(handle, n_bins=8, fine=50) for handle in handles)
    assert found == expected
    assert len(handles[0].ledger) == 1
    assert handles[0].ledger.entries[0].bound == "l2(1.41421) per record"  # age and dose alone are cut anew


def test_pure_noise_is_scaled_by_the_features_that_are_asked(table, federate):
    """An l2 bound would be taken times the root of all fine bins: with ten features 32 times too much."""
    federation = federate(table).protect(mechanism=Laplace(0.5))
    quantile_bins(federation, n_bins=8, fine=50)
    assert federation.ledger.entries[0].bound == "l1(2) per record"


def test_a_twentieth_of_a_budget_pays_for_the_cuts(federate):
    table = patients(4000)
    shares = BudgetShares(1.0, 1e-5).handles(federate(table), {"cuts": Share(0.05), "trees": Share(0.95, 2)})
    bins = quantile_bins(shares["cuts"], n_bins=8, fine=200)
    forest = random_forest(shares["trees"], bins=bins, trees=2, depth=2, bootstrap=False)
    assert shares["cuts"].ledger.epsilon(delta=1e-5, unit="record") <= 1.0
    counts = np.bincount(bins.number(table.columns)[:, 0])
    assert len(counts) == 8
    assert forest.bins == bins
    assert_array_equal(forest.predict(table) >= 0, True)
