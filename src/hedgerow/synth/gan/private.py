"""Private networks: what DP-CTGAN and DP-TVAE ask of the parties, and what it costs.

    each record joins by itself with probability q                                       sampling, at its party
    G   <- sum over records  a_i g_i min(1, S / |a_i g_i|)  + noise                      sum; a_i <= 1 is public or was charged

One network sees records, and each record's gradient is its own: no packs, no batch statistics. So this is DP-SGD, and the
ledger charges a Gaussian release at sampling rate q each round.

What is wrong with accounts of training by sampling: it draws a level first and a record that has it then, so a record joins a
batch of B with probability up to B max_l P(l) / n_l, which for a rare level is many times B / n. An account at rate B / n
under-reports (`rarest_rate`). Here records join alike, at the rate q that is charged, and a record counts a_l <= 1 by its
level, one for the level that is to be seen most often: the same balance of levels, at the rate of the rarest condition.

Releases : counts of bins and levels at most once; the sum of clipped gradients once per round.
Unit     : record: l2(S), to the last bit (`hedgerow.learn.records`).
Source   : Abadi et al., CCS 2016, Algorithm 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds
from hedgerow.core.events import Charge, Sampling
from hedgerow.core.federation import Federation
from hedgerow.core.ledger import grouped
from hedgerow.core.mechanism import Position
from hedgerow.core.party import Party
from hedgerow.core.question import elementwise, local, minds_missing, travels
from hedgerow.core.whole import BITS, bound_in
from hedgerow.errors import BudgetExhausted, BudgetInvalid, SettingsInvalid
from hedgerow.learn.models import Model
from hedgerow.learn.records.clipped import exact_of
from hedgerow.learn.records.clipping import Clipping
from hedgerow.learn.records.exact.graph import RowGraph
from hedgerow.learn.records.exact.sums import Exact, exact_sum
from hedgerow.learn.records.exact.trace import traced
from hedgerow.learn.records.trained import Trained
from hedgerow.learn.rowwise import kernels as rows
from hedgerow.privacy.accounting import least_noise
from hedgerow.privacy.mechanisms import Gaussian
from hedgerow.privacy.shares import ROOT, UP, BudgetShares, Share

from .encoding import RowEncoding
from .tvae import reconstruction

COUNTS = 0.2
"""Part of the budget, as mu squared, for the counts of bins and levels."""
RARE = 0.05
"""Part of all records, below which levels are balanced no further."""
DELTA = 0.3
"""Deviation of alpha of a private decoder, which has none of its own."""

TravellingModes = tuple[tuple[tuple[float, ...], ...], ...]


def critic_of(encoding: RowEncoding, hidden: int) -> nn.Module:
    """Scores of single rows with their conditions."""
    layers = nn.Linear(encoding.width + encoding.conditions, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 1)
    return nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])


class PlainAutoencoder(nn.Module):
    """Rows to outputs and z, side by side: mu of z, to which a round's noise is added as a part of its bias."""

    def __init__(self, encoding: RowEncoding, hidden: int, latent: int) -> None:
        super().__init__()
        width = encoding.width
        self.encoder = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, width))
        self.outputs, self.inner = nn.Linear(width, width + latent, bias=False), nn.Linear(latent, width + latent, bias=False)
        with torch.no_grad():
            both = torch.eye(width + latent)
            self.outputs.weight.copy_(both[:, :width])
            self.inner.weight.copy_(both[:, width:])
        for fixed in (self.outputs, self.inner):
            fixed.weight.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        """Shape (n, width + latent)."""
        z = self.encoder(x)
        found: Tensor = self.outputs(self.decoder(z)) + self.inner(z)
        return found


def row_losses(output: Tensor, rows: Tensor, *, encoding: RowEncoding) -> Tensor:
    """-log density of rows under a decoder's outputs, and |z|^2 / 2, of which the mean over noise is the divergence: (n,)."""
    out, z = output[:, : encoding.width], output[:, encoding.width :]
    delta = torch.full((len(encoding.numbers),), DELTA)
    return reconstruction(encoding, out, rows, delta) + 0.5 * (z * z).sum(1)


