"""Forests whose leaves vote: probabilities of classes, averaged over trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.data import Schema, Table
from hedgerow.display import cell
from hedgerow.errors import SchemaInvalid

from .bins import Bins
from .charged import ForestCost, summary_of
from .reading import bin_numbers, name_of_score, named, score_of


class Router(Protocol):
    """The splits of some trees."""

    def leaves_of(self, tree: int, bins: Array) -> Array:
        """The leaf of one tree that records with bin numbers (n, f) reach: shape (n,)."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class VotingForest:
    """A forest of fixed structure, with votes at its leaves.

    Attributes
    ----------
    kind : str
        What forest it is, in words.
    bins : Bins
    router : Router
        Splits.
    value : array of shape (trees, leaves, classes)
        What each leaf says of the classes; shares that add up to 1.
    cost : ForestCost or None
        What was asked and spent for it; None of a model that was made from a state alone.
    """

    kind: str
    bins: Bins
    router: Router
    value: Array
    cost: ForestCost | None = None

    @property
    def spent(self) -> tuple[float, float] | None:
        """Epsilon and delta of everything that its federation's ledger holds; None where that is not finite or not known."""
        return None if self.cost is None else self.cost.spent

    def summary(self) -> str:
        """Return the model as text, with what was spent and how it was protected."""
        return summary_of(self, self.cost)

    def probabilities(self, data: Any) -> Array:
        """Mean vote of the trees for each class of `bins.classes`: shape (n, classes).

        Raises
        ------
        MissingColumn, NotFinite, OutOfRange, SchemaInvalid (HR-403, 404, 405, 409)
            The data do not hold the features as declared, or lack a value.
        """
        numbers = bin_numbers(self.bins, data)
        found = np.zeros((len(numbers), len(self.bins.classes)))
        for tree, value in enumerate(self.value):
            found += value[self.router.leaves_of(tree, numbers)]
        return found / max(len(self.value), 1)

    def predict(self, data: Any) -> Array:
        """The class with most votes: 0 or 1 for a binary target, else the level's word. Shape (n,)."""
        return named(self.bins, self.probabilities(data).argmax(-1))

    def __str__(self) -> str:
        return repr(self)

    _repr_html_ = cell

    def __repr__(self) -> str:
        trees, leaves, _ = self.value.shape
        return f"VotingForest({self.kind}, {self.bins.target.name!r}, {trees} trees of {leaves} leaves)"


def shares_of(counts: Array, sigma: float) -> Array:
    """Votes of leaves from counts (..., classes): shares of the counts, drawn to equal ones by the noise's deviation."""
    weight = np.maximum(counts, 0.0) + max(sigma, 1e-9)
    shares: Array = weight / weight.sum(-1, keepdims=True)
    return shares


def classes_only(bins: Bins) -> None:
    """Refuse a target that is a number."""
    if not bins.classes:
        raise SchemaInvalid(
            f"{bins.target.name} is a number, and the leaves of this forest vote for classes.",
            remedy="Take additive, random_trees or decision_tree for numbers.",
        )


def watched(model: VotingForest, schema: Schema, test: Table | None) -> dict[str, float]:
    """Score of a forest on the server's table."""
    return {} if test is None else {name_of_score(model.bins): score_of(model, schema, test)}


def shown(model: VotingForest, arrays: Mapping[str, Array]) -> Any:
    """What a report shows of a forest."""
    from hedgerow.report import Outcome

    return Outcome(text={"The model": str(model)}, arrays=dict(arrays))
