"""Mixtures of products: records whose columns are independent of each other inside each of some hundred components.

    P_kj      shares of the codes of column j in component k                    softmax of logits, free otherwise
    pi_ck     share of component k of class c
    Q_c(i,j)  = sum over k of pi_ck P_ki P_kj'                                  table of a pair in a class, as shares of all
    fit       minimise  sum over c, i < j of |Q_c(i,j) - T_c(i,j)|^2  +  NODES sum over c, j of |Q_c(j) - T_c(j)|^2

T are the tables that were asked, cleaned of noise as those of trees are. All Q_c are one product of matrices, and so are their
derivatives; Adam with a falling rate does the rest. Components start near each other and few steps are taken, which is what is
left against noise; with many steps tables without noise come back.

Conditions are exact: a component weighs what of it satisfies them, and inside it columns stay independent.

    weight    pi_ck prod over j of (P_kj e_j),   then  x_j ~ P_kj e_j          e: the weights of `Conditions`

Source : relaxed rows fitted to answers, Aydore et al. 2021 (RAP); with softmax, Liu, Vietri & Wu 2021, section 4 (RAP^softmax).
         As a law it is the latent class model, Dunson & Xing 2009. Differs: all tables at once instead of those that are worst;
         components have weights, and belong to a class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from .conditions import Conditions
from .drawing import Branch, drawn
from .synthesizer import Synthesizer

NODES = 10.0
"""Weight of tables of one column beside those of two, which have more noise."""
RATE = 0.1
"""Of Adam's first step."""
FORGETS = 0.95
"""Of Adam's squares; 0.99 and 0.999 were looked at on Adult, and leave two and three times as much misfit after 300 steps."""
SPREAD = 1.0
"""Standard deviation of the first logits about those of the tables of one column."""


@dataclass(frozen=True, eq=False, repr=False)
class MixtureSynthesizer(Synthesizer):
    """A mixture of products.

    Attributes
    ----------
    target : int
        Place of the column of classes; -1 where there is none.
    weights : array of shape (classes, components)
        Shares of the components, which add up to 1.
    shares : array of shape (classes, components, sum of the other columns' codes)
        Of the codes of each other column, column after column; of a column they add up to 1.
    """

    target: int = -1
    weights: Array = field(default_factory=lambda: np.ones((1, 1)))
    shares: Array = field(default_factory=lambda: np.ones((1, 1, 0)))

    def draw(self, rows: int, conditions: Conditions, rng: np.random.Generator) -> Array:
        """Return the codes of made-up records: shape (rows, f).

        Raises
        ------
        SettingsInvalid (HR-511)
            The conditions have no probability.
        """
        f, (classes, components) = len(self.codes.columns), self.weights.shape
        others = [j for j in range(f) if j != self.target]
        ends = np.cumsum([self.codes.sizes[j] for j in others])[:-1]
        parts = np.split(self.shares.reshape(classes * components, -1), ends, axis=1)
        weights, steps = self.weights.copy(), []
        if self.target in conditions.weights:
            weights *= conditions.weights[self.target][:, None]
        weights = weights.ravel()
        for j, part in zip(others, parts, strict=True):
            part = part * conditions.weights.get(j, 1.0)
            weights = weights * part.sum(1)
            steps.append(Branch(j, f, part))
        if not weights.sum() > 0:
            raise SettingsInvalid("the conditions have no probability at all.", remedy="Loosen them: where={...}.")
        if self.target >= 0:
            steps.append(Branch(self.target, f, np.repeat(np.eye(classes), components, axis=0)))
        return drawn([Branch(f, -1, weights[None]), *steps], rows, f + 1, rng)[:, :f]


