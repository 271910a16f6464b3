"""Small things that a station needs to answer a question: accounts, codes, parts of questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from hedgerow.core.conversation import Step
from hedgerow.engines.host import code_of
from hedgerow.errors import ContributionInvalid, HedgerowError, PartyDeclined, RangeExceeded
from hedgerow.privacy.guard import Trust
from hedgerow.wire.envelope import KeyMaterial, PublicIdentity
from hedgerow.wire.question import Received

from .accounts import Account
from .config import BudgetLimit, GuardSection
from .journal import PartyCharge, unpack_parties
from .local_data import Roll
from .wording import plain

GUARD = "guard"
"""Who decided, where no person did."""


class Keys(Protocol):
    """Private keys and trusted public identities, as they are now; `hedgerow.network.identity.key_folder.KeyFolder` is one."""

    @property
    def key_material(self) -> KeyMaterial: ...

    @property
    def public_identities(self) -> Mapping[str, PublicIdentity]: ...


class Reply(NamedTuple):
    """What goes back."""

    kind: str
    parts: Sequence[bytes]


def account_of(limit: BudgetLimit | None, held: Roll, *, own: bool = False) -> Account:
    """An account of all parties; `own` says that stores may have smaller budgets of their own."""
    if limit is None:
        return Account((None,), np.zeros(len(held.ids), np.int64), "nobody")
    if not own:
        return Account((limit.budget(),), np.zeros(len(held.ids), np.int64), limit.trust)
    own_limits = [None if epsilon is None else min(epsilon, limit.epsilon) for epsilon in held.epsilons]
    return Account([limit.budget(epsilon) for epsilon in own_limits], held.policy, limit.trust)


def accounts_of(guard: GuardSection, roll: Roll, charges: Iterable[PartyCharge]) -> list[Account]:
    """Accounts over everything, with what was charged to it, and over a study that has asked nothing."""
    everything, position = account_of(guard.budget, roll, own=True), {id: i for i, id in enumerate(roll.ids)}
    charge_all(everything, charges, position)
    return [everything, account_of(guard.study_budget, roll)]


def charge_all(account: Account, charges: Iterable[PartyCharge], position: dict[str, int]) -> None:
    """Enter charges of a journal into an account."""
    for charge in charges:
        account.add(unpack_parties(charge.parties, position), charge.entry(), None)


def trusts_of(guard: GuardSection) -> set[Trust]:
    """Whose noise counts, in the accounts of a guard."""
    return {"nobody" if limit is None else limit.trust for limit in (guard.budget, guard.study_budget)}


def said(error: Exception) -> tuple[str, str]:
    """The code of an error, which may leave, and its sentence, which stays."""
    if not isinstance(error, HedgerowError):
        return code_of(error), plain(f"{type(error).__name__}: {error}")
    cause = error.__cause__
    why = f" Because: {cause}" if isinstance(error, PartyDeclined) and cause is not None else ""
    return code_of(error), plain(f"{error.reason}{why}")


OUTSIDE = "a contribution was outside the range that it was asked in: more such refusals would tell of records"
"""Why a study is taken back that may find out by refusals what hidden rows or noise would not tell."""


def protects(question: Received) -> bool:
    """Whether hidden rows or the parties' own noise keep records from the server that asks."""
    hidden = question.step is not None and question.step.contributes
    return hidden or question.outbox.release.before_server


def tells(protected: bool, codes: Iterable[str]) -> bool:
    """Whether refusals of single parties depend on their records, and tell what hidden rows or noise would not.

    A server that chooses ranges can ask whether a row lies in them, and find the row by halving.
    """
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
