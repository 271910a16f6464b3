"""A coordinator that has the keys and keeps to nothing else: what it asks beyond what was approved gets a code."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from hedgerow.core.arrays import Layout
from hedgerow.core.bound import linf
from hedgerow.core.conversation import Sessions
from hedgerow.core.question import function_of, local
from hedgerow.crypto import SecAgg
from hedgerow.crypto.keys import Roster
from hedgerow.errors import HedgerowError
from hedgerow.network.station.aggregations import withstands
from hedgerow.network.station.config import GuardSection
from hedgerow.network.station.policy import admit_question
from hedgerow.network.station.signatures import Announced
from hedgerow.wire import question as asking
from hedgerow.wire.names import Names
from hedgerow.wire.values import pack, unpack
from helpers import altered
from helpers import with_question as about
from station_house import LOGISTIC, MEANS, House, key_material

PROGRAMS = ["moments", "linear_regression", "gradient_queries", "logistic_regression"]
AUTOMATIC = {"approval": "automatic", "programs": [{"name": name} for name in PROGRAMS]}
SECRET = '[protection.aggregation]\nby = "secagg"\n'
NAMES = Names(("hedgerow", __name__))
THREE = ("alpha", "beta", "gamma")
LAYOUT = Layout((("n", ()), ("sum", (2,)), ("squares", (2,))))
LINE = """
name = "line"
[data]
name = "heart"
target = "age"
features = ["dose"]
[program]
name = "linear_regression"
formula = "age ~ dose"
[protection.mechanism]
law = "gaussian"
noise_multiplier = 5.0
at = "party"
"""
QUERIES = """
name = "queries"
[data]
name = "heart"
target = "sick"
features = ["age", "dose"]
[program]
name = "gradient_queries"
rounds = 2
n_records = 60
model = "logistic"
epsilons = {alpha = 1.0}
"""


class Stopped(Exception):
    """The first question was seen."""


def first_question(house, text, columns):
    """The first question about records that a program asks, as an outbox."""
    built, seen = house.built(text, columns), []

    class Engine:
        parties, elsewhere, roster = built.federation.names, True, next(iter(house.keys.values())).roster

        def exchange(self, outbox):
            if outbox.step is None or outbox.step.contributes:
                seen.append(outbox)
                raise Stopped
            return built.run.engine.exchange(outbox)

    with pytest.raises(Stopped):
        next(iter(built.listing.program(built.settings)(altered(built.federation, engine=Engine()))))
    return seen[0]


def asked(house, outbox, name="alpha", ids=None, **changes):
    """Ask one station; its answer, or its code."""
    common = unpack(asking.common(outbox), NAMES) | changes
    house.number = max(house.number, 1 << 40)
    letter = house.ask("ask", [pack(common), asking.own(outbox, ids or (name,))], [name])[name]
    return letter.parts[0].decode() if letter.kind == "refused" else asking.inbox(letter.parts[0], ids or (name,))


def boarded(tmp_path, text, columns=("age", "dose"), names=("alpha",), **guard):
    house = House(tmp_path, dict.fromkeys(names, guard), **AUTOMATIC)
    assert {one["status"] for one in house.board(text, columns).values()} == {"approved"}
    return house


def plain(outbox):
    """A question without the step of a conversation that carried it."""
    return replace(outbox, step=None, protocol=None)


def conversation(house, outbox, aggregation, life):
    """Put a hidden sum to all stations with settings of one's own."""
    engine = house.network(life=life)
    return aggregation.ask(engine, replace(about(outbox, number=life), ids=THREE, layout=LAYOUT, asked=3), Sessions())


@pytest.mark.slow
def test_a_hidden_sum_is_not_asked_in_the_open_with_its_aggregation_beside(tmp_path):
    house = boarded(tmp_path, MEANS + SECRET, names=THREE, least_cohort=3)
    seen = first_question(house, MEANS + SECRET, ("age", "dose"))
    open_ = replace(seen, ids=("alpha",), keep_rows=False, asked=3, step=None, protocol=None, layout=None)
    assert asked(house, open_, aggregation=seen.protocol.aggregation) == "HR-242"
    assert asked(house, open_) == "HR-609"


@pytest.mark.slow
def test_an_aggregation_keeps_the_settings_that_were_announced(tmp_path):
    house = boarded(tmp_path, MEANS + SECRET, names=THREE)
    seen = plain(first_question(house, MEANS + SECRET, ("age", "dose")))
    assert conversation(house, seen, SecAgg(), 7).answered == THREE
    for life, weaker in enumerate([SecAgg(corrupt=0.0), SecAgg(rounds_per_epoch=2), SecAgg(records=2.0)], 8):
        with pytest.raises(HedgerowError, match="HR-609"):
            conversation(house, seen, weaker, life)


