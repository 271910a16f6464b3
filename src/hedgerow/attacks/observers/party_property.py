"""Property inference: what an update tells of the records behind it as a whole, such as whether a class is frequent at a party.

    shadow parties   drawn by the attacker from public records, some with the property and some without
    their updates    by the program that is attacked
    attack model     logistic regression with a ridge, on the updates' principal components, all brought to one spread

An update of a party is visible to a server without secure aggregation, and to anybody who knows all others. The attack is shown
beside the best guess without an update, the more frequent answer.

Sources: Ganju et al., CCS 2018, and Melis et al., S&P 2019, section 4; differs: a linear attack model in place of networks that
are blind to the order of neurons, which is enough where shadow parties begin with the same weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from .attribute import log_shares, multinomial
from .guesses import Guesses


@dataclass(frozen=True, eq=False)
class PropertyAttack:
    """An attack model of updates, fitted on shadow parties.

    Attributes
    ----------
    mean : array of shape (d,)
    directions : array of shape (d, k)
        From an update to its components, each with deviation 1 among shadow parties.
    slopes : array of shape (k + 1, 2)
    usual : bool
        The more frequent answer among shadow parties: the baseline's guess.
    """

    mean: Array
    directions: Array
    slopes: Array
    usual: bool

    @classmethod
    def fit(cls, updates: Array, has: Array, *, components: int = 20, penalty: float = 1.0) -> PropertyAttack:
        """Fit on the updates (m, d) of shadow parties and whether each has the property, booleans (m,).

        Raises
        ------
        SettingsInvalid (HR-511)
            All shadow parties have the property, or none; their updates are not finite, or all alike.
        """
        updates, has = np.asarray(updates, float), np.asarray(has)
        if updates.ndim != 2 or has.shape != updates.shape[:1] or has.dtype != bool or has.all() or not has.any():
            raise SettingsInvalid(
                f"updates of shape {updates.shape}, and booleans of shape {has.shape} of which {int(has.sum())} are true.",
                remedy="Give updates (m, d) of shadow parties with the property and without.",
            )
        if not isinstance(components, Integral) or components < 1 or not 0 < penalty < np.inf:
            raise SettingsInvalid(
                f"{components=}, {penalty=}.", remedy="Components are one or more, and a penalty is finite and above zero."
            )
        mean = updates.mean(0)
        off = updates - mean
        if not np.isfinite(off).all() or not off.any():
            raise SettingsInvalid("updates are not finite, or all alike.", remedy="Train shadow parties on different records.")
        _, values, vectors = np.linalg.svd(off, full_matrices=False)
        kept = min(components, int((values > 1e-9 * values[0]).sum()))
        directions = vectors[:kept].T * np.sqrt(len(off)) / values[:kept]
        rows = np.column_stack([np.ones(len(off)), off @ directions])
        slopes = multinomial(rows, np.eye(2)[has.astype(int)], penalty)
        return cls(mean, directions, slopes, bool(has.mean() >= 0.5))

    def probability(self, updates: Array) -> Array:
        """Probability of the property for updates (n, d): shape (n,).

        Raises
        ------
        SettingsInvalid (HR-511)
            Updates are not as wide as those of the shadow parties.
        """
        given = np.atleast_2d(np.asarray(updates, float))
        if given.ndim != 2 or given.shape[1] != len(self.mean):
            raise SettingsInvalid(
                f"updates of shape {given.shape}, and those of shadow parties had {len(self.mean)} numbers.",
                remedy="Give updates (n, d) of the program that shadow parties ran.",
            )
        rows = (given - self.mean) @ self.directions
        return np.exp(log_shares(np.column_stack([np.ones(len(rows)), rows]) @ self.slopes))[:, 1]

    def judged(self, updates: Array, has: Array) -> Guesses:
        """Guesses for other parties' updates (n, d), beside the usual answer."""
        truth = np.asarray(has, bool)
        return Guesses.compared("the property", (self.probability(updates) > 0.5) == truth, truth == self.usual)


def flat_update(after: Any, before: Any) -> Array:
    """What a party changed, shape (d,): parameters by name, or states of a program, after its work and before."""
    new, old = (one if isinstance(one, Mapping) else one.weights for one in (after, before))
    return np.concatenate([(np.asarray(new[name], float) - np.asarray(old[name], float)).ravel() for name in new])
