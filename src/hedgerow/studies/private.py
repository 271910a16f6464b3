"""Private training record by record as programs of a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from hedgerow.core.federation import Federation

from .adapters import neural
from .listing import Listing, Outcome

SHOWN = 100
"""At most so many parties are listed."""


def per_record(algorithm: str, sentence: str) -> Listing:
    """List a program of `hedgerow.learn.records`."""
    listing = neural(algorithm, sentence)
    return replace(
        listing, path=f"hedgerow.learn.records:{algorithm}", alone=_as_long, outcome=partial(_outcome, listing.outcome)
    )


def _outcome(plain: Callable[..., Outcome], federation: Federation, settings: Mapping[str, Any], state: Any) -> Outcome:
    """The model, and what each party has spent where it keeps its own account; of very many, the first."""
    made: Outcome = plain(federation, settings, state)
    spent = getattr(state, "epsilons", None)
    if spent is None:
        return made
    limits, parties = settings["stop_at"], list(spent)[:SHOWN]
    stops = limits if isinstance(limits, list) else [limits] * len(spent)
    rows = [(name, float(spent[name]), limit) for name, limit in zip(parties, stops, strict=False)]
    table = pd.DataFrame(rows, columns=["party", "epsilon spent", "stops at"], dtype=object)
    return replace(made, tables={"Epsilon by party": table, **made.tables})


def _as_long(settings: Mapping[str, Any], rounds: int) -> dict[str, Any]:
    """As many rounds on other records, with one number where parties had one each; nobody stops."""
    divisor = settings["batch_size"]
    one = {"rounds": rounds, "batch_size": sum(divisor) / len(divisor) if isinstance(divisor, list) else divisor}
    return dict(settings) | one | ({"stop_at": None} if "stop_at" in settings else {})
