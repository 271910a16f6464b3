"""Shares: one budget divided over questions that are known before the first of them is asked.

    mu            of the whole budget: N(0, 1) beside N(mu, 1) is exactly (epsilon, delta)-private
    part i        share_i of mu^2, asked times_i times:  noise multiplier sqrt(times_i / share_i) / mu

Gaussian releases compose by adding up mu^2 (Dong, Roth & Su 2022, Corollary 3.3), so nothing of the budget is lost. With delta
zero the noise is Laplace, shares are of epsilon, and bounds must be l1: noise multiplier times_i / (share_i epsilon).

A program asks each part through a handle of its own. A plan that does not fit the federation's budget, or what earlier
questions left of it, is refused before its first question, choices by pure epsilon included. Where the federation's channel
adds noise already, every part is asked through that channel as it is; without noise or budget every sum is exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hedgerow.core.bound import l2
from hedgerow.core.events import Event, Sampling
from hedgerow.core.federation import Federation
from hedgerow.core.ledger import grouped
from hedgerow.core.mechanism import Position
from hedgerow.errors import BudgetExhausted, BudgetInvalid, SlotFilled

from .accounting.gaussian import gaussian_noise
from .mechanisms import Gaussian, Laplace, Noise

UP = 1 + 2e-9
"""Multipliers are larger by this, against the rounding of their composition, for which filters keep 1e-9 of a budget."""
ROOT = 4e-12
"""Epsilon is planned smaller by this: an accountant finds the epsilon of a ledger as a root, to half as much."""


def divided(epsilon: float, times: int) -> float:
    """Epsilon of each of so many choices that cost this much together, and a little less against rounding."""
    return epsilon / (UP * times)


@dataclass(frozen=True)
class Share:
    """Some questions of one kind.

    Parameters
    ----------
    share : float
        Of the budget, for all of them together; shares of all parts add up to 1.
    times : int
        How often it is asked.
    """

    share: float
    times: int = 1


@dataclass(frozen=True)
class BudgetShares:
    """A budget that a program spends by itself, and where its noise is added.

    Parameters
    ----------
    epsilon : float or None
        None leaves protection to the channel.
    delta : float or None
        None or zero for pure epsilon.
    at : {"server", "aggregators", "shares", "party"}
    least : int
        For shares: as many parties' shares make the whole noise.

    Raises
    ------
    BudgetInvalid (HR-214)
        Epsilon or delta is out of its range, or delta comes without an epsilon.
    """

    epsilon: float | None = None
    delta: float | None = None
    at: Position = "server"
    least: int = 0

    def __post_init__(self) -> None:
        if self.epsilon is None:
            if self.delta is not None:
                raise BudgetInvalid(f"delta {self.delta!r} without an epsilon.", remedy="Give both: epsilon=1.0, delta=1e-5.")
            return
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise BudgetInvalid(f"an epsilon of {self.epsilon!r} buys nothing.", remedy="Give a finite number above zero.")
        if not 0 <= (self.delta or 0.0) < 1:
            raise BudgetInvalid(f"a delta of {self.delta!r}.", remedy="Give a number well below one over the records: 1e-5.")

    @property
    def mu(self) -> float:
        """The distance of two normal laws of variance one that are (epsilon, delta)-close, as accountants can tell."""
        assert self.epsilon is not None
        assert self.delta
        return 1 / gaussian_noise(max(self.epsilon - ROOT, self.epsilon / 2), self.delta)

    def noise(self, part: Share) -> Noise:
        """The noise of each question of a part."""
        assert self.epsilon is not None
        if self.delta:
            return Gaussian(UP * math.sqrt(part.times / part.share) / self.mu, self.at, self.least)
        return Laplace(UP * part.times / (part.share * self.epsilon), self.at, self.least)

    def handles(
        self,
        federation: Federation,
        parts: Mapping[str, Share],
        *,
        besides: Sequence[Event] = (),
        begins: bool | None = None,
    ) -> dict[str, Federation]:
        """Return the federation as each part is asked.

        Parameters
        ----------
        parts : mapping from name to Share
            Everything that will be asked with noise.
        besides : sequence of Event
            What will be asked besides, each with a cost of its own, such as choices.
        begins : bool, optional
            Whether all of this is still to be asked, and has to fit what is left of the federation's budget: not where a
            program continues from a state. By default where nothing was asked before.

        Raises
        ------
        SlotFilled (HR-212)
            The channel adds noise already, and a budget is given besides.
        BudgetInvalid (HR-214)
            Shares do not add up to 1.
        BudgetExhausted (HR-213)
            All of it together would exceed what is left of the federation's budget, which would end it on its way.
        """
        if self.epsilon is None:
            return dict.fromkeys(parts, federation)
        if federation.protection.noisy:
            noise = federation.protection.mechanism
            raise SlotFilled(
                f"the channel already adds noise ({noise}), and epsilon={self.epsilon:g} would plan its own.",
                remedy="Leave epsilon out, and the channel's noise is used as it is; or start from the unprotected federation.",
            )
        given = [part.share for part in parts.values()] or [1.0]
        if min(given) <= 0 or not math.isclose(math.fsum(given), 1.0, rel_tol=1e-9) or any(p.times < 1 for p in parts.values()):
            shares = ", ".join(f"{name} {part.share:g} for {part.times}" for name, part in parts.items())
            raise BudgetInvalid(f"shares of a budget: {shares}.", remedy="Shares are above zero and add up to 1.")
        noises = {name: self.noise(part) for name, part in parts.items()}
        if not len(federation.ledger) if begins is None else begins:
            bound = l2(1.0, "record")
            planned = [noises[name].event(bound) for name, part in parts.items() for _ in range(part.times)]
            self._refuse_beyond(federation, planned, besides)
        return {name: federation.protect(mechanism=noise) for name, noise in noises.items()}

    def _refuse_beyond(self, federation: Federation, planned: Sequence[Event], besides: Sequence[Event]) -> None:
        """Refuse a plan that a budget per record would end on its way."""
        ledger = federation.ledger
        limit = ledger.limit
        if limit is None or limit.unit != "record" or federation.is_cohort:
            return
        before = [*ledger.others, *ledger.entries]  # not what a resumed run will ask again, which is planned
        if not limit.admits([*grouped(before, "record"), *((Sampling(), (event,)) for event in (*planned, *besides))]):
            count, delta = len(planned) + len(besides), self.delta or 0.0
            epsilon = (self.epsilon or 0.0) * bool(planned) + math.fsum(event.epsilon for event in besides)
            left = f"what {len(before)} earlier questions left of " if before else ""
            raise BudgetExhausted(
                f"{count} questions that cost epsilon={epsilon:g} at delta={delta:g} would exceed {left}the budget of {limit}.",
                remedy="Give a smaller epsilon, at the budget's delta.",
            )
