"""Questions and answers on the wire: what travels, what is withheld, and what is refused."""

import random
import re
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import get_type_hints

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.compression import RandomK
from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l1, l2
from hedgerow.core.cohort import Cohort
from hedgerow.core.conversation import Step
from hedgerow.core.engine import Inbox
from hedgerow.core.events import Sampling
from hedgerow.core.party import Parties
from hedgerow.core.question import Preparation, Question
from hedgerow.core.randomness import Streams
from hedgerow.core.release import Release
from hedgerow.crypto.context import context_of
from hedgerow.engines.host import Host
from hedgerow.errors import MessageRefused
from hedgerow.privacy import Gaussian, Tree
from hedgerow.privacy.choice.sparse import SparseVector
from hedgerow.privacy.local.reports import OptimisedUnary
from hedgerow.stats.counts import level_counts
from hedgerow.stats.linear.sums import linear_sums
from hedgerow.stats.scaling import rescale
from hedgerow.wire.question import ASKED, COMMON, answer, common, inbox, own, question
from hedgerow.wire.values import pack, unpack
from helpers import outbox, with_question

IDS = ("a", "b", "c", "d")
LAYOUT = Layout((("score", (2,)), ("n", ())))
STEP = Step("masks", {id: id.encode() * 3 for id in IDS}, contributes=True)
ASKING = outbox(
    partial(linear_sums, loss="binomial"),
    {"beta": np.arange(2.0), "alpha": np.float32(1.5)},
    Release(bounds=l2(1.0), mechanism=Gaussian(2.0)),
    7,
    ids=IDS,
    view=(Preparation(rescale, (("means", (1.0,)), ("names", ("x",)), ("scales", (2.0,)))),),
    counted={"a": 3, "c": 6},
    streams=Streams(11),
    keep_rows=True,
    first=3,
    sampling=Sampling("fixed", 0.5, 2),
    cohort=4,
)
CONVERSATION = replace(ASKING, step=STEP, protocol=SimpleNamespace(aggregation=hr.SecAgg()), layout=LAYOUT, asked=9)


def carried(box=CONVERSATION, ids=IDS, **how):
    return question(common(box), own(box, ids), **how)


def test_a_question_comes_back_with_the_letters_and_rounds_of_its_parties_alone():
    found = carried(ids=("b", "c"))
    box = found.outbox
    assert (found.ids, box.asked, box.layout, found.aggregation) == (("b", "c"), 9, LAYOUT, hr.SecAgg())
    assert found.step == Step("masks", {"b": b"bbb", "c": b"ccc"}, contributes=True)
    assert box.counted == {"c": 6}
    for name in set(ASKED) - {"local", "broadcast"}:
        assert getattr(found.question, name) == getattr(ASKING.question, name)
    assert (box.release, box.keep_rows) == (ASKING.release, ASKING.keep_rows)
    assert found.question.cohort == replace(ASKING.question.cohort, members=())
    assert found.question.local.func is linear_sums
    assert found.question.local.keywords == {"loss": "binomial"}
    assert type(found.question.broadcast["alpha"]) is np.float32
    np.testing.assert_array_equal(found.question.broadcast["beta"], ASKING.question.broadcast["beta"])
    assert context_of(box, LAYOUT) == context_of(ASKING, LAYOUT)


def test_every_field_of_a_question_travels_or_is_said_otherwise():
    assert {*ASKED, "cohort", "bound"} == set(get_type_hints(Question))
    told = {"members", "part"}, {"sampling", "first", "number", "branch"}
    assert set.union(*told) == set(get_type_hints(Cohort))


def test_own_parts_of_two_hosts_share_nothing():
    assert b"bbb" not in own(CONVERSATION, ("a", "c"))
    assert own(CONVERSATION, ("a",)) != own(CONVERSATION, ("c",))
    assert common(CONVERSATION) == common(replace(CONVERSATION, ids=IDS[:2]))


def test_a_host_chooses_its_own_randomness_and_hears_of_the_seed_that_the_server_names():
    told = []

    def mine(seed):
        told.append(seed)
        return Streams(5)

    assert carried(streams=mine).outbox.streams.seed == 5
    assert carried(replace(ASKING, streams=Streams()), streams=mine).outbox.streams.seed == 5
    assert told == [11, None]


@pytest.mark.parametrize(
    "mechanism",
    [
        Tree(1.0, 4).taken(2, Streams(424_242), Cohort()),
        SparseVector(1.0, 2, 0.5).taken(0, Streams(424_242), Cohort()),
    ],
    ids=["tree", "sparse vector"],
)
def test_what_a_mechanism_keeps_secret_at_the_server_does_not_travel(mechanism):
    box = replace(ASKING, release=Release(bounds=l2(1.0), mechanism=mechanism), streams=Streams())
    found = carried(box).outbox
    assert found.release.mechanism == mechanism
    assert str(found.release.mechanism) == str(mechanism)
    assert pack(424_242) not in common(box)
    assert b"\xce\x00\x06\x79\x32" not in common(box)
    assert context_of(found) == context_of(box)


