"""Attribute inference: what a model tells of a column that the attacker does not know, of a record of which it knows the rest.

    prior_v    P(v | the other columns)          from public records alone: what anybody knows of the population
    fit_v      P(y | x with v)                   the model's probability of the known target
    guess      argmax_v  prior_v fit_v           attack
    guess      argmax_v  prior_v                 baseline without the model

A model that has learned how a column and the target go together improves the guess for everybody, whether in the training or
not: that is what models are for. Only the difference between members and others is a leak of records, so both are told.

Sources: Fredrikson et al., USENIX Security 2014; the difference: Yeom et al., CSF 2018, section 4; the baseline that imputes
from public records: Jayaraman and Evans, CCS 2022.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.data import Table
from hedgerow.errors import SettingsInvalid

from .guesses import Guesses
from .membership import confidences, losses_of

if TYPE_CHECKING:
    from torch import nn


def infer_attribute(
    state: Any,
    module: nn.Module,
    known: Table,
    attribute: str,
    public: Table,
    features: Sequence[str] | None = None,
    **reading: Any,
) -> Guesses:
    """Guess a binary or category feature of records from a model, and without it.

    Parameters
    ----------
    state : state of a program, or mapping
        What was released.
    known : Table
        Records with all columns; the attribute is used to count right guesses alone.
    attribute : str
        The feature to guess.
    public : Table
        Records of the same population that are in nobody's training.
    features, **reading
        As `hedgerow.learn.predict`.

    Returns
    -------
    Guesses
        Call it for members and for others: their difference is what the training leaks.

    Raises
    ------
    SettingsInvalid (HR-511)
        The attribute is the target, or has no levels; a table is empty.
    """
    column = known.schema[attribute]
    if attribute == known.schema.target or column.kind not in ("binary", "category"):
        raise SettingsInvalid(
            f"{attribute!r} is {'the target' if attribute == known.schema.target else f'a column of kind {column.kind!r}'}.",
            remedy="Guess a binary or category feature.",
        )
    levels = 2 if column.kind == "binary" else len(column.levels)
    if not len(known) or not len(public):
        raise SettingsInvalid(
            f"{len(known)} records to guess of, and {len(public)} public ones.", remedy="Give at least one of each."
        )
    prior = population_prior(public, known, attribute, levels)
    fits = np.stack(
        [-losses_of(confidences(state, module, _with(known, attribute, v), features, **reading)) for v in range(levels)], 1
    )
    truth = np.asarray(known[attribute]).astype(int)
    right, without = (prior + fits).argmax(1) == truth, prior.argmax(1) == truth
    return Guesses.compared(attribute, right, without)


def _with(table: Table, attribute: str, level: int) -> Table:
    """The records, all with one level of a column."""
    values = np.full(len(table), level, np.asarray(table[attribute]).dtype)
    return replace(table, columns={**table.columns, attribute: values})


def population_prior(public: Table, known: Table, attribute: str, levels: int, penalty: float = 1.0) -> Array:
    """Log probabilities (n, levels) of a column given the others, from public records alone: logistic regression.

    Numbers are brought to mean 0 and deviation 1 among the public records, categories to indicators; the target is known too.
    """
    names = [name for name in (*public.schema.features, str(public.schema.target)) if name != attribute]
    x, mean, spread = _inputs(public, names, None, None)
    y = np.eye(levels)[np.asarray(public[attribute]).astype(int)]
    beta = multinomial(x, y, penalty)
    return log_shares(_inputs(known, names, mean, spread)[0] @ beta)


def _inputs(table: Table, names: Sequence[str], mean: Array | None, spread: Array | None) -> tuple[Array, Array, Array]:
    parts = []
    for name in names:
        values, column = np.asarray(table[name]), table.schema[name]
        wide = np.eye(len(column.levels))[values.astype(int)] if column.kind == "category" else values.reshape(len(values), -1)
        parts.append(np.asarray(wide, float))
    rows = np.concatenate(parts, 1)
    mean = rows.mean(0) if mean is None else mean
    spread = np.where(rows.std(0) > 0, rows.std(0), 1.0) if spread is None else spread
    return np.column_stack([np.ones(len(rows)), (rows - mean) / spread]), mean, spread


def log_shares(scores: Array) -> Array:
    """Logarithms of the shares that scores (n, C) stand for."""
    scores = scores - scores.max(1, keepdims=True)
    return np.asarray(scores - np.log(np.exp(scores).sum(1, keepdims=True)))


def multinomial(x: Array, y: Array, penalty: float) -> Array:
    """Slopes (d, C) of a multinomial regression of shares y (n, C) on x (n, d), with a ridge on all but the first column."""
    import scipy

    d, levels = x.shape[1], y.shape[1]
    ridge = np.full((d, 1), penalty)
    ridge[0] = 1e-6

    def cost(flat: Array) -> tuple[float, Array]:
        beta = flat.reshape(d, levels)
        logs = log_shares(x @ beta)
        slope = x.T @ (np.exp(logs) - y) + ridge * beta
        return float(-(y * logs).sum() + 0.5 * (ridge * beta**2).sum()), slope.ravel()

    found = scipy.optimize.minimize(cost, np.zeros(d * levels), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return np.asarray(found.x).reshape(d, levels)
