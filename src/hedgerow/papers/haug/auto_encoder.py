"""The deep private auto-encoder (Phan, Wang, Wu & Dou 2016), as printed and corrected.

    h = sigmoid(W'x), x~ = sigmoid(W h)                       one layer, W of shape (d, b), tied
    RE(W) = sum over records and visible units j of the cross-entropy of x~_j and x_j
          ~ sum of log 2 + (1/2 - x_j) W_j h + (W_j h)^2 / 8  its Taylor polynomial of order 2 in W_j h

    as printed                                                corrected
    ------------------------------------------------------    ---------------------------------------------------------
    each layer: coefficients (1/2 - x_j) h and h h' / 8       each layer: one noisy matrix of (1, x)(1, x)', l2(1)
      + Lap(D / e), drawn once;  D = d (b + b^2 / 4)            W <- least polynomial, columns of length r, orthogonal
      W <- least, at the units of this W; again
    output: the same polynomial of the labels, D with K       output: least squares on noisy moments of h / |h| (SSP)
      for d

Why they differ: h depends on W, so that the printed coefficients are other functions of the records in each step, while their
noise is drawn once: the difference of two of them is without noise, whatever epsilon is. Once for fixed h the printed constant
is valid in the unit cube, and twice what removing a record needs (`distance`).

What a layer can know: to second order in W the whole objective, h = 1/2 + W'x/4 included, is

    sum over units k of  (1/2) g'W_k + (1/4) W_k' A W_k,  + (n/32) |sum_k W_k|^2
    g = n/2 1 - X'1,   A = (1 (X'1)' + (X'1) 1')/4 - X'X

and so a function of X'X, X'1 and n alone, for any number of hidden units: one question, and no more information than that of
private principal components. With no hidden layer the corrected form is least squares on the records themselves.

Releases : corrected, a matrix (d + 1, d + 1) for each layer, and (b + 1, b + 1 + K) numbers for the output; as printed, exact
           sums of the coefficients, once for each step of a layer, and once for the output.
Unit     : record. As printed none: the ledger says nonprivate.
Source   : Phan et al., AAAI 2016; the constant from memory, since Haug 2022 (section 4.3) prints none. Differs: no pre-training
           beyond these steps, and the output is not tuned together with the layers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import l2
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.data import Schema, Table, load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.level import noise_level
from hedgerow.privacy.shares import BudgetShares, Share

from . import layers
from .forms import Form, checked, claimed, seeded

STEPS = 3
"""Of the printed form, in a layer."""
OUTPUT = 0.6
"""Share of the budget for the output; the layers have the rest."""
TURNS = 30
"""Of the search for orthogonal columns: post-processing."""


@displayed
@dataclass(frozen=True, eq=False)
class AutoEncoderState:
    """A network after a layer.

    Attributes
    ----------
    layers : dict of arrays
        W1 (d, b_1), W2 (b_1, b_2), ...: those that are fitted.
    output : array of shape (m + 1, K)
        Of the labels, with the constant first; empty before it is fitted.
    """

    round: int
    layers: Mapping[str, Array]
    output: Array

    @property
    def weights(self) -> list[Array]:
        """Of the layers, first to last."""
        return layers.layers_in(self.layers)


def distance(visible: int, units: int, form: Literal["printed", "exact", "shared"] = "exact") -> float:
    """How far, in l1, one record moves the coefficients of a layer: x in [0, 1]^d, h in [0, 1]^b.

    printed    d (b + b^2 / 4): doubled, as for records that are replaced
    exact      d (b / 2 + b^2 / 8), attained at x = 0, h = 1
    shared     d b / 2 + b^2 / 8: the quadratic coefficients are those of every visible unit, and asked once
    """
    exact = visible * (units / 2 + units**2 / 8)
    return {"printed": 2 * exact, "exact": exact, "shared": visible * units / 2 + units**2 / 8}[form]


def taylor(W: Array, n: float, sums: Array, products: Array) -> float:
    """The objective of a layer to second order in W (d, b), of n records with sums X'1 (d,) and products X'X (d, d)."""
    g, A, together = _polynomial(n, sums, products), _curvature(sums, products), W.sum(1)
    bent = 0.25 * float(np.sum(W * (A @ W)))
    return n * len(W) * math.log(2) + 0.5 * float((g @ W).sum()) + bent + n / 32 * float(together @ together)


def _polynomial(n: float, sums: Array, products: Array) -> Array:
    g: Array = n / 2 - sums
    return g


def _curvature(sums: Array, products: Array) -> Array:
    one = np.ones(len(sums))
    A: Array = (np.outer(one, sums) + np.outer(sums, one)) / 4 - products
    return A


def orthogonal(n: float, sums: Array, products: Array, units: int, length: float) -> Array:
    """Weights (d, b) with orthogonal columns of a length at which the polynomial is small: a majorised search, no data asked.

    The last part of the polynomial is n b r^2 / 32 for all such columns, and so is left out.
    """
    g, A = _polynomial(n, sums, products), _curvature(sums, products)
    values, vectors = np.linalg.eigh(A)
    W = vectors[:, :units]
    W = length * W * np.where(g @ W > 0, -1.0, 1.0)
    for _ in range(TURNS):  # 1/4 W'AW <= values[-1] |W|^2 / 4 + linear, and |W| is fixed
        left, _, right = np.linalg.svd(values[-1] * W - A @ W - g[:, None], full_matrices=False)
        W = length * left @ right
    found: Array = W.astype(np.float32)
    return found


@local(additive=True)
def coefficients(broadcast: Any, party: Party, rng: Any, *, below: int, labels: int = 0) -> dict[str, Array]:
    """Coefficients of the printed polynomial: `linear` (m, b) sums of (1/2 - t_j) h, `quadratic` (b, b) sums of h h' / 8.

    `t` are the inputs of the layer above the first `below` ones, or labels, one-hot.
    """
    weights = layers.layers_in(broadcast)
    x = layers.hidden(party["cube"], weights[:below]).astype(np.float64)
    h = layers.hidden(party["cube"], weights).astype(np.float64)
    t = (party["label"][:, None] == np.arange(labels)).astype(np.float64) if labels else x
    return {"linear": ((0.5 - t) * party.w[:, None]).T @ h, "quadratic": h.T @ (party.w[:, None] * h) / 8}


def least(linear: Array, quadratic: Array, scale: float) -> Array:
    """For each target the coefficients (m, b) at which a noisy polynomial is least: ridge, and negative eigenvalues dropped."""
    found = np.zeros_like(linear)
    for j, (line, bend) in enumerate(zip(linear, quadratic, strict=True)):
        values, vectors = np.linalg.eigh((bend + bend.T) / 2 + 4 * math.sqrt(2) * scale * np.eye(len(bend)))
        kept = values > 0
        found[j] = -(vectors[:, kept] / (2 * values[kept])) @ (vectors[:, kept].T @ line)
    return found


def claim(settings: Mapping[str, Any]) -> str:
    """What the paper would claim, and why it is not proved."""
    why = "The noise of a layer's coefficients is drawn once, while the hidden units that they are made of change in each step"
    return claimed(settings, why)


def score(settings: Mapping[str, Any], state: AutoEncoderState, schema: Schema, table: Table) -> float:
    """Accuracy on a table."""
    x, label = layers.of_table(table)
    if not state.output.size:
        return float((label == 0).mean())
    h = layers.hidden(x, state.weights)
    read = layers.spread(h) if state.layers and settings["form"] == "corrected" else h
    return float((layers.decided(read, state.output).argmax(1) == label).mean())


def watch(settings: Mapping[str, Any], state: AutoEncoderState, schema: Schema, test: Table | None) -> dict[str, float]:
    """Accuracy on the server's table."""
    return {} if test is None else {"test accuracy": score(settings, state, schema, test)}


