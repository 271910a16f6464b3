"""PATE-GAN: a generator against a student that learns from noisy votes of teachers; a baseline.

    teachers   each party deals its records to m critics by their contents; a critic reads its own alone      at the party
    repeat rounds times:
        x~        <- rows of the generator                                                                    broadcast
        teachers  <- steps of Adam: own records against the first half of x~                                  state at the party
        v         <- for each row of the second half, how many teachers take it for real  + N(0, sigma^2)     sum
        student   <- steps of Adam: these rows with labels v > half of the teachers                           post-processing
        generator <- steps of Adam against the student                                                        post-processing

A record lies with one teacher, whose votes it may change, all of them: l2 sqrt(rows) for the votes of a round. They are one
Gaussian release, charged before it is asked, whatever the votes are. The published account is data-dependent: it is cheaper
where teachers agree, it is itself private, and it cannot be charged beforehand. A student sees rows of the generator alone, so
where these are nothing like the records it learns nothing from them: take a tree (`tan`) for a table that is to be used.

Releases : the votes, (made,), once per round; counts of bins and levels at most once, a fifth of mu squared.
State    : teachers' weights, at their party.
Unit     : record. A record that lies with several parties counts as one at each.
Source   : Jordon, Yoon & van der Schaar, ICLR 2019, Algorithm 1; Papernot et al. 2017. Differs: Gaussian noise and a
           data-independent account; rows as CTGAN has them; noisy labels decide by the sign of v - half. Of other versions'
           mistakes in accounting: Ganev, Annamalai & De Cristofaro 2024 (arXiv 2406.13985).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, l2
from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.core.party import Party
from hedgerow.core.question import local, minds_missing, travels
from hedgerow.data import Schema, complete_cases
from hedgerow.data.synthetic_table import Provenance
from hedgerow.display import displayed
from hedgerow.learn.records.dpsgd import unclipped
from hedgerow.privacy.shares import BudgetShares, Share
from hedgerow.report import Outcome

from .adversarial import BETAS, level_loss
from .ctgan import Ctgan
from .encoding import RowEncoding
from .modes import Modes, found_behind_noise, level_counts_of, modes_of, modes_table
from .networks import NOISE, Generator, activated, begun, filled, flat, mask_of
from .private import COUNTS
from .settings import above, encoding_of, tiny, to_its_end

HIDDEN = 64
DEALT = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9)
"""Odd numbers by which contents of records are mixed before records are dealt to teachers."""


@travels
@dataclass(frozen=True)
class TeacherPlan:
    """What the teachers of a party do in a round; see `hedgerow.synth.pate_gan`."""

    teachers: int
    steps: int
    batch_size: int
    learning_rate: float
    hidden: int

    def shapes(self, width: int) -> tuple[tuple[int, ...], ...]:
        """Of a teacher's weights."""
        return (width, self.hidden), (1, self.hidden), (self.hidden, 1), (1, 1)

    def size(self, width: int) -> int:
        """Numbers of a teacher."""
        return sum(math.prod(shape) for shape in self.shapes(width))

    def parts(self, weights: Tensor, width: int) -> list[Tensor]:
        """Weights (teachers, size), layer by layer."""
        shapes = self.shapes(width)
        cut = weights.split([math.prod(shape) for shape in shapes], 1)
        return [part.view(-1, *shape) for part, shape in zip(cut, shapes, strict=True)]

    def scores(self, weights: Tensor, x: Tensor) -> Tensor:
        """What each teacher says of its own rows (teachers, n, width): shape (teachers, n), above zero for real."""
        first, offset, second, last = self.parts(weights, x.shape[2])
        found: Tensor = (F.leaky_relu(x @ first + offset, 0.2) @ second + last)[:, :, 0]
        return found


