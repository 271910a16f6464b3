"""RAPPOR for repeated questions: a party remembers a permanent answer, and every report is a noisy copy of it.

    permanent       each bit of the value's Bloom filter is replaced with chance f, by a fair coin; drawn once and kept
    instantaneous   in each report a bit is set with chance q where the permanent bit is, and p where it is not

However often a party reports, its reports tell no more than the permanent answer, which is

    epsilon(forever) = 2 h ln((1 - f/2) / (f/2))         one report: epsilon(once) = h ln(q* (1 - p*) / (p* (1 - q*)))

private, with h hash functions, q* = f (p + q) / 2 + (1 - f) q and p* = f (p + q) / 2 + (1 - f) p. Charged is
epsilon(forever), with the first question; the others cite it.
What makes that right is kept by the party: it remembers the value that it had at first, and counts its reports; who has
nothing to remember, or has made all its reports, answers later questions by noise alone.

Releases : for each cohort of hash functions, reports and how often each bit was set; once for each question.
State    : the permanent answer, its cohort, and the number of reports made.
Unit     : party; neighbours are any two values. Of several records one is drawn.
Source   : Erlingsson, Pihur, Korolova 2014, sections 2 to 4. Differs: cohorts are drawn by the parties; the lasso is
           non-negative and its penalty the universal threshold of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.core.events import Event, Unit
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Plan
from hedgerow.core.party import Party
from hedgerow.core.question import elementwise, local, travels
from hedgerow.errors import BudgetInvalid

from .bloom import Bloom, BloomScheme
from .chance import WORD, checked, draw, uniform_index, unit_interval
from .scheme import Floats


@dataclass(frozen=True)
class Permanent(Plan):
    """RAPPOR with memory, as a plan of what parties say and what it costs.

    Parameters
    ----------
    bloom : Bloom
        The filters.
    f : float
        Chance with which a permanent bit is a coin, in (0, 1].
    p, q : float
        Chances with which a report sets a bit that is not, or is, set in the permanent answer; p < q.
    reports : int
        That a party makes at most.
    use : int
        Number of this question, from zero.
    """

    bloom: Bloom = field(default_factory=Bloom)
    f: float = 0.5
    p: float = 0.5
    q: float = 0.75
    reports: int = 1000
    use: int = 0

    unit: ClassVar[Unit] = "party"

    def __post_init__(self) -> None:
        if not (0 < self.f <= 1 and 0 <= self.p < self.q <= 1 and isinstance(self.reports, int) and self.reports >= 1):
            raise BudgetInvalid(
                f"RAPPOR with f={self.f!r}, p={self.p!r}, q={self.q!r} and {self.reports!r} reports.",
                remedy="For example f=0.5, p=0.5, q=0.75: f in (0, 1], p below q, both in [0, 1], and at least one report.",
            )
        if self.f < 1:
            checked(self.epsilon)

    @property
    def forever(self) -> float:
        """Epsilon of all reports that will ever be made."""
        return 2 * self.bloom.hashes * math.log((1 - self.f / 2) / (self.f / 2))

    @property
    def once(self) -> float:
        """Epsilon of one report."""
        set_, unset = self.chances
        if unset == 0 or set_ == 1:
            return self.forever
        return self.bloom.hashes * math.log(set_ * (1 - unset) / (unset * (1 - set_)))

    @property
    def epsilon(self) -> float:
        """Epsilon of all reports that the plan allows."""
        return min(self.forever, self.reports * self.once)

    @property
    def chances(self) -> tuple[float, float]:
        """With which one report sets a bit that the value sets, and one that it does not: q* and p*."""
        coin = self.f * (self.p + self.q) / 2
        return coin + (1 - self.f) * self.q, coin + (1 - self.f) * self.p

    @property
    def words(self) -> tuple[int, int, int]:
        """Chances of a permanent flip, and of an instantaneous bit that is set or not, of 2^64; flips are not fewer."""
        flip = min(math.ceil(Fraction(self.f) / 2 * WORD), WORD // 2)
        set_, unset = (min(int(Fraction(chance) * WORD), WORD - 1) for chance in (self.q, self.p))
        return flip, set_, unset

    @property
    def key(self) -> str:
        return f"RAPPOR({self.bloom!r}, {self.f!r}, {self.p!r}, {self.q!r}, {self.reports})"

    @property
    def covered(self) -> bool:
        """Whether an earlier question was charged for all reports."""
        return self.use > 0

    def event(self) -> Event:
        """The cost of all reports: what a party pays that has not paid for the column that is asked.

        It is that of reports without end, even where fewer were agreed, since a party may forget that it made one: a question
        asked aside, an answer that came too late, a run that was resumed.
        """
        return Event("pure", epsilon=math.nextafter(self.forever, math.inf))

    def scheme(self, levels: int) -> BloomScheme:
        """The reports of one question, as far as their totals are concerned."""
        set_, unset = (round(Fraction(chance) * WORD) for chance in self.chances)
        return BloomScheme(self.bloom.filters(levels), set_, unset)

    def __str__(self) -> str:
        return f"RAPPOR with memory (f={self.f:g}, p={self.p:g}, q={self.q:g}, at most {self.reports} reports)"


@elementwise
@local(stackable=True, private="plan")  # type: ignore[untyped-decorator]
def report(broadcast: None, party: Party, rng: Any, *, plan: Permanent, column: str, levels: int) -> dict[str, Array]:
    """Report once: bits set by cohort, of shape (..., cohorts, bits), and reports by cohort."""
    stacked = party.w.ndim == 2
    sources = [one.bytes for one in rng] if stacked else [rng.bytes]
    held, w = (np.atleast_2d(np.asarray(part)) for part in (party[column], party.w))
    bits, parties, bloom = plan.bloom.bits, len(sources), plan.bloom
    state: dict[str, Any] = no_memory(None, party, plan=plan, column=column) | party.state
    memory: dict[str, Any] = {key: np.asarray(state[name]) for key, name in names(plan, column).items()}
    lead = {"bits": (parties, bits), "cohort": (parties,), "made": (parties,)}
    memory = {key: np.broadcast_to(value, lead[key]) for key, value in memory.items()}
    words = draw(sources.__getitem__, range(parties), 2 + 2 * bits)
    flip, set_, unset = (np.uint64(chance) for chance in plan.words)

    new, remembers = (memory["made"] == 0) & (plan.use == 0), memory["made"] > 0
    value = _one_of(held.astype(np.int64), w, words[:, 0], levels)
    value = np.where(new, value, levels)
    cohort = np.where(remembers, memory["cohort"].astype(np.int64), uniform_index(words[:, 1], bloom.cohorts))
    wanted = bloom.filters(levels).set_bits[cohort, np.minimum(value, levels - 1)] & (value < levels)[:, None]
    nothing = np.zeros_like(wanted)
    flips = words[:, 2 : 2 + bits] < flip
    spent = (memory["made"] >= plan.reports)[:, None]
    permanent = np.where(remembers[:, None] & ~spent, memory["bits"].astype(bool), np.where(spent, nothing, wanted) ^ flips)

    says = words[:, 2 + bits :] < np.where(permanent, set_, unset)
    kept: dict[str, Any] = {
        "bits": np.where(new[:, None], permanent, memory["bits"]).astype(np.int8),
        "cohort": np.where(new, cohort, memory["cohort"]).astype(np.int32),
        "made": np.where(new | remembers, memory["made"] + 1, 0).astype(np.int64),
    }
    for key, now in kept.items():
        party.state[names(plan, column)[key]] = now if stacked else now[0]
    ones, n = np.zeros((parties, bloom.cohorts, bits)), np.zeros((parties, bloom.cohorts))
    ones[np.arange(parties), cohort], n[np.arange(parties), cohort] = says, 1.0
    return {"ones": ones if stacked else ones[0], "n": n if stacked else n[0]}


@travels
def no_memory(broadcast: None, party: Party, *, plan: Permanent, column: str) -> dict[str, Any]:
    """The state of a party that was never asked."""
    name = names(plan, column)
    return {name["bits"]: np.zeros(plan.bloom.bits, np.int8), name["cohort"]: np.int32(0), name["made"]: np.int64(0)}


def names(plan: Permanent, column: str) -> dict[str, str]:
    """Under which names a party keeps its answer."""
    about = f"of {column}, {plan.bloom}, f={plan.f!r}"
    return {key: f"rappor {key} {about}" for key in ("bits", "cohort", "made")}


def _one_of(held: Array, w: Array, words: Array, levels: int) -> Array:
    """The level of one record of each party, drawn by weight; nothing where there is none."""
    total = np.maximum(w, 0).cumsum(1)
    place = (total <= unit_interval(words)[:, None] * total[:, -1:]).sum(1).clip(0, held.shape[1] - 1)
    found: Array = held[np.arange(len(held)), place]
    return np.where((total[:, -1] > 0) & (found >= 0) & (found < levels), found, levels)


@dataclass(frozen=True)
class Collected:
    """Totals of all reports so far.

    Attributes
    ----------
    ones : array of shape (cohorts, bits)
        How often each bit was set.
    n : array of shape (cohorts,)
        Reports of each cohort.
    """

    round: int
    ones: Array
    n: Array


def collect(
    federation: Federation, column: str, levels: int, plan: Permanent, rounds: int, *, start: Collected | None = None
) -> Iterator[Collected]:
    """Ask for reports about one column, several times.

    Parameters
    ----------
    column : str
        Holds levels, counted from zero.
    levels : int
        How many there are.
    plan : Permanent
        What parties say; it allows as many reports as there are rounds.
    rounds : int

    Raises
    ------
    BudgetInvalid (HR-214)
        More rounds than the plan allows.
    """
    if rounds > plan.reports:
        raise BudgetInvalid(f"{rounds} rounds of {plan}.", remedy=f"Allow them: reports={rounds}.")
    state = start or Collected(0, np.zeros((plan.bloom.cohorts, plan.bloom.bits)), np.zeros(plan.bloom.cohorts))
    for use in range(state.round, rounds):
        ask = partial(report, plan=replace(plan, use=use), column=column, levels=levels)
        found = federation.sum(ask, init=partial(no_memory, plan=plan, column=column))
        state = Collected(use + 1, state.ones + found["ones"], state.n + found["n"])
        yield state


@dataclass(frozen=True)
class Decoded:
    """Levels that were found.

    Attributes
    ----------
    levels : array of int
        Those that the lasso chose.
    counts, errors : arrays
        Parties that hold each, and the standard error of that by the noise of the reports alone.
    sure : array of bool
        Whether it is above zero at 5 percent, over all levels together (Bonferroni).
    """

    levels: Array
    counts: Floats
    errors: Floats
    sure: Array


def decode(plan: Permanent, state: Collected, levels: int) -> Decoded:
    """Choose the levels that occur by a lasso, and count them by least squares.

    There may be far more levels than bits in all cohorts, as long as few of them are frequent.
    """
    scheme = plan.scheme(levels)
    seen = np.concatenate([state.ones, state.n[:, None]], axis=1) / state.round
    y = scheme.expected(seen)
    q, p = scheme.truth / WORD, scheme.other / WORD
    n = np.repeat(seen[:, -1], plan.bloom.bits)
    share = np.clip(seen[:, :-1].ravel() / np.maximum(n, 1), 0, 1)
    noise = np.sqrt(np.maximum(n * share * (1 - share), 1)) / (q - p)  # of one report; a mean of several has no more
    design = scheme.filters.design / plan.bloom.cohorts / noise[:, None]
    found = lasso(design, y / noise, math.sqrt(2 * math.log(max(levels, 2))))
    chosen = np.flatnonzero(found > 0)
    inverse = np.linalg.pinv(design[:, chosen].T @ design[:, chosen])
    counts = inverse @ design[:, chosen].T @ (y / noise)
    errors = np.sqrt(np.diag(inverse))
    sure = levels * (1 - scipy.special.ndtr(counts / np.maximum(errors, 1e-300))) < 0.05
    return Decoded(chosen, counts, errors, sure)


def lasso(design: Floats, y: Floats, penalty: float, steps: int = 2000) -> Floats:
    """Minimise |y - X b|^2 / 2 + penalty * sum_j |x_j| b_j over b >= 0, by accelerated proximal gradient."""
    lengths = np.linalg.norm(design, axis=0)
    scaled = design / np.maximum(lengths, 1e-300)
    gram, target = scaled.T @ scaled, scaled.T @ y - penalty
    rate = 1 / np.linalg.eigvalsh(gram)[-1]
    b = ahead = np.zeros(len(target))
    momentum = 1.0
    for _ in range(steps):
        new = np.maximum(ahead - rate * (gram @ ahead - target), 0.0)
        faster = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead, moved = new + (momentum - 1) / faster * (new - b), np.abs(new - b).max()
        b, momentum = new, faster
        if moved < 1e-9 * (1 + np.abs(b).max()):
            break
    found: Floats = b / np.maximum(lengths, 1e-300)
    return found
