"""A small CNN, from scratch and with layers that were trained on public images; a study names it by import path.

    hedgerow.papers.haug.pretrained:scratch     all of it is trained
    hedgerow.papers.haug.pretrained:garments    its convolutions learned Fashion-MNIST and are frozen

What public images taught a layer costs no privacy, and a frozen layer takes no noise. Convolutions are trained once and kept
in the user's cache folder, in a file that the recipe names; where it is missing or cannot be read it is made again.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from functools import lru_cache

import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file
from torch import nn

from hedgerow.data import load
from hedgerow.data.download import cache_folder
from hedgerow.engines import InProcess
from hedgerow.errors import MissingData, ModelInvalid
from hedgerow.learn import centralised
from hedgerow.learn.features import freeze
from hedgerow.learn.made import leaves_note
from hedgerow.learn.models import Weights
from hedgerow.learn.zoo import Planes
from hedgerow.store import last, write_arrays

Shape = tuple[int, ...]

SOURCE = "fashion_mnist"
RECIPE = {"rounds": 3, "batch_size": 64, "solver": "momentum", "momentum": 0.9, "learning_rate": 0.02, "schedule": "cosine"}
"""How the convolutions are trained: passes over the public images, one to a round."""

SIDE = 28


@leaves_note
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
    """The CNN of `scratch` with convolutions that learned garments, frozen; its last layer starts at zero.

    Its note is that of the frozen CNN: parties elsewhere get what was learned with the broadcast.
    """
    module = freeze(scratch(shape, n_outputs), but=["output"])
    learned = {name: torch.from_numpy(value.copy()) for name, value in convolutions().items()}
    module.load_state_dict(learned, strict=False)
    nn.init.zeros_(module.output.weight)  # type: ignore[union-attr, arg-type]
    nn.init.zeros_(module.output.bias)  # type: ignore[union-attr, arg-type]
    return module


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
