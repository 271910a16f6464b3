"""Single records held to the bound that noise is scaled by, whatever a server says of settings and broadcast."""

from functools import partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from hedgerow import Gaussian
from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l1, l2, linf
from hedgerow.core.party import Parties, Party
from hedgerow.core.question import Question, local
from hedgerow.core.randomness import Streams
from hedgerow.core.records import held_to_bounds, in_whole_steps
from hedgerow.core.release import Release
from hedgerow.core.whole import whole
from hedgerow.engines import InProcess
from hedgerow.errors import BudgetInvalid, CannotWrite, SettingsInvalid
from hedgerow.stats.quantiles import counts_below
from helpers import norm_of_x, outbox, with_question, zeros

RNG = np.random.default_rng(5)
SIZES = [7, 3, 90]
X = RNG.uniform(-1, 1, (100, 2))


@local(additive=True, stackable=True)
def scaled_sums(broadcast, party, rng, *, by=1.0):
    """Sums that a server may scale."""
    x = party["x"] * by * broadcast
    return {"sum": (party.w[..., None] * x).sum(-2), "n": party.n}


def noised(unit="record"):
    return Release(bounds={"sum": l2(np.sqrt(2.0), unit), "n": linf(1.0, unit)}, mechanism=Gaussian(1e-4, at="server"))


def total(box, *, held=None, x=X):
    engine = InProcess(threads=1).hosting(held or Parties(("a", "b", "c"), {"x": x}, SIZES))
    inbox = engine.exchange(box)
    return box.release.open(inbox.total, inbox.layout, np.random.default_rng(0).bytes, box.public)


def asked(broadcast=1.0, release=None, ids=("a", "b", "c"), **settings):
    ask = partial(scaled_sums, **settings)
    return outbox(ask, np.float64(broadcast), release or noised(), ids=ids, streams=Streams(1))


def test_records_within_their_bound_add_up_as_they_are():
    assert_allclose(total(asked()), [*X.sum(0), 100], atol=1e-2)


@pytest.mark.parametrize("box", [asked(1e6), asked(by=1e6), asked(-1e300)], ids=["broadcast", "setting", "overflow"])
def test_no_record_adds_more_than_its_bound_whatever_is_asked(box):
    found = total(box)
    assert np.linalg.norm(found[:2] - total(box, x=np.vstack([X[:-1], -X[-1:]]))[:2]) <= 2 * np.sqrt(2.0) + 0.02
    assert np.linalg.norm(found[:2]) <= 100 * np.sqrt(2.0) + 0.02


def test_a_record_that_is_not_finite_counts_as_nothing_and_the_others_count():
    x = X.copy()
    x[0] = np.nan
    assert_allclose(total(asked(), x=x), [*X[1:].sum(0), 99], atol=1e-2)


def test_one_party_alone_is_held_to_bounds_as_well():
    found = total(asked(1e6, ids=("a",)), held=Parties(("a",), {"x": X}, [100]))
    assert_allclose(found[:2], (X / np.linalg.norm(X, axis=1, keepdims=True) * np.sqrt(2)).sum(0), atol=1e-2)


@pytest.mark.parametrize(
    "box",
    [asked(release=noised("party")), asked(release=Release()), with_question(asked(), local=norm_of_x)],
    ids=["per party", "no noise", "no sum over records"],
)
def test_other_questions_are_asked_as_they_are(box):
    assert held_to_bounds(box.question, box.release) is box.question.local
    other = partial(zeros, size=3)
    assert held_to_bounds(with_question(box, local=other).question, box.release) is other


# ---- parts of a party -----------------------------------------------------------------------------------------------
SIZES_ASKED = []


@local(additive=True, stackable=True, holds=32)
def weights_held(broadcast, party, rng, *, bounds=None):
    """The number of records in fine steps; it fails where a record is `broadcast`."""
    SIZES_ASKED.append(party.w.shape[-1])
    if (party["x"][..., 0] == broadcast).any():
        raise ValueError("such a record")
    return party.w.sum(-1) if bounds is None else whole(party.w[..., None], bounds).sum((-1, -2))


def counted(x, broadcast=2.0, shape=()):
    """What a party, or stacked ones, answer, in steps."""
    question = Question("sum", weights_held, broadcast)
    release = in_whole_steps(Release(bounds=linf(1.0, "record"), mechanism=Gaussian(1.0)), question)
    SIZES_ASKED.clear()
    w = np.linspace(0, 1, len(x)).reshape(*shape, -1)
    party = Party("p", {"x": x.reshape(*shape, -1, x.shape[-1])}, w)
    return held_to_bounds(question, release, Layout((("", ()),)))(question.broadcast, party, None) / release.bounds.step


def test_sums_of_more_records_than_are_exact_in_double_precision_are_found_in_parts():
    x = np.zeros((2**21 + 3, 1))
    steps = np.rint(np.linspace(0, 1, len(x)) * 2**32).astype(np.int64)
    assert counted(x) == min(int(steps.sum()), 2**52)
    assert max(SIZES_ASKED) <= 2**20 < sum(SIZES_ASKED)
    assert counted(x[:100]) == np.rint(np.linspace(0, 1, 100) * 2**32).sum()
    assert SIZES_ASKED == [100]


