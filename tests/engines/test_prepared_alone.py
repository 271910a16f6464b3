"""Preparations behind noise: whose records decide a prepared column, and what counts where a preparation fails."""

import logging

import numpy as np
import pytest
from spread import projected

import hedgerow as hr
from hedgerow.core import Federation, Parties
from hedgerow.core.question import Preparation, elementwise, local, travels
from hedgerow.core.randomness import Streams
from hedgerow.data import Column, Schema
from hedgerow.engines.shared import SharedParties
from hedgerow.errors import PartyDeclined
from hedgerow.testing.worlds import Silent

WIDTH = 30
SCHEMA = Schema((Column("x", "number", shape=(WIDTH,), low=-1.0, high=1.0),))
RECORDS = np.random.default_rng(3).uniform(-1, 1, (20, WIDTH))
RECORDS[:, 0] = 0.0
SECRET = "far out: 0.995"
ENGINES = pytest.mark.parametrize("engine", [hr.Loop, lambda: hr.InProcess(threads=1)], ids=["loop", "one-thread"])
KINDS = pytest.mark.parametrize("kind", ["own", "shared"])


@local(additive=True, stackable=True)
def last_bits(broadcast, party, rng):
    """A comparison for each number: it turns around with a last bit."""
    return (party.w[..., None] * np.where(party["projected"] > broadcast, 0.2, -0.2)).sum(-2)


@local(additive=True, stackable=True)
def total_of_z(broadcast, party, rng):
    return (party.w[..., None] * party["z"]).sum(-2)


PREPARED = []
"""How many records each party prepared."""


@travels
def counting(columns):
    PREPARED.append(len(columns["x"]))
    return {"z": np.asarray(columns["x"])[:, :3]}


@travels
def fussy(columns):
    if (np.asarray(columns["x"])[:, 0] > 0.99).any():
        raise ValueError(SECRET)
    return {"z": np.asarray(columns["x"])[:, :3]}


@travels
@elementwise
def fussy_and_elementwise(columns):
    return fussy(columns)


def heard(x, sizes, engine, kind, ask, mechanism=None):
    """The exact total that goes into noise."""
    silent = Silent(mechanism or hr.Gaussian(1.0))
    names = [f"p{k}" for k in range(len(sizes))]
    held = Parties(names, {"x": x}, sizes) if kind == "own" else SharedParties(names, {"x": x}, sizes, np.arange(len(x)))
    fed = Federation(engine().hosting(held), SCHEMA, Streams(0)).protect(mechanism=silent)
    ask(fed)
    total, plan = silent.heard[-1]
    return np.concatenate([total[block.part] * float(block.step) for block in plan])


@ENGINES
@KINDS
def test_behind_a_bound_per_record_each_record_is_prepared_alone(engine, kind):
    x = RECORDS.astype(np.float32)
    alone = np.concatenate([projected({"x": x[i : i + 1].copy()}, width=10)["projected"] for i in range(20)])
    together = projected({"x": x}, width=10)["projected"]
    threshold = np.minimum(alone[0], together[0])  # at which the first record turns where bits differ
    wanted = np.where(alone > threshold, 0.2, -0.2).sum(0)
    for sizes in ([20], [3, 17], [1, 0, 19]):
        found = heard(
            x, sizes, engine, kind,
            lambda fed: fed.prepare(projected, width=10).sum(last_bits, threshold, bound=hr.l2(1.0, "record")),
        )  # fmt: skip
        np.testing.assert_allclose(found, wanted, atol=1e-5)


@ENGINES
@KINDS
@pytest.mark.parametrize("prepare", [fussy, fussy_and_elementwise])
def test_a_record_that_cannot_be_prepared_is_left_out(engine, kind, prepare, caplog):
    bad = np.full((1, WIDTH), 0.0)
    bad[0, 0] = 0.995
    with caplog.at_level(logging.ERROR, "hedgerow"):
        totals = [
            heard(x, sizes, engine, kind, lambda fed: fed.prepare(prepare).sum(total_of_z, bound=hr.l2(2.0, "record")))
            for x, sizes in ((RECORDS, [4, 16]), (np.concatenate([bad, RECORDS]), [5, 16]), (bad, [1, 0]))
        ]
    np.testing.assert_array_equal(totals[0], totals[1])
    np.testing.assert_allclose(totals[0], RECORDS[:, :3].sum(0), atol=1e-5)
    assert not totals[2].any()


@ENGINES
@KINDS
@pytest.mark.parametrize("prepare", [fussy, fussy_and_elementwise])
def test_a_party_that_cannot_prepare_counts_as_zeros(engine, kind, prepare):
    bad = np.full((1, WIDTH), 0.0)
    bad[0, 0] = 0.995
    totals = [
        heard(x, sizes, engine, kind, lambda fed: fed.protect(clip=hr.l2(4.0)).prepare(prepare).sum(total_of_z))
        for x, sizes in ((RECORDS, [0, 20]), (np.concatenate([bad, RECORDS]), [1, 20]))
    ]
    np.testing.assert_array_equal(totals[0], totals[1])
    assert totals[0].any()


