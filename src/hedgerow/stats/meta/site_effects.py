"""Regression in which every site has an intercept of its own, which never leaves it.

    for each round:
        beta           -> every party                                                       broadcast
        score, information, deviance   <- at each site's own intercept (`intercepts`)       sum
        beta           <- beta + information^-1 score                  halved while the deviance rises

These are Newton's steps on the likelihood profiled over the intercepts, so estimates and errors are those of the pooled fit of
`y ~ x + C(site)`. A linear regression is the within estimator: deviations from means of sites. What sites have in common
is the effect of the columns; how sites differ in level is not asked. So columns that are constant at each site have no
estimate, and a new record has no prediction.

Releases : score (d,), information (upper triangle), deviance, n; events of a binary target, the log-likelihood of a perfect
           fit of counts; sites with and without something to tell. Once a round.
Unit     : party, by the most records that one has: a range for hidden sums, no sensitivity. Channels that clip or add noise are
           refused (HR-211).
Source   : Neyman & Scott 1948; Chamberlain 1980; McCullagh & Nelder 1989, section 7.2. With few records at each of many sites
           estimates of a logistic regression are biased away from zero, as those of C(site) are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.data import load
from hedgerow.display import displayed
from hedgerow.errors import FormulaInvalid, NotIdentified, SettingsInvalid

from ..columns import schema_of
from ..design import Design, design_of
from ..difficulties import check_identified
from ..fit import Fit
from ..linear.asking import ask_for
from ..linear.losses import loss_of
from ..linear.newton import has_risen, stepped, until_converged
from ..linear.sums import symmetric
from ..provenance import provenance
from ..results import show_fit
from ..state import NewtonState, solve
from .asking import AskedSites, most_records, refuse_noise
from .intercepts import SiteFamily, within_site_sums, within_sizes

METHOD = "an intercept for every site, which stays there: equal to the pooled fit with C(site)"
FAMILIES = ("gaussian", "binomial", "poisson")


@displayed
@dataclass(frozen=True, eq=False)
class SiteEffectsFit(Fit):
    """A regression with an intercept for every site; there are d coefficients besides.

    Attributes
    ----------
    n_sites : float
        Sites whose records tell of the coefficients.
    n_silent : float
        Sites that add nothing: their targets are all 0 or all 1, or all counts of 0. Their records are not among `n_records`.
    total_squares, null_deviance : float
        Of the sites' intercepts alone; so R squared is the share of what differs within sites.
    """

    n_sites: float = 0.0
    n_silent: float = 0.0

    @property
    def df_residual(self) -> float:
        """Records beyond the coefficients and the sites' intercepts."""
        return self.n_records - len(self.coef_) - self.n_sites

    @property
    def n_parameters(self) -> int:
        """Coefficients, and the sites' intercepts."""
        return len(self.coef_) + round(self.n_sites)

    @property
    def n_events(self) -> float | None:
        """Records whose target is 1, of a binary target, at the sites that tell."""
        return None if self.target_mean is None else self.n_records * self.target_mean

    @property
    def null_log_likelihood(self) -> float | None:
        """Of the sites' intercepts alone."""
        return -self.null_deviance / 2 if self.law.binary and self.null_deviance is not None else super().null_log_likelihood

    @property
    def bic(self) -> float | None:
        """Schwarz's criterion, intercepts included."""
        found = self.log_likelihood
        return None if found is None else math.log(self.n_records) * self.n_parameters - 2 * found

    @property
    def adjusted_r_squared(self) -> float | None:
        """R squared within sites, adjusted for the number of coefficients."""
        if not self.law.quadratic or self.r_squared is None:
            return None
        return 1 - (1 - self.r_squared) * (self.n_records - self.n_sites) / self.df_residual

    def predict(self, frame: Any) -> Array:
        """Refuse: a new record has no site, and the sites' intercepts are not known.

        Raises
        ------
        SettingsInvalid (HR-511)
        """
        raise SettingsInvalid(
            "a fit within sites predicts nothing: the intercepts stay at the sites.",
            remedy="Take a regression with one intercept, or mixed_linear and mixed_logistic; coefficients are in to_frame().",
        )


