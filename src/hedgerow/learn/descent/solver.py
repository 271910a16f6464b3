"""The settings of a local solver, and the order in which it visits a party's records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from .adversary import Adversary
from .optimisers import NAMES, SolverName, problems
from .rules import RuleName

Path = Literal["auto", "native", "traced", "eager"]
RULES = get_args(RuleName)


@dataclass(frozen=True)
class Solver:
    """How a party descends on its own records.

    Parameters
    ----------
    learning_rate : float
    epochs : int, or mapping from party to int
        Passes over the party's records.
    steps : int, optional
        Steps in a round, instead of epochs; the passes go on until they are taken.
    batch_size : int or None
        Records in a step; `None` takes all of them.
    rule : {"sgd", "momentum", "nesterov", "adagrad", "adadelta", "adam"}, or a name of `torch.optim`
        How a gradient becomes a step; see `rules` and `optimisers`. What a rule remembers starts at zero in every round.
    momentum, second_decay, epsilon : float
        Constants of the rule: m, b and e there.
    stragglers : float
        Share of parties that take fewer passes in a round, drawn from 1 to `epochs`.
    precision : {"float32", "bfloat16"}
        Of the products in a forward pass; bfloat16 is for large modules.
    path : {"auto", "native", "traced", "eager"}
        How steps are computed; "auto" takes the fastest that fits.
    rule_settings : tuple of (name, value)
        Arguments of a class of `torch.optim`.
    adversary : Adversary, optional
        Moves the records of each batch before the step that is taken on them: adversarial training.
    """

    learning_rate: float = field(default=0.1, repr=False)  # it falls from round to round, and shapes no answer
    epochs: int | Mapping[str, int] = 1
    steps: int | None = None
    batch_size: int | None = 10
    rule: SolverName = "sgd"
    momentum: float = 0.9
    second_decay: float = 0.999
    epsilon: float = 1e-8
    stragglers: float = 0.0
    precision: Literal["float32", "bfloat16"] = "float32"
    path: Path = field(default="auto", compare=False)
    rule_settings: tuple[tuple[str, Any], ...] = ()
    adversary: Adversary | None = None

    def problems(self) -> list[str]:
        """What is out of range, in words."""
        epochs = self.epochs.values() if isinstance(self.epochs, Mapping) else [self.epochs]
        wrong = [
            (any(count < 1 for count in epochs), f"epochs is {self.epochs}"),
            (self.steps is not None and self.steps < 1, f"steps is {self.steps}"),
            (self.batch_size is not None and self.batch_size < 1, f"batch_size is {self.batch_size}"),
            (not (np.isfinite(self.learning_rate) and self.learning_rate > 0), f"learning_rate is {self.learning_rate}"),
            (self.rule not in RULES + NAMES, f"solver is {self.rule!r}, not one of {', '.join(RULES + NAMES)}"),
            (bool(self.rule_settings) and not self.by_torch, f"solver_settings are given, and solver is {self.rule!r}"),
            (self.by_torch and self._has_constants, f"{self.rule} takes its constants from solver_settings"),
            (not 0 <= self.momentum < 1, f"momentum is {self.momentum}"),
            (not 0 <= self.second_decay < 1, f"second_decay is {self.second_decay}"),
            (not self.epsilon > 0, f"epsilon is {self.epsilon}"),
            (not 0 <= self.stragglers <= 1, f"stragglers is {self.stragglers}"),
        ]
        found = [text for bad, text in wrong if bad]
        return found or (problems(self.rule, self.rule_settings) if self.by_torch else [])

    @property
    def by_torch(self) -> bool:
        """Whether steps are those of `torch.optim`."""
        return self.rule in NAMES

    @property
    def _has_constants(self) -> bool:
        return any(getattr(self, name) != getattr(Solver, name) for name in ("momentum", "second_decay", "epsilon"))

    @property
    def stackable(self) -> bool:
        """Whether parties may share a call: not with epochs of their own, optimisers of torch, or records that are moved."""
        return not isinstance(self.epochs, Mapping) and not self.by_torch and self.adversary is None

    def passes(self, party: str, rng: Any) -> int:
        """Epochs that a party takes in this round."""
        epochs = self.epochs[party] if isinstance(self.epochs, Mapping) else self.epochs
        if self.stragglers and rng.random() < self.stragglers:
            return int(rng.integers(1, epochs + 1))
        return epochs

    def plan(self, party: str, counted: np.ndarray, rng: Any) -> np.ndarray:
        """Shuffle each pass over the records that count, and cut it into batches.

        Returns
        -------
        array of int, shape (steps, batch_size)
            Records of each step, -1 where a last batch is short.
        """
        if len(counted) == 0:
            return np.full((0, self.batch_size or 1), -1)
        size = self.batch_size or len(counted)
        in_pass = -(-len(counted) // size)
        passes = self.passes(party, rng) if self.steps is None else -(-self.steps // in_pass)
        plan = np.full((passes, in_pass * size), -1)
        for one in plan:
            one[: len(counted)] = counted[rng.permutation(len(counted))]
        return plan.reshape(passes * in_pass, size)[: self.steps]


def plans(solver: Solver, name: str, w: np.ndarray, rng: Any) -> np.ndarray:
    """Plan the steps of one party, or of stacked ones with the same number of steps, the shorter ones resting at the end.

    Parameters
    ----------
    w : array of shape (n,) or (n_parties, n)
        Record weights; records of weight zero are not visited.

    Returns
    -------
    array of int, shape (steps, batch_size) or (steps, n_parties, batch_size)
    """
    if w.ndim == 1:
        return solver.plan(name, np.flatnonzero(w), rng)
    every = [solver.plan(name, np.flatnonzero(own), stream) for own, stream in zip(w, rng, strict=True)]
    shape = max(len(plan) for plan in every), len(every), max(plan.shape[1] for plan in every)
    joined = np.full(shape, -1)
    for k, plan in enumerate(every):
        joined[: len(plan), k, : plan.shape[1]] = plan
    return joined
