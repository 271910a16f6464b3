"""How a party descends on its own records: one party alone, or many stacked along a leading axis.

A planner takes the fastest path that fits; all take the same steps on the same batches:

    native   plain SGD on a stack of linear layers, the whole descent in compiled code, where the package was built with it
    traced   any module that can be traced, with any rule, alone or stacked: see `trace`
    eager    anything else, a GPU, optimisers of `torch.optim`, records that are moved first, and large steps, whose time is in
             their products: autograd
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from hedgerow.core.party import Party

from ..devices import CPU, device
from ..models import Model, own_generator
from . import native
from .correction import NOTHING, Correction
from .eager import eager, eager_stack
from .programs import replay
from .solver import Solver, plans
from .work import Work

LARGEST_BATCH = 256
"""Traced programs are made for batches up to this size; beyond it a step is large enough for autograd."""


@dataclass(frozen=True)
class Descent:
    """Where a descent led.

    Attributes
    ----------
    change : array of shape (d,), stacked (n_parties, d)
        From the start to the end.
    steps : array of shape (), stacked (n_parties,)
        Steps taken.
    velocity : array of shape (d,), stacked (n_parties, d)
        What a rule with momentum remembers at the end; a single zero for plain SGD.
    """

    change: np.ndarray
    steps: np.ndarray
    velocity: np.ndarray


def descend(
    x: np.ndarray,
    party: Party,
    rng: Any,
    *,
    model: Model,
    solver: Solver,
    correction: Correction = NOTHING,
    velocity: np.ndarray | None = None,
) -> Descent:
    """Descend from the weights `x` on a party's records.

    Parameters
    ----------
    x : array of shape (d,), or (n_parties, d) where stacked parties start from weights of their own
    correction : Correction
        What the algorithm adds to the gradient.
    velocity : array like x, optional
        What the rule remembers at the start; zeros by default.

    Notes
    -----
    A module that draws random numbers follows the party's stream, one party at a time.
    """
    plan = plans(solver, party.id, party.w, rng)
    steps = (plan >= 0).any(-1).sum(0).astype(float)
    x = np.ascontiguousarray(x, np.float32)
    here = device() == CPU
    if here and party.w.ndim == 1 and solver.path in ("auto", "native") and solver.precision == "float32":
        change = native.change(x, party, plan, model, solver, correction)
        if change is not None:
            return Descent(change, steps, np.zeros(1, np.float32))
    work = Work.of(party, plan, x, model, solver, correction, velocity)
    if len(plan):
        if model.stochastic:
            with own_generator(rng):
                eager(work, rng)
        elif work.parties:
            _stacked(work)
        else:
            _alone(work, rng)
    return Descent(work.y.cpu().sub_(torch.from_numpy(x)).numpy(), steps, work.first.cpu().numpy())


def _alone(work: Work, rng: Any) -> None:
    path, large = work.solver.path, work.plan.shape[-1] > LARGEST_BATCH or work.model.large(work.plan.shape[-1])
    other = work.solver.by_torch or work.solver.adversary is not None or work.solver.precision != "float32"
    if not (path == "eager" or work.away or other or large) and replay(_even(work)):
        return
    eager(work, rng)


def _even(work: Work) -> Work:
    """With whole records as batches, parties of many sizes share a few programs: fill a batch up to a power of two."""
    size = work.plan.shape[-1]
    if work.solver.batch_size is not None:
        return work
    wide = torch.nn.functional.pad(work.plan, (0, (1 << (size - 1).bit_length()) - size), value=-1)
    return replace(work, plan=wide)


def _stacked(work: Work) -> None:
    """Take stacked parties in groups of a power of two, so that cohorts of many sizes share a few programs."""
    if work.solver.path == "eager" or work.away:
        return eager_stack(work)
    whole, start = _even(work), 0
    while start < work.parties:
        left = work.parties - start
        wide = 1 << (left - 1).bit_length()
        width = wide if wide <= 1.25 * left else wide // 2
        stop = min(start + width, work.parties)
        part = whole if width == work.parties else whole.part(start, stop, width)
        if not replay(part):
            eager_stack(part)
        work.y[start:stop], work.first[start:stop] = part.y[: stop - start], part.first[: stop - start]
        start = stop
    return None