@dataclass(frozen=True)
class ElboGraph(RowGraph):
    """The graph of an auto-encoder, with the slopes of `row_losses` in closed form, each row by itself to the last bit."""

    encoding: RowEncoding | None = None

    def _slopes(self, output: Array, target: Array) -> Array:
        assert self.encoding is not None
        found = np.array(output, np.float32)  # that of |z|^2 / 2 is z
        for block in self.encoding.blocks:
            hot = np.ascontiguousarray(output[:, block.hot], np.float32)
            level = target[:, block.hot].argmax(1).astype(np.int64)
            found[:, block.hot] = rows.softmax_slopes(hot, level)
            if block.mode >= 0:
                mean = rows.tanh(np.ascontiguousarray(output[:, block.alpha : block.start], np.float32))[:, 0]
                there = (level < self.encoding.n_modes).astype(np.float32)
                away = (mean - target[:, block.alpha]) * np.float32(DELTA**-2)
                found[:, block.alpha] = there * away * (np.float32(1.0) - mean * mean)
        return found


@travels
@dataclass(frozen=True)
class PrivateNetwork:
    """The network that sees records.

    Attributes
    ----------
    kind : {"critic", "autoencoder"}
    hidden, latent : int
    """

    encoding: RowEncoding
    kind: Literal["critic", "autoencoder"]
    hidden: int
    latent: int = 1

    def module(self) -> nn.Module:
        """With random weights."""
        if self.kind == "critic":
            return critic_of(self.encoding, self.hidden)
        return PlainAutoencoder(self.encoding, self.hidden, self.latent)

    @property
    def way(self) -> Exact:
        """How gradients of its records are found, made once."""
        return _way(self)

    @property
    def initial(self) -> Array:
        """Weights of the module that the way was made with; their values are nobody's."""
        return self.way.trained.model.initial


@lru_cache(maxsize=16)
def _way(network: PrivateNetwork) -> Exact:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Model(network.module(), "binary" if network.kind == "critic" else "number")
    if network.kind == "critic":
        return exact_of(model, (network.encoding.width + network.encoding.conditions,))
    trained = Trained(model)
    followed = traced(trained, (network.encoding.width,))
    graph = ElboGraph(followed.steps, followed.result, followed.kind, encoding=network.encoding)
    return Exact(trained, graph, numbers=8 * (network.encoding.width + network.hidden + network.latent))


@travels
@elementwise
@minds_missing
def rows_of(
    columns: Mapping[str, Any],
    *,
    encoding: RowEncoding,
    modes: TravellingModes,
    critic: bool,
    place: int | None,
    shares: tuple[float, ...],
) -> dict[str, Array]:
    """Prepare `model_input` and `model_target`: rows by their likeliest modes, and what the loss compares with; and `share`.

    For a critic the conditions are beside them, those of the column at `place` alone, and a record's share is its level's.
    """
    rows = encoding.encode(columns, np.array(modes).reshape(len(encoding.numbers), encoding.n_modes, 3))
    share = np.ones(len(rows), np.float32)
    if not critic:
        return {"model_input": rows, "model_target": rows, "share": share}
    m = np.zeros((len(rows), encoding.conditions), np.float32)
    if place is not None:
        block = encoding.discrete[place]
        m[:, block.levels] = rows[:, block.hot]
        share = np.array(shares, np.float32)[rows[:, block.hot].argmax(1)]
    target = np.ones(len(rows), np.float32)
    return {"model_input": np.concatenate([rows, m], axis=1), "model_target": target, "share": share}


@minds_missing
@local(additive=True, holds=BITS, norms=(2,))
def network_gradients(
    broadcast: Array, party: Party, rng: Any, *, network: PrivateNetwork, clipping: Clipping, bounds: Bounds | None = None
) -> Mapping[str, Array]:
    """Add up which way each record of a sample would change a network, each held to a largest length.

    Sum of the records' clipped gradients, shape (d,), exact to the last bit.
    """
    if bounds is not None:
        clipping = clipping.within(bound_in(bounds, "gradient"))
    x, target = (torch.from_numpy(np.ascontiguousarray(party[name])) for name in ("model_input", "model_target"))
    w = torch.from_numpy(np.asarray(party.w, np.float32) * party["share"])
    total, _ = exact_sum(network.way, torch.from_numpy(np.asarray(broadcast, np.float32)), x, target, w, clipping)
    return {"gradient": total}


