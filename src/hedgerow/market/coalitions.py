"""With whom: the expected excess of owners with public weights, the best weights, the best owners of equal weight.

    excess(w) = bias + sum_l w_l^2 (s n_l + A a_l) / (sum_l w_l n_l)^2

    n_l  records of owner l                            s     sampling: excess, times n, of the best theta of n records
    a_l  variance of its noise on a sum, a coordinate  A     amplification: excess for noise of variance 1 on the mean
    w_l  its public weight                             bias  excess that is left without noise

Best weights. Let c_l = s n_l + A a_l. By Cauchy and Schwarz (sum w n)^2 <= (sum w^2 c) (sum n^2 / c), with equality where
w_l is proportional to n_l / c_l. So the least excess is bias + 1 / sum_l n_l^2 / c_l. What an owner adds to
1 / (excess - bias) is its own: one more never harms, and nobody needs to be left out.

Best owners of equal weight. excess - bias = s / N + A a / N^2, with N and a the sums of n_l and a_l over the members.

    Theorem. Of all sets of owners, the first k in the order of a_l / n_l have the least excess, for some k.

    Proof. Excess grows with a, so that at each N only the least a counts. Let owners also take part with a fraction of their
    n_l and a_l, which makes more choices. The least a is then that of a knapsack filled in the order of a_l / n_l: a(N) is
    convex, linear in pieces, a(0) = 0, and its kinks are the first k owners. On a piece a(N) = alpha + beta N, with
    alpha <= 0 by convexity. In u = 1 / N the excess is (s + A beta) u + A alpha u^2, concave, and so least at an end of the
    piece. The first piece has alpha = 0 and begins at N = 0; its excess falls until the first owner is whole.

    In other words: excess is quasi-concave in (N, a) and grows with a; the sums over all sets lie in a zonotope, and its lower
    corners are the first k. The order costs N log N; no set is tried.

Assumptions: owners' records come from one population; the loss is quadratic and the box inactive (`hedgerow.market.propagate`).
Nothing here reads a record: records, epsilons and s are public or paid for.

Source: derived for `hedgerow.learn.queries`. Wu 2019, section 3.3.1.3, finds by experiments which owners harm; all of his have
equal weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid


def excess(weights: Array, records: Array, variances: Array, sampling: float, amplification: float, bias: float = 0.0) -> Array:
    """Expected excess of the result that owners of public weights reach together.

    Parameters
    ----------
    weights : array of shape (..., owners)
        At least 0, some above 0 in each row. A factor on all of them changes nothing.
    records, variances : arrays of shape (owners,)
        n_l and a_l (`hedgerow.market.variances`). An infinite a_l is an owner that answers nothing; its weight must be 0.
    sampling, amplification, bias : float
        `PilotEstimate.sampling`, `Propagation.amplification`, `Propagation.bias`.

    Returns
    -------
    array of shape (...)
        In units of the loss.
    """
    n, c = _costs(records, variances, sampling, amplification)
    w = np.asarray(weights, float)
    reached = bias + np.square(w) @ np.where(np.isfinite(c), c, 0.0) / np.square(w @ n)
    found: Array = np.where((w > 0) @ ~np.isfinite(c), np.inf, reached)
    return found[()]


def equal_excess(records: Array, variances: Array, sampling: float, amplification: float, bias: float = 0.0) -> float:
    """Expected excess where all owners have the same weight."""
    return float(excess(np.ones(len(records)), records, variances, sampling, amplification, bias))


def precisions(records: Array, variances: Array, sampling: float, amplification: float) -> Array:
    """What each owner adds to 1 / (excess - bias) under the best weights, whoever else takes part: n^2 / (s n + A a).

    Shape (owners,); infinite for an owner without noise where s is 0.
    """
    n, c = _costs(records, variances, sampling, amplification)
    with np.errstate(divide="ignore"):
        found: Array = np.square(n) / c
    return found


def best_weights(records: Array, variances: Array, sampling: float, amplification: float) -> Array:
    """Weights of least expected excess, the largest being 1: shape (owners,).

    In proportion to n / (s n + A a). Where s is 0 and some add no noise, only those count, all the same.
    """
    n, c = _costs(records, variances, sampling, amplification)
    w: Array = n / c if c.all() else (c == 0).astype(float)
    return w / w.max() if w.any() else np.ones(len(w))


def weighted_excess(records: Array, variances: Array, sampling: float, amplification: float, bias: float = 0.0) -> float:
    """Expected excess under the best weights: bias + 1 / sum n^2 / (s n + A a)."""
    total = float(precisions(records, variances, sampling, amplification).sum())
    return bias + (1 / total if total > 0 else float("inf"))


@dataclass(frozen=True)
class Prefix:
    """The owners that, with equal weights, have the least expected excess.

    Attributes
    ----------
    members : array of bool, shape (owners,)
    order : array of int, shape (owners,)
        All owners in the order of a / n; the first `size` of them are the members.
    excesses : array of shape (owners,)
        Of the first 1, 2, .. of them.
    excess : float
        The least of these.
    """

    members: Array
    order: Array
    excesses: Array
    excess: float

    @property
    def size(self) -> int:
        """How many they are."""
        return int(self.members.sum())


def best_prefix(records: Array, variances: Array, sampling: float, amplification: float, bias: float = 0.0) -> Prefix:
    """Find the best of all sets of owners of equal weight (theorem above); the fewest owners where several are as good."""
    n, _ = _costs(records, variances, sampling, amplification)
    a = np.asarray(variances, float)
    order = np.argsort(a / n, kind="stable")
    reached = np.cumsum(n[order])
    excesses = bias + sampling / reached + (amplification * np.cumsum(a[order]) / reached**2 if amplification else 0.0)
    size = int(np.argmin(excesses)) + 1
    members = np.zeros(len(n), bool)
    members[order[:size]] = True
    return Prefix(members, order, excesses, float(excesses[size - 1]))


def _costs(records: Array, variances: Array, sampling: float, amplification: float) -> tuple[Array, Array]:
    """n_l and s n_l + A a_l."""
    n, a = np.asarray(records, float), np.asarray(variances, float)
    if n.ndim != 1 or n.shape != a.shape or not len(n):
        raise SettingsInvalid(
            f"records of shape {n.shape} and variances of shape {a.shape}.", remedy="Give one of each for every owner."
        )
    if not ((n > 0) & (n < np.inf)).all() or not (a >= 0).all():
        worst = n[~((n > 0) & (n < np.inf))], a[~(a >= 0)]
        raise SettingsInvalid(
            f"records {worst[0][:3].tolist()} or variances {worst[1][:3].tolist()} of owners.",
            remedy="Records are finite numbers above zero, variances at least 0; leave an owner without records out.",
        )
    if not (0 <= sampling < np.inf and 0 <= amplification < np.inf):
        raise SettingsInvalid(f"{sampling=}, {amplification=}.", remedy="Give finite numbers of at least 0.")
    return n, sampling * n + (amplification * a if amplification else 0.0)
