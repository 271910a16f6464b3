"""The rule of exact numbers against values held (`hedgerow.core.disclosure`), as it holds for a study.

statistics, trees   a third, also in a simulation, unless `[protection] disclosure` says otherwise
other programs      as it says; without it nothing is refused in a simulation, and the ratio is said
stations            their guards' own limit, or the study's where that is lower
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hedgerow.core.declaration import Declaration
from hedgerow.core.disclosure import MOST, Disclosure, ExactNumbers, Holdings, Told, width, words_read
from hedgerow.core.ledger import Ledger
from hedgerow.errors import HedgerowError

from .several import programs_in

if TYPE_CHECKING:
    from hedgerow.data import Schema

    from .build import Built
    from .study import Study

STATISTICS = ("hedgerow.stats.", "hedgerow.trees.", "hedgerow.study.findings.")
"""Rooms whose programs ask for exact sums, from which records can be solved for."""

ALL = re.compile(r"(^|[~+\s])\.($|[\s+-])")
"""The dot of a formula, which stands for all features."""


def columns_of(study: Study, schema: Schema) -> frozenset[str]:
    """The columns of which a study can learn values: all where it has no formula and its settings name none besides weights.

    A text names one column, however many are in it; a formula at most one for each column of its design, and its target. Of
    several programs it is the one that reads the fewest: what another reads does not cover its questions.
    """
    own, *parts = (given for _, given in programs_in(study))
    return min((_columns_by(given, schema) for given in parts or [own]), key=len)


def _columns_by(given: Mapping[str, Any], schema: Schema) -> frozenset[str]:
    """The same of one program, by its settings."""
    settings, aside = dict(given), {schema.weight, schema.offset}
    formula, known = settings.pop("formula", None), frozenset(schema.names)
    parts = _of_formula(formula, schema)
    named = [words_read(text, known) for text in texts_in(settings)]
    unread = not parts and has_dot(formula)
    if unread or not (isinstance(formula, str) or any(read - aside for read in named)):
        return known
    found: set[str] = set()
    for read, most in [*parts, *((read, 1) for read in named)]:
        found |= set(sorted(read - found)[: max(0, most - len(read & found))])
    return frozenset(found)


def _of_formula(formula: Any, schema: Schema) -> list[tuple[frozenset[str], int]]:
    """What each part of a formula reads, and how many columns it makes of it; plain columns first."""
    if not isinstance(formula, str):
        return []
    read = terms_of(formula, schema)
    if read is None:
        return [(frozenset({name}), 1) for name in words_read(formula, frozenset(schema.names))]
    response, terms = read
    parts = [(_columns((response,), schema), 1), *((_columns(term.factors, schema), len(term.names)) for term in terms)]
    return sorted(parts, key=lambda part: len(part[0]))


def terms_of(formula: str, schema: Schema) -> Any:
    """Target and terms of a formula; None where it is none that regressions read."""
    from hedgerow.stats.formula import read_formula

    for classes in (False, True):
        with suppress(HedgerowError):
            return read_formula(formula, schema, tuple(filter(None, (schema.weight, schema.offset))), classes=classes)
    return None


def _columns(factors: Iterable[Any], schema: Schema) -> frozenset[str]:
    return frozenset(name for factor in factors for name in factor.reads(schema))


def has_dot(formula: Any) -> bool:
    """Whether a formula's dot stands for all features."""
    return isinstance(formula, str) and ALL.search(formula) is not None


def texts_in(value: Any) -> Iterator[str]:
    """Every text in plain values, the keys of mappings included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from texts_in(key)
            yield from texts_in(part)
    elif isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes):
        for part in value:
            yield from texts_in(part)


def holdings_of(
    study: Study, listing: Declaration, complete: Callable[[frozenset[str]], Sequence[int]], schema: Schema
) -> Holdings:
    """What the parties of a simulation hold, with the rule that holds for this study."""
    most = study.protection.disclosure
    if most is None and listing.path.startswith(STATISTICS):
        most = MOST
    held = complete(named_in(study, schema))
    aggregation = study.protection.slots()["aggregation"]
    together = None if aggregation is None else aggregation.together
    return Holdings.of(held, None if most is None else Disclosure(most), columns_of(study, schema), together)


def named_in(study: Study, schema: Schema) -> frozenset[str]:
    """All columns of which a study's records may lack none, those included that `columns_of` does not count."""
    return columns_of(study, schema) | words_read(dict(study.program.model_extra or {}), frozenset(schema.names))


