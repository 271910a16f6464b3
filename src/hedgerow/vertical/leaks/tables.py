"""The leak tables of a report: attack, control and defence side by side.

    measured    what the attacks find in one training, from what the label holder observed of what it sent
    leak_report tables, curves, a figure and sentences about several trainings, one for each defence

Every attack is told with its controls; no function here gives an attack without them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedgerow.errors import SettingsInvalid
from hedgerow.report import Curve, Dots, Grid, Outcome, Series

from .inference import How, LabelLeak, first_of_each
from .inversion import FeatureLeak
from .observer import SentBatches, pooled

NONE = "none"
"""The name of training without a defence."""

_NOBODY = "No label was replaced under this defence, so that there is no control of that kind."
_NAMES = {"norm": "norm", "direction": "direction", "class": "nearest class"}


@dataclass(frozen=True)
class DefenceLeaks:
    """One training under one defence: how good the model is, and what its gradients tell of labels.

    Attributes
    ----------
    defence : str
        As the table names it: "none", "label DP, epsilon 1".
    promise : str
        What the defence promises, in one sentence; empty without one.
    task : float
        Of the model on people who were held out: AUC, or accuracy. It is the control that is free of labels: so much can be
        said about people whose labels took no part.
    leaks : tuple of LabelLeak
        Of each attack in each observed epoch; epoch 0 is that of all epochs together.
    epsilon : float
        Of each person's label; infinite where nothing finite is promised.
    ceiling : float
        What the labels that were used tell of the true ones, to who reads all of them and nothing else; NaN without label DP.
    """

    defence: str
    promise: str
    task: float
    leaks: tuple[LabelLeak, ...]
    epsilon: float = math.inf
    ceiling: float = math.nan

    def of(self, how: How, epoch: int) -> LabelLeak | None:
        """One attack in one epoch, if it was carried out."""
        return next((leak for leak in self.leaks if (leak.how, leak.epoch) == (how, epoch)), None)

    @property
    def epochs(self) -> tuple[int, ...]:
        return tuple(sorted({leak.epoch for leak in self.leaks} - {0}))

    @property
    def attacks(self) -> tuple[How, ...]:
        return tuple(dict.fromkeys(leak.how for leak in self.leaks))


@dataclass(frozen=True)
class LeakReport:
    """What a page shows of leaks; `Report(tables=..., curves=..., dots=..., notes=...)` takes them as they are."""

    tables: tuple[Grid, ...]
    curves: tuple[Curve, ...]
    dots: tuple[Dots, ...]
    sentences: tuple[str, ...]

    def outcome(self, metrics: Mapping[str, float] | None = None) -> Outcome:
        """The same as what a finished program shows."""
        import pandas

        frames = {grid.title: pandas.DataFrame(list(grid.rows), columns=list(grid.columns)) for grid in self.tables}
        said = {f"How to read: {grid.title}": grid.note for grid in self.tables if grid.note}
        said["What leaks, in words"] = "\n".join(self.sentences)
        return Outcome(metrics=dict(metrics or {}), tables=frames, text=said, curves=self.curves, dots=self.dots)


def measured(
    defence: Any,
    task: float,
    observations: Sequence[SentBatches],
    labels: Any,
    *,
    said: Any = None,
    classes: int = 2,
    name: str = "",
) -> DefenceLeaks:
    """Carry every attack out on what a label holder observed of one training.

    Parameters
    ----------
    defence : LabelDP, GradientDefence, NoPeek or None
        Gives the row its name, its promise and its epsilon.
    task : float
        AUC, or accuracy, on people who were held out.
    observations : sequence of SentBatches
        As `Observer.seen` returns them at the label holder.
    labels, said : arrays of shape (n,)
        True labels in the aligned order, and those that training used where they are others.
    classes : int
        With two, attacks are by norm and by direction; with more, by the nearest known gradient.
    name : str
        Of the row, instead of the defence's own.

    Raises
    ------
    SettingsInvalid (HR-511)
        Nothing was observed.
    """
    if not observations:
        raise SettingsInvalid("no gradient was observed.", remedy="Train with Observer(epochs=...) of epochs that are trained.")
    hows: tuple[How, ...] = ("norm", "direction") if classes == 2 else ("class",)
    leaks = [one.leak(how, labels, said=said, classes=classes) for how in hows for one in observations]
    if (whole := pooled(tuple(observations))) is not None:
        leaks += [
            whole.leak(how, labels, said=said, known=_known(how, observations[-1], labels, classes), classes=classes)
            for how in hows
        ]
    return DefenceLeaks(
        name or (NONE if defence is None else str(defence)),
        "" if defence is None else defence.promise,
        float(task),
        tuple(leaks),
        float(getattr(defence, "epsilon", math.inf)),
        float(getattr(defence, "ceiling", math.nan)),
    )


def leak_report(trained: Sequence[DefenceLeaks], *, metric: str = "AUC", party: str = "the feature holder") -> LeakReport:
    """Tables, curves, figure and sentences about trainings that differ in their defence.

    Parameters
    ----------
    trained : sequence of DefenceLeaks
        In the order of the rows; epochs and attacks are those of the first.
    metric : str
        Of the task, as a column is called.
    party : str
        Who attacks.
    """
    if not trained:
        raise SettingsInvalid("no training to tell about.", remedy="Give what `measured` returned, one for each defence.")
    return LeakReport(
        (defence_table(trained, metric, party), control_table(trained, party)),
        leak_curves(trained),
        (leak_dots(trained, party),),
        _sentences(trained, party),
    )


def defence_table(trained: Sequence[DefenceLeaks], metric: str = "AUC", party: str = "the feature holder") -> Grid:
    """One row for each defence: the task, each attack in the first and last observed epoch, and controls of the last attack."""
    first = trained[0]
    hows, epochs = first.attacks, _ends(first.epochs)
    columns = ["defence", f"task {metric}"]
    columns += [f"{_NAMES[how]}, epoch {epoch}" for how in hows for epoch in epochs]
    columns += ["own score", "on replaced labels", "epsilon of a label"]
    rows = []
    for one in trained:
        found = [one.of(how, epoch) for how in hows for epoch in epochs]
        control = one.of(hows[-1], epochs[0])
        rows.append(
            (
                one.defence,
                one.task,
                *(None if leak is None else leak.attack for leak in found),
                None if found[-1] is None else found[-1].model,
                None if control is None or math.isnan(control.flipped) else control.flipped,
                one.epsilon if math.isfinite(one.epsilon) else "not finite",
            )
        )
    note = (
        f"What {party} finds out about labels from gradients, beside what the model's own score says about the same people in "
        f"epoch {epochs[-1]} and what the attack by {_NAMES[hows[-1]]} finds in epoch {epochs[0]} of people whose label was "
        "replaced: it cannot have read that from their label. 0.5 is a guess."
        if hows[0] != "class"
        else f"The share of labels that {party} finds, who knows one record of each class in a batch, beside the model's own "
        "answers."
    )
    return Grid("What leaks, by defence", tuple(columns), tuple(rows), note)


def control_table(trained: Sequence[DefenceLeaks], party: str = "the feature holder") -> Grid:
    """One row for each defence and attack: the attack and its controls in the last observed epoch, and over all of them."""
    columns = (
        "defence, attack",
        "attack",
        "±",
        "own score",
        "beyond it",
        "held out",
        "label used",
        "on replaced labels",
        "± ",
        "all epochs",
        "used labels tell",
    )
    rows = []
    for one in trained:
        for how in one.attacks:
            leak, whole = one.of(how, one.epochs[-1]), one.of(how, 0)
            assert leak is not None
            rows.append(
                (
                    f"{one.defence}, {_NAMES[how]}",
                    leak.attack,
                    _known_number(leak.deviation),
                    leak.model,
                    leak.beyond,
                    one.task,
                    leak.said,
                    _known_number(leak.flipped),
                    _known_number(leak.flipped_deviation),
                    None if whole is None else whole.attack,
                    _known_number(one.ceiling),
                )
            )
    note = (
        f"The attack of {party} in epoch {trained[0].epochs[-1]}; the model's own score on the same people; the difference; "
        "the model on people whose labels took no part; the attack against the labels that training used; and against the true "
        "labels of people whose label was replaced. ± is one standard error. All epochs: gradients of each person added up, "
        "where noise that is drawn anew averages out and a label that was replaced once stays replaced. Used labels tell: "
        "what somebody finds who reads every label that training used and nothing else. On replaced labels, an attack below "
        "0.5 reads the label that was used, and one above 0.5 reads the prediction."
    )
    return Grid("Attack, control and defence", columns, tuple(rows), note)


def feature_table(leaks: Sequence[tuple[str, float, FeatureLeak]], metric: str = "accuracy") -> Grid:
    """One row for each network: its width and defence, how good it is, and what inversion recovers of features.

    Parameters
    ----------
    leaks : sequence of (name, task, FeatureLeak)
    """
    columns = ("network", metric, "cut", "recovered", "other people's", "untrained", "distance correlation")
    rows = tuple(
        (name, task, one.cut, one.recovered, _known_number(one.shuffled), _known_number(one.untrained), _known_number(one.dcor))
        for name, task, one in leaks
    )
    known = max((one.known for _, _, one in leaks), default=0)
    note = (
        "Share of the features' variance that the label holder recovers by ridge regression from activations, where it knows "
        f"{known} other people's features; of activations that are other people's, where nothing is to be found; and of a "
        "network before training. Distance correlation may rank networks in another order; the attack is what counts."
    )
    return Grid("What activations tell of features", columns, rows, note)


def leak_curves(trained: Sequence[DefenceLeaks]) -> tuple[Curve, ...]:
    """For each defence one figure by epoch: its attacks, the model's own score, and the last attack on replaced labels."""
    return tuple(_by_epoch(one) for one in trained)


