"""Federated optimisation of torch models: one file for each published algorithm."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from hedgerow.errors import MissingExtra
from hedgerow.lazy import lazily

if importlib.util.find_spec("torch") is None:
    raise MissingExtra("training models needs PyTorch.", remedy="pip install 'hedgerow[neural]'")

if TYPE_CHECKING:
    from . import queries as queries
    from . import teachers as teachers
    from .admm import AdmmState, admm
    from .baselines import centralised, gathered, local_only
    from .cyclic import TransferState, cyclic_transfer, incremental
    from .descent import Solver
    from .devices import use_device
    from .evaluate import evaluate, evaluate_on
    from .evaluate_own import evaluate_personal
    from .evaluate_parties import evaluate_parties
    from .fedavg import ModelState, fedavg, fedsgd
    from .fedbuff import BufferState, fedbuff
    from .feddyn import DynState, feddyn
    from .fednag import NagState, fednag
    from .fednova import fednova
    from .fedopt import ServerState, fedopt
    from .fedprox import fedprox
    from .fixed import trained_weights
    from .fsvrg import fsvrg
    from .heterogeneity import LayerSpread, Spread, curves, spread, spread_clip, watch_spread
    from .labels import LabelSpread, label_spread
    from .local import local_sgd
    from .made import made_by
    from .models import linear, mlp
    from .personal import ditto, fine_tune
    from .predict import predict
    from .private import PrivateState, dp_fedavg, geyer
    from .records import OwnBudgetsState, RecordState, dpsgd, local_dpsgd, without_batch_norm
    from .results import declares
    from .scaffold import ScaffoldState, scaffold
    from .settings import Settings, StepSettings
    from .splitfed import splitfed
    from .subfedavg import SubState, evaluate_subnetworks, subfedavg
    from .tasks import Input, Metric, Task
    from .teachers import VotedLabels, pate
    from .training import Training, above, at_least, mean_of, with_weights
    from .weighting import weighed
    from .zoo import ZOO, geyer_net, he_net, lenet, logistic, lstm, mcmahan_cnn, resnet18, two_nn

__all__ = [
    "ZOO",
    "AdmmState",
    "BufferState",
    "DynState",
    "Input",
    "LabelSpread",
    "LayerSpread",
    "Metric",
    "ModelState",
    "NagState",
    "OwnBudgetsState",
    "PrivateState",
    "RecordState",
    "ScaffoldState",
    "ServerState",
    "Settings",
    "Solver",
    "Spread",
    "StepSettings",
    "SubState",
    "Task",
    "Training",
    "TransferState",
    "VotedLabels",
    "above",
    "admm",
    "at_least",
    "centralised",
    "curves",
    "cyclic_transfer",
    "declares",
    "ditto",
    "dp_fedavg",
    "dpsgd",
    "evaluate",
    "evaluate_on",
    "evaluate_parties",
    "evaluate_personal",
    "evaluate_subnetworks",
    "fedavg",
    "fedbuff",
    "feddyn",
    "fednag",
    "fednova",
    "fedopt",
    "fedprox",
    "fedsgd",
    "fine_tune",
    "fsvrg",
    "gathered",
    "geyer",
    "geyer_net",
    "he_net",
    "incremental",
    "label_spread",
    "lenet",
    "linear",
    "local_dpsgd",
    "local_only",
    "local_sgd",
    "logistic",
    "lstm",
    "made_by",
    "mcmahan_cnn",
    "mean_of",
    "mlp",
    "pate",
    "predict",
    "resnet18",
    "scaffold",
    "splitfed",
    "spread",
    "spread_clip",
    "subfedavg",
    "trained_weights",
    "two_nn",
    "use_device",
    "watch_spread",
    "weighed",
    "with_weights",
    "without_batch_norm",
]

lazily(__name__, checks=True)
