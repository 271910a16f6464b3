"""Noise at aggregators from the channel to the ledger: where it is lawful, what it costs, how large it is, who is protected."""

import logging
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l1, l2
from hedgerow.core.channel import LAWFUL
from hedgerow.core.disclosure import ExactNumbers
from hedgerow.core.federation import handle, inside
from hedgerow.core.mechanism import Mechanism
from hedgerow.core.question import local
from hedgerow.core.release import Release
from hedgerow.core.rules import somebody_adds_noise
from hedgerow.crypto.aggregation import steadily
from hedgerow.data import Column, Schema, Table, iid
from hedgerow.engines.aggregators import AggregatorsAway
from hedgerow.engines.network import Network
from hedgerow.errors import BudgetExhausted, BudgetInvalid, CohortTooSmall, PartyDeclined, UnlawfulChannel
from hedgerow.learn import dp_fedavg
from hedgerow.learn.private.schedules import ScheduledGaussian
from hedgerow.privacy import DiscreteGaussian, Gaussian, Geometric, Guard, Laplace, Noise, Skellam, Tree
from hedgerow.privacy.guard import COUNTS, entry_of
from hedgerow.privacy.level import noise_level
from hedgerow.privacy.simulated_gaussian import SimulatedGaussian
from hedgerow.privacy.statement import added_at, adjacency
from hedgerow.stats.private import means
from helpers import federation, outbox, run_of, totals, zeros

BOTH = pytest.mark.parametrize("mode", ["real", "simulated"])
LAWS = (Gaussian, Laplace, Skellam)


@pytest.fixture(autouse=True)
def silent():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@local(additive=True)
def counted(broadcast, party, rng):
    return np.full(20, float(party.n))


@local
def small(broadcast, party, rng):
    return np.full(1000, 0.001)


def hospitals(n=8, seed=0, **how):
    table = pd.DataFrame({"x": np.linspace(0, 1, 10 * n), "y": np.arange(10 * n) % 2})
    return hr.simulate(table, iid(parties=n), seed=seed, **how)


def noisy(federation, mechanism, mode="simulated", k=2, clip=None, **how):
    clip = l2(1.0) if clip is None else clip
    return federation.protect(clip=clip, mechanism=mechanism, aggregation=hr.AdditiveShares(aggregators=k, mode=mode, **how))


# ---- where it is lawful
@pytest.mark.parametrize("aggregation", [None, hr.SecAgg(), hr.PairwiseMasks(), hr.SecAgg(mode="simulated")])
def test_noise_at_aggregators_needs_aggregators(aggregation):
    with pytest.raises(UnlawfulChannel, match=r"HR-211.*has none") as refusal:
        hospitals().protect(clip=l2(1.0), mechanism=Gaussian(1.0, at="aggregators"), aggregation=aggregation)
    assert "AdditiveShares" in refusal.value.remedy


def apart(**slots):
    columns = {"clinic": ["age", "sex"], "laboratory": ["s1", "s5"]}
    tables = hr.data.columns_by_name(columns, on="patient", overlap=0.9)(hr.data.load("diabetes"), seed=0)
    federation = hr.simulate(tables, on="patient", seed=0).protect(**slots)
    return federation, lambda: federation.align(on="patient", by=hr.vertical.X25519(least=10))


@BOTH
def test_columns_that_lie_apart_go_by_no_aggregator_who_would_add_noise(mode):
    """Sums between parties have none; to charge them for it would release exact counts as private ones."""
    shares = hr.AdditiveShares(aggregators=2, mode=mode)
    federation, align = apart(mechanism=Gaussian(20.0, at="aggregators"), aggregation=shares)
    with pytest.raises(UnlawfulChannel, match=r"HR-211[\s\S]*has none[\s\S]*No party was asked"):
        align()
    assert len(federation.ledger.entries) == 0
    _, align = apart(mechanism=Gaussian(20.0))
    found = hr.vertical.means(align(), "s5", by="sex")
    assert not float(found["count"].iloc[0]).is_integer()


def test_columns_that_lie_apart_are_not_said_to_be_proved():
    with pytest.raises(UnlawfulChannel, match="nobody proves any"):
        apart(aggregation=hr.AdditiveShares(aggregators=2, verified=True))[1]()


