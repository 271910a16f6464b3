"""Gradient inversion from recorded views: what a single record, a batch, noise and masks let a server see."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import hedgerow as hr
from hedgerow.attacks import CosineSearch, infer_labels, invert, sigmoid_net
from hedgerow.attacks.observers.first_layer import LayerSlopes, means_by_class, one_input, rows_of_inputs
from hedgerow.attacks.observers.inferred_labels import whole_counts
from hedgerow.attacks.observers.recognised import matched, psnr
from hedgerow.core.bound import l2
from hedgerow.crypto import SecAgg
from hedgerow.errors import HedgerowError, SettingsInvalid
from hedgerow.learn.local import gradient
from hedgerow.learn.models import linear
from hedgerow.learn.tensors import prepared
from hedgerow.learn.training import model_of
from hedgerow.privacy import Gaussian

N = 20
TABLE = hr.data.load("digits").take(range(N))
X, Y = np.asarray(TABLE["image"]) / 16.0, np.asarray(TABLE["digit"])
REGRESSION = linear(64, 10)


@pytest.fixture
def federation():
    return hr.simulate(TABLE, hr.data.of_sizes([1] * N, shuffled=False), record_views=True)


def asked(federation, which, module=REGRESSION, **protection):
    """The server's view after it asked some parties of one record each for the sum of their gradients."""
    model = model_of(module, federation, None)
    cohort = prepared(federation).pick([federation.names[i] for i in which])
    cohort = cohort.protect(**protection) if protection else cohort
    cohort.sum(partial(gradient, model=model), model.initial)
    return hr.engines.view(federation, "server")


# ---- by hand --------------------------------------------------------------------------------------------------------------
def test_one_input_by_hand():
    x, q = np.array([0.2, 0.7]), np.array([0.5, -1.0, 0.5])
    slopes = LayerSlopes(np.outer(q, x), q)
    assert one_input(slopes) == pytest.approx(x)
    assert rows_of_inputs(slopes) == pytest.approx(np.tile(x, (3, 1)))


def test_a_row_of_a_batch_is_a_weighted_mean_by_hand():
    x, q = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[-0.75, 0.75], [0.25, -0.25]])  # records by units
    slopes = LayerSlopes(q.T @ x, q.sum(0))
    assert rows_of_inputs(slopes)[0] == pytest.approx([1.5, -0.5])  # -0.75 and 0.25 over their sum


def test_means_by_class_by_hand():
    """Three classes at equal chances: classes 0 and 1 have records, 2 has none."""
    x, y = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.5]]), np.array([0, 1, 1])
    q = np.full((3, 3), 1 / 3) - np.eye(3)[y]
    found, classes = means_by_class(LayerSlopes(q.T @ x, q.sum(0)), np.array([1, 2, 0]))
    assert classes.tolist() == [0, 1]
    assert found == pytest.approx(np.array([[1.0, 0.0], [0.0, 0.75]]))


def test_where_every_class_has_a_record_nothing_is_read_by_class():
    with pytest.raises(SettingsInvalid, match="0 of 2 classes"):
        means_by_class(LayerSlopes(np.zeros((2, 3)), np.zeros(2)), np.array([1, 1]))


def test_decibels_by_hand_and_pictures_are_matched_one_to_one():
    assert psnr(np.full(4, 0.6), np.full(4, 0.5)) == pytest.approx(20.0)
    assert psnr(np.zeros(4), np.zeros(4)) == 120
    places, found = matched(np.array([[0.1], [0.0], [0.9]]), np.array([[0.0], [1.0]]))
    assert places.tolist() == [-1, 0, 1]
    assert found[1:] == pytest.approx([120, 20.0])
    assert np.isnan(found[0])


def test_whole_counts_add_up():
    assert whole_counts(np.array([1.6, -0.2, 2.4, 0.2]), 4).tolist() == [2, 0, 2, 0]
    assert whole_counts(np.zeros(3), 4).sum() == 4


