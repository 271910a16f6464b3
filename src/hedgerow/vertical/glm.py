"""Generalised linear models over columns that lie apart: Newton's method with inference.

    beta public, eta_k = X_k beta_k at its party
    1 hub          <- sum over parties of eta_k; rows are records, in an order secret to the hub     aligned.sum
    2 hub          mu = mean(eta), w = variance(eta), and the deviance from eta and X'y              exactly
    3 score        <- X' (y - mu)                                                                    aligned.cross(right, hub)
    4 information  <- X' diag(w) X                                                                   aligned.cross(weights)
    5 beta         <- beta + information^-1 score                                                    halved while deviance rises

Before the first opening stands one Gram matrix of (1, X, y): at the fit of a constant every mean is the same, so that score and
information follow from it, and no row is opened for the first step.

What the hub sees : linear predictors of all records in an order that it does not know, scores, informations. This is assumed of
           the hub: it holds no data, shares no operator with a party, and knows nobody's linear predictor. It is an assumption,
           not a proof. Linear predictors are a histogram of risk. Coefficients are public: where columns have few values, one
           linear predictor tells all columns of its row, of somebody without a name (a test does it), the less the fewer its
           places. Of continuous columns, d openings whose rows can be linked tell the same: near the end rows keep their rank
           from one opening to the next. Such openings are counted, and are at most as many as the columns of the party with the
           fewest.
What parties see : uniform numbers, and every beta.
Releases : a Gram matrix, once; of counts two sums of functions of the target, once; a score (d,) and an information (d, d) for
           each opening; and to the hub alone a row of n linear predictors.
Unit     : record.
Source   : McCullagh & Nelder 1989, section 2.5; X' diag(w) X by shared products. The information is computed at every opening,
           which costs as many bytes as the scores that it saves, and half of the openings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import xlogy

from hedgerow.core.arrays import Array
from hedgerow.errors import DisclosureExceeded, NotConverged, Separated, SettingsInvalid, UnboundedSum, UnlawfulChannel
from hedgerow.stats.difficulties import check_counts, check_identified, check_target, separated
from hedgerow.stats.factors import INTERCEPT, Number, Term
from hedgerow.stats.fit import Fit
from hedgerow.stats.linear.losses import FamilyName, loss_of
from hedgerow.stats.state import solve

from .channel import begun, provenance, refuse_noise
from .design import Apart, apart
from .gram import Gram, gram
from .linear import DEPENDENT, normal_equations
from .predictors import Openings, Predictors
from .terms import own_units

if TYPE_CHECKING:
    from .aligned import Aligned

PLACES = 22
"""Binary places of linear predictors."""
OPENINGS = 15
"""Openings of linear predictors, at most, by default."""
FINEST = 1e-7
"""Steps shorter than this, in standard errors, are those of the fixed-point grid."""
ENOUGH = 1e-3
"""Where no further opening is allowed a fit may end with a step shorter than this, in standard errors."""
FAR = 8.0
"""Means beyond so many times the declared range of counts are those of a step that was too long."""
SLACK = 1e-9
"""By so much of itself a deviance may seem to rise by rounding."""


@dataclass(frozen=True)
class Point:
    """Coefficients in own units with the sums there: score and information in the same units."""

    beta: Array
    score: Array
    information: Array
    deviance: float

    @property
    def step(self) -> Array:
        """Newton's step from here."""
        return solve(self.information, self.score)


@dataclass(frozen=True)
class TargetSums:
    """What is known of the target before any row is opened.

    Attributes
    ----------
    n, y : float
        Records, and the sum of the target.
    right : array of shape (d,)
        X'y, in own units of X.
    by_offset : float
        The target times the offset, added up.
    offset_mean : float
    perfect, factorials : float
        Of counts: sums of y log y - y, and of the logarithm of y!.
    """

    n: float
    y: float
    right: Array
    by_offset: float = 0.0
    offset_mean: float = 0.0
    perfect: float = 0.0
    factorials: float = 0.0

    def deviance(self, family: FamilyName, beta: Array, eta: Array) -> float:
        """Twice the log-likelihood by which records fall short of a perfect fit, exactly, from eta (n,) alone."""
        by_eta = float(beta @ self.right) + self.by_offset
        if family == "binomial":
            return 2 * (float(np.logaddexp(0.0, eta).sum()) - by_eta)
        return 2 * (self.perfect - by_eta + float(loss_of(family).mean(eta).sum()))


