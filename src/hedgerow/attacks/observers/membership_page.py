"""What a study shows of membership: four attacks on every target, rates with intervals, and curves where few are accused."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.party import Parties
from hedgerow.data import Schema, Table
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.features.public import NAME as COMPONENTS
from hedgerow.learn.features.public import public_components
from hedgerow.privacy.accounting.trade_off import GaussianTradeOff
from hedgerow.report import Outcome
from hedgerow.report.model import Cell, Curve, Grid, Series

from ..audits.ceiling import AttackCeiling
from .membership import confidences, lira, losses_of, shadow_attack
from .rates import at_threshold
from .several_targets import TargetRates
from .shadow_coins import KEY, coins, keyed
from .shadow_models import ShadowState, levels_of, noise_of, scale_of, weights_at

if TYPE_CHECKING:
    from torch import nn

Settings = Mapping[str, Any]
Attack = Callable[[Array, Array, Array, Array], Array]
"""`(target, shadows, members, classes) -> scores`."""

ATTACKS: dict[str, Attack] = {
    "loss threshold": lambda target, shadows, members, classes: target,
    "shadow models": shadow_attack,
    "LiRA offline": lambda target, shadows, members, classes: lira(target, shadows, members, online=False),
    "LiRA online": lambda target, shadows, members, classes: lira(target, shadows, members),
}
AT = (0.001, 0.01)
"""Rates of false positives of which the page prints true positives."""
LEAST_OTHERS = 10_000
"""Records outside the training that the smallest of these rates needs."""
NO_RECORDS = "Attacks are measured in a simulation alone, which knows who was in the training."


def membership_outcome(
    schema: Schema, settings: Settings, state: ShadowState, records: Parties | None, modules: Callable[[int], nn.Module]
) -> Outcome:
    """Attack the first models of every epsilon that have been trained."""
    epsilons = levels_of(settings["without_noise"], settings["epsilons"])[: state.round // settings["models"]]
    arrays = {"weights": state.weights}
    if records is None or not epsilons:
        return Outcome({"trainings": float(state.round)}, arrays=arrays, notes=(NO_RECORDS,) if records is None else ())
    table, members = whole_table(schema, settings, records)
    read = public_components(schema, state.directions, state.shift).of(table) if state.directions.size else table
    classes = np.asarray(table[str(schema.target)]).astype(int)
    found: dict[tuple[float, str], TargetRates] = {}
    told: list[tuple[Cell, ...]] = []
    rows: list[tuple[Cell, ...]] = []
    refused = ""
    targets = min(settings["targets"], settings["models"])
    for i, epsilon in enumerate(epsilons):
        scores = scores_of(read, state, modules, i, settings["models"])
        told.append(_models(epsilon, scores[:targets], members[:targets]))
        for name, attack in ATTACKS.items():
            others = [np.arange(len(scores)) != k for k in range(targets)]
            made = [attack(scores[k], scores[o], members[o], classes) for k, o in enumerate(others)]
            rates = found[epsilon, name] = TargetRates.of(made, list(members[:targets]))
            cells, refused = _cells(rates, refused)
            rows.append((noise_named(epsilon), name, *cells))
        if math.isfinite(epsilon):
            rows += _ceilings(epsilon, settings)
    least = min(int((~one).sum()) for one in members[:targets])
    return Outcome(
        metrics=_metrics(found),
        grids=(
            Grid("Attacks on membership", _HEADS, tuple(rows), _note(targets, least, settings, refused)),
            Grid("Models that are attacked", _MODELS, tuple(told), _MODELS_NOTE),
        ),
        curves=tuple(roc(epsilon, {name: found[epsilon, name] for name in ATTACKS}, settings) for epsilon in epsilons),
        arrays=arrays,
        notes=_notes(settings, epsilons),
    )


def whole_table(schema: Schema, settings: Settings, records: Parties) -> tuple[Table, Array]:
    """The records without missing values, and which model was trained on which: booleans (models, n)."""
    names = (*schema.features, str(schema.target))
    kept = records.kept.columns
    table = Table({name: np.asarray(kept[name]) for name in schema.names}, schema)
    lost = [np.asarray(schema[name].lacks(np.asarray(table[name]))) for name in names if schema[name].optional]
    if lost:
        table = table.take(~np.any(lost, axis=0))
    keys = keyed(table.columns, of=names)[KEY]
    return table, np.array([coins(keys, model, settings["share"]) for model in range(settings["models"])])


def scores_of(table: Table, state: ShadowState, modules: Callable[[int], nn.Module], place: int, models: int) -> Array:
    """Confidences of all models of one epsilon, which is at this place, in all records: (models, n)."""
    features = [COMPONENTS] if state.directions.size else None
    made = []
    for model in range(models):
        module = modules(model)
        weights = weights_at(module, state.weights[place * models + model])
        made.append(confidences(weights, module, table, features, scale=scale_of(state)))
    return np.array(made)


def noise_named(epsilon: float) -> str:
    return "none" if math.isinf(epsilon) else f"epsilon {epsilon:g}"


_HEADS = ("noise", "attack", "AUC", "advantage", "TPR at FPR 0.1 %", "TPR at FPR 1 %")
_MODELS = ("noise", "accuracy on members", "accuracy on others", "mean training loss as threshold: TPR - FPR")
_MODELS_NOTE = (
    "Means over the targets. The last column is the leakage of Yeom et al. 2018 with the mean training loss as the threshold: "
    "one number that only the trainer knows."
)


def _models(epsilon: float, scores: Array, members: Array) -> tuple[str, str, str, str]:
    right = [((one[there] > 0).mean(), (one[~there] > 0).mean()) for one, there in zip(scores, members, strict=True)]
    losses = losses_of(scores)
    leaks = [at_threshold(one[i], one[~i], float(one[i].mean())) for one, i in zip(losses, members, strict=True)]
    inside, outside = np.mean(right, axis=0)
    return noise_named(epsilon), f"{100 * inside:.1f} %", f"{100 * outside:.1f} %", f"{np.mean(leaks):.3f}"


def _cells(rates: TargetRates, refused: str) -> tuple[list[Cell], str]:
    """Cells of a row, and why a rate is not printed."""
    cells: list[Cell] = [f"{rates.area.value:.3f}", f"{rates.advantage.value:.3f}"]
    for false in AT:
        try:
            one = rates.at(false)
            cells.append(f"{100 * one.value:.2f} % ({100 * one.low:.2f} to {100 * one.high:.2f})")
        except SettingsInvalid as error:
            cells.append(None)
            refused = refused or str(error).partition("\n")[0].partition("]: ")[2]
    return cells, refused


def ceiling_of(epsilon: float, settings: Settings) -> AttackCeiling:
    """What no attack exceeds on one training: Gaussian sums of all records, one in each round."""
    z = noise_of(epsilon, settings["delta"], settings["rounds"])
    mechanism = GaussianTradeOff(math.sqrt(settings["rounds"]) / z)
    return AttackCeiling.of(epsilon, settings["delta"], mechanism)


def _ceilings(epsilon: float, settings: Settings) -> Iterator[tuple[Cell, ...]]:
    """The rows of what no attack exceeds."""
    found = ceiling_of(epsilon, settings)
    for name, one in {f"ceiling of {_pair(epsilon, settings)}": found.budget, "ceiling of its noise": found.mechanism}.items():
        rates = (f"{100 * one.power(at):.2f} %" for at in AT)
        yield noise_named(epsilon), name, f"{one.area:.3f}", f"{one.advantage:.3f}", *rates


def _pair(epsilon: float, settings: Settings) -> str:
    return f"({epsilon:g}, {_plain(settings['delta'])})"


def _plain(delta: float) -> str:
    return f"{delta:g}".replace("e-0", "e-")


def _metrics(found: Mapping[tuple[float, str], TargetRates]) -> dict[str, float]:
    """Of the threshold and of the strongest attack: the rate at 0.1 %, or the area where that is refused."""
    made = {}
    for (epsilon, name), rates in found.items():
        if name not in ("loss threshold", "LiRA online"):
            continue
        what = f"{name}, {'no noise' if math.isinf(epsilon) else noise_named(epsilon)}"
        if min(len(one.others) for one in rates.each) >= LEAST_OTHERS:
            made[f"TPR at FPR 0.1 %, {what}"] = round(rates.at(AT[0]).value, 5)
        else:
            made[f"AUC, {what}"] = round(rates.area.value, 4)
    return made


def _note(targets: int, least: int, settings: Settings, refused: str) -> str:
    said = (
        f"Means over {targets} targets, each with a threshold of its own on at least {least:,} records outside its training; "
        "in brackets the 95 % interval of that mean. Shadow models of a target are the other "
        f"{settings['models'] - 1} of its row: same program, same noise. "
        "The advantage is that of the best threshold on these very scores."
    )
    return said if not refused else f"{said} A dash: {refused}"


def roc(epsilon: float, rates: Mapping[str, TargetRates], settings: Settings) -> Curve:
    """True against false positives, both in factors, beside guessing and the ceilings."""
    made = []
    for name, one in rates.items():
        false, true = one.curve()
        made.append(Series(name, tuple(false.tolist()), tuple(true.tolist())))
    ends = tuple(false.tolist())
    made.append(Series("guessing", ends, ends, "muted"))
    axes = ("false positive rate", "true positive rate")
    if math.isinf(epsilon):
        return Curve("Membership without noise", *axes, tuple(made), log="xy")
    found = ceiling_of(epsilon, settings)
    tops = {f"ceiling of {_pair(epsilon, settings)}": found.budget, "ceiling of its noise": found.mechanism}
    made += [Series(name, ends, tuple(map(one.power, ends)), "reference") for name, one in tops.items()]
    note = "No attack is above a ceiling, whatever it knows of the other records; a curve of a sample may be."
    return Curve(f"Membership at epsilon {epsilon:g}", *axes, tuple(made), note=note, log="xy")


def _notes(settings: Settings, epsilons: list[float]) -> tuple[str, ...]:
    area = (
        "Read true positives where few others are accused. An area under the curve is mostly made of thresholds that accuse a "
        "third of all others, and nobody is harmed by such an accusation; an attack that names some members surely does harm."
    )
    if all(map(math.isinf, epsilons)):
        return (area,)
    spent = (
        f"An epsilon is that of one training with delta {_plain(settings['delta'])}, in which all records are asked in each of "
        f"{settings['rounds']} rounds. The ledger of this run adds up all {settings['models'] * len(epsilons)} trainings, "
        "those without noise too: it is the price of the experiment, not of a target."
    )
    return area, spent
