"""TVAE over a federation: an auto-encoder of records with a normal law inside, by federated averaging.

    encoder    two layers of ReLU;  mu, log sigma of z                     decoder   two layers of ReLU;  alpha', logits
    loss       sum over numbers -log N(alpha; tanh(alpha'), delta^2)
               + sum over one-hot parts -log softmax(logits)[what is there]  + KL(N(mu, sigma^2), N(0, I))
    draw       z ~ N(0, I);  alpha ~ N(tanh(alpha'), delta^2);  one-hot parts by softmax

    repeat rounds times:   w <- w + sum_k n_k (w_k - w) / sum_k n_k, w_k after steps of Adam on party k's records

Releases, state, unit : as `ctgan`.
Source : Xu, Skoularidou, Cuesta-Infante & Veeramachaneni, NeurIPS 2019, section 4.5; McMahan et al. 2017, Algorithm 1.
         Differs: modes from a histogram; Adam begins anew each round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local, minds_missing, travels
from hedgerow.data import Schema, complete_cases
from hedgerow.data.synthetic_table import Provenance
from hedgerow.display import displayed
from hedgerow.learn.settings import Weighting
from hedgerow.learn.training import mean_of, weighting_of
from hedgerow.learn.weighting import weighed
from hedgerow.report import Outcome

from ..conditions import Conditions
from .adversarial import own_rows
from .encoding import RowEncoding
from .made import NetworkSynthesizer
from .modes import Modes, asked_counts, modes_of, modes_table
from .networks import begun, filled, flat, gumbel, mask_of
from .settings import above, encoding_of, refuse_counts, refuse_promise, tiny, to_its_end

HIDDEN, LATENT = 128, 16
"""The paper has 128 of both; Sempere's table and iris came back worse so in as many steps."""
NARROW, WIDEST = 0.01, 1.0
"""Deviations delta of alpha lie between these."""


class Decoder(nn.Module):
    """z to the outputs of a row, and the deviations of its alphas."""

    def __init__(self, encoding: RowEncoding, hidden: int = HIDDEN, latent: int = LATENT) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(latent, hidden), nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, encoding.width)
        self.log_delta = nn.Parameter(torch.full((len(encoding.numbers),), -2.0))

    def forward(self, z: Tensor) -> Tensor:
        """Outputs of shape (n, width)."""
        out: Tensor = self.last(torch.relu(self.second(torch.relu(self.first(z)))))
        return out

    @property
    def delta(self) -> Tensor:
        """Deviations of alphas, one for each number."""
        return self.log_delta.exp().clamp(NARROW, WIDEST)


class Autoencoder(nn.Module):
    """Encoder and decoder."""

    def __init__(self, encoding: RowEncoding, hidden: int = HIDDEN, latent: int = LATENT) -> None:
        super().__init__()
        self.encoding, self.latent = encoding, latent
        self.first, self.second = nn.Linear(encoding.width, hidden), nn.Linear(hidden, hidden)
        self.middle = nn.Linear(hidden, 2 * latent)
        self.decoder = Decoder(encoding, hidden, latent)

    def losses(self, rows: Tensor, mask: Tensor, draws: torch.Generator) -> Tensor:
        """What each row loses, (n,), with one draw of z each."""
        mu, log_sigma = self.middle(torch.relu(self.second(torch.relu(self.first(rows))))).split(self.latent, 1)
        log_sigma = log_sigma.clamp(-8.0, 4.0)
        z = mu + log_sigma.exp() * torch.randn(mu.shape, generator=draws)
        divergence = 0.5 * (mu**2 + (2 * log_sigma).exp() - 1 - 2 * log_sigma).sum(1)
        return reconstruction(self.encoding, self.decoder(z) + mask, rows, self.decoder.delta) + divergence


def reconstruction(encoding: RowEncoding, out: Tensor, rows: Tensor, delta: Tensor) -> Tensor:
    """-log of the probability of rows (n, width) under outputs of the same shape, but for a constant: (n,)."""
    total = torch.zeros(len(out))
    for block in encoding.blocks:
        if block.mode >= 0:
            there = rows[:, block.start : block.start + encoding.n_modes].sum(1)  # not where a value is missing
            z = (rows[:, block.alpha] - torch.tanh(out[:, block.alpha])) / delta[block.mode]
            total = total + there * (0.5 * z * z + delta[block.mode].log())
        total = total - (F.log_softmax(out[:, block.hot], 1) * rows[:, block.hot]).sum(1)
    return total


