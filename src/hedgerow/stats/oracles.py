"""Frequency oracles by name."""

from __future__ import annotations

from typing import Literal

from hedgerow.privacy.local import (
    Bloom,
    CountMeanSketch,
    HadamardSketch,
    KRandomisedResponse,
    OptimisedUnary,
    Rappor,
    Reports,
    SymmetricUnary,
)

OracleName = Literal["k-ary", "symmetric", "optimised", "rappor", "sketch", "hadamard"]


def oracle_of(
    oracle: OracleName, epsilon: float, *, hashes: int = 16, width: int = 256, bits: int = 64, cohorts: int = 8
) -> Reports:
    """Return the mechanism of an oracle's name, as `frequencies`."""
    simple = {"k-ary": KRandomisedResponse, "symmetric": SymmetricUnary, "optimised": OptimisedUnary}
    if oracle in simple:
        return simple[oracle](epsilon)
    if oracle == "rappor":
        return Rappor(epsilon, bloom=Bloom(bits=bits, cohorts=cohorts))
    sketch = CountMeanSketch if oracle == "sketch" else HadamardSketch
    return sketch(epsilon, hashes=hashes, width=width)
