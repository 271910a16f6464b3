"""Pruning at a party: which weights or filters of a model are the smallest, and whether to do without them.

A mask is a boolean vector of shape (d,), for stacked parties (n_parties, d), as is the vector of weights that it belongs to.
Source: magnitude pruning, Han et al., NeurIPS 2015; filters, Li et al., ICLR 2017; when to prune, Vahidian et al. 2021.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from torch import nn

from hedgerow.core.party import Party

from .local import score
from .models import Model

Layers = list[np.ndarray]
"""For each layer the positions in the flat vector that are pruned together, one row for each choice."""


@dataclass(frozen=True)
class Pruning:
    """When a party prunes, and how much; see `subfedavg`."""

    share: float = 0.5
    step: float = 0.1
    least_accuracy: float = 0.5
    least_change: float = 1e-4
    per_layer: bool = True
    filters: float | None = None
    held_out: str | None = None

    @property
    def stackable(self) -> bool:
        """Held-out records weigh nothing, as padding does, so parties that have some are asked one by one."""
        return self.held_out is None

    def kinds(self, model: Model) -> list[tuple[Layers, float]]:
        """What is pruned, and up to which share: weights, then filters where they are pruned whole."""
        starts = dict(zip(model.names, np.cumsum([0, *(shape.numel() for shape in model.shapes)]), strict=False))
        shapes = dict(zip(model.names, model.shapes, strict=True))
        at = {name: start + np.arange(shapes[name].numel()) for name, start in starts.items() if name in shapes}
        filters: dict[str, np.ndarray] = {}
        for prefix, part in model.module.named_modules() if self.filters is not None else ():
            weight, bias = (f"{prefix}.{name}".lstrip(".") for name in ("weight", "bias"))
            if isinstance(part, nn.modules.conv._ConvNd) and not part.transposed and weight in at:
                rows = at[weight].reshape(len(part.weight), -1)
                filters[weight] = np.column_stack([rows, at[bias]]) if bias in at else rows
        single = [at[name][:, None] for name, shape in shapes.items() if len(shape) > 1 and name not in filters]
        single = single if self.per_layer or not single else [np.concatenate(single)]
        return [(single, self.share), (list(filters.values()), self.filters or 0.0)]

    def cut(self, w: np.ndarray, kept: np.ndarray, layers: Layers, share: float) -> np.ndarray:
        """A step further: the mask without the smallest of what each layer keeps. Shape (d,), stacked (n_parties, d)."""
        kept = kept.copy()
        for rows in layers:
            alive = kept[..., rows[:, 0]]
            size = np.where(alive, np.abs(w[..., rows]).sum(-1), np.inf)
            left, least = alive.sum(-1), max(1, math.ceil((1 - share) * len(rows) - 1e-9))
            n_cut = np.clip(np.ceil(self.step * left), 0, np.maximum(left - least, 0))
            if not n_cut.any():
                continue
            cut = np.zeros_like(alive)
            np.put_along_axis(cut, size.argsort(-1, kind="stable"), np.arange(len(rows)) < n_cut[..., None], -1)
            kept[..., rows] &= ~cut[..., None]
        return kept

    def renewed(
        self, kept: np.ndarray, y: np.ndarray, early: Callable[[], np.ndarray], party: Party, model: Model
    ) -> np.ndarray:
        """The mask after a round that ended at `y`; `early()` says where its first epoch ended."""
        before: np.ndarray | None = None
        for layers, share in self.kinds(model):
            new = self.cut(y, kept, layers, share)
            if (new == kept).all():
                continue
            wanted = accuracy(y * new, party, model, self.held_out) >= self.least_accuracy
            if self.least_change > 0:
                before = early() if before is None else before
                other = self.cut(before, kept, layers, share)
                differ = [(new[..., rows[:, 0]] != other[..., rows[:, 0]]).mean(-1) for rows in layers]
                wanted = wanted & (np.mean(differ, axis=0) >= self.least_change)
            kept = np.where(wanted[..., None], new, kept)
        return kept


def accuracy(w: np.ndarray, party: Party, model: Model, held_out: str | None) -> np.ndarray:
    """Share of records that weights of shape (d,) classify rightly, held-out ones if there are some; stacked (n_parties,)."""
    if party.w.ndim == 2:
        own = [Party("", {name: party[name][k] for name in ("model_input", "model_target")}, party.w[k]) for k in range(len(w))]
        return np.array([accuracy(one, at, model, held_out) for one, at in zip(w, own, strict=True)])
    counts = party.w if held_out is None else np.asarray(party[held_out] == 1, float)
    sums = score(w, replace(party, w=counts), None, model=model, with_loss=False)
    hits = sums["hits"] if model.task is None else sums.get("accuracy", 1.0)  # of another metric nothing is asked
    return np.asarray(float(hits) / max(float(sums["n"]), 1e-12))
