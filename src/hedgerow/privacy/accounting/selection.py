"""The best of several runs: what choosing among private runs costs (Papernot & Steinke, ICLR 2022).

Trying k settings and keeping the best is not one release, and as k releases it costs about k times as much. If instead the
number of runs is random, drawn before the first and told to nobody, only logarithms are added. With the divergences e(a) of
one run,

    geometric  number of runs at least 1 with mean 1/g: e(a) + 2 (1 - 1/b) e(b) + 2 ln(1/g) / b + ln(1/g) / (a - 1), for any
               b > 1 (Theorem 2 with shape 1)
    poisson    number of runs with mean m, possibly none: e(a) + m d + ln(m) / (a - 1), where one run is (e', d)-private at
               e' = ln(1 + 1/(a - 1)) (Theorem 6)

The score by which runs are compared may be computed from private data, as long as it is not released itself; what is released
is the best run's output.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.events import Charge
from hedgerow.errors import BudgetInvalid, suggestion

from . import bounds
from .composition import leak
from .costs import Adjacency, Costs, costs
from .renyi import ORDERS, epsilon_of, total_curve

Runs = Literal["geometric", "poisson"]


def selection(
    charges: Iterable[Charge], *, mean_runs: float, delta: float, adjacency: Adjacency, law: Runs = "geometric"
) -> float:
    """Return the epsilon of releasing the best of a random number of runs.

    Parameters
    ----------
    charges : iterable of Charge
        Of one run, the computation of its score included.
    mean_runs : float
        Expected number of runs: at least 1 for `geometric`, above 0 for `poisson`.
    delta : float
        In (0, 1).
    adjacency
        As of `epsilon`.
    law : {"geometric", "poisson"}
        Of the number of runs.

    Raises
    ------
    BudgetInvalid (HR-214)
        A value is out of its range, or a charge is only approximately private: a delta of its own has no Renyi curve.
    """
    if law not in ("geometric", "poisson"):
        raise BudgetInvalid(f"no law of runs is called {law!r}", remedy=suggestion(law, ("geometric", "poisson")))
    if not (1 if law == "geometric" else 0) <= mean_runs < math.inf or mean_runs == 0:
        raise BudgetInvalid(
            f"{mean_runs:g} runs on average cannot be drawn from the {law} law",
            remedy="Ask for a mean of at least 1, or above 0 with law='poisson'.",
        )
    bounds.epsilon((), delta=delta, adjacency=adjacency)  # prices nothing, and refuses what is out of range
    found = costs(charges, adjacency)
    if leak(found) > 0:
        raise BudgetInvalid(
            "selection among runs is accounted by Renyi divergences, and an 'approximate' charge has none",
            remedy="Select among runs whose mechanisms are pure, Gaussian, Laplace or Skellam.",
        )
    if not found:
        return 0.0
    if any(cost.open for cost, _ in found):
        return math.inf
    divergences = total_curve(found)
    chosen = _geometric(divergences, mean_runs) if law == "geometric" else _poisson(found, divergences, mean_runs)
    # A divergence grows with its order, so that of a higher order bounds every lower one.
    return epsilon_of(np.minimum.accumulate(chosen[::-1])[::-1], delta)


def _geometric(divergences: NDArray[np.float64], mean_runs: float) -> NDArray[np.float64]:
    orders = np.array(ORDERS)
    log_mean = math.log(mean_runs)
    helped = float(np.min((1 - 1 / orders) * divergences + log_mean / orders))
    return np.asarray(divergences + 2 * helped + log_mean / (orders - 1))


def _poisson(found: Costs, divergences: NDArray[np.float64], mean_runs: float) -> NDArray[np.float64]:
    orders = np.array(ORDERS)
    deltas = [bounds._delta(found, math.log1p(1 / (order - 1)), "rdp") for order in ORDERS]
    # A mean below 1 takes nothing off: the theorem is stated with its logarithm for means from 1 on.
    return np.asarray(divergences + mean_runs * np.array(deltas) + max(0.0, math.log(mean_runs)) / (orders - 1))
