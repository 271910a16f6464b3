"""The party's side of `cross`: its columns leave it under pads alone, and its share under masks that the hub lacks.

    opening     D = X - A to the other parties (E = Y - B of right rows), once for the same columns; seeds of A and B to the hub
    rows        h_p, a share of the hub's rows, put in the aligned order; e_p = h_p - b_p to the other parties: h = e + b
    products    (weighted) F = e * X - B to the partners, where e is known to all parties
    shares      this party's part of the result, plus pairwise masks, plus its share of the noise: to the hub

Its part of the result, with sums over parties j, and X_j = D_j + A_j:

    gram        X_k' X_k,  D_j' X_k for j before k,  A_k' D_j for j behind
    right       X_k' (Y_k + sum E_j + e) + D_k' b_k  for its own columns,  D_j' (b_k + B_k)  for those of the others
    weighted    D' (b_k * D + V_k) + (D' V_k)',  with D of all parties and V_k its share of V = b * A,  and
                X_k' (e * X_k),  X_k' F_j where j opens to k,  D_j' B_k where k opens to j

The hub adds what follows from pads alone (`dealer`). Every product is exact modulo 2^64, so the shares add up to the result to
the last bit.

Adversary : peers follow the protocol; the hub with no party, or all parties but one without the hub. What a party receives is
            uniform but for the seeds of the hub; what the hub receives is seeds, and shares that add up to the result and are
            uniform otherwise. Where a question describes columns as an earlier one did, all see whether they are the same.
Source    : Beaver 1991; Mohassel and Zhang 2017, section 4. Differs: the dealer opens the result itself, so that it shares no
            products of pads; its rows are put in another order by shares; shares are masked among parties before it sees them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Entropy
from hedgerow.crypto.keys import KEY_BYTES, derive
from hedgerow.crypto.peers import HUB, Letters, Peer
from hedgerow.crypto.streams import NONCE_BYTES, add_streams
from hedgerow.errors import KeyInvalid, MessageRefused, SettingsInvalid

from .letters import exchange
from .pads import ID_BYTES, NO_ID, PadMemory, framed, pad_of
from .ring import BYTES, Words, encode, product, uniform, words_of
from .terms import HEAD, Terms, refuse_shape

Exchanged = Generator[Letters, Mapping[str, bytes], None]


@dataclass
class CrossSide:
    """One party's part in one question.

    Parameters
    ----------
    terms : Terms
    me : str
    left : array of shape (n, d_me)
        Columns, in the aligned order, within their declared reach.
    right : array of shape (n, c), optional
        Of a holder of right rows.
    order : array of shape (n,), optional
        The hub's row i is that of the aligned row order[i]; needed where the hub has rows.
    pairs : mapping from party to 32 bytes
        Secrets with each of the other parties, which the hub lacks.
    memory : PadMemory
        Is not changed; the protocol returns the next one.
    entropy : callable
        Gives uniform bytes.
    noise : array of shape (size,), int64, optional
        This party's share of the noise, in steps of the ring.
    about : (bytes, bytes), optional
        How the question describes the columns on the left and on the right; without it they are opened anew.
    """

    terms: Terms
    me: str
    left: Array
    right: Array | None
    order: Array | None
    pairs: Mapping[str, bytes]
    memory: PadMemory
    entropy: Entropy
    noise: Array | None = None
    about: tuple[bytes, bytes] | None = None

    def __post_init__(self) -> None:
        terms, n = self.terms, self.terms.asked.n
        refuse_shape(np.shape(self.left), (n, terms.width(self.me)), f"what {self.me} has on the left")
        if (self.right is not None) != (self.me in terms.holders):
            raise SettingsInvalid(
                f"right rows of {self.me!r}, which were announced otherwise.", remedy="Give those of holders."
            )
        if self.right is not None:
            refuse_shape(np.shape(self.right), (n, terms.asked.right), f"what {self.me} has on the right")
        if terms.hub_columns and (self.order is None or not (np.sort(self.order) == np.arange(n)).all()):
            raise SettingsInvalid("the hub's rows have an order that is no order.", remedy="Give the order of the last sum.")
        self.others = [name for name in terms.names if name != self.me]
        for name in self.others:
            if len(self.pairs.get(name, b"")) != KEY_BYTES:
                raise KeyInvalid(f"no secret of {KEY_BYTES} bytes with {name!r}.", remedy="Agree on one first.")
        self.memory = self.memory.copy()
        self.nonces = {self.me: self.entropy(NONCE_BYTES)}
        self.X = encode(self.left, terms.bits.left)
        self.Y = None if self.right is None else encode(self.right, terms.bits.right)
        self.D: dict[str, Words] = {}
        self.E: dict[str, Words] = {}
        self.F: dict[str, Words] = {}
        self.seed = b""

    # ---- opening: D and E to the parties, seeds to the hub; a share of the hub's rows comes ------------------------------
    def opening(self) -> Exchanged:
        terms, n = self.terms, self.terms.asked.n
        left, seed, self.A = self._opened(self.X, 0)
        self.D[self.me] = self.X - self.A
        right, again = b"", b""
        if self.Y is not None:
            right, again, self.B = self._opened(self.Y, 1)
        letter = terms.digest + self.nonces[self.me] + left + right
        out = dict.fromkeys(self.others, letter) | {HUB: terms.digest + seed + again}
        lawful: dict[str, Collection[int]] = {name: self._lengths(name) for name in self.others}
        words = n * terms.hub_columns * BYTES if self.me == terms.names[0] else 0
        lawful[HUB] = (HEAD + (KEY_BYTES + words if terms.hub_columns else 0),)
        came = yield from exchange(self.me, out, terms.everyone, lawful)
        for name in self.others:
            self._read(name, came[name])
        dealt = terms.body(came[HUB], HUB)
        self.seed = dealt[:KEY_BYTES]
        if terms.hub_columns:
            self._take(dealt[KEY_BYTES:])

    def _opened(self, columns: Words, side: int) -> tuple[bytes, bytes, Words]:
        """What the others get of columns, the seed that the hub gets, and the pad."""
        if not columns.shape[1]:
            return NO_ID + b"\0", bytes(KEY_BYTES), columns
        terms = self.terms
        about = framed(b"once", terms.question, bytes([side])) if self.about is None else framed(b"", self.about[side])
        id, seed, fresh = self.memory.pad(columns, terms.study, terms.question, about)
        pad = pad_of(seed, *columns.shape)
        return id + bytes([fresh]) + ((columns - pad).tobytes() if fresh else b""), seed, pad

    def _lengths(self, name: str) -> list[int]:
        """Lawful lengths of another party's first letter."""
        n, asked = self.terms.asked.n, self.terms.asked
        least = HEAD + NONCE_BYTES + ID_BYTES + 1
        lengths = {least, least + n * self.terms.width(name) * BYTES}
        if name in self.terms.holders:
            lengths = {length + ID_BYTES + 1 + words for length in lengths for words in (0, n * asked.right * BYTES)}
        return sorted(lengths)

    def _read(self, name: str, letter: bytes) -> None:
        body = self.terms.body(letter, name)
        self.nonces[name], body = body[:NONCE_BYTES], body[NONCE_BYTES:]
        self.D[name], body = self._opening_of(name, body, self.terms.width(name))
        if name in self.terms.holders:
            self.E[name], body = self._opening_of(name, body, self.terms.asked.right)
        if body:
            raise MessageRefused(f"a letter of {name!r} has {len(body)} bytes too many.", remedy="Nothing of it was used.")

    def _opening_of(self, name: str, body: bytes, width: int) -> tuple[Words, bytes]:
        """What another party opened, now or before, and what is left of its letter."""
        id, fresh, body = body[:ID_BYTES], body[ID_BYTES : ID_BYTES + 1], body[ID_BYTES + 1 :]
        shape = (self.terms.asked.n, width)
        if not width:
            return np.zeros(shape, np.uint64), body
        if fresh == b"\1":
            size = shape[0] * width * BYTES
            words = words_of(body[:size], shape, name)
            self.memory.remember(name, id, words)
            return words, body[size:]
        known = self.memory.recall(name, id)
        if known is None or known.shape != shape:
            raise MessageRefused(
                f"{name!r} speaks of columns that {self.me!r} does not remember.",
                remedy="Align again, or let all parties forget what was opened.",
            )
        return known, body

    # ---- rows: the hub's rows in the aligned order, under other pads -----------------------------------------------------
    def _take(self, words: bytes) -> None:
        """Put this party's share of the hub's rows in the aligned order, and take its pad b off."""
        shape = (self.terms.asked.n, self.terms.hub_columns)
        first = self.me == self.terms.names[0]
        share = words_of(words, shape, HUB) if first else uniform(derive(self.seed, "hedgerow cross rows"), *shape)
        self.b = uniform(derive(self.seed, "hedgerow cross again"), *shape)
        aligned = np.empty(shape, np.uint64)
        aligned[self.order] = share
        self.e = aligned - self.b

    def rows(self) -> Exchanged:
        terms = self.terms
        shape, D = (terms.asked.n, terms.hub_columns), (terms.asked.n, sum(terms.asked.widths))
        size = shape[0] * shape[1] * BYTES
        dealt = D[0] * D[1] * BYTES if terms.asked.weighted and self.me == terms.names[0] else 0
        out = dict.fromkeys(self.others, self.e.tobytes())
        came = yield from exchange(self.me, out, terms.everyone, dict.fromkeys(self.others, (size,)) | {HUB: (dealt,)})
        for name in self.others:
            self.e = self.e + words_of(came[name], shape, name)
        if terms.asked.weighted:
            first = self.me == terms.names[0]
            self.V = words_of(came[HUB], D, HUB) if first else uniform(derive(self.seed, "hedgerow cross weighted pads"), *D)

    # ---- products: weighted columns of one of two parties ----------------------------------------------------------------
    def products(self) -> Exchanged:
        terms, n = self.terms, self.terms.asked.n
        Z = self.e * self.X
        digest = hashlib.blake2b(Z.tobytes(), key=self.memory.secret, digest_size=32).digest()
        name = framed(terms.study, digest, terms.question, self.nonces[self.me])
        seed = derive(self.memory.secret, "hedgerow cross pad of products", name)
        self.Z, self.B = Z, pad_of(seed, *Z.shape)
        letter = (Z - self.B).tobytes()
        out = {name: letter for name in self.others if terms.opener(self.me, name) == self.me} | {HUB: seed}
        lawful = {o: (n * terms.width(o) * BYTES if terms.opener(self.me, o) == o else 0,) for o in self.others}
        came = yield from exchange(self.me, out, terms.everyone, lawful)
        for other in self.others:
            if terms.opener(self.me, other) == other:
                self.F[other] = words_of(came[other], (n, terms.width(other)), other)

    # ---- shares ----------------------------------------------------------------------------------------------------------
    def share(self) -> Words:
        """This party's part of the result, before masks and noise."""
        asked = self.terms.asked
        return self._weighted() if asked.weighted else self._right() if asked.right else self._gram()

    def _gram(self) -> Words:
        terms, me = self.terms, self.me
        at = terms.names.index(me)
        own, d = terms.columns(me), sum(terms.asked.widths)
        found = np.zeros((d, d), np.uint64)
        before = [self.D[name] for name in terms.names[:at]]
        behind = [self.D[name] for name in terms.names[at + 1 :]]
        found[: own.stop, own] = product(np.concatenate([*before, self.X], 1), self.X)
        found[own, own.stop :] = product(self.A, np.concatenate([np.zeros((terms.asked.n, 0), np.uint64), *behind], 1))
        return found

    def _right(self) -> Words:
        terms = self.terms
        mine = np.zeros((terms.asked.n, terms.asked.right), np.uint64) if self.Y is None else self.Y
        mine = mine + sum((self.E[name] for name in self.others if name in terms.holders), np.uint64(0))
        theirs = np.zeros((1, terms.asked.right), np.uint64) if self.Y is None else self.B
        found = np.zeros((sum(terms.asked.widths), terms.asked.right), np.uint64)
        if terms.hub_columns:
            mine, theirs = mine + self.e, theirs + self.b
            found[terms.columns(self.me)] = product(self.D[self.me], self.b)
        found[terms.columns(self.me)] += product(self.X, mine)
        if self.Y is not None or terms.hub_columns:
            for name in self.others:
                found[terms.columns(name)] = product(self.D[name], theirs)
        return found

    def _weighted(self) -> Words:
        terms, own = self.terms, self.terms.columns(self.me)
        D = np.concatenate([self.D[name] for name in terms.names], 1)
        d = D.shape[1]
        both = product(D, np.concatenate([self.b * D + self.V, self.V], 1))
        found = both[:, :d] + both[:, d:].T
        found[own, own] += product(self.X, self.Z)
        for name in self.others:
            other = terms.columns(name)
            if name in self.F:
                block = product(self.X, self.F[name])
            else:
                block = product(self.D[name], self.B).T
            if own.start <= other.start:
                found[own, other] += block
            else:
                found[other, own] += block.T
        return found

    def masked(self, share: Words) -> Words:
        """A share as it goes to the hub: with the streams of all pairs, which cancel in the total, and with noise."""
        row = np.ascontiguousarray(self.terms.flat(share)).copy()
        if self.noise is not None:
            refuse_shape(self.noise.shape, row.shape, "a share of the noise")
            row += np.ascontiguousarray(self.noise, np.int64).view(np.uint64)
        keys = [self._mask(name) for name in self.others]
        signs = [1 if self.me < name else -1 for name in self.others]
        add_streams(row, keys, signs, bytes(NONCE_BYTES))
        return row

    def _mask(self, name: str) -> bytes:
        """The key of the stream that this party and another one have in common for this question alone."""
        first, second = sorted((self.me, name))
        about = framed(self.terms.digest, first.encode(), second.encode(), self.nonces[first], self.nonces[second])
        return derive(self.pairs[name], "hedgerow cross share", about)


def party_peer(
    terms: Terms,
    me: str,
    left: Array,
    right: Array | None,
    order: Array | None,
    pairs: Mapping[str, bytes],
    memory: PadMemory,
    entropy: Entropy,
    noise: Callable[[], Array] | None = None,
    about: tuple[bytes, bytes] | None = None,
) -> Peer[PadMemory]:
    """Take part in a question; return what to remember for the next one. Parameters as of `CrossSide`.

    Raises
    ------
    RangeExceeded, ContributionInvalid
        Columns do not fit the ring, or are not as announced; nothing has left the party.
    MessageRefused (HR-242)
        A letter is not what it should be.
    """
    part = CrossSide(terms, me, left, right, order, pairs, memory, entropy, None if noise is None else noise(), about)
    yield from part.opening()
    if terms.hub_columns:
        yield from part.rows()
    if terms.asked.weighted:
        yield from part.products()
    row = part.masked(part.share())
    yield from exchange(me, {HUB: row.tobytes()}, terms.everyone, {})
    return part.memory
