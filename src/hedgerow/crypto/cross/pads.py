"""Pads: what hides a party's columns when they are opened to the other parties.

    D = X - A        A = stream( seed )        seed = KDF(secret of the party, study | digest of the columns | question)

The party draws A itself and gives the hub its seed; the others get D, which is uniform to whoever lacks the seed. A name holds
the digest of the columns, so that other columns have another pad even where a party was set back to an earlier state; the same
columns keep their pad, and are opened once. The digest is keyed, since columns of few values could be guessed from a bare one,
and stays at the party.

A party remembers its own last openings and those of the others (`PadMemory`), at most `KEPT` of each party. Everybody uses them
in the same order, so that all forget the same ones. Columns are not opened again where the question describes them as before:
that they are those of another question as well, such as of the next threshold, would tell that nobody is in between.

Source : one-time pads of columns that serve in many products: Mohassel and Zhang 2017, section 4.2.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hedgerow.crypto.keys import derive

from .ring import Words, uniform

KEPT = 4
"""PadMemory of one party that it and the others remember."""
ID_BYTES = 16
NO_ID = bytes(ID_BYTES)
"""Of columns that are none."""


@dataclass
class PadMemory:
    """What a party keeps from one question to the next; plain bytes and arrays, so that it may lie in a party's state.

    Attributes
    ----------
    secret : bytes
        32 bytes of the party's own, from which its pads follow.
    own : dict from digest to (id, seed)
    opened : dict from party to {id: words}
        What the others have opened.
    """

    secret: bytes
    own: OrderedDict[bytes, tuple[bytes, bytes]] = field(default_factory=OrderedDict)
    opened: dict[str, OrderedDict[bytes, Words]] = field(default_factory=dict)

    def copy(self) -> PadMemory:
        """A memory that changes by itself; what it holds is shared."""
        return PadMemory(self.secret, self.own.copy(), {name: shelf.copy() for name, shelf in self.opened.items()})

    def pad(self, columns: Words, study: bytes, question: bytes, about: bytes) -> tuple[bytes, bytes, bool]:
        """Return the id and the seed of the pad of these columns, and whether they are to be opened now.

        Parameters
        ----------
        about : bytes
            How the question describes the columns, which is public: those of another description are opened anew.
        """
        running = hashlib.blake2b(repr(columns.shape).encode(), key=self.secret, digest_size=32)
        running.update(np.ascontiguousarray(columns).data)
        digest = running.digest()
        name = derive(self.secret, "hedgerow cross columns", framed(study, about, digest))
        fresh = name not in self.own
        if fresh:
            seed = derive(self.secret, "hedgerow cross pad", framed(study, about, digest, question))
            self.own[name] = derive(seed, "hedgerow cross id", length=ID_BYTES), seed
        _last(self.own, name)
        return (*self.own[name], fresh)

    def remember(self, whose: str, id: bytes, words: Words) -> None:
        """Keep what another party has opened."""
        shelf = self.opened.setdefault(whose, OrderedDict())
        shelf[id] = words
        _last(shelf, id)

    def recall(self, whose: str, id: bytes) -> Words | None:
        """Return what another party has opened before under this id."""
        shelf = self.opened.get(whose, OrderedDict())
        if id not in shelf:
            return None
        _last(shelf, id)
        return shelf[id]

    def mark(self, me: str, whose: str, length: int) -> bytes:
        """Bytes that stand for the openings of a party that this one remembers, in their order."""
        ids = [id for id, _ in self.own.values()] if whose == me else list(self.opened.get(whose, ()))
        return hashlib.sha256(framed(b"hedgerow cross openings", *ids)).digest()[:length]

    def without(self, me: str, whose: str) -> PadMemory:
        """The same without the openings of a party, which others do not remember alike."""
        found = self.copy()
        if whose == me:
            found.own.clear()
        found.opened.pop(whose, None)
        return found


def _last(shelf: OrderedDict[Any, Any], key: Any) -> None:
    """Note that an opening was used, and forget the one that was used longest ago."""
    shelf.move_to_end(key)
    while len(shelf) > KEPT:
        shelf.popitem(last=False)


def framed(*parts: bytes) -> bytes:
    """Bytes that can be read in one way: each part with its length."""
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def pad_of(seed: bytes, *shape: int) -> Words:
    """The pad of a seed."""
    return uniform(derive(seed, "hedgerow cross words"), *shape)


def shared(words: Words, seeds: list[bytes], label: str) -> Words:
    """What is left of words after the streams of all seeds: the share of whom these seeds are not given to."""
    rest: Words = words.copy()
    for seed in seeds:
        rest -= uniform(derive(seed, label), *words.shape)
    return rest
