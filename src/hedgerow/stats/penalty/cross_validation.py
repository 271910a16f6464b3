"""A cross-validated path of penalties: the curve, the best penalty, and the largest within one standard error of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import LeftOut
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.report import Figure

from ..design import Design
from ..linear.losses import FamilyName
from ..provenance import provenance
from .penalised import PenalisedFit, penalised_columns

if TYPE_CHECKING:
    import pandas

    from .path import PathState


@displayed
@dataclass(frozen=True, eq=False)
class Path:
    """Coefficients and cross-validated deviances along a path of penalties.

    Attributes
    ----------
    spec : Design
    family : {"gaussian", "binomial", "poisson", "gamma"}
    penalties : array of shape (L,)
        Falling.
    coefs : array of shape (L, d)
        Of all records.
    by_fold : array of shape (L, F)
        Mean deviance of the records that a fold's model left out; of a linear regression the mean squared error, of a
        logistic one twice the log-loss.
    deviances : array of shape (L,)
        Of the models of all records.
    """

    spec: Design
    family: FamilyName
    l1_ratio: float
    standardised: bool
    penalties: Array
    coefs: Array
    by_fold: Array
    deviances: Array
    n_records: float
    rounds: int
    n_parties: int
    n_missing: int
    left: str
    protection: str
    cases: LeftOut | None = None

    @property
    def mean(self) -> Array:
        """Mean over folds, shape (L,)."""
        return self.by_fold.mean(1)

    @property
    def standard_error(self) -> Array:
        """Of that mean, from the spread of folds, shape (L,)."""
        return self.by_fold.std(1, ddof=1) / math.sqrt(self.by_fold.shape[1])

    @property
    def best(self) -> float:
        """The penalty of the smallest mean deviance."""
        return float(self.penalties[self.mean.argmin()])

    @property
    def one_se(self) -> float:
        """The largest penalty whose mean deviance is within one standard error of the smallest."""
        i = int(self.mean.argmin())
        return float(self.penalties[self.mean <= self.mean[i] + self.standard_error[i]].max())

    def fit(self, penalty: float | None = None) -> PenalisedFit:
        """Return the model of all records at one of the penalties, by default the best."""
        penalty = self.best if penalty is None else penalty
        i = int(np.abs(self.penalties - penalty).argmin())
        if not math.isclose(self.penalties[i], penalty, rel_tol=1e-9):
            raise SettingsInvalid(
                f"{penalty!r} is no penalty of the path; the nearest is {self.penalties[i]:.6g}.",
                remedy="Fit it by itself: penalised_regression(..., penalty=...).",
            )
        shared = ("spec", "family", "l1_ratio", "standardised", "n_records", "rounds", "n_parties", "n_missing")
        kept = {name: getattr(self, name) for name in (*shared, "left", "protection", "cases")}
        return PenalisedFit(coef_=self.coefs[i], penalty=float(penalty), deviance=float(self.deviances[i]), **kept)

    def plot(self) -> Figure:
        """Draw the deviance of the records left out, and the coefficients, by penalty, as SVG."""
        from ..plots import path_curves

        return Figure(*path_curves(self))

    def to_frame(self) -> pandas.DataFrame:
        """Return one row for each penalty: mean deviance, its standard error, and how many columns are selected."""
        import pandas

        selected = ((self.coefs != 0) & (penalised_columns(self.spec) > 0)).sum(1)
        values = {"deviance": self.mean, "se": self.standard_error, "selected": selected}
        return pandas.DataFrame(values, index=pandas.Index(self.penalties, name="penalty"))


def path_of(federation: Federation, spec: Design, state: PathState, asked_before: int = 0, **settings: Any) -> Path:
    """Turn the last state of `penalty_path` into a path; `settings` are family, l1_ratio and standardised."""
    return Path(
        spec=spec,
        penalties=state.penalties,
        coefs=state.beta[:, -1],
        by_fold=state.left_out,
        deviances=state.deviance,
        n_records=state.n,
        rounds=state.round,
        **provenance(federation, asked_before, spec.valued),
        **settings,
    )
