"""Every algorithm against a numpy loop, in its limiting case, on every engine, protected, resumed."""

from functools import partial

import numpy as np
import pytest
from clinics import clinics, descent, flat

import hedgerow as hr
from hedgerow.errors import SettingsInvalid
from hedgerow.learn import Solver, evaluate, fedavg, feddyn, fednova, fedopt, fedprox, linear, mlp, scaffold
from hedgerow.learn.fednova import gradient_weight
from hedgerow.store import drive, load_checkpoint
from helpers import ENGINE_NAMES, ENGINES

LOCAL = {"learning_rate": 0.3, "epochs": 2, "batch_size": 5}
ROUNDS = 4
FLOAT32 = 5e-5


@pytest.fixture(scope="module")
def parties():
    return clinics()


def run(parties, algorithm, module=None, engine=None, **settings):
    fed = parties.on(engine or hr.InProcess())
    return hr.last(algorithm(fed, module or linear(4, 1), **{"rounds": ROUNDS, **LOCAL, **settings}))


# ---- references, each a few lines of numpy ---------------------------------------------------------------------------
def by_fedprox(fed, mu):
    w = np.zeros(5)
    for t in range(ROUNDS):
        ends = [descent(fed, name, t + 1, w, **LOCAL, added=lambda v, w=w: mu * (v - w)) for name in fed.members]
        w = w + sum(n * (v - w) for v, _, n, _ in ends) / sum(n for _, _, n, _ in ends)
    return w


def by_scaffold(fed, option, server_rate):
    x, c, ci = np.zeros(5), np.zeros(5), {name: np.zeros(5) for name in fed.members}
    for t in range(ROUNDS):
        dy, dc = [], []
        for name in fed.members:
            v, steps, _, at_x = descent(fed, name, t + 1, x, **LOCAL, added=lambda v, name=name, c=c: c - ci[name])
            new = at_x if option == "I" else ci[name] - c + (x - v) / (steps * LOCAL["learning_rate"])
            dy.append(v - x)
            dc.append(new - ci[name])
            ci[name] = new
        x, c = x + server_rate * np.mean(dy, 0), c + np.sum(dc, 0) / len(fed.members)
    return x


def by_fednova(fed, mu):
    x, decay = np.zeros(5), mu * LOCAL["learning_rate"]
    for t in range(ROUNDS):
        ends = [descent(fed, name, t + 1, x, **LOCAL, added=lambda v, x=x: mu * (v - x)) for name in fed.members]
        total = sum(n for _, _, n, _ in ends)
        a = [steps if mu == 0 else (1 - (1 - decay) ** steps) / decay for _, steps, _, _ in ends]
        effective = sum(n / total * ai for (_, _, n, _), ai in zip(ends, a, strict=True))
        x = x + effective * sum(n / total * (v - x) / ai for (v, _, n, _), ai in zip(ends, a, strict=True))
    return x


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_weights_of_gradients_under_momentum(steps):
    """Wang et al. 2020, section 4.2: |a| = (tau - m (1 - m^tau) / (1 - m)) / (1 - m)."""
    found = gradient_weight(np.array([steps]), Solver(0.2, rule="momentum", momentum=0.9), 0.0)
    np.testing.assert_allclose(found, (steps - 0.9 * (1 - 0.9**steps) / 0.1) / 0.1)


def by_feddyn(fed, alpha):
    x, h, hi = np.zeros(5), np.zeros(5), {name: np.zeros(5) for name in fed.members}
    for t in range(ROUNDS):
        ends = {}
        for name in fed.members:
            added = lambda v, name=name, x=x: alpha * (v - x) - hi[name]  # noqa: E731
            ends[name], _, _, _ = descent(fed, name, t + 1, x, **LOCAL, added=added)
            hi[name] = hi[name] - alpha * (ends[name] - x)
        h = h - alpha * sum(v - x for v in ends.values()) / len(fed.members)
        x = np.mean(list(ends.values()), 0) - h / alpha
    return x


def by_fedopt(fed, rule, server_rate=0.05, beta1=0.8, beta2=0.9, tau=1e-2):
    w, m, v = np.zeros(5), np.zeros(5), np.full(5, tau**2)
    for t in range(ROUNDS):
        ends = [descent(fed, name, t + 1, w, **LOCAL) for name in fed.members]
        delta = sum(n * (y - w) for y, _, n, _ in ends) / sum(n for _, _, n, _ in ends)
        if rule == "momentum":
            m = beta1 * m + delta
            w = w + server_rate * m
            continue
        m, square = beta1 * m + (1 - beta1) * delta, delta**2
        if rule == "adagrad":
            v = v + square
        elif rule == "adam":
            v = beta2 * v + (1 - beta2) * square
        else:
            v = np.where(v > square, v - (1 - beta2) * square, v + (1 - beta2) * square)
        w = w + server_rate * m / (np.sqrt(v) + tau)
    return w


OPT = {"server_rate": 0.05, "beta1": 0.8, "beta2": 0.9, "tau": 1e-2}
CASES = {
    "fedprox": (partial(fedprox, mu=0.5), partial(by_fedprox, mu=0.5)),
    "scaffold I": (partial(scaffold, option="I", server_rate=0.7), partial(by_scaffold, option="I", server_rate=0.7)),
    "scaffold II": (partial(scaffold, option="II"), partial(by_scaffold, option="II", server_rate=1.0)),
    "fednova": (fednova, partial(by_fednova, mu=0.0)),
    "fednova with mu": (partial(fednova, mu=0.5), partial(by_fednova, mu=0.5)),
    "feddyn": (partial(feddyn, alpha=0.3), partial(by_feddyn, alpha=0.3)),
    **{
        rule: (partial(fedopt, rule=rule, **OPT), partial(by_fedopt, rule=rule))
        for rule in ("momentum", "adagrad", "adam", "yogi")
    },
}


