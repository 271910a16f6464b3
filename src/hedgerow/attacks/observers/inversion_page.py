"""What a study of gradient inversion shows: decibels and recognised records of each case, and truth beside reconstruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.party import Parties
from hedgerow.data import Schema
from hedgerow.errors import SettingsInvalid, StudyInvalid
from hedgerow.learn.reading import Reading
from hedgerow.learn.tensors import made_of
from hedgerow.report import Outcome
from hedgerow.report.model import Grid
from hedgerow.report.pictures import Picture, PictureRow, Pictures

from .inversion_cases import InversionCase, cases_of, places_of
from .recognised import MOST, RECOGNISED, matched, psnr

if TYPE_CHECKING:
    from .inversion_study import InversionState

Settings = Mapping[str, Any]

ACROSS = 5
"""Pairs of pictures of a case."""

HEADS = (
    "seen by the server",
    "records in the sum",
    "attack",
    "labels",
    "targets",
    "best picture, dB",
    "mean of all records, dB",
    "recognised in a sum",
)
NO_RECORDS = "Pictures are compared in a simulation alone, which knows the records."
NOTE = (
    f"Decibels: peak signal-to-noise ratio of the picture that resembles a record most, matched with the truth, median over "
    f"targets; beside it, matched in the same way, what the mean of all records reaches without an attack. {MOST:g} is exact "
    f"and from {RECOGNISED:g} on a person recognises a digit. Recognised: records of a sum above {RECOGNISED:g} dB, mean over "
    "targets. A secure sum has one record of each party, so its size is the number of parties. Labels are told to the attacker "
    "or inferred from the slope of the last bias, with the share of them that is right. A search for one record is "
    "compared with the records of the class that it was told."
)
NO_PICTURES = "Records of shape {shape} are not drawn; give program.picture, such as [8, 8] of 64 numbers, to see them."
HOW = (
    "What hides a record is how many others are in the sum, or noise. Secure aggregation hides whose row it was: pictures of a "
    "secure sum are as good as those of a batch of the same size."
)


def inversion_outcome(federation: Any, settings: Settings, state: InversionState, records: Parties | None) -> Outcome:
    """Compare pictures with records."""
    names = ("batches", "noise", "searched", "search_noise", "group")
    every = cases_of(*(settings[name] for name in names))
    cases, places = every[: state.round], places_of(every, settings["targets"], settings["searches"])
    if records is None or not cases:
        return Outcome({"cases": float(state.round)}, notes=(NO_RECORDS,) if records is None else ())
    if (records.sizes != 1).any():
        raise SettingsInvalid(
            f"{int((records.sizes != 1).sum())} of {len(records.sizes)} parties have none or several records.",
            remedy="Give each party one record, so that it is known which are in a sum.",
        )
    inputs, labels = truths(federation.schema, records)
    shape = tuple(settings["picture"]) or inputs.shape[1:]
    rows, drawn, best, usual = [], [], [], inputs.mean(0, keepdims=True)
    for k, case in enumerate(cases):
        n_targets = len(places[k])
        wanted = [truth_of(case, inputs, labels, t) for t in range(n_targets)]
        tried = [MatchedPictures.of(state.images[place], truth) for place, truth in zip(places[k], wanted, strict=True)]
        without = float(np.median([MatchedPictures(usual, truth).best for truth in wanted]))
        best.append(float(np.median([one.best for one in tried])))
        share = right_labels(case, state.counts[k], labels, n_targets)
        rows.append((*said(case), _labels(case, share), n_targets, round(best[-1], 1), round(without, 1), _of(case, tried)))
        if is_picture(shape):
            drawn.append(pictured(case, tried, best[-1], shape))
    mean = round(float(np.median(psnr(flat(usual), flat(inputs)))), 1)
    rows.append(("nothing: the mean of all records", 1, "none", "", len(inputs), mean, mean, f"{_share(inputs):.2f} of 1"))
    return Outcome(
        metrics=metrics(cases, best),
        grids=(Grid("Pictures made of gradients", HEADS, tuple(rows), NOTE),),
        pictures=(Pictures("Truth beside reconstruction", tuple(drawn), HOW),) if drawn else (),
        notes=() if drawn else (HOW, NO_PICTURES.format(shape=tuple(shape))),
    )


def is_picture(shape: Sequence[int]) -> bool:
    """Whether numbers of this shape can be drawn."""
    if len(shape) not in (2, 3) or min(shape) < 1:
        return False
    try:
        Picture.of(np.zeros(tuple(shape)))
    except StudyInvalid:
        return False
    return True


class MatchedPictures:
    """The pictures of one target, matched to the records of its sum."""

    def __init__(self, images: Array, truth: Array) -> None:
        self.images, self.truth = images, truth
        self.places, self.decibels = matched(images, truth)

    @classmethod
    def of(cls, images: Array, truth: Array) -> MatchedPictures:
        """Of those of the pictures that were made."""
        return cls(images[~np.isnan(flat(images)).any(1)], truth)

    @property
    def best(self) -> float:
        return float(np.nanmax(self.decibels))

    @property
    def recognised(self) -> int:
        return int((self.decibels >= RECOGNISED).sum())

    def pairs(self, most: int) -> list[tuple[Array, Array, float]]:
        """Truth, picture and decibels, the best first."""
        order = [i for i in np.argsort(-np.nan_to_num(self.decibels, nan=-1.0), kind="stable") if self.places[i] >= 0][:most]
        return [(self.truth[self.places[i]], self.images[i], float(self.decibels[i])) for i in order]


def truth_of(case: InversionCase, inputs: Array, labels: Array, target: int) -> Array:
    """The records with which pictures of a target are compared: of its sum all, or those of the one label that was told."""
    inside = np.array([(target * case.records + j) % len(inputs) for j in range(case.records)])
    if case.alone:  # labels are told in order, and the search takes the first
        inside = inside[labels[inside] == labels[inside].min()]
    return np.asarray(inputs[inside])


def truths(schema: Schema, records: Parties) -> tuple[Array, Array]:
    """The first record of each party as the module reads it, (parties, ...), and its label."""
    first = records.offsets[:-1]
    reading = Reading.of(schema, None, "ranges")
    columns = {name: np.asarray(records.columns[name])[first] for name in schema.names}
    made = made_of(columns, schema, None, reading)
    return (np.asarray(made["model_input"], float) - reading.low) * reading.by, np.asarray(made["model_target"], int)


def right_labels(case: InversionCase, counts: Array, labels: Array, targets: int) -> float:
    """Share of labels that the attacker inferred, over targets; NaN where it was told them."""
    if case.told:
        return float("nan")
    found = []
    for t in range(targets):
        truth = np.bincount(
            [labels[(t * case.records + j) % len(labels)] for j in range(case.records)], minlength=counts.shape[1]
        )
        found.append(np.minimum(truth, counts[t]).sum() / case.records)
    return float(np.mean(found))


def said(case: InversionCase) -> tuple[str, int, str]:
    """What was seen, of how many records, and how it was attacked."""
    return case.seen, case.records, case.attack


def metrics(cases: list[InversionCase], best: list[float]) -> dict[str, float]:
    """The few numbers that a reader looks for first."""
    found = {}
    for case, value in zip(cases, best, strict=True):
        if case.by == "one" and case.noise is None:
            found["dB of one record"] = value
        if case.by == "cosine" and case.hidden and case.told and not case.alone:
            found[f"dB in a secure sum of {case.records}"] = value
        if case.by == "one" and case.noise is not None:
            found[f"dB behind noise {case.noise:g}"] = value
    return found


def pictured(case: InversionCase, tried: list[MatchedPictures], best: float, shape: tuple[int, ...]) -> PictureRow:
    """A row of pairs: of one record several targets, of a sum the best of the first."""
    pairs = [one.pairs(1)[0] for one in tried[:ACROSS]] if case.pictures == 1 else tried[0].pairs(ACROSS)
    groups = tuple(
        (
            Picture.of(truth.reshape(shape), "truth", "a record"),
            Picture.of(found.reshape(shape), f"{decibels:.0f} dB", f"its reconstruction, {decibels:.0f} dB"),
        )
        for truth, found, decibels in pairs
    )
    size = "one record" if case.records == 1 else f"{case.records} records in the sum"
    return PictureRow(
        f"{case.seen[:1].upper()}{case.seen[1:]}", f"{size}; {case.attack}; median of the best {best:.1f} dB", groups
    )


def flat(values: Array) -> Array:
    return np.asarray(values, float).reshape(len(values), -1)


def _share(inputs: Array) -> float:
    return float((psnr(flat(inputs.mean(0, keepdims=True)), flat(inputs)) >= RECOGNISED).mean())


def _labels(case: InversionCase, share: float) -> str:
    return "told" if case.told else f"inferred, {100 * share:.0f} % right"


def _of(case: InversionCase, tried: list[MatchedPictures]) -> str:
    return f"{np.mean([one.recognised for one in tried]):.3g} of {case.records}"