@pytest.mark.slow
def test_a_hidden_row_is_not_found_by_halving_the_range_that_it_must_lie_in(tmp_path):
    house = boarded(tmp_path, MEANS + SECRET, names=THREE)
    seen = plain(first_question(house, MEANS + SECRET, ("age", "dose")))
    bounds = {**seen.release.bounds, "n": linf(16 / 2**20, "record")}
    narrow = replace(seen, release=replace(seen.release, bounds=bounds))
    with pytest.raises(HedgerowError, match="HR-243"):
        conversation(house, narrow, SecAgg(), 7)
    for life, one in enumerate([narrow, seen], 8):
        with pytest.raises(HedgerowError, match="HR-608"):
            conversation(house, one, SecAgg(), life)
    submission = house.stations["alpha"].submissions.all()[0]
    assert (submission.status, submission.by, submission.code) == ("refused", "guard", "HR-243")
    house.start("alpha")
    with pytest.raises(HedgerowError, match="HR-608"):
        conversation(house, seen, SecAgg(), 11)


@pytest.mark.slow
def test_a_broadcast_does_not_make_a_record_larger_than_the_noise_was_scaled_for(tmp_path):
    house = boarded(tmp_path, LINE, budget={"epsilon": 50.0, "delta": 1e-6})
    seen = first_question(house, LINE, ("age", "dose"))
    release = seen.release
    found = asked(house, seen, broadcast={"beta": np.full(2, 1e6), "centre": np.array(0.0)})
    score = release.open(found.total, found.layout, bytes, seen.public)[:2]
    assert np.linalg.norm(score) < 60 * release.bounds["score"].radius + 20 * 5 * release.bounds["score"].radius
    [preparation] = seen.question.view
    spec = dict(preparation.settings)["spec"]
    larger = replace(preparation, settings=(("spec", replace(spec, scales=tuple(s * 1e-3 for s in spec.scales))),))
    again = boarded(tmp_path / "again", LINE, budget={"epsilon": 50.0, "delta": 1e-6})
    found = asked(again, seen, view=(larger,))
    score = release.open(found.total, found.layout, bytes, seen.public)[:2]
    assert np.linalg.norm(score) < 60 * release.bounds["score"].radius + 20 * 5 * release.bounds["score"].radius


@pytest.mark.slow
def test_a_question_is_charged_for_the_plan_that_makes_its_noise(tmp_path):
    pytest.importorskip("torch")
    house = boarded(tmp_path, QUERIES, ("age", "dose", "sick"), budget={"epsilon": 5.0, "delta": 1e-6})
    seen = first_question(house, QUERIES, ("age", "dose", "sick"))
    plan = seen.question.settings["plan"]
    noises = plan.multipliers
    quiet = replace(plan, multipliers=tuple((name, 1e-6) for name, _ in noises))
    louder_elsewhere = replace(plan, multipliers=(*((name, 1e-6) for name, _ in noises), ("beta", noises[0][1])))
    for lie in (quiet, louder_elsewhere):
        local = partial(seen.question.function, **seen.question.settings | {"plan": lie})
        assert asked(house, seen, local=local) == "HR-609"
        assert asked(house, seen, local=local, release=replace(seen.release, plan=lie)) == "HR-609"
    assert asked(house, seen).answered == ("alpha",)


def test_a_guard_can_want_rows_hidden_from_a_coordinator_that_plays_the_others(tmp_path):
    house = House(tmp_path, {"alpha": {"require": {"hidden_rows": True, "adversary": "active"}}}, **AUTOMATIC)
    known = {name: key_material(name).identity.public for name in ("beta", "gamma")}
    house.keys["alpha"].roster = Roster(known | dict(house.keys["alpha"].roster))
    others = {"stations": {"alpha": 1, "beta": 1, "gamma": 1}}
    curious = house.board(MEANS + SECRET, ("age", "dose"), **others)["alpha"]
    assert (curious["status"], curious["code"]) == ("refused", "HR-606")
    active = house.board(MEANS + SECRET + 'adversary = "active"\n', ("age", "dose"), study=b"another study...", **others)
    assert active["alpha"]["status"] == "approved"
    assert [withstands(SecAgg(adversary=one)) for one in ("curious", "active")] == [False, True]


