"""Losses whose slopes and curvatures are bounded at every coefficient, so that their sums over unit rows are bounded too.

    loss          slope at most      curvature at most      target
    logistic      1                  1/4                    0 or 1
    hinge         1                  1 / corner             0 or 1
    Huber         threshold          1                      in [-1, 1]
    quantile      max(q, 1 - q)      1 / corner             in [-1, 1], q the share below
    softmax       sqrt(2)            1/2                    one of K classes

For rows of length one at most, one record's score is at most as long as the slope, and the curvature times the sum of x x'
lies above every information (Boehning & Lindsay 1988). Of softmax the score of a record is (p - e_y) x', and

    |p - e_y|^2  =  (1 - p_y)^2 + sum of the other p_k^2  <=  2 (1 - p_y)^2  <=  2

reached where another class is certain; the information is below (I - 11'/K) / 2 times x x' (Boehning 1992), which is half the
sum of x x' for coefficients that add up to zero over classes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from hedgerow.errors import SettingsInvalid

from ..linear.loss import Loss
from ..linear.losses import loss_of
from .rows import UnitRows

BoundedModel = Literal["logistic", "multinomial", "huber", "svm", "quantile"]
NAMES: Mapping[str, str] = {"logistic": "binomial", "huber": "huber", "svm": "hinge", "quantile": "smoothed check"}
MULTINOMIAL = "multinomial"
ANYWHERE = (-math.inf, math.inf)
THRESHOLD = 0.1
"""Of the declared range: residuals beyond it pull with a constant force. Public; looked at on insurance."""
HINGE_CORNER = 1.0
"""Width of a rounded hinge, in margins. Public; looked at on Adult."""
CORNERS = (0.02, 0.05)
"""Width of the kernel that smoothes a quantile's loss, in declared ranges, without and with a budget. Public; looked at on
diabetes, insurance and a simulated cost."""
WIDE, NARROWER = 0.5, 0.1
"""The same of the first steps behind noise, and of those after them."""
FIRST = 3
"""Steps behind noise towards the median, one in three at most, before those towards another share."""
FAR_OFF = 0.05
"""A summary says so where the share at the last step was further from the one asked for."""


@dataclass(frozen=True)
class BoundedLoss:
    """A loss with bounds that hold wherever it is asked.

    Attributes
    ----------
    model : {"logistic", "multinomial", "huber", "svm", "quantile"}
    width : float
        Of the corner, or where Huber's loss becomes linear; in units of targets in [-1, 1], or of margins.
    share : float or None
        Of targets below a quantile.
    classes : int
        Of softmax; else 0.
    """

    model: BoundedModel
    width: float = 0.0
    share: float | None = None
    classes: int = 0

    @classmethod
    def of(
        cls,
        model: BoundedModel,
        rows: UnitRows,
        *,
        threshold: float | None,
        corner: float | None,
        share: float,
        budgeted: bool = False,
    ) -> BoundedLoss:
        """The loss of a model of these rows; threshold and corner are in the target's own units, a hinge's in margins.

        Whether it is fitted within a budget decides the width of a corner that is not given.

        Raises
        ------
        SettingsInvalid (HR-511)
            A width that is not above zero, or a share outside (0, 1).
        """
        if model == "multinomial":
            return cls(model, classes=len(rows.spec.response.names) + 1)
        unit = rows.half if rows.numeric else 1.0
        width = {
            "logistic": 0.0,
            "huber": 2 * THRESHOLD if threshold is None else threshold / unit,
            "svm": HINGE_CORNER if corner is None else corner,
            "quantile": 2 * CORNERS[budgeted] if corner is None else corner / unit,
        }[model]
        if model != "logistic" and not (math.isfinite(width) and width > 0):
            raise SettingsInvalid(
                f"threshold={threshold!r}, corner={corner!r}.", remedy="Both are finite numbers above zero, or left out."
            )
        if not 0 < share < 1:
            raise SettingsInvalid(f"share={share!r} is no share.", remedy="Give one between 0 and 1.")
        return cls(model, width, share if model == "quantile" else None)

    @cached_property
    def loss(self) -> Loss:
        """Of a linear predictor; of softmax there is none."""
        return loss_of(NAMES[self.model], self.share)

    def at(self, step: int, steps: int) -> BoundedLoss:
        """The loss of one of a fixed number of steps, from 0: a quantile's corner becomes narrower down to its own.

        On a wide corner a line of few targets goes too far out, where most of them pull one way, and comes back slowly. So the
        first steps find the median on a wide one; and the next ones move out, on corners narrower by the same factor each.
        """
        if self.share is None:
            return self
        first = min(FIRST, (steps + 1) // 3)
        if step < first:
            return replace(self, width=max(2 * WIDE, self.width), share=0.5)
        rest = max(steps - first - 1, 1)
        wider = max(2 * NARROWER / self.width, 1.0) ** (1 - min((step - first) / rest, 1.0))
        return replace(self, width=self.width * wider)

    def said(self, rows: UnitRows, step: float) -> str:
        """What a quantile's summary says of its share and corner, and of the last step; else nothing.

        A step moves predictions by the corner times what is lacking of the share.
        """
        if self.share is None:
            return ""
        width, off = self.width * rows.half, step / self.width
        said = f"; share {self.share:g} of targets below the line, the loss smoothed over a corner of {width:.4g}"
        if step > 0:
            said += f"; at the last step the share was off by about {off:.2g}, noise included"
        few = "; steps are too few for this corner, or noise is large: give more rounds, or a wider corner"
        return said + few * (off > FAR_OFF)

    @property
    def slope(self) -> float:
        """Largest length of what is multiplied by a row: a convex loss is steepest at the ends."""
        if self.classes:
            return math.sqrt(2.0)
        y, eta = np.array([-1.0, -1.0, 0.0, 1.0, 1.0, 0.0]), np.array([math.inf, -math.inf] * 3)
        if self.loss.binary:
            y = np.maximum(y, 0.0)
        return float(np.abs(self.loss.part("slope", y, eta, self.width)).max())

    @property
    def curvature(self) -> float:
        """Largest second derivative."""
        return 0.5 if self.classes else self.loss.limits((0.0, 1.0), (0.0, 0.0), self.width)["curvature"]

    def shape(self, d: int) -> tuple[int, ...]:
        """Of the coefficients of d columns."""
        return (self.classes, d) if self.classes else (d,)
