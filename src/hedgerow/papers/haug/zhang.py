"""The functional mechanism with Zhang's constants, and Gong's relevance: one noisy polynomial, too much noise or no guarantee.

    constants    a record's coefficients of  (t - x'theta)^2        printed 2 (1 + 2 d + d^2)     exact d + 2 sqrt(d)
                 of the logistic loss's polynomial at zero          printed d^2 / 4 + 3 d         exact d / 8 + sqrt(d) / 2
    relevance    R_j <- |w_j| sqrt(sum of x_j^2),  w least squares of all records                 sum, server, exact
                 strong are features with R_j above the mean; eps_1 : eps_2 as the relevance of strong and weak features
                 x_j <- x_j sqrt(eps_2 / eps_1) for weak features, so that their coefficients get more noise

The printed constants hold: they bound features of length one each, where whole rows have length one, and count for replaced
records. Exact ones use the number of a row's blocks for d (`second_moments`), so that the quotient grows with d without limit:
it is 7.6 on insurance (d = 5), 14.8 on CASP (10), 22 on cardio and 895 on Adult. The constant of labels is also quoted as
d^2 / 4 + d.

As printed the relevance is used as if it were public. It is an exact statistic of all records, nothing is charged for it, and
the ledger has it as not private. The noise itself is right: of relevances that were public, epsilon would hold.

Releases : of relevance, second moments, exact; of both, noisy coefficients of a polynomial, once.
Unit     : record.
Source   : Zhang et al. 2012, sections 4.2 and 5.3 (functional mechanism); Gong et al. 2019, by way of Haug 2022, section 4.1.
           Differs: the latter was not at hand; products of a strong and a weak feature get noise in between.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.data import Schema, Table, load
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy.shares import BudgetShares, Share
from hedgerow.stats.columns import schema_of
from hedgerow.stats.private import UnitRows
from hedgerow.stats.private.judged import judge, metric, row_length
from hedgerow.stats.private.second_moments import MomentParts
from hedgerow.stats.private.solving import TAYLOR, solve_moments
from hedgerow.stats.private.sufficient import LABELS_IN_LOG_ODDS, ask_moments, prepared

Constants = Literal["printed", "exact"]
EXACT_MOMENTS = MomentParts(1.0, 1.0)


@dataclass(frozen=True)
class PolynomialState:
    """Coefficients made of a noisy polynomial.

    Attributes
    ----------
    coef : array of shape (d,)
        Of the columns of unit rows.
    relevance : array of shape (d,)
        Of each column; zeros where none was asked for.
    """

    round: int
    coef: Array
    relevance: Array


def printed_constant(d: int, *, labels: bool) -> float:
    """How far one record moves the coefficients, as the paper prints it: l1, for `d` columns."""
    return d * d / 4 + 3 * d if labels else 2.0 * (1 + 2 * d + d * d)


def scaled_bound(parts: MomentParts, rows: UnitRows, scale: Array) -> Bound:
    """The l1 ball of a record's coefficients where columns are multiplied by `scale` (d,) before: of a block the largest."""
    ends = np.cumsum([len(block.names) for block in rows.blocks])
    length = math.sqrt(sum(float(np.abs(part).max()) ** 2 for part in np.split(scale, ends[:-1])))
    return Bound(1, rows.heaviest * (parts.gram * length**2 + parts.score * length), "record")


def score_of(settings: Mapping[str, Any], state: Any, schema: Schema, table: Table) -> float:
    """Accuracy for labels, R2 for a number."""
    return judge(_rows(schema, settings), np.asarray(state.coef), table)


def watch(settings: Mapping[str, Any], state: Any, schema: Schema, test: Table | None) -> dict[str, float]:
    """The same on the server's table."""
    if test is None:
        return {}
    return {f"test {'R2' if _rows(schema, settings).numeric else 'accuracy'}": score_of(settings, state, schema, test)}


def claim(settings: Mapping[str, Any]) -> str:
    """What Gong et al. claim, and why it does not hold."""
    return (
        f"at epsilon {settings['epsilon']:g}, by noise that follows the relevance of features. The relevance is an exact "
        "statistic of all records for which nothing is charged, so no finite epsilon holds"
    )


