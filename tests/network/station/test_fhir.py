"""FHIR R4: what counts of patients, observations and conditions, whose it is, and what is refused."""

import json
import logging
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest
import wards
from hypothesis import given, settings
from hypothesis import strategies as st
from wards import AT, CURRENT, DIABETES, LOINC, SNOMED, SYSTOLIC, bundle, condition, observation, pressure, quantity

from hedgerow.errors import ConfigInvalid, HedgerowError, OutOfRange, SourceUnreadable
from hedgerow.network.station.data_section import open_table, parse_data, schema_of
from hedgerow.network.station.sources import read_source
from hedgerow.network.station.sources.fhir.mapping import meaning
from hedgerow.network.station.sources.fhir.resources import entries_of
from hedgerow.network.station.sources.fhir.server import searches_for
from hedgerow.network.station.sources.fhir.source import PatientReader, read_fhir
from hedgerow.network.station.sources.fhir.values import Malformed, completed_years, moment, time_of

httpx = pytest.importorskip("httpx")
SBP = {"from": "Observation", "code": f"{LOINC}|{SYSTOLIC}", "value": "last", "unit": "mm[Hg]"}
ILL = {"from": "Condition", "code": f"{SNOMED}|{DIABETES}"}
BORN = {"from": "Patient.birthDate", "as": "age", "at": "2026-01-01"}


def patient(name="1", **more):
    return {"resourceType": "Patient", "id": name, **more}


def declared(column=None, **more):
    return parse_data({"name": "x", "source": "fhir", "path": "x.json", "columns": {"x": column or SBP}, **more})


def read(tmp_path, entries, column=None, kind="collection"):
    """The raw cells of one column, made of resources or entries."""
    (tmp_path / "x.json").write_text(json.dumps(bundle(entries, kind)))
    section = declared(column)
    return read_source(section, None, tmp_path).columns["x"].tolist()


def systolic(value, when="2025-01-01", subject="Patient/1", state="final", **more):
    return observation(subject, SYSTOLIC, when, state, valueQuantity=quantity(value, **more))


# ---- times and ages -------------------------------------------------------------------------------------------------
def test_dates_of_every_precision_are_their_first_moment():
    assert moment("2025") == moment("2025-01") == moment("2025-01-01") == moment("2025-01-01T00:00:00Z")
    assert moment("2025-01-01T02:00:00+02:00") == moment("2025")
    assert moment("2025-01-01T00:00:00.250Z") == moment("2025") + 0.25
    assert moment(None) is None


@pytest.mark.parametrize("text", ["25", "2025-13", "2025-02-30", "yesterday", "2025-01-01 10:00", 2025, "20250101"])
def test_what_is_no_date_is_refused(text):
    with pytest.raises(Malformed):
        moment(text)


def test_ages_are_completed_years():
    assert completed_years("1960-01-01", AT, False) == 66
    assert completed_years("1960-01-02", AT, False) == 65
    assert completed_years("2004-02-29", date(2025, 2, 28), False) == 20
    assert completed_years("1960", AT, False) is None
    assert (completed_years("1960", AT, True), completed_years("1960-01", AT, True)) == (65, 65)


def test_a_period_counts_by_its_start():
    assert time_of({"effectivePeriod": {"start": "2024-05", "end": "2025"}}) == moment("2024-05-01")
    assert time_of({"onsetPeriod": {"end": "2025"}, "recordedDate": "2026"}) == moment("2025")
    assert time_of({}) is None


# ---- patients -------------------------------------------------------------------------------------------------------
def test_partial_dates_of_birth_are_missing_or_in_the_middle(tmp_path):
    people = [patient("1", birthDate="1960"), patient("2", birthDate="1961-07-31"), patient("3")]
    np.testing.assert_array_equal(read(tmp_path, people, BORN), [np.nan, 64, np.nan])
    np.testing.assert_array_equal(read(tmp_path, people, BORN | {"partial": "middle"}), [65, 64, np.nan])
    np.testing.assert_array_equal(read(tmp_path, people, {"from": "Patient.birthDate", "as": "year"}), [1960, 1961, np.nan])


