"""KKRT's two peers: each evaluates a pseudorandom function, one on all of its items, the other on one item a bin.

    both      sizes n (receiver) and m (sender), a random part each, points of the base transfers
    both      512 base transfers: the sender chooses s, and learns of each pair of columns' seeds the one that s says
    receiver  draws salts until its items lie in 1.3 n bins; tells the last one
    receiver  for each part of bins: t0, t1 the pairs' streams turned into rows; sends t0 + t1 + code(item);  tag: H(bin, t0)
    sender    q = its streams' rows + s * (what came);  an item's tag under each function: H(bin, q + s * code(item))
    sender    sends three sorted lists of tags, one for each function
    receiver  looks for its tags; where both are to learn, sends the common records' names, sorted
    both      the order of the common records is that of their names

A sum of bits is modulo 2. The name of a record is AES(key, item), under a key that both agree on by Diffie and Hellman, so
that the letters alone do not lead from a name to an id. It is not the tag that matched: which of the three lists that stands
in tells by which function the receiver placed the item, and this hangs on the receiver's other items, of which the sender may
learn nothing.

Releases : to the receiver which of its ids the sender has; to the sender which of its ids the receiver has, or nothing
           where the result is for the receiver alone; to both the sizes of the lists.
Assumes  : semi-honest peers. A receiver that deviates may test more than n ids; a sender that deviates may make the result
           wrong.
Source   : V. Kolesnikov, R. Kumaresan, M. Rosulek and N. Trieu, Efficient Batched Oblivious PRF with Applications to Private
           Set Intersection, CCS 2016, Figures 2 and 4. We differ in these: no stash, and regions instead of one table; empty
           bins have the word 0; the matrix travels by parts of bins; names, for both to learn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Entropy
from hedgerow.errors import MessageRefused

from ...messages import MessageForm, Whole, digest
from ...peers import Peer
from .base_ot import SeedChoice, SeedOffer
from .bits import ROW_BYTES, WIDTH, Columns, rows_of
from .code import NAME_BYTES, SALT_BYTES, TAG_BYTES, Code, Items
from .cuckoo import FUNCTIONS, place, region_size
from .matching import in_order, order_of, places

BINS_IN_LETTER = 1 << 17
"""Bins of a part of the matrix: 8 MiB."""

TAGS_IN_LETTER = 1_000_000
NAMES_IN_LETTER = 500_000

_FOUND = MessageForm("kkrt found", enough=Whole(0, 1), common=Whole(0, 2**31))
_PART = 1 << 15  # items whose tags are computed at a time


@dataclass(frozen=True)
class TwoLists:
    """What both peers know of a run before the base transfers.

    Attributes
    ----------
    other : str
        Name of the other peer.
    theirs : int
        Length of its list.
    session : bytes
        32 bytes that both computed from what they announced.
    both : bool
        Whether the sender learns the result, too.
    least : int
        Fewest common records; with fewer the receiver says so, and no more.
    """

    other: str
    theirs: int
    session: bytes
    both: bool
    least: int

    def read(self, came: Mapping[str, bytes], size: int) -> bytes:
        """Return the other's letter, which has exactly so many bytes."""
        letter = letter_of(came, self.other)
        if len(letter) != size:
            raise MessageRefused(f"a letter of {len(letter)} bytes, where {size} were to come.")
        return letter

    def tables(self, came: Mapping[str, bytes], n: int, width: int) -> Array:
        """Return the other's letter as n sorted entries of `width` bytes."""
        table = np.frombuffer(self.read(came, n * width), np.uint8).reshape(n, width)
        if not in_order(table):
            raise MessageRefused("a list of tags is not in order, or names one twice.")
        return table

    def salt(self, part: bytes) -> bytes:
        """Return the salt that follows from the receiver's last part."""
        return digest("kkrt salt", self.session, part)


def letter_of(came: Mapping[str, bytes], sender: str) -> bytes:
    """Return the one letter that came, which is the sender's."""
    if set(came) != {sender} or not isinstance(came[sender], bytes):
        raise MessageRefused(f"letters of {sorted(came)}, where one of {sender!r} was to come.")
    return came[sender]


def silent(came: Mapping[str, bytes]) -> None:
    """Refuse letters in a round in which none is to come."""
    if came:
        raise MessageRefused(f"letters of {sorted(came)}, where none was to come.")


