"""Attribute, property and class inversion: what is guessed with a model, beside what is guessed without."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import hedgerow as hr
from hedgerow.attacks import Guesses, PropertyAttack, class_image, flat_update, infer_attribute, invert_class
from hedgerow.attacks.observers.attribute import multinomial, population_prior
from hedgerow.errors import SettingsInvalid
from hedgerow.learn import fedavg, linear, mlp
from hedgerow.learn.tensors import inputs_and_target, settings


# ---- shares -----------------------------------------------------------------------------------------------------------------
def test_guesses_by_hand():
    found = Guesses.compared("x", np.array([1, 1, 1, 1, 0], bool), np.array([1, 0, 0, 0, 1], bool))
    assert (found.attack.value, found.baseline.value) == (0.8, 0.4)
    assert found.gained.value == pytest.approx(0.4)
    assert found.p_value == pytest.approx((4 + 1) / 16)  # at least 3 of 4 that differ
    assert "without it" in str(found)


def test_equal_guesses_gain_nothing():
    right = np.arange(10) % 2 == 0
    found = Guesses.compared("x", right, right)
    assert found.gained.value == found.gained.low == found.gained.high == 0.0
    assert found.p_value == 1.0


def test_p_values_of_a_useless_attack_are_not_small():
    """Below 0.01 in at most 12 of 400 seeds: more have chance 1e-4, as McNemar's test is exact."""
    rng = np.random.default_rng(0)
    small = sum(Guesses.compared("x", *(rng.random((2, 200)) < 0.5)).p_value < 0.01 for _ in range(400))
    assert small <= 12


def test_guesses_for_other_records_are_refused():
    with pytest.raises(SettingsInvalid):
        Guesses.compared("x", np.ones(3, bool), np.ones(4, bool))


# ---- attributes -------------------------------------------------------------------------------------------------------------
def people(n, seed, strength=2.0):
    """y follows from a hidden flag, which the number tells little of."""
    rng = np.random.default_rng(seed)
    flag = rng.random(n) < 0.4
    x = rng.normal(0.3 * flag, 1.0)
    y = rng.random(n) < 1 / (1 + np.exp(-strength * (2.0 * flag - 1)))
    columns = {"x": x.clip(-5, 5), "flag": flag.astype(int), "y": y.astype(int)}
    column = hr.data.Column
    schema = hr.data.Schema(
        (column("x", "number", low=-5, high=5), column("flag", "binary"), column("y", "binary", role="target"))
    )
    return hr.data.Table(schema.admit(columns), schema)


def test_the_prior_is_that_of_public_records():
    known = people(4000, 0)
    prior = np.exp(population_prior(people(40_000, 1), known, "flag", 2))
    assert prior.sum(1) == pytest.approx(np.ones(4000))
    guess = prior.argmax(1)
    truth = np.asarray(known["flag"])
    assert (guess == truth).mean() > 0.8  # y and flag are alike in 88 of 100
    assert prior[:, 1].mean() == pytest.approx(0.4, abs=0.04)


def test_multinomial_regression_is_that_of_scikit_learn():
    sklearn = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((300, 3)), rng.integers(0, 3, 300)
    ours = multinomial(np.column_stack([np.ones(300), x]), np.eye(3)[y], 2.0)
    theirs = sklearn.LogisticRegression(C=0.5, tol=1e-10, max_iter=2000).fit(x, y)
    assert ours[1:].T - ours[1:].T.mean(0) == pytest.approx(theirs.coef_, abs=1e-3)


class Memory(nn.Module):
    """Says the target of records that it has seen, with all their columns; of others nothing."""

    def __init__(self, rows, targets):
        super().__init__()
        self.free = nn.Parameter(torch.zeros(1))
        self.rows, self.targets = rows, targets

    def forward(self, x):
        found, at = (x[:, None] - self.rows).abs().sum(-1).min(1)
        return torch.where(found < 1e-7, 8.0 * (2 * self.targets[at] - 1), self.free)[:, None]


def test_a_model_that_remembers_gives_members_away_and_others_not():
    members, others, public = people(600, 3, 0.0), people(600, 4, 0.0), people(5000, 5, 0.0)
    made = inputs_and_target(members.columns, **settings(members.schema))
    module = Memory(torch.tensor(made["model_input"]), torch.tensor(made["model_target"], dtype=torch.float32))
    weights = {name: value.numpy() for name, value in module.state_dict().items()}
    inside = infer_attribute(weights, module, members, "flag", public)
    outside = infer_attribute(weights, module, others, "flag", public)
    assert inside.gained.low > 0.1
    assert inside.p_value < 1e-6
    assert outside.gained.value == 0.0


def test_only_a_feature_with_levels_is_guessed():
    table = people(50, 6)
    for name in ("x", "y"):
        with pytest.raises(SettingsInvalid):
            infer_attribute({}, linear(2, 1), table, name, table)