@pytest.mark.parametrize(
    "slots",
    [
        {"aggregation": hr.SecAgg()},
        {"aggregation": hr.AdditiveShares(aggregators=3)},
        {"aggregation": hr.AdditiveShares(aggregators=3, mode="simulated")},
        {"mechanism": Gaussian(1.0, at="aggregators")},
    ],
    ids=["no aggregators", "more", "more, simulated", "it knows of none"],
)
def test_a_channel_whose_noise_nobody_would_add_is_refused_however_it_was_made(slots):
    """The last rule before the ledger: a sum is charged for noise of aggregators where they are there, as many as it says."""
    fed = noisy(hospitals(), Gaussian(1.0, at="aggregators"), k=2)
    values = inside(fed)
    false = handle(values._replace(channel=replace(values.channel, **slots)))
    with pytest.raises(UnlawfulChannel, match=r"HR-211[\s\S]*No party was asked"):
        false.sum(small)
    assert len(fed.ledger.entries) == 0


def test_a_twin_without_that_rule_releases_an_exact_total_as_a_private_one():
    fed = noisy(hospitals(), Gaussian(20.0, at="aggregators"))
    values = inside(fed)
    values.run.rules = tuple(rule for rule in values.run.rules if rule is not somebody_adds_noise)
    false = handle(values._replace(channel=replace(values.channel, mechanism=Gaussian(20.0, at="aggregators"))))
    np.testing.assert_allclose(false.sum(small), 0.008, atol=0.1)
    assert fed.ledger.entries[0].event.noise_multiplier == 20.0


def test_one_slot_after_the_other_is_as_good_as_both_at_once():
    at_once = noisy(hospitals(), Gaussian(0.5, at="aggregators"))
    after = hospitals().protect(clip=l2(1.0), aggregation=hr.AdditiveShares(aggregators=2, mode="simulated"))
    after = after.protect(mechanism=Gaussian(0.5, at="aggregators")).protect(mechanism=Gaussian(0.5, at="aggregators"))
    for found in (at_once, after):
        assert found.protection.mechanism == "Gaussian(0.5) at each of 2 aggregators"
        assert found.protection.meaning == LAWFUL["aggregators", True]
        assert "one aggregator is honest" in found.protection.meaning
        assert (found.protection.noise_at, found.protection.hides_rows) == ("aggregators", True)


def test_what_aggregators_cannot_draw_is_refused():
    with pytest.raises(BudgetInvalid, match="simulated noise at"):
        SimulatedGaussian(1.0, at="aggregators")
    with pytest.raises(TypeError):
        Tree(1.0, 3, at="aggregators")
    with pytest.raises(BudgetInvalid, match="add"):
        Noise("gaussian", 1.0, "server", aggregators=2)
    with pytest.raises(BudgetInvalid):
        Gaussian(1.0, at="aggregators", least=3)

    class Elsewhere(Noise):
        added_by = Mechanism.added_by

    with pytest.raises(UnlawfulChannel, match="a law and its scale"):
        noisy(hospitals(), Elsewhere("gaussian", 1.0, "aggregators"))


def test_noise_of_schedules_is_refused_at_aggregators():
    with pytest.raises(UnlawfulChannel, match="HR-211"):
        noisy(hospitals(), ScheduledGaussian((1.0, 2.0), at="aggregators"))


# ---- how large it is
@BOTH
def test_the_error_of_two_aggregators_is_the_root_of_two_times_that_of_one(mode):
    """Golden: z clip sqrt(2) = 0.7071 for z = 0.5; the mean of 40 000 numbers is within five of its deviations of 0.0035."""
    errors = []
    for seed in range(40):
        errors.append(noisy(hospitals(seed=seed), Gaussian(0.5, at="aggregators"), mode).sum(small) - 0.008)
    assert abs(np.std(errors) - 0.7071) < 5 * 0.7071 / np.sqrt(2 * np.size(errors))
    assert abs(np.mean(errors)) < 5 * 0.7071 / np.sqrt(np.size(errors))


@pytest.mark.parametrize("law", [*LAWS, Geometric])
@pytest.mark.parametrize("k", [2, 5])
def test_the_deviation_that_is_foreseen_is_that_of_all_aggregators(law, k):
    layout = Layout((("a", (4,)), ("b", (2,))))
    one = law(2.0).noise_deviation(l1(3.0), layout, 8.0)
    several = law(2.0, at="aggregators").added_by(k).noise_deviation(l1(3.0), layout, 8.0)
    assert several == {key: pytest.approx(np.sqrt(k) * value) for key, value in one.items()}


