import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

from hedgerow.learn.models import Model
from hedgerow.learn.records import Clipping, clipped_sum

torch.manual_seed(1)
CLIP = 1.0
net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))
model, clipping = Model(net, "category"), Clipping.of(CLIP)


def record(seed):
    """A record at which every unit of the hidden layer gives zero, up to rounding; it takes nothing but the public weights."""
    w, b = (value.detach().double().numpy() for value in (net[0].weight, net[0].bias))
    rng = np.random.default_rng(seed)
    free = np.linalg.svd(w)[2][32:].T @ (30 * rng.normal(size=32))
    return torch.from_numpy((free - np.linalg.pinv(w) @ b).astype(np.float32))[None]


def usual(x, y):
    """Gradients of single records by torch.func, each clipped, and their sum."""
    weights = {name: value.detach() for name, value in net.named_parameters()}
    loss = grad(lambda p, x, y: F.cross_entropy(functional_call(net, p, (x[None],)), y[None]))
    rows = torch.cat([part.flatten(1) for part in vmap(loss, in_dims=(None, 0, 0))(weights, x, y).values()], 1)
    return (rows * (CLIP / rows.norm(dim=1, keepdim=True)).clamp(max=1)).double().sum(0)


def by_torch(x, y):
    """The same here where no noise is added: quicker, and no promise."""
    return clipped_sum(model, torch.from_numpy(model.initial), x, y, torch.ones(len(x)), clipping, exact=False)[0]


def exact(x, y):
    """The sum to which noise is added."""
    return clipped_sum(model, torch.from_numpy(model.initial), x, y, torch.ones(len(x)), clipping)[0]


for way in (usual, by_torch, exact):
    farthest = 0.0
    for seed in range(60):
        x, y = record(seed), torch.zeros(4, dtype=torch.int64)
        for k in (1, 2, 3):
            moved = way(x.repeat(k + 1, 1), y[: k + 1]) - way(x.repeat(k, 1), y[:k])
            farthest = max(farthest, float(moved.norm()))
    print(f"{way.__name__:8}  one record more moves the sum by at most the clip: {farthest <= CLIP}")
