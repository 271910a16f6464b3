"""Labels read off the slope of the last bias, which is sum_r (p_r - y_r): probabilities less indicators of labels.

    one record     the only class with a negative slope
    a batch        n_c = B mean p_c - (dL/db)_c, rounded to whole numbers that add up to B

B records are in the sum. Mean probabilities are those of made-up records in the declared ranges under the weights that were
sent: right while predictions hardly depend on the record, as in the first rounds, and worse later.

Source : one record, Zhao, Mopuri and Bilen 2020 (iDLG, arXiv 2001.02610), section 3; batches, Wainakh et al. 2022 (PoPETs,
         LLG), whose impact and offset are here the exact slope of the bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from hedgerow.core.arrays import Array
from hedgerow.data import Schema
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.models import Model
from hedgerow.learn.tensors import made_of

from .first_layer import slopes_of
from .seen_gradients import SeenGradient

MADE_UP = 256
"""Records that tell mean probabilities."""


@displayed
@dataclass(frozen=True, eq=False)
class InferredLabels:
    """How many records of each class are behind a slope.

    Attributes
    ----------
    counts : int array of shape (classes,)
    records : int
    parties : int or None
        In the sum, where the view tells.
    exact : bool
        Whether there was one record, whose label the signs tell.
    """

    counts: Array
    records: int
    parties: int | None
    exact: bool

    @property
    def classes(self) -> Array:
        """The class of each record, in rising order, (records,)."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def right(self, labels: Sequence[int] | Array) -> float:
        """Share of the records whose label is among those found, counted with multiplicity."""
        true = np.bincount(np.asarray(labels, np.int64), minlength=len(self.counts))
        return float(np.minimum(true, self.counts).sum() / max(true.sum(), 1))


def labels_of(gradient: SeenGradient, model: Model, schema: Schema, flat: Array, records: int | None = None) -> InferredLabels:
    """Counts of labels behind the sum of records' gradients.

    Parameters
    ----------
    gradient : SeenGradient
        Of updates that of `per_step`.
    flat : array of shape (d,)
        Weights at which it was taken.
    records : int, optional
        By default as the view told.

    Raises
    ------
    SettingsInvalid (HR-511)
        The target has no classes, the last layer no bias, or the number of records is not known.
    """
    if model.kind not in ("category", "binary"):
        raise SettingsInvalid(f"the target is of kind {model.kind!r}.", remedy="Labels are classes: category or binary.")
    known = records if records is not None else gradient.records
    if known is None or round(known) < 1:
        raise SettingsInvalid(f"records is {known}.", remedy="Say how many records are in the sum: records=8.")
    n, slope = round(known), slopes_of(model, gradient.flat, last=True).bias
    if model.kind == "binary":
        slope = np.array([-slope[0], slope[0]])
    if n == 1:
        counts = np.zeros(len(slope), np.int64)
        counts[int(np.argmin(slope))] = 1
        return InferredLabels(counts, 1, gradient.parties, True)
    expected = n * mean_probabilities(model, schema, flat) - slope
    return InferredLabels(whole_counts(expected, n), n, gradient.parties, False)


def mean_probabilities(model: Model, schema: Schema, flat: Array) -> Array:
    """Mean predicted probability of each class, (classes,), over made-up records in the declared ranges."""
    assert model.reading is not None
    columns = schema.synthetic(MADE_UP, np.random.default_rng(0))
    x = torch.from_numpy(np.array(made_of(columns, schema, model.reading.features, model.reading)["model_input"]))
    with torch.no_grad():
        output = model.outputs(torch.from_numpy(np.asarray(flat, np.float32)), x)
        if model.kind == "binary":
            one = float(torch.sigmoid(output).mean())
            return np.array([1 - one, one])
        return np.asarray(torch.softmax(output, -1).mean(0).double().numpy())


def whole_counts(expected: Array, n: int) -> Array:
    """Whole numbers of at least zero that add up to n, nearest to what is expected: by largest remainders."""
    positive = np.maximum(np.asarray(expected, float), 0.0)
    scaled = positive * n / positive.sum() if positive.sum() > 0 else np.full(len(positive), n / len(positive))
    counts = np.floor(scaled + 1e-9).astype(np.int64)
    left = n - int(counts.sum())
    counts[np.argsort(counts - scaled, kind="stable")[:left]] += 1
    return counts
