"""`cross`: sums over the common people of products of columns that lie apart, as one question of the waist.

    left' left              correlation, linear regression, principal components, tables of two columns
    left' (right + hub)     means by a column elsewhere, gradients, histograms of boosted trees
    left' diag(weights) left    information matrices

Who sees: parties see uniform words, and whether columns are those of an earlier question; the hub sees the total, with noise in
it where parties add some, and nothing else that is not uniform (`hedgerow.crypto.cross`). A hub that shares what it knows with
a party is not withstood; parties that do so are, as long as one does not.

Adjacency: the values of one common person are there, or are zeros in all columns. How many people are common, and who they are,
parties know from the alignment, whatever the noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array, Arrays
from hedgerow.core.bound import Bound, Bounds
from hedgerow.core.mechanism import Mechanism
from hedgerow.core.party import Local
from hedgerow.crypto.cross.bits import ColumnReach, choose, choose_private
from hedgerow.errors import AlignmentRefused, SettingsInvalid, UnboundedSum

from .crossing import Crossing, Dealing, Widths

if TYPE_CHECKING:
    from .aligned import Aligned


@dataclass(frozen=True)
class Factors:
    """How far the factors of products reach: the public facts from which fixed point, bound and noise follow.

    Parameters
    ----------
    left : mapping from party to ColumnReach, or ColumnReach of all
        Noise needs the largest absolute value of each column of each party, from public ranges.
    right : mapping from party to ColumnReach, or ColumnReach of all, optional
        Of those that have rows on the right. Behind noise the others are to return arrays without columns, (n, 0).
    hub : ColumnReach, optional
        Of the hub's rows or of its weights; without it the next power of two of the largest value, which parties see.
    """

    left: Mapping[str, ColumnReach] | ColumnReach = field(default_factory=ColumnReach)
    right: Mapping[str, ColumnReach] | ColumnReach | None = None
    hub: ColumnReach | None = None


def cross(
    aligned: Aligned,
    left: Local,
    right: Local | None = None,
    broadcast: Arrays = None,
    *,
    bound: Bounds | Factors | None = None,
    hub: Array | None = None,
    weights: Array | None = None,
) -> Array:
    """Sum products of columns that lie apart over the common people.

    Parameters
    ----------
    aligned : Aligned
    left : local function
        Returns the party's columns, of shape (n, d_k), in the aligned order; d_k may be 0. D is the sum of all d_k.
    right : local function, optional
        Returns rows (n, c), zeros or (n, 0) where the party has nothing. Without it and without `hub`, left' left is meant.
    broadcast : array or dict of arrays, optional
        For both functions.
    bound : Factors, optional
        How far columns reach: scale them to about one by public ranges. Noise needs it, and the bound per record is worked out
        from it. Columns of which nothing is declared have a mean square of at most 4.
    hub : array of shape (n, c) or (n,), optional
        Further right rows, in the order of the last `sum`.
    weights : array of shape (n,), optional
        Not below zero, in the order of the last `sum`: left' diag(weights) left.

    Returns
    -------
    array of shape (D, D) or (D, c)
        Blocks in the order of `aligned.names`. Without noise it is exact but for the rounding of columns, right rows and
        weights to the fixed point that `n` and reaches allow: 22 bits after the point of each of two factors at 70 000 people,
        15 of each of three. Columns that are whole numbers, or multiples of a power of two, are not rounded.

    *Releases* the result, once; a symmetric one counts D (D + 1) / 2 numbers.

    Raises
    ------
    AlignmentRefused (HR-246)
        Fewer people are common than `least`.
    UnboundedSum (HR-210)
        Noise is added, and the largest values of columns are not declared.
    RangeExceeded (HR-243)
        The ring has no room for such sums, before anybody is asked; or columns reach further than declared.
    """
    if aligned.n < aligned.least:
        raise AlignmentRefused(
            f"sums over {aligned.n} people, of whom at least {aligned.least} are to be common.",
            remedy="Align larger lists.",
            asked=False,
        )
    names, mechanism = tuple(aligned.names), aligned._mechanism
    factors = bound if isinstance(bound, Factors) else Factors()
    if weights is not None and (right is not None or hub is not None):
        raise SettingsInvalid("weights with right rows.", remedy="Weights belong to left' diag(weights) left.")
    rows, hub_reach = _of_hub(hub if weights is None else weights, factors.hub, aligned.n)
    crossing = Crossing(
        aligned.n,
        right,
        _each_of(names, factors.left),
        _each_of(names, factors.right),
        hub_reach,
        weights is not None,
    )
    declared: Any = None if isinstance(bound, Factors) else bound
    if mechanism is not None:
        crossing, declared = _behind_noise(crossing, names, mechanism, declared=isinstance(bound, Factors))
        if rows is not None and hub_reach is not None:
            rows = hub_reach.cut(rows)
    else:
        choose(crossing.asked(names, _smallest(crossing, names)))  # refuses reaches for which there is no room
    found: Array = aligned._ask("sum", left, broadcast, Dealing(crossing, rows), None, declared)
    return found if found.ndim == 2 else _symmetric(found)


def _of_hub(rows: Array | None, reach: ColumnReach | None, n: int) -> tuple[Array | None, ColumnReach | None]:
    """The hub's rows as a table, and their reach."""
    if rows is None:
        return None, None
    table = np.asarray(rows, np.float64).reshape(len(rows), -1)
    if len(table) != n or not np.isfinite(table).all():
        raise SettingsInvalid(
            f"rows of the hub of shape {np.shape(rows)} for {n} people.", remedy="One finite row for each person, as in `sum`."
        )
    if reach is not None and reach.largest is not None:
        return table, reach
    largest = np.abs(table).max(0, initial=0.25)
    return table, ColumnReach(
        tuple(2.0 ** math.ceil(math.log2(value)) for value in largest), reach.square if reach else math.inf
    )


