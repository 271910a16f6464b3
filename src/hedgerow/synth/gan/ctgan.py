"""CTGAN over a federation: a conditional generator of records against a critic, by federated averaging of both.

    h        <- counts of bins and levels                                            sum, once; nothing where both are public
    modes    <- of each number, from h or public                                     see `modes`
    repeat rounds times:
        G, C       -> parties                                                        broadcast
        G_k, C_k   <- steps of training by sampling on party k's records             see `adversarial`
        G, C       <- G, C + sum_k n_k (G_k - G, C_k - C) / sum_k n_k                sum, server
    draw     m by the counts of h, records G(z, m)                                   asks nobody

One party is the paper's own algorithm, with a new Adam each round.

Releases : h once; the sum of weighted changes and of weights, once per round. Weights that were
           trained without noise can give records away; `dp_ctgan` has a guarantee for each record.
State    : none at the parties.
Unit     : party, through a channel that clips updates and adds noise; modes and counts are then public.
Source   : Xu, Skoularidou, Cuesta-Infante & Veeramachaneni, NeurIPS 2019, sections 4.2 to 4.4, from the paper alone;
           McMahan et al. 2017, Algorithm 1. Differs: modes from a histogram; generators of the last rounds are
           averaged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.data import Schema, complete_cases
from hedgerow.data.synthetic_table import Provenance
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.settings import Weighting
from hedgerow.learn.training import mean_of, weighting_of
from hedgerow.report import Outcome

from ..conditions import Conditions
from .adversarial import GanPlan, train_gan
from .encoding import RowEncoding
from .made import NetworkSynthesizer
from .modes import Modes, asked_counts, level_counts_of, modes_of, modes_table
from .networks import HIDDEN, NOISE, Critic, Generator, activated, begun, filled, mask_of
from .settings import above, encoding_of, refuse_counts, refuse_promise, tiny, to_its_end

BATCH = 512
"""Records that batch normalisation sees together when they are drawn."""


@displayed
@dataclass(frozen=True, eq=False)
class CtganState:
    """Generator and critic after a round.

    Attributes
    ----------
    generator, critic : arrays of shape (parameters,)
    averaged : array of shape (parameters,)
        The generator that records are drawn from: the mean of the last rounds'.
    modes : array of shape (numbers, n_modes, 3)
        Weight, mean and deviation.
    counts : array of shape (levels of all columns,)
    """

    round: int
    generator: Array
    critic: Array
    averaged: Array
    modes: Array
    counts: Array


@dataclass(frozen=True, eq=False, repr=False)
class Ctgan(NetworkSynthesizer):
    """Records of a conditional generator.

    Attributes
    ----------
    counts : array of shape (levels of all columns,)
        By which conditions are drawn.
    generator : array of shape (parameters,)
    hidden : int
    """

    counts: Array
    generator: Array
    hidden: int = HIDDEN

    def outputs(self, rows: int, conditions: Conditions, rng: np.random.Generator) -> Array:
        """Return rows as `RowEncoding.decode` reads them; levels that are wanted are conditions of the generator."""
        net = filled(Generator(self.encoding, self.hidden), self.generator)
        draws = torch.Generator().manual_seed(int(rng.integers(2**62)))
        mask, found = mask_of(self.encoding, self.modes), []
        for start in range(0, rows, BATCH):
            m = torch.from_numpy(self.conditioned(conditions, rng))
            with torch.no_grad():
                out = net(torch.cat([torch.randn(BATCH, NOISE, generator=draws), m], 1)) + mask
                found.append(activated(self.encoding, out, draws)[: rows - start].numpy())
        return np.concatenate(found)

    def conditioned(self, conditions: Conditions, rng: np.random.Generator) -> Array:
        """Vectors of conditions (BATCH, conditions), float32, of columns with wanted levels if there are any."""
        m = np.zeros((BATCH, self.encoding.conditions), np.float32)
        wanted = [block for block in self.encoding.discrete if block.column in conditions.weights]
        blocks = wanted or self.encoding.discrete
        if not blocks:
            return m
        which = rng.integers(len(blocks), size=BATCH)
        for k, block in enumerate(blocks):
            mass = self.counts[block.levels] * (conditions.weights[block.column] if wanted else 1.0)
            mass = mass if mass.sum() > 0 else conditions.weights.get(block.column, np.ones(block.size))
            rows = np.flatnonzero(which == k)
            m[rows, block.condition + rng.choice(block.size, len(rows), p=mass / mass.sum())] = 1.0
        return m


@program(
    "CTGAN (Xu et al. 2019): a conditional generator of records, by federated averaging.",
    name="ctgan",
    outcome=lambda federation, settings, state: outcome(federation, settings, state),
    synthesizer=lambda settings, arrays, schema, about: synthesizer(settings, arrays, schema, about),
    case=lambda: tiny(pac=2, hidden=8),
)
def ctgan_rounds(
    federation: Federation,
    *,
    rounds: int = 40,
    steps: int = 50,
    batch_size: int = 200,
    pac: int = 2,
    learning_rate: float = 1e-3,
    critic_steps: int = 1,
    hidden: int = HIDDEN,
    n_modes: int = 10,
    modes: Modes = "mixture",
    balanced: bool = True,
    averaged: int = 10,
    columns: Sequence[str] | None = None,
    weighting: Weighting | None = None,
    rate: float | None = None,
    seed: int = 0,
    start: CtganState | None = None,
) -> Iterator[CtganState]:
    """Train CTGAN by federated averaging.

    Parameters
    ----------
    rounds : int
        In all, those before `start` included.
    steps : int
        Of each party in a round, of critic and generator.
    batch_size, pac : int
        Records of a step, and how many of them the critic sees side by side, which divides it. The paper's are 500 and 10. On
        Sempere's table, in as many steps, a correlation of .5 came back within .14, .5 and .5 by packs of 2, 4 and 10.
    learning_rate : float
        Of both. The paper's is 2e-4, with more steps.
    critic_steps : int
        Of the critic for each of the generator.
    hidden : int
        Units of each hidden layer.
    n_modes : int
        Of a number, at most.
    modes : {"mixture", "equal"}
        From a histogram that is asked, or public ones of equal widths.
    balanced : bool
        Conditions by log(1 + count) of counts that are asked; otherwise all levels alike, which asks nothing.
    averaged : int
        Records are drawn from the mean of the generators of so many last rounds, weighing later ones more.
    columns : sequence of str, optional
        Columns to make up; by default all but those of an id, weights, offsets and what is ignored.
    weighting : {"records", "uniform", "expected"}, optional
        How parties count; as `hedgerow.learn.fedavg`.
    rate : float, optional
        Each party joins a round with this probability.
    seed : int
        Of the initial weights.
    start : CtganState, optional
        Continue after this state.

    Yields
    ------
    CtganState
        After each round.

    Raises
    ------
    SettingsInvalid (HR-511), SchemaInvalid (HR-409), MissingColumn (HR-403)
        Before any party is asked.
    """
    above(rounds=rounds, steps=steps, batch_size=batch_size, pac=pac, learning_rate=learning_rate)
    above(critic_steps=critic_steps, hidden=hidden, averaged=averaged)
    if batch_size % pac or batch_size < 2:
        raise SettingsInvalid(
            f"batch_size={batch_size} with pac={pac}.", remedy=f"Take a multiple of pac, such as {max(1, 200 // pac) * pac}."
        )
    weighting = weighting_of(weighting, federation, ("records", "uniform", "expected"))
    encoding = encoding_of(federation.schema, columns, n_modes)
    federation = complete_cases(federation, [], count=False)
    state = start or _begun(federation, encoding, modes, balanced, hidden, pac, seed)
    plan = GanPlan(steps, batch_size, pac, learning_rate, critic_steps, hidden)
    ask = partial(train_gan, encoding=encoding, plan=plan, weighting=weighting)
    decay, at = 1 - 1 / averaged, len(state.generator)
    for t in range(state.round, rounds):
        cohort = federation if rate is None else federation.sample(rate=rate)
        told = {"generator": state.generator, "critic": state.critic, "modes": state.modes, "counts": state.counts}
        update = mean_of(cohort.sum(ask, told), cohort)
        generator, critic = state.generator + update[:at], state.critic + update[at:]
        kept = min(decay, t / (t + 1))
        mean = (kept * state.averaged + (1 - kept) * generator).astype(np.float32)
        state = CtganState(t + 1, generator, critic, mean, state.modes, state.counts)
        yield state


def _begun(
    federation: Federation, encoding: RowEncoding, modes: Modes, balanced: bool, hidden: int, pac: int, seed: int
) -> CtganState:
    """First weights, and modes and counts from one question, which is not asked where both are public."""
    needed = (modes == "mixture" and bool(encoding.numbers)) or (balanced and bool(encoding.discrete))
    if needed:
        refuse_counts(federation, "Take modes='equal' and balanced=False, which ask nothing.")
    counts = asked_counts(federation, encoding) if needed else None
    generator, critic = begun(Generator, seed, encoding, hidden), begun(Critic, seed, encoding, hidden, pac)
    own = modes_of(encoding, counts if modes == "mixture" else None)
    levels = level_counts_of(encoding, counts if balanced else None)
    return CtganState(0, generator, critic, generator, own, levels)


def outcome(federation: Federation, settings: Mapping[str, Any], state: CtganState) -> Outcome:
    """The modes that were found, and the arrays that records are drawn from."""
    encoding = encoding_of(federation.schema, settings["columns"], settings["n_modes"])
    return Outcome(tables={"Modes of numbers": modes_table(encoding, state.modes)}, arrays=arrays_of(state))


def arrays_of(state: CtganState) -> dict[str, Array]:
    """The generator's weights, the modes and the counts of levels."""
    return {"generator": state.averaged, "modes": state.modes, "counts": state.counts}


