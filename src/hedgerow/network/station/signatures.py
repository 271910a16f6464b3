"""Kinds of questions: what a study announced when it was rehearsed, and whether a question is one of them.

A kind is what decides of an answer's meaning and protection: verb, function, noise, bound, compression, aggregation, sampling,
unit, and an outline of the settings of function and preparations. What follows from earlier answers is free: numbers in a
broadcast, floating-point settings, and ranges where no noise is scaled by them. A bound per record that noise is scaled by is
at least the announced one: it is a theorem about the function, and a smaller one would understate what a record adds. Where
a party cannot hold single records to it (`engines.records`), and where noise is made by the function itself, real numbers of
settings are as announced too. An aggregation is the announced one with all its settings. How many parties fall into a part that
is drawn anew for each question is free where parties add the noise, whose cost does not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, is_dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.bound import Bound, Bounds
from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.federation import Federation, inside
from hedgerow.core.ledger import Entry
from hedgerow.core.question import name_of, plan_of
from hedgerow.core.records import comes_apart, scaled_by_records
from hedgerow.crypto.context import description_digest
from hedgerow.crypto.messages import digest
from hedgerow.errors import QuestionUnannounced
from hedgerow.wire.question import Received

from .counts import Broadcasts, broadcasts_of, numbers_of

if TYPE_CHECKING:
    from hedgerow.study import Rehearsal
    from hedgerow.study.build import Built

NORMS = {1: "l1", 2: "l2", math.inf: "linf"}
TOLERANCE = 1 - 1e-9
"""By so much a bound may fall short of the announced one: rounding in another order."""


@dataclass(frozen=True)
class QuestionSignature:
    """What questions of one kind have in common, as text, so that it can be kept."""

    verb: str
    function: str
    aggregation: str
    mechanism: str
    compression: str
    unit: str
    sampling: str
    bound: str
    rows: bool
    outline: str

    @property
    def mark(self) -> str:
        """Stands for the kind, in a journal."""
        return digest("kind", repr(astuple(self)).encode()).hex()[:32]

    def differs(self, other: QuestionSignature) -> list[str]:
        """The fields in which another kind differs."""
        return [field.name for field in fields(self) if getattr(self, field.name) != getattr(other, field.name)]


@dataclass(frozen=True)
class Announced:
    """What a study may ask.

    Attributes
    ----------
    signatures : mapping
        Kinds with the smallest radius of each bound per record.
    sizes : mapping from kind to int
        The numbers in an answer: -1 where they are not known.
    most : mapping from kind to int
        How many questions there may be: -1 where nothing limits them.
    broadcasts : mapping from kind to {"none", "constant", "free"}
    """

    signatures: Mapping[QuestionSignature, Mapping[str, float]]
    sizes: Mapping[QuestionSignature, int]
    most: Mapping[QuestionSignature, int] = field(default_factory=dict)
    broadcasts: Mapping[QuestionSignature, Broadcasts] = field(default_factory=dict)

    def to_json(self) -> list[dict[str, Any]]:
        """As plain values."""
        told: list[dict[str, Any]] = []
        for kind, radii in self.signatures.items():
            counted = {"most": self.most[kind], "sends": self.broadcasts[kind]} if kind in self.most else {}
            told.append(vars(kind) | {"radii": dict(radii), "numbers": self.sizes.get(kind, -1)} | counted)
        return told

    @classmethod
    def from_json(cls, found: Sequence[Mapping[str, Any]]) -> Announced:
        names = {one.name for one in fields(QuestionSignature)}
        kinds = {QuestionSignature(**{k: v for k, v in one.items() if k in names}): one for one in found}
        return cls(
            {kind: one["radii"] for kind, one in kinds.items()},
            {kind: one["numbers"] for kind, one in kinds.items()},
            {kind: one["most"] for kind, one in kinds.items() if "most" in one},  # approvals of earlier versions have none
            {kind: one["sends"] for kind, one in kinds.items() if "most" in one},
        )

    def refuse_other(self, question: Received, n_parties: int | None = None) -> None:
        """Refuse a question that is of no announced kind.

        Parameters
        ----------
        n_parties : int, optional
            Parties here, of whom an open question to everybody leaves out none: two totals that differ by one show it.

        Raises
        ------
        QuestionUnannounced (HR-609)
        """
        outbox, asked, step = question.outbox, question.question, question.step
        aggregation = "" if step is None else settled(question.aggregation)
        if step is not None and not step.contributes:  # carries nothing of records, and is sent without settings
            if any((signature.function, signature.aggregation) == (asked.name, aggregation) for signature in self.signatures):
                return
            raise _unannounced(f"{step.name} of {asked.name} through {aggregation!r}", [])
        if asked.number < 1:  # by their numbers questions are counted
            raise _unannounced(f"{asked.name} without a number", [])
        if outbox.release.plan != plan_of(asked.local):
            raise _unannounced(f"{asked.name} charged for another plan than the one it runs by", ["plan"])
        signature = signature_of(outbox, aggregation, rows=step is None)
        if signature not in self.signatures:
            nearest = min((signature.differs(other) for other in self.signatures), key=len, default=[])
            raise _unannounced(f"{asked.verb} of {asked.name}", nearest)
        everybody = n_parties is not None and step is None and asked.cohort.sampling.kind == "all"
        if everybody and len(question.ids) < (n_parties or 0):
            raise _unannounced(f"{asked.name} to {len(question.ids)} of {n_parties} parties here", ["sampling"])
        for key, radius in radii_of(outbox).items():
            least = self.signatures[signature].get(key)
            if least is None or radius < least * TOLERANCE:
                said = f"{asked.name} with a bound of {radius:g} on {key or 'its value'}, below {least}"
                raise _unannounced(said, ["bound"])
        size = self.sizes.get(signature, -1)
        if outbox.layout is not None and size >= 0 and outbox.layout.size != size:
            raise _unannounced(f"{asked.name} of {outbox.layout.size} numbers, not {size}", ["numbers"])


def _unannounced(what: str, differs: list[str]) -> QuestionUnannounced:
    said = f", and differs from what it announced in {', '.join(differs)}" if differs else ""
    return QuestionUnannounced(
        f"the study did not announce {what}{said}.",
        remedy="A study asks what its rehearsal listed when it was approved. Submit the changed study anew.",
    )


def settled(aggregation: Any) -> str:
    """An aggregation's name, and a digest of its settings."""
    return "" if aggregation is None else f"{aggregation.name} {description_digest(aggregation).hex()[:16]}"


