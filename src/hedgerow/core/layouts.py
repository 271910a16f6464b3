"""Layouts before anybody is asked: keys and shapes of an answer about made-up records.

A local function is asked about one made-up record, and about several. What it returns both times has the layout that every
party's contribution will have. Where the two differ, the shape follows the records: a contribution may have a row for each of
them, and tells at least how many there are.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from hedgerow.errors import HedgerowError

from .answer import made_by
from .arrays import Layout
from .cohort import Cohort
from .engine import Outbox
from .party import Parties
from .question import Question
from .randomness import Streams
from .state import State

ONE, SEVERAL = 1, 7
"""So many made-up records a local function is asked about."""

LONGEST = 200
"""Letters of a reason that are kept."""


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
    """

    layout: Layout | None = None
    rows: bool = False
    why: str = ""


class Layouts:
    """What is foreseen of each kind of question; it depends on a schema alone, and is found once.

    The parties with made-up records keep what they are asked to keep, since later questions may be about that.

    Parameters
    ----------
    schema : Schema, optional
        From which records are made up. Nothing is known without one.
    """

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self._found: dict[Any, Foreseen] = {}
        self._told_apart: list[Any] = []
        self._kept: dict[int, State] = {ONE: {}, SEVERAL: {}}

    def of(self, question: Question, streams: Streams) -> Foreseen:
        """Return what is foreseen of a question."""
        if self.schema is None:
            return Foreseen(why="the federation has no schema")
        arguments = question.local.args if isinstance(question.local, partial) else ()
        # floating-point settings shape no answer
        decisive = [(name, value) for name, value in sorted(question.settings.items()) if not isinstance(value, float)]
        said = [(name, _said(value)) for name, value in [*decisive, *(("", value) for value in arguments)]]
        key = (question.verb, question.name, str(said), Layout.of(question.broadcast), question.view)
        if key not in self._found:
            self._found[key] = self._foreseen(question, streams)
            if " at 0x" in key[2]:  # no other object may have an address by which one is told from others
                self._told_apart.append(question.local)
        return self._found[key]

    def _foreseen(self, question: Question, streams: Streams) -> Foreseen:
        found = []
        for n in (ONE, SEVERAL):
            layout, why = self._about(n, question, streams)
            if question.verb == "each":
                continue
            if layout is None:
                return Foreseen(why=f"asked about {n} made-up record{'s' * (n > 1)} it fails, {why}")
            found.append(layout)
        if not found:
            return Foreseen()
        one, several = found
        return Foreseen(one) if one == several else Foreseen(rows=True, why="it follows the records")

    def _about(self, n: int, question: Question, streams: Streams) -> tuple[Layout | None, str]:
        """The layout of an answer about n made-up records, of weight zero or, where that fails, of weight one."""
        made_up, why = self.schema.synthetic(n, np.random.default_rng(0)), ""
        for weight in (0.0, 1.0):
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    nobody = Parties(("nobody",), made_up, [n], np.full(n, weight)).prepared(question.view, together=False)
                    asking = Outbox(nobody.ids, replace(question, cohort=Cohort(nobody.ids)), streams=streams)
                    nobody.states.restore({"nobody": self._kept[n]} if self._kept[n] else {})
                    made, party = made_by(asking, nobody, np.array([0]))
                    self._kept[n] = dict(party.state) or self._kept[n]  # some questions are asked without it
                    return (None if question.verb == "each" else Layout.of(made)), ""
            except Exception as error:  # whatever a local function makes of records that do not exist
                said = error.reason if isinstance(error, HedgerowError) else f"{type(error).__name__}: {error}"
                why = why or said.rstrip(".")[:LONGEST]
        return None, why


def _said(value: Any) -> Any:
    """A setting by which kinds of questions are told apart: an array by all of its numbers."""
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return value.shape, value.dtype.str, blake2b(value.tobytes(), digest_size=16).hexdigest()
    return value
