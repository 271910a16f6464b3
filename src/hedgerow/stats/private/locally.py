"""Private fits at the parties: each fits its own records exactly and adds its own noise, and the mean of the fits is asked.

    each party:
        b               <- noise with a density                                     objective perturbation; zero of output's
        theta           <- argmin  sum of l(x't, y) + penalty/2 |t|^2 + b't         to a gradient of length `tolerance`
        theta           <- theta + noise on a grid                                  for what the solver leaves, or for all of it
        theta, 1        -> sum
    coef                <- mean of theta over the parties

The iterates stay at the party: a server that saw them would see records without noise. So this is no sum of bounded
contributions, but a plan at a party (`hedgerow.core.mechanism.Plan`), and every record is in one party, whose answer alone it
moves: a record pays for one answer, however many parties there are. The mean of fits of k parties has k times less of the
noise's variance than each of them, and the bias of a penalty on a k-th of the records.

    objective       event (epsilon, delta), or epsilon where delta is zero: `hedgerow.stats.private.objective`
    output          Gaussian noise for a distance of L / penalty + 2 tol / penalty; by its length where delta is zero

A small share of epsilon and delta pays for the noise that covers what a solver and floating-point numbers leave of exact
minima. Every party answers, whatever its records are; settings for which floating-point numbers would be too coarse are refused
by public numbers before a party is asked. Rounding is bounded for parties of up to `MOST_RECORDS` records, 2^29.

Releases : theta (d,) of each party, noise included, and 1; added up, or party by party where nothing hides rows.
State    : none at the parties.
Unit     : record.
Source   : as `hedgerow.stats.private.objective`. The mean of fits: Jayaraman et al. 2018, section 3, there behind secure
           aggregation with noise in shares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.data import load
from hedgerow.data.cuts import names_of
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.costs import costs

from ..columns import schema_of
from ..expressions import is_binary
from ..factors import Number
from ..indicators import cases_of_model
from .fit import PrivateFit, private_fit
from .minima import Method, PlannedMinimum
from .objective import LossName, MarginLoss, objective_penalty
from .rows import Length, UnitRows, unit_rows
from .scoring import judged

OUTPUT_PENALTY = 30.0
"""Penalty of output perturbation at an epsilon of 1 and above, and times 1 / sqrt(epsilon) below; looked at on cardio."""


@displayed
@dataclass(frozen=True)
class LocalState:
    """The mean of the parties' fits.

    Attributes
    ----------
    round : int
        Questions so far, of which there is one.
    coef : array of shape (d,)
    parties : float
        That answered.
    """

    round: int
    coef: Array
    parties: float


@local(private="plan")
def private_minimum(broadcast: None, party: Party, rng: Any, *, plan: PlannedMinimum) -> dict[str, Array]:
    """Return a private minimum of a party's unit rows, (d,), and 1."""
    return {"coef": plan.released(party["X"], party["y"], party.w, rng.entropy), "parties": np.ones(())}


def planned_minimum(
    rows: UnitRows, *, epsilon: float, delta: float, method: Method, loss: LossName, penalty: float | None
) -> PlannedMinimum:
    """Plan a minimum of unit rows; without a penalty, the public one of its method."""
    law = MarginLoss(loss)
    response = rows.spec.response
    if isinstance(response, Number) and not is_binary(response.text, rows.spec.schema):
        raise SettingsInvalid(
            f"the target {response.text!r} is a number, and {loss} losses are of two classes.",
            remedy="Compare it: I(target > 10).",
        )
    if penalty is None:
        known = epsilon if 0 < epsilon < math.inf else 1.0  # others are refused below
        chosen = objective_penalty(known, rows.heaviest * law.curvature)
        penalty = chosen if method == "objective" else OUTPUT_PENALTY / math.sqrt(min(known, 1.0))
    plan = PlannedMinimum(method, epsilon, delta, penalty, law, rows.heaviest)
    plan.refuse_coarse(rows.size)
    return plan


def _score(settings: Mapping[str, Any], state: LocalState, schema: Any, table: Any) -> float:
    """Share of a table's records that are classed right: of those that lack no value, by their weights."""
    rows = UnitRows.of(settings["formula"], schema, **_rows_settings(settings))
    return judged(rows, "logistic", state.coef, table)["accuracy"]


def _rows_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    given = {key: settings.get(key) for key in ("bins", "weights")}
    return given | {"log": names_of(settings.get("log")), "length": settings.get("rows") or "unit"}