@travels
@dataclass(frozen=True)
class TvaePlan:
    """A party's steps in a round; see `hedgerow.synth.tvae`."""

    steps: int
    batch_size: int
    learning_rate: float
    hidden: int = HIDDEN
    latent: int = LATENT


@minds_missing
@local()
def train_tvae(
    broadcast: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    encoding: RowEncoding,
    plan: TvaePlan,
    weighting: Weighting,
    largest_weight: float | None = None,
) -> Mapping[str, Array]:
    """Train a network that describes records in few numbers and makes them up from these; return by how much it has changed.

    From the broadcast weights; their weighted change as `update`.
    """
    before = broadcast["weights"]
    rows, _ = own_rows(encoding, party, broadcast["modes"], rng)
    after = before
    if len(rows):
        net: Any = filled(Autoencoder(encoding, plan.hidden, plan.latent), before)
        draws = torch.Generator().manual_seed(int(rng.integers(2**62)))
        records, mask = torch.from_numpy(rows), mask_of(encoding, broadcast["modes"])
        adam = torch.optim.Adam(net.parameters(), plan.learning_rate)
        for _ in range(plan.steps):
            some = torch.randint(len(records), (plan.batch_size,), generator=draws)
            adam.zero_grad()
            net.losses(records[some], mask, draws).mean().backward()
            adam.step()
        after = flat(net)
    return weighed(party, weighting, largest_weight, update=after - before)


@displayed
@dataclass(frozen=True, eq=False)
class TvaeState:
    """An auto-encoder after a round.

    Attributes
    ----------
    weights : array of shape (parameters,)
        Of encoder and decoder.
    modes : array of shape (numbers, n_modes, 3)
        Weight, mean and deviation.
    """

    round: int
    weights: Array
    modes: Array


@dataclass(frozen=True, eq=False, repr=False)
class Tvae(NetworkSynthesizer):
    """Records of a decoder.

    Attributes
    ----------
    decoder : array of shape (parameters,)
    hidden, latent : int
    """

    decoder: Array
    hidden: int = HIDDEN
    latent: int = LATENT

    def outputs(self, rows: int, conditions: Conditions, rng: np.random.Generator) -> Array:
        """Return rows as `RowEncoding.decode` reads them; conditions are left to drawing again."""
        net: Any = filled(Decoder(self.encoding, self.hidden, self.latent), self.decoder)
        draws = torch.Generator().manual_seed(int(rng.integers(2**62)))
        with torch.no_grad():
            out = net(torch.randn(rows, self.latent, generator=draws)) + mask_of(self.encoding, self.modes)
            found = out + gumbel(out.shape, draws)
            for block in self.encoding.numbers:
                spread = net.delta[block.mode] * torch.randn(rows, generator=draws)
                found[:, block.alpha] = (torch.tanh(out[:, block.alpha]) + spread).clamp(-1.0, 1.0)
        drawn: Array = found.numpy()
        return drawn


