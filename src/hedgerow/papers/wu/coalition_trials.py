"""With whom: gradient queries of four coalitions, many times over, beside what was forecast before the first question.

    pilot     <- s, A, bias and f(theta*) of the server's records, which belong to no owner         public
    for each number of records n_1 of the first owner:
        for each way: everybody equally, owner 1 alone, the best prefix, the best weights
            w         <- by the formula of `hedgerow.market.coalitions`, from the pilot, n and the epsilons
            forecast  <- (excess(w) - s / n) / f(theta*)          n: all records of the owners
            for k = 1 .. T:
                theta of all repeats      -> owners with w > 0                              broadcast
                their gradients           <- each with noise of its own, times w            local, sum
                step, projection, average, for each repeat                                  server

Who has no weight is not asked and spends nothing. Owners hold more records than they bring: a share of them, by the records'
buckets (`hedgerow.learn.queries.inputs`). Fitness is of all their records, so that all coalitions aim at the same; those are a
sample themselves, and the excess on them is less by s / n than on records that nobody holds.

Releases : weighted sums of gradients of all repeats; for each n_1 and way once for each k.
State    : none at the parties.
Unit     : record.
Source   : Wu 2019, Figures 3.5 and 3.10: four kinds of others, small or large, conservative or eager. Differs: the thesis has
           everybody with equal weights alone; n_1 is swept at one epsilon; what is forecast is from public records.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, Key, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Parties
from hedgerow.core.question import local
from hedgerow.data import Table, complete_cases, load
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.queries import Answers, Inputs, QueryLoss, Steps, answers_for, inputs, partial_gradient
from hedgerow.learn.queries.answers import Neighbours, NoiseLaw
from hedgerow.learn.queries.keys import INPUTS, loss_of_keys, spec_of_keys
from hedgerow.learn.queries.steps import Rule
from hedgerow.market import (
    CoalitionWorth,
    PilotEstimate,
    best_prefix,
    best_weights,
    excess,
    forecast,
    leave_one_out,
    precisions,
    propagate,
    shapley,
    variances,
)
from hedgerow.market.worth import FEW

if TYPE_CHECKING:
    from hedgerow.report import Outcome

WORTHS = (
    "share of the precision",
    "missing without it, best weights",
    "Shapley, best weights",
    "missing without it, equal weights",
    "Shapley, equal weights",
)
WAYS = ("everybody equally", "owner 1 alone", "best prefix", "best weights")


@dataclass(frozen=True)
class CoalitionTrialState:
    """Trials, one after the other.

    Attributes
    ----------
    round : int
        Trials that have ended.
    weights : array of shape (points, ways, owners)
        0 of an owner that is not asked.
    forecast : array of shape (points, ways)
        Relative fitness, as it was expected.
    interval : array of shape (points, ways, 2)
        Between which 90 of 100 runs were expected; NaN where only numbers of a pilot are known.
    worth : array of shape (points, owners, len(WORTHS))
        What each owner is worth, as it was expected; of relative fitness where it is no share.
    nobody : float
        Relative fitness of zeros, which cost no question, by the pilot.
    average : array of shape (points, ways, repeats, d)
        Results; zeros until then.
    """

    round: int
    weights: Array
    forecast: Array
    interval: Array
    worth: Array
    nobody: float
    average: Array


@dataclass(frozen=True)
class Known:
    """What the forecast stands on: s, A, bias, f(theta*), and the excess of zeros.

    Where nothing is known of the loss, noise alone decides on the weights, and nothing is forecast.
    """

    sampling: float = 0.0
    amplification: float = 1.0
    bias: float = math.nan
    least: float = math.nan
    nobody: float = math.nan
    estimate: PilotEstimate | None = None

    @classmethod
    def of_records(cls, test: Table, loss: QueryLoss, spec: Inputs, steps: Steps, horizon: int) -> Known:
        """From the server's records."""
        estimate = PilotEstimate.of_table(loss, spec, test, steps.box, "records of the server")
        found, rows = propagate(estimate, steps, horizon), estimate.rows
        assert rows is not None
        begun = float(loss.cost(np.zeros(spec.size), rows.x, rows.y, rows.w))
        return cls(estimate.sampling, found.amplification, found.bias, estimate.least, begun - estimate.least, estimate)

    def interval(self, steps: Steps, plan: Answers, records: Array, held: float) -> tuple[float, float]:
        """Ends of the relative fitness, on all that is held, of 90 of 100 runs of owners with a plan."""
        if self.estimate is None:
            return math.nan, math.nan
        w = np.array([plan.weight(owner) for owner, _ in plan.epsilons])
        rest = max(0.0, 1 - (w @ records) ** 2 / (np.square(w) @ records) / held)  # of the sampling of a sample
        found = forecast(replace(self.estimate, scatter=rest * self.estimate.scatter), steps, plan.horizon, plan, records, w)
        return found.low, found.high

    def worth(self, records: Array, noise: Array) -> Array:
        """What each owner is worth: shape (owners, len(WORTHS)); Shapley's shares of `FEW` owners at most."""
        given = (records, noise, self.sampling, self.amplification)
        own, columns = precisions(*given), []
        for kind in (CoalitionWorth.of_best_weights, CoalitionWorth.of_equal_weights):
            found = kind(*given, self.bias, self.nobody)
            shares = shapley(found) if len(records) <= FEW else np.full(len(records), np.nan)
            columns += [leave_one_out(found) / self.least, shares / self.least]
        return np.column_stack([own / own.sum(), *columns])


