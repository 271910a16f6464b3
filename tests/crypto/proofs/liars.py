"""Parties that lie about their rows, aggregators that listen, and what can be changed on the way; many reports at a time.

A liar is a proof whose sayings are overridden: it shares what it likes and proves it as well as it can. Sharings are made one
by one up to the proof itself, and all proofs together; `test_liars` holds them against the engine's own, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isqrt

import numpy as np

from hedgerow.crypto.proofs.circuits import bits
from hedgerow.crypto.proofs.field import Field
from hedgerow.crypto.proofs.field64 import Field64
from hedgerow.crypto.proofs.flp import Flp
from hedgerow.crypto.proofs.pine import Pine
from hedgerow.crypto.proofs.pine_circuits import PineShape, binary
from hedgerow.crypto.proofs.prio3 import Prio3
from hedgerow.crypto.proofs.signs import squared_norm
from hedgerow.crypto.proofs.xof import SHAKE128

F = Field64()
Q = F.modulus
KEY = bytes(range(32))
ROOT_OF_TWO = 2**40 - 2**24 - 2**8
BATCH = 50


class Tiny(Field):
    """q = 12 289: errors of proofs are large enough to be seen."""

    modulus, size, adicity, root, dtype = 12289, 2, 12, pow(11, 3, 12289), np.int64


class Deferred(Flp):
    """Proofs that are noted down when they are asked for, and made together later."""

    def __init__(self, flp: Flp) -> None:
        super().__init__(flp.circuit, flp.basis)
        self.flp, self.asked = flp, []

    def prove(self, row, random, joint):
        self.asked.append((row[0], random, joint))
        return self.field.zeros((len(random), self.proof_size))

    def made(self):
        """Return all proofs, shape (reports, proofs * proof_size)."""
        found = []
        for at in range(0, len(self.asked), BATCH):
            rows, random, joint = (np.stack(part) for part in zip(*self.asked[at : at + BATCH], strict=True))
            found.append(self.flp.prove(rows[:, None], random, joint))
        self.asked = []
        proofs = np.concatenate(found)
        return proofs.reshape(len(proofs), -1)


@dataclass(frozen=True)
class Reports:
    """What n parties sent: `letters` has the leader's letters, and every helper's seeds."""

    proof: object
    ctxs: list
    nonces: list
    publics: list
    letters: list
    owns: list = field(default_factory=list)

    def verified(self, j, key=KEY):
        """Return what aggregator j finds."""
        verify = getattr(self.proof, "verify_many", None) or self.proof.verify
        return verify(key, self.ctxs, j, self.nonces, self.publics, self.letters[j])

    def accepted(self, key=KEY):
        """Return which reports all aggregators accept."""
        return self.judged(key).all(axis=0)

    def judged(self, key=KEY):
        """Return which reports each aggregator accepts, shape (aggregators, n)."""
        found = [self.verified(j, key) for j in range(self.proof.shares)]
        tolds = [one.told for one in found]
        return np.stack([self.proof.judge(self.ctxs, one.states, tolds) for one in found])

    def total(self, which):
        """Return the sum of rows, as whole numbers."""
        total = F.zeros(self.verified(0).shares.shape[1])
        for j in range(self.proof.shares):
            total = F.add(total, F.sum(self.verified(j).shares[which], axis=0))
        return F.centred(total)


def shared(proof, rows, dice, alike=False):
    """Return reports of these rows (of what is encoded, for Prio3); `alike`: all in one context, with one nonce."""
    names = ("flp",) if isinstance(proof, Prio3) else ("norm", "rest")
    share = proof.share if isinstance(proof, Prio3) else proof.shard
    engines = {name: getattr(proof, name) for name in names}
    for name, engine in engines.items():
        setattr(proof, name, Deferred(engine))
    n, helpers = len(rows), proof.shares - 1
    ctxs = [b"round 1, party %d" % (0 if alike else i) for i in range(n)]
    nonces = [bytes(16) if alike else dice.bytes(16) for _ in range(n)]
    seeds = [[dice.bytes(proof.seed_bytes) for _ in range(helpers)] for _ in range(n)]
    owns = [dice.bytes(proof.own_bytes) for _ in range(n)]
    publics, leaders = zip(*map(share, ctxs, rows, nonces, seeds, owns), strict=True)
    proofs = np.concatenate([getattr(proof, name).made() for name in names], axis=-1)
    for name, engine in engines.items():
        setattr(proof, name, engine)
    at = first_of_proofs(proof)
    leaders = [added(proof, leader, at, words) for leader, words in zip(leaders, proofs, strict=True)]
    return Reports(proof, ctxs, nonces, list(publics), [leaders, *map(list, zip(*seeds, strict=True))], owns)


def first_of_proofs(proof):
    """Return at which byte of the leader's letter its share of the proofs begins."""
    return proof.field.size * (proof.circuit.size if isinstance(proof, Prio3) else proof.shape.shared)


def added(proof, letter, at, words):
    """Return a letter with numbers added to those from a byte on."""
    end = at + proof.field.size * len(words)
    changed = proof.field.add(proof.field.decode(letter[at:end], len(words)), words)
    return letter[:at] + proof.field.encode(changed) + letter[end:]


