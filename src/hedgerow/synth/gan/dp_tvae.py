"""DP-TVAE: an auto-encoder of records with a guarantee for each record, by DP-SGD.

    h    <- counts of bins and levels + noise                                            sum, once, a fifth of mu squared
    for t = 1, 2, ...:
        e      ~ N(0, 1 / 4 I), drawn by the server; b <- b + e                          added to the bias of mu
        G      <- sum over sampled records  grad (-log p(x_i; decoder(z_i)) + |z_i|^2 / 2), clipped, + noise;  z_i = mu(x_i) + e
        w      <- Adam along G / B                                                       post-processing
    draw       z ~ N(0, I), as TVAE

The law of z given x has one public deviation, 1/2, and all records of a step have the same draw of it, so that a gradient is a
function of the weights and of one record. The mean of |z|^2 / 2 over e is the divergence from N(0, I), but for a constant.
Deviations of alpha are public, too. One network sees records, once each step: no packs, no conditions, nothing to balance.

Releases, unit : see `private`.
Source : Xu et al. 2019, section 4.5; Kingma & Welling 2014; Abadi et al., CCS 2016, Algorithm 1. Differs: as said above.
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
from hedgerow.core.mechanism import Position
from hedgerow.data import Schema, complete_cases
from hedgerow.data.synthetic_table import Provenance
from hedgerow.display import displayed
from hedgerow.learn.records.clipping import Clipping
from hedgerow.learn.records.dpsgd import GradientStep, protected, unclipped
from hedgerow.report import Outcome

from ..conditions import Conditions
from .encoding import RowEncoding
from .made import NetworkSynthesizer
from .modes import Modes, found_behind_noise, modes_of, modes_table
from .networks import begun, filled, gumbel, mask_of
from .private import DELTA, PlainAutoencoder, PrivateNetwork, as_setting, network_gradients, planned, rows_of
from .settings import above, encoding_of, tiny, to_its_end

SPREAD = 0.5
"""Deviation of z given a record."""
HIDDEN, LATENT = 64, 8


@displayed
@dataclass(frozen=True, eq=False)
class DpTvaeState:
    """An auto-encoder after a step.

    Attributes
    ----------
    weights : array of shape (parameters,)
        Of encoder and decoder.
    first, second : arrays of shape (parameters,)
        What Adam remembers.
    modes : array of shape (numbers, n_modes, 3)
    """

    round: int
    weights: Array
    first: Array
    second: Array
    modes: Array


@dataclass(frozen=True, eq=False, repr=False)
class DpTvae(NetworkSynthesizer):
    """Records of a private decoder.

    Attributes
    ----------
    weights : array of shape (parameters,)
        Of encoder and decoder.
    hidden, latent : int
    """

    weights: Array
    hidden: int = HIDDEN
    latent: int = LATENT

    def outputs(self, rows: int, conditions: Conditions, rng: np.random.Generator) -> Array:
        """Return rows as `RowEncoding.decode` reads them; conditions are left to drawing again."""
        net = weighted(self.encoding, self.hidden, self.latent, self.weights)
        draws = torch.Generator().manual_seed(int(rng.integers(2**62)))
        with torch.no_grad():
            out = net.decoder(torch.randn(rows, self.latent, generator=draws)) + mask_of(self.encoding, self.modes)
            found = out + gumbel(out.shape, draws)
            for block in self.encoding.numbers:
                spread = DELTA * torch.randn(rows, generator=draws)
                found[:, block.alpha] = (torch.tanh(out[:, block.alpha]) + spread).clamp(-1.0, 1.0)
        drawn: Array = found.numpy()
        return drawn


def weighted(encoding: RowEncoding, hidden: int, latent: int, weights: Array) -> Any:
    """The auto-encoder with these trained parameters."""
    net = PlainAutoencoder(encoding, hidden, latent)
    for part, value in zip(_trained(net), np.split(weights, np.cumsum([p.numel() for p in _trained(net)])[:-1]), strict=True):
        part.data = torch.from_numpy(np.array(value, np.float32)).view(part.shape)
    return net


def _trained(net: torch.nn.Module) -> list[torch.nn.Parameter]:
    return [value for value in net.parameters() if value.requires_grad]


@program(
    "TVAE with a guarantee for each record: its auto-encoder is trained by DP-SGD.",
    name="dp_tvae",
    outcome=lambda federation, settings, state: outcome(federation, settings, state),
    synthesizer=lambda settings, arrays, schema, about: synthesizer(settings, arrays, schema, about),
    case=lambda: tiny(rounds=3, steps=None, batch_size=40.0, sampling_rate=0.5, hidden=6, latent=2),
)
def dp_tvae_rounds(
    federation: Federation,
    *,
    rounds: int = 400,
    sampling_rate: float = 0.05,
    batch_size: float = 200.0,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    clip: float = 1.0,
    learning_rate: float = 5e-3,
    hidden: int = HIDDEN,
    latent: int = LATENT,
    n_modes: int = 10,
    modes: Modes = "mixture",
    columns: Sequence[str] | None = None,
    seed: int = 0,
    start: DpTvaeState | None = None,
) -> Iterator[DpTvaeState]:
    """Train an auto-encoder of records with noisy sums of clipped gradients.

    Parameters
    ----------
    rounds : int
        Steps in all, those before `start` included.
    sampling_rate : float
        Each record joins a step by itself with this probability.
    batch_size : float
        What a sum of gradients is divided by: public, such as the expected number of records in a step.
    epsilon, delta : float, optional
        A budget for everything: a fifth of mu squared for counts, all that is left for gradients. Without it the channel's
        noise is used.
    noise_at : {"server", "aggregators", "shares", "party"}
        Who adds the noise of that budget.
    least : int
        For shares: as many parties' shares make the whole noise.
    clip : float
        Largest length of a record's gradient.
    learning_rate : float
        Of Adam.
    hidden, latent : int
        Units of a hidden layer, and length of z.
    n_modes : int
        Of a number, at most.
    modes : {"mixture", "equal"}
        From noisy counts, which are charged, or public ones of equal widths, which ask nothing.
    columns : sequence of str, optional
        Columns to make up; by default all but those of an id, weights, offsets and what is ignored.
    seed : int
        Of the initial weights.
    start : DpTvaeState, optional
        Continue after this state.

    Yields
    ------
    DpTvaeState
        After each step.

    Raises
    ------
    SettingsInvalid (HR-511), SchemaInvalid (HR-409), UnlawfulChannel (HR-211), BudgetInvalid (HR-214), SlotFilled (HR-212)
        Before any party is asked.
    """
    above(rounds=rounds, sampling_rate=float(sampling_rate), batch_size=float(batch_size), hidden=hidden, latent=latent)
    unclipped(federation)
    step = GradientStep("adam", learning_rate)
    step.check()
    encoding, clipping = encoding_of(federation.schema, columns, n_modes), Clipping.of(clip)
    needs = modes == "mixture" and bool(encoding.numbers)
    how = {"rounds": rounds, "sampling_rate": sampling_rate, "noise_at": noise_at, "least": least, "begins": start is None}
    asked = complete_cases(federation, [], count=False)
    for_counts, for_steps = planned(asked, epsilon, delta, counts=needs, **how)
    network = PrivateNetwork(encoding, "autoencoder", hidden, latent)
    if start is None:
        counts = found_behind_noise(for_counts, encoding) if needs else None
        weights = _first(encoding, hidden, latent, seed)
        start = DpTvaeState(0, weights, *np.zeros((2, len(weights)), np.float32), modes_of(encoding, counts))
    ask, bound, state = partial(network_gradients, network=network, clipping=clipping), clipping.bound, start
    told = {"modes": as_setting(state.modes), "critic": False, "place": None, "shares": ()}
    ready = for_steps.prepare(rows_of, encoding=encoding, **told)
    at = bias_of_mu(encoding, hidden, latent)
    for t in range(state.round, rounds):
        asked_at = state.weights.copy()
        asked_at[at] += SPREAD * federation.stream(t + 1, "noise inside").normal(size=latent).astype(np.float32)
        cohort = ready.sample(records=sampling_rate)
        total: Any = cohort.sum(ask, asked_at, bound=bound if protected(for_steps) else None)["gradient"]
        slope = (total / batch_size).astype(np.float32)
        state = DpTvaeState(t + 1, *step(state.weights, slope, state.first, state.second, t + 1, t), state.modes)
        yield state


def _first(encoding: RowEncoding, hidden: int, latent: int, seed: int) -> Array:
    """First weights that are trained."""
    net: Any = filled(PlainAutoencoder(encoding, hidden, latent), begun(PlainAutoencoder, seed, encoding, hidden, latent))
    found: Array = torch.cat([value.detach().reshape(-1) for value in _trained(net)]).numpy().copy()
    return found


def bias_of_mu(encoding: RowEncoding, hidden: int, latent: int) -> slice:
    """Where the bias of mu is among the trained parameters."""
    end = encoding.width * hidden + hidden + hidden * latent + latent
    return slice(end - latent, end)


def outcome(federation: Federation, settings: Mapping[str, Any], state: DpTvaeState) -> Outcome:
    """The modes that were found, and the arrays that records are drawn from."""
    encoding = encoding_of(federation.schema, settings["columns"], settings["n_modes"])
    return Outcome(tables={"Modes of numbers": modes_table(encoding, state.modes)}, arrays=arrays_of(state))


def arrays_of(state: DpTvaeState) -> dict[str, Array]:
    """The weights and the modes."""
    return {"weights": state.weights, "modes": state.modes}


def synthesizer(settings: Mapping[str, Any], arrays: Mapping[str, Array], schema: Schema, about: Provenance) -> DpTvae:
    """What records are drawn from, of the arrays of an outcome."""
    encoding = encoding_of(schema, settings["columns"], settings["n_modes"])
    sizes = settings["hidden"], settings["latent"]
    return DpTvae(encoding.codes, about, encoding, arrays["modes"], arrays["weights"], *sizes)


def dp_tvae(federation: Federation, **settings: Any) -> DpTvae:
    """Train TVAE with a guarantee for each record, to its end.

    Parameters
    ----------
    **settings
        As `dp_tvae_rounds` explains them: `rounds`, `sampling_rate`, `batch_size`, `epsilon`, `delta`, `noise_at`,
        `least`, `clip`, `learning_rate`, `hidden`, `latent`, `n_modes`, `modes`, `columns`, `seed`.
        With `start` no epsilon is claimed: its state may hold sums that this ledger does not.

    Returns
    -------
    DpTvae
        With `sample(1000, where={"sex": "Female"})`.
    """
    state, full, about = to_its_end(dp_tvae_rounds, federation, settings, "dp_tvae")
    return synthesizer(full, arrays_of(state), federation.schema, about)
