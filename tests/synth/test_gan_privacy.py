"""What private networks claim: bounds reached and never exceeded, rates that are charged, and twins that are caught."""

import sys
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import hedgerow as hr
from hedgerow.core.party import Party
from hedgerow.core.records import _on_trust
from hedgerow.core.whole import in_steps
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import HedgerowError
from hedgerow.learn.records.clipping import Clipping
from hedgerow.privacy.accounting import calibrate
from hedgerow.synth import Codes
from hedgerow.synth.gan.adversarial import Conditioner
from hedgerow.synth.gan.encoding import RowEncoding
from hedgerow.synth.gan.modes import modes_of
from hedgerow.synth.gan.pate_gan import TeacherPlan, bound_of_votes, dealt, untaught, votes_of_teachers
from hedgerow.synth.gan.private import (
    PrivateNetwork,
    as_setting,
    network_gradients,
    rarest_rate,
    row_losses,
    rows_of,
    shares_of,
)

SCHEMA = Schema(
    (
        Column("x", "number", low=-6, high=6),
        Column("group", "category", levels=("a", "b", "c")),
        Column("ill", "binary"),
    )
)
ENCODING = RowEncoding(Codes.of(SCHEMA), n_modes=2)
NETWORKS = {
    "critic": PrivateNetwork(ENCODING, "critic", 5),
    "autoencoder": PrivateNetwork(ENCODING, "autoencoder", 5, 2),
}
SMALL = {"rounds": 2, "sampling_rate": 0.5, "batch_size": 30.0, "hidden": 4, "n_modes": 2}
PROGRAMS = {"dp_ctgan": hr.synth.dp_ctgan, "dp_tvae": hr.synth.dp_tvae}


def records(n, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.choice(3, n, p=[0.8, 0.15, 0.05]).astype(np.int16)
    return {"x": rng.uniform(-6, 6, n), "group": group, "ill": rng.integers(0, 2, n).astype(float)}


def federation(n=60, parties=2):
    return hr.simulate(Table(records(n), SCHEMA), hr.data.iid(parties=parties), seed=0)


def asked(kind, columns, clip=0.5, w=None, bounds=True, shares=(0.25, 0.5, 1.0), scale=1.0):
    """The sum of a party with these records, at random weights."""
    made = rows_of(
        columns, encoding=ENCODING, modes=as_setting(modes_of(ENCODING, None)), critic=kind == "critic", place=0, shares=shares
    )
    network, clipping = NETWORKS[kind], Clipping.of(clip)
    weights = scale * np.random.default_rng(1).normal(size=network.way.trained.size).astype(np.float32)
    party = Party("a", made, np.ones(len(made["share"])) if w is None else w)
    found = network_gradients(
        weights,
        party,
        None,
        network=network,
        clipping=clipping,
        bounds={"gradient": in_steps(clipping.bound)} if bounds else None,
    )
    return found["gradient"], weights, made


def take(columns, rows):
    return {name: values[rows] for name, values in columns.items()}


@pytest.mark.parametrize("kind", NETWORKS)
def test_gradients_are_those_of_autograd(kind):
    columns = records(6)
    found, weights, made = asked(kind, columns, clip=60.0, shares=(1.0, 1.0, 1.0))
    trained = NETWORKS[kind].way.trained
    flat = torch.from_numpy(weights).double().requires_grad_()
    module = NETWORKS[kind].module().double()
    named = {name: value.double() for name, value in trained.weights(flat).items()}
    output = torch.func.functional_call(module, named, (torch.from_numpy(made["model_input"]).double(),))
    if kind == "critic":
        loss = F.softplus(-output).sum()
    else:
        loss = row_losses(output, torch.from_numpy(made["model_target"]).double(), encoding=ENCODING).sum()
    (wanted,) = torch.autograd.grad(loss, flat)
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-3, atol=6 * 60 * 2.0**-15)  # six records in steps of their clip


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_record_adds_its_own_steps_wherever_it_stands_and_at_most_the_clip(kind):
    columns, lengths = records(40), []
    some = np.arange(40) != 17
    without, *_ = asked(kind, take(columns, some))
    for at in (0, 20, 39):
        rows = np.insert(np.flatnonzero(some), at, 17)
        with_it, *_ = asked(kind, take(columns, rows))
        alone, *_ = asked(kind, take(columns, [17]))
        np.testing.assert_array_equal(with_it - without, alone)
    for i in range(40):
        alone, *_ = asked(kind, take(columns, [i]), shares=(1.0, 1.0, 1.0), scale=3.0)
        lengths.append(np.linalg.norm(alone))
    assert 0.5 * (1 - 1e-3) < max(lengths) <= 0.5


