"""Label inference: areas and scores by hand and by naive loops, and never an attack without its controls."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_split import made, train

from hedgerow.core.randomness import Streams
from hedgerow.errors import SettingsInvalid
from hedgerow.vertical.leaks import LabelDP, area, by_class, by_direction, by_norm, first_of_each, label_leak, measured


def test_an_area_by_hand():
    found = area([0.1, 0.4, 0.4, 0.9], [0, 0, 1, 1])
    assert found.value == 3.5 / 4  # of four pairs three are in order and one is a tie
    assert (found.positives, found.negatives) == (2, 2)


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30))
def test_an_area_counts_the_pairs_in_order(people):
    score, yes = (np.array(column) for column in zip(*people, strict=True))
    pairs = [(a > b) + (a == b) / 2 for a in score[yes] for b in score[~yes]]
    found = area(score, yes).value
    assert found == pytest.approx(np.mean(pairs)) if pairs else math.isnan(found)


def test_the_standard_error_of_a_guess_is_that_of_the_rank_test():
    m, n = 30, 70
    assert area(np.zeros(m + n), np.arange(m + n) < m).deviation == pytest.approx(math.sqrt((m + n + 1) / (12 * m * n)))


def test_gradients_are_multiplied_by_the_size_of_their_batch():
    g = np.array([[3.0, 4.0], [0.0, 1.0], [0.0, 2.0]])
    assert by_norm(g, [7, 7, 2]).tolist() == [10.0, 2.0, 2.0]


def test_directions_are_those_of_a_naive_loop():
    rng = np.random.default_rng(0)
    g, batch, labels = rng.normal(size=(40, 3)), rng.integers(0, 5, 40), rng.integers(0, 3, 40)
    g[3] = 0.0
    known = first_of_each(labels, batch, range(3))
    positive = known & (labels == 1)

    def unit(v):
        return v / np.linalg.norm(v) if v.any() else v

    for i, score in enumerate(by_direction(g, batch, positive)):
        told = [unit(g[j]) for j in np.flatnonzero(positive & (batch == batch[i]))]
        assert score == pytest.approx(unit(g[i]) @ unit(np.sum(told, axis=0)) if told else 0.0)
    for i, guess in enumerate(by_class(g, batch, labels, known, 3)):
        near = {labels[j]: unit(g[i]) @ unit(g[j]) for j in np.flatnonzero(known & (batch == batch[i]))}
        assert near[guess] == pytest.approx(max(near.values()))


def test_the_first_of_each_class_in_each_batch():
    assert first_of_each([0, 1, 1, 0, 1], [5, 5, 5, 9, 9]).tolist() == [False, True, False, False, True]
    assert first_of_each([0, 1, 1, 0, 1], [5, 5, 5, 9, 9], (0, 1)).tolist() == [True, True, False, True, True]


def test_a_batch_of_which_nobody_is_known_is_given_no_class():
    assert by_class(np.ones((2, 2)), [0, 1], [0, 1], [True, False], 2).tolist() == [0, -1]


def test_known_records_are_left_out_of_the_score():
    g, labels = np.array([[1.0], [-1.0], [-1.0], [1.0]]), np.array([1, 1, 0, 0])
    leak = label_leak("direction", g, np.zeros(4, int), labels, np.zeros(4))  # the known one would find itself
    assert (leak.records, leak.positives, leak.attack) == (3, 1, 0.25)


def test_v15_gradients_of_single_records_tell_almost_all_labels():
    people = made()
    run = train(people, epochs=1)
    found = measured(None, run.task, run.observer.seen(run.label_holder), people.y)
    assert found.of("direction", 1).attack > 0.99
    assert found.of("norm", 1).attack > 0.95
    assert found.of("direction", 1).beyond > 0.1


def test_v15_one_known_record_of_each_class_tells_the_classes():
    """Gradients of a linear last layer: softmax minus one-hot, times its weights."""
    rng = np.random.default_rng(1)
    n, classes = 500, 10
    labels, logits = rng.integers(0, classes, n), rng.normal(size=(n, classes)) * 0.3
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    g = (p - np.eye(classes)[labels]) @ rng.normal(size=(classes, 16))
    leak = label_leak("class", g, np.zeros(n, int), labels, p, classes=classes)
    assert leak.attack > 0.98
    assert leak.model < 0.2
    assert leak.records == n - classes


def test_v18_an_attack_finds_labels_that_it_cannot_have_read():
    """Among people whose label was replaced the norm still finds the true one: it reads the prediction. Hence the controls."""
    rng = np.random.default_rng(2)
    n, dp = 4000, LabelDP(1.0)
    y = (rng.random(n) < 0.3).astype(int)
    said = dp.draw(y, Streams(2).entropy(0, "label", "noise"))
    s = torch.tensor(2.5 * y - 2.5 + rng.normal(size=n), requires_grad=True)
    dp.loss(s, torch.tensor(said)).backward()
    g, own = s.grad.numpy()[:, None] * rng.normal(size=(1, 4)), s.detach().numpy()
    one = np.arange(n) == np.flatnonzero(said * y)[0]
    norm = label_leak("norm", g, np.zeros(n, int), y, own, said=said)
    read = label_leak("direction", g, np.zeros(n, int), y, own, said=said, known=one)
    assert norm.flipped > 0.7
    assert norm.beyond < 0
    assert (read.said, read.flipped) == (1.0, 0.0)  # it reads the label that was used, which is wrong for these people
    assert read.attack == pytest.approx(dp.ceiling, abs=0.03)
    assert norm.model == pytest.approx(area(own, y).value)
    for leak in (norm, read):
        assert f"{leak.model:.3f}" in str(leak)
        assert f"{leak.flipped:.3f}" in str(leak)


def test_v18_a_control_of_few_people_is_not_told():
    y = np.array([0, 1] * 20)
    said = y.copy()
    said[:4] = 1 - said[:4]
    leak = label_leak("norm", np.ones((40, 1)), np.zeros(40, int), y, y, said=said)
    assert math.isnan(leak.flipped)


def test_v18_gradients_without_a_score_are_refused():
    people = made(300)
    run = train(people, LabelDP(1.0), epochs=1, entropy=Streams(0).entropy(0, "label", "noise"))
    [seen] = run.observer.seen({key: value for key, value in run.label_holder.items() if not key.endswith("score")})
    with pytest.raises(SettingsInvalid, match="own score"):
        seen.leak("norm", people.y)


def test_arrays_of_other_lengths_are_refused():
    with pytest.raises(SettingsInvalid, match=r"\[2, 3\]"):
        label_leak("norm", np.ones((3, 1)), np.zeros(3, int), [0, 1], np.zeros(3))
    with pytest.raises(SettingsInvalid, match="one score"):
        area([1.0, 2.0], [1])
