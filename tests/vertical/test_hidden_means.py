"""Means by group over a join that nobody sees: the pooled means, small groups left out, and what stays secret."""

import dataclasses
from functools import partial

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.core.desk import MemoryDesk
from hedgerow.core.engine import Outbox
from hedgerow.core.events import Event
from hedgerow.core.question import Question
from hedgerow.crypto.paillier import PaillierKey
from hedgerow.crypto.psi import JoinSums, join_sums
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import (
    AlignmentRefused,
    BudgetExhausted,
    IdsInvalid,
    NotAligned,
    PartyDeclined,
    ProtectionRequired,
    SchemaInvalid,
    SettingsInvalid,
    UnboundedSum,
)
from hedgerow.network.station.apart import admit_asked
from hedgerow.network.station.config import GuardSection
from hedgerow.vertical import hidden_means
from hedgerow.vertical.hidden_sums import HiddenJoin, HiddenUnit, _count_join, hidden_columns
from hedgerow.wire.question import Received

KEY = PaillierKey.fresh(2048)
SHORT = JoinSums(least=5, bits=2048, small_domain="accepted")


@pytest.fixture(autouse=True)
def one_key(monkeypatch):
    monkeypatch.setattr(join_sums.PaillierKey, "fresh", classmethod(lambda cls, bits, insecure: KEY))


LEVELS = ("f", "m", "x")
TAX = Schema(
    (
        Column("nin", "integer"),
        Column("salary", "number", low=0, high=100),
        Column("children", "integer", low=0, high=20),
    )
)
TOWN = Schema(
    (Column("nin", "integer"), Column("gender", "category", levels=LEVELS), Column("age", "integer", low=0, high=120))
)


def tables(changed=()):
    """A tax office with people 0 to 79, a town with people 119 to 40; and the pooled ones."""
    rng = np.random.default_rng(0)
    gender = rng.integers(0, 2, 120)
    gender[list(changed)] = 2
    everybody = pd.DataFrame(
        {
            "nin": rng.permutation(10**6)[:120],
            "salary": rng.normal(40, 10, 120).round(1),
            "children": rng.integers(0, 4, 120),
            "gender": gender,
            "age": rng.integers(20, 65, 120),
        }
    )
    tax, town = everybody.iloc[:80], everybody.iloc[:39:-1]
    held = {
        "tax": Table({name: tax[name].to_numpy(float) for name in TAX.names}, TAX, "tax"),
        "town": Table({name: town[name].to_numpy(float) for name in TOWN.names}, TOWN, "town"),
    }
    return held, everybody.iloc[40:80].assign(gender=lambda frame: [LEVELS[code] for code in frame["gender"]])


@pytest.fixture
def apart():
    return hr.simulate(tables()[0], on="nin", seed=0)


def test_mean_salary_by_gender_is_that_of_the_pooled_people(apart):
    found = hidden_means(apart, "salary", "gender", on="nin", settings=SHORT)
    pooled = tables()[1].groupby("gender")["salary"].agg(["size", "mean"])
    assert found.means.loc[pooled.index, "count"].tolist() == pooled["size"].tolist()
    assert np.abs(found.means.loc[pooled.index, "salary"] - pooled["mean"]).max() <= found.step["salary"] / 2
    assert "town saw how many people of each of its groups of 5 or more tax has" in str(found)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [hr.Loop, lambda: hr.Processes(2)], ids=["loop", "processes"])
def test_every_engine_gives_the_same_means(apart, engine):
    elsewhere = hr.simulate(tables()[0], on="nin", seed=0, engine=engine())
    found = [hidden_means(one, "children", "gender", on="nin", settings=SHORT).means for one in (apart, elsewhere)]
    pd.testing.assert_frame_equal(*found)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_v7_a_row_without_an_id_is_refused(missing):
    frame = pd.DataFrame({"nin": ["a", missing, "c"], "age": [1, 2, 3]})
    with pytest.raises(IdsInvalid, match="1 rows of town"):
        hr.simulate({"town": frame, "tax": pd.DataFrame({"nin": ["a", "b"], "pay": [1, 2]})}, on="nin", seed=0)


def test_v7_a_missing_category_is_not_the_last_one():
    people = Schema((Column("nin", "category", levels=("a", "b"), optional=True), Column("age", "integer")))
    held = Table({"nin": np.array([0, -1]), "age": np.array([1.0, 2.0])}, people, "town")
    with pytest.raises(IdsInvalid, match="1 rows of town"):
        hr.simulate({"town": held, "tax": pd.DataFrame({"nin": ["a", "b"], "pay": [1, 2]})}, on="nin", seed=0)


def test_the_ledger_has_exact_sums_and_a_budget_refuses_them(apart):
    hidden_means(apart, "salary", "gender", on="nin", settings=SHORT)
    (entry,) = apart.ledger.entries
    assert entry.numbers == 6
    assert entry.aggregation == "hidden join"
    assert entry.event == Event("nonprivate")
    limited = hr.simulate(tables()[0], on="nin", seed=0).within(hr.Budget(epsilon=1.0, delta=1e-6, unit="record"))
    with pytest.raises(BudgetExhausted):
        hidden_means(limited, "salary", "gender", on="nin", settings=SHORT)


def test_whole_numbers_are_not_rounded(apart):
    found = hidden_means(apart, "children", "gender", on="nin", settings=SHORT)
    pooled = tables()[1].groupby("gender")["children"].mean()
    assert found.step["children"] == 1
    assert found.means.loc[pooled.index, "children"].tolist() == pytest.approx(pooled.tolist(), rel=1e-15)