@program(
    "TVAE (Xu et al. 2019): an auto-encoder that makes up records, by federated averaging.",
    name="tvae",
    outcome=lambda federation, settings, state: outcome(federation, settings, state),
    synthesizer=lambda settings, arrays, schema, about: synthesizer(settings, arrays, schema, about),
    case=lambda: tiny(hidden=8, latent=4),
)
def tvae_rounds(
    federation: Federation,
    *,
    rounds: int = 20,
    steps: int = 100,
    batch_size: int = 200,
    learning_rate: float = 1e-3,
    hidden: int = HIDDEN,
    latent: int = LATENT,
    n_modes: int = 10,
    modes: Modes = "mixture",
    columns: Sequence[str] | None = None,
    weighting: Weighting | None = None,
    rate: float | None = None,
    seed: int = 0,
    start: TvaeState | None = None,
) -> Iterator[TvaeState]:
    """Train TVAE by federated averaging.

    Parameters
    ----------
    rounds : int
        In all, those before `start` included.
    steps, batch_size : int
        Of each party in a round, and records of a step.
    learning_rate : float
        Of Adam.
    hidden, latent : int
        Units of each hidden layer, and length of z.
    n_modes : int
        Of a number, at most.
    modes : {"mixture", "equal"}
        From a histogram that is asked, or public ones of equal widths.
    columns : sequence of str, optional
        Columns to make up; by default all but those of an id, weights, offsets and what is ignored.
    weighting : {"records", "uniform", "expected"}, optional
        How parties count; as `hedgerow.learn.fedavg`.
    rate : float, optional
        Each party joins a round with this probability.
    seed : int
        Of the initial weights.
    start : TvaeState, optional
        Continue after this state.

    Yields
    ------
    TvaeState
        After each round.

    Raises
    ------
    SettingsInvalid (HR-511), SchemaInvalid (HR-409), MissingColumn (HR-403)
        Before any party is asked.
    """
    above(rounds=rounds, steps=steps, batch_size=batch_size, hidden=hidden, latent=latent, learning_rate=learning_rate)
    weighting = weighting_of(weighting, federation, ("records", "uniform", "expected"))
    encoding = encoding_of(federation.schema, columns, n_modes)
    federation = complete_cases(federation, [], count=False)
    state = start
    if state is None:
        wanted = modes == "mixture" and bool(encoding.numbers)
        if wanted:
            refuse_counts(federation, "Take modes='equal', which asks nothing.")
        counts = asked_counts(federation, encoding) if wanted else None
        state = TvaeState(0, begun(Autoencoder, seed, encoding, hidden, latent), modes_of(encoding, counts))
    plan = TvaePlan(steps, batch_size, learning_rate, hidden, latent)
    ask = partial(train_tvae, encoding=encoding, plan=plan, weighting=weighting)
    for t in range(state.round, rounds):
        cohort = federation if rate is None else federation.sample(rate=rate)
        told = {"weights": state.weights, "modes": state.modes}
        state = TvaeState(t + 1, state.weights + mean_of(cohort.sum(ask, told), cohort), state.modes)
        yield state


def outcome(federation: Federation, settings: Mapping[str, Any], state: TvaeState) -> Outcome:
    """The modes that were found, and the arrays that records are drawn from."""
    encoding = encoding_of(federation.schema, settings["columns"], settings["n_modes"])
    return Outcome(tables={"Modes of numbers": modes_table(encoding, state.modes)}, arrays=arrays_of(encoding, settings, state))


def arrays_of(encoding: RowEncoding, settings: Mapping[str, Any], state: TvaeState) -> dict[str, Array]:
    """The decoder's weights and the modes."""
    net: Any = filled(Autoencoder(encoding, settings["hidden"], settings["latent"]), state.weights)
    return {"decoder": flat(net.decoder), "modes": state.modes}


def synthesizer(settings: Mapping[str, Any], arrays: Mapping[str, Array], schema: Schema, about: Provenance) -> Tvae:
    """What records are drawn from, of the arrays of an outcome."""
    encoding = encoding_of(schema, settings["columns"], settings["n_modes"])
    sizes = settings["hidden"], settings["latent"]
    return Tvae(encoding.codes, about, encoding, arrays["modes"], arrays["decoder"], *sizes)


def tvae(federation: Federation, **settings: Any) -> Tvae:
    """Train TVAE to its end.

    Parameters
    ----------
    **settings
        As `tvae_rounds` explains them: `rounds`, `steps`, `batch_size`, `learning_rate`, `hidden`, `latent`, `n_modes`,
        `modes`, `columns`, `weighting`, `rate`, `seed`.
        With `start` no epsilon is claimed: its state may hold sums that this ledger does not.

    Returns
    -------
    Tvae
        With `sample(1000, where={"sex": "Female"})`.

    Raises
    ------
    ArgumentInvalid (HR-107), BudgetExhausted (HR-213)
        An epsilon is named, or the federation has a budget: nothing here has noise; `dp_tvae` has.
    """
    refuse_promise("tvae", federation, settings)
    state, full, about = to_its_end(tvae_rounds, federation, settings, "tvae")
    encoding = encoding_of(federation.schema, full["columns"], full["n_modes"])
    return synthesizer(full, arrays_of(encoding, full, state), federation.schema, about)
