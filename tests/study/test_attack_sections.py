"""The section [attack] of a study: keys that fit, what records must have, and nothing of it where a study has none."""

import pytest

from hedgerow.engines import Loop
from hedgerow.errors import HedgerowError, SettingsInvalid, StudyInvalid
from hedgerow.study import check_study, parse
from hedgerow.study.attacked import act_in_words, attack_in_words, told
from hedgerow.study.build import build
from hedgerow.study.check import check
from hedgerow.study.liars import class_of

DIGITS = {
    "name": "digits",
    "data": {"name": "digits"},
    "partition": {"by": "iid", "parties": 20},
    "program": {"name": "fedavg", "rounds": 2, "learning_rate": 0.5},
    "evaluation": {"on": "test", "holdout": 0.3},
    "baselines": False,
}
SQUARE = {"at": [0, 0], "size": 2}
BACKDOOR = {"act": "backdoor", "target": 0, "trigger": SQUARE}


def study(attack=None, **changes):
    return parse(DIGITS | changes | ({} if attack is None else {"attack": attack}))


def made(attack, **changes):
    return build(study(attack, **changes), threads=1)


def test_a_study_without_the_section_keeps_the_digest_that_it_had():
    plain = study()
    assert "attack" not in {key for key, value in plain.model_dump().items() if value is not None}
    assert study({"act": "none"}).digest != plain.digest
    assert plain.model_copy(update={"attack": None}).digest == plain.digest == "6e09762dac6b8b0d"


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        ({"act": "backdoor"}, 'act = "backdoor" wants a target'),
        ({"act": "backdoor", "target": 0}, "wants a trigger"),
        ({"act": "single-target", "target": 0}, "wants a source"),
        ({"act": "label-flip", "kind": "forge"}, "pass the party's own clip"),
        ({"act": "label-flip", "strength": 2.0}, "has no strength"),
        ({"act": "sign-flip", "boost": 2.0}, "boost is for acts that change records"),
        ({"act": "sign-flip", "strength": -1.0}, "is too small"),
        ({"act": "sign-flip", "parties": 1.0}, "a share lies between 0 and 1"),
        ({"act": "sign-flip", "parties": []}, "parties names nobody"),
        ({"act": "sign-flip", "from_round": 4, "until": 3}, "is before from_round"),
        ({"act": "sign-flip", "features": ["image"]}, 'features are for act = "noise"'),
        (BACKDOOR | {"trigger": {"at": [0, 0], "columns": {"image": 1}}}, "a trigger is a square of an image"),
        ({"act": "scale", "strength": float("nan")}, "not finite"),
        ({"act": "label-flip", "boost": float("inf")}, "boost.*finite"),
        (BACKDOOR | {"trigger": SQUARE | {"value": float("nan")}}, "value.*finite"),
        (BACKDOOR | {"trigger": {"columns": {"age": float("nan")}}}, "finite number"),
        ({"act": "sybil", "knows": "own"}, "sybils send the row"),
        ({"act": "sign-flip", "sybils": True, "knows": "own"}, "sybils send the row"),
        ({"act": "sign-flop"}, "sign-flip"),
        ({"act": "sign-flip", "stregth": 4.0}, "strength"),
    ],
)
def test_keys_that_do_not_fit_are_refused_in_a_sentence(attack, words):
    with pytest.raises(StudyInvalid, match=words):
        study(attack)


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        ({"act": "sign-flip", "parties": ["party 21"]}, "party 21.*no party"),
        (BACKDOOR | {"target": 11}, "the class 11"),
        (BACKDOOR | {"trigger": {"at": [7, 7], "size": 2}}, "outside images of 8 by 8"),
        (BACKDOOR | {"trigger": {"at": [0, 0], "value": 300.0}}, "outside its declared range"),
        (BACKDOOR | {"trigger": {"columns": {"age": 90}}}, "'age', which is no feature"),
        ({"act": "noise", "features": ["age"]}, "'age', which is no feature"),
    ],
)
def test_what_the_records_do_not_have_is_refused_before_anybody_is_asked(attack, words):
    with pytest.raises(StudyInvalid, match=words):
        made(attack)