def logistic_regression(
    aligned: Aligned,
    formula: str,
    *,
    offset: str | None = None,
    tol: float = 1e-5,
    openings: int = OPENINGS,
    places: int = PLACES,
    seat: str = "hub",
) -> Fit:
    """Logistic regression over columns that lie apart; equal to the pooled fit up to fixed point.

    Parameters
    ----------
    aligned : Aligned
    formula : str
        For example `"sick ~ age + C(gender) + salary"`. Each term reads columns of one party; the target is at any of them.
    offset : str, optional
        Column or expression of one party, added to the linear predictor.
    tol : float
        Newton's method ends with a step shorter than this, in standard errors; the step is still taken. It ends with one of
        1e-3 where another opening could be linked with too many: standard errors then have so many digits fewer.
    openings : int
        How often linear predictors may be opened to the hub, at most.
    places : int
        Binary places of the linear predictors that the hub sees, to which parties round at home, by chance up or down.
        Fewer tell less of a row; an estimate is then off by about 2^-(places + 1) of its standard error, and `tol` is at least
        2^-(places - 2).
    seat : str
        Who sees the linear predictors: the hub, and nobody else.

    Returns
    -------
    Fit
        With standard errors, z, p, intervals, log-likelihood and AIC.

    Releases
    --------
    See the module, with what is assumed of the hub.

    Raises
    ------
    FormulaInvalid (HR-310), NotBinary (HR-311), MissingColumn (HR-403), ColumnsDiffer (HR-407), UnboundedSum (HR-210)
        Before any party is asked.
    UnlawfulChannel (HR-211)
        The channel clips or adds noise, or the seat is a party.
    DisclosureExceeded (HR-216)
        As many columns as records; or rows of too many openings could be linked.
    NotIdentified (HR-320), Separated (HR-321), NotConverged (HR-322)
    """
    return fitted(aligned, formula, "binomial", offset=offset, tol=tol, openings=openings, places=places, seat=seat)


def poisson_regression(
    aligned: Aligned,
    formula: str,
    *,
    offset: str | None = None,
    tol: float = 1e-5,
    openings: int = OPENINGS,
    places: int = PLACES,
    seat: str = "hub",
) -> Fit:
    """Poisson regression of counts over columns that lie apart, log link; settings as `logistic_regression`.

    The target's declared range ends somewhere: means are cut off at eight times that end.
    """
    return fitted(aligned, formula, "poisson", offset=offset, tol=tol, openings=openings, places=places, seat=seat)


def fitted(
    aligned: Any, formula: str, family: FamilyName, *, offset: str | None, tol: float, openings: int, places: int, seat: str
) -> Fit:
    """Fit a generalised linear model with a canonical link, as the module says; settings as `logistic_regression`."""
    _refuse_seat(aligned, seat)
    refuse_noise(
        aligned,
        "linear predictors are rows of records, which no noise in a sum hides",
        "Fit by products alone: hr.vertical.linear_regression goes with noise.",
    )
    if not tol >= FINEST or openings < 1 or not 4 <= places <= 30:
        raise SettingsInvalid(
            f"tol is {tol}, openings is {openings}, places is {places}.",
            remedy=f"Steps below {FINEST:g} standard errors are those of fixed-point numbers; at least one opening;\n"
            "places are from 4 to 30.",
        )
    tol = max(tol, 2.0 ** (2 - places))
    one = apart(aligned.schemas, aligned.n, formula, family, offset=offset)
    before = begun(aligned)
    opened = Openings(openings, one.fewest)
    owned = [(owner, term) for owner, term in one.columns if term.term.factors]
    if one.offset_at is not None:
        term = Term((Number(str(one.spec.offset)),))
        owned.append((one.offset_at, own_units(term, one.spec.schema)))
    found = gram(aligned, [*owned, (one.label_at, one.target)], constant_at=one.label_at)
    normal, law = normal_equations(found, one), loss_of(family)
    check_identified(normal.products, found.n, one.spec.names, residual=False, singular=DEPENDENT)
    ask = Predictors(aligned, one, law, normal, opened, places)
    totals = _totals(found, one, normal.right * one.target.scale, ask, family)
    point, length = _newton(one, ask, totals, _start(one, found, totals, family), family, tol)
    inverse = normal.to_columns @ solve(point.information, np.eye(one.spec.size)) @ normal.to_columns.T
    return Fit(
        spec=one.spec,
        family=family,
        coef_=normal.to_columns @ (point.beta + point.step),
        covariance=(inverse + inverse.T) / 2,
        dispersion=1.0,
        n_records=found.n,
        rounds=opened.times,
        **provenance(aligned, before, one.spec.size + 1),
        deviance=point.deviance - length**2,
        target_mean=totals.y / totals.n,
        saturated=totals.perfect - totals.factorials if family == "poisson" else None,
        null_deviance=_null_deviance(one, totals) if family == "poisson" else None,
        method=f"Newton's method; linear predictors opened to the hub {opened.times} times in secret order, "
        f"{opened.linked} of them near the one before; the last step was {length:.1g} standard errors",
    )


def _refuse_seat(aligned: Any, seat: str) -> None:
    """Refuse to seat a data holder: as many openings as the other party has columns are those columns.

    Raises
    ------
    UnlawfulChannel (HR-211)
    """
    if seat != "hub":
        raise UnlawfulChannel(
            f"seat={seat!r} would show linear predictors to a party: with coefficients known, as many openings as another "
            "party has columns give every value of those columns.",
            remedy='Leave seat="hub", which holds no data and sees rows in an order that it does not know.',
        )


