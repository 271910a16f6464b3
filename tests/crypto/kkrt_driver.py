"""Runs of KKRT for tests: repeatable entropy, base transfers by a dealer, every letter kept."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from hedgerow.core.randomness import keystream
from hedgerow.crypto.peers import meet
from hedgerow.crypto.psi.kkrt import KKRT, protocol, settings

NAMES = ("alice", "bob")


def entropy_of(seed: int):
    return keystream(hashlib.sha256(f"kkrt test {seed}".encode()).digest())


@dataclass
class Carried:
    """What came out, and who got what."""

    rows: dict = field(default_factory=dict)
    letters: list = field(default_factory=list)

    def to(self, name):
        return [letter for _, recipient, letter in self.letters if recipient == name]


def lax(**given):
    """Settings that allow what may not be allowed: no common id at all, one list much longer than the other."""
    by = KKRT(ratio=10.0**6, small_domain="accepted", **given)
    object.__setattr__(by, "least", 0)
    vars(by).pop("rules")
    return by


def carried(lists, by=None, seed=0):
    by, found = by or lax(), Carried()
    peers = {name: by.peer(name, NAMES, ids, entropy=entropy_of(10 * seed + i)) for i, (name, ids) in enumerate(lists.items())}
    results = meet(peers, lambda *letter: found.letters.append(letter))
    found.rows = {name: aligned.rows for name, aligned in results.items()}
    return found


def common(lists, found):
    """The common ids in each party's order."""
    return {name: [lists[name][row] for row in rows] for name, rows in found.rows.items()}


class DealtOffer:
    """Base transfers by a dealer whom both trust: the pairs follow from the letter. Not a protocol; 0.2 s less a run."""

    def __init__(self, entropy):
        self.letter = entropy(32)

    def seeds(self, points, n, session):
        return _pairs(self.letter, n), hashlib.sha256(self.letter).digest()


class DealtChoice:
    def __init__(self, choices, entropy):
        self.choices = choices

    def seeds(self, offer, session):
        pairs = _pairs(offer, len(self.choices))
        return b"", [pair[c] for pair, c in zip(pairs, self.choices, strict=True)], hashlib.sha256(offer).digest()


def _pairs(letter, n):
    return [tuple(hashlib.sha256(b"%d/%d" % (i, c) + letter).digest() for c in (0, 1)) for i in range(n)]


def deal(monkeypatch):
    monkeypatch.setattr(settings, "SeedOffer", DealtOffer)
    monkeypatch.setattr(protocol, "SeedChoice", DealtChoice)
