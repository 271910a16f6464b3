"""A party's secrets of one epoch: made at set-up, used once, erased when their round is over.

    with each neighbour v    pair = X25519 agreement
                             box keys u -> v and v -> u, one message each
                             seeds s_uv[1..R] of pairwise masks
    for each round r         b[r]  seed of the self-mask        shared among the neighbours
                             e[r]  key of the list of seeds     shared among the neighbours, not kept

The agreement and its key are forgotten once the seeds exist, and the seeds of a round once it is answered: who breaks in later
finds nothing about earlier rounds. (Python does not wipe memory; what is said here is that no object refers to it.)
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.arrays import Array
from hedgerow.crypto import keys, shamir, streams
from hedgerow.crypto.graph import Indices
from hedgerow.crypto.messages import digest
from hedgerow.crypto.standing import PartySet
from hedgerow.errors import MessageRefused

from . import letters
from .letters import Members


@dataclass
class Round:
    """A round that a party has answered."""

    number: int
    cohort: Members
    near: NDArray[np.bool_]
    """Which neighbours are in the cohort, shape (k,)."""
    least: int = 0
    """Fewest rows in a total that this one may be part of."""
    steady: bool = False
    """Whether the total has to be over the study's standing set."""
    agreed: Members | None = None
    """The survivors that the party has signed."""
    closed: bool = False
    """Whether its shares are out."""


@dataclass
class Epoch:
    """A party's side of an epoch.

    Attributes
    ----------
    bond : bytes
        Identifies the epoch.
    ids : tuple of str
        Of the neighbours, where a roster names them.
    seeds, own : list of bytes or None
        Of each round: the neighbours' seeds one after the other, the self-mask's seed.
    boxes : bytes
        Keys of the boxes that will come, one after the other.
    held : array of shape (k, 2 R, 35) or None
        Neighbours' shares: of b[1..R], then of e[1..R].
    present : array of shape (k,)
        Whose shares are held.
    everybody : PartySet
        Its members, over an order that outlasts it.
    """

    name: bytes
    bond: bytes
    size: int
    place: int
    neighbours: Indices
    threshold: int
    ids: tuple[str, ...]
    seeds: list[bytes | None]
    own: list[bytes | None]
    boxes: bytes
    inbox: bytes = b""
    held: NDArray[np.uint8] | None = None
    present: NDArray[np.bool_] | None = None
    last: int = 0
    round: Round | None = None
    everybody: PartySet | None = None
    signs: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.signs = np.where(self.neighbours > self.place, 1, -1).tolist()

    @property
    def rounds(self) -> int:
        """Rounds that the set-up is for."""
        return len(self.own)

    def open(self, present: NDArray[np.bool_], inbox: bytes) -> NDArray[np.uint8]:
        """Open the boxes of the neighbours that sent one, in their order; nothing of the epoch changes.

        Raises
        ------
        MessageRefused (HR-242)
            A box was altered, is somebody else's, or is missing.
        """
        size = 2 * self.rounds * shamir.SHARE_BYTES
        sealed = size + keys.TAG_BYTES
        if len(inbox) != sealed * int(present.sum()):
            raise MessageRefused(
                f"{len(inbox)} bytes of boxes from {int(present.sum())} neighbours.", remedy="One box from each."
            )
        held = np.zeros((len(present), size), np.uint8)
        for i, j in enumerate(np.flatnonzero(present).tolist()):
            label = letters.box_label(self.bond, int(self.neighbours[j]), self.place)
            box = keys.unseal(self.boxes[32 * j : 32 * j + 32], inbox[sealed * i : sealed * (i + 1)], label)
            if len(box) != size:
                raise MessageRefused(f"a box of {len(box)} bytes, and {size} are due.", remedy="Shares for every round.")
            held[j] = np.frombuffer(box, np.uint8)
        return held.reshape(len(present), 2 * self.rounds, shamir.SHARE_BYTES)

    def keep(self, present: NDArray[np.bool_], inbox: bytes, held: NDArray[np.uint8]) -> None:
        """Keep neighbours' shares for the rounds to come."""
        self.present, self.held, self.inbox, self.boxes = present, held, digest("secagg inbox", inbox), b""

    def mask(self, row: Array, number: int, near: NDArray[np.bool_], nonce: bytes) -> None:
        """Add the masks of a round to an encoded row, in place."""
        own, seeds = self.own[number - 1], self.seeds[number - 1]
        assert own is not None, "rounds go forwards only"
        assert seeds is not None
        chosen = np.flatnonzero(near).tolist()
        used = [seeds[32 * j : 32 * j + 32] for j in chosen]
        streams.add_streams(row, [own, *used], [1, *(self.signs[j] for j in chosen)], nonce)

    def parties(self, members: Members) -> PartySet:
        """Some members of this epoch, as a set that can be held against those of other epochs."""
        assert self.everybody is not None, "said at set-up"
        return _over(self.everybody, members.flags.tobytes())

    def begin(self, number: int, cohort: Members, near: NDArray[np.bool_], least: int = 0, steady: bool = False) -> None:
        """Enter a round: what masked its row, and all that earlier rounds have left, is erased."""
        for r in range(self.last, number):
            self.own[r] = self.seeds[r] = None
            if r + 1 < number:
                self._erase(r + 1)
        self.last, self.round = number, Round(number, cohort, near, least, steady)

    def reveal(self, survivors: Members) -> bytes:
        """Take the shares that open the round, of neighbours in the cohort in order, and erase the round's."""
        held, now = self.held, self.round
        assert held is not None, "a row was sent"
        assert now is not None
        chosen = np.flatnonzero(now.near)
        alive = survivors.flags[self.neighbours[chosen]]
        shares = held[chosen, np.where(alive, now.number - 1, self.rounds + now.number - 1)].tobytes()
        self._erase(now.number)
        now.closed = True
        return shares

    def _erase(self, number: int) -> None:
        if self.held is not None:
            self.held[:, [number - 1, self.rounds + number - 1]] = 0


