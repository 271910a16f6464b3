"""Asynchronous gradient queries: in each step some owners answer, and in each round every owner once.

    for round = 1 .. R:
        step of owner l          <- dealt from 1 .. G: each alike likely, L/G owners to each step  public
        for t = 1 .. G:
            theta                -> owners whose step is t                                         broadcast
            sum of gradients, with noise of the owner for R answers                                local, sum
            gradient             <- G sum / n + ridge theta                                        server; n as in `program`
            theta, average       <- one step of the rule, number (round - 1) G + t of R G          server

L owners are dealt to G steps as cards are: a step has floor(L/G) of them or one more, and which steps have one more is drawn.
An owner answers in a step with the probability q = 1 / G, so G times a step's sum is expected to be the sum of all owners. Of
T = R G steps it answers in R = q T and in none more: what it agreed on is spent to the last answer, and between two answers lie
at most 2 G - 2 steps. A coin that is tossed anew in each step would choose some owners more often than they agreed to answer;
they would have to be silent from then on, and the last steps would forget them.

Noise, beside that of T steps of everybody at the same epsilons: an answer is noised for q T answers in place of T, a step adds
up a share q of the owners, and is divided by q. So the variance of a step's noise is

    Laplace     q^2 q / q^2   =   q times          Gaussian     q q / q^2   =   1 times

To this comes that owners differ: in a single step (1 - q) / q times the sum of squares of their gradients, which cancels over
the steps of a round but for what theta moved meanwhile. `hedgerow.market.asynchronous` forecasts both.

Cost. Who answers is public, so being drawn protects nobody, and nothing is claimed for it. An owner and all its records are in
one group of a round, which follows from names: all groups together cost what one answer costs (parallel composition). Names are
the same in neighbouring worlds, as these differ by a record.

Releases : sums of gradients of the owners of a step, shape of theta; once in each step that has any.
State    : none at the parties.
Unit     : record. Bounded as in `program`.
Source   : Wu 2019, Conclusions: asynchronous updates are future work, in which "all the data owners update the model as
           frequently as required". Differs: derived here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound
from hedgerow.core.declaration import Case, program
from hedgerow.core.events import Event, Unit
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Plan
from hedgerow.core.question import local
from hedgerow.core.randomness import Entropy
from hedgerow.data import complete_cases, load
from hedgerow.errors import (
    BudgetExhausted,
    CohortTooSmall,
    HedgerowError,
    NobodyAnswered,
    PartyDeclined,
    RoundRefused,
    SettingsInvalid,
)

from . import results
from .answers import IN_TURN, Answers, answered, refuse_beyond
from .inputs import Inputs, inputs
from .keys import INPUTS, OWNERS, loss_of_keys, planned_answers, spec_of_keys, steps_of_keys
from .lengths import bound_of, longest_of
from .losses import QueryLoss
from .program import QueryState, check_answers, check_count, divisor, gradient
from .steps import Steps

log = logging.getLogger("hedgerow.learn")

LOST = (NobodyAnswered, RoundRefused, CohortTooSmall, PartyDeclined, BudgetExhausted)
"""What ends a step without a total after its owners were asked; the round goes on, unless a party's own code failed."""


@dataclass(frozen=True)
class AnswersInTurn(Plan):
    """Answers of which an owner gives one in each round, in one of so many steps.

    No charge is shared, and groups of one partition cost what one of them does; so the ledger is given no key.

    Parameters
    ----------
    answers : Answers
        Their horizon is that of rounds.
    every : int
        Steps of a round.
    """

    answers: Answers
    every: int

    @property
    def bound(self) -> Bound:
        return self.answers.bound

    @property
    def unit(self) -> Unit:
        return self.answers.unit

    def event(self) -> Event:
        """The cost of one answer."""
        return self.answers.event()

    def event_of(self, party: str) -> Event:
        """The cost of one answer of this owner."""
        return self.answers.event_of(party)

    def noisy(self, owner: str, totals: Array, entropy: Entropy) -> Array:
        """As of `Answers`."""
        return self.answers.noisy(owner, totals, entropy)

    def __str__(self) -> str:
        return f"{self.answers} {IN_TURN} {self.every} steps,"


@local(private="plan")
def gradient_in_turn(broadcast: Array, party: Any, rng: Any, *, loss: QueryLoss, box: float, plan: AnswersInTurn) -> Array:
    """Sum of the gradients of a party's records, shape of theta, with the owner's own noise."""
    return plan.noisy(party.id, gradient(broadcast, party, rng, loss=loss, box=box, bounds=plan.bound), rng.entropy)


