"""Private training on features: fixed ones first, then private ones, then DP-SGD on a small module.

    straighten, scatter     each image by itself, from fixed constants                at the party, free
    centre                  noisy mean, once                                          `centre_rounds` sums
    components              principal components of noisy second moments, once        `basis_rounds` sums
    for each round:
        w      <- a step of DP-SGD on the features                                    one sum
        mean   <- average * mean + (1 - average) * w                                  server, free

Each part may be left out. A release of means or moments asks about a sample of the records as a step does, through the same
channel: it costs what a step costs, and the ledger adds it to the steps of training.

Releases : sums of records, `centre_rounds` times; second moments, `basis_rounds` times; the sum of clipped gradients, once
           per round.
State    : none at the parties.
Unit     : record.
Source   : Abadi et al. 2016 (components, then one hidden layer); Tramer & Boneh 2021 (scattering, then a linear model);
           averages of iterates: Polyak & Juditsky 1992.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.data import complete_cases
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.records.dpsgd import GradientStep as DescentStep
from hedgerow.learn.records.dpsgd import RecordTask

from ..descent.rules import RuleName
from ..models import Weights
from ..records import Clipping, RecordState, dpsgd
from ..schedule import Schedule
from ..settings import ScheduleName
from ..tensors import columns_of, width
from ..training import at_least
from .centre import centre
from .chain import Features
from .principal import principal, some_basis
from .results import declares


@displayed
@dataclass(frozen=True)
class FeatureState:
    """A model of features after a round.

    Attributes
    ----------
    weights : dict of arrays
        The average over rounds, which is the model to use.
    latest : dict of arrays
        Where training stands; the same without averaging.
    first, second : arrays of shape (trained parameters,)
        What the server's rule remembers.
    middle : array of shape (d,)
        The private centre; empty without one.
    vectors, values : arrays of shape (d, k) and (k,)
        The private basis; empty without one.
    """

    round: int
    weights: Weights
    latest: Weights
    first: np.ndarray
    second: np.ndarray
    middle: np.ndarray
    vectors: np.ndarray
    values: np.ndarray


NOTHING = np.zeros(0, np.float32)


@program(
    "DP-SGD on scattering, private centres and components (Abadi et al. 2016; Tramer & Boneh 2021).",
    **declares(
        sampling_rate=0.5,
        batch_size=60,
        model="mlp",
        hidden=[4],
        components=5,
        centre_rounds=1,
        basis_rounds=1,
        rounds=2,
    ),
)
def dpsgd_on_features(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    sampling_rate: float,
    batch_size: float,
    straighten: bool = False,
    scatter: bool = False,
    centre_rounds: int = 0,
    components: int | None = None,
    basis_rounds: int = 1,
    length: float = 1.0,
    clip: float | list[float] = 1.0,
    learning_rate: float = 0.1,
    solver: RuleName = "momentum",
    momentum: float = 0.9,
    schedule: ScheduleName = "constant",
    average: float = 0.0,
    start: FeatureState | None = None,
) -> Iterator[FeatureState]:
    """Private training, record by record, on features of the records.

    Parameters
    ----------
    module : torch.nn.Module
        Reads the features: (81, 7, 7) numbers of an image of 28 x 28 that is scattered, or `components` numbers.
    rounds : int
        Steps in all, those before `start` included.
    sampling_rate : float
        Each record of every party joins a release by itself with this probability.
    batch_size : float
        What sums are divided by: public, such as the expected number of records that join.
    straighten : bool
        Move each image to its centre of mass, and shear it until it stands upright.
    scatter : bool
        Replace each image by its scattering.
    centre_rounds : int
        Releases from which a private centre is estimated, each as costly as a step; 0 does without.
    components : int, optional
        Keep so many principal components, estimated with noise; all numbers otherwise.
    basis_rounds : int
        With components: releases from which they are estimated, each as costly as a step.
    length : float
        With components: of every record after the projection.
    clip : float or list of float
        Largest length of a record's gradient, or one for each trained layer.
    learning_rate : float
        Of the first round.
    solver : {"sgd", "momentum", "nesterov", "adagrad", "adadelta", "adam"}
        Rule of the server's step.
    momentum : float
        Constant of the rule.
    schedule : {"constant", "step", "exponential", "inverse", "cosine"}
        How the learning rate falls.
    average : float
        Weight of the past in the average over rounds, in [0, 1); 0 takes the last round.
    start : FeatureState, optional
        Continue after this state.

    Yields
    ------
    FeatureState
        After each round.

    Releases
    --------
    Sums of records of length one, `centre_rounds` times; their second moments, `basis_rounds` times; the sum of clipped
    gradients, once per round.

    Raises
    ------
    ModelInvalid (HR-510), SettingsInvalid (HR-511), UnlawfulChannel (HR-211)
        Before any party is asked.
    """
    federation = complete_cases(federation, columns_of(federation.schema), count=False)
    given: dict[str, Any] = {"clip": clip, "learning_rate": learning_rate, "solver": solver}
    given |= {"momentum": momentum, "schedule": schedule}
    wanted: dict[str, Any] = {"straighten": straighten, "scatter": scatter, "length": length}
    if start is None:
        at_least(0, centre_rounds=centre_rounds)
        at_least(1, basis_rounds=basis_rounds)
        fixed = Features(straighten, scatter).at_parties(federation)
        d = math.prod(width(fixed.schema))
        anything = np.zeros(d, np.float32) if centre_rounds else None
        basis = None if components is None else some_basis(fixed.schema, components)
        tried = Features(**wanted, middle=anything, basis=basis).at_parties(federation)
        _check(tried, module, batch_size, average, rounds, given)  # before the first release
        middle = None if not centre_rounds else centre(fixed, batch_size, rounds=centre_rounds, sampling_rate=sampling_rate)
        ready = Features(**wanted, middle=middle).at_parties(federation)
        if components is not None:
            basis = principal(ready, components, rounds=basis_rounds, sampling_rate=sampling_rate)
        features = Features(**wanted, middle=middle, basis=basis)
    else:
        features = Features.of(start, **wanted)
    ready = features.at_parties(federation)
    begun = start and RecordState(start.round, start.latest, start.first, start.second)
    kept = (
        NOTHING if features.middle is None else features.middle,
        NOTHING[None] if features.basis is None else features.basis.vectors,
        NOTHING if features.basis is None else features.basis.values,
    )
    training = dpsgd(ready, module, rounds=rounds, sampling_rate=sampling_rate, batch_size=batch_size, start=begun, **given)
    mean = None if start is None else start.weights
    for state in training:
        mean = _averaged(mean, state.weights, min(average, state.round / (state.round + 10)))
        yield FeatureState(state.round, mean, state.weights, state.first, state.second, *kept)


def _check(
    ready: Federation, module: nn.Module, batch_size: float, average: float, rounds: int, given: Mapping[str, Any]
) -> None:
    """Refuse what training would refuse later, while nothing has been released."""
    if not 0 <= average < 1:
        raise SettingsInvalid(f"average is {average!r}.", remedy="It lies in [0, 1); 0 takes the last round.")
    schedule = Schedule(given["schedule"], 0.99, 10, rounds)
    DescentStep(given["solver"], given["learning_rate"], given["momentum"], schedule=schedule).check()
    RecordTask.of(ready, module, None, batch_size, Clipping.of(given["clip"]))


def _averaged(mean: Weights | None, new: Weights, kept: float) -> dict[str, np.ndarray]:
    """A running mean that follows closely at first."""
    if mean is None or not kept:
        return dict(new)
    moved = {name: (kept * mean[name] + (1 - kept) * value).astype(value.dtype) for name, value in new.items()}
    return {name: np.where(mean[name] == value, value, moved[name]) for name, value in new.items()}  # fixed ones stay
