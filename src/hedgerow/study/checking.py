"""A study checked without being run: what it is, and everything that a run would refuse before it asks anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .apart.foreseen import will_learn
from .apart.ready import build_apart
from .apart.unasked import refuse_unasked
from .attacked import told
from .build import build
from .catalogue import listing
from .check import check
from .party_budgets import refuse_unaffordable
from .planned import with_noise
from .quiet import quiet

if TYPE_CHECKING:
    from pathlib import Path

    from .study import Study


def sentence_about(study: Study) -> str:
    """What a study computes, in a sentence."""
    if study.matrix is not None:
        return f"{study.matrix.runs} runs of a matrix of acts and rules."
    if study.comparison is not None:
        return f"{len(study.comparison.rows) * len(study.comparison.columns) * study.comparison.seeds} runs in a table."
    return listing(study.program.name).sentence


def check_study(study: Study, *, data_dir: str | Path | None = None) -> dict[str, Any]:
    """Read a study, its data and its program; return what there is. Nobody is asked.

    Raises
    ------
    HedgerowError
        Whatever a single run would refuse before its first question.
    """
    said: dict[str, Any] = {"study": study.name, "does": sentence_about(study)}
    if study.apart:
        ready = build_apart(study, data_dir=data_dir)
        will_learn(study)
        refuse_unasked(ready)
        said |= {"parties": len(ready.held), "columns": {party: schema.names for party, schema in ready.schemas.items()}}
        return said | {"people": {party: len(one) for party, one in ready.held.items()}}

    def make(one: Study) -> Any:
        return build(one, data_dir=data_dir)

    with quiet():
        built = make(with_noise(study, make, data_dir))
        check(built)
        spent = {name: (budget, budget.spent(costs)) for name, (budget, costs) in refuse_unaffordable(built).items()}
    said |= {"parties": built.federation.size, "records": len(built.table)}
    said |= {"attack": dict(told(built, study.attack))} if study.attack is not None else {}
    would = {
        name: f"epsilon {found:.6g} of {budget.epsilon:g} at delta {budget.delta:g}" for name, (budget, found) in spent.items()
    }
    return said | ({"would spend": would} if would else {})
