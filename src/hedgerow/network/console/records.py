"""The journal, and what a station shows the world."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.core.disclosure import rounded
from hedgerow.data import Column
from hedgerow.network.station.cohorts import cohort_notes
from hedgerow.network.station.journal import StationEntry
from hedgerow.network.station.submissions import Submission
from hedgerow.report.markup import Html, tag

from .frame import Frame, page
from .reading import clean, meaning_of, title_of, when

WORDS = {
    ("board", "waiting"): "Asked to board; waits for a decision",
    ("board", "approved"): "Asked to board; told that it is approved",
    ("board", "refused"): "Asked to board; told that it is refused",
    ("board", "ended"): "Asked to board; told that it has ended",
    ("decision", "approved"): "Approved",
    ("decision", "refused"): "Refused",
    ("ask", "asked"): "A question came",
    ("ask", "answered"): "It was answered",
    ("end", "ended"): "The study ended",
}
"""What entries of the journal mean."""


def journal(
    frame: Frame, entries: Sequence[StationEntry], submissions: Sequence[Submission], chain: tuple[bool, str], older: int | None
) -> str:
    """The journal, newest first."""
    titles = {submission.study: title_of(submission) for submission in submissions}
    whole, words = chain
    notes = cohort_notes(entries)
    rows = [entry_row(frame, entry, times, titles, notes.get(entry.number, "")) for entry, times in newest(entries)]
    names = ("When", "Study", "What happened", "In", "Out", "Epsilon by then")
    head = tag("thead", tag("tr", *(tag("th", name, class_="number" if name in ("In", "Out") else None) for name in names)))
    section = tag(
        "section",
        tag("p", words, class_="chain" if whole else "chain broken"),
        tag("table", head, tag("tbody", *rows), class_="list") if rows else tag("p", "Nothing was asked yet.", class_="more"),
        tag("p", tag("a", "Older entries", href=f"/journal?before={older}"), class_="more") if older else None,
    )
    return page(frame, "/journal", "Journal", tag("div", section, class_="alone"))


def newest(entries: Sequence[StationEntry]) -> list[tuple[StationEntry, int]]:
    """Entries with the newest first, and how often each came: a study that waits asks again and again."""
    found: list[tuple[StationEntry, int]] = []
    for entry in reversed(entries):
        last, times = found[-1] if found else (None, 0)
        if last is not None and entry.kind == "board" and alike(entry) == alike(last):
            found[-1] = last, times + 1
        else:
            found.append((entry, 1))
    return found


def alike(entry: StationEntry) -> tuple[str, ...]:
    """What entries agree in that are told as one."""
    return entry.kind, entry.study, entry.code, entry.reason


def entry_row(frame: Frame, entry: StationEntry, times: int, titles: dict[str, str], note: str = "") -> Html:
    """An entry of the journal, or several that are alike; with a note of whom a total is."""
    title = titles.get(entry.study) or f"study {entry.study[:8]}"
    where = tag("a", title, href=f"/studies/{entry.study}") if entry.study in titles else title
    spent = "" if entry.epsilon is None else f"{entry.epsilon:.3g}"
    about = [tag("p", said(entry) + repeated(times))]
    if entry.function and entry.kind == "ask":
        about.append(tag("p", entry.function))
    if note:
        about.append(tag("p", clean(note, 600)))
    if entry.reason:
        about.append(tag("p", clean(entry.reason, 600)))
    return tag(
        "tr",
        tag("td", when(entry.at, frame.timezone), class_="time"),
        tag("td", where),
        tag("td", *about),
        tag("td", size(entry.bytes_in), class_="number", data_name="in"),
        tag("td", size(entry.bytes_out), class_="number", data_name="out"),
        tag("td", spent, class_="number", data_name="epsilon"),
    )


def repeated(times: int) -> str:
    """How often something happened."""
    return f" ({times} times)" if times > 1 else ""


def said(entry: StationEntry) -> str:
    """What an entry means, in words."""
    known = WORDS.get((entry.kind, entry.code))
    if known is not None:
        return f"{known}, and was charged" if entry.charges else known
    meaning = meaning_of(entry.code)
    return f"Refused with {entry.code}: {meaning}" if meaning else f"{entry.kind}: {entry.code}"


def size(n: int) -> str:
    """Bytes."""
    return "" if not n else f"{n:,} B" if n < 10_000 else f"{n / 1e3:,.0f} kB" if n < 10**7 else f"{n / 1e6:,.0f} MB"


# ---- what others see ------------------------------------------------------------------------------------------------
def shown(frame: Frame, n_parties: int | None, records: int | None, version: str, rules: Sequence[tuple[str, str]]) -> str:
    """What a coordinator learns without asking anything, and the guard."""
    config = frame.config
    told = f"about {rounded(records):,}" if config.guard.tell_records and records is not None else "not told"
    parties = "" if n_parties is None else f"{n_parties:,}" + (" stores" if config.stores else "")
    sees = [("Name", config.name), ("Data", config.data.name), ("Parties", parties), ("Records", told), ("Version", version)]
    head = tag("thead", tag("tr", *(tag("th", name) for name in ("Column", "Kind", "Range or levels", "Unit", "Guard"))))
    rows = [column_row(column, column.name in config.allowed) for column in config.declared]
    seen = tag(
        "section",
        tag("h2", "What a coordinator sees"),
        tag(
            "p",
            "It is told this when it says hello. Names and ranges of columns are declared, not computed from records.",
            class_="note",
        ),
        pairs(sees),
    )
    columns = tag("section", tag("h2", "Columns"), tag("table", head, tag("tbody", *rows), class_="list"))
    own = [*rules, *([("Records here", f"{records:,}")] if records is not None else [])]
    guard = tag(
        "section",
        tag("h2", "What only you see"),
        tag("p", "The guard's rules: a question that breaks one is refused by a code.", class_="note"),
        pairs(own),
    )
    return page(frame, "/shown", "What others see", tag("div", seen, columns, guard, class_="alone"))


def column_row(column: Column, allowed: bool) -> Html:
    """A declared column."""
    ends = ["" if end is None else f"{end:g}" for end in (column.low, column.high)]
    span = ", ".join(column.levels) if column.levels else f"{ends[0]} to {ends[1]}" if any(ends) else "open"
    span = "0 or 1" if column.kind == "binary" else span
    return tag(
        "tr",
        tag("td", tag("b" if allowed else "span", column.name, class_=None if allowed else "struck")),
        tag("td", column.kind),
        tag("td", span),
        tag("td", column.unit),
        tag("td", "may be used" if allowed else "forbidden"),
    )


def pairs(values: Sequence[tuple[str, str]]) -> Html:
    """Names and values."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in values if value), class_="rules")