@pytest.mark.parametrize("failing", [[0], [57], [99], [3, 4, 98], range(100)])
def test_of_records_on_which_a_function_fails_only_these_count_as_zeros(failing, caplog):
    x = np.zeros((100, 1))
    x[list(failing)] = 5.0
    kept = np.setdiff1d(np.arange(100), failing)
    assert counted(x, 5.0) == np.rint(np.linspace(0, 1, 100)[kept] * 2**32).sum()
    assert f"{len(failing)} of its records count as zeros at p: ValueError: such a record" in caplog.text
    if len(failing) == 1:
        assert len(SIZES_ASKED) < 20
    assert counted(x, 5.0, shape=(1,)) == counted(x, 5.0)


def test_of_stacked_parties_a_failure_is_raised_so_that_each_is_asked_alone():
    with pytest.raises(ValueError, match="such a record"):
        counted(np.full((100, 1), 5.0), 5.0, shape=(2,))


@pytest.mark.parametrize("n", [0, 3])
def test_failures_of_the_machine_are_not_those_of_records(n):
    question = Question("sum", writes)
    release = in_whole_steps(noised(), question)
    with pytest.raises(CannotWrite):
        held_to_bounds(question, release)(None, Party("p", {"x": X[:n]}, np.ones(n)), None)


@local(additive=True)
def writes(broadcast, party, rng):
    raise CannotWrite("the disk is full.")


def test_so_many_bits_are_asked_for_that_sums_stay_exact():
    with pytest.raises(SettingsInvalid, match="33"):
        local(additive=True, holds=33)


def test_declarations_that_cannot_be_kept_are_refused():
    def sums(broadcast, party, rng):
        return party.w.sum()

    with pytest.raises(SettingsInvalid, match="bounds=None"):
        local(additive=True, holds=True)(sums)
    with pytest.raises(SettingsInvalid, match="say both"):
        local(additive=True, rowwise=True)(sums)


def test_a_bound_that_nothing_holds_is_named_in_the_log(caplog):
    for _ in range(2):
        in_whole_steps(noised(), Question("sum", uncounted))
    assert caplog.text.count("taken on trust") == 1
    assert "uncounted" in caplog.text


@local
def uncounted(broadcast, party, rng):
    return party.w.sum()


@pytest.mark.parametrize(
    ("bounds", "norm"),
    [
        (l1(1.0, "record"), 1),
        (l2(1.0, "record"), 2),
        ({"below": l1(1.0, "record"), "n": linf(1.0, "record")}, 1),
        ({"below": linf(0.1, "record"), "n": linf(1.0, "record")}, np.inf),
    ],
)
def test_functions_that_hold_records_keep_whatever_bounds_they_are_given(bounds, norm):
    """A single ball over several keys, another norm than their program's, radii that differ."""
    question = Question("sum", partial(counts_below, column="x"), np.linspace(0.5, 1.0, 40))
    release = in_whole_steps(Release(bounds=bounds, mechanism=Gaussian(1.0)), question)
    one = Party("p", {"x": np.zeros(1)}, np.ones(1))
    layout = Layout.of(counts_below(question.broadcast, one, None, column="x"))
    made = held_to_bounds(question, release, layout)(question.broadcast, one, None)
    parts = {"": np.append(made["below"], made["n"])} if "n" not in dict(bounds if isinstance(bounds, dict) else {}) else made
    for key, values in parts.items():
        bound = bounds[key] if isinstance(bounds, dict) else bounds
        assert 0 < np.linalg.norm(np.atleast_1d(values), ord=norm if key != "n" else np.inf) <= bound.radius


def test_totals_whose_steps_overflow_are_refused():
    with pytest.raises(BudgetInvalid, match="larger unit"):
        in_whole_steps(Release(bounds=linf(1e306, "record"), mechanism=Gaussian(1.0)), Question("sum", uncounted_sum))


@local(additive=True)
def uncounted_sum(broadcast, party, rng):
    return party.w.sum()


@local(additive=True, holds=True)
def in_single_precision(broadcast, party, rng, *, bounds=None):
    if (party["x"] > 4).any():
        raise ValueError("such a record")
    return np.full(2, party.n, np.float32)


@pytest.mark.parametrize("more", [0, 1])
def test_sums_in_single_precision_count_as_zeros_whoever_fails_beside(more):
    question = Question("sum", in_single_precision)
    release = in_whole_steps(Release(bounds=l2(2.0, "record"), mechanism=Gaussian(1.0)), question)
    party = Party("p", {"x": np.append(np.zeros(30), np.full(more, 5.0))}, np.ones(30 + more))
    made = held_to_bounds(question, release, Layout((("", (2,)),)))(None, party, None)
    np.testing.assert_array_equal(made, np.zeros(2))


class Wide:
    """A setting, such as a large model, that would have the steps of one party shared by all cores."""

    wide, stackable = True, True

    def __init__(self):
        self.threads = []


@local(additive=True, holds=True)
def threads_there(broadcast, party, rng, *, model, bounds=None):
    model.threads.append(torch.get_num_threads())
    return np.zeros(1)


def test_how_many_parties_there_are_decides_no_threads_behind_noise():
    model = Wide()
    question = Question("sum", partial(threads_there, model=model))
    release = in_whole_steps(Release(bounds=l2(1.0, "record"), mechanism=Gaussian(1.0, at="party")), question)
    held = Parties(("p",), {"x": np.zeros(3)}, [3])
    box = outbox(question.local, release=release, ids=("p",), layout=Layout((("", (1,)),)))
    InProcess(threads=2).hosting(held).exchange(box)
    assert model.threads == [1]
