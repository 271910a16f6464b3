"""Settings that the networks share: checked before any party is asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

from hedgerow.core.declaration import Case
from hedgerow.core.federation import Federation
from hedgerow.data import Schema, load
from hedgerow.data.synthetic_table import Provenance
from hedgerow.errors import ArgumentInvalid, BudgetExhausted, SettingsInvalid, UnlawfulChannel
from hedgerow.privacy import Budget

from ..codes import Codes
from ..synthesizer import provenance
from .encoding import RowEncoding

BINS = 64
"""Of the histogram of each number, from which modes are found."""


def above(**settings: float) -> None:
    """Refuse whole numbers below one, and others that are not above zero."""
    wrong = [
        f"{name} is {value}" for name, value in settings.items() if not (value >= 1 if isinstance(value, int) else value > 0)
    ]
    if wrong:
        raise SettingsInvalid("; ".join(wrong) + ".", remedy="Counts are at least one, rates and lengths are above zero.")


def encoding_of(schema: Schema, columns: Sequence[str] | None, n_modes: int) -> RowEncoding:
    """The columns that are made up, and the bins of their histograms."""
    above(n_modes=n_modes)
    return RowEncoding(Codes.of(schema, columns=columns, bins=BINS), n_modes)


def complete(program: Callable[..., Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with the defaults of a program."""
    defaults = {name: one.default for name, one in signature(program).parameters.items() if one.default is not one.empty}
    return defaults | dict(settings)


def to_its_end(
    program: Callable[..., Any], federation: Federation, settings: Mapping[str, Any], method: str
) -> tuple[Any, dict[str, Any], Provenance]:
    """The last state of a program, which is `start` where nothing is left to do; all its settings; and what made it."""
    state = settings.get("start")
    continued = state is not None
    for state in program(federation, **settings):  # noqa: B007
        pass
    full = complete(program, settings)
    return state, full, provenance(federation, method, delta=full.get("delta"), continued=continued)


def refuse_counts(federation: Federation, remedy: str) -> None:
    """Refuse a histogram through a channel that is made for updates of parties.

    Raises
    ------
    UnlawfulChannel (HR-211)
    """
    if federation.protection.clip is not None or federation.protection.noisy:
        raise UnlawfulChannel(
            "counts of bins and levels would pass a channel whose clip or noise is for updates of weights.", remedy=remedy
        )


def refuse_promise(name: str, federation: Federation, settings: Mapping[str, Any]) -> None:
    """Refuse a budget that networks without noise cannot keep.

    Raises
    ------
    ArgumentInvalid (HR-107), BudgetExhausted (HR-213)
    """
    remedy = f"Take hr.synth.dp_{name}(..., epsilon=1.0, delta=1e-5), or hr.synth.tan, which asks two questions and no more."
    if named := [one for one in ("epsilon", "delta") if one in settings]:
        raise ArgumentInvalid(f"{name} takes no {' and no '.join(named)}: it promises nothing for records.", remedy=remedy)
    limit = federation.ledger.limit
    if isinstance(limit, Budget) and math.isfinite(limit.epsilon) and not federation.protection.noisy:
        raise BudgetExhausted(
            f"{name} trains without noise, which no budget of epsilon {limit.epsilon:g} allows.", remedy=remedy
        )


def tiny(**settings: Any) -> Case:
    """Heart failure, few records and columns, and small networks."""
    table = load("heart_failure").select(["age", "serum_sodium", "sex", "death_event"]).take(range(60))
    given = {"rounds": 2, "steps": 2, "batch_size": 20, "n_modes": 2, **settings}
    return Case(table, {name: value for name, value in given.items() if value is not None}, tolerance=1e-4)
