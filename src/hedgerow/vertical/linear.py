"""Least squares over columns that lie apart, without a penalty and with one: everything follows from one Gram matrix.

    G          <- sum of (1, X, y)' (1, X, y)                    one cross product, in own units
    beta       <- solve  X'X beta = X'y
    covariance <- (y'y - beta' X'y) / (n - d)  (X'X)^-1          its own units undone exactly

Releases : the Gram matrix of the formula's columns, the target and a constant; once.
Unit     : record.
Source   : the sums are those of a pooled fit, see `hedgerow.stats.glm`; penalties as `hedgerow.stats.penalty.penalised`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import NotIdentified, SettingsInvalid
from hedgerow.stats.difficulties import check_identified
from hedgerow.stats.factors import INTERCEPT
from hedgerow.stats.fit import Fit
from hedgerow.stats.penalty.columns import penalised_columns
from hedgerow.stats.penalty.penalised import PenalisedFit, Penalty, check_penalty
from hedgerow.stats.state import solve

from .channel import begun, is_noisy, provenance, refuse_noise
from .design import Apart, apart
from .gram import Gram, gram

if TYPE_CHECKING:
    from .aligned import Aligned

DEPENDENT = 1e-10
"""Eigenvalues of products with a unit diagonal below which columns are dependent, as far as whole numbers tell."""


@dataclass(frozen=True)
class Normal:
    """Normal equations of a formula.

    Attributes
    ----------
    products : array of shape (d, d)
        X'X, in units of each column's scale.
    right : array of shape (d,)
        X'y, in units of the target's scale besides.
    squares : float
        y'y, in units of the target's scale.
    to_columns : array of shape (d, d)
        From coefficients in these units to those of the columns, but for the target's scale.
    shift : array of shape (d,)
        What the target's centre adds to them.
    """

    products: Array
    right: Array
    squares: float
    to_columns: Array
    shift: Array


def normal_equations(found: Gram, one: Apart) -> Normal:
    """Take the sums of a formula's columns out of a Gram matrix of (1, columns without the intercept, target)."""
    names, d = one.spec.names, one.spec.size
    centred = INTERCEPT in names
    products = found.products  # of columns without centres, where no intercept takes them up
    others = iter(range(1, len(products) - 1))
    keep = np.array([0 if name == INTERCEPT else next(others) for name in names], dtype=np.intp)
    last = len(products) - 1
    centre, scale = found.centre[keep], found.scale[keep]
    to_columns, shift = np.diag(1 / scale), np.zeros(d)
    if centred:
        at = names.index(INTERCEPT)
        to_columns[at] -= centre / scale  # the intercept's own centre is zero
        shift[at] = found.centre[last]
    return Normal(products[np.ix_(keep, keep)], products[keep, last], float(products[last, last]), to_columns, shift)


def _asked(aligned: Any, formula: str) -> tuple[Apart, Gram, Normal]:
    one = apart(aligned.schemas, aligned.n, formula, "gaussian")
    if one.spec.offset:
        raise SettingsInvalid(
            "least squares over columns that lie apart take no offset.",
            remedy="Subtract it where both are at one party: I(y - offset) ~ ...; or give the column another role.",
        )
    columns = [(owner, term) for owner, term in one.columns if term.term.factors]
    found = gram(aligned, [*columns, (one.label_at, one.target)], constant_at=one.label_at)
    return one, found, normal_equations(found, one)


def linear_regression(aligned: Aligned, formula: str) -> Fit:
    """Linear regression by least squares over columns that lie apart; equal to the pooled fit up to fixed point.

    Parameters
    ----------
    aligned : Aligned
    formula : str
        For example `"salary ~ age + C(gender)"`. Each term reads columns of one party; the target may be at any of them.

    Returns
    -------
    Fit
        With standard errors, t, p, intervals and R squared. Through noise the coefficients alone: the noisy products would
        make standard errors that look certain.

    Releases
    --------
    The Gram matrix of columns, target and a constant, to the hub. Parties see uniform numbers.

    Raises
    ------
    FormulaInvalid (HR-310), MissingColumn (HR-403), ColumnsDiffer (HR-407), UnboundedSum (HR-210), DisclosureExceeded (HR-216)
        Before any party is asked.
    NotIdentified (HR-320)
        Columns are linear combinations of one another, perhaps of other parties'; or noise left no positive definite products.
    """
    before = begun(aligned)
    one, found, normal = _asked(aligned, formula)
    noisy = is_noisy(aligned)
    d, n, scale = one.spec.size, found.n, one.target.scale
    if noisy:
        beta = _noisy_solution(normal)
    else:
        check_identified(normal.products, n, one.spec.names, residual=True, singular=DEPENDENT)
        beta = solve(normal.products, normal.right)
    residual = max(normal.squares - 2 * float(beta @ normal.right) + float(beta @ normal.products @ beta), 0.0) * scale**2
    total = found.n * found.own_covariance[-1, -1] * scale**2 if one.spec.has_constant else normal.squares * scale**2
    dispersion = residual / (n - d)
    covariance = np.full((d, d), np.nan)
    if not noisy:
        inverse = normal.to_columns @ solve(normal.products, np.eye(d)) @ normal.to_columns.T
        covariance = dispersion * (inverse + inverse.T) / 2
    return Fit(
        spec=one.spec,
        family="gaussian",
        coef_=scale * (normal.to_columns @ beta) + normal.shift,
        covariance=covariance,
        dispersion=float("nan") if noisy else dispersion,
        n_records=n,
        rounds=1,
        **provenance(aligned, before, d + 1),
        deviance=None if noisy else residual,
        total_squares=None if noisy else total,
        target_mean=None if noisy else float(found.mean[-1]),
    )


