"""An audit of a study, in three lights: law, bound and attack, beside the epsilon that its ledger states."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from hedgerow.attacks.audits.ceiling import RATES, AttackCeiling
from hedgerow.attacks.audits.law import LawTest, law_test
from hedgerow.attacks.audits.one_run import GaussianFamily, NoiseFamily, OneRunBound, one_run_bounds, refutes
from hedgerow.attacks.audits.sums import LawSums
from hedgerow.attacks.observers.rates import MembershipRates
from hedgerow.core.arrays import Array
from hedgerow.core.events import Charge, Unit
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.accounting import epsilon, gaussian_noise
from hedgerow.privacy.accounting.losses import ROUGH
from hedgerow.privacy.accounting.trade_off import trade_off_of
from hedgerow.report import AuditLights, BarChart, Grid
from hedgerow.report.model import Cell

from ..build import Built
from ..study import Study
from .evidence import Evidence
from .running import Scores, audited

DELTA = 1e-5
"""Where a study has no budget that says another one."""

SEES = 0.5
"""A light is dim where half the noise, or canaries of twice the bound, would be found with less than this chance."""

LIGHTS = 3
"""They share the level."""

SURE = 0.95
"""Of lower bounds."""

PLACES = 5
"""Numbers of guesses that are tried; each has its share of a level."""

LEAST = 16
"""Of fewer canaries guesses prove nothing."""

MOST_DELTA = 0.1
"""Of delta times canaries: beyond it a bound for any mechanism says nothing, so it is told at a smaller delta."""

BINS = 24


@dataclass(frozen=True)
class StudyAudit:
    """What an audit of a study found.

    Attributes
    ----------
    unit : {"record", "party"}
    canaries : int
        In each run.
    level : float
        With which right code has a red light, at most; a third for each light.
    epsilon, delta, mu : float
        Of one run's ledger; mu is that of the Gaussian mechanism with the same epsilon and delta.
    law : LawTest
        Of the releases of all runs; its mu is in the unit of `mu`.
    scores : Scores
        Of all runs' canaries.
    bounds : OneRunBound or None
        Where there are canaries that could be told apart, at its own delta.
    beyond : bool
        Whether guesses are better than the accounted trade-off function allows, at the level of the law.
    ceiling : AttackCeiling
    by_loss : MembershipRates or None
        Of who is shown the last model alone, and takes canaries with small losses for members.
    """

    study: str
    unit: Unit
    canaries: int
    runs: int
    seed: int
    level: float
    seconds: float
    releases: int
    epsilon: float
    delta: float
    mu: float
    law: LawTest
    scores: Scores
    bounds: OneRunBound | None
    beyond: bool
    ceiling: AttackCeiling
    by_loss: MembershipRates | None

    @property
    def red(self) -> bool:
        """Whether something is not as the ledger says."""
        return self.lights.red

    @property
    def rates(self) -> MembershipRates | None:
        """How well scores tell canaries that are in from others."""
        members, others = self.scores.members, self.scores.others
        return MembershipRates.of(members, others) if len(members) and len(others) else None

    @property
    def lights(self) -> AuditLights:
        """Three lights with their words."""
        seen, runs = self.law.power, f"{self.runs} run{'s' * (self.runs != 1)}"
        kind = {"record": "records", "party": "parties"}[self.unit]
        return AuditLights(
            accounted=f"epsilon {self.epsilon:.3g} at delta {self.delta:g} (mu {self.mu:.3g}) per {self.unit}",
            sentence=f"{self.study}, {self.canaries} canaries in each of {runs}, {kind} that are in by fair coins, "
            f"seed {self.seed}: {self.releases} releases, {self.seconds:.0f} s",
            lights=(self._law(), self._bound(), self._attack()),
            power=f"half the noise: {seen.against(0.5):.2f}; noise over root 2: {seen.against(0.5**0.5):.2f}; "
            f"contributions of twice the bound: {seen.against(1.0, 2.0):.2f}; "
            + f"a division by how many joined: {seen.by_division():.2f}; " * (seen.division > 0)
            + f"at level {self.level:g} for three lights",
            scores=self._histogram(),
        )

    @property
    def grid(self) -> Grid:
        """The numbers, as a row of a table."""
        law, rates = self.law, self.rates
        row: dict[str, Cell] = {
            "accounted": f"epsilon {self.epsilon:.3g} per {self.unit}",
            "mu": self.mu,
            "mu found": _told(law.mu),
            "from": law.low,
            "to": _told(law.high),
            "noise": _told(law.noise),
            "contributions": _told(law.length),
            "sees half the noise": law.power.against(0.5),
            "sees twice the bound": law.power.against(1.0, 2.0),
            "epsilon at least (f-DP)": None if self.bounds is None else self.bounds.of_family,
            "epsilon at least (any)": None if self.bounds is None else self.bounds.any_mechanism,
            "AUC": None if rates is None else rates.area,
            "AUC by loss": None if self.by_loss is None else self.by_loss.area,
            "ceiling of AUC": self.ceiling.area,
        }
        note = f"Canaries in runs of the audit's own; the interval is of {law.sureness:.2%}; noise as charged is 1."
        return Grid("Audit by canaries", tuple(row), (tuple(row.values()),), note)

    def _law(self) -> tuple[str, str, str, str]:
        law = self.law
        found, beside = "no canary was in a sample", f"noise {law.noise:.3f} of what was charged"
        if math.isfinite(law.mu):
            found = f"mu {law.mu:.3g}, {law.sureness:.2%} interval {max(0.0, law.low):.3g} to {law.high:.3g}"
            beside += f", contributions {law.length:.2f} of their bound"
        if law.light == "red":
            return "law", "red", law.sentence(), f"{found}; {beside}"
        if law.light == "amber":
            beside += ": more noise than charged" if law.noise > 1 else ": less than is charged"
        return "law", "green" if min(law.power.against(0.5), law.power.against(1.0, 2.0)) >= SEES else "dim", found, beside

    def _bound(self) -> tuple[str, str, str, str]:
        if self.bounds is None:
            return "bound", "dim", "canaries cannot be told apart in so few numbers", f"epsilon {self.epsilon:.3g}"
        bound, at = self.bounds, f" at delta {self.bounds.delta:.2g}" * (self.bounds.delta < self.delta)
        found = f"epsilon >= {bound.of_family:.2f} (f-DP), >= {bound.any_mechanism:.2f} (any mechanism){at}"
        found += f", confidence {SURE:g}"
        beside = f"{bound.right} of {bound.guesses} guesses were right: {'more' if self.beyond else 'no more'} than is charged"
        above = max(bound.of_family, bound.any_mechanism) > self.epsilon
        return "bound", "red" if self.beyond else "dim" if above else "green", found, beside

    def _attack(self) -> tuple[str, str, str, str]:
        rates = self.rates
        if rates is None:
            return "attack", "dim", "no scores of both kinds", self._ceiling()
        n, m = len(rates.members), len(rates.others)
        if n + m < LEAST:
            return "attack", "dim", f"{n + m} canaries are too few", self._ceiling()
        error = math.sqrt((n + m + 1) / (12 * n * m))
        told = [f"AUC {rates.area:.3f}"]
        beyond = rates.area - float(norm.isf(self.level / LIGHTS)) * error > self.ceiling.area
        untold = []
        for rate in RATES:
            try:
                told.append(f"TPR {rates.at(rate, 1 - self.level)} at FPR {rate:.1%}")
            except SettingsInvalid:
                untold.append(f"{rate:.1%}")
        if untold:
            told.append(f"none told at FPR {' and '.join(untold)} of {m} others alone")
        if self.by_loss is not None:
            told.append(f"AUC {self.by_loss.area:.3f} by losses of the last model alone")
        return "attack", "red" if beyond else "green", ", ".join(told), self._ceiling()

    def _ceiling(self) -> str:
        rates = ", ".join(f"TPR {self.ceiling.at(rate):.2%} at FPR {rate:.1%}" for rate in RATES)
        return f"ceiling: AUC {self.ceiling.area:.3f}, {rates}"

    def _histogram(self) -> BarChart | None:
        rates = self.rates
        if rates is None:
            return None
        both = np.concatenate([rates.members, rates.others])
        ends = np.linspace(both.min(), both.max(), BINS + 1)
        if not ends[-1] > ends[0]:
            return None
        counts = [np.histogram(part, ends)[0] / len(part) for part in (rates.members, rates.others)]
        return BarChart(
            title="Scores of canaries",
            x_label="log-odds of having been in",
            bars=(("in", _floats(counts[0])), ("not in", _floats(counts[1]))),
            ends=tuple(float(f"{end:.3g}") for end in ends),
            note="The less the two overlap, the more an observer of all releases knows, who has all other records besides.",
        )


def _told(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def audit(
    study: Study,
    *,
    canaries: int = 400,
    runs: int = 1,
    seed: int = 0,
    level: float = 1e-3,
    data_dir: str | Path | None = None,
    make: Callable[[Study], Built] | None = None,
) -> StudyAudit:
    """Train a study once more with canaries, and compare what they show with what its ledger states.

    Parameters
    ----------
    canaries, runs, seed
        As `audited`.
    level : float
        With which right code has a red light, at most; a third for each light.

    Raises
    ------
    SettingsInvalid (HR-511)
        The study cannot be audited, the sentence says why; or a level outside (0, 0.5).
    """
    if not 0 < level < 0.5:
        raise SettingsInvalid(f"level {level!r}.", remedy="Give a probability below 0.5; 1e-3 is usual.")
    started = time.perf_counter()
    found = audited(study, canaries=canaries, runs=runs, seed=seed, data_dir=data_dir, make=make)
    scores = Scores.of(found.evidence)
    delta = study.budget.delta if study.budget else DELTA
    accounted = _epsilon(found.charges, delta)
    mechanism = trade_off_of(found.charges, "add-remove", ROUGH)
    bounds = _bounds(scores, found.charges, delta)
    mu = 1 / gaussian_noise(accounted, delta) if math.isfinite(accounted) and accounted > 0 else math.inf
    sums = LawSums.over([one.law for one in found.evidence])
    return StudyAudit(
        study=study.name,
        unit=found.unit,
        canaries=len(found.evidence[0].inside),
        runs=runs,
        seed=seed,
        level=level,
        seconds=time.perf_counter() - started,
        releases=sum(one.releases for one in found.evidence),
        epsilon=accounted,
        delta=delta,
        mu=mu,
        law=law_test(sums, level=level / LIGHTS, accounted=mu if math.isfinite(mu) else 1.0),
        scores=scores,
        bounds=bounds,
        beyond=bounds is not None
        and refutes(bounds.canaries, bounds.guesses, bounds.right, mechanism, level / LIGHTS / PLACES),
        ceiling=AttackCeiling.of(accounted, delta, mechanism),
        by_loss=_by_loss(found.evidence),
    )


def _bounds(scores: Scores, charges: list[Charge], delta: float) -> OneRunBound | None:
    """What guesses prove of epsilon, by the accounted mechanism at other noise where that is known."""
    m = len(scores.members) + len(scores.others)
    if m < LEAST or not len(scores.members) or not len(scores.others):
        return None
    try:
        family: Any = NoiseFamily.of(charges)
    except SettingsInvalid:
        family = GaussianFamily()
    return one_run_bounds(
        scores.members, scores.others, min(delta, MOST_DELTA / m), family=family, places=PLACES, level=1 - SURE
    )


def _by_loss(evidence: Sequence[Evidence]) -> MembershipRates | None:
    parts = [(one.losses, one.inside) for one in evidence if one.losses is not None and np.isfinite(one.losses).all()]
    if not parts:
        return None
    losses, inside = (np.concatenate(part) for part in zip(*parts, strict=True))
    return MembershipRates.of(-losses[inside], -losses[~inside]) if inside.any() and not inside.all() else None


def _epsilon(charges: list[Charge], delta: float) -> float:
    return epsilon(charges, delta=delta, adjacency="add-remove")
