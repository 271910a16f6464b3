"""Study files under the rule of exact numbers against values held: what is refused, what is said, and who may raise it."""

import math

import numpy as np
import pandas as pd
import pytest

from hedgerow.core.disclosure import MOST
from hedgerow.errors import DisclosureExceeded
from hedgerow.store import last
from hedgerow.study import load, parse, rehearse, run_study
from hedgerow.study.build import build

LOGISTIC = {"name": "logistic_regression", "formula": "ill ~ a + b + c + d"}
LINE = {"name": "linear_regression", "formula": "a ~ b + c + d + ill"}


def frame(n):
    rng = np.random.default_rng(4)
    found = pd.DataFrame(rng.normal(size=(n, 4)).round(3), columns=list("abcd"))
    return found.assign(ill=(rng.random(n) < 0.5).astype(int), spare=rng.normal(size=n))


@pytest.fixture
def study(tmp_path):
    """Makes studies of one table, dealt to parties of so many records."""

    def make(program, n=300, parties=4, data=None, **sections):
        (frame(n) if data is None else data).to_csv(tmp_path / "table.csv", index=False)
        ranges = {name: [-6, 6] for name in ("a", "b", "c", "d", "spare")} if data is None else {}
        held = {"path": str(tmp_path / "table.csv"), "target": "ill" if data is None else None, "ranges": ranges}
        held["columns"] = {"ill": {"kind": "binary"}} if data is None else {}
        whole = {"name": "small", "data": held, "partition": {"by": "iid", "parties": parties}, "baselines": False}
        return parse(whole | {"program": program} | sections)

    return make


def run(study, tmp_path):
    return run_study(study, tmp_path / "out")


@pytest.mark.parametrize("n", [3, 5, 8, 12])
def test_small_parties_are_refused_before_anybody_is_asked(study, tmp_path, n):
    with pytest.raises(DisclosureExceeded, match=f"holds {5 * n} values") as refused:
        run(study(LOGISTIC, n=4 * n), tmp_path)
    assert not refused.value.asked
    assert not (tmp_path / "out").exists()


def test_the_smallest_party_counts(study):
    built = build(study(LINE, n=2000, partition={"by": "dirichlet_quantity", "parties": 4, "alpha": 0.2}))
    assert built.run.holdings.smallest == min(len(one) for one in built.partition.indices)


def test_an_ordinary_regression_passes_and_its_page_says_the_ratio(study, tmp_path):
    ended = run(study(LINE), tmp_path)
    (said,) = [note for note in ended.report.notes if note.startswith("Asked in all")]
    assert "375 values of the columns read" in said  # 75 records of five columns: `spare` is not read
    assert "within the limit of 0.33." in said


def test_a_study_that_goes_beyond_in_the_end_is_refused_at_the_start(study, tmp_path):
    """Every question alone is within the limit."""
    of = study(LOGISTIC, n=240)
    first = rehearse(of).entries[0].numbers
    assert first < 300 * MOST < rehearse(of).ledger.exact.plain
    with pytest.raises(DisclosureExceeded, match="rehearsed on made-up records") as refused:
        run(of, tmp_path)
    assert not refused.value.asked


def test_the_ledger_counts_all_rounds_whatever_was_rehearsed(study):
    built = build(study(LOGISTIC, n=200))
    with pytest.raises(DisclosureExceeded) as refused:
        last(built.listing.program(built.settings)(built.federation))
    assert refused.value.asked
    assert 0 < built.run.ledger.exact.plain <= 250 * MOST


def test_a_rehearsal_says_for_how_many_rounds_there_is_room(study):
    """Four coefficients and a constant ask 24 numbers in a round, of which 125 allow five."""
    assert "There is room for 5 rounds" in rehearse(study(LOGISTIC)).room
    assert "may take 50" in rehearse(study(LOGISTIC)).room
    assert rehearse(study(LOGISTIC, n=20_000)).room == ""


