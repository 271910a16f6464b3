"""The sum of clipped gradients of single records: what private training asks of a party.

    sum_i  w_i g_i min(1, S / |w_i g_i|)        g_i the gradient of record i, S the clip

A gradient that is not finite counts as zero, before lengths are taken; no records add up to zeros.

Releases : that sum, of shape (d,), through a channel; nothing is divided by how many records there were.
Unit     : record. A record more or less moves the exact sum by at most S (joint), or the root of the layers' S_l squared,
           to the last bit. Sums by torch, without a mechanism, make no such promise.
Source   : Abadi et al., CCS 2016, Algorithm 1 and section 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hedgerow.core.bound import Bounds
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import BITS, bound_in

from ..descent.work import tensors
from ..models import Model
from .clipping import Clipping
from .exact.sums import Exact, exact_for, exact_sum
from .recipe import Recipe, recipe_for
from .rewrite import separate


def clipped_sum(
    model: Model,
    flat: Tensor,
    x: Tensor,
    target: Tensor,
    w: Tensor,
    clip: float | Sequence[float] | Clipping,
    *,
    exact: bool = True,
) -> tuple[Tensor, Tensor]:
    """Sum of the records' gradients, each clipped.

    Parameters
    ----------
    flat : shape (d,)
        The trained parameters.
    x, target, w : shape (n, ...), (n,), (n,)
        Records as the model reads them, and their weights; n may be zero.
    clip : float or sequence of float
        Largest length of a record's gradient, or one for each trained layer.
    exact : bool
        Whether a record moves the sum by at most the clip, to the last bit: each gradient is then a function of the weights
        and of its record, in whole steps, and added without rounding. Otherwise torch finds them together, which no mechanism
        may rely on.

    Returns
    -------
    total : shape (d,), float64
        Over the trained parameters; a whole multiple of `Clipping.step` where it is exact.
    lengths : shape (n, layers)
        Of each record's gradient in each layer before it was clipped; not private.
    """
    clipping = clip if isinstance(clip, Clipping) else Clipping.of(clip)
    if not exact:
        return _by_torch(model, flat, x, target, w, clipping)
    way = exact_of(model, tuple(x.shape[1:]))
    way.trained.check(clipping)
    total, lengths = exact_sum(way, flat, x, target, w, clipping)
    return torch.from_numpy(total), torch.from_numpy(lengths)


def exact_of(model: Model, shape: tuple[int, ...]) -> Exact:
    """How the model's exact sums are found for records of a shape, found out once."""
    key = "exact gradients of records", shape
    if key not in model.programs:
        separate(model.module)
        model.programs[key] = exact_for(model, shape)
    way: Exact = model.programs[key]
    return way


# ---- by torch, without a mechanism ------------------------------------------------------------------------------------------
def _by_torch(model: Model, flat: Tensor, x: Tensor, target: Tensor, w: Tensor, clipping: Clipping) -> tuple[Tensor, Tensor]:
    recipe = recipe_of(model, x, target)
    recipe.trained.check(clipping)
    w = torch.nan_to_num(w, nan=0.0, posinf=0.0).clamp(min=0.0)
    total = torch.zeros(recipe.trained.size, dtype=torch.float64)
    squares, start = [torch.zeros(0, recipe.trained.n_layers)], 0
    while start < len(x):
        part = slice(start, start + recipe.at_once(x))
        squares.append(_add(total, recipe, flat, x[part], target[part], w[part], clipping))
        start += len(squares[-1])
    return total, torch.cat(squares).sqrt()


def _add(total: Tensor, recipe: Recipe, flat: Tensor, x: Tensor, target: Tensor, w: Tensor, clipping: Clipping) -> Tensor:
    """Add the clipped gradients of records that fit in one pass; return their squared lengths."""
    found = recipe.find(flat, x, target)
    finite = torch.isfinite(found.squares).all(1)
    if finite.all():
        found.add(total, clipping.factors(found.squares, w))
    elif finite.any():
        _add(total, recipe, flat, x[finite], target[finite], w[finite], clipping)
    return torch.where(finite[:, None], found.squares, torch.zeros(()))


def recipe_of(model: Model, x: Tensor, target: Tensor) -> Recipe:
    """The model's recipe, found once; records that are at hand are only used where none was found before."""
    key = "gradients of records"
    if key not in model.programs:
        separate(model.module)
        if not len(x):
            x, target = torch.zeros((2, *x.shape[1:]), dtype=x.dtype), torch.zeros(2, dtype=target.dtype)
        model.programs[key] = recipe_for(model, x[:3], target[:3])
    recipe: Recipe = model.programs[key]
    return recipe


@local(additive=True, holds=BITS, norms=(2, math.inf))
def clipped_gradients(
    broadcast: np.ndarray,
    party: Party,
    rng: Any,
    *,
    model: Model,
    clipping: Clipping,
    exact: bool = True,
    bounds: Bounds | None = None,
) -> Mapping[str, np.ndarray]:
    """Sum of the records' clipped gradients over the trained parameters, shape (d,).

    Behind a mechanism it is exact and keeps the bounds that noise was scaled by, whatever the other settings say.
    """
    x, target, w = tensors(party)
    if not (there := w != 0).all():  # a record of weight zero adds nothing, and is not worth a gradient
        x, target, w = x[there], target[there], w[there]
    if bounds is not None:
        clipping, exact = clipping.within(bound_in(bounds, "gradient")), True
    total, _ = clipped_sum(model, torch.from_numpy(broadcast), x, target, w, clipping, exact=exact)
    return {"gradient": total.numpy()}
