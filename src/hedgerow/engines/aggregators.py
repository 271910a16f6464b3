"""The aggregators of one study, each a process of its own organisation, as the coordinator reaches them.

    AdditiveServer -> `put` -> one sealed letter to each aggregator -> its answers, in order

Letters of one step go out together. One that does not come back before the deadline, or comes back as a refusal, voids the
round: nothing was released, and the study goes on with a new epoch when all aggregators are there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hedgerow.crypto.shares import AggregatorLink
from hedgerow.errors import MessageRefused, RoundRefused, catalogue
from hedgerow.wire.envelope import Letter
from hedgerow.wire.refusal import code_in

LIFE = 1 << 32
"""Letters of one life of a coordinator; numbers of the next life are larger than all of them."""


class AsksAggregators(Protocol):
    """What carries letters to aggregators, and their answers; see `MessageQueue`."""

    def alive(self) -> frozenset[str]: ...

    def wait(self, seconds: float, until: Callable[[], bool] = ...) -> bool: ...

    def ask(
        self, kind: str, parts: Mapping[str, Sequence[bytes]], *, study: bytes = ..., number: int = ..., seconds: float = ...
    ) -> dict[str, Letter]: ...


@dataclass(frozen=True)
class AggregatorAway:
    """One aggregator of a study.

    Attributes
    ----------
    name : str
    public : bytes
        Its agreement key for shares, which parties have pinned.
    least : int
        It gives no total of fewer parties.
    """

    name: str
    public: bytes
    least: int
    reached: AggregatorsAway = field(repr=False, compare=False)

    def answer(self, step: str, letter: bytes) -> bytes:
        """Put one step to it; RoundRefused (HR-241) where it is lost or refuses."""
        return self.reached.put(step, [(self, letter)])[0]


@dataclass
class AggregatorsAway:
    """The aggregators of one study.

    Parameters
    ----------
    queue : AsksAggregators or None
        Carries letters; None where nobody is to be asked.
    study : bytes
        16 bytes that name the study.
    digest : bytes
        Of the study as parties and aggregators were told it, and of its name.
    known : mapping from name to (bytes, int)
        Public key and least set of each, in the order in which parties know them.
    seconds : float
        Deadline of one step.
    life : int
        How often the study was started; each start has a larger one.
    """

    queue: AsksAggregators | None
    study: bytes
    digest: bytes
    known: Mapping[str, tuple[bytes, int]]
    seconds: float = 60.0
    life: int = 1
    _number: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.links = tuple(AggregatorAway(name, public, least, self) for name, (public, least) in self.known.items())

    def away(self) -> list[str]:
        """Those that are not there now."""
        return [] if self.queue is None else sorted(self.known.keys() - self.queue.alive())

    def put(self, step: str, letters: Sequence[tuple[AggregatorLink, bytes]]) -> list[bytes]:
        """Put a step to several of them, and return their answers in order.

        Raises
        ------
        RoundRefused (HR-241)
            One did not answer in time, refused, or answered what is no answer.
        """
        assert self.queue is not None, "nobody is to be asked"
        self._number += 1
        names = [one.name for one, _ in letters if isinstance(one, AggregatorAway)]
        parts = {name: [step.encode(), letter] for name, (_, letter) in zip(names, letters, strict=True)}
        number = self.life * LIFE + self._number
        came = self.queue.ask("aggregate", parts, study=self.study, number=number, seconds=self.seconds)
        problems = [said for name in names if (said := _problem(name, step, came.get(name)))]
        if problems:
            raise RoundRefused("; ".join(problems) + ".", remedy=REMEDY)
        return [came[name].parts[0] for name in names]


def _problem(name: str, step: str, letter: Letter | None) -> str:
    """Why an answer is of no use, as part of a sentence; "" where it is."""
    if letter is None:
        return f"the aggregator {name} did not answer {step!r}"
    if letter.kind == "aggregated" and len(letter.parts) == 1:
        return ""
    try:
        code = code_in(letter)
    except MessageRefused:
        return f"the aggregator {name} answered {step!r} with what is no answer"
    kind = catalogue().get(code)
    return f"the aggregator {name} refused {step!r}: {code}" + (f" {kind.__name__}" if kind is not None else "")


REMEDY = "All aggregators are needed, and nothing was released. The study goes on when they answer; their journals say why not."
