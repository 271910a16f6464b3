"""Fully linear proofs: a shared row satisfies a circuit, checked by linear questions to shares of row and proof.

A circuit is made of calls of one gadget (of degree 2) whose inputs are affine in the row, and of affine combinations of row
and outputs that must be zero. A gadget's j-th wire is a polynomial: random at w^0, the k-th call's j-th input at w^k.

    prove    wire values at w^0, and the polynomial gadget(wires) at the first 2p - 1 of the 2p-th roots, p > calls
    query    [combined outputs; every wire at t; gadget polynomial at t]      linear, so made of shares alone
    decide   the outputs are zero, and gadget(wires at t) = polynomial at t   on the sum of all shares

Of the polynomial's values at the 2p-th roots, every second is the gadget of the inputs themselves; the others need the wires
between the roots (`transforms.between`). At t all is a sum of products with `lagrange` coefficients. The polynomial's degree is
below 2p - 1, so its last value follows, f(w^-1) = -w sum_k f(w^k) w^k, and is not sent.

Soundness error of one proof: 2 (p - 1) / (q - 2p), and what the combination of outputs adds.
Every function takes leading axes: reports, then proofs.

Source   : Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai 2019, theorem 4.3; VDAF (draft-irtf-cfrg-vdaf-20), section 7.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from hedgerow.core.arrays import Array

from .field import Field
from .transforms import between, is_root, lagrange, nodes, ntt, powers

Basis = Literal["values", "coefficients"]


@dataclass(frozen=True)
class Gadget:
    """A function of degree 2 that a circuit calls.

    Parameters
    ----------
    kind : str
        "products": sum of x0 x1 + x2 x3 + ..; "squares": sum of squares; "bit": x^2 - x.
    arity, calls : int
        Inputs of a call, and how often it is called.
    """

    kind: Literal["products", "squares", "bit"]
    arity: int
    calls: int

    @property
    def nodes(self) -> int:
        """p, the least power of two above the number of calls."""
        return 1 << self.calls.bit_length()

    @property
    def sent(self) -> int:
        """Values of the gadget polynomial in a proof."""
        return 2 * self.nodes - 1

    def of(self, field: Field, wires: Array) -> Array:
        """Return the gadget of inputs, shape (..., arity), as shape (...)."""
        if self.kind == "products":
            return field.sum(field.mul(wires[..., 0::2], wires[..., 1::2]))
        square = field.mul(wires, wires)
        return field.sum(square) if self.kind == "squares" else field.sub(square, wires)[..., 0]


class Circuit(Protocol):
    """What is proved of a shared row.

    field     of its numbers
    size      numbers of the row that it reads, bits and claims included
    joint     numbers of joint randomness
    outs      affine combinations that must be zero
    gadgets   whose calls it makes
    """

    @property
    def field(self) -> Field: ...
    @property
    def size(self) -> int: ...
    @property
    def joint(self) -> int: ...
    @property
    def outs(self) -> int: ...
    @property
    def gadgets(self) -> tuple[Gadget, ...]: ...

    def inputs(self, row: Array, joint: Array, shares: int) -> list[Array]:
        """Return every gadget's inputs, shape (..., calls, arity), from the row or from one of `shares` shares of it."""
        ...

    def outputs(self, values: list[Array], row: Array, joint: Array, shares: int) -> Array:
        """Return what must be zero, shape (..., outs), given every gadget's outputs, shape (..., calls)."""
        ...


