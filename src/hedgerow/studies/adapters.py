"""Listings of programs that bring scores and baselines. Modules that need an extra are imported when they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from pydantic import Field

from hedgerow.data import Schema
from hedgerow.errors import MissingExtra
from hedgerow.stats.families import FamilyName

from . import regression as room
from .listing import Listing


def later(module: str, name: str, extra: str) -> Callable[..., Any]:
    """Return a function that is imported on its first call."""

    def call(*arguments: Any) -> Any:
        try:
            function = getattr(import_module(module), name)
        except ImportError as error:
            raise MissingExtra(
                f"{module} needs a package that is not installed: {error}.", remedy=f"pip install 'hedgerow[{extra}]'"
            ) from error
        return function(*arguments)

    return call


MOST_PASSES = 30
"""Baselines of trained models take at most so many passes over their records."""


def few_passes(settings: Mapping[str, Any], rounds: int) -> dict[str, Any]:
    """Everybody in every round, one pass a round, at most `MOST_PASSES` of them."""
    epochs = settings.get("epochs", 1)
    passes = min(rounds * (epochs if isinstance(epochs, int) else max(epochs)), MOST_PASSES)
    plain = {"rounds": passes, "epochs": 1, "rate": None, "size": None, "every": None, "spare": 0, "stragglers": 0.0}
    plain |= {"buffer": None, "concurrency": None}
    return {name: plain.get(name, value) for name, value in settings.items()}


MODEL = {
    "model": (
        str,
        Field(
            "linear",
            description="linear, mlp, logistic, two_nn, geyer_net, mcmahan_cnn, lenet, resnet18, lstm, or "
            "package.module:factory, called with (n_inputs, n_outputs), or (shape, n_outputs) if it begins with shape",
        ),
    ),
    "hidden": (list[int], Field([32], description="units of each hidden layer of an mlp")),
    "model_seed": (int, Field(0, description="of the initial weights")),
}
"""The keys by which a study names a model."""


def neural(algorithm: str, sentence: str, *, personal: bool = False) -> Listing:
    """List a federated optimisation algorithm of `hedgerow.learn`.

    Parameters
    ----------
    personal : bool
        Whether parties keep models of their own, which `evaluation.on = "parties"` measures beside the global one.
    """
    module = "hedgerow.studies.neural"
    return Listing(
        f"hedgerow.learn:{algorithm}",
        sentence,
        instead=MODEL,
        bind={"module": later(module, "module_for", "neural")},
        outcome=later(module, "outcome", "neural"),
        watch=later(module, "on_table", "neural"),
        score=later(module, "accuracy", "neural"),
        ask=later(module, "own_models" if personal else "over_parties", "neural"),
        alone=few_passes,
        metric=lambda schema: ("accuracy", True) if classifies(schema) else ("mean squared error", False),
    )


def regression(family: FamilyName, sentence: str) -> Listing:
    """List the regression of a family."""
    metric = ("log-loss", False) if family == "binomial" else ("R2", True)
    return Listing(
        "hedgerow.stats:regression",
        sentence,
        fixed={"family": family} | ({"rounds": 1} if family == "gaussian" else {}),
        outcome=room.outcome(family),
        score=room.score(family),
        metric=lambda schema: metric,
    )


def tree(sentence: str) -> Listing:
    """List the decision tree."""
    module = "hedgerow.studies.tree"
    return Listing(
        "hedgerow.trees:grow",
        sentence,
        outcome=later(module, "outcome", "all"),
        watch=later(module, "watch", "all"),
        score=later(module, "score", "all"),
        metric=lambda schema: ("accuracy" if classifies(schema) else "R2", True),
    )


def classifies(schema: Schema) -> bool:
    """Whether the target is a class."""
    return schema.target is not None and schema[schema.target].kind in ("binary", "category")
