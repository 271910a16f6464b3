"""Private regression with intervals: a plan whose last questions make the noise of the estimate known.

Linear, for a number:

    M           <- sum of  (a x x', b x y, c y^2)  in one ball                            shares a^2, b^2, c^2 of mu^2
    theta, V    <- least squares of M, and its covariance                                 `intervals.from_moments`

Logistic, for two classes:

    H           <- sum of  x x' / 4                                      l2(1/4)          share .1
    P           <- (eigenvalues of H not below zero) + sqrt(d) sigma_H I
    repeat T times:
        theta   <- theta + P^-1 (sum of (y - p) x)                       l2(1)            share .4 / T each
    s           <- sum of (y - p) x                                      l2(1)            share .3
    J           <- sum of p (1 - p) x x'                                 l2(1/4)          share .2
    theta, V    <- theta + J^-1 s, and its covariance                                     `intervals.from_last_step`

Rows are divided by the largest length that there can be, so that the model is the formula's own; categories lose their
reference levels, as in an ordinary regression, since their indicators would add up to the constant. The shares are public
constants, looked at in simulations of 5 000 to 20 000 records and six columns.

Releases : what the boxes ask, each once but for the T scores.
Unit     : record.
Source   : as `hedgerow.stats.private.intervals`; Boehning & Lindsay 1988 for the majoriser.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, l2
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.core.question import elementwise, travels
from hedgerow.data import complete_cases, load
from hedgerow.display import displayed
from hedgerow.errors import FormulaInvalid, NotBinary, SettingsInvalid
from hedgerow.privacy.level import noise_level
from hedgerow.privacy.shares import BudgetShares, Share
from hedgerow.report import Outcome

from ..columns import schema_of
from ..linear.sums import linear_sums
from .fit import PrivateFit, private_fit
from .intervals import Estimated, from_last_step, from_moments, kept_columns_of, scattered
from .rows import UnitRows, rows_as_asked, unit_rows
from .second_moments import MomentParts, unit_moments

SCORES = 8
"""Noisy scores before the last one."""
PARTS = {"gram": Share(0.1), "scores": Share(0.4, SCORES), "last score": Share(0.3), "information": Share(0.2)}
MOMENTS = MomentParts(math.sqrt(0.5), math.sqrt(0.4), math.sqrt(0.1))


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
        Of a logistic regression at the last but one coefficients; else zeros.
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
    """

    rows: UnitRows
    budget: BudgetShares

    @classmethod
    def of(cls, schema: Any, settings: Mapping[str, Any]) -> InferencePlan:
        """Read the settings of `private_inference`; nobody is asked."""
        rows = UnitRows.of(settings["formula"], schema, length="fixed", weights=settings["weights"])
        if not rows.spec.has_constant:
            raise FormulaInvalid(
                f"{settings['formula']!r} has no constant.", remedy="Leave '- 1' and '+ 0' out: intervals count records by it."
            )
        if settings["epsilon"] is not None and not settings["delta"]:
            raise SettingsInvalid(
                "intervals follow from Gaussian noise, and without a delta it is Laplace.", remedy="Give a delta, such as 1e-5."
            )
        return cls(rows, BudgetShares(settings["epsilon"], settings["delta"], settings["noise_at"], settings["least"]))

    @property
    def linear(self) -> bool:
        return self.rows.numeric

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
        return {"moments": Share(1.0)} if self.linear else PARTS

    def bound(self, part: str) -> Bound:
        """Of what one record adds to a question of a part."""
        if self.linear:
            return MOMENTS.bound(2, len(self.rows.blocks), self.rows.heaviest)
        return l2(self.rows.heaviest * (1.0 if "score" in part else 0.25), "record")

    def handles(self, federation: Federation, begins: bool = False) -> dict[str, Federation]:
        """The federation as each part is asked, its rows prepared; see `BudgetShares.handles`."""
        known = complete_cases(federation, self.rows.spec.schema.names, count=self.budget.epsilon is None)
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
        size = MOMENTS.size(d) if self.linear else d if "score" in part else d * d
        return noise_level(handle, self.bound(part), "" if self.linear else _key(part), size)

    # ---- what is asked ----------------------------------------------------------------------------------------------
    def moments(self, handle: Federation) -> InferenceState:
        """Ask for the moments of a linear regression."""
        total = handle.sum(partial(unit_moments, parts=MOMENTS, labels=False), bound=self.bound("moments"))
        found, d = MOMENTS.read(total, self.size), self.size
        return InferenceState(1, np.zeros(d), found.gram, found.score, np.zeros((d, d)), found.square)

    def sum(self, handles: Mapping[str, Federation], part: str, coef: Array) -> Array:
        """Ask for a score (d,) or an information (d, d) of a logistic regression at coefficients."""
        key = _key(part)
        ask = partial(linear_sums, loss="binomial", keys=(key,))
        found = np.asarray(handles[part].sum(ask, {"beta": coef}, bound={key: self.bound(part)})[key])
        return found if found.ndim == 1 else (found + found.T) / 2

    def estimated(self, federation: Federation, state: InferenceState) -> Estimated:
        """The estimate that a last state holds, with its covariance."""
        handles = self.handles(federation)
        if self.linear:
            level = self.noise(handles["moments"], "moments")
            noise = (level / MOMENTS.gram, level / MOMENTS.score, level / MOMENTS.square)
            n = float(state.gram[0, 0]) * self.rows.factor**2
            return from_moments(state.gram, state.score, state.square, n=n, noise=noise)
        last = self.noise(handles["last score"], "last score"), self.noise(handles["information"], "information")
        return from_last_step(state.coef, state.score, state.information, noise=last)


