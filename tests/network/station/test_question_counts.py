"""A study asks as many questions of each kind as it announced, with the broadcasts that it announced, also after a restart."""

from dataclasses import replace

import numpy as np
import pytest
from test_difference_attack import ACTIVE, FOUR, STRICT, Rogue, boarded
from test_hostile_coordinator import LINE, asked, first_question, plain
from test_hostile_coordinator import boarded as open_house

from hedgerow.errors import QuestionUnannounced
from hedgerow.network.station.children.facts import AskedQuestion
from hedgerow.network.station.counts import ANEW, ANY, AskedBefore, broadcasts_of, numbers_of
from hedgerow.network.station.signatures import Announced, QuestionSignature
from station_house import LOGISTIC, MEANS, House


# ---- what a rehearsal announces --------------------------------------------------------------------------------------
def test_how_often_a_kind_may_be_asked_follows_from_the_rehearsal_or_from_the_largest_number_of_rounds():
    kinds, ends = ["scale", "step", "step", "step"], [2, 3, 4]
    said = lambda whole, most, by_answers: numbers_of(kinds, ["scale"], ends, whole, most, by_answers)  # noqa: E731
    assert said(True, 3, False) == {"scale": 1, "step": 3}
    assert said(True, None, False) == {"scale": 1, "step": 3}
    assert said(True, 50, True) == {"scale": 1, "step": 50}  # it converged on made-up records after three
    assert said(False, 100, False) == {"scale": 1, "step": 100}  # the rehearsal was cut short
    assert said(False, None, False) == {"scale": 1, "step": ANY}
    assert numbers_of(["a", "a", "b"], [], [3], True, 10, True) == {"a": 20, "b": 10}
    assert numbers_of(["a", "a", "b"], [], [], False, None, False) == {"a": ANY, "b": ANY}


def test_what_a_kind_sends_is_nothing_always_the_same_or_free():
    sent = {"mean": [None], "rate": [b"1", b"1"], "step": [b"1", b"2"], "once": [b"1"]}
    assert broadcasts_of(sent) == {"mean": "none", "rate": "constant", "step": "free", "once": "free"}


def announced_by(tmp_path, text, columns=("age", "dose", "sick"), **guard):
    house = open_house(tmp_path, text, columns, names=("alpha", "beta", "gamma"), **guard)
    found = house.stations["alpha"].submissions.all()[0].announced
    return {kind.function.rpartition(":")[2]: (found.most[kind], found.broadcasts[kind]) for kind in found.signatures}


@pytest.mark.slow
def test_a_person_signs_numbers_of_questions(tmp_path):
    assert announced_by(tmp_path / "m", MEANS, ("age", "dose")) == {"deviations": (2, "free")}
    assert announced_by(tmp_path / "l", LOGISTIC) == {"linear_sums": (50, "free")}
    assert announced_by(tmp_path / "few", LOGISTIC + "max_rounds = 9\n") == {"linear_sums": (9, "free")}
    assert announced_by(tmp_path / "noise", LINE, ("age", "dose"))["linear_sums"][0] == 1


GROWN = """
name = "grown"
[data]
name = "heart"
target = "sick"
features = ["age", "dose"]
[program]
name = "boosted_trees"
trees = 3
depth = 3
n_bins = 3
min_curvature = 15
[protection.mechanism]
law = "gaussian"
noise_multiplier = 5.0
at = "party"
"""


@pytest.mark.slow
def test_trees_may_ask_as_often_as_their_program_declares_however_few_nodes_made_up_records_open(tmp_path):
    house = House(tmp_path, {"alpha": {}}, approval="automatic", programs=[{"name": "boosted_trees"}])
    assert house.board(GROWN, ("age", "dose", "sick"))["alpha"]["status"] == "approved"
    found = house.stations["alpha"].submissions.all()[0].announced
    (level,) = (kind for kind in found.signatures if kind.function.endswith("gradient_histogram"))
    assert (found.most[level], found.sizes[level]) == (9, -1)


# ---- what a station holds it to --------------------------------------------------------------------------------------
def rounds(rogue, numbers):
    """What comes of questions with a broadcast of their own each; a total for those that are answered."""
    sent = rogue.seen.question.broadcast
    return [rogue.ask(FOUR, number=number, broadcast=sent + number / 64) is not None for number in numbers]


