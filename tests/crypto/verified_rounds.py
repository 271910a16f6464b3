"""What tests of verified shares have in common: rounds, liars at their best, and aggregators that can be watched."""

import secrets

import numpy as np
from hidden_rounds import contributions_of

from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l2
from hedgerow.core.release import Release
from hedgerow.crypto.conversation import drive
from hedgerow.crypto.field_encoding import field_encoding_for
from hedgerow.crypto.keys import AgreementKey
from hedgerow.crypto.proofs.flp import Flp
from hedgerow.crypto.proofs.pine import Pine
from hedgerow.crypto.proofs.pine_circuits import binary
from hedgerow.crypto.proofs.prio3 import PROVE, SEED
from hedgerow.crypto.proofs.signs import squared_norm
from hedgerow.crypto.proved_rows import FIELD, _inner
from hedgerow.crypto.shares import AdditiveShares, ProvingParty, VerifiedServer, VerifyingAggregator
from hedgerow.crypto.shares.derived import proof_context, share_key
from hedgerow.crypto.streams import ZERO_NONCE, mask_bytes

IDS = tuple(f"store {i}" for i in range(12))
LONG = 300
"""Numbers of a row whose shortest proof is PINE; of few numbers it is bits."""


def layout_of(size):
    return Layout((("", (size,)),))


def encoding_of(bound=None, size=LONG, parties=12, k=2, layout=None, **more):
    bound = l2(1.0) if bound is None else bound
    layout = layout or layout_of(size)
    return field_encoding_for(Release(clip=bound, bounds=bound), layout, parties=parties, aggregators=k, **more)


def rows_of(ids, encoding, seed=0):
    """Rows at their bound."""
    rng = np.random.default_rng(seed)
    found = {}
    for id in ids:
        parts = []
        for part in encoding.parts:
            row = rng.standard_normal(part.claim.size)
            norm = {"l2": 2, "l1": 1, "linf": np.inf}[part.claim.norm]
            parts.append(row * part.radius / np.linalg.norm(row, norm) * (1 - 2**-50))
        found[id] = np.concatenate(parts)
    return found


class Watched(VerifyingAggregator):
    """An aggregator that keeps the letters that it was sent, and what it answered."""

    def answer(self, step, letter):
        self.letters = getattr(self, "letters", [])
        self.letters.append((step, letter))
        return super().answer(step, letter)


def watched(k=2, kind=Watched, **how):
    keys = [AgreementKey.fresh() for _ in range(k)]
    publics = [key.public for key in keys]
    return [kind(key, publics, **how) for key in keys]


def letter_of(aggregator, step):
    return [letter for name, letter in aggregator.letters if name == step][-1]


def verified(n=6, k=2, kinds=None, aggregators=None, **options):
    """A server with aggregators, and parties of which some are of other kinds, by their place."""
    settings = AdditiveShares(k, verified=True, **options)
    server = VerifiedServer(settings, IDS[:n], aggregators or watched(k))
    kinds = kinds or {}
    return server, {id: kinds.get(i, ProvingParty)(id, settings, server.keys) for i, id in enumerate(IDS[:n])}


def ask(server, parties, encoding, rows=None, *, given=None, exact=True, noise=b"", **how):
    """One round; of an exact one the total is compared with the rows of those that count, to the unit."""
    rows = rows_of(parties, encoding) if rows is None else rows
    given = given or contributions_of(rows, encoding)
    found = drive(server.total(tuple(parties), encoding, b"model and question", noise=noise), parties, given, **how)
    if exact:
        assert (FIELD.centred(found.total) == steps_of(rows, found.counted, encoding)).all()
    return found


def steps_of(rows, ids, encoding):
    return np.sum([encoding.encode(rows[id]) for id in ids], axis=0)


# ---- liars
class Lying(ProvingParty):
    """A party whose row is a hundred times too long, and whose proof is made by another class of proof."""

    pine = Pine
    factor = 100

    def _shared(self, made_for, nonce, encoding, row):
        proved, steps = encoding.proved, self._row(encoding, row)
        seeds = [mask_bytes(share_key(one, made_for), ZERO_NONCE, proved.seed_bytes) for one in self._bonds[:-1]]
        ctx = proof_context(self._epoch, made_for, self._public)
        kind = self.pine
        own = secrets.token_bytes(proved.own_bytes)
        return proved.shard(ctx, steps, nonce, seeds, own, lambda proof: kind(proof.shape, proof.shares).shard)

    def _row(self, encoding, row):
        return self.factor * encoding.encode(row)


