"""Learners: which model a teacher, or a student, fits. A party may have another one than its neighbours.

A learner is a marked function of numbers (n, d), classes 0 .. C-1 of shape (n,) and randomness, which returns a prediction:

    @hedgerow.travels
    def nearest_mean(X, y, rng, *, classes):
        means = np.stack([X[y == k].mean(0) if (y == k).any() else np.full(X.shape[1], 1e9) for k in range(classes)])
        return lambda new: -((new[:, None] - means) ** 2).sum(-1)

The prediction takes new rows (q, d) and gives scores (q, C), of which the largest is the vote. What is fitted stays at the
party. A function may work in place: `Learner` gives it copies, both to fit and to predict, since an array that two teachers
shared would carry the records of the first to the votes of the second. Nor may anything else: it keeps nothing from one call
for the next, and its randomness is `rng`.

    name          fits                                                                  settings
    ridge         least squares on indicators of the classes                            penalty
    kernel        the same of Gaussian kernels                                          penalty, width
    neighbours    the vote of the nearest records                                       k
    logistic      multinomial regression (scikit-learn)                                 cost
    svm           support vectors of Gaussian kernels (scikit-learn)                    cost, width
    tree, forest  CART, and bagged trees (scikit-learn)                                 depth, least, trees
    boosting      trees on what others leave (scikit-learn)                             rounds, rate, depth
    network       one hidden layer (torch), trained at the party                        hidden, steps, rate

Penalties and widths are of the mean squared length of the centred records that are learnt from, so that they suit any scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.columns import placed
from hedgerow.core.question import may_travel, travels
from hedgerow.errors import ModelInvalid, SettingsInvalid, suggestion

Prediction = Callable[[Array], Array]
"""New rows (q, d) to scores (q, C)."""


@travels
@dataclass(frozen=True)
class Learner:
    """What a teacher fits.

    Parameters
    ----------
    fit : callable
        `(X, y, rng, *, classes, **settings) -> prediction`, at the top of a module and marked
        (`hedgerow.travels`), so that parties elsewhere can be asked it by its name.
    settings : tuple of (name, value)
        Numbers and texts.
    """

    fit: Callable[..., Any]
    settings: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.fit) or not may_travel(self.fit) or hasattr(self.fit, "additive"):
            raise ModelInvalid(
                f"{getattr(self.fit, '__qualname__', self.fit)!r} is not marked as a learner.",
                remedy="Write @hedgerow.travels above the function.",
            )

    def __call__(self, X: Array, y: Array, rng: np.random.Generator, classes: int) -> Prediction:
        """Fit copies of what is given. Records of one class, or none, are nothing to fit: that class, or none, is predicted.

        A learner that `takes_votes` may be given whole votes (n, C) in the place of classes. The prediction is of copies too.
        """
        seen = np.unique(y) if y.ndim == 1 else None
        if seen is not None and len(seen) < 2:
            scores = np.bincount(seen, minlength=classes).astype(float)
            return lambda new: np.tile(scores, (len(new), 1))
        made: Prediction = self.fit(_copy(X), _copy(y), rng, classes=classes, **dict(self.settings))
        return lambda new: made(_copy(new))

    @property
    def takes_votes(self) -> bool:
        """Whether it fits numbers by least squares, so that noise of mean zero in its targets averages out."""
        return self.fit in (ridge, kernel)

    def votes(self, X: Array, y: Array, inputs: Array, rng: np.random.Generator, classes: int) -> Array:
        """Fit, and return the classes of inputs (q, d), shape (q,); -1 where a score is no number.

        Raises
        ------
        ModelInvalid (HR-510)
            The learner predicts something of another shape.
        """
        scores = np.asarray(self(X, y, rng, classes)(inputs))
        if scores.shape != (len(inputs), classes):
            raise self._unscored(scores, len(inputs), classes)
        found: Array = np.where(np.isnan(scores).any(1), -1, scores.argmax(1))
        return found

    def _unscored(self, scores: Array, q: int, classes: int) -> ModelInvalid:
        return ModelInvalid(
            f"{self} predicts {scores.dtype} of shape {scores.shape}.",
            remedy=f"A score, which is a number, for each of {classes} classes and each row: shape ({q}, {classes}).",
        )

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.settings)
        return f"{self.fit.__name__}({given})"


def learner(given: Learner | str | Mapping[str, Any], **settings: Any) -> Learner:
    """Return a learner by its name, and try it on a few made-up records.

    Parameters
    ----------
    given : Learner, str or mapping
        A name of `LEARNERS`; `package.module:function` of one's own; or a mapping with a key `name` and settings.
    **settings
        Of the learner.

    Raises
    ------
    SettingsInvalid (HR-511)
        There is no such name, or it does not take these settings; or a function or a model is given in the place of its name.
    ModelInvalid (HR-510)
        One's own function cannot be imported, is not marked, or predicts no scores.
    """
    if isinstance(given, Learner):
        made = given
        if settings:
            made = Learner(given.fit, tuple(sorted((dict(given.settings) | settings).items())))
    elif not isinstance(given, str | Mapping):
        raise SettingsInvalid(
            f"a learner is named; {getattr(given, '__qualname__', type(given).__name__)!r} is a {type(given).__name__}.",
            remedy="Write @hedgerow.travels above a function in a module, which may fit a model of scikit-learn, and give "
            f'its name, "package.module:function". Or take one of {", ".join(LEARNERS)}.',
        )
    else:
        named = {"name": given} if isinstance(given, str) else dict(given)
        found = _named(named.pop("name", ""))
        made = Learner(found, tuple(sorted((named | settings).items())))
    _try(made)
    return made


def _copy(array: Array) -> Array:
    return placed(np.array(array, order="C"))


def _named(name: str) -> Callable[..., Any]:
    if ":" not in name:
        if name not in LEARNERS:
            known = suggestion(name, list(LEARNERS))
            raise SettingsInvalid(f"no learner is called {name!r}.", remedy=f"{known} Or give package.module:function.")
        return LEARNERS[name]
    module, _, attribute = name.partition(":")
    try:
        found: Callable[..., Any] = getattr(import_module(module), attribute)
    except (ValueError, ImportError, AttributeError) as error:
        raise ModelInvalid(f"{name!r} cannot be imported: {error}.", remedy="Write it as package.module:function.") from error
    return found


def _try(made: Learner) -> None:
    """Fit made-up records: what fails whatever the records are fails here, and not at the parties, where it would be silent."""
    X, y = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12) % 3
    try:
        if (made.votes(X, y, X[:4], np.random.default_rng(0), 3) < 0).any():
            raise made._unscored(np.full((4, 3), np.nan), 4, 3)
    except ModelInvalid:
        raise
    except Exception as error:
        raise SettingsInvalid(f"{made} fails on made-up records: {error}", remedy="See the settings of the learner.") from error


# ---- in closed form -------------------------------------------------------------------------------------------------
@travels
def ridge(X: Array, y: Array, rng: Any, *, classes: int, penalty: float = 0.05) -> Prediction:
    """Least squares on indicators of the classes, by the smaller of two systems; penalty times the mean squared length."""
    _above_zero(penalty=penalty)
    middle, target = X.mean(0), _indicators(y, classes)
    Z = X - middle
    weight = penalty * max(float(np.vdot(Z, Z)) / len(Z), 1e-12)
    if len(Z) < Z.shape[1]:
        beta = Z.T @ np.linalg.solve(Z @ Z.T + weight * np.eye(len(Z)), target)
    else:
        beta = np.linalg.solve(Z.T @ Z + weight * np.eye(Z.shape[1]), Z.T @ target)
    return lambda new: (new - middle) @ beta + target.mean(0)


@travels
def kernel(X: Array, y: Array, rng: Any, *, classes: int, penalty: float = 0.02, width: float = 3.3) -> Prediction:
    """Kernel ridge regression on indicators, k(x, z) = exp(-|x - z|^2 / (width v)), v the records' mean squared length."""
    _above_zero(penalty=penalty, width=width)
    scale = width * spread_of(X)
    weights = np.linalg.solve(gaussian(X, X, scale) + penalty * np.eye(len(X)), _indicators(y, classes))
    return lambda new: gaussian(new, X, scale) @ weights


