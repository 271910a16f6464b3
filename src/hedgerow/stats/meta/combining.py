"""Effects of several sites put together, from sums over the sites alone.

    w = 1 / (v + t)      of a site with estimate y and variance v, at a variance t between sites

    sums over sites, at some t:   w, w y, w y², w², w² y, w² y², log(v + t)
    mean        =  sum w y / sum w                         error  1 / sqrt(sum w);  t = 0: fixed effect
    Q           =  sum w y² - (sum w y)² / sum w           at t = 0: Cochran's
    tau² (DL)   =  (Q - (k - 1)) / (sum w - sum w² / sum w)        zero where below
    tau² (REML) =  root of    sum w² (y - mean)²  -  sum w  +  sum w² / sum w
    error (HK)  =  error  x  sqrt(Q(t) / (k - 1))          Hartung-Knapp; not below the ordinary one
    prediction  =  mean  +-  t(k - 2) sqrt(tau² + error²)

Sums are asked at t = 0 first, which tells the scale; then at eight t at once, of which six lie where the slope of the
likelihood changes its sign, until a polynomial through them has the root to rounding. The others are t = 0 and that of
DerSimonian and Laird, who need these two alone.

Source : DerSimonian & Laird 1986; Viechtbauer 2005 (REML); Hartung & Knapp 2001; Röver, Knapp & Friede 2015 (not below the
         ordinary error); Higgins, Thompson & Spiegelhalter 2009 (prediction).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from hedgerow.core.arrays import Array
from hedgerow.errors import NotConverged, NotIdentified

from ..polynomials import through_points
from .effect import Between, CombinedEffect

KEYS = ("w", "wy", "wyy", "ww", "wwy", "wwyy", "log")
MOMENTS = ("w", "wy", "wyy", "ww")
"""All that DerSimonian and Laird need, at t = 0."""
MEANS = ("w", "wy", "wyy")
"""And at their variance between sites."""
NODES = 6
"""Of the points of later rounds so many are in the bracket; the others are zero and that of DerSimonian and Laird."""
NARROW = 0.01
"""Six points this close, as a share of the distance to the next pole, make a polynomial exact to rounding."""
NARROW_HIDDEN = 0.1
NEAR = 2.5
"""The two estimates of the variance between sites usually differ by less than this factor."""
MOST_ROUNDS = 12


def site_terms(estimate: Array, variance: Array, t: Array, centre: Array) -> dict[str, Array]:
    """What one site adds: of coefficients (p,), at variances t (p, m); estimates are measured from a centre (p,)."""
    w, y = 1.0 / (variance[:, None] + t), (estimate - centre)[:, None]
    terms = (w, w * y, w * y**2, w**2, w**2 * y, w**2 * y**2, -np.log(w))
    return dict(zip(KEYS, terms, strict=True))


@dataclass(frozen=True)
class EffectSums:
    """Sums of one coefficient over k sites at m variances between sites.

    Attributes
    ----------
    t : array of shape (m,)
    sums : array of shape (7, m)
        In the order of `KEYS`.
    """

    k: int
    t: Array
    sums: Array

    def __getitem__(self, key: str) -> Array:
        found: Array = self.sums[KEYS.index(key)]
        return found

    def at(self, places: Array) -> EffectSums:
        """The same at some of the points."""
        return EffectSums(self.k, self.t[places], self.sums[:, places])

    # ---- what follows -----------------------------------------------------------------------------------------------
    @property
    def mean(self) -> Array:
        """From the centre, shape (m,)."""
        found: Array = self["wy"] / self["w"]
        return found

    @property
    def q(self) -> Array:
        """Weighted squares about the mean."""
        found: Array = np.maximum(self["wyy"] - self["wy"] * self.mean, 0.0)
        return found

    @property
    def log_likelihood(self) -> Array:
        """Restricted, with all its constants."""
        constant = (math.log(self.k) - (self.k - 1) * math.log(2 * math.pi)) / 2
        found: Array = constant - (self["log"] + np.log(self["w"]) + self.q) / 2
        return found

    @property
    def slope(self) -> Array:
        """Twice the derivative of the restricted log-likelihood."""
        mean, w = self.mean, self["w"]
        found: Array = self["wwyy"] - 2 * mean * self["wwy"] + mean**2 * self["ww"] - w + self["ww"] / w
        return found

    # ---- at t = 0 ---------------------------------------------------------------------------------------------------
    @property
    def dersimonian_laird(self) -> float:
        """Between-site variance by moments, from the last point at zero."""
        zero = self.at(np.flatnonzero(self.t == 0)[-1:])
        free = zero["w"] - zero["ww"] / zero["w"]
        return max(0.0, float(((zero.q - (self.k - 1)) / free)[0]))

    @property
    def pole(self) -> float:
        """A variance that no site's is below."""
        return float(1 / np.sqrt(self["ww"][np.flatnonzero(self.t == 0)[-1]]))


