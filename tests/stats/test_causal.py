"""Weighting by propensity scores: effects and errors are those of the stacked estimating equations of pooled records."""

import os
from functools import cache

import numpy as np
import pandas as pd
import pytest
import statsmodels
import statsmodels.api as sm
from scipy.special import expit
from statsmodels.treatment.treatment_effects import TreatmentEffect

import hedgerow as hr
from hedgerow.data import Column, Schema, Table, iid
from hedgerow.errors import FormulaInvalid, NotBinary, Separated, SettingsInvalid, UnboundedSum
from hedgerow.stats import aipw, ipw, overlap_weights
from hedgerow.stats.causal.problem import problem_of
from hedgerow.stats.causal.sums import OUTCOME, ROWS, arm_balance, arm_slopes, arm_squares, arm_totals
from hedgerow.stats.causal.weighting import CausalState, weighting_rounds

SCORE = "smokes ~ married + mage + I(mage**2) + first + medu"
MODEL = SCORE.replace("smokes", "bweight")


@cache
def births():
    """4642 births, bundled with statsmodels (Cattaneo 2010)."""
    path = os.path.join(os.path.dirname(statsmodels.__file__), "treatment/tests/results/cataneo2.csv")
    found = pd.read_csv(path)
    found["married"], found["first"] = (found.mmarried == "married") * 1, (found.fbaby == "Yes") * 1
    found["smokes"] = (found.mbsmoke == "smoker") * 1
    declared = {name: {"kind": "binary"} for name in ("smokes", "married", "first")}
    table = Table.from_pandas(found[["bweight", "smokes", "married", "mage", "first", "medu"]], declared=declared)
    return table.declare(bweight=(300, 6000), mage=(12, 50), medu=(0, 20))


def clinics(table=None, n=5, **channel):
    return hr.simulate(births() if table is None else table, iid(n), seed=0).protect(**channel)


def hidden(table=None):
    return clinics(table, aggregation=hr.SecAgg(records=2000))


# ---- golden ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("federation", [clinics, hidden])
def test_births_weighted_and_augmented_are_those_of_statsmodels(federation):
    found, frame = ipw(federation(), "bweight", SCORE, trim=0.0 if federation is clinics else 0.01), births().to_pandas()
    assert found.effect == pytest.approx(-231.720264, abs=1e-6)
    assert found.se == pytest.approx(25.179745, abs=1e-6)  # statsmodels' derivative is numerical: 25.179685
    robust = aipw(federation(), MODEL, SCORE)
    Z = np.column_stack(
        [np.ones(len(frame)), frame["married"], frame["mage"], frame["mage"] ** 2, frame["first"], frame["medu"]]
    )
    y, t = frame["bweight"].to_numpy(float), frame["smokes"].to_numpy(float)
    theirs = TreatmentEffect(sm.OLS(y, Z), t, results_select=sm.Logit(t, Z).fit(disp=0, tol=1e-13)).aipw()
    assert robust.effect == pytest.approx(float(np.ravel(theirs.effect)[0]), abs=2e-6)
    assert robust.se == pytest.approx(float(np.ravel(theirs.results_gmm.bse)[0]), rel=1e-4)  # 26.01; the plain one is 24.59
    assert robust.se == pytest.approx(26.0055990, abs=1e-6)


