"""Gradient inversion: records from the slope that a server, or whoever else sees it, was given. A function of a view.

    by = "one"       the input of a single record, from a linear first layer with a bias; exact without noise
    by = "rows"      weighted means of a batch's inputs, one for each unit of that layer
    by = "classes"   means of the inputs of each class, from a regression in a round in which predictions hardly differ
    by = "cosine"    a search for inputs with the same slope, through any network

What is inverted is a sum over `records` of `parties`: both are told beside the pictures, since it is their number, or noise,
that hides a record, and never the way in which the sum was formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from torch import nn

from hedgerow.core.arrays import Array
from hedgerow.core.view import Observation
from hedgerow.data import Schema
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.models import Model
from hedgerow.learn.scale import Scale
from hedgerow.learn.tensors import blank

from .cosine_search import CosineSearch
from .first_layer import layers, means_by_class, one_input, rows_of_inputs, slopes_of
from .inferred_labels import InferredLabels, labels_of
from .recognised import RECOGNISED, matched
from .seen_gradients import SeenGradient, public_model, seen_gradient

Way = Literal["one", "rows", "classes", "cosine"]


@displayed
@dataclass(frozen=True, eq=False)
class Inverted:
    """Pictures of records, made of a slope that was seen.

    Attributes
    ----------
    images : array of shape (m, ...)
        As the module reads inputs: brought to their declared ranges.
    labels : int array of shape (m,), or None
        Of each picture, known or inferred.
    behind : int array of shape (m,)
        Of how many records each is a mean, as the attack believes; 1 is a record.
    records, parties : float or int, or None
        In the sum that was inverted, where the view tells.
    by : str
    misfit : float
        Of a search: one minus the cosine of the slopes; NaN otherwise.
    largest : float
        Range of an input, for decibels.
    """

    images: Array
    labels: Array | None
    behind: Array
    records: float | None
    parties: int | None
    by: str
    misfit: float = float("nan")
    largest: float = field(default=1.0, repr=False)

    def psnr_against(self, truth: Array) -> Array:
        """Decibels of each picture, (m,), matched to the records (n, ...) one to one; NaN where it is left over.

        Of pictures of a mean the record that it resembles most counts. From 20 dB on a person recognises a digit.
        """
        return matched(self.images, truth, largest=self.largest)[1]

    def matched(self, truth: Array) -> Array:
        """The record of each picture, (m,); -1 where it is left over."""
        return matched(self.images, truth, largest=self.largest)[0]

    def recognised(self, truth: Array) -> int:
        """How many records a person would recognise."""
        return int((self.psnr_against(truth) >= RECOGNISED).sum())


def invert(
    view: Sequence[Observation] | Observation,
    module: nn.Module,
    schema: Schema,
    *,
    by: Way | None = None,
    party: str | None = None,
    number: int | None = None,
    records: int | None = None,
    labels: Sequence[int] | Array | None = None,
    weights: Any = None,
    learning_rate: float | None = None,
    local_steps: int = 1,
    features: Sequence[str] | None = None,
    scale: Scale = "ranges",
    box: tuple[float, float] = (0.0, 1.0),
    search: CosineSearch | None = None,
) -> Inverted:
    """Make pictures of the records behind a slope.

    Parameters
    ----------
    view : list of Observation, or one
        As `hedgerow.engines.view(federation, "server")` gives it.
    module : torch.nn.Module
        What was trained, with the weights that were sent, or `weights`.
    schema : Schema
        Columns as they are declared.
    by : {"one", "rows", "classes", "cosine"}, optional
        By default "one" of one record and "rows" of several; "cosine" where the first layer is not linear with a bias.
    party, number : optional
        Whose row and which question; the last total by default.
    records : int, optional
        In the sum, where the view does not tell.
    labels : sequence of int, optional
        Of the records to search for; inferred by default.
    weights : state or mapping, optional
        At which the slope was taken.
    learning_rate, local_steps : float, int
        Of the local training, where an update is to tell labels or is read by class.
    features, scale : as `hedgerow.learn.fedavg`
    box : (float, float)
        Least and largest number of an input.
    search : CosineSearch, optional

    Raises
    ------
    SettingsInvalid (HR-511)
        The view holds no slope, or the way needs another model, or labels.
    """
    model = public_model(module, schema, features, scale)
    seen = seen_gradient(view, model, party=party, number=number, records=records)
    flat = model.initial if weights is None else model.flat(weights)
    shape = tuple(blank(schema, features, model.reading)["model_input"].shape[1:])  # type: ignore[arg-type]
    way = by or _usual(model, seen.records)
    found = {"one": _one, "rows": _rows, "classes": _classes, "cosine": _cosine}
    if way not in found:
        raise SettingsInvalid(f"by is {by!r}.", remedy=f"One of {', '.join(found)}.")

    def summed() -> SeenGradient:
        return seen.per_step(learning_rate, local_steps)

    def guessed() -> InferredLabels:
        return labels_of(summed(), model, schema, flat, records)

    given = None if labels is None else np.asarray(labels)
    images, of, behind, misfit = found[way](
        seen=seen,
        summed=summed,
        model=model,
        flat=flat,
        shape=shape,
        box=box,
        labels=given,
        guessed=guessed,
        search=search or CosineSearch(),
    )
    images = np.clip(images.reshape(len(images), *shape), *box)
    return Inverted(images, of, behind, seen.records, seen.parties, way, misfit, box[1] - box[0])


def infer_labels(
    view: Sequence[Observation] | Observation,
    module: nn.Module,
    schema: Schema,
    *,
    party: str | None = None,
    number: int | None = None,
    records: int | None = None,
    weights: Any = None,
    learning_rate: float | None = None,
    local_steps: int = 1,
    features: Sequence[str] | None = None,
    scale: Scale = "ranges",
) -> InferredLabels:
    """How many records of each class are behind a slope, by that of the last bias; parameters as `invert`.

    Raises
    ------
    SettingsInvalid (HR-511)
        The target has no classes, the last layer no bias, or of an update the learning rate is not given.
    """
    model = public_model(module, schema, features, scale)
    seen = seen_gradient(view, model, party=party, number=number, records=records)
    flat = model.initial if weights is None else model.flat(weights)
    return labels_of(seen.per_step(learning_rate, local_steps), model, schema, flat, records)


def _usual(model: Model, records: float | None) -> Way:
    _, first = layers(model.module)[0]
    if not isinstance(first, nn.Linear) or first.bias is None:
        return "cosine"
    return "one" if records is not None and round(records) == 1 else "rows"


Made = tuple[Array, "Array | None", Array, float]


def _one(*, seen: SeenGradient, model: Model, **_: Any) -> Made:
    return one_input(slopes_of(model, seen.flat))[None], None, np.ones(1, np.int64), float("nan")


def _rows(*, seen: SeenGradient, model: Model, **_: Any) -> Made:
    found = rows_of_inputs(slopes_of(model, seen.flat))
    return found, None, np.full(len(found), round(seen.records or 0)), float("nan")


def _classes(*, summed: Any, model: Model, labels: Array | None, guessed: Any, **_: Any) -> Made:
    if len(layers(model.module)) > 1 or model.kind != "category":
        raise SettingsInvalid(
            f"{type(model.module).__name__} has {len(layers(model.module))} layers and a {model.kind} target.",
            remedy='by="classes" reads a regression on a category; of other networks take by="cosine".',
        )
    slopes = slopes_of(model, summed().flat)
    counts = guessed().counts if labels is None else np.bincount(labels, minlength=len(slopes.bias))
    found, classes = means_by_class(slopes, counts)
    return found, classes, counts[classes], float("nan")


def _cosine(
    *,
    seen: SeenGradient,
    model: Model,
    flat: Array,
    shape: tuple[int, ...],
    box: tuple[float, float],
    labels: Array | None,
    guessed: Any,
    search: CosineSearch,
    **_: Any,
) -> Made:
    of = guessed().classes if labels is None else labels
    found, misfit = search.inputs(seen.flat, model, flat, of, shape, box)
    return found, of, np.ones(len(found), np.int64), misfit
