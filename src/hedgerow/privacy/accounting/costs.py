"""Charges as accountants see them: mechanisms at a sampling rate, each with the number of its uses.

How a cohort was drawn decides what its events cost:

    all      the events as they are
    part     the same: to which group a party belongs follows from its own name, and nobody is pushed out of one
    poisson  several Gaussians are one with z = (sum of z_i^-2)^(-1/2); one use of one mechanism is amplified by the
    records  sampling rate, times its own; several mechanisms stay together in a `Batch`, amplified as a whole
    fixed    a new party can push another out of a cohort of fixed size, so the sum moves by twice its bound, and no
             amplification is claimed, that inside a release included
    given    at a public schedule neighbours differ in what one party contributes, which moves the sum by twice its bound

That is for units that are drawn themselves. Of a record at a party that is drawn the ledger hands over what counts
(`Sampling.as_charged`): everybody, whatever the sample of parties.

Twice the bound halves the multiplier of a noise. For a mechanism known by its epsilon it is the privacy of a group of two.

Where a cohort was divided into parts by the names of parties, a unit is in one part, which no data decide. All other parts
answer alike whether it is there or not, also where later questions follow from earlier answers. So what is released of all
parts is as private as what is released of the dearest one (parallel composition, McSherry 2009). `dearest` is a list of uses
that holds, use by use, at least what each part's list holds: exactly one part's, where parts were asked the same. It is no
mean or maximum of epsilons, so any accountant composes it with everything else.

That is for neighbours of which one has a unit more (`add-remove`). Where one unit is exchanged for another (`replace-one`),
the sum always moves by twice its bound. A cohort of fixed size then amplifies one use of one mechanism, as nobody is pushed
out; Poisson sampling is not amplified: its theorems are about a unit more. Parts are then charged as if they overlapped, and
so are parts of a cohort of fixed size: two units may change at once, in two parts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from copy import copy
from typing import Literal, NamedTuple, get_args

from hedgerow.core.events import Charge, Event, Kind, Parts, Sampling
from hedgerow.errors import BudgetInvalid, suggestion

Adjacency = Literal["add-remove", "replace-one"]

NO_NOISE = 1e-6  # a smaller noise multiplier counts as none


class Use(NamedTuple):
    """One use of a mechanism on a sample of the units. A value without noise is a Gaussian of multiplier 0.

    The sample is Poisson, or of fixed size, without replacement, where neighbours exchange a unit (`exchanged`).
    """

    kind: Kind
    noise_multiplier: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0
    steps: float = 0.0
    rate: float = 1.0
    exchanged: bool = False

    @property
    def open(self) -> bool:
        """Whether it protects nothing."""
        return self.kind in ("gaussian", "laplace", "skellam") and self.noise_multiplier < NO_NOISE

    @property
    def pure(self) -> float:
        """The epsilon at which it is private but for its `leak`; infinity for Gaussian and Skellam noise."""
        if self.kind in ("gaussian", "skellam"):
            return math.inf
        return amplified(1 / self.noise_multiplier if self.kind == "laplace" else self.epsilon, self.rate)

    @property
    def leak(self) -> float:
        """The probability with which it may reveal the unit, where that is part of its definition."""
        return self.rate * self.delta


class Batch(NamedTuple):
    """Several uses on one and the same Poisson sample of the units."""

    rate: float
    uses: tuple[tuple[Use, int], ...]

    @property
    def open(self) -> bool:
        return any(use.open for use, _ in self.uses)

    @property
    def pure(self) -> float:
        return amplified(math.fsum(count * use.pure for use, count in self.uses), self.rate)

    @property
    def leak(self) -> float:
        return self.rate * math.fsum(count * use.leak for use, count in self.uses)


Cost = Use | Batch
Costs = tuple[tuple[Cost, int], ...]


def as_one_gaussian(uses: Iterable[tuple[Use, int]]) -> list[tuple[Use, int]]:
    """Return the uses with all Gaussians that are not sampled as the one release that tells as much."""
    plain: list[tuple[Use, int]] = []
    rest: list[tuple[Use, int]] = []
    for use, count in uses:
        (plain if use.kind == "gaussian" and use.rate == 1 else rest).append((use, count))
    if not plain:
        return rest
    if any(use.open for use, _ in plain):
        return [*rest, (Use("gaussian", 0.0), 1)]
    z = math.fsum(count / use.noise_multiplier**2 for use, count in plain) ** -0.5
    return [*rest, (Use("gaussian", z), 1)]


def amplified(epsilon: float, rate: float) -> float:
    """Return ln(1 + q (e^epsilon - 1)), the pure epsilon on a sample (Balle, Barthe & Gaboardi 2018, Theorems 8 and 9).

    Theorem 8 is for Poisson samples and a unit more, Theorem 9 for samples without replacement and an exchanged unit.
    """
    if rate == 1 or epsilon > 700:  # beyond that the exponential overflows, and the unsampled epsilon is a bound too
        return epsilon
    return math.log1p(rate * math.expm1(epsilon))


def costs(charges: Iterable[Charge], adjacency: Adjacency = "add-remove") -> Costs:
    """Return every mechanism of `charges` with the number of its uses; equal ones are counted, so rounds are cheap.

    Raises
    ------
    BudgetInvalid (HR-214)
        A number of an event or a sampling rate is out of its range, or the kind of an event or a sampling is unknown.
    """
    counts: Counter[Cost] = Counter()
    for (sampling, events), times in Counter(charges).items():
        for cost, count in CohortCost(sampling, adjacency, events).costs().items():
            counts[cost] += times * count
    return in_order(counts)


def in_order(counts: Mapping[Cost, int]) -> Costs:
    """Return counted mechanisms in the one order in which they are priced, so that sums are rounded alike."""
    return tuple(sorted(counts.items(), key=repr))


class CohortCost:
    """What was released from one cohort; it never changes, so that many can share one.

    Attributes
    ----------
    additive : bool
        Whether each of its events costs what it would cost alone.
    """

    __slots__ = ("_disjoint", "_doubled", "_parts", "_rate", "_uses")

    def __init__(self, sampling: Sampling, adjacency: Adjacency, events: Iterable[Event | Parts] = ()) -> None:
        self._rate, self._doubled = _drawn(sampling, adjacency)
        self._disjoint = adjacency == "add-remove" and sampling.kind != "fixed"
        self._uses: Counter[Use] = Counter()
        self._parts: dict[Hashable, dict[int, Counter[Use]]] = {}
        for place, event in enumerate(events):
            if isinstance(event, Event):
                self._add(event, None)
                continue
            for index, one in enumerate(event.events):
                for inner in one:
                    self._add(inner, (place, index))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CohortCost) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    @property
    def additive(self) -> bool:
        return self._rate == 1 and not self._parts

    def plus(self, event: Event, part: tuple[Hashable, int] | None = None) -> CohortCost:
        """Return the cohort with one more event, of all of it or of a part of a partition."""
        cohort = copy(self)
        cohort._uses, cohort._parts = Counter(self._uses), dict(self._parts)
        if part is not None and part[0] in cohort._parts:
            of = cohort._parts[part[0]]
            cohort._parts[part[0]] = of | {part[1]: Counter(of.get(part[1]))}
        cohort._add(event, part)
        return cohort

    def costs(self) -> Counter[Cost]:
        """Return its mechanisms with the number of their uses, as its sampling amplifies them."""
        rate, doubled, inside = self._rate, self._doubled, Counter(self._uses)
        for parts in self._parts.values():
            inside.update(dearest(parts.values()))
        if rate == 1:
            return Counter[Cost](inside)
        uses = Counter(dict(as_one_gaussian(inside.items())))
        if len(uses) == 1 and uses.total() == 1:
            (use,) = uses
            return Counter[Cost]({use._replace(rate=rate * use.rate, exchanged=doubled): 1})
        if doubled:  # composed uses of a sample of fixed size are not amplified
            return Counter[Cost](uses)
        return Counter[Cost]({Batch(rate, tuple(sorted(uses.items()))): 1} if uses else {})

    def _add(self, event: Event, part: tuple[Hashable, int] | None) -> None:
        use, into = _use(event), self._uses
        if use is None:
            return
        if part is not None and self._disjoint:
            into = self._parts.setdefault(part[0], {}).setdefault(part[1], Counter())
        into[_doubled(use) if self._doubled else use] += event.count


def dearest(parts: Iterable[Counter[Use]]) -> Counter[Use]:
    """Return the least list of uses that holds, use by use, one at least as strong for each use of each part.

    Of one kind at one rate, less noise or more epsilon is stronger: the weaker can be computed from the stronger, by adding
    noise. Skellam noise stands for itself alone.
    """
    lists, found = list(parts), Counter[Use]()
    families: dict[Hashable, list[Use]] = {}
    for use in {use for uses in lists for use in uses}:
        alone = use if use.kind == "skellam" else use._replace(noise_multiplier=0.0, epsilon=0.0)
        families.setdefault(alone, []).append(use)
    for uses in families.values():
        held, most = [0] * len(lists), 0
        for use in sorted(uses, key=lambda use: (use.noise_multiplier, -use.epsilon)):
            held = [n + of[use] for n, of in zip(held, lists, strict=True)]
            if max(held) > most:
                found[use], most = max(held) - most, max(held)
    return found


def _drawn(sampling: Sampling, adjacency: Adjacency) -> tuple[float, bool]:
    """Return the rate of a sample that amplifies, else 1, and whether neighbours are two units apart."""
    known = ("all", "poisson", "records", "fixed", "given", "part", "dealt")
    if sampling.kind not in known:
        raise BudgetInvalid(f"no sampling is called {sampling.kind!r}", remedy=suggestion(sampling.kind, known))
    if sampling.kind != "part" or sampling.rate:  # a group to which no name was drawn has rate 0, and costs what any group does
        refuse_rate(sampling.rate)
    if adjacency == "replace-one":
        return sampling.rate if sampling.kind == "fixed" else 1.0, True
    return sampling.rate if sampling.kind in ("poisson", "records") else 1.0, sampling.kind in ("fixed", "given", "dealt")


def _use(event: Event) -> Use | None:
    """Return the event as a use, checked; `None` where it costs nothing."""
    known = get_args(Kind)
    if event.kind not in known:
        raise BudgetInvalid(f"no event is called {event.kind!r}", remedy=suggestion(event.kind, known))
    if event.kind == "none":
        return None
    if event.open:
        return Use("gaussian", 0.0)
    if not 0 <= event.noise_multiplier < math.inf:
        raise BudgetInvalid(
            f"noise multiplier {event.noise_multiplier:g} is not a finite number from 0 on",
            remedy="It is the scale of the noise over the radius of the bound.",
        )
    if event.kind == "skellam" and not 0 < event.steps < math.inf:
        raise BudgetInvalid(
            f"Skellam noise of {event.steps:g} grid steps is not accounted for: its law depends on the grid",
            remedy="Give `steps`, the standard deviation in steps of the integer grid.",
        )
    if event.kind in ("pure", "exponential") and not 0 < event.epsilon < math.inf:
        raise BudgetInvalid(
            f"epsilon {event.epsilon:g} of a {event.kind!r} event is not a finite number above 0",
            remedy="Say 'nonprivate' for what is not protected, and 'none' for what releases nothing.",
        )
    if event.kind == "approximate" and not (0 <= event.epsilon < math.inf and 0 < event.delta < 1):
        raise BudgetInvalid(
            f"an 'approximate' event of epsilon {event.epsilon:g} and delta {event.delta:g} is out of range",
            remedy="Epsilon is finite and at least 0, delta between 0 and 1; without a delta say 'pure'.",
        )
    if event.count < 1 or event.count != int(event.count):
        raise BudgetInvalid(f"{event.count:g} uses of a mechanism cannot be counted", remedy="Use a whole number from 1 on.")
    refuse_rate(event.rate)
    known_by = {"pure": (0.0, event.epsilon), "exponential": (0.0, event.epsilon), "approximate": (0.0, event.epsilon)}
    noise, epsilon = known_by.get(event.kind, (event.noise_multiplier, 0.0))
    delta = event.delta if event.kind == "approximate" else 0.0
    return Use(event.kind, noise, epsilon, delta, event.steps if event.kind == "skellam" else 0.0, event.rate)


def _doubled(use: Use) -> Use:
    """Return the use for neighbours that are twice as far apart."""
    delta = min(1.0, (1 + math.exp(min(use.epsilon, 700.0))) * use.delta)
    return use._replace(noise_multiplier=use.noise_multiplier / 2, epsilon=2 * use.epsilon, delta=delta, rate=1.0)


def refuse_rate(rate: float) -> None:
    if not 0 < rate <= 1:
        raise BudgetInvalid(
            f"sampling rate {rate:g} is not in (0, 1]",
            remedy="A rate is the probability that a party, or a record, takes part.",
        )
