"""PATE: labels for a public pool, voted by teachers that nobody sees.

    teachers   party k deals its records to shards; each shard trains a model of any kind        nothing leaves
    public     inputs x_1 .. x_q that everybody may see                                          broadcast
    votes      V <- sum of one-hot(f(x_i)) over all teachers, (q, C), + N(0, sigma^2)            one sum
    student    spreads V over a graph of the public inputs, and fits any model on its labels     post-processing

The whole noisy vote vectors are released, and not their argmax: GNMax is what is left of them when all but the largest number
is thrown away, at the same cost unless that follows from the votes. A student who averages the vectors of inputs that look
alike reads labels from noise in which an argmax is mostly wrong. So epsilon is known before the question is asked, whatever
the votes are, as a ledger needs it, and noise may be added in shares behind secure aggregation, where nobody knows a largest
total.

The votes of one question are one Gaussian release of l2 sensitivity sqrt(2 q): sigma = sqrt(2 q) / mu, exactly. Only sigma /
sqrt(q) matters to a student, so that one may ask about few inputs and leave the others to the graph.

MNIST, 250 teachers, 1000 of 9000 public images asked, three seeds: students are right of 99.1 % of the last 1000 test images at
epsilon 2, of 99.0 % at 1 and of 98.8 % at 0.5. Settings were chosen on the public images (`papers/sempere/pate-mnist.toml`).

Releases : V, shape (q, C), once.
State    : none at the parties.
Unit     : record, l2(sqrt(2 q)); or party, l2(m sqrt(q)) for m teachers of a party. Persons at c parties need c times the
           bound.
Source   : Papernot et al. 2017, section 2; 2018, section 4. Differs: whole vectors in place of their argmax, accounting that
           needs no votes, and shards by independent chance (`votes`). The mechanisms as published are in `published`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.events import Unit
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.core.whole import in_steps
from hedgerow.data import Schema, Table, complete_cases, load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.level import noise_level
from hedgerow.privacy.shares import BudgetShares, Share
from hedgerow.report import Outcome

from ..tensors import columns_of, inputs_and_target
from ..tensors import settings as reading_settings
from .labels import Student, VotedLabels, whole
from .learners import Learner
from .pool import held_out, inputs_of, pool_of, public_part
from .published import PUBLISHED, as_published
from .reads import Reads
from .settings import check_channel, check_student, teaching_of, warn_of_noise
from .votes import bound_of, teacher_votes

if TYPE_CHECKING:
    Teacher = Learner | str | Mapping[str, Any]

ASKED = 1000
"""Inputs that are asked by default, at most; 200 to 9000 were looked at on MNIST."""


@displayed
@dataclass(frozen=True)
class VoteState:
    """Noisy votes on public inputs.

    Attributes
    ----------
    round : int
        Questions so far, of which there is one.
    votes : array of shape (q, C)
    asked : array of int, shape (q,)
        Which inputs of the pool they are about.
    pool : array of shape (N, ...)
        All public inputs.
    sigma : float
        Standard deviation of the noise in each number; zero where votes are exact.
    teachers : int
        Of all parties; in a cohort as many as are expected of it, since who is in it may be the server's secret.
    """

    round: int
    votes: Array
    asked: Array
    pool: Array
    sigma: float
    teachers: int


@program(
    "Labels for public inputs, voted by teachers of the parties' shards, and a student that learns from them (PATE).",
    name="pate",
    fixed={"inputs": None, "test": None},
    with_test=True,
    outcome=lambda federation, settings, state: outcome(federation, settings, state),
    watch=lambda settings, state, schema, test: watch(settings, state, schema, test),
    score=lambda settings, state, schema, table: student_of(settings, state, schema).accuracy(
        held_out(table, settings, schema)
    ),
    metric=lambda schema: ("accuracy", True),
    case=lambda: Case(
        load("breast_cancer").select(["malignant", "mean_radius", "mean_texture", "mean_smoothness"]).take(range(90)),
        {"teacher": {"name": "ridge", "penalty": 0.1}, "shards": 2, "asked": 8, "graph": 3},
        parties=3,
    ),
)
def pate_votes(
    federation: Federation,
    *,
    teacher: str | dict[str, Any] = "kernel",
    shards: int | dict[str, int] = 50,
    asked: int = ASKED,
    public: float = 0.5,
    straighten: bool = False,
    scatter: bool = False,
    components: int = 0,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    unit: Unit = "record",
    graph: int = 10,
    student: str | dict[str, Any] = "svm",
    keep: float = 0.98,
    rounds_alone: int = 0,
    inputs: Any = None,
    test: Table | None = None,
    start: VoteState | None = None,
) -> Iterator[VoteState]:
    """Ask all teachers for their votes on public inputs, once.

    Parameters
    ----------
    federation : Federation
        With a schema whose target is binary or a category.
    teacher : str or dict
        What each shard fits: a name of `hedgerow.learn.teachers.LEARNERS`; a table with `name` and settings; or a table from
        party to one of these, with "others" for those that are not named.
    shards : int or dict
        Teachers of each party; or a table from party to their number, with "others".
    asked : int
        Public inputs that are asked about, drawn from the pool by the server's own randomness.
    public : float
        In (0, 1): the first part of the server's table whose features are the public pool, without its labels; the student is
        measured on the rest. Records that lack a value are left out of both. Without a table inputs are made up.
    straighten, scatter : bool
        Images are moved upright, and seen through fixed wavelets, by teachers and student.
    components : int
        Leading directions of the public pool that are kept of the features; 0 keeps all numbers.
    epsilon, delta : float, optional
        A budget that is spent on the votes. Without it they are asked through the channel as it is.
    noise_at : {"server", "aggregators", "shares", "party"}
        Who adds the noise of that budget.
    least : int
        For shares: as many parties' shares make the whole noise.
    unit : {"record", "party"}
        Whose presence noise hides: a record, which moves one teacher; or a party with all its teachers.
    graph : int
        Of the student: nearest neighbours over which votes are spread; 0 teaches by the inputs that were asked alone: by whole
        votes where it fits numbers by least squares (ridge, kernel), by the argmax of each otherwise.
    student : str or dict
        What the student fits, as `teacher` for one party.
    keep : float
        Of the student: how far votes are spread, in [0, 1).
    rounds_alone : int
        Of the student: rounds of self-training.
    inputs : table, data frame or array, optional
        The public pool, in place of the server's table: a table or frame with the features, or an array (N, ...);
        all finite.
    start : VoteState, optional
        Continue after this state, which is the last one.

    Yields
    ------
    VoteState
        Once.

    Warns
    -----
    HedgerowWarning
        Noise hides a label on which all teachers agree, as teachers, sigma and classes tell.

    Raises
    ------
    SettingsInvalid (HR-511), ModelInvalid (HR-510), SchemaInvalid (HR-409), BudgetInvalid (HR-214), SlotFilled (HR-212)
    UnlawfulChannel (HR-211)
        Before any party is asked.
    """
    check_channel(federation)
    teaching = teaching_of(federation, teacher, shards, straighten=straighten, scatter=scatter, components=components)
    check_student(graph, student, keep, rounds_alone)
    if unit == "party" and noise_at == "party":
        raise SettingsInvalid(
            "noise_at='party' with unit='party': each party's noise would have to hide any two contributions, twice the bound.",
            remedy="Take noise_at='shares' behind secure aggregation, or the unit record.",
        )
    if start is not None:
        return
    schema = federation.schema
    pool, chosen = pool_of(federation, schema, inputs, test, public, asked)
    features = teaching.reads.public(pool)
    told = features | {"inputs": features["inputs"][chosen]}
    federation = complete_cases(federation, columns_of(schema), count=epsilon is None and not federation.protection.noisy)
    given: dict[str, Any] = dict(reading_settings(schema))
    prepared = federation.prepare(inputs_and_target, **given)
    handle = BudgetShares(epsilon, delta, noise_at, least).handles(prepared, {"votes": Share(1.0)}, begins=True)["votes"]
    counts = [teaching.teachers(name) for name in federation.names]
    expected = max(1, round(sum(counts) * federation.expected_size / len(counts)))
    bound = bound_of(len(chosen), max(counts), unit, handle.protection.law)
    sigma = (
        noise_level(handle, in_steps(bound) if unit == "record" else bound, "", len(chosen) * teaching.classes)
        if handle.protection.noisy
        else 0.0
    )
    if sigma:
        warn_of_noise(expected, sigma, teaching.classes, len(chosen))
    votes = np.asarray(handle.sum(partial(teacher_votes, teaching=teaching), told, bound=bound))
    yield VoteState(1, votes, chosen, pool, sigma, expected)


def pate(
    federation: Federation,
    *,
    inputs: Any,
    teacher: Teacher | Mapping[str, Any] = "kernel",
    shards: int | Mapping[str, int] = 50,
    asked: int | None = None,
    straighten: bool = False,
    scatter: bool = False,
    components: int = 0,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    unit: Unit = "record",
) -> VotedLabels:
    """Let teachers vote on public inputs.

    Parameters
    ----------
    inputs : table, data frame or array
        The public pool: a table or a data frame with the features of the schema, with or without its target, or an array
        (N, ...) of them as a model reads them. No value is missing: an input without one is refused before it is paid for.
    teacher : Learner, str or mapping
        What each shard fits: a name of `hedgerow.learn.teachers.LEARNERS`, `package.module:function`, a mapping with `name` and
        settings, or a `Learner`; or a mapping from party to one of these, with "others" for those that are not named.
    shards : int or mapping from party to int
        Teachers of each party.
    asked : int, optional
        Inputs of the pool that are asked about; by default all, and at most `ASKED`.

    Notes
    -----
    Other parameters, what is released and errors as `hedgerow.learn.teachers.pate_votes`. Records of one person at c parties
    move c teachers, so that an epsilon per record is not that of the person.

    Returns
    -------
    VotedLabels
        `.labels`, `.spread()`, and `.student(graph=10)`.

    Source
    ------
    Papernot et al. 2017 and 2018.
    """
    settings: dict[str, Any] = {"straighten": straighten, "scatter": scatter, "components": components}
    teaching = teaching_of(federation, teacher, shards, **settings)
    pool = inputs_of(inputs, federation.schema)
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "noise_at": noise_at, "least": least, "unit": unit}
    given: Any = {"teacher": teacher, "shards": shards, "asked": min(ASKED, len(pool)) if asked is None else asked}
    (state,) = pate_votes(federation, inputs=pool, **given, **settings, **budget)
    arrays = (state.votes, state.asked, state.pool)
    return VotedLabels(*arrays, state.sigma, state.teachers, teaching.reads, federation.schema, epsilon, delta)


# ---- what is shown --------------------------------------------------------------------------------------------------
def labels_of(settings: Mapping[str, Any], state: VoteState, schema: Schema) -> VotedLabels:
    """The labels of a state."""
    reads = Reads.of(schema, **{name: settings[name] for name in ("straighten", "scatter", "components")})
    arrays, cost = (state.votes, state.asked, state.pool), (settings.get("epsilon"), settings.get("delta"))
    return VotedLabels(*arrays, state.sigma, state.teachers, reads, schema, *cost)


_taught: list[tuple[VoteState, Student]] = []
"""The last student: it is taught once, and measured often."""


def student_of(settings: Mapping[str, Any], state: VoteState, schema: Schema) -> Student:
    """The student of a state."""
    if not (_taught and _taught[0][0] is state):
        made = labels_of(settings, state, schema).student(
            settings["graph"], model=settings["student"], keep=settings["keep"], rounds=settings["rounds_alone"]
        )
        _taught[:] = [(state, made)]
    return _taught[0][1]


def watch(settings: Mapping[str, Any], state: VoteState, schema: Schema, test: Table | None) -> dict[str, float]:
    """The student's accuracy on the part of the server's table that is not public; and how many labels were right."""
    if test is None:
        return {}
    found = student_of(settings, state, schema)
    pool = public_part(test, schema, settings["public"])
    truth = np.asarray(pool[str(schema.target)]).astype(int)
    known = len(truth) == len(state.pool)  # not where a study is only tried, on made-up inputs
    return {
        "test accuracy": found.accuracy(held_out(test, settings, schema)),
        "argmax labels right": float((state.votes.argmax(1) == truth[state.asked]).mean()) if known else math.nan,
        "public inputs right": float((found.pool == truth).mean()) if known else math.nan,
    }


def outcome(federation: Federation, settings: Mapping[str, Any], state: VoteState) -> Outcome:
    """What was asked and answered, in numbers that are public or were released."""
    import pandas

    labels = labels_of(settings, state, federation.schema)
    rows = [
        ("teachers", float(state.teachers)),
        ("public inputs", float(len(state.pool))),
        ("of which asked", float(len(state.asked))),
        ("standard deviation of the noise in a count", state.sigma),
    ]
    if not math.isnan(labels.sure):
        rows.append(("chance that the largest number is right where all teachers agree", labels.sure))
    tables = {"Votes": pandas.DataFrame([(name, f"{value:.4g}") for name, value in rows], columns=["", "value"])}
    if not state.sigma and whole(state.votes):
        tables[PUBLISHED] = pandas.DataFrame(
            [
                (one.mechanism, len(one.labels), one.epsilon, str(one.dependent))
                for one in as_published(state.votes, state.teachers)
            ],
            columns=["mechanism", "labels", "epsilon whatever the votes are", "epsilon by these votes"],
        )
    return Outcome(tables=tables, arrays={"votes": state.votes, "asked": state.asked})
