"""A program of columns that lie apart up to its first question, which is not asked: what it refuses of them it refuses now."""

from __future__ import annotations

from contextlib import suppress

from hedgerow.core.federation import Federation, inside
from hedgerow.core.randomness import Streams

from ..first_question import FirstQuestion, Nobody
from .opened import aligned_of
from .protocols import protocol_of
from .ready import BuiltApart


def refuse_unasked(built: BuiltApart) -> None:
    """Run a program up to its first question with the declared columns of each party.

    As many people count as common as the shortest list has, since how many there are is not known before the alignment.

    Raises
    ------
    HedgerowError
        A formula, a model or a setting that does not fit the columns, or a column without a range that it needs.
    """
    from hedgerow.vertical.aligned import aligned_before

    section = built.study.alignment
    assert section is not None
    federation = Federation(Nobody(tuple(built.held)), None, Streams(built.study.simulation_seed))
    inside(federation).run.schemas = built.schemas
    n = min(map(len, built.held.values()))
    handle = aligned_of(built, federation, lambda: aligned_before(federation, section.on, protocol_of(section), "0", n))
    bound = {name: make(built, built.settings) for name, make in built.listing.bind.items()}
    own = {key: value for key, value in built.settings.items() if key not in built.listing.keys}
    given = (lambda: handle) if built.listing.takes == "anew" else handle
    with suppress(FirstQuestion):
        next(built.listing.function(given, **own, **bound, start=None), None)
