"""A round of verified rows in one process, for tests: parties share, aggregators verify and judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hedgerow.crypto.proofs.field64 import Field64
from hedgerow.crypto.proofs.row_proof import Verified

F = Field64()
KEY = bytes(range(32))


@dataclass(frozen=True)
class Report:
    """What one party made, with everything that decides what aggregators see."""

    ctx: bytes
    nonce: bytes
    public: bytes
    letters: list[bytes]
    own: bytes = b""
    seeds: list[bytes] = field(default_factory=list)

    def changed(self, **values: Any) -> Report:
        """The same but for some fields."""
        return replace(self, **values)

    def with_letter(self, j: int, letter: bytes) -> Report:
        """The same with another letter to aggregator j."""
        return replace(self, letters=[letter if i == j else other for i, other in enumerate(self.letters)])


def randomness(seed: int) -> Callable[[int], bytes]:
    """Bytes that are the same in every run."""
    return np.random.default_rng(seed).bytes


def report(proof: Any, row: Any, shares: int, seed: int, ctx: bytes = b"round 7 party x", maker: Any = None) -> Report:
    """Share a row; `maker`, of the same shape as `proof`, may lie."""
    draw = randomness(seed)
    nonce, own = draw(16), draw(proof.own_bytes)
    seeds = [draw(proof.seed_bytes) for _ in range(shares - 1)]
    public, letter = (maker or proof).shard(ctx, np.asarray(row), nonce, seeds, own)
    return Report(ctx, nonce, public, [letter, *seeds], own, seeds)


def verified(proof: Any, reports: Sequence[Report], j: int, key: bytes = KEY) -> Verified:
    """What aggregator j makes of reports."""
    return proof.verify(
        key,
        [r.ctx for r in reports],
        j,
        [r.nonce for r in reports],
        [r.public for r in reports],
        [r.letters[j] for r in reports],
    )


def round_of(proof: Any, reports: Sequence[Report], key: bytes = KEY) -> tuple[np.ndarray, np.ndarray]:
    """Which reports all aggregators accept, and the sums of their shares as signed numbers; all must judge alike."""
    found = [verified(proof, reports, j, key) for j in range(len(reports[0].letters))]
    tolds = [one.told for one in found]
    judged = [proof.judge([r.ctx for r in reports], one.states, tolds) for one in found]
    total = found[0].shares
    for one in found[1:]:
        total = F.add(total, one.shares)
    return np.logical_and.reduce(judged), F.centred(total)


def accepted(proof: Any, reports: Sequence[Report], key: bytes = KEY) -> np.ndarray:
    """Which reports all aggregators accept."""
    return round_of(proof, reports, key)[0]
