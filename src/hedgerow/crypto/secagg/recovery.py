"""What the server opens at the end of a round: the self-masks of those who survived, the seeds of those who dropped out.

All parties' secrets are put together in batches: t shares of each, from holders of its own. Where one does not pass its check,
shares are tried one secret at a time, with another share in place of each: so one party that sends wrong shares stops nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.arrays import Array
from hedgerow.crypto import keys, shamir, streams
from hedgerow.crypto.graph import Graph
from hedgerow.crypto.keys import TAG_BYTES
from hedgerow.crypto.shamir import SHARE_BYTES
from hedgerow.errors import MessageRefused, RoundRefused

from . import letters

BATCH = 4096
"""Parties whose secrets are put together at once."""


class EpochRecord:
    """What the server keeps of an epoch: public things, boxes that it cannot open, and who has done what.

    Attributes
    ----------
    ids : tuple of str
        Members, ascending; a member's place is its index.
    ready, served : bool arrays of shape (n,)
        Who has completed the set-up, and who has its neighbours' shares.
    doubted : bool array of shape (n,)
        Whose secrets do not open, whatever shares are taken: they are asked no more in this epoch.
    used : int
        Rounds begun.
    """

    def __init__(
        self,
        name: bytes,
        bond: bytes,
        everybody: bytes,
        ids: tuple[str, ...],
        invited: frozenset[str],
        graph: Graph,
        threshold: int,
        rounds: int,
    ) -> None:
        self.name, self.bond, self.everybody, self.ids, self.invited = name, bond, everybody, ids, invited
        self.graph, self.threshold, self.rounds = graph, threshold, rounds
        self.places = {id: place for place, id in enumerate(ids)}
        self.ready = np.zeros(len(ids), bool)
        self.served = np.zeros(len(ids), bool)
        self.doubted = np.zeros(len(ids), bool)
        self.boxes: dict[int, bytes] = {}
        self.lists: dict[int, bytes] = {}
        self.commitments: dict[int, bytes] = {}
        self.used = 0

    def near(self, members: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many of these members are neighbours of each, shape (n,)."""
        found: NDArray[np.int64] = members[self.graph.neighbours].sum(axis=1)
        return found

    def inbox(self, place: int) -> tuple[NDArray[np.bool_], bytes]:
        """Which neighbours of a member sent it a box, and the boxes."""
        size = 2 * self.rounds * SHARE_BYTES + TAG_BYTES
        near, slots = self.graph.neighbours[place].tolist(), self.graph.slots[place].tolist()
        found = [self.boxes[v][size * j : size * (j + 1)] for v, j in zip(near, slots, strict=True) if v in self.boxes]
        return self.ready[self.graph.neighbours[place]], b"".join(found)


def recover(
    book: EpochRecord,
    number: int,
    cohort: NDArray[np.bool_],
    alive: NDArray[np.bool_],
    shares: Mapping[int, bytes],
    total: Array,
    nonce: bytes,
) -> None:
    """Take the masks off a round's total, in place.

    Parameters
    ----------
    cohort, alive : bool arrays of shape (n,)
        Who was asked, and whose rows are in the total.
    shares : mapping from place to bytes
        What survivors sent, for each of their neighbours in the cohort.

    Raises
    ------
    RoundRefused (HR-241)
        Too few shares came, or what they open fails a check.
    """
    targets = np.flatnonzero(cohort)
    try:
        try:
            masks = _masks(book, number, targets, alive, _secrets(book, targets, cohort, shares))
        except MessageRefused:
            masks = _masks(book, number, targets, alive, _repaired(book, number, targets, cohort, alive, shares))
    except MessageRefused as error:
        raise RoundRefused(f"the masks of round {number} cannot be taken off: {error.reason}", remedy="Ask again.") from None
    streams.add_streams(total, [seed for seed, _ in masks], [sign for _, sign in masks], nonce)


def _masks(
    book: EpochRecord, number: int, targets: NDArray[np.int64], alive: NDArray[np.bool_], secrets: NDArray[np.uint8]
) -> list[tuple[bytes, int]]:
    """Seeds of the masks that are in a total, and how to take them off; MessageRefused where a secret fails its check."""
    own = [secrets[i].tobytes() for i, v in enumerate(targets.tolist()) if alive[v]]
    check_commitments(book, number, np.flatnonzero(alive).tolist(), own)
    masks = [(seed, -1) for seed in own]
    for i, v in enumerate(targets.tolist()):
        if not alive[v]:
            masks += _seeds(book, number, v, secrets[i].tobytes(), alive)
    return masks


def check_commitments(book: EpochRecord, number: int, places: list[int], secrets: list[bytes]) -> None:
    """Seeds of self-masks are those to which their owners committed at set-up."""
    for v, secret in zip(places, secrets, strict=True):
        if book.commitments[v][32 * number - 32 : 32 * number] != letters.commitment(book.bond, v, number, secret):
            raise MessageRefused("shares of a self-mask do not open what was committed to.", remedy="Ask again.")