def signature_of(outbox: Outbox, aggregation: str, *, rows: bool) -> QuestionSignature:
    """The kind of a question; `rows` says that single rows would be sent where the server keeps them."""
    question, release = outbox.question, outbox.release
    sampling = question.cohort.sampling
    arguments = question.local.args if isinstance(question.local, partial) else ()
    noisy = release.mechanism is not None
    exact = release.plan is not None or (scaled_by_records(release) and not comes_apart(question))
    about = (_outline(part, exact) for part in (question.settings, question.view, question.init))
    return QuestionSignature(
        question.verb,
        question.name,
        aggregation,
        str(release.mechanism or "none") if release.plan is None else "at the party",
        str(release.compression or "none"),
        str(release.unit or "") if noisy or release.plan is not None else "",
        "part"
        if sampling.kind in ("part", "dealt") and release.before_server
        else f"{sampling.kind} {sampling.rate:g} {sampling.size}",
        norms_of(release.bounds if noisy else release.clip),
        rows and outbox.keep_rows,
        digest("outline", repr((arguments, *about)).encode()).hex()[:32],
    )


def norms_of(bounds: Bounds | None) -> str:
    """Norms and units of bounds, without their radii."""
    if bounds is None:
        return ""
    named = {"": bounds} if isinstance(bounds, Bound) else bounds
    return ", ".join(f"{key} {NORMS[bound.norm]} {bound.unit}".strip() for key, bound in sorted(named.items()))


