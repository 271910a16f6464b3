"""DP-SGD over a federation: a noisy sum of clipped gradients of sampled records, and a step of the server along it.

    for each round:
        each record joins by itself with probability q                           sampling, at its party
        G <- sum over records  w_i g_i min(1, S / |w_i g_i|)  + noise            sum, with the channel's noise
        y <- step of the server along G / B                                      B is public, never how many joined

With noise at the server the sum is that of the pooled records, so for any number of parties this is DP-SGD on their union.
What the server makes of a sum (momentum, Adam) costs nothing more, and what it remembers begins at zero.

Releases : the sum of clipped gradients, of shape (d,), once per round.
State    : none at the parties.
Unit     : record. The bound is l2(S), or l2(sqrt(sum S_l^2)) where layers are clipped apart, to the last bit: behind a
           mechanism, or where rows are hidden, sums are exact (`exact`); one event a round. Without either the server sees
           every party's sum, torch finds it, and nothing is bounded.
Source   : Abadi et al., CCS 2016, Algorithm 1. Differs: its lot of expected size L = qN is divided by B, which need not be qN,
           since N may be secret; noise is drawn on the integer grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Unpack

import numpy as np
import torch
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid, UnlawfulChannel

from ..descent.rules import RULES, RuleName
from ..descent.work import tensors
from ..models import Model, Weights
from ..scale import Scale, warn_unscaled
from ..schedule import Schedule
from ..settings import StepSettings, filled
from ..tasks.declared import Task
from ..tensors import blank, prepared
from ..tokens import warn_of_tokens
from ..training import above, at_least, how_read, model_of, names_and_scale, warn_of_parties
from .clipped import clipped_gradients, exact_of, recipe_of
from .clipping import Clipping
from .results import declares
from .rewrite import separate
from .trained import Trained


@displayed
@dataclass(frozen=True)
class RecordState:
    """A model after a round, and what the server's rule remembers of the trained parameters, of shape (d,)."""

    round: int
    weights: Weights
    first: np.ndarray
    second: np.ndarray


