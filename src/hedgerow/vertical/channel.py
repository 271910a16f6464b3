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


def provenance(aligned: Any, asked_before: int, columns: int) -> dict[str, Any]:
    """`n_parties`, `n_missing`, `left` and `protection` of a fit; `asked_before` is the length of the ledger before it."""
    asked = len(aligned.ledger) - asked_before
    found = aligned.protection
    said = (
        f"{found.mechanism} in the shares: {found.meaning}; no standard errors, since noise in the information would pass for "
        "certainty"
        if found.noisy
        else "shares behind one-time pads, totals are opened, no mechanism: this release is not differentially private"
    )
    return {
        "n_parties": len(aligned.names),
        "n_missing": 0,
        "left": f"pads and shares, uniform without their counterparts, of {columns} columns; {asked} questions",
        "protection": said,
    }