def stacked(table, weighting, trim, *, model=None, binary=False):
    """The sandwich of all equations stacked, with a derivative by differences: an oracle of another making."""
    frame = table.to_pandas().astype(float)
    Z = np.column_stack([np.ones(len(frame)), frame["x"], frame["z"]])
    R = np.column_stack([np.ones(len(frame)), frame["x"]])
    t, y = frame["t"].to_numpy(), frame["y"].to_numpy()
    link = expit if binary else (lambda eta: eta)

    def parts(theta):
        a, b0, b1, m = theta[:3], theta[3:5], theta[5:7], theta[7:]
        e = np.clip(expit(Z @ a), trim, 1 - trim)
        w1, w0 = {
            "inverse": (t / e, (1 - t) / (1 - e)),
            "treated": (t, (1 - t) * e / (1 - e)),
            "overlap": (t * (1 - e), (1 - t) * e),
        }[weighting]
        f0, f1 = link(R @ b0), link(R @ b1)
        first = [Z * (t - expit(Z @ a))[:, None], R * ((1 - t) * (y - f0))[:, None], R * (t * (y - f1))[:, None]]
        if model:
            last = np.column_stack([f0 + w0 * (y - f0) - m[0], f1 + w1 * (y - f1) - m[1]])
        else:
            last = np.column_stack([w0 * (y - m[0]), w1 * (y - m[1])])
        return np.column_stack([*first, last])

    theta = np.zeros(9)
    for _ in range(60):
        A = derivative(lambda at: parts(at).sum(0), theta)
        theta = theta - np.linalg.solve(A, parts(theta).sum(0))
    A, psi = derivative(lambda at: parts(at).sum(0), theta), parts(theta)
    V = np.linalg.solve(A, np.linalg.solve(A, psi.T @ psi).T)
    return theta[7:], V[7:, 7:]


def derivative(function, at, h=1e-5):
    steps = np.eye(len(at)) * h
    return np.column_stack([(function(at + one) - function(at - one)) / (2 * h) for one in steps])


def made_up(n=600, seed=0, binary=False, strength=1.0):
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-1, 1, n), rng.integers(0, 2, n).astype(float)
    t = (rng.random(n) < expit(strength * (x + 0.7 * z - 0.3))).astype(float)
    mean = 1 + x + 0.5 * t + 0.4 * z
    y = (rng.random(n) < expit(mean - 1)).astype(float) if binary else np.clip(mean + rng.normal(size=n), -6, 8)
    target = Column("y", "binary") if binary else Column("y", "number", low=-6, high=8)
    schema = Schema((Column("x", "number", low=-1, high=1), Column("z", "binary"), Column("t", "binary"), target))
    return Table(schema.admit({"x": x, "z": z, "t": t, "y": y}), schema)


@pytest.mark.parametrize("protected", [clinics, hidden])
@pytest.mark.parametrize(
    ("weighting", "trim", "model", "binary"),
    [
        ("inverse", 0.0, False, False),
        ("inverse", 0.3, False, False),  # scores beyond are held, and do not change
        ("treated", 0.01, False, True),
        ("overlap", 0.0, False, False),
        ("inverse", 0.01, True, False),
        ("inverse", 0.3, True, True),
    ],
)
def test_means_and_covariance_are_those_of_the_stacked_equations(protected, weighting, trim, model, binary):
    table = made_up(binary=binary)
    settings = {"outcome_formula": "y ~ x"} if model else {"outcome": "y"}
    if protected is hidden and weighting != "overlap" and not trim:
        trim = 0.001  # inverse weights have no range without one; no score is as small
    *_, state = weighting_rounds(protected(table), propensity="t ~ x + z", weighting=weighting, trim=trim, **settings)
    mean, covariance = stacked(table, weighting, trim, model=model, binary=binary)
    np.testing.assert_allclose(state.mean, mean, rtol=1e-7)
    np.testing.assert_allclose(state.covariance, covariance, rtol=2e-4, atol=1e-8)
    assert (state.beyond > 0) == (trim == 0.3)


def test_treated_and_overlap_by_hand():
    """One binary column: within its levels groups are comparable, so effects are averages over levels."""
    table = made_up()
    frame = table.to_pandas()
    by = frame.groupby("z")
    gap = by.apply(lambda one: one.y[one.t == 1].mean() - one.y[one.t == 0].mean())
    treated, n = by.t.sum(), by.size()
    share = treated / n
    for found, weight in (
        (ipw(clinics(table), "y", "t ~ z"), n),
        (ipw(clinics(table), "y", "t ~ z", estimand="treated"), treated),
        (overlap_weights(clinics(table), "y", "t ~ z"), n * share * (1 - share)),
        (aipw(clinics(table), "y ~ z", "t ~ z"), n),
    ):
        assert found.effect == pytest.approx((gap * weight).sum() / weight.sum(), rel=1e-9)


