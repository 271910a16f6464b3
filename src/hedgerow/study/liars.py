"""From the section [attack] to the liars of a simulation: names, acts and classes are those of its records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hedgerow.attacks.acts.act import Act
from hedgerow.attacks.acts.liars import Liars, chosen
from hedgerow.attacks.acts.records import LabelFlip, NoiseRecords, SingleTarget, Stamp, Trigger
from hedgerow.attacks.acts.rows import Alie, FreeRider, GaussianRows, InnerProduct, MinMax, ScaledRows, Sybils
from hedgerow.core.randomness import Streams
from hedgerow.data import Column, Schema
from hedgerow.engines.acting import Acting
from hedgerow.errors import StudyInvalid, suggestion

from .attack import STRENGTHS, AttackSection


def liars_of(attack: AttackSection, schema: Schema, names: Sequence[str], seed: int | None) -> Liars | None:
    """The liars among the parties of these names; None where nobody acts.

    Raises
    ------
    StudyInvalid (HR-101)
        A name is no party's; a share is to be drawn without a seed; an act wants classes, and the target has none; a class,
        column or value is not declared.
    """
    if attack.act == "none":
        return None
    parties = _parties(attack, names, seed)
    acts = _acts(attack, schema, len(names), len(parties))
    return Liars(parties, acts, attack.from_round, attack.every, attack.until)


def acting(engine: Any, attack: AttackSection, schema: Schema, names: Sequence[str], seed: int | None) -> Any:
    """An engine among whose parties liars act.

    Raises
    ------
    StudyInvalid (HR-101)
        As of `liars_of`, or the engine has its parties in other processes.
    """
    liars = liars_of(attack, schema, names, seed)
    if liars is None:
        return engine
    if not hasattr(engine, "acts"):
        raise StudyInvalid(
            f"[attack] is of a simulation in one process, and the engine is {type(engine).__name__}.",
            remedy='Choose engine.name = "in-process": the numbers are the same.',
        )
    return replace(engine, acts=Acting(liars))


def _parties(attack: AttackSection, names: Sequence[str], seed: int | None) -> tuple[str, ...]:
    if not isinstance(attack.parties, tuple):
        if seed is None:
            raise StudyInvalid(
                f"attack.parties = {attack.parties:g} is drawn by the seed, and the study has none.",
                remedy="Name the parties, or give a seed.",
            )
        return chosen(tuple(names), attack.parties, Streams(seed))
    for name in attack.parties:
        if name not in names:
            raise StudyInvalid(f"attack.parties names {name!r}, which is no party.", remedy=suggestion(name, list(names)[:50]))
    return tuple(name for name in names if name in attack.parties)


def _acts(attack: AttackSection, schema: Schema, n: int, f: int) -> tuple[Act, ...]:
    found: list[Act] = [*_of_records(attack, schema), *_of_rows(attack, n, f)]
    if attack.boost != 1:
        found.append(ScaledRows(attack.boost, attack.kind))
    if attack.sybils or attack.act == "sybil":
        found.append(Sybils(attack.kind))
    return tuple(found)


def _of_records(attack: AttackSection, schema: Schema) -> list[Act]:
    if attack.act == "noise":
        return [NoiseRecords(_ranges(attack, schema))]
    if attack.act not in ("label-flip", "backdoor", "single-target"):
        return []
    column = classes_of(attack, schema)
    if attack.act == "label-flip":
        return [LabelFlip(column.name, max(2, len(column.levels)))]
    target, source = class_of(column, attack.target), class_of(column, attack.source)
    if attack.act == "single-target":
        return [SingleTarget(column.name, source, target)]
    return [Stamp(trigger_of(attack, schema), column.name, target, attack.share, None if attack.source is None else source)]


def _of_rows(attack: AttackSection, n: int, f: int) -> list[Act]:
    """An act on rows, of n parties among whom f lie."""
    known = STRENGTHS.get(attack.act)
    strength: Any = attack.strength if attack.strength is not None or known is None else known.default
    kind, knows = attack.kind, attack.knows
    match attack.act:
        case "replace":
            return [ScaledRows(n / f if strength is None else strength, kind)]
        case "sign-flip":
            return [ScaledRows(-strength, kind)]
        case "scale":
            return [ScaledRows(strength, kind)]
        case "gaussian":
            return [GaussianRows(strength, kind, knows)]
        case "alie":
            return [Alie(strength, kind, knows)]
        case "ipm":
            return [InnerProduct(strength, kind, knows)]
        case "min-max":
            return [MinMax(kind=kind, knows=knows)]
        case "free-rider":
            return [FreeRider(strength, kind)]
        case _:
            return []


def classes_of(attack: AttackSection, schema: Schema) -> Column:
    """The column of classes that an act is about.

    Raises
    ------
    StudyInvalid (HR-101)
    """
    if schema.target is None or not schema.classifies:
        what = "there is none" if schema.target is None else f"{schema.target!r} is a {schema[schema.target].kind}"
        raise StudyInvalid(
            f'attack.act = "{attack.act}" is about the classes of a target, and {what}.',
            remedy="Choose an act on rows, such as sign-flip, or a target with classes.",
        )
    return schema[schema.target]


def class_of(column: Column, given: int | str | None) -> int:
    """The code of a class, given as its word or its code; a word comes first.

    Raises
    ------
    StudyInvalid (HR-101)
    """
    words = column.levels or ("0", "1")
    if given is None:
        return -1
    if str(given) in words:
        return words.index(str(given))
    if isinstance(given, int) and 0 <= given < len(words):
        return given
    raise StudyInvalid(
        f"attack names the class {given!r}, which {column.name!r} does not have.",
        remedy=suggestion(str(given), list(words)[:50]),
    )


def trigger_of(attack: AttackSection, schema: Schema) -> Trigger:
    """The trigger of a study, by the columns of its records.

    Raises
    ------
    StudyInvalid (HR-101)
        A column is no feature, a value outside its declared range or levels, a square outside the image; pixels have no
        declared upper end and no value is given.
    """
    given = attack.trigger
    if given is None:
        raise StudyInvalid("the study has no trigger.", remedy="Give attack.trigger.")
    if given.at is None:
        return Trigger(columns={name: _value(_feature(schema, name), value) for name, value in given.columns.items()})
    images = [name for name in schema.features if schema[name].shape]
    if given.image is None and len(images) != 1:
        raise StudyInvalid(
            f"attack.trigger is a square of an image, and {len(images)} features are arrays.",
            remedy="Name the column of images (image = ...), or give values of columns (columns = { ... }).",
        )
    column = _feature(schema, given.image or images[0])
    shape = column.shape if len(column.shape) > 1 else (side := round(column.shape[0] ** 0.5), side) if column.shape else ()
    if len(shape) != 2 or (len(column.shape) == 1 and shape[0] ** 2 != column.shape[0]):
        raise StudyInvalid(
            f"attack.trigger is a square of {column.name!r}, whose records have shape {column.shape}.",
            remedy="A square is drawn on images of shape (height, width), or of as many pixels each way in one row.",
        )
    value = column.high if given.value is None else given.value
    if value is None:
        raise StudyInvalid(
            f"{column.name!r} has no declared upper end, so that it is not known what a bright pixel is.",
            remedy="Give attack.trigger.value.",
        )
    (down, right), (height, width) = given.at, shape
    if min(down, right) < 0 or down + given.size > height or right + given.size > width:
        raise StudyInvalid(
            f"a trigger of {given.size} by {given.size} pixels at {list(given.at)} lies outside images of {height} by {width}.",
            remedy=f"Give a row of at most {height - given.size}, and a column of at most {width - given.size}.",
        )
    _value(column, value)
    return Trigger(column.name, given.at, given.size, value, shape[1] if len(column.shape) == 1 else None)


def _feature(schema: Schema, name: str) -> Column:
    if name not in schema.features:
        raise StudyInvalid(
            f"attack names the column {name!r}, which is no feature.", remedy=suggestion(name, list(schema.features)[:50])
        )
    return schema[name]


def _value(column: Column, given: float | str) -> float:
    """A value of a column, checked against its declaration; of a category the code of its word."""
    if column.kind == "category":
        return class_of(column, given if isinstance(given, str) else int(given))
    try:
        value = float(given)
    except ValueError as error:
        raise StudyInvalid(f"attack.trigger gives {column.name!r} the value {given!r}, which is no number.") from error
    low, high = (0.0, 1.0) if column.kind == "binary" else (column.low, column.high)
    if (low is not None and value < low) or (high is not None and value > high):
        raise StudyInvalid(
            f"attack.trigger gives {column.name!r} the value {value:g}, outside its declared range.",
            remedy="A record that is outside is refused where it is read: give a value that is inside.",
        )
    return value


def _ranges(attack: AttackSection, schema: Schema) -> tuple[tuple[str, float, float], ...]:
    """The columns that noise replaces, with their ranges; of categories, of their codes."""
    found, open_ended = [], []
    for name in attack.features or schema.features:
        column = _feature(schema, name)
        if column.kind == "category":
            found.append((name, 0.0, float(len(column.levels) - 1)))
        elif column.kind == "binary":
            found.append((name, 0.0, 1.0))
        elif column.low is not None and column.high is not None:
            found.append((name, column.low, column.high))
        else:
            open_ended.append(name)
    if not found or (attack.features and open_ended):
        raise StudyInvalid(
            f"noise is drawn from declared ranges, and {', '.join(open_ended[:5]) or 'no feature'} has none.",
            remedy="Declare them in data.ranges.",
        )
    return tuple(found)
