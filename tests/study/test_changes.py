"""Changes by dotted key: what a new program leaves behind and what it refuses."""

import pytest

from hedgerow.errors import StudyInvalid
from hedgerow.study.changes import change, changed

PROX = {
    "program": {"name": "fedprox", "mu": 0.5, "rounds": 3},
    "partition": {"by": "shards", "parties": 4, "shards_per_party": 2},
}


def test_a_change_reaches_into_a_section_and_leaves_the_original():
    assert changed(PROX, [("program.rounds", 7)])["program"] == {"name": "fedprox", "mu": 0.5, "rounds": 7}
    assert changed({}, [("a.b.c", 1)]) == {"a": {"b": {"c": 1}}}
    assert PROX["program"]["rounds"] == 3


def test_another_program_or_partitioner_leaves_behind_what_only_the_former_knows():
    made = changed(PROX, [("program.name", "fedavg"), ("partition.by", "iid")])
    assert made == {"program": {"name": "fedavg", "rounds": 3}, "partition": {"by": "iid", "parties": 4}}


def test_what_the_changes_themselves_give_is_kept_to_be_refused():
    assert changed(PROX, [("program.name", "fedavg"), ("program.mu", 0.1)])["program"]["mu"] == 0.1
    assert changed(PROX, [("partition", {"by": "iid", "shards_per_party": 1})])["partition"]["shards_per_party"] == 1


def test_a_key_that_nobody_knows_is_kept_to_be_refused():
    made = changed({"program": {"name": "fedprox", "muu": 1}}, [("program.name", "fedavg")])
    assert made["program"] == {"name": "fedavg", "muu": 1}


def test_a_section_replaces_a_section_and_later_changes_win():
    made = changed(PROX, [("partition.parties", 9), ("partition", {"by": "iid", "parties": 3}), ("program.rounds", 1)])
    assert made["partition"] == {"by": "iid", "parties": 3}
    assert changed(PROX, [("partition", {"by": "iid"}), ("partition.parties", 9)])["partition"] == {"by": "iid", "parties": 9}


def test_a_value_is_no_section():
    with pytest.raises(StudyInvalid, match="is a value, not a section"):
        changed(PROX, [("program.rounds.x", 1)])


@pytest.mark.parametrize(("text", "found"), [("a.b=1", ("a.b", 1)), ("a=[1,2]", ("a", [1, 2])), ("a=word", ("a", "word"))])
def test_a_change_is_read_as_toml_or_as_a_word(text, found):
    assert change(text) == found
