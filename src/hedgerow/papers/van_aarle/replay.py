"""Programs of van Aarle's thesis on the rows that it used, beside exact fits: gradient descent, sweeps, mini-batches.

Stores are in the thesis' order (`partition stores(rows=..., shuffled=...)`): the first `fitted` of them are fitted, the
others are those that a model has not seen. Each round of this program is a whole method.

Releases : what `gradient_descent`, `sweep`, `linear_regression`, `logistic_regression` and the metrics release, once for each
           method; means and deviations of the columns.
Unit     : record.
Source   : van Aarle 2021, chapter 6. Differs: descent starts at zero, where the thesis draws its start and averages ten
           sessions in Tables 6.6 and 6.7; the rows of those two tables and its recoding of readmission are not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import NEEDED, Case, Key, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Parties
from hedgerow.core.question import elementwise, travels
from hedgerow.data import Column, Schema, load
from hedgerow.errors import Separated, SettingsInvalid
from hedgerow.stats import Scaling, design_of, linear_regression, logistic_regression, moments
from hedgerow.stats.factors import Number
from hedgerow.stats.fit import Fit
from hedgerow.stats.losses.descent import TABLE_6_1, gradient_descent, sweep
from hedgerow.stats.quality.metrics import binary_metrics, linear_metrics
from hedgerow.stats.quality.roc import roc

from .published import TABLES

if TYPE_CHECKING:
    from hedgerow.report import Outcome

FamilyName = Literal["gaussian", "binomial"]
Method = Literal[
    "exact", "exact_alone", "firth", "sweep", "sweep_adagrad", "tolerance", "sso", "v2", "v2_alone", "mini_v1", "mini_v2"
]

METHODS: dict[str, str] = {
    "exact": "Newton's method, or least squares",
    "exact_alone": "the same for each variable by itself",
    "firth": "Firth's penalised likelihood",
    "sweep": "201 rounds on columns as they are, at the best learning rate 5 * 10^p",
    "sweep_adagrad": "the same with AdaGrad",
    "tolerance": "learning rate 0.05, until the gradient stays small",
    "sso": "201 rounds on standardised columns, learning rate 0.1",
    "v2": "800 rounds on standardised columns, learning rate 0.1",
    "v2_alone": "the same for each variable by itself",
    "mini_v1": "800 rounds of some of the stores, learning rate 0.1",
    "mini_v2": "4000 rounds of some of the stores, learning rate 20",
}
FIGURES = ("learning rate", "rounds", "MSE", "R2", "log-loss", "AUC", "accuracy", "precision", "recall")
"""What is known of each method: how it ran, and how well it does."""
AS_THEY_ARE = ("sweep", "sweep_adagrad", "tolerance")
"""Methods that never standardise."""


@dataclass(frozen=True)
class ReplayState:
    """The methods that have run.

    Attributes
    ----------
    round : int
        Methods so far.
    betas : dict of arrays of shape (d,)
        Coefficients by method; those of a method for variables by themselves have no constant, shape (d - 1,).
    errors : dict of arrays
        Standard errors of the exact ones.
    figures, others : dict of arrays of shape (len(FIGURES),)
        Figures by method, of the records that were fitted and of the others; NaN for what does not apply.
    means, scales : arrays of shape (k,)
        Of the columns, by which they are standardised; asked once.
    """

    round: int = 0
    betas: Mapping[str, Array] = field(default_factory=dict)
    errors: Mapping[str, Array] = field(default_factory=dict)
    figures: Mapping[str, Array] = field(default_factory=dict)
    others: Mapping[str, Array] = field(default_factory=dict)
    means: Array = field(default_factory=lambda: np.zeros(0))
    scales: Array = field(default_factory=lambda: np.zeros(0))


def outcome(federation: Federation, settings: Mapping[str, Any], state: ReplayState, records: Parties | None) -> Outcome:
    """The tables of the thesis that the run belongs to."""
    from .tables import outcome

    return outcome(federation, settings, state, records)


@program(
    "Regression over personal data stores: gradient descent, exact fits and pooled fits (van Aarle 2021, chapter 6).",
    name="van_aarle",
    keys={
        "tables": Key(
            list[Literal[tuple(TABLES)]],  # type: ignore[misc]
            NEEDED,
            "of the thesis, such as 6.8; a run may belong to several",
        ),
        "called": Key(str, NEEDED, "the data set, as the thesis calls it"),
        "remark": Key(str, "", "what differs from the thesis, for the last column"),
    },
    outcome=outcome,
    with_records=True,
    case=lambda: Case(
        load("diabetes").take(range(100)),
        {
            "tables": [],
            "called": "diabetes",
            "formula": "progression ~ bmi + bp",
            "family": "gaussian",
            "methods": ["exact", "sso"],
            "effort": 0.02,
        },
    ),
)
def replay(
    federation: Federation,
    *,
    formula: str,
    family: FamilyName,
    methods: list[Method],
    numbers: list[str] | None = None,
    fitted: int | None = None,
    standardised: bool = True,
    exponents: list[int] | None = None,
    exponents_adagrad: list[int] | None = None,
    batch: int = 150,
    effort: float = 1.0,
    start: ReplayState | None = None,
) -> Iterator[ReplayState]:
    """Run methods of the thesis one after the other.

    Parameters
    ----------
    formula : str
        Of plain columns.
    family : {"gaussian", "binomial"}
        Linear or logistic regression.
    methods : list of str
        Names of `METHODS`.
    numbers : list of str, optional
        Binary columns and categories whose codes are numbers, so that they are standardised like others.
    fitted : int, optional
        The first so many stores are fitted, the others are measured only; all by default.
    standardised : bool
        Whether exact fits and mini-batches read standardised columns, the target of a linear regression included.
    exponents, exponents_adagrad : list of int, optional
        Consecutive p of the learning rates 5 * 10^p with which a sweep begins; it goes on from the best of them. By default
        -3 to 2, with which the thesis begins. A sweep that begins where the thesis ended asks less.
    batch : int
        Stores in a mini-batch, which the thesis does not state.
    effort : float
        Share of the rounds of gradient descent that are run.

    Yields
    ------
    ReplayState
        After each method.

    Raises
    ------
    SettingsInvalid (HR-511)
        An unknown method, no store to fit, or no part of the rounds.
    """
    unknown = [method for method in methods if method not in METHODS]
    if unknown or not methods or not 0 < effort <= 1 or (fitted is not None and fitted < 1):
        raise SettingsInvalid(
            f"methods={methods!r}, effort={effort!r}, fitted={fitted!r} cannot be run.",
            remedy=f"Methods are {', '.join(METHODS)}; effort lies above 0, at most 1; fitted is at least 1.",
        )
    asked = as_numbers(federation, tuple(numbers or ()))
    spec = design_of(asked.schema, formula, family)  # refuses a formula before anybody is asked

    def program() -> Iterator[ReplayState]:
        ours, others = parts(asked, fitted)
        names = [factor.text for term in spec.terms for factor in term.factors if isinstance(factor, Number)]
        target = [spec.response.text] if family == "gaussian" and isinstance(spec.response, Number) else []
        starts = {"sweep": exponents, "sweep_adagrad": exponents_adagrad}
        read = tuple(dict.fromkeys([*names, *target]))
        if start is None:
            scale = population_scaling(ours, read)
            state = ReplayState(means=np.array(scale.means), scales=np.array(scale.scales))
        else:
            state, scale = start, Scaling(read, tuple(start.means.tolist()), tuple(start.scales.tolist()))
        for method in methods[state.round :]:
            plain = method in AS_THEY_ARE or not (standardised or method in ("sso", "v2", "v2_alone"))
            here, there = (f if f is None or plain else scale.apply(f) for f in (ours, others))
            assert here is not None
            ran = run_method(method, here, formula, family, names, batch=batch, effort=effort, exponents=starts.get(method))
            state = _with(state, method, ran, here, there, formula, family)
            yield state

    return program()


# ---- the stores -----------------------------------------------------------------------------------------------------
@travels
@elementwise
def codes(columns: Mapping[str, Array], *, names: tuple[str, ...]) -> dict[str, Array]:
    """The codes of binary columns and categories as numbers."""
    return {name: np.asarray(columns[name], dtype=np.float64) for name in names}


def as_numbers(federation: Federation, names: tuple[str, ...]) -> Federation:
    """Return the federation with the codes of columns as numbers, and its schema with their ranges."""
    if not names:
        return federation
    schema: Schema = federation.schema
    for name in names:
        old = schema[name]
        high = len(old.levels) - 1 if old.kind == "category" else old.high if old.kind != "binary" else 1
        low = 0 if old.kind in ("category", "binary") else old.low
        schema = schema.replace(Column(name, "number", role=old.role, low=low, high=high))
    return federation.prepare(codes, declares=tuple(schema[name] for name in names), names=names)


def parts(federation: Federation, fitted: int | None) -> tuple[Federation, Federation | None]:
    """The stores that are fitted, and the others, if there are any."""
    names = federation.members
    if fitted is None or fitted >= len(names):
        return federation, None
    return federation.pick(names[:fitted]), federation.pick(names[fitted:])


def population_scaling(federation: Federation, names: Sequence[str]) -> Scaling:
    """Means and standard deviations with n in the denominator, as in the thesis."""
    found = moments(federation, list(names))
    scales = np.sqrt(found.variance * (found.n - 1) / found.n)
    return Scaling(found.names, tuple(map(float, found.mean)), tuple(float(s) if s > 0 else 1.0 for s in scales))


# ---- the methods ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Ran:
    """What a method came to: coefficients, standard errors where it has them, its learning rate and rounds."""

    beta: Array
    errors: Array | None = None
    learning_rate: float = float("nan")
    rounds: float = float("nan")


def run_method(
    method: str,
    federation: Federation,
    formula: str,
    family: FamilyName,
    names: Sequence[str],
    *,
    batch: int,
    effort: float,
    exponents: Sequence[int] | None = None,
) -> Ran:
    """Run one method on a federation whose columns are as it wants them."""
    if method.endswith("_alone"):
        target = formula.partition("~")[0]
        runs = [
            run_method(
                method.removesuffix("_alone"), federation, f"{target}~ {name}", family, [name], batch=batch, effort=effort
            )
            for name in names
        ]
        errors = None if runs[0].errors is None else np.array([run.errors[1] for run in runs if run.errors is not None])
        return replace(runs[0], beta=np.array([run.beta[1] for run in runs]), errors=errors)
    if method in ("exact", "firth"):
        return _exact(federation, formula, family, firth=method == "firth")
    side = "Log" if family == "binomial" else "Lin"
    asked: dict[str, Any] = {"formula": formula, "family": family}
    if method.startswith("sweep"):
        rounds = _share(TABLE_6_1[f"Fed{side}Reg-v1"]["rounds"], effort)
        optimiser = "adagrad" if method == "sweep_adagrad" else "plain"
        rates = {"exponents": exponents} if exponents else {}
        found = sweep(federation, rounds=rounds, optimiser=optimiser, **asked, **rates)
        return Ran(found.state.beta, None, found.best, found.state.round)
    given: dict[str, Any] = {
        "tolerance": {"learning_rate": 0.05, "rounds": 2000, "stop": 1e-2},
        "sso": {"learning_rate": 0.1, "rounds": 201},
        "v2": {"learning_rate": 0.1, "rounds": 800},
        "mini_v1": {"learning_rate": 0.1, "rounds": 800, "batch": batch},
        "mini_v2": {"learning_rate": 20.0, "rounds": 4000, "batch": batch},
    }[method]
    given = given | {"rounds": _share(given["rounds"], effort)}
    *_, state = gradient_descent(federation, **asked, **given)
    return Ran(state.beta, None, given["learning_rate"], state.round)


def _share(rounds: int, effort: float) -> int:
    return max(1, round(rounds * effort))


def _exact(federation: Federation, formula: str, family: FamilyName, *, firth: bool) -> Ran:
    """The fit of a regression; NaN where classes separate, so that there is none."""
    try:
        if family == "gaussian":
            fit: Fit = linear_regression(federation, formula)
        else:
            fit = logistic_regression(federation, formula, firth=firth)
    except Separated:
        d = design_of(federation.schema, formula, family).size
        return Ran(np.full(d, np.nan), np.full(d, np.nan))
    return Ran(fit.coef_, fit.se_, float("nan"), fit.rounds)


def _with(
    state: ReplayState,
    method: str,
    ran: Ran,
    here: Federation,
    there: Federation | None,
    formula: str,
    family: FamilyName,
) -> ReplayState:
    """The state with one method more, and its figures."""
    figures, others = dict(state.figures), dict(state.others)
    if not method.endswith("_alone"):
        how = {"learning rate": ran.learning_rate, "rounds": ran.rounds}
        figures[method] = _row(how | figures_of(here, ran.beta, formula, family))
        if there is not None:
            others[method] = _row(how | figures_of(there, ran.beta, formula, family))
    errors = dict(state.errors) | ({} if ran.errors is None else {method: ran.errors})
    betas = {**state.betas, method: ran.beta}
    return replace(state, round=state.round + 1, betas=betas, errors=errors, figures=figures, others=others)


def figures_of(federation: Federation, beta: Array, formula: str, family: FamilyName) -> dict[str, float]:
    """How well coefficients do, by federated sums; infinite errors where they overflowed."""
    if not np.isfinite(beta).all():
        return {"MSE": np.inf, "log-loss": np.inf} if not np.isnan(beta).all() else {}
    if family == "gaussian":
        linear = linear_metrics(federation, beta, formula=formula)
        return {"MSE": linear.mse, "R2": linear.r_squared}
    binary = binary_metrics(federation, beta, formula=formula)
    area = roc(federation, beta, formula=formula, tol=0.0).auc
    shares = {"accuracy": binary.accuracy, "precision": binary.precision, "recall": binary.recall}
    return {"log-loss": binary.log_loss, "AUC": area, **shares}


def _row(given: Mapping[str, float]) -> Array:
    return np.array([given.get(name, np.nan) for name in FIGURES])