@program(
    "Linear models by noisy gradients of some owners at a time, each once in a round (future work of Wu 2019).",
    keys={**INPUTS, **OWNERS},
    bind={"loss": loss_of_keys, "spec": spec_of_keys, "steps": steps_of_keys, "answers": planned_answers},
    outcome=results.model,
    with_records=True,
    watch=results.watch,
    case=lambda: Case(
        load("hie").select(["mdvis", "lncoins", "idp", "physlm", "disea"]).take(range(200)),
        {
            "rounds": 2,
            "every": 2,
            "epsilons": {f"party {i}": 50.0 * i for i in range(1, 5)},
            "weights": {f"party {i}": 0.21 * i for i in range(1, 5)},
            "ridge": 1.0,
            "n_records": {f"party {i}": 50 for i in range(1, 5)},
            "box": 1.0,
            "step": 0.25,
        },
    ),
)
def async_queries(
    federation: Federation,
    *,
    loss: QueryLoss,
    spec: Inputs,
    n_records: int | dict[str, int],
    rounds: int,
    every: int,
    steps: Steps,
    answers: Answers | None = None,
    start: QueryState | None = None,
) -> Iterator[QueryState]:
    """Train a linear model by gradient queries of which each goes to some owners.

    Parameters
    ----------
    federation : Federation
        As of `gradient_queries`; all its parties.
    loss : QueryLoss
    spec : Inputs
        How records become inputs of bounded length.
    n_records : int or dict from owner to int
        Of all owners or of each, as of `gradient_queries`.
    rounds : int
        How often each owner answers.
    every : int
        Steps of a round: an owner answers in one of them. A step moves by `every` times its owners' gradients, so the first
        step of the rule is best about one over `every` times the largest curvature, or less.
    steps : Steps
        Their horizon is rounds times `every`.
    answers : Answers, optional
        Noise at the owners, for `rounds` answers of each (`answers_for`).

    Yields
    ------
    QueryState
        After each round. `average` is the model.

    Releases
    --------
    A sum of gradients of some owners, `every` times in each round.

    Raises
    ------
    BudgetExhausted (HR-213)
        The owners' agreed answers are used up; before anybody is asked in a round. A round that was broken off counts as one,
        also if nobody answered: an answer may have left and been lost, and its owner has paid for it.
    NobodyAnswered (HR-220)
        In a whole round. Owners that are away for a step lose their turn, and their answer is missing from the sum. So do those
        whose guards decline, and all owners of a step that an aggregation refused because too few answered.
    UnboundedSum (HR-210)
        The channel adds noise, and record weights declare no range.
    BudgetInvalid (HR-214), SettingsInvalid (HR-511)
        As of `gradient_queries`; more steps in a round than owners; fewer owners to a step than the aggregation or the noise
        in shares need.
    """
    n = divisor(n_records, federation.names, answers)
    check_count("rounds", rounds)
    check_count("every", every)
    _check_groups(federation, every)
    zero, horizon = np.zeros(spec.size), rounds * every
    state = start or QueryState(0, zero, zero)
    known = complete_cases(federation, [*spec.features, spec.target], count=False)
    asked, bound = known.prepare(inputs, spec=spec), bound_of(federation, loss, spec, steps.box)
    question = partial(gradient, loss=loss, box=steps.box)
    if answers is not None:
        answers.refuse_strangers(federation.names)
        answers.fit(spec.size)
        norm = 1 if answers.law == "laplace" else 2
        check_answers(answers, rounds, longest_of(federation.schema, loss, spec, steps.box, norm))
        before = answered(federation.ledger.entries, answers) - state.round
        question, bound = partial(gradient_in_turn, loss=loss, box=steps.box, plan=AnswersInTurn(answers, every)), None
    for round in range(state.round + 1, rounds + 1):
        if answers is not None:
            refuse_beyond(answers, 1, before + round - 1)
        theta, average, heard = state.theta, state.average, False
        away: HedgerowError | None = None
        for t, group in enumerate(asked.split(every, balanced=True), start=1):
            k, total, number = (round - 1) * every + t, zero, asked.asked
            try:
                total, heard = group.sum(question, theta, bound=bound), True
            except LOST as error:  # whoever is away loses its turn
                failed = isinstance(error, PartyDeclined) and error.__cause__ is not None
                if failed or asked.asked == number:  # refused before anybody was asked
                    raise
                log.warning("round %d, step %d of %d ended without a total: %s", round, t, every, error.reason)
                away = error if away is None or isinstance(error, NobodyAnswered) else away
            moved = steps.move(theta, every * total / n + loss.ridge * theta, k, horizon)
            theta, average = moved, steps.average(average, theta, moved, k, horizon)
        if not heard and away is not None:
            raise away
        state = QueryState(round, theta, average)
        yield state


def _check_groups(federation: Federation, every: int) -> None:
    """Refuse, before the first question, fewer owners to a step than a total is made of."""
    least = federation.protection.least
    if federation.size // every < least:
        raise SettingsInvalid(
            f"{federation.size} owners in {every} steps, and a total through {federation.protection.aggregation} is of {least} "
            "owners or more.",
            remedy="Take fewer steps to a round, every=2, or ask everybody: gradient_queries.",
        )
