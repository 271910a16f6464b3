"""A meta-analysis: effects put together over sites, the pooled fit beside them, and each site's row where it is shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import LeftOut
from hedgerow.display import displayed
from hedgerow.errors import MissingColumn
from hedgerow.report import Figure, ForestPlot, ForestRow, ForPapers, Outcome
from hedgerow.report.numerals import show

from ..columns import upper_end
from ..linear.losses import loss_of
from ..provenance import provenance
from ..state import solve
from ..survival.summary import answered, survival_summary
from .combining import effect_of
from .effect import BETWEEN, CombinedEffect
from .own_fits import SiteModel
from .pooled import unpacked
from .questions import between_of, model_of, names_of_model, units_of
from .site_effects import within_design
from .site_sums import TROUBLES

if TYPE_CHECKING:
    import pandas

    from .analysis import MetaState

TITLES = {"gaussian": "linear", "binomial": "logistic", "poisson": "Poisson", "cox": "Cox"}
COLUMNS = (
    *("mean of sites", "low", "high", "p", "another site, low", "another site, high"),
    *("tau2", "I2", "Q", "p of Q", "fixed effect", "se of fixed", "pooled", "se of pooled"),
)
WHY_NOT = {
    "few": "too few events",
    "separated": "columns separate the outcomes",
    "unidentified": "columns that say the same, or a level that nobody has",
    "beyond": "an estimate beyond the declared range",
}


LARGEST_LOG = 300.0
"""Ends beyond this leave any drawing."""


@dataclass(frozen=True)
class SiteRow:
    """One site's own estimate of a coefficient.

    Attributes
    ----------
    site : str
    estimate, se : float
    weight : float
        Its share in the mean of sites; in the fixed effect where there are two.
    """

    site: str
    estimate: float
    se: float
    weight: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Its confidence interval."""
        reach = float(ndtri(upper_end(level))) * self.se
        return self.estimate - reach, self.estimate + reach