def _by_epoch(one: DefenceLeaks) -> Curve:
    x = tuple(float(epoch) for epoch in one.epochs)
    found = {how: [leak for epoch in one.epochs if (leak := one.of(how, epoch)) is not None] for how in one.attacks}
    last = found[one.attacks[-1]]
    lines = [Series(f"by {_NAMES[how]}", x, tuple(leak.attack for leak in leaks)) for how, leaks in found.items()]
    lines.append(Series("own score", x, tuple(leak.model for leak in last), "reference"))
    if not all(math.isnan(leak.flipped) for leak in last):
        lines.append(Series("on replaced labels", x, tuple(leak.flipped for leak in last)))
    guess = one.attacks[0] != "class"
    note = "The limit is a guess. " * guess + "An attack above the model's own score reads what the label adds to it."
    return Curve(f"Defence: {one.defence}", "epoch", last[0].metric, tuple(lines), line=0.5 if guess else None, note=note)


def leak_dots(trained: Sequence[DefenceLeaks], party: str = "the feature holder") -> Dots:
    """Attack, control and defence side by side: a row for each defence, marks for attacks in the first epoch and controls."""
    first = trained[0]
    hows, epoch = first.attacks, first.epochs[0]
    leaks = [[one.of(how, epoch) for how in hows] for one in trained]

    def of_each(what: str, place: int) -> tuple[float, ...]:
        return tuple(float(getattr(row[place], what, math.nan)) for row in leaks)

    marks = [(f"by {_NAMES[how]}", of_each("attack", place)) for place, how in enumerate(hows)]
    marks += [("own score", of_each("model", -1)), ("on replaced labels", of_each("flipped", -1))]
    return Dots(
        f"Labels that {party} finds, epoch {epoch}",
        "share of labels found" if hows[0] == "class" else "AUC",
        tuple(one.defence for one in trained),
        tuple(marks),
        line=None if hows[0] == "class" else 0.5,
        note=""
        if hows[0] == "class"
        else "The rule at 0.5 is a guess. Replaced labels: what the attack finds of people whose label it cannot have read.",
    )


