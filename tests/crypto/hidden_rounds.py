"""What tests of hidden totals share: rows, contributions, a wire that alters, and what "uniform" means."""

import numpy as np
from scipy.stats import chi2

from hedgerow.core.arrays import Layout
from hedgerow.crypto.conversation import Contribution
from hedgerow.crypto.fixedpoint import RingEncoding


def encoding_of(size, parties, bits=64):
    return RingEncoding(bits, parties, ((size, 2.0**-20 if bits == 64 else 2.0**-6),))


def rows_of(ids, encoding, seed=0):
    rng = np.random.default_rng(seed)
    return {id: rng.uniform(-1, 1, encoding.size) * encoding.most * encoding.steps[0][1] for id in ids}


def contributions_of(rows, encoding, context=b"model and question"):
    layout = Layout((("", (encoding.size,)),))
    return {id: Contribution(layout, row, encoding, context) for id, row in rows.items()}


def encoded_sum(rows, ids, encoding):
    return np.sum([encoding.encode(rows[id]) for id in ids], axis=0, dtype=encoding.encode(rows[ids[0]]).dtype)


def looks_uniform(words):
    """Chi-square over all bytes; false about once in a million when they are uniform."""
    counts = np.bincount(np.ascontiguousarray(words).view(np.uint8), minlength=256)
    assert counts.sum() >= 256 * 20  # fewer would find nothing
    expected = counts.sum() / 256
    lo, hi = chi2.ppf([5e-7, 1 - 5e-7], 255)
    return bool(lo < ((counts - expected) ** 2 / expected).sum() < hi)


class Altered:
    """A correspondent behind a wire that may change what it is sent and what it answers."""

    def __init__(self, inner, letter=lambda step, bytes: bytes, answer=lambda step, bytes: bytes, given=lambda c: c):
        self.inner, self.letter, self.reply, self.given = inner, letter, answer, given

    def answer(self, step, letter, contribution=None):
        return self.reply(step, self.inner.answer(step, self.letter(step, letter), self.given(contribution)))


def flipped(raw, bit):
    """The same bytes with one bit changed."""
    changed = bytearray(raw)
    changed[bit // 8 % len(raw)] ^= 1 << bit % 8
    return bytes(changed)
