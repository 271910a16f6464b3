"""PINE: rows within the bound pass, the field must be large enough, and a wrapped row shows why."""

from __future__ import annotations

import math

import numpy as np
import pytest
from proof_driver import KEY, Report, accepted, report, round_of, verified

from hedgerow.crypto.proofs.field import Field128
from hedgerow.crypto.proofs.field64 import Field64
from hedgerow.crypto.proofs.pine import Pine
from hedgerow.crypto.proofs.pine_circuits import PineShape
from hedgerow.crypto.proofs.signs import sign_blocks, squared_norm
from hedgerow.crypto.proofs.xof import Shake128
from hedgerow.errors import SettingsInvalid

F = Field64()
Q = F.modulus
WRAPPED = np.array([3036999511, 3037001488, 38540, 901])  # squares sum to q + 12 345
R = 1 << 20


def shape(length: int = 32, bound2: int = R * R, **settings: object) -> PineShape:
    return PineShape(F, length, bound2, **settings)  # type: ignore[arg-type]


def rows(length: int, bound2: int, n: int) -> list[np.ndarray]:
    """Rows whose norms are a little below the bound."""
    rng = np.random.default_rng(length)
    drawn = rng.standard_normal((n, length))
    drawn *= 0.9999 * math.sqrt(bound2) / np.linalg.norm(drawn, axis=1, keepdims=True)
    return list(np.trunc(drawn).astype(np.int64))


class ClaimsModuloQ(Pine):
    """Claims the squared norm that the field sees."""

    def claim(self, row: np.ndarray) -> int:
        return squared_norm(row) % Q


def wrapped(length: int) -> np.ndarray:
    row = np.zeros(length, np.int64)
    row[:4] = WRAPPED
    return row


@pytest.mark.parametrize("shares", [2, 3])
@pytest.mark.parametrize(("length", "bound2"), [(1, 1), (4, 10), (32, R * R), (500, 2**24 + 17), (7, 2**49)])
def test_rows_within_the_bound_are_accepted_and_their_shares_add_up(length: int, bound2: int, shares: int) -> None:
    pine = Pine(shape(length, bound2), shares)
    given = [*rows(length, bound2, 3), np.zeros(length, np.int64)]
    ok, total = round_of(pine, [report(pine, row, shares, seed=i) for i, row in enumerate(given)])
    assert ok.all()
    assert np.array_equal(total, given)


def test_rows_exactly_at_the_bound_are_accepted_and_one_step_beyond_they_are_not() -> None:
    pine = Pine(shape(), 2)
    at = np.zeros((4, 32), np.int64)
    at[0, 0], at[1, 31], at[2, :4], at[3, :16] = R, -R, R // 2, R // 4
    assert [squared_norm(row) for row in at] == [R * R] * 4
    assert accepted(pine, [report(pine, row, 2, i) for i, row in enumerate(at)]).all()
    beyond = at.copy()
    beyond[:, 20] = 1
    assert not accepted(pine, [report(pine, row, 2, i) for i, row in enumerate(beyond)]).any()


def test_a_batch_is_to_the_byte_what_its_reports_are_one_by_one() -> None:
    """30 reports go through two blocks; two of them are malformed, one is false."""
    pine = Pine(shape(300), 2)
    reports = [report(pine, row, 2, i, ctx=b"party %d" % i) for i, row in enumerate(rows(300, R * R, 30))]
    reports[5] = reports[5].with_letter(0, reports[5].letters[0][:-1])
    reports[26] = reports[26].with_letter(0, Q.to_bytes(8, "little") + reports[26].letters[0][8:])
    reports[29] = report(pine, np.full(300, R), 2, 99)
    tolds = []
    for j in (0, 1):
        together = verified(pine, reports, j)
        for i, one in enumerate(reports):
            alone = verified(pine, [one], j)
            assert alone.told[0] == together.told[i]
            assert alone.states[0] == together.states[i]
            assert np.array_equal(alone.shares[0], together.shares[i])
        tolds.append(together)
    due = [i not in (5, 26, 29) for i in range(30)]
    for one in tolds:
        ctxs = [r.ctx for r in reports]
        assert pine.judge(ctxs, one.states, [t.told for t in tolds]).tolist() == due
        singly = [pine.judge([ctxs[i]], [one.states[i]], [[t.told[i]] for t in tolds])[0] for i in range(30)]
        assert singly == due


def test_bytes_that_travel_have_the_sizes_that_are_named() -> None:
    for shares in (2, 3):
        pine = Pine(shape(), shares)
        one = report(pine, np.zeros(32, np.int64), shares, 1)
        assert (len(one.public), len(one.letters[0])) == (pine.public_bytes, pine.leader_bytes)
        assert {len(told) for j in range(shares) for told in verified(pine, [one], j).told} == {pine.told_bytes}


