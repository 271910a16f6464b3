"""The traced programs of a model: compiled when first needed, checked against the eager gradient, kept with the model.

Which path a descent takes follows from the model, the solver and the sizes of its own batches, and from nothing that happened
before: paths differ in last bits, and a party's row must not tell who else took part. So programs are tried on made-up records,
and where there are too many the oldest is made again when it is needed.
"""

from __future__ import annotations

import logging
import math
import threading
from dataclasses import replace

import torch

from .eager import eager, eager_stack
from .solver import Solver
from .trace import BatchSource, Program, Specialisation, graph_of
from .work import Work

log = logging.getLogger("hedgerow.learn")

MOST_PROGRAMS = 64
"""A model keeps at most so many programs."""

_tracing = threading.Lock()


def kind_of(work: Work) -> Specialisation:
    """What a program for this work is specialised to."""
    terms = work.correction
    return Specialisation(
        batch=work.plan.shape[-1],
        parties=work.parties,
        rule=work.solver.rule,
        pulled=bool(terms.pull),
        shifted=terms.shift is not None,
        anchored=terms.anchored,
        masked=terms.mask is not None,
    )


def replay(work: Work) -> bool:
    """Take the steps by a traced program; say whether there is one."""
    program = program_for(work)
    if program is None:
        return False
    run(program, work)
    return True


def run(program: Program, work: Work) -> None:
    """Take the steps of a piece of work by a program."""
    solver, none = work.solver, torch.empty(0)
    tensors = (work.inputs, work.target, work.w, work.plan, work.y, work.towards)
    terms = (none if work.shift is None else work.shift, none if work.mask is None else work.mask, work.first, work.second)
    numbers = {"lr": solver.learning_rate, "pull": work.correction.pull, "m": solver.momentum}
    program(*tensors, *terms, numbers=numbers | {"b": solver.second_decay, "e": solver.epsilon})


def program_for(work: Work) -> Program | None:
    """The program for this kind of work, made now if there is none yet; None where the module cannot be traced."""
    kept, kind = work.model.programs, kind_of(work)
    found: Program | bool | None = kept.get(kind, False)
    if isinstance(found, bool):
        with _tracing:
            found = kept.get(kind, False)
            if isinstance(found, bool):
                traced = [key for key in list(kept) if isinstance(key, Specialisation)]
                if len(traced) >= MOST_PROGRAMS:
                    kept.pop(traced[0])
                found = kept[kind] = _make(work, kind)
    return found


def _make(work: Work, kind: Specialisation) -> Program | None:
    model, lead = work.model, (kind.parties,) if kind.parties else ()
    try:
        trial = made_up(work)
        batch = (model.scaled(trial.inputs), trial.target, torch.full((*lead, kind.batch), 1.0 / kind.batch))
        graph = graph_of(model.call, model.kind, model.shapes, batch, None if model.task is None else model.losses_of)
        record, wanted = (tuple(value.shape[len(lead) + 1 :]) for value in (trial.inputs, trial.target))
        source = BatchSource(record, model.low, model.scale, wanted, model.task is None)
        program = Program(graph, model.shapes, kind, source)
        if not agrees(program, trial):
            raise NotImplementedError("its trace does not give its gradient")
    except Exception as error:  # whatever a foreign module raises while it is traced
        log.info("%s trains eagerly: %s", type(model.module).__name__, str(error).strip().split("\n")[0])
        return None
    log.debug("%s traced for %s", type(model.module).__name__, kind)
    return program


def made_up(work: Work) -> Work:
    """Work of the same kind on made-up records, from made-up weights: enough to trace and to check a program.

    Whether a module is traced must not depend on whose records come first, so no number of the work goes into it, nor of the
    broadcast, which is another one in every round.
    """
    model, lead, size = work.model, work.w.shape[:-1], work.plan.shape[-1]
    drawn = torch.Generator().manual_seed(0)

    def numbers(*shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=drawn)

    def like(given: torch.Tensor | None) -> torch.Tensor | None:
        return None if given is None else 0.2 * numbers(*given.shape) - 0.1

    record = work.inputs.shape[len(lead) + 1 :]
    wide = numbers(*lead, size, *record) / model.scale + model.low
    inputs = wide.to(work.inputs.dtype) if work.inputs.is_floating_point() else (wide + 0.5).floor().to(work.inputs.dtype)
    y, towards = like(work.y), like(work.towards)
    assert y is not None
    assert towards is not None
    if model.task is not None:
        made = model.task.made_up(size * math.prod(lead))
        inputs, target = (value.reshape(*lead, size, *value.shape[1:]) for value in made)
        inputs = inputs.to(work.inputs.dtype)
    else:
        levels = 2
        if model.kind == "category":
            with torch.no_grad():
                levels = model.outputs(y[0] if lead else y, inputs[0] if lead else inputs).shape[-1]
        levelled = (torch.arange(size) % levels).expand(*lead, size)
        target = numbers(*lead, size) if model.kind == "number" else levelled
    plan = torch.arange(size).expand(2, *lead, size).clone()
    plan[1, ..., -1:] = -1 if size > 1 else 0
    return replace(
        work,
        solver=Solver(0.05, rule=work.solver.rule, path=work.solver.path),
        correction=replace(work.correction, pull=0.1 if work.correction.pull else 0.0),
        inputs=inputs,
        target=target.to(work.target.dtype),
        w=torch.ones(*lead, size),
        plan=plan,
        y=y,
        towards=towards,
        shift=like(work.shift),
        mask=None if work.mask is None else (numbers(*work.mask.shape) < 0.5).to(work.mask.dtype),
        first=torch.zeros_like(work.first),
        second=torch.zeros_like(work.second),
    )


def agrees(program: Program, trial: Work) -> bool:
    """Whether two steps of a program end where eager steps end."""
    one, other = (replace(trial, y=trial.y.clone(), first=trial.first.clone(), second=trial.second.clone()) for _ in range(2))
    run(program, one)
    (eager_stack if trial.parties else eager)(other)
    size = (other.y - trial.y).abs().max()
    return bool((one.y - other.y).abs().max() <= 1e-3 * size + 1e-6)
