"""What a comparison says of a number that whole runs have, and no round: its best run, and by which records it is that."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from comparing import compared, study

from hedgerow.compare import cells
from hedgerow.compare.report import headline, run_table, table, tuned_on, warnings_of
from hedgerow.compare.standings import Standing, Standings, chosen_on

QUERIES = {"name": "gradient_queries", "n_records": 200, "epsilons": {"party 1": 1.0}, "box": 1.0, "step": 0.1}
EXACT = "the parties' records, by exact results that only a simulation has"


@pytest.mark.parametrize(("program", "where"), [(QUERIES, EXACT), ({"name": "linear_regression"}, "the parties' records")])
@pytest.mark.parametrize("at", ["test", "none"])
def test_a_number_of_whole_runs_is_chosen_by_no_round_and_on_no_test_table(program, where, at):
    """Its rounds measured nothing, or something else; of a loss such as relative fitness the smallest is the best."""
    measure = "relative fitness"
    values = [4.8, 3.3, 3.1, 3.5]
    rows = [{"name": f"{i}", "set": {"title": f"{i}"}} for i in range(len(values))]
    plain = study(partition={"by": "iid", "parties": 1}, evaluation={"on": at, "holdout": 0.0})
    plain = plain.model_copy(update={"program": plain.program.model_validate(program)})
    section = compared(rows=rows, columns=[{"name": "a"}], published={}, source="", target=None, measure=measure).comparison
    kept = plain.model_validate(plain.model_dump(exclude_unset=True) | {"comparison": section.model_dump()})
    told = SimpleNamespace(metrics=((measure, 1.0),), facts=(), nothing="", published=None, privacy_ok=True)
    history = [{"round": 1, "test loss": 0.5}, {"round": 2, "test loss": 0.4}]
    runs = tuple(Standing(c, v, last=v, report=told, history=history) for c, v in zip(cells(kept), values, strict=True))
    found = Standings(kept.comparison, measure, runs)
    assert headline(found) == (("best relative fitness", 3.1), ("in the run", "2, a"))
    assert tuned_on(found) == ()
    assert table(found).title == "Relative fitness, at the end of each run"
    assert run_table(found).columns[:3] == ("run", measure, "ended")
    assert [row[1] for row in run_table(found).rows] == values
    choosing = replace(found, section=found.section.model_copy(update={"choose": True}))
    assert {chosen_on(choosing, run) for run in runs} == {where}
    assert any(
        "4 trials on the same records of the parties" in w for w in warnings_of(choosing, kept, quick=False, interrupted=False)
    )
