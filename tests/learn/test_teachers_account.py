"""Data-dependent accounting against worked numbers, and why none of it can reach a ledger."""

import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.events import Event, Sampling
from hedgerow.errors import BudgetInvalid, SettingsInvalid
from hedgerow.learn.teachers import Unreleasable, confident_gnmax, gnmax, lnmax, pate
from hedgerow.learn.teachers.account import (
    ORDERS,
    epsilon_of,
    log_answered,
    log_miss_gnmax,
    log_miss_lnmax,
    rdp_check,
    rdp_free,
    rdp_gnmax,
    rdp_lnmax,
)
from hedgerow.privacy import accounting

VOTES = np.array([200, 30, 10, 5, 5, 0, 0, 0, 0, 0.0])


def test_gnmax_of_a_worked_example():
    assert log_miss_gnmax(VOTES, 40.0) == pytest.approx(-5.7131036561409, abs=1e-12)
    expected = [0.00083827, 0.00092498, 0.00112693, 0.00191331, 0.01615436]
    np.testing.assert_allclose(rdp_gnmax(VOTES, 40.0, [2, 5, 10, 20, 50]), expected, atol=5e-9)


def test_lnmax_of_a_worked_example():
    assert log_miss_lnmax(VOTES, 20.0) == pytest.approx(-6.3352043262127, abs=1e-12)
    np.testing.assert_allclose(rdp_lnmax(VOTES, 20.0, [2, 5, 10]), [0.00037286, 0.00040418, 0.00047312], atol=5e-9)


def test_a_check_at_its_threshold_is_a_coin():
    assert log_answered(VOTES, 200, 150) == pytest.approx(-math.log(2), abs=1e-12)
    np.testing.assert_allclose(rdp_check(VOTES, 200, 150), ORDERS / (2 * 150**2), rtol=1e-12)


def test_640_checks_and_286_answers():
    curve = 640 * ORDERS / (2 * 150**2) + 286 * rdp_free(40.0)
    assert epsilon_of(curve, 1e-5, classic=True) == pytest.approx(3.1753, abs=1e-3)
    assert epsilon_of(curve, 1e-5) == pytest.approx(2.7579, abs=2e-4)
    whole = np.arange(2.0, 100.0)
    curve = 640 * whole / (2 * 150**2) + 286 * rdp_free(40.0, whole)
    assert epsilon_of(curve, 1e-5, whole, classic=True) == pytest.approx(3.1759, abs=5e-5)


def test_noise_for_so_many_answers():
    for q, epsilon, sigma in ((1000, 0.5, 342.9), (1000, 1.0, 180.9), (9000, 0.5, 1028.7)):
        assert epsilon_of(q * rdp_free(sigma), 1e-5) == pytest.approx(epsilon, abs=2e-4 + 5e-4)


def test_never_above_what_needs_no_votes():
    rng = np.random.default_rng(0)
    for sigma in (0.5, 3.0, 40.0, 200.0):
        for row in rng.multinomial(250, rng.dirichlet(np.full(10, 0.2)), size=20):
            assert (rdp_gnmax(row, sigma) <= rdp_free(sigma) * (1 + 1e-12)).all()
            assert (rdp_check(row, 200, sigma) <= rdp_free(math.sqrt(2) * sigma) * (1 + 1e-12)).all()
            assert (rdp_lnmax(row, sigma) <= rdp_lnmax(np.zeros(10), sigma) * (1 + 1e-12)).all()


def test_gnmax_bounds_the_divergence_of_neighbouring_votes():
    """Against the chances of each class themselves, by integration, for votes with one teacher changed."""
    sigma, orders = 4.0, np.array([2.0, 5.0])
    for row in ([40, 5, 5], [30, 12, 8], [20, 18, 12]):
        before = _chances(np.array(row, float), sigma)
        for change in ([-1, 1, 0], [0, -1, 1], [1, -1, 0]):
            after = _chances(np.array(row, float) + change, sigma)
            powers = before[None] ** orders[:, None] * after[None] ** (1 - orders[:, None])
            found = np.log1p((powers - before).sum(1)) / (orders - 1)
            assert (found <= rdp_gnmax(np.array(row), sigma, orders) + 1e-12).all()


def _chances(votes, sigma):
    from scipy import special

    x, weight = np.polynomial.hermite_e.hermegauss(120)
    at = votes[:, None] + sigma * x
    others = [[special.log_ndtr((at[c] - votes[j]) / sigma) for j in range(len(votes)) if j != c] for c in range(len(votes))]
    found = np.array([(weight * np.exp(np.sum(one, 0))).sum() for one in others])
    return found / found.sum()


def test_published_mechanisms_label_what_teachers_agree_on():
    votes = np.tile(VOTES, (40, 1))
    for found in (gnmax(votes, 40.0, seed=0), lnmax(votes, 0.05, seed=0), confident_gnmax(votes, 150, 20, 40.0, seed=0)):
        assert (found.labels == 0).mean() > 0.9
        assert found.dependent.secret < found.epsilon
        assert "unreleasable" in str(found)
    assert len(confident_gnmax(votes, 300, 5, 40.0, seed=0).answered) == 0
    free = gnmax(votes, 40.0, seed=0).epsilon
    assert free == pytest.approx(epsilon_of(40 * rdp_free(40.0), 1e-5))


# ---- what follows from the votes cannot be charged ----------------------------------------------------------------------
class Leaky(float):
    """A twin: a data-dependent epsilon that is a number."""


def charged(epsilon):
    """Make the event of a release and let an accountant read it, as a ledger does."""
    return accounting.epsilon([(Sampling(), (Event("pure", epsilon=epsilon),))], delta=1e-5, adjacency="add-remove")


def test_a_data_dependent_epsilon_cannot_be_written_to_a_ledger_and_a_twin_can():
    found = gnmax(np.tile(VOTES, (10, 1)), 40.0, seed=0).dependent
    with pytest.raises(BudgetInvalid, match="no cost that can be charged"):
        float(found)
    with pytest.raises((TypeError, BudgetInvalid)):
        charged(found)
    assert charged(Leaky(found.secret)) >= 0  # what a plain number would let happen


@pytest.mark.filterwarnings("ignore:noise of")
def test_comparing_with_the_papers_charges_nothing_and_needs_exact_votes():
    table = hr.data.load("breast_cancer").select(["malignant", "mean_radius", "mean_texture"])
    fed = hr.simulate(table.take(range(60)), hr.data.iid(parties=3), seed=0)
    labels = pate(fed, teacher="ridge", shards=4, inputs=table.take(range(60, 90)))
    before = fed.ledger.entries
    assert isinstance(labels.confident_gnmax(8, 2.0, 2.0).dependent, Unreleasable)
    assert len(labels.gnmax(2.0).labels) == len(labels.lnmax(0.5).labels) == 30
    assert fed.ledger.entries == before
    fed = hr.simulate(table.take(range(60)), hr.data.iid(parties=3), seed=0)
    noisy = pate(fed, teacher="ridge", shards=4, inputs=table.take(range(60, 90)), epsilon=1.0, delta=1e-5)
    for ask in (lambda: noisy.gnmax(2.0), lambda: noisy.lnmax(0.5), lambda: noisy.confident_gnmax(8, 2.0, 2.0)):
        with pytest.raises(SettingsInvalid, match="behind noise"):
            ask()
    with pytest.raises(SettingsInvalid, match="no whole numbers"):
        gnmax(noisy.votes, 2.0)