def cut(n: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut n into (start, length) of at most `size`."""
    return ((start, min(size, n - start)) for start in range(0, n, size))


def receive(ids: Sequence[bytes], run: TwoLists, offer: SeedOffer, entropy: Entropy) -> Peer[Array | None]:
    """The receiver's side after the announcements; returns its common rows in the common order, or None where they are few."""
    while True:
        part = entropy(SALT_BYTES)
        items = Items.of(ids, run.salt(part))
        size = region_size(len(ids))
        table = place(items.bins(size), size, entropy)
        if table is not None:
            break
    pairs, key = offer.seeds(letter_of((yield {run.other: part}), run.other), WIDTH, run.session)
    code, first, second = Code(run.salt(part)), Columns([a for a, _ in pairs]), Columns([b for _, b in pairs])
    rows = []
    for function in range(FUNCTIONS):
        tags, lying = [], []
        for start, length in cut(size, BINS_IN_LETTER):
            base = function * size + start
            inside = table[base : base + length]
            full = np.flatnonzero(inside >= 0)
            zero, one = first.next(length), second.next(length)
            one ^= zero
            letter = rows_of(one)
            letter[full] ^= code.words(items.words[inside[full]], function)
            silent((yield {run.other: letter.tobytes()}))
            tags.append(code.tags(rows_of(zero)[full], base + full))
            lying.append(inside[full])
        rows.append((np.concatenate(tags), np.concatenate(lying)))
    found = []
    for tags_here, lying_here in rows:
        common = np.zeros(len(lying_here), bool)
        for _, length in cut(run.theirs, TAGS_IN_LETTER):
            common |= places(tags_here, run.tables((yield {}), length, TAG_BYTES)) >= 0
        found.append(lying_here[common])
    mine = np.concatenate(found).astype(np.int64)
    names = Items(items.words[mine], items.hashes[:, mine]).names(key)
    order = order_of(names)
    yield from _told(names[order], run)
    return mine[order] if len(mine) >= run.least else None


def _told(names: Array, run: TwoLists) -> Peer[None]:
    """Tell the sender that there are too few, or their names, or only that there are enough."""
    enough = len(names) >= run.least
    told = names if enough and run.both else names[:0]
    silent((yield {run.other: _FOUND.pack(enough=int(enough), common=len(told))}))
    for start, length in cut(len(told), NAMES_IN_LETTER):
        silent((yield {run.other: told[start : start + length].tobytes()}))


def send(ids: Sequence[bytes], run: TwoLists, offer: bytes, entropy: Entropy) -> Peer[Array | None]:
    """The sender's side after the announcements; returns its common rows in the common order, or None where they are few."""
    choices = np.unpackbits(np.frombuffer(entropy(ROW_BYTES), np.uint8), bitorder="little")
    points, seeds, key = SeedChoice(choices, entropy).seeds(offer, run.session)
    salt = run.salt(run.read((yield {run.other: points}), SALT_BYTES))
    items, code = Items.of(ids, salt), Code(salt)
    lists = yield from _evaluated(items, code, Columns(seeds), np.packbits(choices, bitorder="little").view("<u8"), run)
    for tags in lists:
        tags = tags[order_of(tags)]
        for start, length in cut(len(tags), TAGS_IN_LETTER):
            silent((yield {run.other: tags[start : start + length].tobytes()}))
    enough, common = _FOUND.unpack(letter_of((yield {}), run.other))
    if not enough:
        return None
    if not run.both:
        return np.zeros(0, np.int64)
    if not run.least <= common <= min(len(ids), run.theirs):
        raise MessageRefused(f"{common} common records of lists of {len(ids)} and {run.theirs}.")
    told = np.empty((common, NAME_BYTES), np.uint8)
    for start, length in cut(common, NAMES_IN_LETTER):
        told[start : start + length] = run.tables((yield {}), length, NAME_BYTES)
    return _rows_named(told, items.names(key))


def _evaluated(items: Items, code: Code, columns: Columns, secret: Array, run: TwoLists) -> Peer[Array]:
    """Take the matrix, part by part, and return the items' tags under each function: uint8 of shape (3, m, 10)."""
    size = region_size(run.theirs)
    bins = items.bins(size)
    tags = np.empty((FUNCTIONS, len(items), TAG_BYTES), np.uint8)
    for function in range(FUNCTIONS):
        here = bins[function]
        parts = (here // BINS_IN_LETTER).astype(np.uint16)
        by_part = np.argsort(parts, kind="stable")
        ends = np.cumsum(np.bincount(parts, minlength=-(-size // BINS_IN_LETTER)))
        begin = 0
        for (start, length), end in zip(cut(size, BINS_IN_LETTER), ends.tolist(), strict=True):
            came = np.frombuffer(run.read((yield {}), length * ROW_BYTES), "<u8").reshape(length, -1)
            rows = rows_of(columns.next(length))
            rows ^= came & secret
            for first, n in cut(end - begin, _PART):
                who = by_part[begin + first : begin + first + n]
                words = code.words(items.words[who], function)
                words &= secret
                words ^= rows[here[who] - start]
                tags[function, who] = code.tags(words, function * size + here[who])
            begin = end
    return tags


def _rows_named(told: Array, names: Array) -> Array:
    """Return which of one's own rows have the names, in their order."""
    if not in_order(told):
        raise MessageRefused("names of common records are not in order, or one stands there twice.")
    at = places(names, told)
    mine = np.flatnonzero(at >= 0)
    if len(mine) != len(told):
        raise MessageRefused(f"{len(told) - len(mine)} of {len(told)} names of common records are those of no record here.")
    rows: Array = mine[np.argsort(at[mine])]
    return rows