@program(
    "A deep auto-encoder by noisy polynomials (Phan et al. 2016), as printed or corrected.",
    claim=claim,
    score=score,
    watch=watch,
    metric=lambda schema: ("accuracy", True),
    case=lambda: Case(load("digits").take(range(120)), {"hidden": [6]}, tolerance=1e-5),
)
def private_auto_encoder(
    federation: Federation,
    *,
    hidden: list[int] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    form: Form = "corrected",
    length: float = 8.0,
    seed: int = 0,
    noise_at: Literal["server", "shares"] = "server",
    least_shares: int = 0,
    start: AutoEncoderState | None = None,
) -> Iterator[AutoEncoderState]:
    """Fit a deep auto-encoder and an output, one layer in a round.

    Parameters
    ----------
    hidden : list of int, optional
        Hidden units of each layer, one layer of 32 by default; an empty list fits the output on the records themselves.
    epsilon, delta : float, optional
        The budget. As printed, epsilon is divided equally over layers and output. None takes the channel's noise.
    form : {"printed", "corrected"}
        What the paper prints, of which nothing is proved, or one noisy matrix for each layer.
    length : float
        Corrected: of a column of weights; how far hidden units leave their linear part.
    seed : int
        As printed: of the first weights and of the noise, which one federation draws anew for each seed.
    noise_at : {"server", "shares"}
        Who adds the noise of a budget.
    least_shares : int
        Of noise in shares: as many parties' shares make the whole noise.
    start : AutoEncoderState, optional
        Continue after this state.

    Yields
    ------
    AutoEncoderState
        After each layer, and after the output.

    Releases
    --------
    As printed, exact sums of coefficients at no finite epsilon; corrected, noisy second moments, once for each layer.

    Raises
    ------
    SettingsInvalid (HR-511), UnlawfulChannel (HR-211), BudgetInvalid (HR-214), SchemaInvalid (HR-409)
    """
    sizes = [32] if hidden is None else list(hidden)
    if any(size < 1 for size in sizes) or length <= 0:
        raise SettingsInvalid(f"hidden is {sizes}, length is {length}.", remedy="Units and lengths are above zero.")
    printed = checked(form, federation, epsilon)
    ready, d, K = layers.at_parties(federation), layers.width(federation.schema), layers.n_classes(federation.schema)
    wide = [b for a, b in pairwise([d, *sizes]) if b > a]
    if wide:
        raise SettingsInvalid(f"hidden is {sizes} of {d} features.", remedy="A layer has at most as many units as it reads.")
    weights, done = ([], 0) if start is None else (start.weights, start.round)
    if printed:
        fit: Any = partial(_printed, ready, K, float(epsilon or 0.0) / (len(sizes) + 1), seed)
    else:
        budget = BudgetShares(epsilon, delta, noise_at, least_shares)
        parts = {str(i): Share((1 - OUTPUT) / len(sizes)) for i in range(len(sizes))}
        parts["output"] = Share(OUTPUT if sizes else 1.0)
        fit = partial(_corrected, budget.handles(ready, parts, begins=start is None), K, length)
    for i in range(done, len(sizes) + 1):
        inputs = weights[-1].shape[1] if weights else d
        if i < len(sizes):
            weights = [*weights, fit(weights, inputs, sizes[i])]
            yield AutoEncoderState(i + 1, layers.as_broadcast(weights) or {}, np.zeros((0, K)))
        else:
            yield AutoEncoderState(i + 1, layers.as_broadcast(weights) or {}, fit(weights, inputs, 0))