class FalseClaim(Pine):
    """Claims to be at the bound."""

    def claim(self, row):
        return self.shape.bound2


class FatBits(Pine):
    """The whole of v in the first bit, and all of bound - v in another: sums and range hold, the bits are none."""

    def head(self, row):
        s, v = self.shape, squared_norm(row) % FIELD.modulus
        fat = [v, *[0] * (s.norm_bits - 1), (s.bound2 - v) % FIELD.modulus, *[0] * (s.norm_bits - 1)]
        return np.concatenate([FIELD.of(row), FIELD.of(fat)])


class Wraps(Pine):
    """Claims the length that its row has modulo q."""

    def head(self, row):
        s, v = self.shape, squared_norm(row) % FIELD.modulus
        return np.concatenate(
            [FIELD.of(row), binary(FIELD, v, s.norm_bits), binary(FIELD, (s.bound2 - v) % FIELD.modulus, s.norm_bits)]
        )


class HonestBits(Lying):
    pass


class ClaimsTheBound(Lying):
    pine = FalseClaim


class SendsFatBits(Lying):
    pine = FatBits


class WrapsAround(Lying):
    """One number is a root of 2 modulo q, so that the row's squares add up to 2 there."""

    pine = Wraps

    def _row(self, encoding, row):
        found = np.zeros(encoding.size, np.int64)
        found[0] = 2**40 - 2**24 - 2**8
        return found


class Mixed:
    """A circuit whose inputs are those of two aggregators that draw different joint randomness."""

    def __init__(self, circuit, inputs):
        self.circuit, self.made = circuit, inputs

    def __getattr__(self, name):
        return getattr(self.circuit, name)

    def inputs(self, row, joint, shares):
        return self.made


class Divides(ProvingParty):
    """Divides two aggregators: gives the one that opens letters a false part of the other, which replaces it by its own.

    The proof is made for the wires that come of both joint seeds. All bits are ones, so that their products are zero for any
    randomness: one aggregator finds its joint seed confirmed, the other does not.
    """

    def _shared(self, made_for, nonce, encoding, row):
        proved = encoding.proved
        [proof], [secret] = proved.proofs, self._bonds[:-1]
        prio3, circuit, length = proof.prio3, proof.circuit, 32
        ctx = _inner(proof_context(self._epoch, made_for, self._public), 0)
        seed = mask_bytes(share_key(secret, made_for), ZERO_NONCE, proved.seed_bytes)
        helper, of_proof = prio3._helper(ctx, 1, seed[:length])
        encoded = proof.encode(np.full(circuit.length, encoding.parts[0].claim.most))
        assert (encoded == 1).all()
        leader, blind = FIELD.sub(encoded, helper), secrets.token_bytes(length)
        parts = [prio3._part(ctx, 0, blind, nonce, FIELD.encode(leader))]
        parts += [prio3._part(ctx, 1, seed[length:], nonce, FIELD.encode(helper))]
        false = [parts[0], secrets.token_bytes(length)]
        views = [prio3._joint(ctx, prio3.domain.joint(SEED, ctx, seen)) for seen in (false, parts)]
        pair = [circuit.inputs(x[None], joint, 2) for x, joint in zip((leader, helper), views, strict=True)]
        flp = Flp(Mixed(circuit, [FIELD.add(a, b) for a, b in zip(*pair, strict=True)]))
        random = prio3.domain.numbers(FIELD, flp.prove_size * prio3.proofs, PROVE, ctx, blind)
        proofs = flp.prove(encoded[None], random.reshape(prio3.proofs, -1), views[0]).reshape(-1)
        return b"".join(false), FIELD.encode(leader) + FIELD.encode(FIELD.sub(proofs, of_proof)) + blind


LIARS = (HonestBits, ClaimsTheBound, SendsFatBits, WrapsAround)
