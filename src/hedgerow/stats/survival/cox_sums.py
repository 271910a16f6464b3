"""What a party adds up for a Cox regression: sums of the risk sets of its own strata.

A party's risk sets are its own: no record of another is in them. So the sums over parties are those of the partial
likelihood stratified by party, exactly, and no record's share of them has a bound: with one record more, others weigh less.
`cox_bounds` therefore bounds a party, by the most records that it has. That is a range for numbers, not a sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, linf
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.errors import OutOfRange, RangeExceeded

from ..linear.sums import triangle
from .concordance import KEYS, concordance_sums
from .design import SurvivalDesign
from .risk_sets import RiskSets, Ties

Columns = tuple[tuple[int, ...], ...]
"""For each period, the coefficient that belongs to each column."""

SLACK = 1 + 1e-9


@local
def risk_set_sums(
    beta: Array,
    party: Party,
    rng: object,
    *,
    ties: Ties,
    columns: Columns,
    cuts: tuple[float, ...] = (),
    most: float | None = None,
) -> dict[str, Array]:
    """Add up score, information (upper triangle) and log-likelihood at `beta` (d,), records and events.

    Reads what `survival_design` prepares. A party of more than `most` records refuses.
    """
    check_records(party, most)
    d = len(beta)
    score, information, log_likelihood = np.zeros(d), np.zeros((d, d)), 0.0
    for sets, places, _ in _risk_sets(beta, party, ties, columns, cuts):
        score[places] += sets.score
        information[np.ix_(places, places)] += sets.information()
        log_likelihood += sets.log_likelihood
    events = float(party.w @ (np.asarray(party["y"]) > 0.5))
    return {
        "score": score,
        "information": triangle(information),
        "log_likelihood": np.asarray(log_likelihood),
        "n": np.asarray(float(party.w.sum())),
        "events": np.asarray(events),
    }


@local
def cox_closing(
    beta: Array,
    party: Party,
    rng: object,
    *,
    ties: Ties,
    columns: Columns,
    keys: tuple[str, ...],
    cuts: tuple[float, ...] = (),
    most: float | None = None,
) -> dict[str, Array]:
    """Add up at the estimates what a fit shows besides: `meat` (upper triangle) and `clusters`; `pairs` and `squares` (3,).

    The meat is the sum over clusters of outer products of score residuals; without a column of clusters each record is one.
    Pairs are those of `concordance_sums`, and squares are for their error.
    """
    check_records(party, most)
    d, found = len(beta), dict[str, Array]()
    pairs, expanded = np.zeros(KEYS), repeated(party)
    residuals = np.zeros((len(expanded), d))
    for sets, places, rows in _risk_sets(beta, party, ties, columns, cuts):
        if "meat" in keys:
            residuals[np.ix_(rows, places)] += sets.w[:, None] * sets.score_residuals
        if "pairs" in keys:
            pairs += concordance_sums(sets.rounded())
    if "meat" in keys:
        if "cluster" in party.columns:
            names, place = np.unique(np.asarray(party["cluster"])[expanded], return_inverse=True)
            residuals = np.stack([np.bincount(place, column, minlength=len(names)) for column in residuals.T], axis=-1)
        found |= {"meat": triangle(residuals.T @ residuals), "clusters": np.asarray(float(len(residuals)))}
    if "pairs" in keys:
        found |= {"pairs": pairs[:3], "squares": pairs[3:]}
    return found


@local
def schoenfeld_sums(
    beta: Array,
    party: Party,
    rng: object,
    *,
    ties: Ties,
    columns: Columns,
    logarithm: bool,
    by_time: bool,
    most: float | None = None,
) -> dict[str, Array]:
    """Add up over events: their number, g and g² (3,), residuals r and g r (2, d); g is the time, or its logarithm.

    With `by_time` the information of each event time besides, multiplied by g and by g² (2, upper triangle).
    """
    check_records(party, most)
    d = len(beta)
    first, second, matrices = np.zeros(3), np.zeros((2, d)), np.zeros((2, d, d))
    for sets, _, _ in _risk_sets(beta, party, ties, columns, ()):
        with np.errstate(divide="ignore"):
            g = np.log(sets.times) if logarithm else sets.times
        n, r = sets.events_at, sets.schoenfeld
        first += np.array([n.sum(), n @ g, n @ g**2])
        second += np.stack([r.sum(0), g @ r])
        if by_time:
            matrices += np.stack([sets.information(g), sets.information(g**2)])
    found = {"moments": first, "residuals": second}
    return found | ({"information": triangle(matrices)} if by_time else {})


def cox_bounds(spec: SurvivalDesign, beta: Array, most: float, heaviest: float) -> dict[str, Bound]:
    """Bounds of what a party adds to `risk_set_sums`: columns lie within 1 of zero, so within 2 of one another.

    Parameters
    ----------
    most : float
        Records of a party.
    heaviest : float
        Largest probability weight.
    """
    w = most * heaviest
    away = float(np.abs(beta).sum()) * 2 + 2 * offset_limit(spec)
    likelihood = w * (away + math.log(max(w, 1.0)) + 1.0) + most
    sizes = {"score": 2 * w, "information": w, "log_likelihood": likelihood, "n": most, "events": most}
    return {key: linf(size * SLACK, "party") for key, size in sizes.items()}


def closing_bounds(keys: tuple[str, ...], most: float, heaviest: float) -> dict[str, Bound]:
    """Bounds of what a party adds to `cox_closing`: residuals of all its records add up to at most 4 for each event."""
    sizes = {
        "meat": (4 * most * heaviest) ** 2,
        "clusters": most,
        "pairs": (most * heaviest) ** 2,
        "squares": (most * heaviest) ** 3,
    }
    kept = [*(("meat", "clusters") if "meat" in keys else ()), *(("pairs", "squares") if "pairs" in keys else ())]
    return {key: linf(sizes[key] * SLACK, "party") for key in kept}


def schoenfeld_bounds(farthest: float, by_time: bool, most: float, heaviest: float) -> dict[str, Bound]:
    """Bounds of what a party adds to `schoenfeld_sums`; `farthest` is the largest absolute value of g."""
    g = max(farthest, 1.0)
    sizes = {"moments": most * g * g, "residuals": 2 * most * heaviest * g}
    sizes |= {"information": most * heaviest * g * g} if by_time else {}
    return {key: linf(size * SLACK, "party") for key, size in sizes.items()}


def offset_limit(spec: SurvivalDesign) -> float:
    """Largest absolute value of the offset by declared ranges."""
    low, high = spec.rows.offset_range or (0.0, 0.0)
    return max(abs(low), abs(high))


def check_records(party: Party, most: float | None) -> None:
    """Refuse a party that has more records than were declared, before anything is computed.

    Raises
    ------
    RangeExceeded (HR-243)
    """
    n = float(party.w.sum())
    if most is not None and n > most * SLACK:
        raise RangeExceeded(
            f"this party has {n:g} records, and most={most:g} are declared.",
            remedy="Declare the most that any party has: most=.",
        )


def check_entries(party: Party) -> None:
    """Refuse records that come when their follow-up is over.

    Raises
    ------
    OutOfRange (HR-405)
    """
    late = (party["since"] >= party["time"]) & (party.w > 0)
    if late.any():
        raise OutOfRange(
            f"{late.sum()} records come at or after the end of their own follow-up.",
            remedy="entry= is from when a record is at risk, before its time.",
            asked=True,
        )


def repeated(party: Party) -> Array:
    """Places of the records that count, as often as their weights say, shape (m,).

    Raises
    ------
    OutOfRange (HR-405)
        A weight is no whole number.
    """
    w = np.asarray(party.w, dtype=float)
    kept = np.flatnonzero(w)
    times = w[kept]
    if (times == 1).all():
        return kept
    if not (times == np.round(times)).all():
        raise OutOfRange(
            "weights of records are no whole numbers, and they count repeated records.",
            remedy="Weights that make a sample stand for others: probability=.",
            asked=True,
        )
    return np.repeat(kept, times.astype(np.intp))


def _risk_sets(
    beta: Array, party: Party, ties: Ties, columns: Columns, cuts: tuple[float, ...]
) -> Iterator[tuple[RiskSets, Array, Array]]:
    """The risk sets of each stratum and period, the coefficients that belong to their columns, and the records.

    A record is in a period where it is at risk in it; its event counts in that in which it happens.
    """
    if "since" in party.columns:
        check_entries(party)
    kept = repeated(party)
    X, offset, time = party["X"][kept], np.asarray(party["offset"])[kept], np.asarray(party["time"])[kept]
    event, stratum = np.asarray(party["y"])[kept] > 0.5, np.asarray(party["stratum"])[kept]
    since = np.asarray(party["since"])[kept] if "since" in party.columns else None
    w = np.asarray(party["probability"])[kept] if "probability" in party.columns else np.ones(len(kept))
    if (w < 0).any():
        raise OutOfRange(f"{(w < 0).sum()} weights are below zero.", remedy="Probability weights are above.", asked=True)
    counted = w > 0
    ends = np.array([0.0, *cuts, np.inf])
    for period, of_period in enumerate(columns):
        low, high = ends[period], ends[period + 1]
        places = np.array(of_period, dtype=np.intp)
        inside = counted if period == 0 else counted & (time > low)
        if since is not None:
            inside = inside & (since < high)
        for one in np.unique(stratum[inside]):
            rows = np.flatnonzero(inside & (stratum == one))
            sets = RiskSets(
                X[rows],
                X[rows] @ beta[places] + offset[rows],
                np.minimum(time[rows], high),
                event[rows] & (time[rows] <= high),
                w[rows],
                ties,
                None if since is None else since[rows],
            )
            yield sets, places, rows