def synthesizer(settings: Mapping[str, Any], arrays: Mapping[str, Array], schema: Schema, about: Provenance) -> Ctgan:
    """What records are drawn from, of the arrays of an outcome."""
    encoding = encoding_of(schema, settings["columns"], settings["n_modes"])
    own = (arrays[name] for name in ("modes", "counts", "generator"))
    return Ctgan(encoding.codes, about, encoding, *own, settings["hidden"])


def ctgan(federation: Federation, **settings: Any) -> Ctgan:
    """Train CTGAN to its end.

    Parameters
    ----------
    **settings
        As `ctgan_rounds` explains them: `rounds`, `steps`, `batch_size`, `pac`, `learning_rate`, `critic_steps`,
        `hidden`, `n_modes`, `modes`, `balanced`, `averaged`, `columns`, `weighting`, `rate`, `seed`.
        With `start` no epsilon is claimed: its state may hold sums that this ledger does not.

    Returns
    -------
    Ctgan
        With `sample(1000, where={"sex": "Female"})`.

    Raises
    ------
    ArgumentInvalid (HR-107), BudgetExhausted (HR-213)
        An epsilon is named, or the federation has a budget: nothing here has noise; `dp_ctgan` has.
    """
    refuse_promise("ctgan", federation, settings)
    state, full, about = to_its_end(ctgan_rounds, federation, settings, "ctgan")
    return synthesizer(full, arrays_of(state), federation.schema, about)
