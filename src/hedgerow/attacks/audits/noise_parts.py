"""Whether noise is there in every number, and in no two numbers or releases the same.

    numbers   squares of what is left, of each number over all releases and of blocks of 2, 4, 8, ... numbers side by side: the
              least of them. Red where a part of a release has less noise than the whole
    within    sums of products of what is left with itself, moved by 1, 2, ... numbers: the largest. Red where two keys have the
              same noise. P[sum of n products of normal numbers >= x] <= exp(-u x / 2) (1 - u^2)^(-n/4), least over u, where no
              product shares a number with more than two others
    repeated  correlation of 64 weighted sums of each release with those of every other one of that size: the largest

A block is looked at that has at least 8 draws of noise, since noise is on a grid.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from . import tails
from .law_parts import LawPart
from .sums import LawSums

LEAST = 8
"""Draws of noise in a block."""

AT_ONCE = 512


def noise_parts(sums: LawSums, theta: float, noise: float, share: float) -> list[LawPart]:
    """The parts; `theta` is the length of canaries, `noise` at most the deviation of the noise."""
    found = []
    if sums.squares:
        found += [_numbers(sums, share), _within(sums, max(1.0, noise), share)]
    if any(len(one) > 1 for one in sums.sketches.values()):
        found.append(_repeated(sums, theta, share))
    return found


def _numbers(sums: LawSums, share: float) -> LawPart:
    least, says, tests = 1.0, "noise in every number", 0
    for size, squares in sums.squares.items():
        width, releases = 1, sums.sized[size]
        while len(squares):
            draws = releases * width
            if draws >= LEAST:
                tests, at = tests + len(squares), int(np.argmin(squares))
                square = float(squares[at])
                p = tails.chi_below(square, draws) if sums.normal else tails.squares_below(square / draws, draws, sums.kurtosis)
                if p <= least:
                    least = p
                    where = (
                        f"numbers {at * width + 1} to {(at + 1) * width} of {size}"
                        if width > 1
                        else f"number {at + 1} of {size}"
                    )
                    says = f"{math.sqrt(square / draws):.3f} of the accounted standard deviation in {where}"
            squares, width = squares[: len(squares) // 2 * 2].reshape(-1, 2).sum(1), 2 * width
    return LawPart("numbers", says, min(1.0, max(1, tests) * least), 1.0, share)


def _within(sums: LawSums, noise: float, share: float) -> LawPart:
    least, says, tests = 0.0, "no noise twice in a release", 0
    for size, products in sums.moved.items():
        if size < 2:
            continue
        tests += 2 * (size - 1)
        n, x = sums.sized[size] * np.arange(size - 1, 0, -1.0), np.abs(products[1:]) / noise**2
        if sums.normal:
            u = 2 * x / (n + np.sqrt(n * n + 4 * x * x))
            logs = -u * x / 2 - n / 4 * np.log1p(-u * u)
        else:
            logs = np.minimum(0.0, np.log(n) - 2 * np.log(np.maximum(x, 1e-300)))
        at = int(np.argmin(logs))
        if logs[at] <= least:
            least = float(logs[at])
            says = f"correlation {x[at] / n[at]:.3f} of numbers that are {at + 1} apart"
    return LawPart("within", says, min(1.0, max(1, tests) * math.exp(least)), 1.0, share)


def _repeated(sums: LawSums, theta: float, share: float) -> LawPart:
    """Red where releases are alike both less what canaries should have added and less what they did add."""
    far, r = max(_most_alike(sums, part) for part in {1.0, theta})
    return LawPart("repeated", f"correlation at most {r:.3f} with any other release", far, 1.0, share)


def _most_alike(sums: LawSums, theta: float) -> tuple[float, float]:
    told = [(1.0, 0.0)]
    tests = 0
    for sketches in sums.sketches.values():
        rows = np.array([one[0] - theta * one[1] for one in sketches])
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
        t, n = len(rows), rows.shape[1] - 1
        if t < 2 or not n:
            continue
        tests += t * (t - 1) // 2
        most = 0.0
        for i in range(0, t, AT_ONCE):
            products = np.abs(rows[i : i + AT_ONCE] @ rows.T)
            products[np.arange(len(products)), i + np.arange(len(products))] = 0.0
            most = max(most, float(products.max()))
        far = 2 * float(scipy.special.stdtr(n, -most * math.sqrt(n / max(1 - most * most, 1e-15))))
        told.append((far if sums.normal else min(1.0, 1 / ((n + 1) * most * most)) if most else 1.0, most))
    far, most = min(told)
    return min(1.0, max(1, tests) * far), most
