"""Sparse vector: many questions, charged once, of which only a few are answered yes.

    rho        <- Laplace(radius / epsilon_1)                        once, never shown
    for each question:
        nu     <- Laplace(2 c radius / epsilon_2)                    fresh
        above  <- total + nu >= threshold + rho                      released
        stop after c questions above
    numbers    <- total + Laplace(c radius / epsilon_3)              only of questions above, charged apart

The cost is epsilon_1 + epsilon_2 (+ epsilon_3), however many questions are asked and however they depend on earlier
answers; epsilon_1 : epsilon_2 is 1 : (2 c)^(2/3), which makes the comparison as exact as can be. Where a unit that joins
raises every total or leaves it (`monotonic`), the factor 2 falls away in both.

What must not be changed, since variants without it are not private at the stated epsilon or at any (Lyu et al., Figure
1): the noise of the threshold is not that of the questions; each question has noise; it is scaled to c; the number is
noised anew; c is counted and ends the conversation.

Source: Lyu, Su & Li 2017, Algorithm 7. Differs: noise is discrete, on the grid; distances are whole
steps, for which the proof holds word for word. A threshold is rounded to the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from hedgerow.core.arrays import Array, Arrays, Layout
from hedgerow.core.bound import Bounds, describe
from hedgerow.core.cohort import Cohort
from hedgerow.core.events import Event
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Mechanism
from hedgerow.core.party import Local
from hedgerow.core.randomness import Entropy, Streams
from hedgerow.errors import BudgetExhausted, BudgetInvalid

from ..grid import Block
from ..mechanisms import Laplace
from ..noise import discrete_laplace
from ..within import within
from .grid import rounded, score_block
from .mechanisms import positive


class ThresholdQuestion(NamedTuple):
    """A number to compare: a local function, what is broadcast to it, and its own threshold if it has one."""

    local: Local
    broadcast: Arrays = None
    threshold: float | None = None


@dataclass(frozen=True)
class Answer:
    """Whether a total was above its threshold, and how large it was where numbers were paid for."""

    above: bool
    value: float | None = None

    def __bool__(self) -> bool:
        return self.above


def above_threshold(
    federation: Federation,
    questions: Iterable[ThresholdQuestion | Local],
    threshold: float,
    *,
    epsilon: float,
    bound: Bounds,
    most: int = 1,
    monotonic: bool = False,
    numbers: float | None = None,
) -> Iterator[Answer]:
    """Ask questions until `most` of them were above their threshold.

    Parameters
    ----------
    questions : iterable of ThresholdQuestion or local function
        Each returns one number. They are taken one at a time, so a generator may look at earlier answers first.
    threshold : float
        Of questions without their own; public.
    epsilon : float
        Charged with the first question; the others cite it.
    bound : Bound
        How far one unit moves the total of any question.
    most : int
        So many answers "above" end the conversation.
    monotonic : bool
        A unit that joins raises the totals of all questions or leaves them; see `Choice`.
    numbers : float, optional
        An epsilon for the noisy totals of all questions above together, charged as they come.

    Yields
    ------
    Answer

    Releases
    --------
    One bit a question; one number for each question above where `numbers` is given.

    Raises
    ------
    BudgetInvalid (HR-214)
        An epsilon or a count is out of its range.
    """
    if numbers is not None:
        positive(numbers)
    mechanism = SparseVector(epsilon, most, threshold, monotonic, begun=len(federation.ledger))
    for question in questions:
        one = question if isinstance(question, ThresholdQuestion) else ThresholdQuestion(question)
        own = mechanism if one.threshold is None else replace(mechanism, threshold=one.threshold)
        released = federation.protect(mechanism=own).sum(one.local, one.broadcast, bound=bound)
        above = bool(number(released))
        value = None
        if above and numbers is not None:
            noisy = federation.protect(mechanism=Laplace(most / numbers)).sum(one.local, one.broadcast, bound=bound)
            value = number(noisy)
        yield Answer(above, value)
        if mechanism.over:
            return


class Memory:
    """What the server holds during a conversation and shows nobody: to parties it travels empty."""

    def __init__(self) -> None:
        self.above = 0
        self.streams: Streams | None = None
        self.noise: int | None = None
        self.bound = ""

    def __repr__(self) -> str:
        return "Memory()"

    def __travel__(self) -> dict[str, Any]:
        return {}

    @classmethod
    def __arrive__(cls) -> Memory:
        return cls()


@dataclass(frozen=True)
class SparseVector(Mechanism):
    """The mechanism of one conversation: its questions share the noise of the threshold and the count of answers above.

    Parameters
    ----------
    begun : int
        How many questions the ledger held before the first one of this conversation, which names it.
    use : int
        Number of the question within the conversation.
    """

    epsilon: float
    most: int
    threshold: float
    monotonic: bool = False
    begun: int = 0
    use: int = 0
    at: Literal["server"] = "server"
    memory: Memory = field(default_factory=Memory, compare=False, repr=False)

    def __post_init__(self) -> None:
        positive(self.epsilon)
        if not (isinstance(self.most, int) and self.most >= 1):
            raise BudgetInvalid(f"{self.most!r} answers above the threshold.", remedy="Ask for one or more.")
        if not np.isfinite(self.threshold):
            raise BudgetInvalid(f"a threshold of {self.threshold!r}.", remedy="Give a finite number.")

    @property
    def over(self) -> bool:
        """Whether so many questions as were paid for have been above their threshold."""
        return self.memory.above >= self.most

    # ---- its turns --------------------------------------------------------------------------------------------------
    @property
    def key(self) -> str:
        return f"SparseVector({self.epsilon!r}, {self.most}, {self.monotonic}), begun at {self.begun}"

    @property
    def covered(self) -> bool:
        """Whether this is not the first question of its conversation."""
        return self.use > 0

    def taken(self, use: int, streams: Streams, cohort: Cohort) -> SparseVector:
        """Return the mechanism of question number `use`.

        Raises
        ------
        BudgetExhausted (HR-213)
            So many questions as were paid for have been above their threshold.
        BudgetInvalid (HR-214)
            Another conversation of the same name asked before, so that this one has not been paid for.
        """
        if self.over:
            raise BudgetExhausted(
                f"{self.most} questions were above their threshold, and no more were paid for.",
                remedy="Begin another conversation, or pay for more: most=...",
            )
        if self.memory.streams is None and use:
            raise BudgetInvalid(f"{self} was used before.", remedy="Ask through above_threshold, once for each conversation.")
        self.memory.streams = streams
        return replace(self, use=use)

    def event(self, bounds: Bounds) -> Event:
        """Return the cost of the whole conversation."""
        said = describe(bounds)
        if self.memory.bound not in ("", said):
            raise BudgetInvalid(
                f"a question bounded by {said}, after one bounded by {self.memory.bound}.",
                remedy="Declare one bound that holds for all questions of a conversation.",
            )
        self.memory.bound = said
        return Event("pure", epsilon=self.epsilon)

    # ---- what it does -----------------------------------------------------------------------------------------------
    def fit(self, bounds: Bounds, layout: Layout) -> None:
        """Refuse what is not one number."""
        self._block(bounds, layout)

    def at_party(self, rows: Array, bounds: Bounds, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Round numbers of shape (parties, 1) to the grid."""
        return rounded(rows, self._block(bounds, layout), monotonic=self.monotonic)

    def within(self, rows: Array, bounds: Bounds, layout: Layout, parties: int = 1) -> Array:
        """Which numbers are within a party-level bound."""
        return within(rows, [self._block(bounds, layout)], parties)

    def at_server(self, total: Array, bounds: Bounds, layout: Layout, entropy: Entropy) -> Array:
        """Compare the total with the threshold: one if it is above, zero if not."""
        block, memory = self._block(bounds, layout), self.memory
        if self.over:
            raise BudgetExhausted("no answer is left of those that were paid for.", asked=True)
        if memory.noise is None:
            secret = (memory.streams or Streams()).entropy(self.begun, "server", "threshold")
            memory.noise = int(self.threshold_noise(block, 1, secret)[0])
        above = self.exceeds(total, block, np.array([memory.noise]), entropy)
        memory.above += int(above[0])
        return above.astype(float)

    def threshold_noise(self, block: Block, size: int, entropy: Entropy) -> Array:
        """Draw the noise of the threshold for `size` conversations, in steps."""
        return discrete_laplace(block.scale / self.shares[0], size, entropy)

    def exceeds(self, totals: Array, block: Block, noise: Array, entropy: Entropy) -> Array:
        """Compare a total of each conversation with its noisy threshold; all in steps, of shape (conversations,)."""
        fresh = discrete_laplace(self._factor * self.most * block.scale / self.shares[1], len(noise), entropy)
        above: Array = totals + fresh >= round(self.threshold / block.step) + noise
        return above

    @property
    def shares(self) -> tuple[float, float]:
        """Epsilon of the threshold and of the questions."""
        weight = (self._factor * self.most) ** (2 / 3)
        return self.epsilon / (1 + weight), self.epsilon * weight / (1 + weight)

    @property
    def _factor(self) -> int:
        return 1 if self.monotonic else 2

    def _block(self, bounds: Bounds, layout: Layout) -> Block:
        if layout.size != 1:
            raise BudgetInvalid(f"{layout} is not one number to compare.", remedy="Ask one question at a time.")
        return score_block(bounds, layout, max(1 / self.shares[0], self._factor * self.most / self.shares[1]))

    def __str__(self) -> str:
        kind = ", monotonic" * self.monotonic
        return f"SparseVector({self.epsilon:g}, {self.most} above{kind}), begun at {self.begun}, at the server"


def number(released: object) -> float:
    """Return the one number of a release."""
    value = next(iter(released.values())) if isinstance(released, dict) else released
    return float(np.asarray(value).reshape(()))
