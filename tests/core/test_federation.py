from functools import partial

import numpy as np
import pytest

import hedgerow as hr
from hedgerow import Budget, Gaussian, Laplace, l2, linf
from hedgerow.engines import InProcess, Loop
from hedgerow.errors import (
    BudgetExhausted,
    BudgetInvalid,
    ContributionInvalid,
    MixedUnits,
    NobodyAnswered,
    NotNamed,
    PartyDeclined,
    SlotFilled,
    UnboundedSum,
    UnlawfulChannel,
    ViewNotRecorded,
)
from hedgerow.store import last
from helpers import (
    ENGINE_NAMES,
    ENGINES,
    Hiding,
    counting,
    federation,
    noisy,
    norm_of_x,
    one_count,
    parties,
    recall,
    remember,
    run_of,
    totals,
    zeros,
)

CHANNELS = {
    "open": {},
    "clip": {"clip": l2(1.5)},
    "central": {"clip": {"sum": l2(2.0), "n": linf(20)}, "mechanism": Gaussian(0.7)},
    "local": {"clip": l2(3.0), "mechanism": Laplace(0.5, at="party")},
}


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
def test_every_engine_gives_the_same_sum(engine, channel):
    expected, found = (federation(on).protect(**channel).sum(totals) for on in (Loop(), engine))
    np.testing.assert_allclose(found["sum"], expected["sum"], atol=1e-12)
    np.testing.assert_allclose(found["n"], expected["n"], atol=1e-12)


@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
def test_local_randomness_does_not_depend_on_the_engine(engine):
    np.testing.assert_array_equal(federation(engine).sum(noisy), federation(Loop()).sum(noisy))


def test_a_sum_is_the_pooled_sum():
    held = parties()
    found = federation().sum(totals)
    np.testing.assert_allclose(found["sum"], held.columns["x"].sum(0))
    assert found["n"] == len(held.columns["x"])


def test_gather_returns_every_contribution_and_is_not_private():
    fed = federation()
    found = fed.gather(norm_of_x)
    assert list(found) == list(fed.members)
    assert found["party 2"] == pytest.approx(np.linalg.norm(parties()[1]["x"]))
    assert fed.ledger.entries[-1].event.kind == "nonprivate"


def test_gather_with_noise_at_the_party_is_private_and_in_units():
    fed = federation().protect(clip=l2(1.0), mechanism=Gaussian(1e-3, at="party"))
    assert all(abs(value - 1.0) < 0.01 for value in fed.gather(norm_of_x).values())
    assert fed.ledger.entries[-1].event.kind == "gaussian"


@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
def test_each_keeps_and_sum_recalls(engine):
    fed = federation(engine)
    fed.each(remember, np.ones(3))
    np.testing.assert_allclose(fed.sum(recall), parties().columns["x"].sum(0) + 6)
    assert [entry.event.kind for entry in fed.ledger.entries] == ["none", "nonprivate"]


@pytest.mark.parametrize("engine", [Loop(), InProcess()], ids=["loop", "inprocess"])
def test_state_commits_only_when_its_round_was_counted(engine):
    fed = federation(engine)
    assert fed.sum(counting, init=one_count) == 6
    assert fed.sum(counting, init=one_count) == 12
    run_of(fed).counted["party 1"] = -1  # the answer of party 1 came too late: its second count never happened
    assert fed.sum(counting, init=one_count) == 5 * 3 + 2


def test_a_party_that_dropped_keeps_its_old_state():
    fed = federation(InProcess(dropped=("party 3",)))
    fed.sum(counting, init=one_count)
    run_of(fed).engine.dropped = ()
    assert fed.sum(counting, init=one_count) == 5 * 2 + 1


def test_a_poisson_cohort_is_drawn_from_the_seed_and_has_the_declared_rate():
    fed = federation(n_parties=200)
    cohort = fed.sample(rate=0.3)
    assert 30 < len(cohort.members) < 90
    assert cohort.members == federation(n_parties=200).sample(rate=0.3).members
    assert cohort.expected_size == pytest.approx(60)
    assert len(fed.sample(size=17).members) == 17


def test_an_empty_cohort_adds_up_to_nothing():
    fed = federation(seed=3)
    cohort = next(cohort for cohort in iter(lambda: fed.sample(rate=0.05), None) if not cohort.members)
    np.testing.assert_array_equal(cohort.sum(totals)["sum"], np.zeros(3))