def test_gender_and_death(tmp_path):
    people = [patient("1", gender="female", deceasedBoolean=False), patient("2", gender="unknown", deceasedDateTime="2025")]
    gender = {"from": "Patient.gender", "levels": ["female", "male"]}
    assert read(tmp_path, people, gender) == ["female", None]
    assert read(tmp_path, people, gender | {"levels": ["female", "unknown"]}) == ["female", "unknown"]
    assert read(tmp_path, people, {"from": "Patient.deceased"}) == [0, 1]


def test_a_gender_that_is_not_declared_is_refused(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps(patient(gender="other")))
    with pytest.raises(OutOfRange, match="HR-405"):
        open_table(declared({"from": "Patient.gender", "levels": ["female", "male"]}), tmp_path)


# ---- observations ---------------------------------------------------------------------------------------------------
def test_which_of_several_observations_counts(tmp_path):
    found = [patient(), systolic(140, "2024"), systolic(120, "2025-03"), systolic(130, "2025-02-28T23:00:00Z")]
    picks = {pick: read(tmp_path, found, SBP | {"value": pick})[0] for pick in ("last", "first", "mean", "min", "max")}
    assert picks == {"last": 120, "first": 140, "mean": 130, "min": 120, "max": 140}
    count = {"from": "Observation", "code": SBP["code"], "value": "count"}
    assert read(tmp_path, [*found, patient("2")], count) == [3, 0]


def test_an_observation_without_time_is_the_last_only_if_it_is_alone(tmp_path):
    timeless = systolic(99) | {"effectiveDateTime": None}
    for pick in ("last", "first"):
        assert read(tmp_path, [patient(), timeless, systolic(120)], SBP | {"value": pick}) == [120]
        assert read(tmp_path, [patient(), timeless], SBP | {"value": pick}) == [99]


def test_a_component_counts_like_an_observation(tmp_path):
    assert read(tmp_path, [patient(), pressure("Patient/1", 120, "2025")]) == [120]


@pytest.mark.parametrize("state", ["entered-in-error", "cancelled", "preliminary", "unknown", None])
def test_what_is_not_final_does_not_count(tmp_path, state):
    np.testing.assert_array_equal(read(tmp_path, [patient(), systolic(120, state=state)]), [np.nan])


def test_other_statuses_count_where_they_are_declared(tmp_path):
    assert read(tmp_path, [patient(), systolic(120, state="preliminary")], SBP | {"status": ["preliminary"]}) == [120]


def test_another_unit_is_converted_by_a_declared_factor_or_refused(tmp_path):
    found = [patient(), systolic(16.0, unit="kPa")]
    assert read(tmp_path, found, SBP | {"convert": {"kPa": 7.5}}) == [120]
    with pytest.raises(SourceUnreadable, match=r"HR-614[\s\S]*'kPa', declared is 'mm\[Hg\]'"):
        read(tmp_path, found)


def test_a_unit_without_code_is_what_people_read(tmp_path):
    bare = systolic(120) | {"valueQuantity": {"value": 120, "unit": "mm[Hg]"}}
    assert read(tmp_path, [patient(), bare]) == [120]
    with pytest.raises(SourceUnreadable, match="is in '1'"):
        read(tmp_path, [patient(), systolic(120) | {"valueQuantity": {"value": 120}}])


def test_a_comparator_is_refused_dropped_or_taken(tmp_path):
    found = [patient(), systolic(120, comparator="<")]
    with pytest.raises(SourceUnreadable, match="only known"):
        read(tmp_path, found)
    np.testing.assert_array_equal(read(tmp_path, found, SBP | {"comparator": "drop"}), [np.nan])
    assert read(tmp_path, found, SBP | {"comparator": "value"}) == [120]


def test_an_observation_without_value_is_no_value(tmp_path):
    absent = systolic(0) | {"valueQuantity": None, "dataAbsentReason": {"text": "refused"}}
    assert read(tmp_path, [patient(), systolic(120, "2024"), absent]) == [120]


