"""Split networks as study files name them: fully connected parts, of which a simulation also measures held-out people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from hedgerow.core.declaration import Case, program
from hedgerow.data import Schema, load
from hedgerow.learn import mlp
from hedgerow.report import Outcome

from ..aligned import Aligned
from ..leaks import DefenceLeaks, LabelDP, Observer, leak_report, measured
from ..leaks.inference import area
from ..leaks.label_dp import SAID
from ..split.cutting import feature_layers
from ..split.network import SplitNetwork, holder_of
from ..split.splitnn import SplitState, splitnn
from .labels import label_of

Settings = Mapping[str, Any]
UNATTACKED = (
    "What slopes tell of labels was not measured: a simulation measures it of classes, where people are held out "
    "([evaluation] holdout) and epochs observed."
)
PEOPLE_AT_ONCE = 4096
"""People of whom a simulation computes outputs at once."""
Parts = tuple[dict[str, nn.Module], nn.Module]


def case_of_digits() -> Case:
    """Images at one party, digits at the other."""
    roles = {"alice": ["image"], "bob": ["digit"], "label": "bob.digit"}
    settings = {"bottom_hidden": [16], "width": 8, "epochs": 2, "learning_rate": 0.1, "labels": "shared"}
    return Case(load("digits").take(range(200)), settings, parties=2, roles=roles)


def parts_of(
    schemas: Mapping[str, Schema],
    label: str,
    *,
    bottom_hidden: list[int],
    width: int,
    top_hidden: list[int],
    own_features: bool,
    merge: str,
    model_seed: int,
) -> Parts:
    """Fully connected parts: one for each feature holder, with ReLU behind it, and the label holder's."""
    seat, column = holder_of(schemas, label)
    bottoms: dict[str, nn.Module] = {}
    for i, (party, schema) in enumerate(schemas.items()):
        names = [name for name in schema.features if (party, name) != (seat, column)]
        if not names or (party == seat and not own_features):
            continue
        n_inputs = sum(len(schema[name].levels) or math.prod(schema[name].shape) for name in names)
        bottoms[party] = feature_layers(n_inputs, bottom_hidden, width, seed=model_seed + i)
    n_outputs = len(schemas[seat][column].levels) or 1
    through = width * len(bottoms) if merge == "concat" else width
    return bottoms, mlp(through, top_hidden, n_outputs, seed=model_seed + len(schemas))


def learns_of_training(settings: Settings, roles: Any) -> dict[str, tuple[str, ...]]:
    """Who learns what of a split training."""
    seat = "" if roles is None or roles.seat is None else roles.seat
    protected = settings.get("label_epsilon")
    slopes = "the slope of the loss for each person in every batch, from which labels follow; a simulation measures how well"
    if protected is not None:
        slopes = f"slopes of the loss for each person, of labels that were replaced at random once (epsilon {protected:g})"
    found = {
        "others": (slopes,),
        "party": ("the order of batches, which is public",),
        "world": ("mean loss and accuracy of every epoch",),
    }
    several = settings.get("merge") == "sum" and settings.get("hidden")
    shown = "outputs of the others' layers for each person, in every batch"
    found |= {seat: (shown + (": of three parties and more their sum alone" if several else ""),)} if seat else {}
    return found | {"hub": ("sizes of sealed letters, initial weights, and sums over an epoch",)}


def show_training(aligned: Aligned, settings: Settings, state: SplitState) -> Outcome:
    """Show the last epoch, and the cut."""
    fit = state.fit
    sent = sum(fit.bottoms[party].width for party in fit.senders)
    size = 2 if settings["letters"] == "float16" else 8 if settings["precision"] == "float64" else 4
    metrics = {"loss": state.loss, "accuracy while training" if _classifies(fit) else "squared error": state.score}
    facts = {"numbers of the cut, a person": float(sent), "bytes of the cut, an epoch and way": float(sent * size * state.n)}
    leaks = state.__dict__.get("_leaks")
    if leaks is None:
        return Outcome(metrics | facts, notes=(UNATTACKED,))
    shown = leak_report([leaks], metric="AUC" if leaks.leaks[0].metric == "AUC" else "accuracy")
    return Outcome(metrics | facts, grids=shown.tables, curves=shown.curves, dots=shown.dots, notes=shown.sentences)