def _noisy_solution(normal: Normal) -> Array:
    """Solve noisy normal equations, or say that noise has drowned them.

    Raises
    ------
    NotIdentified (HR-320)
    """
    try:
        return solve(normal.products, normal.right)
    except np.linalg.LinAlgError:
        raise NotIdentified(
            "noise has left products of columns that are no longer positive definite.",
            remedy="Take fewer columns, less noise, or hr.vertical.ridge, whose penalty adds to the diagonal.",
        ) from None


def _check_positive(products: Array) -> None:
    if not np.linalg.eigvalsh(products)[0] > 0:
        raise NotIdentified(
            "products of columns plus the penalty are not positive definite: columns depend on one another, or noise is large.",
            remedy="Take a larger penalty, fewer columns, or less noise.",
        )


def _deviations(found: Gram, one: Apart) -> Array:
    """Standard deviations of a formula's columns, with n in the denominator; 1 of a constant."""
    own = iter(np.sqrt(np.maximum(np.diag(found.own_covariance), 0.0)) * found.scale[1:])
    sd = np.array([1.0 if name == INTERCEPT else next(own) for name in one.spec.names])
    return np.where(sd > 0, sd, 1.0)


def ridge(aligned: Aligned, formula: str, *, penalty: float, standardised: bool = False) -> PenalisedFit:
    """Ridge regression over columns that lie apart; `penalty` is that of `hedgerow.stats.penalised_regression`.

    Parameters
    ----------
    aligned, formula
        As `linear_regression`.
    penalty : float
        Added to half the mean squared error: `Ridge(alpha)` of scikit-learn is `penalty=alpha / n`.
    standardised : bool
        Whether coefficients are penalised in units of their columns' standard deviations.

    Releases
    --------
    As `linear_regression`.
    """
    return elastic_net(aligned, formula, penalty=penalty, l1_ratio=0.0, standardised=standardised)


def lasso(aligned: Aligned, formula: str, *, penalty: float, l1_ratio: float = 1.0, standardised: bool = False) -> PenalisedFit:
    """Lasso, or an elastic net, over columns that lie apart; `penalty` is `alpha` of scikit-learn's `ElasticNet`.

    Parameters
    ----------
    aligned, formula, standardised
        As `ridge`.
    penalty : float
    l1_ratio : float
        1 for the lasso, below it an elastic net.

    Releases
    --------
    As `linear_regression`; every other penalty may be tried by fitting again, which asks again.
    """
    return elastic_net(aligned, formula, penalty=penalty, l1_ratio=l1_ratio, standardised=standardised)


def elastic_net(aligned: Any, formula: str, *, penalty: float, l1_ratio: float, standardised: bool) -> PenalisedFit:
    """Minimise half the mean squared error plus a penalty, from the Gram matrix."""
    check_penalty(penalty, l1_ratio)
    if l1_ratio > 0:
        remedy = "Take hr.vertical.ridge or hr.vertical.linear_regression, which go through noise."
        refuse_noise(aligned, "a lasso chooses columns by exact products", remedy)
    before = begun(aligned)
    one, found, normal = _asked(aligned, formula)
    d, n, scale = one.spec.size, found.n, one.target.scale
    deviations = _deviations(found, one) if standardised else np.ones(d)
    weights = penalised_columns(one.spec) * deviations * np.diag(normal.to_columns)
    absolute, squared = penalty * l1_ratio / scale, penalty * (1 - l1_ratio)  # the target is in units of its scale
    strength = absolute + squared
    paid = Penalty(strength, absolute / strength if strength else l1_ratio, weights)
    _check_positive(normal.products + n * squared * np.diag(weights**2))
    beta = paid.step(normal.products, normal.right, np.zeros(d), n)
    residual = max(normal.squares - 2 * float(beta @ normal.right) + float(beta @ normal.products @ beta), 0.0) * scale**2
    return PenalisedFit(
        spec=one.spec,
        family="gaussian",
        coef_=scale * (normal.to_columns @ beta) + normal.shift,
        penalty=penalty,
        l1_ratio=l1_ratio,
        standardised=standardised,
        n_records=n,
        deviance=residual,
        rounds=1,
        **provenance(aligned, before, d + 1),
    )
