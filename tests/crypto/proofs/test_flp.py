"""Fully linear proofs: complete, sound as stated in a small field, and the same in batches as one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hedgerow.crypto.proofs.circuits import (
    BoundedSum,
    Count,
    Histogram,
    L1BoundSum,
    Multihot,
    RowCircuit,
    SumVec,
    bits,
    weights,
)
from hedgerow.crypto.proofs.field import Field, Field128
from hedgerow.crypto.proofs.field64 import Field64
from hedgerow.crypto.proofs.flp import Flp, chunk_of
from hedgerow.crypto.proofs.norm_bits import NormBits
from hedgerow.crypto.proofs.transforms import nodes, root_of_unity
from hedgerow.errors import SettingsInvalid


class SmallField(Field):
    """q = 12 289, in which a proof's soundness error is large enough to be counted."""

    modulus = 12289
    size = 2
    adicity = 12
    root = pow(11, 3, 12289)
    dtype = np.int64


f64, f128, small = Field64(), Field128(), SmallField()
CASES: list[tuple[Any, Any, Any]] = [
    (lambda f: Count(f), 1, 2),
    (lambda f: BoundedSum(f, 10), 10, None),
    (lambda f: SumVec(f, 5, 100), [0, 100, 63, 64, 37], None),
    (lambda f: SumVec(f, 5, 1, 2), [0, 1, 1, 0, 1], None),
    (lambda f: L1BoundSum(f, 4, 20), [1, 2, 17, 0], [1, 2, 17, 1]),
    (lambda f: Histogram(f, 7), 3, [0, 0, 1, 0, 1, 0, 0]),
    (lambda f: Histogram(f, 7), [0, 0, 0, 0, 0, 0, 1], [0] * 7),
    (lambda f: Multihot(f, 6, 3), [1, 0, 1, 0, 0, 1], [1, 1, 1, 0, 0, 1]),
    (lambda f: NormBits(f, 3, 50), np.array([7, 0, -1]) + 7, np.array([7, 1, -1]) + 7),
]


def drawn(field: Field, rng: np.random.Generator, *shape: int) -> np.ndarray:
    return field.of(rng.integers(0, min(field.modulus, 2**63), shape).astype(object))


def verifier(flp: Flp, row: np.ndarray, rng: np.random.Generator, proof: Any = None, shares: int = 2) -> np.ndarray:
    """Proofs of encoded rows, shared among some, and the sum of all shares of the verifier."""
    field, lead = flp.field, row.shape[:-1]
    joint = drawn(field, rng, *lead, flp.circuit.joint)
    if proof is None:
        proof = flp.prove(row, drawn(field, rng, *lead, flp.prove_size), joint)
    query = drawn(field, rng, *lead, flp.query_size)
    assert flp.lawful(query).all()
    rows, proofs = (
        [drawn(field, rng, *row.shape) for _ in range(shares - 1)],
        [drawn(field, rng, *proof.shape) for _ in range(shares - 1)],
    )
    for first, others in ((row, rows), (proof, proofs)):
        rest = first
        for other in others:
            rest = field.sub(rest, other)
        others.append(rest)
    total = field.zeros((*lead, flp.verifier_size))
    for r, p in zip(rows, proofs, strict=True):
        total = field.add(total, flp.query(r, p, query, joint, shares))
    return total