def test_a_window_of_days(tmp_path):
    found = [patient(), systolic(140, "2024-12-31"), systolic(120, "2025-01-01"), systolic(130, "2026-01-01")]
    assert read(tmp_path, found, SBP | {"since": "2025-01-01", "until": "2026-01-01"}) == [120]


def test_a_code_that_has_no_level_is_refused(tmp_path):
    smoking = wards.MAPPED["smokes"] | {"codes": {f"{SNOMED}|{CURRENT}": "current"}, "levels": ["current"]}
    value = wards.concept(SNOMED, "8517006")
    (tmp_path / "x.json").write_text(
        json.dumps(bundle([patient(), observation("Patient/1", wards.SMOKING, "2025", valueCodeableConcept=value)]))
    )
    with pytest.raises(OutOfRange, match=r"HR-405[\s\S]*not among its 1 levels"):
        open_table(declared(smoking), tmp_path)


# ---- conditions -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("clinical", "verified", "column", "counts"),
    [
        ("active", "confirmed", {}, 1),
        ("resolved", "confirmed", {}, 1),
        ("resolved", "confirmed", {"clinical": ["active", "relapse"]}, 0),
        ("relapse", "confirmed", {"clinical": ["active", "relapse"]}, 1),
        ("active", "entered-in-error", {}, 0),
        ("active", "refuted", {}, 0),
        ("active", "provisional", {}, 0),
        ("active", "provisional", {"verification": ["confirmed", "provisional"]}, 1),
        ("active", "confirmed", {"since": "2025-06-01"}, 0),
        ("active", "confirmed", {"since": "2024-06-01"}, 1),
    ],
)
def test_which_conditions_count(tmp_path, clinical, verified, column, counts):
    stated = condition("Patient/1", DIABETES, clinical, verified, onsetDateTime="2025-01")
    assert read(tmp_path, [patient(), stated], ILL | column) == [counts]


def test_a_condition_without_statuses_counts_unless_one_is_asked_for(tmp_path):
    bare = condition("Patient/1", DIABETES) | {"clinicalStatus": None, "verificationStatus": None}
    assert read(tmp_path, [patient(), bare], ILL) == [1]
    assert read(tmp_path, [patient(), bare], ILL | {"clinical": ["active"]}) == [0]


# ---- whose it is ----------------------------------------------------------------------------------------------------
URN, ONE, OTHER = "urn:uuid:0f5c", "https://one.example/fhir/", "https://other.example/fhir/"


@pytest.mark.parametrize(
    ("full", "reference", "referring"),
    [
        (None, "Patient/1", None),
        (None, "Patient/1/_history/3", None),
        (None, ONE + "Patient/1", None),
        (URN, URN, None),
        (ONE + "Patient/1", ONE + "Patient/1/_history/2", None),
        (ONE + "Patient/1", "Patient/1", ONE + "Observation/7"),
        (ONE + "Patient/1/_history/9", "Patient/1", ONE + "Observation/7"),
        (URN, "Patient/1", None),
    ],
)
def test_a_reference_finds_its_patient(tmp_path, full, reference, referring):
    person = {"resource": patient(), **({"fullUrl": full} if full else {})}
    said = {"resource": systolic(120, subject=reference) | {"id": "7"}, **({"fullUrl": referring} if referring else {})}
    assert read(tmp_path, [said, person]) == [120]


@pytest.mark.parametrize("reference", [OTHER + "Patient/1", "Patient/2", "urn:uuid:1", "#inside", "Group/1", None])
def test_what_is_of_nobody_is_left_out_and_counted(tmp_path, reference, caplog):
    person = {"resource": patient(), "fullUrl": ONE + "Patient/1"}
    with caplog.at_level(logging.WARNING, "hedgerow"):
        np.testing.assert_array_equal(read(tmp_path, [person, systolic(120, subject=reference)]), [np.nan])
    assert "1 observations and conditions are of no patient" in caplog.text