def test_the_seed_of_a_test_above_is_what_it_looks_for():
    assert b"\xce\x00\x06\x79\x32" in common(replace(ASKING, streams=Streams(424_242)))


@pytest.mark.parametrize(
    "aggregation", [hr.SecAgg(least=4, bits=32), hr.PairwiseMasks(group=3), hr.AdditiveShares(), hr.PrivFL()]
)
def test_every_aggregation_travels(aggregation):
    found = carried(replace(CONVERSATION, protocol=SimpleNamespace(aggregation=aggregation)))
    assert found.aggregation == aggregation


def name_of_changes(changes):
    return re.sub(r" at 0x[0-9a-f]+", "", str(changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"number": "7"},
        {"number": 1 << 63},
        {"number": 7.0},
        {"verb": "tell"},
        {"local": None},
        {"local": "hedgerow.stats.linear.sums:linear_sums"},
        {"local": l2(1.0)},
        {"local": partial(linear_sums, 1)},
        {"branch": "elsewhere"},
        {"branch": 0},
        {"release": None},
        {"release": Gaussian(1.0)},
        {"release": Release(public_seed=-1)},
        {"release": Release(cites=-1)},
        {"release": Release(cites=1 << 63)},
        {"view": [rescale]},
        {"view": (rescale,)},
        {"init": 3},
        {"keep_rows": 1},
        {"first": "a"},
        {"sampling": None},
        {"cohort": True},
        {"seed": -1},
        {"seed": "11"},
        {"step": ("masks", 1)},
        {"step": "masks"},
        {"step": None},
        {"asked": 3},
        {"asked": "9"},
        {"layout": {"a": (2,)}},
    ],
    ids=name_of_changes,
)
def test_a_question_that_is_none_is_refused(changes):
    told = unpack(common(CONVERSATION))
    with pytest.raises(MessageRefused, match="HR-242"):
        question(pack(told | changes), own(CONVERSATION, IDS))
    assert tuple(told) == COMMON


@pytest.mark.parametrize(
    "changes",
    [
        {"ids": ()},
        {"ids": None},
        {"ids": ["a", "b", "c", "d"]},
        {"ids": ("a", "b", "c", "c")},
        {"ids": ("a", "b", "c", "")},
        {"ids": ("a", "b", "c", 4)},
        {"letters": None},
        {"letters": (b"a",)},
        {"letters": ("a", "b", "c", "d")},
        {"counted": {"e": 1}},
        {"counted": {"a": "1"}},
        {"counted": None},
    ],
    ids=name_of_changes,
)
def test_own_parts_that_are_none_are_refused(changes):
    with pytest.raises(MessageRefused):
        question(common(CONVERSATION), pack(unpack(own(CONVERSATION, IDS)) | changes))
    with pytest.raises(MessageRefused):
        question(own(CONVERSATION, IDS), common(CONVERSATION))


def test_a_question_that_names_nobody_is_to_all_of_a_host_that_takes_it_and_refused_by_others():
    parts = common(CONVERSATION), own(CONVERSATION, IDS, named=False)
    assert unpack(parts[1])["ids"] is None
    assert len(parts[1]) < len(own(CONVERSATION, IDS))
    found = question(*parts, here=IDS)
    assert (found.ids, found.outbox.counted, found.step) == (IDS, ASKING.counted, STEP)
    with pytest.raises(MessageRefused, match="nobody"):
        question(*parts)
    with pytest.raises(MessageRefused, match="letter"):
        question(*parts, here=(*IDS, "e"))


@pytest.mark.parametrize("nameless", [True, False])
def test_a_host_takes_a_question_that_names_nobody_only_where_it_is_told_to(nameless):
    host = Host(hr.InProcess(threads=1).hosting(Parties(IDS, {"x": np.arange(4.0)}, [1] * len(IDS))), nameless=nameless)
    parts = common(CONVERSATION), own(CONVERSATION, IDS, named=False)
    if nameless:
        assert host.question(*parts).ids == host.fresh().question(*parts).ids == IDS
        return
    with pytest.raises(MessageRefused, match="nobody"):
        host.question(*parts)


