"""`hedgerow dictionary`: draft one from a file, hold a file against one, and speak Table Schema and REDCap."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from hedgerow.errors import CannotWrite, MissingData

from .json_output import JsonOption, print_json

if TYPE_CHECKING:
    from hedgerow.data import Dictionary
    from hedgerow.data.dictionary.validation import Validation

console = Console()
notes = Console(stderr=True)

app = typer.Typer(help="Draft, check and convert the data dictionary that studies and stations name.", no_args_is_help=True)

DictionaryArgument = Annotated[Path, typer.Argument(help="A dictionary, such as dictionary.toml.")]
OutOption = Annotated[Path | None, typer.Option(help="Write to this file instead of the screen.")]
NameOption = Annotated[str, typer.Option(help="Name of the dictionary; that of the file by default.")]
SeparatorOption = Annotated[str, typer.Option(help="Between the values of a text file.")]
DecimalOption = Annotated[str, typer.Option(help="The decimal sign of a text file.")]


class Written(StrEnum):
    """What a dictionary is exported to."""

    tableschema = "tableschema"
    toml = "toml"


class Foreign(StrEnum):
    """What a dictionary is imported from."""

    tableschema = "tableschema"
    redcap = "redcap"


@app.command()
def draft(
    file: Annotated[Path, typer.Argument(help="A csv, tsv or parquet file.")],
    out: OutOption = None,
    name: NameOption = "",
    separator: SeparatorOption = "",
    decimal: DecimalOption = "",
) -> None:
    """Write a first dictionary of a file, with a todo wherever a person must decide. No range is taken from the file."""
    from hedgerow.data.dictionary.drafting import draft as drafted
    from hedgerow.data.dictionary.drafting import drafted_words

    found = drafted(file, name=name, separator=separator, decimal=decimal)
    _write(drafted_words(found), out)
    if out is not None:
        _say(f"{out}: {len(found.columns)} columns, {len(found.todo)} with a todo")


@app.command()
def check(
    dictionary: DictionaryArgument,
    file: Annotated[Path | None, typer.Argument(help="The file; that of the mapping by default.")] = None,
    mapping: Annotated[
        Path | None, typer.Option(help="How this party spells the columns: a TOML file, or its station.toml.")
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="What a study is told: counts are multiples of `least`.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Hold a file against a dictionary, and say all that does not fit. Exit code 1 where the table stays closed."""
    from hedgerow.data import Dictionary
    from hedgerow.data.dictionary.local_columns import LocalColumns
    from hedgerow.data.dictionary.validation import check_file

    found = Dictionary.read(dictionary, complete=True)
    local = LocalColumns.read(mapping) if mapping is not None else LocalColumns()
    if file is None:
        if mapping is None or not local.path:
            raise MissingData("no file is named.", remedy="hedgerow dictionary check DICTIONARY FILE, or path in the mapping.")
        file = mapping.parent / local.path
    checked = check_file(found, file, local)
    if as_json:
        print_json(told(checked, public=public))
    elif public:
        for sentence in checked.public():
            _say(sentence)
    else:
        _show(checked)
    if checked.closed:
        raise typer.Exit(1)


@app.command()
def export(
    dictionary: DictionaryArgument,
    to: Annotated[Written, typer.Option("--to", help="Frictionless Table Schema v2 (JSON), or our own file in one order.")],
    out: OutOption = None,
) -> None:
    """Write a dictionary as a Table Schema, or as TOML."""
    from hedgerow.data import Dictionary
    from hedgerow.data.dictionary.table_schema import to_table_schema

    found = Dictionary.read(dictionary)
    words = found.to_toml() if to == Written.toml else json.dumps(to_table_schema(found), indent=2, ensure_ascii=False) + "\n"
    _write(words, out)


@app.command("import")
def import_dictionary(
    file: Annotated[Path, typer.Argument(help="A Table Schema (JSON), or REDCap's data dictionary (CSV).")],
    source: Annotated[Foreign, typer.Option("--from", help="What the file is.")],
    out: OutOption = None,
    name: NameOption = "",
) -> None:
    """Make a dictionary of a Table Schema or of REDCap's, with a todo for what it does not tell."""
    from hedgerow.data.dictionary.redcap import from_redcap
    from hedgerow.data.dictionary.table_schema import read_table_schema

    found = from_redcap(file, name=name) if source == Foreign.redcap else read_table_schema(file, name=name)
    _write(found.to_toml(), out)
    _summary(found)


def told(checked: Validation, *, public: bool) -> dict[str, Any]:
    """A validation as JSON has it: for a study, counts as multiples of `least`."""
    if public:
        return checked.told()
    return asdict(checked) | {"closed": checked.closed, "refused": checked.refused}


def _show(checked: Validation) -> None:
    """Print the report of who holds the file."""
    rows = checked.rows()
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    for row in rows:
        cells = [
            cell.rjust(width) if place == 2 else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        _say("  ".join(cells).rstrip())
    if checked.none:
        _say(f"Not here: {', '.join(checked.none)}.")
    _say(checked.verdict())


def _summary(found: Dictionary) -> None:
    """Say on the standard error what is still to be decided."""
    todo = "".join(f"\n  {name}: {said}" for name, said in found.todo.items())
    notes.print(
        f"{found.label}: {len(found.columns)} columns, {len(found.todo)} with a todo{todo}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _write(words: str, out: Path | None) -> None:
    if out is None:
        typer.echo(words, nl=False)
        return
    if out.exists():
        raise CannotWrite(f"{out} is there already.", remedy="Name another file.", says=False)
    try:
        out.write_text(words, encoding="utf-8")
    except OSError as cause:
        raise CannotWrite(f"{out} cannot be written: {cause}.", remedy="Name another file.", says=False) from None


def _say(words: str) -> None:
    console.print(words, markup=False, highlight=False, soft_wrap=True)