def as_setting(modes: Array) -> TravellingModes:
    """Modes as a setting of a preparation."""
    return tuple(tuple(tuple(mode) for mode in own) for own in modes.tolist())


def shares_of(counts: Array, balanced: bool) -> Array:
    """What a record counts by its level, in (0, 1]: as log(1 + count) / count, the rarest level one; all alike otherwise.

    Levels of fewer than `RARE` of all records count as that many: for one of hardly any record, all others would hardly count.
    """
    if not balanced:
        return np.ones(len(counts))
    held = np.maximum(counts, max(1.0, RARE * np.maximum(counts, 0.0).sum()))
    found: Array = np.log1p(held) / held
    return found / found.max()


def rarest_rate(counts: Array, batch_size: int, columns: int = 1) -> float:
    """With what probability a record of the rarest level joins a batch of training by sampling as published.

    A column of `columns` is drawn, then a level by log(1 + count), then one of its records: of a record that has the rarest
    level of every column, 1 - (1 - max_l P(l) / n_l)^B. An account that takes B / n for it under-reports.

    Parameters
    ----------
    counts : array of shape (levels,)
        Of one column, exact.
    """
    there = np.asarray(counts, float)[np.asarray(counts) > 0]
    mass = np.log1p(there) / np.log1p(there).sum()
    return float(1 - (1 - (mass / there).max() / columns) ** batch_size)


def refuse_packs(pac: int) -> None:
    """Refuse packs behind noise per record.

    Raises
    ------
    SettingsInvalid (HR-511)
    """
    if pac != 1:
        raise SettingsInvalid(
            f"pac={pac}: a record shares the gradient of each of its packs with {pac - 1} others, so a clip per pack bounds no "
            "record's part in a sum.",
            remedy="Take pac=1.",
        )


def planned(
    federation: Federation,
    epsilon: float | None,
    delta: float | None,
    *,
    counts: bool,
    rounds: int,
    sampling_rate: float,
    noise_at: Position,
    least: int,
    begins: bool,
) -> tuple[Federation, Federation]:
    """The federation as counts are asked, and as gradients are.

    Counts take a fifth of the budget's mu squared; gradients take the least noise with which everything together, by the
    tightest accountant, stays within the budget.

    Raises
    ------
    BudgetInvalid (HR-214), SlotFilled (HR-212), BudgetExhausted (HR-213)
        Before any party is asked.
    """
    plan = BudgetShares(epsilon, delta, noise_at, least)
    if epsilon is None:
        return federation, federation
    if not delta:
        raise BudgetInvalid(f"epsilon={epsilon:g} without a delta.", remedy="Give delta=1e-5: gradients take Gaussian noise.")
    plan.handles(federation, {"all": Share(1.0)}, begins=False)  # for its refusals
    bound = Clipping.of(1.0).bound
    for_counts = plan.noise(Share(COUNTS))
    asked_once = Counter({(Sampling(), (for_counts.event(bound),)): 1} if counts else {})

    def charges(multiplier: float) -> Counter[Charge]:
        event = Gaussian(multiplier, noise_at, least).event(bound)
        return asked_once + Counter({(Sampling("records", sampling_rate), (event,)): rounds})

    multiplier = UP * least_noise(charges, epsilon - ROOT, delta)
    ledger, limit = federation.ledger, federation.ledger.limit
    if begins and limit is not None and limit.unit == "record":
        before = [*ledger.others, *ledger.entries]
        if not limit.admits([*grouped(before, "record"), *charges(multiplier).elements()]):
            left = f"what {len(before)} earlier questions left of " if before else ""
            raise BudgetExhausted(
                f"{rounds + counts} questions that cost epsilon={epsilon:g} at delta={delta:g} would exceed "
                f"{left}the budget of {limit}.",
                remedy="Give a smaller epsilon, at the budget's delta.",
            )
    return federation.protect(mechanism=for_counts), federation.protect(mechanism=Gaussian(multiplier, noise_at, least))