# ---- balance --------------------------------------------------------------------------------------------------------
def test_differences_before_are_austins_and_overlap_weights_leave_none():
    found = overlap_weights(clinics(), "bweight", SCORE).balance
    assert np.abs(found.after).max() < 1e-8  # Li et al. 2018, Theorem 3: exact balance of the columns of the score
    frame = births().to_pandas()
    by = frame.groupby("smokes")["medu"]
    expected = (by.mean()[1] - by.mean()[0]) / np.sqrt(by.var().mean())
    assert found.before[found.names.index("medu")] == pytest.approx(expected, rel=1e-10)
    assert "Intercept" not in found.names
    assert found.dots().line == 0.1
    assert "<svg" in found.plot()._repr_svg_()
    weighed = ipw(clinics(), "bweight", SCORE).balance
    assert weighed.largest < np.abs(weighed.before).max()


# ---- what leaves ----------------------------------------------------------------------------------------------------
def test_what_leaves_a_party_is_counted():
    federation = clinics()
    found = ipw(federation, "bweight", SCORE)
    p = 6
    left = [entry.exact_numbers for entry in federation.ledger.since(0)][-4:]
    assert left == [2 + 2 + 2 + 1, 2 + 2 + 3 * 2 * p, 2 * p, 3]
    assert "score (2, 6), once" in found.left
    assert "se 25.18" in found.summary()
    assert found.to_frame().loc["effect", "estimate"] == found.effect
    low, high = found.conf_int()
    assert low < found.effect < high < 0
    assert found.p_value < 1e-10


# ---- bounds ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("weighting", ["inverse", "treated", "overlap"])
@pytest.mark.parametrize("model", [False, True])
def test_no_record_is_beyond_the_bounds(weighting, model):
    table, trim = made_up(binary=model), 0.0 if weighting == "overlap" else 0.05
    settings = {"outcome": None, "outcome_formula": "y ~ x"} if model else {"outcome": "y", "outcome_formula": None}
    one = problem_of(
        table.schema,
        settings["outcome"],
        "t ~ x + z",
        None,
        weighting=weighting,
        trim=trim,
        outcome_formula=settings["outcome_formula"],
    )
    asked, rng, p, q = one.asked(hidden(table)), np.random.default_rng(0), 3, 2 if model else 1
    for _ in range(40):
        state = CausalState(
            1, 4, rng.normal(0, 3, p), np.diag(rng.uniform(0, 1, p)), rng.normal(0, 2, (2, q)), np.array([np.eye(q)] * 2),
            mean=rng.uniform(0, 1, 2) if model else rng.uniform(-6, 8, 2),
            slopes={"score": rng.normal(size=(2, p)), "models": rng.normal(size=(2, q))},
        )  # fmt: skip
        x, z, t = rng.choice([-1.0, 0, 1], 1), rng.integers(0, 2, 1), rng.integers(0, 2, 1)
        y = rng.integers(0, 2, 1) if model else rng.choice([-6.0, 8, 1], 1)
        columns = {"X": np.array([[1.0, x[0], z[0]]]), "y": t * 1.0, "offset": np.zeros(1), OUTCOME: y * 1.0}
        columns[ROWS] = np.array([[1.0, x[0]]])[:, :q]
        party, law = hr.Party("p", columns, np.ones(1)), {"weighting": weighting, "trim": trim}
        pulls = asked.broadcast_pulls(state)
        more = law | {"binary": one.family == "binomial"}
        for found, bounds in (
            (arm_totals(asked.broadcast(state), party, None, **more), asked.total_bounds(state)),
            (arm_balance({"score": asked.broadcast(state)["score"]}, party, None, **law), asked.balance_bounds()),
            (arm_slopes(asked.broadcast(state), party, None, **more), asked.slope_bounds(state)),
            ({"": arm_squares(pulls, party, None, **more)}, {"": asked.square_bound()}),
        ):
            for key, value in found.items():
                assert np.abs(value).max() <= bounds[key].radius, key


