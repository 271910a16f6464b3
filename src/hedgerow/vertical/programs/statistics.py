"""Regressions, means and associations over columns that lie apart, as study files name them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.core.declaration import program
from hedgerow.report import Outcome
from hedgerow.stats.results import show_fit

from ..aligned import Aligned
from ..associations import correlation, vif
from ..glm import OPENINGS, logistic_regression, poisson_regression
from ..groups import means
from ..linear import lasso, linear_regression, ridge
from .cases import heart, visits

if TYPE_CHECKING:
    import pandas

Settings = Mapping[str, Any]

UNIFORM = "pads and shares of products, which are uniform numbers without their counterparts"
SUMS = "sums over all people of products of two columns, each once, and what follows from them"
BETAS = "the coefficients of every step"
OPENED = (
    "the linear predictor of every common person, at most {openings} times, in a fresh order that it does not know: "
    "a histogram of risk",
    "gradients and informations: sums over all people",
)
FITTED = "coefficients with standard errors, and the deviance"


@dataclass(frozen=True)
class FittedApart:
    """What a statistic came to.

    Attributes
    ----------
    fit : object
        A fit, or a data frame.
    round : int
    """

    fit: Any
    round: int = 1


def learns_of_products(settings: Settings, roles: Any) -> dict[str, tuple[str, ...]]:
    """Who learns what where one Gram matrix decides."""
    return {"party": (UNIFORM,), "hub": (SUMS,), "world": (FITTED,)}


def learns_of_predictors(settings: Settings, roles: Any) -> dict[str, tuple[str, ...]]:
    """Who learns what where linear predictors are opened to the hub."""
    opened = tuple(said.format(openings=settings["openings"]) for said in OPENED)
    return {"party": (UNIFORM, BETAS), "hub": (SUMS, *opened), "world": (FITTED,)}


def learns_of_groups(settings: Settings, roles: Any) -> dict[str, tuple[str, ...]]:
    """Who learns what of groups."""
    said = "counts and means of groups of at least {} people, with as many in all others".format(settings["least"] or "`least`")
    return {"party": (UNIFORM,), "hub": (said,), "world": (said,)}


def show_fitted(aligned: Aligned, settings: Settings, state: FittedApart) -> Outcome:
    """Show a fit as every regression is shown."""
    return show_fit(state.fit)


def show_penalised(aligned: Aligned, settings: Settings, state: FittedApart) -> Outcome:
    """Show the coefficients of a penalised fit."""
    return Outcome({}, {"Coefficients": state.fit.to_frame()}, coefficients=state.fit.to_frame())


def show_frame(aligned: Aligned, settings: Settings, state: FittedApart) -> Outcome:
    """Show a table."""
    frame: pandas.DataFrame = state.fit.to_frame("VIF") if hasattr(state.fit, "to_frame") else state.fit
    return Outcome.of_table("Result", frame)


@program(
    "Linear regression over columns that lie apart, with standard errors; equal to the pooled fit up to fixed point.",
    columns="apart",
    outcome=show_fitted,
    learns=learns_of_products,
    case=lambda: heart(formula="serum_creatinine ~ age + sex + ejection_fraction"),
)
def vertical_linear_regression(aligned: Aligned, *, formula: str, start: FittedApart | None = None) -> Iterator[FittedApart]:
    """Least squares; see `hedgerow.vertical.linear_regression`.

    Parameters
    ----------
    formula : str
        For example `"salary ~ age + C(gender)"`. Each term reads columns of one party; the target may be at any of them.
    """
    yield FittedApart(linear_regression(aligned, formula))


@program(
    "Logistic regression over columns that lie apart, with standard errors; equal to the pooled fit up to fixed point.",
    columns="apart",
    outcome=show_fitted,
    shows_rows=True,
    learns=learns_of_predictors,
    case=lambda: heart(formula="death_event ~ age + sex + ejection_fraction + serum_creatinine", tol=1e-3),
)
def vertical_logistic_regression(
    aligned: Aligned,
    *,
    formula: str,
    offset: str | None = None,
    tol: float = 1e-5,
    openings: int = OPENINGS,
    start: FittedApart | None = None,
) -> Iterator[FittedApart]:
    """Newton's method; settings are as `hedgerow.vertical.glm.logistic_regression` has them.

    Parameters
    ----------
    formula : str
        For example `"sick ~ age + C(gender)"`. Each term reads columns of one party; the target may be at any of them.
    offset : str, optional
        Column or expression of one party, added to the linear predictor.
    tol : float
        The fit ends with a step shorter than this, in standard errors.
    openings : int
        How often linear predictors may be opened to the hub, at most.
    """
    yield FittedApart(logistic_regression(aligned, formula, offset=offset, tol=tol, openings=openings))


@program(
    "Poisson regression of counts over columns that lie apart, log link, with standard errors.",
    columns="apart",
    outcome=show_fitted,
    shows_rows=True,
    learns=learns_of_predictors,
    case=lambda: visits(formula="mdvis ~ lncoins + lpi + disea + hlthg"),
)
def vertical_poisson_regression(
    aligned: Aligned,
    *,
    formula: str,
    offset: str | None = None,
    tol: float = 1e-5,
    openings: int = OPENINGS,
    start: FittedApart | None = None,
) -> Iterator[FittedApart]:
    """Newton's method of counts; settings as `hedgerow.vertical.programs.statistics.vertical_logistic_regression`."""
    yield FittedApart(poisson_regression(aligned, formula, offset=offset, tol=tol, openings=openings))


