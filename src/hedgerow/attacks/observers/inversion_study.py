"""A study of gradient inversion: what a server makes of sums, by how many records are in them and how they are protected.

    for each case:
        for each target:
            parties, as many as the case has records     pick
            gradient at public weights                   sum, in the open, through SecAgg, or behind clip and noise
            pictures                                     made of the total alone

Parties hold one record each, so that a sum over B of them is also what a party sends of a batch of B records. The attacker is
whoever sees the total. Truth is known to the simulation, which compares when the run is shown.

Releases : the total of each case and target; labels of the parties asked, where the attacker is told these.
Unit     : party.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array, Layout, flatten
from hedgerow.core.bound import l2
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.view import Observation
from hedgerow.crypto import SecAgg
from hedgerow.data import load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.local import gradient
from hedgerow.learn.models import Model, linear
from hedgerow.learn.tensors import prepared, width
from hedgerow.learn.training import model_of
from hedgerow.privacy import Gaussian

from .cosine_search import CosineSearch
from .inversion import infer_labels, invert
from .inversion_cases import InversionCase, cases_of, places_of, sigmoid_net
from .inversion_page import inversion_outcome, is_picture

LARGEST = 1024.0
"""Range of a number of a gradient in secure sums, far above what one record gives."""


@displayed
@dataclass(frozen=True)
class InversionState:
    """Pictures of the cases so far.

    Attributes
    ----------
    round : int
        Cases that have ended.
    images : array of shape (pictures, ...)
        Of all cases and targets (`places_of`), as the module reads inputs; NaN where there is none.
    counts : array of shape (cases, targets, classes)
        Inferred numbers of labels; NaN where the attacker was told them.
    """

    round: int
    images: Array
    counts: Array


@local(additive=True)
def labels_told(broadcast: Any, party: Party, rng: Any, *, classes: int) -> Array:
    """How many records of each class a party holds, (classes,): what the attacker is assumed to know."""
    return np.asarray(np.bincount(party["model_target"], weights=party.w, minlength=classes))


@program(
    "Pictures of records made of gradients: by records in the sum, secure aggregation and noise.",
    outcome=inversion_outcome,
    with_records=True,
    one_record=True,
    case=lambda: Case(
        load("digits").take(range(8)),
        {"targets": 1, "searches": 1, "batches": [1], "noise": [0.1], "searched": [], "search_noise": [], "group": 3}
        | {"steps": 2, "hidden": [4]},
        parties=8,
        tolerance=0.05,
    ),
)
def inversion(
    federation: Federation,
    *,
    targets: int = 20,
    searches: int = 3,
    batches: list[int] = [1, 2, 8, 64],  # noqa: B006 - never changed
    noise: list[float] = [0.01, 0.1, 1.0],  # noqa: B006
    searched: list[int] = [1, 4, 8, 32],  # noqa: B006
    search_noise: list[float] = [0.01, 1.0],  # noqa: B006
    group: int = 10,
    clip: float = 1.0,
    steps: int = 600,
    hidden: list[int] = [64, 32],  # noqa: B006
    model_seed: int = 0,
    picture: list[int] = [],  # noqa: B006
    start: InversionState | None = None,
) -> Iterator[InversionState]:
    """Ask for sums of gradients, and make pictures of what comes.

    Parameters
    ----------
    targets : int
        Sums of each case that are read off the first layer.
    searches : int
        Sums of each case that are searched.
    batches : list of int
        Records in a sum of a softmax regression.
    noise : list of float
        Noise multipliers at the party, of one record's gradient.
    searched : list of int
        Records in a sum of a sigmoid network.
    search_noise : list of float
        Noise multipliers before a search.
    group : int
        Parties in a secure sum.
    clip : float
        Length to which a party cuts what it sends before the noise.
    steps : int
        Of a search.
    hidden : list of int
        Units of the network's hidden layers.
    model_seed : int
        Of its weights, and of searches.
    picture : list of int
        Shape in which a record's numbers are drawn, such as [8, 8]; by default their own, where they have two axes or three.

    Yields
    ------
    InversionState
        After each case.

    Raises
    ------
    SettingsInvalid (HR-511)
        The target is no category, a sum has more records than there are parties, the federation is protected already, or a
        number is out of its range.
    """
    cases = cases_of(batches, noise, searched, search_noise, group)
    most = max(case.records for case in cases)
    if targets < 1 or searches < 1 or most > federation.size or not federation.protection.open:
        raise SettingsInvalid(
            f"targets={targets}, searches={searches}, sums of up to {most} of {federation.size} parties, through "
            f"{'an open' if federation.protection.open else 'a protected'} channel.",
            remedy="Give one target or more, as many parties as the largest sum has records, and no [protection].",
        )
    schema = federation.schema
    if schema.target is None or schema[schema.target].kind != "category":
        raise SettingsInvalid(f"the target {schema.target!r} is no category.", remedy="Take labels of two classes or more.")
    if not 0 < clip < math.inf or any(units < 1 for units in hidden):
        raise SettingsInvalid(
            f"clip={clip}, hidden={hidden}.",
            remedy="A clip is finite and above zero, and each hidden layer has one unit or more.",
        )
    if picture and (math.prod(picture) != math.prod(width(schema)) or not is_picture(picture)):
        raise SettingsInvalid(
            f"picture={picture}, and a record has {math.prod(width(schema))} numbers.",
            remedy="Give (height, width) or (3, height, width) of a picture of one record, such as [8, 8].",
        )
    shape, classes = width(schema), len(schema[schema.target].levels)
    regression = linear(math.prod(shape), classes)
    network = sigmoid_net(math.prod(shape), list(hidden), classes, seed=model_seed)
    models = {"regression": model_of(regression, federation, None), "network": model_of(network, federation, None)}
    ready, search = prepared(federation), CosineSearch(steps, variation=1e-4, seed=model_seed)
    places = places_of(cases, targets, searches)
    images = np.full((places[-1][-1].stop, *shape), np.nan, np.float32)
    counts = np.full((len(cases), max(targets, searches), classes), np.nan, np.float32)
    if start is not None:
        images, counts = start.images.copy(), start.counts.copy()
    for k in range(start.round if start else 0, len(cases)):
        case, model = cases[k], models[cases[k].net]
        for t, place in enumerate(places[k]):
            cohort = ready.pick([federation.names[i] for i in asked(t, case.records, federation.size)])
            seen, told = seen_total(cohort, case, model, clip), None
            if case.told:
                total = np.rint(np.asarray(cohort.sum(partial(labels_told, classes=classes))))
                told = np.repeat(np.arange(classes), total.astype(int))
            how: dict[str, Any] = {"records": case.records}
            if told is None:
                counts[k, t] = infer_labels(seen, model.module, schema, **how).counts
            if case.alone and told is not None:
                told = told[:1]
            found = invert(seen, model.module, schema, by=way_of(case, counts[k, t]), labels=told, search=search, **how)
            made = found.images[: case.pictures]
            images[place][: len(made)] = made
        yield InversionState(k + 1, images.copy(), counts.copy())


def asked(target: int, records: int, size: int) -> list[int]:
    """Places of the parties in a sum."""
    return [(target * records + j) % size for j in range(records)]


def way_of(case: InversionCase, counts: Array) -> Any:
    """How a case is attacked: by class only where a class seems to be missing."""
    return "rows" if case.by == "classes" and (counts > 0).all() else case.by


def seen_total(cohort: Federation, case: InversionCase, model: Model, clip: float) -> Observation:
    """Ask for a case's sum; what the server sees of it."""
    if case.hidden:
        cohort = cohort.protect(aggregation=SecAgg(largest=LARGEST))
    if case.noise is not None:
        cohort = cohort.protect(clip=l2(clip), mechanism=Gaussian(case.noise, at="party"))
    total = cohort.sum(partial(gradient, model=model), model.initial)
    return Observation(cohort.asked, "release", "server", "gradient", flatten(total), Layout.of(total))