class Flp:
    """Proofs of one circuit.

    Parameters
    ----------
    circuit : Circuit
    basis : "values" or "coefficients"
        How the gadget polynomial travels; coefficients are VDAF's before draft 14.
    """

    def __init__(self, circuit: Circuit, basis: Basis = "values") -> None:
        self.circuit, self.field, self.basis = circuit, circuit.field, basis
        gadgets = circuit.gadgets
        self.combined = circuit.outs if circuit.outs > 1 else 0
        self.prove_size = sum(gadget.arity for gadget in gadgets)
        self.query_size = len(gadgets) + self.combined
        self.proof_size = sum(gadget.arity + gadget.sent for gadget in gadgets)
        self.verifier_size = 1 + sum(gadget.arity + 1 for gadget in gadgets)

    def _wires(self, gadget: Gadget, seeds: Array, inputs: Array) -> Array:
        """Return wire values at the p-th roots, shape (..., p, arity)."""
        lead = np.broadcast_shapes(seeds.shape[:-1], inputs.shape[:-2])
        wires = self.field.zeros((*lead, gadget.nodes, gadget.arity))
        wires[..., 0, :] = seeds
        wires[..., 1 : gadget.calls + 1, :] = inputs
        return wires

    def prove(self, row: Array, random: Array, joint: Array) -> Array:
        """Return the proof, shape (..., proof_size), of a row of shape (..., size); `random` has shape (..., prove_size)."""
        field, at = self.field, 0
        parts: list[Array] = []
        for gadget, inputs in zip(self.circuit.gadgets, self.circuit.inputs(row, joint, 1), strict=True):
            seeds = random[..., at : at + gadget.arity]
            at += gadget.arity
            wires = self._wires(gadget, seeds, inputs)
            values = np.empty((*wires.shape[:-2], 2 * gadget.nodes), field.dtype)
            values[..., 0::2] = gadget.of(field, wires)
            values[..., 1::2] = gadget.of(field, between(field, wires))
            sent = values if self.basis == "values" else ntt(field, values, inverse=True)
            parts += [seeds, sent[..., : gadget.sent]]
        return np.concatenate(parts, axis=-1)

    def points(self, random: Array) -> Array:
        """Return the points t, shape (..., gadgets), among the query randomness."""
        return random[..., self.combined :]

    def lawful(self, random: Array) -> Array:
        """Whether no point is a root of unity, at which a wire's value would be a share of the row; shape (...)."""
        gadgets, points = self.circuit.gadgets, self.points(random)
        found = [~is_root(self.field, 2 * gadget.nodes, points[..., i]) for i, gadget in enumerate(gadgets)]
        return np.asarray(np.stack(found).all(axis=0))

    def query(self, row: Array, proof: Array, random: Array, joint: Array, shares: int) -> Array:
        """Return a share of the verifier, shape (..., verifier_size), of a share of row and proof.

        `random`, shape (..., query_size), must be `lawful`, unknown to who proves, and the same for all shares.
        """
        field, at = self.field, 0
        points = self.points(random)
        parts: list[Array] = []
        outputs: list[Array] = []
        for i, (gadget, inputs) in enumerate(zip(self.circuit.gadgets, self.circuit.inputs(row, joint, shares), strict=True)):
            t = points[..., i]
            seeds = proof[..., at : at + gadget.arity]
            sent = proof[..., at + gadget.arity : at + gadget.arity + gadget.sent]
            at += gadget.arity + gadget.sent
            wires = self._wires(gadget, seeds, inputs)
            values, at_t = self._polynomial(gadget, sent, t)
            outputs.append(values)
            parts += [field.product(lagrange(field, gadget.nodes, t)[..., None, :], wires)[..., 0, :], at_t[..., None]]
        out = self.circuit.outputs(outputs, row, joint, shares)
        combined = field.sum(field.mul(random[..., : self.combined], out))[..., None] if self.combined else out
        return np.concatenate([combined, *parts], axis=-1)

    def _polynomial(self, gadget: Gadget, sent: Array, t: Array) -> tuple[Array, Array]:
        """Return a gadget polynomial's values at the calls, shape (..., calls), and at t, shape (...)."""
        field, n = self.field, 2 * gadget.nodes
        if self.basis == "coefficients":
            padded = field.zeros((*sent.shape[:-1], n))
            padded[..., :-1] = sent
            values = ntt(field, padded)
            factors = powers(field, t, n - 1)
        else:
            values, c, w = sent, lagrange(field, n, t), nodes(field, n)
            last = field.mul(c[..., -1:], w[1:])  # f(w^-1) c[-1] is spread over the values that were sent
            factors = field.sub(c[..., :-1], last)
        return values[..., 2 : 2 * gadget.calls + 1 : 2], field.sum(field.mul(sent, factors))

    def decide(self, verifier: Array) -> Array:
        """Whether verifiers, shape (..., verifier_size), the sums of all shares, are those of true statements; shape (...)."""
        at, sound = 1, np.asarray(verifier[..., 0] == 0, bool)
        for gadget in self.circuit.gadgets:
            value = gadget.of(self.field, verifier[..., at : at + gadget.arity])
            sound = sound & np.asarray(value == verifier[..., at + gadget.arity], bool)
            at += gadget.arity + 1
        return sound


def padded(field: Field, a: Array, n: int) -> Array:
    """Return a with zeros up to a multiple of n along its last axis."""
    missing = -a.shape[-1] % n
    return np.concatenate([a, field.zeros((*a.shape[:-1], missing))], axis=-1) if missing else a


def chunk_of(n: int, words: int) -> int:
    """Return into how large chunks n numbers go for the shortest proof; `words` inputs to a number.

    A chunk is one call, and calls number one less than a power of two, so that no value of the polynomial is wasted. There are
    at most 255, since a party's work grows with them.
    """
    sizes = ((words * -(-n // calls) + 2 * (calls + 1), -(-n // calls)) for calls in (2**k - 1 for k in range(1, 9)))
    return int(min(sizes)[1])
