"""What proofs of bounds do not hold: chances, work, aggregators that lie, keys that leak; each as large as it is stated."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from liars import (
    KEY,
    ClaimsTheBound,
    F,
    Reports,
    Tiny,
    WrapsAround,
    added,
    first_of_proofs,
    letter_about,
    one_root_of_two,
    opposite,
    pine,
    prio3,
    row_of,
    shared,
)
from scipy.stats import binomtest

from hedgerow.crypto.proofs.circuits import Histogram, SumVec
from hedgerow.crypto.proofs.flp import Flp
from hedgerow.crypto.proofs.prio3 import QUERY, SEED
from hedgerow.crypto.proofs.transforms import lagrange, nodes

R = 1 << 20


@pytest.fixture
def dice():
    return np.random.default_rng(21)


def as_stated(found, of, chance):
    return binomtest(int(found), int(of), chance).pvalue > 1e-6


# ---- chances ----------------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("checks", [1, 2, 4, 6])
def test_a_row_that_wraps_around_passes_each_check_with_one_half(dice, checks):
    liar = pine(WrapsAround, checks=checks)
    accepted = shared(liar, [one_root_of_two(16)] * 1000, dice).accepted()
    assert as_stated(accepted.sum(), 1000, 2.0**-checks)
    assert (accepted == (np.array(liar.luck) == checks)).all()


@pytest.mark.slow
def test_a_liar_finds_luck_at_home_so_that_checks_are_a_work_factor(dice):
    """With 8 checks one blind in 2^8 is lucky; its finder knows before sending, and is accepted each time."""
    liar = pine(WrapsAround, checks=8)
    reports = shared(liar, [one_root_of_two(16)] * 3000, dice)
    lucky = np.array(liar.luck) == 8
    assert as_stated(lucky.sum(), 3000, 2.0**-8)
    assert (reports.accepted() == lucky).all()
    assert (reports.accepted(key=bytes(32)) == lucky).all()  # whatever the aggregators' key


@pytest.mark.slow
def test_the_best_forger_of_a_proof_succeeds_as_often_as_its_degree_over_the_field(dice):
    """In a field of 12 289: an error that mends the sum over the calls, with as many roots as its degree allows."""
    flp = Flp(SumVec(Tiny(), 60, 1, 4))
    (gadget,), field, q = flp.circuit.gadgets, flp.field, Tiny.modulus
    n, roots = 2 * gadget.nodes, 2 * (gadget.nodes - 1)
    w = nodes(field, n)
    lawful = np.setdiff1d(np.arange(q), w)
    accepted = tried = 0
    for _ in range(5):
        m = 3000
        x = dice.integers(0, 2, (m, 60))
        x[:, 0] = 7
        joint = dice.integers(0, q, (m, flp.circuit.joint))
        proof = flp.prove(x, dice.integers(0, q, (m, flp.prove_size)), joint)
        values = proof[:, gadget.arity :]
        wrong = values[:, 2 : 2 * gadget.calls + 1 : 2].sum(axis=1) % q
        delta = np.ones(n, np.int64)
        for root in dice.choice(lawful, roots, replace=False):
            delta = delta * ((w - root) % q) % q
        scale = pow(int(delta[2 : 2 * gadget.calls + 1 : 2].sum()), -1, q) * (q - wrong) % q
        proof[:, gadget.arity :] = (values + delta[: gadget.sent] * scale[:, None]) % q
        t = dice.choice(lawful, (m, 1))
        shares = dice.integers(0, q, x.shape), dice.integers(0, q, proof.shape)
        told = flp.query((x - shares[0]) % q, (proof - shares[1]) % q, t, joint, 2)
        told = (told + flp.query(*shares, t, joint, 2)) % q
        accepted += flp.decide(told).sum()
        tried += m
    assert as_stated(accepted, tried, roots / (q - n))


# ---- what a leader learns that shows a helper another public part -----------------------------------------------------------
def consistent(proof, ctx, nonce, letter, told, joints, encoded):
    """Whether what the helper told fits a row, for a leader that holds its letter and knows the helper's joint randomness.

    The helper's wires give its wire seeds if the row is this one; seeds and row give the gadget polynomial at the point, of
    which leader and helper hold shares.
    """
    field, flp, circuit = proof.field, proof.flp, proof.circuit
    (gadget,) = circuit.gadgets
    size = circuit.size
    mine = field.decode(letter[: 8 * size], size)
    proofs = field.decode(letter[8 * size : 8 * (size + flp.proof_size)], flp.proof_size)
    words = field.decode(told[: 8 * flp.verifier_size], flp.verifier_size)
    random = proof.domain.numbers(field, flp.query_size, QUERY, ctx, KEY, b"\1", nonce)
    c = lagrange(field, gadget.nodes, flp.points(random)[0])
    calls = c[1 : gadget.calls + 1, None]
    of_helper = circuit.inputs(field.sub(encoded, mine), joints[1][0], 2)[0]
    seeds = field.sub(words[1 : 1 + gadget.arity], field.sum(field.mul(calls, of_helper), axis=0))  # times c[0]
    own = field.mul(c[:1], proofs[: gadget.arity])
    wires = field.add(field.add(seeds, own), field.sum(field.mul(calls, circuit.inputs(encoded, joints[0][0], 1)[0]), axis=0))
    _, share = flp._polynomial(gadget, proofs[gadget.arity :], flp.points(random)[0])
    return gadget.of(field, wires) == field.add(share, words[1 + gadget.arity])


@pytest.mark.parametrize("shown", ["the party's", "another"])
def test_a_helper_that_is_shown_another_public_part_tells_the_leader_the_row(dice, shown):
    """So the nonce and the public part must reach every aggregator from the party itself, which a tag of the party shows.

    Shown the party's public part, the helper's words fit every row there is; shown another, one row of eight.
    """
    proof = prio3(Histogram(F, 8), proofs=1)
    ctx, nonce, length = b"ctx", bytes(16), proof.xof.seed_bytes
    for place in range(8):
        seed, own = dice.bytes(proof.seed_bytes), dice.bytes(proof.own_bytes)
        public, letter = proof.share(ctx, proof.circuit.encode(place), nonce, [seed], own)
        given = public if shown == "the party's" else bytes(length) + public[length:]
        told = proof.verify_many(KEY, [ctx], 1, [nonce], [given], [seed]).told[0]
        joints = [proof._joint(ctx, proof.domain.joint(SEED, ctx, [p[:length], p[length:]])) for p in (public, given)]
        fits = [bool(consistent(proof, ctx, nonce, letter, told, joints, proof.circuit.encode(i))) for i in range(8)]
        assert fits == ([True] * 8 if shown == "the party's" else [i == place for i in range(8)])


# ---- aggregators that lie, keys that leak -----------------------------------------------------------------------------------
def test_an_aggregator_that_speaks_last_lets_any_row_through(dice):
    """It says minus what the other said: the sum is zero, of which every circuit is satisfied."""
    reports = shared(pine(ClaimsTheBound, d=64), [row_of(64, 100 * R, dice)] * 20, dice)
    assert not reports.accepted().any()
    honest, other = (reports.verified(j) for j in (0, 1))
    said = [opposite(reports.proof, told, own) for told, own in zip(honest.told, other.told, strict=True)]
    assert reports.proof.judge(reports.ctxs, honest.states, [honest.told, said]).all()


def test_one_aggregator_can_refuse_any_row(dice):
    reports = shared(pine(), [row_of(16, R, dice)] * 20, dice)
    honest = reports.verified(0)
    said = [bytes(len(told)) for told in honest.told]
    assert not reports.proof.judge(reports.ctxs, honest.states, [honest.told, said]).any()


def bent(reports, key):
    """Return reports whose norm proofs have an error that vanishes at the points that a key gives."""
    proof, field = reports.proof, reports.proof.field
    (gadget,) = proof.norm.circuit.gadgets
    w = nodes(field, 2 * gadget.nodes)[: gadget.sent]
    at, letters = first_of_proofs(proof) + 8 * gadget.arity, []
    row = reports.total(slice(0, 1))
    missing = proof.shape.bound2 - sum(int(value) ** 2 for value in row)
    for ctx, nonce, letter in zip(reports.ctxs, reports.nonces, reports.letters[0], strict=True):
        counts = bytes([proof.proofs_norm, proof.proofs])
        t = proof.domain.numbers(field, 1, QUERY, ctx, key, counts, nonce)
        delta = field.sub(w, t)
        over_calls = int(field.sum(delta[2 : 2 * gadget.calls + 1 : 2]))
        letters.append(added(proof, letter, at, field.mul(delta, field.of([missing * pow(over_calls, -1, field.modulus)]))))
    return type(reports)(proof, reports.ctxs, reports.nonces, reports.publics, [letters, *reports.letters[1:]])


def test_who_knows_the_verification_key_makes_a_false_norm_true(dice):
    """Five times too long, as long as that leaves the dot products short; under any other key the same letters are refused."""
    honest_to_itself = shared(pine(ClaimsTheBound, d=64), [row_of(64, 5 * R, dice)] * 20, dice)
    assert not honest_to_itself.accepted().any()
    reports = bent(honest_to_itself, KEY)
    assert reports.accepted(KEY).all()
    assert not reports.accepted(bytes(32)).any()


def two_faced(proof, ctx, nonce, dice):
    """Return public part, letter and seed of a row of ones whose public part has a wrong leader's part.

    The helper then uses other joint randomness than the leader. Bits that are all one satisfy every joint randomness, and the
    proof is about what both together will compute.
    """
    field, circuit, length = proof.field, proof.circuit, proof.xof.seed_bytes
    seed, own, wrong = dice.bytes(proof.seed_bytes), dice.bytes(proof.own_bytes), dice.bytes(length)
    ones = field.of(np.ones(circuit.size, np.int64))
    public, letter = proof.share(ctx, ones, nonce, [seed], own)
    public = wrong + public[length:]
    leader, helper = field.decode(letter[: 8 * circuit.size], circuit.size), proof._helper(ctx, 1, seed[:length])[0]
    joints = [
        proof._joint(ctx, proof._seeds(ctx, j, nonce, public, blind, field.encode(share))[1])
        for j, (blind, share) in enumerate(((own[:length], leader), (seed[length:], helper)))
    ]
    inputs = [field.add(a, b) for a, b in zip(*map(circuit.inputs, (leader, helper), joints, (2, 2)), strict=True)]
    kept, proof.flp.circuit = circuit, SimpleNamespace(gadgets=circuit.gadgets, inputs=lambda *_: inputs)
    letter = letter_about(proof, ones, joints[0], ctx, [seed], own)
    proof.flp.circuit = kept
    return public, letter, seed


def test_a_party_can_have_aggregators_disagree_about_its_row(dice):
    """The leader accepts, the helper does not, and neither lied: the rows of a round are those that all of them accept."""
    proof = prio3(SumVec(F, 4, 7))
    nonces = [dice.bytes(16) for _ in range(20)]
    publics, letters, seeds = zip(*(two_faced(proof, b"ctx", nonce, dice) for nonce in nonces), strict=True)
    reports = Reports(proof, [b"ctx"] * 20, nonces, list(publics), [list(letters), list(seeds)])
    assert reports.judged().tolist() == [[True] * 20, [False] * 20]
    assert not reports.accepted().any()