def _each_of(
    names: tuple[str, ...], reach: Mapping[str, ColumnReach] | ColumnReach | None
) -> tuple[tuple[str, ColumnReach], ...]:
    if reach is None:
        return ()
    return tuple((name, reach) for name in names) if isinstance(reach, ColumnReach) else tuple(reach.items())


def _smallest(crossing: Crossing, names: tuple[str, ...]) -> Widths:
    """The shapes with the fewest columns that parties may have."""
    hub = 0 if crossing.hub_reach is None or crossing.weighted else len(crossing.hub_reach.largest or ())
    found, told = {}, {name for name, reach in crossing.left_reach if reach.largest is not None}
    known = any(reach.largest for _, reach in crossing.right_reach)
    for name, (left, right) in crossing.declared(names).items():
        rows = right if known or crossing.right is None else max(hub, 1)
        found[name] = left if name in told else 1, rows
    return found


def _behind_noise(
    crossing: Crossing, names: tuple[str, ...], mechanism: Mechanism, *, declared: bool
) -> tuple[Crossing, Bound]:
    """The question with fixed point and bound that go with the mechanism."""
    if not declared:
        raise UnboundedSum(
            f"products are asked for through a channel that adds noise ({mechanism}), and how far their factors reach is not "
            "declared, so the noise has no scale.",
            remedy="bound=Factors(left={party: ColumnReach(largest=(...,))}, ...), from public ranges.",
        )
    bits, bound = choose_private(crossing.asked(names, crossing.declared(names)), mechanism)
    return replace(crossing, bits=bits), bound


def _symmetric(numbers: Array) -> Array:
    """The symmetric matrix of an upper triangle."""
    d = (math.isqrt(8 * len(numbers) + 1) - 1) // 2
    found = np.zeros((d, d), numbers.dtype)
    found[np.triu_indices(d)] = numbers
    found.T[np.triu_indices(d)] = numbers
    return found
