"""One coefficient, put together over sites: means, heterogeneity, prediction, and what that says in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy.special import chdtrc, ndtr, ndtri, stdtr, stdtrit

from ..columns import upper_end

FEW_SITES = 5
"""With fewer sites the variance between them is a guess."""
ALPHA = 0.05

Between = Literal["reml", "dl"]
BETWEEN: dict[Between, str] = {"reml": "REML", "dl": "DerSimonian and Laird"}
"""How the variance between sites is estimated, in words."""


@dataclass(frozen=True)
class CombinedEffect:
    """Estimates of k sites put together. Of two sites there is nothing but the fixed effect, and NaN elsewhere.

    Attributes
    ----------
    name : str
        Of the coefficient.
    k : int
        Sites.
    fixed, fixed_se : float
        Mean weighted by precision, as if sites had one effect.
    q : float
        Cochran's.
    tau2_dl, dl, dl_se, dl_scale : float
        Variance between sites by DerSimonian and Laird, with the mean, its error, and Hartung and Knapp's factor of its
        variance.
    tau2, mean, se, scale : float
        The same, by `between`.
    between : {"reml", "dl"}
        Restricted maximum likelihood, or DerSimonian and Laird.
    """

    name: str
    k: int
    fixed: float
    fixed_se: float
    q: float
    tau2_dl: float = math.nan
    dl: float = math.nan
    dl_se: float = math.nan
    dl_scale: float = math.nan
    tau2: float = math.nan
    mean: float = math.nan
    se: float = math.nan
    scale: float = math.nan
    between: Between = "reml"

    # ---- heterogeneity ----------------------------------------------------------------------------------------------
    @property
    def p_heterogeneity(self) -> float:
        """Of Cochran's Q: whether sites differ by more than chance."""
        return float(chdtrc(self.k - 1, self.q))

    @property
    def i2(self) -> float:
        """Share of the spread of estimates that is not chance."""
        return max(0.0, 1 - (self.k - 1) / self.q) if self.q > 0 else 0.0

    @property
    def tau(self) -> float:
        """Standard deviation between sites."""
        return math.sqrt(self.tau2)

    # ---- the mean of sites ------------------------------------------------------------------------------------------
    @property
    def hk_se(self) -> float:
        """Hartung and Knapp's error of `mean`, raised to the ordinary one where it is below."""
        return self.se * math.sqrt(max(self.scale, 1.0))

    @property
    def dl_hk_se(self) -> float:
        """Hartung and Knapp's error of `dl`, as it is."""
        return self.dl_se * math.sqrt(self.dl_scale)

    @property
    def was_raised(self) -> bool:
        """Whether sites agree so well by luck that Hartung and Knapp's error was below the ordinary one."""
        return self.scale < 1

    @property
    def p_value(self) -> float:
        """Of the mean of sites: t on k - 1 degrees of freedom; of two sites z of the fixed effect."""
        if self.k < 3:
            return float(2 * ndtr(-abs(self.fixed / self.fixed_se)))
        return float(2 * stdtr(self.k - 1, -abs(self.mean / self.hk_se)))

    def fixed_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Of the fixed effect."""
        reach = float(ndtri(upper_end(level))) * self.fixed_se
        return self.fixed - reach, self.fixed + reach

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Of the mean of sites: t on k - 1 degrees of freedom with Hartung and Knapp's error."""
        reach = float(stdtrit(self.k - 1, upper_end(level))) * self.hk_se
        return self.mean - reach, self.mean + reach

    def prediction(self, level: float = 0.95) -> tuple[float, float]:
        """Where the effect at another site is expected: t on k - 2 degrees of freedom."""
        if self.k < 3:
            return math.nan, math.nan
        reach = float(stdtrit(self.k - 2, upper_end(level))) * math.sqrt(self.tau2 + self.se**2)
        return self.mean - reach, self.mean + reach

    # ---- in words ---------------------------------------------------------------------------------------------------
    @property
    def sentence(self) -> str:
        """What the test says of differences between sites, and no more."""
        test = f"Q {self.q:.3g} on {self.k - 1} df, p {_p(self.p_heterogeneity)}"
        if self.p_heterogeneity < ALPHA:
            said = f"Sites differ by more than chance ({test}): {self.i2:.0%} of the spread between them is no chance."
        else:
            said = (
                f"No sign that sites differ by more than chance ({test}); that is not to say that they agree: "
                f"with {self.k} sites the test would notice only large differences."
            )
        if self.k < 3:
            return f"{said} Of two sites no variance between them is estimated."
        return f"{said} Of {self.k} sites tau² is a guess." if self.k < FEW_SITES else said


def _p(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.2g}"
