"""A network whose less relevant neurons take more noise (Gong, Pan, Xie, Qin & Tang 2020), as printed and charged.

    x -> tanh(W x + b) -> V h + c                             one hidden layer of n units

    R_k   <- |h_k V_yk| / sum_l |h_l V_yl|                    relevance of unit k to the class y of a record, layer-wise;
                                                              the relevances of a record add up to 1
    s_k   <- clip((n R_k / sum_l R_l)^a, 1/4, 4)
    each step:
        G <- sum of (s o g_i) min(1, S / |s o g_i|) + noise   o: the gradient of what enters unit k times s_k
        step along (G / s) / B                                so the noise of unit k is divided by s_k

    as printed                                                charged
    ------------------------------------------------------    ---------------------------------------------------------
    R exact, before every step; a = 1                         R by one noisy sum after a third of the steps, l2(1), for a
                                                              tenth of the budget; until then s = 1;  a = 1/4

Why they differ: how much noise a gradient takes tells how relevant its neuron is to the records, and the printed budget does
not count that, so no finite epsilon holds. Scaling before one l2 clip makes unequal noise cost no more than equal noise. The
exponent: weighted by relevance, noise is sum of R_k / s_k^2 while squared lengths grow with sum of s_k^2; their product is
least at s_k = R_k^(1/4).

Releases : noisy sums of clipped gradients, once per step; charged, one noisy sum of relevances; as printed, exact ones.
Unit     : record. As printed the ledger has relevances as nonprivate.
Source   : Gong et al., Neural Networks 125, 2020, as Haug 2022 (section 4.3) tells it; the law that leads from relevance to
           noise is ours. Differs: absolute contributions, so that relevances of a record are bounded; one hidden layer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds, l2
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import BITS, bound_in
from hedgerow.data import Schema, Table, load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.made import leaves_note
from hedgerow.learn.models import Weights
from hedgerow.learn.records import Clipping, clipped_gradients
from hedgerow.learn.records.dpsgd import RecordTask
from hedgerow.learn.results import SINGLE
from hedgerow.learn.rowwise import kernels as rows
from hedgerow.privacy.shares import BudgetShares, Share
from hedgerow.stats.whole import WholeRows

from . import layers
from .forms import Form, checked, claimed

RELEVANCE = 0.1
"""Share of the budget for relevances."""
EXPONENT = {"printed": 1.0, "corrected": 0.25}
LEAST, MOST = 0.25, 4.0
"""Scales lie between these, whatever relevances are."""
MOMENTUM = 0.9


@displayed
@dataclass(frozen=True, eq=False)
class AdaptiveState:
    """A network after a step.

    Attributes
    ----------
    weights : dict of arrays
        `hidden.weight` (n, d), `hidden.bias` (n,), `output.weight` (K, n), `output.bias` (K,).
    velocity : array
        What the server's momentum remembers.
    scale : array of shape (n,)
        By which gradients of hidden units are multiplied before they are clipped.
    """

    round: int
    weights: Weights
    velocity: np.ndarray
    scale: np.ndarray


@leaves_note
def scaled_network(n_inputs: int, units: int, n_outputs: int, scale: tuple[float, ...], seed: int = 0) -> nn.Module:
    """One hidden layer of tanh, of which what enters unit k is multiplied by a fixed number."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        middle = nn.Linear(units, units, bias=False)
        made = OrderedDict(flat=nn.Flatten(), hidden=nn.Linear(n_inputs, units), middle=middle, tanh=nn.Tanh())
        made["output"] = nn.Linear(units, n_outputs)
    middle.weight = nn.Parameter(torch.diag(torch.tensor(scale)), requires_grad=False)
    return nn.Sequential(made)


@local(additive=True, holds=BITS, norms=(2,))
def relevances(broadcast: Mapping[str, Array], party: Party, rng: Any, *, bounds: Bounds | None = None) -> Array:
    """Sum over records of the relevance of each hidden unit, (n,); a record's add up to one."""
    weights = {name: np.ascontiguousarray(value, np.float32) for name, value in broadcast.items()}
    entering = rows.packed(weights["hidden.weight"], transposed=True)
    h = rows.tanh(rows.multiply(np.ascontiguousarray(party["cube"]), entering, weights["hidden.bias"]))
    V = weights["output.weight"]
    parts = np.abs(h * V[party["label"] if len(V) > 1 else np.zeros(len(h), int)]).astype(np.float64)
    total = np.zeros(len(h))
    for part in parts.T:  # one unit after the other, so that a record's sum has the same bits among any others
        total += part
    R = parts / np.maximum(total, layers.SHORTEST)[:, None]
    return party.w @ R if bounds is None else WholeRows.of(R).sums(party.w, bound_in(bounds, ""))


def scale_of(relevance: Array, exponent: float) -> Array:
    """Scales of hidden units (n,) from sums of relevances, noisy or not."""
    share = np.maximum(relevance, 0.0)
    even = share * len(share) / max(float(share.sum()), layers.SHORTEST)
    found: Array = np.clip(even**exponent, LEAST, MOST)
    return found


def claim(settings: Mapping[str, Any]) -> str:
    """What the paper would claim, and why it is not proved; "" of equal noise, which is charged."""
    if not settings.get("relevance", True):
        return ""
    return claimed(settings, "How relevant each neuron is to the records decides its noise, and no budget is spent on that")


def score(settings: Mapping[str, Any], state: AdaptiveState, schema: Schema, table: Table) -> float:
    """Accuracy on a table."""
    x, label = layers.of_table(table)
    w = state.weights
    found = np.tanh(x @ w["hidden.weight"].T + w["hidden.bias"]) @ w["output.weight"].T + w["output.bias"]
    decided = found.argmax(1) if found.shape[1] > 1 else found[:, 0] > 0
    return float((decided == label).mean())


