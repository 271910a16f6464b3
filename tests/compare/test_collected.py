"""Tables of a comparison: the names of their files, and what is not said where measures differ."""

from types import SimpleNamespace

import pytest

from hedgerow.compare.collected import collected, file_names
from hedgerow.compare.report import headline, matrix
from hedgerow.compare.standings import _said
from hedgerow.report import Grid
from hedgerow.study import parse, run_study


def test_tables_that_begin_alike_have_files_of_their_own():
    titles = ["Errors: of one", "Errors: of two", "Errors: of-two", "Forests: of one", "Comparison: of all"]
    grids = [Grid(title, ("a",), ((1,),)) for title in titles]
    names = ["errors-of-one.csv", "errors-of-two.csv", "errors-of-two-2.csv", "forests.csv", "comparison-2.csv"]
    assert file_names(grids) == names


def test_where_measures_of_runs_are_not_alike_none_is_the_best():
    section = SimpleNamespace(alike=False, span=False)
    assert headline(SimpleNamespace(runs=(), winner=None, section=section)) == ()
    one = SimpleNamespace(difference=None, value=0.9, cell=SimpleNamespace(name="a"))
    found = SimpleNamespace(runs=(one,), finished=[one, one], places=[one, one], winner=one, measure="x", section=section)
    assert headline(found) == ()
    assert matrix(found) is None


@pytest.mark.parametrize(("values", "said"), [((2.0, 1.0, 3.0), "1 to 3"), ((2.0, 2.0), "2"), ((0.25,), "0.25")])
def test_a_page_may_begin_with_the_least_and_the_most_of_its_runs(values, said):
    runs = [SimpleNamespace(difference=None, value=value) for value in values]
    section = SimpleNamespace(alike=False, span=True)
    found = SimpleNamespace(runs=runs, finished=runs, winner=runs[0], measure="equilibria found", section=section)
    assert headline(found) == (("equilibria found", said),)
    assert headline(SimpleNamespace(runs=(), finished=[], winner=None, section=section)) == ()


def test_a_table_that_several_runs_have_alike_is_shown_once():
    same, other = Grid("Errors", ("a",), ((1,),)), Grid("Errors", ("a",), ((2,),))
    runs = [SimpleNamespace(report=SimpleNamespace(tables=[grid])) for grid in (same, other, same)]
    (found,) = collected(SimpleNamespace(runs=runs, section=SimpleNamespace(collect=["Err"])))
    assert found.rows == ((1,), (2,))


@pytest.mark.slow
def test_the_page_of_a_comparison_takes_the_delta_that_its_runs_planned(tmp_path):
    """Otherwise epsilon stands beside another one on the page of the run itself."""
    program = {"name": "pate", "teacher": "ridge", "shards": 1, "asked": 4, "epsilon": 2.0, "delta": 1e-5, "graph": 0}
    made = {
        "name": "votes",
        "baselines": False,
        "data": {"name": "breast_cancer"},
        "partition": {"by": "iid", "parties": 2},
        "program": program | {"student": "ridge"},
        "evaluation": {"holdout": 0.2},
    }
    study = parse(made)
    run_study(study, tmp_path / "run")
    said = _said(SimpleNamespace(study=study), tmp_path / "run", {"party": 2, "record": 455})
    assert (said.epsilon, said.delta) == pytest.approx((2.0, 1e-5), abs=1e-6)
