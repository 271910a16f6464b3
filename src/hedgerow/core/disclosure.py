"""Exact numbers asked of a party over a whole study, against the values that it holds: one rule for all who apply it.

    ratio  =  numbers that left it, of all rounds / (its records * columns read)
            + numbers in hidden totals            / (the records of all parties * columns read)

Unknown values and known equations: once a party has answered about as many exact numbers as it holds values, its records can
be solved for, whatever the answers are called. Four rounds of a logistic regression over four columns give back every record
of parties of 3, 5 and 8 records, at 1.7 numbers a value and more (`tests/privacy/test_small_parties.py`). A third leaves room.

Numbers behind noise are not counted where the noise is worth its name (`covers`), of all questions together (`worn`); nor is
what `each` leaves at a party, nor keys and masks. A matrix that equals its transpose is a triangle (`Foreseen.distinct`).
What only a sample of the parties is asked counts by the chance that a party is in it. The columns read are those that settings
name; where they name none, all that are there. Records are those that lack none of the columns read and have a weight.

After the rule nfilter.glm of DataSHIELD, a third of the records for each parameter, but over all questions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from hedgerow.errors import DisclosureExceeded, SettingsInvalid

from .events import Event, Sampling

if TYPE_CHECKING:
    from .ledger import Entry
    from .question import Question

MOST = 1 / 3
"""Numbers for each value held, where nobody says otherwise."""

LEAST = 5
"""Counts of records that a deployment shows are multiples of it."""

LEAST_NOISE = 0.5
"""Gaussian noise below half of its bound covers nothing: an epsilon of more than ten from one question."""

MOST_EPSILON = 10.0
"""The same of other laws."""

MOST_SQUARES = 6.0
"""The sum of 1/z^2 over noisy questions that together have an epsilon of ten at a delta of 1e-3."""

FEW = 2000
"""Numbers in one contribution up to which a simulation without a rule asks no questions: small examples are no mistakes."""

WIDE = 8
"""A contribution of at most the square of so many times a design's columns is large because the design is."""

MANY = 20
"""Levels of a category from which on a refusal names it."""

REMEDY = (
    "Ask for fewer numbers (fewer columns, levels or rounds), hide rows, so that the values of all parties count "
    "([protection] aggregation = 'secagg'; columns of numbers then declare their ranges: HR-210), or add noise."
)

ALLOW = "\nTo allow more: [protection] disclosure in a study, or simulate(..., disclosure=...)."


def rounded(count: int) -> int:
    """A count as it is shown: the nearest multiple of `LEAST`. "Fewer than 5" beside a total would be the count itself."""
    return (2 * count + LEAST) // (2 * LEAST) * LEAST


# ---- what counts ----------------------------------------------------------------------------------------------------
def covers(event: Event) -> bool:
    """Whether noise makes up for the numbers of a release, or nothing was released."""
    if event.kind in ("gaussian", "skellam"):
        return event.noise_multiplier >= LEAST_NOISE
    if event.kind == "laplace":
        return event.noise_multiplier * MOST_EPSILON >= 1
    if event.kind in ("pure", "exponential", "approximate"):
        return event.epsilon <= MOST_EPSILON
    return event.kind == "none"


def worn(event: Event, sampling: Sampling) -> float:
    """How much of the noise that may cover numbers a release uses up, of 1; many answers of one question tell their mean.

    Gaussian: the squares of bound over noise of all releases add up to at most `MOST_SQUARES`; a unit that takes part with a
    chance of q counts q^2 (exp(1/z^2) - 1) (Dong, Roth and Su 2022, Corollary 5.4). Other laws: epsilons add up to at most
    `MOST_EPSILON`.
    """
    q = event.rate * (sampling.rate if sampling.kind in ("poisson", "records", "fixed") else 1.0)
    times = event.count * (sampling.rate if sampling.kind in ("given", "part", "dealt") else 1.0)
    if event.kind in ("gaussian", "skellam"):
        one = event.noise_multiplier**-2
        return times / MOST_SQUARES * (min(one, q**2 * math.expm1(one)) if q < 1 else one)
    epsilon = 1 / event.noise_multiplier if event.kind == "laplace" else event.epsilon
    return times * math.log1p(q * math.expm1(epsilon)) / MOST_EPSILON


def worn_out(noise: Any) -> Any:
    """Whether noise that was used up so far covers no further numbers."""
    return noise > 1 + 1e-9