@program(
    "Regression with an intercept for every site, which stays there; equal to the pooled fit with C(site).",
    name="within_sites",
    outcome=lambda federation, settings, state: show_fit(site_effects_fit(federation, settings, state)),
    case=lambda: Case(
        load("heart_failure"), {"formula": "death_event ~ age + serum_creatinine", "family": "binomial"}, tolerance=1e-8
    ),
)
def within_sites_newton(
    federation: Federation,
    *,
    formula: str,
    family: SiteFamily = "gaussian",
    offset: str | None = None,
    most: float | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
    start: NewtonState | None = None,
) -> Iterator[NewtonState]:
    """Maximum likelihood, with an intercept for every site.

    Parameters
    ----------
    federation : Federation
        Whose parties are the sites.
    formula : str
        For example `"charges ~ age + C(plan)"`; its intercept is each site's own.
    family : {"gaussian", "binomial", "poisson"}
        Of the target.
    offset : str, optional
        Column or expression added to the linear predictor.
    most : float, optional
        Most records of a party, where rows are hidden: a range for its sums. By default what the aggregation declares.
    tol : float
        Stop when the next step is shorter than this, in standard errors.
    max_rounds : int
        Rounds before giving up.
    start : NewtonState, optional
        Continue from a state that was yielded before.

    Yields
    ------
    NewtonState
        After each round.

    Raises
    ------
    FormulaInvalid (HR-310), NotBinary (HR-311), MissingColumn (HR-403), SettingsInvalid (HR-511), UnlawfulChannel (HR-211)
        Before any party is asked.
    NotIdentified (HR-320), Separated (HR-321), NotConverged (HR-322)
        Estimates are not unique, infinite, or not reached.
    RangeExceeded (HR-243)
        A party has more records than `most`.

    Releases
    --------
    See the module.
    """
    refuse_noise(federation, "a regression within sites")
    if max_rounds < 1 or not tol > 0:
        raise SettingsInvalid(f"max_rounds is {max_rounds}, tol is {tol}.", remedy="Rounds are one or more, tol above zero.")
    spec = within_design(federation, formula, family, offset)
    sites = AskedSites(ask_for(federation, spec), most_records(federation, most), most is not None)
    begun = start or NewtonState.at_zero(spec.size)
    yield from until_converged(
        sites.asked, begun, lambda state: _advance(state, sites, family, tol), max_rounds=max_rounds, tol=tol
    )


def within_design(federation: Federation, formula: str, family: SiteFamily, offset: str | None) -> Design:
    """Read a formula, whose intercept is left out; nobody is asked.

    Raises
    ------
    FormulaInvalid (HR-310), SettingsInvalid (HR-511)
    """
    if family not in FAMILIES:
        raise SettingsInvalid(f"family={family!r} within sites.", remedy=f"One of {', '.join(FAMILIES)}.")
    spec = design_of(schema_of(federation), formula, family, offset=offset)
    kept = tuple(term for term in spec.terms if term.factors)
    if len(kept) == len(spec.terms):
        raise FormulaInvalid(f"{formula!r} takes away an intercept, which every site has.", remedy="Leave out 0 and -1.")
    if not kept:
        raise FormulaInvalid(f"{formula!r} has no columns.", remedy="Add a term.")
    return replace(spec, terms=kept)


def _advance(state: NewtonState, sites: AskedSites, family: SiteFamily, tol: float) -> NewtonState:
    """Ask at the trial point, and judge it: halve the step that led there, or accept it and look for the next."""
    asked, loss = sites.asked, loss_of(family)
    sizes = within_sizes(asked.spec, family, state.trial, sites.most) if sites.bounded else {}
    sums = asked.total(partial(within_site_sums, family=family, **sites.settings), state.trial, sites.bounds(sizes))
    n, deviance, told = float(sums["n"]), float(sums["deviance"]), float(sums["sites"])
    information, kept = symmetric(sums["information"]), dict(state.kept)
    if state.round == 0:
        _check_within(asked.spec.names, information, n, told, free=loss.free_dispersion, hidden=asked.hidden)
        kept = {"null": np.array(deviance)}
    elif n == state.n and not loss.quadratic and has_risen(deviance, state.deviance, state.length, asked.hidden):
        return state.halved()
    kept |= {key: np.asarray(sums[key]) for key in ("sites", "silent", "events") if key in sums}
    reached = replace(
        state,
        round=state.round + 1,
        beta=state.trial,
        score=sums["score"],
        information=information,
        deviance=deviance,
        n=n,
        saturated=float(sums.get("saturated", 0.0)),
        kept=kept,
    )
    df = n - len(state.trial) - told
    rounding = 1e-14 * float(kept["null"]) / n
    dispersion = max(deviance / df, rounding) or 1.0 if loss.free_dispersion else 1.0
    return stepped(
        reached, state, asked.spec.names, tol=tol, hidden=asked.hidden, dispersion=dispersion,
        separable=not loss.free_dispersion, counts=loss.log_link,
    )  # fmt: skip


