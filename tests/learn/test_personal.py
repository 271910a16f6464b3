"""Ditto, fine-tuning and the evaluation of personal models: by hand, in limits, on every engine, resumed, protected."""

from functools import partial

import numpy as np
import pytest
from clinics import clinics, flat, gradient
from proofs import FLOAT32, assert_same_weights, batches, kept, records, whole_and_resumed

import hedgerow as hr
from hedgerow.errors import SettingsInvalid, UnboundedSum
from hedgerow.learn import ModelState, ditto, evaluate, evaluate_personal, fedavg, fine_tune, linear, local_only, mlp
from helpers import ENGINE_NAMES, ENGINES, run_of

LOCAL = {"learning_rate": 0.3, "epochs": 2, "batch_size": 5, "path": "eager"}


@pytest.fixture(scope="module")
def parties():
    return clinics()


def trained(fed, program, **settings):
    """The last state, and each party's own model."""
    return hr.last(program(fed, linear(4, 1), **{**LOCAL, **settings})), {name: state["v"] for name, state in kept(fed).items()}


def by_ditto(fed, rounds, pull, personal):
    """Algorithm 1: for each party first the global model's steps, then those of its own, on one stream of shuffles."""
    w, own = np.zeros(5), {name: np.zeros(5) for name in fed.members}
    for t in range(rounds):
        ends = []
        for name in fed.members:
            y, rng = w, run_of(fed).streams.stream(t + 1, name, "local")
            for batch in batches(fed, name, rng, epochs=2, batch_size=5):
                y = y - 0.3 * gradient(y, *batch)
            ends.append((len(records(fed, name)[0]), y))
            for batch in batches(fed, name, rng, epochs=personal["epochs"], batch_size=5):
                own[name] = own[name] - personal["rate"] * (gradient(own[name], *batch) + pull * (own[name] - w))
        w = sum(n * y for n, y in ends) / sum(n for n, _ in ends)
    return w, own


@pytest.mark.parametrize(
    "personal", [{"epochs": 2, "rate": 0.3}, {"epochs": 3, "rate": 0.1}], ids=["same solver", "own solver"]
)
def test_ditto_is_its_papers_box(parties, personal):
    fed = hr.engines.on(parties, hr.InProcess())
    given = {f"personal_{key}": value for key, value in personal.items()}
    found, own = trained(fed, ditto, rounds=3, pull=0.4, **given)
    w, expected = by_ditto(hr.engines.on(parties, hr.Loop()), 3, 0.4, personal)
    np.testing.assert_allclose(flat(found), w, atol=FLOAT32)
    for name, v in own.items():
        np.testing.assert_allclose(v, expected[name], atol=FLOAT32)


def test_dittos_global_model_is_fedavgs_to_the_bit(parties):
    found, average = (trained(hr.engines.on(parties, hr.InProcess()), a, rounds=3, rate=0.7)[0] for a in (ditto, fedavg))
    np.testing.assert_array_equal(flat(found), flat(average))


def test_without_pull_the_personal_models_are_those_of_parties_alone(parties):
    one, other = (
        trained(hr.engines.on(parties, hr.InProcess()), a, rounds=3, batch_size=None, **more)[1]
        for a, more in ((ditto, {"pull": 0.0}), (local_only, {}))
    )
    for name, v in one.items():
        np.testing.assert_allclose(v, other[name], atol=1e-6)


def test_a_strong_pull_holds_personal_models_at_the_broadcast_one(parties):
    """With lambda far above all curvatures, the distance falls below a tenth of what it is without."""

    def distance(pull):
        own = trained(
            hr.engines.on(parties, hr.InProcess()), ditto, rounds=1, pull=pull, personal_rate=0.02, personal_steps=50
        )[1]
        return max(np.linalg.norm(v) for v in own.values())

    assert distance(20.0) < 0.1 * distance(0.0)


