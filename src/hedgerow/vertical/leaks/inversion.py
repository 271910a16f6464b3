"""Feature inversion: what a label holder finds out about features from what feature holders send up.

    by ridge       activations of people whose features are known, from elsewhere, teach a linear map back to the features
    by openings    a linear predictor eta_t = X b_t, opened d times with coefficients that are known, is X
    by people      the same with coefficients that are secret, where the features of some people are known
    by rank        openings whose rows come in a fresh order each time, linked by the rank of their values

A result of the first kind stands beside its controls, in one value (`FeatureLeak`): the same attack on activations of other
people (rows put in another order), where nothing is to be found, and, where it was measured, on an untrained network of the
same shape. Distance correlation is given beside them and never instead: it ranks defences in another order than an attack does.

Releases : nothing by itself.
Unit     : record.
Source   : ridge regression as inverse, He, Zhang, Lee 2019 (ACSAC), in its simplest form; openings, Weng et al., "Privacy
           leakage of real-world vertical federated learning", 2020 (arXiv 2011.09290), and linear algebra.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import SettingsInvalid

Values = NDArray[np.float64]


@dataclass(frozen=True)
class FeatureLeak:
    """What an inversion recovers, beside its controls. Never the attack alone.

    Attributes
    ----------
    recovered : float
        Share of the features' variance, over all columns, of people who are not known; 0 is the mean of the known ones.
    shuffled : float
        The same where each of these people is given another one's activations: 0 or less.
    untrained : float
        The same of a network of this shape before training; NaN where it was not measured.
    dcor : float
        Distance correlation of features and activations; NaN where it was not measured.
    cut, known, people : int
        Width of the cut, people whose features are known, and people that are attacked.
    """

    recovered: float
    shuffled: float
    untrained: float
    dcor: float
    cut: int
    known: int
    people: int

    def __str__(self) -> str:
        return (
            f"{self.recovered:.3f} of the variance recovered through a cut of {self.cut} (other people's {self.shuffled:.3f})"
        )


PENALTIES = (0.3, 3.0, 30.0, 300.0)
"""Among which an attacker chooses."""

LEAST_SCALE = 0.1
"""Of the largest deviation of an activation: units that hardly ever fire among known people would else be blown up."""


def ridge_inverse(activations: Any, features: Any, penalty: float | None = None) -> tuple[Values, Values, Values]:
    """The linear map from activations, standardised by those of known people, to features: (centre, scale, map).

    Parameters
    ----------
    activations : array of shape (k, cut)
    features : array of shape (k, d)
    penalty : float, optional
        Of the ridge, also on the constant, as if each standardised activation were seen so many times more with features of 0.
        By default that of `PENALTIES` which recovers most of a fifth of the known people from the others.

    Returns
    -------
    arrays of shape (cut,), (cut,) and (cut + 1, d)
    """
    z, x = _matrix(activations), _matrix(features)
    if len(z) != len(x):
        raise SettingsInvalid(f"{len(z)} activations of {len(x)} people.", remedy="Give one row for each person in both.")
    if penalty is None:
        penalty = _best_penalty(z, x)
    centre, spread = z.mean(axis=0), z.std(axis=0)
    scale = np.maximum(spread, LEAST_SCALE * spread.max()) if spread.any() else np.ones_like(spread)
    design = _with_constant((z - centre) / scale)
    solved: Values = np.asarray(
        np.linalg.solve(design.T @ design + penalty * np.eye(design.shape[1]), design.T @ x), np.float64
    )
    return centre, scale, solved


def _best_penalty(z: Values, x: Values) -> float:
    """The penalty by which the first four fifths of known people tell most of the last one."""
    k = len(z) - len(z) // 5
    if k < 2 or k == len(z):
        return PENALTIES[-1]
    told = [variance_recovered(recovered_features(ridge_inverse(z[:k], x[:k], each), z[k:]), x[k:]) for each in PENALTIES]
    return PENALTIES[int(np.argmax(np.nan_to_num(told, nan=-np.inf)))]


def recovered_features(inverse: tuple[Values, Values, Values], activations: Any) -> Values:
    """Features of shape (n, d) that an inverse makes of activations of shape (n, cut)."""
    centre, scale, solved = inverse
    return _with_constant((_matrix(activations) - centre) / scale) @ solved


def variance_recovered(found: Any, features: Any, centre: Any = None) -> float:
    """1 - (squares of the error) / (squares about `centre`, by default the mean), summed over people and columns."""
    x = _matrix(features)
    about = x.mean(axis=0) if centre is None else np.asarray(centre, np.float64)
    whole = float(((x - about) ** 2).sum())
    return 1 - float(((_matrix(found) - x) ** 2).sum()) / whole if whole > 0 else math.nan


def feature_leak(
    known_activations: Any,
    known_features: Any,
    activations: Any,
    features: Any,
    *,
    penalty: float | None = None,
    untrained: tuple[Any, Any] | None = None,
    dcor: float = math.nan,
) -> FeatureLeak:
    """Invert activations by ridge from known people, and say what share of the others' variance comes back.

    Parameters
    ----------
    known_activations, known_features : arrays of shape (k, cut) and (k, d)
        Of people whose features the attacker knows.
    activations, features : arrays of shape (n, cut) and (n, d)
        Of the people that are attacked; none of them may be among the known ones.
    penalty : float, optional
        As of `ridge_inverse`.
    untrained : pair of arrays of shape (k, cut) and (n, cut), optional
        What an untrained network of the same shape makes of the same people.
    dcor : float
        Distance correlation, to be carried along (`distance_correlation`).
    """
    z, x, centre = _matrix(activations), _matrix(features), _matrix(known_features).mean(axis=0)
    inverse = ridge_inverse(known_activations, known_features, penalty)
    before = math.nan
    if untrained is not None:
        first = ridge_inverse(untrained[0], known_features, penalty)
        before = variance_recovered(recovered_features(first, untrained[1]), x, centre)
    return FeatureLeak(
        recovered=variance_recovered(recovered_features(inverse, z), x, centre),
        shuffled=variance_recovered(recovered_features(inverse, np.roll(z, max(1, len(z) // 2), axis=0)), x, centre),
        untrained=before,
        dcor=float(dcor),
        cut=z.shape[1],
        known=len(_matrix(known_features)),
        people=len(x),
    )


# ---- linear predictors that are opened again and again --------------------------------------------------------------------
def columns_from_openings(openings: Any, coefficients: Any) -> Values:
    """Columns of shape (n, d) from T openings of X b_t, shape (T, n), whose coefficients, shape (T, d), are known.

    With T >= d independent coefficients they are X itself; with fewer, the columns of least length that fit.
    """
    eta, b = _matrix(openings), _matrix(coefficients)
    if len(eta) != len(b):
        raise SettingsInvalid(f"{len(eta)} openings of {len(b)} coefficients.", remedy="Give one row for each opening in both.")
    return np.asarray(np.linalg.lstsq(b, eta, rcond=None)[0].T, np.float64)


def columns_from_people(openings: Any, known: Any, features: Any) -> Values:
    """Columns of shape (n, d) from T openings, shape (T, n), of secret coefficients, where some people's features are known.

    Parameters
    ----------
    known : integer array of shape (k,)
        Which rows are known.
    features : array of shape (k, d)
        Theirs. With T = d and k >= d independent rows the others' are exact, whatever the coefficients were.
    """
    eta = _matrix(openings).T
    found: Values = eta @ np.linalg.lstsq(eta[np.asarray(known)], _matrix(features), rcond=None)[0]
    return found


def linked_by_rank(openings: Any) -> Values:
    """Share of people who have the same rank in each opening and the next, shape (T - 1,).

    Parameters
    ----------
    openings : array of shape (T, n)
        With rows in one order, which the hub does not see. It sees each opening in another order, so that it can sort them
        alone; a person who keeps the rank is linked by that.
    """
    place = np.argsort(_matrix(openings), axis=1, kind="stable")
    shares: Values = (place[1:] == place[:-1]).mean(axis=1)
    return shares


def columns_by_rank(openings: Any, coefficients: Any) -> Values:
    """Columns of shape (n, d), people in order of rank, from openings that each came in an order of its own.

    Every opening is sorted, and rows of equal rank are taken for one person. Right where `linked_by_rank` is 1: near the end
    of a fit, and always where a fit is repeated from its optimum.
    """
    return columns_from_openings(np.sort(_matrix(openings), axis=1), coefficients)


def _matrix(given: Any) -> Values:
    array = np.asarray(given, np.float64)
    if array.ndim < 2:
        raise SettingsInvalid(f"an array of shape {array.shape}.", remedy="Give one row for each person or opening.")
    return array.reshape(len(array), -1)


def _with_constant(rows: Values) -> Values:
    return np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
