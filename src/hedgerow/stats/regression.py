"""Linear, logistic, Poisson and gamma regression by formula, with inference; the method is that of `hedgerow.stats.glm`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.data import load

from .columns import schema_of
from .design import design_of
from .firth import firth as firth_newton
from .firth import firth_fit
from .fit import Fit, fit_of
from .glm import newton
from .linear.losses import FamilyName
from .results import show_regression, spec_of
from .sandwich import Errors, check_errors, errors_of, with_meat
from .scores import explained, log_loss, r_squared, reading, scored
from .state import NewtonState


@program(
    "Logistic regression; without noise equal to the pooled fit.",
    name="logistic_regression",
    fixed={"family": "binomial", "alpha": 1.0},
    outcome=show_regression,
    case=lambda: Case(load("breast_cancer").take(range(200)), {"formula": "malignant ~ mean_texture + mean_smoothness"}),
    **scored(reading("binomial"), log_loss, "log-loss"),
)
@program(
    "Linear regression; without noise equal to the pooled fit.",
    name="linear_regression",
    fixed={"family": "gaussian", "alpha": 1.0, "rounds": 1},
    outcome=show_regression,
    case=lambda: Case(load("diabetes").take(range(200)), {"formula": "progression ~ bmi + bp + sex"}, tolerance=1e-8),
    **scored(reading("gaussian"), r_squared, "R2", more=True),
)
@program(
    "Poisson regression of counts, log link; equal to the pooled fit.",
    name="poisson_regression",
    fixed={"family": "poisson", "alpha": 1.0, "rounds": 5},
    outcome=show_regression,
    case=lambda: Case(load("hie").take(range(400)), {"formula": "mdvis ~ lncoins + hlthp"}),
    **scored(reading("poisson"), explained("poisson"), "D2", more=True, ask=False),
)
@program(
    "Gamma regression of a target above zero, log link.",
    name="gamma_regression",
    fixed={"family": "gamma", "alpha": 1.0, "rounds": 5},
    outcome=show_regression,
    case=lambda: Case(load("diabetes").take(range(200)).declare(progression=(1, 400)), {"formula": "progression ~ bmi + sex"}),
    **scored(reading("gamma"), explained("gamma"), "D2", more=True, ask=False),
)
def regression(
    federation: Federation,
    *,
    formula: str,
    family: FamilyName,
    offset: str | None = None,
    weights: str | None = None,
    probability: str | None = None,
    errors: Errors = "model",
    cluster: str | None = None,
    most: float | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
    rounds: int = 5,
    start: NewtonState | None = None,
    alpha: float = 1.0,
) -> Iterator[NewtonState]:
    """A generalised linear model by maximum likelihood, as `newton`; `fit_of` makes a fit of the last state.

    Robust errors (`hedgerow.stats.sandwich`) take one question more, and one state.

    Parameters
    ----------
    federation : Federation
    formula : str
        For example `"malignant ~ mean_radius + C(site)"`; see `hedgerow.stats.formula.read_formula`. The target of a logistic
        regression is binary, a comparison such as `I(visits > 0)`, or a category of two levels, of which the second is the
        event; that of a Poisson regression is a count, that of a gamma regression above zero.
    family : {"gaussian", "binomial", "poisson", "gamma", "negative binomial"}
        Of the target.
    offset : str, optional
        Column or expression added to the linear predictor, such as `log(exposure)` behind a log link; by default the schema's
        offset column.
    weights : str, optional
        Column of frequency weights: a record of weight 3 counts as three records.
    probability : str, optional
        Column of probability weights, such as of a survey: estimates are weighted, a record counts once, and errors are
        robust, HC1 where nothing else is asked for.
    errors : {"model", "HC0", "HC1", "HC2", "HC3", "cluster", "party"}
        From the model, or robust: against unequal variances, or of records that belong together.
    cluster : str, optional
        Column of records that belong together, at one party; with errors = "cluster". It may be an id, and stays there.
    most : float, optional
        Most records of a party, where rows are hidden and errors are of clusters: a range for its sums.
    tol : float
        Stop when the next step is shorter than this, in standard errors.
    max_rounds : int
        Rounds before giving up.
    rounds : int
        Rounds through a channel that clips or adds noise.
    start : NewtonState, optional
        Continue from a state that was yielded before.
    alpha : float
        Dispersion of a negative binomial.

    Raises
    ------
    FormulaInvalid (HR-310), NotBinary (HR-311), MissingColumn (HR-403)
        Before any party is asked.
    NotIdentified (HR-320), Separated (HR-321), NotConverged (HR-322)
        Estimates are not unique, infinite, or not reached.

    Releases
    --------
    As `newton`, and as `hedgerow.stats.sandwich`.
    """
    given: dict[str, Any] = {"offset": offset, "weights": weights, "probability": probability, "cluster": cluster}
    spec = design_of(schema_of(federation), formula, family, **given)
    errors = errors_of(errors, probability)
    check_errors(federation, spec, errors)
    shape = alpha if family == "negative binomial" else None

    def program() -> Iterator[NewtonState]:
        state = start or NewtonState.at_zero(spec.size)
        for state in newton(
            federation, spec, family=family, tol=tol, max_rounds=max_rounds, rounds=rounds, start=start, alpha=alpha
        ):
            yield state
        if errors != "model" and "meat" not in state.kept:
            yield with_meat(federation, spec, family, state, errors, alpha=shape, most=most)

    return program()


def fitted(federation: Federation, formula: str, family: FamilyName, alpha: float | None = None, **settings: Any) -> Fit:
    """Run `regression` to its end, and make a fit of its last state."""
    asked_before = len(federation.ledger)
    *_, state = regression(federation, formula=formula, family=family, alpha=alpha or 1.0, **settings)
    spec = spec_of(federation, settings | {"formula": formula}, family)
    errors = errors_of(settings.get("errors", "model"), settings.get("probability"))
    return fit_of(federation, spec, family, state, asked_before, alpha=alpha, errors=errors)


def logistic_regression(federation: Federation, formula: str, *, firth: bool = False, **settings: Any) -> Fit:
    """Logistic regression by maximum likelihood; equal to the pooled fit.

    Parameters
    ----------
    federation : Federation
    formula : str
        For example `"malignant ~ mean_radius + C(site)"`.
    firth : bool
        Whether to maximise Firth's penalised likelihood instead (`hedgerow.stats.firth`), which is finite where columns
        separate the classes, and less biased for rare events; an iteration asks twice.
    **settings
        `offset`, `weights`, `probability`, `errors`, `cluster`, `most`, `tol`, `max_rounds` and `rounds`, as `regression`.
    """
    if not firth:
        return fitted(federation, formula, "binomial", **settings)
    settings.pop("rounds", None)
    rounds = 4 * settings.pop("max_rounds", 50)
    asked_before = len(federation.ledger)
    *_, state = firth_newton(federation, formula=formula, max_rounds=rounds, **settings)
    return firth_fit(federation, spec_of(federation, settings | {"formula": formula}, "binomial"), state, asked_before)


def linear_regression(federation: Federation, formula: str, **settings: Any) -> Fit:
    """Linear regression by least squares; equal to the pooled fit.

    Parameters
    ----------
    **settings
        `offset`, which is subtracted from the target, `weights`, `probability`, `errors`, `cluster`, `most`, `tol` and
        `max_rounds`, as `regression`.
    """
    return fitted(federation, formula, "gaussian", **settings)


def poisson_regression(federation: Federation, formula: str, **settings: Any) -> Fit:
    """Poisson regression of counts by maximum likelihood, log link.

    Parameters
    ----------
    **settings
        `offset`, such as `"log(exposure)"`, `weights`, `probability`, `errors`, `cluster`, `most`, `tol` and `max_rounds`, as
        `regression`.

    Notes
    -----
    Where rows are hidden, means of single records are cut off at eight times the target's declared range. The fit is that
    of the pooled records, or refused with RangeExceeded (HR-243).
    """
    return fitted(federation, formula, "poisson", **settings)


def gamma_regression(federation: Federation, formula: str, **settings: Any) -> Fit:
    """Gamma regression of a target above zero, log link; settings as `poisson_regression`.

    The dispersion is the mean of squared relative residuals (Pearson), with records less coefficients in the denominator.
    """
    return fitted(federation, formula, "gamma", **settings)