@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
@pytest.mark.parametrize("program", [ditto, fine_tune], ids=["ditto", "fine-tune"])
def test_every_engine_trains_and_evaluates_the_same(parties, program, engine):
    net, found = mlp(4, [3], 1), []
    for on in (hr.Loop(), engine):
        fed = hr.engines.on(parties, on)
        state = hr.last(program(fed, net, rounds=3, rate=0.7, **LOCAL))
        found.append((state, evaluate_personal(fed, net, state.weights)))
    assert_same_weights(found[0][0], found[1][0])
    assert found[0][1] == pytest.approx(found[1][1], abs=FLOAT32)


@pytest.mark.slow
def test_the_fast_paths_take_the_same_steps(parties):
    one, other = (
        trained(hr.engines.on(parties, hr.InProcess()), ditto, rounds=3, pull=0.4, path=path) for path in ("eager", "auto")
    )
    np.testing.assert_allclose(flat(other[0]), flat(one[0]), atol=FLOAT32)
    for name, v in one[1].items():
        np.testing.assert_allclose(other[1][name], v, atol=FLOAT32)


@pytest.mark.parametrize("program", [ditto, fine_tune], ids=["ditto", "fine-tune"])
def test_a_run_resumes_bit_identically(parties, program, tmp_path):
    (fed, whole), (again, resumed) = whole_and_resumed(parties, partial(program, rate=0.6), tmp_path / "c")
    np.testing.assert_array_equal(flat(resumed), flat(whole))
    assert kept(again).keys() == kept(fed).keys() != {}
    for name, state in kept(fed).items():
        np.testing.assert_array_equal(kept(again)[name]["v"], state["v"])


def test_the_last_round_of_fine_tuning_leaves_the_model_and_releases_nothing(parties):
    fed = hr.engines.on(parties, hr.InProcess())
    state, own = trained(fed, fine_tune, rounds=4, tuning_epochs=3)
    average, _ = trained(hr.engines.on(parties, hr.InProcess()), fedavg, rounds=3)
    np.testing.assert_array_equal(flat(state), flat(average))
    assert [entry.event.kind for entry in fed.ledger.entries] == ["nonprivate"] * 3 + ["none"]
    for name, v in own.items():
        y = flat(average)
        for batch in batches(fed, name, run_of(fed).streams.stream(4, name, "local"), epochs=3, batch_size=5):
            y = y - 0.3 * gradient(y, *batch)
        np.testing.assert_allclose(v, y, atol=FLOAT32)


def test_any_state_can_be_fine_tuned(parties):
    fed = hr.engines.on(parties, hr.InProcess())
    state = ModelState(7, {"1.weight": np.ones((1, 4), np.float32), "1.bias": np.zeros(1, np.float32)})
    found, own = trained(fed, fine_tune, rounds=8, start=state)
    np.testing.assert_array_equal(flat(found), flat(state))
    assert found.round == 8
    assert len(own) == 6
    assert all(np.abs(v - flat(state)).max() > 0 for v in own.values())


# ---- evaluation ------------------------------------------------------------------------------------------------------
def test_personal_accuracies_are_those_of_the_parties_own_models(parties):
    fed = hr.engines.on(parties, hr.InProcess())
    state, own = trained(fed, ditto, rounds=3, size=4)
    hits, sizes = [], []
    for name in fed.names:
        (x, label), v = records(fed, name), own.get(name, flat(state))
        hits.append(((x @ v[:4] + v[4] > 0) == (label > 0.5)).sum())
        sizes.append(len(x))
    shares = np.divide(hits, sizes)
    found = evaluate_personal(fed, linear(4, 1), state.weights)
    assert found["accuracy"] == pytest.approx(sum(hits) / 90)
    assert found["party_mean"] == pytest.approx(shares.mean())
    assert found["party_deviation"] == pytest.approx(shares.std())
    assert (found["n"], found["parties"]) == (90, 6)


