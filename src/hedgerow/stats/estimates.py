"""Estimates whose errors are normal: what fits of survival and of mixed models say of their coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from hedgerow.core.arrays import Array

from .columns import upper_end

if TYPE_CHECKING:
    import pandas


class NormalEstimates:
    """Errors, tests and intervals by the normal distribution; needs `names`, `coef_` (d,) and `covariance` (d, d)."""

    names: Any
    coef_: Any
    covariance: Any

    @property
    def se_(self) -> Array:
        """Standard errors, shape (d,)."""
        se: Array = np.sqrt(np.diag(self.covariance))
        return se

    @property
    def statistic_(self) -> Array:
        """Coefficients over their standard errors, shape (d,)."""
        statistic: Array = self.coef_ / self.se_
        return statistic

    @property
    def p_values(self) -> Array:
        """Two-sided p-values, shape (d,)."""
        p: Array = 2 * ndtr(-np.abs(self.statistic_))
        return p

    def conf_int(self, level: float = 0.95) -> Array:
        """Confidence intervals of the coefficients, shape (d, 2)."""
        reach = float(ndtri(upper_end(level))) * self.se_
        return np.column_stack([self.coef_ - reach, self.coef_ + reach])

    def _ratios(self, what: str, level: float) -> pandas.DataFrame:
        """Exponentials of coefficients and of their intervals, under this name."""
        import pandas

        with np.errstate(over="ignore"):
            values = np.exp(np.column_stack([self.coef_, self.conf_int(level)]))
        return pandas.DataFrame(values, index=list(self.names), columns=[what, "low", "high"])