def fitted(
    nodes: Sequence[Array],
    tables: Mapping[tuple[int, int], Array],
    *,
    components: int,
    steps: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Fit a mixture to tables.

    Parameters
    ----------
    nodes : sequence of arrays of shape (classes, codes)
        Of each column: records of each class with each code.
    tables : mapping from (i, j), i < j, to array of shape (classes, codes of i, codes of j)
        Of pairs of those columns; not every pair has to be there.
    components : int
        Of each class.
    steps : int
        Of Adam.

    Returns
    -------
    weights : array of shape (classes, components)
    shares : array of shape (classes, components, sum of codes)
    """
    sizes = [node.shape[1] for node in nodes]
    starts = np.cumsum([0, *sizes])
    ones, of_class = np.concatenate(nodes, axis=1), nodes[0].sum(1)
    total = of_class.sum()
    wanted_ones, of_class = ones / total, of_class / total
    wanted = np.zeros((len(of_class), starts[-1], starts[-1]))
    asked = np.zeros((starts[-1], starts[-1]))
    for (i, j), table in tables.items():
        place = np.s_[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
        asked[place] = 1.0
        wanted[:, *place] = table / total
    wanted, asked = wanted + wanted.swapaxes(1, 2), asked + asked.T
    lifted = np.log(np.maximum(wanted_ones / np.maximum(of_class, 1e-12)[:, None], 1e-6))
    logits = lifted[:, None] + SPREAD * rng.standard_normal((len(of_class), components, starts[-1]))
    mixed = np.zeros((len(of_class), components))
    ascents = [_Adam(logits), _Adam(mixed)]
    one_group = np.array([0, components])
    for step in range(steps):
        P, share = _softmax(logits, starts), _softmax(mixed, one_group)
        _, slope_pi, slope_P = misfit(share * of_class[:, None], P, wanted, asked, wanted_ones)
        rate = RATE * (1 + np.cos(np.pi * step / steps)) / 2
        logits = ascents[0].down(logits, _through_softmax(P, slope_P, starts), rate)
        mixed = ascents[1].down(mixed, _through_softmax(share, slope_pi * of_class[:, None], one_group), rate)
    return _softmax(mixed, one_group) * of_class[:, None], _softmax(logits, starts)


def misfit(pi: Array, P: Array, wanted: Array, asked: Array, wanted_ones: Array) -> tuple[float, Array, Array]:
    """How far tables of a mixture are from those wanted, and its derivatives by `pi` and `P`.

    Parameters
    ----------
    pi : array of shape (classes, components)
    P : array of shape (classes, components, s)
    wanted : array of shape (classes, s, s)
        Symmetric: tables of pairs where `asked` (s, s) is one.
    wanted_ones : array of shape (classes, s)
        Tables of one column.
    """
    weighed = P * pi[..., None]
    far = (weighed.swapaxes(1, 2) @ P - wanted) * asked  # every pair twice
    far_ones = weighed.sum(1) - wanted_ones
    pull = P @ far
    slope_pi = (pull * P).sum(-1) + 2 * NODES * (P @ far_ones[..., None])[..., 0]
    slope_P = 2 * pi[..., None] * (pull + NODES * far_ones[:, None])
    return float(np.vdot(far, far) / 2 + NODES * np.vdot(far_ones, far_ones)), slope_pi, slope_P


class _Adam:
    """Adam (Kingma & Ba 2015), algorithm 1. Squares are forgotten sooner than usual, since slopes fall and have no noise."""

    def __init__(self, at: Array) -> None:
        self.mean, self.square, self.steps = np.zeros_like(at), np.zeros_like(at), 0

    def down(self, at: Array, slope: Array, rate: float) -> Array:
        self.steps += 1
        self.mean += 0.1 * (slope - self.mean)
        self.square += (1 - FORGETS) * (slope * slope - self.square)
        size = np.sqrt(self.square / (1 - FORGETS**self.steps)) + 1e-12
        return np.asarray(at - rate * (self.mean / (1 - 0.9**self.steps)) / size)


def _softmax(logits: Array, starts: Array) -> Array:
    """Of each group of the last axis, from one start to the next."""
    widths = np.diff(starts)
    top = np.repeat(np.maximum.reduceat(logits, starts[:-1], axis=-1), widths, axis=-1)
    lifted = np.exp(logits - top)
    return np.asarray(lifted / np.repeat(np.add.reduceat(lifted, starts[:-1], axis=-1), widths, axis=-1))


def _through_softmax(P: Array, slope: Array, starts: Array) -> Array:
    mean = np.add.reduceat(P * slope, starts[:-1], axis=-1)
    return np.asarray(P * (slope - np.repeat(mean, np.diff(starts), axis=-1)))
