"""Whether a run learned anything: its last metrics beside those of a model that looks at no feature.

    accuracy              against always saying the most common class; where shares are not known, against drawing a class
    loss, log-loss        against saying the classes' shares (their entropy); where they are not known, all classes alike;
                          a loss of another kind, as a hinge, is not judged
    mean squared error    against always saying the mean
    R2, D2, Matthews      against 0, and AUC against 0.5

A run is said to have learned nothing where every one of these that it measured is at chance, a standard error allowed to shares
of records. Where the shares of the classes are not known, R2, D2, Matthews and AUC are judged alone if they were measured: a
rare class gives every model a high accuracy. On records of a single class nothing can be told, and nothing is judged. Also
said: that the weights or a loss are no finite numbers, that a loss ended above where it began and no better than chance, and
that it is far beyond chance. An AUC or an R2 that is no number says only that it could not be computed.

Shares and means are those of records whose metrics are in the report anyway: the server's test table, or in a simulation with
baselines the records on which those are scored. Of records at stations none are known here, and nothing is asked for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hedgerow.data import Table
from hedgerow.data.cases import whole_cases

from .baselines import Baselines, where
from .build import Built
from .rounds import Row, metrics_of, points

FIXED = {"R2": 0.0, "D2": 0.0, "Matthews correlation": 0.0, "AUC": 0.5}
"""Metrics whose value at chance is known without any record."""

LOSSES = ("log-loss", "loss", "mean squared error")

JUDGED = ("gaussian", "binomial")
"""Families whose loss is a squared error or a log-loss; a hinge or the loss of a quantile is of another size."""

ROUNDING = 1e-4
"""Losses in single precision are no better than chance by such a share of it."""

FAR = 10.0
"""A loss of so many times that of chance is said, whatever other metrics are."""

ADVICE = "Look at the noise, the scale of the features, the number of rounds, and the learning rate where there is one."


@dataclass(frozen=True)
class Chance:
    """What a model scores that looks at no feature, on some records or on any.

    Attributes
    ----------
    accuracy, loss : float
        Of classes; nan for a number.
    error : float
        Mean squared error of the mean of a number; nan where it is not known.
    n : float
        Records; infinite where the values are of none, and 0 where nothing can be judged.
    known : bool
        Whether shares of classes are known, or all classes are taken for alike.
    other : bool
        Whether the program's loss is another one than those above, of which chance is not known.
    """

    accuracy: float = math.nan
    loss: float = math.nan
    error: float = math.nan
    n: float = math.inf
    known: bool = False
    other: bool = False

    @classmethod
    def of_classes(cls, n_classes: int) -> Chance:
        """Without records: all classes alike, which a declaration knows."""
        return cls(1 / n_classes, math.log(n_classes)) if n_classes > 1 else cls()

    @classmethod
    def on(cls, table: Table, target: str) -> Chance:
        """On the records of a table that lack neither target nor weight, which count by their weights."""
        schema = table.schema
        table = whole_cases(table, [target] if schema.weight is None else [target, schema.weight])
        w = np.ones(len(table)) if schema.weight is None else np.asarray(table[schema.weight], float)
        y, n = np.asarray(table[target], float), float(w.sum())
        if not n > 0:
            return cls(n=0)
        if schema[target].kind not in ("category", "binary"):
            mean = float(np.average(y, weights=w))
            return cls(error=float(np.average((y - mean) ** 2, weights=w)), n=n, known=True)
        shares = np.bincount(y.astype(int), weights=w) / n
        shares = shares[shares > 0]
        if len(shares) < 2:
            return cls(n=0)
        return cls(float(shares.max()), float(-(shares * np.log(shares)).sum()), n=n, known=True)

    def __call__(self, metric: str) -> tuple[float, str]:
        """The value of a metric at chance, and what would give it; nan where it is not known."""
        name = _kind(metric)
        if self.n == 0 or (self.other and name == "loss"):
            return math.nan, ""
        if name == "accuracy":
            return self.accuracy, "always saying the most common class" if self.known else "drawing a class by chance"
        if name == "mean squared error" or (name == "loss" and math.isfinite(self.error)):
            return self.error, "always saying the mean"
        if name in ("loss", "log-loss"):
            return self.loss, "saying the share of each class" if self.known else "saying that all classes are alike"
        return FIXED.get(name, math.nan), "a model that looks at no feature"

    def passed(self, metric: str, value: float, error: float = 0.0) -> bool | None:
        """Whether a value, with this standard error, is better than chance; None where nobody knows."""
        name, (at, _) = _kind(metric), self(metric)
        if math.isnan(at) or math.isnan(value):
            return None
        if name in LOSSES:
            return value < at * (1 - ROUNDING)
        spread = {"accuracy": math.sqrt(at * (1 - at)) if name == "accuracy" else 0.0, "AUC": 0.5, "Matthews correlation": 1.0}
        return value > at + max(spread.get(name, 0.0) / math.sqrt(self.n), error)


def nothing_learned(
    built: Built, history: Sequence[Row], metrics: Mapping[str, float], compared: Baselines, state: Any = None
) -> str:
    """Say in two sentences that a run learned nothing, or diverged; "" where it did neither.

    Parameters
    ----------
    history : list of rows
        What was measured by round.
    metrics : mapping
        What the program says of its last state beside that.
    compared : Baselines
        With the score of the run where only that was measured.
    state
        The last of the run, whose coefficients are looked at.
    """
    found = getattr(state, "beta", getattr(state, "weights", ()))
    arrays = (np.asarray(part) for part in (found.values() if isinstance(found, Mapping) else [found]))
    if not all(np.isfinite(part).all() for part in arrays if np.issubdtype(part.dtype, np.number)):
        return f"This run diverged: its weights are not all finite. {ADVICE}"
    last = dict(metrics) | (metrics_of(history[-1]) if history else {})
    found = chances(built, compared)
    if compared.federated is not None and not last:
        last[built.listing.metric(built.schema)[0]] = compared.federated
    return verdict(history, last, found)


def chances(built: Built, compared: Baselines) -> dict[str, Chance]:
    """What chance gives, by the first word of a metric's name; "" for the others."""
    target = _target(built)
    if target is None or built.settings.get("task") is not None:  # whose loss and target may be any
        return {"": Chance()}
    declared = built.schema[target]
    classes = {"category": len(declared.levels), "binary": 2}.get(declared.kind, 0)
    found = {"": Chance.of_classes(classes)}
    if compared.federated is not None:
        table, _ = where(built)
        found[""] = Chance.on(table, target)
    if built.test is not None:
        found["test"] = Chance.on(built.test, target)
    other = built.settings.get("family", "gaussian") not in JUDGED or built.settings.get("loss") is not None
    return {name: replace(chance, other=other) for name, chance in found.items()}


