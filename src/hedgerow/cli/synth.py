"""`hedgerow synth`: draw made-up records from what a run released."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as Drawn

from hedgerow.errors import SettingsInvalid

from .json_output import JsonOption, print_json
from .runs import RUNS, fresh_folder, newest_run
from .show import show_beginning

if TYPE_CHECKING:
    from hedgerow.data import Schema
    from hedgerow.export import RunFolder
    from hedgerow.synth import SyntheticTable

console = Console()
errors = Console(stderr=True)
SHOWN = 10
"""Records of a preview."""
END = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
RANGE = re.compile(rf"({END})?\.\.({END})?", re.IGNORECASE)
DASHED = re.compile(rf"({END})\s*[-,:]\s*({END})", re.IGNORECASE)
"""A range as it is not written here, in place of two dots."""


def synth(
    study: Annotated[str, typer.Argument(help="A run folder, a TOML file, or a bundled study by name.")],
    rows: Annotated[int, typer.Option(help="How many records.")] = 1000,
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="What all of them satisfy: sex=Female, age=40..60, age=40.. ; a column named twice may have either level.",
            metavar="COLUMN=VALUE",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed draws the same records.")] = None,
    out: Annotated[Path | None, typer.Option(help="people.csv or people.parquet; without it a few are printed.")] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", help="Folder of data sets, of a study that has to run first.", envvar="HEDGEROW_DATA"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Draw made-up records from what a run released, at no cost; the study runs first where it has no finished run."""
    from hedgerow.data.synthetic_table import refuse_unwritable
    from hedgerow.synth.synthesizer import refuse_undrawable

    given = where or ()
    read_conditions(given)
    refuse_undrawable(rows, seed)
    if out is not None:
        refuse_unwritable(out)
    found = finished(study, given, data_dir, errors if as_json else console)
    conditions = read_conditions(given, found.synthesizer.codes.schema)
    table = found.synthesizer.sample(rows, where=conditions, seed=seed)
    path = None if out is None else table.write(out)
    if as_json:
        about = {"run": found.path, "path": path, "rows": len(table), "columns": table.schema.names}
        first = {} if path else {"records": _first(table)}
        print_json(about | {"provenance": table.provenance} | first)
        return
    if path is None:
        _show(table)
    else:
        console.print(str(path), highlight=False, markup=False, soft_wrap=True)
    console.print(table.source, highlight=False, markup=False, soft_wrap=True)
    console.print(found.said.sentence, highlight=False, markup=False, soft_wrap=True)


def read_conditions(given: Sequence[str], schema: Schema | None = None) -> dict[str, Any]:
    """Read conditions of a command line: a word, several words, or a range with the declared end where one is left out.

    Parameters
    ----------
    schema : Schema, optional
        Columns that records have: a category takes levels, even one that looks like a range, and a number a value or a range.

    Raises
    ------
    SettingsInvalid (HR-511)
        One is no COLUMN=VALUE, or a column has a range and something else; a category has a range, or a number two values.
    MissingColumn (HR-403)
        No such column.
    """
    found: dict[str, Any] = {}
    for text in given:
        name, _, value = (part.strip() for part in text.partition("="))
        column = schema[name] if schema is not None and name else None
        if column is not None and column.kind not in ("category", "binary"):
            _refuse_values(text, name, found)
        ends = None if column is not None and value in column.levels else RANGE.fullmatch(value)
        if not name or not value or (ends and not any(ends.groups())):
            raise SettingsInvalid(
                f"--where {text!r} is no condition.", remedy="Give sex=Female, age=40..60, age=40.. or age=40"
            )
        if column is not None and column.kind in ("category", "binary"):
            _refuse_list(text, name, value, column.levels or ("0", "1"))
        if ends and column is not None and column.kind in ("category", "binary"):
            levels = column.levels or ("0", "1")
            raise SettingsInvalid(
                f"--where {text!r}: {name!r} has levels, which have no order, so a range says nothing of them.",
                remedy=f"Name each level:  {' '.join(f'--where {name}={level}' for level in levels[:2])}",
            )
        if ends and name in found:
            raise SettingsInvalid(f"--where {text!r}: {name!r} has a condition.", remedy="Give a column one range.")
        if ends:
            low, high = (None if end is None else float(end) for end in ends.groups())
            if low is not None and high is not None and low > high:
                raise SettingsInvalid(f"--where {text!r} holds no number.", remedy=f"Did you mean {name}={high:g}..{low:g}?")
            found[name] = (low, high)
        elif isinstance(found.get(name), tuple):
            raise SettingsInvalid(f"--where {text!r}: {name!r} has a range.", remedy="Give a column a range or levels.")
        else:
            found[name] = [*found.get(name, []), value]
    return {name: one[0] if isinstance(one, list) and len(one) == 1 else one for name, one in found.items()}


