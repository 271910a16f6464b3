"""Sequential transfer against a numpy loop, with one party, on every engine, resumed in the middle of a pass, protected."""

from functools import partial

import numpy as np
import pytest
from clinics import clinics, descent, flat
from proofs import FLOAT32, assert_same_weights, run, whole_and_resumed

import hedgerow as hr
from hedgerow.core.randomness import Streams
from hedgerow.errors import SettingsInvalid, UnlawfulChannel
from hedgerow.learn import cyclic_transfer, fedavg, incremental, linear, mlp
from helpers import ENGINE_NAMES, ENGINES, Hiding, altered

LOCAL = {"learning_rate": 0.3, "epochs": 2, "batch_size": 5}


@pytest.fixture(scope="module")
def parties():
    return clinics()


def by_turns(fed, names):
    """One party after the other goes on from where the last one ended."""
    w = np.zeros(5)
    for t, name in enumerate(names):
        w, _, _, _ = descent(fed, name, t + 1, w, **LOCAL)
    return w


def test_the_model_goes_from_party_to_party_in_order(parties):
    fed = hr.engines.on(parties, hr.Loop())
    cyclic = run(parties, cyclic_transfer, rounds=14, **LOCAL)
    np.testing.assert_allclose(flat(cyclic), by_turns(fed, [*fed.members, *fed.members, *fed.members][:14]), atol=FLOAT32)
    single = run(parties, incremental, **LOCAL)
    np.testing.assert_allclose(flat(single), by_turns(fed, fed.members), atol=FLOAT32)
    assert single.round == 6


def test_a_shuffled_pass_asks_everybody_once_in_a_new_order(parties):
    fed = hr.engines.on(parties, hr.InProcess())
    states = list(cyclic_transfer(fed, linear(4, 1), rounds=12, order="shuffled", path="eager", **LOCAL))
    first, second = states[5].order, states[11].order
    assert sorted(first) == sorted(second) == list(range(6))
    assert list(first) != list(second)
    names = [fed.names[place] for place in [*first, *second]]
    np.testing.assert_allclose(flat(states[-1]), by_turns(hr.engines.on(parties, hr.Loop()), names), atol=FLOAT32)


def test_with_one_party_it_is_fedavg():
    alone = clinics(parties=1)
    found, average = (run(alone, a, rounds=3, **LOCAL) for a in (cyclic_transfer, fedavg))
    np.testing.assert_allclose(flat(found), flat(average), atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
def test_every_engine_trains_the_same(parties, engine):
    settings = {"module": mlp(4, [3], 1), "rounds": 8, "order": "shuffled"}
    one, other = (run(parties, cyclic_transfer, engine=on, **settings) for on in (hr.Loop(), engine))
    assert_same_weights(one, other)


def test_a_run_resumes_in_the_middle_of_a_pass(parties, tmp_path):
    (_, whole), (_, resumed) = whole_and_resumed(
        parties, partial(cyclic_transfer, order="shuffled"), tmp_path / "c", rounds=9, half=4
    )
    np.testing.assert_array_equal(flat(resumed), flat(whole))
    np.testing.assert_array_equal(resumed.order, whole.order)


def test_a_pass_keeps_its_order_also_where_no_seed_could_repeat_it(parties):
    fed = altered(hr.engines.on(parties, hr.InProcess()), streams=Streams(None))
    program = partial(cyclic_transfer, fed, linear(4, 1), order="shuffled", path="eager")
    half = hr.last(program(rounds=2))
    states = list(program(rounds=12, start=half))
    assert all((state.order == half.order).all() for state in states[:4])
    assert len({tuple(state.order) for state in states[4:]}) == 1


def test_each_hand_over_is_charged_as_a_cohort_of_one(parties):
    fed = hr.engines.on(parties, hr.InProcess())
    hr.last(cyclic_transfer(fed, linear(4, 1), rounds=3, path="eager"))
    entries = fed.ledger.entries
    assert [(entry.event.kind, entry.parties, entry.cohort) for entry in entries] == [("nonprivate", 1.0, c) for c in (1, 2, 3)]
    assert {str(entry.sampling) for entry in entries} == {"1 by schedule"}


@pytest.mark.parametrize("at", ["server", "party"])
def test_a_change_is_clipped_and_noised_before_it_is_handed_on(parties, at):
    channel = {"clip": hr.l2(0.1), "mechanism": hr.Gaussian(0.01, at=at)}
    fed = hr.engines.on(parties, hr.InProcess()).protect(**channel)
    states = list(cyclic_transfer(fed, linear(4, 1), rounds=4, path="eager", **LOCAL))
    steps = np.diff([np.zeros(5), *(flat(state) for state in states)], axis=0)
    assert (np.linalg.norm(steps, axis=1) < 0.1 * 1.1).all()
    loop = run(parties.protect(**channel), cyclic_transfer, engine=hr.Loop(), rounds=4, **LOCAL)
    assert_same_weights(loop, states[-1], atol=3e-4)
    assert [entry.event.kind for entry in fed.ledger.entries] == ["gaussian"] * 4


@pytest.mark.parametrize("program", [partial(cyclic_transfer, rounds=3), incremental], ids=["cyclic", "incremental"])
def test_a_channel_that_hides_rows_is_refused(parties, program):
    fed = hr.engines.on(parties, hr.InProcess()).protect(aggregation=Hiding())
    with pytest.raises(UnlawfulChannel, match="the row of one party"):
        hr.last(program(fed, linear(4, 1)))
    assert len(fed.ledger) == 0


def test_a_party_that_does_not_answer_is_passed_over(parties, caplog):
    fed = hr.engines.on(parties, hr.InProcess(dropped=("party 2",)))
    states = list(cyclic_transfer(fed, linear(4, 1), rounds=3, path="eager", **LOCAL))
    np.testing.assert_array_equal(flat(states[1]), flat(states[0]))
    assert np.abs(flat(states[2]) - flat(states[1])).max() > 0
    assert "party 2 did not answer in hand-over 2" in caplog.text
    assert fed.missing == 1


@pytest.mark.parametrize(
    "wrong",
    [{"order": "random"}, {"rate": 0.5}, {"size": 2}, {"weighting": "records"}, {"epochs": 0}],
    ids=lambda one: next(iter(one)),
)
def test_settings_out_of_range_are_refused_before_anybody_is_asked(parties, wrong):
    fed = hr.engines.on(parties, hr.InProcess())
    with pytest.raises(SettingsInvalid, match=next(iter(wrong))):
        hr.last(cyclic_transfer(fed, linear(4, 1), rounds=1, **wrong))
    assert len(fed.ledger) == 0
