"""A submission in plain words: what a person reads before deciding. Text alone; nothing here is markup.

Whatever a study says of itself is a stranger's text: it is shortened, and characters that are not seen are made visible.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from zoneinfo import ZoneInfo

from hedgerow.errors import HedgerowError, catalogue
from hedgerow.network.station.admitted import read_description, read_study
from hedgerow.network.station.submissions import Submission
from hedgerow.privacy.statement import WEAK
from hedgerow.study.catalogue import listing

LONGEST = 300
"""Characters of a stranger's text that are shown."""

OURS = re.compile(r"hedgerow(?:\.\w+)+:[A-Za-z]\w*")
SAME = ("asks", "asked of", "leaves", "mechanism", "event")
"""In what questions that are shown together agree."""

Row = Mapping[str, str]


@dataclass(frozen=True)
class QuestionGroup:
    """Questions that differ in bounds and epsilon alone."""

    rows: Sequence[Row]

    @property
    def heading(self) -> str:
        """Which questions."""
        if len(self.rows) == 1:
            return self.rows[0]["questions"].capitalize()
        numbers = [number for row in (self.rows[0], self.rows[-1]) for number in re.findall(r"\d+", row["questions"])]
        return f"Questions {numbers[0]} to {numbers[-1]}"

    @property
    def function(self) -> str:
        """What is computed here, by its name."""
        return self.rows[0]["asks"].partition(" of ")[2]

    @property
    def meaning(self) -> str:
        """What is computed here, in the words of the installed code; "" where it has none."""
        return first_line(self.function)

    @property
    def facts(self) -> list[tuple[str, tuple[str, ...]]]:
        """What the rehearsal says of these questions, in lines under headings that a data owner reads."""
        row = self.rows[0]
        noise, hiding = parts(row)
        unlimited = (
            "no limit: no noise" if row["event"] in ("nonprivate", "rows") else "the study names no budget; yours counts it"
        )
        found = [
            ("What leaves", (row["leaves"],)),
            ("Who sees it", (who_sees(hiding, row["leaves"]),)),
            ("Noise", (noise_words(noise),)),
            ("One record can move it by at most", self._varying("bound", "none", "not said: nothing limits it")),
            ("Asked of", (row["asked of"],)),
            ("Epsilon by then", self._varying("epsilon", "not private", unlimited)),
        ]
        more = [("May be asked", "may be asked"), ("Totals are of", "totals are of")]
        found += [(heading, (row[name],)) for heading, name in more if name in row]
        return found + ([("Compression", (row["compression"],))] if "compression" in row else [])

    def _varying(self, name: str, empty: str, instead: str) -> tuple[str, ...]:
        """A field in which they may differ; `instead` where it says that there is nothing."""
        values = [row[name] for row in self.rows]
        if all(value.startswith(empty) for value in values):
            return (instead,)
        if len(set(values)) == 1:
            return (values[0],)
        first, last = self.rows[0], self.rows[-1]
        return f"{first['questions']}: {first[name]}", f"{last['questions']}: {last[name]}"


@dataclass(frozen=True)
class Promise:
    """What protects the answers of a study.

    Attributes
    ----------
    kind : {"private", "open", "weak"}
        As in a report.
    heading, words : str
        For the owner of the data.
    sentence : str
        As rehearsed.
    """

    kind: str
    heading: str
    words: str
    sentence: str


@dataclass(frozen=True)
class SubmissionReading:
    """A submission for a person.

    Attributes
    ----------
    says : str
        What the study says of itself.
    stations : tuple of str
    program : str
        What its program does, in the words of the installed catalogue.
    length : str
        How long it takes.
    promise : Promise
    """

    submission: Submission
    title: str
    says: str
    stations: tuple[str, ...]
    program: str
    length: str
    promise: Promise
    groups: tuple[QuestionGroup, ...]


def read(submission: Submission) -> SubmissionReading:
    """Read a submission; what of it cannot be read is left out, for the guard has refused that."""
    says, stations, budget = "", (), True
    try:
        study = read_study(submission.toml)
        says, budget = study.description, study.budget is not None
        stations = tuple(read_description(submission.description).stations)
    except HedgerowError:
        pass
    try:
        program = listing(submission.program).sentence
    except HedgerowError:
        program = ""
    length, sentence = halves(submission.summary)
    return SubmissionReading(
        submission,
        title_of(submission),
        clean(says),
        tuple(clean(name) for name in stations),
        program,
        length,
        promise(submission.rows, sentence, budget),
        grouped(submission.rows),
    )


def title_of(submission: Submission) -> str:
    """A study's title, or what it is called here where its text has none."""
    return clean(submission.title, 160) or f"A study {submission.id}"