def dealt(codes: Array, teachers: int) -> Array:
    """The teacher of each record (n,), by its codes (n, f): the same wherever it stands and whoever the others are."""
    mixed = np.zeros(len(codes), np.uint64)
    with np.errstate(over="ignore"):
        for column in codes.T:
            mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(DEALT[0])
            mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(DEALT[1])
    return ((mixed >> np.uint64(17)) % np.uint64(teachers)).astype(np.intp)


@travels
def untaught(broadcast: Mapping[str, Array], party: Party, *, plan: TeacherPlan) -> dict[str, Array]:
    """First weights of a party's teachers, shape (teachers, size): public ones."""
    width = broadcast["rows"].shape[1]
    draws = torch.Generator().manual_seed(0)
    return {"teachers": (torch.randn(plan.teachers, plan.size(width), generator=draws) / math.sqrt(width)).numpy()}


@minds_missing
@local(by_shard="contents")
def votes_of_teachers(
    broadcast: Mapping[str, Array], party: Party, rng: Any, *, encoding: RowEncoding, plan: TeacherPlan
) -> Array:
    """Train a party's teachers, then count how many take each row of the second half for real: shape (made,).

    What a teacher draws, and how far it gets, does not depend on the others' records, to the last bit: a record changes the
    votes of one teacher. A teacher without records takes nothing for real.
    """
    kept = np.flatnonzero(np.asarray(party.w) > 0)
    columns = {column.name: party[column.name][kept] for column in encoding.codes.columns}
    rows = torch.from_numpy(encoding.encode(columns, broadcast["modes"]))
    fake, asked = torch.from_numpy(np.asarray(broadcast["rows"], np.float32)).chunk(2)
    teacher = dealt(encoding.codes.number(columns), plan.teachers)
    rows = torch.cat([rows, torch.zeros(1, encoding.width)])  # the last is nobody's, for teachers without records
    order, many = np.append(np.argsort(teacher, kind="stable"), len(teacher)), np.bincount(teacher, minlength=plan.teachers)
    first = np.cumsum(many) - many
    weights = torch.from_numpy(np.array(party.state["teachers"], np.float32)).requires_grad_()
    adam = torch.optim.Adam([weights], plan.learning_rate)
    there = torch.from_numpy((many > 0).astype(np.float32))
    for _ in range(plan.steps):
        u, which = rng.random((plan.teachers, plan.batch_size)), rng.integers(len(fake), size=(plan.teachers, plan.batch_size))
        at = first[:, None] + np.minimum((u * many[:, None]).astype(np.intp), np.maximum(many - 1, 0)[:, None])
        own = torch.where(there[:, None, None] > 0, rows[torch.from_numpy(order[np.minimum(at, len(rows) - 1)])], 0.0)
        seen = F.softplus(-plan.scores(weights, own)).mean(1) * there
        adam.zero_grad()
        (seen + F.softplus(plan.scores(weights, fake[torch.from_numpy(which)])).mean(1)).sum().backward()
        adam.step()
    with torch.no_grad():
        said = plan.scores(weights, asked.expand(plan.teachers, -1, -1)) > 0
    party.state["teachers"] = weights.detach().numpy()
    return (said.double() * there[:, None]).sum(0).numpy()


@displayed
@dataclass(frozen=True, eq=False)
class PateGanState:
    """Generator and student after a round of votes.

    Attributes
    ----------
    generator, student : arrays of shape (parameters,)
    modes : array of shape (numbers, n_modes, 3)
    counts : array of shape (levels of all columns,)
    """

    round: int
    generator: Array
    student: Array
    modes: Array
    counts: Array


def student_of(encoding: RowEncoding, hidden: int) -> nn.Module:
    """Scores of rows."""
    return nn.Sequential(nn.Linear(encoding.width, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, 1))


def bound_of_votes(made: int) -> Bound:
    """How far one record moves the votes of a round: one of each row's."""
    return l2(math.sqrt(made), "record")