@pytest.mark.parametrize(
    "wrong", [{}, {"rate": 0.0}, {"rate": 1.5}, {"size": 0}, {"size": 7}, {"size": 2, "rate": 0.5}], ids=str
)
def test_impossible_cohorts_are_refused(wrong):
    with pytest.raises(BudgetInvalid):
        federation().sample(**wrong)


def test_a_cohort_is_not_sampled_again():
    with pytest.raises(BudgetInvalid, match="a cohort has no known cost"):
        federation().sample(size=3).sample(size=1)


def test_dropouts_are_missing_from_the_sum():
    fed = federation(InProcess(dropped=("party 2", "party 5")))
    held = parties()
    kept = held.pool(np.array([0, 2, 3, 5]))
    np.testing.assert_allclose(fed.sum(totals)["sum"], kept["x"].sum(0))


@pytest.mark.parametrize("engine", [InProcess(dropout_rate=0.4), InProcess(deadline=1.0)], ids=["dropouts", "stragglers"])
def test_simulated_dropouts_repeat_and_take_their_share(engine):
    first, second = (federation(engine, n_parties=50).sum(totals)["n"] for _ in range(2))
    assert first == second
    assert 0.2 < first / federation(n_parties=50).sum(totals)["n"] < 0.9


def test_nobody_answering_is_an_error_that_keeps_the_ledger():
    fed = federation(InProcess(dropped=[f"party {i}" for i in range(1, 7)]))
    with pytest.raises(NobodyAnswered, match="HR-220"):
        fed.sum(totals)
    assert len(fed.ledger) == 1


# ---- refusals before anybody is asked ------------------------------------------------------------------------------
def test_noise_refuses_a_sum_without_a_bound():
    fed = federation(recording=True).protect(mechanism=Gaussian(1.0))
    with pytest.raises(UnboundedSum, match=r"HR-210[\s\S]*totals[\s\S]*No party was asked"):
        fed.sum(totals)
    assert hr.engines.view(fed, "server") == []
    assert len(fed.ledger) == 0


def norms(fed):
    """A program without an end."""
    while True:
        yield fed.sum(norm_of_x)


def test_a_budget_refuses_before_asking():
    fed = federation(recording=True).protect(clip=l2(1.0), mechanism=Gaussian(12.0)).within(Budget(1.0, 1e-5))
    with pytest.raises(BudgetExhausted, match=r"HR-213[\s\S]*This question was not asked\. More"):
        last(norms(fed))
    answered = len([seen for seen in hr.engines.view(fed, "server") if seen.kind == "release"])
    assert answered == len(fed.ledger) > 1


def test_a_budget_refuses_an_unprotected_sum():
    with pytest.raises(BudgetExhausted):
        federation().within(Budget(100.0, 1e-5)).sum(norm_of_x)


def test_a_budget_of_one_unit_refuses_a_sum_of_the_other():
    fed = federation().protect(mechanism=Gaussian(5.0)).within(Budget(10.0, 1e-5, unit="party"))
    with pytest.raises(MixedUnits, match="per record"):
        fed.sum(totals, bound=l2(1.0, unit="record"))


def test_a_filled_slot_is_not_replaced():
    with pytest.raises(SlotFilled, match="HR-212"):
        federation().protect(clip=l2(1.0)).protect(clip=l2(2.0))


def test_gather_is_refused_where_only_totals_are_protected():
    with pytest.raises(UnlawfulChannel, match="HR-211"):
        federation().protect(clip=l2(1.0), mechanism=Gaussian(1.0)).gather(norm_of_x)


def test_a_record_level_clip_is_refused():
    with pytest.raises(UnlawfulChannel, match="per record"):
        federation().protect(clip=l2(1.0, unit="record"))


def test_a_function_without_a_name_is_refused():
    fed = federation()
    with pytest.raises(NotNamed, match="HR-224"):
        fed.sum(lambda broadcast, party, rng: np.zeros(1))
    assert len(fed.ledger) == 0


def test_the_view_is_not_invented():
    with pytest.raises(ViewNotRecorded, match="watch"):
        hr.engines.view(federation(), "server")


# ---- failures at a party ------------------------------------------------------------------------------------------
def secret_failure(broadcast, party, rng):
    raise ValueError("could not read 'HIV positive'")


def ragged(broadcast, party, rng):
    return np.zeros(len(party.w))


def infinite(broadcast, party, rng):
    return np.array([np.inf, 1.0])


def nothing(broadcast, party, rng):
    return None