def test_without_personal_models_it_is_the_evaluation_of_the_global_one(parties):
    fed = hr.engines.on(parties, hr.InProcess())
    state = hr.last(fedavg(fed, linear(4, 1), rounds=3, **LOCAL))
    found, usual = (f(fed, linear(4, 1), state.weights) for f in (evaluate_personal, evaluate))
    assert {name: found[name] for name in usual} == pytest.approx(usual)


def test_an_evaluation_leaves_the_parties_as_they_were(parties):
    fed = hr.engines.on(parties, hr.InProcess())
    state, own = trained(fed, ditto, rounds=2, size=3)
    evaluate_personal(fed, linear(4, 1), state.weights)
    evaluate_personal(fed, linear(4, 1), state.weights)
    assert kept(fed).keys() == own.keys()
    assert all((kept(fed)[name]["v"] == v).all() for name, v in own.items())


def test_behind_noise_only_bounded_accuracies_leave_a_party(parties):
    fed = hr.engines.on(parties, hr.InProcess()).protect(mechanism=hr.Gaussian(0.01))
    hr.last(local_only(fed, linear(4, 1), rounds=3, **LOCAL))
    weights = ModelState(0, {"1.weight": np.zeros((1, 4), np.float32), "1.bias": np.zeros(1, np.float32)}).weights
    found = evaluate_personal(fed, linear(4, 1), weights)
    exact = hr.engines.on(parties, hr.InProcess())
    hr.last(local_only(exact, linear(4, 1), rounds=3, **LOCAL))
    assert set(found) == {"party_mean", "party_deviation"}
    assert found["party_mean"] == pytest.approx(evaluate_personal(exact, linear(4, 1), weights)["party_mean"], abs=0.02)
    entry = fed.ledger.entries[-1]
    assert (entry.event.kind, entry.unit, entry.contribution) == ("gaussian", "party", "value, square")


def test_squared_errors_have_no_bound_and_are_refused_behind_noise():
    schema = hr.data.Schema((hr.data.Column("x", "number"), hr.data.Column("y", "number", role="target")))
    table = hr.data.Table(schema.admit({"x": np.arange(6.0), "y": np.arange(6.0)}), schema)
    fed = hr.simulate(table, hr.data.iid(parties=2), seed=0).protect(mechanism=hr.Gaussian(1.0))
    with pytest.raises(UnboundedSum):
        evaluate_personal(fed, linear(1, 1), {"1.weight": np.ones((1, 1)), "1.bias": np.ones(1)}, scale="none")
    assert len(fed.ledger) == 0


def test_dittos_updates_are_clipped_and_noised(parties):
    channel = {"clip": hr.l2(0.5), "mechanism": hr.Gaussian(0.5)}
    fed, loop = (hr.engines.on(parties, on).protect(**channel) for on in (hr.InProcess(), hr.Loop()))
    one, other = (hr.last(ditto(f, linear(4, 1), rounds=2, rate=0.7, path="eager")) for f in (loop, fed))
    assert_same_weights(one, other, atol=3e-4)
    assert [(entry.event.kind, entry.contribution) for entry in fed.ledger.entries] == [("gaussian", "update (5,)")] * 2


@pytest.mark.parametrize(
    ("program", "wrong"),
    [
        (ditto, {"pull": -0.1}),
        (ditto, {"personal_epochs": 0}),
        (ditto, {"personal_rate": 0.0}),
        (ditto, {"personal_steps": -2}),
        (fine_tune, {"tuning_epochs": 0}),
        (fine_tune, {"rounds": 0}),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_settings_out_of_range_are_refused_before_anybody_is_asked(parties, program, wrong):
    fed = hr.engines.on(parties, hr.InProcess())
    with pytest.raises(SettingsInvalid, match=next(iter(wrong))):
        hr.last(program(fed, linear(4, 1), **{"rounds": 2, **wrong}))
    assert len(fed.ledger) == 0