@dataclass(frozen=True)
class Search:
    """Where the likelihood of the between-site variance has its maximum, as far as it is known.

    Attributes
    ----------
    low, high : float
        It lies between; both zero where it is at zero.
    """

    low: float
    high: float


def bracket(known: EffectSums) -> Search:
    """Return the bracket of the highest maximum, of those that the slopes show."""
    order = np.argsort(known.t, kind="stable")
    one = known.at(order)
    t, slope, height = one.t, one.slope, one.log_likelihood
    found = [(height[0], Search(0.0, 0.0))] if slope[0] <= 0 else []
    for i in np.flatnonzero((slope[:-1] > 0) & (slope[1:] <= 0)):
        found.append((max(height[i], height[i + 1]), Search(float(t[i]), float(t[i + 1]))))
    if slope[-1] > 0:
        found.append((height[-1], Search(float(t[-1]), 100 * float(t[-1]) + known.pole + 10 * known.dersimonian_laird)))
    return max(found, key=lambda pair: pair[0])[1]


def next_points(known: EffectSums, *, hidden: bool = False) -> Array:
    """Return the eight variances at which sums are wanted next; of `hidden` rows farther apart than fixed-point steps."""
    where, pole = bracket(known), known.pole
    if where.high == 0.0:
        nodes = pole * np.array([0.01, 0.05, 0.2, 0.5, 1.0, 2.0])
        return np.concatenate([nodes, [0.0, known.dersimonian_laird]])
    low, high, root = where.low, where.high, _root(known.at(np.arange(len(known.t))[-8:]), where)
    reach = (NARROW_HIDDEN if hidden else NARROW) * (low + pole)
    if len(known.t) == 1 and known.dersimonian_laird > 0:
        low, high = known.dersimonian_laird / NEAR, known.dersimonian_laird * NEAR
    if root is not None and high - low > 2 * reach:
        low, high = max(low, root - reach), min(high, root + reach)
    angle = (2 * np.arange(NODES) + 1) * np.pi / (2 * NODES)
    share = (1 - np.cos(angle) / np.cos(angle[0])) / 2  # from end to end
    nodes = np.exp(np.log(low + pole) + share * (np.log(high + pole) - np.log(low + pole))) - pole
    return np.concatenate([np.clip(nodes, low, high), [0.0, known.dersimonian_laird]])


def _root(last: EffectSums, where: Search) -> float | None:
    """Where the slope is zero by the last points in the bracket; `None` where they do not tell."""
    nodes = last.at(np.arange(min(NODES, len(last.t))))
    if len(nodes.t) < NODES or len(np.unique(nodes.t)) < NODES:
        return None
    pole, change = last.pole, np.flatnonzero((nodes.slope[:-1] > 0) & (nodes.slope[1:] <= 0))
    if not len(change) or not (np.diff(nodes.t) > 0).all() or nodes.t[-1] > 100 * (nodes.t[0] + pole):
        return None
    u, heights = np.log(nodes.t + pole), nodes.slope * (nodes.t + pole)
    i = int(change[-1])
    if nodes.t[i] < where.low or nodes.t[i + 1] > where.high or nodes.slope[i + 1] == 0:
        return float(nodes.t[i + 1]) if nodes.slope[i + 1] == 0 else None
    at = brentq(lambda at: float(through_points(u, heights, at)), u[i], u[i + 1], xtol=1e-15)
    return float(np.exp(at) - pole)


def is_known(known: EffectSums, *, hidden: bool = False) -> bool:
    """Whether the last eight points tell the between-site variance to rounding."""
    if len(known.t) < 8:
        return False
    last = known.at(np.arange(len(known.t))[-8:])
    where = bracket(known)
    if where.high == 0.0:
        return bool((last.t[:NODES] <= 2.01 * known.pole).all())
    nodes = last.t[:NODES]
    close = nodes[-1] - nodes[0] <= 2.02 * (NARROW_HIDDEN if hidden else NARROW) * (nodes[0] + known.pole)
    return bool(close and _root(last, where) is not None)