# ---- answers --------------------------------------------------------------------------------------------------------
ROWS = np.arange(6.0).reshape(2, 3)
INBOXES = {
    "a total": Inbox(("a", "c"), LAYOUT, ROWS.sum(0)),
    "rows": Inbox(("a", "d"), LAYOUT, ROWS.sum(0), ROWS),
    "single precision": Inbox(("b", "c"), LAYOUT, ROWS.sum(0), ROWS.astype(np.float32)),
    "steps of a grid": Inbox(("b", "c"), LAYOUT, ROWS.sum(0).astype(np.int64), ROWS.astype(np.int64)),
    "not finite": Inbox(("b",), LAYOUT, np.array([np.nan, np.inf, 0.0])),
    "nothing": Inbox(("a", "b", "c", "d")),
    "nobody": Inbox(()),
    "letters": Inbox(("a", "d"), LAYOUT, masked=True, letters={"a": b"1", "d": b""}, codes={"b": "HR-241", "c": "HR-606"}),
}


@pytest.mark.parametrize("name", INBOXES)
def test_an_answer_comes_back_exactly(name):
    sent = INBOXES[name]
    found = inbox(answer(sent, IDS), IDS, replace(ASKING, release=Release()))
    for field in ("answered", "layout", "masked", "letters", "codes"):
        assert getattr(found, field) == getattr(sent, field)
    for field in ("total", "rows"):
        one, other = getattr(sent, field), getattr(found, field)
        assert (one is None) == (other is None)
        if one is not None:
            assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


@pytest.mark.parametrize(
    "changes",
    [
        {"answered": np.ones(3, bool)},
        {"answered": np.ones(4)},
        {"answered": ("a", "d")},
        {"layout": None},
        {"layout": Layout((("score", (2,)),))},
        {"layout": ("score",)},
        {"total": np.zeros(4)},
        {"total": np.zeros((1, 3))},
        {"total": np.zeros(3, complex)},
        {"total": [0.0, 0.0, 0.0]},
        {"rows": np.zeros((3, 3))},
        {"rows": np.zeros(3)},
        {"rows": np.zeros((2, 2))},
        {"masked": 1},
        {"masked": None},
        {"letters": (b"1",)},
        {"letters": {"a": b"1"}},
        {"codes": {0: "HR-241"}},
        {"codes": {4: "HR-241"}},
        {"codes": {-1: "HR-241"}},
        {"codes": {1: "HR-24"}},
        {"codes": {1: "HR-241 because age is missing"}},
        {"codes": {1: "HR-241\n"}},
        {"codes": {"b": "HR-241"}},
        {"codes": []},
    ],
    ids=name_of_changes,
)
def test_a_hostile_answer_is_refused(changes):
    told = unpack(answer(INBOXES["rows"], IDS))
    with pytest.raises(MessageRefused, match="HR-242"):
        inbox(pack(told | changes), IDS, replace(ASKING, release=Release()))
    with pytest.raises(MessageRefused):
        inbox(pack(changes), IDS)


def test_an_answer_names_no_function():
    told = unpack(answer(INBOXES["rows"], IDS))
    with pytest.raises(MessageRefused, match="no allowed package"):
        inbox(pack(told | {"layout": linear_sums}), IDS)


def test_sizes_are_those_of_what_leaves_a_party():
    """A code of a compression, and reports that have a size of their own."""
    layout = Layout((("w", (5000,)),))
    short = replace(ASKING, release=Release(compression=RandomK(0.1, smallest=1)))
    size = short.release.code(layout).size
    assert size < 5000
    reports = Release(bounds=l1(1.0, "record"), mechanism=OptimisedUnary(1.0, 1))
    reporting = replace(with_question(ASKING, local=level_counts), release=reports)
    for box, fits in ((short, size), (reporting, 5001), (replace(ASKING, release=Release()), 5000)):
        assert inbox(answer(Inbox(("a",), layout, np.zeros(fits)), IDS), IDS, box).total.shape == (fits,)
        with pytest.raises(MessageRefused, match="another size"):
            inbox(answer(Inbox(("a",), layout, np.zeros(fits + 1)), IDS), IDS, box)


def test_answers_out_of_order_are_not_sent():
    for answered in (("c", "a"), ("a", "e"), ("a", "a")):
        with pytest.raises(MessageRefused, match="in their order"):
            answer(Inbox(answered), IDS)


def test_changed_questions_and_answers_end_in_a_value_or_a_refusal():
    chance, refused = random.Random(3), 0
    parts = common(CONVERSATION), own(CONVERSATION, IDS), answer(INBOXES["letters"], IDS)
    for _ in range(1500):
        which = chance.randrange(3)
        raw = bytearray(parts[which])
        for _ in range(chance.randrange(1, 3)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        try:
            if which == 2:
                inbox(bytes(raw), IDS, ASKING)
            else:
                question(*(bytes(raw) if which == i else parts[i] for i in range(2)))
        except MessageRefused:
            refused += 1
    assert refused > 500
