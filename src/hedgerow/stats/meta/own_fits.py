"""What a site finds by itself: its own model, of its own records, computed anew at every question.

A two-stage analysis needs of a site its estimates and their variances. A new kind of model is a function

    own_fit(party, beta) -> score (d,), information (d, d), deviance

in `sums_of`, of records that its design prepares, and its name in `SiteModel`; Newton's method, refusals and everything that is
done with estimates follow. It has to be deterministic, since a site keeps nothing between questions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.party import Party

from ..difficulties import SINGULAR
from ..linear.newton import GAINS_NOTHING, PATIENCE, VANISHES
from ..linear.sums import linear_sums, symmetric
from ..state import solve
from ..survival.cox_sums import Columns, risk_set_sums
from ..survival.risk_sets import Ties
from .intercepts import centred

SiteModel = Literal["gaussian", "binomial", "poisson", "cox"]
Trouble = Literal["", "few", "separated", "unidentified", "beyond"]
Sums = Callable[[Array], tuple[Array, Array, float]]

LEAST = 10
"""A site with fewer events has no estimate of its own."""
MOST_STEPS = 200
SHORT = 1e-7
"""A step of Newton's method this short, in standard errors, is the last: its square is rounding."""


@dataclass(frozen=True)
class OwnFit:
    """A site's own estimates.

    Attributes
    ----------
    estimate, variance : arrays of shape (d,)
        Zeros and ones where there is a trouble.
    trouble : str
        Why there are none: `few` events, a column `separated` them, columns were `unidentified`, or an estimate lies `beyond`
        what was declared; empty where there are.
    """

    estimate: Array
    variance: Array
    trouble: Trouble = ""

    @classmethod
    def failed(cls, d: int, trouble: Trouble) -> OwnFit:
        return cls(np.zeros(d), np.ones(d), trouble)


def own_fit(model: SiteModel, party: Party, d: int, least: float, ties: Ties = "efron", columns: Columns = ()) -> OwnFit:
    """Fit a model of d coefficients to a party's records.

    Parameters
    ----------
    least : float
        Events that it needs: of a binary target the rarer outcome, of counts their sum, of survival the events; of a linear
        regression records beyond the coefficients.
    ties, columns
        Of a Cox regression, as `hedgerow.stats.survival.cox_sums.risk_set_sums`.
    """
    if not events_of(model, party, d) >= least:
        return OwnFit.failed(d, "few")
    if model == "cox" and not centred(party["X"][party.w > 0], np.ones(int((party.w > 0).sum()))).any(0).all():
        return OwnFit.failed(d, "unidentified")
    try:
        with np.errstate(all="ignore"):
            found = newton_of(sums_of(model, party, ties, columns), d, curved=model != "gaussian")
    except np.linalg.LinAlgError:
        found = "separated"
    if isinstance(found, str):
        return OwnFit.failed(d, found)
    beta, information, deviance = found
    variance = np.diag(solve(information, np.eye(d)))
    if model == "gaussian":
        variance = variance * deviance / (float(np.sum(party.w)) - d)
    good = bool(np.isfinite(beta).all() and np.isfinite(variance).all() and (variance > 0).all())
    return OwnFit(beta, variance) if good else OwnFit.failed(d, "unidentified")


def events_of(model: SiteModel, party: Party, d: int) -> float:
    """How many events a party has that tell of coefficients."""
    w, y = np.asarray(party.w, dtype=float), np.asarray(party["y"])
    if model == "gaussian":
        return float(w.sum()) - d
    if model == "binomial":
        return min(float(w @ (y > 0.5)), float(w @ (y <= 0.5)))
    return float(w @ y) if model == "poisson" else float(w @ (y > 0.5))


def sums_of(model: SiteModel, party: Party, ties: Ties, columns: Columns) -> Sums:
    """Return score, information and deviance of a model as a function of coefficients (d,)."""

    def of_rows(beta: Array) -> tuple[Array, Array, float]:
        keys = ("score", "information", "deviance")
        found: dict[str, Array] = linear_sums({"beta": beta}, party, None, loss=model, keys=keys)
        return found["score"], found["information"], float(found["deviance"])

    def of_risk_sets(beta: Array) -> tuple[Array, Array, float]:
        found: dict[str, Array] = risk_set_sums(beta, party, None, ties=ties, columns=columns)
        return found["score"], symmetric(found["information"]), -2.0 * float(found["log_likelihood"])

    return of_risk_sets if model == "cox" else of_rows


def newton_of(sums: Sums, d: int, *, curved: bool) -> tuple[Array, Array, float] | Trouble:
    """Return coefficients, information and deviance at the maximum, or why there is none.

    Parameters
    ----------
    curved : bool
        Whether the likelihood is no parabola, so that coefficients may be infinite.
    """
    beta = np.zeros(d)
    score, information, deviance = sums(beta)
    if not _independent(information):
        return "unidentified"
    step, crawled = solve(information, score), 0
    length = math.sqrt(max(float(step @ score), 0.0))
    for _ in range(MOST_STEPS):
        trial = beta + step
        there = sums(trial)
        if not there[2] <= deviance * (1 + 1e-10 * math.copysign(1, deviance)):
            if length < SHORT:  # rounding
                return beta, information, deviance
            step = step / 2
            continue
        after = solve(there[1], there[0])
        now = math.sqrt(max(float(after @ there[0]), 0.0))
        slowly = curved and SHORT < now < GAINS_NOTHING and now > length / 3
        fades = slowly and float(after @ information @ after) > VANISHES * float(after @ there[1] @ after)
        crawled = crawled + 1 if fades else 0
        if crawled == PATIENCE:
            return "separated"
        beta, (score, information, deviance), step, shrank = trial, there, after, now < length / 2
        length = now
        if not curved and not shrank:
            return beta, information, deviance
        if curved and length < SHORT:
            beta = beta + step
            return beta, *sums(beta)[1:]
    return "separated"


def _independent(information: Array) -> bool:
    """Whether columns are neither empty nor combinations of one another."""
    size = np.diag(information)
    return bool(np.isfinite(information).all() and (size > 0).all()) and _eigen(information) > SINGULAR


def _eigen(information: Array) -> float:
    """Least eigenvalue of the information, scaled to a unit diagonal."""
    root = np.sqrt(np.diag(information))
    return float(np.linalg.eigvalsh(information / np.outer(root, root))[0])
