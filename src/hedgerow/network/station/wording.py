"""A rehearsal in words, as rows of text that are kept with a submission: for the terminal and for the console page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hedgerow.study import Rehearsal


Row = Mapping[str, str]


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


def summary_of(rehearsal: Rehearsal) -> str:
    """How long the program is, and what its releases guarantee, in two sentences."""
    ended = rehearsal.ended.rstrip(".")
    return f"{rehearsal.parties} parties; on made-up records the program {ended}. {rehearsal.statement.text}"