@travels
def neighbours(X: Array, y: Array, rng: Any, *, classes: int, k: int = 5) -> Prediction:
    """The nearest records vote, with weights that fall with their rank, so that ties are rare."""
    _above_zero(k=k)

    def predict(new: Array) -> Array:
        far, n = squared_distances(new, X), min(k, len(X))
        nearest = np.argpartition(far, n - 1, axis=1)[:, :n]
        order = np.argsort(np.take_along_axis(far, nearest, 1), axis=1, kind="stable")
        ranked = y[np.take_along_axis(nearest, order, 1)]
        return np.stack([((ranked == c) / (1 + 1e-3 * np.arange(n))).sum(1) for c in range(classes)], 1)

    return predict


def spread_of(X: Array) -> float:
    """Mean squared length of centred rows."""
    return max(float(X.var(0).sum()), 1e-12)


def squared_distances(A: Array, B: Array) -> Array:
    """Between rows (n, d) and (m, d): shape (n, m), none below zero."""
    found: Array = np.maximum((A * A).sum(1)[:, None] + (B * B).sum(1) - 2 * A @ B.T, 0.0)
    return found


def gaussian(A: Array, B: Array, scale: float) -> Array:
    """exp(-|a - b|^2 / scale), shape (n, m)."""
    return np.asarray(np.exp(squared_distances(A, B) / -scale))