@dataclass(frozen=True)
class GradientStep:
    """A step along a gradient: post-processing of what was released.

    Parameters
    ----------
    rule : str
        See `hedgerow.learn.descent.rules`.
    """

    rule: RuleName = "sgd"
    learning_rate: float = 0.1
    momentum: float = 0.9
    second_decay: float = 0.999
    epsilon: float = 1e-8
    schedule: Schedule = field(default_factory=Schedule)

    @classmethod
    def of(cls, rounds: int, settings: Mapping[str, Any]) -> GradientStep:
        """A step by the settings of a program, `hedgerow.learn.StepSettings`, checked."""
        given = filled(settings, StepSettings)
        schedule = Schedule(given.pop("schedule"), given.pop("decay"), given.pop("period"), rounds)
        step = cls(given.pop("solver"), **given, schedule=schedule)
        step.check()
        return step

    def check(self) -> None:
        """Refuse what is out of range."""
        if self.rule not in RULES:
            raise SettingsInvalid(f"solver is {self.rule!r}.", remedy=f"Known: {', '.join(RULES)}.")
        above(0.0, learning_rate=self.learning_rate)
        at_least(0.0, momentum=self.momentum, second_decay=self.second_decay, epsilon=self.epsilon)
        problems = self.schedule.problems()
        if self.momentum >= 1 or self.second_decay >= 1:
            problems.append(f"momentum is {self.momentum} and second_decay is {self.second_decay}")
        if problems:
            raise SettingsInvalid("; ".join(problems) + ".", remedy="Decays lie in [0, 1), periods are at least one.")

    def __call__(
        self, y: np.ndarray, gradient: np.ndarray, first: np.ndarray, second: np.ndarray, t: int, round: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Take step number t, counted from one, in a round, counted from zero; all arrays have shape (d,)."""
        rate = self.learning_rate * self.schedule.factor(round)
        given = (torch.from_numpy(np.ascontiguousarray(value, np.float32)) for value in (y, gradient, first, second))
        found = RULES[self.rule](*given, rate, self.momentum, self.second_decay, self.epsilon, t)
        y, first, second = (value.numpy() for value in found)
        return y, first, second


@dataclass(frozen=True)
class RecordTask:
    """A federation with a model whose gradients are found record by record."""

    federation: Federation
    model: Model
    trained: Trained

    @classmethod
    def of(
        cls,
        federation: Federation,
        module: nn.Module,
        features: list[str] | None,
        batch_size: float,
        clipping: Clipping,
        *,
        exact: bool = True,
        scale: Scale = "ranges",
        task: Any = None,
    ) -> RecordTask:
        """Check a module and a clip before any party is asked, and find out how gradients are found."""
        separate(module)
        how = how_read(module, federation, features, scale, task)
        model = model_of(module, federation, features, max(int(batch_size), 1), scale=how)
        names = {name: np.repeat(value, 2, 0)[:3] for name, value in blank(federation.schema, features, how).items()}
        x, target, _ = tensors(Party("nobody", names, np.ones(3)))
        trained = (exact_of(model, tuple(x.shape[1:])) if exact else recipe_of(model, x, target)).trained
        trained.check(clipping)
        warn_unscaled(federation.schema, *names_and_scale(how, features or list(federation.schema.features)))
        warn_of_tokens(model, federation.schema)
        warn_of_parties(federation, features, how, federation.schema.features)
        return cls(prepared(federation, features, scale=how), model, trained)


@program(
    "Private training: noisy sums of clipped record gradients (Abadi et al. 2016).",
    **declares(rounds=2, sampling_rate=0.5, batch_size=60),
)
def dpsgd(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    sampling_rate: float,
    batch_size: float,
    clip: float | list[float] = 1.0,
    features: list[str] | None = None,
    scale: Scale = "ranges",
    task: dict[str, Any] | Task | None = None,
    start: RecordState | None = None,
    **settings: Unpack[StepSettings],
) -> Iterator[RecordState]:
    """Private training record by record (Abadi et al. 2016, Algorithm 1), over one party or many.

    The noise is the channel's: `federation.protect(mechanism=Gaussian(1.1))`, by the server or by the parties.

    Parameters
    ----------
    module : torch.nn.Module
        Architecture and initial weights; it is not changed. Parameters with requires_grad=False stay as they are, and take
        no noise. Its forward pass must treat each record as if it were alone, whatever the other records are.
    rounds : int
        Steps in all, those before `start` included.
    sampling_rate : float
        Each record of every party joins a round by itself with this probability.
    batch_size : float
        What the sum is divided by: public, such as the expected number of records that join.
    clip : float or list of float
        Largest length of a record's gradient, or one for each trained layer.
    features : list of str, optional
        Columns that the module reads; all features by default.
    scale : {"ranges", "numbers", "none"}
        How they reach it: numbers by their declared ranges, the same without integers, or as they are.
    task : Task, optional
        Inputs, target, loss and metrics, where the target's kind does not decide them.
    start : RecordState, optional
        Continue after this state.
    **settings
        Of the server's step: `hedgerow.learn.StepSettings`.

    Yields
    ------
    RecordState
        After each round.

    Releases
    --------
    The sum of clipped gradients over the trained parameters, once per round.

    Raises
    ------
    ModelInvalid (HR-510), SettingsInvalid (HR-511), UnlawfulChannel (HR-211)
        Before any party is asked.
    """
    clipping = Clipping.of(clip)
    step = GradientStep.of(rounds, settings)
    at_least(1, rounds=rounds)
    above(0.0, batch_size=batch_size, sampling_rate=sampling_rate)
    unclipped(federation)
    exact = protected(federation)
    ready = RecordTask.of(federation, module, features, batch_size, clipping, exact=exact, scale=scale, task=task)
    model = ready.model
    ask = partial(clipped_gradients, model=model, clipping=clipping, exact=exact)
    w = model.initial if start is None else model.flat(start.weights)
    nothing = np.zeros(len(w), np.float32)
    first, second = (nothing, nothing) if start is None else (start.first, start.second)
    for t in range(start.round if start else 0, rounds):
        cohort = ready.federation.sample(records=sampling_rate)
        total: Any = cohort.sum(ask, w, bound=clipping.bound if exact else None)["gradient"]
        w, first, second = step(w, total / batch_size, first, second, t + 1, t)
        yield RecordState(t + 1, model.named(w), first, second)


def protected(federation: Federation) -> bool:
    """Whether a sum is noised, or seen by nobody before it is added up."""
    return federation.protection.noise_at is not None or federation.protection.hides_rows


def unclipped(federation: Federation) -> None:
    """Refuse a channel that clips: it would clip a party's sum, after the records' gradients were added up."""
    if federation.protection.clip is not None or federation.protection.compressed:
        raise UnlawfulChannel(
            "training record by record clips each record's gradient itself; the channel would clip or compress their sum.",
            remedy="Leave clip and compression out: federation.protect(mechanism=Gaussian(1.1)), and give clip to the program.",
        )