def _totals(found: Gram, one: Apart, right: Array, ask: Predictors, family: FamilyName) -> TargetSums:
    y = found.products[0, -1] * one.target.scale
    n = found.n
    given: dict[str, float] = {}
    if family == "binomial":
        check_target(float(round(y)), n)
    else:
        check_counts(y, n)
        target = one.spec.response_range
        if target is None:
            raise UnboundedSum(f"{one.spec.response.text!r} has no declared range.", remedy="Declare its ends.")
        given["perfect"], given["factorials"] = ask.perfect(target[1])
    if one.offset_at is not None:
        centre, scale = found.centre[-2], found.scale[-2]
        given["by_offset"] = centre * y + scale * float(found.products[-2, -1]) * one.target.scale
        given["offset_mean"] = float(found.mean[-2])
    return TargetSums(n, float(y), right, **given)


def _start(one: Apart, found: Gram, totals: TargetSums, family: FamilyName) -> tuple[Array, Point | None]:
    """Where to begin, and the sums there where they follow from products: where every linear predictor is the same."""
    law, names, normal = loss_of(family), one.spec.names, normal_equations(found, one)
    beta = np.zeros(len(names))
    ones = np.zeros(len(names))
    level = 0.0
    if INTERCEPT in names:
        at = names.index(INTERCEPT)
        level = float(law.link(np.array(totals.y / totals.n))) - totals.offset_mean
        beta[at] = level
        ones = normal.products[at]
    else:
        ones = found.products[0, 1 : 1 + len(names)]
    if one.offset_at is not None:
        return beta, None
    eta = np.full(1, level)
    mean = float(law.mean(eta)[0])
    variance = float(law.part("curvature", np.zeros(1), eta)[0])
    deviance = totals.deviance(family, beta, np.full(round(totals.n), level))
    return beta, Point(beta, totals.right - mean * ones, variance * normal.products, deviance)


def _newton(
    one: Apart, ask: Predictors, totals: TargetSums, start: tuple[Array, Point | None], family: FamilyName, tol: float
) -> tuple[Point, float]:
    """Newton's method; returns the last point whose rows were opened, and the length of the step from there."""
    beta, point = start
    trial = beta if point is None else beta + point.step
    target = one.spec.response_range
    most = math.inf if target is None or family == "binomial" else FAR * max(target[1], 1.0)
    lengths: list[float] = []
    while True:
        if ask.openings.spent:
            raise _unfinished(one, point, lengths, ask.openings.times, family)
        try:
            eta = ask.open(trial)
        except DisclosureExceeded:
            if point is not None and lengths and lengths[-1] < ENOUGH:
                return point, lengths[-1]
            raise
        deviance = totals.deviance(family, trial, eta)
        rises = point is not None and not deviance <= point.deviance + SLACK * (1 + abs(point.deviance))
        if point is not None and (rises or float(ask.law.mean(eta).max()) > most):
            trial = (point.beta + trial) / 2
            continue
        point = Point(trial, ask.score(eta), ask.information(eta), deviance)
        try:
            step = point.step
        except np.linalg.LinAlgError:
            raise _separated(point.beta, point.beta, one, family) from None
        length = math.sqrt(max(float(step @ point.score), 0.0))
        lengths.append(length)
        if length < tol:
            return point, length
        trial = point.beta + step


def _unfinished(one: Apart, point: Point | None, lengths: list[float], times: int, family: FamilyName) -> Exception:
    """Classes that are separated: steps gain nothing and hardly shrink. Otherwise the cap came too early."""
    if point is not None and len(lengths) > 3 and lengths[-1] > 0.5 * lengths[-2] and lengths[-1] < 1.0:
        return _separated(point.step, point.beta, one, family)
    return NotConverged(
        f"after {times} openings of linear predictors the next step is {lengths[-1] if lengths else math.inf:.2g} standard "
        "errors.",
        remedy="Allow more with openings=, a larger tol=, or take fewer columns.",
    )


def _separated(step: Array, beta: Array, one: Apart, family: FamilyName) -> Separated:
    """As of any fit; what keeps coefficients finite elsewhere is not built for columns that lie apart."""
    found = separated(step, beta, one.spec.names, counts=family == "poisson")
    remedy = "Drop the column, or merge the level with another; or align parties that have more people in common."
    return Separated(found.reason, remedy=remedy)


def _null_deviance(one: Apart, totals: TargetSums) -> float | None:
    """Deviance of a constant alone, where columns span one and no offset stands beside it."""
    if one.offset_at is not None or not one.spec.has_constant:
        return None
    return 2 * (totals.perfect + totals.y - float(xlogy(totals.y, totals.y / totals.n)))
