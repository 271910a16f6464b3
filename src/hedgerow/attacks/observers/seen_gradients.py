"""Slopes of a loss that an observer reads off a view: of one party's row, or of the total of many.

    FedSGD      `gradient`: the sum over records of the loss's gradient
    FedAvg      `update`: w_k - w after several local steps, minus the learning rate times the sum of the steps' mean gradients;
                times the party's records, where parties count by these

Directions and ratios of a slope do not change with its factor, so most attacks need neither learning rate nor number of steps.
Counts of labels do (`SeenGradient.per_step`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import nn

from hedgerow.core.arrays import Array
from hedgerow.core.view import Observation
from hedgerow.data import Schema
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.models import Model, model_for
from hedgerow.learn.reading import Reading
from hedgerow.learn.scale import Scale
from hedgerow.learn.tensors import blank

KEYS = ("gradient", "update")
"""What programs call a slope, and a change of weights against it."""


@dataclass(frozen=True, eq=False)
class SeenGradient:
    """A slope of the loss, up to a positive factor.

    Attributes
    ----------
    flat : array of shape (d,)
        In the order of the model's parameters; it points to where the loss grows.
    records : float or None
        Records behind it, where the view tells.
    parties : int or None
        Parties whose rows are in it, where the view tells.
    source : str
        The party whose row it is, or "total".
    key : {"gradient", "update"}
    """

    flat: Array
    records: float | None = None
    parties: int | None = None
    source: str = "total"
    key: str = "gradient"

    def per_step(self, learning_rate: float | None, steps: int = 1) -> SeenGradient:
        """The sum of records' gradients at one step, as nearly as an update tells: over the learning rate and the steps.

        An update is a sum over steps of means over batches; times the records it is what all of them together would add in one
        step, if weights moved little in between. A gradient stays as it is.

        Raises
        ------
        SettingsInvalid (HR-511)
            No learning rate, no count of records, or one that is not above zero.
        """
        if self.key == "gradient":
            return self
        if learning_rate is None or not learning_rate > 0 or steps < 1 or not self.records:
            raise SettingsInvalid(
                f"learning_rate is {learning_rate}, steps {steps}, records {self.records}, and an update is their product.",
                remedy="Give learning_rate=, steps= and records= of the local training, which are public.",
            )
        return replace(self, flat=self.flat * (self.records / (learning_rate * steps)), key="gradient")


def public_model(module: nn.Module, schema: Schema, features: Sequence[str] | None = None, scale: Scale = "ranges") -> Model:
    """The model as everybody knows it: module, target, and how features reach it.

    Raises
    ------
    ModelInvalid (HR-510)
    """
    reading = Reading.of(schema, features, scale)
    made_up = blank(schema, features, reading)
    model = model_for(module, schema, made_up["model_input"], low=reading.low, scale=reading.by)
    return replace(model, reading=reading)


def seen_gradient(
    view: Sequence[Observation] | Observation,
    model: Model,
    *,
    party: str | None = None,
    number: int | None = None,
    records: float | None = None,
) -> SeenGradient:
    """The last slope in a view: of a party's row, or of a total.

    Parameters
    ----------
    view : list of Observation, or one of them
    party : str, optional
        Whose row; by default the total that was released.
    number : int, optional
        Of the question; the last one by default.
    records : float, optional
        Records behind it, where the observer knows them otherwise.

    Raises
    ------
    SettingsInvalid (HR-511)
        The view holds no such slope: rows that are masked are none.
    """
    seen = [view] if isinstance(view, Observation) else list(view)
    found = [one for one in seen if _is_slope(one, model, party) and number in (None, one.round)]
    if not found:
        whose = "a total" if party is None else repr(party)
        masked = party is not None and any(one.kind == "masked row" and one.source == party for one in seen)
        what = f"{party!r} sent a masked row, which is uniform" if masked else f"there is no slope of {whose}"
        raise SettingsInvalid(
            f"of {len(seen)} things seen {what}, of {len(model.initial)} parameters.",
            remedy="Record from the start, simulate(..., record_views=True), and give the view of who received gradients.",
        )
    last = found[-1]
    rows = {one.source for one in seen if one.round == last.round and one.kind in ("row", "masked row")}
    return _read(last, model, records, 1 if last.kind == "row" else len(rows) or None)


def _is_slope(one: Observation, model: Model, party: str | None) -> bool:
    if one.kind != ("release" if party is None else "row") or (party is not None and one.source != party):
        return False
    size = len(model.initial)
    if one.layout is None:
        return isinstance(one.values, np.ndarray) and one.values.shape == (size,)
    shapes = dict(one.layout.shapes)
    return any(shapes.get(key) == (size,) for key in (*KEYS, ""))


def _read(one: Observation, model: Model, records: float | None, parties: int | None) -> SeenGradient:
    values: Any = one.values if one.layout is None else one.layout.unflatten(np.asarray(one.values))
    parts: Mapping[str, Array] = values if isinstance(values, Mapping) else {"gradient": np.asarray(values)}
    key = next(key for key in KEYS if key in parts)
    flat = np.asarray(parts[key], np.float64)
    told = float(parts["n"]) if "n" in parts else None
    if key == "update":  # against the slope, and weighed by the records where their number came along
        flat = -flat / told if told else -flat
    source = one.source if one.kind == "row" else "total"
    return SeenGradient(flat, told if records is None else float(records), parties, source, key)
