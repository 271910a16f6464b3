"""A cohort is charged as the one sample, or the one partition, that it is, whichever branch asks it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.events import Sampling
from hedgerow.core.federation import Federation
from hedgerow.errors import UnlawfulChannel
from hedgerow.privacy import Tree
from hedgerow.privacy.choice.sparse import SparseVector
from hedgerow.store import LedgerFile
from helpers import federation, totals

BUDGET = hr.Budget(50.0, 1e-5)


def private(z: float, parties: int = 40, seed: int | None = 7) -> Federation:
    return federation(seed=seed, n_parties=parties).protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(z))


def spent(fed: Federation) -> float:
    return BUDGET.spent(fed.ledger.charges("party"))


def composed(sampling: Sampling, n: int, z: float) -> float:
    """Epsilon of so many questions inside one sampling event."""
    return BUDGET.spent([(sampling, (hr.Gaussian(z).event(hr.l2(1.0)),) * n)])


def test_questions_aside_to_a_cohort_compose_inside_its_sampling_event() -> None:
    fed = private(4.0)
    cohort = fed.sample(rate=0.05)
    for _ in range(5):
        cohort.sum(totals)
        cohort.aside().sum(totals)
    assert len(fed.ledger.charges("party")) == 1
    assert spent(fed) == pytest.approx(composed(Sampling("poisson", 0.05), 10, 4.0))


def test_cohorts_of_one_number_in_two_branches_are_two_samples() -> None:
    fed = private(4.0)
    one, other = fed.sample(rate=0.2), fed.aside().sample(rate=0.2)
    assert set(one.members) != set(other.members)
    one.aside().sum(totals)
    other.sum(totals)
    assert len(fed.ledger.charges("party")) == 2


def test_partitions_of_one_number_in_two_branches_are_two_partitions() -> None:
    fed = private(5.0)
    groups, aside = fed.split(2), fed.aside().split(2)
    assert set(groups[0].members) & set(aside[1].members)
    for _ in range(10):
        groups[0].aside().sum(totals)
        aside[1].sum(totals)
    assert spent(fed) == pytest.approx(composed(Sampling(), 20, 5.0))


def test_a_charge_for_one_sample_is_not_cited_by_another() -> None:
    fed = federation(seed=7, n_parties=100).protect(mechanism=SparseVector(3.0, 5, 1e6))
    one, other = fed.sample(rate=0.3), fed.aside().sample(rate=0.3)
    bound = hr.l2(1.0, unit="party")
    one.sum(first, bound=bound)
    one.aside().sum(first, bound=bound)
    with pytest.raises(UnlawfulChannel, match="what was paid for"):
        other.sum(first, bound=bound)


def first(broadcast: object, party: object, rng: object) -> np.ndarray:
    return np.array([1.0])


def test_turns_after_a_resumption_without_a_seed_are_charged_beside_earlier_ones(tmp_path: Path) -> None:
    for life in range(2):
        fed = private(10.0, seed=None).recorded(LedgerFile(tmp_path / "ledger"))
        cohorts = [fed.sample(every=2) for _ in range(2)]
        for _ in range(10):
            cohorts[life].sum(totals)
    assert spent(fed) >= composed(Sampling(), 20, 10.0) * (1 - 1e-9)


def test_trees_that_differ_in_the_last_digit_share_no_noise() -> None:
    fed = federation(seed=7, n_parties=8).protect(clip=hr.l2(1000.0))
    one, other = (fed.protect(mechanism=Tree(z, 8)).sum(totals) for z in (2.0, 2.0000001))
    assert max(abs(one[name] - other[name]).max() for name in one) > 10.0
