"""Models with frozen layers, which a study names by import path, and the same without.

    hedgerow.studies.pretrained:scratch     a small CNN, all of it trained
    hedgerow.studies.pretrained:garments    the same: its convolutions learned Fashion-MNIST and are frozen
    hedgerow.studies.pretrained:wavelets    logistic regression on scattering, which nothing has trained

What public images taught a layer costs no privacy, and a frozen layer takes no noise. Convolutions are trained once and kept
in the user's cache folder, in a file that the recipe names; where it is missing or cannot be read it is made again.
"""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from functools import lru_cache

import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file
from torch import Tensor, nn

from hedgerow.data import load
from hedgerow.data.download import cache_folder
from hedgerow.engines import InProcess
from hedgerow.errors import MissingData, ModelInvalid
from hedgerow.learn import centralised
from hedgerow.learn.features import freeze, scatter
from hedgerow.learn.features.scattering import GROUPS, grouped, n_channels
from hedgerow.learn.models import Weights
from hedgerow.learn.zoo import Planes
from hedgerow.runs import last
from hedgerow.runs.checkpoint import write_arrays

Shape = tuple[int, ...]

SOURCE = "fashion_mnist"
RECIPE = {"rounds": 3, "batch_size": 64, "solver": "momentum", "momentum": 0.9, "learning_rate": 0.02, "schedule": "cosine"}
"""How the convolutions are trained: passes over the public images, one to a round."""

SIDE = 28


def scratch(shape: Shape, n_outputs: int) -> nn.Module:
    """Two convolutions of stride 2 with tanh, and an affine map: 6 625 parameters for one output.

        layer    output         parameters
        conv1    16 x 14 x 14         416
        conv2    32 x 7 x 7         4 640      channels brought to mean zero and variance one, four by four
        output   n_outputs          1 569 each

    Tanh rather than ReLU, since it keeps gradients short, which clipping rewards: Papernot et al. 2021.
    """
    if tuple(shape) != (SIDE, SIDE):
        raise ModelInvalid(f"this CNN cannot read records of shape {tuple(shape)}.", remedy="It needs grey images of 28 x 28.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(
            OrderedDict(
                planes=Planes(),
                conv1=nn.Conv2d(1, 16, 5, stride=2, padding=2),
                tanh1=nn.Tanh(),
                conv2=nn.Conv2d(16, 32, 3, stride=2, padding=1),
                norm=nn.GroupNorm(8, 32, affine=False),
                tanh2=nn.Tanh(),
                flat=nn.Flatten(),
                output=nn.Linear(32 * 7 * 7, n_outputs),
            )
        )


def garments(shape: Shape, n_outputs: int) -> nn.Module:
    """The CNN of `scratch` with convolutions that learned garments, frozen; its last layer starts at zero."""
    module = freeze(scratch(shape, n_outputs), but=["output"])
    learned = {name: torch.from_numpy(value.copy()) for name, value in convolutions().items()}
    module.load_state_dict(learned, strict=False)
    nn.init.zeros_(module.output.weight)  # type: ignore[union-attr, arg-type]
    nn.init.zeros_(module.output.bias)  # type: ignore[union-attr, arg-type]
    return module


def wavelets(shape: Shape, n_outputs: int) -> nn.Module:
    """Logistic regression on scattering, 3 969 numbers of an image of 28 x 28, which are made from fixed constants."""
    if len(shape) not in (2, 3) or any(side % 4 or side <= 4 for side in shape[-2:]):
        raise ModelInvalid(
            f"scattering cannot read records of shape {tuple(shape)}.",
            remedy="It needs images whose sides are multiples of 4, and longer than that.",
        )
    n_inputs = math.prod(shape[:-2]) * n_channels(2, 8) * (shape[-2] // 4) * (shape[-1] // 4)
    output = nn.Linear(n_inputs, n_outputs)
    nn.init.zeros_(output.weight)
    nn.init.zeros_(output.bias)
    return nn.Sequential(OrderedDict(scattering=Scattering(), flat=nn.Flatten(), output=output))


class Scattering(nn.Module):
    """Scattering as a layer without parameters, its channels brought to mean zero and variance one in groups."""

    def forward(self, x: Tensor) -> Tensor:
        plain = torch.from_numpy(x.detach().numpy())  # no gradient passes, and parties are not stacked
        return grouped(scatter(plain).flatten(1, -3), GROUPS)


@lru_cache(maxsize=1)
def convolutions() -> Weights:
    """Weights of the convolutions, from the cache folder or trained now.

    Raises
    ------
    MissingData (HR-402)
        The public images are not there, and cannot be downloaded.
    CannotWrite (HR-104)
        The cache folder cannot be written to.
    """
    told = repr((SOURCE, sorted(RECIPE.items()), str(scratch((SIDE, SIDE), 10))))
    path = cache_folder() / "pretrained" / f"{SOURCE}-{hashlib.sha256(told.encode()).hexdigest()[:12]}.safetensors"
    try:
        return load_file(path)
    except (FileNotFoundError, SafetensorError):
        pass
    made = {name: value for name, value in _train().items() if name.startswith("conv")}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_arrays(path, made, {"of": SOURCE})
    return made


def _train() -> Weights:
    try:
        table = load(SOURCE)
    except MissingData as error:
        remedy = "Name the folder in the environment variable HEDGEROW_DATA: --data-dir holds for the study's own records."
        raise MissingData(f"pre-training reads {SOURCE!r}: {error.reason}", remedy=f"{remedy}\n{error.remedy}") from error
    settings: dict[str, object] = dict(RECIPE)
    return last(centralised(table, scratch((SIDE, SIDE), 10), engine=InProcess(), **settings)).weights  # type: ignore[arg-type]
