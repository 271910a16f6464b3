"""Terms of gradients that a party can compute without the model, and their limits from declared ranges.

    gaussian             X'W(X theta - y)                A = X'WX        b = X'Wy
    binomial, degree 1   X'W(0.5 + z / 4 - y)            A = X'WX / 4    b = X'W(y - 0.5)
    binomial, degree 3   X'W(c0 + c1 z + c3 z^3 - y)     rows X, y and weights: the model meets each record

with z = X theta; a polynomial stands for the logistic function, so that sums and products of encrypted numbers suffice.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, l2
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import linear
from hedgerow.crypto.privfl.grid import CUBIC, Cubic, GradientGrid, LinearGradientGrid

from ..design import Design
from ..linear.losses import FamilyName
from ..linear.sums import along, products

Degree = Literal[1, 3]


@local(additive=True, stackable=True, rowwise=True)
def linear_terms(theta: Array | None, party: Party, rng: Any, *, grid: GradientGrid | None = None) -> Any:
    """The gradient of half the squared error, or, where the model is withheld, its terms A (..., d, d) and b (..., d)."""
    X, y, w = party["X"], party["y"] - party["offset"], party.w
    return _terms(X, w, y) if theta is None else along(X, w * (linear(X, theta) - y))


@local(additive=True, stackable=True, rowwise=True)
def logistic_terms(theta: Array | None, party: Party, rng: Any, *, grid: GradientGrid | None = None) -> Any:
    """The gradient of the logistic loss with 0.5 + z / 4 for the logistic function, or its terms A and b."""
    X, y, w, offset = party["X"], party["y"], party.w, party["offset"]
    if theta is None:
        return _terms(X, w / 4, 4 * (y - 0.5) - offset)
    return along(X, w * (0.5 + (linear(X, theta) + offset) / 4 - y))


@local(stackable=True)
def cubic_rows(theta: Array | None, party: Party, rng: Any, *, grid: GradientGrid | None = None) -> Any:
    """The gradient of the logistic loss with 0.5 + 0.197 z - 0.004 z^3, or, where the model is withheld, the records."""
    X, y, w = party["X"], party["y"], party.w
    if theta is None:
        return {"X": X, "y": y, "w": w}
    z = linear(X, theta)
    c0, c1, c3 = CUBIC
    return along(X, w * (c0 + c1 * z + c3 * z**3 - y))


@local(additive=True, stackable=True, rowwise=True)
def count(broadcast: None, party: Party, rng: Any) -> Any:
    """The number of records, or the sum of their weights."""
    return party.n


def terms_of(family: FamilyName, degree: Degree) -> Any:
    """The local function of a family."""
    return linear_terms if family == "gaussian" else {1: logistic_terms, 3: cubic_rows}[degree]


def grid_of(
    spec: Design, family: FamilyName, degree: Degree, *, parties: int, records: float, largest: float
) -> LinearGradientGrid | Cubic | None:
    """Public steps for a design whose ranges are declared; `None` where one is not.

    Parameters
    ----------
    records : float
        Most records, or largest sum of weights, at one party.
    largest : float
        Largest absolute coefficient.
    """
    w, offset, target = spec.weight_limit, _offset_limit(spec), spec.response_limit
    if spec.limits is None or spec.row_limit is None or w is None or offset is None or target is None:
        return None
    if degree == 3 and family == "binomial":
        reach = spec.row_limit * largest
        return Cubic(spec.size, parties, int(np.ceil(records)), row=spec.row_limit, reach=reach, weight=w)
    share = 1.0 if family == "gaussian" else 0.25
    residual = target if family == "gaussian" else 0.5 + offset / 4
    wide = max(spec.limits)
    return LinearGradientGrid(
        spec.size, parties, terms=records * w * wide**2 * share, target=records * w * wide * residual, model=largest
    )


def gradient_bound(spec: Design, family: FamilyName, degree: Degree, theta: Array) -> Bound | None:
    """By how much one record moves the gradient at a model; `None` where a range is not declared."""
    w, offset, target = spec.weight_limit, _offset_limit(spec), spec.response_limit
    if spec.limits is None or spec.row_limit is None or w is None or offset is None or target is None:
        return None
    z = float(np.abs(theta) @ np.array(spec.limits))
    if family == "gaussian":
        residual = z + target
    elif degree == 1:
        residual = 0.5 + (z + offset) / 4
    else:
        residual = 0.5 + abs(CUBIC[1]) * z + abs(CUBIC[2]) * z**3
    return l2(w * spec.row_limit * residual or w, "record")


def _terms(X: Array, w: Array, y: Array) -> dict[str, Array]:
    return {"A": products(X, w), "b": along(X, w * y)}


def _offset_limit(spec: Design) -> float | None:
    """Largest absolute offset."""
    target, both = spec.response.limit(spec.schema), spec.response_limit
    return None if target is None or both is None else both - target