# ---- from views -----------------------------------------------------------------------------------------------------------
def test_one_record_is_exact_and_so_is_its_label(federation):
    for i in range(5):
        view = asked(federation, [i])
        found = invert(view, REGRESSION, TABLE.schema)
        assert (found.by, found.records, found.parties) == ("one", 1, 1)
        assert found.psnr_against(X[i : i + 1])[0] >= 100
        assert infer_labels(view, REGRESSION, TABLE.schema).classes.tolist() == [Y[i]]


def test_a_partys_row_tells_the_same_and_a_masked_row_nothing(federation):
    view = asked(federation, range(4))
    assert invert(view, REGRESSION, TABLE.schema, party="party 3").psnr_against(X[2:3])[0] >= 100
    hidden = asked(federation, range(4, 8), aggregation=SecAgg(largest=64.0))
    with pytest.raises(SettingsInvalid, match="masked row, which is uniform"):
        invert(hidden, REGRESSION, TABLE.schema, party="party 6", number=2)


def test_records_alone_in_their_class_come_back_exactly_from_a_batch_and_from_a_secure_sum(federation):
    """Digits 0 to 7 in turn: eight records, and a secure sum of nine, of different classes."""
    for which, protection in ((range(8), {}), (range(9), {"aggregation": SecAgg(largest=64.0)})):
        view = asked(federation, which, **protection)
        assert infer_labels(view, REGRESSION, TABLE.schema).right(Y[which]) == 1
        found = invert(view, REGRESSION, TABLE.schema, by="classes")
        assert (found.records, found.parties) == (len(which), len(which))
        assert found.psnr_against(X[which]).min() >= 100
        assert np.nanmax(invert(view, REGRESSION, TABLE.schema).psnr_against(X[which])) < 40


def test_noise_at_the_party_leaves_no_picture(federation):
    found = {}
    for z in (0.01, 1.0):
        view = asked(federation, [0], clip=l2(1.0), mechanism=Gaussian(z, at="party"))
        found[z] = invert(view, REGRESSION, TABLE.schema, records=1).psnr_against(X[:1])[0]
    guess = psnr(X.mean(0), X[0])
    assert found[0.01] > 20 > guess + 4
    assert found[1.0] < guess


def test_an_update_of_several_local_steps_tells_record_and_labels():
    federation = hr.simulate(TABLE, hr.data.of_sizes([1, 6, 13], shuffled=False), record_views=True)
    settings = {"rounds": 1, "epochs": 3, "batch_size": 0, "learning_rate": 0.05}
    hr.last(hr.learn.fedavg(federation, REGRESSION, **settings))
    view = hr.engines.view(federation, "server")
    assert invert(view, REGRESSION, TABLE.schema, party="party 1").psnr_against(X[:1])[0] >= 100
    labels = infer_labels(view, REGRESSION, TABLE.schema, party="party 2", learning_rate=0.05, local_steps=3)
    assert (labels.records, labels.right(Y[1:7])) == (6, 1.0)
    with pytest.raises(SettingsInvalid, match="learning_rate is None"):
        infer_labels(view, REGRESSION, TABLE.schema, party="party 2")


def test_a_secure_total_of_updates_is_read_by_class_as_one_of_gradients_is():
    federation = hr.simulate(TABLE.take(range(8)), hr.data.of_sizes([1] * 8, shuffled=False), record_views=True)
    hidden = federation.protect(aggregation=SecAgg(largest=64.0))
    hr.last(hr.learn.fedsgd(hidden, REGRESSION, rounds=1, learning_rate=0.5))
    view = hr.engines.view(federation, "server")
    found = invert(view, REGRESSION, TABLE.schema, by="classes", learning_rate=0.5)
    assert (found.records, found.parties, found.recognised(X[:8])) == (8, 8, 8)
    wrong = invert(view, REGRESSION, TABLE.schema, by="classes", learning_rate=1.0, labels=Y[:8])
    assert wrong.recognised(X[:8]) == 0  # a wrong rate is a wrong sum


