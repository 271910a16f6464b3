"""What does not fit is refused on made-up records, before any party is asked.

    forward     takes the inputs that the task names, and returns the part that it names
    loss        gives one finite number for each record, with a gradient, and the same whatever the other records are
    metric      gives one number for each record, the same whatever the other records are

That a loss does not mix records is tried on seven made-up ones, each alone and among others, and that nothing keeps something
of them on seven others besides. DP-SGD does not rely on it: behind a mechanism each record's gradient is computed by itself,
with copies of module and loss; see `hedgerow.learn.anew`.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from hedgerow.errors import HedgerowError, ModelInvalid

from .declared import name_of
from .fitted import FittedTask
from .memory import left_in, remembers

if TYPE_CHECKING:
    from ..models import Model

TRIED = 7
"""Made-up records, so that no usual axis of a record is as long."""


def tried(model: Model) -> None:
    """Refuse a model whose module, loss or metrics do not fit its task.

    Raises
    ------
    ModelInvalid (HR-510)
        With the remedy.
    """
    task: FittedTask = model.task  # type: ignore[assignment]
    x, target = task.made_up(TRIED)
    module = copy.deepcopy(model.module).eval()  # without dropout, whose draws differ from batch to batch
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for value in module.parameters():  # layers that begin at zero would hide what a loss does
            value.add_(0.05 * torch.randn(value.shape, generator=generator).to(value.dtype))
    takes(module, task, x)
    output = _run(module, model, x)
    _keep_nothing(model, module, x, target)
    losses = _values(lambda: task.losses(output, target), "loss", _spoken(task.task.loss), output, task.wanted(target))
    if not losses.requires_grad and any(value.requires_grad for value in module.parameters()):
        raise ModelInvalid(
            f"the {_spoken(task.task.loss)} has no gradient by the module's parameters.",
            remedy="Compute it from the output by operations of torch, without .detach(), .item(), argmax or NumPy.",
        )
    alone(lambda rows: task.losses(_run(module, model, x[rows]), target[rows]), losses, _spoken(task.task.loss))
    for metric in task.metrics:
        what = f"metric {metric.name!r}"
        values = _values(lambda metric=metric: task.values(metric, output, target), "metric", what, output, task.wanted(target))
        alone(lambda rows, metric=metric: task.values(metric, _run(module, model, x[rows]), target[rows]), values, what)


def _keep_nothing(model: Model, module: nn.Module, x: Tensor, target: Tensor) -> None:
    """Refuse losses, metrics and modules in which something of the records is left, on copies."""
    task: FittedTask = model.task  # type: ignore[assignment]
    records = [(x, target), task.made_up(TRIED, seed=1)]
    outputs = [model.applied(copy.deepcopy(module), one) for one, _ in records]

    def judge(made: FittedTask, which: int) -> None:
        with suppress(Exception):  # other records, for which they fail, leave something or nothing
            made.losses(outputs[which], records[which][1])
            for metric in made.metrics:
                made.values(metric, outputs[which], records[which][1])

    def run(made: nn.Module, which: int) -> None:
        with suppress(Exception):
            model.applied(made, records[which][0])

    remedy = (
        "Compute it from what it is called with alone, in a plain function at the top of a module; what is known beforehand "
        "may be an attribute, and what is worth a look belongs in what forward returns."
    )
    try:
        left = remembers(task.anew, judge, lambda made: made.functions)
        left_by_module = left_in(module, run)
    except Exception as error:  # whatever copying somebody's objects raises
        raise ModelInvalid(
            f"the module, a loss or a metric cannot be copied: {type(error).__name__}: {_first(error)}",
            remedy="Each record has a copy of its own: leave files, locks and generators out of it.",
        ) from error
    if left:
        raise ModelInvalid("a loss or metric keeps something of the records that it is called with.", remedy=remedy)
    if left_by_module:
        raise ModelInvalid(f"{type(module).__name__} keeps something of the records that it is called with.", remedy=remedy)


def takes(module: nn.Module, task: FittedTask, x: Tensor) -> None:
    """Refuse inputs that are not arguments of the module's forward."""
    args, kwargs = task.arguments(x)
    try:
        signature = inspect.signature(module.forward)
    except (TypeError, ValueError):  # made in C, without a signature
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ModelInvalid(
            f"{type(module).__name__}.forward{_short(signature)} does not take the task's inputs: {error}.",
            remedy="Name inputs by the arguments of forward: hr.learn.Task(inputs={'argument': 'column'}); with as_dict=True "
            "forward takes one dict.",
        ) from error