def radii_of(outbox: Outbox) -> dict[str, float]:
    """Radii of bounds per record that noise is scaled by."""
    bounds = outbox.release.bounds
    if bounds is None or outbox.release.mechanism is None:
        return {}
    named = {"": bounds} if isinstance(bounds, Bound) else bounds
    return {key: bound.radius for key, bound in named.items() if bound.unit == "record"}


def _outline(value: Any, exact: bool = False) -> Any:
    """What a value is; unless `exact`, without its real numbers: those may follow from earlier answers."""
    part_of = partial(_outline, exact=exact)
    if isinstance(value, bool | int | str | bytes | None):
        return value
    if isinstance(value, float | np.floating):
        return float(value).hex() if exact else "float"
    if isinstance(value, np.ndarray):
        if exact:
            return ("array", description_digest(value).hex())
        return ("array", value.dtype.kind, value.ndim)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return ("mapping", *sorted((str(key), part_of(part)) for key, part in value.items()))
    if isinstance(value, set | frozenset):
        return ("set", *sorted(map(repr, value)))
    if isinstance(value, tuple | list):
        parts = [part_of(part) for part in value]
        return ("floats",) if parts and all(part == "float" for part in parts) else ("several", *parts)
    if isinstance(value, partial):
        return ("partial", part_of(value.func), part_of(value.args), part_of(value.keywords))
    if is_dataclass(value) and not isinstance(value, type):
        named = [
            (field.name, part_of(getattr(value, field.name)))
            for field in fields(value)
            if field.compare and field.metadata.get("told", True)
        ]
        return (f"{type(value).__module__}:{type(value).__qualname__}", *named)
    return name_of(value) if callable(value) and hasattr(value, "__qualname__") else type(value).__qualname__


# ---- rehearsal ------------------------------------------------------------------------------------------------------
def _folded(outbox: Outbox, cohorts: dict[tuple[str, ...], frozenset[str]]) -> tuple[Outbox, frozenset[str]]:
    """What of a question decides of its kind, and with whom it asked: without the numbers that are sent.

    A model of a million numbers in a thousand rounds would be eight gigabytes. Equal cohorts share their names.
    """
    ids = tuple(outbox.ids)
    whom = cohorts.setdefault(ids, frozenset(ids))
    question = replace(outbox.question, broadcast=None, cohort=replace(outbox.question.cohort, members=()))
    return replace(outbox, ids=(), question=question, counted={}, protocol=None), whom


