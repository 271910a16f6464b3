"""The closest made-up record: how far real records are from it, by sums, and who can tell members by that.

    d(x, z) = mean over columns of  |x - z| / width of a number's declared range,  or  1 where levels differ,  else 0

    server:   made-up records z                       -> parties                  they are public
    members   <- how many training records x have min_z d(x, z) in each interval of public ends, + noise       one question
    others    <- the same of hold-out records: the server's own, or those of other parties
    area      <- the chance that a member is nearer than another

A record lies in one interval: it moves the counts by its weight, l2 and l1. An area of one half says that distances to the
made-up records do not give members away; whoever guesses by the threshold of the best interval gains at most by their largest
difference. A private synthesizer with epsilon holds every such attack to an area near one half, whatever this one shows.

The converse question, whether a made-up record is nearer to a training record than to a hold-out record, needs minima over
records of all parties. These are no sums, and asking for them reveals distances to single people: `nearer_share` computes it
where one process has both tables, in a simulation.

Missing values are a level of their own, at distance one from all numbers and levels.

Releases : the counts of members, and of others where these are asked.
Unit     : record.
Source   : distance to the closest record, Zhao et al. 2021 (CTAB-GAN); membership by distance, Chen et al. 2020 (GAN-Leaks),
           section 5; the distance of mixed columns is that of Gower 1971.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.core.party import Party
from hedgerow.core.question import local, minds_missing
from hedgerow.core.whole import held
from hedgerow.data import Column, Schema, Table, complete_cases
from hedgerow.errors import SchemaInvalid, SettingsInvalid
from hedgerow.privacy.shares import BudgetShares, Share
from hedgerow.report import BarChart
from hedgerow.stats.counts import tally
from hedgerow.trees.noise import ball, deviation

from .metrics import auc_of_counts, shares

if TYPE_CHECKING:
    import pandas

ENDS = (0.0, *(float(f"{end:.4g}") for end in np.geomspace(1e-3, 1.0, 41)))
"""Upper ends of intervals of distance: copies, then forty steps of one sixth more."""
BLOCK = 2**21
"""Distances that are held at once."""

Widths = tuple[tuple[str, float], ...]
"""Names of columns, and what a difference is divided by: zero for levels, which are equal or not."""


@dataclass(frozen=True, repr=False)
class Closeness:
    """Distances of real records to the closest made-up record.

    Attributes
    ----------
    ends : tuple of float
        Upper ends of the intervals, in parts of the declared ranges.
    members, others : array of shape (intervals,)
        Training records, and hold-out records, in each.
    sigma_members, sigma_others : float
        Standard deviation of their noise.
    """

    ends: tuple[float, ...]
    members: Array
    others: Array
    sigma_members: float = 0.0
    sigma_others: float = 0.0

    @property
    def area(self) -> float:
        """The chance that a member is nearer to the made-up records than another, in one half where nobody can tell.

        NaN, as all other numbers, where all weights of one side are zero.
        """
        return math.nan if self._weightless else auc_of_counts(self.members, self.others)

    @property
    def advantage(self) -> float:
        """The largest difference of the two distribution functions: the best guess's true positives less its false ones."""
        if self._weightless:
            return math.nan
        p, q = (shares(np.maximum(counts, 0.0)) for counts in (self.members, self.others))
        return float(np.clip(np.max(np.cumsum(p) - np.cumsum(q), initial=0.0), 0.0, 1.0))

    def quantile(self, level: float) -> tuple[float, float]:
        """The interval's upper end below which this share of members, and of others, lie."""
        if self._weightless:
            return math.nan, math.nan
        found = []
        for counts in (self.members, self.others):
            up_to = np.cumsum(shares(np.maximum(counts, 0.0)))
            found.append(self.ends[min(int(np.searchsorted(up_to, level * up_to[-1])), len(self.ends) - 1)])
        return found[0], found[1]

    def named(self) -> dict[str, float]:
        """Numbers by a name for a report."""
        return {
            "area of the membership attack by distance": self.area,
            "advantage of its best threshold": self.advantage,
            "median distance of training records to the closest made-up record": self.quantile(0.5)[0],
            "median distance of hold-out records": self.quantile(0.5)[1],
        }

    def to_frame(self) -> pandas.DataFrame:
        """Intervals with the share of training and of hold-out records in them."""
        import pandas

        columns = {
            "distance up to": self.ends,
            "training records": shares(self.members),
            "hold-out records": shares(self.others),
        }
        return pandas.DataFrame(columns)

    def chart(self) -> BarChart:
        """Histograms of both kinds of records, as far as nearly all of them are."""
        last = max(2, *(1 + self.ends.index(end) for end in self.quantile(0.999) if not math.isnan(end)), 0)
        parts = [
            (name, shares(np.maximum(side, 0.0))) for name, side in (("training", self.members), ("hold-out", self.others))
        ]
        noisy = "Counts have noise. " if self.sigma_members or self.sigma_others else ""
        copies = " and ".join(f"{100 * part[0]:.1f} % of {name} records" for name, part in parts)
        bars = tuple((name, (float(part[0] + part[1]), *part[2:last].tolist())) for name, part in parts)
        note = (
            f"{noisy}Identical to a made-up record: {copies}. The attack's area is {self.area:.3f}, 0.5 where nobody can tell."
        )
        return BarChart("Distance to the closest made-up record", "distance", bars, ends=(0.0, *self.ends[1:last]), note=note)

    @property
    def _weightless(self) -> bool:
        """Whether nothing was counted on one side, exactly."""
        return any(
            not sigma and not counts.any()
            for counts, sigma in ((self.members, self.sigma_members), (self.others, self.sigma_others))
        )

    def __repr__(self) -> str:
        near, far = self.quantile(0.5)
        return f"Closeness(area {self.area:.4f}, median distance {near:g} of training and {far:g} of hold-out records)"


