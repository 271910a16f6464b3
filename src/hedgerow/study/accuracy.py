"""What an epsilon costs a study in accuracy, before anybody is asked.

    gradient_queries    relative fitness and its interval for one run, by `hedgerow.market.forecast`: every owner answers at the
                        epsilon; the loss is known from the records that the study holds out, which belong to no owner
    other programs      the noise that the epsilon takes, where the study has a mechanism and a budget; of means, linear and
                        logistic regression by how much it makes standard errors larger (`accuracy_of_fits`)

`n_records`, of all owners in equal parts or of each, is a public constant: no table is counted. Weights are the study's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.core.events import Sampling, Unit
from hedgerow.errors import BudgetInvalid, SettingsInvalid
from hedgerow.learn.queries.answers import Answers
from hedgerow.learn.queries.keys import loss_of_keys, spec_of_keys, steps_of_keys
from hedgerow.learn.queries.lengths import answers_for
from hedgerow.learn.queries.program import divisor
from hedgerow.market.epsilon.meaning import hundred
from hedgerow.market.epsilon.meaning_page import AccuracyCost
from hedgerow.market.epsilon.posterior import advantage_of
from hedgerow.market.forecasts.forecast import Forecast, forecast
from hedgerow.market.forecasts.noisy_fit import NoisyFit
from hedgerow.market.forecasts.pilot_estimate import PilotEstimate
from hedgerow.privacy.accounting import Adjacency
from hedgerow.report import Curve, Grid, Series
from hedgerow.report.numerals import show

from .accuracy_of_fits import FORECAST, errors_of
from .build import Built, build
from .catalogue import listing
from .keys import settings_of
from .planned import with_noise
from .quiet import quiet
from .rehearse import rehearse
from .study import Study

QUERIES = "gradient_queries"
UNKNOWN = "nothing is known of the records. With evaluation.holdout the server has some that belong to no party."
LOW, HIGH, POINTS = 0.1, 30.0, 13
"""The figure goes from the one epsilon to the other, and further where one that is asked about lies beyond."""


def accuracy_cost(
    study: Study, epsilons: Sequence[float], delta: float, adjacency: Adjacency, *, data_dir: str | Path | None = None
) -> AccuracyCost:
    """Say what each epsilon costs a study, or that nobody can say.

    Parameters
    ----------
    study : Study
    epsilons : sequence of float
        Of everything that the study releases.
    delta : float
        Where it is 0 and noise is Gaussian, the study's own delta holds.
    adjacency : {"add-remove", "replace-one"}
        For whom the epsilons hold, whatever the study's key `neighbours` says.
    data_dir : path, optional
        Of data sets; the records of the server are read, and those of no party.
    """
    if study.comparison is not None:
        return AccuracyCost(f"{study.name} compares several runs; a forecast is of one of them.")
    private = [epsilon for epsilon in epsilons if epsilon > 0]
    if study.program.name == QUERIES and private:
        if study.forecast is not None and not study.evaluation.holdout:
            return AccuracyCost(planned_for(study))
        with quiet():
            return _of_queries(build(study, data_dir=data_dir), private, delta, adjacency)
    return _of_noise(study, private, delta, data_dir)


def planned_for(study: Study) -> str:
    """The forecast that a study names itself, which its plan made: for the epsilons that its owners agreed on, and no other."""
    f = study.forecast
    assert f is not None
    ends = f", in 90 of 100 runs between {show(f.low)} and {show(f.high)}"
    source = f" {f.source}" if f.source else ""
    return f"At its owners' own epsilons {study.name} expects a {f.measure} of {show(f.expected)}{ends}.{source}"


def agreed(study: Study) -> tuple[tuple[float, ...], float, Adjacency]:
    """Epsilons, delta and neighbours that a study itself names: of its budget, or of its owners."""
    if study.comparison is None and study.program.name == QUERIES:
        settings = settings_of(listing(QUERIES), study.program.model_extra or {})
        if settings["epsilons"]:
            delta = settings["delta"] if settings["noise"] == "gaussian" else 0.0
            return tuple(sorted(set(settings["epsilons"].values()))), delta, settings["neighbours"]
    if study.budget is not None:
        return (study.budget.epsilon,), study.budget.delta, study.budget.adjacency
    return (), 0.0, "add-remove"


def protected(study: Study) -> Unit:
    """Whose presence a study's epsilon protects: its budget's unit, and a record where it has none."""
    return "record" if study.budget is None else study.budget.unit


def _of_queries(built: Built, epsilons: Sequence[float], delta: float, adjacency: Adjacency) -> AccuracyCost:
    if built.test is None or not len(built.test):
        return AccuracyCost(f"No forecast: {UNKNOWN}")
    try:
        estimate, names = _estimate(built), built.federation.names
    except SettingsInvalid as error:
        return AccuracyCost(f"No forecast: {error.reason}")
    law, agreed_on = built.settings["noise"], built.settings["epsilons"]
    delta = (delta or built.settings["delta"]) if law == "gaussian" else 0.0

    @cache
    def answers_at(epsilon: float) -> Answers:
        return _answers(built, dict.fromkeys(names, epsilon), delta, adjacency)

    plans = {f"{epsilon:g}": answers_at(epsilon) for epsilon in epsilons}
    if len(set(agreed_on.values())) > 1:
        plans["as agreed"] = _answers(built, agreed_on, delta, adjacency)
    found = {told: _forecast(built, estimate, answers) for told, answers in plans.items()}
    guessed = {told: _guessed(answers, adjacency) for told, answers in plans.items()}
    first, name = next(iter(found.values())), built.study.name
    unseen = f"{first.assumptions[0].capitalize()}."
    sentence = (
        f"What {name} loses at epsilon {epsilons[0]:g}: {first.sentence} {unseen}"
        if len(found) == 1
        else f"The forecasts of {name} know the loss from {first.source}. {unseen}"
    )

    def at(epsilon: float) -> Forecast:
        return _forecast(built, estimate, answers_at(epsilon))

    return AccuracyCost(sentence, (_grid(name, found, guessed, law, delta, adjacency),), (_curve(name, at, epsilons),))


def _grid(
    name: str, found: Mapping[str, Forecast], guessed: Mapping[str, str], law: str, delta: float, adjacency: Adjacency
) -> Grid:
    first = next(iter(found.values()))
    rows = tuple(
        (told + ", saturated" * one.saturated, *map(_short, _numbers(one)), guessed[told]) for told, one in found.items()
    )
    plain = (first.bias + first.sampling) / first.least
    at = f" and delta {delta:g}" if delta else ""
    note = (
        f"Relative fitness: the loss over the least one, less 1. Without noise it is {plain:.3g}, with coefficients of zero "
        f"{first.ceiling:.3g}. Every owner answers at the epsilon{at} with {law} noise of its own; {adjacency} neighbours; "
        f"known from {first.source}. Guessed: of 100 people of whom half took part, by the best attack on this very noise."
    )
    columns = ("epsilon", "relative fitness", "5 % of runs below", "5 % of runs above", "due to noise", "guessed of 100")
    return Grid(f"What {name} loses", columns, rows, note)


def _numbers(one: Forecast) -> tuple[float, ...]:
    return one.relative_fitness, one.low, one.high, one.noise / one.least


def _short(value: float) -> str:
    return show(float(f"{value:.3g}"))


def _estimate(built: Built) -> PilotEstimate:
    """The neighbourhood of the loss, from the server's records."""
    assert built.test is not None
    spec, loss = spec_of_keys(built.schema, built.settings), loss_of_keys(built.schema, built.settings)
    return PilotEstimate.of_table(loss, spec, built.complete(built.test), built.settings["box"], "records of the server")


