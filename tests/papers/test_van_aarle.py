"""The thesis' tables: its central numbers come again, exact fits equal pooled ones, and one page shows them all."""

import csv
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from safetensors.numpy import load_file

import hedgerow as hr
from hedgerow.compare import cells, compare
from hedgerow.compare.collected import csv_of, file_names, one_of
from hedgerow.errors import MissingData, SettingsInvalid
from hedgerow.papers.van_aarle.pooled import firth_pooled, separates
from hedgerow.papers.van_aarle.published import TABLES, agrees
from hedgerow.papers.van_aarle.replay import METHODS, as_numbers, population_scaling, replay
from hedgerow.papers.van_aarle.tables import relative
from hedgerow.report import Grid
from hedgerow.study import bundled, load

DATA = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="set HEDGEROW_DATA to the folder of public data sets")
NAME = "van-aarle-tables"


def run_rows(tmp_path, *rows, **changes):
    """The bundled comparison, cut down to some of its rows."""
    study = load(NAME)
    section = study.comparison
    kept = [row for row in section.rows if row.name in rows]
    assert len(kept) == len(rows)
    study = study.model_copy(update={"comparison": section.model_copy(update={"rows": kept})})
    return compare(study, tmp_path / "out", jobs=1, data_dir=DATA, changes=list(changes.items()))


def lines(folder, table):
    with (folder / f"table-{table}.csv").open() as file:
        return list(csv.DictReader(file))


# ---- what is printed ------------------------------------------------------------------------------------------------
def test_a_number_agrees_with_a_printed_one_that_was_rounded_or_cut_off():
    assert agrees("0.34568", 0.3456889)
    assert agrees("0.34568", 0.3456751)
    assert not agrees("0.34568", 0.345660)
    assert agrees("1.55E+08", 154_680_000.0)
    assert not agrees("1.55E+08", 156_100_000.0)
    assert agrees("-0.0717", -0.07171)


def test_every_line_of_a_table_has_as_many_numbers_as_its_programs_need():
    for printed in TABLES.values():
        wide = {len(line) for line in printed.rows.values()}
        assert wide <= {1 + len(printed.programs), 1 + 2 * len(printed.programs)}
        assert len(wide) == 1
        assert set(printed.programs.values()) <= set(METHODS)
        for line in printed.rows.values():
            assert all(value == "" or float(value) is not None for value in line)


def test_every_printed_data_set_is_a_run_that_has_all_programs():
    found = {}
    for cell in cells(load(NAME)):
        keys = cell.study.program.model_extra
        for number in keys["tables"]:
            names = {name for name, _ in TABLES[number].rows}
            assert keys["called"] in names
            assert set(TABLES[number].programs.values()) <= set(keys["methods"])
            found.setdefault(number, set()).add(keys["called"])
    assert found == {number: {name for name, _ in printed.rows} for number, printed in TABLES.items()}


def test_differences_are_relative_above_one_and_a_missing_side_is_no_agreement():
    assert_allclose(relative([2000.0, 0.5, np.nan], [1000.0, 0.25, np.nan]), [1.0, 0.25, 0.0])
    assert relative([np.nan], [1.0])[0] == np.inf


# ---- rows and programs ----------------------------------------------------------------------------------------------
def test_stores_stand_in_the_order_of_the_thesis():
    table = hr.data.load("noise_experiment")
    part = hr.data.stores(rows=4, shuffled=5)(table, 0)
    import random

    order = list(range(100))
    random.Random(5).shuffle(order)
    assert [records.tolist() for records in part.indices] == [[row] for row in order[:4]]
    assert "96 are left out" in part.sentence


