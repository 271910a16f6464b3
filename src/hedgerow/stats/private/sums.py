"""Sums over unit rows: products of rows, scores of a loss, and records.

    gram     sum of w x x'                    (d, d), symmetric
    score    sum of w (-slope) x              (d,); of softmax  w (e_y - p) x'  (K, d), one ball for all classes
    count    sum of w

Behind noise every record is held to the bound and adds whole steps of it, so that one record more changes no bit of what the
others add. A sum of products whose bound is an l1 is asked as its upper triangle, which is half as long.

Releases : what is asked.
Unit     : record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np
from scipy.special import expit

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds, l2
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import bound_in, by_column, held, linear, step_of

from ..blocks import blocks
from ..linear.losses import LossName, loss_of
from ..linear.sums import along, products, symmetric, triangle
from ..whole import ROUNDED, WholeRows, records_at_once

NORMS = (1, 2)


@local(additive=True, stackable=True, holds=True, norms=NORMS)
def gram(broadcast: None, party: Party, rng: Any, *, upper: bool = False, bounds: Bounds | None = None) -> Array:
    """Add up products of rows with themselves: (d, d), or their upper triangle (d (d + 1) / 2,)."""
    if bounds is None:
        matrix = products(party["X"], party.w)
        return triangle(matrix) if upper else matrix
    bound, d = bound_in(bounds, ""), party["X"].shape[-1]
    found = 0.0
    for block in blocks(party, records_at_once(d)):
        rows, w = _rows(block)
        w, ball = _inside(rows, w, bound, 2, size=d * d)
        found = found + rows.products(w, ball)
    return np.asarray(found) if upper else symmetric(np.asarray(found))


@local(additive=True, stackable=True, holds=True, norms=NORMS)
def score(
    broadcast: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    loss: LossName,
    shape: float | None = None,
    bounds: Bounds | None = None,
) -> Array:
    """Add up minus slopes times rows at `coef` (d,), corners being `width` wide; shape (d,)."""
    one, beta, width = loss_of(loss, shape), broadcast["coef"], float(broadcast["width"])
    if bounds is None:
        slope = one.part("slope", party["y"], linear(party["X"], beta), width)
        return along(party["X"], -party.w * slope)
    found = 0.0
    for block in blocks(party, records_at_once(len(beta))):
        rows, w = _rows(block)
        numbers = -w * one.part("slope", block["y"], by_column(rows.columns, beta), width)
        numbers, ball = _inside(rows, numbers, bound_in(bounds, ""), 1, size=len(beta))
        found = found + rows.sums(numbers, ball)
    return np.asarray(found)


@local(additive=True, stackable=True, holds=True, norms=NORMS)
def class_score(broadcast: Mapping[str, Array], party: Party, rng: Any, *, bounds: Bounds | None = None) -> Array:
    """Add up (e_y - p) x' at `coef` (K, d), `y` being codes of classes; shape (K, d)."""
    coef = broadcast["coef"]
    if bounds is None:
        rest = _rest([linear(party["X"], beta) for beta in coef], party["y"])
        return np.stack([along(party["X"], party.w * r) for r in rest], axis=-2)
    bound, found = bound_in(bounds, ""), 0.0
    for block in blocks(party, records_at_once(coef.shape[1])):
        rows, w = _rows(block)
        rest = _rest([by_column(rows.columns, beta) for beta in coef], block["y"])
        length = reduce(np.add, (r * r for r in rest)) if bound.norm == 2 else reduce(np.add, map(np.abs, rest))
        length = np.sqrt(length) if bound.norm == 2 else length
        w, ball = _inside(rows, w, bound, 1, size=coef.size, times=length)
        found = found + np.stack([rows.sums(w * r, ball) for r in rest], axis=-2)
    return np.asarray(found)


@local(additive=True, stackable=True, holds=True)
def count(broadcast: None, party: Party, rng: Any, *, bounds: Bounds | None = None) -> Array:
    """Add up weights."""
    return np.asarray(held(party.w, bounds).sum(-1))


def _rows(party: Party) -> tuple[WholeRows, Array]:
    """Rows and weights of records; those that are not finite weigh nothing."""
    rows = WholeRows.of(party["X"])
    return rows, party.w if rows.lost is None else np.where(rows.lost, 0.0, party.w)


def _rest(eta: list[Array], y: Array) -> list[Array]:
    """e_y - p of each class, from linear predictors; each a function of one record alone, to the last bit."""
    top = reduce(np.maximum, eta)
    lifted = [_exp(at - top) for at in eta]
    total = reduce(np.add, lifted)
    return [(y == k) - one / total for k, one in enumerate(lifted)]


def _exp(below: Array) -> Array:
    """The exponential of numbers up to zero, computed for one number after the other."""
    found: Array = expit(below) / expit(-below)
    return found


def _inside(
    rows: WholeRows, numbers: Array, bound: Bound, power: int, size: int, times: Array | float = 1.0
) -> tuple[Array, Bound]:
    """Numbers of records so small that all that they add lies within a ball, and the ball of lengths that rows keep to then.

    Parameters
    ----------
    numbers : array of shape (..., n)
        By which rows, or products of rows, are multiplied.
    power : {1, 2}
    size : int
        Numbers that a record adds, each rounded to whole steps.
    times : array of shape (..., n)
        Of what else a record's contribution is made, its length.
    """
    step = step_of(bound)
    room = max(bound.radius - step * (math.sqrt(size) if bound.norm == 2 else size) / 2, 0.0)
    length = np.abs(numbers) * times * _length(rows, bound.norm, power) * ROUNDED
    lawful = np.isfinite(length)
    factor = np.where(length > room, room / np.where(lawful, np.maximum(length, room), 1.0), 1.0)
    return np.where(lawful, numbers, 0.0) * factor, l2(bound.radius, "record", step)


def _length(rows: WholeRows, norm: float, power: int) -> Array:
    """Of rows, or of their products with themselves; l1 is that of an upper triangle."""
    if norm == 2:
        return rows.length if power == 1 else rows.length * rows.length
    added: Array = reduce(np.add, map(np.abs, rows.columns))
    return added if power == 1 else (added * added + rows.length * rows.length) / 2