def _answers(built: Built, epsilons: Mapping[str, float], delta: float, adjacency: Adjacency) -> Answers:
    schema, settings = built.schema, built.settings
    loss, spec = loss_of_keys(schema, settings), spec_of_keys(schema, settings)
    weights = {name: weight for name, weight in settings["weights"].items() if name in epsilons}
    how: dict[str, Any] = {"law": settings["noise"], "neighbours": adjacency, "delta": delta, "weights": weights}
    return answers_for(schema, epsilons, settings["rounds"], loss, spec, settings["box"], **how)


def _forecast(built: Built, estimate: PilotEstimate, answers: Answers) -> Forecast:
    settings, names = built.settings, [name for name, _ in answers.epsilons]
    given = settings["n_records"]
    records = [given[name] for name in names] if isinstance(given, Mapping) else [given / len(names)] * len(names)
    divisor(given, names, answers)
    return forecast(estimate, steps_of_keys(built.schema, settings), settings["rounds"], answers, records)


def _guessed(answers: Answers, adjacency: Adjacency) -> str:
    """Of 100 people of whom half took part, so many are guessed rightly by the best attack on the most open owner's noise."""
    asked = Counter({(Sampling(), (answers.event(),)): answers.horizon})
    return hundred(advantage_of(asked, adjacency))


