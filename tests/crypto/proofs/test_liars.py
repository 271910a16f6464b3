"""Liars among the parties: whoever breaks its bound is refused, whoever keeps it is not, a thousand times each."""

from __future__ import annotations

import numpy as np
import pytest
from liars import (
    MORE_WAYS,
    ROOT_OF_TWO,
    SEVEN_WAYS,
    BitsOfZero,
    ClaimsTheBound,
    CountsAll,
    DigitsOfThree,
    F,
    FatDotProducts,
    NegativeRest,
    OneErrorAgainstAnother,
    OneFatBit,
    OnePassCountsForAll,
    Q,
    SaysAllPassed,
    WrapsAround,
    four_that_wrap,
    numbers_in_bits,
    one_root_of_two,
    pine,
    prio3,
    row_of,
    shared,
    tampered,
)

from hedgerow.crypto.proofs.circuits import Histogram, L1BoundSum, Multihot, SumVec
from hedgerow.crypto.proofs.norm_bits import NormBits
from hedgerow.crypto.proofs.pine import Pine

R = 1 << 20
TRIES = 1000


@pytest.fixture
def dice():
    return np.random.default_rng(20)


def at_the_bound(d, dice):
    """Return a row of exactly the bound, at a place of its own."""
    return np.eye(1, d, int(dice.integers(0, d)), dtype=np.int64)[0] * R


def one_step_over(d, dice):
    """Return a row whose squared norm is the bound's and one."""
    row = at_the_bound(d, dice)
    row[(np.argmax(row) + 1) % d] = dice.choice([-1, 1])
    return row


# ---- the parties of these tests speak the engine's language -----------------------------------------------------------------
@pytest.mark.parametrize("shares", [2, 3])
def test_sharings_made_together_are_those_made_one_by_one(dice, shares):
    proof = pine(shares=shares)
    rows = [row_of(16, R, dice) for _ in range(3)]
    reports = shared(proof, rows, dice)
    for i, row in enumerate(rows):
        seeds = [of_helper[i] for of_helper in reports.letters[1:]]
        made = proof.shard(reports.ctxs[i], row, reports.nonces[i], seeds, reports.owns[i])
        assert made == (reports.publics[i], reports.letters[0][i])
    assert reports.accepted().all()
    assert (reports.total(slice(None)) == sum(rows)).all()


# ---- honest parties ---------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda dice: row_of(16, R, dice), lambda dice: at_the_bound(16, dice)], ids=["inside", "at"])
def test_who_keeps_the_bound_is_accepted(dice, make):
    rows = [make(dice) for _ in range(TRIES)]
    reports = shared(pine(), rows, dice)
    assert reports.accepted().all()
    assert (reports.total(slice(None)) == sum(rows)).all()


