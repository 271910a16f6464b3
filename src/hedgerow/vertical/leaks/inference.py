"""Label inference: what a feature holder finds out about labels from the gradients that come back to it.

    by norm        the gradient of one record grows with |p - y|; where one class is rare, its gradients are the long ones
    by direction   gradients of one class point the same way: each record is compared with a few whose labels are known
    by class       the same for K classes: each record is given the class of the known gradient that lies nearest

An attack finds what the model predicts as well as what the label adds to it: a gradient is a function of both. So a result is
always given beside its controls, in one value (`LabelLeak`):

    flipped   the attack on records whose label was replaced by another one (label DP), scored against their true label.
              What it still finds there is not read from the label.
    model     the model's own score on the same records: what anybody may know who may know the prediction.
    held out  the same on people whose labels took no part in training: a prediction that is free of their labels.

Releases : nothing by itself. The areas are statistics of true labels, and have no finite epsilon.
Unit     : record.
Source   : Li et al., "Label leakage and protection in two-party split learning", ICLR 2022 (arXiv 2102.08504), sections 3.1
           and 3.2 (norm, cosine). Differs: known records are left out of the score, which they would find at once; gradients
           are multiplied by the size of their batch, which the feature holder knows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import SettingsInvalid

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]
How = Literal["norm", "direction", "class"]

LEAST_CONTROL = 10
"""Records of each class that a control needs; with fewer its area says nothing."""


class Area(NamedTuple):
    """Area under a ROC curve, and of how many records.

    Attributes
    ----------
    value : float
        Chance that a score of a positive record is above that of a negative one, ties counting half; NaN where a class lacks.
    positives, negatives : int
    """

    value: float
    positives: int
    negatives: int

    @property
    def deviation(self) -> float:
        """Standard error of the area (Hanley and McNeil 1982, with their exponential approximation)."""
        a, m, n = self.value, self.positives, self.negatives
        if not (m and n):
            return math.nan
        of_two, of_one = a / (2 - a), 2 * a * a / (1 + a)
        return math.sqrt(max(0.0, a * (1 - a) + (m - 1) * (of_two - a * a) + (n - 1) * (of_one - a * a)) / (m * n))

    @property
    def known(self) -> bool:
        """Whether there are enough records of both classes to read it."""
        return min(self.positives, self.negatives) >= LEAST_CONTROL


def area(score: Any, positive: Any) -> Area:
    """Area under the ROC curve of a score, exactly, ties counting half (Mann and Whitney 1947).

    Parameters
    ----------
    score : array of shape (n,)
    positive : array of shape (n,)
        Whether each record is positive: bool, or 0 and 1.
    """
    given, yes = np.asarray(score, np.float64), np.asarray(positive) == 1
    if given.shape != yes.shape or given.ndim != 1:
        raise SettingsInvalid(
            f"scores of shape {given.shape} and labels of shape {yes.shape}.", remedy="Give one score and one label each."
        )
    ordered = np.sort(given)
    rank = (np.searchsorted(ordered, given) + np.searchsorted(ordered, given, side="right") - 1) / 2
    m, n = int(yes.sum()), int((~yes).sum())
    found = float((rank[yes].sum() - m * (m - 1) / 2) / (m * n)) if m and n else math.nan
    return Area(found, m, n)


def by_norm(gradients: Any, batch: Any) -> Values:
    """Score each record by the length of its gradient.

    Parameters
    ----------
    gradients : array of shape (n, cut)
        dL/dz of each record, of a loss that is the mean over its batch.
    batch : integer array of shape (n,)
        Which batch each record was in: gradients of a batch are multiplied by its size.

    Returns
    -------
    array of shape (n,)
    """
    _, which, sizes = np.unique(batch, return_inverse=True, return_counts=True)
    length: Values = np.linalg.norm(np.asarray(gradients, np.float64), axis=1) * sizes[which]
    return length


def by_direction(gradients: Any, batch: Any, known: Any) -> Values:
    """Score each record by the cosine between its gradient and the known positive ones of its batch.

    Parameters
    ----------
    gradients : array of shape (n, cut)
    batch : integer array of shape (n,)
    known : bool array of shape (n,)
        Records that the attacker knows to be positive.

    Returns
    -------
    array of shape (n,)
        In [-1, 1]; 0 for records of batches of which the attacker knows nobody, and for gradients that are zero.
    """
    unit = _directions(gradients)
    _, which = np.unique(batch, return_inverse=True)
    told = np.zeros((int(which.max(initial=-1)) + 1, unit.shape[1]))
    mask = np.asarray(known, bool)
    np.add.at(told, which[mask], unit[mask])
    cosine: Values = np.einsum("nc,nc->n", unit, _directions(told)[which])
    return cosine


def by_class(gradients: Any, batch: Any, labels: Any, known: Any, classes: int) -> NDArray[np.int64]:
    """Give each record the class whose known gradients, in its batch, point most nearly the same way.

    Parameters
    ----------
    gradients : array of shape (n, cut)
    batch, labels : integer arrays of shape (n,)
        Of the labels only those of known records are read.
    known : bool array of shape (n,)
    classes : int

    Returns
    -------
    integer array of shape (n,)
        Classes from 0; -1 in batches of which the attacker knows nobody.
    """
    unit = _directions(gradients)
    _, which = np.unique(batch, return_inverse=True)
    mask, said = np.asarray(known, bool), np.asarray(labels, np.int64)
    told = np.zeros((int(which.max(initial=-1)) + 1, classes, unit.shape[1]))
    np.add.at(told, (which[mask], said[mask]), unit[mask])
    lengths = np.linalg.norm(told, axis=2)
    near = np.einsum("nc,nkc->nk", unit, (told / np.maximum(lengths, 1e-300)[..., None])[which])
    near[lengths[which] == 0] = -np.inf
    found: NDArray[np.int64] = np.where(np.isfinite(near.max(axis=1)), near.argmax(axis=1), -1)
    return found


def first_of_each(labels: Any, batch: Any, classes: Any = (1,)) -> Mask:
    """The first record of each of these classes in each batch, as a mask of shape (n,): what a curious party may know."""
    said, mask = np.asarray(labels), np.zeros(len(labels), bool)
    for one in classes:
        places = np.flatnonzero(said == one)
        mask[places[np.unique(np.asarray(batch)[places], return_index=True)[1]]] = True
    return mask


@dataclass(frozen=True)
class LabelLeak:
    """What one attack finds out about labels in one epoch, beside what it would find anyway. Never the attack alone.

    Attributes
    ----------
    how : {"norm", "direction", "class"}
    epoch : int
        Counted from 1; 0 where the gradients of all observed epochs were added up for each record.
    attack : float
        Area under the ROC curve against the true label; for `class`, the share of labels that are found.
    model : float
        The same of the model's own score on the same records.
    flipped : float
        The same of the attack among records whose label was replaced, against their true label; NaN without such records.
    said : float
        The same of the attack against the label that was used; equal to `attack` without label DP.
    records, positives : int
        Of the attack; positives of `class` are 0.
    deviation, flipped_deviation : float
        Standard errors of `attack` and `flipped`.
    """

    how: How
    epoch: int
    attack: float
    model: float
    flipped: float
    said: float
    records: int
    positives: int
    deviation: float
    flipped_deviation: float

    @property
    def metric(self) -> str:
        return "share of labels found" if self.how == "class" else "AUC"

    @property
    def beyond(self) -> float:
        """By how much the attack is better than the model's own score; negative where the prediction tells more."""
        return self.attack - self.model

    def __str__(self) -> str:
        control = "no label was replaced" if math.isnan(self.flipped) else f"on replaced labels {self.flipped:.3f}"
        return f"{self.how}: {self.metric} {self.attack:.3f} (the model's own score {self.model:.3f}; {control})"


