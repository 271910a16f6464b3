"""Tables of a comparison: the names of their files, and what is not said where measures differ."""

from types import SimpleNamespace

from hedgerow.compare.collected import file_names
from hedgerow.compare.report import headline, matrix
from hedgerow.report import Grid


def test_tables_that_begin_alike_have_files_of_their_own():
    titles = ["Errors: of one", "Errors: of two", "Errors: of-two", "Forests: of one", "Comparison: of all"]
    grids = [Grid(title, ("a",), ((1,),)) for title in titles]
    names = ["errors-of-one.csv", "errors-of-two.csv", "errors-of-two-2.csv", "forests.csv", "comparison-2.csv"]
    assert file_names(grids) == names


def test_where_measures_of_runs_are_not_alike_none_is_the_best():
    section = SimpleNamespace(alike=False)
    assert headline(SimpleNamespace(runs=(), winner=None, section=section)) == ()
    one = SimpleNamespace(difference=None, value=0.9, cell=SimpleNamespace(name="a"))
    found = SimpleNamespace(runs=(one,), finished=[one, one], winner=one, measure="x", section=section)
    assert headline(found) == ()
    assert matrix(found) is None