def test_two_servers_may_use_one_id(tmp_path):
    people = [{"resource": patient(), "fullUrl": base + "Patient/1"} for base in (ONE, OTHER)]
    said = {"resource": systolic(120) | {"id": "7"}, "fullUrl": OTHER + "Observation/7"}
    np.testing.assert_array_equal(read(tmp_path, [*people, said]), [np.nan, 120])
    with pytest.raises(SourceUnreadable, match="could mean two patients"):
        read(tmp_path, [*people, systolic(120)])


def test_what_is_said_of_a_replaced_patient_is_said_of_the_other(tmp_path):
    old = patient("1", link=[{"other": {"reference": "Patient/2"}, "type": "replaced-by"}])
    assert read(tmp_path, [old, patient("2"), systolic(120)]) == [120]


def test_patients_who_replace_one_another_have_no_row(tmp_path):
    circle = [
        patient(one, link=[{"other": {"reference": f"Patient/{other}"}, "type": "replaced-by"}])
        for one, other in (("1", "2"), ("2", "1"))
    ]
    assert read(tmp_path, [*circle, systolic(120)]) == []


def test_a_resource_that_comes_twice_counts_once(tmp_path):
    def version(value, updated):
        return systolic(value) | {"id": "7", "meta": {"lastUpdated": updated}}

    count = {"from": "Observation", "code": SBP["code"], "value": "count"}
    assert read(tmp_path, [patient(), patient(), version(1, "2025"), version(1, "2025")], count) == [1]
    assert read(tmp_path, [patient(), version(130, "2025-05"), version(120, "2025-04")]) == [130]
    corrected = version(120, "2025-06") | {"status": "entered-in-error"}
    np.testing.assert_array_equal(read(tmp_path, [patient(), version(120, "2025-05"), corrected]), [np.nan])
    with pytest.raises(SourceUnreadable, match="comes twice"):
        read(tmp_path, [patient(), version(130, None), version(120, None)])


# ---- documents ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", ["{", "[1]", '{"resourceType": 3}', '{"x": NaN}', "[" * 100_000])
def test_what_is_no_resource_is_refused_without_repeating_it(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(SourceUnreadable, match=r"HR-614[\s\S]*x.json"):
        open_table(declared(), tmp_path)


def test_a_wrong_line_is_named(tmp_path):
    (tmp_path / "x.ndjson").write_text(json.dumps(patient()) + "\n\n{oops\n")
    with pytest.raises(SourceUnreadable, match=r"x\.ndjson, line 3") as caught:
        open_table(declared(path="x.ndjson"), tmp_path)
    assert "oops" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"valueQuantity": {"value": "120", "code": "mm[Hg]"}},
        {"valueQuantity": {"value": True, "code": "mm[Hg]"}},
        {"valueQuantity": {"value": 10**400, "code": "mm[Hg]"}},
        {"valueQuantity": [1]},
        {"component": {}},
        {"effectiveDateTime": "soon"},
        {"meta": "x"},
        {"subject": "Patient/1"},
    ],
)
def test_malformed_elements_are_refused(tmp_path, wrong):
    with pytest.raises(SourceUnreadable, match="FHIR R4 does not allow"):
        read(tmp_path, [patient(), systolic(120) | wrong])