def label_leak(
    how: How,
    gradients: Any,
    batch: Any,
    labels: Any,
    score: Any,
    *,
    said: Any = None,
    known: Any = None,
    classes: int = 2,
    epoch: int = 1,
) -> LabelLeak:
    """Carry one attack out on the gradients of one epoch, with its controls.

    Parameters
    ----------
    how : {"norm", "direction", "class"}
    gradients : array of shape (n, cut)
    batch : integer array of shape (n,)
    labels : array of shape (n,)
        True labels: 0 or 1, or for `class` 0 to classes - 1.
    score : array of shape (n,) or (n, classes)
        The model's own score of each record: of being positive, or of each class.
    said : array of shape (n,), optional
        Labels that training used, where they are not the true ones.
    known : bool array of shape (n,), optional
        Records whose labels the attacker knows; by default the first positive of each batch, or the first of each class.
        They are left out of every number.

    Raises
    ------
    SettingsInvalid (HR-511)
        Arrays are not equally long, or the attack has another name.
    """
    y = np.asarray(labels).astype(np.int64)
    used = y if said is None else np.asarray(said).astype(np.int64)
    own = np.asarray(score, np.float64)
    lengths = {len(np.asarray(gradients)), len(np.asarray(batch)), len(y), len(used), len(own)}
    if how not in ("norm", "direction", "class") or len(lengths) != 1:
        raise SettingsInvalid(
            f"an attack {how!r} on arrays of {sorted(lengths)} records.",
            remedy="Attacks are 'norm', 'direction' and 'class'; every array has one row for each record.",
        )
    if known is None:
        known = np.zeros(len(y), bool) if how == "norm" else first_of_each(y, batch, range(classes) if how == "class" else (1,))
    mask = np.asarray(known, bool)
    rest, lied = ~mask, ~mask & (used != y)
    found: Area | _Share
    control: Area | _Share
    other: Area | _Share
    of_used: Area | _Share
    if how == "class":
        guess, best = by_class(gradients, batch, y, mask, classes), own.argmax(axis=1)
        found, control = _share(guess, y, rest), _share(guess, y, lied)
        other, of_used = _share(best, y, rest), _share(guess, used, rest)
    else:
        finds = by_norm(gradients, batch) if how == "norm" else by_direction(gradients, batch, mask)
        found, control = area(finds[rest], y[rest]), area(finds[lied], y[lied])
        other, of_used = area(own[rest], y[rest]), area(finds[rest], used[rest])
    flipped = control.value if control.known else math.nan
    return LabelLeak(
        how,
        epoch,
        found.value,
        other.value,
        flipped,
        of_used.value,
        int(rest.sum()),
        found.positives if isinstance(found, Area) else 0,
        found.deviation,
        control.deviation if control.known else math.nan,
    )


class _Share(NamedTuple):
    value: float
    records: int

    @property
    def deviation(self) -> float:
        return math.sqrt(self.value * (1 - self.value) / self.records) if self.records else math.nan

    @property
    def known(self) -> bool:
        return self.records >= LEAST_CONTROL


def _share(guess: Any, labels: Any, which: Mask) -> _Share:
    n = int(which.sum())
    return _Share(float((guess[which] == labels[which]).mean()) if n else math.nan, n)


def _directions(rows: Any) -> Values:
    """Rows of length one; zero rows stay zero."""
    given = np.asarray(rows, np.float64)
    length = np.linalg.norm(given, axis=-1, keepdims=True)
    unit: Values = np.divide(given, length, out=np.zeros_like(given), where=length > 0)
    return unit
