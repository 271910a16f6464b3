"""FedBuff against a numpy loop with its own diary, FedAvg, every engine, dropouts, protected, resumed."""

from functools import partial

import numpy as np
import pytest
from clinics import clinics, descent, flat

import hedgerow as hr
from hedgerow.errors import SettingsInvalid
from hedgerow.learn import fedavg, fedbuff, linear, mlp
from hedgerow.privacy.statement import statement
from hedgerow.store import drive, load_checkpoint
from helpers import ENGINE_NAMES, ENGINES

LOCAL = {"learning_rate": 0.3, "epochs": 2, "batch_size": 5}
PACE = {"buffer": 2, "concurrency": 4, "spread": 0.5, "unequal": 0.3}
FLOAT32 = 5e-5


@pytest.fixture(scope="module")
def parties():
    return clinics()


def run(parties, rounds=6, engine=None, module=None, **settings):
    return hr.last(fedbuff(parties.on(engine or hr.InProcess()), module or linear(4, 1), rounds=rounds, **settings))


def by_hand(fed, rounds, buffer, concurrency, spread, unequal, server_rate, max_staleness=99):
    """The box of the module, with a diary of who works at what; only the draws are the program's."""
    rng, names = fed.streams.stream(0, "server", "pace"), fed.members
    pace = np.exp(unequal * rng.standard_normal(len(names)))
    x, time, at_work, stale = np.zeros(5), 0.0, {}, []

    def begin(version, resting):
        places = [place for place in range(concurrency) if place not in at_work]
        busy = [who for who, _, _ in at_work.values()] + resting
        idle = rng.permutation([who for who in range(len(names)) if who not in busy])[: len(places)]
        for place, who, normal in zip(places, idle, rng.standard_normal(len(idle)), strict=False):
            at_work[place] = (who, version, time + pace[who] * np.exp(spread * normal))

    began = {}
    begin(0, [])
    for version in range(rounds):
        rng, began[version], answers, came = fed.streams.stream(version + 1, "server", "pace"), x, [], []
        while len(answers) < buffer:
            place = min(at_work, key=lambda place: at_work[place][2])
            who, since, time = at_work.pop(place)
            came.append(who)
            v, _, _, _ = descent(fed, names[who], 2 * since + 1, began[since], **LOCAL)
            answers.append((v - began[since]) / np.sqrt(1 + version - since))
            stale.append(version - since)
            if len(answers) < buffer:
                begin(version, came)
        x = x + server_rate * sum(answers) / buffer
        for place in [place for place, (_, since, _) in at_work.items() if version + 1 - since > max_staleness]:
            del at_work[place]
        begin(version + 1, [])
    return x, time, stale


@pytest.mark.parametrize("max_staleness", [99, 1])
def test_the_algorithm_is_its_papers_box(parties, max_staleness):
    settings = {**PACE, "server_rate": 0.7, "max_staleness": max_staleness}
    found = run(parties, rounds=8, **LOCAL, **settings)
    x, time, stale = by_hand(parties.on(hr.Loop()), 8, **settings)
    np.testing.assert_allclose(flat(found), x, atol=FLOAT32)
    assert found.time == pytest.approx(time)
    assert found.staleness == np.mean(stale[-2:])
    assert max(stale) == min(max_staleness, 3)


@pytest.mark.parametrize("batch_size", [0, 5])
def test_without_spread_or_waiting_it_is_fedavg_of_equal_parties(parties, batch_size):
    """With everybody at work and everybody's answer in each buffer; shuffles are other draws, so of batches the loop tells."""
    local = {**LOCAL, "batch_size": batch_size}
    fed = parties.on(hr.Loop())
    found = hr.last(fedbuff(fed, linear(4, 1), rounds=3, buffer=6, concurrency=6, spread=0.0, **local))
    average = hr.last(fedavg(parties.on(hr.Loop()), linear(4, 1), rounds=3, weighting="uniform", **local))
    x = np.zeros(5)
    for t in range(3):
        x = np.mean([descent(fed, name, 2 * t + 1, x, **local)[0] for name in fed.members], 0)
    np.testing.assert_allclose(flat(found), x, atol=FLOAT32)
    if not batch_size:
        np.testing.assert_allclose(flat(found), flat(average), atol=1e-6)
    assert (found.staleness, found.time) == (0, 3)


