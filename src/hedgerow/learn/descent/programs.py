"""The traced programs of a model: compiled when first needed, checked against the eager gradient, kept with the model."""

from __future__ import annotations

import logging
import threading

import torch

from .eager import eager, eager_stack
from .trace import BatchSource, Program, Specialisation, graph_of
from .work import Work

log = logging.getLogger("hedgerow.learn")

MOST_PROGRAMS = 64
"""A model compiles at most so many programs; further batch sizes train eagerly."""

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
    if kind not in kept:
        with _tracing:
            if kind not in kept:
                kept[kind] = _make(work, kind) if len(kept) < MOST_PROGRAMS else None
    return kept[kind]


def _make(work: Work, kind: Specialisation) -> Program | None:
    model, lead = work.model, (kind.parties,) if kind.parties else ()
    x, target, w = made_up(work)
    name = type(model.module).__name__
    try:
        batch = (model.scaled(x), target, torch.full((*lead, kind.batch), 1.0 / kind.batch))
        graph = graph_of(model.call, model.kind, model.shapes, batch)
        program = Program(graph, model.shapes, kind, BatchSource(tuple(x.shape[len(lead) + 1 :]), model.low, model.scale))
        if not agrees(program, work, x, target, w):
            raise NotImplementedError("its trace does not give its gradient")
    except Exception as error:  # whatever a foreign module raises while it is traced
        log.info("%s trains eagerly: %s", name, str(error).strip().split("\n")[0])
        return None
    log.debug("%s traced for %s", name, kind)
    return program


def made_up(work: Work) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A batch of the work's first records, for each stacked party: enough to trace and to check a program."""
    size = work.plan.shape[-1]
    rows = torch.arange(size) % work.inputs.shape[1 if work.parties else 0]
    if work.parties:
        return work.inputs[:, rows], work.target[:, rows], torch.ones(work.parties, size)
    return work.inputs[rows], work.target[rows], torch.ones(size)


def agrees(program: Program, work: Work, x: torch.Tensor, target: torch.Tensor, w: torch.Tensor) -> bool:
    """Whether two steps of a program end where eager steps end."""
    plan = torch.arange(x.shape[1 if work.parties else 0]).expand(2, *w.shape).clone()
    plan[1, ..., -1:] = -1 if w.shape[-1] > 1 else 0

    def fresh() -> Work:
        own = {name: getattr(work, name).clone() for name in ("y", "first", "second")}
        rest = {name: getattr(work, name) for name in ("towards", "shift", "mask")}
        return Work(work.model, work.solver, work.correction, inputs=x, target=target, w=w, plan=plan, **own, **rest)

    one, other = fresh(), fresh()
    run(program, one)
    (eager_stack if work.parties else eager)(other)
    size = (other.y - work.y).abs().max()
    return bool((one.y - other.y).abs().max() <= 1e-3 * size + 1e-6)
