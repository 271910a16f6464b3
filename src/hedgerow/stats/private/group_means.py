"""Private means, rates and differences, with intervals that hold sampling and noise; by one question.

    record adds    a, b u_j, c u_j^2 to the numbers of its group       u_j its value in [-1, 1]; one l2 ball
    n, U, Q        <- sums over the records of a group, with noise of deviations s/a, s/b, s/c
    m              =  U / n                                             a rate is the mean of a binary column
    variance       =  Q / n - m^2 + noise of m                          of a record; 1 - m^2 if binary, and no Q is asked
    of the mean    =  variance / n + (s^2 / b^2 + m^2 s^2 / a^2) / n^2

To first order in the noise of n, which is why a group has an interval only where it holds ten deviations of that noise. A
record is in one group, so groups have noise of their own, and the variance of a difference is the sum of both. Middle and half
width of a range are public; a value beyond counts as the nearer end.

Releases : n, and for each column the sum and, unless it is binary, the sum of squares, of each group; once.
Unit     : record.
Source   : derived here (delta method); Karwa & Vadhan 2018, Covington et al. 2021 for intervals of private means otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds, l2
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import BITS, bound_in, whole
from hedgerow.data import complete_cases, load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid, UnboundedSum
from hedgerow.privacy.level import noise_level
from hedgerow.privacy.shares import BudgetShares, Share
from hedgerow.report import Outcome

from ..columns import COUNTED, NUMERIC, chosen, heaviest, levels_of, range_of, schema_of, upper_end
from ..counts import tally

if TYPE_CHECKING:
    import pandas

COUNT, SUMS, SQUARES = 0.25, 0.65, 0.1
"""Squares of a, of b and of c over all columns together: shares of the budget."""
FEWEST, MOST_UNSURE = 10.0, 0.25
"""Deviations of its noise that a group's n has to be, and how unsure a variance may be, in shares of itself."""


@local(additive=True, stackable=True, holds=BITS, norms=(2,))
def grouped_sums(
    broadcast: None,
    party: Party,
    rng: Any,
    *,
    columns: tuple[tuple[str, float, float, bool], ...],
    parts: tuple[float, float, float],
    group: str,
    levels: int,
    bounds: Bounds | None = None,
) -> Array:
    """Add up 1, values and squares by level of `group`, times `parts`; `columns` are (name, middle, half, squared). Flat."""
    values = [(np.clip(np.nan_to_num((party[name] - middle) / half), -1.0, 1.0), also) for name, middle, half, also in columns]
    a, b, c = parts
    numbers = [np.full(party.w.shape, a), *(b * u for u, _ in values), *(c * u * u for u, also in values if also)]
    rows = np.stack(numbers, axis=-1) * party.w[..., None]
    if bounds is not None:
        rows = whole(rows, bound_in(bounds, ""))
    codes = np.maximum(party[group], 0).astype(np.intp) if group else np.zeros(party.w.shape, np.intp)
    found = np.stack([tally(codes, rows[..., j], levels) for j in range(rows.shape[-1])], axis=-1)
    return found.reshape(*found.shape[:-2], -1)


@displayed
@dataclass(frozen=True)
class GroupSumsState:
    """Sums by group, as released and divided by their parts: `totals` of shape (groups, 1 + columns + squares)."""

    round: int
    totals: Array


