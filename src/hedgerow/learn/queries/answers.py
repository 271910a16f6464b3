"""Answers of owners that agreed on a horizon: each adds its own noise, under an epsilon of its own.

Over `horizon` questions an owner spends its epsilon, whatever the others do. Its answer is a sum of gradients; the thesis
answers with a mean over n_l records, which the server multiplies by n_l again. The noise is the same:

    mean   Laplace(2 Xi T / (n_l eps_l))  times n_l   =   Laplace(2 Xi T / eps_l)   on the sum

Neighbours. The thesis replaces a record: a sum then moves by at most 2 Xi, hence its factor 2, and n_l is public. The
ledger's neighbours differ by a record that is there or not, which moves a sum by at most Xi: the same noise costs half.
Replacing is removing and adding, so what the ledger says, doubled, holds for `replace-one`. Nothing divides by n_l.

Weights. A public factor w_l in (0, 1] scales an owner's sum after the owner has added its noise, so sum and noise alike:

    w_l (sum of gradients + noise)        a mean over all owners divides by sum_l w_l n_l

A function of a noisy sum costs what the noisy sum costs, so epsilons, noise over the bound and charges are those without
weights. The product is rounded to a grid that is finer by the power of two next to w_l: it has as many steps as before. Where
g is the finest grid of all owners, totals below 2^53 g are exact in any order, and through a ring of 64 bits whose `largest`,
times the number of owners, is at most 2^61 g. That is enough for weights from 1e-3 to 1; with smaller ones late digits may
depend on the order of owners. A weight of 1 changes no bit.

Source: Wu 2019, Theorem 1. Differs: sums in place of means; noise on an integer grid, a little larger for it; weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, get_args

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import Bound, l1, l2
from hedgerow.core.events import Event, Unit
from hedgerow.core.ledger import Entry
from hedgerow.core.mechanism import Plan
from hedgerow.core.randomness import Entropy
from hedgerow.errors import BudgetExhausted, BudgetInvalid, SettingsInvalid, suggestion
from hedgerow.privacy.accounting import gaussian_noise
from hedgerow.privacy.grid import Block, plan, to_steps
from hedgerow.privacy.noise import LARGEST_SCALE, discrete_gaussian, discrete_laplace, grid_step

Neighbours = Literal["replace-one", "add-remove"]
NoiseLaw = Literal["laplace", "gaussian"]

SHOWN = 8
"""Different multipliers that a plan tells of itself."""

MARGIN = 1e-3
"""By so much of itself epsilon is lowered for Gaussian noise: accountants on a grid round up."""


def multiplier(law: NoiseLaw, epsilon: float, horizon: int, neighbours: Neighbours, delta: float = 0.0) -> float:
    """Return the noise over the bound with which `horizon` answers spend `epsilon`.

    Parameters
    ----------
    law : {"laplace", "gaussian"}
        Laplace: scale over the l1 bound, epsilon / horizon for each answer. Gaussian: deviation over the l2 bound; so many
        releases are one of that deviation over the root of the horizon, whose curve is known exactly.
    neighbours : {"replace-one", "add-remove"}
        Replacing moves a sum twice as far.
    delta : float
        For Gaussian noise.

    Raises
    ------
    BudgetInvalid (HR-214)
        A value is out of its range.
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise BudgetInvalid(f"an owner's epsilon of {epsilon!r}.", remedy="It is a finite number above zero.")
    if isinstance(horizon, bool) or not isinstance(horizon, int) or horizon < 1:
        raise BudgetInvalid(f"a horizon of {horizon!r} questions.", remedy="Give a whole number of at least 1.")
    if neighbours not in get_args(Neighbours):
        remedy = suggestion(str(neighbours), get_args(Neighbours))
        raise BudgetInvalid(f"neighbours that differ by {neighbours!r}.", remedy=remedy)
    if law not in get_args(NoiseLaw):
        raise BudgetInvalid(f"no noise of answers is called {law!r}.", remedy=suggestion(str(law), get_args(NoiseLaw)))
    distance = 2 if neighbours == "replace-one" else 1
    if law == "laplace":
        noise = distance * horizon / epsilon
        while horizon * (1 / noise) > epsilon / distance:  # nobody is charged more than it agreed on, not in the last digit
            noise = math.nextafter(noise, math.inf)
        return noise
    return distance * math.sqrt(horizon) * gaussian_noise(epsilon * (1 - MARGIN), delta)


