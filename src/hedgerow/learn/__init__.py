"""Federated optimisation of torch models: one file for each published algorithm."""

from hedgerow.errors import MissingExtra

try:
    import torch as torch
except ImportError as error:
    raise MissingExtra("training models needs PyTorch.", remedy="pip install 'hedgerow[neural]'") from error

from .evaluate import evaluate, evaluate_on
from .fedavg import ModelState, fedavg, fedsgd
from .models import linear, mlp
from .training import with_weights

__all__ = ["ModelState", "evaluate", "evaluate_on", "fedavg", "fedsgd", "linear", "mlp", "with_weights"]