@pytest.mark.parametrize("basis", ["values", "coefficients"])
@pytest.mark.parametrize("field", [f64, f128], ids=repr)
@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case[0](f64)).split("(")[0])
def test_true_rows_are_proved_and_false_ones_are_not(case: Any, field: Field, basis: Any) -> None:
    make, good, bad = case
    circuit: RowCircuit = make(field)
    flp, rng = Flp(circuit, basis), np.random.default_rng(3)
    for shares in (1, 2, 3):
        assert flp.decide(verifier(flp, circuit.encode(good), rng, shares=shares))
        if bad is not None:
            assert not flp.decide(verifier(flp, circuit.encode(bad), rng, shares=shares))


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case[0](f64)).split("(")[0])
def test_what_is_encoded_is_the_row(case: Any) -> None:
    circuit: RowCircuit = case[0](f64)
    encoded = circuit.encode(case[1])
    assert encoded.shape == (circuit.size,)
    row = case[1] if np.ndim(case[1]) or circuit.length == 1 else np.arange(circuit.length) == case[1]
    assert np.array_equal(f64.centred(circuit.truncate(encoded)), np.reshape(row, circuit.length).astype(np.int64))


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case[0](f64)).split("(")[0])
def test_a_number_of_an_encoded_row_or_of_a_proof_that_is_changed_is_found(case: Any) -> None:
    """Each number in its turn, all as one batch; SHAKE is not needed for that."""
    circuit: RowCircuit = case[0](f64)
    flp, rng = Flp(circuit), np.random.default_rng(4)
    good = circuit.encode(case[1])
    rows = np.repeat(good[None], circuit.size, axis=0)
    rows[np.arange(circuit.size), np.arange(circuit.size)] = 2  # no bit, and no square that fits
    assert not flp.decide(verifier(flp, rows, rng)).any()
    joint = drawn(f64, rng, circuit.joint)
    proof = flp.prove(good, drawn(f64, rng, flp.prove_size), joint)
    query = drawn(f64, rng, flp.query_size)
    assert flp.decide(flp.query(good, proof, query, joint, 1))
    proofs = f64.add(np.repeat(proof[None], flp.proof_size, axis=0), np.eye(flp.proof_size, dtype=np.uint64))
    assert not flp.decide(flp.query(good[None], proofs, query[None], joint[None], 1)).any()


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case[0](f64)).split("(")[0])
def test_a_batch_is_what_its_rows_are_one_by_one(case: Any) -> None:
    circuit: RowCircuit = case[0](f64)
    flp, rng = Flp(circuit), np.random.default_rng(5)
    rows = np.stack([circuit.encode(case[1]), drawn(f64, rng, circuit.size)])[:, None]
    random, joint = drawn(f64, rng, 2, 3, flp.prove_size), drawn(f64, rng, 2, 3, circuit.joint)
    query = drawn(f64, rng, 2, 3, flp.query_size)
    proofs = flp.prove(rows, random, joint)
    verifiers = flp.query(rows, proofs, query, joint, 2)
    assert verifiers.shape == (2, 3, flp.verifier_size)
    for i in range(2):
        for j in range(3):
            alone = flp.prove(rows[i, 0], random[i, j], joint[i, j])
            assert np.array_equal(alone, proofs[i, j])
            assert np.array_equal(flp.query(rows[i, 0], alone, query[i, j], joint[i, j], 2), verifiers[i, j])
            assert flp.decide(verifiers)[i, j] == flp.decide(verifiers[i, j])


def test_points_that_are_roots_of_unity_are_unlawful() -> None:
    circuit = SumVec(f64, 4, 3, 2)
    flp = Flp(circuit)
    gadget = circuit.gadgets[0]
    roots = nodes(f64, 2 * gadget.nodes)
    assert not flp.lawful(roots[:, None]).any()
    assert flp.lawful(f64.add(roots, f64.constant(1))[:, None][2:]).all()
    with_combination = Flp(Histogram(f64, 4, 2))
    assert with_combination.query_size == 3
    assert with_combination.lawful(f64.of([1, 1, 5]))
    assert not with_combination.lawful(f64.of([5, 5, 1]))