def _key(part: str) -> str:
    return "score" if "score" in part else "information"


def _show(federation: Federation, settings: Mapping[str, Any], state: InferenceState) -> Outcome:
    """Coefficients of rows, with standard errors where there are any."""
    import pandas

    plan = InferencePlan.of(schema_of(federation), settings)
    found = plan.estimated(federation, state)
    coef, covariance = scattered(found, plan.kept)
    index = pandas.Index(plan.rows.names, name="column")
    frame = pandas.DataFrame({"coef": coef}, index=index)
    if covariance is not None:
        frame["se"] = np.sqrt(np.diag(covariance))
    return Outcome(tables={"Coefficients": frame}, text={"Intervals": found.words}, coefficients=frame)


@program(
    "Linear or logistic regression with intervals that hold the noise of the release, within one budget.",
    outcome=_show,
    case=lambda: Case(
        load("breast_cancer").take(range(200)),
        {"formula": "malignant ~ mean_texture + mean_smoothness", "epsilon": 4.0, "delta": 1e-5},
    ),
)
def private_inference(
    federation: Federation,
    *,
    formula: str,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    weights: str | None = None,
    start: InferenceState | None = None,
) -> Iterator[InferenceState]:
    """Ask for what a regression with intervals needs: see the module.

    Parameters
    ----------
    federation : Federation
        Whose schema declares the range of every column of the formula.
    formula : str
        As of `hedgerow.stats.regression`, with a constant. A number as target is a linear regression, a binary target a
        logistic one.
    epsilon, delta : float, optional
        The budget; without epsilon the channel's noise, which has to be Gaussian, is used as it is.
    noise_at : {"server", "shares", "party"}
        Who adds the noise of a budget.
    least : int
        For noise in shares: as many parties' shares make the whole.
    weights : str, optional
        Column of record weights, which count as repeated records.
    start : InferenceState, optional
        Continue after this state.

    Yields
    ------
    InferenceState
        After each question: once for a number, 11 times for two classes.

    Raises
    ------
    FormulaInvalid (HR-310), MissingColumn (HR-403), NotBinary (HR-311), UnboundedSum (HR-210)
        As `UnitRows.of`; or the formula has no constant.
    SettingsInvalid (HR-511), BudgetInvalid (HR-214), SlotFilled (HR-212)
        Noise that is not Gaussian, or a budget that is none.

    Releases
    --------
    See the module.
    """
    given = {"formula": formula, "epsilon": epsilon, "delta": delta, "noise_at": noise_at, "least": least, "weights": weights}
    plan = InferencePlan.of(schema_of(federation), given)
    handles, d = plan.handles(federation, begins=start is None), plan.size
    if plan.linear:
        if start is None:
            yield replace(plan.moments(handles["moments"]))
        return
    state = start or InferenceState(0, np.zeros(d), np.zeros((d, d)), np.zeros(d), np.zeros((d, d)))
    if state.round == 0:
        state = replace(state, round=1, gram=plan.sum(handles, "gram", state.coef))
        yield state
    above = _majoriser(state.gram, plan.noise(handles["gram"], "gram"))
    while state.round <= SCORES:
        step = np.linalg.solve(above, plan.sum(handles, "scores", state.coef))
        state = replace(state, round=state.round + 1, coef=state.coef + step)
        yield state
    if state.round == SCORES + 1:
        state = replace(state, round=state.round + 1, score=plan.sum(handles, "last score", state.coef))
        yield state
    if state.round == SCORES + 2:
        yield replace(state, round=state.round + 1, information=plan.sum(handles, "information", state.coef))


