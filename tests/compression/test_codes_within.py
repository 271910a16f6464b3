"""Codes of rows within a clip are never called too long, however they are rounded; codes of much longer rows are."""

import numpy as np
import pytest

from hedgerow.compression import Quantised, RandomK, Rotated, Sketched, TopK
from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l1, l2, linf
from hedgerow.core.randomness import Streams
from hedgerow.core.release import Coding, Release

LAYOUT = Layout((("update", (300,)), ("n", (1,))))
CODES = [
    Quantised(bits=8),
    Quantised(bits=1),
    Quantised(bits=2, stochastic=False),
    Rotated(bits=4),
    Rotated(bits=1),
    RandomK(share=0.2),
    TopK(share=0.1, error_feedback=False),
    Sketched(rows=3, columns=20),
]


def codes(rows, release):
    streams = Streams(3)
    coding = Coding(
        lambda: streams.stream(0, "server", "public"),
        [streams.stream(0, f"party {i}", "compression") for i in range(len(rows))],
        {},
        "lost",
        True,
    )
    return release.close(rows, LAYOUT, lambda k: bytes, coding)


def shapes():
    """Rows of several kinds: even, sparse, one spike, alternating, all of one sign."""
    rng = np.random.default_rng(0)
    even, sparse = rng.normal(size=(20, 301)), rng.normal(size=(20, 301)) * (rng.random((20, 301)) < 0.02)
    spike = np.eye(301)[:20] + 1e-3
    return np.concatenate([even, sparse, spike, np.ones((5, 301)), np.tile([1.0, -1.0], 151)[None, :301]]).astype(np.float32)


@pytest.mark.parametrize("bound", [l1(1.0), l2(1.0), linf(1.0)], ids=["l1", "l2", "linf"])
@pytest.mark.parametrize("by", CODES, ids=str)
def test_codes_of_honest_rows_are_within(by, bound):
    release = Release(clip=bound, compression=by)
    sent = codes(100 * shapes(), release)
    assert release.within(sent, LAYOUT).all()


@pytest.mark.parametrize("by", CODES, ids=str)
def test_a_code_that_is_longer_than_any_honest_one_is_not(by):
    release = Release(clip=l2(1.0), compression=by)
    sent = codes(100 * shapes(), release)
    sent = sent[np.abs(sent).max(-1) > 1e-2]  # of a sparse row no coordinate may be sent
    assert len(sent) > 20
    assert not release.within(1e4 * sent, LAYOUT).any()


def test_without_room_for_rounding_honest_rows_would_be_zeros(monkeypatch):
    monkeypatch.setattr(Quantised, "stretch", lambda self, norm, layout: 1.0)
    release = Release(clip=l2(1.0), compression=Quantised(bits=2))
    assert not release.within(codes(100 * shapes(), release), LAYOUT).all()