@BOTH
def test_programs_ask_how_large_it_is_through_their_channel(mode):
    central = hospitals().protect(clip=l2(1.0), mechanism=Gaussian(0.5))
    through = noisy(hospitals(), Gaussian(0.5, at="aggregators"), mode, k=3)
    found = [noise_level(fed, None, "", 10) for fed in (central, through)]
    assert found[1] == pytest.approx(np.sqrt(3) * found[0])


@pytest.mark.parametrize("law", [Gaussian, Laplace, Skellam, Geometric, DiscreteGaussian])
def test_a_simulation_adds_what_the_protocol_would_to_the_last_step(law):
    whole = law in (Geometric, DiscreteGaussian)
    bound = l1(8.0, "record") if law in (Laplace, Geometric) else l2(8.0, "record")

    found = []
    for mode in ("real", "simulated"):
        fed = hospitals(seed=7).protect(
            mechanism=law(3.0, at="aggregators"), aggregation=hr.AdditiveShares(aggregators=3, mode=mode, records=100)
        )
        found.append([fed.sum(counted, bound=bound) for _ in range(2)])
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0][0] != found[0][1]).any(), "each question has noise of its own"
    assert not whole or (np.array(found) % 1 == 0).all()


def test_proved_rows_have_the_same_noise_in_the_field():
    found = []
    for how in ({"mode": "real", "verified": True}, {"mode": "simulated"}):
        fed = hospitals(seed=3).protect(
            clip=l2(1.0), mechanism=Gaussian(0.5, at="aggregators"), aggregation=hr.AdditiveShares(aggregators=2, **how)
        )
        found.append(fed.sum(small))
    np.testing.assert_array_equal(*found)


@BOTH
def test_a_run_repeats_by_its_seed_and_without_one_by_nothing(mode):
    ask = lambda seed: noisy(hospitals(seed=seed), Gaussian(0.5, at="aggregators"), mode).sum(small)  # noqa: E731
    np.testing.assert_array_equal(ask(1), ask(1))
    assert (ask(1) != ask(2)).any()
    assert (ask(None) != ask(None)).any()


def test_a_program_cannot_draw_what_aggregators_drew():
    fed = hospitals()
    with pytest.raises(BudgetInvalid, match="draws noise"):
        run_of(fed).streams.for_program(1, "noise of aggregator 0")


# ---- what it costs
@pytest.mark.parametrize("law", [*LAWS, Geometric, DiscreteGaussian])
@pytest.mark.parametrize("unit", ["record", "party"])
def test_it_is_charged_as_one_aggregator_s_noise_whatever_their_number(law, unit):
    bound = l1(8.0, unit) if law in (Laplace, Geometric) else l2(8.0, unit)
    for k in (0, 2, 7):
        assert law(2.0, at="aggregators").added_by(k).event(bound) == law(2.0).event(bound)


def charges(at, ask, unit="party"):
    mechanism = Gaussian(2.0, at, 3 if at == "shares" else 0)
    fed = noisy(federation(n_parties=12), mechanism)
    ask(fed).sum(totals, bound=None)
    return fed.ledger.charges(unit)


def test_asked_of_everybody_it_costs_what_noise_at_the_server_does():
    assert charges("aggregators", lambda fed: fed) == charges("server", lambda fed: fed)


@pytest.mark.parametrize(
    "ask",
    [lambda fed: fed.sample(rate=0.95), lambda fed: fed.sample(size=6), lambda fed: fed.sample(every=2)],
    ids=["rate", "size", "turns"],
)
def test_a_cohort_of_parties_is_charged_as_noise_in_shares_is(ask):
    """The server is kept from what noise hides, and sees whom it asks: no amplification, and no place that another takes."""
    assert charges("aggregators", ask) == charges("shares", ask)


def test_samples_of_records_amplify():
    fed = hospitals().protect(mechanism=Gaussian(1.0, at="aggregators"), aggregation=hr.AdditiveShares(mode="simulated"))
    fed.sample(records=0.1).sum(totals_of_x, bound=l2(1.0, "record"))
    (entry,) = fed.ledger.entries
    assert (entry.sampling.kind, entry.sampling.rate) == ("records", 0.1)


@local(additive=True)
def totals_of_x(broadcast, party, rng):
    return np.array([party.w @ party["x"]])


