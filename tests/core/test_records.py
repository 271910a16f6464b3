"""Cohorts of records, and local functions that are private mechanisms in themselves."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from hedgerow import Budget, Gaussian, l2, linf
from hedgerow.core import local
from hedgerow.core.events import Event
from hedgerow.core.mechanism import Plan
from hedgerow.engines import Loop
from hedgerow.errors import BudgetExhausted, BudgetInvalid, UnboundedSum, UnlawfulChannel
from helpers import ENGINE_NAMES, ENGINES, federation, parties, totals


def present(broadcast, party, rng):
    """Which records the question is about, by their first column."""
    return {"n": party.n, "x": party["x"][:, 0].sum(), "square": (party["x"][:, 0] ** 2).sum()}


@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
def test_every_engine_samples_the_same_records(engine):
    one, other = (federation(on).sample(records=0.4) for on in (engine, Loop()))
    for ask in (totals, present):
        found, expected = one.sum(ask), other.sum(ask)
        np.testing.assert_allclose(found["n"], expected["n"], atol=1e-12)


def test_questions_to_one_cohort_are_about_the_same_records():
    for seed in (0, None):
        fed = federation(seed=seed)
        cohort = fed.sample(records=0.5)
        assert cohort.sum(present) == cohort.sum(present)
        assert fed.sample(records=0.5).sum(present) != cohort.sum(present)


def test_each_record_joins_with_the_rate():
    fed, rate, rounds = federation(), 0.3, 400
    n = rounds * len(parties().w)
    came = sum(float(fed.sample(records=rate).sum(totals)["n"]) for _ in range(rounds))
    assert abs(came - rate * n) < 5.3 * np.sqrt(n * rate * (1 - rate))  # one false alarm in ten million runs


def test_a_party_may_have_no_record_in_a_cohort():
    assert federation().sample(records=1e-9).sum(totals)["n"] == 0


def test_a_sample_of_records_is_charged_as_one():
    fed = federation().protect(mechanism=Gaussian(1.0))
    cohort = fed.sample(records=0.1)
    cohort.sum(totals, bound={"sum": l2(9.0, unit="record"), "n": linf(1, unit="record")})
    (entry,) = fed.ledger.entries
    assert (entry.sampling.kind, entry.sampling.rate, entry.unit, entry.parties) == ("records", 0.1, "record", fed.size)


def test_a_sample_of_records_needs_a_bound_per_record():
    fed = federation().protect(clip=l2(1.0), mechanism=Gaussian(1.0))
    with pytest.raises(UnlawfulChannel, match="sample of records"):
        fed.sample(records=0.1).sum(totals)
    assert not fed.ledger.entries


@pytest.mark.parametrize(
    "wrong", [{"records": 0.0}, {"records": 1.2}, {"records": 0.1, "rate": 0.1}, {"every": 7}, {"every": 0}, {}]
)
def test_samples_without_a_known_cost_are_refused(wrong):
    with pytest.raises(BudgetInvalid, match="no known cost"):
        federation().sample(**wrong)


def test_picked_parties_are_charged_as_a_public_schedule():
    fed = federation()
    cohort = fed.pick(["party 2", "party 5"])
    cohort.sum(totals)
    assert cohort.members == ("party 2", "party 5")
    assert fed.ledger.entries[0].sampling.kind == "given"


@pytest.mark.parametrize("names", [[], ["party 99"]])
def test_only_parties_of_the_federation_can_be_picked(names):
    with pytest.raises(BudgetInvalid):
        federation().pick(names)


@dataclass(frozen=True)
class Steps(Plan):
    """A plan of a few noisy steps."""

    z: float
    unit: str = "record"

    def event(self):
        return Event("gaussian", self.z, rate=0.1, count=5)


@local(private="plan")
def noisy_steps(broadcast, party, rng, *, plan):
    """A made-up private training; its noise is not what is tested here."""
    return {"update": rng.normal(size=2) * plan.z}


def test_a_private_local_function_is_charged_what_its_plan_says():
    fed = federation()
    fed.sum(partial(noisy_steps, plan=Steps(2.0)))
    (entry,) = fed.ledger.entries
    assert entry.event == Event("gaussian", 2.0, rate=0.1, count=5)
    assert entry.unit == "record"
    assert entry.mechanism.endswith("at the party")


def test_who_answers_a_private_local_function_is_no_secret():
    fed = federation()
    fed.sample(rate=0.5).sum(partial(noisy_steps, plan=Steps(2.0)))
    assert fed.ledger.entries[0].sampling.kind == "all"


def test_a_private_local_function_is_refused_beyond_a_budget():
    fed = federation().within(Budget(0.1, 1e-5, unit="record"))
    with pytest.raises(BudgetExhausted):
        fed.sum(partial(noisy_steps, plan=Steps(0.1)))


def test_noise_is_not_added_twice():
    with pytest.raises(UnlawfulChannel, match="adds its own noise"):
        federation().protect(clip=l2(1.0), mechanism=Gaussian(1.0)).sum(partial(noisy_steps, plan=Steps(2.0)))


def test_a_private_local_function_without_its_plan_has_no_cost():
    with pytest.raises(UnboundedSum, match="plan"):
        federation().sum(noisy_steps)


def test_a_record_pushes_no_party_out_of_a_cohort():
    fed = federation().protect(mechanism=Gaussian(1.0))
    fed.sample(size=3).sum(totals, bound={"sum": l2(9.0, unit="record"), "n": linf(1, unit="record")})
    assert fed.ledger.entries[0].sampling.kind == "fixed"
    assert [sampling.kind for sampling, _ in fed.ledger.charges("record")] == ["all"]