@lru_cache(maxsize=64)
def _on_grid(bound: Bound, size: int, law: NoiseLaw, noise: float) -> Block:
    """Lay out noise on a grid so fine that rounding the sum adds next to nothing to it."""
    (block,) = plan(bound, Layout((("", (size,)),)), noise, 1 if law == "laplace" else 2, grid_step, largest=LARGEST_SCALE)
    if block.scale <= LARGEST_SCALE:
        return block
    raise BudgetInvalid(
        f"noise of {noise:.3g} times the bound on {size} coordinates has no grid.",
        remedy="Ask fewer questions, allow more epsilon, or take fewer coordinates.",
    )


@dataclass(frozen=True)
class Answers(Plan):
    """The plan of a private answer: how much noise each owner adds; made by `Answers.of`.

    Parameters
    ----------
    bound : Bound
        Of one record's gradient, l1 for Laplace noise and l2 for Gaussian noise.
    law : {"laplace", "gaussian"}
    horizon : int
        Questions that are paid for.
    epsilons : tuple of (owner, epsilon)
    multipliers : tuple of (owner, noise over the bound)
    neighbours : {"replace-one", "add-remove"}
        For whom the epsilons hold.
    delta : float
    weights : tuple of (owner, factor)
        Public, on sum and noise alike; none where all count alike.
    """

    bound: Bound
    law: NoiseLaw
    horizon: int
    epsilons: tuple[tuple[str, float], ...]
    multipliers: tuple[tuple[str, float], ...]
    neighbours: Neighbours
    delta: float = 0.0
    repeats: int = 1
    weights: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        noise = [noise for _, noise in self.multipliers]
        drawn = bool(noise) and all(0 < z < math.inf for z in noise) and self.law in get_args(NoiseLaw)
        if not drawn or self.repeats < 1:  # it may come from elsewhere, and is charged by what it says
            raise BudgetInvalid(
                f"answers with {self.law!r} noise of {noise[:5]}, {self.repeats} times.",
                remedy="Plan them by answers_for; noise is a finite number above zero at every owner.",
            )

    @property
    def key(self) -> str:
        """Counts the questions that were answered by what the owners agreed on, whatever their bound and weights."""
        ends = (min(e for _, e in self.epsilons), max(e for _, e in self.epsilons))
        noise = tuple(dict.fromkeys(noise for _, noise in self.multipliers))
        return f"Answers({self.law}, {self.horizon}, {ends!r}, {noise!r}, {self.neighbours}, {self.repeats})"

    @classmethod
    def of(
        cls,
        epsilons: Mapping[str, float],
        horizon: int,
        *,
        radius: float,
        law: NoiseLaw = "laplace",
        neighbours: Neighbours = "replace-one",
        delta: float = 0.0,
        repeats: int = 1,
        weights: Mapping[str, float] | None = None,
    ) -> Answers:
        """Plan answers.

        Parameters
        ----------
        epsilons : mapping from owner to epsilon
            Over the horizon.
        radius : float
            Largest length of one record's gradient: l1 for Laplace noise, l2 for Gaussian.
        weights : mapping from owner to factor, optional
            Public, in (0, 1], of every owner that has an epsilon. They follow from public numbers, never from records.

        Raises
        ------
        BudgetInvalid (HR-214)
            No owner; an epsilon, horizon or delta that is out of its range.
        SettingsInvalid (HR-511)
            A weight outside (0, 1], of a stranger, or missing.
        """
        if not epsilons:
            raise BudgetInvalid("no owner has an epsilon.", remedy="Give one for each party, e.g. {'bank 1': 0.5}.")
        noise = {name: multiplier(law, epsilon, horizon, neighbours, delta) for name, epsilon in epsilons.items()}
        bound = (l1 if law == "laplace" else l2)(radius, unit="record")
        return cls(
            bound,
            law,
            horizon,
            tuple(epsilons.items()),
            tuple(noise.items()),
            neighbours,
            delta,
            repeats,
            _checked_weights(weights, epsilons),
        )

    @property
    def unit(self) -> Unit:
        """Whose presence is protected."""
        return "record"

    def event(self) -> Event:
        """The cost of one answer at the owner that adds least noise; records lie at one owner, so it is nobody's more."""
        return Event(self.law, min(noise for _, noise in self.multipliers), count=self.repeats)

    def event_of(self, party: str) -> Event:
        """The cost at one owner, of the noise that `noisy` draws for it."""
        return Event(self.law, self._of(party), count=self.repeats)

    def noisy(self, owner: str, totals: Array, entropy: Entropy) -> Array:
        """Add an owner's noise to its sum of shape (d,), or to each of `repeats` sums of shape (repeats, d), and weigh both."""
        block = self.fit(totals.shape[-1], owner)
        steps = to_steps(totals.reshape(-1, totals.shape[-1]), [block]).astype(np.int64)
        draw = discrete_laplace if self.law == "laplace" else discrete_gaussian
        noisy = steps + draw(block.scale, steps.size, entropy).reshape(steps.shape)
        return weighted(noisy, block.step, self.weight(owner)).reshape(totals.shape)

    def weight(self, owner: str) -> float:
        """An owner's public factor: 1 where all count alike, and of one that is not named."""
        return dict(self.weights).get(owner, 1.0)

    def fit(self, size: int, owner: str = "") -> Block:
        """The grid and scale of an owner's noise on sums of so many coordinates.

        Raises
        ------
        BudgetInvalid (HR-214)
            The noise is so large beside the bound that no grid is fine enough for it.
        """
        return _on_grid(self.bound, size, self.law, self._of(owner))

    def spent(self, asked: int) -> dict[str, float]:
        """Epsilon that each owner has spent after so many questions, for its neighbours.

        Of Laplace noise by plain addition; of Gaussian noise all of it with the first question, and no more until the
        horizon.
        """
        share = min(asked, self.horizon) / self.horizon if self.law == "laplace" else float(asked > 0)
        return {name: epsilon * share for name, epsilon in self.epsilons}

    def _of(self, owner: str) -> float:
        """An owner's noise; of one that is not named, the largest."""
        return self._noise[owner] if owner in self._noise else max(self._noise.values())

    @cached_property
    def _noise(self) -> dict[str, float]:
        return dict(self.multipliers)

    def refuse_strangers(self, parties: Sequence[str]) -> None:
        """Refuse parties that agreed on no epsilon, before anybody is asked."""
        strangers = sorted(set(parties) - {name for name, _ in self.epsilons})
        if strangers:
            raise BudgetInvalid(
                f"{', '.join(strangers[:5])} agreed on no epsilon.", remedy="Give every party of the federation an epsilon."
            )

    def __str__(self) -> str:
        lowest, highest = min(e for _, e in self.epsilons), max(e for _, e in self.epsilons)
        told = f"{lowest:g}" if lowest == highest else f"{lowest:g} to {highest:g}"
        each = [f"{noise:g}" for noise in dict.fromkeys(noise for _, noise in self.multipliers)]
        noise = ", ".join(each if len(each) <= SHOWN else [*each[: SHOWN - 1], f"and {len(each) - SHOWN + 1} others"])
        times = f" of {self.repeats} trainings" * (self.repeats > 1)
        return f"{self.law.capitalize()}({noise}): epsilon {told} over {self.horizon} questions{times}, {self.neighbours},"


