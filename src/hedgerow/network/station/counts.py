"""How many questions of each kind a study may ask, and with which broadcasts: what it announced, counted from the journal.

    a rehearsal    how many questions of a kind were asked, and whether their broadcasts differed
    the limit      as many; of a program whose rounds follow from its answers, as many as its largest number of rounds allows
    a question     counts once, however often it is asked: what decides of its answer, but not its number

A coordinator that goes on from a checkpoint, or after a round without a total, asks the same again under a new number. Where
rows are hidden and exact, another question under an old number is refused. Where an answer is another one each time, by noise
or by other randomness of the parties, as many repetitions are answered as there are questions, and some.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from hedgerow.crypto.aggregation import steadily
from hedgerow.crypto.context import description_digest
from hedgerow.errors import QuestionUnannounced

from .by_party import told_by_party
from .wear import ANY, REPEATED, as_worn

if TYPE_CHECKING:
    from hedgerow.core.ledger import Entry
    from hedgerow.study import Rehearsal
    from hedgerow.study.build import Built

    from .children.facts import AskedQuestion
    from .journal import StationEntry
    from .signatures import Announced, Overheard, QuestionSignature

Broadcasts = Literal["none", "constant", "free"]
"""What a kind announced of what it sends: nothing, always the same, or what follows from earlier answers."""

BY_ANSWERS = ("max_rounds", "depth")
"""Settings that limit the rounds of a program whose rounds follow from its answers."""

ANEW = 3
"""Further questions where a round that is asked anew may have a total of other parties, from which other broadcasts follow.

Exact totals behind hidden rows are of the same parties, and so is what follows from them."""


def most_rounds(built: Built, noisy: bool) -> tuple[int | None, bool]:
    """The largest number of rounds of a program, None where it says of none, and whether answers decide how many there are.

    Programs that stop when they have converged ask a number of rounds that is given where noise would hide whether they have.
    """
    from hedgerow.study.findings.analyses import rounds_in

    found = [_rounds_of(function, settings, noisy) for function, settings in rounds_in(built)]
    if len(found) == 1:
        return found[0]
    known = [most if most is not None else 1 for most, _ in found]  # a program without rounds asks as it was rehearsed
    return sum(known), any(by_answers for _, by_answers in found)


def _rounds_of(function: Any, settings: Mapping[str, Any], noisy: bool) -> tuple[int | None, bool]:
    """The same of one program."""
    parameters = inspect.signature(function).parameters
    given = {name: one.default for name, one in parameters.items()} | dict(settings)
    for name in BY_ANSWERS:
        if isinstance(given.get(name), int) and not (noisy and "rounds" in given):
            return int(given[name]), True
    rounds = given.get("rounds")
    return (int(rounds) if isinstance(rounds, int) else None), False


def numbers_of(
    kinds: Sequence[QuestionSignature],
    silent: Iterable[QuestionSignature],
    ends: Sequence[int],
    whole: bool,
    most: int | None,
    by_answers: bool,
) -> dict[QuestionSignature, int]:
    """How many questions of each kind there may be.

    Parameters
    ----------
    kinds : sequence of QuestionSignature
        Of every rehearsed question, in order.
    silent : iterable of QuestionSignature
        Kinds without a broadcast.
    ends : sequence of int
        After how many questions each rehearsed round was over.
    whole : bool
        Whether the rehearsed program came to its own end.
    most : int, optional
        Rounds that the program has at most.
    by_answers : bool
        Whether there may be more of them than were rehearsed, though the rehearsal came to its end.
    """
    cuts = [0, *ends, len(kinds)]
    by_round = [Counter(kinds[a:b]) for a, b in pairwise(cuts)]
    total, unsent = Counter(kinds), set(silent)
    found: dict[QuestionSignature, int] = {}
    for kind, n in total.items():
        busiest = max(counts[kind] for counts in by_round)
        first_only = len(ends) > 1 and by_round[0][kind] == n and kind in unsent
        if (whole and not by_answers) or (first_only and n == 1):
            found[kind] = n
        elif most is None:
            found[kind] = ANY
        else:
            found[kind] = max(n, busiest * most, -(-n * most // max(len(ends), 1)) if not by_answers else 0)
    return found


def broadcasts_of(sent: Mapping[QuestionSignature, Sequence[bytes | None]]) -> dict[QuestionSignature, Broadcasts]:
    """What rehearsed questions of each kind sent; of a single broadcast nobody knows whether another would be the same."""
    found: dict[QuestionSignature, Broadcasts] = {}
    for kind, digests in sent.items():
        alike = len(set(digests)) == 1
        found[kind] = "none" if alike and digests[0] is None else "constant" if alike and len(digests) > 1 else "free"
    return found


@dataclass
class AskedBefore:
    """What one study has asked at this station.

    Parameters
    ----------
    announced : Announced
        What it may.
    """

    announced: Announced
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _numbers: dict[str, str] = field(default_factory=dict)
    _counts: Counter[str] = field(default_factory=Counter)
    _again: Counter[str] = field(default_factory=Counter)
    _sent: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, announced: Announced, entries: Iterable[StationEntry]) -> AskedBefore:
        """From the entries of a study's journal."""
        asked = cls(announced)
        for entry in entries:
            if entry.code == "asked" and entry.question and entry.signature:
                asked._take(entry.signature, f"{entry.branch}{entry.question}", entry.about, entry.broadcast)
        return asked

    def refuse_further(self, question: AskedQuestion) -> None:
        """Refuse a question beyond the announced number of its kind, or with a broadcast that was not announced.

        Raises
        ------
        QuestionUnannounced (HR-609)
        """
        kind = question.signature
        if not question.bears or kind is None:
            return
        mark, place = kind.mark, question.place
        sends, before = self.announced.broadcasts.get(kind, "free"), self._sent.get(mark)
        if (sends == "none" and question.broadcast) or (sends == "constant" and before not in (None, question.broadcast)):
            raise _refused(f"{question.name} with another broadcast, where it announced {_SENDS[sends]}")
        most = self.announced.most.get(kind, ANY)
        if question.hidden and self._numbers.get(place, question.about) != question.about:
            raise _refused(f"question {question.number} a second time, about something else: {question.name}")
        if (mark, question.about) in self._seen:
            if most != ANY and question.random and self._again[mark] >= most + REPEATED:
                raise _refused(f"more than {most + REPEATED} repetitions of questions like {question.verb} of {question.name}")
            return
        most += 0 if question.hidden or most == ANY else ANEW
        if most != ANY and self._counts[mark] >= most:
            raise _refused(f"more than {most} questions of the kind {question.verb} of {question.name}")

    def take(self, question: AskedQuestion) -> None:
        """Count a question that is in the journal."""
        if question.bears and question.signature is not None:
            self._take(question.signature.mark, question.place, question.about, question.broadcast)

    def _take(self, mark: str, place: str, about: str, broadcast: str) -> None:
        if (mark, about) in self._seen:
            self._again[mark] += 1
        else:
            self._seen.add((mark, about))
            self._counts[mark] += 1
        self._numbers.setdefault(place, about)
        self._sent.setdefault(mark, broadcast)