@displayed
@dataclass(frozen=True, eq=False)
class MetaAnalysis(ForPapers):
    """Estimates of sites put together, of p coefficients.

    Attributes
    ----------
    formula : str
    family : {"binomial", "gaussian", "poisson", "cox"}
        Of each site's own model.
    effects : tuple of CombinedEffect
        One for each coefficient.
    n_fitted : int
        Sites with estimates of their own; only these count.
    without : mapping from trouble to number
        Sites without, by why: `few` events, `separated`, `unidentified`, or `beyond` what is declared.
    n_records : float
        At sites with estimates.
    pooled, pooled_se : arrays of shape (p,)
        Of the pooled fit with an intercept, or a baseline, for every site; NaN where it was not asked.
    rows : mapping from name to tuple of SiteRow
        Each site's own estimates of a coefficient, where sites agreed to show them.
    rounds, n_parties, n_missing, left, protection, cases
        As in `hedgerow.stats.Fit`.
    """

    formula: str
    family: SiteModel
    effects: tuple[CombinedEffect, ...]
    n_fitted: int
    without: Mapping[str, int]
    n_records: float
    pooled: Array
    pooled_se: Array
    rows: Mapping[str, tuple[SiteRow, ...]]
    rounds: int
    n_parties: int
    n_missing: int
    left: str
    protection: str
    cases: LeftOut | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        return tuple(effect.name for effect in self.effects)

    def __getitem__(self, name: str) -> CombinedEffect:
        for effect in self.effects:
            if effect.name == name:
                return effect
        raise MissingColumn(f"no coefficient {name!r} was put together.", remedy=f"Those are {', '.join(self.names)}.")

    @property
    def ratio(self) -> str:
        """What the exponential of an effect is, such as an odds ratio; empty where it means nothing."""
        return "hazard ratio" if self.family == "cox" else loss_of(self.family).ratio

    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Return one row for each coefficient: means, intervals, heterogeneity, and the pooled fit."""
        import pandas

        rows = []
        for one, pooled, error in zip(self.effects, self.pooled, self.pooled_se, strict=True):
            low, high = one.interval(level) if one.k > 2 else one.fixed_interval(level)
            inner, outer = one.prediction(level)
            mean = one.mean if one.k > 2 else one.fixed
            heterogeneity = (one.tau2, one.i2, one.q, one.p_heterogeneity)
            rows.append((mean, low, high, one.p_value, inner, outer, *heterogeneity, one.fixed, one.fixed_se, pooled, error))
        return pandas.DataFrame(rows, index=pandas.Index(self.names, name="column"), columns=list(COLUMNS))

    def sites(self, name: str, level: float = 0.95) -> pandas.DataFrame:
        """Return one row for each site that is shown; none where sites did not show their estimates."""
        import pandas

        found = [(row.site, row.estimate, row.se, *row.interval(level), row.weight) for row in self.rows.get(name, ())]
        return pandas.DataFrame(found, columns=["site", "estimate", "se", "low", "high", "weight"]).set_index("site")

    def forest(self, name: str, level: float = 0.95) -> ForestPlot:
        """Return the forest plot of a coefficient: the sites that are shown, all together, and where another is expected.

        Ratios are drawn as ratios. The total is the mean of sites, of two sites the fixed effect.
        """
        one = self[name]

        def row(site: str, estimate: float, interval: tuple[float, float], weight: float = 1.0) -> ForestRow:
            estimate, low, high = (self._read(value) for value in (estimate, *interval))
            return ForestRow(site, estimate, low, high, weight)

        found, many = self.rows.get(name, ()), one.k > 2
        aside = one.k - len(found)
        what = f"mean of sites, {BETWEEN[one.between]}, with Hartung and Knapp's error" if many else "fixed effect"
        low, high = one.prediction(level)
        return ForestPlot(
            title=f"{name}: {self.ratio or 'coefficient'} at each site",
            x_label=self.ratio or "coefficient",
            rows=tuple(row(site.site, site.estimate, site.interval(level), site.weight) for site in found),
            total=row("all sites", *((one.mean, one.interval(level)) if many else (one.fixed, one.fixed_interval(level)))),
            prediction=(self._read(low), self._read(high)) if many else None,
            ratio=bool(self.ratio),
            sentence=one.sentence,
            note=f"Total: {what}{f'; {aside} more sites count in it and are not drawn' if aside else ''}.",
            level=level,
        )

    def _read(self, value: float) -> float:
        """A value on the scale that is read: of logarithms of ratios the ratios."""
        return math.exp(min(value, LARGEST_LOG)) if self.ratio else value

    def plot(self, name: str | None = None, level: float = 0.95) -> Figure:
        """Draw the forest plot of a coefficient, the first by default, as SVG."""
        return Figure(self.forest(name or self.names[0], level))

    def summary(self, level: float = 0.95) -> str:
        """Return the analysis as text, with what left each party and how it was protected."""
        without = [f"{n} {WHY_NOT[one]}" for one, n in self.without.items() if n]
        facts = [
            ("parties", answered(self.n_parties, self.n_missing)),
            ("sites with estimates", show(self.n_fitted)),
            ("records there", show(round(self.n_records)) if self.cases is None or self.cases.exact
             else f"about {show(self.cases.shown(self.n_records))}"),
        ]  # fmt: skip
        said = {"without": "; ".join(without) + ": add nothing"} if without else {}
        said |= {one.name: one.sentence for one in self.effects}
        if self.n_fitted > 2:
            said["tau²"] = f"by {BETWEEN[self.effects[0].between]}"
        if any(one.was_raised for one in self.effects):
            said["errors"] = "Hartung and Knapp's, raised to the ordinary one where sites agree by luck"
        if np.isfinite(self.pooled).any():
            every = "a baseline" if self.family == "cox" else "an intercept"
            said["pooled"] = f"all records in one fit, with {every} for every site; the two should agree"
        said |= {"protection": self.protection, "left each party": self.left}
        return survival_summary(
            f"hedgerow meta-analysis of {TITLES[self.family]} regressions",
            f"{self.rounds} questions",
            self.formula,
            facts,
            self._table(level),
            said,
            None if self.cases is None else self.cases.sentence(),
        )

    def _table(self, level: float) -> list[str]:
        frame = self.to_frame(level)
        columns = [["", *self.names], ["mean", *map(show, frame["mean of sites"])]]
        columns.append([f"{level:.0%} CI", *(f"{show(a)} to {show(b)}" for a, b in frame[["low", "high"]].to_numpy())])
        if self.n_fitted > 2:
            ends = frame[["another site, low", "another site, high"]].to_numpy()
            columns += [["another site", *(f"{show(a)} to {show(b)}" for a, b in ends)], ["tau²", *map(show, frame["tau2"])]]
        columns.append(["I²", *(f"{share:.0%}" for share in frame["I2"])])
        if np.isfinite(self.pooled).any():
            columns.append(["pooled", *map(show, frame["pooled"])])
        widths = [max(map(len, column)) for column in columns]
        return [
            row[0].ljust(widths[0]) + "  " + "  ".join(map(str.rjust, row[1:], widths[1:]))
            for row in zip(*columns, strict=True)
        ]

    def __str__(self) -> str:
        return self.summary()


def meta_of(federation: Federation, settings: Mapping[str, Any], state: MetaState, asked_before: int = 0) -> MetaAnalysis:
    """Turn the last state of `meta_rounds` into an analysis.

    Parameters
    ----------
    settings : mapping
        With which it was asked.
    asked_before : int
        Length of the ledger before its first question.
    """
    names, places = names_of_model(federation, settings, settings.get("coefficients"))
    units, family = units_of(federation, settings, places), settings.get("family", "binomial")
    between = between_of(federation, settings.get("between"))
    effects = tuple(
        effect_of(name, state.of(j), float(state.centre[j]), float(units[j]), between) for j, name in enumerate(names)
    )
    pooled, error = _pooled(federation, settings, state, names)
    spec = model_of(federation, settings)
    return MetaAnalysis(
        formula=settings["formula"],
        family=family,
        effects=effects,
        n_fitted=round(float(state.counts["fitted"])),
        without={one: round(float(n)) for one, n in zip(TROUBLES, state.counts["troubles"], strict=True)},
        n_records=float(state.counts["n"]),
        pooled=pooled,
        pooled_se=error,
        rows={name: _rows(state, j, effects[j]) for j, name in enumerate(names)} if state.rows else {},
        rounds=state.round,
        **provenance(federation, asked_before, spec.schema.names),
    )


def _rows(state: MetaState, j: int, effect: CombinedEffect) -> tuple[SiteRow, ...]:
    """The sites' own estimates of one coefficient."""
    tau2 = effect.tau2 if effect.k > 2 else 0.0
    total = (effect.se if effect.k > 2 else effect.fixed_se) ** -2.0
    return tuple(
        SiteRow(site, float(found[0, j]), math.sqrt(float(found[1, j])), float(1 / (found[1, j] + tau2) / total))
        for site, found in state.rows.items()
    )


