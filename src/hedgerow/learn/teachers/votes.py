"""Votes: each shard of a party teaches a model of its own, and all that leaves is how many teachers vote for each class.

    party     deals its records to m shards, each record by a chance of its own                    stays
              shard s:  f_s <- learner(records of s)                                               stays
              V_k[i, c] <- how many of its f_s say class c of public input i                       (q, C)
    V         <- sum of V_k + noise

A record lies in one shard, so it decides over one teacher, whose row of q ones and q (C - 1) zeros may become any other such
row: in every query a one moves from one place to another, l2 sqrt(2), and sqrt(2 q) for q queries together; l1 2 q. That is so
where a record changes, and where there is one more or less: the number of teachers is public, a teacher without records votes
as well, and a record's shard depends on no other record. Were records dealt in equal parts, one record more would move others
between shards, and two teachers could change. Where a whole party may be absent, all of its m teachers' rows go: l2 m sqrt(q),
l1 m q.

So that this is true of every number that leaves:

    one-hot rows      are made of class numbers; a learner that fails, or returns nonsense, loses its own teacher's votes alone,
                      and one whose scores of some inputs are no numbers loses its votes on these
    no vote           of a shard without records is given to each class in turn, whatever the others hold
    randomness        of each teacher is a stream of its own, drawn before anything of the records is looked at
    no array          is shared by two teachers: learners get copies of the public inputs, and may work in place
    last bits         a teacher computes with its own records only, at places of their own in memory, and its features as well
    whole numbers     votes add up exactly, and noise is added on a grid of which one is a whole multiple

The chance by which records are dealt is the party's secret; the bound holds for each way of dealing, and so on the whole.
Where one person has records at c parties, or c records at one, c teachers may change: such data need c times the bound, or a
person in one record.

Source: Papernot et al. 2017 and 2018. Differs: shards by independent chance, so that the record is a unit in the sense of the
ledger.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound
from hedgerow.core.columns import placed
from hedgerow.core.events import Unit
from hedgerow.core.party import Party
from hedgerow.core.question import local, travels

from .learners import Learner
from .reads import Reads

log = logging.getLogger("hedgerow")

ALL = ""
"""In the place of a party's name: all that are not named."""


@travels
@dataclass(frozen=True)
class Teaching:
    """What every party does with its records.

    Parameters
    ----------
    reads : Reads
        How records become numbers.
    learners : tuple of (party, Learner)
        The name "" is that of all others.
    shards : tuple of (party, int)
    classes : int
    """

    reads: Reads
    learners: tuple[tuple[str, Learner], ...]
    shards: tuple[tuple[str, int], ...]
    classes: int

    def learner(self, party: str) -> Learner:
        found = dict(self.learners)
        return found.get(party) or found[ALL]

    def teachers(self, party: str) -> int:
        """Shards of a party, each with a teacher."""
        found = dict(self.shards)
        return found.get(party) or found[ALL]


@local(by_shard=True)
def teacher_votes(public: Mapping[str, Array], party: Party, rng: Any, *, teaching: Teaching) -> Array:
    """Train models on parts of the records, and count how many of them vote for each class of each public example.

    Parameters
    ----------
    public : dict of arrays
        `inputs`, the features (q, d) of the public inputs; and the basis of `Reads`, where there is one.
    party : Party
        With the columns that `hedgerow.learn.tensors.inputs_and_target` prepares.
    teaching : Teaching

    Returns
    -------
    array of shape (q, classes)
        Whole numbers, of which each row adds up to the number of the party's teachers.
    """
    m, inputs = teaching.teachers(party.id), np.asarray(public["inputs"])
    seeds = rng.integers(2**63, size=m)  # before anything of the records is known
    shard = dealt(rng, len(party.w), m)
    shard[~(party.w > 0)] = m  # left out
    votes = np.zeros((len(inputs), teaching.classes))
    for s in range(m):
        rows = np.flatnonzero(shard == s)
        votes[np.arange(len(inputs)), _vote(public, party, rows, int(seeds[s]), s, teaching)] += 1.0
    return votes


def dealt(rng: Any, n: int, shards: int) -> Array:
    """A shard for each of n records, by a chance that depends on no other record; shape (n,)."""
    found: Array = np.minimum((rng.random(n) * shards).astype(np.int64), shards - 1)
    return found


def _vote(public: Mapping[str, Array], party: Party, rows: Array, seed: int, number: int, teaching: Teaching) -> Array:
    """The classes (q,) for which one teacher votes; each class in turn without a model, and where its scores are no numbers."""
    inputs, classes = public["inputs"], teaching.classes
    none = (np.arange(len(inputs)) + number) % classes
    if len(rows):
        try:
            x = teaching.reads.features(placed(np.asarray(party["model_input"])[rows]), public)
            y = placed(np.asarray(party["model_target"])[rows].astype(np.int64))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = teaching.learner(party.id).votes(x, y, inputs, np.random.default_rng(seed), classes)
            return np.where((found >= 0) & (found < classes), found, none)
        except (Exception, SystemExit) as error:  # of one shard's records; the others' votes must not follow from it
            log.warning(
                "a teacher of %s has no model and votes for each class in turn: %s: %s", party.id, type(error).__name__, error
            )
    return none


def bound_of(q: int, most: int, unit: Unit, law: str | None) -> Bound:
    """By how much a unit moves the votes on q inputs: one teacher's row, or all rows of a party with at most so many teachers.

    In the norm of the noise: l1 for Laplace and geometric noise, l2 otherwise, rounded up.
    """
    if law in ("laplace", "geometric"):
        return Bound(1, float(2 * q if unit == "record" else most * q), unit)
    square = Fraction(2 * q if unit == "record" else most * most * q)
    length = math.sqrt(square)
    return Bound(2, length if Fraction(length) ** 2 >= square else math.nextafter(length, math.inf), unit)
