"""`cross`: sums over the common people of products of columns that lie apart, as one question of the waist.

    left' left              correlation, linear regression, principal components, tables of two columns
    left' (right + hub)     means by a column elsewhere, gradients, histograms of boosted trees
    left' diag(weights) left    information matrices

Who sees: parties see uniform words; the hub sees the total, with noise in it where parties add some, and nothing else that is
not uniform (`hedgerow.crypto.cross`). Without noise all see whether columns that an earlier question described alike are still
the same. All follow the protocol: a hub that gave rows of another kind could read columns, and one that shares what it knows
with a party reads them. Parties that share what they know are withstood as long as one does not.

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
from hedgerow.core.bound import Bound, Bounds, l2
from hedgerow.core.events import Unit
from hedgerow.core.mechanism import Mechanism
from hedgerow.core.party import Local, Party
from hedgerow.crypto.cross.bits import ColumnReach, choose, choose_private
from hedgerow.errors import AlignmentRefused, SettingsInvalid, UnboundedSum, UnlawfulChannel

from .crossing import Crossing, Dealing, Widths
from .few import refuse_few, refuse_weights_of_few
from .rows import rows_of

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
    lengths : (float, float), optional
        Largest Euclidean length of one person's row at each party on the left, and at each party and the hub on the right.
        Each cuts its own part and sees no other, so that K parts on the left reach sqrt(K) times as far, and on the right K
        times, less where largest values are declared that reach less far; the noise follows from that.
    """

    left: Mapping[str, ColumnReach] | ColumnReach = field(default_factory=ColumnReach)
    right: Mapping[str, ColumnReach] | ColumnReach | None = None
    hub: ColumnReach | None = None
    lengths: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.lengths is not None and not all(math.isfinite(one) and one > 0 for one in self.lengths):
            raise SettingsInvalid(f"rows of the lengths {self.lengths}.", remedy="Lengths are finite numbers above zero.")

    @property
    def unit(self) -> Unit:
        """Whose presence moves a product."""
        return "record"

    @property
    def radius(self) -> float:
        """By how much a person moves a product of one part with one, before rounding; infinite without lengths."""
        return math.inf if self.lengths is None else self.lengths[0] * self.lengths[1]


def cross(
    aligned: Aligned,
    left: Local,
    right: Local | None = None,
    broadcast: Arrays = None,
    *,
    bound: Bounds | Factors | None = None,
    hub: Array | None = None,
    weights: Array | None = None,
    pairs: bool = True,
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
    pairs : bool
        Whether parties refuse two columns that are affine functions of one another but for fewer than `least` people. Only for
        columns that no formula makes, such as derivatives of a loss, is there a reason not to.

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
    TooFewRecords (HR-604)
        Without noise, a column of the hub's rows singles out fewer people than `least`, or its weights count fewer.
    PartyDeclined (HR-221)
        Without noise, a column of a party does (HR-604 there); or its columns reach further than declared (HR-243).
    UnboundedSum (HR-210)
        Noise is added, and the largest values of columns are not declared.
    RangeExceeded (HR-243)
        The ring has no room for such sums, before anybody is asked.
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
        _each_of(names, factors.left, factors.lengths and factors.lengths[0]),
        _each_of(names, factors.right or ColumnReach(), factors.lengths and factors.lengths[1]) if right is not None else (),
        hub_reach,
        weights is not None,
        factors.lengths,
        _declared(names, factors, right is not None),
        least=aligned.least,
        pairs=pairs,
    )
    declared: Any = bound
    if isinstance(bound, Factors):
        declared = l2(bound.radius, "record") if math.isfinite(bound.radius) else None
    if mechanism is not None:
        if rows is not None and (factors.hub is None or factors.hub.largest is None):
            raise UnboundedSum(
                f"rows of the hub are multiplied behind noise ({mechanism}), and their largest values are not declared.",
                remedy="bound=Factors(..., hub=ColumnReach(largest=(...,))): what rows happen to reach would set the noise.",
            )
        crossing, declared = _behind_noise(crossing, aligned, mechanism, left, broadcast)
        if rows is not None and hub_reach is not None:
            rows = hub_reach.cut(rows, None if crossing.weighted or factors.lengths is None else factors.lengths[1])
    else:
        choose(crossing.asked(names, _smallest(crossing, names)))  # refuses reaches for which there is no room
        if rows is not None:
            refuse_few(rows, aligned.least, "the hub's rows", asked=False)
            refuse_weights_of_few(rows, aligned.least, weights=crossing.weighted)
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
    names: tuple[str, ...], reach: Mapping[str, ColumnReach] | ColumnReach, length: float | None
) -> tuple[tuple[str, ColumnReach], ...]:
    """Reaches by party; a column is as long as its row at most."""
    told = dict.fromkeys(names, reach) if isinstance(reach, ColumnReach) else reach
    if length is None:
        return tuple(told.items())
    whole = {name: told.get(name, ColumnReach()) for name in names}
    return tuple((name, replace(one, square=min(one.square, length**2))) for name, one in whole.items())


