"""`hedgerow export`: write what a run released in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .json_output import JsonOption, print_json

console = Console()


def export(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    to: Annotated[str, typer.Option(help="safetensors, onnx, sklearn or model-card.")],
    output: Annotated[Path | None, typer.Option(help="File; in the folder `export` of the run by default.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write what a run released in another format: safetensors, onnx, sklearn, model-card. Reads no records, asks nobody."""
    from hedgerow.export import export as write
    from hedgerow.export import read_run

    found = read_run(run)
    path = write(found, to, output)
    if as_json:
        print_json({"path": path, "to": to, "privacy": found.said.sentence})
        return
    console.print(str(path), highlight=False, markup=False, soft_wrap=True)
    console.print(found.said.sentence, highlight=False, markup=False, soft_wrap=True)
