"""Table 1: who was in the study, by group: numbers by mean and deviation, levels by count and share, and what is missing.

    levels    every record adds its weight to its group, and to one level of each category, by group        sum, once
    numbers   n, sum and squares of each column, by group, about the middle of its declared range            sum, once
    missing   records of a group less those that have a value                                                at the server
    medians   of the columns that ask for them, by bisection within each group                               sums, many

A record adds to one group. Of each column those that have a value count; records without a group are left out of the whole
table. People see counts by rule (`hedgerow.stats.table_cells`): where one is small, all are rounded, so that nothing follows
by subtraction.

Releases : counts of groups and of levels by group; n, sum and squares of each column by group. By site every site's own,
           which is a `gather`: no row is hidden then, and each site has agreed to be shown.
Unit     : record.
Source   : standardised differences, Austin 2009. The rule of rounding: totals and parts are never both exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds, l1, l2, linf
from hedgerow.core.declaration import Case, Key, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import PRESENT, Party
from hedgerow.core.question import elementwise, local, minds_missing, travels
from hedgerow.core.whole import BITS, bound_in, whole
from hedgerow.data import complete_cases, load
from hedgerow.data.cases import cases_of, complete
from hedgerow.display import displayed
from hedgerow.errors import SchemaInvalid, SettingsInvalid
from hedgerow.report import Outcome

from .columns import COUNTED, NUMERIC, chosen, heaviest, levels_of, names_of, range_of, schema_of
from .counts import tally
from .quantiles import bisection
from .table_cells import LEAST_SHOWN, TableOne

if TYPE_CHECKING:
    from hedgerow.data import Column, Schema

MEASURED = ("number", "integer")
QUARTERS = (0.25, 0.5, 0.75)
GROUPS, LEVELS = "groups", "levels of "


# ---- at the party ---------------------------------------------------------------------------------------------------
@local(additive=True, stackable=True, holds=True)
@minds_missing
def group_levels(
    broadcast: None,
    party: Party,
    rng: Any,
    *,
    sizes: tuple[tuple[str, int], ...],
    group: str | None,
    n_groups: int,
    bounds: Bounds | None = None,
) -> dict[str, Array]:
    """Count records by group (groups,), and the levels of each column by group (groups * levels,)."""
    codes = _codes(party, group)
    found = {GROUPS: tally(codes, _held(party.w[..., None], bounds, GROUPS)[..., 0], n_groups)}
    for name, size in sizes:
        there = party[name] >= 0  # neither NaN nor the code -1
        w = _held(np.where(there, party.w, 0.0)[..., None], bounds, LEVELS + name)[..., 0]
        found[LEVELS + name] = tally(codes * size + np.where(there, party[name], 0).astype(np.intp), w, n_groups * size)
    return found


@local(additive=True, stackable=True, holds=BITS)
@minds_missing
def group_moments(
    frame: Array,
    party: Party,
    rng: Any,
    *,
    columns: tuple[str, ...],
    group: str | None,
    n_groups: int,
    bounds: Bounds | None = None,
) -> dict[str, Array]:
    """Count values by group, and add up how far they are from a centre, in units of a scale, and the squares of that.

    `frame` (2, k) holds centre and scale; each key has shape (groups, k).
    """
    codes = _codes(party, group)
    x = np.stack([(party[name] - a) / b for name, a, b in zip(columns, *frame, strict=True)], axis=-1)
    there = np.isfinite(x)
    x, w = np.where(there, x, 0.0), party.w[..., None]
    found = {"n": w * there, "sum": w * x, "squares": w * x * x}
    return {key: _by_group(codes, _held(rows, bounds, key), n_groups) for key, rows in found.items()}


@travels
@elementwise
def of_group(columns: Mapping[str, Array], *, group: str, code: int) -> dict[str, Array]:
    """Prepare the records of one group: others have weight zero."""
    inside = np.asarray(columns[group]) == code
    return {PRESENT: inside & np.asarray(columns[PRESENT]) if PRESENT in columns else inside}


def _codes(party: Party, group: str | None) -> Array:
    return np.zeros(party.w.shape, np.intp) if group is None else np.asarray(party[group]).astype(np.intp)


def _held(rows: Array, bounds: Bounds | None, key: str) -> Array:
    return rows if bounds is None else whole(rows, bound_in(bounds, key))


def _by_group(codes: Array, rows: Array, n_groups: int) -> Array:
    return np.stack([tally(codes, rows[..., k], n_groups) for k in range(rows.shape[-1])], axis=-1)


# ---- what is asked --------------------------------------------------------------------------------------------------
@displayed
@dataclass(frozen=True)
class TableState:
    """Totals by group; with sites told apart a group is a site, or a level at a site.

    Attributes
    ----------
    groups : tuple of str
    counts : array of shape (groups,)
        Records.
    levels : dict of arrays
        By column, of shape (groups, levels).
    n, mean, variance : arrays of shape (groups, k)
        Of the columns of numbers, in their order; the variance has n - 1 in the denominator.
    quartiles : dict of arrays
        By column, of shape (groups, 3).
    """

    round: int
    groups: tuple[str, ...]
    counts: Array
    levels: dict[str, Array]
    n: Array
    mean: Array
    variance: Array
    quartiles: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class TablePlan:
    """What a table reads: columns of levels and of numbers, and the group."""

    levels: tuple[Column, ...]
    numbers: tuple[Column, ...]
    group: str | None
    groups: tuple[str, ...]

    @classmethod
    def of(cls, schema: Schema, columns: Sequence[str] | None, group: str | None, medians: Sequence[str]) -> TablePlan:
        """Choose and check columns; nobody is asked."""
        known = chosen(schema, columns, (*COUNTED, *NUMERIC))
        read = tuple(column for column in known if column.name != group)
        if not read:
            raise SchemaInvalid(f"a table by {group!r} has no other column.", remedy="Name the columns to read.")
        groups = ("all",) if group is None else levels_of(chosen(schema, [group], COUNTED)[0])
        numbers = tuple(column for column in read if column.kind in MEASURED)
        if wrong := [name for name in medians if name not in names_of(numbers)]:
            raise SettingsInvalid(f"medians={wrong[:3]} are no numbers of the table.", remedy="Name numbers that it shows.")
        return cls(tuple(column for column in read if column.kind in COUNTED), numbers, group, groups)

    @property
    def frame(self) -> Array:
        """Middle and half of each declared range, shape (2, k); 0 and 1 where there is none."""
        low, high = np.array([range_of(c) or (-1.0, 1.0) for c in self.numbers], float).reshape(-1, 2).T
        return np.stack([(low + high) / 2, np.where(high > low, (high - low) / 2, 1.0)])

    def level_bounds(self, weight: float | None) -> dict[str, Bound] | None:
        """By how much a record moves `group_levels`."""
        keys = (GROUPS, *(LEVELS + column.name for column in self.levels))
        return None if weight is None else dict.fromkeys(keys, l1(weight, "record"))

    def moment_bounds(self, weight: float | None, *, hidden: bool = False) -> dict[str, Bound] | None:
        """By how much a record moves `group_moments`: one group's numbers, each by its weight at most."""
        if weight is None or any(range_of(column) is None for column in self.numbers):
            return None
        reach = weight * (1 + 1e-9)
        one = linf(reach, "record") if hidden else l2(reach * np.sqrt(len(self.numbers)), "record")
        return dict.fromkeys(("n", "sum", "squares"), one)