def test_what_a_person_reads_of_a_study_is_plain_and_from_whom_it_came(tmp_path):
    house = House(tmp_path, {"alpha": {}})
    text = MEANS.replace('name = "means"', 'name = "means"\ntitle = "kind \\u001b[8m\\u202e study\\n"')
    house.board(text, ("age", "dose"), coordinator="the ministry\x1b[31m")
    [submission] = house.stations["alpha"].submissions.all()
    assert (submission.title, submission.coordinator) == ("kind \ufffd[8m\ufffd study ", "hub")
    house.ask("da\x1b[2Jnce", [])
    house.board("x = \x1b[2J", study=b"another study...")
    assert all(text.isprintable() for e in house.stations["alpha"].journal.entries() for text in (e.kind, e.reason))


@pytest.mark.parametrize("formula", ["sick ~ (age + dose + income)**60", "sick ~ " + "*".join(["age", "dose"] * 20)])
def test_a_formula_that_would_be_written_out_for_ever_is_refused(tmp_path, formula):
    house = House(tmp_path, {"alpha": {}})
    said = house.board(LOGISTIC.replace("sick ~ age + dose", formula), ("age", "dose", "sick", "income"))["alpha"]
    assert (said["status"], said["code"]) == ("refused", "HR-310")


@pytest.mark.slow
def test_a_study_of_more_parties_or_bytes_than_anybody_rehearses_is_refused_and_not_kept(tmp_path):
    house = House(tmp_path, {"alpha": {}})
    assert house.board(MEANS, ("age", "dose"), stations={"alpha": 1, "x": (1 << 24) - 1}) == {"alpha": "HR-611"}
    assert house.board(MEANS + "#" * (1 << 24), ("age", "dose")) == {"alpha": "HR-611"}
    assert house.stations["alpha"].submissions.all() == []


def test_rows_that_leave_by_themselves_are_each_of_enough_records(tmp_path):
    house = boarded(tmp_path, MEANS)
    seen = asking.question(*(f(first_question(house, MEANS, ("age", "dose")), *a) for f, a in PACKING))
    guard, sizes = GuardSection(least_records=20), np.array([30, 5])
    admit_question(guard, seen, sizes, house.time)
    cohort = seen.question.cohort
    for changed in (
        about(seen.outbox, verb="gather"),
        replace(seen.outbox, keep_rows=True),
        about(seen.outbox, cohort=replace(cohort, sampling=replace(cohort.sampling, kind="records", rate=0.1))),
    ):
        with pytest.raises(HedgerowError, match="HR-604"):
            admit_question(guard, replace(seen, outbox=changed), sizes, house.time)


@local
def each_row(broadcast, party, rng):
    """A row for each record."""
    return np.asarray(party["age"])


@local
def as_many_as_told(broadcast, party, rng, *, share):
    """As many numbers as a setting says."""
    return np.zeros(int(share * 3))


@local
def fails_for_made_up_ones(broadcast, party, rng):
    """A row for each record, of records that exist alone."""
    if len(party.w) in (1, 7):
        raise ValueError("made up")
    return np.asarray(party["age"])


@pytest.mark.parametrize("verb", ["sum", "gather"])
def test_a_station_finds_rows_by_itself_whatever_it_is_told(tmp_path, monkeypatch, verb):
    monkeypatch.setattr(Announced, "refuse_other", lambda *anything: None)
    codes = {}
    for allowed in (False, True):
        house = boarded(tmp_path / str(allowed), MEANS, modules=[__name__], rows=allowed)
        seen = first_question(house, MEANS, ("age", "dose"))
        for ask in (each_row, fails_for_made_up_ones, partial(as_many_as_told, share=0.5)):
            told = about(replace(seen, layout=LAYOUT, rows=False), verb=verb, local=ask, bound=None, view=())
            found = asked(house, told)
            codes[allowed, asking_name(ask)] = found if isinstance(found, str) else "answered"
    assert codes == {
        (False, "each_row"): "HR-606",
        (False, "fails_for_made_up_ones"): "HR-606",
        (False, "as_many_as_told"): "answered",
        (True, "each_row"): "answered",
        (True, "fails_for_made_up_ones"): "answered",
        (True, "as_many_as_told"): "answered",
    }


def asking_name(ask):
    return function_of(ask).__name__


PACKING = ((asking.common, ()), (asking.own, (("alpha",),)))


def test_an_open_question_to_everybody_leaves_out_no_store_of_a_station(tmp_path):
    house = boarded(tmp_path, MEANS)
    seen = asking.question(*(f(first_question(house, MEANS, ("age", "dose")), *a) for f, a in PACKING))
    announced = house.stations["alpha"].submissions.all()[0].announced
    announced.refuse_other(seen, 1)
    with pytest.raises(HedgerowError, match="HR-609"):
        announced.refuse_other(seen, 2)
    with pytest.raises(HedgerowError, match="HR-609"):
        announced.refuse_other(replace(seen, outbox=about(seen.outbox, number=0)), 1)