def test_a_record_counts_by_its_level_and_never_more_than_one():
    columns = records(30)
    found = rows_of(
        columns, encoding=ENCODING, modes=as_setting(modes_of(ENCODING, None)), critic=True, place=0, shares=(0.25, 0.5, 1.0)
    )
    np.testing.assert_array_equal(found["share"], np.array([0.25, 0.5, 1.0])[columns["group"]])
    m = found["model_input"][:, ENCODING.width :]
    np.testing.assert_array_equal(m[:, :3].argmax(1), columns["group"])
    assert (m[:, 3:] == 0).all()
    for counts in ([900.0, 90.0, 10.0], [0.0, 0.0, 5.0], [1e9, 1.0, -3.0]):
        shares = shares_of(np.array(counts), True)
        assert shares.max() == 1.0
        assert (shares > 0).all()
    np.testing.assert_allclose(shares_of(np.array([900.0, 10.0]), True), [np.log(901) / 900 / (np.log(46.5) / 45.5), 1.0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROGRAMS)
def test_what_the_ledger_holds_stays_within_the_budget_and_near_it(kind):
    fed = federation()
    found = PROGRAMS[kind](fed, epsilon=2.0, delta=1e-5, **SMALL)
    assert 1.99 < fed.ledger.epsilon(delta=1e-5, unit="record") <= 2.0
    assert len(fed.ledger) == 1 + SMALL["rounds"]
    assert found.provenance.epsilon == fed.ledger.epsilon(delta=1e-5, unit="record")
    assert {entry.sampling.rate for entry in fed.ledger.entries[1:]} == {0.5}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROGRAMS)
def test_noise_in_shares_costs_the_same(kind):
    fed = federation(parties=3).protect(aggregation=hr.SecAgg())
    PROGRAMS[kind](fed, epsilon=2.0, delta=1e-5, noise_at="shares", least=3, **SMALL)
    assert fed.ledger.epsilon(delta=1e-5, unit="record") <= 2.0


# ---- the twin that is accounted as uniform sampling -----------------------------------------------------------------
def published_batches(columns, size, times, rng):
    """How often each record joins a batch of training by sampling, (n,)."""
    levels = ENCODING.levels(columns)
    counts = np.concatenate([np.bincount(levels[:, 0], minlength=3), np.bincount(levels[:, 1], minlength=2)]).astype(float)
    conditioner = Conditioner.of(ENCODING, levels, counts)
    joined = np.zeros(len(levels))
    for _ in range(times):
        joined[np.unique(conditioner.draw(size, rng)[1])] += 1
    return joined / times


def poisson_batches(columns, rate, times, rng):
    """The same of records that join alike, as those of `dp_ctgan` do."""
    return (rng.random((times, len(columns["x"]))) < rate).mean(0)


def under_reports(joined, charged, times):
    """Whether some record joins more often than is charged, beyond five deviations."""
    return bool((joined > charged + 5 * np.sqrt(charged * (1 - charged) / times)).any())


@pytest.mark.slow
def test_dp_ctgan_accounted_as_uniform_sampling_is_caught():
    rng, columns, times, size = np.random.default_rng(0), records(400), 600, 20
    columns["group"][:] = 0
    columns["group"][7] = 2  # one of its kind
    joined = published_batches(columns, size, times, rng)
    charged = size / 400
    assert under_reports(joined, charged, times)
    assert joined.argmax() == 7
    # half of the rows are conditioned on the group; its only record stands for all of log 2 / (log 2 + log 400) there,
    # and is drawn now and then where the other column is
    least = rarest_rate(np.array([399.0, 0.0, 1.0]), size, columns=2)
    assert joined[7] > least - 5 * np.sqrt(least * (1 - least) / times)
    assert not under_reports(poisson_batches(columns, charged, times, rng), charged, times)
    claimed, true = (calibrate(1.0, 1e-5, rounds=10, rate=rate, sampling="records") for rate in (charged, least))
    assert true > 3 * claimed, "noise that would keep the budget"


