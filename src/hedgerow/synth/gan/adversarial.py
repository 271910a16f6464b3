"""Training by sampling: what a party does with generator and critic in a round.

    repeat steps times:
        repeat critic_steps times:
            c, l   <- a column with levels, uniformly; a level by log(1 + count)        one each row; m its one-hot vector
            x      <- a record of the party that has level l in column c                uniformly; without such columns any
            x~     <- generator(z, m)
            critic <- Adam down  C(x~, m) - C(x, m) + 10 (|gradient of C at x^| - 1)^2,   x^ between x and x~, pack by pack
        generator  <- Adam down  -C(x~, m) + cross-entropy between m and the produced level of column c

Levels that a party has no record of are not drawn there.

Source : Xu et al. 2019, sections 4.3 and 4.4. Differs: no units are dropped in the penalty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hedgerow.core.arrays import Array
from hedgerow.core.party import Party
from hedgerow.core.question import local, minds_missing, travels
from hedgerow.learn.settings import Weighting
from hedgerow.learn.weighting import weighed

from .encoding import RowEncoding
from .networks import HIDDEN, NOISE, Critic, Generator, activated, filled, flat, mask_of

PENALTY = 10.0
BETAS = (0.5, 0.9)


@travels
@dataclass(frozen=True)
class GanPlan:
    """A party's steps in a round; see `hedgerow.synth.ctgan`."""

    steps: int
    batch_size: int
    pac: int
    learning_rate: float
    critic_steps: int = 1
    hidden: int = HIDDEN


@dataclass(frozen=True, eq=False)
class Conditioner:
    """Draws conditions, and records that satisfy them.

    Attributes
    ----------
    below : array of shape (columns, most levels)
        Cumulative probability of each column's levels.
    order : array of shape (columns, n)
        Records by level.
    first, many : arrays of shape (columns, most levels)
        Where the records of a level start there, and how many they are.
    """

    encoding: RowEncoding
    below: Array
    order: Array
    first: Array
    many: Array
    n: int

    @classmethod
    def of(cls, encoding: RowEncoding, levels: Array, counts: Array) -> Conditioner:
        """For records with these levels (n, columns), by counts of the levels of everybody."""
        most = max((block.size for block in encoding.discrete), default=1)
        many = np.zeros((len(encoding.discrete), most), np.intp)
        mass = np.zeros(many.shape)
        for c, block in enumerate(encoding.discrete):
            many[c, : block.size] = np.bincount(levels[:, c], minlength=block.size)
            mass[c, : block.size] = np.log1p(counts[block.levels])
        mass = np.where(many > 0, np.maximum(mass, 1e-9), 0.0)
        below = np.cumsum(mass, 1) / np.maximum(mass.sum(1, keepdims=True), 1e-12)
        order = np.argsort(levels, axis=0, kind="stable").T
        return cls(encoding, below, order, np.cumsum(many, 1) - many, many, len(levels))

    def draw(self, size: int, rng: Any) -> tuple[Array, Array]:
        """Vectors of conditions (size, conditions), float32, and records (size,) that satisfy them."""
        m = np.zeros((size, self.encoding.conditions), np.float32)
        if not self.encoding.discrete:
            return m, rng.integers(self.n, size=size)
        c = rng.integers(len(self.encoding.discrete), size=size)
        level = (rng.random(size)[:, None] >= self.below[c, :-1]).sum(1)
        level = np.minimum(level, (self.many[c] > 0).cumsum(1).argmax(1))  # the last that has records, against rounding
        starts = np.array([block.condition for block in self.encoding.discrete])
        m[np.arange(size), starts[c] + level] = 1.0
        at = self.first[c, level] + (rng.random(size) * self.many[c, level]).astype(np.intp)
        return m, self.order[c, at]


