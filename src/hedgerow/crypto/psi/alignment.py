"""One side of an alignment by masks that commute, from the beginning to the rows: over any group, as a star or a ring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.core.randomness import Entropy

from ..messages import digest
from ..peers import Peer
from .ids import IdRules
from .interface import AlignedRows, CommutingGroup
from .opening import opened
from .ring import answering_in_ring, pivot_of_ring
from .star import ALL, NOBODY, PIVOT, StarSide, answering_side, pivot_side


@dataclass(frozen=True)
class Masked:
    """What parties of an alignment by masks agree on.

    Attributes
    ----------
    group : CommutingGroup
    rules : IdRules
    topology : str
        "star" or "ring".
    learns : str, optional
        The one party that is told which people are common; all are by default.
    """

    group: CommutingGroup
    rules: IdRules
    topology: str = "star"
    learns: str | None = None

    def rows(self, me: str, names: tuple[str, ...], ids: Sequence[bytes], entropy: Entropy) -> Peer[AlignedRows]:
        """Return the side of the party `me`, which learns which of its people are common."""
        _, rows = yield from self.side(me, names, ids, ALL if self.learns is None else PIVOT, entropy)
        return rows

    def count(self, me: str, names: tuple[str, ...], ids: Sequence[bytes], entropy: Entropy) -> Peer[int]:
        """Return the side of the party `me`, which learns how many people are common."""
        common, _ = yield from self.side(me, names, ids, NOBODY, entropy)
        return common

    def side(
        self, me: str, names: tuple[str, ...], ids: Sequence[bytes], told: str, entropy: Entropy
    ) -> Peer[tuple[int, AlignedRows]]:
        """Return how many people are common, and where they stand in the own list if this party is told."""
        words = (self.group.name, self.topology, told, self.learns or "")
        settings = digest("alignment by masks", *(word.encode() for word in words))
        begun = yield from opened(me, names, len(ids), self.rules, settings, self.learns, entropy)
        side = StarSide(me, ids, self.rules, begun, entropy, self.group, told)
        ring = self.topology == "ring" and len(names) > 2
        sides = (pivot_of_ring, answering_in_ring) if ring else (pivot_side, answering_side)
        common, rows = yield from sides[me != begun.pivot](side)
        return common, AlignedRows(rows, begun.sizes)
