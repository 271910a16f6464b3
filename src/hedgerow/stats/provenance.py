"""What a fit says of where it comes from: who was asked, what left them, and how it was protected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hedgerow.core.bound import describe
from hedgerow.core.federation import Federation
from hedgerow.data.cases import cases_of


def provenance(federation: Federation, asked_before: int = 0, columns: Sequence[str] = ()) -> dict[str, Any]:
    """Return `n_parties`, `n_missing`, `left`, `protection` and `cases` of a fit of these columns.

    `asked_before` is the ledger's length before it.

    Of a cohort whose parties joined by chance the expected number is told: how many came is a secret.
    """
    return {
        "n_parties": round(federation.expected_size),
        "n_missing": federation.missing,
        "left": left_of(federation, asked_before),
        "protection": protection_of(federation),
        "cases": cases_of(federation, columns) if columns else None,
    }


def left_of(federation: Federation, asked_before: int) -> str:
    """Say what each party was asked for since, and how often."""
    asked = [entry.contribution or entry.query for entry in federation.ledger.since(asked_before) if entry.verb != "each"]
    times = {1: "once", 2: "twice"}
    return "; ".join(f"{what}, {times.get(n, f'{n} times')}" for what, n in Counter(asked).items())


def protection_of(federation: Federation) -> str:
    """Say how sums were protected."""
    found = federation.protection
    clip = "" if found.clip is None else f"clip {describe(found.clip)}; "
    if not federation.protection.noisy:
        return (
            f"{clip}{found.aggregation} aggregation, no mechanism: {found.meaning}; this release is not differentially private"
        )
    return (
        f"{clip}{found.mechanism}, {found.aggregation} aggregation: {found.meaning}; "
        "no standard errors, since noise in the information would pass for certainty"
    )