def outcome(
    federation: Federation, settings: Mapping[str, Any], state: CoalitionTrialState, records: Parties | None = None
) -> Outcome:
    """Forecast beside what was achieved."""
    from .coalition_pages import outcome

    return outcome(federation.schema, settings, state, records)


@local(private="plan")
def owner_gradients(
    broadcast: Array, party: Any, rng: Any, *, loss: QueryLoss, box: float, shares: tuple[tuple[str, float], ...], plan: Answers
) -> Array:
    """Gradients of an owner's share of its records, with the owner's own noise on each repeat, times its weight."""
    total = partial_gradient(broadcast, party, rng, loss=loss, box=box, share=dict(shares).get(party.id, 1.0))
    return plan.noisy(party.id, total, rng.entropy)


def ways_of(records: Array, noise: Array, known: Known, held: float) -> tuple[Array, Array]:
    """Weights of each way, shape (ways, owners), and its expected relative fitness on all that is held, shape (ways,)."""
    given = (records, noise, known.sampling, known.amplification)
    alone = np.arange(len(records)) == 0
    weights = np.array([np.ones(len(records)), alone, best_prefix(*given).members, best_weights(*given)], float)
    return weights, (excess(weights, *given, known.bias) - known.sampling / held) / known.least


@program(
    "Coalitions of owners, with equal and with the best weights: relative fitness, forecast and achieved (Wu 2019, 3.3).",
    keys=INPUTS
    | {
        "called": Key(str, "", "the data set, in titles"),
        "scenario": Key(str, "", "what the others are like, in titles"),
    },
    bind={"loss": loss_of_keys, "spec": spec_of_keys},
    fixed={"test": None},
    with_test=True,
    outcome=outcome,
    with_records=True,
    case=lambda: Case(
        load("hie").select(["mdvis", "lncoins", "idp", "physlm", "disea"]).take(range(200)),
        {
            "held": [50, 50, 50, 50],
            "firsts": [0.5, 1.0],
            "horizon": 2,
            "repeats": 2,
            "epsilon": 50.0,
            "ridge": 1.0,
            "openness": 0.1,
            "pilot": [1.0, 0.2, 0.01, 0.1, 0.05],
            "step": 0.5,
        },
    ),
)
def coalition_trials(
    federation: Federation,
    *,
    loss: QueryLoss,
    spec: Inputs,
    held: list[int],
    epsilon: float,
    openness: float = 1.0,
    firsts: list[float] = [1.0],  # noqa: B006
    others: float = 1.0,
    horizon: int = 100,
    repeats: int = 40,
    noise: NoiseLaw = "laplace",
    neighbours: Neighbours = "replace-one",
    delta: float = 1e-6,
    rule: Rule = "algorithm-2",
    step: float = 1.0,
    box: float = 1.0,
    convexity: float = 0.0,
    pilot: list[float] | None = None,
    test: Table | None = None,
    start: CoalitionTrialState | None = None,
) -> Iterator[CoalitionTrialState]:
    """Train every coalition at every number of records of the first owner.

    Parameters
    ----------
    held : list of int
        Records of each party, in order: constants in public.
    epsilon : float
        Of the first owner, over the horizon.
    openness : float
        The others' epsilon over the first's: below 1 they are conservative, above it eager.
    firsts : list of float
        Shares of its records that the first owner brings, each in turn.
    others : float
        Share of their records that the others bring.
    horizon : int
        Questions of a training.
    repeats : int
        Trainings of each; the ledger charges all of them.
    noise : {"laplace", "gaussian"}
        Of the owners' answers.
    neighbours : {"replace-one", "add-remove"}
        For whom epsilons hold.
    delta : float
        For Gaussian noise.
    rule : {"algorithm-2", "algorithm-1", "strongly-convex"}
        Steps and average (`hedgerow.learn.queries.Steps`).
    step : float
        The first step: about one over the largest curvature.
    box : float
        Largest absolute value of a coefficient.
    convexity : float
        Least curvature, for the rule `strongly-convex`.
    pilot : list of float, optional
        s, A, bias, f(theta*) and the excess of zeros, in place of the server's records.

    Yields
    ------
    CoalitionTrialState

    Raises
    ------
    SettingsInvalid (HR-511)
        A setting is out of its range.
    BudgetInvalid (HR-214)
        An epsilon or delta is out of its range.
    """
    owners, steps, todo = list(federation.names), Steps(rule, step, box, convexity), len(firsts) * len(WAYS)
    if len(held) != len(owners) or min(held) < 1 or min(repeats, horizon, len(firsts)) < 1:
        raise SettingsInvalid(
            f"{held=}, {repeats=}, {horizon=}, {firsts=} of {len(owners)} parties.",
            remedy="Say how many records each party holds; numbers are at least 1.",
        )
    if not all(0 < share <= 1 for share in (*firsts, others)):
        raise SettingsInvalid(f"{firsts=}, {others=}.", remedy="A share of an owner's records lies in (0, 1].")
    if pilot is not None and len(pilot) != 5:
        raise SettingsInvalid(f"{pilot=}.", remedy="Give s, A, bias, f(theta*) and the excess of zeros.")
    known = Known(*pilot) if pilot else Known() if test is None else Known.of_records(test, loss, spec, steps, horizon)
    prepared = complete_cases(federation, [*spec.features, spec.target], count=False).prepare(inputs, spec=spec)
    epsilons = {owner: epsilon * (openness if i else 1.0) for i, owner in enumerate(owners)}

    def answers(w: Array) -> Answers:
        """The plan of the owners that have a weight."""
        asked = {owner: float(one) for owner, one in zip(owners, w, strict=True) if one > 0}
        told: dict[str, Any] = {"law": noise, "neighbours": neighbours, "delta": delta if noise == "gaussian" else 0.0}
        given = {owner: epsilons[owner] for owner in asked}
        return answers_for(federation.schema, given, horizon, loss, spec, box, **told, repeats=repeats, weights=asked)

    shares = np.array([[first, *[others] * (len(owners) - 1)] for first in firsts])
    brought, added = np.maximum(np.round(shares * held), 1.0), np.array([*variances(answers(np.ones(len(owners)))).values()])
    weights, expected = map(np.array, zip(*(ways_of(n, added, known, sum(held)) for n in brought), strict=True))
    plans = [[answers(w) for w in ways] for ways in weights]
    interval = [
        [known.interval(steps, plan, n[w > 0], sum(held)) for plan, w in zip(*row, strict=True)]
        for n, *row in zip(brought, plans, weights, strict=True)
    ]
    worth, empty = np.array([known.worth(n, added) for n in brought]), np.zeros((*expected.shape, repeats, spec.size))
    nothing = known.nobody / known.least
    state = start or CoalitionTrialState(0, weights, expected, np.array(interval), worth, nothing, empty)
    for number in range(state.round, todo):
        i, way = divmod(number, len(WAYS))
        plan, n = plans[i][way], float(weights[i, way] @ brought[i])
        plan.fit(spec.size)
        told = tuple((owner, float(share)) for owner, share in zip(owners, shares[i], strict=True))
        cohort = prepared.pick([owner for owner, _ in plan.epsilons])
        question = partial(owner_gradients, loss=loss, box=box, shares=told, plan=plan)
        theta, average, found = np.zeros(empty.shape[2:]), np.zeros(empty.shape[2:]), state.average.copy()
        for k in range(1, horizon + 1):
            moved = steps.move(theta, cohort.sum(question, theta) / n + loss.ridge * theta, k, horizon)
            theta, average = moved, steps.average(average, theta, moved, k, horizon)
        found[i, way] = average
        state = replace(state, round=number + 1, average=found)
        yield state