@lru_cache(maxsize=64)
def _over(everybody: PartySet, flags: bytes) -> PartySet:
    """Members by their places in an epoch, as a set over the order of its names; computed once for all parties of a process."""
    found = np.zeros(len(everybody.flags), bool)
    found[np.flatnonzero(everybody.flags)[np.frombuffer(flags, bool)]] = True
    return PartySet.of(everybody.order, found)


class Gateway:
    """Parties of one process that agree with each other once for each pair: the process has both private keys anyway.

    What was agreed waits here for the pair's other party, which takes it away; what nobody took goes with the next epoch.
    """

    def __init__(self) -> None:
        self._bond = b""
        self._waiting: dict[bytes, bytes] = {}

    def agree(self, key: keys.AgreementKey, public: bytes, bond: bytes) -> bytes:
        """The secret of a pair in an epoch; KeyInvalid (HR-244) for a key of low order."""
        if bond != self._bond:
            self._bond, self._waiting = bond, {}
        name = bond + min(key.public, public) + max(key.public, public)
        found = self._waiting.pop(name, None)
        if found is None:
            found = self._waiting[name] = agree(key, public, bond)
        return found


def agree(key: keys.AgreementKey, public: bytes, bond: bytes) -> bytes:
    """The secret of a pair in an epoch, 32 bytes; KeyInvalid (HR-244) for a key of low order."""
    return keys.derive(key.agree(public), "secagg pair", bond)


def purpose(pair: bytes, label: str, context: bytes) -> bytes:
    """The key that a pair's secret gives for one purpose: one block of HKDF's expansion, 32 bytes."""
    return hmac.digest(pair, label.encode() + b"\0" + context + b"\x01", "sha256")


def set_up(
    key: keys.AgreementKey,
    *,
    name: bytes,
    bond: bytes,
    size: int,
    place: int,
    neighbours: Indices,
    publics: list[bytes],
    ids: tuple[str, ...],
    threshold: int,
    rounds: int,
    gateway: Gateway | None = None,
) -> tuple[Epoch, bytes, bytes, bytes]:
    """Make a party's secrets of an epoch.

    Returns
    -------
    epoch : Epoch
    boxes : bytes
        Shares for every neighbour, sealed, in the neighbours' order.
    lists : bytes
        The seeds of every round, sealed under e[r], in the rounds' order.
    commitments : bytes
        To b[1..R], 32 bytes each.

    Raises
    ------
    KeyInvalid (HR-244)
        A neighbour's key is of low order.
    """
    k = len(neighbours)
    secret = agree if gateway is None else gateway.agree
    pairs = [secret(key, public, bond) for public in publics]
    seeds = np.empty((k, rounds, 32), np.uint8)
    for j, (v, pair) in enumerate(zip(neighbours.tolist(), pairs, strict=True)):
        root = purpose(pair, "masks", letters.box_label(bond, min(place, v), max(place, v)))
        seeds[j] = np.frombuffer(streams.keystream(root, bytes(16), 32 * rounds), np.uint8).reshape(rounds, 32)
    by_round = [seeds[:, r].tobytes() for r in range(rounds)]
    secrets = np.frombuffer(streams.fresh(64 * rounds), np.uint8).reshape(2 * rounds, 32)
    own = [secrets[r].tobytes() for r in range(rounds)]
    shares = shamir.packed(shamir.split(secrets, k, threshold))
    boxes, incoming = [], []
    for v, pair, share in zip(neighbours.tolist(), pairs, shares, strict=True):
        there, back = letters.box_label(bond, place, v), letters.box_label(bond, v, place)
        boxes.append(keys.seal(purpose(pair, "box", there), share, there))
        incoming.append(purpose(pair, "box", back))
    lists = [
        keys.seal(secrets[rounds + r].tobytes(), by_round[r], letters.list_label(bond, place, r + 1)) for r in range(rounds)
    ]
    commitments = [letters.commitment(bond, place, r + 1, own[r]) for r in range(rounds)]
    epoch = Epoch(name, bond, size, place, neighbours, threshold, ids, list(by_round), list(own), b"".join(incoming))
    return epoch, b"".join(boxes), b"".join(lists), b"".join(commitments)