def pine(kind=Pine, d=16, r=1 << 20, checks=24, shares=2, proofs=1, bound2=None, **shape):
    """Return a proof by a kind of party."""
    return kind(PineShape(F, d, bound2 or r * r, checks=checks, **shape), shares, proofs)


def prio3(circuit, shares=2, proofs=3, kind=Prio3):
    """Return Prio3 with the stream that rounds use."""
    return kind(circuit, shares, proofs, SHAKE128)


def row_of(d, norm, dice):
    """Return a row whose norm is at most `norm`, and nearly that."""
    x = dice.standard_normal(d)
    return np.trunc(x * (norm * 0.9999) / np.sqrt(x @ x)).astype(np.int64)


def four_squares(n, dice):
    """Return four numbers, two of them near sqrt(n / 2), whose squares add up to n."""
    while True:
        a = isqrt(n // 2) - int(dice.integers(0, 1000))
        b = isqrt(n - a * a - int(dice.integers(10**6, 10**7)))
        rest = n - a * a - b * b
        for c in range(isqrt(rest), -1, -1):
            if isqrt(rest - c * c) ** 2 == rest - c * c:
                return [a, b, c, isqrt(rest - c * c)]


def one_root_of_two(d):
    """Return a row of which one number is a root of 2 modulo q."""
    x = np.zeros(d, np.int64)
    x[d // 2] = ROOT_OF_TWO
    return x


def four_that_wrap(d, dice, v=12345, places=(0, 1, 2, 3)):
    """Return the shortest kind of row that wraps around: four numbers whose squares add up to q + v, of norm 2^32."""
    x = np.zeros(d, np.int64)
    x[list(places)] = four_squares(Q + v, dice)
    return x


# ---- parties of PINE --------------------------------------------------------------------------------------------------------
class ClaimsTheBound(Pine):
    """Says that its row is just at the bound, whatever it is."""

    def claim(self, row):
        return self.shape.bound2


class OneFatBit(Pine):
    """Puts the whole of v into its first bit, and of u: both equations hold, the bits are none."""

    def head(self, row):
        v = self.claim(row) % Q
        digits = [v, *[0] * (self.shape.norm_bits - 1), (self.shape.bound2 - v) % Q, *[0] * (self.shape.norm_bits - 1)]
        return np.concatenate([F.of(row), F.of(digits)])


class DigitsOfThree(Pine):
    """Writes v with digits 0..3, so that it reaches up to three times the bound, and u with what is left in one digit."""

    def head(self, row):
        n, left, digits = self.shape.norm_bits, self.claim(row), []
        for i in reversed(range(n)):
            digits.insert(0, min(3, left >> i))
            left -= digits[0] << i
        assert left == 0
        u = self.shape.bound2 - self.claim(row)
        return np.concatenate([F.of(row), F.of(digits), F.of([u % Q, *[0] * (n - 1)])])


class NegativeRest(Pine):
    """Says the truth of v, of which there are enough bits, and writes u = B - v below zero with a negative bit."""

    def head(self, row):
        n, v = self.shape.norm_bits, self.claim(row)
        assert self.shape.bound2 < v < 1 << n
        return np.concatenate([F.of(row), binary(F, v, n), F.of([(self.shape.bound2 - v) % Q, *[0] * (n - 1)])])


class WrapsAround(Pine):
    """Says of its squared norm what is left modulo q; all holds but the dot products. `luck`: how many passed, each time."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.luck = []

    def claim(self, row):
        return squared_norm(row) % Q

    def wrap_bits(self, results):
        said = super().wrap_bits(results)
        self.luck.append(int(said.reshape(self.shape.checks, -1)[:, -1].sum()))
        return said


class SaysAllPassed(WrapsAround):
    """The same, and says that all dot products are zero, in the bits and in the proof."""

    def wrap_results(self, results):
        return np.zeros_like(results)


class BitsOfZero(WrapsAround):
    """The same, and gives bits of zero while the proof is about the true dot products."""

    def wrap_bits(self, results):
        return super().wrap_bits(np.zeros_like(results))


class FatDotProducts(WrapsAround):
    """The same, with each dot product in one fat bit."""

    def wrap_bits(self, results):
        s = self.shape
        digits = np.zeros((s.checks, s.check_bits + 1), object)
        digits[:, 0] = [(int(y) + s.reach - 1) % Q for y in results]
        digits[:, -1] = 1
        return F.of(digits).reshape(-1)


class OnePassCountsForAll(WrapsAround):
    """The same, and counts a check that passed as often as is needed."""

    def wrap_bits(self, results):
        s = self.shape
        said = super().wrap_bits(results).reshape(s.checks, -1).copy()
        passed = np.flatnonzero(said[:, -1])
        if passed.size:
            said[:, -1] = 0
            said[passed[0], -1] = s.passes
        return said.reshape(-1)


class CountsAll(WrapsAround):
    """The same, and counts every check as passed."""

    def wrap_bits(self, results):
        said = super().wrap_bits(results).reshape(self.shape.checks, -1).copy()
        said[:, -1] = 1
        return said.reshape(-1)


class OneErrorAgainstAnother(Pine):
    """Says that v + u is the bound and one, and that one check less has passed: the two errors add up to nothing."""

    def head(self, row):
        n, v = self.shape.norm_bits, self.claim(row)
        assert v == self.shape.bound2 + 1
        return np.concatenate([F.of(row), binary(F, v, n), F.zeros(n)])

    def wrap_bits(self, results):
        said = super().wrap_bits(results)
        said[-1] = 0
        return said


# ---- what can be changed on the way -----------------------------------------------------------------------------------------
def plus_one(proof, letter, at):
    """Return a letter with one more in the number at a byte."""
    return added(proof, letter, at, proof.field.of([1]))


def tampered(reports, how):
    """Return reports with every odd one changed in one way."""
    proof, length = reports.proof, reports.proof.xof.seed_bytes
    at, size = first_of_proofs(proof), proof.field.size
    leaders, nonces, publics, ctxs = list(reports.letters[0]), list(reports.nonces), list(reports.publics), list(reports.ctxs)
    helpers = list(reports.letters[1])
    end = len(leaders[0]) - 2 * length
    for i in range(1, len(nonces), 2):
        before = leaders[i]
        match how:
            case "row":
                leaders[i] = plus_one(proof, before, 0)
            case "bit":
                leaders[i] = plus_one(proof, before, at - size)
            case "claimed norm":
                leaders[i] = plus_one(proof, before, size * proof.shape.length)
            case "proof":
                leaders[i] = plus_one(proof, before, at + size * (i % proof.proofs_size))
            case "nonce":
                nonces[i] = bytes([nonces[i][0] ^ 1]) + nonces[i][1:]
            case "context":
                ctxs[i] = ctxs[i - 1]
            case "public part":
                place = i % len(publics[i])
                publics[i] = publics[i][:place] + bytes([publics[i][place] ^ 1]) + publics[i][place + 1 :]
            case "blinds swapped":
                leaders[i] = before[:end] + before[end + length :] + before[end : end + length]
            case "word of q":
                leaders[i] = Q.to_bytes(8, "little") + before[8:]
            case "word of q in a proof":
                leaders[i] = before[:at] + Q.to_bytes(8, "little") + before[at + 8 :]
            case "largest word":
                leaders[i] = before[: at - 8] + b"\xff" * 8 + before[at:]
            case "short":
                leaders[i] = before[:-1]
            case "long":
                leaders[i] = before + b"\0"
            case "empty":
                leaders[i] = b""
            case "helper's seed":
                helpers[i] = bytes([helpers[i][0] ^ 1]) + helpers[i][1:]
            case "short seed":
                helpers[i] = helpers[i][:-1]
            case "short public part":
                publics[i] = publics[i][:-1]
            case "short nonce":
                nonces[i] = nonces[i][:-1]
            case "another's letter":
                leaders[i] = reports.letters[0][i - 1]
            case "another's report":
                leaders[i], helpers[i], publics[i] = reports.letters[0][i - 1], helpers[i - 1], publics[i - 1]
            case _:
                raise ValueError(how)
    letters = [leaders, helpers, *reports.letters[2:]]
    return replace(reports, ctxs=ctxs, nonces=nonces, publics=publics, letters=letters)


SEVEN_WAYS = ("row", "bit", "proof", "nonce", "public part", "blinds swapped", "word of q")
MORE_WAYS = (
    "claimed norm", "context", "word of q in a proof", "largest word", "short", "long", "empty", "helper's seed", "short seed",
    "short public part", "short nonce", "another's letter", "another's report",
)  # fmt: skip


# ---- what parties of Prio3 say ----------------------------------------------------------------------------------------------
def numbers_in_bits(values, most):
    """Return bits of whole numbers, flat."""
    return bits(F, np.asarray(values), most).reshape(-1)


def letter_about(proof, encoded, joint, ctx, seeds, own):
    """Return the leader's letter of Prio3 about what is encoded, with a proof for joint randomness that is given."""
    field, length = proof.field, proof.xof.seed_bytes
    leader = encoded
    random = proof.domain.numbers(field, proof.flp.prove_size * proof.proofs, 4, ctx, own[-length:], bytes([proof.proofs]))
    told = proof.flp.prove(encoded[None], random.reshape(proof.proofs, -1), joint).reshape(-1)
    for j, seed in enumerate(seeds):
        row, words = proof._helper(ctx, j + 1, seed[:length])
        leader, told = field.sub(leader, row), field.sub(told, words)
    return field.encode(leader) + field.encode(told) + own[:-length]


# ---- aggregators that lie ---------------------------------------------------------------------------------------------------
def opposite(proof, told, own):
    """Return what an aggregator says that speaks last: minus all that the other said, and its own parts."""
    end = len(told) - 2 * proof.xof.seed_bytes
    words = proof.field.decode(told[:end], end // proof.field.size)
    return proof.field.encode(proof.field.sub(proof.field.zeros(words.shape), words)) + own[end:]
