"""How well membership can be told at most: what (epsilon, delta) allows any attack, and what the mechanism itself allows.

Neighbours differ by one unit added or removed, as ledgers count. Where a member is replaced by somebody else, as where the
number of members is fixed, more is allowed: twice the epsilon (`hedgerow.privacy.accounting.definitions.group`).

    by the budget       power = min(delta + e^eps alpha, 1 - e^-eps (1 - delta - alpha))
    by the mechanism    power = 1 - f(alpha), f the trade-off function of the accountant (`privacy.accounting.trade_off`)

The second is the tighter one. An attack on right code is below both, for each record and so for records on average; where one
is above, with its interval, either the code or the ledger is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.display import displayed
from hedgerow.privacy.accounting.trade_off import TradeOff, TradeOffCurve

RATES = (0.001, 0.01)
"""False positive rates at which ceilings are printed."""


@displayed
@dataclass(frozen=True)
class AttackCeiling:
    """What an attack on the membership of one unit, added or removed, can reach at most.

    Attributes
    ----------
    epsilon, delta : float
        As accounted.
    budget, mechanism : TradeOff
        Of everything that is (epsilon, delta)-private, and of what was released.
    """

    epsilon: float
    delta: float
    budget: TradeOff
    mechanism: TradeOff

    @classmethod
    def of(cls, epsilon: float, delta: float = 0.0, mechanism: TradeOff | None = None) -> AttackCeiling:
        """Of a guarantee, and of the accountant's trade-off function where it is known.

        Raises
        ------
        BudgetInvalid (HR-214)
            Epsilon or delta is out of its range.
        """
        budget = TradeOffCurve.of_budget(epsilon, delta)
        return cls(epsilon, delta, budget, mechanism or budget)

    @property
    def area(self) -> float:
        """Area under the curve, at most."""
        return min(self.budget.area, self.mechanism.area)

    @property
    def advantage(self) -> float:
        """True less false positive rate, at most."""
        return min(self.budget.advantage, self.mechanism.advantage)

    def at(self, false_positives: float) -> float:
        """True positive rate, at most, at this rate of false positives."""
        return min(self.budget.power(false_positives), self.mechanism.power(false_positives))

    def __str__(self) -> str:
        rates = ", ".join(f"TPR {self.at(rate):.2%} at FPR {rate:.1%}" for rate in RATES)
        loose = ", ".join(f"TPR {self.budget.power(rate):.2%} at FPR {rate:.1%}" for rate in RATES)
        return (
            f"ceiling: AUC {self.area:.3f}, advantage {self.advantage:.3f}, {rates} "
            f"(any mechanism of epsilon {self.epsilon:.3g} at delta {self.delta:g}: AUC {self.budget.area:.3f}, {loose})"
        )
