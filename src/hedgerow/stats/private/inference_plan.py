"""How a private regression with intervals is asked: its parts, their shares of a budget, and what each question releases.

The boxes are those of `hedgerow.stats.private.inference`.

Unit     : record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, l2
from hedgerow.core.federation import Federation
from hedgerow.core.question import elementwise, travels
from hedgerow.display import displayed
from hedgerow.errors import FormulaInvalid, SettingsInvalid
from hedgerow.privacy.level import noise_level
from hedgerow.privacy.shares import BudgetShares, Share

from ..indicators import cases_of_model
from ..linear.sums import linear_sums
from .intervals import Estimated, from_last_step, from_moments, kept_columns_of, residual_cut
from .newton import LONGEST, damped, null_model
from .rows import UnitRows, rows_as_asked, unit_rows
from .second_moments import MomentParts, residual_moments, unit_moments

PARTS = {
    "gram": Share(0.05),
    "scores": Share(0.25, 5),
    "informations": Share(0.1, 3),
    "last score": Share(0.35),
    "last information": Share(0.25),
}
ASKED = ("gram", "scores", *("scores", "informations") * 3, "scores", "last score", "last information")
"""Part of each question of a logistic regression, in order."""
MOMENTS = MomentParts(math.sqrt(0.5), math.sqrt(0.4), math.sqrt(0.1))
PRODUCTS = MomentParts(1.0, 0.0)
ROBUST = {"moments": Share(0.8), "residuals": Share(0.2)}


@displayed
@dataclass(frozen=True)
class InferenceState:
    """What was released so far, of the columns that are kept.

    Attributes
    ----------
    round : int
        Questions so far.
    coef : array of shape (d,)
        Where the next question is asked; at the end the estimate.
    gram : array of shape (d, d)
        X'X of a linear regression, X'X / 4 of a logistic one.
    score : array of shape (d,)
        X'y; or the last score.
    information : array of shape (d, d)
        Of a logistic regression, the last one released; of a robust linear one products with shares of squared residuals.
    square : float
        y'y of a linear regression; else zero.
    """

    round: int
    coef: Array
    gram: Array
    score: Array
    information: Array
    square: float = 0.0


@travels
@elementwise
def kept_columns(columns: Mapping[str, Array], *, keep: tuple[int, ...]) -> dict[str, Array]:
    """Prepare `X` (n, d) of some columns alone, and an offset of zeros."""
    X = np.asarray(columns["X"])[:, list(keep)]
    return {"X": X, "offset": np.zeros(len(X))}


@dataclass(frozen=True)
class InferencePlan:
    """A regression with intervals as it will be asked; made by `InferencePlan.of`.

    Attributes
    ----------
    rows : UnitRows
        Divided by the largest length that there can be.
    budget : BudgetShares
    robust : bool
        Whether products with squared residuals are asked besides.
    """

    rows: UnitRows
    budget: BudgetShares
    robust: bool = False

    @classmethod
    def of(cls, schema: Any, settings: Mapping[str, Any]) -> InferencePlan:
        """Read the settings of `private_inference`; nobody is asked."""
        rows = UnitRows.of(settings["formula"], schema, length="fixed", weights=settings["weights"]).about_the_middle()
        if not rows.spec.terms or rows.spec.terms[0].factors:  # levels of a category add up to a constant, and count nobody
            raise FormulaInvalid(
                f"{settings['formula']!r} has no constant term of its own.",
                remedy="Leave '- 1' and '+ 0' out: intervals count records by the constant.",
            )
        if settings["epsilon"] is not None and not settings["delta"]:
            raise SettingsInvalid(
                "intervals follow from Gaussian noise, and without a delta it is Laplace.", remedy="Give a delta, such as 1e-5."
            )
        robust = bool(settings.get("robust", False))
        if robust and not rows.numeric:
            raise SettingsInvalid(
                "robust=True is of a linear regression, whose residuals may have any variance.", remedy="Leave robust out."
            )
        shares = BudgetShares(settings["epsilon"], settings["delta"], settings["noise_at"], settings["least"])
        return cls(rows, shares, robust)

    @property
    def linear(self) -> bool:
        return self.rows.numeric

    def records(self, gram: Array) -> float:
        """Number of records, by the constant's number in a gram matrix as released."""
        return float(gram[0, 0]) * self.rows.factor**2 * (1.0 if self.linear else 4.0)

    @cached_property
    def kept(self) -> Array:
        return kept_columns_of(self.rows)

    @property
    def size(self) -> int:
        """Columns that are kept."""
        return int(self.kept.sum())

    @property
    def parts(self) -> dict[str, Share]:
        """Everything that is asked."""
        if self.linear:
            return ROBUST if self.robust else {"moments": Share(1.0)}
        return PARTS

    def bound(self, part: str) -> Bound:
        """Of what one record adds to a question of a part."""
        if self.linear:
            parts = PRODUCTS if part == "residuals" else MOMENTS
            return parts.bound(2, len(self.rows.blocks), self.rows.heaviest)
        return l2(self.rows.heaviest * (1.0 if "score" in part else 0.25), "record")

    def handles(self, federation: Federation, begins: bool = False) -> dict[str, Federation]:
        """The federation as each part is asked, its rows prepared; see `BudgetShares.handles`."""
        if federation.expected_size < federation.size:
            raise SettingsInvalid(
                "these are some of the parties, and parties differ in more than records drawn from one model do.",
                remedy="Ask all parties; a sample of records, federation.sample(records=...), has intervals as well.",
            )
        known = cases_of_model(federation, self.rows.spec, count=self.budget.epsilon is None)
        keep = tuple(np.flatnonzero(self.kept).tolist())
        rows = rows_as_asked(self.rows, federation, planned=self.budget.epsilon is not None)
        ready = known.prepare(unit_rows, spec=rows).prepare(kept_columns, keep=keep)
        found = self.budget.handles(ready, self.parts, begins=begins)
        for handle in found.values():
            if handle.protection.law not in (None, "gaussian", "skellam"):
                raise SettingsInvalid(
                    f"intervals follow from Gaussian noise, and this is {handle.protection.mechanism}.",
                    remedy="Protect by Gaussian noise, or give epsilon and delta.",
                )
        return found

    def noise(self, handle: Federation, part: str) -> float:
        """Standard deviation of the noise in a number of an answer, on the diagonal of a matrix."""
        d = self.size
        linear = PRODUCTS if part == "residuals" else MOMENTS
        size = linear.size(d) if self.linear else d if "score" in part else d * d
        return noise_level(handle, self.bound(part), "" if self.linear else _key(part), size)

    # ---- what is asked ----------------------------------------------------------------------------------------------
    def moments(self, handle: Federation) -> InferenceState:
        """Ask for the moments of a linear regression."""
        total = handle.sum(partial(unit_moments, parts=MOMENTS, labels=False), bound=self.bound("moments"))
        found, d = MOMENTS.read(total, self.size), self.size
        return InferenceState(1, np.zeros(d), found.gram, found.score, np.zeros((d, d)), found.square)

    def residuals(self, handles: Mapping[str, Federation], state: InferenceState) -> InferenceState:
        """Ask for products of rows with shares of squared residuals of the moments' estimate."""
        found = self.of_moments(handles, state)
        broadcast = {"theta": found.coef, "most": np.array(self.cut(handles, state, found))}
        ask = partial(residual_moments, parts=PRODUCTS)
        total = handles["residuals"].sum(ask, broadcast, bound=self.bound("residuals"))
        return replace(state, round=2, information=PRODUCTS.read(total, self.size).gram)

    def cut(self, handles: Mapping[str, Federation], state: InferenceState, found: Estimated) -> float:
        """Where squared residuals were cut off; it follows from what was released before."""
        n, noise = self.records(state.gram), self.noise(handles["residuals"], "residuals")
        return residual_cut(found, state.gram, state.square, n, noise)

    def of_moments(self, handles: Mapping[str, Federation], state: InferenceState, **more: Any) -> Estimated:
        """The estimate of a linear regression's moments."""
        level = self.noise(handles["moments"], "moments")
        noise = (level / MOMENTS.gram, level / MOMENTS.score, level / MOMENTS.square)
        return from_moments(state.gram, state.score, state.square, n=self.records(state.gram), noise=noise, **more)

    def sum(self, handles: Mapping[str, Federation], part: str, coef: Array) -> Array:
        """Ask for a score (d,) or an information (d, d) of a logistic regression at coefficients."""
        key = _key(part)
        ask = partial(linear_sums, loss="binomial", keys=(key,))
        found = np.asarray(handles[part].sum(ask, {"beta": coef}, bound={key: self.bound(part)})[key])
        return found if found.ndim == 1 else (found + found.T) / 2

    def after(self, handles: Mapping[str, Federation], part: str, state: InferenceState) -> InferenceState:
        """The state after the next question of a logistic regression."""
        asked_at = state.coef if state.round else np.zeros(self.size)
        found = self.sum(handles, part, asked_at)
        state = replace(state, round=state.round + 1)
        if part == "scores":
            return replace(state, coef=state.coef + self.step(handles, found, state))
        return replace(state, **{"gram": {"gram": found}, "last score": {"score": found}}.get(part, {"information": found}))

    def step(self, handles: Mapping[str, Federation], score: Array, state: InferenceState) -> Array:
        """Where a noisy score leads: see `hedgerow.stats.private.newton`."""
        factor, level = self.rows.factor, self.noise(handles["scores"], "scores")
        if state.information.any():
            return damped(state.information, self.noise(handles["informations"], "informations"), score)
        if not state.coef.any():
            log_odds = null_model(float(score[0]), self.records(state.gram) / factor, level)
            return log_odds * factor * np.eye(self.size)[0]
        rate = 1 / (1 + math.exp(-float(state.coef[0]) / factor))
        scale = 4 * rate * (1 - rate)
        return damped(scale * state.gram, scale * self.noise(handles["gram"], "gram"), score, LONGEST * factor)

    def estimated(self, federation: Federation, state: InferenceState) -> Estimated:
        """The estimate that a last state holds, with its covariance."""
        handles = self.handles(federation)
        if self.linear:
            if not self.robust:
                return self.of_moments(handles, state)
            most = self.cut(handles, state, self.of_moments(handles, state))
            level = self.noise(handles["residuals"], "residuals")
            return self.of_moments(handles, state, meat=(most * state.information, most * level))
        score, matrix = (self.noise(handles[part], part) for part in ("last score", "last information"))
        weight = float(state.information[0, 0]) * self.rows.factor**2
        n = self.records(state.gram)
        return from_last_step(state.coef, state.score, state.information, n=n, weight=weight, noise=(score, matrix))


def _key(part: str) -> str:
    return "score" if "score" in part else "information"