def _sentences(trained: Sequence[DefenceLeaks], party: str) -> tuple[str, ...]:
    """What the tables say, in words, and what each defence promises."""
    said = []
    for one in trained:
        worst = max((leak for leak in one.leaks), key=lambda leak: leak.attack)
        when = "over all observed epochs" if not worst.epoch else f"in epoch {worst.epoch}"
        said.append(
            f"{one.defence}: {party} finds labels by {_NAMES[worst.how]} with {worst.metric} {worst.attack:.3f} {when}, where "
            f"the model's own score has {worst.model:.3f}. {one.promise or 'Nothing is promised.'}"
        )
    if all(math.isnan(leak.flipped) for one in trained for leak in one.leaks):
        said.append(_NOBODY)
    return tuple(said)


def _known(how: How, last: SentBatches, labels: Any, classes: int) -> Any:
    """Whom the attacker knows over all epochs: those of the last one's batches; nobody for an attack that needs nobody."""
    import numpy as np

    y = np.asarray(labels)
    mask = np.zeros(len(y), bool)
    if how != "norm":
        mask[last.rows[first_of_each(y[last.rows], last.batch, range(classes) if how == "class" else (1,))]] = True
    return mask


def _ends(epochs: tuple[int, ...]) -> tuple[int, ...]:
    return epochs if len(epochs) < 3 else (epochs[0], epochs[-1])


def _known_number(value: float) -> float | None:
    return None if math.isnan(value) else value
