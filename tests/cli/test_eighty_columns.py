"""Tables in a terminal of 80 columns: no line is longer, and no word of a cell is broken."""

import dataclasses
import io
import re

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow.cli import explain as explain_room
from hedgerow.cli import keys, privacy, show
from hedgerow.cli import ledger as ledger_room
from hedgerow.cli.main import app
from hedgerow.cli.station import columns_of
from hedgerow.report import Comparison, Fits, Grid, Report, print_report
from hedgerow.report.fits import LONGEST

WORDS = ("mean_concave_points_of_the_nuclei", "Poisson sampling at rate 0.01", "12345.678", "no noise", "a")


def shown(thing, width=80):
    out = io.StringIO()
    Console(file=out, width=width).print(thing)
    return out.getvalue()


def check(text, *cells, width=80):
    """No line is too long; each word of the cells that is no longer than those kept whole stands on a line."""
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    found = set(re.split(r"[\s│┃]+", text))
    assert [word for cell in cells for word in str(cell).split() if len(word) <= LONGEST and word not in found] == []


def table_of(n_columns, n_rows=3, **options):
    table = Table(*(f"column_{i}" for i in range(n_columns)), **options)
    for row in range(n_rows):
        table.add_row(*(WORDS[(row + i) % len(WORDS)] for i in range(n_columns)))
    return table


@pytest.mark.parametrize("n_columns", [1, 2, 4, 7, 12])
@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("options", [{}, {"box": None}, {"title": "A title", "caption": "A note.", "pad_edge": False}])
def test_words_stay_whole_whatever_the_width(n_columns, width, options):
    text = shown(Fits(table_of(n_columns, **options)), width)
    check(text, *(WORDS[i % len(WORDS)] for i in range(n_columns)), *(f"column_{i}" for i in range(1, n_columns)), width=width)


def test_a_table_that_fits_is_printed_as_it_is():
    table = table_of(3)
    assert shown(Fits(table_of(3)), 200) == shown(table, 200)
    assert shown(Fits(Table("a", "b"))) == shown(Table("a", "b"))


def test_rows_that_do_not_fit_are_blocks_with_headings():
    lines = shown(Fits(table_of(12, n_rows=1)), 40).splitlines()
    assert lines[0].strip() == WORDS[0]
    assert re.fullmatch(r"\s+column_2 +12345.678\s*", lines[2]) is not None or "column_1" in lines[1]


def test_a_hash_may_be_folded():
    table = Table("name", "hash")
    table.add_row("head", "f" * 128)
    assert max(map(len, shown(Fits(table)).splitlines())) <= 80


def test_a_report_with_wide_grids():
    names = ("query", "times", "numbers in all", "bytes up", "bytes down", "bound", "noise", "compression", "asked of")
    row = ("stats.linear_sums", 9, 216, 96, 20, "L2 4.13 per record", "Gaussian(1.1) at the server", "8 bits", "10 of 100")
    rows = tuple(
        (name, float(i), "same program, all records in one place") for i, name in enumerate(("federated", "centralised"))
    )
    report = Report(
        title="A title", study="study", description="A description.", privacy="Not private.", privacy_ok=False,
        left=Grid("What left each party", names, (row, row)), comparison=Comparison("log-loss", False, rows),
    )  # fmt: skip
    out = io.StringIO()
    print_report(report, Console(file=out, width=80))
    check(out.getvalue(), *row)


@pytest.mark.slow
def test_the_summary_of_a_fit_with_long_names():
    rng, names = np.random.default_rng(0), ["age", "systolic_blood_pressure_in_the_morning", "weight_in_kilograms"]
    schema = hr.data.Schema(
        (*(hr.data.Column(name, "number", low=0, high=1) for name in names), hr.data.Column("ill", "binary", role="target"))
    )
    columns = {name: rng.random(200) for name in names} | {"ill": rng.integers(0, 2, 200)}
    fed = hr.simulate(hr.data.Table(schema.admit(columns), schema), hr.data.iid(parties=2), seed=0)
    for fit in (
        hr.stats.logistic_regression(fed, "ill ~ age + systolic_blood_pressure_in_the_morning + weight_in_kilograms"),
        hr.stats.linear_regression(fed, "age ~ systolic_blood_pressure_in_the_morning:weight_in_kilograms"),
    ):
        check(fit.summary(), "converged", *(f"{name} " for name in fit.names), width=79)
        assert len({len(line) for line in fit.summary().splitlines() if line.endswith((" p", "<0.001"))}) == 1


@pytest.mark.slow
def test_a_ledger_of_many_runs(tmp_path):
    fed = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=20), seed=0)
    private = fed.protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(2.0)).recorded(hr.store.LedgerFile(tmp_path / "ledger.jsonl"))
    for _ in range(2):
        private.sample(rate=0.5).sum(ages, bound=hr.l2(1.0))
    chain = hr.store.read_chain(tmp_path / "ledger.jsonl")
    many = dataclasses.replace(
        chain, entries=tuple(dataclasses.replace(e, run=f"hospital-study-{i}") for i, e in enumerate(chain.entries))
    )
    check(shown(Fits(ledger_room.listing(many))), "hospital-study-1", "gaussian(2)", "protection")


def ages(broadcast, party, rng):
    return party["mean_radius"].sum(keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["studies"],
        ["explain"],
        ["privacy", "epsilon", "-z", "1.1", "-d", "1e-5"],
        ["privacy", "compare", "-e", "2", "-d", "1e-5"],
        ["rehearse", "breast-cancer-glm"],
    ],
    ids=" ".join,
)
def test_what_commands_print(arguments, monkeypatch):
    for room in (show, privacy, explain_room, keys):
        if hasattr(room, "console"):
            monkeypatch.setattr(room, "console", Console(width=80))
    monkeypatch.setattr("hedgerow.cli.main.console", Console(width=80))
    found = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert found.exit_code == 0
    assert max(map(len, found.stdout.splitlines())) <= 80


def test_the_columns_of_a_station():
    schema = hr.data.load("breast_cancer").schema
    check(shown(Fits(columns_of(schema, frozenset(schema.names)))), *schema.names)
