"""The studies that asked to board: what each would ask, and the forms with which a person decides."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.network.station.journal import StationEntry
from hedgerow.network.station.review import Spent
from hedgerow.network.station.station import GUARD
from hedgerow.network.station.submissions import Submission
from hedgerow.report.markup import Html, join, tag

from .frame import Frame, page, void
from .reading import QuestionGroup, SubmissionReading, clean, read, title_of, when
from .sidebar import sidebar

FULL = 3
"""Studies that wait and are shown in full on the first page; more are listed."""


def studies(frame: Frame, submissions: Sequence[Submission], spent: Sequence[Spent], latest: Sequence[StationEntry]) -> str:
    """The first page: what waits, what was decided, what is left."""
    waiting = [submission for submission in submissions if submission.status == "waiting"]
    decided = [submission for submission in reversed(submissions) if submission.status != "waiting"]
    heading = "Waiting for your decision" if waiting else "Nothing waits for your decision"
    none = (
        None
        if waiting
        else tag("p", "A study that asks to board appears here before anything of it is answered.", class_="none")
    )
    cards = [study(frame, read(submission)) for submission in waiting[:FULL]]
    main = tag(
        "div",
        tag("section", tag("h2", heading, class_="quiet"), none, *cards, listed(frame, waiting[FULL:])),
        tag("section", tag("h2", "Decided", class_="quiet"), listed(frame, decided)) if decided else None,
    )
    return page(frame, "/", "Studies", tag("div", main, sidebar(frame, submissions, spent, latest), class_="columns"))


def one(
    frame: Frame,
    submission: Submission,
    submissions: Sequence[Submission],
    spent: Sequence[Spent],
    entries: Sequence[StationEntry],
) -> str:
    """The page of one study."""
    main = tag("div", tag("section", study(frame, read(submission))))
    return page(
        frame, "/", title_of(submission), tag("div", main, sidebar(frame, submissions, spent, entries), class_="columns")
    )


def listed(frame: Frame, submissions: Sequence[Submission]) -> Html | None:
    """Studies, a line for each."""
    if not submissions:
        return None
    rows = [
        tag(
            "tr",
            tag("td", tag("a", title_of(submission), href=f"/studies/{submission.study}")),
            tag("td", badge(submission)),
            tag("td", decided_by(submission)),
            tag("td", when(submission.at or submission.came, frame.timezone), class_="time"),
        )
        for submission in submissions
    ]
    return tag("table", tag("tbody", *rows), class_="list")


def study(frame: Frame, reading: SubmissionReading) -> Html:
    """Everything that a study would ask, and the decision."""
    submission = reading.submission
    promise = reading.promise
    whom = f" {len(reading.stations)} stations" if len(reading.stations) > 1 else ""
    facts: list[tuple[str, str]] = [
        ("Program", f"{submission.program}: {reading.program}" if reading.program else submission.program),
        ("Stations", ", ".join(reading.stations)),
        ("Columns", chips(submission.columns) if submission.columns else ""),
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
            badge(submission),
            f" {clean(submission.coordinator)} asks{whom}, since {when(submission.came, frame.timezone)}",
            class_="kicker",
        ),
        tag("h2", reading.title),
        tag("p", f"The study says: {reading.says}", class_="said") if reading.says else None,
        *(asked if submission.rows else []),
        decision(frame, submission),
        class_="submission",
        id=f"study-{submission.id}",
    )


def questions(group: QuestionGroup) -> Html:
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


def decision(frame: Frame, submission: Submission) -> Html | None:
    """The forms with which a person decides, or what was decided."""
    if submission.status == "ended":
        return tag("p", "This study has ended. Nothing of it is answered any more.", class_="decision")
    if submission.status == "refused" and submission.by == GUARD:
        said = join([tag("b", "The guard refused it"), f" ({submission.code}): {clean(submission.because)}"])
        remedy = " To allow it, change [guard] of station.toml; the study is then submitted anew."
        return tag("p", said, remedy, class_="decision")
    told = None
    if submission.by:
        because = f": {clean(submission.because)}" if submission.because else "."
        told = tag(
            "p",
            f"{submission.status.capitalize()} by {clean(submission.by)}, {when(submission.at, frame.timezone)}{because}",
            class_="note",
        )
    yes = no = None
    if submission.status != "approved":
        lead = "It may ask what is above, and nothing else."
        yes = form(frame, submission, "approve", "Approve", lead, "Remark (optional, stays here)", needed=False)
    if submission.status != "refused":
        words = "Take the approval back" if submission.status == "approved" else "Refuse"
        no = form(
            frame,
            submission,
            "refuse",
            words,
            "Nothing of it is answered.",
            "Reason (stays here; only a code leaves)",
            needed=True,
        )
    return tag("div", told, yes, no, class_="decide")


def form(frame: Frame, submission: Submission, action: str, words: str, lead: str, reason: str, *, needed: bool) -> Html:
    """A decision."""
    return tag(
        "form",
        tag("p", lead),
        void("input", type="hidden", name="key", value=frame.form_key),
        tag("label", "Your name", void("input", name="by", value=frame.owner, required="", maxlength=100, autocomplete="off")),
        tag("label", reason, void("input", name="because", required="" if needed else None, maxlength=500, autocomplete="off")),
        tag("button", words, class_=action),
        method="post",
        action=f"/studies/{submission.study}/{action}",
    )


def badge(submission: Submission) -> Html:
    """A study's status."""
    kind = {"approved": "yes", "refused": "no"}.get(submission.status, "")
    return tag("span", submission.status, class_=f"badge {kind}".strip())


def decided_by(submission: Submission) -> str:
    """Who decided, and the code that left."""
    who = "" if not submission.by else "by the guard" if submission.by == GUARD else f"by {clean(submission.by)}"
    return f"{who}, {submission.code}" if submission.code and who else who


def chips(names: Sequence[str]) -> Html:
    """Names of columns."""
    return tag("ul", *(tag("li", name) for name in names), class_="chips")