@ENGINES
@KINDS
@pytest.mark.parametrize("prepare", [fussy, fussy_and_elementwise])
def test_without_noise_a_preparation_that_fails_is_a_refusal_that_quotes_nothing(engine, kind, prepare):
    x = RECORDS.copy()
    x[3, 0] = 0.995
    held = Parties(["a", "b"], {"x": x}, [5, 15]) if kind == "own" else SharedParties(["a", "b"], {"x": x}, [5, 15], range(20))
    fed = Federation(engine().hosting(held), SCHEMA, Streams(0))
    with pytest.raises(PartyDeclined) as refused:
        fed.prepare(prepare).sum(total_of_z)
    assert SECRET not in str(refused.value)


@travels
def of_another_type(columns):
    """A preparation whose type follows from a record, against its contract."""
    x = np.asarray(columns["x"])[:, :3]
    return {"z": x if (x > 0.9).any() else x.astype(np.float32)}


@local
def doubled(broadcast, party, rng):
    """What a type decides: the rounding of a quotient."""
    return np.asarray((party["z"] / np.float32(3.0)).sum(0), np.float64)


@ENGINES
def test_not_even_the_type_of_a_column_follows_from_another_party(engine):
    wild = np.zeros((1, WIDTH))
    wild[0, :3] = 0.95, 0.0, 0.0
    calm = np.clip(RECORDS, -0.8, 0.8)
    fine = hr.Gaussian(1e-7)
    totals = [
        heard(x, sizes, engine, "own", lambda fed: fed.protect(clip=hr.l2(40.0)).prepare(of_another_type).sum(doubled), fine)
        for x, sizes in ((calm, [0, 20]), (np.concatenate([wild, calm]), [1, 20]))
    ]
    step = totals[1] - totals[0]
    assert step[0] == pytest.approx(0.95 / 3, abs=1e-5)
    assert not step[1:].any()


def test_a_machine_without_the_memory_that_a_record_asks_for_says_nothing():
    x = RECORDS.copy()
    x[3, 0] = 0.995
    totals = [
        heard(held, sizes, hr.Loop, "own", lambda fed: fed.protect(clip=hr.l2(4.0)).sum(wants_memory))
        for held, sizes in ((RECORDS[5:], [0, 15]), (np.concatenate([x[:5], RECORDS[5:]]), [5, 15]))
    ]
    np.testing.assert_array_equal(totals[0], totals[1])


@local
def wants_memory(broadcast, party, rng):
    if (party["x"][:, 0] > 0.99).any():
        raise MemoryError("of 8 PiB")
    return party["x"].sum(0)


@travels
def without_the_first(columns):
    """Fails for a record at -1."""
    if (np.asarray(columns["x"]) < 0).any():
        raise ValueError("a record that cannot be prepared")
    return {"twice": 2 * np.asarray(columns["x"])}


@pytest.mark.parametrize("shared", [False, True])
def test_who_joins_a_sample_does_not_depend_on_who_could_be_prepared(shared):
    """Two questions to one cohort of records are one sample, also where one of them leaves a record out."""
    x = np.concatenate([[-1.0], np.arange(40.0), [-1.0], np.arange(40.0, 60.0)])
    sizes, rows = [41, 21], np.arange(62)
    held = SharedParties(["a", "b"], {"x": x}, sizes, rows) if shared else Parties(["a", "b"], {"x": x}, sizes)
    view = (Preparation(without_the_first),)
    prepared = held.prepared(view, together=False, singly=True)
    assert prepared.sizes.tolist() == [40, 20]
    for i in range(2):
        one, other = (
            parties.sampled(i, 0.5, Streams(0).entropy(1, parties.ids[i], "records"))["x"] for parties in (held, prepared)
        )
        assert 0 < len(other) < sizes[i] - 1
        np.testing.assert_array_equal(np.asarray(other), np.asarray(one)[np.asarray(one) >= 0])


@pytest.mark.parametrize("engine", [hr.Loop, lambda: hr.InProcess(threads=1)], ids=["loop", "one-thread"])
def test_only_parties_that_are_asked_prepare_columns(engine):
    PREPARED.clear()
    sizes = [1, 2, 3, 4, 10]
    held = Parties([f"p{k}" for k in range(5)], {"x": RECORDS.astype(np.float32)}, sizes)
    fed = Federation(engine().hosting(held), SCHEMA, Streams(0)).protect(mechanism=hr.Gaussian(1.0))
    ready = fed.prepare(counting).pick(["p1", "p3"])
    ready.sum(total_of_z, bound=hr.l2(1.0, "party"))
    assert {2, 4} <= set(PREPARED)
    assert not {3, 10} & set(PREPARED)
