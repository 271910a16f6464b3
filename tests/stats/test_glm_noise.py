"""Regressions through channels that clip or add noise: bounded sums only, the same numbers on every engine."""

from functools import partial

import numpy as np
import pytest
from clinic import ENGINE_NAMES, ENGINES, clinic, federation
from scipy.stats import chi2

import hedgerow as hr
from hedgerow import Budget, Gaussian, Laplace, l2
from hedgerow.core.question import MAIN
from hedgerow.errors import BudgetExhausted, UnboundedSum
from hedgerow.stats import Design, design, linear_regression, logistic_regression, newton
from hedgerow.stats.linear.losses import LOSSES
from hedgerow.stats.linear.reach import Reach
from hedgerow.stats.linear.sums import linear_sums
from hedgerow.stats.noisy import BOUNDED, noise_level, raised
from helpers import run_of

CHANNELS = {
    "central": {"mechanism": Gaussian(1.0)},
    "laplace": {"mechanism": Laplace(0.5)},
    "local": {"mechanism": Gaussian(0.5, at="party")},
    "clip": {"clip": l2(20.0)},
    "clip and noise": {"clip": l2(20.0), "mechanism": Gaussian(0.5)},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:a clip of")
@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
@pytest.mark.parametrize(("regression", "target"), [(logistic_regression, "ill"), (linear_regression, "pain")])
def test_every_engine_gives_the_same_protected_fit(regression, target, channel):
    expected, *others = (
        regression(federation(engine=engine).protect(**channel), f"{target} ~ age + stage") for engine in ENGINES
    )
    for found, name in zip(others, ENGINE_NAMES[1:], strict=True):
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-8, err_msg=name)


@pytest.mark.parametrize(("regression", "target"), [(logistic_regression, "ill"), (linear_regression, "pain")])
def test_little_noise_changes_little(regression, target):
    plain = regression(federation(clinic(4000)), f"{target} ~ age + dose + stage")
    noisy = regression(federation(clinic(4000)).protect(mechanism=Gaussian(0.01)), f"{target} ~ age + dose + stage")
    np.testing.assert_allclose(noisy.coef_, plain.coef_, atol=0.2 * plain.se_.max())
    assert np.isnan(noisy.se_).all()  # noise in the information would pass for certainty


@pytest.mark.slow
@pytest.mark.parametrize(
    ("regression", "target", "noise"), [(logistic_regression, "ill", 1000.0), (linear_regression, "pain", 100.0)]
)
def test_overwhelming_noise_still_ends(regression, target, noise):
    fit = regression(federation().protect(mechanism=Gaussian(noise)), f"{target} ~ age + dose + stage")
    assert np.isfinite(fit.coef_).all()
    assert "stage[T.III]" in fit.summary()


@pytest.mark.parametrize("name", ["central", "laplace", "local", "clip and noise"])
def test_the_noise_is_as_large_as_the_floor_assumes(name):
    """About 400 numbers: a variance outside this interval is a false alarm once in a million runs of Gaussian noise."""
    plain = federation()
    spec = Design.of("ill ~ (age + dose + visits + smoker + stage) ** 2", plain.schema).to_unit()
    ask = partial(linear_sums, loss="binomial", keys=BOUNDED["binomial"])
    broadcast = {"beta": np.zeros(spec.size)}
    clip = {"clip": l2(1e6)} if "clip" in CHANNELS[name] else {}
    protected = plain.protect(**CHANNELS[name] | clip).prepare(design, spec=spec)
    bounds = Reach.by_length(spec, np.zeros(spec.size)).bounds(LOSSES["binomial"], BOUNDED["binomial"], lengths=True)
    released, exact = (fed.sum(ask, broadcast, bound=bounds) for fed in (protected, plain.prepare(design, spec=spec)))
    level, size = noise_level(protected, bounds, "information", spec.size**2), spec.size**2
    low, high = chi2.interval(1 - 1e-6, size)
    assert low < (((released["information"] - exact["information"]) / level) ** 2).sum() < high


def test_only_bounded_sums_are_asked_for():
    fed = hr.engines.watch(federation().protect(mechanism=Gaussian(1.0)))
    fit = logistic_regression(fed, "ill ~ age + dose", rounds=3)
    assert [seen.kind for seen in hr.engines.view(fed, "world")] == ["release"] * 3
    assert {tuple(key for key, _ in seen.layout.shapes) for seen in hr.engines.view(fed, "world")} == {
        ("score", "information", "n")
    }
    assert fit.log_likelihood is None
    assert fit.r_squared is None
    text = " ".join(fit.summary().split())
    for words in [
        "3 rounds through a protected channel",
        "no standard errors",
        "score (3,), information (3, 3), n, 3 times",
    ]:
        assert words in text


def test_a_linear_regression_asks_once():
    fed = federation().protect(mechanism=Gaussian(1.0))
    assert linear_regression(fed, "pain ~ age").rounds == 1
    assert len(fed.ledger) == 1


def test_columns_without_ranges_are_refused_before_any_party_is_asked():
    fed = federation().protect(mechanism=Gaussian(1.0))
    with pytest.raises(UnboundedSum):
        logistic_regression(fed, "ill ~ age + open")
    assert len(fed.ledger) == 0


@pytest.mark.slow
def test_a_budget_stops_the_next_round():
    fed = federation().within(Budget(1.0, 1e-5, unit="record")).protect(mechanism=Gaussian(10.0))
    with pytest.raises(BudgetExhausted):
        logistic_regression(fed, "ill ~ age", rounds=100)
    assert 0 < len(fed.ledger) < 100


def test_a_protected_fit_resumes_from_every_state():
    spec = Design.of("ill ~ age", federation().schema).to_unit()
    states = list(newton(federation().protect(mechanism=Gaussian(1.0)), spec, rounds=3))
    for i, state in enumerate(states[:-1]):
        fed = federation().protect(mechanism=Gaussian(1.0))
        run_of(fed).counts[MAIN].questions = i + 1
        *_, found = newton(fed, spec, rounds=3, start=state)
        np.testing.assert_array_equal(found.beta, states[-1].beta)
    assert states[-1].converged


def test_raised_leaves_what_is_above_the_floor():
    matrix = np.array([[2.0, 1.0], [0.0, -3.0]])
    values = np.linalg.eigvalsh(raised(matrix, 0.5))
    np.testing.assert_allclose(values, [0.5, np.linalg.eigvalsh((matrix + matrix.T) / 2)[1]])