def _classifies(fit: SplitNetwork) -> bool:
    return fit.top.label.loss in ("cross_entropy", "log_loss")


def watch_training(settings: Settings, state: SplitState, opened: Any, test: Any) -> dict[str, float]:
    """Loss and accuracy of an epoch, while its batches were learned; a simulation, which may read the parties' weights, also
    measures all common people after it, and people who were held out.
    """
    word = "accuracy" if _classifies(state.fit) else "squared error"
    found = {"loss": state.loss, f"{word} while training": state.score}
    if opened.here:
        states = opened.states()
        found[f"training {word}"] = score_of(state.fit, states, opened.common)
        if opened.tests:
            found[f"test {word}"] = score_of(state.fit, states, opened.tests)
        if opened.tests and state.round == settings["epochs"] and settings["observe"] and _classifies(state.fit):
            state.__dict__["_leaks"] = leaks_of(state, opened, defence=state.fit.top.privacy)
    return found


def outputs_of(fit: SplitNetwork, states: Mapping[str, Any], tests: Mapping[str, Any]) -> np.ndarray:
    """What a network says of people whose columns are at hand, shape (n, outputs): a simulation has all weights.

    Parameters
    ----------
    states : mapping from party to what it keeps
    tests : mapping from party to Table
        Aligned records of other people.
    """
    n = len(next(iter(tests.values())))
    if n > PEOPLE_AT_ONCE:
        starts = range(0, n, PEOPLE_AT_ONCE)
        some = ({party: one.take(slice(i, i + PEOPLE_AT_ONCE)) for party, one in tests.items()} for i in starts)
        return np.concatenate([outputs_of(fit, states, part) for part in some])
    dtype = fit.top.piece.dtype
    total, own = torch.zeros((n, fit.top.width), dtype=dtype), None
    with torch.no_grad():
        for party, bottom in fit.bottoms.items():
            columns = {name: np.asarray(tests[party][name]) for name in bottom.features.names}
            made = bottom.piece.opened(states[party], trains=False)(bottom.features.taken(columns, n, dtype))
            if party == fit.seat:
                own = made
            else:
                start = bottom.block[0]
                total[:, start : start + bottom.width] += made
        top = fit.top.piece.opened(states[fit.seat], trains=False)
        found: np.ndarray = top(fit.top.merged(total, own)).numpy()
    return found


def score_of(fit: SplitNetwork, states: Mapping[str, Any], tests: Mapping[str, Any]) -> float:
    """Accuracy, or mean squared error, of people who were held out."""
    output = outputs_of(fit, states, tests)
    target = np.asarray(tests[fit.seat][fit.top.label.column])
    if fit.top.label.loss == "cross_entropy":
        return float((output.argmax(1) == target).mean())
    if fit.top.label.loss == "log_loss":
        return float(((output[:, 0] > 0) == (target > 0.5)).mean())
    return float(((output[:, 0] - target) ** 2).mean())


def classes_in(state: SplitState) -> int:
    """Classes of a trained network's label."""
    return max(state.fit.top.label.n_classes, 2)


def leaks_of(state: SplitState, opened: Any, name: str = "", defence: Any = None) -> DefenceLeaks:
    """Attack what the label holder kept of a training; a simulation knows the true labels in the aligned order."""
    fit, states, classes = state.fit, opened.states(), classes_in(state)
    seat, column = fit.seat, fit.top.label.column
    labels = np.asarray(opened.column(seat, column), np.int64)
    output, target = outputs_of(fit, states, opened.tests), np.asarray(opened.tests[seat][column])
    task = area(output[:, 0], target).value if classes == 2 else float((output.argmax(1) == target).mean())
    said = None if fit.top.privacy is None else np.asarray(states[seat][SAID])
    assert fit.top.observer is not None
    return measured(defence, task, fit.top.observer.seen(states[seat]), labels, said=said, classes=classes, name=name)


