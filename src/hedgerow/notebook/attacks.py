"""Cards of attacks and audits: pictures made of gradients, labels that were read off, what audits found."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from hedgerow.attacks.audits.ceiling import RATES, AttackCeiling
from hedgerow.attacks.audits.law import LawTest
from hedgerow.attacks.audits.one_run import OneRunBound
from hedgerow.attacks.audits.power import FAULTS, AuditPower
from hedgerow.attacks.observers.inferred_labels import InferredLabels
from hedgerow.attacks.observers.inversion import Inverted
from hedgerow.report import Card, Grid
from hedgerow.report.pictures import Picture, PictureRow, Pictures

from . import values

SHOWN = 24
"""Pictures of a card."""


@singledispatch
def card(value: Any) -> Card:
    """The card of what an attack or an audit found; of others their numbers and arrays."""
    return values.card(value)


@card.register
def _(test: LawTest) -> Card:
    rows = tuple((part.name, part.says, part.light, part.leaks, part.spares) for part in test.parts)
    columns = ("part", "found", "light", "chance of so much leak", "chance of so much noise")
    note = f"Chances are of right code; red below {test.parts[0].share:.2g} each, {test.level:g} for all parts together."
    return Card(
        kind=f"law test: {test.light}",
        facts=(("canaries", test.canaries), ("releases", test.releases)),
        tables=(Grid("Held against the ledger", columns, rows, note),),
        said=(str(test),),
    )


@card.register
def _(bound: OneRunBound) -> Card:
    return Card(kind="bound from one run", facts=values.facts_of(bound), said=(str(bound),))


@card.register
def _(power: AuditPower) -> Card:
    rows = tuple((name, power.by_canaries(*fault), power.by_noise(fault[0])) for name, fault in FAULTS.items())
    note = f"Chance of a red light at level {power.level:g}, by canaries and by what is left in all directions."
    return Card(
        kind="power of an audit",
        facts=(("canaries", power.canaries), ("level", power.level)),
        tables=(Grid("Would see", ("fault", "by canaries", "by noise"), rows, note),),
        said=(str(power),),
    )


@card.register
def _(ceiling: AttackCeiling) -> Card:
    rows = [
        ("area under the curve", ceiling.area, ceiling.budget.area),
        ("advantage", ceiling.advantage, ceiling.budget.advantage),
    ]
    rows += [(f"true positives at {rate:.1%} false ones", ceiling.at(rate), ceiling.budget.power(rate)) for rate in RATES]
    return Card(
        kind="ceiling of attacks",
        facts=(("epsilon", ceiling.epsilon), ("delta", ceiling.delta)),
        tables=(Grid("At most", ("", "this mechanism", "any mechanism of this epsilon"), tuple(rows)),),
        said=(str(ceiling),),
    )


@card.register
def _(found: Inverted) -> Card:
    shape = found.images.shape[1:]
    drawn = (_drawn(found),) if len(shape) == 2 or (len(shape) == 3 and shape[0] == 3) else ()
    facts = (("pictures", len(found.images)), ("records in the sum", found.records), ("parties", found.parties))
    misfit = (("misfit", found.misfit),) if np.isfinite(found.misfit) else ()
    return Card(kind="gradient inversion", title=f"by {found.by}", facts=(*facts, *misfit), pictures=drawn)


def _drawn(found: Inverted) -> Pictures:
    images = found.images[:SHOWN]
    labels = [""] * len(images) if found.labels is None else found.labels[:SHOWN].tolist()
    low, high = min(float(images.min()), 0.0), max(float(images.max()), 1.0)
    groups = tuple(
        (Picture.of(image, str(label), f"picture {k + 1}", low=low, high=high),)
        for k, (image, label) in enumerate(zip(images, labels, strict=True))
    )
    size = f"{_or_unknown(found.records)} records of {_or_unknown(found.parties)} parties in the sum"
    return Pictures("Reconstructions", (PictureRow("Reconstructions", size, groups),))


@card.register
def _(found: InferredLabels) -> Card:
    counts = ", ".join(f"{label}: {n}" for label, n in enumerate(found.counts.tolist()) if n)
    facts = (("records in the sum", found.records), ("parties", found.parties))
    return Card(kind="inferred labels", facts=facts, said=(f"records of each class: {counts}",))


def _or_unknown(number: float | None) -> str:
    return "unknown" if number is None else f"{number:g}"
