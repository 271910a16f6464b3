"""A record that several parties hold is a record of its own at each of them."""

from functools import partial

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.engines.shared import SharedParties, warn_of_copies
from hedgerow.errors import HedgerowWarning
from hedgerow.study import load, rehearse
from hedgerow.study.build import build


def split(copies):
    table = hr.data.load("digits")
    return table, hr.data.shards(parties=6, shards_per_party=2, copies=copies)(table, 0)


def ones(broadcast, party, rng, *, kept):
    """Which of the kept records are in this party's sample."""
    return np.bincount(party["row"], minlength=kept).astype(float)


def held(n=2000):
    rows = np.concatenate([np.arange(n)] * 3)
    return SharedParties(["a", "b", "c"], {"row": np.arange(n)}, [n, n, n], rows)


def test_every_copy_is_drawn_by_itself():
    fed = hr.core.Federation(hr.engines.InProcess(threads=1).hosting(held()), streams=hr.core.randomness.Streams(0))
    drawn = fed.sample(records=0.5).sum(partial(ones, kept=2000))
    several = np.bincount(drawn.astype(int), minlength=4)
    assert (several > 0).all()  # copies that joined together would make 0 and 3 alone
    assert several[1] + several[2] == pytest.approx(1500, abs=6 * np.sqrt(2000 * 0.75 * 0.25))


@pytest.mark.slow
def test_a_budget_per_record_warns_of_copies():
    with pytest.warns(HedgerowWarning, match=r"1797 of 1797 records are held by up to 3 parties each"):
        warn_of_copies(split(3)[1])
    warn_of_copies(split(1)[1])


@pytest.mark.slow
def test_a_study_warns_of_copies_where_its_budget_is_per_record():
    changes = {"partition": {"by": "shards", "parties": 6, "shards_per_party": 2, "copies": 3}, "baselines": False}
    changes["budget.delta"] = 1e-5
    build(load("digits-fedavg", changes))
    with pytest.warns(HedgerowWarning, match="copy counts as a record of its own"):
        build(load("digits-fedavg", changes | {"budget.unit": "record"}))


def test_another_engine_hosts_the_same_copies():
    fed = hr.simulate(*split(3), seed=0)
    again = hr.engines.on(fed, hr.engines.Loop())
    assert isinstance(hr.engines.records(again), SharedParties)
    assert [party.n for party in hr.engines.records(again)] == [party.n for party in hr.engines.records(fed)]
    assert hr.engines.records(again).states is not hr.engines.records(fed).states


@pytest.mark.slow
def test_rates_that_grow_are_rehearsed_to_the_end():
    changes = {
        "program": {"name": "dp_fedavg", "model": "linear", "rounds": 6, "rate": 0.1, "last_rate": 0.6, "clip": 1.0},
        "protection": {"mechanism": {"law": "gaussian"}},
        "budget.accountant": "rdp",  # of six rates; the tightest takes seconds for each
    }
    assert len(rehearse(load("digits-fedavg", changes)).entries) == 6