def test_a_bundle_of_versions_is_refused(tmp_path):
    with pytest.raises(SourceUnreadable, match="of type 'history'"):
        read(tmp_path, [patient()], kind="history")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6) | st.just("Patient/1"),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["code", "reference", "value", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
WHOLE = bundle(
    [patient(birthDate="1960-05-01", gender="male"), *wards.resources(next(wards.patients(1).itertuples()), "Patient/1")]
)


def places(value, path=()):
    """Every place inside a JSON value."""
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


PLACES = [path for path in places(WHOLE) if path]


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(path=st.sampled_from(PLACES), put=JSON)
def test_whatever_is_put_anywhere_is_read_or_refused(path, put):
    document = json.loads(json.dumps(WHOLE))
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = put
    section = parse_data(wards.section("fhir", path="x.json"))
    reader = PatientReader({name: meaning(name, column) for name, column in section.columns.items()})
    try:
        for entry in entries_of(document, "x.json"):
            reader.take(entry)
        schema_of(section).admit(reader.columns_found()[0])
    except HedgerowError:
        pass


# ---- declarations ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"from": "Patient.name"}, "'Patient.name' is no element"),
        ({"from": "Observatio", "code": "a|b"}, "Did you mean 'Observation'"),
        ({}, "no element"),
        ({"from": "Patient.birthDate"}, "identifies people"),
        ({"from": "Patient.birthDate", "as": "age"}, "identifies people"),
        ({"from": "Patient.birthDate", "as": "year", "at": "2026-01-01"}, "identifies people"),
        (BORN | {"at": "2026"}, "at = '2026' is no day"),
        (BORN | {"code": "a|b"}, "does not understand code"),
        ({"from": "Patient.gender"}, "declares no levels"),
        (SBP | {"unit": ""}, "needs a unit"),
        (SBP | {"code": "8480-6"}, "is no code"),
        (SBP | {"code": []}, "no code"),
        ({key: SBP[key] for key in ("from", "code", "unit")}, "many observations"),
        (SBP | {"status": ["entered-in-error"]}, "never counts"),
        (SBP | {"convert": {"kPa": 0.0}}, "above zero"),
        (SBP | {"value": "count"}, "a count has no unit"),
        (SBP | {"since": "2025-01-01", "until": "2025-01-01"}, "a later one"),
        (SBP | {"kind": "binary"}, "gives number"),
        (SBP | {"clinical": ["active"]}, "does not understand clinical"),
        (ILL | {"verification": ["refuted"]}, "never counts"),
        (ILL | {"clinical": ["activ"]}, "Did you mean 'active'"),
        (wards.MAPPED["smokes"] | {"levels": ["never"]}, "codes give"),
        (wards.MAPPED["smokes"] | {"value": "mean"}, "neither measured nor averaged"),
    ],
)
def test_a_mapping_that_says_nothing_is_refused_before_anything_is_read(column, said):
    with pytest.raises(ConfigInvalid, match="HR-601") as caught:
        parse_data({"name": "x", "source": "fhir", "path": "none.json", "columns": {"x": column}})
    assert said in str(caught.value)


# ---- servers --------------------------------------------------------------------------------------------------------
BASE = "https://fhir.example/r4"


class Server:
    """A FHIR server in memory, with pages of a few entries."""

    def __init__(self, resources, size=2, **wrong):
        self.resources, self.size, self.wrong, self.asked = resources, size, wrong, []

    def __call__(self, request):
        self.asked.append(request)
        kind, start = request.url.path.rpartition("/")[2], int(request.url.params.get("start", 0))
        found = [resource for resource in self.resources if resource["resourceType"] == kind]
        entries = [{"resource": r, "fullUrl": f"{BASE}/{kind}/{r['id']}"} for r in found[start : start + self.size]]
        more = start + self.size < len(found)
        link = [{"relation": "next", "url": self.wrong.get("next", f"{BASE}/{kind}?start={start + self.size}")}] if more else []
        answer = self.wrong.get("bundle", bundle(entries, "searchset", link=link))
        return httpx.Response(self.wrong.get("status", 200), json=answer, headers=self.wrong.get("headers", {}))


def everything(n=5):
    """Patients with ids, and what was written about them."""
    found = []
    for number, record in enumerate(wards.patients(n).itertuples()):
        found.append(wards.person(record, id=f"p{number}"))
        said = wards.resources(record, f"Patient/p{number}")
        found += [resource | {"id": f"r{number}-{count}"} for count, resource in enumerate(said)]
    return found


def ask(server, columns=None, **more):
    section = parse_data({"name": "x", "source": "fhir", "url": BASE, "columns": columns or {"x": SBP}, **more})
    return read_fhir(section, None, None, transport=httpx.MockTransport(server))


def test_a_server_gives_what_its_records_give(monkeypatch):
    monkeypatch.setenv("WARD_TOKEN", "t0ken")
    server = Server(everything())
    found = ask(server, wards.MAPPED, token_env="WARD_TOKEN").columns
    frame = wards.patients(5)
    for name in wards.PLAIN:
        np.testing.assert_array_equal(found[name], frame[name])
    assert {request.headers["authorization"] for request in server.asked} == {"Bearer t0ken"}
    assert len(server.asked) > 10