@program(
    "Table 1: means, deviations, counts and missing values by group, with standardised differences.",
    name="table_one",
    keys={"least": Key(int, LEAST_SHOWN, "where a count is below it, all counts are shown as its multiples", {"ge": 0})},
    outcome=lambda federation, settings, state: show_table(federation, settings, state),
    case=lambda: Case(
        load("heart_failure").take(range(200)),
        {"columns": ["age", "sex", "platelets"], "group": "death_event", "medians": ["age"]},
    ),
)
def table_totals(
    federation: Federation,
    columns: Sequence[str] | None = None,
    group: str | None = None,
    *,
    by_site: bool = False,
    medians: Sequence[str] = (),
    start: TableState | None = None,
) -> Iterator[TableState]:
    """Ask for the totals of Table 1, as `hedgerow.stats.table_one`.

    Yields
    ------
    TableState
        After levels and numbers, and after the medians of each column.
    """
    schema = schema_of(federation)
    plan = TablePlan.of(schema, columns, group, medians)
    if by_site and medians:
        raise SettingsInvalid("medians by site are bisected at each site alone.", remedy="Leave out medians, or by_site.")
    read = complete_cases(federation, [] if group is None else [group], count=group is not None)
    state = start or _first(read, plan, heaviest(schema), by_site=by_site)
    if start is None:
        yield state
    for name in list(medians)[state.round - 1 :]:
        found = [_quartiles(read, plan, code, name) for code in range(len(plan.groups))]
        state = replace(state, round=state.round + 1, quartiles=state.quartiles | {name: np.array(found)})
        yield state


def _first(federation: Federation, plan: TablePlan, weight: float | None, *, by_site: bool) -> TableState:
    settings = {"group": plan.group, "n_groups": len(plan.groups)}
    sizes = tuple((column.name, len(levels_of(column))) for column in plan.levels)
    ask = federation.gather if by_site else federation.sum
    hidden = federation.protection.hides_rows and federation.protection.exact
    counted = ask(partial(group_levels, sizes=sizes, **settings), bound=plan.level_bounds(weight))
    groups = plan.groups
    if by_site:
        inside = "" if plan.group is None else ", "
        groups = tuple(f"{site}{inside}{name if inside else ''}" for site in counted for name in plan.groups)
    counted = _side_by_side(counted, len(plan.groups)) if by_site else counted
    levels = {name: counted[LEVELS + name].reshape(-1, size) for name, size in sizes}
    n = mean = variance = np.zeros((len(groups), 0))
    if plan.numbers:
        local_sums = partial(group_moments, columns=names_of(plan.numbers), **settings)
        sums = ask(local_sums, plan.frame, bound=plan.moment_bounds(weight, hidden=hidden))
        n, mean, variance = _moments(_side_by_side(sums, len(plan.groups)) if by_site else sums, plan.frame)
    return TableState(1, groups, counted[GROUPS].reshape(-1), levels, n, mean, variance)