@pytest.mark.slow
def test_dp_ctgan_itself_charges_the_rate_at_which_records_join():
    fed = federation(n=200, parties=1)
    joined = np.array([float(fed.sample(records=0.1).sum(counted)["n"]) for _ in range(20)])
    assert abs(joined.mean() - 20) < 5 * np.sqrt(200 * 0.1 * 0.9 / 20)
    private = federation(n=200, parties=1)
    hr.synth.dp_ctgan(private, epsilon=1.0, delta=1e-5, **SMALL | {"sampling_rate": 0.1, "balanced": True})
    assert {entry.sampling.rate for entry in private.ledger.entries[1:]} == {0.1}


@hr.local(additive=True)
def counted(broadcast, party, rng):
    return {"n": np.asarray(party.n)}


# ---- refusals -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"pac": 10}, r"pac=10[\s\S]*Take pac=1"),
        ({"epsilon": 1.0}, r"without a delta[\s\S]*1e-5"),
        ({"sampling_rate": 0.0}, "sampling_rate is 0"),
    ],
)
def test_what_has_no_guarantee_is_refused_before_anybody_is_asked(given, words):
    fed = federation()
    with pytest.raises(HedgerowError, match=words):
        hr.synth.dp_ctgan(fed, **SMALL | given)
    assert len(fed.ledger) == 0


def test_a_channel_that_clips_or_adds_noise_beside_a_budget_is_refused():
    with pytest.raises(HedgerowError, match="clips each record's gradient itself"):
        hr.synth.dp_tvae(federation().protect(clip=hr.l2(1.0, "party")), **SMALL)
    noisy = federation().protect(mechanism=hr.Gaussian(1.0))
    with pytest.raises(HedgerowError, match="already adds noise"):
        hr.synth.dp_tvae(noisy, epsilon=2.0, delta=1e-5, **SMALL)


# ---- PATE-GAN -------------------------------------------------------------------------------------------------------
PLAN = TeacherPlan(teachers=6, steps=5, batch_size=6, learning_rate=0.5, hidden=2)


def votes(columns, broadcast, ask=votes_of_teachers, taught=None):
    party = Party("a", columns, np.ones(len(columns["x"])))
    party.state = untaught(broadcast, party, plan=PLAN) if taught is None else taught
    return ask(broadcast, party, np.random.default_rng(0), encoding=ENCODING, plan=PLAN)


@pytest.fixture
def fakes():
    rows = np.random.default_rng(3).random((40, ENCODING.width)).astype(np.float32)
    return {"rows": rows, "modes": modes_of(ENCODING, None)}


@pytest.mark.slow
def test_a_record_changes_the_votes_of_one_teacher_wherever_it_stands(fakes):
    columns, moved = records(60), []
    before = votes(columns, fakes)
    for seed in range(4):
        more = records(1, seed=100 + seed)
        with_it = {name: np.insert(values, 30 * (seed % 2), more[name][0]) for name, values in columns.items()}
        difference = votes(with_it, fakes) - before
        assert np.abs(difference).max() <= 1
        assert np.linalg.norm(difference) <= bound_of_votes(20).radius
        moved.append(np.abs(difference).sum())
    assert max(moved) > 0


@pytest.mark.parametrize("value", [6.0, np.nan, np.inf])
def test_a_bad_record_moves_no_bit_of_another_teacher(fakes, value):
    columns = {name: values[:9] for name, values in records(60).items()}  # some teachers have no record
    more = {name: np.append(values, values[-1]) for name, values in columns.items()}
    more["x"][-1] = value
    (mine,) = dealt(ENCODING.codes.number({name: values[-1:] for name, values in more.items()}), PLAN.teachers)
    others = np.arange(PLAN.teachers) != mine
    one, other = (untaught(fakes, None, plan=PLAN) for _ in range(2))
    for _ in range(2):  # rounds
        before, after = votes(columns, fakes, taught=one), votes(more, fakes, taught=other)
        np.testing.assert_array_equal(other["teachers"][others], one["teachers"][others])
        assert (other["teachers"][mine] != one["teachers"][mine]).any()
        assert np.abs(after - before).max() <= 1


