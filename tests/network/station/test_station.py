"""A station between a coordinator and its records: what leaves it, what it refuses, and what its journal says of both."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hedgerow.core.randomness import Streams
from hedgerow.errors import BudgetExhausted, HedgerowError, PartyDeclined
from hedgerow.network.station import station as under_test
from hedgerow.network.station.review import ROLL, Review
from hedgerow.network.station.signatures import Announced
from hedgerow.privacy.accounting import Running
from hedgerow.store import last
from hedgerow.wire.envelope import disclose, enclose
from hedgerow.wire.values import unpack
from helpers import altered
from station_house import LOGISTIC, MEANS, PRIVATE, STUDY, House, config_of, key_material, records

AUTOMATIC = {"approval": "automatic", "programs": [{"name": "logistic_regression"}, {"name": "moments"}]}
SECRET = '[protection.aggregation]\nby = "secagg"\n'
OTHER = b"another study..."


def asked(house, text, columns=("age", "dose", "sick"), **how):
    """Run a study through the network; the last state."""
    built = house.built(text, columns, **how)
    return last(built.listing.program(built.settings)(built.federation))


def refused_by(house, name, run):
    """The code with which a station refused, having looked at everything that left it, and at its journal."""
    before = len(house.rail.came)
    with pytest.raises(HedgerowError):
        run()
    letters = [
        disclose(house.hub.key_material, house.hub.public_identities, body)
        for who, body in house.rail.came[before:]
        if who == name
    ]
    assert [letter.kind for letter in letters] == ["refused"]
    [part] = letters[0].parts
    assert len(part) == 6
    kind, code = house.codes(name)[-1]
    assert (kind, code) == ("ask", part.decode())
    return code


def until_refused(error, run):
    """Run again and again, and return how often it went well before it was refused."""
    for life in range(1, 60):
        try:
            run(life)
        except error:
            return life - 1
    raise AssertionError("never refused")


@pytest.mark.slow
@pytest.mark.parametrize("protection", ["", SECRET], ids=["plain", "secagg"])
def test_three_stations_fit_the_pooled_records(tmp_path, protection):
    house = House(tmp_path, {"alpha": {}, "beta": {}, "gamma": {}}, **AUTOMATIC)
    said = house.board(LOGISTIC + protection)
    assert {one["status"] for one in said.values()} == {"approved"}
    beta = asked(house, LOGISTIC + protection).beta
    pooled = [np.concatenate(parts) for parts in zip(*(records(name).values() for name in house.stations), strict=True)]
    age, dose, sick, _ = pooled
    X, fit = np.stack([np.ones_like(age), age, dose], 1), np.zeros(3)
    for _ in range(20):
        p = 1 / (1 + np.exp(-X @ fit))
        fit += np.linalg.solve((X * (p * (1 - p))[:, None]).T @ X, X.T @ (sick - p))
    assert_allclose(beta, fit, rtol=1e-7)
    for station in house.stations.values():
        station.journal.verify()
        codes = [entry.code for entry in station.journal.entries() if entry.kind == "ask"]
        assert codes == ["asked", "answered"] * (len(codes) // 2) != []


def test_a_person_approves_what_waits_and_the_decision_is_signed(tmp_path):
    house = House(tmp_path, {"alpha": {}})
    first = house.board(MEANS)["alpha"]
    assert (first["status"], first["signature"]) == ("waiting", b"")
    assert refused_by(house, "alpha", lambda: asked(house, MEANS)) == "HR-607"
    station = house.stations["alpha"]
    submission = Review(station.config, station.keys, station.base).approve(STUDY.hex()[:6], "Ada")
    assert submission.rows[0]["asks"] == "sum of hedgerow.stats.moments:deviations"
    house.number += 1 << 40
    said = house.board(MEANS)["alpha"]
    assert (said["status"], said["parties"], said["submission"]) == ("approved", ("alpha",), submission.digest)
    submission.check_signature(house.key_materials["alpha"].public_identity)
    assert asked(house, MEANS, life=1 << 20).n == 60


def test_an_approval_can_be_taken_back_in_the_middle(tmp_path):
    house = House(tmp_path, {"alpha": {}}, **AUTOMATIC)
    house.board(MEANS)
    assert asked(house, MEANS).n == 60
    station = house.stations["alpha"]
    Review(station.config, station.keys, station.base).refuse("means", "Ada", "enough")
    assert refused_by(house, "alpha", lambda: asked(house, MEANS, life=2)) == "HR-608"


NOISY = {"epsilon": 1.0, "delta": 1e-6}
BOARDING = {
    "a program": ("HR-602", {"programs": [{"name": "counts"}]}, MEANS),
    "a version": ("HR-602", {"programs": [{"name": "moments", "version": "7.*"}]}, MEANS),
    "other code": ("HR-602", {"programs": [{"name": "moments", "code": "sha256:" + "0" * 64}]}, MEANS),
    "an import path": ("HR-602", {}, MEANS + 'quiet = "subprocess:Popen"\n'),
    "a column": ("HR-603", {"columns": ["age"]}, MEANS),
    "few records": ("HR-604", {"least_records": 61}, MEANS),
    "a small cohort": ("HR-605", {"least_cohort": 2}, MEANS),
    "an unprotected sum": ("HR-606", {"require": {"hidden_rows": True}}, MEANS),
    "no noise": ("HR-606", {"require": {"noise": "server"}}, MEANS),
    "noise of others": ("HR-606", {"require": {"noise": "party"}}, PRIVATE.replace('"party"', '"server"')),
    "little noise": ("HR-606", {"require": {"noise": "party", "noise_multiplier": 6.0}}, PRIVATE),
    "a sum without noise under a budget": ("HR-606", {"budget": NOISY}, MEANS),
    "a small budget": ("HR-213", {"budget": NOISY | {"epsilon": 0.01}}, PRIVATE),
    "a small budget of a study": ("HR-213", {"study_budget": NOISY | {"epsilon": 0.01}}, PRIVATE),
    "no study": ("HR-101", {}, "name ="),
    "other data": ("HR-101", {}, MEANS.replace("heart", "lungs")),
    "a file": ("HR-101", {}, MEANS + "[budget]\nepsilon = 1\ndelta = 1e-6\nledger = '/etc/passwd'\n"),
}


@pytest.mark.parametrize("case", BOARDING)
def test_the_guard_refuses_a_study_before_anybody_sees_it(tmp_path, case):
    code, guard, text = BOARDING[case]
    house = House(tmp_path, {"alpha": guard})
    said = house.board(text, ("age", "dose"))["alpha"]
    assert (said["status"], said["code"]) == ("refused", code)
    assert set(said) == {"status", "code", "submission", "parties", "signature"}
    assert said["parties"] == ()
    [entry] = house.stations["alpha"].journal.entries()
    assert (entry.kind, entry.code) == ("board", "refused")
    assert entry.reason
    [submission] = house.stations["alpha"].submissions.all()
    submission.check_signature(house.key_materials["alpha"].public_identity)
    assert submission.title == ("" if case == "no study" else entry.function)
    assert refused_by(house, "alpha", lambda: asked(house, MEANS, ("age", "dose"))) == "HR-608"


LATER = {
    "a column": ("HR-603", {"columns": ["age"]}, MEANS, "admit_columns"),
    "a program": ("HR-602", {"programs": []}, MEANS, "admit_program"),
    "few records": ("HR-604", {"least_records": 61}, MEANS, "admit_question"),
    "a small cohort": ("HR-605", {"least_cohort": 2}, MEANS, "admit_question"),
    "an unprotected sum": ("HR-606", {"require": {"hidden_rows": True}}, MEANS, "admit_question"),
    "other hours": ("HR-610", {"hours": ["Mon-Fri 18:00-08:00"]}, MEANS, "admit_question"),
    "a large letter": ("HR-611", {"limits": {"bytes_in": 500}}, MEANS, "admit_size"),
    "a large answer": ("HR-611", {"limits": {"bytes_out": 50}}, MEANS, "admit_size"),
    "an exhausted budget": ("HR-213", {"budget": NOISY | {"epsilon": 0.01}}, PRIVATE, "Account._take"),
}


def changed_since(tmp_path, case):
    """A station whose guard became stricter after it approved a study."""
    code, guard, text, _ = LATER[case]
    house = House(tmp_path, {"alpha": {}}, **AUTOMATIC)
    assert house.board(text, ("age", "dose"))["alpha"]["status"] == "approved"
    house.configs["alpha"] = config_of("alpha", **AUTOMATIC | guard)
    house.start("alpha")
    return house, code, lambda: asked(house, text, ("age", "dose"))


@pytest.mark.parametrize("case", LATER)
def test_the_guard_has_the_last_word_on_each_question(tmp_path, case):
    house, code, run = changed_since(tmp_path, case)
    assert refused_by(house, "alpha", run) == code


@pytest.mark.parametrize("case", [case for case in LATER if "size" not in LATER[case][3]])
def test_a_station_that_skips_a_check_is_caught(tmp_path, case, monkeypatch):
    house, _, run = changed_since(tmp_path, case)
    skipped = LATER[case][3]
    if skipped == "admit_columns":
        monkeypatch.setattr("hedgerow.network.station.admitted.admit_columns", lambda allowed, declared, told, named: declared)
    elif skipped == "Account._take":
        monkeypatch.setattr(
            "hedgerow.network.station.accounts.Account._take", lambda self, history, policy, asked: (asked.entry, None)
        )
    else:
        where = "admitted" if skipped == "admit_program" else "children.study_host"
        monkeypatch.setattr(f"hedgerow.network.station.{where}.{skipped}", lambda *anything: None)
        monkeypatch.setattr(under_test, "admit_hours", lambda *anything: None)
    with pytest.raises(BaseException, match="DID NOT RAISE"):
        refused_by(house, "alpha", run)


def test_what_was_not_announced_is_not_answered(tmp_path, monkeypatch):
    house = House(tmp_path, {"alpha": {}}, **AUTOMATIC)
    house.board(MEANS, ("age", "dose", "income"))
    other = MEANS.replace('columns = ["age", "dose"]', 'columns = ["income"]')
    assert refused_by(house, "alpha", lambda: asked(house, other, ("age", "dose", "income"))) == "HR-609"
    assert refused_by(house, "alpha", lambda: asked(house, LOGISTIC, life=2)) == "HR-609"
    monkeypatch.setattr(Announced, "refuse_other", lambda *anything: None)  # parties hold no other columns either
    assert refused_by(house, "alpha", lambda: asked(house, LOGISTIC, life=3)) == "HR-603"


def test_a_bound_that_understates_a_record_is_not_what_was_announced(tmp_path):
    house = House(tmp_path, {"alpha": {}}, **AUTOMATIC)
    house.board(PRIVATE, ("age", "dose"))
    built = house.built(PRIVATE, ("age", "dose"))
    narrow = built.schema.replace(built.schema["age"].__class__("age", "number", low=50.0, high=51.0))

    def run():
        last(built.listing.program(built.settings)(altered(built.federation, schema=narrow)))

    assert refused_by(house, "alpha", run) == "HR-609"


def test_a_secret_sum_cannot_be_asked_in_the_open(tmp_path):
    house = House(tmp_path, {"alpha": {}, "beta": {}, "gamma": {}}, **AUTOMATIC)
    assert house.board(MEANS + SECRET, ("age", "dose"))["alpha"]["status"] == "approved"
    with pytest.raises(PartyDeclined):
        asked(house, MEANS, ("age", "dose"))
    assert {letter.parts for name in house.stations for letter in house.opened(name)} == {(b"HR-609",)}


def test_the_epsilon_of_a_journal_is_computed_for_who_looks(tmp_path, monkeypatch):
    house = House(tmp_path, {"alpha": {"budget": {"epsilon": 9.0, "delta": 1e-6}}}, **AUTOMATIC)
    house.board(PRIVATE, ("age", "dose"))
    station, by_then = house.stations["alpha"], []
    station.base.keep(ROLL, station.held.roll.pack())
    priced, epsilon = [], Running.epsilon
    monkeypatch.setattr(Running, "epsilon", lambda self, *by: priced.append(1) or epsilon(self, *by))
    for life in (1, 2, 3):
        asked(house, PRIVATE, ("age", "dose"), life=life)
        assert not priced
        by_then.append(station.account.worst(np.array([0])))
        priced.clear()
    box, entries = Review(station.config, station.keys, station.base), station.journal.entries()
    told = {entry.letter: entry.epsilon for entry in box.priced(entries) if entry.code == "answered"}
    per_life = len(told) // 3
    assert [*told.values()][per_life - 1 :: per_life] == by_then
    assert all(entry.epsilon is None for entry in box.priced(entries) if entry.code != "answered")
    priced.clear()
    box.priced(entries[-4:])
    assert not priced  # it is remembered


def test_budgets_add_up_over_studies_and_restarts(tmp_path):
    house = House(tmp_path, {"alpha": {"budget": {"epsilon": 3.0, "delta": 1e-6}}}, **AUTOMATIC)
    house.board(PRIVATE, ("age", "dose"))
    house.board(PRIVATE, ("age", "dose"), study=OTHER)
    asked(house, PRIVATE, ("age", "dose"))
    spent = house.stations["alpha"].account.spent()[0][1]
    assert 0 < spent < 3.0
    house.start("alpha")
    assert house.stations["alpha"].account.spent()[0][1] == spent
    answered = until_refused(BudgetExhausted, lambda life: asked(house, PRIVATE, ("age", "dose"), study=OTHER, life=life))
    assert answered > 0
    assert house.stations["alpha"].account.spent()[0][1] <= 3.0
    [letter] = house.opened("alpha")
    assert letter.parts == (b"HR-213",)
    assert house.codes("alpha")[-1] == ("ask", "HR-213")


def test_noise_is_the_station_s_own_whatever_seed_a_server_names(tmp_path):
    house = House(tmp_path, {"alpha": {}}, **AUTOMATIC)
    house.board(PRIVATE, ("age", "dose"))
    own = asked(house, PRIVATE, ("age", "dose")).mean, asked(house, PRIVATE, ("age", "dose"), life=2).mean
    assert (own[0] != own[1]).all()
    means = []
    for life in (3, 4):
        built = house.built(PRIVATE, ("age", "dose"), life=life)
        seeded = altered(built.federation, streams=Streams(7))
        means.append(last(built.listing.program(built.settings)(seeded)).mean)
    assert (means[0] != means[1]).all()


# ---- letters --------------------------------------------------------------------------------------------------------
def test_the_same_letter_gets_the_same_answer_and_an_old_one_none(tmp_path):
    house = House(tmp_path, {"alpha": {}}, **AUTOMATIC)
    house.board(MEANS, ("age", "dose"))
    asked(house, MEANS, ("age", "dose"))
    raw, station = house.rail.sent[-1][1], house.stations["alpha"]
    first, n = house.rail.came[-1][1], len(station.journal.entries())
    assert station.receive(raw) == first
    again = enclose(
        house.hub.key_material,
        house.key_materials["alpha"].public_identity,
        "ask",
        [b"", b""],
        study=STUDY,
        number=(1 << 32) + 1,
    )
    assert station.receive(again) is None
    assert house.start("alpha").receive(raw) is None
    assert len(house.stations["alpha"].journal.entries()) == n


def test_what_is_not_from_the_coordinator_gets_no_answer(tmp_path):
    house = House(tmp_path, {"alpha": {}, "beta": {}})
    station, hub = house.stations["alpha"], house.hub.key_material
    public_identity = house.key_materials["alpha"].public_identity
    hello = enclose(hub, public_identity, "hello", [])
    assert station.receive(hello) is not None
    forged = bytearray(hello)
    forged[-1] ^= 1
    stranger = key_material("hub")
    house.keys["alpha"].public_identities["beta"] = house.key_materials["beta"].public_identity
    silent = [
        b"",
        b"hello",
        bytes(forged),
        hello[:-1],
        enclose(hub, house.key_materials["beta"].public_identity, "hello", []),
        enclose(stranger, public_identity, "hello", []),
        enclose(house.key_materials["beta"], public_identity, "hello", []),
        enclose(hub, public_identity, "hello", [], answers=bytes(32)),
    ]
    assert [station.receive(raw) for raw in silent] == [None] * len(silent)
    assert station.journal.entries() == []
    house.keys["alpha"].public_identities.clear()
    assert station.receive(hello) is None


def test_a_hello_says_what_is_declared_and_counts_no_records(tmp_path):
    house = House(tmp_path, {"alpha": {}})
    [letter] = house.ask("hello", []).values()
    said = unpack(letter.parts[0])
    assert [column.name for column in said["schema"]] == ["age", "dose", "sick", "income"]
    assert (said["data"], said["parties"], said["records"]) == ("heart", ("alpha",), None)


def test_strange_letters_of_the_coordinator_get_a_code(tmp_path):
    house = House(tmp_path, {"alpha": {}}, **AUTOMATIC)
    house.board(MEANS, ("age", "dose"))
    for kind, parts in [("ask", [b""]), ("ask", [b"x", b"y"]), ("board", [b"x"]), ("dance", []), ("board", [b"x", b"y"])]:
        letter = house.ask(kind, parts)["alpha"]
        assert (letter.kind, letter.parts[0][:3]) == ("refused", b"HR-")


def test_an_error_of_the_station_s_own_leaves_as_a_code(tmp_path, monkeypatch, caplog):
    house = House(tmp_path, {"alpha": {}}, **AUTOMATIC)
    house.board(MEANS, ("age", "dose"))

    def burst(*anything):
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(under_test.Station, "_computed", burst)
    assert refused_by(house, "alpha", lambda: asked(house, MEANS, ("age", "dose"))) == "HR-221"
    assert "a secret" in house.stations["alpha"].journal.entries()[-1].reason


def test_too_many_questions_wait_for_the_next_minute(tmp_path):
    house = House(tmp_path, {"alpha": {"limits": {"questions_per_minute": 2, "questions_per_study": 6}}}, **AUTOMATIC)
    house.board(MEANS, ("age", "dose"))
    asked(house, MEANS, ("age", "dose"))  # two questions
    assert refused_by(house, "alpha", lambda: asked(house, MEANS, ("age", "dose"), life=2)) == "HR-611"
    for life in (3, 4):
        house.later(seconds=61)
        asked(house, MEANS, ("age", "dose"), life=life)
    house.later(seconds=61)
    assert refused_by(house, "alpha", lambda: asked(house, MEANS, ("age", "dose"), life=5)) == "HR-611"


def test_a_full_disk_answers_nothing_and_loses_nothing(tmp_path, monkeypatch):
    house = House(tmp_path, {"alpha": {"budget": NOISY | {"epsilon": 50.0}}}, **AUTOMATIC)
    house.board(PRIVATE, ("age", "dose"))
    station = house.stations["alpha"]
    compute, computed = station._computed, []
    monkeypatch.setattr(station, "_computed", lambda *asked: computed.append(1) or compute(*asked))
    [[pages]] = station.base.rows("PRAGMA page_count")
    station.base.rows(f"PRAGMA max_page_count = {pages + 2}")
    until_refused(PartyDeclined, lambda life: asked(house, PRIVATE, ("age", "dose"), life=life))
    [letter] = house.opened("alpha")
    assert letter.parts == (b"HR-104",)
    noted = [entry for entry in station.journal.entries() if entry.code == "asked"]
    assert len(computed) == len(noted) > 0  # what could not be noted was not computed
    [history] = station.account._histories.values()
    left = history.n_charges
    station.base.rows("PRAGMA max_page_count = 1000000")
    asked(house, PRIVATE, ("age", "dose"), life=100)
    station.journal.verify()
    assert history.n_charges == left + 1 == len(list(station.journal.charges()))


def test_an_ended_study_asks_no_more(tmp_path):
    house = House(tmp_path, {"alpha": {}}, **AUTOMATIC)
    house.board(MEANS, ("age", "dose"))
    asked(house, MEANS, ("age", "dose"))
    house.number = 1 << 40
    assert house.ask("end", [b""])["alpha"].kind == "end"
    assert refused_by(house, "alpha", lambda: asked(house, MEANS, ("age", "dose"), life=1 << 20)) == "HR-607"


def test_another_study_under_the_same_name_is_refused(tmp_path):
    house = House(tmp_path, {"alpha": {}}, **AUTOMATIC)
    house.board(MEANS, ("age", "dose"))
    assert house.board(MEANS + "# more\n", ("age", "dose"))["alpha"] == "HR-608"
    assert asked(house, MEANS, ("age", "dose")).n == 60


def test_bytes_from_anywhere_get_no_answer(tmp_path):
    house = House(tmp_path, {"alpha": {}})
    station, rng = house.stations["alpha"], np.random.default_rng(0)
    hello = enclose(house.hub.key_material, house.key_materials["alpha"].public_identity, "hello", [b"x" * 50])
    for _ in range(500):
        raw = bytearray(hello if rng.random() < 0.7 else rng.bytes(rng.integers(400)))
        for at in rng.integers(max(len(raw), 1), size=rng.integers(1, 4)) if raw else ():
            raw[at] ^= 1 << rng.integers(8)
        if bytes(raw) != hello:
            assert station.receive(bytes(raw)) is None
    assert station.journal.entries() == []


def test_after_new_keys_a_study_is_approved_anew(tmp_path):
    house = House(tmp_path, {"alpha": {}}, **AUTOMATIC)
    house.board(MEANS, ("age", "dose"))
    house.key_materials["alpha"] = house.keys["alpha"].key_material = key_material("alpha")
    house.hub.public_identities["alpha"] = house.key_materials["alpha"].public_identity
    assert refused_by(house, "alpha", lambda: asked(house, MEANS, ("age", "dose"))) == "HR-607"