def effect_of(name: str, known: EffectSums, centre: float, units: float = 1.0, between: Between = "reml") -> CombinedEffect:
    """Return what the last points tell; of two sites nothing but the fixed effect.

    Parameters
    ----------
    centre : float
        From which estimates were measured.
    units : float
        By which estimates are divided.
    between : {"reml", "dl"}
        How the variance between sites is estimated; of "dl" the last point is at it.
    """
    last = known.at(np.arange(len(known.t))[-8:])
    fixed = last.at(np.flatnonzero(last.t == 0)[-1:])
    if known.k < 3:
        return CombinedEffect(name, known.k, *_mean(fixed, centre, units), float(fixed.q[0]))
    moments = last.at(np.array([len(last.t) - 1]))
    by_moments = (
        float(moments.t[0]) / units**2, *_mean(moments, centre, units), float(moments.q[0]) / (known.k - 1)
    )  # fmt: skip
    if between == "dl":
        return CombinedEffect(name, known.k, *_mean(fixed, centre, units), float(fixed.q[0]), *by_moments, *by_moments, between)
    where, nodes = bracket(known), last.at(np.arange(NODES))
    root = None if where.high == 0.0 else _root(last, where)
    if root is None:
        tau2, at = 0.0, fixed
    else:
        u = np.log(nodes.t + known.pole)
        sums = through_points(u, nodes.sums, math.log(root + known.pole))
        tau2, at = root, EffectSums(known.k, np.array([root]), sums.reshape(-1, 1))
    return CombinedEffect(
        name, known.k, *_mean(fixed, centre, units), float(fixed.q[0]), *by_moments,
        tau2 / units**2, *_mean(at, centre, units), float(at.q[0]) / (known.k - 1), between,
    )  # fmt: skip


def _mean(one: EffectSums, centre: float, units: float) -> tuple[float, float]:
    """Mean and its error at one point."""
    return (float(one.mean[0]) + centre) / units, float(one["w"][0] ** -0.5) / units


def combine_estimates(estimate: Array, variance: Array, name: str = "") -> CombinedEffect:
    """Put estimates (k,) with their variances (k,) together, which are here; as `meta_analysis` does with sums over sites.

    Raises
    ------
    NotIdentified (HR-320)
        There are fewer than two, or a variance is not above zero.
    """
    y, v = (np.asarray(values, dtype=float) for values in (estimate, variance))
    if len(y) < 2 or y.shape != v.shape or not (np.isfinite(y) & np.isfinite(v) & (v > 0)).all():
        raise NotIdentified(
            f"{len(y)} estimates with {len(v)} variances.", remedy="Two or more finite estimates, with variances above zero."
        )
    centre, t, known = 0.0, np.zeros(1), EffectSums(len(y), np.zeros(0), np.zeros((7, 0)))
    for _ in range(MOST_ROUNDS):
        parts = [site_terms(y[i : i + 1], v[i : i + 1], t[None], np.array([centre])) for i in range(len(y))]
        known = with_more(known, t, np.array([sum(part[key][0] for part in parts) for key in KEYS]))
        if len(known.t) > len(t) and (known.k < 3 or is_known(known)):
            return effect_of(name, known, centre)
        moved = float(known.mean[np.flatnonzero(known.t == 0)[-1]])
        centre, known = centre + moved, recentred(known, moved)
        t = next_points(known) if known.k > 2 else t
    raise not_converged()


def with_more(known: EffectSums, t: Array, sums: Array) -> EffectSums:
    """The sums with those at more points."""
    return EffectSums(known.k, np.concatenate([known.t, t]), np.concatenate([known.sums, sums], axis=1))


def recentred(known: EffectSums, moved: float) -> EffectSums:
    """The sums of estimates that are measured from a centre which lies farther by `moved`."""
    w, wy, wyy, ww, wwy, wwyy, log = known.sums
    sums = [w, wy - moved * w, wyy - 2 * moved * wy + moved**2 * w]
    sums += [ww, wwy - moved * ww, wwyy - 2 * moved * wwy + moved**2 * ww, log]
    return EffectSums(known.k, known.t, np.array(sums))


def not_converged() -> NotConverged:
    return NotConverged(
        f"after {MOST_ROUNDS} rounds the variance between sites is not known.",
        remedy="If parties drop out, rounds are about different sites: resume when they are back.",
    )