@program(
    "Ridge regression over columns that lie apart; also through noise.",
    columns="apart",
    outcome=show_penalised,
    learns=learns_of_products,
    case=lambda: heart(formula="serum_creatinine ~ age + sex + ejection_fraction", penalty=0.1),
)
def vertical_ridge(
    aligned: Aligned, *, formula: str, penalty: float, standardised: bool = False, start: FittedApart | None = None
) -> Iterator[FittedApart]:
    """Ridge regression from one Gram matrix.

    Parameters
    ----------
    formula : str
        For example `"salary ~ age + C(gender)"`.
    penalty : float
        Added to half the mean squared error.
    standardised : bool
        Whether coefficients are penalised in units of their columns' standard deviations.
    """
    yield FittedApart(ridge(aligned, formula, penalty=penalty, standardised=standardised))


@program(
    "Lasso and elastic net over columns that lie apart.",
    columns="apart",
    outcome=show_penalised,
    learns=learns_of_products,
    case=lambda: heart(formula="serum_creatinine ~ age + sex + ejection_fraction", penalty=0.05),
)
def vertical_lasso(
    aligned: Aligned,
    *,
    formula: str,
    penalty: float,
    l1_ratio: float = 1.0,
    standardised: bool = False,
    start: FittedApart | None = None,
) -> Iterator[FittedApart]:
    """An elastic net from one Gram matrix; settings as `hedgerow.vertical.programs.statistics.vertical_ridge`.

    Parameters
    ----------
    l1_ratio : float
        1 for the lasso, below it an elastic net.
    """
    yield FittedApart(lasso(aligned, formula, penalty=penalty, l1_ratio=l1_ratio, standardised=standardised))


@program(
    "Means of columns in each group of a column that may lie elsewhere; small groups are not told.",
    columns="apart",
    outcome=show_frame,
    learns=learns_of_groups,
    case=lambda: heart(of=["serum_creatinine", "age"], by="sex"),
)
def vertical_means(
    aligned: Aligned, *, of: list[str], by: str, least: int | None = None, start: FittedApart | None = None
) -> Iterator[FittedApart]:
    """Means by group from one cross product.

    Parameters
    ----------
    of : list of str
        Columns whose means are taken.
    by : str
        A category or binary column of any party.
    least : int, optional
        Groups of fewer people are not told; at least the alignment's own number.
    """
    yield FittedApart(means(aligned, of, by, least=least))


@program(
    "Correlations of columns that lie apart.",
    columns="apart",
    outcome=show_frame,
    learns=learns_of_products,
    case=lambda: heart(of=["age", "serum_creatinine", "ejection_fraction"]),
)
def vertical_correlation(
    aligned: Aligned, *, of: list[str] | None = None, start: FittedApart | None = None
) -> Iterator[FittedApart]:
    """Correlations from one Gram matrix.

    Parameters
    ----------
    of : list of str, optional
        Columns; all features by default.
    """
    yield FittedApart(correlation(aligned, of))


@program(
    "Variance inflation factors of columns that lie apart: how well each follows from the others.",
    columns="apart",
    outcome=show_frame,
    learns=learns_of_products,
    case=lambda: heart(of=["age", "serum_creatinine", "ejection_fraction"]),
)
def vertical_vif(aligned: Aligned, *, of: list[str] | None = None, start: FittedApart | None = None) -> Iterator[FittedApart]:
    """Variance inflation factors; settings as `hedgerow.vertical.programs.statistics.vertical_correlation`."""
    yield FittedApart(vif(aligned, of))
