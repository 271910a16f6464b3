"""Somebody taps the rail, or is the relay: what can be seen, and what can be done with it."""

import random
import re

import pytest

from hedgerow.crypto.keys import SEAL_BYTES
from hedgerow.engines.rails.rail import Arrived
from hedgerow.errors import HedgerowError, NobodyAnswered, PartyDeclined
from hedgerow.store import last
from hedgerow.wire.envelope import LEAD_BYTES, SIGNATURE_BYTES, disclose, enclose
from station_house import LOGISTIC, MEANS, PRIVATE, STUDY, House, config_of, key_material

AUTOMATIC = {"approval": "automatic", "programs": [{"name": "logistic_regression"}, {"name": "moments"}]}
NOISY = {"epsilon": 0.01, "delta": 1e-6}
WORDS = re.compile(rb"HR-\d{3}|hedgerow|formula|secagg|deviations|protection|guard|Forbidden|income")
"""Of studies, functions, columns and refusals; `age` and `dose` are short enough to come up by chance."""


def asked(house, text, columns=("age", "dose"), **how):
    built = house.built(text, columns, **how)
    return last(built.listing.program(built.settings)(built.federation))


def all_bodies(house):
    return [body for _, body in (*house.rail.sent, *house.rail.came)]


def stricter(house, **guard):
    """The guard of alpha became stricter after it approved a study."""
    house.configs["alpha"] = config_of("alpha", **AUTOMATIC | guard)
    house.start("alpha")


REFUSALS = {
    "a column": ("HR-603", {"columns": ["age"]}, MEANS),
    "a small cohort": ("HR-605", {"least_cohort": 2}, MEANS),
    "an unprotected sum": ("HR-606", {"require": {"hidden_rows": True}}, MEANS),
    "an exhausted budget": ("HR-213", {"budget": NOISY}, PRIVATE),
    "an unapproved submission": ("HR-607", {"approval": "ask"}, MEANS),
}


SLOW = {"an exhausted budget"}


@pytest.mark.parametrize("case", [pytest.param(one, marks=pytest.mark.slow) if one in SLOW else one for one in REFUSALS])
def test_while_a_guard_refuses_nothing_but_a_sealed_code_leaves(tmp_path, case):
    code, guard, text = REFUSALS[case]
    house = House(tmp_path, {"alpha": guard if case == "an unapproved submission" else {}}, **AUTOMATIC)
    house.board(text, ("age", "dose"))
    stricter(house, **guard)
    before = len(house.rail.came)
    with pytest.raises(HedgerowError, match=code):
        asked(house, text)
    [(name, body)] = house.rail.came[before:]
    letter = disclose(house.hub.key_material, house.hub.public_identities, body)
    assert (name, letter.kind, letter.parts) == ("alpha", "refused", (code.encode(),))
    header = LEAD_BYTES + int.from_bytes(body[:LEAD_BYTES], "big")
    assert len(body) == header + SIGNATURE_BYTES + len(code) + SEAL_BYTES  # the sealed code, and nothing beside it
    assert not any(WORDS.search(one) for one in all_bodies(house))
    entry = house.stations["alpha"].journal.entries()[-1]
    assert (entry.kind, entry.code) == ("ask", code)
    assert entry.reason


SECRET = LOGISTIC + '[protection.aggregation]\nby = "secagg"\n'


@pytest.mark.parametrize(
    "text", [MEANS, PRIVATE, pytest.param(SECRET, marks=pytest.mark.slow)], ids=["open", "noisy", "hidden"]
)
def test_nothing_of_a_study_can_be_read_on_the_rail(tmp_path, text):
    house = House(tmp_path, {"alpha": {}, "beta": {}, "gamma": {}}, **AUTOMATIC)
    house.board(text)
    asked(house, text, ("age", "dose", "sick"))
    bodies = all_bodies(house)
    assert len(bodies) >= 12
    assert not any(WORDS.search(body) for body in bodies)
    inside = [
        disclose(house.key_materials["alpha"], house.keys["alpha"].public_identities, body).parts
        for name, body in house.rail.sent
        if name == "alpha"
    ]
    assert all(WORDS.search(b"".join(parts)) for parts in inside)  # what would have been found


def test_the_same_question_never_looks_the_same(tmp_path):
    """Nothing of a body after its header repeats: not for two stations, and not when it is asked again."""
    house = House(tmp_path, {"alpha": {}, "beta": {}}, **AUTOMATIC)
    house.board(MEANS, ("age", "dose"))
    asked(house, MEANS)
    asked(house, MEANS, life=2)
    pieces = [body[at : at + 16] for body in all_bodies(house) for at in range(len(body) - 160, len(body) - 16, 16)]
    assert len(pieces) == len(set(pieces))


# ---- relays ---------------------------------------------------------------------------------------------------------
def relayed(house, relay):
    """Put a relay between the coordinator and its stations: it is given each answer and says what is delivered."""
    stations = dict(house.rail.stations)

    def between(name):
        def carry(raw):
            answer = stations[name](raw)
            house.rail.events.extend(relay(name, raw, answer))

        return carry

    house.rail.stations = {name: between(name) for name in stations}
    house.queue.watch = lambda happened, station, *rest: house.happened.append((happened, station))
    house.happened = []


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path, {"alpha": {}, "beta": {}}, **AUTOMATIC)
    made.board(MEANS, ("age", "dose"))
    return made


