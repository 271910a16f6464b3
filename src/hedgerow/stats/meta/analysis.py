"""Meta-analysis: every site fits its own model, and sums over the sites put the estimates together.

    at each site   own model <- Newton's method on its own records (`own_fits`)                 stays there; anew each time
    once           sites with and without estimates                                             sum
    each round     for each coefficient, at t = 0 and then at eight variances t between sites (`combining`):
                       w, w y, w y², w², w² y, w² y², log(v + t),   w = 1 / (v + t)             sum
                   by DerSimonian and Laird w, w y, w y², w² at t = 0, then w, w y, w y² at theirs
    beside it      the pooled fit with an intercept, or a baseline, for every site              `site_effects`, `cox`
    if agreed      each site's estimates and variances, for a forest plot                       gather

Fixed effect, DerSimonian-Laird, REML, Q, I², Hartung-Knapp and the prediction interval follow from the sums. Two-stage
and pooled estimates should agree; where they do not, sites are small (own fits are biased) or differ.

What sums tell of sites: which estimate is whose they do not tell. But k sites have 2k numbers of a coefficient, and a round of
REML asks for 56: totals at many t determine the sites' estimates and errors, without their names, so who sees the totals can
solve them. Where rows are hidden the default is therefore DerSimonian and Laird's variance, whose dozen numbers are seven
different ones: they, like the published means, errors, Q and tau², determine those of three sites, and not of more. Estimates
of ten events and more are no records. Where they are secret, ask for the pooled fit alone.

Releases : counts of sites and n, once; the sums above, two or three times, where rows are hidden after sums of w at t = 0; of
           `pooled` what its regression releases. With `sites_shown` each site's estimates and variances by name, which
           stations see before they agree; refused where rows are hidden (HR-211).
Unit     : party: a range for hidden sums, no sensitivity. Channels that clip or add noise are refused (HR-211).
Source   : as `combining`; Riley et al. 2010 (two stages of individual records).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.data import load
from hedgerow.display import displayed
from hedgerow.errors import NotConverged, NotIdentified, SettingsInvalid, UnlawfulChannel

from ..survival.risk_sets import Ties
from .combining import (
    KEYS,
    MEANS,
    MOMENTS,
    MOST_ROUNDS,
    EffectSums,
    is_known,
    next_points,
    not_converged,
    recentred,
    with_more,
)
from .effect import BETWEEN, Between
from .own_fits import LEAST, SiteModel
from .pooled import advance_pooled
from .questions import AskedMeta, ask_for_sites, between_of
from .result import MetaAnalysis, meta_of, show_meta
from .site_sums import LEAST_SHOWN, TROUBLES, count_sites, effect_sums, own_effects, precision_sums

SHOWN = "each site's own estimates by name"


@displayed
@dataclass(frozen=True)
class MetaState:
    """What is known after each question; numbers are in units of the columns as they were asked.

    Attributes
    ----------
    counts : dict of arrays
        `fitted`, `troubles` (4,), n; empty before they are asked. Where rows are hidden `w` (p,), the sums at t = 0.
    pooled : dict of arrays
        The last state of the pooled fit, by its fields; empty without one.
    centre : array of shape (p,)
        From which estimates are measured.
    t : array of shape (p, m)
        Variances between sites that were asked.
    sums : array of shape (p, 7, m)
    rows : dict of arrays
        Estimates and variances (2, p) by site, where they are shown.
    shown : bool
        Whether they were asked.
    converged : bool
    """

    round: int
    centre: Array
    t: Array
    sums: Array
    counts: dict[str, Array] = field(default_factory=dict)
    pooled: dict[str, Array] = field(default_factory=dict)
    rows: dict[str, Array] = field(default_factory=dict)
    shown: bool = False
    converged: bool = False

    @property
    def k(self) -> int:
        """Sites with estimates."""
        return round(float(self.counts["fitted"]))

    def of(self, place: int) -> EffectSums:
        """The sums of one coefficient."""
        return EffectSums(self.k, self.t[place], self.sums[place])


@program(
    "Meta-analysis: each site fits its own model, and sums put the estimates together.",
    name="meta_analysis",
    outcome=show_meta,
    case=lambda: Case(load("breast_cancer"), {"formula": "malignant ~ mean_texture + mean_smoothness"}, tolerance=1e-7),
)
def meta_rounds(
    federation: Federation,
    *,
    formula: str,
    coefficients: Sequence[str] | None = None,
    family: SiteModel = "binomial",
    least: float = LEAST,
    offset: str | None = None,
    time: str | None = None,
    event: str | None = None,
    ties: Ties = "efron",
    pooled: bool = True,
    between: Between | None = None,
    sites_shown: bool = False,
    most: float | None = None,
    start: MetaState | None = None,
) -> Iterator[MetaState]:
    """Put the sites' own estimates together, question by question.

    Parameters
    ----------
    federation : Federation
        Whose parties are the sites.
    formula : str
        For example `"died ~ age + C(arm)"`; for survival `"time + event ~ age + C(arm)"`.
    coefficients : list of str, optional
        Names of those that are put together; by default all but the intercept.
    family : {"binomial", "gaussian", "poisson", "cox"}
        Of each site's own model.
    least : float
        Sites with fewer events add nothing: of a binary target the rarer outcome, of counts their sum, of a linear
        regression records beyond the coefficients.
    offset : str, optional
        Column or expression added to the linear predictor.
    time, event : str, optional
        Of survival, as `hedgerow.stats.survival.cox.cox_newton`.
    ties : {"efron", "breslow"}
        Of survival.
    pooled : bool
        Whether the pooled fit with an intercept for every site is asked too; of survival with a baseline for every site.
    between : {"reml", "dl"}, optional
        How the variance between sites is estimated: by restricted maximum likelihood, which asks for totals at many variances;
        these determine the sites' estimates, without their names. Or by DerSimonian and Laird, which asks at zero and at the
        estimate. By default "dl" where rows are hidden, and else "reml".
    sites_shown : bool
        Whether each site's own estimates leave it, for a forest plot; `least` is ten at least then, since a site that
        counts and is not drawn would be the total less the others.
    most : float, optional
        Most records of a party, where rows are hidden: a range for its sums. By default what the aggregation declares.
    start : MetaState, optional
        Continue from a state that was yielded before.

    Yields
    ------
    MetaState
        After each question.

    Raises
    ------
    FormulaInvalid (HR-310), NotBinary (HR-311), MissingColumn (HR-403), SettingsInvalid (HR-511), UnlawfulChannel (HR-211)
        Before any party is asked.
    NotIdentified (HR-320), NotConverged (HR-322)
        Fewer than two sites have estimates; or the pooled fit has none.
    Separated (HR-321)
        Of the pooled fit.

    Releases
    --------
    See the module.
    """
    if sites_shown and federation.protection.hides_rows:
        raise UnlawfulChannel(
            f"sites_shown asks for {SHOWN}, and this channel hides rows.",
            remedy="Leave it out: means, heterogeneity and the prediction interval need sums alone. Where stations agree to\n"
            "show their estimates, ask through plain aggregation.",
        )
    if sites_shown and least < LEAST_SHOWN:
        raise SettingsInvalid(
            f"sites_shown with least={least:g}: a site of fewer than {LEAST_SHOWN} events counts and is not drawn, so that it "
            "would be the total less those that are.",
            remedy=f"least={LEAST_SHOWN} or more, or leave sites_shown out.",
        )
    if not least >= 1:
        raise SettingsInvalid(f"least={least!r} events.", remedy="At least 1; ten are usual.")
    if between is not None and between not in BETWEEN:
        raise SettingsInvalid(f"between={between!r}.", remedy='Give "reml" or "dl".')
    given: dict[str, Any] = {"formula": formula, "family": family, "offset": offset, "time": time, "event": event}
    given |= {"ties": ties, "most": most}
    asked = ask_for_sites(federation, given, coefficients, least)
    p = len(asked.coefficients)
    state = start or MetaState(0, np.zeros(p), np.zeros((p, 0)), np.zeros((p, len(KEYS), 0)))
    if not state.counts:
        yield (state := _counted(state, asked))
    check_counts(state)
    if asked.within and "w" not in state.counts:
        yield (state := _weighed(state, asked))
    if pooled:
        for found in advance_pooled(federation, given, state.pooled):
            yield (state := replace(state, round=state.round + 1, pooled=found))
    while not state.converged:
        if state.t.shape[1] > MOST_ROUNDS * 8:
            raise not_converged()
        yield (state := _by_moments(state, asked) if between_of(federation, between) == "dl" else _advance(state, asked))
    if sites_shown and not state.shown:
        yield _with_rows(state, asked)


def _counted(state: MetaState, asked: AskedMeta) -> MetaState:
    """Ask how many sites have estimates."""
    bounds = asked.sites.bounds({"fitted": 1.0, "troubles": 1.0, "n": asked.sites.most})
    found: dict[str, Array] = asked.sites.asked.total(partial(count_sites, **asked.settings), None, bounds)
    return replace(state, round=state.round + 1, counts=found)


def _weighed(state: MetaState, asked: AskedMeta) -> MetaState:
    """Ask for the sums of w, from which ranges of all later sums follow."""
    assert asked.within is not None, "asked where rows are hidden"
    bounds = asked.sites.bounds({"w": 1 / asked.within.least})
    local = partial(precision_sums, coefficients=asked.coefficients, **asked.settings)
    found: dict[str, Array] = asked.sites.asked.total(local, None, bounds)
    return replace(state, round=state.round + 1, counts=state.counts | found)


def check_counts(state: MetaState) -> None:
    """Refuse where fewer than two sites have estimates, before any is put together: the total would be the site's own.

    Raises
    ------
    NotIdentified (HR-320)
    """
    fitted = round(float(state.counts["fitted"]))
    if fitted > 1:
        return
    troubles = [f"{n:.0f} {_said(one)}" for one, n in zip(TROUBLES, state.counts["troubles"], strict=True) if n > 0.5]
    raise NotIdentified(
        f"{fitted or 'no'} site has estimates of its own{': ' if troubles else ''}{', '.join(troubles)}.",
        remedy="Two or more are put together. Drop terms, or ask for the pooled fit: hr.stats.within_sites(...).",
    )


def _said(trouble: str) -> str:
    said = {"few": "with too few events", "separated": "where columns separate the outcomes"}
    return said.get(trouble) or {"unidentified": "where columns say the same", "beyond": "beyond the declared range"}[trouble]


def _advance(state: MetaState, asked: AskedMeta) -> MetaState:
    """Ask for the sums at the next variances between sites, and measure from the new mean."""
    p, k = len(state.centre), state.k
    if not state.t.shape[1]:
        t = np.zeros((p, 1))
    else:
        t = np.stack([next_points(state.of(j), hidden=asked.sites.asked.hidden) if k > 2 else np.zeros(1) for j in range(p)])
    known = _with_sums(state, asked, t, KEYS)
    first = not state.t.shape[1]
    if not first and all(one.k < 3 or is_known(one, hidden=asked.sites.asked.hidden) for one in known):
        return _after(state, known, converged=True)
    return _after(state, known, converged=False)


def _by_moments(state: MetaState, asked: AskedMeta) -> MetaState:
    """Ask for the sums at t = 0, again from the mean, and at DerSimonian and Laird's variance."""
    p, asked_before = len(state.centre), state.t.shape[1]
    if asked_before < 2:
        known = _with_sums(state, asked, np.zeros((p, 1)), MOMENTS)
        here = state.k < 3 or not any(one.dersimonian_laird for one in known)
        return _after(state, known, converged=bool(asked_before) and here)
    t = np.array([[state.of(j).dersimonian_laird] for j in range(p)])
    return _after(state, _with_sums(state, asked, t, MEANS), converged=True)


