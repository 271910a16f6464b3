"""What a gate learns of a question, and of what was computed: plain values, without records, functions or numbers sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hedgerow.core.events import Event
from hedgerow.core.ledger import Entry
from hedgerow.data.faults import count_refused, values_refused
from hedgerow.errors import HedgerowError, catalogue
from hedgerow.network.station.alignments import AskedAlignment
from hedgerow.network.station.asking import said
from hedgerow.network.station.disclosed import AskedNumbers
from hedgerow.network.station.signatures import QuestionSignature
from hedgerow.privacy.guard import GuardedQuestion


@dataclass(frozen=True)
class AskedQuestion:
    """A question that a child has read, and that the guard does not refuse for what it is.

    Attributes
    ----------
    ids : tuple of str
        The parties here that are asked; later those of them who can pay.
    verb, name : str
        What is asked, and the function's `module:name`.
    number : int
    step : str
        Of a conversation; "" for a question that is answered in the open.
    bears : bool
        Whether an answer is made from records; the other steps of a conversation carry keys and shares.
    protected : bool
        Whether hidden rows or a party's own noise keep records from the coordinator.
    asked : int
        Parties that the whole conversation is about.
    signature : QuestionSignature or None
        The announced kind that it is of, where it bears.
    branch : str
        In which its number counts.
    broadcast, about : str
        Digests of what it sends ("" for nothing), and of everything that decides of its answer beside kind and number.
    hidden : bool
        Whether rows are hidden, and no noise of parties that is worth its name covers them.
    random : bool
        Whether the same question may have another answer: by noise of the parties, or other randomness.
    guarded : mapping from trust to GuardedQuestion
        What accounts decide about, where it bears.
    declined : mapping from party to code
        Of parties that cannot pay.
    exact : AskedNumbers, optional
        Numbers without noise that each is asked, where it bears.
    alignment : AskedAlignment, optional
        Where it begins to match the people here with those of others.
    """

    ids: tuple[str, ...]
    verb: str
    name: str
    number: int
    step: str = ""
    bears: bool = True
    protected: bool = False
    asked: int = 0
    signature: QuestionSignature | None = None
    branch: str = ""
    broadcast: str = ""
    about: str = ""
    hidden: bool = False
    random: bool = False
    guarded: Mapping[Any, GuardedQuestion] = field(default_factory=dict)
    declined: Mapping[str, str] = field(default_factory=dict)
    exact: AskedNumbers | None = None
    alignment: AskedAlignment | None = None

    @property
    def words(self) -> str:
        """The question in words, for journal and log."""
        return f"{self.verb} of {self.name}" + (f", {self.step}" if self.step else "")

    @property
    def place(self) -> str:
        """Its number in its branch."""
        return f"{self.branch}{self.number}"

    @property
    def counted_by(self) -> dict[str, str]:
        """What a journal has of it, by which it is counted."""
        if self.signature is None:
            return {}
        return {"signature": self.signature.mark, "branch": self.branch, "broadcast": self.broadcast, "about": self.about}

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        guarded = {
            trust: [one.entry.to_json(), one.life, {name: event.to_json() for name, event in one.own.items()}]
            for trust, one in self.guarded.items()
        }
        return vars(self) | {"guarded": guarded, "signature": self.signature and vars(self.signature)}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> AskedQuestion:
        guarded = {
            trust: GuardedQuestion(Entry.from_json(entry), life, {name: Event(**event) for name, event in own.items()})
            for trust, (entry, life, own) in found["guarded"].items()
        }
        signature = found["signature"] and QuestionSignature(**found["signature"])
        exact = found["exact"] and AskedNumbers(*found["exact"])
        matched = found["alignment"] and AskedAlignment(
            found["alignment"][0], tuple(found["alignment"][1]), found["alignment"][2]
        )
        found = {**found, "alignment": matched or None}
        return cls(**{**found, "exact": exact, "ids": tuple(found["ids"]), "guarded": guarded, "signature": signature})


class Computed(NamedTuple):
    """An answer.

    Attributes
    ----------
    body : bytes
        As it leaves.
    codes : mapping from party to code
        With which parties declined while they computed.
    n_answered : int
    cohort : str
        Of whom an exact total behind hidden rows is, where that was settled by this step.
    came : AskedNumbers or None
        Exact numbers of which nobody knew beforehand how many they would be.
    """

    body: bytes
    codes: Mapping[str, str]
    n_answered: int
    cohort: str = ""
    came: AskedNumbers | None = None


class Uncomputed(Exception):
    """Computing failed.

    Parameters
    ----------
    error : Exception
        As the journal and the coordinator's code have it.
    code : str
        Of what went wrong first, by which a station finds out whether refusals tell of records.
    """

    def __init__(self, error: Exception, code: str) -> None:
        self.error, self.code = error, code
        super().__init__(str(error))


class OwnError(Exception):
    """An error of the program in a child, and none that is raised on purpose; its sentence stays in the log."""


def told_of(error: Exception) -> dict[str, Any]:
    """An error as plain values."""
    code, reason = said(error)
    remedy = error.remedy if isinstance(error, HedgerowError) else ""
    about = {"code": code, "reason": reason, "remedy": remedy, "own": not isinstance(error, HedgerowError)}
    return about | {"values": values_refused(error)}


def error_of(told: Mapping[str, Any]) -> Exception:
    """The error that was told."""
    kind = catalogue().get(told["code"])
    if told["own"] or kind is None:
        return OwnError(told["reason"])
    return count_refused(kind(told["reason"], remedy=told["remedy"]), told.get("values", 0))
