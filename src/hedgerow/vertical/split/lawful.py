"""What split training would tell, and to whom; it is refused unless it was said to be shared.

    labels     dL/dz of a record goes to the feature holders. Its norm and direction tell the label: with nothing known but
               the slopes, an area under the curve of .996, with ten known records 98.8 % of the labels of ten classes
    columns    outputs of an affine part are linear equations in a person's columns; the label holder gets some for each
               pass over the records, and with the weights known or enough people known, the columns themselves

Labels are protected where randomised response flips them before training (`LabelDP`). In a U-shape slopes go to the holder of
the middle; where that is the hub, which cannot name the people, and the label holder's own features are the only ones, no
party is told. Everything else has to be said: labels="shared", columns="shared". Predictions that go to a party tell labels of
people whom it can name, and have to be said as well.

Source : Li et al., ICLR 2022 (label leakage in two-party split learning); figures are measurements of ours.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from hedgerow.crypto.peers import HUB
from hedgerow.errors import LabelsExposed, SettingsInvalid, UnlawfulChannel
from hedgerow.vertical.leaks import LabelDP

SHARED = "shared"
"""Said of labels or columns that the other parties may learn."""


def lawful_labels(labels: Any, told: Collection[str], seat: str) -> None:
    """Refuse training that would tell the labels to parties that do not hold them.

    Parameters
    ----------
    labels : None, "shared", or LabelDP
    told : collection of str
        The parties that receive slopes by record, the label holder left out.

    Raises
    ------
    LabelsExposed (HR-247), SettingsInvalid (HR-511)
    """
    if labels is not None and labels != SHARED and not isinstance(labels, LabelDP):
        raise SettingsInvalid(
            f"labels is {labels!r}.", remedy='Say "shared", or give hedgerow.vertical.leaks.LabelDP(epsilon).'
        )
    if labels is None and told:
        raise LabelsExposed(
            f"{', '.join(sorted(told))} would receive the slopes of the loss for each record, which tell {seat}'s labels.",
            remedy="Protect them: labels=LabelDP(epsilon=1.0), or train with the label holder's own features and a middle at\n"
            'the hub. Where these parties may know the labels, say so: labels="shared".',
        )


def lawful_predictions(labels: Any, protected: bool, to: str, seat: str) -> None:
    """Refuse predictions of named people to a party that may not know the labels: a model that learned them repeats them.

    Parameters
    ----------
    labels : None or "shared"
    protected : bool
        Whether training said that labels are shared, or replaced them at random.
    to, seat : str
        Who would receive predictions, and the label holder.

    Raises
    ------
    LabelsExposed (HR-247), SettingsInvalid (HR-511)
    """
    if labels not in (None, SHARED):
        raise SettingsInvalid(f"labels is {labels!r}.", remedy='Say "shared", or leave it out.')
    if labels is None and not protected and to not in (seat, HUB):
        raise LabelsExposed(
            f"{to} would receive predictions of people whom it can name, which tell most of {seat}'s labels.",
            remedy=f"Keep them at {seat}, or train with labels=LabelDP(epsilon=1.0). Where {to} may know the labels, say so:\n"
            'predict(..., labels="shared").',
        )


def lawful_columns(
    columns: Any, modules: Mapping[str, nn.Module], inputs: Mapping[str, Tensor], openings: float, to: str
) -> None:
    """Refuse affine parts whose outputs a party receives more than once for each record (trap V2).

    Parameters
    ----------
    columns : None or "shared"
    modules, inputs : mapping from party
        Of feature holders other than the party that receives; made-up records.
    openings : float
        How often each record is sent, epochs times n / batch at most one for each batch.

    Raises
    ------
    LabelsExposed (HR-247), SettingsInvalid (HR-511)
    """
    if columns not in (None, SHARED):
        raise SettingsInvalid(f"columns is {columns!r}.", remedy='Say "shared", or leave it out.')
    if columns == SHARED or openings <= 1:
        return
    if plain := [party for party, module in modules.items() if is_affine(module, inputs[party])]:
        raise LabelsExposed(
            f"the part of {', '.join(plain)} is affine, and {openings:.0f} openings of it are linear equations from which "
            f"{to} can solve for columns.",
            remedy="Give the part an activation; or fit a generalised linear model, whose predictors go to the hub alone:\n"
            'hr.vertical.logistic_regression(...). Where the party may know the columns, say so: columns="shared".',
        )


def lawful_merge(merge: str, senders: Collection[str], hidden: bool) -> None:
    """Refuse a maximum behind masks: they cancel in a sum, and a maximum is none.

    Raises
    ------
    UnlawfulChannel (HR-211)
    """
    if merge == "maximum" and hidden and len(senders) > 1:
        raise UnlawfulChannel(
            f"the outputs of {', '.join(senders)} are hidden in their sum, and their maximum is no sum.",
            remedy='Use merge="sum". Where the label holder may see the outputs of each party, say hidden=False.',
        )


def is_affine(module: nn.Module, inputs: Tensor) -> bool:
    """Whether a module is an affine map of its input, as far as made-up points show.

    It is tried in double precision, on points so far apart that activations bend: f(a + b - c) = f(a) + f(b) - f(c).
    """
    tried = copy.deepcopy(module).double().eval()
    drawn = torch.Generator().manual_seed(0)
    a, b, c = (torch.randn((64, *inputs.shape[1:]), generator=drawn, dtype=torch.float64) * 3 for _ in range(3))
    try:
        with torch.no_grad():
            there, wanted = tried(a + b - c), tried(a) + tried(b) - tried(c)
    except (RuntimeError, IndexError, TypeError):  # it reads no such numbers, as an embedding
        return False
    return bool((there - wanted).abs().max() <= 1e-9 * (1 + wanted.abs().max()))