def test_nothing_of_the_votes_is_taken_on_trust(caplog):
    _on_trust.cache_clear()
    hr.synth.pate_gan(federation(), rounds=1, teachers=2, made=4, batch_size=4, hidden=2, n_modes=2, epsilon=1.0, delta=1e-5)
    assert "on trust" not in caplog.text


@pytest.mark.slow
def test_teachers_that_are_dealt_records_by_place_are_caught(fakes, monkeypatch):
    """The twin: one record in front moves every other to another teacher."""
    monkeypatch.setattr(
        sys.modules["hedgerow.synth.gan.pate_gan"], "dealt", lambda codes, teachers: np.arange(len(codes)) % teachers
    )
    columns, moved = records(60), []
    before = votes(columns, fakes)
    for seed in range(4):
        more = records(1, seed=100 + seed)
        with_it = {name: np.insert(values, 0, more[name][0]) for name, values in columns.items()}
        moved.append(np.abs(votes(with_it, fakes) - before).max())
    assert max(moved) > 1


def test_the_bound_of_votes_is_reached_by_a_teacher_that_changes_its_mind():
    """From an empty teacher, which takes nothing for real, to one that takes everything: one vote more on every row."""
    rows = np.concatenate([np.zeros((20, ENCODING.width)), np.ones((20, ENCODING.width))]).astype(np.float32)
    broadcast = {"rows": rows, "modes": modes_of(ENCODING, None)}
    plan = TeacherPlan(teachers=1, steps=0, batch_size=4, learning_rate=0.1, hidden=2)

    def said(n):
        party = Party("a", records(n), np.ones(n))
        party.state = {"teachers": np.ones((1, plan.size(ENCODING.width)), np.float32)}
        return votes_of_teachers(broadcast, party, np.random.default_rng(0), encoding=ENCODING, plan=plan)

    assert np.linalg.norm(said(1) - said(0)) == pytest.approx(bound_of_votes(20).radius, rel=1e-12)


def test_records_are_dealt_by_their_contents_and_evenly():
    codes = ENCODING.codes.number(records(4000, seed=9) | {"x": np.random.default_rng(1).uniform(-6, 6, 4000)})
    teacher, order = dealt(codes, 4), np.random.default_rng(2).permutation(4000)
    np.testing.assert_array_equal(dealt(codes[order], 4), teacher[order])
    wide = np.random.default_rng(3).integers(0, 16, (4000, 6))
    np.testing.assert_allclose(np.bincount(dealt(wide, 4)) / 4000, 0.25, atol=5 * np.sqrt(0.25 * 0.75 / 4000))


def test_every_round_of_votes_is_charged_whatever_the_votes_are():
    small = {"made": 10, "batch_size": 10, "teachers": 2, "teacher_steps": 1, "student_steps": 1, "hidden": 4, "n_modes": 2}
    fed = federation()
    hr.synth.pate_gan(fed, rounds=3, epsilon=1.0, delta=1e-5, **small)
    assert fed.ledger.epsilon(delta=1e-5, unit="record") == pytest.approx(1.0, rel=1e-6)
    assert len(fed.ledger) == 1 + 3
    (multiplier,) = {entry.event.noise_multiplier for entry in fed.ledger.entries[1:]}
    other = federation()
    hr.synth.pate_gan(other, rounds=12, epsilon=1.0, delta=1e-5, **small)
    (more,) = {entry.event.noise_multiplier for entry in other.ledger.entries[1:]}
    assert more == pytest.approx(2 * multiplier, rel=1e-9), "four times the votes, twice the noise"


def test_without_teachers_that_learn_there_is_nothing_to_ask():
    with pytest.raises(HedgerowError, match="teachers is 0"):
        hr.synth.pate_gan(federation(), teachers=0)
    assert partial(untaught, plan=PLAN)({"rows": np.zeros((2, 4))}, None)["teachers"].shape == (6, PLAN.size(4))
