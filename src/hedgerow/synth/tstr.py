"""Train on synthetic, test on real: whether a model of made-up records predicts real ones.

    fit      logistic regression on indicators of codes, and boosted trees on codes     on made-up records, costs nothing
    score    accuracy, or R2 of a number                                                on a public hold-out table, as free
    beside   the same two, fitted on real records                                       where the caller has them: a simulation

Records are read as codes of public cut points (`Codes`), so that both models see what a synthesizer saw; a missing value is a
level of its own. Weights of records are not read.

Needs    : scikit-learn.
Releases : nothing, where the hold-out table is public.
Source   : Esteban, Hyland & Rätsch 2017, "TSTR" and "TRTR".
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.data import Table
from hedgerow.errors import MissingExtra, SchemaInvalid, SettingsInvalid

from .codes import Codes

if TYPE_CHECKING:
    import pandas

REAL, MADE = "real records", "made-up records"


@dataclass(frozen=True, repr=False)
class Utility:
    """Scores of models on a hold-out table.

    Attributes
    ----------
    target, measure : str
        What is predicted, and how it is scored: "accuracy" or "R2".
    scores : dict from (learner, trained on) to float
    tested : int
        Records of the hold-out table.
    """

    target: str
    measure: str
    scores: dict[tuple[str, str], float]
    tested: int

    def __repr__(self) -> str:
        told = ", ".join(f"{learner} on {trained} {score:.4f}" for (learner, trained), score in self.scores.items())
        return f"Utility({self.measure} of {self.target!r}: {told})"

    def to_frame(self) -> pandas.DataFrame:
        """One row for each learner, one column for each table that it was trained on."""
        import pandas

        return pandas.Series(self.scores).unstack().rename_axis(index="learner", columns="trained on")

    def named(self) -> dict[str, float]:
        """Scores by a name for a report: "accuracy, logistic on made-up records"."""
        return {f"{self.measure}, {learner} on {trained}": score for (learner, trained), score in self.scores.items()}


def tstr(
    made: Table,
    test: Table,
    *,
    real: Table | None = None,
    target: str | None = None,
    bins: int = 16,
    log: str | Sequence[str] = (),
    codes: Codes | None = None,
    seed: int = 0,
) -> Utility:
    """Fit models on made-up records, and score them on a public hold-out table.

    Parameters
    ----------
    made : Table
        Made-up records.
    test : Table
        Public records with at least the columns of `made`.
    real : Table, optional
        Records from which they were made, where a simulation has them: the same models are fitted on these, too.
    target : str, optional
        What is predicted; by default the target of the made-up table's schema.
    bins, log
        How numbers are read (see `Codes.of`).
    codes : Codes, optional
        In the place of both, those of a synthesizer.
    seed : int
        Of boosting.

    Returns
    -------
    Utility

    Raises
    ------
    SettingsInvalid (HR-511)
        No target; a table lacks records.
    MissingColumn (HR-403), SchemaInvalid (HR-409)
        The hold-out table lacks a column, or declares other levels.
    MissingExtra (HR-105)
        scikit-learn is not installed.
    """
    codes = codes or Codes.of(made.schema, target=target, bins=bins, log=log)
    name = target or codes.target
    if not name:
        raise SettingsInvalid("no target, so there is nothing to predict.", remedy='Name a column: target="income".')
    given = {MADE: made} | ({} if real is None else {REAL: real})
    if empty := [who for who, table in {**given, "the hold-out table": test}.items() if not len(table)]:
        raise SettingsInvalid(f"there are no {' and no '.join(empty)}.", remedy="Give tables with records.")
    for who, table in {**given, "the hold-out table": test}.items():
        refuse_other_columns(codes, table, who)
    reading = CodeReading(codes, codes.place(name))
    X, y = reading(test)
    scores = {}
    for trained, table in given.items():
        features, outcomes = reading(table)
        for learner, fit in reading.learners(seed).items():
            scores[learner, trained] = float(fit(features, outcomes)(X, y))
    return Utility(name, reading.measure, scores, len(y))


def refuse_other_columns(codes: Codes, table: Table, who: str) -> None:
    """Refuse a table whose columns are of another kind, or whose levels have other codes.

    Raises
    ------
    MissingColumn (HR-403), SchemaInvalid (HR-409)
    """
    for column in codes.columns:
        own = table.schema[column.name]
        if (own.kind, own.levels) != (column.kind, column.levels):
            mine, other = (f"{one.kind}{f' of {len(one.levels)} levels' if one.levels else ''}" for one in (own, column))
            raise SchemaInvalid(
                f"{column.name!r} of {who} is declared as {mine}, not as {other}"
                + (" with the same levels in the same order." if mine == other else "."),
                remedy="Read it with the schema of the other: Table.from_frame(frame, schema=...).",
            )
        if own.optional and not column.optional:
            raise SchemaInvalid(
                f"{column.name!r} may be missing in {who} alone.",
                remedy="Leave out its records that lack a value:  Table.from_frame(frame.dropna(), schema=made.schema)",
            )


@dataclass(frozen=True)
class CodeReading:
    """Records as codes of features, and values of the target; those without a target are left out."""

    codes: Codes
    at: int

    def __call__(self, table: Table) -> tuple[Array, Array]:
        values = np.asarray(table[self.codes.names[self.at]])
        there = ~self.codes.columns[self.at].lacks(values)
        codes = self.codes.number(table.columns)[there]
        return np.delete(codes, self.at, 1), values[there]

    @property
    def classifies(self) -> bool:
        return self.codes.columns[self.at].kind in ("binary", "category")

    @property
    def measure(self) -> str:
        return "accuracy" if self.classifies else "R2"

    @cached_property
    def sizes(self) -> list[int]:
        return [size for j, size in enumerate(self.codes.sizes) if j != self.at]

    def indicators(self, codes: Array) -> Any:
        """One column for each code of each feature, sparse."""
        from scipy import sparse

        n, f = codes.shape
        at = codes.astype(np.int64) + np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)
        return sparse.csr_matrix((np.ones(n * f), at.ravel(), np.arange(0, n * f + 1, f)), (n, sum(self.sizes)))

    @staticmethod
    def quietly(model: Any, X: Any, y: Array) -> Any:
        """Fit, without a warning where it has not converged: its score says what it is worth."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X, y)

    def learners(self, seed: int) -> dict[str, Callable[[Array, Array], Callable[[Array, Array], float]]]:
        try:
            from sklearn import ensemble, linear_model
        except ImportError:
            raise MissingExtra("tstr needs scikit-learn.", remedy="pip install 'hedgerow[data]'") from None
        if self.classifies:
            linear, trees = linear_model.LogisticRegression(max_iter=200), ensemble.HistGradientBoostingClassifier
        else:
            linear, trees = linear_model.Ridge(), ensemble.HistGradientBoostingRegressor

        def of(model: Any, read: Callable[[Array], Any]) -> Callable[[Array, Array], Callable[[Array, Array], float]]:
            def fit(X: Array, y: Array) -> Callable[[Array, Array], float]:
                if self.classifies and len(np.unique(y)) == 1:  # made-up records of one class predict that class
                    return lambda Z, z: float((z == y[0]).mean())
                fitted = self.quietly(model, read(X), y)
                return lambda Z, z: float(fitted.score(read(Z), z))

            return fit

        boosted = trees(max_iter=100, random_state=seed)
        return {"logistic" if self.classifies else "linear": of(linear, self.indicators), "boosting": of(boosted, np.asarray)}
