"""Chained equations by sums: without draws they are regression imputation; pooled by Rubin's rules they cover the truth."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit

import hedgerow as hr
from hedgerow.data import Column, Schema, Table, iid
from hedgerow.errors import HedgerowError, SchemaInvalid, SettingsInvalid, UnboundedSum
from hedgerow.stats import impute, rubin
from hedgerow.stats.imputation.chain import ColumnChain, copies_gram, copies_logistic, nothing_drawn
from hedgerow.stats.imputation.equations import PULL
from hedgerow.stats.imputation.imputed import ImputedState, imputed_rounds

NAMES = ["a", "b", "y"]


def schema(**more):
    columns = {
        "a": Column("a", "number", low=-5, high=5, optional=True),
        "b": Column("b", "number", low=-5, high=5, optional=True),
        "y": Column("y", "number", role="target", low=-7, high=9),
    }
    return Schema(tuple((columns | more).values()))


def study(n=400, seed=0, lost=("a", "b")):
    """y = 1 + 0.5 a - 0.3 b; a is missing by the outcome, b at random."""
    rng = np.random.default_rng(seed)
    a, b = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 1]], n).T
    y = 1 + 0.5 * a - 0.3 * b + rng.normal(size=n)
    gone = {"a": rng.random(n) < expit(1.2 * (y - 1) - 1.2), "b": rng.random(n) < 0.15}
    a, b = (np.where(gone[name], np.nan, x) if name in lost else x for name, x in (("a", a), ("b", b)))
    return Table(schema().admit({"a": a, "b": b, "y": y}), schema())


def sites(table=None, n=4, **channel):
    return hr.simulate(study() if table is None else table, iid(n), seed=0).protect(**channel)


# ---- without draws --------------------------------------------------------------------------------------------------
def by_regression(table, sweeps):
    """Regression imputation of a and b in turn, from means on; the filled columns."""
    X = np.column_stack([table[name] for name in NAMES])
    lost = np.isnan(X)
    X = np.where(lost, np.nanmean(X, 0), X)
    for _ in range(sweeps):
        for j in (0, 1):
            Z = np.column_stack([np.ones(len(X)), np.delete(X, j, 1)])
            beta = np.linalg.lstsq(Z[~lost[:, j]], X[~lost[:, j], j], rcond=None)[0]
            X[lost[:, j], j] = Z[lost[:, j]] @ beta
    return X


@pytest.mark.parametrize("lost", [("a",), ("a", "b")])
def test_without_draws_it_is_regression_imputation(lost):
    table = study(lost=lost)
    found = impute(sites(table), NAMES, copies=2, sweeps=3, draws=False).linear_regression("y ~ a + b")
    X = by_regression(table, 3)
    expected = sm.OLS(X[:, 2], sm.add_constant(X[:, :2])).fit()
    np.testing.assert_allclose(found.coef_, expected.params, rtol=1e-8)
    np.testing.assert_allclose(found.se_, expected.bse, rtol=1e-8)  # copies are alike, so nothing is between them
    np.testing.assert_allclose(found.missing_share, 0, atol=1e-12)


def test_hidden_rows_draw_the_same_values():
    plain = impute(sites(), NAMES, copies=4, sweeps=2).linear_regression("y ~ a + b")
    masked = impute(sites(aggregation=hr.SecAgg(records=200)), NAMES, copies=4, sweeps=2).linear_regression("y ~ a + b")
    np.testing.assert_allclose(masked.coefs, plain.coefs, rtol=1e-7)
    np.testing.assert_allclose(masked.se_, plain.se_, rtol=1e-7)


# ---- Rubin's rules --------------------------------------------------------------------------------------------------
def test_rubins_rules_are_those_of_mice():
    # pool.scalar(c(1.2, 1.5, 0.9, 1.3, 1.1), c(.04, .05, .045, .038, .042), n = 100, k = 3) of mice 3.15.0 in R
    estimates, variances = np.array([[1.2], [1.5], [0.9], [1.3], [1.1]]), np.array([0.04, 0.05, 0.045, 0.038, 0.042])
    found = rubin(estimates, variances.reshape(5, 1, 1), 97)
    assert found.estimate[0] == pytest.approx(1.2, rel=1e-14)
    assert found.covariance[0, 0] == pytest.approx(0.103, rel=1e-14)
    assert found.df[0] == pytest.approx(9.088272219356863, rel=1e-12)
    assert found.share[0] / (1 - found.share[0]) == pytest.approx(1.395348837209302, rel=1e-12)
    alike = rubin(np.ones((3, 1)), np.ones((3, 1, 1)), 97)
    assert alike.df[0] == pytest.approx(98 / 100 * 97)
    with pytest.raises(SettingsInvalid):
        rubin(estimates[:1], variances[:1].reshape(1, 1, 1), 97)


def test_a_pooled_fit_is_what_the_rules_make_of_its_copies():
    found = impute(sites(), NAMES, copies=5, sweeps=2).linear_regression("y ~ a + b")
    pooled = rubin(found.coefs, found.covariances, 397)
    np.testing.assert_array_equal(found.coef_, pooled.estimate)
    low, high = found.conf_int().T
    assert (low < found.coef_).all()
    assert (found.coef_ < high).all()
    assert (found.df_ < 397).all()
    frame = found.to_frame()
    assert list(frame.index) == ["Intercept", "a", "b"]
    assert (frame["p"] < 0.05).all()
    assert found.imputed["b"] == pytest.approx(np.isnan(study()["b"]).mean())
    said = found.summary()
    assert "5 imputed copies" in said
    assert "missing at random" in said
    assert "<svg" in found.plot()._repr_svg_()


# ---- binary columns and levels --------------------------------------------------------------------------------------
def mixed(n=500, seed=0):
    rng = np.random.default_rng(seed)
    stage, x = rng.integers(0, 3, n), rng.normal(size=n).clip(-4, 4)
    smokes = (rng.random(n) < expit(0.8 * x - 0.5 * (stage == 2))).astype(float)
    ill = (rng.random(n) < expit(0.7 * smokes + 0.5 * x - 0.4)).astype(float)
    sex = np.where(rng.random(n) < 0.1, -1, rng.integers(0, 2, n)).astype(np.int16)
    found = Schema((
        Column("x", "number", low=-4, high=4, optional=True), Column("smokes", "binary", optional=True),
        Column("sex", "category", levels=("f", "m"), optional=True), Column("stage", "category", levels=("I", "II", "III")),
        Column("ill", "binary", role="target"),
    ))  # fmt: skip
    columns = {"x": np.where(rng.random(n) < 0.15, np.nan, x), "smokes": np.where(rng.random(n) < 0.2, np.nan, smokes)}
    return Table(columns | {"sex": sex, "stage": stage.astype(np.int16), "ill": ill}, found)


def test_binary_columns_are_drawn_from_logistic_models():
    table = mixed()
    *_, state = imputed_rounds(sites(table), copies=3, sweeps=2, columns=["smokes", "stage", "ill"], draws=False)
    there = ~np.isnan(table["smokes"])
    Z = np.column_stack([np.ones(500), table["stage"] == 1, table["stage"] == 2, table["ill"]])[there]
    beta = state.at["smokes"][0]
    assert np.abs(Z.T @ (table["smokes"][there] - expit(Z @ beta)) - PULL * beta).max() < 1e-8
    np.testing.assert_allclose(beta, sm.Logit(table["smokes"][there], Z).fit(disp=0).params, atol=2e-3)


def test_a_logistic_regression_over_numbers_binaries_and_levels():
    found = impute(sites(mixed()), copies=8, sweeps=4).logistic_regression("ill ~ x + smokes + C(sex) + C(stage)")
    truth = np.array([0.5, 0.7])
    places = [found.names.index("x"), found.names.index("smokes")]
    low, high = found.conf_int()[places].T
    assert ((low < truth) & (truth < high)).all()
    assert "odds ratio" in found.to_frame()
    assert set(found.imputed) == {"x", "smokes", "sex"}
    assert found.n_records == 500


def test_a_column_that_a_site_lacks_wholly_is_filled_by_the_others():
    table = study()
    columns = table.columns | {"b": np.where(np.arange(400) < 100, np.nan, table["b"])}
    federation = hr.simulate(Table(columns, table.schema), hr.data.in_order(4), seed=0)
    found = impute(federation, NAMES, copies=10, sweeps=5).linear_regression("y ~ a + b")
    whole = study(lost=())
    expected = sm.OLS(whole["y"], sm.add_constant(np.column_stack([whole["a"], whole["b"]]))).fit().params
    low, high = found.conf_int().T
    assert ((low < expected) & (expected < high)).all()
    assert found.missing_share[2] > 0.2
    assert "lacks wholly" in found.summary()


def test_squeezed_draws_stay_in_the_range_and_may_be_logarithms():
    rng = np.random.default_rng(0)
    dose = rng.uniform(0.1, 2, 300)
    y = np.log(dose) + rng.normal(size=300) * 0.3
    made = Schema((Column("dose", "number", low=0.1, high=2, optional=True), Column("y", "number", low=-5, high=5)))
    table = Table({"dose": np.where(rng.random(300) < 0.3, np.nan, dose), "y": y}, made)
    found = impute(sites(table), copies=3, sweeps=2, squeeze=True).linear_regression("y ~ log(dose)")
    assert np.isfinite(found.coef_).all()


# ---- what leaves ----------------------------------------------------------------------------------------------------
def test_the_ledger_names_every_question():
    federation = sites()
    impute(federation, NAMES, copies=10, sweeps=6).linear_regression("y ~ a + b")
    asked = [(entry.query.rpartition(":")[2], entry.verb, entry.exact_numbers) for entry in federation.ledger.since(0)]
    assert asked[:2] == [("observed", "sum", 6), ("begin", "each", 0)]
    assert asked[2:26] == [("copies_gram", "sum", 10 * 10), ("draw", "each", 0)] * 12
    assert asked[26:] == [("copies_sums", "sum", 10 * (3 + 6 + 4))] * 2


def test_one_record_is_within_its_bounds():
    chain = ColumnChain(tuple(schema()), 2)
    rng = np.random.default_rng(0)
    for _ in range(30):
        values = {name: np.array([rng.choice([low, high, np.nan if name != "y" else low])])
                  for name, low, high in (("a", -5.0, 5.0), ("b", -5.0, 5.0), ("y", -7.0, 9.0))}  # fmt: skip
        party = hr.Party("p", values, np.ones(1))
        party.state.update({key: rng.choice([-2.0, 2.0], size=one.shape) for key, one in
                            nothing_drawn(None, party, chain=chain).items()})  # fmt: skip
        assert np.abs(copies_gram(None, party, None, chain=chain, target=0)).max() <= chain.room**2
        sums = copies_logistic(rng.normal(size=(2, 3)), party, None, chain=chain, target=2)
        assert np.abs(sums["score"]).max() <= chain.room * 7  # the target here is a number in [-1, 1]
        assert np.abs(sums["information"]).max() <= chain.room**2 / 4


def test_lost_states_are_refused():
    federation = sites()
    first = next(imputed_rounds(federation, columns=NAMES, copies=3, sweeps=1))
    with pytest.raises(HedgerowError, match="HR-615"):
        hr.last(imputed_rounds(sites(), columns=NAMES, copies=3, sweeps=1, start=first))
    assert isinstance(hr.last(imputed_rounds(federation, columns=NAMES, copies=3, sweeps=1, start=first)), ImputedState)


def test_a_second_chain_leaves_the_first_as_it_is():
    table = study(lost=())
    gone = np.random.default_rng(1).random(400) < 0.3  # in the same records, so that values of a would fit into b
    values = {name: np.where(gone, np.nan, table[name]) for name in "ab"}
    federation = sites(Table(schema().admit(values | {"y": table["y"]}), schema()))
    first = impute(federation, NAMES, copies=3, sweeps=2)
    before = first.linear_regression("y ~ a + b").coef_
    for columns, settings in ((["b", "a", "y"], {}), (NAMES, {"copies": 2}), (NAMES, {"squeeze": True})):
        impute(federation, columns, sweeps=1, **({"copies": 3} | settings))
        np.testing.assert_array_equal(first.linear_regression("y ~ a + b").coef_, before)


# ---- refusals -------------------------------------------------------------------------------------------------------
def test_refusals_come_before_any_party_is_asked():
    federation, wide = sites(), schema(s=Column("s", "category", levels=("1", "2", "3"), optional=True))
    stages = sites(Table(study().columns | {"s": np.zeros(400, np.int16)}, wide))
    for error, match, ask in (
        (SchemaInvalid, "3 levels", lambda: impute(stages)),
        (SettingsInvalid, "copies=1", lambda: impute(federation, NAMES, copies=1)),
        (SettingsInvalid, "sweeps=0", lambda: impute(federation, NAMES, sweeps=0)),
        (SettingsInvalid, "may be missing", lambda: impute(federation, ["y"])),
        (SettingsInvalid, "one column", lambda: impute(federation, ["a"])),
        (SettingsInvalid, "not in", lambda: hr.last(imputed_rounds(federation, formula="y ~ a + b", columns=["a", "y"]))),
        (UnboundedSum, "Rubin", lambda: impute(sites(mechanism=hr.Gaussian(1.0)), NAMES)),
        (UnboundedSum, "a declares", lambda: impute(
            sites(Table(study().columns, schema(a=Column("a", "number", optional=True))), aggregation=hr.SecAgg(records=400)))),
    ):  # fmt: skip
        with pytest.raises(error, match=match):
            ask()
    assert len(federation.ledger) == len(stages.ledger) == 0


@pytest.mark.slow
def test_intervals_cover_the_truth_where_complete_cases_do_not():
    """120 tables; fewer than 107 hits of 95 % intervals have a chance of about 0.5 %. A benchmark has 400."""
    hits, complete = np.zeros(2), np.zeros(2)
    for seed in range(120):
        federation = sites(study(seed=seed))
        for count, fit in (
            (hits, impute(federation, NAMES, copies=10, sweeps=5).linear_regression("y ~ a + b")),
            (complete, hr.stats.linear_regression(federation, "y ~ a + b")),
        ):
            low, high = fit.conf_int()[1:].T
            count += (low < [0.5, -0.3]) & (high > [0.5, -0.3])
    assert (hits >= 107).all(), hits
    assert complete[0] < 100, complete
