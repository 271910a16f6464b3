"""Cards of plans of owners."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from hedgerow.market.plans.owners_plan import OwnersPlan
from hedgerow.market.plans.plan_page import alternatives, curve, facts, owners_grid
from hedgerow.report import Card

from . import values


@singledispatch
def card(value: Any) -> Card:
    """The card of a forecast and the like; of an unknown one its numbers and arrays."""
    return values.card(value)


@card.register
def _(plan: OwnersPlan) -> Card:
    return Card(
        kind="plan of owners",
        title=plan.title,
        facts=facts(plan),
        tables=(owners_grid(plan), alternatives(plan)),
        figures=(curve(plan),),
        text=(("Assumed", "\n".join(plan.assumptions)), ("Not seen", "\n".join(plan.unseen))),
        said=(plan.sentence(),),
    )
