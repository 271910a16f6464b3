"""Noise on running totals: tree aggregation, the mechanism of DP-FTRL.

A learner that adds up its releases cares for the noise of running totals, not for that of each release. Give every node of
a binary tree over the questions one draw of noise, and let the running total after question t carry the noise of the nodes
that tile 1..t, at most log2(t) + 1 of them, instead of t draws. The release of question t is the difference of two running
totals, so the programs that sum their releases, such as federated averaging, need not know:

    x_t + sum of the noise of tiles(t) - sum of the noise of tiles(t - 1)

Everything is a whole number of grid steps: what is released follows from the noisy integer sums of the tree's nodes.

    tiles(t)      for each bit of t, from the top: the node that covers the next 2^bit questions
    distance      of neighbours: the l2 length of (questions of one party under each node), over all nodes

A party may take part in every question, or in each `every`-th, when parties take turns (`Federation.sample(every=...)`). No
amplification by sampling is needed, nor claimed. The first question is charged for all of them, as one Gaussian release
whose noise is `noise_multiplier` times the distance.

Source: Dwork et al., STOC 2010; Chan, Shi & Song 2011; Kairouz et al., ICML 2021 (DP-FTRL), without the weighted sums of
Honaker 2015, which are no whole numbers of steps.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import Bound, Bounds, unit_of
from hedgerow.core.cohort import Cohort
from hedgerow.core.events import Event
from hedgerow.core.mechanism import Mechanism, Position
from hedgerow.core.randomness import Entropy, Streams
from hedgerow.errors import BudgetInvalid, UnlawfulChannel

from .mechanisms import Gaussian, Noise

Node = tuple[int, int]
"""Level and number of a node: it covers the questions number * 2^level + 1 to (number + 1) * 2^level."""


@dataclass(frozen=True)
class Tree(Mechanism):
    """Gaussian noise at the server, shared among the running totals of `rounds` questions.

    Parameters
    ----------
    noise_multiplier : float
        Of all questions together: their cost is that of one Gaussian release with this multiplier.
    rounds : int
        Questions that one tree covers; another one begins, and is charged, after them.
    every : int
        Each party answers every so many questions: 1 where everybody is asked each time, k where k groups take turns.
    """

    noise_multiplier: float
    rounds: int
    every: int = 1
    use: int = field(default=0, repr=False, compare=False)
    at: Position = field(default="server", init=False, repr=False)

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.every < 1:
            raise BudgetInvalid(
                f"a tree over {self.rounds} rounds, in each {self.every}-th of which a party takes part.",
                remedy="Both are at least 1.",
            )
        Gaussian(self.noise_multiplier)

    @property
    def key(self) -> str:
        return f"Tree({self.noise_multiplier!r}, {self.rounds}, {self.every})"

    @property
    def covered(self) -> bool:
        """Whether this is not the first question of its tree."""
        return self.use % self.rounds != 0

    @property
    def span(self) -> str:
        """Tells the tree of this question from the others of this mechanism."""
        return f"tree {self.use // self.rounds + 1}"

    def taken(self, use: int, streams: Streams, cohort: Cohort) -> Tree:
        """The mechanism of question number `use`; refuse a cohort whose turn it is not."""
        if cohort.turn != (use % self.every, self.every):
            raise UnlawfulChannel(
                f"{self} counts on groups that take turns, and question {use + 1} went to another cohort.",
                remedy=f"Ask each cohort once: federation.sample(every={self.every}).sum(...)."
                if self.every > 1
                else "Ask everybody, or give the tree the turns: Tree(..., every=k) and federation.sample(every=k).",
            )
        streams.refuse_a_fork()
        taken = replace(self, use=use)
        taken.__dict__["streams"] = streams
        return taken

    def event(self, bounds: Bounds) -> Event:
        """The cost of the whole tree."""
        if unit_of(bounds) != "party" and self.every > 1:
            raise UnlawfulChannel(
                f"{self} lets parties take turns, but the bound is per record.", remedy="Bound the sum per party."
            )
        return Event("gaussian", self.noise_multiplier)

    def fit(self, bounds: Bounds, layout: Layout) -> None:
        """Refuse noise of so many coordinates that it cannot be drawn."""
        self._node_noise.fit(bounds, layout)

    def grid(self, bounds: Bounds, layout: Layout) -> list[tuple[slice, Bound, float]] | None:
        """The parts of a contribution with the bound of each and the step of its grid."""
        return self._node_noise.grid(bounds, layout)

    def at_party(self, rows: Array, bounds: Bounds, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Round rows of shape (parties, size) to the grid."""
        return self._node_noise.at_party(rows, bounds, layout, entropies)

    def within(self, rows: Array, bounds: Bounds, layout: Layout, parties: int = 1) -> Array:
        """Which rows are within party-level bounds."""
        return self._node_noise.within(rows, bounds, layout, parties)

    def at_server(self, total: Array, bounds: Bounds, layout: Layout, entropy: Entropy) -> Array:
        """Add the change of the running total's noise to an integer total of shape (size,)."""
        t = self.use % self.rounds + 1
        new, old = set(tiles(t)), set(tiles(t - 1))
        released = replace(self._node_noise, at="party").at_server(total, bounds, layout, entropy)  # in units, without noise
        for node in sorted(new ^ old):  # sums of whole steps, so nothing is rounded
            noise = self._noise(node, bounds, layout)
            released = released + noise if node in new else released - noise
        return released

    def _noise(self, node: Node, bounds: Bounds, layout: Layout) -> Array:
        """A node's own noise, in units, the same each time it is asked for."""
        tree = self.use // self.rounds
        entropy = self.streams.recalled(tree, "server", f"noise of node {node[1]} on level {node[0]} of {self._exactly}")
        return self._node_noise.at_server(np.zeros(layout.size, np.int64), bounds, layout, entropy)

    @property
    def _exactly(self) -> str:
        """Its name with all digits of the noise, since two trees must not share the noise of a node."""
        return str(self) if float(f"{self.noise_multiplier:g}") == self.noise_multiplier else self.key

    @cached_property
    def streams(self) -> Streams:
        """The server's randomness, from which its noise is drawn; no field, so it is not part of what parties are told."""
        return Streams()

    @cached_property
    def _node_noise(self) -> Noise:
        return Gaussian(self.noise_multiplier * distance(self.rounds, self.every))

    def __str__(self) -> str:
        turns = f", parties take part in every {self.every}th" if self.every > 1 else ""
        return f"Tree({self.noise_multiplier:g}) over {self.rounds} rounds{turns}, at the server"


def tiles(t: int) -> Iterator[Node]:
    """The nodes that together cover the questions 1 to t, each once."""
    start = 0
    for level in reversed(range(t.bit_length())):
        if t >> level & 1:
            yield level, start >> level
            start += 1 << level


@lru_cache(maxsize=64)
def distance(rounds: int, every: int) -> float:
    """How far one party that takes part in each `every`-th of so many questions moves the nodes' sums, in bounds.

    Nodes that no running total ever uses are left out: a node is used where it is a tile of some t.
    """
    used = {node for t in range(1, rounds + 1) for node in tiles(t)}
    farthest = 0.0
    for first in range(min(every, rounds)):
        counts = Counter[Node]()
        for t in range(first, rounds, every):
            counts.update((level, t >> level) for level in range(rounds.bit_length()) if (level, t >> level) in used)
        farthest = max(farthest, math.fsum(count**2 for count in counts.values()))
    return math.sqrt(farthest)
