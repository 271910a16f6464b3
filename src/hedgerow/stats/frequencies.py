"""Frequencies of a column's levels from parties that trust nobody: each says something noisy about what it holds.

Asked once, it is an estimate. Asked for several epsilons and numbers of parties, it is a trial of an oracle: how the error
falls with both. Every question costs its own epsilon.

Releases : an unbiased estimate of each level's count among the parties asked; once for each question.
Unit     : party; neighbours are any two values. Of several records a party reports one, drawn at random.
Source   : see `hedgerow.privacy.local`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import l1
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.data import complete_cases, load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid

from .columns import COUNTED, chosen, levels_of, schema_of
from .counts import level_counts
from .frequency_results import outcome
from .oracles import OracleName, oracle_of


@displayed
@dataclass(frozen=True)
class FrequencyState:
    """Estimates of all questions so far.

    Attributes
    ----------
    epsilons, parties : arrays of shape (round,)
        Of each question: what it cost, and how many parties were asked.
    counts : array of shape (round, levels)
        Estimated number of parties that hold each level; may be below zero.
    """

    round: int
    epsilons: Array
    parties: Array
    counts: Array


@program(
    "Frequencies of levels by local reports, each noisy by itself.",
    outcome=outcome,
    with_records=True,
    case=lambda: Case(load("fair").take(range(200)), {"column": "occupation", "epsilon": 2.0, "epsilons": [1.0]}),
)
def frequencies(
    federation: Federation,
    column: str,
    *,
    oracle: OracleName = "optimised",
    epsilon: float = 1.0,
    parties: int | None = None,
    epsilons: Sequence[float] = (),
    numbers: Sequence[int] = (),
    hashes: int = 16,
    width: int = 256,
    bits: int = 64,
    cohorts: int = 8,
    start: FrequencyState | None = None,
) -> Iterator[FrequencyState]:
    """Ask parties what they hold, by local reports.

    Parameters
    ----------
    column : str
        A category or binary column.
    oracle : str
        k-ary: randomised response, for few levels; symmetric, optimised: unary encodings; rappor: Bloom filters;
        sketch, hadamard: private count-mean sketches.
    epsilon : float
        Of the first question.
    parties : int
        How many are asked, the first ones in the federation's order; all by default.
    epsilons : sequence of float
        Of further questions to as many parties.
    numbers : sequence of int
        Parties of further questions at the first epsilon.
    hashes, width : int
        Of a sketch: hash functions, and buckets of each.
    bits, cohorts : int
        Of a Bloom filter of two hash functions: its length, and the number of choices of hash functions.

    Yields
    ------
    FrequencyState

    Raises
    ------
    SettingsInvalid (HR-511)
        A number of parties below one, or beyond those that there are.
    BudgetInvalid (HR-214)
        An epsilon outside [1e-4, 20]; Bloom filters that cannot tell the levels apart.
    """
    [read] = chosen(schema_of(federation), [column], COUNTED)
    levels, n = len(levels_of(read)), federation.size
    federation = complete_cases(federation, [column], count=False)  # an exact count would not be private
    state = start or FrequencyState(0, np.zeros(0), np.zeros(0), np.zeros((0, levels)))
    asked = [(epsilon, parties or n), *((e, parties or n) for e in epsilons), *((epsilon, few) for few in numbers)]
    for _, few in asked:
        if few < 1 or (few > n and n > 1):  # one made-up party stands for all when a study is checked
            raise SettingsInvalid(f"{few} parties are to be asked, of {n}.", remedy=f"Give numbers from 1 to {n}.")
    for spent, few in asked[state.round :]:
        some = federation.pick(set(federation.names[:few])) if few < n else federation
        mechanism = oracle_of(oracle, spent, hashes=hashes, width=width, bits=bits, cohorts=cohorts)
        ask = partial(level_counts, sizes=((column, levels),))
        found = some.protect(clip=l1(1.0), mechanism=mechanism).sum(ask)[column]
        state = FrequencyState(
            state.round + 1,
            np.append(state.epsilons, spent),
            np.append(state.parties, min(few, n)),
            np.concatenate([state.counts, found[None]]),
        )
        yield state
