"""A handle is closed: what a program may not do with it is refused, or there is no way to try.

A program in one process is Python, and Python that imports the waist's inner modules can do anything; `scripts/check` refuses
such imports in rooms of programs. What is tested here is that the handle itself gives no way.
"""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.channel import Channel
from hedgerow.core.cohort import Cohort
from hedgerow.core.events import Event, Sampling
from hedgerow.core.federation import Federation, inside
from hedgerow.errors import BudgetExhausted, BudgetInvalid, SlotFilled, UnboundedSum, UnlawfulChannel
from hedgerow.store import LedgerFile
from helpers import Hiding, federation, totals

BUDGET = hr.Budget(epsilon=5.0, delta=1e-5)


@pytest.fixture
def private() -> Federation:
    """A federation that its caller protected: clip, noise, hidden rows and a budget."""
    protected = federation().protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(2.0), aggregation=Hiding())
    return protected.within(BUDGET)


@pytest.mark.parametrize(
    "slot",
    [
        {"clip": hr.l2(100.0)},
        {"mechanism": hr.Gaussian(1e-6)},
        {"aggregation": replace(Hiding(), name="open", hides_rows=False)},
    ],
    ids=lambda slot: next(iter(slot)),
)
def test_a_filled_slot_is_not_replaced(private: Federation, slot: dict[str, Any]) -> None:
    with pytest.raises(SlotFilled):
        private.protect(**slot)


@pytest.mark.parametrize(
    "change",
    [
        lambda fed: replace(fed, channel=Channel()),
        lambda fed: setattr(fed, "channel", Channel()),
        lambda fed: object.__setattr__(fed, "channel", Channel()),
        lambda fed: setattr(fed, "cohort", Cohort(("party 1",), Sampling("poisson", 1e-6), 7)),
        lambda fed: setattr(fed, "run", None),
        lambda fed: vars(fed),
        lambda fed: fed.__dict__,
        lambda fed: fed.__getstate__()["run"],
        lambda fed: pickle.dumps(fed),
    ],
    ids=["replace", "channel", "object", "cohort", "run", "vars", "dict", "state", "pickle"],
)
def test_nothing_of_a_handle_is_reached_or_set(private: Federation, change: Any) -> None:
    with pytest.raises((AttributeError, TypeError)):
        change(private)
    assert private.protection.noisy
    assert private.protection.hides_rows


def test_copies_are_the_handle_itself(private: Federation) -> None:
    assert copy.copy(private) is private
    assert copy.deepcopy(private) is private


HIDDEN = (
    "engine",
    "channel",
    "run",
    "streams",
    "views",
    "sessions",
    "cohort",
    "held",
    "clock",
    "on",
    "watch",
    "view",
    "layouts",
)


@pytest.mark.parametrize("name", HIDDEN)
def test_there_is_no_attribute_for_protection_randomness_or_records(private: Federation, name: str) -> None:
    assert not hasattr(private, name)


def test_no_public_attribute_leads_to_records_or_to_what_can_be_changed(private: Federation) -> None:
    """Everything that a handle gives without being called, and everything that these give, is a plain value or read-only."""
    private.sum(totals)
    plain = (str, bool, int, float, tuple, type(None), hr.Budget)
    for name in (name for name in dir(private) if not name.startswith("__")):
        value = getattr(private, name)
        if callable(value) or name in ("schema", "protection"):
            continue
        if name != "ledger":
            assert isinstance(value, plain), name
    inner = [name for name in dir(private.ledger) if not name.startswith("__")]
    assert inner == [
        "_repr_html_",
        "charges",
        "entries",
        "epsilon",
        "head",
        "limit",
        "others",
        "own",
        "since",
        "to_frame",
        "uses",
    ]


def test_what_a_ledger_shows_is_a_copy(private: Federation) -> None:
    private.sum(totals)
    shown = private.ledger.to_frame()
    shown.loc[0, "charge"] = "nothing"
    assert private.ledger.to_frame().loc[0, "charge"] == str(private.ledger.entries[0].event)
    assert "gaussian" in private.ledger._repr_html_()


def test_the_ledger_is_not_written(private: Federation) -> None:
    private.sum(totals)
    spent = private.ledger.charges("party")
    private.ledger.entries.clear()
    private.ledger.entries.append(private.ledger.entries[0])
    with pytest.raises(AttributeError):
        private.ledger.limit = None  # type: ignore[misc]
    with pytest.raises(AttributeError):
        private.ledger.debit(private.ledger.entries[0])  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        private.ledger.entries[0].event = None  # type: ignore[misc, assignment]
    assert private.ledger.charges("party") == spent
    assert len(private.ledger) == 1


def test_the_budget_is_not_replaced_and_holds_for_every_handle(private: Federation) -> None:
    with pytest.raises(SlotFilled):
        private.within(hr.Budget(epsilon=1e6, delta=1e-5))
    with pytest.raises(BudgetExhausted):
        list(map(private.prepare(doubled).aside().sum, [totals] * 100))
    with pytest.raises(BudgetInvalid):
        private.within(BUDGET)  # too late
    with pytest.raises(BudgetExhausted):
        private.sum(totals)