@program(
    "Logistic regression or a support vector machine, fitted by each party with noise of its own (Kifer et al. 2012).",
    score=_score,
    metric=lambda schema: ("accuracy", True),
    case=lambda: Case(
        load("breast_cancer").take(range(200)),
        {"formula": "malignant ~ mean_texture + mean_smoothness", "epsilon": 2.0, "delta": 1e-5},
    ),
)
def private_local(
    federation: Federation,
    *,
    formula: str,
    epsilon: float,
    delta: float = 0.0,
    method: Method = "objective",
    loss: LossName = "logistic",
    penalty: float | None = None,
    bins: int | None = None,
    log: list[str] = [],  # noqa: B006
    rows: Length = "unit",
    weights: str | None = None,
    start: LocalState | None = None,
) -> Iterator[LocalState]:
    """Fit a linear model of unit rows at each party, with its own noise, and take the mean.

    Parameters
    ----------
    federation : Federation
        Without a mechanism: parties make their noise themselves.
    formula : str
        Of a binary target, as of `hedgerow.stats.regression`.
    epsilon, delta : float
        Of one answer, for each record of a party; delta 0 for pure epsilon, by noise of a given length.
    method : {"objective", "output"}
        Where noise is added: to the objective, or to its minimum, which costs accuracy and is a baseline.
    loss : {"logistic", "svm"}
        Log-loss, or the smoothed hinge.
    penalty : float, optional
        Times half the squared length of the coefficients, beside each party's sum of losses. By default a public function of
        epsilon: `objective_penalty`, or `OUTPUT_PENALTY`.
    bins : int, optional
        So many public bins for each number of the formula.
    log : list of str
        Columns whose bins have equal widths on a logarithmic scale.
    rows : {"unit", "fixed"}
        By what a row is divided: its own length, or the largest that there can be.
    weights : str, optional
        Column of record weights.
    start : LocalState, optional
        Continue after this state, which is the last one.

    Yields
    ------
    LocalState
        Once.

    Releases
    --------
    A private minimum of each party, (d,), and 1, once.

    Raises
    ------
    SettingsInvalid (HR-511), BudgetInvalid (HR-214), UnlawfulChannel (HR-211)
        A setting is out of its range, the target is a number that is not declared binary, the penalty is too small for epsilon,
        epsilon or the penalty asks for more than floating-point numbers hold, or the channel adds noise besides.
    FormulaInvalid (HR-310), NotBinary (HR-311), MissingColumn (HR-403), UnboundedSum (HR-210)
        Before any party is asked.
    """
    schema = schema_of(federation)
    spec = UnitRows.of(formula, schema, bins=bins, log=names_of(log), length=rows, weights=weights)
    plan = planned_minimum(spec, epsilon=epsilon, delta=delta, method=method, loss=loss, penalty=penalty)
    if start is not None:
        return
    known = cases_of_model(federation, spec.spec, count=False)
    total = known.prepare(unit_rows, spec=spec).sum(partial(private_minimum, plan=plan))
    answered = float(total["parties"])
    yield LocalState(1, total["coef"] / max(answered, 1.0), answered)


def locally(
    federation: Federation,
    formula: str,
    *,
    epsilon: float,
    delta: float = 0.0,
    method: Method = "objective",
    loss: LossName = "logistic",
    penalty: float | None = None,
    bins: int | None = None,
    log: tuple[str, ...] = (),
    rows: Length = "unit",
    weights: str | None = None,
) -> PrivateFit:
    """Fit a linear classifier at each party, with its own noise, and take the mean: `private_local` at once.

    Parameters
    ----------
    rows : {"unit", "fixed"}
        By what a row is divided: its own length, or the largest that there can be.

    Notes
    -----
    Other parameters, what is released and errors as `hedgerow.stats.private.private_local`.

    Returns
    -------
    PrivateFit
        Without intervals.

    Source
    ------
    Kifer, Smith & Thakurta 2012; Redberg, Koskela & Wang 2023; Chaudhuri, Monteleoni & Sarwate 2011; Iyengar et al. 2019.
    """
    spec = UnitRows.of(formula, schema_of(federation), bins=bins, log=log, length=rows, weights=weights)
    before = len(federation.ledger)
    asked = private_local(
        federation,
        formula=formula,
        epsilon=epsilon,
        delta=delta,
        method=method,
        loss=loss,
        penalty=penalty,
        bins=bins,
        log=list(log),
        rows=rows,
        weights=weights,
    )
    (state,) = asked
    plan = planned_minimum(spec, epsilon=epsilon, delta=delta, method=method, loss=loss, penalty=penalty)
    words = f"{plan} at each of {state.parties:g} parties, and the mean of their fits"
    model: Any = loss
    made = private_fit(federation, spec, model, state.coef, method=words, rounds=1, delta=delta, asked_before=before)
    seen = f"{federation.protection.aggregation} aggregation; every party adds noise of its own, so nobody else need be trusted"
    return replace(made, rows=spec, protection=seen, **costs(federation, delta, before))
