"""Fitted linear predictors, whoever fitted them: what metrics ask about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound
from hedgerow.core.federation import Federation
from hedgerow.errors import SettingsInvalid

from .columns import schema_of
from .design import Design, design, design_of
from .expressions import interval, is_binary
from .factors import Levels, Number
from .fit import Fit
from .indicators import cases_of_model
from .linear.asking import refuse_unbounded
from .linear.reach import Reach
from .scaling import Scaling
from .standard import scaled


@dataclass(frozen=True, eq=False)
class Fitted:
    """Coefficients with the columns that they belong to.

    Attributes
    ----------
    spec : Design
    coef : array of shape (d,)
    scaling : Scaling or None
        Of the columns, the target included where it is named, before the design reads them.
    mean : float or None
        Of the target, where a fit released it.
    sizes : pair of float or None
        Events and other records of a binary target, where they were released.
    place : (float, float) or None
        Centre and scale of the bins of a curve, where they are known.
    """

    spec: Design
    coef: Array
    scaling: Scaling | None = None
    mean: float | None = None
    sizes: tuple[float, float] | None = None
    place: tuple[float, float] | None = None

    @classmethod
    def of(cls, federation: Federation, model: Any, formula: str | None = None) -> Fitted:
        """From a fit (`Fit`, a margin, a robust fit), a state with `beta`, or an array of coefficients.

        Parameters
        ----------
        formula : str, optional
            Needed for states and arrays, which do not know theirs.

        Raises
        ------
        SettingsInvalid (HR-511)
            There is no formula, or it has another number of columns.
        """
        if isinstance(model, cls):
            return model
        if hasattr(model, "spec") and hasattr(model, "coef_"):
            mean = _mean_of(model) if isinstance(model, Fit) else None
            return cls(model.spec, np.asarray(model.coef_, dtype=np.float64), None, mean, _sizes_of(model))
        if formula is None:
            raise SettingsInvalid("these coefficients have no formula.", remedy="Give formula='y ~ a + b', or pass a fit.")
        scale = getattr(model, "scaling", None)
        beta = np.asarray(getattr(model, "beta", model), dtype=np.float64)
        schema = schema_of(federation)
        target = Design.of(formula, schema).response
        binary = isinstance(target, Levels) or is_binary(target.text, schema)
        spec = design_of(schema_of(scaled(federation, scale)), formula, "binomial" if binary else "gaussian")
        if beta.shape != (spec.size,):
            raise SettingsInvalid(
                f"{beta.size} coefficients do not fit the {spec.size} columns of {formula!r}.", remedy=", ".join(spec.names)
            )
        return cls(spec, beta, scale)

    @property
    def binary(self) -> bool:
        """Whether the target is 0 or 1."""
        return isinstance(self.spec.response, Levels) or is_binary(self.spec.response.text, self.spec.schema)

    def require(self, *, binary: bool) -> None:
        """Refuse a metric of the other kind of target.

        Raises
        ------
        SettingsInvalid (HR-511)
        """
        if self.binary != binary:
            kind = "is binary" if self.binary else "is not binary"
            raise SettingsInvalid(
                f"the target of {self.spec.formula!r} {kind}.",
                remedy="Binary targets: binary_metrics, roc, calibration. Numbers: linear_metrics.",
            )

    def ask(self, federation: Federation) -> Federation:
        """The federation with the design's rows prepared at each party."""
        known = cases_of_model(federation, self.spec)
        return scaled(known, self.scaling).prepare(design, spec=self.spec)

    @property
    def reach(self) -> Reach | None:
        """How far one record reaches, by declared ranges."""
        return Reach.by_length(self.spec, self.coef)

    def bounded(self, federation: Federation, bounds: Mapping[str, Bound] | None) -> Mapping[str, Bound] | None:
        """Return bounds as they are, or refuse a sum that must have them.

        Raises
        ------
        UnboundedSum (HR-210)
        """
        refuse_unbounded(federation, self.spec, bounds)
        return bounds

    @property
    def weight(self) -> float | None:
        """Largest record weight."""
        return self.spec.weight_limit

    @property
    def target_limits(self) -> tuple[float, float] | None:
        """Declared range of a numeric target."""
        response = self.spec.response
        return interval(response.text, self.spec.schema) if isinstance(response, Number) else (0.0, 1.0)


def _mean_of(fit: Fit) -> float | None:
    """Mean of a fit's target; of a binary one behind another link nothing is measured, since it would pass for a log-odds."""
    if fit.law.binary and not fit.law.log_odds:
        raise SettingsInvalid(
            f"the linear predictor of a {fit.law.title or fit.family} is no log-odds, which metrics and curves are made of.",
            remedy="Look at log_likelihood and aic of the fit; or measure a logistic regression.",
        )
    return fit.target_mean


def _sizes_of(model: Any) -> tuple[float, float] | None:
    """Events and other records of a fit that says how many there were."""
    n, events = getattr(model, "n_records", None), getattr(model, "n_events", None)
    return None if n is None or events is None else (float(events), float(n - events))