@pytest.mark.parametrize("name", CASES)
def test_the_algorithm_is_its_papers_box(parties, name):
    algorithm, reference = CASES[name]
    np.testing.assert_allclose(flat(run(parties, algorithm)), reference(parties.on(hr.Loop())), atol=FLOAT32)


@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
@pytest.mark.parametrize("name", CASES)
def test_every_engine_trains_the_same(parties, name, engine):
    module, settings = mlp(4, [3], 1), {"rate": 0.7}
    one, other = (run(parties, CASES[name][0], module, on, **settings) for on in (hr.Loop(), engine))
    for key, value in one.weights.items():
        np.testing.assert_allclose(other.weights[key], value, atol=FLOAT32)


LIMITS = {
    "fedprox without pull": (partial(fedprox, mu=0.0), {}),
    "momentum without memory": (partial(fedopt, rule="momentum", beta1=0.0, server_rate=1.0), {}),
    "fednova with equal steps": (fednova, {"batch_size": None}),
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_limiting_case_is_fedavg(parties, name):
    algorithm, settings = LIMITS[name]
    np.testing.assert_allclose(flat(run(parties, algorithm, **settings)), flat(run(parties, fedavg, **settings)), atol=1e-6)


def test_the_first_round_of_scaffold_is_fedavg_of_equal_parties(parties):
    """Control variates start at zero."""
    first, average = (run(parties, a, rounds=1, **more) for a, more in ((scaffold, {}), (fedavg, {"weighting": "uniform"})))
    np.testing.assert_allclose(flat(first), flat(average), atol=1e-6)


PROTECTED = {
    "fedprox": (fedprox, hr.l2(0.5)),
    "feddyn": (feddyn, hr.l2(0.5)),
    "adam": (fedopt, hr.l2(0.5)),
    "scaffold": (scaffold, {"dy": hr.l2(0.5), "dc": hr.l2(2.0), "n": hr.linf(1.0)}),
    "fednova": (fednova, {"d": hr.l2(5.0), "a": hr.linf(200.0), "n": hr.linf(50.0)}),
}


@pytest.mark.parametrize("name", PROTECTED)
def test_the_program_runs_protected_and_untouched(parties, name):
    algorithm, clip = PROTECTED[name]
    one, other = (
        hr.last(algorithm(parties.on(on).protect(clip=clip, mechanism=hr.Gaussian(0.5)), linear(4, 1), rounds=2, rate=0.7))
        for on in (hr.Loop(), hr.InProcess())
    )
    np.testing.assert_allclose(flat(other), flat(one), atol=3e-4)
    fed = parties.on(hr.InProcess()).protect(clip=clip, mechanism=hr.Gaussian(0.5))
    hr.last(algorithm(fed, linear(4, 1), rounds=2, rate=0.7))
    assert [entry.event.kind for entry in fed.ledger.entries] == ["gaussian"] * 2


@pytest.mark.parametrize("name", CASES)
def test_a_run_resumes_bit_identically(parties, name, tmp_path):
    program = partial(CASES[name][0], module=linear(4, 1), rate=0.6, **LOCAL)
    expected = drive(partial(program, rounds=5), parties.on(hr.InProcess())).state
    half = parties.on(hr.InProcess())
    drive(partial(program, rounds=2), half, checkpoint=tmp_path / "c")
    again = parties.on(hr.InProcess())
    again.ledger.entries.extend(half.ledger.entries)
    found = drive(partial(program, rounds=5), again, start=load_checkpoint(tmp_path / "c", type(expected), "")).state
    np.testing.assert_array_equal(flat(found), flat(expected))


def test_a_party_that_dropped_keeps_its_control_variate(parties):
    """The state of a round that was not counted is not kept."""
    fed = parties.on(hr.InProcess(dropped=("party 2",)))
    hr.last(scaffold(fed, linear(4, 1), rounds=2))
    kept = fed.engine.held.states.committed(fed.clock.counted)
    assert "party 2" not in kept
    assert len(kept) == 5


@pytest.mark.parametrize("algorithm", [scaffold, fedavg], ids=["scaffold", "fedavg"])
def test_measuring_in_between_changes_nothing(parties, algorithm):
    fed, measured = parties.on(hr.InProcess()), parties.on(hr.InProcess())
    settings = {"rounds": 4, "rate": 0.6, "batch_size": None}
    for state in algorithm(measured, linear(4, 1), **settings):
        evaluate(measured, linear(4, 1), state.weights)
    np.testing.assert_array_equal(flat(state), flat(hr.last(algorithm(fed, linear(4, 1), **settings))))


@pytest.mark.parametrize(
    ("algorithm", "wrong"),
    [
        (fedprox, {"mu": -0.1}),
        (fednova, {"mu": 10.0}),
        (fednova, {"weighting": "expected"}),
        (feddyn, {"alpha": 0.0}),
        (fedopt, {"tau": -1.0}),
        (scaffold, {"server_rate": float("nan")}),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_settings_out_of_range_are_refused_before_anybody_is_asked(parties, algorithm, wrong):
    fed = parties.on(hr.InProcess())
    with pytest.raises(SettingsInvalid, match=next(iter(wrong))):
        hr.last(algorithm(fed, linear(4, 1), rounds=1, **wrong))
    assert len(fed.ledger) == 0