@program(
    "A split network: feature holders have its first layers, the label holder its last ones, and what crosses is measured.",
    columns="apart",
    name="splitnn",
    bind={"label": label_of},
    outcome=show_training,
    watch=watch_training,
    shows_rows=True,
    learns=learns_of_training,
    case=case_of_digits,
)
def split_network(
    aligned: Aligned,
    *,
    label: str,
    epochs: int,
    bottom_hidden: list[int] = [32],  # noqa: B006 - never changed
    width: int = 16,
    top_hidden: list[int] = [],  # noqa: B006
    own_features: bool = False,
    batch_size: int = 64,
    learning_rate: float = 0.1,
    optimiser: str = "SGD",
    momentum: float = 0.0,
    merge: Literal["sum", "concat", "maximum"] = "sum",
    hidden: bool = True,
    scale: Literal["ranges", "numbers", "none", "symmetric"] = "ranges",
    labels: Literal["shared"] | None = None,
    label_epsilon: float | None = None,
    columns: Literal["shared"] | None = None,
    precision: Literal["float32", "float64"] = "float32",
    letters: Literal["exact", "float16"] = "exact",
    observe: list[int] = [1],  # noqa: B006
    order_seed: int = 0,
    model_seed: int = 0,
    start: SplitState | None = None,
) -> Iterator[SplitState]:
    """Train fully connected parts; see `hedgerow.vertical.split.splitnn.splitnn`.

    Parameters
    ----------
    label : str
        Of `[roles]`.
    epochs : int
        Passes over the common people.
    bottom_hidden : list of int
        Units of the hidden layers of each feature holder's part.
    width : int
        Numbers that a feature holder's part sends for a person: the cut.
    top_hidden : list of int
        Units of the hidden layers of the label holder's part.
    own_features : bool
        Whether the label holder's own features have a part.
    batch_size : int
        People in a batch.
    learning_rate, optimiser, momentum : float, str, float
        Of a class of `torch.optim`, which every party keeps for its part.
    merge : str
        How outputs of several parts meet.
    hidden : bool
        Whether outputs of several feature holders go behind masks that cancel in their sum.
    scale : str
        How columns reach a part: "symmetric" brings declared ranges without a change of sign to [-1, 1].
    labels : str, optional
        "shared" says that feature holders may learn the labels.
    label_epsilon : float, optional
        Labels are replaced at random once, by randomised response of this epsilon.
    columns : str, optional
        "shared" says that the label holder may learn columns that affine parts read.
    precision, letters : str
        Of the training, and of what is sent.
    observe : list of int
        Epochs, counted from 1, of which the label holder keeps what it sends: a simulation with held-out people measures
        what feature holders find out; none for an empty list.
    order_seed, model_seed : int
        Of the public order of batches, and of initial weights.
    """
    made: dict[str, Any] = {
        "bottom_hidden": bottom_hidden,
        "width": width,
        "top_hidden": top_hidden,
        "own_features": own_features,
    }
    bottoms, top = parts_of(aligned.schemas, label, merge=merge, model_seed=model_seed, **made)
    how: dict[str, Any] = {"batch_size": batch_size, "learning_rate": learning_rate, "optimiser": optimiser}
    how |= {"momentum": momentum, "merge": merge, "hidden": hidden, "scale": scale, "columns": columns, "seed": order_seed}
    how |= {"precision": precision, "letters": letters, "observer": Observer(tuple(observe)) if observe else None}
    how["labels"] = labels if label_epsilon is None else LabelDP(label_epsilon, classes_of(aligned.schemas, label))
    yield from splitnn(aligned, bottoms, top, label=label, epochs=epochs, start=start, **how)


def classes_of(schemas: Mapping[str, Schema], label: str) -> int:
    """Classes of a label."""
    seat, column = holder_of(schemas, label)
    return len(schemas[seat][column].levels) or 2