def _rows(schema: Schema, settings: Mapping[str, Any]) -> UnitRows:
    return row_length(None, settings["formula"], schema)


def _case() -> Case:
    return Case(load("diabetes").take(range(200)), {"formula": "progression ~ bmi + bp", "epsilon": 2.0})


@program(
    "Functional mechanism with the constants of its paper, or exact ones (Zhang et al. 2012).",
    score=score_of,
    watch=watch,
    metric=metric,
    case=_case,
)
def functional_mechanism(
    federation: Federation,
    *,
    formula: str,
    epsilon: float = 1.0,
    constants: Constants = "printed",
    start: PolynomialState | None = None,
) -> Iterator[PolynomialState]:
    """Minimise a noisy polynomial: squared errors of a number, for labels the logistic loss's polynomial at zero.

    Parameters
    ----------
    formula : str
        Every column declares its range.
    epsilon : float
        Of Laplace noise, without a delta.
    constants : {"printed", "exact"}
        How far one record is said to move the coefficients.

    Yields
    ------
    PolynomialState
        Once.

    Raises
    ------
    BudgetInvalid (HR-214)
        `epsilon` is not above zero.
    """
    rows = _rows(schema_of(federation), {"formula": formula})
    labels, d = not rows.numeric, rows.size
    bound = Bound(1, printed_constant(d, labels=labels), "record") if constants == "printed" else None
    if start is None:
        yield from _polynomial(federation, rows, epsilon, np.ones(d), bound, np.zeros(d))


@program(
    "Linear regression with less noise on relevant features, as printed: not private (Gong et al. 2019).",
    claim=claim,
    score=score_of,
    watch=watch,
    metric=metric,
    case=_case,
)
def relevance_regression(
    federation: Federation, *, formula: str, epsilon: float = 1.0, start: PolynomialState | None = None
) -> Iterator[PolynomialState]:
    """Ask for relevance as if it were public, and for a noisy polynomial.

    Parameters
    ----------
    formula : str
        Every column declares its range.
    epsilon : float
        Of the noise on the polynomial alone.

    Yields
    ------
    PolynomialState
        Once.

    Raises
    ------
    BudgetInvalid (HR-214)
        `epsilon` is not above zero.
    """
    rows = _rows(schema_of(federation), {"formula": formula})

    def fit() -> Iterator[PolynomialState]:
        if start is not None:
            return
        records = prepared(federation, rows, planned=True)
        moments, _ = ask_moments(records, rows, EXACT_MOMENTS)
        w = solve_moments("ssp", moments, 0.0)
        relevance = np.abs(w) * np.sqrt(np.maximum(np.diag(moments.gram), 0.0))
        strong = relevance > relevance.mean()
        weak_share = relevance[~strong].sum() / max(relevance.sum(), 1e-300)
        ratio = weak_share / max(1 - weak_share, 1e-300)
        scale = np.where(strong, 1.0, np.clip(math.sqrt(ratio), 0.05, 1.0))
        yield from _polynomial(federation, rows, epsilon, scale, scaled_bound(_parts(rows), rows, scale), relevance)

    return fit()


def _parts(rows: UnitRows) -> MomentParts:
    return TAYLOR[not rows.numeric]


def _polynomial(
    federation: Federation, rows: UnitRows, epsilon: float, scale: Array, bound: Bound | None, relevance: Array
) -> Iterator[PolynomialState]:
    """Ask for the coefficients, and minimise."""
    if not epsilon > 0:
        raise BudgetInvalid(f"an epsilon of {epsilon!r} buys nothing.", remedy="Give a number above zero.")
    records, parts = prepared(federation, rows, planned=True), _parts(rows)
    asked = BudgetShares(epsilon).handles(records, {"polynomial": Share(1.0)}, begins=True)["polynomial"]
    moments, level = ask_moments(asked, rows, parts, None if (scale == 1).all() else scale, bound)
    coef = scale * solve_moments("functional", moments, level / parts.gram)
    yield PolynomialState(1, coef * (1.0 if rows.numeric else LABELS_IN_LOG_ODDS), relevance)
