"""What is known of a loss before the first question: where it is least, how it curves there, how records scatter.

    H    second derivative of f at theta*, ridge included      excess of theta: (theta - theta*)' H (theta - theta*) / 2
    G    covariance of one record's gradient at theta*         excess of n records' own best theta: tr(H^-1 G) / (2 n)

For the squared loss f is this parabola everywhere; for the logistic loss near theta*; the hinge has a curvature only where
records lie on its kink, besides its ridge.

Source: Wu 2019, section 3.2. Differs: the thesis bounds the excess by constants of the loss; here the loss itself is looked at,
in records that belong to no party (`of_records`) or by a noisy question to the owners (`second_moments`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.data import Table
from hedgerow.data.cases import whole_cases
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.queries.fitness import optimum, smooth
from hedgerow.learn.queries.inputs import Inputs
from hedgerow.learn.queries.losses import QueryLoss

KINK = 0.1
"""The hinge is rounded off over so much of the margin where its curvature is measured."""
FOLDS = 8
"""So many replicas tell how well an estimate is known. Of public records each is what is left without one part of so many
(jackknife); where the loss is no parabola, and has to be followed, it is that part alone, which costs less and says a little
more doubt than there is."""

FEWEST = 10
"""Records for each coordinate of a row, at least. With fewer the curvature is that of these records and of nobody else."""


@dataclass(frozen=True)
class PilotRows:
    """Records that belong to no party: x of shape (n, d), y and weights w of shape (n,), and the loss."""

    loss: QueryLoss
    x: Array
    y: Array
    w: Array


@dataclass(frozen=True, eq=False)
class PilotEstimate:
    """The neighbourhood of a loss's least value.

    Attributes
    ----------
    curvature : array of shape (d, d)
        H, symmetric, positive semidefinite.
    best : array of shape (d,)
        theta*, in the box.
    least : float
        f(theta*).
    scatter : array of shape (d, d)
        G.
    source : str
        How it is known, in words: "10 000 public records".
    rows : PilotRows, optional
        Public records, along which a loss that is no parabola is followed (`propagation`).
    replicas : tuple of PilotEstimate
        Estimates that differ as this one might: of parts of the records, or with noise once more.
    doubt : float
        Deviation of this estimate over that of the replicas; 0 without them.
    slope : array of shape (d,), optional
        Gradient at theta*, where no records are known and the box stops it; None stands for zeros.
    """

    curvature: Array
    best: Array
    least: float
    scatter: Array
    source: str
    rows: PilotRows | None = None
    replicas: tuple[PilotEstimate, ...] = ()
    doubt: float = 0.0
    slope: Array | None = None

    @property
    def sampling(self) -> float:
        """Expected excess, times n, of the best theta of n records on records like them."""
        return float(np.trace(np.linalg.pinv(self.curvature, hermitian=True) @ self.scatter)) / 2

    @classmethod
    def of_table(cls, loss: QueryLoss, spec: Inputs, table: Table, box: float, whose: str) -> PilotEstimate:
        """From a table of records that belong to no party, of which those count that lack no value, by their weights.

        Parameters
        ----------
        whose : str
            What to call them after their number: "public records".
        """
        known = whole_cases(table, [*spec.features, spec.target])
        weight = None if known.schema.weight is None else np.asarray(known[known.schema.weight], float)
        n = f"{len(known):,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
        return cls.of_records(loss, spec.rows(known.columns), spec.targets(known.columns), box, f"{n} {whose}", weight)

    @classmethod
    def of_records(cls, loss: QueryLoss, x: Array, y: Array, box: float, source: str, w: Array | None = None) -> PilotEstimate:
        """From records that belong to no party: x of shape (n, d), y of shape (n,), as `Inputs` makes them.

        Raises
        ------
        SettingsInvalid (HR-511)
            Fewer than ten records for each coordinate: neither the forecast nor its doubt would mean anything.
        """
        if len(y) < FEWEST * x.shape[1]:
            raise SettingsInvalid(
                f"{source or 'public records'}: {len(y)} are too few to know a loss of {x.shape[1]} coordinates by.",
                remedy=f"Give at least {FEWEST * x.shape[1]}, ten for each; or declare bounds of the loss, or ask owners.",
            )
        weights = np.ones(len(y)) if w is None else w
        found = _of_rows(PilotRows(loss, x, y, weights), box, source)
        fold, squared = np.arange(len(y)) % FOLDS, loss.kind == "squared"
        taken = [(fold != i) if squared else (fold == i) for i in range(FOLDS)]
        parts = tuple(_of_rows(PilotRows(loss, x[these], y[these], weights[these]), box, source) for these in taken)
        return replace(found, replicas=parts, doubt=(FOLDS - 1 if squared else 1) * FOLDS**-0.5)


def _of_rows(rows: PilotRows, box: float, source: str) -> PilotEstimate:
    loss, x, y, w = rows.loss, rows.x, rows.y, rows.w
    best = optimum(loss, x, y, w, box)
    curvature = smooth(loss, best, x, y, w, KINK)[2]
    each = loss.slopes(x @ best, y)[:, None] * x
    each = each - w @ each / w.sum()
    scatter = (each.T * w) @ each / w.sum()
    return PilotEstimate(curvature, best, float(loss.cost(best, x, y, w)), scatter, source, rows)
