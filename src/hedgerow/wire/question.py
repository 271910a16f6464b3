"""Questions and answers on the wire.

A question to the parties of one host is two messages: `common`, the same for every host, and `own`, of these parties alone:
their names, their letters, and the rounds of theirs that were counted. Within a simulation names may be left out where
everybody of a host is asked. An answer is one: who answered, what they add up to
or their rows, letters, and the codes of refusals. What comes in is taken only if it is exactly that.

    server   common(outbox), own(outbox, ids)  ->  question(common, own, streams=...)   host
    server   inbox(raw, ids)                   <-  answer(inbox, ids)                   host
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import FunctionType
from typing import Any, Literal

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.cohort import Cohort
from hedgerow.core.conversation import Step
from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.events import Sampling
from hedgerow.core.question import Preparation, Question, Verb
from hedgerow.core.randomness import Streams
from hedgerow.core.release import Release, no_entropy
from hedgerow.errors import MessageRefused

from .names import HEDGEROW, Names, refused
from .travellers import fits
from .values import pack, unpack

CODE = re.compile(r"HR-\d{3}")
"""What a refusal may say."""

WIDEST = 1 << 63
"""Numbers of questions and cohorts lie below this."""

ASKED = ("branch", "number", "verb", "local", "broadcast", "view", "init")
"""Fields of a question that are the same for every party. Its cohort is told without its members, its bound in the release."""

COMMON = (
    *ASKED,
    "sampling",
    "cohort",
    "drawn",
    "first",
    "release",
    "keep_rows",
    "seed",
    "step",
    "aggregation",
    "asked",
    "layout",
)
OWN = ("ids", "letters", "counted")
ANSWER = ("answered", "layout", "total", "rows", "masked", "letters", "codes")


@dataclass(frozen=True)
class Received:
    """A question as a host receives it.

    Attributes
    ----------
    outbox : Outbox
        To the parties here, in order, with the counted rounds and letters of these parties alone.
    aggregation : optional
        Of the conversation that a step belongs to, from which a host makes its parties' sides.
    """

    outbox: Outbox
    aggregation: Any = None

    def with_layout(self, layout: Layout | None) -> Received:
        """The question with the layout that the host foresees: what it is told of shapes counts nothing."""
        return replace(self, outbox=replace(self.outbox, layout=layout))

    @property
    def ids(self) -> tuple[str, ...]:
        """The parties that are asked, in order."""
        return tuple(self.outbox.ids)

    @property
    def question(self) -> Question:
        return self.outbox.question

    @property
    def step(self) -> Step | None:
        return self.outbox.step


def common(outbox: Outbox) -> bytes:
    """Write what is the same for every host.

    Raises
    ------
    NotNamed (HR-224)
        The question holds what has no form on the wire; nobody was asked.
    """
    question, cohort, step = outbox.question, outbox.question.cohort, outbox.step
    fields: dict[str, Any] = {name: getattr(question, name) for name in ASKED}
    fields |= {"sampling": cohort.sampling, "cohort": cohort.number, "drawn": cohort.branch, "first": cohort.first}
    fields |= {"release": outbox.release, "keep_rows": outbox.keep_rows, "seed": outbox.streams.seed}
    fields["step"] = None if step is None else (step.name, step.contributes)
    fields["aggregation"] = None if step is None else getattr(outbox.protocol, "aggregation", None)
    fields["asked"], fields["layout"] = int(outbox.asked), outbox.layout
    return pack(fields)


def own(outbox: Outbox, ids: Sequence[str], *, named: bool = True) -> bytes:
    """Write what belongs to these parties; not `named`, they are all that the host has, in its order."""
    letters, counted = None if outbox.step is None else outbox.step.letters, outbox.counted
    return pack(
        {
            "ids": tuple(map(str, ids)) if named else None,  # names may be numpy's
            "letters": None if letters is None else tuple(letters[id] for id in ids),
            "counted": {str(id): counted[id] for id in ids if id in counted} if counted else {},
        }
    )


def question(
    common: bytes,
    own: bytes,
    *,
    streams: Callable[[int | None], Streams] = Streams,
    names: Names = HEDGEROW,
    here: tuple[str, ...] = (),
) -> Received:
    """Read a question.

    Parameters
    ----------
    streams : callable
        Gets the seed that the server names, or None, and returns the randomness that is used.
    names : Names
        Whose functions and classes may be named.
    here : tuple of str
        Who is asked by a question that names nobody: within a simulation, all parties of this host. Elsewhere such a question
        is refused.

    Raises
    ------
    MessageRefused (HR-242)
        The bytes are no question; nobody was asked.
    """
    told, mine = _fields(unpack(common, names), COMMON, "a question"), _fields(unpack(own, names), OWN, "a question")
    _check_query(told)
    ids, letters, counted = mine["ids"], mine["letters"], mine["counted"]
    if ids is None and here:
        ids = here
    elif not fits(ids, tuple[str, ...]) or not ids or len(set(ids)) != len(ids) or not all(ids):
        refused("asks nobody, or somebody twice")
    if not fits(counted, dict[str, int]) or (counted and not counted.keys() <= set(ids)):
        refused("counts rounds of others")
    step, asked = told["step"], told["asked"]
    if type(asked) is not int or asked < len(ids):
        refused("asks fewer parties than it names")
    if (step is None) != (letters is None):
        refused("has letters and no step, or a step and no letters")
    if step is None and told["aggregation"] is not None:
        refused("names an aggregation, and asks in the open")
    if step is not None:
        if not fits(step, tuple[str, bool]) or not fits(letters, tuple[bytes, ...]) or len(letters) != len(ids):
            refused("has a step without a letter for each party")
        step = Step(step[0], dict(zip(ids, letters, strict=True)), step[1])
    cohort = Cohort((), told["sampling"], told["cohort"], told["first"], branch=told["drawn"])
    asking = Question(**{name: told[name] for name in ASKED}, cohort=cohort)
    known = {name: told[name] for name in ("release", "keep_rows", "layout", "asked")}
    outbox = Outbox(ids, asking, **known, streams=streams(told["seed"]), counted=counted, step=step)
    return Received(outbox, told["aggregation"])


def _fields(value: Any, names: tuple[str, ...], what: str) -> dict[str, Any]:
    """The fields of a message, which are these in this order."""
    if type(value) is not dict or tuple(value) != names:
        refused(f"is not {what}")
    return value


_TYPES: Mapping[str, Any] = {
    "branch": Literal["", "aside"],
    "drawn": Literal["", "aside"],
    "number": int,
    "verb": Verb,
    "release": Release,
    "view": tuple[Preparation, ...],
    "keep_rows": bool,
    "first": int | None,
    "sampling": Sampling,
    "cohort": int,
    "seed": int | None,
    "layout": Layout | None,
}


def _check_query(told: Mapping[str, Any]) -> None:
    """Refuse what is no question."""
    for name, kind in _TYPES.items():
        if not fits(told[name], kind):
            refused(f"has a wrong {name}")
    if any(told[name] is not None and abs(told[name]) >= WIDEST for name in ("number", "cohort", "first")):
        refused("has a number that is too large")
    if not 0 <= told["release"].cites < WIDEST:
        refused("cites a number that is too large")
    if told["release"].public_seed < 0 or (told["seed"] or 0) < 0:
        refused("has a seed below zero")
    for name in ("local", "init"):
        value = told[name]
        function = value.func if type(value) is partial and not value.args else value
        if not isinstance(function, FunctionType) and not (name == "init" and value is None):
            refused(f"has a {name} that is no function")


def answer(inbox: Inbox, ids: Sequence[str]) -> bytes:
    """Write what came of a question to these parties."""
    order, came = tuple(inbox.answered), tuple(ids)
    answered = np.ones(len(came), bool)
    if order != came:
        there = set(order)
        answered = np.array([id in there for id in ids], dtype=bool)
        came = tuple(id for id in ids if id in there)
    if order != came:
        raise MessageRefused(
            f"{len(inbox.answered)} answers are not those of {len(ids)} parties in their order.",
            remedy="An engine returns answers in the order in which parties were asked.",
        )
    told = (
        answered,
        inbox.layout,
        inbox.total,
        inbox.rows,
        bool(inbox.masked),
        tuple(inbox.letters[id] for id in order) if inbox.letters else None,
        {k: inbox.codes[id] for k, id in enumerate(ids) if id in inbox.codes} if inbox.codes else {},
    )
    return pack(dict(zip(ANSWER, told, strict=True)))


def inbox(raw: bytes, ids: Sequence[str], outbox: Outbox | None = None) -> Inbox:
    """Read what a host answered for these parties.

    Parameters
    ----------
    outbox : Outbox, optional
        With it sizes are compared with what its release lets out; otherwise only with each other, and a code of a compression
        may have any size.

    Raises
    ------
    MessageRefused (HR-242)
        The bytes are no such answer. Numbers may be anything, also not finite: the waist judges them.
    """
    told = _fields(unpack(raw, _NOBODY, copy=False), ANSWER, "an answer")
    answered, layout, masked, letters, codes = (told[name] for name in ("answered", "layout", "masked", "letters", "codes"))
    if not _is_array(answered, TRUTHS, (len(ids),)):
        refused("answers for others than were asked")
    came = tuple(ids) if answered.all() else tuple(id for id, here in zip(ids, answered.tolist(), strict=True) if here)
    if not fits(layout, Layout | None) or type(masked) is not bool:
        refused("has no valid layout")
    if letters is not None and (not fits(letters, tuple[bytes, ...]) or len(letters) != len(came)):
        refused("has not a letter for each party that answered")
    if not fits(codes, dict[int, str]) or not all(
        0 <= k < len(ids) and not answered[k] and CODE.fullmatch(code) for k, code in codes.items()
    ):
        refused("refuses with what is no code")
    total, rows = _numbers(told, layout, len(came), outbox)
    found = Inbox(came, layout, total, rows, masked)
    return replace(
        found,
        letters={} if letters is None else dict(zip(came, letters, strict=True)),
        codes={ids[k]: code for k, code in codes.items()},
    )


_NOBODY = Names(())
"""An answer names no function; the classes in it are of this package."""


def _numbers(
    told: Mapping[str, Any], layout: Layout | None, n: int, outbox: Outbox | None
) -> tuple[Array | None, Array | None]:
    """The total and the rows of an answer, whose sizes are those of the layout."""
    total, rows = told["total"], told["rows"]
    if layout is None or (total is None and rows is None):
        if total is not None or rows is not None:
            refused("has numbers without a layout")
        return None, None
    sizes = {array.shape[-1] for array in (total, rows) if isinstance(array, np.ndarray) and array.ndim}
    size = next(iter(sizes), -1) if outbox is None else _size(outbox.release, layout)
    if total is not None and not _is_array(total, NUMBERS, (size,)):
        refused("has a total of another size")
    if rows is not None and not _is_array(rows, NUMBERS, (n, size)):
        refused("has rows of another size")
    return total, rows


def _size(release: Release, layout: Layout) -> int:
    """Numbers that leave a party whose contribution has this layout."""
    try:
        size = release.code(layout).size
        if release.mechanism is None or release.mechanism.at != "party":
            return size
        return int(release.noised(np.zeros((0, size)), layout, no_entropy).shape[-1])  # reports have a size of their own
    except Exception:  # whatever a compression makes of a hostile layout
        refused("has a layout that cannot be")


TRUTHS = ("|b1",)
NUMBERS = ("<f4", "<f8", "|i1", "<i4", "<i8")
"""Types of what an answer holds; small integers are reports of single parties."""


def _is_array(value: Any, types: tuple[str, ...], shape: tuple[int, ...]) -> bool:
    """Whether a value is an array of one of these types and of such a shape."""
    return type(value) is np.ndarray and value.dtype.str in types and value.shape == shape