def _curve(name: str, at: Callable[[float], Forecast], epsilons: Sequence[float]) -> Curve:
    grid = np.geomspace(min(LOW, *epsilons), max(HIGH, *epsilons), POINTS)
    xs = tuple(sorted({float(f"{x:.6g}") for x in grid} | set(epsilons)))
    found = [at(x) for x in xs]
    low, high = tuple(one.low for one in found), tuple(one.high for one in found)
    first = found[0]
    series = (
        Series("forecast", xs, tuple(one.relative_fitness for one in found), low=low, high=high),
        Series("without noise", xs[:1], ((first.bias + first.sampling) / first.least,), "reference"),
        Series("coefficients of zero", xs[:1], (first.ceiling,), "reference"),
    )
    note = "The band holds 90 of 100 runs. Above coefficients of zero nothing is learned: the box decides where a run ends."
    return Curve(f"What {name} loses", "epsilon of every owner", "relative fitness", series, note=note, log="xy")


def _of_noise(study: Study, epsilons: Sequence[float], delta: float, data_dir: str | Path | None) -> AccuracyCost:
    """The noise multiplier that each epsilon takes, where the study leaves it to its budget."""
    none = f"No forecast of accuracy exists for the program {study.program.name}."
    if study.program.name in FORECAST and not study.evaluation.holdout:
        none = f"No forecast: {UNKNOWN}"
    mechanism, budget = study.protection.mechanism, study.budget
    if mechanism is None or budget is None or not epsilons:
        return AccuracyCost(none)
    open_ = study.protection.model_copy(update={"mechanism": mechanism.model_copy(update={"noise_multiplier": None})})
    told, rows, fits = delta or budget.delta, [], []
    for epsilon in epsilons:
        limit = {"epsilon": epsilon, "delta": told}
        changed = study.model_copy(update={"budget": budget.model_copy(update=limit), "protection": open_})
        try:
            row, found = _planned(changed, data_dir)
        except BudgetInvalid as error:
            return AccuracyCost(f"{none} At epsilon {epsilon:g} and delta {told:g}: {error.reason}.")
        rows.append((f"{epsilon:g}", *row, _grown(found)))
        fits += [] if found is None else [found]
    cut = 4 if fits else 3  # without a forecast there is nothing to say of errors
    grid = Grid(
        f"The noise that it takes in {study.name}",
        ("epsilon", "noise multiplier", "guessed of 100", "standard errors, times")[:cut],
        tuple(row[:cut] for row in rows),
        f"Noise of each sum over its bound, where everything that the study releases has this epsilon at delta {told:g} per "
        f"{budget.unit}; by its rehearsal. Guessed: of 100 of whom half took part, by the best attack on this very noise.",
    )
    if not fits:
        return AccuracyCost(f"{none} Its noise is in the table.", (grid,))
    said = f"{fits[0][1]:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    first = f"What {study.name} loses at epsilon {epsilons[0]:g}: noise makes its standard errors"
    known = f"Known from {said} records of the server; those of the parties are taken to be alike."
    if len(rows) == 1 and not fits[0][0].saturated:
        return AccuracyCost(f"{first} {rows[0][3]} times as large. {known}", (grid,))
    hides = " Saturated: noise hides what the records say of some number." * any(fit.saturated for fit, _ in fits)
    return AccuracyCost(f"Standard errors of {study.name} with noise, over those without. {known}{hides}", (grid,))


def _grown(found: tuple[NoisyFit, int] | None) -> str:
    """By which factors standard errors grow, from the least to the most."""
    if found is None:
        return ""
    growth = found[0].growth
    return "saturated" if found[0].saturated else f"{growth.min():.3g} to {growth.max():.3g}"


def _planned(study: Study, data_dir: str | Path | None) -> tuple[tuple[float | None, str | None], tuple[NoisyFit, int] | None]:
    """The noise multiplier with which a study keeps its budget, what an attack guesses of 100, and errors of its regression."""
    assert study.budget is not None
    with quiet():
        planned = with_noise(study, lambda one: build(one, data_dir=data_dir), data_dir)
    charges = rehearse(planned, data_dir=data_dir).ledger.charges(study.budget.unit)
    z = planned.protection.mechanism.noise_multiplier if planned.protection.mechanism else None
    guessed = hundred(advantage_of(charges, study.budget.adjacency))
    return (None if z is None else float(f"{z:.4g}"), guessed), errors_of(planned, data_dir)