def test_noise_takes_overlap_weights_alone_and_gives_no_error():
    federation = clinics(mechanism=hr.Gaussian(0.3))
    found = overlap_weights(federation, "bweight", SCORE)
    assert abs(found.effect + 225.3) < 60
    assert np.isnan(found.se)
    assert found.balance is None
    assert "no standard error" in found.summary()
    for ask in (lambda: ipw(federation, "bweight", SCORE), lambda: aipw(federation, MODEL, SCORE)):
        with pytest.raises(UnboundedSum, match="overlap"):
            ask()


def test_hidden_rows_without_a_trim_have_no_range():
    with pytest.raises(UnboundedSum, match="trim"):
        ipw(hidden(), "bweight", SCORE, trim=0.0)


# ---- missing values, weights, edges ---------------------------------------------------------------------------------
def test_all_stages_read_the_same_complete_records():
    table = births()
    columns = {name: values.copy() for name, values in table.columns.items()}
    lost = np.random.default_rng(0).random((2, len(table))) < 0.1
    columns["medu"][lost[0]] = np.nan
    columns["bweight"][lost[1]] = np.nan
    gaps = Table(columns, table.schema.allowing(missing=True))
    whole = table.take(~lost.any(0))
    for ask in (lambda f: ipw(f, "bweight", SCORE), lambda f: aipw(f, MODEL, SCORE)):
        found, expected = ask(clinics(gaps)), ask(clinics(whole))
        assert found.effect == pytest.approx(expected.effect, rel=1e-9)
        assert found.se == pytest.approx(expected.se, rel=1e-9)
        assert found.n.sum() == len(whole)
        assert found.cases.complete == len(whole)


def test_one_party_and_an_empty_arm_at_a_party():
    table = births()
    order = np.argsort(table["smokes"], kind="stable")
    found = ipw(hr.simulate(table.take(order), hr.data.in_order(5), seed=0), "bweight", SCORE)  # four parties have one arm
    alone = ipw(clinics(n=1), "bweight", SCORE)
    assert found.effect == pytest.approx(alone.effect, rel=1e-9)
    assert found.se == pytest.approx(alone.se, rel=1e-9)


def test_groups_that_do_not_overlap_are_refused():
    table = made_up()
    columns = dict(table.columns) | {"t": (table["x"] > 0).astype(float)}
    with pytest.raises(Separated):
        ipw(clinics(Table(columns, table.schema)), "y", "t ~ x + z")


def test_refusals_come_before_any_party_is_asked():
    federation = clinics()
    for error, ask in (
        (SettingsInvalid, lambda: ipw(federation, "bweight", SCORE, trim=0.5)),
        (NotBinary, lambda: ipw(federation, "bweight", "medu ~ mage")),
        (FormulaInvalid, lambda: ipw(federation, "bweight", "mage + medu")),
        (FormulaInvalid, lambda: ipw(federation, "bweight", "smokes ~ mage", treatment="married")),
        (FormulaInvalid, lambda: aipw(federation, "bweight ~ smokes + mage", SCORE)),
        (FormulaInvalid, lambda: ipw(federation, "smokes", SCORE)),
    ):
        with pytest.raises(error):
            ask()
    assert len(federation.ledger) == 0
    named = ipw(federation, "bweight", "married + mage", treatment="smokes")
    assert named.formula.startswith("smokes ~")


@pytest.mark.slow
def test_intervals_cover_the_effect():
    """95 % intervals of 200 tables of 300 records: fewer than 182 hits have a chance below 0.2 %."""
    hits = np.zeros(3)
    for seed in range(200):
        federation = clinics(made_up(300, seed))
        for i, found in enumerate(
            (
                ipw(federation, "y", "t ~ x + z"),
                overlap_weights(federation, "y", "t ~ x + z"),
                aipw(federation, "y ~ x + z", "t ~ x + z"),
            )
        ):
            low, high = found.conf_int()
            hits[i] += low < 0.5 < high
    assert (hits >= 182).all(), hits