def test_a_server_on_this_machine_is_asked_over_a_socket(tmp_path):
    answer = json.dumps(bundle([{"resource": patient(birthDate="1960-01-01")}], "searchset")).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *words):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/fhir"
        section = parse_data({"name": "x", "source": "fhir", "url": url, "columns": {"x": BORN}})
        assert open_table(section, tmp_path)["x"].tolist() == [66]
        server.shutdown()
    with pytest.raises(SourceUnreadable, match="cannot be asked"):
        open_table(section, tmp_path)


def test_searches_follow_from_the_columns():
    section = parse_data(wards.section("fhir", url=BASE))
    found = searches_for(meaning(name, column) for name, column in section.columns.items())
    assert [query.partition("=")[0] for query in found] == ["Patient", "Observation?combo-code", "Condition?code"]
    assert "http%3A%2F%2Floinc.org%7C72166-2%2Chttp%3A%2F%2Floinc.org%7C8480-6" in found[1]


def test_searches_may_be_given():
    server = Server(everything())
    ask(server, searches=["Patient?active=true", "Observation?code=x&_count=7"])
    asked = [str(request.url) for request in server.asked]
    assert asked[0] == f"{BASE}/Patient?active=true&_count=200"
    assert f"{BASE}/Observation?code=x&_count=7" in asked
    with pytest.raises(ConfigInvalid, match=r"data\.searches"):
        ask(server, searches=["../admin"])


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example/r4/Patient?start=2",
        "http://fhir.example/r4/Patient",
        "https://fhir.example:8443/",
        "https://me@fhir.example/",
    ],
)
def test_a_next_page_on_another_server_is_not_asked_for(elsewhere):
    server = Server(everything(), next=elsewhere)
    with pytest.raises(SourceUnreadable, match="at another server"):
        ask(server)
    assert len(server.asked) == 1


def test_a_relative_next_page_is_followed():
    with pytest.raises(SourceUnreadable, match="round in circles"):
        ask(Server(everything(), next="Patient?start=2"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"status": 401}, "status 401"),
        ({"status": 302, "headers": {"location": "https://evil.example"}}, "status 302"),
        ({"bundle": {"resourceType": "Patient"}}, "no bundle of results"),
        ({"bundle": [1]}, "no bundle of results"),
        (
            {
                "bundle": bundle(
                    [
                        {
                            "resource": {
                                "resourceType": "OperationOutcome",
                                "issue": [{"severity": "error", "code": "too-costly"}],
                            }
                        }
                    ],
                    "searchset",
                )
            },
            "too-costly",
        ),
    ],
)
def test_a_server_that_refuses_is_said_in_words(wrong, said):
    with pytest.raises(SourceUnreadable, match=rf"HR-614[\s\S]*{said}"):
        ask(Server(everything(), **wrong))


def test_pages_and_bytes_have_limits():
    with pytest.raises(SourceUnreadable, match="more than 2 pages"):
        ask(Server(everything()), pages=2)
    with pytest.raises(SourceUnreadable, match="more than 1 megabytes"):
        ask(Server([patient(str(n), text={"div": "x" * 900}) for n in range(2000)], size=500), megabytes=1)


@pytest.mark.parametrize("url", ["http://fhir.example/r4", "ftp://fhir.example", "fhir.example/r4", BASE + "?x=1"])
def test_an_address_without_tls_is_for_this_machine_only(url):
    server = Server(everything())
    with pytest.raises(ConfigInvalid, match="https"):
        ask(server, url=url)
    assert server.asked == []


def test_a_token_is_in_no_error(monkeypatch):
    def fail(request):
        raise httpx.ConnectError(f"cannot connect with {request.headers['authorization']}")

    monkeypatch.setenv("WARD_TOKEN", "t0ken\n")
    with pytest.raises(SourceUnreadable, match="cannot be asked") as caught:
        ask(fail, token_env="WARD_TOKEN")
    assert "t0ken" not in str(caught.value)
    assert caught.value.__cause__ is None
