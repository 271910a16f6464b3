"""What private training record by record declares: the model, what each party has spent, and baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hedgerow.core.federation import Federation
from hedgerow.report import Outcome

from .. import results

SHOWN = 100
"""At most so many parties are listed."""


def declares(**settings: Any) -> dict[str, Any]:
    """What a program declares besides its name and sentence; `settings` of its case."""
    return results.declares(**settings) | {"outcome": outcome, "alone": as_long}


def outcome(federation: Federation, settings: Mapping[str, Any], state: Any) -> Outcome:
    """The model, and what each party has spent where it keeps its own account; of very many, the first."""
    import pandas

    made = results.outcome(federation, settings, state)
    spent = getattr(state, "epsilons", None)
    if spent is None:
        return made
    limits, parties = settings["stop_at"], list(spent)[:SHOWN]
    stops = limits if isinstance(limits, list) else [limits] * len(spent)
    rows = [(name, float(spent[name]), limit) for name, limit in zip(parties, stops, strict=False)]
    table = pandas.DataFrame(rows, columns=["party", "epsilon spent", "stops at"], dtype=object)
    return replace(made, tables={"Epsilon by party": table, **made.tables})


def as_long(settings: Mapping[str, Any], rounds: int) -> dict[str, Any]:
    """As many rounds on other records, with one number where parties had one each; nobody stops."""
    divisor = settings["batch_size"]
    one = {"rounds": rounds, "batch_size": sum(divisor) / len(divisor) if isinstance(divisor, list) else divisor}
    return dict(settings) | one | ({"stop_at": None} if "stop_at" in settings else {})
