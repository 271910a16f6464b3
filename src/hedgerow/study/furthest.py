"""A rehearsal taken as far as a program may go: questions that made-up records did not lead to, behind noise.

    rehearsed   H, H                    made-up records, or their noise, opened no further node
    the most    H, H, H, H              `Declaration.most`: a level of a tree is asked for four times at most
    announced   H, H, H, H              the last one of its kind stands for those that were left out

A stop that follows from noisy answers costs nothing and may come in a run, but neither a plan of noise nor a statement may
count on it: both are made of the most that a run may spend. Exact questions are not taken further: nothing is planned for them.
"""

from __future__ import annotations

from dataclasses import replace

from hedgerow.core.ledger import Ledger
from hedgerow.errors import BudgetExhausted

from .build import Built


def taken_furthest(built: Built, ledger: Ledger) -> str:
    """Debit what a program may ask beyond what was rehearsed, and say so; "" where that is nothing."""
    declared, added = built.listing.most, 0
    for name, most in (declared(built.settings, built.schema) if declared else {}).items():
        asked = [entry for entry in ledger.entries if entry.query.rpartition(":")[2] == name]
        if not asked or asked[-1].free or asked[-1].event.open or asked[-1].key:
            continue  # a key shares noise among questions, and what further ones cost is not what this one did
        for _ in range(most - len(asked)):
            number = max(entry.round for entry in ledger.entries) + 1
            try:
                ledger.debit(replace(asked[-1], round=number))
            except BudgetExhausted as refusal:
                return f"; {_more(added)}, after which the budget ends it: {refusal.reason}"
            added += 1
    return f"; {_more(added)}" if added else ""


def _more(added: int) -> str:
    return f"real records may lead to {added} more question{'s' * (added != 1)}, which are counted here"
