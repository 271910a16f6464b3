"""A site's own intercept, and what the site adds to a regression in which every site has one.

    at a site, given beta:    eta = X beta + offset
    a        <- solves  sum of  w (y - mean(eta + a))  =  0              Newton, held in a bracket; it stays at the site
    r, v     <- y - mean, variance                                       at eta + a
    score         =  sum of  w r x                                       r adds up to zero: the profile's slope
    information   =  sum of  w v (x - x̄)(x - x̄)'                        x̄ weighted by w v: the Schur complement
    deviance      =  sum of  w deviance

The link of the mean target, less the least and largest eta, is a bracket of the intercept. The links are canonical, so a is
unique, and score and information are those of the likelihood profiled over the intercepts.

A site whose targets are all 0 or all 1, or all counts of 0, fits them perfectly in the limit of its intercept: it adds nothing,
whatever beta is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.party import Party
from hedgerow.core.question import local

from ..design import Design
from ..linear.loss import Loss
from ..linear.losses import loss_of
from ..linear.reach import predictor_range
from ..linear.sums import triangle
from ..survival.cox_sums import check_records

SiteFamily = Literal["gaussian", "binomial", "poisson"]
"""Families with a canonical link."""
MOST_STEPS = 200
CONSTANT = 1e-12
"""A column that is this close to its mean, as a share of its largest number, is constant at a site."""


def own_intercept(loss: Loss, y: Array, eta: Array, w: Array) -> float | None:
    """Return the intercept at which means add up to the targets; `None` where it is infinite, or there is no record."""
    total = float(w.sum())
    mean = float(w @ y) / total if total > 0 else math.nan
    if not total > 0 or (loss.binary and not 0 < mean < 1) or (loss.counts and not mean > 0):
        return None
    goal = float(loss.link(np.asarray(mean)))
    low, high = goal - float(eta.max()), goal - float(eta.min())
    at = min(max(goal - float(w @ eta) / total, low), high)
    with np.errstate(all="ignore"):
        for _ in range(MOST_STEPS):
            slope, curvature = (float(w @ loss.part(name, y, eta + at)) for name in ("slope", "curvature"))
            low, high = (low, at) if slope > 0 else (at, high)
            step = -slope / curvature if curvature > 0 else math.inf
            after = at + step if low < at + step < high else (low + high) / 2
            short = abs(after - at) <= 1e-8 * (1 + abs(at))
            at = after
            if short and abs(step) <= 1e-8 * (1 + abs(at)):
                break
    return at


@local
def within_site_sums(beta: Array, party: Party, rng: Any, *, family: SiteFamily, most: float | None = None) -> dict[str, Array]:
    """Add up score, information (upper triangle) and deviance at `beta` (d,), with an intercept of the site's own.

    Besides n, `events` of a binary target and `saturated` of counts; `sites`, whose records are among them, and `silent` sites,
    which add nothing. Reads `X` (n, d), `y` and `offset` (n,).
    """
    check_records(party, most)
    loss, d = loss_of(family), len(beta)
    kept = np.flatnonzero(party.w)
    X, y, w = party["X"][kept], np.asarray(party["y"])[kept], np.asarray(party.w, dtype=float)[kept]
    eta = X @ beta + np.asarray(party["offset"])[kept]
    at = own_intercept(loss, y, eta, w) if np.isfinite(eta).all() else math.nan
    more = [*(("events",) if loss.binary else ()), *(("saturated",) if loss.has("saturated") else ())]
    if at is None:
        keys = {"score": np.zeros(d), "information": np.zeros(d * (d + 1) // 2)}
        keys |= {key: np.zeros(()) for key in ("deviance", "n", *more, "sites")}
        return keys | {"silent": np.asarray(float(len(kept) > 0))}
    with np.errstate(all="ignore"):
        parts = loss.parts(y, eta + at, 0.0)
        v = w * parts["curvature"]()
        away = centred(X, v)
        found = {
            "score": away.T @ (-w * parts["slope"]()),
            "information": triangle(away.T @ (v[:, None] * away)),
            "deviance": np.asarray(2.0 * w @ parts["value"]()),
            "n": np.asarray(w.sum()),
        }
        found |= {"events": np.asarray(w @ y)} if loss.binary else {}
        found |= {"saturated": np.asarray(w @ parts["saturated"]())} if loss.has("saturated") else {}
    return found | {"sites": np.ones(()), "silent": np.zeros(())}


def centred(X: Array, v: Array) -> Array:
    """Columns (n, d) less their means weighted by v (n,); zeros where nothing but rounding is left."""
    found = X - v @ X / v.sum()
    flat = np.abs(found).max(0, initial=0.0) <= CONSTANT * np.abs(X).max(0, initial=0.0)
    return np.where(flat, 0.0, found)


def within_sizes(spec: Design, family: SiteFamily, beta: Array, most: float) -> Mapping[str, float]:
    """What a party of at most `most` records adds to each number of `within_site_sums`; columns lie within 1 of zero.

    At the intercept means add up to the targets, so that the mean of counts is within the range of counts, whatever beta is.
    """
    low, high = spec.response_range or (0.0, 0.0)
    ends = predictor_range(spec, beta)
    spread = ends[1] - ends[0]
    if family == "gaussian":
        away = high - low + spread
        sizes = {"score": most * away, "information": most, "deviance": most * away**2}
    elif family == "binomial":
        sizes = {"score": most, "information": most / 4, "events": most}
        sizes["deviance"] = 2 * most * (math.log(2.0) + math.log(max(most, 2.0)) + spread)
    else:
        top = max(high, 1.0)
        values = 2 * math.log(top) + math.log(max(most, 2.0)) + spread + 2
        sizes = {"score": 2 * most * top, "information": most * top, "deviance": 2 * most * top * values}
        sizes["saturated"] = most * (math.log(2 * math.pi * (top + 1)) / 2 + 1)
    return sizes | {"n": most, "sites": 1.0, "silent": 1.0}