def _pooled(
    federation: Federation, settings: Mapping[str, Any], state: MetaState, names: tuple[str, ...]
) -> tuple[Array, Array]:
    """Estimates and errors of the pooled fit, NaN where it has none."""
    coef, error = np.full(len(names), np.nan), np.full(len(names), np.nan)
    if not state.pooled:
        return coef, error
    last, family = unpacked(state.pooled), settings.get("family", "binomial")
    if family == "cox":
        every = model_of(federation, settings).names
    else:
        every = within_design(federation, settings["formula"], family, settings.get("offset")).names
    free = last.deviance / (last.n - len(every) - float(last.kept["sites"])) if family == "gaussian" else 1.0
    se = np.sqrt(free * np.diag(solve(last.information, np.eye(len(every)))))
    for j, name in enumerate(names):
        if name in every:
            coef[j], error[j] = last.beta[every.index(name)], se[every.index(name)]
    return coef, error


def show_meta(federation: Federation, settings: Mapping[str, Any], state: MetaState) -> Outcome:
    """Show the analysis: means with intervals, heterogeneity, the pooled fit, and sites where they are shown."""
    import pandas

    found = meta_of(federation, settings, state)
    frame = found.to_frame()
    tables = {"Meta-analysis": frame}
    if found.ratio:
        ends = ["mean of sites", "low", "high", "another site, low", "another site, high", "pooled"]
        ratios = pandas.DataFrame(np.exp(frame[ends].to_numpy()), index=frame.index, columns=ends)
        tables["Hazard ratios" if found.family == "cox" else loss_of(found.family).ratios] = ratios
    tables |= {f"Sites: {name}": found.sites(name) for name in found.names if found.rows}
    notes = [f"{one.name}: {one.sentence}" for one in found.effects]
    forests = [found.forest(name) for name in found.names] if found.rows else []
    metrics, text = {"sites with estimates": float(found.n_fitted)}, {"Summary": found.summary()}
    return Outcome(metrics, tables=tables, text=text, coefficients=frame, notes=notes, forests=forests)
