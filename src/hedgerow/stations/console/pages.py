"""The studies that asked to board: what each would ask, and the forms with which a person decides."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.report.markup import Html, join, tag

from ..inbox import Spent
from ..journal import Entry
from ..station import GUARD
from ..trains import Train
from .beside import beside
from .frame import Frame, page, void
from .reading import Group, Reading, clean, read, title_of, when

FULL = 3
"""Studies that wait and are shown in full on the first page; more are listed."""


def studies(frame: Frame, trains: Sequence[Train], spent: Sequence[Spent], latest: Sequence[Entry]) -> str:
    """The first page: what waits, what was decided, what is left."""
    waiting = [train for train in trains if train.status == "waiting"]
    decided = [train for train in reversed(trains) if train.status != "waiting"]
    heading = "Waiting for your decision" if waiting else "Nothing waits for your decision"
    none = (
        None
        if waiting
        else tag("p", "A study that asks to board appears here before anything of it is answered.", class_="none")
    )
    cards = [study(frame, read(train)) for train in waiting[:FULL]]
    main = tag(
        "div",
        tag("section", tag("h2", heading, class_="quiet"), none, *cards, listed(frame, waiting[FULL:])),
        tag("section", tag("h2", "Decided", class_="quiet"), listed(frame, decided)) if decided else None,
    )
    return page(frame, "/", "Studies", tag("div", main, beside(frame, trains, spent, latest), class_="columns"))


def one(frame: Frame, train: Train, trains: Sequence[Train], spent: Sequence[Spent], entries: Sequence[Entry]) -> str:
    """The page of one study."""
    main = tag("div", tag("section", study(frame, read(train))))
    return page(frame, "/", title_of(train), tag("div", main, beside(frame, trains, spent, entries), class_="columns"))


def listed(frame: Frame, trains: Sequence[Train]) -> Html | None:
    """Studies, a line for each."""
    if not trains:
        return None
    rows = [
        tag(
            "tr",
            tag("td", tag("a", title_of(train), href=f"/studies/{train.study}")),
            tag("td", badge(train)),
            tag("td", decided_by(train)),
            tag("td", when(train.at or train.came, frame.timezone), class_="time"),
        )
        for train in trains
    ]
    return tag("table", tag("tbody", *rows), class_="list")


def study(frame: Frame, reading: Reading) -> Html:
    """Everything that a study would ask, and the decision."""
    train = reading.train
    promise = reading.promise
    whom = f" {len(reading.stations)} stations" if len(reading.stations) > 1 else ""
    facts: list[tuple[str, str]] = [
        ("Program", f"{train.program}: {reading.program}" if reading.program else train.program),
        ("Stations", ", ".join(reading.stations)),
        ("Columns", chips(train.columns) if train.columns else ""),
        ("Length", reading.length),
    ]
    asked = [
        tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts if value), class_="facts"),
        tag(
            "section",
            tag("h3", promise.heading),
            tag("p", promise.words),
            tag("p", promise.sentence, class_="note") if promise.sentence else None,
            class_=f"privacy {promise.kind}",
        ),
        tag("ol", *map(questions, reading.groups), class_="questions"),
    ]
    return tag(
        "article",
        tag(
            "p",
            badge(train),
            f" {clean(train.coordinator)} asks{whom}, since {when(train.came, frame.timezone)}",
            class_="kicker",
        ),
        tag("h2", reading.title),
        tag("p", f"The study says: {reading.says}", class_="said") if reading.says else None,
        *(asked if train.rows else []),
        decision(frame, train),
        class_="train",
        id=f"study-{train.id}",
    )


def questions(group: Group) -> Html:
    """Questions of one kind."""
    facts = [tag("div", tag("dt", name), tag("dd", *(tag("p", line) for line in lines))) for name, lines in group.facts]
    exact = [
        tag("dl", *(item for name, value in row.items() for item in (tag("dt", name), tag("dd", value))), class_="words")
        for row in group.rows
    ]
    return tag(
        "li",
        tag("h3", group.heading),
        tag("p", group.meaning, class_="meaning") if group.meaning else None,
        tag("dl", *facts),
        tag("details", tag("summary", "Exactly as rehearsed"), *exact),
    )


def decision(frame: Frame, train: Train) -> Html | None:
    """The forms with which a person decides, or what was decided."""
    if train.status == "ended":
        return tag("p", "This study has ended. Nothing of it is answered any more.", class_="decision")
    if train.status == "refused" and train.by == GUARD:
        said = join([tag("b", "The guard refused it"), f" ({train.code}): {clean(train.because)}"])
        remedy = " To allow it, change [guard] of station.toml; the study is then submitted anew."
        return tag("p", said, remedy, class_="decision")
    told = None
    if train.by:
        because = f": {clean(train.because)}" if train.because else "."
        told = tag(
            "p", f"{train.status.capitalize()} by {clean(train.by)}, {when(train.at, frame.timezone)}{because}", class_="note"
        )
    yes = no = None
    if train.status != "approved":
        lead = "It may ask what is above, and nothing else."
        yes = form(frame, train, "approve", "Approve", lead, "Remark (optional, stays here)", needed=False)
    if train.status != "refused":
        words = "Take the approval back" if train.status == "approved" else "Refuse"
        no = form(
            frame, train, "refuse", words, "Nothing of it is answered.", "Reason (stays here; only a code leaves)", needed=True
        )
    return tag("div", told, yes, no, class_="decide")


def form(frame: Frame, train: Train, action: str, words: str, lead: str, reason: str, *, needed: bool) -> Html:
    """A decision."""
    return tag(
        "form",
        tag("p", lead),
        void("input", type="hidden", name="key", value=frame.form_key),
        tag("label", "Your name", void("input", name="by", value=frame.owner, required="", maxlength=100, autocomplete="off")),
        tag("label", reason, void("input", name="because", required="" if needed else None, maxlength=500, autocomplete="off")),
        tag("button", words, class_=action),
        method="post",
        action=f"/studies/{train.study}/{action}",
    )


def badge(train: Train) -> Html:
    """A study's status."""
    kind = {"approved": "yes", "refused": "no"}.get(train.status, "")
    return tag("span", train.status, class_=f"badge {kind}".strip())


def decided_by(train: Train) -> str:
    """Who decided, and the code that left."""
    who = "" if not train.by else "by the guard" if train.by == GUARD else f"by {clean(train.by)}"
    return f"{who}, {train.code}" if train.code and who else who


def chips(names: Sequence[str]) -> Html:
    """Names of columns."""
    return tag("ul", *(tag("li", name) for name in names), class_="chips")