@dataclass(frozen=True)
class MeansPlan:
    """Means as they will be asked; made by `MeansPlan.of`."""

    columns: tuple[tuple[str, float, float, bool], ...]
    group: str
    levels: tuple[str, ...]
    weight: float
    budget: BudgetShares

    @classmethod
    def of(cls, schema: Any, settings: Mapping[str, Any]) -> MeansPlan:
        """Read the settings of `private_means`; nobody is asked."""
        if settings["epsilon"] is not None and not settings["delta"]:
            raise SettingsInvalid(
                "intervals follow from Gaussian noise, and without a delta it is Laplace.", remedy="delta=1e-5"
            )
        read, weight, columns = chosen(schema, settings["columns"], NUMERIC), heaviest(schema), []
        for column in read:
            ends = range_of(column)
            if ends is None or weight is None:
                raise UnboundedSum(f"{column.name!r} declares no range, so a mean of it has no bound.", remedy="Declare one.")
            half = (ends[1] - ends[0]) / 2 or 1.0
            columns.append((column.name, sum(ends) / 2, half, column.kind != "binary"))
        group = settings["group"] or ""
        levels = levels_of(*chosen(schema, [group], COUNTED)) if group else ("all",)
        budget = BudgetShares(settings["epsilon"], settings["delta"], settings["noise_at"], settings["least"])
        return cls(tuple(columns), group, tuple(levels), float(weight or 1.0), budget)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(name for name, *_ in self.columns)

    @property
    def parts(self) -> tuple[float, float, float]:
        """a, b and c: their squares, times how many numbers have them, add up to 1."""
        k, squared = len(self.columns), sum(also for *_, also in self.columns)
        rest = SUMS + (0.0 if squared else SQUARES)
        return math.sqrt(COUNT), math.sqrt(rest / k), math.sqrt(SQUARES / squared) if squared else 0.0

    @property
    def bound(self) -> Bound:
        """Of what one record adds."""
        return l2(self.weight * (1 + 1e-9), "record")

    def handle(self, federation: Federation, begins: bool = False) -> Federation:
        """The federation as it is asked."""
        if federation.expected_size < federation.size:
            raise SettingsInvalid("these are some of the parties, and parties differ.", remedy="Ask all parties.")
        read = [*self.names, *([self.group] if self.group else [])]
        known = complete_cases(federation, read, count=self.budget.epsilon is None)
        found = self.budget.handles(known, {"sums": Share(1.0)}, begins=begins)["sums"]
        if found.protection.law not in (None, "gaussian", "skellam"):
            raise SettingsInvalid(
                f"intervals follow from Gaussian noise, and this is {found.protection.mechanism}.",
                remedy="Protect by Gaussian noise, or give epsilon and delta.",
            )
        return found

    def ask(self, handle: Federation) -> GroupSumsState:
        """Ask for the sums."""
        question = partial(grouped_sums, columns=self.columns, parts=self.parts, group=self.group, levels=len(self.levels))
        return GroupSumsState(1, handle.sum(question, bound=self.bound).reshape(len(self.levels), -1) / self.sizes)

    @property
    def sizes(self) -> Array:
        """The part of each number of a group, shape (numbers,)."""
        k, squared = len(self.columns), sum(also for *_, also in self.columns)
        return np.repeat(self.parts, [1, k, squared])

    def means(self, federation: Federation, state: GroupSumsState) -> PrivateMeans:
        """Means with their errors, of what was released."""
        handle, size = self.handle(federation), len(self.levels) * len(self.sizes)
        noise = noise_level(handle, self.bound, "", size)
        a, b, c = (noise / part if part else 0.0 for part in self.parts)
        k = len(self.columns)
        n, sums, squares = state.totals[:, :1], state.totals[:, 1 : 1 + k], np.ones((len(self.levels), k)) * state.totals[:, :1]
        squares[:, [also for *_, also in self.columns]] = state.totals[:, 1 + k :]
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.clip(sums / n, -1.0, 1.0)
            of_noise = (b**2 + mean**2 * a**2) / n**2
            variance = np.clip(squares / n - mean**2 + of_noise, 0.0, 1 - mean**2)
            whole_variance = variance / np.maximum(n - 1, 1.0) + of_noise
            unsure = np.where([also for *_, also in self.columns], c / n**2 / np.maximum(whole_variance, 1e-300), 0.0)
        told = (n >= max(FEWEST * a, 2.0)) & (unsure <= MOST_UNSURE)
        middle, half = np.array([[middle, half] for _, middle, half, _ in self.columns]).T
        error = np.where(told, np.sqrt(whole_variance), np.nan) * half
        return PrivateMeans(self.names, self.group, self.levels, n[:, 0], middle + half * mean, error)


