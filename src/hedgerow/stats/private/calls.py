"""Private models by one call; parameters are those of the programs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from hedgerow.core.federation import Federation

from ..columns import schema_of
from .bounded import BoundedModel
from .fit import PrivateFit
from .models import Method, PrivateModel, private_model
from .with_intervals import with_intervals

DEFAULTS: Mapping[str, Any] = {
    name: one.default
    for name, one in inspect.signature(private_model).parameters.items()
    if one.default is not one.empty and name != "start"
}


def fitted(federation: Federation, model: BoundedModel, formula: str, settings: Mapping[str, Any]) -> PrivateFit:
    """Run `private_model` to its end, and make a fit of its last point."""
    known = {**DEFAULTS, **settings, "model": model, "formula": formula}
    asked_before = len(federation.ledger)
    *_, point = private_model(federation, **known)
    return PrivateModel.of(schema_of(federation), known).fit(federation, point, asked_before)


def logistic(
    federation: Federation,
    formula: str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    method: Method | None = None,
    bins: int | None = None,
    log: Sequence[str] = (),
    intervals: bool = False,
    **settings: Any,
) -> PrivateFit:
    """Logistic regression within a budget, by sums alone.

    Parameters
    ----------
    federation : Federation
        Whose schema declares the range of every column of the formula.
    formula : str
        For example `"malignant ~ mean_radius + mean_texture"`; the target is binary, or a category of two levels.
    epsilon, delta : float, optional
        The budget of the whole fit, all of which is spent. Of a federation that samples records it is the budget as if all of
        them were asked, and less is spent: the ledger, and `spent` of the fit, count on the sample. Left out, the channel's
        own noise is used as it is, and without any the fit is that of the pooled rows. Without a delta the noise is Laplace,
        which is far larger beyond some twenty columns.
    method : {"majorised", "gradient"}, optional
        Newton steps under a noisy majoriser; or gradient descent with momentum, whose questions have d numbers and not d^2,
        and which is the default where `epsilon` is below 0.2: on Adult and cardio it is some tenths of a point better there.
    bins : int, optional
        So many public bins for each number of the formula; 16 is a good number.
    log : sequence of str
        Columns whose bins have equal widths on a logarithmic scale, such as incomes.
    intervals : bool
        Confidence intervals, by a plan of their own: `hedgerow.stats.private.inference`, which has neither bins nor penalty.
    **settings
        `rows`, `rounds`, `penalty`, `noise_at`, `least`, `weights`, `tol`, as `private_model`.

    Returns
    -------
    PrivateFit
        Coefficients of rows of length one: for prediction. With rows="fixed" they are log-odds for the range of a column.

    Raises
    ------
    FormulaInvalid (HR-310), NotBinary (HR-311), UnboundedSum (HR-210), SettingsInvalid (HR-511), BudgetInvalid (HR-214)
        Before any party is asked.
    SlotFilled (HR-212)
        An epsilon is given, and the channel adds noise already.

    Releases
    --------
    As `hedgerow.stats.private.majorised`, or `hedgerow.stats.private.descent`.
    """
    if intervals:
        given = {"epsilon": epsilon, "delta": delta, "method": method, "bins": bins, "log": log} | settings
        return with_intervals(federation, "logistic", formula, given)
    own = {"epsilon": epsilon, "delta": delta, "method": method, "bins": bins, "log": log}
    return fitted(federation, "logistic", formula, own | settings)


def multinomial(
    federation: Federation, formula: str, *, epsilon: float | None = None, delta: float | None = None, **settings: Any
) -> PrivateFit:
    """Logistic regression of a category of K levels within a budget; parameters, returns and errors as `logistic`.

    Coefficients (K, d) add up to zero over levels, as scikit-learn's do, and a record's score is at most sqrt(2) long.
    """
    return fitted(federation, "multinomial", formula, {"epsilon": epsilon, "delta": delta} | settings)


def huber(
    federation: Federation,
    formula: str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    threshold: float | None = None,
    **settings: Any,
) -> PrivateFit:
    """Robust linear regression within a budget; other parameters, returns and errors as `logistic`.

    Parameters
    ----------
    threshold : float, optional
        Residuals beyond it pull with a constant force, in the target's own units; a tenth of the declared range by default.
        Noise is in proportion to it.
    """
    own = {"epsilon": epsilon, "delta": delta, "threshold": threshold}
    return fitted(federation, "huber", formula, own | settings)


def svm(
    federation: Federation,
    formula: str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    corner: float | None = None,
    **settings: Any,
) -> PrivateFit:
    """A linear support vector machine within a budget; other parameters, returns and errors as `logistic`.

    Parameters
    ----------
    corner : float, optional
        Over what width of margins the hinge is rounded; 1 by default. A narrow one takes more steps.
    """
    return fitted(federation, "svm", formula, {"epsilon": epsilon, "delta": delta, "corner": corner} | settings)


def quantile(
    federation: Federation,
    formula: str,
    *,
    share: float = 0.5,
    epsilon: float | None = None,
    delta: float | None = None,
    corner: float | None = None,
    **settings: Any,
) -> PrivateFit:
    """Quantile regression within a budget; other parameters, returns and errors as `logistic`.

    Parameters
    ----------
    share : float
        Of targets below the line; 0.5 for the median.
    corner : float, optional
        Over what width the loss is smoothed by a uniform kernel, in the target's own units; by default a twentieth of its
        range within a budget, else a fiftieth. The share below the line is right where the density of targets is nearly
        straight over this width. A narrow one takes more steps; the summary names it, and says where the last step was long.
    """
    own = {"epsilon": epsilon, "delta": delta, "share": share, "corner": corner}
    return fitted(federation, "quantile", formula, own | settings)
