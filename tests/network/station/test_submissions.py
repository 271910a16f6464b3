"""Submissions at rest: kept with every word, decided once at a time, signed."""

import pytest

from hedgerow.errors import KeyInvalid, SubmissionRefused, SubmissionUnapproved, UnknownStudy
from hedgerow.network.station.base import Base
from hedgerow.network.station.review import Review
from hedgerow.network.station.signatures import Announced, QuestionSignature
from hedgerow.network.station.submissions import Submission, Submissions
from hedgerow.wire.boarding import submission_digest
from station_house import Keys, config_of, key_material

KIND = QuestionSignature("sum", "hedgerow.stats.moments:deviations", "", "none", "none", "", "all 1 0", "", False, "00")


def submission(study="aa" * 16, title="means"):
    kinds = Announced({KIND: {"sum": 1.5}}, {KIND: 7})
    rows = ({"questions": "question 1", "asks": "sum"},)
    made = Submission(
        study, b"toml", b"told", submission_digest(b"toml", b"told"), "2026-03-02", title, "hub", "moments", 3, "in short", rows
    )
    return made.__class__(**vars(made) | {"announced": kinds, "columns": ("age",)})


@pytest.fixture
def base(tmp_path):
    made = Base(tmp_path / "state" / "station.sqlite")
    yield made
    made.close()


def test_a_train_comes_back_as_it_was_put(base):
    Submissions(base).put(submission())
    assert Submissions(base).get("aa" * 16) == submission()
    assert (Submissions(base).status("aa" * 16), Submissions(base).status("bb" * 16)) == ("waiting", None)


def test_a_decision_is_signed_for_this_train_and_no_other(base):
    mine = key_material("alpha")
    decided = submission().decided(mine, "approved", by="Ada", at="now")
    Submissions(base).put(submission())
    Submissions(base).put(decided)
    found = Submissions(base).get("aa" * 16)
    assert found == decided
    found.check_signature(mine.public_identity)
    for changed in ({"status": "refused"}, {"digest": bytes(32)}):
        with pytest.raises(KeyInvalid):
            Submission(**vars(found) | changed).check_signature(mine.public_identity)
    with pytest.raises(KeyInvalid):
        found.check_signature(key_material("alpha").public_identity)


def test_only_an_approved_train_may_ask():
    mine = key_material("alpha")
    submission().decided(mine, "approved", by="Ada", at="now").refuse_unapproved()
    with pytest.raises(SubmissionUnapproved, match="HR-607"):
        submission().refuse_unapproved()
    with pytest.raises(SubmissionUnapproved):
        submission().decided(mine, "ended", by="hub", at="now").refuse_unapproved()
    with pytest.raises(SubmissionRefused, match="HR-608"):
        submission().decided(mine, "refused", by="Ada", at="now").refuse_unapproved()


def test_a_person_names_a_study_by_its_beginning_or_its_title(base):
    submissions = Submissions(base)
    for study, title in [("aa" * 16, "means"), ("ab" * 16, "risk"), ("cc" * 16, "risk")]:
        submissions.put(submission(study, title))
    assert submissions.find("aa").title == submissions.find("means").title == "means"
    assert submissions.find("cc").study == "cc" * 16
    for name in ("", "a", "risk", "nothing"):
        with pytest.raises(UnknownStudy, match="HR-102"):
            submissions.find(name)


def test_decisions_are_in_the_journal_and_the_guard_s_own_stand(base):
    keys = Keys(key_material("alpha"))
    box = Review(config_of("alpha"), keys, base)
    box.submissions.put(submission())
    assert box.approve("means", "Ada").status == "approved"
    assert box.refuse("means", "Ben", "too much").because == "too much"
    assert [(e.kind, e.code, e.reason) for e in box.journal.entries()] == [
        ("decision", "approved", "by Ada"),
        ("decision", "refused", "by Ben: too much"),
    ]
    box.submissions.put(submission().decided(keys.key_material, "refused", by="guard", at="now", code="HR-603"))
    with pytest.raises(SubmissionRefused, match=r"HR-603[\s\S]*Change \[guard\]"):
        box.approve("means", "Ada")


@pytest.mark.parametrize(
    ("code", "told"), [("HR-210", "No [guard] allows it"), ("HR-216", "Change [guard]"), ("HR-405", "hedgerow explain HR-405")]
)
def test_the_remedy_names_the_side_that_can_change_what_was_refused(base, code, told):
    keys = Keys(key_material("alpha"))
    box = Review(config_of("alpha"), keys, base)
    box.submissions.put(submission().decided(keys.key_material, "refused", by="guard", at="now", code=code))
    with pytest.raises(SubmissionRefused) as caught:
        box.approve("means", "Ada")
    assert told in caught.value.remedy
    assert ("Change [guard]" in caught.value.remedy) == (code == "HR-216")


def test_two_connections_write_one_at_a_time(base, tmp_path):
    other = Base(tmp_path / "state" / "station.sqlite")
    Submissions(base).put(submission())
    Submissions(other).put(submission().decided(key_material("alpha"), "approved", by="Ada", at="now"))
    assert Submissions(base).status("aa" * 16) == "approved"
    other.close()