@program(
    "PATE-GAN (Jordon et al. 2019): a generator against a student of noisy votes; a baseline.",
    name="pate_gan",
    outcome=lambda federation, settings, state: outcome(federation, settings, state),
    synthesizer=lambda settings, arrays, schema, about: synthesizer(settings, arrays, schema, about),
    case=lambda: tiny(steps=None, made=8, batch_size=10, teachers=2, teacher_steps=2, hidden=8),
)
def pate_gan_rounds(
    federation: Federation,
    *,
    rounds: int = 100,
    teachers: int = 10,
    made: int = 64,
    batch_size: int = 64,
    teacher_steps: int = 5,
    student_steps: int = 5,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    learning_rate: float = 1e-3,
    hidden: int = HIDDEN,
    n_modes: int = 10,
    modes: Modes = "mixture",
    columns: Sequence[str] | None = None,
    seed: int = 0,
    start: PateGanState | None = None,
) -> Iterator[PateGanState]:
    """Train a generator against a student that learns from noisy votes.

    Parameters
    ----------
    rounds : int
        Of votes in all, those before `start` included.
    teachers : int
        Of each party: as many critics as it deals its records to.
    made : int
        Rows of a round that are voted on.
    batch_size : int
        Records, and rows, of a teacher's step.
    teacher_steps, student_steps : int
        In a round; the generator takes as many as the student.
    epsilon, delta : float, optional
        A budget for everything: a fifth of mu squared for counts, the rest for votes. Without it the channel's noise is used.
    noise_at : {"server", "aggregators", "shares", "party"}
        Who adds the noise of that budget.
    least : int
        For shares: as many parties' shares make the whole noise.
    learning_rate : float
        Of Adam, of all networks.
    hidden : int
        Units of each hidden layer.
    n_modes : int
        Of a number, at most.
    modes : {"mixture", "equal"}
        From noisy counts, or public ones of equal widths.
    columns : sequence of str, optional
        Columns to make up; by default all but those of an id, weights, offsets and what is ignored.
    seed : int
        Of the initial weights.
    start : PateGanState, optional
        Continue after this state.

    Yields
    ------
    PateGanState
        After each round.

    Raises
    ------
    SettingsInvalid (HR-511), SchemaInvalid (HR-409), UnlawfulChannel (HR-211), BudgetInvalid (HR-214), SlotFilled (HR-212)
        Before any party is asked.
    """
    above(rounds=rounds, teachers=teachers, made=made, batch_size=batch_size, hidden=hidden, learning_rate=learning_rate)
    above(teacher_steps=teacher_steps, student_steps=student_steps)
    unclipped(federation)
    encoding = encoding_of(federation.schema, columns, n_modes)
    needs = bool(encoding.discrete) or (modes == "mixture" and bool(encoding.numbers))
    shares = {"counts": Share(COUNTS)} if needs else {}
    shares["votes"] = Share(1 - COUNTS if needs else 1.0, times=rounds)
    plan = BudgetShares(epsilon, delta, noise_at, least)
    asked = plan.handles(complete_cases(federation, [], count=False), shares, begins=start is None)
    if start is None:
        counts = found_behind_noise(asked["counts"], encoding) if needs else None
        first = begun(Generator, seed, encoding, hidden), begun(student_of, seed, encoding, hidden)
        own = modes_of(encoding, counts if modes == "mixture" else None)
        start = PateGanState(0, *first, own, level_counts_of(encoding, counts))
    state, taught = start, TeacherPlan(teachers, teacher_steps, batch_size, learning_rate, hidden)
    ask, half = partial(votes_of_teachers, encoding=encoding, plan=taught), federation.size * teachers / 2
    for t in range(state.round, rounds):
        draws = torch.Generator().manual_seed(int(federation.stream(t + 1, "made-up rows").integers(2**62)))
        with torch.no_grad():
            rows = _made(state, encoding, 2 * made, draws)[2].numpy()
        told = {"rows": rows, "modes": state.modes}
        init = partial(untaught, plan=taught)
        votes: Any = asked["votes"].sum(ask, told, bound=bound_of_votes(made), init=init)
        labels = torch.from_numpy((votes > half).astype(np.float32))
        yield (state := _step(state, encoding, torch.from_numpy(rows[made:]), labels, student_steps, learning_rate, draws))


