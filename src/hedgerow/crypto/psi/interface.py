"""What every alignment offers: settings that know how to read a list of ids, and one peer for each party."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Entropy

from ..peers import Peer


@dataclass(frozen=True)
class AlignedRows:
    """What a party has learned from an alignment; it never leaves the party.

    Attributes
    ----------
    rows : int64 array of shape (common,)
        Positions, in the party's own list, of the people whom all lists have in common, in an order that is the same at all
        parties and tells nothing of an id: it follows from secrets of the protocol.
    sizes : dict from party to int
        How long the lists were, as far as this party was told.
    """

    rows: Array
    sizes: dict[str, int] = field(default_factory=dict)


class AlignmentProtocol(Protocol):
    """Settings of a protocol by which parties find the people they have in common; the same at all parties."""

    @property
    def name(self) -> str:
        """How a study names the protocol: "x25519", "kkrt"."""

    @property
    def least(self) -> int:
        """Fewest common people; with fewer the alignment is refused (HR-246) at every party."""

    @property
    def shows(self) -> Mapping[str, str]:
        """Who learns what, a sentence for each role: "party", "pivot" where one differs, "hub", "world"."""

    def read(self, values: Sequence[Any] | Array) -> list[bytes]:
        """Bring a column of ids into the public normal form, in its order; refuse (HR-413), at home, what cannot be aligned."""

    def peer(
        self, me: str, names: tuple[str, ...], ids: Sequence[bytes], *, entropy: Entropy | None = None
    ) -> Peer[AlignedRows]:
        """Return the side of the party `me` among `names`, which all give in the same order.

        Parameters
        ----------
        ids : sequence of bytes
            As `read` returned them: distinct, none empty.
        entropy : callable, optional
            Gives secret bytes; the operating system's unless a simulation must repeat itself.
        """


class Masker(Protocol):
    """A secret number that masks elements of a group; two of them may be applied in either order."""

    def mask(self, elements: bytes) -> bytes:
        """Return each element masked, in order."""


class CommutingGroup(Protocol):
    """A group in which masks commute, and a mask and an element together do not tell the mask."""

    @property
    def name(self) -> str:
        """Part of what parties compare before they begin."""

    @property
    def size(self) -> int:
        """Bytes of an element."""

    @property
    def piece(self) -> int:
        """Elements that are masked in about two seconds."""

    def elements_of(self, ids: Iterable[bytes], salt: bytes) -> bytes:
        """Hash ids to elements, in order."""

    def check(self, raw: bytes) -> None:
        """Return if bytes are elements that an honest party may send; refuse (HR-242) otherwise."""

    def fresh(self, entropy: Entropy) -> Masker:
        """Draw a mask."""

    def pair(self, entropy: Entropy) -> tuple[Masker, Masker]:
        """Draw a mask, and the one that takes it off again."""
