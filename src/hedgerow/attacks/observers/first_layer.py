"""Inputs read off the slope of a first layer z = W x + b, without a search.

    one record      dL/dW = q x^T, dL/db = q            x = (dL/dW)_c / (dL/db)_c of each unit c; least squares over units
    a batch         (dL/dW)_c / (dL/db)_c               a weighted mean of the inputs: of those that unit c tells most of
    by class        (dL/dW)_c = sum_r p_rc x_r - sum_{r of class c} x_r, in a regression whose layer is the output
                    classes without a record give       S = sum_r x_r = sum_absent (dL/dW)_c / mean p_absent
                    and every other class               sum_{r of class c} x_r = mean p_c S - (dL/dW)_c

The last needs probabilities that are nearly the same for all records, as at initial weights, where zeros make them equal: then
each record that is alone in its class is exact, in a batch or in a secure sum of any size, as long as one class is missing.

Source : the ratio, Phong et al. 2018 (IEEE TIFS 13), section 3; mixtures of batches, Fowl et al. 2022 (ICLR), section 3. By
         class is the algebra above.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import nn

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.models import Model

TINY = 1e-12
"""Slopes below it, of the largest, are taken for none."""


@dataclass(frozen=True, eq=False)
class LayerSlopes:
    """Slopes of a linear layer.

    Attributes
    ----------
    weight : array of shape (units, inputs)
    bias : array of shape (units,)
    """

    weight: Array
    bias: Array

    @property
    def silent(self) -> Array:
        """Units whose bias has no slope, (units,)."""
        return np.asarray(np.abs(self.bias) <= TINY * max(np.abs(self.bias).max(), TINY))


def layers(module: nn.Module) -> list[tuple[str, nn.Module]]:
    """Layers of a module with parameters of their own, in the order in which it declares them."""
    return [(name, part) for name, part in module.named_modules() if list(part.parameters(recurse=False))]


def slopes_of(model: Model, flat: Array, *, last: bool = False) -> LayerSlopes:
    """The part of a slope that belongs to the first layer, or to the last.

    Raises
    ------
    SettingsInvalid (HR-511)
        That layer is not linear with a bias, or is not trained.
    """
    name, layer = layers(model.module)[-1 if last else 0]
    at = f"{name}." if name else ""
    parts = _named(model, flat)
    if not isinstance(layer, nn.Linear) or layer.bias is None or f"{at}bias" not in parts or f"{at}weight" not in parts:
        raise SettingsInvalid(
            f"the {'last' if last else 'first'} layer is {type(layer).__name__}, and not linear with a bias that is trained.",
            remedy='Search for inputs instead: by="cosine", with labels=[...].',
        )
    return LayerSlopes(parts[f"{at}weight"], parts[f"{at}bias"])


def _named(model: Model, flat: Array) -> dict[str, Array]:
    """A slope by the names of trained parameters, in double precision."""
    ends = np.cumsum([shape.numel() for shape in model.shapes])[:-1]
    pieces = np.split(np.asarray(flat, np.float64), ends)
    return {name: one.reshape(shape) for name, one, shape in zip(model.names, pieces, model.shapes, strict=True)}


def one_input(slopes: LayerSlopes) -> Array:
    """The input of a single record, shape (inputs,): least squares over all units; zeros where no unit has a slope."""
    square = float(slopes.bias @ slopes.bias)
    return np.asarray(slopes.bias @ slopes.weight / square if square > 0 else np.zeros(slopes.weight.shape[1]))


def rows_of_inputs(slopes: LayerSlopes) -> Array:
    """A weighted mean of the inputs for each unit that has a slope, (units, inputs); the most negative bias first.

    In the last layer of a softmax the most negative slope is that of a class with records.
    """
    order = np.argsort(slopes.bias, kind="stable")
    order = order[~slopes.silent[order]]
    return np.asarray(slopes.weight[order] / slopes.bias[order, None])


def means_by_class(slopes: LayerSlopes, counts: Array) -> tuple[Array, Array]:
    """The mean input of each class that has records, by the classes that have none.

    Parameters
    ----------
    slopes : LayerSlopes
        Of a regression, summed over records.
    counts : int array of shape (classes,)

    Returns
    -------
    array of shape (m, inputs)
    int array of shape (m,)
        Their classes; those with the fewest records first.

    Raises
    ------
    SettingsInvalid (HR-511)
        Every class has records, or those without have no slope.
    """
    counts = np.asarray(counts)
    absent, n = counts == 0, counts.sum()
    chance = (slopes.bias + counts) / max(n, 1)
    if counts.shape != slopes.bias.shape or not absent.any() or not chance[absent].sum() > 0:
        raise SettingsInvalid(
            f"{int(absent.sum())} of {len(counts)} classes have no record, and the sum of all inputs is read off these.",
            remedy='Take by="rows", or a smaller sum.',
        )
    whole = slopes.weight[absent].sum(0) / chance[absent].sum()
    there = np.flatnonzero(~absent)
    there = there[np.argsort(counts[there], kind="stable")]
    sums = chance[there, None] * whole - slopes.weight[there]
    return sums / counts[there, None], there
