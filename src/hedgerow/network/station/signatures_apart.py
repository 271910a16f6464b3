"""Kinds of questions to parties with columns of their own, by the protocol that carries each.

A rehearsal has made-up people, and how many are common is known after an alignment alone: numbers of people are no part of a
kind. All other settings of a protocol are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from hedgerow.core.apart import alignment, alignment_of
from hedgerow.core.engine import Outbox
from hedgerow.wire.question import Received

from .counts import broadcasts_of, numbers_of
from .signatures import Announced, QuestionSignature, radii_of, settled, signature_of
from .wear import ANY

PEOPLE = {"n": 0, "alignment": "", "bits": None, "hub_reach": None}
"""Settings of a protocol that follow from an alignment, and what stands for them: how many people are common, the name of the
alignment, the fixed point that so many people leave room for, and how far the hub's own rows reach."""


def without_people(aggregation: Any) -> Any:
    """A protocol without the settings that follow from an alignment."""
    if not is_dataclass(aggregation) or isinstance(aggregation, type):
        return aggregation
    of = {one.name for one in fields(aggregation) if one.init and one.name in PEOPLE}
    return replace(aggregation, **{name: PEOPLE[name] for name in of})


def as_announced(question: Received) -> Received:
    """A question as kinds have it."""
    return Received(_unnamed(question.outbox), without_people(question.aggregation))


def kind_apart(outbox: Outbox, aggregation: Any) -> QuestionSignature:
    """The kind of a question that goes by a protocol, or by none."""
    return signature_of(_unnamed(outbox), settled(without_people(aggregation)), rows=False)


def _unnamed(outbox: Outbox) -> Outbox:
    """A question without the name of its alignment, which is the number of the question by which it was made."""
    view = outbox.question.view
    if alignment_of(view) is None:
        return outbox
    return replace(outbox, question=replace(outbox.question, view=(alignment(""), *view[1:])))


def announced_apart(
    asked: Iterable[tuple[Outbox, Any, bytes | None]],
    ends: list[int],
    whole: bool,
    most: tuple[int | None, bool],
    openings: int = 0,
) -> Announced:
    """The kinds of a rehearsal's questions.

    Parameters
    ----------
    asked : iterable of (Outbox, protocol, digest of the broadcast)
    ends : list of int
        After how many questions each round was over.
    most
        How many rounds there may be: see `counts.most_rounds`.
    openings : int
        Of a fit whose steps follow from its answers, how many it may take.
    """
    kinds, sent = list[QuestionSignature](), dict[QuestionSignature, list[bytes | None]]()
    found: dict[QuestionSignature, dict[str, float]] = {}
    for outbox, aggregation, digest in asked:
        kinds.append(kind_apart(outbox, aggregation))
        sent.setdefault(kinds[-1], []).append(digest)
        radii = found.setdefault(kinds[-1], {})
        radii |= {key: min(radius, radii.get(key, math.inf)) for key, radius in radii_of(outbox).items()}
    broadcasts = broadcasts_of(sent)
    silent = [kind for kind, sends in broadcasts.items() if sends == "none"]
    numbers = numbers_of(kinds, silent, ends, whole, *most)
    for kind, n in numbers.items():
        if kind.verb == "each" and broadcasts[kind] != "none":
            numbers[kind] = ANY  # in batches, of which there are as many as people are common
        elif n != ANY:
            numbers[kind] = max(n, openings)
    return Announced(found, dict.fromkeys(sent, -1), numbers, broadcasts)
