"""Shadow models: many trainings of one program on parts of the records by coin, without noise and with, to be attacked in turn.

    without noise, then for every epsilon:
        for k = 1 .. models:
            records of model k    <- by coin, at their party
            model k               <- DP-SGD on them: `rounds` sums of all their gradients, noise for that epsilon, Adam

Each of the first models is then the target, and all others of its epsilon are its shadow models: same program, same noise, same
coins as another epsilon's. Without an epsilon nothing is clipped, and no noise is added.

Releases : one sum of gradients a round, for each training; the ledger adds up all trainings, while an attacker of one target
           sees one of them. No gain from the coins is claimed.
State    : none at the parties.
Unit     : record.
Source   : Carlini et al., S&P 2022, section IV; DP-SGD: Abadi et al., CCS 2016, with all records in every round.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, Key, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Parties
from hedgerow.data import Schema, Table, complete_cases, load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid, UnlawfulChannel
from hedgerow.learn import dpsgd, results
from hedgerow.learn.features.public import NAME as COMPONENTS
from hedgerow.learn.features.public import public_components, public_directions, random_directions
from hedgerow.privacy.accounting import calibrate
from hedgerow.privacy.mechanisms import Gaussian

from .shadow_coins import by_coin, with_keys

if TYPE_CHECKING:
    from hedgerow.learn.scale import Scale
    from hedgerow.report import Outcome

Settings = Mapping[str, Any]
NO_CLIP = 1e9
"""A length that no gradient has."""


@displayed
@dataclass(frozen=True)
class ShadowState:
    """Trained models, one epsilon after the other.

    Attributes
    ----------
    round : int
        Trainings that have ended.
    weights : array of shape (rows * models, d)
        Of each training, zeros until then.
    directions, shift : arrays of shape (numbers of a record, k) and (k,)
        The first layer, made of public records; empty without one.
    """

    round: int
    weights: Array
    directions: Array
    shift: Array


def levels_of(without_noise: bool, epsilons: list[float]) -> list[float]:
    """The epsilon of one training in each row of a study, inf without noise."""
    return [math.inf] * without_noise + [float(epsilon) for epsilon in epsilons]


def modules_of(schema: Schema, settings: Settings) -> Callable[[int], nn.Module]:
    """What makes the untrained module of each model, whose initial weights have a seed of their own."""
    k = settings["components"]
    read = public_components(schema, np.zeros((1, k)), np.zeros(k)).schema(schema) if k else schema
    return lambda model: results.module_for(read, {**settings, "model_seed": settings["model_seed"] + model})


def noise_of(epsilon: float, delta: float, rounds: int) -> float:
    """The noise multiplier of one training at an epsilon."""
    return calibrate(epsilon, delta, rounds=rounds, sampling="records")


def scale_of(state: ShadowState) -> Scale:
    """How a module reads its features."""
    return "none" if state.directions.size else "ranges"


def show(federation: Federation, settings: Settings, state: ShadowState, records: Parties | None = None) -> Outcome:
    """The attacks on each target, where a simulation has the records."""
    from .membership_page import membership_outcome

    return membership_outcome(federation.schema, settings, state, records, modules_of(federation.schema, settings))


@program(
    "Membership: shadow models with the noise of their targets, and four attacks on them (Carlini et al. 2022).",
    name="membership",
    keys=results.MODEL | {"targets": Key(int, 16, "models that are attacked in turn, each by means of all others", {"ge": 2})},
    bind={"modules": modules_of},
    fixed={"test": None},
    with_test=True,
    with_records=True,
    outcome=show,
    case=lambda: Case(
        load("breast_cancer").select(["malignant", "mean_radius", "mean_texture", "mean_area"]).take(range(120)),
        {"n_records": 120, "models": 4, "targets": 2, "share": 0.5, "epsilons": [4.0], "rounds": 2},
        tolerance=results.SINGLE,
    ),
)
def membership_trials(
    federation: Federation,
    modules: Callable[[int], nn.Module],
    *,
    n_records: int,
    models: int = 64,
    share: float = 0.5,
    without_noise: bool = True,
    epsilons: list[float] = [4.0],  # noqa: B006 - never changed
    delta: float = 1e-5,
    rounds: int = 100,
    learning_rate: float = 0.02,
    clip: float = 1.0,
    components: int = 0,
    test: Table | None = None,
    start: ShadowState | None = None,
) -> Iterator[ShadowState]:
    """Train models on parts of the records, at each epsilon in turn.

    Parameters
    ----------
    modules : callable
        From the number of a model to its module.
    n_records : int
        Records of all parties, a constant in public.
    models : int
        Trainings at each epsilon.
    share : float
        Each model is trained on each record with this probability.
    without_noise : bool
        Whether to train models without clip and noise first.
    epsilons : list of float
        Of one training, each in turn.
    delta : float
        Of one training.
    rounds : int
        Steps of Adam along the sum of all gradients.
    learning_rate : float
        Of Adam.
    clip : float
        Largest length of a record's gradient, where there is noise.
    components : int
        Leading directions of the first 2000 records of the server's table, which are public, that the model reads in place of
        the features; 0 for the features. Without such a table directions are random.
    start : ShadowState, optional
        Continue after this state.

    Yields
    ------
    ShadowState
        After each training.

    Raises
    ------
    UnlawfulChannel (HR-211)
        The channel is protected: trainings bring noise of their own.
    SettingsInvalid (HR-511), BudgetInvalid (HR-214)
        Before any party is asked.
    """
    if not federation.protection.open:
        raise UnlawfulChannel(
            "shadow models bring noise of their own, and the channel is protected already.",
            remedy="Leave [protection] out: give epsilons = [4.0].",
        )
    schema, levels = federation.schema, levels_of(without_noise, epsilons)
    if (
        n_records < 1
        or models < 3
        or not 0 < share < 1
        or rounds < 1
        or not levels
        or min(levels) <= 0
        or math.inf in epsilons
        or components < 0
    ):
        raise SettingsInvalid(
            f"{n_records=}, {models=}, {share=}, {rounds=}, {without_noise=}, {epsilons=}, {components=}.",
            remedy="Train at least 3 models, each on a share in (0, 1) of the records; epsilons are finite and above zero.",
        )
    if schema.target is None or not schema.classifies:
        raise SettingsInvalid(
            f"the target {schema.target!r} has no classes.", remedy="Attack models of a category or a binary target."
        )
    noise = [math.inf if math.isinf(e) else noise_of(e, delta, rounds) for e in levels]
    state = start or _begun(schema, modules, len(levels) * models, components, test)
    known = complete_cases(federation, [*schema.features, schema.target], count=False)
    known = with_keys(known, [*schema.features, schema.target])
    if state.directions.size:
        known = public_components(schema, state.directions, state.shift).at_parties(known)
    features = [COMPONENTS] if state.directions.size else list(schema.features)
    for number in range(state.round, len(levels) * models):
        z, model = noise[number // models], number % models
        part = known.prepare(by_coin, model=model, share=share)
        part = part if math.isinf(z) else part.protect(mechanism=Gaussian(z))
        how: Any = {"rounds": rounds, "sampling_rate": 1.0, "batch_size": share * n_records, "learning_rate": learning_rate}
        how |= {"clip": NO_CLIP if math.isinf(z) else clip, "solver": "adam", "features": features, "scale": scale_of(state)}
        last = deque(dpsgd(part, modules(model), **how), maxlen=1).pop()
        weights = state.weights.copy()
        begun = {name: value.detach().numpy() for name, value in modules(model).state_dict().items()}
        weights[number] = flat_of(begun | dict(last.weights))  # what is frozen stays as it began
        state = replace(state, round=number + 1, weights=weights)
        yield state


def _begun(schema: Schema, modules: Callable[[int], Any], trainings: int, components: int, test: Table | None) -> ShadowState:
    size = sum(value.numel() for value in modules(0).state_dict().values())
    if not components:
        return ShadowState(0, np.zeros((trainings, size), np.float32), np.zeros((0, 0), np.float32), np.zeros(0, np.float32))
    found = random_directions(schema, components) if test is None else public_directions(test, components)
    return ShadowState(0, np.zeros((trainings, size), np.float32), *found)


def flat_of(weights: Mapping[str, Array]) -> Array:
    """Parameters by name as one vector, in their order."""
    return np.concatenate([np.asarray(value, np.float32).ravel() for value in weights.values()])


def weights_at(module: nn.Module, flat: Array) -> dict[str, Array]:
    """Parameters by name of a vector that `flat_of` made."""
    found, at = {}, 0
    for name, value in module.state_dict().items():
        found[name] = flat[at : at + value.numel()].reshape(tuple(value.shape))
        at += value.numel()
    return found