def test_a_cohort_of_nobody_has_a_total_of_zero():
    fed = noisy(hospitals(), Gaussian(1.0, at="aggregators"))
    found = [fed.sample(rate=1e-9).sum(small) for _ in range(2)]
    assert not np.any(found), "that nobody was asked is no secret of the server's"
    with pytest.raises(CohortTooSmall, match="HR-240"):
        noisy(hospitals(), Gaussian(1.0)).sample(rate=1e-9).sum(small)  # noise at the server: it would be one


def test_a_budget_ends_it():
    fed = noisy(hospitals(), Gaussian(1.0, at="aggregators")).within(hr.Budget(6.0, 1e-5, unit="party"))
    fed.sum(small)
    with pytest.raises(BudgetExhausted):
        fed.sum(small)
    assert len(fed.ledger.entries) == 1


def test_ledger_and_statement_say_who_adds_it_and_who_has_to_be_honest():
    fed = noisy(hospitals(), Gaussian(1.0, at="aggregators"), k=3)
    fed.sum(small)
    entries = list(fed.ledger.entries)
    assert entries[0].mechanism == "Gaussian(1) at each of 3 aggregators"
    assert adjacency(entries, "party") == (
        "add-remove adjacency, also against the server while one of the 3 aggregators keeps its noise secret"
    )
    mixed = [*entries, replace(entries[0], mechanism="Gaussian(1) at the server")]
    assert "but not the server" in adjacency(mixed, "party")
    two = [*entries, replace(entries[0], mechanism="Gaussian(1) at each of 2 aggregators")]
    assert "one of the 2 aggregators" in adjacency(two, "party")


def test_a_rate_is_refused_of_whose_cohorts_an_aggregator_would_refuse_some_for_their_size():
    """What an aggregator's own guard wants counts as the study's `least` does: a refusal would tell who was drawn."""
    fed = noisy(hospitals(60), Gaussian(1.0), mode="real")
    fed.sample(rate=0.8).sum(small)
    inside(fed).run.engine.least_total = 40
    with pytest.raises(CohortTooSmall, match=r"fewer than 40[\s\S]*No party was asked"):
        fed.sample(rate=0.8).sum(small)
    inside(fed).run.engine.least_total = 10
    fed.sample(rate=0.8).sum(small)
    known = {"ministry": (bytes(32), 3), "university": (bytes(31) + b"1", 40)}
    nobody = SimpleNamespace(alive=frozenset, wait=lambda *how: False, ask=lambda *letters, **how: {})
    engine = Network(nobody, bytes(16), {"a": ("a",)}, aggregators=AggregatorsAway(nobody, bytes(16), b"", known))
    assert (engine.least_total, replace(engine, aggregators=None).least_total) == (40, 0)


def test_a_statement_claims_nothing_of_being_drawn_against_aggregators_who_see_the_cohort():
    """With noise at the server a cohort amplifies, but each aggregator has a list of who is in it."""
    said = {}
    for name, how in {"hidden": {"aggregation": hr.AdditiveShares(mode="simulated")}, "seen": {}}.items():
        fed = hospitals(40).protect(clip=l2(1.0), mechanism=Gaussian(1.0), **how)
        fed.sum(small)
        said[name, "all"] = adjacency(list(fed.ledger.entries), "party")
        fed.sample(rate=0.8).sum(small)
        said[name, "drawn"] = adjacency(list(fed.ledger.entries), "party")
    assert "neither the server nor an aggregator, who sees which parties were drawn" in said.pop(("hidden", "drawn"))
    assert all("but not the server" in one for one in said.values())


@pytest.mark.parametrize("mechanism", [Gaussian(1.0, at, 2 * (at == "shares")).added_by(2) for at in COUNTS["server"]])
def test_words_of_a_ledger_say_who_adds_the_noise(mechanism):
    assert added_at(str(mechanism)) == mechanism.at


# ---- who is protected
def release_of(z=1.0, unit="party", at="aggregators"):
    return Release(bounds=l2(1.0, unit), mechanism=Gaussian(z, at).added_by(2))


def test_the_server_learns_no_exact_number_and_changing_parties_are_hidden_as_in_shares():
    release = release_of()
    assert release.before_server
    assert release.random
    assert release.hides_parties
    assert release.least == 0
    assert not release_of(unit="record").hides_parties
    assert not release_of(z=0.1).random, "too little noise covers nothing"
    assert not release_of(at="server").before_server


