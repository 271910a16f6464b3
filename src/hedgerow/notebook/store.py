"""Cards of runs."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from hedgerow.errors import SettingsInvalid, suggestion
from hedgerow.report import Card, Curve, Figure, Series
from hedgerow.store.drive import Driven
from hedgerow.store.rows import COSTS

from . import values

_FIGURES = 4


@singledispatch
def card(value: Any) -> Card:
    """The card of a value of this room."""
    return values.card(value)


@card.register
def _(run: Driven) -> Card:
    number = getattr(run.state, "round", None)
    ending = {"patience": "there was enough", "budget": "the budget was spent"}.get(run.stopped, run.stopped)
    facts: list[tuple[str, Any]] = [("ended", ending)]
    if run.rounds:
        facts.append(("rounds", run.rounds[-1]["round"]))
    if number is not None and (not run.rounds or number != run.rounds[-1]["round"]):
        facts.append(("state of round", number))
    if run.rounds:
        facts.append(("seconds", run.rounds[-1]["seconds"]))
    last: dict[str, Any] = {}
    for row in run.rounds:
        last |= row if number is None or row["round"] <= number else {}  # those of the state that is held
    last |= {"epsilon": run.rounds[-1]["epsilon"]} if run.rounds and "epsilon" in run.rounds[-1] else {}  # of all rounds
    metrics = tuple((name, value) for name, value in last.items() if name not in ("round", "seconds"))
    arrays = {} if run.state is None else dict(values.arrays_of(run.state))
    said = () if not arrays else (f"{type(run.state).__name__} with {values.in_words(arrays)}",)
    return Card(
        kind="run",
        title=run.reason,
        facts=tuple(facts),
        metrics=metrics,
        figures=curves(run)[:_FIGURES],
        tables=(values.shapes(arrays),) if arrays else (),
        said=said,
    )


def figure(run: Driven, metrics: tuple[str, ...] = ()) -> Figure:
    """Metrics by round, one below the other.

    Raises
    ------
    SettingsInvalid (HR-511)
        The run measured nothing, or not these.
    """
    known = _measured(run)
    for name in metrics:
        if name not in known:
            raise SettingsInvalid(f"the run did not measure {name!r}.", remedy=suggestion(name, known), asked=False)
    if not known:
        raise SettingsInvalid(
            "the run measured nothing, so there is nothing to draw.",
            remedy="Let watch= return a dict of numbers, such as that of hr.learn.evaluate_on.",
            asked=False,
        )
    return Figure(*curves(run, metrics))


def curves(run: Driven, metrics: tuple[str, ...] = ()) -> tuple[Curve, ...]:
    """A curve for each metric that changed, and for epsilon."""
    drawn = []
    for name in metrics or _moving(run) or _measured(run):
        points = [(float(row["round"]), row[name]) for row in run.rounds if name in row]
        if len(points) > 1 or metrics:
            x, y = zip(*points, strict=True)
            drawn.append(Curve(name[:1].upper() + name[1:], "round", name, (Series(name, x, y),)))
    return tuple(drawn)


def _measured(run: Driven) -> list[str]:
    names = dict.fromkeys(name for row in run.rounds for name in row)
    return [name for name in names if name not in COSTS] + (["epsilon"] if "epsilon" in names else [])


def _moving(run: Driven) -> list[str]:
    """Metrics that were measured twice and are not the same throughout, such as the number of records."""
    values_of = {name: [row[name] for row in run.rounds if name in row] for name in _measured(run)}
    return [name for name, found in values_of.items() if len(set(found)) > 1]
