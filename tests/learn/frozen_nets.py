"""Two networks that compute the same: the first layer of one has parameters that are not trained, that of the other none."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hedgerow.learn.made import leaves_note

HIDDEN, SEED = 16, 3


class Given(nn.Module):
    """A linear layer of two buffers."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.register_buffer("w", layer.weight.detach().clone())
        self.register_buffer("b", layer.bias.detach().clone())

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.w, self.b)


def layers(n_inputs: int, n_outputs: int) -> list[nn.Module]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return [nn.Flatten(), nn.Linear(n_inputs, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, n_outputs)]


@leaves_note
def frozen(n_inputs: int, n_outputs: int) -> nn.Module:
    net = nn.Sequential(*layers(n_inputs, n_outputs))
    net[1].requires_grad_(False)
    return net


@leaves_note
def twin(n_inputs: int, n_outputs: int) -> nn.Module:
    flat, first, relu, last = layers(n_inputs, n_outputs)
    return nn.Sequential(flat, Given(first), relu, last)
