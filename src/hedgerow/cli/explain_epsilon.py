"""`hedgerow privacy explain`: what an epsilon means, for whoever signs and for whoever checks, and what it costs a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from hedgerow.errors import BudgetInvalid

from .as_json import grid_told
from .json_output import JsonOption, print_json
from .show import grid_table

console = Console()


def show_meaning(
    epsilon: Annotated[
        list[float] | None,
        typer.Option("--epsilon", "-e", help="Of everything that is released; several give a table; else the study's own."),
    ] = None,
    delta: Annotated[
        float | None, typer.Option("--delta", "-d", help="Well below one over the number of units; else the study's, or 0.")
    ] = None,
    adjacency: Annotated[str | None, typer.Option("--adjacency", help="add-remove, or replace-one.")] = None,
    study: Annotated[str | None, typer.Option("--study", help="Say what it costs this study: a name, or a TOML file.")] = None,
    prior: Annotated[list[float] | None, typer.Option("--prior", help="What an adversary believed before.")] = None,
    values: Annotated[list[int] | None, typer.Option("--values", help="How many values a person's secret may have.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write a page with tables and figures.")] = None,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Folder of data sets (else HEDGEROW_DATA).", envvar="HEDGEROW_DATA")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print what an epsilon means: odds, beliefs, attacks, bits about one person, and with a study what it costs there."""
    from hedgerow.market.epsilon.meaning import PRIORS, VALUES, meaning
    from hedgerow.market.epsilon.meaning_page import grids_of, page
    from hedgerow.report import write

    found = None if study is None else _loaded(study)
    (own, own_delta, own_neighbours), unit = (((), 0.0, "add-remove"), "record") if found is None else _agreed(found)
    asked = list(dict.fromkeys(epsilon or own))
    if not asked:
        raise BudgetInvalid("there is no epsilon to explain.", remedy="Add --epsilon E, or --study of one that has a budget.")
    delta = own_delta if delta is None else delta
    if delta >= 1:
        raise BudgetInvalid(f"delta {delta:g} promises nothing.", remedy="Choose it well below one over the number of units.")
    neighbours: Any = adjacency or own_neighbours
    how: dict[str, Any] = {"unit": unit, "priors": tuple(prior or PRIORS), "values": tuple(values or VALUES)}
    meanings = [meaning(one, delta, neighbours, **how) for one in asked]
    cost = None if found is None else _cost(found, asked, delta, neighbours, data_dir)
    if as_json:
        told = {"delta": delta, "adjacency": neighbours, "meanings": [m.told() for m in meanings]}
        costs = None if cost is None else {"sentence": cost.sentence, "tables": [grid_told(grid) for grid in cost.grids]}
        print_json(told | {"study": study, "cost": costs})
    else:
        sentences = meanings[0].sentences if len(meanings) == 1 else ()
        for sentence in (*sentences, *((cost.sentence,) if cost else ())):
            console.print(sentence, highlight=False)
        for grid in (*(cost.grids if cost else ()), *grids_of(meanings)):
            console.print()
            console.print(grid_table(grid))
    if out is not None:
        write(page(meanings, cost), out)
        Console(stderr=as_json).print(f"Page: {out}", highlight=False, soft_wrap=True)


def _loaded(name: str) -> Any:
    from hedgerow.study import load

    return load(name)


def _agreed(study: Any) -> Any:
    from hedgerow.study.accuracy import agreed, protected

    return agreed(study), protected(study)


def _cost(study: Any, epsilons: list[float], delta: float, adjacency: Any, data_dir: Path | None) -> Any:
    from hedgerow.study.accuracy import accuracy_cost

    return accuracy_cost(study, epsilons, delta, adjacency, data_dir=data_dir)
