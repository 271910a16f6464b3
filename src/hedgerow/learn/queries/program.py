"""Gradient queries: linear models by noisy gradients of owners that keep their records.

    for k = 1 .. T:
        theta, k             -> owners                                          broadcast
        sum of gradients, with noise of the owner or of the channel             local, sum
        gradient             <- sum / n + ridge theta                           server; with weights n is sum_l w_l n_l
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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.question import local
from hedgerow.core.whole import BITS, bound_in
from hedgerow.data import complete_cases, load
from hedgerow.display import displayed
from hedgerow.errors import BudgetExhausted, SettingsInvalid, UnboundedSum, suggestion

from . import results
from .answers import Answers, answered, refuse_beyond
from .inputs import Inputs, X, Y, inputs
from .keys import INPUTS, OWNERS, loss_of_keys, planned_answers, spec_of_keys, steps_of_keys
from .lengths import bound_of, longest_of
from .losses import QueryLoss
from .steps import Steps


@displayed
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


@local(additive=True, holds=BITS)
def gradient(broadcast: Array, party: Any, rng: Any, *, loss: QueryLoss, box: float, bounds: Bounds | None = None) -> Array:
    """Sum of the gradients of a party's records, of shape (..., d) for theta of that shape, which is held to the box."""
    if bounds is not None:
        return loss.whole_gradients(held(broadcast, box), party[X], party[Y], party.w, bound_in(bounds, ""))
    return loss.gradient_sums(held(broadcast, box), party[X], party[Y], party.w)


@local(private="plan")
def private_gradient(broadcast: Array, party: Any, rng: Any, *, loss: QueryLoss, box: float, plan: Answers) -> Array:
    """The same with the owner's own noise, under its own epsilon."""
    return plan.noisy(party.id, gradient(broadcast, party, rng, loss=loss, box=box, bounds=plan.bound), rng.entropy)


def held(theta: Array, box: float) -> Array:
    """theta inside the box, whoever sent it: outside, a gradient may be longer than its bound."""
    inside: Array = np.clip(np.nan_to_num(np.asarray(theta, float)), -box, box)
    return inside


@program(
    "Linear models by noisy gradients, each owner under an epsilon of its own (Wu 2019, Algorithms 1 and 2).",
    keys={**INPUTS, **OWNERS},
    bind={"loss": loss_of_keys, "spec": spec_of_keys, "steps": steps_of_keys, "answers": planned_answers},
    outcome=results.model,
    watch=results.watch,
    with_records=True,
    case=lambda: Case(
        load("hie").select(["mdvis", "lncoins", "idp", "physlm", "disea"]).take(range(200)),
        {
            "rounds": 2,
            "epsilons": {f"party {i}": 50.0 * i for i in range(1, 5)},
            "weights": {f"party {i}": 0.21 * i for i in range(1, 5)},
            "ridge": 1.0,
            "n_records": {f"party {i}": 50 for i in range(1, 5)},
            "box": 1.0,
            "step": 0.5,
        },
    ),
)
def gradient_queries(
    federation: Federation,
    *,
    loss: QueryLoss,
    spec: Inputs,
    n_records: int | dict[str, int],
    rounds: int,
    steps: Steps,
    answers: Answers | None = None,
    left_out: list[str] | None = None,
    start: QueryState | None = None,
) -> Iterator[QueryState]:
    """Train a linear model by gradient queries.

    Parameters
    ----------
    federation : Federation
        Protected by a channel with a mechanism; or without one, and then `answers` says what noise each owner adds.
    loss : QueryLoss
    spec : Inputs
        How records become inputs of bounded length.
    n_records : int or dict from owner to int
        The thesis's n, of all owners or of each, by which sums are divided: sum_l w_l n_l where owners have weights. Constants
        in public; rough ones change the weight of the ridge. Where records have weights of their own, their sum.
    rounds : int
        The horizon T.
    steps : Steps
    answers : Answers, optional
        Noise at the owners, under epsilons of their own, and their public weights (`answers_for`).
    left_out : list of str, optional
        Parties of the federation that take no part: they are not asked.

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
        An epsilon, a horizon or a step that is out of its range; an owner without an epsilon, or without a number of records.
    """
    if left_out:
        federation = without(federation, left_out, answers)
    n = divisor(n_records, federation.members, answers)
    check_count("rounds", rounds)
    zero = np.zeros(spec.size)
    state = start or QueryState(0, zero, zero)
    known = complete_cases(federation, [*spec.features, spec.target], count=False)
    asked, bound = known.prepare(inputs, spec=spec), bound_of(federation, loss, spec, steps.box)
    if answers is not None:
        answers.refuse_strangers(federation.members)
        answers.fit(spec.size)
        norm = 1 if answers.law == "laplace" else 2
        check_answers(answers, rounds, longest_of(federation.schema, loss, spec, steps.box, norm))
        in_turn = answered(federation.ledger.entries, answers) - federation.ledger.uses(answers.key)
    for k in range(state.round + 1, rounds + 1):
        if answers is None:
            total = asked.sum(partial(gradient, loss=loss, box=steps.box), state.theta, bound=bound)
        else:
            refuse_beyond(answers, 1, federation.ledger.uses(answers.key) + in_turn)
            total = asked.sum(partial(private_gradient, loss=loss, box=steps.box, plan=answers), state.theta)
        moved = steps.move(state.theta, total / n + loss.ridge * state.theta, k, rounds)
        state = QueryState(k, moved, steps.average(state.average, state.theta, moved, k, rounds))
        yield state