def test_a_cohort_is_drawn_by_the_federation_alone(private: Federation) -> None:
    cohort = private.sample(rate=0.5)
    for forge in (lambda: cohort.sample(rate=1e-6), lambda: cohort.pick(["party 1"]), lambda: cohort.split(2)):
        with pytest.raises(BudgetInvalid):
            forge()
    with pytest.raises(BudgetInvalid):
        private.pick(["nobody"])
    with pytest.raises(TypeError):
        private.sum(totals, cohort=Cohort(("party 1",)))  # type: ignore[call-arg]


def test_raw_records_are_not_gathered_through_a_protected_channel(private: Federation) -> None:
    with pytest.raises(UnlawfulChannel):
        private.gather(totals)


@pytest.mark.parametrize("purpose", ["noise", "cohort", "groups", "turns", "threshold", "noise of node 0 on level 0 of a tree"])
def test_a_program_does_not_draw_the_noise_again(private: Federation, purpose: str) -> None:
    with pytest.raises(BudgetInvalid, match="draws noise"):
        private.stream(1, purpose)
    assert 0 <= private.stream(1, "order").random() < 1


def doubled(columns: Any) -> dict[str, Any]:
    return {"x": 2 * np.asarray(columns["x"])}


# ---- ways by which handles were once opened -------------------------------------------------------------------------
class Agreeable(hr.Budget):
    """A budget that claims to be any other."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = hr.Budget.__hash__


class AgreeableBound(type(hr.l2(1.0))):  # type: ignore[misc]
    """A bound that claims to be any other."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = type(hr.l2(1.0)).__hash__


def test_what_is_filled_decides_what_is_the_same() -> None:
    small = federation().protect(clip=hr.l2(0.1)).within(hr.Budget(0.01, 1e-6))
    with pytest.raises(SlotFilled):
        small.protect(clip=AgreeableBound(2, 100.0))
    with pytest.raises(SlotFilled):
        small.within(Agreeable(1e9, 1e-6))
    assert small.protect(clip=hr.l2(0.1)).protection.clip == hr.l2(0.1)
    assert small.within(hr.Budget(0.01, 1e-6)).ledger.limit == hr.Budget(0.01, 1e-6)


def test_what_is_shown_is_a_copy(private: Federation) -> None:
    private.sum(totals)
    charges = str(private.ledger.charges("party"))
    vars(private.ledger.entries[0])["cites"] = 1
    [sampling, [event]] = private.ledger.charges("party")[0]
    for shown in (private.ledger.entries[0], private.ledger.since(0)[0]):
        vars(shown.event)["kind"] = vars(event)["kind"] = "none"
        vars(shown.sampling)["kind"] = vars(sampling)["kind"] = "records"
    object.__setattr__(private.ledger.limit, "epsilon", 1e6)
    assert str(private.ledger.charges("party")) == charges
    assert private.ledger.limit == BUDGET
    clips = {"a": hr.l2(0.1)}
    clipped = federation().protect(clip=clips)
    clips["a"] = clipped.protection.clip["a"] = hr.l2(100.0)
    assert handle_clip(clipped) == {"a": hr.l2(0.1)}


def handle_clip(fed: Federation) -> Any:
    return inside(fed).channel.clip


def test_a_record_is_not_replaced(tmp_path: Path) -> None:
    kept = federation().recorded(LedgerFile(tmp_path / "owner"))
    with pytest.raises(BudgetInvalid, match="would replace it"):
        kept.recorded(LedgerFile(tmp_path / "program"))


@pytest.mark.parametrize("purpose", ["noise", "noise/a", "noise of node 0", "cohort", 3])
def test_streams_from_which_the_waist_draws_are_refused(private: Federation, purpose: Any) -> None:
    with pytest.raises(BudgetInvalid):
        private.stream(1, purpose)
    with pytest.raises(BudgetInvalid):
        private.stream("aside 1", "order")  # type: ignore[arg-type]


def test_a_stream_does_not_know_its_name() -> None:
    fed = federation(seed=7)
    stream, again = fed.stream(1, "mine"), fed.stream(1, "mine")
    assert "7" not in str(stream._name)
    assert stream.entropy(8) == again.entropy(8)
    assert fed.stream(1, "other").entropy(8) != fed.stream(1, "mine").entropy(8)


class FreePlan:
    """States that it costs nothing."""

    unit, key, covered, span = "party", None, False, ""

    def event(self) -> Event:
        return Event("none")


def leak(broadcast: Any, party: Any, rng: Any, *, plan: FreePlan) -> Any:
    return np.array([party.n])


leak.private = "plan"  # type: ignore[attr-defined]


def test_a_plan_of_no_known_kind_is_refused(private: Federation) -> None:
    with pytest.raises(UnboundedSum, match="states no cost"):
        federation().gather(partial(leak, plan=FreePlan()))


INNER: dict[str, Any] = {}


def asks_again(broadcast: Any, party: Any, rng: Any) -> Any:
    INNER["refused"] = ""
    try:
        INNER["federation"].sum(totals)
    except UnlawfulChannel as error:
        INNER["refused"] = error.reason
    return totals(broadcast, party, rng)


def test_a_question_within_a_question_is_refused(private: Federation) -> None:
    INNER["federation"] = private
    private.sum(asks_again)
    assert "under way" in INNER["refused"]
    assert [entry.round for entry in private.ledger.entries] == [1]
