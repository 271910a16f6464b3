"""Laws of noise as an audit of them needs them: standard deviation over the bound's radius, kurtosis, whether it is normal."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hedgerow.core.events import Event
from hedgerow.errors import SettingsInvalid

_MANY_STEPS = 8.0
"""Grid steps in a standard deviation from which on discrete Gaussian and Skellam noise is tested as normal."""


@dataclass(frozen=True)
class NoiseLaw:
    """What is assumed of each number of a release's noise; numbers are independent of one another.

    Attributes
    ----------
    name : str
        Of the law.
    deviation : float
        Standard deviation, in units of the bound's radius.
    kurtosis : float
        Fourth moment over the squared variance.
    normal : bool
        Whether exact tails of the normal law are used; else bounds that hold for every law of these two moments.
    """

    name: str
    deviation: float
    kurtosis: float = 3.0
    normal: bool = True

    @classmethod
    def of(cls, event: Event, steps: float = math.inf) -> NoiseLaw:
        """Of what a ledger charged.

        Parameters
        ----------
        event : Event
            Gaussian, Laplace or Skellam noise, once.
        steps : float
            Steps of the integer grid in a standard deviation, where they are known. Noise is drawn on the grid: with 8 steps or
            more a normal law describes it, with fewer its kurtosis is that of Skellam and geometric noise.

        Raises
        ------
        SettingsInvalid (HR-511)
            The mechanism has no law of noise, or is a round of many uses.
        """
        z, steps = event.noise_multiplier, event.steps or steps
        if event.kind not in ("gaussian", "laplace", "skellam") or z <= 0 or event.count != 1 or event.rate != 1:
            raise SettingsInvalid(
                f"a release {event} has no law of noise that its total could be held against.",
                remedy="Audit noise on a sum, Gaussian, Laplace or Skellam; for others there is the bound from one run.",
            )
        if event.kind == "laplace":
            return cls("Laplace", math.sqrt(2) * z, 6.0 + steps**-2, normal=False)
        if steps >= _MANY_STEPS:
            return cls("Gaussian" if event.kind == "gaussian" else "Skellam", z)
        return cls("noise on the grid", z, 3.0 + steps**-2, normal=False)

    @classmethod
    def summed(cls, event: Event, draws: float = 1.0, steps: float = math.inf) -> NoiseLaw:
        """Of the sum of so many independent draws, over its own standard deviation.

        Parameters
        ----------
        event : Event
            Gaussian, Skellam, Laplace, or geometric noise (`pure`), of which only the shape counts.
        draws : float
            How many parties add one.
        steps : float
            Steps of the integer grid in a standard deviation of a draw, where the event does not say.
        """
        beyond = (3.0 if event.kind in ("laplace", "pure") else 0.0) + (event.steps or steps) ** -2
        normal = beyond / draws <= _MANY_STEPS**-2
        return cls("normal", 1.0) if normal else cls("long tails", 1.0, 3.0 + beyond / draws, normal=False)