def _side_by_side(rows: Mapping[str, Mapping[str, Array]], n_groups: int) -> dict[str, Array]:
    """The answers of sites, one below the other: groups are then sites times groups."""
    keys = next(iter(rows.values()))
    return {key: np.concatenate([np.reshape(row[key], (n_groups, -1)) for row in rows.values()]) for key in keys}


def _moments(sums: Mapping[str, Array], frame: Array) -> tuple[Array, Array, Array]:
    n = sums["n"]
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = np.where(n > 0, sums["sum"] / n, np.nan)
        variance = np.where(n > 1, (sums["squares"] - n * shift**2) / (n - 1), np.nan)
    rounding = 1e-13 * np.abs(sums["squares"])  # a constant column has none, whatever rounding left
    variance = np.where(variance * np.abs(n - 1) <= rounding, np.where(np.isnan(variance), np.nan, 0.0), variance)
    return n, frame[0] + frame[1] * shift, frame[1] ** 2 * variance


def _quartiles(federation: Federation, plan: TablePlan, code: int, name: str) -> Array:
    """Quartiles of the records of a group that have a value, which are others than complete cases of the table."""
    column = schema_of(federation)[name]
    one = federation if plan.group is None else federation.prepare(of_group, group=plan.group, code=code)
    if column.optional:
        one = one.prepare(complete, declares=(replace(column, optional=False),), read=(column,))
    *_, state = bisection(one, name, QUARTERS)
    found: Array = state.high if state.n > 0 else np.full(len(QUARTERS), np.nan)
    return found


def show_table(federation: Federation, settings: Mapping[str, Any], state: TableState) -> Outcome:
    """The table, and the differences as dots."""
    found = table_of(federation, settings["columns"], settings["group"], state, least=settings["least"])
    dots = () if found.group is None or len(state.groups) < 2 else (found.dots(),)
    frame = found.to_frame()
    return Outcome(tables={"Table 1": frame}, coefficients=frame, dots=dots, notes=found.notes)


def table_of(
    federation: Federation,
    columns: Sequence[str] | None,
    group: str | None,
    state: TableState,
    *,
    least: int = LEAST_SHOWN,
) -> TableOne:
    """Turn the state of `table_totals` into a table."""
    plan = TablePlan.of(schema_of(federation), columns, group, ())
    by_site = tuple(state.groups) != plan.groups
    return TableOne(
        columns=tuple(c for c in chosen(schema_of(federation), columns, (*COUNTED, *NUMERIC)) if c.name != group),
        group="site" if by_site and group is None else group,
        groups=tuple(state.groups),
        counts=state.counts,
        levels=state.levels,
        numbers=names_of(plan.numbers),
        n=state.n,
        mean=state.mean,
        variance=state.variance,
        quartiles=state.quartiles,
        least=least,
        noisy=federation.protection.noisy,
        cases=None if group is None else cases_of(federation, [group]),
    )


def table_one(
    federation: Federation,
    columns: Sequence[str] | None = None,
    group: str | None = None,
    *,
    by_site: bool = False,
    medians: Sequence[str] = (),
    least: int = LEAST_SHOWN,
) -> TableOne:
    """Table 1: who was in the study, by group.

    Parameters
    ----------
    columns : sequence of str, optional
        Every feature and target by default.
    group : str, optional
        Category or binary column whose levels are the columns of the table, such as a treatment.
    by_site : bool
        Tell sites apart too. Every site's own numbers then leave it, which is a `gather`: where rows are hidden it is refused.
    medians : sequence of str
        Numbers that are shown by median and quartiles besides, which are bisected: about 20 questions for each and each group.
    least : int
        Where a count is below it, all counts are shown as its multiples; 0 shows them as they are.

    Releases
    --------
    See the module; with `medians` also counts below some twenty thresholds for each quartile.

    Raises
    ------
    MissingColumn (HR-403), SchemaInvalid (HR-409), SettingsInvalid (HR-511)
        Before any party is asked.
    UnlawfulChannel (HR-211)
        By site, and rows are hidden.
    """
    if least < 0:
        raise SettingsInvalid(f"least={least} is no count.", remedy="Give 5, or 0 to show every count.")
    *_, state = table_totals(federation, columns, group, by_site=by_site, medians=medians)
    return table_of(federation, columns, group, state, least=least)
