"""Phan's auto-encoder: its constant by brute force, a layer that knows second moments alone, and forms that are marked."""

from functools import partial
from itertools import product

import numpy as np
import pytest
import torch

import hedgerow as hr
from hedgerow.core.bound import l2
from hedgerow.core.party import Party
from hedgerow.core.whole import in_steps
from hedgerow.data import load
from hedgerow.errors import SchemaInvalid, SettingsInvalid, UnlawfulChannel
from hedgerow.papers.haug import layers
from hedgerow.papers.haug.auto_encoder import coefficients, distance, orthogonal, private_auto_encoder, score, taylor
from hedgerow.privacy import Gaussian


def digits(n=150, seed=0):
    return hr.simulate(load("digits").take(range(n)), hr.data.iid(3), seed=seed)


def one(x, h):
    """Coefficients of one record: of each visible unit a linear and a quadratic part, the latter h h' / 8."""
    return np.outer(0.5 - x, h), np.outer(h, h) / 8


def corners(k):
    return (np.array(corner, float) for corner in product((0, 1), repeat=k))


@pytest.mark.parametrize(("d", "b"), [(1, 1), (2, 3), (3, 2), (4, 4)])
def test_the_constant_is_reached_and_never_exceeded_and_the_printed_one_is_twice_it(d, b):
    apart, shared = 0.0, 0.0
    for x, h in product(corners(d), corners(b)):
        linear, quadratic = one(x, h)
        apart = max(apart, np.abs(linear).sum() + d * np.abs(quadratic).sum())
        shared = max(shared, np.abs(linear).sum() + np.abs(quadratic).sum())
    assert distance(d, b) == pytest.approx(apart)
    assert distance(d, b, "shared") == pytest.approx(shared)
    assert distance(d, b, "printed") == pytest.approx(2 * apart) == pytest.approx(d * (b + b**2 / 4))


@pytest.mark.parametrize(("d", "b"), [(2, 2), (2, 3)])
def test_of_records_that_are_replaced_the_printed_constant_is_valid_too(d, b):
    points = [one(x, h) for x, h in product(corners(d), corners(b))]
    worst = max(np.abs(p[0] - q[0]).sum() + d * np.abs(p[1] - q[1]).sum() for p, q in product(points, points))
    assert distance(d, b) <= worst <= distance(d, b, "printed")


def objective(W, X):
    """The cross-entropy of a layer's reconstruction."""
    logits = torch.sigmoid(X @ W) @ W.T
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, X, reduction="sum")


def test_a_layer_to_second_order_is_a_function_of_second_moments_alone():
    rng = np.random.default_rng(0)
    X, zero = rng.uniform(size=(7, 3)), torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
    of = partial(objective, X=torch.from_numpy(X))
    slope, bend = torch.autograd.functional.jacobian(of, zero), torch.autograd.functional.hessian(of, zero)
    for _ in range(5):
        W = rng.normal(size=(3, 2))
        step = torch.from_numpy(W)
        expected = of(zero) + (slope * step).sum() + 0.5 * torch.einsum("ij,ijkl,kl->", step, bend, step)
        assert taylor(W, 7, X.sum(0), X.T @ X) == pytest.approx(float(expected.detach()), rel=1e-10)


def test_other_records_with_the_same_moments_have_the_same_polynomial_and_so_the_same_layer():
    rng = np.random.default_rng(1)
    X = rng.uniform(0.3, 0.7, size=(6, 2))
    centred = X - X.mean(0)
    turned = np.linalg.qr(np.column_stack([np.ones(6), rng.normal(size=(6, 5))]))[0]
    other = X.mean(0) + turned @ np.diag([1, -1, 1, -1, 1, 1]) @ turned.T @ centred  # keeps sums and products
    assert np.abs(np.sort(other, 0) - np.sort(X, 0)).max() > 0.01
    W = rng.normal(size=(2, 2))
    assert taylor(W, 6, other.sum(0), other.T @ other) == pytest.approx(taylor(W, 6, X.sum(0), X.T @ X))
    found = [orthogonal(6, data.sum(0), data.T @ data, 2, 3.0) for data in (X, other)]
    np.testing.assert_allclose(*found, atol=1e-5)


def test_columns_are_orthogonal_and_lower_than_others():
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(40, 6)) ** 3
    moments = 40, X.sum(0), X.T @ X
    W = orthogonal(*moments, 3, 2.0)
    np.testing.assert_allclose(W.T @ W, 4 * np.eye(3), atol=1e-5)
    others = [2 * np.linalg.qr(rng.normal(size=(6, 3)))[0] for _ in range(200)]
    assert taylor(W, *moments) < min(taylor(other, *moments) for other in others)


