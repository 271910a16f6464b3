"""How parties of an alignment begin: they compare settings and sizes, and draw a salt that none of them can choose.

    1 each -> all     commitment to 32 random bytes, length of its list, digest of its settings
    2 each -> all     the random bytes; and, if it is the first of those who answer the pivot, a seed for the order of answers
    salt = digest of all random bytes

All refuse, by the same numbers, if sizes or settings do not allow an alignment. The pivot is the party with the shortest list,
or the one that alone shall learn. The seed is for those who answer the pivot: they use one secret order, which the pivot lacks.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass

from hedgerow.core.randomness import Entropy
from hedgerow.errors import KeyInvalid, MessageRefused

from ..cohort import LONGEST_NAME
from ..messages import MessageForm, Octets, Whole, digest, exactly
from ..peers import HUB, Letters
from .ids import IdRules

HELLO = MessageForm("alignment hello", commitment=exactly(32), size=Whole(0, 2**31), settings=exactly(32))
REVEAL = MessageForm("alignment coin", coin=exactly(32), seed=Octets(0, 32))


@dataclass(frozen=True)
class Beginning:
    """What all parties know after the beginning, and the seed that those who answer share."""

    names: tuple[str, ...]
    pivot: str
    answering: tuple[str, ...]
    sizes: dict[str, int]
    salt: bytes
    seed: bytes

    @property
    def first(self) -> str:
        """The first of those who answer the pivot."""
        return self.answering[0]


def lawful_names(me: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the others; refuse (HR-244) names that do not make an alignment."""
    fit = all(isinstance(name, str) and 0 < len(name.encode()) <= LONGEST_NAME and name != HUB for name in names)
    if len(names) < 2 or len(set(names)) != len(names) or me not in names or not fit:
        raise KeyInvalid(
            f"{me!r} among {', '.join(map(repr, names))}.", remedy=f'Name two parties or more, each once; none is "{HUB}".'
        )
    return tuple(name for name in names if name != me)


def opened(
    me: str, names: tuple[str, ...], size: int, rules: IdRules, settings: bytes, pivot: str | None, entropy: Entropy
) -> Generator[Letters, Mapping[str, bytes], Beginning]:
    """Carry out the beginning; see the module.

    Parameters
    ----------
    settings : bytes
        All that must be the same at all parties, 32 bytes.
    pivot : str, optional
        Who compares; the party with the shortest list unless it is given.
    """
    others = lawful_names(me, names)
    if pivot is not None and pivot not in names:
        raise KeyInvalid(f"{pivot!r} does not take part.", remedy=f"Choose one of {', '.join(names)}.")
    coin, agreed = entropy(32), digest("alignment settings", settings, rules.digest, *(name.encode() for name in names))
    hello = HELLO.pack(commitment=_commitment(me, coin), size=size, settings=agreed)
    came = yield dict.fromkeys(others, hello)
    commitments, sizes = {}, {me: size}
    for name in others:
        commitments[name], sizes[name], theirs = HELLO.unpack(came.get(name, b""))
        if theirs != agreed:
            raise MessageRefused(f"{name} has other settings of the alignment.", remedy="Take them from one study.")
    sizes = {name: sizes[name] for name in names}
    rules.check_sizes(sizes)
    pivot = pivot or min(names, key=sizes.__getitem__)
    answering = tuple(name for name in names if name != pivot)
    seed = entropy(32) if me == answering[0] else b""
    came = yield {
        name: REVEAL.pack(coin=coin, seed=b"" if name == pivot else seed) for name in others
    }  # the pivot never sees the seed
    coins = {me: coin}
    for name in others:
        coins[name], theirs = REVEAL.unpack(came.get(name, b""))
        if _commitment(name, coins[name]) != commitments[name]:
            raise MessageRefused(f"{name} drew a coin other than the one it had committed to.")
        wanted = name == answering[0] and me != pivot
        if len(theirs) != (32 if wanted else 0):
            raise MessageRefused(f"{name} sent a seed that is not its to send.")
        seed = theirs or seed
    salt = digest("alignment salt", agreed, *(coins[name] for name in names))
    return Beginning(names, pivot, answering, sizes, salt, seed)


def _commitment(name: str, coin: bytes) -> bytes:
    return digest("alignment commitment", name.encode(), coin)
