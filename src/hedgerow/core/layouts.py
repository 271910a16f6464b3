"""Layouts before anybody is asked: keys and shapes of an answer about made-up records.

A local function is asked about one made-up record, and about several. What it returns both times has the layout that every
party's contribution will have. Where the two differ, the shape follows the records: a contribution may have a row for each of
them, and tells at least how many there are.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from hedgerow.errors import HedgerowError

from .answer import made_by
from .arrays import Array, Layout, items
from .cohort import Cohort
from .disclosure import Breadth, breadth_of
from .engine import Outbox
from .question import Question
from .randomness import Streams
from .reading import Seen, Watched
from .state import State

ONE, SEVERAL = 1, 7
"""So many made-up records a local function is asked about."""

DRAWS = (1, 2, 3)
"""Seeds of the records by which symmetric matrices are known."""

NEAR = 1e-9
"""Relative rounding of a matrix that equals its transpose."""

LONGEST = 200
"""Letters of a reason that are kept."""

FEW = 64
"""A broadcast of so many numbers is told apart from others by all of them: a few numbers may say how long an answer is."""

MOST_FOUND = 512
"""Kinds of questions of which the layout is kept, those that were asked last."""


@dataclass(frozen=True)
class Foreseen:
    """What is known of the answers to a question before it is put.

    Attributes
    ----------
    layout : Layout, optional
        Keys and shapes, where they are the same for any records.
    rows : bool
        Whether shapes follow the records.
    why : str
        Why no layout is known.
    error : Exception, optional
        With which made-up records were answered, where that is why.
    reads : frozenset of str
        The declared columns that the question reads: its local function, its first state, and its preparations. Made-up
        records have no missing values; what a function reads of some records only may not be among them.
    bare : frozenset of str
        Those of them that are read by what does not know of missing values.
    breadth : Breadth
        What it reads in all, as disclosure counts it.
    distinct : int, optional
        Numbers of the layout that are no copies of others, where they are fewer: a matrix that equals its transpose for
        any made-up records counts as a triangle.
    """

    layout: Layout | None = None
    rows: bool = False
    why: str = ""
    error: Exception | None = None
    reads: frozenset[str] = frozenset()
    bare: frozenset[str] = frozenset()
    breadth: Breadth = field(default_factory=Breadth)
    distinct: int | None = None

    @property
    def unknown(self) -> bool:
        """Whether nothing is known of shapes."""
        return bool(self.why) and not self.rows


class Layouts:
    """What is foreseen of each kind of question; it depends on a schema alone, and is found once.

    Questions are of one kind where function, preparations and all settings are the same, and the broadcast too if it is
    short. A longer one is told apart by its shape, so that a model is not tried anew in every round.

    The parties with made-up records keep what they are asked to keep, since later questions may be about that.

    Parameters
    ----------
    schema : Schema, optional
        From which records are made up. Nothing is known without one.
    """

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self._found: dict[Any, tuple[Foreseen, Any]] = {}
        self._kept: dict[int, State] = {ONE: {}, SEVERAL: {}}

    def of(self, question: Question, streams: Streams) -> Foreseen:
        """Return what is foreseen of a question."""
        if self.schema is None:
            return Foreseen(why="the federation has no schema")
        arguments = question.local.args if isinstance(question.local, partial) else ()
        said = [(name, _said(value)) for name, value in [*sorted(question.settings.items()), *(("", one) for one in arguments)]]
        key = (question.verb, question.name, str(said), _told(question.broadcast), question.view)
        found = self._found.pop(key, None)
        if found is None:
            # no other object may have an address by which one is told from others
            seen = Seen()
            foreseen = self._foreseen(question, streams, seen)
            foreseen = replace(foreseen, reads=frozenset(seen.reads), bare=frozenset(seen.bare))
            foreseen = replace(foreseen, breadth=breadth_of(question, self.schema, foreseen.reads))
            found = foreseen, question.local if " at 0x" in key[2] else None
        self._found[key] = found  # the last one that was asked for
        while len(self._found) > MOST_FOUND:
            self._found.pop(next(iter(self._found)))
        return found[0]

    def _foreseen(self, question: Question, streams: Streams, seen: Seen) -> Foreseen:
        found = []
        for n in (ONE, SEVERAL):
            layout, why, error = self._about(n, question, streams, seen)
            if question.verb == "each":
                continue
            if layout is None:
                return Foreseen(why=f"asked about {n} made-up record{'s' * (n > 1)} it fails, {why}", error=error)
            found.append(layout)
        if not found:
            return Foreseen()
        one, several = found
        if one != several:
            return Foreseen(rows=True, why="it follows the records")
        return Foreseen(one, distinct=self._distinct(one, question, streams))

    def _about(self, n: int, question: Question, streams: Streams, seen: Seen) -> tuple[Layout | None, str, Exception | None]:
        """The layout of an answer about n made-up records, of weight zero or, where that fails, of weight one."""
        why, known = "", None
        for weight in (0.0, 1.0):
            try:
                made, kept = self._made(n, np.full(n, weight), question, streams, seen)
                self._kept[n] = kept or self._kept[n]  # some questions are asked without it
                return (None if question.verb == "each" else Layout.of(made)), "", None
            except Exception as error:  # whatever a local function makes of records that do not exist
                said = error.reason if isinstance(error, HedgerowError) else f"{type(error).__name__}: {error}"
                why = why or said.rstrip(".")[:LONGEST]
                known = error.with_traceback(None)
        return None, why, known

    def _made(
        self, n: int, w: Array, question: Question, streams: Streams, seen: Seen, seed: int = 0
    ) -> tuple[Any, dict[str, Any]]:
        """An answer about n made-up records of these weights, and what their party keeps afterwards."""
        made_up = self.schema.synthetic(n, np.random.default_rng(seed))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nobody = Watched.nobody(made_up, w, seen).prepared(seen.view(question), together=False)
            asking = Outbox(nobody.ids, replace(question, cohort=Cohort(nobody.ids)), streams=streams)
            nobody.states.restore({"nobody": self._kept[n]} if self._kept[n] else {})
            with seen.by(question.function):
                made, party = made_by(asking, nobody, np.array([0]))
        return made, dict(party.state)

    def _distinct(self, layout: Layout, question: Question, streams: Streams) -> int | None:
        """Numbers that are no copies of others, where they are fewer, by answers about draws of records with odd weights.

        A longer broadcast is not told apart by its numbers, and those of another one may not be symmetric: all count.
        """
        squares = {key for key, shape in layout.shapes if len(shape) > 1 and shape[-1] == shape[-2] > 1}
        if not squares or Layout.of(question.broadcast).size > FEW:
            return None
        for seed in DRAWS:
            w = np.random.default_rng(seed).uniform(1, 100, SEVERAL)
            try:
                made, _ = self._made(SEVERAL, w, question, streams, Seen(), seed)
                squares = {key for key, value in items(made) if key in squares and _symmetric(np.asarray(value, float))}
            except Exception:  # then nothing is known
                return None
        shapes = [shape for key, shape in layout.shapes if key in squares]
        return layout.size - sum(math.prod(shape[:-1]) * (shape[-1] - 1) // 2 for shape in shapes) if shapes else None


def _symmetric(matrices: Array) -> bool:
    """Whether each matrix equals its transpose, and is no diagonal one: of those nobody knows."""
    d = matrices.shape[-1]
    beside = matrices[..., ~np.eye(d, dtype=bool)]
    largest = np.abs(matrices).max()
    if not np.isfinite(largest) or not np.abs(beside).max(-1).all():
        return False
    return bool(np.abs(matrices - np.swapaxes(matrices, -1, -2)).max() <= NEAR * largest)


def _said(value: Any) -> Any:
    """A setting by which kinds of questions are told apart: an array by all of its numbers."""
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return value.shape, value.dtype.str, blake2b(value.tobytes(), digest_size=16).hexdigest()
    if isinstance(value, tuple | list):
        return [_said(one) for one in value]
    if isinstance(value, dict):
        return [(name, _said(one)) for name, one in value.items()]
    return value


def _told(broadcast: Any) -> Any:
    """A broadcast by which kinds of questions are told apart: by its numbers where they are few."""
    layout = Layout.of(broadcast)
    if layout.size > FEW:
        return layout
    return layout, str([_said(np.asarray(value)) for _, value in items(broadcast)])