def test_the_sizes_of_a_long_row_are_those_that_were_planned() -> None:
    for length, leader, told in ((1000, 44_872, 3_032), (10_000, 118_392, 4_040), (100_000, 843_336, 5_912)):
        pine = Pine(shape(length), 2)
        assert (pine.leader_bytes, pine.told_bytes) == (leader, told)


# what a report is bound to


def test_another_context_nonce_key_or_aggregator_is_refused() -> None:
    pine = Pine(shape(), 2)
    good = report(pine, rows(32, R * R, 1)[0], 2, 1)
    assert accepted(pine, [good]).all()
    bent = [
        good.changed(ctx=good.ctx + b"y"),
        good.changed(ctx=b""),
        good.changed(nonce=bytes(16)),
        good.changed(public=bytes(32) + good.public[32:]),
        good.changed(public=good.public[:-32] + bytes(32)),
        good.changed(public=good.public[32:64] + good.public[:32] + good.public[64:]),
        good.with_letter(1, bytes(len(good.letters[1]))),
    ]
    assert not accepted(pine, bent).any()
    # aggregators with different keys
    found = [verified(pine, [good], 0, KEY), verified(pine, [good], 1, bytes(32))]
    assert not pine.judge([good.ctx], found[0].states, [f.told for f in found]).any()


def test_shapes_are_bound_by_their_description() -> None:
    base = Pine(shape(), 2).describe()
    others = [
        Pine(shape(33), 2),
        Pine(shape(bound2=R * R - 1), 2),
        Pine(shape(checks=127), 2),
        Pine(shape(passes=127, as_drafted=True), 2),
        Pine(shape(chunk=54), 2),
        Pine(shape(chunk_norm=7), 2),
        Pine(shape(alpha=8.8), 2),
        Pine(shape(), 3),
        Pine(shape(), 2, proofs=2),
        Pine(shape(), 2, proofs_norm=2),
    ]
    assert len({base, *(other.describe() for other in others)}) == len(others) + 1
    assert Pine(shape(), 2).describe() == base


def malformed(pine: Pine, good: Report) -> list[Report]:
    leader, q = good.letters[0], Q.to_bytes(8, "little")
    top, at = b"\xff" * 8, 8 * pine.shape.shared
    return [
        good.with_letter(0, q + leader[8:]),
        good.with_letter(0, top + leader[8:]),
        good.with_letter(0, leader[: at - 8] + q + leader[at:]),
        good.with_letter(0, leader[:at] + q + leader[at + 8 :]),
        good.with_letter(0, leader[:-72] + top + leader[-64:]),
        good.with_letter(0, leader[:-1]),
        good.with_letter(0, leader + b"\0"),
        good.with_letter(0, b""),
        good.changed(nonce=good.nonce[:-1]),
        good.changed(public=good.public[:-1]),
    ]


def test_a_malformed_letter_refuses_its_own_report_only() -> None:
    """Words that are q or more in every place of a letter, and wrong lengths."""
    pine = Pine(shape(), 2)
    good = report(pine, rows(32, R * R, 1)[0], 2, 1)
    bad = malformed(pine, good)
    found = verified(pine, [good, *bad, good], 0)
    assert [state is not None for state in found.states] == [True, *[False] * len(bad), True]
    assert [bool(told) for told in found.told] == [True, *[False] * len(bad), True]
    assert not found.shares[1:-1].any()
    helper = verified(pine, [good, good.with_letter(1, good.letters[1][:-1]), good], 1)
    assert [state is not None for state in helper.states] == [True, False, True]
    ok = accepted(pine, [good, *bad, good])
    assert ok.tolist() == [True, *[False] * len(bad), True]


def test_the_word_q_is_refused_although_it_is_zero() -> None:
    """A row's share is chosen so that the leader's first number is 0; q in its place is the same number, in other bytes."""
    pine = Pine(shape(), 2)
    helper = F.sub(F.zeros(1), F.decode(report(pine, np.zeros(32, np.int64), 2, 1).letters[0][:8], 1))
    row = np.zeros(32, np.int64)
    row[:1] = F.centred(helper)
    one = report(pine, row, 2, 1, maker=ClaimsModuloQ(shape(), 2))
    assert one.letters[0][:8] == bytes(8)
    assert verified(pine, [one], 0).states[0] is not None
    assert verified(pine, [one.with_letter(0, Q.to_bytes(8, "little") + one.letters[0][8:])], 0).states[0] is None


def test_what_an_aggregator_tells_is_checked_too() -> None:
    pine = Pine(shape(), 2)
    good = report(pine, rows(32, R * R, 1)[0], 2, 1)
    found = [verified(pine, [good] * 6, j) for j in (0, 1)]
    told = found[1].told[0]
    other = [told, told[:-1], told + b"\0", b"", Q.to_bytes(8, "little") + told[8:], told[:-1] + bytes([told[-1] ^ 1])]
    assert pine.judge([good.ctx] * 6, found[0].states, [found[0].told, other]).tolist() == [True] + [False] * 5
    states = [found[0].states[0], None, b"", bytes(64), found[0].states[0], found[0].states[0]]
    assert pine.judge([good.ctx] * 6, states, [f.told for f in found]).tolist() == [True, False, False, False, True, True]


