"""Alignment by masks on curve25519, of two parties or more: the default up to about 10^5 ids.

    u = point of (salt, id);  each list is masked by its owner and by whoever answers or compares;  equal ids, equal points

Assumes  : parties follow the protocol and do not collude; ids are distinct after one public normal form; letters between
           parties are sealed end to end, so that the hub sees their sizes alone; all list lengths are public among the parties.
Shows    : see `X25519.shows`.
Cost     : per id and pair of lists two hashes to the curve, four masks, two checks; 32 bytes an id each way, 12 back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hedgerow.core.arrays import Array
from hedgerow.core.question import travels
from hedgerow.core.randomness import Entropy
from hedgerow.errors import SettingsInvalid

from ..cohort import lawful_least
from ..peers import Peer
from ..streams import fresh
from .alignment import Masked
from .curve import Curve25519
from .ids import IdRules
from .interface import AlignedRows
from .rfc9380 import StandardCurve25519

TOPOLOGIES = ("star", "ring")


@travels
@dataclass(frozen=True)
class X25519:
    """Find the people whom two parties or more have in common, by masks on curve25519.

    Parameters
    ----------
    least : int
        Fewest common people, at least 3. With fewer all parties refuse (HR-246), and nobody has learned who they are.
    most : int
        Longest list.
    ratio : float
        The longest list may be so many times as long as the shortest.
    normal : str
        The public normal form of ids: "nfkc-casefold", or "exact".
    topology : str
        Of three parties or more: "star", where the party with the shortest list learns how many people it has in common with
        each of the others; or "ring", where it does not, for about as much time and 36 bytes more an id and other party.
    small_domain : str
        "refused", or "accepted" where ids have fewer than 2^40 possible values, as numbers of persons and telephones.
    hashing : str
        "try", which hashes an id until it meets the curve; or "rfc9380", the standard's, for about 30 us more an id.
    learns : str, optional
        The one party that learns who is common; all do by default. The others learn how many. For `peer` alone: `align` refuses
        it, since all parties need the order.
    """

    least: int = 10
    most: int = 2_000_000
    ratio: float = 100.0
    normal: str = "nfkc-casefold"
    topology: str = "star"
    small_domain: str = "refused"
    hashing: str = "try"
    learns: str | None = None

    def __post_init__(self) -> None:
        _ = self.rules
        lawful_least(self.least)
        if self.topology not in TOPOLOGIES or self.hashing not in ("try", "rfc9380"):
            raise SettingsInvalid(
                f"topology={self.topology!r}, hashing={self.hashing!r}.",
                remedy='Choose "star" or "ring", and "try" or "rfc9380".',
            )

    @property
    def name(self) -> str:
        """How a study names the protocol."""
        return "x25519"

    @cached_property
    def rules(self) -> IdRules:
        """What lists must be."""
        return IdRules(self.least, self.most, self.ratio, self.normal, self.small_domain)

    @property
    def shows(self) -> Mapping[str, str]:
        """Who learns what, a sentence for each role."""
        common = "how many people all lists have in common"
        which = f"which of its own people are in all lists, {common}, and how long each list is"
        shown = {"party": which, "hub": "sizes of sealed letters, from which lengths of lists follow", "world": "nothing"}
        if self.learns is not None:
            shown |= {"party": f"{common}, and how long each list is", self.learns: which}
        if self.topology == "star":
            shown["pivot"] = (
                "where three or more take part, the one with the shortest list (or the only one that learns) also learns how "
                "many people of its list each of the others has, and each combination of them; not who these are"
            )
        return shown

    def read(self, values: Sequence[Any] | Array) -> list[bytes]:
        """Bring a column of ids into the normal form; refuse (HR-413), at home, what cannot be aligned."""
        return self.rules.read(values)

    def peer(
        self, me: str, names: tuple[str, ...], ids: Sequence[bytes], *, entropy: Entropy | None = None
    ) -> Peer[AlignedRows]:
        """Return the side of the party `me` among `names`, which all parties give in the same order.

        Parameters
        ----------
        ids : sequence of bytes
            As `read` returned them: distinct, none empty.
        entropy : callable, optional
            Gives secret bytes; the operating system's unless a simulation must repeat itself.

        Raises
        ------
        AlignmentRefused (HR-246), MessageRefused (HR-242), KeyInvalid (HR-244)
        """
        return self._masked.rows(me, names, ids, entropy or fresh)

    def count(self, me: str, names: tuple[str, ...], ids: Sequence[bytes], *, entropy: Entropy | None = None) -> Peer[int]:
        """Return a side that learns how many people are common, and not who they are; `least` holds as well."""
        return self._masked.count(me, names, ids, entropy or fresh)

    @property
    def _masked(self) -> Masked:
        group = StandardCurve25519() if self.hashing == "rfc9380" else Curve25519()
        return Masked(group, self.rules, self.topology, self.learns)
