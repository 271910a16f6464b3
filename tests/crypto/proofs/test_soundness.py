"""What proofs of bounds rest on: exact arithmetic, sizes, randomness over everything; and what an aggregator learns: nothing.

Twins leave out one thing each, and a liar who knows that is accepted.
"""

from __future__ import annotations

from math import isqrt, log2

import numpy as np
import pytest
from liars import (
    KEY,
    ROOT_OF_TWO,
    F,
    Q,
    Reports,
    Tiny,
    WrapsAround,
    four_squares,
    four_that_wrap,
    letter_about,
    numbers_in_bits,
    pine,
    prio3,
    row_of,
    shared,
)
from scipy.stats import chi2_contingency

from hedgerow.crypto.proofs import bounded, circuits
from hedgerow.crypto.proofs.circuits import BoundedSum, L1BoundSum, Multihot, SumVec
from hedgerow.crypto.proofs.field import Field128
from hedgerow.crypto.proofs.flp import Flp
from hedgerow.crypto.proofs.letters import cut
from hedgerow.crypto.proofs.norm_bits import NormBits
from hedgerow.crypto.proofs.pine import Pine
from hedgerow.crypto.proofs.pine_circuits import PineShape, RestCircuit
from hedgerow.crypto.proofs.prio3 import Prio3
from hedgerow.crypto.proofs.signs import dots, sign_blocks, squared_norm
from hedgerow.crypto.proofs.transforms import nodes
from hedgerow.crypto.proofs.xof import Shake128, Xof
from hedgerow.errors import KeyInvalid, MessageRefused, SettingsInvalid

R = 1 << 20


@pytest.fixture
def dice():
    return np.random.default_rng(22)


# ---- how large the field must be --------------------------------------------------------------------------------------------
def pass_rate(x, q, w):
    """Return exactly how often z . x lies in -w + 1 .. w modulo q."""
    p = np.zeros(q)
    p[0] = 1
    for value in x:
        p = (np.roll(p, value) + 2 * p + np.roll(p, -value)) / 4
    return p[: w + 1].sum() + p[q - w + 1 :].sum()


def worst_pass_rate(q, w, tries, dice):
    """Return the largest pass rate that was found over rows of many shapes whose squares add up to q and more."""
    worst, middle = 0.0, q // 2
    for _ in range(tries):
        d, scale = int(dice.integers(1, 40)), 2 ** dice.uniform(0, log2(middle))
        x = (dice.normal(size=d) if dice.random() < 0.5 else dice.uniform(-1, 1, d)) * scale
        if dice.random() < 0.3:
            x = np.sign(x) * scale
        x = np.clip(x, -middle, middle).astype(np.int64)
        if (x**2).sum() >= q:
            worst = max(worst, pass_rate(x, q, w))
    return worst


@pytest.mark.slow
def test_in_a_small_field_every_wrap_is_caught_by_half_of_the_checks_and_not_in_a_smaller_one(dice):
    """All probabilities are exact; q / W^2 is 192, 128 and 130 by the rule, and 3 beyond it."""
    for q, w in ((12289, 8), (2053, 4), (521, 2)):
        assert q >= 128 * w * w
        assert worst_pass_rate(q, w, 500, dice) <= 0.5 + 1e-12
    assert pass_rate([57] * 4, 12289, 64) > 0.7
    assert pass_rate([781], 12289, 8) == 0.5  # and one half is reached


SHAPES = {
    "one": [1.0],
    "two": [1.0] * 2,
    "four": [1.0] * 4,
    "16": [1.0] * 16,
    "256": [1.0] * 256,
    "one and small ones": [1.0] + [0.05] * 256,
    "geometric": list(0.7 ** np.arange(30)),
}


def measured_rates(over_w2, dice, n=20_000):
    """Return for every shape of a row of norm sqrt(q) how often one check passes at q / W^2."""
    found = {}
    for name, shape in SHAPES.items():
        x = np.array(shape) / np.linalg.norm(shape)
        z = dice.integers(0, 2, (n, len(x)), dtype=np.int8) + dice.integers(0, 2, (n, len(x)), dtype=np.int8) - 1
        found[name] = np.mean(np.abs(z @ x) <= over_w2**-0.5)
    return found