def level_loss(encoding: RowEncoding, out: Tensor, m: Tensor) -> Tensor:
    """Cross-entropy between conditions and the levels that were made of their columns, the mean over rows."""
    total = torch.zeros(())
    for block in encoding.discrete:
        total = total - (torch.log_softmax(out[:, block.hot], 1) * m[:, block.levels]).sum()
    return total / len(out)


@minds_missing
@local()
def train_gan(
    broadcast: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    encoding: RowEncoding,
    plan: GanPlan,
    weighting: Weighting,
    largest_weight: float | None = None,
) -> Mapping[str, Array]:
    """Train a network that makes up records, and one that tells them from real ones; return by how much both have changed.

    From the broadcast weights; the weighted change of generator and critic, side by side, as `update`.
    """
    before = np.concatenate([broadcast["generator"], broadcast["critic"]])
    rows, levels = own_rows(encoding, party, broadcast["modes"], rng)
    after = before
    if len(rows):
        generator = filled(Generator(encoding, plan.hidden), broadcast["generator"])
        critic = filled(Critic(encoding, plan.hidden, plan.pac), broadcast["critic"])
        conditioner = Conditioner.of(encoding, levels, broadcast["counts"])
        compete(generator, critic, rows, conditioner, mask_of(encoding, broadcast["modes"]), plan, rng)
        after = np.concatenate([flat(generator), flat(critic)])
    return weighed(party, weighting, largest_weight, update=after - before)


def own_rows(encoding: RowEncoding, party: Party, modes: Array, rng: Any) -> tuple[Array, Array]:
    """A party's records as rows (n, width) and codes of levels; with weights, as many records drawn in proportion to them."""
    w = np.asarray(party.w)
    kept = np.flatnonzero(w > 0)
    if len(kept) and not (w[kept] == w[kept][0]).all():
        kept = rng.choice(kept, len(kept), p=w[kept] / w[kept].sum())
    columns = {column.name: party[column.name][kept] for column in encoding.codes.columns}
    return encoding.encode(columns, modes, rng), encoding.levels(columns)


def compete(generator: Any, critic: Any, rows: Array, conditioner: Conditioner, mask: Tensor, plan: GanPlan, rng: Any) -> None:
    """The steps of a round, in place."""
    encoding, size = conditioner.encoding, plan.batch_size
    draws = torch.Generator().manual_seed(int(rng.integers(2**62)))
    records = torch.from_numpy(rows)
    own = [torch.optim.Adam(net.parameters(), plan.learning_rate, betas=BETAS) for net in (generator, critic)]

    def made(m: Tensor) -> tuple[Tensor, Tensor]:
        out = generator(torch.cat([torch.randn(size, NOISE, generator=draws), m], 1)) + mask
        return out, torch.cat([activated(encoding, out, draws), m], 1)

    def packed(values: Tensor) -> Tensor:
        return values.reshape(size // plan.pac, -1)

    for _ in range(plan.steps):
        for _ in range(plan.critic_steps):
            m, which = conditioner.draw(size, rng)
            m = torch.from_numpy(m)
            with torch.no_grad():
                fake = packed(made(m)[1])
            real = packed(torch.cat([records[torch.from_numpy(which)], m], 1))
            scores = critic(torch.cat([fake, real]), draws)
            loss = scores[: len(fake)].mean() - scores[len(fake) :].mean() + PENALTY * steepness(critic, real, fake, draws)
            own[1].zero_grad()
            loss.backward()
            own[1].step()
        m = torch.from_numpy(conditioner.draw(size, rng)[0])
        out, fake = made(m)
        loss = -critic(packed(fake), draws).mean() + level_loss(encoding, out, m)
        own[0].zero_grad()
        loss.backward()
        own[0].step()


def steepness(critic: Any, real: Tensor, fake: Tensor, draws: torch.Generator) -> Tensor:
    """Mean of (|gradient of the critic| - 1)^2 at points between packs."""
    between = real + torch.rand(len(real), 1, generator=draws) * (fake - real)
    between.requires_grad_(True)
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((torch.linalg.vector_norm(slope, dim=1) - 1) ** 2).mean()