def without(federation: Federation, left_out: Sequence[str], answers: Answers | None) -> Federation:
    """The parties that take part; who is left out is public and depends on nobody's data.

    Raises
    ------
    SettingsInvalid (HR-511)
        One that agreed on an epsilon, nobody else, or, where none agreed on any, no party of that name.
    """
    agreed = set() if answers is None else {name for name, _ in answers.epsilons}
    for name in left_out:
        if name in agreed:
            raise SettingsInvalid(
                f"left_out names {name!r}, which agreed on an epsilon.", remedy="Leave it out of one of the two."
            )
        if answers is None and name not in federation.names:  # with answers a stranger is refused anyway
            raise SettingsInvalid(
                f"left_out names {name!r}, which is no party.", remedy=suggestion(name, federation.names[:50])
            )
    staying = [name for name in federation.names if name not in set(left_out)]
    if not staying:
        raise SettingsInvalid("left_out names every party.", remedy="Somebody has to be asked.")
    return federation.pick(staying)


def divisor(n_records: int | Mapping[str, int], members: Sequence[str], answers: Answers | None) -> float:
    """By what a total of gradients is divided: records of all owners, or of those asked, times their weights; all public.

    Raises
    ------
    SettingsInvalid (HR-511)
        Not a whole number above zero; an owner whose records are not said; weights, and one number for all owners.
    """
    each = n_records if isinstance(n_records, Mapping) else {"": n_records}
    for owner, value in each.items():
        check_count(f"n_records of {owner}" if owner else "n_records", value)
    if isinstance(n_records, Mapping) and (missing := [name for name in members if name not in n_records]):
        raise SettingsInvalid(
            f"n_records says nothing of {', '.join(missing[:5])}.", remedy=suggestion(missing[0], [*n_records])
        )
    weights = {} if answers is None else dict(answers.weights)
    if weights and not isinstance(n_records, Mapping):
        raise SettingsInvalid(
            f"n_records = {n_records} of all owners together, and owners have weights.",
            remedy="Say how many records each has: n_records = { 'bank 1' = 4000, 'bank 2' = 1000 }.",
        )
    if not isinstance(n_records, Mapping):
        return float(n_records)
    return float(sum(weights.get(name, 1.0) * n_records[name] for name in members))


def check_count(name: str, value: int) -> None:
    """Refuse what is no whole number above zero."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsInvalid(f"{name} = {value!r}.", remedy="Give a whole number of at least 1.")


def check_answers(answers: Answers, rounds: int, longest: float | None) -> None:
    """Refuse answers that do not pay for so many rounds, or for gradients of this length."""
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
