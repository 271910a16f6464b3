"""The observer: whole batches, bounded memory, arrays that are added and never changed."""

import numpy as np
import pytest

from hedgerow.errors import SettingsInvalid
from hedgerow.vertical.leaks import Observer
from hedgerow.vertical.leaks.observer import forget, pooled


def watched(observer, n=1000, size=100, cut=4, epochs=2, score=True):
    state, rng = {"weights": np.ones(3)}, np.random.default_rng(0)
    for epoch in range(1, epochs + 1):
        order = rng.permutation(n)
        for batch in range(-(-n // size)):
            rows = order[batch * size : (batch + 1) * size]
            sent = np.column_stack([rows + 0.5 * epoch] + [np.full(len(rows), batch)] * (cut - 1))
            observer.note(state, epoch, batch, rows, sent, rows / n if score else None, n=n, size=size)
    return state


def test_everything_is_kept_where_there_is_room():
    first, second = Observer((1, 2)).seen(watched(Observer((1, 2))))
    assert (first.epoch, second.epoch) == (1, 2)
    assert sorted(first.rows) == sorted(second.rows) == list(range(1000))
    assert (first.sent[:, 0] == first.rows + 0.5).all()
    assert (first.sent[:, 1] == first.batch).all()
    assert (first.score == first.rows / 1000).all()


@pytest.mark.parametrize("most", [1, 399, 400, 1300, 2000, 3999, 4000])
def test_no_more_is_kept_than_was_said_and_batches_stay_whole(most):
    [seen] = Observer((1,), most).seen(watched(Observer((1,), most)))
    assert seen.sent.size <= max(most, 4)
    counts = np.bincount(seen.batch)
    assert set(counts[counts > 0]) <= ({100} if most >= 400 else {max(1, most // 4)})


def test_other_epochs_and_other_state_are_left_alone():
    state = watched(Observer((2,)))
    assert [one.epoch for one in Observer((2, 5)).seen(state)] == [2]
    forget(state)
    assert set(state) == {"weights"}


def test_v19_arrays_are_added_and_none_is_changed():
    """A state that is dropped with its batch takes along what was observed in it, and nothing else."""
    observer, committed = Observer((1,)), {}
    observer.note(committed, 1, 0, np.arange(3), np.ones((3, 2)), np.zeros(3), n=6, size=3)
    before = {key: value.copy() for key, value in committed.items()}
    pending = dict(committed)
    observer.note(pending, 1, 1, np.arange(3, 6), np.zeros((3, 2)), np.zeros(3), n=6, size=3)
    assert len(pending) > len(committed)
    assert all((committed[key] == before[key]).all() for key in before)
    [seen] = observer.seen(committed)
    assert seen.rows.tolist() == [0, 1, 2]


def test_what_is_kept_is_a_copy():
    state, sent = {}, np.ones((3, 2))
    Observer().note(state, 1, 0, np.arange(3), sent, n=3, size=3)
    sent[:] = 7
    assert (Observer().seen(state)[0].sent == 1).all()


def test_gradients_of_a_person_are_added_up_over_epochs():
    seen = Observer((1, 2)).seen(watched(Observer((1, 2))))
    total = pooled(seen)
    scale = [np.linalg.norm(one.sent, axis=1).mean() for one in seen]
    by_row = [dict(zip(one.rows, one.sent, strict=True)) for one in seen]
    for i in (0, 17, 999):
        at = total.rows.tolist().index(i)
        assert total.sent[at] == pytest.approx(by_row[0][i] / scale[0] + by_row[1][i] / scale[1])
        assert total.score[at] == i / 1000
    assert pooled(seen[:1]) is None


def test_images_that_are_sent_are_flattened():
    state = {}
    Observer().note(state, 1, 0, np.arange(3), np.ones((3, 2, 2)), n=3, size=3)
    assert Observer().seen(state)[0].sent.shape == (3, 4)


def test_an_observer_of_nothing_is_refused():
    for settings in ({"epochs": ()}, {"epochs": (0,)}, {"most": 0}):
        with pytest.raises(SettingsInvalid):
            Observer(**settings)
