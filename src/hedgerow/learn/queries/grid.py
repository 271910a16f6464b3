"""The grid of trials: every noise, epsilon, share of records and horizon, and after which questions results are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

import numpy as np

from hedgerow.errors import SettingsInvalid, suggestion

NoiseName = Literal["laplace", "gaussian", "server"]
NOISES: tuple[NoiseName, ...] = get_args(NoiseName)

LOOKS = 12
"""After about so many questions the results so far are kept, evenly spread over factors."""


@dataclass(frozen=True)
class Trial:
    """One combination of a study."""

    noise: NoiseName
    epsilon: float
    share: float
    horizon: int


def trials_of(
    noises: Sequence[NoiseName], epsilons: Sequence[float], shares: Sequence[float], horizons: Sequence[int]
) -> list[Trial]:
    """Every combination, in the order of a state's arrays."""
    for noise in noises:
        if noise not in NOISES:
            raise SettingsInvalid(f"no noise of trials is called {noise!r}.", remedy=suggestion(str(noise), NOISES))
    for name, values in (("noises", noises), ("epsilons", epsilons), ("shares", shares), ("horizons", horizons)):
        if not values or len(set(values)) < len(values):
            raise SettingsInvalid(f"{name} = {list(values)!r}.", remedy="Give at least one value, and each once.")
    if not all(0 < share <= 1 for share in shares):
        raise SettingsInvalid(f"shares = {list(shares)!r}.", remedy="A share of each party's records lies in (0, 1].")
    return [Trial(*values) for values in product(noises, epsilons, shares, horizons)]


def looks_of(horizons: Sequence[int]) -> list[int]:
    """After how many questions results are kept."""
    spread = np.geomspace(1, max(horizons), LOOKS).round().astype(int)
    return sorted({*map(int, spread), *horizons})