# ---- rows that are too long -------------------------------------------------------------------------------------------------
LONG = {
    "one step over, honest bits": (Pine, lambda dice: one_step_over(16, dice)),
    "one step over, claims the bound": (ClaimsTheBound, lambda dice: one_step_over(16, dice)),
    "x100, honest bits": (Pine, lambda dice: row_of(16, 100 * R, dice)),
    "x100, claims the bound": (ClaimsTheBound, lambda dice: row_of(16, 100 * R, dice)),
    "x100, one fat bit": (OneFatBit, lambda dice: row_of(16, 100 * R, dice)),
    "one step over, and a check less": (OneErrorAgainstAnother, lambda dice: one_step_over(16, dice)),
    "x1.5, digits of three": (DigitsOfThree, lambda dice: row_of(16, 1.5 * R, dice)),
    "x1.3, a negative rest": (NegativeRest, lambda dice: row_of(16, 1.3 * R, dice)),
    "root of two": (WrapsAround, lambda dice: one_root_of_two(16)),
    "four that wrap": (WrapsAround, lambda dice: four_that_wrap(16, dice)),
    "root of two, says all passed": (SaysAllPassed, lambda dice: one_root_of_two(16)),
    "four that wrap, says all passed": (SaysAllPassed, lambda dice: four_that_wrap(16, dice)),
    "root of two, bits of zero": (BitsOfZero, lambda dice: one_root_of_two(16)),
    "root of two, fat dot products": (FatDotProducts, lambda dice: one_root_of_two(16)),
    "root of two, one pass for all": (OnePassCountsForAll, lambda dice: one_root_of_two(16)),
    "root of two, all count": (CountsAll, lambda dice: one_root_of_two(16)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_who_breaks_the_bound_is_refused(dice, name):
    kind, make = LONG[name]
    rows = [make(dice) for _ in range(4)] * (TRIES // 4)
    liar = pine(kind, checks=24 if issubclass(kind, WrapsAround) else 4)
    assert not shared(liar, rows, dice).accepted().any()


@pytest.mark.slow
def test_long_rows_at_the_sizes_of_rounds(dice):
    """d = 1000, 128 checks, three aggregators."""
    size = {"d": 1000, "checks": 128, "shares": 3, "proofs": 3}
    honest = shared(pine(**size), [row_of(1000, R, dice) for _ in range(10)] + [at_the_bound(1000, dice)] * 10, dice)
    assert honest.accepted().all()
    for how in SEVEN_WAYS:
        assert tampered(honest, how).accepted().tolist() == [True, False] * 10
    for kind, row in (
        (Pine, one_step_over(1000, dice)),
        (ClaimsTheBound, one_step_over(1000, dice)),
        (Pine, row_of(1000, 100 * R, dice)),
        (OneFatBit, row_of(1000, 100 * R, dice)),
        (WrapsAround, one_root_of_two(1000)),
        (WrapsAround, four_that_wrap(1000, dice, places=(1, 500, 777, 999))),
        (SaysAllPassed, four_that_wrap(1000, dice)),
    ):
        assert not shared(pine(kind, **size), [row] * 20, dice).accepted().any()


def test_a_root_of_two_is_one_and_claims_to_be_short():
    assert ROOT_OF_TWO**2 % Q == 2
    liar = pine(WrapsAround)
    assert liar.claim(one_root_of_two(16)) == 2
    assert liar.claim(four_that_wrap(16, np.random.default_rng(3))) == 12345


@pytest.mark.parametrize("bound2", [1, 2, 3, 4, 7, 8, 1000, 2**20 - 1, 2**20, 2**20 + 1])
def test_a_bound_that_is_no_power_of_two_is_kept_exactly(dice, bound2):
    """v is at most B although its bits reach further, for each B: v + u = B with u >= 0."""
    fits, over = np.zeros(16, np.int64), np.zeros(16, np.int64)
    left = bound2
    for i in range(4):
        fits[i] = int(left**0.5)
        left -= int(fits[i]) ** 2
    fits[4 : 4 + left] = 1  # what four greedy squares leave is small
    assert (fits**2).sum() == bound2
    over[:] = fits
    over[15] = 1
    assert shared(pine(bound2=bound2), [fits] * 5, dice).accepted().all()
    for kind in (Pine, ClaimsTheBound):
        assert not shared(pine(kind, bound2=bound2), [over] * 5, dice).accepted().any()


# ---- letters that were changed ----------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def honest():
    dice = np.random.default_rng(7)
    return shared(pine(), [row_of(16, R, dice) for _ in range(2 * TRIES)], dice)


@pytest.mark.slow
@pytest.mark.parametrize("how", SEVEN_WAYS)
def test_who_changes_a_letter_spoils_that_report_only(honest, how):
    assert tampered(honest, how).accepted().tolist() == [True, False] * TRIES


@pytest.fixture(scope="module")
def few():
    dice = np.random.default_rng(8)
    return shared(pine(shares=3, proofs=3), [row_of(16, R, dice) for _ in range(20)], dice)


@pytest.mark.parametrize("how", MORE_WAYS)
def test_more_ways_to_spoil_a_report(few, how):
    assert tampered(few, how).accepted().tolist() == [True, False] * 10


def test_every_word_and_byte_of_a_letter_counts():
    """One more in any number of the row, its bits, and proofs; one bit of any byte of blinds, seeds and public parts."""
    dice = np.random.default_rng(9)
    proof = pine(d=4, checks=2, proofs=2, bound2=9)
    base = shared(proof, [np.array([1, 2, 0, -2])], dice)
    words = (proof.leader_bytes - 64) // 8
    letters = [added_one(base.letters[0][0], 8 * i) for i in range(words)]
    letters += [flipped(base.letters[0][0], i) for i in range(8 * words, proof.leader_bytes)]
    publics = [flipped(base.publics[0], i) for i in range(proof.public_bytes)]
    seeds = [flipped(base.letters[1][0], i) for i in range(proof.seed_bytes)]
    n = len(letters) + len(publics) + len(seeds) + 1
    all_of_them = type(base)(
        proof,
        base.ctxs * n,
        base.nonces * n,
        base.publics * len(letters) + publics + base.publics * (len(seeds) + 1),
        [
            letters + base.letters[0] * (len(publics) + len(seeds) + 1),
            base.letters[1] * (len(letters) + len(publics)) + seeds + base.letters[1],
        ],
    )
    assert all_of_them.accepted().tolist() == [False] * (n - 1) + [True]


def added_one(letter, at):
    word = (int.from_bytes(letter[at : at + 8], "little") + 1) % Q
    return letter[:at] + word.to_bytes(8, "little") + letter[at + 8 :]


def flipped(raw, i):
    return raw[:i] + bytes([raw[i] ^ 0x10]) + raw[i + 1 :]


def test_what_an_aggregator_told_is_refused_when_malformed(few):
    """A word of q, a missing or surplus byte, another report's words, silence: that report is refused, the others are not."""
    found = [few.verified(j) for j in range(3)]
    changes = {
        0: lambda told: Q.to_bytes(8, "little") + told[8:],
        1: lambda told: told[:-1],
        2: lambda told: told + b"\0",
        3: lambda told: b"",
        4: lambda told: found[1].told[5],
        5: lambda told: added_one(told, 0),
        6: lambda told: flipped(told, len(told) - 1),
        7: lambda told: flipped(told, len(told) - 33),
    }
    told = [changes[i](letter) if i in changes else letter for i, letter in enumerate(found[1].told)]
    for j in (0, 2):
        judged = few.proof.judge(few.ctxs, found[j].states, [found[0].told, told, found[2].told])
        assert judged.tolist() == [i not in changes for i in range(20)]


@pytest.mark.parametrize("at_once", [1, 3000, 1 << 17])
def test_a_batch_decides_as_each_report_alone(few, monkeypatch, at_once):
    """However many reports go through together, and whatever stands beside a report."""
    monkeypatch.setattr("hedgerow.crypto.proofs.pine.AT_ONCE", at_once)
    spoilt = tampered(few, "short")
    for j in range(3):
        many = spoilt.verified(j)
        for i in range(20):
            one = spoilt.proof.verify(
                bytes(range(32)), [spoilt.ctxs[i]], j, [spoilt.nonces[i]], [spoilt.publics[i]], [spoilt.letters[j][i]]
            )
            assert (one.told[0], one.states[0]) == (many.told[i], many.states[i])
            assert (one.shares[0] == many.shares[i]).all()
    assert spoilt.verified(0).told[1] == b"" != many.told[1]
    assert not spoilt.verified(0).shares[1].any()


def test_a_round_without_reports_accepts_none():
    for proof in (pine(), prio3(SumVec(F, 2, 3))):
        verify = getattr(proof, "verify_many", None) or proof.verify
        found = verify(bytes(32), [], 0, [], [], [])
        assert found.told == found.states == []
        assert proof.judge([], [], [[], []]).shape == (0,)


# ---- liars of Prio3 ---------------------------------------------------------------------------------------------------------
def fat_bit(encoded, place, value):
    changed = encoded.copy()
    changed[place] = value % Q
    return changed


HALF = pow(2, -1, Q)
PRIO3 = {
    "SumVec, two in a bit": (SumVec(F, 3, 5), lambda: fat_bit(numbers_in_bits([1, 5, 0], 5), 1, 2)),
    "SumVec, minus one in a bit": (SumVec(F, 3, 5), lambda: fat_bit(numbers_in_bits([1, 5, 0], 5), 0, -1)),
    "SumVec, two bits whose x (x - 1) cancel": (
        SumVec(F, 3, 5),
        lambda: np.concatenate([F.of([3, cancels(3 * (3 - 1))]), F.zeros(7)]),
    ),
    "L1BoundSum, sum over the bound": (L1BoundSum(F, 3, 10), lambda: numbers_in_bits([10, 1, 0, 10], 10)),
    "L1BoundSum, all at the bound": (L1BoundSum(F, 3, 10), lambda: numbers_in_bits([10, 10, 10, 10], 10)),
    "L1BoundSum, sum too small": (L1BoundSum(F, 3, 10), lambda: numbers_in_bits([5, 1, 0, 5], 10)),
    "L1BoundSum, sum in a fat bit": (L1BoundSum(F, 3, 10), lambda: fat_bit(numbers_in_bits([10, 10, 10, 0], 10), 12, 30)),
    "L1BoundSum, a negative entry": (
        L1BoundSum(F, 3, 10),
        lambda: fat_bit(numbers_in_bits([10, 5, 0, 10], 10), 8, -5),
    ),
    "Histogram, two ones": (Histogram(F, 8), lambda: F.of([1, 0, 1, 0, 0, 0, 0, 0])),
    "Histogram, no one": (Histogram(F, 8), lambda: F.zeros(8)),
    "Histogram, two halves": (Histogram(F, 8), lambda: F.of([HALF, HALF, 0, 0, 0, 0, 0, 0])),
    "Histogram, one too many and one less": (Histogram(F, 8), lambda: F.of([1, 1, -1, 0, 0, 0, 0, 0])),
    "Histogram, two in one": (Histogram(F, 8), lambda: F.of([2, -1, 0, 0, 0, 0, 0, 0])),
    "Multihot, too many": (
        Multihot(F, 5, 2),
        lambda: np.concatenate([F.of([1, 1, 1, 0, 0]), numbers_in_bits([2], 2)]),
    ),
    "NormBits, one step over": (NormBits(F, 3, 26), lambda: norm_bits([5, 1, 1], 26)),
    "NormBits, honest bits of a long row": (NormBits(F, 3, 26), lambda: norm_bits([5, 5, 5], 49)),
    "NormBits, a number beyond M": (
        NormBits(F, 3, 26),
        lambda: fat_bit(norm_bits([-5, 0, 0], 26), 0, 100),
    ),
    "NormBits, a root of two": (NormBits(F, 3, 26), lambda: fat_bit(norm_bits([-5, 0, 0], 2), 0, ROOT_OF_TWO + 5)),
    "NormBits, v in a fat bit": (NormBits(F, 3, 26), lambda: fat_bit(norm_bits([5, 5, 5], 0), 12, 75)),
}


def cancels(c):
    """Return x with x (x - 1) = -c modulo q."""
    root = square_root((1 - 4 * c) % Q)
    assert root is not None
    return (1 + root) * HALF % Q


def square_root(a):
    """Return a square root modulo q, by Tonelli and Shanks; None if there is none."""
    if pow(a, (Q - 1) // 2, Q) != 1:
        return None
    c, m = pow(7, 2**32 - 1, Q), 32
    t, r = pow(a, 2**32 - 1, Q), pow(a, 2**31, Q)
    while t != 1:
        i, s = 0, t
        while s != 1:
            s, i = s * s % Q, i + 1
        b = pow(c, 1 << (m - i - 1), Q)
        m, c = i, b * b % Q
        t, r = t * c % Q, r * b % Q
    return r


def norm_bits(row, claimed):
    """Return what NormBits(F, 3, 26) shares of a row, with a claim of its own."""
    return np.concatenate([numbers_in_bits(np.array(row) + 5, 10), numbers_in_bits([claimed], 26)])


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIO3)
def test_who_lies_to_prio3_is_refused(dice, name):
    circuit, make = PRIO3[name]
    encoded = make()
    assert encoded.shape == (circuit.size,)
    assert not shared(prio3(circuit), [encoded] * TRIES, dice).accepted().any()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("circuit", "rows"),
    [
        (SumVec(F, 3, 5), [[0, 0, 0], [5, 5, 5], [1, 4, 3]]),
        (L1BoundSum(F, 3, 10), [[0, 0, 0], [10, 0, 0], [3, 3, 4], [0, 1, 0]]),
        (Histogram(F, 8), list(np.eye(8, dtype=np.int64))),
        (Multihot(F, 5, 2), [[0, 0, 0, 0, 0], [1, 0, 0, 0, 1]]),
        (NormBits(F, 3, 26), [[10, 5, 6], [5, 5, 5], [0, 4, 5]]),  # shifted by M = 5
    ],
    ids=lambda value: type(value).__name__,
)
def test_who_tells_prio3_the_truth_is_accepted(dice, circuit, rows):
    encoded = [circuit.encode(np.array(row)) for row in rows] * (TRIES // len(rows))
    reports = shared(prio3(circuit, shares=3), encoded, dice)
    assert reports.accepted().all()
    assert (reports.total(slice(0, len(rows))) == np.sum(rows, axis=0)).all()
