"""A study's letters to its stations: the message queue, with a number for each, an entry in the journal, an ear for its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hedgerow.core.engine import Inbox
from hedgerow.core.judged_rows import JudgedRows
from hedgerow.engines.aggregators import LIFE
from hedgerow.engines.message_queue import NOBODY, MessageQueue
from hedgerow.errors import BudgetExhausted, LimitExceeded, MessageRefused, NobodyAnswered, PartyDeclined
from hedgerow.wire.envelope import Letter
from hedgerow.wire.refusal import code_in

from .boarding import PATIENT
from .store import Store

NAMED = 10
"""Parties of which one entry tells that they declined; a gateway may have thousands."""


class Halted(Exception):
    """A study is to end, or to pause, before its next question."""


def go_on() -> None:
    """Never halt."""


@dataclass
class StudyQueue:
    """What `Network` and boarding use as their message queue.

    Parameters
    ----------
    id, key : str, bytes
        The study, here and in letters.
    life : int
        Of the study; letters of boarding have numbers in it.
    seconds : float
        Deadline of letters that are no questions.
    aboard : int
        Stations that approved the study.
    least : int
        A question that fewer stations answer has no answer.
    halt : callable
        Called before letters go out; raises Halted where the study is to end or to pause.
    """

    queue: MessageQueue
    store: Store
    id: str
    key: bytes
    life: int
    seconds: float
    aboard: int = 0
    least: int = 1
    halt: Callable[[], None] = go_on
    refused: dict[str, str] = field(default_factory=dict, init=False)
    """Codes by station or party, of those whose last word was a refusal that waiting does not change."""

    absent: set[str] = field(default_factory=set, init=False)
    """Stations that did not answer when they were asked last, or with nothing that could be used."""

    zeroed: set[str] = field(default_factory=set, init=False)
    """Parties that sent more than their bound allows, in this life of the study."""

    hurried: bool = field(default=False, init=False)
    """Whether a station wanted fewer questions, or smaller ones, when stations were asked last."""

    _asked: frozenset[str] = field(default=frozenset(), init=False)
    _number: int = field(default=0, init=False)

    def alive(self) -> frozenset[str]:
        """The stations that it is worth asking now."""
        return self.queue.alive()

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Let events happen; see `MessageQueue.wait`."""
        return self.queue.wait(seconds, until)

    def ask(
        self,
        kind: str,
        parts: Mapping[str, Sequence[bytes]],
        *,
        study: bytes = NOBODY,
        number: int = 0,
        seconds: float | None = None,
    ) -> dict[str, Letter]:
        """Ask stations, as `MessageQueue.ask` does; what goes out and comes is in the journal.

        Raises
        ------
        Halted
            Nobody was asked.
        """
        if kind == "ask":
            self.halt()
        if not parts:
            return {}
        if not number:
            self._number += 1
            number = self.life * LIFE + self._number
        sizes = {station: sum(map(len, several)) for station, several in parts.items()}
        self.store.enter(self.id, "asked", {"kind": kind, "number": number, "bytes": sizes})
        wait = self.seconds if seconds is None else seconds
        letters = self.queue.ask(kind, parts, study=self.key, number=number, seconds=wait)
        codes = {station: _code(letter) for station, letter in letters.items() if letter.kind == "refused"}
        came = {station: sum(map(len, letter.parts)) for station, letter in letters.items() if station not in codes}
        silent = [station for station in parts if station not in letters]
        about = {"kind": kind, "number": number, "bytes": came, "codes": codes, "silent": silent}
        self.store.enter(self.id, "came", about)
        if kind == "aggregate":
            self.absent = (self.absent | set(silent)) - letters.keys()
            self.refused |= {name: code for name, code in codes.items() if code not in PATIENT}
        if kind == "ask":
            self._asked = frozenset(parts)
            self.hurried = LimitExceeded.code in codes.values()
            self.refused = {station: code for station, code in codes.items() if code not in PATIENT}
        return letters

    def weigh(self, read: Mapping[str, Inbox]) -> None:
        """Judge what stations answered when they were asked last: whether enough of it is of use.

        Raises
        ------
        NobodyAnswered (HR-220)
            Fewer stations than `least` answered.
        PartyDeclined (HR-221), BudgetExhausted (HR-213)
            And so many refused for good that it will not be otherwise.
        """
        came = {station for station, inbox in read.items() if inbox.answered}
        self.absent = (self.absent | self._asked) - came
        if len(came) < min(self.least, len(self._asked)):
            missing = sorted(self._asked - came)
            codes = {name: next(iter(read[name].codes.values())) for name in missing if name in read and read[name].codes}
            self._too_few(len(came), codes, [name for name in missing if name not in codes])

    def declined(self, codes: Mapping[str, str]) -> None:
        """Note the parties that declined within their station's answer."""
        self.refused.update({party: code for party, code in codes.items() if code not in PATIENT})
        named = dict(list(codes.items())[:NAMED])
        self.store.enter(self.id, "declined", {"codes": named, "more": len(codes) - len(named)})

    def overlong(self, parties: Sequence[str]) -> None:
        """Note the parties that sent more than their bound allows, which counts as zero."""
        self.zeroed.update(parties)
        self.store.enter(self.id, "overlong", {"parties": list(parties[:NAMED]), "more": max(len(parties) - NAMED, 0)})

    def refuses(self, judged: JudgedRows) -> None:
        """Note how many rows of a question were refused, since they were not proved: by number alone."""
        self.store.enter(self.id, "refused", {"query": judged.query, "rows": judged.refused, "of": judged.came})

    def _too_few(self, came: int, codes: Mapping[str, str], silent: Sequence[str]) -> None:
        final = {station: code for station, code in codes.items() if code not in PATIENT}
        if final and self.aboard - len(final) < self.least:
            if set(final.values()) == {BudgetExhausted.code}:
                raise BudgetExhausted(f"the budget of {', '.join(final)} is spent.", asked=True)
            raise PartyDeclined(f"{', '.join(final)} declined.", codes=final)
        missing = ", ".join([*(f"{station} ({code})" for station, code in codes.items()), *silent])
        raise NobodyAnswered(
            f"{came} stations answered a question, and {self.least} are needed: nothing usable came from {missing}.",
            remedy="The study goes on when they answer again.",
        )


def _code(letter: Letter) -> str:
    try:
        return code_in(letter)
    except MessageRefused as error:
        return error.code
