"""What split training leaks under several defences, as a study file names it: a training for each, attacked, with controls.

Each training is a study of its own, whose parties begin anew: labels that were replaced once are not replaced again in another
way by the same party.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from hedgerow.core.declaration import Case, program
from hedgerow.errors import SettingsInvalid, suggestion
from hedgerow.report import Outcome

from ..leaks import DefenceLeaks, IsotropicNoise, LabelDP, MaxNormNoise, Observer, leak_report
from ..split.splitnn import SplitState, splitnn
from .labels import label_of
from .networks import case_of_digits, classes_in, classes_of, leaks_of, parts_of

Settings = Mapping[str, Any]
DEFENCES = ("none", "label-dp", "gaussian", "max-norm")


@dataclass(frozen=True)
class Defended:
    """A training under one defence, at its end.

    Attributes
    ----------
    round : int
        How many defences have been trained.
    defence : str
    trained : SplitState
    before : Defended, optional
        The one before.
    """

    round: int
    defence: str
    trained: SplitState
    before: Defended | None = None

    @property
    def leaks(self) -> DefenceLeaks | None:
        """What its slopes tell, where a simulation has measured it."""
        found: DefenceLeaks | None = self.__dict__.get("_leaks")
        return found

    @property
    def all_leaks(self) -> list[DefenceLeaks]:
        """Of this training and those before, in their order."""
        before = [] if self.before is None else self.before.all_leaks
        return before if self.leaks is None else [*before, self.leaks]


def defence_named(text: str, classes: int) -> Any:
    """A defence by its name and number: "none", "label-dp 1", "gaussian 4", "max-norm".

    Raises
    ------
    SettingsInvalid (HR-511)
    """
    name, _, number = text.partition(" ")
    try:
        level = float(number) if number else None
    except ValueError:
        level = math.nan
    if name == "none" and level is None:
        return None
    if name == "max-norm" and level is None:
        return MaxNormNoise()
    if name in ("label-dp", "gaussian") and level is not None and math.isfinite(level):
        return LabelDP(level, classes) if name == "label-dp" else IsotropicNoise(level)
    remedy = 'Say "none", "label-dp 1", "gaussian 4" or "max-norm".'
    raise SettingsInvalid(f"defence {text!r} is unknown.", remedy=f"{suggestion(name, DEFENCES)} {remedy}")


def watch_defended(settings: Settings, state: Defended, opened: Any, test: Any) -> dict[str, float]:
    """Loss and accuracy of the last epoch; in a simulation with held-out people the attacks, which are kept with the state."""
    found = {"loss": state.trained.loss, "training accuracy": state.trained.score}
    if opened.tests:
        defence = defence_named(state.defence, classes_in(state.trained))
        leaks = leaks_of(state.trained, opened, state.defence, defence)
        state.__dict__["_leaks"] = leaks
        found["held out AUC" if leaks.leaks[0].metric == "AUC" else "held out accuracy"] = leaks.task
    return found


def show_defended(handle: Any, settings: Settings, state: Defended) -> Outcome:
    """Show attack, control and defence side by side."""
    found = state.all_leaks
    if not found:
        return Outcome({"trainings": float(state.round)}, notes=("Nothing was attacked: no people were held out.",))
    shown = leak_report(found, metric="AUC" if found[0].leaks[0].metric == "AUC" else "accuracy")
    how, epoch = found[0].attacks[-1], found[0].epochs[0]
    attacked = {f"{one.defence}: attack by {how}": leak.attack for one in found if (leak := one.of(how, epoch)) is not None}
    return Outcome(
        attacked,
        grids=shown.tables,
        curves=shown.curves,
        dots=shown.dots,
        notes=shown.sentences,
    )


def learns_of_defences(settings: Settings, roles: Any) -> dict[str, tuple[str, ...]]:
    """Who learns what of these trainings."""
    slopes = "slopes of the loss for each person, under each defence in turn, from which labels follow: measured in the report"
    seat = "" if roles is None or roles.seat is None else roles.seat
    found: dict[str, tuple[str, ...]] = {"others": (slopes,), "world": ("mean loss and accuracy, and how well attacks do",)}
    found |= {seat: ("outputs of the others' layers for each person, in every batch",)} if seat else {}
    return found | {"hub": ("sizes of sealed letters, initial weights, and sums over an epoch",)}


def case_of_defences() -> Case:
    """Two trainings on digits."""
    return replace(case_of_digits(), settings={"defences": ["none", "label-dp 4"], "epochs": 1, "width": 8, "batch_size": 50})


@program(
    "A split network under several defences, and what feature holders find out about labels under each, with controls.",
    columns="apart",
    takes="anew",
    bind={"label": label_of},
    outcome=show_defended,
    watch=watch_defended,
    shows_rows=True,
    learns=learns_of_defences,
    case=case_of_defences,
)
def split_leaks(
    anew: Callable[[], Any],
    *,
    label: str,
    epochs: int,
    defences: list[str],
    observe: list[int] = [1],  # noqa: B006 - never changed
    bottom_hidden: list[int] = [32],  # noqa: B006
    width: int = 16,
    top_hidden: list[int] = [],  # noqa: B006
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    optimiser: str = "Adam",
    scale: Literal["ranges", "numbers", "none", "symmetric"] = "ranges",
    order_seed: int = 0,
    model_seed: int = 0,
    start: Defended | None = None,
) -> Iterator[Defended]:
    """Train once for each defence, and keep at the label holder what it sends; labels are shared where nothing replaces them.

    Parameters
    ----------
    anew : callable
        Aligns the parties anew.
    label, epochs, bottom_hidden, width, top_hidden, batch_size, learning_rate, optimiser, scale, order_seed, model_seed
        As `hedgerow.vertical.programs.networks.split_network`.
    defences : list of str
        "none", "label-dp EPSILON", "gaussian LEVEL" and "max-norm", in the order of the table.
    observe : list of int
        Epochs of which slopes are kept, counted from 1.
    """
    for text in defences:  # a wrong one is refused before anybody is asked
        defence_named(text, 2)
    shape: dict[str, Any] = {"bottom_hidden": bottom_hidden, "width": width, "top_hidden": top_hidden, "merge": "sum"}
    state: Defended | None = None
    for i, text in enumerate(defences):
        aligned = anew()
        defence = defence_named(text, classes_of(aligned.schemas, label))
        bottoms, top = parts_of(aligned.schemas, label, own_features=False, model_seed=model_seed, **shape)
        how: dict[str, Any] = {"batch_size": batch_size, "learning_rate": learning_rate, "optimiser": optimiser}
        how |= {"scale": scale, "seed": order_seed, "observer": Observer(tuple(observe))}
        how |= {"labels": defence} if isinstance(defence, LabelDP) else {"labels": "shared", "defence": defence}
        *_, trained = splitnn(aligned, bottoms, top, label=label, epochs=epochs, **how)
        state = Defended(i + 1, text, trained, state)
        yield state