def _secrets(
    book: EpochRecord, targets: NDArray[np.int64], cohort: NDArray[np.bool_], shares: Mapping[int, bytes]
) -> NDArray[np.uint8]:
    """Put every target's secret together from the first t shares that came; shape (targets, 32)."""
    graph, t = book.graph, book.threshold
    sent = np.zeros((len(book.ids), graph.k, SHARE_BYTES), np.uint8)
    answered = np.zeros(len(book.ids), bool)
    near = cohort[graph.neighbours]
    for u, raw in shares.items():
        sent[u, near[u]] = np.frombuffer(raw, np.uint8).reshape(-1, SHARE_BYTES)
        answered[u] = True
    found = np.empty((len(targets), 32), np.uint8)
    for start in range(0, len(targets), BATCH):
        some = targets[start : start + BATCH]
        holders = graph.neighbours[some]
        there = answered[holders]
        if int(there.sum(axis=1).min()) < t:
            few = int((there.sum(axis=1) < t).sum())
            raise RoundRefused(f"masks cannot be taken off: of {few} parties fewer than {t} shares came.", remedy="Ask again.")
        first = np.argsort(~there, axis=1, kind="stable")[:, :t]
        rows = np.arange(len(some))[:, None]
        taken = sent[holders[rows, first], graph.slots[some][rows, first]]
        opened = shamir.unpack(taken.tobytes(), len(some) * t).reshape(len(some), t, 1, shamir.LIMBS)
        found[start : start + BATCH] = shamir.combine(first + 1, opened)[:, 0]
    return found


def _seeds(book: EpochRecord, number: int, place: int, secret: bytes, alive: NDArray[np.bool_]) -> list[tuple[bytes, int]]:
    """Seeds that a party which dropped out shares with survivors, and how to take their masks off the survivors' rows."""
    k = book.graph.k
    size = 32 * k + TAG_BYTES
    sealed = book.lists[place][size * (number - 1) : size * number]
    seeds = keys.unseal(secret, sealed, letters.list_label(book.bond, place, number))
    near = book.graph.neighbours[place]
    return [(seeds[32 * j : 32 * j + 32], 1 if near[j] > place else -1) for j in np.flatnonzero(alive[near]).tolist()]


# ---- where some shares are wrong ----------------------------------------------------------------------------------------
def _repaired(
    book: EpochRecord,
    number: int,
    targets: NDArray[np.int64],
    cohort: NDArray[np.bool_],
    alive: NDArray[np.bool_],
    shares: Mapping[int, bytes],
) -> NDArray[np.uint8]:
    """Put secrets together one by one, without the shares of those who sent a wrong one; shape (targets, 32)."""
    graph, suspects, found = book.graph, set[int](), []
    before = np.cumsum(cohort[graph.neighbours], axis=1) - 1  # which share of a holder is of its neighbour in that slot
    for v in targets.tolist():
        held = []
        for x, (u, slot) in enumerate(zip(graph.neighbours[v].tolist(), graph.slots[v].tolist(), strict=True), 1):
            if u in shares:
                start = SHARE_BYTES * int(before[u, slot])
                held.append((u, x, shares[u][start : start + SHARE_BYTES]))
        held.sort(key=lambda one: one[0] in suspects)
        for taken, left_out in _choices(held, book.threshold):
            secret = _opened(book, number, v, taken, alive)
            if secret is not None:
                found.append(secret)
                suspects |= {u for u, *_ in left_out}
                break
        else:
            book.doubted[v] = len(held) >= book.threshold
            found.append(b"")
    if not all(found):
        those = [book.ids[v] for v, secret in zip(targets.tolist(), found, strict=True) if not secret]
        raise MessageRefused(f"shares of {', '.join(those[:5])} are too few, or wrong.", remedy="Ask again.")
    return np.frombuffer(b"".join(found), np.uint8).reshape(-1, 32)


Held = list[tuple[int, int, bytes]]
"""Shares of one secret: who holds each, where it was taken, and its bytes."""


def _choices(held: Held, t: int) -> Iterator[tuple[Held, Held]]:
    """As many shares as the threshold: the first, then with the next one in place of each; and which one that was."""
    if len(held) >= t:
        yield held[:t], []
    if len(held) > t:
        for j in range(t):
            yield [*held[:j], *held[j + 1 : t + 1]], [held[j]]


def _opened(book: EpochRecord, number: int, place: int, taken: Held, alive: NDArray[np.bool_]) -> bytes | None:
    """A party's secret, if these shares give one that passes its check."""
    try:
        given = np.stack([shamir.unpack(raw, 1) for *_, raw in taken])
        secret: bytes = shamir.combine(np.array([x for _, x, _ in taken]), given)[0].tobytes()
        if alive[place]:
            check_commitments(book, number, [place], [secret])
        else:
            _seeds(book, number, place, secret, alive)
    except MessageRefused:
        return None
    return secret
