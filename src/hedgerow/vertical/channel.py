"""What statistics over columns that lie apart ask of a handle, and what they say of it."""

from __future__ import annotations

from typing import Any

from hedgerow.errors import UnlawfulChannel

LEAST = 10
"""People of a group, by default, and of all others."""


def least_of(aligned: Any, least: int | None = None) -> int:
    """The fewest people that a number may be about: those of the alignment, or more; none where noise hides them."""
    if is_noisy(aligned):
        return 0
    return max(LEAST if (found := getattr(aligned, "least", None)) is None else int(found), least or 0)


def is_noisy(aligned: Any) -> bool:
    """Whether totals arrive with noise."""
    return bool(aligned.protection.noisy)


def refuse_noise(aligned: Any, what: str, remedy: str) -> None:
    """Refuse a question that only exact numbers answer.

    Raises
    ------
    UnlawfulChannel (HR-211)
    """
    if not aligned.protection.exact:
        raise UnlawfulChannel(f"{what}, and this channel clips or adds noise.", remedy=remedy)


def begun(aligned: Any) -> tuple[int, int]:
    """How long the ledger and the list of traffic are, before a fit."""
    return len(aligned.ledger), len(aligned.traffic)


def provenance(aligned: Any, before: tuple[int, int], columns: int) -> dict[str, Any]:
    """`n_parties`, `n_missing`, `left` and `protection` of a fit, since `begun`."""
    questions, traffic = len(aligned.ledger) - before[0], aligned.traffic[before[1] :]
    sent: dict[str, int] = {}
    for one in traffic:
        for (sender, _), size in one.bytes.items():
            sent[sender] = sent.get(sender, 0) + size
    by_role = ", ".join(f"{role} {size / 1e6:.3g} MB" for role, size in sorted(sent.items()))
    found = aligned.protection
    said = (
        f"{found.mechanism}: {found.meaning}; no standard errors, since noise in the information would pass for certainty"
        if found.noisy
        else "shares behind one-time pads, totals are opened, no mechanism: this release is not differentially private"
    )
    return {
        "n_parties": len(aligned.names),
        "n_missing": 0,
        "left": f"pads and shares of {columns} columns, uniform without their counterparts: {questions} questions in "
        f"{sum(one.rounds for one in traffic)} rounds; sent by {by_role or 'nobody'}",
        "protection": said,
    }
