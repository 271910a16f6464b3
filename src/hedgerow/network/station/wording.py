"""A rehearsal in words, as rows of text that are kept with a submission: for the terminal and for the console page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hedgerow.study import Rehearsal


Row = Mapping[str, str]

SHOWN = 100
"""Parties of a gateway whose costs are looked at for a summary."""


def plain(text: str) -> str:
    """A stranger's text on one line, and nothing in it that a terminal would obey or a reader not see."""
    return "".join(c if c.isprintable() else " " if c in "\n\t\r" else "\ufffd" for c in text)


def rows_of(rehearsal: Rehearsal) -> list[dict[str, str]]:
    """One row for each run of equal questions, in the words of `hedgerow rehearse`."""
    rows = []
    for first, last in rehearsal.runs():
        entry, (bound, mechanism) = rehearsal.entries[first], rehearsal.entries[first].protection
        expected = ", expected" if entry.sampling.kind == "poisson" else ""
        leaves = f"{entry.numbers or '?'} numbers from each: {entry.contribution}" if entry.verb != "each" else "nothing"
        spent = [rehearsal.epsilon_after(first + 1), rehearsal.epsilon_after(last + 1)]
        at = "" if rehearsal.ledger.limit is not None else f" at delta {rehearsal.statement.delta:g}; the study sets no budget"
        said = ["not private" if value is None else f"{value:.4g}" for value in spent]
        row = {
            "questions": f"question {first + 1}" if first == last else f"questions {first + 1} to {last + 1}",
            "asks": f"{entry.verb} of {entry.query}",
            "asked of": f"{entry.sampling}: {entry.parties:g} of {rehearsal.parties}{expected}",
            "leaves": leaves,
            "bound": bound,
            "mechanism": f"{mechanism}, {entry.aggregation} aggregation",
            "event": str(entry.event),
            "epsilon": said[0] if said[0] == said[1] else f"{said[0]} after the first, {said[1]} after the last",
        }
        if entry.compression != "none":
            row["compression"] = f"{entry.compression}: {entry.bytes_up:,.0f} bytes from each"
        if spent[-1] is not None:
            row["epsilon"] += at
        rows.append(row)
    return rows


def summary_of(rehearsal: Rehearsal, ids: Sequence[str] = ()) -> str:
    """How long the program is, and what its releases guarantee: everybody, and the parties `ids` by their own noise."""
    ended = rehearsal.ended.rstrip(".")
    said = f"{rehearsal.parties} parties; on made-up records the program {ended}. {rehearsal.statement.text}"
    return f"{said} {own_cost(rehearsal, ids)}".rstrip()


def own_cost(rehearsal: Rehearsal, ids: Sequence[str]) -> str:
    """What a study costs parties whose own noise is another than that of the most open one; "" where it is the same for all."""
    from hedgerow.privacy.accounting import epsilon
    from hedgerow.study.party_budgets import charges_at

    if not any(entry.by_party for entry in rehearsal.entries):
        return ""
    delta, budgets = rehearsal.statement.delta, rehearsal.study.party_budgets
    found, allowed = set[float](), set[str]()
    for id in ids[:SHOWN]:
        charges = charges_at(id, rehearsal.entries)
        if id in budgets:
            allowed.add(str(budgets[id].budget()))
            found.add(budgets[id].budget().spent(charges))
        else:
            found.add(epsilon(charges, delta=delta, adjacency="add-remove"))
    told = " to ".join(dict.fromkeys(f"{end:.4g}" for end in (min(found), max(found))))
    of = f"of the {allowed.pop()} that the study allows" if len(allowed) == 1 else f"at delta {delta:g} per record"
    return f"By the noise that is added here: epsilon {told}, {of}."
