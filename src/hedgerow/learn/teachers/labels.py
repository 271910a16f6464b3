"""What PATE hands out: noisy votes on public inputs, and students that learn from them. All of it is post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from hedgerow.core.arrays import Array
from hedgerow.data import Schema, Table
from hedgerow.errors import SettingsInvalid

from .learners import Learner, Prediction, learner
from .pool import inputs_of
from .published import PublishedLabels, confident_gnmax, gnmax, lnmax
from .reads import Reads
from .spread import neighbour_graph, spread_votes


@dataclass(frozen=True, repr=False)
class Student:
    """A model that was taught by noisy votes on public inputs.

    Attributes
    ----------
    reads : Reads
    public : dict of arrays
        The basis of the public inputs, where there is one.
    schema : Schema
    prediction : callable
        From rows of numbers to scores of the classes.
    pool : array of int, shape (N,)
        Classes of the public inputs, from which it learnt.
    """

    reads: Reads
    public: dict[str, Array]
    schema: Schema
    prediction: Prediction
    pool: Array

    def scores(self, inputs: Any) -> Array:
        """Scores of the classes, shape (n, C), of a table or a data frame, with or without the target, or of an array (n, ...).

        Raises
        ------
        SettingsInvalid (HR-511)
            A value is missing, or an array has another shape than the features.
        """
        return np.asarray(self.prediction(self.reads.features(inputs_of(inputs, self.schema), self.public)))

    def predict(self, inputs: Any) -> Array:
        """Classes as the target's codes, shape (n,); inputs as of `scores`."""
        found: Array = self.scores(inputs).argmax(1)
        return found

    def accuracy(self, table: Any) -> float:
        """Share of the records of a table or a data frame of which the target is predicted."""
        table = Table.like(table, self.schema)
        return float((self.predict(table) == np.asarray(table[str(self.schema.target)]).astype(int)).mean())

    def __repr__(self) -> str:
        return f"Student(of {self.schema.target!r}, taught by {len(self.pool)} public inputs)"


