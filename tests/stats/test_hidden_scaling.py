"""Stores whose records are standardised through the waist by numbers that no store is told."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import Column, Schema, Table, iid
from hedgerow.engines import InProcess, Loop, hidden_standardise, simulate
from hedgerow.errors import RangeExceeded, SettingsInvalid, UnboundedSum
from hedgerow.stats import linear_regression
from hedgerow.stats.hidden.sso import secure_scaling

SCHEMA = Schema(
    (
        Column("age", "number", low=18, high=90),
        Column("visits", "integer", low=0, high=12),
        Column("pain", "number", role="target", low=-20, high=40),
        Column("free", "number"),
    )
)
NAMES = ["age", "visits"]
SHORT = {"key_bits": 512, "insecure": True}


@dataclass
class Watched(InProcess):
    """Keeps what stores were sent, and loses some answers at one step."""

    at: str = ""
    who: tuple = ()

    def exchange(self, outbox):
        if outbox.step is not None:
            SENT.append(outbox)
            if outbox.step.name == self.at:
                ids = tuple(id for id in outbox.ids if id not in self.who)
                outbox = replace(outbox, ids=ids)
        return super().exchange(outbox)


SENT = []


def stores(n=9, parties=None, engine=None):
    SENT.clear()
    table = Table(SCHEMA.admit(SCHEMA.synthetic(n, np.random.default_rng(5))), SCHEMA)
    return simulate(table, iid(parties or n), seed=1, engine=engine or InProcess(threads=1), record_views=True)


def behind(federation):
    """The same behind hidden rows."""
    return federation.protect(aggregation=hr.SecAgg())


def values(fed):
    return np.column_stack([hr.engines.records(fed).columns[name] for name in NAMES])


@pytest.mark.slow
@pytest.mark.parametrize("engine", [Loop(), InProcess(threads=2)], ids=["loop", "threads"])
def test_stores_hold_their_values_standardised(engine):
    before = stores(engine=engine)
    found, x = hidden_standardise(behind(before), NAMES, **SHORT), values(before)
    np.testing.assert_allclose(values(found), (x - x.mean(0)) / x.std(0), atol=2.0**-20)
    np.testing.assert_array_equal(values(before), x)  # the first handle keeps what it had
    by_release = secure_scaling(stores(), NAMES).apply(stores())
    fits = [linear_regression(fed, "pain ~ age + visits").coef_ for fed in (found, by_release)]
    np.testing.assert_allclose(*fits, atol=1e-4)


def told(records):
    """All that stores get for some records but for the random bytes of letters, until a regression asks of them."""
    table = Table(SCHEMA.admit(SCHEMA.synthetic(18, np.random.default_rng(5))), SCHEMA)
    part = Table({name: column[records] for name, column in table.columns.items()}, SCHEMA)
    fed = simulate(part, iid(9), seed=1, engine=Watched(threads=1)).protect(aggregation=hr.SecAgg())
    SENT.clear()
    found = hidden_standardise(behind(fed), NAMES, **SHORT)
    asked = [(box.step, box.question, box.release) for box in SENT]
    got = [
        (step.name, len(step.letters["party 1"]), put.broadcast, str(put.local), str(release)) for step, put, release in asked
    ]
    linear_regression(found, "pain ~ age + visits")
    return got, found.schema, SENT[-1].question.view


@pytest.mark.slow
def test_stores_are_told_the_same_whatever_mean_and_scale_are():
    (some, schema, prepared), (others, *same) = told(slice(0, 9)), told(slice(9, 18))
    assert some == others
    assert [schema, prepared] == same
    assert [step for step, *_ in some][-2:] == ["scaling ask", "scaling reply"]
    assert (schema["age"].low, schema["age"].high) == (-16.0, 16.0)


@pytest.mark.slow
def test_the_server_gets_letters_of_strangers_keys_and_how_many_were_answered():
    fed = stores()
    hidden_standardise(behind(fed), NAMES, **SHORT)
    assert {seen.kind for seen in hr.engines.view(fed, "server")} == {"masked row", "release"}
    last = fed.ledger.entries[-1]
    assert (last.aggregation, last.query) == ("encrypted data request", "hedgerow.engines.standardised:record")
    assert hr.engines.view(fed, "server")[-1].values == [9.0]


@pytest.mark.parametrize("step", ["scaling ask", "scaling reply"])
def test_a_store_that_was_not_answered_leaves_the_federation(step):
    fed = stores(engine=Watched(threads=1, at=step, who=("party 3", "party 5")))
    found, x = hidden_standardise(behind(fed), NAMES, **SHORT), values(fed)
    assert set(fed.names) - set(found.members) == {"party 3", "party 5"}
    kept = [i for i, id in enumerate(fed.names) if id in found.members]
    np.testing.assert_allclose(values(found), ((x - x.mean(0)) / x.std(0))[kept], atol=2.0**-20)


@pytest.mark.slow
def test_standardised_stores_go_on_behind_masks():
    found = hidden_standardise(stores().protect(aggregation=hr.SecAgg(records=1)), NAMES, **SHORT)
    plain = linear_regression(secure_scaling(stores(), NAMES).apply(stores()), "pain ~ age + visits")
    np.testing.assert_allclose(linear_regression(found, "pain ~ age + visits").coef_, plain.coef_, atol=1e-4)


def test_what_cannot_be_standardised_is_refused_before_anybody_is_asked():
    fed = stores()
    for unfit in (stores(9, 3), fed.sample(size=5), secure_scaling(stores(), NAMES).apply(fed)):
        with pytest.raises(SettingsInvalid, match=r"HR-511[\s\S]*No party was asked"):
            hidden_standardise(behind(unfit), NAMES, **SHORT)
    with pytest.raises(SettingsInvalid, match="power of two"):
        hidden_standardise(behind(fed), NAMES, reach=10.0, **SHORT)
    with pytest.raises(UnboundedSum, match="'free'"):
        hidden_standardise(behind(fed), ["free"], **SHORT)
    with pytest.raises(RangeExceeded, match="HR-243"):
        hidden_standardise(behind(fed), NAMES, reach=2.0, **SHORT)
    assert [entry.query for entry in fed.ledger.entries] == ["hedgerow.stats.hidden.sso:squares"]
