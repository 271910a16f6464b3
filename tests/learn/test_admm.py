"""Consensus ADMM against a numpy loop, the pooled optimum, FedProx, every engine, protected, resumed."""

from functools import partial

import numpy as np
import pytest
from clinics import clinics, descent, flat, gradient

import hedgerow as hr
from hedgerow.errors import SettingsInvalid
from hedgerow.learn import admm, fedprox, linear, mlp
from hedgerow.store import drive, load_checkpoint
from helpers import ENGINE_NAMES, ENGINES

LOCAL = {"learning_rate": 0.3, "epochs": 2, "batch_size": 5}
SOLVED = {"learning_rate": 1.0, "steps": 20, "batch_size": 0}
BIAS = np.array([0, 0, 0, 0, 1.0])
FLOAT32 = 5e-5


@pytest.fixture(scope="module")
def parties():
    return clinics()


def run(parties, rounds=4, engine=None, module=None, **settings):
    return hr.last(admm(parties.on(engine or hr.InProcess()), module or linear(4, 1), rounds=rounds, **settings))


def by_hand(fed, rounds, rho, l1=0.0, l2=0.0):
    """The box of the module, with everybody in every round; also its residuals."""
    z, u, y, sizes = np.zeros(5), {name: np.zeros(5) for name in fed.members}, {}, {}
    for t in range(rounds):
        for name in fed.members:
            u[name] = u[name] + (y[name] - z if name in y else 0)
        apart = sum(sizes[name] * ((y[name] - z) ** 2).sum() for name in y)
        for name in fed.members:
            added = lambda v, name=name, z=z: rho * (v - z + u[name])  # noqa: E731
            y[name], _, sizes[name], _ = descent(fed, name, t + 1, y.get(name, z), **LOCAL, added=added)
        mean = sum(sizes[name] * (y[name] + u[name]) for name in y) / sum(sizes.values())
        before, shrunk = z, np.sign(mean) * np.maximum(np.abs(mean) - l1 / rho, 0) * rho / (rho + l2)
        z = np.where(BIAS, mean, shrunk)
    return z, np.sqrt(apart / sum(sizes.values())), rho * np.linalg.norm(z - before)


def test_the_algorithm_is_its_box_with_its_residuals(parties):
    found = run(parties, rho=0.5, l1=0.01, l2=0.1, **LOCAL)
    z, primal, dual = by_hand(parties.on(hr.Loop()), 4, 0.5, l1=0.01, l2=0.1)
    np.testing.assert_allclose(flat(found), z, atol=FLOAT32)
    np.testing.assert_allclose([found.primal, found.dual], [primal, dual], atol=FLOAT32)


def pooled(parties):
    held = parties.engine.held
    return held.columns["x"], held.columns["label"]


def newton(x, y, l2):
    """The pooled optimum of mean log-loss plus l2/2 |slopes|^2."""
    w, design = np.zeros(5), np.c_[x, np.ones(len(x))]
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ w))
        hessian = (design * (p * (1 - p))[:, None]).T @ design / len(x) + np.diag(l2 * (1 - BIAS))
        w = w - np.linalg.solve(hessian, gradient(w, x, y) + l2 * (1 - BIAS) * w)
    return w


@pytest.mark.slow
@pytest.mark.parametrize("who", [{}, {"size": 4}, {"rate": 0.7}], ids=["everybody", "four", "a sample"])
def test_it_ends_at_the_pooled_optimum(parties, who):
    """Parties of different sizes and means; also where only some of them take part in a round."""
    found = run(parties, rounds=150, rho=0.1, l2=0.02, **SOLVED, **who)
    optimum = newton(*pooled(parties), 0.02)
    assert np.abs(optimum).max() > 1.5
    np.testing.assert_allclose(flat(found), optimum, atol=1e-4)
    assert found.primal < 1e-4
    assert found.dual < 1e-5


@pytest.mark.slow
def test_it_ends_where_scikit_learn_does(parties):
    linear_model = pytest.importorskip("sklearn.linear_model")
    x, y = pooled(parties)
    fit = linear_model.LogisticRegression(C=1 / (0.05 * len(x)), tol=1e-10, max_iter=1000).fit(x, y)
    found = run(parties, rounds=150, rho=0.1, l2=0.05, **SOLVED)
    np.testing.assert_allclose(flat(found), np.append(fit.coef_, fit.intercept_), atol=1e-4)