def _indicators(y: Array, classes: int) -> Array:
    """Indicators of classes; whole votes, brought to a mean of zero at each input, are their own."""
    return np.eye(classes)[y] - 1 / classes if y.ndim == 1 else y - y.mean(1, keepdims=True)


# ---- of scikit-learn ------------------------------------------------------------------------------------------------
@travels
def logistic(X: Array, y: Array, rng: np.random.Generator, *, classes: int, cost: float = 1.0) -> Prediction:
    """Multinomial logistic regression of columns brought to their mean and deviation."""
    from sklearn.linear_model import LogisticRegression

    middle, scale = X.mean(0), np.maximum(X.std(0), 1e-9)
    made = LogisticRegression(C=cost, max_iter=2000).fit((X - middle) / scale, y)
    return lambda new: _all_classes(made, made.predict_proba((new - middle) / scale), classes)


@travels
def svm(X: Array, y: Array, rng: np.random.Generator, *, classes: int, cost: float = 3.0, width: float = 1.0) -> Prediction:
    """Support vector machine with Gaussian kernels, classes against each other."""
    from sklearn.svm import SVC

    _above_zero(cost=cost, width=width)
    made = SVC(C=cost, gamma=1 / (width * spread_of(X))).fit(X, y)
    return lambda new: np.eye(classes)[made.predict(new)]


@travels
def tree(X: Array, y: Array, rng: np.random.Generator, *, classes: int, depth: int | None = None, least: int = 2) -> Prediction:
    """A classification tree; `least` records to a leaf."""
    from sklearn.tree import DecisionTreeClassifier

    made = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=least, random_state=_state(rng)).fit(X, y)
    return lambda new: _all_classes(made, made.predict_proba(new), classes)


@travels
def forest(
    X: Array, y: Array, rng: np.random.Generator, *, classes: int, trees: int = 50, depth: int | None = None, least: int = 1
) -> Prediction:
    """A random forest."""
    from sklearn.ensemble import RandomForestClassifier

    made = RandomForestClassifier(trees, max_depth=depth, min_samples_leaf=least, random_state=_state(rng)).fit(X, y)
    return lambda new: _all_classes(made, made.predict_proba(new), classes)


@travels
def boosting(
    X: Array, y: Array, rng: np.random.Generator, *, classes: int, rounds: int = 30, rate: float = 0.2, depth: int = 3
) -> Prediction:
    """Gradient boosting of shallow trees on histograms."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    settings: dict[str, Any] = {"max_iter": rounds, "learning_rate": rate, "max_depth": depth, "min_samples_leaf": 5}
    made = HistGradientBoostingClassifier(**settings, early_stopping=False, random_state=_state(rng)).fit(X, y)
    return lambda new: _all_classes(made, made.predict_proba(new), classes)


def _all_classes(made: Any, found: Array, classes: int) -> Array:
    """Scores of the classes that were seen, among all of them."""
    scores = np.full((len(found), classes), -1.0)
    scores[:, np.asarray(made.classes_, int)] = found
    return scores


def _state(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


# ---- of torch -------------------------------------------------------------------------------------------------------
@travels
def network(
    X: Array, y: Array, rng: np.random.Generator, *, classes: int, hidden: int = 32, steps: int = 150, rate: float = 0.01
) -> Prediction:
    """One hidden layer of rectified units, trained by Adam on all records at once."""
    import torch
    from torch import nn

    _above_zero(hidden=hidden, steps=steps, rate=rate)
    middle, scale = X.mean(0), np.maximum(X.std(0), 1e-9)

    def tensor(of: Array) -> Any:
        return torch.from_numpy(np.ascontiguousarray((of - middle) / scale, np.float32))

    x, target = tensor(X), torch.from_numpy(np.asarray(y, np.int64))
    shapes = ((X.shape[1], hidden), (hidden,), (hidden, classes), (classes,))
    start = [rng.normal(size=one) * (2 / one[0]) ** 0.5 * (len(one) > 1) for one in shapes]
    W, b, V, c = (torch.tensor(one, dtype=torch.float32, requires_grad=True) for one in start)

    def scores(of: Any) -> Any:
        return torch.relu(of @ W + b) @ V + c

    descent = torch.optim.Adam([W, b, V, c], lr=rate, weight_decay=1e-4)
    with torch.enable_grad():
        for _ in range(steps):
            descent.zero_grad()
            nn.functional.cross_entropy(scores(x), target).backward()
            descent.step()

    def predict(new: Array) -> Array:
        with torch.no_grad():
            found: Array = scores(tensor(new)).numpy()
        return found

    return predict


def _above_zero(**settings: float) -> None:
    for name, value in settings.items():
        if not value > 0:
            raise SettingsInvalid(f"{name}={value!r} of a learner.", remedy=f"Give a {name} above zero.")


LEARNERS: dict[str, Callable[..., Any]] = {
    one.__name__: one for one in (ridge, kernel, neighbours, logistic, svm, tree, forest, boosting, network)
}
"""Learners by name."""