@pytest.mark.slow
def test_a_search_finds_four_records_of_a_sigmoid_network_and_all_of_a_secure_sum(federation):
    network = sigmoid_net(64, [32], 10)
    search = CosineSearch(steps=300, learning_rate=0.05, variation=0.0)
    view = asked(federation, range(4), network)
    found = invert(view, network, TABLE.schema, by="cosine", labels=Y[:4], search=search)
    again = invert(view, network, TABLE.schema, by="cosine", labels=Y[:4], search=search)
    assert (found.images == again.images).all()
    assert found.recognised(X[:4]) == 4
    hidden = asked(federation, range(5), network, aggregation=SecAgg(largest=64.0))
    found = invert(hidden, network, TABLE.schema, by="cosine", labels=Y[:5], search=search)
    assert (found.parties, found.recognised(X[:5])) == (5, 5)
    noisy = asked(federation, [0], network, clip=l2(1.0), mechanism=Gaussian(1.0, at="party"))
    found = invert(noisy, network, TABLE.schema, by="cosine", records=1, labels=Y[:1], search=search)
    assert found.psnr_against(X[:1])[0] < psnr(X.mean(0), X[0])


def test_a_search_that_climbs_finds_nothing(federation, monkeypatch):
    """The broken twin: away from the slope that was seen."""
    from hedgerow.attacks.observers import cosine_search

    real = cosine_search.misfit_of
    monkeypatch.setattr(cosine_search, "misfit_of", lambda *given: -real(*given))
    network = sigmoid_net(64, [32], 10)
    view = asked(federation, [0], network)
    search = CosineSearch(steps=100, learning_rate=0.05)
    found = invert(view, network, TABLE.schema, by="cosine", labels=Y[:1], search=search)
    assert found.recognised(X[:1]) == 0


def test_the_slope_of_a_search_is_that_of_its_loss():
    """Against finite differences, in double precision."""
    from hedgerow.attacks.observers.cosine_search import misfit_of
    from hedgerow.attacks.observers.seen_gradients import public_model

    model = public_model(sigmoid_net(64, [5], 10), TABLE.schema)
    weights = torch.from_numpy(model.initial).double().requires_grad_()
    wanted = torch.randn(len(model.initial), generator=torch.Generator().manual_seed(0)).double()
    x, y = torch.from_numpy(X[:2]).clone().requires_grad_(), torch.from_numpy(Y[:2].astype(np.int64))
    wanted = wanted / wanted.norm()

    def loss(values):
        own = torch.autograd.grad(model.losses(weights, values, y, scaled=True).sum(), weights, create_graph=True)[0]
        return 1 - own @ wanted / own.norm()

    assert misfit_of(wanted, model, weights, x, y).item() == pytest.approx(loss(x).item())
    (slope,) = torch.autograd.grad(misfit_of(wanted, model, weights, x, y), [x])
    step = torch.zeros_like(x)
    step[1, 20] = 1e-5
    assert slope[1, 20].item() == pytest.approx((loss(x + step) - loss(x - step)).item() / 2e-5, rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"by": "magic"}, "by is 'magic'"),
        ({"party": "nobody"}, "no slope of 'nobody'"),
        ({"number": 7}, "no slope of a total"),
        ({"search": None, "by": "cosine", "records": 0}, "records is 0"),
    ],
)
def test_what_cannot_be_inverted_is_refused(federation, changes, words):
    with pytest.raises(HedgerowError, match=words):
        invert(asked(federation, [0]), REGRESSION, TABLE.schema, **changes)


def test_a_first_layer_without_a_bias_is_searched_and_not_read(federation):
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 10, bias=False))
    view = asked(federation, [0], module)
    with pytest.raises(SettingsInvalid, match="not linear with a bias"):
        invert(view, module, TABLE.schema, by="one")
    assert invert(view, module, TABLE.schema, labels=Y[:1], search=CosineSearch(steps=2)).by == "cosine"


def test_a_card_says_how_many_records_are_in_the_sum(federation):
    found = invert(asked(federation, range(3)), REGRESSION, TABLE.schema)
    assert "records in the sum 3, parties 3" in repr(found)
    assert "records in the sum" in found._repr_html_()
