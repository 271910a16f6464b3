"""Many regressions at once: one null model, then a score test of each of M columns, from one question.

    null        y ~ covariates, p coefficients                                  as `hedgerow.stats.glm`
    u           g' (y - mean)                of each column g                    sum, once: M numbers
    V           g' W g  and  g' W X,  W the variances of the null model          the same question: M (1 + p)
    v           g' W g - g' W X I^-1 X' W g                                      at the server
    chi-square  u² / (v dispersion)          one degree of freedom
    effect      u / v: of a linear model the estimate, of others its first Newton step

For a linear model the t test of the model with g is exact, since its residual squares are those of the null less u² / v.

Sums of many columns tell who took part (Homer et al. 2008): with as many columns as records, a person whose columns are known
is told from others. Numbers against values held would not see it, since the values are many. So exact sums are refused (HR-216)
where they, with those of earlier screens, are more than a third of the records: of the mean party's, or of all where rows are
hidden. `best` asks instead for the few columns of the largest scores, chosen by the exponential mechanism, and for exact sums
of those alone. Noise on all sums is refused: the noise of the null model would move every score, and no test would know it.
Sites' own scores are never asked.

Releases : the null model's sums, once a round; M (p + 2) numbers, once. With `best` = k: k choices, each of 2 M candidates at
           epsilon / k, and k (p + 2) numbers, once.
Unit     : record.
Source   : Rao 1948; Homer et al. 2008 (what column means tell); McSherry & Talwar 2007 (choices).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, linf
from hedgerow.core.declaration import Case, program
from hedgerow.core.disclosure import MOST
from hedgerow.core.federation import Federation
from hedgerow.core.findings import disclosure_limit
from hedgerow.data import complete_cases, load
from hedgerow.display import displayed
from hedgerow.errors import DisclosureExceeded, SettingsInvalid, UnboundedSum
from hedgerow.privacy.choice import choose
from hedgerow.report import Outcome

from .columns import is_exact, schema_of
from .design import design_of
from .glm import newton
from .linear.asking import Asked, ask_for
from .linear.losses import FamilyName, loss_of
from .linear.reach import Reach, undeclared
from .provenance import left_of, protection_of
from .screen_results import Screen
from .screen_sums import Screened, column_scores, signed_scores
from .state import solve

FAMILIES = ("gaussian", "binomial", "poisson")
SHOWN = 20
"""Columns of a report, those of the smallest p-values."""


@displayed
@dataclass(frozen=True)
class ScreenState:
    """After the null model, each choice, and the scores.

    Attributes
    ----------
    beta, inverse : arrays of shape (p,) and (p, p)
        Coefficients of the null model, and its inverse information.
    n, dispersion : float
        Records, and the null model's.
    which : array of int, shape (m,)
        Places of the columns asked for.
    done : bool
    u, v : arrays of shape (m,)
        Scores and their variances in units of the dispersion.
    """

    round: int
    beta: Array
    inverse: Array
    n: float
    dispersion: float
    which: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    done: bool = False
    u: Array = field(default_factory=lambda: np.zeros(0))
    v: Array = field(default_factory=lambda: np.zeros(0))


@program(
    "Score tests of many columns beside one null model.",
    name="screen",
    outcome=lambda federation, settings, state: show_screen(federation, settings, state),
    case=lambda: Case(
        load("breast_cancer"), {"formula": "malignant ~ mean_texture", "columns": ["mean_radius", "mean_smoothness"]}
    ),
)
def screen_rounds(
    federation: Federation,
    *,
    formula: str,
    columns: Sequence[str],
    family: FamilyName = "binomial",
    best: int | None = None,
    epsilon: float = 1.0,
    start: ScreenState | None = None,
) -> Iterator[ScreenState]:
    """Fit a null model, then ask for the scores of columns.

    Parameters
    ----------
    formula : str
        Of the null model, such as `"ill ~ age + sex"`.
    columns : sequence of str
        Numbers, or array columns, each of whose places is a column. Records that lack a value of any are left out.
    family : {"gaussian", "binomial", "poisson"}
        Of the target.
    best : int, optional
        So many columns of the largest scores, in units of their declared ranges, are chosen, and asked for alone.
    epsilon : float
        Of all these choices together.

    Yields
    ------
    ScreenState
        After the null model, after each choice, and at the end.

    Releases
    --------
    See the module.

    Raises
    ------
    DisclosureExceeded (HR-216)
        Numbers are more than a third of the records, or than `disclosure` allows; after the null model, before the question.
    UnboundedSum (HR-210)
        The channel adds noise or clips; or it hides rows or `best` is given, and a column declares no range.

    Source
    ------
    Rao 1948; Homer et al. 2008.
    """
    schema = schema_of(federation)
    if family not in FAMILIES:
        raise SettingsInvalid(f"family={family!r} is not screened.", remedy=f"Give one of {', '.join(FAMILIES)}.")
    spec = design_of(schema, formula, family)
    screened = Screened.of(schema, columns, spec)
    if best is not None and not 0 < best <= len(screened.names):
        raise SettingsInvalid(f"best={best!r} of {len(screened.names)} columns.", remedy="Give a number of columns, such as 5.")
    if not is_exact(federation):
        raise UnboundedSum(
            "noise or a clip on the null model's sums moves the score of every column, and no test would know it.",
            remedy="Give best=10 and an epsilon, through a channel of its own without noise: the few best columns are chosen.",
        )
    federation = complete_cases(federation, [*spec.valued, *screened.read])
    asked = ask_for(federation, spec, scaled=True)
    bounds = _bounds(asked, screened, family, np.zeros(spec.size), needed=best is not None)  # refused before anybody is asked
    state = start
    if state is None:
        *_, fit = newton(federation, spec, family=family)
        inverse = solve(fit.information, np.eye(spec.size))
        free = family == "gaussian"
        state = ScreenState(1, fit.beta, inverse, fit.n, fit.deviance / (fit.n - spec.size) if free else 1.0)
        yield state
    beta = state.beta * asked.factors
    bounds = _bounds(asked, screened, family, beta, needed=best is not None)
    settings = {"family": family, "columns": screened.read}
    while best is not None and not state.done and len(state.which) < best:
        left = np.setdiff1d(np.arange(len(screened.names)), state.which)
        assert bounds is not None
        broadcast = _broadcast(beta, screened, left)
        place = choose(
            asked.federation, partial(signed_scores, **settings), broadcast, bound=bounds["u"], epsilon=epsilon / best
        )
        state = replace(state, round=state.round + 1, which=np.append(state.which, left[place % len(left)]))
        yield state
    if not state.done:
        which = state.which if best is not None else np.arange(len(screened.names))
        _refuse_many(asked, len(which), spec.size + 2, state.n)
        sums = asked.federation.sum(partial(column_scores, **settings), _broadcast(beta, screened, which), bound=bounds)
        inverse = state.inverse * np.outer(asked.factors, asked.factors)
        v = sums["gg"] - np.einsum("mi,ij,mj->m", sums["gx"], inverse, sums["gx"])
        v = np.where(v > 1e-10 * sums["gg"], v, 0.0)  # a column that the null model spans has nothing of its own
        limits = screened.limits[which]
        yield replace(state, round=state.round + 1, which=which, done=True, u=sums["u"] * limits, v=v * limits**2)


def _broadcast(beta: Array, screened: Screened, which: Array) -> dict[str, Array]:
    return {"beta": beta, "which": which, "limits": screened.limits[which]}


def _bounds(asked: Asked, screened: Screened, family: FamilyName, beta: Array, *, needed: bool) -> dict[str, Bound] | None:
    """By how much a record moves scores and variances, columns in units of their limits; `None` without declared ranges."""
    protection, loss, spec = asked.federation.protection, loss_of(family), asked.spec
    must = needed or (protection.hides_rows and protection.largest is None)
    if spec.limits is None or spec.weight_limit is None or not screened.declared or spec.response_range is None:
        if must and screened.declared:
            raise undeclared(spec, ", and a choice or hidden rows need one")
        if must:
            names = [name for name, limit in zip(screened.names, screened.limits, strict=True) if limit == 1.0][:3]
            raise UnboundedSum(
                f"a screened column, of {', '.join(names) or screened.names[0]}, declares no range.",
                remedy="Declare it: table.declare(g=(0, 2)); a choice and hidden rows need one.",
            )
        return None
    found = Reach.by_column(spec, loss, [beta]).bounds(loss, ("slope", "curvature"), lengths=False)
    if found is None:
        raise undeclared(spec, "")
    u, v = found["slope"].radius, found["curvature"].radius
    return {"u": linf(u, "record"), "gg": linf(v, "record"), "gx": linf(v, "record")}


def _refuse_many(asked: Asked, columns: int, each: int, n: float) -> None:
    """Refuse exact sums of columns, so many numbers each, that are many beside the records they are of.

    Raises
    ------
    DisclosureExceeded (HR-216)
    """
    federation = asked.federation
    most = disclosure_limit(federation)
    most = MOST if most is None else most
    parties = 1.0 if federation.protection.hides_rows else max(federation.expected_size, 1.0)
    records, before = n / parties, _asked_before(federation)
    if before + columns * each > most * records * (1 + 1e-9):
        whose = "all parties together hold" if parties == 1 else "a party holds, on average,"
        earlier = f" beside {before:,} of earlier screens" if before else ""
        left = max(int((most * records - before) / each), 0)
        raise DisclosureExceeded(
            f"the sums of {columns:,} columns are {columns * each:,} exact numbers{earlier}, and {whose} {records:,.0f} "
            f"records: from so many column sums one tells who took part. The limit is {most:.2g} numbers for each record.",
            remedy=f"Screen at most {left:,} columns{' more' if before else ''}, in all; hide rows, so that all records count; "
            "or give best=5 and an epsilon. To allow it: simulate(..., disclosure=inf).",
            asked=True,
        )


def _asked_before(federation: Federation) -> int:
    """Numbers that screens have asked of these parties: many small screens tell as much as one of all their columns."""
    asked = (entry for entry in federation.ledger.entries if entry.query.endswith(":column_scores"))
    return sum(entry.exact_numbers or 0 for entry in asked)


# ---- results --------------------------------------------------------------------------------------------------------
def screen_of(federation: Federation, settings: Mapping[str, Any], state: ScreenState, asked_before: int = 0) -> Screen:
    """Turn the last state of `screen_rounds`, which ran with these settings, into tests."""
    schema, family = schema_of(federation), settings.get("family", "binomial")
    spec = design_of(schema, settings["formula"], family)
    names = Screened.of(schema, settings["columns"], spec).names
    return Screen(
        formula=settings["formula"],
        family=family,
        names=tuple(names[i] for i in state.which),
        u=state.u,
        v=state.v,
        n=state.n,
        dispersion=state.dispersion,
        df_residual=state.n - spec.size - 1,
        screened=len(names),
        left=left_of(federation, asked_before),
        protection=protection_of(federation),
    )


def show_screen(federation: Federation, settings: Mapping[str, Any], state: ScreenState) -> Outcome:
    """The columns of the smallest p-values, and all of them in a file."""
    frame = screen_of(federation, settings, state).to_frame()
    return Outcome(tables={"Screen": frame.sort_values("p").head(SHOWN)}, coefficients=frame)


def screen(
    federation: Federation,
    formula: str,
    columns: Sequence[str],
    *,
    family: FamilyName = "binomial",
    best: int | None = None,
    epsilon: float = 1.0,
) -> Screen:
    """Score tests of many columns beside one null model; parameters and errors as `screen_rounds`.

    Parameters
    ----------
    formula : str
        Of the null model.
    columns : sequence of str
        Numbers, or array columns, each of whose places is a column.
    family, best, epsilon
        As `screen_rounds`.
    """
    asked_before = len(federation.ledger)
    settings: dict[str, Any] = {"formula": formula, "columns": columns, "family": family}
    *_, state = screen_rounds(federation, best=best, epsilon=epsilon, **settings)
    return screen_of(federation, settings, state, asked_before)