def made(n=60, rows=None):
    """Stores with a binary target, a category of two levels and a number."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=n), "g": rng.choice(["a", "b"], n)})
    frame["y"] = (rng.random(n) < 1 / (1 + np.exp(-frame.x - (frame.g == "b")))).astype(int)
    table = hr.data.Table.from_pandas(frame, target="y").declare(x=(-5, 5))
    return hr.simulate(table, hr.data.stores(rows=rows)(table, 0), seed=0), frame


def test_codes_are_standardised_with_n_in_the_denominator():
    federation, frame = made()
    numbers = as_numbers(federation, ("g",))
    found = population_scaling(numbers, ["g", "x"])
    code = (frame.g == "b").to_numpy(float)
    assert_allclose(found.scales, [code.std(), frame.x.std(ddof=0)], rtol=1e-12)
    assert numbers.schema["g"].kind == "number"


def test_a_replay_is_descent_on_columns_that_were_standardised_beforehand():
    federation, frame = made()
    *_, state = replay(federation, formula="y ~ x", family="binomial", methods=["v2"], effort=0.01)
    X = np.column_stack([np.ones(60), (frame.x - frame.x.mean()) / frame.x.std(ddof=0)])
    beta = np.zeros(2)
    for _ in range(8):
        beta -= 0.1 * X.T @ (1 / (1 + np.exp(-X @ beta)) - frame.y.to_numpy()) / 60
    assert_allclose(state.betas["v2"], beta, atol=1e-12)


def test_a_replay_goes_on_after_the_methods_that_have_run():
    settings = {"formula": "y ~ x + g", "family": "binomial", "methods": ["exact", "firth", "v2"]}
    settings |= {"numbers": ["g"], "effort": 0.01, "fitted": 40}
    states = list(replay(made()[0], **settings))
    assert [state.round for state in states] == [1, 2, 3]
    *_, again = replay(made()[0], **settings, start=states[0])
    for name, beta in states[-1].betas.items():
        assert_allclose(again.betas[name], beta, atol=1e-12)
    assert set(states[-1].others) == {"exact", "firth", "v2"}


def test_unknown_methods_are_refused_before_anybody_is_asked():
    federation, _ = made()
    with pytest.raises(SettingsInvalid, match="sweep_adagrad"):
        replay(federation, formula="y ~ x", family="binomial", methods=["newton"])
    assert len(federation.ledger) == 0


def test_a_plane_separates_classes_or_it_does_not():
    X = np.column_stack([np.ones(4), [0.0, 1.0, 2.0, 3.0]])
    assert separates(X, np.array([0.0, 0.0, 1.0, 1.0]))
    assert not separates(X, np.array([0.0, 1.0, 0.0, 1.0]))
    beta, _ = firth_pooled(X, np.array([0.0, 0.0, 1.0, 1.0]))
    assert np.isfinite(beta).all()


# ---- golden: his central numbers, from the rows of his shuffle --------------------------------------------------------
@needs_data
@pytest.mark.slow
def test_central_numbers_of_the_thesis_come_again_and_exact_fits_equal_pooled_ones(tmp_path):
    rows = ("insurance", "city", "CASP subset", "CASP", "cardio1", "cardio2", "haberman", "breast cancer")
    found = run_rows(tmp_path, *rows, **{"program.effort": 0.02})
    assert not found.problems
    assert all(run.value < 1e-6 for run in found.standings.runs)
    wrong = [
        (number, line["data set"], line.get("variable") or line["measure"])
        for number in ("6.8", "6.9", "6.10", "6.11", "6.12", "6.13")
        for line in lines(found.folder, number)
        if line["as printed"] not in ("yes", "under OR", "under AOR")
    ]
    assert wrong == [("6.8", "city", "income"), ("6.11", "breast cancer", "AUC")]
    swapped = {line["variable"].split(",")[0] for line in lines(found.folder, "6.9") if line["as printed"] != "yes"}
    assert swapped == {"height", "weight", "age"}


@needs_data
@pytest.mark.slow
def test_first_experiments_used_the_files_order_or_another_shuffle(tmp_path):
    found = run_rows(
        tmp_path,
        "6.4 insurance",
        "6.5 haberman",
        **{"program.methods": ["exact", "sweep", "sweep_adagrad"], "program.effort": 0.01},
    )
    assert not found.problems
    said = {(line["data set"], line["measure"]): line["as printed"] for n in ("6.4", "6.5") for line in lines(found.folder, n)}
    assert set(said.values()) == {"yes"}


@needs_data
@pytest.mark.slow
def test_descent_reaches_his_federated_numbers(tmp_path):
    found = run_rows(tmp_path, "haberman")
    for number in ("6.11", "6.13"):
        for line in lines(found.folder, number):
            his, ours = (float(line[name]) for name in line if name.startswith("Fed"))
            assert abs(his - ours) < 2e-5, (number, line)
    page = (found.folder / "report.html").read_text()
    assert "Table 6.13: log-loss of other records" in page
    assert "What differs from the publication" in page


@pytest.mark.slow
def test_made_data_are_fitted_and_separated_classes_get_firths_fit(tmp_path):
    found = run_rows(tmp_path, "made 4", "TWOC-150", **{"program.effort": 0.2})
    assert not found.problems
    assert all(run.value < 1e-6 for run in found.standings.runs)
    area, log_loss = lines(found.folder, "6.11")
    assert float(area["exact"]) == 1
    assert 0 < float(log_loss["exact"]) < 0.1
    assert log_loss["as printed"] == ""
    beta = load_file(found.folder / "TWOC-150--replay" / "model.safetensors")
    assert np.isnan(beta["beta exact"]).all()  # nobody pretends that the maximum exists


# ---- a comparison that collects tables and can lack data --------------------------------------------------------------
def test_tables_of_one_title_become_one():
    first = Grid("Table 6.8: x", ("data set", "a"), (("one", 1.5),))
    other = Grid("Table 6.8: x", ("data set", "b"), (("two", 0.1),))
    both = one_of([first, other])
    assert both.columns == ("data set", "a", "b")
    assert both.rows == (("one", 1.5, None), ("two", None, 0.1))
    assert file_names([both]) == ["table-6.8.csv"]
    assert csv_of(both) == "data set,a,b\none,1.5,\ntwo,,0.1\n"


@pytest.mark.slow
def test_runs_whose_data_are_missing_are_left_out_and_said(tmp_path, monkeypatch):
    monkeypatch.delenv("HEDGEROW_DATA", raising=False)
    study = load(NAME)
    kept = [row for row in study.comparison.rows if row.name in ("made 1", "CASP")]
    study = study.model_copy(update={"comparison": study.comparison.model_copy(update={"rows": kept})})
    found = compare(study, tmp_path / "out", jobs=1, data_dir=tmp_path, changes=[("program.effort", 0.02)])
    assert list(found.problems) == ["CASP, replay"]
    assert "--data-dir or HEDGEROW_DATA" in found.problems["CASP, replay"]
    assert [run.value is None for run in found.standings.runs] == [False, True]
    assert any("CASP" in warning and "failed" in warning for warning in found.report.warnings)
    assert any("tabular/CASP.csv.gz" in warning and "get it from its publisher" in warning for warning in found.report.warnings)
    only = study.model_copy(update={"comparison": study.comparison.model_copy(update={"rows": kept[1:]})})
    with pytest.raises(MissingData, match="CASP"):
        compare(only, tmp_path / "none", jobs=1, data_dir=tmp_path)


def test_the_study_is_bundled_and_every_cell_is_lawful():
    assert NAME in bundled()
    assert len(cells(load(NAME), quick=True)) == 29
