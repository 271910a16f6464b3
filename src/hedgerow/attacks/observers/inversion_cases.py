"""What the study of gradient inversion tries: sums of some records, protected in some way, and an attack on each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import nn

from hedgerow.crypto.secagg.settings import FLOOR
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.made import leaves_note

from .inversion import Way

Net = Literal["regression", "network"]


@dataclass(frozen=True)
class InversionCase:
    """An attack on a sum of records' gradients.

    Attributes
    ----------
    net : {"regression", "network"}
        Softmax regression at zero weights, or a sigmoid network at wide initial weights.
    by : str
        As of `invert`.
    records : int
        In the sum.
    hidden : bool
        Whether the sum goes through SecAgg, each record at a party of its own.
    noise : float or None
        Noise multiplier at the party, after the clip.
    told : bool
        Whether the attacker is told the labels; otherwise it infers them.
    alone : bool
        Whether it searches for one record of the sum only, and takes the others for nothing.
    """

    net: Net
    by: Way
    records: int = 1
    hidden: bool = False
    noise: float | None = None
    told: bool = False
    alone: bool = False

    @property
    def attack(self) -> str:
        """In words."""
        words = {"one": "first layer", "rows": "first layer, one unit", "classes": "first layer, by class", "cosine": "search"}
        return words[self.by] + (" for one record" if self.alone else "")

    @property
    def seen(self) -> str:
        """What the server saw, in words."""
        model = "softmax regression" if self.net == "regression" else "sigmoid network"
        how = "secure sum" if self.hidden else "sum" if self.records > 1 else "gradient"
        return f"{how}, {model}" + ("" if self.noise is None else f", clip and noise {self.noise:g}")

    @property
    def pictures(self) -> int:
        """Pictures that it makes at most."""
        return 1 if self.by in ("one", "rows") or self.alone else self.records


def places_of(cases: list[InversionCase], targets: int, searches: int) -> list[list[slice]]:
    """Where the pictures of each case and target are, among those of all."""
    found, start = list[list[slice]](), 0
    for case in cases:
        own = []
        for _ in range(searches if case.by == "cosine" else targets):
            own.append(slice(start, start + case.pictures))
            start += case.pictures
        found.append(own)
    return found


def cases_of(
    batches: list[int], noise: list[float], searched: list[int], search_noise: list[float], group: int
) -> list[InversionCase]:
    """The cases of a study, in the order of its table.

    Raises
    ------
    SettingsInvalid (HR-511)
        A count below one, a secure sum of fewer than three, or a noise multiplier that is not finite and above zero.
    """
    lawful = all(0 < z < math.inf for z in (*noise, *search_noise))
    if min([*batches, *searched, group], default=1) < 1 or group < FLOOR or not lawful:
        raise SettingsInvalid(
            f"batches={batches}, searched={searched}, group={group}, noise={noise}, search_noise={search_noise}.",
            remedy=f"Counts are at least one, a secure sum has {FLOOR} parties or more, multipliers are finite and above zero.",
        )
    layer = [InversionCase("regression", "one" if n == 1 else "rows", n) for n in batches]
    layer += [InversionCase("regression", "classes", n) for n in batches if 1 < n <= 16]
    layer += [InversionCase("regression", "classes", group, hidden=True)]
    layer += [InversionCase("regression", "one", noise=z) for z in noise]
    search = [InversionCase("network", "cosine", n, told=n > 1) for n in searched]
    search += [InversionCase("network", "cosine", group, hidden=True, told=told) for told in (True, False)]
    search += [InversionCase("network", "cosine", group, hidden=True, told=True, alone=True)]
    return layer + search + [InversionCase("network", "cosine", noise=z) for z in search_noise]


@leaves_note
def sigmoid_net(n_inputs: int, hidden: list[int], n_outputs: int, *, seed: int = 0, spread: float = 0.1) -> nn.Module:
    """Fully connected layers with sigmoids between them, and wide normal initial weights, as inversion is usually shown with.

    The first layer's weights and all biases have the standard deviation `spread`, later weights three times that; PyTorch's own
    initial weights are narrower, and half as many records of a batch come back from them.
    """
    widths = [n_inputs, *hidden, n_outputs]
    layers: list[nn.Module] = [nn.Flatten()]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for k, (inputs, outputs) in enumerate(pairwise(widths)):
            layer = nn.Linear(inputs, outputs)
            nn.init.normal_(layer.weight, std=spread if k == 0 else 3 * spread)
            nn.init.normal_(layer.bias, std=spread)
            layers += [layer, nn.Sigmoid()]
    return nn.Sequential(*layers[:-1])
