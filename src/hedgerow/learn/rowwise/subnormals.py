"""Arithmetic with subnormal numbers, whatever the thread has been told.

Flush-to-zero is a flag of each thread. With it, results that are tiny become zero, so bits would depend on who else set it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

P, R = ParamSpec("P"), TypeVar("R")

_SUBNORMAL = 5e-324
_SMALLEST_NORMAL = 2.2250738585072014e-308


def flushing() -> bool:
    """Whether this thread takes subnormal operands or results for zero."""
    return _SUBNORMAL == 0.0 or _SMALLEST_NORMAL * 0.5 == 0.0


def ieee(function: Callable[P, R]) -> Callable[P, R]:
    """Let a NumPy function keep subnormal numbers, and say nothing of what is not finite: callers look at its results."""

    @wraps(function)
    def kept(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(all="ignore"):
            if not flushing():
                return function(*args, **kwargs)
            import torch

            torch.set_flush_denormal(False)
            try:
                return function(*args, **kwargs)
            finally:
                torch.set_flush_denormal(True)

    return kept
