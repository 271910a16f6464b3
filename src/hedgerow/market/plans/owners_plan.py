"""A plan of owners: who takes part, at which epsilon and weight, for what payment, and what result that is expected to give."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hedgerow.display import displayed
from hedgerow.learn.queries.answers import Answers
from hedgerow.market.forecasts.known_loss import KnownLoss
from hedgerow.market.prices.sum_noise import SumNoise


@dataclass(frozen=True)
class PlannedOwner:
    """One owner's part.

    Attributes
    ----------
    name : str
    records : int
    budget : float
        Epsilon of everything that it answers; 0 of an owner that is left out.
    epsilon : float
        Of the plan's questions: the budget, less what was spent before.
    weight : float
        Public factor on its sum, noise and records; the largest is 1, and 0 says left out.
    without : float
        By how much the relative fitness would be higher without it, that of zeros at most, where it is known.
    advantage : float
        Power less false alarms, at most, of an attack on whether a record took part, from everything that was asked of the
        owner, also before the plan: 0 to 1, or 2 P(right guess) - 1.
    payment, cost : float or None
        In the learner's currency; None where the plan has no prices.
    deviation : float or None
        What another epsilon on offer, or none, would gain it at the same price: at most a millionth of the learner's currency,
        or the last digits of a payment above 1e15.
    entry : float or None
        The least price at which it takes part.
    """

    name: str
    records: int
    budget: float
    epsilon: float
    weight: float
    without: float
    advantage: float
    payment: float | None = None
    cost: float | None = None
    deviation: float | None = None
    entry: float | None = None

    @property
    def taken(self) -> bool:
        """Whether it takes part."""
        return self.weight > 0

    @property
    def surplus(self) -> float | None:
        """What is left of the payment after its cost."""
        return None if self.payment is None or self.cost is None else self.payment - self.cost


@dataclass(frozen=True)
class PlannedFitness:
    """The relative fitness that a plan expects.

    Attributes
    ----------
    expected, low, high : float
        The mean over runs, and the ends between which 90 of 100 single runs lie; these are wider by what another estimate of
        the loss would change (`doubt`).
    noise, steps, sample : float
        Parts of `expected`: owners' noise, what the steps leave, and that so many records are a sample.
    saturated : bool
        Expected fitness is above that of zeros: the box stops theta, and the numbers are too high.
    doubt : float
        Standard error of `expected`, as far as the loss is not known well; 0 where that is not known.
    """

    expected: float
    low: float
    high: float
    noise: float
    steps: float
    sample: float
    saturated: bool = False
    doubt: float = 0.0


@displayed
@dataclass(frozen=True)
class OwnersPlan:
    """With whom, at which epsilon, at what price.

    Attributes
    ----------
    title : str
    owners : tuple of PlannedOwner
        All of them, in the order of the file.
    fitness : PlannedFitness
        On everybody like the owners' records.
    own : PlannedFitness
        On the records that take part, which a simulation can measure: less, as they are fitted.
    noise : SumNoise
        Law, horizon, radius, neighbours and delta of the answers.
    price : float or None
        For a unit of precision; None where there are no prices.
    value : float or None
        What one unit of relative fitness is worth to the learner.
    equal, weighted : float
        Relative fitness with everybody, those left out at their highest epsilon: equal weights, and best weights.
    prefix : tuple of str
        The best owners of equal weight, of everybody.
    prefix_fitness : float
    spent : float
        Epsilon that each owner spent before, on the question that the forecast follows from.
    known : KnownLoss
        What the forecast follows from.
    digest : str
        Of all that the plan was made from: the file of owners, the study, and what was known.
    spent_delta : float
        At which that was spent; 0 where nothing was.
    """

    title: str
    owners: tuple[PlannedOwner, ...]
    fitness: PlannedFitness
    own: PlannedFitness
    noise: SumNoise
    price: float | None
    value: float | None
    equal: float
    weighted: float
    prefix: tuple[str, ...]
    prefix_fitness: float
    spent: float
    known: KnownLoss
    digest: str = ""
    spent_delta: float = 0.0

    @property
    def coalition(self) -> tuple[PlannedOwner, ...]:
        """Owners that take part."""
        return tuple(one for one in self.owners if one.taken)

    @property
    def epsilons(self) -> dict[str, float]:
        """Of the plan's questions, by owner that takes part."""
        return {one.name: one.epsilon for one in self.coalition}

    @property
    def budgets(self) -> dict[str, float]:
        """Epsilon of everything, by owner that takes part."""
        return {one.name: one.budget for one in self.coalition}

    @property
    def weights(self) -> dict[str, float]:
        """Public weights, by owner that takes part."""
        return {one.name: one.weight for one in self.coalition}

    @property
    def payments(self) -> float | None:
        """All payments together."""
        return None if self.price is None else sum(one.payment or 0.0 for one in self.owners)

    @property
    def deviation(self) -> float | None:
        """The most that any owner would gain by another epsilon, or none."""
        return None if self.price is None else max(one.deviation or 0.0 for one in self.owners)

    @property
    def records(self) -> dict[str, int]:
        """Records by owner that takes part."""
        return {one.name: one.records for one in self.coalition}

    def answers(self) -> Answers:
        """The noise that owners agree on, and their weights."""
        n = self.noise
        return Answers.of(
            self.epsilons,
            n.horizon,
            radius=n.radius,
            law=n.law,
            neighbours=n.neighbours,
            delta=n.delta,
            weights=self.weights,
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the numbers rest on, in sentences."""
        n = self.noise
        moved = "is there or not" if n.neighbours == "add-remove" else "becomes another"
        other = "becomes another" if n.neighbours == "add-remove" else "is there or not"
        twice = "twice" if n.neighbours == "add-remove" else "half"
        delta = f" and delta {n.delta:g}" if n.law == "gaussian" else ""
        found = [
            f"Epsilons{delta} hold over {n.horizon} questions together, for a record that {moved}; one that {other} "
            f"moves sums {twice} as far.",
            f"Each owner adds {n.law.capitalize()} noise of its own to every answer, and trusts nobody to do it.",
            "No record lies with two owners.",
            f"All owners draw their records from one population, of which this is known: {self.known.source}.",
            *self.known.limits,
        ]
        if self.fitness.doubt:
            found.append(
                f"Another estimate of it would expect another fitness, by {digits(self.fitness.doubt)} (one standard error): "
                "the interval is wider by that."
            )
        if self.spent:
            found += [
                f"Each owner spent epsilon {self.spent:g} on the question that this is known from, and budgets cover both.",
                "The plan depends on what that question released; what was agreed before it is each owner's highest epsilon, "
                "which the two, added up, do not exceed.",
            ]
        if self.price is not None:
            found.append("An epsilon e costs an owner c (exp e - 1), with the c that it declares.")
        return tuple(found)

    @property
    def unseen(self) -> tuple[str, ...]:
        """What would make the numbers wrong, and no part of the plan can see."""
        paid = " An owner that overstates its records is paid more and spoils the result." if self.price is not None else ""
        found = [
            "Heterogeneity: owners whose records differ from the others' shift the result, and no forecast here sees that.",
            "Truthfulness: numbers of records and costs are declared." + paid + " Certify records, or release a private count: "
            "Laplace noise at epsilon 0.01 has a standard deviation of 141 records.",
        ]
        if not self.price:
            found[1] = found[1].replace("numbers of records and costs are", "numbers of records are")
        box = "the forecast is above what zeros reach: there are too few steps, or noise drives theta to the walls of its box"
        free = "walls of the box that stop theta without noise are followed, where they are known; those that noise alone "
        free += "drives it to are not, and the forecast mostly says too much there"
        found.append(f"Saturation: {box if self.fitness.saturated else free}.")
        return tuple(found)

    def sentence(self) -> str:
        """The plan in one sentence."""
        f, n_taken, n_all = self.fitness, len(self.coalition), len(self.owners)
        some = f"{n_taken} of {n_all} owners" if n_taken < n_all else f"all {n_all} owners"
        whom = f"Ask {some if n_all > 1 else 'the owner'}"
        ends_of = sorted(self.epsilons.values())
        at = f" at epsilon {ends_of[0]:.3g}" + (f" to {ends_of[-1]:.3g}" if ends_of[0] < ends_of[-1] else "")
        paid = "" if self.payments is None else f", for {money(self.payments)} in payments"
        if f.saturated:
            return f"{whom}{at}{paid}: the result would be no better than zeros (forecast {digits(f.expected)})."
        ends = f"in 90 of 100 runs between {digits(f.low)} and {digits(f.high)}"
        return f"{whom}{at}{paid}: relative fitness {digits(f.expected)}, {ends}."


def digits(value: float) -> str:
    """A fitness with three significant digits."""
    if not 1e-5 <= abs(value) < 1e4:
        return f"{value:.2e}" if value else "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def money(value: float) -> str:
    """A sum of the learner's currency."""
    return f"{value:,.2f}".replace(",", "\N{NARROW NO-BREAK SPACE}")