def grouped(rows: Sequence[Row]) -> tuple[QuestionGroup, ...]:
    """Put questions together that follow each other and differ in bounds and epsilon alone."""
    found: list[list[Row]] = []
    for row in rows:
        if found and all(found[-1][0].get(name) == row.get(name) for name in (*SAME, "compression")):
            found[-1].append(row)
        else:
            found.append([row])
    return tuple(QuestionGroup(tuple(each)) for each in found)


def promise(rows: Sequence[Row], sentence: str, budget: bool) -> Promise:
    """What protects the answers to all questions."""
    if not rows:
        return Promise("open", "It asks nothing", "No question was heard in its rehearsal.", sentence)
    bare = [row for row in rows if row["event"] in ("nonprivate", "rows")]
    if bare:
        hidden = all(parts(row)[1] != "plain" for row in bare)
        whose = (
            "the exact totals of all parties, and nothing of this station alone" if hidden else "this station's exact totals"
        )
        heading = "Totals of all parties, without noise" if hidden else "This station's own totals, without noise"
        words = f"The coordinator learns {whose}. What totals tell of one record is small as a rule, but nothing limits it."
        return Promise("open", heading, words, sentence)
    if not budget:
        words = (
            "Every answer carries noise. The study names no budget, so it promises no epsilon; your own budget counts the cost."
        )
        return Promise("private", "Noise on every answer", words, "")
    [*_, epsilon] = (float(one) for one in re.findall(r"\d+(?:[.]\d+)?(?:e[+-]\d+)?", rows[-1]["epsilon"]))
    if epsilon > WEAK:
        words = f"Epsilon {epsilon:.3g} is so large that it promises hardly anything."
        return Promise("weak", "Noise on every answer, but little of it", words, sentence)
    words = (
        f"However much is known already, these answers change the odds of a guess about one record by a factor of "
        f"about {math.exp(epsilon):.2g} at most (epsilon {epsilon:.3g})."
    )
    return Promise("private", "Noise on every answer, within a budget", words, sentence)


def parts(row: Row) -> tuple[str, str]:
    """Noise and aggregation of a row."""
    noise, _, hiding = row["mechanism"].rpartition(", ")
    return noise, hiding.removesuffix(" aggregation")


def who_sees(hiding: str, leaves: str) -> str:
    """Who sees what leaves."""
    if leaves == "nothing":
        return "nobody: it stays here"
    if hiding == "plain":
        return "the coordinator, as this station's own numbers"
    return f"nobody by itself: the coordinator sees the total of all parties alone ({hiding})"


def noise_words(noise: str) -> str:
    """Who adds noise."""
    if noise == "none":
        return "none"
    if noise.endswith(" at the party"):
        return f"added here, before anything leaves: {noise.removesuffix(' at the party')}"
    law, _, together = noise.partition(" in shares of ")
    if together:
        return f"each party adds its share before anything leaves; the shares of {together} together are: {law}"
    law, _, several = noise.partition(" at each of ")
    if several:
        return f"each of {several} adds all of it to its own total, and one of them has to be honest: {law}"
    return noise


def first_line(function: str) -> str:
    """What Hedgerow's own code says of a function in one line."""
    if not OURS.fullmatch(function):
        return ""
    module, _, name = function.partition(":")
    try:
        words = (getattr(import_module(module), name, None).__doc__ or "").strip()
    except ImportError:
        return ""
    return " ".join(words.partition("\n\n")[0].replace("`", "").split())


def halves(summary: str) -> tuple[str, str]:
    """How long a program is, and what its releases guarantee."""
    length, _, sentence = summary.partition(". ")
    return length, sentence


def meaning_of(code: str) -> str:
    """What a code stands for."""
    kind = catalogue().get(code)
    return " ".join((kind.__doc__ or "").split()) if kind is not None else ""


def clean(text: str, longest: int = LONGEST) -> str:
    """A stranger's text on one line: short, and nothing in it that is not seen, such as a change of direction."""
    seen = "".join(c if c.isprintable() else " " if c in "\n\t\r" else "�" for c in text[: longest + 1])
    return seen if len(seen) <= longest else f"{seen[:longest]}…"


def when(iso: str, timezone: str) -> str:
    """A time of the journal in the owner's own time zone; "" where there is none."""
    return moment(datetime.fromisoformat(iso), timezone) if iso else ""


def moment(at: datetime, timezone: str) -> str:
    """A time in the owner's own time zone, to the minute."""
    here = at.astimezone(ZoneInfo(timezone))
    return f"{here.day} {here:%b %Y, %H:%M} {here.tzname()}"


def ago(seconds: float) -> str:
    """How long ago, roughly."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            n = int(seconds // length)
            return f"{n} {unit}{'s' * (n != 1)} ago"
    return "a moment ago"