@pytest.mark.parametrize("most", [1, 2, 3, 7, 8, 10, 240, 2**20 - 1, 2**62 + 5])
def test_bits_with_their_weights_stand_for_every_number_up_to_the_largest_and_for_no_other(most: int) -> None:
    w = weights(most)
    assert sum(w) == most
    assert len(w) == most.bit_length()
    values = sorted({0, 1, most // 2, most // 2 + 1, most - 1, most})
    found = bits(f64, np.array(values, object), most)
    assert set(np.unique(found).tolist()) <= {0, 1}
    assert [sum(int(b) * v for b, v in zip(row, w, strict=True)) for row in found] == values
    if most <= 240:
        every = {sum(v for i, v in enumerate(w) if k >> i & 1) for k in range(1 << len(w))}
        assert every == set(range(most + 1))


def test_sizes_that_are_no_whole_numbers_from_one_on_are_refused() -> None:
    for make in (lambda: SumVec(f64, 0, 1), lambda: SumVec(f64, 1, 0), lambda: Histogram(f64, -1), lambda: BoundedSum(f64, 0)):
        with pytest.raises(SettingsInvalid):
            make()
    with pytest.raises(SettingsInvalid, match="wrap"):
        NormBits(f64, 5, 2**62)


@pytest.mark.parametrize(("n", "words"), [(1, 2), (100, 2), (3410, 2), (100_000, 1)])
def test_chunks_hold_all_numbers_in_one_call_less_than_a_power_of_two(n: int, words: int) -> None:
    chunk = chunk_of(n, words)
    calls = -(-n // chunk)
    assert chunk * calls >= n
    assert calls <= 255


def forged(flp: Flp, rng: np.random.Generator, trials: int, roots_left: int = 0) -> tuple[int, int]:
    """The best forger of a gadget polynomial: it cancels the circuit's output by a multiple of a polynomial with as many roots
    among lawful points as its degree allows; how many were accepted, and how many were tried.
    """
    field, q, circuit = flp.field, flp.field.modulus, flp.circuit
    gadget = circuit.gadgets[0]
    n, degree = 2 * gadget.nodes, 2 * (gadget.nodes - 1) - roots_left
    w = np.array([pow(root_of_unity(field, n), k, q) for k in range(n)])
    pool = np.setdiff1d(np.arange(1, q), w)
    rows = rng.integers(0, 2, (trials, circuit.size))
    rows[:, 0] = 7
    joint = rng.integers(0, q, (trials, circuit.joint))
    proof = flp.prove(rows, rng.integers(0, q, (trials, flp.prove_size)), joint)
    values = proof[:, gadget.arity :]
    wrong = values[:, 2 : 2 * gadget.calls + 1 : 2].sum(axis=1) % q
    roots = np.sort(rng.integers(0, len(pool), (trials, degree)), axis=1)
    distinct = (np.diff(roots, axis=1) > 0).all(axis=1)
    delta = np.ones((trials, n), np.int64)
    for k in range(degree):
        delta = delta * (w - pool[roots[:, k]][:, None]) % q
    gained = delta[:, 2 : 2 * gadget.calls + 1 : 2].sum(axis=1) % q
    kept = (gained != 0) & distinct
    scale = np.array([-int(e) * pow(int(g), -1, q) % q if g else 0 for e, g in zip(wrong, gained, strict=True)])
    proof[:, gadget.arity :] = (values + (delta * scale[:, None])[:, : gadget.sent]) % q
    query = rng.choice(pool, (trials, 1))
    share, proof_share = rng.integers(0, q, rows.shape), rng.integers(0, q, proof.shape)
    total = field.add(
        flp.query(field.sub(rows, share), field.sub(proof, proof_share), query, joint, 2),
        flp.query(share, proof_share, query, joint, 2),
    )
    return int((flp.decide(total) & kept).sum()), int(kept.sum())


def test_the_best_forger_of_a_proof_succeeds_as_often_as_stated() -> None:
    """60 bits of which one is 7, in a field of 12 289: roots among points, 30 / 12 257 = 0.00245."""
    flp = Flp(SumVec(small, 60, 1, 4))
    rng, accepted, tried = np.random.default_rng(5), 0, 0
    for _ in range(8):
        a, n = forged(flp, rng, 1500)
        accepted, tried = accepted + a, tried + n
    expected = tried * 30 / (small.modulus - 32)
    assert abs(accepted - expected) < 4 * np.sqrt(expected)
    assert accepted > 0  # the forger is as good as the bound, so the test has power


def test_a_forger_with_no_roots_is_never_lucky() -> None:
    accepted, tried = forged(Flp(SumVec(small, 60, 1, 4)), np.random.default_rng(6), 500, roots_left=30)
    assert tried > 400
    assert accepted == 0
