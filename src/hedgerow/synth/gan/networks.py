"""Generator and critic of CTGAN, and their weights as flat vectors.

    generator   h0 = z + m;  h1 = h0 + ReLU(BN(FC(h0)));  h2 = h1 + ReLU(BN(FC(h1)))       + : side by side
                alpha = tanh(FC(h2));  beta, levels = gumbel_0.2(FC (h2))
    critic      h0 = rows and conditions of a pack;  twice drop_0.5(leaky_0.2(FC));  FC to one number

The generator reads noise and conditions and no record, so batch normalisation in it mixes none. When records are drawn its
statistics are those of one batch of draws, found at the server, so no running statistics are kept or sent.

Source : Xu et al. 2019, section 4.4.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hedgerow.core.arrays import Array

from .encoding import RowEncoding

NOISE = 128
"""Length of z."""
HIDDEN = 128
"""Units of a hidden layer; the paper has 256."""
TEMPERATURE = 0.2
"""Of the Gumbel softmax."""
SLOPE, DROPPED = 0.2, 0.5
NEVER = -1e9
"""In the place of the logit of a mode without weight."""


class Generator(nn.Module):
    """Noise and conditions to the outputs of a row, before tanh and softmax."""

    def __init__(self, encoding: RowEncoding, hidden: int = HIDDEN, noise: int = NOISE) -> None:
        super().__init__()
        d = noise + encoding.conditions
        self.first, self.second = nn.Linear(d, hidden), nn.Linear(d + hidden, hidden)
        self.norms = nn.ModuleList([nn.BatchNorm1d(hidden, track_running_stats=False) for _ in range(2)])
        self.last = nn.Linear(d + 2 * hidden, encoding.width)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of shape (n, width) of inputs (n, noise + conditions)."""
        x = torch.cat([x, torch.relu(self.norms[0](self.first(x)))], 1)
        x = torch.cat([x, torch.relu(self.norms[1](self.second(x)))], 1)
        out: Tensor = self.last(x)
        return out


class Critic(nn.Module):
    """A score of packs of rows with their conditions."""

    def __init__(self, encoding: RowEncoding, hidden: int = HIDDEN, pac: int = 10) -> None:
        super().__init__()
        self.pac = pac
        self.first, self.second = nn.Linear(pac * (encoding.width + encoding.conditions), hidden), nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, 1)

    def forward(self, packs: Tensor, draws: torch.Generator | None = None) -> Tensor:
        """Scores (packs,) of packs (packs, pac (width + conditions)); with `draws` hidden units are dropped."""
        for layer in (self.first, self.second):
            packs = F.leaky_relu(layer(packs), SLOPE)
            if draws is not None:
                packs = packs * ((torch.rand(packs.shape, generator=draws) >= DROPPED) / (1 - DROPPED))
        out: Tensor = self.last(packs)[:, 0]
        return out


def flat(module: nn.Module) -> Array:
    """All parameters side by side, float32."""
    found: Array = torch.cat([p.detach().reshape(-1) for p in module.parameters()]).numpy().copy()
    return found


def filled(module: nn.Module, weights: Array) -> nn.Module:
    """The module with these parameters."""
    nn.utils.vector_to_parameters(torch.from_numpy(np.array(weights, np.float32)), module.parameters())
    return module


def begun(make: Callable[..., nn.Module], seed: int, *sizes: object, **more: object) -> Array:
    """First weights by a public seed; torch's own generator stays as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return flat(make(*sizes, **more))


def gumbel(shape: torch.Size, draws: torch.Generator) -> Tensor:
    """Standard Gumbel draws."""
    return -torch.log(torch.empty(shape).exponential_(generator=draws))


def mask_of(encoding: RowEncoding, modes: Array) -> Tensor:
    """What is added to the outputs of a row: `NEVER` at modes without weight."""
    found = torch.zeros(encoding.width)
    for block in encoding.numbers:
        unused = torch.from_numpy(modes[block.mode][:, 0] <= 0)
        found[block.start : block.start + encoding.n_modes][unused] = NEVER
    return found


def activated(encoding: RowEncoding, out: Tensor, draws: torch.Generator) -> Tensor:
    """Rows of outputs: alpha by tanh, one-hot parts by the Gumbel softmax, so that the largest is drawn by softmax."""
    parts = []
    noisy = (out + gumbel(out.shape, draws)) / TEMPERATURE
    for block in encoding.blocks:
        if block.mode >= 0:
            parts.append(torch.tanh(out[:, block.alpha : block.start]))
        parts.append(torch.softmax(noisy[:, block.hot], 1))
    return torch.cat(parts, 1)
