"""Accounting: what everything that was released costs together, and how much noise a budget needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .bounds import Accountant, delta, epsilon
    from .calibration import calibrate, charge_of, largest_rate, least_noise, most_rounds, rounds_left
    from .costs import Adjacency
    from .definitions import CDP, GDP, RDP, ZCDP, ApproximateDP, PureDP, group
    from .filters import Filter
    from .gaussian import gaussian_delta, gaussian_epsilon, gaussian_noise
    from .running import Running
    from .selection import selection
    from .trade_off import GaussianTradeOff, TradeOff, TradeOffCurve, trade_off_of

__all__ = [
    "CDP",
    "GDP",
    "RDP",
    "ZCDP",
    "Accountant",
    "Adjacency",
    "ApproximateDP",
    "Filter",
    "GaussianTradeOff",
    "PureDP",
    "Running",
    "TradeOff",
    "TradeOffCurve",
    "calibrate",
    "charge_of",
    "delta",
    "epsilon",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_noise",
    "group",
    "largest_rate",
    "least_noise",
    "most_rounds",
    "rounds_left",
    "selection",
    "trade_off_of",
]

lazily(__name__, checks=True)