def _declared(names: tuple[str, ...], factors: Factors, right: bool) -> tuple[tuple[str, int, int], ...]:
    """Shapes by the declared largest values; nothing where a party's are not declared."""
    if not isinstance(factors.left, Mapping) or (right and not isinstance(factors.right, Mapping)):
        return ()
    there = factors.right if isinstance(factors.right, Mapping) else {}
    found = []
    for name in names:
        reaches = factors.left.get(name), there.get(name)
        if any(reach is not None and reach.largest is None for reach in reaches):
            return ()
        left, rows = (0 if reach is None or reach.largest is None else len(reach.largest) for reach in reaches)
        found.append((name, left, rows))
    return tuple(found)


def _smallest(crossing: Crossing, names: tuple[str, ...]) -> Widths:
    """Shapes that parties may have: as declared, or the smallest."""
    if crossing.shapes:
        return crossing.declared(names)
    hub = 0 if crossing.hub_reach is None or crossing.weighted else len(crossing.hub_reach.largest or ())
    left, right = dict(crossing.left_reach), dict(crossing.right_reach)

    def columns(reach: ColumnReach | None, least: int) -> int:
        return least if reach is None or reach.largest is None else len(reach.largest)

    rows = {name: columns(right.get(name), max(hub, 1)) if crossing.right is not None else 0 for name in names}
    return {name: (columns(left.get(name), 1), rows[name]) for name in names}


def _behind_noise(
    crossing: Crossing, aligned: Aligned, mechanism: Mechanism, left: Local, broadcast: Arrays
) -> tuple[Crossing, Bound]:
    """The question with shapes, fixed point and bound that go with the mechanism; nobody has been asked."""
    names = tuple(aligned.names)
    if not crossing.shapes and crossing.lengths is None:
        raise UnboundedSum(
            f"products are asked for through a channel that adds noise ({mechanism}), and how far their factors reach is not "
            "declared, so the noise has no scale.",
            remedy="bound=Factors(left={party: ColumnReach(largest=(...,))}, ...) from public ranges, or lengths=(..., ...).",
        )
    if not crossing.shapes:
        crossing = replace(crossing, shapes=tuple(_rehearsed(aligned, name, left, crossing.right, broadcast) for name in names))
    bits, bound = choose_private(crossing.asked(names, crossing.declared(names)), mechanism)
    return replace(crossing, bits=bits), bound


def _rehearsed(aligned: Aligned, name: str, left: Local, right: Any, broadcast: Arrays) -> tuple[str, int, int]:
    """A party's columns, by what the functions make of made-up people; noise goes to results of known shapes alone."""
    made_up = aligned.schemas[name].synthetic(aligned.n, np.random.default_rng(0))
    widths = []
    for ask in (left, right):
        if ask is None:
            widths.append(0)
            continue
        try:
            made = ask(broadcast, Party(name, made_up, np.ones(aligned.n)), np.random.default_rng(0))
        except Exception as error:  # whatever a local function makes of people who do not exist
            raise UnlawfulChannel(
                f"what {name} has for the product of columns is not known before parties are asked ({error}), and a shape that "
                "people decide tells of them, whatever the noise.",
                remedy="Declare bound=Factors(left={party: ColumnReach(largest=...)}, ...), or leave the mechanism out.",
            ) from error
        widths.append(rows_of(made, aligned.n, name).shape[1])
    return name, widths[0], widths[1]


def _symmetric(numbers: Array) -> Array:
    """The symmetric matrix of an upper triangle."""
    d = (math.isqrt(8 * len(numbers) + 1) - 1) // 2
    found = np.zeros((d, d), numbers.dtype)
    found[np.triu_indices(d)] = numbers
    found.T[np.triu_indices(d)] = numbers
    return found
