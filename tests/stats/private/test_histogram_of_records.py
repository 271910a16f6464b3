"""Models of a histogram of whole records: its bound, the fit at centres, the threshold."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import hedgerow as hr
from hedgerow.core.bound import l1
from hedgerow.core.party import Party
from hedgerow.core.whole import in_steps
from hedgerow.data import Table
from hedgerow.data.entry import binary, category, declare, integer, number
from hedgerow.errors import FormulaInvalid, SettingsInvalid
from hedgerow.stats.private import linear, sufficient, whole_histogram
from hedgerow.stats.private.histogram import cell_counts, cells_of, grid_of
from hedgerow.stats.private.rows import UnitRows, unit_rows


def people(n: int = 600, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    age, visits, site = rng.uniform(20, 80, n), rng.integers(0, 4, n), rng.integers(0, 2, n)
    income = np.exp(rng.normal(8, 1.5, n)).clip(0, 100_000)
    cost = np.clip(20 + 0.7 * age + 6 * visits + rng.normal(0, 4, n), 0, 120)
    ill = (rng.random(n) < 1 / (1 + np.exp(4 - age / 15))).astype(float)
    schema = declare(
        number("age", 20, 80),
        integer("visits", 0, 3),
        category("site", "north south"),
        number("income", 0, 100_000),
        number("cost", 0, 120, role="target"),
        binary("ill"),
    )
    return Table({"age": age, "visits": visits, "site": site, "income": income, "cost": cost, "ill": ill}, schema)


@pytest.fixture
def clinics():
    return hr.simulate(people(), hr.data.iid(parties=3), seed=0)


def grid(formula: str, **more):
    return grid_of(formula, people(1).schema, **{"bins": 6, "log": (), "target_bins": None, "weights": None, **more})


# ---- cells ----------------------------------------------------------------------------------------------------------
def test_a_record_is_in_one_cell_whose_bins_are_its_own():
    table = people()
    cells = grid("cost ~ age + visits + site")
    assert cells.sizes == (1, 6, 4, 2, 6)  # the constant, age, whole numbers, levels, cost
    at = np.unravel_index(cells.codes(table.columns), cells.sizes)
    assert (at[1] == np.clip(np.ceil((table.columns["age"] - 20) / 10) - 1, 0, 5)).all()
    assert (at[2] == table.columns["visits"]).all()
    assert (at[3] == table.columns["site"]).all()
    assert (at[4] == np.clip(np.ceil(table.columns["cost"] / 20) - 1, 0, 5)).all()


def test_one_record_moves_one_count_by_one():
    table, cells = people(50), grid("ill ~ age + visits")
    cell = cells_of(table.columns, grid=cells)["cell"]
    each = Party("p", {"cell": cell[:, None]}, np.ones((50, 1)))
    for bounds in (None, in_steps(l1(1.0, "record"))):
        found = cell_counts(None, each, None, cells=cells.size, bounds=bounds)
        assert (np.abs(found).sum(1) == 1).all()
        assert (np.linalg.norm(found, axis=1) == 1).all()
    heavy = Party("p", {"cell": cell[:, None]}, np.full((50, 1), 7.0))
    held = cell_counts(None, heavy, None, cells=cells.size, bounds=in_steps(l1(1.0, "record")))
    assert (np.abs(held).sum(1) <= 1).all()


def test_twin_histogram_at_l1_of_one_for_columns_one_by_one():
    """Histograms of each column by itself have a record in one bin of every column: B, where one is claimed."""
    table = people(50)
    rows = UnitRows.of("ill ~ age + visits + site", table.schema, bins=6)
    indicators = (unit_rows(table.columns, spec=rows)["X"] > 0).astype(float)
    assert (np.abs(indicators).sum(1) == len(rows.blocks)).all()
    assert len(rows.blocks) == 4 > l1(1.0, "record").radius


def test_a_grid_of_more_than_a_million_cells_is_refused_before_anybody_is_asked(clinics):
    with pytest.raises(SettingsInvalid, match="1 x 64 x 4 x 64 x 64 = 1048576 cells"):
        linear(clinics, "cost ~ age + visits + income", method="histogram", bins=64, epsilon=1.0)
    with pytest.raises(SettingsInvalid, match="threshold"):
        linear(clinics, "cost ~ age", method="filter-priority", threshold=-1.0)
    with pytest.raises(FormulaInvalid, match="product"):
        linear(clinics, "cost ~ age:visits", method="histogram")
    assert not len(clinics.ledger)


# ---- fits -----------------------------------------------------------------------------------------------------------
def test_without_noise_it_is_least_squares_at_the_centres(clinics):
    table = people()
    fit = linear(clinics, "cost ~ age + visits + site", method="histogram", bins=6)
    age = 25 + 10 * np.clip(np.ceil((table.columns["age"] - 20) / 10) - 1, 0, 5)
    cost = 10 + 20 * np.clip(np.ceil(table.columns["cost"] / 20) - 1, 0, 5)
    centred = Table({**table.columns, "age": age, "cost": cost}, table.schema)
    made = unit_rows(centred.columns, spec=fit.rows)
    np.testing.assert_allclose(fit.coef_, np.linalg.lstsq(made["X"], made["y"], rcond=None)[0], atol=1e-9)
    assert fit.own_units()["age"] == pytest.approx(0.7, abs=0.1)


def test_without_noise_labels_are_logistic_regression_at_the_centres(clinics):
    table = people()
    fit = sufficient(clinics, "ill ~ age + visits", method="histogram", bins=6)
    age = 25 + 10 * np.clip(np.ceil((table.columns["age"] - 20) / 10) - 1, 0, 5)
    X = unit_rows({**table.columns, "age": age}, spec=fit.rows)["X"]
    pooled = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-12, max_iter=1000).fit(X, table.columns["ill"])
    np.testing.assert_allclose(fit.coef_, pooled.coef_[0], atol=1e-5)
    assert fit.model == "logistic"


def test_bins_on_a_logarithmic_scale_have_their_centres_there():
    cells = grid("cost ~ income", log=("income",))
    model = UnitRows.of("cost ~ income", people(1).schema, length="fixed")
    centre = cells.centres(model, np.arange(6))[:, 1] * model.factor * 100_000
    ends = np.expm1(np.linspace(0, np.log1p(100_000), 7))
    assert (ends[:-1] < centre).all()
    assert (centre < ends[1:]).all()
    np.testing.assert_allclose(np.log1p(centre), (np.log1p(ends[:-1]) + np.log1p(ends[1:])) / 2)


@pytest.mark.parametrize(("more", "kind"), [({}, "laplace"), ({"delta": 1e-5}, "gaussian")])
def test_a_budget_is_spent_in_one_question(clinics, more, kind):
    fit = linear(clinics, "cost ~ age + visits", method="histogram", epsilon=1.0, **more)
    [entry] = clinics.ledger.since(0)
    assert entry.event.kind == kind
    assert "l1(1)" in entry.bound
    assert fit.spent == (pytest.approx(1.0, rel=1e-6), more.get("delta", 0.0))


def test_the_threshold_keeps_noise_out_of_empty_cells():
    errors = {}
    for method in ("histogram", "filter-priority"):
        fits = []
        for seed in range(3):
            fed = hr.simulate(people(3000), hr.data.iid(parties=3), seed=seed)
            fits.append(linear(fed, "cost ~ age + visits + income", method=method, epsilon=1.0, bins=10).own_units()["age"])
        errors[method] = np.abs(np.array(fits) - 0.7).mean()
    assert errors["filter-priority"] < 0.15 < errors["histogram"]


def test_what_passes_is_above_the_threshold_and_counts_are_as_released(clinics):
    *_, state = whole_histogram(clinics, formula="cost ~ age", method="filter-priority", epsilon=1.0, threshold=2.0)
    assert state.counts.shape == (64,)
    assert state.noise == pytest.approx(np.sqrt(2), rel=1e-3)
    assert (state.counts < 0).any()
