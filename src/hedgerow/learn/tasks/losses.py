"""Losses and metrics by name: each gives one number for each record, whatever the other records are.

    cross_entropy    -log softmax(output)[target]             output (n, classes, ...), target (n, ...) whole numbers
    log_loss         log(1 + exp(-+ output))                  target 0 or 1
    squared          (output - target)^2
    absolute         |output - target|
    huber            squared below one, absolute beyond it
    poisson          exp(output) - target * output            the output is the logarithm of a rate
    dice             1 - (2 sum p t + 1) / (sum p + sum t + 1)    p = sigmoid(output), over a record's places

A target with many places in a record, such as a mask, has their mean as its loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

PerRecord = Callable[..., Tensor]
"""`(output, target) -> (n,)`."""


def by_record(values: Tensor) -> Tensor:
    """The mean over a record's places: (n, ...) to (n,)."""
    return values if values.ndim == 1 else values.flatten(1).mean(1)


def fitting(output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The output in the shape of the target, and the target as numbers of the output's type."""
    return output.reshape(target.shape), target.to(output.dtype)


def cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """Of classes along the second axis of the output."""
    return by_record(F.cross_entropy(output, target.long(), reduction="none"))


def log_loss(output: Tensor, target: Tensor) -> Tensor:
    """Of logits."""
    return by_record(F.binary_cross_entropy_with_logits(*fitting(output, target), reduction="none"))


def squared(output: Tensor, target: Tensor) -> Tensor:
    """Squared differences."""
    output, target = fitting(output, target)
    return by_record((output - target) ** 2)


def absolute(output: Tensor, target: Tensor) -> Tensor:
    """Absolute differences."""
    output, target = fitting(output, target)
    return by_record((output - target).abs())


def huber(output: Tensor, target: Tensor) -> Tensor:
    """Half the squared difference up to one, then the absolute one less a half (Huber 1964)."""
    return by_record(F.huber_loss(*fitting(output, target), reduction="none"))


def poisson(output: Tensor, target: Tensor) -> Tensor:
    """Negative log-likelihood of counts, without the term that no parameter enters."""
    return by_record(F.poisson_nll_loss(*fitting(output, target), log_input=True, reduction="none"))


def overlap(p: Tensor, t: Tensor) -> Tensor:
    """Dice coefficient of each record, one added above and below the line, so that two empty masks agree."""
    p, t = p.reshape(p.shape[0], -1), t.reshape(t.shape[0], -1)
    return (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)


def dice(output: Tensor, target: Tensor) -> Tensor:
    """One less the Dice coefficient of probabilities (Milletari et al. 2016)."""
    output, target = fitting(output, target)
    return 1 - overlap(torch.sigmoid(output), target)


LOSSES: Mapping[str, PerRecord] = {
    found.__name__: found for found in (cross_entropy, log_loss, squared, absolute, huber, poisson, dice)
}
"""Losses by name."""


def accuracy(output: Tensor, target: Tensor) -> Tensor:
    """Share of a record's places that are classified rightly: the largest of several outputs, or whether one is above zero."""
    if output.ndim == target.ndim + 1 and not target.is_floating_point():
        return by_record((output.argmax(1) == target).float())
    return by_record(((output.reshape(target.shape) > 0) == (target > 0.5)).float())


def dice_score(output: Tensor, target: Tensor) -> Tensor:
    """Dice coefficient of the places where the output is above zero."""
    output, target = fitting(output, target)
    return overlap((output > 0).to(output.dtype), target)


METRICS: Mapping[str, tuple[PerRecord, float | None]] = {
    "accuracy": (accuracy, 1.0),
    "mean_squared_error": (squared, None),
    "mean_absolute_error": (absolute, None),
    "dice": (dice_score, 1.0),
}
"""Metrics by name, with the largest absolute value that a record can have, where there is one."""

SHOWN_WITH: Mapping[str, str] = {
    "cross_entropy": "accuracy",
    "log_loss": "accuracy",
    "squared": "mean_squared_error",
    "huber": "mean_squared_error",
    "absolute": "mean_absolute_error",
    "dice": "dice",
}
"""The metric that evaluations show beside a loss where none was named."""

KINDS_OF: Mapping[str, str] = {"cross_entropy": "category", "log_loss": "binary", "squared": "number"}
"""The kind of a target whose loss without a task is the same."""

OF_KINDS: Mapping[str, str] = {
    "category": "cross_entropy",
    "binary": "log_loss",
    "number": "squared",
    "integer": "squared",
}
"""The loss of a target of a kind where none was named."""