@dataclass(frozen=True, repr=False)
class VotedLabels:
    """Noisy votes of teachers on public inputs.

    Attributes
    ----------
    votes : array of shape (q, C)
        Of the inputs that were asked, noise included.
    asked : array of int, shape (q,)
        Which inputs of the pool they are.
    pool : array of shape (N, ...)
        All public inputs, as a model reads them.
    sigma : float
        Standard deviation of the noise in each number; zero for exact votes.
    teachers : int
        Of all parties; in a cohort as many as are expected of it.
    reads : Reads
    schema : Schema
    epsilon, delta : float, optional
        The budget that was spent on the votes, whatever they are.
    """

    votes: Array
    asked: Array
    pool: Array
    sigma: float
    teachers: int
    reads: Reads
    schema: Schema
    epsilon: float | None = None
    delta: float | None = None

    @property
    def labels(self) -> Array:
        """The class with most votes, noise included, of each input that was asked: codes of the target, shape (q,)."""
        found: Array = self.votes.argmax(1)
        return found

    @property
    def sure(self) -> float:
        """Chance that the noisy maximum is the teachers' choice where all of them agree; it follows from public numbers.

        NaN where votes without noise are no whole numbers, so that something else has changed them.
        """
        if self.sigma == 0:
            return 1.0 if whole(self.votes) else math.nan
        return sureness(self.teachers, self.sigma, self.votes.shape[1])

    @property
    def features(self) -> dict[str, Array]:
        """`inputs`, rows of numbers of the pool (N, d), and their basis."""
        return self.reads.public(self.pool)

    def spread(self, graph: int = 10, *, keep: float = 0.98, rows: Array | None = None) -> Array:
        """Spread the votes over the nearest neighbours of the pool: scores (N, C); see `hedgerow.learn.teachers.spread`."""
        _check_graph(graph, keep)
        rows = self.features["inputs"] if rows is None else rows
        return spread_votes(neighbour_graph(rows, graph), self.votes, self.asked, self.teachers, keep=keep)

    def student(
        self,
        graph: int = 10,
        *,
        model: Learner | str | dict[str, Any] = "svm",
        keep: float = 0.98,
        rounds: int = 0,
        seed: int = 0,
    ) -> Student:
        """Teach a student.

        Parameters
        ----------
        graph : int
            Nearest neighbours over which votes are spread; 0 teaches by the inputs that were asked alone: by their whole votes
            where the model fits numbers by least squares (ridge, kernel), by the argmax of each otherwise.
        model : Learner, str or mapping
            What the student fits; see `hedgerow.learn.teachers.learners`.
        keep : float
            In [0, 1): how far votes are spread.
        rounds : int
            Of self-training: the student labels the pool by itself, and learns from that.
        seed : int
            Of the student's own randomness.
        """
        if graph:
            _check_graph(graph, keep)
        fits, public, classes = learner(model), self.features, self.votes.shape[1]
        rows, rng = public.pop("inputs"), np.random.default_rng(seed)
        if graph:
            pool = self.spread(graph, keep=keep, rows=rows).argmax(1)
            prediction = fits(rows, pool, rng, classes)
        else:
            prediction = fits(rows[self.asked], self.votes if fits.takes_votes else self.labels, rng, classes)
            pool = np.asarray(prediction(rows)).argmax(1)
        for _ in range(rounds):
            prediction = fits(rows, pool, rng, classes)
            pool = np.asarray(prediction(rows)).argmax(1)
        return Student(self.reads, public, self.schema, prediction, pool)

    # ---- as published ---------------------------------------------------------------------------------------------------
    def gnmax(self, sigma: float, *, delta: float = 1e-5, seed: int = 0) -> PublishedLabels:
        """The published GNMax on exact votes, in a simulation; see `hedgerow.learn.teachers.published`."""
        return gnmax(self._exact, sigma, delta=delta, seed=seed)

    def confident_gnmax(
        self, threshold: float, check: float, sigma: float, *, delta: float = 1e-5, seed: int = 0
    ) -> PublishedLabels:
        """The published Confident-GNMax on exact votes, in a simulation."""
        return confident_gnmax(self._exact, threshold, check, sigma, delta=delta, seed=seed)

    def lnmax(self, gamma: float, *, delta: float = 1e-5, seed: int = 0) -> PublishedLabels:
        """The published LNMax on exact votes, in a simulation."""
        return lnmax(self._exact, gamma, delta=delta, seed=seed)

    @property
    def _exact(self) -> Array:
        if self.sigma:
            raise SettingsInvalid(
                f"a published mechanism on votes behind noise of {self.sigma:.4g}.",
                remedy="It compares exact votes: ask without noise, in a simulation. For noisy votes take labels.student().",
            )
        return self.votes

    def __repr__(self) -> str:
        q, classes = self.votes.shape
        cost = "" if self.epsilon is None else f", epsilon {self.epsilon:g} whatever the votes are"
        noise = f"noise of {self.sigma:.4g} in each count" if self.sigma else "no noise"
        return (
            f"VotedLabels({q} of {len(self.pool)} public inputs, {classes} classes, {self.teachers} teachers, {noise}{cost}; "
            f"where all teachers agree the largest number is theirs with probability {self.sure:.3f})"
        )


def sureness(teachers: int, sigma: float, classes: int) -> float:
    """Chance that the largest of C noisy counts is the one that has all teachers, for Gaussian noise of deviation sigma."""
    z, weight = np.polynomial.hermite_e.hermegauss(80)
    passes = special.log_ndtr(teachers / sigma + z) * (classes - 1)
    return float(weight @ np.exp(passes) / weight.sum())


def whole(votes: Array) -> bool:
    """Whether votes are counts."""
    return bool((votes == np.rint(votes)).all())


def _check_graph(graph: int, keep: float) -> None:
    if graph < 1 or not 0 <= keep < 1:
        raise SettingsInvalid(f"graph={graph!r} with keep={keep!r}.", remedy="At least one neighbour, and a keep in [0, 1).")