def _check_within(names: Sequence[str], information: Array, n: float, told: float, *, free: bool, hidden: bool) -> None:
    """Refuse what has no estimate: no site that tells, columns that do not vary within sites, no records left over.

    Raises
    ------
    NotIdentified (HR-320)
    """
    if not told > 0.5:
        raise NotIdentified(
            "no site's targets vary, so none tells of the coefficients.",
            remedy="Check how the target is coded; sites whose targets are all alike add nothing.",
        )
    squares = np.diag(information)
    floor = 1e-9 * n if hidden else 0.0  # fixed-point steps
    flat = [name for name, square in zip(names, squares, strict=True) if not square > floor]
    if flat:
        raise NotIdentified(
            f"{', '.join(map(repr, flat[:6]))} {'is' if len(flat) == 1 else 'are'} constant at each site.",
            remedy="Drop it. What is constant at each site cannot be told from the sites' own intercepts;\n"
            "mixed_linear and mixed_logistic have a distribution of intercepts instead.",
        )
    if free and n <= len(names) + told:
        raise NotIdentified(
            f"{n:g} records cannot give {len(names)} coefficients, {told:g} intercepts and a variance.", remedy="Drop terms."
        )
    check_identified(information, n, names, residual=False)


def site_effects_fit(
    federation: Federation, settings: Mapping[str, Any], state: NewtonState, asked_before: int = 0
) -> SiteEffectsFit:
    """Turn the last state of `within_sites_newton` into a fit.

    Parameters
    ----------
    settings : mapping
        With which it was asked.
    asked_before : int
        Length of the ledger before its first question.
    """
    family = settings.get("family", "gaussian")
    spec, loss = within_design(federation, settings["formula"], family, settings.get("offset")), loss_of(family)
    sites, silent, null = (float(state.kept[key]) for key in ("sites", "silent", "null"))
    inverse = solve(state.information, np.eye(spec.size))
    dispersion = state.deviance / (state.n - spec.size - sites) if loss.free_dispersion else 1.0
    silence = f"; {silent:.0f} sites whose targets are all alike add nothing" if silent > 0.5 else ""
    return SiteEffectsFit(
        spec=spec,
        family=family,
        coef_=state.beta,
        covariance=dispersion * (inverse + inverse.T) / 2,
        dispersion=dispersion,
        n_records=state.n,
        rounds=state.round,
        **provenance(federation, asked_before, spec.valued),
        deviance=state.deviance,
        total_squares=null if loss.quadratic else None,
        target_mean=float(state.kept["events"]) / state.n if loss.binary else None,
        saturated=state.saturated if loss.has("saturated") else None,
        null_deviance=None if loss.quadratic else null,
        method=f"{METHOD}; {sites:.0f} sites{silence}",
        n_sites=sites,
        n_silent=silent,
    )


def within_sites(federation: Federation, formula: str, family: SiteFamily = "gaussian", **settings: Any) -> SiteEffectsFit:
    """Regression with an intercept for every site; equal to the pooled fit of the formula and `C(site)`.

    Parameters
    ----------
    federation, formula, family
        As `within_sites_newton`.
    **settings
        `offset`, `most`, `tol` and `max_rounds`, as `within_sites_newton`.

    Returns
    -------
    SiteEffectsFit
        A `Fit` without intercept.
    """
    asked_before, given = len(federation.ledger), {"formula": formula, "family": family, **settings}
    *_, state = within_sites_newton(federation, **given)
    return site_effects_fit(federation, given, state, asked_before)
