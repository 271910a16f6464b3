"""Shapes and refusals under noise: what records decide is found before anybody is asked, or counts as zeros."""

from functools import partial

import numpy as np
import pytest

from hedgerow import Budget, Gaussian, l1, l2
from hedgerow.core import Federation, layouts, local
from hedgerow.core.federation import handle, inside
from hedgerow.core.layouts import Layouts
from hedgerow.core.question import Question
from hedgerow.core.randomness import Streams
from hedgerow.core.rules import RULES, known_shape
from hedgerow.core.run import Run
from hedgerow.data import Column, Schema
from hedgerow.engines import InProcess, Loop
from hedgerow.errors import ContributionInvalid, PartyDeclined, UnlawfulChannel
from hedgerow.privacy import Guard, Skellam, epsilon
from hedgerow.privacy.statement import statement
from hedgerow.testing.wired import Wired
from hedgerow.testing.worlds import SCHEMA, held
from helpers import Hiding, federation, totals

ENGINES = {"loop": Loop(), "one thread": InProcess(threads=1), "bytes": Wired()}


def of_its_size(broadcast, party, rng):
    """A row for each record."""
    return np.zeros(len(party.w))


def fails_on_nothing(broadcast, party, rng):
    """A row for each record, and nothing that a made-up record of weight zero would do."""
    if party.w.sum() < 2 or len(party.w) in (1, 7):
        raise ValueError("no records")
    return np.zeros(len(party.w))


def values_that_occur(broadcast, party, rng):
    """A number for each different value."""
    return np.unique(party["y"])


def to_its_records(broadcast, party, rng):
    """Three numbers, or four where a record lies far out."""
    return np.zeros(3 + int((np.abs(party["x"]) > 5).any()))


def fails_far_out(broadcast, party, rng):
    """The sum of x; it fails where a record lies far out."""
    if (np.abs(party["x"]) > 5).any():
        raise ValueError("the record of Mrs Miller lies far out")
    return party["x"].sum(0)


@local(stackable=True)
def fails_together(broadcast, party, rng):
    """The same for parties on a leading axis."""
    if (np.abs(party["x"]) > 5).any():
        raise ValueError("a record lies far out")
    return (party.w[..., None] * party["x"]).sum(-2)


@local
def overflows(broadcast, party, rng):
    """What 64-bit integers do not hold, where a record lies far out."""
    return np.full(2, 1e300 * (np.abs(party["x"]) > 5).any())


def private(**kwargs):
    return federation(**kwargs).protect(clip=l2(1.0), mechanism=Gaussian(1.0))


@pytest.mark.parametrize(
    ("function", "why"),
    [(of_its_size, "follows the records"), (values_that_occur, "follows the records"), (fails_on_nothing, "no records")],
)
def test_a_shape_that_records_may_decide_is_refused_before_anybody_is_asked(function, why):
    fed = private()
    with pytest.raises(UnlawfulChannel, match=why) as refusal:
        fed.sum(function)
    assert not fed.ledger.entries
    assert "No party was asked" in str(refusal.value)


def test_noise_without_a_schema_has_no_known_shape():
    fed = Federation(Loop(held([np.ones((2, 3))])), None, Streams(0)).protect(clip=l2(1.0), mechanism=Gaussian(1.0))
    with pytest.raises(UnlawfulChannel, match="has no schema"):
        fed.sum(fails_far_out)


def test_what_parties_keep_has_a_known_shape_if_they_were_asked_to_keep_it():
    fed = private()
    with pytest.raises(UnlawfulChannel, match="KeyError"):
        fed.sum(kept_sum)
    fed = private()
    fed.each(keep_sum)
    fed.sum(totals)
    assert fed.sum(kept_sum).shape == (3,)


def keep_sum(broadcast, party, rng):
    """Keep the sum of x."""
    party.state["kept"] = party["x"].sum(0)


def kept_sum(broadcast, party, rng):
    """Contribute what was kept."""
    return party.state["kept"]


# ---- the twin -------------------------------------------------------------------------------------------------------
class ShapeByData(Run):
    """Releases whatever shape comes back, as long as nobody knew another one."""

    def _total(self, outbox, inbox):
        return inbox.layout.unflatten(self._opened(outbox, inbox.total, inbox.layout))


