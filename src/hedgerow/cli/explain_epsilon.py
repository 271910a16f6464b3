"""`hedgerow privacy explain`: what an epsilon means, for whoever signs and for whoever checks, and what it costs a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from hedgerow.errors import BudgetInvalid

from .json_output import JsonOption, print_json
from .show import grid_table

console = Console()


def show_meaning(
    epsilon: Annotated[
        list[float], typer.Option("--epsilon", "-e", help="Of everything that is released; several give a table.")
    ],
    delta: Annotated[float, typer.Option("--delta", "-d", help="Well below one over the number of units.")] = 0.0,
    adjacency: Annotated[str, typer.Option("--adjacency", help="add-remove or replace-one.")] = "add-remove",
    prior: Annotated[list[float] | None, typer.Option("--prior", help="What an adversary believed before.")] = None,
    values: Annotated[list[int] | None, typer.Option("--values", help="How many values a person's secret may have.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write a page with tables and figures.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print what an epsilon means: odds, beliefs, attacks, bits about one person."""
    from hedgerow.market.meaning import PRIORS, VALUES, meaning
    from hedgerow.market.meaning_page import grids_of, page
    from hedgerow.report import write

    if delta >= 1:
        raise BudgetInvalid(f"delta {delta:g} promises nothing", remedy="Choose it well below one over the number of units.")
    how: dict[str, Any] = {"priors": tuple(prior or PRIORS), "values": tuple(values or VALUES)}
    meanings = [meaning(one, delta, adjacency, **how) for one in dict.fromkeys(epsilon)]  # type: ignore[arg-type]
    if as_json:
        print_json({"delta": delta, "adjacency": adjacency, "meanings": [m.told() for m in meanings]})
    else:
        if len(meanings) == 1:
            for sentence in meanings[0].sentences:
                console.print(sentence, highlight=False)
        for grid in grids_of(meanings):
            console.print()
            console.print(grid_table(grid))
    if out is not None:
        write(page(meanings), out)
        Console(stderr=as_json).print(f"Page: {out}", highlight=False, soft_wrap=True)