def _refuse_values(text: str, name: str, found: Mapping[str, Any]) -> None:
    """Refuse a second value of a number, and a range that is written otherwise."""
    if dashed := DASHED.fullmatch(text.partition("=")[2].strip()):
        raise SettingsInvalid(f"--where {text!r} is no range.", remedy=f"Give {name}={dashed[1]}..{dashed[2]}")
    if isinstance(before := found.get(name), list):
        raise SettingsInvalid(
            f"--where {text!r}: {name!r} is a number, and has the value {before[0]} already.",
            remedy=f"Give a range, such as {name}=40..44; or draw records for each value, and put them together.",
        )


def _refuse_list(text: str, name: str, value: str, levels: Sequence[str]) -> None:
    """Refuse several levels in one condition."""
    several = [one.strip() for one in value.split(",")]
    if value not in levels and len(several) > 1 and set(several) <= set(levels):
        raise SettingsInvalid(
            f"--where {text!r}: there is no level {value!r}.",
            remedy=f"Name the column once for each level:  {' '.join(f'--where {name}={level}' for level in several)}",
        )


def finished(study: str, given: Sequence[str], data_dir: Path | None, said: Console) -> RunFolder:
    """The run from which records are drawn: a folder, the newest finished run of a study, or one that begins now.

    Raises
    ------
    StudyInvalid (HR-101), UnknownStudy (HR-102)
        The program draws no records; there is neither such a folder nor such a study.
    SettingsInvalid (HR-511), MissingColumn (HR-403)
        The conditions do not fit the columns of a study that would have to run first.
    """
    from hedgerow.export import read_run
    from hedgerow.export.folder import refuse_undrawable
    from hedgerow.study import load

    folder = Path(study)
    if folder.is_dir():
        return read_run(folder)
    wanted = load(study)
    refuse_undrawable(wanted)
    if (newest := newest_run(wanted)) is not None:
        said.print(
            f"Drawn from {newest}, the newest finished run of this study.", markup=False, highlight=False, soft_wrap=True
        )
        return read_run(newest)
    return read_run(_run(wanted, study, given, data_dir, said))


def _run(wanted: Any, study: str, given: Sequence[str], data_dir: Path | None, said: Console) -> Path:
    """Run a study as `hedgerow run` does; conditions are held against its columns before anybody is asked."""
    from hedgerow.notebook import Bar
    from hedgerow.study import run_study
    from hedgerow.study.build import tables
    from hedgerow.synth import Codes, Conditions
    from hedgerow.synth.codes import NEVER

    if given:
        schema = tables(wanted, data_dir)[0].schema
        named = (wanted.program.model_extra or {}).get("columns")
        made = [column.name for column in schema if column.role not in NEVER] if named is None else list(named)
        conditions = read_conditions(given, schema.select(made))
        Conditions.of(Codes.of(schema, columns=list(conditions)), conditions)
    folder = fresh_folder(RUNS, wanted.name)
    show_beginning(wanted, said)
    with Bar(wanted.name, said) as bar:
        result = run_study(wanted, folder, data_dir=data_dir, on_progress=bar.show, command=f"hedgerow synth {study}")
    if result.run.stopped == "interrupted":
        said.print(f"Interrupted. Continue with: hedgerow run {study} --out {folder} --resume", highlight=False)
        raise typer.Exit(130)
    said.print(f"Ran {wanted.name}: {folder / 'report.html'}", markup=False, highlight=False, soft_wrap=True)
    return folder


def _first(table: SyntheticTable) -> list[dict[str, Any]]:
    """The first records as plain values by column name."""
    frame = table.written().head(SHOWN).astype(object)
    return [dict(one) for one in frame.where(frame.notna(), None).to_dict("records")]


def _show(table: SyntheticTable) -> None:
    """Print the first records."""
    from hedgerow.report import Fits

    names = table.schema.names
    drawn = Drawn(title=f"{min(len(table), SHOWN)} of {len(table)} made-up records", title_justify="left")
    for name in names:
        drawn.add_column(name, overflow="fold")
    for one in _first(table):
        drawn.add_row(*(_cell(one[name]) for name in names))
    console.print(Fits(drawn))


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