@pytest.mark.slow
def test_the_l1_penalty_leaves_exact_zeros_and_holds_the_optimality_conditions(parties):
    found = flat(run(parties, rounds=200, rho=0.1, l1=0.06, **SOLVED))
    slope = gradient(found, *pooled(parties))
    assert found[3] == 0
    assert np.count_nonzero(found) >= 3
    np.testing.assert_allclose(slope[found != 0], (-0.06 * np.sign(found) * (1 - BIAS))[found != 0], atol=1e-4)
    assert (np.abs(slope[found == 0]) <= 0.06).all()


def test_the_first_round_is_fedprox(parties):
    """There are no prices yet, and the pull is rho."""
    first = hr.last(fedprox(parties.on(hr.InProcess()), linear(4, 1), rounds=1, mu=0.4, **LOCAL))
    np.testing.assert_allclose(flat(run(parties, rounds=1, rho=0.4, **LOCAL)), flat(first), atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
@pytest.mark.slow
def test_every_engine_trains_the_same(parties, engine):
    one, other = (run(parties, engine=on, module=mlp(4, [3], 1), rate=0.7, **LOCAL) for on in (hr.Loop(), engine))
    for key, value in one.weights.items():
        np.testing.assert_allclose(other.weights[key], value, atol=FLOAT32)


def test_what_a_party_sent_before_it_dropped_out_still_counts(parties):
    """The server's mean is over everybody heard of, whoever answers in a round."""
    fed = parties.on(hr.InProcess(dropout_rate=0.3))
    found = hr.last(admm(fed, linear(4, 1), rounds=8, **LOCAL))
    kept = fed.engine.held.states.committed(fed.clock.counted)
    sizes = dict(zip(fed.engine.held.ids, fed.engine.held.sizes, strict=True))
    assert fed.clock.missing > 0
    mean = sum(sizes[name] * (state["y"] + state["u"]) for name, state in kept.items()) / sum(sizes[name] for name in kept)
    np.testing.assert_allclose(found.mean, mean, atol=1e-6)


def test_a_run_resumes_bit_identically(parties, tmp_path):
    program = partial(admm, module=linear(4, 1), rate=0.6, **LOCAL)
    expected = drive(partial(program, rounds=5), parties.on(hr.InProcess())).state
    half = parties.on(hr.InProcess())
    drive(partial(program, rounds=2), half, checkpoint=tmp_path / "c")
    again = parties.on(hr.InProcess())
    again.ledger.entries.extend(half.ledger.entries)
    found = drive(partial(program, rounds=5), again, start=load_checkpoint(tmp_path / "c", type(expected), "")).state
    np.testing.assert_array_equal(flat(found), flat(expected))
    assert (found.primal, found.dual, found.weight) == (expected.primal, expected.dual, expected.weight)


def test_the_program_runs_protected_and_untouched(parties):
    def protected(on):
        return parties.on(on).protect(clip=hr.l2(0.5), mechanism=hr.Gaussian(0.5))

    feds = protected(hr.Loop()), protected(hr.InProcess())
    one, other = (hr.last(admm(fed, linear(4, 1), rounds=2, rate=0.7)) for fed in feds)
    np.testing.assert_allclose(flat(other), flat(one), atol=3e-4)
    assert [entry.event.kind for entry in feds[1].ledger.entries] == ["gaussian"] * 2
    assert [entry.contribution for entry in feds[1].ledger.entries] == ["update (5,)"] * 2


def test_without_noise_the_protected_form_is_the_same_for_everybody(parties):
    wide = parties.on(hr.InProcess()).protect(clip=hr.l2(1e6))
    found = hr.last(admm(wide, linear(4, 1), rounds=4, **LOCAL))
    np.testing.assert_allclose(flat(found), flat(run(parties, weighting="uniform", **LOCAL)), atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "protection"),
    [
        ({"rho": 0.0}, {}),
        ({"l1": -1.0}, {}),
        ({"l2": float("nan")}, {}),
        ({"weighting": "records"}, {"clip": {"n": hr.linf(9)}}),
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused_before_anybody_is_asked(parties, wrong, protection):
    fed = parties.on(hr.InProcess()).protect(**protection)
    with pytest.raises(SettingsInvalid, match=next(iter(wrong))):
        hr.last(admm(fed, linear(4, 1), rounds=1, **wrong))
    assert len(fed.ledger) == 0