def told_by_shapes(make):
    """Whether the shape of a release, or a refusal, tells two worlds apart of which one has a record more."""
    told = []
    for n in (4, 5):
        run = make(Loop(held([np.full((n, 3), 0.1)])), SCHEMA, Streams(0))
        fed = Federation(run.engine, SCHEMA, run.streams)
        fed = handle(inside(fed)._replace(run=run)).protect(clip=l2(1.0), mechanism=Gaussian(1.0))
        try:
            told.append(str(fed.sum(fails_on_nothing).shape))
        except UnlawfulChannel as refusal:
            told.append(str(refusal))
    return told[0] != told[1]


def test_shape_by_data_is_caught():
    trusting = partial(ShapeByData, rules=tuple(rule for rule in RULES if rule is not known_shape))
    assert told_by_shapes(trusting)
    assert not told_by_shapes(Run)


# ---- zeros in place of a refusal ------------------------------------------------------------------------------------
WORLD = [np.full((2, 3), 0.1), np.full((3, 3), 0.2), np.full((4, 3), 0.1)]
FAR = [*WORLD[:1], np.concatenate([WORLD[1], np.full((1, 3), 9.0)]), *WORLD[2:]]
WITHOUT = [WORLD[0], WORLD[1][:0], WORLD[2]]


def released(world, function, engine, mechanism=None, **protection):
    """A total whose noise has a seed."""
    fed = Federation(engine.hosting(held(world)), Schema((Column("x", "number", shape=(3,)),)), Streams(3))
    return fed.protect(clip=l2(1.0), mechanism=mechanism or Gaussian(1.0), **protection).sum(function)


@pytest.mark.parametrize("engine", ["loop", "one thread"])
@pytest.mark.parametrize("function", [fails_far_out, fails_together, to_its_records, overflows])
def test_a_party_whose_contribution_fails_counts_as_zeros(engine, function, caplog):
    """With equal noise, the total is that of the other parties, and only the party's log says why."""
    zeros_for_it = released(FAR, function, ENGINES[engine])
    np.testing.assert_array_equal(zeros_for_it, released(WITHOUT, function, ENGINES[engine]))
    if function is not overflows:  # a clip shortens what is too long
        assert "counts as zeros at party 1" in caplog.text


def test_the_noise_of_a_party_covers_its_zeros():
    """Where parties add noise, one that fails adds its own: nothing tells that it failed."""
    noise = Skellam(1.0, "shares", least=2)
    found = released(FAR, fails_far_out, Loop(), noise, aggregation=Hiding())
    np.testing.assert_array_equal(found, released(WITHOUT, fails_far_out, Loop(), noise, aggregation=Hiding()))


def test_a_total_far_beyond_its_bound_per_record_is_cut_and_takes_no_party_away(caplog):
    fed = federation().protect(mechanism=Gaussian(1.0))
    assert 0 < fed.sum(huge, bound=l1(1e-9, unit="record")) <= fed.size * 2.0**52 * 2.0**-30
    assert "counts as zeros" not in caplog.text


def huge(broadcast, party, rng):
    """Far more than its bound, where there are records."""
    return 1e12 * party.w.sum()


def test_without_noise_a_failure_is_a_refusal():
    fed = Federation(Loop(held(FAR)), SCHEMA, Streams(0))
    with pytest.raises(PartyDeclined):
        fed.sum(fails_far_out)


def test_errors_about_shapes_carry_none():
    for engine in (Loop(), InProcess(threads=1)):
        with pytest.raises(ContributionInvalid) as refusal:
            federation(engine).sum(of_its_size)
        assert not any(str(4 + 3 * i) in str(refusal.value).partition("More:")[0] for i in range(6))


# ---- a row for each record ------------------------------------------------------------------------------------------
def of_equal_size(engine):
    """Parties of four records each, of which rows can be gathered."""
    return Federation(engine.hosting(held([np.full((4, 3), 0.1)] * 3)), SCHEMA, Streams(0))


def test_a_row_for_each_record_is_named_in_the_ledger_and_has_no_epsilon():
    fed = of_equal_size(InProcess(threads=1))
    assert {row.shape for row in fed.gather(of_its_size).values()} == {(4,)}
    (entry,) = fed.ledger.entries
    assert (str(entry.event), entry.contribution, entry.numbers) == ("rows", "a row for each record", None)
    assert epsilon(fed.ledger.charges("record"), delta=1e-5, adjacency="add-remove") == np.inf
    sentence = "No epsilon is claimed: 1 of 1 release went out without noise, 1 with a row for each record."
    assert statement(fed.ledger, {"record": 12, "party": 3}).sentence == sentence


