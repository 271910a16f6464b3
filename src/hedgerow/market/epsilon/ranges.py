"""Numbers that a formula of this room takes, checked where they come in."""

from __future__ import annotations

import math
from typing import get_args

from hedgerow.errors import BudgetInvalid, suggestion
from hedgerow.privacy.accounting import Adjacency


def checked_epsilon(epsilon: float) -> float:
    """Refuse an epsilon that is no finite number from 0 on."""
    if not 0 <= epsilon < math.inf:  # also where it is not a number
        raise BudgetInvalid(f"epsilon {epsilon!r} is not a finite number from 0 on.", remedy="Values from 0.1 to 10 are usual.")
    return float(epsilon)


def checked_delta(delta: float) -> float:
    """Refuse a delta that is no probability."""
    if not 0 <= delta <= 1:
        raise BudgetInvalid(f"delta {delta!r} is not between 0 and 1.", remedy="It is a probability: well below one over n.")
    return float(delta)


def checked_probability(value: float, what: str) -> float:
    """Refuse what is not strictly between 0 and 1."""
    if not 0 < value < 1:
        raise BudgetInvalid(f"{what} of {value!r}.", remedy="It is a probability, above 0 and below 1.")
    return float(value)


def checked_count(value: int, what: str, least: int) -> int:
    """Refuse what is not a whole number of at least so many."""
    if isinstance(value, bool) or int(value) != value or value < least:
        raise BudgetInvalid(f"{what}: {value!r}.", remedy=f"Give a whole number of at least {least}.")
    return int(value)


def checked_positive(value: float, what: str) -> float:
    """Refuse what is no finite number above 0."""
    if not 0 < value < math.inf:
        raise BudgetInvalid(f"{what} of {value!r}.", remedy="Give a finite number above 0.")
    return float(value)


def checked_adjacency(adjacency: str) -> None:
    """Refuse neighbours that nobody knows."""
    if adjacency not in get_args(Adjacency):
        raise BudgetInvalid(f"no adjacency is called {adjacency!r}.", remedy=suggestion(adjacency, get_args(Adjacency)))
