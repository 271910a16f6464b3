"""How noise of gradients becomes excess of the result.

Exactly for a quadratic loss while the box is inactive:

    e_1 = -theta*;  e_{k+1} = (I - s_k H) e_k - s_k w_k;  result = sum_j om_j theta_j         w_k: variance v per coordinate

    bias   1/2 sum_h h (sum_j om_j prod_{i<j} (1 - s_i h) e_1h)^2
    A_h    1/2 h sum_k (s_k sum_{j>k} om_j prod_{k<i<j} (1 - s_i h))^2                          backward recursion, O(T d)

    expected excess = bias + v sum_h A_h

For another loss, whose records the estimate knows, where the best theta lies on a wall of the box, and where steps are so long
that theta leaves the box on its way, along the path that the rule takes there without noise:

    theta_{k+1} <- project(theta_k - s_k gradient(theta_k));   H_k curvature there, P_k zero where the box stops a coordinate
    B_T = om_{T+1} I;   noise of step k adds  -s_k B_k P_k w_k;   B_{k-1} = om_k I + B_k P_k (I - s_k H_k)
    excess = f(theta) - f* + g'u + u'H u / 2             theta the result, g and H there, u what noise adds to it

That records are a sample moves the result too: by the mean over records of - sum_k s_k B_k P_k (their gradient at theta_k),
less its expectation. Without the records, their gradients at theta* stand for those along the way: R G R' is its covariance,

    R = sum_k s_k B_k P_k;   along an eigenvector of a parabola   r_h = sum_k s_k sum_{j>k} om_j prod_{k<i<j} (1 - s_i h)

which is H^-1 where the steps have ended, less where they have not, and zero along the box.

which is exact up to the second order of the noise. om are the weights that the rule's average gives to the iterates; they are
found by running the rule. The hinge's curvature is that of a rounded kink (`pilot_estimate.KINK`).

Source: derived for `hedgerow.learn.queries`; in place of Theorems 2 and 3 of Wu 2019, whose constants depend on the rule, the
loss and the law of noise at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.learn.queries.fitness import smooth
from hedgerow.learn.queries.losses import QueryLoss
from hedgerow.learn.queries.steps import Steps

from .pilot_estimate import KINK, PilotEstimate, PilotRows

TOO_LONG = (
    "The step is too long: theta swings between the walls of its box, and the forecast is rough. A step below "
    "{longest:.3g} would not do that: in the first round, 2 over the largest curvature."
)
FLAT = 1e-9
"""Directions whose curvature is below this share of the largest are taken for flat."""


@dataclass(frozen=True)
class Propagation:
    """What T steps make of a start and of noise, along each eigenvector of the curvature at the result.

    Attributes
    ----------
    eigenvalues : array of shape (d,)
    vectors : array of shape (d, d)
        In columns.
    left : array of shape (d,)
        Error of the noiseless result along each, from the least value of the parabola around it.
    amplifications : array of shape (d,)
        Expected excess along each, for noise of variance 1 in each coordinate of the mean gradient.
    spread : array of shape (d, d)
        Covariance of sqrt(h / 2) times the error along each, for the same noise; its diagonal is `amplifications`.
    drawn : array of shape (d, d)
        Covariance, times n, of sqrt(h / 2) times what n records of their own move the result by, along each.
    offset : float
        Excess of that least value; 0 of a quadratic loss.
    path : array of shape (T, d), optional
        theta_2 .. theta_{T+1} without noise; NaN where the box stops a coordinate.
    wander : array of shape (T, d), optional
        Variance of each coordinate around it, for the same noise.
    """

    eigenvalues: Array
    vectors: Array
    left: Array
    amplifications: Array
    spread: Array
    drawn: Array
    offset: float = 0.0
    path: Array | None = None
    wander: Array | None = None

    @property
    def bias(self) -> float:
        """Excess without noise."""
        return self.offset + float(self.eigenvalues @ np.square(self.left)) / 2

    @property
    def amplification(self) -> float:
        """Expected excess for noise of variance 1."""
        return float(self.amplifications.sum())

    @property
    def sampling(self) -> float:
        """Expected excess, times n, of the result of n records on everybody like them: s."""
        return float(np.trace(self.drawn))

    def stopped(self, variance: float, box: float) -> float:
        """Share of all coordinates on their way that such noise takes out of the box, but for those that leave it anyway."""
        if self.path is None or self.wander is None or not np.isfinite(self.path).any():
            return 0.0
        deviation = np.sqrt(np.maximum(variance * self.wander, np.finfo(float).tiny))
        beyond = scipy.special.ndtr((self.path - box) / deviation) + scipy.special.ndtr((-self.path - box) / deviation)
        return float(np.nanmean(beyond))

    def excess(self, variance: float) -> float:
        """Expected excess where each coordinate of the mean gradient has noise of this variance, in each step."""
        return self.bias + variance * self.amplification


@lru_cache(maxsize=64)
def propagate(estimate: PilotEstimate, steps: Steps, horizon: int) -> Propagation:
    """Follow a start at zero and noise through `horizon` steps."""
    stopped = walled(estimate, steps, horizon)
    if estimate.rows is not None and (stopped or estimate.rows.loss.kind != "squared"):
        return _along_path(estimate, estimate.rows, steps, horizon)
    if stopped:
        rows = parabola(estimate)
        least = float(rows.loss.cost(estimate.best, rows.x, rows.y, rows.w))
        return _along_path(replace(estimate, least=least), rows, steps, horizon)
    h, vectors = np.linalg.eigh(estimate.curvature)
    moved = errors(h, -vectors.T @ estimate.best, steps, horizon)
    moves = influences(h, steps, horizon)
    drawn = _drawn(estimate, h, vectors, moves, estimate.best + moved[:-1] @ vectors.T)
    amplifications = h * np.square(moves).sum(0) / 2
    path = estimate.best + moved[1:] @ vectors.T
    path[np.abs(path) > steps.box * (1 - 1e-9)] = np.nan
    wander, now = np.empty_like(path), np.zeros_like(h)
    for k, length in enumerate(_lengths(steps, horizon)):
        now = np.square(1 - length * h) * now + length**2
        wander[k] = np.square(vectors) @ now
    left = average_weights(steps, horizon) @ moved
    spread = np.diag(amplifications)
    return Propagation(h, vectors, left, amplifications, spread, drawn, path=path, wander=wander)


def _drawn(estimate: PilotEstimate, eigenvalues: Array, vectors: Array, moves: Array, path: Array) -> Array:
    """What a sample moves the result by, where the loss is a parabola; the path without noise or box: theta_1 .. theta_T."""
    roots = np.where(eigenvalues > FLAT * max(eigenvalues.max(), 0.0), np.sqrt(np.maximum(eigenvalues, 0.0) / 2), 0.0)
    rows = estimate.rows
    if rows is None:
        shift = (roots * moves.sum(0))[:, None] * vectors.T
        found: Array = shift @ estimate.scatter @ shift.T
        return found
    each = 2 * (rows.x @ path.T @ moves - rows.y[:, None] * moves.sum(0)) * (rows.x @ vectors)
    return _covariance(each * roots, rows.w)


def _covariance(each: Array, w: Array) -> Array:
    each = each - w @ each / w.sum()
    found: Array = (each.T * w) @ each / w.sum()
    return found


def at_walls(estimate: PilotEstimate, box: float) -> bool:
    """Whether the box is known to stop the best theta: where records or the slope there are known."""
    known = estimate.rows is not None or estimate.slope is not None
    return known and bool(np.abs(estimate.best).max(initial=0.0) >= box * (1 - 1e-9))


def walled(estimate: PilotEstimate, steps: Steps, horizon: int) -> bool:
    """Whether the box is known to stop the best theta, or, of a loss that is a parabola, theta on its way without noise."""
    if at_walls(estimate, steps.box):
        return True
    if estimate.rows is None and estimate.slope is None:
        return False
    h, vectors = np.linalg.eigh(estimate.curvature)
    if estimate.rows is None and h.min() <= FLAT * h.max():  # no rows have this parabola
        return False
    path = estimate.best + errors(h, -vectors.T @ estimate.best, steps, horizon) @ vectors.T
    return bool(np.abs(path).max(initial=0.0) > steps.box)


def longest_step(estimate: PilotEstimate, steps: Steps, horizon: int) -> float | None:
    """`size` of steps above which theta swings ever wider: 2 over the largest curvature in the longest; None if ours is less.

    Not of the hinge, whose curvature is that of its rounded kink.
    """
    times = float(np.linalg.eigvalsh(estimate.curvature)[-1] * _lengths(steps, horizon).max())
    if (estimate.rows is not None and estimate.rows.loss.kind == "hinge") or times <= 2:
        return None
    return 2 * steps.size / times


def parabola(estimate: PilotEstimate) -> PilotRows:
    """Rows whose squared loss is, but for a constant, the parabola of an estimate that knows no records; H above zero."""
    d = len(estimate.best)
    x = np.sqrt(d / 2) * np.linalg.cholesky(estimate.curvature).T
    towards = estimate.curvature @ estimate.best - (0.0 if estimate.slope is None else estimate.slope)
    return PilotRows(QueryLoss("squared", 0.0), x, np.linalg.solve(x.T, towards * d / 2), np.ones(d))


def _along_path(estimate: PilotEstimate, rows: PilotRows, steps: Steps, horizon: int) -> Propagation:
    """The same to the second order of noise, along the path without noise."""
    loss, x, y, w = rows.loss, rows.x, rows.y, rows.w
    d = x.shape[1]
    weights = average_weights(steps, horizon)
    theta, average, moves, now = np.zeros(d), np.zeros(d), [], np.zeros((d, d))
    thetas = np.zeros((horizon + 1, d))
    path, wander = np.empty((horizon, d)), np.empty((horizon, d))
    for k in range(1, horizon + 1):
        gradient = loss.gradient_sums(theta, x, y, w) / w.sum() + loss.ridge * theta
        moved = steps.move(theta, gradient, k, horizon)
        inside, length = np.abs(moved) < steps.box, steps.length(k, horizon)
        kept, curvature = inside[:, None] * np.eye(d), smooth(loss, theta, x, y, w, KINK)[2]
        moves.append((length, kept, curvature))
        carried = kept @ (np.eye(d) - length * curvature)
        now = carried @ now @ carried.T + length**2 * kept
        path[k - 1], wander[k - 1] = np.where(inside, moved, np.nan), np.diag(now)
        theta, average = moved, steps.average(average, theta, moved, k, horizon)
        thetas[k] = theta
    tail, covariance, each = weights[horizon] * np.eye(d), np.zeros((d, d)), np.zeros_like(x)
    shift = np.zeros((d, d))
    for k in range(horizon - 1, -1, -1):
        length, kept, curvature = moves[k]
        added = length * tail @ kept
        covariance, shift = covariance + added @ added.T, shift + added
        each += loss.slopes(x @ thetas[k], y)[:, None] * (x @ added.T)
        tail = weights[k] * np.eye(d) + tail @ kept @ (np.eye(d) - length * curvature)
    _, gradient, curvature = smooth(loss, average, x, y, w, KINK)
    h, vectors = np.linalg.eigh(curvature)
    curved = h > FLAT * h.max()
    left = np.where(curved, vectors.T @ gradient / np.where(curved, h, 1.0), 0.0)
    roots = np.sqrt(np.where(curved, h, 0.0) / 2)
    spread = roots[:, None] * (vectors.T @ covariance @ vectors) * roots
    offset = float(loss.cost(average, x, y, w)) - estimate.least - float(h @ np.square(left)) / 2
    if estimate.rows is None:
        turned = roots[:, None] * (vectors.T @ shift)
        drawn = turned @ estimate.scatter @ turned.T
    else:
        drawn = _covariance(each @ vectors * roots, w)
    return Propagation(h, vectors, left, np.diag(spread).copy(), spread, drawn, offset, path, wander)


def errors(eigenvalues: Array, start: Array, steps: Steps, horizon: int) -> Array:
    """Error of theta_1 .. theta_{T+1} without noise, along each eigenvector, from that of theta_1: shape (T + 1, d)."""
    factors = 1 - _lengths(steps, horizon)[:, None] * eigenvalues
    found: Array = np.vstack([np.ones_like(eigenvalues), np.cumprod(factors, axis=0)]) * start
    return found


def influences(eigenvalues: Array, steps: Steps, horizon: int) -> Array:
    """By how much noise of 1 in the gradient of each step moves the result against it: shape (T, d)."""
    lengths, weights = _lengths(steps, horizon), average_weights(steps, horizon)
    found = np.empty((horizon, len(eigenvalues)))
    tail = weights[horizon] * np.ones_like(eigenvalues)  # of an error of theta_{k+1}, through it and all that follow
    for k in range(horizon - 1, -1, -1):
        found[k] = lengths[k] * tail
        tail = weights[k] + (1 - lengths[k] * eigenvalues) * tail
    return found


def _lengths(steps: Steps, horizon: int) -> Array:
    return np.array([steps.length(k, horizon) for k in range(1, horizon + 1)])


def average_weights(steps: Steps, horizon: int) -> Array:
    """Weights of theta_1 .. theta_{T+1} in the result: shape (T + 1,)."""
    iterates = np.eye(horizon + 1)
    average = np.zeros(horizon + 1)
    for k in range(1, horizon + 1):
        average = steps.average(average, iterates[k - 1], iterates[k], k, horizon)
    return average