def _corrected(
    handles: Mapping[str, Federation], K: int, length: float, weights: list[Array], inputs: int, units: int
) -> Array:
    """A layer's weights (inputs, units), or of no units the output (inputs + 1, K)."""
    m, labels = inputs + 1, 0 if units else K
    asked, bound = handles[str(len(weights)) if units else "output"], l2(1.0, "record")
    flat: Any = asked.sum(partial(layers.second_moments, labels=labels), layers.as_broadcast(weights), bound=bound)
    matrix, sums = layers.matrix_of(flat, m, labels)
    noise = noise_level(asked, bound, "", len(flat)) / (layers.HALF if labels else 1.0)
    if labels:
        return layers.least_squares(matrix, sums, noise)
    return orthogonal(2 * matrix[0, 0], 2 * matrix[0, 1:], 2 * matrix[1:, 1:], units, length)


def _printed(federation: Federation, K: int, epsilon: float, seed: int, weights: list[Array], inputs: int, units: int) -> Array:
    """The same as printed, the noise of all steps of a layer drawn once."""
    labels, below, b = (0 if units else K), len(weights), units or inputs
    scale, targets = distance(labels or inputs, b, "printed") / epsilon, labels or inputs
    drawn = federation.stream(below + 1, f"noise on coefficients, as printed{seeded(seed)}")
    noise = drawn.laplace(scale=scale, size=(targets, b)), drawn.laplace(scale=scale, size=(targets, b, b))
    if not units:
        found = _asked(federation, weights, below, labels, noise, scale)
        return np.concatenate([np.zeros((1, K)), found.T])
    public = federation.stream(below + 1, f"first weights{seeded(seed)}")
    W = public.normal(scale=1 / math.sqrt(inputs), size=(inputs, units)).astype(np.float32)
    for _ in range(STEPS):
        W = _asked(federation, [*weights, W], below, 0, noise, scale)
        W = (W / np.maximum(np.linalg.norm(W, axis=0), layers.SHORTEST)).astype(np.float32)
    return W


def _asked(
    federation: Federation, weights: list[Array], below: int, labels: int, noise: tuple[Array, Array], scale: float
) -> Array:
    """The least of the perturbed polynomial at the hidden units of these weights, (targets, units)."""
    ask = partial(coefficients, below=below, labels=labels)
    total: Any = federation.sum(ask, layers.as_broadcast(weights))
    return least(total["linear"] + noise[0], total["quadratic"] + noise[1], scale)