@displayed
@dataclass(frozen=True, eq=False)
class PrivateMeans:
    """Means and rates of groups as released, with errors that hold sampling and noise.

    Attributes
    ----------
    names : tuple of str
        Columns.
    group : str
        Column of the groups; empty where all are one.
    levels : tuple of str
    n : array of shape (groups,)
        Records, as released.
    mean, se_ : arrays of shape (groups, columns)
        In the columns' own units; errors are NaN where the noise leaves no interval.
    """

    names: tuple[str, ...]
    group: str
    levels: tuple[str, ...]
    n: Array
    mean: Array
    se_: Array

    def conf_int(self, level: float = 0.95) -> Array:
        """Normal intervals of the means, shape (groups, columns, 2)."""
        reach = float(ndtri(upper_end(level))) * self.se_
        return np.stack([self.mean - reach, self.mean + reach], axis=-1)

    def difference(self, one: str, other: str, level: float = 0.95) -> pandas.DataFrame:
        """Return means of one group less those of another, with errors and intervals: one row for each column.

        Raises
        ------
        SettingsInvalid (HR-511)
            There is no such group.
        """
        import pandas

        if unknown := [name for name in (one, other) if name not in self.levels]:
            raise SettingsInvalid(f"no group {unknown[0]!r}.", remedy=f"Groups are {', '.join(self.levels)}.")
        i, j = self.levels.index(one), self.levels.index(other)
        found, error = self.mean[i] - self.mean[j], np.hypot(self.se_[i], self.se_[j])
        reach = float(ndtri(upper_end(level))) * error
        table = {"difference": found, "se": error, "low": found - reach, "high": found + reach}
        return pandas.DataFrame(table, index=pandas.Index(self.names, name="column"))

    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Return one row for each group and column: n, mean, error and interval."""
        import pandas

        ends, k = self.conf_int(level).reshape(-1, 2), len(self.names)
        index = pandas.MultiIndex.from_product([self.levels, self.names], names=[self.group or "group", "column"])
        table = {
            "n": np.repeat(self.n, k),
            "mean": self.mean.ravel(),
            "se": self.se_.ravel(),
            "low": ends[:, 0],
            "high": ends[:, 1],
        }
        return pandas.DataFrame(table, index=index)


def _show(federation: Federation, settings: Mapping[str, Any], state: GroupSumsState) -> Outcome:
    """Means with their intervals."""
    plan = MeansPlan.of(schema_of(federation), settings)
    return Outcome.of_table("Means", plan.means(federation, state).to_frame().reset_index())


@program(
    "Means and rates of groups with intervals that hold the noise of the release, by one question.",
    outcome=_show,
    case=lambda: Case(
        load("heart_failure").take(range(200)),
        {"columns": ["age", "death_event"], "group": "sex", "epsilon": 4.0, "delta": 1e-5},
    ),
)
def private_means(
    federation: Federation,
    *,
    columns: Sequence[str],
    group: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    start: GroupSumsState | None = None,
) -> Iterator[GroupSumsState]:
    """Ask once for what means with intervals need: see the module.

    Parameters
    ----------
    federation : Federation
        Whose schema declares the range of every column.
    columns : sequence of str
        Numbers, integers or binary columns, whose means are rates.
    group : str, optional
        Category or binary column.
    epsilon, delta : float, optional
        The budget; without epsilon the channel's noise, which has to be Gaussian, is used as it is.
    noise_at : {"server", "aggregators", "shares", "party"}
        Who adds the noise of a budget.
    least : int
        For noise in shares: as many parties' shares make the whole.
    start : GroupSumsState, optional
        Continue after this state.

    Yields
    ------
    GroupSumsState
        Once.

    Raises
    ------
    UnboundedSum (HR-210), MissingColumn (HR-403), SchemaInvalid (HR-409)
        A column has no range, is unknown, or is of another kind.
    SettingsInvalid (HR-511), BudgetInvalid (HR-214), SlotFilled (HR-212)
        Noise that is not Gaussian, a budget that is none, or a cohort of some of the parties; before anybody is asked.

    Releases
    --------
    See the module.
    """
    given = {"columns": columns, "group": group, "epsilon": epsilon, "delta": delta, "noise_at": noise_at, "least": least}
    plan = MeansPlan.of(schema_of(federation), given)
    handle = plan.handle(federation, begins=start is None)
    if start is None:
        yield plan.ask(handle)


def means(
    federation: Federation,
    columns: Sequence[str],
    *,
    group: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
) -> PrivateMeans:
    """Means and rates, of all records or by group, with intervals that hold sampling and noise: `private_means` at once.

    Parameters
    ----------
    columns : sequence of str
        Numbers, integers or binary columns, whose means are rates.
    group : str, optional
        Category or binary column; `difference` of the result compares two of its levels.
    epsilon, delta : float, optional
        The budget; without epsilon the channel's noise, which has to be Gaussian, is used as it is.
    noise_at : {"server", "aggregators", "shares", "party"}
        Who adds the noise of a budget.
    least : int
        For noise in shares: as many parties' shares make the whole.

    Notes
    -----
    Releases and errors as `private_means`.
    """
    given: dict[str, Any] = {
        "columns": columns,
        "group": group,
        "epsilon": epsilon,
        "delta": delta,
        "noise_at": noise_at,
        "least": least,
    }
    *_, state = private_means(federation, **given)
    return MeansPlan.of(schema_of(federation), given).means(federation, state)
