"""Sums by group over a join that stays hidden: one party knows groups, the other values, nobody learns who is in both.

    A knows (id, group), B knows (id, values >= 0); E is Paillier under a key of B
    1 A -> B    for each group: shuffle(a u)               B -> A    its key; shuffle of (b u, E(values))
    2 B -> A    for each group: shuffle(tags of b(a u))
    3 A         tags of a(b u); for each group the rows of B whose tag is among the group's: their number, the product of
                their E, drawn anew
    4 A -> B    groups that are refused; the products of the others          B decrypts them

Assumes  : both follow the protocol; ids are distinct after one public normal form; letters are sealed end to end.
Shows    : A learns how many people of each of its groups B has, and not who they are: a list for each group, shuffled again by
           B, is what makes them anonymous. B learns, for each group that is not refused, the sums of its values over them, and
           how long the groups' lists are; not their names, nor how many people the sums are over. Both learn the lengths of
           both lists.
           A count is exact: of a group with none or all of its people in common it says so of each. Whoever fills a group
           with made-up ids learns the count of the others.
Left out : by A, before anything leaves, groups with fewer than `least` of its own people, whose count would say who B has, and
           the next smallest until those left out have as many together. B answers no group of fewer, and no more groups than
           the shorter list has times `least` people, so that made-up ids fill no more.
Refused  : a group with fewer than `least` people in common, whose sums would tell of them; one that leaves fewer than `least`
           of B's people out; and one for which B, who knows its own values, could find the people by their sum: where subsets
           of that size are not 2^10 times as many as sums. The next smallest groups too, until those refused are lawful
           together, since another question's total less the groups told is theirs. The count shows at A all the same.
Cost     : with a key of 2048 bits about 0.8 ms and 0.6 kB a pair of ids, with 3072 bits 1.9 ms and 0.8 kB; nearly all of it is
           encryption.

Source: Ion, Kreuter et al. 2020 (private intersection-sum with cardinality), figure 2. Differs: a list for each group,
        several sums in one ciphertext, and groups that are refused.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.question import travels
from hedgerow.core.randomness import Entropy
from hedgerow.errors import AlignmentRefused, MessageRefused, RangeExceeded, SettingsInvalid

from ..cohort import lawful_least, whole
from ..messages import MessageForm, Octets, Several, Whole, digest
from ..paillier import DEFAULT_BITS, LARGEST_BITS, SECURE_BITS, PaillierKey, PaillierPublic
from ..peers import Letters, Peer
from ..streams import fresh
from .curve import POINT_BYTES, Curve25519, Scalar
from .ids import IdRules
from .opening import Beginning, opened
from .pipes import Pipes, pieces
from .tags import TAG_BYTES, matches, permutation, refuse_repeats, tags_of

WIDTH = 96
"""Bits that a sum has in a ciphertext: values have 64 at most, and a list has fewer than 2^31."""

MOST_GROUPS = 1 << 12
_AMBIGUOUS = 10  # bits by which subsets outnumber sums
_ROWS = 1 << 11  # rows that are encrypted before others are waited for
_GROUPS = MessageForm("join groups", sizes=Several(Whole(0, 2**31), MOST_GROUPS))
_VALUES = MessageForm("join values", columns=Whole(1, LARGEST_BITS // WIDTH), key=Octets(1, LARGEST_BITS // 8))

Written = Generator[Letters, Mapping[str, bytes], None]
Tags = Generator[Letters, Mapping[str, bytes], Array]


@travels
@dataclass(frozen=True)
class JoinSums:
    """Sums by group over a hidden join: settings, the same at both parties.

    Parameters
    ----------
    least : int
        Fewest people in a group, as its owner lists it, and in its sums, at least 3; and fewest of the values' owner who are
        not in them.
    most, ratio, normal, small_domain
        As for `X25519`.
    value_bits : int
        Values are below two to so many; each bit fewer makes people harder to find by their sum.
    bits : int
        Length of the key that the owner of values makes.
    insecure : bool
        Allow short keys, for tests.
    """

    least: int = 10
    most: int = 200_000
    ratio: float = 100.0
    normal: str = "nfkc-casefold"
    small_domain: str = "refused"
    value_bits: int = 20
    bits: int = DEFAULT_BITS
    insecure: bool = False

    def __post_init__(self) -> None:
        _ = self.rules
        whole(bits=self.bits, value_bits=self.value_bits)
        lawful_least(self.least)
        if not 1 <= self.value_bits <= 64:
            raise SettingsInvalid(f"value_bits={self.value_bits}.", remedy="Values have 1 to 64 bits.")
        if not (256 if self.insecure else SECURE_BITS) <= self.bits <= LARGEST_BITS:
            raise SettingsInvalid(f"bits={self.bits}.", remedy=f"Keys have {SECURE_BITS} bits or more; 3072 is the default.")

    @cached_property
    def rules(self) -> IdRules:
        """What lists must be."""
        return IdRules(self.least, self.most, self.ratio, self.normal, self.small_domain)

    @property
    def capacity(self) -> int:
        """How many values a row may have: they share a ciphertext."""
        return (self.bits - 2) // WIDTH

    def read(self, values: Sequence[Any] | Array) -> list[bytes]:
        """Bring a column of ids into the normal form; refuse (HR-413), at home, what cannot be joined."""
        return self.rules.read(values)

    def counts(
        self,
        me: str,
        names: tuple[str, str],
        ids: Sequence[bytes],
        groups: Sequence[Hashable] | Array,
        *,
        labels: Sequence[Hashable] | None = None,
        entropy: Entropy = fresh,
    ) -> Peer[dict[Hashable, int | None]]:
        """Return the side of the party that knows groups; it learns how many people of each the other has.

        Parameters
        ----------
        names : (str, str)
            Who knows groups, who knows values; `me` is the first.
        ids : sequence of n bytes
            As `read` returned them.
        groups : sequence of n
            The group of each id.
        labels : sequence, optional
            All groups that there may be, in order; those that there are, sorted, unless it is given.

        Returns
        -------
        dict from group to int or None
            In the order of the labels; None where a group is refused or was left out.

        Raises
        ------
        AlignmentRefused (HR-246)
            Before a group leaves: all groups are small, or there are too many of them.
        """
        plain = _plain(groups)
        named = sorted(set(plain), key=lambda label: (str(type(label)), label)) if labels is None else list(labels)
        if len(named) > MOST_GROUPS or len(plain) != len(ids) or set(plain) - set(named):
            raise RangeExceeded(
                f"{len(set(plain))} groups of {len(ids)} ids.", remedy=f"At most {MOST_GROUPS} groups, one for each id."
            )
        of_group: dict[Hashable, list[bytes]] = {label: [] for label in named}
        for id, label in zip(ids, plain, strict=True):
            of_group[label].append(id)
        for label, one in zip(named, self.listed([len(found) for found in of_group.values()]), strict=True):
            if not one:
                of_group[label] = []
        n_listed, n_groups = sum(len(found) for found in of_group.values()), sum(bool(found) for found in of_group.values())
        if not n_groups:
            raise AlignmentRefused(f"no group has {self.least} people of {me}.", remedy="Join levels.")
        pipes, begun = yield from self._begun(me, names, n_listed, entropy)
        other, scalar = names[1], Scalar.fresh(entropy)
        if n_groups > (most := self._most_groups(begun)):
            raise AlignmentRefused(f"{n_groups} groups, where lists so long allow {most}.", remedy="Join levels.")
        _written(pipes, other, _GROUPS.pack(sizes=[len(found) for found in of_group.values()]))
        for found in of_group.values():
            yield from self._write_masked(pipes, other, found, permutation(len(found), entropy), scalar, begun.salt)
        columns, raw_key = _VALUES.unpack((yield from _read(pipes, other, _VALUES.most)))
        public = PaillierPublic.from_bytes(raw_key, insecure=self.insecure)
        if public.bits < self.bits or columns * WIDTH > public.bits - 2:
            raise MessageRefused(
                f"{other} has a key of {public.bits} bits for {columns} values.", remedy=f"{self.bits} are agreed."
            )
        theirs, boxes = bytearray(), []
        for n in pieces(begun.sizes[other], _ROWS):
            points = yield from pipes.read(other, n * POINT_BYTES)
            Curve25519().check(points)
            theirs += points
            boxes += public.unpack((yield from pipes.read(other, n * public.ciphertext_bytes)), n)
        refuse_repeats(np.frombuffer(bytes(theirs), np.uint8).reshape(-1, POINT_BYTES))
        mine = tags_of(scalar.mask(bytes(theirs)), POINT_BYTES, begun.salt)
        common, used = dict[Hashable, Array](), np.zeros(len(mine), bool)
        for label, found in of_group.items():
            raw = yield from pipes.read(other, len(found) * TAG_BYTES)
            rows = matches(np.frombuffer(raw, np.uint8).reshape(-1, TAG_BYTES), mine)[1]
            if used[rows].any():
                raise MessageRefused(f"{other} answered with one person in two groups.", remedy="Ids of a list are distinct.")
            used[rows] = True
            common[label] = rows
        told = self.told([len(rows) for rows in common.values()], len(mine), columns)
        sums = [_sum_of(public, [boxes[i] for i in rows]) for rows, one in zip(common.values(), told, strict=True) if one]
        pipes.write(other, bytes(told) + b"".join(sums))
        yield from pipes.flush()
        return {label: len(rows) if one else None for (label, rows), one in zip(common.items(), told, strict=True)}

    def sums(
        self, me: str, names: tuple[str, str], ids: Sequence[bytes], values: Array, *, entropy: Entropy = fresh
    ) -> Peer[list[tuple[int, ...] | None]]:
        """Return the side of the party that knows values; it learns their sums over the common people of each group.

        Parameters
        ----------
        names : (str, str)
            Who knows groups, who knows values; `me` is the second.
        ids : sequence of n bytes
            As `read` returned them.
        values : array of shape (n,) or (n, k)
            Whole numbers from 0 to 2^value_bits - 1.

        Returns
        -------
        list of tuples of k ints, or None
            For each group in the other's order; None where it is refused.
        """
        rows = _whole_rows(values, len(ids), self.capacity, self.value_bits)
        pipes, begun = yield from self._begun(me, names, len(ids), entropy)
        other, scalar, key = names[0], Scalar.fresh(entropy), PaillierKey.fresh(self.bits, insecure=self.insecure)
        public, order = key.public, permutation(len(ids), entropy)
        columns = len(rows[0]) if rows else 1
        _written(pipes, other, _VALUES.pack(columns=columns, key=public.to_bytes()))
        at = 0
        for n in pieces(len(ids), _ROWS):
            chosen, at = order[at : at + n], at + n
            pipes.write(other, scalar.mask(Curve25519().elements_of([ids[i] for i in chosen], begun.salt)))
            pipes.write(other, public.pack([public.encrypt(_packed(rows[i])) for i in chosen]))
            yield from pipes.turn()
        (sizes,) = _GROUPS.unpack((yield from _read(pipes, other, _GROUPS.most)))
        if sum(sizes) != begun.sizes[other]:
            raise MessageRefused(f"{other} has groups of {sum(sizes)} people in a list of {begun.sizes[other]}.")
        if few := [size for size in sizes if 0 < size < self.least]:
            raise MessageRefused(
                f"{other} asks for a group of {min(few)}, whose count would say who is in the list here.",
                remedy=f"Groups have {self.least} people or none.",
            )
        if (n_groups := sum(size > 0 for size in sizes)) > (most := self._most_groups(begun)):
            raise MessageRefused(
                f"{other} asks for {n_groups} groups, where lists so long allow {most}.", remedy="Join levels."
            )
        came = bytearray()
        for size in sizes:
            points = yield from pipes.read(other, size * POINT_BYTES)
            Curve25519().check(points)
            came += points
            tags = tags_of(scalar.mask(points), POINT_BYTES, begun.salt)
            pipes.write(other, tags[permutation(size, entropy)].tobytes())
        refuse_repeats(np.frombuffer(bytes(came), np.uint8).reshape(-1, POINT_BYTES))
        told = yield from pipes.read(other, len(sizes))
        if set(told) - {0, 1}:
            raise MessageRefused(f"{other} refused groups in a way that cannot be read.")
        raw = yield from pipes.read(other, sum(told) * public.ciphertext_bytes)
        totals = iter(public.unpack(raw, sum(told)))
        return [_unpacked(key.decrypt(next(totals)), columns, other) if one else None for one in told]

    def listed(self, sizes: Sequence[int]) -> list[bool]:
        """Which groups of so many own people are put on the list: none of few people, nor few people beside it."""
        kept = [size >= self.least for size in sizes]
        while any(kept) and 0 < sum(size for size, one in zip(sizes, kept, strict=True) if not one) < self.least:
            kept[min((size, i) for i, size in enumerate(sizes) if kept[i])[1]] = False
        return kept

    def _most_groups(self, begun: Beginning) -> int:
        """How many groups may have people: the shorter list has `least` for each."""
        return min(begun.sizes.values()) // self.least

    def lawful(self, common: int, size: int, columns: int = 1) -> bool:
        """Whether sums of values over so many people of a list of `size` may be told to its owner."""
        if common < self.least or size - common < self.least:
            return False
        subsets = math.lgamma(size + 1) - math.lgamma(common + 1) - math.lgamma(size - common + 1)
        return subsets / math.log(2) >= columns * (self.value_bits + math.log2(common)) + _AMBIGUOUS

    def told(self, common: Sequence[int], size: int, columns: int = 1) -> list[bool]:
        """Which groups, with so many people in common each, are told: lawful ones that leave lawful ones untold together."""
        told = [self.lawful(n, size, columns) for n in common]
        while any(told) and (left := sum(n for n, one in zip(common, told, strict=True) if not one)):
            if self.lawful(left, size, columns):
                break
            told[min((n, i) for i, n in enumerate(common) if told[i])[1]] = False
        return told

    def _begun(
        self, me: str, names: tuple[str, str], size: int, entropy: Entropy
    ) -> Generator[Letters, Mapping[str, bytes], tuple[Pipes, Beginning]]:
        """Compare settings, draw a salt, and make pipes."""
        settings = digest("join sums", f"{self.bits}/{self.value_bits}".encode(), *(name.encode() for name in names))
        begun = yield from opened(me, names, size, self.rules, settings, names[0], entropy)
        (other,) = (name for name in names if name != me)
        pipes = Pipes(me, (other,))
        row = 2 * POINT_BYTES + TAG_BYTES
        both = sum(begun.sizes.values())
        most_groups = min(MOST_GROUPS, max(begun.sizes.values())) + 1
        boxes = (begun.sizes[other] + most_groups) * (LARGEST_BITS // 4 if me == names[0] else 2 * self.bits // 8 + 1)
        pipes.allow(other, row * both + boxes + _GROUPS.most + _VALUES.most)
        return pipes, begun

    def _write_masked(
        self, pipes: Pipes, other: str, ids: Sequence[bytes], order: Array, scalar: Scalar, salt: bytes
    ) -> Written:
        """Write a list, shuffled and masked."""
        at = 0
        for n in pieces(len(ids), Curve25519.piece):
            chosen, at = order[at : at + n], at + n
            pipes.write(other, scalar.mask(Curve25519().elements_of([ids[i] for i in chosen], salt)))
            yield from pipes.turn()


def _written(pipes: Pipes, other: str, message: bytes) -> None:
    """Write a message of any length."""
    pipes.write(other, len(message).to_bytes(4, "little") + message)


def _read(pipes: Pipes, other: str, most: int) -> Generator[Letters, Mapping[str, bytes], bytes]:
    """Read a message of at most so many bytes."""
    n = int.from_bytes((yield from pipes.read(other, 4)), "little")
    if n > most:
        raise MessageRefused(f"{other} announced a message of {n} bytes, where {most} are the most.")
    return (yield from pipes.read(other, n))


def _sum_of(public: PaillierPublic, boxes: Sequence[int]) -> bytes:
    """Return an encryption, drawn anew, of a sum; at least one box."""
    total = boxes[0]
    for box in boxes[1:]:
        total = public.add(total, box)
    return public.pack([public.rerandomise(total)])


def _packed(row: Sequence[int]) -> int:
    """Several values in one number, each with room for its sum."""
    return sum(value << (WIDTH * place) for place, value in enumerate(row))


def _unpacked(total: int, columns: int, other: str) -> tuple[int, ...]:
    """The sums in one number."""
    if not 0 <= total < 1 << (WIDTH * columns):
        raise MessageRefused(f"{other} sent what is no sum of values.")
    return tuple(total >> (WIDTH * place) & ((1 << WIDTH) - 1) for place in range(columns))


def _plain(groups: Sequence[Hashable] | Array) -> Sequence[Hashable]:
    """Labels as Python's own values."""
    labels: Sequence[Hashable] = groups.tolist() if isinstance(groups, np.ndarray) else groups
    return labels


def _whole_rows(values: Array, n: int, capacity: int, bits: int) -> list[list[int]]:
    """Values as rows of whole numbers; refuse (HR-243) others."""
    array = np.asarray(values)
    array = array.reshape(len(array), -1) if array.ndim < 2 else array
    if array.ndim != 2 or len(array) != n or not 1 <= array.shape[1] <= capacity:
        raise RangeExceeded(
            f"values of shape {np.shape(values)} for {n} ids.", remedy=f"Give 1 to {capacity} values for each id."
        )
    rows: list[list[int]] = array.tolist()
    if array.dtype.kind not in "iu" or (array.size and not 0 <= int(array.min()) <= int(array.max()) < 1 << bits):
        raise RangeExceeded(
            f"values of type {array.dtype}, below zero, or of more than {bits} bits.",
            remedy="Give whole numbers from 0; subtract a declared least value, and round.",
        )
    return rows
