"""Components of public records, and records of weight zero in private training."""

import numpy as np
import pytest
import torch

import hedgerow as hr
from hedgerow.core.party import Party
from hedgerow.errors import SettingsInvalid
from hedgerow.learn import mlp
from hedgerow.learn.features.public import LIMIT, NAME, public_components, public_directions, random_directions
from hedgerow.learn.models import model_for
from hedgerow.learn.records import Clipping
from hedgerow.learn.records import clipped as clipped_records

TABLE = hr.data.load("digits")


def test_components_of_the_public_records_have_mean_zero_and_variance_one():
    directions, shift = public_directions(TABLE, 10)
    z = public_components(TABLE.schema, directions, shift).of(TABLE)[NAME]
    assert z.shape == (len(TABLE), 10)
    assert np.abs(z).max() <= LIMIT
    assert z.mean(0) == pytest.approx(np.zeros(10), abs=0.02)
    assert np.cov(z.T) == pytest.approx(np.eye(10), abs=0.05)


def test_few_public_records_give_the_same_components_as_the_covariance():
    """Fewer records than numbers take the smaller matrix; a copy of all records takes the larger, with the same covariance."""
    few = TABLE.take(np.arange(40))
    twice = TABLE.take(np.tile(np.arange(40), 2))
    assert public_directions(few, 5)[0] == pytest.approx(public_directions(twice, 5)[0], rel=1e-3, abs=1e-4)


def test_a_party_makes_the_columns_of_the_server():
    directions, shift = public_directions(TABLE, 4)
    step = public_components(TABLE.schema, directions, shift)
    rows = step.of(TABLE)[NAME]
    alone = np.concatenate([step.of(TABLE.take([i]))[NAME] for i in range(20)])
    assert alone == pytest.approx(rows[:20], abs=1e-4)
    made, less = random_directions(TABLE.schema, 4)
    assert (made.shape, less.shape) == (directions.shape, shift.shape)


def test_more_components_than_directions_are_refused():
    with pytest.raises(SettingsInvalid):
        public_directions(TABLE.take(np.arange(5)), 6)


@pytest.mark.parametrize("exact", [True, False])
def test_records_of_weight_zero_are_left_out_of_the_gradients_and_change_no_sum(monkeypatch, exact):
    rng, asked = np.random.default_rng(0), []
    x, y = rng.random((30, 64), np.float32), rng.integers(0, 10, 30)
    w = (rng.random(30) < 0.4).astype(float)
    model, before = model_for(mlp(64, [4], 10), TABLE.schema, x), clipped_records.clipped_sum

    def counted(model, flat, x, *more, **how):
        asked.append(len(x))
        return before(model, flat, x, *more, **how)

    monkeypatch.setattr(clipped_records, "clipped_sum", counted)
    party = Party("one", {"model_input": x, "model_target": y}, w)
    found = clipped_records.clipped_gradients(model.initial, party, None, model=model, clipping=Clipping.of(1.0), exact=exact)
    whole, _ = before(model, *map(torch.from_numpy, (model.initial, x, y, w.astype(np.float32))), 1.0, exact=exact)
    assert asked == [int(w.sum())]
    assert found["gradient"] == pytest.approx(whole.numpy(), abs=0 if exact else 1e-6)