# ---- properties -------------------------------------------------------------------------------------------------------------
def test_a_property_attack_finds_a_direction_and_nothing_where_there_is_none():
    """40 of 80 guesses by chance: beyond 4 deviations, 58, in 1e-4 of seeds."""
    rng = np.random.default_rng(0)
    has = rng.random(160) < 0.5
    noise, direction = rng.standard_normal((160, 300)), rng.standard_normal(300) / np.sqrt(300)
    told = noise + 8 * has[:, None] * direction
    found = PropertyAttack.fit(told[:80], has[:80]).judged(told[80:], has[80:])
    assert found.attack.value > 0.9 > found.baseline.high
    blind = PropertyAttack.fit(noise[:80], has[:80]).judged(noise[80:], has[80:])
    assert blind.attack.value < 58 / 80


def test_a_property_attack_does_not_depend_on_units_or_a_common_start():
    rng = np.random.default_rng(1)
    has, updates = rng.random(40) < 0.5, rng.standard_normal((40, 10))
    found = PropertyAttack.fit(updates, has).probability(updates)
    moved = PropertyAttack.fit(1000 * updates + 5, has).probability(1000 * updates + 5)
    assert moved == pytest.approx(found, abs=1e-4)


def test_property_attacks_need_both_answers():
    for has in (np.ones(4, bool), np.zeros(4, bool), np.ones(4)):
        with pytest.raises(SettingsInvalid):
            PropertyAttack.fit(np.eye(4), has)


@pytest.mark.slow
def test_the_share_of_a_class_at_a_party_shows_in_its_update():
    digits = hr.data.load("digits")
    y, rng = np.asarray(digits["digit"]), np.random.default_rng(0)
    module = linear(64, 10)

    def update(has, seed):
        ones = 12 if has else 4
        rows = np.r_[rng.choice(np.flatnonzero(y == 1), ones, False), rng.choice(np.flatnonzero(y != 1), 60 - ones, False)]
        party = hr.simulate(digits.take(rows), hr.data.iid(1), seed=seed)
        after = hr.last(fedavg(party, module, rounds=1, learning_rate=0.1, batch_size=20))
        return flat_update(after, dict.fromkeys(after.weights, 0.0))

    has = rng.random(70) < 0.5
    updates = np.array([update(one, seed) for seed, one in enumerate(has)])
    found = PropertyAttack.fit(updates[:45], has[:45]).judged(updates[45:], has[45:])
    assert found.attack.value >= 0.9
    assert found.baseline.value < 0.8


# ---- class inversion --------------------------------------------------------------------------------------------------------
def test_a_linear_class_is_inverted_to_the_signs_of_its_weights():
    module = linear(6, 2)
    weights = {name: np.zeros_like(value.numpy()) for name, value in module.state_dict().items()}
    (slopes,) = (name for name in weights if weights[name].ndim == 2)
    weights[slopes] = np.array([[0.0] * 6, [1.0, -1.0, 1.0, -1.0, 1.0, -1.0]], np.float32)
    assert invert_class(weights, module, 1, (6,)) == pytest.approx([1, 0, 1, 0, 1, 0], abs=0.01)
    assert invert_class(weights, module, 0, (6,)) == pytest.approx([0, 1, 0, 1, 0, 1], abs=0.01)


def test_a_binary_class_is_that_of_the_sign():
    module = linear(2, 1)
    weights = {name: np.zeros_like(value.numpy()) for name, value in module.state_dict().items()}
    (slopes,) = (name for name in weights if weights[name].ndim == 2)
    weights[slopes] = np.array([[1.0, -1.0]], np.float32)
    assert invert_class(weights, module, 1, (2,)) == pytest.approx([1, 0], abs=0.01)
    assert invert_class(weights, module, 0, (2,)) == pytest.approx([0, 1], abs=0.01)


@pytest.mark.slow
def test_what_is_inverted_of_digits_tells_classes_apart_and_a_model_of_nothing_does_not():
    digits = hr.data.load("digits")
    x, y = np.asarray(digits["image"]).reshape(len(digits), -1) / 16, np.asarray(digits["digit"])
    module = linear(64, 10)
    state = hr.last(fedavg(hr.simulate(digits, hr.data.iid(4), seed=0), module, rounds=3, learning_rate=0.2, batch_size=64))
    found = [class_image(invert_class(state, module, level, (64,), steps=60), x, y, level) for level in range(10)]
    assert min(one.attack for one in found) > 0.3
    untrained = mlp(64, [8], 10)
    begun = {name: value.numpy() for name, value in untrained.state_dict().items()}
    nothing = [class_image(invert_class(begun, untrained, level, (64,), steps=60), x, y, level).attack for level in range(10)]
    assert abs(np.mean(nothing)) < 0.2
    assert found[0].baseline == replace(found[0], made=found[1].made).baseline


def test_a_class_that_the_model_lacks_is_refused():
    module = linear(3, 2)
    with pytest.raises(SettingsInvalid):
        invert_class({name: value.numpy() for name, value in module.state_dict().items()}, module, 2, (3,))
