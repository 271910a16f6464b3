"""DP-SGD at each party, under a budget of its own: nobody but the party sees anything without noise.

    for each round:
        w                -> everybody                                            broadcast
        each party, while its own budget allows one round more:
            y <- w; several steps  y <- y - lr (G + noise) / B                   local: G of its sampled records, its noise
            y - w, 1                                                             sum
        each party whose budget is spent:  0, 0                                  sum
        w <- w + sum of (y - w) / number of parties that took part               server

A party decides by itself, from its own budget and public facts: how many rounds there were, and what one costs. So who takes
part tells nothing about records, and parties with small budgets help as long as they can.

Releases : the sum of updates, each the outcome of noisy steps, and the number of parties that took part; once per round.
State    : rounds that the party took part in. The party counts the larger of that and what the server's ledger says, so that
           neither a lost answer nor a server that asks again is free.
Unit     : record; each record belongs to one party, whose spending is its own.
Source   : Kaissis et al., Nature Machine Intelligence 2021 (PriMIA), Methods. Differs: noise on the integer grid; each record
           joins a step by itself; the divisor B is public.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

import numpy as np
import torch
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.events import Event
from hedgerow.core.federation import Federation
from hedgerow.core.ledger import Ledger
from hedgerow.core.party import Party
from hedgerow.core.question import local, name_of, travels
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy import Budget
from hedgerow.privacy.accounting import Accountant

from ..descent.work import tensors
from ..models import Model, Weights
from ..scale import Scale
from ..settings import StepSettings
from ..tasks.declared import Task
from ..training import above, at_least
from .clipped import clipped_sum
from .clipping import Clipping
from .dpsgd import GradientStep, RecordTask, unclipped
from .plan import RecordPlan
from .results import declares


@displayed
@dataclass(frozen=True)
class OwnBudgetsState:
    """A model after a round, and what each party has spent.

    Attributes
    ----------
    epsilons : dict from party to array of shape ()
        Epsilon of each of its records so far, by the accountant of the budgets; parties without a budget included.
    active : int
        Parties that took part in this round.
    """

    round: int
    weights: Weights
    epsilons: Mapping[str, Any]
    active: int


@travels
def no_rounds(broadcast: Any, party: Party) -> dict[str, np.ndarray]:
    """State of a party that took part in no round."""
    return {"rounds": np.zeros(())}


@local(private="plan")
def noisy_steps(
    broadcast: Mapping[str, Any],
    party: Party,
    rng: Any,
    *,
    plan: RecordPlan,
    model: Model,
    step: GradientStep,
    batch_sizes: Mapping[str, float],
    budgets: Mapping[str, Budget],
    rounds: int,
) -> dict[str, np.ndarray]:
    """Take the plan's steps; return the change of the trained parameters, (d,), and 1; zeros once the budget is spent."""
    x, target, w = tensors(party)
    flat = torch.from_numpy(np.array(broadcast["w"], np.float32))
    done = max(int(broadcast["asked"]), int(party.state["rounds"]))
    budget, divisor = budgets.get(party.id), batch_sizes.get(party.id, 1.0)
    began, n = flat.numpy().copy(), len(w)
    if budget is not None and plan.most_rounds(budget, rounds) <= done:
        return {"update": np.zeros_like(began), "n": np.zeros(())}
    party.state["rounds"] = np.asarray(done + 1.0)
    y, first, second = began, np.zeros_like(began), np.zeros_like(began)
    for t in range(plan.steps):
        rows = torch.from_numpy(np.flatnonzero(plan.joining(n, rng.entropy)))
        total, _ = clipped_sum(model, flat, x[rows], target[rows], w[rows], plan.clipping)
        y, first, second = step(
            y, plan.noisy(total.numpy(), rng.entropy) / divisor, first, second, t + 1, int(broadcast["round"])
        )
        flat = torch.from_numpy(y)
    return {"update": y - began, "n": np.ones(())}