def test_a_refusal_says_which_question_how_many_records_would_do_and_what_hidden_rows_need(study):
    built = build(study(LOGISTIC, n=200))
    with pytest.raises(DisclosureExceeded, match="with question 4, ") as refused:
        last(built.listing.program(built.settings)(built.federation))
    assert "Parties of 1.2 times as many records" in refused.value.remedy
    assert "HR-210" in refused.value.remedy


def test_a_study_without_a_limit_says_so_in_words(study):
    from hedgerow.core.disclosure import ExactNumbers
    from hedgerow.study.disclosed import _elsewhere

    assert "This study allows any number for itself." in _elsewhere(ExactNumbers(5.0), math.inf)


def test_the_values_of_all_parties_count_where_rows_are_hidden(study, tmp_path):
    ended = run(study(LOGISTIC, protection={"aggregation": {"by": "secagg", "records": 300}}), tmp_path)
    (said,) = [note for note in ended.report.notes if note.startswith("Asked in all")]
    assert "in totals of parties that together hold 1,500 values" in said


def test_a_study_may_raise_the_limit_and_then_says_so(study, tmp_path):
    ended = run(study(LOGISTIC, protection={"disclosure": 2.0}), tmp_path)
    assert any("within the limit of 2, raised from 0.33" in note for note in ended.report.notes)
    with pytest.raises(DisclosureExceeded):
        run(study(LINE, protection={"disclosure": 1e-3}), tmp_path / "lower")


@pytest.mark.parametrize("most", [0, -1, math.nan])
def test_a_limit_is_above_zero(study, most):
    with pytest.raises(Exception, match="disclosure"):
        study(LINE, protection={"disclosure": most})


def test_a_rehearsal_says_the_ratio_also_of_what_would_be_refused(study):
    said = rehearse(study(LOGISTIC, n=48)).statement
    assert "beyond the limit of 0.33" in said.disclosed
    assert said.disclosed in said.text


@pytest.mark.slow
def test_training_without_noise_is_not_refused_in_a_simulation_and_says_what_stations_do(study):
    said = rehearse(study({"name": "fedavg", "model": "linear", "rounds": 20}, n=60)).statement.disclosed
    assert "and stations refuse that by default" in said


def test_noise_covers_numbers(study):
    noisy = {"mechanism": {"law": "gaussian", "noise_multiplier": 1.0}}
    assert rehearse(study(LOGISTIC, n=48, protection=noisy)).statement.disclosed == "No exact number leaves a party."
    often = rehearse(study(LOGISTIC | {"rounds": 400}, n=48, protection=noisy)).statement.disclosed
    assert "beyond the limit" in often  # five rounds are covered, and not four hundred
    weak = {"mechanism": {"law": "gaussian", "noise_multiplier": 0.01}}
    assert "beyond the limit" in rehearse(study(LOGISTIC, n=48, protection=weak)).statement.disclosed


def test_without_a_seed_the_page_tells_no_number_of_records(study):
    said = rehearse(study(LINE, seed="system")).statement.disclosed
    assert "within 0.33 for each value" in said
    assert "375" not in said


@pytest.mark.parametrize("name", ["breast-cancer-glm", "diabetes-tree", "hie-visits"])
def test_bundled_statistics_are_within_the_limit_that_they_name(name):
    assert "within the limit" in rehearse(load(name)).statement.disclosed


@pytest.mark.parametrize(
    ("program", "formula"),
    [
        ("poisson_regression", "visits ~ a"),
        ("negative_binomial_regression", "visits ~ a"),
        ("logistic_regression", "ill ~ log(dose)"),
    ],
)
def test_columns_without_a_range_are_rehearsed_as_counts_and_logarithms_need_them(study, tmp_path, program, formula):
    rng = np.random.default_rng(7)
    table = frame(800)[["a", "ill"]].assign(visits=rng.negative_binomial(1, 0.4, 800), dose=rng.lognormal(size=800))
    ended = run(study({"name": program, "formula": formula}, data=table), tmp_path)
    assert np.isfinite(ended.run.state.beta).all()