def closest(
    federation: Federation,
    made: Table,
    holdout: Table | Federation,
    *,
    most: int = 2000,
    ends: Sequence[float] = ENDS,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
) -> Closeness:
    """Count how far real records are from the closest made-up one, beside records that nothing was made from.

    Parameters
    ----------
    federation : Federation
        With the training records.
    made : Table
        Made-up records. They are sent to every party, so they have to be public.
    holdout : Table or Federation
        Records of the same law that the synthesizer has not seen: public ones, or those of other parties, who are asked too.
        Where both are federations they share nothing: each is charged to its own ledger.
    most : int
        Of the made-up records the first so many are used.
    ends : sequence of float
        Ascending upper ends of intervals of distance, public; the last is 1.
    epsilon, delta : float, optional
        A budget for each question. Without it each is asked through the channel as it is.
    noise_at : {"server", "aggregators", "shares", "party"}
        Who adds the noise of that budget.
    least : int
        For shares: as many parties' shares make the whole noise.

    Raises
    ------
    SettingsInvalid (HR-511)
        Ends do not rise to 1; there are no records.
    MissingColumn (HR-403), SchemaInvalid (HR-409)
        One of the three tables lacks a column, or declares other levels, or the same in another order.
    BudgetInvalid (HR-214), SlotFilled (HR-212), UnboundedSum (HR-210)
        See `quality`.
    """
    from .quality import refuse_exact

    points = refuse_ends(ends)
    made = made.take(slice(0, most))
    if not len(made):
        raise SettingsInvalid("no made-up records.", remedy="Draw some: synthesizer.sample(1000).")
    widths = widths_of(federation.schema, made.schema)
    schema = federation.schema
    refuse_other_levels(schema, made.schema, "the made-up table")
    refuse_other_levels(schema, holdout.schema, "the hold-out table", [name for name, _ in widths])
    if isinstance(holdout, Table) and not len(holdout):
        raise SettingsInvalid("no hold-out records.", remedy="Give records that nothing was made from.")

    def ask(whom: Federation) -> tuple[Array, float]:
        refuse_exact(whom, made, epsilon)
        weighed = complete_cases(whom, [], count=False)
        handle = BudgetShares(epsilon, delta, noise_at, least).handles(weighed, {"distances": Share(1.0)}, begins=True)[
            "distances"
        ]
        heaviest = whom.schema.heaviest
        bound = None if heaviest is None else ball(handle, 1, heaviest)
        sigma = deviation(handle, bound, len(points))
        return handle.sum(
            partial(distance_counts, widths=widths, ends=points), grid_of_values(made, widths), bound=bound
        ), sigma

    members, sigma = ask(federation)
    if isinstance(holdout, Table):
        others, of_others = distance_table(holdout, made, widths, points), 0.0
    else:
        others, of_others = ask(holdout)
    return Closeness(points, members, others, sigma, of_others)


@minds_missing
@local(additive=True, holds=True)
def distance_counts(
    made: Array,
    party: Party,
    rng: Any,
    *,
    widths: tuple[tuple[str, float], ...],
    ends: tuple[float, ...],
    bounds: Bounds | None = None,
) -> Array:
    """Count how many records lie how far from the made-up record that is most like them.

    Parameters
    ----------
    made : array of shape (m, f)
        Made-up records, as `grid_of_values`.
    widths, ends
        As `widths_of` and `closest`.
    bounds : Bound, optional
        Behind noise: each record's weight is held to it, in whole steps.

    Returns
    -------
    array of shape (intervals,)
    """
    X = np.stack([_with_nan(party[name], width) for name, width in widths], -1) if len(party.w) else np.zeros((0, len(widths)))
    w = held(np.asarray(party.w, float), bounds)
    return tally(np.searchsorted(ends, distances(X, made, [width for _, width in widths])).clip(0, len(ends) - 1), w, len(ends))