class ExactNumbers(NamedTuple):
    """Exact numbers asked of a party: from itself, in totals that hide its row, and questions whose numbers nobody knows.

    `noise` is how much of all the noise that may cover numbers was used up (`worn`), and `veiled`, from itself and in totals,
    what it covers: numbers of a question by which the sum goes beyond 1 count as exact.
    """

    plain: float = 0.0
    hidden: float = 0.0
    unknown: int = 0
    noise: float = 0.0
    veiled: tuple[float, float] = (0.0, 0.0)

    def plus(self, other: ExactNumbers) -> ExactNumbers:
        """Both together, the other one after this."""
        (a, b), noise = other.veiled, self.noise + other.noise
        out = worn_out(noise)
        veiled = self.veiled if out else (self.veiled[0] + a, self.veiled[1] + b)
        plain, hidden = self.plain + other.plain + a * out, self.hidden + other.hidden + b * out
        return ExactNumbers(plain, hidden, self.unknown + other.unknown, noise, veiled)

    @property
    def none(self) -> bool:
        """Whether no exact number is asked."""
        return not (self.plain or self.hidden or self.unknown)

    @classmethod
    def of(cls, entry: Entry, came: int | None = None) -> ExactNumbers:
        """The numbers of one question; `came` is how many they were where nobody knew beforehand."""
        covered = covers(entry.event)
        if entry.verb == "each" or entry.event.kind == "none" or (covered and entry.cites):
            return cls()
        noise = worn(entry.event, entry.sampling.as_charged(entry.unit or "record")) if covered else 0.0
        numbers = entry.exact_numbers if came is None else came
        if numbers is None:
            return cls(unknown=int(not covered), noise=noise)
        expected = numbers * (1.0 if entry.sampling.kind == "records" else entry.sampling.rate)
        hides = entry.verb == "sum" and entry.aggregation not in ("", "plain")
        if covered:
            return cls(noise=noise, veiled=(0.0, expected) if hides else (expected, 0.0))
        return cls(hidden=expected) if hides else cls(plain=expected)


NOTHING = ExactNumbers()


class Breadth(NamedTuple):
    """How much a question reads.

    Attributes
    ----------
    names : frozenset of str
        Columns.
    size : int
        Columns of the design that the question prepares, a regression's; 0 where it prepares none.
    widest : str
        Its category with the most levels, in words, where they are many.
    """

    names: frozenset[str] = frozenset()
    size: int = 0
    widest: str = ""


def breadth_of(question: Question, schema: Any, seen: frozenset[str] = frozenset()) -> Breadth:
    """The columns that a question reads: those that it was seen to read, or else that its settings name, or else all."""
    known = frozenset(schema.names)
    places = [question.local, *((one.function, one.settings) for one in question.view), question.init]
    found, designs = _found(places, known)
    columns = [column for one in designs for column in one.schema]
    wide = max(columns, key=lambda column: len(column.levels), default=None)
    said = f"the category {wide.name!r} has {len(wide.levels)} levels" if wide and len(wide.levels) > MANY else ""
    return Breadth(seen or found or known, max((int(getattr(one, "size", 0)) for one in designs), default=0), said)


def words_read(values: Any, known: frozenset[str]) -> frozenset[str]:
    """The columns that plain values name, such as the settings of a study."""
    return _found(values, known)[0]


def width(schema: Any, names: frozenset[str]) -> int:
    """Values of one record in these columns and in that of weights."""
    return sum(math.prod(column.shape) for column in schema if column.name in names or column.name == schema.weight)


def _found(values: Any, known: frozenset[str]) -> tuple[frozenset[str], list[Any]]:
    designs: list[Any] = []
    names = frozenset(_walk(values, known, designs))
    return names, designs


def _walk(value: Any, known: frozenset[str], designs: list[Any]) -> Iterator[str]:
    if isinstance(value, str):
        if value in known:
            yield value
        else:
            words = set(re.findall(r"\w+", value))
            yield from (name for name in known if name in words or (not name.isidentifier() and name in value))
    elif isinstance(value, partial):
        yield from _walk((value.args, value.keywords), known, designs)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _walk(key, known, designs)
            yield from _walk(part, known, designs)
    elif isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes):
        for part in value:
            yield from _walk(part, known, designs)
    elif is_dataclass(value) and not isinstance(value, type):
        own: Any = getattr(value, "schema", None)
        if own is not None and hasattr(own, "names"):
            designs.append(value)
            yield from (name for name in own.names if name in known)
        else:
            yield from _walk([getattr(value, field.name) for field in fields(value)], known, designs)


# ---- the rule -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Told:
    """What a party has told, or would tell.

    Attributes
    ----------
    exact : ExactNumbers
    values : float
        That the party holds of the columns read.
    in_all : float
        That all parties hold, which count for numbers in hidden totals.
    """

    exact: ExactNumbers
    values: float
    in_all: float

    @property
    def ratio(self) -> float:
        """Numbers for each value."""
        parts = ((self.exact.plain, self.values), (self.exact.hidden, self.in_all))
        return sum((numbers / values if values else math.inf) for numbers, values in parts if numbers)

    @property
    def numbers(self) -> float:
        """Numbers of either kind."""
        return self.exact.plain + self.exact.hidden

    def sentence(self, most: float | None = None) -> str:
        """In words, with the limit that holds, if one does."""
        if self.exact.none:
            return "No exact number leaves a party."
        parts = []
        if self.exact.plain:
            parts.append(f"{self.exact.plain:,.0f} exact numbers from a party that holds {self.values:,.0f} values")
        if self.exact.hidden:
            parts.append(f"{self.exact.hidden:,.0f} in totals of parties that together hold {self.in_all:,.0f} values")
        if self.exact.unknown:
            n = self.exact.unknown
            parts.append(f"unknown numbers of {n} question{'s' * (n > 1)}, which count when they come")
        said = f"Asked in all: {', '.join(parts)} of the columns read: a ratio of {self.ratio:.2g}"
        if most is None or math.isinf(most):
            beyond = f", beyond {MOST:.2g}, and stations refuse that by default" if self.ratio > MOST else ""
            return f"{said}{beyond}."
        raised = f", raised from {MOST:.2g}" if most > MOST * (1 + 1e-9) else ""
        return f"{said}, {'beyond' if self.ratio > most else 'within'} the limit of {most:.2g}{raised}."