def test_a_few_places_and_no_spread_are_cohorts_of_fixed_size(parties):
    """Those who answer together are replaced together, so nobody is stale."""
    states = list(fedbuff(parties.on(hr.InProcess()), linear(4, 1), rounds=12, buffer=2, concurrency=2, spread=0.0))
    assert {state.staleness for state in states} == {0}
    assert len({tuple(sorted(state.working)) for state in states}) > 5


def test_slow_parties_answer_rarely_and_late(parties):
    states = list(fedbuff(parties.on(hr.InProcess()), linear(4, 1), rounds=60, buffer=1, concurrency=5, unequal=1.0))
    pace, begun = states[0].pace, [state.working[state.since == state.round] for state in states]
    counts = np.bincount(np.concatenate(begun), minlength=6)
    assert counts[pace.argmin()] > counts[pace.argmax()]
    assert max(state.staleness for state in states) > 4


@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
@pytest.mark.slow
def test_every_engine_trains_the_same(parties, engine):
    one, other = (run(parties, engine=on, module=mlp(4, [3], 1), **LOCAL, **PACE) for on in (hr.Loop(), engine))
    for key, value in one.weights.items():
        np.testing.assert_allclose(other.weights[key], value, atol=FLOAT32)


def test_a_run_resumes_bit_identically(parties, tmp_path):
    program = partial(fedbuff, module=linear(4, 1), **LOCAL, **PACE)
    expected = drive(partial(program, rounds=7), parties.on(hr.InProcess())).state
    half = parties.on(hr.InProcess())
    drive(partial(program, rounds=3), half, checkpoint=tmp_path / "c")
    again = parties.on(hr.InProcess())
    again.ledger.entries.extend(half.ledger.entries)
    found = drive(partial(program, rounds=7), again, start=load_checkpoint(tmp_path / "c", type(expected), "")).state
    np.testing.assert_array_equal(flat(found), flat(expected))
    for name in ("time", "staleness", "working", "since", "due", "pace"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_a_party_that_never_answers_hands_in_nothing(parties):
    """The divisor is how many had work, and the others' work still counts; where only the absent one began, nobody did."""
    fed = parties.on(hr.InProcess(dropped=("party 2",)))
    found = hr.last(fedbuff(fed, linear(4, 1), rounds=8, **LOCAL, **{**PACE, "buffer": 3}))
    assert np.isfinite(flat(found)).all()
    assert fed.clock.missing > 0
    assert "party 2" not in fed.engine.held.states.committed(fed.clock.counted)


def test_work_is_handed_in_once(parties):
    """A party that missed a new model has nothing left of the old one."""
    fed = parties.on(hr.InProcess())
    for state in fedbuff(fed, linear(4, 1), rounds=3, **LOCAL, **PACE):
        kept = fed.engine.held.states.committed(fed.clock.counted)
        due = {fed.members[k] for k, since in zip(state.working, state.since, strict=True) if since < state.round}
        assert {name for name, own in kept.items() if own["version"] >= 0} == due


def test_the_program_runs_protected_and_is_charged_once_a_step(parties):
    def protected(on):
        return parties.on(on).protect(clip=hr.l2(0.5), mechanism=hr.Gaussian(0.5))

    feds = protected(hr.Loop()), protected(hr.InProcess())
    one, other = (hr.last(fedbuff(fed, linear(4, 1), rounds=5, **PACE)) for fed in feds)
    np.testing.assert_allclose(flat(other), flat(one), atol=3e-4)
    entries = feds[1].ledger.entries
    assert one.staleness > 0
    assert [(entry.verb, entry.event.kind) for entry in entries] == [("each", "none"), ("sum", "gaussian")] * 5
    assert {(entry.sampling.kind, entry.parties, entry.contribution) for entry in entries[1::2]} == {
        ("given", 2.0, "update (5,)")
    }
    assert len(feds[1].ledger.charges("party")) == 5
    assert "at a public schedule" in statement(feds[1].ledger, {"party": 6, "record": 90}).sentence


@pytest.mark.parametrize(
    "wrong",
    [{"buffer": 7}, {"buffer": 0}, {"concurrency": 9}, {"spread": -1.0}, {"max_staleness": -1}, {"rate": 0.5}, {"size": 3}],
    ids=str,
)
def test_settings_out_of_range_are_refused_before_anybody_is_asked(parties, wrong):
    fed = parties.on(hr.InProcess())
    with pytest.raises(SettingsInvalid, match=next(iter(wrong))):
        hr.last(fedbuff(fed, linear(4, 1), rounds=1, **wrong))
    assert len(fed.ledger) == 0