class Overheard(list[tuple[Outbox, frozenset[str]]]):
    """Every question of a rehearsal, without what it sends, with whom it asked.

    Attributes
    ----------
    sent : list of bytes or None
        A digest of each broadcast.
    kinds : list of QuestionSignature
        The kind of each, once `announced` has found it.
    ends : list of int
        After how many questions each round was over.
    whole : bool
        Whether the program came to its own end.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes | None] = []
        self.kinds: list[QuestionSignature] = []
        self.ends: list[int] = []
        self.whole = True


class _Ear:
    """An engine that remembers what was asked, by kind and cohort."""

    def __init__(self, engine: Any, heard: Overheard) -> None:
        self._engine, self._heard = engine, heard
        self._cohorts: dict[tuple[str, ...], frozenset[str]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    @property
    def parties(self) -> Sequence[str]:
        names: Sequence[str] = self._engine.parties
        return names

    def exchange(self, outbox: Outbox) -> Inbox:
        sent = outbox.question.broadcast
        self._heard.sent.append(None if sent is None else description_digest(sent))
        self._heard.append(_folded(outbox, self._cohorts))
        found: Inbox = self._engine.exchange(outbox)
        return found


class _Heard:
    """A listing whose questions are remembered."""

    def __init__(self, listing: Any, heard: Overheard) -> None:
        self._listing, self._heard = listing, heard

    def __getattr__(self, name: str) -> Any:
        return getattr(self._listing, name)

    def program(self, settings: Mapping[str, Any]) -> Callable[..., Any]:
        run = self._listing.program(settings)

        def listening(federation: Federation, *, start: Any = None) -> Any:
            for state in run(_overheard(federation, self._heard), start=start):
                self._heard.ends.append(len(self._heard))
                yield state

        return listening

    @property
    def ask(self) -> Any:
        ask = self._listing.ask
        if ask is None:
            return None
        return lambda federation, *rest: ask(_overheard(federation, self._heard), *rest)


def _overheard(federation: Federation, heard: Overheard) -> Federation:
    """The same run, with an engine that remembers what was asked."""
    values = inside(federation)
    if not isinstance(values.run.engine, _Ear):
        values.run.engine = _Ear(values.run.engine, heard)
    return federation


def rehearsed(built: Built, rounds: int | None = None) -> tuple[Rehearsal, Overheard]:
    """Rehearse a study, and return besides every question, without what it sends, with whom it asked."""
    from hedgerow.study import rehearse_built

    heard = Overheard()
    listing: Any = _Heard(built.listing, heard)
    found = rehearse_built(replace(built, listing=listing), rounds=rounds)
    heard.whole = found.whole
    return found, heard


def announced(
    entries: Iterable[Entry],
    heard: Overheard,
    hidden: Any = None,
    most: tuple[int | None, bool] = (None, False),
    further: Mapping[str, int] | None = None,
) -> Announced:
    """The kinds of a rehearsal's questions.

    Parameters
    ----------
    hidden : Aggregation, optional
        The study's.
    most
        How many rounds there may be: see `counts.most_rounds`.
    further : mapping, optional
        How often functions are asked at most, as the program declares it (`Declaration.most`). How long answers are that were
        not rehearsed is not known.
    """
    by_name = {(entry.branch, entry.round): entry for entry in entries}
    signatures: dict[QuestionSignature, dict[str, float]] = {}
    sizes: dict[QuestionSignature, int] = {}
    kinds, sent = list[QuestionSignature](), dict[QuestionSignature, list[bytes | None]]()
    for (outbox, _), digest_sent in zip(heard, heard.sent, strict=True):
        question = outbox.question
        entry = by_name.get((question.branch, question.number))
        plain = entry is None or question.verb != "sum" or entry.aggregation == "plain"
        masks = getattr(hidden, "masks", hidden)  # by which a sum goes that needs no hidden model
        aggregation = "" if plain else settled(masks if question.settings.get("grid") is None else hidden)
        signature = signature_of(outbox, aggregation, rows=not aggregation)
        kinds.append(signature)
        sent.setdefault(signature, []).append(digest_sent)
        radii = signatures.setdefault(signature, {})
        for key, radius in radii_of(outbox).items():
            radii[key] = min(radius, radii.get(key, math.inf))
        known = -1 if entry is None or entry.numbers is None else entry.numbers
        sizes[signature] = known if sizes.get(signature, known) == known else -1  # it follows from earlier answers
    heard.kinds = kinds
    broadcasts = broadcasts_of(sent)
    silent = [kind for kind, sends in broadcasts.items() if sends == "none"]
    numbers = numbers_of(kinds, silent, heard.ends, heard.whole, *most)
    for kind in numbers:
        declared, rehearsed_times = (further or {}).get(kind.function.rpartition(":")[2]), kinds.count(kind)
        if declared is not None:
            numbers[kind] = max(declared, rehearsed_times)
            sizes[kind] = sizes[kind] if declared <= rehearsed_times else -1
    return Announced(signatures, sizes, numbers, broadcasts)