def test_seeds_of_other_lengths_and_rows_of_other_shapes_are_refused_at_the_party() -> None:
    pine = Pine(shape(), 2)
    row, nonce, seed, own = np.zeros(32, np.int64), bytes(16), bytes(pine.seed_bytes), bytes(pine.own_bytes)
    pine.shard(b"", row, nonce, [seed], own)
    for wrong in (
        (row[:-1], nonce, [seed], own),
        (row, nonce[:-1], [seed], own),
        (row, nonce, [seed, seed], own),
        (row, nonce, [seed[:-1]], own),
        (row, nonce, [seed], own + b"\0"),
    ):
        with pytest.raises(SettingsInvalid):
            pine.shard(b"", *wrong)
    for settings in ({"shares": 1}, {"shares": 256}, {"proofs": 0}, {"proofs_norm": 256}):
        with pytest.raises(SettingsInvalid):
            Pine(shape(), **settings)


# how large the field must be


def test_the_largest_bound_of_the_field_follows_from_the_derived_rule() -> None:
    largest = math.floor((2**28 - 1) / 8.7) ** 2
    assert 128 * (2**28) ** 2 <= Q < 128 * (2**29) ** 2
    assert 2**49.7 < largest < 2**49.8
    for bound2 in (1, 2**40, 2**49, largest):
        assert 128 * shape(bound2=bound2).reach ** 2 <= Q
    for bound2 in (math.ceil(2**28 / 8.7) ** 2, 2**50, 2**58, 2**63):
        with pytest.raises(SettingsInvalid, match="wrap"):
            shape(bound2=bound2)
    assert PineShape(Field128(), 4, 2**58).reach == 2**33


def test_a_dot_product_may_reach_alpha_times_the_norm() -> None:
    for bound2 in (1, 2, 10, 2**20, 2**40 + 1):
        s = shape(bound2=bound2)
        assert s.reach >= math.ceil(8.7 * math.sqrt(bound2)) + 1 > s.reach // 2
        assert 2 ** (s.check_bits - 1) < 2 * s.reach <= 2**s.check_bits


def test_the_reference_rule_lets_a_row_of_eight_times_the_bound_through() -> None:
    """R = 2^29: four numbers whose squares sum to q + 12 345 claim 12 345, and no dot product leaves the interval."""
    unsound = shape(4, 2**58, as_drafted=True)
    assert squared_norm(WRAPPED) == Q + 12_345 > 63 * 2**58
    pine, liar = Pine(unsound, 2), ClaimsModuloQ(unsound, 2)
    reports = [report(pine, WRAPPED, 2, i, maker=liar) for i in range(20)]
    assert accepted(pine, reports).all()
    with pytest.raises(SettingsInvalid):
        shape(4, 2**58)


@pytest.mark.parametrize("bound2", [2**40, 2**49])
def test_under_the_derived_rule_the_same_row_is_refused(bound2: int) -> None:
    pine, liar = Pine(shape(4, bound2), 2), ClaimsModuloQ(shape(4, bound2), 2)
    assert not accepted(pine, [report(pine, WRAPPED, 2, i, maker=liar) for i in range(10)]).any()


@pytest.mark.parametrize(
    "row",
    [[1], [1, 1], [1] * 4, [1] * 16, [1] * 256, [1] + [0.05] * 256, list(0.7 ** np.arange(30))],
    ids=lambda row: str(len(row)),
)
def test_one_check_lets_a_wrapped_row_pass_at_most_half_of_the_time(row: list[float]) -> None:
    """Real signs, rows of squared norm q, and the widest interval that the rule admits: W = 2^28, a little wider even."""
    x = np.array(row) * math.sqrt(Q / np.dot(row, row))
    n = 40_000
    signs = np.concatenate([block for _, block in sign_blocks(Shake128(b"pass rate"), n, len(x))], axis=1)
    y = signs @ x.astype(np.float64)
    y -= np.rint(y / Q) * Q
    passed = np.mean(np.abs(y) <= math.sqrt(Q / 128))
    assert passed < 0.5 + 4.5 * 0.5 / math.sqrt(n)


def test_few_checks_let_a_wrapped_row_through_as_often_as_stated() -> None:
    """One coordinate that is a root of 2 in the field claims a squared norm of 2: its dot product is 0 half of the time."""
    root = 2**40 - 2**24 - 2**8
    assert root * root % Q == 2
    n = 200
    for checks in (1, 3):
        s = shape(4, R * R, checks=checks)
        pine, liar = Pine(s, 2, proofs=2), ClaimsModuloQ(s, 2, proofs=2)
        reports = [report(pine, [root, 0, 0, 0], 2, i, maker=liar) for i in range(n)]
        p = 0.5**checks
        assert abs(accepted(pine, reports).sum() - n * p) < 4.5 * math.sqrt(n * p * (1 - p))
