"""One party by itself: what its row may depend on where noise pays for the bound, and what is held fixed for that.

    may decide its bits         its records, weights and state; the broadcast and the settings; its own randomness; the
                                installed libraries and the processor
    must not                    held fixed by
    other parties               one call for each party, with preparations of its own
    where arrays lie in memory  moving them to places of their own
    threads of an engine        one thread for a product
    flags of a thread           ordinary arithmetic, without flush-to-zero, whatever the thread had before

`Release.by_itself` says when, and why. Sums of what the parties then send are of whole numbers, which add up in any order.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from hedgerow.core.answer import answer
from hedgerow.core.arrays import Array, Layout
from hedgerow.core.columns import placed
from hedgerow.core.engine import Outbox, declined
from hedgerow.core.party import OwnColumns, Parties
from hedgerow.core.records import scaled_by_records
from hedgerow.errors import HedgerowError

from .threads import threads_for_each


def prepared(held: Parties, outbox: Outbox, *, together: bool) -> Parties:
    """The parties with the columns that a question reads, prepared by each itself where each computes by itself.

    Where noise is scaled by a bound per record, each record is prepared by itself.

    Raises
    ------
    PartyDeclined (HR-221)
        All records are prepared in one call, without noise, and that fails.
    """
    view, singly = outbox.question.view, scaled_by_records(outbox.release)
    if outbox.by_itself or singly:
        with threads_for_each(1), ordinary_arithmetic():
            parties = held.prepared(view, together=False, singly=singly)
            if isinstance(parties, OwnColumns):
                parties.prepare(outbox.ids)
            return parties
    try:
        return held.prepared(view, together=together)
    except HedgerowError:
        raise
    except Exception as error:  # what it says may quote a record
        raise declined("a party" if len(outbox.ids) > 1 else outbox.ids[0], error) from error


def answered(outbox: Outbox, parties: Parties, which: Array) -> tuple[Layout, Array] | None:
    """`answer`, by whoever computes by itself in the same surroundings whatever else goes on."""
    if not outbox.by_itself:
        return answer(outbox, parties, which)
    with threads_for_each(1), ordinary_arithmetic():
        return answer(outbox, parties, which)


def at_places(outbox: Outbox) -> Outbox:
    """The outbox with its broadcast and the arrays among its settings at places of their own, once for all parties."""
    if not outbox.by_itself:
        return outbox
    question = outbox.question
    told = question.broadcast
    moved: Any = {key: _moved(value) for key, value in told.items()} if isinstance(told, dict) else _moved(told)
    arrays = {name: placed(value) for name, value in question.settings.items() if type(value) is np.ndarray}
    ask = partial(question.local, **arrays) if arrays else question.local
    return replace(outbox, question=replace(question, broadcast=moved, local=ask))


def _moved(value: Any) -> Any:
    return placed(value) if type(value) is np.ndarray else value


@contextmanager
def ordinary_arithmetic() -> Iterator[None]:
    """Let this thread compute as IEEE 754 says, with subnormal numbers and rounding to nearest, and put its flags back."""
    functions = _environment()
    if functions is None:
        yield
        return
    get, put = functions
    before = ctypes.create_string_buffer(ENVIRONMENT)
    get(before)
    put(DEFAULT)
    try:
        yield
    finally:
        put(before)


ENVIRONMENT = 256
"""Bytes that hold a floating-point environment of any system."""

DEFAULT = ctypes.c_void_p(-1)
"""How the C library of Linux names its ordinary environment, FE_DFL_ENV."""


@lru_cache
def _environment() -> tuple[Any, Any] | None:
    """`fegetenv` and `fesetenv`; None where they are not known, and nobody can set the flags as easily."""
    try:
        library = ctypes.PyDLL("libm.so.6") if sys.platform == "linux" else None
        return None if library is None else (library.fegetenv, library.fesetenv)
    except (OSError, AttributeError):
        return None