def _majoriser(gram: Array, noise: float) -> Array:
    """A noisy X'X / 4 with eigenvalues not below zero, raised by the size of its noise."""
    values, vectors = np.linalg.eigh(gram)
    floor = max(math.sqrt(len(gram)) * noise, 1e-9 * float(values[-1]), 1e-300)
    found: Array = (vectors * (np.maximum(values, 0.0) + floor)) @ vectors.T
    return found


def inference(
    federation: Federation,
    formula: str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    weights: str | None = None,
) -> PrivateFit:
    """Linear or logistic regression with confidence intervals, within a budget: `private_inference` at once.

    Parameters
    ----------
    federation : Federation
        Whose schema declares the range of every column of the formula.
    formula : str
        With a constant. A number as target is a linear regression, a binary target a logistic one.
    epsilon, delta : float, optional
        The budget; without epsilon the channel's noise, which has to be Gaussian, is used as it is.
    noise_at : {"server", "shares", "party"}
        Who adds the noise of a budget.
    least : int
        For noise in shares: as many parties' shares make the whole.
    weights : str, optional
        Column of record weights, which count as repeated records.

    Returns
    -------
    PrivateFit
        With `covariance`, `se_` and `conf_int` where public numbers say that they hold; else `inference` says why there are
        none. Reference levels have a coefficient and a standard error of zero.

    Notes
    -----
    Intervals are of the model as if it were true, with records drawn from it; those of a linear regression suppose residuals of
    one variance. Releases and errors as `private_inference`.
    """
    given: dict[str, Any] = {
        "formula": formula,
        "epsilon": epsilon,
        "delta": delta,
        "noise_at": noise_at,
        "least": least,
        "weights": weights,
    }
    plan = InferencePlan.of(schema_of(federation), given)
    before = len(federation.ledger)
    *_, state = private_inference(federation, **given)
    found = plan.estimated(federation, state)
    coef, covariance = scattered(found, plan.kept)
    words = "least squares of noisy moments" if plan.linear else f"{SCORES} noisy scores and a last Newton step"
    parts = {"gram": 0.5, "score": 0.4, "square": 0.1} if plan.linear else {name: one.share for name, one in PARTS.items()}
    return private_fit(
        next(iter(plan.handles(federation).values())),
        plan.rows,
        "linear" if plan.linear else "logistic",
        coef,
        method=words,
        rounds=state.round,
        delta=delta,
        asked_before=before,
        shares=parts if epsilon is not None else {},
        covariance=covariance,
        inference=found.words,
    )


def with_intervals(federation: Federation, model: str, formula: str, settings: Mapping[str, Any]) -> PrivateFit:
    """`inference` for a call that has other settings as well, which are refused: they would be of another plan.

    Raises
    ------
    SettingsInvalid (HR-511), NotBinary (HR-311)
    """
    lawful = ("epsilon", "delta", "noise_at", "least", "weights")
    other = {name: value for name, value in settings.items() if name not in lawful and value not in (None, (), [], "fixed")}
    if other:
        raise SettingsInvalid(
            f"intervals=True with {', '.join(f'{name}={value!r}' for name, value in other.items())}.",
            remedy="Intervals have a plan of their own, of the formula's columns: leave these settings out.",
        )
    numeric = UnitRows.of(formula, schema_of(federation), weights=settings.get("weights")).numeric
    if numeric != (model == "linear"):
        raise NotBinary(
            f"the target of {formula!r} is {'a number' if numeric else 'of two values'}, and this is {model} regression.",
            remedy="Take hr.stats.private.inference, which goes by the target.",
        )
    return inference(federation, formula, **{name: settings[name] for name in lawful if name in settings})
