"""Gradient queries: linear models by noisy gradients of owners that keep their records.

    for k = 1 .. T:
        theta, k             -> owners                                          broadcast
        sum of gradients, with noise of the owner or of the channel             local, sum
        gradient             <- sum / n + ridge theta                           server
        theta                <- project(theta - step_k gradient)                server
        average              <- (3.6) or the rule's own                          server

Releases : the sum of gradients, shape of theta; once in each of T rounds.
State    : none at the parties.
Unit     : record. Bounded by l1 (Laplace) or l2 (Gaussian), from the ranges of inputs and box: `bound_of`.
Source   : Wu 2019, Algorithms 1 and 2. Differs: owners send sums, and n is a constant in public; the average is that after
           all T questions which the noise pays for, where the thesis's loop asks T - 1; `steps` tells the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, l1, l2
from hedgerow.core.federation import Federation
from hedgerow.core.question import local
from hedgerow.errors import BudgetExhausted, SettingsInvalid, UnboundedSum

from .answers import Answers, Neighbours, NoiseLaw
from .inputs import Inputs, X, Y, inputs
from .losses import Loss
from .steps import Steps

if TYPE_CHECKING:
    from hedgerow.data import Schema


@dataclass(frozen=True)
class QueryState:
    """A linear model after some questions.

    Attributes
    ----------
    round : int
    theta : array of shape (d,)
        The iterate.
    average : array of shape (d,)
        The result: what the rule makes of the iterates so far.
    """

    round: int
    theta: Array
    average: Array


@local(additive=True)
def gradient(broadcast: Array, party: Any, rng: Any, *, loss: Loss, box: float) -> Array:
    """Sum of the gradients of a party's records, of shape (..., d) for theta of that shape, which is held to the box."""
    return loss.gradient_sums(held(broadcast, box), party[X], party[Y], party.w)


@local(private="plan")
def private_gradient(broadcast: Array, party: Any, rng: Any, *, loss: Loss, box: float, plan: Answers) -> Array:
    """The same with the owner's own noise, under its own epsilon."""
    return plan.noisy(party.id, gradient(broadcast, party, rng, loss=loss, box=box), rng.entropy)


def held(theta: Array, box: float) -> Array:
    """theta inside the box, whoever sent it: outside, a gradient may be longer than its bound."""
    inside: Array = np.clip(np.nan_to_num(np.asarray(theta, float)), -box, box)
    return inside


def length_of(loss: Loss, spec: Inputs, box: float, norm: int) -> float:
    """Largest l1- or l2-length of one record's gradient, the thesis's Xi.

    A margin x'theta reaches at most |x|_1 box, and a gradient is the slope there times x.
    """
    return loss.steepest(spec.length(1) * box) * spec.length(norm)


def longest_of(schema: Schema | None, loss: Loss, spec: Inputs, box: float, norm: int) -> float | None:
    """The same for a record of the largest declared weight; None where weights declare no range."""
    heaviest = 1.0 if schema is None else schema.heaviest
    return None if heaviest is None else heaviest * length_of(loss, spec, box, norm)


def bound_of(federation: Federation, loss: Loss, spec: Inputs, box: float, times: int = 1) -> Bound | None:
    """The bound of one record's gradient, in the norm of the channel's noise; None where weights declare no range.

    Parameters
    ----------
    times : int
        So many gradients are asked at once.
    """
    norm = 1 if federation.protection.law in ("laplace", "geometric") else 2
    longest = longest_of(federation.schema, loss, spec, box, norm)
    if longest is None:
        return None
    return l1(times * longest, unit="record") if norm == 1 else l2(times**0.5 * longest, unit="record")


