"""What the ledger says of the noise in one release: its standard deviation in every number, from the event that was charged.

It is computed from the event and the bound, and not asked of the mechanism, so that a mechanism which draws other noise than it
charges for is found out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hedgerow.attacks.audits.noise_laws import NoiseLaw
from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import blocks
from hedgerow.core.engine import Outbox
from hedgerow.errors import SettingsInvalid

LONG_TAILS = ("laplace", "pure")
"""Events of two-sided exponential noise; the others are of normal noise."""


@dataclass(frozen=True)
class Claim:
    """The noise of one release as it was charged.

    Attributes
    ----------
    deviation : array of shape (size,)
        Of the whole noise in each number that was released, of all who added it.
    law : NoiseLaw
        Of a number's noise over its deviation.
    """

    deviation: Array
    law: NoiseLaw


def claim_of(outbox: Outbox, layout: Layout, answered: int) -> Claim:
    """What was charged for one release.

    Parameters
    ----------
    answered : int
        Parties, whose shares of the noise are in the total where they add it.

    Raises
    ------
    SettingsInvalid (HR-511)
        An audit does not know the law of this noise.
    """
    release, name = outbox.release, outbox.question.name
    refuse_unknown(outbox)
    event, bounds, mechanism = release.event, release.bounds, release.mechanism
    if bounds is None or mechanism is None:
        raise SettingsInvalid(f"{name} was released without noise.", remedy="Audit a study whose sums are noisy.")
    multiplier = 1 / event.epsilon if event.kind == "pure" else event.noise_multiplier
    if mechanism.at == "party" and release.unit == "party":
        multiplier *= 2  # what was charged is the distance of two contributions
    parts, deviation = blocks(bounds, layout), np.empty(layout.size)
    for part, bound in parts:
        d = part.stop - part.start
        if event.kind in LONG_TAILS:
            scale = multiplier * len(parts) * bound.distance(1, d)
            deviation[part] = scale * math.sqrt(2) if event.kind == "laplace" else math.sqrt(0.5) / math.sinh(0.5 / scale)
        else:
            deviation[part] = multiplier * math.sqrt(len(parts)) * bound.distance(2, d)
    adders = {
        "server": 1.0,
        "aggregators": float(max(mechanism.aggregators, 1)),
        "shares": answered / max(mechanism.least, 1),
        "party": float(answered),
    }[mechanism.at]
    steps = float(deviation.min()) if event.kind == "pure" and len(deviation) else math.inf  # noise is of whole numbers
    return Claim(deviation * math.sqrt(adders), NoiseLaw.summed(event, adders, steps))


def refuse_unknown(outbox: Outbox) -> None:
    """Refuse a release whose noise an audit cannot follow, and say why."""
    release, question = outbox.release, outbox.question
    why = ""
    if release.plan is not None:
        why = f"each party adds its own noise inside the local function ({release.plan}), and no exact total is known beside it"
    elif question.verb == "gather":
        why = "every party's noisy contribution is released by itself, and canaries are looked for in totals"
    elif release.key is not None:
        why = "its noise is shared with other questions, so that releases are not independent"
    elif release.compression is not None:
        why = f"it is compressed ({release.compression}), and decoded noise has another law than that which is charged"
    elif release.event.kind not in ("gaussian", "skellam", *LONG_TAILS) or (release.event.kind == "pure") != release_counts(
        outbox
    ):
        why = f"its event is {release.event}, of which the noise is not known number by number"
    elif outbox.keeps_state:
        why = "parties keep what they left out of earlier answers, so that asking them again has another answer"
    elif release.unit == "record" and not question.additive:
        why = "it is no sum over records, so that what one record adds is not known"
    if why:
        raise SettingsInvalid(
            f"{question.name} cannot be audited: {why}.",
            remedy="Audit a study of noisy sums, such as dpsgd or dp_fedavg; docs/auditing.md lists which cannot be.",
        )


def release_counts(outbox: Outbox) -> bool:
    """Whether the mechanism is noise on whole numbers that states a pure epsilon."""
    return getattr(outbox.release.mechanism, "law", None) == "geometric"
