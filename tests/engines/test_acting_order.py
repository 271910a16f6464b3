"""Liars below programs: several acts in their order, what parties keep, weights that stay, and a bound that nobody checks."""

from dataclasses import dataclass

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.attacks import InnerProduct, LabelFlip, Liars, RecordsAct, RowsAct, ScaledRows, Sybils
from hedgerow.core.federation import inside
from hedgerow.data import Column, Schema, Table, iid
from hedgerow.engines import Acting, InProcess, Loop
from hedgerow.engines import inprocess as fast_engine
from hedgerow.errors import SettingsInvalid

SCHEMA = Schema((Column("age", "number", low=0, high=1), Column("sick", "binary", role="target")))
TABLE = Table(SCHEMA.admit(SCHEMA.synthetic(200, np.random.default_rng(0))), SCHEMA)
LIARS = ("party 3", "party 7")


def federation(*acts, engine=InProcess, seed=1, **protection):
    made = hr.simulate(TABLE, iid(20), seed=seed, engine=engine(acts=Acting(Liars(LIARS, acts)) if acts else None))
    return made.protect(**protection)


def means(broadcast, party, rng):
    return {"update": (party["age"] * party.w).sum(keepdims=True), "n": party.w.sum(keepdims=True)}


means.travels = True


def begun(broadcast, party):
    return {"kept": np.zeros(1)}


def counted(broadcast, party, rng):
    party.state["kept"] = party.state["kept"] + party["sick"].sum(keepdims=True) + rng.random(1)
    return party.state["kept"] * 1.0


counted.travels = True


def updates(made, **more):
    return {name: float(row["update"][0]) for name, row in made.gather(means, **more).items()}


HONEST = updates(federation())


@pytest.mark.parametrize("engine", [InProcess, Loop])
@pytest.mark.parametrize("protection", [{}, {"clip": hr.l2(1e3)}])
def test_several_lies_are_told_one_after_the_other_and_closed_once(engine, protection):
    found = updates(federation(ScaledRows(5.0), Sybils(), engine=engine, **protection))
    assert found["party 3"] == found["party 7"] == pytest.approx(5 * HONEST["party 3"])
    assert {name: found[name] for name in found if name not in LIARS} == {
        name: HONEST[name] for name in HONEST if name not in LIARS
    }


def test_what_is_forged_comes_after_all_lies():
    for acts in ((ScaledRows(-4.0), ScaledRows(2.0, "forge")), (ScaledRows(2.0, "forge"), ScaledRows(-4.0))):
        assert updates(federation(*acts, clip=hr.l2(1e3)))["party 3"] == pytest.approx(-8 * HONEST["party 3"])


def test_the_weight_of_a_mean_stays_and_may_be_given_away():
    honest, lied = federation().sum(means), federation(ScaledRows(-4.0)).sum(means)
    assert lied["n"] == honest["n"]
    assert lied["update"] == pytest.approx(honest["update"] - 5 * (HONEST["party 3"] + HONEST["party 7"]))
    everything = Acting(Liars(LIARS, (ScaledRows(-4.0),), keeps=()))
    freed = hr.simulate(TABLE, iid(20), seed=1, engine=InProcess(acts=everything)).sum(means)
    assert freed["n"] == honest["n"] - 5 * 20


@pytest.mark.parametrize("knows", ["colluders", "all"])
@pytest.mark.parametrize("engine", [InProcess, Loop])
def test_honest_parties_keep_what_they_keep_without_liars(knows, engine):
    clip = {"clip": hr.l2(1e3), "mechanism": hr.Gaussian(1e-6)}
    kept = []
    for acts in ((), (InnerProduct(0.5, knows=knows),)):
        made = federation(*acts, engine=engine, **clip)
        for _ in range(3):
            made.sum(counted, init=begun)
        kept.append(inside(made).run.engine.held.states.committed(inside(made).run.counted))
    assert set(kept[0]) == set(kept[1])
    for name in set(kept[0]) - set(LIARS):
        assert kept[0][name]["kept"] == kept[1][name]["kept"]


def test_liars_keep_what_follows_from_the_records_that_they_made_up():
    made, honest = federation(LabelFlip("sick", 2)), federation()
    for one in (made, honest):
        one.sum(counted, init=begun)
        one.sum(counted, init=begun)
    mine, theirs = (inside(one).run.engine.held.states.committed(inside(one).run.counted) for one in (made, honest))
    held = inside(honest).run.engine.held
    for i, name in enumerate(held.ids):
        flipped = 2 * (10 - 2 * held[i]["sick"].sum()) if name in LIARS else 0.0
        assert mine[name]["kept"] == pytest.approx(theirs[name]["kept"] + flipped)


@dataclass(frozen=True)
class Longest(RowsAct):
    """Exactly the bound, by its direction."""

    radius: float
    kind: str = "forge"
    knows: str = "own"

    def rows(self, own, seen, moment):
        return np.full_like(own, self.radius / np.sqrt(own.shape[1]))


def alone(broadcast, party, rng):
    return np.repeat((party["age"] * party.w).sum(keepdims=True), 4)


alone.travels = True


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.01, 1e3, 1e6, -1e9])
def test_twenty_parties_and_a_clip_of_ten_forged_rows_move_a_total_by_at_most_the_bound(factor):
    clip = {"clip": hr.l2(10.0)}
    honest = federation(**clip).sum(alone)
    found = federation(Longest(10.0 * factor), **clip)
    rows = federation(**clip).gather(alone)
    others = honest - sum(rows[name] for name in LIARS)
    moved = np.linalg.norm(found.sum(alone) - others)
    assert moved <= 2 * 10.0 * (1 + 1e-9)
    assert (moved == pytest.approx(20.0 * factor)) if abs(factor) <= 1 else (moved < 1e-9)
    assert bool(inside(found).run.overlong) == (abs(factor) > 1)


def test_an_engine_that_holds_nothing_would_be_found_out(monkeypatch):
    monkeypatch.setattr(fast_engine, "held_to_bounds", lambda outbox, inbox: inbox)
    clip = {"clip": hr.l2(10.0)}
    moved = np.linalg.norm(federation(Longest(1e6), **clip).sum(alone) - federation(**clip).sum(alone))
    assert moved > 1e6


@dataclass(frozen=True)
class Fewer(RecordsAct):
    """Another number of records, which no act may make."""

    def records(self, columns, rng):
        return {"age": columns["age"][:3]}


def test_an_act_that_changes_how_many_records_there_are_is_refused():
    with pytest.raises(SettingsInvalid, match="as many records"):
        federation(Fewer()).sum(means)


def spread(broadcast, party, rng):
    return {"update": party["age"].sum() * np.arange(1.0, 41.0) + rng.random(40)}


spread.travels = True


@pytest.mark.parametrize("engine", [InProcess, Loop])
@pytest.mark.parametrize("protection", [{}, {"clip": hr.l2(1e4)}])
def test_a_lie_that_changes_nothing_keeps_what_a_compression_left_out(engine, protection):
    found = []
    for acts in ((), (ScaledRows(1.0),), (ScaledRows(2.0),)):
        made = federation(*acts, engine=engine, compression=hr.compression.TopK(0.2, smallest=1), **protection)
        found.append([{name: row["update"].tobytes() for name, row in made.gather(spread).items()} for _ in range(4)])
    assert found[0] == found[1]
    assert found[0] != found[2]