def watch(settings: Mapping[str, Any], state: AdaptiveState, schema: Schema, test: Table | None) -> dict[str, float]:
    """Accuracy on the server's table."""
    return {} if test is None else {"test accuracy": score(settings, state, schema, test)}


@program(
    "A network with more noise for less relevant neurons (Gong et al. 2020), as printed or charged.",
    claim=claim,
    score=score,
    watch=watch,
    metric=lambda schema: ("accuracy", True),
    alone=lambda settings, rounds: {**settings, "rounds": rounds},
    case=lambda: Case(load("digits").take(range(120)), {"rounds": 3, "batch_size": 120.0, "units": 6}, tolerance=SINGLE),
)
def adaptive_network(
    federation: Federation,
    *,
    rounds: int,
    batch_size: float,
    units: int = 32,
    epsilon: float | None = None,
    delta: float | None = None,
    form: Form = "corrected",
    relevance: bool = True,
    clip: float = 1.0,
    learning_rate: float = 0.5,
    seed: int = 0,
    start: AdaptiveState | None = None,
) -> Iterator[AdaptiveState]:
    """Train a network with unequal noise, all records in every step.

    Parameters
    ----------
    rounds : int
        Steps in all.
    batch_size : float
        What sums of gradients are divided by: public, such as about how many records there are.
    units : int
        Hidden units.
    epsilon, delta : float, optional
        The budget; None takes the channel's noise.
    form : {"printed", "corrected"}
        Relevances as if they were public, of which nothing is proved, or asked once with noise and charged.
    relevance : bool
        False trains with equal noise, and spends the whole budget on the steps.
    clip : float
        Largest length of a record's scaled gradient.
    learning_rate : float
        Of the server's steps, which have momentum.
    seed : int
        Of the initial weights.
    start : AdaptiveState, optional
        Continue after this state.

    Yields
    ------
    AdaptiveState
        After each step.

    Releases
    --------
    Noisy sums of clipped gradients, once per step; relevances, exact before each step as printed, else noisy and once.

    Raises
    ------
    SettingsInvalid (HR-511), UnlawfulChannel (HR-211), BudgetInvalid (HR-214), SchemaInvalid (HR-409)
    """
    if rounds < 1 or units < 1 or not batch_size > 0:
        raise SettingsInvalid(f"rounds {rounds}, units {units}, batch_size {batch_size}.", remedy="Each is above zero.")
    printed = checked(form, federation, epsilon)
    charged = relevance and not printed
    parts = {"steps": Share(1 - RELEVANCE * charged, rounds)} | ({"relevance": Share(RELEVANCE)} if charged else {})
    handles = BudgetShares(epsilon, delta).handles(federation, parts, begins=start is None)
    K = layers.n_classes(federation.schema)
    sizes = layers.width(federation.schema), units, 1 if federation.schema[federation.schema.target].kind == "binary" else K
    asked = layers.at_parties(federation if printed else handles.get("relevance", federation))
    scale = np.ones(units) if start is None else start.scale
    steps = _Steps(handles["steps"], sizes, Clipping.of(clip), seed)
    w, velocity = steps.begin(start)
    for t in range(start.round if start else 0, rounds):
        if relevance and (printed or t == rounds // 3):
            found: Any = asked.sum(relevances, steps.named(w), bound=None if printed else l2(1.0, "record"))
            scale = scale_of(found, EXPONENT[form])
        gradient = steps.gradient(w, scale) / batch_size
        velocity = (MOMENTUM * velocity + gradient).astype(np.float32)
        w = (w - learning_rate * velocity).astype(np.float32)
        yield AdaptiveState(t + 1, steps.named(w), velocity, scale)


class _Steps:
    """The noisy gradient at weights, with a scale for each hidden unit."""

    def __init__(self, federation: Federation, sizes: tuple[int, int, int], clipping: Clipping, seed: int) -> None:
        self.federation, self.sizes, self.clipping, self.seed = federation, sizes, clipping, seed
        self._task: RecordTask | None = None
        self._scale = np.ones(sizes[1])

    def task(self, scale: Array) -> RecordTask:
        if self._task is None or not np.array_equal(scale, self._scale):
            (d, n, K), told = self.sizes, tuple(float(one) for one in scale)
            module = scaled_network(d, n, K, told, self.seed)
            self._task = RecordTask.of(self.federation, module, None, 1.0, self.clipping)
            self._scale = scale
        return self._task

    def begin(self, start: AdaptiveState | None) -> tuple[Array, Array]:
        model = self.task(self._scale).model
        return (model.initial, np.zeros_like(model.initial)) if start is None else (model.flat(start.weights), start.velocity)

    def named(self, w: Array) -> Weights:
        """Trained weights by name."""
        found = self.task(self._scale).model.named(w)
        return {name: value for name, value in found.items() if not name.startswith("middle")}

    def gradient(self, w: Array, scale: Array) -> Array:
        """Asked at weights that are divided by the scale, of which the scale is applied again by the network."""
        d, n, K = self.sizes
        each = np.concatenate([np.repeat(scale, d), scale, np.ones(n * K + K)])
        task = self.task(scale)
        ask = partial(clipped_gradients, model=task.model, clipping=self.clipping)
        total: Any = task.federation.sum(ask, (w / each).astype(np.float32), bound=self.clipping.bound)["gradient"]
        found: Array = total / each
        return found
