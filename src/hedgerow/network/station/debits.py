"""Who of the parties that are asked can pay, and what a question is charged to whom."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .accounts import Account
from .children.facts import AskedQuestion
from .journal import PartyCharge, pack_parties

log = logging.getLogger("hedgerow")


@dataclass(frozen=True)
class Debits:
    """What a question costs, before it is in the journal.

    Attributes
    ----------
    charges : tuple of PartyCharge
        For the journal.
    entries : list of (Account, array of positions, Entry, payment)
        For the accounts, once the journal has the charges.
    """

    charges: tuple[PartyCharge, ...] = ()
    entries: Sequence[tuple[Account, np.ndarray, Any, Any]] = ()

    def enter(self) -> None:
        """Charge the accounts."""
        for account, whom, entry, payment in self.entries:
            account.add(whom, entry, payment)


def debited(
    accounts: Mapping[str, Account], question: AskedQuestion, which: np.ndarray, ids: Sequence[str]
) -> tuple[AskedQuestion, Debits]:
    """Decide who can pay: the question to those, and what is charged to them.

    Parameters
    ----------
    accounts : mapping
        "all", over everything, and "study".
    which : array of int, shape (k,)
        Positions of the parties that are asked.
    ids : sequence of str
        All parties here.

    Raises
    ------
    BudgetExhausted (HR-213), ProtectionRequired (HR-606), MixedUnits (HR-215)
        Nobody can.
    """
    if not question.bears:
        return question, Debits()
    decided = {name: account.decide(which, question.guarded[account.trust], question.ids) for name, account in accounts.items()}
    paying = decided["all"].admitted & decided["study"].admitted
    errors = decided["all"].codes | decided["study"].codes
    if not paying.any():
        raise next(iter(errors.values()))
    charges, entries = [], []
    for name, decision in decided.items():
        if accounts[name].unlimited:
            continue  # what was asked is in the journal all the same
        for entry, payment, places in decision.entries:
            whom = which[places[paying[places]]]
            if len(whom) and payment is not None:
                entries.append((accounts[name], whom, entry, payment))
                charges.append(PartyCharge(name, entry.to_json(), pack_parties(whom, ids)))
    for k, error in errors.items():
        log.info("%s: its guard declined %s: %s", question.ids[k], question.name, error.reason)
    if errors:
        codes = {question.ids[k]: error.code for k, error in errors.items()}
        question = replace(question, ids=tuple(id for id in question.ids if id not in codes), declined=codes)
    return question, Debits(tuple(charges), entries)