def _made(
    state: PateGanState, encoding: RowEncoding, made: int, draws: torch.Generator, net: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs of the generator, conditions by the counts of levels, and rows."""
    hidden = len(state.student) // (encoding.width + 2)
    net = net or filled(Generator(encoding, hidden), state.generator)
    m = torch.zeros(made, encoding.conditions)
    if encoding.discrete:
        place = torch.randint(len(encoding.discrete), (made,), generator=draws)
        for c, block in enumerate(encoding.discrete):
            mass = torch.from_numpy(state.counts[block.levels])
            level = torch.multinomial(mass, made, replacement=True, generator=draws)
            m[torch.arange(made), block.condition + level] = (place == c).float()
    out = net(torch.cat([torch.randn(made, NOISE, generator=draws), m], 1)) + mask_of(encoding, state.modes)
    return out, m, activated(encoding, out, draws)


def _step(
    state: PateGanState, encoding: RowEncoding, rows: Tensor, labels: Tensor, steps: int, rate: float, draws: torch.Generator
) -> PateGanState:
    """Steps of the student on labelled rows, and of the generator against it: post-processing of noisy votes."""
    hidden = len(state.student) // (encoding.width + 2)
    student: Any = filled(student_of(encoding, hidden), state.student)
    generator: Any = filled(Generator(encoding, hidden), state.generator)
    own = [torch.optim.Adam(net.parameters(), rate, betas=BETAS) for net in (student, generator)]
    for _ in range(steps):
        own[0].zero_grad()
        F.binary_cross_entropy_with_logits(student(rows)[:, 0], labels).backward()
        own[0].step()
        out, m, fake = _made(state, encoding, len(rows), draws, generator)
        own[1].zero_grad()
        (F.softplus(-student(fake)[:, 0]).mean() + level_loss(encoding, out, m)).backward()
        own[1].step()
    return replace(state, round=state.round + 1, generator=flat(generator), student=flat(student))


def outcome(federation: Federation, settings: Mapping[str, Any], state: PateGanState) -> Outcome:
    """The modes that were found, and the arrays that records are drawn from."""
    encoding = encoding_of(federation.schema, settings["columns"], settings["n_modes"])
    return Outcome(tables={"Modes of numbers": modes_table(encoding, state.modes)}, arrays=arrays_of(state))


def arrays_of(state: PateGanState) -> dict[str, Array]:
    """The generator's weights, the modes and the counts of levels."""
    return {"generator": state.generator, "modes": state.modes, "counts": state.counts}


def synthesizer(settings: Mapping[str, Any], arrays: Mapping[str, Array], schema: Schema, about: Provenance) -> Ctgan:
    """What records are drawn from, of the arrays of an outcome."""
    encoding = encoding_of(schema, settings["columns"], settings["n_modes"])
    own = (arrays[name] for name in ("modes", "counts", "generator"))
    return Ctgan(encoding.codes, about, encoding, *own, settings["hidden"])


def pate_gan(federation: Federation, **settings: Any) -> Ctgan:
    """Train PATE-GAN to its end.

    Parameters
    ----------
    **settings
        As `pate_gan_rounds` explains them: `rounds`, `teachers`, `made`, `batch_size`, `teacher_steps`,
        `student_steps`, `epsilon`, `delta`, `noise_at`, `least`, `learning_rate`, `hidden`, `n_modes`, `modes`,
        `columns`, `seed`.
        With `start` no epsilon is claimed: its state may hold sums that this ledger does not.

    Returns
    -------
    Ctgan
        With `sample(1000, where={"sex": "Female"})`.
    """
    state, full, about = to_its_end(pate_gan_rounds, federation, settings, "pate_gan")
    return synthesizer(full, arrays_of(state), federation.schema, about)
