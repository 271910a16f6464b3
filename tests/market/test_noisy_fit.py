"""Errors of regressions from noise on their sums: the delta method against repeated noise, and repeated fits."""

import tomllib

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.engines import simulate
from hedgerow.market.forecasts.noisy_fit import NoisyFit
from hedgerow.stats.design import design_of
from hedgerow.stats.linear.asking import ask_for
from hedgerow.stats.regression import regression
from hedgerow.study import parse
from hedgerow.study.accuracy_of_fits import errors_of
from hedgerow.study.build import build
from hedgerow.study.quiet import quiet

STUDY = """
name = "visits"
seed = 0
[data]
name = "hie"
features = ["lncoins", "disea"]
[partition]
by = "iid"
parties = 3
[program]
name = "{program}"
formula = "{formula}"
[protection]
mechanism = {{ law = "gaussian", noise_multiplier = {z} }}
[evaluation]
on = "none"
holdout = {holdout}
"""
KINDS = {
    "logistic_regression": ("binomial", "I(mdvis > 0) ~ lncoins + disea", 5),
    "linear_regression": ("gaussian", "disea ~ lncoins", 1),
}


def study(program, z=2.0, holdout=0.3):
    return parse(tomllib.loads(STUDY.format(program=program, formula=KINDS[program][1], z=z, holdout=holdout)))


@pytest.mark.parametrize("left", [None, np.array([0.7, -1.5, 0.3])])
def test_errors_of_one_step_are_those_of_repeated_noise(left):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3)) * [1.0, 0.5, 2.0]
    information, step = x.T @ x, np.zeros(3) if left is None else left
    errors = []
    for _ in range(6000):
        raw = rng.normal(0, 2.0, (3, 3))
        errors.append(np.linalg.solve(information, rng.normal(0, 3.0, 3) - (raw + raw.T) / 2 @ step))
    found = NoisyFit.of(information, 3.0, 2.0, left, dispersion=4.0)
    assert found.noise == pytest.approx(np.std(errors, axis=0), rel=0.04)
    assert found.sampling == pytest.approx(2 * np.sqrt(np.diag(np.linalg.inv(information))))
    assert found.growth == pytest.approx(np.hypot(found.sampling, found.noise) / found.sampling)


def test_noise_as_large_as_the_information_saturates():
    information = np.diag([100.0, 5.0])
    assert not NoisyFit.of(information, 1.0, 2.4).saturated
    assert NoisyFit.of(information, 1.0, 2.6).saturated  # the floor is the deviation times the root of twice two


@pytest.mark.slow
@pytest.mark.parametrize("program", sorted(KINDS))
def test_the_forecast_is_what_repeated_fits_scatter(program):
    family, formula, rounds = KINDS[program]
    given = study(program)
    found, n_known = errors_of(given, None)
    assert n_known == 6057
    assert not found.saturated
    with quiet():
        built = build(given)
        asked = ask_for(built.federation, design_of(built.schema, formula, family), scaled=True)
        betas = []
        for seed in range(25):
            federation = simulate(built.table, built.partition, seed=seed).protect(**given.protection.slots())
            *_, last = regression(federation, formula=formula, family=family, rounds=rounds)
            betas.append(last.beta * asked.factors)
    ratios = found.noise / np.std(betas, axis=0, ddof=1)
    assert 0.6 < ratios.min() < ratios.max() < 1.6  # a deviation of 25 fits is known to 14 %: three of these, and the floor


def test_the_forecast_of_means_is_what_repeated_sums_scatter():
    text = STUDY.format(program="means", formula="", z=40.0, holdout=0.3).replace(
        'formula = ""', 'columns = ["lncoins", "disea"]'
    )
    given = parse(tomllib.loads(text))
    found, n_known = errors_of(given, None)
    with quiet():
        built = build(given)
        half = np.array([(built.schema[name].high - built.schema[name].low) / 2 for name in ("lncoins", "disea")])
        means = []
        for seed in range(60):
            federation = simulate(built.table, built.partition, seed=seed).protect(**given.protection.slots())
            means.append(hr.stats.means(federation, ["lncoins", "disea"]).to_numpy() / half)
    assert n_known == 6057
    assert found.noise == pytest.approx(np.std(means, axis=0, ddof=1), rel=0.3)  # known to 9 %
    assert not found.saturated


def test_nothing_is_said_of_other_programs_or_without_records_of_the_server():
    assert errors_of(study("linear_regression", holdout=0.0), None) is None
    assert errors_of(hr.study.load("digits-fedavg"), None) is None


def test_more_noise_and_fewer_records_make_larger_errors():
    little, more = (errors_of(study("linear_regression", z), None)[0] for z in (1.0, 2.0))
    assert more.noise == pytest.approx(2 * little.noise, rel=0.02)
    assert more.sampling == pytest.approx(little.sampling)
    fewer = errors_of(study("linear_regression", holdout=0.6), None)[0]
    assert (fewer.noise > 1.5 * more.noise).all()