def _with_sums(state: MetaState, asked: AskedMeta, t: Array, keys: tuple[str, ...]) -> list[EffectSums]:
    """Ask for sums at more variances between sites, and put them behind those of each coefficient; NaN what was not asked."""
    p = len(state.centre)
    only = {} if keys == KEYS else {"keys": keys}
    local = partial(effect_sums, coefficients=asked.coefficients, **asked.settings, **only)
    before = [state.of(j) for j in range(p)] if state.t.shape[1] else []
    precision = float(state.counts["w"].max()) if asked.within else 0.0
    sizes = asked.within.sizes(t, precision, before) if asked.within else None
    bounds = asked.sites.bounds({key: sizes[key] for key in (*keys, "k")}) if sizes else None
    found: dict[str, Array] = asked.sites.asked.total(local, {"t": t, "centre": state.centre}, bounds)
    if round(float(found["k"])) != state.k:
        raise NotConverged(
            f"{state.k} sites had estimates, and {found['k']:.0f} answer now: rounds are about different sites.",
            remedy="Resume when they are back, or begin anew without them.",
        )
    more = np.stack([found.get(key, np.full(t.shape, np.nan)) for key in KEYS], axis=1)
    return [with_more(state.of(j), t[j], more[j]) for j in range(p)]


def _after(state: MetaState, known: list[EffectSums], *, converged: bool) -> MetaState:
    """The state with these sums, measured from the new mean unless they are the last."""
    moved = np.zeros(len(known))
    if not converged:
        moved = np.array([one.mean[np.flatnonzero(one.t == 0)[-1]] for one in known])
        known = [recentred(one, by) for one, by in zip(known, moved, strict=True)]
    return replace(
        state,
        round=state.round + 1,
        centre=state.centre + moved,
        t=np.stack([one.t for one in known]),
        sums=np.stack([one.sums for one in known]),
        converged=converged,
    )


def _with_rows(state: MetaState, asked: AskedMeta) -> MetaState:
    """Gather each site's own estimates."""
    settings = {key: value for key, value in asked.settings.items() if key != "ends"}
    local = partial(own_effects, coefficients=asked.coefficients, **settings)
    rows = asked.sites.asked.federation.gather(local)
    found = {name: np.stack([row["estimate"], row["variance"]]) for name, row in rows.items() if row["variance"].any()}
    return replace(state, round=state.round + 1, rows=found, shown=True)


def meta_analysis(
    federation: Federation,
    formula: str,
    coefficients: Sequence[str] | None = None,
    family: SiteModel = "binomial",
    **settings: Any,
) -> MetaAnalysis:
    """Meta-analysis of the parties: each fits its own model, and sums over parties put the estimates together.

    Parameters
    ----------
    federation, formula, coefficients, family
        As `meta_rounds`.
    **settings
        `least`, `offset`, `time`, `event`, `ties`, `pooled`, `between`, `sites_shown` and `most`, as `meta_rounds`.
    """
    asked_before = len(federation.ledger)
    given = {"formula": formula, "coefficients": coefficients, "family": family, **settings}
    *_, state = meta_rounds(federation, **given)
    return meta_of(federation, given, state, asked_before)