def test_a_relay_that_swaps_two_stations_bodies_is_found_out(house):
    other = {"alpha": "beta", "beta": "alpha"}
    relayed(house, lambda name, raw, answer: [Arrived(other[name], answer)])
    with pytest.raises(NobodyAnswered):
        asked(house, MEANS)
    assert {("forged", "alpha"), ("forged", "beta")} <= set(house.happened)


def test_a_relay_that_hands_a_question_to_the_other_station_gets_nothing(house):
    alpha, beta = house.rail.stations["alpha"], house.rail.stations["beta"]
    house.rail.stations = {"alpha": beta, "beta": alpha}
    entries = [len(station.journal.entries()) for station in house.stations.values()]
    before = len(house.rail.came)
    with pytest.raises(NobodyAnswered):
        asked(house, MEANS)
    assert len(house.rail.came) == before
    assert [len(station.journal.entries()) for station in house.stations.values()] == entries


def test_a_relay_that_replays_answers_changes_nothing(house):
    old = []

    def replay(name, raw, answer):
        events = [*(Arrived(who, body) for who, body in old), Arrived(name, answer), Arrived(name, answer)]
        old.append((name, answer))
        return events

    truth = asked(house, MEANS)
    relayed(house, replay)
    for life in (2, 3):
        assert (asked(house, MEANS, life=life).mean == truth.mean).all()
    assert ("late", "alpha") in house.happened


def test_a_relay_that_replays_questions_gets_the_old_answer_or_none(house):
    asked(house, MEANS)
    spent = [len(station.journal.entries()) for station in house.stations.values()]
    answers = {body for _, body in house.rail.came}
    for name, body in list(house.rail.sent):
        assert house.stations[name].receive(body) in answers | {None}
    house.start("alpha")
    assert all(house.stations["alpha"].receive(body) is None for name, body in house.rail.sent if name == "alpha")
    assert [len(station.journal.entries()) for station in house.stations.values()] == spent


@pytest.mark.parametrize(
    "damage",
    [
        lambda body, rng: body[: rng.randrange(len(body))],
        lambda body, rng: body + b"\0",
        lambda body, rng: body[:-1] + bytes([body[-1] ^ 1]),
        lambda body, rng: body[:80] + bytes([body[80] ^ 1]) + body[81:],
    ],
    ids=["truncates", "adds", "alters what is sealed", "alters what is signed"],
)
def test_a_relay_that_damages_bodies_gets_nothing_taken(house, damage):
    rng = random.Random(0)
    relayed(house, lambda name, raw, answer: [Arrived(name, damage(answer, rng))])
    with pytest.raises(NobodyAnswered):
        asked(house, MEANS)
    assert {what for what, _ in house.happened} == {"asked", "forged", "lost"}
    before = house.codes("alpha")
    letters = [damage(body, rng) for name, body in house.rail.sent if name == "alpha"]
    assert [house.stations["alpha"].receive(body) for body in letters] == [None] * len(letters)
    assert house.codes("alpha") == before


def test_a_relay_that_forges_is_not_believed(house):
    """It knows everything that is public: names, public identities, the study's name, the letter, and its own keys."""
    relay, hub = key_material("alpha"), house.hub.key_material.public_identity

    def forge(name, raw, answer):
        letter = disclose(house.key_materials[name], {"hub": hub}, raw)  # more than a relay knows: the digest to be answered
        about = {"study": STUDY, "number": letter.number, "answers": letter.digest}
        return [Arrived(name, enclose(relay, hub, "refused", [b"HR-608"], **about))]

    relayed(house, forge)
    with pytest.raises(NobodyAnswered):
        asked(house, MEANS)
    question = enclose(
        key_material("hub"), house.key_materials["alpha"].public_identity, "ask", [b"", b""], study=STUDY, number=1 << 60
    )
    assert house.stations["alpha"].receive(question) is None


def test_who_is_revoked_gets_nothing_on_either_side(house):
    asked(house, MEANS)
    before = len(house.rail.sent)
    del house.hub.public_identities["alpha"]
    assert asked(house, MEANS, life=2).n == 60
    assert {name for name, _ in house.rail.sent[before:]} == {"beta"}
    house.keys["beta"].public_identities.clear()
    with pytest.raises((NobodyAnswered, PartyDeclined)):
        asked(house, MEANS, life=3)
    assert house.rail.sent[-1][0] == "beta"


def test_no_sentence_of_an_error_crosses(house, monkeypatch):
    from hedgerow.network.station import station as module

    def burst(*anything):
        raise ZeroDivisionError("income of patient 17")

    monkeypatch.setattr(module.Station, "_computed", burst)
    with pytest.raises(PartyDeclined, match="HR-221"):
        asked(house, MEANS)
    letters = [disclose(house.hub.key_material, house.hub.public_identities, body) for _, body in house.rail.came[-2:]]
    assert [letter.parts for letter in letters] == [(b"HR-221",)] * 2
    assert "patient 17" in house.stations["alpha"].journal.entries()[-1].reason