def test_totals_stand_on_one_set_only_once_the_noise_is_worn_out():
    box = outbox(zeros, release=release_of())
    assert not steadily(box)
    assert steadily(replace(box, worn=True))
    assert steadily(replace(box, release=release_of(unit="record")))


def test_numbers_behind_it_count_as_covered_by_one_aggregator_s_noise():
    fed = noisy(hospitals(), Gaussian(1.0, at="aggregators"))
    fed.sum(small)
    found = ExactNumbers.of(fed.ledger.entries[0])
    central = noisy(hospitals(), Gaussian(1.0))
    central.sum(small)
    assert found == ExactNumbers.of(central.ledger.entries[0])
    assert (found.plain, found.hidden, found.veiled) == (0.0, 0.0, (0.0, 1000.0))


@pytest.mark.parametrize("trust", COUNTS)
def test_a_guard_counts_it_from_trust_in_aggregators_on(trust):
    guard = Guard(hr.Budget(99.0, 1e-5, unit="party"), trust=trust)
    box = outbox(totals, release=release_of(5.0))
    if trust in ("aggregators", "server"):
        guard.debit(box)
        assert entry_of(box, trust).event == Gaussian(5.0).event(l2(1.0))
        assert guard.spent > 0
    else:
        with pytest.raises(PartyDeclined, match="HR-221"):
            guard.debit(box)


def test_each_trust_counts_all_that_those_before_it_count():
    found = [set(places) for places in COUNTS.values()]
    assert all(a < b for a, b in pairwise(found))


def test_a_server_that_watches_sees_no_row_and_no_total_without_noise():
    for mode in ("real", "simulated"):
        fed = noisy(hospitals(record_views=True), Gaussian(0.5, at="aggregators"), mode)
        released = fed.sum(small)
        seen = hr.engines.view(fed, "server")
        assert {one.kind for one in seen} == ({"masked row", "release"} if mode == "real" else {"release"})
        np.testing.assert_array_equal(seen[-1].values, released)
        for one in seen[:-1]:
            assert len(np.unique(one.values >> np.uint64(56))) > 200, "as random as the numbers of a ring"


# ---- programs
X_MEAN = np.random.default_rng(0).uniform(-1, 1, (800, 3))[:, 0].mean()
CLINICS = Schema(
    (
        Column("x", "number", shape=(3,), low=-1.0, high=1.0),
        Column("age", "number", low=0.0, high=100.0),
        Column("ill", "binary", role="target"),
    )
)


def clinics(n=20, seed=1):
    X = np.random.default_rng(0).uniform(-1, 1, (800, 3))
    columns = {"x": X, "age": 50 + 20 * X[:, 0], "ill": (X @ [3.0, -2.0, 1.0] > 0).astype(float)}
    table = Table(columns, CLINICS)
    return hr.simulate(table, iid(parties=n), seed=seed)


@pytest.mark.slow
@BOTH
def test_a_private_federated_average_runs_through_it(mode):
    torch = pytest.importorskip("torch")
    states = []
    for aggregation in (hr.AdditiveShares(aggregators=2, mode=mode), hr.AdditiveShares(aggregators=2, mode="simulated")):
        fed = clinics().protect(mechanism=Gaussian(0.5, at="aggregators"), aggregation=aggregation)
        torch.manual_seed(0)
        module = torch.nn.Linear(4, 1)
        states.append(hr.last(dp_fedavg(fed, module, rounds=3, epochs=1, batch_size=20, learning_rate=0.1)))
    for name, value in states[0].weights.items():
        np.testing.assert_array_equal(value, states[1].weights[name])
    assert np.isfinite(states[0].scale)


@pytest.mark.slow
@BOTH
def test_private_means_know_how_large_the_noise_of_all_aggregators_is(mode):
    """The mean of an age has the errors that it says, with 16 times the variance that it would say of one of 16 aggregators."""
    off, said = [], []
    for seed in range(40):
        fed = clinics(seed=seed).protect(aggregation=hr.AdditiveShares(aggregators=16, mode=mode, records=1000))
        found = means(fed, ["age", "ill"], epsilon=1.0, delta=1e-5, noise_at="aggregators")
        off.append(found.mean[0, 0] - 50 - 20 * X_MEAN)
        said.append(found.se_[0, 0])
    ratio = np.std(off) / np.median(said)
    assert 0.7 < ratio < 1.3