def _run(module: nn.Module, model: Model, x: Tensor) -> Any:
    name = type(module).__name__
    try:
        with torch.enable_grad():
            return model.applied(module, x)
    except HedgerowError:
        raise
    except Exception as error:  # somebody's forward
        told = ", ".join(f"{key}: {_shape(value)}" for key, value in model.task.inputs.tensors(x).items())  # type: ignore[union-attr]
        raise ModelInvalid(
            f"{name} fails on made-up records ({told}): {type(error).__name__}: {_first(error)}",
            remedy="Give each input the type and shape that forward expects: hr.learn.Input(columns, dtype=..., shape=...). "
            "Made-up values lie in the columns' declared ranges.",
        ) from error


SHAPES = 'reduction="none", on an output of the target\'s shape, such as output[:, 0] of (n, 1)'
"""What a loss of torch needs to return one number for each record."""


def _values(compute: Callable[[], Any], kind: str, what: str, output: Any, target: Any) -> Tensor:
    """One number for each record, or a refusal that says what came instead."""
    try:
        values = compute()
    except HedgerowError:
        raise
    except Exception as error:  # somebody's function
        raise ModelInvalid(
            f"the {what} fails on made-up records: {type(error).__name__}: {_first(error)}",
            remedy=f"It is called as {kind}(output, target), here with {_shape(output)} and {_shape(target)}, and "
            f"returns shape (n,).\nGive functions of torch {SHAPES}.\nName the part of forward's result by Task(output=...).",
        ) from error
    if not isinstance(values, Tensor):
        raise ModelInvalid(f"the {what} returns a {type(values).__name__}.", remedy="Return a tensor of shape (n,).")
    if values.ndim == 0:
        raise ModelInvalid(
            f"the {what} returns one number for all records.",
            remedy=f"Return one for each, of shape (n,): leave out .mean(), and give functions of torch {SHAPES}.",
        )
    if values.shape != (TRIED,):
        raise ModelInvalid(
            f"the {what} returns shape {tuple(values.shape)} for {TRIED} records.",
            remedy="Return one number for each record, shape (n,): of several places of a record take .flatten(1).mean(1).",
        )
    if not values.is_floating_point() and kind == "loss":
        raise ModelInvalid(f"the {what} is {values.dtype}.", remedy="Return floating-point numbers, which have a gradient.")
    return values


def alone(compute: Callable[[Any], Tensor], together: Tensor, what: str) -> None:
    """Refuse values of records that change with the other records."""
    batches = [slice(i, i + 1) for i in range(TRIED)] + [slice(0, 2), slice(3, TRIED)]
    for rows in batches:
        try:
            found = compute(rows)
        except HedgerowError:
            raise
        except Exception as error:  # somebody's function
            raise ModelInvalid(
                f"the {what} fails for {len(range(TRIED)[rows])} records alone: {type(error).__name__}: {_first(error)}",
                remedy="Batches may have any number of records: leave squeeze() without an axis out.",
            ) from error
        same = found.shape == together[rows].shape and torch.allclose(
            found.double(), together[rows].double(), rtol=1e-4, atol=1e-6, equal_nan=True
        )
        if not same:
            raise ModelInvalid(
                f"the {what} of a record changes when the other records of its batch do, or from call to call.",
                remedy="Compute it from a record's own output and target alone, in module and function: without means, ranks, "
                "norms or contrasts over the batch, and without random numbers. Bounds per record, and sums over batches of "
                "other sizes, depend on it.",
            )


def _spoken(loss: Any) -> str:
    if isinstance(loss, str):
        return f"loss {loss!r}"
    return "loss" if isinstance(loss, tuple) else f"loss {name_of(loss)!r}"


def _shape(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    return f"a {type(value).__name__}"


def _short(signature: inspect.Signature) -> str:
    names = [f"{p.name}" + ("" if p.default is p.empty else "=...") for p in signature.parameters.values()]
    return f"({', '.join(names[:8])}{', ...' if len(names) > 8 else ''})"


def _first(error: Exception) -> str:
    return (str(error).strip().split("\n")[0] or repr(error))[:300]
