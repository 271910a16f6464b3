"""What records are drawn from: a tree of columns in each class, and potentials that weigh its records, where there are any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from .conditions import Conditions
from .descent import Branch, drawn, passed, rounded
from .raking import FEWEST, OVER, Potentials, selected
from .synthesizer import Synthesizer
from .tree import ColumnTree


@dataclass(frozen=True, eq=False, repr=False)
class TreeSynthesizer(Synthesizer):
    """Records of a tree of columns inside each class.

    Attributes
    ----------
    trees : tuple of ColumnTree
        One for each class; a single one where there is no target.
    potentials : tuple of Potentials
        Of each class, by which its records have the tables of all pairs; none where records are those of the trees alone.
    """

    trees: tuple[ColumnTree, ...] = field(default=())
    potentials: tuple[Potentials, ...] = field(default=())

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Pairs of columns that the trees join, by name."""
        names = self.codes.names
        return [(names[i], names[j]) for i, j in self.trees[0].edges]

    @property
    def total(self) -> float:
        """Expected records in the tables, as the noise left them."""
        return sum(tree.total for tree in self.trees)

    def expected(self, conditions: Conditions) -> float:
        """How many of the trees' records satisfy conditions, before they are weighed."""
        return sum(passed(tree, conditions.weights)[0] for tree in self.trees)

    def draw(self, rows: int, conditions: Conditions, rng: np.random.Generator) -> Array:
        """Return the codes of made-up records: shape (rows, f).

        Raises
        ------
        SettingsInvalid (HR-511)
            The conditions have no probability: no record that could be made satisfies all of them.
        """
        found = [passed(tree, conditions.weights) for tree in self.trees]
        expected = np.array([total for total, _ in found])
        if not expected.sum() > 0:
            named = ", ".join(self.codes.names[j] for j in conditions.weights)
            raise SettingsInvalid(
                f"no record satisfies the conditions on {named} together: by the tables they never meet.",
                remedy="Ask for fewer conditions, or for wider ones.",
            )
        if self.potentials:
            parts = self._weighed(rows, found, conditions.weights, rng)
        else:
            (of_each,) = rounded(expected[None], np.array([rows]), rng)
            parts = [drawn(steps, int(k), len(self.codes.columns), rng) for (_, steps), k in zip(found, of_each, strict=True)]
        codes: Array = rng.permutation(np.concatenate(parts))
        return codes

    def _weighed(
        self, rows: int, found: list[tuple[float, list[Branch]]], evidence: Mapping[int, Array], rng: np.random.Generator
    ) -> list[Array]:
        """Draw candidates under the conditions in each class, and select from them by weight."""
        expected = np.array([total for total, _ in found])
        per_record = OVER * rows / expected.sum()
        candidates, logs, nodes = [], [], []
        for c, ((total, steps), tree) in enumerate(zip(found, self.trees, strict=True)):
            many = max(FEWEST, int(per_record * total)) if total > 0 else 0
            codes = drawn(steps, many, len(self.codes.columns), rng)
            columns, weights = np.ascontiguousarray(codes.T), self.potentials[c].log_weights(codes)
            whole = _whole_class(tree, evidence)
            if total > 0 and not whole:  # the mean weight of a whole class is one
                expected[c] = total * np.exp(weights).mean()
            nodes.append(tree.nodes if whole else ())
            candidates.append(columns)
            logs.append(weights)
        (of_each,) = rounded(expected[None], np.array([rows]), rng)
        return [
            columns[:, selected(columns, weights, int(k), rng, own)].T
            for columns, weights, k, own in zip(candidates, logs, of_each, nodes, strict=True)
            if k
        ]


def _whole_class(tree: ColumnTree, evidence: Mapping[int, Array]) -> bool:
    """Whether conditions are on nothing but what all records of a class have in common."""
    return all(np.count_nonzero(tree.nodes[j]) == 1 for j in evidence)
