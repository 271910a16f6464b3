"""Train on synthetic, test on real records where these lie: two sums, of hits and of records.

    server:   a logistic regression on indicators of codes, fitted on made-up records      nobody is asked
    B         -> parties                                                                   broadcast, shape (1 + cells, classes)
    hits, n   <- sum over records of (w [argmax_c (B_0 + sum_j B_(j, code)) = y], w)       one question, + noise
    accuracy  <- hits / n

A record adds (w, w) or (0, w): l2 sqrt 2 and l1 2, times the heaviest weight. Scores of columns are added one after the other,
so that a record's prediction follows from its own codes, to the last bit. Boosting stays on a public hold-out table (`tstr`).

Releases : hits and n, once. State : none at the parties. Unit : record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.core.party import Party
from hedgerow.core.question import local, minds_missing
from hedgerow.core.whole import held
from hedgerow.data import Table, complete_cases
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.shares import BudgetShares, Share
from hedgerow.trees.noise import ball, deviation

from .codes import Codes, coded
from .quality import refuse_exact
from .tstr import CodeReading, refuse_other_columns


@dataclass(frozen=True)
class PartyScore:
    """How well a model of made-up records predicts the parties' records.

    Attributes
    ----------
    accuracy : float
        Within [0, 1], whatever noise does.
    records : float
        Sum of weights, noise included, one at least.
    sigma : float
        Standard deviation of the noise in hits and in records.
    """

    accuracy: float
    records: float
    sigma: float

    @property
    def noise(self) -> float:
        """Standard deviation of the accuracy that noise alone causes, about."""
        return self.sigma * math.sqrt(1 + self.accuracy**2) / self.records if self.sigma else 0.0


def tstr_at_parties(
    federation: Federation,
    made: Table,
    *,
    target: str | None = None,
    bins: int = 16,
    log: Sequence[str] = (),
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
) -> PartyScore:
    """Fit a logistic regression on made-up records, and count how many real ones it predicts.

    Of records that the made-up ones were made from, this is optimistic: ask parties that held records back.

    Parameters
    ----------
    made : Table
        Made-up records.
    target : str, optional
        A binary column or category; by default the target of the made-up table's schema.
    bins, log
        How numbers are read (see `Codes.of`).
    epsilon, delta, noise_at, least
        A budget for this question, as of `quality`. Without it the question is asked through the channel as it is.

    Raises
    ------
    SettingsInvalid (HR-511)
        There is no target with classes, or there are no made-up records.
    BudgetInvalid (HR-214)
        The made-up records, or the ledger, promise an epsilon, and the answer would be exact.
    MissingColumn (HR-403), SchemaInvalid (HR-409), SlotFilled (HR-212), UnboundedSum (HR-210)
        As of `quality`.
    """
    codes = Codes.of(federation.schema, columns=list(made.schema.names), target=target, bins=bins, log=log)
    refuse_other_columns(codes, made, "the made-up table")
    at = codes.place(codes.target) if codes.target else -1
    if at < 0 or codes.columns[at].kind not in ("binary", "category") or not len(made):
        raise SettingsInvalid(
            f"target={codes.target!r} and {len(made)} made-up records: hits are counted of classes.",
            remedy="Name a binary column or a category, and give records.",
        )
    refuse_exact(federation, made, epsilon)
    weights = fitted(CodeReading(codes, at), made)
    read = complete_cases(federation, [codes.target], count=epsilon is None).prepare(coded, codes=codes)
    handle = BudgetShares(epsilon, delta, noise_at, least).handles(read, {"hits": Share(1.0)}, begins=True)["hits"]
    bound = None if codes.heaviest is None else ball(handle, 2, codes.heaviest)
    sigma = deviation(handle, bound, 2)
    hits, total = handle.sum(partial(prediction_hits, sizes=codes.sizes, target=at), weights, bound=bound)
    n = max(float(total), (codes.heaviest or 0.0) if sigma else 0.0)  # with noise as many as one record at least
    return PartyScore(float(np.clip(hits / n, 0.0, 1.0)) if n > 0 else math.nan, n, sigma)


@minds_missing
@local(additive=True, stackable=True, holds=True)
def prediction_hits(
    weights: Array, party: Party, rng: Any, *, sizes: tuple[int, ...], target: int, bounds: Bounds | None = None
) -> Array:
    """Count how many records a model predicts rightly, and how many there are.

    Parameters
    ----------
    weights : array of shape (1 + cells, classes)
        Intercepts, then a row for each code of each column but the target.
    party : Party
        With `codes` as `coded` prepares them.
    sizes : tuple of int
        Codes of each column.
    target : int
        Place of the target.
    bounds : Bound, optional
        Behind noise: each record's weight, which it adds twice, is held to it, in whole steps.

    Returns
    -------
    array of shape (2,)
        With a leading axis for parties where they are stacked.
    """
    codes = party["codes"].astype(np.intp)
    scores, start = np.zeros((*codes.shape[:-1], weights.shape[1])) + weights[0], 1
    for j, size in enumerate(sizes):
        if j != target:
            scores += weights[start + codes[..., j]]
            start += size
    w = held(party.w, bounds, times=2)
    return np.stack([(w * (scores.argmax(-1) == codes[..., target])).sum(-1), w.sum(-1)], axis=-1)


def fitted(reading: CodeReading, made: Table) -> Array:
    """Intercepts and coefficients of a logistic regression, shape (1 + cells, classes); of classes never made they lose."""
    from sklearn.linear_model import LogisticRegression

    X, y = reading(made)
    column = reading.codes.columns[reading.at]
    n_classes = 2 if column.kind == "binary" else len(column.levels)
    found = np.zeros((1 + sum(reading.sizes), n_classes))
    there = np.unique(y.astype(np.intp))
    found[0] = -1e9
    found[0, there] = 0.0
    if len(there) > 1:
        model = reading.quietly(LogisticRegression(max_iter=200), reading.indicators(X), y)
        if len(there) == 2:
            found[:, there[1]] = [model.intercept_[0], *model.coef_[0]]
        else:
            found[:, there] = np.vstack([model.intercept_, model.coef_.T])
    return found