def test_several_columns_at_once():
    settings = dataclasses.replace(SHORT, value_bits=10)
    apart = hr.simulate(tables()[0], on="nin", seed=0)
    found = hidden_means(apart, ["children", "salary"], "gender", on="nin", settings=settings)
    pooled = tables()[1].groupby("gender")[["children", "salary"]].mean()
    assert np.abs(found.means.loc[pooled.index, ["children", "salary"]] - pooled).to_numpy().max() <= found.step["salary"] / 2


def test_v11_small_groups_are_left_out():
    held, pooled = tables(changed=range(40, 44))
    found = hidden_means(hr.simulate(held, on="nin", seed=0), "salary", "gender", on="nin", settings=SHORT).means
    assert np.isnan(found.loc["x"]).all()
    assert found["count"].notna().sum() == 1, "the total less the others would tell of x, so that the next smallest is left out"
    assert len(pooled) - found["count"].sum() > 4


def test_short_keys_do_not_travel(apart):
    with pytest.raises(SettingsInvalid, match="short keys"):
        hidden_means(apart, "salary", "gender", on="nin", settings=dataclasses.replace(SHORT, bits=512, insecure=True))


def test_a_station_refuses_what_it_does_not_count_yet():
    question = Question("sum", partial(hidden_columns, on="nin", groups={}, values={}), None, None, None, (), None, "", 1)
    join = HiddenJoin(SHORT, "nin", "town", "gender", 3, "tax", (("salary", 0.0, 1.0, 7),))
    guard = GuardSection(vertical={"alignment": True, "seats": True})
    with pytest.raises(ProtectionRequired, match="hidden join"):
        admit_asked(guard, Received(Outbox(("tax",), question), join), on="nin", here=80, others=["town"])


def test_no_group_told_is_a_refusal(apart):
    with pytest.raises(AlignmentRefused):
        hidden_means(apart, "salary", "gender", on="nin", settings=JoinSums(least=35, bits=2048, small_domain="accepted"))


def test_v12_a_list_is_joined_once_in_a_study():
    desk = MemoryDesk()
    _count_join("tax", desk, [b"a", b"b"])
    with pytest.raises(NotAligned, match="another list"):
        _count_join("tax", desk, [b"a", b"c"])
    with pytest.raises(NotAligned, match="joined its list before"):
        _count_join("tax", desk, [b"b", b"a"])


def test_v12_a_second_table_of_a_study_is_refused(apart):
    hidden_means(apart, "salary", "gender", on="nin", settings=SHORT)
    with pytest.raises(PartyDeclined, match="HR-248"):
        hidden_means(apart, "children", "gender", on="nin", settings=SHORT)


def test_v11_a_level_for_each_person_is_refused_before_a_count_is_there(monkeypatch):
    """The review's attack: who is on the other list, read from a count for each person."""
    counted = []
    honest = JoinSums.lawful
    monkeypatch.setattr(JoinSums, "lawful", lambda self, n, *rest: counted.append(n) or honest(self, n, *rest))
    ids = [f"person-{i}-{i * 7919 % 10007}" for i in range(48)]
    groups = pd.DataFrame({"id": ids, "level": [f"l{i:02d}" for i in range(48)]})
    values = pd.DataFrame({"id": [*ids[::2], *(f"other-{i}" for i in range(40))], "v": np.arange(64)})
    held = {
        "groups": Table.from_frame(groups, declared={"id": {"many": True}, "level": {"many": True}}),
        "values": Table.from_frame(values, declared={"id": {"many": True}}).declare(v=(0, 127)),
    }
    settings = JoinSums(bits=2048, small_domain="accepted")
    with pytest.raises(PartyDeclined, match="HR-246"):
        hidden_means(hr.simulate(held, on="id", seed=0), "v", by="level", on="id", settings=settings)
    assert counted == []


def test_what_cannot_be_joined_is_refused(apart):
    with pytest.raises(SchemaInvalid, match="of one party"):
        hidden_means(apart, "age", "gender", on="nin", settings=SHORT)
    with pytest.raises(SchemaInvalid, match="of one party"):
        hidden_means(apart, ["age", "salary"], "gender", on="nin", settings=SHORT)
    pooled = pd.DataFrame({"gender": ["f", "m"], "salary": [1.0, 2.0]})
    with pytest.raises(NotAligned):
        hidden_means(
            hr.simulate(pooled, partition=hr.data.iid(parties=1), seed=0), "salary", "gender", on="nin", settings=SHORT
        )


def test_duplicates_are_refused_at_home_and_only_the_code_leaves():
    held, _ = tables()
    held["tax"].columns["nin"][0] = held["tax"].columns["nin"][1]
    with pytest.raises(PartyDeclined) as caught:
        hidden_means(hr.simulate(held, on="nin", seed=0), "salary", "gender", on="nin", settings=SHORT)
    assert "HR-413" in str(caught.value)
    assert "of 80 ids" not in str(caught.value)


def test_a_column_without_a_range_has_no_unit():
    with pytest.raises(UnboundedSum):
        HiddenUnit.of(Column("salary", "number"), 20)
    unit = HiddenUnit.of(Column("salary", "number", low=0, high=100_000.0), 20)
    assert unit.step == 0.125
    assert unit.bits == 20
    assert unit.numbers([-5.0, 0.13, 100_000.0, 1e9]).tolist() == [0, 1, 800_000, 2**20 - 1]
