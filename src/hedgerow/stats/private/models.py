"""Private models by one call: logistic, multinomial, robust and quantile regression, and support vector machines.

    rows     <- unit rows of the formula, with public bins                        hedgerow.stats.private.rows
    parts    <- everything that will be asked, and its share of the budget
    coef     <- majorised Newton, or gradient descent, on noisy sums              majorised.py, descent.py

Releases : as the method.
Unit     : record.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.data import Schema, Table, load
from hedgerow.data.cuts import names_of
from hedgerow.errors import FormulaInvalid, HedgerowWarning, NotBinary, SettingsInvalid
from hedgerow.privacy.level import noise_level
from hedgerow.privacy.shares import BudgetShares, Share
from hedgerow.report import Outcome

from ..columns import schema_of
from ..expressions import is_binary
from ..factors import Levels, Number
from ..indicators import cases_of_model
from .bounded import BoundedLoss, BoundedModel
from .bounded_sums import BoundedSums
from .descent import descent, descent_parts
from .fit import PrivateFit, outcome_of, private_fit
from .majorised import MOST_ROUNDS, DescentPoint, majorised, majorised_parts
from .rows import Length, UnitRows, rows_as_asked, unit_rows
from .scoring import judged

Method = Literal["majorised", "gradient"]
CLASSIFIERS = ("logistic", "multinomial", "svm")
FEW = 500
"""Records for each unit of noise of all scores, below which a summary says that noise is large. Public; seen at 398 to 3980."""
MANY = 20
"""Columns beyond which a pure epsilon buys nothing good."""
LITTLE = 0.2
"""Below this epsilon fewer scores are asked, and classifiers take gradient descent; looked at on Adult and cardio."""


@dataclass(frozen=True)
class ScoreMethod:
    """A way to a model by scores.

    Attributes
    ----------
    words : str
        For people.
    few, many : int
        Scores asked, where epsilon is little and otherwise.
    parts : callable
        `(rounds, *, own) -> parts` of the budget.
    run : callable
        The descent.
    """

    words: str
    few: int
    many: int
    parts: Callable[..., dict[str, Share]]
    run: Callable[..., Iterator[DescentPoint]]


METHODS: Mapping[str, ScoreMethod] = {
    "majorised": ScoreMethod(
        "majorised Newton: one sum of products of rows above every information, and scores preconditioned by it",
        6,
        12,
        majorised_parts,
        majorised,
    ),
    "gradient": ScoreMethod(
        "gradient descent with momentum, the mean of the last half of its points", 20, 60, descent_parts, descent
    ),
}


QUANTILE_SCORES: Mapping[str, tuple[int, int]] = {"majorised": (20, 40), "gradient": (40, 80)}
"""Of a quantile more scores are asked, since its curvature is far below the largest. Public; looked at as its corner."""


@dataclass(frozen=True)
class PrivateModel:
    """A model as it will be asked for: its rows, its loss, and the budget.

    Attributes
    ----------
    rows : UnitRows
    loss : BoundedLoss
    budget : BudgetShares
    method : {"majorised", "gradient"}
    rounds : int or None
        Scores, where they were given.
    """

    rows: UnitRows
    loss: BoundedLoss
    budget: BudgetShares
    method: Method = "majorised"
    rounds: int | None = None

    @classmethod
    def of(cls, schema: Schema, settings: Mapping[str, Any]) -> PrivateModel:
        """Read the settings of `private_model`; nobody is asked."""
        given = settings
        model: BoundedModel = given["model"]
        rows = UnitRows.of(
            given["formula"],
            schema,
            bins=given["bins"],
            log=names_of(given["log"]),
            length=given["rows"],
            weights=given["weights"],
            classes=model == "multinomial",
        )
        _check_target(rows, model)
        method = given["method"] or usual_method(model, given["epsilon"])
        if method not in get_args(Method) or (given["rounds"] is not None and given["rounds"] < 1):
            raise SettingsInvalid(
                f"method={method!r} with rounds={given['rounds']!r}.",
                remedy=f"Methods are {' and '.join(get_args(Method))}; rounds are one or more; or leave them out.",
            )
        if given["max_rounds"] < 1 or not given["tol"] > 0:
            raise SettingsInvalid(
                f"max_rounds={given['max_rounds']!r}, tol={given['tol']!r}.", remedy="Rounds are one or more, tol above zero."
            )
        if not (math.isfinite(given["penalty"]) and given["penalty"] >= 0):
            raise SettingsInvalid(f"penalty={given['penalty']!r}.", remedy="Give a finite number, zero or more.")
        widths = {key: given[key] for key in ("threshold", "corner", "share")}
        loss = BoundedLoss.of(model, rows, **widths, budgeted=given["epsilon"] is not None)
        if given["epsilon"] is not None and not given["delta"] and rows.size > MANY:
            warnings.warn(
                f"without a delta, noise follows sums of absolute values, and {rows.size} columns drown in it.",
                HedgerowWarning,
                stacklevel=4,
            )
        budget = BudgetShares(given["epsilon"], given["delta"], given["noise_at"], given["least"])
        return cls(rows, loss, budget, method, given["rounds"])

    def scores(self, federation: Federation) -> int | None:
        """How many scores are asked; None until steps end at the minimum, where sums are exact."""
        if self.rounds is not None or not (self.budget.epsilon or federation.protection.noisy):
            return self.rounds
        way = METHODS[self.method]
        few, many = QUANTILE_SCORES[self.method] if self.loss.share is not None else (way.few, way.many)
        return few if self.budget.epsilon and self.budget.epsilon < LITTLE else many

    def parts(self, federation: Federation) -> dict[str, Share]:
        """Everything that is asked."""
        own = self.budget.epsilon is not None or not federation.protection.noisy
        return METHODS[self.method].parts(self.scores(federation) or 1, own=own)

    def asked(self, federation: Federation, begins: bool = False) -> BoundedSums:
        """The sums as they are asked; records that lack a value are left out, and counted where no budget is spent.

        See `BudgetShares.handles` for `begins`.
        """
        federation = cases_of_model(federation, self.rows.spec, count=self.budget.epsilon is None)
        rows = rows_as_asked(self.rows, federation, planned=self.budget.epsilon is not None)
        prepared = federation.prepare(unit_rows, spec=rows)
        return BoundedSums(self.budget.handles(prepared, self.parts(federation), begins=begins), self.rows, self.loss)

    def said_of_noise(self, sums: BoundedSums, parts: Mapping[str, Share], point: DescentPoint) -> str:
        """What a summary says where noise is large for the records that there are; of released numbers alone, else nothing.

        The products of rows have the sum of squared lengths on their diagonal: of rows of length one, their number. Noise is
        that of all scores as if they were one.
        """
        if not sums.handles["score"].protection.noisy:
            return ""
        asked = next(iter(parts.values())).times
        records = max(float(np.trace(point.gram)) / asked, 0.0)
        d = self.rows.size
        level = noise_level(sums.handles["score"], sums.bound_of(self.loss), "", d * max(self.loss.classes, 1))
        noise = level / (self.loss.slope * math.sqrt(parts["score"].times))
        if records >= FEW * noise:
            return ""
        return f"; noise is large for some {records:.0f} records, and predictions may be by chance: more records, or epsilon"

    def fit(self, federation: Federation, point: DescentPoint, asked_before: int = 0) -> PrivateFit:
        """Make a fit of a last point."""
        sums = self.asked(federation)
        asked = self.parts(federation)
        parts = asked if self.budget.epsilon else {}
        told = self.loss.said(self.rows, point.moved) + self.said_of_noise(sums, asked, point)
        return private_fit(
            sums.handles["score"],
            self.rows,
            self.loss.model,
            point.coef,
            method=METHODS[self.method].words + told,
            rounds=point.round,
            delta=self.budget.delta,
            asked_before=asked_before,
            shares={name: part.share for name, part in parts.items()},
        )


def usual_method(model: BoundedModel, epsilon: float | None) -> Method:
    """Gradient descent for a classifier within a small budget, else majorised Newton."""
    return "gradient" if model in CLASSIFIERS and epsilon is not None and epsilon < LITTLE else "majorised"


def _check_target(rows: UnitRows, model: BoundedModel) -> None:
    """Refuse a target that the model does not read."""
    response, schema = rows.spec.response, rows.spec.schema
    if model == "multinomial":
        return
    if model in CLASSIFIERS and isinstance(response, Number) and not is_binary(response.text, schema):
        raise NotBinary(
            f"target {response.text!r} is not declared binary.",
            remedy="Take huber or quantile; or compare it, e.g. I(visits > 0); or declare its kind binary in the schema.",
        )
    if model not in CLASSIFIERS and isinstance(response, Levels):
        raise FormulaInvalid(f"target {response.column!r} is a category.", remedy="Take logistic or multinomial.")


# ---- what is shown --------------------------------------------------------------------------------------------------
def show(federation: Federation, settings: Mapping[str, Any], point: DescentPoint) -> Outcome:
    """The fit: what was spent, coefficients, and the summary."""
    return outcome_of(PrivateModel.of(schema_of(federation), settings).fit(federation, point))


def scored(metric: str) -> dict[str, Any]:
    """What `program` is told of the score of a model on a table."""

    def judge(settings: Mapping[str, Any], point: DescentPoint, schema: Schema, table: Table) -> float:
        made = PrivateModel.of(schema, settings)
        return judged(made.rows, made.loss.model, point.coef, table)[metric]

    def watch(settings: Mapping[str, Any], point: DescentPoint, schema: Schema, test: Table | None) -> dict[str, float]:
        made = PrivateModel.of(schema, settings)
        found = {} if test is None else judged(made.rows, made.loss.model, point.coef, test)
        return {f"test {name}": value for name, value in found.items()}

    more = metric != "mean absolute error"
    return {"score": judge, "watch": watch, "metric": lambda schema: (metric, more)}


@program(
    "Logistic regression on rows of length one, by noisy sums within one budget.",
    name="private_logistic",
    fixed={"model": "logistic", "threshold": None, "corner": None, "share": 0.5},
    outcome=show,
    case=lambda: Case(
        load("breast_cancer").take(range(200)),
        {"formula": "malignant ~ mean_texture + mean_smoothness", "epsilon": 2.0, "delta": 1e-5, "rounds": 4},
    ),
    **scored("accuracy"),
)
@program(
    "Logistic regression of a category of several levels on rows of length one, by noisy sums within one budget.",
    name="private_multinomial",
    fixed={"model": "multinomial", "threshold": None, "corner": None, "share": 0.5},
    outcome=show,
    case=lambda: Case(
        load("fair").take(range(0, 6000, 15)),
        {"formula": "occupation ~ educ", "epsilon": 4.0, "delta": 1e-5, "rounds": 3},
    ),
    **scored("accuracy"),
)
@program(
    "Robust linear regression by Huber's loss on rows of length one, by noisy sums within one budget.",
    name="private_huber",
    fixed={"model": "huber", "corner": None, "share": 0.5},
    outcome=show,
    case=lambda: Case(
        load("diabetes").take(range(200)).declare(progression=(1, 400)),
        {"formula": "progression ~ bmi + bp + sex", "rounds": 3},
        protection={"mechanism": {"noise_multiplier": 20.0}},
    ),
    **scored("R2"),
)
@program(
    "A linear support vector machine on rows of length one, by noisy sums within one budget.",
    name="private_svm",
    fixed={"model": "svm", "threshold": None, "share": 0.5},
    outcome=show,
    case=lambda: Case(
        load("breast_cancer").take(range(200)),
        {"formula": "malignant ~ mean_texture + mean_smoothness", "method": "gradient", "epsilon": 2.0, "rounds": 4},
    ),
    **scored("accuracy"),
)
@program(
    "The line below which a share of targets lies, on rows of length one, by noisy sums within one budget.",
    name="private_quantile",
    fixed={"model": "quantile", "threshold": None},
    outcome=show,
    case=lambda: Case(
        load("diabetes").take(range(200)).declare(progression=(1, 400)),
        {"formula": "progression ~ bmi + bp + sex", "share": 0.8, "tol": 1e-2},
        tolerance=1e-8,
    ),
    **scored("mean absolute error"),
)
def private_model(
    federation: Federation,
    *,
    formula: str,
    model: BoundedModel,
    epsilon: float | None = None,
    delta: float | None = None,
    method: Method | None = None,
    bins: int | None = None,
    log: Sequence[str] = (),
    rows: Length = "unit",
    rounds: int | None = None,
    penalty: float = 1.0,
    threshold: float | None = None,
    corner: float | None = None,
    share: float = 0.5,
    noise_at: Position = "server",
    least: int = 0,
    weights: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = MOST_ROUNDS,
    start: DescentPoint | None = None,
) -> Iterator[DescentPoint]:
    """Fit a linear model of rows of length one by noisy sums whose number is fixed before the first.

    Parameters
    ----------
    formula : str
        As of `hedgerow.stats.regression`; every column declares its range.
    model : {"logistic", "multinomial", "huber", "svm", "quantile"}
    epsilon : float, optional
        Budget of everything that is asked. Left out, the channel's own noise is used as it is; without any, sums are exact
        and the fit is that of the pooled records.
    delta : float, optional
        Left out or zero for pure epsilon: noise is Laplace, and far larger beyond some twenty columns.
    method : {"majorised", "gradient"}, optional
        Newton steps under a noisy majoriser, or gradient descent with momentum. By default gradient descent where `epsilon` is
        below 0.2 and the target is classes, else Newton steps. Looked at on Adult and cardio, where it is some tenths of a
        point more accurate there, and on insurance, where it is far worse for a number.
    bins : int, optional
        So many public bins for each number of the formula; 16 is a good number.
    log : sequence of str
        Columns whose bins have equal widths on a logarithmic scale, such as incomes.
    rows : {"unit", "fixed"}
        Whether each row is divided by its own length, for prediction; or all by the largest that there can be, for
        coefficients.
    rounds : int, optional
        Scores asked; by default 6 where epsilon is below 0.2, else 12; of a quantile 20 and 40, of gradient descent 20 and 60;
        without noise until the minimum is reached.
    penalty : float
        Times half the squared length of all coefficients, added to the sum of losses; 1 is scikit-learn's `C=1`.
    threshold : float, optional
        Of a robust regression: residuals beyond it pull with a constant force, in the target's own units; a tenth of the
        declared range by default.
    corner : float, optional
        Over what width a corner is smoothed: of a quantile in the target's own units, by default a twentieth of its range
        within a budget and else a fiftieth; of a support vector machine in margins, 1 by default.
    share : float
        Of targets below a quantile.
    noise_at : {"server", "aggregators", "shares", "party"}
        Where the noise of a budget is added.
    least : int
        Of noise in shares: as many parties' shares make the whole noise.
    weights : str, optional
        Column of record weights; its declared range scales the noise.
    tol : float
        Without noise: stop where a step promises less than its square of what all steps have gained.
    max_rounds : int
        Without noise: scores before giving up.

    Yields
    ------
    DescentPoint
        After each question.

    Raises
    ------
    FormulaInvalid (HR-310), NotBinary (HR-311), UnboundedSum (HR-210), SettingsInvalid (HR-511), BudgetInvalid (HR-214)
        Before any party is asked.
    SlotFilled (HR-212)
        An epsilon is given, and the channel adds noise already.
    NotConverged (HR-322)
        Without noise.

    Releases
    --------
    As `hedgerow.stats.private.majorised` or `hedgerow.stats.private.descent`.
    """
    asked = PrivateModel.of(schema_of(federation), {key: value for key, value in locals().items() if key != "federation"})
    sums = asked.asked(federation, begins=start is None)
    parts, scores = asked.parts(federation), asked.scores(federation)
    return METHODS[asked.method].run(sums, parts, penalty=penalty, rounds=scores, tol=tol, max_rounds=max_rounds, start=start)
