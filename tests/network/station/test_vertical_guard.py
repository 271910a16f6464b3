"""What a guard allows of studies over columns that lie apart: whom people are matched with, how often, and how."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from hedgerow.errors import (
    ConfigInvalid,
    LimitExceeded,
    ProtectionRequired,
    SchemaInvalid,
    SubmissionRefused,
    TooFewRecords,
)
from hedgerow.network.station.alignments import Alignments, AskedAlignment
from hedgerow.network.station.apart import admit_least, admit_lists, admit_partners, admit_seat
from hedgerow.network.station.base import Base
from hedgerow.network.station.children.subprocesses import Records
from hedgerow.network.station.config import parse_config
from hedgerow.network.station.data_section import open_records
from hedgerow.network.station.journal import StationJournal
from hedgerow.network.station.local_data import local_data
from hedgerow.network.station.vertical_section import VerticalSection

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ALLOWED = VerticalSection(alignment=True, seats=True, partners=("town",), alignments_per_month=2)
DATA = {"name": "people", "source": "csv", "path": "x.csv", "ids": "nin", "columns": {"age": {"range": [0, 120]}}}


def config_of(guard=None, **data):
    about = {"name": "tax", "coordinator": {"name": "hub", "rail": "socket", "path": "rail.sock"}}
    return parse_config(about | {"data": DATA | data, "guard": guard or {}})


def begun(alignments, study="aa", people="11", at=NOON, rules=ALLOWED, partners=("town",)):
    alignments.begin(rules, study, 1, AskedAlignment(people, partners), at)


@pytest.fixture
def alignments(tmp_path):
    base = Base(tmp_path / "station.sqlite")
    yield Alignments(StationJournal(base))
    base.close()


# ---- ids ------------------------------------------------------------------------------------------------------------
def test_ids_are_read_as_text_and_are_no_part_of_what_a_station_declares(tmp_path):
    (tmp_path / "x.csv").write_text("nin,age\n007,30\nJosé,40\n12,50\n", encoding="utf-8")
    config = config_of()
    table, ids = open_records(config.data, tmp_path)
    held = local_data(config, table, bytes(32), None, ids)
    assert ids.tolist() == ["007", "José", "12"]
    assert (held.schema.names, config.declared.names, config.allowed) == (("age",), ("age",), {"age"})
    np.testing.assert_array_equal(held.columns["nin"], ids)


@pytest.mark.slow
def test_ids_lie_where_the_processes_of_a_station_find_them(tmp_path):
    (tmp_path / "x.csv").write_text("nin,age\n007,30\nJosé,40\n", encoding="utf-8")
    records = Records.read(config_of(), tmp_path, bytes(32))
    assert '"nin"' in records.where.decode()
    assert records.held.schema.names == ("age",)
    records.sheet.close()


def test_a_record_without_an_id_stops_the_station_and_no_id_is_shown(tmp_path):
    (tmp_path / "x.csv").write_text("nin,age\n007,30\n,40\n", encoding="utf-8")
    with pytest.raises(SchemaInvalid, match="1 of 2 records have no id") as caught:
        open_records(config_of().data, tmp_path)
    assert "007" not in str(caught.value)


@pytest.mark.parametrize(
    ("guard", "data", "words"),
    [
        ({"vertical": {"seats": True}}, {}, "seats without alignment"),
        ({"vertical": {"least_common": 1}}, {}, "least_common"),
        ({"vertical": {"aligment": True}}, {}, "alignment"),
        ({}, {"ids": "age"}, "declared column too"),
        ({}, {"source": "fhir", "ids": "nin"}, "ids says nothing to source 'fhir'"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(guard, data, words):
    with pytest.raises(ConfigInvalid, match=words):
        config_of(guard, **data)


def test_people_are_matched_between_stations_of_one_party():
    with pytest.raises(ConfigInvalid, match="stations of one party each"):
        parse_config(config_of().model_dump(mode="json", by_alias=True, exclude_unset=True) | {"stores": {"by": "age"}})


# ---- the rules ------------------------------------------------------------------------------------------------------
def test_without_the_section_nothing_of_it_is_allowed():
    with pytest.raises(ProtectionRequired, match="alignment is not set"):
        admit_partners(VerticalSection(), ["town"])
    with pytest.raises(ProtectionRequired, match="seats is not set"):
        admit_seat(VerticalSection(alignment=True), "sum of eta")
    admit_partners(ALLOWED, ["town"])
    admit_seat(ALLOWED, "sum of eta")


def test_people_are_matched_with_the_partners_that_are_named_alone():
    with pytest.raises(ProtectionRequired, match="bank, who are not among"):
        admit_partners(ALLOWED, ["town", "bank"])


def test_v11_a_study_may_want_more_common_people_and_no_fewer():
    with pytest.raises(TooFewRecords, match="goes on with 9 common people"):
        admit_least(ALLOWED, 9)
    admit_least(ALLOWED, 10)


@pytest.mark.parametrize(("most", "ratio"), [(None, None), (10_001, None), (None, 101.0), (10**9, 10**6)])
def test_v13_who_would_enter_all_possible_ids_is_refused(most, ratio):
    """A partner with a list of every id learns which of them are here: the longest list follows from the guard."""
    with pytest.raises(ProtectionRequired, match="the guard's limit is 10000"):
        admit_lists(ALLOWED, 100, most, ratio)


def test_v13_a_list_within_both_limits_is_taken():
    admit_lists(ALLOWED, 100, 10_000, None)
    admit_lists(ALLOWED, 100, None, 100.0)
    admit_lists(ALLOWED, 100_000, 10**6, 10**6)


# ---- once -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("people", "words"), [("11", "the same list"), ("22", "another list")])
def test_v12_a_study_aligns_once_whether_the_list_has_changed_or_not(alignments, people, words):
    begun(alignments)
    with pytest.raises(SubmissionRefused, match=f"began an alignment of {words}"):
        begun(alignments, people=people, at=NOON + timedelta(days=400))


def test_v12_a_refused_alignment_is_not_counted_and_one_that_came_to_nothing_is(alignments):
    begun(alignments)
    with pytest.raises(SubmissionRefused):
        begun(alignments)
    begun(alignments, "bb")
    with pytest.raises(LimitExceeded):
        begun(alignments, "cc")


def test_v12_a_partner_has_so_many_alignments_in_a_month(alignments):
    for study, day in (("aa", 0), ("bb", 30)):
        begun(alignments, study, at=NOON + timedelta(days=day))
    with pytest.raises(LimitExceeded, match="2 alignments with town were begun in 31 days"):
        begun(alignments, "cc", at=NOON + timedelta(days=30, hours=12))
    begun(alignments, "cc", at=NOON + timedelta(days=31, hours=1))
    begun(alignments, "dd", at=NOON + timedelta(days=31, hours=2), partners=("bank",))


def test_v12_a_restart_forgets_no_alignment(tmp_path):
    first = Base(tmp_path / "station.sqlite")
    begun(Alignments(StationJournal(first)))
    first.close()
    again = Base(tmp_path / "station.sqlite")
    with pytest.raises(SubmissionRefused):
        begun(Alignments(StationJournal(again)))
    entry = StationJournal(again).entries()[-1]
    assert (entry.kind, entry.code, entry.function, entry.people) == ("align", "aligns", "alignment with town", "11")
    again.close()
