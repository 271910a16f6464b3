"""A private fit: coefficients of unit rows, what they cost, and what may be said of their uncertainty."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import special

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import LeftOut
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.costs import costs, noise_from
from hedgerow.report import Figure, ForPapers, Intervals, Outcome
from hedgerow.report.numerals import show, show_column

from ..columns import upper_end
from ..factors import INTERCEPT, Levels
from ..provenance import provenance
from .rows import UnitRows, rows_as_asked
from .scoring import CLASSIFIERS, metrics

if TYPE_CHECKING:
    import pandas

Model = Literal["logistic", "multinomial", "linear", "huber", "quantile", "svm"]
TITLES: Mapping[str, str] = {
    "logistic": "logistic regression",
    "multinomial": "multinomial logistic regression",
    "linear": "linear regression",
    "huber": "robust linear regression",
    "quantile": "quantile regression",
    "svm": "support vector machine",
}
WIDTH = 79


@displayed
@dataclass(frozen=True, eq=False)
class PrivateFit(ForPapers):
    """A linear model of unit rows, fitted by bounded sums.

    Attributes
    ----------
    rows : UnitRows
        How a record becomes a row.
    model : {"logistic", "multinomial", "linear", "huber", "quantile", "svm"}
    method : str
        How it was estimated, in words.
    coef_ : array of shape (d,), or (K, d) for K classes
        Of the columns of unit rows. A binary target's are log-odds, or margins of a support vector machine; a number's are in
        halves of its declared range.
    rounds : int
        Questions asked.
    shares : mapping from part to float
        Of the budget, where this fit divided one; else empty.
    spent : (float, float) or None
        Epsilon and delta of everything that this federation's ledger holds; None where it has no finite epsilon. Delta is zero
        where none was given and everything in the ledger is of pure epsilon.
    own : (float, float) or None
        The same of this fit's questions alone, where the ledger held others before.
    covariance : array of shape (d, d) or None
        Of `coef_`, noise included; None where nothing was proved of it.
    inference : str
        Where intervals come from, in words; or why there are none.
    n_parties, n_missing : int
    left, protection : str
        What left each party, and how it was protected, in words.
    cases : LeftOut or None
    """

    rows: UnitRows
    model: Model
    method: str
    coef_: Array
    rounds: int
    n_parties: int
    n_missing: int
    left: str
    protection: str
    cases: LeftOut | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    spent: tuple[float, float] | None = None
    own: tuple[float, float] | None = None
    covariance: Array | None = None
    inference: str = "no intervals: none are proved for this method"

    # ---- estimates --------------------------------------------------------------------------------------------------
    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.rows.names

    @property
    def _remedy(self) -> str:
        """What would give intervals where there are none: a plan that was made for them can only ask for more."""
        plain = self.inference == type(self).inference
        return "Take intervals=True, or hr.stats.private.inference." if plain else "`to_frame` has the coefficients alone."

    @property
    def se_(self) -> Array:
        """Standard errors, shape (d,).

        Raises
        ------
        SettingsInvalid (HR-511)
            This fit has none; `inference` says why.
        """
        if self.covariance is None:
            raise SettingsInvalid(self.inference + ".", remedy=self._remedy)
        se: Array = np.sqrt(np.diag(self.covariance))
        return se

    def conf_int(self, level: float = 0.95) -> Array:
        """Confidence intervals of the coefficients, shape (d, 2), which hold sampling and the noise of the release."""
        reach = special.ndtri(upper_end(level)) * self.se_
        return np.column_stack([self.coef_ - reach, self.coef_ + reach])

    # ---- use --------------------------------------------------------------------------------------------------------
    def decide(self, frame: Any) -> Array:
        """Linear predictor of new records, shape (n,) or (n, K).

        Raises
        ------
        MissingColumn, NotFinite, OutOfRange (HR-403, 404, 405)
        """
        return self.rows.predictor(self.coef_, frame)

    def predict(self, frame: Any) -> Array:
        """Expected target of new records: probability, probabilities (n, K), number in its own units, or class 0 or 1."""
        eta = self.decide(frame)
        if self.model == "logistic":
            return np.asarray(special.expit(eta))
        if self.model == "multinomial":
            return np.asarray(special.softmax(eta, axis=-1))
        if self.model == "svm":
            return (eta > 0).astype(np.float64)
        if not self.rows.numeric:
            return np.asarray(eta)
        return np.asarray(np.clip(eta, -1.0, 1.0) * self.rows.half + self.rows.middle)

    @property
    def classes_(self) -> tuple[str, ...]:
        """Labels of the target's classes, in the order of their codes; none of a number."""
        if self.model not in CLASSIFIERS:
            return ()
        response = self.rows.spec.response
        if not isinstance(response, Levels):
            return ("0", "1")
        column = self.rows.spec.schema[response.column]
        words = column.levels if column.kind == "category" else ("0", "1")
        return (next(word for word in words if word not in response.labels), *response.labels)

    def predict_proba(self, frame: Any) -> Array:
        """Probabilities of the classes, shape (n, K), as scikit-learn has them.

        Raises
        ------
        SettingsInvalid (HR-511)
            The model has no probabilities.
        """
        if self.model not in ("logistic", "multinomial"):
            raise SettingsInvalid(f"a {TITLES[self.model]} has no probabilities.", remedy="Take decide(...) or predict(...).")
        found = self.predict(frame)
        return found if found.ndim == 2 else np.column_stack([1 - found, found])

    def classify(self, frame: Any) -> Array:
        """The likeliest class of new records, as its label, shape (n,)."""
        if not self.classes_:
            raise SettingsInvalid(f"a {TITLES[self.model]} has no classes.", remedy="Take predict(...).")
        eta = self.decide(frame)
        found: Array = np.array(self.classes_)[eta.argmax(-1) if eta.ndim == 2 else (eta > 0).astype(np.int64)]
        return found

    def metrics(self, frame: Any) -> dict[str, float]:
        """How well it predicts records that are at hand; nobody is asked, and nothing is charged.

        Returns
        -------
        dict
            `accuracy`, and `AUC` of two classes; of a number `R2` and `mean absolute error`, in its own units.

        Raises
        ------
        MissingColumn, NotFinite, OutOfRange (HR-403, 404, 405)
        """
        spec = self.rows.spec
        weights = [] if spec.weights is None else [spec.weights]
        columns, n = spec.admitted(frame, list(dict.fromkeys([*spec.response.reads(spec.schema), *weights])))
        w = np.asarray(columns[spec.weights], np.float64) if spec.weights else np.ones(n)
        return metrics(self.rows, self.model, self.rows.targets(columns), self.decide(frame), w)

    def score(self, frame: Any) -> float:
        """Accuracy of a classifier, R2 of a number: as scikit-learn's `score`; see `metrics`."""
        found = self.metrics(frame)
        return found["accuracy" if self.model in CLASSIFIERS else "R2"]

    def plot(self, level: float = 0.95, *, intercept: bool = False, most: int = 40) -> Figure:
        """Draw the largest coefficients, with intervals where there are any, as SVG; at most so many of each class."""
        ends = np.full((*np.atleast_2d(self.coef_).shape, 2), np.nan)
        if self.covariance is not None:
            ends[0] = self.conf_int(level)
        titles = [f"Coefficients of {label}" for label in self.classes_] if self.coef_.ndim == 2 else ["Coefficients"]
        drawn = []
        for title, row, both in zip(titles, np.atleast_2d(self.coef_), ends, strict=True):
            kept = [i for i, name in enumerate(self.names) if intercept or name != INTERCEPT]
            largest = sorted(sorted(kept, key=lambda i: -abs(row[i]))[:most])
            names, values = [self.names[i] for i in largest], row[largest].tolist()
            low, high = both[largest].T.tolist()
            drawn.append(Intervals(title, "coefficient", names, values, low, high, level=level))
        return Figure(*drawn)

    def own_units(self) -> pandas.Series[float]:
        """Coefficients of the columns in their own units, of a model with rows of length fixed; see `units.own_units`.

        Raises
        ------
        SettingsInvalid (HR-511)
        """
        import pandas

        from .units import own_units

        return pandas.Series(own_units(self.rows, self.coef_), pandas.Index(self.names, name="column"), name="coef")

    def own_intervals(self, level: float = 0.95) -> pandas.DataFrame:
        """Return the coefficients of `own_units` with standard errors and confidence intervals, one row for each column.

        Raises
        ------
        SettingsInvalid (HR-511)
            This fit has none, or its coefficients have no units.
        """
        import pandas

        from .intervals import in_own_units

        index = pandas.Index(self.names, name="column")
        if self.covariance is None:
            raise SettingsInvalid(self.inference + ".", remedy=self._remedy)
        coef, covariance = in_own_units(self.rows, self.coef_, self.covariance)
        se = np.sqrt(np.diag(covariance))
        reach = special.ndtri(upper_end(level)) * se
        return pandas.DataFrame({"coef": coef, "se": se, "low": coef - reach, "high": coef + reach}, index=index)

    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Return one row for each column, with intervals where there are any."""
        import pandas

        index = pandas.Index(self.names, name="column")
        if self.coef_.ndim == 2:
            return pandas.DataFrame(self.coef_.T, index=index, columns=[f"coef {label}" for label in self.classes_])
        if self.covariance is None:
            return pandas.DataFrame({"coef": self.coef_}, index=index)
        low, high = self.conf_int(level).T
        return pandas.DataFrame({"coef": self.coef_, "se": self.se_, "low": low, "high": high}, index=index)

    def summary(self, level: float = 0.95) -> str:
        """Return the fit as text: what was spent and on what, the coefficients, and where intervals come from."""
        title = f"hedgerow private {TITLES[self.model]}"
        frame = self.to_frame(level)
        width = max(map(len, self.names))
        cells = [[str(name), *show_column(str(name), frame[name].tolist())] for name in frame]
        lines = [
            title + f"{self.rounds} questions".rjust(WIDTH - len(title)),
            *textwrap.wrap(self.rows.spec.formula, WIDTH, subsequent_indent="  "),
            "",
            *(name.ljust(width) + "".join(f"  {cell[i]:>12}" for cell in cells) for i, name in enumerate(("", *self.names))),
            "",
            *(line for heading, words in self._said().items() for line in _paragraph(heading, words)),
        ]
        return "\n".join(line.rstrip() for line in lines)

    def _said(self) -> dict[str, str]:
        length = "every row is divided by its own length: coefficients are of x / |x|, for prediction"
        if self.rows.same_length:
            length = f"every row is divided by {self.rows.factor:.4g}, the largest length that there can be"
        spent = "no finite epsilon" if self.spent is None else _cost(self.spent)
        spent += "" if self.own is None else f" by everything in the ledger; {_cost(self.own)} by this fit"
        parts = "; ".join(f"{name} {share:.0%}" for name, share in self.shares.items())
        return {
            "method": self.method,
            "spent": f"{spent}{': ' + parts if parts else ''}",
            "row length one": length,
            "beyond ranges": "a value counts as the nearer end of its declared range"
            if self.rows.held
            else "values are as they are",
            "intervals": self.inference,
            "protection": self.protection,
            "left each party": self.left,
        }

    def __str__(self) -> str:
        return self.summary()


def private_fit(
    federation: Federation,
    rows: UnitRows,
    model: Model,
    coef: Array,
    *,
    method: str,
    rounds: int,
    delta: float | None,
    asked_before: int = 0,
    **more: Any,
) -> PrivateFit:
    """Make a fit, with what the ledger of its federation says.

    Parameters
    ----------
    federation : Federation
        As its last question was asked: through the handle that adds the noise.
    delta : float or None
        Of the budget; None or zero for a pure one, or where the channel's own noise is used.
    asked_before : int
        Length of the ledger before the fit.
    """
    known = provenance(federation, asked_before, rows.spec.valued)
    known["protection"] = known["protection"].partition("; no standard errors")[0]
    if federation.protection.noisy:
        known["protection"] += noise_from(federation, asked_before)
        known |= costs(federation, delta, asked_before)
    rows = rows_as_asked(rows, federation, planned=False)
    return PrivateFit(rows, model, method, coef, rounds, **known, **more)


def outcome_of(fit: PrivateFit) -> Outcome:
    """What a report shows of a fit: what was spent, coefficients, and the summary."""
    frame = fit.to_frame()
    spent = {} if fit.spent is None else {"epsilon spent": fit.spent[0]}
    return Outcome(
        {"questions": float(fit.rounds)} | spent,
        tables={"Coefficients": frame},
        text={"Summary": fit.summary()},
        coefficients=frame,
    )


def _cost(cost: tuple[float, float]) -> str:
    return f"epsilon {show(cost[0])} at delta {cost[1]:g}"


def _paragraph(heading: str, words: str) -> list[str]:
    return textwrap.wrap(words, WIDTH, initial_indent=heading.ljust(17), subsequent_indent=" " * 17)
