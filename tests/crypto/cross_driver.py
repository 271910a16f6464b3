"""Questions of `crypto.cross` in one process, with every letter kept."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import chi2

from hedgerow.core.randomness import keystream
from hedgerow.crypto.cross import Bits, ColumnReach, PadMemory, Products, Terms, hub_peer, party_peer
from hedgerow.crypto.cross.bits import choose
from hedgerow.crypto.peers import HUB, meet

FALSE_ALARM = 1e-9
"""Chance that a test of uniform bytes fails though they are."""


def entropy_of(name: str) -> Any:
    """Bytes that follow from a name."""
    return keystream(hashlib.sha256(name.encode()).digest())


@dataclass
class World:
    """Parties with columns, right rows and secrets; `order` is the hub's."""

    left: dict[str, Any]
    right: dict[str, Any] = field(default_factory=dict)
    hub: Any = None
    weights: Any = None
    seed: str = "world"
    study: bytes = b"study"
    memories: dict[str, PadMemory] = field(default_factory=dict)
    letters: list[tuple[str, str, bytes]] = field(default_factory=list)
    drawn: list[bytes] = field(default_factory=list)
    bits: Bits | None = None
    noise: dict[str, Any] = field(default_factory=dict)
    questions: int = 0
    about: Any = (b"left", b"right")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.left)

    @property
    def n(self) -> int:
        return len(next(iter(self.left.values())))

    @property
    def order(self) -> Any:
        return np.random.default_rng(8).permutation(self.n)

    def reach(self, columns: Any) -> ColumnReach:
        return ColumnReach(tuple(float(one) or 1.0 for one in np.abs(columns).max(0, initial=0.0)))

    @property
    def products(self) -> Products:
        given = self.weights if self.hub is None else self.hub
        table = None if given is None else np.reshape(given, (self.n, -1))
        right = {np.shape(one)[1] for one in self.right.values()} | ({table.shape[1]} if self.hub is not None else set())
        return Products(
            self.n,
            tuple(np.shape(one)[1] for one in self.left.values()),
            max(right, default=0),
            tuple(self.reach(one) for one in self.left.values()),
            tuple(self.reach(one) for one in self.right.values()),
            None if table is None else self.reach(table),
            self.weights is not None,
        )

    def terms(self) -> Terms:
        question = str(self.questions).encode()
        return Terms(self.study, question, self.names, self.products, self.bits or choose(self.products), tuple(self.right))

    def pairs(self, me: str) -> dict[str, bytes]:
        found = {}
        for other in self.names:
            if other != me:
                found[other] = hashlib.sha256(f"{self.seed} {min(me, other)} {max(me, other)}".encode()).digest()
        return found

    def peers(self) -> tuple[Terms, dict[str, Any]]:
        self.questions += 1
        terms, peers = self.terms(), {}
        for name in self.names:
            memory = self.memories.setdefault(name, PadMemory(hashlib.sha256(f"{self.seed} {name}".encode()).digest()))
            entropy = entropy_of(f"{self.seed} {name} {self.questions}")
            order = self.order if terms.hub_columns else None
            noise = None if name not in self.noise else (lambda name=name: self.noise[name])
            args = (self.left[name], self.right.get(name), order, self.pairs(name), memory, entropy, noise, self.about)
            peers[name] = party_peer(terms, name, *args)
        given = self.weights if self.hub is None else self.hub
        rows = None if given is None else np.asarray(given)[self.order]
        stream = entropy_of(f"{self.seed} hub {self.questions}")
        peers[HUB] = hub_peer(terms, rows, lambda k: self.drawn.append(stream(k)) or self.drawn[-1])
        return terms, peers

    def ask(self) -> tuple[Terms, Any]:
        """The terms and the total of one question, words (size,)."""
        self.letters, self.drawn = [], []
        terms, peers = self.peers()
        results = meet(peers, lambda *letter: self.letters.append(letter))
        self.memories = {name: results[name] for name in self.names}
        return terms, results[HUB]

    def result(self) -> Any:
        terms, total = self.ask()
        return terms.decoded(total)

    def exact(self, terms: Terms) -> Any:
        """The same in Python's whole numbers, flat."""
        f = terms.bits
        X = np.concatenate([_whole(one, f.left) for one in self.left.values()], 1)
        if terms.asked.right:
            R = sum(_whole(one, f.right) for one in self.right.values()) + (
                0 if self.hub is None else _whole(self.hub, f.right)
            )
            return (X.T @ R).reshape(-1)
        w = 1 if self.weights is None else _whole(np.reshape(self.weights, (-1, 1)), f.weight)
        return (X.T @ (w * X))[np.triu_indices(X.shape[1])]

    def between(self, sender: str | None = None, to: str | None = None) -> list[bytes]:
        return [raw for a, b, raw in self.letters if sender in (None, a) and to in (None, b)]


def _whole(columns: Any, fraction: int) -> Any:
    return np.array([[int(v) for v in row] for row in np.rint(np.asarray(columns) * 2.0**fraction)], object).reshape(
        np.shape(columns)
    )


def chi_square(raw: bytes) -> float:
    """The chance of bytes at least as uneven as these, of uniform ones."""
    counts = np.bincount(np.frombuffer(raw, np.uint8), minlength=256)
    mean = len(raw) / 256
    return float(chi2.sf(((counts - mean) ** 2 / mean).sum(), 255))