@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
def test_a_failure_crosses_the_boundary_as_a_code(engine):
    with pytest.raises(PartyDeclined) as caught:
        federation(engine).sum(secret_failure)
    assert "HIV" not in str(caught.value)
    assert set(caught.value.codes.values()) == {"HR-221"}
    assert isinstance(caught.value.__cause__, ValueError)


def test_contributions_of_different_shapes_are_refused():
    with pytest.raises(ContributionInvalid, match="HR-222"):
        federation().sum(ragged)


@pytest.mark.parametrize("wrong", [infinite, nothing])
def test_contributions_that_are_not_finite_numbers_are_refused(wrong):
    with pytest.raises(PartyDeclined) as caught:
        federation().sum(wrong)
    assert set(caught.value.codes.values()) == {"HR-222"}


def test_behind_a_clip_what_is_not_finite_becomes_zero():
    np.testing.assert_array_equal(federation().protect(clip=l2(1.0)).sum(infinite), [0.0, 0.0])


def test_views_hold_what_each_observer_saw():
    fed = federation(recording=True)
    total = fed.sum(norm_of_x)
    rows = [seen for seen in hr.engines.view(fed, "server") if seen.kind == "row"]
    assert [seen.source for seen in rows] == list(fed.members)
    assert sum(float(seen.values[0]) for seen in rows) == pytest.approx(total)
    assert [seen.kind for seen in hr.engines.view(fed, "world")] == ["release"]
    assert [seen.kind for seen in hr.engines.view(fed, "party 1")] == ["broadcast"]


def test_a_channel_without_noise_leaves_rows_readable_and_local_noise_hides_them():
    """Attack: the server reads a party's contribution from its view."""
    honest, guarded = (
        federation(recording=True, seed=1).protect(**slots)
        for slots in ({}, {"clip": l2(20.0), "mechanism": Gaussian(3.0, at="party")})
    )
    truth = np.linalg.norm(parties()[0]["x"])
    for fed, recovers in ((honest, True), (guarded, False)):
        fed.sum(norm_of_x)
        row = next(seen.values for seen in hr.engines.view(fed, "server") if seen.source == "party 1")
        assert bool(np.isclose(row[0], truth)) == recovers


def test_zero_contributions_have_the_declared_noise_at_both_positions():
    from scipy.stats import chi2

    low, high = chi2.interval(1 - 1e-6, 4000)  # one false alarm in a million runs
    for at, factor in (("server", 1), ("party", 6)):
        total = federation(seed=5).protect(clip=l2(3.0), mechanism=Gaussian(2.0, at=at)).sum(partial(zeros, size=4000))
        assert low < (total**2).sum() / (factor * 6.0**2) < high


def test_a_budget_limits_every_handle_of_the_same_parties():
    fed = federation()
    private = fed.protect(clip=l2(1.0), mechanism=Gaussian(12.0)).within(Budget(1.0, 1e-5))
    ledgers = [run_of(handle).ledger for handle in (fed, private, fed.protect(clip=l2(2.0)))]
    assert all(ledger is run_of(private).ledger for ledger in ledgers)
    with pytest.raises(BudgetExhausted):
        fed.sum(norm_of_x)


def test_a_budget_is_not_loosened():
    fed = federation().within(Budget(1.0, 1e-5))
    assert fed.within(Budget(1.0, 1e-5)) is fed
    with pytest.raises(SlotFilled, match="budget"):
        fed.within(Budget(100.0, 1e-5))


def test_a_budget_cannot_come_after_a_question():
    fed = federation()
    fed.sum(norm_of_x)
    with pytest.raises(BudgetInvalid, match="too late"):
        fed.within(Budget(1.0, 1e-5))


def test_what_does_not_fit_is_refused_before_it_is_charged():
    """Clip keys that do not match, and noise on more coordinates than can be drawn."""
    fed = federation()
    with pytest.raises(ContributionInvalid):
        fed.protect(clip={"x": l2(1.0)}, mechanism=Gaussian(1.0)).sum(totals)
    shares = fed.protect(mechanism=Laplace(5.0, at="shares", least=2), aggregation=Hiding())
    with pytest.raises(BudgetInvalid, match="grid steps"):
        shares.sum(partial(zeros, size=40_000), bound=l2(1.0, unit="record"))
    assert len(fed.ledger) == 0


def test_the_ledger_does_not_tell_who_came():
    fed = federation(n_parties=40).protect(clip=l2(1.0), mechanism=Gaussian(1.0))
    cohort = fed.sample(rate=0.3)
    cohort.sum(norm_of_x)
    assert fed.ledger.entries[0].parties == 12.0 != len(cohort.members)
