"""What sites are asked for in a meta-analysis: how many have estimates, sums over their estimates, and, agreed, the estimates.

Where rows are hidden a site's estimates have to lie in a declared range, which follows from declared columns:

    variance   not below the inverse of the largest information that so many records can have
    estimate   of a column from zero to its limit, not beyond 100 on the scale of logarithms, nor beyond 100 ranges of a
               linear regression's target

A site beyond adds nothing, and is counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.party import Party
from hedgerow.core.question import local

from ..survival.cox_sums import Columns, check_records
from ..survival.risk_sets import Ties
from .combining import KEYS, EffectSums, site_terms
from .own_fits import OwnFit, SiteModel, own_fit

TROUBLES = ("few", "separated", "unidentified", "beyond")
LEAST_SHOWN = 10
"""A site with fewer events is not drawn."""
FARTHEST = 100.0
"""Logarithms of ratios, for a column from zero to its limit, lie within this of zero."""
SMALLEST_SPREAD = 1e-3
"""Residuals of a linear regression are at least this share of the target's range."""


@dataclass(frozen=True)
class Within:
    """Where a site's estimates lie, by what is declared, in units of the columns as asked.

    Attributes
    ----------
    least : float
        Variance.
    farthest : float
        Estimate, from zero; and error.
    """

    least: float
    farthest: float

    @classmethod
    def of(cls, model: SiteModel, most: float, target: tuple[float, float]) -> Within:
        """By the most records of a party and the target's range."""
        width = max(target[1] - target[0], 1e-300)
        if model == "gaussian":
            return cls((SMALLEST_SPREAD * width) ** 2 / most, FARTHEST * width)
        return cls(1 / (most * {"binomial": 0.25, "poisson": max(target[1], 1.0), "cox": 1.0}[model]), FARTHEST)

    def sizes(self, t: Array, precision: float, known: Sequence[EffectSums] = ()) -> Mapping[str, float]:
        """What a site adds to each of the sums, at variances t between sites (p, m).

        Totals at t = 0 bound every site: its w is at most their sum, the `precision`, its w y² about the mean at most Q, where
        that is `known`.
        """
        w = min(1 / self.least, 2 * precision)
        wyy = 4 * self.farthest**2 * w
        if known:
            wyy = min(wyy, 2 * max(float(one.at(np.flatnonzero(one.t == 0)[-1:]).q[0]) for one in known) + 1.0)
        ends = (1 / w, self.farthest**2 + float(t.max()))
        wy = math.sqrt(w * wyy)
        values = (w, wy, wyy, w**2, w * wy, w * wyy, max(abs(math.log(end)) for end in ends))
        return dict(zip(KEYS, values, strict=True)) | {"k": 1.0}

    def holds(self, fit: OwnFit) -> bool:
        """Whether estimates and variances are in the range."""
        inside = (np.abs(fit.estimate) <= self.farthest).all() and (fit.variance <= self.farthest**2).all()
        return bool(inside and (fit.variance >= self.least).all())


def _fitted(party: Party, d: int, least: float, ends: tuple[float, float] | None, most: float | None, own: Any) -> OwnFit:
    """A party's own fit, within the declared range where there is one."""
    check_records(party, most)
    fit = own_fit(party=party, d=d, least=least, **own)
    return fit if fit.trouble or ends is None or Within(*ends).holds(fit) else OwnFit.failed(d, "beyond")


@local
def count_sites(
    broadcast: None,
    party: Party,
    rng: Any,
    *,
    model: SiteModel,
    d: int,
    least: float,
    ends: tuple[float, float] | None = None,
    most: float | None = None,
    ties: Ties = "efron",
    columns: Columns = (),
) -> dict[str, Array]:
    """Count sites that have estimates of their own, and those that have none, by their trouble (4,); with n of the former."""
    fit = _fitted(party, d, least, ends, most, {"model": model, "ties": ties, "columns": columns})
    here = not fit.trouble
    return {
        "fitted": np.asarray(float(here)),
        "troubles": np.array([float(fit.trouble == one) for one in TROUBLES]),
        "n": np.asarray(float(np.sum(party.w)) if here else 0.0),
    }


@local
def precision_sums(
    broadcast: None, party: Party, rng: Any, *, coefficients: tuple[int, ...], **settings: Any
) -> dict[str, Array]:
    """Add up w = 1 / v of each of p coefficients: what later sums are measured against, where rows are hidden."""
    found: dict[str, Array] = effect_sums(
        {"t": np.zeros((len(coefficients), 1)), "centre": np.zeros(len(coefficients))}, party, rng,
        coefficients=coefficients, **settings,
    )  # fmt: skip
    return {"w": found["w"][:, 0]}


@local
def effect_sums(
    broadcast: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    model: SiteModel,
    d: int,
    least: float,
    coefficients: tuple[int, ...],
    ends: tuple[float, float] | None = None,
    most: float | None = None,
    ties: Ties = "efron",
    columns: Columns = (),
    keys: tuple[str, ...] = KEYS,
) -> dict[str, Array]:
    """Add up `keys` of the sums of `combining` of p coefficients, at variances `t` (p, m) and a `centre` (p,); and sites."""
    fit = _fitted(party, d, least, ends, most, {"model": model, "ties": ties, "columns": columns})
    chosen = list(coefficients)
    found = site_terms(fit.estimate[chosen], fit.variance[chosen], broadcast["t"], broadcast["centre"])
    sums = {key: np.zeros_like(found[key]) if fit.trouble else found[key] for key in keys}
    return sums | {"k": np.asarray(float(not fit.trouble))}


@local
def own_effects(
    broadcast: None,
    party: Party,
    rng: Any,
    *,
    model: SiteModel,
    d: int,
    least: float,
    coefficients: tuple[int, ...],
    most: float | None = None,
    ties: Ties = "efron",
    columns: Columns = (),
) -> dict[str, Array]:
    """A site's own estimates and their variances (p,); zeros where there are none, or fewer than ten events."""
    fit = _fitted(party, d, max(least, LEAST_SHOWN), None, most, {"model": model, "ties": ties, "columns": columns})
    chosen = list(coefficients)
    nothing = np.zeros(len(chosen))
    if fit.trouble:
        return {"estimate": nothing, "variance": nothing}
    return {"estimate": fit.estimate[chosen], "variance": fit.variance[chosen]}
