"""Who saw what: a sentence for each thing that a role received, and the letters behind it, in bytes and rounds."""

from __future__ import annotations

from hedgerow.report.markup import Html, tag
from hedgerow.report.model import Grid, Report
from hedgerow.report.tables import table

TITLE = "Who saw what"
LETTERS = "Letters between roles"
NOTE = (
    "Everything that each role received beside its own records. Letters between parties are sealed end to end: the hub "
    "carries them and sees their sizes."
)
_NOTHING = "Nothing."


def seen_section(report: Report) -> Html | None:
    """The section of a report, where parties held different columns; None elsewhere."""
    if not report.saw:
        return None
    return tag(
        "section",
        tag("h2", TITLE),
        tag("p", NOTE, class_="note"),
        tag("dl", *(_role(role, said) for role, said in report.saw), class_="saw"),
        _letters(report.traffic) if report.traffic is not None else None,
    )


def _role(role: str, said: tuple[str, ...]) -> Html:
    return tag("div", tag("dt", role), tag("dd", tag("ul", *(tag("li", one) for one in said or (_NOTHING,)))))


def _letters(grid: Grid) -> Html:
    note = tag("p", grid.note, class_="note") if grid.note else None
    return tag("div", tag("h3", grid.title), note, table(grid), class_="letters")