@program(
    "DP-SGD at each party, which stops by its own budget (PriMIA 2021).",
    **declares(rounds=2, sampling_rate=0.5, batch_size=15, noise_multiplier=1.0, steps=3),
)
def local_dpsgd(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    noise_multiplier: float,
    sampling_rate: float,
    batch_size: float | list[float],
    steps: int = 10,
    clip: float | list[float] = 1.0,
    stop_at: float | list[float] | None = None,
    delta: float = 1e-5,
    accountant: Accountant = "rdp",
    features: list[str] | None = None,
    scale: Scale = "ranges",
    task: dict[str, Any] | Task | None = None,
    start: OwnBudgetsState | None = None,
    **settings: Unpack[StepSettings],
) -> Iterator[OwnBudgetsState]:
    """Private training at each party, which stops when its own budget is spent (Kaissis et al. 2021).

    Parties make their noise themselves, so the federation has no mechanism. What the rules remember begins at zero in every
    round of every party.

    Parameters
    ----------
    rounds : int
        At most so many, those before `start` included; fewer where every party's budget is spent before.
    noise_multiplier : float
        Standard deviation of a step's noise over the radius of the clip.
    sampling_rate : float
        Each record of a party joins a step by itself with this probability.
    batch_size : float or list of float
        What a step's sum is divided by: public. A list has one for each party, in their order.
    steps : int
        Of each party in a round.
    stop_at : float or list of float, optional
        Epsilon at which a party stops; a list has one for each party, in their order. Without it nobody does.
    delta : float
        Of all parties' guarantees.
    accountant : str
        With which parties count; see `hedgerow.privacy.Budget`.

    Notes
    -----
    Other parameters as `hedgerow.learn.records.dpsgd`.

    Yields
    ------
    OwnBudgetsState
        After each round in which a party took part.

    Releases
    --------
    The sum of updates over the trained parameters and the number of parties that took part, once per round.

    Raises
    ------
    ModelInvalid (HR-510), SettingsInvalid (HR-511), BudgetInvalid (HR-214), UnlawfulChannel (HR-211)
        Before any party is asked.
    """
    plan = RecordPlan(Clipping.of(clip), noise_multiplier, sampling_rate, steps)
    step = GradientStep.of(rounds, settings)
    at_least(1, rounds=rounds)
    unclipped(federation)
    names = federation.names
    batch_sizes = _for_each("batch_size", batch_size, names)
    above(0.0, **{f"batch_size of {name}": value for name, value in batch_sizes.items()})
    limits = {} if stop_at is None else _for_each("stop_at", stop_at, names)
    budgets = {name: Budget(limit, delta, "record", accountant=accountant) for name, limit in limits.items()}
    ready = RecordTask.of(federation, module, features, max(batch_sizes.values()), plan.clipping, scale=scale, task=task)
    model = ready.model
    ask = partial(noisy_steps, plan=plan, model=model, step=step, batch_sizes=batch_sizes, budgets=budgets, rounds=rounds)
    w = model.initial if start is None else model.flat(start.weights)
    for t in range(start.round if start else 0, rounds):
        asked = rounds_asked(federation.ledger, plan)
        if not any(_goes_on(plan, budgets.get(name), asked, rounds) for name in names):
            return
        sent = {"w": w, "asked": np.asarray(float(asked)), "round": np.asarray(float(t))}
        total: Any = ready.federation.sum(ask, sent, init=no_rounds)
        w = w + (total["update"] / max(float(total["n"]), 1.0)).astype(np.float32)
        known = rounds_asked(federation.ledger, plan)
        yield OwnBudgetsState(t + 1, model.named(w), _spent(plan, budgets, names, known, rounds, delta), int(total["n"]))


def rounds_asked(ledger: Ledger, plan: RecordPlan) -> int:
    """Rounds that were asked for in this ledger, answered or not; refuse to go on with another plan."""
    events: list[Event] = [entry.event for entry in ledger.entries if entry.query == name_of(noisy_steps)]
    if any(event != plan.event() for event in events):
        raise SettingsInvalid(
            f"parties were asked for rounds of {events[0]} before, and would count those as rounds of {plan.event()}.",
            remedy="Continue with the same noise_multiplier, sampling_rate and steps, or begin with a new federation.",
        )
    return len(events)


def _goes_on(plan: RecordPlan, budget: Budget | None, asked: int, rounds: int) -> bool:
    return budget is None or plan.most_rounds(budget, rounds) > asked


def _spent(
    plan: RecordPlan, budgets: Mapping[str, Budget], names: Any, asked: int, rounds: int, delta: float
) -> dict[str, np.ndarray]:
    """Epsilon of each party, from the rounds that it took part in."""
    found: dict[tuple[int, Budget], float] = {}
    spent = {}
    for name in names:
        budget = budgets.get(name, Budget(float("inf"), delta, "record", accountant="rdp"))
        took = min(asked, plan.most_rounds(budget, rounds)) if name in budgets else asked
        if (took, budget) not in found:
            found[took, budget] = plan.spent(took, budget)
        spent[name] = np.asarray(found[took, budget])
    return spent


def _for_each(what: str, given: float | list[float], names: Any) -> dict[str, float]:
    """A number for each party."""
    values = [given] * len(names) if isinstance(given, (int, float)) else list(given)
    if len(values) != len(names):
        raise SettingsInvalid(
            f"{what} has {len(values)} numbers for {len(names)} parties.", remedy="Give one for each party, in their order."
        )
    return {name: float(value) for name, value in zip(names, values, strict=True)}