_SENDS = {"none": "none", "constant": "the same for all questions of its kind", "free": "any"}


def _refused(what: str) -> QuestionUnannounced:
    return QuestionUnannounced(
        f"the study did not announce {what}.",
        remedy="A study asks what its rehearsal listed when it was approved, and as often. Submit the changed study anew.",
    )


def limits_of(rehearsal: Rehearsal, heard: Overheard, announced: Announced) -> list[dict[str, str]]:
    """For each run of equal questions how often one is asked, of whom totals are, and what each party is set to, in words."""
    by_name = {
        (o.question.branch, o.question.number): (o, whom, kind) for (o, whom), kind in zip(heard, heard.kinds, strict=True)
    }
    said: list[dict[str, str]] = []
    for first, _ in rehearsal.runs():
        entry = rehearsal.entries[first]
        outbox, whom, kind = by_name.get((entry.branch, entry.round), (None, frozenset(), None))
        if outbox is None or kind is None:
            said.append({})
            continue
        most = announced.most.get(kind, ANY)
        exact = bool(kind.aggregation) and not outbox.release.random
        often = f"{most} times at most, all of its kind together"
        often += "" if exact else f"; {ANEW} more where rounds are asked anew, and stations were missing"
        words = {"may be asked": "any number of times" if most == ANY else often}
        outbox = as_worn(outbox, announced)
        if kind.aggregation and (outbox.worn or not outbox.release.hides_parties):
            words["totals are of"] = SAME_PARTIES if steadily(outbox) else OTHER_PARTIES
        if each := told_by_party(outbox, whom):
            words["by party"] = each
        said.append(words)
    return said


MOST_REPEATED = 10_000
"""Further questions that are counted one by one, of all that a study may ask."""


def repeated(entries: Sequence[Entry], heard: Overheard, announced: Announced) -> list[Entry] | None:
    """The questions that a study may ask beyond those of its rehearsal; None where nothing limits how many.

    Questions of a kind beyond those that were rehearsed are as its last one.
    """
    by_name = {(entry.branch, entry.round): entry for entry in entries}
    rehearsed: dict[QuestionSignature, list[Entry]] = {}
    for (outbox, _), kind in zip(heard, heard.kinds, strict=True):
        entry = by_name.get((outbox.question.branch, outbox.question.number))
        if entry is not None:
            rehearsed.setdefault(kind, []).append(entry)
    found: list[Entry] = []
    for kind, own in rehearsed.items():
        most = announced.most.get(kind, ANY)
        if most == ANY:
            return None
        found += [own[-1]] * min(most - len(own), MOST_REPEATED)
    return found


SAME_PARTIES = "the same parties each time"
OTHER_PARTIES = "other parties each time: put together, such totals can show one party's"


def about_of(question: Any) -> dict[str, Any]:
    """What of a received question is counted: see `AskedQuestion`."""
    asked, step = question.question, question.step
    sent, release = asked.broadcast, question.outbox.release
    return {
        "branch": asked.branch,
        "broadcast": "" if sent is None else description_digest(sent).hex()[:32],
        "about": description_digest((asked.settings, asked.view, asked.init, release.bounds, release.clip, sent)).hex()[:32],
        "hidden": step is not None and not release.random,
        "random": release.before_server or not asked.additive,
    }
