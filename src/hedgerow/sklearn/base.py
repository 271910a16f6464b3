"""What all estimators share: where records come from, and what is known after a fit."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from hedgerow.core.federation import Federation
from hedgerow.core.ledger_view import LedgerView
from hedgerow.data import Column, Table, iid
from hedgerow.data.split_column import warn_of_split
from hedgerow.engines import simulate
from hedgerow.errors import SettingsInvalid

from .records import frame_for, held_table, names_for, table_of


class FederatedEstimator(BaseEstimator):
    """Base of the estimators: `fit` on a federation, or on `(X, y)` as scikit-learn has it.

    Attributes
    ----------
    fit_
        Hedgerow's own fit, with its inference.
    ledger_ : LedgerView
        Of the federation that was asked; not kept in copies of the estimator.
    feature_names_in_ : array of str
        Columns that the model reads. Of `(X, y)` without names there are none.
    n_features_in_ : int
    """

    fit_: Any
    ledger_: LedgerView
    parties: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to a federation, or to records that the caller holds.

        Parameters
        ----------
        X : Federation, Table, data frame, or array of shape (n, d)
            Of a federation every question is in its ledger, under its protection and budget. Anything else is a table that
            the caller holds: it is split at random among `parties` simulated parties. Without a formula X are numbers; with
            one X is a frame or table with the columns that it names.
        y : array of shape (n,), optional
            Of `(X, y)` only; where X is a frame that holds the formula's target, none.

        Releases
        --------
        Of a federation what the method releases; see `fit_`.

        Raises
        ------
        SettingsInvalid (HR-511)
            y beside a federation, or a formula beside an array.
        HedgerowError
            As the method that is fitted.
        ValueError
            X or y are refused by scikit-learn's own checks.
        """
        self._local = False
        if isinstance(X, Federation):
            if y is not None:
                raise SettingsInvalid(
                    "y was given beside a federation.", remedy="The formula, or the schema's target, says what is predicted."
                )
            federation = X
            if getattr(self, "formula", None) is None and getattr(self, "features", None) is None:
                warn_of_split(federation, federation.schema.features)
        elif isinstance(X, Table) or getattr(self, "formula", None) is not None:
            federation = self._simulated(held_table(X, y, self._target_of_formula()))
        else:
            federation = self._simulated(self._checked(X, y))
            self._local = True
        self._fit(federation)
        self.ledger_ = federation.ledger
        if not self._local:
            reads = self._reads()
            self.n_features_in_, self.feature_names_in_ = len(reads), np.array(reads, dtype=object)
        return self

    def _fit(self, federation: Federation) -> None:
        """Ask the parties, and set what is known then."""
        raise NotImplementedError

    def _reads(self) -> tuple[str, ...]:
        """Columns that the model reads."""
        raise NotImplementedError

    def _column(self, name: str, y: np.ndarray) -> tuple[Column, np.ndarray]:
        """Declare the target of `(X, y)`, and code it."""
        raise NotImplementedError

    def _table(self, X: np.ndarray, names: list[str], target: Column, y: np.ndarray) -> Table:
        """The table of `(X, y)`."""
        return table_of(X, names, target, y)

    def _checked(self, X: Any, y: Any) -> Table:
        """What scikit-learn asks of `(X, y)`, and their table."""
        named = getattr(y, "name", None)
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2, y_numeric=self._numeric)
        names, target = names_for(list(getattr(self, "feature_names_in_", [])), named, X.shape[1])
        column, y = self._column(target, y)
        return self._table(X, names, column, y)

    _numeric = True

    def _simulated(self, table: Table) -> Federation:
        """A federation of records that the caller holds, of which nothing is hidden from the caller."""
        return simulate(table, iid(parties=self.parties), seed=0, disclosure=float("inf"))

    def _target_of_formula(self) -> str | None:
        """The column before the ~ of a formula, where it is one."""
        text = (getattr(self, "formula", None) or "").partition("~")[0].strip().strip("`")
        return text or None

    def _frame(self, X: Any) -> Any:
        """New records, as a frame with the columns that the model reads."""
        check_is_fitted(self)
        if isinstance(X, Federation) or not self._local:
            return frame_for(X, self._reads())
        return frame_for(validate_data(self, X, reset=False, dtype=np.float64), self._reads())

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "ledger_"}
