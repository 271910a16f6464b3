"""DP-CTGAN: CTGAN with a guarantee for each record, whose critic sees records by noisy sums alone.

    h        <- counts of bins and levels + noise                                          sum, once, a fifth of mu squared
    for t = 1, 2, ...:
        c      <- the next column with levels, in turn; m_i the level of record i there    public
        G      <- sum over sampled records  a_i grad log(1 + exp(-C(x_i, m_i))), clipped, + noise         sum
        critic <- Adam along G / B + mean over made-up rows of grad log(1 + exp(C(x~, m))), clipped alike
        every critic_steps: generator <- Adam down log(1 + exp(-C(x~, m))) + cross-entropy of the level   post-processing

Releases, unit : see `private`.
Source : Xu et al. 2019; Xie et al. 2018 (arXiv 1802.06739) for noise in the critic alone; Bie, Kamath & Zhang 2023 (TMLR) for
         many steps of the critic and no penalty. Differs from what is published as DP-CTGAN: pac is 1, levels are balanced by
         weights of records that join alike, and modes and counts are charged or public.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.data import Schema, complete_cases
from hedgerow.data.synthetic_table import Provenance
from hedgerow.display import displayed
from hedgerow.learn.records.clipped import clipped_sum
from hedgerow.learn.records.clipping import Clipping
from hedgerow.learn.records.dpsgd import GradientStep, protected, unclipped
from hedgerow.report import Outcome

from .adversarial import level_loss
from .ctgan import Ctgan
from .encoding import RowEncoding
from .modes import Modes, found_behind_noise, level_counts_of, modes_of, modes_table
from .networks import HIDDEN, NOISE, Generator, activated, begun, filled, mask_of
from .private import PrivateNetwork, as_setting, critic_of, network_gradients, planned, refuse_packs, rows_of, shares_of
from .settings import above, encoding_of, tiny, to_its_end


@displayed
@dataclass(frozen=True, eq=False)
class DpCtganState:
    """Generator and critic after a step of the critic.

    Attributes
    ----------
    generator, critic : arrays of shape (parameters,)
    remembered : dict of arrays
        Of Adam: `critic` and `generator`, of shape (2, parameters).
    modes : array of shape (numbers, n_modes, 3)
    counts : array of shape (levels of all columns,)
    """

    round: int
    generator: Array
    critic: Array
    remembered: Mapping[str, Array]
    modes: Array
    counts: Array


@program(
    "CTGAN with a guarantee for each record: its critic is trained by DP-SGD.",
    name="dp_ctgan",
    outcome=lambda federation, settings, state: outcome(federation, settings, state),
    synthesizer=lambda settings, arrays, schema, about: synthesizer(settings, arrays, schema, about),
    case=lambda: tiny(rounds=3, steps=None, batch_size=40.0, sampling_rate=0.5, hidden=8, critic_steps=1),
)
def dp_ctgan_rounds(
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
    pac: int = 1,
    learning_rate: float = 1e-3,
    critic_steps: int = 4,
    made: int = 200,
    hidden: int = HIDDEN,
    n_modes: int = 10,
    modes: Modes = "mixture",
    balanced: bool = False,
    columns: Sequence[str] | None = None,
    seed: int = 0,
    start: DpCtganState | None = None,
) -> Iterator[DpCtganState]:
    """Train CTGAN with noisy sums of clipped gradients of records.

    Parameters
    ----------
    rounds : int
        Steps of the critic in all, those before `start` included.
    sampling_rate : float
        Each record joins a step by itself with this probability: that is charged.
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
    pac : int
        Always 1: records in packs have no gradient of their own.
    learning_rate : float
        Of both networks.
    critic_steps : int
        Of the critic for each of the generator.
    made : int
        Made-up rows of a step.
    hidden : int
        Units of each hidden layer.
    n_modes : int
        Of a number, at most.
    modes : {"mixture", "equal"}
        From noisy counts, which are charged, or public ones of equal widths.
    balanced : bool
        Whether records count by log(1 + count) / count of their level, from noisy counts, the rarest one; otherwise all count
        alike. Balance costs: the rate that is charged is that of the rarest level, and others count less beside the same noise.
    columns : sequence of str, optional
        Columns to make up; by default all but those of an id, weights, offsets and what is ignored.
    seed : int
        Of the initial weights.
    start : DpCtganState, optional
        Continue after this state.

    Yields
    ------
    DpCtganState
        After each step of the critic.

    Raises
    ------
    SettingsInvalid (HR-511), SchemaInvalid (HR-409), UnlawfulChannel (HR-211), BudgetInvalid (HR-214), SlotFilled (HR-212)
        Before any party is asked.
    """
    above(rounds=rounds, sampling_rate=float(sampling_rate), batch_size=float(batch_size), hidden=hidden, made=made)
    above(critic_steps=critic_steps, learning_rate=learning_rate)
    refuse_packs(pac)
    unclipped(federation)
    step = GradientStep("adam", learning_rate, momentum=0.5, second_decay=0.9)
    step.check()
    encoding, clipping = encoding_of(federation.schema, columns, n_modes), Clipping.of(clip)
    needs = bool(encoding.discrete) or (modes == "mixture" and bool(encoding.numbers))
    for_counts, for_steps = planned(
        complete_cases(federation, [], count=False),
        epsilon,
        delta,
        counts=needs,
        rounds=rounds,
        sampling_rate=sampling_rate,
        noise_at=noise_at,
        least=least,
        begins=start is None,
    )
    network = PrivateNetwork(encoding, "critic", hidden)
    state = start or _begun(for_counts, encoding, modes, hidden, seed, needs)
    ask = partial(network_gradients, network=network, clipping=clipping)
    bound = clipping.bound if protected(for_steps) else None
    for t in range(state.round, rounds):
        place = t % len(encoding.discrete) if encoding.discrete else None
        shares, mass = _balance(encoding, state.counts, place, balanced)
        told = {"modes": as_setting(state.modes), "critic": True, "place": place, "shares": tuple(shares.tolist())}
        ready = for_steps.prepare(rows_of, encoding=encoding, **told)
        total: Any = ready.sample(records=sampling_rate).sum(ask, state.critic, bound=bound)["gradient"]
        draws = torch.Generator().manual_seed(int(federation.stream(t + 1, "made-up rows").integers(2**62)))
        real = total / (batch_size * float(shares @ mass if place is None else shares @ _true(encoding, state.counts, place)))
        yield (state := _step(state, real, encoding, network, clipping, step, place, mass, made, draws, critic_steps))


def _begun(federation: Federation, encoding: RowEncoding, modes: Modes, hidden: int, seed: int, needs: bool) -> DpCtganState:
    counts = found_behind_noise(federation, encoding) if needs else None
    generator, critic = begun(Generator, seed, encoding, hidden), begun(critic_of, seed, encoding, hidden)
    remembered = {"critic": np.zeros((2, len(critic)), np.float32), "generator": np.zeros((2, len(generator)), np.float32)}
    own = modes_of(encoding, counts if modes == "mixture" else None)
    return DpCtganState(0, generator, critic, remembered, own, level_counts_of(encoding, counts))


def _true(encoding: RowEncoding, counts: Array, place: int) -> Array:
    """Part of the records that have each level."""
    own = counts[encoding.discrete[place].levels]
    found: Array = own / own.sum()
    return found


def _balance(encoding: RowEncoding, counts: Array, place: int | None, balanced: bool) -> tuple[Array, Array]:
    """What records count by their level, and how often levels are then met, which made-up rows follow."""
    if place is None:
        return np.ones(1), np.ones(1)
    own = counts[encoding.discrete[place].levels]
    shares = shares_of(own, balanced)
    mass = own * shares
    return shares, mass / mass.sum()


def _step(
    state: DpCtganState,
    real: Array,
    encoding: RowEncoding,
    network: PrivateNetwork,
    clipping: Clipping,
    step: GradientStep,
    place: int | None,
    mass: Array,
    made: int,
    draws: torch.Generator,
    critic_steps: int,
) -> DpCtganState:
    """A step of the critic, and of the generator when it is its turn: post-processing of a noisy sum."""
    net: Any = filled(Generator(encoding, network.hidden), state.generator)
    mask, t, model = mask_of(encoding, state.modes), state.round + 1, network.way.trained.model

    def rows() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        m = torch.zeros(made, encoding.conditions)
        if place is not None:
            level = torch.multinomial(torch.from_numpy(mass), made, replacement=True, generator=draws)
            m[torch.arange(made), encoding.discrete[place].condition + level] = 1.0
        out = net(torch.cat([torch.randn(made, NOISE, generator=draws), m], 1)) + mask
        return out, m, torch.cat([activated(encoding, out, draws), m], 1)

    with torch.no_grad():
        fake = rows()[2]
    flat = torch.from_numpy(state.critic)
    own, _ = clipped_sum(model, flat, fake, torch.zeros(made), torch.ones(made), clipping, exact=False)
    slope = (real + own.numpy() / made).astype(np.float32)
    critic, *kept = step(state.critic, slope, *state.remembered["critic"], t, t - 1)
    state = replace(state, round=t, critic=critic, remembered=dict(state.remembered) | {"critic": np.stack(kept)})
    if t % critic_steps:
        return state
    out, m, fake = rows()
    scores = model.outputs(torch.from_numpy(critic), fake)[:, 0]
    loss = F.softplus(-scores).mean() + level_loss(encoding, out, m)
    slopes = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, list(net.parameters()))]).numpy()
    k = t // critic_steps
    generator, *kept = step(state.generator, slopes, *state.remembered["generator"], k, k - 1)
    return replace(state, generator=generator, remembered=dict(state.remembered) | {"generator": np.stack(kept)})


def outcome(federation: Federation, settings: Mapping[str, Any], state: DpCtganState) -> Outcome:
    """The modes that were found, and the arrays that records are drawn from."""
    encoding = encoding_of(federation.schema, settings["columns"], settings["n_modes"])
    return Outcome(tables={"Modes of numbers": modes_table(encoding, state.modes)}, arrays=arrays_of(state))


def arrays_of(state: DpCtganState) -> dict[str, Array]:
    """The generator's weights, the modes and the counts of levels."""
    return {"generator": state.generator, "modes": state.modes, "counts": state.counts}


