"""Federated optimisation of torch models: one file for each published algorithm."""

from hedgerow.errors import MissingExtra

try:
    import torch as torch
except ImportError as error:
    raise MissingExtra("training models needs PyTorch.", remedy="pip install 'hedgerow[neural]'") from error

from .evaluate import evaluate, evaluate_on
from .fedavg import ModelState, fedavg, fedsgd
from .feddyn import DynState, feddyn
from .fednova import fednova
from .fedopt import ServerState, fedopt
from .fedprox import fedprox
from .models import linear, mlp
from .scaffold import ScaffoldState, scaffold
from .training import with_weights

__all__ = [
    "DynState",
    "ModelState",
    "ScaffoldState",
    "ServerState",
    "evaluate",
    "evaluate_on",
    "fedavg",
    "feddyn",
    "fednova",
    "fedopt",
    "fedprox",
    "fedsgd",
    "linear",
    "mlp",
    "scaffold",
    "with_weights",
]
