"""Star: one party, the pivot, compares; the others answer it alike, in an order that it does not know.

    1 P -> k     shuffle(p u), of its ids                       k -> P     shuffle(k v), of k's ids
    2 k -> P     tags of k(p u), in one order secret to P       P computes tags of p(k v)
    3 P counts the places of 2 whose tag every k has, tells all of them the number; with fewer than `least` all refuse
    4 P -> k     where the common people stand in what k sent in 1, in the order of the first one's tags
      P -> the first k   the common places of 2;     k -> P     where they stand in what P sent in 1

Everybody checks in 1 that points are on the curve, of large order, and none twice. After 3 the pivot knows how many are common;
who they are shows in 4 alone. Of two parties, each learns which of its own people are common, and sizes. Of more, the pivot
learns besides how many it has in common with each and with several of the others, of its own list, without knowing who they
are; `ring` hides that too. The others learn which of theirs are common to all.

Source: Meadows 1986 and Huberman, Franklin & Hogg 1999 for the double mask. Differs: answers come in a secret order, so that
what is common can be counted before it is shown.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Entropy, keystream
from hedgerow.errors import MessageRefused

from ..peers import Letters
from .ids import IdRules
from .interface import CommutingGroup, Masker
from .opening import Beginning
from .pipes import Pipes, pieces
from .tags import TAG_BYTES, matches, permutation, refuse_repeats, tags_of

Step = Generator[Letters, Mapping[str, bytes], tuple[int, Array]]
"""A side returns how many are common, and where they stand in the own list; nowhere where it is not told."""

NOBODY, PIVOT, ALL = "nobody", "pivot", "all"
"""Who is told which people are common; the others are told how many."""

_POSITION = 4


@dataclass
class StarSide:
    """One party's side after the beginning: its ids, its secrets, its pipes."""

    me: str
    ids: Sequence[bytes]
    rules: IdRules
    opened: Beginning
    entropy: Entropy
    group: CommutingGroup
    told: str
    """Who is told which people are common."""

    def __post_init__(self) -> None:
        self.pipes = Pipes(self.me, tuple(name for name in self.opened.names if name != self.me))
        self.order = permutation(len(self.ids), self.entropy)
        for name, size in self.opened.sizes.items():
            if name != self.me:
                most = (2 * self.group.size + 2 * TAG_BYTES + 3 * _POSITION) * (size + len(self.ids)) + (1 << 12)
                self.pipes.allow(name, most)

    def write_masked(self, masker: Masker, to: Sequence[str]) -> Generator[Letters, Mapping[str, bytes], None]:
        """Write the own list, shuffled and masked, to others, piece by piece."""
        begun = 0
        for n in pieces(len(self.ids), self.group.piece):
            chosen = [self.ids[i] for i in self.order[begun : begun + n]]
            masked = masker.mask(self.group.elements_of(chosen, self.opened.salt))
            for name in to:
                self.pipes.write(name, masked)
            begun += n
            yield from self.pipes.turn()

    def read_elements(self, name: str, count: int, masker: Masker) -> Generator[Letters, Mapping[str, bytes], bytes]:
        """Read another's list, refuse what no honest party sends, and return it masked by this one's number."""
        came, masked = bytearray(), bytearray()
        for n in pieces(count, self.group.piece):
            raw = yield from self.pipes.read(name, n * self.group.size)
            self.group.check(raw)
            came += raw
            masked += masker.mask(raw)
        refuse_repeats(np.frombuffer(bytes(came), np.uint8).reshape(-1, self.group.size))
        return bytes(masked)

    def tags(self, masked: bytes) -> Array:
        """Return the tags of elements that both have masked."""
        return tags_of(masked, self.group.size, self.opened.salt)

    def write_positions(self, name: str, positions: Array) -> None:
        """Write positions of records."""
        self.pipes.write(name, positions.astype("<u4").tobytes())

    def read_positions(self, name: str, count: int, below: int) -> Generator[Letters, Mapping[str, bytes], Array]:
        """Read positions, each once and below a number."""
        raw = yield from self.pipes.read(name, count * _POSITION)
        found = np.frombuffer(raw, "<u4").astype(np.int64)
        if np.any(found >= below) or len(np.unique(found)) != count:
            raise MessageRefused(f"{name} sent positions that no list of {below} has.")
        return found

    def tell(self, common: int) -> Generator[Letters, Mapping[str, bytes], None]:
        """Tell all others the number of common people; refuse (HR-246) if they are too few."""
        for name in self.opened.answering:
            self.write_positions(name, np.array([common]))
        yield from self.pipes.flush()
        self.rules.check_common(common)

    def hear(self) -> Generator[Letters, Mapping[str, bytes], int]:
        """Hear from the pivot how many are common; refuse (HR-246) if they are too few."""
        most = min(self.opened.sizes.values())
        found = yield from self.read_positions(self.opened.pivot, 1, most + 1)
        self.rules.check_common(int(found[0]))
        return int(found[0])


def pivot_side(side: StarSide) -> Step:
    """Compare, as the pivot."""
    opened = side.opened
    masker = side.group.fresh(side.entropy)
    yield from side.write_masked(masker, opened.answering)
    theirs = {}
    for name in opened.answering:
        masked = yield from side.read_elements(name, opened.sizes[name], masker)
        theirs[name] = side.tags(masked)
    places, joint = np.arange(len(side.ids)), {}
    for name in opened.answering:
        raw = yield from side.pipes.read(name, len(side.ids) * TAG_BYTES)
        answers = np.frombuffer(raw, np.uint8).reshape(-1, TAG_BYTES)
        here, there = matches(answers, theirs[name])
        if name == opened.first:
            places = here  # the common order is that of these tags
        joint[name] = np.full(len(side.ids), -1)
        joint[name][here] = there
        places = places[joint[name][places] >= 0]
    return (yield from show(side, places, {name: found[places] for name, found in joint.items()}))


def show(side: StarSide, places: Array, theirs: Mapping[str, Array]) -> Step:
    """Tell the others, as the pivot, how many are common and where these stand in their lists; learn where in the own one."""
    opened = side.opened
    yield from side.tell(len(places))
    if side.told == NOBODY:
        return len(places), places[:0]
    side.write_positions(opened.first, places)
    for name, positions in theirs.items() if side.told == ALL else ():
        side.write_positions(name, positions)
    mine = yield from side.read_positions(opened.first, len(places), len(side.ids))
    yield from side.pipes.flush()
    return len(places), side.order[mine]


def answering_side(side: StarSide) -> Step:
    """Answer the pivot."""
    opened, n = side.opened, side.opened.sizes[side.opened.pivot]
    masker = side.group.fresh(side.entropy)
    yield from side.write_masked(masker, [opened.pivot])
    masked = yield from side.read_elements(opened.pivot, n, masker)
    turned = permutation(n, keystream(opened.seed))
    side.pipes.write(opened.pivot, side.tags(masked)[turned].tobytes())
    return (yield from learn(side, turned))


def learn(side: StarSide, turned: Array) -> Step:
    """Hear from the pivot how many are common and where they stand in the own list; turn the pivot's places back."""
    opened = side.opened
    common = yield from side.hear()
    mine = turned[:0]
    if side.told != NOBODY and side.me == opened.first:
        places = yield from side.read_positions(opened.pivot, common, len(turned))
        side.write_positions(opened.pivot, turned[places])
    if side.told == ALL:
        mine = yield from side.read_positions(opened.pivot, common, len(side.ids))
    yield from side.pipes.flush()
    return common, side.order[mine]
