"""Figures 4.2 and 4.3 of Wu's thesis as runs of a study: what is printed beside what is meant."""

from __future__ import annotations

import numpy as np
import pytest

from hedgerow.compare import cells
from hedgerow.data import load as load_data
from hedgerow.data import partitioner
from hedgerow.engines import simulate
from hedgerow.errors import SettingsInvalid
from hedgerow.papers.wu.games import game_of, openness_game, still
from hedgerow.papers.wu.games_results import END, MEASURE, outcome
from hedgerow.study import PROGRAMS, load, rehearse
from hedgerow.study.keys import settings_of

STARTS = [[0.2, 1.0, 2.5], [2.9, 0.05, 0.05], [0.01, 0.01, 0.01]]


def federation():
    table = load_data("breast_cancer").select(["malignant", "mean_radius"])
    return simulate(table, partitioner("iid", parties=3)(table, 0), seed=0)


def played(**settings):
    """A run's outcome: its last state, and its tables."""
    asked = federation()
    *_, state = openness_game(asked, **{"starts": STARTS} | settings)
    whole = settings_of(PROGRAMS["openness_game"], {"starts": STARTS} | settings)
    return state, outcome(game_of(whole, 3, state.records), whole, state), asked


@pytest.mark.slow
def test_figure_42_all_starts_meet_and_the_second_equilibrium_is_in_the_table():
    state, shown, asked = played()
    assert state.walked[-1] == pytest.approx(np.full((3, 3), 1.136589), abs=1e-6)
    assert still(state.walked)
    assert shown.metrics[END] == pytest.approx(1.136589, abs=1e-6)
    assert (shown.metrics[MEASURE], shown.metrics["of them stable"]) == (2, 1)
    table = shown.tables["Equilibria"]
    assert table["equilibrium"].tolist() == ["interior", "everybody at zero"]
    assert table["stable"].tolist() == ["yes", "no"]
    assert (table["gain by deviating"] <= 1e-6).all()
    assert len(asked.ledger.entries) == 1
    assert state.records == 569
    payoffs, paths = shown.curves
    assert payoffs.title.startswith("Figure 4.2 a")
    assert paths.title.startswith("Figure 4.2 b")
    assert len(paths.series) == 9
    at = int(np.argmax(payoffs.series[0].y))
    assert payoffs.series[0].x[at] == pytest.approx(1.1366, abs=0.02)
    assert "u = 10, v = 5" in shown.notes[0]


def test_figure_43_as_printed_can_only_show_nobody_answering():
    state, shown, _ = played(game="utility", form="printed", starts=STARTS[:1])
    assert state.walked[-1].tolist() == [[0, 0, 0]]
    assert shown.tables["Equilibria"]["equilibrium"].tolist() == ["everybody at zero"]
    assert shown.curves[1].title.startswith("Figure 4.3 b")


def test_figure_43_as_mended_has_an_equilibrium_at_which_no_path_ends():
    state, shown, _ = played(game="utility", starts=[[0.2, 1.0, 2.5], [0.01, 0.01, 0.01]])
    table = shown.tables["Equilibria"]
    assert table["epsilon 1"].tolist() == pytest.approx([1.05558, 0.35359, 0], abs=1e-5)
    assert table["stable"].tolist() == ["yes", "no", "yes"]
    assert np.abs(state.walked[-1] - 0.35359).min() > 0.1


def test_owners_of_other_sizes_end_apart():
    """The thesis's third panel: the larger, the less open."""
    state, shown, _ = played(sizes=[1.0, 2.0, 4.0], starts=STARTS[:2])
    assert state.walked[-1] == pytest.approx(np.tile([1.403149, 1.144202, 0.811497], (2, 1)), abs=1e-6)
    assert shown.curves[1].title.startswith("Figure 4.2 c")


def test_the_separable_game_takes_its_records_from_the_parties():
    settings = {
        "game": "separable",
        "benefits": [50.0] * 3,
        "costs": [1.0, 0.2, 5.0],
        "kappa": 569**2 / 9,
        "starts": STARTS[:1],
    }
    state, shown, _ = played(**settings)
    assert state.walked[-1, 0] == pytest.approx([1.3995, 1.9753, 0.9506], abs=5e-5)
    assert shown.tables["Equilibria"]["price of anarchy"].tolist() == [pytest.approx(1.1376, abs=5e-5)]
    _, paid, _ = played(**settings, transfers=True)
    assert paid.tables["Equilibria"]["price of anarchy"].tolist() == [pytest.approx(1.0, abs=1e-6)]


def test_a_game_continues_where_it_stopped():
    whole = [state.walked[-1] for state in openness_game(federation(), starts=STARTS)]
    first = next(openness_game(federation(), starts=STARTS))
    rest = [state.walked[-1] for state in openness_game(federation(), starts=STARTS, start=first)]
    assert np.array_equal(whole[1:], rest)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"starts": [[1.0, 2.0]]}, "starts"),
        ({"starts": [[1.0, 2.0, 4.0]]}, "cap of 3"),
        ({"sizes": [1.0, 2.0]}, "2 sizes"),
        ({"game": "separable", "costs": [1.0]}, "1 costs"),
    ],
)
def test_a_game_for_other_parties_is_refused_before_anybody_is_asked(change, said):
    asked = federation()
    with pytest.raises(SettingsInvalid, match=said):
        next(openness_game(asked, **{"starts": STARTS} | change))
    assert not asked.ledger.entries


def test_the_study_plays_every_game_and_asks_one_question_in_each():
    study = load("wu-games")
    names = [cell.row for cell in cells(study)]
    assert len(names) == 14
    assert {"(4.1) printed", "(4.1) mended", "(4.2) printed", "(4.2) mended", "separable"} <= set(names)
    one = next(cell.study for cell in cells(study) if cell.row == "separable")
    assert one.program.model_extra["kappa"] == pytest.approx(569**2 / 9)
    assert len(rehearse(one).entries) == 1
    assert study.comparison.span  # "best mean epsilon 3" would be that of a minimised game, which means nothing