@pytest.mark.slow
def test_a_share_is_drawn_by_the_seed_and_not_by_position():
    first, second = (made({"act": "sign-flip", "parties": 0.2}, seed=seed).run.engine.acts.liars.parties for seed in (0, 1))
    assert len(first) == len(second) == 4
    assert first != second
    assert first == made(BACKDOOR | {"parties": 0.2}).run.engine.acts.liars.parties
    with pytest.raises(StudyInvalid, match="is drawn by the seed"):
        made({"act": "sign-flip", "parties": 0.2}, seed="system")


def test_an_act_about_classes_wants_a_target_with_classes():
    with pytest.raises(StudyInvalid, match="is about the classes of a target"):
        made({"act": "label-flip"}, data={"name": "diabetes"}, evaluation={"on": "none"})


def test_a_class_is_its_word_before_it_is_a_code():
    column = build(study()).schema["digit"]
    assert class_of(column, "3") == class_of(column, 3) == 3
    with pytest.raises(StudyInvalid):
        class_of(column, "three")


@pytest.mark.slow
def test_liars_are_of_engines_of_one_process():
    assert isinstance(made({"act": "sign-flip"}, engine={"name": "loop"}).run.engine, Loop)
    with pytest.raises(StudyInvalid, match="simulation in one process"):
        made({"act": "sign-flip"}, engine={"name": "processes"})


def test_stations_and_audits_refuse_liars():
    from hedgerow.study import build_remote
    from hedgerow.study.audits import audit

    built = build(study())
    with pytest.raises(StudyInvalid, match="at stations"):
        build_remote(study({"act": "sign-flip"}, evaluation={"on": "none"}), built.schema, built.run.engine)
    with pytest.raises(SettingsInvalid, match="honest parties leak"):
        audit(study({"act": "sign-flip"}))


@pytest.mark.slow
def test_check_says_who_lies_how_and_what_holds_it():
    facts = check_study(study({"act": "scale", "kind": "forge"}))["attack"]
    assert facts["who"].startswith("4 of 20 parties: party ")
    assert facts["kind"].startswith("forge")
    assert facts["held"].startswith("Nothing: no bound is declared")
    clip = {"clip": {"radius": 1.0}}
    seen = told(made({"act": "scale", "kind": "forge"}, protection=clip), study({"act": "scale", "kind": "forge"}).attack)
    assert dict(seen)["held"].startswith("The server sees rows and holds each to its bound")
    hidden = made({"act": "scale", "kind": "forge"}, protection=clip | {"aggregation": {"by": "secagg"}})
    assert dict(told(hidden, hidden.study.attack))["held"].startswith("Nothing: the server sees no row")
    assert (
        "ALL parties" in dict(told(made({"act": "ipm", "knows": "all"}), study({"act": "ipm", "knows": "all"}).attack))["knows"]
    )


def test_every_act_has_words():
    from typing import get_args

    from hedgerow.study.attack import ActName, AttackSection

    aim = {"target": 0, "trigger": SQUARE}
    for act in get_args(ActName):
        more = {"target": 0, "source": 1} if act == "single-target" else aim
        assert act_in_words(AttackSection(act=act, **more), 20, 4)
    assert attack_in_words(study(BACKDOOR)).startswith(
        "parties of a simulation (a share of 0.2, drawn by the seed) lie: backdoor"
    )


@pytest.mark.slow
def test_parties_that_hold_different_columns_have_no_liars():
    from hedgerow.study import load

    with pytest.raises(HedgerowError, match="attack: it is of parties that hold the same columns"):
        check_study(load("vertical-heart").model_copy(update={"attack": study({"act": "sign-flip"}).attack}))


RECORDS = {
    "program": {"name": "dpsgd", "model": "linear", "rounds": 2, "clip": 1.0, "sampling_rate": 0.25, "batch_size": 200},
    "protection": {"mechanism": {"law": "gaussian", "noise_multiplier": 1.0}},
}


@pytest.mark.slow
def test_a_forged_row_under_bounds_per_record_is_said_to_be_held_by_nobody():
    built = made({"act": "scale", "kind": "forge"}, **RECORDS)
    assert dict(told(built, built.study.attack))["held"].startswith("Nothing: bounds per record hold what each record adds")


def test_a_lie_in_rows_under_bounds_per_record_is_refused_before_anybody_is_asked():
    with pytest.raises(SettingsInvalid, match="is bounded per record"):
        check(made({"act": "sign-flip"}, **RECORDS))
    check(made({"act": "scale", "kind": "forge"}, **RECORDS))
    check(made({"act": "label-flip"}, **RECORDS))