IN_TURN = "once in"
"""Tells answers of which each owner gives one in so many steps (`async_queries`)."""


def answered(entries: Sequence[Entry], answers: Answers) -> int:
    """How many answers an owner has given at most, whichever program asked: of everybody, and in turn, one in each round."""
    in_turn = [entry for entry in entries if entry.mechanism.startswith(f"{answers} {IN_TURN} ")]
    rounds = {entry.round if entry.part is None else (entry.drawn, entry.part.partition) for entry in in_turn}
    return sum(entry.key == answers.key for entry in entries) + len(rounds)


def refuse_beyond(answers: Answers, more: int, before: int) -> None:
    """Refuse questions beyond the agreed horizon."""
    if before + more > answers.horizon:
        raise BudgetExhausted(
            f"{before} questions were answered of the {answers.horizon} on which the owners agreed.",
            remedy="What was released stands. For more, agree on a new horizon and new epsilons; they add up.",
        )


def weighted(steps: Array, step: float, weight: float) -> Array:
    """`weight` times whole steps, in the units of `step`, rounded to a grid that is finer by the power of two next to it."""
    finer = math.ldexp(0.5, math.frexp(weight)[1])
    found: Array = np.rint(steps * (weight / finer)) * (step * finer)
    return found


def _checked_weights(weights: Mapping[str, float] | None, epsilons: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Weights in the order of the owners."""
    if not weights:
        return ()
    for owner, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight <= 1:
            raise SettingsInvalid(
                f"a weight of {weight!r} for {owner}.",
                remedy="Weights lie in (0, 1]: divide all by the largest. An owner that is to count for nothing is not asked.",
            )
        if owner not in epsilons:
            raise SettingsInvalid(f"{owner} has a weight and no epsilon.", remedy=suggestion(owner, epsilons))
    if missing := [owner for owner in epsilons if owner not in weights]:
        raise SettingsInvalid(
            f"{', '.join(missing[:5])} has an epsilon and no weight.", remedy="Give every owner one, at most 1."
        )
    return tuple((owner, float(weights[owner])) for owner in epsilons)