@pytest.mark.slow
def test_a_check_passes_with_one_half_at_most_where_the_rule_allows(dice):
    by_rule, beyond, far_beyond = (max(measured_rates(2.0**k, dice).values()) for k in (7, 2, -2))
    assert by_rule <= 0.5 + 5 * 0.5 / np.sqrt(20_000)
    assert 0.65 < beyond < 0.76
    assert far_beyond == 1.0


def test_the_constants_of_the_derivation():
    """3.04 W / s at W / s = 1 / 8, Berry and Esseen with 0.56 at both ends; E|z|^3 = E z^2 = 1 / 2 for each sign."""
    ratio = (1 / 128 / 0.5) ** 0.5
    assert ratio == 1 / 8
    bound = 2 * ratio / np.sqrt(2 * np.pi) + 2 * 0.56 * 2 * ratio
    assert bound <= 3.04 / 8 <= 0.5
    assert 2 * np.exp(-(8.7**2)) < 2.0**-108


def test_the_rule_refuses_what_is_too_large_and_nothing_below():
    largest = (2**28 - 1) / 8.7  # W = 2^28 is the largest with 128 W^2 <= q
    fits, over = int(largest) ** 2, (int(largest) + 2) ** 2
    shape = PineShape(F, 10, fits)
    assert shape.reach == 2**28
    assert shape.check_bits == 29  # -W + 1 .. W, and no more
    assert 128 * shape.reach**2 <= Q < 128 * (2 * shape.reach) ** 2
    for bound2 in (over, 2**50, 2**58, 2**62):
        with pytest.raises(SettingsInvalid):
            PineShape(F, 10, bound2)
    with pytest.raises(SettingsInvalid):
        PineShape(F, 10, Q // 3, alpha=1e-12)  # dot products would fit, the range check of v + u = B would not
    assert PineShape(Field128(), 10, 2**58).reach == 2**33


@pytest.mark.slow
@pytest.mark.parametrize(("r", "times"), [(2**29, 8), (2**31, 2)])
def test_the_reference_rule_admits_rows_that_are_too_long_and_ours_does_not(dice, r, times):
    """A row of norm 2^32 is 8 R or 2 R; its squares add up to q and a little, and every dot product stays within W."""
    row = four_that_wrap(64, dice)
    assert abs(np.linalg.norm(row.astype(float)) / r / times - 1) < 1e-6
    assert shared(pine(WrapsAround, d=64, r=r, checks=128, as_drafted=True), [row] * 20, dice).accepted().all()
    with pytest.raises(SettingsInvalid):
        pine(WrapsAround, d=64, r=r, checks=128)
    with pytest.raises(SettingsInvalid):
        bounded.l2_proof(64, r * r, 2)


@pytest.mark.slow
def test_spread_over_many_numbers_a_wrap_passes_the_reference_rule_too(dice):
    side = isqrt((Q + 1000) // 60)
    row = np.zeros(64, np.int64)
    row[:59] = side
    row[59:63] = four_squares(Q + 12345 - 59 * side * side, dice)
    assert shared(pine(WrapsAround, d=64, r=2**31, checks=128, as_drafted=True), [row] * 20, dice).accepted().all()


def test_all_checks_must_pass_and_alpha_is_a_number():
    for wrong in ({"passes": 100}, {"passes": 129}, {"alpha": 0.0}, {"alpha": float("inf")}, {"alpha": float("nan")}):
        with pytest.raises(SettingsInvalid):
            PineShape(F, 10, 100, **wrong)


WRAPPING = {
    "two of 2^63": (lambda: L1BoundSum(F, 2, 2**63), [2**63, 2**63 - 2**32 + 1, 0]),
    "two that sum to q + 1": (lambda: L1BoundSum(F, 2, Q // 2 + 1), [Q // 2 + 1, Q // 2 + 1, 1]),
}


@pytest.mark.parametrize("name", WRAPPING)
def test_sums_that_could_wrap_around_are_refused_and_would_be_believed(dice, monkeypatch, name):
    """Without the rule a row whose sum is q and more proves that its sum is nothing."""
    make, numbers = WRAPPING[name]
    with pytest.raises(SettingsInvalid, match="wrap"):
        make()
    monkeypatch.setattr(circuits, "_unwrapped", lambda *_: None)
    circuit = make()
    encoded = numbers_in_bits(np.array(numbers, object), circuit.most)
    assert sum(numbers[:-1]) > circuit.most
    assert shared(prio3(circuit), [encoded] * 20, dice).accepted().all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: BoundedSum(F, Q),
        lambda: SumVec(F, 3, Q),
        lambda: SumVec(F, 3, 2**64),
        lambda: L1BoundSum(F, 3, Q // 2),
        lambda: Multihot(Tiny(), 12289, 2),
        lambda: NormBits(F, 5, 2**62),
        lambda: bounded.range_proof(3, -(2**63), 2**63, 2),
        lambda: bounded.l1_proof(2**20, 2**45, 2),
    ],
)
def test_no_number_stands_for_two(make):
    with pytest.raises(SettingsInvalid):
        make()


def test_proofs_of_rounds_have_all_checks_and_proofs():
    for size, bound2 in ((1, 100), (100, 2**40), (1000, 2**40), (5000, 2**49)):
        proof = bounded.l2_proof(size, bound2, 2)
        if isinstance(proof, Pine):
            s = proof.shape
            assert (s.checks, s.passes, s.alpha, s.as_drafted, proof.proofs, proof.proofs_norm) == (128, 128, 8.7, False, 3, 1)
            assert 128 * s.reach**2 <= Q
        else:
            assert proof.prio3.proofs == 3
    for proof in (bounded.l1_proof(5, 10, 2), bounded.one_hot_proof(5, 2), bounded.range_proof(5, -3, 4, 2)):
        assert proof.prio3.proofs == 3


# ---- exact arithmetic -------------------------------------------------------------------------------------------------------
class Given:
    """A stream of bytes that are given, then of zeros."""

    def __init__(self, raw, then=b"\0"):
        self.raw, self.then = raw, then

    def read(self, n):
        out, self.raw = self.raw[:n], self.raw[n:]
        return out + self.then * (n - len(out))


@pytest.mark.parametrize("d", [1, 3, 4, 4095, 4096, 4097, 12_289, 140_001])
@pytest.mark.parametrize("sign", [b"\xff", b"\0"], ids=["all 1", "all -1"])
def test_dot_products_are_exact_at_their_largest(d, sign):
    """All bytes 255 and all signs alike: sums in float32 are the largest there are."""
    row = np.full(d, 0xFFFFFFFEFFFFFFFF, np.uint64)  # as many bytes of 255 as a number of the field can have
    row[0] = 0  # so that sums are odd, and no power of two divides them
    due = (1 if sign == b"\xff" else -1) * 0xFFFFFFFEFFFFFFFF * (d - 1) % Q
    assert [int(v) for v in dots(F, Given(b"", sign), 3, row)] == [due] * 3


def test_dot_products_are_those_of_whole_numbers_and_signs_as_stated(dice):
    raw, d = dice.bytes(3 * 1251), 5001
    signs = np.concatenate([block for _, block in sign_blocks(Given(raw), 3, d)], axis=1)
    bits = np.unpackbits(np.frombuffer(raw, np.uint8).reshape(3, -1), axis=1, bitorder="little").reshape(3, -1, 2)
    assert (signs == bits.sum(axis=2)[:, :d] - 1.0).all()
    row = F.of([int.from_bytes(dice.bytes(8), "little") for _ in range(d)])
    due = [sum(int(s) * int(v) for s, v in zip(line, row, strict=True)) % Q for line in signs]
    assert [int(v) for v in dots(F, Given(raw), 3, row)] == due
    assert [int(v) for v in dots(Field128(), Given(raw), 3, Field128().of([int(v) for v in row]))] == [
        sum(int(s) * int(v) for s, v in zip(line, row, strict=True)) % Field128.modulus for line in signs
    ]


def test_signs_have_their_chances(dice):
    signs = np.concatenate([block for _, block in sign_blocks(Shake128(b"signs"), 20, 5000)], axis=1)
    counts = np.array([(signs == value).sum() for value in (-1, 0, 1)])
    due = 100_000 * np.array([0.25, 0.5, 0.25])
    assert ((counts - due) ** 2 / due).sum() < 28  # 1e-6


@pytest.mark.parametrize("terms", [1, 511, 512, 513, 1025, 2000])
def test_matrix_products_are_exact_at_their_largest(terms):
    a, b = F.of([[Q - 1] * terms]), F.of([[Q - 1]] * terms)
    assert F.product(a, b)[0, 0] == terms % Q
    b[:] = 2**63 - 1
    assert F.product(a, b)[0, 0] == -(2**63 - 1) * terms % Q
    a[:] = 2**44 - 1  # limbs of 22 bits, all full
    b[:] = 2**44 - 1
    assert F.product(a, b)[0, 0] == (2**44 - 1) ** 2 * terms % Q


@pytest.mark.parametrize("value", [0, 1, 2**16 - 1, 2**16, 2**32 - 1, 2**32, 2**40, 2**63 - 1])
def test_squared_norms_are_exact(value):
    for row in ([value] * 7 + [-value], [value, 1, -1], [-(2**63), value]):
        assert squared_norm(np.array(row, np.int64)) == sum(v * v for v in row)
    long = np.full(2**20 + 3, min(value, 2**32 - 1), np.int64)
    assert squared_norm(long) == min(value, 2**32 - 1) ** 2 * (2**20 + 3)


def test_numbers_of_streams_are_drawn_again_and_never_reduced():
    words = [Q, 5, 2**64 - 1, Q - 1, Q + 1, 7]
    raw = b"".join(word.to_bytes(8, "little") for word in words)
    assert F.stream(Given(raw), 3).tolist() == [5, Q - 1, 7]


@pytest.mark.parametrize("field", [F, Tiny()], ids=repr)
def test_a_number_has_one_encoding(field):
    """q is zero and q + 1 is one, but neither is written so."""
    q, size = field.modulus, field.size
    assert field.decode((q - 1).to_bytes(size, "little"), 1)[0] == q - 1
    for word in (q, q + 1, 256**size - 1):
        with pytest.raises(MessageRefused):
            field.decode(bytes(size) + word.to_bytes(size, "little"), 2)


def test_numbers_between_are_centred():
    values = [0, 1, -1, (Q - 1) // 2, -(Q - 1) // 2]
    assert F.centred(F.of(values)).tolist() == values
    assert F.of(np.array([-(2**63), 2**63 - 1])).tolist() == [Q - 2**63, 2**63 - 1]


# ---- points at which proofs are questioned ----------------------------------------------------------------------------------
def test_a_point_at_a_root_of_unity_is_unlawful():
    flp = Flp(RestCircuit(PineShape(F, 4, 100, checks=2)))
    (gadget,) = flp.circuit.gadgets
    roots = nodes(F, 2 * gadget.nodes)
    assert not flp.lawful(roots[:, None]).any()
    assert flp.lawful(F.add(roots, F.constant(1))[:, None][1:]).all()
    assert flp.lawful(F.zeros((1, 1))).all()


def test_reports_whose_point_is_a_root_are_refused_by_all_and_others_are_not(dice):
    """In a field of 12 289 with proofs of 64 points such a point comes once in 192."""
    proof = prio3(SumVec(Tiny(), 60, 1, 2), proofs=1)
    encoded = [dice.integers(0, 2, 60) for _ in range(1000)]
    reports = shared(proof, encoded, dice)
    found = [reports.verified(j) for j in (0, 1)]
    refused = np.array([state is None for state in found[0].states])
    assert 0 < refused.sum() < 30
    assert (refused == np.array([state is None for state in found[1].states])).all()
    assert all(told == b"" for told, out in zip(found[0].told, refused, strict=True) if out)
    assert not found[0].shares[refused].any()
    assert (reports.accepted() == ~refused).all()


# ---- what every stream is drawn from ----------------------------------------------------------------------------------------
class Spy:
    """A stream function that keeps what it was asked."""

    def __init__(self):
        self.asked = []
        self.xof = Xof("shake128", self.make)

    def make(self, head, *message):
        n = int.from_bytes(head[:2], "little")
        domain, seed = head[2 : 2 + n], head[3 + n :]
        self.asked.append((int.from_bytes(domain[6:8], "big"), domain[8:], seed, b"".join(map(bytes, message))))
        return Shake128(head, *message)


def test_every_stream_is_bound_to_all_that_it_must_be(dice):
    """Parts cover index, nonce and the whole share; joint seeds all parts; points the key, the nonce and how many proofs."""
    spy = Spy()
    proof = Pine(PineShape(F, 5, 100, checks=3), 3, 2, xof=spy.xof)
    reports = shared(proof, [np.array([1, 2, 3, 4, 5])], dice)
    party, spy.asked = spy.asked, []
    found = [reports.verified(j) for j in range(3)]
    s, nonce, length = proof.shape, reports.nonces[0], 32
    assert all(ctx == reports.ctxs[0] for _, ctx, _, _ in party + spy.asked)
    asked = {use: [(seed, message) for u, _, seed, message in spy.asked if u == use] for use in range(1, 11)}
    for use, size in ((7, s.shared), (10, s.head)):
        shares = [F.decode(message[17:], size) for _, message in asked[use]]
        assert [message[:17] for _, message in asked[use]] == [bytes([j]) + nonce for j in range(3)]
        total = F.add(F.add(*shares[:2]), shares[2])
        assert F.centred(total)[:5].tolist() == [1, 2, 3, 4, 5]
    assert asked[10][0][1] == asked[7][0][1][: 17 + 8 * s.head]
    assert [message for _, message in asked[5]] == [bytes([1, 2]) + nonce] * 3
    assert [seed for seed, _ in asked[5]] == [KEY] * 3
    parts = [one.told[0][-2 * length :] for one in found]
    assert asked[9] == [(bytes(length), b"".join(part[:length] for part in parts))] * 3
    assert asked[6] == [(bytes(length), b"".join(part[length:] for part in parts))] * 3
    assert {message for _, message in asked[1]} == {bytes([j]) for j in (1, 2)}
    assert {message for _, message in asked[2]} == {bytes([1, 2, j]) for j in (1, 2)}
    assert set(asked[3]) == {(found[0].states[0][length:], bytes([2]))}
    assert {seed for seed, _ in asked[8]} == {found[0].states[0][:length]}
    questions = {(use, seed, message) for use, _, seed, message in spy.asked if use != 5}
    assert questions <= {(use, seed, message) for use, _, seed, message in party}


def test_points_differ_by_proof_report_context_and_key(dice):
    proof = pine(proofs=3)
    draw = lambda key, ctx, nonce: proof.domain.numbers(F, proof._sizes("query_size"), 5, ctx, key, proof._counts, nonce)  # noqa: E731
    drawn = [
        draw(KEY, b"a", bytes(16)),
        draw(bytes(32), b"a", bytes(16)),
        draw(KEY, b"b", bytes(16)),
        draw(KEY, b"a", b"n" * 16),
    ]
    assert len(np.unique(np.concatenate(drawn))) == 4 * proof._sizes("query_size")


@pytest.mark.parametrize("make", [lambda: (pine(), np.zeros(16, np.int64)), lambda: (prio3(SumVec(F, 2, 3)), F.zeros(4))])
def test_all_that_is_told_of_wires_follows_from_the_key(dice, make):
    """The first number is a share of the output, which is nought; those after it are wires, at another point by another key."""
    proof, row = make()
    reports = shared(proof, [row], dice)
    one, other = (F.decode(reports.verified(0, key).told[0][:32], 4) for key in (KEY, bytes(32)))
    assert (one[1:] != other[1:]).all()


@pytest.mark.parametrize("length", [0, 1, 31, 33])
def test_a_key_of_another_length_is_refused(dice, length):
    for proof, row in ((pine(), np.zeros(16, np.int64)), (prio3(SumVec(F, 2, 3)), F.zeros(4))):
        reports = shared(proof, [row], dice)
        with pytest.raises(KeyInvalid):
            reports.verified(0, bytes(length))


# ---- twins that leave something out -----------------------------------------------------------------------------------------
class PartsOfNothing(Prio3):
    """A twin whose parts leave out the shares, so that joint randomness is known before the row is chosen."""

    def _part(self, ctx, j, blind, nonce, share):
        return super()._part(ctx, j, blind, nonce, b"")


class PartsUnchecked(Prio3):
    """A twin that takes all parts from the party."""

    def _seeds(self, ctx, j, nonce, public, blind, raw):
        parts = cut(public, self.xof.seed_bytes)
        return parts[j], self.domain.joint(6, ctx, parts)


def fat_bits_for(r):
    """Return x, y that are no bits, with r x (x - 1) + r^2 y (y - 1) = 0: a line of slope 3 through (0, 0) meets the conic."""
    x = (1 + 3 * r) * pow(1 + 9 * r, -1, Q) % Q
    assert (r * x * (x - 1) + r * r * 3 * x * (3 * x - 1)) % Q == 0
    return F.of([x, 3 * x, 0, 0])


def knows_the_joint_randomness(proof, twin, dice, n=20):
    """Return reports of who fits its bits to the joint randomness that `twin` would use."""
    ctx, sent = b"ctx", []
    for _ in range(n):
        nonce, seed, own = dice.bytes(16), dice.bytes(proof.seed_bytes), dice.bytes(proof.own_bytes)
        if isinstance(twin, PartsUnchecked):
            parts = [dice.bytes(32), dice.bytes(32)]
        else:
            parts = [twin._part(ctx, 0, own[:32], nonce, b""), twin._part(ctx, 1, seed[32:], nonce, b"")]
        joint = twin._joint(ctx, twin.domain.joint(6, ctx, parts))
        encoded = fat_bits_for(int(joint[0, 0]))
        sent.append((nonce, b"".join(parts), letter_about(proof, encoded, joint, ctx, [seed], own), seed))
    nonces, publics, letters, seeds = map(list, zip(*sent, strict=True))
    return Reports(proof, [ctx] * n, nonces, publics, [letters, seeds])


@pytest.mark.parametrize("kind", [PartsOfNothing, PartsUnchecked])
def test_joint_randomness_that_is_known_beforehand_is_worth_nothing(dice, kind):
    circuit = SumVec(F, 4, 1, 4)
    twin, engine = prio3(circuit, proofs=1, kind=kind), prio3(circuit, proofs=1)
    assert knows_the_joint_randomness(twin, twin, dice).accepted().all()
    assert not knows_the_joint_randomness(engine, twin, dice).accepted().any()


class SignsBeforehand(WrapsAround):
    """A twin whose signs do not follow from the row."""

    def _signs(self, ctx, seed):
        return super()._signs(ctx, bytes(32))


def test_signs_that_are_known_beforehand_let_a_row_wrap_around(dice):
    """Its long number stands where all signs are zero."""
    twin, engine = (pine(kind, d=2000, checks=8) for kind in (SignsBeforehand, WrapsAround))
    reader = twin._signs(b"round 1, party 0", b"")
    signs = np.concatenate([block for _, block in sign_blocks(reader, 8, 2000)], axis=1)
    row = np.zeros(2000, np.int64)
    row[np.flatnonzero((signs == 0).all(axis=0))[0]] = ROOT_OF_TWO
    assert shared(twin, [row] * 20, dice, alike=True).accepted().all()
    assert shared(engine, [row] * 20, dice, alike=True).accepted().sum() < 3


class NoRange(RestCircuit):
    """A twin that leaves out v + u = B, by taking u as whatever is missing."""

    def outputs(self, values, row, joint, shares):
        s = self.shape
        free = row.copy()
        free[..., s.length + s.norm_bits : s.length + 2 * s.norm_bits] = 0
        v = free[..., s.length : s.length + s.norm_bits]
        weights = F.of([1 << i for i in range(s.norm_bits)])
        missing = F.sub(circuits.share_of(F, s.bound2, shares), F.sum(F.mul(v, weights)))
        free[..., s.length + s.norm_bits] = missing
        return super().outputs(values, free, joint, shares)


def test_without_the_range_of_the_claim_bits_reach_beyond_the_bound(dice):
    """B = 2^40 has 41 bits for v, which reach to nearly 2 B."""
    row = row_of(16, 1.3 * R, dice)
    twin, engine = pine(), pine()
    twin.rest = Flp(NoRange(twin.shape))
    assert shared(twin, [row] * 5, dice).accepted().all()
    assert not shared(engine, [row] * 5, dice).accepted().any()


# ---- what an aggregator learns ----------------------------------------------------------------------------------------------
class Seedless(Flp):
    """A twin whose proofs leave out the wire seeds."""

    def prove(self, row, random, joint):
        return super().prove(row, self.field.zeros(random.shape), joint)


def view(reports):
    """Return as words, shape (n, words), what all aggregators but the last see together."""
    proof, n = reports.proof, len(reports.nonces)
    end = 8 * (proof.told_bytes // 8) - (64 if isinstance(proof, Pine) else 32)
    tolds = [reports.verified(j).told for j in range(proof.shares)]
    total = F.zeros((n, end // 8))
    for told in tolds:
        total = F.add(total, np.stack([F.decode(letter[:end], end // 8) for letter in told]))
    seen = [
        np.frombuffer(b"".join(letters), "<u8").reshape(n, -1)
        for letters in (tolds[-1], reports.publics, *reports.letters[:-1])
    ]
    return np.concatenate([total, *seen], axis=1)


def least_p(one, other, dice):
    """Return the least p-value, times tests, of chi-square tests that words and pairs of words are distributed alike."""
    words = np.concatenate([one, other]).astype(np.uint64)
    which = np.repeat([0, 1], [len(one), len(other)])
    low, high = (words & np.uint64(15)).astype(int), (words >> np.uint64(60)).astype(int)
    pairs = dice.integers(0, words.shape[1], (300, 2))
    kinds = [*low.T, *high.T, *((low[:, i] << 2 & 12) + (high[:, j] >> 2) for i, j in pairs)]
    found = []
    for kind in kinds:
        table = np.zeros((2, 16))
        np.add.at(table, (which, kind), 1)
        table = table[:, table.sum(axis=0) > 0]
        found.append(chi2_contingency(table)[1] if table.shape[1] > 1 else 1.0)
    return min(found) * len(found)


HIDDEN = {
    "norm": (
        lambda: pine(shares=3, d=8, checks=2),
        lambda: (np.zeros(8, np.int64), np.eye(1, 8, dtype=np.int64)[0] * R),
        ("norm", "rest"),
    ),
    "counts": (
        lambda: prio3(L1BoundSum(F, 3, 10), shares=3),
        lambda: (numbers_in_bits([0, 0, 0, 0], 10), numbers_in_bits([1, 2, 7, 10], 10)),
        ("flp",),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HIDDEN)
def test_what_others_see_of_two_rows_is_distributed_alike_unless_wire_seeds_are_left_out(dice, name):
    """One context, nonce and key, so that points are the same; all other randomness is fresh each time."""
    make, rows, proofs = HIDDEN[name]
    least = {}
    for twin in (False, True):
        seen = []
        for row in rows():
            proof = make()
            if twin:
                for one in proofs:
                    setattr(proof, one, Seedless(getattr(proof, one).circuit))
            reports = shared(proof, [row] * 1000, dice, alike=True)
            assert reports.accepted().all()
            seen.append(view(reports))
        least[twin] = least_p(*seen, dice)
    assert least[False] > 1e-5
    assert least[True] < 1e-30


def test_hiding_is_needed_of_every_helper(dice):
    """Two sharings with the same seeds differ by what their rows differ: seeds serve once, or in another context."""
    proof = pine(d=4)
    seed, own, nonce = dice.bytes(proof.seed_bytes), dice.bytes(proof.own_bytes), bytes(16)
    a, b = (proof.shard(b"ctx", np.array(row), nonce, [seed], own)[1][:32] for row in ([1, 2, 3, 4], [1, 2, 3, 9]))
    assert F.centred(F.sub(F.decode(b, 4), F.decode(a, 4))).tolist() == [0, 0, 0, 5]
    c = proof.shard(b"other", np.array([1, 2, 3, 9]), nonce, [seed], own)[1][:32]
    assert (F.decode(c, 4) != F.decode(b, 4)).all()
