"""Quadratics with absolute values, minimised exactly by a search over the signs of the coefficients.

Given which coefficients are zero and the signs of the others, these solve linear equations. On the way there from the last
point, the best place is where the objective is least, at the end or where a coefficient crosses zero; one that ends at zero
leaves the support, and the coefficient with the steepest descent joins it. The objective falls at every step, so no signs
come twice, and the search ends.

Source : Lee, Battle, Raina & Ng 2006 (feature-sign search). Differs: a penalty for each coefficient, zero and infinite ones.
"""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import NotConverged

ROUNDING = 1e-12
"""Violations of the conditions of a minimum, relative to the largest pull, that a search leaves alone."""
ENOUGH = 1e-9
"""The same of a point that counts as the minimum."""
NEAR, MOST_POINTS = 1e-5, 200
"""Where columns are dependent, each search stays near the last point, which makes its equations well conditioned."""


def least(H: Array, q: Array, l1: Array, start: Array) -> Array:
    """Minimise `b'Hb / 2 - q'b + sum l1 |b|`.

    Parameters
    ----------
    H : array of shape (d, d)
        Positive semi-definite.
    q, l1, start : arrays of shape (d,)
        An infinite `l1` fixes a coefficient at zero.

    Raises
    ------
    NotConverged (HR-322)
        Columns are so nearly dependent that rounding decides.
    """
    H = (H + H.T) / 2
    size = np.sqrt(np.maximum(np.diag(H), 0.0))
    free = (size > 0) & np.isfinite(l1)
    found = np.zeros(len(q))
    if free.any():
        size = size[free]
        scaled = H[np.ix_(free, free)] / np.outer(size, size)
        held = l1[free] / size
        if (held[held > 0] <= 10 * ROUNDING * np.abs(q[free] / size).max()).any():
            raise drowned()
        found[free] = _settled(scaled, q[free] / size, l1[free] / size, start[free] * size) / size
    return found


def drowned() -> NotConverged:
    """Refuse a penalty that is smaller than the rounding of sums."""
    return NotConverged(
        "a penalty is smaller than the rounding of the sums of squares: columns or target lie far from zero, as years or "
        "coordinates do.",
        remedy="Subtract a round number near the middle of the column beforehand, or scale with hedgerow.stats.scaling.",
    )


def _settled(A: Array, q: Array, l1: Array, b: Array) -> Array:
    """The same with ones on the diagonal and finite `l1`; where columns are dependent, by proximal points."""
    direct = _search(A, q, l1, b)
    if _misses(A, q, l1, direct) <= ENOUGH:
        return direct
    well = A + NEAR * np.eye(len(b))
    for _ in range(MOST_POINTS):
        b = _search(well, q + NEAR * b, l1, b)
        if _misses(A, q, l1, b) <= ENOUGH:
            return b
    raise NotConverged(
        "columns are so nearly dependent that rounding decides which coefficients are zero.",
        remedy="Drop one of them, or add a ridge: l1_ratio=0.9.",
    )


def _misses(A: Array, q: Array, l1: Array, b: Array) -> float:
    """By how much a point violates the conditions of a minimum, relative to the largest of `q`."""
    pull = q - A @ b
    violations = np.where((b != 0) | (l1 == 0), np.abs(pull - l1 * np.sign(b)), np.maximum(np.abs(pull) - l1, 0.0))
    return float(violations.max() / max(np.abs(q).max(), 1e-300))


def _search(A: Array, q: Array, l1: Array, b: Array) -> Array:
    """Search for the signs; end where rounding allows no further move."""
    b, always, slack = b.copy(), l1 == 0, ROUNDING * max(np.abs(q).max(), 1e-300)
    for _ in range(20 * (len(b) + 10)):
        signs = np.sign(b)
        pull = q - A @ b
        inside = (b != 0) | always
        unsettled = inside & (np.abs(pull - l1 * signs) > slack)
        if not unsettled.any():
            wish = np.where(inside, 0.0, np.abs(pull) - l1)
            j = int(wish.argmax())
            if wish[j] <= slack:
                return b
            inside[j], signs[j] = True, np.sign(pull[j])
        b, stuck = _towards(A, q, l1, b, inside, np.where(always, 0.0, signs))
        if stuck:
            return b
    return b


def _towards(A: Array, q: Array, l1: Array, b: Array, inside: Array, signs: Array) -> tuple[Array, bool]:
    """Move towards the solution for these signs, to the best point on the way; say whether rounding allows no move."""
    part, right = A[np.ix_(inside, inside)], (q - l1 * signs)[inside]
    try:
        goal = np.linalg.solve(part, right)
    except np.linalg.LinAlgError:
        goal = np.linalg.lstsq(part, right, rcond=None)[0]
    at, move = b[inside], goal - b[inside]
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = np.where((at != 0) & (l1[inside] > 0), -at / move, np.inf)
    shares = [1.0, *(share for share in crossings if 0 < share < 1)]
    points = at + np.outer(shares, move)
    points[np.array(shares)[:, None] == crossings] = 0.0
    # the objective less that at `at`, so that rounding stays small beside a small move
    gained = points - at
    values = (
        (gained @ part * gained).sum(-1) / 2 - gained @ (q[inside] - part @ at) + (np.abs(points) - np.abs(at)) @ l1[inside]
    )
    best = int(values.argmin())
    found = b.copy()
    found[inside] = points[best]
    return found, bool((found == b).all())
