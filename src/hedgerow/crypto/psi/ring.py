"""Ring: a star of three parties or more in which the pivot learns nothing about single others, nor about some of them together.

    0 j -> k     a key for every two of those who answer
    1 P -> k     shuffle(p u), of its ids; k answers all k(p u), in one order secret to P
    2 k -> P     a veil: for each id v of k, from the tag of k v to its share  z_k(v) = xor over j of PRF(key_jk, v)
    3 P takes p off, looks tags up in all veils: the shares cancel where all have the id, and are random elsewhere
    4 P counts, tells all the number; then where the common people stand: to each k the tags of k u, in one order

The shares of an id add up to zero around the ring of those who answer, and to nothing while one is missing. So P sees how
many people are common to all, and no other number but lengths of lists. Each of the others learns which of its own are common
to all. P together with one of the others could tell more: parties do not collude.

Source: Kolesnikov, Matania, Pinkas, Rosulek & Trieu 2017 (shares of zero under programmed pseudorandom functions). Differs: the
        function is a mask that comes off again, answers stand in a secret order, and the number is known before the people.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import keystream
from hedgerow.errors import MessageRefused

from ..messages import digest
from ..peers import Letters
from .star import ALL, NOBODY, StarSide, Step
from .tags import TAG_BYTES, matches, permutation
from .veil import TRIES, Veil, third_of


def pivot_of_ring(side: StarSide) -> Step:
    """Compare, as the pivot."""
    opened, n = side.opened, len(side.ids)
    on, off = side.group.pair(side.entropy)
    yield from side.write_masked(on, opened.answering)
    left, tags = np.zeros((n, TAG_BYTES), np.uint8), {}
    for name in opened.answering:
        answers = yield from side.read_elements(name, n, off)
        tags[name] = side.tags(answers)
        (choice,) = yield from side.pipes.read(name, 1)
        if choice >= TRIES:
            raise MessageRefused(f"{name} sent a veil of a hash that there is not.")
        raw = yield from side.pipes.read(name, 3 * third_of(opened.sizes[name]) * TAG_BYTES)
        veil = Veil(np.frombuffer(raw, np.uint8).reshape(-1, TAG_BYTES), choice)
        left = left ^ veil.values(tags[name], opened.salt)
    places = np.flatnonzero(~left.any(axis=1))
    first = tags[opened.first][places]
    places = places[np.lexsort(first.T[::-1])]  # the common order is that of these tags
    yield from side.tell(len(places))
    if side.told == NOBODY:
        return len(places), places[:0]
    side.write_positions(opened.first, places)
    for name in opened.answering if side.told == ALL else ():
        side.pipes.write(name, tags[name][places].tobytes())
    mine = yield from side.read_positions(opened.first, len(places), n)
    yield from side.pipes.flush()
    return len(places), side.order[mine]


def answering_in_ring(side: StarSide) -> Step:
    """Answer the pivot."""
    opened, n = side.opened, side.opened.sizes[side.opened.pivot]
    keys = yield from _keys(side)
    masker = side.group.fresh(side.entropy)
    masked = yield from side.read_elements(opened.pivot, n, masker)
    turned = permutation(n, keystream(opened.seed))
    elements = np.frombuffer(masked, np.uint8).reshape(-1, side.group.size)[turned]
    side.pipes.write(opened.pivot, elements.tobytes())
    own = side.tags(masker.mask(side.group.elements_of(side.ids, opened.salt)))
    veil = Veil.over(own, _shares(side, keys), opened.salt, side.entropy)
    side.pipes.write(opened.pivot, bytes([veil.choice]) + veil.table.tobytes())
    common = yield from side.hear()
    mine = turned[:0]
    if side.told != NOBODY and side.me == opened.first:
        places = yield from side.read_positions(opened.pivot, common, n)
        side.write_positions(opened.pivot, turned[places])
    if side.told == ALL:
        raw = yield from side.pipes.read(opened.pivot, common * TAG_BYTES)
        mine = _found(np.frombuffer(raw, np.uint8).reshape(-1, TAG_BYTES), own)
    yield from side.pipes.flush()
    return common, mine


def _keys(side: StarSide) -> Generator[Letters, Mapping[str, bytes], list[bytes]]:
    """Agree with each of the others who answer on a key: the one named first draws it."""
    keys, names = [], side.opened.answering
    at = names.index(side.me)
    for name in names[at + 1 :]:
        keys.append(side.entropy(32))
        side.pipes.write(name, keys[-1])
    for name in names[:at]:
        keys.append((yield from side.pipes.read(name, 32)))
    return keys


def _shares(side: StarSide, keys: list[bytes]) -> Array:
    """This party's share of zero for each of its ids, uint8 of shape (n, 12)."""
    total = np.zeros((len(side.ids), TAG_BYTES), np.uint8)
    for key in keys:
        begun = hashlib.blake2b(digest("share of zero", side.opened.salt), key=key, digest_size=TAG_BYTES)
        raw = bytearray()
        for id in side.ids:
            state = begun.copy()
            state.update(id)
            raw += state.digest()
        total ^= np.frombuffer(bytes(raw), np.uint8).reshape(-1, TAG_BYTES)
    return total


def _found(tags: Array, own: Array) -> Array:
    """Where tags that came stand among the own ones, in their order; refuse (HR-242) others."""
    here, there = matches(tags, own)
    if len(here) != len(tags):
        raise MessageRefused("the pivot sent tags that are of no id.", remedy="Nothing of it was used.")
    found = np.empty(len(tags), np.int64)
    found[here] = there
    return found
