"""What the slots of a channel hold: interfaces of mechanisms, plans and compressions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hedgerow.errors import UnlawfulChannel

from .arrays import Array, Layout
from .bound import Bound, Bounds
from .cohort import Cohort
from .events import Event, Unit
from .randomness import Entropy, Stream, Streams

Position = Literal["server", "aggregators", "shares", "party"]
"""Who adds noise: the server, each of the few who add up shares of rows, all parties together, or each party by itself."""

Sampler = Callable[[str, float, int, Entropy], Array]
"""Draws noise of a law: its name, its scale in grid steps, how many numbers, and from which bytes; whole numbers of int64."""


@dataclass(frozen=True)
class NoiseRuns:
    """Noise on a row of whole steps.

    Attributes
    ----------
    law : str
        As a `Sampler` knows it.
    runs : tuple of (int, float)
        Runs of so many numbers with the same scale, in grid steps.
    """

    law: str
    runs: tuple[tuple[int, float], ...]

    @property
    def size(self) -> int:
        """Numbers of the row."""
        return sum(n for n, _ in self.runs)

    def draw(self, sampler: Sampler, entropy: Entropy) -> Array:
        """Draw it once: shape (size,), int64."""
        return np.concatenate([sampler(self.law, scale, n, entropy) for n, scale in self.runs] or [np.zeros(0, np.int64)])


class SharedCharge:
    """What questions have in common that one charge covers; by default every question stands alone.

    Attributes
    ----------
    key : str or None
        Names what several questions share, such as the noise of a tree; None where every question stands alone. The ledger
        counts the questions of a key.
    covered : bool
        Whether the charge of an earlier question with this key covers this one as well, which then cites it.
    span : str
        Tells the questions that one charge covers from the others with this key.
    """

    @property
    def key(self) -> str | None:
        return None

    @property
    def span(self) -> str:
        return ""

    @property
    def covered(self) -> bool:
        return False


class Mechanism(SharedCharge, ABC):
    """A randomised release of bounded sums, by the server or by each party; see `hedgerow.privacy.mechanisms`.

    Attributes
    ----------
    at : {"server", "aggregators", "shares", "party"}
    least : int
        Of noise in shares: how many shares make the whole noise; 0 elsewhere.
    aggregators : int
        Of noise at aggregators: how many add the whole noise each, as the channel said (`added_by`); 0 elsewhere.
    record_step : float or None
        Of noise on whole numbers: 1.
    key, covered, span
        As of `SharedCharge`.
    """

    @property
    @abstractmethod
    def at(self) -> Position: ...

    @property
    def least(self) -> int:
        return 0

    @property
    def aggregators(self) -> int:
        return 0

    def added_by(self, aggregators: int) -> Mechanism:
        """Return the mechanism where so many aggregators add its noise.

        Raises
        ------
        UnlawfulChannel (HR-211)
            They cannot: they would have to know more than a law and its scale.
        """
        if self.at == "aggregators":
            raise UnlawfulChannel(
                f"{self} cannot be added by aggregators, who are told of a law and its scale alone.",
                remedy="Take Gaussian, Laplace, Skellam, Geometric or DiscreteGaussian; or add the noise elsewhere.",
            )
        return self

    @property
    def record_step(self) -> float | None:
        """The step of which records add whole multiples, whatever their bound; None where the bound may choose it."""
        return None

    def taken(self, use: int, streams: Streams, cohort: Cohort) -> Mechanism:
        """Return the mechanism of question number `use` of its key, counted from zero, or refuse the cohort that is asked."""
        return self

    @abstractmethod
    def event(self, bounds: Bounds) -> Event:
        """The cost of one release of a sum with these bounds; of questions that share a charge, the cost of all of them."""

    @abstractmethod
    def fit(self, bounds: Bounds, layout: Layout) -> None:
        """Refuse a contribution whose noise cannot be drawn."""

    @abstractmethod
    def at_party(self, rows: Array, bounds: Bounds, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Turn rows of shape (parties, size) into what may leave: integers on the mechanism's grid, within the bounds.

        A row that is not finite leaves as zeros: a refusal would reveal it.
        """

    @abstractmethod
    def at_server(self, total: Array, bounds: Bounds, layout: Layout, entropy: Entropy) -> Array:
        """Turn the integer total of shape (size,) into the release, in the units of the contribution."""

    def within(self, rows: Array, bounds: Bounds, layout: Layout, parties: int = 1) -> Array:
        """Which rows of shape (n, size), each the sum of so many parties', are within the bounds as far as can be seen: (n,).

        All, unless a mechanism can tell: noise that a party has added has no bound.
        """
        return np.ones(len(rows), bool)

    def enough(self, answered: int) -> None:
        """Refuse to release a total of too few parties for the noise that they add together."""
        return

    def bytes(self, bounds: Bounds, layout: Layout) -> float:
        """Size of what leaves a party, with 32 bits to a number."""
        return 4.0 * layout.size

    def noise_deviation(self, bounds: Bounds, layout: Layout, parties: float, use: int = 0) -> dict[str, float] | None:
        """Standard deviation of the noise in each number of each key, in question number `use` of the mechanism's key.

        It is summed over the expected parties, or aggregators, where they add it; None where no noise of a known size is.
        """
        return None

    def grid(self, bounds: Bounds, layout: Layout) -> list[tuple[slice, Bound, float]] | None:
        """The parts of a contribution with the bound of each and the step of its grid; None where there is no such grid."""
        return None

    def reach(self, bounds: Bounds, layout: Layout, records: float = 1.0) -> float:
        """How many grid steps a party's contribution may reach, noise included but for a negligible chance."""
        return 2.0**40

    # ---- noise at aggregators ---------------------------------------------------------------------------------------
    def each_adds(self, bounds: Bounds, layout: Layout) -> NoiseRuns:
        """What each aggregator adds to its total: the whole noise that `event` charges."""
        raise NotImplementedError

    def added_reach(self, bounds: Bounds, layout: Layout) -> float:
        """How many grid steps the noise of all aggregators together may reach, but for a negligible chance."""
        return 0.0

    @property
    def sampler(self) -> Sampler:
        """By which aggregators in this process draw."""
        raise NotImplementedError