def disclosure_sentence(built: Built, ledger: Ledger) -> str:
    """What the questions of a ledger tell of a party, in words; without numbers of records where nobody may show them."""
    exact, holdings = ledger.exact.plus(built.run.came), built.run.holdings
    if holdings is None:
        return _elsewhere(exact, built.study.protection.disclosure)
    told = told_of(built, ledger)
    most = None if holdings.disclosure is None else holdings.disclosure.most
    return told.sentence(most) if built.simulated else _unshown(exact, told.ratio, most)


def told_of(built: Built, ledger: Ledger) -> Told:
    """What the questions of a ledger tell of the smallest party of a simulation."""
    holdings, names = built.run.holdings, frozenset(built.schema.names)
    assert holdings is not None
    return holdings.told(ledger.exact.plus(built.run.came), width(built.schema, holdings.columns or names))


BY_ANSWERS = ("max_rounds", "depth")
"""Settings that limit the rounds of a program whose rounds follow from its answers."""


def room_of(built: Built, ledger: Ledger, after: Sequence[int]) -> str:
    """For how many rounds the rule leaves room, where real records may take more of them; "" where they cannot.

    Parameters
    ----------
    after : sequence of int
        Questions of the ledger by the end of each rehearsed round.
    """
    holdings, most = built.run.holdings, _most_rounds(built)
    limit = holdings and holdings.disclosure and holdings.disclosure.most
    if not limit or math.isinf(limit) or most is None or most <= len(after) or len(after) < 2:
        return ""
    upto = Ledger()
    upto.entries = ledger.entries[: after[-2]]
    one, told = told_of(built, upto).ratio, told_of(built, ledger).ratio
    each = told - one
    if each <= 0 or math.isinf(told):
        return ""
    room = max(0, len(after) + math.floor((limit * (1 + 1e-9) - told) / each))
    if room >= most:
        return ""
    return (
        f"There is room for {room} round{'s' * (room != 1)} before too many exact numbers are asked (HR-216), and the program "
        f"may take {most}: real records that need more than {room} end the run without a result."
    )


def _most_rounds(built: Built) -> int | None:
    own = {name: one.default for name, one in inspect.signature(built.listing.function).parameters.items()}
    found = (own | dict(built.settings)).get
    return next((most for key in BY_ANSWERS if isinstance(most := found(key), int)), None)


def _numbers(exact: ExactNumbers) -> str:
    known = f"{exact.plain + exact.hidden:,.0f} exact numbers"
    return known + (f", and unknown ones of {exact.unknown} questions" if exact.unknown else "")


def _elsewhere(exact: ExactNumbers, own: float | None) -> str:
    if exact.none:
        return "No exact number leaves a party."
    limit = "" if own is None else f" This study allows {'any number' if math.isinf(own) else format(own, '.2g')} for itself."
    return f"Asked in all: {_numbers(exact)} of each party, which its station holds against the values that it has.{limit}"


def _unshown(exact: ExactNumbers, ratio: float, most: float | None) -> str:
    if exact.none:
        return "No exact number leaves a party."
    limit, raised = MOST if most is None else most, most is not None and most > MOST * (1 + 1e-9)
    said = f"{'beyond' if ratio > limit else 'within'} {limit:.2g} for each value of the columns read that a party holds"
    return f"Asked in all: {_numbers(exact)}, {said}{', a limit raised from ' + format(MOST, '.2g') if raised else ''}."


def unlimited(holdings: Holdings | None) -> Holdings:
    """The same holdings for a rehearsal, which says what would be asked beyond a limit; without end where nobody knows them."""
    if holdings is None:
        return Holdings(math.inf, math.inf, math.inf, _ALL)
    return Holdings(holdings.smallest, holdings.median, holdings.in_all, _ALL, holdings.columns)


_ALL = Disclosure(float("inf"))
