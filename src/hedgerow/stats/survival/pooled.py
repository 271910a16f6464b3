"""Cox regression of pooled records, between parties that may share them: its sums are nearly the records themselves.

    first           how many times of events, then the times                     gather, twice
    for each round:
        beta           -> every party                                            broadcast
        exp(x b), x exp(x b), x x' exp(x b)    of who is in each cell of time              sum
        events, x, and the same three          of who has the event in it                  sum
        beta           <- beta + information^-1 score; risk sets are cumulative sums of cells, at the server

A cell ends at each time at which somebody has the event. Most cells hold one record or a few, and from the sums of one
record its columns can be read: `x exp(x b) / exp(x b)`. It does not help to merge cells: the sums of ten records, asked along
Newton's path, have been solved for all ten to fourteen digits. Nor does it help to hide rows, since the total of a cell is
that of the few records in it. So this is for parties that may share records: they say so by `parties_share_records=True`, and
it is no program of a study. The rule on exact numbers (HR-216) refuses it where a limit holds. Others take `cox`, stratified
by site, or `piecewise_exponential`.

Releases : times of events by party; then in each round, for each cell, 2 + 3 p + p (p + 1) numbers. Nearly the records.
Unit     : none.
Source   : Cox 1972; Efron 1977; Lu et al. 2015 (WebDISCO), whose sums these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.errors import SettingsInvalid, UnlawfulChannel

from ..columns import is_exact, schema_of
from ..linear.newton import until_converged
from ..linear.sums import symmetric
from ..state import NewtonState, solve
from .asking import AskedSurvival, ask_for_rows
from .cox import check_varying
from .cox_fit import CoxFit, cox_fit
from .design import read_survival
from .risk_sets import FARTHEST, Ties
from .stepping import stepped_or_halved


@local
def event_times(broadcast: None, party: Party, rng: object, *, most: int = 0) -> dict[str, Array]:
    """How many different times there are at which records of this party have the event, and `most` of them (most,)."""
    own = np.unique(np.asarray(party["time"])[(np.asarray(party["y"]) > 0.5) & (party.w > 0)])
    return {"count": np.asarray(float(len(own))), "times": np.pad(own[:most], (0, max(most - len(own), 0)))}


@local(additive=True)
def cell_sums(broadcast: dict[str, Array], party: Party, rng: object) -> dict[str, Array]:
    """Add up, in each cell of time, exp(eta) with 1, x and x x' (cells, 1 + p + p (p + 1) / 2): of all, and of events.

    `ends` (J,) of the broadcast are times of events; cell j holds who was followed until end j and not until the next one,
    and cell 0 who was not followed until the first.
    """
    X, beta, ends = party["X"], broadcast["beta"], broadcast["ends"]
    eta = X @ beta + party["offset"]
    rows, columns = np.triu_indices(X.shape[1])
    parts = np.concatenate([np.ones((len(X), 1)), X, X[:, rows] * X[:, columns]], axis=1)
    cell, event = np.searchsorted(ends, party["time"], side="right"), np.asarray(party["y"]) > 0.5
    r = (party.w * np.exp(np.clip(eta, -FARTHEST, FARTHEST)))[:, None] * parts
    own = np.concatenate([np.ones((len(X), 1)), X, eta[:, None]], axis=1) * (party.w * event)[:, None]
    return {
        "all": _by_cell(cell, r, len(ends) + 1),
        "tied": _by_cell(cell[event], r[event], len(ends) + 1),
        "events": _by_cell(cell[event], own[event], len(ends) + 1),
        "n": np.asarray(float(party.w.sum())),
    }


def pooled_cox_sharing_records(
    federation: Federation,
    formula: str,
    *,
    parties_share_records: bool = False,
    time: str | None = None,
    event: str | None = None,
    ties: Ties = "efron",
    offset: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
) -> CoxFit:
    """Cox regression of the pooled records, with one risk set for all sites, between parties that may share records.

    Parameters
    ----------
    federation : Federation
    formula, time, event, ties, offset, tol, max_rounds
        As `hedgerow.stats.cox_newton`; without strata.
    parties_share_records : bool
        That they may. What is asked is nearly their records, and neither wider cells nor hidden rows change that.

    Raises
    ------
    SettingsInvalid (HR-511)
        Nobody says that parties share records.
    UnlawfulChannel (HR-211)
        The channel clips, adds noise or hides rows.
    DisclosureExceeded (HR-216)
        A limit on exact numbers holds, such as `simulate(..., disclosure=1 / 3)`.
    NotIdentified (HR-320), Separated (HR-321), NotConverged (HR-322)
    """
    if parties_share_records is not True:
        raise SettingsInvalid(
            "sums of all risk sets at all event times are nearly the records: most cells of time hold one record or a few.",
            remedy="If these parties may share records, say parties_share_records=True.\n"
            "Otherwise: cox, stratified by site, or piecewise_exponential, whose baseline is one for all.",
        )
    if not is_exact(federation) or federation.protection.hides_rows:
        raise UnlawfulChannel(
            "pooled risk sets are no secret behind this channel either: a total of few records shows them, and noise for sums "
            "over risk sets has no scale.",
            remedy="cox, stratified by site, or piecewise_exponential.",
        )
    spec = read_survival(schema_of(federation), formula, time=time, event=event, offset=offset)
    if spec.strata or spec.cluster:
        raise SettingsInvalid("pooled risk sets have no strata.", remedy="Take cox, whose strata are within sites.")
    asked_before, asked = len(federation.ledger), ask_for_rows(federation, spec)
    ends = _event_times(asked.asked.federation)
    if not len(ends):
        check_varying(spec.names, np.zeros((spec.size, spec.size)), 0.0, 0.0)
    *_, state = _rounds(asked, ends, ties, tol, max_rounds)
    given = {"formula": formula, "time": time, "event": event, "ties": ties, "offset": offset}
    return cox_fit(federation, given, state, asked_before, pooled=True)


def _event_times(federation: Federation) -> Array:
    """The different times of events at any party: asked how many first, since answers have one shape."""
    most = max(int(one["count"]) for one in federation.gather(event_times).values())
    if not most:
        return np.zeros(0)
    found = federation.gather(partial(event_times, most=most)).values()
    return np.unique(np.concatenate([one["times"][: int(one["count"])] for one in found]))


def _rounds(asked: AskedSurvival, ends: Array, ties: Ties, tol: float, max_rounds: int) -> Iterator[NewtonState]:
    def advance(state: NewtonState) -> NewtonState:
        sums: Any = asked.asked.total(cell_sums, {"beta": state.trial, "ends": ends})
        score, information, likelihood = from_cells(sums, ties)
        n, events = float(sums["n"]), float(sums["events"][:, 0].sum())
        kept = {}
        if state.round == 0:
            check_varying(asked.spec.names, information, n, events)
            kept = {"null": np.array(-2 * likelihood), "score_test": np.array(score @ solve(information, score))}
        return stepped_or_halved(
            state, asked.spec.names, score=score, information=information, deviance=-2 * likelihood, n=n, events=events,
            hidden=False, tol=tol, kept=kept,
        )  # fmt: skip

    begun = NewtonState.at_zero(asked.spec.size)
    return until_converged(asked.asked, begun, advance, max_rounds=max_rounds, tol=tol)


def from_cells(sums: dict[str, Array], ties: Ties) -> tuple[Array, Array, float]:
    """Score (p,), information (p, p) and log-likelihood from totals of `cell_sums`."""
    at_risk = sums["all"][::-1].cumsum(0)[::-1][1:]
    tied, own = sums["tied"][1:], sums["events"][1:]
    p = own.shape[1] - 2
    count = own[:, 0]
    d = np.maximum(np.round(count).astype(np.intp), 1)
    if ties == "efron":
        place = np.repeat(np.arange(len(d)), d)
        share = (np.arange(len(place)) - np.repeat(np.cumsum(d) - d, d)) / d[place]
        mass = np.ones(len(place))
    else:
        place, share, mass = np.arange(len(d)), np.zeros(len(d)), count
    z = at_risk[place] - share[:, None] * tied[place]
    means = z[:, 1 : p + 1] / z[:, :1]
    score = own[:, 1 : p + 1].sum(0) - mass @ means
    information = symmetric(mass @ (z[:, p + 1 :] / z[:, :1])) - (means * mass[:, None]).T @ means
    return score, information, float(own[:, -1].sum() - mass @ np.log(z[:, 0]))


def _by_cell(cell: Array, values: Array, n_cells: int) -> Array:
    columns: Sequence[Array] = [np.bincount(cell, column, minlength=n_cells) for column in values.T]
    return np.stack(columns, axis=-1)