@dataclass(frozen=True)
class Disclosure:
    """The rule: at most so many exact numbers for each value that is held.

    Parameters
    ----------
    most : float
        Above zero; infinity refuses nothing.

    Raises
    ------
    SettingsInvalid (HR-511)
    """

    most: float = MOST

    def __post_init__(self) -> None:
        if not self.most > 0:
            remedy = "Numbers for each value held, such as 0.333; inf allows everything."
            raise SettingsInvalid(f"disclosure={self.most!r} is no limit above zero.", remedy=remedy)

    def __str__(self) -> str:
        return f"{self.most:.3g} numbers for each value"

    def refuse(self, told: Told, what: str, *, remedy: str = REMEDY, asked: bool = False) -> None:
        """Refuse what would tell more than is allowed.

        Raises
        ------
        DisclosureExceeded (HR-216)
        """
        if told.ratio > self.most * (1 + 1e-9):
            times = f"{told.ratio / self.most:,.2g} times"
            more = f"\nParties of {times} as many records, or fewer and larger ones, would do up to here."
            more = more if math.isfinite(told.ratio) else ""
            raise DisclosureExceeded(f"{what}: {_decapitalised(told.sentence(self.most))}", remedy=remedy + more, asked=asked)


@dataclass(frozen=True)
class Holdings:
    """What parties of a simulation hold, and the rule that holds for a run of questions to them.

    Attributes
    ----------
    smallest, median, in_all : float
        Records of the smallest party that has any, of the median one, and of all in the smallest total that the server sees.
    disclosure : Disclosure, optional
        Without one a single question of a wide design is refused that asks more numbers than the median party holds values:
        a column that was meant to hold numbers has become a category.
    columns : frozenset of str, optional
        That a whole study reads; else those of the questions so far.
    complete : callable, optional
        Records of each party that lack none of some columns: what is missing makes up for no answer.
    together : callable, optional
        How many of so many parties are in the smallest total that the server sees, whose records are then `in_all`.
    """

    smallest: float
    median: float
    in_all: float
    disclosure: Disclosure | None = None
    columns: frozenset[str] | None = None
    complete: Callable[[frozenset[str]], Sequence[int]] | None = None
    together: Callable[[int], int] | None = None

    def reading(self, names: frozenset[str]) -> Holdings:
        """The same of records that lack none of these columns."""
        if self.complete is None:
            return self
        found = Holdings.of(self.complete(names), self.disclosure, self.columns, self.together)
        return replace(found, complete=self.complete)

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        disclosure: Disclosure | None = None,
        columns: frozenset[str] | None = None,
        together: Callable[[int], int] | None = None,
    ) -> Holdings:
        """Of parties with so many records; one without any has nothing to tell."""
        held = sorted(int(size) for size in sizes if size) or [0]
        in_all = sum(held[: together(len(held))] if together else held)  # who is in a group nobody knows beforehand
        return cls(held[0], held[len(held) // 2], in_all, disclosure, columns, together=together)

    def told(self, exact: ExactNumbers, values: int) -> Told:
        """What was told by so many numbers, at so many values of each record, of the smallest party."""
        return Told(exact, self.smallest * values, self.in_all * values)

    def refuse(self, query: str, before: ExactNumbers, now: ExactNumbers, read: Breadth, single: int, values: int) -> None:
        """Refuse a question.

        Parameters
        ----------
        before, now : ExactNumbers
            Numbers of all earlier questions, and of this one.
        single, values : int
            Values of each record that this question reads, and that all read.

        Raises
        ------
        DisclosureExceeded (HR-216)
        """
        if self.disclosure is not None:
            asked = before.plain + before.hidden > 0
            self.disclosure.refuse(self.told(before.plus(now), values), f"with {query}", remedy=REMEDY + ALLOW, asked=asked)
            return
        own = Told(now, self.median * single, self.in_all * single)
        if own.ratio > 1 and FEW < own.numbers <= (WIDE * read.size) ** 2:
            where, held = ("in totals of all parties", own.in_all) if now.hidden else ("of a party", own.values)
            why = f" Perhaps one was meant to hold numbers: {read.widest}." if read.widest else ""
            raise DisclosureExceeded(
                f"{query} asks for {own.numbers:,.0f} exact numbers at once {where}, and the records hold {held:,.0f} values "
                "of the columns that it reads.",
                remedy=f"Look at the columns of the formula.{why}\n{REMEDY}\nTo allow it: simulate(..., disclosure=inf).",
            )


def _decapitalised(text: str) -> str:
    return text[:1].lower() + text[1:]