def test_coefficients_are_those_of_the_taylor_polynomial_in_what_a_visible_unit_adds_up():
    rng = np.random.default_rng(3)
    x, W = rng.uniform(size=(9, 4)).astype(np.float32), rng.normal(size=(4, 3)).astype(np.float32)
    party = Party("a", {"cube": x, "label": np.zeros(9, int)}, np.ones(9))
    total = coefficients({"W1": W}, party, None, below=0)
    x, h, V = x.astype(float), layers.hidden(x, [W]).astype(float), 1e-3 * rng.normal(size=(4, 3))
    z = h @ V.T
    exact = (x * np.log1p(np.exp(-z)) + (1 - x) * np.log1p(np.exp(z))).sum()
    found = 9 * 4 * np.log(2) + (total["linear"] * V).sum() + np.einsum("jk,kl,jl->", V, total["quadratic"], V)
    assert found == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("labels", [0, 3])
def test_one_record_moves_the_moments_by_one_at_most_and_reaches_it(labels):
    rng = np.random.default_rng(4)
    columns = {"cube": rng.uniform(size=(20, 5)).astype(np.float32), "label": rng.integers(0, 3, 20)}
    bounds = in_steps(l2(1.0, "record"))
    ask = partial(layers.second_moments, None, rng=None, labels=labels, bounds=bounds)
    whole = ask(party=Party("a", columns, np.ones(20)))
    for i in range(20):
        w = np.ones(20)
        w[i] = 0.0
        moved = np.linalg.norm(whole - ask(party=Party("a", columns, w)))
        assert 0.99999 < moved <= 1.0
    plain = layers.second_moments(None, Party("a", columns, np.ones(20)), None, labels=labels)
    np.testing.assert_allclose(whole, plain, atol=1e-5)


def test_rows_that_are_not_divided_by_their_length_exceed_the_bound():
    x = np.ones((1, 5))
    v = np.concatenate([[[1.0]], x], axis=1) * layers.HALF
    assert np.linalg.norm(v.T @ v) > 1.0


def test_without_hidden_layers_it_is_least_squares_of_the_labels():
    table = load("digits").take(range(150))
    (state,) = private_auto_encoder(digits(), hidden=[])
    x, label = layers.of_table(table)
    v = layers.HALF * np.column_stack([np.ones(150), layers.unit(x)]).astype(float)
    y = (label[:, None] == np.arange(10)) - 0.5
    G = v.T @ v
    expected = np.linalg.solve(G + 1e-6 * np.linalg.eigvalsh(G)[-1] * np.eye(len(G)), v.T @ y)
    np.testing.assert_allclose(state.output, expected, atol=1e-6)


def test_the_corrected_form_keeps_its_budget_and_the_printed_one_has_none():
    corrected, printed = digits(), digits()
    hr.last(private_auto_encoder(corrected, hidden=[8, 4], epsilon=1.0, delta=1e-5))
    assert len(corrected.ledger) == 3
    assert 0.999 < corrected.ledger.epsilon(delta=1e-5, unit="record") <= 1.0
    hr.last(private_auto_encoder(printed, hidden=[4], epsilon=1.0, form="printed"))
    assert {entry.event.kind for entry in printed.ledger.entries} == {"nonprivate"}


def test_it_learns_and_a_seed_repeats_it_and_a_started_run_goes_on():
    table = load("digits")
    states = [list(private_auto_encoder(digits(), hidden=[30], epsilon=100.0, delta=1e-5)) for _ in range(2)]
    np.testing.assert_array_equal(states[0][-1].output, states[1][-1].output)
    assert score({"form": "corrected"}, states[0][-1], table.schema, table) > 0.5
    assert score({"form": "corrected"}, states[0][0], table.schema, table) == pytest.approx(0.1, abs=0.02)  # no output yet
    (last,) = private_auto_encoder(digits(), hidden=[30], start=states[0][0])
    np.testing.assert_array_equal(last.layers["W1"], states[0][0].layers["W1"])


def test_refused_before_anybody_is_asked():
    fed = digits()
    for settings in ({"hidden": [0]}, {"hidden": [8, 9]}, {"hidden": [65]}, {"form": "printed"}):
        with pytest.raises(SettingsInvalid):
            next(private_auto_encoder(fed, **settings))
    with pytest.raises(UnlawfulChannel):
        next(private_auto_encoder(fed.protect(mechanism=Gaussian(1.0)), form="printed", epsilon=1.0))
    with pytest.raises(SchemaInvalid):
        next(private_auto_encoder(hr.simulate(load("diabetes"), hr.data.iid(2), seed=0)))
    assert not fed.ledger.entries