def distances(X: Array, Z: Array, widths: Sequence[float]) -> Array:
    """Distance of each row of X (n, f) to the closest row of Z (m, f), shape (n,), in [0, 1].

    Columns are added one after the other, so that a record's distance follows from its own values, to the last bit.
    """
    found, rows = np.empty(len(X)), max(1, BLOCK // max(len(Z), 1))
    for start in range(0, len(X), rows):
        block = X[start : start + rows]
        total = np.zeros((len(block), len(Z)))
        for j, width in enumerate(widths):
            x, z = block[:, j, None], Z[None, :, j]
            if width:
                total += np.where(np.isnan(x) | np.isnan(z), np.isnan(x) != np.isnan(z), np.minimum(np.abs(x - z) / width, 1.0))
            else:
                total += (x != z) & ~(np.isnan(x) & np.isnan(z))
        found[start : start + rows] = total.min(1, initial=len(widths))
    return found / len(widths)


def distance_table(table: Table, made: Table, widths: Widths, ends: tuple[float, ...]) -> Array:
    """The counts of a table that is at hand, as `distance_counts`; records count one each."""
    found = distances(grid_of_values(table, widths), grid_of_values(made, widths), [width for _, width in widths])
    return tally(np.searchsorted(ends, found).clip(0, len(ends) - 1), np.ones(len(found)), len(ends))


def nearer_share(made: Table, training: Table, holdout: Table, *, seed: int = 0) -> float:
    """Share of made-up records that are nearer to a training record than to any of equally many hold-out records.

    One half is ideal; one means that training records were copied. Ties count half. All three tables are at hand, as in a
    simulation: it is exact, and nobody's to publish under a promise.

    Parameters
    ----------
    seed : int
        Draws as many records from the larger of the two tables as the smaller one has: more records are nearer.

    Raises
    ------
    SettingsInvalid (HR-511), MissingColumn (HR-403), SchemaInvalid (HR-409)
        A table has no records, lacks a column, or declares other levels, or the same in another order.
    """
    widths = widths_of(training.schema, made.schema)
    refuse_other_levels(training.schema, made.schema, "the made-up table")
    refuse_other_levels(training.schema, holdout.schema, "the hold-out table", [name for name, _ in widths])
    size = min(len(training), len(holdout))
    if not size or not len(made):
        raise SettingsInvalid("a table has no records.", remedy="Give three tables with records.")
    Z, scales = grid_of_values(made, widths), [width for _, width in widths]
    first, second = (distances(Z, grid_of_values(table.drawn(size, seed), widths), scales) for table in (training, holdout))
    return float((first < second).mean() + (first == second).mean() / 2)


def widths_of(schema: Schema, made: Schema) -> Widths:
    """What differences of the columns are divided by: declared ranges, and zero for levels."""
    return tuple((column.name, _width(schema[column.name])) for column in made if not column.shape)


def grid_of_values(table: Table, widths: Widths) -> Array:
    """Values of a table as numbers (n, f): codes of levels, NaN where a value is missing."""
    return np.stack([_with_nan(np.asarray(table[name]), width) for name, width in widths], -1)


def refuse_other_levels(schema: Schema, other: Schema, who: str, names: Iterable[str] | None = None) -> None:
    """Refuse a table whose columns are of another kind than the training records', or whose levels have other codes.

    Raises
    ------
    MissingColumn (HR-403), SchemaInvalid (HR-409)
    """
    for name in other.names if names is None else names:
        own, there = schema[name], other[name]
        if not there.shape and (_width(own) > 0, own.levels) != (there.kind in ("number", "integer"), there.levels):
            raise SchemaInvalid(
                f"{name!r} of {who} is declared as {there.kind} with the levels {list(there.levels[:5])}, and with "
                f"{own.kind} and {list(own.levels[:5])} by the training records: codes would be compared, not levels.",
                remedy="Read it with the schema of the training records: Table.from_frame(frame, schema=...).",
            )


def refuse_ends(ends: Sequence[float]) -> tuple[float, ...]:
    """Public ends of intervals, or a refusal.

    Raises
    ------
    SettingsInvalid (HR-511)
    """
    points = tuple(float(end) for end in ends)
    if not points or list(points) != sorted(set(points)) or points[0] < 0 or points[-1] != 1:
        raise SettingsInvalid(
            f"ends={list(ends)[:6]} do not rise to 1.", remedy="Give upper ends of intervals: (0, 0.05, 0.2, 1)."
        )
    return points


def _width(column: Column) -> float:
    if column.kind in ("category", "binary"):
        return 0.0
    if column.low is None or column.high is None:
        raise SettingsInvalid(
            f"{column.name!r} declares no range, so differences have no unit.",
            remedy=f"Declare what values are possible:  table.declare({column.name}=(low, high))",
        )
    return max(column.high - column.low, 1e-300)


def _with_nan(values: Array, width: float) -> Array:
    found = np.asarray(values, float)
    return np.where(found < 0, np.nan, found) if not width else found
