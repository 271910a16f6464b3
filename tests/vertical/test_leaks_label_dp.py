"""Label privacy: chances as printed, an epsilon that holds, one draw for each record, and a broken twin that is caught."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch.nn import functional

from attack import epsilon_lower_bound
from hedgerow.core.events import Sampling
from hedgerow.core.randomness import Streams
from hedgerow.errors import BudgetInvalid, NotBinary, SettingsInvalid, StateLost
from hedgerow.privacy.accounting import epsilon as epsilon_of
from hedgerow.privacy.local.chance import WORD, lie
from hedgerow.vertical.leaks import LabelDP
from hedgerow.vertical.leaks.label_dp import DRAWN_FROM, SAID, epsilon_of_draws, found_by_majority

FALSE_ALARM = 1e-6


def entropy(seed=0):
    return Streams(seed).entropy(0, "label", "noise")


GOLDEN = {
    (1.0, 2): 0.2689414213699951,
    (2.0, 2): 0.11920292202211755,
    (4.0, 2): 0.01798620996209156,
    (1.0, 10): 0.7680306833159260,
}


@pytest.mark.parametrize(("of", "flip"), GOLDEN.items())
def test_chances_are_those_of_randomised_response(of, flip):
    dp = LabelDP(*of)
    assert dp.flip == pytest.approx(flip, abs=1e-10)
    assert dp.ceiling == 1 - dp.flip
    assert dp.chances.sum(axis=1) == pytest.approx(np.ones(dp.classes))


@given(st.floats(0.01, 15), st.integers(2, 50))
def test_no_label_is_more_likely_than_epsilon_allows(epsilon, classes):
    ratio = LabelDP(epsilon, classes).ratio()
    assert ratio <= Fraction(math.exp(epsilon)) * (1 + Fraction(1, 10**12))
    assert float(ratio) == pytest.approx(math.exp(epsilon), rel=1e-6)


@pytest.mark.parametrize("classes", [2, 5])
def test_the_labels_that_are_said_have_the_declared_law(classes):
    dp, true = LabelDP(1.0, classes), np.repeat(np.arange(classes), 20_000)
    said = dp.draw(true, entropy())
    table = np.histogram2d(true, said, bins=[np.arange(classes + 1)] * 2)[0]
    statistic = ((table - 20_000 * dp.chances) ** 2 / (20_000 * dp.chances)).sum()
    assert stats.chi2.sf(statistic, classes * (classes - 1)) > FALSE_ALARM


def test_a_neighbour_changes_what_is_said_of_that_person_alone():
    true = np.random.default_rng(0).integers(0, 2, 3000)
    other = true.copy()
    other[17] = 1 - other[17]
    differ = np.flatnonzero(LabelDP(1.0).draw(true, entropy()) != LabelDP(1.0).draw(other, entropy()))
    assert set(differ) <= {17}


def test_without_a_stream_the_entropy_is_the_systems():
    true = np.zeros(400, int)
    assert (LabelDP(1.0).draw(true) != LabelDP(1.0).draw(true)).any()


def test_the_whole_training_costs_epsilon_of_each_label():
    event = LabelDP(1.0).event()
    assert (event.kind, event.epsilon) == ("pure", 1.0)
    assert epsilon_of([(Sampling(), (event,))], delta=1e-12, adjacency="add-remove") == pytest.approx(1.0)
    assert epsilon_of([(Sampling(), (event,) * 4)], delta=1e-12, adjacency="add-remove") == pytest.approx(
        epsilon_of_draws(1.0, 4)
    )


def test_v16_what_was_said_is_said_ever_after():
    dp, state, true = LabelDP(1.0), {}, np.random.default_rng(0).integers(0, 2, 500)
    first = dp.once(state, true, entropy(1)).copy()
    for epoch in range(5):
        assert (dp.once(state, true, entropy(epoch)) == first).all()
    assert 0.2 < (first != true).mean() < 0.34


@pytest.mark.parametrize("other", [LabelDP(2.0), LabelDP(1.0, 3), LabelDP(0.5, 3)])
def test_v16_a_second_draw_at_a_larger_epsilon_or_of_other_classes_is_refused(other):
    state, true = {}, np.array([0, 1] * 30)
    LabelDP(1.0).once(state, true)
    with pytest.raises(BudgetInvalid, match="drawn anew"):
        other.once(state, true)


@pytest.mark.parametrize("classes", [2, 4])
def test_v16_a_smaller_epsilon_replaces_what_was_said_and_reads_no_label(classes):
    """A comparison of epsilons 4, 2 and 1 costs 4: each has its law, and knows of the labels what the one before said."""
    true = np.repeat(np.arange(classes), 30_000)
    state, source, before = {}, entropy(6), true
    for dp in (LabelDP(4.0, classes), LabelDP(2.0, classes), LabelDP(1.0, classes)):
        said = dp.once(state, true, source)
        table = np.histogram2d(true, said, bins=[np.arange(classes + 1)] * 2)[0]
        statistic = ((table - 30_000 * dp.chances) ** 2 / (30_000 * dp.chances)).sum()
        assert stats.chi2.sf(statistic, classes * (classes - 1)) > FALSE_ALARM
        if dp.epsilon == 1.0:  # given what was said before, the label itself tells nothing more
            kept = [(said == before)[which].mean() for which in (before == true, before != true)]
            assert kept[0] == pytest.approx(kept[1], abs=0.03)
        before = said
    assert (LabelDP(4.0, classes).once(state, true, source) == LabelDP(4.0, classes).said(state)).all()
    assert (state[SAID] == LabelDP(4.0, classes).said(state)).all()  # what the training that runs uses


@given(st.floats(0.05, 4), st.floats(1.01, 3), st.integers(2, 20))
def test_v16_replacing_again_tells_no_more_than_the_smaller_epsilon_allows(epsilon, factor, classes):
    """With exact chances: the matrix of both steps together."""
    first, second = LabelDP(epsilon * factor, classes), LabelDP(epsilon, classes)
    others = classes - 1
    a, b = (1 - others * Fraction(away, WORD) for away in (lie(first.epsilon, classes), second.words_again(first)))
    right = a * b + (1 - a) * (1 - b) / others
    wrong = (1 - right) / others
    assert 1 <= right / wrong <= second.ratio()


def test_v16_labels_in_another_order_are_refused():
    state, true = {}, np.array([0, 1] * 30)
    LabelDP(1.0).once(state, true)
    with pytest.raises(BudgetInvalid, match="another order"):
        LabelDP(1.0).once(state, true[::-1])


def test_v16_a_twin_that_draws_each_epoch_anew_tells_the_labels():
    """Of nine draws at epsilon 1 the majority is the label of 93 %; of one draw 73 %, however many epochs use it."""
    dp, true, source = LabelDP(1.0), np.random.default_rng(3).integers(0, 2, 20_000), entropy(4)
    anew = np.mean([dp.draw(true, source) for _ in range(9)], axis=0) > 0.5
    state = {}
    kept = np.mean([dp.once(state, true, source) for _ in range(9)], axis=0) > 0.5
    assert found_by_majority(dp, 9) == pytest.approx(stats.binom.sf(4, 9, dp.ceiling))
    assert (anew == true).mean() == pytest.approx(found_by_majority(dp, 9), abs=0.012)
    assert (kept == true).mean() == pytest.approx(dp.ceiling, abs=0.018)
    assert epsilon_of_draws(1.0, 9) == 9.0


def test_v16_an_attacker_stays_below_epsilon_and_catches_the_twin():
    """Labels 0 and 1, each 60 000 times: four draws of each leak more than one, which leaks no more than epsilon."""
    dp, source, n = LabelDP(1.0), entropy(5), 60_000
    labels = [np.zeros(n, int), np.ones(n, int)]
    honest = [dp.draw(one, source) for one in labels]
    twin = [sum(dp.draw(one, source) for _ in range(4)) for one in labels]
    assert epsilon_lower_bound(*honest) <= 1.0
    assert epsilon_lower_bound(*twin) > 2.5


def test_v19_a_party_that_comes_back_says_what_it_said():
    dp, state, true = LabelDP(1.0), {}, np.random.default_rng(0).integers(0, 2, 200)
    said = dp.once(state, true, entropy(1))
    kept = {key: value.copy() for key, value in state.items()}  # what a store of states persists
    assert (dp.once(kept, true, entropy(2)) == said).all()


@pytest.mark.parametrize("lost", ["label dp: said at epsilon 1.0", DRAWN_FROM])
def test_v19_half_a_state_is_no_reason_to_draw_again(lost):
    dp, state, true = LabelDP(1.0), {}, np.array([0, 1] * 30)
    dp.once(state, true)
    del state[lost]
    with pytest.raises(BudgetInvalid):
        dp.once(state, true)


def test_v19_labels_that_were_never_said_are_not_there():
    with pytest.raises(StateLost):
        LabelDP(1.0).said({})


@pytest.mark.parametrize("correction", ["forward", "backward", "none"])
@pytest.mark.parametrize("columns", [1, 2, 4])
def test_losses_are_those_of_the_formulas(correction, columns):
    classes = max(columns, 2)
    dp = LabelDP(1.0, classes)
    rng = np.random.default_rng(columns)
    scores, said = torch.tensor(rng.normal(size=(30, columns))), torch.tensor(rng.integers(0, classes, 30))
    full = torch.cat([torch.zeros(30, 1, dtype=torch.float64), scores], 1) if columns == 1 else scores
    p, law = functional.softmax(full, 1).numpy(), dp.chances
    naive = {
        "forward": [-math.log(p[i] @ law[:, y]) for i, y in enumerate(said.tolist())],
        "backward": [-np.linalg.inv(law)[y] @ np.log(p[i]) for i, y in enumerate(said.tolist())],
        "none": [-math.log(p[i, y]) for i, y in enumerate(said.tolist())],
    }
    assert float(dp.loss(scores, said, correction)) == pytest.approx(np.mean(naive[correction]), rel=1e-10)


def test_the_backward_loss_is_unbiased_for_the_true_label():
    dp, scores = LabelDP(0.7, 3), torch.tensor([[0.3, -1.0, 2.0]], dtype=torch.float64)
    for true in range(3):
        expected = sum(dp.chances[true, said] * float(dp.loss(scores, torch.tensor([said]), "backward")) for said in range(3))
        assert expected == pytest.approx(float(functional.cross_entropy(scores, torch.tensor([true]))))


def test_the_forward_loss_is_least_at_the_true_chances():
    """Of people with a chance of 0.1: descent on the expected loss finds 0.1, and without a correction something else."""
    dp, truth = LabelDP(1.0), np.array([0.9, 0.1])
    mix = truth @ dp.chances
    found = {}
    for correction in ("forward", "none"):
        s = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        solver = torch.optim.LBFGS([s], max_iter=100, tolerance_grad=1e-12)

        def step(correction=correction, s=s, solver=solver):
            solver.zero_grad()
            loss = sum(mix[y] * dp.loss(s, torch.tensor([y]), correction) for y in range(2))
            loss.backward()
            return loss

        solver.step(step)
        found[correction] = float(torch.sigmoid(s.detach())[0])
    assert found["forward"] == pytest.approx(0.1, abs=1e-5)
    assert found["none"] == pytest.approx(mix[1], abs=1e-5)
    assert mix[1] > 0.3


def test_logits_that_are_far_out_give_a_finite_loss_and_gradient():
    s = torch.tensor([[800.0], [-800.0]], requires_grad=True)
    loss = LabelDP(1.0).loss(s, torch.tensor([0, 1]))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(s.grad).all()


@pytest.mark.parametrize("labels", [[0, 2], [0.5, 1], [-1, 0], ["a", "b"], [[0, 1]], [float("nan"), 0.0]])
def test_labels_that_are_none_are_refused_without_being_named(labels):
    with pytest.raises(NotBinary) as refused:
        LabelDP(1.0).draw(labels)
    assert "0.5" not in str(refused.value)


def test_settings_outside_their_range_are_refused():
    for epsilon in (0.0, -1.0, math.nan, 100.0):
        with pytest.raises(BudgetInvalid):
            LabelDP(epsilon)
    for classes in (1, 2.0, True):
        with pytest.raises(SettingsInvalid):
            LabelDP(1.0, classes)
    with pytest.raises(SettingsInvalid, match="one output per class"):
        LabelDP(1.0, 3).loss(torch.zeros(4, 2), torch.zeros(4))
    with pytest.raises(SettingsInvalid, match="sideways"):
        LabelDP(1.0).loss(torch.zeros(4), torch.zeros(4), "sideways")
