"""Metrics of one model at each party: exact numbers of single parties, where the channel is open.

Releases : for each party its sums of hits, loss and records, or of an own task's metrics, as `evaluate` adds them up.
Unit     : none. Nothing is clipped and no noise is added; the ledger has it as `nonprivate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import nn

from hedgerow.core.federation import Federation
from hedgerow.errors import UnlawfulChannel

from .evaluate import judged, metrics
from .local import score
from .models import Weights
from .scale import Scale
from .tasks.declared import Task

if TYPE_CHECKING:
    import pandas


def evaluate_parties(
    federation: Federation,
    module: nn.Module,
    weights: Weights | Any,
    features: Sequence[str] | None = None,
    *,
    held_out: str | None = None,
    scale: Scale | None = None,
    task: Task | None = None,
) -> pandas.DataFrame:
    """Metrics of a model at each party: those of `evaluate`, one row a party.

    This publishes exact numbers of single parties: for simulations, and for parties that agree to it. Through any channel
    `evaluate_personal` gives mean and deviation over parties instead.

    Parameters
    ----------
    weights, features, held_out, scale, task
        As of `evaluate`.

    Returns
    -------
    pandas.DataFrame
        Indexed by the party's name; NaN where a party has no records.

    Raises
    ------
    UnlawfulChannel (HR-211)
        The channel clips, adds noise, compresses or hides rows: it was put there so that no party is seen alone. Before any
        party is asked.
    BudgetExhausted (HR-213)
        There is a budget, which no release without noise is within.
    """
    if not federation.protection.open:
        raise UnlawfulChannel(
            f"metrics of single parties need an open channel; this one has {_filled(federation)}.",
            remedy="Ask for mean and deviation over parties: evaluate_personal. In a simulation ask the bare federation.",
        )
    import pandas

    model, ready = judged(federation, module, weights, features, held_out, scale, task, whole=True)
    found = ready.gather(partial(score, model=model), model.flat(weights))
    rows = {party: metrics(model, sums) for party, sums in found.items()}
    frame = pandas.DataFrame.from_dict(rows, orient="index").rename_axis("party")
    return frame.mask(frame["n"] == 0) if "n" in frame else frame


def _filled(federation: Federation) -> str:
    """The slots of a channel that keep it from being open."""
    protection = federation.protection
    slots = {
        "a clip": protection.clip,
        "noise": protection.noise_at,
        f"{protection.aggregation} aggregation": protection.hides_rows,
    }
    return " and ".join(name for name, filled in slots.items() if filled) or f"compression ({protection.compression})"
