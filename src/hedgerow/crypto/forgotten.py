"""What becomes of a protocol between parties that one of them has forgotten, as a party that was started again has.

the hub learns nothing of it    it begins anew within its question, when all parties are there
otherwise                       the round ends without a total (HR-241): whoever asked may ask anew
refused in its first step       the party declined (HR-221), and would again
"""

from __future__ import annotations

from collections.abc import Mapping

from hedgerow.core.engine import Engine, Outbox
from hedgerow.errors import MessageRefused, RoundRefused


def may_begin_anew(engine: Engine, outbox: Outbox, codes: Mapping[str, str]) -> bool:
    """Whether parties have only forgotten a protocol; those elsewhere may be away, and are waited for (`Network.again`)."""
    again = getattr(engine, "again", None)
    if again is None:
        return set(codes.values()) == {MessageRefused.code}
    return not set(codes.values()) - {MessageRefused.code} and bool(again(outbox.ids))


def was_under_way(engine: Engine, steps: int, codes: Mapping[str, str]) -> bool:
    """Whether parties elsewhere refused after so many steps what they had begun, and nothing else."""
    return hasattr(engine, "again") and steps > 1 and set(codes.values()) == {MessageRefused.code}


def unfinished(outbox: Outbox, codes: Mapping[str, str]) -> RoundRefused:
    """The error of a protocol that parties do not go on with."""
    refused = ", ".join(f"{id}: {code}" for id, code in codes.items())
    return RoundRefused(
        f"{outbox.question.name} between {', '.join(outbox.ids)} was not carried to its end: {refused}.",
        remedy="Ask anew: a party that was started again has forgotten the protocol that was under way.",
    )