class Plan(SharedCharge, ABC):
    """A private mechanism inside a local function, such as the noisy steps of a party that trains.

    Attributes
    ----------
    unit : {"record", "party"}
    key, covered, span
        As of `SharedCharge`.
    """

    @property
    @abstractmethod
    def unit(self) -> Unit: ...

    @abstractmethod
    def event(self) -> Event:
        """The cost of one call, at whichever party it costs most; of calls that share a charge, the cost of all of them."""

    def event_of(self, party: str) -> Event:
        """The same at one party, whose noise may be larger than another's; by default that of any."""
        return self.event()


class Compression(ABC):
    """A shorter code for large contributions, made before masks and noise; see `hedgerow.compression`.

    Attributes
    ----------
    linear : bool
        Whether codes are plain shorter vectors that add up, and so may be masked, or noised at the party.
    remembers : bool
        Whether a party keeps what was lost in one round, and adds it in the next.
    """

    @property
    @abstractmethod
    def linear(self) -> bool: ...

    @property
    @abstractmethod
    def remembers(self) -> bool: ...

    @abstractmethod
    def code(self, layout: Layout) -> Layout:
        """Keys and shapes of the code of a contribution."""

    @abstractmethod
    def wire_bits(self, layout: Layout) -> float:
        """Size of one contribution's code on a wire."""

    @abstractmethod
    def encode(self, rows: Array, layout: Layout, public: Stream, own: Sequence[Stream]) -> Array:
        """Turn rows of shape (parties, size) into codes; `public` randomness is shared by all parties of a round."""

    @abstractmethod
    def decode(self, total: Array, layout: Layout, public: Stream) -> Array:
        """Turn a total of codes into a total of contributions, of shape (size,); leading axes are kept."""

    def stretch(self, norm: float, layout: Layout) -> float:
        """How many times as long as a contribution its code may be, in a norm; by default it is no longer."""
        return 1.0
