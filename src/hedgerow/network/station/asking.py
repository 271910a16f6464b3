"""Small things that a station needs to answer a question: accounts, codes, parts of questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hedgerow.core.conversation import Step
from hedgerow.engines.host import code_of
from hedgerow.errors import ContributionInvalid, HedgerowError, PartyDeclined, RangeExceeded
from hedgerow.wire.question import Received

from .accounts import Account
from .config import BudgetLimit
from .local_data import Roll
from .wording import plain


class Reply(NamedTuple):
    """What goes back."""

    kind: str
    parts: Sequence[bytes]


def account_of(limit: BudgetLimit | None, held: Roll, *, own: bool = False) -> Account:
    """An account of all parties; `own` says that stores may have budgets of their own."""
    if limit is None:
        return Account((None,), np.zeros(len(held.ids), np.int64), "nobody")
    if not own:
        return Account((limit.budget(),), np.zeros(len(held.ids), np.int64), limit.trust)
    return Account([limit.budget(epsilon) for epsilon in held.epsilons], held.policy, limit.trust)


def said(error: Exception) -> tuple[str, str]:
    """The code of an error, which may leave, and its sentence, which stays."""
    if not isinstance(error, HedgerowError):
        return code_of(error), plain(f"{type(error).__name__}: {error}")
    cause = error.__cause__
    why = f" Because: {cause}" if isinstance(error, PartyDeclined) and cause is not None else ""
    return code_of(error), plain(f"{error.reason}{why}")


OUTSIDE = "a contribution was outside the range that it was asked in: more such refusals would tell of records"
"""Why a study is taken back that may find out by refusals what hidden rows or noise would not tell."""


def tells(question: Received, codes: Iterable[str]) -> bool:
    """Whether refusals of single parties depend on their records, and tell what hidden rows or noise would not.

    A server that chooses ranges can ask whether a row lies in them, and find the row by halving.
    """
    hidden = question.step is not None and question.step.contributes
    protected = hidden or question.outbox.release.at_parties
    return protected and not {RangeExceeded.code, ContributionInvalid.code, PartyDeclined.code}.isdisjoint(codes)


def bears(question: Received) -> bool:
    """Whether an answer is made from records; the other steps of a conversation carry keys and shares."""
    return question.step is None or question.step.contributes


def only(question: Received, ids: tuple[str, ...]) -> Received:
    """A question to some of its parties."""
    step = question.step
    if step is not None:
        step = Step(step.name, {id: step.letters[id] for id in ids}, step.contributes)
    return replace(question, outbox=replace(question.outbox, ids=ids, step=step))