@pytest.mark.slow
def test_further_rounds_of_an_approved_study_are_refused_also_after_a_restart(tmp_path):
    rogue = Rogue(boarded(tmp_path))
    assert rounds(rogue, range(1, 6)) == [True] * 2 + [False] * 3
    for name in FOUR:
        rogue.house.start(name)
    assert rounds(rogue, [6, 1, 2]) == [False, True, True]  # the same question again, as after a round without a total
    assert set(rogue.refusals()) == {"HR-609"}


@pytest.mark.slow
def test_a_twin_that_counts_nothing_answers_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(AskedBefore, "refuse_further", lambda self, question: None)
    assert rounds(Rogue(boarded(tmp_path)), range(1, 6)) == [True] * 5


def test_what_is_asked_again_is_no_further_question_and_random_answers_are_not_averaged():
    kind = question().signature
    asked = AskedBefore(Announced({kind: {}}, {}, {kind: 2}, {kind: "free"}))
    for number in range(1, 60):
        asked.refuse_further(question(number=number))
        asked.take(question(number=number))
    with pytest.raises(QuestionUnannounced, match="repetitions"):
        asked.refuse_further(replace(question(number=60), random=True))


def question(about="1", broadcast="", number=1, hidden=True):
    kind = QuestionSignature(**vars_of())
    return AskedQuestion(("a",), "sum", "f", number, signature=kind, about=about, broadcast=broadcast, hidden=hidden)


@pytest.mark.parametrize(("sends", "lawful"), [("none", ("",)), ("constant", ("b",)), ("free", ("b", "c", ""))])
def test_a_broadcast_other_than_announced_is_refused(sends, lawful):
    kind = question().signature
    asked = AskedBefore(Announced({kind: {}}, {}, {kind: ANY}, {kind: sends}))
    if sends != "none":
        asked.take(question(broadcast="b"))
    for number, broadcast in enumerate(("b", "c", ""), 2):
        further = question(about=f"{number}", broadcast=broadcast, number=number)
        if broadcast in lawful:
            asked.refuse_further(further)
        else:
            with pytest.raises(QuestionUnannounced, match="broadcast"):
                asked.refuse_further(further)


@pytest.mark.slow
@pytest.mark.parametrize("restarted", [False, True])
def test_an_old_number_is_not_asked_with_another_broadcast_where_rows_are_hidden(tmp_path, restarted):
    house = open_house(tmp_path, LOGISTIC + ACTIVE, ("age", "dose", "sick"), names=FOUR, **STRICT)
    rogue = Rogue(house, ACTIVE, text=LOGISTIC, columns=("age", "dose", "sick"))
    assert rogue.ask(FOUR) is not None
    for name in FOUR if restarted else ():
        house.start(name)
    moved = {key: np.asarray(value) + 1e-3 for key, value in rogue.seen.question.broadcast.items()}
    assert rogue.ask(FOUR, broadcast=moved) is None
    assert set(rogue.refusals()) == {"HR-609"}
    assert rogue.ask(FOUR) is not None
    assert rogue.ask(FOUR, number=2, broadcast=moved) is not None


@pytest.mark.slow
def test_in_the_open_a_number_with_another_broadcast_counts_as_a_further_question(tmp_path):
    house = open_house(tmp_path, LOGISTIC + "max_rounds = 9\n", ("age", "dose", "sick"))
    seen = plain(first_question(house, LOGISTIC + "max_rounds = 9\n", ("age", "dose", "sick")))
    sent = seen.question.broadcast
    moved = [{key: np.asarray(value) + step / 8 for key, value in sent.items()} for step in range(9 + ANEW + 1)]
    codes = [found if isinstance(found := asked(house, seen, broadcast=one), str) else "" for one in moved]
    assert codes == [""] * (9 + ANEW) + ["HR-609"]
    assert asked(house, seen, broadcast=moved[0]).answered == ("alpha",)


def test_an_approval_of_an_earlier_version_says_of_no_number():
    kept = [{**vars_of(), "radii": {}, "numbers": 3}]
    assert Announced.from_json(kept).most == {}
    assert Announced.from_json(kept).to_json() == kept


def vars_of():
    names = ("verb", "function", "aggregation", "mechanism", "compression", "unit", "sampling", "bound", "outline")
    return dict.fromkeys(names, "") | {"rows": False}