def synthesizer(settings: Mapping[str, Any], arrays: Mapping[str, Array], schema: Schema, about: Provenance) -> Ctgan:
    """What records are drawn from, of the arrays of an outcome."""
    encoding = encoding_of(schema, settings["columns"], settings["n_modes"])
    own = (arrays[name] for name in ("modes", "counts", "generator"))
    return Ctgan(encoding.codes, about, encoding, *own, settings["hidden"])


def dp_ctgan(federation: Federation, **settings: Any) -> Ctgan:
    """Train CTGAN with a guarantee for each record, to its end.

    Parameters
    ----------
    **settings
        As `dp_ctgan_rounds` explains them: `rounds`, `sampling_rate`, `batch_size`, `epsilon`, `delta`, `noise_at`,
        `least`, `clip`, `pac`, `learning_rate`, `critic_steps`, `made`, `hidden`, `n_modes`, `modes`, `balanced`,
        `columns`, `seed`.
        With `start` no epsilon is claimed: its state may hold sums that this ledger does not.

    Returns
    -------
    Ctgan
        With `sample(1000, where={"sex": "Female"})`.
    """
    state, full, about = to_its_end(dp_ctgan_rounds, federation, settings, "dp_ctgan")
    return synthesizer(full, arrays_of(state), federation.schema, about)
