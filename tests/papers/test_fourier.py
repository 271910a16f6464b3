"""Random Fourier features: of length one, near the Gaussian kernel, and better than a line where a line fails."""

import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.papers.haug.fourier import fourier_machine, score, waves


def test_rows_have_length_one_and_products_come_near_the_kernel():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    Z = waves(X, 4000, 1.3, 5)
    np.testing.assert_allclose((Z**2).sum(1), 1.0, rtol=1e-9)
    apart = ((X[:, None] - X) ** 2).sum(-1)
    np.testing.assert_allclose(Z @ Z.T, np.exp(-apart / (2 * 1.3**2)), atol=6 / math.sqrt(2 * 4000))


def test_a_row_follows_from_its_record_alone():
    X = np.random.default_rng(1).normal(size=(30, 7))
    together = waves(X, 20, 0.7, 0)
    assert all(np.array_equal(waves(X[i : i + 1], 20, 0.7, 0)[0], together[i]) for i in range(30))


@pytest.mark.slow
def test_it_tells_a_ring_from_its_middle_at_its_epsilon_where_a_line_cannot():
    import pandas as pd

    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.uniform(-1, 1, (3000, 2)), columns=["a", "b"])
    frame["inside"] = ((frame.a**2 + frame.b**2) < 0.64).astype(int)
    table = hr.data.Table.from_frame(frame, target="inside", declared={"inside": {"kind": "binary"}}).declare(
        a=(-1, 1), b=(-1, 1)
    )
    federation = hr.simulate(table, hr.data.iid(parties=3), seed=0)
    settings = {"formula": "inside ~ a + b", "epsilon": 2.0, "delta": 1e-5, "features": 25, "width": 0.4, "seed": 0}
    *_, state = fourier_machine(federation, **settings)
    assert federation.ledger.epsilon(delta=1e-5, unit="record") == pytest.approx(2.0, rel=1e-6)
    assert score(settings, state, table.schema, table) > 0.9


def test_refused_before_anybody_is_asked():
    federation = hr.simulate(hr.data.load("diabetes"), hr.data.iid(parties=2), seed=0)
    with pytest.raises(hr.errors.NotBinary):
        list(fourier_machine(federation, formula="progression ~ bmi"))
    with pytest.raises(hr.errors.SettingsInvalid):
        list(fourier_machine(federation, formula="progression ~ bmi", features=0))
    assert len(federation.ledger) == 0


def test_noise_that_counts_lengths_in_l1_is_refused_with_what_to_give():
    federation = hr.simulate(hr.data.load("breast_cancer").take(range(40)), hr.data.iid(parties=2), seed=0)
    settings = {"formula": "malignant ~ mean_texture", "features": 2}
    for asked, more in (
        (federation, {"epsilon": 1.0}),
        (federation, {"epsilon": 1.0, "delta": 0.0}),
        (federation.protect(mechanism=hr.Laplace(1.0)), {}),
    ):
        with pytest.raises(hr.errors.BudgetInvalid, match="Give a delta"):
            list(fourier_machine(asked, **settings, **more))
    assert len(federation.ledger) == 0
