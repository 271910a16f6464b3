"""Sums over records whose rounding is bounded, since without one record the others may be rounded otherwise.

A sum of n terms of length at most S, taken one after the other in numbers of relative precision u, is off by at most
u S (2 + ... + n), in any other order by no more. Terms are added in float64. Only where there are few of them, at most `FEW`,
and much to compute, they are added in float32, first within blocks of `BLOCK`, then block by block:

    n terms, one after the other                       n^2 / 2 u S                          u = 2^-24
    in blocks                                          (n BLOCK + n^2 / BLOCK) / 2 u S
    in blocks, FEW of them, both neighbours' sums      (FEW BLOCK + FEW^2 / BLOCK) u S      `ROUNDED` S, in the sum's bound

In float64, u = 2^-53, it takes six million records to come so far.
"""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 128
"""Records whose terms are added one after the other in float32."""

FEW = 768
"""Of more records than these, every term is added in float64."""

ROUNDED = (FEW + 1) * (BLOCK + 1 + FEW / BLOCK) * 2.0**-24
"""By so much of the clip the rounding of two sums may differ: 0.6 percent, in the worst case."""

LITTLE = 2**18
"""Products that are quicker in float64 than in blocks."""


def add_products(into: Tensor, left: Tensor, right: Tensor, exact: bool) -> None:
    """Add the outer products of the records' rows, (n, k) and (n, l), to a float64 sum of shape (k, l).

    Parameters
    ----------
    exact : bool
        Without blocks in float32: for a part of more than `FEW` records.
    """
    n = len(left)
    if exact or n > FEW or left.numel() * right.shape[1] <= LITTLE:
        into.addmm_(left.double().t(), right.double())
        return
    found, block = torch.mm(left[:BLOCK].t(), right[:BLOCK]), torch.empty(into.shape)
    for start in range(BLOCK, n, BLOCK):
        some = slice(start, start + BLOCK)
        found += torch.mm(left[some].t(), right[some], out=block)
    into += found


def add_weighed(into: Tensor, c: Tensor, rows: Tensor, exact: bool) -> None:
    """Add the records' rows, (n, size), times their factors, (n,), to a float64 sum of that many coordinates."""
    add_products(into.view(1, -1), c[:, None], rows, exact)