def answers_for(
    schema: Schema | None,
    epsilons: Mapping[str, float],
    horizon: int,
    loss: Loss,
    spec: Inputs,
    box: float,
    *,
    law: NoiseLaw = "laplace",
    neighbours: Neighbours = "replace-one",
    delta: float = 0.0,
    repeats: int = 1,
) -> Answers:
    """Plan the owners' answers to `gradient_queries`.

    Parameters
    ----------
    epsilons : mapping from owner to float
        Over the horizon.
    horizon : int
        Questions on which the owners agree.
    box : float
        That of the steps.
    law, neighbours, delta, repeats
        As of `Answers`.

    Raises
    ------
    UnboundedSum (HR-210)
        Record weights declare no range.
    BudgetInvalid (HR-214)
        An epsilon, a horizon or a delta that is out of its range.
    """
    radius = longest_of(schema, loss, spec, box, 1 if law == "laplace" else 2)
    if radius is None:
        raise UnboundedSum("record weights declare no range, so a record's gradient has no bound.", remedy="Declare it.")
    return Answers.of(epsilons, horizon, radius=radius, law=law, neighbours=neighbours, delta=delta, repeats=repeats)


def gradient_queries(
    federation: Federation,
    *,
    loss: Loss,
    spec: Inputs,
    n_records: int,
    rounds: int,
    steps: Steps,
    answers: Answers | None = None,
    start: QueryState | None = None,
) -> Iterator[QueryState]:
    """Train a linear model by gradient queries.

    Parameters
    ----------
    federation : Federation
        Protected by a channel with a mechanism; or without one, and then `answers` says what noise each owner adds.
    loss : Loss
    spec : Inputs
        How records become inputs of bounded length.
    n_records : int
        The thesis's n: by which sums are divided. A constant in public; a rough one changes the weight of the ridge.
    rounds : int
        The horizon T.
    steps : Steps
    answers : Answers, optional
        Noise at the owners, under epsilons of their own (`answers_for`).

    Yields
    ------
    QueryState
        `average` is the model.

    Releases
    --------
    A sum of gradients, once in each round.

    Raises
    ------
    BudgetExhausted (HR-213)
        The owners' agreed questions are used up; before anybody is asked.
    UnboundedSum (HR-210)
        The channel adds noise, and record weights declare no range.
    BudgetInvalid (HR-214), SettingsInvalid (HR-511)
        An epsilon, a horizon or a step that is out of its range; an owner without an epsilon.
    """
    _check(n_records, rounds)
    zero = np.zeros(spec.size)
    state = start or QueryState(0, zero, zero)
    asked, bound = federation.prepare(inputs, spec=spec), bound_of(federation, loss, spec, steps.box)
    if answers is not None:
        answers.refuse_strangers(federation.members)
        answers.fit(spec.size)
        norm = 1 if answers.law == "laplace" else 2
        _check_answers(answers, rounds, longest_of(federation.schema, loss, spec, steps.box, norm))
    for k in range(state.round + 1, rounds + 1):
        if answers is None:
            total = asked.sum(partial(gradient, loss=loss, box=steps.box), state.theta, bound=bound)
        else:
            _refuse_beyond(federation, answers)
            total = asked.sum(partial(private_gradient, loss=loss, box=steps.box, plan=answers), state.theta)
        moved = steps.move(state.theta, total / n_records + loss.ridge * state.theta, k, rounds)
        state = QueryState(k, moved, steps.average(state.average, state.theta, moved, k, rounds))
        yield state


def _check(n_records: int, rounds: int) -> None:
    for name, value in (("n_records", n_records), ("rounds", rounds)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise SettingsInvalid(f"{name} = {value!r}.", remedy="Give a whole number of at least 1.")


def _check_answers(answers: Answers, rounds: int, longest: float | None) -> None:
    if rounds > answers.horizon:
        raise BudgetExhausted(
            f"{rounds} rounds ask more than the {answers.horizon} questions on which the owners agreed.",
            remedy="Ask fewer rounds, or plan answers for a longer horizon; their noise grows with it.",
        )
    if longest is None or answers.bound.radius < longest * (1 - 1e-12):
        raise UnboundedSum(
            f"a record's gradient can be {longest or math.inf:g} long, but the answers are noised for {answers.bound}.",
            remedy="Plan them by answers_for with the same loss, inputs and box.",
        )


def _refuse_beyond(federation: Federation, answers: Answers) -> None:
    """Refuse a question beyond the agreed horizon, whichever program asked the earlier ones."""
    asked = federation.ledger.uses(answers.key)
    if asked >= answers.horizon:
        raise BudgetExhausted(
            f"{asked} questions were answered of the {answers.horizon} on which the owners agreed.",
            remedy="What was released stands. For more, agree on a new horizon and new epsilons; they add up.",
        )
