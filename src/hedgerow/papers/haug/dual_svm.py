"""A support vector machine with noise on its dual variables, as Zhang et al. have it: no epsilon holds for it.

    maximise  sum a_i - 1/2 sum a_i a_j s_i s_j K(x_i, x_j),  0 <= a_i <= C          one variable at a time
    e_i       <- mean of K(x_i, x_j) over support vectors j;     r_i <- e_i / sum of e
    a_i       <- a_i + Lap(C r_i / epsilon)                      for each support vector, in place of a bound
    w         <- sum a_i s_i x_i

The intercept is a constant column, so that one variable is the smallest step; with an intercept of its own it would be a pair.

Why it is not private: C bounds one dual variable, and the noise is scaled to that. Removing one record moves the dual variables
of the others, together by many times C (by 11.4 at C = 3 and 11 records at most, and by more of more records); how many dual
variables are released depends on the records, and a variable above zero says that its record is a support vector. What one
record moves by C |x| at most is w: noise on w, on the objective, or on sums of a smoothed hinge has a bound (`private_svm`).

Releases : every record, of the one party that there may be: it needs all of them in one place, so that it is no program by
           itself but a line of the study `haug-models`, where the ledger has it as not private.
Unit     : none.
Source   : Zhang, Hao & Wang 2019, by way of Haug 2022, section 4.4. Differs: the paper was not at hand, so that the ratio
           follows the survey's words, each support vector's expectation by the sum of all; steps are of one variable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.errors import SettingsInvalid

PASSES = 40
TOLERANCE = 1e-3
"""Of the step of a dual variable, in units of the margin."""


@local
def all_rows(broadcast: Any, party: Party, rng: Any) -> dict[str, Array]:
    """Return every row and target of a party, as `unit_rows` prepares them: nothing about this is private."""
    return {"X": np.asarray(party["X"]), "y": np.asarray(party["y"])}


def gathered(prepared: Federation) -> tuple[Array, Array]:
    """Rows (n, d) and targets (n,) of a federation of one party, without any protection.

    Raises
    ------
    SettingsInvalid (HR-511)
        There are several parties.
    UnlawfulChannel (HR-211)
        The channel adds noise or hides rows.
    """
    if prepared.size != 1:
        raise SettingsInvalid(
            f"dual variables need all records in one place, and {prepared.size} parties hold them.",
            remedy="Simulate one party: [partition] by = 'iid', parties = 1.",
        )
    sent: dict[str, Any] = next(iter(prepared.gather(all_rows).values()))
    return sent["X"], sent["y"]


def dual_machine(X: Array, y: Array, *, C: float = 1.0) -> tuple[Array, Array]:
    """Dual variables (n,) and signs (n,) of the machine without noise; `X` are rows (n, d) and `y` targets of 0 and 1.

    Raises
    ------
    SettingsInvalid (HR-511)
        `C` is not above zero.
    """
    if not C > 0:
        raise SettingsInvalid(f"C={C!r}, by which each hinge weighs.", remedy="Give a number above zero.")
    signs = np.where(y > 0.5, 1.0, -1.0)
    return dual_variables(X, signs, C), signs


def dual_variables(X: Array, signs: Array, C: float, *, passes: int = PASSES, tol: float = TOLERANCE) -> Array:
    """Dual variables of the linear machine, shape (n,): of `|w|^2 / 2 + C sum of hinges`, one variable at a time.

    Records are taken in turn; those at a bound that will stay there are left out of the later passes (Hsieh et al. 2008).
    """
    n, squares = len(X), np.einsum("ij,ij->i", X, X)
    duals, w, todo = np.zeros(n), np.zeros(X.shape[1]), np.flatnonzero(squares > 0)
    duals[squares == 0] = C  # the hinge of a row of zeros is one
    everyone = todo
    for turn in range(passes):
        order, worst, kept = np.random.default_rng(turn).permutation(todo), 0.0, []
        for i in order:
            slope = signs[i] * (X[i] @ w) - 1.0
            if (duals[i] <= 0 and slope > 0.2) or (duals[i] >= C and slope < -0.2):
                continue
            kept.append(i)
            moved = min(max(duals[i] - slope / squares[i], 0.0), C)
            step = moved - duals[i]
            worst = max(worst, abs(step) * squares[i])
            if step:
                w += step * signs[i] * X[i]
                duals[i] = moved
        if worst < tol:
            if len(todo) == len(everyone):
                break
            todo = everyone  # look at those again that were left out
        else:
            todo = np.asarray(kept)
    return duals


def with_noise(duals: Array, X: Array, *, C: float, epsilon: float, rng: np.random.Generator) -> Array:
    """Add Laplace noise to the dual variables above zero, by the ratio of each one's mean kernel to their sum."""
    support = np.flatnonzero(duals > 0)
    if not len(support):
        return duals
    expected = np.abs(X[support] @ X[support].mean(0))
    ratio = expected / max(expected.sum(), 1e-300)
    noisy = duals.copy()
    noisy[support] += rng.laplace(0.0, C * ratio / epsilon)
    return noisy
