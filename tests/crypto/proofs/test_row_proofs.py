"""Proofs of bounds as a protocol uses them: true rows pass and add up, false ones do not, and a batch hides no difference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from proof_driver import accepted, report, round_of, verified

from hedgerow.crypto.proofs import RowProof, l1_proof, l2_proof, one_hot_proof, range_proof
from hedgerow.crypto.proofs.bounded import Prio3Rows
from hedgerow.crypto.proofs.circuits import BoundedSum, Multihot
from hedgerow.crypto.proofs.field64 import Field64
from hedgerow.crypto.proofs.norm_bits import NormBits
from hedgerow.crypto.proofs.pine import Pine
from hedgerow.errors import KeyInvalid, MessageRefused, RangeExceeded, SettingsInvalid

F = Field64()
Q = F.modulus

CASES: dict[str, tuple[Any, list[list[int]], list[list[int]]]] = {
    "l1": (
        lambda k: l1_proof(4, 50, k),
        [[0, 0, 0, 0], [50, 0, 0, 0], [20, 10, 20, 0], [1, 2, 3, 4]],
        [[50, 1, 0, 0], [20, 10, 20, 1], [50, 50, 50, 50]],
    ),
    "one hot": (
        lambda k: one_hot_proof(5, k),
        [[1, 0, 0, 0, 0], [0, 0, 0, 0, 1]],
        [[0, 0, 0, 0, 0], [1, 0, 0, 1, 0], [2, 0, 0, 0, -1], [0, 1, 1, -1, 0], [5, -4, 0, 0, 0]],
    ),
    "range": (lambda k: range_proof(3, -7, 12, k), [[-7, 12, 0], [0, 0, 0], [1, -1, 5]], []),
    "positive range": (lambda k: range_proof(3, 100, 101, k), [[100, 101, 100]], []),
    "l2 by bits": (
        lambda k: l2_proof(4, 100, k),
        [[10, 0, 0, 0], [0, 0, 0, -10], [5, -5, 5, -5], [0, 0, 0, 0], [-6, 8, 0, 0]],
        [[10, 1, 0, 0], [5, -5, 5, -6], [10, 10, -10, 10]],
    ),
    "l2": (lambda k: l2_proof(600, 4, k), [[2] + [0] * 599, [1, -1] * 2 + [0] * 596], [[2, 1] + [0] * 598, [1] * 600]),
    "a sum": (lambda k: Prio3Rows(BoundedSum(F, 9), k), [[0], [9], [4]], []),
    "some hot": (lambda k: Prio3Rows(Multihot(F, 4, 2), k), [[0, 0, 0, 0], [1, 0, 0, 1]], [[1, 1, 1, 0], [2, 0, 0, 0]]),
}
EACH = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))


@pytest.mark.parametrize("shares", [2, 3, 5])
@EACH
def test_true_rows_pass_with_their_shares_adding_up_and_false_ones_do_not(case: Any, shares: int) -> None:
    make, good, bad = case
    proof: RowProof = make(shares)
    reports = [report(proof, row, shares, i) for i, row in enumerate([*good, *bad])]
    ok, total = round_of(proof, reports)
    assert ok.tolist() == [True] * len(good) + [False] * len(bad)
    assert total[: len(good)].tolist() == good


@EACH
def test_sizes_are_those_that_are_named(case: Any) -> None:
    proof: RowProof = case[0](3)
    one = report(proof, case[1][0], 3, 1)
    assert proof.size == len(case[1][0])
    assert (len(one.public), len(one.letters[0])) == (proof.public_bytes, proof.leader_bytes)
    assert {len(verified(proof, [one], j).told[0]) for j in range(3)} == {proof.told_bytes}


@EACH
def test_a_batch_is_to_the_byte_what_its_reports_are_one_by_one(case: Any) -> None:
    proof: RowProof = case[0](2)
    given = [*case[1], *case[2]] * 3
    reports = [report(proof, row, 2, i, ctx=b"party %d" % i) for i, row in enumerate(given)]
    reports[1] = reports[1].with_letter(0, reports[1].letters[0][:-1])
    for j in (0, 1):
        together = verified(proof, reports, j)
        for i, one in enumerate(reports):
            alone = verified(proof, [one], j)
            assert (alone.told[0], alone.states[0]) == (together.told[i], together.states[i])
            assert np.array_equal(alone.shares[0], together.shares[i])


@EACH
def test_every_change_of_what_travels_is_refused(case: Any) -> None:
    proof: RowProof = case[0](2)
    good = report(proof, case[1][0], 2, 7)
    leader, q = good.letters[0], Q.to_bytes(8, "little")
    first = (int.from_bytes(leader[:8], "little") + 1) % Q
    bad = [
        good.with_letter(0, q + leader[8:]),
        good.with_letter(0, b"\xff" * 8 + leader[8:]),
        good.with_letter(0, first.to_bytes(8, "little") + leader[8:]),
        good.with_letter(0, leader[:-1]),
        good.with_letter(0, leader + b"\0"),
        good.with_letter(0, leader[:-1] + bytes([leader[-1] ^ 1])),
        good.with_letter(1, good.letters[1][:-1]),
        good.with_letter(1, bytes(len(good.letters[1]))),
        good.changed(ctx=good.ctx + b"z"),
        good.changed(nonce=good.nonce + b"\0"),
        good.changed(public=good.public + b"\0"),
    ]
    if proof.public_bytes:
        bad.append(good.changed(public=bytes([good.public[0] ^ 1]) + good.public[1:]))
        bad.append(good.changed(nonce=bytes(16)))
    assert accepted(proof, [good, *bad, good]).tolist() == [True, *[False] * len(bad), True]


@EACH
def test_a_malformed_letter_leaves_nothing_in_the_sums(case: Any) -> None:
    """The shift of ranges must not reach a refused row either."""
    proof: RowProof = case[0](2)
    good = report(proof, case[1][0], 2, 7)
    found = verified(proof, [good, good.with_letter(0, b""), good], 0)
    assert [state is None for state in found.states] == [False, True, False]
    assert not found.shares[1].any()
    assert found.told[1] == b""


def test_descriptions_tell_proofs_apart() -> None:
    proofs: list[RowProof] = [make(2) for make, _, _ in CASES.values()]
    proofs += [l1_proof(4, 50, 3), l1_proof(4, 51, 2), l1_proof(5, 50, 2), range_proof(3, -6, 13, 2), range_proof(3, -7, 13, 2)]
    proofs += [l2_proof(4, 101, 2), l2_proof(600, 5, 2), l2_proof(601, 4, 2), Prio3Rows(BoundedSum(F, 9), 2, proofs=2)]
    found = [proof.describe() for proof in proofs]
    assert len(set(found)) == len(found)
    assert l1_proof(4, 50, 2).describe() == l1_proof(4, 50, 2).describe()


def test_a_row_that_no_bits_stand_for_is_not_shared() -> None:
    draw = bytes
    for proof, row in (
        (l1_proof(2, 10, 2), [11, 0]),
        (l1_proof(2, 10, 2), [-1, 0]),
        (range_proof(2, -3, 3, 2), [4, 0]),
        (range_proof(2, -3, 3, 2), [0, -4]),
        (l2_proof(2, 100, 2), [11, 0]),
    ):
        with pytest.raises(RangeExceeded):
            proof.shard(b"", np.array(row), draw(16), [draw(proof.seed_bytes)], draw(proof.own_bytes))
    with pytest.raises(SettingsInvalid, match="shape"):
        one_hot_proof(3, 2).shard(b"", np.array([1, 0]), draw(16), [draw(64)], draw(64))


def test_the_shorter_proof_of_a_norm_is_taken_and_none_where_both_would_wrap_around() -> None:
    assert isinstance(l2_proof(1000, 2**40, 2), Pine)
    assert isinstance(l2_proof(100, 2**40, 2).circuit, NormBits)  # type: ignore[attr-defined]
    assert isinstance(l2_proof(4, 2**60, 2).circuit, NormBits)  # type: ignore[attr-defined]
    with pytest.raises(SettingsInvalid, match="wrap"):
        l2_proof(1000, 2**58, 2)
    for length in (50, 150, 200, 400):
        proof = l2_proof(length, 2**40, 2)
        other = Pine(proof.shape, 2) if isinstance(proof, Pine) else proof
        assert proof.leader_bytes <= other.leader_bytes


def test_a_norm_by_bits_at_the_largest_bounds() -> None:
    """64 bits are nearly used up: 4 numbers of up to 2^30."""
    proof = l2_proof(4, 2**60, 2)
    given = [[2**30, 0, 0, 0], [-(2**29)] * 4, [0, 0, 0, -(2**30)]]
    ok, total = round_of(proof, [report(proof, row, 2, i) for i, row in enumerate(given)])
    assert ok.all()
    assert total.tolist() == given
    assert not accepted(proof, [report(proof, [2**30, 1, 0, 0], 2, 9), report(proof, [2**30] * 4, 2, 9)]).any()


def test_ranges_and_counts_that_make_no_sense_are_refused() -> None:
    for make in (
        lambda: range_proof(3, 5, 5, 2),
        lambda: range_proof(3, 5, 4, 2),
        lambda: l1_proof(0, 5, 2),
        lambda: l2_proof(3, 0, 2),
    ):
        with pytest.raises(SettingsInvalid):
            make()


def test_fewer_than_three_proofs_are_refused_where_a_party_could_search_for_lucky_ones() -> None:
    for proofs in (1, 2):
        Prio3Rows(BoundedSum(F, 9), 2, proofs=proofs)
        with pytest.raises(SettingsInvalid, match="joint"):
            Prio3Rows(Multihot(F, 4, 2), 2, proofs=proofs)


def test_a_verification_key_has_the_length_of_a_seed() -> None:
    for proof in (l1_proof(2, 5, 2), l2_proof(600, 4, 2)):
        for key in (b"", bytes(16), bytes(33)):
            with pytest.raises(KeyInvalid):
                proof.verify(key, [], 0, [], [], [])


@pytest.mark.parametrize("proof", [l1_proof(3, 5, 2), l2_proof(40, 4, 2), l2_proof(600, 4, 2)], ids=["l1", "bits", "pine"])
def test_no_letter_whatever_raises_for_the_batch(proof: RowProof) -> None:
    """Random lengths and bytes in every place, and cuts and extensions of a good letter; the good reports around them stay."""
    rng = np.random.default_rng(8)
    good = report(proof, [1] + [0] * (proof.size - 1), 2, 3)
    bad = []
    for _ in range(60):
        noise = rng.bytes(int(rng.integers(0, 200)))
        cut = good.letters[0][: int(rng.integers(0, proof.leader_bytes))]
        bad += [
            good.changed(nonce=noise[:40]),
            good.changed(public=noise),
            good.with_letter(0, noise),
            good.with_letter(0, cut),
            good.with_letter(0, cut + rng.bytes(proof.leader_bytes - len(cut))),
            good.with_letter(1, noise),
            good.with_letter(1, rng.bytes(proof.seed_bytes)),
        ]
    bad = [one for one in bad if one != good]
    ok = accepted(proof, [good, *bad, good])
    assert ok.tolist() == [True, *[False] * len(bad), True]
    found = [verified(proof, [good] * 60, j) for j in (0, 1)]
    told = [rng.bytes(int(rng.integers(0, 2 * proof.told_bytes))) for _ in range(59)]
    judged = proof.judge([good.ctx] * 60, found[0].states, [found[0].told, [found[1].told[0], *told]])
    assert judged.tolist() == [True] + [False] * 59


def test_a_judgement_waits_for_all_aggregators() -> None:
    for proof in (l1_proof(2, 5, 2), l2_proof(600, 4, 2)):
        row = [1, 0] + [0] * (proof.size - 2)
        one = report(proof, row, 2, 1)
        found = [verified(proof, [one], j) for j in (0, 1)]
        for tolds in ([found[0].told], [found[0].told, []], [f.told for f in found] + [found[0].told]):
            with pytest.raises(MessageRefused):
                proof.judge([one.ctx], found[0].states, tolds)


def test_no_reports_are_a_batch_too() -> None:
    for proof in (l1_proof(2, 5, 2), l2_proof(600, 4, 2)):
        found = proof.verify(bytes(32), [], 0, [], [], [])
        assert found.shares.shape == (0, proof.size)
        assert proof.judge([], [], [[], []]).shape == (0,)


def test_one_aggregators_shares_alone_are_uniform() -> None:
    """Words of both aggregators' shares of one row, in four parts of the field: as many as chance allows."""
    proof = l2_proof(600, 4, 2)
    reports = [report(proof, [2] + [0] * 599, 2, seed) for seed in range(20)]
    for j in (0, 1):
        words = verified(proof, reports, j).shares.reshape(-1)
        counts = np.histogram(words.astype(float), bins=4, range=(0, float(Q)))[0]
        expected = len(words) / 4
        assert ((counts - expected) ** 2 / expected).sum() < 21.1  # chi-squared, 3 degrees of freedom, 1e-4
