"""Membership: whether a record was in the training, from what a released model says of it.

    phi        log p_y - log(1 - p_y)                    logit-scaled confidence in the true class; loss = log(1 + exp(-phi))
    threshold  phi                                       a small loss accuses; the same threshold for all records
    shadow     P(in | phi, loss), one law for a class    logistic regression on models whose training the attacker knows
    offline    (phi - mean_out) / sd_out                 each record has its own law among models that never saw it
    online     log N(phi; in) - log N(phi; out)          and another among models that did

A threshold takes records that are easy for those that were seen. The other three compare the target with shadow models: models
of the same program, with the same noise, trained on records that the attacker drew. All functions give scores, higher for
records that are taken for members, of which `MembershipRates` makes rates.

Sources: threshold: Yeom et al., CSF 2018; shadow: Shokri et al., S&P 2017, with a logistic attack model and two features in
place of a network on the whole vector of confidences; offline and online: Carlini et al., S&P 2022, Algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

if TYPE_CHECKING:
    from torch import nn

    from hedgerow.data import Table

LEAST_OWN = 32
"""Shadow models of one kind, on average over records, from which each record has a variance of its own (Carlini et al. use one
variance for all records below 64 models, half of which saw a record)."""

FLOOR = 1e-30
"""Probabilities are held above it."""

STEPS = 20
"""Steps to a unit of confidence in which attack models are fitted."""

Variances = Literal["own", "pooled"]


def confidences(state: Any, module: nn.Module, table: Table, features: Sequence[str] | None = None, **reading: Any) -> Array:
    """Logit-scaled confidence of a trained model in the true class of each record, from the module's logits.

    Probabilities would not do: in float32 one less a probability is zero from a logit of 17 on.

    Parameters
    ----------
    state : state of a program, or mapping
        What was released: `weights`, or parameters by name.
    table : Table
        Records with their target, a category or binary.
    features, **reading
        As `hedgerow.learn.predict`: `scale`, `task`, `schema`.

    Returns
    -------
    array of shape (n,)
        log p_y - log(sum of the other probabilities).

    Raises
    ------
    SettingsInvalid (HR-511)
        The target has no classes.
    """
    from hedgerow.learn.predict import outputs_of

    target = table.schema.target
    if target is None or not table.schema.classifies:
        raise SettingsInvalid(
            f"the target {target!r} has no classes, so a model has no confidence in it.",
            remedy="Score a category or a binary target; of a number, attack by minus the squared error.",
        )
    found = np.asarray(outputs_of(table, module, state, features, **reading), float).reshape(len(table), -1)
    logits = np.column_stack([np.zeros(len(found)), found]) if found.shape[1] == 1 else found
    at = np.asarray(table[target]).astype(int)[:, None]
    others = np.where(np.arange(logits.shape[1]) == at, -np.inf, logits)
    return np.asarray(np.take_along_axis(logits, at, 1)[:, 0] - np.logaddexp.reduce(others, 1))


def scaled_confidences(probabilities: Array, classes: Array) -> Array:
    """Logit-scaled confidences of probabilities (..., n, C) in the classes (n,): shape (..., n).

    Where the module is at hand, `confidences` reads its logits, which keep more digits.

    The other probabilities are added up instead of taking 1 - p, which would lose all digits where p is near one.
    """
    probabilities, known = np.asarray(probabilities, float), np.asarray(classes)
    lawful = known.dtype.kind in "iu" and probabilities.ndim >= 2 and known.shape == probabilities.shape[-2:-1]
    if not lawful or ((known < 0) | (known >= probabilities.shape[-1])).any():
        raise SettingsInvalid(
            f"probabilities of shape {probabilities.shape}, and classes of shape {known.shape} and type {known.dtype}.",
            remedy="Give (..., n, C), and n whole numbers from 0 to C - 1.",
        )
    at = np.broadcast_to(np.asarray(classes)[..., None], (*probabilities.shape[:-1], 1))
    own = np.take_along_axis(probabilities, at, -1)[..., 0]
    others = np.where(np.arange(probabilities.shape[-1]) == at, 0.0, probabilities).sum(-1)
    return np.asarray(np.log(np.maximum(own, FLOOR)) - np.log(np.maximum(others, FLOOR)))


def losses_of(confidences: Array) -> Array:
    """Cross-entropies of logit-scaled confidences, of the same shape."""
    return np.asarray(np.logaddexp(0.0, -np.asarray(confidences, float)))


def lira(
    target: Array,
    shadows: Array,
    members: Array,
    *,
    online: bool = True,
    variances: Variances | None = None,
) -> Array:
    """Likelihood ratios of membership (Carlini et al. 2022, Algorithm 1), of all records at once.

    Parameters
    ----------
    target : array of shape (n,)
        Confidences of the attacked model, logit-scaled.
    shadows : array of shape (m, n)
        Confidences of the shadow models in the same records.
    members : bool array of shape (m, n)
        Which shadow model was trained on which record.
    online : bool
        Compare models that saw a record with models that did not; otherwise the latter alone, so that shadows can be trained
        before the attacked records are known.
    variances : {"own", "pooled"}, optional
        Whether each record has variances of its own. By default where there are `LEAST_OWN` models of a kind on average, for
        each kind by itself.

    Returns
    -------
    array of shape (n,)
        Online the log likelihood ratio; offline by how many deviations the confidence is above that of models that did not see
        the record, in which the paper's one-sided test is increasing.

    Raises
    ------
    SettingsInvalid (HR-511)
        Shapes do not fit, or there are too few shadow models.

    Notes
    -----
    A record that no shadow model saw is given the mean of the others, moved by the average difference of both kinds; so is one
    that all saw.
    """
    target, shadows, members = _checked(target, shadows, members)
    if variances not in (None, "own", "pooled"):
        raise SettingsInvalid(f"variances is {variances!r}.", remedy='Give "own" or "pooled", or leave it out.')
    seen, unseen = _moments(shadows, members), _moments(shadows, ~members)
    both = (seen.counts > 0) & (unseen.counts > 0)
    if not (both.any() if online else unseen.counts.any()):
        raise SettingsInvalid(
            f"no record was seen by {'some shadow models and not by others' if online else 'fewer than all shadow models'}.",
            remedy="Train shadow models on parts of the records.",
        )
    gap = float((seen.means - unseen.means)[both].mean()) if both.any() else 0.0
    mean_out = np.where(unseen.counts > 0, unseen.means, seen.means - gap)
    if not online:
        return np.asarray((target - mean_out) / np.sqrt(unseen.variances(variances)))
    mean_in = np.where(seen.counts > 0, seen.means, unseen.means + gap)
    return _log_normal(target, mean_in, seen.variances(variances)) - _log_normal(target, mean_out, unseen.variances(variances))


class _Moments:
    """Means and variances of each record over the models of one kind."""

    def __init__(self, counts: Array, means: Array, squares: Array) -> None:
        self.counts, self.means, self.squares = counts, means, squares

    def variances(self, how: Variances | None) -> Array:
        """Unbiased: of each record, or one for all."""
        freedom = self.counts - 1
        pooled = self.squares.sum() / max(freedom[freedom > 0].sum(), 1)
        if not pooled > 0:
            raise SettingsInvalid(
                f"shadow models of one kind do not differ, or a record has at most {int(self.counts.max())} of them.",
                remedy="Train more shadow models, on parts of the records.",
            )
        own = how == "own" or (how is None and self.counts.mean() >= LEAST_OWN)
        if not own:
            return np.full(len(self.counts), pooled)
        found = np.where(freedom > 0, self.squares / np.maximum(freedom, 1), pooled)
        return np.asarray(np.maximum(found, 1e-6 * pooled))


def _moments(shadows: Array, chosen: Array) -> _Moments:
    counts = chosen.sum(0)
    means = np.where(chosen, shadows, 0.0).sum(0) / np.maximum(counts, 1)
    return _Moments(counts, means, np.where(chosen, (shadows - means) ** 2, 0.0).sum(0))


def _log_normal(x: Array, mean: Array, variance: Array) -> Array:
    return np.asarray(-0.5 * (x - mean) ** 2 / variance - 0.5 * np.log(variance))


def shadow_attack(target: Array, shadows: Array, members: Array, classes: Array, *, penalty: float = 1.0) -> Array:
    """Log odds of membership by an attack model for each class (Shokri et al. 2017), fitted on shadow models.

    Parameters
    ----------
    target, shadows, members
        As of `lira`.
    classes : array of shape (n,)
        The true class of each record.
    penalty : float
        Of the squared slopes of the logistic regressions.

    Returns
    -------
    array of shape (n,)
        Log odds; a class of which the shadow models know one kind alone is given those of all records.

    Raises
    ------
    SettingsInvalid (HR-511)
        Shapes do not fit, a class is NaN, the penalty is not above zero, or there are members alone or others alone.
    """
    target, shadows, members = _checked(target, shadows, members)
    classes = np.asarray(classes)
    if classes.shape != target.shape or (classes.dtype.kind == "f" and np.isnan(classes).any()):
        raise SettingsInvalid(
            f"classes of shape {classes.shape}, or some are NaN.", remedy="Give one class for each record, (n,)."
        )
    if not 0 < penalty < math.inf or members.all() or not members.any():
        raise SettingsInvalid(
            f"penalty is {penalty!r}, and of shadow models' records {int(members.sum())} of {members.size} are members.",
            remedy="Give a finite penalty above zero, and shadow models that saw some of the records and not others.",
        )
    whole = _fitted(shadows, members, penalty)
    scores = np.empty(len(target))
    for label in np.unique(classes):
        of = classes == label
        known = members[:, of]
        slopes = _fitted(shadows[:, of], known, penalty) if known.any() and not known.all() else whole
        scores[of] = _features(target[of]) @ slopes
    return scores


def _features(confidences: Array) -> Array:
    """What an attack model reads of confidences (...): shape (..., 3)."""
    values = np.asarray(confidences, float)
    return np.stack([np.ones_like(values), values / 10, losses_of(values)], -1)


def _fitted(shadows: Array, members: Array, penalty: float) -> Array:
    """Slopes of a logistic regression of membership, by Newton's method with halved steps.

    Confidences are rounded to 1 / `STEPS`, so that millions of them become some thousand counts.
    """
    places = np.rint(shadows * STEPS).astype(np.int64).ravel()
    first = int(places.min())
    every = np.bincount(places - first).astype(float)
    x = _features((np.arange(len(every)) + first) / STEPS)
    y = np.bincount((places - first)[members.ravel()], minlength=len(every)).astype(float)
    ridge = np.diag([1e-9, penalty, penalty])

    def cost(beta: Array) -> float:
        z = x @ beta
        return float((every * np.logaddexp(0.0, z) - y * z).sum() + 0.5 * beta @ ridge @ beta)

    beta, before = np.zeros(3), math.inf
    for _ in range(50):
        now = cost(beta)
        if before - now <= 1e-12 * abs(now):
            break
        p = 1 / (1 + np.exp(-np.clip(x @ beta, -500, 500)))
        slope, curvature = x.T @ (every * p - y) + ridge @ beta, (x * (every * p * (1 - p))[:, None]).T @ x + ridge
        step, before = np.linalg.solve(curvature, slope), now
        while cost(beta - step) > now and np.abs(step).max() > 1e-12:
            step = step / 2
        beta = beta - step
    return beta


def _checked(target: Array, shadows: Array, members: Array) -> tuple[Array, Array, Array]:
    target, shadows = np.asarray(target, float), np.asarray(shadows, float)
    members = np.asarray(members)
    fits = target.ndim == 1 and shadows.ndim == 2 and shadows.shape == members.shape and shadows.shape[1:] == target.shape
    if not fits or members.dtype != bool or shadows.shape[0] < 2 or not target.size:
        raise SettingsInvalid(
            f"confidences of shape {target.shape}, of shadow models of shape {shadows.shape}, and which saw which of shape "
            f"{members.shape} and type {members.dtype}.",
            remedy="Give (n,), (m, n) and booleans (m, n), of at least two shadow models.",
        )
    if not (np.isfinite(target).all() and np.isfinite(shadows).all()):
        raise SettingsInvalid("confidences are not finite.", remedy="Leave out records that lack a feature.")
    return target, shadows, members