def test_guards_forbid_a_row_for_each_record_by_default():
    unlimited = Budget(np.inf, 1e-5, unit="record")
    for rows in (False, True):
        guards = {f"party {i}": Guard(unlimited, rows=rows) for i in range(3)}
        fed = of_equal_size(InProcess(threads=1, guards=guards))
        if rows:
            assert len(fed.gather(of_its_size)) == 3
        else:
            with pytest.raises(PartyDeclined, match="HR-221"):
                fed.gather(of_its_size)
            fed.gather(fails_far_out)


def test_who_answers_first_is_no_cohort_for_bounds_per_record():
    fed = federation().protect(mechanism=Gaussian(1.0))
    with pytest.raises(UnlawfulChannel, match="first answers"):
        fed.sample(size=2, spare=2).sum(fails_far_out, bound=l2(1.0, unit="record"))
    assert not fed.ledger.entries


@local(additive=True, stackable=True)
def the_first(broadcast, party, rng, *, share=1.0):
    """So many of the first numbers as a setting and the broadcast say."""
    return (party.w[..., None] * party["x"][..., : int(share * float(np.sum(broadcast)))]).sum(-2)


@pytest.mark.parametrize("engine", [Loop(), InProcess(threads=1)], ids=["loop", "one thread"])
def test_a_real_setting_or_a_short_broadcast_may_say_how_long_an_answer_is(engine):
    fed = Federation(engine.hosting(held([np.full((4, 3), 0.5)])), SCHEMA, Streams(0)).protect(mechanism=Gaussian(1e-4))
    for share, told in ((1 / 3, 3.0), (1.0, 3.0), (1.0, 1.0), (1.0, 2.0), (1 / 3, 3.0)):
        found = fed.sum(partial(the_first, share=share), np.float64(told), bound=l2(2.0, "record"))
        np.testing.assert_allclose(found, np.full(int(share * told), 2.0), atol=1e-2)


def test_layouts_of_ever_new_settings_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(layouts, "MOST_FOUND", 5)
    fed = Federation(InProcess(threads=1).hosting(held([np.zeros((4, 3))])), SCHEMA, Streams(0))
    for k in range(20):
        fed.sum(partial(the_first, share=1 + k / 1000), np.float64(1.0))
    assert len(inside(fed).run.layouts._found) == 5


def test_a_long_broadcast_is_tried_once(monkeypatch):
    tried, about = [], Layouts._about
    monkeypatch.setattr(Layouts, "_about", lambda self, *what: (tried.append(what[0]), about(self, *what))[1])
    fed = Federation(InProcess(threads=1).hosting(held([np.zeros((4, 3))])), SCHEMA, Streams(0))
    for k in range(20):
        fed.sum(the_first, np.full(65, k / 1000))
    assert len(tried) == 2


def test_a_guard_takes_an_unknown_shape_for_one_that_follows_the_records():
    parties = held([np.zeros((4, 3))])
    for schema, rows, answered in ((SCHEMA, False, True), (None, False, False), (None, True, True)):
        guards = {name: Guard(Budget(float("inf"), 1e-5, "record"), rows=rows) for name in parties.ids}
        fed = Federation(InProcess(threads=1, guards=guards).hosting(parties.fresh()), schema, Streams(0))
        if answered:
            fed.gather(the_first, np.float64(2.0))
        else:
            with pytest.raises(PartyDeclined):
                fed.gather(the_first, np.float64(2.0))


def as_many_as_said(broadcast, party, rng, *, points):
    """As many numbers as the middle of a long setting says."""
    return np.zeros(int(points[0][1000]))


def test_long_settings_are_told_apart_by_all_of_their_numbers():
    """In words an array of two thousand numbers is abbreviated."""
    layouts, sizes = Layouts(Schema((Column("x", "number"),))), []
    for n in (3, 5):
        points = (np.where(np.arange(2000) == 1000, n, 7),)
        sizes.append(layouts.of(Question("sum", partial(as_many_as_said, points=points)), Streams(0)).layout.size)
    assert sizes == [3, 5]