def verdict(history: Sequence[Row], last: Mapping[str, float], chances: Mapping[str, Chance]) -> str:
    """The sentences of `nothing_learned`, from the metrics alone."""
    judged = {name: float(value) for name, value in last.items() if _kind(name) and isinstance(value, (int, float))}
    if broken := [f"{name} is {value:g}" for name, value in judged.items() if _broken(name, value)]:
        return f"This run diverged: {', '.join(broken[:2])}. {ADVICE}"
    chance = {name: chances.get(name.split()[0], chances[""]) for name in judged}
    judged = {name: value for name, value in judged.items() if chance[name].n > 0}
    errors = {name: float(last.get(f"{name} standard error", 0.0)) for name in judged}
    passed = {name: chance[name].passed(name, value, errors[name]) for name, value in judged.items()}
    known = [name for name, better in passed.items() if better is not None]
    if grown := next(_grown(history, judged, passed), ""):
        return f"The loss of this run grew: {grown}. {ADVICE}"
    fixed = [name for name in known if _kind(name) in FIXED and not name.startswith("noisy ")]
    if any(not chance[name].known for name in fixed):  # what beats drawing a class may be the share of the most common one
        known = [name for name in known if name in fixed or chance[name].known]
    if not known or any(passed[name] for name in known):
        return next(_far(judged, chance), "")
    at, who = chance[known[0]](known[0])
    name, value = known[0], judged[known[0]]
    if _kind(name) not in LOSSES and value > at:
        near = f"is within a standard error of what {who} gives, {_number(at)}"
        return f"This run may have learned nothing: {name} {_number(value)} {near}. {ADVICE}"
    return f"This run learned nothing: {name} {_number(value)}, where {who} gives {_number(at)}. {ADVICE}"


def _far(last: Mapping[str, float], chance: Mapping[str, Chance]) -> Iterator[str]:
    """Losses far beyond chance, where another metric is better than it."""
    for name, value in last.items():
        at, who = chance[name](name)
        if _kind(name) in LOSSES and value > FAR * at:
            yield f"The {name} of this run is {_number(value)}, where {who} gives {_number(at)}. {ADVICE}"


def _grown(history: Sequence[Row], last: Mapping[str, float], passed: Mapping[str, bool | None]) -> Iterator[str]:
    """Losses that ended above where they began, and no better than chance; where nobody knows that, by a tenth."""
    for name, value in last.items():
        measured = points(history, name)
        if _kind(name) not in LOSSES or len(measured) < 2 or passed[name]:
            continue
        first, began = measured[0]
        if value > began + (0.1 * abs(began) if passed[name] is None else 0.0):
            yield f"the {name} was {_number(began)} in round {first} and is {_number(value)} in round {measured[-1][0]}"


def _broken(name: str, value: float) -> bool:
    """Whether a value says that a run diverged: a loss that is no number, or anything infinite."""
    return math.isinf(value) or (math.isnan(value) and _kind(name) in LOSSES)


def _kind(metric: str) -> str:
    """Which of the known metrics a name ends in; of parties' own scores and standard errors none."""
    if " party " in f" {metric} " or metric.startswith("membership ") or metric.endswith(("standard error", "deviation")):
        return ""
    return next((kind for kind in ("accuracy", *FIXED, *LOSSES) if metric == kind or metric.endswith(f" {kind}")), "")


def _target(built: Built) -> str | None:
    """The column that the program predicts, where it is one."""
    formula = built.settings.get("formula")
    named = formula.partition("~")[0].strip() if isinstance(formula, str) else built.settings.get("target")
    target = named if isinstance(named, str) and named else built.schema.target
    return target if target in built.schema.names else None


def _number(value: float) -> str:
    return f"{value:.2e}" if abs(value) >= 1e3 or 0 < abs(value) < 1e-3 else f"{value:.3g}"
