"""Boosted trees over columns that lie apart, as a study file names them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hedgerow.core.declaration import program
from hedgerow.report import Outcome

from ..aligned import Aligned
from ..boost.grow import grow_trees
from ..boost.results import BoostedTree
from .cases import heart
from .labels import label_of

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class GrownTrees:
    """Boosted trees so far.

    Attributes
    ----------
    round : int
        How many.
    loss : float
        Mean loss on the training people before the newest tree.
    trees : tuple of BoostedTree
    columns : mapping from party to names
        Whose numbers the cuts have.
    """

    round: int
    loss: float
    trees: tuple[BoostedTree, ...]
    columns: Mapping[str, tuple[str, ...]]

    def importance(self) -> dict[str, float]:
        """The summed gain of each column's cuts, the largest first."""
        found: dict[str, float] = {}
        for tree in self.trees:
            for cut in tree.cuts:
                name = self.columns[cut.party][cut.column]
                found[name] = found.get(name, 0.0) + cut.gain
        return dict(sorted(found.items(), key=lambda item: -item[1]))


def show_trees(aligned: Aligned, settings: Settings, state: GrownTrees) -> Outcome:
    """Show how much each column lowers the loss, and at which party it is."""
    import pandas

    gains = state.importance()
    frame = pandas.DataFrame(
        {"party": [aligned.owner(name) for name in gains], "gain": list(gains.values())}, index=list(gains)
    )
    metrics = {"trees": float(state.round), "loss before the last tree": state.loss}
    return Outcome(metrics, {"Gain by column": frame.rename_axis("column")}, coefficients=frame)


def watch_trees(settings: Settings, state: GrownTrees, opened: Any, test: Any) -> dict[str, float]:
    """The loss before each tree."""
    return {"training loss": state.loss}


def learns_of_trees(settings: Settings, roles: Any) -> dict[str, tuple[str, ...]]:
    """Who learns what of boosting."""
    sides = "on which side of a chosen cut each person is, of the parties that answer it; not where the cut lies"
    hub = "histograms: sums over people by bin and node, without the edges of bins; and which column cuts a node"
    return {"party": (sides, "which of its columns cuts a node"), "hub": (hub,), "world": ("gains, leaves and mean losses",)}


@program(
    "Boosted trees over columns that lie apart: histograms as products, thresholds stay with the columns' owners.",
    columns="apart",
    bind={"label": label_of},
    outcome=show_trees,
    watch=watch_trees,
    shows_rows=True,
    learns=learns_of_trees,
    case=lambda: heart(trees=2, depth=2, bins=8),
)
def vertical_boost(
    aligned: Aligned,
    *,
    label: str,
    trees: int = 20,
    depth: int = 3,
    bins: int = 32,
    learning_rate: float = 0.3,
    regularisation: float = 1.0,
    loss: Literal["logistic", "squared"] | None = None,
    columns: list[str] | None = None,
    holdout: float = 0.0,
    order_seed: int = 0,
    start: GrownTrees | None = None,
) -> Iterator[GrownTrees]:
    """Grow trees one after the other; see `hedgerow.vertical.boost.grow.grow_trees`.

    Parameters
    ----------
    label : str
        Of `[roles]`.
    trees, depth, bins : int
        How many trees, how deep, and into how many bins each column is cut, at most 256.
    learning_rate : float
        What a tree's leaves are multiplied by.
    regularisation : float
        Added to the second derivatives of a leaf.
    loss : str, optional
        "logistic" or "squared"; by the label's declaration if not given.
    columns : list of str, optional
        Columns that cuts may ask; all but the label.
    holdout : float
        Share of people who are left out of training.
    order_seed : int
        By which these are chosen.
    """
    name = label.rpartition(".")[2]
    asked = {"trees": trees, "depth": depth, "bins": bins, "learning_rate": learning_rate, "regularisation": regularisation}
    wanted = None if columns is None else set(columns)
    held = {
        party: tuple(one for one in schema.names if one != name and (wanted is None or one in wanted))
        for party, schema in aligned.schemas.items()
    }
    for state in grow_trees(aligned, name, loss=loss, columns=columns, holdout=holdout, seed=order_seed, **asked):
        yield GrownTrees(state.round, state.loss, state.trees, held)
